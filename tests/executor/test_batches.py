"""Convolutions and pools of steps whose batch has another size each time."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import headrace as tf
from headrace.executor import batches, host
from headrace.executor.batches import filled
from headrace.ops.core.registry import get_op_def
from headrace.passes.ir import FEED, Node


def _feed(dims):
    return Node(FEED, "feed", [], {}, (tf.float32,), (dims,), None)


def _node(type_, dims, **attrs):
    given = {"strides": [1, 1, 1, 1], "ksize": [1, 2, 2, 1], **attrs}
    edges = [(_feed(d), 0) for d in dims]
    return Node(get_op_def(type_), "x", edges, given, (tf.float32,), (None,), None)


def _x(size):
    return np.arange(size * 16, dtype=np.float32).reshape(size, 4, 4, 1)


@pytest.mark.parametrize(
    ("size", "room"), [(0, 0), (1, 8), (7, 8), (8, 8), (9, 16), (16, 16), (100, 128)]
)
def test_batches_are_filled_with_zeros(size, room):
    (x,), count = filled(_node("MaxPool", [(None, 4, 4, 1)]), [_x(size)])
    assert x.shape == (room, 4, 4, 1)
    assert count == (None if size == room else size)
    np.testing.assert_array_equal(x[:size], _x(size))
    assert not x[size:].any()


def test_what_tells_the_shape_of_the_output_tells_that_of_more():
    node = _node("Conv2DBackpropInput", [(4,), (2, 2, 1, 3), (None, 4, 4, 3)])
    args = [np.array([5, 4, 4, 1], np.int32), np.ones((2, 2, 1, 3)), np.ones((5, 4, 4, 3))]
    (sizes, _, grad), count = filled(node, args)
    assert sizes.tolist() == [8, 4, 4, 1]
    assert grad.shape == (8, 4, 4, 3)
    assert count == 5
    assert args[0][0] == 5


def test_sums_over_the_batch_have_all_their_elements():
    node = _node("Conv2DBackpropFilter", [(None, 4, 4, 1), (4,), (None, 4, 4, 3)])
    args = [_x(5), np.array([2, 2, 1, 3], np.int32), np.ones((5, 4, 4, 3))]
    (x, _, grad), count = filled(node, args)
    assert x.shape[0] == grad.shape[0] == 8
    assert count is None


@pytest.mark.parametrize(
    ("dims", "attrs", "sizes"),
    [
        ([(5, 4, 4, 1)], {}, [5]),
        ([(None, 4, 4, 1)], {"strides": [2, 1, 1, 1]}, [5]),
    ],
)
def test_other_batches_are_left_alone(dims, attrs, sizes):
    args = [_x(size) for size in sizes]
    given, count = filled(_node("MaxPool", dims, **attrs), args)
    assert given is args
    assert count is None


def test_batches_that_do_not_fit_each_other_are_left_to_the_kernel():
    node = _node("Conv2DBackpropFilter", [(None, 4, 4, 1), (4,), (None, 4, 4, 3)])
    args = [_x(5), np.array([2, 2, 1, 3], np.int32), np.ones((4, 4, 4, 3))]
    assert filled(node, args).args is args


def _train():
    x = tf.placeholder(tf.float32, [None, 8, 8, 1])
    h = tf.layers.conv2d(x, 3, 3, padding="same", activation=tf.nn.relu, name="a")
    h = tf.layers.max_pooling2d(h, 2, 2)
    h = tf.layers.conv2d(h, 2, 3, name="b")
    h = tf.layers.average_pooling2d(h, 2, 2)
    loss = tf.reduce_sum(tf.square(h))
    return x, loss, tf.train.GradientDescentOptimizer(1e-3).minimize(loss)


def _losses(sizes):
    tf.reset_default_graph()
    tf.set_random_seed(2)
    x, loss, train = _train()
    values = []
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for n in sizes:
            data = np.linspace(-1, 1, n * 64, dtype=np.float32).reshape(n, 8, 8, 1)
            values.append(sess.run([loss, train], {x: data})[0])
    return values


@pytest.mark.slow
def test_one_program_of_an_op_serves_many_batches(monkeypatch):
    made = []
    init = host._SingleOp.__init__

    def counted(self, node, static):
        made.append(node.name)
        init(self, node, static)

    monkeypatch.setattr(host._SingleOp, "__init__", counted)
    sizes = [*range(9, 17), 3, *range(4, 8), 20, 30]
    values = _losses(sizes)
    assert max(Counter(made).values()) == 3  # 8, 16 and 32 elements
    monkeypatch.setattr(host, "filled", lambda node, args: batches.Filled(args, None))
    made.clear()
    np.testing.assert_allclose(values, _losses(sizes), rtol=1e-5)
    assert max(Counter(made).values()) > 3


@pytest.mark.slow
def test_programs_of_single_ops_are_forgotten_in_the_end(monkeypatch):
    monkeypatch.setattr(host, "_MOST_ALONE", 3)
    runners = []
    init = host.HostRunner.__init__

    def kept(self):
        init(self)
        runners.append(self)

    monkeypatch.setattr(host.HostRunner, "__init__", kept)
    _losses([9, 10, 11, 12, 13, 14])
    assert runners
    assert all(len(runner._compiled) <= 3 for runner in runners)
