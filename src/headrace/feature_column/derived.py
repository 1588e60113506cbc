"""Categorical columns of other columns: weighted, crossed, sequences of categories."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import headrace as tf
from headrace.feature_column.categorical import HashedCategoricalColumn
from headrace.feature_column.columns import CategoricalColumn, IdWeightPair
from headrace.feature_column.features import to_sparse_input
from headrace.feature_column.state import StateManager
from headrace.ops.sparse.cross import sparse_cross_hashed


@dataclass(frozen=True)
class WeightedCategoricalColumn(CategoricalColumn):
    """Made by `weighted_categorical_column`.

    >>> word = tf.feature_column.categorical_column_with_hash_bucket("word", 10)
    >>> tf.feature_column.weighted_categorical_column(word, "count").name
    'word_weighted_by_count'
    """

    categorical_column: CategoricalColumn
    weight_feature_key: str
    dtype: tf.DType

    @property
    def name(self) -> str:
        """``<column>_weighted_by_<feature>``."""
        return f"{self.categorical_column.name}_weighted_by_{self.weight_feature_key}"

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        """That of the column, and a VarLenFeature of the weights.

        Raises:
            ValueError: if the weights are a feature of the column.
        """
        spec = dict(self.categorical_column.parse_example_spec)
        key = self.weight_feature_key
        if key in spec:
            raise ValueError(f"Parse config {spec[key]} already exists for {key}.")
        spec[key] = tf.VarLenFeature(self.dtype)
        return spec

    @property
    def num_buckets(self) -> int:
        """That of the column."""
        return self.categorical_column.num_buckets

    def transform_feature(self, transformation_cache: Any, state_manager: StateManager) -> Any:
        """The ids, and the weights as floats.

        Raises:
            ValueError: if the weights have another type than the column states.
        """
        weights = transformation_cache.get(self.weight_feature_key, state_manager)
        if self.dtype != weights.dtype.base_dtype:
            raise ValueError(f"Bad dtype, expected {self.dtype}, but got {weights.dtype}.")
        if not isinstance(weights, tf.SparseTensor):
            weights = to_sparse_input(weights, ignore_value=0)
        if not weights.dtype.is_floating:
            weights = tf.cast(weights, tf.float32)
        return transformation_cache.get(self.categorical_column, state_manager), weights

    def get_sparse_tensors(
        self, transformation_cache: Any, state_manager: StateManager
    ) -> IdWeightPair:
        """The ids and their weights."""
        ids, weights = transformation_cache.get(self, state_manager)
        return IdWeightPair(ids, weights)

    @property
    def parents(self) -> list[Any]:
        """The column, and the name of the weights."""
        return [self.categorical_column, self.weight_feature_key]


def weighted_categorical_column(
    categorical_column: Any, weight_feature_key: str, dtype: Any = tf.float32
) -> WeightedCategoricalColumn:
    """Ids with weights from another feature of the same shape.

    Args:
        categorical_column: the column of ids.
        weight_feature_key: the name of the weights, ``[batch, n]`` as the ids; in a dense feature,
            0 is missing.
        dtype: the type of the weights, integers or floats.

    Raises:
        ValueError: if ``dtype`` is no number.

    >>> word = tf.feature_column.categorical_column_with_identity("word", 3)
    >>> column = tf.feature_column.weighted_categorical_column(word, "count")
    >>> layer = tf.feature_column.input_layer(
    ...     {"word": [[0, 2]], "count": [[1.5, 2.0]]}, [tf.feature_column.indicator_column(column)]
    ... )
    >>> with tf.Session() as session:
    ...     session.run(layer).tolist()
    [[1.5, 0.0, 2.0]]
    """
    kind = None if dtype is None else tf.as_dtype(dtype)
    if kind is None or not (kind.is_integer or kind.is_floating):
        raise ValueError(f"dtype {dtype} is not convertible to float.")
    return WeightedCategoricalColumn(categorical_column, weight_feature_key, kind)


@dataclass(frozen=True)
class CrossedColumn(CategoricalColumn):
    """Made by `crossed_column`.

    >>> tf.feature_column.crossed_column(["b", "a"], 100).name
    'a_X_b'
    """

    keys: tuple[Any, ...]
    hash_bucket_size: int
    hash_key: int | None

    @property
    def name(self) -> str:
        """The names of what is crossed, in order, with ``_X_`` between them."""
        names = (key if isinstance(key, str) else key.name for key in self._leaves())
        return "_X_".join(sorted(names))

    def _leaves(self) -> Iterator[Any]:
        """What is crossed, also by crossed columns among the keys."""
        for key in self.keys:
            if isinstance(key, CrossedColumn):
                yield from key._leaves()
            else:
                yield key

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        """Those of the columns; features that are named are strings."""
        spec: dict[str, Any] = {}
        for key in self.keys:
            if isinstance(key, str):
                spec[key] = tf.VarLenFeature(tf.string)
            else:
                spec.update(key.parse_example_spec)
        return spec

    def transform_feature(self, transformation_cache: Any, state_manager: StateManager) -> Any:
        """A SparseTensor of ids, one for each combination.

        Raises:
            ValueError: if a column has weights.
        """
        inputs = []
        for key in self._leaves():
            if isinstance(key, str):
                inputs.append(transformation_cache.get(key, state_manager))
                continue
            ids, weights = key.get_sparse_tensors(transformation_cache, state_manager)
            if weights is not None:
                raise ValueError(
                    "crossed_column does not support weight_tensor, but the given column "
                    f"populates weight_tensor. Given column: {key.name}"
                )
            inputs.append(ids)
        return sparse_cross_hashed(inputs, self.hash_bucket_size, self.hash_key)

    @property
    def num_buckets(self) -> int:
        """How many buckets there are."""
        return self.hash_bucket_size

    def get_sparse_tensors(
        self, transformation_cache: Any, state_manager: StateManager
    ) -> IdWeightPair:
        """The ids; they have no weights."""
        return IdWeightPair(transformation_cache.get(self, state_manager), None)

    @property
    def parents(self) -> list[Any]:
        """What is crossed."""
        return list(self.keys)


def crossed_column(keys: Any, hash_bucket_size: int, hash_key: int | None = None) -> CrossedColumn:
    """Ids of combinations of categories, by a hash.

    Args:
        keys: at least two: names of features (strings or integers, ``[batch]`` or ``[batch, n]``),
            or categorical columns that do not hash.
        hash_bucket_size: how many ids there are.
        hash_key: starts the hash (see ``tf.sparse.cross_hashed``).

    Raises:
        ValueError: for fewer keys, keys of another kind, or no buckets.

    >>> both = tf.feature_column.crossed_column(["city", "day"], 1000)
    >>> features = {"city": ["Rome", "Oslo"], "day": ["Monday", "Friday"]}
    >>> weights = tf.feature_column.linear_model(features, [both])
    >>> weights.shape.as_list(), tf.trainable_variables()[0].name
    ([2, 1], 'linear_model/city_X_day/weights:0')
    """
    if not hash_bucket_size or hash_bucket_size < 1:
        raise ValueError(f"hash_bucket_size must be > 1. hash_bucket_size: {hash_bucket_size}")
    if not keys or len(keys) < 2:
        raise ValueError(f"keys must be a list with length > 1. Given: {keys}")
    for key in keys:
        if not isinstance(key, (str, CategoricalColumn)):
            raise ValueError(
                "Unsupported key type. All keys must be either string, or categorical column "
                f"except HashedCategoricalColumn. Given: {key}"
            )
        if isinstance(key, HashedCategoricalColumn):
            raise ValueError(
                "categorical_column_with_hash_bucket is not supported for crossing. Hashing before "
                "crossing will increase probability of collision. Instead, use the feature name "
                f"as a string. Given: {key}"
            )
    return CrossedColumn(tuple(keys), hash_bucket_size, hash_key)


@dataclass(frozen=True)
class SequenceCategoricalColumn(CategoricalColumn):
    """Made by ``sequence_categorical_column_with_...``: a sequence of ids for each example.

    >>> column = tf.feature_column.sequence_categorical_column_with_identity("watched", 100)
    >>> column.name, column.num_buckets
    ('watched', 100)
    """

    categorical_column: CategoricalColumn

    @property
    def name(self) -> str:
        """That of the column of ids."""
        return self.categorical_column.name

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        """That of the column of ids."""
        return self.categorical_column.parse_example_spec

    def transform_feature(self, transformation_cache: Any, state_manager: StateManager) -> Any:
        """What the column of ids makes."""
        return transformation_cache.get(self.categorical_column, state_manager)

    @property
    def num_buckets(self) -> int:
        """That of the column of ids."""
        return self.categorical_column.num_buckets

    def get_sparse_tensors(
        self, transformation_cache: Any, state_manager: StateManager
    ) -> IdWeightPair:
        """The ids and weights as ``[batch, steps, ids of a step]``."""
        column = self.categorical_column
        ids, weights = column.get_sparse_tensors(transformation_cache, state_manager)
        sizes = tf.shape(ids)
        shape = [sizes[0], sizes[1], tf.reduce_prod(sizes[2:])]
        if weights is not None:
            weights = tf.sparse_reshape(weights, shape)
        return IdWeightPair(tf.sparse_reshape(ids, shape), weights)

    @property
    def parents(self) -> list[Any]:
        """The column of ids."""
        return [self.categorical_column]
