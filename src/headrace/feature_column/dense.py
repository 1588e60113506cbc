"""Dense columns of categories: indicators and embeddings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import headrace as tf
from headrace.feature_column.arguments import check_embedding, embedding_initializer
from headrace.feature_column.columns import (
    CategoricalColumn,
    DenseColumn,
    IdWeightPair,
    SequenceDenseColumn,
    TensorSequenceLengthPair,
)
from headrace.feature_column.derived import SequenceCategoricalColumn
from headrace.feature_column.state import StateManager
from headrace.ops.state.partitioned import parts_of


def sequence_lengths(sparse: Any, num_elements: int = 1) -> Any:
    """The steps of each example, int64 ``[batch]``: the last that has an element.

    Args:
        sparse: SparseTensor ``[batch, steps, ...]``.
        num_elements: how many elements along the second axis are one step.
    """
    with tf.name_scope(None, "sequence_length"):
        rows, last = sparse.indices[:, 0], sparse.indices[:, 1] + 1
        batch = tf.cast(sparse.dense_shape[0], tf.int64)
        lengths = tf.maximum(tf.unsorted_segment_max(last, rows, batch), 0)
        steps = (lengths + (num_elements - 1)) // num_elements
        steps.set_shape([sparse.shape.as_tuple[0] if sparse.shape.ndims else None])
        return steps


def require_plain(column: Any, kind: str) -> None:
    """Raises ValueError if a column is of sequences, where a model takes no sequences."""
    if isinstance(column.categorical_column, SequenceCategoricalColumn):
        raise ValueError(
            f"In {kind}: {column.name}. categorical_column must not be of type "
            "SequenceCategoricalColumn. Suggested fix A: If you wish to use DenseFeatures, use a "
            "non-sequence categorical_column_with_*. Suggested fix B: If you wish to create "
            "sequence input, use SequenceFeatures instead of DenseFeatures. Given (type "
            f"{type(column.categorical_column)}): {column.categorical_column}"
        )


def require_sequence(column: Any, kind: str) -> None:
    """Raises ValueError if a column is not of sequences, where a model takes those."""
    if not isinstance(column.categorical_column, SequenceCategoricalColumn):
        raise ValueError(
            f"In {kind}: {column.name}. categorical_column must be of type "
            "SequenceCategoricalColumn to use SequenceFeatures. Suggested fix: Use one of "
            "sequence_categorical_column_with_*. Given (type "
            f"{type(column.categorical_column)}): {column.categorical_column}"
        )


class _OfCategories(DenseColumn, SequenceDenseColumn):
    """A dense column, or one of sequences, of a categorical column."""

    categorical_column: CategoricalColumn

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        """That of the categories."""
        return self.categorical_column.parse_example_spec

    @property
    def parents(self) -> list[Any]:
        """The categorical column."""
        return [self.categorical_column]


@dataclass(frozen=True)
class IndicatorColumn(_OfCategories):
    """Made by `indicator_column`.

    >>> day = tf.feature_column.categorical_column_with_identity("day", 7)
    >>> tf.feature_column.indicator_column(day).variable_shape.as_list()
    [1, 7]
    """

    categorical_column: CategoricalColumn

    @property
    def name(self) -> str:
        """``<column>_indicator``."""
        return f"{self.categorical_column.name}_indicator"

    def transform_feature(self, transformation_cache: Any, state_manager: StateManager) -> Any:
        """How often each category is there, float32."""
        pair = self.categorical_column.get_sparse_tensors(transformation_cache, state_manager)
        depth = self.categorical_column.num_buckets
        if pair.weight_tensor is not None:
            weighted = tf.sparse_merge(pair.id_tensor, pair.weight_tensor, depth)
            # Ids that are no buckets are left out.
            weighted = tf.sparse_slice(weighted, [0, 0], weighted.dense_shape)
            return tf.scatter_nd(weighted.indices, weighted.values, weighted.dense_shape)
        ids = tf.sparse_tensor_to_dense(pair.id_tensor, default_value=-1, validate_indices=False)
        return tf.reduce_sum(tf.one_hot(ids, depth, 1.0, 0.0), axis=[-2])

    @property
    def variable_shape(self) -> tf.TensorShape:
        """One row of all buckets."""
        return tf.TensorShape([1, self.categorical_column.num_buckets])

    def get_dense_tensor(self, transformation_cache: Any, state_manager: StateManager) -> Any:
        """How often each category is there.

        Raises:
            ValueError: if the categories are sequences.
        """
        require_plain(self, "indicator_column")
        return transformation_cache.get(self, state_manager)

    def get_sequence_dense_tensor(
        self, transformation_cache: Any, state_manager: StateManager
    ) -> TensorSequenceLengthPair:
        """How often each category is there, step by step.

        Raises:
            ValueError: if the categories are no sequences.
        """
        require_sequence(self, "indicator_column")
        dense = transformation_cache.get(self, state_manager)
        pair = self.categorical_column.get_sparse_tensors(transformation_cache, state_manager)
        return TensorSequenceLengthPair(dense, sequence_lengths(pair.id_tensor))


def indicator_column(categorical_column: Any) -> IndicatorColumn:
    """How often each category is there: ones among zeros.

    Args:
        categorical_column: a categorical column; the weights of a weighted one are added up. The
            result has shape ``[batch, buckets]``.

    Raises:
        ValueError: for another column.

    >>> day = tf.feature_column.categorical_column_with_identity("day", 3)
    >>> layer = tf.feature_column.input_layer(
    ...     {"day": [[0, 0], [2, -1]]}, [tf.feature_column.indicator_column(day)]
    ... )
    >>> with tf.Session() as session:
    ...     session.run(layer).tolist()
    [[2.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    """
    return IndicatorColumn(categorical(categorical_column, "indicator_column"))


def categorical(column: Any, function: str) -> CategoricalColumn:
    """The column.

    Raises:
        ValueError: if it is no categorical column.
    """
    if not isinstance(column, CategoricalColumn):
        raise ValueError(
            f"{function} takes a categorical column, such as those made by "
            f"categorical_column_with_identity or bucketized_column. Given: {column}"
        )
    return column


class Embedded(_OfCategories):
    """A column that looks ids up in a table. A subclass has the arguments as fields."""

    combiner: str
    max_norm: float | None

    def transform_feature(self, transformation_cache: Any, state_manager: StateManager) -> Any:
        """What the categorical column makes."""
        return transformation_cache.get(self.categorical_column, state_manager)

    def table(self, state_manager: StateManager) -> Any:
        """The variable, ``[buckets, dimension]``."""
        raise NotImplementedError

    def get_dense_tensor(self, transformation_cache: Any, state_manager: StateManager) -> Any:
        """The rows of the table for the ids, put together.

        Raises:
            ValueError: if the categories are sequences.
        """
        require_plain(self, "embedding_column")
        return self._looked_up(transformation_cache, state_manager)[0]

    def get_sequence_dense_tensor(
        self, transformation_cache: Any, state_manager: StateManager
    ) -> TensorSequenceLengthPair:
        """The same step by step.

        Raises:
            ValueError: if the categories are no sequences.
        """
        require_sequence(self, "embedding_column")
        dense, pair = self._looked_up(transformation_cache, state_manager)
        return TensorSequenceLengthPair(dense, sequence_lengths(pair.id_tensor))

    def _looked_up(self, cache: Any, state: StateManager) -> tuple[Any, IdWeightPair]:
        pair = self.categorical_column.get_sparse_tensors(cache, state)
        found = tf.nn.safe_embedding_lookup_sparse(
            self.table(state),
            pair.id_tensor,
            sparse_weights=pair.weight_tensor,
            combiner=self.combiner,
            name=f"{self.name}_weights",
            max_norm=self.max_norm,
        )
        return found, pair


def restore_from(checkpoint: str | None, tensor_name: str | None, variable: Any) -> None:
    """Let a variable, or its parts, begin with what a checkpoint has."""
    if checkpoint is not None:
        parts = parts_of(variable)
        target = parts if len(parts) > 1 else parts[0]
        tf.train.init_from_checkpoint(checkpoint, {tensor_name: target})


@dataclass(frozen=True)
class EmbeddingColumn(Embedded):
    """Made by `embedding_column`.

    >>> word = tf.feature_column.categorical_column_with_hash_bucket("word", 10)
    >>> tf.feature_column.embedding_column(word, 4).variable_shape.as_list()
    [4]
    """

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
        """``<column>_embedding``."""
        return f"{self.categorical_column.name}_embedding"

    @property
    def variable_shape(self) -> tf.TensorShape:
        """The size of a row."""
        return tf.TensorShape([self.dimension])

    def create_state(self, state_manager: StateManager) -> None:
        """Make the table."""
        variable = state_manager.create_variable(
            self,
            "embedding_weights",
            shape=(self.categorical_column.num_buckets, self.dimension),
            dtype=tf.float32,
            trainable=self.trainable,
            initializer=self.initializer,
        )
        restore_from(self.ckpt_to_load_from, self.tensor_name_in_ckpt, variable)

    def table(self, state_manager: StateManager) -> Any:
        """The variable."""
        return state_manager.get_variable(self, "embedding_weights")


def embedding_column(
    categorical_column: Any,
    dimension: int,
    combiner: str = "mean",
    initializer: Any = None,
    ckpt_to_load_from: str | None = None,
    tensor_name_in_ckpt: str | None = None,
    max_norm: float | None = None,
    trainable: bool = True,
) -> EmbeddingColumn:
    """Rows of a trained table: one for each category.

    Args:
        categorical_column: a categorical column.
        dimension: the size of a row; the result has shape ``[batch, dimension]``.
        combiner: how rows of one example are put together: "mean", "sqrtn" or "sum".
        initializer: of the table; by default a truncated normal distribution of deviation
            ``1 / sqrt(dimension)``.
        ckpt_to_load_from, tensor_name_in_ckpt: the checkpoint, and the tensor in it, that the
            table begins with.
        max_norm: rows of a greater L2 norm are scaled down to it before they are put together.
        trainable: whether the table is trained.

    Raises:
        ValueError: for a dimension below 1, half of what names a checkpoint's tensor, an
            initialiser that is not callable, or another column.

    >>> word = tf.feature_column.categorical_column_with_identity("word", 3)
    >>> column = tf.feature_column.embedding_column(word, 2, initializer=tf.ones_initializer())
    >>> layer = tf.feature_column.input_layer({"word": [[0, 2], [-1, -1]]}, [column])
    >>> tf.trainable_variables()[0].name
    'input_layer/word_embedding/embedding_weights:0'
    >>> with tf.Session() as session:
    ...     session.run(tf.global_variables_initializer())
    ...     session.run(layer).tolist()
    [[1.0, 1.0], [0.0, 0.0]]
    """
    check_embedding(dimension, ckpt_to_load_from, tensor_name_in_ckpt)
    column = categorical(categorical_column, "embedding_column")
    about = f" Embedding of column_name: {column.name}"
    return EmbeddingColumn(
        column,
        dimension,
        checked_combiner(combiner),
        embedding_initializer(initializer, dimension, about),
        ckpt_to_load_from,
        tensor_name_in_ckpt,
        max_norm,
        trainable,
    )


def checked_combiner(combiner: str) -> str:
    """Raises ValueError for what does not say how rows are put together."""
    if combiner not in ("mean", "sqrtn", "sum"):
        raise ValueError(f"combiner must be one of 'mean', 'sqrtn' or 'sum', not {combiner!r}")
    return combiner
