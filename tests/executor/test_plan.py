"""Plans: how steps are cut into units, run, split and undone."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import headrace as tf
from headrace.executor.step_context import StepContext
from headrace.ops.core.registry import EXTERNAL, Effects
from headrace.settings import flags


def plan_of(sess, fetches, feeds=()):
    """The plan that the session makes for such a step."""
    return sess._compile(fetches, list(feeds)).plan


def test_description_of_one_region():
    x = tf.placeholder(tf.float32, [2], name="x")
    v = tf.Variable([1.0, 2.0], name="v")
    step = v.assign_add(x * 2.0, name="grow", read_value=False)
    assert plan_of(tf.Session(), step, [x]).describe_units() == (
        "0: region region of 2 ops to grow: 1 in, 0 static, 0 out\n"
        "     <mul = Mul(x:0:0, mul/y:0)>\n"
        "     <grow = AssignAddVariableOp(v:0, mul:0)>"
    )


def test_host_ops_stand_between_regions():
    x = tf.placeholder(tf.float32, [2], name="x")
    middle = tf.py_func(lambda a: a + 1, [x * 2.0], tf.float32, name="python")
    y = tf.tanh(tf.reshape(middle, [2]), name="y")
    assert plan_of(tf.Session(), y, [x]).describe_units() == (
        "0: region region of 1 op to mul: 1 in, 0 static, 1 out\n"
        "     <mul = Mul(x:0:0, mul/y:0)>\n"
        "1: host   python: 1 in, 0 static, 1 out\n"
        "2: region region of 2 ops to y: 1 in, 0 static, 1 out\n"
        "     <Reshape = Reshape(python:0, Reshape/shape:0)>\n"
        "     <y = Tanh(Reshape:0)>"
    )


def test_a_size_that_is_fed_is_static():
    n = tf.placeholder(tf.int32, [], name="n")
    zeros = tf.zeros([n + 1])
    plan = plan_of(tf.Session(), zeros, [n])
    assert [(len(u.inputs), len(u.static)) for u in plan.units] == [(0, 1)]


def test_a_shape_computed_from_a_variable_ends_a_region(interpret):
    size = tf.Variable(2, name="size")
    x = tf.placeholder(tf.float32, [None])
    y = tf.reshape(x, [size.read_value() * 1, -1])
    sess = tf.Session()
    sess.run(size.initializer)
    for _ in range(2):
        assert sess.run(y, {x: np.ones(6)}).shape == (2, 3)
    sess.run(size.assign(3))
    assert sess.run(y, {x: np.ones(6)}).shape == (3, 2)


def test_static_values_may_come_from_host_ops_and_feeds(interpret):
    n = tf.placeholder(tf.int32, [])
    host = tf.py_func(lambda a: a + np.int32(1), [n], tf.int32)
    host.set_shape([])
    sess = tf.Session()
    zeros = tf.zeros([host, n])
    for value in (1, 2, 1):
        assert sess.run(zeros, {n: value}).shape == (value + 1, value)


@pytest.fixture
def needs_value(new_op, monkeypatch):
    """An op that turns out to need the host only when it is traced."""
    monkeypatch.setattr(flags, "interpret", "never")
    return new_op(
        "TestNeedsValue(x: float) -> y: float",
        kernel=lambda x: _refuse(),
        interpret=lambda x: x + 1,
    )


def _refuse():
    from headrace.ops.core.checks import NeedsValue

    raise NeedsValue("its value decides")


def test_a_plan_splits_around_a_node_that_needs_the_host(needs_value):
    x = tf.placeholder(tf.float32, [2], name="x")
    y = tf.tanh(needs_value(x * 2.0), name="y")
    sess = tf.Session()
    plan = plan_of(sess, y, [x])
    assert len(plan.units) == 1
    for _ in range(3):
        (got,) = plan.run([np.array([1, 2], np.float32)])
        np.testing.assert_allclose(got, np.tanh([3, 5]), rtol=1e-6)
    assert [u.label for u in plan.units] == [
        "region of 1 op to mul",
        "TestNeedsValue",
        "region of 1 op to y",
    ]


def test_many_threads_may_find_out_at_once_that_a_plan_must_split(needs_value):
    x = tf.placeholder(tf.float32, [2])
    y = x
    for _ in range(3):
        y = needs_value(y * 2.0)
    sess = tf.Session()
    start = threading.Barrier(4)
    results = []

    def work():
        start.wait()
        results.append(sess.run(y, {x: [1, 2]}))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert [r.tolist() for r in results] == [[15, 23]] * 4


def test_a_failed_step_changes_no_variable(interpret):
    v = tf.Variable([1.0, 1.0])
    x = tf.placeholder(tf.float32, [2])
    with tf.control_dependencies([v.assign_add(x)]):
        late = tf.py_func(_only_small, [v.read_value()], tf.float32)
    sess = tf.Session()
    sess.run(v.initializer)
    for _ in range(3):
        with pytest.raises(tf.errors.OpError, match="too large"):
            sess.run(late, {x: [100, 100]})
        np.testing.assert_array_equal(sess.run(v), [1, 1])
    sess.run(late, {x: [1, 2]})
    np.testing.assert_array_equal(sess.run(v), [2, 3])


def _only_small(value):
    if value.max() > 10:
        raise ValueError("too large")
    return value


def test_a_step_that_fails_at_an_uninitialised_variable_changes_nothing(interpret):
    config = tf.ConfigProto(device_count={"CPU": 2})
    with tf.device("/cpu:0"):
        v = tf.Variable(1.0)
        grow = v.assign_add(1.0)
    with tf.device("/cpu:1"):
        w = tf.Variable(2.0)
        with tf.control_dependencies([grow]):
            read = w.read_value()
    sess = tf.Session(config=config)
    sess.run(v.initializer)
    for _ in range(2):
        with pytest.raises(tf.errors.FailedPreconditionError):
            sess.run(read)
        assert sess.run(v) == 1.0


def test_splitting_a_plan_makes_its_earlier_regions_keep_old_values(needs_value):
    v = tf.Variable(1.0)
    x = tf.placeholder(tf.float32, [])
    with tf.control_dependencies([v.assign_add(x)]):
        late = tf.py_func(_only_small, [needs_value(tf.identity(x))], tf.float32)
    sess = tf.Session()
    sess.run(v.initializer)
    sess.run(late, {x: 1.0})
    for _ in range(2):
        with pytest.raises(tf.errors.OpError):
            sess.run(late, {x: 100.0})
        assert sess.run(v) == 2.0


class Meeting:
    """Two host ops that each wait for the other."""

    def __init__(self, new_op):
        self.condition = threading.Condition()
        self.here = set()
        self.op = new_op(
            "TestMeet(x: float) -> y: float",
            attrs="me: string, other: string",
            host=self._meet,
            effects=Effects(blocks=True, external=True),
        )

    def _meet(self, context, x, *, me, other):
        with self.condition:
            self.here.add(me)
            self.condition.notify_all()
            context.step.wait_for(self.condition, lambda: other in self.here)
        return x + np.float32(1)


def test_ops_that_wait_for_each_other_run_side_by_side(new_op):
    meet = Meeting(new_op)
    x = tf.placeholder(tf.float32, [])
    a = meet.op(x * 2.0, me="a", other="b")
    b = meet.op(x * 3.0, me="b", other="a")
    total = a * 10.0 + b
    sess = tf.Session()
    for _ in range(2):
        meet.here.clear()
        assert sess.run(total, {x: 1.0}) == 34.0


def test_when_one_op_fails_those_that_wait_give_up(new_op):
    meet = Meeting(new_op)
    fail = new_op("TestFail(x: float) -> y: float", host=_fail, effects=EXTERNAL)
    x = tf.placeholder(tf.float32, [])
    waiting = meet.op(x, me="a", other="nobody")
    sess = tf.Session()
    with pytest.raises(tf.errors.OpError, match="on purpose"):
        sess.run([waiting, fail(x)], {x: 1.0})


def _fail(context, x):
    raise ValueError("on purpose")


def test_waiting_ends_at_the_deadline(new_op):
    meet = Meeting(new_op)
    x = tf.placeholder(tf.float32, [])
    pair = [meet.op(x, me="a", other="c"), meet.op(x, me="b", other="c")]
    with pytest.raises(tf.errors.DeadlineExceededError, match="timeout_in_ms=20"):
        tf.Session().run(pair, {x: 1.0}, options=tf.RunOptions(timeout_in_ms=20))


def test_a_step_in_which_nothing_runs_beside_the_op_that_waits_needs_no_threads(new_op):
    seen = []

    def host(context, x):
        seen.append(threading.current_thread())
        return x

    op = new_op("TestSeen(x: float) -> y: float", host=host, effects=Effects(blocks=True))
    x = tf.placeholder(tf.float32, [])
    assert tf.Session().run(op(x * 2.0) + 1.0, {x: 1.0}) == 3.0
    assert seen == [threading.current_thread()]


def test_deep_graphs(interpret):
    n = tf.placeholder(tf.int32, [])
    size = n
    for _ in range(1500):
        size = size + 1
    assert tf.Session().run(tf.zeros([size]), {n: 2}).shape == (1502,)


def test_context_gives_up_at_its_deadline():
    now = [0.0]
    context = StepContext(timeout_ms=1000, clock=lambda: now[0])
    context.check_deadline()
    assert context.remaining() == 1.0
    now[0] = 1.0
    with pytest.raises(tf.errors.DeadlineExceededError):
        context.check_deadline()
