"""A map before a batch is computed for whole batches where that is the same."""

from __future__ import annotations

import re

import numpy as np
import pytest

import headrace as tf
from headrace.ops.data import batching, mapped_batches

Dataset = tf.data.Dataset
SIZE = mapped_batches.LEAST_BATCH


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


@pytest.fixture
def chosen(monkeypatch):
    """Whether each batch dataset that was iterated was computed by batches."""
    found = []
    decide = mapped_batches.map_taken_out

    def recorded(source):
        made = decide(source)
        found.append(made is not None)
        return made

    monkeypatch.setattr(batching, "map_taken_out", recorded)
    return found


def batches(dataset):
    iterator = tf.data.make_initializable_iterator(dataset)
    following = iterator.get_next()
    found = []
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), iterator.initializer])
        try:
            while True:
                found.append(session.run(following))
        except tf.errors.OutOfRangeError:
            return found


ROWS = np.arange(60, dtype=np.float32).reshape(20, 3)
EXAMPLES = [
    tf.train.Example(
        features=tf.train.Features(
            feature={
                "raw": tf.train.Feature(bytes_list=tf.train.BytesList(value=[bytes([i, 2 * i])])),
                "at": tf.train.Feature(int64_list=tf.train.Int64List(value=[i])),
            }
        )
    ).SerializeToString()
    for i in range(20)
]


def _parsed(record):
    form = {"raw": tf.FixedLenFeature([], tf.string), "at": tf.FixedLenFeature([], tf.int64)}
    example = tf.parse_single_example(record, form)
    pixels = tf.reshape(tf.decode_raw(example["raw"], tf.uint8), [2, 1])
    return tf.cast(pixels, tf.float32) / 255.0, tf.one_hot(example["at"], 20), example["at"]


def _scaled(factor):
    return Dataset.range(20).map(lambda x: x * factor)


SAFE = {
    "arithmetic": lambda: Dataset.from_tensor_slices(ROWS).map(lambda x: (x - 0.5) * 2.0),
    "broadcast": lambda: Dataset.from_tensor_slices(ROWS).map(lambda x: x + np.float32([1, 2, 3])),
    "several": lambda: Dataset.from_tensor_slices((ROWS, ROWS)).map(lambda x, y: (x * y, x > y)),
    "text": lambda: Dataset.from_tensor_slices(list("01234567890123456789")).map(
        lambda x: tf.string_to_number(x)
    ),
    "parse": lambda: Dataset.from_tensor_slices(EXAMPLES).map(_parsed),
    "parallel": lambda: Dataset.from_tensor_slices(EXAMPLES).map(_parsed, 3),
    "shuffled": lambda: Dataset.from_tensor_slices(EXAMPLES).map(_parsed).shuffle(7, 3).repeat(2),
    "taken": lambda: Dataset.range(90).map(lambda x: x * x).skip(3).take(50).shard(2, 1),
    "captured": lambda: _scaled(tf.Variable(np.int64(5)).read_value()),
}


@pytest.mark.parametrize("name", SAFE)
@pytest.mark.parametrize("drops", [False, True])
def test_batches_are_the_same_as_of_elements(name, drops, chosen, monkeypatch):
    tf.set_random_seed(1)
    dataset = SAFE[name]().batch(SIZE, drops)
    found = batches(dataset)
    assert chosen == [True]
    monkeypatch.setattr(batching, "LEAST_BATCH", 10**9)
    expected = batches(dataset)
    assert len(found) == len(expected) > 0
    for a, b in zip(found, expected, strict=True):
        for x, y in zip(*[v if isinstance(v, tuple) else (v,) for v in (a, b)], strict=True):
            assert (x.dtype, x.shape, x.tolist()) == (y.dtype, y.shape, y.tolist())


UNSAFE = {
    "random": lambda: Dataset.range(20).map(lambda x: tf.random_uniform([])),
    "Python": lambda: Dataset.range(20).map(lambda x: tf.py_func(lambda v: v, [x], tf.int64)),
    "a sum": lambda: Dataset.from_tensor_slices(ROWS).map(tf.reduce_sum),
    "other ranks": lambda: Dataset.from_tensor_slices((ROWS, ROWS[:, 0])).map(lambda x, y: x * y),
    "a constant": lambda: Dataset.range(20).map(lambda x: (x, tf.constant(1))),
    "no map": lambda: Dataset.range(20),
    "a cache": lambda: Dataset.range(20).map(lambda x: x + 1).cache(),
    "a filter": lambda: Dataset.range(20).map(lambda x: x + 1).filter(lambda x: x > 3),
}


@pytest.mark.parametrize("name", UNSAFE)
def test_what_is_not_safe_stays_a_map_of_elements(name, chosen):
    assert len(batches(UNSAFE[name]().batch(SIZE))) == 3
    assert chosen == [False]


def test_an_element_that_fails_is_told_and_the_others_come():
    numbers = np.array([1] * 10 + [0] + [2] * 20, np.int32)
    dataset = Dataset.from_tensor_slices(numbers).map(lambda x: tf.floordiv(4, x)).batch(SIZE)
    following = tf.data.make_one_shot_iterator(dataset).get_next()
    with tf.Session() as session:
        assert session.run(following).tolist() == [4] * SIZE
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            session.run(following)
        assert re.search(
            r"At element 10 of dataset stage 'MapDataset'.*test_mapped", str(caught.value)
        )
        rest = [session.run(following).tolist() for _ in range(3)]
        assert rest == [[2] * SIZE, [2] * SIZE, [2] * (20 - 2 * SIZE)]


def test_an_index_behind_a_shuffle_says_of_what_order_it_is():
    dataset = Dataset.from_tensor_slices(np.zeros(SIZE, np.int32)).map(lambda x: tf.floordiv(4, x))
    following = tf.data.make_one_shot_iterator(dataset.shuffle(3).batch(SIZE)).get_next()
    with (
        tf.Session() as session,
        pytest.raises(tf.errors.InvalidArgumentError, match=r"0 \(in the order of the batches\)"),
    ):
        session.run(following)


def test_elements_of_other_sizes_are_told_as_for_any_batch():
    raw = [b"ab"] * 9 + [b"abc"] * 9
    dataset = Dataset.from_tensor_slices(raw).map(lambda x: tf.decode_raw(x, tf.uint8)).batch(SIZE)
    following = tf.data.make_one_shot_iterator(dataset).get_next()
    with tf.Session() as session:
        session.run(following)
        with pytest.raises(tf.errors.InvalidArgumentError, match="different shapes in component 0"):
            session.run(following)


def test_what_waits_after_an_error_is_saved():
    numbers = np.array([1] * 3 + [0] + [2] * 3 * SIZE, np.int32)
    dataset = Dataset.from_tensor_slices(numbers).map(lambda x: tf.floordiv(4, x)).batch(SIZE)
    iterator = tf.data.make_initializable_iterator(dataset)
    following = iterator.get_next()
    state = tf.raw_ops.IteratorState(iterator._iterator_resource)
    given = tf.placeholder(tf.string, [])
    restore = tf.raw_ops.RestoreIteratorState(iterator._iterator_resource, given)
    with tf.Session() as session:
        session.run(iterator.initializer)
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run(following)
        saved = session.run(state)
    with tf.Session() as session:
        session.run(iterator.initializer)
        session.run(restore, {given: saved})
        assert [len(session.run(following)) for _ in range(3)] == [SIZE] * 3
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(following)
