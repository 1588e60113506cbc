"""Extremely random trees that grow while examples stream by.

A leaf keeps a few candidate splits: a random feature, and the value of it in an example that came
by. It counts what falls on each side, and after enough examples splits where the sides are purest
(Geurts, Ernst and Wehenkel 2006, "Extremely randomized trees"; as a stream: Saffari et al. 2009,
"On-line random forests").
"""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass
from typing import Any

import numpy as np

from headrace.errors import InvalidArgumentError
from headrace.ops.core.registry import HostResource

Array = np.ndarray[Any, Any]

#: Numbers that counting makes at a time, which bounds its memory.
_CHUNK = 1 << 22


@dataclass(frozen=True)
class ForestSpec:
    """What a forest is to be.

    Attributes:
        num_outputs: classes, or, for a regression, numbers in a target.
        num_splits: candidate splits of a leaf.
        bagging: which share of the examples, ``feature_bagging`` of the features, a tree sees.
        inclusive: whether a value that equals the threshold goes left.
        seed: 0 for another forest each time.
    """

    num_trees: int
    max_nodes: int
    num_outputs: int
    num_features: int
    num_splits: int
    split_after: int
    bagging: float
    feature_bagging: float
    regression: bool
    inclusive: bool
    seed: int


class Tree:
    """One tree. Node ``i`` is a leaf while ``children[i]`` is 0; its right child follows the left.

    What a node knows of its examples is a row of sums: examples of each class; or the number of
    examples, the sum and the sum of squares of each target.
    """

    def __init__(self, spec: ForestSpec, rng: np.random.Generator) -> None:
        self._spec = spec
        self.rng = rng
        kept = max(1, int(spec.num_features * spec.feature_bagging))
        self.features = rng.permutation(spec.num_features)[:kept].astype(np.int32)
        self.width = 1 + 2 * spec.num_outputs if spec.regression else spec.num_outputs
        self.size = 1
        self.usage = np.zeros(spec.num_features, np.int32)
        vars(self).update(self.empty(8))

    def empty(self, capacity: int) -> dict[str, Array]:
        """What is known of nodes, for so many, all zero."""
        k, width = self._spec.num_splits, self.width
        shapes: dict[str, tuple[tuple[int, ...], Any]] = {
            "children": ((), np.int32),
            "feature": ((), np.int32),
            "threshold": ((), np.float32),
            "sums": ((width,), np.float64),
            "seen": ((), np.int64),
            "filled": ((), np.int32),
            "tests": ((k,), np.int32),
            "values": ((k,), np.float32),
            "before": ((k, width), np.float32),
            "below": ((k, width), np.float32),
        }
        return {
            name: np.zeros((capacity, *shape), dtype) for name, (shape, dtype) in shapes.items()
        }

    def _grow(self) -> None:
        """Make room for twice as many nodes."""
        for name, new in self.empty(2 * len(self.children)).items():
            old = getattr(self, name)
            new[: len(old)] = old
            setattr(self, name, new)

    children: Array
    feature: Array
    threshold: Array
    sums: Array
    seen: Array
    filled: Array
    tests: Array
    values: Array
    before: Array
    below: Array

    def _goes_left(self, found: Array, thresholds: Array) -> Array:
        result: Array = found <= thresholds if self._spec.inclusive else found < thresholds
        return result

    def leaves(self, data: Array) -> Array:
        """The leaf of each row of ``data``."""
        at = np.zeros(len(data), np.int32)
        moving = np.arange(len(data))
        while True:
            moving = moving[self.children[at[moving]] > 0]
            if not moving.size:
                return at
            nodes = at[moving]
            left = self._goes_left(data[moving, self.feature[nodes]], self.threshold[nodes])
            at[moving] = self.children[nodes] + ~left

    def train(self, data: Array, rows: Array) -> None:
        """Count examples, and split the leaves that have seen enough.

        Args:
            data: ``[batch, features]``; ``rows``: the sums of each example alone.
        """
        if self._spec.bagging < 1:
            kept = self.rng.random(len(data)) < self._spec.bagging
            data, rows = data[kept], rows[kept]
        step = max(1, _CHUNK // (self._spec.num_splits * self.width))
        touched: set[int] = set()
        for i in range(0, len(data), step):
            touched.update(self._count(data[i : i + step], rows[i : i + step]))
        for leaf in sorted(touched):
            if self.seen[leaf] >= self._spec.split_after:
                self._split(leaf)

    def _count(self, data: Array, rows: Array) -> list[int]:
        at = self.leaves(data)
        order = np.argsort(at, kind="stable")
        data, rows, at = data[order], rows[order], at[order]
        leaves, starts, counts = np.unique(at, return_index=True, return_counts=True)
        self._fill(data, at, np.arange(len(at)) - np.repeat(starts, counts))
        found = np.take_along_axis(data, self.tests[at], axis=1)
        left = self._goes_left(found, self.values[at]).astype(np.float32)
        beside = left[:, :, np.newaxis] * rows[:, np.newaxis, :].astype(np.float32)
        self.below[leaves] += np.add.reduceat(beside, starts, axis=0)
        self.sums[leaves] += np.add.reduceat(rows, starts, axis=0)
        self.seen[leaves] += counts
        found_leaves: list[int] = leaves.tolist()
        return found_leaves

    def _fill(self, data: Array, at: Array, rank: Array) -> None:
        """Make candidate splits from examples, as far as their leaves want more."""
        slot = self.filled[at] + rank
        use = np.flatnonzero(slot < self._spec.num_splits)
        nodes, slots = at[use], slot[use]
        tests = self.features[self.rng.integers(len(self.features), size=len(use))]
        self.tests[nodes, slots] = tests
        self.values[nodes, slots] = data[use, tests]
        self.before[nodes, slots] = self.sums[nodes]
        np.maximum.at(self.filled, nodes, slots + 1)

    def _split(self, leaf: int) -> None:
        if self.size + 2 > self._spec.max_nodes:
            return
        n = self.filled[leaf]
        below = self.below[leaf, :n].astype(np.float64)
        whole = self.sums[leaf] - self.before[leaf, :n]
        above = whole - below
        fit = (self._weight(below) > 0) & (self._weight(above) > 0)
        weight = np.where(fit, self._weight(whole), 1)
        loss = (self._impurity(below) + self._impurity(above)) / weight
        gains = fit & (loss < self._impurity(whole) / weight - 1e-9)
        if not gains.any():  # nothing parts its examples: look elsewhere
            self._begin(leaf)
            return
        best = int(np.argmin(np.where(gains, loss, np.inf)))
        if self.size + 2 > len(self.children):
            self._grow()
        first = self.size
        self.size += 2
        self.feature[leaf], self.threshold[leaf] = self.tests[leaf, best], self.values[leaf, best]
        self.usage[self.feature[leaf]] += 1
        self.children[leaf] = first
        self.sums[first], self.sums[first + 1] = below[best], above[best]

    def _begin(self, leaf: int) -> None:
        self.filled[leaf] = self.seen[leaf] = 0
        self.below[leaf] = 0

    def _weight(self, sums: Array) -> Array:
        """How many examples."""
        result: Array = sums[..., 0] if self._spec.regression else sums.sum(-1)
        return result

    def _impurity(self, sums: Array) -> Array:
        """Weighted Gini impurity, or the squared error around the mean."""
        weight = self._weight(sums)
        safe = np.where(weight > 0, weight, 1)
        if self._spec.regression:
            n = self._spec.num_outputs
            total, squares = sums[..., 1 : n + 1], sums[..., n + 1 :]
            result: Array = (squares - total**2 / safe[..., np.newaxis]).sum(-1)
            return result
        result = weight - (sums**2).sum(-1) / safe
        return result

    def predict(self, data: Array) -> Array:
        """``[batch, outputs]``: the shares of the classes, or the mean, in the leaf of each row."""
        sums = self.sums[self.leaves(data)]
        weight = self._weight(sums)[:, np.newaxis]
        if self._spec.regression:
            values = sums[:, 1 : self._spec.num_outputs + 1]
            return values / np.where(weight > 0, weight, 1)
        even = 1 / self._spec.num_outputs
        return np.where(weight > 0, sums / np.where(weight > 0, weight, 1), even)

    def impurity(self) -> float:
        """The mean impurity of an example's leaf."""
        sums = self.sums[: self.size][self.children[: self.size] == 0]
        total = float(self._weight(sums).sum())
        return float(self._impurity(sums).sum()) / total if total else 0.0


class Forest(HostResource):
    """Trees that learn from the same examples.

    Raises:
        InvalidArgumentError: by its methods, if examples do not fit.
    """

    def __init__(self, spec: ForestSpec) -> None:
        self.spec = spec
        self.lock = threading.Lock()
        seeds = np.random.SeedSequence(spec.seed or None).spawn(spec.num_trees)
        self.trees = [Tree(spec, np.random.default_rng(seed)) for seed in seeds]

    def abandon(self) -> None:
        """Nobody waits for a forest."""

    def _checked(self, data: Array) -> Array:
        if data.ndim != 2 or data.shape[1] != self.spec.num_features:
            raise InvalidArgumentError(
                None,
                None,
                f"input_data must be [batch, {self.spec.num_features}] (num_features), not "
                f"{list(data.shape)}",
            )
        return data

    def _rows(self, labels: Array, batch: int) -> Array:
        spec = self.spec
        width = spec.num_outputs if spec.regression else 1
        if labels.size != batch * width:
            raise InvalidArgumentError(
                None,
                None,
                f"{batch} examples need labels [{batch}{f', {width}' if width > 1 else ''}], not "
                f"{list(labels.shape)}",
            )
        values = labels.reshape(batch, width).astype(np.float64)
        if spec.regression:
            return np.concatenate([np.ones((batch, 1)), values, values**2], axis=1)
        classes = values[:, 0].astype(np.int64)
        wrong = np.flatnonzero((classes < 0) | (classes >= spec.num_outputs))
        if wrong.size:
            raise InvalidArgumentError(
                None,
                None,
                f"labels[{wrong[0]}] = {classes[wrong[0]]} is not in [0, {spec.num_outputs})",
            )
        rows: Array = np.eye(spec.num_outputs)[classes]
        return rows

    def train(self, data: Array, labels: Array, weights: Array) -> None:
        """Learn from ``data`` float ``[batch, features]``, its labels, and weights (or one)."""
        rows = self._rows(labels, len(self._checked(data)))
        if weights.size not in (1, len(data)):
            raise InvalidArgumentError(
                None, None, f"{len(data)} examples need as many weights, not {weights.size}"
            )
        if not (weights >= 0).all():
            raise InvalidArgumentError(None, None, "weights must be numbers that are not below 0")
        rows = rows * weights.reshape(-1, 1)
        if not len(data):
            return
        with self.lock:
            for tree in self.trees:
                tree.train(data, rows)

    def predict(self, data: Array) -> tuple[Array, Array]:
        """The mean over the trees, and its variance: float32 ``[batch, outputs]``."""
        self._checked(data)
        with self.lock:
            all_trees = np.stack([tree.predict(data) for tree in self.trees])
        mean, squares = all_trees.mean(0), (all_trees**2).mean(0)
        return mean.astype(np.float32), np.maximum(squares - mean**2, 0).astype(np.float32)

    def status(self) -> tuple[Array, Array, Array]:
        """Nodes and impurity of each tree; how many nodes test each feature."""
        with self.lock:
            sizes = np.asarray([tree.size for tree in self.trees], np.int32)
            impurities = np.asarray([tree.impurity() for tree in self.trees], np.float32)
            usage = np.stack([tree.usage for tree in self.trees]).sum(0, dtype=np.int32)
        return sizes, impurities, usage


def default_splits(num_features: int) -> int:
    """How many candidate splits a leaf has by default."""
    return min(max(10, math.isqrt(num_features)), 1000)
