"""Heads of a logit for each of several classes, of which any number may be right."""

from __future__ import annotations

from typing import Any

import headrace as tf
from headrace.estimator.export.outputs import ExportOutput
from headrace.estimator.heads import checks
from headrace.estimator.heads.binary import label_ids, threshold_metrics
from headrace.estimator.heads.head import Head, LossSpec, classes_output, classified, spread
from headrace.estimator.heads.keys import MetricKeys, PredictionKeys
from headrace.graph.tensor import Tensor

__all__ = ["MultiLabelHead"]


class MultiLabelHead(Head):
    """A logit for each class; the sigmoid of each is the probability that it applies.

    Labels are indicators (0 or 1) of shape ``[D0, ..., DN, n_classes]``, or a SparseTensor of class
    numbers or names. The loss is the sigmoid cross entropy, its mean over the classes.

    Args:
        n_classes: more than 1.
        weight_column, thresholds, loss_reduction, loss_fn, name: as for `BinaryClassHead`.
        label_vocabulary: names of the classes, for sparse string labels.
        classes_for_class_based_metrics: numbers or names of classes that get metrics of their own.

    Raises:
        ValueError: for too few classes, a vocabulary of another size, unknown classes, and what
            `BinaryClassHead` raises.

    >>> head = tf.estimator.MultiLabelHead(n_classes=2)
    >>> labels = tf.constant([[1, 1]])
    >>> with tf.Session() as session:
    ...     round(float(session.run(head.loss(labels, tf.constant([[0.0, 9.0]])))), 3)
    0.347
    """

    def __init__(
        self,
        n_classes: int,
        weight_column: Any = None,
        thresholds: Any = None,
        label_vocabulary: Any = None,
        loss_reduction: Any = "sum_over_batch_size",
        loss_fn: Any = None,
        classes_for_class_based_metrics: Any = None,
        name: str | None = None,
    ) -> None:
        if n_classes is None or n_classes < 2:
            raise ValueError(
                f"n_classes must be > 1 for multi-label classification. Given: {n_classes}"
            )
        self._thresholds = checks.check_thresholds(thresholds)
        self._vocabulary = checks.check_vocabulary(label_vocabulary, n_classes)
        self._classes = _class_ids(classes_for_class_based_metrics, self._vocabulary, n_classes)
        super().__init__(int(n_classes), weight_column, loss_reduction, loss_fn, name)

    def _predictions(self, logits: Tensor) -> dict[str, Tensor]:
        keys = PredictionKeys
        return {
            keys.LOGITS: logits,
            keys.PROBABILITIES: tf.sigmoid(logits, name=keys.PROBABILITIES),
        }

    def _labels(self, labels: Any, logits: Tensor) -> Tensor:
        labels = checks.required_labels(labels)
        n_classes = self.logits_dimension
        if isinstance(labels, tf.SparseTensor):
            values = labels.values
            if values.dtype == tf.string:
                if self._vocabulary is None:
                    raise ValueError(
                        "String labels need a label_vocabulary: the names of the classes."
                    )
                values = label_ids(values, self._vocabulary)
            elif not values.dtype.is_integer:
                raise ValueError(
                    f"Labels dtype should be integer. Instead got {values.dtype.name}."
                )
            message = f"labels must be an integer SparseTensor with values in [0, {n_classes})"
            values = checks.check_label_range(values, n_classes, message)
            ids = tf.SparseTensor(labels.indices, tf.to_int64(values), labels.dense_shape)
            indicators = tf.to_int64(tf.sparse_to_indicator(ids, n_classes))
            indicators.set_shape([*logits.shape[:-1], n_classes])
        else:
            labels = tf.convert_to_tensor(labels)
            message = "labels must be an integer indicator Tensor with values in [0, 1]"
            if labels.dtype == tf.string:
                raise ValueError(f"{message}. Instead got string.")
            indicators = checks.check_label_range(labels, 2, message)
        return checks.checked_labels(indicators, logits, n_classes)

    def _losses(self, labels: Tensor, logits: Tensor, features: Any) -> Tensor:
        if self._loss_fn:
            return checks.call_loss_fn(self._loss_fn, labels, logits, features, 1)
        losses = tf.nn.sigmoid_cross_entropy_with_logits(labels=tf.to_float(labels), logits=logits)
        return tf.reduce_mean(losses, axis=-1, keepdims=True)

    def _metrics(
        self, parts: LossSpec, predictions: dict[str, Tensor], labels: Any
    ) -> dict[str, Any]:
        keys, weights, labels = MetricKeys, parts.weights, parts.processed_labels
        scores = predictions[PredictionKeys.PROBABILITIES]
        every = spread(weights, scores)
        found = {
            keys.AUC: self._area(labels, scores, weights, keys.AUC),
            keys.AUC_PR: self._area(labels, scores, weights, keys.AUC_PR, "PR"),
            **threshold_metrics(labels, scores, every, self._thresholds),
        }
        for number in self._classes:
            of_class, those = scores[..., number : number + 1], labels[..., number : number + 1]
            mean, area, area_pr = self._class_keys(number)
            found[mean] = tf.metrics.mean(of_class, weights=spread(weights, of_class), name=mean)
            found[area] = self._area(those, of_class, weights, area)
            found[area_pr] = self._area(those, of_class, weights, area_pr, "PR")
        return found

    def _class_keys(self, number: int) -> tuple[str, str, str]:
        keys = MetricKeys
        if self._vocabulary is None:
            patterns = (keys.PROBABILITY_MEAN_AT_CLASS, keys.AUC_AT_CLASS, keys.AUC_PR_AT_CLASS)
            return patterns[0] % number, patterns[1] % number, patterns[2] % number
        name = self._vocabulary[number]
        patterns = (keys.PROBABILITY_MEAN_AT_NAME, keys.AUC_AT_NAME, keys.AUC_PR_AT_NAME)
        return patterns[0] % name, patterns[1] % name, patterns[2] % name

    def _scored(self, predictions: dict[str, Tensor]) -> dict[str, ExportOutput]:
        scores = predictions[PredictionKeys.PROBABILITIES]
        return classified(classes_output(scores, self.logits_dimension, self._vocabulary))


def _class_ids(classes: Any, vocabulary: Any, n_classes: int) -> tuple[int, ...]:
    """Numbers of the classes that are given by number or name."""
    found = []
    for given in classes or ():
        if isinstance(given, str):
            if vocabulary is None:
                raise ValueError(
                    "label_vocabulary must be provided when classes_for_class_based_metrics are "
                    "string."
                )
            if given not in vocabulary:
                raise ValueError(f"{given!r} is not in label_vocabulary {list(vocabulary)}.")
            given = vocabulary.index(given)
        if not 0 <= given < n_classes:
            raise ValueError(
                "All classes_for_class_based_metrics must be in range "
                f"[0, {n_classes - 1}]. Given: {given}"
            )
        found.append(int(given))
    return tuple(found)
