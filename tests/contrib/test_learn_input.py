"""tf.contrib.learn.io: arrays, generators and files as input."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as tf

io = tf.contrib.learn.io


def _all(tensors):
    """What every step gives, to the end of the input."""
    found = []
    with tf.train.MonitoredSession() as session:
        while not session.should_stop():
            found.append(session.run(tensors))
    return found


def _records(folder, count):
    path = str(folder / "part-0.tfrecord")
    with tf.python_io.TFRecordWriter(path) as writer:
        for i in range(count):
            feature = tf.train.Feature(int64_list=tf.train.Int64List(value=[i]))
            features = tf.train.Features(feature={"x": feature})
            writer.write(tf.train.Example(features=features).SerializeToString())
    return path


def test_arrays_are_shuffled_by_default():
    tf.set_random_seed(1)
    [batch] = _all(io.numpy_input_fn({"x": np.arange(50)})()["x"])
    assert sorted(batch) == list(range(50)) != list(batch)


def test_frames_are_shuffled_by_default():
    pandas = pytest.importorskip("pandas")
    tf.set_random_seed(1)
    frame = pandas.DataFrame({"a": np.arange(50)})
    features, labels = io.pandas_input_fn(frame, frame["a"] * 2)()
    [(batch, doubled)] = _all((features["a"], labels))
    assert sorted(batch) == list(range(50)) != list(batch)
    assert (doubled == 2 * batch).all()


def _pairs():
    for i in range(5):
        yield {"x": np.float32([i, i]), "y": np.int64(i), "z": np.int64(-i)}


def test_a_generator_gives_batches():
    input_fn = io.generator_input_fn(_pairs, ["y", "z"], 2, num_epochs=2, shuffle=False)
    features, labels = input_fn()
    assert list(features) == ["x"]
    found = _all((features["x"], labels))
    assert [len(x) for x, _ in found] == [2, 2, 2, 2, 2]
    assert [int(y) for _, label in found for y in label["y"]] == [*range(5), *range(5)]
    assert found[2][1]["z"].tolist() == [-4, 0]
    assert sorted(io.generator_input_fn(_pairs)()) == ["x", "y", "z"]


@pytest.mark.parametrize(
    ("given", "kind", "told"),
    [
        ((3,), TypeError, "x must be generator function; got int"),
        ((lambda: 3,), TypeError, r"x\(\) must be generator; got int"),
        ((lambda: iter([3]),), TypeError, r"x\(\) must yield dict; got int"),
        ((lambda: iter([]),), ValueError, "must yield at least one example"),
        ((_pairs, "w"), ValueError, r"target_key not in yielded dict: \['w'\]; it has \['x'"),
        ((_pairs, "y", 2, 1, False, 9, 1, 0), ValueError, "pad_value is not part of Headrace"),
    ],
)
def test_what_is_no_generator(given, kind, told):
    with pytest.raises(kind, match=told):
        io.generator_input_fn(*given)()


@pytest.mark.parametrize("at_once", [1, 3])
def test_records_through_queues(tmp_path, at_once):
    path = _records(tmp_path, 7)
    spec = {"x": tf.FixedLenFeature([1], tf.int64)}
    given = {"randomize_input": False, "num_epochs": 1, "queue_capacity": 20}
    keys, features = io.read_keyed_batch_features(
        path, 3, spec, tf.TFRecordReader, read_batch_size=at_once, **given
    )
    found = _all((keys, features["x"]))
    assert [int(x) for _, batch in found for [x] in batch] == list(range(7))
    assert [len(names) for names, _ in found] == [3, 3, 1]
    assert found[0][0][0].startswith(path.encode())


def test_records_in_another_order(tmp_path):
    path = _records(tmp_path, 30)
    spec = {"x": tf.FixedLenFeature([1], tf.int64)}
    features = io.read_batch_record_features(path, 30, spec, num_epochs=1, queue_capacity=100)
    [batch] = _all(features["x"])
    assert sorted(batch[:, 0]) == list(range(30))


def test_examples_are_parsed_before_the_queue(tmp_path):
    path = _records(tmp_path, 30)
    pattern = str(tmp_path / "*.tfrecord")
    lengths = io.read_batch_examples(
        [pattern], 30, tf.TFRecordReader, num_epochs=1, queue_capacity=99, parse_fn=tf.size
    )
    assert _all(lengths)[0].tolist() == [1] * 30
    spec = {"x": tf.FixedLenFeature([1], tf.int64)}
    assert sorted(io.read_batch_features(path, 3, spec, tf.TFRecordReader)) == ["x"]


def test_files_that_are_not_there(tmp_path):
    path = _records(tmp_path, 1)
    for call, told in [
        (lambda: io.read_batch_examples([], 1, tf.TFRecordReader), "No files given"),
        (lambda: io.read_batch_examples("/no/*", 1, tf.TFRecordReader), "No files match /no/"),
        (lambda: io.read_batch_examples(path, 0, tf.TFRecordReader), "Invalid batch_size 0"),
        (
            lambda: io.read_batch_examples(path, 9, tf.TFRecordReader, queue_capacity=9),
            "Invalid queue_capacity 9",
        ),
    ]:
        with pytest.raises(ValueError, match=told):
            call()
