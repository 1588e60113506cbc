"""Ops that let an ensemble grow."""

from __future__ import annotations

from typing import Any

from headrace.graph.tensor import Operation, Tensor
from headrace.ops.core.build import raw

__all__ = ["center_tree_ensemble_bias", "grow_tree_ensemble", "tree_ensemble_stats"]


def grow_tree_ensemble(
    tree_ensemble_handle: Any,
    stamp_token: Any,
    next_stamp_token: Any,
    learning_rate: Any,
    dropout_seed: Any,
    max_tree_depth: Any,
    weak_learner_type: Any,
    partition_ids: Any,
    gains: Any,
    splits: Any,
    learner_config: bytes | str,
    center_bias: bool,
    name: str | None = None,
) -> Operation:
    """An operation that adds a layer to the last tree, or begins a new one.

    Friedman, "Greedy Function Approximation: A Gradient Boosting Machine", 2001, section 4.3; the
    learning rate is its section 5. Ponomareva et al., "TF Boosted Trees", 2017 (arXiv:1710.11555).

    Args:
        stamp_token, next_stamp_token: int64 scalars: the stamp, and that after the step.
        learning_rate: float32 scalar, the weight of a new tree.
        dropout_seed: int64 scalar, that of the predictions the splits come from.
        max_tree_depth: int32 scalar; a tree of that many layers is finished.
        weak_learner_type: int32 scalar; 0 is a normal decision tree, 1 an oblivious one, whose
            leaves are all split in the same way.
        partition_ids, gains, splits: for each handler, vectors of one length: int32 leaves, float32
            gains, and serialized SplitInfos. The best split of each leaf is taken. For an oblivious
            tree one gain and one serialized ObliviousSplitInfo each, and the leaves do not count.
        learner_config: a serialized LearnerConfig.
        center_bias: the first tree is a bias, and never dropped.

    Raises:
        FailedPreconditionError: in the step, if the ensemble has another stamp.
        InvalidArgumentError: in the step, for vectors of several lengths, splits that cannot be
            parsed, what is no leaf, a tree of the other kind, and oblivious trees with POST_PRUNE.
    """
    grown: Operation = raw.GrowTreeEnsemble(
        tree_ensemble_handle,
        stamp_token,
        next_stamp_token,
        learning_rate,
        dropout_seed,
        max_tree_depth,
        weak_learner_type,
        partition_ids,
        gains,
        splits,
        learner_config=learner_config,
        center_bias=center_bias,
        name=name,
    )
    return grown


def center_tree_ensemble_bias(
    tree_ensemble_handle: Any,
    stamp_token: Any,
    next_stamp_token: Any,
    delta_updates: Any,
    learner_config: bytes | str,
    centering_epsilon: float = 0.01,
    name: str | None = None,
) -> Tensor:
    """Moves the bias, the first tree, by ``delta_updates`` (float32 ``[outputs]``).

    Returns:
        Whether it moved by more than ``centering_epsilon`` in all, a bool scalar; if not, the bias
        is finished.

    Raises:
        FailedPreconditionError: in the step, if the ensemble has another stamp.
        InvalidArgumentError: in the step, if other trees have grown.
    """
    goes_on: Tensor = raw.CenterTreeEnsembleBias(
        tree_ensemble_handle,
        stamp_token,
        next_stamp_token,
        delta_updates,
        learner_config=learner_config,
        centering_epsilon=centering_epsilon,
        name=name,
    )
    return goes_on


def tree_ensemble_stats(
    tree_ensemble_handle: Any, stamp_token: Any, name: str | None = None
) -> Any:
    """``(num_trees, num_layers, active_tree, active_layer, attempted_trees, attempted_layers)``.

    int64 scalars: finished trees, layers of all trees, trees with the one that grows, its layers,
    and how many trees and layers were tried.

    Raises:
        FailedPreconditionError: in the step, if the ensemble has another stamp.
    """
    return raw.TreeEnsembleStats(tree_ensemble_handle, stamp_token, name=name)
