"""Buckets travel while gradients of earlier layers are still computed."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace.executor import program
from headrace.ops.collective import definitions
from headrace.settings import flags


@pytest.mark.parametrize("buckets", [1, 2])
def test_the_first_bucket_leaves_before_the_last_gradient_is_there(buckets, monkeypatch):
    """What computes the last gradient does not end until a bucket has left."""
    sent: list[int] = []
    left = threading.Event()
    was_sent: list[bool] = []

    def take_part(context: Any, call: Any) -> Any:
        sent.append(call.value.size)
        left.set()
        return 2 * call.value

    def held(self: Any, *args: Any) -> Any:
        found = call_program(self, *args)
        if any(np.size(output) == 200 for output in found[0]):
            was_sent.append(left.wait(20))
        return found

    call_program = program.Program.call
    monkeypatch.setattr(flags, "interpret", "never")
    monkeypatch.setattr(definitions, "_take_part", take_part)
    x = tf.placeholder(tf.float32, [6, 10])
    first = tf.get_variable("first", [10, 20], initializer=tf.constant_initializer(0.1))
    last = tf.get_variable("last", [20, 30], initializer=tf.constant_initializer(0.1))
    loss = tf.reduce_sum(tf.tanh(tf.matmul(tf.tanh(tf.matmul(x, first)), last)))
    size = 4 * 20 * 30 if buckets == 2 else 1 << 20
    optimizer = tf.train.AllReduceOptimizer(
        tf.train.GradientDescentOptimizer(0.1), 2, bucket_bytes=size
    )
    train = optimizer.minimize(loss)
    feed = {x: np.linspace(-0.1, 0.1, 60).reshape(6, 10)}
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(train, feed)
        sent.clear()
        left.clear()
        monkeypatch.setattr(program.Program, "call", held)
        sess.run(train, feed)
    assert sent == ([600, 200] if buckets == 2 else [800])
    assert was_sent == ([True] if buckets == 2 else [])


def test_what_waits_for_others_begins_before_what_computes(monkeypatch):
    left = threading.Event()
    calls: list[bool] = []

    def take_part(context: Any, call: Any) -> Any:
        left.set()
        return call.value

    def held(self: Any, *args: Any) -> Any:
        calls.append(left.wait(20))
        return call_program(self, *args)

    call_program = program.Program.call
    monkeypatch.setattr(flags, "interpret", "never")
    monkeypatch.setattr(definitions, "_take_part", take_part)
    x = tf.placeholder(tf.float32, [6, 6])
    made = [tf.collective.all_reduce(x, 2, 1, 1), tf.tanh(tf.matmul(x, x))]
    with tf.Session() as sess:
        sess.run(made, {x: np.ones((6, 6))})
        left.clear()
        monkeypatch.setattr(program.Program, "call", held)
        sess.run(made, {x: np.ones((6, 6))})
    assert calls == [True]
