"""WALSMatrixFactorization: sweeps, checkpoints, projections, servers, bad input."""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np
import pytest
from tests.contrib.real_data import real

import headrace as tf
from headrace.contrib.factorization import WALSMatrixFactorization

MATRIX = real("wine")[0][:40]
ROWS, COLS = MATRIX.shape
RANK = 3


def entries(matrix: Any, ids: Any) -> Any:
    """Some rows of a matrix, under their numbers."""
    ids = np.asarray(ids)
    places = np.stack(np.meshgrid(ids, np.arange(matrix.shape[1]), indexing="ij"), -1)
    return tf.SparseTensor(places.reshape(-1, 2), matrix[ids].ravel(), matrix.shape)


def whole(**more: Any) -> Any:
    features = {
        WALSMatrixFactorization.INPUT_ROWS: entries(MATRIX, range(ROWS)),
        WALSMatrixFactorization.INPUT_COLS: entries(MATRIX.T, range(COLS)),
    }
    return {**features, **{name: tf.constant(value) for name, value in more.items()}}, None


def by_parts() -> Any:
    """Four parts of the rows and of the columns, in turns."""
    number = tf.data.Dataset.range(4).repeat().make_one_shot_iterator().get_next()
    features = {}
    for name, matrix in (("input_rows", MATRIX), ("input_cols", MATRIX.T)):
        all_entries = entries(matrix, range(len(matrix)))
        here = tf.equal(tf.mod(all_entries.indices[:, 0], 4), number)
        features[name] = tf.SparseTensor(
            tf.boolean_mask(all_entries.indices, here),
            tf.boolean_mask(all_entries.values, here),
            all_entries.dense_shape,
        )
    return features, None


def model_of(**given: Any) -> WALSMatrixFactorization:
    start = np.random.default_rng(0).standard_normal((COLS, RANK)).astype(np.float32)
    options = {"unobserved_weight": 1.0, "regularization_coeff": 1e-3, "col_init": start}
    options |= {"row_weights": None, "col_weights": None}
    return WALSMatrixFactorization(ROWS, COLS, RANK, **{**options, **given})


def product(model: WALSMatrixFactorization) -> Any:
    rows, cols = (np.concatenate(f) for f in (model.get_row_factors(), model.get_col_factors()))
    return rows @ cols.T


def least() -> float:
    """The squared error of the best factors."""
    return float((np.linalg.svd(MATRIX, compute_uv=False)[RANK:] ** 2).sum())


def test_sweeps_end_at_the_singular_vectors() -> None:
    model = model_of(max_sweeps=60).fit(input_fn=whole)
    error = ((MATRIX - product(model)) ** 2).sum()
    assert error == pytest.approx(least(), rel=1e-3)
    assert model.get_variable_value("completed_sweeps") == 60
    assert model.get_variable_value("global_step") == 60  # each batch is all of the matrix
    found = model.evaluate(input_fn=lambda: whole(project_row=True), steps=1)
    norms = sum((f**2).sum() for f in (*model.get_row_factors(), *model.get_col_factors()))
    assert found["loss"] == pytest.approx(error + 1e-3 * norms, rel=1e-3)


@pytest.mark.slow
def test_batches_make_the_same_sweeps_also_after_a_restart(tmp_path: Any) -> None:
    wanted = product(model_of().fit(input_fn=whole, steps=4))
    folder = str(tmp_path)
    model = model_of(model_dir=folder, num_row_shards=2).fit(input_fn=by_parts, steps=6)
    assert model.get_variable_value("completed_sweeps") == 1  # in the middle of the second
    model = model_of(model_dir=folder, num_row_shards=2).fit(input_fn=by_parts, steps=12)
    assert model.get_variable_value("completed_sweeps") == 4
    again = model_of(model_dir=folder, num_row_shards=2)
    assert [len(part) for part in again.get_row_factors()] == [20, 20]
    np.testing.assert_allclose(product(again), wanted, atol=1e-3)


def test_rows_and_columns_are_projected() -> None:
    model = model_of().fit(input_fn=whole, steps=10)
    rows, cols = model.get_row_factors()[0], model.get_col_factors()[0]
    found = np.array([*islice(model.get_projections(lambda: whole(project_row=True)), ROWS)])
    system = cols.T @ cols + 1e-3 * np.eye(RANK)
    np.testing.assert_allclose(found, MATRIX @ cols @ np.linalg.inv(system), atol=1e-3)
    found = np.array([*islice(model.get_projections(lambda: whole(project_row=False)), COLS)])
    system = rows.T @ rows + 1e-3 * np.eye(RANK)
    np.testing.assert_allclose(found, MATRIX.T @ rows @ np.linalg.inv(system), atol=1e-3)


def test_what_is_refused(monkeypatch: Any) -> None:
    with pytest.raises(ValueError, match="must have input_rows, input_cols to train; input_cols"):
        model_of().fit(input_fn=lambda: ({"input_rows": entries(MATRIX, [0])}, None), steps=1)
    monkeypatch.setattr(tf.contrib.learn.RunConfig, "num_worker_replicas", 2)
    with pytest.raises(ValueError, match="runs on one worker; for more, run the ops of"):
        model_of(config=tf.contrib.learn.RunConfig())
