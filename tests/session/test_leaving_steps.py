"""Whoever waits for a step leaves at its deadline, whatever the step is about."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

import headrace as tf
from headrace.distributed.master.session import MasterSession
from headrace.executor.plan import LocalPlan
from headrace.executor.program import Program
from headrace.executor.threads import step_threads
from headrace.harness.cluster import with_cluster
from headrace.step.engine import ProcessEngine

SOON = tf.RunOptions(timeout_in_ms=20)


class Held:
    """A call that waits until it is let go."""

    def __init__(self, monkeypatch, owner, name):
        self.began, self.go_on = threading.Event(), threading.Event()
        self.calls = 0
        function = getattr(owner, name)

        def held(*args, **kwargs):
            self.calls += 1
            self.began.set()
            assert self.go_on.wait(60)
            return function(*args, **kwargs)

        monkeypatch.setattr(owner, name, held)


@pytest.fixture
def hold(monkeypatch):
    """``hold(owner, name)`` makes a method wait; all are let go in the end."""
    made = []

    def make(owner, name):
        made.append(Held(monkeypatch, owner, name))
        return made[-1]

    yield make
    for one in made:
        one.go_on.set()
    assert step_threads.wait_until_idle(60)


@pytest.fixture
def compiled(monkeypatch):
    monkeypatch.setattr("headrace.settings.flags.interpret", "never")


class Step(threading.Thread):
    """A step with much time, in a thread of its own."""

    def __init__(self, session, *args):
        super().__init__()
        self.error = None
        self.call = lambda: session.run(*args, options=tf.RunOptions(timeout_in_ms=600000))
        self.start()

    def run(self):
        try:
            self.call()
        except tf.errors.OpError as error:
            self.error = error


def leaves(session, fetches, **kwargs):
    began = time.monotonic()
    with pytest.raises(tf.errors.DeadlineExceededError, match="timeout_in_ms=20"):
        session.run(fetches, options=SOON, **kwargs)
    assert time.monotonic() - began < 20  # the test machine may be busy; it is held for ever


def test_a_step_that_is_being_planned_is_left_and_its_plan_kept(hold):
    x = tf.placeholder(tf.float32, [2])
    y = x + 1.0
    with tf.Session() as session:
        planning = hold(ProcessEngine, "plan")
        leaves(session, y, feed_dict={x: [1, 2]})
        planning.go_on.set()
        assert session.run(y, {x: [1, 2]}).tolist() == [2.0, 3.0]
        assert planning.calls == 1


@pytest.mark.parametrize("where", ["call", "_compiled"])
def test_a_step_that_is_left_writes_nothing(hold, compiled, where):
    v = tf.get_variable("v", initializer=np.ones(8, "f"), use_resource=True)
    other = tf.get_variable("w", initializer=1.0, use_resource=True)
    add, read, later = v.assign_add(tf.ones([8])), v.read_value(), other.assign_add(1.0)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run([read, later])[1] == 2.0
        working = hold(Program, where)
        leaves(session, add)
        working.go_on.set()
        assert step_threads.wait_until_idle(60)
        assert session.run(read).tolist() == [1.0] * 8 if where == "_compiled" else True
        before = session.run(read)
        assert session.run(add).tolist() == (before + 1).tolist()


def test_who_needs_what_a_kernel_changes_waits_in_time(hold, compiled):
    """No lock is held while a program is called that runs at once."""
    v = tf.get_variable("v", initializer=np.ones(8, "f"), use_resource=True)
    w = tf.get_variable("w", initializer=np.ones(8, "f"), use_resource=True)
    add, read, more = v.assign_add(tf.ones([8])), v.read_value(), w.assign_add(tf.ones([8]))
    twice = v.assign_add(2 * tf.ones([8]))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(2):
            session.run([read, more])
        working = hold(Program, "call")
        step = Step(session, add.op)
        assert working.began.wait(30)
        leaves(session, read)
        leaves(session, twice)
        working.go_on.set()
        step.join(30)
        assert session.run(read).tolist() == [2.0] * 8
        assert session.run(more).tolist() == [4.0] * 8


@pytest.fixture
def long_calls(monkeypatch):
    """``long_calls(n)``: the n-th call of a program of a long kernel waits until it is let go."""
    began, go_on = threading.Event(), threading.Event()
    call, calls, held = Program.call, [], []

    def counted(program, *args):
        if all(n.type != "Svd" for n in program.region.nodes):
            return call(program, *args)
        calls.append(program)
        if len(calls) in held:
            began.set()
            assert go_on.wait(30)
        return call(program, *args)

    monkeypatch.setattr(Program, "call", counted)

    def hold_call(number):
        go_on.clear()
        began.clear()
        held.append(number)
        return began, go_on

    yield hold_call
    go_on.set()
    assert step_threads.wait_until_idle(60)


def _with_svd():
    v = tf.get_variable("v", initializer=np.ones(8, "f"), use_resource=True)
    w = tf.get_variable("w", initializer=np.ones(8, "f"), use_resource=True)
    x = tf.placeholder(tf.float32, [70, 70])
    step = v.assign_add(tf.ones([8]) * tf.reduce_sum(tf.svd(x, compute_uv=False))).op
    return v, w, step, {x: np.zeros([70, 70], "f")}


@pytest.mark.parametrize("number", [1, 2, 3, 10])
def test_nobody_waits_while_a_long_kernel_runs_in_its_call(long_calls, compiled, number):
    v, w, add, feeds = _with_svd()
    more = w.assign_add(tf.ones([8]))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run([w.read_value(), v.read_value(), more])
        for _ in range(number - 1):
            session.run(add, feeds)
        began, go_on = long_calls(number)
        step = Step(session, add, feeds)
        assert began.wait(30)
        assert session.run(w).tolist() == [2.0] * 8
        assert session.run(more).tolist() == [3.0] * 8
        if number > 1:  # not before it is known what the kernels are
            assert session.run(v).tolist() == [1.0] * 8
        assert not go_on.is_set()
        go_on.set()
        step.join(30)
        assert step.error is None


def test_nobody_waits_for_a_step_that_was_left(long_calls, compiled):
    """Neither readers nor writers: it writes nothing any more."""
    v, _, add, feeds = _with_svd()
    twice = v.assign_add(2 * tf.ones([8]))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(2):
            session.run([twice, v.read_value()])
        session.run(add, feeds)
        began, go_on = long_calls(2)
        leaves(session, add, feed_dict=feeds)
        assert began.is_set()
        assert session.run(v).tolist() == [5.0] * 8
        assert session.run(twice).tolist() == [7.0] * 8
        assert not go_on.is_set()
        go_on.set()
        assert step_threads.wait_until_idle(60)
        assert session.run(v).tolist() == [7.0] * 8


def test_the_setting_that_applied_is_named():
    queue = tf.FIFOQueue(1, tf.float32, shapes=[()])
    taken = queue.dequeue()
    with tf.Session(config=tf.ConfigProto(operation_timeout_in_ms=30)) as session:
        with pytest.raises(tf.errors.DeadlineExceededError, match=" operation_timeout_in_ms=30"):
            session.run(taken)
        with pytest.raises(tf.errors.DeadlineExceededError, match=" operation_timeout_in_ms=30"):
            session.make_callable(taken)()
        with pytest.raises(tf.errors.DeadlineExceededError, match=" timeout_in_ms=20"):
            session.run(taken, options=SOON)


def test_closing_a_session_ends_the_wait_for_a_kernel(hold, compiled):
    x = tf.placeholder(tf.float32, [8])
    y = x + 1.0
    session = tf.Session()
    working = hold(Program, "call")
    step = Step(session, y, {x: np.ones(8)})
    assert working.began.wait(30)
    session.close()
    step.join(30)
    assert isinstance(step.error, tf.errors.CancelledError)


def test_what_a_left_step_traces_reaches_nobody(hold):
    x = tf.placeholder(tf.float32, [2])
    metadata = tf.RunMetadata()
    options = tf.RunOptions(timeout_in_ms=20, trace_level=tf.RunOptions.FULL_TRACE)
    with tf.Session() as session:
        running = hold(LocalPlan, "run")
        with pytest.raises(tf.errors.DeadlineExceededError):
            session.run(x + 1.0, {x: [1, 2]}, options, metadata)
        running.go_on.set()
        assert step_threads.wait_until_idle(60)
    assert not metadata.step_stats.dev_stats


def test_steady_steps_run_in_the_thread_that_waits(monkeypatch):
    threads = []
    run = LocalPlan.run

    def noted(self, *args):
        threads.append(threading.current_thread() is threading.main_thread())
        return run(self, *args)

    monkeypatch.setattr(LocalPlan, "run", noted)
    monkeypatch.setattr("headrace.session.session._PROMPT", 60.0)
    x = tf.placeholder(tf.float32, [None, 4])
    v = tf.get_variable("v", initializer=np.ones([4, 4], "f"), use_resource=True)
    y = tf.reduce_sum(tf.matmul(x, v))
    options = tf.RunOptions(timeout_in_ms=60000)
    with tf.Session() as session:
        session.run(v.initializer)
        del threads[:]
        for _ in range(5):
            session.run(y, {x: np.ones([64, 4])}, options)
        assert threads[0] is False  # it was compiled there
        assert threads[-1] is True
        session.run(y, {x: np.ones([65, 4])}, options)
        assert threads[-1] is False


def test_a_step_of_a_cluster_that_is_being_planned_is_left(hold):
    with with_cluster(worker=1) as cluster, tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [2])
        y = x + 1.0
        with tf.Session(cluster.target("worker"), graph=graph) as session:
            planning = hold(MasterSession, "plan")
            leaves(session, y, feed_dict={x: [1, 2]})
            planning.go_on.set()
            assert session.run(y, {x: [1, 2]}).tolist() == [2.0, 3.0]
