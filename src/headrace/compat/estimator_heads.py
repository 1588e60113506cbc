"""Heads under the inner names of release 1.15, whose losses are sums by default."""

from __future__ import annotations

from typing import Any

from headrace.estimator.heads.first_generation import (
    binary_classification_head,
    classifier_head,
    multi_class_head,
    poisson_regression_head,
    regression_head,
)
from headrace.estimator.heads.head import Head, LossSpec

_SUM = "weighted_sum"
_Head = Head
_binary_logistic_or_multi_class_head = classifier_head

__all__ = ["Head", "LossSpec"]


def _binary_logistic_head_with_sigmoid_cross_entropy_loss(
    weight_column: Any = None,
    thresholds: Any = None,
    label_vocabulary: Any = None,
    loss_reduction: Any = _SUM,
    loss_fn: Any = None,
    name: str | None = None,
) -> Head:
    return binary_classification_head(
        weight_column, thresholds, label_vocabulary, loss_reduction, loss_fn, name
    )


def _multi_class_head_with_softmax_cross_entropy_loss(
    n_classes: int,
    weight_column: Any = None,
    label_vocabulary: Any = None,
    loss_reduction: Any = _SUM,
    loss_fn: Any = None,
    name: str | None = None,
) -> Head:
    return multi_class_head(
        n_classes, weight_column, label_vocabulary, loss_reduction, loss_fn, name
    )


def _regression_head(
    weight_column: Any = None,
    label_dimension: int = 1,
    loss_reduction: Any = _SUM,
    loss_fn: Any = None,
    inverse_link_fn: Any = None,
    name: str | None = None,
) -> Head:
    return regression_head(
        weight_column, label_dimension, loss_reduction, loss_fn, inverse_link_fn, name
    )


_regression_head_with_mean_squared_error_loss = _regression_head


def _poisson_regression_head(
    weight_column: Any = None,
    label_dimension: int = 1,
    loss_reduction: Any = _SUM,
    compute_full_loss: bool = True,
    name: str | None = None,
) -> Head:
    return poisson_regression_head(
        weight_column, label_dimension, loss_reduction, compute_full_loss, name
    )
