"""What columns are made for: the input of a network, and linear models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import headrace as tf
from headrace.feature_column.base import (
    CategoricalColumn,
    ColumnVariables,
    DenseColumn,
    FeatureColumn,
    TransformationCache,
)
from headrace.feature_column.dense import check_columns

__all__ = ["input_layer", "linear_model", "make_parse_example_spec"]


def _options(weight_collections: Sequence[str] | None, trainable: bool) -> ColumnVariables:
    names = list(weight_collections or ())
    for name in (tf.GraphKeys.GLOBAL_VARIABLES, tf.GraphKeys.MODEL_VARIABLES):
        if name not in names:
            names.append(name)
    return ColumnVariables(names, trainable)


def _need_dense(columns: Sequence[FeatureColumn]) -> None:
    for column in columns:
        if not isinstance(column, DenseColumn):
            raise ValueError(
                "Items of feature_columns must be a DenseColumn. You can wrap a categorical column "
                f"with an embedding_column or indicator_column. Given: {column}"
            )


def _by_name(columns: Sequence[Any]) -> list[Any]:
    return sorted(columns, key=lambda column: column.name)


def input_layer(
    features: Mapping[str, Any],
    feature_columns: Any,
    weight_collections: Sequence[str] | None = None,
    trainable: bool = True,
    cols_to_vars: dict[Any, Any] | None = None,
    cols_to_output_tensors: dict[Any, Any] | None = None,
) -> tf.Tensor:
    """The numbers of all columns side by side, in the order of their names.

    Args:
        features: tensors or sparse tensors by key; their first axis is the batch, and a vector
            counts as one number for each example.
        feature_columns: columns of numbers; categories need an embedding or an indicator.
        weight_collections: further collections of the variables.
        trainable: whether embeddings are trained.
        cols_to_vars: filled with the list of variables of each column.
        cols_to_output_tensors: filled with the tensor of each column.

    Returns:
        The numbers, float32 of shape ``[batch, numbers]``.

    Raises:
        ValueError: if a feature is missing, a column gives categories, or batches differ in size.

    >>> price = tf.feature_column.numeric_column("price")
    >>> city = tf.feature_column.categorical_column_with_vocabulary_list("city", ["York", "Bath"])
    >>> features = {"price": [1.0, 2.0], "city": ["Bath", "York"]}
    >>> net = tf.feature_column.input_layer(
    ...     features, [price, tf.feature_column.indicator_column(city)])
    >>> with tf.Session() as sess:
    ...     sess.run(tf.tables_initializer())
    ...     sess.run(net)
    array([[0., 1., 1.],
           [1., 0., 2.]], dtype=float32)
    """
    columns = check_columns(feature_columns)
    _need_dense(columns)
    options = _options(weight_collections, trainable)
    found = TransformationCache(features)
    with tf.variable_scope(None, default_name="input_layer", values=_values(features)):
        outputs = []
        for column in _by_name(columns):
            with tf.variable_scope(None, default_name=column._var_scope_name) as scope:
                tensor = column.get_dense_tensor(found, options)
                size = column.variable_shape.num_elements()
                outputs.append(tf.reshape(tensor, [tf.shape(tensor)[0], size]))
                if cols_to_vars is not None:
                    name = scope.name + "/"
                    cols_to_vars[column] = tf.get_collection(tf.GraphKeys.GLOBAL_VARIABLES, name)
                if cols_to_output_tensors is not None:
                    cols_to_output_tensors[column] = outputs[-1]
        _check_batches(outputs, _by_name(columns))
        result: tf.Tensor = tf.concat(outputs, 1)
        return result


def _values(features: Mapping[str, Any]) -> list[Any]:
    return [v for v in features.values() if isinstance(v, tf.Tensor)]


def _check_batches(tensors: Sequence[Any], columns: Sequence[FeatureColumn]) -> None:
    known = {
        column.name: tensor.shape[0].value
        for column, tensor in zip(columns, tensors, strict=True)
        if tensor.shape[0].value is not None
    }
    if len(set(known.values())) > 1:
        raise ValueError(
            f"Batch size (first dimension) of each feature must be same. They are {known}."
        )


def linear_model(
    features: Mapping[str, Any],
    feature_columns: Any,
    units: int = 1,
    sparse_combiner: str = "sum",
    weight_collections: Sequence[str] | None = None,
    trainable: bool = True,
    cols_to_vars: dict[Any, Any] | None = None,
) -> tf.Tensor:
    """A weighted sum of all columns, and a bias.

    Args:
        features: tensors or sparse tensors by key.
        feature_columns: columns of numbers or categories.
        units: numbers of outputs.
        sparse_combiner: "sum", "mean" or "sqrtn" of the weights of an example's categories.
        weight_collections: further collections of the variables.
        trainable: whether the weights are trained.
        cols_to_vars: filled with the list of variables of each column, and of "bias".

    Returns:
        The sums, float32 of shape ``[batch, units]``.

    Raises:
        ValueError: if a feature is missing, something is no column, or batches differ in size.

    >>> price = tf.feature_column.numeric_column("price")
    >>> y = tf.feature_column.linear_model({"price": [1.0, 2.0]}, [price])
    >>> [v.name for v in tf.trainable_variables()]
    ['linear_model/price/weights:0', 'linear_model/bias_weights:0']
    """
    columns = check_columns(feature_columns)
    for column in columns:
        if not isinstance(column, (DenseColumn, CategoricalColumn)):
            raise ValueError(
                "Items of feature_columns must be either a DenseColumn or CategoricalColumn. "
                f"Given: {column}"
            )
    options = _options(weight_collections, trainable)
    found = TransformationCache(features)
    with tf.variable_scope(None, default_name="linear_model", values=_values(features)):
        outputs, made = [], {}
        for column in _by_name(columns):
            with tf.variable_scope(column._var_scope_name):
                weights, output = _weighted(column, found, units, sparse_combiner, options)
                outputs.append(output)
                made[column] = _parts(weights)
        _check_batches(outputs, _by_name(columns))
        total = tf.add_n(outputs, name="weighted_sum_no_bias")
        bias = tf.get_variable(
            "bias_weights",
            shape=[units],
            initializer=tf.zeros_initializer(),
            trainable=options.trainable,
            collections=options.collections,
        )
        if cols_to_vars is not None:
            cols_to_vars.update({**made, "bias": _parts(bias)})
        result: tf.Tensor = tf.nn.bias_add(total, bias, name="weighted_sum")
        return result


def _parts(variable: Any) -> list[Any]:
    return list(variable) if hasattr(variable, "_get_variable_list") else [variable]


def _weighted(
    column: Any, features: TransformationCache, units: int, combiner: str, options: ColumnVariables
) -> tuple[Any, Any]:
    """The weights of a column and its part of the sum, [batch, units]."""

    def weights_of(rows: int) -> Any:
        return tf.get_variable(
            "weights",
            shape=(rows, units),
            initializer=tf.zeros_initializer(),
            trainable=options.trainable,
            collections=options.collections,
        )

    if isinstance(column, CategoricalColumn):
        ids, own = column.get_sparse_tensors(features)
        ids = tf.sparse_reshape(ids, _rows(ids))
        own = None if own is None else tf.sparse_reshape(own, _rows(own))
        weights = weights_of(column.num_buckets)
        looked_up = tf.nn.safe_embedding_lookup_sparse(
            weights, ids, own, combiner=combiner, name="weighted_sum"
        )
        return weights, looked_up
    tensor = column.get_dense_tensor(features, options)
    size = column.variable_shape.num_elements()
    flat = tf.reshape(tensor, [tf.shape(tensor)[0], size])
    weights = weights_of(size)
    return weights, tf.matmul(flat, weights, name="weighted_sum")


def _rows(ids: Any) -> Any:
    """The shape [batch, everything else]."""
    return tf.stack([ids.dense_shape[0], -1])


def make_parse_example_spec(feature_columns: Any) -> dict[str, Any]:
    """What `tf.parse_example` is told to find the features of columns.

    Args:
        feature_columns: columns.

    Returns:
        From keys to `tf.FixedLenFeature` (with the shape of an example's numbers) and
        `tf.VarLenFeature`.

    Raises:
        ValueError: if something is no column, or two columns parse a key in different ways.

    >>> price = tf.feature_column.numeric_column("price", shape=[2])
    >>> tf.feature_column.make_parse_example_spec([price])["price"].shape
    (2,)
    """
    spec: dict[str, Any] = {}
    for column in feature_columns:
        if not isinstance(column, FeatureColumn):
            raise ValueError(
                f"All feature_columns must be FeatureColumn instances. Given: {column!r:.200}"
            )
        for key, value in column.parse_example_spec.items():
            if key in spec and spec[key] != value:
                raise ValueError(
                    f"feature_columns contain different parse_spec for key {key}. "
                    f"Given {value} and {spec[key]}"
                )
            spec[key] = value
    return spec
