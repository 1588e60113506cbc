"""Ensembles of trees on bucketized features, which grow by layers: what they hold, and growth.

The messages are those of ``ensemble.proto``. Leaves of a layer hold the sum of what all layers of
their tree above them say. Growth by layers: Ponomareva and others, "TF Boosted Trees" (2017),
section 3.3; gains and leaves: Chen and Guestrin, "XGBoost" (2016), section 2.2.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from headrace.ops.core.checks import invalid
from headrace.ops.forest.boosted_ensemble import StampedResource

Array = NDArray[Any]
NO_PRUNING, PRE_PRUNING, POST_PRUNING = range(3)
#: Gains that differ by less are equal.
TOLERANCE = np.float32(1e-15)
#: Centering ends when a step changes the bias by a smaller share, or by less than rounding does: of
#: a bias that is zero, as that of balanced classes, no share is small.
_LEAST_SHARE, _LEAST_STEP = 0.01, 1e-6


class TreeArrays(NamedTuple):
    """A tree as vectors, one element a node.

    Attributes:
        feature: the feature of a split, -1 for a leaf.
        threshold, is_equality: left goes what is at most the threshold, or what equals it.
        left, right: the children of a split.
        value: the logit of a leaf, or that which a split took the place of; float32.
    """

    feature: Array
    threshold: Array
    is_equality: Array
    left: Array
    right: Array
    value: Array


def _value(leaf: Any) -> float:
    """The logit of a leaf; there is one only."""
    return float(leaf.vector.value[0]) if leaf.vector.value else float(leaf.scalar)


def _row(node: Any) -> tuple[int, int, bool, int, int, float]:
    kind = node.WhichOneof("node")
    if kind in (None, "leaf"):
        return -1, 0, False, 0, 0, _value(node.leaf)
    if kind == "dense_split":
        raise invalid("A tree has a split on values of a feature: only buckets are there.")
    split = getattr(node, kind)
    if split.dimension_id:
        raise invalid(f"A tree splits on dimension {split.dimension_id} of a feature; it has one.")
    equality = kind == "categorical_split"
    threshold = split.value if equality else split.threshold
    before = _value(node.metadata.original_leaf)
    return split.feature_id, threshold, equality, split.left_id, split.right_id, before


def _arrays(tree: Any) -> TreeArrays:
    rows = [_row(node) for node in tree.nodes]
    feature, threshold, equality, left, right, value = zip(*rows, strict=True)
    features, thresholds, lefts, rights = [
        np.array(part, np.int32) for part in (feature, threshold, left, right)
    ]
    children = np.stack([lefts, rights])[:, features >= 0]
    if np.any((children <= 0) | (children >= len(rows))):
        raise invalid(f"A split has a child that is not in [1, {len(rows)}).")
    values = np.array(value, np.float32)
    return TreeArrays(features, thresholds, np.array(equality), lefts, rights, values)


class LayeredEnsemble(StampedResource):
    """A TreeEnsemble that ops read and change, in ``config``.

    Raises:
        InvalidArgumentError: if ``serialized`` is none.
    """

    def __init__(self, stamp: int, serialized: bytes) -> None:
        super().__init__(stamp)
        self.config: Any = None
        self._arrays: list[TreeArrays | None] = []
        self.load(stamp, serialized)

    def load(self, stamp: int, serialized: bytes) -> None:
        """Put other contents in the place of these; bytes that are no ensemble change nothing."""
        from google.protobuf.message import DecodeError

        from headrace.graph.proto.boosted_trees.ensemble_pb2 import TreeEnsemble

        try:
            found = TreeEnsemble.FromString(serialized)
        except DecodeError:
            raise invalid("Unable to parse tree ensemble proto.") from None
        counts = len(found.trees), len(found.tree_weights), len(found.tree_metadata)
        if len(set(counts)) != 1 or any(not tree.nodes for tree in found.trees):
            raise invalid(
                f"The tree ensemble has {counts[0]} trees, {counts[1]} weights and metadata of "
                f"{counts[2]}: each tree needs both, and one node at least."
            )
        self.stamp, self.config = stamp, found
        self._arrays = [None] * len(found.trees)

    @property
    def count(self) -> int:
        """How many trees there are."""
        return len(self._arrays)

    def weight(self, tree: int) -> np.float32:
        return np.float32(self.config.tree_weights[tree])

    def arrays(self, tree: int) -> TreeArrays:
        """A tree as vectors."""
        found = self._arrays[tree]
        if found is None:
            found = self._arrays[tree] = _arrays(self.config.trees[tree])
        return found

    def states(self) -> tuple[int, int, int, int, tuple[int, int]]:
        """Stamp, trees, finished trees, attempted layers, and the nodes of the last layer."""
        count, growing = self.count, self.config.growing_metadata
        is_open = count > 0 and not self.config.tree_metadata[-1].is_finalized
        nodes = growing.last_layer_node_start, max(1, growing.last_layer_node_end)
        return self.stamp, count, count - is_open, growing.num_layers_attempted, nodes

    def moved(self, tree: int, nodes: Array) -> tuple[Array, Array]:
        """Where nodes went when a tree was pruned, and by how much their logits changed."""
        changes = self.config.tree_metadata[tree].post_pruned_nodes_meta
        if not len(changes):
            return nodes, np.zeros(len(nodes), np.float32)
        places = np.array([one.new_node_id for one in changes], np.int32)
        shifts = np.array([sum(one.logit_change) for one in changes], np.float32)
        if np.any(nodes >= len(changes)):
            raise invalid(f"A cached node of tree {tree} is not in [0, {len(changes)}).")
        return places[nodes], shifts[nodes]

    # -- changes ----------------------------------------------------------------------------

    def add_tree(self, value: float = 0.0) -> None:
        """A new tree that is a leaf; leaves have the learning rate in them, so its weight is 1."""
        leaf = self.config.trees.add().nodes.add().leaf
        leaf.SetInParent()
        leaf.scalar = value
        self.config.tree_weights.append(1.0)
        self.config.tree_metadata.add()
        self._arrays.append(None)

    def center(self, logit: np.float32) -> bool:
        """Move the leaf of the first tree; returns whether that was more than a little."""
        self.stamp += 1
        if not self.count:
            self.add_tree(float(logit))
            return True
        root = self.config.trees[0].nodes[0]
        if root.WhichOneof("node") != "leaf":
            raise invalid("The bias is centered before the first tree grows, not afterwards.")
        bias = np.float32(root.leaf.scalar) + logit
        root.leaf.scalar = float(bias)
        self._arrays[0] = None
        return bool(abs(logit) > max(_LEAST_SHARE * abs(float(bias)), _LEAST_STEP))

    def begin_layer(self) -> int:
        """Count an attempt at a layer, and return the tree that grows."""
        self.stamp += 1
        growing, count = self.config.growing_metadata, self.count
        growing.num_layers_attempted += 1
        alone = count <= 1 or self.config.tree_metadata[-2].is_finalized
        if not count or (alone and len(self.config.trees[-1].nodes) == 1):
            growing.num_trees_attempted += 1
        if not count:
            self.add_tree()
        return self.count - 1

    def grow(
        self, splits: dict[int, Split], learning_rate: np.float32, max_depth: int, pruning: int
    ) -> None:
        """Split leaves of the last tree; a tree that is as deep as may be is followed by another.

        Args:
            splits: by leaf.
        """
        current = self.begin_layer()
        tree, metadata = self.config.trees[current], self.config.tree_metadata[current]
        start = len(tree.nodes)
        for leaf in splits:
            if not 0 <= leaf < start or tree.nodes[leaf].WhichOneof("node") != "leaf":
                raise invalid(f"Node {leaf} of tree {current} is no leaf: it cannot be split.")
        taken = [(n, s) for n, s in sorted(splits.items()) if pruning != PRE_PRUNING or s.gain >= 0]
        if not taken:
            return  # with other examples the same leaves may have splits
        for leaf, split in taken:
            _split_leaf(tree, leaf, split, learning_rate)
        end = len(tree.nodes)
        metadata.num_layers_grown += 1
        if metadata.num_layers_grown >= max_depth:
            start, end = 0, 1
            metadata.is_finalized = True
            if pruning == POST_PRUNING:
                _prune(tree, metadata)
            self.add_tree()
        self._arrays[current] = None
        growing = self.config.growing_metadata
        growing.last_layer_node_start, growing.last_layer_node_end = start, end


class Split(NamedTuple):
    """The best split of a leaf.

    Attributes:
        feature, threshold: left go buckets up to the threshold.
        gain: how much less the loss is.
        left, right: what is added to the logit, before the learning rate.
    """

    feature: int
    threshold: int
    gain: np.float32
    left: np.float32
    right: np.float32


def best_splits(candidates: Iterator[tuple[int, Split]]) -> dict[int, Split]:
    """The split with the largest gain for each leaf; of equal ones that of the first feature."""
    best: dict[int, Split] = {}
    for leaf, split in candidates:
        known = best.get(leaf)
        if known is None:
            best[leaf] = split
        elif abs(split.gain - known.gain) < TOLERANCE:
            if split.feature < known.feature:
                best[leaf] = split
        elif split.gain > known.gain:
            best[leaf] = split
    return best


def _split_leaf(tree: Any, leaf: int, split: Split, learning_rate: np.float32) -> None:
    node, first = tree.nodes[leaf], len(tree.nodes)
    before = np.float32(node.leaf.scalar)
    for change in (split.left, split.right):
        tree.nodes.add().leaf.scalar = float(before + learning_rate * change)
    node = tree.nodes[leaf]
    if leaf or before:
        node.metadata.original_leaf.CopyFrom(node.leaf)
    node.metadata.gain = float(split.gain)
    made = node.bucketized_split
    made.feature_id, made.threshold = split.feature, split.threshold
    made.left_id, made.right_id = first, first + 1


# -- pruning ------------------------------------------------------------------------------------


def _children(node: Any) -> tuple[int, int]:
    split = getattr(node, node.WhichOneof("node"))
    return split.left_id, split.right_id


def _cut(tree: Any, node_id: int, moved: dict[int, tuple[int, np.float32]]) -> None:
    """Make leaves of the splits below a node that gain nothing; ``moved`` gets what went away."""
    node = tree.nodes[node_id]
    if node.WhichOneof("node") == "leaf":
        return
    children = _children(node)
    for child in children:
        _cut(tree, child, moved)
    ends = all(tree.nodes[child].WhichOneof("node") == "leaf" for child in children)
    if not ends or node.metadata.gain >= 0:
        return
    value = np.float32(node.metadata.original_leaf.scalar)
    for child in children:
        moved[child] = node_id, value - np.float32(tree.nodes[child].leaf.scalar)
    node.leaf.CopyFrom(node.metadata.original_leaf)
    node.leaf.SetInParent()
    node.ClearField("metadata")


def _prune(tree: Any, metadata: Any) -> None:
    """Take away the splits that gain nothing, from the leaves up, and keep where nodes went."""
    moved: dict[int, tuple[int, np.float32]] = {}
    _cut(tree, 0, moved)
    if not moved:
        return
    kept = [node for node in range(len(tree.nodes)) if node not in moved]
    places = {old: new for new, old in enumerate(kept)}
    for old in range(len(tree.nodes)):
        node, change = old, np.float32(0)
        while node in moved:
            node, more = moved[node]
            change = change + more
        metadata.post_pruned_nodes_meta.add(new_node_id=places[node], logit_change=[float(change)])
    nodes = [tree.nodes[node] for node in kept]
    for node in nodes:
        if node.WhichOneof("node") != "leaf":
            split = getattr(node, node.WhichOneof("node"))
            split.left_id, split.right_id = places[split.left_id], places[split.right_id]
    pruned = type(tree)(nodes=nodes)
    tree.CopyFrom(pruned)


# -- predictions --------------------------------------------------------------------------------


class BucketizedFeatures:
    """The features of a batch.

    Args:
        features: int32 ``[batch]`` each.

    Raises:
        InvalidArgumentError: unless they are vectors of one length.
    """

    def __init__(self, features: Sequence[Array]) -> None:
        columns = [np.asarray(feature) for feature in features]
        for position, column in enumerate(columns):
            if column.ndim != 1 or column.shape != columns[0].shape:
                raise invalid(
                    f"bucketized_features[{position}] must be a vector of one bucket for each "
                    f"example, {columns[0].shape[0] if columns[0].ndim else '?'} of them; it is of "
                    f"shape {list(column.shape)}."
                )
        if not columns:
            raise invalid("Trees need one feature at least.")
        self.batch = len(columns[0])
        self._columns = columns

    def leaves(self, tree: TreeArrays, nodes: Array, rows: Array) -> Array:
        """The leaves that the examples ``rows`` come to from ``nodes``, int32 of their length."""
        found = nodes.copy()
        going = np.flatnonzero(tree.feature[found] >= 0)
        while going.size:
            found[going] = self.children(tree, found[going], rows[going])
            going = going[tree.feature[found[going]] >= 0]
        return found

    def children(self, tree: TreeArrays, nodes: Array, rows: Array) -> Array:
        """Where the examples ``rows`` go on from the splits ``nodes``."""
        features = tree.feature[nodes]
        values = np.empty(len(nodes), np.int32)
        for feature in np.unique(features):
            if feature >= len(self._columns):
                count = len(self._columns)
                raise invalid(f"A tree splits on feature {feature}, but there are {count}.")
            chosen = features == feature
            values[chosen] = self._columns[feature][rows[chosen]]
        thresholds = tree.threshold[nodes]
        goes_left = np.where(tree.is_equality[nodes], values == thresholds, values <= thresholds)
        following: Array = np.where(goes_left, tree.left[nodes], tree.right[nodes])
        return following


def predict(ensemble: LayeredEnsemble, features: BucketizedFeatures) -> Array:
    """Logits: float32 ``[batch, 1]``."""
    rows, start = np.arange(features.batch), np.zeros(features.batch, np.int32)
    logits = np.zeros(features.batch, np.float32)
    for number in range(ensemble.count):
        tree = ensemble.arrays(number)
        logits += ensemble.weight(number) * tree.value[features.leaves(tree, start, rows)]
    return logits[:, None]


def predict_onward(
    ensemble: LayeredEnsemble, trees: Array, nodes: Array, features: BucketizedFeatures
) -> tuple[Array, Array, Array]:
    """What the logits change by since each example was at a node of a tree.

    Args:
        trees, nodes: int32 ``[batch]``; a node of -1 for an example that is new.

    Returns:
        ``(changes, trees, nodes)``: float32 ``[batch, 1]``; and where examples are now.
    """
    for name, given in (("cached_tree_ids", trees), ("cached_node_ids", nodes)):
        if given.shape != (features.batch,):
            raise invalid(f"{name} must be of shape [{features.batch}], not {list(given.shape)}.")
    logits = np.zeros(features.batch, np.float32)
    if not ensemble.count:
        return logits[:, None], trees, np.zeros(features.batch, np.int32)
    latest = ensemble.count - 1
    if np.any((trees < 0) | (trees > latest)):
        raise invalid(
            f"cached_tree_ids must be in [0, {latest}], but the largest is {trees.max()}."
        )
    current = np.zeros(features.batch, np.int32)
    for number in range(int(trees.min(initial=latest)), latest + 1):
        tree = ensemble.arrays(number)
        change = np.zeros(features.batch, np.float32)
        known = np.flatnonzero((trees == number) & (nodes >= 0))
        if known.size:
            current[known], shift = ensemble.moved(number, nodes[known])
            if np.any(current[known] >= len(tree.value)):
                raise invalid(f"A cached node of tree {number} is not in [0, {len(tree.value)}).")
            change[known] = shift - tree.value[current[known]]
        rows = np.flatnonzero(trees <= number)
        current[rows] = features.leaves(tree, current[rows], rows)
        change[rows] += tree.value[current[rows]]
        logits[rows] += ensemble.weight(number) * change[rows]
        if number < latest:
            current[rows] = 0
    return logits[:, None], np.full(features.batch, latest, np.int32), current


def ways(ensemble: LayeredEnsemble, features: BucketizedFeatures) -> list[bytes]:
    """A serialized DebugOutput for each example."""
    from headrace.graph.proto.boosted_trees.ensemble_pb2 import DebugOutput

    outputs = [DebugOutput() for _ in range(features.batch)]
    past = np.zeros(features.batch, np.float32)
    rows = np.arange(features.batch)
    for number in range(ensemble.count):
        tree, weight = ensemble.arrays(number), ensemble.weight(number)
        if not number:
            for output in outputs:
                output.logits_path.append(weight * tree.value[0])
        nodes = np.zeros(features.batch, np.int32)
        going = np.flatnonzero(tree.feature[nodes] >= 0)
        while going.size:
            split = tree.feature[nodes[going]]
            nodes[going] = features.children(tree, nodes[going], rows[going])
            logits = weight * tree.value[nodes[going]] + past[going]
            for row, feature, logit in zip(going, split, logits, strict=True):
                outputs[row].feature_ids.append(int(feature))
                outputs[row].logits_path.append(float(logit))
            going = going[tree.feature[nodes[going]] >= 0]
        past += weight * tree.value[nodes]
    return [output.SerializeToString() for output in outputs]
