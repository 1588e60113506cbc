"""Ops whose output shapes depend on data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace as tf


@pytest.fixture
def session() -> Any:
    with tf.Graph().as_default(), tf.Session() as opened:
        yield opened


def test_where_between_compiled_parts(session: Any) -> None:
    x = tf.placeholder(tf.float32, [None])
    doubled = tf.boolean_mask(x, x > 1) * 2
    total = tf.reduce_sum(doubled)
    for values in ([0.0, 2.0, 3.0], [1.0, 0.0], [5.0]):
        kept = [2 * v for v in values if v > 1]
        got, both = session.run([doubled, total], {x: values})
        np.testing.assert_array_equal(got, kept)
        assert both == sum(kept)


@pytest.mark.parametrize("shape", [(), (7,), (5, 9), (0, 4), (4, 0), (3, 4, 5)])
@pytest.mark.parametrize("kind", [np.bool_, np.float32, np.int64])
def test_places_of_any_shape_and_type(session: Any, shape: tuple[int, ...], kind: Any) -> None:
    values = np.random.RandomState(3).randint(0, 2, shape)
    x = np.asarray(values, kind)
    fed = tf.placeholder(x.dtype)
    places = session.run(tf.where(fed), {fed: x})
    assert places.dtype == np.int64
    np.testing.assert_array_equal(places, np.argwhere(x))


def test_where_shapes(session: Any) -> None:
    places = tf.where(tf.placeholder(tf.bool, [3, None]))
    assert places.shape.as_list() == [None, 2]
    assert places.dtype is tf.int64


def test_gradient_of_boolean_mask(session: Any) -> None:
    x = tf.placeholder(tf.float32, [2, 3])
    gradient = tf.gradients(tf.boolean_mask(x, x > 1) ** 2, x)[0]
    values = np.float32([[0, 2, 3], [4, 1, 0]])
    np.testing.assert_array_equal(
        session.run(gradient, {x: values}), np.where(values > 1, 2 * values, 0)
    )


def test_select_by_rows_and_by_scalar(session: Any) -> None:
    x, c = tf.constant([[1.0, 2.0], [3.0, 4.0]]), tf.placeholder(tf.bool)
    y = tf.where(c, x, -x)
    np.testing.assert_array_equal(session.run(y, {c: [True, False]}), [[1, 2], [-3, -4]])
    np.testing.assert_array_equal(session.run(y, {c: False}), [[-1, -2], [-3, -4]])
    gradient = tf.gradients(tf.where(tf.constant([True, False]), x, -x), x)[0]
    np.testing.assert_array_equal(session.run(gradient), [[1, 1], [-1, -1]])


def test_where_with_one_value() -> None:
    with tf.Graph().as_default(), pytest.raises(ValueError, match="both be non-None"):
        tf.where([True], [1])


def test_unique_keeps_the_order(session: Any) -> None:
    x = tf.placeholder(tf.int32, [None])
    y, idx, count = session.run(tf.unique_with_counts(x), {x: [7, 3, 7, 7, 1, 3]})
    assert (y.tolist(), idx.tolist(), count.tolist()) == ([7, 3, 1], [0, 1, 0, 0, 2, 1], [3, 2, 1])
    rows = tf.raw_ops.UniqueV2(tf.constant([[1, 2], [3, 4], [1, 2]]), tf.constant([0], tf.int64))
    y, idx = session.run(rows)
    assert (y.tolist(), idx.tolist()) == ([[1, 2], [3, 4]], [0, 1, 0])
    rows = tf.raw_ops.UniqueWithCountsV2(tf.constant([5, 5, 6]), tf.constant([], tf.int64))
    assert [r.tolist() for r in session.run(rows)] == [[5, 6], [0, 0, 1], [2, 1]]


def test_unique_of_nan(session: Any) -> None:
    y, idx = session.run(tf.unique(tf.constant([np.nan, 1.0, np.nan])))
    assert (y.size, idx.tolist()) == (3, [0, 1, 2])


def test_setdiff1d(session: Any) -> None:
    out, idx = session.run(tf.setdiff1d([5, 1, 5, 2], [1]))
    assert (out.tolist(), idx.tolist()) == ([5, 5, 2], [0, 2, 3])


def test_partition_stitch_and_gradient(session: Any) -> None:
    x, parts = tf.placeholder(tf.float32, [5, 2]), tf.placeholder(tf.int32, [5])
    pieces = tf.dynamic_partition(x, parts, 3)
    gradient = tf.gradients([pieces[0] * 2, pieces[2] * 3], x)[0]
    values = np.arange(10, dtype=np.float32).reshape(5, 2)
    feed = {x: values, parts: [2, 0, 1, 0, 2]}
    got, grad = session.run([pieces, gradient], feed)
    np.testing.assert_array_equal(got[2], values[[0, 4]])
    np.testing.assert_array_equal(grad[:, 0], [3, 2, 0, 2, 3])
    order = tf.dynamic_partition(tf.range(5), parts, 3)
    for stitch in (tf.dynamic_stitch, tf.parallel_dynamic_stitch):
        np.testing.assert_array_equal(session.run(stitch(order, pieces), feed), values)


def test_partition_out_of_range(session: Any) -> None:
    pieces = tf.dynamic_partition([1, 2], tf.placeholder_with_default([0, 9], [2]), 2)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"partitions\[1\] = 9"):
        session.run(pieces)


def test_bincount(session: Any) -> None:
    x = tf.placeholder(tf.int32, [None])
    assert session.run(tf.bincount(x), {x: [1, 1, 3]}).tolist() == [0, 2, 0, 1]
    weighted = tf.bincount(x, weights=tf.constant([0.5, 1.0, 2.0]), minlength=5)
    assert session.run(weighted, {x: [1, 1, 3]}).tolist() == [0, 1.5, 0, 2, 0]
