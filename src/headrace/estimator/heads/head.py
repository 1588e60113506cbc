"""The base of heads: from logits and labels to predictions, loss, metrics and a training step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import headrace as tf
from headrace.estimator.export.outputs import (
    ClassificationOutput,
    ExportOutput,
    PredictOutput,
    RegressionOutput,
)
from headrace.estimator.heads import checks
from headrace.estimator.heads.keys import CLASSIFY, PREDICT, REGRESS, SERVE, MetricKeys
from headrace.estimator.heads.metric_objects import HeadMetric
from headrace.estimator.mode_keys import ModeKeys
from headrace.estimator.spec import EstimatorSpec
from headrace.graph.tensor import Tensor

__all__ = ["Head", "LossSpec", "of_first_generation"]


class LossSpec(NamedTuple):
    """The loss of a batch, and what it was made of."""

    training_loss: Any
    unreduced_loss: Any
    weights: Any
    processed_labels: Any


class Head:
    """What stands on top of a model: given logits, it knows what they mean.

    A subclass says how many logits it takes, and how predictions, losses and metrics come of them.
    Heads of `tf.estimator` divide the loss by the size of the batch, as those of
    `tf.contrib.estimator` do; the premade estimators sum it up by default.

    >>> head = tf.estimator.MultiClassHead(n_classes=3)
    >>> isinstance(head, tf.estimator.Head), head.logits_dimension
    (True, 3)
    """

    #: 2 for the classes of `tf.estimator`, 1 for what premade estimators and contrib make.
    _generation = 2

    def __init__(
        self,
        logits_dimension: int,
        weight_column: Any,
        loss_reduction: Any,
        loss_fn: Any,
        name: Any,
    ) -> None:
        checks.check_loss_fn(loss_fn)
        self._logits_dimension = logits_dimension
        self._weight_column = weight_column
        self._given_reduction = loss_reduction
        self._reduction = checks.check_reduction(loss_reduction)
        self._loss_fn = loss_fn
        self._name: str | None = name

    @property
    def name(self) -> str | None:
        """The name, which follows those of metrics after a slash; or None."""
        return self._name

    @property
    def logits_dimension(self) -> int:
        """The size of the last dimension of the logits."""
        return self._logits_dimension

    @property
    def loss_reduction(self) -> str:
        """How losses of a batch become one."""
        return str(self._given_reduction)

    # -- what subclasses say -----------------------------------------------------------------

    def predictions(self, logits: Any, keys: Sequence[str] | None = None) -> dict[str, Tensor]:
        """Predictions by name.

        Args:
            logits: shape ``[D0, D1, ..., logits_dimension]``.
            keys: which ones; all if None.

        Raises:
            ValueError: for a key of no prediction, and logits of another shape.
        """
        logits = checks.checked_logits(logits, self.logits_dimension)
        with tf.name_scope(None, "predictions", (logits,)):
            found = self._predictions(logits)
        for key in keys or ():
            if key not in found:
                raise ValueError(
                    f"Prediction key must be in PredictionKeys, given: {key}. Valid prediction "
                    f"keys include {sorted(found)}."
                )
        return {key: value for key, value in found.items() if not keys or key in keys}

    def _predictions(self, logits: Tensor) -> dict[str, Tensor]:
        raise NotImplementedError

    def _labels(self, labels: Any, logits: Tensor) -> Tensor:
        """Labels as the loss and the metrics take them."""
        raise NotImplementedError

    def _losses(self, labels: Tensor, logits: Tensor, features: Any) -> Tensor:
        """The loss of each example."""
        raise NotImplementedError

    def _metrics(
        self, parts: LossSpec, predictions: dict[str, Tensor], labels: Any
    ) -> dict[str, Any]:
        """Pairs (value, update) by key, without the head's name."""
        raise NotImplementedError

    def _scored(self, predictions: dict[str, Tensor]) -> dict[str, ExportOutput]:
        """The main export output by the names of its signatures."""
        raise NotImplementedError

    def _weights(self, features: Any, logits: Tensor) -> Any:
        return checks.example_weights(features, self._weight_column, logits)

    # -- what all heads do -------------------------------------------------------------------

    def create_loss(self, features: Any, mode: str | None, logits: Any, labels: Any) -> LossSpec:
        """The loss and its parts: unreduced losses, weights and labels as the loss takes them."""
        logits = checks.checked_logits(logits, self.logits_dimension)
        processed = self._labels(labels, logits)
        losses = self._losses(processed, logits, features)
        weights = self._weights(features, logits)
        loss = checks.weighted_loss(losses, weights, self._reduction)
        return LossSpec(loss, losses, weights, processed)

    def loss(
        self,
        labels: Any,
        logits: Any,
        features: Any = None,
        mode: str | None = None,
        regularization_losses: Sequence[Any] | None = None,
    ) -> Tensor:
        """The training loss of a batch, a float scalar.

        Args:
            labels: what should have been predicted.
            logits: shape ``[D0, D1, ..., logits_dimension]``.
            features: a dictionary; has the weights, if there is a ``weight_column``.
            regularization_losses: scalars, added.

        Raises:
            ValueError: if labels, logits or weights are missing or of the wrong shape or type.
            InvalidArgumentError: when run, if labels are out of range.
        """
        with tf.name_scope(None, "losses", (logits,)):
            parts = self.create_loss(features, mode, logits, labels)
            total: Tensor = _regularized(parts.training_loss, regularization_losses)[0]
            return total

    def metrics(self, regularization_losses: Sequence[Any] | None = None) -> dict[str, Any]:
        """The metrics of evaluation by name, for `update_metrics`.

        Args:
            regularization_losses: if there are any, they have a metric.
        """
        with tf.Graph().as_default():
            logits = tf.zeros([1, self.logits_dimension])
            zero = tf.zeros([])
            parts = LossSpec(zero, tf.zeros([1, 1]), 1.0, self._no_labels())
            added = zero if regularization_losses else None
            names = list(self._metric_ops(parts, self.predictions(logits), None, added))
        return {name: HeadMetric(name) for name in names}

    def _no_labels(self) -> Tensor:
        """Labels as `_labels` gives them, of one example."""
        none: Tensor = tf.zeros([1, self.logits_dimension])
        return none

    def update_metrics(
        self,
        eval_metrics: dict[str, Any],
        features: Any,
        logits: Any,
        labels: Any,
        mode: str | None = None,
        regularization_losses: Sequence[Any] | None = None,
    ) -> dict[str, Any]:
        """Give metrics the tensors of a batch: an EstimatorSpec takes them then.

        Args:
            eval_metrics: what `metrics` gave; these objects are changed.
            features, logits, labels, regularization_losses: as for `create_estimator_spec`.
            mode: has no effect.

        Returns:
            The same dictionary.

        Raises:
            ValueError: if labels, logits or weights are missing or of the wrong shape or type, and
                for metrics that have been updated before.
        """
        found, variables = self.metric_pairs(features, logits, labels, regularization_losses)
        for name, metric in eval_metrics.items():
            if name in found:
                metric.give(*found[name], variables)
        return eval_metrics

    def metric_pairs(
        self, features: Any, logits: Any, labels: Any, regularization_losses: Any
    ) -> tuple[dict[str, Any], list[Any]]:
        """Pairs (value, update) by name, and the local variables of all."""
        before = len(tf.get_collection(tf.GraphKeys.METRIC_VARIABLES))
        with tf.name_scope(self._name, "head"):
            predictions = self.predictions(logits)
            parts = self.create_loss(features, ModeKeys.EVAL, logits, labels)
            _, added = _regularized(parts.training_loss, regularization_losses)
            found = self._metric_ops(parts, predictions, labels, added)
        return found, tf.get_collection(tf.GraphKeys.METRIC_VARIABLES)[before:]

    def create_estimator_spec(
        self,
        features: Any,
        mode: str,
        logits: Any,
        labels: Any = None,
        optimizer: Any = None,
        trainable_variables: Iterable[Any] | None = None,
        train_op_fn: Callable[[Any], Any] | None = None,
        update_ops: Iterable[Any] | None = None,
        regularization_losses: Sequence[Any] | None = None,
    ) -> EstimatorSpec:
        """What a model_fn returns.

        Args:
            features: of the model, a dictionary.
            mode: one of `tf.estimator.ModeKeys`.
            logits: shape ``[D0, D1, ..., logits_dimension]``.
            labels: needed to train and to evaluate.
            optimizer: a `tf.train` optimizer, which minimises the loss.
            trainable_variables: which it changes; all if None.
            train_op_fn: in place of an optimizer: the training op for a loss.
            update_ops: what else runs in a step of training; by default the collection
                ``UPDATE_OPS``, where layers such as batch normalisation put theirs.
            regularization_losses: scalars, added to the loss.

        Raises:
            ValueError: if neither or both of ``optimizer`` and ``train_op_fn`` are given to train,
                or labels, logits or weights are missing or of the wrong shape or type.
        """
        with tf.name_scope(self._name, "head"):
            predictions = self.predictions(logits)
            if mode == ModeKeys.PREDICT:
                return EstimatorSpec(
                    mode,
                    predictions=predictions,
                    export_outputs={
                        **self._scored(predictions),
                        PREDICT: PredictOutput(predictions),
                    },
                )
            parts = self.create_loss(features, mode, logits, labels)
            loss, regularization = _regularized(parts.training_loss, regularization_losses)
            if mode == ModeKeys.EVAL:
                metrics = self._metric_ops(parts, predictions, labels, regularization)
                return EstimatorSpec(
                    mode, predictions=predictions, loss=loss, eval_metric_ops=metrics
                )
            train_op = make_train_op(loss, optimizer, trainable_variables, train_op_fn, update_ops)
        self._summaries(parts, loss, regularization)
        return EstimatorSpec(mode, predictions=predictions, loss=loss, train_op=train_op)

    def _key(self, key: str) -> str:
        return f"{key}/{self._name}" if self._name else key

    def _metric_ops(
        self, parts: LossSpec, predictions: dict[str, Tensor], labels: Any, regularization: Any
    ) -> dict[str, Any]:
        with tf.name_scope(None, "metrics"):
            found = {
                MetricKeys.LOSS_MEAN: tf.metrics.mean(
                    parts.unreduced_loss, weights=parts.weights, name=MetricKeys.LOSS_MEAN
                ),
                **self._metrics(parts, predictions, labels),
            }
            if regularization is not None:
                found[MetricKeys.LOSS_REGULARIZATION] = tf.metrics.mean(
                    regularization, name=MetricKeys.LOSS_REGULARIZATION
                )
        return {self._key(key): value for key, value in found.items()}

    def _area(self, labels: Any, scores: Any, weights: Any, name: str, curve: str = "ROC") -> Any:
        """The area under a curve, by the sums that the generation of the head uses."""
        careful = self._generation == 2 and curve == "PR"
        return tf.metrics.auc(
            labels,
            scores,
            weights=spread(weights, scores),
            curve=curve,
            name=name,
            summation_method="careful_interpolation" if careful else "trapezoidal",
        )

    def _summaries(self, parts: LossSpec, loss: Tensor, regularization: Any) -> None:
        with tf.name_scope(""):
            tf.summary.scalar(self._key(MetricKeys.LOSS), loss)
            if self._generation == 1 and self._reduction == tf.losses.Reduction.SUM:
                total = tf.reduce_sum(parts.weights * tf.ones_like(parts.unreduced_loss))
                mean = parts.training_loss / total
                tf.summary.scalar(self._key(MetricKeys.LOSS_MEAN), mean)
            if regularization is not None:
                tf.summary.scalar(self._key(MetricKeys.LOSS_REGULARIZATION), regularization)


def of_first_generation(head: Head) -> Head:
    """The head, with the summaries and areas that premade estimators of 1.15 have."""
    head._generation = 1
    return head


def spread(weights: Any, values: Any) -> Any:
    """Weights of the shape of the values."""
    if isinstance(weights, float):
        return tf.ones_like(tf.to_float(values)) * weights
    return tf.ones_like(tf.to_float(values)) * weights


def classes_output(scores: Tensor, n_classes: int, vocabulary: Any) -> ClassificationOutput:
    """Scores and the names of their classes, for each example."""
    return ClassificationOutput(scores, all_classes(scores, n_classes, vocabulary))


def classified(output: ClassificationOutput) -> dict[str, ExportOutput]:
    """The output under the names of a classifier's signatures."""
    return {SERVE: output, CLASSIFY: output}


def regressed(value: Tensor, main: bool = True) -> dict[str, ExportOutput]:
    """The value under the names of a regressor's signatures."""
    output = RegressionOutput(value)
    return {SERVE: output, REGRESS: output} if main else {REGRESS: output}


def all_class_ids(logits: Tensor, n_classes: int) -> Tensor:
    """0 to ``n_classes`` - 1, for each example."""
    return tf.tile(tf.expand_dims(tf.range(n_classes), 0), [tf.shape(logits)[0], 1])


def all_classes(logits: Tensor, n_classes: int, vocabulary: Any) -> Tensor:
    """The names of all classes, for each example."""
    names = list(vocabulary) if vocabulary else tf.as_string(tf.range(n_classes))
    return tf.tile(tf.expand_dims(names, 0), [tf.shape(logits)[0], 1])


def make_train_op(
    loss: Tensor,
    optimizer: Any,
    variables: Iterable[Any] | None,
    train_op_fn: Callable[[Any], Any] | None,
    update_ops: Iterable[Any] | None,
) -> Any:
    """The op of a training step, updates of layers included."""
    if optimizer is not None and train_op_fn is not None:
        raise ValueError("train_op_fn and optimizer cannot both be set.")
    if update_ops is not None and not isinstance(update_ops, (list, tuple)):
        raise ValueError(f"update_ops should be a list or a tuple. Given type: {type(update_ops)}.")
    if optimizer is not None:
        train_op = _minimized(loss, optimizer, variables)
    elif train_op_fn is not None:
        train_op = train_op_fn(loss)
    else:
        raise ValueError("train_op_fn and optimizer cannot both be None.")
    updates = update_ops
    if updates is None:
        updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    return tf.group(train_op, *updates) if updates else train_op


def _minimized(loss: Tensor, optimizer: Any, variables: Iterable[Any] | None) -> Any:
    step = tf.train.get_global_step()
    chosen = None if variables is None else list(variables)
    if isinstance(optimizer, tf.train.Optimizer):
        return optimizer.minimize(loss, global_step=step, var_list=chosen)
    if not hasattr(optimizer, "get_updates"):
        raise ValueError(
            "The given optimizer is neither a tf.train.Optimizer nor a "
            f"tf.keras.optimizers.Optimizer instance. Given: {optimizer}"
        )
    if chosen is None:
        chosen = tf.trainable_variables()
    with tf.control_dependencies([tf.group(*optimizer.get_updates(loss, chosen))]):
        return tf.assign_add(step, 1).op


def _regularized(loss: Tensor, regularization_losses: Sequence[Any] | None) -> tuple[Any, Any]:
    """The loss with what is added, and what is added, or None."""
    if not regularization_losses:
        return loss, None
    added = tf.add_n(list(regularization_losses))
    return loss + added, added
