"""The base class of layers: named and shared variables, losses, updates, inputs and outputs.

A layer captures a variable scope when it is first called (or earlier, if one is given); its
variables are made by ``get_variable`` in that scope, so they are shared, partitioned and
initialised by the same rules as all others.
"""

from __future__ import annotations

import copy
import functools
import inspect
import re
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from headrace.graph import dtypes, nest
from headrace.graph.composite import CompositeTensor
from headrace.graph.graph import Graph, get_default_graph
from headrace.graph.keys import GraphKeys
from headrace.graph.shapes import TensorShape
from headrace.graph.tensor import Operation, Tensor
from headrace.layers.connections import Connected, reachable
from headrace.layers.input_spec import InputSpec, check_inputs
from headrace.ops.control.basic import init_scope
from headrace.ops.core.build import convert_to_tensor
from headrace.ops.state.partitioned import PartitionedVariable, parts_of
from headrace.ops.state.scopes_api import graph_of, name_scope
from headrace.ops.state.variable_kinds import VariableAggregation, VariableSynchronization
from headrace.ops.state.variable_scope import VariableScope, get_variable, variable_scope
from headrace.ops.state.variables import Variable

_NAMES = "__layer_names"
_KEYWORDS = frozenset(
    {"input_shape", "batch_input_shape", "batch_size", "weights", "activity_regularizer"}
)


class Layer(Connected):
    """Base of all layers. A subclass makes variables in ``build`` and computes in ``call``.

    Args:
        trainable: whether the variables are trained by default.
        name: name of the layer, or a VariableScope; by default made of the class's name.
        dtype: type of the variables; by default that of the first input.

    Raises:
        TypeError: for other keywords.

    >>> import headrace as tf
    >>> layer = tf.layers.Dense(3)
    >>> layer(tf.zeros([2, 5])).shape.as_list()
    [2, 3]
    >>> [v.name for v in layer.variables]
    ['dense/kernel:0', 'dense/bias:0']
    """

    # Classes that never call this constructor work with what stands here.
    built = False
    stateful = False
    supports_masking = False
    input_spec: Any = None
    _trainable = True
    _dtype: str | None = None
    _reuse: bool | None = None
    _scope: VariableScope | None = None
    _graph: Graph | None = None
    _name: str
    _base_name: str | None = None
    _current_scope: VariableScope | None = None
    _final_scope: variable_scope | None = None
    _initial_weights: Any = None
    _activity_regularizer: Callable[..., Any] | None = None

    def __init__(
        self, trainable: bool = True, name: Any = None, dtype: Any = None, **kwargs: Any
    ) -> None:
        scope = kwargs.pop("_scope", None)
        self._reuse = kwargs.pop("_reuse", None)
        kwargs.pop("autocast", None)
        kwargs.pop("dynamic", None)
        unknown = sorted(set(kwargs) - _KEYWORDS)
        if unknown:
            raise TypeError(f"Keyword argument not understood: {unknown[0]!r}")
        self._trainable = bool(trainable)
        self._dtype = None if dtype is None else dtypes.as_dtype(dtype).name
        self._set_name(name)
        self._activity_regularizer = kwargs.get("activity_regularizer")
        self._initial_weights = kwargs.get("weights")
        if scope:
            with variable_scope(scope) as captured:
                self._scope = captured

    def _set_name(self, name: Any) -> None:
        base = name.name if isinstance(name, VariableScope) else name
        if base and not isinstance(name, VariableScope):
            self._name = base
        else:
            snake = snake_case(type(self).__name__)
            self._name, base = unique_layer_name(snake), base or snake
        self._base_name = base

    # -- to be overridden -------------------------------------------------------------------

    def build(self, input_shape: Any) -> None:
        """Make the variables; called once, with the shape (or nest of shapes) of the inputs.

        Raises:
            ValueError: in most layers, if a size that they need is not known.
        """
        self.built = True

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """The outputs for ``inputs``: tensors, of shapes that the subclass tells."""
        return inputs

    def compute_output_shape(self, input_shape: Any) -> Any:
        """The static shape of the output for a static shape of the input.

        Raises:
            NotImplementedError: if the layer does not say.
        """
        raise NotImplementedError(f"{type(self).__name__} does not say which shape it outputs.")

    # -- calling ----------------------------------------------------------------------------

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """Build the layer if needed, check the inputs, and run ``call`` in the layer's scopes.

        ``scope`` is reserved: the variable scope of a layer that has none yet. A ``call`` with
        an argument ``scope`` receives the open scope.

        Raises:
            ValueError: if the inputs do not fit ``input_spec`` or are of another graph than those
                of earlier calls, or ``call`` returns None.
        """
        inputs = nest.map_structure(_as_tensor, inputs, check_types=False)
        self._set_scope(kwargs.pop("scope", None))
        with self._scope_to_call() as scope:
            self._current_scope = scope
            accepted = self._call_arguments()
            if "scope" in accepted:
                kwargs["scope"] = scope
            if "training" in kwargs and not {"training", "**"} & accepted:
                del kwargs["training"]
            flat = nest.flatten(inputs)
            check_inputs(self.input_spec, inputs, self.name)
            graph = graph_of(flat)
            self._check_graph(graph)
            with graph.as_default(), name_scope(self._name_scope()):
                self._maybe_build(inputs, flat)
                outputs = self.call(inputs, *args, **kwargs)
                if outputs is None:
                    raise ValueError(
                        "A layer's `call` method should return a Tensor or a list of Tensors, not "
                        f"None (layer: {self.name})."
                    )
                self._regularize_activity(outputs)
        self._nodes.append((inputs, outputs))
        _add_new(GraphKeys.UPDATE_OPS, self.updates)
        return outputs

    def apply(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """Call the layer, with its shapes.

        Raises:
            ValueError: as a call: if the inputs do not fit.
        """
        return self(inputs, *args, **kwargs)

    def _scope_to_call(self) -> variable_scope:
        if not self.built:
            return variable_scope(self._scope, reuse=self._reuse, auxiliary_name_scope=False)
        if self._final_scope is None:
            self._final_scope = variable_scope(self._scope, reuse=True, auxiliary_name_scope=False)
        return self._final_scope

    def _set_scope(self, scope: Any = None) -> None:
        """Capture the variable scope, once."""
        if self._scope is not None:
            return
        if self._base_name is None:
            self._base_name = snake_case(type(self).__name__)
        if self._reuse:
            opened = variable_scope(self._base_name if scope is None else scope)
        else:
            opened = variable_scope(scope, default_name=self._base_name)
        with opened as captured:
            self._scope = captured

    def _name_scope(self) -> Any:
        """The name scope of the ops that ``call`` makes."""
        assert self._current_scope is not None
        return self._current_scope.original_name_scope

    def _call_arguments(self) -> frozenset[str]:
        return _argument_names(type(self).call)

    def _check_graph(self, graph: Graph) -> None:
        if self._graph is None:
            self._graph = graph.outermost
        elif self._graph is not graph.outermost:
            raise ValueError(
                f"Input graph and Layer graph are not the same: layer {self.name} has been called "
                "on tensors of another graph. Make a layer for each graph."
            )

    def _maybe_build(self, inputs: Any, flat: list[Any]) -> None:
        if self.built:
            return
        if flat and self._dtype is None and hasattr(flat[0], "dtype"):
            self._dtype = dtypes.as_dtype(flat[0].dtype).base_dtype.name
        shapes = None
        if all(hasattr(x, "shape") for x in flat):
            shapes = nest.map_structure(lambda x: TensorShape(x.shape), inputs, check_types=False)
        self.build(shapes)
        self.built = True
        if self._initial_weights is not None:
            self.set_weights(self._initial_weights)

    def _regularize_activity(self, outputs: Any) -> None:
        if self._activity_regularizer is None:
            return
        with name_scope("ActivityRegularizer"):
            for output in nest.flatten(outputs):
                loss = convert_to_tensor(self._activity_regularizer(output))
                self.add_loss(loss / _batch_size(output, loss))

    # -- variables --------------------------------------------------------------------------

    def add_weight(
        self,
        name: str,
        shape: Any = None,
        dtype: Any = None,
        initializer: Any = None,
        regularizer: Any = None,
        trainable: bool | None = None,
        constraint: Any = None,
        use_resource: bool | None = None,
        synchronization: VariableSynchronization = VariableSynchronization.AUTO,
        aggregation: VariableAggregation = VariableAggregation.NONE,
        partitioner: Any = None,
        collections: Any = None,
        experimental_autocast: bool = True,
    ) -> Any:
        """A variable of the layer: made, or shared as the variable scope says.

        Args:
            name: name inside the layer's scope.
            shape: shape, by default that of a scalar.
            dtype: type, by default the layer's, else float32.
            regularizer: function of the variable whose result joins the layer's losses.
            trainable: whether it counts as trainable (and the layer is).
            partitioner: cuts the variable into parts; the result is a PartitionedVariable.

        Raises:
            ValueError: if ``trainable`` contradicts ``synchronization``, or as ``get_variable``.
        """
        if synchronization is VariableSynchronization.ON_READ:
            if trainable:
                raise ValueError(
                    "Synchronization value can be set to VariableSynchronization.ON_READ only for "
                    "non-trainable variables. You have specified trainable=True and "
                    "synchronization=VariableSynchronization.ON_READ."
                )
            trainable = False
        wanted = (trainable is None or trainable) and self.trainable
        self._set_scope()
        with init_scope():
            existing = set(map(id, get_default_graph().get_collection(GraphKeys.GLOBAL_VARIABLES)))
        with variable_scope(
            self._scope, reuse=self.built or self._reuse, auxiliary_name_scope=False
        ) as scope:
            self._current_scope = scope
            with name_scope(self._name_scope()):
                variable = get_variable(
                    name,
                    shape=() if shape is None else shape,
                    dtype=dtypes.as_dtype(dtype or self.dtype or dtypes.float32),
                    initializer=initializer if initializer is not None else scope.initializer,
                    trainable=wanted,
                    collections=collections,
                    partitioner=partitioner,
                    use_resource=use_resource,
                    constraint=constraint,
                    synchronization=synchronization,
                    aggregation=aggregation,
                )
                if regularizer is not None and not existing & set(map(id, parts_of(variable))):
                    self._regularize(name, variable, regularizer)
        self._keep(variable, wanted)
        return variable

    add_variable = add_weight

    def _regularize(self, name: str, variable: Any, regularizer: Callable[..., Any]) -> None:
        def loss(part: Any) -> Any:
            with init_scope(), name_scope(f"{name}/Regularizer"):
                return regularizer(part)

        for part in parts_of(variable):
            self.add_loss(functools.partial(loss, part))

    def _keep(self, variable: Any, trainable: bool) -> None:
        """Count the variable as the layer's; a custom getter may have made it untrainable."""
        if trainable:
            with init_scope():
                graph = get_default_graph()
                trained = map(id, graph.get_collection(GraphKeys.TRAINABLE_VARIABLES))
            trainable = not set(map(id, parts_of(variable))).isdisjoint(trained)
        (self._trainable_weights if trainable else self._non_trainable_weights).append(variable)

    # Lists are made when first needed, for classes that never call the constructor.

    @functools.cached_property
    def _trainable_weights(self) -> list[Any]:
        return []

    @functools.cached_property
    def _non_trainable_weights(self) -> list[Any]:
        return []

    @functools.cached_property
    def _losses(self) -> list[Any]:
        return []

    @functools.cached_property
    def _updates(self) -> list[tuple[Any, bool]]:
        """The updates, and whether each depends on inputs."""
        return []

    @property
    def name(self) -> str:
        """The name, unique among the layers of the graph unless it was given."""
        if not hasattr(self, "_name"):
            self._name = unique_layer_name(snake_case(type(self).__name__))
        return self._name

    @property
    def dtype(self) -> str | None:
        """Name of the type of the variables; None while it is not known."""
        return self._dtype

    @property
    def graph(self) -> Graph | None:
        """The graph of the first call."""
        return self._graph

    @property
    def scope_name(self) -> str:
        """Name of the variable scope. Raises ValueError before the layer has one."""
        if self._scope is None:
            raise ValueError(
                f'No name available for layer scope because the layer "{self.name}" has not been '
                "used yet. The scope name is determined the first time the layer instance is "
                "called. You must therefore call the layer before querying `scope_name`."
            )
        return self._scope.name

    @property
    def trainable(self) -> bool:
        """Whether the variables count as trainable."""
        return self._trainable

    @trainable.setter
    def trainable(self, value: bool) -> None:
        self._trainable = bool(value)

    @property
    def activity_regularizer(self) -> Callable[..., Any] | None:
        return self._activity_regularizer

    @activity_regularizer.setter
    def activity_regularizer(self, regularizer: Callable[..., Any] | None) -> None:
        """Function of the outputs whose result joins the losses (by batch size); or None."""
        self._activity_regularizer = regularizer

    @property
    def trainable_weights(self) -> list[Any]:
        """Variables that optimisers train; none when the layer is not trainable."""
        return list(self._trainable_weights) if self.trainable else []

    @property
    def non_trainable_weights(self) -> list[Any]:
        """All other variables."""
        if self.trainable:
            return list(self._non_trainable_weights)
        return self._trainable_weights + self._non_trainable_weights

    @property
    def weights(self) -> list[Any]:
        """All variables, the trainable ones first."""
        return self.trainable_weights + self.non_trainable_weights

    @property
    def variables(self) -> list[Any]:
        """All variables: another name of ``weights``."""
        return self.weights

    @property
    def trainable_variables(self) -> list[Any]:
        """Another name of ``trainable_weights``."""
        return self.trainable_weights

    @property
    def non_trainable_variables(self) -> list[Any]:
        """Another name of ``non_trainable_weights``."""
        return self.non_trainable_weights

    def count_params(self) -> int:
        """The number of elements of all variables, whatever their shapes.

        Raises:
            ValueError: before the layer is built.
        """
        if not self.built:
            raise ValueError(
                f"You tried to call `count_params` on {self.name}, but the layer isn't built. You "
                f"can build it manually via: `{self.name}.build(batch_input_shape)`."
            )
        return int(sum(np.prod(v.shape.as_list(), dtype=np.int64) for v in self.weights))

    def get_weights(self) -> list[Any]:
        """The values of all variables in the default session: arrays of their shapes.

        Raises:
            ValueError: if the layer has variables and there is no default session.
        """
        return [v.eval() for w in self.weights for v in parts_of(w)]

    def set_weights(self, weights: Iterable[Any]) -> None:
        """Set the values of all variables in the default session.

        Raises:
            ValueError: if the number of arrays or a shape does not fit.
        """
        variables = [v for w in self.weights for v in parts_of(w)]
        values = list(weights)
        if len(values) != len(variables):
            raise ValueError(
                f'You called `set_weights(weights)` on layer "{self.name}" with a weight list of '
                f"length {len(values)}, but the layer was expecting {len(variables)} weights."
            )
        for variable, value in zip(variables, values, strict=True):
            if not variable.shape.is_compatible_with(np.shape(value)):
                raise ValueError(
                    f"Layer weight shape {variable.shape} of {variable.name} not compatible with "
                    f"provided weight shape {np.shape(value)}"
                )
            variable.load(value)

    # -- losses and updates -----------------------------------------------------------------

    def add_loss(self, losses: Any, inputs: Any = None) -> None:
        """Add loss tensors (scalars), or functions that make them, to the regularisation losses.

        Raises:
            TypeError: if one does not convert to a tensor.
        """
        made = []
        for loss in nest.flatten(losses):
            value = loss() if callable(loss) else loss
            if value is not None:
                made.append(value if isinstance(value, Tensor) else convert_to_tensor(value))
        self._losses.extend(made)
        _add_new(GraphKeys.REGULARIZATION_LOSSES, made)

    @property
    def losses(self) -> list[Any]:
        """The losses added so far: those of regularisers, and of ``add_loss``."""
        return list(self._losses)

    def add_update(self, updates: Any, inputs: Any = None) -> None:
        """Add ops (or functions that make them) to run with each training step.

        They join the collection ``UPDATE_OPS`` at the end of the call. ``inputs`` are the tensors
        that they depend on; True stands for the inputs of the call.
        """
        for update in nest.flatten(updates):
            made = update() if callable(update) and not _is_element(update) else update
            self._updates.append((getattr(made, "op", made), inputs is not None))

    @property
    def updates(self) -> list[Any]:
        """The update ops added so far; none when the layer is not trainable."""
        if not self.trainable and not self.stateful:
            return []
        return [update for update, _ in self._updates]

    def get_updates_for(self, inputs: Any) -> list[Any]:
        """The updates that depend on ``inputs``; with None, those that depend on none."""
        if inputs is None:
            return [u for u, conditional in self._updates if not conditional and u in self.updates]
        conditional = [u for u, depends in self._updates if depends and u in self.updates]
        return reachable(inputs, conditional)

    def get_losses_for(self, inputs: Any) -> list[Any]:
        """The losses that depend on ``inputs``; with None, those that depend on no call's."""
        if inputs is not None:
            return reachable(inputs, self.losses)
        given = [x for node in self._nodes for x in nest.flatten(node[0])]
        conditional = reachable(given, self.losses)
        return [loss for loss in self.losses if all(loss is not c for c in conditional)]

    # -- Python -----------------------------------------------------------------------------

    def get_config(self) -> dict[str, Any]:
        """Name, type and whether trainable."""
        return {"name": self.name, "trainable": self.trainable, "dtype": self.dtype}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        """A layer from `get_config`'s dictionary.

        Raises:
            TypeError: if an argument of the layer is missing or unknown.
        """
        return cls(**config)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        """A copy that shares tensors, variables and the graph with the original."""
        result = type(self).__new__(type(self))
        memo[id(self)] = result
        for key, value in self.__dict__.items():
            if key in ("_scope", "_final_scope"):
                result.__dict__[key] = copy.copy(value)
                continue
            memo.update((id(x), x) for x in nest.flatten(value) if _is_element(x))
            result.__dict__[key] = copy.deepcopy(value, memo)
        return result


def snake_case(name: str) -> str:
    """The layer name that a class's name gives.

    >>> snake_case("SeparableConv2DTranspose"), snake_case("_LSTMCell")
    ('separable_conv2d_transpose', 'private_lstm_cell')
    """
    words = re.sub("(.)([A-Z][a-z0-9]+)", r"\1_\2", name)
    snake = re.sub("([a-z])([A-Z])", r"\1_\2", words).lower()
    return f"private{snake}" if snake.startswith("_") else snake


def unique_layer_name(base: str) -> str:
    """``base_1``, ``base_2`` ... : counted for each graph."""
    items = get_default_graph().get_collection_ref(_NAMES)
    if not items:
        items.append({})
    counts: dict[str, int] = items[0]
    counts[base] = counts.get(base, 0) + 1
    return f"{base}_{counts[base]}"


@functools.lru_cache(maxsize=512)
def _argument_names(function: Callable[..., Any]) -> frozenset[str]:
    """Names of the parameters; ``**`` stands for any keyword."""
    parameters = inspect.signature(function).parameters.values()
    return frozenset("**" if p.kind is p.VAR_KEYWORD else p.name for p in parameters)


def _as_tensor(value: Any) -> Any:
    """Arrays and numbers as tensors; everything else as it is."""
    if isinstance(value, (np.ndarray, np.generic, float, int)) and not isinstance(value, bool):
        return convert_to_tensor(value)
    return value


def _is_element(value: Any) -> bool:
    return isinstance(
        value, (Tensor, Operation, Variable, PartitionedVariable, CompositeTensor, Graph)
    )


def _batch_size(output: Tensor, loss: Tensor) -> Any:
    from headrace.ops.array.api import shape
    from headrace.ops.math.cast import cast

    return cast(shape(output)[0], loss.dtype)


def _add_new(key: str, elements: list[Any]) -> None:
    """Append to a collection what it does not hold yet."""
    if not elements:
        return
    held = get_default_graph().get_collection_ref(key)
    seen = set(map(id, held))
    held.extend(e for e in elements if id(e) not in seen)


__all__ = ["InputSpec", "Layer"]
