"""Metrics of forests by their names, for `tf.contrib.learn.MetricSpec`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import headrace as tf
from headrace.contrib.learn.keys import PredictionKey
from headrace.errors import suggest

__all__ = [
    "FEATURE_IMPORTANCE_NAME",
    "INFERENCE_PRED_NAME",
    "INFERENCE_PROB_NAME",
    "get_metric",
    "get_prediction_key",
]

INFERENCE_PROB_NAME = PredictionKey.PROBABILITIES
INFERENCE_PRED_NAME = PredictionKey.CLASSES
FEATURE_IMPORTANCE_NAME = "global_feature_importance"

_Metric = Callable[..., tuple[Any, Any]]


def _accuracy(predictions: Any, targets: Any, weights: Any = None) -> Any:
    return tf.metrics.accuracy(targets, predictions, weights)


def _precision(predictions: Any, targets: Any, weights: Any = None) -> Any:
    return tf.metrics.precision(targets, predictions, weights)


def _recall(predictions: Any, targets: Any, weights: Any = None) -> Any:
    return tf.metrics.recall(targets, predictions, weights)


def _log_loss(probabilities: Any, targets: Any, weights: Any = None) -> Any:
    """The mean of -log of what is given to the right class."""
    classes = tf.reshape(tf.to_int32(targets), [-1])
    right = tf.one_hot(classes, tf.shape(probabilities)[1])
    given = tf.reduce_sum(right * probabilities, 1)
    return tf.metrics.mean(-tf.log(tf.maximum(given, 1e-7)), weights)


def _r2(scores: Any, targets: Any, weights: Any = None) -> Any:
    """1 - (squared errors) / (squares about the mean), mean over batches."""
    scores = tf.reshape(scores, [tf.shape(scores)[0], -1])
    targets = tf.reshape(tf.to_float(targets), tf.shape(scores))
    errors = tf.reduce_sum(tf.square(targets - scores), 0)
    squares = tf.reduce_sum(tf.square(targets - tf.reduce_mean(targets, 0)), 0)
    return tf.metrics.mean(tf.reduce_mean(1.0 - errors / squares), weights)


def _top_5(probabilities: Any, targets: Any, weights: Any = None) -> Any:
    classes = tf.reshape(tf.to_int32(targets), [-1])
    return tf.metrics.mean(tf.nn.in_top_k(probabilities, classes, 5), weights)


_METRICS: dict[str, tuple[_Metric, str]] = {
    "accuracy": (_accuracy, INFERENCE_PRED_NAME),
    "classification_log_loss": (_log_loss, INFERENCE_PROB_NAME),
    "precision": (_precision, INFERENCE_PRED_NAME),
    "r2": (_r2, PredictionKey.SCORES),
    "recall": (_recall, INFERENCE_PRED_NAME),
    "top_5": (_top_5, INFERENCE_PROB_NAME),
}


def _find(metric_name: str) -> tuple[_Metric, str]:
    if metric_name not in _METRICS:
        raise KeyError(
            f"There is no metric {metric_name!r}; there are {', '.join(_METRICS)}."
            f"{suggest(metric_name, _METRICS)}"
        )
    return _METRICS[metric_name]


def get_metric(metric_name: str) -> _Metric:
    """A metric ``f(predictions, targets, weights=None)`` that gives (value, update), both scalars.

    Args:
        metric_name: "accuracy", "classification_log_loss", "precision", "r2", "recall" or "top_5".

    Raises:
        KeyError: for another name.

    >>> metric = tf.contrib.tensor_forest.client.eval_metrics.get_metric("accuracy")
    >>> value, update = metric(tf.constant([0, 1]), tf.constant([0, 0]))
    >>> value.dtype
    tf.float32
    """
    return _find(metric_name)[0]


def get_prediction_key(metric_name: str) -> str:
    """Which of the predictions of a forest the metric is called with: a vector or a matrix.

    Raises:
        KeyError: for a name that `get_metric` does not know.

    >>> tf.contrib.tensor_forest.client.eval_metrics.get_prediction_key("accuracy")
    'classes'
    """
    return _find(metric_name)[1]
