"""Splits of categorical columns: examples that have an id, and those that do not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import headrace as tf
from headrace.contrib.boosted_trees.base_split_handler import (
    BaseSplitHandler,
    nothing_of,
    with_bias,
)
from headrace.contrib.boosted_trees.split_handler_ops import build_categorical_equality_splits

__all__ = ["EqualitySplitHandler"]

_BIAS = -(1 << 63)


class EqualitySplitHandler(BaseSplitHandler):
    """A handler of an int64 SparseTensor ``[batch, n]``.

    Args:
        sparse_int_column: the column.
        init_stamp_token: int64 scalar, the first stamp.
        weak_learner_type: int32 scalar: 1 is one split for all leaves.

    The others are those of `BaseSplitHandler`.
    """

    def __init__(
        self,
        sparse_int_column: Any,
        *args: Any,
        init_stamp_token: Any = 0,
        weak_learner_type: Any = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self._stats_accumulator = self._sums(init_stamp_token)
        self._column, self._kind = sparse_int_column, weak_learner_type

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
        column = self._column
        leaves, gradients, hessians = (
            tf.convert_to_tensor(part) for part in (example_partition_ids, gradients, hessians)
        )

        def sums() -> Any:
            ids = tf.stack([column.values, tf.zeros_like(column.values)], 1)
            return with_bias(leaves, gradients, hessians, column.indices[:, 0], ids, _BIAS)

        active = tf.convert_to_tensor(is_active)[0]
        found = tf.cond(active, sums, lambda: nothing_of(gradients, hessians))
        return tf.no_op(), [self._stats_accumulator.schedule_add(*found)]

    def make_splits(self, stamp_token: Any, next_stamp_token: Any, class_id: Any) -> Any:
        batches, leaves, ids, gradients, hessians = self._stats_accumulator.flush(
            stamp_token, next_stamp_token
        )
        found = build_categorical_equality_splits(
            self._count(batches),
            leaves,
            ids,
            gradients,
            hessians,
            class_id,
            bias_feature_id=_BIAS,
            weak_learner_type=self._kind,
            **self._costs,
        )
        # There is nothing that one layer has to know before the next.
        return tf.constant(True), *found

    def reset(self, stamp_token: Any, next_stamp_token: Any) -> Any:
        return tf.group(*self._stats_accumulator.flush(stamp_token, next_stamp_token))
