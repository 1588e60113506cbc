"""Linear algebra: failures, gradients of what reads one triangle, names, Fourier lengths."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import headrace.ops.array.shaping
import headrace.ops.math.binary  # noqa: F401
from headrace import linalg, spectral
from headrace.autodiff.gradients import gradients
from headrace.errors import InvalidArgumentError
from headrace.graph import dtypes
from headrace.graph.graph import Graph
from headrace.ops.core.build import constant, placeholder
from headrace.ops.math import linalg_api
from headrace.session.session import Session

SINGULAR = np.array([[1.0, 2.0], [2.0, 4.0]])


@pytest.mark.parametrize("mode", ["always", "never"])
@pytest.mark.parametrize(
    ("function", "matrix", "message"),
    [
        (linalg.cholesky, -np.eye(2), "Cholesky decomposition was not successful. The input might"),
        (linalg.inv, SINGULAR, "Input is not invertible."),
        (lambda x: linalg.solve(x, np.eye(2)), SINGULAR, "Input matrix is not invertible."),
        (
            lambda x: linalg.triangular_solve(x, np.eye(2)),
            np.array([[1.0, 0.0], [1.0, 0.0]]),
            "Input matrix is not invertible.",
        ),
        (lambda x: linalg.lu(x)[0], SINGULAR, "Input is not invertible."),
        (lambda x: linalg.lstsq(x, np.eye(2)), np.zeros((2, 2)), "Input matrix was rank-deficient"),
    ],
)
def test_failures(
    function: Callable[[Any], Any],
    matrix: np.ndarray,
    message: str,
    mode: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HEADRACE_INTERPRET", mode)
    with Graph().as_default() as graph, Session(graph=graph) as session:
        fed = placeholder(dtypes.float64, [None, None])
        result = function(fed)
        with pytest.raises(InvalidArgumentError, match=message):
            session.run(result, {fed: matrix})
        assert np.isfinite(session.run(result, {fed: np.eye(2)})).all()


def test_cholesky_of_numbers_that_are_not_finite_gives_nan() -> None:
    with Graph().as_default() as graph, Session(graph=graph) as session:
        fed = placeholder(dtypes.float32, [1, 1])
        factor = linalg.cholesky(fed)
        for _ in range(2):
            assert np.isnan(session.run(factor, {fed: [[np.nan]]})).all()


@pytest.mark.parametrize(
    "function",
    [linalg.cholesky, lambda x: linalg.eigh(x)[0], lambda x: linalg.eigh(x)[1] ** 2],
    ids=["cholesky", "eigenvalues", "eigenvectors"],
)
def test_gradients_with_respect_to_symmetric_matrices(function: Callable[[Any], Any]) -> None:
    """Along a symmetric direction it makes no difference which triangle is read."""
    rng = np.random.default_rng(0)
    half = rng.standard_normal((4, 4))
    matrix, direction = half @ half.T + np.eye(4), half + half.T
    with Graph().as_default() as graph, Session(graph=graph) as session:
        fed = placeholder(dtypes.float64, [4, 4])
        result = function(fed)
        weights = rng.standard_normal(result.shape.as_list())
        (grad,) = gradients([result], [fed], [constant(weights)])
        got = np.sum(session.run(grad, {fed: matrix}) * direction)
        step = 1e-6
        up, down = (session.run(result, {fed: matrix + s * direction}) for s in (step, -step))
    np.testing.assert_allclose(got, np.sum(weights * (up - down)) / (2 * step), rtol=1e-5)


def test_shapes_that_do_not_fit() -> None:
    with Graph().as_default():
        with pytest.raises(ValueError, match="Dimensions must be equal, but are 2 and 3"):
            linalg.cholesky(np.zeros((2, 3)))
        with pytest.raises(ValueError, match="do not fit"):
            linalg.solve(np.eye(3), np.zeros((2, 1)))
        with pytest.raises(ValueError, match="at least rank 2 but is rank 1"):
            linalg.qr(np.zeros(3))
        with pytest.raises(ValueError, match="at least rank 2 but is rank 1"):
            spectral.rfft2d(np.zeros(3, np.float32))


def test_singular_values_of_complex_matrices_are_real() -> None:
    with Graph().as_default() as graph, Session(graph=graph) as session:
        matrix = constant(np.diag([3j, -2.0, 1.0]).astype(np.complex64))
        assert linalg.svd(matrix, compute_uv=False).dtype is dtypes.complex64.real_dtype
        s, u, v = session.run(linalg.svd(matrix))
    np.testing.assert_allclose(s, [3, 2, 1], rtol=1e-6)
    np.testing.assert_allclose(u * s @ v.conj().T, np.diag([3j, -2, 1]), atol=1e-6)


def test_lu_gives_the_order_of_the_rows() -> None:
    matrix = np.random.default_rng(1).standard_normal((4, 4))
    with Graph().as_default() as graph, Session(graph=graph) as session:
        factors, order = session.run(linalg.lu(matrix))
    product = (np.tril(factors, -1) + np.eye(4)) @ np.triu(factors)
    np.testing.assert_allclose(product, matrix[order], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dims", [[2, 6], [None, None], None])
def test_lengths_of_real_transforms(dims: list[int | None] | None) -> None:
    signal = np.random.default_rng(0).standard_normal((2, 6)).astype(np.float32)
    with Graph().as_default() as graph, Session(graph=graph) as session:
        fed = placeholder(dtypes.float32, dims)
        spectrum = spectral.rfft(fed)
        results = session.run(
            [spectrum, spectral.irfft(spectrum), spectral.rfft(fed, [9])], {fed: signal}
        )
    np.testing.assert_allclose(results[0], np.fft.rfft(signal), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(results[1], signal, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(results[2], np.fft.rfft(signal, 9), rtol=1e-5, atol=1e-5)


def test_names() -> None:
    with Graph().as_default():
        matrix = constant(np.eye(3))
        assert linalg_api.cholesky(matrix).name == "Cholesky:0"
        assert linalg_api.matrix_inverse(matrix, name="inv").name == "inv:0"
        assert linalg_api.self_adjoint_eig(matrix)[1].name == "SelfAdjointEigV2:1"
        assert linalg_api.adjoint(matrix).name == "adjoint:0"
        assert spectral.rfft(np.zeros(4, np.float32)).name == "rfft:0"


def test_the_adjoint_of_unknown_rank() -> None:
    fed = np.complex64([[[1 + 2j, 3], [4, 5j], [6 - 1j, 7]]])
    with Graph().as_default():
        x = placeholder(dtypes.complex64)
        y = linalg_api.adjoint(x)
        with Session() as session:
            got = session.run(y, {x: fed})
    np.testing.assert_array_equal(got, fed.conj().transpose(0, 2, 1))
