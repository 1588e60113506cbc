"""Columns for a matrix of numbers, found from the matrix."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import headrace as tf
from headrace.contrib.layers.feature_column_ops import infer_real_valued_columns
from headrace.contrib.learn.frames import extract_dask_data, extract_pandas_matrix

__all__ = ["infer_real_valued_columns_from_input", "infer_real_valued_columns_from_input_fn"]


def infer_real_valued_columns_from_input_fn(input_fn: Callable[[], Any]) -> list[Any]:
    """Real-valued columns for all features that an input function gives.

    Args:
        input_fn: gives pairs (features, labels); features are numbers ``[batch, size]``.

    Raises:
        ValueError: if a feature has no known size, or is none of numbers.

    >>> columns = tf.contrib.learn.infer_real_valued_columns_from_input_fn(
    ...     lambda: ({"age": tf.zeros([5, 1])}, None)
    ... )
    >>> [column.column_name for column in columns]
    ['age']
    """
    from headrace.estimator.input_results import inputs_of

    with tf.Graph().as_default():
        return infer_real_valued_columns(inputs_of(input_fn(), input_fn).features)


def infer_real_valued_columns_from_input(x: Any) -> list[Any]:
    """One real-valued column for a matrix, or one for each of several.

    Args:
        x: numbers, an array ``[examples, size]``, a data frame, or arrays by name.

    Raises:
        ValueError: if it has another shape.

    >>> [column] = tf.contrib.learn.infer_real_valued_columns_from_input(np.zeros([5, 3]))
    >>> column.column_name, column.dimension
    ('', 3)
    """
    with tf.Graph().as_default():
        if isinstance(x, Mapping):
            return infer_real_valued_columns({name: _like(value) for name, value in x.items()})
        return infer_real_valued_columns(_like(x))


def _like(x: Any) -> Any:
    array = np.asarray(extract_pandas_matrix(extract_dask_data(x)))
    return tf.placeholder(array.dtype, (None, *array.shape[1:]))
