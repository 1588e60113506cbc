# Written by tools/make_stubs.py from __init__.py; do not edit.
from headrace.metrics.averages import accuracy as accuracy
from headrace.metrics.averages import mean as mean
from headrace.metrics.averages import mean_absolute_error as mean_absolute_error
from headrace.metrics.averages import mean_cosine_distance as mean_cosine_distance
from headrace.metrics.averages import mean_iou as mean_iou
from headrace.metrics.averages import mean_per_class_accuracy as mean_per_class_accuracy
from headrace.metrics.averages import mean_relative_error as mean_relative_error
from headrace.metrics.averages import mean_squared_error as mean_squared_error
from headrace.metrics.averages import mean_tensor as mean_tensor
from headrace.metrics.averages import percentage_below as percentage_below
from headrace.metrics.averages import root_mean_squared_error as root_mean_squared_error
from typing import Any as _Any
from builtins import str as _str
def false_negatives(
    labels: _Any,
    predictions: _Any,
    weights: _Any = None,
    metrics_collections: _Any = None,
    updates_collections: _Any = None,
    name: _str | None = None,
) -> _Any: ...
def false_negatives_at_thresholds(
    labels: _Any,
    predictions: _Any,
    thresholds: _Any,
    weights: _Any = None,
    metrics_collections: _Any = None,
    updates_collections: _Any = None,
    name: _str | None = None,
) -> _Any: ...
def false_positives(
    labels: _Any,
    predictions: _Any,
    weights: _Any = None,
    metrics_collections: _Any = None,
    updates_collections: _Any = None,
    name: _str | None = None,
) -> _Any: ...
def false_positives_at_thresholds(
    labels: _Any,
    predictions: _Any,
    thresholds: _Any,
    weights: _Any = None,
    metrics_collections: _Any = None,
    updates_collections: _Any = None,
    name: _str | None = None,
) -> _Any: ...
from headrace.metrics.counts import precision as precision
from headrace.metrics.counts import precision_at_thresholds as precision_at_thresholds
from headrace.metrics.counts import recall as recall
from headrace.metrics.counts import recall_at_thresholds as recall_at_thresholds
def true_negatives(
    labels: _Any,
    predictions: _Any,
    weights: _Any = None,
    metrics_collections: _Any = None,
    updates_collections: _Any = None,
    name: _str | None = None,
) -> _Any: ...
def true_negatives_at_thresholds(
    labels: _Any,
    predictions: _Any,
    thresholds: _Any,
    weights: _Any = None,
    metrics_collections: _Any = None,
    updates_collections: _Any = None,
    name: _str | None = None,
) -> _Any: ...
def true_positives(
    labels: _Any,
    predictions: _Any,
    weights: _Any = None,
    metrics_collections: _Any = None,
    updates_collections: _Any = None,
    name: _str | None = None,
) -> _Any: ...
def true_positives_at_thresholds(
    labels: _Any,
    predictions: _Any,
    thresholds: _Any,
    weights: _Any = None,
    metrics_collections: _Any = None,
    updates_collections: _Any = None,
    name: _str | None = None,
) -> _Any: ...
from headrace.metrics.curves import auc as auc
from headrace.metrics.curves import sensitivity_at_specificity as sensitivity_at_specificity
from headrace.metrics.curves import specificity_at_sensitivity as specificity_at_sensitivity
from headrace.metrics.ranking import average_precision_at_k as average_precision_at_k
from headrace.metrics.ranking import precision_at_k as precision_at_k
from headrace.metrics.ranking import precision_at_top_k as precision_at_top_k
from headrace.metrics.ranking import recall_at_k as recall_at_k
from headrace.metrics.ranking import recall_at_top_k as recall_at_top_k
from headrace.metrics.ranking import sparse_average_precision_at_k as sparse_average_precision_at_k
from headrace.metrics.ranking import sparse_precision_at_k as sparse_precision_at_k
__all__ = ['accuracy', 'auc', 'average_precision_at_k', 'false_negatives', 'false_negatives_at_thresholds', 'false_positives', 'false_positives_at_thresholds', 'mean', 'mean_absolute_error', 'mean_cosine_distance', 'mean_iou', 'mean_per_class_accuracy', 'mean_relative_error', 'mean_squared_error', 'mean_tensor', 'percentage_below', 'precision', 'precision_at_k', 'precision_at_thresholds', 'precision_at_top_k', 'recall', 'recall_at_k', 'recall_at_thresholds', 'recall_at_top_k', 'root_mean_squared_error', 'sensitivity_at_specificity', 'sparse_average_precision_at_k', 'sparse_precision_at_k', 'specificity_at_sensitivity', 'true_negatives', 'true_negatives_at_thresholds', 'true_positives', 'true_positives_at_thresholds']
