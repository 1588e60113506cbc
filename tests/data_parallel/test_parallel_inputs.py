"""Shares of datasets: together they are what the script would have read."""

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
                found.append(sess.run(element).tolist())
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
