"""Gradients that are no numbers, in one worker of several: all of them do the same about it."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace.contrib.opt import GuardedOptimizer
from headrace.errors import InvalidArgumentError
from headrace.harness.cluster import with_cluster

WORKERS = 2
START = np.linspace(-1, 1, 7, dtype=np.float32)


def _optimizer(mode: str, action: str) -> Any:
    adam = tf.train.AdamOptimizer(0.1)
    if mode == "outside":
        return GuardedOptimizer(tf.train.AllReduceOptimizer(adam, WORKERS), action)
    guarded = GuardedOptimizer(adam, action)
    return tf.train.AllReduceOptimizer(guarded, WORKERS, sharded=mode == "sharded", bucket_bytes=8)


def _train(mode: str, action: str, factors: list[float]) -> list[list[Any]]:
    """What each worker has after each step: variables with slots, or an error.

    The last gradient of ``a`` is multiplied by a factor: that of the second worker, in each step.
    """
    found: list[list[Any]] = [[] for _ in range(WORKERS)]

    def worker(i: int) -> None:
        with tf.Graph().as_default(), tf.device(f"/job:worker/task:{i}"):
            factor = tf.placeholder(tf.float32, [])
            a = tf.get_variable("a", initializer=START)
            b = tf.get_variable("b", initializer=START[:4])
            loss = tf.reduce_sum(a[:6]) + a[6] * factor + tf.reduce_sum(b * b)
            step = tf.train.get_or_create_global_step()
            train = _optimizer(mode, action).minimize(loss, global_step=step)
            kept = [*tf.global_variables(), *tf.local_variables()]
            state = [v.read_value() for v in kept]
            with tf.Session(cluster.target("worker", i)) as sess:
                sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
                for value in factors:
                    try:
                        sess.run(train, {factor: value if i else 1.0})
                    except InvalidArgumentError as error:
                        found[i].append(error.message)
                    else:
                        found[i].append(None)
                    found[i].append(sess.run(state))

    with with_cluster(worker=WORKERS) as cluster:
        threads = [threading.Thread(target=worker, args=(i,)) for i in range(WORKERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive(), "a worker waits for ever"
    return found


def _same(one: list[Any], other: list[Any]) -> bool:
    return all(x.tobytes() == y.tobytes() for x, y in zip(one, other, strict=True))


every_mode = pytest.mark.parametrize("mode", ["outside", "inside", "sharded"])


@every_mode
def test_all_skip_the_step(mode):
    one, other = _train(mode, "skip", [1.0, float("nan"), 1.0])
    for states in (one, other):
        assert states[::2] == [None] * 3
        first, second, third = (states[i] for i in (1, 3, 5))
        # Only the global step was counted up.
        changed = [k for k, (x, y) in enumerate(zip(first, second, strict=True)) if (x != y).any()]
        assert len(changed) == 1
        assert int(second[changed[0]]) == 2
        assert not _same(second, third)
    assert all(np.isfinite(x).all() for x in one[-1])
    if mode != "sharded":  # there each has slots of its own
        assert _same(one[-1], other[-1])


@every_mode
def test_all_stop(mode):
    one, other = _train(mode, "stop", [1.0, float("inf"), 1.0])
    for states in (one, other):
        assert "is not finite" in states[2]
        assert _same(states[1], states[3])
        assert states[4] is None
        assert not _same(states[3], states[5])


@every_mode
def test_all_report(mode):
    one, other = _train(mode, "report", [float("nan")])
    for states in (one, other):
        assert states[0] is None
        assert np.isnan(states[1][0]).tolist() == [False] * 6 + [True]
        assert np.isfinite(states[1][1]).all()


@pytest.mark.parametrize("action", ["skip", "stop"])
def test_a_guard_around_what_waits_is_refused(action):
    adam = tf.train.AdamOptimizer()
    sharded = tf.train.AllReduceOptimizer(adam, 2, sharded=True)
    for around in (sharded, tf.train.SyncReplicasOptimizer(adam, 2)):
        with pytest.raises(ValueError, match="Put the guard inside"):
            GuardedOptimizer(around, action)
        GuardedOptimizer(around, "report")
