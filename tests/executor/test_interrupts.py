"""Steps that are given up while they compute: loops of all kinds end, and change nothing."""

import threading

import numpy as np
import pytest

import headrace as tf
from headrace.errors import CancelledError, DeadlineExceededError
from headrace.executor import interrupts
from headrace.executor.interrupts import Watch

#: More iterations than anybody waits for.
ENDLESS = 10**12


@pytest.fixture
def n():
    return tf.placeholder(tf.int64, [])


def count_to(n, x, change=lambda x: x * 1.0000001):
    start = [tf.constant(0, tf.int64), x]
    return tf.while_loop(lambda i, _: i < n, lambda i, x: (i + 1, change(x)), start)[1]


def loop(n, v):
    return count_to(n, tf.constant(1.0))


def update(n, v):
    return v.assign(count_to(n, v.read_value()))


def counted(n, v):
    start = [tf.constant(0), tf.constant(1.0)]
    return tf.while_loop(lambda i, _: i < 2**31 - 1, lambda i, x: (i + 1, x * 0.5), start)[1]


def nested(n, v):
    start = [tf.constant(0), tf.constant(1.0)]
    return tf.while_loop(lambda i, _: i < 10**6, lambda i, x: (i + 1, count_to(n, x)), start)[1]


def in_a_branch(n, v):
    return tf.cond(n > 0, lambda: count_to(n, tf.constant(1.0)), lambda: tf.constant(0.0))


def in_a_map(n, v):
    return tf.map_fn(lambda x: count_to(n, x), tf.ones([100]))


def that_writes(n, v):
    def body(i):
        with tf.control_dependencies([v.assign_add(1.0)]):
            return i + 1

    return tf.while_loop(lambda i: i < n, body, [tf.constant(0, tf.int64)])


LOOPS = [loop, update, counted, nested, in_a_branch, in_a_map, that_writes]


@pytest.mark.parametrize("interpret", ["never", "always"], indirect=True)
@pytest.mark.parametrize("make", LOOPS)
def test_a_loop_ends_when_its_step_is_given_up(make, n, interpret, monkeypatch):
    v = tf.get_variable("v", initializer=5.0, use_resource=True)
    fetch = make(n, v)
    asked = []
    check = Watch.check

    def give_up_later(self):
        asked.append(self)
        if len(asked) > 5:
            raise CancelledError(None, None, "It is enough.")
        return check(self)

    with tf.Session() as session:
        session.run(v.initializer)
        with monkeypatch.context() as patch:
            patch.setattr(Watch, "check", give_up_later)
            with pytest.raises(CancelledError, match="It is enough"):
                session.run(fetch, {n: ENDLESS})
        assert session.run(v) == 5.0
        if make not in (counted, nested):
            session.run(fetch, {n: 3})


@pytest.mark.slow
@pytest.mark.parametrize("make", LOOPS)
def test_a_loop_ends_at_its_deadline(make, n):
    v = tf.get_variable("v", initializer=5.0, use_resource=True)
    fetch = make(n, v)
    config = tf.ConfigProto(operation_timeout_in_ms=1000)
    clock = interrupts.time.monotonic
    with tf.Session() as session, tf.Session(config=config) as limited:
        for each in (session, limited):
            each.run(v.initializer)
            for _ in range(2 * (make not in (counted, nested))):
                each.run(fetch, {n: 3})
        before = session.run(v)
        for _ in range(2):
            for each, options in ((session, tf.RunOptions(timeout_in_ms=1000)), (limited, None)):
                began = clock()
                with pytest.raises(DeadlineExceededError, match="timeout_in_ms=1000"):
                    each.run(fetch, {n: ENDLESS}, options=options)
                compiles = make in (counted, nested)
                assert clock() - began < 1.5 + 2.0 * compiles
        assert session.run(v) == before


@pytest.fixture
def asks(monkeypatch):
    """Set when a loop asks for the first time; ``asks.go_on`` lets it have the answer."""
    there, go_on = threading.Event(), threading.Event()
    answer = Watch.answer

    def noted(self, *args):
        there.set()
        assert go_on.wait(30)
        return answer(self, *args)

    monkeypatch.setattr(Watch, "answer", noted)
    there.go_on = go_on
    yield there
    go_on.set()


class Running(threading.Thread):
    """A step in a thread of its own."""

    def __init__(self, session, *args, **kwargs):
        super().__init__()
        self.call = lambda: session.run(*args, **kwargs)
        self.result = None
        self.start()

    def run(self):
        try:
            self.result = self.call()
        except tf.errors.OpError as error:
            self.result = error


def test_others_read_and_write_while_a_loop_runs(n, asks):
    """The loop sees the values that it began with, whoever changes them in place."""
    w = tf.get_variable("w", initializer=tf.ones([1000]), use_resource=True)
    mine = tf.get_variable("mine", initializer=0.0, use_resource=True)
    total = count_to(n, tf.constant(0.0), lambda x: x + w[0])
    more, add = w.assign_add(tf.ones([1000])), mine.assign_add(1.0)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        asks.go_on.set()
        for _ in range(3):
            session.run([total, more.op, add], {n: 3})
        asks.go_on.clear()
        asks.clear()
        session.run(w.initializer)
        step = Running(session, total, {n: 10**6})
        assert asks.wait(30)
        for _ in range(3):
            session.run([more.op, add])
        assert session.run([w[0], mine]) == [4.0, 6.0]
        asks.go_on.set()
        step.join(30)
        assert step.result == 1e6


def test_who_writes_what_a_step_writes_waits_for_it_until_its_deadline(n, asks):
    v = tf.get_variable("v", initializer=1.0, use_resource=True)
    long, add = v.assign(count_to(n, v.read_value())), v.assign_add(1.0)
    with tf.Session() as session:
        session.run(v.initializer)
        asks.go_on.set()
        for _ in range(2):
            session.run([long, add], {n: 3})
        session.run(v.initializer)
        asks.go_on.clear()
        asks.clear()
        step = Running(session, long, {n: 10**6})
        assert asks.wait(30)
        assert session.run(v) == 1.0
        with pytest.raises(DeadlineExceededError):
            session.run(add, options=tf.RunOptions(timeout_in_ms=20))
        waiting = Running(session, add)
        asks.go_on.set()
        for each in (step, waiting):
            each.join(30)
        assert waiting.result == step.result + 1.0


def test_closing_a_session_ends_its_steps(n, asks):
    asks.go_on.set()
    session = tf.Session()
    coordinator = tf.train.Coordinator()
    step = Running(session, count_to(n, tf.constant(1.0)), {n: ENDLESS})
    assert asks.wait(30)
    coordinator.request_stop()
    session.close()
    coordinator.join([step], stop_grace_period_secs=30)
    assert isinstance(step.result, CancelledError)
    assert "closed" in step.result.message


@pytest.mark.parametrize("make", [loop, nested, in_a_map, update])
def test_values_do_not_depend_on_when_loops_ask(make, n, monkeypatch):
    results = []
    for first in (interrupts._FIRST_CHUNK, 0.0):
        monkeypatch.setattr(interrupts, "_FIRST_CHUNK", first)
        monkeypatch.setattr(interrupts, "SHORT_LOOP", 1e-9)
        with tf.Graph().as_default(), tf.Session() as session:
            n = tf.placeholder(tf.int64, [])
            v = tf.get_variable("v", initializer=5.0, use_resource=True)
            count = 2 if make is nested else 50
            monkeypatch.setattr(tf, "while_loop", tf.while_loop)
            fetch = make(n, v) if make is not nested else count_to(n, tf.constant(1.0))
            session.run(v.initializer)
            results.append([np.asarray(session.run(fetch, {n: count})) for _ in range(3)])
    np.testing.assert_array_equal(results[0], results[1])


def test_short_loops_ask_nobody(monkeypatch):
    asked = []
    monkeypatch.setattr(interrupts.LoopPolls, "of", lambda *args: asked.append(args[1:]))
    monkeypatch.setattr("headrace.settings.flags.interpret", "never")
    x = tf.placeholder(tf.float32, [8])
    counted = count_to(100, x)
    with tf.Session() as session:
        session.run([counted, tf.map_fn(lambda y: y * 2.0, x)], {x: np.ones(8)})
    (seconds, most), (each, rows) = asked
    assert (most, rows) == (100, 8)
    assert most * seconds < interrupts.SHORT_LOOP
    assert rows * each < interrupts.SHORT_LOOP
