"""A failed step changes no variable, and nobody's arrays change behind their back."""

import threading

import numpy as np
import pytest

import headrace as tf


def boom(_):
    raise ValueError("boom")


def after(first, make):
    """What ``make()`` builds, to run after ``first``."""
    with tf.control_dependencies([first]):
        return make()


def count_loop(counter):
    """A loop that adds to a variable and fails in its fourth turn."""

    def body(k):
        with tf.control_dependencies([counter.assign_add(1.0)]):
            return k + tf.gather(tf.constant([1, 1, 1]), k)

    return tf.while_loop(lambda k: k < 9, body, [0])


def guarded_branch(counter, i):
    """A branch that adds to a variable and then fails in a host op."""

    def taken():
        return tf.group(counter.assign_add(1.0), tf.Assert(tf.reduce_all(i > 5), ["small"]))

    return tf.cond(counter > -1.0, taken, tf.no_op)


#: What fails after (or beside) the update of ``counter``; v has the shape [3], i is [7, 1].
FAILURES = {
    "index": lambda up, counter, v, i: after(up, lambda: tf.scatter_add(v, i, [1.0, 1.0])),
    "assert": lambda up, counter, v, i: after(up, lambda: tf.Assert(tf.reduce_all(i > 5), ["x"])),
    "py_func": lambda up, counter, v, i: after(up, lambda: tf.py_func(boom, [i], [])),
    "nan": lambda up, counter, v, i: after(up, lambda: tf.check_numerics(tf.log(-v - 1.0), "nan")),
    "regions": lambda up, counter, v, i: tf.group(
        after(tf.unique(i)[0], lambda: counter.assign_add(10.0)),
        after(up, lambda: tf.gather(v, tf.unique(i)[0])),
    ),
    "shape": lambda up, counter, v, i: tf.group(
        up, v.assign(tf.placeholder_with_default(np.zeros(5, np.float32), None))
    ),
    "loop": lambda up, counter, v, i: after(up, lambda: count_loop(counter)),
    "branch": lambda up, counter, v, i: after(up, lambda: guarded_branch(counter, i)),
    "limit": lambda up, counter, v, i: tf.group(up, tf.Variable(0, dtype=tf.int32).count_up_to(0)),
}


@pytest.mark.parametrize("devices", [1, 2])
@pytest.mark.parametrize("failure", FAILURES)
def test_failed_steps_change_nothing(interpret, failure, devices):
    i = tf.placeholder(tf.int32, None)
    with tf.device("/cpu:0"):
        counter = tf.Variable(0.0)
        up = counter.assign_add(1.0)
    with tf.device(f"/cpu:{devices - 1}"):
        v = tf.Variable(np.zeros(3, np.float32))
        other = tf.Variable(5.0)
        beside = other.assign_add(100.0)
        failing = FAILURES[failure](up, counter, v, i)
    with tf.Session(config=tf.ConfigProto(device_count={"CPU": devices})) as session:
        session.run(tf.global_variables_initializer())
        for _ in range(3):
            with pytest.raises((tf.errors.InvalidArgumentError, tf.errors.OutOfRangeError)):
                session.run([failing, beside], {i: [7, 1]})
            assert session.run([counter, other]) == [0.0, 5.0]
            assert not session.run(v).any()
        session.run([up, beside])
        assert session.run([counter, other]) == [1.0, 105.0]


def aligned(size):
    """Zeros that XLA could use without a copy."""
    raw = np.zeros(size * 4 + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + size * 4].view(np.float32)


def test_fed_arrays_are_not_kept(interpret):
    p = tf.placeholder(tf.float32, [None])
    v = tf.Variable(np.zeros(4096, np.float32))
    assign = v.assign(p)
    same = tf.identity(p)
    with tf.Session() as session:
        session.run(v.initializer)
        fed = aligned(4096)
        session.run(assign, {p: fed})
        fetched = [session.run(same, {p: fed}), session.run(p, {p: fed})]
        fed[:] = 7.0
        assert not session.run(v).any()
        assert not any(f.any() for f in fetched)


def test_fetched_arrays_do_not_change_and_may_be_changed(interpret):
    v = tf.Variable(np.zeros(4096, np.float32))
    up = v.assign_add(np.ones(4096, np.float32))
    constant = tf.constant(np.ones(4096, np.float32))
    with tf.Session() as session:
        session.run(v.initializer)
        first = session.run(v)
        second = session.run(up)
        session.run(up)
        assert (first.max(), second.max()) == (0.0, 1.0)
        second[:] = 50.0
        session.run(constant)[:] = 9.0
        assert session.run([v, constant])[0].max() == 2.0
        assert session.run(constant + 0.0).max() == 1.0


def test_readers_see_whole_values_while_others_update_and_fail(interpret):
    size, turns = 2048, 40
    v = tf.Variable(np.zeros(size, np.float32))
    i = tf.placeholder(tf.int32, None)
    up = v.assign_add(np.ones(size, np.float32))
    failing = after(up, lambda: tf.gather(tf.zeros([3]), i))
    python = tf.py_func(boom, [i], [])
    beside = after(up, lambda: tf.group(python))
    seen, wrong = [], []
    with tf.Session() as session:
        session.run(v.initializer)

        def read():
            for _ in range(turns):
                value = session.run(v)
                kept = value.copy()
                seen.append((value, kept))
                if value.min() != value.max():
                    wrong.append(value)

        def update():
            for _ in range(turns):
                session.run(up.op)

        def fail(step):
            for _ in range(turns):
                try:
                    session.run(step, {i: [9]})
                    wrong.append(step)
                except tf.errors.InvalidArgumentError:
                    pass

        work = [read, read, update, update, lambda: fail(failing), lambda: fail(beside)]
        threads = [threading.Thread(target=w) for w in work]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong
        assert session.run(v).tolist() == [2.0 * turns] * size
    assert all(np.array_equal(value, kept) for value, kept in seen)
