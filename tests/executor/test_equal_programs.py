"""Equal programs are compiled once: of graphs that grow, of sessions; what keeps them apart."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import headrace as tf
from headrace.executor import equal_programs, program
from headrace.settings import flags


@pytest.fixture(name="traced")
def _traced(monkeypatch):
    """The names of what the programs put out that were traced, in order."""
    monkeypatch.setattr(flags, "interpret", "never")
    found = []
    trace = program.Program._trace

    def counted(self, *args):
        found.append([node.name for node, _ in self.region.outputs])
        return trace(self, *args)

    monkeypatch.setattr(program.Program, "_trace", counted)
    return found


def model(units=3):
    x = tf.placeholder(tf.float32, [None, 4])
    w = tf.get_variable("w", [4, units], initializer=tf.ones_initializer())
    return x, w, tf.nn.softmax(tf.matmul(x, w) * 0.5)


def test_a_graph_that_grows_compiles_once(traced):
    x, w, y = model()
    with tf.Session() as sess:
        sess.run(w.initializer)
        traced.clear()
        for i in range(4):
            value = sess.run(tf.reduce_sum(y * 2.0), {x: np.full([2, 4], i, np.float32)})
            np.testing.assert_allclose(value, 4.0, 1e-6)
        assert len(traced) == 1
        # Another batch is another program, and the same for whoever comes next.
        for _ in range(2):
            sess.run(tf.reduce_sum(y * 2.0), {x: np.ones([3, 4])})
        assert len(traced) == 2


def test_sessions_of_one_graph_have_their_own_variables(traced):
    x, w, _ = model()
    step = w.assign_add(tf.ones([4, 3]) * tf.reduce_sum(x))
    feed = {x: np.ones([1, 4], np.float32)}
    with tf.Session() as first, tf.Session() as second:
        first.run(w.initializer)
        second.run(w.initializer)
        traced.clear()
        first.run(step, feed)
        first.run(step, feed)
        np.testing.assert_allclose(second.run(step, feed), np.full([4, 3], 5.0))
        np.testing.assert_allclose(first.run(w), np.full([4, 3], 9.0))
        np.testing.assert_allclose(second.run(w), np.full([4, 3], 5.0))
        assert len(traced) == 1


def test_equal_layers_of_other_variables_share_and_do_not_mix(traced):
    x = tf.placeholder(tf.float32, [2, 4])
    a = tf.get_variable("a", [4, 3], initializer=tf.ones_initializer())
    b = tf.get_variable("b", [4, 3], initializer=tf.zeros_initializer())
    feed = {x: np.ones([2, 4], np.float32)}
    with tf.Session() as sess:
        sess.run([a.initializer, b.initializer])
        traced.clear()
        first = sess.run(tf.exp(tf.matmul(x, a)), feed)
        second = sess.run(tf.exp(tf.matmul(x, b)), feed)
    np.testing.assert_allclose(first, np.full([2, 3], np.exp(4.0)), 1e-6)
    np.testing.assert_allclose(second, np.ones([2, 3]))


@pytest.mark.parametrize(
    "other",
    [
        lambda x, y: tf.reduce_sum(y * 3.0),
        lambda x, y: tf.reduce_sum(y * [2.0, 2.0, 3.0]),
        lambda x, y: tf.reduce_max(y * 2.0),
        lambda x, y: tf.reduce_sum(y * 2.0, 0),
        lambda x, y: tf.reduce_sum(y * 2.0, keepdims=True),
        lambda x, y: tf.reduce_sum(2.0 * y[:, :2]),
        lambda x, y: tf.reduce_sum(y * 0.0) / -0.0,
        lambda x, y: tf.reduce_sum(y * 0.0) / 0.0,
        lambda x, y: tf.reduce_sum(tf.cast(y, tf.float64) * 2.0),
        lambda x, y: [y * 2.0, y][0] - y,
        lambda x, y: y - y * 2.0,
        lambda x, y: tf.nn.leaky_relu(y - 1.0, 0.25),
        lambda x, y: tf.nn.leaky_relu(y - 1.0, 0.5),
    ],
)
def test_whatever_differs_is_another_program(traced, monkeypatch, other):
    x, w, y = model()
    feed = {x: np.arange(8, dtype=np.float32).reshape(2, 4)}
    with tf.Session() as sess:
        sess.run(w.initializer)
        sess.run(tf.reduce_sum(y * 2.0), feed)
        traced.clear()
        found = sess.run(other(x, y), feed)
        assert len(traced) == 1
    monkeypatch.setattr(flags, "interpret", "always")
    with tf.Session() as sess:
        sess.run(w.initializer)
        np.testing.assert_allclose(found, sess.run(other(x, y), feed), 1e-6, 1e-6)


def test_random_numbers_go_on_by_themselves(traced):
    one, two = tf.random_uniform([4], seed=3), tf.random_uniform([4], seed=3)
    other = tf.random_uniform([4], seed=4)
    with tf.Session() as sess:
        first = sess.run(one * 1.0)
        np.testing.assert_array_equal(sess.run(two * 1.0), first)
        assert (sess.run(other * 1.0) != first).any()
        assert (sess.run(one * 1.0) != first).any()


def test_errors_name_the_operation_that_fails(traced):
    x = tf.placeholder(tf.int32, [2])
    table = tf.ones([3, 2])
    names = []
    with tf.Session() as sess:
        for _ in range(2):
            y = tf.gather(table, x)
            sess.run(y, {x: [0, 2]})
            with pytest.raises(tf.errors.InvalidArgumentError) as caught:
                sess.run(y, {x: [0, 3]})
            names.append((caught.value.op.name, y.op.name))
    assert all(said == meant for said, meant in names)
    assert names[0] != names[1]


def test_programs_go_with_their_graphs(traced):
    before = len(equal_programs._programs)
    with tf.Graph().as_default():
        x, w, y = model(5)
        with tf.Session() as sess:
            sess.run(w.initializer)
            sess.run(y, {x: np.ones([2, 4])})
            assert len(equal_programs._programs) > before
    del x, w, y, sess
    gc.collect()
    assert len(equal_programs._programs) <= before
