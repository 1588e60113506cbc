"""Making the copies of a variable."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from headrace.graph.graph import get_default_graph
from headrace.graph.tensor import Tensor
from headrace.ops.control.basic import init_scope
from headrace.ops.core.build import raw
from headrace.ops.state.copied_variables import MirroredVariable, SyncOnReadVariable
from headrace.ops.state.variable_kinds import VariableSynchronization, collection_keys
from headrace.ops.state.variables import Variable

__all__ = ["made_on", "make_copied"]


def make_copied(
    next_creator: Callable[..., Variable],
    devices: Sequence[str],
    parameter_devices: Sequence[str],
    kwargs: dict[str, Any],
) -> Variable:
    """A variable with a copy on each device; all start with the value of the first one.

    Args:
        devices: of the replicas: a variable that is brought together on read has a copy for each.
        parameter_devices: of the copies of other variables.
        kwargs: the arguments of `tf.Variable`.
    """
    on_read = kwargs.get("synchronization") is VariableSynchronization.ON_READ
    trainable = kwargs.get("trainable")
    trainable = not on_read if trainable is None else trainable
    keys = collection_keys(kwargs.get("collections"), trainable)
    own = {**kwargs, "collections": [], "trainable": False, "constraint": None}
    with init_scope():
        copies: list[Variable] = []
        for number, device in enumerate(devices if on_read else parameter_devices):
            if number:
                own["initial_value"] = _same_start(copies[0])
                own["name"] = f"{copies[0].op.name}/replica_{number}/"
            copies.append(made_on(device, next_creator, own))
        for copy in copies:
            copy._trainable = trainable
        variable = (SyncOnReadVariable if on_read else MirroredVariable)(copies, kwargs)
        get_default_graph().add_to_collections(keys, variable)
    return variable


def made_on(device: Any, create: Callable[..., Variable], kwargs: dict[str, Any]) -> Variable:
    """A variable on a device, whatever else is open."""
    with init_scope():
        graph = get_default_graph()
        with (
            graph.colocate_with(None, ignore_existing=True),
            graph.device(None),
            graph.device(device or None),
        ):
            return create(**kwargs)


def _same_start(first: Variable) -> Callable[[], Tensor]:
    def initial() -> Tensor:
        value: Tensor = raw.Identity(first._initializer_op.inputs[1])
        return value

    return initial
