"""Metrics of ``tf.contrib.metrics`` at chosen points of a curve, and of agreement."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import headrace as tf
from headrace.metrics.counts import counts_at_thresholds
from headrace.metrics.variables import Metric, collected, fitted, metric_variable

_TINY = 1e-7


def _at_thresholds(
    labels: Any,
    predictions: Any,
    weights: Any,
    num_thresholds: int,
    best: Callable[[dict[str, Any], str], Any],
) -> tuple[Any, Any]:
    """``best`` of the counts so far, and of those with this batch."""
    inner = [(i + 1) * 1.0 / (num_thresholds - 1) for i in range(num_thresholds - 2)]
    values, updates = counts_at_thresholds(
        labels, predictions, [-_TINY, *inner, 1.0 + _TINY], weights, ("tp", "fn", "tn", "fp")
    )
    return best(values, "value"), best(updates, "update_op")


def f1_score(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    num_thresholds: int = 200,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The best F1 score, 2 precision recall / (precision + recall), over all thresholds: a scalar.

    Van Rijsbergen, "Information retrieval" (1979), chapter 7.

    Arguments and shapes are those of ``tf.metrics.sensitivity_at_specificity``.

    Raises:
        ValueError: if the shapes do not fit.
        InvalidArgumentError: if a prediction is not in [0, 1].
    """

    def best(counts: dict[str, Any], name: str) -> Any:
        tp = tf.identity(counts["tp"])
        precision = tf.div(tp, _TINY + tp + counts["fp"], name=f"precision_{name}")
        recall = tf.div(tp, _TINY + tp + counts["fn"], name=f"recall_{name}")
        return tf.reduce_max(2.0 * precision * recall / (precision + recall + _TINY))

    with tf.variable_scope(name, "f1", (labels, predictions, weights)):
        both = _at_thresholds(labels, predictions, weights, num_thresholds, best)
        return collected(*both, metrics_collections, updates_collections)


def recall_at_precision(
    labels: Any,
    predictions: Any,
    precision: float,
    weights: Any = None,
    num_thresholds: int = 200,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
    strict_mode: bool = False,
) -> Metric:
    """The recall at the threshold whose precision comes closest to ``precision``.

    Args:
        strict_mode: only thresholds with at least this precision count; without any the recall
            is 0.
        (others): as for ``tf.metrics.sensitivity_at_specificity``.

    Raises:
        ValueError: if the shapes do not fit or ``precision`` is not in [0, 1].
    """
    if not 0 <= precision <= 1:
        raise ValueError(f"`precision` must be in the range [0, 1]; it is {precision}.")

    def best(counts: dict[str, Any], name: str) -> Any:
        tp = tf.identity(counts["tp"])
        precisions = tf.div(tp, tp + counts["fp"] + _TINY)
        recalls = tf.div(tp, tp + counts["fn"] + _TINY)
        excess = precisions - precision
        if not strict_mode:
            return tf.gather(recalls, tf.argmin(tf.abs(excess), 0), name=name)
        # The smallest excess wins, and what falls short is negative.
        chosen = tf.argmax(tf.div(1.0, excess + _TINY), 0)
        good_enough = tf.gather(precisions, chosen) >= precision
        return tf.where(good_enough, tf.gather(recalls, chosen), tf.constant(0.0), name=name)

    with tf.variable_scope(name, "recall_at_precision", (predictions, labels, weights)):
        both = _at_thresholds(labels, predictions, weights, num_thresholds, best)
        return collected(*both, metrics_collections, updates_collections)


def precision_at_recall(
    labels: Any,
    predictions: Any,
    target_recall: float,
    weights: Any = None,
    num_thresholds: int = 200,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The precision at the highest threshold whose recall is at least ``target_recall``.

    Arguments as for ``tf.metrics.sensitivity_at_specificity``.

    Raises:
        ValueError: if the shapes do not fit or ``target_recall`` is not in [0, 1].
    """
    if not 0 <= target_recall <= 1:
        raise ValueError(f"`target_recall` must be in the range [0, 1]; it is {target_recall}.")

    def best(counts: dict[str, Any], name: str) -> Any:
        tp, fp = tf.identity(counts["tp"]), tf.identity(counts["fp"])
        recalls = tf.div(tp, tp + counts["fn"] + _TINY)
        last = tf.reduce_sum(tf.cast(recalls >= target_recall, tf.int32)) - 1
        last = tf.maximum(last, 0)
        found = tf.gather(tp, last) + _TINY
        return tf.div(found, found + tf.gather(fp, last), name)

    with tf.variable_scope(name, "precision_at_recall", (predictions, labels, weights)):
        both = _at_thresholds(labels, predictions, weights, num_thresholds, best)
        return collected(*both, metrics_collections, updates_collections)


class PrecisionRecallData(NamedTuple):
    """Counts and rates at each threshold, 1-D tensors."""

    tp: Any
    fp: Any
    tn: Any
    fn: Any
    precision: Any
    recall: Any
    thresholds: Any


def precision_recall_at_equal_thresholds(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    num_thresholds: int | None = None,
    use_locking: bool | None = None,
    name: str | None = None,
) -> tuple[PrecisionRecallData, Any]:
    """Counts, precision and recall at thresholds at equal distances, in one pass over the batch.

    Args:
        labels: booleans; ``predictions``: of their shape, in [0, 1].
        weights: None, or a tensor that broadcasts to the labels.
        num_thresholds: how many thresholds from 0 to 1, by default 201.
        use_locking: accepted for programs that say it; updates are always exact.
        name: of the variable scope, by default "precision_recall_at_equal_thresholds".

    Returns:
        The data, and an operation that adds a batch.

    Raises:
        ValueError, TypeError: if the shapes do not fit, or labels are no booleans.
        InvalidArgumentError: when run, if a prediction is not in [0, 1].
    """
    count = 201 if num_thresholds is None else num_thresholds
    labels, predictions = tf.convert_to_tensor(labels), tf.convert_to_tensor(predictions)
    tf.assert_type(labels, tf.bool)
    values = (labels, predictions, weights)
    with tf.variable_scope(name, "precision_recall_at_equal_thresholds", values):
        message = "predictions must be in [0, 1]"
        bounds = [tf.cast(bound, predictions.dtype) for bound in (0.0, 1.0)]
        checks = [
            tf.assert_greater_equal(predictions, bounds[0], message=message),
            tf.assert_less_equal(predictions, bounds[1], message=message),
        ]
        with tf.control_dependencies(checks):
            predictions, labels, weights = fitted(
                predictions, labels, 1.0 if weights is None else weights
            )
        positive = tf.cast(labels, tf.float64)
        weights = tf.cast(weights, tf.float64)
        buckets = tf.cast(tf.floor(tf.reshape(predictions, [-1]) * (count - 1)), tf.int32)
        with tf.name_scope("variables"):
            held = [
                metric_variable([count], tf.float64, name=what)
                for what in ("tp_buckets", "fp_buckets")
            ]
        with tf.name_scope("update_op"):
            parts = (positive * weights, (1.0 - positive) * weights)
            updates = [
                tf.scatter_add(v, buckets, tf.reshape(part, [-1]))
                for v, part in zip(held, parts, strict=True)
            ]
        tp, fp = (
            tf.cumsum(tf.identity(v), reverse=True, name=what)
            for v, what in zip(held, ("tp", "fp"), strict=True)
        )
        tn, fn = fp[0] - fp, tp[0] - tp
        tiny = tf.constant(_TINY, tf.float64)
        found = (
            tp, fp, tn, fn, tp / tf.maximum(tiny, tp + fp), tp / tf.maximum(tiny, tp + fn),
            tf.lin_space(0.0, 1.0, count),
        )  # fmt: skip
        data = PrecisionRecallData(*(tf.cast(f, predictions.dtype) for f in found))
        return data, tf.group(*updates)


def cohen_kappa(
    labels: Any,
    predictions_idx: Any,
    num_classes: int,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """Cohen's kappa: how much two raters agree beyond chance (Cohen, "A coefficient of agreement
    for nominal scales", 1960).

    Args:
        labels: integers ``[n]`` or ``[n, 1]`` in ``[0, num_classes)``; ``predictions_idx``:
            integers ``[n]``.
        weights: None, or a tensor of that shape.
        metrics_collections, updates_collections: names of collections for the two results.
        name: of the variable scope, by default "cohen_kappa".

    Raises:
        ValueError: if the shapes do not fit or there are fewer than 2 classes.
    """
    if num_classes < 2:
        raise ValueError(f"`num_classes` must be >= 2. Found: {num_classes}")
    labels = tf.convert_to_tensor(labels)
    with tf.variable_scope(name, "cohen_kappa", (labels, predictions_idx, weights)):
        labels.shape.with_rank_at_most(2)
        if labels.dims is not None and len(labels.dims) == 2:
            labels = tf.squeeze(labels, axis=[-1])
        predictions_idx, labels, weights = fitted(predictions_idx, labels, weights)
        kind = tf.int64 if weights is None or weights.dtype.is_integer else tf.float32
        held = [metric_variable([num_classes], kind, name=n) for n in ("po", "pe_row", "pe_col")]
        table = tf.confusion_matrix(
            labels, predictions_idx, num_classes, kind, "counts_in_table", weights
        )
        batch = (tf.diag_part(table), tf.reduce_sum(table, 0), tf.reduce_sum(table, 1))
        updates = [tf.assign_add(v, part) for v, part in zip(held, batch, strict=True)]

        def kappa(counts: list[Any], name: str) -> Any:
            agreed, rows, columns = counts
            total = tf.cast(tf.reduce_sum(rows), tf.float64)
            by_chance = tf.reduce_sum(
                tf.div_no_nan(tf.cast(tf.multiply(rows, columns), tf.float64), total)
            )
            agreed = tf.cast(tf.reduce_sum(agreed), tf.float64)
            return tf.div_no_nan(agreed - by_chance, total - by_chance, name=name)

        value = kappa([tf.identity(v) for v in held], "value")
        update_op = kappa(updates, "update_op")
        return collected(value, update_op, metrics_collections, updates_collections)
