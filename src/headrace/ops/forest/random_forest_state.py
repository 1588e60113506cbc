"""What is saved of a random forest, as arrays: its trees, and what leaves have counted so far.

Trees stand one after the other. ``sizes`` has their numbers of nodes; ``nodes`` a row (first child
or 0, feature) for each node, with its ``thresholds`` and ``sums``; ``features`` those that a tree
may test. The others are what leaves have counted to find their split; they have no rows where this
is not saved, and leaves begin to count anew.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.errors import InvalidArgumentError
from headrace.ops.forest.random_forest_kernels import Array, Forest, Tree

_LOW = (1 << 64) - 1
#: Numbers of 64 bits that tell a generator (PCG64).
_GENERATOR = 6


def _generator_state(rng: np.random.Generator) -> list[int]:
    state: dict[str, Any] = dict(rng.bit_generator.state)
    numbers = state["state"]
    wide = [numbers["state"], numbers["inc"]]
    halves = [half for number in wide for half in (number >> 64, number & _LOW)]
    return [*halves, state["has_uint32"], state["uinteger"]]


def _set_generator(rng: np.random.Generator, saved: Array) -> None:
    a, b, c, d, has_more, more = (int(n) for n in saved.view(np.uint64))
    numbers = {"state": a << 64 | b, "inc": c << 64 | d}
    rng.bit_generator.state = {
        "bit_generator": "PCG64",
        "state": numbers,
        "has_uint32": has_more,
        "uinteger": more,
    }


def state_of(forest: Forest, stats: bool) -> tuple[Array, ...]:
    """The arrays of a forest, in the order of the outputs of ``HeadraceForestState``.

    Args:
        stats: whether those that leaves have counted are among them.
    """
    with forest.lock:
        trees = forest.trees
        sizes = np.asarray([tree.size for tree in trees], np.int32)

        def joined(name: str, there: bool = True) -> Array:
            parts = [getattr(tree, name)[: tree.size if there else 0] for tree in trees]
            return np.concatenate(parts)

        random = [_generator_state(tree.rng) for tree in trees] if stats else []
        return (
            sizes,
            np.stack([tree.features for tree in trees]),
            np.stack([joined("children"), joined("feature")], axis=1),
            joined("threshold"),
            joined("sums"),
            np.stack([joined("seen", stats), joined("filled", stats).astype(np.int64)], axis=1),
            *(joined(name, stats) for name in ("tests", "values", "before", "below")),
            np.asarray(random, np.uint64).reshape(-1, _GENERATOR).view(np.int64),
        )


def _refuse(message: str) -> InvalidArgumentError:
    return InvalidArgumentError(None, None, f"What was saved is no such forest: {message}")


def _check(forest: Forest, state: list[Array]) -> None:
    sizes, features, nodes, thresholds, sums, counts, tests, values, before, below, random = state
    spec, tree = forest.spec, forest.trees[0]
    total, rows, k = int(sizes.sum()), len(counts), spec.num_splits
    if sizes.shape != (spec.num_trees,) or (sizes < 1).any():
        raise _refuse(f"it has {sizes.size} trees, and ForestHParams has {spec.num_trees}")
    wanted: list[tuple[str, Array, tuple[int, ...]]] = [
        ("features", features, (spec.num_trees, len(tree.features))),
        ("nodes", nodes, (total, 2)),
        ("thresholds", thresholds, (total,)),
        ("sums", sums, (total, tree.width)),
        ("counts", counts, (total if rows else 0, 2)),
        ("tests", tests, (rows, k)),
        ("values", values, (rows, k)),
        ("before", before, (rows, k, tree.width)),
        ("below", below, (rows, k, tree.width)),
        ("random", random, (spec.num_trees if rows else 0, _GENERATOR)),
    ]
    for name, array, shape in wanted:
        if array.shape != shape:
            raise _refuse(f"{name} have the shape {list(array.shape)}, not {list(shape)}")
    for name, array in (("features", features), ("nodes", nodes[:, 1]), ("tests", tests)):
        if ((array < 0) | (array >= spec.num_features)).any():
            raise _refuse(f"{name} have features that are not in [0, {spec.num_features})")
    if rows and ((counts < 0) | (counts > [2**62, k])).any():
        raise _refuse("counts are out of their range")
    place = np.concatenate([np.arange(size) for size in sizes])
    own = np.repeat(sizes, sizes)
    child = nodes[:, 0]
    # A child stands behind its parent, so no path is endless.
    if ((child != 0) & ((child <= place) | (child + 1 >= own))).any():
        raise _refuse("a node has a child that is none of its tree")


def _load_tree(tree: Tree, rows: slice, state: list[Array]) -> None:
    nodes, thresholds, sums, counts, tests, values, before, below = state
    size = rows.stop - rows.start
    vars(tree).update(tree.empty(max(8, size)))
    tree.size = size
    tree.children[:size], tree.feature[:size] = nodes[rows].T
    tree.threshold[:size], tree.sums[:size] = thresholds[rows], sums[rows]
    tested = tree.feature[:size][tree.children[:size] > 0]
    tree.usage = np.bincount(tested, minlength=len(tree.usage)).astype(np.int32)
    if len(counts):
        tree.seen[:size], tree.filled[:size] = counts[rows].T
        tree.tests[:size], tree.values[:size] = tests[rows], values[rows]
        tree.before[:size], tree.below[:size] = before[rows], below[rows]


def load_state(forest: Forest, state: list[Array]) -> None:
    """Put saved trees in the place of those of a forest.

    Args:
        state: what `state_of` gave.

    Raises:
        InvalidArgumentError: if it is that of another forest, or damaged.
    """
    with forest.lock:
        _check(forest, state)
        sizes, features, *arrays, random = state
        ends = np.cumsum(sizes)
        for i, tree in enumerate(forest.trees):
            rows = slice(int(ends[i] - sizes[i]), int(ends[i]))
            tree.features = features[i].astype(np.int32)
            _load_tree(tree, rows, arrays)
            if len(random):
                _set_generator(tree.rng, np.ascontiguousarray(random[i]))


__all__ = ["load_state", "state_of"]
