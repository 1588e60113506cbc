"""NaN, infinities and the ends of domains: what TensorFlow 1.15 and 2.21 give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace.settings import flags

NAN, INF = np.nan, np.inf


@pytest.fixture(autouse=True, params=["always", "never"])
def _form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Interpreted and compiled."""
    monkeypatch.setattr(flags, "interpret", request.param)
    with tf.Graph().as_default():
        yield


def run(function: Any, *arrays: Any) -> Any:
    feeds = [tf.placeholder(a.dtype, a.shape) for a in arrays]
    with tf.Session() as session:
        return session.run(function(*feeds), dict(zip(feeds, arrays, strict=True)))


def with_nan(row: int, column: int) -> np.ndarray:
    matrix = np.array([[2, 1, 0], [1, 3, 1], [0, 1, 4]], np.float64)
    matrix[row, column] = NAN
    return matrix


ONES = np.ones((3, 2))


@pytest.mark.parametrize("place", [(1, 1), (2, 0), (0, 2)])
def test_inverses_and_solutions_of_nan_are_nan(place: tuple[int, int]) -> None:
    both = np.stack([with_nan(*place), np.eye(3)])
    inverse, solution = run(
        lambda m, b: (tf.matrix_inverse(m), tf.matrix_solve(m, b)), both, np.stack([ONES, ONES])
    )
    assert np.isnan(inverse[0]).all()
    assert np.isnan(solution[0]).all()
    np.testing.assert_array_equal(inverse[1], np.eye(3))
    np.testing.assert_array_equal(solution[1], ONES)


@pytest.mark.parametrize("function", [tf.matrix_inverse, lambda m: tf.matrix_solve(m, ONES)])
def test_nan_in_the_first_place_is_not_invertible(function: Any) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="is not invertible"):
        run(function, with_nan(0, 0))


@pytest.mark.parametrize("place", [(1, 1), (2, 0)])
def test_eigenvalues_of_nan_are_refused(place: tuple[int, int]) -> None:
    text = "Self-adjoint eigen decomposition was not successful. The input might not be valid"
    for function in (tf.self_adjoint_eigvals, lambda m: tf.self_adjoint_eig(m)[1]):
        with pytest.raises(tf.errors.InvalidArgumentError, match=text):
            run(function, with_nan(*place))


def test_eigenvalues_read_the_lower_triangle_and_single_numbers() -> None:
    assert np.isfinite(run(tf.self_adjoint_eigvals, with_nan(0, 2))).all()
    assert np.isnan(run(tf.self_adjoint_eigvals, np.array([[NAN]]))).all()
    assert run(tf.self_adjoint_eigvals, np.zeros((0, 0))).shape == (0,)


def test_decompositions_of_nan() -> None:
    matrix = with_nan(1, 1)
    sign, log = run(tf.linalg.slogdet, matrix)
    assert np.isnan(sign)
    assert np.isnan(log)
    assert np.isnan(run(lambda m: tf.qr(m)[0], matrix)).all()
    assert np.isfinite(run(lambda m: tf.qr(m)[0], with_nan(0, 2))).all()
    u = run(lambda m: tf.svd(m)[1], np.where(np.isnan(matrix), INF, matrix))
    assert np.isnan(u).all()


@pytest.mark.parametrize("lower", [True, False])
def test_substitution_stops_at_what_depends_on_nan(lower: bool) -> None:
    matrix = with_nan(2, 0) if lower else with_nan(0, 2)
    got = run(lambda m, b: tf.matrix_triangular_solve(m, b, lower=lower), matrix, ONES)
    rows = got if lower else got[::-1]
    assert np.isfinite(rows[:2]).all()
    assert np.isnan(rows[2]).all()


@pytest.mark.parametrize(
    ("name", "x", "y", "value"),
    [
        ("igamma", 0, 0, 0),
        ("igamma", 0, 2, NAN),
        ("igamma", -1, 0, 0),
        ("igamma", NAN, 0, 0),
        ("igamma", INF, INF, 0),
        ("igamma", 2, INF, 1),
        ("igammac", 0, 0.5, NAN),
        ("igammac", 0, 0, NAN),
        ("igammac", 2, 0, 1),
        ("igammac", 0, INF, NAN),
        ("zeta", 1, 2, INF),
        ("zeta", 0, -1, NAN),
        ("zeta", -2, 0, NAN),
        ("zeta", INF, 1, 1),
        ("zeta", INF, 2, 0),
        ("zeta", INF, 0.5, INF),
        ("zeta", INF, -2, INF),
        ("zeta", 1e10, 3, 0),
        ("zeta", 3, INF, 0),
        ("polygamma", 10, -0.5, -42108.83),
        ("polygamma", 10, -1.5, -469.83),
        ("polygamma", 1e10, 0.5, INF),
        ("polygamma", INF, -2, INF),
        ("polygamma", 1.5, 2, NAN),
    ],
)
def test_ends_of_special_functions(name: str, x: float, y: float, value: float) -> None:
    got = run(getattr(tf, name), np.array([x], np.float32), np.array([y], np.float32))
    np.testing.assert_allclose(got, [value], rtol=2e-2 if name == "polygamma" else 1e-6)


@pytest.mark.parametrize(
    ("a", "b", "x", "value"),
    [
        (0, 0.5, 0.25, NAN),
        (1, 0, 1, NAN),
        (INF, 2, 0.5, NAN),
        (INF, INF, 1, 1),
        (NAN, 1, 0, 0),
        (2, 2, 1.1, NAN),
        (2, 2, 0.5, 0.5),
    ],
)
def test_ends_of_the_incomplete_beta_function(a: float, b: float, x: float, value: float) -> None:
    arrays = (np.array([n], np.float32) for n in (a, b, x))
    np.testing.assert_allclose(run(tf.betainc, *arrays), [value], rtol=1e-5)


def test_nan_comes_first_whichever_way_one_sorts() -> None:
    x = np.array([3, NAN, -1, INF, -INF, NAN, 0], np.float32)
    up, up_at, down, down_at, top = run(
        lambda x: (
            tf.sort(x),
            tf.argsort(x),
            tf.sort(x, direction="DESCENDING"),
            tf.argsort(x, direction="DESCENDING"),
            tf.nn.top_k(x, 3)[0],
        ),
        x,
    )
    np.testing.assert_array_equal(up, [NAN, NAN, -INF, -1, 0, 3, INF])
    np.testing.assert_array_equal(up_at, [1, 5, 4, 2, 6, 0, 3])
    np.testing.assert_array_equal(down, [NAN, NAN, INF, 3, 0, -1, -INF])
    np.testing.assert_array_equal(down_at, [1, 5, 3, 0, 6, 2, 4])
    np.testing.assert_array_equal(top, [NAN, NAN, INF])
