"""What a first, interpreted run gives, later ones give too: types and values of single ops."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as tf


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_quantised_and_back_keeps_its_type(dtype, interpret):
    x = tf.placeholder(dtype, [3])
    y = tf.quantization.quantize_and_dequantize(x, -6.0, 6.0, range_given=True)
    with tf.Session() as sess:
        got = sess.run(y, {x: [-6.0, 1.0, 7.0]})
    assert got.dtype == tf.as_dtype(dtype).as_numpy_dtype
    np.testing.assert_allclose(got.astype(np.float32), [-6.0, 1.0, 6.0], atol=0.07)


def test_halves_between_two_steps(interpret):
    x = tf.placeholder(tf.float32, [2])
    y = tf.quantization.fake_quant_with_min_max_args(x, -6.0, 6.0)
    with tf.Session() as sess:
        got = sess.run(y, {x: [2.0, -3.875]})
    np.testing.assert_allclose(got, [2.0235295, -3.8588235], rtol=1e-6)


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "uint64"])
def test_unsigned_integers_have_no_absolute_value(dtype):
    with pytest.raises(TypeError, match="not in the list of allowed values"):
        tf.abs(tf.placeholder(dtype, [2]))


@pytest.mark.parametrize("dtype", ["uint8", "int32", "float16"])
def test_what_is_nearly_equal(dtype, interpret):
    x, y = tf.placeholder(dtype, [3]), tf.placeholder(dtype, [3])
    near = tf.math.approximate_equal(x, y, tolerance=2.0)
    with tf.Session() as sess:
        assert sess.run(near, {x: [1, 5, 9], y: [1, 4, 5]}).tolist() == [True, True, False]
