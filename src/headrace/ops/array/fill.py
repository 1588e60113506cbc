"""Array ops that fill and broadcast, and the one that reads bits as another type."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from headrace.graph.shapes import shape_text
from headrace.graph.tensor import Dims, Operation, Tensor
from headrace.ops.core import checks
from headrace.ops.core.array_util import (
    both,
    fail,
    fully_known,
    int_const,
    like_first,
    static_ints,
    vector_length,
)
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.core.registry import CHECKS, NotDifferentiable, define_op
from headrace.ops.core.static import static_shape
from headrace.ops.core.traits import ELEMENTWISE, Traits

# -- filling and broadcasting -------------------------------------------------------------------


def _checked_sizes(dims: Any, what: str) -> tuple[int, ...]:
    sizes = dims.tolist()
    if not isinstance(sizes, list):
        raise fail(f"{what} must be a vector, got the scalar {sizes}.")
    if min(sizes, default=0) < 0:
        raise fail(f"{what} must have no negative size, got {sizes}.")
    return tuple(sizes)


def _fill_shape(op: Operation) -> list[Dims]:
    value = op.inputs[1].dims
    if value:
        raise ValueError(f"The value to fill with must be a scalar, got shape {shape_text(value)}.")
    vector_length(op.inputs[0])
    known = static_ints(op.inputs[0])
    if known is not None and min(known, default=0) < 0:
        raise ValueError(f"dims must have no negative size, got {list(known)}.")
    return [static_shape(op.inputs[0])]


def _fill(dims: Any, value: Any) -> Any:
    return jnp.broadcast_to(value, _checked_sizes(dims, "dims"))


def _fill_np(dims: Any, value: Any) -> Any:
    return np.full(_checked_sizes(dims, "dims"), value, value.dtype)


define_op(
    "Fill(dims: index_type, value: T) -> output: T",
    attrs="T: type, index_type: index = int32",
    shape=_fill_shape,
    kernel=_fill,
    interpret=_fill_np,
    gradient=lambda op, grad: [None, raw.Sum(grad, raw.Range(0, raw.Rank(grad), 1))],
    static=(0,),
)


def _zeros_np(x: Any) -> Any:
    return np.full(x.shape, b"", object) if x.dtype == object else np.zeros_like(x)


define_op(
    "ZerosLike(x: T) -> y: T",
    attrs="T: type",
    shape=like_first,
    kernel=jnp.zeros_like,
    interpret=_zeros_np,
    gradient=NotDifferentiable("it depends on shapes only"),
    traits=ELEMENTWISE,
)
define_op(
    "OnesLike(x: T) -> y: T",
    attrs="T: type",
    shape=like_first,
    kernel=jnp.ones_like,
    interpret=lambda x: np.ones_like(x),
    gradient=NotDifferentiable("it depends on shapes only"),
    traits=ELEMENTWISE,
)


def _broadcast_to_shape(op: Operation) -> list[Dims]:
    vector_length(op.inputs[1])
    wanted, dims = static_shape(op.inputs[1]), op.inputs[0].dims
    if wanted is not None and dims is not None:
        tail = wanted[len(wanted) - len(dims) :] if len(dims) <= len(wanted) else None
        if tail is None or any(
            d not in (None, 1, w) and w is not None for d, w in zip(dims, tail, strict=True)
        ):
            raise ValueError(
                f"Incompatible shapes: cannot broadcast {shape_text(dims)} to {shape_text(wanted)}"
            )
    return [wanted]


def _broadcast_to(xp: Any, x: Any, shape: Any) -> Any:
    return xp.broadcast_to(x, _checked_sizes(shape, "shape"))


def sum_to_shape(grad: Tensor, source: Tensor) -> Tensor:
    """Sum ``grad`` back to the shape of ``source``, which was broadcast to the shape of grad."""
    grad = convert_to_tensor(grad)
    wide, narrow = grad.dims, source.dims
    if wide is not None and fully_known(narrow):
        assert narrow is not None
        if wide == narrow:
            return grad
        lead = len(wide) - len(narrow)
        if all(n != 1 or wide[lead + i] is not None for i, n in enumerate(narrow)):
            axes = [i for i, w in enumerate(wide) if i < lead or (narrow[i - lead] == 1 and w != 1)]
            total = raw.Sum(grad, int_const(axes)) if axes else grad
            return raw.Reshape(total, int_const(narrow))
    shape = raw.Shape(source)
    _, summed = raw.BroadcastGradientArgs(raw.Shape(grad), shape)
    return raw.Reshape(raw.Sum(grad, summed), shape)


define_op(
    "BroadcastTo(input: T, shape: Tidx) -> output: T",
    attrs="T: type, Tidx: index = int32",
    shape=_broadcast_to_shape,
    **both(_broadcast_to),
    gradient=lambda op, grad: [sum_to_shape(grad, op.inputs[0]), None],
    static=(1,),
    traits=Traits(elements_of=slice(1), numpy_calls=1),
)


def _broadcast_args_shape(op: Operation) -> list[Dims]:
    a, b = vector_length(op.inputs[0]), vector_length(op.inputs[1])
    return [(None if a is None or b is None else max(a, b),)]


def _broadcast_args(a: Any, b: Any) -> Any:
    rank = max(a.size, b.size)
    a, b = (jnp.concatenate([jnp.ones(rank - s.size, s.dtype), s]) for s in (a, b))
    checks.require(((a == b) | (a == 1) | (b == 1)).all(), "Incompatible shapes.")
    return jnp.where(a == 1, b, a)


def _broadcast_args_np(a: Any, b: Any) -> Any:
    rank = max(a.size, b.size)
    x, y = (np.concatenate([np.ones(rank - s.size, s.dtype), s]) for s in (a, b))
    if not ((x == y) | (x == 1) | (y == 1)).all():
        raise fail(f"Incompatible shapes: cannot broadcast {a.tolist()} and {b.tolist()}.")
    return np.where(x == 1, y, x)


define_op(
    "BroadcastArgs(s0: T, s1: T) -> r0: T",
    attrs="T: index = int32",
    shape=_broadcast_args_shape,
    kernel=_broadcast_args,
    interpret=_broadcast_args_np,
    gradient=NotDifferentiable("its values are integers"),
    effects=CHECKS,
)

# -- bits ---------------------------------------------------------------------------------------


def _bitcast_shape(op: Operation) -> list[Dims]:
    dims = op.inputs[0].dims
    have, want = op.attrs["T"].size, op.attrs["type"].size
    if dims is None or have == want:
        return [dims]
    if have > want:
        return [(*dims, have // want)]
    if not dims or (dims[-1] is not None and dims[-1] != want // have):
        raise ValueError(
            f"Cannot bitcast from {op.attrs['T'].name} to {op.attrs['type'].name}: the last "
            f"dimension must be {want // have}, but the shape is {shape_text(dims)}."
        )
    return [dims[:-1]]


def _bitcast(x: Any, *, type: Any) -> Any:
    if jnp.issubdtype(x.dtype, jnp.complexfloating) or type.is_complex:
        return _from_bytes(_bytes_of(x), x.shape, x.dtype.itemsize, type)
    return jax.lax.bitcast_convert_type(x, type.np_dtype)


def _bytes_of(x: Any) -> Any:
    """The bytes of all elements, one after another."""
    if jnp.issubdtype(x.dtype, jnp.complexfloating):
        x = jnp.stack([jnp.real(x), jnp.imag(x)], axis=-1)
    return jax.lax.bitcast_convert_type(x, np.uint8).reshape(-1)


def _from_bytes(flat: Any, dims: tuple[int, ...], have: int, type: Any) -> Any:
    """Elements of ``type`` made of the bytes of elements of shape ``dims``, ``have`` bytes each."""
    want = type.size
    if have != want:
        dims = (*dims, have // want) if have > want else dims[:-1]
    if not type.is_complex:
        parts = flat.reshape((*dims, want) if want > 1 else dims)
        return jax.lax.bitcast_convert_type(parts, type.np_dtype)
    real = np.float32 if want == 8 else np.float64
    parts = jax.lax.bitcast_convert_type(flat.reshape((*dims, 2, want // 2)), real)
    return jax.lax.complex(parts[..., 0], parts[..., 1])


def _bitcast_np(x: Any, *, type: Any) -> Any:
    have, want = x.dtype.itemsize, np.dtype(type.np_dtype).itemsize
    if x.size == 0:  # there are no bytes that tell the size of the elements
        kept = x.shape[: x.ndim - (have < want)]
        return np.zeros((*kept, have // want) if have > want else kept, type.np_dtype)
    flat = np.ascontiguousarray(x).reshape(-1).view(type.np_dtype)
    if have == want:
        return flat.reshape(x.shape)
    return flat.reshape((*x.shape, have // want) if have > want else x.shape[:-1])


#: Quantised integers are bits of their own type, too.
_BITS = (
    "{bfloat16, complex128, complex64, float16, float32, float64, int16, int32, int64, int8, "
    "uint16, uint32, uint64, uint8, qint8, quint8, qint16, quint16, qint32}"
)
define_op(
    "Bitcast(input: T) -> output: type",
    attrs=f"T: {_BITS}, type: {_BITS}",
    shape=_bitcast_shape,
    kernel=_bitcast,
    interpret=_bitcast_np,
    gradient=NotDifferentiable("it reinterprets bits"),
)
