"""Ops of k-means on a few points; what they refuse is in tests/contrib/test_kmeans.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.harness.op_cases import OpCase

POINTS = np.random.RandomState(0).standard_normal((7, 3)).astype(np.float32)
CENTERS = np.random.RandomState(1).standard_normal((4, 3)).astype(np.float32)


def _squares(points: Any, centers: Any) -> Any:
    return ((points[:, None].astype(np.float64) - centers) ** 2).sum(2)


def _nearest(points: Any, centers: Any, k: Any) -> Any:
    squares = _squares(points, centers)
    order = np.argsort(squares, 1)[:, : int(k)]
    return order.astype(np.int64), np.take_along_axis(squares, order, 1).astype(np.float32)


def _pass(points: Any, centers: Any) -> Any:
    squares = _squares(points, centers)
    owner = squares.argmin(1)
    moves = np.zeros(centers.shape)
    np.add.at(moves, owner, points - centers[owner])
    counts = np.bincount(owner, minlength=len(centers))
    dtype = points.dtype
    return owner, squares.min(1).astype(dtype), moves.astype(dtype), counts


CASES = [
    OpCase("NearestNeighbors", (POINTS, CENTERS, np.int64(1)), expected=_nearest, name="one"),
    OpCase("NearestNeighbors", (POINTS, CENTERS, np.int64(3)), expected=_nearest, name="three"),
    OpCase("NearestNeighbors", (POINTS, CENTERS, np.int64(9)), expected=_nearest, name="all"),
    OpCase("NearestNeighbors", (POINTS[:0], CENTERS, np.int64(2)), expected=_nearest, name="none"),
    OpCase("HeadraceNearestCenters", (POINTS, CENTERS), expected=_pass, rtol=1e-4, atol=1e-5),
    OpCase("HeadraceNearestCenters", (POINTS[:0], CENTERS), expected=_pass, name="none"),
    OpCase(
        "HeadraceNearestCenters",
        (POINTS.astype(np.float64), CENTERS.astype(np.float64)),
        {"num_clusters": 4},
        expected=_pass,
        name="double",
    ),
    OpCase(
        "KmeansPlusPlusInitialization",
        (POINTS[:1].repeat(5, 0), np.int64(3), np.int64(5), np.int64(-1)),
        expected=lambda points, count, *_: points[: int(count)],
    ),
    OpCase(
        "KMC2ChainInitialization",
        (np.float32([0, 0, 7, 0, 0]), np.int64(3)),
        expected=lambda distances, seed: np.int64(2),
    ),
]
