"""Metrics on the k best predictions: precision, recall and average precision at k.

Labels and predictions of one example are sets of classes. Sets are compared element by element
(``[labels, k]`` comparisons), so that all of it runs inside the compiled step.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import headrace as tf
from headrace.metrics.variables import Metric, collected, metric_variable
from headrace.ops.core.old_arguments import note
from headrace.ops.nn import weights as fitting


class _Sets(NamedTuple):
    """A set of classes for each example: ``values`` ``[..., n]`` (int64), and which are elements.

    ``present`` leaves out padding and repetitions.
    """

    values: Any
    present: Any

    def contains(self, other: _Sets) -> Any:
        """Which of ``other``'s places hold an element of this set: bool ``[..., n of other]``."""
        same = tf.equal(tf.expand_dims(other.values, -1), tf.expand_dims(self.values, -2))
        return tf.reduce_any(tf.logical_and(same, tf.expand_dims(self.present, -2)), -1)


def _count_true(flags: Any) -> Any:
    return tf.reduce_sum(tf.cast(flags, tf.float64), -1)


def _distinct(values: Any, present: Any) -> _Sets:
    """The sets without repetitions: of equal elements the first stays."""
    same = tf.equal(tf.expand_dims(values, -1), tf.expand_dims(values, -2))
    both = tf.logical_and(same, tf.expand_dims(present, -2))
    earlier = tf.matrix_band_part(tf.ones_like(both), -1, 0)
    earlier = tf.logical_and(earlier, tf.logical_not(_diagonal(both)))
    repeated = tf.reduce_any(tf.logical_and(both, earlier), -1)
    return _Sets(values, tf.logical_and(present, tf.logical_not(repeated)))


def _diagonal(square: Any) -> Any:
    return tf.matrix_band_part(tf.ones_like(square), 0, 0)


def _dense_labels(labels: Any) -> tuple[Any, Any]:
    """Labels as a dense int64 tensor, and where there is one (a SparseTensor has gaps)."""
    labels = tf.convert_to_tensor_or_sparse_tensor(labels)
    if not isinstance(labels, tf.SparseTensor):
        labels = tf.cast(labels, tf.int64)
        return labels, tf.ones_like(labels, tf.bool)
    ones = tf.ones_like(labels.values, tf.int32)
    filled = tf.scatter_nd(labels.indices, ones, labels.dense_shape)
    values = tf.scatter_nd(labels.indices, tf.cast(labels.values, tf.int64), labels.dense_shape)
    rank = labels.dense_shape.dims
    if rank is not None and rank[0] is not None:
        filled.set_shape([None] * rank[0])
        values.set_shape([None] * rank[0])
    return values, tf.greater(filled, 0)


def _expanded(labels: Any, present: Any, predictions: Any) -> tuple[Any, Any]:
    """Both with a last dimension added where labels have one less than predictions.

    Raises:
        ValueError: if the ranks do not fit.
    """
    if labels.dims is None or predictions.dims is None:
        lacks = tf.equal(tf.rank(predictions), tf.rank(labels) + 1)
        return (
            tf.cond(lacks, lambda: tf.expand_dims(labels, -1), lambda: labels),
            tf.cond(lacks, lambda: tf.expand_dims(present, -1), lambda: present),
        )
    excess = len(predictions.dims) - len(labels.dims)
    if excess == 0:
        return labels, present
    if excess == 1:
        return tf.expand_dims(labels, -1), tf.expand_dims(present, -1)
    raise ValueError(
        f"Unexpected labels shape {labels.shape} for predictions shape {predictions.shape}."
    )


class _Ranked(NamedTuple):
    """Labels and predictions of a batch as sets, restricted to one class if that is asked."""

    labels: _Sets
    predictions: _Sets

    @classmethod
    def of(cls, labels: Any, predictions_idx: Any, class_id: int | None) -> _Ranked:
        values, present = _expanded(*_dense_labels(labels), predictions_idx)
        everywhere = tf.ones_like(predictions_idx, tf.bool)
        if class_id is not None:
            present = tf.logical_and(present, tf.equal(values, class_id))
            everywhere = tf.equal(predictions_idx, class_id)
        return cls(_distinct(values, present), _distinct(predictions_idx, everywhere))

    def true_positives(self) -> Any:
        found = self.labels.contains(self.predictions)
        return _count_true(tf.logical_and(self.predictions.present, found))

    def false_positives(self) -> Any:
        found = self.labels.contains(self.predictions)
        return _count_true(tf.logical_and(self.predictions.present, tf.logical_not(found)))

    def false_negatives(self) -> Any:
        found = self.predictions.contains(self.labels)
        return _count_true(tf.logical_and(self.labels.present, tf.logical_not(found)))


def _at_k_name(name: str, k: int | None = None, class_id: int | None = None) -> str:
    at = f"{name}_at_{'k' if k is None else int(k)}"
    return at if class_id is None else f"{at}_class{int(class_id)}"


def _weighted(counts: Any, weights: Any) -> Any:
    if weights is None:
        return counts
    with tf.control_dependencies([fitting.assert_broadcastable(weights, counts)]):
        return tf.multiply(counts, tf.cast(weights, tf.float64))


def _streaming_count(what: str, counts: Any, k: int | None, class_id: int | None) -> Metric:
    """A float64 variable that sums counts up, and its update."""
    with tf.name_scope(None, _at_k_name(what, k, class_id)) as scope:
        variable = metric_variable([], tf.float64, name=scope)
        return variable, tf.assign_add(variable, tf.reduce_sum(counts), name="update")


def _share_at_top_k(
    what: str, rest: str, labels: Any, predictions_idx: Any, k: int | None, class_id: int | None,
    weights: Any, collections: Any, updates: Any, name: str | None,
) -> Metric:  # fmt: skip
    """True positives over themselves and the counts of another kind."""
    values = (predictions_idx, labels, weights)
    with tf.name_scope(name, _at_k_name(what, k, class_id), values) as scope:
        ids = tf.cast(predictions_idx, tf.int64)
        sets = _Ranked.of(labels, ids, class_id)
        others = sets.false_positives() if rest == "false_positive" else sets.false_negatives()
        true, true_update = _streaming_count(
            "true_positive", _weighted(sets.true_positives(), weights), k, class_id
        )
        other, other_update = _streaming_count(rest, _weighted(others, weights), k, class_id)
        value = tf.div(true, tf.add(true, other), name=scope)
        update_op = tf.div(true_update, tf.add(true_update, other_update), name="update")
        return collected(value, update_op, collections, updates)


def precision_at_top_k(
    labels: Any,
    predictions_idx: Any,
    k: int | None = None,
    class_id: int | None = None,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The share of predicted classes that are labels.

    Args:
        labels: int64 ``[..., number of labels]`` (or ``[...]`` for one label each), a Tensor or
            SparseTensor. Equal labels of an example count once.
        predictions_idx: int64 ``[..., k]``, the predicted classes.
        k: used for names only.
        class_id: counts this class only.
        weights: None, or a tensor that broadcasts to ``[...]``.
        metrics_collections, updates_collections: names of collections for the two results.
        name: of the name scope, by default "precision_at_<k>".

    Returns:
        The precision (float64 scalar; NaN when nothing was predicted), and the op that counts a
        batch and gives the new one.

    Raises:
        ValueError: if the shapes do not fit.
    """
    both = metrics_collections, updates_collections
    return _share_at_top_k(
        "precision", "false_positive", labels, predictions_idx, k, class_id, weights, *both, name
    )


def recall_at_top_k(
    labels: Any,
    predictions_idx: Any,
    k: int | None = None,
    class_id: int | None = None,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The share of labels that are among the predicted classes, a float64 scalar.

    Arguments and shapes are those of ``precision_at_top_k``. Labels that are no class at all count
    as not found.

    Raises:
        ValueError: if the shapes do not fit.
    """
    both = metrics_collections, updates_collections
    return _share_at_top_k(
        "recall", "false_negative", labels, predictions_idx, k, class_id, weights, *both, name
    )


def precision_at_k(
    labels: Any,
    predictions: Any,
    k: int,
    class_id: int | None = None,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The share of the ``k`` best classes that are labels.

    Args:
        predictions: floating ``[..., number of classes]``, a score for each class.
        labels, class_id, weights, metrics_collections, updates_collections, name: as for
            ``precision_at_top_k``.

    Raises:
        ValueError: if the shapes do not fit.
    """
    values = (predictions, labels, weights)
    with tf.name_scope(name, _at_k_name("precision", k, class_id), values) as scope:
        both = metrics_collections, updates_collections
        ids = tf.nn.top_k(predictions, k).indices
        return precision_at_top_k(labels, ids, k, class_id, weights, *both, scope)


def recall_at_k(
    labels: Any,
    predictions: Any,
    k: int,
    class_id: int | None = None,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The share of labels that are among the ``k`` best classes, a float64 scalar.

    Arguments and shapes are those of ``precision_at_k``.

    Raises:
        ValueError: if there are fewer than ``k`` classes, or the shapes do not fit.
    """
    values = (predictions, labels, weights)
    with tf.name_scope(name, _at_k_name("recall", k, class_id), values) as scope:
        both = metrics_collections, updates_collections
        ids = tf.nn.top_k(predictions, k).indices
        return recall_at_top_k(labels, ids, k, class_id, weights, *both, scope)


def sparse_precision_at_k(
    labels: Any,
    predictions: Any,
    k: int,
    class_id: int | None = None,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The older name of ``precision_at_k``, with its shapes.

    Raises:
        ValueError: if there are fewer than ``k`` classes, or the shapes do not fit.
    """
    note("tf.metrics.sparse_precision_at_k", "tf.metrics.precision_at_k")
    both = metrics_collections, updates_collections
    return precision_at_k(labels, predictions, k, class_id, weights, *both, name)


def average_precision_at_k(
    labels: Any,
    predictions: Any,
    k: int,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The mean over examples of the average precision at 1 to ``k``.

    Manning, Raghavan and Schuetze, "Introduction to information retrieval" (2008), section 8.4.

    For one example: the sum of the precision at each place that holds a label, divided by the
    number of labels or ``k``, whichever is less.

    Args:
        labels, predictions, weights, metrics_collections, updates_collections: as for
            ``precision_at_k``. Dense labels below 0 are padding.
        name: of the name scope, by default "average_precision_at_<k>".

    Returns:
        The mean (float64 scalar), and the op that counts a batch and gives the new mean.

    Raises:
        ValueError: if the shapes do not fit or ``k`` is below 1.
    """
    if k < 1:
        raise ValueError(f"Invalid k={k}.")
    values = (predictions, labels, weights)
    with tf.name_scope(name, _at_k_name("average_precision", k), values) as scope:
        ids = tf.cast(tf.nn.top_k(predictions, k).indices, tf.int64)
        classes = tf.cast(tf.shape(predictions)[-1], tf.int64)
        precision = _average_precision(labels, ids, k, classes)
        # TensorFlow has an op of this name here, so that the variable "max" becomes "max_1".
        tf.get_default_graph().unique_name("Max")
        both = metrics_collections, updates_collections
        return _streaming_average(precision, weights, *both, scope)


def streaming_average_precision(
    labels: Any, predictions_idx: Any, weights: Any, collections: Any, updates: Any,
    name: str | None,
) -> Metric:  # fmt: skip
    """Like ``average_precision_at_k``, of predicted classes ``[..., k]``.

    Raises:
        ValueError: if the shapes do not fit or the number of classes is not known.
    """
    values = (predictions_idx, labels, weights)
    with tf.name_scope(name, "average_precision_at_top_k", values) as scope:
        ids = tf.cast(predictions_idx, tf.int64)
        if ids.dims == ():
            raise ValueError("The rank of predictions_idx must be at least 1.")
        if ids.dims is None or ids.dims[-1] is None:
            raise ValueError("The last dimension of predictions_idx must be set.")
        precision = _average_precision(labels, ids, ids.dims[-1], None)
        return _streaming_average(precision, weights, collections, updates, scope)


def _average_precision(labels: Any, ids: Any, k: int, classes: Any) -> Any:
    """The average precision of each example, float64; ``classes`` bounds labels unless None."""
    is_sparse = isinstance(labels, (tf.SparseTensor, tf.SparseTensorValue))
    values, present = _expanded(*_dense_labels(labels), ids)
    if classes is not None:
        values = tf.where(tf.greater_equal(values, classes), -tf.ones_like(values), values)
    everywhere = tf.ones_like(ids, tf.bool)
    hits = tf.cast(_Sets(values, present).contains(_Sets(ids, everywhere)), tf.float64)
    places = tf.cumsum(tf.ones_like(hits), axis=-1)
    precisions = tf.div(tf.cumsum(hits, axis=-1), places)
    if is_sparse:
        relevant = _count_true(_distinct(values, present).present)
    else:
        relevant = _count_true(tf.greater_equal(values, 0))
    relevant = tf.minimum(relevant, tf.cast(k, tf.float64))
    return tf.div(tf.reduce_sum(precisions * hits, axis=-1), relevant)


def _streaming_average(
    precision: Any, weights: Any, collections: Any, updates: Any, scope: str
) -> Metric:
    if weights is not None:
        weights = fitting.broadcast_weights(tf.cast(weights, tf.float64), precision)
        precision = tf.multiply(precision, weights)
    with tf.name_scope(None, "max") as inner:
        most = metric_variable([], tf.float64, name=inner)
        batch = tf.cast(tf.size(precision), tf.float64) if weights is None else weights
        most_update = tf.assign_add(most, tf.reduce_sum(batch), name="update")
    with tf.name_scope(None, "total") as inner:
        total = metric_variable([], tf.float64, name=inner)
        total_update = tf.assign_add(total, tf.reduce_sum(precision), name="update")
    value = tf.div_no_nan(total, most, name="mean")
    update_op = tf.div_no_nan(total_update, most_update, name=scope)
    return collected(value, update_op, collections, updates)


def sparse_average_precision_at_k(
    labels: Any,
    predictions: Any,
    k: int,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The older name of ``average_precision_at_k``, with its shapes.

    Raises:
        ValueError: if ``k`` is not positive, there are fewer classes, or the shapes do not fit.
    """
    note("tf.metrics.sparse_average_precision_at_k", "tf.metrics.average_precision_at_k")
    both = metrics_collections, updates_collections
    return average_precision_at_k(labels, predictions, k, weights, *both, name)
