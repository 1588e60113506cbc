"""What every feature column is, and the kinds of them: dense, categorical, sequences.

A column says how a model takes a feature; it has no state. Columns are values: two with the same
arguments are equal, so what one makes of the features is there for the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import headrace as tf
from headrace.feature_column.serialization import Configured
from headrace.feature_column.state import StateManager


class IdWeightPair(NamedTuple):
    """Ids of a categorical feature, and their weights: SparseTensors of one shape.

    Attributes:
        id_tensor: SparseTensor of int64, ``[batch, ...]``.
        weight_tensor: SparseTensor of floats, or None: all weights are 1.

    >>> ids = tf.SparseTensor([[0, 0]], [3], [1, 1])
    >>> tf.feature_column.columns.IdWeightPair(ids, None).weight_tensor is None
    True
    """

    id_tensor: Any
    weight_tensor: Any


class TensorSequenceLengthPair(NamedTuple):
    """A padded sequence, and how long each is.

    Attributes:
        dense_tensor: ``[batch, steps, ...]`` of float32.
        sequence_length: ``[batch]`` of int64.

    >>> pair = tf.feature_column.columns.TensorSequenceLengthPair(
    ...     tf.zeros([2, 3, 1]), tf.constant([3, 1])
    ... )
    >>> pair.sequence_length.shape.as_list()
    [2]
    """

    dense_tensor: Any
    sequence_length: Any


class FeatureColumn(Configured):
    """Base of all feature columns.

    A subclass has ``name``, ``parse_example_spec`` and ``transform_feature``.

    >>> column = tf.feature_column.numeric_column("price")
    >>> isinstance(column, tf.feature_column.columns.FeatureColumn), column.name
    (True, 'price')
    """

    @property
    def name(self) -> str:
        """The name: that of the variable scope, and the order of columns in a model."""
        raise NotImplementedError(f"{type(self).__name__} has no name.")

    @property
    def var_scope_name(self) -> str:
        """The name of the variable scope in ``input_layer``."""
        return self.name

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        """What ``tf.parse_example`` needs for the features of this column, by their names."""
        raise NotImplementedError(f"{type(self).__name__} does not say how it is parsed.")

    def transform_feature(self, transformation_cache: Any, state_manager: StateManager) -> Any:
        """What the column makes of the features: tensors that other columns may use as well."""
        raise NotImplementedError(f"{type(self).__name__} does not transform features.")

    def create_state(self, state_manager: StateManager) -> None:
        """Make the variables of the column, if it has any."""

    @property
    def parents(self) -> list[Any]:
        """The columns, and the names of features, that this column is made from."""
        return []

    # Columns may be keys of dictionaries that are sorted.

    def __lt__(self, other: Any) -> bool:
        return str(self) < str(other)

    def __gt__(self, other: Any) -> bool:
        return str(self) > str(other)


class DenseColumn(FeatureColumn):
    """A column that gives a dense tensor: numbers, indicators, embeddings.

    >>> column = tf.feature_column.numeric_column("position", shape=[3])
    >>> isinstance(column, tf.feature_column.columns.DenseColumn)
    True
    >>> column.variable_shape
    TensorShape([Dimension(3)])
    """

    @property
    def variable_shape(self) -> tf.TensorShape:
        """The shape of what ``get_dense_tensor`` gives for one example."""
        raise NotImplementedError(f"{type(self).__name__} does not say its shape.")

    def get_dense_tensor(self, transformation_cache: Any, state_manager: StateManager) -> Any:
        """A tensor of float32: ``[batch]`` and ``variable_shape``."""
        raise NotImplementedError(f"{type(self).__name__} gives no dense tensor.")


class CategoricalColumn(FeatureColumn):
    """A column that gives ids.

    >>> column = tf.feature_column.categorical_column_with_identity("day", 7)
    >>> isinstance(column, tf.feature_column.columns.CategoricalColumn), column.num_buckets
    (True, 7)
    """

    @property
    def num_buckets(self) -> int:
        """How many ids there are: they are from 0 up to this."""
        raise NotImplementedError(f"{type(self).__name__} does not say how many ids it has.")

    def get_sparse_tensors(
        self, transformation_cache: Any, state_manager: StateManager
    ) -> IdWeightPair:
        """The ids and weights of each example."""
        raise NotImplementedError(f"{type(self).__name__} gives no ids.")


class SequenceDenseColumn(FeatureColumn):
    """A column that gives padded sequences.

    >>> column = tf.feature_column.sequence_numeric_column("temperature")
    >>> isinstance(column, tf.feature_column.columns.SequenceDenseColumn)
    True
    """

    @property
    def variable_shape(self) -> tf.TensorShape:
        """The shape of one step of one example."""
        raise NotImplementedError(f"{type(self).__name__} does not say its shape.")

    def get_sequence_dense_tensor(
        self, transformation_cache: Any, state_manager: StateManager
    ) -> TensorSequenceLengthPair:
        """The padded tensor and the lengths."""
        raise NotImplementedError(f"{type(self).__name__} gives no sequence.")


def checked_columns(feature_columns: Any) -> list[FeatureColumn]:
    """The columns of a model in the order of their names.

    Raises:
        ValueError: if there are none, one is no feature column, or two have one name.
    """
    if isinstance(feature_columns, FeatureColumn):
        feature_columns = [feature_columns]
    if isinstance(feature_columns, dict):
        raise ValueError("Expected feature_columns to be iterable, found dict.")
    if not isinstance(feature_columns, Iterable):
        raise ValueError(
            "Items of feature_columns must be a FeatureColumn. "
            f"Given (type {type(feature_columns)}): {feature_columns}."
        )
    columns = list(feature_columns)
    by_name: dict[str, FeatureColumn] = {}
    for column in columns:
        if not isinstance(column, FeatureColumn):
            raise ValueError(
                "Items of feature_columns must be a FeatureColumn. "
                f"Given (type {type(column)}): {column}. Columns are made by the functions of "
                "tf.feature_column."
            )
        if column.name in by_name:
            raise ValueError(
                f"Duplicate feature column name found for columns: {column} and "
                f"{by_name[column.name]}. This usually means that these columns refer to same base "
                "feature. Either one must be discarded or a duplicated but renamed item must be "
                "inserted in features dict."
            )
        by_name[column.name] = column
    if not columns:
        raise ValueError("feature_columns must not be empty.")
    return [by_name[name] for name in sorted(by_name)]


def require_kind(columns: list[Any], kinds: Any, wanted: str, advice: str = "") -> None:
    """Refuse columns of another kind.

    Raises:
        ValueError: for the first column that is none of ``kinds``.
    """
    for column in columns:
        if not isinstance(column, kinds):
            raise ValueError(f"Items of feature_columns must be {wanted}. {advice}Given: {column}")


#: What to do with a categorical column where a dense one is needed.
WRAP = "You can wrap a categorical column with an embedding_column or indicator_column. "


def check_batch_sizes(tensors: Iterable[Any], columns: Iterable[Any]) -> None:
    """Refuse tensors whose first sizes are known and differ.

    Raises:
        ValueError: naming the first two columns that do not fit together.
    """
    known = _known_sizes(tensors, columns)
    first = next(known, None)
    for name, size in known:
        if first is not None and size != first[1]:
            raise ValueError(
                "Batch size (first dimension) of each feature must be same. Batch size of columns "
                f"({first[0]}, {name}): ({first[1]}, {size})"
            )


def _known_sizes(tensors: Iterable[Any], columns: Iterable[Any]) -> Iterator[tuple[str, int]]:
    for tensor, column in zip(tensors, columns, strict=True):
        dims = tensor.shape.as_tuple
        if dims and dims[0] is not None:
            yield column.name, dims[0]
