"""The features of a batch: looked up by name, made tensors, and transformed once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import headrace as tf
from headrace.errors import suggest
from headrace.feature_column.columns import FeatureColumn
from headrace.feature_column.state import StateManager
from headrace.ops.sparse.sparse_tensor import convert_to_tensor_or_sparse_tensor


class FeatureTransformationCache:
    """What columns make of features, each made once for all columns that use it.

    Args:
        features: tensors, SparseTensors or what converts to them, by the names of features (or
            by columns, whose result they then are).

    Raises:
        ValueError: if ``features`` is no dictionary.

    >>> cache = tf.feature_column.features.FeatureTransformationCache({"price": [1.0, 2.0]})
    >>> price = tf.feature_column.numeric_column("price")
    >>> cache.get(price, None) is cache.get(price, None)
    True
    """

    def __init__(self, features: Mapping[Any, Any]) -> None:
        if not isinstance(features, Mapping):
            raise ValueError(
                f"We expected a dictionary here. Instead we got: {features}. Features are a "
                "dictionary from names to tensors."
            )
        self._features = dict(features)
        self._made: dict[Any, Any] = {}
        #: The columns under way, the one that was asked for first in front.
        self._asking: list[FeatureColumn] = []

    def get(self, key: Any, state_manager: StateManager | None = None) -> Any:
        """The feature of a name, at least a matrix; or what a column makes of the features.

        Raises:
            ValueError: if there is no such feature, or it is a scalar.
            TypeError: if ``key`` is neither a name nor a column.
        """
        if key in self._made:
            return self._made[key]
        if key in self._features:
            self._made[key] = self._as_tensor(key)
            return self._made[key]
        if isinstance(key, str):
            raise ValueError(self._missing(key))
        if not isinstance(key, FeatureColumn):
            raise TypeError(f'"key" must be either a "str" or "FeatureColumn". Provided: {key}')
        self._asking.append(key)
        made = key.transform_feature(self, state_manager)  # type: ignore[arg-type]
        self._asking.pop()
        if made is None:
            raise ValueError(f"Column {key.name} is not supported.")
        self._made[key] = made
        return made

    def _missing(self, key: str) -> str:
        names = sorted(str(name) for name in self._features)
        column = f" Column {self._asking[0].name} needs it." if self._asking else ""
        listed = ", ".join(map(repr, names)) or "none"
        return (
            f"Feature {key} is not in features dictionary.{column}{suggest(key, names)} The "
            f"features are: {listed}."
        )

    def _as_tensor(self, key: Any) -> Any:
        tensor = convert_to_tensor_or_sparse_tensor(self._features[key])
        problem = f"Feature (key: {key}) cannot have rank 0. Given: {tensor}"
        rank = tensor.get_shape().ndims
        if rank == 0:
            raise ValueError(problem)
        if rank == 1:
            return _as_matrix(tensor)
        if rank is not None:
            return tensor
        positive = tf.assert_positive(tf.rank(tensor), message=problem)
        with tf.control_dependencies([positive]):
            return tf.cond(
                tf.equal(1, tf.rank(tensor)), lambda: _as_matrix(tensor), lambda: _same(tensor)
            )


def _as_matrix(tensor: Any) -> Any:
    """A column of one element for each example."""
    if isinstance(tensor, tf.SparseTensor):
        return tf.sparse_reshape(tensor, [tf.shape(tensor)[0], 1])
    return tf.expand_dims(tensor, -1)


def _same(tensor: Any) -> Any:
    if isinstance(tensor, tf.SparseTensor):
        return tf.SparseTensor(tensor.indices, tf.identity(tensor.values), tensor.dense_shape)
    return tf.identity(tensor)


def to_sparse_input(tensor: Any, ignore_value: Any = None) -> Any:
    """A dense feature as a SparseTensor without its missing elements: -1, or an empty string.

    Args:
        ignore_value: what counts as missing; by default 0 for floats.
    """
    tensor = convert_to_tensor_or_sparse_tensor(tensor)
    if isinstance(tensor, tf.SparseTensor):
        return tensor
    with tf.name_scope(None, "to_sparse_input", (tensor,)):
        if ignore_value is None:
            ignore_value = b"" if tensor.dtype == tf.string else -int(tensor.dtype.is_integer)
        if tensor.dtype.is_unsigned and ignore_value < 0:
            # No element is -1; TensorFlow compares with the same bits.
            ignore_value = np.iinfo(tensor.dtype.as_numpy_dtype).max
        ignored = tf.constant(ignore_value, tensor.dtype, name="ignore_value")
        indices = tf.where(tf.not_equal(tensor, ignored), name="indices")
        return tf.SparseTensor(
            indices,
            tf.gather_nd(tensor, indices, name="values"),
            tf.shape(tensor, out_type=tf.int64, name="dense_shape"),
        )


def flat_rows(tensor: Any, size: int, column: Any) -> Any:
    """The tensor of a dense column as a matrix of ``size`` columns.

    Raises:
        ValueError: if the sizes that are known do not fit.
    """
    dims = tensor.shape.as_tuple
    if dims is not None and None not in dims[1:]:
        given = int(np.prod(dims[1:], dtype=np.int64))
        if given != size:
            raise ValueError(
                f"Column {column.name} takes {size} numbers for each example (shape "
                f"{tuple(column.variable_shape.as_list())}), but its feature has {given}: a tensor "
                f"of shape {tensor.shape}. Give the column the feature's shape, or reshape the "
                "feature."
            )
    return tf.reshape(tensor, [tf.shape(tensor)[0], size])
