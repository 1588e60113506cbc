"""Heads of ``tf.contrib.learn``: what logits mean, how good they are, and what is exported."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import headrace as tf
from headrace.contrib.learn.head_parts import Loss, as_column, example_weights
from headrace.contrib.learn.keys import MetricKey, PredictionKey
from headrace.contrib.learn.model_fn import ModelFnOps
from headrace.estimator.mode_keys import MODES, ModeKeys
from headrace.graph.tensor import Tensor

__all__ = ["Head", "SingleHead", "class_outputs", "no_op_train_fn"]


class Head:
    """What stands on top of a model of `tf.contrib.learn`.

    >>> isinstance(tf.contrib.learn.multi_class_head(3), tf.contrib.learn.Head)
    True
    """

    #: The name, which follows those of metrics after a slash; or None.
    head_name: str | None = None

    @property
    def logits_dimension(self) -> int:
        """The size of the last dimension of the logits."""
        raise NotImplementedError(f"{type(self).__name__} does not say its size.")

    def create_model_fn_ops(
        self,
        features: Any,
        mode: str,
        labels: Any = None,
        train_op_fn: Callable[[Any], Any] | None = None,
        logits: Any = None,
        logits_input: Any = None,
        scope: Any = None,
    ) -> ModelFnOps:
        """What a model_fn returns.

        Args:
            features: of the model, a dictionary; has the weights, if there are any.
            mode: one of `tf.contrib.learn.ModeKeys`.
            labels: needed to train and to evaluate.
            train_op_fn: makes the training op for a loss.
            logits: shape ``[batch, logits_dimension]``.
            logits_input: in place of logits: what a layer makes them of.
            scope: the variable scope.

        Raises:
            ValueError: if something that the mode needs is missing, or of the wrong shape.
        """
        raise NotImplementedError(f"{type(self).__name__} makes no model.")

    def _key(self, key: str) -> str:
        return f"{key}/{self.head_name}" if self.head_name else key


def no_op_train_fn(loss: Any) -> Any:
    """A ``train_op_fn`` that does nothing: an op without a value, thus without a shape.

    Raises:
        ValueError: for None: training needs a loss.

    >>> tf.contrib.learn.no_op_train_fn(tf.constant(1.0)).type
    'NoOp'
    """
    if loss is None:
        raise ValueError("Training needs a loss; got None.")
    return tf.no_op()


def check_mode(mode: str) -> None:
    """Raise ValueError for what is no mode."""
    if mode not in MODES:
        raise ValueError(f"mode={mode} unrecognized; modes are {', '.join(map(repr, MODES))}.")


def _logits_of(logits: Any, logits_input: Any, size: int) -> Tensor:
    if logits is None:
        if logits_input is None:
            raise ValueError("Neither logits nor logits_input supplied.")
        made: Tensor = tf.contrib.layers.linear(logits_input, size, scope="logits")
        return made
    if logits_input is not None:
        raise ValueError("Both logits and logits_input supplied.")
    logits = tf.convert_to_tensor(logits, name="logits")
    if logits.shape.ndims and logits.shape.as_list()[-1] not in (None, size):
        raise ValueError(
            f"logits have shape {logits.shape}; the last dimension should be {size}, the "
            "logits_dimension of the head."
        )
    found: Tensor = logits
    return found


def class_outputs(probabilities: Tensor, label_keys: Any) -> dict[str, Any]:
    """The probabilities of each example and the names of their classes."""
    with tf.name_scope(None, "_classification_output_alternatives"):
        rows = tf.shape(probabilities)[0]
        names = label_keys or tf.as_string(tf.range(tf.shape(probabilities)[1]))
        classes = tf.tile(tf.expand_dims(names, 0), [rows, 1], name="classes_tensor")
    return {PredictionKey.PROBABILITIES: probabilities, PredictionKey.CLASSES: classes}


class SingleHead(Head):
    """A head that is no combination of others.

    A subclass gives predictions, metrics, labels as the loss takes them, and the loss.

    >>> from headrace.contrib.learn.head import SingleHead
    >>> isinstance(tf.contrib.learn.regression_head(), SingleHead)
    True
    """

    _scope = ""
    _problem = 0
    #: The loss by its name in dual coordinate ascent, if that has it.
    sdca_loss: str | None = None

    def __init__(
        self,
        logits_dimension: int,
        loss: Loss,
        label_name: str | None,
        weight_column_name: str | None,
        enable_centered_bias: bool,
        head_name: str | None,
    ) -> None:
        if logits_dimension is None or logits_dimension < 1:
            raise ValueError(f"Invalid logits_dimension {logits_dimension}.")
        self._size = logits_dimension
        self._loss = loss
        self.label_name = label_name
        self.weight_column_name = weight_column_name
        self._centered = enable_centered_bias
        self.head_name = head_name

    @property
    def logits_dimension(self) -> int:
        return self._size

    # -- what subclasses say -----------------------------------------------------------------

    def _labels(self, labels: Any) -> Tensor:
        """Labels as `_loss` takes them: ``[batch, 1]``."""
        return as_column(labels)

    def _predictions(self, logits: Tensor) -> dict[str, Any]:
        raise NotImplementedError

    def _metrics(
        self, predictions: dict[str, Any], given: Any, labels: Tensor, weights: Any
    ) -> dict[str, Any]:
        """Pairs by key. ``given``: labels as they came; ``labels``: as the loss takes them."""
        return {}

    def _outputs(self, predictions: dict[str, Any]) -> dict[str, Any]:
        """What is exported."""
        return predictions

    # -- what all do -------------------------------------------------------------------------

    def create_model_fn_ops(
        self,
        features: Any,
        mode: str,
        labels: Any = None,
        train_op_fn: Callable[[Any], Any] | None = None,
        logits: Any = None,
        logits_input: Any = None,
        scope: Any = None,
    ) -> ModelFnOps:
        ops, average = self.model_and_average(
            features, mode, labels, train_op_fn, logits, logits_input, scope
        )
        return ops if mode != ModeKeys.EVAL else ops._replace(loss=average)

    def model_and_average(
        self,
        features: Any,
        mode: str,
        labels: Any,
        train_op_fn: Callable[[Any], Any] | None,
        logits: Any,
        logits_input: Any,
        scope: Any,
    ) -> tuple[ModelFnOps, Any]:
        """What `create_model_fn_ops` gives, with the loss of training; and the mean by weight."""
        check_mode(mode)
        with tf.variable_scope(scope, default_name=self.head_name or self._scope):
            logits = _logits_of(logits, logits_input, self._size)
            bias = None
            if self._centered:
                bias = _centered_bias(self._size, self._key)
                logits = tf.nn.bias_add(logits, bias)
            with tf.name_scope(None, "predictions", (logits,)):
                predictions = self._predictions(logits)
            outputs = {self.head_name: (self._problem, self._outputs(predictions))}
            found = ModelFnOps(mode, predictions, output_alternatives=outputs)
            if mode == ModeKeys.PREDICT or labels is None:
                return found, None
            return self._with_loss(found, features, labels, logits, bias, train_op_fn)

    def examples(self, features: Any, labels: Any) -> tuple[Tensor, Any]:
        """Labels as the loss takes them, and weights: None without a column of them."""
        weights = example_weights(features, self.weight_column_name)
        return self._labels(self._named(labels)), weights

    def _with_loss(
        self,
        ops: ModelFnOps,
        features: Any,
        labels: Any,
        logits: Tensor,
        bias: Any,
        train_op_fn: Callable[[Any], Any] | None,
    ) -> tuple[ModelFnOps, Any]:
        given = self._named(labels)
        weights = example_weights(features, self.weight_column_name)
        processed = self._labels(given)
        loss, average = self._loss(processed, logits, weights)
        with tf.name_scope(""):
            tf.summary.scalar(self._key(MetricKey.LOSS), tf.identity(average))
        train_op = metrics = None
        if ops.mode == ModeKeys.TRAIN:
            if train_op_fn is None:
                raise ValueError("train_op_fn can not be None in TRAIN mode")
            with tf.name_scope(None, "train_op", (loss,)):
                train_op = train_op_fn(loss)
                if bias is not None:
                    step = self._centered_step(bias, logits, processed, weights)
                    train_op = tf.group(train_op, step)
        else:
            with tf.name_scope("metrics"):
                own = self._metrics(ops.predictions, given, processed, weights)
                metrics = {self._key(MetricKey.LOSS): tf.metrics.mean(average)}
                metrics.update({self._key(key): pair for key, pair in own.items()})
        made = ops._replace(loss=loss, train_op=train_op, eval_metric_ops=metrics)
        return made, average

    def _named(self, labels: Any) -> Any:
        if isinstance(labels, Mapping):
            if self.label_name not in labels:
                raise ValueError(
                    f"labels are {sorted(map(str, labels))}; the head looks for label_name="
                    f"{self.label_name!r}."
                )
            labels = labels[self.label_name]
        return labels if isinstance(labels, tf.SparseTensor) else tf.convert_to_tensor(labels)

    def _centered_step(self, bias: Any, logits: Tensor, labels: Tensor, weights: Any) -> Any:
        """Moves the bias to where it is best without any features."""
        rows = tf.shape(logits)[0]
        alone = tf.tile(tf.reshape(bias, [1, self._size]), [rows, 1])
        loss = tf.reduce_mean(self._loss(labels, alone, weights))  # of both ways to weigh
        return tf.train.AdagradOptimizer(0.1).minimize(loss, var_list=[bias])


def _centered_bias(size: int, key: Callable[[str], str]) -> Any:
    bias = tf.Variable(tf.zeros([size]), name="centered_bias_weight")
    for i in range(size):
        tf.summary.scalar(key(f"centered_bias/bias_{i}"), bias[i])
    return bias
