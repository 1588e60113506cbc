"""Products of matrices by oneDNN give what XLA's give, in float32 and bfloat16."""

from __future__ import annotations

import itertools

import jax
import ml_dtypes
import numpy as np
import pytest

import headrace as tf
from headrace import native
from headrace.ops.math import matmul, product_native
from headrace.settings import flags

pytestmark = pytest.mark.skipif(
    native.library() is None, reason="the native library is not built (make native)"
)

#: (stack, rows, terms, columns)
SIZES = (
    ((), 33, 70, 65),
    ((3,), 16, 40, 24),
    ((2, 2), 20, 9, 31),
    ((), 4, 512, 4),
    ((), 300, 4, 5),
)


def _random(*shape: int) -> np.ndarray:
    return np.random.RandomState(sum(shape)).standard_normal(shape).astype(np.float32)


def _counted(monkeypatch) -> list[bool]:
    """Whether the library took each product that was traced."""
    called: list[bool] = []
    original = product_native.product

    def counted(*args):
        result = original(*args)
        called.append(result is not None)
        return result

    monkeypatch.setattr(product_native, "product", counted)
    return called


def _product(a, b, **across) -> np.ndarray:
    with tf.Graph().as_default(), tf.Session() as session:
        x, y = tf.placeholder(a.dtype, a.shape), tf.placeholder(b.dtype, b.shape)
        return session.run(tf.matmul(x, y, **across), {x: a, y: b})


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
@pytest.mark.parametrize(("sizes", "across"), list(itertools.product(SIZES, range(4))))
def test_products_are_those_of_xla(sizes, across, dtype, monkeypatch):
    monkeypatch.setattr(flags, "interpret", "never")
    monkeypatch.setattr(product_native, "_LEAST", 0)
    called = _counted(monkeypatch)
    stack, rows, terms, columns = sizes
    flips = {"transpose_a": bool(across & 1), "transpose_b": bool(across & 2)}
    a = _random(*stack, *((terms, rows) if across & 1 else (rows, terms))).astype(dtype)
    b = _random(*stack, *((columns, terms) if across & 2 else (terms, columns))).astype(dtype)
    got = _product(a, b, **flips)
    if not called[0]:
        assert dtype is not np.float32  # a processor without instructions for bfloat16
    monkeypatch.setattr(flags, "native", "")
    want = _product(a, b, **flips)
    assert got.dtype == want.dtype == dtype
    size = np.abs(want.astype(np.float32)).max()
    step = 1e-5 if dtype is np.float32 else 2.0**-7
    np.testing.assert_allclose(
        got.astype(np.float32), want.astype(np.float32), rtol=step, atol=step * size
    )


@pytest.mark.parametrize(
    "sizes", [(0, 64, 64), (64, 0, 64), (64, 64, 1), (8, 8, 8), (4, 1100, 1100)]
)
def test_empty_ones_vectors_and_small_ones_go_to_xla(sizes, monkeypatch):
    monkeypatch.setattr(flags, "interpret", "never")
    called = _counted(monkeypatch)
    rows, terms, columns = sizes
    a, b = _random(rows, terms), _random(terms, columns)
    np.testing.assert_allclose(_product(a, b), a @ b, rtol=1e-4, atol=1e-3)
    assert not any(called)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_stays_in_its_row(value, monkeypatch):
    monkeypatch.setattr(flags, "interpret", "never")
    called = _counted(monkeypatch)
    a, b = _random(64, 64), _random(64, 64)
    a[3, 5] = value
    got = _product(a, b)
    assert called == [True]
    assert not np.isfinite(got[3]).any()
    assert np.isfinite(np.delete(got, 3, 0)).all()


def test_a_stack_of_products_in_a_loop_is_right(monkeypatch):
    monkeypatch.setattr(flags, "interpret", "never")
    called = _counted(monkeypatch)
    a, b = _random(5, 64, 64), _random(64, 64)
    with tf.Graph().as_default(), tf.Session() as session:
        got = session.run(tf.map_fn(lambda row: tf.matmul(row, b), tf.constant(a)))
    assert any(called)
    np.testing.assert_allclose(got, a @ b, rtol=1e-4, atol=1e-4)


def test_programs_for_other_machines_have_no_part_of_it():
    a, b = _random(64, 64), _random(64, 64)

    def text() -> str:
        def product(x, y):
            return matmul._matmul(x, y, transpose_a=False, transpose_b=False)

        return jax.jit(product).lower(a, b).as_text()

    assert native.PRODUCT in text()
    with native.portable():
        assert native.PRODUCT not in text()
