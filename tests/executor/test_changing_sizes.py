"""Regions that meet new sizes nearly every time they run are not compiled for each of them."""

from __future__ import annotations

import numpy as np

import headrace as tf
from headrace.executor import region


def _compiled(monkeypatch):
    """The sizes for which programs were compiled."""
    calls = []
    call = region.Program.call

    def counted(self, args):
        calls.append(tuple(a.shape for a in args))
        return call(self, args)

    monkeypatch.setattr(region.Program, "call", counted)
    return calls


def _step():
    """A step with an op that NumPy has not: it is compiled at once."""
    x = tf.placeholder(tf.float32, [None, 3])
    w = tf.Variable(np.eye(3, dtype=np.float32))
    y = tf.nn.conv1d(tf.expand_dims(x, 0), tf.ones([1, 3, 3]), 1, "SAME")
    loss = tf.reduce_sum(tf.matmul(x, w)) + tf.reduce_sum(y)
    return x, loss, tf.train.GradientDescentOptimizer(0.01).minimize(loss)


def test_few_of_many_sizes_are_compiled(monkeypatch):
    calls = _compiled(monkeypatch)
    x, loss, train = _step()
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for size in range(1, 25):
            value, _ = sess.run([loss, train], {x: np.ones([size, 3], np.float32)})
            assert np.isfinite(value)
    assert 1 <= len(set(calls)) <= 4


def test_two_sizes_that_come_again_are_compiled(monkeypatch):
    calls = _compiled(monkeypatch)
    x, loss, train = _step()
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for i in range(20):
            sess.run([loss, train], {x: np.ones([5 + i % 2, 3], np.float32)})
    assert len(set(calls)) >= 2
    assert len(calls) >= 20


def test_sizes_that_come_again_often_are_compiled_in_the_end(monkeypatch):
    calls = _compiled(monkeypatch)
    monkeypatch.setattr(region, "runs_when_sizes_change", lambda nodes, outputs: 3)
    x, loss, _ = _step()
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for size in range(1, 11):
            sess.run(loss, {x: np.ones([size, 3], np.float32)})
        before = len(calls)
        for _ in range(4):
            sess.run(loss, {x: np.ones([10, 3], np.float32)})
    assert len(calls) > before
