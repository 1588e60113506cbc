"""The local variables that metrics count in, and what all metrics do with their results."""

from __future__ import annotations

from typing import Any

import headrace as tf
from headrace.ops.nn import weights as fitting
from headrace.ops.state.copied_variables import across_replicas

#: The two tensors of a metric: its value, and the op that counts a batch and gives the new value.
Metric = tuple[tf.Tensor, tf.Tensor]


def metric_variable(
    shape: Any, dtype: Any, validate_shape: bool = True, name: str | None = None
) -> Any:
    """A local variable of zeros of ``shape``, also in the collection ``METRIC_VARIABLES``.

    Raises:
        ValueError: if ``shape`` is not fully known and ``validate_shape`` is set.
        TypeError: if ``dtype`` is unknown.
    """
    return tf.Variable(
        lambda: tf.zeros(shape, dtype),
        trainable=False,
        collections=[tf.GraphKeys.LOCAL_VARIABLES, tf.GraphKeys.METRIC_VARIABLES],
        validate_shape=validate_shape,
        name=name,
        synchronization=tf.VariableSynchronization.ON_READ,
        aggregation=tf.VariableAggregation.SUM,
    )


def collected(
    value: Any, update_op: Any, metrics_collections: Any, updates_collections: Any
) -> Metric:
    """Both results, of any shape, put into the collections that the caller named.

    In a replica of a strategy the value is that of what all replicas have counted.

    Raises:
        RuntimeError: if the graph is finalized.
    """
    value = across_replicas(value)
    if metrics_collections:
        tf.add_to_collections(metrics_collections, value)
    if updates_collections:
        tf.add_to_collections(updates_collections, update_op)
    return value, update_op


def ratio(numerator: Any, denominator: Any, name: str | None = None) -> Any:
    """``numerator / denominator``, and 0 where the denominator is not above 0."""
    return tf.div_no_nan(numerator, tf.maximum(denominator, 0), name=name)


def fitted(predictions: Any, labels: Any, weights: Any) -> tuple[Any, Any, Any]:
    """Predictions, labels and weights of one rank, where a last dimension of size 1 is in the way.

    Labels or weights may be None.

    Raises:
        ValueError: if the shapes of predictions and labels do not fit.
    """
    predictions = tf.convert_to_tensor(predictions)
    if labels is not None:
        labels, predictions = fitting.remove_squeezable_dimensions(labels, predictions)
        predictions.shape.assert_is_compatible_with(labels.shape)
    if weights is None:
        return predictions, labels, None
    weights = tf.convert_to_tensor(weights)
    if weights.dims is not None and predictions.dims is not None:
        excess = len(weights.dims) - len(predictions.dims)
        if weights.dims and excess == 1:
            weights = tf.squeeze(weights, [-1])
        elif weights.dims and excess == -1:
            weights = tf.expand_dims(weights, [-1])
        return predictions, labels, weights
    return predictions, labels, _fitted_when_run(weights, predictions)


def _fitted_when_run(weights: Any, predictions: Any) -> Any:
    """Weights of the rank of the predictions, when a rank is known only as steps run."""
    if weights.dims == ():
        return weights
    rank = tf.rank(weights)
    excess = rank - tf.rank(predictions)
    may_squeeze = weights.dims is None or weights.dims[-1] in (None, 1)

    def squeezed() -> Any:
        return tf.squeeze(weights, [-1]) if may_squeeze else weights

    def expanded() -> Any:
        return tf.cond(tf.equal(excess, -1), lambda: tf.expand_dims(weights, [-1]), lambda: weights)

    return tf.cond(
        tf.equal(rank, 0),
        lambda: weights,
        lambda: tf.cond(tf.equal(excess, 1), squeezed, expanded),
    )


def flat(values: Any) -> Any:
    """``values`` with one dimension."""
    return values if values.dims is not None and len(values.dims) <= 1 else tf.reshape(values, [-1])
