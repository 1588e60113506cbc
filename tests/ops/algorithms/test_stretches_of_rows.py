"""Passes over many rows, in stretches side by side: what they add up to, and what they refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace.ops.algorithms.blocks import on_all_cores
from headrace.ops.core import parallel
from headrace.ops.core.build import raw
from headrace.settings import flags

ROWS, DIMS, CLUSTERS = 20_011, 7, 5


def _rows(dtype: Any = np.float32) -> np.ndarray:
    return np.random.default_rng(1).standard_normal((ROWS, DIMS)).astype(dtype)


def _passes(points: Any) -> dict[str, Any]:
    """An op of each kind on these points."""
    one = tf.ones([CLUSTERS, DIMS], points.dtype)
    centers = points[:CLUSTERS]
    return {
        "k-means": raw.HeadraceNearestCenters(points, centers),
        "mixture": raw.HeadraceMixtureExpectation(points, one[:, 0] / CLUSTERS, centers, one),
    }


def _values(points: np.ndarray, name: str, known: bool) -> Any:
    with tf.Graph().as_default(), tf.Session() as sess:
        fed = tf.placeholder(points.dtype, [ROWS if known else None, DIMS])
        return sess.run(_passes(fed)[name], {fed: points})


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("name", ["k-means", "mixture"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_stretches_add_up_to_what_one_program_says(
    name: str, dtype: Any, known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    points = _rows(dtype)
    found = _values(points, name, known)
    monkeypatch.setattr(flags, "interpret", "never")
    expected = _values(points, name, known)
    for a, b in zip(found, expected, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-2 if dtype == np.float32 else 1e-9)


@pytest.mark.parametrize("count", [1, 3])
def test_neighbours_are_the_same_bit_for_bit(count: int) -> None:
    points = _rows()
    fed = tf.placeholder(tf.float32, [None, DIMS])
    near = raw.NearestNeighbors(fed, fed[:CLUSTERS], tf.constant(count, tf.int64))
    with tf.Session() as sess:
        found = sess.run(near, {fed: points})
    squares = ((points[:, None].astype(np.float64) - points[:CLUSTERS]) ** 2).sum(2)
    np.testing.assert_array_equal(found[0], np.argsort(squares, 1)[:, :count])
    np.testing.assert_allclose(found[1], np.sort(squares, 1)[:, :count], atol=1e-4)


@pytest.mark.parametrize("name", ["k-means", "mixture"])
def test_sums_do_not_depend_on_the_number_of_cores(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for cores in (1, 2, 7):
        monkeypatch.setattr(parallel, "available_cores", lambda n=cores: n)
        found.append(_values(_rows(), name, known=True))
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("row", [0, 4_097, 13_001, ROWS - 1])
@pytest.mark.parametrize(("name", "said"), [("k-means", "distance"), ("mixture", "probability")])
def test_the_first_bad_row_is_named(row: int, name: str, said: str) -> None:
    points = _rows()
    points[[row, ROWS - 1], 2] = np.nan
    with tf.Graph().as_default(), tf.Session() as sess:
        fed = tf.placeholder(tf.float32, [ROWS, DIMS])
        centers = tf.constant(_rows()[:CLUSTERS])
        one = tf.ones([CLUSTERS, DIMS])
        ops = {
            "k-means": raw.HeadraceNearestCenters(fed, centers),
            "mixture": raw.HeadraceMixtureExpectation(fed, one[:, 0] / CLUSTERS, centers, one),
        }
        with pytest.raises(tf.errors.InvalidArgumentError, match=rf"points\[{row}\] .*{said}"):
            sess.run(ops[name], {fed: points})


def test_bad_centers_and_covariances_are_named() -> None:
    points = tf.constant(_rows())
    centers = tf.constant(np.where(np.arange(CLUSTERS)[:, None] == 3, np.inf, np.ones([1, DIMS])))
    with tf.Session() as sess:
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"centers\[3\]"):
            sess.run(raw.HeadraceNearestCenters(points, tf.cast(centers, tf.float32)))
        one = tf.ones([CLUSTERS, DIMS])
        broken = one - tf.constant(np.eye(CLUSTERS, DIMS, dtype=np.float32)) * [0, 0, 1, 0, 0, 0, 0]
        with pytest.raises(tf.errors.InvalidArgumentError, match="cluster 2 is not positive"):
            sess.run(raw.HeadraceMixtureExpectation(points, one[:, 0], points[:CLUSTERS], broken))


@pytest.mark.parametrize("rows", [0, 1, 4_096, 4_097, 16 * 4_096 + 1, 10 * 16 * 4_096])
def test_stretches_are_aligned_and_hold_all_rows(rows: int) -> None:
    sizes = [int(n) for n in on_all_cores(np.size, np.zeros([rows]))]
    assert sum(sizes) == rows
    assert len(sizes) <= 16 or rows < 16 * 4_096 + 16
    assert all(size % 16 == 0 for size in sizes[:-1])
