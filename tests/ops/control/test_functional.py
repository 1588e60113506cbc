"""map_fn, vectorized_map, scan, foldl and foldr, compiled and interpreted."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as tf

pytestmark = pytest.mark.usefixtures("interpret")


def run(fetches, feeds=None):
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(fetches, feeds)


ELEMS = np.array([1, 2, 3, 4, 5, 6], np.int64)


def test_map_fn():
    np.testing.assert_array_equal(run(tf.map_fn(lambda x: x * x, ELEMS)), ELEMS**2)
    product = tf.map_fn(lambda x: x[0] * x[1], (ELEMS, -ELEMS), dtype=tf.int64)
    np.testing.assert_array_equal(run(product), -(ELEMS**2))
    both = tf.map_fn(lambda x: (x, -x), ELEMS, dtype=(tf.int64, tf.int64))
    assert isinstance(both, tuple)
    np.testing.assert_array_equal(run(both)[1], -ELEMS)


def test_map_fn_shapes():
    x = tf.placeholder(tf.float32, [None, 3])
    y = tf.map_fn(lambda row: tf.reduce_sum(row), x)
    assert y.shape.as_list() == [None]
    np.testing.assert_array_equal(run(y, {x: np.ones((2, 3))}), [3, 3])
    assert tf.map_fn(lambda row: row * 2, tf.zeros([4, 3])).shape.as_list() == [4, 3]


def test_map_fn_over_nothing():
    x = tf.placeholder(tf.float32, [None, 3])
    y = tf.map_fn(lambda row: tf.concat([row, row], 0), x)
    assert run(y, {x: np.zeros((0, 3))}).shape == (0, 6)


def test_map_fn_with_random_draws():
    draws = tf.map_fn(lambda x: x + tf.random_uniform([], seed=1), tf.zeros([4]))
    assert len(set(run(draws).tolist())) == 4


def test_vectorized_map():
    x = tf.placeholder(tf.float64, [None, 3])
    w = tf.constant([1.0, 2.0, 3.0], tf.float64)

    def of_row(row):
        total = tf.reduce_sum(row * w)
        return {"total": total, "grad": tf.gradients(tf.exp(total), row)[0], "size": tf.size(row)}

    found = tf.vectorized_map(of_row, x)
    rows = np.arange(6.0).reshape(2, 3) / 10
    got = run(found, {x: rows})
    np.testing.assert_allclose(got["total"], rows @ [1, 2, 3])
    np.testing.assert_allclose(got["grad"], np.exp(rows @ [1, 2, 3])[:, None] * [1, 2, 3])
    np.testing.assert_array_equal(got["size"], [3, 3])
    assert run(found, {x: rows[:0]})["grad"].shape == (0, 3)
    slope = tf.gradients(found["total"], x)[0]
    np.testing.assert_allclose(run(slope, {x: rows}), [[1, 2, 3]] * 2)


def test_vectorized_map_of_what_wants_an_order():
    draws = tf.vectorized_map(lambda x: x + tf.random_uniform([], seed=1), tf.zeros([4]))
    assert len(set(run(draws).tolist())) == 4
    v = tf.Variable(0.0)
    sums = tf.vectorized_map(lambda x: v.assign_add(x), tf.constant([1.0, 2.0, 3.0]))
    np.testing.assert_array_equal(run(sums), [1, 3, 6])
    # A loop with another number of rounds for each element.
    doubled = tf.vectorized_map(
        lambda x: tf.while_loop(lambda y: y < 100.0, lambda y: 2.0 * y, [x]),
        tf.constant([3.0, 70.0]),
    )
    np.testing.assert_array_equal(run(doubled), [192, 140])


def test_scan():
    sums = tf.scan(lambda a, x: a + x, ELEMS)
    np.testing.assert_array_equal(run(sums), [1, 3, 6, 10, 15, 21])
    backwards = tf.scan(lambda a, x: a + x, ELEMS, reverse=True)
    np.testing.assert_array_equal(run(backwards), [21, 20, 18, 15, 11, 6])
    started = tf.scan(lambda a, x: a - x[0] + x[1], (ELEMS + 1, ELEMS), np.array(0))
    np.testing.assert_array_equal(run(started), [-1, -2, -3, -4, -5, -6])


def test_scan_computes_fibonacci_numbers():
    initializer = (np.array(0), np.array(1))
    numbers = tf.scan(lambda a, _: (a[1], a[0] + a[1]), np.zeros(10), initializer)
    np.testing.assert_array_equal(run(numbers)[0], [1, 1, 2, 3, 5, 8, 13, 21, 34, 55])


def test_folds():
    x = tf.constant([1.0, 2.0, 4.0])
    assert run(tf.foldl(lambda a, e: a - e, x)) == -5.0
    assert run(tf.foldr(lambda a, e: a - e, x)) == 1.0
    assert run(tf.foldl(lambda a, e: a * 2 + e, x, initializer=1.0)) == 20.0
    nested = tf.foldr(lambda a, e: a + e["v"], {"v": x}, initializer=tf.zeros([]))
    assert run(nested) == 7.0


def test_variables_change_while_mapping():
    v = tf.Variable(0.0)
    y = tf.map_fn(lambda x: v.assign_add(x), tf.constant([1.0, 2.0, 3.0]))
    np.testing.assert_array_equal(run(y), [1, 3, 6])


def test_gradients():
    x = tf.placeholder(tf.float64, [4])
    w = tf.Variable(2.0, dtype=tf.float64)
    mapped = tf.reduce_sum(tf.map_fn(lambda e: w * e**3, x))
    scanned = tf.reduce_sum(tf.scan(lambda a, e: a * e * w, x))
    folded = tf.foldr(lambda a, e: a * e, x)
    data = np.array([1.0, 2.0, 3.0, 4.0])
    feeds = {x: data}
    np.testing.assert_allclose(run(tf.gradients(mapped, x)[0], feeds), 6 * data**2)
    assert run(tf.gradients(mapped, w)[0], feeds) == pytest.approx((data**3).sum())
    np.testing.assert_allclose(run(tf.gradients(folded, x)[0], feeds), 24 / data)
    # 1 + 2w + 6w^2 + 24w^3 at x0 = 1
    assert run(tf.gradients(scanned, w)[0], feeds) == pytest.approx(2 + 12 * 2 + 72 * 4)
    second = tf.gradients(tf.gradients(mapped, x)[0], x)[0]
    np.testing.assert_allclose(run(second, feeds), 12 * data)


def test_no_gradient_without_back_prop():
    x = tf.constant([1.0, 2.0])
    assert tf.gradients(tf.map_fn(lambda e: e * e, x, back_prop=False), x) == [None]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: tf.map_fn(1, ELEMS), TypeError, "fn must be callable"),
        (lambda: tf.map_fn(lambda x: x, 1.0), ValueError, "at least of rank 1"),
        (
            lambda: tf.map_fn(lambda x: tf.to_float(x), ELEMS),
            TypeError,
            "dtype is int64 but Op is trying to write dtype float32",
        ),
        (
            lambda: tf.map_fn(lambda x: x[0], (ELEMS, ELEMS[:3]), dtype=tf.int64),
            ValueError,
            "same first dimension",
        ),
        (lambda: tf.vectorized_map(2, ELEMS), TypeError, "fn must be callable"),
        (lambda: tf.vectorized_map(lambda x: x, 1.0), ValueError, "at least of rank 1"),
        (lambda: tf.scan(lambda a, x: (a, x), ELEMS), ValueError, "same nested structure"),
        (
            lambda: tf.foldl(lambda a, x: tf.concat([a, [x]], 0), ELEMS, np.array([0])),
            ValueError,
            "changes the shape",
        ),
    ],
)
def test_refuses(call, error, message):
    with pytest.raises(error, match=message):
        call()
