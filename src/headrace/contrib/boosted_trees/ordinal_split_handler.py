"""Splits of columns of numbers: examples up to a threshold, and those above.

Thresholds are boundaries of quantiles (Chen and Guestrin, "XGBoost", 2016, section 3.2). While sums
are taken in the buckets of one layer, quantiles are taken for the next; the first layer has none,
and so no splits.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import headrace as tf
from headrace.contrib.boosted_trees import quantile_ops, split_handler_ops
from headrace.contrib.boosted_trees.base_split_handler import (
    BaseSplitHandler,
    nothing_of,
    with_bias,
)

__all__ = ["DenseSplitHandler", "InequalitySplitHandler", "SparseSplitHandler"]

_BIAS = -1
_NO_NAME = re.compile(r"[\W_]+")


class InequalitySplitHandler(BaseSplitHandler):
    """What both handlers of numbers share.

    Args:
        epsilon: the largest error of a rank, as a share of the whole weight.
        num_quantiles: how many buckets there are, about.
        init_stamp_token: int64 scalar, the first stamp.

    The others are those of `BaseSplitHandler`.
    """

    def __init__(
        self,
        l1_regularization: Any,
        l2_regularization: Any,
        tree_complexity_regularization: Any,
        min_node_weight: Any,
        feature_column_group_id: Any,
        epsilon: float,
        num_quantiles: int,
        gradient_shape: Any,
        hessian_shape: Any,
        multiclass_strategy: Any,
        init_stamp_token: Any = 0,
        loss_uses_sum_reduction: Any = False,
        name: str | None = None,
    ) -> None:
        super().__init__(
            l1_regularization,
            l2_regularization,
            tree_complexity_regularization,
            min_node_weight,
            feature_column_group_id,
            gradient_shape,
            hessian_shape,
            multiclass_strategy,
            loss_uses_sum_reduction,
            name,
        )
        self._stats_accumulator = self._sums(init_stamp_token)
        # Both stand in one place, so that splits are found where all is.
        with tf.colocate_with(self._stats_accumulator.resource_handle):
            self._quantile_accumulator = quantile_ops.QuantileAccumulator(
                init_stamp_token,
                epsilon=epsilon,
                num_quantiles=num_quantiles,
                name=f"QuantileAccumulator/{self._name}",
            )

    def scheduled_reads(self) -> list[Any]:
        return [self._quantile_accumulator.schedule_get_buckets()]

    def reset(self, stamp_token: Any, next_stamp_token: Any) -> Any:
        sums = self._stats_accumulator.flush(stamp_token, next_stamp_token)
        return tf.group(*sums, self._quantile_accumulator.flush(stamp_token, next_stamp_token))

    def _flushed(self, stamp_token: Any, next_stamp_token: Any) -> tuple[Any, dict[str, Any]]:
        """Whether there are buckets, and what splits are found from; all begins anew."""
        ready, buckets = self._quantile_accumulator.get_buckets(stamp_token)
        with tf.control_dependencies([ready, buckets]):
            flushed = self._quantile_accumulator.flush(stamp_token, next_stamp_token)
        batches, *sums = self._stats_accumulator.flush(stamp_token, next_stamp_token)
        # Whichever of the results is fetched, both begin anew.
        with tf.control_dependencies([flushed, sums[0]]):
            ready, batches = tf.identity(ready), tf.identity(batches)
        names = ("partition_ids", "bucket_ids", "gradients", "hessians")
        found = dict(zip(names, sums, strict=True))
        return ready, found | {
            "num_minibatches": self._count(batches),
            "bucket_boundaries": buckets,
        }

    @abstractmethod
    def _parts(self, is_active: bool) -> tuple[Any, ...]:
        """The tensors of the column, or those of such a column without examples."""

    @abstractmethod
    def _of_parts(self, parts: Sequence[Any]) -> Any:
        """The column of such tensors."""

    @abstractmethod
    def _in_buckets(self, buckets: Any, leaves: Any, gradients: Any, hessians: Any) -> Any:
        """Leaves, ids, gradients and Hessians of what the column has in buckets."""

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
        ready, buckets = scheduled_reads[0]
        leaves, gradients, hessians, weights, is_active = (
            tf.convert_to_tensor(part)
            for part in (example_partition_ids, gradients, hessians, weights, is_active)
        )
        with tf.name_scope(_NO_NAME.sub("", self._name), type(self).__name__):
            *parts, value_weights = tf.cond(
                is_active[1],
                lambda: (*self._parts(True), weights),
                lambda: (*self._parts(False), weights[:0]),
            )
            found = tf.cond(
                tf.logical_and(tf.logical_and(ready, tf.size(buckets) > 0), is_active[0]),
                lambda: self._in_buckets(buckets, leaves, gradients, hessians),
                lambda: nothing_of(gradients, hessians),
            )
            quantiles = self._quantile_accumulator.schedule_add_summary(
                stamp_token, self._of_parts(parts), value_weights
            )
            return tf.no_op(), [quantiles, self._stats_accumulator.schedule_add(*found)]


class DenseSplitHandler(InequalitySplitHandler):
    """A handler of a float32 tensor ``[batch, 1]``.

    Args:
        dense_float_column: the column.
        weak_learner_type: int32 scalar: 1 is one split for all leaves.

    The others are those of `InequalitySplitHandler`.
    """

    def __init__(
        self,
        dense_float_column: Any,
        *args: Any,
        weak_learner_type: Any = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self._column, self._kind = tf.convert_to_tensor(dense_float_column), weak_learner_type

    def _parts(self, is_active: bool) -> tuple[Any, ...]:
        return (self._column if is_active else self._column[:0],)

    def _of_parts(self, parts: Sequence[Any]) -> Any:
        return parts[0]

    def _in_buckets(self, buckets: Any, leaves: Any, gradients: Any, hessians: Any) -> Any:
        found = quantile_ops.quantiles([self._column], [], [buckets], [], [])[0][0]
        return leaves, tf.cast(found, tf.int64), gradients, hessians

    def make_splits(self, stamp_token: Any, next_stamp_token: Any, class_id: Any) -> Any:
        ready, sums = self._flushed(stamp_token, next_stamp_token)
        found = split_handler_ops.build_dense_inequality_splits(
            **sums, class_id=class_id, weak_learner_type=self._kind, **self._costs
        )
        return ready, *found


class SparseSplitHandler(InequalitySplitHandler):
    """A handler of a float32 SparseTensor ``[batch, n]``; its second index is a dimension.

    Args:
        sparse_float_column: the column.

    The others are those of `InequalitySplitHandler`.
    """

    def __init__(self, sparse_float_column: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._column = sparse_float_column

    def _parts(self, is_active: bool) -> tuple[Any, ...]:
        indices, values, shape = self._column.indices, self._column.values, self._column.dense_shape
        if is_active:
            return indices, values, shape
        return indices[:0], values[:0], tf.concat([tf.zeros([1], tf.int64), shape[1:]], 0)

    def _of_parts(self, parts: Sequence[Any]) -> Any:
        return tf.SparseTensor(*parts)

    def _in_buckets(self, buckets: Any, leaves: Any, gradients: Any, hessians: Any) -> Any:
        indices, values, _ = self._parts(True)
        found = quantile_ops.quantiles([], [values], [], [buckets], [indices])[1][0]
        ids = tf.cast(found, tf.int64)
        return with_bias(leaves, gradients, hessians, indices[:, 0], ids, _BIAS)

    def make_splits(self, stamp_token: Any, next_stamp_token: Any, class_id: Any) -> Any:
        ready, sums = self._flushed(stamp_token, next_stamp_token)
        found = split_handler_ops.build_sparse_inequality_splits(
            **sums, class_id=class_id, bias_feature_id=_BIAS, **self._costs
        )
        return ready, *found
