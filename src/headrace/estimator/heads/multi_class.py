"""Heads of a logit for each of several classes."""

from __future__ import annotations

from typing import Any

import headrace as tf
from headrace.estimator.export.outputs import ExportOutput
from headrace.estimator.heads import checks
from headrace.estimator.heads.binary import class_names, label_ids
from headrace.estimator.heads.head import (
    Head,
    LossSpec,
    all_class_ids,
    all_classes,
    classes_output,
    classified,
)
from headrace.estimator.heads.keys import MetricKeys, PredictionKeys
from headrace.graph.tensor import Tensor

__all__ = ["MultiClassHead"]


class MultiClassHead(Head):
    """A logit for each class, of which exactly one is right; their softmax is the probability.

    Labels are integers in ``[0, n_classes)``, or names of classes, shape ``[D0, ..., DN, 1]`` or
    ``[D0, ..., DN]``. The loss is the softmax cross entropy.

    Args:
        n_classes: more than 2.
        weight_column, label_vocabulary, loss_reduction, loss_fn, name: as for `BinaryClassHead`.

    Raises:
        ValueError: for too few classes, a vocabulary of another size, an unknown reduction, a
            ``loss_fn`` with other arguments.

    >>> head = tf.estimator.MultiClassHead(3, label_vocabulary=["red", "green", "blue"])
    >>> logits = tf.constant([[0.0, 2.0, 1.0]])
    >>> with tf.Session() as session:
    ...     predictions = head.predictions(logits, keys=["classes"])
    ...     session.run(tf.tables_initializer())
    ...     session.run(predictions)["classes"].tolist()
    [[b'green']]
    """

    def __init__(
        self,
        n_classes: int,
        weight_column: Any = None,
        label_vocabulary: Any = None,
        loss_reduction: Any = "sum_over_batch_size",
        loss_fn: Any = None,
        name: str | None = None,
    ) -> None:
        if n_classes is None:
            raise ValueError("n_classes cannot be None")
        checks.check_classes(n_classes)
        self._vocabulary = checks.check_vocabulary(label_vocabulary, n_classes)
        super().__init__(int(n_classes), weight_column, loss_reduction, loss_fn, name)

    def _predictions(self, logits: Tensor) -> dict[str, Tensor]:
        keys, n_classes = PredictionKeys, self.logits_dimension
        ids = tf.expand_dims(tf.argmax(logits, axis=-1, name=keys.CLASS_IDS), axis=-1)
        return {
            keys.LOGITS: logits,
            keys.PROBABILITIES: tf.nn.softmax(logits, name=keys.PROBABILITIES),
            keys.CLASS_IDS: ids,
            keys.CLASSES: class_names(ids, self._vocabulary),
            keys.ALL_CLASS_IDS: all_class_ids(logits, n_classes),
            keys.ALL_CLASSES: all_classes(logits, n_classes, self._vocabulary),
        }

    def _labels(self, labels: Any, logits: Tensor) -> Tensor:
        labels = checks.checked_labels(labels, logits, 1)
        if self._vocabulary is None:
            if not labels.dtype.is_integer:
                raise ValueError(
                    f"Labels dtype should be integer. Instead got {labels.dtype.name}. Labels of a "
                    "classifier are numbers of classes (tf.argmax makes them of one-hot rows), or "
                    "strings with a label_vocabulary."
                )
        else:
            labels = label_ids(labels, self._vocabulary)
        return checks.check_label_range(labels, self.logits_dimension, vocabulary=self._vocabulary)

    def _losses(self, labels: Tensor, logits: Tensor, features: Any) -> Tensor:
        if self._loss_fn:
            return checks.call_loss_fn(self._loss_fn, labels, logits, features, 1)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
            labels=tf.squeeze(labels, [-1]), logits=logits
        )
        return tf.expand_dims(losses, axis=-1)

    def _no_labels(self) -> Tensor:
        none: Tensor = tf.zeros([1, 1], tf.int64)
        return none

    def _metrics(
        self, parts: LossSpec, predictions: dict[str, Tensor], labels: Any
    ) -> dict[str, Any]:
        ids = predictions[PredictionKeys.CLASS_IDS]
        return {
            MetricKeys.ACCURACY: tf.metrics.accuracy(
                parts.processed_labels, ids, parts.weights, name=MetricKeys.ACCURACY
            )
        }

    def _scored(self, predictions: dict[str, Tensor]) -> dict[str, ExportOutput]:
        scores = predictions[PredictionKeys.PROBABILITIES]
        return classified(classes_output(scores, self.logits_dimension, self._vocabulary))
