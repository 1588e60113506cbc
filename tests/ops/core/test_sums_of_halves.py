"""Thousands of floats of 16 bits are added up in 32: alone they stop at 256 or 2,048."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as tf

MANY = 4096
FIRST = np.zeros(MANY, np.int32)
PLACES = FIRST[:, None]
TARGETS = np.ones((1, MANY), np.float32) / MANY

#: What is computed of ones, and what comes out.
VALUES = {
    "l2_loss": (tf.nn.l2_loss, [MANY], MANY / 2),
    "softmax": (tf.nn.softmax, [1, MANY], 1 / MANY),
    "log_softmax": (tf.nn.log_softmax, [1, MANY], -np.log(MANY)),
    "scatter_nd": (lambda x: tf.scatter_nd(PLACES, x, [1]), [MANY], MANY),
    "tensor_scatter_sub": (
        lambda x: tf.tensor_scatter_sub(tf.zeros([1], x.dtype), PLACES, x),
        [MANY],
        -MANY,
    ),
    "add_n": (lambda x: tf.add_n([x] * 600), [2], 600),
    "add_n of different tensors": (lambda x: tf.add_n(tf.unstack(x)), [600], 600),
    "cross entropy": (
        lambda x: tf.nn.softmax_cross_entropy_with_logits_v2(
            logits=x, labels=tf.constant(TARGETS, x.dtype)
        ),
        [1, MANY],
        np.log(MANY),
    ),
}
GRADIENTS = {
    "bias": (lambda x: tf.nn.bias_add(tf.zeros([MANY, 2], x.dtype), x), [2], MANY),
    "bias of channels": (
        lambda x: tf.nn.bias_add(tf.zeros([64, 2, 64], x.dtype), x, data_format="NCHW"),
        [2],
        MANY,
    ),
    "columns": (lambda x: tf.gather(x, FIRST, axis=1), [2, 1], MANY),
    "columns of each": (
        lambda x: tf.gather(x, FIRST[None], axis=1, batch_dims=1),
        [1, 1],
        MANY,
    ),
    "places": (lambda x: tf.gather_nd(x, np.zeros([MANY, 2], np.int32)), [1, 1], MANY),
    "all that take it": (lambda x: tf.stack([x] * 600), [2], 600),
}


@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16])
@pytest.mark.parametrize("name", VALUES)
def test_values(name, dtype, interpret):
    function, shape, expected = VALUES[name]
    x = tf.placeholder(dtype, shape)
    found = function(x)
    assert found.dtype is dtype
    with tf.Session() as session:
        got = session.run(found, {x: np.ones(shape)}).astype(np.float64)
    np.testing.assert_allclose(got, np.full_like(got, expected), rtol=2**-7)


@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16])
@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(name, dtype, interpret):
    function, shape, expected = GRADIENTS[name]
    x = tf.placeholder(dtype, shape)
    y = function(x)
    (found,) = tf.gradients(y, x, tf.ones_like(y))
    with tf.Session() as session:
        got = session.run(found, {x: np.ones(shape)}).astype(np.float64)
    np.testing.assert_allclose(got, np.full_like(got, expected), rtol=2**-7)
