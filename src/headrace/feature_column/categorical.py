"""Columns of categories: hashed, from vocabularies, identities, weighted, crossed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import headrace as tf
from headrace.feature_column.base import (
    CategoricalColumn,
    FeatureColumn,
    IdWeightPair,
    TransformationCache,
)
from headrace.lookup.vocabulary import index_table_from_file, index_table_from_tensor

__all__ = [
    "CrossedColumn",
    "HashedCategoricalColumn",
    "IdentityCategoricalColumn",
    "SequenceCategoricalColumn",
    "VocabularyFileCategoricalColumn",
    "VocabularyListCategoricalColumn",
    "WeightedCategoricalColumn",
    "to_sparse",
]


def to_sparse(value: Any, ignored: Any = None) -> tf.SparseTensor:
    """A feature as a sparse tensor, without the entries that say "nothing": "" and -1."""
    value = tf.convert_to_tensor_or_sparse_tensor(value)
    if isinstance(value, tf.SparseTensor):
        return value
    if ignored is None:
        ignored = "" if value.dtype == tf.string else -1
    places = tf.where(tf.not_equal(value, tf.constant(ignored, value.dtype)))
    return tf.SparseTensor(
        indices=places,
        values=tf.gather_nd(value, places),
        dense_shape=tf.shape(value, out_type=tf.int64),
    )


@dataclass(frozen=True)
class _KeyedColumn(CategoricalColumn):
    """A column over one feature."""

    key: str

    @property
    def name(self) -> str:
        return self.key

    def transform_feature(self, features: TransformationCache) -> Any:
        """Ids, int64, in the places of the feature."""
        entries = to_sparse(features.get(self.key))
        return tf.SparseTensor(entries.indices, self._ids(entries.values), entries.dense_shape)

    def _ids(self, values: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no ids.")

    def _check(self, values: Any, dtype: Any) -> None:
        """Refuse a feature that is text where numbers are expected, or the other way round."""
        if (values.dtype == tf.string) != (dtype == tf.string):
            raise ValueError(
                "Column dtype and SparseTensors dtype must be compatible. "
                f"key: {self.key}, column dtype: {dtype.name}, tensor dtype: {values.dtype.name}"
            )
        if values.dtype != tf.string and not values.dtype.is_integer:
            raise ValueError(
                "SparseTensor dtype must be string or integer. "
                f"key: {self.key}, tensor dtype: {values.dtype.name}"
            )


@dataclass(frozen=True)
class HashedCategoricalColumn(_KeyedColumn):
    """Categories by a hash: the fingerprint of the text, modulo the number of buckets."""

    hash_bucket_size: int
    dtype: Any

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        return {self.key: tf.VarLenFeature(self.dtype)}

    @property
    def num_buckets(self) -> int:
        return self.hash_bucket_size

    def _ids(self, values: Any) -> Any:
        self._check(values, self.dtype)
        text = values if self.dtype == tf.string else tf.as_string(values)
        return tf.string_to_hash_bucket_fast(text, self.hash_bucket_size, name="lookup")


@dataclass(frozen=True)
class VocabularyFileCategoricalColumn(_KeyedColumn):
    """Categories by their line in a file."""

    vocabulary_file: str
    vocabulary_size: int
    num_oov_buckets: int
    default_value: int
    dtype: Any

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        return {self.key: tf.VarLenFeature(self.dtype)}

    @property
    def num_buckets(self) -> int:
        return self.vocabulary_size + self.num_oov_buckets

    def _ids(self, values: Any) -> Any:
        self._check(values, self.dtype)
        integers = self.dtype.is_integer
        table = index_table_from_file(
            vocabulary_file=self.vocabulary_file,
            num_oov_buckets=self.num_oov_buckets,
            vocab_size=self.vocabulary_size,
            default_value=self.default_value,
            key_dtype=tf.int64 if integers else self.dtype,
            name=f"{self.key}_lookup",
        )
        return table.lookup(tf.cast(values, tf.int64) if integers else values)


@dataclass(frozen=True)
class VocabularyListCategoricalColumn(_KeyedColumn):
    """Categories by their place in a list."""

    vocabulary_list: tuple[Any, ...]
    dtype: Any
    default_value: int
    num_oov_buckets: int

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        return {self.key: tf.VarLenFeature(self.dtype)}

    @property
    def num_buckets(self) -> int:
        return len(self.vocabulary_list) + self.num_oov_buckets

    def _ids(self, values: Any) -> Any:
        self._check(values, self.dtype)
        integers = self.dtype.is_integer
        table = index_table_from_tensor(
            tf.constant(self.vocabulary_list, tf.int64 if integers else self.dtype),
            default_value=self.default_value,
            num_oov_buckets=self.num_oov_buckets,
            dtype=tf.int64 if integers else self.dtype,
            name=f"{self.key}_lookup",
        )
        return table.lookup(tf.cast(values, tf.int64) if integers else values)


@dataclass(frozen=True)
class IdentityCategoricalColumn(_KeyedColumn):
    """Categories that are numbers already."""

    number_buckets: int
    default_value: int | None

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        return {self.key: tf.VarLenFeature(tf.int64)}

    @property
    def num_buckets(self) -> int:
        return self.number_buckets

    def _ids(self, values: Any) -> Any:
        if not values.dtype.is_integer:
            raise ValueError(
                f"Invalid input, not integer. key: {self.key} dtype: {values.dtype.name}"
            )
        values = tf.cast(values, tf.int64)
        size = tf.constant(self.number_buckets, tf.int64)
        zero = tf.constant(0, tf.int64)
        if self.default_value is not None:
            outside = tf.logical_or(values < zero, values >= size)
            return tf.where(
                outside, tf.fill(tf.shape(values), tf.cast(self.default_value, tf.int64)), values
            )
        checks = [
            tf.assert_less(
                values,
                size,
                message=f'Bucket index for categorical column "{self.key}" exceeds number of '
                "buckets",
            ),
            tf.assert_greater_equal(
                values,
                zero,
                message=f'Negative bucket index for categorical column "{self.key}"',
            ),
        ]
        with tf.control_dependencies(checks):
            return tf.identity(values)


@dataclass(frozen=True)
class WeightedCategoricalColumn(CategoricalColumn):
    """Categories with a weight for each, which another feature holds."""

    categorical_column: CategoricalColumn
    weight_feature_key: str
    dtype: Any

    @property
    def name(self) -> str:
        return f"{self.categorical_column.name}_weighted_by_{self.weight_feature_key}"

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        spec = dict(self.categorical_column.parse_example_spec)
        if self.weight_feature_key in spec:
            raise ValueError(
                f"Parse config {self.weight_feature_key} conflicts with another column's."
            )
        spec[self.weight_feature_key] = tf.VarLenFeature(self.dtype)
        return spec

    @property
    def num_buckets(self) -> int:
        return self.categorical_column.num_buckets

    def transform_feature(self, features: TransformationCache) -> Any:
        weights = features.get(self.weight_feature_key)
        if weights.dtype.base_dtype != self.dtype:
            raise ValueError(
                f"Bad dtype, expected {self.dtype.name}, but got {weights.dtype.name}: the weights "
                f"{self.weight_feature_key} of {self.categorical_column.name}."
            )
        weights = to_sparse(weights, ignored=0)
        if not weights.dtype.is_floating:
            weights = tf.cast(weights, tf.float32)
        return IdWeightPair(features.get(self.categorical_column), weights)

    def get_sparse_tensors(self, features: TransformationCache) -> IdWeightPair:
        pair: IdWeightPair = features.get(self)
        return pair


@dataclass(frozen=True)
class CrossedColumn(CategoricalColumn):
    """Combinations of categories of several features, by a hash."""

    keys: tuple[Any, ...]
    hash_bucket_size: int
    hash_key: int | None

    @property
    def name(self) -> str:
        leaves = [key.name if isinstance(key, FeatureColumn) else key for key in self._leaves()]
        return "_X_".join(sorted(leaves))

    def _leaves(self) -> list[Any]:
        found: list[Any] = []
        for key in self.keys:
            found.extend(key._leaves() if isinstance(key, CrossedColumn) else [key])
        return found

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        spec: dict[str, Any] = {}
        for key in self.keys:
            spec.update(
                key.parse_example_spec
                if isinstance(key, FeatureColumn)
                else {key: tf.VarLenFeature(tf.string)}
            )
        return spec

    @property
    def num_buckets(self) -> int:
        return self.hash_bucket_size

    def transform_feature(self, features: TransformationCache) -> Any:
        inputs = []
        for key in self._leaves():
            if isinstance(key, str):
                inputs.append(features.get(key))
                continue
            ids, weights = key.get_sparse_tensors(features)
            if weights is not None:
                raise ValueError(
                    "crossed_column does not support weight_tensor, but the given column "
                    f"populates weight_tensor. Given column: {key.name}"
                )
            inputs.append(ids)
        return tf.sparse.cross_hashed(inputs, self.hash_bucket_size, self.hash_key)


@dataclass(frozen=True)
class SequenceCategoricalColumn(CategoricalColumn):
    """Categories of the steps of sequences: ids [batch, steps, n]."""

    categorical_column: CategoricalColumn

    @property
    def name(self) -> str:
        return self.categorical_column.name

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        return self.categorical_column.parse_example_spec

    @property
    def num_buckets(self) -> int:
        return self.categorical_column.num_buckets

    def transform_feature(self, features: TransformationCache) -> Any:
        return self.categorical_column.transform_feature(features)

    def get_sparse_tensors(self, features: TransformationCache) -> IdWeightPair:
        """Ids with an axis for the categories of one step."""
        ids, weights = self.categorical_column.get_sparse_tensors(features)
        return IdWeightPair(_with_steps(ids), None if weights is None else _with_steps(weights))


def _with_steps(value: Any) -> Any:
    rank = value.dense_shape.shape.as_list()[0]
    if rank is not None and rank >= 3:
        return value
    return tf.sparse_reshape(value, tf.concat([value.dense_shape, [1]], 0))
