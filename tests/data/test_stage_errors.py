"""Errors in datasets tell the element's index, the stage, and the user's line that made it."""

from __future__ import annotations

import linecache
import pickle
import re

import numpy as np
import pytest

import headrace as tf

Dataset = tf.data.Dataset
X = tf.data.experimental
FEATURES = {"a": tf.FixedLenFeature([], tf.int64, 0)}


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


def _example(**values):
    features = {
        name: tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))
        for name, value in values.items()
    }
    return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()


def _failing():
    yield 1
    yield 2
    raise KeyError("gone")


def _records(tmp_path, damage):
    path = str(tmp_path / "records")
    with tf.python_io.TFRecordWriter(path) as writer:
        for i in range(4):
            writer.write(b"record %d" % i)
    content = bytearray((tmp_path / "records").read_bytes())
    content[damage] ^= 1
    (tmp_path / "records").write_bytes(bytes(content))
    return tf.data.TFRecordDataset(path)


def _csv(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("1\n2\nx\n")
    return X.CsvDataset(str(path), [0])


CASES = {
    "map": (
        lambda _: Dataset.from_tensor_slices([1, 1, 0]).map(lambda x: tf.floordiv(4, x)),
        tf.errors.InvalidArgumentError,
        (2, "MapDataset"),
    ),
    "parallel map": (
        lambda _: Dataset.from_tensor_slices([1, 0, 0]).map(lambda x: tf.floordiv(4, x), 2),
        tf.errors.InvalidArgumentError,
        (1, "ParallelMapDataset"),
    ),
    "filter": (
        lambda _: Dataset.from_tensor_slices([1, 0]).filter(lambda x: tf.floordiv(4, x) > 0),
        tf.errors.InvalidArgumentError,
        (1, "FilterDataset"),
    ),
    "take_while": (
        lambda _: Dataset.from_tensor_slices([1, 0]).apply(
            X.take_while(lambda x: tf.floordiv(4, x) > 0)
        ),
        tf.errors.InvalidArgumentError,
        (1, "TakeWhileDataset"),
    ),
    "scan": (
        lambda _: Dataset.from_tensor_slices([1, 1, 0]).apply(
            X.scan(0, lambda s, x: (s + x, tf.floordiv(4, x)))
        ),
        tf.errors.InvalidArgumentError,
        (2, "ScanDataset"),
    ),
    "generator": (
        lambda _: Dataset.from_generator(_failing, tf.int64),
        tf.errors.UnknownError,
        (2, "PythonGeneratorDataset"),
    ),
    "a generator's type": (
        lambda _: Dataset.from_generator(lambda: iter([1, "x"]), tf.int64),
        tf.errors.InvalidArgumentError,
        (1, "PythonGeneratorDataset"),
    ),
    "parse": (
        lambda _: Dataset.from_tensor_slices([_example(a=1), b"zz"]).map(
            lambda x: tf.parse_single_example(x, FEATURES)
        ),
        tf.errors.InvalidArgumentError,
        (1, "MapDataset"),
    ),
    "parse batches": (
        lambda _: Dataset.from_tensor_slices([_example(a=1)] * 3 + [b"zz"])
        .batch(2)
        .map(lambda x: tf.parse_example(x, FEATURES)),
        tf.errors.InvalidArgumentError,
        (1, "MapDataset"),
    ),
    "batch": (
        lambda _: Dataset.from_tensor_slices([1, 1, 2, 3])
        .map(lambda x: tf.zeros([x]))
        .batch(2),
        tf.errors.InvalidArgumentError,
        (1, "BatchDatasetV2"),
    ),
    "padded batch": (
        lambda _: Dataset.from_tensor_slices([1, 1, 2, 3])
        .map(lambda x: tf.zeros([x]))
        .padded_batch(2, [2]),
        tf.errors.InvalidArgumentError,
        (1, "PaddedBatchDatasetV2"),
    ),
    "damaged records": (
        lambda folder: _records(folder, 24 + 12 + 2),
        tf.errors.DataLossError,
        (1, "TFRecordDataset"),
    ),
    "csv": (_csv, tf.errors.InvalidArgumentError, (2, "CSVDataset")),
    "group_by_window": (
        lambda _: Dataset.from_tensor_slices(np.array([1, 0])).apply(
            X.group_by_window(lambda x: tf.floordiv(4, x), lambda k, w: w, 1)
        ),
        tf.errors.InvalidArgumentError,
        (1, "GroupByWindowDataset"),
    ),
    "flat_map": (
        lambda _: Dataset.from_tensor_slices(["1", "x"]).flat_map(
            lambda x: Dataset.from_tensors(tf.string_to_number(x))
        ),
        tf.errors.InvalidArgumentError,
        (1, "FlatMapDataset"),
    ),
}  # fmt: skip


#: What the line that makes a stage holds.
MADE_BY = {
    "MapDataset": ".map(",
    "ParallelMapDataset": ".map(",
    "FilterDataset": ".filter(",
    "TakeWhileDataset": ".apply(",
    "ScanDataset": ".apply(",
    "GroupByWindowDataset": ".apply(",
    "PythonGeneratorDataset": ".from_generator(",
    "BatchDatasetV2": ".batch(2)",
    "PaddedBatchDatasetV2": ".padded_batch(2",
    "TFRecordDataset": "TFRecordDataset(",
    "CSVDataset": "CsvDataset(",
    "FlatMapDataset": ".flat_map(",
}


def _run_on(session, following):
    while True:
        session.run(following)


def _error(dataset, kind):
    following = tf.data.make_one_shot_iterator(dataset).get_next()
    with tf.Session() as session, pytest.raises(kind) as caught:
        _run_on(session, following)
    return caught.value


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("ahead", [False, True])
def test_an_error_tells_element_stage_and_line(name, ahead, tmp_path):
    make, kind, (index, stage) = CASES[name]
    dataset = make(tmp_path)
    error = _error(dataset.prefetch(2) if ahead else dataset, kind)
    found = re.findall(
        r"At element (\d+) of dataset stage '\S+' \(type (\w+)\), made by: "
        r'File "(.+)", line (\d+), in ',
        str(error),
    )
    assert [(int(i), kind) for i, kind, _, _ in found] == [(index, stage)]
    _, _, filename, line = found[0]
    assert filename == __file__
    assert MADE_BY[stage] in linecache.getline(filename, int(line))
    assert str(pickle.loads(pickle.dumps(error))).endswith("".join(error.stages))


def test_an_error_inside_of_nested_stages_tells_each():
    def rows(x):
        return Dataset.range(3).map(lambda y: tf.floordiv(y, x - y))

    def datasets(x):
        return rows(x).prefetch(1)

    error = _error(
        Dataset.from_tensor_slices(np.array([5, 1])).flat_map(datasets).batch(2), tf.OpError
    )
    assert re.findall(r"At element (\d+) .*\(type (\w+)\)", str(error)) == [("1", "MapDataset")]


def test_the_index_goes_on_where_an_iterator_is_restored():
    dataset = Dataset.from_tensor_slices([1, 1, 1, 0]).map(lambda x: tf.floordiv(4, x))
    iterator = tf.data.make_initializable_iterator(dataset)
    following = iterator.get_next()
    state = tf.raw_ops.IteratorState(iterator._iterator_resource)
    given = tf.placeholder(tf.string, [])
    restore = tf.raw_ops.RestoreIteratorState(iterator._iterator_resource, given)
    with tf.Session() as session:
        session.run(iterator.initializer)
        session.run(following)
        session.run(following)
        saved = session.run(state)
    with tf.Session() as session:
        session.run(iterator.initializer)
        session.run(restore, {given: saved})
        session.run(following)
        with pytest.raises(tf.errors.InvalidArgumentError, match="At element 3 of dataset stage"):
            session.run(following)


@pytest.mark.parametrize("values", [[3, 1, 3, 1, 2], ["a", "b", "a", "c"]])
def test_unique_elements_stay_unique_when_restored(values):
    iterator = tf.data.make_initializable_iterator(
        Dataset.from_tensor_slices(values).apply(X.unique())
    )
    following = iterator.get_next()
    state = tf.raw_ops.IteratorState(iterator._iterator_resource)
    given = tf.placeholder(tf.string, [])
    restore = tf.raw_ops.RestoreIteratorState(iterator._iterator_resource, given)
    with tf.Session() as session:
        session.run(iterator.initializer)
        session.run([following])
        session.run([following])
        saved = session.run(state)
        last = session.run(following)
    with tf.Session() as session:
        session.run(iterator.initializer)
        session.run(restore, {given: saved})
        assert session.run(following) == last
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(following)


def test_a_shape_that_was_promised_names_the_stage_that_did(tmp_path):
    """Not the iterator, nor the stages behind that repeat it."""

    def wrong(x):
        made = tf.py_func(lambda v: np.zeros(3 + (v == 1)), [x], tf.float64)
        made.set_shape([3])
        return made

    dataset = Dataset.range(3).map(wrong).shuffle(1, seed=1).prefetch(1)
    following = tf.data.make_one_shot_iterator(dataset).get_next()
    with tf.Session() as session:
        session.run(following)
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            session.run(following)
        assert session.run(following).shape == (3,)
    text = str(caught.value)
    assert "has shape [4], which does not fit the declared shape (3,)." in text
    assert "At element 1 (in the order of the iterator) of dataset stage 'MapDataset'" in text
    assert "dataset = Dataset.range(3).map(wrong)" in text


@pytest.mark.parametrize("name", ["CsvDataset", "TFRecordDataset", "TextLineDataset", "read_file"])
def test_a_missing_file_names_path_stage_and_line(name, tmp_path):
    path = str(tmp_path / "nowhere")
    dataset = {
        "CsvDataset": lambda: X.CsvDataset(path, [0]).prefetch(1),
        "TFRecordDataset": lambda: tf.data.TFRecordDataset(path).shuffle(2),
        "TextLineDataset": lambda: tf.data.TextLineDataset([path], num_parallel_reads=2),
        "read_file": lambda: Dataset.from_tensor_slices([path]).map(tf.read_file, 2),
    }[name]()
    following = tf.data.make_one_shot_iterator(dataset).get_next()
    with tf.Session() as session, pytest.raises(tf.errors.NotFoundError) as caught:
        session.run(following)
    text = str(caught.value)
    assert path in text
    assert re.search("At element 0 of dataset stage .*made by: File .*test_stage_errors.py", text)


@pytest.mark.parametrize("kind", ["one shot", "initializable"])
@pytest.mark.parametrize("runs", [1, 3])
def test_what_cannot_take_an_element_names_the_dataset_and_its_line(kind, runs):
    """An element of a shape that the model does not take: only the step finds that."""

    def rows():
        for i in range(4):
            yield [1.0] * (2 + (i == runs - 1))

    if kind == "one shot":  # generators are no part of these
        sizes = Dataset.from_tensor_slices([2] * (runs - 1) + [3])
        dataset = sizes.map(lambda n: tf.fill([n], 1.0)).batch(1)
    else:
        dataset = Dataset.from_generator(rows, tf.float32, [None]).batch(1)
    iterator = (
        dataset.make_one_shot_iterator()
        if kind == "one shot"
        else dataset.make_initializable_iterator()
    )
    product = tf.reshape(iterator.get_next(), [1, 2]) @ tf.ones([2, 1])
    with tf.Session() as session:
        if kind == "initializable":
            session.run(iterator.initializer)
        for _ in range(runs - 1):
            session.run(product)
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            session.run(product)
    text = str(caught.value)
    assert "Cannot reshape a tensor with 3 elements" in text
    stage = "gives elements of dataset stage 'BatchDatasetV2' (type BatchDatasetV2), made by: File"
    assert f"IteratorGetNext {stage}" in text
    assert "test_stage_errors.py" in text.split(stage)[1].split("\n")[0]
