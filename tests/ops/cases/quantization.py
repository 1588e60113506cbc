"""Fake quantisation: values against NumPy, and gradients that are not those of the kernel."""

from __future__ import annotations

import numpy as np

import headrace as tf
from headrace.harness.op_cases import OpCase

X = np.linspace(-7.33, 8.17, 12, dtype=np.float32).reshape(3, 4)
G = np.arange(12, dtype=np.float32).reshape(3, 4)


def _rounded(low, high, levels, first=0):
    """By the definition: to the nearest of the steps, one of which is 0."""
    step = (high - low) / (levels - first)
    start = -np.clip(np.floor(first - low / step + 0.5), first, levels) + first
    steps = np.clip(np.round(X / step), start, start + levels - first)
    return (steps * step).astype(np.float32)


def _parts(low, high):
    return G * ((low <= X) & (high >= X)), G * (low > X), G * (high < X)


LOW, HIGH = np.float32([-1, -2, -3, -4]), np.float32([4, 3, 2, 1])

CASES = [
    OpCase(
        "FakeQuantWithMinMaxArgs",
        (X,),
        {"min": -5.0, "max": 5.0, "num_bits": 4, "narrow_range": True},
        lambda x: _rounded(-5.0, 5.0, 15, 1),
        grad=(),
    ),
    OpCase(
        "FakeQuantWithMinMaxArgsGradient",
        (G, X),
        {"min": -2.0, "max": 3.1, "num_bits": 8},
        lambda g, x: _parts(-2.0, 3.1)[0],
        grad=(),
    ),
    OpCase(
        "FakeQuantWithMinMaxVars",
        (X, np.float32(0), np.float32(6)),
        {"num_bits": 3},
        lambda x, low, high: _rounded(0.0, 6.0, 7),
        grad=(),
    ),
    OpCase(
        "FakeQuantWithMinMaxVarsGradient",
        (G, X, np.float32(0), np.float32(6)),
        {"num_bits": 3},
        lambda g, x, low, high: tuple(
            part if i == 0 else part.sum() for i, part in enumerate(_parts(0, 6))
        ),
        grad=(),
    ),
    OpCase(
        "FakeQuantWithMinMaxVarsPerChannel",
        (X, LOW * 3, HIGH * 3),
        {"num_bits": 4},
        lambda x, low, high: _rounded(LOW * 3, HIGH * 3, 15),
        grad=(),
    ),
    OpCase(
        "FakeQuantWithMinMaxVarsPerChannelGradient",
        (G, X, LOW * 3, HIGH * 3),
        {"num_bits": 4},
        lambda g, x, low, high: tuple(
            part if i == 0 else part.sum(0) for i, part in enumerate(_parts(LOW * 3, HIGH * 3))
        ),
        grad=(),
    ),
]

for _options in (
    {"T": tf.quint8},
    {"T": tf.qint8, "mode": "MIN_FIRST"},
    {"T": tf.qint16, "mode": "SCALED", "narrow_range": True},
    {"T": tf.quint16, "mode": "SCALED", "round_mode": "HALF_TO_EVEN"},
):
    CASES.append(OpCase("QuantizeV2", (X, np.float32(-5), np.float32(6)), _options))
CASES.append(OpCase("QuantizeV2", (X, LOW, HIGH), {"T": tf.qint8, "axis": 1}))
for _options in (
    {},
    {"signed_input": False, "num_bits": 5},
    {"range_given": True, "narrow_range": True},
    {"axis": 1, "round_mode": "HALF_UP"},
):
    CASES.append(
        OpCase("QuantizeAndDequantizeV2", (X, np.float32(-5), np.float32(6)), _options, grad=())
    )
