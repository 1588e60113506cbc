"""Columns of numbers: numeric, bucketised, indicators of categories, embeddings."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import headrace as tf
from headrace.feature_column.base import (
    CategoricalColumn,
    ColumnVariables,
    DenseColumn,
    FeatureColumn,
    IdWeightPair,
    TransformationCache,
)

__all__ = [
    "BucketizedColumn",
    "EmbeddingColumn",
    "IndicatorColumn",
    "NumericColumn",
    "SharedEmbeddingColumn",
]


@dataclass(frozen=True)
class NumericColumn(DenseColumn):
    """Numbers as they are."""

    key: str
    shape: tuple[int, ...]
    default_value: Any
    dtype: Any
    normalizer_fn: Callable[[Any], Any] | None

    @property
    def name(self) -> str:
        return self.key

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        return {self.key: tf.FixedLenFeature(self.shape, self.dtype, self.default_value)}

    def transform_feature(self, features: TransformationCache) -> Any:
        value = features.get(self.key)
        if isinstance(value, tf.SparseTensor):
            raise ValueError(
                "The corresponding Tensor of numerical column must be a Tensor. SparseTensor is "
                f"not supported. key: {self.key}. Use tf.sparse_tensor_to_dense."
            )
        if self.normalizer_fn is not None:
            value = self.normalizer_fn(value)
        return tf.to_float(value)

    @property
    def variable_shape(self) -> tf.TensorShape:
        return tf.TensorShape(self.shape)

    def get_dense_tensor(self, features: TransformationCache, options: ColumnVariables) -> Any:
        return features.get(self)


@dataclass(frozen=True)
class BucketizedColumn(DenseColumn, CategoricalColumn):
    """Numbers by the interval in which they lie."""

    source_column: NumericColumn
    boundaries: tuple[float, ...]

    @property
    def name(self) -> str:
        return f"{self.source_column.name}_bucketized"

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        return self.source_column.parse_example_spec

    def transform_feature(self, features: TransformationCache) -> Any:
        """The number of the interval of each number, int32."""
        return tf.raw_ops.Bucketize(
            input=features.get(self.source_column), boundaries=list(self.boundaries)
        )

    @property
    def variable_shape(self) -> tf.TensorShape:
        return tf.TensorShape((*self.source_column.shape, len(self.boundaries) + 1))

    def get_dense_tensor(self, features: TransformationCache, options: ColumnVariables) -> Any:
        return tf.one_hot(features.get(self), len(self.boundaries) + 1)

    @property
    def num_buckets(self) -> int:
        return (len(self.boundaries) + 1) * self.source_column.shape[0]

    def get_sparse_tensors(self, features: TransformationCache) -> IdWeightPair:
        """Ids; each place of a vector of numbers has intervals of its own."""
        buckets = features.get(self)
        batch, width = tf.shape(buckets)[0], self.source_column.shape[0]
        rows = tf.reshape(tf.tile(tf.expand_dims(tf.range(batch), -1), [1, width]), [-1])
        places = tf.tile(tf.range(width), [batch])
        ids = tf.reshape(buckets, [-1]) + (len(self.boundaries) + 1) * places
        indices = tf.cast(tf.transpose(tf.stack([rows, places])), tf.int64)
        shape = tf.cast(tf.stack([batch, width]), tf.int64)
        return IdWeightPair(tf.SparseTensor(indices, tf.cast(ids, tf.int64), shape), None)


@dataclass(frozen=True)
class IndicatorColumn(DenseColumn):
    """How often each category comes, or the sum of its weights."""

    categorical_column: CategoricalColumn

    @property
    def name(self) -> str:
        return f"{self.categorical_column.name}_indicator"

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        return self.categorical_column.parse_example_spec

    def transform_feature(self, features: TransformationCache) -> Any:
        ids, weights = self.categorical_column.get_sparse_tensors(features)
        size = self.categorical_column.num_buckets
        if weights is not None:
            weighted = tf.sparse_merge(ids, weights, size)
            # Empty rows stay empty, and padding with -1 falls out.
            weighted = tf.sparse_slice(weighted, [0, 0], weighted.dense_shape)
            return tf.scatter_nd(weighted.indices, weighted.values, weighted.dense_shape)
        dense = tf.sparse_tensor_to_dense(ids, default_value=-1)
        return tf.reduce_sum(tf.one_hot(dense, size), axis=[-2])

    @property
    def variable_shape(self) -> tf.TensorShape:
        return tf.TensorShape([1, self.categorical_column.num_buckets])

    def get_dense_tensor(self, features: TransformationCache, options: ColumnVariables) -> Any:
        return features.get(self)


@dataclass(frozen=True)
class EmbeddingColumn(DenseColumn):
    """A learned vector for each category; those of an example are combined."""

    categorical_column: CategoricalColumn
    dimension: int
    combiner: str
    initializer: Any
    ckpt_to_load_from: str | None
    tensor_name_in_ckpt: str | None
    max_norm: float | None
    trainable: bool

    @property
    def name(self) -> str:
        return f"{self.categorical_column.name}_embedding"

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        return self.categorical_column.parse_example_spec

    def transform_feature(self, features: TransformationCache) -> Any:
        return self.categorical_column.get_sparse_tensors(features)

    @property
    def variable_shape(self) -> tf.TensorShape:
        return tf.TensorShape([self.dimension])

    def get_dense_tensor(self, features: TransformationCache, options: ColumnVariables) -> Any:
        ids, weights = self.categorical_column.get_sparse_tensors(features)
        table = tf.get_variable(
            "embedding_weights",
            shape=(self.categorical_column.num_buckets, self.dimension),
            dtype=tf.float32,
            initializer=self.initializer,
            trainable=self.trainable and options.trainable,
            collections=options.collections,
        )
        return self.looked_up(table, ids, weights)

    def looked_up(self, table: Any, ids: Any, weights: Any) -> Any:
        """The combined rows of ``table``, [batch, dimension]."""
        if self.ckpt_to_load_from is not None:
            variable = table
            if hasattr(table, "_get_variable_list"):
                variable = table._get_variable_list()
            tf.train.init_from_checkpoint(
                self.ckpt_to_load_from, {self.tensor_name_in_ckpt: variable}
            )
        return tf.nn.safe_embedding_lookup_sparse(
            table, ids, weights, combiner=self.combiner, max_norm=self.max_norm
        )


@dataclass(frozen=True)
class SharedEmbeddingColumn(EmbeddingColumn):
    """An embedding whose table several columns use."""

    shared_embedding_collection_name: str

    @property
    def name(self) -> str:
        return f"{self.categorical_column.name}_shared_embedding"

    @property
    def _var_scope_name(self) -> str:
        return self.shared_embedding_collection_name

    def get_dense_tensor(self, features: TransformationCache, options: ColumnVariables) -> Any:
        ids, weights = self.categorical_column.get_sparse_tensors(features)
        graph = tf.get_default_graph()
        tables = graph.get_collection_ref(self.shared_embedding_collection_name)
        shape = (self.categorical_column.num_buckets, self.dimension)
        if not tables:
            tables.append(
                tf.get_variable(
                    "embedding_weights",
                    shape=shape,
                    dtype=tf.float32,
                    initializer=self.initializer,
                    trainable=self.trainable and options.trainable,
                    collections=options.collections,
                )
            )
        table = tables[0]
        if tuple(table.shape.as_list()) != shape:
            raise ValueError(
                f"Shared embedding collection {self.shared_embedding_collection_name} holds a "
                f"table of shape {table.shape}, but {self.name} needs {shape}. Has another graph "
                "part a collection of that name?"
            )
        return self.looked_up(table, ids, weights)


def check_dimension(dimension: Any) -> None:
    """Refuse the width of an embedding that is no positive number."""
    if dimension is None or isinstance(dimension, bool) or not dimension >= 1:
        raise ValueError(f"Invalid dimension {dimension}. It must be a number from 1.")


def default_initializer(dimension: int) -> Any:
    """Truncated normal with the deviation 1 / sqrt(dimension)."""
    return tf.truncated_normal_initializer(mean=0.0, stddev=1 / math.sqrt(dimension))


def check_columns(columns: Sequence[FeatureColumn]) -> list[Any]:
    """A list of columns with different names.

    Raises:
        ValueError: if something is no column, there is none, or a name comes twice.
    """
    if isinstance(columns, FeatureColumn):
        columns = [columns]
    if isinstance(columns, dict):
        raise ValueError("Expected feature_columns to be iterable, found dict.")
    found = list(columns)
    if not found:
        raise ValueError("feature_columns must not be empty.")
    seen: dict[str, Any] = {}
    for column in found:
        if not isinstance(column, FeatureColumn):
            raise ValueError(
                "Items of feature_columns must be a FeatureColumn. "
                f"Given (type {type(column).__name__}): {column!r:.200}."
            )
        if column.name in seen:
            raise ValueError(
                f"Duplicate feature column name found for columns: {column} and "
                f"{seen[column.name]}. This usually means that these columns refer to the same "
                "base feature. Either one must be discarded or a duplicated but renamed item must "
                "be inserted in features dict."
            )
        seen[column.name] = column
    return found
