"""Graphs written for TensorFlow: an operation it lacks is written as those that it consists of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from headrace.graph.func_graph import FuncGraph
from headrace.graph.graph import Graph
from headrace.graph.graph_def import (
    begin_function,
    body_sources,
    check_size,
    end_function,
    graph_versions,
    held_functions,
    input_name,
    leave_out_checks,
    own_checks_among,
    write_colocation,
    write_rest,
)
from headrace.graph.proto import FunctionDef, GraphDef, NodeDef
from headrace.graph.tensor import Operation, Tensor


@dataclass
class Expansion:
    """What is written in the place of an operation.

    Attributes:
        inputs: tensors that stand for the inputs of the operation.
        ops: the operations to write, in an order in which they can run.
        result: the one of them that gets the name of the operation, and has its outputs.
    """

    inputs: Sequence[Tensor]
    ops: Sequence[Operation]
    result: Operation


#: What to write in the place of an operation; None for itself.
Expand = Callable[[Operation], Expansion | None]


def expanded_graph_def(
    graph: Graph,
    expand: Expand,
    add_shapes: bool = False,
    finish: Callable[[NodeDef], None] = lambda node: None,
) -> GraphDef:
    """``graph`` as a GraphDef message.

    Args:
        graph: the graph to write.
        expand: tells what to write in the place of an operation.
        add_shapes: write the static shapes of outputs as ``_output_shapes``.
        finish: changes a node before it is added.
    """
    message = GraphDef(versions=graph_versions())
    with graph._lock:
        check_size(graph._ops)
        library = _Library(graph.outermost)
        nodes = _Nodes(set(graph._by_name), expand, library, finish, add_shapes)
        for op in graph._ops:
            nodes.write(op, op.name)
        message.node.extend(nodes.written)
        written: dict[str, FunctionDef] = {}
        while library.waiting:
            function = library.waiting.pop()
            written[function.name] = _function_def(function, expand, library, finish)
    for name in sorted(written):
        message.library.function.append(written[name])
    leave_out_checks(message, own_checks_among(graph._ops))
    return message


def _function_def(
    function: FuncGraph, expand: Expand, library: _Library, finish: Callable[[NodeDef], None]
) -> FunctionDef:
    parts = begin_function(function)
    nodes = _BodyNodes(parts.taken, expand, library, finish)
    nodes.names, nodes.sources = dict(parts.names), dict(parts.sources)
    for op in parts.body:
        nodes.write(op, parts.names[op])
    parts.message.node_def.extend(nodes.written)
    return end_function(function, parts, nodes.source)


class _Library:
    """The functions that written operations call, each under a name of its own."""

    def __init__(self, graph: Graph) -> None:
        self._named: dict[str, Any] = dict(graph._functions)
        self._known: set[FuncGraph] = set()
        self.waiting: list[FuncGraph] = []

    def add(self, function: FuncGraph) -> None:
        if function in self._known:
            return
        self._known.add(function)
        base, count = function.name, 0
        while self._named.setdefault(function.name, function) is not function:
            count += 1
            function.name = f"{base}_{count}"
        self.waiting.append(function)


class _Nodes:
    """Writes operations of a graph as nodes, some of them as the operations they consist of."""

    def __init__(
        self,
        taken: set[str],
        expand: Expand,
        library: _Library,
        finish: Callable[[NodeDef], None],
        add_shapes: bool = False,
    ) -> None:
        self.written: list[NodeDef] = []
        #: What operations and tensors are called where that is not their own name.
        self.names: dict[Operation, str] = {}
        self.sources: dict[Tensor, str] = {}
        self._taken = taken
        self._expand = expand
        self._library = library
        self._finish = finish
        self._add_shapes = add_shapes

    def write(self, op: Operation, name: str, controls: Iterable[str] = ()) -> None:
        """Write ``op`` under ``name``; it waits for ``controls``, too."""
        waits = [*controls, *(w for c in op.control_inputs if (w := self.control_name(c)))]
        expansion = self._expand(op)
        if expansion is None:
            self._write_node(op, name, waits)
            return
        for inner, outer in zip(expansion.inputs, op.inputs, strict=True):
            self.sources[inner] = self.source(outer)
        parts = set(expansion.ops)
        for part in expansion.ops:
            self.names[part] = name if part is expansion.result else self._unique(part.name)
            self.sources.update(
                zip(part.outputs, self.output_names(part, self.names[part]), strict=True)
            )
        first = len(self.written)
        for part in expansion.ops:
            depends = part.type == "Const" or any(t.op in parts for t in part.inputs)
            self.write(part, self.names[part], () if depends else waits)
        for node in self.written[first:]:
            node.device = op.device
        if op.colocation:
            write_colocation(self.written[-1], op.colocation)
        for tensor, inner in zip(op.outputs, expansion.result.outputs, strict=True):
            self.sources[tensor] = self.sources[inner]

    def _write_node(self, op: Operation, name: str, waits: Iterable[str]) -> None:
        for function in held_functions(op.attrs.values()):
            self._library.add(function)
        node = NodeDef(name=name, op=op.type, device=op.device)
        node.input.extend(self.source(t) for t in op.inputs)
        node.input.extend(f"^{w}" for w in dict.fromkeys(waits))
        write_rest(node, op, self._add_shapes)
        self._finish(node)
        self.written.append(node)

    def source(self, tensor: Tensor) -> str:
        """How inputs refer to a tensor."""
        return self.sources.get(tensor) or input_name(tensor)

    def control_name(self, op: Operation) -> str | None:
        """The name of the node of an operation, if it has one."""
        return self.names.get(op, op.name)

    @staticmethod
    def output_names(op: Operation, node: str) -> list[str]:
        """How inputs refer to the outputs of a node."""
        return [node if i == 0 else f"{node}:{i}" for i in range(len(op.outputs))]

    def _unique(self, name: str) -> str:
        chosen, count = name, 0
        while chosen in self._taken:
            count += 1
            chosen = f"{name}_{count}"
        self._taken.add(chosen)
        return chosen


class _BodyNodes(_Nodes):
    """The same for the body of a function, where all names are known beforehand."""

    def control_name(self, op: Operation) -> str | None:
        return self.names.get(op)

    @staticmethod
    def output_names(op: Operation, node: str) -> list[str]:
        return body_sources(op, node)
