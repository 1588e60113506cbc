"""Metrics that are averages over examples."""

from __future__ import annotations

from typing import Any

import headrace as tf
from headrace.metrics.variables import Metric, collected, fitted, flat, metric_variable, ratio
from headrace.ops.nn import weights as fitting


def mean(
    values: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The (weighted) mean of all values so far.

    Args:
        values: a tensor of any shape.
        weights: None, or a tensor that broadcasts to ``values``: a scalar, or of the same rank with
            sizes that are 1 or equal.
        metrics_collections, updates_collections: names of collections for the two results.
        name: of the variable scope, by default "mean".

    Returns:
        The mean (float32 scalar), and the op that takes a batch in and gives the new mean.

    Raises:
        ValueError: if ``weights`` do not fit.
    """
    with tf.variable_scope(name, "mean", (values, weights)):
        values = tf.cast(values, tf.float32)
        total = metric_variable([], tf.float32, name="total")
        count = metric_variable([], tf.float32, name="count")
        if weights is None:
            num_values = tf.cast(tf.size(values), tf.float32)
        else:
            values, _, weights = fitted(values, None, weights)
            weights = fitting.broadcast_weights(tf.cast(weights, tf.float32), values)
            values = tf.multiply(values, weights)
            num_values = tf.reduce_sum(weights)
        new_total = tf.assign_add(total, tf.reduce_sum(values))
        with tf.control_dependencies([values]):
            new_count = tf.assign_add(count, num_values)
        value = ratio(total, count, name="value")
        update_op = ratio(new_total, new_count, name="update_op")
        return collected(value, update_op, metrics_collections, updates_collections)


def mean_tensor(
    values: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The elementwise (weighted) mean over steps: a tensor of the shape of ``values``.

    Arguments as for ``mean``. The shape of ``values`` must be known.

    Raises:
        ValueError: if ``weights`` do not fit, or the shape is not known.
    """
    with tf.variable_scope(name, "mean", (values, weights)):
        values = tf.cast(values, tf.float32)
        total = metric_variable(values.shape, tf.float32, name="total_tensor")
        count = metric_variable(values.shape, tf.float32, name="count_tensor")
        num_values = tf.ones_like(values)
        if weights is not None:
            values, _, weights = fitted(values, None, weights)
            weights = fitting.broadcast_weights(tf.cast(weights, tf.float32), values)
            values = tf.multiply(values, weights)
            num_values = tf.multiply(num_values, weights)
        new_total = tf.assign_add(total, values)
        with tf.control_dependencies([values]):
            new_count = tf.assign_add(count, num_values)
        value = ratio(total, count, name="value")
        update_op = ratio(new_total, new_count, name="update_op")
        return collected(value, update_op, metrics_collections, updates_collections)


def accuracy(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """How often ``predictions`` equal ``labels``.

    Args:
        labels, predictions: of one shape; a last dimension of size 1 too much is removed.
        weights, metrics_collections, updates_collections: as for ``mean``.
        name: of the variable scope, by default "accuracy".

    Returns:
        The share (float32 scalar), and the op that takes a batch in and gives the new share.

    Raises:
        ValueError: if the shapes do not fit.

    >>> with tf.Session() as session:
    ...     share, update = accuracy([1, 2, 3, 4], [1, 2, 3, 0])
    ...     session.run(tf.local_variables_initializer())
    ...     float(session.run(update)), float(session.run(share))
    (0.75, 0.75)
    """
    predictions, labels, weights = fitted(predictions, labels, weights)
    if labels.dtype != predictions.dtype:
        predictions = tf.cast(predictions, labels.dtype)
    is_correct = tf.cast(tf.equal(predictions, labels), tf.float32)
    return mean(is_correct, weights, metrics_collections, updates_collections, name or "accuracy")


def mean_absolute_error(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The mean of ``|predictions - labels|``.

    Arguments and shapes are those of ``accuracy``: numbers of one shape, two scalars as results.

    Raises:
        ValueError: if the shapes differ or the weights do not fit.
        TypeError: if the types differ.
    """
    predictions, labels, weights = fitted(predictions, labels, weights)
    errors = tf.abs(predictions - labels)
    name = name or "mean_absolute_error"
    return mean(errors, weights, metrics_collections, updates_collections, name)


def mean_squared_error(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The mean of ``(predictions - labels)**2``.

    Arguments and shapes are those of ``accuracy``: numbers of one shape, two scalars as results.

    Raises:
        ValueError: if the shapes differ or the weights do not fit.
        TypeError: if the types differ, or are no numbers.

    >>> with tf.Session() as session:
    ...     mean, update = mean_squared_error([1.0, 2.0], [1.0, 4.0])
    ...     session.run(tf.local_variables_initializer())
    ...     float(session.run(update))
    2.0
    """
    predictions, labels, weights = fitted(predictions, labels, weights)
    errors = tf.squared_difference(labels, predictions)
    name = name or "mean_squared_error"
    return mean(errors, weights, metrics_collections, updates_collections, name)


def root_mean_squared_error(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The square root of the mean squared error, whose arguments and shapes it has.

    Raises:
        ValueError: if the shapes differ or the weights do not fit.
        TypeError: if the types differ, or are no numbers.
    """
    name = name or "root_mean_squared_error"
    squared, update_op = mean_squared_error(labels, predictions, weights, None, None, name)
    return collected(tf.sqrt(squared), tf.sqrt(update_op), metrics_collections, updates_collections)


def mean_relative_error(
    labels: Any,
    predictions: Any,
    normalizer: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The mean of ``|labels - predictions| / normalizer``, 0 where the normalizer is 0.

    Arguments as for ``accuracy``; ``normalizer`` has the shape of ``predictions``.

    Raises:
        ValueError: if the shapes differ or the weights do not fit.
    """
    predictions, labels, weights = fitted(predictions, labels, weights)
    predictions, normalizer = fitting.remove_squeezable_dimensions(predictions, normalizer)
    predictions.shape.assert_is_compatible_with(normalizer.shape)
    relative = tf.div(tf.abs(labels - predictions), normalizer)
    errors = tf.where(tf.equal(normalizer, 0.0), tf.zeros_like(labels), relative)
    name = name or "mean_relative_error"
    return mean(errors, weights, metrics_collections, updates_collections, name)


def mean_cosine_distance(
    labels: Any,
    predictions: Any,
    dim: int,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """1 minus the mean dot product along ``dim``; both tensors should be unit vectors there.

    Arguments and errors as for ``accuracy``; ``weights`` have size 1 in dimension ``dim``. Both
    results are scalars.

    Raises:
        ValueError: if the shapes differ, the weights do not fit, or there is no dimension ``dim``.
    """
    predictions, labels, weights = fitted(predictions, labels, weights)
    products = tf.reduce_sum(tf.multiply(predictions, labels), axis=[dim], keepdims=True)
    value, update_op = mean(products, weights, None, None, name or "mean_cosine_distance")
    return collected(
        tf.subtract(1.0, value),
        tf.subtract(1.0, update_op),
        metrics_collections,
        updates_collections,
    )


def percentage_below(
    values: Any,
    threshold: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The share of ``values`` below ``threshold``; other arguments as for ``mean``.

    Args:
        values: numbers of any shape; ``threshold`` broadcasts to it.

    Raises:
        ValueError: if ``threshold`` does not broadcast, or the weights do not fit.
        TypeError: if ``values`` are no numbers.
    """
    is_below = tf.cast(tf.less(values, threshold), tf.float32)
    name = name or "percentage_below_threshold"
    return mean(is_below, weights, metrics_collections, updates_collections, name)


def mean_per_class_accuracy(
    labels: Any,
    predictions: Any,
    num_classes: int,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The accuracy of each class, averaged over all classes.

    A class without examples counts as 0.

    Args:
        labels, predictions: classes in ``[0, num_classes)``, of one shape.
        weights, metrics_collections, updates_collections: as for ``mean``.
        name: of the variable scope, by default "mean_accuracy".

    Raises:
        ValueError: if the shapes do not fit.
        InvalidArgumentError: when run, if a label is not a class.
    """
    with tf.variable_scope(name, "mean_accuracy", (predictions, labels, weights)):
        labels = flat(tf.cast(labels, tf.int64))
        predictions = flat(tf.convert_to_tensor(predictions))
        predictions.shape.assert_is_compatible_with(labels.shape)
        total = metric_variable([num_classes], tf.float32, name="total")
        count = metric_variable([num_classes], tf.float32, name="count")
        ones = tf.ones([tf.size(labels)], tf.float32)
        if labels.dtype != predictions.dtype:
            predictions = tf.cast(predictions, labels.dtype)
        is_correct = tf.cast(tf.equal(predictions, labels), tf.float32)
        if weights is not None:
            weights = tf.cast(flat(tf.convert_to_tensor(weights)), tf.float32)
            is_correct *= weights
            ones *= weights
        new_total = tf.scatter_add(total, labels, ones)
        new_count = tf.scatter_add(count, labels, is_correct)
        value = tf.reduce_mean(ratio(count, total), name="mean_accuracy")
        update_op = ratio(new_count, new_total, name="update_op")
        return collected(value, update_op, metrics_collections, updates_collections)


def mean_iou(
    labels: Any,
    predictions: Any,
    num_classes: int,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The mean intersection over union of the classes that have occurred.

    For each class this is true positives / (true positives + false positives + false negatives),
    from a confusion matrix that is summed up over steps.

    Long, Shelhamer and Darrell, "Fully convolutional networks for semantic segmentation" (2015),
    section 5.

    Args:
        labels, predictions: classes in ``[0, num_classes)``, of one shape.
        weights: None, or a tensor of that shape.
        metrics_collections, updates_collections: as for ``mean``.
        name: of the variable scope, by default "mean_iou".

    Returns:
        The mean (float32 scalar), and an op that adds to the confusion matrix and gives it
        (float64 ``[num_classes, num_classes]``).

    Raises:
        ValueError: if the shapes do not fit.
        InvalidArgumentError: when run, if a label or prediction is not a class.
    """
    with tf.variable_scope(name, "mean_iou", (predictions, labels, weights)):
        predictions, labels = tf.convert_to_tensor(predictions), tf.convert_to_tensor(labels)
        predictions.shape.assert_is_compatible_with(labels.shape)
        matrix, update_op = _streaming_confusion_matrix(labels, predictions, num_classes, weights)
        predicted = tf.cast(tf.reduce_sum(matrix, 0), tf.float32)
        labelled = tf.cast(tf.reduce_sum(matrix, 1), tf.float32)
        correct = tf.cast(tf.diag_part(matrix), tf.float32)
        union = predicted + labelled - correct
        occurred = tf.reduce_sum(tf.cast(tf.not_equal(union, 0), tf.float32))
        total = tf.reduce_sum(
            tf.div(correct, tf.where(tf.greater(union, 0), union, tf.ones_like(union))),
            name="mean_iou",
        )
        value = tf.where(tf.greater(occurred, 0), total / occurred, 0.0)
        return collected(value, update_op, metrics_collections, updates_collections)


def _streaming_confusion_matrix(
    labels: Any, predictions: Any, num_classes: int, weights: Any
) -> tuple[Any, Any]:
    """A confusion matrix (float64) over all steps, and the op that adds a batch."""
    matrix = metric_variable([num_classes, num_classes], tf.float64, name="total_confusion_matrix")
    if weights is not None:
        weights = flat(tf.convert_to_tensor(weights))
    current = tf.confusion_matrix(
        flat(tf.cast(labels, tf.int64)),
        flat(tf.cast(predictions, tf.int64)),
        tf.cast(num_classes, tf.int64),
        weights=weights,
        dtype=tf.float64,
    )
    return matrix, tf.assign_add(matrix, current)
