"""Covariance and correlation over steps."""

from __future__ import annotations

from typing import Any

import headrace as tf
from headrace.metrics.variables import Metric, collected, fitted, metric_variable
from headrace.ops.nn import weights as fitting


def streaming_covariance(
    predictions: Any,
    labels: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The unbiased covariance of two float32 tensors, NaN of one value.

    Batches are merged by the formula of Chan, Golub and LeVeque ("Updating formulae and a pairwise
    algorithm for computing sample variances", 1979).

    Raises:
        ValueError: if the shapes do not fit.
    """
    with tf.variable_scope(name, "covariance", (predictions, labels, weights)):
        predictions, labels, weights = fitted(predictions, labels, weights)
        total, mean_x, mean_y, comoment = (
            metric_variable([], tf.float32, name=what)
            for what in ("count", "mean_prediction", "mean_label", "comoment")
        )
        if weights is None:
            batch = tf.cast(tf.size(labels), tf.float32)
            weights = tf.ones_like(labels)
        else:
            weights = fitting.broadcast_weights(weights, labels)
            batch = tf.reduce_sum(weights)
        batch_x = tf.div_no_nan(tf.reduce_sum(predictions * weights), batch)
        batch_y = tf.div_no_nan(tf.reduce_sum(labels * weights), batch)
        inner = tf.reduce_sum((predictions - batch_x) * (labels - batch_y) * weights)
        before = [tf.identity(v) for v in (total, mean_x, mean_y)]
        with tf.control_dependencies(before):
            count_now = tf.assign_add(total, batch)
            step_x, step_y = (
                tf.div_no_nan((own - old) * batch, count_now)
                for own, old in ((batch_x, before[1]), (batch_y, before[2]))
            )
            moved = [tf.assign_add(mean_x, step_x), tf.assign_add(mean_y, step_y)]
        between = (before[1] - batch_x) * (before[2] - batch_y)
        gained = inner + between * tf.div_no_nan(before[0] * batch, count_now)
        with tf.control_dependencies(moved):
            comoment_now = tf.assign_add(comoment, gained)
        value = _unbiased(comoment, total, "covariance")
        update_op = _unbiased(comoment_now, count_now, "update_op")
        return collected(value, update_op, metrics_collections, updates_collections)


def _unbiased(comoment: Any, total: Any, name: str) -> Any:
    total = tf.identity(total)
    nothing = tf.fill(tf.shape(total), float("nan"))
    return tf.where(tf.less_equal(total, 1.0), nothing, tf.truediv(comoment, total - 1), name=name)


def streaming_pearson_correlation(
    predictions: Any,
    labels: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """Pearson's correlation coefficient of two float32 tensors.

    Raises:
        ValueError: if the shapes do not fit.
    """
    with tf.variable_scope(name, "pearson_r", (predictions, labels, weights)):
        predictions, labels, weights = fitted(predictions, labels, weights)
        both = streaming_covariance(predictions, labels, weights, name="covariance")
        own = [
            streaming_covariance(x, x, weights, name=f"variance_{what}")
            for x, what in ((predictions, "predictions"), (labels, "labels"))
        ]
        value, update_op = (
            tf.truediv(both[i], tf.multiply(tf.sqrt(own[0][i]), tf.sqrt(own[1][i])), name=what)
            for i, what in enumerate(("pearson_r", "update_op"))
        )
        return collected(value, update_op, metrics_collections, updates_collections)
