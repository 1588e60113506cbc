"""How many elements there are, what passes a stage, and datasets written into files."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as tf
from headrace.ops.data import statistics

Dataset = tf.data.Dataset
experimental = tf.data.experimental


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


def count(n=5):
    return Dataset.range(n)


def some():
    return count().filter(lambda x: x > 2)


#: What TensorFlow 1.15 gives, but for "take -1" (there -1) and "ignore_errors" (there 5).
CARDINALITIES = {
    "tensors": (lambda: Dataset.from_tensors(1), 1),
    "slices": (lambda: Dataset.from_tensor_slices([1, 2, 3]), 3),
    "sparse slices": (
        lambda: Dataset.from_tensor_slices(tf.SparseTensor([[0, 0]], [1], [3, 2])),
        3,
    ),
    "range": (count, 5),
    "empty range": (lambda: count(0), 0),
    "range of steps": (lambda: Dataset.range(0, 10, 3), 4),
    "batch": (lambda: count().batch(2), 3),
    "batch, rest dropped": (lambda: count().batch(2, True), 2),
    "batch without end": (lambda: count().repeat().batch(2), -1),
    "padded batch": (lambda: count().padded_batch(2, []), 3),
    "cache": (lambda: count().cache(), 5),
    "concatenate": (lambda: count().concatenate(count(2)), 7),
    "concatenate without end": (lambda: some().concatenate(count(2).repeat()), -1),
    "concatenate unknown": (lambda: count().concatenate(some()), -2),
    "filter": (some, -2),
    "flat_map": (lambda: count().flat_map(Dataset.from_tensors), -2),
    "interleave": (lambda: count().interleave(Dataset.from_tensors, 1), -2),
    "generator": (lambda: Dataset.from_generator(lambda: iter([1]), tf.int64), -2),
    "map": (lambda: count().map(lambda x: x), 5),
    "parallel map": (lambda: count().map(lambda x: x, 2), 5),
    "prefetch": (lambda: count().prefetch(2), 5),
    "repeat": (lambda: count().repeat(2), 10),
    "repeat without end": (lambda: count().repeat(), -1),
    "repeat zero times": (lambda: some().repeat().repeat(0), 0),
    "repeat of no end": (lambda: count().repeat().repeat(2), -1),
    "repeat of nothing": (lambda: count(0).repeat(), 0),
    "repeat of unknown": (lambda: some().repeat(2), -2),
    "shard": (lambda: count().shard(2, 1), 2),
    "shard beyond": (lambda: count().shard(8, 7), 0),
    "shard without end": (lambda: count().repeat().shard(2, 1), -1),
    "shuffle": (lambda: count().shuffle(2), 5),
    "shuffle and repeat": (lambda: count().apply(experimental.shuffle_and_repeat(3, 2)), 10),
    "skip": (lambda: count().skip(2), 3),
    "skip beyond": (lambda: count().skip(7), 0),
    "skip all": (lambda: count().skip(-1), 0),
    "skip of no end": (lambda: count().repeat().skip(2), -1),
    "skip of unknown": (lambda: some().skip(2), -2),
    "take": (lambda: count().take(2), 2),
    "take more": (lambda: count().take(7), 5),
    "take all": (lambda: count().take(-1), 5),
    "take of no end": (lambda: count().repeat().take(7), 7),
    "take of unknown": (lambda: some().take(2), -2),
    "window": (lambda: count().window(2), 3),
    "window shifted": (lambda: count().window(2, shift=1), 5),
    "window, rest dropped": (lambda: count().window(2, drop_remainder=True), 2),
    "window of strides": (lambda: count(9).window(3, 2, 2, drop_remainder=True), 3),
    "zip": (lambda: Dataset.zip((count(), count(3))), 3),
    "zip with no end": (lambda: Dataset.zip((count(), count(3).repeat())), 5),
    "zip with unknown": (lambda: Dataset.zip((count(), some())), -2),
    "zip of no ends": (lambda: Dataset.zip((count().repeat(), count().repeat())), -1),
    "enumerate": (lambda: count().enumerate(), 5),
    "unbatch": (lambda: count(4).batch(2).unbatch(), -2),
    "map and batch": (lambda: count().apply(experimental.map_and_batch(lambda x: x, 2)), 3),
    "scan": (lambda: count().apply(experimental.scan(np.int64(0), lambda s, x: (s + x, s))), 5),
    "take while": (lambda: count().apply(experimental.take_while(lambda x: x < 2)), -2),
    "unique": (lambda: count().apply(experimental.unique()), -2),
    "ignore_errors": (lambda: count().apply(experimental.ignore_errors()), -2),
    "random": (lambda: experimental.RandomDataset(1), -1),
    "counter": (lambda: experimental.Counter(), -1),
    "text": (lambda: tf.data.TextLineDataset("x"), -2),
    "promised": (lambda: some().apply(experimental.assert_cardinality(2)), 2),
    "written": (lambda: count().apply(experimental.latency_stats("t")), 5),
}


@pytest.mark.parametrize("name", CARDINALITIES)
def test_a_cardinality_is_found_without_running(name):
    make, expected = CARDINALITIES[name]
    dataset = make()
    with tf.Session() as session:
        assert session.run(experimental.cardinality(dataset)) == expected
        if expected >= 0 and name not in ("promised",):
            assert len(elements(session, dataset)) == expected


def elements(session, dataset):
    leaf = dataset if not isinstance(dataset.element_spec, tf.data.DatasetSpec) else None
    if leaf is None:
        dataset = dataset.map(lambda window: experimental.get_single_element(window.take(1)))
    iterator = tf.data.make_initializable_iterator(dataset)
    following = iterator.get_next()
    session.run(iterator.initializer)
    found = []
    while True:
        try:
            found.append(session.run(following))
        except tf.errors.OutOfRangeError:
            return found


def test_a_promised_cardinality_is_held_to():
    assert experimental.INFINITE_CARDINALITY == -1
    assert experimental.UNKNOWN_CARDINALITY == -2
    promise = experimental.assert_cardinality
    with tf.Session() as session:
        assert len(elements(session, some().apply(promise(2)))) == 2
        with pytest.raises(
            tf.errors.FailedPreconditionError,
            match="expected to contain 3 elements but contained only 2 elements",
        ):
            elements(session, some().apply(promise(3)))
        with pytest.raises(
            tf.errors.FailedPreconditionError,
            match="expected to contain 1 element but contained at least 2 elements",
        ):
            elements(session, some().apply(promise(1)))


def summary_of(session, aggregator):
    message = tf.Summary.FromString(session.run(aggregator.get_summary()))
    return {value.tag: value.histo for value in message.value}


def test_latencies_and_bytes_are_recorded(monkeypatch):
    """With an injected clock: each look at it is a millisecond later."""
    ticks = iter(range(1000))
    monkeypatch.setattr(statistics, "clock", lambda: next(ticks) / 1000)
    aggregator = experimental.StatsAggregator()
    options = tf.data.Options()
    options.experimental_stats.aggregator = aggregator
    options.experimental_stats.prefix = "input"
    words = Dataset.from_tensor_slices(["one", "three"]).apply(experimental.latency_stats("took"))
    dataset = words.map(lambda w: (w, tf.zeros([2]))).apply(
        experimental.bytes_produced_stats("bytes")
    )
    assert dataset.with_options(options).options().experimental_stats.prefix == "input"
    iterator = tf.data.make_initializable_iterator(dataset.with_options(options))
    following = iterator.get_next()
    with tf.Session() as session:
        session.run(iterator.initializer)
        assert summary_of(session, aggregator) == {}
        session.run(following)
        session.run(following)
        found = summary_of(session, aggregator)
    assert set(found) == {"input::took", "input::bytes"}
    took, size = found["input::took"], found["input::bytes"]
    assert (took.num, took.min, took.max) == (2, pytest.approx(1000), pytest.approx(1000))
    assert (size.num, size.sum) == (2, 3 + 5 + 2 * 8)


def test_statistics_without_an_aggregator_and_with_two():
    dataset = count(3).apply(experimental.latency_stats("took"))
    with tf.Session() as session:
        assert elements(session, dataset) == [0, 1, 2]
    first, second = experimental.StatsAggregator(), experimental.StatsAggregator()
    dataset = dataset.apply(experimental.set_stats_aggregator(first))
    options = [tf.data.Options(), tf.data.Options()]
    for one, aggregator in zip(options, (first, second), strict=True):
        one.experimental_stats.aggregator = aggregator
    with pytest.raises(ValueError, match="two statistics aggregators"):
        dataset.with_options(options[0]).with_options(options[1])
    with pytest.raises(TypeError, match="Expected a StatsAggregator, not 3"):
        experimental.set_stats_aggregator(3)


@pytest.mark.parametrize("compression", [None, "GZIP"])
def test_elements_are_written_as_records(compression, tmp_path):
    path = str(tmp_path / "a.tfrecord")
    dataset = Dataset.from_tensor_slices(["a", "", "b\0"])
    write = tf.contrib.data.TFRecordWriter(path, compression).write(dataset)
    with tf.Session() as session:
        session.run(write)
        back = elements(session, tf.data.TFRecordDataset(path, compression))
        assert back == [b"a", b"", b"b\0"]
    with pytest.raises(TypeError, match="Elements must be strings"):
        experimental.TFRecordWriter(path).write(count())


def test_databases_of_lmdb(tmp_path):
    lmdb = pytest.importorskip("lmdb")
    paths = [str(tmp_path / name) for name in "ab"]
    for path in paths:
        with lmdb.open(path) as database, database.begin(write=True) as transaction:
            for i in range(3):
                transaction.put(b"%d" % i, path[-1:].encode() * i)
    expected = [(b"%d" % i, name * i) for name in (b"a", b"b") for i in range(3)]
    dataset = tf.contrib.data.LMDBDataset(paths)
    iterator = tf.data.make_initializable_iterator(dataset)
    following = iterator.get_next()
    saver = tf.train.Saver([experimental.make_saveable_from_iterator(iterator)])
    with tf.Session() as session:
        assert elements(session, dataset) == expected
        session.run(iterator.initializer)
        for taken in range(6):
            where = saver.save(session, str(tmp_path / "at"))
            assert session.run(following) == expected[taken]
            saver.restore(session, where)
            assert session.run(following) == expected[taken]
        with pytest.raises(tf.errors.NotFoundError, match="nowhere: there is no such database"):
            elements(session, tf.contrib.data.LMDBDataset("nowhere"))


def test_shapes_of_elements_are_asserted():
    dataset = count(3).map(lambda n: (tf.placeholder_with_default(tf.zeros([n, 2]), None), n))
    fits = dataset.apply(tf.contrib.data.assert_element_shape(([None, 2], [])))
    assert fits.output_shapes[0].as_list() == [None, 2]
    wrong = dataset.apply(tf.contrib.data.assert_element_shape(([1, 2], [])))
    deeper = dataset.apply(tf.contrib.data.assert_element_shape(([None, 2, 2], [])))
    with tf.Session() as session:
        assert len(elements(session, fits)) == 3
        for bad in (wrong, deeper):
            with pytest.raises(tf.errors.InvalidArgumentError, match=r"shape|rank"):
                elements(session, bad)
    with pytest.raises(ValueError, match="Expected shape"):
        count().apply(tf.contrib.data.assert_element_shape([3]))


def test_batches_of_examples_by_their_old_name(tmp_path):
    path = str(tmp_path / "a.tfrecord")
    with tf.python_io.TFRecordWriter(path) as writer:
        for i in range(4):
            feature = tf.train.Feature(int64_list=tf.train.Int64List(value=[i]))
            features = tf.train.Features(feature={"x": feature})
            writer.write(tf.train.Example(features=features).SerializeToString())
    batch = tf.contrib.data.read_batch_features(
        path, 2, {"x": tf.FixedLenFeature([], tf.int64)}, randomize_input=False, num_epochs=1
    )
    with tf.Session() as session:
        assert [session.run(batch)["x"].tolist() for _ in range(2)] == [[0, 1], [2, 3]]


def test_what_describes_elements():
    window = count().window(2).map(lambda w: {"w": w, "s": tf.SparseTensor([[0]], [1.0], [3])})
    spec = window.element_spec
    assert spec["s"] == tf.SparseTensorSpec([3], tf.float32)
    assert spec["w"] == tf.data.DatasetSpec(tf.TensorSpec([], tf.int64))
    assert experimental.get_structure(window) == spec
    ragged = Dataset.from_tensors(tf.ragged.constant([[[1.0]], []]))
    assert ragged.element_spec == tf.RaggedTensorSpec([2, None, None], tf.float32)
    assert ragged.element_spec != tf.RaggedTensorSpec([2, None, None], tf.float32, 1)
    assert count().make_one_shot_iterator().element_spec == tf.TensorSpec([], tf.int64)
    assert experimental.TensorStructure(tf.int32, [2]) == tf.TensorSpec([2], tf.int32)
    assert tf.TensorSpec([None], tf.int64).is_compatible_with(np.arange(3))
    assert not tf.TensorSpec([2], tf.int64).is_compatible_with(tf.TensorSpec([3], tf.int64))
    assert {tf.TensorSpec([2]): 1}[tf.TensorSpec([2])] == 1
    none = experimental.Optional.none_from_structure(tf.TensorSpec([], tf.int64))
    assert none.value_structure == tf.TensorSpec([], tf.int64)
    with pytest.raises(TypeError, match="must be a Dataset or Iterator"):
        experimental.get_structure(3)


def test_a_dataset_through_a_variant():
    variant = experimental.to_variant(count(3))
    assert variant.dtype == tf.variant
    back = experimental.from_variant(variant, experimental.get_structure(count(3)))
    with tf.Session() as session:
        assert elements(session, back) == [0, 1, 2]
    with pytest.raises(TypeError, match="Expected a variant tensor"):
        experimental.from_variant(3, tf.TensorSpec([], tf.int64))
