"""The estimate of how long a program takes to compile counts the kernels that remain."""

from __future__ import annotations

import pytest

import headrace as tf
from headrace.executor.policy import seconds_to_compile
from headrace.passes.ir import build_step

_DEPTH = 10


def _chain(apply):
    """The estimate for ten applications to a matrix, one behind the other."""
    x = fed = tf.placeholder(tf.float32, [8, 8])
    for _ in range(_DEPTH):
        x = apply(x)
    step = build_step([x], [fed], [])
    return seconds_to_compile(step.nodes, step.fetches)


def test_products_with_square_matrices_are_kernels_of_their_own():
    matrix = tf.ones([8, 8])
    assert _chain(lambda x: tf.matmul(x, matrix)) > 2 * _chain(lambda x: x * matrix)


def test_convolutions_that_keep_the_shape_are_kernels_of_their_own():
    kernel = tf.ones([3, 3, 1, 1])

    def convolve(x):
        return tf.nn.conv2d(x, kernel, [1, 1, 1, 1], "SAME")

    x = fed = tf.placeholder(tf.float32, [1, 8, 8, 1])
    y = fed
    for _ in range(_DEPTH):
        x, y = convolve(x), tf.tanh(y)
    convolutions, tanhs = (
        seconds_to_compile(step.nodes, step.fetches)
        for step in (build_step([each], [fed], []) for each in (x, y))
    )
    assert convolutions > 2 * tanhs


def test_sums_with_a_row_join_their_users_as_sums_of_equal_shapes_do():
    row, matrix = tf.ones([8]), tf.ones([8, 8])
    equal = _chain(lambda x: x + matrix)
    assert _chain(lambda x: x + row) == pytest.approx(equal)
    assert _chain(lambda x: row + x) == pytest.approx(equal)
    assert _chain(lambda x: tf.nn.bias_add(x, row)) == pytest.approx(equal)
