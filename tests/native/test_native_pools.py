"""Pools by oneDNN give what XLA's forms give."""

from __future__ import annotations

import itertools

import jax
import ml_dtypes
import numpy as np
import pytest

from headrace import native
from headrace.ops.nn import pool_kernels, pool_native
from headrace.settings import flags

pytestmark = pytest.mark.skipif(
    native.library() is None, reason="the native library is not built (make native)"
)

#: (input, window, strides, padding)
POOLS = {
    "halves": ((2, 8, 10, 5), (2, 2), (2, 2), "VALID"),
    "overlapping": ((2, 9, 11, 16), (3, 3), (2, 2), "SAME"),
    "as large": ((1, 10, 7, 33), (3, 3), (1, 1), "SAME"),
    "apart": ((2, 11, 11, 8), (2, 3), (4, 5), "VALID"),
    "three": ((2, 6, 7, 8, 16), (2, 2, 3), (2, 1, 2), "SAME"),
    "one row": ((2, 1, 40, 16), (1, 5), (1, 3), "SAME"),
}


def _random(shape, dtype=np.float32) -> np.ndarray:
    return np.random.RandomState(sum(shape)).standard_normal(shape).astype(dtype)


def _passes(pool: str, dtype=np.float32):
    shape, window, strides, padding = POOLS[pool]
    attrs = {"ksize": (1, *window, 1), "strides": (1, *strides, 1), "padding": padding}
    x = _random(shape, dtype)
    y = jax.jit(lambda x: pool_kernels.max_pool(x, **attrs))(x)
    dy = _random(y.shape, dtype)
    return {
        "maximum": lambda: pool_kernels.max_pool(x, **attrs),
        "mean": lambda: pool_kernels.avg_pool(x, **attrs),
        "of maximum": lambda: pool_kernels.max_pool_grad(x, y, dy, **attrs),
        "of mean": lambda: pool_kernels.avg_pool_grad(x.shape, dy, **attrs),
    }


def _both(function, monkeypatch) -> tuple[np.ndarray, np.ndarray, bool]:
    """The results with the library and without, and whether the library took it."""
    called = []
    original = pool_native._called

    def counted(*args):
        result = original(*args)
        called.append(result is not None)
        return result

    monkeypatch.setattr(pool_native, "_called", counted)
    got = np.asarray(jax.jit(function)())
    monkeypatch.setattr(flags, "native", "")
    return got, np.asarray(jax.jit(lambda: function())()), any(called)


PARTS = ("maximum", "mean", "of maximum", "of mean")


@pytest.mark.parametrize(("pool", "part"), list(itertools.product(POOLS, PARTS)))
def test_pools_are_those_of_xla(pool, part, monkeypatch):
    monkeypatch.setattr(pool_native, "_LEAST", 0)
    got, want, called = _both(_passes(pool)[part], monkeypatch)
    assert called
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("part", PARTS)
def test_pools_in_bfloat16_are_those_of_xla(part, monkeypatch):
    monkeypatch.setattr(pool_native, "_LEAST", 0)
    got, want, _ = _both(_passes("overlapping", ml_dtypes.bfloat16)[part], monkeypatch)
    assert got.dtype == want.dtype == ml_dtypes.bfloat16
    got, want = got.astype(np.float32), want.astype(np.float32)
    np.testing.assert_allclose(got, want, rtol=2.0**-6, atol=2.0**-6)


@pytest.mark.parametrize("values", ["ties", "nan", "all nan", "low", "high"])
def test_maxima_of_odd_values_are_those_of_xla(values, monkeypatch):
    monkeypatch.setattr(pool_native, "_LEAST", 0)
    x = _random((2, 9, 11, 16))
    if values == "ties":
        x = np.round(x)
    elif values == "nan":
        x[:, ::2, ::3] = np.nan
    else:
        x[:] = {"all nan": np.nan, "low": -np.inf, "high": np.inf}[values]
    attrs = {"ksize": (1, 3, 3, 1), "strides": (1, 2, 2, 1), "padding": "SAME"}
    got, want, called = _both(lambda: pool_kernels.max_pool(x, **attrs), monkeypatch)
    assert called
    np.testing.assert_array_equal(got, want)


def test_the_gradient_goes_to_the_first_of_equal_maxima(monkeypatch):
    monkeypatch.setattr(pool_native, "_LEAST", 0)
    x = np.round(_random((2, 9, 11, 16)))
    attrs = {"ksize": (1, 3, 3, 1), "strides": (1, 2, 2, 1), "padding": "SAME"}
    y = np.asarray(jax.jit(lambda: pool_kernels.max_pool(x, **attrs))())
    dy = _random(y.shape)
    got, want, called = _both(lambda: pool_kernels.max_pool_grad(x, y, dy, **attrs), monkeypatch)
    assert called
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("shape", "window", "strides"),
    [
        ((2, 8, 8, 16), (1, 2, 2, 2), (1, 2, 2, 2)),  # over channels
        ((2, 16, 8, 8), (1, 1, 2, 2), (1, 1, 2, 2)),  # channels first
        ((0, 8, 8, 16), (1, 2, 2, 1), (1, 2, 2, 1)),  # nothing
    ],
)
@pytest.mark.parametrize("kernel", ["max_pool", "avg_pool"])
def test_other_pools_go_to_xla(shape, window, strides, kernel, monkeypatch):
    monkeypatch.setattr(pool_native, "_LEAST", 0)
    attrs = {"ksize": window, "strides": strides, "padding": "VALID"}
    pool = getattr(pool_kernels, kernel)
    got, want, called = _both(lambda: pool(_random(shape), **attrs), monkeypatch)
    assert not called
    np.testing.assert_array_equal(got, want)
