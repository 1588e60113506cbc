"""Columns of categories: words and numbers to ids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import headrace as tf
from headrace.feature_column.arguments import check_oov, checked_key, same_kind, string_or_int
from headrace.feature_column.columns import CategoricalColumn, IdWeightPair
from headrace.feature_column.features import to_sparse_input
from headrace.feature_column.state import StateManager
from headrace.files import system
from headrace.files.gfile import GFile
from headrace.lookup.vocabulary import index_table_from_file, index_table_from_tensor


class OfFeature(CategoricalColumn):
    """Ids of one feature. A subclass has fields ``key`` and ``dtype``, and makes ids of values."""

    key: str
    dtype: Any

    @property
    def name(self) -> str:
        """The name of the feature."""
        return self.key

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        """A VarLenFeature."""
        return {self.key: tf.VarLenFeature(self.dtype)}

    def transform_feature(self, transformation_cache: Any, state_manager: StateManager) -> Any:
        """A SparseTensor of ids, int64.

        Raises:
            ValueError: if the feature is neither of strings nor integers, as the column has it.
        """
        feature = to_sparse_input(transformation_cache.get(self.key, state_manager))
        return self._ids(feature, state_manager)

    def _ids(self, feature: Any, state_manager: StateManager) -> Any:
        raise NotImplementedError

    def get_sparse_tensors(
        self, transformation_cache: Any, state_manager: StateManager
    ) -> IdWeightPair:
        """The ids; they have no weights."""
        return IdWeightPair(transformation_cache.get(self, state_manager), None)

    @property
    def parents(self) -> list[Any]:
        """The name of the feature."""
        return [self.key]


@dataclass(frozen=True)
class HashedCategoricalColumn(OfFeature):
    """Made by `categorical_column_with_hash_bucket`.

    >>> tf.feature_column.categorical_column_with_hash_bucket("word", 1000).num_buckets
    1000
    """

    key: str
    hash_bucket_size: int
    dtype: tf.DType

    @property
    def num_buckets(self) -> int:
        """How many buckets there are."""
        return self.hash_bucket_size

    def _ids(self, feature: Any, state_manager: StateManager) -> Any:
        same_kind(self.dtype, feature, self.key)
        words = feature.values
        if self.dtype != tf.string:
            words = tf.as_string(words)
        ids = tf.string_to_hash_bucket_fast(words, self.hash_bucket_size, name="lookup")
        return tf.SparseTensor(feature.indices, ids, feature.dense_shape)


def categorical_column_with_hash_bucket(
    key: str, hash_bucket_size: int, dtype: Any = tf.string
) -> HashedCategoricalColumn:
    """Ids by a hash of the value: ``tf.strings.to_hash_bucket_fast``, of integers as text.

    Args:
        key: the name of the feature: strings or integers, dense ``[batch]`` or ``[batch, n]``
            (an empty string or -1 is missing) or sparse.
        hash_bucket_size: how many ids there are.
        dtype: string or an integer type.

    Raises:
        ValueError: for another type, or no buckets.

    >>> word = tf.feature_column.categorical_column_with_hash_bucket("word", 10)
    >>> ids = tf.feature_column.indicator_column(word)
    >>> layer = tf.feature_column.input_layer({"word": ["omar", "stringer"]}, [ids])
    >>> with tf.Session() as session:
    ...     session.run(layer).argmax(axis=1).tolist()
    [6, 4]
    """
    if hash_bucket_size is None:
        raise ValueError(f"hash_bucket_size must be set. key: {key}")
    if hash_bucket_size < 1:
        raise ValueError(
            f"hash_bucket_size must be at least 1. hash_bucket_size: {hash_bucket_size}, key: {key}"
        )
    checked_key(key)
    return HashedCategoricalColumn(
        key, hash_bucket_size, string_or_int(dtype, f"column_name: {key}")
    )


class _OfVocabulary(OfFeature):
    """Ids by a table. A subclass makes the table."""

    num_oov_buckets: int
    default_value: int

    def _ids(self, feature: Any, state_manager: StateManager) -> Any:
        same_kind(self.dtype, feature, self.key)
        key_dtype = self.dtype
        if feature.dtype.is_integer:
            key_dtype = tf.int64
            feature = tf.cast(feature, tf.int64)
        name = f"{self.key}_lookup"
        table = self._table(key_dtype, name)
        if state_manager is not None:
            state_manager.add_resource(self, name, table)
        return table.lookup(feature)

    def _table(self, key_dtype: tf.DType, name: str) -> Any:
        raise NotImplementedError


@dataclass(frozen=True)
class VocabularyFileCategoricalColumn(_OfVocabulary):
    """Made by `categorical_column_with_vocabulary_file`.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".txt") as words:
    ...     _ = words.write("red\\nblue\\n")
    ...     words.flush()
    ...     column = tf.feature_column.categorical_column_with_vocabulary_file("color", words.name)
    >>> column.num_buckets
    2
    """

    key: str
    vocabulary_file: str
    vocabulary_size: int
    num_oov_buckets: int
    dtype: tf.DType
    default_value: int

    @property
    def num_buckets(self) -> int:
        """How many words there are, and buckets for others."""
        return self.vocabulary_size + self.num_oov_buckets

    def _table(self, key_dtype: tf.DType, name: str) -> Any:
        return index_table_from_file(
            vocabulary_file=self.vocabulary_file,
            num_oov_buckets=self.num_oov_buckets,
            vocab_size=self.vocabulary_size,
            default_value=self.default_value,
            key_dtype=key_dtype,
            name=name,
        )


def categorical_column_with_vocabulary_file(
    key: str,
    vocabulary_file: str,
    vocabulary_size: int | None = None,
    num_oov_buckets: int = 0,
    default_value: int | None = None,
    dtype: Any = tf.string,
) -> VocabularyFileCategoricalColumn:
    """Ids by the lines of a file: the first line is 0.

    Args:
        key: the name of the feature, ``[batch]`` or ``[batch, n]``.
        vocabulary_file: the path of the file.
        vocabulary_size: how many lines count; by default all.
        num_oov_buckets: how many further ids other words share, by their hash.
        default_value: the id of other words when there are no such buckets, by default -1:
            they are left out.
        dtype: string or an integer type.

    Raises:
        ValueError: if there is no file, no line, both buckets and a default, or another type.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".txt") as words:
    ...     _ = words.write("red\\nblue\\n")
    ...     words.flush()
    ...     color = tf.feature_column.categorical_column_with_vocabulary_file("color", words.name)
    ...     layer = tf.feature_column.input_layer(
    ...         {"color": ["blue", "green"]}, [tf.feature_column.indicator_column(color)]
    ...     )
    ...     with tf.Session() as session:
    ...         session.run(tf.tables_initializer())
    ...         session.run(layer).tolist()
    [[0.0, 1.0], [0.0, 0.0]]
    """
    if not vocabulary_file:
        raise ValueError(f"Missing vocabulary_file in {key}.")
    if vocabulary_size is None:
        if not system.exists(vocabulary_file):
            raise ValueError(f"vocabulary_file in {key} does not exist: {vocabulary_file}.")
        with GFile(vocabulary_file) as lines:
            vocabulary_size = sum(1 for _ in lines)
    if vocabulary_size < 1:
        raise ValueError(f"Invalid vocabulary_size in {key}.")
    check_oov(num_oov_buckets, default_value is not None, key)
    kind = string_or_int(dtype, f"column_name: {key}")
    return VocabularyFileCategoricalColumn(
        checked_key(key),
        vocabulary_file,
        vocabulary_size,
        num_oov_buckets or 0,
        kind,
        -1 if default_value is None else default_value,
    )


@dataclass(frozen=True)
class VocabularyListCategoricalColumn(_OfVocabulary):
    """Made by `categorical_column_with_vocabulary_list`.

    >>> tf.feature_column.categorical_column_with_vocabulary_list("size", ["S", "L"]).num_buckets
    2
    """

    key: str
    vocabulary_list: tuple[Any, ...]
    dtype: tf.DType
    default_value: int
    num_oov_buckets: int

    @property
    def num_buckets(self) -> int:
        """How many words there are, and buckets for others."""
        return len(self.vocabulary_list) + self.num_oov_buckets

    def _table(self, key_dtype: tf.DType, name: str) -> Any:
        return index_table_from_tensor(
            vocabulary_list=self.vocabulary_list,
            default_value=self.default_value,
            num_oov_buckets=self.num_oov_buckets,
            dtype=key_dtype,
            name=name,
        )


def categorical_column_with_vocabulary_list(
    key: str,
    vocabulary_list: Sequence[Any],
    dtype: Any = None,
    default_value: int = -1,
    num_oov_buckets: int = 0,
) -> VocabularyListCategoricalColumn:
    """Ids by the places in a list.

    Args:
        key: the name of the feature, ``[batch]`` or ``[batch, n]``.
        vocabulary_list: strings or integers, each once.
        dtype: the type of the feature, by default that of the list.
        default_value: the id of what is not in the list; -1: it is left out.
        num_oov_buckets: how many further ids it shares instead, by its hash.

    Raises:
        ValueError: if the list is empty or has an element twice, both buckets and a default are
            given, or types do not fit.

    >>> size = tf.feature_column.categorical_column_with_vocabulary_list("size", ["S", "M", "L"])
    >>> layer = tf.feature_column.input_layer(
    ...     {"size": [["S", "L"], ["M", ""]]}, [tf.feature_column.indicator_column(size)]
    ... )
    >>> with tf.Session() as session:
    ...     session.run(tf.tables_initializer())
    ...     session.run(layer).tolist()
    [[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]
    """
    if vocabulary_list is None or len(vocabulary_list) < 1:
        raise ValueError(f"vocabulary_list {vocabulary_list} must be non-empty, column_name: {key}")
    if len(set(vocabulary_list)) != len(vocabulary_list):
        raise ValueError(f"Duplicate keys in vocabulary_list {vocabulary_list}, column_name: {key}")
    listed = tf.as_dtype(np.array(vocabulary_list).dtype)
    check_oov(num_oov_buckets, default_value != -1, key)
    string_or_int(listed, f"column_name: {key} vocabulary")
    kind = listed if dtype is None else tf.as_dtype(dtype)
    if kind.is_integer != listed.is_integer:
        raise ValueError(
            f"dtype {kind} and vocabulary dtype {listed} do not match, column_name: {key}"
        )
    string_or_int(kind, f"column_name: {key}")
    return VocabularyListCategoricalColumn(
        checked_key(key), tuple(vocabulary_list), kind, default_value, num_oov_buckets
    )


@dataclass(frozen=True)
class IdentityCategoricalColumn(OfFeature):
    """Made by `categorical_column_with_identity`.

    >>> tf.feature_column.categorical_column_with_identity("day", 7).number_buckets
    7
    """

    key: str
    number_buckets: int
    default_value: int | None

    @property
    def dtype(self) -> Any:
        """The type in files: int64."""
        return tf.int64

    @property
    def num_buckets(self) -> int:
        """How many ids there are."""
        return self.number_buckets

    def _ids(self, feature: Any, state_manager: StateManager) -> Any:
        if not feature.dtype.is_integer:
            raise ValueError(f"Invalid input, not integer. key: {self.key} dtype: {feature.dtype}")
        values = tf.cast(feature.values, tf.int64, name="values")
        zero = tf.constant(0, tf.int64, name="zero")
        limit = tf.constant(self.number_buckets, tf.int64, name="num_buckets")
        if self.default_value is None:
            values = self._checked(values, zero, limit)
        else:
            outside = tf.logical_or(values < zero, values >= limit, name="out_of_range")
            default = tf.constant(self.default_value, tf.int64)
            values = tf.where(outside, tf.fill(tf.shape(values), default), values)
        return tf.SparseTensor(feature.indices, values, feature.dense_shape)

    def _checked(self, values: Any, zero: Any, limit: Any) -> Any:
        less = tf.assert_less(
            values,
            limit,
            data=(values, limit),
            message=f'Bucket index for categorical column "{self.name}" exceeds number of buckets',
            name="assert_less_than_num_buckets",
        )
        positive = tf.assert_greater_equal(
            values,
            zero,
            data=(values,),
            message=f'Negative bucket index for categorical column "{self.name}"',
            name="assert_greater_or_equal_0",
        )
        with tf.control_dependencies([less, positive]):
            return tf.identity(values)


def categorical_column_with_identity(
    key: str, num_buckets: int, default_value: int | None = None
) -> IdentityCategoricalColumn:
    """The integers of the feature are the ids.

    Args:
        key: the name of the feature, ``[batch]`` or ``[batch, n]``; in a dense one, -1 is missing.
        num_buckets: ids are from 0 up to this.
        default_value: the id of integers outside; by default they are errors of the step.

    Raises:
        ValueError: if there are no buckets, or ``default_value`` is none of them.

    >>> day = tf.feature_column.categorical_column_with_identity("day", 3, default_value=0)
    >>> layer = tf.feature_column.input_layer(
    ...     {"day": [2, 9]}, [tf.feature_column.indicator_column(day)]
    ... )
    >>> with tf.Session() as session:
    ...     session.run(layer).tolist()
    [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    """
    if num_buckets < 1:
        raise ValueError(f"num_buckets {num_buckets} < 1, column_name {key}")
    if default_value is not None and not 0 <= default_value < num_buckets:
        raise ValueError(
            f"default_value {default_value} not in range [0, {num_buckets}), column_name {key}"
        )
    return IdentityCategoricalColumn(checked_key(key), num_buckets, default_value)
