"""Loops over sequences whose length changes at each step: programs for any length up to a bound."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as tf
from headrace.executor import list_loops, policy, region
from headrace.settings import flags


@pytest.fixture
def compiled(monkeypatch):
    """The programs that were compiled; loops are compiled soon."""
    programs = {}
    trace = region.Program._trace

    def counted(self, *args):
        programs[self] = self.region.label
        return trace(self, *args)

    monkeypatch.setattr(region.Program, "_trace", counted)
    monkeypatch.setattr(list_loops, "_EVALUATIONS_SHARE", 10**6)
    return programs


@pytest.fixture
def wanted(monkeypatch):
    """The programs that would be compiled, by loop and sizes, in tests without the compiler."""
    forms = {}

    def called(self, loop, dynamic, store, context):
        forms.setdefault((id(loop), tuple(a.shape for a in dynamic)), loop)

    monkeypatch.setattr(list_loops._ListLoop, "_call", called)
    monkeypatch.setattr(list_loops, "_EVALUATIONS_SHARE", 10**6)
    return forms


def _batch(length, batch=2):
    return np.linspace(-1, 1, 3 * batch * length, dtype=np.float32).reshape(batch, length, 3)


def _train(outputs):
    loss = tf.reduce_sum(tf.square(outputs))
    return loss, tf.train.GradientDescentOptimizer(0.01).minimize(loss)


def _rnn(cell, **options):
    x = tf.placeholder(tf.float32, [2, None, 3])
    outputs, _ = tf.nn.dynamic_rnn(cell, x, dtype=tf.float32, **options)
    return x, *_train(outputs)


def _losses(step, lengths):
    x, loss, train = step
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        return [sess.run([loss, train], {x: _batch(n)})[0] for n in lengths]


LENGTHS = [3, 9, 5, 16, 7, 1, 2, 11, 4, 3, 9, 12, 6, 13, 8, 14]


def _plain():
    return _rnn(tf.nn.rnn_cell.BasicRNNCell(4))


def _with_lengths():
    return _rnn(tf.nn.rnn_cell.GRUCell(4), sequence_length=tf.constant([1, 3]) - 1)


def _with_dropout():
    cell = tf.nn.rnn_cell.DropoutWrapper(tf.nn.rnn_cell.BasicRNNCell(4), 0.7, 0.6, seed=3)
    return _rnn(cell)


def _scan():
    x = tf.placeholder(tf.float32, [2, None, 3])
    w = tf.Variable(np.eye(3, dtype=np.float32))
    rows = tf.scan(lambda a, e: tf.tanh(a @ w + e), tf.transpose(x, [1, 0, 2]), tf.zeros([2, 3]))
    return x, *_train(rows)


def _bidirectional():
    x = tf.placeholder(tf.float32, [2, None, 3])
    cells = [tf.nn.rnn_cell.BasicRNNCell(4) for _ in range(2)]
    outputs, _ = tf.nn.bidirectional_dynamic_rnn(*cells, x, dtype=tf.float32)
    return x, *_train(tf.concat(outputs, 2))


MODELS = [_plain, _with_lengths, _with_dropout, _scan, _bidirectional]


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
def test_the_values_are_those_of_interpreting(compiled, monkeypatch, model):
    tf.set_random_seed(1)
    step = model()
    values = _losses(step, LENGTHS)
    assert all("While" in name or "Scan" in name or "scan" in name for name in compiled.values())
    count = len(compiled)
    assert count >= 2
    monkeypatch.setattr(flags, "interpret", "always")
    np.testing.assert_allclose(values, _losses(step, LENGTHS), rtol=1e-5)
    assert len(compiled) == count


def test_one_program_of_a_loop_serves_all_lengths(wanted):
    _losses(_plain(), LENGTHS)
    assert len(wanted) == 2  # the loop and its gradient


def test_longer_sequences_get_programs_with_more_room(wanted):
    _losses(_plain(), [3, 4, 5, 6, 17, 18, 19, 30, 5])
    assert len(wanted) == 4


def test_shorter_sequences_use_programs_with_some_more_room(wanted):
    _losses(_plain(), [40, 41, 42, 43, 17, 18, 64, 33])
    assert len(wanted) == 2


def test_nothing_is_a_length_too(wanted):
    _losses(_plain(), [3, 0, 4, 0, 5, 6])
    assert len(wanted) == 2


@pytest.mark.slow
def test_one_length_is_one_program(compiled):
    _losses(_plain(), [5] * 6)
    assert len(compiled) == 1


@pytest.mark.slow
def test_programs_are_compiled_once(compiled):
    _losses(_plain(), LENGTHS)
    assert len(compiled) == 2


@pytest.mark.slow
def test_a_failure_in_a_loop_tells_what_interpreting_tells(compiled):
    x = tf.placeholder(tf.float32, [None])
    most = tf.placeholder(tf.int32, [])
    size = tf.shape(x)[0]

    def body(i, array):
        return i + 1, array.write(i, x[i] * 2.0)

    start = 0, tf.TensorArray(tf.float32, size)
    _, array = tf.while_loop(lambda i, _: i < most, body, start)
    (gradient,) = tf.gradients(tf.reduce_sum(array.stack()), x)
    with tf.Session() as sess:
        for n in (2, 3, 4, 5, 6, 7):
            np.testing.assert_array_equal(
                sess.run(gradient, {x: np.ones(n), most: n}), np.full(n, 2)
            )
        with pytest.raises(tf.errors.InvalidArgumentError, match="7"):
            sess.run(gradient, {x: np.ones(7), most: 8})
        np.testing.assert_array_equal(sess.run(gradient, {x: np.ones(7), most: 7}), np.full(7, 2))


@pytest.mark.slow
def test_a_loop_that_takes_long_ends_with_its_step(compiled):
    x = tf.placeholder(tf.float32, [2, None, 3])
    turns = tf.placeholder(tf.int64, [])

    def cell(state, row):
        _, sums = tf.while_loop(
            lambda i, _: i < turns, lambda i, s: (i + 1, tf.sin(s) + row), [np.int64(0), state]
        )
        return sums

    rows = tf.scan(cell, tf.transpose(x, [1, 0, 2]), tf.zeros([2, 3]))
    with tf.Session() as sess:
        for n in (2, 3, 4, 5, 6):
            sess.run(rows, {x: _batch(n), turns: 1})
        assert len(compiled) == 1
        options = tf.RunOptions(timeout_in_ms=300)
        with pytest.raises(tf.errors.DeadlineExceededError):
            sess.run(rows, {x: _batch(7), turns: 10**12}, options=options)


@pytest.mark.slow
def test_a_loop_keeps_what_its_lists_do_not_hold(compiled):
    """Random numbers and variables inside go on from where they were."""

    def run():
        tf.reset_default_graph()
        tf.set_random_seed(7)
        return _losses(_with_dropout(), [3, 4, 5, 6, 7, 8, 9, 10])

    assert run() == run()


def test_kinds_of_input_are_forgotten_in_the_end(wanted, monkeypatch):
    monkeypatch.setattr(list_loops, "_MOST_KINDS", 2)
    made = []
    init = list_loops._ListLoop.__init__

    def kept(self, *args):
        init(self, *args)
        made.append(self)

    monkeypatch.setattr(list_loops._ListLoop, "__init__", kept)
    x = tf.placeholder(tf.float32, [None, None, 3])
    outputs, _ = tf.nn.dynamic_rnn(tf.nn.rnn_cell.BasicRNNCell(4), x, dtype=tf.float32)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for batch in range(1, 7):
            sess.run(outputs, {x: _batch(batch + 2, batch)})
    assert made
    assert all(len(loop._evaluated) <= 2 for loop in made)


def test_programs_of_everything_wait_longer_where_loops_are_programs(wanted, monkeypatch):
    step = _plain()
    seen = []
    pays = policy.runs_to_pay_beside_loops
    monkeypatch.setattr(
        "headrace.executor.waiting.runs_to_pay_beside_loops",
        lambda *args: seen.append(pays(*args)) or seen[-1],
    )
    monkeypatch.setattr("headrace.executor.waiting.runs_to_pay", lambda *_: 3)
    _losses(step, [3, 4, 5] * 5)
    assert len(seen) == 3
    assert min(seen) > 50
    assert len(wanted) == 2
