"""Loops, branches and calls whose bodies need several tasks.

The op itself runs in one task, the owner. Each body with nodes that belong elsewhere (they are
constrained to another task, or use a resource that lives there) is placed and cut into parts like a
step, bodies inside it as well. The owner runs every call of it as a step of its own, as master of
the tasks concerned. A body that needs the owner only stays as it is.

Handles do not travel: which resource a body uses is known when the step is cut, so its parts hold
handles of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headrace.executor.stages import known_values
from headrace.graph import dtypes
from headrace.graph.func_graph import FuncGraph
from headrace.ops.control.flow import calls_of, first_argument
from headrace.ops.core.registry import get_op_def
from headrace.partition.parts import Partition, cut_at_tasks, task_of
from headrace.passes.ir import Edge, Node, StepGraph, make_function_step

#: ``place(nodes, device, function)`` gives the nodes of a body their devices; ``device`` is that of
#: the op that calls it.
PlaceBody = Callable[[Sequence[Node], str, str], None]


@dataclass(eq=False)
class Body:
    """A body that needs several tasks, the value of ``bodies[node][function, saved]``.

    Attributes:
        name: of the function.
        partition: its parts; feeds are its arguments, fetches its outputs and saved tensors. Only
            the master has them.
        plan: what the owner asks for; the master sets it when the parts are registered.
    """

    name: str
    partition: Partition
    plan: Any = None


#: For control flow nodes: (function, saved tensors) -> what of their bodies needs several tasks.
Bodies = dict[Node, dict[Any, Body]]


def bodies_in(partition: Partition) -> Iterator[Body]:
    """The bodies in a partition that need several tasks, inner ones before outer ones."""
    for part in partition.parts.values():
        for bodies in part.tables.bodies.values():
            for body in bodies.values():
                yield from bodies_in(body.partition)
                yield body


def constraints_of(step: StepGraph) -> set[str]:
    """The devices that nodes of a step, or of the bodies in it, ask for."""
    found = {n.device for n in step.nodes if n.device}
    for node in step.nodes:
        if node.op_def.lower is not None:
            for function, _ in calls_of(node.attrs):
                found |= _constraints(function)
    return found


def _constraints(function: FuncGraph) -> set[str]:
    """The devices that ops of a body ask for; "" stands for a colocation."""
    found: set[str] = set()
    for op in function._ops:
        if op.type == "Placeholder":
            continue  # arguments are wherever they are needed
        if op.device:
            found.add(op.device)
        if op.colocation:
            found.add("")
        if op.op_def.lower is not None:
            for inner, _ in calls_of(op.attrs):
                found |= _constraints(inner)
    return found


def cut_bodies(step: StepGraph, place: PlaceBody, default_precision: str = "") -> Bodies:
    """Cut the bodies that need several tasks, of nodes of a placed step, and give them by node."""
    found: Bodies = {}
    known: dict[Edge, Any] | None = None
    for node in list(step.nodes):
        if node.op_def.lower is None:
            continue
        if known is None:
            known = known_values(step.nodes)
        calls = {}
        for function, saved in calls_of(node.attrs):
            body = _cut(node, function, saved, known, place, default_precision)
            if body is not None:
                calls[function, saved] = body
        if calls:
            found[node] = calls
            step.nodes = [*_drop_foreign_handles(node, known), *step.nodes]
    return found


def _cut(
    node: Node,
    function: FuncGraph,
    saved: tuple[str, ...],
    known: dict[Edge, Any],
    place: PlaceBody,
    default_precision: str,
) -> Body | None:
    """The parts of a body; None if the task of ``node`` can run it alone."""
    owner = task_of(node.device)
    args = node.inputs[first_argument(node.attrs) :]
    # Most bodies name no device: they need not be placed to see that the owner can run them.
    if not _constraints(function) and not any(_is_foreign(e, owner, known) for e in args):
        return None
    # A step of its own, since it is changed; `function_step` is shared.
    step = make_function_step(function, saved)
    _bind_handles(step, args, known)
    for inner in step.nodes:
        if inner.op_def.effects.random:
            # Where its part ends up, its random stream must be the one of the function.
            inner.name = f"{function.name}/{inner.name}"
    place(step.nodes, node.device, function.name)
    bodies = cut_bodies(step, place, default_precision)
    if not bodies and all(task_of(n.device) == owner for n in step.nodes):
        return None
    return Body(function.name, cut_at_tasks(step, default_precision, bodies))


def _is_foreign(edge: Edge, task: str, known: dict[Edge, Any]) -> bool:
    """Whether an edge is the handle of a resource in another task."""
    source, index = edge
    return source.dtypes[index] is dtypes.resource and (
        edge in known and task_of(source.device) != task
    )


def _bind_handles(step: StepGraph, args: Sequence[Edge], known: dict[Edge, Any]) -> None:
    """Let the nodes of a body use the resources that its arguments stand for."""
    used = {e for node in step.nodes for e in node.inputs}
    handles: dict[Edge, Edge] = {}
    for feed, edge in zip(step.feeds, args, strict=True):
        if feed.dtypes[0] is dtypes.resource and edge in known and (feed, 0) in used:
            handles[feed, 0] = (_handle(edge[0]), 0)
    for node in step.nodes:
        node.inputs = [handles.get(e, e) for e in node.inputs]
    made = dict.fromkeys(n for n, _ in handles.values())
    step.nodes = [*made, *step.nodes]


def _handle(source: Node) -> Node:
    """A handle like the one that ``source`` makes or hands on, on its device."""
    device = source.device
    # Past ops that only hand the handle on, to the one whose name and attributes tell it.
    while not source.op_def.makes_handle:
        source = source.inputs[0][0]
    made = Node(source.op_def, source.name, [], source.attrs, source.dtypes, source.dims, source.op)
    made.device, made.colocation = device, ()
    return made


def _drop_foreign_handles(node: Node, known: dict[Edge, Any]) -> list[Node]:
    """Take the handles of other tasks from an op; returns what stands in their place.

    Only bodies that are cut use them, which have handles of their own. A copy in this task could
    bring a resource with it that nobody uses.
    """
    owner = task_of(node.device)
    made = []
    for i, edge in enumerate(node.inputs):
        if _is_foreign(edge, owner, known):
            made.append(_stand_in(edge[0], node))
            node.inputs[i] = (made[-1], 0)
    return made


def _stand_in(handle: Node, user: Node) -> Node:
    attrs = {"value": np.int32(0), "dtype": dtypes.int32}
    made = Node(
        get_op_def("Const"), f"{handle.name}/elsewhere", [], attrs, (dtypes.int32,), ((),), None
    )
    made.device = user.device
    return made


__all__ = ["Bodies", "Body", "PlaceBody", "bodies_in", "constraints_of", "cut_bodies"]
