"""What columns are: descriptions of features, and the tensors that they become."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import headrace as tf
from headrace.errors import suggest

__all__ = [
    "CategoricalColumn",
    "ColumnVariables",
    "DenseColumn",
    "FeatureColumn",
    "IdWeightPair",
    "TransformationCache",
    "column_key_error",
]


class IdWeightPair(NamedTuple):
    """The categories of examples: sparse ids [batch, n], and their weights if there are any."""

    id_tensor: Any
    weight_tensor: Any


class ColumnVariables(NamedTuple):
    """How a layer makes the variables of its columns."""

    collections: list[str]
    trainable: bool


class FeatureColumn:
    """A description of one feature: what it is called, how it is parsed, what becomes of it."""

    @property
    def name(self) -> str:
        """A name by which columns are sorted and variables are called."""
        raise NotImplementedError(f"{type(self).__name__} has no name.")

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        """What `tf.parse_example` is told to find it."""
        raise NotImplementedError(f"{type(self).__name__} has no parse_example_spec.")

    def transform_feature(self, features: TransformationCache) -> Any:
        """The column's tensor, dense or sparse."""
        raise NotImplementedError(f"{type(self).__name__} has no transform_feature.")

    @property
    def _var_scope_name(self) -> str:
        """The scope of its variables, below that of the layer."""
        return self.name


class DenseColumn(FeatureColumn):
    """A column that gives numbers: a dense tensor [batch, ...]."""

    @property
    def variable_shape(self) -> tf.TensorShape:
        """The shape of one example's numbers."""
        raise NotImplementedError(f"{type(self).__name__} has no variable_shape.")

    def get_dense_tensor(self, features: TransformationCache, options: ColumnVariables) -> Any:
        """The numbers, [batch, ...]."""
        raise NotImplementedError(f"{type(self).__name__} has no get_dense_tensor.")


class CategoricalColumn(FeatureColumn):
    """A column that gives categories: for each example any number of ids."""

    @property
    def num_buckets(self) -> int:
        """Ids are from 0 to this number."""
        raise NotImplementedError(f"{type(self).__name__} has no num_buckets.")

    def get_sparse_tensors(self, features: TransformationCache) -> IdWeightPair:
        """The ids of each example."""
        return IdWeightPair(features.get(self), None)


class TransformationCache:
    """The features of a batch by key, and the tensors of columns, each made once.

    Raises:
        ValueError: from `get`, if a feature is missing or is a scalar.
    """

    def __init__(self, features: Mapping[Any, Any]) -> None:
        self._features = dict(features)
        self._made: dict[Any, Any] = {}

    def get(self, key: str | FeatureColumn) -> Any:
        """A feature with its batch, or the tensor of a column."""
        if key not in self._made:
            if isinstance(key, FeatureColumn):
                made = self._features[key] if key in self._features else key.transform_feature(self)
            else:
                made = self._raw(key)
            self._made[key] = made
        return self._made[key]

    def _raw(self, key: str) -> Any:
        if key not in self._features:
            raise column_key_error(key, self._features)
        value = tf.convert_to_tensor_or_sparse_tensor(self._features[key], name=key)
        rank = value.shape.ndims
        if rank == 0:
            raise ValueError(
                f"Feature (key: {key}) cannot have rank 0. Given: {value!r}. Features are "
                "batches: their first axis is the example."
            )
        if rank is not None and rank > 1:
            return value
        if isinstance(value, tf.SparseTensor):
            size = value.dense_shape
            shape = tf.concat([size, [1]], 0)
            return tf.sparse_reshape(value, shape) if rank == 1 else value
        return tf.expand_dims(value, -1) if rank == 1 else value


def column_key_error(key: str, features: Mapping[Any, Any]) -> ValueError:
    """What is said of a feature that the input does not have."""
    known = sorted(str(name) for name in features if isinstance(name, str))
    return ValueError(
        f"Feature {key} is not in features dictionary.{suggest(key, known)} "
        f"The features are {known}."
    )
