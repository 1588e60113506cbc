"""Public functions that gather, scatter and search."""

from __future__ import annotations

import math
from typing import Any

from headrace.graph import dtypes
from headrace.graph.composite import composite_function
from headrace.graph.graph import get_default_graph
from headrace.graph.tensor import Tensor
from headrace.ops.core.array_util import as_tensor, index_tensor, int_const, shape_argument
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.core.public import public


@public("gather")
@composite_function
def gather(
    params: Any,
    indices: Any,
    validate_indices: Any = None,
    name: str | None = None,
    axis: Any = None,
    batch_dims: int = 0,
) -> Tensor:
    """Slices of ``params`` along ``axis``: ``params.shape[:axis] + indices.shape + rest``.

    With ``batch_dims`` the first dimensions of both are matched one to one. Gradients with respect
    to ``params`` are IndexedSlices when ``axis`` is 0.

    Raises:
        TypeError: if ``indices`` are no integers.
        ValueError: if ``axis`` or ``batch_dims`` is out of range.
        InvalidArgumentError: when the graph runs, if an index is out of range.

    >>> with tf.Session() as session:
    ...     session.run(gather([10, 20, 30], [2, 0])).tolist()
    [30, 10]
    """
    at = batch_dims if axis is None else axis
    if isinstance(at, int) and at == 0 and batch_dims == 0:
        sparse_read = getattr(params, "sparse_read", None)
        if sparse_read is not None:
            result: Tensor = sparse_read(index_tensor(indices), name=name)
            return result
    tensor = as_tensor(params)
    return raw.GatherV2(tensor, index_tensor(indices), at, batch_dims=batch_dims, name=name)


@public("batch_gather")
@composite_function
def batch_gather(params: Any, indices: Any, name: str | None = None) -> Tensor:
    """Gather along the last dimension of ``indices``; those before it are matched one to one.

    Args:
        params: ``[batch..., n, ...]``.
        indices: ``[batch..., k]`` integers in [0, n), of known rank.

    Returns:
        ``[batch..., k, ...]``.

    Raises:
        TypeError: if the indices are no integers.
        ValueError: if the rank of ``indices`` is unknown, or the batch dimensions differ.
        InvalidArgumentError: when run, if an index is out of range.
    """
    with get_default_graph().name_scope(name or "BatchGather"):
        places = index_tensor(indices, "indices")
        if places.dims is None:
            raise ValueError("batch_gather does not allow indices with unknown shape.")
        last = len(places.dims) - 1
        gathered: Tensor = gather(as_tensor(params), places, axis=last, batch_dims=last)
        return gathered


@public("gather_nd", "manip.gather_nd")
@composite_function
def gather_nd(params: Any, indices: Any, name: str | None = None, batch_dims: int = 0) -> Tensor:
    """Elements or slices of ``params`` at ``indices`` ``[..., depth]``.

    Args:
        params: of any shape and dtype, with at least ``depth`` dimensions.
        indices: int16, int32 or int64.
        batch_dims: so many first dimensions of both are matched one to one.

    Returns:
        A tensor of the shape ``indices.shape[:-1] + params.shape[batch_dims + depth:]``.

    Raises:
        TypeError: if the indices are no integers.
        ValueError: if ``depth`` exceeds the rank of ``params``, or ``batch_dims`` is not less than
            the rank of ``indices``, which must be known then.
        InvalidArgumentError: when run, if an index is out of range.

    >>> with tf.Session() as session:
    ...     session.run(gather_nd([[1, 2], [3, 4]], [[0, 1], [1, 0]])).tolist()
    [2, 3]
    """
    tensor, places = as_tensor(params), index_tensor(indices)
    if batch_dims == 0:
        return raw.GatherNd(tensor, places, name=name)
    with get_default_graph().name_scope(name or "GatherNd") as scope:
        rank = None if places.dims is None else len(places.dims)
        if rank is None:
            raise ValueError("gather_nd with batch_dims needs indices of known rank.")
        if not 0 <= batch_dims < rank:
            raise ValueError(f"batch_dims = {batch_dims} must be less than rank(indices) = {rank}")
        shape = raw.Shape(places, out_type=places.dtype)
        parts = [places]
        outer = raw.Slice(shape, _like([0], places), _like([rank - 1], places))
        outer = raw.ConcatV2([outer, _like([1], places)], 0)
        for i in range(batch_dims - 1, -1, -1):
            size = raw.Reshape(raw.Slice(shape, _like([i], places), _like([1], places)), [])
            steps = raw.Range(_like(0, places), size, _like(1, places))
            column = [1] * rank
            column[i] = -1
            parts.insert(0, raw.BroadcastTo(raw.Reshape(steps, int_const(column)), outer))
        return raw.GatherNd(tensor, raw.ConcatV2(parts, -1), name=scope)


def _like(values: Any, tensor: Tensor) -> Tensor:
    return int_const(values, tensor.dtype)


@public("scatter_nd", "manip.scatter_nd")
def scatter_nd(indices: Any, updates: Any, shape: Any, name: str | None = None) -> Tensor:
    """Zeros of ``shape`` with ``updates`` added at ``indices`` ``[..., depth]``.

    Args:
        updates: ``indices.shape[:-1] + shape[depth:]``; where indices repeat, they add up.
        shape: 1-D integers.

    Raises:
        TypeError: if the indices are no integers.
        ValueError: if ``updates`` has another shape, or ``depth`` exceeds the rank.
        InvalidArgumentError: when run, if an index is out of range.

    >>> with tf.Session() as session:
    ...     session.run(scatter_nd([[1], [3], [1]], [10, 20, 5], [4])).tolist()
    [0, 15, 0, 20]
    """
    places = index_tensor(indices)
    sizes = shape_argument(shape)
    if sizes.dtype is not places.dtype:
        sizes = raw.Cast(sizes, DstT=places.dtype)
    return raw.ScatterNd(places, updates, sizes, name=name)


@public("tensor_scatter_nd_update")
def tensor_scatter_nd_update(
    tensor: Any, indices: Any, updates: Any, name: str | None = None
) -> Tensor:
    """``tensor`` with ``updates`` in place of what is at ``indices``.

    Shapes are those of ``tensor_scatter_nd_add``; any dtype.

    Raises:
        TypeError: if the dtypes differ, or the indices are no integers.
        ValueError: if ``updates`` has another shape, or ``depth`` exceeds the rank.
        InvalidArgumentError: when run, if an index is out of range.
    """
    return raw.TensorScatterUpdate(tensor, index_tensor(indices), updates, name=name)


@public("tensor_scatter_nd_add")
def tensor_scatter_nd_add(
    tensor: Any, indices: Any, updates: Any, name: str | None = None
) -> Tensor:
    """``tensor`` with ``updates`` added at ``indices``; duplicates add up.

    Args:
        tensor: numbers of any shape.
        indices: ``[..., depth]`` integers.
        updates: ``indices.shape[:-1] + tensor.shape[depth:]``, of the dtype of ``tensor``.

    Raises:
        TypeError: if the dtypes differ, or the indices are no integers.
        ValueError: if ``updates`` has another shape, or ``depth`` exceeds the rank.
        InvalidArgumentError: when run, if an index is out of range.
    """
    return raw.TensorScatterAdd(tensor, index_tensor(indices), updates, name=name)


@public("tensor_scatter_nd_sub")
def tensor_scatter_nd_sub(
    tensor: Any, indices: Any, updates: Any, name: str | None = None
) -> Tensor:
    """``tensor`` with ``updates`` subtracted at ``indices``; duplicates add up.

    Shapes are those of ``tensor_scatter_nd_add``.

    Raises:
        TypeError: if the dtypes differ, or the indices are no integers.
        ValueError: if ``updates`` has another shape, or ``depth`` exceeds the rank.
        InvalidArgumentError: when run, if an index is out of range.
    """
    return raw.TensorScatterSub(tensor, index_tensor(indices), updates, name=name)


tensor_scatter_update = public("tensor_scatter_update")(tensor_scatter_nd_update)
tensor_scatter_add = public("tensor_scatter_add")(tensor_scatter_nd_add)
tensor_scatter_sub = public("tensor_scatter_sub")(tensor_scatter_nd_sub)


@public("searchsorted")
def searchsorted(
    sorted_sequence: Any,
    values: Any,
    side: str = "left",
    out_type: Any = dtypes.int32,
    name: str | None = None,
) -> Tensor:
    """Where in each sorted row ``values`` would have to be inserted.

    Args:
        sorted_sequence: ``[..., n]``, ascending along the last dimension.
        values: ``[..., m]`` of the same type.
        side: "left": before equal elements; "right": after them.

    Raises:
        ValueError: for another ``side``.
    """
    if side not in ("left", "right"):
        raise ValueError(f"side must be either 'right' or 'left'.  Saw: {side}.")
    with get_default_graph().name_scope(name or "searchsorted"):
        rows = convert_to_tensor(sorted_sequence)
        wanted = convert_to_tensor(values, rows.dtype)
        flat = [_as_rows(t) for t in (rows, wanted)]
        find = raw.LowerBound if side == "left" else raw.UpperBound
        found = find(*flat, out_type=out_type)
        return raw.Reshape(found, raw.Shape(wanted))


def _as_rows(tensor: Tensor) -> Tensor:
    """The rows of a tensor as a matrix; their number is computed, for rows may be empty."""
    dims = tensor.dims
    if dims and None not in dims:
        return raw.Reshape(tensor, [math.prod(dims[:-1]), dims[-1]])
    shape = raw.Shape(tensor)
    width = raw.StridedSlice(shape, [-1], [0], [1], shrink_axis_mask=1, end_mask=1)
    count = raw.Prod(raw.StridedSlice(shape, [0], [-1], [1]), [0])
    return raw.Reshape(tensor, raw.Pack([count, width]))
