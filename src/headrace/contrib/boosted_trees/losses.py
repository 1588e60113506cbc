"""``tf.contrib.boosted_trees.python.utils.losses``: the losses of examples, one by one.

Each function gives ``(loss, update_op)``; the operation does nothing, as no loss has a state.
"""

from __future__ import annotations

from typing import Any

import headrace as tf

__all__ = [
    "per_example_exp_loss",
    "per_example_full_exp_loss",
    "per_example_logistic_loss",
    "per_example_maxent_loss",
    "per_example_quantile_regression_loss",
    "per_example_squared_hinge_loss",
    "per_example_squared_loss",
]


def _weighted(loss: Any, weights: Any) -> tuple[Any, Any]:
    return (loss if weights is None else loss * weights), tf.no_op()


def per_example_squared_hinge_loss(labels: Any, weights: Any, predictions: Any) -> tuple[Any, Any]:
    """The square of ``tf.losses.hinge_loss``, which is one number for the whole batch.

    Labels, weights and predictions are ``[batch, 1]``; the loss is a scalar.

    Raises:
        ValueError: if the shapes do not fit.
    """
    loss = tf.losses.hinge_loss(labels=labels, logits=predictions, weights=weights)
    return tf.square(loss), tf.no_op()


def per_example_logistic_loss(labels: Any, weights: Any, predictions: Any) -> tuple[Any, Any]:
    """The cross entropy of ``sigmoid(predictions)``; all of shape ``[batch, 1]``.

    Raises:
        ValueError: if the shapes differ, or ``weights`` are None.
    """
    labels = tf.cast(labels, tf.float32)
    loss = tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=predictions)
    return loss * weights, tf.no_op()


def per_example_quantile_regression_loss(
    labels: Any, weights: Any, predictions: Any, quantile: float
) -> tuple[Any, Any]:
    """The loss of a quantile, squared where it is below 1.

    That has Hessians of 0 elsewhere: regularize with l2 or ``min_node_weight``.

    Args:
        labels, predictions: ``[batch, n]``.
        weights: ``[batch, 1]``, or None.
        quantile: between 0 and 1.

    Raises:
        ValueError: if the shapes do not fit.
    """
    error = tf.cast(labels, tf.float32) - predictions

    def smooth(slope: float) -> Any:
        scaled = slope * error
        return tf.where(scaled < 1.0, tf.square(scaled), scaled)

    return _weighted(tf.where(error > 0, smooth(quantile), smooth(quantile - 1)), weights)


def per_example_maxent_loss(
    labels: Any, weights: Any, logits: Any, num_classes: int, eps: float = 1e-15
) -> tuple[Any, Any]:
    """The cross entropy of classes, with second derivatives.

    The loss is ``[batch, 1]``.

    Args:
        labels: class indices ``[batch]`` or ``[batch, 1]``.
        weights: ``[batch, 1]``, or None.
        logits: ``[batch, num_classes]``.
        eps: probabilities are kept this far from 0 and 1.

    Raises:
        ValueError: if the shapes do not fit each other or ``num_classes``.
    """
    labels = tf.cast(labels, tf.int64)
    if labels.shape.ndims != 2:
        labels = tf.expand_dims(labels, 1)
    is_label = tf.cast(tf.reduce_sum(tf.one_hot(labels, num_classes), axis=[1]), tf.float32)
    powers = tf.exp(logits)
    probabilities = powers / (tf.reduce_sum(powers, 1, keepdims=True) + eps)
    chosen = tf.reduce_sum(is_label * probabilities, 1)
    low = tf.zeros_like(chosen) + eps
    high = tf.ones_like(chosen) - eps
    # `where`, not `clip_by_value`: its gradient at the ends is that of the chosen branch.
    chosen = tf.where(chosen >= eps, chosen, low)
    chosen = tf.where(chosen <= 1 - eps, chosen, high)
    return _weighted(tf.expand_dims(-tf.log(chosen), 1), weights)


def per_example_squared_loss(labels: Any, weights: Any, predictions: Any) -> tuple[Any, Any]:
    """The squared distance, ``[batch, 1]``, of labels and predictions ``[batch, n]``.

    Raises:
        ValueError: if the shapes do not fit.
    """
    distance = tf.reduce_sum(tf.squared_difference(predictions, labels), 1, keepdims=True)
    return distance * weights, tf.no_op()


def _signs(labels: Any, predictions: Any, name: str | None) -> tuple[Any, Any]:
    """``(predictions, 1 or -1 for labels)``."""
    with tf.name_scope(name, "exp_loss", [predictions, labels]):
        logits = tf.convert_to_tensor(predictions, name="logits")
        labels = tf.cast(labels, tf.float32, name="labels")
    if not labels.shape.is_compatible_with(logits.shape):
        raise ValueError(
            f"logits and labels must have the same shape ({logits.shape} vs {labels.shape})"
        )
    ones = tf.ones_like(logits)
    return logits, tf.where(labels > tf.zeros_like(logits), ones, -ones)


def per_example_exp_loss(
    labels: Any, weights: Any, predictions: Any, name: str | None = None, eps: float = 0.1
) -> tuple[Any, Any]:
    """``exp(-sign * p)``, where p is the sigmoid of the predictions, spread over ``[-1, 1]``.

    ``p = min(1, max(-1, (sigmoid - 1 / 2) / eps))``: it does not matter how sure a right
    answer is.

    Args:
        labels: 0 or 1, of the shape of ``predictions``.
        weights: ``[batch, 1]``.
        eps: half the width of what is spread.

    Raises:
        ValueError: for labels of another shape.
    """
    logits, signs = _signs(labels, predictions, name)
    spread = (1.0 / eps) * tf.sigmoid(logits) + (-1.0 / 2 / eps)
    ones = tf.ones_like(logits)
    spread = tf.where(spread < -1, -ones, spread)
    spread = tf.where(spread > 1, ones, spread)
    return tf.exp(-spread * signs) * weights, tf.no_op()


def per_example_full_exp_loss(
    labels: Any, weights: Any, predictions: Any, name: str | None = None
) -> tuple[Any, Any]:
    """``exp(-sign * prediction)``, for labels of 0 and 1.

    Raises:
        ValueError: for labels of another shape.
    """
    logits, signs = _signs(labels, predictions, name)
    return tf.exp(-1.0 * logits * signs) * weights, tf.no_op()
