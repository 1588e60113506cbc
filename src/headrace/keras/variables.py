"""Keras variables as variables of graphs: one for each graph, named as tf.keras named them."""

from __future__ import annotations

import contextlib
import re
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from headrace.graph.graph import Graph, get_default_graph
from headrace.graph.keys import GraphKeys
from headrace.graph.tensor import Operation, Tensor
from headrace.keras.arrays import on_arrays
from headrace.keras.loading import keras_inner, keras_part
from headrace.ops.control.jax_call import add_call
from headrace.ops.control.jax_call_api import random_key
from headrace.ops.core.build import convert_to_tensor
from headrace.ops.state.scopes_api import control_dependencies
from headrace.ops.state.variable_scope import get_variable, get_variable_scope
from headrace.ops.state.variable_store import store_of


@dataclass
class LayerRecord:
    """What a layer has in one graph.

    Attributes:
        prefixes: what the first part of a variable's path is called in this graph.
        updates: operations that change state which is not trained.
        losses: what `add_loss` and regularisers gave.
    """

    prefixes: dict[str, str] = field(default_factory=dict)
    updates: list[Operation] = field(default_factory=list)
    losses: list[Tensor] = field(default_factory=list)


#: LayerRecords of a layer by graph.
_records: weakref.WeakKeyDictionary[Any, weakref.WeakKeyDictionary[Graph, LayerRecord]] = (
    weakref.WeakKeyDictionary()
)


def record_of(layer: Any, make: bool = False) -> LayerRecord | None:
    """What ``layer`` has in the default graph; None if it was never called there."""
    by_graph = _records.get(layer)
    graph = get_default_graph().outermost
    if by_graph is None or graph not in by_graph:
        if not make:
            return None
        by_graph = _records.setdefault(layer, weakref.WeakKeyDictionary())
        by_graph[graph] = LayerRecord()
    return by_graph[graph]


def was_called(layer: Any) -> bool:
    """Whether ``layer`` was called on tensors of some graph."""
    return layer in _records


def _variables_of(variable: Any) -> weakref.WeakKeyDictionary[Graph, Any]:
    found: weakref.WeakKeyDictionary[Graph, Any] | None
    found = vars(variable).get("_headrace_variables")
    if found is None:
        found = variable._headrace_variables = weakref.WeakKeyDictionary()
    return found


def find(variable: Any) -> Any:
    """The graph variable of a Keras variable in the default graph, or None."""
    found = vars(variable).get("_headrace_variables")
    return None if found is None else found.get(get_default_graph().outermost)


def remember(variable: Any, made: Any) -> None:
    """Make ``made`` the graph variable of a Keras variable in the default graph."""
    _variables_of(variable)[get_default_graph().outermost] = made


def reader_of(variable: Any) -> Any:
    """What gives the whole value of the graph variable of a Keras variable."""
    found = find(variable)
    return found.as_tensor() if hasattr(found, "partitions") else found


def graph_variables(layer: Any, variables: Sequence[Any]) -> list[Any]:
    """The graph variables of the Keras variables of a layer, made where they are not there yet."""
    record = record_of(layer, make=True)
    assert record is not None
    containers = _containers(layer)
    result = []
    for variable in variables:
        found = find(variable)
        if found is None:
            found = _make(variable, _name(variable, containers, record), record)
            remember(variable, found)
        result.append(found)
    return result


def _containers(layer: Any) -> set[str]:
    """Names of the models that only hold layers: tf.keras left them out of variable names."""
    models = keras_part("models")
    functional = keras_inner("models.functional").Functional
    kinds = (models.Sequential, functional)
    plain = ("Sequential", "Functional", "Model")
    return {
        inner.name
        for inner in layer._flatten_layers()
        if isinstance(inner, kinds) and type(inner).__name__ in plain
    }


def _name(variable: Any, containers: set[str], record: LayerRecord) -> str:
    """The path of a variable, with a number behind its first part where the scope has that name."""
    *scopes, last = variable.path.split("/")
    scopes = [s for s in scopes if s not in containers]
    # Layers of Keras that have one cell: tf.keras gave its variables the name of the layer.
    if len(scopes) > 1 and re.fullmatch(r"(lstm|gru|simple_rnn)_cell(_\d+)?", scopes[-1]):
        del scopes[-1]
    parts = [*scopes, last]
    scope = get_variable_scope()
    if len(parts) == 1 or scope.reuse:
        return "/".join(parts)
    first = parts[0]
    if first not in record.prefixes:
        taken = _taken(scope.name)
        candidate, number = first, 0
        while candidate in taken:
            number += 1
            candidate = f"{first}_{number}"
        record.prefixes[first] = candidate
    return "/".join([record.prefixes[first], *parts[1:]])


def _taken(scope: str) -> set[str]:
    """Names that variables of a scope begin with."""
    start = f"{scope}/" if scope else ""
    store = store_of()
    names = [*store.variables, *store.partitioned]
    return {n[len(start) :].partition("/")[0] for n in names if n.startswith(start)}


def _make(variable: Any, name: str, record: LayerRecord) -> Any:
    constraint = variable.constraint
    made = get_variable(
        name,
        shape=tuple(variable.shape),
        dtype=variable.dtype,
        initializer=_initializer(variable),
        trainable=bool(variable.trainable),
        constraint=None if constraint is None else _on_tensors(constraint, "constraint"),
    )
    if variable.regularizer is not None:
        with control_dependencies(None):
            loss = _on_tensors(variable.regularizer, "regularizer")(made)
        record.losses.append(loss)
        get_default_graph().add_to_collection(GraphKeys.REGULARIZATION_LOSSES, loss)
    return made


def _is_ours(function: Any) -> bool:
    module = getattr(function, "__module__", None) or type(function).__module__
    return str(module).partition(".")[0] == "headrace" and not str(module).startswith(
        "headrace.keras."
    )


def _on_tensors(function: Any, name: str) -> Callable[..., Any]:
    """A regulariser or constraint of Keras, or of a program, on tensors."""
    if _is_ours(function):
        return cast("Callable[..., Any]", function)

    def call(value: Any) -> Any:
        return add_call(lambda v: [on_arrays(function)(v)], [convert_to_tensor(value)], name)[0]

    return call


def _initializer(variable: Any) -> Callable[..., Any]:
    """How a graph variable starts: as the array of Keras; where there is none, as drawn."""
    if variable._value is not None:
        value = np.asarray(variable._value)

        def copied(shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
            if partition_info is None:
                return value
            starts = partition_info.var_offset
            return value[tuple(slice(b, b + n) for b, n in zip(starts, shape, strict=True))]

        return copied
    initializer = variable._initializer
    if _is_ours(initializer):
        return cast("Callable[..., Any]", initializer)

    def drawn(shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
        sizes = tuple(int(d) for d in shape)

        def draw(*keys: Any) -> list[Any]:
            with _seeded(initializer, keys):
                return [on_arrays(initializer)(sizes, dtype=variable.dtype)]

        keys = [random_key()] if _draws_unseeded(initializer) else []
        return add_call(draw, keys, "Initializer")[0]

    return drawn


def _draws_unseeded(initializer: Any) -> bool:
    return hasattr(initializer, "seed") and getattr(initializer, "_init_seed", 0) is None


@contextlib.contextmanager
def _seeded(initializer: Any, keys: Sequence[Any]) -> Iterator[None]:
    """Within it, an initialiser without a seed of its own draws from a key of the graph."""
    if not keys:
        yield
        return
    kept = initializer.seed
    initializer.seed = _generator(keys[0])
    try:
        yield
    finally:
        initializer.seed = kept


def _generator(key: Any) -> Any:
    """A generator of Keras that gives one key."""
    base = keras_part("random").SeedGenerator
    made: Any = type("GraphKey", (base,), {"next": lambda self, ordered=True: key})
    return made.__new__(made)


def seed_states(layer: Any) -> list[Any]:
    """The variables in which random layers keep their place: each run gets a key in their place."""
    found = {}
    for inner in layer._flatten_layers():
        for generator in inner._seed_generators:
            found[id(generator.state)] = generator.state
    return list(found.values())


@contextlib.contextmanager
def keep_unfilled() -> Iterator[None]:
    """Variables that are made within it get arrays only when Keras works on them (`fill`).

    Keras would fill them all when the next scope of its own ends: with arrays that a layer of a
    graph never needs, by initialisers that may be functions of ours.
    """
    state, name = keras_inner("backend.common.global_state"), "uninitialized_variables"
    before = list(state.get_global_attribute(name, []) or [])
    try:
        yield
    finally:
        state.set_global_attribute(name, before)


def fill(variables: Iterable[Any]) -> None:
    """Give Keras variables that have none an array, drawn by their initialisers."""
    for variable in variables:
        if variable._value is None:
            variable._initializer = on_arrays(variable._initializer)
            variable._deferred_initialize()


def all_of(variables: Iterable[Any]) -> list[Any]:
    """Graph variables of those Keras variables that have one in the default graph."""
    return [found for v in variables if (found := find(v)) is not None]
