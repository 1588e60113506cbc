"""Producers of input and batches: whole pipelines. What comes in which order is in the goldens."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import headrace as tf


def _all(session, fetch) -> list:
    """Values until the input ends, with all queue runners at work."""
    session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
    coord = tf.train.Coordinator()
    threads = tf.train.start_queue_runners(session, coord)
    values = []
    try:
        while not coord.should_stop():
            values.append(session.run(fetch))
    except tf.errors.OutOfRangeError:
        coord.request_stop()
    coord.join(threads)
    return values


def _numbers(count: int, **kwargs):
    return tf.train.range_input_producer(count, num_epochs=1, shuffle=False, **kwargs).dequeue()


def test_limit_epochs_counts_in_a_local_variable() -> None:
    limited = tf.train.limit_epochs(tf.constant(5), 2)
    assert [v.name for v in tf.local_variables()] == ["limit_epochs/epochs:0"]
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        assert [session.run(limited) for _ in range(2)] == [5, 5]
        with pytest.raises(tf.errors.OutOfRangeError, match="Reached limit of 2"):
            session.run(limited)
    same = tf.constant(1)
    assert tf.train.limit_epochs(same) is same
    with pytest.raises(ValueError, match="num_epochs must be > 0"):
        tf.train.limit_epochs(same, 0)


def test_each_epoch_has_every_row_once() -> None:
    word = tf.train.string_input_producer(["a", "b", "c"], num_epochs=4).dequeue()
    with tf.Session() as session:
        found = _all(session, word)
    assert len(found) == 12
    for epoch in range(4):
        assert sorted(found[3 * epoch : 3 * epoch + 3]) == [b"a", b"b", b"c"]


def test_producers_check_their_arguments() -> None:
    with pytest.raises(ValueError, match="non-null input tensor"):
        tf.train.string_input_producer([])
    with pytest.raises(ValueError, match="fully defined shape"):
        tf.train.input_producer(tf.placeholder(tf.float32, [3, None]))
    with pytest.raises(ValueError, match="at least one tensor"):
        tf.train.slice_input_producer([])
    with pytest.raises(ValueError, match="different sizes"):
        tf.train.slice_input_producer([tf.zeros([2]), tf.zeros([3])])
    tf.train.string_input_producer(tf.placeholder_with_default([b"x"], [None])[:0])
    with tf.Session() as session:
        coord = tf.train.Coordinator()
        tf.train.start_queue_runners(session, coord)
        with pytest.raises(tf.errors.InvalidArgumentError, match="non-null"):
            coord.join()


def test_how_full_queues_are_is_summarised() -> None:
    x = tf.train.range_input_producer(4, shuffle=False, capacity=8).dequeue()
    tf.train.batch([x], 2, capacity=5)
    tf.train.shuffle_batch([x], 2, capacity=9, min_after_dequeue=1)
    summaries = tf.get_collection(tf.GraphKeys.SUMMARIES)
    assert [s.op.name for s in summaries] == [
        "input_producer/fraction_of_8_full",
        "batch/fraction_of_5_full",
        "shuffle_batch/fraction_over_1_of_8_full",
    ]
    with tf.Session() as session:
        message = tf.Summary.FromString(session.run(summaries[1]))
        assert message.value[0].simple_value == 0.0


@pytest.mark.parametrize("smaller", [False, True])
def test_the_last_batch(smaller: bool) -> None:
    batch = tf.train.batch([_numbers(7)], 3, allow_smaller_final_batch=smaller)
    assert batch.shape.as_list() == [None if smaller else 3]
    with tf.Session() as session:
        found = _all(session, batch)
    assert [len(b) for b in found] == ([3, 3, 1] if smaller else [3, 3])


def test_shuffle_batch_gives_everything_once() -> None:
    n = _numbers(50)
    batch = tf.train.shuffle_batch(
        {"n": n, "square": n * n}, 10, capacity=30, min_after_dequeue=10, num_threads=3
    )
    with tf.Session() as session:
        found = _all(session, batch)
    numbers = np.concatenate([b["n"] for b in found])
    assert sorted(numbers) == list(range(50))
    assert list(numbers) != list(range(50))
    np.testing.assert_array_equal(np.concatenate([b["square"] for b in found]), numbers**2)


def test_joined_inputs() -> None:
    inputs = [[_numbers(4) + 10 * i] for i in range(3)]
    plain = tf.train.batch_join(inputs, 4)
    with tf.Session() as session:
        found = np.concatenate(_all(session, plain))
    assert sorted(found) == sorted(n + 10 * i for i in range(3) for n in range(4))
    with pytest.raises(TypeError, match="types to be consistent"):
        tf.train.batch_join([[tf.zeros([2])], [tf.zeros([2], tf.int32)]], 2)
    with pytest.raises(ValueError, match="same keys"):
        tf.train.batch_join([{"a": tf.zeros([])}, {"b": tf.zeros([])}], 2)


def test_shuffled_joined_inputs() -> None:
    inputs = [[_numbers(8), tf.constant(i)] for i in range(2)]
    batch = tf.train.shuffle_batch_join(inputs, 4, capacity=20, min_after_dequeue=3)
    with tf.Session() as session:
        pairs = [p for n, i in _all(session, batch) for p in zip(n, i, strict=True)]
    assert sorted(pairs) == sorted((n, i) for i in range(2) for n in range(8))


def test_padding() -> None:
    n = _numbers(3)
    batch = tf.train.batch([tf.fill([n + 1], n)], 3, dynamic_pad=True)
    with tf.Session() as session:
        (found,) = _all(session, batch)
    np.testing.assert_array_equal(found, [[0, 0, 0], [1, 1, 0], [2, 2, 2]])


def test_some_inputs_are_kept() -> None:
    n = _numbers(10)
    even = tf.train.maybe_batch([n], tf.equal(n % 2, 0), 2)
    with tf.Session() as session:
        np.testing.assert_array_equal(np.concatenate(_all(session, even)), [0, 2, 4, 6])


def test_some_rows_are_kept() -> None:
    n = _numbers(4)
    rows = tf.stack([n, n + 10, n + 20])
    keep = tf.stack([True, False, True])
    batch = tf.train.maybe_batch([rows], keep, 4, enqueue_many=True)
    with tf.Session() as session:
        found = np.concatenate(_all(session, batch))
    np.testing.assert_array_equal(found, [0, 20, 1, 21, 2, 22, 3, 23])


def test_nothing_is_kept() -> None:
    tf.train.maybe_batch([_numbers(3)], False, 1)
    runner = tf.get_collection(tf.GraphKeys.QUEUE_RUNNERS)[-1]
    assert runner.enqueue_ops[0].type == "NoOp"


def test_keep_input_has_to_fit() -> None:
    x = tf.zeros([2])
    with pytest.raises(ValueError, match="cannot be a vector"):
        tf.train.maybe_batch([x], [True, False], 2)
    with pytest.raises(ValueError, match="0 or 1 dimensions"):
        tf.train.maybe_batch([x], [[True]], 2, enqueue_many=True)
    with pytest.raises(ValueError, match="dimensions must be known"):
        tf.train.maybe_batch([x], tf.placeholder(tf.bool), 2)


def test_shapes_have_to_be_known() -> None:
    with pytest.raises(ValueError, match="Cannot infer Tensor's rank"):
        tf.train.batch([tf.placeholder(tf.float32)], 2)
    with pytest.raises(ValueError, match="fully defined"):
        tf.train.batch([tf.placeholder(tf.float32, [None])], 2)
    with pytest.raises(ValueError, match="bigger than min_after_dequeue"):
        tf.train.shuffle_batch([tf.zeros([])], 2, 5, 5)
    given = tf.train.batch([tf.placeholder(tf.float32)], 2, shapes=[[3]])
    assert given.shape.as_list() == [2, 3]


def _sparse(n):
    wide = tf.cast(n, tf.int64)
    return tf.SparseTensor(tf.stack([[wide], [wide + 1]]), tf.stack([n, -n]), [8])


def _dense(value) -> np.ndarray:
    result = np.zeros(value.dense_shape, value.values.dtype)
    result[tuple(value.indices.T)] = value.values
    return result


@pytest.mark.parametrize("conditional", [False, True])
def test_sparse_inputs(conditional: bool) -> None:
    n = _numbers(6)
    if conditional:
        batch = tf.train.maybe_batch([_sparse(n), n], tf.greater(n, 1), 2)
    else:
        batch = tf.train.batch([_sparse(n), n], 3)
    with tf.Session() as session:
        found = _all(session, batch)
    size = len(found[0][1])
    assert [b[0].dense_shape.tolist() for b in found] == [[size, 8]] * 2
    for value, numbers in found:
        expected = np.zeros((size, 8), np.int32)
        for row, number in enumerate(numbers):
            expected[row, number : number + 2] = number, -number
        np.testing.assert_array_equal(_dense(value), expected)


def test_joined_sparse_inputs_share_a_map() -> None:
    inputs = [[_sparse(_numbers(3) + i)] for i in range(2)]
    batch = tf.train.batch_join(inputs, 6)
    with tf.Session() as session:
        (found,) = _all(session, batch)
    assert sorted(found.values) == sorted(
        s * (n + i) for n in range(3) for i in (0, 1) for s in (1, -1)
    )
    with pytest.raises(ValueError, match="Inconsistent SparseTensors"):
        tf.train.batch_join([[_sparse(_numbers(2))], [tf.zeros([8])]], 2)


def test_a_map_gives_each_tensor_once() -> None:
    number = tf.raw_ops.AddSparseToTensorsMap([[0]], [1.0], [2], shared_name="map")
    take = tf.raw_ops.TakeManySparseFromTensorsMap([0], dtype=tf.float32, shared_name="map")
    with tf.Session() as session:
        assert session.run(number) == 0
        indices, values, shape = session.run(take)
        assert (indices.tolist(), values.tolist(), shape.tolist()) == ([[0, 0]], [1.0], [1, 2])
        with pytest.raises(tf.errors.InvalidArgumentError, match="Unable to find SparseTensor: 0"):
            session.run(take)


def test_matching_files_are_looked_up_once(tmp_path: Path) -> None:
    for name in ("b.txt", "a.txt", "c.bin"):
        (tmp_path / name).write_text(name)
    names = tf.train.match_filenames_once(f"{tmp_path}/*.txt")
    line = tf.TextLineReader().read(
        tf.train.string_input_producer(names, num_epochs=1, shuffle=False)
    )[1]
    with tf.Session() as session:
        assert _all(session, line) == [b"a.txt", b"b.txt"]


def test_inputs_that_cannot_be_batched_are_refused_by_what_they_are():
    one = tf.constant(1)
    with pytest.raises(ValueError, match=r"as many tensors in each list, got \[1, 2\]"):
        tf.train.batch_join([[one], [one, one]], 2)
    with pytest.raises(ValueError, match="capacity must not be 0"):
        tf.train.batch([one], 2, capacity=0)
    with pytest.raises(ValueError, match="capacity must not be 0"):
        tf.train.range_input_producer(3, capacity=0)
    with pytest.raises(TypeError, match="Expected a QueueRunner, not 3"):
        tf.train.add_queue_runner(3)
