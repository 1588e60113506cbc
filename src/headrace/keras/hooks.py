"""What Keras does otherwise when it meets our tensors. Without them it is as it was."""

from __future__ import annotations

import functools
import sys
import threading
from typing import Any

import numpy as np

from headrace.graph.graph import default_graph_stack, get_default_graph
from headrace.graph.tensor import Tensor
from headrace.keras.arrays import ArrayGraph, arrays_enter, mark, on_arrays, to_arrays
from headrace.keras.arrays import install as install_arrays
from headrace.keras.calls import call_on_tensors, holds_graph_value
from headrace.keras.loading import keras_inner, keras_part
from headrace.keras.metric_objects import install as install_metrics
from headrace.keras.names import install as install_names
from headrace.keras.training import install as install_training
from headrace.keras.variables import all_of, fill, find, record_of, was_called

_lock = threading.RLock()
_installed: list[bool] = []


def install() -> None:
    """Import Keras, and put the hooks into it, once."""
    with _lock:
        if not _installed:
            _installed.append(True)
            _install()


def _install() -> None:
    layer_class = keras_part("layers").Layer
    install_arrays()
    _hook_call(layer_class)
    _hook_variable(keras_inner("backend.common.variables").Variable)
    for name in (
        *("variables", "trainable_variables", "non_trainable_variables"),
        *("weights", "trainable_weights", "non_trainable_weights"),
    ):
        _hook_list(layer_class, name)
    _hook_losses(layer_class)
    layer_class.updates = property(_updates)
    layer_class.get_updates_for = lambda self, inputs: _updates(self)
    layer_class.get_losses_for = lambda self, inputs: self.losses
    _hook_names()
    install_metrics(keras_part("metrics").Metric)
    install_names()
    install_training()


def _asked_by_keras() -> bool:
    """Whether the function that asks the caller of this one is one of Keras."""
    return str(sys._getframe(2).f_globals.get("__name__", "")).startswith(("keras.", "headrace."))


def _hook_call(layer_class: Any) -> None:
    original = layer_class.__call__

    @functools.wraps(original)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        _let_take_arrays(type(self))
        if holds_graph_value(args, kwargs):
            return call_on_tensors(self, original, args, kwargs)
        if was_called(self) and keras_inner("backend").get_stateless_scope() is None:
            fill(self.variables)
        with arrays_enter():
            args, kwargs = to_arrays((args, kwargs))
            return to_arrays(original(self, *args, **kwargs))

    layer_class.__call__ = call


def _let_take_arrays(cls: type) -> None:
    """Let the `call` of a class that is not Keras's return tensors of our operations."""
    for base in cls.__mro__:
        call = vars(base).get("call")
        if call is None or (base.__module__.startswith("keras.") and base.__name__ != "Lambda"):
            continue
        if not hasattr(call, "_headrace_on_arrays"):
            base.call = mark(on_arrays(call))  # type: ignore[attr-defined]


def _hook_variable(variable_class: Any) -> None:
    def to_tensor(self: Any, dtype: Any = None, name: Any = None) -> Tensor:
        graph = get_default_graph()
        if isinstance(graph, ArrayGraph):
            return graph.enter(self.value)
        tensor: Tensor = _graph_variable(self)._to_tensor(dtype, name)
        return tensor

    def graph_element(self: Any) -> Tensor:
        tensor: Tensor = _graph_variable(self)._as_graph_element()
        return tensor

    def array(self: Any, dtype: Any = None, copy: bool | None = None) -> Any:
        # That of Keras lacks `copy`, of which NumPy 2 warns.
        return np.array(self.value, dtype=dtype, copy=copy)

    variable_class.__array__ = array
    variable_class._to_tensor = to_tensor
    variable_class._as_graph_element = graph_element


def _graph_variable(variable: Any) -> Any:
    found = find(variable)
    if found is None:
        raise ValueError(
            f"The Keras variable '{variable.path}' has no variable in this graph: call its layer "
            "on a tensor of the graph first."
        )
    return found


def _hook_list(layer_class: Any, name: str) -> None:
    """A list of variables: those of the graph where a program asks and there are some."""
    original = getattr(layer_class, name)

    @functools.wraps(original.fget)
    def get(self: Any) -> Any:
        found = original.fget(self)
        if _asked_by_keras() or record_of(self) is None:
            return found
        return all_of(found) or found

    setattr(layer_class, name, property(get))


def _hook_losses(layer_class: Any) -> None:
    original = layer_class.losses

    @functools.wraps(original.fget)
    def get(self: Any) -> Any:
        if not _asked_by_keras():
            found = [r for inner in self._flatten_layers() if (r := record_of(inner)) is not None]
            if found:
                return [loss for r in found for loss in r.losses]
        return original.fget(self)

    layer_class.losses = property(get)


def _updates(layer: Any) -> list[Any]:
    found = [r for inner in layer._flatten_layers() if (r := record_of(inner)) is not None]
    return [update for r in found for update in r.updates]


class _Numbers(dict[str, int]):
    """Numbers of names: each graph has its own, as in TensorFlow 1.x."""

    def _own(self) -> dict[str, int]:
        stack = reversed(default_graph_stack.items)
        graph = next((g for g in stack if not isinstance(g, ArrayGraph)), None)
        graph = (
            default_graph_stack.base or get_default_graph() if graph is None else graph
        ).outermost
        found: dict[str, int] = vars(graph).setdefault("_keras_names", {})
        return found

    def __contains__(self, name: object) -> bool:
        return name in self._own()

    def __getitem__(self, name: str) -> int:
        return self._own().get(name, 0)

    def __setitem__(self, name: str, number: int) -> None:
        self._own()[name] = number


def _hook_names() -> None:
    naming = keras_inner("utils.naming")
    state = keras_inner("backend.common.global_state")

    def number_names() -> None:
        state.set_global_attribute("object_name_uids", _Numbers())
        vars(get_default_graph().outermost).pop("_keras_names", None)

    before = state.get_global_attribute("object_name_uids")
    naming.reset_uids = number_names
    number_names()
    # Names that plain Keras has given away so far stay given away.
    vars(get_default_graph().outermost)["_keras_names"] = dict(before or {})
