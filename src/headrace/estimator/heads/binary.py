"""Heads of one logit for two classes."""

from __future__ import annotations

from typing import Any

import headrace as tf
from headrace.estimator.export.outputs import ExportOutput
from headrace.estimator.heads import checks
from headrace.estimator.heads.head import (
    Head,
    LossSpec,
    all_class_ids,
    all_classes,
    classes_output,
    classified,
    regressed,
    spread,
)
from headrace.estimator.heads.keys import MetricKeys, PredictionKeys
from headrace.graph.tensor import Tensor
from headrace.lookup.vocabulary import index_table_from_tensor, index_to_string_table_from_tensor

__all__ = ["BinaryClassHead", "class_names", "label_ids", "threshold_metrics"]


class BinaryClassHead(Head):
    """One logit, whose sigmoid is the probability of class 1.

    Labels are 0 and 1 (of any number type), or names of the two classes, shape
    ``[D0, ..., DN, 1]`` or ``[D0, ..., DN]``. The loss is the sigmoid cross entropy.

    Args:
        weight_column: the name of the feature with the weights of examples, or a numeric column.
        thresholds: in (0, 1): further metrics at these probabilities.
        label_vocabulary: names of the classes, if labels are strings.
        loss_reduction: one of `tf.losses.Reduction`, or "sum", "sum_over_batch_size".
        loss_fn: ``loss_fn(labels, logits[, features])``, losses of shape ``[D0, ..., DN, 1]``.
        name: follows the names of metrics and summaries after a slash.

    Raises:
        ValueError: for thresholds out of (0, 1), a vocabulary that is no list, an unknown
            reduction, a ``loss_fn`` with other arguments.

    >>> head = tf.estimator.BinaryClassHead()
    >>> with tf.Session() as session:
    ...     loss = head.loss(labels=[[1], [0]], logits=tf.constant([[0.0], [0.0]]))
    ...     round(float(session.run(loss)), 4)
    0.6931
    """

    def __init__(
        self,
        weight_column: Any = None,
        thresholds: Any = None,
        label_vocabulary: Any = None,
        loss_reduction: Any = "sum_over_batch_size",
        loss_fn: Any = None,
        name: str | None = None,
    ) -> None:
        self._thresholds = checks.check_thresholds(thresholds)
        self._vocabulary = checks.check_vocabulary(label_vocabulary)
        super().__init__(1, weight_column, loss_reduction, loss_fn, name)

    def _predictions(self, logits: Tensor) -> dict[str, Tensor]:
        keys = PredictionKeys
        logistic = tf.sigmoid(logits, name=keys.LOGISTIC)
        both = tf.concat((tf.zeros_like(logits), logits), axis=-1, name="two_class_logits")
        probabilities = tf.nn.softmax(both, name=keys.PROBABILITIES)
        ids = tf.expand_dims(tf.argmax(both, axis=-1, name=keys.CLASS_IDS), axis=-1)
        return {
            keys.LOGITS: logits,
            keys.LOGISTIC: logistic,
            keys.PROBABILITIES: probabilities,
            keys.CLASS_IDS: ids,
            keys.CLASSES: class_names(ids, self._vocabulary),
            keys.ALL_CLASS_IDS: all_class_ids(logits, 2),
            keys.ALL_CLASSES: all_classes(logits, 2, self._vocabulary),
        }

    def _labels(self, labels: Any, logits: Tensor) -> Tensor:
        labels = checks.checked_labels(labels, logits, 1)
        if self._vocabulary is None and labels.dtype == tf.string:
            raise ValueError(
                "Labels dtype should be a number type without a label_vocabulary. Instead got "
                "string. Give label_vocabulary=[...], the names of the two classes."
            )
        if self._vocabulary is not None:
            labels = label_ids(labels, self._vocabulary)
        return checks.check_label_range(tf.to_float(labels), 2, vocabulary=self._vocabulary)

    def _losses(self, labels: Tensor, logits: Tensor, features: Any) -> Tensor:
        if self._loss_fn:
            return checks.call_loss_fn(self._loss_fn, labels, logits, features, 1)
        return tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits)

    def _metrics(
        self, parts: LossSpec, predictions: dict[str, Tensor], labels: Any
    ) -> dict[str, Any]:
        keys, weights, labels = MetricKeys, parts.weights, parts.processed_labels
        ids = predictions[PredictionKeys.CLASS_IDS]
        logistic = predictions[PredictionKeys.LOGISTIC]
        label_mean = tf.metrics.mean(labels, weights=weights, name=keys.LABEL_MEAN)
        with tf.name_scope(None, "accuracy_baseline"):
            baseline = (
                tf.maximum(label_mean[0], 1.0 - label_mean[0], name="value"),
                tf.maximum(label_mean[1], 1.0 - label_mean[1], name="update_op"),
            )
        return {
            keys.ACCURACY: tf.metrics.accuracy(labels, ids, weights, name=keys.ACCURACY),
            keys.PRECISION: tf.metrics.precision(labels, ids, weights, name=keys.PRECISION),
            keys.RECALL: tf.metrics.recall(labels, ids, weights, name=keys.RECALL),
            keys.PREDICTION_MEAN: tf.metrics.mean(
                logistic, weights=weights, name=keys.PREDICTION_MEAN
            ),
            keys.LABEL_MEAN: label_mean,
            keys.ACCURACY_BASELINE: baseline,
            keys.AUC: self._area(labels, logistic, weights, keys.AUC),
            keys.AUC_PR: self._area(labels, logistic, weights, keys.AUC_PR, "PR"),
            **threshold_metrics(labels, logistic, weights, self._thresholds),
        }

    def _scored(self, predictions: dict[str, Tensor]) -> dict[str, ExportOutput]:
        scores = predictions[PredictionKeys.PROBABILITIES]
        return {
            **classified(classes_output(scores, 2, self._vocabulary)),
            **regressed(predictions[PredictionKeys.LOGISTIC], main=False),
        }


def class_names(ids: Tensor, vocabulary: Any) -> Tensor:
    """The name of each class."""
    if vocabulary is None:
        return tf.as_string(ids, name="str_classes")
    table = index_to_string_table_from_tensor(list(vocabulary), name="class_string_lookup")
    names: Tensor = table.lookup(ids)
    return names


def label_ids(labels: Tensor, vocabulary: Any) -> Tensor:
    """The place of each label in the vocabulary, -1 for those that are not there."""
    if labels.dtype != tf.string:
        raise ValueError(
            "Labels dtype should be string if there is a vocabulary. "
            f"Instead got {labels.dtype.name}"
        )
    table = index_table_from_tensor(list(vocabulary), name="class_id_lookup")
    ids: Tensor = table.lookup(labels)
    return ids


def threshold_metrics(
    labels: Tensor, scores: Tensor, weights: Any, thresholds: tuple[float, ...]
) -> dict[str, Any]:
    """Accuracy, precision and recall at each threshold."""
    found: dict[str, Any] = {}
    for threshold in thresholds:
        above = tf.to_float(tf.greater_equal(scores, threshold))
        key = MetricKeys.ACCURACY_AT_THRESHOLD % threshold
        found[key] = tf.metrics.accuracy(
            labels, above, spread(weights, above), name=_scope_name(key)
        )
        for pattern, metric in (
            (MetricKeys.PRECISION_AT_THRESHOLD, tf.metrics.precision_at_thresholds),
            (MetricKeys.RECALL_AT_THRESHOLD, tf.metrics.recall_at_thresholds),
        ):
            key = pattern % threshold
            value, update = metric(
                labels, scores, [threshold], weights=weights, name=_scope_name(key)
            )
            found[key] = (tf.squeeze(value), tf.squeeze(update))
    return found


def _scope_name(key: str) -> str:
    return key.replace("+", "_")
