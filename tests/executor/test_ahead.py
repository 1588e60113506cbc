"""Programs that are compiled ahead run without compiling anything."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
from jax import monitoring

import headrace as tf
from headrace.harness.cluster import with_cluster

PS = "/job:ps/replica:0/task:"
_EVENT = "/jax/core/compile/backend_compile_duration"


@contextlib.contextmanager
def compilations():
    """Counts what XLA compiles in the block."""
    found = []

    def heard(event, duration, **_):
        if event == _EVENT:
            found.append(duration)

    monitoring.register_event_duration_secs_listener(heard)
    try:
        yield found
    finally:
        monitoring.unregister_event_duration_listener(heard)


def _sparse(w):
    return tf.scatter_add(w, tf.constant([1, 5]), tf.ones([2, 64]))


def _dense(w):
    return w.assign(w * 0.5 + 1.0)


def _random(w):
    return w.assign_add(tf.random_normal([1000, 64], seed=3))


def _trained(w):
    return tf.train.MomentumOptimizer(0.1, 0.5).minimize(tf.reduce_sum(tf.square(w)))


@pytest.mark.parametrize("update", [_sparse, _dense, _random, _trained])
def test_the_first_step_of_a_part_that_was_compiled_ahead_compiles_nothing(update):
    with tf.Graph().as_default(), with_cluster(ps=1, worker=1) as cluster:
        with tf.device("/job:ps/task:0"):
            w = tf.get_variable("w", [1000, 64], initializer=tf.ones_initializer())
            step = update(w)
        with tf.Session(cluster.target("worker")) as session:
            session.run(tf.global_variables_initializer())
            call = session.make_callable([step])
            worker = cluster.tasks[f"{PS}0"].worker
            with compilations() as compiled:
                made = sum(part.plan.compile_ahead() for part in worker._parts.values())
                assert made
                assert compiled
            with compilations() as compiled:
                call()
                call()
            assert not compiled
            assert np.isfinite(session.run(w)).all()
