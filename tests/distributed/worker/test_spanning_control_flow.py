"""Loops, branches and scans whose bodies run on several tasks."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import headrace as tf
from headrace.errors import (
    DeadlineExceededError,
    FailedPreconditionError,
    InvalidArgumentError,
    UnavailableError,
)
from headrace.graph import nest
from headrace.harness.cluster import with_cluster
from headrace.step.request import PlanRequest

W0, W1, PS = "/job:worker/task:0", "/job:worker/task:1", "/job:ps/task:0"


@pytest.fixture
def cluster():
    with with_cluster(ps=1, worker=2) as made:
        yield made


def _local():
    return tf.Session(config=tf.ConfigProto(allow_soft_placement=True))


def _both(cluster, fetches, feeds=({},), master=("worker", 0)):
    """The fetches in this process, and on the cluster."""
    results = []
    for session in (_local(), tf.Session(cluster.target(*master))):
        with session:
            session.run(tf.global_variables_initializer())
            results.append([session.run(fetches, feed) for feed in feeds])
    return results


def _assert_equal(one, other):
    for left, right in zip(nest.flatten(one), nest.flatten(other), strict=True):
        np.testing.assert_array_equal(right, left)


def _two_task_loop(x, steps=3):
    def body(i, value):
        with tf.device(W0):
            value = value * value
        with tf.device(W1):
            return i + 1, value + 1.0

    with tf.device(W1):
        return tf.while_loop(lambda i, _: i < steps, body, [0, x])[1]


@pytest.mark.parametrize("steps", [0, 1, 4])
def test_a_loop_and_its_gradient(cluster, steps):
    x = tf.placeholder(tf.float64, [2])
    y = _two_task_loop(x, steps)
    gradient = tf.gradients(y, x)[0]
    one, other = _both(cluster, [y, gradient], [{x: [0.5, -1.5]}, {x: [1.0, 2.0]}])
    _assert_equal(one, other)


def test_a_scan_and_its_gradient(cluster):
    x = tf.placeholder(tf.float64, [4])

    def step(total, element):
        with tf.device(W0):
            product = total * element
        with tf.device(W1):
            return product + 1.0

    y = tf.scan(step, x, initializer=tf.constant(1.0, tf.float64))
    one, other = _both(cluster, [y, tf.gradients(y, x)[0]], [{x: [1.0, 2.0, 3.0, 4.0]}])
    _assert_equal(one, other)


def test_branches_with_a_constant_and_with_other_tasks(cluster):
    x, p = tf.placeholder(tf.float32, [2]), tf.placeholder(tf.int32, [])
    with tf.device(PS):
        v = tf.Variable([3.0, 4.0])

    def far():
        with tf.device(W1):
            return x * 3.0

    with tf.device(W0):
        y = tf.case(
            [(tf.equal(p, 0), far), (tf.equal(p, 1), lambda: tf.constant([7.0, 8.0]))],
            default=lambda: v * x,
        )
    one, other = _both(cluster, y, [{x: [1.0, 2.0], p: i} for i in range(3)], ("ps", 0))
    _assert_equal(one, other)


def test_what_a_body_writes_is_written_once_in_each_call(cluster):
    with tf.device(PS):
        count = tf.Variable(0, name="count")
    with tf.device(W1):
        y = tf.while_loop(lambda i: i < 5, lambda i: i + count.assign_add(1) * 0 + 1, [0])
    with tf.Session(cluster.target("worker")) as session:
        session.run(count.initializer)
        assert session.run(y) == 5
        assert session.run(count) == 5
        assert session.run([y, y]) == [5, 5]
        assert session.run(count) == 10


def test_weights_on_a_server_in_a_loop_of_a_worker_and_their_gradient(cluster):
    with tf.device(PS):
        w = tf.Variable(np.array([[0.5, 0.25], [1.0, -0.5]]), name="w")
    with tf.device(W1):
        x = tf.constant([[1.0, 2.0]], tf.float64)
        y = tf.while_loop(lambda i, _: i < 3, lambda i, a: (i + 1, tf.matmul(a, w)), [0, x])[1]
        gradient = tf.gradients(y, w)[0]
    with tf.Session(cluster.target("worker")) as session:
        session.run(w.initializer)
        plan = session._engine.plan(PlanRequest([y])).describe()
        assert "body" not in plan  # the loop runs in one task
        found = session.run([y, gradient])
    one, _ = _both(cluster, [y, gradient])
    _assert_equal(one[0], found)


def test_a_read_before_a_loop_sees_what_was_written_before_the_loop(cluster):
    with tf.device(PS):
        v = tf.Variable(1.0)
        new = v.assign(5.0, read_value=False)
    with tf.device(W1), tf.control_dependencies([new]):
        start = tf.constant([0.0])
        y = tf.while_loop(lambda i, _: i < 2, lambda i, a: (i + 1, a + v), [0, start])[1]
    with tf.control_dependencies([y]):
        after = v.assign(9.0)
    with tf.Session(cluster.target("worker")) as session:
        for _ in range(3):
            session.run(v.initializer)
            assert session.run([y, after]) == [[10.0], 9.0]


def test_order_holds_through_a_loop_whose_value_nobody_uses(cluster):
    """Its part does nothing in the end, but what waits for it waits for what it waited for."""
    with tf.device(PS):
        v, slow = tf.Variable(1.0), tf.random_uniform([400, 400])
        first = v.assign(tf.reduce_max(tf.matmul(slow, slow)) * 0.0 + 5.0)
    with tf.device(W1), tf.control_dependencies([first]):
        loop = tf.while_loop(lambda i, _: i < 2, lambda i, a: (i + 1, a + v), [0, 1.0])[1]
    with tf.control_dependencies([loop]):
        after = v.read_value()
    with tf.Session(cluster.target("worker")) as session:
        for _ in range(5):
            session.run(v.initializer)
            assert session.run(after) == 5.0


def test_random_streams_of_bodies_go_on_from_plan_to_plan(cluster):
    x = tf.placeholder(tf.float64, [])

    def body(i, value):
        with tf.device(W0):
            noise = tf.random_uniform([], dtype=tf.float64, seed=3)
        with tf.device(W1):
            return i + 1, value * noise

    with tf.device(W1):
        y = tf.while_loop(lambda i, _: i < 3, body, [0, x])[1]
    more = y + 1.0
    results = []
    for session in (_local(), tf.Session(cluster.target("worker", 1))):
        with session:
            results.append([session.run(t, {x: 2.0}) for t in (y, more, y)])
    _assert_equal(*results)


def test_loops_in_loops_over_three_tasks(cluster):
    with tf.device(PS):
        v = tf.Variable(2)

    def inner(value):
        def body(j, a):
            with tf.device(W0):
                return j + 1, a + v.assign_add(1)

        return tf.while_loop(lambda j, _: j < 2, body, [0, value])[1]

    with tf.device(W1):
        y = tf.while_loop(lambda i, _: i < 3, lambda i, a: (i + 1, inner(a)), [0, 0])[1]
    one, other = _both(cluster, y, [{}, {}], ("worker", 1))
    _assert_equal(one, other)


# -- failures -----------------------------------------------------------------------------------


def test_the_error_of_a_body_says_what_failed_where(cluster):
    x = tf.placeholder(tf.float32, [3])

    def body(i, value):
        with tf.device(W0):
            row = tf.gather(x, [i], name="picked")
        return i + 1, value + row

    with tf.device(W1):
        y = tf.while_loop(lambda i, _: i < 5, body, [0, tf.zeros([1])])[1]
    with tf.Session(cluster.target("ps")) as session:
        with pytest.raises(InvalidArgumentError, match=r"indices\[0\] = 3") as caught:
            session.run(y, {x: [1.0, 2.0, 3.0]})
        assert caught.value.op.name.endswith("picked")
        assert session.run(x, {x: [1.0, 2.0, 3.0]}).shape == (3,)


def test_a_variable_without_a_value_in_a_branch_matters_only_when_it_is_taken(cluster):
    with tf.device(PS):
        v = tf.Variable(1.0, name="empty")
    p = tf.placeholder(tf.bool, [])
    with tf.device(W1):
        y = tf.cond(p, lambda: v + 1.0, lambda: tf.constant(2.0))
    with tf.Session(cluster.target("worker")) as session:
        assert session.run(y, {p: False}) == 2.0
        with pytest.raises(FailedPreconditionError, match="empty"):
            session.run(y, {p: True})


def _waiting_loop():
    with tf.device(PS):
        queue = tf.FIFOQueue(10, tf.float32, shapes=[[]])
        started = queue.enqueue(1.0)

    def body(i, value):
        with tf.device(None):
            element = queue.dequeue()
        with tf.device(W0):
            return i + 1, value + element

    with tf.device(W1):
        return started, tf.while_loop(lambda i, _: i < 3, body, [0, 0.0])[1]


def test_a_body_that_waits_ends_with_the_deadline_of_its_step(cluster):
    started, y = _waiting_loop()
    with tf.Session(cluster.target("worker")) as session:
        session.run(started)
        with pytest.raises(DeadlineExceededError):
            session.run(y, options=tf.RunOptions(timeout_in_ms=100))
        for _ in range(3):
            session.run(started)
        assert session.run(y) == 3.0  # what waited takes no more


def test_a_lost_task_ends_the_loops_that_need_it(cluster):
    started, y = _waiting_loop()
    outcome = []

    def run(session):
        try:
            session.run(y)
        except tf.OpError as error:
            outcome.append(error)

    with tf.Session(cluster.target("worker")) as session:
        session.run(started)
        thread = threading.Thread(target=run, args=(session,))
        thread.start()
        ps = cluster.tasks["/job:ps/replica:0/task:0"]
        _until(lambda: len(ps.worker.running()) == 1)
        cluster.kill("/job:ps/replica:0/task:0")
        thread.join()
    assert isinstance(outcome[0], UnavailableError)
    assert "/job:ps/replica:0/task:0" in outcome[0].message


def _until(condition):
    pause = threading.Event()
    while not condition():
        pause.wait(0.001)
