"""Ragged tensors as elements: slices, batches, functions, buffers, saved iterators."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import headrace as tf
from headrace.ops.data.state import from_bytes, to_bytes

Dataset = tf.data.Dataset
ROWS = [[1, 2, 3], [], [4]]
DEEP = [[[1, 2], [3]], [], [[], [4, 5, 6]], [[7]]]


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


def as_list(value):
    return value.to_list() if hasattr(value, "to_list") else value.tolist()


def elements(dataset):
    following = tf.data.make_initializable_iterator(dataset)
    with tf.Session() as session:
        session.run(following.initializer)
        return rest(session, following.get_next())


def rest(session, following):
    found = []
    while True:
        try:
            found.append(as_list(session.run(following)))
        except tf.errors.OutOfRangeError:
            return found


def test_slices_are_rows():
    dataset = Dataset.from_tensor_slices(tf.ragged.constant(DEEP))
    assert dataset.output_classes is tf.RaggedTensor
    assert elements(dataset) == DEEP
    rows = Dataset.from_tensor_slices(tf.ragged.constant(ROWS))
    assert rows.output_classes is tf.Tensor  # rows of a ragged matrix are dense
    assert elements(rows) == ROWS


def test_batches_are_ragged_and_come_back():
    dataset = Dataset.from_tensor_slices(tf.ragged.constant(DEEP))
    assert elements(dataset.batch(3)) == [DEEP[:3], DEEP[3:]]
    assert elements(dataset.batch(3, drop_remainder=True)) == [DEEP[:3]]
    assert elements(dataset.batch(3).unbatch()) == DEEP
    assert elements(dataset.batch(3).batch(2)) == [[DEEP[:3], DEEP[3:]]]
    assert elements(Dataset.from_tensors(tf.ragged.constant(DEEP)).unbatch()) == DEEP
    shape = dataset.batch(3, drop_remainder=True).output_shapes.as_list()
    assert shape == [3, None, None]


def test_functions_take_and_give_them():
    dataset = Dataset.from_tensor_slices({"x": tf.ragged.constant(DEEP), "n": np.arange(4)})
    sums = dataset.map(lambda e: tf.reduce_sum(e["x"], axis=1) + tf.cast(e["n"], tf.int32))
    assert elements(sums) == [[3, 3], [], [2, 17], [10]]
    made = Dataset.range(3).map(lambda n: tf.RaggedTensor.from_row_lengths(tf.range(2 * n), [n, n]))
    assert elements(made.batch(3)) == [[[[], []], [[0], [1]], [[0, 1], [2, 3]]]]
    kept = dataset.filter(lambda e: e["x"].nrows() > 1).map(lambda e: e["x"])
    assert elements(kept) == [DEEP[0], DEEP[2]]


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.float64, "string", np.bool_])
@pytest.mark.parametrize("splits", [tf.int32, tf.int64])
def test_types_of_values_and_splits_stay(dtype, splits):
    values = np.array([b"a", b""], object) if dtype == "string" else np.array([1, 0], dtype)
    ragged = tf.RaggedTensor.from_row_splits(values, np.array([0, 0, 2]))
    batches = Dataset.from_tensor_slices(ragged.with_row_splits_dtype(splits)).batch(2)
    following = tf.data.make_one_shot_iterator(batches).get_next()
    assert (following.dtype, following.row_splits.dtype) == (ragged.dtype, splits)
    with tf.Session() as session:
        assert session.run(following).to_list() == [[], values.tolist()]


def test_nothing_in_them():
    empty = tf.ragged.constant([], ragged_rank=1, dtype=tf.float32)
    assert elements(Dataset.from_tensor_slices(empty)) == []
    assert elements(Dataset.from_tensors(empty).batch(1)) == [[[]]]
    assert elements(Dataset.from_tensors(empty).unbatch()) == []


def test_dense_tensors_of_different_sizes_make_ragged_batches():
    ragged_batch = tf.data.experimental.dense_to_ragged_batch
    dataset = Dataset.range(5).map(lambda n: {"n": n, "x": tf.fill([n, 2], n)})
    batches = dataset.apply(ragged_batch(3, row_splits_dtype=tf.int32))
    assert batches.output_classes == {"n": tf.Tensor, "x": tf.RaggedTensor}
    iterator = tf.data.make_one_shot_iterator(batches).get_next()
    with tf.Session() as session:
        found = session.run(iterator)
        assert found["n"].tolist() == [0, 1, 2]
        assert found["x"].row_splits.tolist() == [0, 0, 1, 3]
        assert found["x"].values.tolist() == [[1, 1], [2, 2], [2, 2]]
    assert len(elements(Dataset.range(5).map(tf.range).apply(ragged_batch(3, True)))) == 1
    unknown = Dataset.range(1).map(lambda n: tf.placeholder_with_default(n, None))
    with pytest.raises(ValueError, match="known rank"):
        unknown.apply(ragged_batch(2))
    with pytest.raises(TypeError, match="sparse or ragged"):
        Dataset.from_tensors(tf.ragged.constant(ROWS)).padded_batch(2, [None, None])


def test_rows_of_different_inner_sizes_are_refused():
    ragged_batch = tf.data.experimental.dense_to_ragged_batch(2)

    def of_size(n):
        made = tf.py_func(lambda n: np.zeros([1, n]), [n], tf.float64)
        made.set_shape([None, 3])
        return made

    dataset = Dataset.range(1, 3).map(of_size)
    following = tf.data.make_one_shot_iterator(dataset.apply(ragged_batch)).get_next()
    with (
        tf.Session() as session,
        pytest.raises(tf.errors.InvalidArgumentError, match="different shapes"),
    ):
        session.run(following)


def test_iterators_of_a_structure_hold_them():
    dataset = Dataset.from_tensor_slices(tf.ragged.constant(DEEP)).batch(2)
    iterator = tf.data.Iterator.from_structure(
        dataset.output_types, dataset.output_shapes, None, dataset.output_classes
    )
    following, start = iterator.get_next(), iterator.make_initializer(dataset)
    with tf.Session() as session:
        session.run(start)
        assert rest(session, following) == [DEEP[:2], DEEP[2:]]


ragged_rows = st.lists(st.lists(st.integers(0, 9), max_size=4), max_size=9)


@settings(deadline=None, max_examples=12)
@given(ragged_rows, st.integers(1, 4), st.integers(0, 3), st.data())
def test_chains_equal_plain_python_and_go_on_where_they_were(rows, size, skipped, data):
    with tf.Graph().as_default():
        ragged = tf.ragged.constant(rows, ragged_rank=1, dtype=tf.int32)
        dataset = Dataset.from_tensor_slices(ragged).skip(skipped).cache().repeat(2).prefetch(2)
        iterator = tf.data.make_initializable_iterator(dataset.batch(size))
        following = iterator.get_next()
        state = tf.raw_ops.IteratorState(iterator._iterator_resource)
        saved = tf.placeholder(tf.string, [])
        restore = tf.raw_ops.RestoreIteratorState(iterator._iterator_resource, saved)
        plain = rows[skipped:] * 2
        expected = [plain[i : i + size] for i in range(0, len(plain), size)]
        taken = data.draw(st.integers(0, len(expected)))
        with tf.Session() as session:
            session.run(iterator.initializer)
            assert [as_list(session.run(following)) for _ in range(taken)] == expected[:taken]
            where = session.run(state)
            assert rest(session, following) == expected[taken:]
            session.run(iterator.initializer)
            session.run(restore, {saved: where})
            assert rest(session, following) == expected[taken:]


def test_states_keep_bytes_as_they_are():
    assert from_bytes(to_bytes([b"a\0", b"", [b"\xff"]])) == [b"a\0", b"", [b"\xff"]]
