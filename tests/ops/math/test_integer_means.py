"""Means of integers do not leave their type, whatever they are the means of."""

from __future__ import annotations

from fractions import Fraction
from math import trunc

import numpy as np
import pytest

import headrace as tf

INTEGERS = ("uint8", "int8", "uint16", "int16", "int32", "int64", "uint32", "uint64")


def run(fetches, feed=None):
    with tf.Session() as sess:
        return sess.run(fetches, feed)


def extremes(dtype, count=41):
    """Numbers at both ends of the type, and some between."""
    info = np.iinfo(dtype)
    ends = [info.max, info.min, info.max - 1, info.min + 1, 3, 0]
    return np.array([ends[i % len(ends)] for i in range(count)], dtype)


def exact(values):
    values = [int(v) for v in values]
    return trunc(Fraction(sum(values), len(values)))


def test_the_mean_of_many_bytes(interpret):
    x = tf.placeholder(tf.uint8, [784])
    assert run(tf.reduce_mean(x), {x: np.full(784, 100, np.uint8)}) == 100


@pytest.mark.parametrize("dtype", INTEGERS)
def test_means_are_exact(dtype, interpret):
    values = extremes(dtype)
    top = np.full(7, np.iinfo(dtype).max, dtype)
    x, y = tf.placeholder(dtype, [41]), tf.placeholder(dtype, [7])
    got = run([tf.reduce_mean(x), tf.reduce_mean(y), tf.reduce_mean(-values)], {x: values, y: top})
    assert got[0] == exact(values)
    assert got[1] == np.iinfo(dtype).max
    assert got[0].dtype == dtype
    rows = run(tf.reduce_mean(tf.reshape(x[:40], [4, 10]), 1, keepdims=True), {x: values})
    assert rows.ravel().tolist() == [exact(r) for r in values[:40].reshape(4, 10)]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_segment_means_are_exact(dtype, interpret):
    values, ids = extremes(dtype), np.sort(np.arange(41) % 5)
    x = tf.placeholder(dtype, [41])
    got = run(tf.segment_mean(x, ids), {x: values})
    assert got.tolist() == [exact(values[ids == i]) for i in range(5)]
    assert got.dtype == dtype


@pytest.mark.parametrize("dtype", INTEGERS)
def test_unsorted_segment_means_are_floats(dtype, interpret):
    values, ids = extremes(dtype), np.arange(41) % 5
    x = tf.placeholder(dtype, [41])
    mean, root = tf.unsorted_segment_mean(x, ids, 5), tf.unsorted_segment_sqrt_n(x, ids, 5)
    got, rooted = run([mean, root], {x: values})
    want = [float(Fraction(sum(map(int, values[ids == i])), sum(ids == i))) for i in range(5)]
    np.testing.assert_allclose(got, want, 1e-6, np.iinfo(dtype).max * 1e-7)
    counts = np.sqrt(np.bincount(ids))
    np.testing.assert_allclose(rooted, want * counts, 1e-6, np.iinfo(dtype).max * 1e-6)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_variances_do_not_overflow(dtype, interpret):
    x = tf.placeholder(dtype, [4])
    small = np.array([2, 4, 4, 6], dtype)
    assert run(tf.nn.moments(x, [0]), {x: small}) == (4, 2)
    large = np.array([100_000, -100_000] * 2, dtype)
    mean, variance = run(tf.nn.moments(x, [0]), {x: large})
    assert mean == 0
    assert variance == min(10**10, np.iinfo(dtype).max)


def test_norms_of_integers(interpret):
    x = tf.placeholder(tf.uint8, [2])
    norm = tf.math.reduce_euclidean_norm(x)
    assert run(norm, {x: [90, 120]}) == 150
    assert run(norm, {x: [255, 255]}) == 255


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_sums_of_short_floats_in_segments(dtype, interpret):
    x = tf.placeholder(dtype, [5000])
    ids = np.zeros(5000, np.int32)
    sums = [tf.segment_sum(x, ids), tf.unsorted_segment_sum(x, ids, 1), tf.segment_mean(x, ids)]
    got = run(sums, {x: np.ones(5000, np.float32)})
    assert got[2] == 1
    np.testing.assert_allclose([float(g[0]) for g in got[:2]], 5000, 4e-3)


def test_sums_keep_their_type(interpret):
    x = tf.placeholder(tf.uint8, [3])
    total = run(tf.reduce_sum(x), {x: [200, 100, 1]})
    assert total.dtype == np.uint8
    assert total == 45
