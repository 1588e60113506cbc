"""Which queues are one: shared names, containers, sessions; and that their makers must agree."""

from __future__ import annotations

import re
from typing import Any

import pytest

import headrace as tf


@pytest.fixture
def session() -> Any:
    with tf.Graph().as_default(), tf.Session() as opened:
        yield opened


def test_one_shared_name_is_one_queue(session: Any) -> None:
    a = tf.FIFOQueue(4, tf.int32, [()], shared_name="s", name="a")
    b = tf.FIFOQueue(4, tf.int32, [()], shared_name="s", name="b")
    c = tf.FIFOQueue(4, tf.int32, [()], name="s")
    with tf.container("other"):
        d = tf.FIFOQueue(4, tf.int32, [()], shared_name="s", name="d")
    session.run(a.enqueue(5))
    assert session.run([b.size(), c.size()]) == [1, 0]
    assert session.run(b.dequeue()) == 5
    session.run(a.enqueue(5))
    assert session.run([b.size(), d.size()]) == [1, 0]
    session.run(a.close())
    with pytest.raises(tf.errors.OutOfRangeError, match=r"^FIFOQueue 's' is closed"):
        session.run(b.dequeue_many(3))


def _shared(kind: Any, *args: Any, **kwargs: Any) -> Any:
    return lambda: kind(*args, shared_name="sq", **kwargs)


F, R, P, H = tf.FIFOQueue, tf.RandomShuffleQueue, tf.PaddingFIFOQueue, tf.PriorityQueue


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        (
            _shared(F, 1, tf.int32),
            _shared(F, 2, tf.int32),
            "Shared queue 'sq' has capacity 1 but requested capacity was 2",
        ),
        (
            _shared(F, 1, tf.int32),
            _shared(F, 1, [tf.int32, tf.float32]),
            "Shared queue 'sq' has component types int32 but requested component types were int32,"
            " float",
        ),
        (
            _shared(F, 1, tf.int32, [()]),
            _shared(F, 1, tf.int32, [(2,)]),
            "Shared queue 'sq' has component shapes [[]] but requested component shapes were [[2]]",
        ),
        (
            _shared(F, 1, tf.int32),
            _shared(F, 1, tf.int32, [(2,)]),
            "Shared queue 'sq' has component shapes [] but requested component shapes were [[2]]",
        ),
        (
            _shared(P, 1, tf.int32, [(None,)]),
            _shared(P, 1, tf.int32, [(None, 2)]),
            "Shared queue 'sq' has component shapes [[?]] but requested component shapes were "
            "[[?,2]]",
        ),
        (
            _shared(F, 1, tf.int32),
            _shared(R, 1, 0, tf.int32),
            "Expected FIFOQueue, found RandomShuffleQueueV2",
        ),
        (
            _shared(H, 1, tf.int32, [()]),
            _shared(H, 1, tf.float32, [()]),
            "Shared queue 'sq' has component types int64, int32 but requested component types were "
            "int64, float",
        ),
        (
            _shared(R, 9, 0, tf.int32),
            _shared(R, 9, 3, tf.int32),
            "Shared queue 'sq' has min_after_dequeue 0 but requested min_after_dequeue was 3.",
        ),
        (
            _shared(R, 9, 0, tf.int32, seed=1),
            _shared(R, 9, 0, tf.int32, seed=2),
            "Shared queue 'sq' has random seeds (87654321, 1) but requested seeds are "
            "(87654321, 2).",
        ),
    ],
)
def test_shared_queues_must_agree(session: Any, first: Any, second: Any, message: str) -> None:
    a, b = first(), second()
    session.run(a.queue_ref.op)
    with pytest.raises(tf.errors.InvalidArgumentError, match="^" + re.escape(message)) as caught:
        session.run(b.size())
    assert caught.value.op is b.queue_ref.op


def test_each_session_has_its_own(session: Any) -> None:
    q = tf.FIFOQueue(4, tf.int32, [()])
    session.run(q.enqueue(1))
    with tf.Session() as other:
        assert other.run(q.size()) == 0
