"""Math functions: old argument names, axes, messages, and gradients that add few ops."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace.settings import flags


@pytest.fixture(autouse=True)
def graph() -> Iterator[tf.Graph]:
    graph = tf.Graph()
    with graph.as_default():
        yield graph


def run(tensor: Any, feeds: Any = None) -> Any:
    with tf.Session() as session:
        return session.run(tensor, feeds)


X = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_old_argument_names_of_reductions() -> None:
    x = tf.constant(X)
    got = run([tf.reduce_sum(x, reduction_indices=1, keep_dims=True), tf.argmax(x, dimension=1)])
    np.testing.assert_array_equal(got[0], X.sum(1, keepdims=True))
    np.testing.assert_array_equal(got[1], [2, 2])
    with pytest.raises(ValueError, match="both 'reduction_indices' and 'axis'"):
        tf.reduce_sum(x, axis=0, reduction_indices=0)


def test_reductions_of_unknown_rank() -> None:
    x = tf.placeholder(tf.float32)
    total, mean = tf.reduce_sum(x), tf.reduce_mean(x, 1)
    assert total.shape == ()
    got = run([total, mean, tf.gradients(mean, x)[0]], {x: X})
    assert got[0] == 15
    np.testing.assert_array_equal(got[1], [1, 4])
    np.testing.assert_allclose(got[2], np.full((2, 3), 1 / 3), rtol=1e-6)


def test_axes_that_do_not_exist() -> None:
    x = tf.constant(X)
    with pytest.raises(ValueError, match="Invalid reduction dimension 2 for input with 2"):
        tf.reduce_sum(x, 2)
    with pytest.raises(ValueError, match="duplicate"):
        tf.reduce_sum(x, [0, -2])
    with pytest.raises(ValueError, match=r"range \[-2, 2\)"):
        tf.argmax(x, 5)


def test_axes_can_be_fed() -> None:
    x, axis = tf.constant(X), tf.placeholder(tf.int32, [1])
    total = tf.reduce_sum(x, axis)
    assert total.shape.ndims == 1
    with tf.Session() as session:
        np.testing.assert_array_equal(session.run(total, {axis: [0]}), X.sum(0))
        np.testing.assert_array_equal(session.run(total, {axis: [1]}), X.sum(1))


def test_matrices_that_do_not_fit() -> None:
    x = tf.constant(X)
    with pytest.raises(ValueError, match=r"3 and 2 for shapes \(2, 3\) and \(2, 3\)"):
        tf.matmul(x, x)
    with pytest.raises(ValueError, match="Only one of transpose_a and adjoint_a"):
        tf.matmul(x, x, transpose_a=True, adjoint_a=True)
    p = tf.placeholder(tf.float32, [None, None])
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"\(2, 3\) and \(2, 3\) \(inputs: "):
        run(tf.matmul(p, p), {p: X})


@pytest.mark.parametrize(
    ("equation", "message"),
    [
        ("ij,jk->ijk->k", "Invalid character"),
        ("ij->jj", "repeats a label"),
        ("ij->k", "is in no input"),
        ("ijk->k", "do not fit an input of shape"),
        ("i1->i", "Invalid character"),
    ],
)
def test_malformed_einsum(equation: str, message: str) -> None:
    inputs = [tf.constant(X)] * (equation.partition("->")[0].count(",") + 1)
    with pytest.raises(ValueError, match=message):
        tf.einsum(equation, *inputs)


def test_tensordot_axes() -> None:
    a, b = tf.constant(np.ones((2, 3, 4), np.float32)), tf.constant(np.ones((4, 3, 5), np.float32))
    assert tf.tensordot(a, b, [[2, 1], [0, 1]]).shape == (2, 5)
    assert tf.tensordot(a, b, 0).shape == (2, 3, 4, 4, 3, 5)
    with pytest.raises(ValueError, match="Different number of contraction axes"):
        tf.tensordot(a, b, [[2, 1], [0]])


def test_range_infers_the_widest_type() -> None:
    assert tf.range(3).dtype == tf.int32
    assert tf.range(0.0, 3).dtype == tf.float32
    assert tf.range(3).shape == (3,)
    assert tf.range(tf.constant(3, tf.int64)).dtype == tf.int64
    with pytest.raises(ValueError, match="delta != 0"):
        tf.range(0, 3, 0)
    with pytest.raises(ValueError, match="start <= limit"):
        tf.range(3, 0)


def test_top_k_larger_than_the_row() -> None:
    from headrace.ops.math.cumulative import top_k

    with pytest.raises(ValueError, match="last dimension >= k = 4 but is 3"):
        top_k(tf.constant(X), 4)


def test_casting_a_string_is_refused() -> None:
    with pytest.raises(ValueError, match="string to float32 is not supported"):
        tf.cast(tf.constant("1"), tf.float32)


def test_cast_to_the_same_type_adds_nothing(graph: tf.Graph) -> None:
    x = tf.constant(X)
    assert tf.cast(x, tf.float32) is x
    assert tf.conj(x) is x
    assert len(graph.get_operations()) == 1


def test_saturating_to_the_greatest_integer() -> None:
    x = tf.constant([3e9, -3e9, 1.5])
    np.testing.assert_array_equal(run(tf.saturate_cast(x, tf.int32)), [2147483520, -(2**31), 1])


def test_wrong_add_n() -> None:
    with pytest.raises(ValueError, match="at least one Tensor"):
        tf.add_n([])
    with pytest.raises(ValueError, match="not compatible"):
        tf.add_n([tf.constant([1.0]), tf.constant([1.0, 2.0])])


def _added_by_gradient(y: tf.Tensor, xs: list[tf.Tensor]) -> list[str]:
    graph = y.graph
    grad = tf.ones_like(y, name="seed")
    before = len(graph.get_operations())
    tf.gradients(y, xs, grad)
    return [op.type for op in graph.get_operations()[before:]]


def test_equal_shapes_need_no_reduction() -> None:
    x, y = tf.constant(X), tf.constant(X)
    assert _added_by_gradient(x + y, [x, y]) == []
    assert _added_by_gradient(x * y, [x, y]) == ["Mul", "Mul"]


def test_a_bias_needs_one_sum() -> None:
    x, bias = tf.placeholder(tf.float32, [None, 3]), tf.constant(X[0])
    assert _added_by_gradient(x + bias, [x, bias]) == ["Const", "Sum"]


def test_unknown_shapes_are_reduced_when_run() -> None:
    x, y = tf.placeholder(tf.float32), tf.placeholder(tf.float32)
    assert _added_by_gradient(x * y, [x, y]) == ["Mul", "Mul", "SumLike", "SumLike"]
    grads = tf.gradients(x * y, [x, y])
    got = run(grads, {x: X, y: X[:, :1]})
    np.testing.assert_array_equal(got[0], np.broadcast_to(X[:, :1], (2, 3)))
    np.testing.assert_array_equal(got[1], X.sum(1, keepdims=True))


def test_arguments_by_name() -> None:
    assert run(tf.atan2(y=1.0, x=0.0)) == pytest.approx(np.pi / 2)
    assert run(tf.igammac(a=np.inf, x=2.0)) == 1.0
    assert run(tf.polygamma(a=1.0, x=np.inf)) == 0.0
    assert run(tf.zeta(x=2.0, q=1.0)) == pytest.approx(np.pi**2 / 6)


def test_slopes_where_functions_are_cut() -> None:
    x, y = tf.constant([2.0, -np.inf]), tf.constant([0.0, 0.0])
    slopes = tf.gradients(tf.math.multiply_no_nan(x, y), [x, y], grad_ys=[[1.0, 0.0]])
    assert [s.tolist() for s in run(slopes)] == [[0.0, 0.0], [2.0, 0.0]]
    start = tf.constant(-29.7, tf.float64)  # trigamma(x) + trigamma(1 - x) = (pi / sin(pi x))**2
    reflected = (np.pi / np.sin(np.pi * 29.7)) ** 2 - run(tf.polygamma(np.float64(1), 30.7))
    assert run(tf.gradients(tf.digamma(start), start))[0] == pytest.approx(reflected, rel=1e-5)
    rows = tf.constant([-np.inf, -np.inf, 1.0, 2.0])
    sums = tf.math.cumulative_logsumexp(rows, reverse=True)
    assert np.isfinite(run(tf.gradients(sums[0], rows)[0])).all()


def test_extreme_quantiles() -> None:
    quantiles = run(tf.math.ndtri(np.float64([1e-40, 0.0, 1.0])))
    np.testing.assert_allclose(quantiles, [-13.310921371425, -np.inf, np.inf])


def test_sort_of_unknown_rank() -> None:
    x = tf.placeholder(tf.int32, None)
    assert run(tf.sort(x), {x: [[3, 1], [0, 2]]}).tolist() == [[1, 3], [0, 2]]
    with pytest.raises(ValueError, match="needs a tensor of known rank"):
        tf.sort(x, axis=0)


def test_search_in_empty_rows() -> None:
    found = tf.searchsorted(tf.zeros([0], tf.int32), [4, 4, 0])
    assert run(found).tolist() == [0, 0, 0]


def test_padding_of_a_scalar() -> None:
    x, none = tf.placeholder(tf.float32, []), tf.constant(np.zeros((0, 2), np.int32))
    assert run(tf.pad(x, none), {x: 2.0}) == 2.0


@pytest.mark.parametrize("axis", [0, 1])
def test_positions_of_extremes_pass_nan_by(axis, monkeypatch):
    nan, inf = np.nan, np.inf
    x = np.array([[nan, 1, 3, 3], [2, nan, -inf, 5], [nan, nan, nan, nan], [-inf, nan, inf, nan]])
    for mode in ("always", "never"):
        monkeypatch.setattr(flags, "interpret", mode)
        with tf.Graph().as_default():
            found = run([tf.argmax(tf.constant(x), axis), tf.argmin(tf.constant(x), axis)])
        lows = np.where(np.isnan(x), -inf, x), np.where(np.isnan(x), inf, x)
        assert found[0].tolist() == lows[0].argmax(axis).tolist()
        assert found[1].tolist() == lows[1].argmin(axis).tolist()
