"""Shares of datasets: together they are what the script would have read."""

import numpy as np
import pytest

import headrace as tf
from headrace.data.dataset import Dataset
from headrace.data_parallel.inputs import shard


def numbers(count=12):
    return tf.data.Dataset.range(count)


def batches(dataset, worker=None, workers=2):
    """The batches of a dataset, or of a worker's share."""
    if worker is not None:
        made = shard(dataset._variant_tensor, worker, workers, seed=7)
        dataset = Dataset(made, dataset._structure)
    element = dataset.make_one_shot_iterator().get_next()
    found = []
    with tf.Session() as sess:
        while True:
            try:
                found.append(np.array(sess.run(element)).tolist())
            except tf.errors.OutOfRangeError:
                return found


PIPELINES = {
    "batch": lambda: numbers().batch(4),
    "map": lambda: numbers().map(lambda x: x * 2).batch(4).prefetch(1),
    "take": lambda: numbers(20).skip(1).take(8).batch(4),
    "batches taken": lambda: numbers().batch(4).take(2),
    "repeat": lambda: numbers(8).batch(4).repeat(2),
    "interleaved": lambda: (
        tf.data.Dataset.from_tensor_slices([0, 100, 200])
        .flat_map(lambda x: tf.data.Dataset.from_tensor_slices(x + tf.range(4)))
        .batch(4)
    ),
    "map and batch": lambda: numbers().apply(
        tf.data.experimental.map_and_batch(lambda x: x + 1, batch_size=4)
    ),
    "zip": lambda: tf.data.Dataset.zip((numbers(), numbers())).map(lambda a, b: a + b).batch(4),
}


@pytest.mark.parametrize("make", PIPELINES.values(), ids=PIPELINES)
def test_shares_of_a_batch_are_the_batch(make):
    shares = [batches(make(), worker) for worker in range(2)]
    together = [sorted(a + b) for a, b in zip(*shares, strict=True)]
    assert together == [sorted(b) for b in batches(make())]


SPARSE = tf.SparseTensorValue([[0, 1], [2, 0], [3, 1]], [1, 2, 3], [4, 2])
SOURCES = {
    "slices": lambda _: tf.data.Dataset.from_tensor_slices(tf.range(4)),
    "range": lambda _: numbers(5),
    "lines": lambda file: tf.data.TextLineDataset([file]),
    "generator": lambda _: tf.data.Dataset.from_generator(lambda: range(3), tf.int64),
    "zip": lambda _: tf.data.Dataset.zip((numbers(3),)).map(lambda a: a),
    "changed by a map": lambda file: tf.data.TextLineDataset([file]).map(tf.string_to_number),
}


@pytest.mark.parametrize("make", SOURCES.values(), ids=SOURCES)
def test_a_source_alone_is_shared(tmp_path, make):
    (tmp_path / "lines").write_text("7\n8\n9\n")
    file = str(tmp_path / "lines")
    shares = [batches(make(file), worker) for worker in range(2)]
    assert sorted(shares[0] + shares[1]) == sorted(batches(make(file)))
    assert len(shares[0]) - len(shares[1]) in (0, 1)


def test_stages_that_share_know_the_elements_before_them(tmp_path):
    """They had the types of what the stage after them makes."""
    for make, dtypes in (
        (SOURCES["changed by a map"](""), [tf.string]),
        (tf.data.Dataset.from_sparse_tensor_slices(SPARSE), [tf.int64, tf.int32, tf.int64]),
    ):
        op = shard(make._variant_tensor, 0, 2, seed=7).op
        while op.type != "ShardDataset":
            op = op.inputs[0].op
        assert list(op.attrs["output_types"]) == dtypes


FEW = {
    "one tensor": lambda: tf.data.Dataset.from_tensors([1, 2]).repeat(2),
    "one slice": lambda: tf.data.Dataset.from_tensor_slices([[1, 2]]).batch(1).repeat(2),
    "range": lambda: numbers(2).map(lambda x: x + 1),
}


@pytest.mark.parametrize("make", FEW.values(), ids=FEW)
def test_workers_read_all_of_what_is_too_little_to_share(make):
    """One of them could not train at all."""
    whole = batches(make())
    assert [batches(make(), worker, 3) for worker in range(3)] == [whole] * 3


def test_shuffled_elements_come_once():
    def make():
        return numbers(30).shuffle(30).batch(6)

    shares = [batches(make(), worker, 3) for worker in range(3)]
    assert [len(b) for b in shares[0]] == [2] * 5
    assert sorted(x for share in shares for b in share for x in b) == list(range(30))


def test_a_shuffle_before_the_share_is_the_same_in_all_workers():
    def make():
        return numbers(30).shuffle(30).take(12).batch(6)

    shares = [batches(make(), worker, 3) for worker in range(3)]
    seen = [x for share in shares for b in share for x in b]
    assert len(set(seen)) == 12


def test_files_are_shared_where_each_worker_gets_as_many():
    def make():
        files = tf.data.Dataset.from_tensor_slices([0, 100, 200, 300])
        return files.flat_map(lambda x: tf.data.Dataset.from_tensor_slices(x + tf.range(3))).batch(
            2
        )

    assert batches(make(), 0) == [[0], [1], [2], [200], [201], [202]]


def test_sizes_that_cannot_be_divided_are_rounded_up():
    assert [len(b) for b in batches(numbers(10).batch(5), 0)] == [3, 2]


def test_batches_of_a_fixed_size_stay(caplog):
    made = batches(numbers(8).batch(2, drop_remainder=True), 1)
    assert made == [[1, 3], [5, 7]]
    assert "have a fixed size: each worker trains on batches of that size" in caplog.text
    assert "test_parallel_inputs.py, line" in caplog.text
