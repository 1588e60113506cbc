"""Who makes and keeps the variables of columns: a variable scope, or a layer."""

from __future__ import annotations

from typing import Any

import headrace as tf
from headrace.ops.state.partitioned import parts_of


class StateManager:
    """Keeps what columns make: variables, and tables for words.

    A subclass says how variables are made.

    >>> tables = tf.feature_column.state.StateManager()
    >>> tables.add_resource("column", "words", 5)
    >>> tables.get_resource("column", "words")
    5
    """

    def __init__(self) -> None:
        self._variables: dict[Any, dict[str, Any]] = {}
        self._resources: dict[Any, dict[str, Any]] = {}

    def create_variable(
        self,
        feature_column: Any,
        name: str,
        shape: Any,
        dtype: Any = None,
        trainable: bool = True,
        use_resource: bool = True,
        initializer: Any = None,
    ) -> Any:
        """Make a variable of a column.

        Args:
            shape, dtype, initializer: as ``tf.get_variable`` takes them.
            trainable: whether it is trained, if the model is.

        Raises:
            ValueError: if the column has one of this name.
        """
        if name in self._variables.setdefault(feature_column, {}):
            raise ValueError(f"Variable already exists: {name} of column {feature_column.name}.")
        made = self._make(
            feature_column,
            name,
            shape=shape,
            dtype=dtype or tf.float32,
            trainable=trainable,
            initializer=initializer,
        )
        self._variables[feature_column][name] = made
        return made

    def _make(self, feature_column: Any, name: str, **arguments: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} makes no variables.")

    def add_variable(self, feature_column: Any, name: str, variable: Any) -> None:
        """Keep a variable that was made elsewhere."""
        self._variables.setdefault(feature_column, {})[name] = variable

    def get_variable(self, feature_column: Any, name: str) -> Any:
        """The variable of a column.

        Raises:
            ValueError: if it has none of this name.
        """
        try:
            return self._variables[feature_column][name]
        except KeyError:
            raise ValueError(
                f"Variable does not exist: {name} of column {feature_column.name}."
            ) from None

    def shared_variable(self, name: str, **arguments: Any) -> Any:
        """A variable that columns of several models share, beside the model's scope."""
        return tf.get_variable(name, **arguments)

    def variables_of(self, feature_column: Any) -> list[Any]:
        """The variables of a column; of a partitioned one its parts."""
        made = self._variables.get(feature_column, {}).values()
        return [part for variable in made for part in parts_of(variable)]

    def add_resource(self, feature_column: Any, name: str, resource: Any) -> None:
        """Keep a table of a column."""
        self._resources.setdefault(feature_column, {})[name] = resource

    def has_resource(self, feature_column: Any, name: str) -> bool:
        """Whether there is such a table."""
        return name in self._resources.get(feature_column, {})

    def get_resource(self, feature_column: Any, name: str) -> Any:
        """The table of a column.

        Raises:
            ValueError: if it has none of this name.
        """
        if not self.has_resource(feature_column, name):
            raise ValueError(f"Resource does not exist: {name} of column {feature_column.name}.")
        return self._resources[feature_column][name]


class ScopeState(StateManager):
    """Makes variables in the open variable scope, when a column first asks for them.

    Args:
        collections: the collections that they join, beside ``GLOBAL_VARIABLES``.
        trainable: whether variables are trained at all.

    >>> state = tf.feature_column.state.ScopeState([], trainable=True)
    >>> words = tf.feature_column.categorical_column_with_hash_bucket("word", 10)
    >>> with tf.variable_scope("scope"):
    ...     column = tf.feature_column.embedding_column(words, 2)
    ...     state.get_variable(column, "embedding_weights").name
    'scope/embedding_weights:0'
    """

    def __init__(self, collections: Any, trainable: bool) -> None:
        super().__init__()
        given = [*(collections or []), tf.GraphKeys.GLOBAL_VARIABLES]
        self.collections = list(dict.fromkeys(given))
        self.trainable = trainable

    def _make(self, feature_column: Any, name: str, **arguments: Any) -> Any:
        arguments["trainable"] = arguments["trainable"] and self.trainable
        return tf.get_variable(name, collections=self.collections, **arguments)

    def get_variable(self, feature_column: Any, name: str) -> Any:
        """The variable of a column, made now if it is asked for the first time.

        Raises:
            ValueError: if the column makes none of this name.
        """
        if name not in self._variables.get(feature_column, {}):
            feature_column.create_state(self)
        return super().get_variable(feature_column, name)


def model_state(collections: Any, trainable: bool) -> ScopeState:
    """A state whose variables join the collection ``MODEL_VARIABLES`` too."""
    return ScopeState([*(collections or []), tf.GraphKeys.MODEL_VARIABLES], trainable)


class LayerState(StateManager):
    """Makes variables in the scope of a layer, in a scope for each column.

    Args:
        layer: a ``tf.layers.Layer``.

    >>> words = tf.feature_column.categorical_column_with_hash_bucket("word", 10)
    >>> layer = tf.layers.Layer(name="words")
    >>> state = tf.feature_column.state.LayerState(layer)
    >>> column = tf.feature_column.embedding_column(words, 2)
    >>> column.create_state(state)
    >>> layer.variables[0].name
    'words/word_embedding/embedding_weights:0'
    """

    def __init__(self, layer: Any) -> None:
        super().__init__()
        self._layer = layer
        #: The variable scope around the layer.
        self.outer: Any = None

    def _make(self, feature_column: Any, name: str, **arguments: Any) -> Any:
        return self._layer.add_weight(f"{feature_column.var_scope_name}/{name}", **arguments)

    def shared_variable(self, name: str, **arguments: Any) -> Any:
        """A variable beside the layer: in the scope that was open when the layer was called."""
        if self.outer is None:
            return super().shared_variable(name, **arguments)
        with tf.variable_scope(self.outer, auxiliary_name_scope=False):
            return super().shared_variable(name, **arguments)
