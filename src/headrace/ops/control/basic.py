"""Ordering without data: no_op, group, tuple, and init_scope."""

from __future__ import annotations

import builtins
import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from headrace.graph import nest
from headrace.graph.composite import CompositeTensor
from headrace.graph.graph import Graph, get_default_graph
from headrace.graph.tensor import Operation, Tensor
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.core.public import public
from headrace.ops.core.registry import define_op
from headrace.ops.core.traits import Traits

_NO_OP = define_op(
    "NoOp()",
    shape=lambda op: [],
    kernel=lambda: (),
    interpret=lambda: (),
    traits=Traits(computes=False),
)


@public("no_op")
def no_op(name: str | None = None) -> Operation:
    """An operation that does nothing; useful as a point for control dependencies."""
    return get_default_graph().add_op(_NO_OP, (), {}, (), name or "NoOp")


@public("group")
def group(*inputs: Any, **kwargs: Any) -> Operation:
    """An operation that finishes when all ``inputs`` have.

    Args:
        *inputs: tensors of any shape, operations, variables, or nested lists of them.
        name: the name of the operation.

    Raises:
        TypeError: if an input is none of these.
        ValueError: for another keyword.
    """
    name = kwargs.pop("name", None)
    if kwargs:
        raise ValueError("Unknown keyword arguments: " + ", ".join(sorted(kwargs)))
    graph = get_default_graph()
    by_device: dict[str, dict[Operation, None]] = {}
    for item in nest.flatten(inputs):
        element = _element(graph, item)
        by_device.setdefault(element.device, {})[element] = None
    if len(by_device) <= 1:
        device, ops = next(iter(by_device.items()), ("", {}))
        return _wait_for(graph, device, list(ops), name or "group_deps")
    # One no-op per device, so that a single edge crosses from each device.
    with graph.name_scope(name or "group_deps") as scope:
        parts = [_wait_for(graph, d, list(ops), "NoOp") for d, ops in sorted(by_device.items())]
        return _wait_for(graph, "", parts, scope)


def _element(graph: Graph, item: Any) -> Operation:
    if isinstance(item, CompositeTensor):
        item = item._parts()[0]
    if not isinstance(item, (Tensor, Operation)) and not hasattr(item, "_as_graph_element"):
        raise TypeError(
            "'inputs' should be zero or more (nested) Tensors. Received "
            f"'{item}' with type '{type(item)}'."
        )
    element = graph.as_graph_element(item, allow_foreign=True)
    return element.op if isinstance(element, Tensor) else element


def _wait_for(graph: Graph, device: str, ops: list[Operation], name: str) -> Operation:
    with graph.control_dependencies(ops):
        if not device:
            return no_op(name)
        with graph.device(None), graph.device(device):
            return no_op(name)


_tuple: type = builtins.tuple


@public("tuple")
def tuple(tensors: Sequence[Any], name: str | None = None, control_inputs: Any = None) -> list[Any]:
    """``tensors`` as values that exist only when all of them have been computed.

    Args:
        tensors: tensors of any shape, IndexedSlices or None; None stays None.
        control_inputs: more operations to wait for.

    Returns:
        A list of as many tensors with the same shapes and dtypes.

    Raises:
        ValueError: if there is no tensor among ``tensors``.
        TypeError: if one is no tensor, or ``control_inputs`` are no operations.
    """
    graph = get_default_graph()
    with graph.name_scope(name or "tuple"):
        gates = [t for t in tensors if t is not None]
        for item in control_inputs or ():
            element = graph.as_graph_element(item, allow_foreign=True)
            gates.append(element.op if isinstance(element, Tensor) else element)
        if not any(t is not None for t in tensors):
            raise ValueError(
                f"'tensors' must have at least one Tensor. Received: {list(tensors)!r}."
            )
        gate = group(*gates)
        return [None if t is None else _gated(graph, t, gate) for t in tensors]


def _gated(graph: Graph, value: Any, gate: Operation) -> Any:
    with graph.control_dependencies([gate]):
        if isinstance(value, CompositeTensor):
            return value._identity(lambda t: raw.Identity(t, name="control_dependency"))
        if isinstance(value, Operation):
            return value
        return raw.Identity(convert_to_tensor(value), name="control_dependency")


@public("init_scope")
@contextlib.contextmanager
def init_scope() -> Iterator[None]:
    """Ops made inside go to the outermost graph, free of control dependencies.

    A variable made in a loop or branch is built this way: its state outlives the call.
    """
    graph = get_default_graph()
    if not graph.building_function:
        with graph.control_dependencies(None):
            yield
        return
    outer = graph.outermost
    scope = graph.get_name_scope()
    inside = outer.name_scope(f"{scope}/" if scope else None)
    with outer.as_default(), outer.control_dependencies(None), inside:
        yield
