"""Columns of keys of 64 bits, and their embeddings in tables that grow."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import headrace as tf
from headrace.feature_column.arguments import (
    check_embedding,
    checked_key,
    same_kind,
    string_or_int,
)
from headrace.feature_column.categorical import OfFeature
from headrace.feature_column.dense import Embedded, categorical, checked_combiner
from headrace.feature_column.state import StateManager
from headrace.ops.core.build import raw

#: Buckets of text: as many as there are numbers of 64 bits that are not negative.
_ALL = 2**63 - 1


@dataclass(frozen=True)
class KeyColumn(OfFeature):
    """Made by `categorical_column_with_keys`.

    >>> tf.feature_column.categorical_column_with_keys("user").name
    'user'
    """

    key: str
    dtype: tf.DType
    apart: bool

    @property
    def num_buckets(self) -> int:
        """Nobody knows.

        Raises:
            ValueError: always.
        """
        raise ValueError(
            f"The keys of column {self.key} have 64 bits: there is no number of buckets. Use "
            "growing_embedding_column, or categorical_column_with_hash_bucket."
        )

    def _ids(self, feature: Any, state_manager: StateManager) -> Any:
        same_kind(self.dtype, feature, self.key)
        keys = feature.values
        if keys.dtype == tf.string:
            keys = tf.string_to_hash_bucket_fast(keys, _ALL)
        keys = tf.cast(keys, tf.int64)
        if self.apart:
            digest = hashlib.blake2b(self.key.encode(), digest_size=8).digest()
            keys = raw.EmbeddingTableKeys(keys, salt=int.from_bytes(digest, "little", signed=True))
        return tf.SparseTensor(feature.indices, keys, feature.dense_shape)


def categorical_column_with_keys(key: str, dtype: Any = tf.int64, apart: bool = True) -> KeyColumn:
    """Keys of 64 bits for tables that grow: integers, or the hashes of texts.

    Args:
        key: the name of the feature: integers or strings, dense ``[batch]`` or ``[batch, n]``
            (-1 or an empty string is missing) or sparse.
        dtype: an integer type or string.
        apart: whether the keys are mixed with the name of the feature, so that features that share
            a table have rows of their own.

    Raises:
        ValueError: for another type.

    >>> user = tf.feature_column.categorical_column_with_keys("user")
    >>> column = tf.feature_column.growing_embedding_column(
    ...     user, 2, initializer=tf.ones_initializer())
    >>> layer = tf.feature_column.input_layer({"user": [[2**60], [-1]]}, [column])
    >>> with tf.Session() as session:
    ...     session.run(layer).tolist()
    [[1.0, 1.0], [0.0, 0.0]]
    """
    checked_key(key)
    return KeyColumn(key, string_or_int(dtype, f"column_name: {key}"), bool(apart))


@dataclass(frozen=True)
class GrowingEmbeddingColumn(Embedded):
    """Made by `growing_embedding_column`.

    >>> user = tf.feature_column.categorical_column_with_keys("user")
    >>> tf.feature_column.growing_embedding_column(user, 4).table_name
    'user_embedding'
    """

    categorical_column: Any
    dimension: int
    combiner: str
    max_norm: float | None
    table_name: str
    num_parts: int
    options: tuple[tuple[str, Any], ...]

    @property
    def name(self) -> str:
        """``<column>_embedding``."""
        return f"{self.categorical_column.name}_embedding"

    @property
    def variable_shape(self) -> tf.TensorShape:
        """The size of a row."""
        return tf.TensorShape([self.dimension])

    def create_state(self, state_manager: StateManager) -> None:
        """Make the table, or find the one of this name."""
        self.table(state_manager)

    def table(self, state_manager: StateManager) -> Any:
        """The table of this name of the graph.

        Raises:
            ValueError: if it has another dimension.
        """
        for table in tf.get_collection(tf.GraphKeys.EMBEDDING_TABLES):
            if table.op_name == self.table_name:
                if table.dim != self.dimension:
                    raise ValueError(
                        f"Column {self.name} has dimension {self.dimension}; the table "
                        f"{self.table_name}, which it shares, has {table.dim}."
                    )
                return table
        options = dict(self.options)
        name = f"{self.table_name}/"
        if self.num_parts > 1:
            return tf.PartitionedEmbeddingTable(
                self.dimension, self.num_parts, name=name, **options
            )
        return tf.EmbeddingTable(self.dimension, name=name, **options)


def growing_embedding_column(
    categorical_column: Any,
    dimension: int,
    combiner: str = "mean",
    initializer: Any = None,
    max_norm: float | None = None,
    table_name: str | None = None,
    num_parts: int = 1,
    **options: Any,
) -> GrowingEmbeddingColumn:
    """Rows of a table that grows: one for each key that is seen.

    Args:
        categorical_column: `categorical_column_with_keys`, or another categorical column.
        dimension: the size of a row; the result has shape ``[batch, dimension]``.
        combiner: how rows of one example are put together: "mean", "sqrtn" or "sum".
        initializer: of rows: see `tf.EmbeddingTable`.
        max_norm: rows of a greater L2 norm are scaled down to it before they are put together.
        table_name: columns of one name share a table; by default ``<column>_embedding``.
        num_parts: how many parts the table has: see `tf.PartitionedEmbeddingTable`.
        options: further arguments of the table: ``seed``, ``trainable``, ``admit_after``,
            ``admit_counters``, ``memory_limit``, ``directory``.

    Raises:
        ValueError: for a dimension below 1, or another column; when the layer is built, if the
            table of the name has another dimension.

    >>> columns = [tf.feature_column.growing_embedding_column(
    ...     tf.feature_column.categorical_column_with_keys(key), 1, table_name="all", seed=7)
    ...     for key in ("user", "item")]
    >>> layer = tf.feature_column.input_layer({"user": [[5]], "item": [[5]]}, columns)
    >>> with tf.Session() as session:
    ...     item, user = session.run(layer)[0]
    ...     bool(item == user), int(session.run(tf.get_collection("embedding_tables")[0].size()))
    (False, 2)
    """
    check_embedding(dimension, None, None)
    column = categorical(categorical_column, "growing_embedding_column")
    name = table_name or f"{column.name}_embedding"
    given = (("initializer", initializer), *sorted(options.items()))
    return GrowingEmbeddingColumn(
        column, dimension, checked_combiner(combiner), max_norm, name, num_parts, given
    )
