"""Rearranging ragged tensors: gather, concat, stack, tile, masks, dimensions of size one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace.graph import dtypes
from headrace.graph.graph import default_graph_stack
from headrace.graph.shapes import compatible_static
from headrace.graph.tensor import Tensor
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.core.static import static_value
from headrace.ops.math.cast import cast_to
from headrace.ops.ragged.ragged_tensor import (
    RaggedTensor,
    convert_to_tensor_or_ragged_tensor,
    first_size,
    splits_of_lengths,
)
from headrace.ops.ragged.value import positive_axis
from headrace.ops.state.scopes_api import scope_or

# -- gather -------------------------------------------------------------------------------------


def gather(params: Any, indices: Any, name: str | None = None) -> Any:
    """Rows ``indices`` of ``params``; either may be ragged.

    Raises:
        ValueError: if the rank of dense indices is unknown.
        InvalidArgumentError: when the graph runs, if an index is not a row.
    """
    with scope_or(name, "RaggedGather"):
        params = convert_to_tensor_or_ragged_tensor(params, name="params")
        indices = convert_to_tensor_or_ragged_tensor(
            indices, preferred_dtype=dtypes.int32, name="indices"
        )
        return _gather(params, indices)


def _gather(params: Any, indices: Any) -> Any:
    if isinstance(indices, RaggedTensor):
        return indices.with_values(_gather(params, indices.values))
    if not isinstance(params, RaggedTensor):
        return raw.GatherV2(params, indices, 0)
    if indices.dims is None:
        raise ValueError("indices.shape.ndims must be known statically")
    if not indices.dims:
        return params[indices]
    if len(indices.dims) > 1:
        rows = RaggedTensor.from_tensor(
            indices, ragged_rank=len(indices.dims) - 1, row_splits_dtype=params.row_splits.dtype
        )
        return _gather(params, rows)
    splits = params.row_splits
    starts = raw.GatherV2(splits[:-1], indices, 0)
    limits = raw.GatherV2(splits[1:], indices, 0)
    one = splits.dtype.np_dtype.type(1)
    ends, places = raw.RaggedRange(starts, limits, one, Tsplits=splits.dtype)
    return RaggedTensor(_gather(params.values, places), ends, internal=True)


def _place_in_row(splits: Tensor, rows: Tensor, column: Tensor) -> Tensor:
    """The place of element ``column`` of each row; -1, which no tensor has, where there is none."""
    starts = raw.GatherV2(splits[:-1], rows, 0)
    limits = raw.GatherV2(splits[1:], rows, 0)
    column = cast_to(column, splits.dtype)
    place = raw.AddV2(starts, column)
    zero = splits.dtype.np_dtype.type(0)
    inside = raw.LogicalAnd(raw.GreaterEqual(column, zero), raw.Less(place, limits))
    return raw.SelectV2(inside, place, zero - 1)


def batch_gather(params: Any, indices: Any, name: str | None = None) -> Any:
    """For each row the elements of that row of ``params`` at ``indices``; either may be ragged.

    Raises:
        ValueError: if ``indices`` has a rank below 1 or above that of ``params``.
        InvalidArgumentError: when the graph runs, if an index is not in its row.
    """
    with scope_or(name, "RaggedBatchGather"):
        params = convert_to_tensor_or_ragged_tensor(params, name="params")
        indices = convert_to_tensor_or_ragged_tensor(indices, name="indices")
        return _batch_gather(params, indices)


def _batch_gather(params: Any, indices: Any) -> Any:
    rank = indices.shape.ndims
    if rank is None or rank == 0:
        raise ValueError("batch_gather needs indices of known rank, at least 1.")
    if rank == 1:
        return _gather(params, indices)
    dtype = next(x.row_splits.dtype for x in (params, indices) if isinstance(x, RaggedTensor))
    params, indices = (
        x if isinstance(x, RaggedTensor) else RaggedTensor.from_tensor(x, row_splits_dtype=dtype)
        for x in (params, indices)
    )
    if rank > 2:
        splits = raw.RaggedSameSplits(indices.row_splits, params.row_splits)
        return RaggedTensor(_batch_gather(params.values, indices.values), splits, internal=True)
    place = _place_in_row(params.row_splits, indices.value_rowids(), indices.values)
    return indices.with_values(_gather(params.values, place))


def gather_nd(params: Any, indices: Any, name: str | None = None) -> Any:
    """Elements or slices of ``params`` at tuples of indices (the last axis); either may be ragged.

    Raises:
        ValueError: if the last dimension of ``indices`` is ragged, or unknown.
        InvalidArgumentError: when the graph runs, if an index is out of range.
    """
    with scope_or(name, "RaggedGatherNd"):
        params = convert_to_tensor_or_ragged_tensor(params, name="params")
        indices = convert_to_tensor_or_ragged_tensor(indices, name="indices")
        rank = indices.shape.ndims
        if rank is None or rank == 0:
            raise ValueError("indices.rank must be statically known, and at least 1.")
        if isinstance(indices, RaggedTensor) and rank == indices.ragged_rank + 1:
            raise ValueError("The innermost dimension of indices may not be ragged")
        return _gather_nd(params, indices)


def _gather_nd(params: Any, indices: Any) -> Any:
    if isinstance(indices, RaggedTensor):
        return indices.with_values(_gather_nd(params, indices.values))
    size = indices.dims[-1]
    if size is None:
        raise ValueError("The size of the last dimension of indices must be known.")
    if size == 0:
        raise ValueError("indices must have at least one column for ragged params.")
    columns = raw.Unpack(indices, num=size, axis=-1)
    while isinstance(params, RaggedTensor) and len(columns) > 1:
        place = _place_in_row(params.row_splits, columns[0], columns[1])
        columns = [place, *[cast_to(c, place.dtype) for c in columns[2:]]]
        params = params.values
    if len(columns) == 1:
        return _gather(params, columns[0])
    return raw.GatherNd(params, raw.Pack(columns, axis=-1))


# -- concat and stack ---------------------------------------------------------------------------


def concat(values: Any, axis: int, name: str | None = None) -> Any:
    """Ragged and dense tensors joined along ``axis``.

    Raises:
        ValueError: if ranks differ, or the axis is not one of theirs.
        InvalidArgumentError: when the graph runs, if rows before the axis differ.
    """
    with scope_or(name, "RaggedConcat"):
        return _joined(_list(values), axis, stacking=False)


def stack(values: Any, axis: int = 0, name: str | None = None) -> Any:
    """Ragged and dense tensors of one rank as slices along a new axis.

    Raises:
        ValueError: if ranks differ, or there is no such axis.

    >>> Session().run(stack([[1, 2, 3], [4]])).to_list()
    [[1, 2, 3], [4]]
    """
    with scope_or(name, "RaggedConcat"):
        return _joined(_list(values), axis, stacking=True)


def _list(values: Any) -> list[Any]:
    return list(values) if isinstance(values, (list, tuple)) else [values]


def _joined(values: list[Any], axis: int, stacking: bool) -> Any:
    if not values:
        raise ValueError("rt_inputs may not be empty.")
    parts = [convert_to_tensor_or_ragged_tensor(v, name="rt_input") for v in values]
    ranks = {p.shape.ndims for p in parts if p.shape.ndims is not None}
    if len(ranks) > 1:
        raise ValueError(f"All ragged inputs must have the same rank, but have {sorted(ranks)}.")
    rank = ranks.pop() if ranks else None
    axis = positive_axis(axis, None if rank is None else rank + stacking)
    if len(parts) == 1 and not stacking:
        return parts[0]
    if rank is not None and not any(isinstance(p, RaggedTensor) for p in parts):
        if stacking and axis == rank:
            return raw.Pack(parts, axis=axis)
        if not stacking and axis == rank - 1:
            return raw.ConcatV2(parts, axis)
    wide = any(isinstance(p, RaggedTensor) and p.row_splits.dtype.size == 8 for p in parts)
    narrow = any(isinstance(p, RaggedTensor) for p in parts) and not wide
    dtype = dtypes.int32 if narrow else dtypes.int64
    parts = [p.with_row_splits_dtype(dtype) if isinstance(p, RaggedTensor) else p for p in parts]
    if stacking:
        if rank == 1 and not (wide or narrow):
            dtype = dtypes.int32  # as TensorFlow has it for vectors alone
        parts = [p if p.shape.ndims == 1 else _to_rank(p, 1, dtype) for p in parts]
        parts = [_expand(p, axis, dtype) for p in parts]
    return _concat(parts, axis, dtype)


def _concat(parts: list[Any], axis: int, dtype: Any) -> Any:
    deepest = max(p.ragged_rank if isinstance(p, RaggedTensor) else 0 for p in parts)
    if deepest == 0 and axis in (0, len(parts[0].dims or ()) - 1):
        return raw.ConcatV2(parts, axis)
    parts = [_to_rank(p, max(deepest, min(axis, 1)), dtype) for p in parts]
    if axis == 0:
        return _along_rows(parts)
    if axis == 1:
        return _within_rows(parts)
    splits = parts[0].row_splits
    for part in parts[1:]:
        if part.row_splits is not splits:
            splits = raw.RaggedSameSplits(splits, part.row_splits)
    return RaggedTensor(_concat([p.values for p in parts], axis - 1, dtype), splits, internal=True)


def _to_rank(value: Any, rank: int, dtype: Any) -> Any:
    """``value`` with at least ``rank`` dimensions that have row splits."""
    if isinstance(value, RaggedTensor):
        if rank <= 1:
            return value
        return value.with_values(_to_rank(value.values, rank - 1, dtype))
    if rank == 0:
        return value
    return RaggedTensor.from_tensor(value, ragged_rank=rank, row_splits_dtype=dtype)


def _along_rows(parts: Sequence[Any]) -> Any:
    """Joined along the first axis; all have equally many ragged dimensions."""
    if not isinstance(parts[0], RaggedTensor):
        return raw.ConcatV2(list(parts), 0)
    lengths = raw.ConcatV2([p.row_lengths() for p in parts], 0)
    values = _along_rows([p.values for p in parts])
    return RaggedTensor(values, splits_of_lengths(lengths), internal=True)


def _within_rows(parts: Sequence[RaggedTensor]) -> RaggedTensor:
    """Row by row, by taking the rows of all parts in turn."""
    count = len(parts)
    joined = _along_rows(parts)
    dtype = joined.row_splits.dtype
    one = dtype.np_dtype.type(1)
    rows = parts[0].nrows()
    # Another number of rows in a part is an error of the shapes, which Reshape reports.
    order = raw.Reshape(raw.Range(one * 0, joined.nrows(), one), raw.Pack([one * count, rows]))
    taken = _gather(joined, raw.Reshape(raw.Transpose(order, [1, 0]), [-1]))
    return RaggedTensor(taken.values, taken.row_splits[::count], internal=True)


# -- dimensions of size one ---------------------------------------------------------------------


def expand_dims(value: Any, axis: int, name: str | None = None) -> Any:
    """A dimension of size 1 put in at ``axis``.

    Raises:
        ValueError: if there is no such axis.
    """
    if not isinstance(value, RaggedTensor):
        return raw.ExpandDims(value, axis, name=name)
    with scope_or(name, "RaggedExpandDims"):
        rank = value.shape.ndims
        axis = positive_axis(axis, None if rank is None else rank + 1)
        return _expand(value, axis, value.row_splits.dtype)


def _expand(value: Any, axis: int, dtype: Any) -> Any:
    zero, one = dtype.np_dtype.type(0), dtype.np_dtype.type(1)
    if axis == 0:
        return RaggedTensor(value, raw.Pack([zero, first_size(value, dtype)]), internal=True)
    if not isinstance(value, RaggedTensor):
        return raw.ExpandDims(value, axis)
    if axis == 1:
        return RaggedTensor(value, raw.Range(zero, value.nrows() + one, one), internal=True)
    return value.with_values(_expand(value.values, axis - 1, dtype))


def squeeze(value: RaggedTensor, axis: Any, name: str | None = None) -> Any:
    """Without the dimensions ``axis``, which must be of size 1.

    Raises:
        ValueError: if no axis is given, or it is not one of the tensor's.
        InvalidArgumentError: when the graph runs, if a size is not 1.
    """
    if axis is None:
        raise ValueError("Ragged.squeeze must have an axis argument.")
    with scope_or(name, "RaggedSqueeze"):
        result: Any = value
        axes = [axis] if isinstance(axis, int) else list(axis)
        for one in sorted({positive_axis(a, value.shape.ndims) for a in axes}, reverse=True):
            result = _squeeze(result, one)
        return result


def _squeeze(value: Any, axis: int) -> Any:
    if not isinstance(value, RaggedTensor):
        return raw.Squeeze(value, squeeze_dims=[axis])
    splits = value.row_splits
    one = splits.dtype.np_dtype.type(1)
    if axis == 0:
        if not compatible_static(splits.dims, (2,)):
            raise ValueError(f"Cannot squeeze dimension 0 of {value.shape}: its size is not 1.")
        expected = raw.Pack([one * 0, first_size(value.values, splits.dtype)])
        return _after(raw.RaggedSameSplits(splits, expected), value.values)
    if axis == 1:
        expected = raw.Range(one * 0, raw.Shape(splits, out_type=splits.dtype)[0], one)
        return _after(raw.RaggedSameSplits(splits, expected), value.values)
    return value.with_values(_squeeze(value.values, axis - 1))


def _after(check: Tensor, values: Any) -> Any:
    """``values`` once ``check`` is computed."""
    with default_graph_stack.current().control_dependencies([check]):
        if isinstance(values, RaggedTensor):
            return values._from_parts([raw.Identity(p) for p in values._parts()])
        return raw.Identity(values)


# -- tile ---------------------------------------------------------------------------------------


def tile(value: RaggedTensor, multiples: Any, name: str | None = None) -> RaggedTensor:
    """Copies side by side: ``multiples[i]`` of them along axis ``i``.

    Raises:
        ValueError: if ``multiples`` is no vector with one entry for each axis.
    """
    with scope_or(name, "RaggedTile"):
        dtype = value.row_splits.dtype
        counts = cast_to(convert_to_tensor(multiples, preferred_dtype=dtype), dtype)
        if not compatible_static(counts.dims, (value.shape.ndims,)):
            raise ValueError(
                f"multiples of shape {counts.shape} must be a vector with one entry for each of "
                f"{value.shape.ndims} dimensions."
            )
        result: RaggedTensor = _tile(value, counts, static_value(counts))
        return result


def _tile(value: Any, counts: Any, known: Any, outermost: bool = True) -> Any:
    one = counts.dtype.np_dtype.type(1)
    if not isinstance(value, RaggedTensor):
        return raw.Tile(value, raw.ConcatV2([[one], counts[1:]], 0))
    rest = None if known is None else known[1:]
    inner = _tile(value.values, counts[1:], rest, outermost=False)
    result = RaggedTensor(inner, value.row_splits, internal=True)
    if known is None or known[1] != 1:
        result = _longer_rows(result, counts[1])
    if outermost and (known is None or known[0] != 1):
        rows = result.nrows()
        every = raw.Range(one * 0, raw.Mul(rows, counts[0]), one)
        return _gather(result, raw.FloorMod(every, raw.Maximum(rows, one)))
    return result


def _longer_rows(value: RaggedTensor, count: Tensor) -> RaggedTensor:
    """Each row ``count`` times, one copy after the other."""
    one = count.dtype.np_dtype.type(1)
    lengths = value.row_lengths()
    splits = splits_of_lengths(raw.Mul(lengths, count))
    owner = raw.RaggedRowIds(splits, splits[-1])
    within = raw.Range(one * 0, raw.Shape(owner, out_type=count.dtype)[0], one)
    within = raw.Sub(within, raw.GatherV2(splits, owner, 0))
    length = raw.Maximum(raw.GatherV2(lengths, owner, 0), one)
    place = raw.AddV2(raw.GatherV2(value.row_splits, owner, 0), raw.FloorMod(within, length))
    return RaggedTensor(_gather(value.values, place), splits, internal=True)


# -- masks --------------------------------------------------------------------------------------


def boolean_mask(data: Any, mask: Any, name: str | None = None) -> Any:
    """The elements of ``data`` where ``mask`` is True, row by row.

    Args:
        data, mask: dense or ragged; ``data.shape`` begins with ``mask.shape``.

    Returns:
        A ragged tensor of the rank of ``data``; dense if the mask is a vector and the data dense.

    Raises:
        ValueError: if the rank of the mask is 0 or unknown.
        InvalidArgumentError: when the graph runs, if rows differ.

    >>> kept = boolean_mask([[1, 2], [3, 4]], [[True, False], [True, True]])
    >>> Session().run(kept).to_list()
    [[1], [3, 4]]
    """
    with scope_or(name, "RaggedMask"):
        data = convert_to_tensor_or_ragged_tensor(data, name="data")
        mask = convert_to_tensor_or_ragged_tensor(mask, dtypes.bool, name="mask")
        rank = mask.shape.ndims
        if rank is None:
            raise ValueError("mask.shape.ndims must be known statically.")
        if rank == 0:
            raise ValueError("mask cannot be scalar.")
        return _masked(data, mask)


def _masked(data: Any, mask: Any) -> Any:
    rank = mask.shape.ndims
    if rank == 1:
        return _gather(data, raw.Reshape(raw.Where(mask), [-1]))
    dtype = next(
        (x.row_splits.dtype for x in (data, mask) if isinstance(x, RaggedTensor)), dtypes.int64
    )
    data, mask = (
        x if isinstance(x, RaggedTensor) else RaggedTensor.from_tensor(x, row_splits_dtype=dtype)
        for x in (data, mask)
    )
    splits = mask.row_splits
    if data.row_splits is not splits:
        splits = raw.RaggedSameSplits(splits, data.row_splits)
    if rank > 2:
        return RaggedTensor(_masked(data.values, mask.values), splits, internal=True)
    owner = RaggedTensor(mask.values, splits, internal=True).value_rowids()
    ones = raw.Cast(mask.values, DstT=dtype)
    lengths = raw.UnsortedSegmentSum(ones, owner, mask.nrows())
    return RaggedTensor(
        _masked(data.values, mask.values), splits_of_lengths(lengths), internal=True
    )


def where(condition: Any, x: Any = None, y: Any = None, name: str | None = None) -> Any:
    """The places where ``condition`` is True, or ``x`` there and ``y`` elsewhere.

    Args:
        condition: ragged as ``x`` and ``y`` are; or a vector, which chooses whole rows.

    Raises:
        ValueError: if only one of ``x`` and ``y`` is given, or shapes do not fit.
    """
    if (x is None) != (y is None):
        raise ValueError("x and y must be either both None or both non-None")
    with scope_or(name, "RaggedWhere"):
        condition = convert_to_tensor_or_ragged_tensor(condition, name="condition")
        if x is None:
            return _places(condition)
        x, y = (convert_to_tensor_or_ragged_tensor(v) for v in (x, y))
        if isinstance(condition, RaggedTensor):
            from headrace.ops.ragged.elementwise import elementwise

            return elementwise(raw.SelectV2, condition, x, y)
        condition.shape.assert_has_rank(1)
        both = _joined([x, y], 0, stacking=False)
        dtype = both.row_splits.dtype
        one = dtype.np_dtype.type(1)
        of_x = raw.Range(one * 0, first_size(x, dtype), one)
        of_y = raw.AddV2(raw.Range(one * 0, first_size(y, dtype), one), first_size(x, dtype))
        return _gather(both, raw.Select(condition, of_x, of_y))


def _places(condition: Any) -> Tensor:
    if not isinstance(condition, RaggedTensor):
        return raw.Where(condition)
    inner = _places(condition.values)
    condition = condition.with_row_splits_dtype(inner.dtype)
    at = inner[:, 0]
    rows = raw.GatherV2(condition.value_rowids(), at, 0)
    columns = raw.Sub(at, raw.GatherV2(condition.row_splits, rows, 0))
    parts = [raw.ExpandDims(rows, 1), raw.ExpandDims(columns, 1), inner[:, 1:]]
    return raw.ConcatV2(parts, 1)


def stack_dynamic_partitions(
    data: Any, partitions: Any, num_partitions: Any, name: str | None = None
) -> RaggedTensor:
    """Row ``i`` has the slices of ``data`` whose entry in ``partitions`` is ``i``, in order.

    Raises:
        ValueError: if the rank of ``partitions`` is unknown.
        InvalidArgumentError: when the graph runs, if an entry is not below ``num_partitions``.
    """
    with scope_or(name, "SegmentStack"):
        data = convert_to_tensor_or_ragged_tensor(data, name="data")
        partitions = convert_to_tensor_or_ragged_tensor(partitions, name="partitions")
        rank = partitions.shape.ndims
        if rank is None:
            raise ValueError("partitions must have known rank.")
        if isinstance(data, RaggedTensor):
            dtype = data.row_splits.dtype
            if isinstance(partitions, RaggedTensor):
                partitions = partitions.with_flat_values(cast_to(partitions.flat_values, dtype))
            else:
                partitions = cast_to(partitions, dtype)
        if rank == 0:
            data, partitions = _expand_any(data), raw.ExpandDims(partitions, 0)
        while (partitions.shape.ndims or 1) > 1:
            wide = [x for x in (data, partitions) if isinstance(x, RaggedTensor)]
            dtype = wide[0].row_splits.dtype if wide else dtypes.int64
            data, partitions = (_to_rank(x, 1, dtype) for x in (data, partitions))
            same = raw.RaggedSameSplits(data.row_splits, partitions.row_splits)
            data, partitions = _after(same, data.values), partitions.values
        from headrace.ops.array.sort import argsort

        order = argsort(partitions, stable=True)
        return RaggedTensor.from_value_rowids(
            _gather(data, order),
            raw.GatherV2(partitions, order, 0),
            cast_to(convert_to_tensor(num_partitions), partitions.dtype),
            validate=False,
        )


def _expand_any(value: Any) -> Any:
    return expand_dims(value, 0) if isinstance(value, RaggedTensor) else raw.ExpandDims(value, 0)
