"""Ranges and reductions of ragged tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from headrace.graph import dtypes
from headrace.graph.tensor import Tensor
from headrace.ops.core.array_util import int_const
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.core.static import static_value
from headrace.ops.math.cast import cast_to
from headrace.ops.ragged.ragged_tensor import (
    RaggedTensor,
    convert_to_tensor_or_ragged_tensor,
    splits_of_lengths,
)
from headrace.ops.ragged.value import positive_axis
from headrace.ops.state.scopes_api import scope_or


def ragged_range(
    starts: Any,
    limits: Any = None,
    deltas: Any = 1,
    dtype: Any = None,
    name: str | None = None,
    row_splits_dtype: Any = dtypes.int64,
) -> RaggedTensor:
    """Rows of numbers: row ``i`` goes from ``starts[i]`` up to ``limits[i]`` by ``deltas[i]``.

    Args:
        starts, limits, deltas: vectors, or scalars for all rows. With ``starts`` alone, it is the
            limits, and rows start from 0.

    Raises:
        InvalidArgumentError: when the graph runs, if lengths differ or a delta is 0.

    >>> rows = ragged_range([2, 0, 3])
    >>> Session().run(rows).to_list()
    [[0, 1], [], [0, 1, 2]]
    """
    if limits is None:
        starts, limits = 0, starts
    with scope_or(name, "RaggedRange") as own:
        parts = [
            convert_to_tensor(p, dtype, n, preferred_dtype=None if dtype else dtypes.int32)
            for p, n in ((starts, "starts"), (limits, "limits"), (deltas, "deltas"))
        ]
        if dtype is None:
            kinds = [dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64]
            wide = max((p.dtype for p in parts), key=kinds.index)
            parts = [cast_to(p, wide) for p in parts]
        splits, values = raw.RaggedRange(*parts, Tsplits=row_splits_dtype, name=own)
        return RaggedTensor(values, splits, internal=True)


def row_splits_to_segment_ids(splits: Any, name: str | None = None, out_type: Any = None) -> Tensor:
    """The number of the row of each value, from row splits.

    Args:
        splits: int32 or int64 ``[rows + 1]``, taken as they are: the first must be 0, and none less
            than the one before.
        out_type: tf.int32 or tf.int64; by default the type of ``splits``.

    Returns:
        ``[values]``.

    Raises:
        ValueError: if ``splits`` is no vector of integers, or empty.

    >>> Session().run(row_splits_to_segment_ids([0, 2, 2, 3])).tolist()
    [0, 0, 2]
    """
    with scope_or(name, "RaggedSplitsToSegmentIds"):
        splits = _int_vector(splits, "splits", out_type)
        return raw.RaggedRowIds(splits, splits[-1])


def segment_ids_to_row_splits(
    segment_ids: Any, num_segments: Any = None, out_type: Any = None, name: str | None = None
) -> Tensor:
    """Row splits, from the number of the row of each value; these must not decrease.

    Args:
        segment_ids: int32 or int64 ``[values]``.
        num_segments: how many rows there are; by default as many as the last number needs.
        out_type: tf.int32 or tf.int64; by default the type of ``segment_ids``.

    Returns:
        ``[rows + 1]``.

    Raises:
        ValueError: if ``segment_ids`` is no vector of integers.
        InvalidArgumentError: when run, if they decrease or name a row that is not there.

    >>> Session().run(segment_ids_to_row_splits([0, 0, 2])).tolist()
    [0, 2, 2, 3]
    """
    with scope_or(name, "SegmentIdsToRaggedSplits"):
        ids = _int_vector(segment_ids, "segment_ids", out_type)
        if num_segments is None:
            last = raw.ConcatV2([np.array([-1], ids.dtype.np_dtype), ids], 0)
            num_segments = raw.AddV2(raw.Max(last, 0), ids.dtype.np_dtype.type(1))
        else:
            num_segments = cast_to(convert_to_tensor(num_segments), ids.dtype)
        return raw.RaggedRowIdsToSplits(ids, num_segments)


def _int_vector(value: Any, name: str, out_type: Any) -> Tensor:
    tensor = convert_to_tensor(value, preferred_dtype=dtypes.int64, name=name)
    if tensor.dtype not in (dtypes.int32, dtypes.int64):
        raise ValueError(f"{name} must have dtype int32 or int64")
    tensor.shape.assert_has_rank(1)
    return tensor if out_type is None else cast_to(tensor, dtypes.as_dtype(out_type))


# -- segments -----------------------------------------------------------------------------------


def segment_aggregate(kind: str, data: Any, ids: Tensor, count: Any) -> Any:
    """``Unsorted{kind}`` over rows of ``data``, which may be ragged: then place by place."""
    op: Callable[..., Any] = getattr(raw, f"UnsortedSegment{kind}")
    if not isinstance(data, RaggedTensor):
        return op(data, ids, count)
    dtype = data.row_splits.dtype
    lengths = data.row_lengths()
    longest = raw.UnsortedSegmentMax(lengths, ids, count)
    longest = raw.Maximum(longest, dtype.np_dtype.type(0))
    splits = splits_of_lengths(longest)
    starts = raw.GatherV2(splits[:-1], ids, 0)
    _, places = raw.RaggedRange(starts, starts + lengths, dtype.np_dtype.type(1), Tsplits=dtype)
    values = segment_aggregate(kind, data.values, places, splits[-1])
    return RaggedTensor(values, splits, internal=True)


def unsorted_segment(
    kind: str, data: Any, segment_ids: Any, num_segments: Any, name: str | None = None
) -> Any:
    """``tf.unsorted_segment_*`` where the data or the ids are ragged.

    Raises:
        ValueError: if ids have more ragged dimensions than the data.
    """
    with scope_or(name, f"RaggedSegment{kind}"):
        data = convert_to_tensor_or_ragged_tensor(data, name="data")
        ids = convert_to_tensor_or_ragged_tensor(segment_ids, name="segment_ids")
        if isinstance(ids, RaggedTensor):
            if not isinstance(data, RaggedTensor):
                raise ValueError("segment_ids may not be ragged where data is not.")
            raw.RaggedSameSplits(data.row_splits, cast_to(ids.row_splits, data.row_splits.dtype))
            return unsorted_segment(kind, data.values, ids.values, num_segments)
        count = cast_to(convert_to_tensor(num_segments), ids.dtype)
        if kind == "Mean":
            total = segment_aggregate("Sum", data, ids, count)
            return _divided(total, segment_aggregate("Sum", _ones(data), ids, count))
        if kind == "SqrtN":
            total = segment_aggregate("Sum", data, ids, count)
            sizes = segment_aggregate("Sum", _ones(data), ids, count)
            return _divided(total, _mapped(raw.Sqrt, sizes))
        return segment_aggregate(kind, data, ids, count)


def _ones(data: Any) -> Any:
    return _mapped(raw.OnesLike, data)


def _mapped(op: Callable[..., Any], value: Any) -> Any:
    if isinstance(value, RaggedTensor):
        return value.with_flat_values(op(value.flat_values))
    return op(value)


def _divided(total: Any, count: Any) -> Any:
    if isinstance(total, RaggedTensor):
        return total.with_flat_values(total.flat_values / count.flat_values)
    return total / count


# -- reductions ---------------------------------------------------------------------------------


def reduce(kind: str, rt: RaggedTensor, axis: Any, keepdims: bool) -> Any:
    """The ``kind`` ("Sum", "Mean", "All" ...) of a ragged tensor along ``axis``.

    Returns:
        A tensor where no ragged dimension is left, else a ragged one.

    Raises:
        ValueError: if an axis is not one, or not known while the graph is built.
    """
    if isinstance(axis, Tensor):
        axis = static_value(axis)
        if axis is None:
            raise ValueError("axis must be known at graph construction time.")
    if isinstance(axis, np.ndarray):
        axis = axis.tolist()
    if kind == "Mean":
        return _divided(reduce("Sum", rt, axis, keepdims), reduce("Sum", _ones(rt), axis, keepdims))
    if axis is None:
        flat = rt.flat_values
        every = (
            int_const(np.arange(len(flat.dims)))
            if flat.dims is not None
            else (raw.Range(0, raw.Rank(flat), 1))
        )
        result = getattr(raw, kind)(flat, every)
        rank = rt.shape.ndims
        return raw.Reshape(result, [1] * rank) if keepdims and rank is not None else result
    with scope_or(None, "RaggedReduce"):
        axes = [axis] if not isinstance(axis, (list, tuple)) else list(axis)
        result = rt
        for one in sorted({positive_axis(a, rt.shape.ndims) for a in axes}, reverse=True):
            result = _reduce_kind(kind, result, one, keepdims)
        return result


def _reduce_kind(kind: str, rt: Any, axis: int, keepdims: bool) -> Any:
    from headrace.ops.ragged.array import expand_dims

    if kind in ("Any", "All"):
        ints = _mapped(lambda v: raw.Cast(v, DstT=dtypes.int32), rt)
        reduced = _reduce_axis("Prod" if kind == "All" else "Sum", ints, axis)
        result = _mapped(lambda v: raw.Cast(v, DstT=dtypes.bool), reduced)
    else:
        result = _reduce_axis(kind, rt, axis)
    return expand_dims(result, axis) if keepdims else result


def _reduce_axis(kind: str, rt: Any, axis: int) -> Any:
    if not isinstance(rt, RaggedTensor):
        return getattr(raw, kind)(rt, int_const(axis))
    dtype = rt.row_splits.dtype
    if axis == 0:
        lengths = rt.row_lengths()
        zero = np.zeros(1, dtype.np_dtype)
        longest = raw.Max(raw.ConcatV2([lengths, zero], 0), 0)
        column = _columns(rt)
        return segment_aggregate(kind, rt.values, column, longest)
    if axis == 1:
        return segment_aggregate(kind, rt.values, rt.value_rowids(), rt.nrows())
    return rt.with_values(_reduce_axis(kind, rt.values, axis - 1))


def _columns(rt: RaggedTensor) -> Tensor:
    """The place of each value in its row."""
    rowids = rt.value_rowids()
    dtype = rowids.dtype
    zero = dtype.np_dtype.type(0)
    total = raw.Shape(rowids, out_type=dtype)[0]
    places = raw.Range(zero, total, dtype.np_dtype.type(1))
    return raw.Sub(places, raw.GatherV2(rt.row_splits, rowids, 0))
