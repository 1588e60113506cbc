"""Collective operations between the tasks of a cluster: each worker runs steps of its own."""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace import errors
from headrace.distributed.links.timing import Timing
from headrace.graph.proto import ConfigProto
from headrace.harness.cluster import with_cluster

QUICK = Timing(tick=0.02, heartbeat=0.05, silence=0.4, probe=0.05)


def _workers(cluster, number: int, member: Callable[[Any, int], Any]) -> list[Any]:
    """What ``member(session, index)`` gives in each worker, or raises."""
    found: list[Any] = [None] * number

    def run(i: int) -> None:
        try:
            with (
                tf.Graph().as_default(),
                tf.device(f"/job:worker/task:{i}"),
                tf.Session(cluster.target("worker", i)) as sess,
            ):
                found[i] = member(sess, i)
        except Exception as error:
            found[i] = error

    threads = [threading.Thread(target=run, args=(i,)) for i in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    for got in found:
        if isinstance(got, BaseException):
            raise got
    return found


@pytest.mark.parametrize("count", [0, 1, 1000, 100_003])
@pytest.mark.parametrize("workers", [2, 3])
def test_sums(workers, count):
    values = np.random.default_rng(0).normal(size=(workers, count)).astype(np.float32)

    def member(sess, i):
        total = tf.collective.all_reduce(values[i], workers, 1, 1)
        return [sess.run(total) for _ in range(3)]

    with with_cluster(worker=workers, ps=1) as cluster:
        found = _workers(cluster, workers, member)
    for runs in found:
        for run in runs:
            assert run.tobytes() == found[0][0].tobytes()
            np.testing.assert_allclose(run, values.sum(0), rtol=1e-5, atol=1e-6)


def test_all_kinds():
    def member(sess, i):
        value = tf.constant([[1.0, i], [2.0, i]])
        ops = [
            tf.collective.all_reduce(value, 2, 1, 1, "Max"),
            tf.collective.all_gather(tf.fill([i + 1], i), 2, 1, 2),
            tf.collective.reduce_scatter(value, 2, 1, 3, "Add", "Div"),
            tf.collective.broadcast_send([4, 2], [2], tf.int32, 2, 1, 4)
            if i
            else tf.collective.broadcast_recv([2], tf.int32, 2, 1, 4),
        ]
        return sess.run(ops)

    with with_cluster(worker=2) as cluster:
        one, other = _workers(cluster, 2, member)
    for i, got in enumerate((one, other)):
        np.testing.assert_array_equal(got[0], [[1, 1], [2, 1]])
        np.testing.assert_array_equal(got[1], [0, 1, 1])
        np.testing.assert_array_equal(got[2], [[i + 1, 0.5]])
        np.testing.assert_array_equal(got[3], [4, 2])


def test_several_devices_of_each_task():
    """Four members on two tasks; one step of each has two of them."""

    def member(sess, i):
        found = []
        for key, kind in enumerate((tf.collective.all_reduce, tf.collective.reduce_scatter)):
            ops = []
            for k in range(2):
                with tf.device(f"/job:worker/task:{i}/device:CPU:{k}"):
                    ops.append(kind(np.arange(4.0) + 10 * i + k, 4, 1, key, "Add", "Div"))
            found.append(sess.run(ops))
        with tf.device("/device:CPU:0"):
            a = tf.collective.all_gather([2 * i], 4, 1, 9)
        with tf.device("/device:CPU:1"):
            b = tf.collective.all_gather([2 * i + 1], 4, 1, 9)
        return (*found, sess.run([a, b]))

    config = ConfigProto(device_count={"CPU": 2})
    with with_cluster(config, worker=2) as cluster:
        found = _workers(cluster, 2, member)
    mean = np.arange(4.0) + (0 + 1 + 10 + 11) / 4
    for i, (reduced, parts, gathered) in enumerate(found):
        for k in range(2):
            np.testing.assert_array_equal(reduced[k], mean)
            np.testing.assert_array_equal(parts[k], mean[2 * i + k : 2 * i + k + 1])
            np.testing.assert_array_equal(gathered[k], [0, 1, 2, 3])


def test_all_members_may_be_of_one_task():
    def member(sess, i):
        if i:
            return None
        ops = []
        for k in range(2):
            with tf.device(f"/device:CPU:{k}"):
                ops.append(tf.collective.all_reduce([1.0], 2, 1, 1))
        return sess.run(ops)

    config = ConfigProto(device_count={"CPU": 2})
    with with_cluster(config, worker=2) as cluster:
        got = _workers(cluster, 2, member)[0]
    np.testing.assert_array_equal(got, [[2.0], [2.0]])


def test_a_client_may_have_all_members_in_one_step():
    with with_cluster(worker=2) as cluster, tf.Graph().as_default():
        sums = []
        for i in range(2):
            with tf.device(f"/job:worker/task:{i}"):
                sums.append(tf.collective.all_reduce(tf.constant([1.0, i]), 2, 1, 1))
        with tf.Session(cluster.target("worker", 0)) as sess:
            np.testing.assert_array_equal(sess.run(sums), [[2, 1], [2, 1]])


def test_graphs_that_differ():
    def member(sess, i):
        with tf.name_scope(f"model_{i}"):
            total = tf.collective.all_reduce(tf.ones([2 + i]), 2, 1, 1)
        good = tf.collective.all_reduce(1.0, 2, 1, 2)
        with pytest.raises(errors.InvalidArgumentError) as caught:
            sess.run(total)
        return caught.value.message, sess.run(good)

    with with_cluster(worker=2) as cluster:
        found = _workers(cluster, 2, member)
    for message, good in found:
        assert "float32[2]" in message
        assert "float32[3]" in message
        assert "model_" in message
        assert good == 2.0


def test_different_sizes_of_a_group():
    def member(sess, i):
        with pytest.raises(errors.InvalidArgumentError, match=r"say the same group_size"):
            sess.run(tf.collective.all_reduce(1.0, 3 - i, 1, 1))

    # The first worker to ask decides; with three members the others would wait for a third.
    with with_cluster(worker=2) as cluster:

        def both(sess, i):
            if i == 0:
                total = tf.collective.all_reduce(1.0, 3, 1, 1)
                with pytest.raises(errors.DeadlineExceededError):
                    sess.run(total, options=tf.RunOptions(timeout_in_ms=100))
                asked.set()
                return
            asked.wait()
            member(sess, i)

        asked = threading.Event()
        _workers(cluster, 2, both)


def test_who_is_left_goes_on():
    """A member dies while the others wait for it: they end without it, with equal sums."""
    gone, sums = threading.Event(), {}

    def member(sess, i):
        x = tf.placeholder(tf.float32, [])
        total = tf.collective.all_reduce(x, 3, 1, 1)
        mean = tf.collective.all_reduce(x, 3, 1, 2, "Add", "Div")
        first = sess.run([total, mean], {x: i + 1})
        if i == 2:
            cluster.crash("/job:worker/replica:0/task:2")
            gone.set()
            return first
        began = time.monotonic()
        sums[i] = [sess.run([total, mean], {x: i + 1}) for _ in range(2)]
        gone.wait()
        assert time.monotonic() - began < 5
        return first

    with with_cluster(timing=QUICK, worker=3) as cluster:
        found = _workers(cluster, 3, member)
    assert found == [[6.0, 2.0]] * 3
    assert sums == {0: [[3.0, 1.5]] * 2, 1: [[3.0, 1.5]] * 2}


def test_the_leader_may_be_lost():
    def member(sess, i):
        x = tf.placeholder(tf.float32, [])
        total = tf.collective.all_reduce(x, 3, 1, 1)
        first = sess.run(total, {x: i + 1})
        if i == 0:
            cluster.crash("/job:worker/replica:0/task:0")
            return [first]
        return [first, sess.run(total, {x: i + 1}), sess.run(total, {x: i + 1})]

    with with_cluster(timing=QUICK, worker=3) as cluster:
        found = _workers(cluster, 3, member)
    assert found == [[6.0], [6.0, 5.0, 5.0], [6.0, 5.0, 5.0]]


@pytest.mark.parametrize("lost", [(0, 3), (0, 1, 2)])
def test_members_that_were_never_talked_to_are_lost_at_once(lost):
    """In a tree of four, 1 and 3 have no connection that would break."""
    timing = dataclasses.replace(QUICK, silence=20.0, send=20.0)
    ready, seconds = threading.Barrier(4), []

    def member(sess, i):
        x = tf.placeholder(tf.float32, [])
        total = tf.collective.all_reduce(x, 4, 1, 1)
        sess.run(total, {x: i})
        ready.wait(10)
        if i in lost:
            cluster.crash(f"/job:worker/replica:0/task:{i}")
            return None
        began = time.monotonic()
        found = sess.run(total, {x: i})
        seconds.append(time.monotonic() - began)
        return found

    with with_cluster(timing=timing, worker=4) as cluster:
        found = _workers(cluster, 4, member)
    assert found == [None if i in lost else 6.0 - sum(lost) for i in range(4)]
    assert max(seconds) < 5


def test_a_member_is_lost_between_rows_and_their_indices():
    """Sparse gradients are of the same members, and divided by their number."""

    def member(sess, i):
        def places():
            if i == 2:
                cluster.crash("/job:worker/replica:0/task:2")
            return np.int64([i, 3])

        table = tf.get_variable("t", initializer=np.zeros((4, 1), np.float32))
        indices = tf.py_func(places, [], tf.int64)
        indices.set_shape([2])
        grad = tf.IndexedSlices(tf.fill([2, 1], 6.0), indices, tf.constant([4, 1]))
        inner = tf.train.GradientDescentOptimizer(-1.0)
        before = tf.get_default_graph().version
        pairs = tf.train.AllReduceOptimizer(inner, 3).averaged([(grad, table)], before)
        train = inner.apply_gradients(pairs)
        sess.run(tf.variables_initializer([table]))
        together = tf.collective.all_reduce(1.0, 3, 1, 99)
        sess.run(together)
        try:
            sess.run(train)
        except errors.OpError:
            if i == 2:
                return None
            raise
        return sess.run(table).ravel().tolist()

    with with_cluster(timing=QUICK, worker=3) as cluster:
        found = _workers(cluster, 3, member)
    assert found == [[3.0, 3.0, 0.0, 6.0]] * 2 + [None]


def test_a_broken_connection_costs_nothing():
    def member(sess, i):
        x = tf.placeholder(tf.float32, [50_000])
        total = tf.collective.all_reduce(x, 2, 1, 1)
        found = []
        for step in range(6):
            if i == 0 and step in (2, 4):
                for link in cluster.tasks["/job:worker/replica:0/task:0"].peers.all():
                    link.fail("cut by the test")
            found.append(sess.run(total, {x: np.full(50_000, step + i)}))
        return found

    with with_cluster(timing=QUICK, worker=2) as cluster:
        found = _workers(cluster, 2, member)
    for got in found:
        np.testing.assert_array_equal([g[0] for g in got], [1, 3, 5, 7, 9, 11])


def test_a_step_that_gives_up_has_given_its_part():
    def member(sess, i):
        total = tf.collective.all_reduce(float(i + 1), 2, 1, 1)
        if i == 0:
            with pytest.raises(errors.DeadlineExceededError):
                sess.run(total, options=tf.RunOptions(timeout_in_ms=100))
            waited.set()
            return sess.run(total)
        waited.wait()
        return [sess.run(total), sess.run(total)][1]

    waited = threading.Event()
    with with_cluster(worker=2) as cluster:

        def formed(sess, i):
            sess.run(tf.collective.all_reduce(1.0, 2, 1, 7))
            return member(sess, i)

        found = _workers(cluster, 2, formed)
    assert found == [3.0, 3.0]


def test_one_that_was_started_again_comes_too_late():
    def member(sess, i):
        return sess.run(tf.collective.all_reduce(1.0, 2, 1, 1))

    def again(sess, i):
        if i == 0:
            return None
        with pytest.raises(errors.FailedPreconditionError, match="cannot join group 1"):
            sess.run(tf.collective.all_reduce(1.0, 2, 1, 1))
        return True

    with with_cluster(timing=QUICK, worker=2) as cluster:
        assert _workers(cluster, 2, member) == [2.0, 2.0]
        cluster.crash("/job:worker/replica:0/task:1")
        cluster.start("/job:worker/replica:0/task:1")
        assert _workers(cluster, 2, again) == [None, True]
