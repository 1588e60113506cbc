"""Gathering and scattering: Gather, GatherNd, ScatterNd, updates, bounds in sorted rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from headrace.graph.shapes import compatible_static, shape_text
from headrace.graph.tensor import Dims, Operation, Tensor
from headrace.ops.array.indexed_slices import IndexedSlices
from headrace.ops.core import checks
from headrace.ops.core.array_util import (
    both,
    checked_axis,
    fail,
    fully_known,
    int_const,
    is_half,
    shape_tensor,
    static_int,
    vector_length,
)
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.core.distinct import distinct_integers, summed_rows
from headrace.ops.core.registry import (
    CHECKS,
    EarlyCheck,
    NotDifferentiable,
    define_op,
    index_check,
    whole_shape,
)
from headrace.ops.core.static import static_shape
from headrace.ops.core.traits import Traits

# -- Gather -------------------------------------------------------------------------------------


def _gather_shape(op: Operation) -> list[Dims]:
    return [gathered_dims(op.inputs[0].dims, op.inputs[1].dims, 0, 0)]


def _gather_v2_shape(op: Operation) -> list[Dims]:
    params, indices, axis = op.inputs
    at = static_int(axis)
    if at is None:
        return [None]
    return [gathered_dims(params.dims, indices.dims, at, op.attrs["batch_dims"])]


def gathered_dims(params: Dims, indices: Dims, axis: int, batch_dims: int) -> Dims:
    """The static shape of gather.

    Raises:
        ValueError: if axis or batch_dims do not fit.
    """
    if params is None or indices is None:
        return None
    if not params:
        raise ValueError("Shape must be at least rank 1 but is rank 0: params of gather.")
    at, batch = _places(len(params), len(indices), axis, batch_dims)
    if not compatible_static(params[:batch], indices[:batch]):
        raise ValueError(
            f"The first {batch} (batch) dimensions of params {shape_text(params)} and indices "
            f"{shape_text(indices)} differ."
        )
    return (*params[:at], *indices[batch:], *params[at + 1 :])


def _places(params_rank: int, indices_rank: int, axis: int, batch_dims: int) -> tuple[int, int]:
    at = checked_axis(axis, params_rank)
    batch = batch_dims + indices_rank if batch_dims < 0 else batch_dims
    if not 0 <= batch <= min(at, indices_rank):
        raise ValueError(
            f"batch_dims ({batch_dims}) must be at most the axis ({at}) and the rank of indices "
            f"({indices_rank})."
        )
    return at, batch


def _gather_v2(
    xp: Any, params: Any, indices: Any, axis: Any, *, batch_dims: int, check: bool = True
) -> Any:
    at, batch = _places(params.ndim, indices.ndim, int(np.ravel(axis)[0]), batch_dims)
    if check:
        checks.require_in_range(xp, indices, params.shape[at])
    if batch:
        return _batch_gather(xp, params, indices, at, batch)
    if params.shape[at] == 0:  # nothing to take, and nothing is asked for
        return xp.zeros((*params.shape[:at], *indices.shape, *params.shape[at + 1 :]), params.dtype)
    if xp is np:
        return np.take(params, indices, at)
    return jnp.take(params, indices, at, mode="clip")


def _batch_gather(xp: Any, params: Any, indices: Any, at: int, batch: int) -> Any:
    lead, between, rest = params.shape[:batch], params.shape[batch:at], params.shape[at + 1 :]
    count, inner = int(np.prod(lead, dtype=int)), indices.shape[batch:]
    if params.shape[at] == 0:
        return xp.zeros((*lead, *between, *inner, *rest), params.dtype)
    width = int(np.prod((*between, *rest), dtype=int))
    rows = xp.moveaxis(params, at, batch).reshape((count, params.shape[at], width))
    flat = indices.reshape((count, int(np.prod(inner, dtype=int))))
    taken = rows[np.arange(count)[:, None], flat].reshape((*lead, *inner, *between, *rest))
    sources = list(range(batch, batch + len(inner)))
    return xp.moveaxis(taken, sources, [s + len(between) for s in sources])


def _gather(xp: Any, params: Any, indices: Any) -> Any:
    return _gather_v2(xp, params, indices, np.int32(0), batch_dims=0)


def _test_axis(shape: tuple[int, ...], attrs: dict[str, Any], indices: Any, axis: Any) -> None:
    at = int(np.ravel(axis)[0])
    if -len(shape) <= at < len(shape):  # else the kernel tells
        checks.require_in_range(np, indices, shape[at])


def _rows_gradient(params: Tensor, indices: Tensor, grad: Any) -> IndexedSlices:
    """The gradient of a gather of rows: the rows, not a whole tensor."""
    dims = params.dims
    grad = convert_to_tensor(grad)
    flat = indices.dims is not None and len(indices.dims) == 1
    shape = shape_tensor(params)
    if not flat:
        indices_flat = raw.Reshape(indices, int_const([-1]))
        if dims is not None and fully_known(dims[1:]):
            sizes: Tensor = int_const([-1, *dims[1:]])
            if 0 in dims[1:]:
                sizes = raw.ConcatV2([raw.Shape(indices_flat), int_const(dims[1:])], 0)
        else:
            rest = raw.StridedSlice(shape, [1], [0], [1], end_mask=1)
            sizes = raw.ConcatV2([raw.Shape(indices_flat), rest], 0)
        return IndexedSlices(raw.Reshape(grad, sizes), indices_flat, shape)
    return IndexedSlices(grad, indices, shape)


def _gather_v2_gradient(op: Operation, grad: Any) -> list[Any]:
    params, indices, axis = op.inputs
    batch = op.attrs["batch_dims"]
    if static_int(axis) == 0 and batch == 0:
        return [_rows_gradient(params, indices, grad), None, None]
    dense = raw.GatherGrad(shape_tensor(params), indices, axis, grad, batch_dims=batch)
    return [dense, None, None]


def _gather_grad(shape: Any, indices: Any, axis: Any, dy: Any, *, batch_dims: int) -> Any:
    if is_half(dy):
        wide = dy.astype(np.float32)
        return _gather_grad(shape, indices, axis, wide, batch_dims=batch_dims).astype(dy.dtype)
    at, batch = _places(len(shape), indices.ndim, int(np.ravel(axis)[0]), batch_dims)
    if batch == 0:
        # Rows are added as wholes: element by element 2048 columns of 2048 took ten times as long.
        rank = indices.ndim
        rows = jnp.moveaxis(jnp.asarray(dy), range(at, at + rank), range(rank))
        dims = tuple(shape.tolist())
        zeros = jnp.zeros((dims[at], *dims[:at], *dims[at + 1 :]), dy.dtype)
        return jnp.moveaxis(zeros.at[indices].add(rows, mode="clip"), 0, at)

    def forward(params: Any) -> Any:
        return _gather_v2(jnp, params, indices, axis, batch_dims=batch_dims, check=False)

    return jax.vjp(forward, jnp.zeros(tuple(shape.tolist()), dy.dtype))[1](jnp.asarray(dy))[0]


define_op(
    "Gather(params: Tparams, indices: Tindices) -> output: Tparams",
    attrs="validate_indices: bool = True, Tparams: type, Tindices: index",
    shape=_gather_shape,
    **both(_gather),
    gradient=lambda op, grad: [_rows_gradient(op.inputs[0], op.inputs[1], grad), None],
    effects=CHECKS,
    early_check=index_check(1, lambda attrs, dims: dims[0][0]),  # type: ignore[index]
)
define_op(
    "GatherV2(params: Tparams, indices: Tindices, axis: Taxis) -> output: Tparams",
    attrs="batch_dims: int = 0, Tparams: type, Tindices: {int16, int32, int64}, Taxis: index",
    shape=_gather_v2_shape,
    kernel=lambda params, indices, axis, *, batch_dims: _gather_v2(
        jnp, params, indices, axis, batch_dims=batch_dims
    ),
    interpret=lambda params, indices, axis, *, batch_dims: _gather_v2(
        np, params, indices, axis, batch_dims=batch_dims
    ),
    gradient=_gather_v2_gradient,
    static=(2,),
    effects=CHECKS,
    early_check=EarlyCheck((1, 2), whole_shape, _test_axis),
)
# Not an op of TensorFlow, whose gradient for other axes than 0 is a chain of seven.
define_op(
    "GatherGrad(shape: int32, indices: Tindices, axis: Taxis, dy: T) -> output: T",
    attrs="batch_dims: int = 0, T: inexact, Tindices: {int16, int32, int64}, Taxis: index",
    shape=lambda op: [static_shape(op.inputs[0])],
    kernel=_gather_grad,
    gradient=lambda op, grad: [
        None,
        None,
        None,
        raw.GatherV2(grad, op.inputs[1], op.inputs[2], batch_dims=op.attrs["batch_dims"]),
    ],
    static=(0, 2),
)

# -- GatherNd and the scatters ------------------------------------------------------------------


def _depth(indices: Any) -> int:
    if indices.ndim == 0:
        raise fail("indices must be at least a vector.")
    return int(indices.shape[-1])


def _columns(xp: Any, indices: Any, shape: tuple[int, ...], target: str) -> tuple[Any, ...]:
    """The index arrays of ``[..., depth]`` indices, checked against ``shape`` of ``target``."""
    depth = _depth(indices)
    if depth > len(shape):
        raise fail(
            "index innermost dimension length must be <= params rank; "
            f"saw: {depth} vs. {len(shape)}"
        )
    checks.require_rows_in_range(xp, indices, shape, target)
    return tuple(indices[..., i] for i in range(depth))


def _gather_nd_shape(op: Operation) -> list[Dims]:
    params, indices = op.inputs[0].dims, op.inputs[1].dims
    if params is None or indices is None:
        return [None]
    if not indices:
        raise ValueError("indices of gather_nd must be at least a vector.")
    depth = indices[-1]
    if depth is None:
        return [None]
    if depth > len(params):
        raise ValueError(
            f"indices.shape[-1] must be <= params.rank, but saw indices shape: "
            f"{shape_text(indices)}, params shape: {shape_text(params)}"
        )
    return [(*indices[:-1], *params[depth:])]


def _gather_nd(xp: Any, params: Any, indices: Any) -> Any:
    columns = _columns(xp, indices, params.shape, "param shape")
    outer = indices.shape[:-1]
    if not columns:
        return xp.broadcast_to(params, (*outer, *params.shape))
    rest = params.shape[len(columns) :]
    if 0 in params.shape:
        return xp.zeros((*outer, *rest), params.dtype)
    if xp is np:
        # ``...`` keeps a single element of object type an array.
        return np.asarray(params[(*columns, ...)])
    return (
        params.at[columns].get(mode="clip")
        if hasattr(params, "at")
        else jnp.asarray(params)[columns]
    )


def _gather_nd_gradient(op: Operation, grad: Tensor) -> list[Any]:
    params, indices = op.inputs
    dims = indices.dims
    if dims is not None and len(dims) == 2 and dims[1] == 1:
        rows = raw.Squeeze(indices, squeeze_dims=[1])
        return [IndexedSlices(grad, rows, shape_tensor(params, indices.dtype)), None]
    return [raw.ScatterNd(indices, grad, shape_tensor(params, indices.dtype)), None]


define_op(
    "GatherNd(params: Tparams, indices: Tindices) -> output: Tparams",
    attrs='Tparams: type, Tindices: {int16, int32, int64}, bad_indices_policy: newer string = ""',
    shape=_gather_nd_shape,
    **both(_gather_nd),
    gradient=_gather_nd_gradient,
    effects=CHECKS,
    traits=Traits(numpy_calls=2),
)


def _check_updates(indices: Dims, updates: Dims, shape: Dims) -> None:
    """Raise ValueError if the static shapes of a scatter contradict one another."""
    if indices is None or updates is None or shape is None:
        return
    depth = indices[-1] if indices else 0
    if depth is None:
        return
    if depth > len(shape):
        raise ValueError(
            f"The innermost dimension of indices {shape_text(indices)} is greater than the rank of "
            f"the result {shape_text(shape)}."
        )
    wanted = (*indices[:-1], *shape[depth:])
    if not compatible_static(wanted, updates):
        raise ValueError(
            f"Dimensions of updates {shape_text(updates)} must be {shape_text(wanted)}: indices "
            f"have shape {shape_text(indices)}, the result {shape_text(shape)}."
        )


def _scatter_nd_shape(op: Operation) -> list[Dims]:
    indices, updates, shape = op.inputs
    vector_length(shape)
    wanted = static_shape(shape)
    _check_updates(indices.dims, updates.dims, wanted)
    return [wanted]


def _tensor_scatter_shape(op: Operation) -> list[Dims]:
    tensor, indices, updates = op.inputs
    _check_updates(indices.dims, updates.dims, tensor.dims)
    return [tensor.dims]


def _scattered(xp: Any, base: Any, indices: Any, updates: Any, how: str) -> Any:
    """``base`` with ``updates`` set, added or subtracted at ``indices``."""
    columns = _columns(xp, indices, base.shape, "shape")
    wanted = (*indices.shape[:-1], *base.shape[len(columns) :])
    if tuple(updates.shape) != wanted:
        raise fail(
            f"updates have shape {shape_text(updates.shape)}; indices {shape_text(indices.shape)} "
            f"and a result of shape {shape_text(base.shape)} need {shape_text(wanted)}."
        )
    if updates.size == 0 or base.size == 0:
        return base
    if not columns:
        columns, base_whole = (xp.zeros(indices.shape[:-1], int),), base[None]
        return _scattered_at(xp, base_whole, columns, updates, how)[0]
    return _scattered_at(xp, base, columns, updates, how)


def _scattered_at(xp: Any, base: Any, columns: Any, updates: Any, how: str) -> Any:
    if how in ("add", "sub") and is_half(updates):
        wide = base.astype(np.float32), columns, updates.astype(np.float32)
        return _scattered_at(xp, *wide, how).astype(base.dtype)
    if xp is np:
        result = base.copy()
        if how == "set":
            result[columns] = updates
        elif not _combine_rows(_NUMPY_UPDATES[how], result, columns, updates):
            _NUMPY_UPDATES[how].at(result, columns, updates)
        return result
    place = jnp.asarray(base).at[columns]
    update: Callable[..., Any] = getattr(place, "add" if how == "sub" else how)
    return update(-updates if how == "sub" else updates, mode="clip" if base.size else None)


#: Of fewer elements `ufunc.at` makes an end sooner.
_MANY_ELEMENTS = 1 << 10


def _combine_rows(ufunc: np.ufunc, result: Any, columns: Any, updates: Any) -> bool:
    """Change whole rows of ``result``, each at once; False if that is not quicker than `at`."""
    if len(columns) > 1 or result.ndim < 2 or updates.size < _MANY_ELEMENTS:
        return False
    found = distinct_integers(columns[0].reshape(-1))
    if found is None:
        return False
    # Distinct values come in the order in which they occur: without doubles it is that of the rows.
    rows, changed = updates.reshape(-1, *result.shape[1:]), found.values
    if len(changed) < len(rows):
        if ufunc not in (np.add, np.subtract):
            return False
        rows = summed_rows(rows, found.places, len(changed))
    result[changed] = ufunc(result[changed], rows)
    return True


_NUMPY_UPDATES: dict[str, np.ufunc] = {
    "add": np.add,
    "sub": np.subtract,
    "min": np.minimum,
    "max": np.maximum,
}


def _scatter_nd(xp: Any, indices: Any, updates: Any, shape: Any) -> Any:
    sizes = tuple(shape.tolist())
    if updates.dtype == object:
        base = np.full(sizes, b"", object)
        return _scattered(np, base, indices, updates, "set")
    base = xp.zeros(sizes, updates.dtype)
    if updates.dtype == bool:
        return _scattered(xp, base, indices, updates, "max")
    return _scattered(xp, base, indices, updates, "add")


define_op(
    "ScatterNd(indices: Tindices, updates: T, shape: Tindices) -> output: T",
    attrs='T: type, Tindices: {int16, int32, int64}, bad_indices_policy: newer string = ""',
    shape=_scatter_nd_shape,
    **both(_scatter_nd),
    gradient=lambda op, grad: [None, raw.GatherNd(grad, op.inputs[0]), None],
    static=(2,),
    effects=CHECKS,
    traits=Traits(numpy_calls=8),
)


def _update_gradient(op: Operation, grad: Tensor) -> list[Any]:
    indices, updates = op.inputs[1:]
    hole = raw.TensorScatterUpdate(grad, indices, raw.ZerosLike(updates))
    return [hole, None, raw.GatherNd(grad, indices)]


def _add_gradient(op: Operation, grad: Tensor) -> list[Any]:
    return [grad, None, raw.GatherNd(grad, op.inputs[1])]


def _sub_gradient(op: Operation, grad: Tensor) -> list[Any]:
    return [grad, None, raw.Neg(raw.GatherNd(grad, op.inputs[1]))]


def _define_tensor_scatter(signature: str, how: str, gradient: Any) -> None:
    def scatter(xp: Any, tensor: Any, indices: Any, updates: Any) -> Any:
        return _scattered(xp, tensor, indices, updates, how)

    define_op(
        signature,
        attrs='T: type, Tindices: index, bad_indices_policy: newer string = ""',
        shape=_tensor_scatter_shape,
        **both(scatter),
        gradient=gradient,
        effects=CHECKS,
    )


_TENSOR_ARGS = "(tensor: T, indices: Tindices, updates: T) -> output: T"
_define_tensor_scatter(f"TensorScatterUpdate{_TENSOR_ARGS}", "set", _update_gradient)
_define_tensor_scatter(f"TensorScatterAdd{_TENSOR_ARGS}", "add", _add_gradient)
_define_tensor_scatter(f"TensorScatterSub{_TENSOR_ARGS}", "sub", _sub_gradient)
_define_tensor_scatter(f"TensorScatterMin{_TENSOR_ARGS}", "min", None)
_define_tensor_scatter(f"TensorScatterMax{_TENSOR_ARGS}", "max", None)
_define_tensor_scatter(
    "ScatterNdNonAliasingAdd(input: T, indices: Tindices, updates: T) -> output: T",
    "add",
    _add_gradient,
)

# -- bounds in sorted rows ----------------------------------------------------------------------


def _bound_shape(op: Operation) -> list[Dims]:
    rows, values = op.inputs[0].dims, op.inputs[1].dims
    for dims in (rows, values):
        if dims is not None and len(dims) != 2:
            raise ValueError(f"Shape must be rank 2 but is rank {len(dims)}: {shape_text(dims)}.")
    if rows is not None and values is not None and not compatible_static(rows[:1], values[:1]):
        raise ValueError(f"Different numbers of rows: {shape_text(rows)}, {shape_text(values)}.")
    return [values]


def _bound(side: str) -> Any:
    def bound(xp: Any, sorted_inputs: Any, values: Any, *, out_type: Any) -> Any:
        kind = out_type.np_dtype
        if xp is np:
            rows = [np.searchsorted(r, v, side) for r, v in zip(sorted_inputs, values, strict=True)]  # type: ignore[call-overload]
            return np.asarray(rows, kind).reshape(values.shape)
        search = jax.vmap(lambda row, v: jnp.searchsorted(row, v, side=side))
        return search(jnp.asarray(sorted_inputs), jnp.asarray(values)).astype(kind)  # type: ignore[no-untyped-call]

    return bound


for _name, _side in (("LowerBound", "left"), ("UpperBound", "right")):
    define_op(
        f"{_name}(sorted_inputs: T, values: T) -> output: out_type",
        attrs="T: type, out_type: index = int32",
        shape=_bound_shape,
        **both(_bound(_side)),
        gradient=NotDifferentiable("its values are integers"),
    )
