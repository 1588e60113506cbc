"""Ensembles of boosted trees: what they hold, and the leaves that examples come to.

The messages are those of ``headrace.graph.proto.boosted_trees``. Dropped trees: Rashmi and
Gilad-Bachrach, "DART: Dropouts meet Multiple Additive Regression Trees" (2015), section 3.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headrace.errors import FailedPreconditionError
from headrace.ops.core.checks import invalid
from headrace.ops.core.registry import HostResource
from headrace.ops.random.philox import stream_np

Array = NDArray[Any]
#: The stamp of an ensemble that has lost its contents.
_NO_STAMP = -1
_MASK32 = 0xFFFFFFFF


class StampedResource(HostResource):
    """A resource that changes from stamp to stamp: an op that comes with an old one is too late."""

    def __init__(self, stamp: int) -> None:
        self.lock = threading.Lock()
        self.stamp = stamp

    def abandon(self) -> None:
        """Nobody waits for it."""

    def check_stamp(self, stamp: int) -> None:
        """Raises FailedPreconditionError if ``stamp`` is another one."""
        if stamp != self.stamp:
            message = f"stamp_token is {stamp}, but the stamp of the resource is {self.stamp}."
            raise FailedPreconditionError(None, None, message)

    def check_next(self, stamp: int, following: int) -> None:
        """The same, and raises InvalidArgumentError unless the next stamp is another one."""
        self.check_stamp(stamp)
        if following == stamp:
            raise invalid(f"next_stamp_token must be another stamp than stamp_token, {stamp}.")


class TreeEnsemble(StampedResource):
    """A DecisionTreeEnsembleConfig that ops read and change, in ``config``."""

    def __init__(self, stamp: int, serialized: bytes) -> None:
        super().__init__(stamp)
        self.config: Any = None
        self.load(stamp, serialized)

    def load(self, stamp: int, serialized: bytes) -> None:
        """Put other contents in the place of these; bytes that are no ensemble leave it empty."""
        from google.protobuf.message import DecodeError

        from headrace.graph.proto.boosted_trees.tree_config_pb2 import DecisionTreeEnsembleConfig

        self.stamp, self.config = _NO_STAMP, DecisionTreeEnsembleConfig()
        try:
            found = DecisionTreeEnsembleConfig.FromString(serialized)
        except DecodeError:
            raise invalid("Unable to parse tree ensemble config.") from None
        if len(found.trees) != len(found.tree_weights):
            raise invalid(
                f"The tree ensemble config has {len(found.trees)} trees, but "
                f"{len(found.tree_weights)} weights: each tree needs one."
            )
        if len(found.tree_metadata) not in (0, len(found.trees)):
            raise invalid(
                f"The tree ensemble config has {len(found.trees)} trees, but metadata of "
                f"{len(found.tree_metadata)}: of all, or of none."
            )
        self.stamp, self.config = stamp, found

    def is_growing(self, tree: int) -> bool:
        """Whether the metadata say that a tree is not finished."""
        metadata = self.config.tree_metadata
        return len(metadata) > tree and not metadata[tree].is_finalized


# -- features -----------------------------------------------------------------------------------


class Features:
    """The feature columns of a batch, checked.

    Args:
        dense: float32 ``[batch, 1]`` each.
        sparse_float, sparse_int: ``(indices, values, shape)`` of SparseTensors ``[batch, n]``.

    Raises:
        InvalidArgumentError: if columns are of another rank or size.
    """

    def __init__(
        self,
        dense: Sequence[Array],
        sparse_float: Sequence[tuple[Array, Array, Array]],
        sparse_int: Sequence[tuple[Array, Array, Array]],
    ) -> None:
        self.batch = _batch_size(dense, sparse_float, sparse_int)
        self._dense = [self._dense_column(column) for column in dense]
        self._floats = [self._checked(c, "float") for c in sparse_float]
        self._ints = [self._checked(c, "int") for c in sparse_int]
        self._found: dict[tuple[int, int], tuple[Array, Array]] = {}

    def _dense_column(self, column: Array) -> Array:
        if column.ndim != 2:
            raise invalid(f"Dense float features must have rank 2, not {column.ndim}.")
        if column.shape[1] != 1:
            raise invalid(
                f"Dense float features may not be multivalent: dim_size(1) = {column.shape[1]}"
            )
        if column.shape[0] != self.batch:
            raise invalid(
                f"Dense float vector must have batch_size rows: {self.batch} vs. {column.shape[0]}"
            )
        return column[:, 0]

    def _checked(self, column: tuple[Array, Array, Array], kind: str) -> tuple[Array, Array, Array]:
        indices, values, shape = column
        what = f"Sparse {kind} feature"
        if indices.ndim != 2 or indices.shape[1] != 2:
            raise invalid(f"{what} indices must be of shape [n, 2], not {list(indices.shape)}.")
        if values.shape != indices.shape[:1]:
            raise invalid(
                f"{what} values must be of shape [{len(indices)}], as there are that many indices, "
                f"not {list(values.shape)}."
            )
        if shape.shape != (2,):
            raise invalid(f"{what} shape must have 2 sizes, not shape {list(shape.shape)}.")
        if shape[0] != self.batch:
            raise invalid(f"{what} shape incompatible with batch size: {shape[0]} vs. {self.batch}")
        rows = indices[:, 0]
        if rows.size and not (rows.min() >= 0 and rows.max() < self.batch):
            raise invalid(f"{what} indices must be in a batch of {self.batch} examples.")
        return indices, values, shape

    def dense(self, column: int) -> Array:
        """The values of a dense column, ``[batch]``."""
        return self._dense[_in_range(column, len(self._dense), "dense float")]

    def sparse(self, column: int, dimension: int) -> tuple[Array, Array]:
        """``(is there, value)`` of each example in a dimension of a sparse column."""
        key = (column, dimension)
        if key not in self._found:
            columns = self._floats
            indices, values, shape = columns[_in_range(column, len(columns), "sparse float")]
            if shape[1] > 1:
                _in_range(dimension, int(shape[1]), f"dimension of sparse float column {column}:")
                kept = indices[:, 1] == dimension
                indices, values = indices[kept], values[kept]
            # Of several values the first one counts: it is written last.
            rows = indices[::-1, 0]
            is_there, value = np.zeros(self.batch, bool), np.zeros(self.batch, np.float32)
            is_there[rows], value[rows] = True, values[::-1]
            self._found[key] = is_there, value
        return self._found[key]

    def has_id(self, column: int, ids: Sequence[int]) -> Array:
        """Which examples have one of some ids in a categorical column, bool ``[batch]``."""
        indices, values, _ = self._ints[_in_range(column, len(self._ints), "sparse int")]
        result = np.zeros(self.batch, bool)
        result[indices[np.isin(values, np.asarray(ids, np.int64)), 0]] = True
        return result


def _batch_size(dense: Any, sparse_float: Any, sparse_int: Any) -> int:
    if dense:
        return int(dense[0].shape[0]) if dense[0].ndim else 0
    for _, _, shape in (*sparse_float, *sparse_int):
        if shape.size:
            return int(shape[0])
    raise invalid("Could not infer batch size due to empty feature set.")


def _in_range(index: int, count: int, what: str) -> int:
    if not 0 <= index < count:
        raise invalid(f"A tree splits on {what} feature {index}, but there are {count}.")
    return index


# -- trees --------------------------------------------------------------------------------------


def _goes_left(kind: str, split: Any, features: Features) -> Array:
    """The examples that an inner node sends to the left, bool ``[batch]``."""
    if kind == "dense_float_binary_split":
        return np.asarray(features.dense(split.feature_column) <= np.float32(split.threshold))
    if kind == "oblivious_dense_float_binary_split":  # NaN goes left here, right above
        return ~np.asarray(features.dense(split.feature_column) > np.float32(split.threshold))
    if kind.startswith("sparse_float_binary_split"):
        inner = split.split
        is_there, value = features.sparse(inner.feature_column, inner.dimension_id)
        below = value <= np.float32(inner.threshold)
        return ~is_there | below if kind.endswith("left") else is_there & below
    if kind == "categorical_id_set_membership_binary_split":
        return features.has_id(split.feature_column, split.feature_ids)
    return features.has_id(split.feature_column, [split.feature_id])


def children_of(node: Any) -> Any:
    """The message that has the ``left_id`` and ``right_id`` of an inner node."""
    split = getattr(node, node.WhichOneof("node"))
    return split.split if hasattr(split, "split") else split


def leaves_of(tree: Any, features: Features) -> Array:
    """The index of the leaf that each example comes to, int32 ``[batch]``.

    Raises:
        InvalidArgumentError: if the tree has circles, ends in no leaf, or splits on a feature
            that is not there.
    """
    result = np.zeros(features.batch, np.int32)
    nodes = tree.nodes
    if not nodes:
        raise invalid("Invalid tree: it has no nodes.")
    if (nodes[0].WhichOneof("node") or "").startswith("oblivious"):
        return _oblivious_leaves(nodes, features)
    seen: set[int] = set()
    waiting = [(0, np.arange(features.batch))]
    while waiting:
        index, rows = waiting.pop()
        if not 0 <= index < len(nodes) or index in seen:
            raise invalid(f"Malformed tree: node {index} is missing, or has several parents.")
        seen.add(index)
        node = nodes[index]
        kind = node.WhichOneof("node")
        if kind is None or kind.startswith("oblivious"):
            raise invalid(f"Invalid node in tree: node {index} is {kind or 'nothing'}.")
        if kind == "leaf":
            result[rows] = index
            continue
        left = _goes_left(kind, getattr(node, kind), features)[rows]
        children = children_of(node)
        waiting += [(children.left_id, rows[left]), (children.right_id, rows[~left])]
    return result


def _oblivious_leaves(nodes: Any, features: Features) -> Array:
    """Leaves of a tree with one test for each layer: the answers are the bits of their order."""
    bits = np.zeros(features.batch, np.int32)
    for depth, node in enumerate(nodes):
        kind = node.WhichOneof("node")
        if kind == "leaf":
            if depth + (1 << depth) > len(nodes):
                raise invalid(f"Malformed tree: {depth} layers need {1 << depth} leaves.")
            return np.asarray(depth + bits, np.int32)
        if kind is None or not kind.startswith("oblivious"):
            break
        bits = 2 * bits + ~_goes_left(kind, getattr(node, kind), features)
    raise invalid("Malformed tree: an oblivious tree is tests of layers, then leaves.")


def _leaf_values(tree: Any, outputs: int) -> Array:
    """What each node adds to the outputs, float32 ``[nodes, outputs]``; 0 for inner nodes."""
    values = np.zeros((len(tree.nodes), outputs), np.float32)
    for row, node in zip(values, tree.nodes, strict=True):
        if node.WhichOneof("node") != "leaf":
            continue
        given = node.leaf.vector.value
        at: Any = range(len(given))
        if node.leaf.HasField("sparse_vector"):
            at, given = node.leaf.sparse_vector.index, node.leaf.sparse_vector.value
            if len(at) != len(given):
                raise invalid(f"Invalid leaf: {len(at)} indices, but {len(given)} values.")
        if len(at) and not (min(at) >= 0 and max(at) < outputs):
            raise invalid(
                f"Invalid leaf: it has a value for output {max(at)}, but there are {outputs} "
                "outputs (num_classes, or one less with reduce_dim)."
            )
        np.add.at(row, list(at), np.asarray(given, np.float32))
    return values


def predict(
    config: Any, trees: Sequence[int], weights: Sequence[float], features: Features, outputs: int
) -> tuple[Array, Array]:
    """``(predictions [batch, outputs], leaves [batch, all trees])``; -1 for trees left out."""
    result = np.zeros((features.batch, outputs), np.float32)
    leaves = np.full((features.batch, len(config.trees)), -1, np.int32)
    for index in trees:
        tree = config.trees[index]
        leaves[:, index] = found = leaves_of(tree, features)
        result += (np.float32(weights[index]) * _leaf_values(tree, outputs))[found]
    return result, leaves


def partition(ensemble: TreeEnsemble, features: Features) -> Array:
    """The leaf of each example in the tree that is growing, 0 for all if none is."""
    last = len(ensemble.config.trees) - 1
    if last < 0 or not ensemble.is_growing(last) or not ensemble.config.trees[last].nodes:
        return np.zeros(features.batch, np.int32)
    return leaves_of(ensemble.config.trees[last], features)


# -- weights ------------------------------------------------------------------------------------


def averaged_weights(weights: Sequence[float], averaging: Any) -> list[float]:
    """Weights with which the last trees count as the mean of the ensembles that end with them."""
    count = len(weights)
    if averaging.WhichOneof("config") == "average_last_n_trees":
        first = count - averaging.average_last_n_trees
    else:
        first = count * (1.0 - averaging.average_last_percent_trees)
    start = int(max(0.0, first))
    result = list(weights)
    for index in range(start, count):
        result[index] = weights[index] * (count - index) / (count - start)
    return result


def check_dropout(dropout: Any) -> None:
    """Raises InvalidArgumentError for settings that are no probabilities."""
    if not 0 <= dropout.dropout_probability <= 1:
        raise invalid("Dropout probability must be in [0,1] range")
    if not 0 <= dropout.probability_of_skipping_dropout <= 1:
        raise invalid("Probability of skipping dropout must be in [0,1] range")


def dropped_trees(seed: int, dropout: Any, kept: set[int], count: int) -> list[int]:
    """The trees that a step leaves out, in order; those of ``kept`` never are."""
    check_dropout(dropout)
    probability, skipping = dropout.dropout_probability, dropout.probability_of_skipping_dropout
    if probability == 0 or skipping == 1:
        return []
    state = np.zeros(6, np.uint32)
    state[:2] = seed & _MASK32, seed >> 32 & _MASK32
    words = stream_np(state, 2 * (count + 1)).astype(np.uint64).reshape(-1, 2)
    bits = (words[:, 0] & np.uint64(0xFFFFF)) << np.uint64(32) | words[:, 1]
    rolls = iter((bits | np.uint64(1023 << 52)).view(np.float64) - 1.0)
    if skipping != 0 and next(rolls) < skipping:
        return []
    return [tree for tree in range(count) if tree not in kept and next(rolls) < probability]
