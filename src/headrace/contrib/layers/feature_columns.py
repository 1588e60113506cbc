"""The first feature columns, of ``tf.contrib.layers``: what they are, and how a model takes them.

They are columns of ``tf.feature_column`` too: ``input_layer`` and ``linear_model`` take them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import headrace as tf
from headrace.contrib.framework.variables import model_variable
from headrace.feature_column.arguments import string_or_int
from headrace.feature_column.columns import (
    CategoricalColumn,
    DenseColumn,
    FeatureColumn,
    IdWeightPair,
)
from headrace.feature_column.dense import restore_from
from headrace.feature_column.features import FeatureTransformationCache, to_sparse_input
from headrace.feature_column.state import StateManager
from headrace.lookup.vocabulary import index_table_from_file, index_table_from_tensor
from headrace.ops.core.build import raw
from headrace.ops.sparse.cross import sparse_cross_first_hashed, sparse_cross_hashed

__all__ = ["OldFeatures", "to_rank"]


class OldFeatures(FeatureTransformationCache):
    """Features as they are given: a vector stays one.

    >>> features = tf.contrib.layers.feature_columns.OldFeatures({"age": tf.zeros([3])})
    >>> features.get("age").shape.as_list()
    [3]
    """

    def _as_tensor(self, key: Any) -> Any:
        value = self._features[key]
        return value if isinstance(value, tuple) else tf.convert_to_tensor_or_sparse_tensor(value)

    def results(self) -> dict[Any, Any]:
        """The features, and what columns have made of them."""
        return {**self._features, **self._made}


def to_rank(tensor: Any, rank: int, name: str) -> Any:
    """A feature of the rank that a model needs: 2, or 3 for sequences.

    Raises:
        ValueError: if it is smaller by more than one, or not known.
    """
    given = tensor.shape.ndims
    if given is None:
        raise ValueError(
            f"Error while processing column {name}. Rank of input Tensor can not be None."
        )
    if rank > given + 1:
        raise ValueError(
            f"Error while processing column {name}. Rank of input Tensor ({given}) should be the "
            f"same as output_rank ({rank}). For example, sequence data should typically be 3 "
            "dimensional (rank 3) while non-sequence data is typically 2 dimensional (rank 2)."
        )
    sparse = isinstance(tensor, tf.SparseTensor)
    if given == rank:
        return tensor
    if given < rank:
        if not sparse:
            return tf.expand_dims(tensor, -1)
        return tf.sparse_reshape(tensor, tf.concat([tensor.dense_shape, [1]], 0))
    if sparse:
        return tf.sparse_reshape(tensor, tf.concat([tensor.dense_shape[: rank - 1], [-1]], 0))
    dims = tensor.shape.as_list()
    result = tf.reshape(tensor, tf.concat([tf.shape(tensor)[: rank - 1], [-1]], 0))
    last = None if None in dims[rank - 1 :] else math.prod(dims[rank - 1 :])
    result.set_shape([*dims[: rank - 1], last])
    return result


@dataclass(frozen=True)
class _Column(FeatureColumn):
    """What the first columns have in common: ``config`` and ``key``."""

    @property
    def config(self) -> dict[str, Any]:
        """What ``tf.parse_example`` needs."""
        return self.parse_example_spec

    @property
    def key(self) -> str:
        """What tells columns apart, and orders them."""
        return str(self)

    def _key_without(self, *names: str) -> str:
        parts = (f"{f.name}={getattr(self, f.name)}" for f in fields(self) if f.name not in names)
        return f"{type(self).__name__}({', '.join(parts)})"

    def deep(self, cache: OldFeatures, collections: Any, trainable: bool, rank: int) -> Any:
        """What a network takes."""
        raise ValueError(
            f"{type(self).__name__.strip('_')} is not supported in DNN. Please use "
            f"embedding_column or one_hot_column. column: {self}"
        )


@dataclass(frozen=True)
class _Categories(_Column, CategoricalColumn):
    """Ids, and a way to weigh them in a linear model."""

    @property
    def length(self) -> int:
        """How many ids there are."""
        return self.num_buckets

    def get_sparse_tensors(
        self, transformation_cache: Any, state_manager: StateManager | None = None
    ) -> IdWeightPair:
        """The ids; most have no weights."""
        return IdWeightPair(transformation_cache.get(self, state_manager), None)

    def checkpoint(self) -> tuple[Any, Any]:
        """The checkpoint, and its tensor, that weights begin with; or None twice."""
        return None, None


@dataclass(frozen=True)
class _SparseIdLookupConfig:
    """The words of a column."""

    vocabulary_file: str | None = None
    keys: tuple[Any, ...] | None = None
    num_oov_buckets: int = 0
    vocab_size: int | None = None
    default_value: int = -1


@dataclass(frozen=True)
class _SparseColumn(_Categories):
    """Ids of a feature of strings or integers."""

    column_name: str
    is_integerized: bool = False
    bucket_size: int | None = None
    lookup_config: _SparseIdLookupConfig | None = None
    combiner: str = "sum"
    dtype: Any = tf.string

    def __post_init__(self) -> None:
        string_or_int(self.dtype, f"column_name: {self.column_name}")
        if self.is_integerized and not tf.as_dtype(self.dtype).is_integer:
            raise ValueError(
                "dtype must be an integer if is_integerized is True. "
                f"dtype: {self.dtype}, column_name: {self.column_name}."
            )
        if self.lookup_config is None and (self.bucket_size is None or self.bucket_size < 1):
            raise ValueError(
                f"bucket_size must be at least 1. bucket_size: {self.bucket_size}, column_name: "
                f"{self.column_name}"
            )

    @property
    def name(self) -> str:
        return self.column_name

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        return {self.column_name: tf.VarLenFeature(self.dtype)}

    @property
    def num_buckets(self) -> int:
        words = self.lookup_config
        if words is None:
            return int(self.bucket_size or 0)
        return int(words.vocab_size or 0) + words.num_oov_buckets

    def transform_feature(
        self, transformation_cache: Any, state_manager: StateManager | None
    ) -> Any:
        feature = transformation_cache.get(self.column_name, state_manager)
        if not isinstance(feature, tf.SparseTensor):
            feature = to_sparse_input(to_rank(feature, 2, self.name))
        return self._ids(feature)

    def _ids(self, feature: Any) -> Any:
        raise NotImplementedError

    def _as_text(self, feature: Any) -> Any:
        if not tf.as_dtype(self.dtype).is_integer:
            return feature
        text = tf.as_string(feature.values)
        return tf.SparseTensor(feature.indices, text, feature.dense_shape)


@dataclass(frozen=True)
class _SparseColumnIntegerized(_SparseColumn):
    def _ids(self, feature: Any) -> Any:
        ids = tf.mod(feature.values, tf.cast(self.bucket_size, feature.dtype), name="mod")
        return tf.SparseTensor(feature.indices, ids, feature.dense_shape)


@dataclass(frozen=True)
class _SparseColumnHashed(_SparseColumn):
    hash_keys: Any = field(default=None, repr=False, hash=False)

    def _ids(self, feature: Any) -> Any:
        feature = self._as_text(feature)
        words, size = feature.values, self.num_buckets
        if self.hash_keys:
            hashed = [tf.string_to_hash_bucket_strong(words, size, key) for key in self.hash_keys]
        else:
            hashed = [tf.string_to_hash_bucket_fast(words, size, name="lookup")]
        made = [tf.SparseTensor(feature.indices, ids, feature.dense_shape) for ids in hashed]
        return made[0] if len(made) == 1 else tf.sparse_concat(1, made, name="lookup")


@dataclass(frozen=True)
class _SparseColumnKeys(_SparseColumn):
    def _ids(self, feature: Any) -> Any:
        words = self.lookup_config
        assert words is not None
        table = index_table_from_tensor(
            words.keys, default_value=words.default_value, dtype=self.dtype, name="lookup"
        )
        return table.lookup(feature)


@dataclass(frozen=True)
class _SparseColumnVocabulary(_SparseColumn):
    def _ids(self, feature: Any) -> Any:
        words = self.lookup_config
        assert words is not None
        table = index_table_from_file(
            vocabulary_file=words.vocabulary_file,
            num_oov_buckets=words.num_oov_buckets,
            vocab_size=words.vocab_size,
            default_value=words.default_value,
            name=f"{self.name}_lookup",
        )
        return table.lookup(self._as_text(feature))


@dataclass(frozen=True)
class _WeightedSparseColumn(_Categories):
    """Ids with weights."""

    sparse_id_column: _SparseColumn
    weight_column_name: str
    dtype: Any

    @property
    def name(self) -> str:
        return f"{self.sparse_id_column.name}_weighted_by_{self.weight_column_name}"

    @property
    def combiner(self) -> str:
        """That of the ids."""
        return self.sparse_id_column.combiner

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        weights = {self.weight_column_name: tf.VarLenFeature(self.dtype)}
        return {**self.sparse_id_column.parse_example_spec, **weights}

    @property
    def num_buckets(self) -> int:
        return self.sparse_id_column.num_buckets

    def transform_feature(
        self, transformation_cache: Any, state_manager: StateManager | None
    ) -> Any:
        weights = transformation_cache.get(self.weight_column_name, state_manager)
        if not isinstance(weights, tf.SparseTensor):
            weights = to_sparse_input(weights, ignore_value=0)
        if not weights.dtype.is_floating:
            weights = tf.cast(weights, tf.float32)
        return transformation_cache.get(self.sparse_id_column, state_manager), weights

    def get_sparse_tensors(
        self, transformation_cache: Any, state_manager: StateManager | None = None
    ) -> IdWeightPair:
        return IdWeightPair(*transformation_cache.get(self, state_manager))


@dataclass(frozen=True)
class _OfIds(_Column, DenseColumn):
    """A dense column of a column of ids."""

    sparse_id_column: Any

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        return dict(self.sparse_id_column.parse_example_spec)

    @property
    def length(self) -> int:
        """How many ids there are."""
        return int(self.sparse_id_column.length)

    def transform_feature(
        self, transformation_cache: Any, state_manager: StateManager | None
    ) -> Any:
        return transformation_cache.get(self.sparse_id_column, state_manager)

    def _pair(self, cache: Any, rank: int) -> IdWeightPair:
        ids, weights = self.sparse_id_column.get_sparse_tensors(cache, None)
        flat = None if weights is None else to_rank(weights, rank, self.name)
        return IdWeightPair(to_rank(ids, rank, self.name), flat)


@dataclass(frozen=True)
class _OneHotColumn(_OfIds):
    """How often each id is there."""

    @property
    def name(self) -> str:
        return f"{self.sparse_id_column.name}_one_hot"

    @property
    def variable_shape(self) -> tf.TensorShape:
        return tf.TensorShape([self.length])

    def get_dense_tensor(
        self, transformation_cache: Any, state_manager: StateManager | None
    ) -> Any:
        return self.deep(transformation_cache, None, True, 2)

    def deep(self, cache: Any, collections: Any, trainable: bool, rank: int) -> Any:
        ids, weights = self._pair(cache, rank)
        if weights is not None:
            merged = tf.sparse_merge(ids, weights, self.length)
            # Ids that are no buckets are left out.
            merged = tf.sparse_slice(merged, tf.zeros_like(merged.dense_shape), merged.dense_shape)
            dense = tf.sparse_tensor_to_dense(merged, validate_indices=False)
            return tf.reshape(dense, tf.concat([tf.shape(dense)[:-1], [self.length]], 0))
        dense = tf.sparse_tensor_to_dense(ids, default_value=-1)
        return tf.reduce_sum(tf.one_hot(dense, self.length, 1.0, 0.0), axis=[rank - 1])


@dataclass(frozen=True)
class _EmbeddingColumn(_OfIds):
    """Rows of a table."""

    dimension: int
    combiner: str
    initializer: Any
    ckpt_to_load_from: str | None = None
    tensor_name_in_ckpt: str | None = None
    shared_embedding_name: str | None = None
    shared_vocab_size: int | None = None
    max_norm: float | None = None
    trainable: bool = True

    @property
    def name(self) -> str:
        shared = "" if self.shared_embedding_name is None else "_shared"
        return f"{self.sparse_id_column.name}{shared}_embedding"

    @property
    def key(self) -> str:
        return self._key_without("initializer")

    @property
    def length(self) -> int:
        return self.shared_vocab_size or int(self.sparse_id_column.length)

    @property
    def variable_shape(self) -> tf.TensorShape:
        return tf.TensorShape([self.dimension])

    def get_dense_tensor(
        self, transformation_cache: Any, state_manager: StateManager | None
    ) -> Any:
        collections = getattr(state_manager, "collections", None)
        trainable = getattr(state_manager, "trainable", True)
        return self.deep(transformation_cache, collections, trainable, 2)

    def deep(self, cache: Any, collections: Any, trainable: bool, rank: int) -> Any:
        ids, weights = self._pair(cache, rank)
        table = self._table(collections, trainable)
        restore_from(self.ckpt_to_load_from, self.tensor_name_in_ckpt, table)
        return tf.nn.safe_embedding_lookup_sparse(
            table,
            ids,
            sparse_weights=weights,
            combiner=self.combiner,
            name=f"{self.name}weights",
            max_norm=self.max_norm,
        )

    def _table(self, collections: Any, trainable: bool) -> Any:
        shared, shape = self.shared_embedding_name, [self.length, self.dimension]
        held: list[Any] = []
        if shared is not None:
            held = tf.get_collection_ref(f"SHARED_EMBEDDING_COLLECTION_{shared.upper()}")
        if held:
            if held[0].get_shape().as_list() != shape:
                raise ValueError(
                    f"The embedding variable with name {shared} already exists, but its shape does "
                    "not match required embedding shape here. Please make sure to use different "
                    "shared_embedding_name for different shared embeddings."
                )
            return held[0]
        made = model_variable(
            shared or "weights",
            shape=shape,
            dtype=tf.float32,
            initializer=self.initializer,
            trainable=trainable and self.trainable,
            collections=collections,
        )
        held.append(made)
        return made


@dataclass(frozen=True)
class _RealValuedColumn(_Column, DenseColumn):
    """Numbers."""

    column_name: str
    dimension: int
    default_value: tuple[Any, ...] | None
    dtype: Any
    normalizer: Any

    @property
    def name(self) -> str:
        return self.column_name

    @property
    def key(self) -> str:
        return self._key_without("normalizer")

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        default = None if self.default_value is None else list(self.default_value)
        return {self.column_name: tf.FixedLenFeature([self.dimension], self.dtype, default)}

    @property
    def variable_shape(self) -> tf.TensorShape:
        return tf.TensorShape([self.dimension])

    def transform_feature(
        self, transformation_cache: Any, state_manager: StateManager | None
    ) -> Any:
        feature = transformation_cache.get(self.column_name, state_manager)
        if self.normalizer is not None:
            feature = self.normalizer(feature)
        if isinstance(feature, tf.SparseTensor) or feature.dtype == tf.string:
            raise ValueError(
                f"real_valued_column {self.column_name} takes a dense tensor of numbers, not "
                f"{feature}"
            )
        return tf.cast(feature, tf.float32)

    def get_dense_tensor(
        self, transformation_cache: Any, state_manager: StateManager | None
    ) -> Any:
        return transformation_cache.get(self, state_manager)

    def deep(self, cache: Any, collections: Any, trainable: bool, rank: int) -> Any:
        return to_rank(cache.get(self), rank, self.name)


@dataclass(frozen=True)
class _BucketizedColumn(_Categories, DenseColumn):
    """The buckets of numbers."""

    source_column: _RealValuedColumn
    boundaries: tuple[float, ...]

    combiner = "sum"

    @property
    def name(self) -> str:
        return f"{self.source_column.name}_bucketized"

    @property
    def length(self) -> int:
        return len(self.boundaries) + 1

    @property
    def num_buckets(self) -> int:
        return self.length * self.source_column.dimension

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        return self.source_column.parse_example_spec

    @property
    def variable_shape(self) -> tf.TensorShape:
        return tf.TensorShape([self.num_buckets])

    def transform_feature(
        self, transformation_cache: Any, state_manager: StateManager | None
    ) -> Any:
        numbers = transformation_cache.get(self.source_column, state_manager)
        return raw.Bucketize(numbers, boundaries=self.boundaries)

    def get_dense_tensor(
        self, transformation_cache: Any, state_manager: StateManager | None
    ) -> Any:
        return self.deep(transformation_cache, None, True, 2)

    def deep(self, cache: Any, collections: Any, trainable: bool, rank: int) -> Any:
        if rank != 2:
            raise ValueError("BucketizedColumn currently only supports output_rank=2")
        hot = tf.one_hot(tf.cast(cache.get(self, None), tf.int64), self.length, 1.0, 0.0)
        return tf.reshape(hot, [-1, self.num_buckets])

    def get_sparse_tensors(
        self, transformation_cache: Any, state_manager: StateManager | None = None
    ) -> IdWeightPair:
        buckets = transformation_cache.get(self, state_manager)
        width = self.source_column.dimension
        batch = tf.shape(buckets)[0]
        rows = tf.reshape(tf.tile(tf.expand_dims(tf.range(batch), 1), [1, width]), [-1])
        places = tf.tile(tf.range(width), [batch])
        ids = tf.reshape(buckets, [-1]) + self.length * places
        indices = tf.cast(tf.stack([rows, places], axis=1), tf.int64)
        return IdWeightPair(
            tf.SparseTensor(indices, ids, tf.cast(tf.stack([batch, width]), tf.int64)), None
        )


@dataclass(frozen=True)
class _CrossedColumn(_Categories):
    """Combinations of ids."""

    columns: tuple[Any, ...]
    hash_bucket_size: int
    hash_key: int | None
    combiner: str = "sum"
    ckpt_to_load_from: str | None = None
    tensor_name_in_ckpt: str | None = None

    @property
    def name(self) -> str:
        return "_X_".join(sorted(column.name for column in self.columns))

    @property
    def num_buckets(self) -> int:
        return self.hash_bucket_size

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        spec: dict[str, Any] = {}
        for column in self.columns:
            spec.update(column.parse_example_spec)
        return spec

    def checkpoint(self) -> tuple[Any, Any]:
        return self.ckpt_to_load_from, self.tensor_name_in_ckpt

    def _leaves(self) -> list[Any]:
        return [
            leaf
            for column in self.columns
            for leaf in (column._leaves() if isinstance(column, _CrossedColumn) else [column])
        ]

    def transform_feature(
        self, transformation_cache: Any, state_manager: StateManager | None
    ) -> Any:
        inputs = []
        for column in self._leaves():
            if isinstance(column, _SparseColumn):
                inputs.append(transformation_cache.get(column.name, state_manager))
            else:
                inputs.append(column.get_sparse_tensors(transformation_cache).id_tensor)
        if self.hash_key:
            return sparse_cross_hashed(inputs, self.hash_bucket_size, self.hash_key, name="cross")
        return sparse_cross_first_hashed(inputs, self.hash_bucket_size, name="cross")


def default_stddev_initializer(column: Any, initializer: Any) -> Any:
    """The initialiser of an embedding, by default of deviation ``1 / sqrt(ids)``.

    Raises:
        ValueError: if it is not callable.
    """
    if initializer is None:
        return tf.truncated_normal_initializer(stddev=1 / math.sqrt(column.length))
    if not callable(initializer):
        raise ValueError(
            "initializer must be callable if specified. Embedding of column_name: "
            f"{getattr(column, 'name', column)}"
        )
    return initializer


def shared(columns: Sequence[_EmbeddingColumn], name: str) -> tuple[_EmbeddingColumn, ...]:
    """The same columns, with one table of a name."""
    size = columns[0].sparse_id_column.length
    return tuple(
        replace(column, shared_embedding_name=name, shared_vocab_size=size) for column in columns
    )
