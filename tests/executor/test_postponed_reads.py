"""Rows that are looked up before host ops join the program that uses them."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as tf
from headrace.errors import InvalidArgumentError
from headrace.executor.early_checks import Check
from headrace.executor.in_place import PartedRegion
from headrace.executor.policy import NEVER
from headrace.settings import flags

ROWS, WIDTH = 3000, 128


def _table(name: str = "table") -> tf.Variable:
    return tf.get_variable(name, initializer=np.full([ROWS, WIDTH], 0.1, np.float32))


def _units(session, fetches, feeds) -> list:
    return session._compile(fetches, list(feeds)).plan.units


def _programs(session, fetches, feeds) -> list:
    """The regions that are, or would be, compiled."""
    regions = [u.region for u in _units(session, fetches, feeds) if u.region is not None]
    return [r for r in regions if isinstance(r, PartedRegion) or not r.between_hosts]


def _sampled(loss_of):
    words = tf.placeholder(tf.int32, [None])
    labels = tf.placeholder(tf.int64, [None, 1])
    rows = tf.nn.embedding_lookup(_table(), words)
    biases = tf.get_variable("b", [ROWS])
    loss = tf.reduce_mean(loss_of(_table("classes"), biases, labels, rows, 6, ROWS))
    train = tf.train.AdagradOptimizer(0.1).minimize(loss)
    return [train, loss], {words: [5, 1, 2000], labels: [[3], [1], [5]]}


@pytest.mark.parametrize(
    ("loss_of", "programs"), [(tf.nn.nce_loss, 1), (tf.nn.sampled_softmax_loss, 2)]
)
def test_no_program_only_looks_up_rows_before_classes_are_drawn(loss_of, programs):
    """With softmax a second host op, for hits by accident, has a program before and after it."""
    fetches, feeds = _sampled(loss_of)
    with tf.Session() as session:
        assert len(_programs(session, fetches, feeds)) == programs


@pytest.mark.slow
def test_a_bad_index_after_classes_were_drawn_changes_nothing():
    fetches, feeds = _sampled(tf.nn.nce_loss)
    words = next(iter(feeds))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        losses = [session.run(fetches, feeds)[1] for _ in range(5)]
        assert np.isfinite(losses).all()
        before = session.run(tf.global_variables())
        for _ in range(2):
            with pytest.raises(InvalidArgumentError, match="= 3000 is not in"):
                session.run(fetches, {**feeds, words: [5, 1, ROWS]})
        for value, old in zip(session.run(tf.global_variables()), before, strict=True):
            np.testing.assert_array_equal(value, old)
        session.run(fetches, feeds)


def test_views_of_feeds_for_host_ops_are_interpreted():
    labels, words = tf.placeholder(tf.int64, [None]), tf.placeholder(tf.int32, [None])
    rows = tf.nn.embedding_lookup(_table(), words)
    true = tf.reshape(labels, [-1, 1])
    drawn = tf.nn.log_uniform_candidate_sampler(true, 1, 3, True, 9)[1]
    result = tf.reduce_sum(rows * (1.0 + 0.0 * tf.reduce_sum(drawn)))
    feeds = {labels: [1, 2], words: [3, 4]}
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(4):
            np.testing.assert_allclose(session.run(result, feeds), 25.6, rtol=1e-5)
        views, rest = [u.region for u in _units(session, result, feeds) if u.region is not None]
        assert [n.type for n in views.nodes] == ["Reshape"]
        (program,) = views._programs.values()
        assert program.turn.interpretations > NEVER // 2
        assert not rest.between_hosts


def _drawn() -> tf.Tensor:
    """Classes from a host op that depends on nothing but its stream."""
    true = tf.placeholder_with_default(np.zeros([1, 1], np.int64), [1, 1])
    return tf.nn.log_uniform_candidate_sampler(true, 1, 3, True, 9)[0]


def test_a_lookup_stays_before_a_change_of_its_variable():
    """The value of before the assignment is used after a host op that follows the assignment."""
    v, ids = _table(), tf.placeholder(tf.int32, [None])
    before = tf.nn.embedding_lookup(v, ids)
    with tf.control_dependencies([before]):
        change = v.assign(tf.zeros_like(v))
    with tf.control_dependencies([change]):
        drawn = _drawn()
    result = tf.reduce_sum(before) + 0.0 * tf.to_float(drawn[0])
    with tf.Session() as session:
        for _ in range(3):
            session.run(v.initializer)
            np.testing.assert_allclose(session.run(result, {ids: [1, 2]}), 25.6, rtol=1e-5)


def test_a_lookup_stays_before_what_others_notice():
    """A bad index is found before a function of Python's runs that waits for the lookup."""
    v, ids = _table(), tf.placeholder(tf.int32, [None])
    rows = tf.nn.embedding_lookup(v, ids)
    calls = []
    with tf.control_dependencies([rows]):
        told = tf.py_func(lambda: calls.append(1) or np.float32(1), [], tf.float32)
    told.set_shape([])
    result = tf.reduce_sum(rows) * told
    with tf.Session() as session:
        session.run(v.initializer)
        for _ in range(3):
            with pytest.raises(InvalidArgumentError, match="is not in"):
                session.run(result, {ids: [1, ROWS]})
        assert calls == []
        np.testing.assert_allclose(session.run(result, {ids: [1, 2]}), 25.6, rtol=1e-5)


def test_equal_checks_are_made_once_and_those_of_constants_never_again(monkeypatch):
    monkeypatch.setattr(flags, "interpret", "never")
    ids = tf.placeholder(tf.int32, [None])
    left = tf.nn.embedding_lookup(_table("left"), ids)
    right = tf.nn.embedding_lookup(_table("right"), ids)
    fixed = tf.gather(tf.ones([4, WIDTH]), tf.constant([1, 3]))
    loss = tf.reduce_sum(tf.square(left * right)) + tf.reduce_sum(fixed[0] * left[0])
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    tested: list[str] = []
    test = Check.test
    monkeypatch.setattr(
        Check, "test", lambda self, *a: tested.append(self.node.type) or test(self, *a)
    )
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train, {ids: [1, 2]})
        tested.clear()
        session.run(train, {ids: [3, 4]})
        assert tested == ["ResourceGather"]
        with pytest.raises(InvalidArgumentError, match="is not in"):
            session.run(train, {ids: [1, ROWS]})
