"""The functions that describe features."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import headrace as tf
from headrace.feature_column.base import CategoricalColumn, FeatureColumn
from headrace.feature_column.categorical import (
    CrossedColumn,
    HashedCategoricalColumn,
    IdentityCategoricalColumn,
    VocabularyFileCategoricalColumn,
    VocabularyListCategoricalColumn,
    WeightedCategoricalColumn,
)
from headrace.feature_column.dense import (
    BucketizedColumn,
    EmbeddingColumn,
    IndicatorColumn,
    NumericColumn,
    SharedEmbeddingColumn,
    check_dimension,
    default_initializer,
)

__all__ = [
    "bucketized_column",
    "categorical_column_with_hash_bucket",
    "categorical_column_with_identity",
    "categorical_column_with_vocabulary_file",
    "categorical_column_with_vocabulary_list",
    "crossed_column",
    "embedding_column",
    "indicator_column",
    "numeric_column",
    "shared_embedding_columns",
    "weighted_categorical_column",
]


def numeric_column(
    key: str,
    shape: Any = (1,),
    default_value: Any = None,
    dtype: Any = tf.float32,
    normalizer_fn: Callable[[Any], Any] | None = None,
) -> NumericColumn:
    """Numbers as they are, float32 in the layer.

    Args:
        key: of the feature.
        shape: of the numbers of one example.
        default_value: a number, or a list of ``shape``, for examples that are parsed without it.
        dtype: of the parsed numbers.
        normalizer_fn: called with the batch ``[batch, *shape]``, gives one of the same shape.

    Raises:
        TypeError: if ``default_value`` cannot have ``dtype``, or the normaliser is no function.
        ValueError: if ``shape`` or ``dtype`` is wrong, or ``default_value`` has another shape.

    >>> column = tf.feature_column.numeric_column("age", normalizer_fn=lambda x: x / 100.0)
    >>> with tf.Session() as sess:
    ...     sess.run(tf.feature_column.input_layer({"age": [50.0]}, [column]))
    array([[0.5]], dtype=float32)
    """
    _check_key(key)
    dims = tuple(shape) if isinstance(shape, (list, tuple, tf.TensorShape)) else (shape,)
    dims = tuple(int(d) for d in dims)
    if not all(d > 0 for d in dims):
        raise ValueError(f"shape dimensions must be greater than 0. shape: {dims}, key: {key}")
    dtype = tf.as_dtype(dtype)
    if not (dtype.is_integer or dtype.is_floating):
        raise ValueError(f"dtype must be convertible to float. dtype: {dtype.name}, key: {key}")
    if normalizer_fn is not None and not callable(normalizer_fn):
        raise TypeError(f"normalizer_fn must be a callable. Given: {normalizer_fn!r:.200}")
    return NumericColumn(key, dims, _default(default_value, dims, dtype, key), dtype, normalizer_fn)


def _default(value: Any, shape: tuple[int, ...], dtype: Any, key: str) -> Any:
    if value is None:
        return None
    array = np.asarray(value)
    if array.dtype.kind not in "iufb" or (array.dtype.kind == "f" and dtype.is_integer):
        raise TypeError(
            f"The value must be compatible with dtype {dtype.name}, default_value: {value!r:.100}, "
            f"key: {key}"
        )
    if array.shape not in ((), shape):
        raise ValueError(
            "The shape of default_value must be equal to given shape. default_value: "
            f"{value!r:.100}, shape: {shape}, key: {key}"
        )
    return _nested(np.broadcast_to(array, shape).astype(dtype.as_numpy_dtype).tolist())


def _nested(value: Any) -> Any:
    return tuple(_nested(v) for v in value) if isinstance(value, list) else value


def bucketized_column(
    source_column: NumericColumn, boundaries: Sequence[float]
) -> BucketizedColumn:
    """Numbers by the interval that they lie in: below the first boundary, ..., from the last on.

    Args:
        source_column: a `numeric_column` of shape ``[n]``.
        boundaries: a sorted list of numbers.

    Raises:
        ValueError: if the source is none, has more axes, or the boundaries are not sorted.

    >>> age = tf.feature_column.numeric_column("age")
    >>> buckets = tf.feature_column.bucketized_column(age, [18, 65])
    >>> with tf.Session() as sess:
    ...     sess.run(tf.feature_column.input_layer({"age": [7.0, 18.0]}, [buckets]))
    array([[1., 0., 0.],
           [0., 1., 0.]], dtype=float32)
    """
    if not isinstance(source_column, NumericColumn):
        raise ValueError(
            "source_column must be a column generated with numeric_column(). "
            f"Given: {source_column!r:.200}"
        )
    if len(source_column.shape) > 1:
        raise ValueError(f"source_column must be one-dimensional column. Given: {source_column}")
    if not boundaries or not isinstance(boundaries, (list, tuple)):
        raise ValueError(f"boundaries must be a sorted list, but got {boundaries!r:.100}.")
    if any(a >= b for a, b in itertools.pairwise(boundaries)):
        raise ValueError(f"boundaries must be a sorted list, but got {boundaries!r:.100}.")
    return BucketizedColumn(source_column, tuple(boundaries))


def categorical_column_with_hash_bucket(
    key: str, hash_bucket_size: int, dtype: Any = tf.string
) -> HashedCategoricalColumn:
    """Categories by a hash, where they are too many to be listed.

    Args:
        key: of the feature: strings or integers, dense ``[batch, n]`` or sparse.
        hash_bucket_size: the number of categories that they become.
        dtype: of the feature.

    Raises:
        ValueError: if the size is not positive or ``dtype`` neither text nor integers.

    >>> word = tf.feature_column.categorical_column_with_hash_bucket("word", 1000)
    >>> word.name, word.num_buckets
    ('word', 1000)
    """
    _check_key(key)
    if hash_bucket_size is None or hash_bucket_size < 1:
        raise ValueError(
            f"hash_bucket_size must be at least 1. hash_bucket_size: {hash_bucket_size}, key: {key}"
        )
    return HashedCategoricalColumn(key, hash_bucket_size, _text_or_integers(dtype, key))


def categorical_column_with_vocabulary_file(
    key: str,
    vocabulary_file: str,
    vocabulary_size: int | None = None,
    num_oov_buckets: int = 0,
    default_value: int | None = None,
    dtype: Any = tf.string,
) -> VocabularyFileCategoricalColumn:
    """Categories by their line in a file.

    Args:
        key: of the feature: strings or integers, dense ``[batch, n]`` or sparse.
        vocabulary_file: the file, one category a line.
        vocabulary_size: so many lines of it; all if not given.
        num_oov_buckets: categories for others, told apart by a hash.
        default_value: the category of others; -1 leaves them out.
        dtype: of the feature.

    Raises:
        ValueError: if the file is not there or not long enough, or numbers are wrong.

    >>> with open("animals.txt", "w") as file:
    ...     _ = file.write("cat\\ndog\\n")
    >>> pet = tf.feature_column.categorical_column_with_vocabulary_file("pet", "animals.txt")
    >>> pet.num_buckets
    2
    """
    _check_key(key)
    if not vocabulary_file:
        raise ValueError(f"Missing vocabulary_file in {key}.")
    if vocabulary_size is None:
        if not tf.gfile.Exists(vocabulary_file):
            raise ValueError(
                f"vocabulary_file {vocabulary_file!r} of column {key!r} does not exist."
            )
        with tf.gfile.GFile(vocabulary_file, "rb") as lines:
            vocabulary_size = sum(1 for _ in lines)
    if vocabulary_size < 1:
        raise ValueError(f"Invalid vocabulary_size {vocabulary_size} in {key}.")
    _check_others(key, num_oov_buckets, default_value)
    return VocabularyFileCategoricalColumn(
        key,
        vocabulary_file,
        vocabulary_size,
        num_oov_buckets or 0,
        -1 if default_value is None else default_value,
        _text_or_integers(dtype, key),
    )


def categorical_column_with_vocabulary_list(
    key: str,
    vocabulary_list: Sequence[Any],
    dtype: Any = None,
    default_value: int = -1,
    num_oov_buckets: int = 0,
) -> VocabularyListCategoricalColumn:
    """Categories by their place in a list.

    Args:
        key: of the feature: strings or integers, dense ``[batch, n]`` or sparse.
        vocabulary_list: the categories.
        dtype: of the feature; that of the list if not given.
        default_value: the category of others; -1 leaves them out.
        num_oov_buckets: categories for others, told apart by a hash.

    Raises:
        ValueError: if the list is empty or names something twice, dtypes differ, or numbers are
            wrong.

    >>> pet = tf.feature_column.categorical_column_with_vocabulary_list("pet", ["cat", "dog"])
    >>> pet.num_buckets
    2
    """
    _check_key(key)
    if vocabulary_list is None or len(vocabulary_list) < 1:
        raise ValueError(
            f"vocabulary_list {vocabulary_list!r} must be non-empty, column_name: {key}"
        )
    if len(set(vocabulary_list)) != len(vocabulary_list):
        raise ValueError(
            f"Duplicate keys in vocabulary_list {vocabulary_list!r:.200}, column_name: {key}"
        )
    own = np.array(vocabulary_list).dtype
    listed = _text_or_integers(tf.string if own.kind in "OUS" else tf.as_dtype(own), key)
    kind = listed if dtype is None else _text_or_integers(dtype, key)
    if kind.is_integer != listed.is_integer:
        raise ValueError(
            f"dtype {kind.name} and vocabulary dtype {listed.name} do not match, column_name: {key}"
        )
    _check_others(key, num_oov_buckets, None if default_value == -1 else default_value)
    return VocabularyListCategoricalColumn(
        key, tuple(vocabulary_list), kind, default_value, num_oov_buckets
    )


def categorical_column_with_identity(
    key: str, num_buckets: int, default_value: int | None = None
) -> IdentityCategoricalColumn:
    """Categories that are numbers from 0 already.

    Args:
        key: of the feature: integers, dense ``[batch, n]`` or sparse.
        num_buckets: numbers are below this.
        default_value: the category of other numbers; without it a step with one fails with
            InvalidArgumentError.

    Raises:
        ValueError: if ``num_buckets`` is not positive, or ``default_value`` out of range.

    >>> video = tf.feature_column.categorical_column_with_identity("video", 100, default_value=0)
    >>> video.num_buckets
    100
    """
    _check_key(key)
    if num_buckets < 1:
        raise ValueError(f"num_buckets {num_buckets} < 1, column_name {key}")
    if default_value is not None and not 0 <= default_value < num_buckets:
        raise ValueError(
            f"default_value {default_value} not in range [0, {num_buckets}), column_name {key}"
        )
    return IdentityCategoricalColumn(key, num_buckets, default_value)


def weighted_categorical_column(
    categorical_column: CategoricalColumn, weight_feature_key: str, dtype: Any = tf.float32
) -> WeightedCategoricalColumn:
    """Categories with weights.

    Args:
        categorical_column: the categories.
        weight_feature_key: the feature with a weight for each, of the same shape.
        dtype: of the weights.

    Raises:
        ValueError: if that is no column of categories, or ``dtype`` no number's.

    >>> word = tf.feature_column.categorical_column_with_hash_bucket("word", 1000)
    >>> tf.feature_column.weighted_categorical_column(word, "frequency").name
    'word_weighted_by_frequency'
    """
    _need_categories(categorical_column)
    if dtype is None or not (tf.as_dtype(dtype).is_integer or tf.as_dtype(dtype).is_floating):
        raise ValueError(f"dtype {dtype} is not convertible to float.")
    return WeightedCategoricalColumn(categorical_column, weight_feature_key, tf.as_dtype(dtype))


def crossed_column(
    keys: Sequence[Any], hash_bucket_size: int, hash_key: int | None = None
) -> CrossedColumn:
    """Combinations of categories: each of one feature with each of the others, by a hash.

    Args:
        keys: two or more: keys of features ``[batch, n]``, or columns of categories (not hashed
            ones).
        hash_bucket_size: the number of categories that they become.
        hash_key: another one gives other hashes.

    Raises:
        ValueError: if there are less than two, one is no column of categories or a hashed one, or
            the size is not positive.

    >>> cross = tf.feature_column.crossed_column(["city", "month"], 1000)
    >>> cross.name
    'city_X_month'
    """
    if not hash_bucket_size or hash_bucket_size < 1:
        raise ValueError(f"hash_bucket_size must be > 1. hash_bucket_size: {hash_bucket_size}")
    if isinstance(keys, str) or not keys or len(keys) < 2:
        raise ValueError(f"keys must be a list with length > 1. Given: {keys!r:.200}")
    for key in keys:
        if isinstance(key, HashedCategoricalColumn):
            raise ValueError(
                "categorical_column_with_hash_bucket is not supported for crossing. Hashing before "
                "crossing will increase probability of collision. Instead, use the feature name as "
                f"a string. Given: {key}"
            )
        if not isinstance(key, (str, CategoricalColumn)):
            raise ValueError(
                "Unsupported key type. All keys must be either string, or categorical column "
                f"except HashedCategoricalColumn. Given: {key!r:.200}"
            )
    return CrossedColumn(tuple(keys), hash_bucket_size, hash_key)


def indicator_column(categorical_column: CategoricalColumn) -> IndicatorColumn:
    """How often each category comes: a vector with one number for each.

    Args:
        categorical_column: the categories.

    Raises:
        ValueError: if that is no column of categories.

    >>> pet = tf.feature_column.categorical_column_with_identity("pet", 3)
    >>> with tf.Session() as sess:
    ...     sess.run(tf.feature_column.input_layer(
    ...         {"pet": [[0, 0], [2, -1]]}, [tf.feature_column.indicator_column(pet)]))
    array([[2., 0., 0.],
           [0., 0., 1.]], dtype=float32)
    """
    _need_categories(categorical_column)
    return IndicatorColumn(categorical_column)


def embedding_column(
    categorical_column: CategoricalColumn,
    dimension: int,
    combiner: str = "mean",
    initializer: Any = None,
    ckpt_to_load_from: str | None = None,
    tensor_name_in_ckpt: str | None = None,
    max_norm: float | None = None,
    trainable: bool = True,
) -> EmbeddingColumn:
    """A learned vector for each category; those of an example are combined.

    Args:
        categorical_column: the categories.
        dimension: the size of the vectors.
        combiner: "mean", "sqrtn" or "sum" of an example's vectors; none is the zero vector.
        initializer: of the table ``[categories, dimension]``; truncated normal with the deviation
            1 / sqrt(dimension) if not given.
        ckpt_to_load_from, tensor_name_in_ckpt: a checkpoint and its tensor, to begin with.
        max_norm: longer vectors are cut to this norm when they are read.
        trainable: whether the table is trained.

    Raises:
        ValueError: if ``dimension`` is not positive, only one of checkpoint and tensor is given,
            the initialiser is no function, or that is no column of categories.

    >>> video = tf.feature_column.categorical_column_with_identity("video", 100)
    >>> column = tf.feature_column.embedding_column(video, 8)
    >>> tf.feature_column.input_layer({"video": [[1], [2]]}, [column]).shape
    TensorShape([Dimension(2), Dimension(8)])
    """
    _need_categories(categorical_column)
    initializer = _embedding_options(
        dimension, initializer, ckpt_to_load_from, tensor_name_in_ckpt, categorical_column.name
    )
    return EmbeddingColumn(
        categorical_column,
        dimension,
        combiner,
        initializer,
        ckpt_to_load_from,
        tensor_name_in_ckpt,
        max_norm,
        trainable,
    )


def shared_embedding_columns(
    categorical_columns: Sequence[CategoricalColumn],
    dimension: int,
    combiner: str = "mean",
    initializer: Any = None,
    shared_embedding_collection_name: str | None = None,
    ckpt_to_load_from: str | None = None,
    tensor_name_in_ckpt: str | None = None,
    max_norm: float | None = None,
    trainable: bool = True,
) -> list[SharedEmbeddingColumn]:
    """Embeddings of several columns in one table ``[categories, dimension]``.

    Args:
        categorical_columns: columns of one kind with as many categories each.
        dimension, combiner, initializer, ckpt_to_load_from, tensor_name_in_ckpt, max_norm,
            trainable: as for `embedding_column`.
        shared_embedding_collection_name: of the collection that holds the table.

    Returns:
        A column for each, in the order given.

    Raises:
        ValueError: if the columns differ in kind or number of categories, or as for
            `embedding_column`.

    >>> seen = tf.feature_column.categorical_column_with_identity("seen", 50)
    >>> liked = tf.feature_column.categorical_column_with_identity("liked", 50)
    >>> columns = tf.feature_column.shared_embedding_columns([seen, liked], 4)
    >>> net = tf.feature_column.input_layer({"seen": [[1]], "liked": [[2]]}, columns)
    >>> net.shape, len(tf.trainable_variables())
    (TensorShape([Dimension(1), Dimension(8)]), 1)
    """
    ordered = sorted(categorical_columns, key=lambda column: column.name)
    for column in ordered:
        _need_categories(column)
    kinds = {type(_unweighted(column)) for column in ordered}
    if len(kinds) > 1:
        raise ValueError(
            "To use shared_embedding_column, all categorical_columns must have the same type, or "
            "be weighted_categorical_column of the same type. "
            f"Given: {[f'{c.name}: {type(_unweighted(c)).__name__}' for c in ordered]}"
        )
    if len({column.num_buckets for column in ordered}) > 1:
        raise ValueError(
            "To use shared_embedding_column, all categorical_columns must have the same number of "
            f"buckets. Given: { {column.name: column.num_buckets for column in ordered} }"
        )
    name = shared_embedding_collection_name
    if not name:
        name = "_".join(column.name for column in ordered) + "_shared_embedding"
    initializer = _embedding_options(
        dimension, initializer, ckpt_to_load_from, tensor_name_in_ckpt, name
    )
    return [
        SharedEmbeddingColumn(
            column,
            dimension,
            combiner,
            initializer,
            ckpt_to_load_from,
            tensor_name_in_ckpt,
            max_norm,
            trainable,
            name,
        )
        for column in categorical_columns
    ]


def _unweighted(column: Any) -> Any:
    return column.categorical_column if isinstance(column, WeightedCategoricalColumn) else column


def _embedding_options(
    dimension: Any, initializer: Any, checkpoint: Any, tensor: Any, name: str
) -> Any:
    """The initialiser, when all options are right."""
    check_dimension(dimension)
    if (checkpoint is None) != (tensor is None):
        raise ValueError(
            "Must specify both `ckpt_to_load_from` and `tensor_name_in_ckpt` or none of them."
        )
    if initializer is not None and not callable(initializer):
        raise ValueError(
            f"initializer must be callable if specified. Embedding of column_name: {name}"
        )
    return default_initializer(dimension) if initializer is None else initializer


def _check_key(key: Any) -> None:
    if not isinstance(key, str):
        raise ValueError(
            f"key must be a string. Got: type {type(key).__name__}, given key: {key!r:.100}."
        )


def _need_categories(column: Any) -> None:
    if not isinstance(column, CategoricalColumn):
        kind = "" if isinstance(column, FeatureColumn) else f" (type {type(column).__name__})"
        raise ValueError(
            f"categorical_column must be a column of categories, given{kind}: {column!r:.200}. "
            "Numbers become categories by bucketized_column."
        )


def _text_or_integers(dtype: Any, key: str) -> Any:
    found = tf.as_dtype(dtype)
    if found != tf.string and not found.is_integer:
        raise ValueError(
            f"column_name: {key} dtype must be string or integer. dtype: {found.name}."
        )
    return found


def _check_others(key: str, buckets: int, default: int | None) -> None:
    if buckets and default is not None:
        raise ValueError(f"Can't specify both num_oov_buckets and default_value in {key}.")
    if buckets and buckets < 0:
        raise ValueError(f"Invalid num_oov_buckets {buckets} in {key}.")
