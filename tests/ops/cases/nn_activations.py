"""Activations, bias addition, softmax and cross-entropies, the best predictions."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from headrace.harness.op_cases import OpCase

_RNG = np.random.default_rng(21)
CASES: list[OpCase] = []

#: No element at a kink, so that finite differences are defined.
X = np.float32([[-30.0, -2.5, -0.3, 0.4], [0.9, 3.5, 5.8, 6.3], [-0.1, 40.0, 1.5, -7.0]])
G = _RNG.standard_normal(X.shape).astype(np.float32)
_ALPHA, _SCALE = 1.6732632423543772, 1.0507009873554805


def _softplus(x: Any) -> Any:
    return np.logaddexp(x, np.zeros_like(x))


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x.astype(np.float64)))


_FORWARD = {
    "Relu": lambda x: np.where(x > 0, x, 0).astype(x.dtype),
    "Relu6": lambda x: np.clip(x, 0, 6),
    "Elu": lambda x: np.where(x < 0, np.expm1(np.minimum(x, 0)), x),
    "Selu": lambda x: _SCALE * np.where(x < 0, _ALPHA * np.expm1(np.minimum(x, 0)), x),
    "Softplus": _softplus,
    "Softsign": lambda x: x / (1 + np.abs(x)),
}
for _name, _want in _FORWARD.items():
    CASES.append(OpCase(_name, (X,), expected=_want))
CASES += [
    OpCase("Relu", (np.int32([[-3, 0, 5]]),), expected=lambda x: np.maximum(x, 0), name="int"),
    OpCase("Relu6", (np.uint8([[3, 0, 50]]),), expected=lambda x: np.minimum(x, 6), name="uint8"),
    OpCase(
        "Relu",
        (np.float32([[np.nan, -np.inf, np.inf]]),),
        expected=lambda x: np.float32([[np.nan, 0, np.inf]]),
        grad=(),
        name="not_finite",
    ),
    OpCase("Elu", (X.astype(np.float16),), name="half", atol=2e-3, grad=()),
    OpCase("Softplus", (X.astype(ml_dtypes.bfloat16),), name="bfloat16", grad=()),
    OpCase(
        "LeakyRelu",
        (X,),
        {"alpha": 0.3},
        expected=lambda x: np.where(x > 0, x, np.float32(0.3) * x),
    ),
    OpCase(
        "LeakyReluGrad",
        (G, X),
        {"alpha": 0.3},
        expected=lambda g, x: np.where(x > 0, g, np.float32(0.3) * g),
    ),
    OpCase("ReluGrad", (G, X), expected=lambda g, x: np.where(x > 0, g, 0)),
    OpCase("Relu6Grad", (G, X), expected=lambda g, x: np.where((x > 0) & (x < 6), g, 0)),
    OpCase("EluGrad", (G, np.tanh(X)), expected=lambda g, y: np.where(y < 0, g * (y + 1), g)),
    OpCase(
        "SeluGrad",
        (G, np.tanh(X)),
        expected=lambda g, y: np.where(y < 0, g * (y + _SCALE * _ALPHA), g * _SCALE),
    ),
    OpCase("SoftplusGrad", (G, X), expected=lambda g, x: (g * _sigmoid(x)).astype(np.float32)),
    OpCase("SoftsignGrad", (G, X), expected=lambda g, x: g / (1 + np.abs(x)) ** 2),
]

# -- bias ---------------------------------------------------------------------------------------

_IMAGE = _RNG.standard_normal((2, 3, 4, 5)).astype(np.float32)
_LAST, _SECOND = np.float32([1, 2, 3, 4, 5]), np.float32([1, 2, 3])
CASES += [
    OpCase("BiasAdd", (_IMAGE, _LAST), expected=np.add),
    OpCase(
        "BiasAdd",
        (_IMAGE, _SECOND),
        {"data_format": "NCHW"},
        expected=lambda x, b: x + b.reshape(-1, 1, 1),
        name="NCHW",
    ),
    OpCase("BiasAdd", (np.int32([[1, 2], [3, 4], [5, 6]]), np.int32([7, 8])), expected=np.add),
    OpCase("BiasAddV1", (_IMAGE, _LAST), expected=np.add),
    OpCase("BiasAddGrad", (_IMAGE,), expected=lambda g: g.sum((0, 1, 2))),
    OpCase(
        "BiasAddGrad",
        (_IMAGE,),
        {"data_format": "NCHW"},
        expected=lambda g: g.sum((0, 2, 3)),
        name="NCHW",
    ),
    OpCase("BiasAddGrad", (np.zeros((0, 3), np.float32),), expected=lambda g: np.zeros(3, "f")),
]

# -- softmax ------------------------------------------------------------------------------------

_LOGITS = _RNG.standard_normal((3, 5)).astype(np.float32) * 4
_ROWS = _RNG.random((3, 5)).astype(np.float32)
_ROWS /= _ROWS.sum(1, keepdims=True)


def _probabilities(x: Any) -> Any:
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def _entropy(x: Any, labels: Any) -> Any:
    p = _probabilities(x)
    return -(labels * np.log(p)).sum(-1), p - labels


def _sparse_entropy(x: Any, labels: Any) -> Any:
    return _entropy(x, np.eye(x.shape[1], dtype=x.dtype)[labels])


CASES += [
    OpCase("Softmax", (_LOGITS,), expected=_probabilities),
    OpCase("Softmax", (_LOGITS.reshape(3, 1, 5),), expected=_probabilities, name="rank3"),
    OpCase("Softmax", (np.float32([1000, 0, -np.inf]),), expected=_probabilities, grad=()),
    OpCase("Softmax", (np.zeros((2, 0), np.float32),), expected=lambda x: x, name="empty", grad=()),
    OpCase("LogSoftmax", (_LOGITS,), expected=lambda x: np.log(_probabilities(x))),
    OpCase(
        "SoftmaxGrad",
        (G, _probabilities(X)),
        expected=lambda g, y: (g - (g * y).sum(-1, keepdims=True)) * y,
    ),
    OpCase(
        "LogSoftmaxGrad",
        (G, _probabilities(X)),
        expected=lambda g, y: g - y * g.sum(-1, keepdims=True),
    ),
    OpCase("SoftmaxCrossEntropyWithLogits", (_LOGITS, _ROWS), expected=_entropy, grad=(0,)),
    OpCase(
        "SoftmaxCrossEntropyWithLogits",
        (_LOGITS, _ROWS[:1]),
        expected=_entropy,
        grad=(),
        name="one_row_of_labels",
    ),
    OpCase(
        "SparseSoftmaxCrossEntropyWithLogits",
        (_LOGITS, np.int64([4, 0, 2])),
        expected=_sparse_entropy,
    ),
    OpCase(
        "SparseSoftmaxCrossEntropyWithLogits",
        (_LOGITS, np.int32([1, 1, 3])),
        expected=_sparse_entropy,
        name="int32",
    ),
    OpCase("L2Loss", (_LOGITS,), expected=lambda x: (x * x).sum(dtype=x.dtype) / 2),
    OpCase(
        "FiniteOrZero",
        (np.float32([1, np.inf, -np.inf, np.nan]),),
        expected=lambda x: np.float32([1, 0, 0, 0]),
    ),
]

# -- the best predictions -----------------------------------------------------------------------

_SCORES = np.float32(
    [
        [0.1, 0.3, 0.2, 0.4],  # the target is third
        [0.5, 0.5, 0.5, 0.1],  # a tie of three
        [0.1, 0.9, np.nan, 0.2],  # nothing can be said
        [0.1, 0.9, 0.3, 0.2],  # the target is no class
        [9.0, 0.9, 0.3, 0.2],  # the target is first
        [np.inf, 0.9, 0.3, 0.2],
    ]
)
_TARGETS = [2, 1, 1, 4, 0, 0]
CASES += [
    OpCase(
        "InTopKV2",
        (_SCORES, np.int32(_TARGETS), np.int32(k)),
        expected=lambda *_, want=want: np.array(want),
        name=f"k{k}",
    )
    for k, want in (
        (0, [False] * 6),
        (1, [False, True, False, False, True, False]),
        (3, [True, True, False, False, True, False]),
    )
]
CASES.append(
    OpCase(
        "InTopK",
        (_SCORES, np.int64(_TARGETS)),
        {"k": 2},
        expected=lambda *_: np.array([False, True, False, False, True, False]),
    )
)
