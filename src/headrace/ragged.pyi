# Written by tools/make_stubs.py from ragged.py; do not edit.
from headrace.ops.ragged.array import boolean_mask as boolean_mask
from headrace.ops.ragged.array import stack as stack
from headrace.ops.ragged.array import stack_dynamic_partitions as stack_dynamic_partitions
from headrace.ops.ragged.elementwise import map_flat_values as map_flat_values
from headrace.ops.ragged.factory import constant as constant
from headrace.ops.ragged.factory import constant_value as constant_value
from headrace.ops.ragged.factory import placeholder as placeholder
from headrace.ops.ragged.math import ragged_range as _range
range = _range
from headrace.ops.ragged.math import row_splits_to_segment_ids as row_splits_to_segment_ids
from headrace.ops.ragged.math import segment_ids_to_row_splits as segment_ids_to_row_splits
__all__ = ['RaggedTensorValue', 'boolean_mask', 'constant', 'constant_value', 'map_flat_values', 'placeholder', 'range', 'row_splits_to_segment_ids', 'segment_ids_to_row_splits', 'stack', 'stack_dynamic_partitions']
from headrace.ops.ragged.value import RaggedTensorValue as RaggedTensorValue
