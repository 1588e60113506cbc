"""Dataset family: the elements, and their order, of pipelines; seeds where there are any."""

from __future__ import annotations

import pathlib
import tempfile
from typing import Any

import numpy as np

from . import golden


def elements(tf: Any, session: Any, name: str, dataset: Any, most: int = 60) -> dict[str, Any]:
    """``name/i/component`` for each element; dicts by key, tuples by position."""
    iterator = tf.data.make_initializable_iterator(dataset)
    following = iterator.get_next()
    session.run(iterator.initializer)
    found: dict[str, Any] = {}

    def put(key: str, value: Any) -> None:
        if isinstance(value, dict):
            for part in value:
                put(f"{key}/{part}", value[part])
        elif isinstance(value, tuple):  # a sparse one, too
            for i, part in enumerate(value):
                put(f"{key}/{i}", part)
        else:
            found[key] = np.asarray(value)

    for i in range(most):
        try:
            put(f"{name}/{i:02d}", session.run(following))
        except tf.errors.OutOfRangeError:
            put(f"{name}/count", i)
            break
    return found


def several(tf: Any, session: Any, **datasets: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, dataset in datasets.items():
        found.update(elements(tf, session, name, dataset))
    return found


@golden(with_session=True)
def sources(tf: Any, session: Any) -> dict[str, Any]:
    D = tf.data.Dataset
    sparse = tf.SparseTensor([[0, 1], [0, 3], [2, 0]], ["a", "b", "c"], [4, 5])
    rows = {"x": np.arange(6.0).reshape(3, 2), "y": [b"p", b"q", b"r"]}
    return several(
        tf,
        session,
        tensors=D.from_tensors((1, {"b": 2.5, "a": [3, 4]})),
        slices=D.from_tensor_slices(rows),
        nested=D.from_tensor_slices(((rows["x"], [1, 2, 3]), [True, False, True])),
        none=D.from_tensor_slices(np.zeros((0, 3))),
        sparse=D.from_sparse_tensor_slices(sparse),
        to=D.range(4),
        between=D.range(3, -5, -3),
        empty=D.range(5, 5),
        generator=D.from_generator(
            lambda n: ((i, "x" * i) for i in range(n)), (tf.int64, tf.string), args=(3,)
        ),
        zipped=D.zip({"a": D.range(3), "b": (D.range(5, 9), D.range(2, 9))}),
    )


@golden(with_session=True)
def shuffles(tf: Any, session: Any) -> dict[str, Any]:
    numbers = tf.data.Dataset.range(12)
    from_graph = tf.data.Dataset.range(20)
    found = several(
        tf,
        session,
        small=numbers.shuffle(4, seed=3),
        large=numbers.shuffle(100, seed=3),
        one=numbers.shuffle(1, seed=9),
        repeated=numbers.shuffle(5, seed=7).repeat(3),
        same_again=numbers.shuffle(5, seed=7, reshuffle_each_iteration=False).repeat(3),
        before=numbers.repeat(2).shuffle(20, seed=11),
        twice=numbers.shuffle(6, seed=1).shuffle(6, seed=2),
        both=numbers.apply(tf.data.experimental.shuffle_and_repeat(5, 3, seed=4)),
        rows=tf.data.Dataset.from_tensor_slices(np.arange(10)).shuffle(4, seed=3).batch(3),
        tensor_seed=numbers.shuffle(6, seed=tf.constant(5, tf.int64)),
    )
    tf.set_random_seed(42)
    found.update(several(tf, session, graph_seed=from_graph.shuffle(8), more=from_graph.shuffle(8)))
    return found


@golden(with_session=True)
def begun_again(tf: Any, session: Any) -> dict[str, Any]:
    """What an iterator gives whose initializer runs again."""
    dataset = tf.data.Dataset.range(8).shuffle(8, seed=5)
    fixed = tf.data.Dataset.range(8).shuffle(8, seed=5, reshuffle_each_iteration=False)
    found = {}
    for name, source in (("again", dataset), ("fixed", fixed)):
        iterator = tf.data.make_initializable_iterator(source.batch(8))
        following = iterator.get_next()
        for i in range(3):
            session.run(iterator.initializer)
            found[f"{name}/{i}"] = session.run(following)
    return found


@golden(with_session=True)
def choosing(tf: Any, session: Any) -> dict[str, Any]:
    numbers = tf.data.Dataset.range(10)
    experimental = tf.data.experimental
    evens = tf.data.Dataset.range(0, 20, 2)
    thirds = tf.data.Dataset.range(0, 6, 3)
    return several(
        tf,
        session,
        take=numbers.take(3),
        take_all=numbers.take(-1),
        take_none=numbers.take(0),
        skip=numbers.skip(7),
        skip_all=numbers.skip(-1),
        skip_much=numbers.skip(100),
        shard=numbers.shard(3, 1),
        repeat=thirds.repeat(3),
        repeat_none=thirds.repeat(0),
        filter=numbers.filter(lambda x: tf.equal(x % 3, 1)),
        take_while=numbers.apply(experimental.take_while(lambda x: x < 4)),
        concatenate=thirds.concatenate(evens),
        choose=experimental.choose_from_datasets(
            [evens, thirds], tf.data.Dataset.from_tensor_slices(np.int64([0, 1, 1, 1, 0, 0]))
        ),
        enumerate=thirds.apply(experimental.enumerate_dataset(5)),
        unique=tf.data.Dataset.from_tensor_slices([3, 1, 3, 2, 1]).apply(experimental.unique()),
        counter=experimental.Counter(2, 3).take(3),
        ignore=tf.data.Dataset.from_tensor_slices([1.0, 0.0, 4.0])
        .map(lambda x: tf.check_numerics(1.0 / x, "inf"))
        .apply(experimental.ignore_errors()),
    )


@golden(with_session=True)
def functions(tf: Any, session: Any) -> dict[str, Any]:
    D, experimental = tf.data.Dataset, tf.data.experimental
    numbers = D.range(6)
    pairs = D.zip((numbers, numbers.map(lambda x: x * x)))
    captured = tf.constant(10, tf.int64)
    return several(
        tf,
        session,
        map=numbers.map(lambda x: x + captured),
        tuples=pairs.map(lambda a, b: {"sum": a + b, "both": tf.stack([a, b])}),
        lists=numbers.map(lambda x: [x, x + 1]),
        parallel=numbers.map(lambda x: x * 2, num_parallel_calls=3),
        flat=numbers.flat_map(lambda x: D.range(x)),
        tensors=numbers.flat_map(lambda x: D.from_tensors(x).repeat(2)),
        interleave=D.range(1, 6).interleave(
            lambda x: D.from_tensors(x).repeat(6), cycle_length=2, block_length=4
        ),
        uneven=D.range(1, 6).interleave(
            lambda x: D.from_tensors(x).repeat(x), cycle_length=3, block_length=2
        ),
        scan=numbers.apply(experimental.scan(np.int64(0), lambda s, x: (s + x, s * x))),
        group=numbers.apply(
            experimental.group_by_window(lambda x: x % 2, lambda key, d: d.batch(2), 2)
        ),
        group_all=D.range(9).apply(
            experimental.group_by_window(lambda x: x % 4, lambda key, d: d.batch(5), 5)
        ),
        strings=D.from_tensor_slices(["a,b", "c"]).flat_map(
            lambda s: D.from_tensor_slices(tf.string_split([s], ",").values)
        ),
        reducer=D.range(10).apply(
            experimental.group_by_reducer(
                lambda x: x % 3,
                experimental.Reducer(lambda key: np.int64(0), lambda s, x: s + x, lambda s: s * 10),
            )
        ),
        sum=D.from_tensors(D.range(5).reduce(np.int64(3), lambda s, x: s + x)),
    )


@golden(with_session=True)
def batches(tf: Any, session: Any) -> dict[str, Any]:
    D, experimental = tf.data.Dataset, tf.data.experimental
    numbers = D.range(7)
    ragged = D.range(1, 6).map(lambda x: tf.fill([x], x))
    sparse = numbers.map(lambda x: tf.SparseTensor([[0, 1]], [x], [2, 3]))
    return several(
        tf,
        session,
        batch=numbers.batch(3),
        exact=numbers.batch(3, drop_remainder=True),
        twice=numbers.take(6).batch(2).batch(2),
        tuples=D.zip((numbers, {"s": numbers.map(tf.as_string)})).batch(4),
        padded=ragged.padded_batch(2, [None]),
        padded_to=ragged.padded_batch(3, [7], padding_values=np.int64(-1)),
        padded_dict=ragged.map(lambda x: {"a": x, "b": tf.as_string(x)}).padded_batch(
            2, {"a": [-1], "b": [6]}, {"a": np.int64(9), "b": "?"}, drop_remainder=True
        ),
        unbatch=numbers.batch(3).apply(experimental.unbatch()),
        map_and_batch=numbers.apply(experimental.map_and_batch(lambda x: x + 1, 3)),
        window=numbers.window(3).flat_map(lambda d: d.batch(3)),
        shifted=numbers.window(3, shift=2, stride=2, drop_remainder=True).flat_map(
            lambda d: d.batch(3)
        ),
        sliding=numbers.window(4, shift=1).flat_map(lambda d: d.batch(4)),
        window_pairs=D.zip((numbers, numbers))
        .window(2)
        .flat_map(lambda a, b: D.zip((a.batch(2), b.batch(2)))),
        buckets=ragged.apply(
            experimental.bucket_by_sequence_length(lambda x: tf.size(x), [2, 4], [3, 2, 2])
        ),
        sparse=sparse.batch(3),
        dense_to_sparse=ragged.apply(experimental.dense_to_sparse_batch(2, [6])),
    )


@golden(with_session=True)
def random_choices(tf: Any, session: Any) -> dict[str, Any]:
    D, experimental = tf.data.Dataset, tf.data.experimental
    sides = [D.range(0, 100), D.range(100, 200), D.range(200, 300)]
    return several(
        tf,
        session,
        numbers=experimental.RandomDataset(7).take(20),
        equal=experimental.sample_from_datasets(sides, seed=3).take(30),
        weighted=experimental.sample_from_datasets(sides, [0.6, 0.1, 0.3], seed=5).take(30),
    )


@golden(with_session=True)
def files(tf: Any, session: Any) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder)
        (path / "a.txt").write_bytes(b"one\ntwo\r\n\nlast")
        (path / "b.txt").write_bytes(b"three\n")
        (path / "c.bin").write_bytes(b"HEAD" + bytes(range(12)) + b"FT")
        names = [str(path / name) for name in ("a.txt", "b.txt")]
        for i, kind in enumerate(("", "GZIP", "ZLIB")):
            options = tf.python_io.TFRecordOptions(
                [
                    tf.python_io.TFRecordCompressionType.NONE,
                    tf.python_io.TFRecordCompressionType.GZIP,
                    tf.python_io.TFRecordCompressionType.ZLIB,
                ][i]
            )
            with tf.python_io.TFRecordWriter(str(path / f"r{kind}"), options) as writer:
                for record in (b"first", b"", b"third" * 50):
                    writer.write(record)
        D = tf.data.Dataset
        listed = D.list_files(str(path / "*.txt"), shuffle=False)
        return several(
            tf,
            session,
            lines=tf.data.TextLineDataset(names),
            skip=D.from_tensor_slices(names).flat_map(
                lambda name: tf.data.TextLineDataset(name).skip(1)
            ),
            listed=listed.map(lambda name: tf.strings.substr(name, -5, 5)),
            listed_at_random=D.list_files(str(path / "*"), seed=3).map(
                lambda name: tf.strings.substr(name, -1, 1)
            ),
            records=tf.data.TFRecordDataset([str(path / "r")]),
            gzip=tf.data.TFRecordDataset(str(path / "rGZIP"), "GZIP"),
            zlib=tf.data.TFRecordDataset(str(path / "rZLIB"), compression_type="ZLIB"),
            pieces=tf.data.FixedLengthRecordDataset(str(path / "c.bin"), 3, 4, 2),
            parallel=tf.data.TFRecordDataset([str(path / "r")] * 2, num_parallel_reads=2),
        )


@golden(with_session=True)
def iterators(tf: Any, session: Any) -> dict[str, Any]:
    """All four kinds."""
    one, other = tf.data.Dataset.range(3), tf.data.Dataset.range(100, 103)
    found: dict[str, Any] = {}
    shot = tf.data.make_one_shot_iterator(one).get_next()
    found["shot"] = np.array([session.run(shot) for _ in range(3)])
    both = tf.data.Iterator.from_structure(one.output_types, one.output_shapes)
    following, begin, change = (
        both.get_next(),
        both.make_initializer(one),
        both.make_initializer(other),
    )
    taken = []
    for initializer in (begin, change, begin):
        session.run(initializer)
        taken += [session.run(following), session.run(following)]
    found["reinitializable"] = np.array(taken)
    handle = tf.placeholder(tf.string, [])
    fed = tf.data.Iterator.from_string_handle(
        handle, one.output_types, one.output_shapes
    ).get_next()
    mine = tf.data.make_one_shot_iterator(one.repeat())
    theirs = tf.data.make_initializable_iterator(other.repeat())
    session.run(theirs.initializer)
    handles = session.run([mine.string_handle(), theirs.string_handle()])
    order = [0, 1, 1, 0, 0, 0, 1]
    found["feedable"] = np.array([session.run(fed, {handle: handles[i]}) for i in order])
    limit = tf.placeholder(tf.int64, [])
    initializable = tf.data.make_initializable_iterator(tf.data.Dataset.range(limit))
    following = initializable.get_next()
    taken = []
    for most in (2, 4):
        session.run(initializable.initializer, {limit: most})
        taken += [session.run(following) for _ in range(most)]
    found["initializable"] = np.array(taken)
    optional = tf.data.experimental.get_next_as_optional(tf.data.make_one_shot_iterator(one))
    has, value = optional.has_value(), optional.get_value()
    found["optional"] = np.array([session.run([has, value]) for _ in range(3)], np.int64)
    found["optional_end"] = session.run(has)
    return found


@golden(with_session=True)
def columns(tf: Any, session: Any) -> dict[str, Any]:
    """CSV files, and Examples in TFRecord files."""
    experimental = tf.data.experimental
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder)
        rows = b'id,size,kind,big\n1,1.5,a,3000000000\n2,,"b, c",4\n3,2,"d ""e""\nf",5\n'
        (path / "a.csv").write_bytes(rows)
        (path / "b.csv").write_bytes(b"id,size,kind,big\n9,8.5,NA,7\n")
        names = [str(path / "a.csv"), str(path / "b.csv")]
        defaults = [tf.int32, [0.5], tf.string, tf.constant([0], tf.int64)]
        with tf.python_io.TFRecordWriter(str(path / "examples")) as writer:
            for i in range(5):
                feature = {
                    "x": tf.train.Feature(float_list=tf.train.FloatList(value=[i, i + 0.5])),
                    "y": tf.train.Feature(int64_list=tf.train.Int64List(value=[i] * (i % 3))),
                }
                example = tf.train.Example(features=tf.train.Features(feature=feature))
                writer.write(example.SerializeToString())
        features = {"x": tf.FixedLenFeature([2], tf.float32), "y": tf.VarLenFeature(tf.int64)}
        return several(
            tf,
            session,
            rows=experimental.CsvDataset(names, defaults, header=True),
            selected=experimental.CsvDataset(names, [[""], ["7"]], header=True, select_cols=[2, 3]),
            missing=experimental.CsvDataset(
                names[1], [[""], [""]], header=True, na_value="NA", select_cols=[1, 2]
            ),
            made=experimental.make_csv_dataset(
                names, 3, label_name="id", num_epochs=1, shuffle=False
            ),
            chosen=experimental.make_csv_dataset(
                names, 2, select_columns=["size", "big"], num_epochs=2, shuffle=False
            ),
            shuffled=experimental.make_csv_dataset(
                names[0], 2, num_epochs=2, shuffle_buffer_size=3, shuffle_seed=5
            ),
            examples=experimental.make_batched_features_dataset(
                str(path / "examples"), 2, features, num_epochs=1, shuffle=False
            ),
            labels=experimental.make_batched_features_dataset(
                str(path / "examples"), 2, features, label_key="x", num_epochs=1, shuffle=False
            ),
        )
