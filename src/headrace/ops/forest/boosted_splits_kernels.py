"""The best split of each leaf, from sums of gradients and Hessians.

Gains and weights: Chen and Guestrin, "XGBoost: A Scalable Tree Boosting System" (2016), section
2.2; missing values: section 3.4. All arithmetic is in float32, in the order of the sums.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from headrace.ops.core.checks import invalid

Array = NDArray[Any]
#: A vector shorter than this is none.
_EPSILON = np.float32(1e-6)
_TREE_PER_CLASS, _FULL_HESSIAN, _DIAGONAL_HESSIAN = 1, 2, 3


class Sums(NamedTuple):
    """Gradients and Hessians of several candidates: float32 ``[n, ...]``."""

    gradients: Array
    hessians: Array

    def at(self, places: Any) -> Sums:
        return Sums(self.gradients[places], self.hessians[places])

    def scaled(self, ratio: np.float32) -> Sums:
        return Sums(self.gradients * ratio, self.hessians * ratio)

    def running(self) -> Sums:
        """The sum of each and those before it."""
        return Sums(np.add.accumulate(self.gradients), np.add.accumulate(self.hessians))

    def whole(self) -> Sums:
        """The sum of all, one candidate."""
        return self.running().at(slice(-1, None)) if len(self.gradients) else self.zero()

    def zero(self) -> Sums:
        return Sums(*[np.zeros((1, *part.shape[1:]), np.float32) for part in self])

    def without(self, other: Sums) -> Sums:
        return Sums(self.gradients - other.gradients, self.hessians - other.hessians)

    def is_almost_zero(self) -> Array:
        """Of each, whether gradient and Hessian are both as good as nothing."""
        limit = np.float64(_EPSILON * _EPSILON)
        return ~(_squares(self.gradients) > limit) & ~(_squares(self.hessians) > limit)


def _squares(values: Array) -> Array:
    """The squared length of each, float64."""
    found: Array = np.square(values).reshape(len(values), -1).sum(axis=1, dtype=np.float64)
    return found


class Nodes(NamedTuple):
    """What leaves of some sums would be: ``weights`` None are leaves that say nothing."""

    gains: Array
    weights: list[list[float] | None]

    def at(self, place: int) -> tuple[Any, list[float] | None]:
        return self.gains[place], self.weights[place]


@dataclass(frozen=True)
class Settings:
    """How splits are judged.

    Attributes:
        column: the feature column, as splits name it.
        l1, l2, complexity: what weights and leaves cost.
        least: the Hessian that a leaf must have more of.
        strategy: a LearnerConfig.MultiClassStrategy.
        class_id: the class that leaves are of, -1 for all.

    Raises:
        InvalidArgumentError: for a strategy that is none.
    """

    column: int
    l1: np.float32
    l2: np.float32
    complexity: np.float32
    least: np.float32
    strategy: int
    class_id: int

    def __post_init__(self) -> None:
        if self.strategy not in (_TREE_PER_CLASS, _FULL_HESSIAN, _DIAGONAL_HESSIAN):
            raise invalid("Wrong multiclass strategy passed.")

    def nodes(self, sums: Sums) -> Nodes:
        """Gains and weights of candidates."""
        if self.strategy == _TREE_PER_CLASS:
            return self._scalar_nodes(sums)
        return self._vector_nodes(sums)

    def _scalar_nodes(self, sums: Sums) -> Nodes:
        count = len(sums.gradients)
        gradients = sums.gradients.reshape(count, -1)[:, 0]
        hessians = sums.hessians.reshape(count, -1)[:, 0]
        counts = ~(sums.is_almost_zero() | (hessians <= self.least))
        if self.l1 > 0:
            counts &= np.abs(gradients) > self.l1
            gradients = gradients - np.copysign(self.l1, gradients)
        below = np.where(counts, hessians + self.l2, np.float32(1))
        # A Hessian of nothing, which a negative limit lets pass, divides as it does in TensorFlow.
        with np.errstate(divide="ignore", invalid="ignore"):
            weights = np.where(counts, -gradients / below, np.float32(0))
            gains = np.where(counts, weights * -gradients, np.float32(0))
        return Nodes(gains, [[weight] for weight in weights.tolist()])

    def _vector_nodes(self, sums: Sums) -> Nodes:
        gradients, hessians = sums
        count, outputs = gradients.shape if gradients.ndim == 2 else (len(gradients), 0)
        full = self.strategy == _FULL_HESSIAN
        expected = (count, outputs, outputs) if full else (count, outputs)
        if gradients.ndim != 2 or hessians.shape != expected:
            kind = "full" if full else "diagonal"
            raise invalid(
                f"With {kind} Hessians, gradients must be [n, outputs] and Hessians "
                f"{['n', *['outputs'] * (2 if full else 1)]}, not {list(gradients.shape)} and "
                f"{list(hessians.shape)}.".replace("'", "")
            )
        small = np.sqrt(_squares(hessians)).astype(np.float32) <= self.least
        counts = ~(sums.is_almost_zero() | small)
        gains = np.zeros(count, np.float32)
        weights: list[list[float] | None] = [None] * count
        solve = self._solved if full else self._divided
        for place in np.flatnonzero(counts).tolist():
            gains[place], weights[place] = solve(gradients[place], hessians[place])
        return Nodes(gains, weights)

    def _divided(self, gradient: Array, hessian: Array) -> Any:
        diagonal = hessian + self.l2
        if not diagonal.all():
            return _least_squares(np.diag(diagonal), gradient)
        weights = -(np.float32(1) / diagonal) * gradient
        return (-gradient * weights).sum(), weights.tolist()

    def _solved(self, gradient: Array, hessian: Array) -> Any:
        # Sums stand in rows; a Hessian is symmetric, so that rows and columns are the same.
        return _least_squares(
            hessian.T + self.l2 * np.eye(len(gradient), dtype=np.float32), gradient
        )

    def fill(self, leaf: Any, weights: list[float] | None) -> None:
        """Put weights into a Leaf."""
        if weights is None:
            return
        if self.class_id == -1:
            leaf.vector.value.extend(weights)
            return
        if len(weights) != 1:
            raise invalid(f"A leaf of class {self.class_id} has one weight, not {len(weights)}.")
        leaf.sparse_vector.index.append(self.class_id)
        leaf.sparse_vector.value.extend(weights)


def _least_squares(matrix: Array, gradient: Array) -> Any:
    """Gain and weights with a matrix that need not be invertible.

    As QR with column pivoting does (Golub and Van Loan, "Matrix Computations", section 5.4.2): the
    longest columns are taken first, and outputs of columns that add nothing get no weight.
    """
    wide = matrix.astype(np.float64)
    rest, taken, least = wide.copy(), [], 0.0
    for _ in range(len(gradient)):
        lengths = np.linalg.norm(rest, axis=0)
        longest = int(np.argmax(lengths))
        if not lengths[longest] > least:
            break
        least = least or float(lengths[longest] * np.finfo(np.float32).eps * len(gradient))
        taken.append(longest)
        direction = rest[:, longest] / lengths[longest]
        rest -= np.outer(direction, direction @ rest)
        rest[:, longest] = 0.0
    weights = np.zeros_like(gradient)
    if taken:
        weights[taken] = -np.linalg.lstsq(wide[:, taken], gradient.astype(np.float64))[0]
    return -gradient @ weights, weights.tolist()


# -- leaves -------------------------------------------------------------------------------------


class Buckets(NamedTuple):
    """Sums of one feature column, by leaf, dimension and bucket.

    Attributes:
        leaves: int32 ``[n]``, in rising order.
        ids: int64 ``[n, 2]``: buckets, or the values of a categorical column, and dimensions.
        sums: of each.
    """

    leaves: Array
    ids: Array
    sums: Sums

    def check(self) -> None:
        """Raises InvalidArgumentError unless all are of one length, and leaves are in order."""
        count = self.leaves.size
        if self.leaves.ndim != 1 or self.ids.shape != (count, 2):
            raise invalid(
                f"partition_ids must be a vector and ids [{count}, 2], not "
                f"{list(self.leaves.shape)} and {list(self.ids.shape)}."
            )
        for name, part in zip(("gradients", "hessians"), self.sums, strict=True):
            if not part.ndim or len(part) != count:
                raise invalid(f"{name} must have {count} rows, as partition_ids; not {part.shape}.")
        if np.any(self.leaves[1:] < self.leaves[:-1]):
            raise invalid("Partition IDs must be sorted.")

    def each_leaf(self) -> Iterator[tuple[int, Buckets]]:
        """The buckets of each leaf."""
        begins = np.flatnonzero(np.concatenate([[True], self.leaves[1:] != self.leaves[:-1]]))
        ends = [*begins[1:].tolist(), self.leaves.size]
        for begin, end in zip(begins.tolist(), ends, strict=True) if self.leaves.size else ():
            yield int(self.leaves[begin]), self.at(slice(begin, end))

    def at(self, places: slice) -> Buckets:
        return Buckets(self.leaves[places], self.ids[places], self.sums.at(places))

    def with_bias(self, bias: int) -> Iterator[tuple[int, Buckets]]:
        """The buckets of each leaf that has any; the first is the sum of all its examples.

        Raises:
            InvalidArgumentError: if that is not there.
        """
        for leaf, own in self.each_leaf():
            if own.leaves.size < 2:
                continue
            if own.ids[0, 0] != bias:
                raise invalid("Bias feature ID missing.")
            if own.ids[0, 1] != 0:
                raise invalid("Bias feature ID must be with dimension 0.")
            yield leaf, own


class Found(NamedTuple):
    """Splits: leaves, gains, and serialized messages; those of oblivious trees are one for all."""

    leaves: list[int]
    gains: list[Any]
    infos: list[bytes]


NOTHING = Found([], [], [])


def _best(gains: Array) -> int:
    """The first of the largest; gains that are no numbers are none."""
    return int(np.argmax(np.where(np.isnan(gains), -np.inf, gains)))


def _split_info(
    settings: Settings, left: list[float] | None, right: list[float] | None, node: str
) -> tuple[Any, Any]:
    """A SplitInfo, and the split in it."""
    from headrace.graph.proto.boosted_trees.split_info_pb2 import SplitInfo

    info = SplitInfo()
    settings.fill(info.left_child, left)
    settings.fill(info.right_child, right)
    info.left_child.SetInParent()
    info.right_child.SetInParent()
    split = getattr(info.split_node, node)
    if node.startswith("sparse"):
        split = split.split
    split.feature_column = settings.column
    split.SetInParent()
    return info, split


def _threshold(boundaries: Array, bucket: int) -> float:
    if not 0 <= bucket < boundaries.size:
        raise invalid(f"Bucket {bucket} is none of {boundaries.size} bucket_boundaries.")
    return float(boundaries[bucket])


def dense_splits(
    settings: Settings, buckets: Buckets, ratio: np.float32, boundaries: Array
) -> Found:
    """The best threshold for each leaf: what is not larger goes left."""
    found = Found([], [], [])
    for leaf, own in buckets.each_leaf():
        root = own.sums.whole().scaled(ratio)
        left = own.sums.scaled(ratio).running()
        lefts, rights = settings.nodes(left), settings.nodes(root.without(left))
        gains = lefts.gains + rights.gains
        best = _best(gains)
        info, split = _split_info(
            settings, lefts.weights[best], rights.weights[best], "dense_float_binary_split"
        )
        split.threshold = _threshold(boundaries, int(own.ids[best, 0]))
        found.leaves.append(leaf)
        found.gains.append(gains[best] - settings.nodes(root).gains[0] - settings.complexity)
        found.infos.append(info.SerializeToString())
    return found


class _Direction(NamedTuple):
    """A split of a sparse column: where it is, where examples without a value go, and leaves."""

    gain: Any
    place: int
    default_right: bool
    left: list[float] | None
    right: list[float] | None


def _sparse_candidates(settings: Settings, own: Buckets, ratio: np.float32) -> Iterator[_Direction]:
    """The best split of each dimension."""
    root = own.sums.at(slice(0, 1)).scaled(ratio)
    ids = own.ids[1:]
    begins = np.flatnonzero(np.concatenate([[True], ids[1:, 1] != ids[:-1, 1]]))
    for begin, end in zip(begins.tolist(), [*begins[1:].tolist(), len(ids)], strict=True):
        if np.any(ids[begin + 1 : end, 0] <= ids[begin : end - 1, 0]):
            raise invalid("Bucket ids must be sorted.")
        sums = own.sums.at(slice(begin + 1, end + 1))
        present = sums.whole().scaled(ratio)
        left = sums.scaled(ratio).running()
        right = present.without(left)
        pairs = [(settings.nodes(root.without(right)), settings.nodes(right))]
        # Where (almost) all examples have a value, those without go left.
        if not root.without(present).is_almost_zero()[0]:
            pairs.append((settings.nodes(left), settings.nodes(root.without(left))))
        gains = np.stack([a.gains + b.gains for a, b in pairs], axis=1)
        place, side = divmod(_best(gains.reshape(-1)), len(pairs))
        lefts, rights = pairs[side]
        yield _Direction(
            gains[place, side],
            begin + 1 + place,
            bool(side),
            lefts.weights[place],
            rights.weights[place],
        )


def sparse_splits(
    settings: Settings, buckets: Buckets, ratio: np.float32, boundaries: Array, bias: int
) -> Found:
    """The best threshold, dimension, and direction of what has no value, for each leaf."""
    found = Found([], [], [])
    for leaf, own in buckets.with_bias(bias):
        candidates = list(_sparse_candidates(settings, own, ratio))
        best = candidates[_best(np.array([c.gain for c in candidates], np.float32))]
        side = "right" if best.default_right else "left"
        node = f"sparse_float_binary_split_default_{side}"
        info, split = _split_info(settings, best.left, best.right, node)
        split.dimension_id = int(own.ids[best.place, 1])
        split.threshold = _threshold(boundaries, int(own.ids[best.place, 0]))
        root = settings.nodes(own.sums.at(slice(0, 1)).scaled(ratio))
        found.leaves.append(leaf)
        found.gains.append(best.gain - root.gains[0] - settings.complexity)
        found.infos.append(info.SerializeToString())
    return found


def categorical_splits(settings: Settings, buckets: Buckets, ratio: np.float32, bias: int) -> Found:
    """The best id for each leaf: examples that have it go left."""
    found = Found([], [], [])
    for leaf, own in buckets.with_bias(bias):
        root, left = own.sums.at(slice(0, 1)).scaled(ratio), own.sums.at(slice(1, None))
        left = left.scaled(ratio)
        lefts, rights = settings.nodes(left), settings.nodes(root.without(left))
        gains = lefts.gains + rights.gains
        best = _best(gains)
        info, split = _split_info(
            settings, lefts.weights[best], rights.weights[best], "categorical_id_binary_split"
        )
        split.feature_id = int(own.ids[best + 1, 0])
        found.leaves.append(leaf)
        found.gains.append(gains[best] - settings.nodes(root).gains[0] - settings.complexity)
        found.infos.append(info.SerializeToString())
    return found


# -- oblivious trees ----------------------------------------------------------------------------


class _Layer(NamedTuple):
    """One leaf of a layer: the sum of all its examples, and what goes left at each id."""

    leaf: int
    root: Sums
    left: Sums


def _oblivious(
    settings: Settings, layer: list[_Layer], name: str, set_split: Callable[[Any, int], None]
) -> Found:
    """One split for all leaves of a layer: that whose gains are the largest together."""
    from headrace.graph.proto.boosted_trees.split_info_pb2 import ObliviousSplitInfo

    pairs = [
        (settings.nodes(part.left), settings.nodes(part.root.without(part.left))) for part in layer
    ]
    gains = np.zeros(len(layer[0].left.gradients), np.float32)
    for lefts, rights in pairs:
        gains = gains + (lefts.gains + rights.gains)
    best = _best(gains)
    info = ObliviousSplitInfo()
    split = getattr(info.split_node, name)
    split.feature_column = settings.column
    set_split(split, best)
    split.SetInParent()
    gain = gains[best]
    for part, nodes in zip(layer, pairs, strict=True):
        for side in nodes:
            settings.fill(info.children.add(), side.weights[best])
        info.children_parent_id.append(part.leaf)
        gain = gain - settings.nodes(part.root).gains[0]
    gain = gain - np.float32(len(layer)) * settings.complexity
    return Found([part.leaf for part in layer], [gain], [info.SerializeToString()])


def _known(ids: Array, all_ids: Array) -> tuple[Array, Array]:
    """How many of the ids of a leaf are not larger than each of all, and whether it has them."""
    if np.any(ids[1:] <= ids[:-1]):
        raise invalid("Bucket ids must be sorted.")
    return np.searchsorted(ids, all_ids, side="right"), np.isin(all_ids, ids)


def oblivious_dense_splits(
    settings: Settings, buckets: Buckets, ratio: np.float32, boundaries: Array
) -> Found:
    """The best threshold for all leaves together."""
    ids = np.unique(buckets.ids[:, 0])
    layer = []
    for leaf, own in buckets.each_leaf():
        running = own.sums.scaled(ratio).running()
        padded = Sums(*[np.concatenate(p) for p in zip(own.sums.zero(), running, strict=True)])
        places, _ = _known(own.ids[:, 0], ids)
        layer.append(_Layer(leaf, own.sums.whole().scaled(ratio), padded.at(places)))

    def set_split(split: Any, best: int) -> None:
        split.threshold = _threshold(boundaries, int(ids[best]))

    name = "oblivious_dense_float_binary_split"
    return _oblivious(settings, layer, name, set_split) if layer else NOTHING


def oblivious_categorical_splits(
    settings: Settings, buckets: Buckets, ratio: np.float32, bias: int
) -> Found:
    """The best id for all leaves together."""
    owners = list(buckets.with_bias(bias))
    if not owners:
        return NOTHING
    ids = np.unique(np.concatenate([own.ids[1:, 0] for _, own in owners]))
    layer = []
    for leaf, own in owners:
        root, sums = own.sums.at(slice(0, 1)).scaled(ratio), own.sums.at(slice(1, None))
        padded = Sums(
            *[np.concatenate(p) for p in zip(sums.zero(), sums.scaled(ratio), strict=True)]
        )
        places, present = _known(own.ids[1:, 0], ids)
        layer.append(_Layer(leaf, root, padded.at(np.where(present, places, 0))))

    def set_split(split: Any, best: int) -> None:
        split.feature_id = int(ids[best])

    return _oblivious(settings, layer, "oblivious_categorical_id_binary_split", set_split)
