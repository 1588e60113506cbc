"""Weighted alternating least squares: exact steps, low rank found again, real data, bad input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.decomposition import TruncatedSVD
from tests.contrib.real_data import real

import headrace as tf
from headrace.contrib.factorization import WALSModel
from headrace.harness.cluster import with_cluster


def _sparse(matrix: np.ndarray) -> tf.SparseTensorValue:
    places = np.argwhere(matrix != 0)
    return tf.SparseTensorValue(places, matrix[tuple(places.T)].astype(np.float32), matrix.shape)


def _by_hand(matrix: Any, other: Any, w0: float, reg: float, own: Any, weights: Any) -> Any:
    """The rows that solve the normal equations, one after the other, in double precision."""
    found = []
    for i, row in enumerate(matrix):
        w = w0 + (row != 0) * own[i] * weights
        left = (other.T * w) @ other + reg * np.eye(other.shape[1])
        found.append(np.linalg.solve(left, (other.T * w) @ row))
    return np.array(found)


def _loss(matrix: Any, u: Any, v: Any, w0: float, own: Any, weights: Any) -> float:
    w = w0 + (matrix != 0) * np.outer(own, weights)
    return float((w * (matrix - u @ v.T) ** 2).sum())


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("transposed", [False, True])
def test_a_sweep_solves_the_equations(shards: int, transposed: bool) -> None:
    rng = np.random.RandomState(0)
    matrix = rng.randn(7, 5) * (rng.rand(7, 5) < 0.5)
    matrix[2] = 0  # a row without entries is not looked at
    v = rng.randn(5, 2).astype(np.float32)
    rows, columns = rng.rand(7).astype(np.float32), rng.rand(5).astype(np.float32)
    options: dict[str, Any] = {"row_weights": rows, "col_weights": columns}
    if shards == 3:
        options = {
            "row_weights": np.array_split(rows, 3),
            "col_weights": np.array_split(columns, 3),
            "num_row_shards": 3,
            "num_col_shards": 3,
        }
        v_init: Any = np.array_split(v, 3)
    else:
        v_init = v
    model = WALSModel(7, 5, 2, 0.1, 0.3, col_init=v_init, **options)
    fed = tf.sparse_placeholder(tf.float32)
    _new, update, loss, reg, total = model.update_row_factors(fed, transposed)
    _, update_columns, _, _, _ = model.update_col_factors(fed, transposed)
    given = {fed: _sparse(matrix.T if transposed else matrix)}
    with tf.Session() as sess:
        sess.run([model.initialize_op, model.worker_init])
        before = np.concatenate(sess.run(model.row_factors))
        sess.run(model.row_update_prep_gramian_op)
        sess.run(model.initialize_row_update_op)
        _, found_loss, found_reg, weight = sess.run([update, loss, reg, total], given)
        u = np.concatenate(sess.run(model.row_factors))
        sess.run(model.col_update_prep_gramian_op)
        sess.run(update_columns, given)
        v_new = np.concatenate(sess.run(model.col_factors))
    seen = np.arange(7) != 2
    wanted = _by_hand(matrix, v, 0.1, 0.3, rows, columns)
    np.testing.assert_allclose(u[seen], wanted[seen], rtol=1e-3, atol=1e-4)
    np.testing.assert_array_equal(u[2], before[2])
    scale = 7 / 6
    w = 0.1 + (matrix != 0) * np.outer(rows, columns)
    by_hand = _loss(matrix[seen], u[seen], v, 0.1, rows[seen], columns)
    assert found_loss == pytest.approx(scale * by_hand, rel=1e-3)
    assert found_reg == pytest.approx(0.3 * (scale * (u[seen] ** 2).sum() + (v**2).sum()), rel=1e-4)
    assert weight == pytest.approx(0.1 * 35 + scale * (w[seen] - 0.1).sum(), rel=1e-4)
    wanted = _by_hand(matrix.T, u, 0.1, 0.3, columns, rows)
    np.testing.assert_allclose(v_new, wanted, rtol=1e-3, atol=1e-4)


def _sweeps(model: WALSModel, target: str, matrix: Any, count: int, batches: int = 1) -> Any:
    fed = tf.sparse_placeholder(tf.float32)
    rows = model.update_row_factors(fed)[1]
    columns = model.update_col_factors(fed)[1]
    with tf.Session(target) as sess:
        sess.run(model.initialize_op)
        for _ in range(count):
            sess.run(model.row_update_prep_gramian_op)
            for i in range(batches):
                mask = (np.arange(len(matrix)) % batches == i)[:, None]
                sess.run(rows, {fed: _sparse(matrix * mask)})
            sess.run(model.col_update_prep_gramian_op)
            sess.run(columns, {fed: _sparse(matrix)})
        return sess.run([*model.row_factors, *model.col_factors])


def test_all_weights_alike_it_is_as_near_as_singular_vectors() -> None:
    """Reconstruction error of wine at rank 3: that of the best there is, within a thousandth."""
    matrix = real("wine")[0]
    start = np.random.RandomState(0).randn(13, 3).astype(np.float32)
    model = WALSModel(178, 13, 3, 1.0, 1e-4, col_init=start, row_weights=None, col_weights=None)
    u, v = _sweeps(model, "", matrix, 15, batches=2)
    best = TruncatedSVD(3, random_state=0).fit(matrix)
    least = ((matrix - best.inverse_transform(best.transform(matrix))) ** 2).sum()
    assert ((matrix - u @ v.T) ** 2).sum() == pytest.approx(least, rel=1e-3)


def test_factors_on_servers_are_those_of_one_process() -> None:
    rng = np.random.RandomState(1)
    matrix = (rng.randn(8, 2) @ rng.randn(2, 6)) * (rng.rand(8, 6) < 0.8)
    start = rng.randn(6, 2).astype(np.float32)
    with tf.Graph().as_default():
        model = WALSModel(8, 6, 2, 0.01, 0.01, col_init=start)
        u, v = _sweeps(model, "", matrix, 3)
    with (
        with_cluster(ps=2, worker=1) as local,
        tf.Graph().as_default(),
        tf.device(tf.train.replica_device_setter(ps_tasks=2)),
    ):
        halves = np.array_split(start, 2)
        model = WALSModel(8, 6, 2, 0.01, 0.01, col_init=halves, num_row_shards=2, num_col_shards=2)
        found = _sweeps(model, local.target("worker", 0), matrix, 3)
    np.testing.assert_allclose(np.concatenate(found[:2]), u, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(np.concatenate(found[2:]), v, rtol=1e-3, atol=1e-4)


def test_projections_store_nothing() -> None:
    matrix = np.array([[2.0, 4.0], [0.0, 8.0]])
    model = WALSModel(3, 2, 1, 0.0, 0.0, col_init=[[1.0], [2.0]], row_init=np.zeros([3, 1]))
    fed = tf.sparse_placeholder(tf.float32)
    rows = model.project_row_factors(fed, projection_weights=[1.0, 0.5])
    with tf.Session() as sess:
        sess.run(model.initialize_op)
        sess.run(model.row_update_prep_gramian_op)
        np.testing.assert_allclose(sess.run(rows, {fed: _sparse(matrix)}), [[2], [4]], rtol=1e-5)
        assert not sess.run(model.row_factors[0]).any()
        none = tf.SparseTensorValue(np.zeros([0, 2], np.int64), np.zeros(0, np.float32), (2, 2))
        assert sess.run(rows, {fed: none}).shape == (0, 1)


def test_bad_entries() -> None:
    model = WALSModel(3, 2, 2, 0.0, None, col_init=np.ones([2, 2]))
    fed = tf.sparse_placeholder(tf.float32)
    update = model.update_row_factors(fed)[1]
    refused = tf.errors.InvalidArgumentError
    with tf.Session() as sess:
        sess.run(model.initialize_op)
        before = sess.run(model.row_factors[0])
        sess.run(model.row_update_prep_gramian_op)
        for value in (np.nan, np.inf):
            given = tf.SparseTensorValue([[1, 0]], np.float32([value]), (3, 2))
            with pytest.raises(refused, match="of row 1 of the input hold NaN or infinity"):
                sess.run(update, {fed: given})
        given = tf.SparseTensorValue([[2, 0]], np.float32([1]), (3, 2))
        with pytest.raises(refused, match="equations of row 2 have no single solution: give a reg"):
            sess.run(update, {fed: given})
        for place in ([0, 2], [0, -1]):
            given = tf.SparseTensorValue([place], np.float32([1]), (3, 2))
            with pytest.raises(refused):
                sess.run(update, {fed: given})
        np.testing.assert_array_equal(sess.run(model.row_factors[0]), before)


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match="input_rows must be at least 1, not 0"):
        WALSModel(0, 2, 1)
    with pytest.raises(ValueError, match="n_components must be at least 1, not 0"):
        WALSModel(2, 2, 0)
    with pytest.raises(ValueError, match="regularization must not be below 0, but is -1"):
        WALSModel(2, 2, 1, regularization=-1)
    with pytest.raises(ValueError, match="must both be None, or neither"):
        WALSModel(2, 2, 1, row_weights=None)
    with pytest.raises(ValueError, match="row_weights must not be below 0"):
        WALSModel(2, 2, 1, row_weights=[1.0, -1.0])
    with pytest.raises(ValueError, match="row_weights must be None, a number, or numbers"):
        WALSModel(2, 2, 1, row_weights=object())
    with pytest.raises(ValueError, match=r"col_factors must be given for shards of \[2\]"):
        WALSModel(2, 2, 1, col_init=np.ones([3, 1]))
    with pytest.raises(ValueError, match="col_factors must have 1 components"):
        WALSModel(2, 2, 1, col_init=np.ones([2, 2]))
    with pytest.raises(ValueError, match="col_factors start as 'random' or from values"):
        WALSModel(2, 2, 1, col_init="grid")
    with pytest.raises(ValueError, match="sp_input must be a SparseTensor"):
        WALSModel(2, 2, 1).update_row_factors(tf.zeros([2, 2]))
