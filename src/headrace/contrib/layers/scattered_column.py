"""An embedding without a table of rows: each number of it is picked by a hash of its own.

Source: W. Chen et al., "Compressing Neural Networks with the Hashing Trick" (arXiv:1504.04788).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import headrace as tf
from headrace.contrib.framework.variables import model_variable
from headrace.contrib.layers.feature_columns import _Column, to_rank
from headrace.feature_column.columns import DenseColumn
from headrace.feature_column.features import to_sparse_input
from headrace.feature_column.state import StateManager
from headrace.ops.sparse.cross import sparse_cross_hashed
from headrace.ops.state.partitioned import parts_of

__all__ = ["SPARSE_FEATURE_CROSS_DEFAULT_HASH_KEY", "scattered_embedding_column"]

SPARSE_FEATURE_CROSS_DEFAULT_HASH_KEY = 0xDECAFCAFFE

#: What stands in a row that has nothing; TensorFlow's, so that checkpoints mean the same.
_NOTHING = {True: "6ZxWzWOHxZ", False: 1288896567}
_COMBINERS = {
    "sum": tf.sparse_segment_sum,
    "mean": tf.sparse_segment_mean,
    "sqrtn": tf.sparse_segment_sqrt_n,
}


@dataclass(frozen=True)
class _ScatteredEmbeddingColumn(_Column, DenseColumn):
    """Made by `scattered_embedding_column`."""

    column_name: str
    size: int
    dimension: int
    hash_key: int
    combiner: str
    initializer: Any

    @property
    def name(self) -> str:
        return f"{self.column_name}_scattered_embedding"

    @property
    def key(self) -> str:
        return self._key_without("initializer")

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        return {self.column_name: tf.VarLenFeature(tf.string)}

    @property
    def variable_shape(self) -> tf.TensorShape:
        return tf.TensorShape([self.dimension])

    def transform_feature(
        self, transformation_cache: Any, state_manager: StateManager | None
    ) -> Any:
        feature = transformation_cache.get(self.column_name, state_manager)
        if isinstance(feature, tf.SparseTensor):
            return feature
        return to_sparse_input(to_rank(feature, 2, self.name))

    def get_dense_tensor(
        self, transformation_cache: Any, state_manager: StateManager | None
    ) -> Any:
        collections = getattr(state_manager, "collections", None)
        trainable = getattr(state_manager, "trainable", True)
        return self.deep(transformation_cache, collections, trainable, 2)

    def deep(self, cache: Any, collections: Any, trainable: bool, rank: int) -> Any:
        if rank != 2:
            raise ValueError(f"Column {self.name} takes no sequences.")
        words = to_rank(cache.get(self), 2, self.name)
        weights = model_variable(
            "weights",
            shape=[self.size],
            dtype=tf.float32,
            initializer=self.initializer,
            trainable=trainable,
            collections=collections,
        )
        return self._combined(parts_of(weights), words)

    def _combined(self, weights: list[Any], words: Any) -> Any:
        filled, _ = tf.sparse_fill_empty_rows(words, _NOTHING[words.dtype == tf.string])
        rows = tf.cast(filled.indices[:, 0], tf.int32)
        unique, places = tf.unique(filled.values)
        each = self._numbers(weights, unique)
        combined = _COMBINERS[self.combiner](each, places, rows, name="lookup")
        combined.set_shape([words.shape.as_list()[0], self.dimension])
        return combined

    def _numbers(self, weights: list[Any], words: Any) -> Any:
        """``[words, dimension]``: the weights that the hashes of word and place name."""
        count = tf.size(words)
        places = tf.tile(tf.expand_dims(tf.range(self.dimension), 0), tf.stack([count, 1]))
        crossed = sparse_cross_hashed(
            [places, tf.expand_dims(words, 1)], self.size, self.hash_key, name="hash"
        )
        ids = tf.reshape(crossed.values, tf.stack([count, self.dimension]))
        return tf.nn.embedding_lookup(weights, ids, partition_strategy="div")


def scattered_embedding_column(
    column_name: str,
    size: int,
    dimension: int,
    hash_key: int,
    combiner: str = "mean",
    initializer: Any = None,
) -> _ScatteredEmbeddingColumn:
    """Vectors for strings or integers ``[batch, n]``, whose numbers share ``size`` weights.

    Number ``i`` of the vector of a value is the weight at a hash of the value and ``i``: unlike
    rows in hash buckets, hardly two values share a vector. As many weights as a table of
    ``buckets`` rows are ``size=buckets * dimension``.

    Args:
        column_name: the name of the feature; a row without values has the vector of a value that
            nobody has.
        size: how many weights there are.
        dimension: the size of a vector; the result has shape ``[batch, dimension]``.
        hash_key: starts the hash, as `tf.contrib.layers.SPARSE_FEATURE_CROSS_DEFAULT_HASH_KEY`.
        combiner: how vectors of one example are put together: "mean", "sqrtn" or "sum".
        initializer: of the weights, by default a truncated normal distribution of deviation 0.1.

    Raises:
        ValueError: if a size is less than 1, the combiner is another, there is no ``hash_key``, or
            the initialiser is not callable.

    >>> column = tf.contrib.layers.scattered_embedding_column(
    ...     "word", 1000, 4, tf.contrib.layers.SPARSE_FEATURE_CROSS_DEFAULT_HASH_KEY
    ... )
    >>> words = {"word": tf.constant([["a", "b"], ["c", ""]])}
    >>> tf.contrib.layers.input_from_feature_columns(words, [column]).shape.as_list()
    [2, 4]
    """
    if dimension < 1 or size < 1:
        raise ValueError(
            f"Dimension and size must be greater than 0. dimension: {dimension}, size: {size}, "
            f"column_name: {column_name}"
        )
    if combiner not in _COMBINERS:
        raise ValueError(
            "Combiner must be one of 'mean', 'sqrtn' or 'sum'. "
            f"combiner: {combiner}, column_name: {column_name}"
        )
    if not hash_key:
        raise ValueError(
            f"scattered_embedding_column needs a hash_key, given: {hash_key!r}, column_name: "
            f"{column_name}. tf.contrib.layers.SPARSE_FEATURE_CROSS_DEFAULT_HASH_KEY is one."
        )
    if initializer is not None and not callable(initializer):
        raise ValueError(f"initializer must be callable if specified. column_name: {column_name}")
    made = initializer or tf.truncated_normal_initializer(stddev=0.1)
    return _ScatteredEmbeddingColumn(column_name, size, dimension, hash_key, combiner, made)
