"""A variable that several operations read is updated after all of them have read it."""

from __future__ import annotations

import numpy as np

import headrace as tf

SIZE = 300


def _operands() -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    shapes = ((SIZE, SIZE), (SIZE, SIZE), (4, SIZE))
    return [rng.standard_normal(shape).astype(np.float32) for shape in shapes]


def test_what_reads_a_variable_sees_it_as_it_was() -> None:
    """Many steps: an update that came too early would show sooner or later."""
    first, second, x = _operands()
    before = [tf.Variable(first), tf.Variable(second)]
    hidden = tf.nn.relu(tf.matmul(x, before[0]))
    loss = tf.nn.l2_loss(tf.matmul(hidden, before[1]) - x)
    train = tf.train.GradientDescentOptimizer(1e-5).minimize(loss)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(20):
            session.run(train)
        got = session.run(before)
    a, b, x64 = (value.astype(np.float64) for value in (first, second, x))
    for _ in range(20):
        inner = np.maximum(x64 @ a, 0)
        back = inner @ b - x64
        to_inner = np.where(inner > 0, back @ b.T, 0)
        a, b = a - 1e-5 * x64.T @ to_inner, b - 1e-5 * inner.T @ back
    for one, other in zip(got, (a, b), strict=True):
        np.testing.assert_allclose(one, other, 1e-3, 1e-4)
