"""Embeddings, dropout and in_top_k: the public functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace as tf


def run(fetches: Any, feed: dict[Any, Any] | None = None) -> Any:
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(fetches, feed)


@pytest.fixture(autouse=True)
def _graph() -> Any:
    with tf.Graph().as_default():
        yield


TABLE = np.arange(22, dtype=np.float32).reshape(11, 2)
IDS = np.int64([[10, 0, 3], [7, 7, 4]])


def _split(strategy: str) -> list[np.ndarray]:
    if strategy == "mod":
        return [TABLE[i::3] for i in range(3)]
    return list(np.array_split(TABLE, 3))


@pytest.mark.parametrize("strategy", ["mod", "div"])
@pytest.mark.parametrize("kind", ["arrays", "tensors", "variables", "fed"])
def test_parts_give_the_rows_of_the_whole(strategy: str, kind: str) -> None:
    feed: dict[Any, Any] = {}
    parts: list[Any] = []
    for part in _split(strategy):
        if kind == "arrays":
            parts.append(part)
        elif kind == "tensors":
            parts.append(tf.constant(part))
        elif kind == "variables":
            parts.append(tf.Variable(part))
        else:
            parts.append(tf.placeholder(tf.float32))
            feed[parts[-1]] = part
    got = tf.nn.embedding_lookup(parts, IDS, strategy)
    assert got.shape == tf.TensorShape(None if kind == "fed" else [2, 3, 2])
    np.testing.assert_array_equal(run(got, feed), TABLE[IDS])


def test_gradients_of_variables_are_rows() -> None:
    table = tf.Variable(TABLE)
    grad = tf.gradients(tf.nn.embedding_lookup(table, IDS), table)[0]
    assert isinstance(grad, tf.IndexedSlices)
    values, indices = run([grad.values, grad.indices])
    assert values.shape == (6, 2)
    assert indices.tolist() == IDS.ravel().tolist()


def test_gradients_of_parts_are_rows_of_each_part() -> None:
    parts = [tf.Variable(p) for p in _split("mod")]
    grads = tf.gradients(tf.nn.embedding_lookup(parts, IDS), parts)
    assert all(isinstance(g, tf.IndexedSlices) for g in grads)
    indices = run([g.indices for g in grads])
    flat = IDS.ravel()
    assert [i.tolist() for i in indices] == [(flat[flat % 3 == p] // 3).tolist() for p in range(3)]


def test_a_partitioned_variable_is_its_parts() -> None:
    with tf.variable_scope("scope", partitioner=tf.fixed_size_partitioner(3)):
        table = tf.get_variable("table", initializer=tf.constant(TABLE))
    got = tf.nn.embedding_lookup(table, IDS, "div")
    np.testing.assert_array_equal(run(got), TABLE[IDS])


def test_max_norm_scales_long_rows_down() -> None:
    got = run(tf.nn.embedding_lookup(tf.constant(TABLE), [0, 1, 2], max_norm=2.0))
    want = [TABLE[i] * min(1, 2 / max(np.linalg.norm(TABLE[i]), 1e-9)) for i in range(3)]
    np.testing.assert_allclose(got, want, 1e-6)


def test_an_id_that_is_no_row_is_an_error() -> None:
    table = tf.Variable(TABLE)
    ids = tf.placeholder(tf.int32, [None])
    rows = tf.nn.embedding_lookup(table, ids)
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"indices\[1\] = 11 is not in \[0, 11"
    ):
        run(rows, {ids: [0, 11]})


def test_refusals_of_lookups() -> None:
    with pytest.raises(ValueError, match="Need at least one param"):
        tf.nn.embedding_lookup([], IDS)
    with pytest.raises(ValueError, match="Unrecognized partition strategy: 'odd'"):
        tf.nn.embedding_lookup([TABLE, TABLE], IDS, "odd")


# -- dropout ------------------------------------------------------------------------------------


def test_dropout_keeps_the_mean_and_repeats_under_a_seed() -> None:
    x = tf.ones([100, 200])
    y = tf.nn.dropout(x, keep_prob=0.8, seed=7)
    first, again = run(y), run(y)
    assert np.array_equal(first, again)
    assert set(np.unique(first)) == {np.float32(0), np.float32(1.25)}
    assert first.mean() == pytest.approx(1, abs=0.02)


def test_dropout_keeps_the_shape_whatever_is_known_of_the_probability() -> None:
    """Programs feed it through ``tf.placeholder(tf.float32)``, and build layers on the result."""
    x, keep = tf.placeholder(tf.float32, [None, 5]), tf.placeholder(tf.float32)
    for y in (tf.nn.dropout(x, keep), tf.nn.dropout(x, rate=keep, noise_shape=[tf.shape(x)[0], 1])):
        assert y.shape.as_list() == [None, 5]
    assert tf.layers.dense(tf.layers.dropout(x, keep, training=True), 2).shape[1] == 2


def test_gradient_passes_what_was_kept() -> None:
    x = tf.constant(np.ones((30, 40), np.float32))
    y = tf.nn.dropout(x, rate=0.5, seed=3)
    a, b = run([y, tf.gradients(y, x)[0]])
    np.testing.assert_array_equal(a, b)


def test_noise_shape_drops_rows() -> None:
    x = tf.placeholder(tf.float32, [None, 5])
    y = run(tf.nn.dropout(x, 0.5, noise_shape=[None, 1], seed=1), {x: np.ones((40, 5))})
    assert (y == y[:, :1]).all()
    assert 0 < (y == 0).mean() < 1


def test_a_fed_probability_of_one_keeps_all() -> None:
    keep = tf.placeholder(tf.float32, [])
    x = np.random.default_rng(0).standard_normal((20, 30)).astype(np.float32)
    y = tf.nn.dropout(tf.constant(x), keep, seed=5)
    np.testing.assert_array_equal(run(y, {keep: 1.0}), x)
    assert 0.3 < (run(y, {keep: 0.5}) == 0).mean() < 0.7


def test_what_is_dropped_is_zero_even_if_infinite() -> None:
    y = run(tf.nn.dropout(tf.constant(np.full(1000, np.inf, np.float32)), 0.5, seed=2))
    assert set(np.unique(y)) == {np.float32(0), np.float32(np.inf)}


def test_a_probability_of_one_adds_nothing() -> None:
    x = tf.ones([3])
    assert tf.nn.dropout(x, 1.0) is x


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"keep_prob": 0.0}, r"keep_prob must be a number in \(0, 1\]"),
        ({"rate": 1.0}, "got rate 1.0"),
        ({"rate": -0.5}, "got rate -0.5"),
        ({"keep_prob": 0.5, "rate": 0.5}, "Only one of rate and keep_prob"),
        ({}, "You must provide a rate"),
    ],
)
def test_refusals_of_dropout(arguments: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tf.nn.dropout(tf.ones([3]), **arguments)
    with pytest.raises(ValueError, match="has to be a floating point tensor"):
        tf.nn.dropout(tf.ones([3], tf.int32), 0.5)


@pytest.mark.parametrize("k", [0, 1, 5, 1000])
def test_in_top_k_of_many_classes_is_that_of_whole_rows(k: int) -> None:
    rng = np.random.RandomState(k)
    values = rng.randint(0, 300, (40, 700)).astype(np.float32)  # with ties
    values[3, 650], values[4, 2], values[5, 400] = np.nan, np.inf, -np.inf
    targets = rng.randint(0, 700, 40).astype(np.int32)
    targets[:3] = [-1, 700, 699]
    values[np.arange(6, 20), targets[6:20]] = 299
    expected = []
    for row, target in zip(values, targets.tolist(), strict=True):
        known = 0 <= target < 700 and bool(np.isfinite(row).all())
        expected.append(known and int((row > row[target]).sum()) < k)
    scores, wanted = tf.Variable(values), tf.Variable(targets)
    best = tf.nn.in_top_k(scores, wanted, k)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(3):  # interpreted, and as later steps run it
            assert session.run(best).tolist() == expected


def test_in_top_k_of_fed_scores() -> None:
    scores = tf.placeholder(tf.float32, [None, 3])
    best = tf.nn.in_top_k(scores, [0, 2], 1)
    assert best.shape.as_list() == [2]
    got = run(best, {scores: [[0.5, 0.2, 0.3], [0.5, 0.2, 0.3]]})
    assert got.tolist() == [True, False]
    with pytest.raises(ValueError, match="not compatible"):
        tf.nn.in_top_k(tf.zeros([4, 3]), [0, 2], 1)


def test_sparse_ids_of_unknown_rank():
    ids = tf.sparse_placeholder(tf.int64)
    found = tf.nn.safe_embedding_lookup_sparse(
        [tf.constant([[1.0, 2.0], [3.0, 4.0]])], ids, combiner="sum"
    )
    rows = tf.SparseTensorValue([[0, 0], [0, 1], [2, 0]], [0, 1, 1], [3, 2])
    cube = tf.SparseTensorValue([[0, 0, 0], [1, 1, 0]], [0, 1], [2, 2, 1])
    with tf.Session() as session:
        assert session.run(found, {ids: rows}).tolist() == [[4.0, 6.0], [0.0, 0.0], [3.0, 4.0]]
        assert session.run(found, {ids: cube}).tolist() == [
            [[1.0, 2.0], [0.0, 0.0]],
            [[0.0, 0.0], [3.0, 4.0]],
        ]
