"""Ragged tensors from and to dense and sparse tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.graph import dtypes
from headrace.graph.graph import default_graph_stack
from headrace.graph.shapes import TensorShape, compatible_static
from headrace.graph.tensor import Tensor
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.core.static import static_value
from headrace.ops.math.cast import cast_to
from headrace.ops.ragged.ragged_tensor import RaggedTensor, splits_of_lengths
from headrace.ops.sparse.sparse_tensor import SparseTensor, SparseTensorValue
from headrace.ops.state.scopes_api import scope_or


def from_tensor(
    tensor: Any, lengths: Any, padding: Any, ragged_rank: int, name: str | None, splits_type: Any
) -> RaggedTensor:
    """The rows of a dense tensor as a RaggedTensor.

    Args:
        tensor: of a rank above ``ragged_rank``.
        lengths: how many values of each row to take; or a list of nested row lengths.
        padding: instead: a value; those at the end of rows are left out.
        ragged_rank: how many dimensions get row splits.

    Raises:
        ValueError: if both lengths and padding are given, or ranks do not fit.
    """
    dtype = dtypes.as_dtype(splits_type)
    if lengths is not None and padding is not None:
        raise ValueError("Specify lengths or padding, but not both")
    if isinstance(ragged_rank, bool) or not isinstance(ragged_rank, int):
        raise TypeError(f"ragged_rank expected int, got {ragged_rank!r}")
    if ragged_rank <= 0:
        raise ValueError(f"ragged_rank must be greater than 0; got {ragged_rank}")
    with scope_or(name, "RaggedFromTensor"):
        tensor = convert_to_tensor(tensor, name="tensor")
        tensor.shape.with_rank_at_least(ragged_rank + 1)
        if _is_nested(lengths):
            return _from_nested_lengths(tensor, lengths)
        sizes = _sizes(tensor, dtype)
        one = dtype.np_dtype.type(1)
        if ragged_rank > 1:
            flat = raw.Reshape(tensor, raw.ConcatV2([[one * -1], sizes[ragged_rank:]], 0))
            dims = tensor.dims
            if dims is not None:
                flat.set_shape((None, *dims[ragged_rank:]))
            value: Any = from_tensor(flat, lengths, padding, 1, None, dtype)
            totals = raw.Cumprod(sizes, 0)
            for axis in range(ragged_rank - 1, 0, -1):
                ends = raw.Range(one * 0, totals[axis - 1] + one, one) * sizes[axis]
                value = RaggedTensor(value, ends, internal=True)
            result: RaggedTensor = value
            return result
        if padding is not None:
            lengths = _lengths_without(tensor, padding, dtype)
        if lengths is not None:
            return _with_lengths(tensor, lengths, dtype)
        return _uniform(tensor, sizes, dtype)


def _sizes(tensor: Tensor, dtype: Any) -> Any:
    dims = tensor.dims
    if dims is not None and None not in dims:
        return convert_to_tensor(np.array(dims, dtype.np_dtype))
    return raw.Shape(tensor, out_type=dtype)


def _uniform(tensor: Tensor, sizes: Any, dtype: Any) -> RaggedTensor:
    one = dtype.np_dtype.type(1)
    splits = raw.Mul(raw.Range(one * 0, sizes[0] + one, one), sizes[1])
    shape = raw.ConcatV2([raw.ExpandDims(sizes[0] * sizes[1], 0), sizes[2:]], 0)
    values = raw.Reshape(tensor, shape)
    if tensor.dims is not None:
        values.set_shape((None, *tensor.dims[2:]))
    return RaggedTensor(values, splits, internal=True)


def _is_nested(lengths: Any) -> bool:
    if not isinstance(lengths, (list, tuple)) or not lengths:
        return False
    return not isinstance(lengths[0], (int, float, np.number))


def _from_nested_lengths(tensor: Tensor, lengths: Any) -> RaggedTensor:
    from headrace.ops.array.dynamic_api import boolean_mask

    tensor.shape.with_rank_at_least(len(lengths) + 1)
    counts = [convert_to_tensor(part, preferred_dtype=dtypes.int64) for part in lengths]
    total = raw.Sum(counts[-1], 0)
    yes = raw.Fill(raw.ExpandDims(total, 0), True)
    mask = RaggedTensor.from_nested_row_lengths(yes, counts, validate=False)
    dims = tensor.dims or ()
    chosen = boolean_mask(tensor, to_tensor(mask, False, None, dims[: len(counts) + 1]))
    return RaggedTensor.from_nested_row_lengths(chosen, counts, validate=False)


def _lengths_without(tensor: Tensor, padding: Any, dtype: Any) -> Tensor:
    """The length of each row up to its last value that is not ``padding``."""
    padding = convert_to_tensor(padding, tensor.dtype, name="padding")
    if tensor.dims is None:
        raise ValueError("padding needs a tensor of known rank.")
    if not compatible_static(padding.dims, tensor.dims[2:]):
        raise ValueError(f"Shapes {padding.shape} and {tensor.shape[2:]} are not compatible")
    is_padding = raw.Equal(tensor, padding)
    if len(tensor.dims) > 2:
        is_padding = raw.All(is_padding, np.arange(2, len(tensor.dims), dtype=np.int32))
    one = dtype.np_dtype.type(1)
    columns = raw.Range(one, _sizes(tensor, dtype)[1] + one, one)
    ends = raw.Mul(raw.Cast(raw.LogicalNot(is_padding), DstT=dtype), columns)
    # One column of zeros, so that rows without columns have a maximum.
    padded = raw.Pad(ends, [[0, 0], [0, 1]])
    return raw.Max(padded, 1)


def _with_lengths(tensor: Tensor, lengths: Any, dtype: Any) -> RaggedTensor:
    from headrace.ops.array.dynamic_api import boolean_mask

    counts = cast_to(convert_to_tensor(lengths, preferred_dtype=dtype), dtype)
    if counts.dtype is not dtype:
        raise TypeError(f"lengths must be integers, not {counts.dtype.name}")
    TensorShape.of(counts.dims).with_rank(1)
    columns = _sizes(tensor, dtype)[1]
    zero, one = dtype.np_dtype.type(0), dtype.np_dtype.type(1)
    counts = raw.Maximum(raw.Minimum(counts, columns), zero)
    mask = raw.Less(raw.Range(zero, columns, one), raw.ExpandDims(counts, 1))
    mask.set_shape((None, None))
    return RaggedTensor(boolean_mask(tensor, mask), splits_of_lengths(counts), internal=True)


def to_tensor(rt: RaggedTensor, default_value: Any, name: str | None, shape: Any) -> Tensor:
    """A dense tensor with all rows, filled up with ``default_value`` (zero, "").

    Args:
        default_value: a value, or one for the inner dimensions.
        shape: sizes of the result, None where they follow from the rows; longer rows are cut.

    Raises:
        ValueError: if ``default_value`` is known not to fit.
    """
    with scope_or(name, "RaggedToTensor"):
        if default_value is None:
            zero = b"" if rt.dtype is dtypes.string else rt.dtype.np_dtype.type(0)
            default_value = zero
        default = convert_to_tensor(default_value, rt.dtype, name="default_value")
        sizes = _wanted_sizes(rt, shape)
        dense = _padded(rt, default, sizes[1:])
        if sizes and sizes[0] is not None:
            dense = _with_rows(dense, default, sizes[0])
        return dense


def _wanted_sizes(rt: RaggedTensor, shape: Any) -> list[Any]:
    if shape is None:
        return []
    if isinstance(shape, Tensor):
        value = static_value(shape)
        if value is None:
            raise ValueError("to_tensor needs a shape that is known while the graph is built.")
        shape = value.tolist()
    sizes = [getattr(s, "value", s) for s in getattr(shape, "as_list", lambda: shape)()]
    if rt.shape.ndims is not None and len(sizes) > rt.shape.ndims:
        raise ValueError(f"shape {sizes} has more dimensions than the RaggedTensor, {rt.shape}.")
    return [None if s is None or s < 0 else int(s) for s in sizes]


def _padded(rt: RaggedTensor, default: Tensor, sizes: list[Any]) -> Tensor:
    values = rt.values
    if isinstance(values, RaggedTensor):
        values = _padded(values, default, sizes[1:])
    dtype = rt.row_splits.dtype
    zero, one = dtype.np_dtype.type(0), dtype.np_dtype.type(1)
    inner_rank = None if values.dims is None else len(values.dims) - 1
    own_rank = None if default.dims is None else len(default.dims)
    if inner_rank is not None and own_rank is not None and own_rank > inner_rank:
        raise ValueError(
            f"Shape {default.shape} of default_value must have at most rank {inner_rank}."
        )
    inner = _sizes(values, dtype)
    starts, limits = rt.row_starts(), rt.row_limits()
    if sizes and sizes[0] is not None:
        columns: Any = convert_to_tensor(dtype.np_dtype.type(sizes[0]), dtype)
    else:
        columns = raw.Max(raw.ConcatV2([raw.Sub(limits, starts), [zero]], 0), 0)
    filler = raw.BroadcastTo(default, inner[1:])
    table = raw.ConcatV2([values, raw.ExpandDims(filler, 0)], 0)
    places = raw.AddV2(raw.ExpandDims(starts, 1), raw.Range(zero, columns, one))
    present = raw.Less(places, raw.ExpandDims(limits, 1))
    dense = raw.GatherV2(table, raw.SelectV2(present, places, inner[0]), 0)
    if values.dims is not None:
        rows = (rt.row_splits.dims or (None,))[0]
        rows = None if rows is None else rows - 1
        dense.set_shape((rows, sizes[0] if sizes else None, *values.dims[1:]))
    return dense


def _with_rows(dense: Tensor, default: Tensor, rows: int) -> Tensor:
    """Rows cut off, or added, so that there are ``rows``."""
    sizes = raw.Shape(dense)
    missing = raw.Maximum(np.int32(rows) - sizes[0], np.int32(0))
    shape = raw.ConcatV2([raw.ExpandDims(missing, 0), sizes[1:]], 0)
    filler = raw.BroadcastTo(default, shape)
    result: Tensor = raw.ConcatV2([dense[:rows], filler], 0)
    result.set_shape((rows, *dense.dims[1:]))  # type: ignore[index]
    return result


# -- sparse -------------------------------------------------------------------------------------


def from_sparse(st_input: Any, name: str | None, splits_type: Any) -> RaggedTensor:
    """The rows of a SparseTensor of rank 2 whose elements all stand at the left.

    Raises:
        TypeError: if it is no SparseTensor.
        ValueError: if it is not of rank 2.
        InvalidArgumentError: when the graph runs, if a row has gaps or is out of order.
    """
    dtype = dtypes.as_dtype(splits_type)
    if not isinstance(st_input, (SparseTensor, SparseTensorValue)):
        raise TypeError(f"Expected SparseTensor, got {type(st_input).__name__}")
    with scope_or(name, "RaggedFromSparse"):
        sparse = SparseTensor.from_value(st_input)
        rank = (sparse.dense_shape.dims or (None,))[0]
        columns = (sparse.indices.dims or (None, None))[1]
        if rank != 2 and columns != 2:
            raise ValueError("rank(st_input) must be 2")
        rows, places = sparse.indices[:, 0], sparse.indices[:, 1]
        count = cast_to(sparse.dense_shape[0], dtype)
        splits = raw.RaggedRowIdsToSplits(cast_to(rows, dtype), count)
        total = raw.Shape(sparse.values, out_type=dtype)[0]
        expected = raw.Range(np.int64(0), raw.Cast(total, DstT=dtypes.int64), np.int64(1))
        starts = raw.Cast(raw.GatherV2(splits, rows, 0), DstT=dtypes.int64)
        fits = raw.All(raw.Equal(places, raw.Sub(expected, starts)), 0)
        check = raw.Assert(fits, ["SparseTensor is not right-ragged", sparse.indices])
        with default_graph_stack.current().control_dependencies([check]):
            splits = raw.Identity(splits)
        return RaggedTensor(sparse.values, splits, internal=True)


def to_sparse(rt: RaggedTensor, name: str | None) -> SparseTensor:
    """A SparseTensor with each value at its row and its place there."""
    with scope_or(name, "RaggedToSparse"):
        return SparseTensor(
            *raw.RaggedTensorToSparse(list(rt.nested_row_splits), rt.flat_values, name=name)
        )
