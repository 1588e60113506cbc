"""Stacks of tiny matrices are multiplied term by term: what XLA calls its library for."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import headrace as tf
from headrace.ops.math import products
from headrace.settings import flags


@pytest.fixture(autouse=True)
def _by_xla_alone(monkeypatch):
    monkeypatch.setattr(flags, "native", "")


def product(a_across: bool, b_across: bool, make: Any = products.dot_general) -> Any:
    def of(a: Any, b: Any) -> Any:
        rank = len(a.shape)
        stack = tuple(range(rank - 2))
        contracted = ((rank - 2 if a_across else rank - 1,), (rank - 1 if b_across else rank - 2,))
        return make(a, b, (contracted, (stack, stack)))

    return of


def operands(
    stack: tuple[int, ...],
    sizes: tuple[int, int, int],
    across: tuple[bool, bool],
    dtype: Any = np.float32,
) -> list[np.ndarray]:
    m, k, n = sizes
    shapes = ((k, m) if across[0] else (m, k)), ((n, k) if across[1] else (k, n))
    rng = np.random.default_rng(5)
    return [rng.standard_normal((*stack, *shape)).astype(dtype) for shape in shapes]


def primitives(function: Any, *values: Any) -> set[str]:
    jaxpr = jax.make_jaxpr(function)(*values)
    return {equation.primitive.name for equation in jaxpr.jaxpr.eqns}


@pytest.mark.parametrize("across", [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize("sizes", [(4, 4, 4), (3, 8, 5), (16, 8, 1), (1, 8, 16), (9, 1, 20)])
@pytest.mark.parametrize("stack", [(20_000,), (3, 7_000)])
def test_tiny_matrices_agree_with_numpy(
    stack: tuple[int, ...], sizes: tuple[int, int, int], across: tuple[bool, bool]
) -> None:
    a, b = operands(stack, sizes, across)
    want = (a.swapaxes(-1, -2) if across[0] else a) @ (b.swapaxes(-1, -2) if across[1] else b)
    assert "dot_general" not in primitives(product(*across), a, b)
    np.testing.assert_allclose(jax.jit(product(*across))(a, b), want, 1e-5, 1e-5)


@pytest.mark.parametrize(
    ("stack", "sizes", "dtype"),
    [
        ((100,), (16, 16, 16), np.float32),  # few
        ((600,), (64, 64, 64), np.float32),  # large
        ((600,), (4, 300, 4), np.float32),  # long
        ((600,), (1, 1, 1), np.float32),  # little work
        ((0,), (4, 4, 4), np.float32),
        ((20_000,), (4, 0, 4), np.float32),
        ((20_000,), (4, 4, 4), jnp.bfloat16),  # rounded at each term
        ((20_000,), (4, 4, 4), np.int32),
    ],
)
def test_others_are_left_to_xla(stack: tuple[int, ...], sizes: Any, dtype: Any) -> None:
    values = operands(stack, sizes, (False, False), dtype)
    assert "dot_general" in primitives(product(False, False), *values)


def test_nan_and_infinities_stay_in_their_matrix() -> None:
    a, b = operands((20_000,), (4, 4, 4), (False, False))
    a[7, 1, 2], b[9, 0, 0] = np.nan, np.inf
    got = np.asarray(jax.jit(product(False, False))(a, b))
    np.testing.assert_array_equal(np.isfinite(got), np.isfinite(a @ b))


@pytest.mark.parametrize("as_einsum", [False, True])
def test_products_and_gradients_in_a_session(as_einsum: bool) -> None:
    a, b = operands((5_000,), (8, 8, 8), (False, False))
    g = np.random.default_rng(6).standard_normal((5_000, 8, 8)).astype(np.float32)
    x, y = tf.constant(a), tf.constant(b)
    z = tf.einsum("bij,bjk->bik", x, y) if as_einsum else tf.matmul(x, y)
    with tf.Session() as session:
        made = session.run([z, *tf.gradients(z, [x, y], grad_ys=tf.constant(g))])
    wanted = [a @ b, g @ b.swapaxes(1, 2), a.swapaxes(1, 2) @ g]
    for got, want in zip(made, wanted, strict=True):
        np.testing.assert_allclose(got, want, 1e-4, 1e-4)


@pytest.mark.parametrize("across", [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize("sizes", [(1000, 1, 600), (900, 4, 900), (100_000, 3, 8)])
def test_large_products_of_few_terms_are_added_up(
    sizes: tuple[int, int, int], across: tuple[bool, bool]
) -> None:
    a, b = operands((), sizes, across)
    want = (a.T if across[0] else a) @ (b.T if across[1] else b)
    assert "dot_general" not in primitives(product(*across), a, b)
    np.testing.assert_allclose(jax.jit(product(*across))(a, b), want, 1e-5, 1e-5)


@pytest.mark.parametrize("sizes", [(900, 9, 900), (100, 4, 100), (1000, 0, 600)])
def test_products_of_more_terms_or_fewer_elements_are_not(sizes: tuple[int, int, int]) -> None:
    a, b = operands((), sizes, (True, False))
    assert "dot_general" in primitives(product(True, False), a, b)


@pytest.mark.parametrize(
    ("sizes", "b_across", "turned"),
    [
        ((1024, 512, 2), False, True),  # a layer of two classes
        ((300, 60, 50), False, True),
        ((100, 60, 50), False, False),  # nearly square
        ((2048, 16, 500), False, False),  # the result is what is large
        ((7, 300, 40), False, False),  # what lies across is small
        ((7, 300, 40), True, True),
        ((500, 10, 500), True, False),
        ((0, 10, 0), True, True),
    ],
)
def test_what_lies_across_changes_places(sizes: Any, b_across: bool, turned: bool) -> None:
    a, b = operands((), sizes, (True, b_across))
    of = product(True, b_across)
    assert ("optimization_barrier" in primitives(of, a, b)) is turned
    np.testing.assert_allclose(jax.jit(of)(a, b), a.T @ (b.T if b_across else b), 1e-4, 1e-4)


def test_training_with_few_rows_repeats_what_numpy_computes() -> None:
    """One step on a layer whose gradient is a sum of terms, and on one whose gradient is turned."""
    rng = np.random.default_rng(1)
    shapes = ((4, 800), (800, 700), (700, 3))
    x, first, second = (rng.standard_normal(shape).astype(np.float32) for shape in shapes)
    one, two = tf.Variable(first), tf.Variable(second)
    train = tf.train.GradientDescentOptimizer(1e-3).minimize(
        tf.nn.l2_loss(tf.matmul(tf.matmul(x, one), two))
    )
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train)
        got = session.run([one, two])
    hidden = x @ first
    back = hidden @ second
    wanted = first - 1e-3 * x.T @ (back @ second.T), second - 1e-3 * hidden.T @ back
    for value, want in zip(got, wanted, strict=True):
        np.testing.assert_allclose(value, want, 1e-3, 2e-2)
