"""Elementwise ops of one input: one table row each gives the op and its public function."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from jax import lax

from headrace.graph import dtypes
from headrace.graph.composite import composite_function
from headrace.graph.graph import get_default_graph
from headrace.graph.tensor import Operation, Tensor
from headrace.ops.core import flops, requirements
from headrace.ops.core.array_util import both, like_first
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.core.public import public
from headrace.ops.core.registry import define_op
from headrace.ops.core.traits import ELEMENTWISE, KEEPS_ZERO, PLAIN, Traits
from headrace.ops.math import vector_functions as vectors
from headrace.ops.math.elementwise_util import (
    BOOLEAN,
    FLOATS,
    INEXACT,
    INTEGER,
    INTEGERS,
    NUMBERS,
    REALS,
    SIGNED,
    conj,
    flat_function,
    scalar,
    unary,
)

Grads = list[Tensor | None]


# -- kernels that are no single function --------------------------------------------------------


def _reciprocal(x: Any) -> Any:
    return lax.div(lax.full_like(x, 1), x)


def _rsqrt_np(x: Any) -> Any:
    return scalar(1, x) / np.sqrt(x)


def _sigmoid_np(x: Any) -> Any:
    one = scalar(1, x)
    return one / (one + np.exp(-x))


def _round(x: Any) -> Any:
    if x.dtype.kind in "iu":
        return x
    return lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN)


def _round_np(x: Any) -> Any:
    return x if x.dtype.kind in "iu" else np.rint(x)


def _square(x: Any) -> Any:
    return lax.mul(x, x)


def _is_inf(x: Any) -> Any:
    return lax.eq(lax.abs(x), lax.full_like(x, np.inf))


def _population_count(x: Any) -> Any:
    return lax.convert_element_type(lax.population_count(x), np.uint8)


def _population_count_np(x: Any) -> Any:
    return np.bitwise_count(x.view(f"u{x.dtype.itemsize}"))  # NumPy would count bits of |x|


def _bessel(scaled: Any) -> Any:
    """The unscaled function from the one scaled by exp(-|x|)."""
    return lambda x: lax.mul(scaled(x), lax.exp(lax.abs(x)))


def _ndtri(x: Any) -> Any:
    """The normal quantile; in float32 for halves, where its rational functions lose too much."""
    if x.dtype.itemsize >= 4:
        return jax.scipy.special.ndtri(x)
    wide = lax.convert_element_type(x, np.float32)
    return lax.convert_element_type(jax.scipy.special.ndtri(wide), x.dtype)


# -- gradients ----------------------------------------------------------------------------------


def _neg_grad(op: Operation, g: Tensor) -> Grads:
    return [raw.Neg(g)]


def _abs_grad(op: Operation, g: Tensor) -> Grads:
    return [raw.Mul(g, raw.Sign(op.inputs[0]))]


def _sign_grad(op: Operation, g: Tensor) -> Grads:
    return [raw.ZerosLike(op.inputs[0])]


def _inv_grad(op: Operation, g: Tensor) -> Grads:
    return [raw.ReciprocalGrad(op.outputs[0], g)]


def _square_grad(op: Operation, g: Tensor) -> Grads:
    return [raw.Mul(g, raw.Mul(conj(op.inputs[0]), 2))]


def _sqrt_grad(op: Operation, g: Tensor) -> Grads:
    return [raw.SqrtGrad(op.outputs[0], g)]


def _rsqrt_grad(op: Operation, g: Tensor) -> Grads:
    return [raw.RsqrtGrad(op.outputs[0], g)]


def _exp_grad(op: Operation, g: Tensor) -> Grads:
    return [raw.Mul(g, conj(op.outputs[0]))]


def _expm1_grad(op: Operation, g: Tensor) -> Grads:
    return [raw.Mul(g, raw.Exp(conj(op.inputs[0])))]


def _log_grad(op: Operation, g: Tensor) -> Grads:
    return [raw.RealDiv(g, conj(op.inputs[0]))]


def _log1p_grad(op: Operation, g: Tensor) -> Grads:
    return [raw.RealDiv(g, raw.AddV2(conj(op.inputs[0]), 1))]


def _sin_grad(op: Operation, g: Tensor) -> Grads:
    return [raw.Mul(g, raw.Cos(conj(op.inputs[0])))]


def _cos_grad(op: Operation, g: Tensor) -> Grads:
    return [raw.Neg(raw.Mul(g, raw.Sin(conj(op.inputs[0]))))]


def _tan_grad(op: Operation, g: Tensor) -> Grads:
    return [raw.RealDiv(g, raw.Square(raw.Cos(conj(op.inputs[0]))))]


def _sinh_grad(op: Operation, g: Tensor) -> Grads:
    return [raw.Mul(g, raw.Cosh(conj(op.inputs[0])))]


def _cosh_grad(op: Operation, g: Tensor) -> Grads:
    return [raw.Mul(g, raw.Sinh(conj(op.inputs[0])))]


def _asin_grad(op: Operation, g: Tensor) -> Grads:
    return [raw.Mul(g, raw.Rsqrt(raw.Sub(1, raw.Square(conj(op.inputs[0])))))]


def _acos_grad(op: Operation, g: Tensor) -> Grads:
    return [raw.Neg(grad) for grad in _asin_grad(op, g)]


def _atan_grad(op: Operation, g: Tensor) -> Grads:
    return [raw.RealDiv(g, raw.AddV2(raw.Square(conj(op.inputs[0])), 1))]


def _asinh_grad(op: Operation, g: Tensor) -> Grads:
    return [raw.RealDiv(g, raw.Cosh(conj(op.outputs[0])))]


def _acosh_grad(op: Operation, g: Tensor) -> Grads:
    return [raw.RealDiv(g, raw.Sinh(conj(op.outputs[0])))]


def _atanh_grad(op: Operation, g: Tensor) -> Grads:
    return [raw.RealDiv(g, raw.Sub(1, raw.Square(conj(op.inputs[0]))))]


def _tanh_grad(op: Operation, g: Tensor) -> Grads:
    return [raw.TanhGrad(conj(op.outputs[0]), g)]


def _sigmoid_grad(op: Operation, g: Tensor) -> Grads:
    return [raw.SigmoidGrad(conj(op.outputs[0]), g)]


def _erf_grad(op: Operation, g: Tensor) -> Grads:
    bell = raw.Exp(raw.Neg(raw.Square(op.inputs[0])))
    return [raw.Mul(g, raw.Mul(bell, 2 / np.sqrt(np.pi)))]


def _erfc_grad(op: Operation, g: Tensor) -> Grads:
    bell = raw.Exp(raw.Neg(raw.Square(op.inputs[0])))
    return [raw.Mul(g, raw.Mul(bell, -2 / np.sqrt(np.pi)))]


def _erfinv_grad(op: Operation, g: Tensor) -> Grads:
    return [raw.Mul(g, raw.Mul(raw.Exp(raw.Square(op.outputs[0])), np.sqrt(np.pi) / 2))]


def _ndtri_grad(op: Operation, g: Tensor) -> Grads:
    half_square = raw.Mul(raw.Square(op.outputs[0]), 0.5)
    return [raw.Mul(g, raw.Mul(raw.Exp(half_square), np.sqrt(2 * np.pi)))]


def _lgamma_grad(op: Operation, g: Tensor) -> Grads:
    return [raw.Mul(g, raw.Digamma(op.inputs[0]))]


def _digamma_grad(op: Operation, g: Tensor) -> Grads:
    x = op.inputs[0]
    if x.dtype.size >= 4:
        return [raw.Mul(g, raw.Polygamma(1, x))]
    slope = raw.Polygamma(1, raw.Cast(x, DstT=dtypes.float32))
    return [raw.Mul(g, raw.Cast(slope, DstT=x.dtype))]


def _sign_np(x: Any) -> Any:
    """NumPy's own ``sign`` of complex infinities is finite; ``x / |x|`` is not."""
    if np.dtype(x.dtype).kind != "c":
        return np.sign(x)
    size = np.abs(x)
    parts = np.stack([x.real, x.imag], -1) / np.where(size == 0, 1, size)[..., None]
    return np.ascontiguousarray(parts.astype(size.dtype)).view(x.dtype)[..., 0]


# -- the table ----------------------------------------------------------------------------------
# Each row: op, types, kernel, NumPy form (None: compiled alone), gradient, what it is.

_WITH_SIGN = "{bfloat16, float16, float32, float64, int8, int16, int32, int64}"
_abs = unary(
    "Abs", _WITH_SIGN, lax.abs, np.abs, _abs_grad, "The absolute value.", traits=KEEPS_ZERO
)
negative = public("negative", "math.negative")(
    unary(
        "Neg",
        SIGNED,
        lax.neg,
        np.negative,
        _neg_grad,
        "``-x``.",
        traits=KEEPS_ZERO.but(cheap=True, flops=flops.per_element(1), linear=slice(1)),
    )
)
sign = public("sign", "math.sign")(
    unary(
        "Sign",
        SIGNED,
        lax.sign,
        _sign_np,
        _sign_grad,
        "-1, 0 or 1; ``x / |x|`` if complex.",
        traits=KEEPS_ZERO,
    )
)
reciprocal = public("reciprocal", "math.reciprocal")(
    unary(
        "Reciprocal",
        INEXACT,
        _reciprocal,
        np.reciprocal,
        _inv_grad,
        "``1 / x``.",
        traits=ELEMENTWISE.but(flops=flops.per_element(1)),
    )
)
inv = unary("Inv", INEXACT, _reciprocal, np.reciprocal, _inv_grad, "``1 / x``.")
square = public("square", "math.square")(
    unary(
        "Square",
        NUMBERS,
        _square,
        np.square,
        _square_grad,
        "``x * x``.",
        traits=KEEPS_ZERO.but(cheap=True, flops=flops.per_element(1)),
    )
)
sqrt = public("sqrt", "math.sqrt")(
    unary("Sqrt", INEXACT, lax.sqrt, np.sqrt, _sqrt_grad, "The square root.", traits=KEEPS_ZERO)
)
rsqrt = public("rsqrt", "math.rsqrt")(
    unary(
        "Rsqrt",
        INEXACT,
        vectors.rsqrt,
        _rsqrt_np,
        _rsqrt_grad,
        "``1 / sqrt(x)``.",
        traits=ELEMENTWISE.but(flops=flops.per_element(2)),
    )
)
exp = public("exp", "math.exp")(
    unary("Exp", INEXACT, lax.exp, np.exp, _exp_grad, "The exponential function.")
)
expm1 = public("expm1", "math.expm1")(
    unary(
        "Expm1",
        INEXACT,
        lax.expm1,
        np.expm1,
        _expm1_grad,
        "``exp(x) - 1``, for small x.",
        traits=KEEPS_ZERO,
    )
)
log = public("log", "math.log")(
    unary(
        "Log",
        INEXACT,
        lax.log,
        np.log,
        _log_grad,
        "The natural logarithm.",
        traits=ELEMENTWISE.but(flops=flops.per_element(1)),
    )
)
log1p = public("log1p", "math.log1p")(
    unary(
        "Log1p",
        INEXACT,
        lax.log1p,
        np.log1p,
        _log1p_grad,
        "``log(1 + x)``, for small x.",
        traits=KEEPS_ZERO,
    )
)
sin = public("sin", "math.sin")(
    unary("Sin", INEXACT, vectors.sin, np.sin, _sin_grad, "The sine.", traits=KEEPS_ZERO)
)
cos = public("cos", "math.cos")(
    unary("Cos", INEXACT, vectors.cos, np.cos, _cos_grad, "The cosine.")
)
tan = public("tan", "math.tan")(
    unary("Tan", INEXACT, vectors.tan, np.tan, _tan_grad, "The tangent.", traits=KEEPS_ZERO)
)
asin = public("asin", "math.asin")(
    unary(
        "Asin", INEXACT, vectors.asin, np.arcsin, _asin_grad, "The inverse sine.", traits=KEEPS_ZERO
    )
)
acos = public("acos", "math.acos")(
    unary("Acos", INEXACT, vectors.acos, np.arccos, _acos_grad, "The inverse cosine.")
)
atan = public("atan", "math.atan")(
    unary(
        "Atan",
        INEXACT,
        vectors.atan,
        np.arctan,
        _atan_grad,
        "The inverse tangent.",
        traits=KEEPS_ZERO,
    )
)
sinh = public("sinh", "math.sinh")(
    unary("Sinh", INEXACT, lax.sinh, np.sinh, _sinh_grad, "The hyperbolic sine.", traits=KEEPS_ZERO)
)
cosh = public("cosh", "math.cosh")(
    unary("Cosh", INEXACT, lax.cosh, np.cosh, _cosh_grad, "The hyperbolic cosine.")
)
tanh = public("tanh", "math.tanh", "nn.tanh")(
    unary(
        "Tanh", INEXACT, lax.tanh, np.tanh, _tanh_grad, "The hyperbolic tangent.", traits=KEEPS_ZERO
    )
)
asinh = public("asinh", "math.asinh")(
    unary(
        "Asinh",
        INEXACT,
        lax.asinh,
        np.arcsinh,
        _asinh_grad,
        "Inverse hyperbolic sine.",
        traits=KEEPS_ZERO,
    )
)
acosh = public("acosh", "math.acosh")(
    unary("Acosh", INEXACT, lax.acosh, np.arccosh, _acosh_grad, "Inverse hyperbolic cosine.")
)
atanh = public("atanh", "math.atanh")(
    unary(
        "Atanh",
        INEXACT,
        lax.atanh,
        np.arctanh,
        _atanh_grad,
        "Inverse hyperbolic tangent.",
        traits=KEEPS_ZERO,
    )
)
sigmoid = public("sigmoid", "math.sigmoid", "nn.sigmoid")(
    unary("Sigmoid", INEXACT, lax.logistic, _sigmoid_np, _sigmoid_grad, "``1 / (1 + exp(-x))``.")
)
erf = public("erf", "math.erf")(
    unary("Erf", FLOATS, lax.erf, None, _erf_grad, "The error function.", traits=KEEPS_ZERO)
)
erfc = public("erfc", "math.erfc")(
    unary("Erfc", FLOATS, lax.erfc, None, _erfc_grad, "``1 - erf(x)``, for large x.")
)
erfinv = public("math.erfinv")(
    unary("Erfinv", FLOATS, lax.erf_inv, None, _erfinv_grad, "The inverse of erf.")
)
ndtri = public("math.ndtri")(
    unary("Ndtri", FLOATS, _ndtri, None, _ndtri_grad, "The quantile of the normal law.")
)
lgamma = public("lgamma", "math.lgamma")(
    unary("Lgamma", FLOATS, lax.lgamma, None, _lgamma_grad, "``log(|gamma(x)|)``.")
)
digamma = public("digamma", "math.digamma")(
    unary("Digamma", FLOATS, lax.digamma, None, _digamma_grad, "The derivative of lgamma.")
)
bessel_i0e = public("math.bessel_i0e")(
    unary(
        "BesselI0e", FLOATS, lax.bessel_i0e, None, None, "``exp(-|x|) * I0(x)``.", traits=KEEPS_ZERO
    )
)
bessel_i1e = public("math.bessel_i1e")(
    unary(
        "BesselI1e", FLOATS, lax.bessel_i1e, None, None, "``exp(-|x|) * I1(x)``.", traits=KEEPS_ZERO
    )
)
bessel_i0 = public("math.bessel_i0")(
    unary("BesselI0", FLOATS, _bessel(lax.bessel_i0e), None, None, "Bessel function I0.")
)
bessel_i1 = public("math.bessel_i1")(
    unary("BesselI1", FLOATS, _bessel(lax.bessel_i1e), None, None, "Bessel function I1.")
)
floor = public("floor", "math.floor")(
    unary("Floor", FLOATS, lax.floor, np.floor, flat_function, "Rounded down.", traits=KEEPS_ZERO)
)
ceil = public("ceil", "math.ceil", "math.ceiling")(
    unary("Ceil", FLOATS, lax.ceil, np.ceil, flat_function, "Rounded up.", traits=KEEPS_ZERO)
)
rint = public("rint", "math.rint")(
    unary(
        "Rint",
        FLOATS,
        _round,
        np.rint,
        flat_function,
        "Nearest integer, ties to even.",
        traits=KEEPS_ZERO,
    )
)
round = public("round", "math.round")(
    unary(
        "Round",
        REALS,
        _round,
        _round_np,
        flat_function,
        "To the nearest integer, ties to even.",
        traits=KEEPS_ZERO,
    )
)
is_nan = public("is_nan", "debugging.is_nan", "math.is_nan")(
    unary(
        "IsNan",
        FLOATS,
        lambda x: lax.ne(x, x),
        np.isnan,
        BOOLEAN,
        "Whether x is NaN.",
        output="bool",
    )
)
is_inf = public("is_inf", "debugging.is_inf", "math.is_inf")(
    unary("IsInf", FLOATS, _is_inf, np.isinf, BOOLEAN, "Whether x is +-inf.", output="bool")
)
is_finite = public("is_finite", "debugging.is_finite", "math.is_finite")(
    unary("IsFinite", FLOATS, lax.is_finite, np.isfinite, BOOLEAN, "Not inf or NaN.", output="bool")
)
invert = public("bitwise.invert")(
    unary("Invert", INTEGERS, lax.bitwise_not, np.invert, INTEGER, "Every bit flipped.")
)
population_count = unary(
    "PopulationCount",
    INTEGERS,
    _population_count,
    _population_count_np,
    INTEGER,
    "How many bits are set.",
    output="uint8",
)

_LOGICAL_NOT = define_op(
    "LogicalNot(x: bool) -> y: bool",
    shape=like_first,
    kernel=lax.bitwise_not,
    interpret=np.logical_not,
    gradient=BOOLEAN,
    traits=ELEMENTWISE,
)


@public("logical_not", "math.logical_not")
def logical_not(x: Any, name: str | None = None) -> Tensor:
    """``not x``, elementwise, for boolean ``x`` of any shape, which the result has.

    Raises:
        TypeError: if ``x`` is not bool.
    """
    return raw.LogicalNot(x, name=name)


@public("log_sigmoid", "math.log_sigmoid")
@composite_function
def log_sigmoid(x: Any, name: str | None = None) -> Tensor:
    """``log(sigmoid(x))`` without underflow for large negative ``x``, elementwise.

    Args:
        x: floats of any shape, which the result has.

    Raises:
        TypeError: if ``x`` does not hold floats.
    """
    with get_default_graph().name_scope(name or "LogSigmoid") as scope:
        x = convert_to_tensor(x, name="x")
        return raw.Neg(raw.Softplus(raw.Neg(x)), name=scope)


@public("math.reciprocal_no_nan")
def reciprocal_no_nan(x: Any, name: str | None = None) -> Tensor:
    """``1 / x``, and 0 where ``x`` is 0, elementwise.

    Args:
        x: floats or complex numbers of any shape, which the result has.

    Raises:
        TypeError: if ``x`` holds others.
    """
    with get_default_graph().name_scope(name or "reciprocal_no_nan") as scope:
        x = convert_to_tensor(x, name="x")
        return raw.DivNoNan(raw.OnesLike(x), x, name=scope)


# -- what gradients of the above are made of ----------------------------------------------------


def _define_gradient_op(name: str, formula: Any, traits: Traits = PLAIN) -> None:
    """An op of an output ``y`` and its gradient ``dy``, from which the input's gradient follows."""
    define_op(
        f"{name}(y: T, dy: T) -> z: T",
        attrs=f"T: {INEXACT}",
        shape=like_first,
        traits=traits,
        requires=[requirements.same_shape(0, 1)],
        **both(formula),
    )


def _conj(xp: Any, y: Any) -> Any:
    return xp.conj(y) if y.dtype.kind == "c" else y


def _sigmoid_formula(xp: Any, y: Any, dy: Any) -> Any:
    return dy * y * (scalar(1, y) - y)


def _tanh_formula(xp: Any, y: Any, dy: Any) -> Any:
    return dy * (scalar(1, y) - y * y)


def _sqrt_formula(xp: Any, y: Any, dy: Any) -> Any:
    return dy * scalar(0.5, y) / _conj(xp, y)


def _rsqrt_formula(xp: Any, y: Any, dy: Any) -> Any:
    c = _conj(xp, y)
    return scalar(-0.5, y) * dy * (c * c * c)


def _reciprocal_formula(xp: Any, y: Any, dy: Any) -> Any:
    c = _conj(xp, y)
    return -dy * (c * c)


_define_gradient_op("SigmoidGrad", _sigmoid_formula, Traits(cheap=True, numpy_calls=3))
_define_gradient_op("TanhGrad", _tanh_formula, Traits(cheap=True, numpy_calls=3))
_define_gradient_op("SqrtGrad", _sqrt_formula, Traits(numpy_calls=2))
_define_gradient_op("RsqrtGrad", _rsqrt_formula, Traits(flops=flops.per_element(4), numpy_calls=4))
_define_gradient_op("ReciprocalGrad", _reciprocal_formula, Traits(numpy_calls=3))
_define_gradient_op("InvGrad", _reciprocal_formula, Traits(numpy_calls=3))
