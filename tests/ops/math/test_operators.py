"""Python's operators on tensors: results, types, names, and what they refuse."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import headrace as tf


@pytest.fixture(autouse=True)
def graph() -> Iterator[tf.Graph]:
    graph = tf.Graph()
    with graph.as_default():
        yield graph


def run(tensor: Any) -> Any:
    with tf.Session() as session:
        return session.run(tensor)


X, Y = np.float32([7.5, -7.5, 2.0]), np.float32([2.0, 2.0, -3.0])
ARITHMETIC = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.floordiv,
    operator.mod,
]
COMPARE = [operator.lt, operator.le, operator.gt, operator.ge]


@pytest.mark.parametrize("function", ARITHMETIC + COMPARE)
def test_both_sides_take_plain_values(function: Callable[..., Any]) -> None:
    x = tf.constant(X)
    tensors = [function(x, tf.constant(Y)), function(x, Y), function(Y, x), function(x, 2.0)]
    expected = [function(X, Y), function(X, Y), function(Y, X), function(X, np.float32(2))]
    for got, want in zip(run(tensors), expected, strict=True):
        np.testing.assert_array_equal(got, want)


def test_power_and_unary() -> None:
    x = tf.constant(np.abs(X))
    results = run([x**2, 2**x, -x, abs(-x)])
    for got, want in zip(results, [X**2, 2 ** np.abs(X), -np.abs(X), np.abs(X)], strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6)


def test_true_division_of_integers_gives_floats() -> None:
    wide = tf.constant([7, -7]) / 2
    narrow = tf.constant([7, -7], tf.int16) / tf.constant([2, 2], tf.int16)
    assert (wide.dtype, narrow.dtype) == (tf.float64, tf.float32)
    np.testing.assert_array_equal(run(wide), [3.5, -3.5])
    np.testing.assert_array_equal(run(tf.constant([7, -7]) // 2), [3, -4])
    np.testing.assert_array_equal(run(tf.div(tf.constant([7, -7]), 2)), [3, -4])


def test_logic_on_booleans_and_bits_on_integers() -> None:
    p, q = tf.constant([True, True, False]), tf.constant([True, False, False])
    i = tf.constant([12, 10])
    got = run([p & q, p | q, p ^ q, ~p, i & 6, i | 1, i ^ 6, ~i])
    want: list[Any] = [
        [True, False, False],
        [True, True, False],
        [False, True, False],
        [False, False, True],
        [4, 2],
        [13, 11],
        [10, 12],
        [-13, -11],
    ]
    for a, b in zip(got, want, strict=True):
        np.testing.assert_array_equal(a, b)


def test_matrix_product() -> None:
    a, b = tf.constant([[1, 2], [3, 4]]), tf.constant([[1], [2]])
    np.testing.assert_array_equal(run(a @ b), [[5], [11]])


def test_equality_is_identity() -> None:
    x = tf.constant(1.0)
    y = tf.constant(1.0)
    assert x == x
    assert x != y
    assert len({x, y}) == 2


def test_names_are_those_of_tensorflow() -> None:
    x = tf.constant([1.0])
    assert [t.op.name for t in (x + x, x - x, x * x, x / x, x // x, x % x, x**x)] == [
        "add",
        "sub",
        "mul",
        "truediv",
        "floordiv",
        "mod",
        "pow",
    ]
    y = x + 1.0
    assert y.op.name == "add_1"
    assert y.op.inputs[1].name == "add_1/y:0"
    assert (-x).op.name == "Neg"
    assert (x < x).op.name == "Less"
    assert tf.add(x, x).op.name == "Add_2"  # as names differ by more than case
    assert tf.matmul([[1.0]], [[1.0]]).op.name == "MatMul"
    assert tf.reduce_sum(x).op.name == "Sum"
    assert tf.div_no_nan(x, x).op.name == "div_no_nan"


def test_operands_of_other_types_are_refused() -> None:
    i, f = tf.constant([1]), tf.constant([1.0])
    with pytest.raises(TypeError, match=r"float32 that does not match type int32"):
        i + f
    with pytest.raises(TypeError):
        i + 1.5
    with pytest.raises(TypeError, match="same dtype"):
        i / f


def test_shapes_that_do_not_fit_are_named() -> None:
    with pytest.raises(ValueError, match=r"2 and 3\. Incompatible shapes: \[2\] vs\. \[3\]"):
        tf.constant([1.0, 2.0]) + tf.constant([1.0, 2.0, 3.0])
    x = tf.placeholder(tf.float32, [None])
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match="hape"):
        session.run(x + tf.constant([1.0, 2.0, 3.0]), {x: [1.0, 2.0]})


@pytest.mark.parametrize("function", [operator.floordiv, operator.mod, tf.truncatediv, tf.div])
def test_integers_divided_by_zero_fail(function: Callable[..., Any]) -> None:
    x, y = tf.placeholder(tf.int32, [None]), tf.placeholder(tf.int32, [None])
    quotient = function(x, y)
    with tf.Session() as session:
        for _ in range(2):  # interpreted, then compiled
            with pytest.raises(tf.errors.InvalidArgumentError, match="Integer division by zero"):
                session.run(quotient, {x: [1, 2], y: [1, 0]})
        assert session.run(quotient, {x: [6], y: [3]})[0] in (2, 0)


def test_negative_powers_of_integers_fail() -> None:
    x = tf.constant([2]) ** tf.placeholder_with_default(tf.constant([-1]), [1])
    with pytest.raises(tf.errors.InvalidArgumentError, match="negative integer powers"):
        run(x)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_cubes_of_special_values(dtype: Any, interpret: str) -> None:
    values = np.array([-np.inf, -2, -0.0, 0, 0.5, 1e3, 6e4, np.inf, np.nan], dtype)
    x, cube = tf.placeholder(dtype, [None]), tf.placeholder(dtype, [])
    with np.errstate(over="ignore"), tf.Session() as session:
        fixed, fed = session.run([x**3, x**cube], {x: values, cube: 3})
        expected = values * values * values
    for found in (fixed, fed):
        np.testing.assert_allclose(found, expected, 2e-3 if dtype == np.float16 else 1e-6)
        np.testing.assert_array_equal(np.signbit(found[:4]), np.signbit(expected[:4]))
