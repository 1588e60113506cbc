"""Ops that find the best splits of the leaves of a tree, for one feature column."""

from __future__ import annotations

from typing import Any

from headrace.ops.core.build import raw

__all__ = [
    "build_categorical_equality_splits",
    "build_dense_inequality_splits",
    "build_sparse_inequality_splits",
]


def build_dense_inequality_splits(
    num_minibatches: Any,
    partition_ids: Any,
    bucket_ids: Any,
    gradients: Any,
    hessians: Any,
    bucket_boundaries: Any,
    class_id: Any,
    feature_column_group_id: Any,
    l1_regularization: Any,
    l2_regularization: Any,
    tree_complexity_regularization: Any,
    min_node_weight: Any,
    multiclass_strategy: Any,
    weak_learner_type: Any,
    name: str | None = None,
) -> Any:
    """The best threshold of a dense column for each leaf.

    Chen and Guestrin, "XGBoost: A Scalable Tree Boosting System", 2016 (arXiv:1603.02754), sections
    2.2 and 3.2.

    Args:
        num_minibatches: int64 scalar: sums are divided by it.
        partition_ids: int32 ``[n]``, leaves, in rising order.
        bucket_ids: int64 ``[n, 2]``, buckets in rising order for each leaf, and dimensions.
        gradients, hessians: the sums, float32 ``[n]``; or ``[n, outputs]`` and ``[n, outputs]`` or
            ``[n, outputs, outputs]``.
        bucket_boundaries: float32 vector; none mean that the column is not active.
        class_id: int32 scalar, the class that leaves are of, -1 for all.
        feature_column_group_id: int32 scalar, how splits name the column.
        l1_regularization, l2_regularization, tree_complexity_regularization: float32 scalars.
        min_node_weight: float32 scalar: a leaf weighs nothing unless its Hessian is larger.
        multiclass_strategy: int32 scalar, a LearnerConfig.MultiClassStrategy.
        weak_learner_type: int32 scalar: 1 is one split for all leaves.

    Returns:
        ``(output_partition_ids, gains, split_infos)``: int32, float32 and string vectors; the last
        are serialized SplitInfos, or one ObliviousSplitInfo.

    Raises:
        InvalidArgumentError: in the step, for inputs that do not fit each other, and leaves or
            buckets that are not in order.
    """
    return raw.BuildDenseInequalitySplits(
        num_minibatches,
        partition_ids,
        bucket_ids,
        gradients,
        hessians,
        bucket_boundaries,
        class_id,
        feature_column_group_id,
        l1_regularization,
        l2_regularization,
        tree_complexity_regularization,
        min_node_weight,
        multiclass_strategy,
        weak_learner_type,
        name=name,
    )


def build_sparse_inequality_splits(
    num_minibatches: Any,
    partition_ids: Any,
    bucket_ids: Any,
    gradients: Any,
    hessians: Any,
    bucket_boundaries: Any,
    class_id: Any,
    feature_column_group_id: Any,
    bias_feature_id: Any,
    l1_regularization: Any,
    l2_regularization: Any,
    tree_complexity_regularization: Any,
    min_node_weight: Any,
    multiclass_strategy: Any,
    name: str | None = None,
) -> Any:
    """The best threshold, dimension and default direction of a sparse column for each leaf.

    Chen and Guestrin, "XGBoost: A Scalable Tree Boosting System", 2016 (arXiv:1603.02754), sections
    2.2 and 3.4.

    The first bucket of each leaf is ``bias_feature_id`` (int64 scalar) in dimension 0, with the
    sums of all examples of the leaf; leaves that have no other bucket are left out. Everything
    else is as for `build_dense_inequality_splits`.

    Raises:
        TypeError: if an argument is of another type.
        InvalidArgumentError: in the step, for inputs that do not fit each other.
    """
    return raw.BuildSparseInequalitySplits(
        num_minibatches,
        partition_ids,
        bucket_ids,
        gradients,
        hessians,
        bucket_boundaries,
        class_id,
        feature_column_group_id,
        bias_feature_id,
        l1_regularization,
        l2_regularization,
        tree_complexity_regularization,
        min_node_weight,
        multiclass_strategy,
        name=name,
    )


def build_categorical_equality_splits(
    num_minibatches: Any,
    partition_ids: Any,
    feature_ids: Any,
    gradients: Any,
    hessians: Any,
    class_id: Any,
    feature_column_group_id: Any,
    bias_feature_id: Any,
    l1_regularization: Any,
    l2_regularization: Any,
    tree_complexity_regularization: Any,
    min_node_weight: Any,
    multiclass_strategy: Any,
    weak_learner_type: Any,
    name: str | None = None,
) -> Any:
    """The best id of a categorical column for each leaf: examples that have it go left.

    The gain is that of Chen and Guestrin, "XGBoost: A Scalable Tree Boosting System", 2016
    (arXiv:1603.02754), section 2.2.

    ``feature_ids`` are int64 ``[n, 2]``, ids and dimensions; the first of each leaf is
    ``bias_feature_id``, as for `build_sparse_inequality_splits`.

    Raises:
        TypeError: if an argument is of another type.
        InvalidArgumentError: in the step, for inputs that do not fit each other.
    """
    return raw.BuildCategoricalEqualitySplits(
        num_minibatches,
        partition_ids,
        feature_ids,
        gradients,
        hessians,
        class_id,
        feature_column_group_id,
        bias_feature_id,
        l1_regularization,
        l2_regularization,
        tree_complexity_regularization,
        min_node_weight,
        multiclass_strategy,
        weak_learner_type,
        name=name,
    )
