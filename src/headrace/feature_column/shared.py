"""Embeddings of several features in one table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import headrace as tf
from headrace.feature_column.arguments import check_embedding, embedding_initializer
from headrace.feature_column.columns import CategoricalColumn
from headrace.feature_column.dense import Embedded, categorical, checked_combiner, restore_from
from headrace.feature_column.derived import WeightedCategoricalColumn
from headrace.feature_column.state import StateManager


@dataclass(frozen=True)
class CollectedEmbeddingColumn(Embedded):
    """Made by `shared_embedding_columns`: the table is in a collection of the graph.

    >>> a = tf.feature_column.categorical_column_with_identity("a", 3)
    >>> b = tf.feature_column.categorical_column_with_identity("b", 3)
    >>> first, second = tf.feature_column.shared_embedding_columns([a, b], 2)
    >>> first.name, first.var_scope_name
    ('a_shared_embedding', 'a_b_shared_embedding')
    """

    categorical_column: CategoricalColumn
    dimension: int
    combiner: str
    initializer: Any
    shared_embedding_collection_name: str
    ckpt_to_load_from: str | None
    tensor_name_in_ckpt: str | None
    max_norm: float | None
    trainable: bool

    @property
    def name(self) -> str:
        """``<column>_shared_embedding``."""
        return f"{self.categorical_column.name}_shared_embedding"

    @property
    def var_scope_name(self) -> str:
        """The name of the collection."""
        return self.shared_embedding_collection_name

    @property
    def variable_shape(self) -> tf.TensorShape:
        """The size of a row."""
        return tf.TensorShape([self.dimension])

    def create_state(self, state_manager: StateManager) -> None:
        """Make the table, unless another column has."""
        self.table(state_manager)

    def table(self, state_manager: StateManager) -> Any:
        """The variable: that of the collection, or a new one, which joins it.

        Raises:
            ValueError: if the collection holds something else.
        """
        collection, buckets = self.shared_embedding_collection_name, self.categorical_column
        shape = (buckets.num_buckets, self.dimension)
        held = tf.get_collection(collection)
        if len(held) > 1:
            raise ValueError(
                f"Collection {held} can only contain one variable. Suggested fix A: Choose a "
                "unique name for this collection. Suggested fix B: Do not add any variables to "
                "this collection. The feature_column library already adds a variable under the "
                "hood."
            )
        if not held:
            made = state_manager.create_variable(
                self,
                "embedding_weights",
                shape=shape,
                dtype=tf.float32,
                trainable=self.trainable,
                initializer=self.initializer,
            )
            restore_from(self.ckpt_to_load_from, self.tensor_name_in_ckpt, made)
            tf.add_to_collection(collection, made)
            held = [made]
        if held[0].get_shape().as_list() != list(shape):
            raise ValueError(
                f"Shared embedding collection {collection} contains variable {held[0].name} of "
                f"unexpected shape {held[0].get_shape()}. Expected shape is {shape}. Suggested fix "
                "A: Choose a unique name for this collection. Suggested fix B: Do not add any "
                "variables to this collection. The feature_column library already adds a variable "
                "under the hood."
            )
        return held[0]


def shared_embedding_columns(
    categorical_columns: Iterable[Any],
    dimension: int,
    combiner: str = "mean",
    initializer: Any = None,
    shared_embedding_collection_name: str | None = None,
    ckpt_to_load_from: str | None = None,
    tensor_name_in_ckpt: str | None = None,
    max_norm: float | None = None,
    trainable: bool = True,
) -> list[CollectedEmbeddingColumn]:
    """Embedding columns with one table for all: the first that is used makes it.

    Args:
        categorical_columns: columns of one kind and number of buckets, or weighted ones of such.
            Each gives ``[batch, dimension]``.
        shared_embedding_collection_name: the collection of the graph that holds the table, and
            its scope; by default made of the columns' names.
        (others): see `embedding_column`.

    Returns:
        A column for each, in their order.

    Raises:
        ValueError: if the columns differ in kind or number of buckets, or as `embedding_column`.

    >>> watched = tf.feature_column.categorical_column_with_identity("watched", 3)
    >>> offered = tf.feature_column.categorical_column_with_identity("offered", 3)
    >>> columns = tf.feature_column.shared_embedding_columns([watched, offered], 2)
    >>> layer = tf.feature_column.input_layer({"watched": [0, 1], "offered": [2, 2]}, columns)
    >>> [variable.name for variable in tf.trainable_variables()]
    ['input_layer/offered_watched_shared_embedding/embedding_weights:0']
    """
    columns = list(categorical_columns)
    check_embedding(dimension, ckpt_to_load_from, tensor_name_in_ckpt)
    made = embedding_initializer(initializer, dimension)
    checked_combiner(combiner)
    default_name, _ = _alike(columns)
    return [
        CollectedEmbeddingColumn(
            column,
            dimension,
            combiner,
            made,
            shared_embedding_collection_name or default_name,
            ckpt_to_load_from,
            tensor_name_in_ckpt,
            max_norm,
            trainable,
        )
        for column in columns
    ]


def _alike(columns: list[Any]) -> tuple[str, int]:
    """The name of the shared table, and how many rows it has.

    Raises:
        ValueError: if columns differ in kind or number of buckets.
    """
    if not columns:
        raise ValueError("categorical_columns must not be empty.")
    ordered = sorted(
        (categorical(c, "shared_embedding_columns") for c in columns), key=lambda c: c.name
    )
    first, *others = map(_unweighted, ordered)
    for other in others:
        if not isinstance(other, type(first)):
            raise ValueError(
                "To use shared_embedding_column, all categorical_columns must have the same type, "
                "or be weighted_categorical_column of the same type. Given column: "
                f"{first} of type: {type(first)} does not match given column: {other} of type: "
                f"{type(other)}"
            )
        if first.num_buckets != other.num_buckets:
            raise ValueError(
                "To use shared_embedding_column, all categorical_columns must have the same number "
                f"of buckets. Given column: {first} with buckets: {first.num_buckets} does  not "
                f"match column: {other} with buckets: {other.num_buckets}"
            )
    return "_".join(c.name for c in ordered) + "_shared_embedding", first.num_buckets


def _unweighted(column: CategoricalColumn) -> CategoricalColumn:
    if isinstance(column, WeightedCategoricalColumn):
        return column.categorical_column
    return column


class SharedEmbeddingColumnCreator:
    """The table that the columns of `shared_embeddings` have in common: one in each graph.

    >>> a = tf.feature_column.categorical_column_with_identity("a", 3)
    >>> (column,) = tf.feature_column.shared_embeddings([a], 2)
    >>> column.shared_embedding_column_creator.dimension
    2
    """

    def __init__(
        self,
        dimension: int,
        initializer: Any,
        ckpt_to_load_from: str | None,
        tensor_name_in_ckpt: str | None,
        num_buckets: int,
        trainable: bool,
        name: str = "shared_embedding_column_creator",
    ) -> None:
        self.dimension = dimension
        self._initializer = initializer
        self._checkpoint = ckpt_to_load_from, tensor_name_in_ckpt
        self._num_buckets = num_buckets
        self._trainable = trainable
        self._name = name

    def table(self, state_manager: StateManager) -> Any:
        """The variable of the graph, ``[buckets, dimension]``."""
        # The graph keeps it, so that it goes when the graph goes.
        kept = tf.get_collection_ref("__shared_embeddings")
        for creator, variable in kept:
            if creator is self:
                return variable
        made = state_manager.shared_variable(
            self._name,
            shape=(self._num_buckets, self.dimension),
            dtype=tf.float32,
            initializer=self._initializer,
            trainable=self._trainable,
        )
        restore_from(*self._checkpoint, made)
        kept.append((self, made))
        return made


@dataclass(frozen=True)
class SharedEmbeddingColumn(Embedded):
    """Made by `shared_embeddings`: the table stands beside the model.

    >>> a = tf.feature_column.categorical_column_with_identity("a", 3)
    >>> (column,) = tf.feature_column.shared_embeddings([a], 2)
    >>> column.name, column.variable_shape.as_list()
    ('a_shared_embedding', [2])
    """

    categorical_column: CategoricalColumn
    shared_embedding_column_creator: SharedEmbeddingColumnCreator
    combiner: str
    max_norm: float | None

    @property
    def name(self) -> str:
        """``<column>_shared_embedding``."""
        return f"{self.categorical_column.name}_shared_embedding"

    @property
    def variable_shape(self) -> tf.TensorShape:
        """The size of a row."""
        return tf.TensorShape([self.shared_embedding_column_creator.dimension])

    def table(self, state_manager: StateManager) -> Any:
        """The variable."""
        return self.shared_embedding_column_creator.table(state_manager)


def shared_embeddings(
    categorical_columns: Iterable[Any],
    dimension: int,
    combiner: str = "mean",
    initializer: Any = None,
    shared_embedding_collection_name: str | None = None,
    ckpt_to_load_from: str | None = None,
    tensor_name_in_ckpt: str | None = None,
    max_norm: float | None = None,
    trainable: bool = True,
) -> list[SharedEmbeddingColumn]:
    """As `shared_embedding_columns`; the table is a variable beside the models that use it.

    Args:
        dimension: the size of a row; each column gives ``[batch, dimension]``.
        shared_embedding_collection_name: the name of the variable, in the scope around the first
            model that uses it; by default made of the columns' names.
        (others): see `shared_embedding_columns`.

    Raises:
        ValueError: as `shared_embedding_columns`.

    >>> watched = tf.feature_column.categorical_column_with_identity("watched", 3)
    >>> offered = tf.feature_column.categorical_column_with_identity("offered", 3)
    >>> columns = tf.feature_column.shared_embeddings([watched, offered], 2)
    >>> layer = tf.feature_column.DenseFeatures(columns)
    >>> layer({"watched": [0, 1], "offered": [2, 2]}).shape.as_list()
    [2, 4]
    >>> [variable.name for variable in tf.trainable_variables()]
    ['offered_watched_shared_embedding:0']
    """
    columns = list(categorical_columns)
    check_embedding(dimension, ckpt_to_load_from, tensor_name_in_ckpt)
    made = embedding_initializer(initializer, dimension)
    checked_combiner(combiner)
    name, buckets = _alike(columns)
    creator = SharedEmbeddingColumnCreator(
        dimension,
        made,
        ckpt_to_load_from,
        tensor_name_in_ckpt,
        buckets,
        trainable,
        shared_embedding_collection_name or name,
    )
    return [SharedEmbeddingColumn(column, creator, combiner, max_norm) for column in columns]
