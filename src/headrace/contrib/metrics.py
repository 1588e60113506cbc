"""``tf.contrib.metrics``: the metrics of ``tf.metrics`` under older names, and a few more.

Here predictions come before labels. Each metric is ``(value, update_op)`` as in ``tf.metrics``.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import headrace as tf
from headrace.metrics.correlation import streaming_covariance, streaming_pearson_correlation
from headrace.metrics.counts import counts_at_thresholds, share_at_thresholds, share_metric
from headrace.metrics.operating_points import (
    cohen_kappa,
    f1_score,
    precision_at_recall,
    precision_recall_at_equal_thresholds,
    recall_at_precision,
)
from headrace.metrics.ranking import (
    average_precision_at_k,
    precision_at_k,
    precision_at_top_k,
    recall_at_k,
    recall_at_top_k,
    streaming_average_precision,
)
from headrace.metrics.variables import Metric, collected, fitted, metric_variable
from headrace.ops.core.old_arguments import note
from headrace.ops.nn import weights as fitting

__all__ = [
    "accuracy",
    "aggregate_metric_map",
    "aggregate_metrics",
    "cohen_kappa",
    "confusion_matrix",
    "count",
    "f1_score",
    "precision_at_recall",
    "precision_recall_at_equal_thresholds",
    "recall_at_precision",
    "set_difference",
    "set_intersection",
    "set_size",
    "set_union",
    "sparse_recall_at_top_k",
    "streaming_accuracy",
    "streaming_auc",
    "streaming_covariance",
    "streaming_curve_points",
    "streaming_false_negative_rate",
    "streaming_false_negative_rate_at_thresholds",
    "streaming_false_negatives",
    "streaming_false_negatives_at_thresholds",
    "streaming_false_positive_rate",
    "streaming_false_positive_rate_at_thresholds",
    "streaming_false_positives",
    "streaming_false_positives_at_thresholds",
    "streaming_mean",
    "streaming_mean_absolute_error",
    "streaming_mean_cosine_distance",
    "streaming_mean_iou",
    "streaming_mean_relative_error",
    "streaming_mean_squared_error",
    "streaming_mean_tensor",
    "streaming_pearson_correlation",
    "streaming_percentage_less",
    "streaming_precision",
    "streaming_precision_at_thresholds",
    "streaming_recall",
    "streaming_recall_at_k",
    "streaming_recall_at_thresholds",
    "streaming_root_mean_squared_error",
    "streaming_sensitivity_at_specificity",
    "streaming_sparse_average_precision_at_k",
    "streaming_sparse_average_precision_at_top_k",
    "streaming_sparse_precision_at_k",
    "streaming_sparse_precision_at_top_k",
    "streaming_sparse_recall_at_k",
    "streaming_specificity_at_sensitivity",
    "streaming_true_negatives",
    "streaming_true_negatives_at_thresholds",
    "streaming_true_positives",
    "streaming_true_positives_at_thresholds",
]

set_difference = tf.sets.set_difference
set_intersection = tf.sets.set_intersection
set_size = tf.sets.set_size
set_union = tf.sets.set_union

confusion_matrix = tf.confusion_matrix
#: ``tf.contrib.metrics.python.ops``, which programs reach into.
python = SimpleNamespace(ops=SimpleNamespace(metric_ops=sys.modules[__name__], set_ops=tf.sets))

# -- tf.metrics with predictions first ----------------------------------------------------------


def _named(function: Callable[..., Any], name: str, doc: str) -> Callable[..., Any]:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


def _streaming(
    metric: Callable[..., Metric], suffix: str = "", deprecated: bool = False
) -> Callable[..., Metric]:
    """A metric as ``streaming_<suffix>``: its arguments, but predictions before labels.

    Args:
        suffix: by default the name of the metric.
        deprecated: whether the log says that the metric of `tf.metrics` takes its place.
    """
    own = list(inspect.signature(metric).parameters.values())
    if own[0].name == "labels":
        own[:2] = own[1], own[0]
    signature = inspect.Signature(own, return_annotation=Metric)
    name = f"streaming_{suffix or metric.__name__}"

    def function(*args: Any, **kwargs: Any) -> Metric:
        if deprecated:
            note(f"tf.contrib.metrics.{name}", f"tf.metrics.{metric.__name__}")
        try:
            given = signature.bind(*args, **kwargs).arguments
        except TypeError as error:
            raise TypeError(f"{name}: {error}") from None
        return metric(**given)

    function.__signature__ = signature  # type: ignore[attr-defined]
    order = ", with predictions first" if own[1].name == "labels" else ""
    doc = f"""``tf.metrics.{metric.__name__}``{order}.

    Raises:
        ValueError: if the shapes do not fit.
    """
    return _named(function, name, doc)


streaming_true_positives = _streaming(tf.metrics.true_positives, deprecated=True)
streaming_true_negatives = _streaming(tf.metrics.true_negatives, deprecated=True)
streaming_false_positives = _streaming(tf.metrics.false_positives, deprecated=True)
streaming_false_negatives = _streaming(tf.metrics.false_negatives, deprecated=True)
streaming_mean = _streaming(tf.metrics.mean, deprecated=True)
streaming_mean_tensor = _streaming(tf.metrics.mean_tensor, deprecated=True)
streaming_accuracy = _streaming(tf.metrics.accuracy, deprecated=True)
streaming_precision = _streaming(tf.metrics.precision, deprecated=True)
streaming_recall = _streaming(tf.metrics.recall, deprecated=True)
streaming_auc = _streaming(tf.metrics.auc, deprecated=True)
streaming_precision_at_thresholds = _streaming(tf.metrics.precision_at_thresholds, deprecated=True)
streaming_recall_at_thresholds = _streaming(tf.metrics.recall_at_thresholds, deprecated=True)
streaming_mean_absolute_error = _streaming(tf.metrics.mean_absolute_error, deprecated=True)
streaming_mean_squared_error = _streaming(tf.metrics.mean_squared_error, deprecated=True)
streaming_root_mean_squared_error = _streaming(tf.metrics.root_mean_squared_error, deprecated=True)
streaming_mean_relative_error = _streaming(tf.metrics.mean_relative_error)
streaming_mean_cosine_distance = _streaming(tf.metrics.mean_cosine_distance)
streaming_mean_iou = _streaming(tf.metrics.mean_iou)
streaming_percentage_less = _streaming(tf.metrics.percentage_below, "percentage_less")
streaming_sensitivity_at_specificity = _streaming(tf.metrics.sensitivity_at_specificity)
streaming_specificity_at_sensitivity = _streaming(tf.metrics.specificity_at_sensitivity)
streaming_sparse_recall_at_k = _streaming(recall_at_k, "sparse_recall_at_k")
streaming_sparse_precision_at_k = _streaming(precision_at_k, "sparse_precision_at_k")
streaming_sparse_average_precision_at_k = _streaming(
    average_precision_at_k, "sparse_average_precision_at_k"
)


# -- counts -------------------------------------------------------------------------------------


def _counter_at_thresholds(kind: str, what: str) -> Callable[..., Metric]:
    def function(predictions: Any, labels: Any, thresholds: Any, weights: Any = None) -> Metric:
        values, updates = counts_at_thresholds(labels, predictions, thresholds, weights, [kind])
        return values[kind], updates[kind]

    doc = f"""The (weighted) number of {what.replace("_", " ")} at each threshold.

    Returns:
        The variable that counts, and the op that adds a batch.

    Raises:
        ValueError: if the shapes do not fit.
        InvalidArgumentError: when run, if a prediction is not in [0, 1].
    """
    return _named(function, f"streaming_{what}_at_thresholds", doc)


streaming_true_positives_at_thresholds = _counter_at_thresholds("tp", "true_positives")
streaming_false_negatives_at_thresholds = _counter_at_thresholds("fn", "false_negatives")
streaming_true_negatives_at_thresholds = _counter_at_thresholds("tn", "true_negatives")
streaming_false_positives_at_thresholds = _counter_at_thresholds("fp", "false_positives")


def _rate(what: str, kind: str, rest: str) -> Callable[..., Metric]:
    """``kind / (kind + rest)``, and 0 where there is nothing."""

    def function(
        predictions: Any,
        labels: Any,
        weights: Any = None,
        metrics_collections: Any = None,
        updates_collections: Any = None,
        name: str | None = None,
    ) -> Metric:
        both = metrics_collections, updates_collections
        return share_metric(what, kind, rest, labels, predictions, weights, *both, name)

    doc = f"""The {what.replace("_", " ")}; what is not 0 is positive.

    Raises:
        ValueError: if the shapes do not fit.
    """
    return _named(function, f"streaming_{what}", doc)


streaming_false_positive_rate = _rate("false_positive_rate", "fp", "tn")
streaming_false_negative_rate = _rate("false_negative_rate", "fn", "tp")


def _rate_at_thresholds(what: str, kind: str, rest: str) -> Callable[..., Metric]:
    def function(
        predictions: Any,
        labels: Any,
        thresholds: Any,
        weights: Any = None,
        metrics_collections: Any = None,
        updates_collections: Any = None,
        name: str | None = None,
    ) -> Metric:
        both = metrics_collections, updates_collections
        given = labels, predictions, thresholds, weights
        return share_at_thresholds(what, f"{kind}r", kind, rest, *given, *both, name)

    doc = f"""The {what.replace("_", " ")} at each threshold.

    Raises:
        ValueError: if the shapes do not fit.
        InvalidArgumentError: when run, if a prediction is not in [0, 1].
    """
    return _named(function, f"streaming_{what}_at_thresholds", doc)


streaming_false_positive_rate_at_thresholds = _rate_at_thresholds("false_positive_rate", "fp", "tn")
streaming_false_negative_rate_at_thresholds = _rate_at_thresholds("false_negative_rate", "fn", "tp")


def streaming_curve_points(
    labels: Any = None,
    predictions: Any = None,
    weights: Any = None,
    num_thresholds: int = 200,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    curve: str = "ROC",
    name: str | None = None,
) -> Metric:
    """The points of a curve, float32 ``[num_thresholds, 2]``; arguments as for ``tf.metrics.auc``.

    Raises:
        ValueError: if the shapes do not fit, or for another curve.
    """
    if curve not in ("ROC", "PR"):
        raise ValueError(f"curve must be either ROC or PR, {curve} unknown")
    with tf.variable_scope(name, "curve_points", (labels, predictions, weights)):
        inner = [(i + 1) * 1.0 / (num_thresholds - 1) for i in range(num_thresholds - 2)]
        values, updates = counts_at_thresholds(
            labels, predictions, [-1e-7, *inner, 1.0 + 1e-7], weights
        )
        tiny = 1.0e-6
        tp, fp = values["tp"], values["fp"]
        recall = tf.div(tp + tiny, tp + values["fn"] + tiny)
        if curve == "ROC":
            points = (tf.div(fp, fp + values["tn"] + tiny), recall)
        else:
            points = (recall, tf.div(tp + tiny, tp + fp + tiny))
        value = tf.stack(points, axis=1)
        update_op = tf.group(*updates.values())
        return collected(value, update_op, metrics_collections, updates_collections)


def count(
    values: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """How many values there have been, or the sum of their weights: a float32 scalar.

    Raises:
        ValueError: if ``weights`` do not fit the shape of the values.
    """
    with tf.variable_scope(name, "count", (values, weights)):
        total = metric_variable([], tf.float32, name="count")
        values = tf.convert_to_tensor(values)
        if weights is None:
            batch = tf.cast(tf.size(values), tf.float32)
        else:
            values, _, weights = fitted(tf.cast(values, tf.float32), None, weights)
            weights = fitting.broadcast_weights(tf.cast(weights, tf.float32), values)
            batch = tf.reduce_sum(weights)
        with tf.control_dependencies([values]):
            update_op = tf.assign_add(total, batch)
        return collected(tf.identity(total), update_op, metrics_collections, updates_collections)


# -- the k best predictions ---------------------------------------------------------------------


def streaming_recall_at_k(
    predictions: Any,
    labels: Any,
    k: int,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """How often the label (one for each example) is among the ``k`` best classes, a float32 scalar.

    Args:
        predictions: float32 ``[batch, classes]``.
        labels: integers ``[batch]``.

    Raises:
        TypeError: if labels are no int32 or int64, or ``k`` is no integer.
        ValueError: if the shapes do not fit.
    """
    found = tf.cast(tf.nn.in_top_k(predictions, labels, k), tf.float32)
    both = metrics_collections, updates_collections
    return tf.metrics.mean(found, weights, *both, name or f"recall_at_{int(k)}")


def streaming_sparse_precision_at_top_k(
    top_k_predictions: Any,
    labels: Any,
    class_id: int | None = None,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """``tf.metrics.precision_at_top_k``, with predictions first: a float64 scalar.

    Args:
        top_k_predictions: int64 ``[..., k]``, the best classes.
        labels: int64 ``[..., number of labels]``, or ``[...]``, or sparse.

    Raises:
        ValueError: if the shapes do not fit.
    """
    both = metrics_collections, updates_collections
    return precision_at_top_k(labels, top_k_predictions, None, class_id, weights, *both, name)


def sparse_recall_at_top_k(
    labels: Any,
    top_k_predictions: Any,
    class_id: int | None = None,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """``tf.metrics.recall_at_top_k``, a float64 scalar; see `streaming_sparse_precision_at_top_k`.

    Raises:
        ValueError: if the shapes do not fit.
    """
    both = metrics_collections, updates_collections
    return recall_at_top_k(labels, top_k_predictions, None, class_id, weights, *both, name)


def streaming_sparse_average_precision_at_top_k(
    top_k_predictions: Any,
    labels: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """``tf.metrics.average_precision_at_k`` of classes that are ranked already, ``[..., k]``.

    Raises:
        ValueError: if the shapes do not fit, or ``k`` is not known.
    """
    both = metrics_collections, updates_collections
    return streaming_average_precision(labels, top_k_predictions, weights, *both, name)


# -- of one batch, of several metrics -----------------------------------------------------------


def accuracy(predictions: Any, labels: Any, weights: Any = None, name: str | None = None) -> Any:
    """How often ``predictions`` equal ``labels``, in this batch only: a float32 scalar.

    Raises:
        TypeError: if ``weights`` are not float32.
        ValueError: if the shapes do not fit, or the types differ or are no booleans, integers or
            strings.
    """
    predictions, labels = tf.convert_to_tensor(predictions), tf.convert_to_tensor(labels)
    if not (labels.dtype.is_integer or labels.dtype in (tf.bool, tf.string)):
        raise ValueError(f"Labels should have bool, integer, or string dtype, not {labels.dtype!r}")
    if not labels.dtype.is_compatible_with(predictions.dtype):
        raise ValueError(
            "Dtypes of predictions and labels should match. Given: predictions "
            f"({predictions.dtype!r}) and labels ({labels.dtype!r})"
        )
    with tf.name_scope(name, "accuracy"):
        is_correct = tf.cast(tf.equal(predictions, labels), tf.float32)
        if weights is None:
            return tf.reduce_mean(is_correct)
        total = tf.reduce_sum(tf.multiply(weights, tf.ones_like(is_correct)))
        return tf.div(tf.reduce_sum(tf.multiply(is_correct, weights)), total)


def _check_pair(pair: Any) -> None:
    """Raises TypeError unless it is what a metric gives."""
    if not isinstance(pair, (tuple, list)) or len(pair) != 2:
        raise TypeError(f"A metric is a pair (value, update_op), got {pair!r:.100}.")


def aggregate_metrics(*value_update_tuples: Metric) -> tuple[list[Any], list[Any]]:
    """The values and the updates of several metrics, in two lists; all keep their shapes.

    Raises:
        TypeError: if one is no pair of a value and an update.
        ValueError: without any metric.
    """
    if not value_update_tuples:
        raise ValueError("Expected at least one value_tensor/update_op pair")
    for pair in value_update_tuples:
        _check_pair(pair)
    values, updates = zip(*value_update_tuples, strict=True)
    return list(values), list(updates)


def aggregate_metric_map(
    names_to_tuples: Mapping[str, Metric],
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The values and the updates of several metrics, by name; all keep their shapes.

    Raises:
        TypeError: if it is no dictionary, or a metric no pair of a value and an update.
    """
    if not isinstance(names_to_tuples, Mapping):
        raise TypeError(f"Expected a dictionary of metrics by name, got {names_to_tuples!r:.100}.")
    for pair in names_to_tuples.values():
        _check_pair(pair)
    values = {name: pair[0] for name, pair in names_to_tuples.items()}
    return values, {name: pair[1] for name, pair in names_to_tuples.items()}
