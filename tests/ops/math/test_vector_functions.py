"""Trigonometric functions in vectors: as near to the truth as TensorFlow's, and at the ends."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace.settings import flags

INF = np.inf
ENDS = np.array(
    [0.0, -0.0, INF, -INF, np.nan, 1, -1, 0.5, -0.5, 2, -2, 3e38, -3e38, 2**25, 1e-44, 1.2e-38], "f"
)
COUNT = 1 << 14


@pytest.fixture(autouse=True)
def _compiled(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(flags, "interpret", "never")
    with tf.Graph().as_default(), np.errstate(all="ignore"):
        yield


def run(function: Any, *arrays: np.ndarray) -> Any:
    feeds = [tf.placeholder(a.dtype, a.shape) for a in arrays]
    with tf.Session() as session:
        return session.run(function(*feeds), dict(zip(feeds, arrays, strict=True)))


def any_floats() -> np.ndarray:
    """Of all exponents, NaN among them, and those where little is left of a multiple of pi/2."""
    rng = np.random.RandomState(3)
    bits = rng.randint(0, 1 << 32, COUNT, dtype=np.uint64).astype(np.uint32)
    multiples = (rng.randint(1, 1 << 22, COUNT) * (np.pi / 2)).astype("f")
    return np.concatenate([bits.view("f"), multiples, rng.standard_normal(COUNT).astype("f"), ENDS])


def fractions() -> np.ndarray:
    rng = np.random.RandomState(4)
    tiny = np.exp(rng.uniform(-80, 0, COUNT))
    return np.concatenate([rng.uniform(-1, 1, COUNT), 1 - tiny, tiny, ENDS]).astype("f")


def check(value: np.ndarray, true: np.ndarray, places: float) -> None:
    """Within so many units in the last place of float32; the same NaN, infinities and signs."""
    rounded = true.astype("f")
    np.testing.assert_array_equal(np.isnan(value), np.isnan(rounded))
    is_number = ~np.isnan(rounded)
    np.testing.assert_array_equal(np.signbit(value)[is_number], np.signbit(rounded)[is_number])
    is_finite = np.isfinite(rounded)
    np.testing.assert_array_equal(value[is_number & ~is_finite], rounded[is_number & ~is_finite])
    # What is below the least normal number may be zero.
    last = np.spacing(np.maximum(np.abs(rounded[is_finite]), np.float32(1.2e-38)).astype("f"))
    error = np.abs(value[is_finite].astype("d") - true[is_finite])
    least = 1.2e-38 * (np.abs(true[is_finite]) < 1.2e-38)
    assert (error <= places * last.astype("d") + least).all(), (error / last).max()


# TensorFlow 2.21 is within 2.4, 2.3, 1.4, 3.9, 4.4 and 4.3 on such values.
@pytest.mark.parametrize(
    ("name", "true", "inputs", "places"),
    [
        ("sin", np.sin, any_floats, 2.4),
        ("cos", np.cos, any_floats, 2.3),
        ("tan", np.tan, any_floats, 1.5),
        ("atan", np.arctan, any_floats, 3.0),
        ("asin", np.arcsin, fractions, 2.4),
        ("acos", np.arccos, fractions, 2.0),
    ],
)
def test_values_are_those_of_float64(name: str, true: Any, inputs: Any, places: float) -> None:
    x = inputs()
    check(run(getattr(tf, name), x), true(x.astype("d")), places)


def test_rsqrt_of_all_floats() -> None:
    x = any_floats()
    x = x[(np.abs(x) > 1.2e-38) | (x == 0)]  # others count as zero, here as in TensorFlow
    check(run(tf.rsqrt, x), 1 / np.sqrt(x.astype("d")), 1.5)


def test_angles_of_points() -> None:
    x, y = any_floats(), any_floats()[::-1]
    ends = np.meshgrid(ENDS[:12], ENDS[:12])
    x, y = (np.concatenate([a, e.ravel()]) for a, e in zip((x, y), ends, strict=True))
    are_normal = ((np.abs(x) > 1.2e-38) | (x == 0)) & ((np.abs(y) > 1.2e-38) | (y == 0))
    x, y = x[are_normal], y[are_normal]
    check(run(tf.atan2, y, x), np.arctan2(y.astype("d"), x.astype("d")), 3.9)


@pytest.mark.parametrize("name", ["sin", "cos", "tan", "asin", "acos", "atan", "rsqrt"])
def test_halves_doubles_and_matrices(name: str) -> None:
    rng = np.random.RandomState(5)
    x = rng.uniform(0.1, 0.9, (64, 32))
    function = getattr(tf, name)
    true = run(function, x)
    assert true.dtype == np.float64
    half = run(function, x.astype(np.float16))
    assert half.dtype == np.float16
    np.testing.assert_allclose(half, run(function, x.astype(np.float16).astype("d")), rtol=1e-3)
    single = run(function, x.astype("f"))
    np.testing.assert_allclose(single, run(function, x.astype("f").astype("d")), rtol=3e-7)


@pytest.mark.parametrize("name", ["sin", "tan", "asin", "acos", "atan", "rsqrt"])
def test_gradients_are_those_of_float64(name: str) -> None:
    x = np.random.RandomState(6).uniform(0.1, 0.9, 2048)

    def slope(x: Any) -> Any:
        return tf.gradients(getattr(tf, name)(x), x)[0]

    np.testing.assert_allclose(run(slope, x.astype("f")), run(slope, x), rtol=2e-5)
