"""What operations of our own consist of: arithmetic, gathering, ragged rows, sparse updates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace.graph.graph import get_default_graph
from headrace.graph.tensor import Operation, Tensor
from headrace.graph_files.export_graph import lowers, scalar_like
from headrace.ops.core.build import constant, raw


def _int(*values: int) -> Tensor:
    return constant(np.array(values, np.int32))


def _last() -> Tensor:
    return constant(np.int32(-1))


@lowers("SumLike")
def _sum_like(op: Operation, inputs: Sequence[Tensor]) -> list[Any]:
    x, like = inputs
    shape = raw.Shape(like)
    _, axes = raw.BroadcastGradientArgs(raw.Shape(x), shape)
    return [raw.Reshape(raw.Sum(x, axes), shape)]


@lowers("SoftmaxGrad")
def _softmax_grad(op: Operation, inputs: Sequence[Tensor]) -> list[Any]:
    grad, softmax = inputs
    inner = raw.Sum(raw.Mul(grad, softmax), _last(), keep_dims=True)
    return [raw.Mul(raw.Sub(grad, inner), softmax)]


@lowers("LogSoftmaxGrad")
def _log_softmax_grad(op: Operation, inputs: Sequence[Tensor]) -> list[Any]:
    grad, softmax = inputs
    return [raw.Sub(grad, raw.Mul(raw.Sum(grad, _last(), keep_dims=True), softmax))]


@lowers("FiniteOrZero")
def _finite_or_zero(op: Operation, inputs: Sequence[Tensor]) -> list[Any]:
    (x,) = inputs
    return [raw.Select(raw.IsFinite(x), x, raw.ZerosLike(x))]


@lowers("SliceGrad")
def _slice_grad(op: Operation, inputs: Sequence[Tensor]) -> list[Any]:
    shape, begin, dy = inputs
    taken = raw.Shape(dy, out_type=shape.dtype)
    after = raw.Sub(raw.Sub(shape, begin), taken)
    return [raw.Pad(dy, raw.Pack([begin, after], axis=1))]


@lowers("GatherGrad")
def _gather_grad(op: Operation, inputs: Sequence[Tensor]) -> list[Any]:
    """Sums of the rows that were taken from the same place, with all axes but that one in front."""
    shape, indices, axis, dy = inputs
    batch = op.attrs["batch_dims"]
    if axis.dtype.name == "int64":
        axis = raw.Cast(axis, DstT=shape.dtype)
    axis = raw.FloorMod(axis, raw.Size(shape))
    at = raw.ExpandDims(axis, _int(0))
    one, all_axes = _int(1), raw.ExpandDims(raw.Size(shape), _int(0))
    before = raw.StridedSlice(shape, _int(0), _int(batch), one)
    outer = raw.StridedSlice(shape, _int(batch), at, one)
    size = raw.StridedSlice(shape, at, raw.Add(at, one), one)
    inner = raw.StridedSlice(shape, raw.Add(at, one), all_axes, one)
    batches, outers, inners = (
        raw.Prod(part, _int(0), keep_dims=True) for part in (before, outer, inner)
    )
    taken = raw.StridedSlice(raw.Shape(indices), _int(batch), _int(0), one, end_mask=1)
    count = raw.Prod(taken, _int(0), keep_dims=True)
    rows = raw.Reshape(dy, raw.ConcatV2([batches, outers, count, inners], constant(np.int32(0))))
    rows = raw.Transpose(rows, _int(0, 2, 1, 3))
    rows = raw.Reshape(
        rows, raw.ConcatV2([raw.Mul(batches, count), outers, inners], constant(np.int32(0)))
    )
    if indices.dtype.name != "int32":
        indices = raw.Cast(indices, DstT=shape.dtype)
    starts = raw.Mul(raw.Range(_zero(), raw.Squeeze(batches), _one()), raw.Squeeze(size))
    ids = raw.Reshape(indices, raw.ConcatV2([batches, count], constant(np.int32(0))))
    ids = raw.Reshape(raw.Add(ids, raw.ExpandDims(starts, _int(1))), _int(-1))
    sums = raw.UnsortedSegmentSum(rows, ids, raw.Squeeze(raw.Mul(batches, size)))
    sums = raw.Reshape(sums, raw.ConcatV2([batches, size, outers, inners], constant(np.int32(0))))
    return [raw.Reshape(raw.Transpose(sums, _int(0, 2, 1, 3)), shape)]


def _zero() -> Tensor:
    return constant(np.int32(0))


def _one() -> Tensor:
    return constant(np.int32(1))


# -- sparse updates -----------------------------------------------------------------------------


@lowers("ResourceSparseApplyAdam")
def _sparse_adam(op: Operation, inputs: Sequence[Tensor]) -> list[Any]:
    var, m, v, beta1_power, beta2_power, lr, beta1, beta2, epsilon, grad, indices = inputs
    graph, dtype = get_default_graph(), grad.dtype
    one = scalar_like(1, lr)
    moments = []
    indices, places = raw.Unique(indices)
    grad = raw.UnsortedSegmentSum(grad, places, raw.Size(indices))
    for state, beta, rows in ((m, beta1, grad), (v, beta2, raw.Mul(grad, grad))):
        old = raw.ReadVariableOp(state, dtype=dtype)
        decayed = raw.AssignVariableOp(state, raw.Mul(old, beta))
        with graph.control_dependencies([decayed]):
            added = raw.ResourceScatterAdd(
                state, indices, raw.Mul(rows, raw.Sub(one, beta)), dtype=dtype
            )
        with graph.control_dependencies([added]):
            moments.append(raw.ReadVariableOp(state, dtype=dtype))
    step = raw.Mul(lr, raw.Div(raw.Sqrt(raw.Sub(one, beta2_power)), raw.Sub(one, beta1_power)))
    change = raw.Div(raw.Mul(step, moments[0]), raw.Add(raw.Sqrt(moments[1]), epsilon))
    raw.AssignSubVariableOp(var, change)
    return []


# -- ragged rows --------------------------------------------------------------------------------


def _asserted(value: Tensor, condition: Any, message: str) -> list[Any]:
    graph = get_default_graph()
    check = raw.Assert(condition, [constant(message), value])
    with graph.control_dependencies([check]):
        return [raw.Identity(value)]


def _all(condition: Any) -> Any:
    return raw.All(condition, _int(0))


def _ends(row_splits: Tensor) -> tuple[Any, Any]:
    """The starts of rows and their ends."""
    starts = raw.StridedSlice(row_splits, _int(0), _int(-1), _int(1))
    return starts, raw.StridedSlice(row_splits, _int(1), _int(0), _int(1), end_mask=1)


@lowers("RaggedCheckSplits")
def _check_splits(op: Operation, inputs: Sequence[Tensor]) -> list[Any]:
    splits, values = inputs
    starts, ends = _ends(splits)
    first = raw.StridedSlice(splits, _int(0), _int(1), _int(1), shrink_axis_mask=1)
    last = raw.StridedSlice(splits, _int(-1), _int(0), _int(1), end_mask=1, shrink_axis_mask=1)
    ordered = _all(raw.LessEqual(starts, ends))
    begins = raw.Equal(first, scalar_like(0, splits))
    fits = raw.LogicalAnd(begins, raw.Equal(last, values))
    return _asserted(
        splits,
        raw.LogicalAnd(ordered, fits),
        "Arguments do not form a valid RaggedTensor: row_splits must begin with 0, not decrease, "
        "and end with the number of values.",
    )


@lowers("RaggedSameSplits")
def _same_splits(op: Operation, inputs: Sequence[Tensor]) -> list[Any]:
    a, b = inputs
    return _asserted(a, _all(raw.Equal(a, b)), "Inputs must have identical ragged splits")


@lowers("RaggedCheckDense")
def _check_dense(op: Operation, inputs: Sequence[Tensor]) -> list[Any]:
    splits, rows, columns = inputs
    starts, ends = _ends(splits)
    count = raw.Sub(raw.Size(splits, out_type=splits.dtype), scalar_like(1, splits))
    one = scalar_like(1, splits)
    tall = raw.LogicalOr(raw.Equal(rows, count), raw.Equal(rows, one))
    even = _all(raw.Equal(raw.Sub(ends, starts), columns))
    wide = raw.LogicalOr(raw.Equal(columns, one), even)
    return _asserted(
        splits,
        raw.LogicalAnd(tall, wide),
        "A dense tensor beside a ragged one must have its rows and columns",
    )


@lowers("RaggedRowIds")
def _row_ids(op: Operation, inputs: Sequence[Tensor]) -> list[Any]:
    splits, count = inputs
    _, ends = _ends(splits)
    return [_positions("UpperBound", ends, count)]


@lowers("RaggedRowIdsToSplits")
def _row_splits(op: Operation, inputs: Sequence[Tensor]) -> list[Any]:
    ids, rows = inputs
    return [_positions("LowerBound", ids, raw.Add(rows, scalar_like(1, rows)))]


def _positions(bound: str, ordered: Tensor, count: Tensor) -> Any:
    """Where each number below ``count`` belongs among the ``ordered`` ones."""
    numbers = raw.Range(scalar_like(0, ordered), count, scalar_like(1, ordered))
    axis = _int(0)
    found = getattr(raw, bound)(
        raw.ExpandDims(ordered, axis), raw.ExpandDims(numbers, axis), out_type=ordered.dtype
    )
    return raw.Reshape(found, _int(-1))


__all__: list[str] = []
