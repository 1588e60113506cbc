"""``tf.map_fn`` over the rows of ragged tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from headrace.graph import dtypes, nest
from headrace.graph.tensor import Tensor
from headrace.ops.control.flow_api import while_loop
from headrace.ops.control.tensor_array import TensorArray
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.ragged.ragged_tensor import (
    RaggedTensor,
    convert_to_tensor_or_ragged_tensor,
    first_size,
)
from headrace.ops.state.scopes_api import scope_or


def map_fn(
    fn: Callable[[Any], Any],
    elems: Any,
    dtype: Any = None,
    parallel_iterations: int | None = None,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    name: str | None = None,
) -> Any:
    """``fn`` of each row of ``elems``, stacked. Results must be dense and of one shape.

    Args:
        fn: takes a row (nested as ``elems``; the rows of a tensor of ragged rank 1 are dense, but
            of different lengths), returns tensors (nested as ``dtype``).
        elems: ragged or dense tensors, nested, of equally many rows.
        dtype: type or nested types of the results, if they differ from those of ``elems``.

    Raises:
        TypeError: if ``fn`` cannot be called, or returns something ragged.
    """
    if not callable(fn):
        raise TypeError("fn must be callable.")
    with scope_or(name, "map"):
        parts = [convert_to_tensor_or_ragged_tensor(e) for e in nest.flatten(elems)]
        wanted = elems if dtype is None else dtype
        types = [p.dtype for p in parts] if dtype is None else nest.flatten(dtype)
        rows = first_size(parts[0], dtypes.int32)
        arrays = [
            TensorArray(dtypes.as_dtype(t), size=rows, infer_shape=infer_shape) for t in types
        ]

        def body(i: Tensor, arrays: list[Any]) -> list[Any]:
            row = nest.pack_sequence_as(elems, [p[i] for p in parts])
            result = fn(row)
            nest.assert_same_structure(wanted, result, check_types=False)
            written = []
            for array, value, kind in zip(arrays, nest.flatten(result), types, strict=True):
                if isinstance(value, RaggedTensor):
                    raise TypeError(
                        "fn returns a RaggedTensor: map_fn over rows stacks dense results only."
                    )
                written.append(array.write(i, convert_to_tensor(value, kind)))
            return [raw.AddV2(i, 1), written]

        _, arrays = while_loop(
            lambda i, _: raw.Less(i, rows),
            body,
            [convert_to_tensor(np.int32(0)), arrays],
            parallel_iterations=parallel_iterations or 10,
            back_prop=back_prop,
            swap_memory=swap_memory,
        )
        return nest.pack_sequence_as(wanted, [a.stack() for a in arrays])
