"""Sums of gradients and Hessians, by leaf and feature: what splits are chosen from."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from headrace.ops.core.checks import invalid
from headrace.ops.forest.boosted_ensemble import StampedResource

Array = NDArray[Any]


class GradientStats(NamedTuple):
    """Sums, ordered by leaf, then by dimension, then by feature.

    Attributes:
        partitions: the leaf of each sum, int32 ``[n]``.
        features: its feature and the dimension of that, int64 ``[n, 2]``.
        gradients, hessians: float32, ``[n]`` or ``[n, ...]``.
    """

    partitions: Array
    features: Array
    gradients: Array
    hessians: Array


def empty(gradient_shape: tuple[int, ...], hessian_shape: tuple[int, ...]) -> GradientStats:
    return GradientStats(
        np.zeros(0, np.int32),
        np.zeros((0, 2), np.int64),
        np.zeros((0, *gradient_shape), np.float32),
        np.zeros((0, *hessian_shape), np.float32),
    )


def checked(stats: GradientStats) -> GradientStats:
    """Raises InvalidArgumentError unless the four are of the same length and the right rank."""
    stats = GradientStats(*[np.asarray(part) for part in stats])
    if stats.partitions.ndim != 1:
        raise invalid(f"partition_ids must be a vector, not {list(stats.partitions.shape)}.")
    count = len(stats.partitions)
    if stats.features.shape != (count, 2):
        raise invalid(f"feature_ids must be [{count}, 2], not {list(stats.features.shape)}.")
    for name in ("gradients", "hessians"):
        found = getattr(stats, name)
        if not found.ndim or len(found) != count:
            raise invalid(f"{name} must have {count} rows, as partition_ids; not {found.shape}.")
    return stats


def _groups(sums: Array, count: int, group: Array) -> Array:
    out = np.zeros((count, *sums.shape[1:]), np.float32)
    np.add.at(out, group, sums)  # one after the other, as they came
    return out


def summed(stats: GradientStats) -> GradientStats:
    """One sum for each (leaf, dimension, feature)."""
    partitions, features, gradients, hessians = checked(stats)
    keys = np.stack([partitions.astype(np.int64), features[:, 1], features[:, 0]], axis=1)
    found, group = np.unique(keys, axis=0, return_inverse=True)
    group = group.reshape(-1)
    return GradientStats(
        found[:, 0].astype(np.int32),
        np.ascontiguousarray(found[:, [2, 1]]),
        _groups(gradients, len(found), group),
        _groups(hessians, len(found), group),
    )


class StatsAccumulatorResource(StampedResource):
    """Sums that steps add to, until one takes them all."""

    def __init__(
        self, stamp: int, gradient_shape: tuple[int, ...], hessian_shape: tuple[int, ...]
    ) -> None:
        super().__init__(stamp)
        self._shapes = gradient_shape, hessian_shape
        self.updates = 0
        self.stats = empty(*self._shapes)

    def add(self, new: GradientStats) -> None:
        """Raises InvalidArgumentError for sums of another shape."""
        new = checked(new)
        gradients, hessians = self._shapes
        for name, found, own in (
            ("Gradients", new.gradients.shape[1:], gradients),
            ("Hessian", new.hessians.shape[1:], hessians),
        ):
            if found != own:
                raise invalid(f"{name} dimensions must match: {list(found)}, {list(own)}")
        joined = [np.concatenate(pair) for pair in zip(self.stats, new, strict=True)]
        self.stats = summed(GradientStats(*joined))
        self.updates += 1

    def clear(self, stamp: int) -> None:
        self.stamp, self.updates, self.stats = stamp, 0, empty(*self._shapes)
