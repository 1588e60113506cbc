"""Ops that NumPy does faster than XLA run beside the program of their step."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as tf
from headrace.settings import flags


@pytest.fixture
def rows():
    return np.random.RandomState(8).standard_normal((64, 256)).astype("f")


def test_sorts_leave_the_program(rows):
    values = tf.Variable(rows)
    ordered = tf.sort(values * 2.0) + 1.0
    places = tf.argsort(values, direction="DESCENDING")
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(3):
            found, at = session.run([ordered, places])
            np.testing.assert_array_equal(found, np.sort(rows * 2, -1) + 1)
            np.testing.assert_array_equal(at, np.argsort(-rows, -1, kind="stable"))


def test_variables_change_behind_a_sort(rows):
    values = tf.Variable(rows)
    step = values.assign(tf.sort(values - tf.gradients(tf.sort(values)[:, 0], values)[0]))
    expected = rows
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(3):
            least = np.zeros_like(expected)
            least[np.arange(64), expected.argmin(-1)] = 1
            expected = np.sort(expected - least, -1)
            np.testing.assert_array_equal(session.run(step), expected)


def test_in_a_loop_they_stay(rows):
    def body(i, x):
        return i + 1, tf.sort(x[:, ::-1])

    _, found = tf.while_loop(lambda i, x: i < 3, body, [0, tf.Variable(rows)])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(2):
            np.testing.assert_array_equal(session.run(found), np.sort(rows, -1))


def test_rows_are_shuffled_as_by_a_program(monkeypatch):
    def drawn():
        with tf.Graph().as_default(), tf.Session() as session:
            shuffled = tf.random_shuffle(tf.range(2000), seed=5)
            return [session.run(shuffled).tolist() for _ in range(3)]

    first = drawn()
    assert sorted(first[2]) == list(range(2000))
    monkeypatch.setattr(flags, "interpret", "never")
    assert drawn() == first


@pytest.mark.parametrize("find", [tf.argmax, tf.argmin])
def test_extremes_of_long_rows_leave_the_program(find, monkeypatch):
    values = np.random.RandomState(3).standard_normal((600, 300)).astype("f")
    values[5, 7] = np.nan
    found = {}
    for way in ("auto", "never"):
        monkeypatch.setattr(flags, "interpret", way)
        with tf.Graph().as_default(), tf.Session() as session:
            x = tf.Variable(values)
            rows = find(x * 2.0, -1)
            columns = find(x * 2.0, 0)
            session.run(x.initializer)
            found[way] = [session.run([rows, columns]) for _ in range(3)][-1]
            plan = session._compile([rows, columns], []).plan
            alone = [u.node.type for u in plan.units if u.node]
            assert alone == [rows.op.type] * (way == "auto")
    for numpy, program in zip(found["auto"], found["never"], strict=True):
        np.testing.assert_array_equal(numpy, program)


@pytest.mark.parametrize("draw", [tf.random_normal, tf.truncated_normal])
def test_many_numbers_of_a_shape_without_numbers_leave_the_program(draw, monkeypatch):
    def drawn():
        with tf.Graph().as_default(), tf.Session() as session:
            like = tf.placeholder(tf.float32, [None, 64])
            noise = like + draw(tf.shape(like), seed=7)
            feeds = [np.zeros((rows, 64), "f") for rows in (100, 100, 3, 100)]
            values = [session.run(noise, {like: each}) for each in feeds]
            units = session._compile(noise, [like]).plan.units
            return values, {n.type for unit in units if unit.region for n in unit.region.nodes}

    found, compiled = drawn()
    assert "AddV2" in compiled
    assert not any("Normal" in name for name in compiled)
    assert [len(each) for each in found] == [100, 100, 3, 100]
    monkeypatch.setattr(flags, "interpret", "never")
    for one, other in zip(found, drawn()[0], strict=True):
        np.testing.assert_allclose(one, other, 1e-5, 1e-6)
