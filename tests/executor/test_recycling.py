"""Large outputs that reuse the memory of earlier ones."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import headrace as tf
from headrace.executor import recycling
from headrace.harness.cluster import with_cluster
from headrace.step.request import PlanRequest


@pytest.fixture
def small_is_large(monkeypatch):
    """So that the tests need little memory."""
    monkeypatch.setattr(recycling, "LARGE_BYTES", 1 << 10)


@pytest.fixture
def zeros(monkeypatch):
    """Counts the arrays that were made because there was none to reuse."""
    made = []
    original = recycling.jnp.zeros

    def counting(*args, **kwargs):
        made.append(args)
        return original(*args, **kwargs)

    monkeypatch.setattr(recycling.jnp, "zeros", counting)
    return made


def program(cluster):
    """The worker multiplies what the server has; the server adds it."""
    k = tf.placeholder(tf.float32, [])
    with tf.device("/job:ps/task:0"):
        v = tf.get_variable("v", initializer=np.ones([64, 1024], np.float32), use_resource=True)
        read = tf.identity(v.read_value())
    with tf.device("/job:worker/task:0"):
        product = read * k
    with tf.device("/job:ps/task:0"):
        step = v.assign_add(product, read_value=False)
    return k, v, product, step


def test_steps_reuse_memory_and_are_right(small_is_large, zeros):
    with with_cluster(ps=1, worker=1) as cluster:
        k, v, _, step = program(cluster)
        with tf.Session(cluster.target("worker", 0)) as sess:
            sess.run(v.initializer)
            zeros.clear()
            value = np.ones([64, 1024], np.float32)
            for factor in (1.0, 2.0, 0.5, -1.0, 3.0, 1.0):
                sess.run(step, {k: factor})
                value += value * np.float32(factor)
            np.testing.assert_array_equal(sess.run(v), value)
    assert len(zeros) <= 2


def test_an_output_that_somebody_has_is_left_alone(small_is_large):
    with with_cluster(ps=1, worker=1) as cluster:
        k, v, product, _ = program(cluster)
        with tf.Session(cluster.target("worker", 0)) as sess:
            sess.run(v.initializer)
            plan = sess._engine.plan(PlanRequest([product], [k]))
            kept = [plan.run([np.float32(f)])[0] for f in (2.0, 3.0, 4.0, 5.0)]
            for factor, array in zip((2.0, 3.0, 4.0, 5.0), kept, strict=True):
                np.testing.assert_array_equal(np.asarray(array), np.full([64, 1024], factor))


def test_a_variable_is_changed_in_place_after_its_value_was_sent():
    """Also in the step that has read it: the value is let go of once it is on its way.

    Not in every step: a thread that is stopped between sending a value and letting go of it makes
    the update a copy. A value that something keeps would make all of them copies.
    """
    with with_cluster(ps=1, worker=1) as cluster:
        k = tf.placeholder(tf.float32, [])
        with tf.device("/job:ps/task:0"):
            start = np.ones([2048, 1024], np.float32)
            v = tf.get_variable("v", initializer=start, use_resource=True)
            read = tf.identity(v.read_value())
        with tf.device("/job:worker/task:0"):
            total = tf.reduce_sum(read) * k
        with tf.device("/job:ps/task:0"):
            step = v.assign_add(tf.fill([2048, 1024], total), read_value=False)
        store = cluster.tasks["/job:ps/replica:0/task:0"].store

        def address():
            (value,) = [x for _, x in store.items() if getattr(x, "shape", ()) == (2048, 1024)]
            return value.unsafe_buffer_pointer()

        with tf.Session(cluster.target("worker", 0)) as sess:
            sess.run(v.initializer)
            for _ in range(3):
                sess.run(step, {k: 0.0})
            addresses = [address()]
            for _ in range(20):
                sess.run(step, {k: 0.0})
                addresses.append(address())
            assert sum(a == b for a, b in pairwise(addresses)) >= 2, addresses
