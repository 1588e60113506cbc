"""Reductions and positions of extremes: axes, ties, NaN, nothing to reduce."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from headrace.harness.op_cases import OpCase

_RNG = np.random.default_rng(3)
X = _RNG.uniform(0.5, 2.0, (2, 3, 4)).astype(np.float32)
I = np.array([[3, -1, 2], [7, 7, 0]], np.int32)  # noqa: E741
NAN = np.array([[np.nan, 1, 2], [1, np.nan, 3], [1, 5, np.nan]], np.float32)
CASES: list[OpCase] = []


def _axes(*axes: int) -> np.ndarray:
    return np.array(axes, np.int32)


def _norm(x: np.ndarray, axis: Any, keepdims: bool = False) -> Any:
    return np.sqrt(np.sum(x * x, axis=axis, keepdims=keepdims))


_REFERENCES: dict[str, Any] = {
    "Sum": np.sum,
    "Mean": np.mean,
    "Prod": np.prod,
    "Max": np.max,
    "Min": np.min,
    "EuclideanNorm": _norm,
}


def _on(reference: Any, keepdims: bool = False) -> Any:
    return lambda x, axes: reference(x, axis=tuple(np.ravel(axes)), keepdims=keepdims)


for _op, _f in _REFERENCES.items():
    CASES += [
        OpCase(_op, (X, _axes(1)), expected=_on(_f), name="middle"),
        OpCase(_op, (X, _axes(0, -1)), expected=_on(_f), name="outer"),
        OpCase(_op, (X, _axes(0, 1, 2)), expected=_on(_f), name="all"),
        OpCase(_op, (X, _axes(2)), {"keep_dims": True}, expected=_on(_f, True), name="keep"),
        OpCase(_op, (X, np.array(0, np.int64)), expected=_on(_f), name="scalar axis"),
        OpCase(_op, (X, np.array([], np.int32)), expected=lambda x, a: x, name="no axes"),
        OpCase(_op, (X.astype(ml_dtypes.bfloat16), _axes(1)), grad=(), name="bfloat16"),
        OpCase(_op, (X[:0], _axes(0)), grad=(), name="empty"),
    ]
CASES += [
    OpCase("Sum", (I, _axes(1)), expected=lambda x, a: np.int32([4, 14]), name="int"),
    OpCase(
        "Mean", (I - 4, _axes(1)), expected=lambda x, a: np.int32([-2, 0]), name="int truncates"
    ),
    OpCase("Prod", (I, _axes(0)), expected=lambda x, a: np.int32([21, -7, 0]), name="int"),
    OpCase(
        "Prod", (np.array([[0.0, 2, 3], [0, 4, 0]]), _axes(1)), expected=_on(np.prod), name="zeros"
    ),
    OpCase("Max", (I, _axes(1)), expected=_on(np.max), name="int"),
    OpCase("Max", (I.astype(np.float64), _axes(0, 1)), expected=_on(np.max), grad=(), name="ties"),
    OpCase("Max", (NAN, _axes(1)), expected=_on(np.max), grad=(), name="nan"),
    OpCase("Min", (X[:0].astype(np.int64), _axes(0)), grad=(), name="empty int"),
    OpCase("Sum", (X + 1j * X[::-1], _axes(1)), expected=_on(np.sum), name="complex"),
    OpCase("All", (I > -1, _axes(1)), expected=_on(np.all)),
    OpCase("All", (I > -1, _axes(0, 1)), {"keep_dims": True}, expected=_on(np.all, True)),
    OpCase("Any", (I > 6, _axes(1)), expected=_on(np.any)),
    OpCase("Any", (I[:0] > 6, _axes(0)), expected=_on(np.any), name="empty"),
]


def _at(values: Any, dtype: Any = np.int64) -> Any:
    return lambda x, axis: np.array(values, dtype)


_TIES = np.array([[1.0, 5.0, 5.0, 2.0], [0.0, -0.0, -1.0, -1.0]], np.float32)
CASES += [
    OpCase("ArgMax", (_TIES, np.array(1, np.int32)), expected=_at([1, 0]), name="first of ties"),
    OpCase("ArgMax", (_TIES, np.array(0, np.int32)), expected=_at([0, 0, 0, 0]), name="axis 0"),
    OpCase("ArgMax", (NAN, np.array(-1, np.int32)), expected=_at([2, 2, 1]), name="nan"),
    OpCase("ArgMax", (I, np.array(1)), {"output_type": np.int32}, expected=_at([0, 0], np.int32)),
    OpCase("ArgMax", (I > 2, np.array(0)), expected=_at([0, 1, 0]), name="bool"),
    OpCase("ArgMin", (_TIES, np.array(1, np.int32)), expected=_at([0, 2]), name="first of ties"),
    OpCase("ArgMin", (NAN, np.array(1, np.int32)), expected=_at([1, 0, 0]), name="nan"),
]

for _like, _axes_of in (
    (X[:1, :, :1], (0, 2)),
    (X[0, :1], (0, 1)),
    (X, ()),
    (X[0, 0, 0], (0, 1, 2)),
):
    CASES.append(
        OpCase(
            "SumLike",
            (X, _like),
            expected=lambda x, like, a=_axes_of: np.sum(x, axis=a).reshape(like.shape),
            grad=(0,),
            name="x".join(map(str, _like.shape)),
        )
    )
