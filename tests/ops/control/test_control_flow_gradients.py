"""Gradients through branches and loops, compiled and interpreted, against finite differences."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import headrace as tf
from headrace.ops.core.build import raw
from headrace.ops.core.registry import EXTERNAL, define_op

pytestmark = pytest.mark.usefixtures("interpret")

define_op(
    "TestHalve(x: T) -> y: T",
    attrs="T: type",
    shape=lambda op: [op.inputs[0].dims],
    host=lambda context, x: x * 0.5,
    gradient=lambda op, grad: [grad * 0.5],
    effects=EXTERNAL,
)

F64 = tf.float64


def check(y, x, at, feeds=None, order=2):
    """Compare derivatives of scalar ``y`` up to ``order`` with differences of the one before."""
    derivatives = [y]
    for _ in range(order):
        total = derivatives[-1]
        derivatives.append(tf.reduce_sum(tf.gradients(total, x)[0]))
    at = np.asarray(at, np.float64)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())

        def value(tensor, point):
            return session.run(tensor, {x: point, **(feeds or {})})

        for before, after in itertools.pairwise(derivatives):
            numeric = (value(before, at + 1e-5) - value(before, at - 1e-5)) / 2e-5
            assert value(after, at) == pytest.approx(numeric, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("at", [1.5, 2.5])
def test_cond(at):
    x = tf.placeholder(F64, [])
    check(tf.cond(x < 2.0, lambda: x * x * x, lambda: tf.sin(x) * x), x, at)


def test_cond_that_uses_x_in_one_branch_only():
    x = tf.placeholder(F64, [])
    y = tf.cond(x < 2.0, lambda: x * x, lambda: tf.constant(3.0, F64))
    g = tf.gradients(y, x)[0]
    with tf.Session() as session:
        assert [session.run(g, {x: v}) for v in (1.0, 5.0)] == [2.0, 0.0]


def test_switch_case():
    i = tf.placeholder(tf.int32, [])
    x = tf.placeholder(F64, [])
    y = tf.switch_case(i, [lambda: x * x, lambda: x**3, lambda: tf.exp(x)])
    for k in range(3):
        check(y, x, 1.2, {i: k})


def test_variable_in_a_branch():
    v = tf.Variable([1.0, 2.0])
    flag = tf.placeholder(tf.bool, [])
    y = tf.cond(flag, lambda: tf.reduce_sum(v * v), lambda: v[0])
    (g,) = tf.gradients(y, [v])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        np.testing.assert_array_equal(session.run(g, {flag: True}), [2, 4])
        np.testing.assert_array_equal(session.run(g, {flag: False}), [1, 0])


def test_loop_of_known_length():
    x = tf.placeholder(F64, [])
    y = tf.while_loop(lambda i, a: i < 4, lambda i, a: (i + 1, tf.sin(a) * x), [0, x])[1]
    check(y, x, 1.1)


def test_loop_of_fed_length():
    x = tf.placeholder(F64, [])
    n = tf.placeholder(tf.int32, [])
    y = tf.while_loop(lambda i, a: i < n, lambda i, a: (i + 1, tf.sin(a) * x), [0, x])[1]
    check(y, x, 1.1, {n: 5})
    check(y, x, 1.1, {n: 0}, order=1)


def test_loop_that_ends_by_its_values():
    x = tf.placeholder(F64, [])
    start = tf.constant(1.0, F64)
    check(tf.while_loop(lambda a: a < 100.0, lambda a: a * x, [start]), x, 1.7)
    bounded = tf.while_loop(lambda a: a < 100.0, lambda a: a * x, [start], maximum_iterations=20)
    check(bounded, x, 1.7)


def test_more_iterations_than_the_first_bound():
    x = tf.placeholder(F64, [])
    n = tf.placeholder(tf.int32, [])
    y = tf.while_loop(lambda i, a: i < n, lambda i, a: (i + 1, a * x), [0, tf.ones([], F64)])[1]
    g = tf.gradients(y, x)[0]
    with tf.Session() as session:
        for k in (3, 100, 3):
            assert session.run(g, {x: 1.01, n: k}) == pytest.approx(k * 1.01 ** (k - 1))


def test_training_a_variable_in_a_loop_without_bound():
    v = tf.Variable(1.5)
    y = tf.while_loop(lambda a: a < 100.0, lambda a: a * v, [1.0])
    train = v.assign_sub(1e-4 * tf.gradients((y - 120.0) ** 2, v)[0])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        before = session.run(y)
        assert before == pytest.approx(1.5**12, rel=1e-5)
        gradient = 2 * (before - 120.0) * 12 * 1.5**11
        assert session.run(train) == pytest.approx(1.5 - 1e-4 * gradient, rel=1e-4)


def test_nested_loops_and_branches():
    x = tf.placeholder(F64, [])

    def inner(j, b):
        return j + 1, tf.cond(b < 3.0, lambda: b * x, lambda: tf.sin(b) + x)

    def outer(i, a):
        return i + 1, tf.while_loop(lambda j, b: j < 2, inner, [0, a])[1]

    check(tf.while_loop(lambda i, a: i < 3, outer, [0, x])[1], x, 1.3)


def test_nested_loops_of_fed_length():
    x = tf.placeholder(F64, [])
    n = tf.placeholder(tf.int32, [])

    def outer(i, a):
        inner = tf.while_loop(lambda j, b: j < i, lambda j, b: (j + 1, tf.sin(b) * x), [0, a])
        return i + 1, inner[1] + x

    y = tf.while_loop(lambda i, a: i < n, outer, [0, x])[1]
    check(y, x, 1.2, {n: 3}, order=1)


def test_several_carried_values_and_a_matrix():
    x = tf.placeholder(F64, [2, 2])
    w = tf.constant([[0.5, -0.3], [0.2, 0.1]], F64)

    def body(i, a, b):
        return i + 1, tf.tanh(tf.matmul(a, w) + b), a * b

    _, a, b = tf.while_loop(lambda i, *_: i < 3, body, [0, x, tf.square(x)])
    check(tf.reduce_sum(a) + 2.0 * tf.reduce_sum(b), x, [[0.3, -0.2], [0.5, 0.7]])


def test_shapes_that_change():
    x = tf.placeholder(F64, [2])
    _, y = tf.while_loop(
        lambda i, a: i < 2,
        lambda i, a: (i + 1, tf.concat([a * a, a], 0)),
        [0, x],
        shape_invariants=[tf.TensorShape([]), tf.TensorShape([None])],
    )
    check(tf.reduce_sum(y), x, [1.1, 0.7])


def test_random_draws_are_those_of_the_forward_run():
    x = tf.Variable(2.0)
    _, y = tf.while_loop(
        lambda i, a: i < 3,
        lambda i, a: (i + 1, a + x * tf.random_uniform([], seed=5)),
        [0, tf.constant(0.0)],
    )
    g = tf.gradients(y, x)[0]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(2):
            value, gradient = session.run([y, g])
            assert gradient == pytest.approx(value / 2.0, rel=1e-6)


def test_variables_that_change_in_the_loop_are_those_of_each_iteration():
    x = tf.placeholder(F64, [])
    v = tf.Variable(1.0, dtype=F64)

    def body(i, a):
        factor = tf.identity(v)
        with tf.control_dependencies([factor]):
            change = v.assign_add(1.0)
        with tf.control_dependencies([change]):
            return i + 1, a * factor

    y = tf.while_loop(lambda i, a: i < 3, body, [0, x])[1]
    g = tf.gradients(y, x)[0]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run([y, g], {x: 1.0}) == [6.0, 6.0]
        assert session.run(v) == 4.0


def test_host_op_with_a_gradient_in_a_loop():
    x = tf.placeholder(tf.float32, [])
    y = tf.while_loop(
        lambda i, a: i < 3, lambda i, a: (i + 1, raw.TestHalve(a) * x), [0, tf.constant(1.0)]
    )[1]
    with tf.Session() as session:
        assert session.run(tf.gradients(y, x)[0], {x: 2.0}) == pytest.approx(3 * 4 / 8)


def test_custom_gradients_hold_in_bodies():
    @tf.custom_gradient
    def clipped(a):
        return a * 3.0, lambda grad: grad * 10.0

    x = tf.placeholder(tf.float32, [])
    y = tf.while_loop(lambda i, a: i < 2, lambda i, a: (i + 1, clipped(a)), [0, x])[1]
    z = tf.cond(x > 0, lambda: clipped(x), lambda: x)
    with tf.Session() as session:
        assert session.run([y, tf.gradients(y, x)[0]], {x: 1.0}) == [9.0, 100.0]
        assert session.run(tf.gradients(z, x)[0], {x: 1.0}) == 10.0


def test_stop_gradient_and_integers_in_a_loop():
    x = tf.placeholder(tf.float32, [3])

    def body(i, a):
        return i + 1, a + tf.stop_gradient(x[i]) * x[i]

    y = tf.while_loop(lambda i, a: i < 3, body, [0, tf.constant(0.0)])[1]
    with tf.Session() as session:
        np.testing.assert_array_equal(session.run(tf.gradients(y, x)[0], {x: [1, 2, 3]}), [1, 2, 3])


def test_sparse_reads_of_a_variable_in_a_loop():
    table = tf.Variable(np.arange(6, dtype=np.float32).reshape(3, 2))
    y = tf.while_loop(
        lambda i, a: i < 2,
        lambda i, a: (i + 1, a + tf.reduce_sum(tf.gather(table, [i, 0]) ** 2)),
        [0, tf.constant(0.0)],
    )[1]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        gradient = session.run(tf.convert_to_tensor(tf.gradients(y, table)[0]))
    np.testing.assert_array_equal(gradient, [[0, 6], [4, 6], [0, 0]])


def test_value_used_inside_and_after_the_loop():
    x = tf.placeholder(F64, [])
    _, y, kept = tf.while_loop(
        lambda i, a, k: i < 3, lambda i, a, k: (i + 1, a * k, k), [0, tf.ones([], F64), x]
    )
    check(y + kept * kept, x, 1.4)


def test_gradient_inside_a_loop():
    target = tf.placeholder(F64, [])

    def descend(i, p):
        loss = (p - target) ** 2
        return i + 1, p - 0.25 * tf.gradients(loss, p)[0]

    _, p = tf.while_loop(lambda i, p: i < 10, descend, [0, tf.zeros([], F64)])
    with tf.Session() as session:
        value, slope = session.run([p, tf.gradients(p, target)[0]], {target: 3.0})
    assert value == pytest.approx(3.0 * (1 - 0.5**10))
    assert slope == pytest.approx(1 - 0.5**10)


def test_gradient_inside_a_branch():
    x = tf.placeholder(tf.float32, [])
    y = tf.cond(x > 0, lambda: tf.gradients(x**3, x)[0], lambda: x)
    with tf.Session() as session:
        assert session.run(y, {x: 2.0}) == 12.0


def test_two_losses_over_one_loop():
    x = tf.placeholder(F64, [])
    _, a, b = tf.while_loop(
        lambda i, *_: i < 3, lambda i, a, b: (i + 1, a * x, b + x * x), [0, x, x]
    )
    first, second = tf.gradients(a, x)[0], tf.gradients(b, x)[0]
    with tf.Session() as session:
        assert session.run(first, {x: 2.0}) == 32.0
        assert session.run([first, second, a], {x: 2.0}) == [32.0, 13.0, 16.0]
