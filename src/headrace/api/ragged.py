"""``tf.ragged``: tensors whose rows have different lengths."""

from headrace.ops.every import fill as _fill
from headrace.ops.ragged.array import boolean_mask, stack, stack_dynamic_partitions
from headrace.ops.ragged.elementwise import map_flat_values
from headrace.ops.ragged.factory import constant, constant_value, placeholder
from headrace.ops.ragged.math import ragged_range as range
from headrace.ops.ragged.math import row_splits_to_segment_ids, segment_ids_to_row_splits

__all__ = [
    *_fill(__name__),
    "boolean_mask",
    "constant",
    "constant_value",
    "map_flat_values",
    "placeholder",
    "range",
    "row_splits_to_segment_ids",
    "segment_ids_to_row_splits",
    "stack",
    "stack_dynamic_partitions",
]
