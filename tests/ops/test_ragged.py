"""Ragged tensors against lists of lists; gradients, control flow, feeds and fetches, bad input."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace.errors import InvalidArgumentError

Rows = list[Any]


@pytest.fixture(autouse=True)
def _graph() -> Any:
    with tf.Graph().as_default():
        yield


def run(fetch: Any, feed: Any = None) -> Any:
    with tf.Session() as session:
        return session.run(fetch, feed)


def lists(value: Any) -> Any:
    return value.to_list() if hasattr(value, "to_list") else np.asarray(value).tolist()


def fed(rows: Rows, **options: Any) -> Any:
    """A ragged tensor of which nothing but the rank is known while the graph is built."""
    value = tf.ragged.constant_value(rows, **options)
    flat = value.flat_values
    return tf.RaggedTensor.from_nested_row_splits(
        tf.placeholder_with_default(flat, [None, *flat.shape[1:]]),
        [tf.placeholder_with_default(s, [None]) for s in value.nested_row_splits],
    )


def random_rows(rng: np.random.Generator, count: int, depth: int = 2) -> Rows:
    if depth == 1:
        return rng.integers(1, 9, count).tolist()
    return [random_rows(rng, int(rng.integers(0, 4)), depth - 1) for _ in range(count)]


def mapped(function: Any, *rows: Any) -> Any:
    if isinstance(rows[0], list):
        return [mapped(function, *r) for r in zip(*rows, strict=True)]
    return function(*rows)


X = [[3.0, 1.0], [], [4.0, 1.0, 5.0], [9.0]]


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


# -- constants and bad input --------------------------------------------------------------------


def test_constants() -> None:
    constant = tf.ragged.constant
    got = run(
        {
            "none": constant([]),
            "empty_rows": constant([[], []]),
            "deep_empty": constant([[[]], []]),
            "inner": constant([[[1, 2], [3, 4]], [[5, 6]]], inner_shape=(2,)),
            "scalar": constant(7),
            "vector": constant([1, 2]),
            "int32": constant([[1], []], row_splits_dtype=tf.int32),
        }
    )
    assert got["none"].shape == (0,)
    assert got["empty_rows"].to_list() == [[], []]
    assert got["deep_empty"].to_list() == [[[]], []]
    assert got["inner"].values.shape == (3, 2)
    assert got["scalar"] == 7
    assert got["vector"].tolist() == [1, 2]
    assert got["int32"].row_splits.dtype == np.int32


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        ([[1], 2], {}, "same nesting depth"),
        ([[1, 2], [[]]], {}, "empty list nesting is greater"),
        ([[1, 2], [3]], {"ragged_rank": 3}, "scalar value depth greater than 3"),
        ([[[1], [2, 3]]], {"ragged_rank": 1}, "inconsistent shape"),
        ([[1]], {"ragged_rank": -1}, "must be nonnegative"),
        ([[1]], {"ragged_rank": 1, "inner_shape": (1,)}, "incompatible with ragged_rank"),
    ],
)
def test_bad_lists(rows: Rows, options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tf.ragged.constant(rows, **options)
    with pytest.raises(ValueError, match=message):
        tf.ragged.constant_value(rows, **options)


def splits(values: Any) -> Any:
    return tf.placeholder_with_default(np.asarray(values, np.int64), [None])


BAD: list[tuple[Any, str]] = [
    (lambda: tf.RaggedTensor.from_row_splits([1, 2, 3], splits([0, 2, 1, 3])), "not decrease"),
    (lambda: tf.RaggedTensor.from_row_splits([1, 2, 3], splits([0, 5])), "number of values, 3"),
    (lambda: tf.RaggedTensor.from_row_splits([1, 2, 3], splits([1, 3])), "must be 0, but is 1"),
    (lambda: tf.RaggedTensor.from_row_splits([1], splits([])), "at least one entry"),
    (lambda: tf.RaggedTensor.from_row_lengths([1, 2], splits([1, 3])), "but is 4"),
    (lambda: tf.RaggedTensor.from_row_lengths([1, 2], splits([3, -1])), "length -1"),
    (lambda: tf.RaggedTensor.from_value_rowids([1, 2], splits([1, 0])), "must not decrease"),
    (lambda: tf.RaggedTensor.from_value_rowids([1, 2], splits([0, 4]), 3), r"not in \[0, 3\)"),
    (lambda: fed(X) + fed([[1.0], [2.0]]), "identical ragged splits|differ in their rows"),
    (lambda: fed(X) + fed([[1.0], [], [2.0], [2.0]]), "identical ragged splits"),
    (lambda: fed(X) + np.ones((4, 2)), "2 columns beside a ragged one"),
    (lambda: fed(X) + np.ones((3, 1)), "as many, or one, but has 3"),
    (lambda: tf.gather(fed(X), [7]), r"7 is not in \[0, 4\)"),
    (lambda: tf.gather_nd(fed(X), [[0, 2]]), "not in"),
    (lambda: tf.batch_gather(fed(X), fed([[2], [], [], []])), "not in"),
    (lambda: tf.ragged.boolean_mask(fed(X), fed(X) * 0 + fed(X)[::-1] > 0), "identical"),
    (lambda: tf.squeeze(fed(X), 1), "identical ragged splits"),
    (
        lambda: tf.RaggedTensor.from_sparse(tf.SparseTensor([[0, 1]], [1], [2, 2])),
        "not right-ragged",
    ),
    (lambda: fed(X)[9], "out of bounds"),
]


@pytest.mark.parametrize(("build", "message"), BAD)
def test_bad_values_are_refused_when_the_graph_runs(build: Any, message: str) -> None:
    fetch = build()
    with pytest.raises(InvalidArgumentError, match=message):
        run(fetch)


def test_bad_arguments_are_refused_while_the_graph_is_built() -> None:
    x, deep = fed(X), fed([[[1.0]]])
    with pytest.raises(ValueError, match="constructor is private"):
        tf.RaggedTensor([1], [0, 1])
    with pytest.raises(ValueError, match="same rank"):
        tf.concat([x, deep], 0)
    with pytest.raises(ValueError, match="axis=9 out of bounds"):
        tf.reduce_sum(x, 9)
    with pytest.raises(ValueError, match="out of bounds"):
        tf.expand_dims(x, 5)
    with pytest.raises(TypeError, match=r"RaggedTensor is no Tensor.*to_tensor\(\)"):
        tf.matmul(x, x)
    with pytest.raises(TypeError, match="RaggedTensor is no Tensor"):
        tf.convert_to_tensor(x)
    with pytest.raises(ValueError, match="lengths or padding"):
        tf.RaggedTensor.from_tensor([[1]], lengths=[1], padding=0)
    with pytest.raises(ValueError, match="rank"):
        tf.RaggedTensor.from_tensor([1, 2])
    with pytest.raises(ValueError, match="row_splits tensor may not be empty"):
        tf.RaggedTensor.from_row_splits([1], [])
    with pytest.raises(ValueError, match="same outer-dimension"):
        tf.ragged.map_flat_values(lambda v: v[:1], tf.ragged.constant([[1, 2], [3]]))
    with pytest.raises(TypeError, match="no truth value"):
        bool(x)
    with pytest.raises(TypeError, match="not iterable"):
        iter(x)


def test_plain_tensors_pay_nothing_for_it() -> None:
    """What dispatches is not even loaded by graphs without ragged tensors."""
    import subprocess
    import sys

    code = (
        "import sys, headrace as tf; x = tf.constant([[1.0]]);"
        "tf.reduce_sum(tf.concat([x, x], 0) + 1.0);"
        "assert 'headrace.ops.ragged_dispatch' not in sys.modules;"
        "assert 'headrace.ops.ragged_array' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_ops_of_files() -> None:
    """RaggedGather and RaggedTensorToTensor: what they refuse, and a gradient of the first."""
    values = tf.constant([1.0, 2.0, 3.0, 4.0])
    indices = tf.placeholder(tf.int64, [None])
    options = {"params_nested_splits": [[0, 3, 4]], "params_dense_values": values}
    (ends,), gathered = tf.raw_ops.RaggedGather(indices=indices, OUTPUT_RAGGED_RANK=1, **options)
    weighted = tf.reduce_sum(gathered * tf.range(1.0, 6.0))
    fetch = [ends, gathered, tf.gradients(weighted, values)[0]]
    got = run(fetch, {indices: [1, 0, 1]})
    assert [g.tolist() for g in got] == [[0, 1, 4, 5], [4, 1, 2, 3, 4], [2, 3, 4, 6]]
    with pytest.raises(InvalidArgumentError, match=r"indices\[1\] = 2 is not in \[0, 2\)"):
        run(gathered, {indices: [0, 2]})
    with pytest.raises(ValueError, match="Ragged rank of output"):
        tf.raw_ops.RaggedGather(indices=indices, OUTPUT_RAGGED_RANK=2, **options)

    def dense(shape: Any, splits: Any) -> Any:
        return tf.raw_ops.RaggedTensorToTensor(
            shape=tf.placeholder_with_default(np.int64(shape), None),
            values=values,
            default_value=0.0,
            row_partition_tensors=[tf.placeholder_with_default(np.int64(splits), None)],
            row_partition_types=["ROW_SPLITS"],
        )

    assert run(dense([-1, 2], [0, 3, 4])).tolist() == [[1, 2], [4, 0]]
    with pytest.raises(InvalidArgumentError, match="must begin with 0"):
        run(dense(-1, [0, 3]))
    with pytest.raises(InvalidArgumentError, match="3 dimensions, the tensor 2"):
        run(dense([1, 2, 3], [0, 3, 4]))
