"""Layers of feature columns: ``DenseFeatures`` and ``SequenceFeatures``."""

from __future__ import annotations

from typing import Any

import headrace as tf
from headrace.feature_column.columns import (
    WRAP,
    DenseColumn,
    check_batch_sizes,
    checked_columns,
    require_kind,
)
from headrace.feature_column.features import FeatureTransformationCache, flat_rows
from headrace.feature_column.serialization import (
    deserialize_feature_columns,
    serialize_feature_columns,
)
from headrace.feature_column.state import LayerState
from headrace.layers.base import Layer, snake_case

_NAMES = "__feature_layer_names"


class FeatureLayer(Layer):
    """Base of layers that take a dictionary of features.

    >>> price = tf.feature_column.numeric_column("price")
    >>> layer = tf.feature_column.DenseFeatures([price])
    >>> isinstance(layer, tf.feature_column.feature_layers.FeatureLayer)
    True
    """

    def __init__(
        self, columns: list[Any], trainable: bool = True, name: str | None = None, **kwargs: Any
    ) -> None:
        kwargs.setdefault("dtype", tf.float32)
        super().__init__(trainable, name or _unique_name(snake_case(type(self).__name__)), **kwargs)
        self._columns = columns
        self._state = LayerState(self)

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """What the columns make of the features.

        Raises:
            ValueError: if ``inputs`` is no dictionary of features, one is missing, or shapes or
                types do not fit.
        """
        FeatureTransformationCache(inputs)  # refuses what is no dictionary
        self._state.outer = tf.get_variable_scope()
        return super().__call__(dict(inputs), *args, **kwargs)

    def build(self, input_shape: Any) -> None:
        """Make the variables of the columns."""
        for column in self._columns:
            column.create_state(self._state)
        self.built = True

    def get_config(self) -> dict[str, Any]:
        """The configurations of the columns, and the arguments of a layer."""
        return {
            **super().get_config(),
            "feature_columns": serialize_feature_columns(self._columns),
        }

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Any:
        """The layer of a `get_config`.

        Args:
            custom_objects: functions and initialisers of the program, by their names.

        Raises:
            ValueError: if a column, function or field is not known.
        """
        columns = deserialize_feature_columns(config["feature_columns"], custom_objects)
        return cls(**{**config, "feature_columns": columns})


def _unique_name(base: str) -> str:
    """``base``, ``base_1``, ``base_2`` ... : counted for each graph, as Keras counts."""
    kept = tf.get_collection_ref(_NAMES)
    if not kept:
        kept.append({})
    counts: dict[str, int] = kept[0]
    number = counts.get(base, 0)
    counts[base] = number + 1
    return f"{base}_{number}" if number else base


class DenseFeatures(FeatureLayer):
    """The features as one matrix: ``input_layer`` as a layer.

    Args:
        feature_columns: dense columns; the result has them in the order of their names.
        trainable: whether variables are trained.
        name: the variable scope, by default ``dense_features``, ``dense_features_1`` ...

    Raises:
        ValueError: if a column is not dense.

    >>> word = tf.feature_column.categorical_column_with_identity("word", 5)
    >>> layer = tf.feature_column.DenseFeatures([tf.feature_column.embedding_column(word, 2)])
    >>> layer({"word": [1, 3, 4]}).shape.as_list()
    [3, 2]
    >>> layer.variables[0].name
    'dense_features/word_embedding/embedding_weights:0'
    """

    def __init__(
        self,
        feature_columns: Any,
        trainable: bool = True,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        columns: list[Any] = checked_columns(feature_columns)
        require_kind(columns, DenseColumn, "a DenseColumn", WRAP)
        super().__init__(columns, trainable, name, **kwargs)

    def call(self, features: Any, cols_to_output_tensors: dict[Any, Any] | None = None) -> Any:
        """``[batch, sum of the columns' sizes]`` of float32.

        Args:
            cols_to_output_tensors: a dictionary that gets the part of each column.

        Raises:
            ValueError: if a feature is missing, or shapes or types do not fit.
        """
        cache, outputs = FeatureTransformationCache(features), []
        for column in self._columns:
            with tf.name_scope(column.name):
                tensor = column.get_dense_tensor(cache, self._state)
                outputs.append(flat_rows(tensor, column.variable_shape.num_elements(), column))
            if cols_to_output_tensors is not None:
                cols_to_output_tensors[column] = outputs[-1]
        check_batch_sizes(outputs, self._columns)
        return tf.concat(outputs, -1)

    def compute_output_shape(self, input_shape: Any) -> tf.TensorShape:
        """``[batch, sum of the columns' sizes]``."""
        total = sum(column.variable_shape.num_elements() for column in self._columns)
        return tf.TensorShape([tf.TensorShape(input_shape).as_list()[0], total])
