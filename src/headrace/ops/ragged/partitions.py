"""Ops on the row partitions of ragged tensors: splits, row numbers, ranges.

A partition of ``n`` values into rows is given by its splits: row ``i`` has the values
``splits[i]:splits[i + 1]``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from jax import numpy as jnp

from headrace.graph.shapes import broadcast_static, compatible_static, merge_static, shape_text
from headrace.graph.tensor import Dims, Operation, Tensor
from headrace.ops.array.dynamic import on_host
from headrace.ops.core import checks
from headrace.ops.core.array_util import both, fail, require_rank, static_int, vector_length
from headrace.ops.core.build import raw
from headrace.ops.core.registry import CHECKS, NotDifferentiable, define_op

Array = np.ndarray[Any, Any]

_PARTITION = NotDifferentiable("it is about rows, not about values")
_INVALID = "The row partition does not form a valid RaggedTensor: "


# -- checks -------------------------------------------------------------------------------------


def _check_splits(xp: Any, row_splits: Any, nvals: Any) -> Any:
    if row_splits.ndim != 1 or not row_splits.shape[0]:
        raise fail(
            f"{_INVALID}row_splits must be a vector with at least one entry, but have shape "
            f"{shape_text(row_splits.shape)}"
        )
    splits = xp.asarray(row_splits)
    first, last = splits[0], splits[-1]
    checks.require(first == 0, f"{_INVALID}row_splits[0] must be 0, but is {{0}}", first)
    if row_splits.shape[0] > 1:
        lengths = splits[1:] - splits[:-1]
        at = xp.argmin(lengths)
        text = f"{_INVALID}row_splits must not decrease, but row {{0}} has the length {{1}}"
        checks.require(lengths[at] >= 0, text, at, lengths[at])
    text = f"{_INVALID}row_splits[-1] must be the number of values, {{1}}, but is {{0}}"
    checks.require(last == nvals, text, last, nvals)
    return row_splits


def _vector_shape(op: Operation) -> list[Dims]:
    require_rank(op.inputs[0], 1, op.op_def.inputs[0].name)
    require_rank(op.inputs[1], op.type == "RaggedSameSplits", op.op_def.inputs[1].name)
    return [op.inputs[0].dims or (None,)]


define_op(
    "RaggedCheckSplits(row_splits: T, nvals: T) -> checked: T",
    attrs="T: index",
    shape=_vector_shape,
    **both(_check_splits),
    gradient=_PARTITION,
    effects=CHECKS,
)


def _same_splits(xp: Any, a: Any, b: Any) -> Any:
    text = "Inputs must have identical ragged splits"
    if a.shape != b.shape:
        raise fail(f"{text}: there are {a.shape[0] - 1} and {b.shape[0] - 1} rows")
    if a.shape[0]:
        x, y = xp.asarray(a), xp.asarray(b)
        at = xp.argmax(x != y)
        text += ", but row_splits[{0}] are {1} and {2}"
        checks.require(xp.all(x == y), text, at, x[at], y[at])
    return a


def _same_shape(op: Operation) -> list[Dims]:
    a, b = op.inputs[0].dims, op.inputs[1].dims
    if not compatible_static(a, b):
        raise ValueError(f"Ragged tensors of {a} and {b} row splits differ in their rows.")
    return [merge_static(a, b)]


define_op(
    "RaggedSameSplits(a: T, b: T) -> checked: T",
    attrs="T: index",
    shape=_same_shape,
    **both(_same_splits),
    gradient=_PARTITION,
    effects=CHECKS,
)


def _check_dense(xp: Any, row_splits: Any, rows: Any, columns: Any) -> Any:
    count = row_splits.shape[0] - 1
    text = "A dense tensor beside a ragged one of {1} rows must have as many, or one, but has {0}"
    checks.require((rows == count) | (rows == 1), text, rows, xp.asarray(count))
    if count > 0:
        even = xp.all(row_splits[1:] - row_splits[:-1] == columns)
        text = "A dense tensor of {0} columns beside a ragged one: its rows are not all so long"
        checks.require((columns == 1) | even, text, columns)
    return row_splits


define_op(
    "RaggedCheckDense(row_splits: T, rows: T, columns: T) -> checked: T",
    attrs="T: index",
    shape=lambda op: [op.inputs[0].dims],
    **both(_check_dense),
    gradient=_PARTITION,
    effects=CHECKS,
)

# -- splits and row numbers ---------------------------------------------------------------------


def _row_ids_shape(op: Operation) -> list[Dims]:
    require_rank(op.inputs[0], 1, "row_splits")
    return [(static_int(op.inputs[1]),)]


def _row_ids(xp: Any, row_splits: Any, nvals: Any) -> Any:
    """The row of each of ``nvals`` values: how many rows end at it or before."""
    count = int(nvals)
    if xp is np:
        ends = np.bincount(np.clip(row_splits[1:], 0, count), minlength=count + 1)
        return np.cumsum(ends[:count], dtype=row_splits.dtype)
    places = np.arange(count, dtype=row_splits.dtype)
    return jnp.searchsorted(row_splits[1:], places, side="right").astype(row_splits.dtype)


define_op(
    "RaggedRowIds(row_splits: T, nvals: T) -> row_ids: T",
    attrs="T: index",
    shape=_row_ids_shape,
    **both(_row_ids),
    gradient=_PARTITION,
    static=(1,),
)


def _splits_shape(op: Operation) -> list[Dims]:
    require_rank(op.inputs[0], 1, "value_rowids")
    require_rank(op.inputs[1], 0, "nrows")
    rows = static_int(op.inputs[1])
    return [(None if rows is None else rows + 1,)]


def _row_splits(xp: Any, value_rowids: Any, nrows: Any) -> Any:
    rows, dtype = int(nrows), value_rowids.dtype
    if rows < 0:
        raise fail(f"Expected nrows >= 0; got {rows}")
    if value_rowids.shape[0]:
        checks.require(
            xp.all(value_rowids[1:] >= value_rowids[:-1]),
            f"{_INVALID}value_rowids must not decrease",
        )
        checks.require_in_range(xp, value_rowids, rows, "value_rowids")
    numbers = np.arange(rows + 1, dtype=dtype)
    return xp.searchsorted(value_rowids, numbers, side="left").astype(dtype)


define_op(
    "RaggedRowIdsToSplits(value_rowids: T, nrows: T) -> row_splits: T",
    attrs="T: index",
    shape=_splits_shape,
    **both(_row_splits),
    gradient=_PARTITION,
    static=(1,),
    effects=CHECKS,
)

# -- ranges -------------------------------------------------------------------------------------


def _range_shape(op: Operation) -> list[Dims]:
    dims: Dims = ()
    for tensor, name in zip(op.inputs, ("starts", "limits", "deltas"), strict=True):
        if tensor.dims is not None and len(tensor.dims) > 1:
            raise ValueError(f"{name} must be a scalar or a vector, not {shape_text(tensor.dims)}.")
        dims = broadcast_static(dims, tensor.dims)
    rows = dims[0] if dims else (1 if dims == () else None)
    return [(None if rows is None else rows + 1,), (None,)]


def _range(starts: Array, limits: Array, deltas: Array, *, Tsplits: Any) -> Any:
    sizes = {x.shape[0] for x in (starts, limits, deltas) if x.ndim}
    if len(sizes) > 1:
        raise fail("starts, limits, and deltas must have the same shape")
    rows = sizes.pop() if sizes else 1
    begin, end, step = (np.broadcast_to(x, (rows,)) for x in (starts, limits, deltas))
    if np.any(step == 0):
        raise fail("Requires delta != 0")
    if starts.dtype.kind in "iu":
        lengths = np.maximum(-((begin - end) // step), 0)
    else:
        wide = [x.astype(np.float64) for x in (begin, end, step)]
        lengths = np.maximum(np.ceil((wide[1] - wide[0]) / wide[2]), 0)
    lengths = lengths.astype(Tsplits.np_dtype)
    splits = np.concatenate([[0], np.cumsum(lengths)]).astype(Tsplits.np_dtype)
    within = np.arange(splits[-1]) - np.repeat(splits[:-1], lengths)
    values = np.repeat(begin, lengths) + within.astype(starts.dtype) * np.repeat(step, lengths)
    return splits, values.astype(starts.dtype)


define_op(
    "RaggedRange(starts: T, limits: T, deltas: T) ->"
    " (rt_nested_splits: Tsplits, rt_dense_values: T)",
    attrs="T: {bfloat16, float32, float64, int32, int64} = int32, Tsplits: index = int64",
    shape=_range_shape,
    **on_host(_range),
    gradient=_PARTITION,
)

# -- to sparse ----------------------------------------------------------------------------------


def _to_sparse_shape(op: Operation) -> list[Dims]:
    rank = op.attrs["RAGGED_RANK"]
    for tensor in op.inputs[:rank]:
        vector_length(tensor)
    dims = op.inputs[-1].dims
    if dims is None:
        return [(None, None), (None,), (None,)]
    count = dims[0] if len(dims) == 1 else None
    return [(count, rank + len(dims)), (count,), (rank + len(dims),)]


def _to_sparse(rt_nested_splits: list[Array], rt_dense_values: Array) -> Any:
    values = rt_dense_values
    inner = np.indices(values.shape).reshape(values.ndim, -1)
    rows, columns, sizes = inner[0], list(inner[1:]), list(values.shape[1:])
    for splits in reversed(rt_nested_splits):
        lengths = np.diff(splits)
        if splits.size < 1 or splits[0] != 0 or np.any(lengths < 0):
            raise fail("First value of ragged splits must be 0 and they must not decrease.")
        ids = np.repeat(np.arange(lengths.size), lengths)
        if rows.size and rows.max() >= ids.size:
            raise fail("The last of ragged splits must be the number of values.")
        own = ids[rows]
        columns.insert(0, rows - splits[own])
        sizes.insert(0, int(lengths.max()) if lengths.size else 0)
        rows = own
    count = rt_nested_splits[0].size - 1
    indices = np.stack([rows, *columns], axis=1).astype(np.int64)
    return indices, values.reshape(-1), np.array([count, *sizes], np.int64)


def _to_sparse_gradient(op: Operation, _: Any, grad: Tensor, __: Any) -> list[Any]:
    rank = op.attrs["RAGGED_RANK"]
    return [*[None] * rank, raw.Reshape(grad, raw.Shape(op.inputs[rank]))]


define_op(
    "RaggedTensorToSparse(rt_nested_splits: RAGGED_RANK * Tsplits, rt_dense_values: T) ->"
    " (sparse_indices: int64, sparse_values: T, sparse_dense_shape: int64)",
    attrs="RAGGED_RANK: int >= 1, T: type, Tsplits: index = int64",
    shape=_to_sparse_shape,
    **on_host(_to_sparse),
    gradient=_to_sparse_gradient,
)
