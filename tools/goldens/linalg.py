"""Linear algebra: decompositions (where signs are free, only what is unique), solvers, products."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import golden


def _random(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.RandomState(seed).standard_normal(shape)


def _positive(*shape: int) -> np.ndarray:
    x = _random(*shape)
    return x @ np.swapaxes(x, -1, -2) + np.eye(shape[-1])


@golden
def decompositions(tf: Any) -> dict[str, Any]:
    p, x = tf.constant(_positive(2, 4, 4)), tf.constant(_random(2, 5, 3))
    q, r = tf.qr(x)
    q_full, r_full = tf.qr(x, full_matrices=True)
    s, u, v = tf.svd(x)
    values, vectors = tf.self_adjoint_eig(p)
    return {
        "cholesky": tf.cholesky(p),
        "qr_product": tf.matmul(q, r),
        "qr_r_abs": tf.abs(r),
        "qr_full_product": tf.matmul(q_full, r_full),
        "qr_full_shape": tf.shape(q_full),
        "svd_values": s,
        "svd_only_values": tf.svd(x, compute_uv=False),
        "svd_product": tf.matmul(u * s[:, tf.newaxis, :], v, adjoint_b=True),
        "eigh_values": values,
        "eigh_vectors_abs": tf.abs(vectors),
        "eigvalsh": tf.self_adjoint_eigvals(p),
        "cholesky_reads_lower": tf.cholesky(tf.matrix_band_part(p, -1, 0)),
    }


@golden
def solvers(tf: Any) -> dict[str, Any]:
    a, b = tf.constant(_random(2, 4, 4)), tf.constant(_random(2, 4, 3, seed=1))
    lower = tf.matrix_band_part(a, -1, 0) + 3 * tf.eye(4, dtype=tf.float64)
    tall, rhs = tf.constant(_random(6, 3)), tf.constant(_random(6, 2, seed=1))
    return {
        "solve": tf.matrix_solve(a, b),
        "solve_adjoint": tf.matrix_solve(a, b, adjoint=True),
        "triangular": tf.matrix_triangular_solve(lower, b),
        "triangular_adjoint": tf.matrix_triangular_solve(lower, b, adjoint=True),
        "triangular_upper": tf.matrix_triangular_solve(tf.matrix_transpose(lower), b, lower=False),
        "inverse": tf.matrix_inverse(a),
        "inverse_adjoint": tf.matrix_inverse(a, adjoint=True),
        "determinant": tf.matrix_determinant(a),
        "determinant_empty": tf.matrix_determinant(tf.zeros([2, 0, 0])),
        "logdet": tf.linalg.logdet(tf.constant(_positive(3, 3))),
        "slogdet_sign": tf.linalg.slogdet(a)[0],
        "slogdet_log": tf.linalg.slogdet(a)[1],
        "cholesky_solve": tf.cholesky_solve(tf.cholesky(tf.constant(_positive(4, 4))), b[0]),
        "least_squares": tf.matrix_solve_ls(tall, rhs),
        "least_squares_regularised": tf.matrix_solve_ls(tall, rhs, l2_regularizer=0.5),
        "expm": tf.linalg.expm(a[0]),
        "adjoint": tf.linalg.adjoint(tf.complex(a, a)),
    }


@golden
def linalg_gradients(tf: Any) -> dict[str, Any]:
    p, a = tf.constant(_positive(3, 3)), tf.constant(_random(3, 3) + 3 * np.eye(3))
    b, x = tf.constant(_random(3, 2, seed=1)), tf.constant(_random(4, 3))
    weights = tf.constant(_random(3, 3, seed=2))
    q, r = tf.qr(x)
    signs = tf.sign(tf.matrix_diag_part(r))  # a decomposition is unique up to these
    lower = tf.matrix_band_part(a, -1, 0)
    solved = tf.matrix_solve(a, b)
    triangular = tf.matrix_triangular_solve(lower, b)
    return {
        "cholesky": tf.gradients(tf.cholesky(p) * weights, p)[0],
        "inverse": tf.gradients(tf.matrix_inverse(a) * weights, a)[0],
        "determinant": tf.gradients(tf.matrix_determinant(a), a)[0],
        "logdet": tf.gradients(tf.linalg.logdet(p), p)[0],
        "solve_matrix": tf.gradients(solved * solved, a)[0],
        "solve_rhs": tf.gradients(solved * solved, b)[0],
        "triangular_matrix": tf.gradients(triangular * triangular, lower)[0],
        "eigenvalues": tf.gradients(tf.self_adjoint_eigvals(p) ** 2, p)[0],
        "singular_values": tf.gradients(tf.svd(x, compute_uv=False) ** 2, x)[0],
        "qr": tf.gradients(tf.matmul(q * signs, weights), x)[0],
    }


@golden
def single_precision(tf: Any) -> dict[str, Any]:
    p = tf.constant(_positive(3, 3).astype(np.float32))
    return {
        "cholesky": tf.cholesky(p),
        "inverse": tf.matrix_inverse(p),
        "determinant": tf.matrix_determinant(p),
    }
