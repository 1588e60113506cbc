"""Names of what models of ``tf.contrib.learn`` predict, and of their metrics."""

from __future__ import annotations

__all__ = ["MetricKey", "PredictionKey", "ProblemType"]


class ProblemType:
    """What a head is for.

    >>> tf.contrib.learn.ProblemType.CLASSIFICATION
    1
    """

    UNSPECIFIED = 0
    CLASSIFICATION = 1
    LINEAR_REGRESSION = 2
    LOGISTIC_REGRESSION = 3


class PredictionKey:
    """Names of predictions.

    >>> tf.contrib.learn.PredictionKey.SCORES
    'scores'
    """

    CLASSES = "classes"
    PROBABILITIES = "probabilities"
    LOGITS = "logits"
    LOGISTIC = "logistic"
    SCORES = "scores"
    TOP_K = "top_k"
    GENERIC = "output"


class MetricKey:
    """Names of metrics; those with "%" take the number of a class, or a threshold.

    >>> from headrace.contrib.learn.keys import MetricKey
    >>> MetricKey.ACCURACY_MEAN % 0.5
    'accuracy/threshold_0.500000_mean'
    """

    LOSS = "loss"
    AUC = "auc"
    AUC_PR = "auc_precision_recall"
    CLASS_AUC = "auc/class%d"
    CLASS_AUC_PR = "auc_precision_recall/class%d"
    PREDICTION_MEAN = "labels/prediction_mean"
    CLASS_PREDICTION_MEAN = "labels/prediction_mean/class%d"
    CLASS_LOGITS_MEAN = "labels/logits_mean/class%d"
    CLASS_PROBABILITY_MEAN = "labels/probability_mean/class%d"
    LABEL_MEAN = "labels/actual_label_mean"
    CLASS_LABEL_MEAN = "labels/actual_label_mean/class%d"
    ACCURACY = "accuracy"
    ACCURACY_BASELINE = "accuracy/baseline_label_mean"
    ACCURACY_MEAN = "accuracy/threshold_%f_mean"
    PRECISION_MEAN = "precision/positive_threshold_%f_mean"
    RECALL_MEAN = "recall/positive_threshold_%f_mean"
