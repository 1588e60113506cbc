"""``linear_model``: a weight for each number and category."""

from __future__ import annotations

from typing import Any

import headrace as tf
from headrace.feature_column.columns import (
    CategoricalColumn,
    DenseColumn,
    check_batch_sizes,
    checked_columns,
    require_kind,
)
from headrace.feature_column.feature_layers import FeatureLayer
from headrace.feature_column.features import FeatureTransformationCache, flat_rows
from headrace.feature_column.state import ScopeState, StateManager, model_state
from headrace.ops.state.partitioned import parts_of


def linear_model(
    features: Any,
    feature_columns: Any,
    units: int = 1,
    sparse_combiner: str = "sum",
    weight_collections: Any = None,
    trainable: bool = True,
    cols_to_vars: dict[Any, Any] | None = None,
) -> Any:
    """The sum of weighted features and a bias.

    Categorical columns have a weight for each category, dense ones for each number. All begin
    with 0.

    Args:
        features: tensors or SparseTensors by the names of features.
        feature_columns: dense and categorical columns.
        units: the size of the result for each example.
        sparse_combiner: how the weights of one example's categories are put together, column by
            column: "sum", "mean" or "sqrtn".
        weight_collections: collections that variables join, beside ``GLOBAL_VARIABLES`` and
            ``MODEL_VARIABLES``.
        trainable: whether variables are trained.
        cols_to_vars: a dictionary that gets the variables of each column, and those of
            ``"bias"``.

    Returns:
        ``[batch, units]`` of float32.

    Raises:
        ValueError: if a column is of another kind, a feature is missing, or shapes or types do not
            fit.

    >>> price = tf.feature_column.numeric_column("price")
    >>> day = tf.feature_column.categorical_column_with_identity("day", 7)
    >>> sums = tf.feature_column.linear_model({"price": [1.0], "day": [2]}, [price, day])
    >>> sorted(variable.name for variable in tf.trainable_variables())
    ['linear_model/bias_weights:0', 'linear_model/day/weights:0', 'linear_model/price/weights:0']
    """
    columns = _weighable(feature_columns)
    cache = FeatureTransformationCache(features)
    with tf.variable_scope(None, "linear_model") as scope:
        model_name = scope.name.rsplit("/", 1)[-1]
    scopes = _scopes(columns)
    state = model_state(weight_collections, trainable)
    sums, made = [], {}
    with tf.name_scope(model_name), tf.variable_scope(model_name):
        for name, column in sorted(scopes.items()):
            with tf.variable_scope(None, default_name=name):
                weights = _weights(column, state, units)
                sums.append(weighted_sum(column, cache, state, sparse_combiner, weights))
            made[column] = parts_of(weights) + state.variables_of(column)
        check_batch_sizes(sums, [column for _, column in sorted(scopes.items())])
        total = tf.add_n(sums, name="weighted_sum_no_bias")
        bias = _variable(state, "bias_weights", [units])
        result = tf.nn.bias_add(total, bias, name="weighted_sum")
    if cols_to_vars is not None:
        cols_to_vars.update(made)
        cols_to_vars["bias"] = parts_of(bias)
    return result


def _weighable(feature_columns: Any) -> list[Any]:
    columns: list[Any] = checked_columns(feature_columns)
    require_kind(
        columns, (DenseColumn, CategoricalColumn), "either a DenseColumn or CategoricalColumn"
    )
    return columns


def _scopes(columns: list[Any]) -> dict[str, Any]:
    """The columns by the names of their scopes.

    The scopes of columns are made unique beside the model, not in it: the second model of a graph
    has ``linear_model_1/price_1``. Checkpoints of TensorFlow 1.x have these names.
    """
    scopes = {}
    for column in columns:
        with tf.variable_scope(None, default_name=column.var_scope_name) as scope:
            scopes[scope.name.rsplit("/", 1)[-1]] = column
    return scopes


def _rows_of(column: Any) -> int:
    """How many weights a column has for one unit."""
    if isinstance(column, CategoricalColumn):
        return column.num_buckets
    return int(column.variable_shape.num_elements())


def _weights(column: Any, state: ScopeState, units: int) -> Any:
    return _variable(state, "weights", [_rows_of(column), units])


def _variable(state: ScopeState, name: str, shape: list[int]) -> Any:
    made = tf.get_variable(
        name, shape, tf.float32, tf.zeros_initializer(), trainable=state.trainable
    )
    for collection in state.collections:
        held = set(map(id, tf.get_collection(collection)))
        for part in parts_of(made):
            if id(part) not in held:
                tf.add_to_collection(collection, part)
    return made


def weighted_sum(
    column: Any, cache: FeatureTransformationCache, state: StateManager, combiner: str, weights: Any
) -> Any:
    """What a column adds to the model, ``[batch, units]``."""
    if not isinstance(column, CategoricalColumn):
        tensor = column.get_dense_tensor(cache, state)
        return tf.matmul(flat_rows(tensor, _rows_of(column), column), weights, name="weighted_sum")
    ids, factors = column.get_sparse_tensors(cache, state)
    return tf.nn.safe_embedding_lookup_sparse(
        weights,
        _matrix(ids),
        sparse_weights=None if factors is None else _matrix(factors),
        combiner=combiner,
        name="weighted_sum",
    )


def _matrix(sparse: Any) -> Any:
    if sparse.shape.ndims == 2:
        return sparse
    return tf.sparse_reshape(sparse, [tf.shape(sparse)[0], -1])


class LinearModel(FeatureLayer):
    """``linear_model`` as a layer.

    Args:
        feature_columns: dense and categorical columns.
        units, sparse_combiner: see `linear_model`.
        trainable: whether variables are trained.
        name: the variable scope, by default ``linear_model``.

    Raises:
        ValueError: if a column is of another kind.

    >>> price = tf.feature_column.numeric_column("price")
    >>> model = tf.feature_column.LinearModel([price])
    >>> model({"price": [1.0, 2.0]}).shape.as_list()
    [2, 1]
    >>> [variable.name for variable in model.variables]
    ['linear_model/price/weights:0', 'linear_model/bias_weights:0']
    """

    def __init__(
        self,
        feature_columns: Any,
        units: int = 1,
        sparse_combiner: str = "sum",
        trainable: bool = True,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(_weighable(feature_columns), trainable, name, **kwargs)
        self._units = units
        self._sparse_combiner = sparse_combiner
        #: The bias, once the layer is built.
        self.bias: Any = None

    def build(self, input_shape: Any) -> None:
        """Make the variables."""
        for column in self._columns:
            column.create_state(self._state)
            self._state.create_variable(
                column,
                "weights",
                shape=(_rows_of(column), self._units),
                initializer=tf.zeros_initializer(),
            )
        self.bias = self.add_weight(
            "bias_weights", [self._units], initializer=tf.zeros_initializer()
        )
        self.built = True

    def call(self, features: Any) -> Any:
        """``[batch, units]`` of float32.

        Raises:
            ValueError: if a feature is missing, or shapes or types do not fit.
        """
        cache, sums = FeatureTransformationCache(features), []
        for column in self._columns:
            with tf.name_scope(column.name):
                weights = self._state.get_variable(column, "weights")
                combiner = self._sparse_combiner
                sums.append(weighted_sum(column, cache, self._state, combiner, weights))
        check_batch_sizes(sums, self._columns)
        total = tf.add_n(sums, name="weighted_sum_no_bias")
        return tf.nn.bias_add(total, self.bias, name="weighted_sum")

    def get_config(self) -> dict[str, Any]:
        """The configurations of the columns, and the arguments of the layer."""
        own = {"units": self._units, "sparse_combiner": self._sparse_combiner}
        return {**super().get_config(), **own}

    def compute_output_shape(self, input_shape: Any) -> tf.TensorShape:
        """``[batch, units]``."""
        return tf.TensorShape([tf.TensorShape(input_shape).as_list()[0], self._units])
