"""Each operation of tf.data: its value, and the same from a graph file."""

from __future__ import annotations

import sqlite3

import lmdb
import numpy as np
import pytest

import headrace as tf
from headrace.files.records import frame
from headrace.graph.func_graph import FuncGraph
from headrace.ops.control.functions import build_body
from headrace.ops.data.generators import Registered

raw = tf.raw_ops
NUMBER = {"output_types": [tf.int64], "output_shapes": [tf.TensorShape([])]}
NUMBERS = {"output_types": [tf.int64], "output_shapes": [tf.TensorShape([None])]}
STRING = {"output_types": [tf.string], "output_shapes": [tf.TensorShape([])]}
#: What a generator yields lives as long as this.
GENERATOR = Registered(lambda: iter([[3], [4]]))
STAGE = Registered(lambda elements, more: ((x + more,) for (x,) in elements))


def count(n=4):
    return raw.RangeDataset(np.int64(0), np.int64(n), np.int64(1), **NUMBER)


def body(function, *dtypes) -> FuncGraph:
    made, result = build_body("f", function, [(dtype, (), "x") for dtype in dtypes or [tf.int64]])
    made.outputs = list(result) if isinstance(result, (list, tuple)) else [result]
    return made


def plus_one(x):
    return x + 1


def twice(x):
    return raw.RepeatDataset(raw.TensorDataset([x], output_shapes=[[]]), np.int64(2), **NUMBER)


def is_small(x):
    return x < 2


def arguments(*names):
    return {f"{name}_other_arguments": [] for name in names}


def batch(variant, size=2):
    return raw.BatchDataset(variant, np.int64(size), **NUMBERS)


def database(folder):
    path = str(folder / "data.db")
    if not (folder / "data.db").exists():
        connection = sqlite3.connect(path)
        connection.execute("CREATE TABLE t (at INTEGER, name)")
        connection.executemany("INSERT INTO t VALUES (?, ?)", [(2, None), (1, "one"), (3, 3)])
        connection.commit()
        connection.close()
    return path


def key_values(folder):
    path = str(folder / "lmdb")
    with lmdb.open(path) as opened, opened.begin(write=True) as transaction:
        transaction.put(b"a", b"1")
        transaction.put(b"b", b"2")
    return path


def of_file(content, make):
    def build(folder):
        path = folder / "file"
        path.write_bytes(content)
        return make(str(path))

    return build


#: Operation: how to make its dataset, the attributes of its elements, and those as lists.
DATASETS = {
    "TensorDataset": (lambda _: raw.TensorDataset([np.int64(5)], output_shapes=[[]]), NUMBER, [5]),
    "TensorSliceDataset": (
        lambda _: raw.TensorSliceDataset([np.int64([5, 6])], output_shapes=[[]]),
        NUMBER,
        [5, 6],
    ),
    "RangeDataset": (lambda _: count(), NUMBER, [0, 1, 2, 3]),
    "RandomDataset": (
        lambda _: raw.TakeDataset(
            raw.RandomDataset(np.int64(3), np.int64(4), **NUMBER), np.int64(1), **NUMBER
        ),
        NUMBER,
        [1995848961],
    ),
    "PythonGeneratorDataset": (
        lambda _: raw.PythonGeneratorDataset([], token=GENERATOR.token, **NUMBER),
        NUMBER,
        [3, 4],
    ),
    "PythonStageDataset": (
        lambda _: raw.PythonStageDataset(count(2), [np.int64(5)], token=STAGE.token, **NUMBER),
        NUMBER,
        [5, 6],
    ),
    "TakeDataset": (lambda _: raw.TakeDataset(count(), np.int64(2), **NUMBER), NUMBER, [0, 1]),
    "SkipDataset": (lambda _: raw.SkipDataset(count(), np.int64(2), **NUMBER), NUMBER, [2, 3]),
    "ShardDataset": (
        lambda _: raw.ShardDataset(count(), np.int64(2), np.int64(1), **NUMBER),
        NUMBER,
        [1, 3],
    ),
    "RepeatDataset": (
        lambda _: raw.RepeatDataset(count(2), np.int64(2), **NUMBER),
        NUMBER,
        [0, 1, 0, 1],
    ),
    "ConcatenateDataset": (
        lambda _: raw.ConcatenateDataset(count(1), count(2), **NUMBER),
        NUMBER,
        [0, 0, 1],
    ),
    "DirectedInterleaveDataset": (
        lambda _: raw.DirectedInterleaveDataset(count(2), [count(1), count(2)], **NUMBER),
        NUMBER,
        [0, 0],
    ),
    "CacheDataset": (lambda _: raw.CacheDataset(count(2), "", **NUMBER), NUMBER, [0, 1]),
    "PrefetchDataset": (
        lambda _: raw.PrefetchDataset(count(2), np.int64(1), **NUMBER),
        NUMBER,
        [0, 1],
    ),
    "ShuffleDataset": (
        lambda _: raw.ShuffleDataset(count(), *map(np.int64, (4, 1, 2)), **NUMBER),
        NUMBER,
        [0, 3, 2, 1],
    ),
    "ShuffleAndRepeatDataset": (
        lambda _: raw.ShuffleAndRepeatDataset(count(2), *map(np.int64, (1, 1, 2, 2)), **NUMBER),
        NUMBER,
        [0, 1, 0, 1],
    ),
    "BatchDataset": (lambda _: batch(count(3)), NUMBERS, [[0, 1], [2]]),
    "BatchDatasetV2": (
        lambda _: raw.BatchDatasetV2(count(3), np.int64(2), True, **NUMBERS),
        NUMBERS,
        [[0, 1]],
    ),
    "PaddedBatchDataset": (
        lambda _: raw.PaddedBatchDataset(
            batch(count(3)), np.int64(2), [np.int64([-1])], [np.int64(9)], output_shapes=[None]
        ),
        {"output_types": [tf.int64], "output_shapes": [None]},
        [[[0, 1], [2, 9]]],
    ),
    "PaddedBatchDatasetV2": (
        lambda _: raw.PaddedBatchDatasetV2(
            batch(count(3)), np.int64(2), [np.int64([3])], [np.int64(9)], True, output_shapes=[None]
        ),
        {"output_types": [tf.int64], "output_shapes": [None]},
        [[[0, 1, 9], [2, 9, 9]]],
    ),
    "UnbatchDataset": (lambda _: raw.UnbatchDataset(batch(count(3)), **NUMBER), NUMBER, [0, 1, 2]),
    "UniqueDataset": (
        lambda _: raw.UniqueDataset(raw.RepeatDataset(count(2), np.int64(2), **NUMBER), **NUMBER),
        NUMBER,
        [0, 1],
    ),
    "IgnoreErrorsDataset": (
        lambda _: raw.IgnoreErrorsDataset(
            raw.MapDataset(count(3), [], f=body(lambda x: tf.floordiv(2, x)), **NUMBER), **NUMBER
        ),
        NUMBER,
        [2, 1],
    ),
    "MapDataset": (
        lambda _: raw.MapDataset(count(2), [], f=body(plus_one), **NUMBER),
        NUMBER,
        [1, 2],
    ),
    "ParallelMapDataset": (
        lambda _: raw.ParallelMapDataset(count(2), [], np.int32(2), f=body(plus_one), **NUMBER),
        NUMBER,
        [1, 2],
    ),
    "ParallelMapDatasetV2": (
        lambda _: raw.ParallelMapDatasetV2(count(2), [], np.int64(2), f=body(plus_one), **NUMBER),
        NUMBER,
        [1, 2],
    ),
    "MapAndBatchDataset": (
        lambda _: raw.MapAndBatchDataset(
            count(3), [], np.int64(2), np.int64(2), False, f=body(plus_one), **NUMBERS
        ),
        NUMBERS,
        [[1, 2], [3]],
    ),
    "FilterDataset": (
        lambda _: raw.FilterDataset(count(3), [], predicate=body(is_small), **NUMBER),
        NUMBER,
        [0, 1],
    ),
    "TakeWhileDataset": (
        lambda _: raw.TakeWhileDataset(count(3), [], predicate=body(is_small), **NUMBER),
        NUMBER,
        [0, 1],
    ),
    "ScanDataset": (
        lambda _: raw.ScanDataset(
            count(3),
            [np.int64(1)],
            [],
            f=body(lambda s, x: (s + x, s * 10), tf.int64, tf.int64),
            **NUMBER,
        ),
        NUMBER,
        [10, 10, 20],
    ),
    "FlatMapDataset": (
        lambda _: raw.FlatMapDataset(count(2), [], f=body(twice), **NUMBER),
        NUMBER,
        [0, 0, 1, 1],
    ),
    "InterleaveDataset": (
        lambda _: raw.InterleaveDataset(
            count(2), [], np.int64(2), np.int64(1), f=body(twice), **NUMBER
        ),
        NUMBER,
        [0, 1, 0, 1],
    ),
    "ParallelInterleaveDatasetV2": (
        lambda _: raw.ParallelInterleaveDatasetV2(
            count(2), [], np.int64(2), np.int64(1), np.int64(2), f=body(twice), **NUMBER
        ),
        NUMBER,
        [0, 1, 0, 1],
    ),
    "ParallelInterleaveDatasetV4": (
        lambda _: raw.ParallelInterleaveDatasetV4(
            count(2), [], *map(np.int64, (2, 1, 1, 1, 2)), f=body(twice), **NUMBER
        ),
        NUMBER,
        [0, 1, 0, 1],
    ),
    "GroupByWindowDataset": (
        lambda _: raw.GroupByWindowDataset(
            count(),
            **arguments("key_func", "reduce_func", "window_size_func"),
            key_func=body(lambda x: x % 2),
            reduce_func=body(lambda key, window: batch(window), tf.int64, tf.variant),
            window_size_func=body(lambda key: tf.constant(2, tf.int64)),
            **NUMBERS,
        ),
        NUMBERS,
        [[0, 2], [1, 3]],
    ),
    "GroupByReducerDataset": (
        lambda _: raw.GroupByReducerDataset(
            count(),
            **arguments("key_func", "init_func", "reduce_func", "finalize_func"),
            key_func=body(lambda x: x % 2),
            init_func=body(lambda key: tf.constant(0, tf.int64)),
            reduce_func=body(lambda s, x: s + x, tf.int64, tf.int64),
            finalize_func=body(plus_one),
            **NUMBER,
        ),
        NUMBER,
        [3, 5],
    ),
    "WindowDataset": (
        lambda _: raw.FlatMapDataset(
            raw.WindowDataset(
                count(3),
                *map(np.int64, (2, 2, 1)),
                False,
                output_types=[tf.variant],
                output_shapes=[[]],
            ),
            [],
            f=body(batch, tf.variant),
            **NUMBERS,
        ),
        NUMBERS,
        [[0, 1], [2]],
    ),
    "TextLineDataset": (
        of_file(b"a\nb", lambda path: raw.TextLineDataset(path, "", np.int64(9))),
        STRING,
        [b"a", b"b"],
    ),
    "TFRecordDataset": (
        of_file(frame(b"one") + frame(b""), lambda p: raw.TFRecordDataset(p, "", np.int64(9))),
        STRING,
        [b"one", b""],
    ),
    "CSVDataset": (
        of_file(
            b'n,t\n5,"x\ny"\n,z\n',
            lambda p: raw.FilterDataset(
                raw.CSVDataset(
                    p,
                    "",
                    np.int64(9),
                    True,
                    ",",
                    True,
                    "",
                    np.int64([0]),
                    [np.int64([7])],
                    **NUMBER,
                ),
                [],
                predicate=body(lambda x: x > 0),
                **NUMBER,
            ),
        ),
        NUMBER,
        [5, 7],
    ),
    "SqlDataset": (
        lambda folder: raw.SqlDataset(
            "sqlite", database(folder), "SELECT name FROM t ORDER BY at", **STRING
        ),
        STRING,
        [b"one", b"", b"3"],
    ),
    "FixedLengthRecordDataset": (
        of_file(b"Habcd", lambda p: raw.FixedLengthRecordDataset(p, *map(np.int64, (1, 2, 0, 9)))),
        STRING,
        [b"ab", b"cd"],
    ),
    "FixedLengthRecordDatasetV2": (
        of_file(
            b"abF", lambda p: raw.FixedLengthRecordDatasetV2(p, *map(np.int64, (0, 2, 1, 9)), "")
        ),
        STRING,
        [b"ab"],
    ),
    "OptimizeDataset": (lambda _: raw.OptimizeDataset(count(1), [b"x"], **NUMBER), NUMBER, [0]),
    "OptimizeDatasetV2": (
        lambda _: raw.OptimizeDatasetV2(count(1), [b"x"], [b"y"], [b"z"], **NUMBER),
        NUMBER,
        [0],
    ),
    "ModelDataset": (lambda _: raw.ModelDataset(count(1), **NUMBER), NUMBER, [0]),
    "OptionsDataset": (
        lambda _: raw.OptionsDataset(count(1), serialized_options="", **NUMBER),
        NUMBER,
        [0],
    ),
    "PrivateThreadPoolDataset": (
        lambda _: raw.PrivateThreadPoolDataset(count(1), np.int64(2), **NUMBER),
        NUMBER,
        [0],
    ),
    "MaxIntraOpParallelismDataset": (
        lambda _: raw.MaxIntraOpParallelismDataset(count(1), np.int64(2), **NUMBER),
        NUMBER,
        [0],
    ),
    "AssertCardinalityDataset": (
        lambda _: raw.AssertCardinalityDataset(count(2), np.int64(2), **NUMBER),
        NUMBER,
        [0, 1],
    ),
    "LatencyStatsDataset": (
        lambda _: raw.LatencyStatsDataset(count(2), "took", **NUMBER),
        NUMBER,
        [0, 1],
    ),
    "BytesProducedStatsDataset": (
        lambda _: raw.BytesProducedStatsDataset(count(2), "bytes", **NUMBER),
        NUMBER,
        [0, 1],
    ),
    "SetStatsAggregatorDataset": (
        lambda _: raw.SetStatsAggregatorDataset(
            count(2), raw.StatsAggregatorHandle(), "tag", "", **NUMBER
        ),
        NUMBER,
        [0, 1],
    ),
    "LMDBDataset": (
        lambda folder: raw.MapDataset(
            raw.LMDBDataset(
                key_values(folder),
                output_types=[tf.string] * 2,
                output_shapes=[tf.TensorShape([])] * 2,
            ),
            [],
            f=body(lambda key, value: key + value, tf.string, tf.string),
            **STRING,
        ),
        STRING,
        [b"a1", b"b2"],
    ),
    "ZipDataset": (
        lambda _: raw.MapDataset(
            raw.ZipDataset(
                [count(2), count(2)],
                output_types=[tf.int64] * 2,
                output_shapes=[tf.TensorShape([])] * 2,
            ),
            [],
            f=body(lambda a, b: a * 10 + b, tf.int64, tf.int64),
            **NUMBER,
        ),
        NUMBER,
        [0, 11],
    ),
}


def _taken(session, name, most=9):
    found = []
    try:
        for _ in range(most):
            found.append(np.asarray(session.run(f"{name}:0")).tolist())
    except tf.errors.OutOfRangeError:
        pass
    return found


@pytest.mark.parametrize("op", sorted(DATASETS))
def test_a_dataset_and_its_file(op, tmp_path):
    make, attrs, expected = DATASETS[op]
    with tf.Graph().as_default() as graph, tf.Session() as session:
        iterator = raw.IteratorV2(shared_name="", container="", **attrs)
        tf.group(raw.MakeIterator(make(tmp_path), iterator), name="begin")
        tf.identity(raw.IteratorGetNext(iterator, **attrs)[0], name="following")
        session.run("begin")
        assert _taken(session, "following") == expected
        message = graph.as_graph_def()
    types = {n.op for n in message.node}
    types |= {n.op for f in message.library.function for n in f.node_def}
    assert op in types
    with tf.Graph().as_default(), tf.Session() as session:
        tf.import_graph_def(message, name="")
        session.run("begin")
        assert _taken(session, "following") == expected


def _iterator_ops():
    attrs = NUMBER
    old = raw.Iterator(shared_name="shared", container="", **attrs)
    tf.group(raw.MakeIterator(count(5), old), name="begin")
    tf.identity(raw.IteratorGetNextSync(old, **attrs)[0], name="sync")
    handle = tf.identity(raw.IteratorToStringHandle(old), name="handle")
    for version in ("", "V2"):
        again = getattr(raw, f"IteratorFromStringHandle{version}")(handle, **attrs)
        tf.identity(raw.IteratorGetNext(again, **attrs)[0], name=f"by_handle{version}")
    optional = raw.IteratorGetNextAsOptional(old, **attrs)
    tf.identity(raw.OptionalGetValue(optional, **attrs)[0], name="optional")
    tf.identity(raw.IteratorState(old), name="state")
    given = tf.placeholder(tf.string, [], name="given")
    tf.group(raw.RestoreIteratorState(old, given), name="restore")
    one = raw.TensorDataset([np.int64(7)], output_shapes=[[]])
    tf.identity(raw.DatasetToSingleElement(one, **attrs)[0], name="single")
    added = body(lambda s, x: s + x, tf.int64, tf.int64)
    tf.identity(raw.ReduceDataset(count(4), [np.int64(1)], [], f=added, **attrs)[0], name="sum")
    factory, result = build_body("factory", lambda: count(2), [])
    factory.outputs = [result]
    shot = raw.OneShotIterator(dataset_factory=factory, **attrs)
    tf.identity(raw.IteratorGetNext(shot, **attrs)[0], name="shot")


def _iterator_values(session):
    session.run("begin")
    values = [session.run(f"{name}:0") for name in ("sync", "by_handle", "by_handleV2")]
    state = session.run("state:0")
    values.append(session.run("optional:0"))
    session.run("restore", {"given:0": state})
    values.append(session.run("sync:0"))
    return [int(v) for v in [*values, *session.run(["single:0", "sum:0", "shot:0"])]]


def test_iterators_and_their_files():
    expected = [0, 1, 2, 3, 3, 7, 7, 0]
    with tf.Graph().as_default() as graph, tf.Session() as session:
        _iterator_ops()
        assert _iterator_values(session) == expected
        message = graph.as_graph_def()
    with tf.Graph().as_default(), tf.Session() as session:
        tf.import_graph_def(message, name="")
        assert _iterator_values(session) == expected


def test_sparse_datasets_and_their_files():
    """Elements of several components, and such of strings that hold a sparse tensor."""
    slices = {
        "output_types": [tf.int64, tf.int32, tf.int64],
        "output_shapes": [tf.TensorShape([None, 1]), tf.TensorShape([None]), tf.TensorShape([1])],
    }
    strings = {"output_types": [tf.string], "output_shapes": [tf.TensorShape([3])]}

    def taken(session):
        first = [v.tolist() for v in session.run(["i:0", "v:0", "s:0"])]
        return [*first, session.run("dense:0").tolist()]

    expected = [[[1]], [5], [4], [[[0], [1]]]]
    with tf.Graph().as_default() as graph, tf.Session() as session:
        sparse = raw.SparseTensorSliceDataset([[0, 1], [1, 2]], np.int32([5, 6]), [2, 4])
        first = raw.DatasetToSingleElement(raw.TakeDataset(sparse, np.int64(1), **slices), **slices)
        for name, part in zip("ivs", first, strict=True):
            tf.identity(part, name=name)
        rows = batch(count(2), 1)
        packed = raw.DenseToSparseBatchDataset(rows, np.int64(2), np.int64([1]), **strings)
        serialized = raw.DatasetToSingleElement(packed, **strings)[0]
        found = tf.io.deserialize_many_sparse(serialized[None], tf.int64, 3)
        tf.identity(tf.sparse.to_dense(found), name="dense")
        assert taken(session) == expected
        message = graph.as_graph_def()
    with tf.Graph().as_default(), tf.Session() as session:
        tf.import_graph_def(message, name="")
        assert taken(session) == expected


def test_counts_records_statistics_and_ragged_rows_and_their_files(tmp_path):
    path = str(tmp_path / "words")

    def taken(session):
        session.run("write")
        session.run("begin")
        count, following = session.run(["count:0", "following:0"])
        ragged = [v.tolist() for v in session.run(["outer:0", "inner:0", "values:0"])]
        tags = [v.tag for v in tf.Summary.FromString(session.run("summary:0")).value]
        return int(count), int(following), tags, list(tf.python_io.tf_record_iterator(path)), ragged

    expected = (3, 0, ["took"], [b"a", b"b"], [[0, 1, 2], [0, 2, 2], [1, 2]])
    with tf.Graph().as_default() as graph, tf.Session() as session:
        words = raw.TensorSliceDataset([["a", "b"]], output_shapes=[[]])
        tf.group(raw.DatasetToTFRecord(words, path, ""), name="write")
        tf.identity(raw.DatasetCardinality(count(3)), name="count")
        handle = raw.StatsAggregatorHandle()
        noted = raw.LatencyStatsDataset(count(3), "took", **NUMBER)
        observed = raw.SetStatsAggregatorDataset(noted, handle, "", "", **NUMBER)
        iterator = raw.IteratorV2(shared_name="", container="", **NUMBER)
        tf.group(raw.MakeIterator(observed, iterator), name="begin")
        tf.identity(raw.IteratorGetNext(iterator, **NUMBER)[0], name="following")
        tf.identity(raw.StatsAggregatorSummary(handle), name="summary")
        splits = [np.int64([0, 1, 2]), np.int64([0, 2, 2])]
        rows = raw.SerializeRagged(splits, np.int32([1, 2]), is_batch=True)
        found, values = raw.DeserializeRagged(
            rows, N=2, T=tf.int32, Tsplits=tf.int64, row_shape=tf.TensorShape([])
        )
        for name, part in zip(("outer", "inner", "values"), (*found, values), strict=True):
            tf.identity(part, name=name)
        assert taken(session) == expected
        message = graph.as_graph_def()
    with tf.Graph().as_default(), tf.Session() as session:
        tf.import_graph_def(message, name="")
        assert taken(session) == expected
