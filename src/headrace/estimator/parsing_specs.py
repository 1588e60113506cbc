"""What `tf.parse_example` needs to read features, labels and weights for a premade estimator."""

from __future__ import annotations

from typing import Any

import headrace as tf
from headrace.feature_column.numeric import NumericColumn

__all__ = ["classifier_parse_example_spec", "regressor_parse_example_spec"]


def classifier_parse_example_spec(
    feature_columns: Any,
    label_key: str,
    label_dtype: Any = tf.int64,
    label_default: Any = None,
    weight_column: Any = None,
) -> dict[str, Any]:
    """Features of columns, a label of shape ``[1]``, and the weight of the example.

    Args:
        feature_columns: columns of `tf.feature_column`.
        label_key: the name of the label.
        label_dtype: int64 for numbers of classes, string for names.
        label_default: the label of examples that have none; without it they are an error.
        weight_column: the name of the weight, or a numeric column; its values are float32.

    Returns:
        What `tf.parse_example` takes, by name.

    Raises:
        ValueError: if the label or the weight is also a feature, or ``label_default`` does not
            fit the dtype.
        TypeError: if ``weight_column`` is neither a name nor a numeric column.

    >>> spec = tf.estimator.classifier_parse_example_spec(
    ...     [tf.feature_column.numeric_column("x")], label_key="y"
    ... )
    >>> sorted(spec), spec["y"].shape, spec["y"].dtype
    (['x', 'y'], (1,), tf.int64)
    """
    label = tf.FixedLenFeature((1,), label_dtype, label_default)
    return _joined(feature_columns, label_key, label, weight_column)


def regressor_parse_example_spec(
    feature_columns: Any,
    label_key: str,
    label_dtype: Any = tf.float32,
    label_default: Any = None,
    label_dimension: int = 1,
    weight_column: Any = None,
) -> dict[str, Any]:
    """Features of columns, a label of shape ``[label_dimension]``, and the weight of the example.

    Args:
        label_dtype: float32, or int64 for counts.
        label_dimension: how many numbers.
        feature_columns, label_key, label_default, weight_column: as for
            `tf.estimator.classifier_parse_example_spec`.

    Returns:
        What `tf.parse_example` takes, by name.

    Raises:
        ValueError: as that function.
        TypeError: as that function.

    >>> spec = tf.estimator.regressor_parse_example_spec(
    ...     [tf.feature_column.numeric_column("x")], label_key="y", weight_column="w"
    ... )
    >>> sorted(spec)
    ['w', 'x', 'y']
    """
    label = tf.FixedLenFeature((label_dimension,), label_dtype, label_default)
    return _joined(feature_columns, label_key, label, weight_column)


def _joined(columns: Any, label_key: str, label: Any, weight_column: Any) -> dict[str, Any]:
    spec: dict[str, Any] = tf.feature_column.make_parse_example_spec(columns)
    if label_key in spec:
        raise ValueError(
            f"label should not be used as feature. label_key: {label_key}, features: {sorted(spec)}"
        )
    spec[label_key] = label
    if weight_column is None:
        return spec
    if isinstance(weight_column, str):
        weight_column = tf.feature_column.numeric_column(weight_column)
    if not isinstance(weight_column, NumericColumn):
        raise TypeError(
            "weight_column should be the name of a feature or a tf.feature_column.numeric_column. "
            f"Given: {weight_column!r}"
        )
    if weight_column.key in spec:
        raise ValueError(
            "weight_column should not be used as feature or label. weight_column: "
            f"{weight_column.key}, features: {sorted(spec)}"
        )
    spec.update(weight_column.parse_example_spec)
    return spec
