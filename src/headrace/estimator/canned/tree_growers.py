"""How a layer of a tree comes from the sums of gradients: of one batch, or of several."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import headrace as tf
from headrace.estimator.canned.tree_resources import (
    EnsembleResource,
    PruningMode,
    QuantilesResource,
)
from headrace.graph.tensor import Operation, Tensor
from headrace.ops.core.build import raw

__all__ = ["AccumulatingGrower", "InMemoryGrower", "TreeParameters"]


class TreeParameters(NamedTuple):
    """How trees grow; the arguments of the estimators say more."""

    n_trees: int
    max_depth: int
    learning_rate: float
    l1: float
    l2: float
    tree_complexity: float
    min_node_weight: float
    center_bias: bool
    pruning_mode: str
    quantile_sketch_epsilon: float

    @property
    def max_splits(self) -> int:
        """How many nodes of a tree may be split."""
        return (1 << self.max_depth) - 1

    def pruning(self) -> int:
        """The number of the pruning mode.

        Raises:
            ValueError: for an unknown one, and if it does not fit the complexity.
        """
        mode = PruningMode.from_str(self.pruning_mode)
        if self.tree_complexity > 0 and mode == PruningMode.NO_PRUNING:
            raise ValueError("Tree complexity have no effect unless pruning mode is chosen.")
        if not self.tree_complexity > 0 and mode != PruningMode.NO_PRUNING:
            raise ValueError("For pruning, tree_complexity must be positive.")
        return mode


class InMemoryGrower:
    """A layer for each batch, which is all of the data.

    Args:
        ensemble: the trees.
        quantiles: of features that are bucketized by them; None without such.
        parameters: how trees grow.
        groups: features that have as many buckets: pairs of that number, and positions.
    """

    def __init__(
        self,
        ensemble: EnsembleResource,
        quantiles: QuantilesResource | None,
        parameters: TreeParameters,
        groups: Sequence[tuple[int, list[int]]],
    ) -> None:
        self._ensemble, self._quantiles = ensemble, quantiles
        self._parameters, self._groups = parameters, groups
        self._pruning = parameters.pruning()

    @property
    def init_op(self) -> Operation:
        """What the chief runs once its session is there."""
        done: Operation = tf.no_op()
        return done

    def accumulate_quantiles(self, values: Any, weights: Tensor, are_ready: Any) -> Operation:
        """Add the values of a batch; when there are enough of them, buckets are made.

        Args:
            values: float32 vectors.
            weights: of the examples, or one.
            are_ready: the variable that says whether there are buckets.
        """
        assert self._quantiles is not None
        with tf.control_dependencies([self._quantiles.add_summaries(values, weights)]):
            flushed = self._quantiles.flush()
        with tf.control_dependencies([flushed]):
            done: Operation = are_ready.assign(True).op
        return done

    def center_bias(self, needed: Any, gradients: Tensor, hessians: Tensor) -> Operation:
        """Move the bias by a step of Newton's method; ``needed`` turns False when that is done.

        ``gradients`` and ``hessians`` are float32 ``[batch, 1]``.
        """
        return self._center(needed, tf.reduce_mean(gradients, 0), tf.reduce_mean(hessians, 0))

    def grow(self, summaries: Sequence[Tensor], nodes: Tensor) -> Operation:
        """Add a layer.

        Args:
            summaries: for each group the sums of gradients and Hessians, float32
                ``[features, splits, buckets, 2]``.
            nodes: the range of the nodes of the last layer, int32 ``[2]``.
        """
        return self._grow(summaries, nodes)

    def _center(self, needed: Any, gradient: Tensor, hessian: Tensor) -> Operation:
        goes_on = raw.BoostedTreesCenterBias(
            self._ensemble.resource_handle,
            tf.expand_dims(gradient, 0),
            tf.expand_dims(hessian, 0),
            self._parameters.l1,
            self._parameters.l2,
        )
        done: Operation = needed.assign(goes_on).op
        return done

    def _grow(self, summaries: Sequence[Tensor], nodes: Tensor) -> Operation:
        found: list[list[Tensor]] = [[], [], [], [], []]
        positions: list[int] = []
        for (_, features), summary in zip(self._groups, summaries, strict=True):
            splits = raw.BoostedTreesCalculateBestGainsPerFeature(
                nodes,
                tf.unstack(summary, num=len(features)),
                self._parameters.l1,
                self._parameters.l2,
                self._parameters.tree_complexity,
                self._parameters.min_node_weight,
                max_splits=self._parameters.max_splits,
            )
            positions += features
            for known, more in zip(found, splits, strict=True):
                known += more
        grown: Operation = raw.BoostedTreesUpdateEnsemble(
            self._ensemble.resource_handle,
            positions,
            found[0],
            found[1],
            found[2],
            found[3],
            found[4],
            self._parameters.max_depth,
            self._parameters.learning_rate,
            pruning_mode=self._pruning,
        )
        return grown


class AccumulatingGrower(InMemoryGrower):
    """A layer for every few batches, which workers add up in accumulators that they share.

    Args:
        stamp: how often the ensemble has changed: what comes for an old one is left out.
        n_batches: of how many batches a layer is made.
        is_chief: whether this worker makes layers; others only add.
    """

    def __init__(
        self,
        ensemble: EnsembleResource,
        quantiles: QuantilesResource | None,
        parameters: TreeParameters,
        groups: Sequence[tuple[int, list[int]]],
        stamp: Tensor,
        n_batches: Any,
        is_chief: bool,
    ) -> None:
        super().__init__(ensemble, quantiles, parameters, groups)
        self._stamp, self._n_batches, self._is_chief = stamp, n_batches, is_chief
        splits = parameters.max_splits
        self._sums = [
            self._accumulator(
                [len(features), splits, buckets, 2], f"numeric_stats_summary_accumulator_{i}"
            )
            for i, (buckets, features) in enumerate(groups)
        ]
        self._begins = [sums.set_global_step(stamp) for sums in self._sums]
        if parameters.center_bias:
            self._bias_sums = self._accumulator([2, 1], "bias_accumulator")
            self._begins.append(self._bias_sums.set_global_step(stamp))

    def _accumulator(self, shape: Sequence[int], shared_name: str) -> Any:
        # Where the trees are: all workers find it there.
        with tf.device(self._ensemble.resource_handle.device or None):
            return tf.ConditionalAccumulator(tf.float32, shape, shared_name)

    @property
    def init_op(self) -> Operation:
        done: Operation = tf.group(*self._begins)
        return done

    def _when_full(self, sums: Sequence[Any], then: Callable[[], Any], name: str) -> Any:
        """Run ``then`` if there are enough batches, in the chief."""
        if not self._is_chief:
            return tf.no_op()
        counts = tf.reduce_min(tf.stack([one.num_accumulated() for one in sums]))
        enough = tf.greater_equal(counts, tf.cast(self._n_batches, tf.int32))
        return tf.cond(enough, then, tf.no_op, name=name)

    def accumulate_quantiles(self, values: Any, weights: Tensor, are_ready: Any) -> Operation:
        assert self._quantiles is not None
        quantiles = self._quantiles
        count = self._accumulator([], "quantile_summary_accum")
        begin = count.set_global_step(self._stamp)
        added = quantiles.add_summaries(values, weights)
        updates = [added, begin, count.apply_grad(tf.constant(0.0), self._stamp)]

        def make_buckets() -> Any:
            flushed = tf.group(quantiles.flush(), count.take_grad(1))
            with tf.control_dependencies([flushed]):
                return tf.group(are_ready.assign(True).op)

        with tf.control_dependencies(updates):
            done: Operation = self._when_full(
                [count], make_buckets, "wait_until_quantiles_accumulated"
            )
        return done

    def center_bias(self, needed: Any, gradients: Tensor, hessians: Tensor) -> Operation:
        means = tf.reduce_mean(tf.stack([gradients, hessians]), axis=1)
        added = self._bias_sums.apply_grad(means, self._stamp)

        def center() -> Any:
            gradient, hessian = tf.unstack(self._bias_sums.take_grad(1), num=2)
            with tf.control_dependencies([self._center(needed, gradient, hessian)]):
                following = self._stamp + 1
                steps = [sums.set_global_step(following) for sums in self._sums]
                return tf.group(*steps)

        with tf.control_dependencies([added]):
            done: Operation = self._when_full(
                [self._bias_sums], center, "wait_until_n_batches_for_bias_accumulated"
            )
        return done

    def grow(self, summaries: Sequence[Tensor], nodes: Tensor) -> Operation:
        added = [
            sums.apply_grad(summary, self._stamp)
            for sums, summary in zip(self._sums, summaries, strict=True)
        ]

        def grow() -> Any:
            return tf.group(self._grow([sums.take_grad(1) for sums in self._sums], nodes))

        with tf.control_dependencies(added):
            done: Operation = self._when_full(self._sums, grow, "wait_until_n_batches_accumulated")
        return done
