"""Reductions by vectors: any shape and axes, the values of XLA's own."""

from __future__ import annotations

import itertools
from functools import partial

import jax
import numpy as np
import pytest
from jax import lax

from headrace.executor.region_options import CPU_OPTIONS
from headrace.ops.core.reducing import extreme_in_vectors, in_vectors, position_in_vectors

#: Large enough to be folded; sizes that vectors divide, and odd ones.
SHAPES = (
    (150_000,),
    (96, 320),
    (331, 101),
    (512, 16),
    (400, 30),
    (35, 700),
    (4, 28, 28, 8),
    (3, 32, 50, 3),
    (4, 56, 56, 64),
    (8, 14, 14, 64),
    (2, 37, 37, 16),
    (2, 90, 2, 60),
    (1, 700, 1, 24),
)


def _all_axes(shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    axes = range(len(shape))
    return [c for n in range(1, len(shape) + 1) for c in itertools.combinations(axes, n)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_sums_and_extremes_of_all_axes(shape):
    x = np.random.RandomState(2).standard_normal(shape).astype("f")
    exact = x.astype(np.float64)
    all_axes = _all_axes(shape)

    @jax.jit
    def reduced(x):
        sums = [in_vectors(lax.reduce_sum, x, axes) for axes in all_axes]
        return sums, [extreme_in_vectors(lax.reduce_max, x, axes) for axes in all_axes]

    for axes, total, most in zip(all_axes, *reduced(x), strict=True):
        np.testing.assert_allclose(total, exact.sum(axes), rtol=1e-4, atol=2e-2)
        np.testing.assert_array_equal(most, x.max(axes))


def test_extremes_are_nan_where_an_element_is():
    x = np.zeros((600, 32), "f")
    x[3, 17] = np.nan
    all_axes = ((0,), (1,), (0, 1))

    # JAX's own choice of XLA's options loses them: programs of steps have others.
    @partial(jax.jit, compiler_options=CPU_OPTIONS)
    def extremes(x):
        most = [extreme_in_vectors(lax.reduce_max, x, axes) for axes in all_axes]
        return most, [extreme_in_vectors(lax.reduce_min, x, axes) for axes in all_axes]

    for axes, most, least in zip(all_axes, *extremes(x), strict=True):
        np.testing.assert_array_equal(most, x.max(axes))
        np.testing.assert_array_equal(least, x.min(axes))


@pytest.mark.parametrize("dtype", ["f", "i4", "u1"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_first_of_equal_extremes_is_found(shape, dtype):
    x = np.random.RandomState(6).randint(0, 9, shape).astype(dtype)  # many are equal
    if dtype == "f":
        x[x == 8] = np.inf
        x[0] = -np.inf  # a row of nothing else

    @partial(jax.jit, compiler_options=CPU_OPTIONS)
    def places(x):
        axes = range(len(shape))
        most = [position_in_vectors(lax.argmax, lax.reduce_max, x, axis) for axis in axes]
        return most, [position_in_vectors(lax.argmin, lax.reduce_min, x, axis) for axis in axes]

    for axis, (most, least) in enumerate(zip(*places(x), strict=True)):
        np.testing.assert_array_equal(most, x.argmax(axis))
        np.testing.assert_array_equal(least, x.argmin(axis))


def test_truths_and_products():
    x = np.ones((128, 128), bool)
    x[5, 7] = False
    assert not in_vectors(lax.reduce_and, x, (0, 1))
    assert in_vectors(lax.reduce_or, x, (0, 1))
    np.testing.assert_array_equal(in_vectors(lax.reduce_and, x, (1,)), x.all(1))
    factors = np.random.RandomState(3).choice([-1.0, 1.0], (64, 256)).astype("f")
    np.testing.assert_array_equal(in_vectors(lax.reduce_prod, factors, (1,)), factors.prod(1))


def test_a_sum_has_its_gradient_and_a_row_of_its_own_under_vmap():
    x = np.random.RandomState(4).standard_normal((90, 320)).astype("f")

    def loss(x):
        return in_vectors(lax.reduce_sum, x * x, (0, 1))

    np.testing.assert_allclose(jax.grad(loss)(x), 2 * x, rtol=1e-6)
    batch = np.stack([x, 2 * x])
    np.testing.assert_allclose(jax.vmap(loss)(batch), [loss(x), loss(2 * x)], rtol=1e-5)


def test_a_long_sum_rounds_less_than_one_element_after_the_other():
    x = np.full(1 << 22, 0.1, "f")
    exact = float(x[0]) * x.size
    error = abs(float(jax.jit(lambda x: in_vectors(lax.reduce_sum, x, (0,)))(x)) - exact) / exact
    assert error < 1e-5  # one sum of all is wrong by some hundredths
