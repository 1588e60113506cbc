"""Metric objects of Keras on tensors: their counts are variables of the graph, as in tf.keras 1.x.

``update_state`` on tensors gives an operation, ``result`` a tensor, and a call the value after the
update. The variables are local ones (`tf.local_variables_initializer`), without being saved.
On arrays, and for Keras itself, nothing changes.
"""

from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from headrace.graph.graph import Graph, get_default_graph
from headrace.graph.keys import GraphKeys
from headrace.graph.tensor import Operation, Tensor
from headrace.keras.arrays import ArrayGraph, arrays_enter, to_arrays
from headrace.keras.calls import holds_graph_value, is_graph_value
from headrace.keras.loading import keras_inner, load_keras
from headrace.keras.sessions import get_session
from headrace.keras.variables import all_of, find, remember
from headrace.ops.control.basic import group
from headrace.ops.control.jax_call import add_call
from headrace.ops.core.build import convert_to_tensor
from headrace.ops.state.scopes_api import control_dependencies
from headrace.ops.state.variables import Variable

#: The operations that update a metric, by graph.
_updates: weakref.WeakKeyDictionary[Any, weakref.WeakKeyDictionary[Graph, list[Operation]]] = (
    weakref.WeakKeyDictionary()
)


def _updates_of(metric: Any) -> list[Operation]:
    by_graph = _updates.setdefault(metric, weakref.WeakKeyDictionary())
    return by_graph.setdefault(get_default_graph().outermost, [])


def _graph_variables(metric: Any) -> list[Any]:
    """The variables of the default graph that hold the counts, made where they are not there."""
    graph = get_default_graph().outermost
    for variable in metric._all_variables():
        if find(variable) is not None:
            continue
        start = np.asarray(variable.value)
        with graph.as_default(), graph.control_dependencies(None), graph.name_scope(None):
            made = Variable(
                start,
                trainable=False,
                collections=[GraphKeys.LOCAL_VARIABLES, GraphKeys.METRIC_VARIABLES],
                name=variable.path,
            )
        remember(variable, made)
    return all_of(metric._all_variables())


def _update(metric: Any, args: Any, kwargs: dict[str, Any]) -> Operation:
    """Put one update into the graph."""
    leaves, structure = jax.tree.flatten((args, kwargs), is_leaf=is_graph_value)
    places = [
        i
        for i, leaf in enumerate(leaves)
        if is_graph_value(leaf) or isinstance(leaf, (np.ndarray, jax.Array))
    ]
    tensors = [convert_to_tensor(leaves[i]) for i in places]
    variables = _graph_variables(metric)

    def flat(*values: Any) -> list[Any]:
        given = list(leaves)
        for i, value in zip(places, values, strict=False):
            given[i] = value
        inner_args, inner_kwargs = jax.tree.unflatten(structure, given)
        with arrays_enter():
            new = metric.stateless_update_state(
                list(values[len(places) :]), *inner_args, **inner_kwargs
            )
            return list(to_arrays(new))

    flat.__name__ = metric.name
    inputs = [*tensors, *[convert_to_tensor(v) for v in variables]]
    new = add_call(flat, inputs, f"{metric.name}_update", one_batch=True)
    update: Operation = group(*[v.assign(n).op for v, n in zip(variables, new, strict=True)])
    _updates_of(metric).append(update)
    return update


def _result(metric: Any) -> Tensor:
    """Put the value that follows from the counts into the graph."""

    def flat(*values: Any) -> list[Any]:
        keras, mapping = load_keras(), list(zip(metric._all_variables(), values, strict=True))
        with keras.StatelessScope(mapping), arrays_enter():
            return [keras.ops.convert_to_tensor(to_arrays(metric.result()))]

    reads = [convert_to_tensor(v) for v in _graph_variables(metric)]
    return add_call(flat, reads, f"{metric.name}_result")[0]


def _plain(caller: str) -> bool:
    """Whether Keras asks, or a function of ours that Keras traces."""
    if caller.startswith("keras.") or isinstance(get_default_graph(), ArrayGraph):
        return True
    return keras_inner("backend").get_stateless_scope() is not None


def _caller() -> str:
    return str(sys._getframe(2).f_globals.get("__name__", ""))


def _hook(cls: type) -> None:
    """Let the methods of a class of metrics take tensors."""
    methods = vars(cls)
    if "update_state" in methods:
        _replace(cls, "update_state", _update_state)
    if "result" in methods:
        _replace(cls, "result", _result_method)


def _replace(cls: type, name: str, make: Callable[[Any], Any]) -> None:
    original = vars(cls)[name]
    if not hasattr(original, "_headrace_on_tensors"):
        method: Any = functools.wraps(original)(make(original))
        method._headrace_on_tensors = True
        setattr(cls, name, method)


def _update_state(original: Any) -> Any:
    def update_state(self: Any, *args: Any, **kwargs: Any) -> Any:
        if holds_graph_value(args, kwargs):
            return _update(self, args, kwargs)
        return original(self, *args, **kwargs)

    return update_state


def _result_method(original: Any) -> Any:
    def result(self: Any) -> Any:
        if _plain(_caller()) or not all_of(self._all_variables()):
            return original(self)
        return _result(self)

    return result


def _call(original: Any) -> Any:
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not holds_graph_value(args, kwargs):
            return original(self, *args, **kwargs)
        with control_dependencies([self.update_state(*args, **kwargs)]):
            return _result(self)

    return call


def _reset(self: Any) -> None:
    """Set the counts to zero: those in the session of `tf.keras.backend.get_session`, too."""
    self.reset_state()
    session = get_session() if all_of(self._all_variables()) else None
    for variable in all_of(self._all_variables()):
        variable.load(np.zeros(variable.shape.as_list(), variable.dtype.np_dtype), session)


def _classes(cls: Any) -> Sequence[type]:
    found: list[type] = [cls]
    for below in cls.__subclasses__():
        found += _classes(below)
    return found


def install(metric_class: Any) -> None:
    """Let metrics of Keras, and those that programs derive of them, take tensors."""
    metric_class._all_variables = _all_variables = metric_class.variables.fget

    def variables(self: Any) -> Any:
        found = _all_variables(self)
        return found if _plain(_caller()) else all_of(found) or found

    metric_class.variables = property(variables)
    metric_class.__call__ = functools.wraps(metric_class.__call__)(_call(metric_class.__call__))
    metric_class.reset_states = _reset
    metric_class.updates = property(lambda self: list(_updates_of(self)))
    for cls in _classes(metric_class):
        _hook(cls)
    metric_class.__init_subclass__ = classmethod(lambda cls, **kwargs: _hook(cls))
