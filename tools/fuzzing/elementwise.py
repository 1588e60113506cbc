"""Functions of single elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fuzzing.draws import (
    ANY,
    COMPLEX,
    FLOATS,
    INTS,
    NUMBERS,
    REALS,
    SMALL_INTS,
    WIDE,
    Call,
    Draw,
    Dtype,
)
from fuzzing.table import add


def unary(names: str, types: Sequence[str], kind: str = "", **more: Any) -> None:
    def draw(d: Draw) -> Call:
        return d.call(d.tensor(d.one(*types), d.shape(), kind))

    for name in names.split():
        add(name, draw, **more)


def binary(names: str, types: Sequence[str], kind: str = "", **more: Any) -> None:
    def draw(d: Draw) -> Call:
        first, second = d.broadcast()
        dtype = d.one(*types)
        other = d.one(*types) if d.chance(3) else dtype
        return d.call(d.tensor(dtype, first, kind), d.tensor(other, second, kind))

    for name in names.split():
        add(name, draw, **more)


# bfloat16 is left out: NumPy alone cannot write it down.
INEXACT = (*FLOATS, *COMPLEX)
ALL_INTS = (*INTS, *SMALL_INTS)

unary("acosh asin asinh acos atanh atan cosh sinh sin cos tan tanh", INEXACT)
unary("exp expm1 log log1p sqrt rsqrt sigmoid math.reciprocal", INEXACT)
unary("ceil floor rint", FLOATS)
unary("is_finite is_inf is_nan", FLOATS)
unary("erf erfc lgamma digamma log_sigmoid math.bessel_i0 math.bessel_i0e", WIDE, scale=5)
unary("math.bessel_i1 math.bessel_i1e math.erfinv math.ndtri", WIDE, scale=5)
unary("abs", (*REALS, "complex64", "complex128"))
unary("negative square sign", NUMBERS)
unary("round", (*FLOATS, *INTS, "complex64"))
unary("real imag angle conj", COMPLEX)
unary("zeros_like ones_like identity stop_gradient shape size rank", ANY)
unary("bitwise.invert", ALL_INTS)
unary("logical_not", ("bool", "bool", "int32"))
unary("to_float to_double to_int32 to_int64", ("float32", "int32", "uint8", "bool"), "plain")
unary("nn.relu nn.relu6 nn.leaky_relu nn.crelu", REALS)
unary("nn.elu nn.selu nn.softplus nn.softsign nn.swish", FLOATS)
unary("nn.l2_loss", FLOATS)
unary("guarantee_const", REALS)
unary("lbeta", WIDE, "positive", scale=5)
unary("math.reciprocal_no_nan", FLOATS)

binary("add subtract multiply", NUMBERS)
binary("maximum minimum", REALS)
binary("squared_difference", (*FLOATS, *INTS))
binary("equal not_equal", ANY)
binary("less less_equal greater greater_equal", REALS)
binary("logical_and logical_or logical_xor", ("bool",))
binary("bitwise.bitwise_and bitwise.bitwise_or bitwise.bitwise_xor", ALL_INTS)
binary("divide truediv realdiv", NUMBERS)
binary("div floordiv floormod mod truncatediv truncatemod floor_div", REALS)
binary("div_no_nan", (*WIDE, "float16", "complex64"))
binary("math.multiply_no_nan math.xlogy math.xdivy", FLOATS)
binary("pow", (*FLOATS, "int32", "int64", "complex64"))
binary("atan2", WIDE)
binary("math.nextafter", WIDE)
binary("complex", WIDE)
binary("igamma igammac", WIDE, "positive", scale=20)
binary("zeta", WIDE, "positive", scale=20)


def _shift(d: Draw) -> Call:
    first, second = d.broadcast()
    dtype = d.one(*ALL_INTS)
    return d.call(d.tensor(dtype, first), d.tensor(dtype, second, "positive"))


add("bitwise.left_shift", _shift)
add("bitwise.right_shift", _shift)


def _betainc(d: Draw) -> Call:
    shapes = d.broadcast(3)
    dtype = d.one(*WIDE)
    kinds = ("positive", "positive", "unit")
    return d.call(*[d.tensor(dtype, shapes[i], k) for i, k in enumerate(kinds)])


add("betainc", _betainc, scale=20)


def _cast(d: Draw) -> Call:
    # What TensorFlow makes of a float outside of an integer type depends on the processor.
    source, target = d.one(*ANY), d.one(*ANY)
    return d.call(d.tensor(source, d.shape(), "positive"), Dtype(target))


add("cast", _cast, calls=60)


def _saturate_cast(d: Draw) -> Call:
    target = d.one(*FLOATS, *ALL_INTS)
    return d.call(d.tensor(d.one(*REALS), d.shape(), d.one("plain", "")), Dtype(target))


add("saturate_cast", _saturate_cast, calls=60)


def _bitcast(d: Draw) -> Call:
    source = d.one(*REALS, *COMPLEX)
    shape = d.shape(0, 2)
    if d.chance(40):
        shape = (*shape, d.one(2, 4))
    return d.call(d.tensor(source, shape, "plain"), Dtype(d.one(*REALS)))


add("bitcast", _bitcast)


def _clip_by_value(d: Draw) -> Call:
    dtype = d.one(*REALS)
    shape = d.shape()
    bounds = [d.tensor(dtype, shape if d.chance(30) else (), "plain") for _ in range(2)]
    return d.call(d.tensor(dtype, shape), *bounds)


add("clip_by_value", _clip_by_value)


def _clip_by_norm(d: Draw) -> Call:
    shape = d.shape()
    axes = {"axes": [d.axis(len(shape))]} if shape and d.chance(40) else {}
    return d.call(d.tensor(d.one(*FLOATS), shape), d.one(0.5, 1.0, 4.0), **axes)


add("clip_by_norm", _clip_by_norm)
add("clip_by_average_norm", lambda d: d.call(d.tensor(d.one(*WIDE), d.shape()), d.one(0.5, 2.0)))


def _list(d: Draw, types: Sequence[str], kind: str = "") -> list[Any]:
    dtype, shape = d.one(*types), d.shape()
    tensors = [d.tensor(dtype, shape, kind) for _ in range(d.between(1, 4))]
    if d.invalid():
        tensors.append(d.tensor(dtype, (*shape, 2), kind))
    return tensors


add("add_n", lambda d: d.call(_list(d, NUMBERS)))
add("accumulate_n", lambda d: d.call(_list(d, WIDE)))
add("global_norm", lambda d: d.call(_list(d, WIDE)))
add("clip_by_global_norm", lambda d: d.call(_list(d, WIDE), 1.5))


def _fake_quant(d: Draw) -> Call:
    bits = d.one(2, 8, 16, 17) if d.chance(50) else 8
    low, high = d.one((-6.0, 6.0), (0.0, 3.0), (-2.0, 5.0), (1.0, 2.0), (-3.0, -1.0))
    return d.call(d.tensor("float32", d.shape()), low, high, num_bits=bits)


add("quantization.fake_quant_with_min_max_args", _fake_quant)
add("quantization.fake_quant_with_min_max_vars", _fake_quant)


def _where(d: Draw) -> Call:
    dtype, shape = d.one(*ANY), d.shape()
    condition = shape if d.chance(70) else shape[:1]
    if d.invalid():
        condition = (*shape, 2)
    x, y = d.tensor(dtype, shape), d.tensor(dtype, shape)
    return d.call(d.tensor("bool", condition), x, y)


def _where_v2(d: Draw) -> Call:
    a, b, c = d.broadcast(3)
    dtype = d.one(*ANY)
    return d.call(d.tensor("bool", a), d.tensor(dtype, b), d.tensor(dtype, c))


add("where", _where)
add("where_v2", _where_v2)


def _polyval(d: Draw) -> Call:
    coefficients = _list(d, WIDE, "plain")
    return d.call(coefficients, d.tensor(coefficients[0].value.dtype.name, d.shape()))


add("math.polyval", _polyval)
