"""Metrics over the curve that a moving threshold gives."""

from __future__ import annotations

from typing import Any

import headrace as tf
from headrace.metrics.counts import counts_at_thresholds
from headrace.metrics.variables import Metric, collected, ratio

_TINY = 1e-7
_METHODS = ("trapezoidal", "careful_interpolation", "minoring", "majoring")


def _even_thresholds(count: int) -> list[float]:
    """Thresholds at equal distances strictly between 0 and 1, two fewer than ``count``."""
    return [(i + 1) * 1.0 / (count - 1) for i in range(count - 2)]


def auc(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    num_thresholds: int = 200,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    curve: str = "ROC",
    name: str | None = None,
    summation_method: str = "trapezoidal",
    thresholds: Any = None,
) -> Metric:
    """The area under a curve, approximated from counts at a number of thresholds.

    Args:
        labels: what is not 0 is positive; ``predictions``: of that shape, in [0, 1].
        weights: None, or a tensor that broadcasts to the labels.
        num_thresholds: how many thresholds, at equal distances; more give a better value.
        metrics_collections, updates_collections: names of collections for the two results.
        curve: "ROC" (true over false positive rate) or "PR" (precision over recall).
        name: of the variable scope, by default "auc".
        summation_method: "trapezoidal"; "careful_interpolation" (for "PR": between thresholds,
            counts are interpolated; Davis and Goadrich, "The relationship between
            precision-recall and ROC curves" (2006), section 4); "minoring" and "majoring" (a lower
            and an upper bound).
        thresholds: a list of thresholds in [0, 1] to use instead.

    Returns:
        The area (float32 scalar), and the op that counts a batch and gives the new area.

    Raises:
        ValueError: if the shapes do not fit, or for another curve or method.
        InvalidArgumentError: when run, if a prediction is not in [0, 1].
    """
    if curve not in ("ROC", "PR"):
        raise ValueError(f"curve must be either ROC or PR, {curve} unknown")
    if summation_method not in _METHODS:
        raise ValueError(
            f"Invalid summation_method: {summation_method}; it must be one of "
            f"{', '.join(_METHODS)}."
        )
    if curve == "PR" and summation_method == "trapezoidal":
        tf.logging.warning(
            "Trapezoidal rule is known to produce incorrect PR-AUCs; please switch to "
            '"careful_interpolation" instead.'
        )
    with tf.variable_scope(name, "auc", (labels, predictions, weights)):
        inner = _even_thresholds(num_thresholds) if thresholds is None else sorted(thresholds)
        values, updates = counts_at_thresholds(
            labels, predictions, [-_TINY, *inner, 1.0 + _TINY], weights
        )
        if curve == "PR" and summation_method == "careful_interpolation":
            area = _interpolated_precision
        else:
            area = _roc if curve == "ROC" else _precision_recall
        value = area(values, summation_method, "value")
        update_op = area(updates, summation_method, "update_op")
        return collected(value, update_op, metrics_collections, updates_collections)


def _roc(counts: dict[str, Any], method: str, name: str) -> Any:
    epsilon = 1.0e-6
    tp, fp = counts["tp"], counts["fp"]
    recall = tf.div(tp + epsilon, tp + counts["fn"] + epsilon)
    return _area(tf.div(fp, fp + counts["tn"] + epsilon), recall, method, name)


def _precision_recall(counts: dict[str, Any], method: str, name: str) -> Any:
    epsilon = 1.0e-6
    tp = counts["tp"]
    recall = tf.div(tp + epsilon, tp + counts["fn"] + epsilon)
    precision = tf.div(tp + epsilon, tp + counts["fp"] + epsilon)
    return _area(recall, precision, method, name)


def _area(x: Any, y: Any, method: str, name: str) -> Any:
    """The area under y over x, both falling with the index."""
    left, right = y[:-1], y[1:]
    if method == "minoring":
        height = tf.minimum(left, right)
    elif method == "majoring":
        height = tf.maximum(left, right)
    else:
        height = (left + right) / 2.0
    return tf.reduce_sum(tf.multiply(x[:-1] - x[1:], height), name=name)


def _interpolated_precision(counts: dict[str, Any], method: str, name: str) -> Any:
    """The area under precision over recall when true positives are linear in the positives."""
    tp, fn = tf.identity(counts["tp"]), counts["fn"]
    positives = tp + counts["fp"]
    gained = tp[:-1] - tp[1:]
    slope = ratio(gained, positives[:-1] - positives[1:], name="prec_slope")
    intercept = tp[1:] - tf.multiply(slope, positives[1:])
    growth = tf.where(
        tf.logical_and(positives[:-1] > 0, positives[1:] > 0),
        ratio(positives[:-1], positives[1:], name="recall_relative_ratio"),
        tf.ones_like(positives[1:]),
    )
    steps = ratio(
        slope * (gained + intercept * tf.log(growth)), tp[1:] + fn[1:], name="pr_auc_increment"
    )
    return tf.reduce_sum(steps, name="interpolate_pr_auc")


def sensitivity_at_specificity(
    labels: Any,
    predictions: Any,
    specificity: float,
    weights: Any = None,
    num_thresholds: int = 200,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The sensitivity (recall) at the threshold that comes closest to a specificity.

    Sensitivity is the share of positives that are found, specificity the share of negatives that
    are left alone.

    Args:
        labels: what is not 0 is positive; ``predictions``: of that shape, in [0, 1].
        specificity: a number in [0, 1].
        weights: None, or a tensor that broadcasts to the labels.
        num_thresholds: how many thresholds to try.
        metrics_collections, updates_collections: names of collections for the two results.
        name: of the variable scope, by default "sensitivity_at_specificity".

    Raises:
        ValueError: if the shapes do not fit or ``specificity`` is out of range.
        InvalidArgumentError: when run, if a prediction is not in [0, 1].
    """
    if not 0 <= specificity <= 1:
        raise ValueError(f"`specificity` must be in the range [0, 1]; it is {specificity}.")

    def at_best(counts: dict[str, Any], name: str) -> Any:
        tp, fn = tf.identity(counts["tp"]), tf.identity(counts["fn"])
        found = tf.div(counts["tn"], counts["tn"] + counts["fp"] + _TINY)
        best = tf.cast(tf.argmin(tf.abs(found - specificity), 0), tf.int32)
        best_tp = tf.gather(tp, best)
        return tf.div(best_tp, best_tp + tf.gather(fn, best) + _TINY, name)

    with tf.variable_scope(name, "sensitivity_at_specificity", (predictions, labels, weights)):
        thresholds = [-_TINY, *_even_thresholds(num_thresholds), 1.0 + _TINY]
        values, updates = counts_at_thresholds(labels, predictions, thresholds, weights)
        value, update_op = at_best(values, "value"), at_best(updates, "update_op")
        return collected(value, update_op, metrics_collections, updates_collections)


def specificity_at_sensitivity(
    labels: Any,
    predictions: Any,
    sensitivity: float,
    weights: Any = None,
    num_thresholds: int = 200,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The specificity at the threshold that comes closest to a sensitivity, a scalar.

    Of several such thresholds the highest counts. Arguments and shapes are those of
    ``sensitivity_at_specificity``.

    Raises:
        ValueError: if ``sensitivity`` is not in [0, 1], or the shapes do not fit.
        InvalidArgumentError: if a prediction is not in [0, 1].
    """
    if not 0 <= sensitivity <= 1:
        raise ValueError(f"`sensitivity` must be in the range [0, 1]; it is {sensitivity}.")

    def at_best(counts: dict[str, Any], name: str) -> Any:
        tn, fp = tf.identity(counts["tn"]), tf.identity(counts["fp"])
        found = tf.div(counts["tp"], counts["tp"] + counts["fn"] + _TINY)
        misses = tf.abs(found - sensitivity)
        is_best = tf.cast(tf.equal(misses, tf.reduce_min(misses)), tf.int64)
        last = tf.cast(tf.argmax(tf.cumsum(is_best), 0), tf.int32)
        last_tn = tf.gather(tn, last)
        return tf.div(last_tn, last_tn + tf.gather(fp, last) + _TINY, name)

    with tf.variable_scope(name, "specificity_at_sensitivity", (predictions, labels, weights)):
        # All is positive at the first threshold, and what is surely positive still at the last.
        thresholds = [-_TINY, *_even_thresholds(num_thresholds), 1.0 - _TINY]
        values, updates = counts_at_thresholds(labels, predictions, thresholds, weights)
        value, update_op = at_best(values, "value"), at_best(updates, "update_op")
        return collected(value, update_op, metrics_collections, updates_collections)
