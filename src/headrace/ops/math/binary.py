"""Arithmetic of two inputs that broadcast: kernels, gradients and public functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from jax import lax
from jax import numpy as jnp

from headrace.graph.shapes import num_elements_static
from headrace.graph.tensor import Operation, Tensor
from headrace.ops.core import checks, flops
from headrace.ops.core.array_util import both
from headrace.ops.core.build import raw
from headrace.ops.core.public import public
from headrace.ops.core.registry import CHECKS, PURE, Effects, get_op_def
from headrace.ops.core.traits import ELEMENTWISE, Traits
from headrace.ops.math import vector_functions as vectors
from headrace.ops.math.elementwise_util import (
    FLOATS,
    INEXACT,
    INTEGER,
    INTEGERS,
    NUMBERS,
    REALS,
    Kernel,
    binary,
    binary_function,
    broadcast,
    conj,
    lifted,
    no_gradient,
    scalar,
    unbroadcast,
)

Grads = list[Tensor | None]
SIGNED_NUMBERS = "{bfloat16, float16, float32, float64, int32, int64, complex64, complex128}"


# -- gradients of plain arithmetic --------------------------------------------------------------


def _add_grad(op: Operation, g: Tensor) -> Grads:
    return unbroadcast(op, g, g)


def _sub_grad(op: Operation, g: Tensor) -> Grads:
    return unbroadcast(op, g, raw.Neg(g))


def _mul_grad(op: Operation, g: Tensor) -> Grads:
    x, y = op.inputs
    return unbroadcast(op, raw.Mul(g, conj(y)), raw.Mul(conj(x), g))


def _div_grad(op: Operation, g: Tensor) -> Grads:
    gx = raw.RealDiv(g, conj(op.inputs[1]))
    gy = raw.Neg(raw.Mul(gx, conj(op.outputs[0])))
    return unbroadcast(op, gx, gy)


def _div_no_nan_grad(op: Operation, g: Tensor) -> Grads:
    gx = raw.DivNoNan(g, conj(op.inputs[1]))
    gy = raw.Neg(raw.Mul(gx, conj(op.outputs[0])))
    return unbroadcast(op, gx, gy)


def _maximum_grad(op: Operation, g: Tensor) -> Grads:
    return _chosen_grad(op, g, raw.GreaterEqual(*op.inputs))


def _minimum_grad(op: Operation, g: Tensor) -> Grads:
    return _chosen_grad(op, g, raw.LessEqual(*op.inputs))


def _chosen_grad(op: Operation, g: Tensor, first: Tensor) -> Grads:
    """All of the gradient goes to the input that was taken; the first one takes ties."""
    zero = raw.ZerosLike(g)
    return unbroadcast(op, raw.Select(first, g, zero), raw.Select(first, zero, g))


def _squared_difference_grad(op: Operation, g: Tensor) -> Grads:
    gx = raw.Mul(raw.Mul(g, 2), conj(raw.Sub(*op.inputs)))
    return unbroadcast(op, gx, raw.Neg(gx))


def _pow_grad(op: Operation, g: Tensor) -> Grads:
    x, y, z = conj(op.inputs[0]), conj(op.inputs[1]), conj(op.outputs[0])
    gx = raw.Mul(raw.Mul(g, y), raw.Pow(x, raw.Sub(y, 1)))
    zero = raw.ZerosLike(x)
    valid = raw.NotEqual(x, zero) if x.dtype.is_complex else raw.Greater(x, zero)
    # log(x) is needed only where it is finite: elsewhere the power is constant in y or undefined.
    safe = raw.Select(valid, x, raw.OnesLike(x))
    log_x = raw.Select(valid, raw.Log(safe), zero)
    return unbroadcast(op, gx, raw.Mul(raw.Mul(g, z), log_x))


def _floormod_grad(op: Operation, g: Tensor) -> Grads:
    return unbroadcast(op, g, raw.Mul(g, raw.Neg(raw.FloorDiv(*op.inputs))))


def _truncatemod_grad(op: Operation, g: Tensor) -> Grads:
    return unbroadcast(op, g, raw.Mul(g, raw.Neg(raw.TruncateDiv(*op.inputs))))


def _atan2_grad(op: Operation, g: Tensor) -> Grads:
    y, x = op.inputs
    scaled = raw.RealDiv(g, raw.AddV2(raw.Square(x), raw.Square(y)))
    return unbroadcast(op, raw.Mul(x, scaled), raw.Neg(raw.Mul(y, scaled)))


# -- division -----------------------------------------------------------------------------------


def _is_int(x: Any) -> bool:
    return x.dtype.kind in "iu"


def require_nonzero(xp: Any, y: Any) -> None:
    """Integers must not be divided by zero."""
    if isinstance(y, (np.ndarray, np.generic)):
        xp = np
    if y.size:
        checks.require(xp.all(y != scalar(0, y)), "Integer division by zero")


def _real_div_np(x: Any, y: Any) -> Any:
    return np.divide(x, y)


def _truncate_div(xp: Any, x: Any, y: Any) -> Any:
    if not _is_int(x):
        quotient = xp.divide(x, y)
        return quotient if x.dtype.kind == "c" else xp.trunc(quotient)
    require_nonzero(xp, y)
    return (x - xp.fmod(x, y)) // y


def _div(xp: Any, x: Any, y: Any) -> Any:
    """Integers are cut towards zero, as in C; others are divided exactly."""
    return _truncate_div(xp, x, y) if _is_int(x) else xp.divide(x, y)


def _floor_div(xp: Any, x: Any, y: Any) -> Any:
    if not _is_int(x):
        return xp.floor(xp.divide(x, y))
    require_nonzero(xp, y)
    return xp.floor_divide(x, y)


def _truncate_mod(xp: Any, x: Any, y: Any) -> Any:
    if _is_int(x):
        require_nonzero(xp, y)
    return xp.fmod(x, y)


def _floor_mod(xp: Any, x: Any, y: Any) -> Any:
    if _is_int(x):
        require_nonzero(xp, y)
        return xp.mod(x, y)
    rest = xp.fmod(x, y)
    zero = scalar(0, rest)
    return xp.where((rest != zero) & ((rest < zero) != (y < zero)), rest + y, rest)


def _guarded(xp: Any, y: Any) -> tuple[Any, Any]:
    """Where ``y`` is zero, and ``y`` with 1 there, so that gradients stay finite too."""
    is_zero = y == scalar(0, y)
    return is_zero, xp.where(is_zero, scalar(1, y), y)


def _div_no_nan(xp: Any, x: Any, y: Any) -> Any:
    is_zero, safe = _guarded(xp, y)
    return xp.where(is_zero, scalar(0, x), x / safe)


def _mul_no_nan(xp: Any, x: Any, y: Any) -> Any:
    is_zero, _ = _guarded(xp, y)
    return xp.where(is_zero, scalar(0, x), x * y)


def _xlogy(xp: Any, x: Any, y: Any) -> Any:
    is_zero = x == scalar(0, x)
    return xp.where(is_zero, scalar(0, x), x * xp.log(xp.where(is_zero, scalar(1, y), y)))


def _xlog1py(xp: Any, x: Any, y: Any) -> Any:
    is_zero = x == scalar(0, x)
    return xp.where(is_zero, scalar(0, x), x * xp.log1p(xp.where(is_zero, scalar(0, y), y)))


def _xdivy(xp: Any, x: Any, y: Any) -> Any:
    is_zero = x == scalar(0, x)
    return xp.where(is_zero, scalar(0, x), x / xp.where(is_zero, scalar(1, y), y))


# -- powers, extremes, bits ---------------------------------------------------------------------


def _pow(xp: Any, x: Any, y: Any) -> Any:
    if not _is_int(x):
        # XLA makes products of it; NumPy takes a hundred times as long as for them.
        is_cube = xp is np and y.ndim == 0 and y == 3 and x.dtype.char in "fd"
        return x * x * x if is_cube else xp.power(x, y)
    known = np if isinstance(y, (np.ndarray, np.generic)) else xp
    if y.dtype.kind == "i" and y.size:
        checks.require(
            known.all(y >= scalar(0, y)), "Integers to negative integer powers are not allowed"
        )
    y = xp.maximum(y, scalar(0, y))
    if xp is np or (isinstance(y, np.ndarray | np.generic) and y.size and y.max() < 64):
        return xp.power(x, y)
    return _int_pow(*broadcast(x, y))


def _int_pow(x: Any, y: Any) -> Any:
    """By squaring, every bit of the exponent: products that leave the type wrap around."""

    def step(state: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
        power, square, rest = state
        power = jnp.where(rest & 1 == 1, power * square, power)
        return power, square * square, rest >> 1

    start = (jnp.ones_like(x), x, y)
    return lax.while_loop(lambda state: jnp.any(state[2] > 0), step, start)[0]


def _squared_difference(x: Any, y: Any) -> Any:
    difference = lax.sub(x, y)
    other = lax.conj(difference) if difference.dtype.kind == "c" else difference
    return lax.mul(difference, other)


def _squared_difference_np(x: Any, y: Any) -> Any:
    difference = x - y
    return difference * np.conj(difference) if x.dtype.kind == "c" else difference * difference


def _clamped(xp: Any, y: Any) -> Any:
    """Shift counts outside the width of the type are moved to its ends."""
    return xp.clip(y, scalar(0, y), scalar(8 * y.dtype.itemsize - 1, y))


def _left_shift(xp: Any, x: Any, y: Any) -> Any:
    return xp.left_shift(x, _clamped(xp, y))


def _right_shift(xp: Any, x: Any, y: Any) -> Any:
    return xp.right_shift(x, _clamped(xp, y))


# -- special functions --------------------------------------------------------------------------


def _zeta(x: Any, q: Any) -> Any:
    """The sum of ``(q + k) ** -x``, also for negative q, where XLA's series does not hold."""
    one, zero = scalar(1, q), lax.full_like(q, 0)
    is_integer = q == lax.floor(q)
    below = (q < 0) & (q > -_LONGEST_SUM) & ~is_integer

    def step(state: tuple[Any, Any]) -> tuple[Any, Any]:
        start, total = state
        is_below = below & (start < one)
        total = lax.select(is_below, total + lax.pow(start, -x), total)
        return lax.select(is_below, start + one, start), total

    start, total = lax.while_loop(lambda state: (below & (state[0] < one)).any(), step, (q, zero))
    # The first term is all there is of the sum where the exponent is that large.
    huge = x > scalar(_HUGE_EXPONENT, x)
    result = total + lax.select(huge, lax.pow(start, -x), lax.zeta(x, start))
    result = lax.select(huge & (q <= 0) & is_integer, lax.full_like(q, np.inf), result)
    undefined = (below & (x != lax.floor(x))) | ((q <= -_LONGEST_SUM) & ~is_integer)
    result = lax.select(undefined | (x < one), lax.full_like(q, np.nan), result)
    at_infinity = (q == scalar(np.inf, q)) & (x > one)
    return lax.select(at_infinity, zero, result)


#: As many terms of a sum from a negative start are added one by one; further away: NaN.
_LONGEST_SUM = 1e6
_HUGE_EXPONENT = 1e7


def _polygamma(a: Any, x: Any) -> Any:
    order = a + lax.full_like(a, 1)
    odd = lax.rem(order, lax.full_like(a, 2)) == scalar(1, a)
    size = lax.exp(lax.lgamma(order)) * _zeta(order, x)
    valid = (a >= scalar(1, a)) & (a == lax.floor(a))
    return lax.select(valid, lax.select(odd, -size, size), lax.polygamma(a, x))


def _igamma(a: Any, x: Any) -> Any:
    """XLA's series, with TensorFlow's values at the ends.

    An infinite order has its weight beyond every x; an order of 0 is outside the domain.
    """
    zero = lax.full_like(a, 0)
    result = lax.select(a == scalar(np.inf, a), zero, lax.igamma(a, x))
    outside = (a <= 0) | (x < 0) | (a != a) | (x != x)
    result = lax.select(outside, lax.full_like(a, np.nan), result)
    return lax.select(x == 0, zero, result)


def _igammac(a: Any, x: Any) -> Any:
    beyond = (a == scalar(np.inf, a)) & lax.is_finite(x)
    result = lax.select(beyond, lax.full_like(a, 1), lax.igammac(a, x))
    outside = (a <= 0) | (x < 0) | (a != a) | (x != x)
    return lax.select(outside, lax.full_like(a, np.nan), result)


def _mul_no_nan_grad(op: Operation, g: Tensor) -> Grads:
    x, y = op.inputs
    return unbroadcast(op, raw.MulNoNan(g, conj(y)), raw.MulNoNan(conj(x), g))


def _nextafter_grad(op: Operation, g: Tensor) -> Grads:
    return unbroadcast(op, g, raw.ZerosLike(g))


def _zeta_grad(op: Operation, g: Tensor) -> Grads:
    x, q = op.inputs
    slope = raw.Neg(raw.Mul(x, raw.Zeta(raw.AddV2(x, 1), q)))
    return unbroadcast(op, None, raw.Mul(g, slope))


def _polygamma_grad(op: Operation, g: Tensor) -> Grads:
    a, x = op.inputs
    return unbroadcast(op, None, raw.Mul(g, raw.Polygamma(raw.AddV2(a, 1), x)))


def _igamma_slope(op: Operation) -> Tensor:
    """The derivative of the lower incomplete gamma function in x: the density at x."""
    a, x = op.inputs
    power = raw.Sub(raw.Mul(raw.Sub(a, 1), raw.Log(x)), raw.AddV2(x, raw.Lgamma(a)))
    return raw.Exp(power)


def _igamma_grad(op: Operation, g: Tensor) -> Grads:
    in_a = raw.Mul(g, raw.IgammaGradA(*op.inputs))
    return unbroadcast(op, in_a, raw.Mul(g, _igamma_slope(op)))


def _igammac_grad(op: Operation, g: Tensor) -> Grads:
    return [raw.Neg(grad) for grad in _igamma_grad(op, g)]


# -- the table ----------------------------------------------------------------------------------


#: One floating point operation for each element.
_COUNTED = ELEMENTWISE.but(flops=flops.per_element(1))
_SUM = _COUNTED.but(cheap=True, rounding="sum", linear=slice(None))
_QUOTIENT = ELEMENTWISE.but(linear=slice(1), divides=True)


def _row(
    name: str,
    types: str,
    kernel: Kernel,
    interpret: Kernel | None,
    gradient: Any,
    doc: str,
    arguments: str = "x y",
    traits: Traits = ELEMENTWISE,
) -> Any:
    pair = lifted(kernel), interpret
    return binary(name, types, *pair, gradient, doc, arguments=arguments, traits=traits)


def _shared(
    name: str,
    types: str,
    function: Any,
    gradient: Any,
    doc: str,
    effects: Effects = PURE,
    traits: Traits = ELEMENTWISE,
    cost: Callable[[Operation], float] | None = None,
) -> Any:
    """A row whose kernel and NumPy form are one function of the array module."""
    pair = both(function)
    return binary(
        name,
        types,
        pair["kernel"],
        pair["interpret"],
        gradient,
        doc,
        effects=effects,
        traits=traits,
        cost=cost,
    )


def _cost_of_rest(op: Operation) -> float:
    """The C library finds one rest after another, by long division: NumPy takes 10 ns for each."""
    return 10.0 * (num_elements_static(op.outputs[0].dims) or 1)


_row("AddV2", NUMBERS, lax.add, np.add, _add_grad, "``x + y``.", traits=_SUM.but(light=True))
add = public("add", "math.add")(
    _row("Add", NUMBERS, lax.add, np.add, _add_grad, "``x + y``.", traits=_SUM)
)
subtract = public("subtract", "math.subtract")(
    _row("Sub", NUMBERS, lax.sub, np.subtract, _sub_grad, "``x - y``.", traits=_SUM.but(light=True))
)
multiply = public("multiply", "math.multiply")(
    _row(
        "Mul",
        NUMBERS,
        lax.mul,
        np.multiply,
        _mul_grad,
        "``x * y``.",
        traits=_COUNTED.but(light=True, cheap=True, rounding="product", linear="each"),
    )
)
realdiv = public("realdiv")(
    _row(
        "RealDiv",
        INEXACT,
        lax.div,
        _real_div_np,
        _div_grad,
        "``x / y``.",
        traits=_QUOTIENT.but(rounding="product", flops=flops.per_element(1)),
    )
)
maximum = public("maximum", "math.maximum")(
    _row(
        "Maximum",
        REALS,
        lax.max,
        np.maximum,
        _maximum_grad,
        "The greater of x and y.",
        traits=_COUNTED.but(light=True, cheap=True, elements_of=slice(None)),
    )
)
minimum = public("minimum", "math.minimum")(
    _row(
        "Minimum",
        REALS,
        lax.min,
        np.minimum,
        _minimum_grad,
        "The lesser of x and y.",
        traits=_COUNTED.but(light=True, cheap=True, elements_of=slice(None)),
    )
)
squared_difference = public("squared_difference", "math.squared_difference")(
    _row(
        "SquaredDifference",
        SIGNED_NUMBERS,
        _squared_difference,
        _squared_difference_np,
        _squared_difference_grad,
        "``(x - y) * conj(x - y)``.",
        traits=ELEMENTWISE.but(flops=flops.per_element(2)),
    )
)
atan2 = public("atan2", "math.atan2")(
    _row("Atan2", FLOATS, vectors.atan2, np.arctan2, _atan2_grad, "Angle of (x, y).", "y x")
)
nextafter = public("math.nextafter")(
    _row(
        "NextAfter",
        "{float32, float64} = float32",
        lax.nextafter,
        np.nextafter,
        _nextafter_grad,
        "The next number after x1 towards x2.",
        "x1 x2",
    )
)
igamma = public("igamma", "math.igamma")(
    _row(
        "Igamma", FLOATS, _igamma, None, _igamma_grad, "Lower regularised incomplete gamma.", "a x"
    )
)
igammac = public("igammac", "math.igammac")(
    _row("Igammac", FLOATS, _igammac, None, _igammac_grad, "``1 - igamma(a, x)``.", "a x")
)
_row("IgammaGradA", FLOATS, lax.igamma_grad_a, None, no_gradient(2), "Slope of igamma in a.", "a x")
_row("RandomGammaGrad", FLOATS, lax.random_gamma_grad, None, no_gradient(2), "", "alpha sample")
zeta = public("zeta", "math.zeta")(
    _row("Zeta", "{float32, float64}", _zeta, None, _zeta_grad, "Hurwitz zeta.", "x q")
)
polygamma = public("polygamma", "math.polygamma")(
    _row(
        "Polygamma",
        "{float32, float64}",
        _polygamma,
        None,
        _polygamma_grad,
        "The derivative of order a of digamma.",
        "a x",
    )
)
bitwise_and = public("bitwise.bitwise_and")(
    _row("BitwiseAnd", INTEGERS, lax.bitwise_and, np.bitwise_and, INTEGER, "Bits of both.")
)
bitwise_or = public("bitwise.bitwise_or")(
    _row("BitwiseOr", INTEGERS, lax.bitwise_or, np.bitwise_or, INTEGER, "Bits of either.")
)
bitwise_xor = public("bitwise.bitwise_xor")(
    _row("BitwiseXor", INTEGERS, lax.bitwise_xor, np.bitwise_xor, INTEGER, "Bits of one.")
)

_shared("Div", NUMBERS, _div, _div_grad, "", CHECKS, traits=_QUOTIENT.but(rounding="product"))
truncatediv = public("truncatediv")(
    _shared(
        "TruncateDiv", NUMBERS, _truncate_div, no_gradient(2), "x / y cut towards zero.", CHECKS
    )
)
floor_div = public("floor_div")(
    _shared(
        "FloorDiv",
        REALS,
        _floor_div,
        no_gradient(2),
        "x / y rounded down.",
        CHECKS,
        traits=ELEMENTWISE.but(light=True),
    )
)
truncatemod = public("truncatemod")(
    _shared(
        "TruncateMod",
        REALS,
        _truncate_mod,
        _truncatemod_grad,
        "The rest, with the sign of x.",
        CHECKS,
        cost=_cost_of_rest,
    )
)
_shared("Mod", REALS, _truncate_mod, _truncatemod_grad, "", CHECKS, cost=_cost_of_rest)
floormod = mod = public("floormod", "mod", "math.floormod", "math.mod")(
    _shared(
        "FloorMod",
        REALS,
        _floor_mod,
        _floormod_grad,
        "The rest, with the sign of y.",
        CHECKS,
        traits=ELEMENTWISE.but(light=True),
        cost=_cost_of_rest,
    )
)
_pow_function = _shared(
    "Pow", SIGNED_NUMBERS, _pow, _pow_grad, "x to the power y.", CHECKS, traits=_COUNTED
)
_shared("DivNoNan", INEXACT, _div_no_nan, _div_no_nan_grad, "", traits=_QUOTIENT)
div_no_nan = public("div_no_nan", "math.div_no_nan")(
    binary_function(get_op_def("DivNoNan"), "div_no_nan", "x / y; 0 where y is 0.")
)
_shared(
    "MulNoNan",
    INEXACT,
    _mul_no_nan,
    _mul_no_nan_grad,
    "",
    traits=ELEMENTWISE.but(linear="each"),
)
multiply_no_nan = public("math.multiply_no_nan")(
    binary_function(get_op_def("MulNoNan"), "multiply_no_nan", "x * y; 0 where y is 0.")
)
xlogy = public("math.xlogy")(_shared("Xlogy", INEXACT, _xlogy, None, "x * log(y); 0 where x is 0."))
xlog1py = public("math.xlog1py")(
    _shared("Xlog1py", INEXACT, _xlog1py, None, "x * log1p(y); 0 where x is 0.")
)
xdivy = public("math.xdivy")(
    _shared("Xdivy", INEXACT, _xdivy, None, "x / y; 0 where x is 0.", traits=_QUOTIENT)
)
left_shift = public("bitwise.left_shift")(
    _shared("LeftShift", INTEGERS, _left_shift, INTEGER, "Bits moved up by y.")
)
right_shift = public("bitwise.right_shift")(
    _shared("RightShift", INTEGERS, _right_shift, INTEGER, "Bits moved down by y.")
)
