"""Rewrite passes: each rule changes the graph as it says and keeps the values."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as tf
from headrace.passes.ir import build_step
from headrace.passes.pipeline import optimize


def optimized(fetch, *feeds):
    """The types of ops left after the passes, feeds apart, and how much each pass changed."""
    fetches = fetch if isinstance(fetch, list) else [fetch]
    step = build_step(
        [f for f in fetches if isinstance(f, tf.Tensor)],
        list(feeds),
        [f for f in fetches if isinstance(f, tf.Operation)],
    )
    changes = optimize(step)
    types = sorted(n.type for n in step.nodes if n.type not in ("_Feed", "Const"))
    return types, changes


def values(fetch, feed, level=0):
    """The fetch with the passes on (level 0) or off (-1)."""
    options = tf.OptimizerOptions(opt_level=level)
    config = tf.ConfigProto(graph_options=tf.GraphOptions(optimizer_options=options))
    with tf.Session(graph=tf.get_default_graph(), config=config) as sess:
        return sess.run(fetch, feed)


VECTOR = np.array([-2.0, 0.5, 3.0], np.float32)


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (lambda x: tf.square(x + 0.0), ["Square"]),
        (lambda x: tf.square(0.0 + x), ["Square"]),
        (lambda x: tf.square(x - 0.0), ["Square"]),
        (lambda x: tf.square(x * 1.0), ["Square"]),
        (lambda x: tf.square(x / 1.0), ["Square"]),
        (lambda x: tf.square(tf.pow(x, 1.0)), ["Square"]),
        (lambda x: tf.pow(x, 2.0), ["Square"]),
        (lambda x: tf.square(tf.negative(tf.negative(x))), ["Square"]),
        (lambda x: x + (-tf.square(x)), ["Square", "Sub"]),
        (lambda x: tf.square(tf.identity(tf.identity(x))), ["Square"]),
        (lambda x: tf.square(tf.stop_gradient(x)), ["Square"]),
        (lambda x: tf.square(tf.cast(x, tf.float32)), ["Square"]),
        (lambda x: tf.square(tf.reshape(x, [3])), ["Square"]),
        (lambda x: tf.reshape(tf.reshape(x, [3, 1]), [1, 3]), ["Reshape"]),
        (lambda x: tf.square(tf.transpose(x, [0])), ["Square"]),
        (lambda x: tf.square(tf.add_n([x])), ["Square"]),
        (lambda x: tf.exp(x) + tf.exp(x), ["AddV2", "Exp"]),
        (lambda x: tf.log(x + 1.0), ["Log1p"]),
        (lambda x: tf.exp(x) - 1.0, ["Expm1"]),
        (lambda x: tf.log(tf.nn.softmax(tf.reshape(x, [1, 3]))), ["LogSoftmax", "Reshape"]),
    ],
)
def test_rules_change_structure_and_keep_values(build, expected):
    x = tf.placeholder(tf.float32, [3])
    y = build(x)
    assert optimized(y, x)[0] == expected
    feed = {x: np.abs(VECTOR)}
    np.testing.assert_allclose(values(y, feed), values(y, feed, -1), rtol=1e-6)


def test_a_target_is_rewritten_like_other_nodes():
    x = tf.placeholder(tf.float32, [3])
    rounded = tf.square(x)
    types, _ = optimized([tf.identity(rounded).op, rounded], x)
    assert types == ["Square"]


@pytest.mark.parametrize(
    "build",
    [
        lambda x: x + tf.zeros([2, 3]),  # broadcasts: not the same shape
        lambda x: x * 2.0,
        lambda x: x - 1.0,
        lambda x: tf.pow(x, 3.0),
        lambda x: tf.transpose(tf.reshape(x, [3, 1]), [1, 0]),
    ],
)
def test_rules_that_must_not_fire(build):
    x = tf.placeholder(tf.float32, [3])
    y = build(x)
    types, changes = optimized(y, x)
    assert changes["algebra"] == 0
    np.testing.assert_array_equal(values(y, {x: VECTOR}), values(y, {x: VECTOR}, -1))
    assert types


def test_unknown_shapes_are_left_alone():
    x = tf.placeholder(tf.float32, [None])
    assert optimized(tf.square(x + 0.0), x)[0] == ["AddV2", "Square"]


def test_constants_fold_and_feeds_stop_it():
    a = tf.constant([1.0, 2.0])
    b = tf.square(a)
    c = tf.reduce_sum(b + 1.0)
    assert optimized(c)[0] == []
    assert optimized(c, b)[0] == ["AddV2", "Sum"]
    assert values(c, {b: [5.0, 5.0]}) == 12.0


def test_random_ops_and_updates_are_neither_folded_nor_merged():
    one = tf.random_uniform([3], seed=1)
    two = tf.random_uniform([3], seed=1)
    assert optimized([one, two])[0].count("RandomUniform") == 2
    v = tf.Variable(0.0)
    first, second = v.assign_add(1.0), v.assign_add(1.0)
    with tf.Session() as sess:
        sess.run(v.initializer)
        sess.run([first.op, second.op])
        assert sess.run(v) == 2.0


def test_control_edges_from_pure_ops_go_and_their_effects_stay():
    v = tf.Variable(0.0)
    add = v.assign_add(1.0)
    with tf.control_dependencies([tf.square(add)]):
        y = tf.constant(3.0) * 2.0
    with tf.Session() as sess:
        sess.run(v.initializer)
        assert sess.run(y) == 6.0
        assert sess.run(v) == 1.0


def test_a_fetched_node_keeps_its_value_under_rewrites():
    x = tf.placeholder(tf.float32, [1, 3])
    p = tf.nn.softmax(x)
    y = tf.log(p)
    got_p, got_y = values([p, y], {x: [VECTOR]})
    np.testing.assert_allclose(np.log(got_p), got_y, rtol=1e-5)


SATURATED = np.array([[0.0, 200.0, -300.0], [1e4, 0.0, 1.0]], np.float32)


def test_log_of_a_saturated_softmax_is_finite_with_its_gradient(interpret):
    x = tf.placeholder(tf.float32, [2, 3])
    labels = np.array([[1, 0, 0], [0, 0, 1]], np.float32)
    loss = -tf.reduce_sum(labels * tf.log(tf.nn.softmax(x)))
    (grad,) = tf.gradients(loss, [x])
    for _ in range(2):
        got, dx = values([loss, grad], {x: SATURATED})
    assert got == pytest.approx(200.0 + 1e4 - 1.0, rel=1e-6)
    np.testing.assert_allclose(dx, [[-1, 1, 0], [1, 0, -1]], atol=1e-6)


def test_log_of_a_saturated_sigmoid_is_finite_with_its_gradient(interpret):
    x = tf.placeholder(tf.float32, [3])
    p = tf.sigmoid(x)
    loss = -tf.reduce_sum(tf.log(p)) - tf.reduce_sum(tf.log(1.0 - p))
    (grad,) = tf.gradients(loss, [x])
    got, dx = values([loss, grad], {x: [-200.0, 0.0, 300.0]})
    assert got == pytest.approx(500.0 + 2 * np.log(2), rel=1e-6)
    np.testing.assert_allclose(dx, [-1.0, 0.0, 1.0], atol=1e-6)


def test_log_sum_exp_does_not_overflow_with_its_gradient(interpret):
    x = tf.placeholder(tf.float32, [2, 3])
    y = tf.log(tf.reduce_sum(tf.exp(x), 1))
    (grad,) = tf.gradients(y, [x])
    got, dx = values([y, grad], {x: SATURATED})
    np.testing.assert_allclose(got, [200.0, 1e4], rtol=1e-6)
    np.testing.assert_allclose(dx, [[0, 1, 0], [1, 0, 0]], atol=1e-6)


def test_softmax_training_survives_saturation():
    """The program of the 2016 talk with a rate that saturates it at once."""
    x = tf.placeholder(tf.float32, [None, 4])
    w = tf.Variable(tf.zeros([4, 3]))
    y_ = tf.placeholder(tf.float32, [None, 3])
    xent = -tf.reduce_sum(y_ * tf.log(tf.nn.softmax(tf.matmul(x, w))))
    step = tf.train.GradientDescentOptimizer(1000.0).minimize(xent)
    data = np.eye(4, dtype=np.float32)
    labels = np.eye(3, dtype=np.float32)[[0, 1, 2, 0]]
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(10):
            sess.run(step, {x: data, y_: labels})
        assert np.isfinite(sess.run(w)).all()
        assert sess.run(xent, {x: data, y_: labels}) < 1e-3
