"""Models of the first feature columns: inputs of networks, weighted sums, parsing."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import headrace as tf
from headrace import logging
from headrace.contrib.framework.variables import model_variable
from headrace.contrib.layers.feature_column_makers import real_valued_column
from headrace.contrib.layers.feature_columns import (
    OldFeatures,
    _BucketizedColumn,
    _CrossedColumn,
    _EmbeddingColumn,
    _OneHotColumn,
    _RealValuedColumn,
    to_rank,
)
from headrace.feature_column.columns import CategoricalColumn
from headrace.feature_column.dense import restore_from
from headrace.ops.state.partitioned import parts_of

__all__ = [
    "check_feature_columns",
    "create_feature_spec_for_parsing",
    "infer_real_valued_columns",
    "input_from_feature_columns",
    "joint_weighted_sum_from_feature_columns",
    "make_place_holder_tensors_for_base_features",
    "parse_feature_columns_from_examples",
    "parse_feature_columns_from_sequence_examples",
    "sequence_input_from_feature_columns",
    "transform_features",
    "weighted_sum_from_feature_columns",
]


def check_feature_columns(feature_columns: Any) -> None:
    """Refuse a dictionary, and a column that is there twice.

    Columns that differ in anything, their shape included, are two.

    Raises:
        ValueError: in these cases.

    >>> tf.contrib.layers.check_feature_columns([tf.contrib.layers.real_valued_column("age")])
    """
    if isinstance(feature_columns, dict):
        raise ValueError("Expected feature_columns to be iterable, found dict.")
    seen = set()
    for column in feature_columns:
        if column.key in seen:
            raise ValueError(
                f"Duplicate feature column key found for column: {column.name}. This usually means "
                "that the column is almost identical to another column, and one must be discarded."
            )
        seen.add(column.key)


def _ordered(feature_columns: Iterable[Any]) -> list[Any]:
    check_feature_columns(feature_columns)
    return sorted(feature_columns, key=lambda column: str(column.key))


def _collections(weight_collections: Any) -> Any:
    if not weight_collections:
        return None
    return list(dict.fromkeys([*weight_collections, tf.GraphKeys.GLOBAL_VARIABLES]))


def _input(
    features: Any,
    columns: list[Any],
    weight_collections: Any,
    trainable: bool,
    scope: tuple[Any, str],
    rank: int,
    cols_to_outs: dict[Any, Any] | None = None,
) -> Any:
    cache, outputs = OldFeatures(features), []
    with tf.variable_scope(scope[0], default_name=scope[1]):
        for column in columns:
            with tf.variable_scope(None, default_name=column.name):
                collections = _collections(weight_collections)
                outputs.append(column.deep(cache, collections, trainable, rank))
            if cols_to_outs is not None:
                cols_to_outs[column] = outputs[-1]
        return tf.concat(outputs, rank - 1)


def input_from_feature_columns(
    columns_to_tensors: dict[Any, Any],
    feature_columns: Any,
    weight_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
    cols_to_outs: dict[Any, Any] | None = None,
) -> Any:
    """The features as one matrix: a network's first layer.

    Args:
        columns_to_tensors: features by their names.
        feature_columns: real-valued, bucketised, one-hot and embedding columns.
        weight_collections: collections that variables join.
        scope: the variable scope, by default ``input_from_feature_columns``.
        cols_to_outs: a dictionary that gets the part of each column.

    Returns:
        ``[batch, sum of the columns' sizes]`` of float32, in the order of the columns' keys.

    Raises:
        ValueError: if a column is of another kind, a feature is missing, or shapes do not fit.

    >>> age = tf.contrib.layers.real_valued_column("age")
    >>> layer = tf.contrib.layers.input_from_feature_columns({"age": tf.constant([[1.0]])}, [age])
    >>> layer.shape.as_list()
    [1, 1]
    """
    return _input(
        columns_to_tensors,
        _ordered(feature_columns),
        weight_collections,
        trainable,
        (scope, "input_from_feature_columns"),
        2,
        cols_to_outs,
    )


def sequence_input_from_feature_columns(
    columns_to_tensors: dict[Any, Any],
    feature_columns: Any,
    weight_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
) -> Any:
    """The features of sequences as one tensor: a recurrent network's input.

    Args: as `input_from_feature_columns`; the features have shape ``[batch, steps, ...]``.

    Returns:
        ``[batch, steps, sum of the columns' sizes]`` of float32.

    Raises:
        ValueError: if a column is of another kind, a feature is missing, or shapes do not fit.

    >>> heat = tf.contrib.layers.real_valued_column("heat")
    >>> layer = tf.contrib.layers.sequence_input_from_feature_columns(
    ...     {"heat": tf.zeros([2, 5, 1])}, [heat]
    ... )
    >>> layer.shape.as_list()
    [2, 5, 1]
    """
    columns = _ordered(feature_columns)
    for column in columns:
        kind = type(column).__name__
        if not isinstance(column, (_OneHotColumn, _EmbeddingColumn, _RealValuedColumn)):
            raise ValueError(
                f"FeatureColumn type {kind} is not currently supported for sequence data."
            )
        source = getattr(column, "sparse_id_column", column)
        if isinstance(source, (_BucketizedColumn, _CrossedColumn)):
            raise ValueError(
                f"Column {source.name} is of type {type(source).__name__}, which is not currently "
                "supported for sequences."
            )
    place = (scope, "sequence_input_from_feature_columns")
    return _input(columns_to_tensors, columns, weight_collections, trainable, place, 3)


def _bias(num_outputs: int, trainable: bool, weight_collections: Any) -> Any:
    return model_variable(
        "bias_weight",
        shape=[num_outputs],
        initializer=tf.zeros_initializer(),
        trainable=trainable,
        collections=_collections(weight_collections),
    )


def _weights(name: str, shape: list[Any], trainable: bool, collections: Any) -> Any:
    return model_variable(
        name,
        shape=shape,
        dtype=tf.float32,
        initializer=tf.zeros_initializer(),
        trainable=trainable,
        collections=_collections(collections),
    )


def weighted_sum_from_feature_columns(
    columns_to_tensors: dict[Any, Any],
    feature_columns: Any,
    num_outputs: int,
    weight_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
) -> tuple[Any, dict[Any, Any], Any]:
    """The sum of weighted features and a bias; all weights begin with 0.

    Args:
        columns_to_tensors: features by their names.
        feature_columns: sparse, crossed, bucketised and real-valued columns.
        num_outputs: the size of the result for each example.
        weight_collections: collections that variables join.
        scope: the variable scope, by default ``weighted_sum_from_feature_columns``.

    Returns:
        ``[batch, num_outputs]``, the list of variables of each column, and the bias.

    Raises:
        ValueError: if a column is of another kind, a feature is missing, or shapes do not fit.

    >>> day = tf.contrib.layers.sparse_column_with_integerized_feature("day", 7)
    >>> sums, weights, bias = tf.contrib.layers.weighted_sum_from_feature_columns(
    ...     {"day": tf.constant([[3], [4]])}, [day], num_outputs=1
    ... )
    >>> weights[day][0].name, bias.name
    ('weighted_sum_from_feature_columns/day/weights:0',
     'weighted_sum_from_feature_columns/bias_weight:0')
    """
    cache, sums, made = OldFeatures(columns_to_tensors), [], {}
    with tf.variable_scope(scope, default_name="weighted_sum_from_feature_columns"):
        for column in _ordered(feature_columns):
            with tf.variable_scope(None, default_name=column.name):
                found = _weighted(column, cache, num_outputs, trainable, weight_collections)
                made[column], total = found
                sums.append(tf.reshape(total, [-1, num_outputs]))
        bias = _bias(num_outputs, trainable, weight_collections)
        return tf.nn.bias_add(tf.add_n(sums), bias), made, bias


def _weighted(
    column: Any, cache: OldFeatures, units: int, trainable: bool, collections: Any
) -> tuple[list[Any], Any]:
    if isinstance(column, CategoricalColumn):
        old: Any = column  # with a combiner and a checkpoint
        ids, factors = old.get_sparse_tensors(cache, None)
        variable = _weights("weights", [old.num_buckets, units], trainable, collections)
        path, tensor_name = old.checkpoint()
        restore_from(path, tensor_name, variable)
        total = tf.nn.safe_embedding_lookup_sparse(
            variable,
            ids,
            sparse_weights=factors,
            combiner=old.combiner,
            name=f"{column.name}_weights",
        )
        return parts_of(variable), total
    if not isinstance(column, _RealValuedColumn):
        raise ValueError(
            f"Error creating weighted sum for column: {column.name}.\nColumn {column} is not "
            "supported in linear models. Please use sparse_column."
        )
    numbers = to_rank(cache.get(column), 2, column.name)
    variable = _weights("weight", [numbers.shape.as_list()[1], units], trainable, collections)
    return [variable], tf.matmul(numbers, variable, name="matmul")


def joint_weighted_sum_from_feature_columns(
    columns_to_tensors: dict[Any, Any],
    feature_columns: Any,
    num_outputs: int,
    weight_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
) -> tuple[Any, list[Any], Any]:
    """As `weighted_sum_from_feature_columns`, with one variable for the weights of all columns.

    Returns:
        ``[batch, num_outputs]``, the list of the variable (or its parts), and the bias.

    Raises:
        NotImplementedError: for real-valued columns.
        ValueError: for weighted columns, or other combiners than "sum".

    >>> day = tf.contrib.layers.sparse_column_with_integerized_feature("day", 7)
    >>> sums, (weights,), bias = tf.contrib.layers.joint_weighted_sum_from_feature_columns(
    ...     {"day": tf.constant([[3], [4]])}, [day], num_outputs=1
    ... )
    >>> weights.name
    'joint_weighted_sum_from_feature_columns/linear_weights/weights:0'
    """
    cache, ids, size = OldFeatures(columns_to_tensors), [], 0
    with tf.variable_scope(scope, default_name="joint_weighted_sum_from_feature_columns"):
        for column in _ordered(feature_columns):
            if not isinstance(column, CategoricalColumn):
                raise NotImplementedError(
                    "Real-valued columns are not supported. Use weighted_sum_from_feature_columns "
                    "instead, or bucketize these columns."
                )
            old: Any = column  # with a combiner
            pair = old.get_sparse_tensors(cache, None)
            if pair.weight_tensor is not None or old.combiner != "sum":
                raise ValueError(
                    f"Joint sums take no weighted columns and no combiners other than sum, which "
                    f"{column.name} has. Please use weighted_sum_from_feature_columns instead."
                )
            own = pair.id_tensor
            moved = tf.cast(own.values, tf.int64) + size
            ids.append(tf.SparseTensor(own.indices, moved, own.dense_shape))
            size += column.num_buckets
        with tf.variable_scope(None, default_name="linear_weights"):
            variable = _weights("weights", [size, num_outputs], trainable, weight_collections)
            joined = tf.sparse_concat(1, ids)
            total = tf.nn.safe_embedding_lookup_sparse(variable, joined, combiner="sum")
        bias = _bias(num_outputs, trainable, weight_collections)
        return tf.nn.bias_add(total, bias), parts_of(variable), bias


def create_feature_spec_for_parsing(feature_columns: Any) -> dict[str, Any]:
    """What ``tf.parse_example`` needs for the features of columns: names, shapes and types.

    Raises:
        ValueError: if the columns are a dictionary, or one is there twice.

    >>> age = tf.contrib.layers.real_valued_column("age")
    >>> sorted(tf.contrib.layers.create_feature_spec_for_parsing([age]))
    ['age']
    """
    spec: dict[str, Any] = {}
    for column in _ordered(feature_columns):
        spec.update(column.config)
    return spec


def parse_feature_columns_from_examples(
    serialized: Any, feature_columns: Any, name: str | None = None, example_names: Any = None
) -> dict[Any, Any]:
    """Features, and what columns make of them, from serialised ``tf.train.Example`` messages.

    Args:
        serialized: strings ``[batch]``.

    Raises:
        ValueError: as `create_feature_spec_for_parsing`.

    >>> age = tf.contrib.layers.real_valued_column("age")
    >>> found = tf.contrib.layers.parse_feature_columns_from_examples(tf.constant([b""]), [age])
    >>> found[age].shape.as_list()
    [1, 1]
    """
    spec = create_feature_spec_for_parsing(feature_columns)
    features = tf.parse_example(serialized, spec, name=name, example_names=example_names)
    cache = OldFeatures(features)
    for column in _ordered(feature_columns):
        cache.get(column)
    return cache.results()


def _sequence_spec(feature_columns: Any) -> dict[str, Any]:
    """What a SequenceExample's feature lists need; a default makes a list optional."""
    spec: dict[str, Any] = {}
    for key, feature in create_feature_spec_for_parsing(feature_columns).items():
        if isinstance(feature, tf.VarLenFeature):
            spec[key] = feature
            continue
        optional = feature.default_value is not None
        if optional:
            logging.warning(
                'Found default value %s for feature "%s". Ignoring this value and setting '
                "`allow_missing=True` instead.",
                feature.default_value,
                key,
            )
        spec[key] = tf.FixedLenSequenceFeature(feature.shape, feature.dtype, optional)
    return spec


def parse_feature_columns_from_sequence_examples(
    serialized: Any,
    context_feature_columns: Any,
    sequence_feature_columns: Any,
    name: str | None = None,
    example_name: Any = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The features of columns from one serialised ``tf.train.SequenceExample``.

    Args:
        serialized: a scalar string, or a tensor of one: batches are made of what is parsed.
        context_feature_columns: columns of the context, or None.
        sequence_feature_columns: columns of feature lists, or None. A default value only says that
            the list may be missing.
        example_name: a scalar string for messages of errors.

    Returns:
        Features of the context, by name, as `parse_feature_columns_from_examples` has them for one
        example; and of the lists: ``[length, dimension]``, or a SparseTensor ``[length, most]``.

    Raises:
        ValueError: as `create_feature_spec_for_parsing`; or if there are several strings.

    >>> heat = tf.contrib.layers.real_valued_column("heat")
    >>> context, lists = tf.contrib.layers.parse_feature_columns_from_sequence_examples(
    ...     tf.placeholder(tf.string, []), None, [heat]
    ... )
    >>> lists["heat"].shape.as_list()
    [None, 1]
    """
    try:
        one = tf.reshape(serialized, [])
    except ValueError as error:
        raise ValueError(
            "serialized must contain a single sequence example. Batching must be done after "
            f"parsing for sequence examples. {error}"
        ) from None
    return tf.parse_single_sequence_example(
        one,
        create_feature_spec_for_parsing(context_feature_columns or []),
        _sequence_spec(sequence_feature_columns or []),
        example_name,
        name,
    )


def make_place_holder_tensors_for_base_features(feature_columns: Any) -> dict[str, Any]:
    """A placeholder for each feature of the columns: sparse, or ``[None, dimension]``.

    Raises:
        ValueError: as `create_feature_spec_for_parsing`.

    >>> age = tf.contrib.layers.real_valued_column("age", 2)
    >>> made = tf.contrib.layers.make_place_holder_tensors_for_base_features([age])
    >>> made["age"].shape.as_list()
    [None, 2]
    """
    made: dict[str, Any] = {}
    for key, feature in create_feature_spec_for_parsing(feature_columns).items():
        name = f"Placeholder_{key}"
        if isinstance(feature, tf.VarLenFeature):
            made[key] = tf.sparse_placeholder(feature.dtype, name=name)
        else:
            made[key] = tf.placeholder(feature.dtype, [None, feature.shape[0]], name)
    return made


def transform_features(features: dict[Any, Any], feature_columns: Any) -> dict[Any, Any]:
    """What columns make of features ``[batch, ...]``, by the columns.

    Raises:
        ValueError: if a feature is missing.

    >>> age = tf.contrib.layers.real_valued_column("age", normalizer=lambda x: x / 2.0)
    >>> list(tf.contrib.layers.transform_features({"age": tf.constant([[1.0]])}, [age])) == [age]
    True
    """
    cache = OldFeatures(features)
    return {column: cache.get(column) for column in _ordered(feature_columns)}


def infer_real_valued_columns(features: Any) -> list[_RealValuedColumn]:
    """A real-valued column for each feature ``[batch, ...]``; or for a tensor, with the name "".

    Raises:
        ValueError: if a feature is sparse, or holds no numbers.

    >>> columns = tf.contrib.layers.infer_real_valued_columns({"x": tf.zeros([5, 3])})
    >>> columns[0].dimension
    3
    """
    named = features if isinstance(features, dict) else {"": features}
    columns = []
    for name, tensor in named.items():
        sparse = isinstance(tensor, tf.SparseTensor)
        if sparse or not (tensor.dtype.is_integer or tensor.dtype.is_floating):
            raise ValueError(
                "SparseTensor, and types other than integers and floats, are not supported for "
                f"auto detection. Please define corresponding FeatureColumn for tensor {name} "
                f"{tensor}."
            )
        size = math.prod(tensor.shape.as_list()[1:])
        columns.append(real_valued_column(name, dimension=size, dtype=tensor.dtype))
    return columns
