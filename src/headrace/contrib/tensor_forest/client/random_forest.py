"""Random forests as an estimator."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import headrace as tf
from headrace.contrib.learn.estimators import Estimator
from headrace.contrib.learn.head import Head
from headrace.contrib.learn.heads import multi_class_head, regression_head
from headrace.contrib.learn.model_fn import ModelFnOps
from headrace.contrib.tensor_forest.graphs import ForestHParams, RandomForestGraphs
from headrace.graph.tensor import Tensor
from headrace.logging import info
from headrace.train.session_run_hook import SessionRunArgs, SessionRunHook

__all__ = [
    "VARIANCE_PREDICTION_KEY",
    "TensorForestEstimator",
    "TensorForestLossHook",
    "TensorForestRunOpAtEndHook",
    "get_default_head",
]

VARIANCE_PREDICTION_KEY = "prediction_variance"

#: No probability is nearer to 0, so that it has a logarithm.
_LEAST = 1e-6


class TensorForestRunOpAtEndHook(SessionRunHook):
    """Logs what some ops give when training ends.

    Args:
        op_dict: tensors by the names under which they are logged.

    >>> hook = tf.contrib.tensor_forest.random_forest.TensorForestRunOpAtEndHook({})
    >>> isinstance(hook, tf.train.SessionRunHook)
    True
    """

    def __init__(self, op_dict: Mapping[str, Any]) -> None:
        self._ops = dict(op_dict)

    def end(self, session: Any) -> None:
        for name in sorted(self._ops):
            info("%s: %s", name, session.run(self._ops[name]))


class TensorForestLossHook(SessionRunHook):
    """Ends training when the loss has not fallen for some steps.

    Args:
        early_stopping_rounds: so many steps.
        early_stopping_loss_threshold: by which share of the least loss so far it must fall.
        loss_op: the loss, a scalar.

    >>> hook = tf.contrib.tensor_forest.random_forest.TensorForestLossHook(10, 0.01, tf.zeros([]))
    >>> isinstance(hook, tf.train.SessionRunHook)
    True
    """

    def __init__(
        self,
        early_stopping_rounds: int,
        early_stopping_loss_threshold: float | None = None,
        loss_op: Any = None,
    ) -> None:
        if loss_op is None:
            raise ValueError("TensorForestLossHook needs a loss_op: the loss that is to fall")
        self._rounds = early_stopping_rounds
        self._threshold = early_stopping_loss_threshold or 0.0
        self._loss = loss_op
        self._least: float | None = None
        self._waited = 0

    def before_run(self, run_context: Any) -> SessionRunArgs:
        return SessionRunArgs(self._loss)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        loss = float(run_values.results)
        if self._least is None or loss < self._least - abs(self._least) * self._threshold:
            self._least, self._waited = loss, 0
            return
        self._waited += 1
        if self._waited > self._rounds:
            info("The loss has not fallen for %d steps: training ends.", self._waited)
            run_context.request_stop()


def get_default_head(params: ForestHParams, weights_name: Any, name: str | None = None) -> Head:
    """The head for a forest's classes or numbers.

    Args:
        params: filled.
        weights_name: the feature with the weights of examples, ``[batch]``, or None.

    Raises:
        ValueError: for numbers of classes or outputs below 1.

    >>> params = tf.contrib.tensor_forest.ForestHParams(num_classes=3, num_features=4).fill()
    >>> tf.contrib.tensor_forest.random_forest.get_default_head(params, None).logits_dimension
    3
    """
    if params.regression:
        return regression_head(
            weight_column_name=weights_name, label_dimension=params.num_outputs, head_name=name
        )
    return multi_class_head(params.num_classes, weight_column_name=weights_name, head_name=name)


def _logits(params: ForestHParams, mean: Tensor) -> Tensor:
    """What a head makes the forest's own probabilities of; for a regression its numbers."""
    if params.regression:
        return mean
    shares: Tensor = tf.log(tf.maximum(mean, _LEAST))
    if params.num_classes == 2:
        shares = shares[:, 1:] - shares[:, :1]
    return shares


class _Model:
    """The model function, with what the estimator was given."""

    def __init__(self, params: ForestHParams, head: Head, options: dict[str, Any]) -> None:
        self._params, self._head, self._options = params, head, options

    def __call__(self, features: Any, labels: Any, mode: str) -> ModelFnOps:
        given = dict(features) if isinstance(features, Mapping) else {"features": features}
        inputs = dict(given)
        weights_name, keys_name = self._options["weights"], self._options["keys"]
        weights = inputs.pop(weights_name, None) if weights_name else None
        keys = inputs.pop(keys_name, None) if keys_name else None
        data: Any = inputs
        if self._options["columns"] is not None:
            data = tf.feature_column.input_layer(inputs, self._options["columns"])
        graphs = self._options["graphs"](self._params)
        mean, _, variance = graphs.inference_graph(data)
        tf.summary.scalar("average_tree_size", graphs.average_size())
        train = tf.no_op()
        if mode == tf.contrib.learn.ModeKeys.TRAIN:
            train = self._train(graphs, data, labels, weights, mean)
        found: ModelFnOps = self._head.create_model_fn_ops(
            given, mode, labels, lambda loss: train, _logits(self._params, mean)
        )
        predictions = {**found.predictions, VARIANCE_PREDICTION_KEY: variance}
        if keys is not None:
            predictions[keys_name] = keys
        hooks = [*(found.training_hooks or ()), *self._hooks(graphs, found.loss)]
        return found._replace(predictions=predictions, training_hooks=hooks)

    def _train(self, graphs: Any, data: Any, labels: Any, weights: Any, mean: Tensor) -> Any:
        # The loss is that of the forest before the step.
        with tf.control_dependencies([mean]):
            done = graphs.training_graph(data, labels, input_weights=weights)
            step = tf.train.get_or_create_global_step().assign_add(1, read_value=False)
            return tf.group(done, step)

    def _hooks(self, graphs: Any, loss: Any) -> list[SessionRunHook]:
        hooks: list[SessionRunHook] = []
        if self._options["importances"]:
            tensors = {"feature_importances": graphs.feature_importances()}
            hooks.append(TensorForestRunOpAtEndHook(tensors))
        rounds = self._options["rounds"]
        if rounds and loss is not None:
            hooks.append(TensorForestLossHook(rounds, self._options["threshold"], loss))
        return hooks


class TensorForestEstimator(Estimator):
    """A random forest that learns from batches; it sees data several times to grow.

    A leaf splits after ``split_after_samples`` examples, so small data is to be gone through many
    times. With parameter servers all workers train one forest, which is on one of them. Predictions
    are those of the head ("classes" and "probabilities", or "scores") and "prediction_variance",
    the variance between the trees.

    Args:
        params: what the forest is to be.
        device_assigner: taken, without effect: a forest lives on the host of one task.
        model_dir: where checkpoints and summaries are; a temporary directory if None.
        feature_columns: dense columns that make the input; None: features are a matrix, or a
            dictionary of matrices and vectors, put side by side by their names.
        graph_builder_class: makes the graphs: `RandomForestGraphs`, or a subclass.
        config: a `tf.contrib.learn.RunConfig`.
        weight_column: the name of the feature with the weights of examples.
        keys_column: the name of a feature that is not looked at, and handed on to predictions.
        feature_engineering_fn: as for `tf.contrib.learn.Estimator`.
        early_stopping_rounds: training ends when the loss has not fallen for more steps than
            this by ``early_stopping_loss_threshold`` of itself; None or 0: it does not.
        report_feature_importances: whether they are logged when training ends.
        local_eval, version: taken, without effect.
        head: a head of `tf.contrib.learn`; by default for classes or numbers, as ``params`` say.

    Raises:
        NotImplementedError: for more trainers than one, and as `ForestHParams.fill`.
        InvalidArgumentError: when it runs, as `RandomForestGraphs`.

    >>> import numpy as np
    >>> x = np.float32([[0.0], [1.0], [2.0], [3.0]] * 5)
    >>> params = tf.contrib.tensor_forest.ForestHParams(
    ...     num_classes=2, num_features=1, num_trees=5, split_after_samples=10, base_random_seed=1
    ... )
    >>> forest = tf.contrib.tensor_forest.random_forest.TensorForestEstimator(params)
    >>> forest = forest.fit(x, (x[:, 0] > 1).astype(np.int32), steps=10)
    >>> [int(found["classes"]) for found in forest.predict(x[:4])]
    [0, 0, 1, 1]
    """

    def __init__(
        self,
        params: ForestHParams,
        device_assigner: Any = None,
        model_dir: Any = None,
        feature_columns: Iterable[Any] | None = None,
        graph_builder_class: Any = RandomForestGraphs,
        config: Any = None,
        weight_column: str | None = None,
        keys_column: str | None = None,
        feature_engineering_fn: Callable[..., Any] | None = None,
        early_stopping_rounds: int | None = 100,
        early_stopping_loss_threshold: float = 0.001,
        num_trainers: int = 1,
        trainer_id: int = 0,
        report_feature_importances: bool = False,
        local_eval: bool = False,
        version: Any = None,
        head: Head | None = None,
    ) -> None:
        if num_trainers != 1 or trainer_id != 0:
            raise NotImplementedError("A forest of Headrace has one trainer.")
        params = params.fill()
        options = {
            "columns": None if feature_columns is None else tuple(feature_columns),
            "graphs": graph_builder_class,
            "weights": weight_column,
            "keys": keys_column,
            "rounds": early_stopping_rounds,
            "threshold": early_stopping_loss_threshold,
            "importances": report_feature_importances,
        }
        model = _Model(params, head or get_default_head(params, weight_column), options)

        def model_fn(features: Any, labels: Any, mode: str) -> ModelFnOps:
            return model(features, labels, mode)

        super().__init__(model_fn, model_dir, config, feature_engineering_fn=feature_engineering_fn)
