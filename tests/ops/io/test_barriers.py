"""Barriers: components that come at different times are put together under their keys."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace.ops.io import barriers_kernels as kernels
from headrace.ops.io.barriers import Barrier

FIRST = -(2**63)


def barrier(**options: Any) -> Barrier:
    return Barrier((tf.float32, tf.float32), ((), ()), name="B", **options)


def test_elements_are_ready_when_all_components_are_there() -> None:
    b = barrier()
    inserts = [
        b.insert_many(0, ["k1", "k2"], [10.0, 20.0]),
        b.insert_many(1, ["k2"], [2.0]),
        b.insert_many(0, ["k3"], [30.0]),
        b.insert_many(1, ["k1", "k3"], [1.0, 3.0]),
    ]
    sizes = [b.ready_size(), b.incomplete_size()]
    indices, keys, values = b.take_many(3)
    assert b.name == "B"
    assert keys.op.name == "B_BarrierTakeMany"
    assert [t.shape.as_list() for t in (indices, keys, *values)] == [[3]] * 4
    with tf.Session() as session:
        seen = []
        for insert in inserts:
            session.run(insert)
            seen.append([int(n) for n in session.run(sizes)])
        assert seen == [[0, 2], [1, 1], [1, 2], [3, 0]]
        order, names, columns = session.run([indices, keys, values])
    assert order.tolist() == [FIRST, FIRST, FIRST + 1]
    found = dict(zip(names.tolist(), zip(*[c.tolist() for c in columns], strict=True), strict=True))
    assert found == {b"k1": (10, 1), b"k2": (20, 2), b"k3": (30, 3)}
    assert names.tolist()[2] == b"k3"


def test_who_takes_waits_for_elements() -> None:
    b = barrier()
    insert = [b.insert_many(i, ["k"], [float(i)]) for i in range(2)]
    taken = b.take_many(1)[1]
    with tf.Session() as session:
        found: list[Any] = []
        thread = threading.Thread(target=lambda: found.append(session.run(taken).tolist()))
        thread.start()
        session.run(insert[0])
        assert not found
        session.run(insert[1])
        thread.join(20)
    assert found == [[b"k"]]


def test_a_closed_barrier_takes_no_new_keys_but_completes_others() -> None:
    b = barrier()
    new, more = b.insert_many(0, ["n"], [1.0]), b.insert_many(1, ["k"], [2.0])
    with tf.Session() as session:
        session.run(b.insert_many(0, ["k"], [1.0]))
        session.run(b.close())
        with pytest.raises(tf.errors.CancelledError, match="Number of new insertions: 1"):
            session.run(new)
        with pytest.raises(tf.errors.OutOfRangeError, match=r"requested 2, total size 1\)"):
            session.run(b.take_many(2))
        session.run(more)
        assert session.run(b.take_many(1)[1]).tolist() == [b"k"]
        with pytest.raises(tf.errors.OutOfRangeError, match="insufficient elements"):
            session.run(b.take_many(1))
        with pytest.raises(tf.errors.CancelledError, match="already closed"):
            session.run(b.close())
        session.run(b.close(cancel_pending_enqueues=True))


def test_small_batches_of_a_closed_barrier() -> None:
    b = barrier()
    few = b.take_many(5, allow_small_batch=True)
    assert few[1].shape.as_list() == [None]
    with tf.Session() as session:
        for i in range(2):
            session.run(b.insert_many(i, ["a", "b"], [1.0, 2.0]))
        session.run(b.close())
        assert session.run(few[1]).tolist() == [b"a", b"b"]
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(few[1])


def test_cancelling_ends_what_was_begun() -> None:
    b = barrier()
    more = b.insert_many(1, ["k"], [2.0])
    with tf.Session() as session:
        session.run(b.insert_many(0, ["k"], [1.0]))
        session.run(b.close(cancel_pending_enqueues=True))
        with pytest.raises(tf.errors.CancelledError, match="Pending enqueues cancelled: True"):
            session.run(more)
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(b.take_many(1, allow_small_batch=True))


def test_bad_insertions() -> None:
    b = barrier()
    with tf.Session() as session:
        session.run(b.insert_many(0, ["k"], [1.0]))
        cases = [
            (b.insert_many(0, ["k"], [1.0]), "already has a value for component 0 in barrier"),
            (b.insert_many(2, ["k"], [1.0]), r"component ID is out of range 2 > num_components"),
            (b.insert_many(0, ["a", "b"], [1.0]), "one row for each of 2 keys"),
            (b.insert_many(0, ["a"], [[1.0]]), "Shape mismatch in component 0"),
            (b.insert_many(0, ["a"], np.zeros((1, 0), np.float32)), "Tensors with no elements"),
        ]
        for insert, message in cases:
            with pytest.raises(tf.errors.InvalidArgumentError, match=message):
                session.run(insert)
    with pytest.raises(ValueError, match="Empty tensors are not supported"):
        Barrier((tf.float32,), ((0, 2),))
    with pytest.raises(ValueError, match="one shape for each component"):
        Barrier((tf.float32, tf.float32), ((),))


def test_a_session_that_ends_cancels_who_waits() -> None:
    kernel = kernels.BarrierResource(kernels.BarrierSpec((tf.float32,), ()), "b")
    waits = threading.Event()
    errors: list[BaseException] = []

    class Step:
        def wait_for(self, condition: threading.Condition, ready: Any) -> None:
            waits.set()
            condition.wait_for(ready)

    def take() -> None:
        try:
            kernel.take(1, False, Step())
        except tf.errors.OpError as error:
            errors.append(error)

    thread = threading.Thread(target=take)
    thread.start()
    waits.wait(20)
    kernel.abandon()
    thread.join(20)
    assert [type(e) for e in errors] == [tf.errors.CancelledError]
