"""How an ensemble of boosted trees grows: best splits become nodes, layer by layer.

Weights of dropped trees: Rashmi and Gilad-Bachrach, "DART" (2015), section 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from headrace.ops.core.checks import invalid
from headrace.ops.forest.boosted_ensemble import children_of, dropped_trees

Array = NDArray[Any]


class Candidate(NamedTuple):
    """A split of one leaf: the feature that proposed it, what it gains, and its SplitInfo."""

    handler: int
    gain: float
    info: Any


def count_attempt(config: Any) -> None:
    """One more attempt at a layer; at a tree, if the last one is finished."""
    growing = config.growing_metadata
    growing.num_layers_attempted += 1
    if not config.trees or config.tree_metadata[-1].is_finalized:
        growing.num_trees_attempted += 1


def add_tree(config: Any, weight: float) -> Any:
    """A new tree of one layer, without nodes."""
    tree = config.trees.add()
    config.tree_weights.append(weight)
    config.tree_metadata.add().num_layers_grown = 1
    return tree


def _is_better(new: Candidate, best: Candidate) -> bool:
    """More gain; then the simpler kind of node, then the later handler."""
    if new.gain != best.gain:
        return new.gain > best.gain
    kinds = [_number(c.info.split_node) for c in (new, best)]
    return kinds[0] < kinds[1] or (kinds[0] == kinds[1] and new.handler > best.handler)


def _number(node: Any) -> int:
    return int(node.DESCRIPTOR.fields_by_name[node.WhichOneof("node")].number)


def _parsed(kind: Any, text: Any, what: str) -> Any:
    from google.protobuf.message import DecodeError

    try:
        return kind.FromString(text.encode() if isinstance(text, str) else text)
    except DecodeError:
        raise invalid(f"Unable to parse {what}.") from None


def best_splits(
    learner: Any, partitions: Sequence[Array], gains: Sequence[Array], splits: Sequence[Array]
) -> dict[int, Candidate]:
    """The best candidate for each leaf that has one.

    Raises:
        InvalidArgumentError: for lists of several lengths, or what is no SplitInfo.
    """
    from headrace.graph.proto.boosted_trees.split_info_pb2 import SplitInfo

    best: dict[int, Candidate] = {}
    for handler, (leaves, gain, texts) in enumerate(zip(partitions, gains, splits, strict=True)):
        for name, found in (("gains", gain), ("splits", texts)):
            if found.size != leaves.size:
                message = f"Inconsistent partition Ids and {name} tensors: {leaves.size}"
                raise invalid(f"{message} != {found.size}")
        for leaf, value, text in zip(leaves.tolist(), gain.tolist(), texts.tolist(), strict=True):
            info = _parsed(SplitInfo, text, "split info")
            if not info.split_node.WhichOneof("node"):
                continue
            if learner.pruning_mode == learner.PRE_PRUNE and value < 0:
                continue
            # All examples on one side are no split.
            if not (info.left_child.WhichOneof("leaf") and info.right_child.WhichOneof("leaf")):
                continue
            new = Candidate(handler, value, info)
            if leaf not in best or _is_better(new, best[leaf]):
                best[leaf] = new
    return dict(sorted(best.items()))


def best_layer(learner: Any, gains: Sequence[Array], splits: Sequence[Array]) -> Candidate | None:
    """The best candidate for a layer of an oblivious tree, if there is one.

    Raises:
        InvalidArgumentError: unless each handler has one, an ObliviousSplitInfo of pairs.
    """
    from headrace.graph.proto.boosted_trees.split_info_pb2 import ObliviousSplitInfo

    best = None
    for handler, (gain, texts) in enumerate(zip(gains, splits, strict=True)):
        for name, found in (("Gains", gain), ("Splits", texts)):
            if found.size != 1:
                raise invalid(f"{name} size must be one for oblivious weak learner: {found.size}")
        info = _parsed(ObliviousSplitInfo, texts.reshape(-1)[0], "oblivious split info")
        children = info.children
        if len(children) != 2 * len(info.children_parent_id):
            raise invalid(
                f"An oblivious split has two children for each parent, not {len(children)} for "
                f"{len(info.children_parent_id)}."
            )
        value = float(gain.reshape(-1)[0])
        formed = [child.WhichOneof("leaf") is not None for child in children]
        if not any(left and right for left, right in zip(formed[::2], formed[1::2], strict=True)):
            continue  # all examples on one side are no split
        if learner.pruning_mode == learner.PRE_PRUNE and value < 0:
            continue
        new = Candidate(handler, value, info)
        if best is None or _is_better(new, best):
            best = new
    return best


def _is_oblivious(tree: Any) -> bool:
    return bool(tree.nodes) and (tree.nodes[0].WhichOneof("node") or "").startswith("oblivious")


def growable_tree(config: Any, learning_rate: float, depth: int, oblivious: bool = False) -> Any:
    """The tree that gets the next layer: the last one, or a new one if that is finished.

    Raises:
        InvalidArgumentError: if that is no oblivious tree, and the layer is one of such a tree, or
            the other way round.
    """
    if not config.trees or config.tree_metadata[-1].is_finalized:
        tree = add_tree(config, learning_rate)
        tree.nodes.add().leaf.SetInParent()
        config.tree_metadata[-1].num_tree_weight_updates = 1
    else:
        tree = config.trees[-1]
        if not oblivious and _is_oblivious(tree):
            raise invalid("The tree that grows is oblivious: it cannot get a layer of other nodes.")
        if oblivious and len(tree.nodes) > 1 and not _is_oblivious(tree):
            raise invalid("The tree that grows is not oblivious: it cannot get such a layer.")
        config.tree_metadata[-1].num_layers_grown += 1
    metadata = config.tree_metadata[-1]
    metadata.is_finalized = metadata.num_layers_grown >= max(depth, 1)
    return config.trees[-1]


def reweight(config: Any, dropout: Any, seed: int, center_bias: bool) -> None:
    """Once a tree is finished, it and those dropped meanwhile share the weight of the latter."""
    if not config.tree_metadata[-1].is_finalized:
        return
    last = len(config.trees) - 1
    kept = {last, 0} if center_bias else {last}
    dropped = dropped_trees(seed, dropout, kept, last + 1)
    if not dropped:
        return
    count = len(dropped)
    weights = np.array(config.tree_weights, np.float32)
    total = np.float32(np.sum(weights[dropped], dtype=np.float64))
    weights[last] = total / np.float32(count + 1)
    weights[dropped] = weights[dropped] * np.float32(count) / np.float32(count + 1)
    config.tree_weights[:] = weights.tolist()
    for tree in (*dropped, last):
        config.tree_metadata[tree].num_tree_weight_updates += 1


def start_tree(config: Any, learner: Any, weight: float, depth: int) -> None:
    """Begin a tree with what the learner says each begins with, if it says so.

    As in TensorFlow, this happens as soon as the tree before it is finished.
    """
    if not learner.each_tree_start.nodes:
        return
    if config.trees and not config.tree_metadata[-1].is_finalized:
        return
    add_tree(config, weight).CopyFrom(learner.each_tree_start)
    metadata = config.tree_metadata[-1]
    metadata.is_finalized = depth <= 1
    metadata.num_tree_weight_updates = 1
    metadata.num_layers_grown = learner.each_tree_start_num_layers


def _merge(source: Any, leaf: Any) -> None:
    """Add the values of the leaf that is split to one that takes its place."""
    kind = source.WhichOneof("leaf")
    if leaf.WhichOneof("leaf") is None:
        leaf.CopyFrom(source)
        return
    if kind is None or not getattr(source, kind).value:
        return
    if leaf.WhichOneof("leaf") != kind:
        raise invalid(f"A leaf with a {kind} cannot become one with {leaf.WhichOneof('leaf')}.")
    old, new = getattr(source, kind), getattr(leaf, kind)
    if kind == "vector":
        if len(old.value) != len(new.value):
            raise invalid(f"A leaf of {len(old.value)} values cannot get {len(new.value)}.")
        new.value[:] = np.add(np.float32(new.value), np.float32(old.value)).tolist()
        return
    sums = dict(zip(new.index, np.array(new.value, np.float32), strict=True))
    for index, value in zip(old.index, np.array(old.value, np.float32), strict=True):
        sums[index] = sums.get(index, np.float32(0)) + value
    new.index[:], new.value[:] = list(sums), [float(value) for value in sums.values()]


def split_leaf(config: Any, learner: Any, leaf: int, split: Candidate) -> None:
    """Put a split into the place of a leaf of the last tree, with two leaves at the end.

    Raises:
        InvalidArgumentError: if there is no such leaf.
    """
    nodes = config.trees[-1].nodes
    if not 0 <= leaf < len(nodes) or nodes[leaf].WhichOneof("node") != "leaf":
        raise invalid(f"Cannot split node {leaf}: the tree has {len(nodes)} nodes; it is no leaf.")
    node, info = nodes[leaf], split.info
    children = children_of(info.split_node)
    if not hasattr(children, "left_id"):
        raise invalid(f"Node {leaf} becomes no {info.split_node.WhichOneof('node')}.")
    children.left_id, children.right_id = len(nodes), len(nodes) + 1
    for child in (info.left_child, info.right_child):
        if learner.growing_mode != learner.WHOLE_TREE:
            _merge(node.leaf, child)
        nodes.add().leaf.CopyFrom(child)
    metadata = info.split_node.node_metadata
    metadata.gain = split.gain
    if learner.pruning_mode == learner.POST_PRUNE:
        metadata.original_leaf.CopyFrom(node.leaf)
    node.CopyFrom(info.split_node)
    if learner.constraints.max_number_of_unique_feature_columns:
        used = config.growing_metadata.used_handler_ids
        used[:] = sorted({*used, split.handler})


def split_layer(config: Any, learner: Any, split: Candidate) -> None:
    """Add a layer to the oblivious tree that grows last: the same split for all of its leaves.

    A leaf without leaves of its own in the split becomes two like it.

    Raises:
        InvalidArgumentError: if the split has a parent that is no leaf.
    """
    nodes, info = config.trees[-1].nodes, split.info
    depth = 0
    while depth < len(nodes) and nodes[depth].WhichOneof("node") != "leaf":
        depth += 1
    old = [node.leaf for node in nodes[depth:]]
    parents = list(info.children_parent_id)
    strangers = [p for p in parents if not depth <= p < len(nodes)]
    if strangers or len(set(parents)) != len(parents) or len(old) != 1 << depth:
        raise invalid(
            f"Cannot split nodes {parents} of an oblivious tree with leaves {depth} to "
            f"{len(nodes) - 1}, of which there must be {1 << depth}."
        )
    leaves = [type(leaf)() for leaf in old for _ in range(2)]
    for place, leaf in enumerate(old):
        new = leaves[2 * place : 2 * place + 2]
        if depth + place not in parents:
            for child in new:
                child.CopyFrom(leaf)
            continue
        first = 2 * parents.index(depth + place)
        for child, given in zip(new, info.children[first : first + 2], strict=True):
            child.CopyFrom(given)
            if learner.growing_mode != learner.WHOLE_TREE:
                _merge(leaf, child)
    metadata = info.split_node.node_metadata
    metadata.gain = split.gain
    metadata.original_oblivious_leaves.extend(old)
    del nodes[depth:]
    nodes.add().CopyFrom(info.split_node)
    for leaf in leaves:
        nodes.add().leaf.CopyFrom(leaf)


def prune(config: Any) -> None:
    """Take back splits at the ends of the last tree that gain less than nothing.

    A tree that has nothing left goes.
    """
    tree = config.trees[-1]
    gone: set[int] = set()
    # Children come after their parents: from the end, each node sees what became of its own.
    for index in range(len(tree.nodes) - 1, -1, -1):
        node = tree.nodes[index]
        if node.WhichOneof("node") == "leaf":
            continue
        split = children_of(node)
        ends = [tree.nodes[i].WhichOneof("node") == "leaf" for i in (split.left_id, split.right_id)]
        if node.node_metadata.gain < 0 and all(ends):
            gone |= {split.left_id, split.right_id}
            node.leaf.CopyFrom(node.node_metadata.original_leaf)
            node.ClearField("node_metadata")
        else:
            node.node_metadata.ClearField("original_leaf")
    if tree.nodes[0].WhichOneof("node") == "leaf":
        del config.trees[-1], config.tree_weights[-1], config.tree_metadata[-1]
        return
    _renumber(tree, gone)


def _renumber(tree: Any, gone: set[int]) -> None:
    """Drop nodes; children stand in the order of their parents."""
    old = type(tree)()
    old.CopyFrom(tree)
    del tree.nodes[:]
    places = {0: 0}
    tree.nodes.add().CopyFrom(old.nodes[0])
    for index, node in enumerate(old.nodes):
        if index in gone or node.WhichOneof("node") == "leaf":
            continue
        split, new = children_of(node), children_of(tree.nodes[places[index]])
        for name in ("left_id", "right_id"):
            child = getattr(split, name)
            places[child] = len(tree.nodes)
            setattr(new, name, len(tree.nodes))
            tree.nodes.add().CopyFrom(old.nodes[child])


def center(config: Any, updates: Array, epsilon: float) -> bool:
    """Move the bias, which is the only tree; whether it goes on moving.

    Raises:
        InvalidArgumentError: if the ensemble has other trees, or a bias of another size.
    """
    if not config.trees:
        count_attempt(config)
        tree = add_tree(config, 1.0)
        tree.nodes.add().leaf.vector.value.extend([0.0] * len(updates))
    nodes = config.trees[0].nodes
    if len(config.trees) > 1 or len(nodes) != 1 or not nodes[0].leaf.HasField("vector"):
        raise invalid("Unable to center bias on an already grown ensemble")
    bias = nodes[0].leaf.vector.value
    if len(bias) != len(updates):
        raise invalid(f"The bias has {len(bias)} values, but delta_updates {len(updates)}.")
    bias[:] = np.add(np.float32(bias), updates).tolist()
    goes_on = bool(np.add.accumulate(np.abs(updates))[-1:].sum() > np.float32(epsilon))
    if not goes_on:
        config.tree_metadata[-1].is_finalized = True
    return goes_on
