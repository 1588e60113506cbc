"""Joined sums: the shape of the graph afterwards, the values, and when nothing may be joined."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as tf
from headrace.passes.ir import build_step
from headrace.passes.pipeline import optimize

STEPS = 4


def types_of(fetches):
    step = build_step(list(fetches), [], [])
    changes = optimize(step)
    kept = sorted(n.type for n in step.nodes if n.type not in ("Const", "Placeholder"))
    return kept, changes["join sums of products"]


def values(fetch, feed, level):
    options = tf.OptimizerOptions(opt_level=level)
    config = tf.ConfigProto(graph_options=tf.GraphOptions(optimizer_options=options))
    with tf.Session(graph=tf.get_default_graph(), config=config) as sess:
        return sess.run(fetch, feed)


def same_with_and_without(fetch, feeds):
    rng = np.random.RandomState(0)
    feed = {p: rng.standard_normal(p.shape.as_list()).astype(np.float32) for p in feeds}
    np.testing.assert_allclose(values(fetch, feed, 0), values(fetch, feed, -1), 1e-5, 1e-5)


def pairs(left, right):
    """Placeholders of two shapes for each step."""
    make = tf.placeholder
    return [(make(tf.float32, left), make(tf.float32, right)) for _ in range(STEPS)]


@pytest.mark.parametrize("flip_a", [False, True])
@pytest.mark.parametrize("flip_b", [False, True])
def test_products_in_a_sum_become_one(flip_a, flip_b):
    terms = pairs([2, 7] if flip_a else [7, 2], [9, 2] if flip_b else [2, 9])
    y = tf.add_n([tf.matmul(a, b, transpose_a=flip_a, transpose_b=flip_b) for a, b in terms])
    assert types_of([tf.square(y)]) == (["ConcatV2", "ConcatV2", "MatMul", "Square"], STEPS)
    same_with_and_without(y, [p for pair in terms for p in pair])


def test_other_terms_stay_in_the_sum():
    terms = pairs([7, 2], [2, 9])
    more = tf.placeholder(tf.float32, [7, 9])
    products = [tf.matmul(a, b) for a, b in terms]
    y = tf.add_n([products[0], more, *products[1:]])
    assert types_of([y]) == (["AddN", "ConcatV2", "ConcatV2", "MatMul"], STEPS)
    same_with_and_without(y, [more, *(p for pair in terms for p in pair)])


def test_column_sums_become_one():
    terms = [tf.placeholder(tf.float32, [i + 1, 5]) for i in range(STEPS)]
    y = tf.add_n([tf.reduce_sum(t, [0]) for t in terms])
    assert types_of([tf.square(y)]) == (["ConcatV2", "Square", "Sum"], STEPS)
    same_with_and_without(y, terms)


def test_gradients_of_an_unrolled_loop():
    x = tf.placeholder(tf.float32, [STEPS, 2, 6])
    w = tf.placeholder(tf.float32, [6, 6])
    b = tf.placeholder(tf.float32, [6])
    h = tf.zeros([2, 6])
    for t in range(STEPS):
        h = tf.tanh(tf.matmul(h + x[t], w) + b)
    gradients = tf.gradients(tf.reduce_sum(h), [w, b])
    types, joined = types_of(gradients)
    assert joined == 2 * STEPS
    # Forward, back through time, and one for the weight; the bias shares its operand.
    assert types.count("MatMul") == STEPS + (STEPS - 1) + 1
    assert types.count("ConcatV2") == 2
    same_with_and_without(tf.concat([tf.reshape(g, [-1]) for g in gradients], 0), [x, w, b])


@pytest.mark.parametrize("add_bias", [tf.add, tf.nn.bias_add])
def test_an_optimizer_takes_the_joined_sums(add_bias):
    x = tf.placeholder(tf.float32, [STEPS, 2, 6])
    w, b = tf.Variable(tf.ones([12, 6]) / 9), tf.Variable(tf.zeros([6]))
    h = tf.zeros([2, 6])
    for t in range(STEPS):
        h = tf.tanh(add_bias(tf.matmul(tf.concat([h, x[t]], 1), w), b))
    optimizer = tf.train.GradientDescentOptimizer(0.1)
    gradients = optimizer.compute_gradients(tf.reduce_sum(h))
    train = optimizer.apply_gradients(gradients)
    types, joined = types_of([gradient for gradient, _ in gradients])
    assert joined == 2 * STEPS
    assert types.count("MatMul") == STEPS + (STEPS - 1) + 1
    assert "Identity" not in types
    feed = {x: np.random.RandomState(0).standard_normal([STEPS, 2, 6]).astype(np.float32)}
    after = []
    for level in (0, -1):
        options = tf.OptimizerOptions(opt_level=level)
        config = tf.ConfigProto(graph_options=tf.GraphOptions(optimizer_options=options))
        with tf.Session(config=config) as sess:
            sess.run(tf.global_variables_initializer())
            sess.run(train, feed)
            after.append(sess.run([w, b]))
    for joined_value, plain in zip(*after, strict=True):
        np.testing.assert_allclose(joined_value, plain, 1e-5, 1e-5)


def test_sums_wait_for_what_their_terms_wait_for():
    terms = pairs([7, 2], [2, 9])
    v = tf.Variable(0.0)
    with tf.control_dependencies([v.assign_add(1.0)]):
        y = tf.square(tf.add_n([tf.identity(tf.matmul(a, b)) for a, b in terms]))
    w = tf.Variable(0.0)
    products = [tf.matmul(a, b) for a, b in terms]
    with tf.control_dependencies([w.assign_add(1.0)]):
        gated = [tf.identity(p) for p in products]
    z = tf.square(tf.add_n(gated))
    types, joined = types_of([z])
    assert joined == STEPS
    assert types.count("MatMul") == 1
    rng = np.random.RandomState(0)
    feed = {p: rng.standard_normal(p.shape.as_list()) for pair in terms for p in pair}
    with tf.Session() as sess:
        sess.run([v.initializer, w.initializer])
        np.testing.assert_allclose(*sess.run([y, z], feed), 1e-5, 1e-5)
        assert sess.run([v, w]) == [1.0, 1.0]


def _fetched(products, y):
    return [y, products[0]]


def _used_twice(products, y):
    return [y, *(tf.square(p) for p in products)]


@pytest.mark.parametrize("more", [_fetched, _used_twice])
def test_terms_that_others_need_are_kept(more):
    terms = pairs([7, 2], [2, 9])[:2]
    products = [tf.matmul(a, b) for a, b in terms]
    assert types_of(more(products, tf.add_n(products)))[1] == 0


def test_terms_with_control_edges_are_kept():
    terms = pairs([7, 2], [2, 9])[:2]
    v = tf.Variable(0.0)
    with tf.control_dependencies([v.assign_add(1.0)]):
        products = [tf.matmul(a, b) for a, b in terms]
    assert types_of([tf.add_n(products)])[1] == 0


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ([3, 50], [50, 3]),  # the operands are larger than the products
        ([None, 2], [2, 9]),  # not known how large they are
    ],
)
def test_sums_that_do_not_pay_are_kept(left, right):
    y = tf.add_n([tf.matmul(a, b) for a, b in pairs(left, right)])
    assert types_of([y])[1] == 0
