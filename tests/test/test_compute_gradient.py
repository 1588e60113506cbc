"""tf.test.compute_gradient."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as tf


def test_both_jacobians_agree():
    x = tf.placeholder(tf.float64, [3])
    y = tf.stack([tf.reduce_sum(x * x), x[0] * x[2]])
    with tf.Session():
        theory, numeric = tf.test.compute_gradient(x, [3], y, [2], x_init_value=[1.0, 2.0, 3.0])
        np.testing.assert_allclose(theory, [[2, 3], [4, 0], [6, 1]])
        np.testing.assert_allclose(numeric, theory, atol=1e-8)
        assert tf.test.compute_gradient_error(x, [3], y, [2]) < 1e-8


def test_several_inputs_and_a_wrong_gradient():
    @tf.RegisterGradient("TestDoubled")
    def doubled(op, grad):
        return 2.0 * grad

    a, b = tf.constant([1.0, 2.0]), tf.constant([3.0, 4.0])
    with tf.get_default_graph().gradient_override_map({"Identity": "TestDoubled"}):
        y = a * tf.identity(b)
    with tf.Session():
        pairs = tf.test.compute_gradient([a, b], [[2], [2]], y, [2])
        np.testing.assert_allclose(*pairs[0], atol=1e-3)
        assert np.abs(pairs[1][0] - pairs[1][1]).max() > 0.1


def test_complex_parts_count_separately():
    x = tf.placeholder(tf.complex128, [2])
    y = x * x
    with tf.Session():
        theory, numeric = tf.test.compute_gradient(x, [2], y, [2], x_init_value=[1 + 2j, 3 - 1j])
    assert theory.shape == (4, 4)
    np.testing.assert_allclose(numeric, theory, atol=1e-6)


def test_a_session_is_needed():
    x = tf.constant([1.0])
    with pytest.raises(ValueError, match="needs a default session"):
        tf.test.compute_gradient(x, [1], x * x, [1])
