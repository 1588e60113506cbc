"""Ops that let ensembles of boosted trees grow. All of them run on the host.

How is in ``headrace.ops.forest.boosted_growth``.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from headrace.ops.core.checks import invalid
from headrace.ops.core.registry import define_op
from headrace.ops.core.traits import BOOSTED
from headrace.ops.forest import boosted_growth as growth
from headrace.ops.forest.boosted_ensemble import TreeEnsemble
from headrace.ops.forest.boosted_trees import (
    CHANGES,
    NO_GRADIENT,
    READS,
    find,
    learner_config,
    scalar_int,
)

_boosted_op = partial(define_op, traits=BOOSTED)


def _changed(ensemble: TreeEnsemble) -> Any:
    """A copy to work on: what fails leaves the ensemble as it is.

    Raises:
        InvalidArgumentError: if the trees have no metadata.
    """
    config = type(ensemble.config)()
    config.CopyFrom(ensemble.config)
    if len(config.tree_metadata) != len(config.trees):
        raise invalid(f"Only trees with metadata grow; the ensemble has {len(config.trees)} trees.")
    return config


def _scalar_float(value: Any, name: str) -> float:
    array = np.asarray(value)
    if array.size != 1:
        raise invalid(f"{name} must be a scalar, not of shape {list(array.shape)}.")
    return float(array.reshape(())[()])


def _grow(
    context: Any,
    handle: Any,
    stamp: Any,
    next_stamp: Any,
    learning_rate: Any,
    seed: Any,
    max_tree_depth: Any,
    weak_learner_type: Any,
    partitions: list[Any],
    gains: list[Any],
    splits: list[Any],
) -> Any:
    learner = learner_config(context)
    oblivious = _is_oblivious(learner, weak_learner_type)
    following = scalar_int(next_stamp, "next_stamp_token")
    lists = [[np.asarray(part) for part in parts] for parts in (partitions, gains, splits)]
    ensemble = find(context, handle, TreeEnsemble)
    with ensemble.lock:
        ensemble.check_next(scalar_int(stamp, "stamp_token"), following)
        config = _changed(ensemble)
        growth.count_attempt(config)
        layer = growth.best_layer(learner, *lists[1:]) if oblivious else None
        best = {} if oblivious else growth.best_splits(learner, *lists)
        if best or layer:
            rate = _scalar_float(learning_rate, "learning_rate")
            depth = scalar_int(max_tree_depth, "max_tree_depth")
            growth.growable_tree(config, rate, depth, oblivious)
            if learner.learning_rate_tuner.WhichOneof("tuner") == "dropout":
                dropout, centers = learner.learning_rate_tuner.dropout, "center_bias"
                number = scalar_int(seed, "dropout_seed")
                growth.reweight(config, dropout, number, context.node.attrs[centers])
            for leaf, split in best.items():
                growth.split_leaf(config, learner, leaf, split)
            if layer:
                growth.split_layer(config, learner, layer)
            prunes = learner.pruning_mode == learner.POST_PRUNE
            if prunes and config.tree_metadata[-1].is_finalized:
                growth.prune(config)
                growth.start_tree(config, learner, rate, depth)
        ensemble.config, ensemble.stamp = config, following
    return ()


def _is_oblivious(learner: Any, kind: Any) -> bool:
    """Whether the trees that grow are oblivious.

    Raises:
        InvalidArgumentError: for another kind than there are, or if such trees are to be pruned.
    """
    number = scalar_int(kind, "weak_learner_type")
    if number not in learner.WeakLearnerType.values():
        raise invalid(f"weak_learner_type must be 0 (normal) or 1 (oblivious), not {number}.")
    if number == learner.NORMAL_DECISION_TREE:
        return False
    if learner.pruning_mode == learner.POST_PRUNE:
        raise invalid("Oblivious trees are not pruned after they have grown: set PRE_PRUNE.")
    return True


def _center(
    context: Any,
    handle: Any,
    stamp: Any,
    next_stamp: Any,
    updates: Any,
    *,
    centering_epsilon: float,
) -> Any:
    learner_config(context)
    following, deltas = scalar_int(next_stamp, "next_stamp_token"), np.asarray(updates)
    if deltas.ndim != 1:
        raise invalid(f"delta_updates must be a vector, not of shape {list(deltas.shape)}.")
    ensemble = find(context, handle, TreeEnsemble)
    with ensemble.lock:
        ensemble.check_next(scalar_int(stamp, "stamp_token"), following)
        config = _changed(ensemble)
        goes_on = growth.center(config, deltas, centering_epsilon)
        ensemble.config, ensemble.stamp = config, following
    return np.array(goes_on)


def _stats(context: Any, handle: Any, stamp: Any) -> Any:
    ensemble = find(context, handle, TreeEnsemble)
    with ensemble.lock:
        ensemble.check_stamp(scalar_int(stamp, "stamp_token"))
        config = ensemble.config
        layers = [metadata.num_layers_grown for metadata in config.tree_metadata]
        count = len(config.trees)
        finished = count - int(ensemble.is_growing(count - 1) if count else False)
        growing = config.growing_metadata
        attempted = growing.num_trees_attempted, growing.num_layers_attempted
    found = (finished, sum(layers), count, layers[-1] if layers else 0, *attempted)
    return tuple(np.int64(value) for value in found)


_boosted_op(
    "GrowTreeEnsemble(tree_ensemble_handle: resource, stamp_token: int64, next_stamp_token: int64, "
    "learning_rate: float32, dropout_seed: int64, max_tree_depth: int32, weak_learner_type: int32, "
    "partition_ids: num_handlers * int32, gains: num_handlers * float32, "
    "splits: num_handlers * string)",
    attrs="learner_config: string, num_handlers: int >= 0, center_bias: bool",
    shape=lambda op: [],
    host=_grow,
    effects=CHANGES,
    gradient=NO_GRADIENT,
)
_boosted_op(
    "CenterTreeEnsembleBias(tree_ensemble_handle: resource, stamp_token: int64, "
    "next_stamp_token: int64, delta_updates: float32) -> continue_centering: bool",
    attrs="learner_config: string, centering_epsilon: float = 0.009999999776482582",
    shape=lambda op: [()],
    host=_center,
    effects=CHANGES,
    gradient=NO_GRADIENT,
)
_boosted_op(
    "TreeEnsembleStats(tree_ensemble_handle: resource, stamp_token: int64) -> (num_trees: int64, "
    "num_layers: int64, active_tree: int64, active_layer: int64, attempted_trees: int64, "
    "attempted_layers: int64)",
    shape=lambda op: [()] * 6,
    host=_stats,
    effects=READS,
    gradient=NO_GRADIENT,
)
