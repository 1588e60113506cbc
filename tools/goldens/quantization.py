"""Fake quantisation and its gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import golden

# No number is half-way between two steps.
X = np.linspace(-8.03, 9.01, 35).astype(np.float32).reshape(7, 5)


@golden(rtol=1e-6, atol=1e-6)
def fake_quant(tf: Any) -> dict[str, Any]:
    results = {}
    for i, kwargs in enumerate(
        [{}, {"min": -1.0, "max": 3.0, "num_bits": 4}, {"min": 1.0, "narrow_range": True}]
    ):
        x = tf.constant(X)
        y = tf.fake_quant_with_min_max_args(x, **kwargs)
        results[f"args_{i}"] = y
        results[f"args_{i}_gradient"] = tf.gradients(y, x)[0]
    for i, (low, high) in enumerate([(-2.0, 5.0), (0.0, 0.0), (0.5, 7.0)]):
        ends = [tf.constant(X), tf.constant(low), tf.constant(high)]
        y = tf.fake_quant_with_min_max_vars(*ends)
        results[f"vars_{i}"] = y
        for j, gradient in enumerate(tf.gradients(y * y, ends)):
            results[f"vars_{i}_gradient_{j}"] = gradient
    low, high = np.float32([-1, -2, 0, -8, 1]), np.float32([1, 3, 0, 8, 2])
    ends = [tf.constant(X), tf.constant(low), tf.constant(high)]
    y = tf.fake_quant_with_min_max_vars_per_channel(*ends, num_bits=6)
    results["channels"] = y
    for j, gradient in enumerate(tf.gradients(y, ends)):
        results[f"channels_gradient_{j}"] = gradient
    return results


KINDS = ("quint8", "qint8", "quint16", "qint16", "qint32")
MODES = ("MIN_COMBINED", "MIN_FIRST", "SCALED")
# No number is half-way between two steps, or close to that.
Y = np.float32([-7.01, -1.93, -0.51, -0.0603, 0.0, 0.0712, 0.33, 1.01, 2.72, 5.97, 8.88, 11.3])


def range_of(i: int) -> Any:
    return [(-6.0, 6.1), (0.0, 9.0), (1.0, 1.0), (-3.0, -1.0)][i]


@golden(rtol=1e-5, atol=1e-5)
def quantized(tf: Any) -> dict[str, Any]:
    """To integers and back, in all modes.

    Of qint32 only what a float32 can tell apart, and nothing at the upper end: TensorFlow's
    numbers overflow there.
    """
    results = {}
    for kind in KINDS:
        for mode in MODES:
            for i in range(4):
                low, high = range_of(i)
                dtype = getattr(tf, kind)
                x = tf.constant(Y[:4] if kind == "qint32" else Y)
                q, a, b = tf.quantization.quantize(x, low, high, dtype, mode=mode)
                key = f"{kind}_{mode}_{i}"
                if kind != "qint32":
                    results[key] = tf.cast(q, tf.int32)
                results[f"{key}_ends"] = tf.stack([a, b])
                results[f"{key}_back"] = tf.quantization.dequantize(q, a, b, mode=mode)
    return results


@golden(rtol=1e-5, atol=1e-5)
def quantized_options(tf: Any) -> dict[str, Any]:
    results = {}
    x = tf.constant(Y.reshape(3, 4))
    ends = np.float32([-8, -1, 0, -2]), np.float32([1, 2, 3, 12])
    for mode in ("MIN_COMBINED", "SCALED"):  # TensorFlow has no axis for MIN_FIRST
        for axis, take in ((1, slice(None)), (0, slice(0, 3))):
            low, high = ends[0][take], ends[1][take]
            q, a, b = tf.quantization.quantize(x, low, high, tf.qint8, mode=mode, axis=axis)
            key = f"{mode}_{axis}"
            results[key] = tf.cast(q, tf.int32)
            results[f"{key}_ends"] = tf.stack([a, b])
            back = tf.quantization.dequantize(q, a, b, mode=mode, axis=axis)
            results[f"{key}_back"] = back
    for narrow in (False, True):
        q, a, b = tf.quantization.quantize(
            tf.constant([-1.0, -0.5, 0.5, 1.5, 2.5]),
            -127.0,
            127.0,
            tf.qint8,
            mode="SCALED",
            round_mode="HALF_TO_EVEN",
            narrow_range=narrow,
        )
        results[f"even_{narrow}"] = tf.cast(q, tf.int32)
        results[f"even_{narrow}_ends"] = tf.stack([a, b])
        results[f"even_{narrow}_back"] = tf.quantization.dequantize(
            q, a, b, mode="SCALED", narrow_range=narrow
        )
    return results


@golden(rtol=1e-5, atol=1e-5)
def quantized_join(tf: Any) -> dict[str, Any]:
    results = {}
    for kind in ("quint8", "qint32"):
        parts, lows, highs = [], [], []
        for low, high in ((0.0, 2.0), (-1.1, 5.0), (-2.0, 1.0)):
            dtype = getattr(tf, kind)
            q, a, b = tf.quantization.quantize(
                tf.constant(Y.reshape(3, 4)), low, high, dtype, mode="MIN_FIRST"
            )
            parts.append(q)
            lows.append(a)
            highs.append(b)
        for axis in (0, 1):
            q, a, b = tf.quantization.quantized_concat(axis, parts, lows, highs)
            if kind == "quint8":
                results[f"{kind}_{axis}"] = tf.cast(q, tf.int32)
            results[f"{kind}_{axis}_ends"] = tf.stack([a, b])
            results[f"{kind}_{axis}_back"] = tf.quantization.dequantize(q, a, b, mode="MIN_FIRST")
    return results


@golden(rtol=1e-5, atol=1e-5)
def round_trip(tf: Any) -> dict[str, Any]:
    results = {}
    trip = tf.quantization.quantize_and_dequantize
    for i, options in enumerate(
        [
            {},
            {"signed_input": False},
            {"num_bits": 4},
            {"num_bits": 4, "narrow_range": True},
            {"range_given": True},
            {"range_given": True, "num_bits": 5, "round_mode": "HALF_UP"},
        ]
    ):
        x = tf.constant(Y.reshape(3, 4))
        y = trip(x, -5.0, 6.5, **options)
        results[str(i)] = y
        results[f"{i}_gradient"] = tf.gradients(y * y, x)[0]
        results[f"{i}_double"] = trip(tf.constant(Y, tf.float64), -5.0, 6.5, **options)
    return results
