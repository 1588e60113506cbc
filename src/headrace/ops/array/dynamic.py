"""Ops whose output shapes depend on data, and choices by condition.

The former run on the host, in NumPy: XLA needs shapes beforehand.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from headrace.graph.shapes import broadcast_static, compatible_static, merge_static, shape_text
from headrace.graph.tensor import Dims, Operation, Tensor
from headrace.ops.array.fill import sum_to_shape
from headrace.ops.core import checks, requirements
from headrace.ops.core.array_util import (
    both,
    fail,
    require_rank,
    shape_tensor,
    static_ints,
    vector_length,
)
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.core.distinct import distinct_integers
from headrace.ops.core.registry import CHECKS, NotDifferentiable, define_op
from headrace.ops.core.traits import COUNTS, Traits

INDEX_RESULT = NotDifferentiable("its result is a matter of positions, not of values")


def on_host(function: Callable[..., Any]) -> dict[str, Any]:
    """``host=`` (for steps) and ``interpret=`` (for constants) from one NumPy function."""
    names = [
        p.name for p in inspect.signature(function).parameters.values() if p.kind is p.KEYWORD_ONLY
    ]
    if not names:
        return {"host": lambda context, *inputs: function(*inputs), "interpret": function}

    def host(context: Any, *inputs: Any, **attrs: Any) -> Any:
        return function(*inputs, **attrs)

    host.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter("context", inspect.Parameter.POSITIONAL_OR_KEYWORD),
            inspect.Parameter("inputs", inspect.Parameter.VAR_POSITIONAL),
            *[inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY) for n in names],
        ]
    )
    return {"host": host, "interpret": function}


# -- where and select ---------------------------------------------------------------------------


def _where_shape(op: Operation) -> list[Dims]:
    dims = op.inputs[0].dims
    return [(None, None if dims is None else len(dims))]


def _where(x: Any) -> Any:
    if x.ndim != 2:
        return np.argwhere(x).astype(np.int64, copy=False)
    # NumPy finds places in a flat array ten times as fast; counts tell their rows.
    places = np.flatnonzero(x)
    rows = np.repeat(np.arange(len(x)), np.count_nonzero(x, axis=1))
    found = np.empty((places.size, 2), np.int64)
    found[:, 0] = rows
    rows *= x.shape[1]
    np.subtract(places, rows, out=found[:, 1])
    return found


define_op(
    "Where(input: T) -> index: int64",
    attrs="T: type = bool",
    shape=_where_shape,
    **on_host(_where),
    gradient=INDEX_RESULT,
    traits=COUNTS,
)


def _select_shape(op: Operation) -> list[Dims]:
    condition, t, e = (x.dims for x in op.inputs)
    if not compatible_static(t, e):
        raise ValueError(
            f"Dimensions of t and e must be equal to select from: {shape_text(t)}, {shape_text(e)}."
        )
    both_dims = merge_static(t, e)
    if condition is None or not condition:
        return [both_dims]
    if both_dims is not None:
        by_rows = len(condition) == 1 and len(both_dims) >= 1
        wanted = both_dims[:1] if by_rows else both_dims
        if not compatible_static(condition, wanted):
            raise ValueError(
                f"The condition of shape {shape_text(condition)} must be a scalar, or a vector "
                f"with one entry per row, or of the shape {shape_text(both_dims)} of the values."
            )
        if not by_rows:
            return [merge_static(both_dims, condition)]
    return [both_dims]


def _select(xp: Any, condition: Any, t: Any, e: Any) -> Any:
    if t.shape != e.shape:
        raise fail(
            f"'then' and 'else' must have the same size, but received: {shape_text(t.shape)} vs. "
            f"{shape_text(e.shape)}"
        )
    if condition.ndim == 1 and t.ndim > 1:
        if condition.shape[0] != t.shape[0]:
            raise fail(
                f"Number of batches of 'then' must match size of 'cond', but saw: {t.shape[0]} vs. "
                f"{condition.shape[0]}"
            )
        condition = condition.reshape((-1, *[1] * (t.ndim - 1)))
    elif condition.ndim and condition.shape != t.shape:
        raise fail(f"condition of shape {shape_text(condition.shape)} for {shape_text(t.shape)}.")
    return xp.where(condition, t, e)


def _select_gradient(op: Operation, grad: Tensor) -> list[Any]:
    condition = op.inputs[0]
    zeros = raw.ZerosLike(grad)
    return [None, raw.Select(condition, grad, zeros), raw.Select(condition, zeros, grad)]


def _select_v2_shape(op: Operation) -> list[Dims]:
    condition, t, e = (x.dims for x in op.inputs)
    return [broadcast_static(condition, broadcast_static(t, e))]


def _select_v2(xp: Any, condition: Any, t: Any, e: Any) -> Any:
    return xp.where(condition, t, e)


def _select_v2_gradient(op: Operation, grad: Tensor) -> list[Any]:
    condition, t, e = op.inputs
    grad = convert_to_tensor(grad)
    zero = raw.ZerosLike(grad)
    parts = raw.SelectV2(condition, grad, zero), raw.SelectV2(condition, zero, grad)
    return [None, sum_to_shape(parts[0], t), sum_to_shape(parts[1], e)]


define_op(
    "Select(condition: bool, t: T, e: T) -> output: T",
    attrs="T: type",
    shape=_select_shape,
    **both(_select),
    gradient=_select_gradient,
    traits=Traits(elements_of=slice(1, 3), light=True),
)
define_op(
    "SelectV2(condition: bool, t: T, e: T) -> output: T",
    attrs="T: type",
    shape=_select_v2_shape,
    **both(_select_v2),
    gradient=_select_v2_gradient,
    traits=Traits(elements_of=slice(1, 3), light=True),
)

# -- unique -------------------------------------------------------------------------------------


def _first_seen(x: Any) -> tuple[Any, Any, Any]:
    """Distinct rows of ``x`` in order of first appearance, each row's number, and the counts."""
    if x.ndim == 1 and x.dtype.kind in "iu":
        found = distinct_integers(x)
        if found is not None:
            return found
    if x.ndim > 1:
        options: dict[str, Any] = {"axis": 0}
    else:
        options = {} if x.dtype == object else {"equal_nan": False}
    values, first, inverse, counts = np.unique(
        x, return_index=True, return_inverse=True, return_counts=True, **options
    )
    order = np.argsort(first, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size)
    return values[order], rank[inverse.reshape(-1)], counts[order]


def _unique_v2_shape(op: Operation) -> list[Dims]:
    dims, axis = op.inputs[0].dims, static_ints(op.inputs[1])
    rows: Dims = (None,)
    counts: Dims = (None,)
    y: Dims = None
    if dims is not None and axis is not None:
        at = axis[0] % len(dims) if axis else 0
        y, rows = (*dims[:at], None, *dims[at + 1 :]), (dims[at],)
    return [y, rows, counts][: len(op.op_def.outputs)]


def _unique_shape(op: Operation) -> list[Dims]:
    require_rank(op.inputs[0], 1, "The input of unique")
    dims: list[Dims] = [(None,), (vector_length(op.inputs[0]),), (None,)]
    return dims[: len(op.op_def.outputs)]


def _unique(x: Any, *, out_idx: Any) -> Any:
    values, index, _ = _first_seen(_one_dimensional(x))
    return values, index.astype(out_idx.np_dtype)


def _unique_with_counts(x: Any, *, out_idx: Any) -> Any:
    values, index, counts = _first_seen(_one_dimensional(x))
    return values, index.astype(out_idx.np_dtype), counts.astype(out_idx.np_dtype)


def _one_dimensional(x: Any) -> Any:
    if x.ndim != 1:
        raise fail(f"unique expects a 1D vector, got shape {shape_text(x.shape)}.")
    return x


def _unique_along(x: Any, axis: Any) -> tuple[Any, Any, Any]:
    places = axis.ravel().tolist()
    if len(places) > 1 or (not places and x.ndim != 1):
        raise fail(f"unique needs one axis for shape {shape_text(x.shape)}, got {places}.")
    at = places[0] if places else 0
    values, index, counts = _first_seen(np.moveaxis(x, at, 0))
    return np.moveaxis(values, 0, at), index, counts


def _unique_v2(x: Any, axis: Any, *, out_idx: Any) -> Any:
    values, index, _ = _unique_along(x, axis)
    return values, index.astype(out_idx.np_dtype)


def _unique_with_counts_v2(x: Any, axis: Any, *, out_idx: Any) -> Any:
    values, index, counts = _unique_along(x, axis)
    return values, index.astype(out_idx.np_dtype), counts.astype(out_idx.np_dtype)


define_op(
    "Unique(x: T) -> (y: T, idx: out_idx)",
    attrs="T: type, out_idx: index = int32",
    shape=_unique_shape,
    **on_host(_unique),
    gradient=INDEX_RESULT,
    traits=COUNTS,
)
define_op(
    "UniqueWithCounts(x: T) -> (y: T, idx: out_idx, count: out_idx)",
    attrs="T: type, out_idx: index = int32",
    shape=_unique_shape,
    **on_host(_unique_with_counts),
    gradient=INDEX_RESULT,
    traits=COUNTS,
)
define_op(
    "UniqueV2(x: T, axis: Taxis) -> (y: T, idx: out_idx)",
    attrs="T: type, Taxis: index = int64, out_idx: index = int32",
    shape=_unique_v2_shape,
    **on_host(_unique_v2),
    gradient=INDEX_RESULT,
    traits=COUNTS,
)
define_op(
    "UniqueWithCountsV2(x: T, axis: Taxis) -> (y: T, idx: out_idx, count: out_idx)",
    attrs="T: type, Taxis: index = int64, out_idx: index = int32",
    shape=_unique_v2_shape,
    **on_host(_unique_with_counts_v2),
    gradient=INDEX_RESULT,
    traits=COUNTS,
)


def _list_diff(x: Any, y: Any, *, out_idx: Any) -> Any:
    kept = ~np.isin(x, y) if x.dtype != object else np.array([v not in set(y) for v in x], bool)
    return x[kept], np.flatnonzero(kept).astype(out_idx.np_dtype)


define_op(
    "ListDiff(x: T, y: T) -> (out: T, idx: out_idx)",
    attrs="T: type, out_idx: index = int32",
    shape=lambda op: [(None,), (None,)],
    requires=[requirements.rank(1, 0, 1)],
    **on_host(_list_diff),
    gradient=INDEX_RESULT,
    traits=COUNTS,
)

# -- partition and stitch -----------------------------------------------------------------------


def _partition_shape(op: Operation) -> list[Dims]:
    data, partitions = op.inputs[0].dims, op.inputs[1].dims
    count = op.attrs["num_partitions"]
    if data is None or partitions is None:
        return [None] * count
    if not compatible_static(data[: len(partitions)], partitions):
        raise ValueError(
            f"data.shape must start with partitions.shape: {shape_text(data)}, "
            f"{shape_text(partitions)}."
        )
    return [(None, *data[len(partitions) :])] * count


def _dynamic_partition(data: Any, partitions: Any, *, num_partitions: int) -> Any:
    if data.shape[: partitions.ndim] != partitions.shape:
        raise fail(
            f"data.shape must start with partitions.shape, got data.shape = "
            f"{shape_text(data.shape)}, partitions.shape = {shape_text(partitions.shape)}"
        )
    checks.require_in_range(np, partitions, num_partitions, "partitions")
    return [data[partitions == i] for i in range(num_partitions)]


def _partition_gradient(op: Operation, *grads: Tensor) -> list[Any]:
    data, partitions = op.inputs
    count = raw.Size(partitions)
    places = raw.Reshape(raw.Range(0, count, 1), shape_tensor(partitions))
    parts = raw.DynamicPartition(places, partitions, num_partitions=op.attrs["num_partitions"])
    merged = raw.DynamicStitch(parts, list(grads))
    return [raw.Reshape(merged, shape_tensor(data)), None]


define_op(
    "DynamicPartition(data: T, partitions: int32) -> outputs: num_partitions * T",
    attrs="num_partitions: int >= 1, T: type",
    shape=_partition_shape,
    **on_host(_dynamic_partition),
    gradient=_partition_gradient,
    traits=COUNTS,
)


def _stitch_shape(op: Operation) -> list[Dims]:
    count = op.attrs["N"]
    rest: Dims = None
    total: int | None = 0
    for index, data in zip(op.inputs[:count], op.inputs[count:], strict=True):
        known = static_ints(index)
        total = None if total is None or known is None else max(total, *[k + 1 for k in known], 0)
        if index.dims is None or data.dims is None:
            continue
        if not compatible_static(data.dims[: len(index.dims)], index.dims):
            raise ValueError(
                f"data of shape {shape_text(data.dims)} must start with the shape of its indices, "
                f"{shape_text(index.dims)}."
            )
        rest = merge_static(rest, data.dims[len(index.dims) :])
    return [None if rest is None else (total, *rest)]


def _dynamic_stitch(indices: list[Any], data: list[Any]) -> Any:
    rest = data[0].shape[indices[0].ndim :]
    size = max((int(i.max()) + 1 for i in indices if i.size), default=0)
    empty = b"" if data[0].dtype == object else 0
    merged = np.full((size, *rest), empty, data[0].dtype)
    for index, part in zip(indices, data, strict=True):
        if part.shape != (*index.shape, *rest):
            raise fail(
                f"data of shape {shape_text(part.shape)} does not fit indices of shape "
                f"{shape_text(index.shape)} and rows of shape {shape_text(rest)}."
            )
        checks.require_in_range(np, index, size)
        merged[index] = part
    return merged


def _stitch_gradient(op: Operation, grad: Tensor) -> list[Any]:
    count = op.attrs["N"]
    return [None] * count + [raw.GatherV2(grad, i, 0) for i in op.inputs[:count]]


for _name in ("DynamicStitch", "ParallelDynamicStitch"):
    define_op(
        f"{_name}(indices: N * int32, data: N * T) -> merged: T",
        attrs="N: int >= 1, T: type",
        shape=_stitch_shape,
        **on_host(_dynamic_stitch),
        gradient=_stitch_gradient,
    )

# -- counting -----------------------------------------------------------------------------------


def _bincount(arr: Any, size: Any, weights: Any) -> Any:
    count = int(size)
    if count < 0:
        raise fail(f"size ({count}) must be non-negative")
    flat = arr.ravel()
    if flat.size and flat.min() < 0:
        raise fail("Input arr must be non-negative!")
    inside = flat < count
    if weights.size == 0:
        return np.bincount(flat[inside], minlength=count).astype(weights.dtype)
    if weights.shape != arr.shape:
        raise fail(f"weights {shape_text(weights.shape)} must fit arr {shape_text(arr.shape)}.")
    result = np.zeros(count, weights.dtype)
    np.add.at(result, flat[inside], weights.ravel()[inside])
    return result


define_op(
    "Bincount(arr: int32, size: int32, weights: T) -> bins: T",
    attrs="T: {int32, int64, float32, float64}",
    shape=lambda op: [static_ints(op.inputs[1]) or (None,)],
    **on_host(_bincount),
    gradient=INDEX_RESULT,
)


def _unravel_shape(op: Operation) -> list[Dims]:
    indices, rank = op.inputs[0].dims, vector_length(op.inputs[1])
    if indices is None:
        return [None]
    if len(indices) > 1:
        raise ValueError(f"indices must be a scalar or a vector, got {shape_text(indices)}.")
    return [(rank, *indices)]


def _unravel_index(xp: Any, indices: Any, dims: Any) -> Any:
    checks.require_in_range(xp, indices, dims.prod())
    rows = []
    for i in range(dims.shape[0]):
        rows.append(indices // dims[i + 1 :].prod().astype(indices.dtype) % dims[i])
    return xp.stack(rows).astype(indices.dtype)


define_op(
    "UnravelIndex(indices: Tidx, dims: Tidx) -> output: Tidx",
    attrs="Tidx: index = int32",
    shape=_unravel_shape,
    **both(_unravel_index),
    gradient=INDEX_RESULT,
    effects=CHECKS,
)
