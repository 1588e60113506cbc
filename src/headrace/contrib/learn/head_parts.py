"""What heads of ``tf.contrib.learn`` are made of: weighted losses, means and areas."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import headrace as tf
from headrace.errors import suggest
from headrace.estimator.callables import argument_names
from headrace.estimator.heads.head import spread
from headrace.graph.tensor import Tensor

__all__ = [
    "area",
    "as_column",
    "at_threshold",
    "example_weights",
    "mean_of",
    "weighted_loss",
    "wrapped_loss",
]

#: ``loss(labels, logits, weights)``: the training loss, and the mean by weight.
Loss = Callable[[Any, Any, Any], tuple[Any, Any]]


def as_column(values: Any) -> Tensor:
    """A vector as ``[batch, 1]``; a matrix as it is."""
    tensor = tf.convert_to_tensor(values)
    column: Tensor = tf.expand_dims(tensor, 1) if tensor.shape.ndims == 1 else tensor
    return column


def example_weights(features: Any, name: str | None) -> Any:
    """The weights of the examples, ``[batch, 1]`` of float32, or None.

    Raises:
        ValueError: if there is no such feature.
    """
    if not name:
        return None
    if not isinstance(features, Mapping) or name not in features:
        known = sorted(map(str, features)) if isinstance(features, Mapping) else []
        raise ValueError(f"Weights {name} missing from features.{suggest(name, known)}")
    with tf.name_scope(None, "weight_tensor"):
        return as_column(tf.to_float(features[name]))


def weighted_loss(losses: Any, weights: Any) -> tuple[Any, Any]:
    """The mean of weighted losses, and their sum divided by that of the weights."""
    with tf.name_scope("loss") as scope:
        if weights is None:
            mean = tf.reduce_mean(losses, name=scope)
            return mean, mean
        every = spread(weights, losses)
        weighted = tf.multiply(losses, every, name="weighted_loss")
        total = tf.div(tf.reduce_sum(weighted), tf.reduce_sum(every), name="weighted_average_loss")
        return tf.reduce_mean(weighted, name=scope), total


def wrapped_loss(loss_fn: Callable[..., Any]) -> Loss:
    """A loss of the user's own.

    Raises:
        ValueError: unless it takes ``labels``, ``logits`` and ``weights``.
    """
    names = argument_names(loss_fn)
    for name in ("labels", "logits", "weights"):
        if name not in names:
            raise ValueError(f"Argument {name} not found in loss_fn: it takes {list(names)}.")

    def loss(labels: Any, logits: Any, weights: Any) -> tuple[Any, Any]:
        given = (labels, logits) if weights is None else (labels, logits, weights)
        found = loss_fn(*given)
        return found, found

    return loss


def mean_of(values: Any, weights: Any, class_id: int | None = None) -> Any:
    """The streaming mean of a matrix, or of one of its columns."""
    values = tf.to_float(values)
    every = None if weights is None else spread(weights, values)
    if class_id is not None:
        values = values[:, class_id]
        every = None if every is None else every[:, class_id]
    return tf.metrics.mean(values, every)


def area(
    scores: Any, labels: Any, weights: Any, class_id: int | None = None, curve: str = "ROC"
) -> Any:
    """The area under the curve of scores, or of one of their columns."""
    labels, every = tf.cast(labels, tf.bool), None if weights is None else spread(weights, scores)
    if class_id is not None:
        scores, labels = scores[:, class_id], labels[:, class_id]
        every = None if every is None else every[:, class_id]
    return tf.metrics.auc(labels, scores, every, curve=curve)


def at_threshold(scores: Any, labels: Any, weights: Any, threshold: float) -> list[Any]:
    """Accuracy, precision and recall where what is above the threshold counts as true."""
    above = tf.to_float(tf.greater_equal(scores, threshold))
    found = [tf.metrics.accuracy(labels, above, weights)]
    for metric in (tf.metrics.precision_at_thresholds, tf.metrics.recall_at_thresholds):
        value, update = metric(labels, scores, (threshold,), weights)
        found.append((tf.squeeze(value), tf.squeeze(update)))
    return found
