"""``input_layer``: what columns make of features, side by side."""

from __future__ import annotations

from typing import Any

import headrace as tf
from headrace.feature_column.columns import (
    WRAP,
    DenseColumn,
    FeatureColumn,
    check_batch_sizes,
    checked_columns,
    require_kind,
)
from headrace.feature_column.features import FeatureTransformationCache, flat_rows
from headrace.feature_column.state import model_state


def input_layer(
    features: Any,
    feature_columns: Any,
    weight_collections: Any = None,
    trainable: bool = True,
    cols_to_vars: dict[Any, Any] | None = None,
    cols_to_output_tensors: dict[Any, Any] | None = None,
) -> Any:
    """The features as one matrix: a model's first layer.

    Args:
        features: tensors or SparseTensors by the names of features.
        feature_columns: dense columns; the result has them in the order of their names.
        weight_collections: collections that variables join, beside ``GLOBAL_VARIABLES`` and
            ``MODEL_VARIABLES``.
        trainable: whether variables are trained.
        cols_to_vars: a dictionary that gets the variables of each column.
        cols_to_output_tensors: a dictionary that gets the part of each column.

    Returns:
        ``[batch, sum of the columns' sizes]`` of float32.

    Raises:
        ValueError: if a column is not dense, a feature is missing, or shapes or types do not
            fit.

    >>> price = tf.feature_column.numeric_column("price")
    >>> position = tf.feature_column.numeric_column("position", shape=[2])
    >>> features = {"price": [1.0, 2.0], "position": [[3.0, 4.0], [5.0, 6.0]]}
    >>> with tf.Session() as session:
    ...     session.run(tf.feature_column.input_layer(features, [price, position])).tolist()
    [[3.0, 4.0, 1.0], [5.0, 6.0, 2.0]]
    """
    columns = _dense(feature_columns)
    cache = FeatureTransformationCache(features)
    tensors = [value for value in features.values() if isinstance(value, tf.Tensor)]
    with tf.variable_scope(None, default_name="input_layer", values=tensors):
        return _layer(
            cache, columns, weight_collections, trainable, cols_to_vars, cols_to_output_tensors
        )


def _dense(feature_columns: Any) -> list[Any]:
    columns: list[Any] = checked_columns(feature_columns)
    require_kind(columns, DenseColumn, "a DenseColumn", WRAP)
    return columns


def _layer(
    cache: FeatureTransformationCache,
    columns: list[Any],
    weight_collections: Any,
    trainable: bool,
    cols_to_vars: dict[Any, Any] | None = None,
    cols_to_output_tensors: dict[Any, Any] | None = None,
) -> Any:
    state = model_state(weight_collections, trainable)
    outputs = []
    for column in columns:
        with tf.variable_scope(None, default_name=column.var_scope_name):
            tensor = column.get_dense_tensor(cache, state)
            outputs.append(flat_rows(tensor, column.variable_shape.num_elements(), column))
        if cols_to_vars is not None:
            cols_to_vars[column] = state.variables_of(column)
        if cols_to_output_tensors is not None:
            cols_to_output_tensors[column] = outputs[-1]
    check_batch_sizes(outputs, columns)
    return tf.concat(outputs, 1)


class InputLayer:
    """``input_layer`` as an object: each call uses the same variables.

    Args:
        name: the variable scope.
        create_scope_now: whether the scope is that around this call, or around the first call of
            the object.
        (others): see `input_layer`.

    Raises:
        ValueError: if a column is not dense.

    >>> word = tf.feature_column.categorical_column_with_identity("word", 5)
    >>> layer = tf.feature_column.input_layers.InputLayer(
    ...     [tf.feature_column.embedding_column(word, 2)]
    ... )
    >>> first, second = layer({"word": [1]}), layer({"word": [2]})
    >>> [variable.name for variable in layer.variables]
    ['feature_column_input_layer/word_embedding/embedding_weights:0']
    """

    def __init__(
        self,
        feature_columns: Any,
        weight_collections: Any = None,
        trainable: bool = True,
        cols_to_vars: dict[Any, Any] | None = None,
        name: str = "feature_column_input_layer",
        create_scope_now: bool = True,
    ) -> None:
        columns = _dense(feature_columns)

        def layer(features: Any) -> Any:
            cache = FeatureTransformationCache(features)
            return _layer(cache, columns, weight_collections, trainable, cols_to_vars)

        self.name = name
        self._template = tf.make_template(name, layer, create_scope_now_=create_scope_now)

    def __call__(self, features: Any) -> Any:
        """The features as one matrix, ``[batch, ...]`` of float32.

        Raises:
            ValueError: as `input_layer`.
        """
        return self._template(features)

    @property
    def variables(self) -> list[Any]:
        """All variables."""
        return list(self._template.variables)

    weights = variables

    @property
    def trainable_variables(self) -> list[Any]:
        """Those that are trained."""
        return list(self._template.trainable_variables)

    trainable_weights = trainable_variables

    @property
    def non_trainable_variables(self) -> list[Any]:
        """Those that are not."""
        return list(self._template.non_trainable_variables)

    non_trainable_weights = non_trainable_variables


def make_parse_example_spec(feature_columns: Any) -> dict[str, Any]:
    """What ``tf.parse_example`` needs for the features of columns.

    Args:
        feature_columns: columns of any kind.

    Returns:
        FixedLenFeatures (with the shape of one example, such as ``[3]``) and VarLenFeatures, by the
        names of features.

    Raises:
        ValueError: if one is no feature column, or two want one feature in different ways.

    >>> price = tf.feature_column.numeric_column("price")
    >>> word = tf.feature_column.categorical_column_with_hash_bucket("word", 10)
    >>> sorted(tf.feature_column.make_parse_example_spec([price, word]))
    ['price', 'word']
    """
    spec: dict[str, Any] = {}
    for column in feature_columns:
        require_kind([column], FeatureColumn, "a FeatureColumn")
        for key, feature in column.parse_example_spec.items():
            if key in spec and spec[key] != feature:
                raise ValueError(
                    "feature_columns contain different parse_spec for key "
                    f"{key}. Given {feature} and {spec[key]}"
                )
            spec[key] = feature
    return spec
