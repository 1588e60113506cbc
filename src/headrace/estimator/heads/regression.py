"""Heads that predict numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import headrace as tf
from headrace.estimator.export.outputs import ExportOutput
from headrace.estimator.heads import checks
from headrace.estimator.heads.head import Head, LossSpec, regressed, spread
from headrace.estimator.heads.keys import MetricKeys, PredictionKeys
from headrace.graph.tensor import Tensor

__all__ = ["LogisticRegressionHead", "PoissonRegressionHead", "RegressionHead"]


class RegressionHead(Head):
    """Numbers; the loss is the squared error.

    Labels and predictions have shape ``[D0, ..., DN, label_dimension]``; of one number, labels may
    have shape ``[D0, ..., DN]``.

    Args:
        label_dimension: how many numbers for each example.
        weight_column: as for `BinaryClassHead`; weights may also be one for each number.
        loss_reduction, name: as there.
        loss_fn: ``loss_fn(labels, logits[, features])``, losses of the shape of the logits.
        inverse_link_fn: makes predictions of logits; by default they are the same.

    Raises:
        ValueError: for a label_dimension below 1, an unknown reduction, a ``loss_fn`` with other
            arguments.

    >>> head = tf.estimator.RegressionHead()
    >>> with tf.Session() as session:
    ...     float(session.run(head.loss([[1.0], [5.0]], tf.constant([[2.0], [2.0]]))))
    5.0
    """

    def __init__(
        self,
        label_dimension: int = 1,
        weight_column: Any = None,
        loss_reduction: Any = "sum_over_batch_size",
        loss_fn: Any = None,
        inverse_link_fn: Callable[[Any], Any] | None = None,
        name: str | None = None,
    ) -> None:
        if label_dimension < 1:
            raise ValueError(f"Invalid label_dimension {label_dimension}.")
        self._inverse_link_fn = inverse_link_fn
        super().__init__(label_dimension, weight_column, loss_reduction, loss_fn, name)

    def _predictions(self, logits: Tensor) -> dict[str, Tensor]:
        keys = PredictionKeys
        if self._inverse_link_fn is None:
            return {keys.PREDICTIONS: logits}
        return {keys.PREDICTIONS: self._inverse_link_fn(logits), keys.LOGITS: logits}

    def _labels(self, labels: Any, logits: Tensor) -> Tensor:
        labels = checks.checked_labels(labels, logits, self.logits_dimension)
        if labels.dtype == tf.string:
            raise ValueError("Labels dtype should be a number type. Instead got string.")
        numbers: Tensor = tf.to_float(labels)
        return numbers

    def _losses(self, labels: Tensor, logits: Tensor, features: Any) -> Tensor:
        if self._loss_fn:
            dimension = self.logits_dimension
            return checks.call_loss_fn(self._loss_fn, labels, logits, features, dimension)
        return tf.squared_difference(logits, labels)

    def _weights(self, features: Any, logits: Tensor) -> Any:
        return checks.example_weights(features, self._weight_column, logits, per_logit=True)

    def _metrics(
        self, parts: LossSpec, predictions: dict[str, Tensor], labels: Any
    ) -> dict[str, Any]:
        keys, weights = MetricKeys, parts.weights
        values = predictions[PredictionKeys.PREDICTIONS]
        return {
            keys.PREDICTION_MEAN: tf.metrics.mean(
                values, weights=spread(weights, values), name=keys.PREDICTION_MEAN
            ),
            keys.LABEL_MEAN: tf.metrics.mean(
                parts.processed_labels, weights=weights, name=keys.LABEL_MEAN
            ),
        }

    def _scored(self, predictions: dict[str, Tensor]) -> dict[str, ExportOutput]:
        return regressed(predictions[PredictionKeys.PREDICTIONS])


class PoissonRegressionHead(RegressionHead):
    """Counts: the logarithm of their mean is the logit, the loss that of a Poisson distribution.

    Args:
        label_dimension, weight_column, loss_reduction, name: as for `RegressionHead`.
        compute_full_loss: with Stirling's approximation of the term of the labels alone.

    Raises:
        ValueError: as `RegressionHead`.

    >>> head = tf.estimator.PoissonRegressionHead()
    >>> with tf.Session() as session:
    ...     value = session.run(head.predictions(tf.constant([[0.0]])))["predictions"]
    ...     value.tolist()
    [[1.0]]
    """

    def __init__(
        self,
        label_dimension: int = 1,
        weight_column: Any = None,
        loss_reduction: Any = "sum_over_batch_size",
        compute_full_loss: bool = True,
        name: str | None = None,
    ) -> None:
        self._full = compute_full_loss
        super().__init__(
            label_dimension, weight_column, loss_reduction, self._poisson, tf.exp, name
        )

    def _poisson(self, labels: Tensor, logits: Tensor) -> Tensor:
        return tf.nn.log_poisson_loss(labels, logits, compute_full_loss=self._full)


class LogisticRegressionHead(RegressionHead):
    """Probabilities: the sigmoid of the logit, for labels in [0, 1]; the loss is the cross entropy.

    Args:
        weight_column, loss_reduction, name: as for `RegressionHead`.

    Raises:
        ValueError: as `RegressionHead`.

    >>> head = tf.estimator.LogisticRegressionHead()
    >>> with tf.Session() as session:
    ...     value = session.run(head.predictions(tf.constant([[0.0]])))["predictions"]
    ...     value.tolist()
    [[0.5]]
    """

    def __init__(
        self,
        weight_column: Any = None,
        loss_reduction: Any = "sum_over_batch_size",
        name: str | None = None,
    ) -> None:
        super().__init__(1, weight_column, loss_reduction, self._logistic, tf.sigmoid, name)

    def _logistic(self, labels: Tensor, logits: Tensor) -> Tensor:
        labels = checks.check_label_range(labels, 2, "Labels must be in range [0, 1]")
        return tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits)
