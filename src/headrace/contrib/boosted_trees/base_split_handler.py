"""What finds the splits of one feature column while a tree grows.

Workers call ``update_stats`` for each batch, the chief ``make_splits`` when a layer is due. Stamps
keep sums of one layer out of the next.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import headrace as tf
from headrace.contrib.boosted_trees import batch_ops_utils
from headrace.contrib.boosted_trees.stats_accumulator_ops import StatsAccumulator

__all__ = ["BaseSplitHandler"]


class BaseSplitHandler(ABC):
    """A handler of one column.

    Args:
        l1_regularization, l2_regularization, tree_complexity_regularization: float32 scalars, what
            weights and leaves cost.
        min_node_weight: float32 scalar: the Hessian that a leaf must have more of.
        feature_column_group_id: int32 scalar: how splits name the column.
        gradient_shape, hessian_shape: TensorShapes of one example.
        multiclass_strategy: int32 scalar, a LearnerConfig.MultiClassStrategy.
        loss_uses_sum_reduction: bool scalar: the loss is a sum, not a mean, over a batch.
        name: of the handler, and what names of its resources end with.
    """

    def __init__(
        self,
        l1_regularization: Any,
        l2_regularization: Any,
        tree_complexity_regularization: Any,
        min_node_weight: Any,
        feature_column_group_id: Any,
        gradient_shape: Any,
        hessian_shape: Any,
        multiclass_strategy: Any,
        loss_uses_sum_reduction: Any = False,
        name: str | None = None,
    ) -> None:
        self._costs = {
            "feature_column_group_id": feature_column_group_id,
            "l1_regularization": l1_regularization,
            "l2_regularization": l2_regularization,
            "tree_complexity_regularization": tree_complexity_regularization,
            "min_node_weight": min_node_weight,
            "multiclass_strategy": multiclass_strategy,
        }
        self._gradient_shape = tf.TensorShape(gradient_shape)
        self._hessian_shape = tf.TensorShape(hessian_shape)
        self._loss_uses_sum_reduction = loss_uses_sum_reduction
        self._name = name or ""

    def _sums(self, init_stamp_token: Any) -> StatsAccumulator:
        """An accumulator of gradients and Hessians."""
        name = f"StatsAccumulator/{self._name}"
        return StatsAccumulator(
            init_stamp_token, self._gradient_shape, self._hessian_shape, name=name
        )

    def _count(self, num_minibatches: Any) -> Any:
        """What sums are divided by: batches, unless the loss is a sum."""
        one = tf.constant(1, tf.int64)
        return tf.where(tf.convert_to_tensor(self._loss_uses_sum_reduction), one, num_minibatches)

    def scheduled_reads(self) -> list[Any]:
        """The ScheduledOps whose results ``update_stats`` needs."""
        return []

    @abstractmethod
    def update_stats(
        self,
        stamp_token: Any,
        example_partition_ids: Any,
        gradients: Any,
        hessians: Any,
        empty_gradients: Any,
        empty_hessians: Any,
        weights: Any,
        is_active: Any,
        scheduled_reads: Sequence[Any],
    ) -> tuple[Any, list[Any]]:
        """Add the sums of a batch.

        Args:
            stamp_token: int64 scalar.
            example_partition_ids: int32 ``[batch]``, the leaf of each example.
            gradients, hessians: float32 ``[batch, ...]``.
            empty_gradients, empty_hessians: not used; what is empty has the shape of those.
            weights: float32, one for each example.
            is_active: bool ``[2]``: whether the column counts in this layer, and in the next.
            scheduled_reads: results of ``scheduled_reads``.

        Returns:
            An operation, and ScheduledOps; both are to be run.
        """

    def update_stats_sync(
        self,
        stamp_token: Any,
        example_partition_ids: Any,
        gradients: Any,
        hessians: Any,
        empty_gradients: Any,
        empty_hessians: Any,
        weights: Any,
        is_active: Any,
    ) -> Any:
        """`update_stats` with its reads and updates: one operation."""
        run = batch_ops_utils.run_handler_scheduled_ops
        reads = run({self: self.scheduled_reads()}, stamp_token, None)[self]
        first, scheduled = self.update_stats(
            stamp_token,
            example_partition_ids,
            gradients,
            hessians,
            empty_gradients,
            empty_hessians,
            weights,
            is_active,
            reads,
        )
        return tf.group(first, *run({self: scheduled}, stamp_token, None)[self])

    @abstractmethod
    def reset(self, stamp_token: Any, next_stamp_token: Any) -> Any:
        """An operation that forgets all sums."""

    @abstractmethod
    def make_splits(self, stamp_token: Any, next_stamp_token: Any, class_id: Any) -> Any:
        """Find the best splits, and begin anew with another stamp.

        Args:
            stamp_token, next_stamp_token: int64 scalars.
            class_id: int32 scalar, the class that leaves are of, -1 for all.

        Returns:
            ``(are_splits_ready, partition_ids, gains, split_infos)``: a bool scalar, and int32,
            float32 and string vectors.
        """


def nothing_of(gradients: Any, hessians: Any) -> tuple[Any, Any, Any, Any]:
    """Leaves, ids, gradients and Hessians of no examples."""
    ids = tf.zeros([0, 2], tf.int64)
    return tf.zeros([0], tf.int32), ids, gradients[:0], hessians[:0]


def with_bias(
    leaves: Any, gradients: Any, hessians: Any, examples: Any, ids: Any, bias: int
) -> tuple[Any, Any, Any, Any]:
    """Leaves, ids, gradients and Hessians of the values of a sparse column.

    Before them stands for each leaf the sum of all its examples, with the id ``bias``: each counts
    once, however many values it has. Sums are in float64, so that little is lost.

    Args:
        leaves, gradients, hessians: of examples.
        examples: int64 ``[n]``, the example of each value.
        ids: int64 ``[n, 2]``, its bucket or id, and its dimension.
    """
    unique, mapped = tf.unique(leaves)
    count = tf.size(unique)

    def joined(values: Any) -> Any:
        sums = tf.unsorted_segment_sum(tf.cast(values, tf.float64), mapped, count)
        return tf.concat([tf.cast(sums, tf.float32), tf.gather(values, examples)], 0)

    bias_ids = tf.stack(
        [tf.fill([count], tf.constant(bias, tf.int64)), tf.zeros([count], tf.int64)], 1
    )
    return (
        tf.concat([unique, tf.gather(leaves, examples)], 0),
        tf.concat([bias_ids, ids], 0),
        joined(gradients),
        joined(hessians),
    )
