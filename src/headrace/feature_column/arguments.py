"""Arguments of columns: checked when a column is made."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import headrace as tf


def checked_key(key: Any) -> str:
    """Raises ValueError if the name of a feature is no string."""
    if not isinstance(key, str):
        raise ValueError(f"key must be a string. Got: type {type(key)}. Given key: {key}.")
    return key


def checked_shape(shape: Any, key: Any) -> tuple[int, ...]:
    """A shape as a tuple of positive integers.

    Raises:
        TypeError: if a size is no integer.
        ValueError: if it is less than 1.
    """
    if isinstance(shape, tf.TensorShape):
        shape = shape.as_list()
    sizes = tuple(shape) if isinstance(shape, (list, tuple, np.ndarray)) else (shape,)
    for size in sizes:
        if isinstance(size, bool) or not isinstance(size, (int, np.integer)):
            raise TypeError(f"shape dimensions must be integer. shape: {sizes}, key: {key}")
        if size < 1:
            raise ValueError(f"shape dimensions must be greater than 0. shape: {sizes}, key: {key}")
    return tuple(int(size) for size in sizes)


def numeric_dtype(dtype: Any, key: Any) -> tf.DType:
    """Raises ValueError for a type that does not convert to float."""
    kind = tf.as_dtype(dtype)
    if not (kind.is_integer or kind.is_floating):
        raise ValueError(f"dtype must be convertible to float. dtype: {kind}, key: {key}")
    return kind


def string_or_int(dtype: Any, prefix: str) -> tf.DType:
    """Raises ValueError for a type that names no category."""
    kind = tf.as_dtype(dtype)
    if kind != tf.string and not kind.is_integer:
        raise ValueError(f"{prefix} dtype must be string or integer. dtype: {kind}.")
    return kind


def checked_normalizer(normalizer_fn: Any) -> Any:
    """Raises TypeError for what is neither callable nor None."""
    if normalizer_fn is not None and not callable(normalizer_fn):
        raise TypeError(f"normalizer_fn must be a callable. Given: {normalizer_fn}")
    return normalizer_fn


def checked_default(shape: tuple[int, ...], default: Any, dtype: tf.DType, key: str) -> Any:
    """The default value of a numeric feature as nested tuples of ``shape``; None stays.

    Raises:
        ValueError: if it has another shape.
        TypeError: if it has another type.
    """
    if default is None:
        return None
    if isinstance(default, int) or (isinstance(default, float) and dtype.is_floating):
        return _filled(shape, default)
    if hasattr(default, "tolist"):
        default = default.tolist()
    if isinstance(default, (list, tuple)):
        if not _has_shape(default, shape):
            raise ValueError(
                "The shape of default_value must be equal to given shape. default_value: "
                f"{default}, shape: {shape}, key: {key}"
            )
        flat = _flat(default)
        if all(isinstance(v, int) for v in flat):
            return _as_tuple(default)
        if dtype.is_floating and any(isinstance(v, float) for v in flat):
            return _as_tuple(default)
    raise TypeError(
        f"default_value must be compatible with dtype. default_value: {default}, dtype: {dtype}, "
        f"key: {key}"
    )


def _filled(shape: tuple[int, ...], value: Any) -> Any:
    return (_filled(shape[1:], value),) * shape[0] if shape else value


def _as_tuple(value: Any) -> Any:
    return tuple(map(_as_tuple, value)) if isinstance(value, (list, tuple)) else value


def _flat(value: Any) -> list[Any]:
    if not isinstance(value, (list, tuple)):
        return [value]
    return [leaf for element in value for leaf in _flat(element)]


def _has_shape(value: Any, shape: Sequence[int]) -> bool:
    if not isinstance(value, (list, tuple)):
        return not shape
    return (
        bool(shape)
        and len(value) == shape[0]
        and all(_has_shape(element, shape[1:]) for element in value)
    )


def check_embedding(dimension: Any, ckpt: Any, tensor_name: Any) -> None:
    """Raises ValueError for a size below 1, or half of what names a checkpoint's tensor."""
    if dimension is None or dimension < 1:
        raise ValueError(f"Invalid dimension {dimension}.")
    if (ckpt is None) != (tensor_name is None):
        raise ValueError(
            "Must specify both `ckpt_to_load_from` and `tensor_name_in_ckpt` or none of them."
        )


def embedding_initializer(initializer: Any, dimension: int, what: str = "") -> Any:
    """The initialiser, by default a truncated normal of deviation ``1 / sqrt(dimension)``.

    Raises:
        ValueError: if it is not callable.
    """
    if initializer is None:
        return tf.truncated_normal_initializer(mean=0.0, stddev=1 / math.sqrt(dimension))
    if not callable(initializer):
        raise ValueError(f"initializer must be callable if specified.{what}")
    return initializer


def check_oov(num_oov_buckets: Any, default_given: bool, key: str) -> None:
    """Raises ValueError for negative buckets, or buckets beside a default value."""
    if num_oov_buckets:
        if default_given:
            raise ValueError(f"Can't specify both num_oov_buckets and default_value in {key}.")
        if num_oov_buckets < 0:
            raise ValueError(f"Invalid num_oov_buckets {num_oov_buckets} in {key}.")


def same_kind(column_dtype: tf.DType, tensor: Any, key: str) -> None:
    """Raises ValueError unless both are strings, or both integers."""
    if column_dtype.is_integer != tensor.dtype.is_integer:
        raise ValueError(
            "Column dtype and SparseTensors dtype must be compatible. "
            f"key: {key}, column dtype: {column_dtype}, tensor dtype: {tensor.dtype}"
        )
    string_or_int(tensor.dtype, f"column_name: {key} input_tensor")
