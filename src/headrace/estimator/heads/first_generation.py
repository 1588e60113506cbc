"""``tf.contrib.estimator``'s functions that make heads, and heads of the premade estimators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace.estimator.heads.binary import BinaryClassHead
from headrace.estimator.heads.head import Head, of_first_generation
from headrace.estimator.heads.multi import MultiHead
from headrace.estimator.heads.multi_class import MultiClassHead
from headrace.estimator.heads.multi_label import MultiLabelHead
from headrace.estimator.heads.regression import (
    LogisticRegressionHead,
    PoissonRegressionHead,
    RegressionHead,
)

__all__ = [
    "binary_classification_head",
    "classifier_head",
    "logistic_regression_head",
    "multi_class_head",
    "multi_head",
    "multi_label_head",
    "poisson_regression_head",
    "regression_head",
]

_MEAN = "weighted_sum_over_batch_size"


def binary_classification_head(
    weight_column: Any = None,
    thresholds: Any = None,
    label_vocabulary: Any = None,
    loss_reduction: Any = _MEAN,
    loss_fn: Any = None,
    name: str | None = None,
) -> Head:
    """One logit for two classes: see `tf.estimator.BinaryClassHead`.

    It takes logits of shape ``[D0, ..., DN, 1]``.

    Raises:
        ValueError: as that class.

    >>> tf.contrib.estimator.binary_classification_head().logits_dimension
    1
    """
    return of_first_generation(
        BinaryClassHead(weight_column, thresholds, label_vocabulary, loss_reduction, loss_fn, name)
    )


def multi_class_head(
    n_classes: int,
    weight_column: Any = None,
    label_vocabulary: Any = None,
    loss_reduction: Any = _MEAN,
    loss_fn: Any = None,
    name: str | None = None,
) -> Head:
    """A logit for each class: see `tf.estimator.MultiClassHead`.

    It takes logits of shape ``[D0, ..., DN, n_classes]``.

    Raises:
        ValueError: as that class.

    >>> tf.contrib.estimator.multi_class_head(n_classes=3).logits_dimension
    3
    """
    return of_first_generation(
        MultiClassHead(n_classes, weight_column, label_vocabulary, loss_reduction, loss_fn, name)
    )


def multi_label_head(
    n_classes: int,
    weight_column: Any = None,
    thresholds: Any = None,
    label_vocabulary: Any = None,
    loss_reduction: Any = _MEAN,
    loss_fn: Any = None,
    classes_for_class_based_metrics: Any = None,
    name: str | None = None,
) -> Head:
    """A logit for each class, any number of which may apply: see `tf.estimator.MultiLabelHead`.

    It takes logits of shape ``[D0, ..., DN, n_classes]``.

    Raises:
        ValueError: as that class.

    >>> tf.contrib.estimator.multi_label_head(n_classes=3).logits_dimension
    3
    """
    return of_first_generation(
        MultiLabelHead(
            n_classes,
            weight_column,
            thresholds,
            label_vocabulary,
            loss_reduction,
            loss_fn,
            classes_for_class_based_metrics,
            name,
        )
    )


def regression_head(
    weight_column: Any = None,
    label_dimension: int = 1,
    loss_reduction: Any = _MEAN,
    loss_fn: Any = None,
    inverse_link_fn: Any = None,
    name: str | None = None,
) -> Head:
    """Numbers: see `tf.estimator.RegressionHead`.

    It takes logits of shape ``[D0, ..., DN, label_dimension]``.

    Raises:
        ValueError: as that class.

    >>> tf.contrib.estimator.regression_head(label_dimension=2).logits_dimension
    2
    """
    return of_first_generation(
        RegressionHead(
            label_dimension, weight_column, loss_reduction, loss_fn, inverse_link_fn, name
        )
    )


def poisson_regression_head(
    weight_column: Any = None,
    label_dimension: int = 1,
    loss_reduction: Any = _MEAN,
    compute_full_loss: bool = True,
    name: str | None = None,
) -> Head:
    """Counts: see `tf.estimator.PoissonRegressionHead`.

    It takes logits of shape ``[D0, ..., DN, label_dimension]``.

    Raises:
        ValueError: as that class.

    >>> tf.contrib.estimator.poisson_regression_head().logits_dimension
    1
    """
    return of_first_generation(
        PoissonRegressionHead(
            label_dimension, weight_column, loss_reduction, compute_full_loss, name
        )
    )


def logistic_regression_head(
    weight_column: Any = None, loss_reduction: Any = _MEAN, name: str | None = None
) -> Head:
    """Probabilities: see `tf.estimator.LogisticRegressionHead`.

    It takes logits of shape ``[D0, ..., DN, 1]``.

    Raises:
        ValueError: as that class.

    >>> tf.contrib.estimator.logistic_regression_head().logits_dimension
    1
    """
    return of_first_generation(LogisticRegressionHead(weight_column, loss_reduction, name))


def multi_head(heads: Sequence[Any], head_weights: Sequence[float] | None = None) -> Head:
    """Several heads on one model: see `tf.estimator.MultiHead`.

    It takes logits of shape ``[D0, ..., DN, sum of all]``.

    Raises:
        ValueError: as that class.

    >>> heads = [tf.contrib.estimator.regression_head(name=name) for name in "ab"]
    >>> tf.contrib.estimator.multi_head(heads).logits_dimension
    2
    """
    return of_first_generation(MultiHead(heads, head_weights))


def classifier_head(
    n_classes: int, weight_column: Any, label_vocabulary: Any, loss_reduction: Any
) -> Head:
    """The head of a premade classifier."""
    if n_classes == 2:
        return binary_classification_head(
            weight_column, label_vocabulary=label_vocabulary, loss_reduction=loss_reduction
        )
    return multi_class_head(n_classes, weight_column, label_vocabulary, loss_reduction)
