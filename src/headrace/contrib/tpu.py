"""``tf.contrib.tpu``: TPUEstimator and what training programs use beside it."""

from __future__ import annotations

from typing import Any

from headrace import logging
from headrace.losses import Reduction
from headrace.namespaces.lazy import lazy as _lazy
from headrace.train.optimizer import GradVar, Optimizer
from headrace.train.wrapped_optimizer import WrappedOptimizer

__all__ = ["CrossShardOptimizer"]

__getattr__, __dir__ = _lazy(
    __name__,
    {
        "headrace.estimator.tpu.config": ("InputPipelineConfig", "RunConfig", "TPUConfig"),
        "headrace.estimator.tpu.tpu_estimator": ("TPUEstimator", "TPUEstimatorSpec"),
    },
)


class CrossShardOptimizer(WrappedOptimizer):
    """Adds the gradients of all shards of a TPU program up, then applies them with ``opt``.

    A Headrace graph is one shard: the gradients are those of ``opt``.

    Args:
        opt: the optimizer that applies the gradients.
        reduction: how the losses of shards are put together, ``tf.losses.Reduction.SUM`` or MEAN.
        group_assignment: groups of shards; with one shard ``[[0]]`` is the only one.

    Raises:
        ValueError: for another reduction, or groups of shards that are not there.

    >>> plain = tf.train.GradientDescentOptimizer(0.25)
    >>> train = tf.contrib.tpu.CrossShardOptimizer(plain).minimize(tf.Variable(2.0) * 2.0)
    >>> train.type
    'NoOp'
    """

    def __init__(
        self,
        opt: Optimizer,
        reduction: str = Reduction.MEAN,
        name: str = "CrossShardOptimizer",
        group_assignment: Any = None,
    ) -> None:
        if reduction not in (Reduction.SUM, Reduction.MEAN):
            raise ValueError(f"Unsupported reduction: {reduction}.")
        if group_assignment and [list(g) for g in group_assignment] != [[0]]:
            raise ValueError(f"There is one shard, number 0: got the groups {group_assignment}.")
        super().__init__(opt, False, name)

    def compute_gradients(self, *args: Any, **kwargs: Any) -> list[GradVar]:
        """The gradients that ``opt`` computes."""
        logging.log_first_n(logging.WARN, "CrossShardOptimizer: a graph is one shard.", 1)
        return super().compute_gradients(*args, **kwargs)
