"""Functions that make the first feature columns."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import headrace as tf
from headrace.contrib.layers.feature_columns import (
    _BucketizedColumn,
    _CrossedColumn,
    _EmbeddingColumn,
    _OneHotColumn,
    _RealValuedColumn,
    _SparseColumn,
    _SparseColumnHashed,
    _SparseColumnIntegerized,
    _SparseColumnKeys,
    _SparseColumnVocabulary,
    _SparseIdLookupConfig,
    _WeightedSparseColumn,
    default_stddev_initializer,
    shared,
)
from headrace.feature_column.arguments import check_embedding, checked_default, numeric_dtype

__all__ = [
    "bucketized_column",
    "crossed_column",
    "embedding_column",
    "one_hot_column",
    "real_valued_column",
    "shared_embedding_columns",
    "sparse_column_with_hash_bucket",
    "sparse_column_with_integerized_feature",
    "sparse_column_with_keys",
    "sparse_column_with_vocabulary_file",
    "weighted_sparse_column",
]


def real_valued_column(
    column_name: str,
    dimension: int = 1,
    default_value: Any = None,
    dtype: Any = tf.float32,
    normalizer: Any = None,
) -> _RealValuedColumn:
    """Numbers: a feature ``[batch]`` or ``[batch, dimension]``.

    Args:
        default_value: for examples that lack the feature: a number, or a list of them.
        dtype: the type in files.
        normalizer: function of the whole feature.

    Raises:
        TypeError: if the dimension is no integer, or the default of another type.
        ValueError: if the dimension is less than 1, the type no number, or the default of another
            length.

    >>> tf.contrib.layers.real_valued_column("age").name
    'age'
    """
    if isinstance(dimension, bool) or not isinstance(dimension, int):
        raise TypeError(
            f"dimension must be an integer. dimension: {dimension}, column_name: {column_name}"
        )
    if dimension < 1:
        raise ValueError(
            f"dimension must be greater than 0. dimension: {dimension}, column_name: {column_name}"
        )
    kind = numeric_dtype(dtype, column_name)
    default = checked_default((dimension,), default_value, kind, column_name)
    if default is not None and kind.is_floating:
        default = tuple(float(value) for value in default)
    return _RealValuedColumn(column_name, dimension, default, kind, normalizer)


def bucketized_column(source_column: Any, boundaries: Any) -> _BucketizedColumn:
    """The bucket of each number of a real-valued column, ``[batch, buckets]`` when dense.

    Raises:
        TypeError: if the column is of another kind.
        ValueError: if the boundaries fall, or there are none.

    >>> age = tf.contrib.layers.real_valued_column("age")
    >>> tf.contrib.layers.bucketized_column(age, [18, 65]).name
    'age_bucketized'
    """
    if not isinstance(source_column, _RealValuedColumn):
        raise TypeError(
            "source_column must be an instance of _RealValuedColumn. "
            f"source_column: {source_column}"
        )
    if not isinstance(boundaries, (list, tuple)) or not boundaries:
        raise ValueError(f"boundaries must be a non-empty list or tuple. boundaries: {boundaries}")
    if any(not a <= b for a, b in pairwise(boundaries)):
        raise ValueError(f"boundaries must be a sorted list. boundaries: {boundaries}")
    return _BucketizedColumn(source_column, tuple(dict.fromkeys(boundaries)))


def sparse_column_with_integerized_feature(
    column_name: str, bucket_size: int, combiner: str = "sum", dtype: Any = tf.int64
) -> _SparseColumn:
    """Integers, modulo ``bucket_size``, as ids; the feature has shape ``[batch, n]``.

    Raises:
        ValueError: if the type is no integer, or there are no buckets.

    >>> tf.contrib.layers.sparse_column_with_integerized_feature("day", 7).length
    7
    """
    return _SparseColumnIntegerized(
        column_name, True, bucket_size, None, combiner, tf.as_dtype(dtype)
    )


def sparse_column_with_hash_bucket(
    column_name: str,
    hash_bucket_size: int,
    combiner: str = "sum",
    dtype: Any = tf.string,
    hash_keys: Any = None,
) -> _SparseColumn:
    """Ids by a hash of strings or integers ``[batch, n]``.

    Args:
        hash_keys: pairs of integers: with them each value has an id for each pair.

    Raises:
        ValueError: for another type, no buckets, or keys of another form.

    >>> tf.contrib.layers.sparse_column_with_hash_bucket("word", 100).length
    100
    """
    if hash_keys is not None:
        if not isinstance(hash_keys, list) or not hash_keys:
            raise ValueError("hash_keys must be a non-empty list.")
        for pair in hash_keys:
            whole = isinstance(pair, list) and len(pair) == 2
            if not whole or not all(isinstance(key, int) for key in pair):
                raise ValueError("Each element of hash_keys must be a pair of integers.")
    return _SparseColumnHashed(
        column_name, False, hash_bucket_size, None, combiner, tf.as_dtype(dtype), hash_keys
    )


def sparse_column_with_keys(
    column_name: str,
    keys: Sequence[Any],
    default_value: int = -1,
    combiner: str = "sum",
    dtype: Any = tf.string,
) -> _SparseColumn:
    """Ids by the places in a list; the feature has shape ``[batch, n]``.

    Raises:
        ValueError: for another type.

    >>> tf.contrib.layers.sparse_column_with_keys("size", ["S", "L"]).length
    2
    """
    words = _SparseIdLookupConfig(
        keys=tuple(keys), vocab_size=len(keys), default_value=default_value
    )
    return _SparseColumnKeys(column_name, False, None, words, combiner, tf.as_dtype(dtype))


def sparse_column_with_vocabulary_file(
    column_name: str,
    vocabulary_file: str,
    num_oov_buckets: int = 0,
    vocab_size: int | None = None,
    default_value: int = -1,
    combiner: str = "sum",
    dtype: Any = tf.string,
) -> _SparseColumn:
    """Ids by the lines of a file; the feature has shape ``[batch, n]``.

    Raises:
        ValueError: without ``vocab_size``, or for another type.

    >>> column = tf.contrib.layers.sparse_column_with_vocabulary_file("w", "w.txt", vocab_size=9)
    >>> column.length
    9
    """
    if vocab_size is None:
        raise ValueError(f"vocab_size should be defined. column_name: {column_name}")
    words = _SparseIdLookupConfig(
        vocabulary_file=vocabulary_file,
        num_oov_buckets=num_oov_buckets,
        vocab_size=vocab_size,
        default_value=default_value,
    )
    return _SparseColumnVocabulary(column_name, False, None, words, combiner, tf.as_dtype(dtype))


def weighted_sparse_column(
    sparse_id_column: Any, weight_column_name: str, dtype: Any = tf.float32
) -> _WeightedSparseColumn:
    """Ids with weights from another feature of the same shape.

    Raises:
        ValueError: if the weights are no numbers.

    >>> word = tf.contrib.layers.sparse_column_with_hash_bucket("word", 100)
    >>> tf.contrib.layers.weighted_sparse_column(word, "count").name
    'word_weighted_by_count'
    """
    kind = tf.as_dtype(dtype)
    if not (kind.is_integer or kind.is_floating):
        raise ValueError(f"dtype is not convertible to float. Given {dtype}")
    return _WeightedSparseColumn(sparse_id_column, weight_column_name, kind)


def one_hot_column(sparse_id_column: Any) -> _OneHotColumn:
    """How often each id is there, ``[batch, ids]``.

    Raises:
        TypeError: if the column has no ids.

    >>> size = tf.contrib.layers.sparse_column_with_keys("size", ["S", "L"])
    >>> tf.contrib.layers.one_hot_column(size).name
    'size_one_hot'
    """
    return _OneHotColumn(_with_ids(sparse_id_column))


def _with_ids(column: Any) -> Any:
    if not hasattr(column, "get_sparse_tensors"):
        raise TypeError(f"The column has no ids; make it a sparse column. Given: {column}")
    return column


def embedding_column(
    sparse_id_column: Any,
    dimension: int,
    combiner: str = "mean",
    initializer: Any = None,
    ckpt_to_load_from: str | None = None,
    tensor_name_in_ckpt: str | None = None,
    max_norm: float | None = None,
    trainable: bool = True,
) -> _EmbeddingColumn:
    """Rows of a trained table, ``[batch, dimension]``.

    Args: as `tf.feature_column.embedding_column`; the default initialiser has the deviation
        ``1 / sqrt(ids)``.

    Raises:
        TypeError: if the column has no ids.
        ValueError: for a dimension below 1, half of what names a checkpoint's tensor, or an
            initialiser that is not callable.

    >>> word = tf.contrib.layers.sparse_column_with_hash_bucket("word", 100)
    >>> tf.contrib.layers.embedding_column(word, 4).name
    'word_embedding'
    """
    check_embedding(dimension, ckpt_to_load_from, tensor_name_in_ckpt)
    return _EmbeddingColumn(
        _with_ids(sparse_id_column),
        dimension,
        combiner,
        default_stddev_initializer(sparse_id_column, initializer),
        ckpt_to_load_from,
        tensor_name_in_ckpt,
        None,
        None,
        max_norm,
        trainable,
    )


def shared_embedding_columns(
    sparse_id_columns: Sequence[Any],
    dimension: int,
    combiner: str = "mean",
    shared_embedding_name: str | None = None,
    initializer: Any = None,
    ckpt_to_load_from: str | None = None,
    tensor_name_in_ckpt: str | None = None,
    max_norm: float | None = None,
    trainable: bool = True,
) -> Any:
    """Embedding columns ``[batch, dimension]`` with one table for all.

    Raises:
        TypeError: if the columns are no list of sparse columns.
        ValueError: if there is none, or they differ in ids.

    >>> words = [tf.contrib.layers.sparse_column_with_hash_bucket(name, 100) for name in "ab"]
    >>> [column.name for column in tf.contrib.layers.shared_embedding_columns(words, 4)]
    ['a_shared_embedding', 'b_shared_embedding']
    """
    columns = sparse_id_columns
    if not isinstance(columns, Sequence) or isinstance(columns, str):
        raise TypeError(
            "sparse_id_columns must be a non-string sequence (ex: list or tuple) instead of type "
            f"{type(columns)}."
        )
    if not columns:
        raise ValueError("The input sparse_id_columns should have at least one element.")
    for column in columns:
        if not isinstance(column, (_SparseColumn, _WeightedSparseColumn)):
            raise TypeError(
                "Elements of sparse_id_columns must be _SparseColumn or _WeightedSparseColumn, but "
                f"{column} is not."
            )
    plain = [getattr(column, "sparse_id_column", column) for column in columns]
    if any((c.length, c.lookup_config) != (plain[0].length, plain[0].lookup_config) for c in plain):
        raise ValueError("The input sparse id columns are not compatible.")
    made = [
        embedding_column(
            column,
            dimension,
            combiner,
            default_stddev_initializer(columns[0], initializer),
            ckpt_to_load_from,
            tensor_name_in_ckpt,
            max_norm,
            trainable,
        )
        for column in columns
    ]
    if len(made) == 1 and not shared_embedding_name:
        return made
    return shared(made, shared_embedding_name or _shared_name(columns))


def _shared_name(columns: Sequence[Any]) -> str:
    """The first three names, plain columns before weighted ones."""
    weighted = [isinstance(column, _WeightedSparseColumn) for column in columns]
    ordered = [n for _, n in sorted(zip(weighted, (c.name for c in columns), strict=True))]
    more = f"_plus_{len(ordered) - 3}_others" if len(ordered) > 3 else ""
    return "_".join(ordered[:3]) + more + "_shared_embedding"


def crossed_column(
    columns: Any,
    hash_bucket_size: int,
    combiner: str = "sum",
    ckpt_to_load_from: str | None = None,
    tensor_name_in_ckpt: str | None = None,
    hash_key: int | None = None,
) -> _CrossedColumn:
    """Ids of combinations of the features ``[batch, n]`` of sparse columns, by a hash.

    Args:
        hash_key: starts the hash, which is that of ``tf.sparse.cross_hashed``. Without one it is
            an older hash, TensorFlow's default here.

    Raises:
        TypeError: if a column has no ids.
        ValueError: for fewer than two columns or buckets, or half of what names a checkpoint's
            tensor.

    >>> words = [tf.contrib.layers.sparse_column_with_hash_bucket(name, 100) for name in "ab"]
    >>> tf.contrib.layers.crossed_column(words, 1000).name
    'a_X_b'
    """
    for column in columns:
        if not isinstance(column, (_SparseColumn, _CrossedColumn, _BucketizedColumn)):
            raise TypeError(
                "columns must be a set of _SparseColumn, _CrossedColumn, or _BucketizedColumn "
                f"instances. (column {column} is a {type(column).__name__})"
            )
    if len(columns) < 2:
        raise ValueError(f"columns must contain at least 2 elements. columns: {columns}")
    if hash_bucket_size < 2:
        raise ValueError(
            f"hash_bucket_size must be at least 2. hash_bucket_size: {hash_bucket_size}"
        )
    check_embedding(1, ckpt_to_load_from, tensor_name_in_ckpt)
    ordered = tuple(sorted(columns, key=lambda column: column.name))
    return _CrossedColumn(
        ordered, hash_bucket_size, hash_key, combiner, ckpt_to_load_from, tensor_name_in_ckpt
    )
