"""Staging areas: what one step leaves for another."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import headrace as tf

StagingArea = tf.contrib.staging.StagingArea


def test_a_pipeline_of_steps() -> None:
    x = tf.placeholder(tf.float32)
    stager = StagingArea([tf.float32])
    put = stager.put([x * 2])
    (y,) = stager.get()
    out = y + 1
    with tf.Session() as session:
        session.run(put, {x: -1})
        found = [session.run([put, out], {x: i})[1] for i in range(4)]
    assert found == [-1, 1, 3, 5]


def test_names_peek_size_and_clear() -> None:
    stager = StagingArea([tf.float32, tf.int32], [[], [2]], ["x", "v"])
    put = stager.put({"x": tf.constant(1.5), "v": tf.constant([1, 2])})
    got, seen = stager.get(), stager.peek(1)
    assert got["v"].shape.as_list() == [2]
    assert sorted(seen) == ["v", "x"]
    with tf.Session() as session:
        for _ in range(3):
            session.run(put)
        assert session.run(seen)["v"].tolist() == [1, 2]
        assert session.run(got)["x"] == 1.5
        assert session.run(stager.size()) == 2
        session.run(stager.clear())
        assert session.run(stager.size()) == 0


@pytest.mark.parametrize("limit", [{"capacity": 2}, {"memory_limit": 8}])
def test_who_puts_waits_for_room(limit: dict[str, int]) -> None:
    x = tf.placeholder(tf.float32, [])
    stager = StagingArea([tf.float32], **limit)
    put, (got,) = stager.put([x]), stager.get()
    with tf.Session() as session:
        session.run(put, {x: 1})
        session.run(put, {x: 2})
        thread = threading.Thread(target=lambda: session.run(put, {x: 3}))
        thread.start()
        found = [float(session.run(got)) for _ in range(3)]
        thread.join(20)
    assert found == [1, 2, 3]


def test_what_never_fits() -> None:
    stager = StagingArea([tf.float32], memory_limit=8)
    put = stager.put([tf.zeros([3])])
    with tf.Session() as session, pytest.raises(tf.errors.ResourceExhaustedError, match="of '12'"):
        session.run(put)


def test_a_step_in_vain_ends_with_its_deadline() -> None:
    (got,) = StagingArea([tf.float32]).get()
    options = tf.RunOptions(timeout_in_ms=20)
    with tf.Session() as session, pytest.raises(tf.errors.DeadlineExceededError):
        session.run(got, options=options)


def test_areas_of_one_name_are_one() -> None:
    first = StagingArea([tf.int32], shared_name="s")
    second = StagingArea([tf.int32], shared_name="s")
    put, (got,) = first.put([tf.constant(3)]), second.get()
    with tf.Session() as session:
        session.run(put)
        assert session.run(got) == 3


def test_bad_arguments() -> None:
    with pytest.raises(ValueError, match="shapes must be the same length"):
        StagingArea([tf.float32], [[], []])
    with pytest.raises(ValueError, match="names must be the same length"):
        StagingArea([tf.float32], None, ["a", "b"])
    with pytest.raises(ValueError, match="not negative"):
        StagingArea([tf.float32], capacity=-1)
    named, plain = StagingArea([tf.float32], None, ["a"]), StagingArea([tf.float32], [[2]])
    with pytest.raises(ValueError, match="must enqueue a dictionary"):
        named.put([tf.constant(1.0)])
    with pytest.raises(ValueError, match="do not match names"):
        named.put({"b": tf.constant(1.0)})
    with pytest.raises(ValueError, match="must have names"):
        plain.put({"a": tf.constant(1.0)})
    with pytest.raises(ValueError, match="Unexpected number of inputs 2 vs 1"):
        plain.put([tf.zeros([2])] * 2)
    with pytest.raises(ValueError, match="Datatypes do not match"):
        plain.put([tf.zeros([2], tf.int32)])
    with pytest.raises(ValueError, match="incompatible"):
        plain.put([np.zeros(3, np.float32)])


def test_values_are_copies() -> None:
    x = tf.placeholder(tf.float32, [2])
    stager = StagingArea([tf.float32])
    put, (got,) = stager.put([x]), stager.get()
    data: Any = np.ones(2, np.float32)
    with tf.Session() as session:
        session.run(put, {x: data})
        data[:] = 7
        assert session.run(got).tolist() == [1, 1]
