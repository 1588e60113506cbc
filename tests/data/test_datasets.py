"""Datasets and iterators: errors, structures, files, what a session keeps."""

from __future__ import annotations

import contextlib
import threading

import numpy as np
import pytest

import headrace as tf

Dataset = tf.data.Dataset
X = tf.data.experimental
REDUCER = X.Reducer(lambda key: 0, lambda state, x: state, lambda state: state)


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


def elements(dataset, most=100):
    following = tf.data.make_one_shot_iterator(dataset).get_next()
    found = []
    with tf.Session() as session:
        try:
            for _ in range(most):
                found.append(session.run(following))
        except tf.errors.OutOfRangeError:
            pass
    return found


def test_an_iterator_must_be_initialised():
    following = tf.data.make_initializable_iterator(Dataset.range(3)).get_next()
    with (
        tf.Session() as session,
        pytest.raises(tf.errors.FailedPreconditionError, match="has not been initialized"),
    ):
        session.run(following)


def test_the_end_stays_the_end():
    following = tf.data.make_one_shot_iterator(Dataset.range(1)).get_next()
    with tf.Session() as session:
        session.run(following)
        for _ in range(3):
            with pytest.raises(tf.errors.OutOfRangeError, match="End of sequence"):
                session.run(following)


def test_sessions_have_iterations_of_their_own():
    following = tf.data.make_one_shot_iterator(Dataset.range(3)).get_next()
    with tf.Session() as one, tf.Session() as two:
        assert [one.run(following), one.run(following), two.run(following)] == [0, 1, 0]


def test_a_step_takes_one_element():
    following = tf.data.make_one_shot_iterator(Dataset.range(5)).get_next()
    with tf.Session() as session:
        assert session.run([following, following + 1, following * 2]) == [0, 1, 0]
        assert session.run(following) == 1


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda: tf.placeholder(tf.int64, []), "Cannot capture a placeholder"),
        (lambda: tf.Variable(np.int64(3)).read_value(), "make_initializable_iterator"),
        (lambda: tf.random_uniform([], 0, 9, tf.int64), "make_initializable_iterator"),
    ],
)
def test_one_shot_iterators_depend_on_nothing(make, what):
    with pytest.raises(ValueError, match=what):
        tf.data.make_one_shot_iterator(Dataset.range(make()))


def test_a_variable_in_a_function_is_read_when_the_iterator_begins():
    offset = tf.Variable(np.int64(10))
    iterator = tf.data.make_initializable_iterator(Dataset.range(3).map(lambda x: x + offset))
    following = iterator.get_next()
    with tf.Session() as session:
        session.run([offset.initializer, iterator.initializer])
        assert session.run(following) == 10
        session.run(offset.assign(np.int64(20)))
        assert session.run(following) == 11
        session.run(iterator.initializer)
        assert session.run(following) == 20


def test_a_table_in_a_function():
    table = tf.contrib.lookup.index_table_from_tensor(["a", "b", "c"])
    dataset = Dataset.from_tensor_slices(["c", "a", "z"]).map(table.lookup)
    iterator = tf.data.make_initializable_iterator(dataset)
    following = iterator.get_next()
    with tf.Session() as session:
        session.run(tf.tables_initializer())  # it initialises iterators, too
        assert [session.run(following) for _ in range(3)] == [2, 0, -1]


def test_a_function_that_fails_is_named_and_the_next_element_comes():
    dataset = Dataset.from_tensor_slices([1, 0, 2]).map(lambda x: tf.floordiv(4, x))
    following = tf.data.make_one_shot_iterator(dataset).get_next()
    with tf.Session() as session:
        assert session.run(following) == 4
        with pytest.raises(tf.errors.InvalidArgumentError, match="zero") as caught:
            session.run(following)
        assert "test_datasets.py" in str(caught.value)
        assert session.run(following) == 2


def test_elements_cannot_be_changed_by_who_gets_them():
    rows = np.arange(6.0).reshape(3, 2)
    following = tf.data.make_one_shot_iterator(Dataset.from_tensor_slices(rows).repeat()).get_next()
    with tf.Session() as session:
        first = session.run(following)
        with contextlib.suppress(ValueError):  # it may be read-only
            first[:] = 9
        session.run(following)
        session.run(following)
        assert session.run(following).tolist() == [0, 1]


@pytest.mark.parametrize(
    ("make", "kind", "what"),
    [
        (lambda d: d.batch(0), tf.errors.InvalidArgumentError, "batch_size must be greater"),
        (lambda d: d.shuffle(0), tf.errors.InvalidArgumentError, "buffer_size must be greater"),
        (lambda d: d.window(0), tf.errors.InvalidArgumentError, "size must be greater"),
        (lambda d: d.map(lambda x: tf.fill([x], x)).batch(2), tf.errors.InvalidArgumentError,
         r"different shapes in component 0.*\[0\].*\[1\].*padded_batch"),
        (lambda d: d.map(lambda x: tf.fill([x], x)).padded_batch(9, [2]),
         tf.errors.InvalidArgumentError, "smaller size than the input element"),
        (lambda d: tf.data.TextLineDataset("/nowhere/at/all"), tf.errors.NotFoundError, "nowhere"),
        (lambda d: Dataset.list_files("/nowhere/*"), tf.errors.InvalidArgumentError,
         "No files matched pattern: /nowhere"),
        (lambda d: d.interleave(lambda x: d, cycle_length=0), tf.errors.InvalidArgumentError,
         "cycle_length must be greater"),
        (lambda d: d.map(lambda x: x, num_parallel_calls=0), tf.errors.InvalidArgumentError,
         "num_parallel_calls must be greater"),
    ],
)  # fmt: skip
def test_errors_of_a_session(make, kind, what):
    iterator = tf.data.make_initializable_iterator(make(Dataset.range(5)))
    following = iterator.get_next()

    def begin_and_take(session):
        session.run(iterator.initializer)
        session.run(following)

    with tf.Session() as session, pytest.raises(kind, match=what):
        begin_and_take(session)


@pytest.mark.parametrize(
    ("make", "kind", "what"),
    [
        (lambda d: d.map(lambda x: None), TypeError, "Dataset.map returned None"),
        (lambda d: d.flat_map(lambda x: x), TypeError, "must return a Dataset"),
        (lambda d: d.filter(lambda x: x), ValueError, "scalar boolean"),
        (lambda d: d.apply(lambda d: 3), TypeError, "must return a Dataset"),
        (lambda d: d.shard(2, 2), ValueError, "index must be <= num_shards - 1"),
        (lambda d: d.concatenate(d.map(tf.as_string)), TypeError, "different types"),
        (lambda d: Dataset.zip([d, d]), TypeError, "nested structure"),
        (lambda d: Dataset.from_tensor_slices(3), ValueError, "scalar has no first axis"),
        (lambda d: Dataset.from_tensor_slices(([1, 2], [1])), ValueError, r"differ: \[2, 1\]"),
        (lambda d: Dataset.from_generator(3, tf.int32), TypeError, "must be callable"),
        (lambda d: list(d), RuntimeError, "make_one_shot_iterator"),
        (lambda d: d.apply(X.take_while(lambda x: x)), ValueError, "scalar boolean"),
        (lambda d: d.apply(X.group_by_reducer(lambda x: x, 3)), TypeError, "must be a Reducer"),
        (lambda d: d.apply(X.group_by_reducer(lambda x: 1.5, REDUCER)), ValueError, "tf.int64"),
        (lambda d: Dataset.zip((d, d)).apply(X.unique()), TypeError, "single tensors"),
        (lambda d: Dataset.zip((d, d)).apply(X.dense_to_sparse_batch(2, [1])), TypeError, "single"),
        (lambda d: tf.data.get_output_types(3), TypeError, "Dataset or Iterator, not 3"),
        (lambda d: X.make_saveable_from_iterator(d), TypeError, "Expected a tf.data.Iterator"),
        (lambda d: tf.data.make_one_shot_iterator(3), TypeError, "Expected a tf.data.Dataset"),
        (lambda d: d.reduce(0.0, lambda s, x: (s, x)), ValueError, "."),
    ],
)
def test_errors_of_a_program(make, kind, what):
    with pytest.raises(kind, match=what):
        make(Dataset.range(5))


def test_what_generators_may_give():
    def of(values, types, shapes=None):
        return elements(Dataset.from_generator(lambda: iter(values), types, shapes))

    assert of([1, 2], tf.int32) == [1, 2]
    assert of([{"a": 1, "b": "x"}], {"a": tf.int64, "b": tf.string}) == [{"a": 1, "b": b"x"}]
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"element 1 has 'x'.*component 0"):
        of([1, "x"], tf.int32)
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"shape \[2\].*shape \(3,\).*element 0"
    ):
        of([[1, 2]], tf.int32, tf.TensorShape([3]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="another structure"):
        of([(1, 2, 3)], (tf.int32, tf.int32))

    def failing():
        yield 1
        raise KeyError("gone")

    with pytest.raises(tf.errors.UnknownError, match="failed at element 1: KeyError: 'gone'"):
        elements(Dataset.from_generator(failing, tf.int32))


def test_a_generator_is_closed_with_its_session():
    closed = []

    def numbers():
        try:
            while True:
                yield 1
        finally:
            closed.append(True)

    dataset = Dataset.from_generator(numbers, tf.int32)
    following = tf.data.make_one_shot_iterator(dataset).get_next()
    with tf.Session() as session:
        session.run(following)
        assert not closed
    assert closed == [True]


def test_a_cache_computes_once(tmp_path):
    calls = []
    dataset = Dataset.range(3).map(
        lambda x: tf.py_func(lambda v: calls.append(v) or v, [x], tf.int64)
    )
    for place in ("", str(tmp_path / "kept")):
        calls.clear()
        cached = dataset.cache(place).repeat(3)
        iterator = tf.data.make_initializable_iterator(cached)
        following = iterator.get_next()
        with tf.Session() as session:
            session.run(iterator.initializer)
            assert [int(session.run(following)) for _ in range(9)] == [0, 1, 2] * 3
        assert len(calls) == 3
    with tf.Session() as session:  # another program finds the file
        session.run(iterator.initializer)
        assert [int(session.run(following)) for _ in range(3)] == [0, 1, 2]
    assert len(calls) == 3


def test_sparse_elements():
    sparse = tf.SparseTensor([[0, 1], [2, 0]], [5, 6], [3, 4])
    dataset = Dataset.from_tensors({"s": sparse, "d": 1}).repeat(2).batch(2)
    assert dataset.output_classes == {"s": tf.SparseTensor, "d": tf.Tensor}
    (found,) = elements(dataset)
    assert found["s"].dense_shape.tolist() == [2, 3, 4]
    assert found["s"].values.tolist() == [5, 6, 5, 6]
    assert found["d"].tolist() == [1, 1]


def test_static_shapes():
    dataset = Dataset.from_tensor_slices({"x": np.zeros((6, 2)), "y": np.zeros(6, np.int32)})
    assert dataset.batch(4).output_shapes["x"].as_list() == [None, 2]
    assert dataset.batch(4, drop_remainder=True).output_shapes["x"].as_list() == [4, 2]
    assert dataset.padded_batch(2, {"x": [5], "y": []}).output_shapes["x"].as_list() == [None, 5]
    assert dataset.output_types == {"x": tf.float64, "y": tf.int32}
    following = tf.data.make_one_shot_iterator(dataset.batch(3, True)).get_next()
    assert following["x"].shape.as_list() == [3, 2]


def test_names_of_contrib():
    data = tf.contrib.data
    assert [
        e.tolist() for e in elements(Dataset.range(5).apply(data.batch_and_drop_remainder(2)))
    ] == [
        [0, 1],
        [2, 3],
    ]
    slid = Dataset.range(4).apply(data.sliding_window_batch(3, window_shift=1))
    assert [e.tolist() for e in elements(slid)] == [[0, 1, 2], [1, 2, 3]]
    reducer = data.Reducer(lambda _: np.int64(0), lambda s, x: s + x, lambda s: s * 2)
    with tf.Session() as session:
        assert session.run(data.reduce_dataset(Dataset.range(4), reducer)) == 12


def test_resampling():
    labels = np.array([0] * 90 + [1] * 10)
    dataset = (
        Dataset.from_tensor_slices(labels)
        .repeat()
        .apply(tf.data.experimental.rejection_resample(lambda x: x, [0.5, 0.5], [0.9, 0.1], seed=1))
    )
    iterator = tf.data.make_initializable_iterator(dataset.batch(400))
    with tf.Session() as session:
        session.run(iterator.initializer)
        classes, values = session.run(iterator.get_next())
    assert classes.tolist() == values.tolist()
    assert 0.4 < classes.mean() < 0.6


def test_a_deadline_ends_a_wait_for_an_element():
    release = threading.Event()

    def waiting():
        release.wait()
        yield 1

    dataset = Dataset.from_generator(waiting, tf.int32).prefetch(1)
    following = tf.data.make_one_shot_iterator(dataset).get_next()
    with tf.Session() as session:
        with pytest.raises(tf.errors.DeadlineExceededError):
            session.run(following, options=tf.RunOptions(timeout_in_ms=50))
        release.set()
        assert session.run(following) == 1


def test_graph_files_hold_pipelines():
    dataset = Dataset.range(6).map(lambda x: x * 3).shuffle(4, seed=2).batch(2).prefetch(1)
    tf.identity(tf.data.make_one_shot_iterator(dataset).get_next(), name="batch")
    message = tf.get_default_graph().as_graph_def()
    expected = [e.tolist() for e in elements(dataset)]
    with tf.Graph().as_default(), tf.Session() as session:
        tf.import_graph_def(message, name="")
        assert [session.run("batch:0").tolist() for _ in range(3)] == expected


def test_a_generator_is_no_part_of_a_graph_file():
    options = {"output_types": [tf.int32], "output_shapes": [tf.TensorShape([])]}
    variant = tf.raw_ops.PythonGeneratorDataset([], token="of another process", **options)
    following = tf.raw_ops.DatasetToSingleElement(variant, **options)
    with (
        tf.Session() as session,
        pytest.raises(tf.errors.UnimplementedError, match="Build the graph again with Dataset"),
    ):
        session.run(following)


def test_records_of_csv_files_that_do_not_fit(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a,b\n1,2\n3\n")
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"Expect 2 fields but have 1 in record 1 of .*a\.csv"
    ):
        elements(tf.data.experimental.CsvDataset(str(path), [0, 0], header=True))
    path.write_text("a\n1\nx\n")
    with pytest.raises(tf.errors.InvalidArgumentError, match="not a valid int32: x"):
        elements(tf.data.experimental.CsvDataset(str(path), [0], header=True))
    with pytest.raises(tf.errors.InvalidArgumentError, match="strictly increasing"):
        elements(tf.data.experimental.CsvDataset(str(path), [0, 0], select_cols=[1, 0]))


@pytest.mark.parametrize(
    ("options", "kind", "what"),
    [
        ({"label_name": "c"}, ValueError, r"one of the columns \['a', 'b'\], not 'c'"),
        ({"select_columns": ["b", "a"]}, ValueError, "in order"),
        ({"select_columns": ["z"]}, ValueError, "no column 'z'"),
        ({"select_columns": [5]}, ValueError, "outside of the 2 columns"),
        ({"header": False}, ValueError, "Cannot infer column names"),
        ({"column_names": ["a", "a"]}, ValueError, "duplicate"),
        ({"file_pattern": "/nowhere/*.csv"}, ValueError, "No files match"),
    ],
)
def test_what_make_csv_dataset_refuses(tmp_path, options, kind, what):
    path = tmp_path / "a.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(kind, match=what):
        tf.data.experimental.make_csv_dataset(
            **{"file_pattern": str(path), "batch_size": 2, **options}
        )


def test_guessed_types(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("i,l,f,d,s,none\n1,2,3,4,5,\n-7,5000000000,.5,1e300,x,\n")
    dataset = tf.data.experimental.make_csv_dataset(str(path), 2, num_epochs=1, shuffle=False)
    types = [dataset.output_types[name].name for name in ("i", "l", "f", "d", "s", "none")]
    assert types == ["int32", "int64", "float32", "float64", "string", "string"]
    assert dataset.output_shapes["i"].as_list() == [None]
