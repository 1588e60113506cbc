"""Conversion between types, and complex numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, overload

import numpy as np
from jax import lax

from headrace.graph import dtypes
from headrace.graph.composite import CompositeTensor, composite_function
from headrace.graph.dtypes import DType
from headrace.graph.graph import get_default_graph
from headrace.graph.tensor import Operation, Tensor
from headrace.ops.core.array_util import like_first
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.core.public import public
from headrace.ops.core.registry import define_op
from headrace.ops.core.static import static_shape
from headrace.ops.core.traits import ELEMENTWISE, KEEPS_ZERO, Traits
from headrace.ops.math.elementwise_util import Kernel, broadcast_shape, lifted, unbroadcast

# -- Cast ---------------------------------------------------------------------------------------


def _kind(dtype: Any) -> str:
    """NumPy's letter for the kind of a type; bfloat16 counts as floating."""
    return "f" if dtype.kind == "V" else str(dtype.kind)


def _cast(x: Any, *, DstT: DType) -> Any:
    target = DstT.np_dtype
    if x.dtype == target:
        return x
    source = _kind(x.dtype)
    if target.kind == "b":
        return lax.ne(x, lax.full_like(x, 0))
    if source == "c" and target.kind != "c":
        x, source = lax.real(x), "f"
    if source == "f" and target.kind in "iu":
        return _float_to_int(x, target)
    return lax.convert_element_type(x, target)


def _float_to_int(x: Any, target: Any) -> Any:
    """Cut towards zero. What does not fit becomes the least value of a register, then wraps.

    That is what CPUs do (and TensorFlow with them), where XLA alone would saturate.
    """
    if x.dtype.itemsize < 4:
        x = lax.convert_element_type(x, np.float32)
    if target.name == "uint64":
        half = lax.full_like(x, 2.0**63)
        upper = lax.convert_element_type(_to_register(lax.sub(x, half), np.int64), target)
        lower = lax.convert_element_type(_to_register(x, np.int64), target)
        top = lax.full_like(upper, 1 << 63)
        return lax.select(lax.lt(x, half), lower, lax.bitwise_xor(upper, top))
    register = np.int64 if target.name in ("int64", "uint32") else np.int32
    return lax.convert_element_type(_to_register(x, register), target)


def _to_register(x: Any, register: Any) -> Any:
    info = np.iinfo(register)
    bound = lax.full_like(x, float(info.max) + 1.0)
    fits = lax.bitwise_and(lax.lt(x, bound), lax.ge(x, lax.neg(bound)))
    converted = lax.convert_element_type(x, register)
    return lax.select(fits, converted, lax.full_like(converted, info.min))


def _cast_np(x: Any, *, DstT: DType) -> Any:
    target = DstT.np_dtype
    if x.dtype == target:
        return x
    source = _kind(x.dtype)
    if target.kind == "b":
        return x != x.dtype.type(0)
    if source == "c" and target.kind != "c":
        x, source = x.real, "f"
    if source == "f" and target.kind in "iu":
        return _float_to_int_np(np.asarray(x), target)
    return x.astype(target)


def _float_to_int_np(x: Any, target: Any) -> Any:
    if x.dtype.itemsize < 4:
        x = x.astype(np.float32)
    if target.name == "uint64":
        upper = _to_register_np(x - x.dtype.type(2.0**63), np.int64).astype(target)
        lower = _to_register_np(x, np.int64).astype(target)
        return np.where(x < 2.0**63, lower, upper ^ np.uint64(1 << 63))
    register = np.int64 if target.name in ("int64", "uint32") else np.int32
    return _to_register_np(x, register).astype(target)


def _to_register_np(x: Any, register: Any) -> Any:
    info = np.iinfo(register)
    bound = float(info.max) + 1.0
    if x.size and x.max() < bound and x.min() >= -bound:  # false for NaN
        return x.astype(register)
    fits = (x < bound) & (x >= -bound)
    return np.where(fits, np.where(fits, x, x.dtype.type(0)).astype(register), info.min)


def _cast_shape(op: Operation) -> list[Any]:
    source, target = op.attrs["SrcT"], op.attrs["DstT"]
    for dtype in (source, target):
        if dtype not in dtypes.XLA_TYPES:
            raise ValueError(
                f"Cast {source.name} to {target.name} is not supported; strings have "
                "tf.string_to_number, tf.as_string and tf.decode_raw."
            )
    if op.attrs["Truncate"]:
        raise ValueError("Cast with Truncate=True (rounding towards zero) is not supported.")
    return like_first(op)


def _cast_grad(op: Operation, g: Tensor) -> list[Tensor | None]:
    source, target = op.attrs["SrcT"], op.attrs["DstT"]
    if all(t.is_floating or t.is_complex for t in (source, target)):
        return [raw.Cast(g, DstT=source)]
    return [None]


define_op(
    "Cast(x: SrcT) -> y: DstT",
    attrs="SrcT: type, DstT: type, Truncate: bool = False",
    shape=_cast_shape,
    kernel=_cast,
    interpret=_cast_np,
    gradient=_cast_grad,
    traits=ELEMENTWISE.but(
        light=True, linear=slice(1), as_shape=lambda op: static_shape(op.inputs[0])
    ),
)


_Composite = TypeVar("_Composite", bound=CompositeTensor)


@overload
def cast(x: _Composite, dtype: Any, name: str | None = None) -> _Composite: ...
@overload
def cast(x: Any, dtype: Any, name: str | None = None) -> Tensor: ...
@public("cast", "dtypes.cast")
def cast(x: Any, dtype: Any, name: str | None = None) -> Any:
    """``x`` as ``dtype``: floats are cut towards zero, nonzero is True, integers wrap.

    The shape stays. Complex numbers lose their imaginary part. Sparse values keep their form; a
    tensor that has the type already is returned as it is.

    Raises:
        TypeError: if ``x`` cannot be converted to a tensor, or ``dtype`` is unknown.
        ValueError: if one of the types is no number (a string ...).

    >>> Session().run(cast(constant([1.8, 2.2]), int32)).tolist()
    [1, 2]
    """
    target = dtypes.as_dtype(dtype).base_dtype
    rebuild = getattr(x, "_with_values", None)
    if rebuild is not None:
        return rebuild(cast(x.values, target, name))
    if not isinstance(x, Tensor):
        with get_default_graph().name_scope(name or "Cast") as name:
            x = convert_to_tensor(x, name="x")
    if x.dtype is target:
        return x
    return raw.Cast(x, DstT=target, name=name)


@public("saturate_cast", "dtypes.saturate_cast")
@composite_function
def saturate_cast(value: Any, dtype: Any, name: str | None = None) -> Tensor:
    """``value`` as ``dtype``, with what does not fit moved to the nearest end of its range.

    Args:
        value: real numbers of any shape, which the result has.

    Raises:
        TypeError: if a type has no range (complex, string).

    >>> with tf.Session() as session:
    ...     session.run(saturate_cast([-5.0, 7.0, 300.0], tf.uint8)).tolist()
    [0, 7, 255]
    """
    target = dtypes.as_dtype(dtype).base_dtype
    value = convert_to_tensor(value, name="value")
    source = value.dtype
    if source.min < target.min:
        value = raw.Maximum(value, _bound(target.min, source, 1))
    if source.max > target.max:
        value = raw.Minimum(value, _bound(target.max, source, -1))
    result: Tensor = cast(value, target, name=name or "saturate_cast")
    return result


def _bound(limit: Any, dtype: DType, inwards: int) -> Any:
    """``limit`` in ``dtype``: where it has no such value, the nearest one on the inner side."""
    bound = np.asarray(limit).astype(dtype.np_dtype)
    if (
        dtype.is_floating
        and int(bound) != int(limit)
        and (int(bound) > int(limit)) == (inwards < 0)
    ):
        bound = np.nextafter(bound, bound.dtype.type(0))
    return bound


def _converter(default_name: str, dtype: DType) -> Callable[..., Tensor]:
    def function(x: Any, name: str | None = default_name) -> Tensor:
        converted: Tensor = cast(x, dtype, name=name)
        return converted

    function.__name__ = function.__qualname__ = default_name
    function.__doc__ = f"""``x`` as {dtype.name}, in its shape; see tf.cast.

Raises:
    ValueError: if ``x`` holds strings.
"""
    return function


def cast_to(tensor: Tensor, dtype: DType) -> Tensor:
    """A tensor of numbers in another type; as it is if it is of that type."""
    return tensor if tensor.dtype is dtype else raw.Cast(tensor, DstT=dtype)


to_float = public("to_float")(_converter("ToFloat", dtypes.float32))
to_double = public("to_double")(_converter("ToDouble", dtypes.float64))
to_int32 = public("to_int32")(_converter("ToInt32", dtypes.int32))
to_int64 = public("to_int64")(_converter("ToInt64", dtypes.int64))
to_bfloat16 = public("to_bfloat16")(_converter("ToBFloat16", dtypes.bfloat16))
to_complex64 = public("to_complex64")(_converter("ToComplex64", dtypes.complex64))
to_complex128 = public("to_complex128")(_converter("ToComplex128", dtypes.complex128))


# -- complex numbers ----------------------------------------------------------------------------

_FROM_COMPLEX = "T: {complex64, complex128} = complex64, Tout: {float32, float64} = float32"


def _complex_np(real: Any, imag: Any) -> Any:
    shape = np.broadcast_shapes(real.shape, imag.shape)
    result = np.empty(shape, np.complex64 if real.dtype == np.float32 else np.complex128)
    result.real, result.imag = real, imag
    return result


def _complex_grad(op: Operation, g: Tensor) -> list[Tensor | None]:
    part = op.inputs[0].dtype
    return unbroadcast(op, raw.Real(g, Tout=part), raw.Imag(g, Tout=part))


define_op(
    "Complex(real: T, imag: T) -> out: Tout",
    attrs="T: {float32, float64} = float32, Tout: {complex64, complex128} = complex64",
    shape=broadcast_shape,
    kernel=lifted(lax.complex),
    interpret=_complex_np,
    gradient=_complex_grad,
    traits=ELEMENTWISE,
)


def _whole(part: Tensor, zero_first: bool = False) -> Tensor:
    """A complex tensor of which ``part`` is the real (or imaginary) part."""
    target = dtypes.complex64 if part.dtype is dtypes.float32 else dtypes.complex128
    zero = raw.ZerosLike(part)
    pair = (zero, part) if zero_first else (part, zero)
    return raw.Complex(*pair, Tout=target)


def _angle_grad(op: Operation, g: Tensor) -> list[Tensor | None]:
    z = op.inputs[0]
    # d angle = (x dy - y dx) / |z|^2: as a complex number, i z / |z|^2 = i / conj(z).
    return [raw.RealDiv(_whole(g, zero_first=True), raw.Conj(z))]


def _complex_abs_grad(op: Operation, g: Tensor) -> list[Tensor | None]:
    return [raw.Mul(_whole(g), raw.Sign(op.inputs[0]))]


def _part(
    name: str,
    kernel: Kernel,
    interpret: Kernel,
    gradient: Any,
    signature: str = "(input: T) -> output: Tout",
    traits: Traits = ELEMENTWISE,
) -> None:
    define_op(
        f"{name}{signature}",
        attrs=_FROM_COMPLEX,
        shape=like_first,
        traits=traits,
        kernel=kernel,
        interpret=interpret,
        gradient=gradient,
    )


_part("Real", lax.real, np.real, lambda op, g: [_whole(g)], traits=KEEPS_ZERO)
_part("Imag", lax.imag, np.imag, lambda op, g: [_whole(g, zero_first=True)], traits=KEEPS_ZERO)
_part("Angle", lambda z: lax.atan2(lax.imag(z), lax.real(z)), np.angle, _angle_grad)
_part("ComplexAbs", lax.abs, np.abs, _complex_abs_grad, "(x: T) -> y: Tout")

define_op(
    "Conj(input: T) -> output: T",
    attrs="T: {complex64, complex128} = complex64",
    shape=like_first,
    kernel=lax.conj,
    interpret=np.conjugate,
    gradient=lambda op, g: [raw.Conj(g)],
    traits=KEEPS_ZERO,
)


@public("complex", "dtypes.complex")
def complex(real: Any, imag: Any, name: str | None = None) -> Tensor:
    """``real + i imag``: complex64 of float32 parts, complex128 of float64 parts; they broadcast.

    Args:
        real, imag: both float32 or both float64, of shapes that broadcast.

    Raises:
        TypeError: if the parts are not both float32 or both float64.
        ValueError: if their shapes do not broadcast.
    """
    real = convert_to_tensor(real, name="real")
    imag = convert_to_tensor(imag, name="imag", preferred_dtype=real.dtype)
    targets = {dtypes.float32: dtypes.complex64, dtypes.float64: dtypes.complex128}
    if real.dtype is not imag.dtype or real.dtype not in targets:
        raise TypeError(
            f"real and imag have incorrect types: {real.dtype.name} {imag.dtype.name}; both must "
            "be float32 or both float64."
        )
    return raw.Complex(real, imag, Tout=targets[real.dtype], name=name)


@public("real", "math.real")
@composite_function
def real(input: Any, name: str | None = None) -> Tensor:
    """The real part, in the shape of ``input``; ``input`` itself where it is real already.

    Raises:
        TypeError, ValueError: if ``input`` does not convert to a tensor.
    """
    return _part_of("Real", input, name)


@public("imag", "math.imag")
@composite_function
def imag(input: Any, name: str | None = None) -> Tensor:
    """The imaginary part, in the shape of ``input``; zeros where it is real.

    Raises:
        TypeError, ValueError: if ``input`` does not convert to a tensor.
    """
    return _part_of("Imag", input, name)


@public("angle", "math.angle")
@composite_function
def angle(input: Any, name: str | None = None) -> Tensor:
    """The argument, in (-pi, pi], elementwise, as a real number; of a real number 0 or pi.

    Args:
        input: floats or complex numbers of any shape, which the result has.

    Raises:
        TypeError: for integers and strings.
    """
    return _part_of("Angle", input, name)


def _part_of(op_name: str, value: Any, name: str | None) -> Tensor:
    z = convert_to_tensor(value, name="input")
    if z.dtype.is_complex:
        make = getattr(raw, op_name)
        result: Tensor = make(z, Tout=z.dtype.real_dtype, name=name)
        return result
    if op_name == "Real":
        return z
    if op_name == "Imag":
        return raw.ZerosLike(z)
    negative = raw.Less(z, raw.ZerosLike(z))
    return raw.Mul(raw.Cast(negative, DstT=z.dtype), np.pi, name=name)


@public("conj", "math.conj")
@composite_function
def conj(x: Any, name: str | None = None) -> Tensor:
    """The complex conjugate, in the shape of ``x``; ``x`` itself where it is real.

    Raises:
        TypeError: if ``x`` is not numeric.
    """
    x = convert_to_tensor(x, name="x")
    if x.dtype.is_complex:
        return raw.Conj(x, name=name)
    if x.dtype.is_floating or x.dtype.is_integer:
        result: Tensor = x
        return result
    raise TypeError(f"Expected numeric or variant tensor, got dtype {x.dtype!r}")


@public("abs", "math.abs")
@composite_function
def abs(x: Any, name: str | None = None) -> Tensor:
    """The absolute value, elementwise; of a complex number its (real) modulus.

    Args:
        x: floats, complex numbers or signed integers of any shape, which the result has.

    Raises:
        TypeError: for another type (unsigned integers, bool, strings).

    >>> with tf.Session() as session:
    ...     float(session.run(tf.abs(3.0 + 4.0j)))
    5.0
    """
    x = convert_to_tensor(x, name="x")
    if x.dtype.is_complex:
        return raw.ComplexAbs(x, Tout=x.dtype.real_dtype, name=name)
    return raw.Abs(x, name=name)
