"""tf.sort and tf.argsort, through TopKV2."""

from __future__ import annotations

from typing import Any

from headrace.graph.graph import get_default_graph
from headrace.graph.tensor import Tensor
from headrace.ops.array.api import transpose
from headrace.ops.core.array_util import checked_axis
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.core.public import public


@public("sort")
def sort(
    values: Any, axis: int = -1, direction: str = "ASCENDING", name: str | None = None
) -> Tensor:
    """``values`` sorted along ``axis``.

    Args:
        direction: "ASCENDING" or "DESCENDING".

    Raises:
        ValueError: for another direction, an axis out of range, or one but -1 of a tensor of
            unknown rank.
    """
    with get_default_graph().name_scope(name or "sort"):
        return _ordered(values, axis, direction)[0]


@public("argsort")
def argsort(
    values: Any,
    axis: int = -1,
    direction: str = "ASCENDING",
    stable: bool = False,
    name: str | None = None,
) -> Tensor:
    """The positions that sort ``values`` along ``axis``; equal elements stay in order.

    Args:
        values: numbers of any shape of rank 1 or more.
        direction: "ASCENDING" or "DESCENDING".
        stable: needs no asking: the order is always stable.

    Returns:
        int32, of the shape of ``values``.

    Raises:
        ValueError: for another direction, an axis out of range, or one but -1 of a tensor of
            unknown rank.
        TypeError: if ``values`` are no numbers.

    >>> with tf.Session() as session:
    ...     session.run(argsort([30, 10, 20])).tolist()
    [1, 2, 0]
    """
    with get_default_graph().name_scope(name or "argsort"):
        return _ordered(values, axis, direction)[1]


def _ordered(values: Any, axis: int, direction: str) -> tuple[Tensor, Tensor]:
    if direction not in ("ASCENDING", "DESCENDING"):
        raise ValueError(f"Unknown direction {direction!r}: use 'ASCENDING' or 'DESCENDING'.")
    tensor = convert_to_tensor(values)
    dims = tensor.dims
    if dims is None and axis != -1:
        raise ValueError(f"Sorting along axis {axis} needs a tensor of known rank; use set_shape.")
    rank = 0 if dims is None else len(dims)
    at = -1 if dims is None else checked_axis(axis, rank)
    order = [*range(at), *range(at + 1, rank), at]
    back = [*range(at), rank - 1, *range(at, rank - 1)]
    moved = at != rank - 1
    if moved:
        tensor = transpose(tensor, order)
    ascending = direction == "ASCENDING"
    keys = _reversed(tensor) if ascending else tensor
    size = None if dims is None else tensor.dims[-1]  # type: ignore[index]
    if size is None:
        size = raw.StridedSlice(raw.Shape(tensor), [-1], [0], [1], shrink_axis_mask=1)
    found, places = raw.TopKV2(keys, size, sorted=True)
    result = [_reversed(found) if ascending else found, places]
    first, second = [transpose(r, back) for r in result] if moved else result
    return first, second


def _reversed(keys: Tensor) -> Tensor:
    """Keys in the opposite order (integers by complement: the least one has no negative)."""
    dtype = keys.dtype
    if dtype.is_floating:
        return raw.Neg(keys)
    if dtype.is_unsigned:
        return raw.Sub(convert_to_tensor(dtype.max, dtype), keys)
    return raw.Sub(convert_to_tensor(-1, dtype), keys)
