"""Assert is part of compiled programs: it neither cuts regions nor has loops interpreted."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as tf
from headrace.executor import interpreting
from headrace.ops.control.checking import summary_text
from headrace.settings import flags


@pytest.fixture(params=["never", "always"])
def how(request, monkeypatch):
    """Compiled, and interpreted on NumPy: they say the same."""
    monkeypatch.setattr(flags, "interpret", request.param)
    return request.param


def _units(sess, fetch, feeds):
    return sess._compile(fetch, list(feeds)).plan.units


def _loop(v, n):
    def body(i, s):
        check = tf.assert_less(s, 10.0, data=["the sum is", s, "at", i], message="too big")
        with tf.control_dependencies([check]):
            return i + 1, s + v

    return tf.while_loop(lambda i, s: i < n, body, [0, 0.0])[1]


def _fails(sess, fetch, feed, op_name):
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        sess.run(fetch, feed)
    assert caught.value.op.name == op_name
    return caught.value.message


def test_an_assertion_does_not_cut_a_region():
    x, v = tf.placeholder(tf.float32, [2]), tf.Variable([1.0, 2.0])
    y = v * x
    with tf.control_dependencies([tf.Assert(tf.reduce_all(y < 9.0), ["too much:", y])]):
        step = v.assign_add(y, read_value=False)
    with tf.Session() as sess:
        (unit,) = _units(sess, step, [x])
        assert unit.region is not None


def test_a_failure_shows_its_tensors_and_changes_nothing(how):
    x, v = tf.placeholder(tf.float32, [2]), tf.Variable([1.0, 2.0])
    changed = v.assign_add(x * 2.0)
    with tf.control_dependencies([changed]):
        y = v.read_value() * 1.0
    check = tf.Assert(tf.reduce_all(y < 9.0), ["too much:", y, x], name="check")
    with tf.control_dependencies([check]):
        step = v.assign_add(y)
    with tf.Session() as sess:
        sess.run(v.initializer)
        sess.run(step, {x: [0.0, 1.0]})
        assert sess.run(v).tolist() == [2.0, 8.0]
        for _ in range(2):
            message = _fails(sess, step, {x: [0.0, 0.5]}, "check")
            assert message == "assertion failed: [too much:] [2 9] [0 0.5]"
        assert sess.run(v).tolist() == [2.0, 8.0]


def test_random_data_are_those_that_failed(how):
    drawn = tf.random_uniform([3], seed=5)
    check = tf.Assert(tf.reduce_all(drawn < 0.0), [drawn], name="check")
    with tf.Session() as first, tf.Session() as second:
        message = _fails(first, check, {}, "check")
        assert message == f"assertion failed: [{summary_text(second.run(drawn), 3)}]"


def test_a_loop_with_an_assertion_is_one_program(monkeypatch):
    monkeypatch.setattr(flags, "interpret", "never")
    v, n = tf.Variable(1.0), tf.placeholder(tf.int32, [])
    total = _loop(v, n)

    def interpreted(*_):
        raise AssertionError("a node was interpreted")

    with tf.Session() as sess:
        sess.run(v.initializer)
        monkeypatch.setattr(interpreting.Interpreting, "evaluate", interpreted)
        assert sess.run(total, {n: 5}) == 5.0
        assert sess.run(total, {n: 9}) == 9.0


def test_a_loop_says_which_iteration_failed(how):
    v, n = tf.Variable(1.0), tf.placeholder(tf.int32, [])
    total = _loop(v, n)
    step, gradient = v.assign(total), tf.gradients(total, v)
    with tf.Session() as sess:
        sess.run(v.initializer)
        for fetch in (total, step, gradient):
            message = _fails(sess, fetch, {n: 20}, "while/body/assert_less")
            assert message == "assertion failed: [too big] [the sum is] [10] [at] [10]"
        assert sess.run(v) == 1.0
        assert sess.run([total, gradient[0]], {n: 4}) == [4.0, 4.0]


def test_an_assertion_of_a_branch_counts_when_the_branch_runs(how):
    p, x = tf.placeholder(tf.bool, []), tf.Variable(3.0)

    def refuse():
        with tf.control_dependencies([tf.Assert(False, ["refused", x], name="no")]):
            return tf.constant(0.0)

    y = tf.cond(p, lambda: x * 2.0, refuse)
    with tf.Session() as sess:
        sess.run(x.initializer)
        for _ in range(3):
            assert sess.run(y, {p: True}) == 6.0
            assert _fails(sess, y, {p: False}, "cond/false/no").endswith("[refused] [3]")


@pytest.mark.parametrize("text", ["computed", "fed"])
def test_texts_that_are_not_known_keep_an_assertion_outside(text, how):
    x, t = tf.placeholder(tf.float32, []), tf.placeholder(tf.string, [])
    shown = t if text == "fed" else tf.as_string(x * 2.0)
    check = tf.Assert(x * 2.0 < 4.0, ["got", shown], name="check")
    with tf.Session() as sess:
        assert sess.run(check, {x: 1.0, t: "?"}) is None
        message = _fails(sess, check, {x: 2.0, t: "4.000000"}, "check")
        assert message == "assertion failed: [got] [4.000000]"


def test_large_variables_are_changed_in_place_beside_an_assertion():
    """A program that may fail would have to keep the old values."""
    x = tf.placeholder(tf.float32, [])
    v = tf.get_variable("v", initializer=np.zeros([2048, 1024], np.float32), use_resource=True)
    with tf.control_dependencies([tf.Assert(x * 2.0 < 9.0, [x])]):
        step = v.assign_add(tf.fill([2048, 1024], x), read_value=False)
    with tf.Session() as sess:
        assert [u.label for u in _units(sess, step, [x])][1] == "Assert"
        sess.run(v.initializer)
        sess.run(step, {x: 1.0})
        _fails(sess, step, {x: 5.0}, "Assert")
        assert sess.run(v)[0, 0] == 1.0


def test_what_an_assertion_finds_comes_before_shapes_that_do_not_fit(how):
    x, y = tf.placeholder(tf.float32, [None]), tf.placeholder(tf.float32, [None])
    with tf.control_dependencies([tf.assert_equal(tf.size(x), tf.size(y), message="unlike")]):
        total = x + y
    with tf.Session() as sess:
        feed = {x: [1.0, 2.0], y: [1.0, 2.0, 3.0]}
        assert "[unlike]" in _fails(sess, total, feed, "assert_equal")
