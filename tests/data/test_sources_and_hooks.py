"""Datasets of SQL, iterators for several devices, and the hook that saves inputs."""

from __future__ import annotations

import sqlite3
import types

import numpy as np
import pytest

import headrace as tf

Dataset = tf.data.Dataset
X = tf.data.experimental


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


@pytest.fixture
def people(tmp_path):
    path = str(tmp_path / "people.db")
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE people (name TEXT, age INTEGER, size REAL)")
    rows = [("Ada", 36, 1.5), ("Bo", None, None), (None, -3, 2.0)]
    connection.executemany("INSERT INTO people VALUES (?, ?, ?)", rows)
    connection.commit()
    connection.close()
    return path


def elements(dataset):
    following = tf.data.make_one_shot_iterator(dataset).get_next()
    found = []
    with tf.Session() as session:
        try:
            while True:
                found.append(session.run(following))
        except tf.errors.OutOfRangeError:
            return found


QUERY = "SELECT name, age, size FROM people ORDER BY rowid"
ALL = (tf.string, tf.int32, tf.float64)


def test_rows_of_a_query(people):
    dataset = X.SqlDataset("sqlite", people, QUERY, ALL)
    assert dataset.output_types == ALL
    assert elements(dataset.prefetch(1)) == [(b"Ada", 36, 1.5), (b"Bo", 0, 0.0), (b"", -3, 2.0)]
    assert tf.contrib.data.SqlDataset is X.SqlDataset


@pytest.mark.parametrize(
    ("change", "kind", "what"),
    [
        ({"driver_name": "mysql"}, tf.errors.InvalidArgumentError, "'mysql' is not supported"),
        ({"query": "SELECT nil"}, tf.errors.UnknownError, "no such column: nil"),
        ({"data_source_name": "/nowhere/a.db"}, tf.errors.UnknownError, "unable to open"),
        ({"output_types": (tf.string,)}, tf.errors.InvalidArgumentError, r"\(3\) must match"),
        ({"output_types": (tf.int32,) * 3}, tf.errors.InvalidArgumentError, "'Ada'.*no int32"),
        ({"output_types": (tf.complex64,) * 3}, tf.errors.InvalidArgumentError, "cannot be compl"),
    ],
)
def test_queries_that_fail(people, change, kind, what):
    arguments = dict(driver_name="sqlite", data_source_name=people, query=QUERY, output_types=ALL)
    iterator = tf.data.make_initializable_iterator(X.SqlDataset(**{**arguments, **change}))
    following = iterator.get_next()

    def begin_and_take(session):
        session.run(iterator.initializer)
        session.run(following)

    with tf.Session() as session, pytest.raises(kind, match=what):
        begin_and_take(session)


def test_rows_go_on_where_they_were_saved(people, tmp_path):
    iterator = tf.data.make_initializable_iterator(X.SqlDataset("sqlite", people, QUERY, ALL))
    following = iterator.get_next()
    saver = tf.train.Saver([X.make_saveable_from_iterator(iterator)])
    with tf.Session() as session:
        session.run(iterator.initializer)
        session.run(following)
        path = saver.save(session, str(tmp_path / "at"))
    with tf.Session() as session:
        session.run(iterator.initializer)
        saver.restore(session, path)
        assert session.run(following)[0] == b"Bo"


def test_elements_are_dealt_out_to_devices():
    iterator = X.MultiDeviceIterator(Dataset.range(5), ["/cpu:0", "/cpu:0"])
    assert iterator.output_types == tf.int64
    assert iterator.output_shapes.as_list() == []
    one, two = iterator.get_next()
    with tf.Session() as session:
        for _ in range(2):
            session.run(iterator.initializer)
            assert session.run([one, two]) == [0, 1]
            assert session.run([one, two]) == [2, 3]
            with pytest.raises(tf.errors.OutOfRangeError):
                session.run([one, two])
    with pytest.raises(ValueError, match="at least one device"):
        X.MultiDeviceIterator(Dataset.range(5), [])


def test_the_hook_goes_on_with_the_input(tmp_path):
    config = types.SimpleNamespace(save_checkpoints_secs=None, save_checkpoints_steps=2)
    estimator = types.SimpleNamespace(model_dir=str(tmp_path), config=config)

    def train(steps):
        with tf.Graph().as_default():
            dataset = Dataset.range(50).shuffle(10, seed=4)
            iterator = tf.data.make_initializable_iterator(dataset)
            tf.add_to_collection(tf.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
            element = iterator.get_next()
            step = tf.train.get_or_create_global_step()
            both = [element, step.assign_add(1)]
            hook = X.CheckpointInputPipelineHook(estimator)
            with tf.train.MonitoredTrainingSession(
                checkpoint_dir=str(tmp_path),
                save_checkpoint_steps=2,
                save_summaries_steps=None,
                save_summaries_secs=None,
                log_step_count_steps=None,
                hooks=[hook],
            ) as session:
                return [int(session.run(both)[0]) for _ in range(steps)]

    first, second = train(5), train(5)
    with tf.Graph().as_default():
        expected = [int(e) for e in elements(Dataset.range(50).shuffle(10, seed=4).take(10))]
    assert first + second == expected
    assert tf.train.latest_checkpoint(str(tmp_path)).endswith("model.ckpt-10")
    with tf.Graph().as_default(), pytest.raises(ValueError, match="no iterator to save"):
        X.CheckpointInputPipelineHook(estimator).begin()


def test_methods_of_later_1x():
    rows = Dataset.from_tensor_slices(np.arange(6).reshape(3, 2))
    assert [(int(i), e.tolist()) for i, e in elements(rows.enumerate(7))] == [
        (7, [0, 1]),
        (8, [2, 3]),
        (9, [4, 5]),
    ]
    assert [int(e) for e in elements(rows.unbatch())] == list(range(6))


def test_batches_of_examples_are_parsed():
    message = tf.train.Example(
        features=tf.train.Features(
            feature={"a": tf.train.Feature(int64_list=tf.train.Int64List(value=[4]))}
        )
    ).SerializeToString()
    parse = X.parse_example_dataset({"a": tf.FixedLenFeature([], tf.int64)})
    (found,) = elements(Dataset.from_tensor_slices([message] * 2).batch(2).apply(parse))
    assert found["a"].tolist() == [4, 4]
    with pytest.raises(TypeError, match="vectors of strings"):
        Dataset.range(3).apply(parse)
