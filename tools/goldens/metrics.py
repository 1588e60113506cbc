"""Metrics family: streaming metrics over two batches, their names and variables."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import golden

LABELS = np.array([[0, 1, 1, 0, 1, 0], [1, 1, 0, 0, 1, 0]], np.int64)
SCORES = np.array([[0.1, 0.8, 0.35, 0.4, 0.9, 0.05], [0.6, 0.2, 0.7, 0.45, 0.85, 0.5]], np.float32)
WEIGHTS = np.array([[1, 2, 0.5, 1, 1, 3], [0.25, 1, 1, 2, 0, 1]], np.float32)


def _stream(tf: Any, session: Any, metrics: Any, feeds: Any) -> dict[str, Any]:
    """Two updates of each metric, then the values; names of results and variables."""
    session.run(tf.local_variables_initializer())
    updates = {name: pair[1] for name, pair in metrics.items()}
    values = {name: pair[0] for name, pair in metrics.items()}
    results: dict[str, Any] = {}
    for step, feed in enumerate(feeds):
        for name, value in session.run(updates, feed).items():
            results[f"{name}/update_{step}"] = value
    for name, value in session.run(values).items():
        results[f"{name}/value"] = value
    results["value_names"] = [tensor.name for tensor in values.values()]
    results["variables"] = [v.op.name for v in tf.local_variables()]
    same = tf.get_collection(tf.GraphKeys.METRIC_VARIABLES) == tf.local_variables()
    results["are_metric_variables"] = np.bool_(same)
    return results


def _inputs(tf: Any) -> tuple[Any, Any, Any, list[Any]]:
    labels = tf.placeholder(tf.int64, [6], "labels")
    scores = tf.placeholder(tf.float32, [6], "scores")
    weights = tf.placeholder(tf.float32, [6], "weights")
    feeds = [
        {labels: LABELS[i], scores: SCORES[i], weights: WEIGHTS[i]} for i in range(len(LABELS))
    ]
    return labels, scores, weights, feeds


@golden(with_session=True, needs=("metrics",))
def averages(tf: Any, session: Any) -> dict[str, Any]:
    labels, scores, weights, feeds = _inputs(tf)
    as_floats = tf.cast(labels, tf.float32)
    m = tf.metrics
    metrics = {
        "accuracy": m.accuracy(labels, tf.round(scores)),
        "accuracy_weighted": m.accuracy(labels, tf.round(scores), weights),
        "accuracy_column": m.accuracy(labels[:, None], tf.round(scores), name="column"),
        "mean": m.mean(scores),
        "mean_scalar_weight": m.mean(scores, 2.0),
        "mean_weighted": m.mean(tf.reshape(scores, [3, 2]), tf.reshape(weights[:3], [3, 1])),
        "mean_tensor": m.mean_tensor(scores),
        "mean_tensor_weighted": m.mean_tensor(scores, weights),
        "absolute": m.mean_absolute_error(as_floats, scores, weights),
        "squared": m.mean_squared_error(as_floats, scores),
        "root": m.root_mean_squared_error(as_floats, scores, weights),
        "relative": m.mean_relative_error(as_floats, scores, as_floats),
        "cosine": m.mean_cosine_distance(
            tf.nn.l2_normalize(tf.reshape(as_floats + 1, [2, 3]), 1),
            tf.nn.l2_normalize(tf.reshape(scores, [2, 3]), 1),
            1,
        ),
        "below": m.percentage_below(scores, 0.5, weights),
    }
    return _stream(tf, session, metrics, feeds)


@golden(with_session=True, needs=("metrics",))
def counts(tf: Any, session: Any) -> dict[str, Any]:
    labels, scores, weights, feeds = _inputs(tf)
    m = tf.metrics
    found = scores > 0.5
    metrics = {}
    for name in ["true_positives", "false_positives", "true_negatives", "false_negatives"]:
        metrics[name] = getattr(m, name)(labels, found)
        metrics[f"{name}_weighted"] = getattr(m, name)(labels, found, weights)
        at = getattr(m, f"{name}_at_thresholds")
        metrics[f"{name}_at"] = at(labels, scores, [0.15, 0.5, 0.9], weights)
    metrics |= {
        "precision": m.precision(labels, found),
        "precision_weighted": m.precision(labels, found, weights, name="p"),
        "recall": m.recall(labels, found, weights),
        "nothing": m.precision(labels, tf.zeros_like(labels)),
        "precision_at": m.precision_at_thresholds(labels, scores, [0.15, 0.5, 0.9]),
        "recall_at": m.recall_at_thresholds(labels, scores, [0.15, 0.5, 0.9], weights),
    }
    return _stream(tf, session, metrics, feeds)


@golden(with_session=True, needs=("metrics",))
def curves(tf: Any, session: Any) -> dict[str, Any]:
    labels, scores, weights, feeds = _inputs(tf)
    m = tf.metrics
    metrics = {
        "roc": m.auc(labels, scores),
        "roc_weighted": m.auc(labels, scores, weights, num_thresholds=11),
        "pr": m.auc(labels, scores, curve="PR"),
        "careful": m.auc(labels, scores, curve="PR", summation_method="careful_interpolation"),
        "minoring": m.auc(labels, scores, summation_method="minoring"),
        "majoring": m.auc(labels, scores, summation_method="majoring"),
        "thresholds": m.auc(labels, scores, thresholds=[0.3, 0.6]),
        "sensitivity": m.sensitivity_at_specificity(labels, scores, 0.7),
        "specificity": m.specificity_at_sensitivity(labels, scores, 0.6, weights),
    }
    return _stream(tf, session, metrics, feeds)


@golden(with_session=True, needs=("metrics",))
def classes(tf: Any, session: Any) -> dict[str, Any]:
    labels = tf.placeholder(tf.int32, [2, 3])
    predictions = tf.placeholder(tf.int32, [2, 3])
    weights = tf.constant([[1.0, 0.5, 2.0], [1.0, 0.0, 1.0]])
    feeds = [
        {labels: [[0, 1, 2], [2, 2, 1]], predictions: [[0, 1, 1], [2, 0, 1]]},
        {labels: [[1, 1, 1], [0, 2, 2]], predictions: [[1, 0, 1], [0, 2, 1]]},
    ]
    m = tf.metrics
    metrics = {
        "iou": m.mean_iou(labels, predictions, 4),
        "iou_weighted": m.mean_iou(labels, predictions, 3, weights),
        "per_class": m.mean_per_class_accuracy(labels, predictions, 4),
        "per_class_weighted": m.mean_per_class_accuracy(labels, predictions, 3, weights),
    }
    return _stream(tf, session, metrics, feeds)


@golden(with_session=True, needs=("metrics",))
def ranking(tf: Any, session: Any) -> dict[str, Any]:
    scores = tf.placeholder(tf.float32, [3, 5])
    labels = tf.placeholder(tf.int64, [3, 2])
    rng = np.random.RandomState(3)
    feeds = [
        {scores: rng.rand(3, 5), labels: [[0, 3], [1, 1], [4, 2]]},
        {scores: rng.rand(3, 5), labels: [[2, 3], [-1, 0], [4, 7]]},
    ]
    single = labels[:, 0]
    sparse = tf.SparseTensor([[0, 0], [1, 0], [1, 1], [2, 0]], [3, 1, 4, 0], [3, 2])
    sparse = tf.SparseTensor(sparse.indices, tf.cast(sparse.values, tf.int64), sparse.dense_shape)
    weights = tf.constant([1.0, 0.5, 2.0])
    m = tf.metrics
    metrics: dict[str, Any] = {}
    for name in ["precision_at_k", "recall_at_k"]:
        at = getattr(m, name)
        metrics |= {
            name: at(labels, scores, 2),
            f"{name}_single": at(single, scores, 3),
            f"{name}_class": at(labels, scores, 3, class_id=4),
            f"{name}_weighted": at(labels, scores, 2, weights=weights, name=f"w_{name}"),
            f"{name}_sparse": at(sparse, scores, 2),
            f"{name}_sparse_class": at(sparse, scores, 2, class_id=1),
        }
    ids = tf.constant([[0, 1, 1], [2, 1, 4], [4, 2, 0]], tf.int64)
    metrics |= {
        "top": m.precision_at_top_k(labels, ids, 3),
        "top_recall": m.recall_at_top_k(labels, ids),
        "average": m.average_precision_at_k(labels, scores, 3),
        "average_weighted": m.average_precision_at_k(labels, scores, 2, weights),
        "average_sparse": m.average_precision_at_k(sparse, scores, 3),
    }
    return _stream(tf, session, metrics, feeds)
