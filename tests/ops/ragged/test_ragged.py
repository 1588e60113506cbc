"""Ragged tensors against lists of lists; gradients, control flow, feeds and fetches."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from ragged_rows import Rows, X, fed, run

import headrace as tf
from headrace.errors import InvalidArgumentError


@pytest.fixture(autouse=True)
def _graph() -> Any:
    with tf.Graph().as_default():
        yield


def lists(value: Any) -> Any:
    return value.to_list() if hasattr(value, "to_list") else np.asarray(value).tolist()


def random_rows(rng: np.random.Generator, count: int, depth: int = 2) -> Rows:
    if depth == 1:
        return rng.integers(1, 9, count).tolist()
    return [random_rows(rng, int(rng.integers(0, 4)), depth - 1) for _ in range(count)]


def mapped(function: Any, *rows: Any) -> Any:
    if isinstance(rows[0], list):
        return [mapped(function, *r) for r in zip(*rows, strict=True)]
    return function(*rows)


# -- properties ---------------------------------------------------------------------------------


def expected_of_rows(
    rows: Rows, other: Rows, column: list[int], order: Any, count: int
) -> dict[str, Any]:
    """What the functions below give, on lists."""
    width = max(map(len, rows))
    padded = [r + [-1] * (width - len(r)) for r in rows]
    return {
        "same": rows,
        "sum": mapped(lambda a, b: a + b, rows, other),
        "column": [[v * c for v in r] for r, c in zip(rows, column, strict=True)],
        "less": mapped(lambda v: v < 5, rows),
        "concat0": rows + other,
        "concat1": [a + b + a for a, b in zip(rows, other, strict=True)],
        "stack0": [rows, other],
        "stack1": [[a, b] for a, b in zip(rows, other, strict=True)],
        "gather": [rows[i] for i in order],
        "tile": [r * count for r in rows] * 2,
        "mask": [[v for v in r if v > 4] for r in rows],
        "where": mapped(lambda a, b: a if a > 4 else b, rows, other),
        "places": [[i, j] for i, r in enumerate(rows) for j, v in enumerate(r) if v > 4],
        "sums": [sum(r) for r in rows],
        "columns": [sum(r[j] for r in rows if j < len(r)) for j in range(width)],
        "greatest": max(itertools.chain(*rows)),
        "dense": padded,
        "sparse": padded,
        "back": rows,
        "lengths": [len(r) for r in rows],
        "ids": [i for i, r in enumerate(rows) for _ in r],
        "first": [r[:1] for r in rows],
        "reversed": [r[::-1] for r in rows[::-1]],
        "by_ids": rows,
        "by_lengths": rows,
        "by_starts": rows,
        "by_limits": rows,
    }


@pytest.mark.parametrize("seed", range(6))
def test_rows_are_as_in_lists_of_lists(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = random_rows(rng, 5)
    other = mapped(lambda v: v + 10, rows)
    x, y = fed(rows, dtype=np.int64), fed(other, dtype=np.int64)
    order = rng.integers(0, 5, 4)
    count = int(rng.integers(1, 4))
    column = rng.integers(1, 9, 5)
    got = run(
        {
            "same": x,
            "sum": x + y,
            "column": x * column[:, None],
            "less": x < 5,
            "concat0": tf.concat([x, y], 0),
            "concat1": tf.concat([x, y, x], 1),
            "stack0": tf.stack([x, y]),
            "stack1": tf.stack([x, y], 1),
            "gather": tf.gather(x, order),
            "tile": tf.tile(x, [2, count]),
            "mask": tf.boolean_mask(x, x > 4),
            "where": tf.where(x > 4, x, y),
            "places": tf.where(x > 4),
            "sums": tf.reduce_sum(x, 1),
            "columns": tf.reduce_sum(x, 0),
            "greatest": tf.reduce_max(x + 0, axis=[0, 1]),
            "dense": x.to_tensor(-1),
            "sparse": tf.sparse.to_dense(x.to_sparse(), -1),
            "back": tf.RaggedTensor.from_sparse(x.to_sparse()),
            "lengths": x.row_lengths(),
            "ids": x.value_rowids(),
            "first": x[:, :1],
            "reversed": x[::-1, ::-1],
            "by_ids": tf.RaggedTensor.from_value_rowids(x.values, x.value_rowids(), x.nrows()),
            "by_lengths": tf.RaggedTensor.from_row_lengths(x.values, x.row_lengths()),
            "by_starts": tf.RaggedTensor.from_row_starts(x.values, x.row_starts()),
            "by_limits": tf.RaggedTensor.from_row_limits(x.values, x.row_limits()),
        }
    )
    want = expected_of_rows(rows, other, column.tolist(), order, count)
    for name, expected in want.items():
        found = lists(got[name])
        assert found == expected or (not expected and not np.size(found)), name


@pytest.mark.parametrize("seed", range(4))
def test_three_dimensions_are_as_in_lists(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = [*random_rows(rng, 3, 3), [[1, 2], [3]]]
    x = fed(rows, dtype=np.int64)
    got = run(
        {
            "twice": x * 2,
            "inner": tf.reduce_sum(x, 2),
            "middle": tf.reduce_max(x, -1),
            "concat2": tf.concat([x, x], 2),
            "concat1": tf.concat([x, x], 1),
            "tile": tf.tile(x, [1, 2, 2]),
            "mask": tf.ragged.boolean_mask(x, x > 4),
            "last": x[:, -1:, :2],
            "row": x[-1, 0],
            "expanded": tf.squeeze(tf.expand_dims(x, 1), 1),
            "dense": tf.shape(x.to_tensor()),
            "lengths": x.row_lengths(axis=2),
            "picked": tf.gather_nd(x, [[3, 0, 1], [3, 1, 0]]),
            "of_rows": tf.batch_gather(x, fed([[len(r) - 1] if r else [] for r in rows])),
        }
    )
    want = {
        "twice": mapped(lambda v: v * 2, rows),
        "inner": [[sum(r) for r in part] for part in rows],
        "middle": [[max(r, default=np.iinfo(np.int64).min) for r in part] for part in rows],
        "concat2": [[r + r for r in part] for part in rows],
        "concat1": [part + part for part in rows],
        "tile": [[r * 2 for r in part] * 2 for part in rows],
        "mask": [[[v for v in r if v > 4] for r in part] for part in rows],
        "last": [[r[:2] for r in part[-1:]] for part in rows],
        "row": rows[-1][0],
        "expanded": rows,
        "dense": [4, max(map(len, rows)), max(len(r) for p in rows for r in p)],
        "lengths": [[len(r) for r in part] for part in rows],
        "picked": [2, 3],
        "of_rows": [part[-1:] for part in rows],
    }
    for name, expected in want.items():
        assert lists(got[name]) == expected, name


BOUNDS = [None, 0, 1, 2, 7, -1, -2, -7]


@pytest.mark.parametrize("step", [None, 1, 2, -1, -2])
def test_slices_are_as_in_lists(step: int | None) -> None:
    rows = [[1, 2, 3, 4], [], [5], [6, 7]]
    x = fed(rows)
    keys = [slice(a, b, step) for a in BOUNDS for b in BOUNDS]
    outer, inner = run([[x[k] for k in keys], [x[:, k] for k in keys]])
    for key, by_row, by_column in zip(keys, outer, inner, strict=True):
        assert by_row.to_list() == rows[key], key
        assert by_column.to_list() == [r[key] for r in rows], key


def test_slice_bounds_may_be_tensors() -> None:
    x = fed(X)
    bound = tf.placeholder(tf.int32, [])
    fetch = [x[bound:], x[:, bound:], x[bound], x[:, :bound]]
    for value in (1, 2, -1):
        got = run(fetch, {bound: value})
        assert got[0].to_list() == X[value:]
        assert got[1].to_list() == [r[value:] for r in X]
        assert got[2].tolist() == X[value]
        assert got[3].to_list() == [r[:value] for r in X]


def test_other_keys() -> None:
    x = fed(X)
    uniform = fed([[[1, 2], [3, 4]], [], [[5, 6]]], ragged_rank=1)
    got = run(
        {
            "new_row": x[tf.newaxis],
            "new_column": x[:, tf.newaxis],
            "new_last": x[..., tf.newaxis],
            "ellipsis": x[..., 1:],
            "all": x[...],
            "element": x[2, 1],
            "inner": uniform[:, :, 1],
            "inner_element": uniform[0, 1, 1],
            "inner_last": uniform[..., 0],
        }
    )
    assert lists(got["new_row"]) == [X]
    assert lists(got["new_column"]) == [[r] for r in X]
    assert lists(got["new_last"]) == [[[v] for v in r] for r in X]
    assert lists(got["ellipsis"]) == [r[1:] for r in X]
    assert lists(got["all"]) == X
    assert got["element"] == 1
    assert lists(got["inner"]) == [[2, 4], [], [6]]
    assert got["inner_element"] == 4
    assert lists(got["inner_last"]) == [[1, 3], [], [5]]
    with pytest.raises(ValueError, match="Cannot index into an inner ragged dimension"):
        x[:, 0]
    with pytest.raises(IndexError, match="Too many indices"):
        x[..., 0, 0, 0]


# -- functions ----------------------------------------------------------------------------------


def test_operators_and_functions() -> None:
    x = fed(X)
    cases = {
        "radd": (2 + x, lambda v: v + 2),
        "rsub": (2 - x, lambda v: 2 - v),
        "rtruediv": (6 / x, lambda v: 6 / v),
        "floordiv": (x // 2, lambda v: v // 2),
        "mod": (x % 2, lambda v: v % 2),
        "pow": (x**2, lambda v: v**2),
        "neg": (-x, lambda v: -v),
        "abs": (abs(x - 3), lambda v: abs(v - 3)),
        "greater_equal": (x >= 4, lambda v: v >= 4),
        "not": (~(x > 3), lambda v: v <= 3),
        "and": ((x > 1) & (x < 5), lambda v: 1 < v < 5),
        "or": ((x < 2) | (x > 5), lambda v: v < 2 or v > 5),
        "add": (tf.add(x, 1), lambda v: v + 1),
        "divide": (tf.divide(x, 2), lambda v: v / 2),
        "square": (tf.square(x), lambda v: v * v),
        "maximum": (tf.maximum(3.0, x), lambda v: max(v, 3)),
        "cast": (tf.cast(x, tf.int32), int),
        "equal": (tf.equal(x, 1.0), lambda v: v == 1),
        "clip": (tf.clip_by_value(x, 2.0, 4.0), lambda v: min(max(v, 2), 4)),
        "add_n": (tf.add_n([x, x, x]), lambda v: 3 * v),
        "ones": (tf.ones_like(x), lambda v: 1),
        "zeros": (tf.zeros_like(x), lambda v: 0),
        "identity": (tf.identity(x), lambda v: v),
        "relu": (tf.nn.relu(x - 3), lambda v: max(v - 3, 0)),
        "tensor_minus": (tf.constant([[1.0]], tf.float64) - x, lambda v: 1 - v),
        "tensor_less": (tf.constant(2.0, tf.float64) < x, lambda v: v > 2),
        "map": (tf.ragged.map_flat_values(lambda v: v * 5, x), lambda v: v * 5),
        "map_keyword": (tf.ragged.map_flat_values(tf.add, x=x, y=x), lambda v: v * 2),
    }
    got = run({name: case[0] for name, case in cases.items()})
    for name, (_, function) in cases.items():
        assert lists(got[name]) == mapped(function, X), name


def test_dense_operands_broadcast() -> None:
    x, deep = fed(X), fed([[[1, 2], [3, 4]], [[5, 6]]], ragged_rank=1)
    got = run(
        {
            "column": x + np.array([[1.0], [2.0], [3.0], [4.0]]),
            "cell": x + np.array([[1.0]]),
            "vector": deep + np.array([10, 20]),
            "per_row": deep + np.array([[[100]], [[200]]]),
            "even": fed([[1, 2], [3, 4]]) + np.array([[10, 20], [30, 40]]),
            "row": fed([[1, 2], [3, 4]]) * np.array([10, 20]),
            "ranks": fed([[[1], [2, 3]], [[4]]]) + fed([[10, 20], [30]])[..., tf.newaxis],
        }
    )
    assert lists(got["column"]) == [[4, 2], [], [7, 4, 8], [13]]
    assert lists(got["cell"]) == mapped(lambda v: v + 1, X)
    assert lists(got["vector"]) == [[[11, 22], [13, 24]], [[15, 26]]]
    assert lists(got["per_row"]) == [[[101, 102], [103, 104]], [[205, 206]]]
    assert lists(got["even"]) == [[11, 22], [33, 44]]
    assert lists(got["row"]) == [[10, 40], [30, 80]]


def test_strings() -> None:
    words = fed([["a", "bc"], [], ["d"]])
    got = run(
        [
            tf.string_join([words, words], "-"),
            tf.strings.length(words),
            words.to_tensor("?"),
            tf.concat([words, [["x"], ["y"], ["z"]]], 1),
        ]
    )
    assert got[0].to_list() == [[b"a-a", b"bc-bc"], [], [b"d-d"]]
    assert got[1].to_list() == [[1, 2], [], [1]]
    assert got[2].tolist() == [[b"a", b"bc"], [b"?", b"?"], [b"d", b"?"]]
    assert got[3].to_list() == [[b"a", b"bc", b"x"], [b"y"], [b"d", b"z"]]


def test_ranges() -> None:
    got = run(
        [
            tf.ragged.range([3, 0, 2]),
            tf.ragged.range([1, 5], [4, 3], [1, -1]),
            tf.ragged.range([0.0, 1.0], [1.0, 2.0], 0.5),
            tf.ragged.row_splits_to_segment_ids([0, 2, 2, 3]),
            tf.ragged.segment_ids_to_row_splits([0, 0, 2]),
            tf.ragged.segment_ids_to_row_splits([0, 0, 2], 5),
        ]
    )
    assert lists(got[0]) == [[0, 1, 2], [], [0, 1]]
    assert lists(got[1]) == [[1, 2, 3], [5, 4]]
    assert lists(got[2]) == [[0, 0.5], [1, 1.5]]
    assert lists(got[3]) == [0, 0, 2]
    assert lists(got[4]) == [0, 2, 2, 3]
    assert lists(got[5]) == [0, 2, 2, 3, 3, 3]
    with pytest.raises(InvalidArgumentError, match="delta != 0"):
        run(tf.ragged.range([1], [2], tf.placeholder_with_default(0, [])))


def test_static_shapes() -> None:
    x = tf.ragged.constant([[1, 2], [3], []])
    assert x.shape.as_list() == [3, None]
    assert (x * 2).shape.as_list() == [3, None]
    assert tf.reduce_sum(x, 1).shape.as_list() == [3]
    assert x.to_tensor().shape.as_list() == [3, 2]
    assert x.to_tensor(shape=[None, 4]).shape.as_list() == [3, 4]
    assert tf.ragged.constant([[[1, 2]], []], ragged_rank=1).shape.as_list() == [2, None, 2]
    assert tf.ragged.placeholder(tf.int32, 2, [5]).shape.as_list() == [None, None, None, 5]
    assert tf.rank(x).shape.as_list() == []
    assert x.nrows().op.type == "Const"


def test_to_tensor_of_a_shape() -> None:
    x = fed([[1, 2], [3], []])
    got = run([x.to_tensor(shape=[None, 1]), x.to_tensor(9, shape=[4, 3]), x.to_tensor(shape=[2])])
    assert got[0].tolist() == [[1], [3], [0]]
    assert got[1].tolist() == [[1, 2, 9], [3, 9, 9], [9, 9, 9], [9, 9, 9]]
    assert got[2].tolist() == [[1, 2], [3, 0]]


# -- gradients and training ---------------------------------------------------------------------


def test_gradients() -> None:
    values = tf.constant([1.0, 2.0, 3.0, 4.0, 5.0], tf.float64)
    x = tf.RaggedTensor.from_row_splits(values, [0, 2, 2, 5])

    def of(y: Any) -> Any:
        return tf.convert_to_tensor(tf.gradients(tf.reduce_sum(y), values)[0])

    joined = tf.concat([x, x * 2.0], 1).flat_values
    got = run(
        {
            "mean": of(tf.reduce_mean(x, 1)[2]),
            "max": of(tf.reduce_max(x * x, 0)),
            "dense": of(x.to_tensor()[2, 1] * 3.0),
            "sparse": of(x.to_sparse().values),
            "column": of((x * [[1.0], [2.0], [3.0]]).flat_values),
            "gather": of(tf.gather(x, [2, 0, 2]).flat_values),
            "slice": of(x[:, 1:].flat_values),
            "concat": of(joined * np.arange(10.0)),
            "tile": of(tf.tile(x, [2, 3]).flat_values),
            "where": of(tf.where(x > 2.0, x, x * 3.0).flat_values),
        }
    )
    assert got["mean"].tolist() == pytest.approx([0, 0, 1 / 3, 1 / 3, 1 / 3])
    assert got["max"].tolist() == [0, 0, 6, 8, 10]
    assert got["dense"].tolist() == [0, 0, 0, 3, 0]
    assert got["sparse"].tolist() == [1] * 5
    assert got["column"].tolist() == [1, 1, 3, 3, 3]
    assert got["gather"].tolist() == [1, 1, 2, 2, 2]
    assert got["slice"].tolist() == [0, 1, 0, 1, 1]
    assert got["concat"].tolist() == [0 + 2 * 2, 1 + 2 * 3, 4 + 14, 5 + 16, 6 + 18]
    assert got["tile"].tolist() == [6] * 5
    assert got["where"].tolist() == [3, 3, 1, 1, 1]


def test_a_bag_of_words_learns() -> None:
    """Sentences of different lengths, embedded and averaged: which has the word 0?"""
    rng = np.random.default_rng(0)
    sentences = [rng.integers(0, 12, rng.integers(1, 9)).tolist() for _ in range(40)]
    labels = np.array([[float(0 in s)] for s in sentences], np.float32)
    words = tf.ragged.placeholder(tf.int64, 1, [])
    table = tf.Variable(tf.random_uniform([12, 4], -0.1, 0.1, seed=1))
    weights = tf.Variable(tf.random_uniform([4, 1], -1.0, 1.0, seed=2))
    features = tf.reduce_max(tf.nn.embedding_lookup(table, words), axis=1)
    loss = tf.reduce_mean(
        tf.nn.sigmoid_cross_entropy_with_logits(
            labels=labels, logits=tf.matmul(tf.reshape(features, [-1, 4]), weights)
        )
    )
    step = tf.train.AdamOptimizer(0.1).minimize(loss)
    feed = {words: tf.ragged.constant_value(sentences, dtype=np.int64)}
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        losses = [session.run([loss, step], feed)[0] for _ in range(60)]
    assert losses[-1] < losses[0] / 5


# -- sessions and control flow ------------------------------------------------------------------


def test_feeds_and_fetches() -> None:
    x = tf.ragged.placeholder(tf.float32, 2)
    value = tf.ragged.constant_value([[[1], [2, 3]], []], dtype=np.float32)
    got = run({"x": [x], "sum": tf.reduce_sum(x, 2)}, {x: value})
    assert got["x"][0].to_list() == value.to_list()
    assert got["x"][0].ragged_rank == 2
    assert got["sum"].to_list() == [[1, 5], []]
    assert isinstance(got["sum"], tf.ragged.RaggedTensorValue)
    with pytest.raises(InvalidArgumentError, match="must feed a value"):
        run(x)
    with pytest.raises((TypeError, ValueError), match="ragged rank 2"):
        run(x, {x: [[1]]})
    rows = tf.ragged.placeholder(tf.int64, 1)
    for splits in ([0, 1], [1, 2], [0, 3, 2], []):
        wrong = tf.ragged.RaggedTensorValue(np.array([5, 6]), np.array(splits, np.int64))
        with pytest.raises(ValueError, match="must go from 0 to the number of its values"):
            run(rows, {rows: wrong})
    with tf.Session():
        assert tf.ragged.constant([[1], []]).eval().to_list() == [[1], []]


def test_control_flow() -> None:
    x = fed(X)
    doubled = tf.cond(tf.constant(True), lambda: x * 2.0, lambda: x)
    _, grown = tf.while_loop(
        lambda i, r: i < 2,
        lambda i, r: (i + 1, tf.concat([r, r], 1)),
        [0, x],
    )
    sums = tf.map_fn(lambda row: tf.reduce_sum(row), x)
    pairs = tf.map_fn(lambda e: tf.reduce_sum(e[0]) * e[1], (x, np.arange(4.0)), dtype=tf.float64)
    got = run([doubled, grown, sums, pairs])
    assert got[0].to_list() == mapped(lambda v: 2 * v, X)
    assert got[1].to_list() == [r * 4 for r in X]
    assert got[2].tolist() == [sum(r) for r in X]
    assert got[3].tolist() == [i * sum(r) for i, r in enumerate(X)]
