"""The model of the estimators on boosted trees.

Each step adds sums of gradients; when there are enough, the last tree gets another layer, whose
leaves add to the logits. Ponomareva and others, "TF Boosted Trees" (2017), section 3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import headrace as tf
from headrace.estimator.canned.tree_caches import (
    ExampleStates,
    cached_features,
    new_states,
    static_batch,
    tree_variable,
)
from headrace.estimator.canned.tree_features import Columns, transformed
from headrace.estimator.canned.tree_growers import (
    AccumulatingGrower,
    InMemoryGrower,
    TreeParameters,
)
from headrace.estimator.canned.tree_resources import EnsembleResource, QuantilesResource
from headrace.estimator.heads.checks import checked_labels
from headrace.estimator.mode_keys import ModeKeys
from headrace.estimator.run_config import RunConfig
from headrace.estimator.spec import EstimatorSpec
from headrace.graph.tensor import Operation, Tensor
from headrace.ops.core.build import raw
from headrace.ops.state import share as shares
from headrace.train.session_run_hook import SessionRunArgs, SessionRunHook

__all__ = ["DEBUG_KEY", "TreeModel", "log_loss_derivatives"]

#: The prediction with the ways of examples through the trees.
DEBUG_KEY = "_serialized_debug_outputs_proto"
_QUANTILES = "QuantileAccumulator"


class _StopAtAttempts(SessionRunHook):
    """Ends training when all trees are finished, or layers have been tried twice as often."""

    def __init__(self, finished: Tensor, attempts: Tensor, max_trees: int, max_depth: int) -> None:
        self._counts = [finished, attempts]
        self._max_trees, self._max_attempts = max_trees, 2 * max_trees * max_depth

    def before_run(self, run_context: Any) -> Any:
        return SessionRunArgs(self._counts)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        finished, attempts = run_values.results
        if finished >= self._max_trees - 1 or attempts > self._max_attempts - 1:
            # A step may read them before it changes them.
            finished, attempts = run_context.session.run(self._counts)
        if finished >= self._max_trees or attempts > self._max_attempts:
            run_context.request_stop()


class _RunOnce(SessionRunHook):
    """Runs an operation when the session of the chief is there."""

    def __init__(self, init_op: Operation) -> None:
        self._init_op = init_op

    def after_create_session(self, session: Any, coord: Any) -> None:
        session.run(self._init_op)


def log_loss_derivatives(logits: Tensor, labels: Any) -> tuple[Tensor, Tensor]:
    """First and second derivatives of the mean log loss: float32 ``[batch, 1]`` each."""
    predictions = tf.reciprocal(tf.exp(-logits) + 1.0)
    share = tf.reciprocal(tf.to_float(tf.size(predictions)))
    labels = checked_labels(tf.to_float(labels), logits, 1)
    return (predictions - labels) * share, predictions * (1.0 - predictions) * share


class _Parts(NamedTuple):
    """What the graph of each mode has."""

    ensemble: EnsembleResource
    quantiles: QuantilesResource | None
    boundaries: list[Tensor]


class TreeModel:
    """A ``model_fn`` of boosted trees.

    Args:
        head: what the logit means.
        feature_columns: numeric, bucketized and indicator columns.
        parameters: how trees grow.
        n_batches_per_layer: of how many batches a layer is made.
        derivatives: ``derivatives(logits, labels)`` gives first and second derivatives of the
            loss; those of the head's loss are used if it is None.
        weight_column: weights of examples, when quantiles are looked for.
        in_memory: whether each batch is all of the data.

    Raises:
        ValueError: for columns that trees do not take, and no trees or layers.
    """

    def __init__(
        self,
        head: Any,
        feature_columns: Iterable[Any],
        parameters: TreeParameters,
        n_batches_per_layer: Any,
        derivatives: Callable[[Tensor, Any], tuple[Tensor, Tensor]] | None = None,
        weight_column: Any = None,
        in_memory: bool = False,
    ) -> None:
        for name in ("n_trees", "max_depth"):
            if getattr(parameters, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(parameters, name)}.")
        self.head, self._parameters = head, parameters
        self._num_quantiles = int(1.0 / parameters.quantile_sketch_epsilon)
        self.columns = Columns(feature_columns, self._num_quantiles)
        self._n_batches, self._derivatives = n_batches_per_layer, derivatives
        self._weight_column, self._in_memory = weight_column, in_memory

    def _parts(self, scope: str) -> _Parts:
        ensemble = EnsembleResource(scope)
        if not self.columns.floats:
            return _Parts(ensemble, None, [])
        quantiles = QuantilesResource(
            self._parameters.quantile_sketch_epsilon,
            self.columns.float_count,
            self._num_quantiles,
            _QUANTILES,
        )
        return _Parts(ensemble, quantiles, quantiles.get_bucket_boundaries())

    def __call__(
        self, features: Any, labels: Any, mode: str, config: RunConfig | None = None
    ) -> EstimatorSpec:
        with tf.name_scope("boosted_trees") as scope:
            step = tf.train.get_or_create_global_step()
            parts = self._parts(scope)
            if mode == ModeKeys.TRAIN:
                assert config is not None
                return _Training(self, parts, features, labels, config, step, scope).spec()
            spec: EstimatorSpec = self.head.create_estimator_spec(
                features=features,
                mode=mode,
                labels=labels,
                train_op_fn=tf.no_op,
                logits=self._logits(features, parts),
            )
            return spec

    def explained(self, features: Any, labels: Any, mode: str) -> EstimatorSpec:
        """The ``model_fn`` that also predicts the ways of examples through the trees."""
        with tf.name_scope("boosted_trees") as scope:
            parts = self._parts(scope)
            buckets = self.columns.features(features, parts.boundaries)
            handle = parts.ensemble.resource_handle
            spec: EstimatorSpec = self.head.create_estimator_spec(
                features=features,
                mode=ModeKeys.PREDICT,
                labels=None,
                train_op_fn=tf.no_op,
                logits=raw.BoostedTreesPredict(handle, buckets, logits_dimension=1),
            )
            ways = raw.BoostedTreesExampleDebugOutputs(handle, buckets, logits_dimension=1)
            return spec._replace(predictions={**spec.predictions, DEBUG_KEY: ways})

    def _logits(self, features: Any, parts: _Parts) -> Tensor:
        logits: Tensor = raw.BoostedTreesPredict(
            parts.ensemble.resource_handle,
            self.columns.features(features, parts.boundaries),
            logits_dimension=self.head.logits_dimension,
        )
        return logits


class _Training:
    """The graph of a training step."""

    def __init__(
        self,
        model: TreeModel,
        parts: _Parts,
        features: Any,
        labels: Any,
        config: RunConfig,
        step: Any,
        scope: str,
    ) -> None:
        self._model, self._parts, self._config, self._step = model, parts, config, step
        self._features, self._labels, self._scope = features, labels, scope
        self._parameters = model._parameters
        self._is_chief = shares.leads(config.is_chief)
        self._workers = max(config.num_worker_replicas, shares.trainers())
        if model._in_memory:
            self._check_in_memory()
            shares.left_to_chief("Growing boosted trees in memory")
        self._are_ready = tree_variable(not model.columns.floats, "are_boundaries_ready")
        self._states: ExampleStates | None = None
        self._buckets, cached = self._inputs()
        local, reloaded = self._local_ensemble()
        with tf.control_dependencies([reloaded]):
            (self._stamp, self._trees, self._finished, self._attempts, self._nodes) = (
                local.get_states()
            )
            partial, self._tree_ids, self._node_ids = raw.BoostedTreesTrainingPredict(
                local.resource_handle,
                cached[0],
                cached[1],
                self._buckets,
                logits_dimension=model.head.logits_dimension,
            )
        self._logits = cached[2] + partial
        self._grower = self._make_grower()
        self._needs_bias = tree_variable(self._parameters.center_bias, "center_bias_needed")

    def _check_in_memory(self) -> None:
        if self._model._n_batches != 1:
            raise ValueError(
                "When train_in_memory is enabled, input_fn should return the entire dataset as a "
                "single batch, and n_batches_per_layer should be set as 1; it is "
                f"{self._model._n_batches}."
            )
        config = self._config
        if not config.is_chief or config.num_worker_replicas > 1 or config.num_ps_replicas > 0:
            raise ValueError("train_in_memory is supported only for non-distributed training.")

    def _inputs(self) -> tuple[list[Tensor], tuple[Tensor, ...]]:
        """The buckets of the features, and tree, node and logits of each example."""
        columns, boundaries = self._model.columns, self._parts.boundaries
        if not self._model._in_memory:
            return columns.features(self._features, boundaries), new_states(self._labels)
        batch = static_batch(self._labels)
        buckets = cached_features(self._features, columns, boundaries, batch, self._are_ready)
        self._states = ExampleStates(batch)
        return buckets, self._states.lookup()

    def _local_ensemble(self) -> tuple[EnsembleResource, Operation]:
        """The trees where this worker has them, and what brings them there."""
        ensemble = self._parts.ensemble
        if self._workers <= 1:
            return ensemble, tf.no_op()
        # On the device of the worker: not where a device function puts what is shared.
        with tf.device(tf.no_op().device or None):
            local = EnsembleResource(self._scope.rstrip("/") + "_local", is_local=True)
        return local, local.deserialize(*ensemble.serialize())

    def _make_grower(self) -> InMemoryGrower:
        parts = (
            self._parts.ensemble,
            self._parts.quantiles,
            self._parameters,
            self._model.columns.groups(),
        )
        if self._model._in_memory:
            return InMemoryGrower(*parts)
        return AccumulatingGrower(*parts, self._stamp, self._model._n_batches, self._is_chief)

    def _weights(self) -> Tensor:
        column = self._model._weight_column
        if column is None:
            return tf.constant(1.0, shape=[1])
        if isinstance(column, str):
            column = tf.feature_column.numeric_column(column, shape=(1,))
        made: Tensor = tf.squeeze(transformed(self._features, [column])[column], axis=[1])
        return made

    def _train(self, loss: Tensor) -> Any:
        """The operation of a step."""
        needed = self._needs_bias
        if not self._model.columns.floats:
            return self._grow(loss, needed)

        def add_quantiles() -> Any:
            with tf.name_scope("UpdateQuantile"):
                values = self._model.columns.float_values(self._features)
                return tf.group(
                    self._grower.accumulate_quantiles(values, self._weights(), self._are_ready)
                )

        return tf.cond(
            self._are_ready.read_value(), lambda: self._grow(loss, needed), add_quantiles
        )

    def _grow(self, loss: Tensor, needed: Any) -> Any:
        """Keep where examples are, and grow."""
        gradients, hessians = self._slopes(loss)
        is_centering = needed.read_value() if self._parameters.center_bias else None
        ops: list[Any] = []
        if self._states is not None:
            states, values = self._states, (self._tree_ids, self._node_ids, self._logits)
            if is_centering is None:
                ops.append(states.insert(*values))
            else:
                # The bias changes for all examples at once, wherever they are.
                ops.append(tf.cond(is_centering, tf.no_op, lambda: states.insert(*values)))

        def grow() -> Any:
            return tf.group(self._grower.grow(self._sums(gradients, hessians), self._nodes))

        if is_centering is None:
            update = grow()
        else:
            update = tf.cond(
                is_centering,
                lambda: tf.group(self._grower.center_bias(needed, gradients, hessians)),
                grow,
            )
        with tf.control_dependencies([update]):
            ops.append(tf.assign_add(self._step, 1).op)
        return tf.group(update, *ops, name="grow_op")

    def _slopes(self, loss: Tensor) -> tuple[Tensor, Tensor]:
        """First and second derivatives of the loss: float32 ``[batch, 1]`` each."""
        if self._model._derivatives is not None:
            return self._model._derivatives(self._logits, self._labels)
        gradients = tf.gradients(loss, self._logits, name="Gradients")[0]
        return gradients, tf.gradients(gradients, self._logits, name="Hessians")[0]

    def _sums(self, gradients: Tensor, hessians: Tensor) -> list[Tensor]:
        """For each group of features, sums by feature, node and bucket."""
        return [
            raw.BoostedTreesMakeStatsSummary(
                self._node_ids,
                gradients,
                hessians,
                [self._buckets[feature] for feature in features],
                max_splits=self._parameters.max_splits,
                num_buckets=buckets,
            )
            for buckets, features in self._model.columns.groups()
        ]

    def spec(self) -> EstimatorSpec:
        tf.summary.scalar("ensemble/num_trees", self._trees)
        tf.summary.scalar("ensemble/num_finalized_trees", self._finished)
        tf.summary.scalar("ensemble/num_attempted_layers", self._attempts)
        spec: EstimatorSpec = self._model.head.create_estimator_spec(
            features=self._features,
            mode=ModeKeys.TRAIN,
            labels=self._labels,
            train_op_fn=self._train,
            logits=self._logits,
        )
        stop = _StopAtAttempts(
            self._finished, self._attempts, self._parameters.n_trees, self._parameters.max_depth
        )
        return spec._replace(
            training_hooks=(*spec.training_hooks, stop),
            training_chief_hooks=(_RunOnce(self._grower.init_op), *spec.training_chief_hooks),
        )
