"""Columns of sequences, and the layers that take them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import headrace as tf
from headrace.feature_column.arguments import checked_normalizer, checked_shape, numeric_dtype
from headrace.feature_column.categorical import (
    categorical_column_with_hash_bucket,
    categorical_column_with_identity,
    categorical_column_with_vocabulary_file,
    categorical_column_with_vocabulary_list,
)
from headrace.feature_column.columns import (
    SequenceDenseColumn,
    TensorSequenceLengthPair,
    check_batch_sizes,
    checked_columns,
    require_kind,
)
from headrace.feature_column.dense import sequence_lengths
from headrace.feature_column.derived import SequenceCategoricalColumn
from headrace.feature_column.feature_layers import FeatureLayer
from headrace.feature_column.features import FeatureTransformationCache
from headrace.feature_column.state import ScopeState, StateManager


@dataclass(frozen=True)
class SequenceNumericColumn(SequenceDenseColumn):
    """Made by `sequence_numeric_column`.

    >>> tf.feature_column.sequence_numeric_column("temperature").name
    'temperature'
    """

    key: str
    shape: tuple[int, ...]
    default_value: float
    dtype: tf.DType
    normalizer_fn: Any

    @property
    def name(self) -> str:
        """The name of the feature."""
        return self.key

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        """A VarLenFeature."""
        return {self.key: tf.VarLenFeature(self.dtype)}

    def transform_feature(self, transformation_cache: Any, state_manager: StateManager) -> Any:
        """The numbers, normalised: a SparseTensor.

        Raises:
            ValueError: if the feature is dense.
        """
        tensor = transformation_cache.get(self.key, state_manager)
        if not isinstance(tensor, tf.SparseTensor):
            raise ValueError(
                f"The feature of sequence column {self.key} must be a SparseTensor "
                f"(tf.parse_example makes one of a VarLenFeature). Given: {tensor}"
            )
        return tensor if self.normalizer_fn is None else self.normalizer_fn(tensor)

    @property
    def variable_shape(self) -> tf.TensorShape:
        """The shape of one step."""
        return tf.TensorShape(self.shape)

    def get_sequence_dense_tensor(
        self, transformation_cache: Any, state_manager: StateManager
    ) -> TensorSequenceLengthPair:
        """The numbers, padded with ``default_value``, and the lengths."""
        sparse = transformation_cache.get(self, state_manager)
        dense = tf.sparse_tensor_to_dense(sparse, default_value=self.default_value)
        dense = tf.reshape(dense, tf.concat([tf.shape(dense)[:1], [-1], list(self.shape)], 0))
        # The elements of a step follow each other in a matrix; a third axis is that of the step.
        each = math.prod(self.shape) if sparse.shape.ndims == 2 else 1
        return TensorSequenceLengthPair(tf.cast(dense, tf.float32), sequence_lengths(sparse, each))

    @property
    def parents(self) -> list[Any]:
        """The name of the feature."""
        return [self.key]


def sequence_numeric_column(
    key: str,
    shape: Any = (1,),
    default_value: float = 0.0,
    dtype: Any = tf.float32,
    normalizer_fn: Any = None,
) -> SequenceNumericColumn:
    """A sequence of numbers for each example.

    Args:
        key: the name of the feature, a SparseTensor ``[batch, numbers]``.
        shape: the shape of one step.
        default_value: what shorter sequences are padded with.
        dtype: the type in the file.
        normalizer_fn: function of the SparseTensor.

    Raises:
        TypeError: if the shape is not of integers, or ``normalizer_fn`` not callable.
        ValueError: if a size is not positive, or the type no number.

    >>> heat = tf.feature_column.sequence_numeric_column("heat")
    >>> feature = tf.SparseTensor([[0, 0], [0, 1], [1, 0]], [20.0, 21.0, 5.0], [2, 2])
    >>> layer, lengths = tf.contrib.feature_column.sequence_input_layer({"heat": feature}, [heat])
    >>> with tf.Session() as session:
    ...     session.run(layer).tolist(), session.run(lengths).tolist()
    ([[[20.0], [21.0]], [[5.0], [0.0]]], [2, 1])
    """
    sizes = checked_shape(shape, key)
    kind = numeric_dtype(dtype, key)
    return SequenceNumericColumn(key, sizes, default_value, kind, checked_normalizer(normalizer_fn))


def sequence_categorical_column_with_identity(
    key: str, num_buckets: int, default_value: int | None = None
) -> SequenceCategoricalColumn:
    """A sequence of ids; see ``categorical_column_with_identity``.

    The feature is a SparseTensor ``[batch, steps]``.

    Raises:
        ValueError: if there are no buckets, or ``default_value`` is none of them.

    >>> watched = tf.feature_column.sequence_categorical_column_with_identity("watched", 100)
    >>> tf.feature_column.embedding_column(watched, 8).name
    'watched_embedding'
    """
    return SequenceCategoricalColumn(
        categorical_column_with_identity(key, num_buckets, default_value)
    )


def sequence_categorical_column_with_hash_bucket(
    key: str, hash_bucket_size: int, dtype: Any = tf.string
) -> SequenceCategoricalColumn:
    """A sequence of hashed words; see ``categorical_column_with_hash_bucket``.

    The feature is a SparseTensor ``[batch, steps]``.

    Raises:
        ValueError: for another type, or no buckets.

    >>> tf.feature_column.sequence_categorical_column_with_hash_bucket("words", 100).num_buckets
    100
    """
    return SequenceCategoricalColumn(
        categorical_column_with_hash_bucket(key, hash_bucket_size, dtype)
    )


def sequence_categorical_column_with_vocabulary_file(
    key: str,
    vocabulary_file: str,
    vocabulary_size: int | None = None,
    num_oov_buckets: int = 0,
    default_value: int | None = None,
    dtype: Any = tf.string,
) -> SequenceCategoricalColumn:
    """A sequence of words of a file; see ``categorical_column_with_vocabulary_file``.

    The feature is a SparseTensor ``[batch, steps]``.

    Raises:
        ValueError: if there is no file, no line, both buckets and a default, or another type.
    """
    return SequenceCategoricalColumn(
        categorical_column_with_vocabulary_file(
            key, vocabulary_file, vocabulary_size, num_oov_buckets, default_value, dtype
        )
    )


def sequence_categorical_column_with_vocabulary_list(
    key: str,
    vocabulary_list: Sequence[Any],
    dtype: Any = None,
    default_value: int = -1,
    num_oov_buckets: int = 0,
) -> SequenceCategoricalColumn:
    """A sequence of words of a list; see ``categorical_column_with_vocabulary_list``.

    The feature is a SparseTensor ``[batch, steps]``.

    Raises:
        ValueError: if the list is empty or has an element twice, both buckets and a default are
            given, or types do not fit.

    >>> words = tf.feature_column.sequence_categorical_column_with_vocabulary_list("word", ["a"])
    >>> words.num_buckets
    1
    """
    return SequenceCategoricalColumn(
        categorical_column_with_vocabulary_list(
            key, vocabulary_list, dtype, default_value, num_oov_buckets
        )
    )


def _sequences(feature_columns: Any) -> list[Any]:
    columns: list[Any] = checked_columns(feature_columns)
    advice = (
        "You can wrap a sequence_categorical_column with an embedding_column or indicator_column. "
    )
    require_kind(columns, SequenceDenseColumn, "a SequenceDenseColumn", advice)
    return columns


def _steps(tensor: Any, column: Any) -> Any:
    """What a column gives as ``[batch, steps, numbers]``."""
    shape = tf.shape(tensor)
    return tf.reshape(tensor, [shape[0], shape[1], column.variable_shape.num_elements()])


def _joined(outputs: list[Any], lengths: list[Any], columns: list[Any]) -> tuple[Any, Any]:
    check_batch_sizes(outputs, columns)
    check_batch_sizes(lengths, columns)
    if len(lengths) == 1:
        return tf.concat(outputs, -1), lengths[0]
    with tf.name_scope(None, "assert_all_equal"):
        checks = [
            tf.assert_equal(
                lengths[0],
                length,
                message=f"Sequences of {columns[0].name} and {column.name} differ in length.",
            )
            for length, column in zip(lengths[1:], columns[1:], strict=True)
        ]
        with tf.control_dependencies(checks):
            return tf.concat(outputs, -1), tf.identity(lengths[0])


def sequence_input_layer(
    features: Any,
    feature_columns: Any,
    weight_collections: Any = None,
    trainable: bool = True,
) -> tuple[Any, Any]:
    """The features of sequences as one tensor: the input of a recurrent network.

    Args:
        features: SparseTensors by the names of features.
        feature_columns: columns of sequences; the result has them in the order of their names.
        weight_collections: collections that variables join.
        trainable: whether variables are trained.

    Returns:
        ``[batch, steps, sum of the columns' sizes]`` of float32, and the lengths, ``[batch]`` of
        int64.

    Raises:
        ValueError: if a column is of no sequence, a feature is missing, or shapes or types do not
            fit.
        InvalidArgumentError: when the graph runs, if columns differ in the lengths.

    >>> words = tf.feature_column.sequence_categorical_column_with_identity("words", 10)
    >>> feature = tf.SparseTensor([[0, 0], [0, 1], [1, 0]], [3, 4, 5], [2, 2])
    >>> layer, lengths = tf.contrib.feature_column.sequence_input_layer(
    ...     {"words": feature}, [tf.feature_column.embedding_column(words, 4)]
    ... )
    >>> tf.trainable_variables()[0].name
    'sequence_input_layer/words_embedding/embedding_weights:0'
    """
    columns = _sequences(feature_columns)
    cache = FeatureTransformationCache(features)
    state = ScopeState(weight_collections, trainable)
    outputs, lengths = [], []
    with tf.variable_scope(None, default_name="sequence_input_layer"):
        for column in columns:
            with tf.variable_scope(None, default_name=column.var_scope_name):
                pair = column.get_sequence_dense_tensor(cache, state)
                outputs.append(_steps(pair.dense_tensor, column))
                lengths.append(pair.sequence_length)
        return _joined(outputs, lengths, columns)


class SequenceFeatures(FeatureLayer):
    """``sequence_input_layer`` as a layer; it gives the tensor and the lengths.

    Args:
        feature_columns: columns of sequences.
        trainable: whether variables are trained.
        name: the variable scope, by default ``sequence_features``.

    Raises:
        ValueError: if a column is of no sequence.

    >>> heat = tf.feature_column.sequence_numeric_column("heat")
    >>> layer = tf.feature_column.SequenceFeatures([heat])
    >>> tensor, lengths = layer({"heat": tf.SparseTensor([[0, 0]], [20.0], [1, 1])})
    >>> tensor.dtype, lengths.dtype
    (tf.float32, tf.int64)
    """

    def __init__(
        self,
        feature_columns: Any,
        trainable: bool = True,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(_sequences(feature_columns), trainable, name, **kwargs)

    def call(self, features: Any) -> tuple[Any, Any]:
        """``[batch, steps, sum of the columns' sizes]`` of float32, and the lengths.

        Raises:
            ValueError: if a feature is missing, or shapes or types do not fit.
        """
        cache, outputs, lengths = FeatureTransformationCache(features), [], []
        for column in self._columns:
            with tf.name_scope(column.name):
                pair = column.get_sequence_dense_tensor(cache, self._state)
                outputs.append(_steps(pair.dense_tensor, column))
                lengths.append(pair.sequence_length)
        return _joined(outputs, lengths, self._columns)


def concatenate_context_input(context_input: Any, sequence_input: Any) -> Any:
    """A context of each example beside every step of its sequence.

    Args:
        context_input: ``[batch, c]`` of float32.
        sequence_input: ``[batch, steps, s]`` of float32.

    Returns:
        ``[batch, steps, s + c]``.

    Raises:
        ValueError: if the ranks differ from these.
        TypeError: if a type is not float32.

    >>> joined = tf.feature_column.sequence.concatenate_context_input(
    ...     tf.zeros([2, 3]), tf.zeros([2, 5, 4])
    ... )
    >>> joined.shape.as_list()
    [2, 5, 7]
    """
    checks = [
        tf.assert_rank(sequence_input, 3, message="sequence_input must have rank 3"),
        tf.assert_rank(context_input, 2, message="context_input must have rank 2"),
    ]
    tf.assert_type(sequence_input, tf.float32, message="sequence_input must have dtype float32")
    tf.assert_type(context_input, tf.float32, message="context_input must have dtype float32")
    with tf.control_dependencies(checks):
        steps = tf.shape(sequence_input)[1]
        tiled = tf.tile(tf.expand_dims(context_input, 1), tf.stack([1, steps, 1]))
    return tf.concat([sequence_input, tiled], 2)
