"""Which state nodes touch, and whether they may fail or wait: worked out from the graph alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from headrace.executor.evaluate import prepared, random_stream
from headrace.executor.resources import ResourceHandle, StateKey, handle_for
from headrace.graph.func_graph import FuncGraph
from headrace.passes.ir import Edge, Node, function_step


class RegionState:
    """Which state a set of nodes touches, worked out from the graph alone."""

    def __init__(
        self, nodes: Sequence[Node], handles: dict[Edge, ResourceHandle], checked: set[Node]
    ) -> None:
        self.checked = checked
        self.reads: dict[StateKey, Node] = {}
        self.writes: dict[StateKey, Node] = {}
        #: Read inside a function body only, perhaps in a branch that is not taken.
        self.optional: set[StateKey] = set()
        self.may_fail = False
        #: Given a value by the nodes seen so far: reads of it need none from outside.
        self._made: set[StateKey] = set()
        for node in nodes:
            self._add(node, handles)

    @property
    def is_empty(self) -> bool:
        """Whether the nodes have no state."""
        return not (self.reads or self.writes)

    def _add(self, node: Node, handles: dict[Edge, ResourceHandle]) -> None:
        effects = node.op_def.effects
        self.may_fail |= effects.checks and node not in self.checked
        if effects.random:
            self.reads[random_stream(node)] = node
            self.writes[random_stream(node)] = node
        for i in effects.reads:
            if handles[node.inputs[i]] not in self._made:
                self.reads.setdefault(handles[node.inputs[i]], node)
                self.optional.discard(handles[node.inputs[i]])
        for i in effects.writes:
            self.writes.setdefault(handles[node.inputs[i]], node)
            self._made.add(handles[node.inputs[i]])
        if node.op_def.lower is not None:
            bodies = functions_in(node)
            known = [handles[e] for e in node.inputs if e in handles]
            used = [h for h in known if isinstance(h, ResourceHandle)]
            self.add_bodies(node, bodies, used)

    def add_bodies(self, node: Node, bodies: list[FuncGraph], used: list[ResourceHandle]) -> None:
        """Bodies may read whatever handles they are given, and write them if they write at all."""
        inner = list(bodies)
        writes = False
        while inner:
            for body_node in function_step(inner.pop()).nodes:
                effects = body_node.op_def.effects
                self.may_fail |= effects.checks or body_node.op_def.host is not None
                writes |= bool(effects.writes)
                if effects.random:
                    self.reads[random_stream(body_node)] = body_node
                    self.writes[random_stream(body_node)] = body_node
                inner.extend(functions_in(body_node))
        for handle in used:
            if handle not in self.reads and handle not in self._made:
                self.reads[handle] = node
                self.optional.add(handle)
            if writes:
                self.writes.setdefault(handle, node)


def may_block(node: Node) -> bool:
    """Whether a node, or a node of its function bodies, may wait for another op."""
    if node.op_def.lower is None:
        return node.op_def.effects.blocks
    p = prepared(node)
    if p.may_block is None:
        inner = (n for body in functions_in(node) for n in function_step(body).nodes)
        p.may_block = any(map(may_block, inner))
    return p.may_block


def is_integer_view(node: Node) -> bool:
    """Whether NumPy makes a node's outputs in about the time that it takes to look at them."""
    return node.op_def.traits.light and all(d.np_dtype.kind in "iub" for d in node.dtypes)


def touched_by(nodes: Iterable[Node]) -> list[StateKey]:
    """All state that may be touched by nodes among which are those that make its handles."""
    found: dict[StateKey, None] = {}
    for node in nodes:
        if node.op_def.makes_handle:
            found[handle_for(node)] = None
        if node.op_def.effects.random:
            found[random_stream(node)] = None
        bodies = functions_in(node) if node.op_def.lower is not None else ()
        for body in bodies:
            found.update(dict.fromkeys(touched_by(function_step(body).nodes)))
    return list(found)


def has_loops(nodes: Iterable[Node]) -> bool:
    """Whether there is a loop among nodes and their function bodies."""
    return any(
        n.op_def.traits.repeats or any(has_loops(function_step(f).nodes) for f in functions_in(n))
        for n in nodes
        if n.op_def.lower is not None
    )


def functions_in(node: Node) -> list[FuncGraph]:
    """The function bodies among a node's attributes, nested attribute lists included."""
    found: list[FuncGraph] = []

    def visit(value: Any) -> None:
        if isinstance(value, FuncGraph):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            for item in value:
                visit(item)
        elif hasattr(value, "attrs") and hasattr(value, "name"):
            visit(list(value.attrs.values()))

    for value in node.attrs.values():
        visit(value)
    return found


__all__ = ["RegionState", "functions_in", "has_loops", "is_integer_view", "may_block"]
