"""Programs that may not run often wait: for sizes among many, of one among many."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as tf
from headrace.executor import policy, region, waiting
from headrace.executor.bound import BoundProgram
from headrace.executor.policy import runs_to_pay
from headrace.settings import flags


def _compiled(monkeypatch):
    """The sizes for which programs were compiled."""
    calls = []
    call = region.Program.call

    def counted(self, args, *token):
        calls.append(tuple(a.shape for a in args))
        return call(self, args, *token)

    monkeypatch.setattr(region.Program, "call", counted)
    # The second call in a row of a program would be one of its function.
    monkeypatch.setattr(BoundProgram, "_called", BoundProgram._called_first)
    return calls


def _step():
    """A step with an op that NumPy has not: it is compiled at once."""
    x = tf.placeholder(tf.float32, [None, 3])
    w = tf.Variable(np.eye(3, dtype=np.float32))
    y = tf.nn.conv1d(tf.expand_dims(x, 0), tf.ones([1, 3, 3]), 1, "SAME")
    loss = tf.reduce_sum(tf.matmul(x, w)) + tf.reduce_sum(y)
    return x, loss, tf.train.GradientDescentOptimizer(0.01).minimize(loss)


def test_few_of_many_sizes_are_compiled(monkeypatch):
    calls = _compiled(monkeypatch)
    x, loss, train = _step()
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for size in range(1, 25):
            value, _ = sess.run([loss, train], {x: np.ones([size, 3], np.float32)})
            assert np.isfinite(value)
    assert 1 <= len(set(calls)) <= 4


def test_two_sizes_that_come_again_are_compiled(monkeypatch):
    calls = _compiled(monkeypatch)
    x, loss, train = _step()
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for i in range(20):
            sess.run([loss, train], {x: np.ones([5 + i % 2, 3], np.float32)})
    assert len(set(calls)) >= 2
    assert len(calls) >= 20


def test_sizes_that_come_again_often_are_compiled_in_the_end(monkeypatch):
    calls = _compiled(monkeypatch)
    monkeypatch.setattr(waiting, "runs_to_pay", lambda *_: 3)
    x, loss, _ = _step()
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for size in range(1, 11):
            sess.run(loss, {x: np.ones([size, 3], np.float32)})
        before = len(calls)
        for _ in range(4):
            sess.run(loss, {x: np.ones([10, 3], np.float32)})
    assert len(calls) > before


def _sequences():
    """A training step over sequences, whose loop is as long as they are."""
    x = tf.placeholder(tf.float32, [2, None, 3])
    outputs, _ = tf.nn.dynamic_rnn(tf.nn.rnn_cell.BasicRNNCell(4), x, dtype=tf.float32)
    loss = tf.reduce_sum(tf.square(outputs))
    return x, loss, tf.train.GradientDescentOptimizer(0.01).minimize(loss)


def _losses(x, loss, train, sizes):
    values = []
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for size in sizes:
            data = np.linspace(0, 1, 6 * size, dtype=np.float32).reshape(2, size, 3)
            values.append(sess.run([loss, train], {x: data})[0])
    return values


def test_sequences_of_many_lengths_are_interpreted(monkeypatch):
    calls = _compiled(monkeypatch)
    tf.set_random_seed(1)
    step = _sequences()
    sizes = [*range(3, 11), 5, 5]
    values = _losses(*step, sizes)
    assert not calls
    monkeypatch.setattr(flags, "interpret", "always")
    np.testing.assert_allclose(values, _losses(*step, sizes), rtol=1e-5)


@pytest.mark.parametrize(("mode", "compiled"), [("auto", False), ("never", True)])
def test_a_loop_that_must_guess_its_bound_takes_many_sizes(monkeypatch, mode, compiled):
    monkeypatch.setattr(flags, "interpret", mode)
    calls = _compiled(monkeypatch)
    x = tf.placeholder(tf.float32, [None])
    doubled = tf.while_loop(lambda v: tf.reduce_sum(v) < 100.0, lambda v: v * 2.0, [x])
    (gradient,) = tf.gradients(doubled, x)
    with tf.Session() as sess:
        for size in range(1, 13):
            turns = np.ceil(np.log2(100.0 / size))
            expected = np.full(size, 2.0**turns)
            np.testing.assert_array_equal(sess.run(gradient, {x: np.ones(size)}), expected)
    assert (len(set(calls)) >= 12) == compiled
    assert compiled or not calls


def test_the_bodies_of_loops_count():
    """The more a loop does in each turn, the sooner it is compiled."""

    def runs(width):
        x = tf.placeholder(tf.float32, [8, None])
        w = tf.ones([width, width])
        start = tf.zeros([8, width])
        end = tf.while_loop(
            lambda i, s: i < tf.shape(x)[1],
            lambda i, s: (i + 1, tf.tanh(tf.matmul(s, w))),
            [0, start],
        )[1]
        (unit,) = tf.Session()._compile(end, [x]).plan.units
        return runs_to_pay(unit.region.nodes, unit.region.outputs)

    assert 10 < runs(4) < 200
    assert 1 <= runs(1024) < 10


def test_the_second_kind_of_input_waits(monkeypatch):
    calls = _compiled(monkeypatch)
    monkeypatch.setattr(waiting, "runs_to_pay", lambda *_: 3)
    x = tf.placeholder(tf.float32, [None, 3])
    y = tf.reduce_sum(tf.matmul(x, tf.Variable(tf.eye(3)).read_value()))
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        compiled = []
        for size in (4, 4, 2, 2, 2, 2, 4):
            before = len(calls)
            assert sess.run(y, {x: np.ones([size, 3])}) == 3 * size
            compiled.append(len(calls) > before)
    assert compiled == [False, True, False, False, False, True, True]


def test_later_programs_of_a_session_wait(monkeypatch):
    calls = _compiled(monkeypatch)
    monkeypatch.setattr(waiting, "runs_to_pay", lambda *_: 3)
    x, size = tf.placeholder(tf.float32, [None]), 200_000
    with tf.Session() as sess:
        for i in range(5):
            y = tf.reduce_sum(x * i)
            before = len(calls)
            for _ in range(4):
                assert sess.run(y, {x: np.ones(size)}) == size * i
            assert len(calls) - before == (3 if i < 3 else 1)


def _counting(v, n):
    """A step that adds 1 to a variable, and then counts to ``n`` in a loop."""
    with tf.control_dependencies([v.assign_add(1.0)]):
        start = v.read_value()
    loop = tf.while_loop(lambda i, s: i < n, lambda i, s: (i + 1, s + 1.0), [0, start])
    return loop[1]


def test_a_loop_is_interpreted_once_and_then_compiled(monkeypatch):
    calls = _compiled(monkeypatch)
    v, n = tf.Variable(0.0), tf.placeholder(tf.int32, [])
    y = _counting(v, n)
    with tf.Session() as sess:
        sess.run(v.initializer)
        assert sess.run(y, {n: 10}) == 11
        assert not calls
        assert sess.run(y, {n: 10}) == 12
        assert sess.run(y, {n: 20}) == 23
        assert len(calls) == 2


@pytest.mark.parametrize(("turns", "runs"), [(100, 0), (10, 1)])
def test_a_long_loop_is_not_interpreted_to_its_end(monkeypatch, turns, runs):
    """The run that gives up has changed nothing."""
    calls = _compiled(monkeypatch)
    monkeypatch.setattr(waiting, "most_evaluations", lambda *_: 200)
    v, n = tf.Variable(0.0), tf.placeholder(tf.int32, [])
    y = _counting(v, n)
    with tf.Session() as sess:
        sess.run(v.initializer)
        assert sess.run(y, {n: turns}) == turns + 1
        assert len(calls) == 1 - runs
        assert sess.run(v) == 1


@pytest.mark.parametrize(("part", "compiled"), [(0.0, 1), (1.0, 0)])
def test_a_loop_waits_although_a_small_part_of_it_is_compiled_alone(monkeypatch, part, compiled):
    monkeypatch.setattr(policy, "_SMALL_PART", part)
    calls = _compiled(monkeypatch)
    x = tf.placeholder(tf.float32, [1, None, 2])
    filters = tf.ones([1, 2, 2])
    y = tf.while_loop(
        lambda i, v: i < 3,
        lambda i, v: (i + 1, tf.nn.conv1d(v, filters, 1, "SAME")),
        [0, x],
        shape_invariants=[tf.TensorShape([]), x.shape],
    )[1]
    with tf.Session() as sess:
        np.testing.assert_array_equal(sess.run(y, {x: np.ones([1, 4, 2])}), np.full([1, 4, 2], 8))
    assert len(calls) == compiled


def test_lists_have_no_size_to_compare():
    """A tensor list that a host op fills goes into a region that meets another kind of input."""
    x = tf.placeholder(tf.float32, [None])
    rows = tf.py_func(lambda v: v * 2, [x], tf.float32)
    array = tf.TensorArray(tf.float32, 2, infer_shape=False).write(0, x).write(1, rows)
    printed = tf.py_func(lambda v: v, [array.read(1)], tf.float32)
    with tf.control_dependencies([printed]):
        y = array.read(0) + tf.reshape(printed, tf.shape(x))
    with tf.Session() as sess:
        for size in (2, 3, 3, 3, 4):
            assert sess.run(y, {x: np.ones(size)}).tolist() == [3.0] * size
