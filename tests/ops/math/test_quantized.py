"""Quantised tensors: both forms of each op, errors, zero sizes. The values are in the goldens."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as tf

pytestmark = pytest.mark.usefixtures("interpret")
MODES = ("MIN_COMBINED", "MIN_FIRST", "SCALED")
KINDS = (tf.quint8, tf.qint8, tf.quint16, tf.qint16)


def run(fetches, feeds=None):
    with tf.Session() as session:
        return session.run(fetches, feeds)


@pytest.mark.parametrize("mode", MODES)
def test_there_and_back_loses_half_a_step_at_most(mode):
    x = tf.placeholder(tf.float32, [None])
    values = np.linspace(-3.9, 3.9, 301, dtype=np.float32)
    found = {}
    for kind in KINDS:
        q, low, high = tf.quantize(x, -4.0, 4.0, kind, mode)
        assert q.dtype is kind
        found[kind] = tf.dequantize(q, low, high, mode)
    for kind, back in run(found, {x: values}).items():
        inside = values >= 0 if mode == "SCALED" and "u" in kind.name else values == values
        step = 8.0 / 2 ** (8 * kind.size)
        np.testing.assert_allclose(back[inside], values[inside], atol=1.01 * step)


def test_values_outside_of_the_range_are_clipped():
    q, low, high = tf.quantization.quantize([-9.0, 9.0, np.inf, -np.inf], -1.0, 2.0, tf.qint8)
    assert run(tf.cast(q, tf.int32)).tolist() == [-128, 127, 127, -128]
    assert run([low, high]) == [-1.0, 2.0]


def test_the_largest_integers_do_not_overflow():
    """TensorFlow's int32 do."""
    for mode in MODES:
        q, low, high = tf.quantize([-2.0, 3.0], -2.0, 2.0, tf.qint32, mode)
        np.testing.assert_allclose(run(tf.dequantize(q, low, high, mode)), [-2, 2], rtol=1e-5)


def test_empty_tensors():
    q, low, high = tf.quantize(np.zeros((0, 3), np.float32), 0.0, 1.0, tf.quint8)
    joined = tf.quantized_concat(0, [q, q], [low, low], [high, high])
    assert run(joined[0]).shape == (0, 3)
    assert run(tf.dequantize(q, low, high)).shape == (0, 3)


def test_joining_shapes_and_ranges():
    x = tf.placeholder(tf.float32, [2, None])
    parts = [tf.quantize(x * s, -s, s, tf.qint8, "MIN_FIRST") for s in (1.0, 4.0)]
    q, low, high = tf.quantized_concat(1, *zip(*parts, strict=True))
    assert q.shape.as_list() == [2, None]
    assert q.dtype is tf.qint8
    value, ends = run([tf.dequantize(q, low, high, "MIN_FIRST"), [low, high]], {x: np.eye(2)})
    np.testing.assert_allclose(value, [[1, 0, 4, 0], [0, 1, 0, 4]], atol=0.04)
    assert ends == [-4.0, 4.0]
    fixed = tf.quantized_concat(0, [parts[0][0], parts[1][0]], [-1.0, -4.0], [1.0, 4.0])[0]
    assert fixed.shape.as_list() == [4, None]


def test_gradients_pass_a_round_trip_and_end_at_integers():
    x = tf.constant([0.3, -0.7])
    y = tf.quantization.quantize_and_dequantize(x, -1.0, 1.0, range_given=True)
    assert run(tf.gradients(y * 3.0, x)[0]).tolist() == [3.0, 3.0]
    q, low, high = tf.quantize(x, -1.0, 1.0, tf.qint8)
    assert tf.gradients(tf.dequantize(q, low, high), x) == [None]


def test_what_cannot_be():
    with pytest.raises(ValueError, match="not in the list of allowed values"):
        tf.quantize([1.0], 0.0, 1.0, tf.quint8, mode="BEST")
    with pytest.raises(ValueError, match="only supported for mode 'SCALED'"):
        tf.quantize([1.0], 0.0, 1.0, tf.quint8, round_mode="HALF_TO_EVEN")
    with pytest.raises(TypeError, match="not in the list of allowed values"):
        tf.quantize([1.0], 0.0, 1.0, tf.uint8)
    with pytest.raises(ValueError, match="Axis 2 is not one of 1 dim"):
        tf.quantize([1.0], [0.0], [1.0], tf.quint8, axis=2)
    with pytest.raises(ValueError, match="num_bits is out of range: 64"):
        tf.quantization.quantize_and_dequantize([1.0], 0.0, 1.0, num_bits=64)
    low = tf.placeholder(tf.float32, [])
    q = tf.quantize([1.0], low, 1.0, tf.quint8)[0]
    again = tf.quantization.quantize_and_dequantize([1.0], low, 1.0, range_given=True)
    with tf.Session() as session:
        with pytest.raises(tf.errors.InvalidArgumentError, match="must not be above max_range"):
            session.run(q, {low: 2.0})
        with pytest.raises(tf.errors.InvalidArgumentError, match="must not be above input_max"):
            session.run(again, {low: 2.0})
