"""MapStagingArea: what one step leaves for another, by key."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import headrace as tf
from headrace.ops.io.staging_api import MapStagingArea

ORDERS = pytest.mark.parametrize("ordered", [False, True])


def key(number: int) -> Any:
    return tf.constant(number, tf.int64)


@ORDERS
def test_tuples_by_key(ordered: bool) -> None:
    which = tf.placeholder(tf.int64, [])
    value = tf.placeholder(tf.float32, [])
    area = MapStagingArea([tf.float32, tf.int32], [[], [2]], ordered=ordered)
    put = area.put(which, [value, tf.constant([1, 2])], indices=[0, 1])
    seen, (own, taken) = area.peek(which), area.get(which)
    assert own is which
    assert [t.shape.as_list() for t in taken] == [[], [2]]
    with tf.Session() as session:
        for number in (5, 3, 4):
            session.run(put, {which: number, value: number + 0.5})
        assert session.run(area.size()) == 3
        assert session.run(seen, {which: 3})[0] == 3.5
        found = session.run(taken, {which: 3})
        assert (found[0], found[1].tolist()) == (3.5, [1, 2])
        assert session.run(area.size()) == 2
        session.run(area.clear())
        assert session.run(area.size()) == 0


@ORDERS
def test_any_key(ordered: bool) -> None:
    which = tf.placeholder(tf.int64, [])
    area = MapStagingArea([tf.int64], ordered=ordered)
    put, (found, (value,)) = area.put(which, [which * 10], [0]), area.get()
    with tf.Session() as session:
        for number in (5, -3, 4):
            session.run(put, {which: number})
        pairs = [session.run([found, value]) for _ in range(3)]
    keys = [int(k) for k, _ in pairs]
    assert keys == (sorted(keys) if ordered else [5, -3, 4])
    assert all(v == 10 * k for k, v in pairs)


@ORDERS
def test_tuples_in_parts(ordered: bool) -> None:
    area = MapStagingArea(
        [tf.float32, tf.float32, tf.int32], names=["x", "v", "n"], ordered=ordered
    )
    first = area.put(key(1), {"x": tf.constant(1.5), "n": tf.constant(7)})
    second = area.put(key(1), {"v": tf.constant([1.0, 2.0])})
    sizes = area.size(), area.incomplete_size()
    _, part = area.get(key(1), indices=["n", "x"])
    _, rest = area.get(indices=[1])
    with tf.Session() as session:
        session.run(first)
        assert session.run(sizes) == (0, 1)
        session.run(second)
        assert session.run(sizes) == (1, 0)
        assert session.run(part) == {"n": 7, "x": 1.5}
        assert session.run(sizes) == (1, 0)
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"\[2\] of key '1' have already"):
            session.run(area.get(key(1), indices=["n"])[1])
        assert session.run(rest)["v"].tolist() == [1, 2]
        assert session.run(sizes) == (0, 0)


def test_a_key_is_put_once() -> None:
    area = MapStagingArea([tf.float32, tf.float32])
    whole = area.put(key(1), [tf.constant(1.0), tf.constant(2.0)], [0, 1])
    part = area.put(key(2), [tf.constant(1.0)], [1])
    invalid = tf.errors.InvalidArgumentError
    with tf.Session() as session:
        session.run([whole, part])
        with pytest.raises(invalid, match="of key '1' was already inserted"):
            session.run(whole)
        with pytest.raises(invalid, match=r"tensors \[1\] of key '2' were already inserted"):
            session.run(part)


@pytest.mark.parametrize("limit", [{"capacity": 2}, {"memory_limit": 8}])
def test_who_puts_waits_for_room(limit: dict[str, int]) -> None:
    which = tf.placeholder(tf.int64, [])
    area = MapStagingArea([tf.float32], **limit)
    put = area.put(which, [tf.cast(which, tf.float32)], [0])
    _, (got,) = area.get(which)
    with tf.Session() as session:
        session.run(put, {which: 1})
        session.run(put, {which: 2})
        thread = threading.Thread(target=lambda: session.run(put, {which: 3}))
        thread.start()
        found = [float(session.run(got, {which: number})) for number in (1, 2, 3)]
        thread.join(20)
    assert found == [1, 2, 3]


def test_parts_do_not_count_towards_the_capacity() -> None:
    which = tf.placeholder(tf.int64, [])
    area = MapStagingArea([tf.float32, tf.float32], capacity=1)
    part = area.put(which, [tf.constant(1.0)], [0])
    with tf.Session() as session:
        for number in range(3):
            session.run(part, {which: number})
        assert session.run(area.incomplete_size()) == 3


def test_what_is_not_there_is_waited_for() -> None:
    area = MapStagingArea([tf.float32])
    options = tf.RunOptions(timeout_in_ms=20)
    with tf.Session() as session:
        for fetch in (area.get(key(1))[1], area.peek(key(1)), area.get()[1]):
            with pytest.raises(tf.errors.DeadlineExceededError):
                session.run(fetch, options=options)


def test_what_never_fits() -> None:
    area = MapStagingArea([tf.float32], memory_limit=8)
    put = area.put(key(1), [tf.zeros([3])], [0])
    with tf.Session() as session, pytest.raises(tf.errors.ResourceExhaustedError, match="of '12'"):
        session.run(put)


def test_arguments_that_do_not_fit() -> None:
    area, named = MapStagingArea([tf.float32]), MapStagingArea([tf.float32], names=["x"])
    one = tf.constant(1.0)
    cases: list[tuple[Any, type[Exception], str]] = [
        (lambda: area.put(key(1), [one]), ValueError, "Indices must be supplied"),
        (lambda: area.put(key(1), [one], [0, 1]), ValueError, "indices '2' doesn't match"),
        (lambda: area.put(key(1), [one], [3]), ValueError, "Index 3 is none of 1 components"),
        (lambda: area.put(key(1), {"x": one}), ValueError, "must have names"),
        (lambda: named.put(key(1), [one], [0]), ValueError, "must enqueue a dictionary"),
        (lambda: named.put(key(1), {"y": one}), ValueError, "do not match names"),
        (lambda: area.put(key(1), [tf.constant(1)], [0]), ValueError, "Datatypes do not match"),
        (lambda: area.get(indices="x"), TypeError, "Invalid indices type"),
        (lambda: area.get(indices=[]), ValueError, "Empty indices"),
        (lambda: area.get(indices=[2]), ValueError, "Index 2 is none of 1"),
        (lambda: area.get(indices=["x"]), ValueError, "was not created with names"),
        (lambda: named.get(indices=["y"]), ValueError, "Named index 'y' not in"),
        (lambda: named.get(indices=["x", 0]), TypeError, "Mixed types in indices"),
    ]
    for build, kind, message in cases:
        with pytest.raises(kind, match=message):
            build()


def test_areas_of_one_name_and_order_are_one() -> None:
    areas = [MapStagingArea([tf.int32], shared_name="s", ordered=o) for o in (True, True, False)]
    put = areas[0].put(key(1), [tf.constant(3)], [0])
    with tf.Session() as session:
        session.run(put)
        assert session.run([area.size() for area in areas]) == [1, 1, 0]
        assert session.run(areas[1].get()[1]) == [3]
