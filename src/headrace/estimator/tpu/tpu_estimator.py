"""TPUEstimator: an Estimator whose functions are told the size of batches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from headrace import logging
from headrace.estimator.estimator import Estimator
from headrace.estimator.mode_keys import ModeKeys
from headrace.estimator.run_config import RunConfig
from headrace.estimator.spec import EstimatorSpec
from headrace.train.session_run_hook import SessionRunArgs, SessionRunHook

__all__ = ["TPUEstimator", "TPUEstimatorSpec"]


class _Fields(NamedTuple):
    mode: str
    predictions: Any = None
    loss: Any = None
    train_op: Any = None
    eval_metrics: Any = None
    export_outputs: Any = None
    scaffold_fn: Any = None
    host_call: Any = None
    training_hooks: Any = None
    evaluation_hooks: Any = None
    prediction_hooks: Any = None


class TPUEstimatorSpec(_Fields):
    """What a ``model_fn`` of a TPUEstimator returns.

    Args:
        mode, predictions, loss, train_op, export_outputs: as for `tf.estimator.EstimatorSpec`.
        eval_metrics: a pair of a function, and of its arguments: tensors in a list or dictionary;
            it gives pairs (value, update) by name.
        scaffold_fn: makes a `tf.train.Scaffold`.
        host_call: a pair of a function and its arguments: what it gives runs at each step.
        training_hooks, evaluation_hooks, prediction_hooks: hooks.

    >>> loss = tf.constant([1.0])
    >>> spec = tf.estimator.tpu.TPUEstimatorSpec(
    ...     "eval", loss=loss, eval_metrics=(lambda x: {"mean": tf.metrics.mean(x)}, [loss])
    ... )
    >>> sorted(spec.as_estimator_spec().eval_metric_ops)
    ['mean']
    """

    __slots__ = ()

    def as_estimator_spec(self) -> EstimatorSpec:
        """The same for an Estimator."""
        hooks = list(self.training_hooks or ())
        if self.mode == ModeKeys.TRAIN and self.host_call is not None:
            hooks.append(_HostCallHook(_called(self.host_call)))
        return EstimatorSpec(
            self.mode,
            self.predictions,
            self.loss,
            self.train_op,
            _called(self.eval_metrics) if self.eval_metrics else None,
            self.export_outputs,
            training_hooks=hooks,
            scaffold=self.scaffold_fn() if self.scaffold_fn else None,
            evaluation_hooks=self.evaluation_hooks,
            prediction_hooks=self.prediction_hooks,
        )


def _called(call: Any) -> Any:
    """The result of a function with tensors as its arguments."""
    function, tensors = call
    return function(**tensors) if isinstance(tensors, Mapping) else function(*tensors)


class _HostCallHook(SessionRunHook):
    """Runs what a host call gives at each step."""

    def __init__(self, tensors: Any) -> None:
        self._tensors = tensors

    def before_run(self, run_context: Any) -> SessionRunArgs:
        return SessionRunArgs(self._tensors)


class TPUEstimator(Estimator):
    """An Estimator whose functions find the size of batches in ``params["batch_size"]``.

    The model runs on the devices that are there: a graph is one shard, and each batch is whole.

    Args:
        model_fn, model_dir, config, params, warm_start_from: as for `tf.estimator.Estimator`;
            ``model_fn`` may return a TPUEstimatorSpec.
        use_tpu: taken; devices are chosen as for all graphs.
        train_batch_size, eval_batch_size, predict_batch_size: sizes of batches.
        batch_axis, eval_on_tpu, export_to_tpu, export_to_cpu, embedding_config_spec: taken,
            without effect.

    Raises:
        ValueError: if ``params`` has a batch size of its own.

    >>> def model_fn(features, labels, mode, params):
    ...     return tf.estimator.tpu.TPUEstimatorSpec(mode, predictions=2 * features)
    >>> def numbers(params):
    ...     return tf.data.Dataset.range(3).batch(params["batch_size"])
    >>> estimator = tf.estimator.tpu.TPUEstimator(
    ...     model_fn, "m", tf.estimator.tpu.RunConfig(), use_tpu=False, predict_batch_size=2
    ... )
    >>> [batch.tolist() for batch in estimator.predict(numbers, yield_single_examples=False)]
    [[0, 2], [4]]
    """

    def __init__(
        self,
        model_fn: Callable[..., Any],
        model_dir: Any = None,
        config: RunConfig | None = None,
        params: Mapping[str, Any] | None = None,
        use_tpu: bool = True,
        train_batch_size: int | None = None,
        eval_batch_size: int | None = None,
        predict_batch_size: int | None = None,
        batch_axis: Any = None,
        eval_on_tpu: bool = True,
        export_to_tpu: bool = True,
        export_to_cpu: bool = True,
        warm_start_from: Any = None,
        embedding_config_spec: Any = None,
    ) -> None:
        if params is not None and "batch_size" in params:
            raise ValueError(
                "batch_size are reserved keys by TPUEstimator: give train_batch_size, "
                "eval_batch_size or predict_batch_size in place of params['batch_size']."
            )
        if use_tpu:
            logging.info("TPUEstimator runs on the devices that are there, as one shard.")
        super().__init__(model_fn, model_dir, config, dict(params or {}), warm_start_from)
        self._batch_sizes = {
            ModeKeys.TRAIN: train_batch_size,
            ModeKeys.EVAL: eval_batch_size,
            ModeKeys.PREDICT: predict_batch_size,
        }

    def _params_for(self, mode: str) -> Any:
        size = self._batch_sizes[mode]
        return self.params if size is None else {**self.params, "batch_size": size}
