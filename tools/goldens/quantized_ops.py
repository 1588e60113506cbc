"""Arithmetic, convolutions and pools of quantised tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import golden

RANGES = [(-6.0, 6.25), (0.0, 9.0), (-3.0, 1.5)]


def bytes_of(tf: Any, seed: int, *shape: int) -> Any:
    return tf.bitcast(
        tf.constant(np.random.RandomState(seed).randint(0, 256, shape), tf.uint8), tf.quint8
    )


def sums_of(tf: Any, seed: int, *shape: int) -> Any:
    values = np.random.RandomState(seed).randint(-400000, 900000, shape)
    return tf.bitcast(tf.constant(values, tf.int32), tf.qint32)


def named(tf: Any, name: str, found: Any) -> dict[str, Any]:
    integers, low, high = found
    return {name: tf.cast(integers, tf.int32), f"{name}_ends": tf.stack([low, high])}


@golden(rtol=1e-6, atol=1e-6)
def products(tf: Any) -> dict[str, Any]:
    raw, results = tf.raw_ops, {}
    for i, (low, high) in enumerate(RANGES):
        ends = {"min_a": low, "max_a": high, "min_b": -1.0, "max_b": 1.0 + i}
        for j, (a, b) in enumerate([((3, 4), (4, 5)), ((4, 3), (5, 4))]):
            found = raw.QuantizedMatMul(
                a=bytes_of(tf, i, *a), b=bytes_of(tf, i + 9, *b), **ends,
                Toutput=tf.qint32, transpose_a=bool(j), transpose_b=bool(j),
            )  # fmt: skip
            results.update(named(tf, f"matmul_{i}_{j}", found))
        found = raw.QuantizedMul(
            x=bytes_of(tf, i, 2, 3), y=bytes_of(tf, i + 5, 3), min_x=low, max_x=high, min_y=-2.0,
            max_y=1.0, Toutput=tf.qint32,
        )  # fmt: skip
        results.update(named(tf, f"mul_{i}", found))
    return results


def scaled(tf: Any, name: str, found: Any) -> dict[str, Any]:
    """Integers of 32 bits as floats: TensorFlow rounds their last bits in several ways."""
    integers, low, high = found
    floats = tf.cast(tf.bitcast(integers, tf.int32), tf.float32)
    return {name: floats * high / 2.0**31, f"{name}_ends": tf.stack([low, high])}


@golden(rtol=1e-4, atol=1e-4)
def added(tf: Any) -> dict[str, Any]:
    raw, results = tf.raw_ops, {}
    for i, (low, high) in enumerate(RANGES):
        found = raw.QuantizedBiasAdd(
            input=bytes_of(tf, i, 4, 3), bias=bytes_of(tf, i + 5, 3), min_input=low,
            max_input=high, min_bias=-2.0, max_bias=12.0, out_type=tf.qint32,
        )  # fmt: skip
        results.update(scaled(tf, f"bias_{i}", found))
        found = raw.QuantizedAdd(
            x=bytes_of(tf, i, 4, 3), y=bytes_of(tf, i + 5, 3), min_x=low, max_x=high, min_y=-2.0,
            max_y=12.0, Toutput=tf.qint32,
        )  # fmt: skip
        results.update(scaled(tf, f"add_{i}", found))
    return results


@golden(rtol=1e-6, atol=1e-6)
def narrowed(tf: Any) -> dict[str, Any]:
    raw, results = tf.raw_ops, {}
    for i, (low, high) in enumerate([(-6000.0, 6000.0), (-900.0, 1800.0), (-5.0, 5.0)]):
        sums = sums_of(tf, i, 5, 4)
        ends = raw.RequantizationRange(input=sums, input_min=low, input_max=high)
        results[f"range_{i}"] = tf.stack(list(ends))
        found = raw.QuantizeDownAndShrinkRange(
            input=sums, input_min=low, input_max=high, out_type=tf.quint8
        )
        results.update(named(tf, f"down_{i}", found))
        for j, (least, most) in enumerate([(-0.5, 1.5), (0.0, 3.0), (-1.0, 0.0)]):
            found = raw.Requantize(
                input=sums, input_min=low, input_max=high, requested_output_min=least,
                requested_output_max=most, out_type=tf.quint8,
            )  # fmt: skip
            results.update(named(tf, f"requantized_{i}_{j}", found))
    return results


@golden(rtol=1e-6, atol=1e-6)
def rectified(tf: Any) -> dict[str, Any]:
    raw, results = tf.raw_ops, {}
    for i, (low, high) in enumerate([*RANGES, (-1.0, 20.0)]):
        for name in ("QuantizedRelu", "QuantizedRelu6"):
            found = getattr(raw, name)(
                features=bytes_of(tf, i, 6), min_features=low, max_features=high,
                out_type=tf.quint8,
            )  # fmt: skip
            results.update(named(tf, f"{name}_{i}", found))
    return results


@golden(rtol=1e-6, atol=1e-6)
def images(tf: Any) -> dict[str, Any]:
    raw, results = tf.raw_ops, {}
    for i, (low, high) in enumerate(RANGES):
        pictures = bytes_of(tf, i, 2, 6, 5, 3)
        for padding in ("SAME", "VALID"):
            for stride in (1, 2):
                found = raw.QuantizedConv2D(
                    input=pictures, filter=bytes_of(tf, i + 7, 3, 2, 3, 4), min_input=low,
                    max_input=high, min_filter=-1.0, max_filter=2.0, out_type=tf.qint32,
                    strides=[1, stride, stride, 1], padding=padding,
                )  # fmt: skip
                results.update(named(tf, f"conv_{i}_{padding}_{stride}", found))
                for name in ("QuantizedMaxPool", "QuantizedAvgPool"):
                    found = getattr(raw, name)(
                        input=pictures, min_input=low, max_input=high, ksize=[1, 2, 3, 1],
                        strides=[1, stride, stride, 1], padding=padding,
                    )  # fmt: skip
                    results.update(named(tf, f"{name}_{i}_{padding}_{stride}", found))
    return results
