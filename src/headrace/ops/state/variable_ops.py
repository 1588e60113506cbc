"""Variable ops: handles, reads, assignment, counters and gathers from a variable.

A variable is named by its handle (a ``resource`` tensor). Each read or update is an op of its own;
control edges order them. The public class is ``Variable`` in ``variables``; updates of parts of a
variable are in ``variable_scatter``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from jax import numpy as jnp

from headrace.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    OutOfRangeError,
)
from headrace.graph import dtypes
from headrace.graph.dtypes import DType
from headrace.graph.func_graph import FuncGraph
from headrace.graph.shapes import TensorShape, compatible_static, shape_text
from headrace.graph.tensor import Dims, Operation, Tensor
from headrace.ops.array.indexed_slices import IndexedSlices
from headrace.ops.core import checks, flops
from headrace.ops.core.build import constant, raw
from headrace.ops.core.registry import Effects, define_op, index_check, rows_check
from headrace.ops.core.traits import Traits

READS = Effects(reads=(0,))
WRITES = Effects(writes=(0,))
UPDATES = Effects(reads=(0,), writes=(0,))
CHECKED_READS = Effects(reads=(0,), checks=True)
CHECKED_UPDATES = Effects(reads=(0,), writes=(0,), checks=True)

_INDEX = "Tindices: {int32, int64}"

# -- handles ------------------------------------------------------------------------------------


def assignment_of(op: Operation) -> Operation:
    """The assignment that ``op`` is, or after which it reads, as imported references do."""
    if op.type == "ReadVariableOp":
        return next((c for c in op.control_inputs if c.type == "AssignVariableOp"), op)
    return op


def handle_op(handle: Tensor) -> Operation | None:
    """The op that made a handle, also from inside function bodies; None if not known."""
    op = handle.op
    while not op.op_def.makes_handle:
        if op.type == "Identity":
            op = op.inputs[0].op
        elif isinstance(op.graph, FuncGraph):
            outer = [o for o, inner in op.graph.captures.items() if inner.op is op]
            if not outer:
                return None
            op = outer[0].op
        else:
            return None
    return op


def handle_dims(handle: Tensor) -> Dims:
    """The declared shape of the variable behind a handle; None when not known."""
    op = handle_op(handle)
    return None if op is None or op.op_def.makes_handle != "variable" else _declared(op)


def _declared(op: Operation) -> Dims:
    shape = op.attrs["shape"]
    return None if shape is None else shape.as_tuple


define_op(
    "VarHandleOp() -> resource: resource",
    attrs="container: string = '', shared_name: string = '', debug_name: newer string = '',"
    " dtype: type, shape: shape, allowed_devices: newer list(string) = []",
    makes_handle="variable",
    shape=lambda op: [()],
    gradient=lambda op, grad: [],
    traits=Traits(shared=True),
)

define_op(
    "ReadVariableOp(resource: resource) -> value: dtype",
    attrs="dtype: type",
    shape=lambda op: [handle_dims(op.inputs[0])],
    kernel=lambda value: value,
    interpret=lambda value: value,
    gradient=lambda op, grad: [grad],
    effects=READS,
    traits=Traits(hands_on="value", computes=False),
)


def _is_initialized(context: Any, handle: Any) -> Any:
    return np.bool_(context.store.get(handle) is not None)


define_op(
    "VarIsInitializedOp(resource: resource) -> is_initialized: bool",
    shape=lambda op: [()],
    host=_is_initialized,
    effects=READS,
)


def _destroy(context: Any, handle: Any, *, ignore_lookup_error: bool) -> Any:
    if not context.store.drop(handle) and not ignore_lookup_error:
        raise NotFoundError(
            None, None, f"Resource {handle.container or 'localhost'}/{handle.name} does not exist."
        )
    return ()


define_op(
    "DestroyResourceOp(resource: resource)",
    attrs="ignore_lookup_error: bool = True",
    shape=lambda op: [],
    host=_destroy,
    effects=WRITES,
)

define_op(
    "VariableShape(input: resource) -> output: out_type",
    attrs="out_type: index = int32",
    shape=lambda op: [_rank_only(handle_dims(op.inputs[0]))],
    kernel=lambda value, *, out_type: np.array(value.shape, out_type.np_dtype),
    interpret=lambda value, *, out_type: np.array(value.shape, out_type.np_dtype),
    gradient=lambda op, grad: [None],
    effects=READS,
    shape_only=True,
)


def variable_shape(handle: Tensor, out_type: DType = dtypes.int32) -> Tensor:
    """The shape of a variable: a constant where it is declared, else read as the graph runs."""
    dims = handle_dims(handle)
    if dims is None or None in dims:
        return raw.VariableShape(handle, out_type=out_type)
    return constant(np.array(dims, out_type.np_dtype), name="VariableShape")


def _rank_only(dims: Dims) -> Dims:
    return (None,) if dims is None else (len(dims),)


# -- whole-value updates ------------------------------------------------------------------------


def _first_difference(a: Dims, b: Dims) -> str:
    for i, (x, y) in enumerate(zip(a or (), b or (), strict=False)):
        if len(a or ()) == len(b or ()) and None not in (x, y) and x != y:
            return f" Dimension {i} in both shapes must be equal, but are {x} and {y}."
    return ""


def _assign_shape(op: Operation) -> list[Dims]:
    declared, given = handle_dims(op.inputs[0]), op.inputs[1].dims
    if op.attrs["validate_shape"] and not compatible_static(declared, given):
        raise ValueError(
            f"Cannot assign value to variable '{op.inputs[0].op.name}': Shape mismatch. The "
            f"variable shape {shape_text(declared)}, and the assigned value shape "
            f"{shape_text(given)} are incompatible.{_first_difference(declared, given)}"
        )
    return []


def _assign(_: Any, value: Any, *, _shape: TensorShape | None) -> Any:
    if _shape is not None and not compatible_static(_shape.as_tuple, tuple(value.shape)):
        raise InvalidArgumentError(
            None,
            None,
            "Assign requires shapes of both tensors to match: "
            "Trying to assign to variable with tensor with wrong shape. Expected "
            f"{_shape} got {shape_text(tuple(value.shape))}",
        )
    return value


# `_shape` is set when the shape of the value has to be compared as the step runs: the kernel does
# not see the variable, whose declared shape is an attribute of its handle.
define_op(
    "AssignVariableOp(resource: resource, value: dtype)",
    attrs="dtype: type, validate_shape: newer bool = False, _shape: shape = None",
    shape=_assign_shape,
    kernel=_assign,
    interpret=_assign,
    effects=WRITES,
    traits=Traits(computes=False),
)


def _update_shape(op: Operation) -> list[Dims]:
    declared, given = handle_dims(op.inputs[0]), op.inputs[1].dims
    if not compatible_static(declared, given):
        raise ValueError(_unequal(declared, given))
    return []


def _unequal(variable: Dims, value: Dims) -> str:
    return (
        f"Cannot update variable with shape {shape_text(variable)} using a Tensor with shape "
        f"{shape_text(value)}, shapes must be equal."
    )


def _require_equal(ref: Any, value: Any) -> None:
    if ref.shape != value.shape:
        raise InvalidArgumentError(None, None, _unequal(tuple(ref.shape), tuple(value.shape)))


def _assign_add(ref: Any, value: Any) -> Any:
    _require_equal(ref, value)
    return ref + value


def _assign_sub(ref: Any, value: Any) -> Any:
    _require_equal(ref, value)
    return ref - value


for _name, _kernel in (("AssignAdd", _assign_add), ("AssignSub", _assign_sub)):
    define_op(
        f"{_name}VariableOp(resource: resource, value: dtype)",
        attrs="dtype: type",
        shape=_update_shape,
        kernel=_kernel,
        interpret=_kernel,
        effects=UPDATES,
        traits=Traits(flops=flops.per_update),
    )


def _count_up_to(context: Any, handle: Any, *, limit: int) -> Any:
    with context.store.lock:
        value = context.store.get(handle)
        if value is None:
            raise FailedPreconditionError(
                None, None, f"Attempting to use uninitialized value {handle.name}."
            )
        count = np.asarray(value)
        if count >= limit:
            raise OutOfRangeError(None, None, f"Reached limit of {limit}")
        context.store.put(handle, count + count.dtype.type(1))
        return count


define_op(
    "ResourceCountUpTo(resource: resource) -> output: T",
    attrs="limit: int, T: index",
    shape=lambda op: [()],
    host=_count_up_to,
    effects=UPDATES,
)

# -- reading parts ------------------------------------------------------------------------------


def _gather_shape(op: Operation) -> list[Dims]:
    params, indices, batch = handle_dims(op.inputs[0]), op.inputs[1].dims, op.attrs["batch_dims"]
    if params is not None and len(params) < batch + 1:
        raise ValueError(
            f"Shape must be at least rank {batch + 1} but is rank {len(params)}: the variable "
            "gathered from"
        )
    if params is None or indices is None:
        return [None]
    return [(*indices, *params[batch + 1 :])]


def _gather(xp: Any, params: Any, indices: Any, batch_dims: int) -> Any:
    checks.require_in_range(np if _known(indices) else xp, indices, params.shape[batch_dims])
    if batch_dims == 0:
        return xp.take(params, indices, axis=0, **_SAFE[xp])
    batch = params.shape[:batch_dims]
    size = int(np.prod(batch))
    flat = params.reshape(size * params.shape[batch_dims], *params.shape[batch_dims + 1 :])
    starts = np.arange(size, dtype=np.int64).reshape(batch) * params.shape[batch_dims]
    offsets = starts.reshape(*batch, *[1] * (indices.ndim - batch_dims))
    return xp.take(flat, indices + offsets, axis=0, **_SAFE[xp])


def _known(value: Any) -> bool:
    """Whether a value is known while a program is traced."""
    return isinstance(value, np.ndarray)


#: Out of range raises beforehand; "clip" spares XLA the masking of a fill value.
_SAFE: dict[Any, dict[str, str]] = {np: {}, jnp: {"mode": "clip"}}


def _gather_grad(op: Operation, grad: Tensor) -> list[Any]:

    if op.attrs["batch_dims"]:
        raise ValueError(
            f"ResourceGather '{op.name}' with batch_dims={op.attrs['batch_dims']} has no gradient: "
            "read the variable and use tf.gather(..., batch_dims=...) instead."
        )
    handle, indices = op.inputs
    dense_shape = variable_shape(handle)
    dims = handle_dims(handle)
    if dims is not None and None not in dims[1:]:
        values = raw.Reshape(grad, [-1, *dims[1:]])
    else:
        row = raw.Slice(dense_shape, [1], [-1])
        values = raw.Reshape(grad, raw.ConcatV2([[-1], row], 0))
    return [IndexedSlices(values, raw.Reshape(indices, [-1]), dense_shape), None]


define_op(
    "ResourceGather(resource: resource, indices: Tindices) -> output: dtype",
    attrs=f"batch_dims: int = 0, validate_indices: bool = True, dtype: type, {_INDEX}",
    shape=_gather_shape,
    kernel=lambda params, indices, *, batch_dims: _gather(jnp, params, indices, batch_dims),
    interpret=lambda params, indices, *, batch_dims: _gather(np, params, indices, batch_dims),
    gradient=_gather_grad,
    effects=CHECKED_READS,
    early_check=index_check(1, lambda attrs, dims: dims[0][attrs["batch_dims"]]),  # type: ignore[index]
)


def _gather_nd_shape(op: Operation) -> list[Dims]:
    params, indices = handle_dims(op.inputs[0]), op.inputs[1].dims
    depth = indices[-1] if indices else None
    if params is None or indices is None or depth is None:
        return [None]
    if depth > len(params):
        raise ValueError(
            f"index innermost dimension length must be <= params rank; saw: {depth} vs. "
            f"{len(params)}"
        )
    return [(*indices[:-1], *params[depth:])]


def _gather_nd(xp: Any, params: Any, indices: Any) -> Any:
    depth = indices.shape[-1]
    checks.require_rows_in_range(xp, indices, params.shape, "param shape")
    columns = tuple(indices[..., i] for i in range(depth))
    return params[columns] if depth else xp.broadcast_to(params, indices.shape[:-1] + params.shape)


def _gather_nd_grad(op: Operation, grad: Tensor) -> list[Any]:

    handle, indices = op.inputs
    dense_shape = variable_shape(handle, indices.dtype)
    dims = indices.dims
    if dims is not None and len(dims) == 2 and dims[-1] == 1:
        return [IndexedSlices(grad, raw.Squeeze(indices, squeeze_dims=[-1]), dense_shape), None]
    return [raw.ScatterNd(indices, grad, dense_shape), None]


define_op(
    "ResourceGatherNd(resource: resource, indices: Tindices) -> output: dtype",
    attrs=f"dtype: type, {_INDEX}",
    shape=_gather_nd_shape,
    kernel=lambda params, indices: _gather_nd(jnp, params, indices),
    interpret=lambda params, indices: _gather_nd(np, params, indices),
    gradient=_gather_nd_grad,
    effects=CHECKED_READS,
    early_check=rows_check(1, "param shape"),
)
