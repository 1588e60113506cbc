"""Pipelines of random transforms against plain Python; where they are, saved and restored."""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import headrace as tf

Step = Any


class Elements(NamedTuple):
    """A dataset, and its elements in Python."""

    dataset: Any
    values: list[Any]


def _batches(values: list[int], size: int, drops: bool) -> list[list[int]]:
    found = [values[i : i + size] for i in range(0, len(values), size)]
    return [b for b in found if len(b) == size] if drops else found


STEPS = {
    "take": (
        st.integers(-1, 12),
        lambda e, n: Elements(e.dataset.take(n), e.values if n < 0 else e.values[:n]),
    ),
    "skip": (
        st.integers(0, 12),
        lambda e, n: Elements(e.dataset.skip(n), e.values[n:]),
    ),
    "repeat": (
        st.integers(0, 3),
        lambda e, n: Elements(e.dataset.repeat(n), e.values * n),
    ),
    "shard": (
        st.tuples(st.integers(1, 4), st.integers(0, 3)).filter(lambda t: t[1] < t[0]),
        lambda e, t: Elements(e.dataset.shard(*t), e.values[t[1] :: t[0]]),
    ),
    "map": (
        st.integers(-3, 3),
        lambda e, n: Elements(e.dataset.map(lambda x: x * 2 + n), [v * 2 + n for v in e.values]),
    ),
    "parallel_map": (
        st.integers(1, 4),
        lambda e, n: Elements(
            e.dataset.map(lambda x: x + 1, num_parallel_calls=n), [v + 1 for v in e.values]
        ),
    ),
    "filter": (
        st.integers(1, 3),
        lambda e, n: Elements(
            e.dataset.filter(lambda x: tf.equal(x % n, 0)), [v for v in e.values if v % n == 0]
        ),
    ),
    "prefetch": (
        st.integers(-1, 3).filter(bool),
        lambda e, n: Elements(e.dataset.prefetch(n), e.values),
    ),
    "cache": (st.just(0), lambda e, _: Elements(e.dataset.cache(), e.values)),
    "batch and back": (
        st.tuples(st.integers(1, 10), st.booleans()),
        lambda e, t: Elements(
            e.dataset.batch(*t).apply(tf.data.experimental.unbatch()),
            [v for b in _batches(e.values, *t) for v in b],
        ),
    ),
    "windows": (
        st.integers(1, 4),
        lambda e, n: Elements(
            e.dataset.window(n, shift=1, drop_remainder=True)
            .flat_map(lambda w: w.batch(n))
            .map(lambda b: tf.reduce_sum(b)),
            [sum(e.values[i : i + n]) for i in range(len(e.values) - n + 1)],
        ),
    ),
    "flat_map": (
        st.integers(0, 2),
        lambda e, n: Elements(
            e.dataset.flat_map(lambda x: tf.data.Dataset.from_tensors(x).repeat(n)),
            [v for v in e.values for _ in range(n)],
        ),
    ),
    "concatenate": (
        st.integers(0, 3),
        lambda e, n: Elements(
            e.dataset.concatenate(tf.data.Dataset.range(n)), [*e.values, *range(n)]
        ),
    ),
    "shuffle by one": (
        st.just(1),
        lambda e, n: Elements(e.dataset.shuffle(n, seed=3), e.values),
    ),
}
CHAINS = st.lists(
    st.sampled_from(sorted(STEPS)).flatmap(lambda name: st.tuples(st.just(name), STEPS[name][0])),
    max_size=4,
)


def _made(count: int, rows: bool, chain: list[tuple[str, Any]]) -> Elements:
    numbers = np.arange(count)
    dataset = tf.data.Dataset.from_tensor_slices(numbers) if rows else tf.data.Dataset.range(count)
    found = Elements(dataset, list(range(count)))
    for name, argument in chain:
        found = STEPS[name][1](found, argument)
    return found


def _all(session: tf.Session, following: Any, most: int = 10**6) -> list[Any]:
    found = []
    try:
        while len(found) < most:
            found.append(int(session.run(following)))
    except tf.errors.OutOfRangeError:
        pass
    return found


def _threads() -> set[str]:
    return {t.name for t in threading.enumerate() if t.name.startswith("headrace-")} - {
        t.name for t in threading.enumerate() if t.name.startswith("headrace-step")
    }


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 24), st.booleans(), CHAINS)
def test_any_pipeline_equals_plain_python(count, rows, chain):
    with tf.Graph().as_default(), tf.Session() as session:
        found = _made(count, rows, chain)
        following = tf.data.make_one_shot_iterator(found.dataset).get_next()
        assert _all(session, following) == found.values


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 24), st.booleans(), CHAINS, st.integers(0, 30), st.booleans())
def test_a_restored_iterator_goes_on(count, rows, chain, before, shuffles):
    with tf.Graph().as_default():
        dataset = _made(count, rows, chain).dataset
        if shuffles:
            dataset = dataset.shuffle(4, seed=7).repeat(2)
        iterator = tf.data.make_initializable_iterator(dataset)
        following = iterator.get_next()
        state = tf.raw_ops.IteratorState(iterator._iterator_resource)
        given_state = tf.placeholder(tf.string, [])
        restore = tf.raw_ops.RestoreIteratorState(iterator._iterator_resource, given_state)
        with tf.Session() as session:
            session.run(iterator.initializer)
            _all(session, following, before)
            saved = session.run(state)
            expected = _all(session, following)
        with tf.Session() as session:
            session.run(iterator.initializer)
            _all(session, following, 3)
            session.run(restore, {given_state: saved})
            assert _all(session, following) == expected


@pytest.mark.parametrize("end", ["close", "exhaust", "again"])
def test_no_thread_outlives_its_iterator(end):
    before = _threads()
    with tf.Graph().as_default():
        dataset = tf.data.Dataset.range(1000).map(lambda x: x + 1, 3).prefetch(2)
        iterator = tf.data.make_initializable_iterator(dataset.take(20).prefetch(1))
        following = iterator.get_next()
        session = tf.Session()
        session.run(iterator.initializer)
        session.run(following)
        if end == "exhaust":
            _all(session, following)
        elif end == "again":
            session.run(iterator.initializer)
        if end != "again":
            session.close()
            assert _threads() == before
        else:
            session.run(following)
            session.close()
            assert _threads() == before


def test_checkpoints_hold_where_an_iterator_is(tmp_path):
    with tf.Graph().as_default():
        dataset = tf.data.Dataset.range(20).shuffle(6, seed=3).batch(3)
        iterator = tf.data.make_initializable_iterator(dataset)
        following = iterator.get_next()
        step = tf.Variable(0)
        tf.add_to_collection(
            tf.GraphKeys.SAVEABLE_OBJECTS,
            tf.data.experimental.make_saveable_from_iterator(iterator),
        )
        saver = tf.train.Saver()
        with tf.Session() as session:
            session.run([iterator.initializer, step.initializer])
            session.run(following)
            path = saver.save(session, str(tmp_path / "model"))
            expected = [session.run(following).tolist() for _ in range(3)]
        with tf.Session() as session:
            session.run(iterator.initializer)
            saver.restore(session, path)
            assert [session.run(following).tolist() for _ in range(3)] == expected


def test_a_damaged_state_is_refused():
    with tf.Graph().as_default(), tf.Session() as session:
        iterator = tf.data.make_initializable_iterator(tf.data.Dataset.range(3))
        given_state = tf.placeholder(tf.string, [])
        restore = tf.raw_ops.RestoreIteratorState(iterator._iterator_resource, given_state)
        session.run(iterator.initializer)
        saved = session.run(tf.raw_ops.IteratorState(iterator._iterator_resource))
        for content in (b"", b"x", saved[:-1], saved[:5] + b"?" + saved[6:]):
            with pytest.raises(tf.errors.DataLossError, match="saved state of an iterator"):
                session.run(restore, {given_state: content})
