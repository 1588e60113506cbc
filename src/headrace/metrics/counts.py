"""Metrics that count true and false positives and negatives, with and without thresholds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import headrace as tf
from headrace.metrics.variables import Metric, collected, fitted, metric_variable
from headrace.ops.nn import weights as fitting

_NAMES = {
    "tp": "true_positives",
    "fn": "false_negatives",
    "tn": "true_negatives",
    "fp": "false_positives",
}
#: What label and prediction are in each kind of count.
_TRUTH = {"tp": (True, True), "fn": (True, False), "tn": (False, False), "fp": (False, True)}


def _count(
    kind: str, labels: Any, predictions: Any, weights: Any, collections: Any, updates: Any
) -> Metric:
    """The (weighted) number of examples of one kind; labels and predictions count as booleans."""
    predictions, labels, weights = fitted(
        tf.cast(predictions, tf.bool), tf.cast(labels, tf.bool), weights
    )
    label, prediction = _TRUTH[kind]
    matches = tf.logical_and(tf.equal(labels, label), tf.equal(predictions, prediction))
    count = metric_variable([], tf.float32, name="count")
    values = tf.cast(matches, tf.float32)
    if weights is not None:
        with tf.control_dependencies([tf.assert_rank_in(weights, (0, tf.rank(values)))]):
            values = tf.multiply(values, tf.cast(weights, tf.float32))
    value = tf.identity(count)
    return collected(value, tf.assign_add(count, tf.reduce_sum(values)), collections, updates)


def _counter(kind: str) -> Callable[..., Metric]:
    what = _NAMES[kind]

    def metric(
        labels: Any,
        predictions: Any,
        weights: Any = None,
        metrics_collections: Any = None,
        updates_collections: Any = None,
        name: str | None = None,
    ) -> Metric:
        with tf.variable_scope(name, what, (predictions, labels, weights)):
            return _count(
                kind, labels, predictions, weights, metrics_collections, updates_collections
            )

    metric.__name__ = metric.__qualname__ = what
    metric.__doc__ = f"""The (weighted) number of {what.replace("_", " ")}.

    Args:
        labels, predictions: of one shape; what is not 0 is positive.
        weights: None, a scalar, or a tensor of that rank that broadcasts to it.
        metrics_collections, updates_collections: names of collections for the two results.
        name: of the variable scope, by default "{what}".

    Returns:
        The count (float32 scalar), and the op that adds a batch and gives the new count.

    Raises:
        ValueError: if the shapes do not fit.
    """
    return metric


true_positives = _counter("tp")
false_negatives = _counter("fn")
true_negatives = _counter("tn")
false_positives = _counter("fp")


# -- thresholds ---------------------------------------------------------------------------------


def counts_at_thresholds(
    labels: Any,
    predictions: Any,
    thresholds: Sequence[float],
    weights: Any = None,
    includes: Sequence[str] = ("tp", "fn", "tn", "fp"),
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Counts of several kinds ("tp", "fn", "tn", "fp") at each threshold.

    Args:
        labels: what is not 0 is positive; ``predictions``: of that shape, in [0, 1]; one above a
            threshold is positive there.

    Returns:
        By kind: the variables (float32 ``[number of thresholds]``), and the ops that add a batch
        and give the new counts.

    Raises:
        InvalidArgumentError: when run, if a prediction is not in [0, 1].
    """
    predictions = tf.convert_to_tensor(predictions)
    bounds = [tf.cast(bound, predictions.dtype) for bound in (0.0, 1.0)]
    message = "predictions must be in [0, 1]"
    in_range = [
        tf.assert_greater_equal(predictions, bounds[0], message=message),
        tf.assert_less_equal(predictions, bounds[1], message=message),
    ]
    with tf.control_dependencies(in_range):
        predictions, labels, weights = fitted(
            tf.cast(predictions, tf.float32), tf.cast(labels, tf.bool), weights
        )
    count = len(thresholds)
    limits = tf.constant([[t] for t in thresholds], tf.float32)
    is_predicted = tf.greater(tf.reshape(predictions, [1, -1]), limits)
    is_labelled = tf.tile(tf.reshape(labels, [1, -1]), [count, 1])
    if weights is not None:
        weights = fitting.broadcast_weights(tf.cast(weights, tf.float32), predictions)
        weights = tf.reshape(weights, [1, -1])
    values, updates = {}, {}
    for kind in ("tp", "fn", "tn", "fp"):
        if kind not in includes:
            continue
        label, prediction = _TRUTH[kind]
        matches = tf.logical_and(
            is_labelled if label else tf.logical_not(is_labelled),
            is_predicted if prediction else tf.logical_not(is_predicted),
        )
        matches = tf.cast(matches, tf.float32)
        if weights is not None:
            matches *= weights
        values[kind] = metric_variable([count], tf.float32, name=_NAMES[kind])
        updates[kind] = tf.assign_add(values[kind], tf.reduce_sum(matches, 1))
    return values, updates


def _threshold_counter(kind: str) -> Callable[..., Metric]:
    what = _NAMES[kind]

    def metric(
        labels: Any,
        predictions: Any,
        thresholds: Any,
        weights: Any = None,
        metrics_collections: Any = None,
        updates_collections: Any = None,
        name: str | None = None,
    ) -> Metric:
        with tf.variable_scope(name, what, (predictions, labels, weights)):
            values, updates = counts_at_thresholds(labels, predictions, thresholds, weights, [kind])
            value = tf.identity(values[kind])
            return collected(value, updates[kind], metrics_collections, updates_collections)

    metric.__name__ = metric.__qualname__ = f"{what}_at_thresholds"
    metric.__doc__ = f"""The (weighted) number of {what.replace("_", " ")} at each threshold.

    Args:
        labels: what is not 0 is positive; ``predictions``: of that shape, in [0, 1].
        thresholds: a list of numbers in [0, 1]; predictions above are positive.
        weights: None, or a tensor that broadcasts to the labels.
        metrics_collections, updates_collections: names of collections for the two results.
        name: of the variable scope, by default "{what}".

    Returns:
        The counts (float32, one for each threshold), and the op that adds a batch.

    Raises:
        ValueError: if the shapes do not fit.
        InvalidArgumentError: when run, if a prediction is not in [0, 1].
    """
    return metric


true_positives_at_thresholds = _threshold_counter("tp")
false_negatives_at_thresholds = _threshold_counter("fn")
true_negatives_at_thresholds = _threshold_counter("tn")
false_positives_at_thresholds = _threshold_counter("fp")


# -- precision, recall --------------------------------------------------------------------------


def _share(part: Any, rest: Any, name: str) -> Any:
    """``part / (part + rest)``, and 0 where there is nothing."""
    whole = part + rest
    return tf.where(tf.greater(whole, 0), tf.div(part, whole), tf.zeros_like(whole), name=name)


_COUNTERS = {
    "tp": true_positives,
    "fn": false_negatives,
    "tn": true_negatives,
    "fp": false_positives,
}


def share_metric(
    what: str, kind: str, rest_kind: str, labels: Any, predictions: Any, weights: Any,
    collections: Any, updates: Any, name: str | None,
) -> Metric:  # fmt: skip
    """The count of one kind over the counts of two, a scalar; 0 where there is nothing.

    ``what``: the name of the variable scope; ``kind``: "tp", "fn", "tn" or "fp".

    Raises:
        ValueError: if the shapes do not fit, or labels are strings.
    """
    with tf.variable_scope(name, what, (predictions, labels, weights)):
        predictions, labels, weights = fitted(
            tf.cast(predictions, tf.bool), tf.cast(labels, tf.bool), weights
        )
        part, part_update = _COUNTERS[kind](labels, predictions, weights)
        rest, rest_update = _COUNTERS[rest_kind](labels, predictions, weights)
        value = _share(part, rest, "value")
        update_op = _share(part_update, rest_update, "update_op")
        return collected(value, update_op, collections, updates)


def precision(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """True positives / (true positives + false positives), 0 when nothing was predicted.

    Manning, Raghavan and Schuetze, "Introduction to information retrieval" (2008), section 8.3.

    Args:
        labels, predictions: of one shape; what is not 0 is positive.
        weights: None, a scalar, or a tensor of that rank that broadcasts to it.
        metrics_collections, updates_collections: names of collections for the two results.
        name: of the variable scope, by default "precision".

    Returns:
        The precision (float32 scalar), and the op that counts a batch and gives the new one.

    Raises:
        ValueError: if the shapes do not fit.
    """
    both = metrics_collections, updates_collections
    return share_metric("precision", "tp", "fp", labels, predictions, weights, *both, name)


def recall(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """True positives / (true positives + false negatives), 0 when no label is positive.

    Manning, Raghavan and Schuetze, "Introduction to information retrieval" (2008), section 8.3.

    Arguments, shapes and results are those of ``precision``.

    Raises:
        ValueError: if the shapes do not fit, or labels are strings.

    >>> with tf.Session() as session:
    ...     share, update = recall([1, 1, 0, 1, 1], [1, 0, 0, 0, 0])
    ...     session.run(tf.local_variables_initializer())
    ...     float(session.run(update))
    0.25
    """
    both = metrics_collections, updates_collections
    return share_metric("recall", "tp", "fn", labels, predictions, weights, *both, name)


def share_at_thresholds(
    what: str, result: str, kind: str, rest_kind: str, labels: Any, predictions: Any,
    thresholds: Any, weights: Any, collections: Any, updates: Any, name: str | None,
) -> Metric:  # fmt: skip
    """The count of one kind over the counts of two, at each threshold: ``[number of thresholds]``.

    ``result``: how the names of value and update begin; the others as for `share_metric`.

    Raises:
        ValueError: if the shapes do not fit.
        InvalidArgumentError: if a prediction is not in [0, 1].
    """
    tiny = 1e-7  # against a division by 0
    with tf.variable_scope(name, f"{what}_at_thresholds", (predictions, labels, weights)):
        values, new = counts_at_thresholds(
            labels, predictions, thresholds, weights, [kind, rest_kind]
        )
        value, update_op = (
            tf.div(c[kind], tiny + c[kind] + c[rest_kind], name=f"{result}_{suffix}")
            for c, suffix in ((values, "value"), (new, "update_op"))
        )
        return collected(value, update_op, collections, updates)


def precision_at_thresholds(
    labels: Any,
    predictions: Any,
    thresholds: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The precision at each threshold.

    Args:
        labels: what is not 0 is positive; ``predictions``: of that shape, in [0, 1].
        thresholds: a list of numbers in [0, 1]; predictions above are positive.
        weights: None, or a tensor that broadcasts to the labels.
        metrics_collections, updates_collections: names of collections for the two results.
        name: of the variable scope, by default "precision_at_thresholds".

    Raises:
        ValueError: if the shapes do not fit.
        InvalidArgumentError: when run, if a prediction is not in [0, 1].
    """
    both = metrics_collections, updates_collections
    given = labels, predictions, thresholds, weights
    return share_at_thresholds("precision", "precision", "tp", "fp", *given, *both, name)


def recall_at_thresholds(
    labels: Any,
    predictions: Any,
    thresholds: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The recall at each threshold: ``[number of thresholds]``.

    The arguments are those of ``precision_at_thresholds``.

    Raises:
        ValueError: if the shapes do not fit.
        InvalidArgumentError: if a prediction is not in [0, 1].
        TypeError: if ``thresholds`` is no sequence.
    """
    both = metrics_collections, updates_collections
    given = labels, predictions, thresholds, weights
    return share_at_thresholds("recall", "recall", "tp", "fn", *given, *both, name)
