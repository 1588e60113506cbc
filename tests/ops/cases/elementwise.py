"""Elementwise ops: values where functions bend, both precisions, broadcasting, integers."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from scipy import special

from headrace.graph import dtypes
from headrace.harness.op_cases import OpCase

CASES: list[OpCase] = []


def _array(*values: float, dtype: Any = np.float32) -> np.ndarray:
    return np.array(values, dtype)


REAL = _array(-3.0, -1.25, -0.5, 0.75, 1.0, 2.5)
POSITIVE = _array(0.1, 0.5, 1.0, 2.5, 7.0)
UNIT = _array(-0.9, -0.25, 0.125, 0.6)
COMPLEX = np.array([1 + 2j, -0.5 + 0.25j, -1 - 1j, 0.3 - 2j], np.complex64)
HALVES = _array(-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 0.3, -0.7)

# op: (domain, reference, takes complex numbers)
_UNARY: dict[str, tuple[np.ndarray, Any, bool]] = {
    "Neg": (REAL, np.negative, True),
    "Abs": (REAL, np.abs, False),
    "Sign": (REAL, np.sign, True),
    "Reciprocal": (REAL, lambda x: 1 / x, True),
    "Inv": (REAL, lambda x: 1 / x, True),
    "Square": (REAL, np.square, True),
    "Sqrt": (POSITIVE, np.sqrt, True),
    "Rsqrt": (POSITIVE, lambda x: 1 / np.sqrt(x), True),
    "Exp": (REAL, np.exp, True),
    "Expm1": (REAL, np.expm1, True),
    "Log": (POSITIVE, np.log, True),
    "Log1p": (POSITIVE, np.log1p, True),
    "Sin": (REAL, np.sin, True),
    "Cos": (REAL, np.cos, True),
    "Tan": (UNIT, np.tan, True),
    "Asin": (UNIT, np.arcsin, False),
    "Acos": (UNIT, np.arccos, False),
    "Atan": (REAL, np.arctan, False),
    "Sinh": (REAL, np.sinh, True),
    "Cosh": (REAL, np.cosh, True),
    "Tanh": (REAL, np.tanh, True),
    "Asinh": (REAL, np.arcsinh, True),
    "Acosh": (POSITIVE + np.float32(1), np.arccosh, False),
    "Atanh": (UNIT, np.arctanh, False),
    "Sigmoid": (REAL, lambda x: 1 / (1 + np.exp(-x)), True),
    "Erf": (REAL, special.erf, False),
    "Erfc": (REAL, special.erfc, False),
    "Erfinv": (UNIT, special.erfinv, False),
    "Ndtri": (_array(0.05, 0.3, 0.5, 0.9), special.ndtri, False),
    "Lgamma": (POSITIVE, special.gammaln, False),
    "Digamma": (POSITIVE, special.digamma, False),
    "BesselI0": (REAL, special.i0, False),
    "BesselI1": (REAL, special.i1, False),
    "BesselI0e": (REAL, special.i0e, False),
    "BesselI1e": (REAL, special.i1e, False),
}
for _op, (_domain, _reference, _complex) in _UNARY.items():
    _double = _domain.astype(np.float64).reshape(1, -1)
    CASES.append(OpCase(_op, (_domain,), expected=_reference, rtol=1e-4))
    CASES.append(OpCase(_op, (_double,), expected=_reference, grad=(), rtol=1e-8, name="double"))
    _small = _domain.astype(ml_dtypes.bfloat16)
    CASES.append(OpCase(_op, (_small,), grad=(), name="bfloat16"))
    CASES.append(OpCase(_op, (_domain.astype(np.float16),), grad=(), name="half"))
    if _complex:
        # The gradient of Sign is zero by definition, also where |z| = 1 makes a circle.
        _grad = () if _op == "Sign" else None
        CASES.append(OpCase(_op, (COMPLEX,), {}, _reference, _grad, rtol=1e-4, name="complex"))

SPECIAL = _array(0.0, -0.0, np.nan, np.inf, -np.inf, 1e30, -1.5)
CASES += [
    OpCase("Floor", (HALVES,), expected=np.floor, grad=()),
    OpCase("Ceil", (HALVES,), expected=np.ceil, grad=()),
    OpCase("Round", (HALVES,), expected=np.rint, grad=()),
    OpCase("Round", (np.array([3, -4], np.int32),), expected=lambda x: x, name="int"),
    OpCase("Rint", (HALVES,), expected=np.rint, grad=()),
    OpCase("IsNan", (SPECIAL,), expected=np.isnan),
    OpCase("IsInf", (SPECIAL,), expected=np.isinf),
    OpCase("IsFinite", (SPECIAL,), expected=np.isfinite),
    OpCase("Abs", (np.array([-5, 7, -(2**31)], np.int32),), expected=np.abs, name="int"),
    OpCase("Sign", (np.array([-5, 0, 9], np.int64),), expected=np.sign, name="int"),
    OpCase("Square", (np.array([3, -70000], np.int32),), expected=lambda x: x * x, name="wraps"),
    OpCase("Invert", (np.array([0, 5, -8], np.int16),), expected=np.invert),
    OpCase("PopulationCount", (np.int32([0, 7, -1]),), expected=lambda x: np.uint8([0, 3, 32])),
    OpCase("LogicalNot", (np.array([True, False]),), expected=np.logical_not),
    OpCase("Conj", (COMPLEX,), expected=np.conj),
    OpCase("Real", (COMPLEX,), {"Tout": np.float32}, expected=np.real),
    OpCase("Imag", (COMPLEX,), {"Tout": np.float32}, expected=np.imag),
    OpCase("Angle", (COMPLEX,), {"Tout": np.float32}, expected=np.angle),
    OpCase("ComplexAbs", (COMPLEX,), {"Tout": np.float32}, expected=np.abs),
    OpCase(
        "Complex",
        (REAL[:4].astype(np.float64), UNIT.reshape(4, 1).astype(np.float64)),
        {"Tout": np.complex128},
        expected=lambda r, i: r + 1j * i,
    ),
]

_Y, _DY = _array(0.25, 0.5, 0.75), _array(1.5, -2.0, 0.5)
CASES += [
    OpCase("SigmoidGrad", (_Y, _DY), expected=lambda y, d: d * y * (1 - y)),
    OpCase("TanhGrad", (_Y, _DY), expected=lambda y, d: d * (1 - y * y)),
    OpCase("SqrtGrad", (_Y, _DY), expected=lambda y, d: d * 0.5 / y),
    OpCase("RsqrtGrad", (_Y, _DY), expected=lambda y, d: -0.5 * d * y**3),
    OpCase("ReciprocalGrad", (_Y, _DY), expected=lambda y, d: -d * y * y),
    OpCase("InvGrad", (_Y, _DY), expected=lambda y, d: -d * y * y),
    OpCase(
        "BroadcastGradientArgs",
        (np.array([5, 1, 3], np.int32), np.array([4, 3], np.int32)),
        expected=lambda a, b: (np.array([1], np.int32), np.array([0], np.int32)),
        exact=False,
    ),
]

# -- casts --------------------------------------------------------------------------------------


def _cast(values: np.ndarray, target: Any, expected: Any, name: str, grad: Any = ()) -> OpCase:
    return OpCase("Cast", (values,), {"DstT": target}, lambda x: expected, grad, name=name)


_WIDE = _array(1.9, -1.9, 3e9, -3e9, np.nan, np.inf)
_LEAST = -(2**31)
CASES += [
    _cast(_array(1.9, -1.9, 0.5, -0.0), np.int32, np.int32([1, -1, 0, 0]), "cut"),
    _cast(_WIDE, np.int32, np.int32([1, -1] + [_LEAST] * 4), "out of range"),
    _cast(_WIDE[:4], np.int64, np.int64([1, -1, 3000000000, -3000000000]), "int64"),
    _cast(_array(300.5, -1.0, 7.9), np.uint8, np.uint8([44, 255, 7]), "uint8 wraps"),
    _cast(_array(3e9, 7.0, -1.0), np.uint32, np.uint32([3000000000, 7, 2**32 - 1]), "uint32"),
    _cast(
        np.array([1.5e19, 7.0, 2.0**63]),
        np.uint64,
        np.array([15 * 10**18, 7, 2**63], np.uint64),
        "uint64",
    ),
    _cast(np.array([300, -1, 128], np.int32), np.uint8, np.uint8([44, 255, 128]), "int wraps"),
    _cast(_array(0.0, -0.0, 0.3, np.nan), np.bool_, np.array([False, False, True, True]), "bool"),
    _cast(np.array([True, False]), np.float32, np.float32([1, 0]), "from bool"),
    _cast(COMPLEX, np.float32, COMPLEX.real, "complex to real"),
    _cast(REAL, np.complex64, REAL.astype(np.complex64), "real to complex", None),
    _cast(_array(1.0, 1e-8, 70000.0), np.float16, np.float16([1, 0, np.inf]), "half"),
    _cast(REAL, np.float64, REAL.astype(np.float64), "widen", None),
    _cast(REAL.astype(np.float64), np.float32, REAL, "narrow", None),
    _cast(REAL, dtypes.bfloat16, REAL.astype(ml_dtypes.bfloat16), "bfloat16"),
    _cast(REAL.astype(ml_dtypes.bfloat16), np.int8, np.int8([-3, -1, 0, 0, 1, 2]), "b to int8"),
]

# -- two inputs ---------------------------------------------------------------------------------

_X = np.array([[1.5, -2.0, 0.5], [3.0, -0.25, 2.0]], np.float32)
_V = np.array([[0.7], [-1.4]], np.float32)
_IX = np.array([[7, -7, 6], [-6, 0, 9]], np.int32)
_IV = np.array([3, -4, 5], np.int32)
_P, _Q = _array(0.5, 1.5, 2.5, 4.0), _array(2.0, 0.7, 3.0, 1.25)


def _trunc_div(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.trunc(x / y).astype(x.dtype)


_FLOAT_PAIRS: dict[str, Any] = {
    "Add": np.add,
    "AddV2": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Div": np.divide,
    "RealDiv": np.divide,
    "Maximum": np.maximum,
    "Minimum": np.minimum,
    "SquaredDifference": lambda x, y: (x - y) ** 2,
    "Atan2": np.arctan2,
    "FloorMod": np.mod,
    "TruncateMod": np.fmod,
    "Mod": np.fmod,
    "DivNoNan": np.divide,
    "MulNoNan": np.multiply,
    "Xdivy": np.divide,
}
for _op, _reference in _FLOAT_PAIRS.items():
    CASES.append(OpCase(_op, (_X, _V), expected=_reference, name="broadcast"))
    CASES.append(OpCase(_op, (_X, -_X + np.float32(0.7)), expected=_reference, name="same"))
    _small = (_X.astype(ml_dtypes.bfloat16), _V.astype(ml_dtypes.bfloat16))
    CASES.append(OpCase(_op, _small, grad=(), name="bfloat16"))
for _op in ("Add", "AddV2", "Sub", "Mul", "RealDiv", "DivNoNan", "MulNoNan", "Xdivy"):
    _pair = (COMPLEX, np.complex64(0.5 - 1.5j))
    CASES.append(OpCase(_op, _pair, expected=_FLOAT_PAIRS[_op], name="complex"))
_INT_PAIRS: dict[str, Any] = {
    "AddV2": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Div": _trunc_div,
    "TruncateDiv": _trunc_div,
    "FloorDiv": np.floor_divide,
    "FloorMod": np.mod,
    "TruncateMod": np.fmod,
    "Mod": np.fmod,
    "Maximum": np.maximum,
    "Minimum": np.minimum,
    "SquaredDifference": lambda x, y: (x - y) ** 2,
    "BitwiseAnd": np.bitwise_and,
    "BitwiseOr": np.bitwise_or,
    "BitwiseXor": np.bitwise_xor,
}
CASES += [OpCase(_op, (_IX, _IV), expected=_f, name="int") for _op, _f in _INT_PAIRS.items()]

_BASE = np.array([0.5, 2.0, 3.0], np.float32)
_WITH_ZERO = np.array([0.0, 2.0, 0.0, -1.0], np.float32)
CASES += [
    OpCase("FloorDiv", (_X, _V), expected=lambda x, y: np.floor(x / y), grad=()),
    OpCase("TruncateDiv", (_X, _V), expected=lambda x, y: np.trunc(x / y), grad=()),
    OpCase("Pow", (_BASE, _array(-1.5, 3.0, 0.5)), expected=np.power),
    OpCase("Pow", (_BASE, np.float32(2.0)), expected=np.power, name="scalar"),
    OpCase("Pow", (_array(-2.0, -3.0), _array(3.0, 2.0)), expected=np.power, grad=(0,), name="neg"),
    OpCase(
        "Pow",
        (np.array([2, -3, 0, 5], np.int32), np.array([10, 3, 0, 0], np.int32)),
        expected=np.power,
        name="int",
    ),
    OpCase(
        "DivNoNan",
        (_Q, _WITH_ZERO),
        grad=(0,),
        name="zeros",
        expected=lambda x, y: np.where(y == 0, 0, x / y),
    ),
    OpCase(
        "MulNoNan",
        (_array(np.inf, 2, np.nan, 3), _WITH_ZERO),
        grad=(),
        name="zeros",
        expected=lambda x, y: np.where(y == 0, 0, x * y),
    ),
    OpCase("Xlogy", (_Q, _P), expected=special.xlogy),
    OpCase(
        "Xlogy",
        (_WITH_ZERO, _array(0.0, 2.0, -1.0, 3.0)),
        grad=(),
        name="zeros",
        expected=special.xlogy,
    ),
    OpCase("Xlog1py", (_Q, _P), expected=special.xlog1py),
    OpCase(
        "Xdivy",
        (_WITH_ZERO, _array(0.0, 2.0, 0.0, 3.0)),
        grad=(),
        name="zeros",
        expected=lambda x, y: np.where(x == 0, 0, x / y),
    ),
    OpCase(
        "NextAfter",
        (_array(1.0, 0.0, 2.0), _array(2.0, -1.0, 2.0)),
        expected=np.nextafter,
        grad=(),
        rtol=0,
    ),
    OpCase(
        "LeftShift",
        (np.array([1, -3, 1], np.int32), np.array([4, 1, 40], np.int32)),
        expected=lambda x, y: np.left_shift(x, np.clip(y, 0, 31)),
    ),
    OpCase(
        "RightShift",
        (np.array([-16, 16, -5], np.int32), np.array([2, -1, 33], np.int32)),
        expected=lambda x, y: np.right_shift(x, np.clip(y, 0, 31)),
    ),
    OpCase(
        "RightShift",
        (np.array([200, 16], np.uint8), np.array([2, 1], np.uint8)),
        expected=np.right_shift,
        name="unsigned",
    ),
    OpCase("Igamma", (_P, _Q), expected=special.gammainc, rtol=1e-4),
    OpCase("Igammac", (_P, _Q), expected=special.gammaincc, rtol=1e-4),
    OpCase(
        "IgammaGradA",
        (_P.astype(np.float64), _Q.astype(np.float64)),
        grad=(),
        rtol=1e-5,
        expected=lambda a, x: (
            (special.gammainc(a + 1e-6, x) - special.gammainc(a - 1e-6, x)) / 2e-6
        ),
    ),
    OpCase("RandomGammaGrad", (_P, _Q), grad=()),
    OpCase(
        "Zeta",  # far below zero, where the first terms change sign: the sum written out
        (np.array([2.0, 2.0, 3.0]), np.array([-29.7, np.inf, -0.5])),
        expected=lambda x, q: np.array([15.046304144366, 0.0, 0.414398322117]),
        grad=(),
        name="negative",
    ),
    OpCase("Zeta", (_P + np.float32(1.5), _Q), expected=special.zeta, grad=(1,), rtol=1e-4),
    OpCase(
        "Polygamma",
        (np.float32([1, 2, 3, 1]), _Q),
        expected=special.polygamma,
        grad=(1,),
        rtol=1e-4,
    ),
    OpCase(
        "Betainc",
        (_P, _Q, _array(0.1, 0.4, 0.6, 0.9)),
        expected=special.betainc,
        grad=(2,),
        rtol=1e-4,
    ),
]

# -- comparisons --------------------------------------------------------------------------------

_A = _array(1.0, 2.0, np.nan, -0.0)
_B = np.array([[1.0, 3.0, np.nan, 0.0], [2.0, 1.0, 0.0, -1.0]], np.float32)
_COMPARISONS: dict[str, Any] = {
    "Equal": np.equal,
    "NotEqual": np.not_equal,
    "Less": np.less,
    "LessEqual": np.less_equal,
    "Greater": np.greater,
    "GreaterEqual": np.greater_equal,
}
for _op, _reference in _COMPARISONS.items():
    CASES.append(OpCase(_op, (_A, _B), expected=_reference))
    CASES.append(OpCase(_op, (_IX, _IV), expected=_reference, name="int"))
_BOOLS = (np.array([True, False, True]), np.array([[True], [False]]))
CASES += [
    OpCase("Equal", _BOOLS, expected=np.equal, name="bool"),
    OpCase("Equal", (COMPLEX, np.conj(COMPLEX)), expected=np.equal, name="complex"),
    OpCase(
        "NotEqual",
        (_A, _array(1.0, 2.0)),
        {"incompatible_shape_error": False},
        expected=lambda x, y: np.True_,
        exact=False,
        name="unfit",
    ),
    OpCase("LogicalAnd", _BOOLS, expected=np.logical_and),
    OpCase("LogicalOr", _BOOLS, expected=np.logical_or),
    OpCase(
        "ApproximateEqual",
        (_array(1.0, 2.0, np.nan), _array(1.05, 2.2, np.nan)),
        {"tolerance": 0.1},
        expected=lambda x, y: np.abs(x - y) < 0.1,
    ),
]

# -- many inputs --------------------------------------------------------------------------------

_VECTORS = np.array([[1.0, -2.0, 0.5], [0.25, 3.0, -1.0]], np.float32)
CASES += [
    OpCase("AddN", ([_X, -_X, _X * _X],), expected=lambda xs: xs[0] + xs[1] + xs[2]),
    OpCase("AddN", ([_X],), expected=lambda xs: xs[0], name="one"),
    OpCase("AccumulateNV2", ([_X, _X],), {"shape": [2, 3]}, expected=lambda xs: xs[0] + xs[1]),
    OpCase("Cross", (_VECTORS, _VECTORS[::-1].copy()), expected=np.cross),
    OpCase("ClipByValue", (_X, np.float32(-1.0), np.float32(1.75)), expected=np.clip),
    OpCase(
        "ClipByValue",
        (_X, _X - 1, _X * 0 + 1),
        expected=lambda t, a, b: np.maximum(np.minimum(t, b), a),
        grad=(0,),
        name="arrays",
    ),
    OpCase(
        "Bucketize",
        (_array(-5.0, 0.0, 10.0, 150.0),),
        {"boundaries": [0, 10, 100]},
        expected=lambda x: np.int32([0, 1, 2, 3]),
    ),
    OpCase(
        "Bucketize",
        (np.array([[5, 10]], np.int64),),
        {"boundaries": [0, 10, 100]},
        expected=lambda x: np.int32([[1, 2]]),
        name="int",
    ),
]
