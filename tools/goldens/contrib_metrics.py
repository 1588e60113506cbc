"""Metrics of `tf.contrib.metrics`. Python 3.7: TensorFlow 1.15 runs this."""

import numpy as np

from . import golden

LABELS = np.array([[0, 1, 1, 0, 1, 0], [1, 1, 0, 0, 1, 0]], np.int64)
SCORES = np.array([[0.1, 0.8, 0.35, 0.4, 0.9, 0.05], [0.6, 0.2, 0.7, 0.45, 0.85, 0.5]], np.float32)
WEIGHTS = np.array([[1, 2, 0.5, 1, 1, 3], [0.25, 1, 1, 2, 0, 1]], np.float32)


def _stream(tf, session, metrics, feeds):
    """Two updates of each metric, then the values; the names of the variables."""
    values, updates = tf.contrib.metrics.aggregate_metric_map(metrics)
    session.run(tf.local_variables_initializer())
    results = {}
    for step, feed in enumerate(feeds):
        for name, value in session.run(updates, feed).items():
            if value is not None:
                results[f"{name}/update_{step}"] = value
    for name, value in session.run(values).items():
        results[name + "/value"] = value
    results["variables"] = [v.op.name for v in tf.local_variables()]
    return results


@golden(with_session=True)
def switched(tf, session):
    labels = tf.placeholder(tf.int64, [6])
    scores = tf.placeholder(tf.float32, [6])
    weights = tf.placeholder(tf.float32, [6])
    feeds = [{labels: LABELS[i], scores: SCORES[i], weights: WEIGHTS[i]} for i in range(2)]
    m = tf.contrib.metrics
    found = scores > 0.5
    floats = tf.cast(labels, tf.float32)
    metrics = {
        "accuracy": m.streaming_accuracy(found, tf.cast(labels, tf.bool)),
        "auc": m.streaming_auc(scores, labels, weights),
        "auc_pr": m.streaming_auc(scores, labels, curve="PR", name="pr"),
        "precision": m.streaming_precision(found, labels, weights),
        "recall": m.streaming_recall(found, labels),
        "false_negatives": m.streaming_false_negatives(found, labels),
        "fpr": m.streaming_false_positive_rate(found, labels),
        "fnr": m.streaming_false_negative_rate(found, labels, weights),
        "fpr_at": m.streaming_false_positive_rate_at_thresholds(scores, labels, [0.3, 0.6]),
        "fnr_at": m.streaming_false_negative_rate_at_thresholds(scores, labels, [0.3, 0.6]),
        "tp_at": m.streaming_true_positives_at_thresholds(scores, labels, [0.3, 0.6], weights),
        "precision_at": m.streaming_precision_at_thresholds(scores, labels, [0.3, 0.6]),
        "recall_at": m.streaming_recall_at_thresholds(scores, labels, [0.3, 0.6], weights),
        "points": m.streaming_curve_points(labels, scores, num_thresholds=5),
        "points_pr": m.streaming_curve_points(labels, scores, num_thresholds=5, curve="PR"),
        "mean": m.streaming_mean(scores, weights),
        "mean_tensor": m.streaming_mean_tensor(scores),
        "less": m.streaming_percentage_less(scores, 0.5),
        "absolute": m.streaming_mean_absolute_error(scores, floats),
        "squared": m.streaming_mean_squared_error(scores, floats, weights),
        "root": m.streaming_root_mean_squared_error(scores, floats),
        "relative": m.streaming_mean_relative_error(scores, floats, floats),
        "cosine": m.streaming_mean_cosine_distance(scores, floats, 0),
        "iou": m.streaming_mean_iou(tf.cast(found, tf.int64), labels, 2),
        "sensitivity": m.streaming_sensitivity_at_specificity(scores, labels, 0.7),
        "specificity": m.streaming_specificity_at_sensitivity(scores, labels, 0.6),
        "covariance": m.streaming_covariance(scores, floats),
        "covariance_weighted": m.streaming_covariance(scores, floats, weights),
        "pearson": m.streaming_pearson_correlation(scores, floats),
        "count": m.count(scores),
        "count_weighted": m.count(scores, weights),
    }
    results = _stream(tf, session, metrics, feeds)
    batch = m.accuracy(tf.constant([1, 2, 3]), tf.constant([1, 2, 0]))
    results["batch"] = session.run(batch)
    weighted = m.accuracy(tf.constant([1, 2, 3]), tf.constant([1, 2, 0]), [0.5, 1.0, 2.0])
    results["batch_weighted"] = session.run(weighted)
    return results


@golden(with_session=True)
def ranking(tf, session):
    scores = tf.placeholder(tf.float32, [3, 5])
    labels = tf.placeholder(tf.int64, [3, 2])
    rng = np.random.RandomState(3)
    feeds = [
        {scores: rng.rand(3, 5), labels: [[0, 3], [1, 1], [4, 2]]},
        {scores: rng.rand(3, 5), labels: [[2, 3], [1, 0], [4, 0]]},
    ]
    m = tf.contrib.metrics
    ids = tf.nn.top_k(scores, 2)[1]
    metrics = {
        "recall": m.streaming_recall_at_k(scores, labels[:, 0], 2),
        "sparse_recall": m.streaming_sparse_recall_at_k(scores, labels, 2),
        "sparse_precision": m.streaming_sparse_precision_at_k(scores, labels, 2, class_id=1),
        "precision_top": m.streaming_sparse_precision_at_top_k(tf.cast(ids, tf.int64), labels),
        "recall_top": m.sparse_recall_at_top_k(labels, tf.cast(ids, tf.int64), class_id=3),
        "average": m.streaming_sparse_average_precision_at_k(scores, labels, 3),
        "average_top": m.streaming_sparse_average_precision_at_top_k(ids, labels),
    }
    return _stream(tf, session, metrics, feeds)


@golden(with_session=True)
def operating_points(tf, session):
    labels = tf.placeholder(tf.int64, [6])
    scores = tf.placeholder(tf.float32, [6])
    weights = tf.placeholder(tf.float32, [6])
    feeds = [{labels: LABELS[i], scores: SCORES[i], weights: WEIGHTS[i]} for i in range(2)]
    m = tf.contrib.metrics
    classes = tf.cast(scores * 2.9, tf.int64)
    metrics = {
        "recall": m.recall_at_precision(labels, scores, 0.7),
        "recall_weighted": m.recall_at_precision(labels, scores, 0.6, weights, 11),
        "recall_strict": m.recall_at_precision(labels, scores, 0.7, strict_mode=True),
        "precision": m.precision_at_recall(labels, scores, 0.7, num_thresholds=11),
        "kappa": m.cohen_kappa(labels, classes, 3),
        "kappa_weighted": m.cohen_kappa(labels[:, None], classes, 3, weights),
    }
    results = _stream(tf, session, metrics, feeds)
    data, update = m.precision_recall_at_equal_thresholds(
        tf.cast(labels, tf.bool), scores, weights, num_thresholds=5
    )
    session.run(tf.local_variables_initializer())
    for feed in feeds:
        session.run(update, feed)
    for name, value in zip(data._fields, session.run(data)):  # noqa: B905 (Python 3.7)
        results["equal_" + name] = value
    return results
