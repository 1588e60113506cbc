"""The functions of a graph file, made into bodies when an operation names them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace.graph.attr_proto import encode_untyped
from headrace.graph.attrs import NameAttrList, attrs_key
from headrace.graph.func_graph import FuncGraph
from headrace.graph.graph import Graph
from headrace.graph.tensor import Operation, Tensor
from headrace.graph_files.import_bodies import raise_body
from headrace.graph_files.import_calls import GRADIENT_OF, instantiated
from headrace.graph_files.import_control import has_tokens
from headrace.ops.control.functions import differentiate
from headrace.ops.core.build import function_placeholder
from headrace.ops.core.registry import find_op_def


class FunctionLibrary:
    """The functions of a file, made into bodies when an operation names them."""

    def __init__(self, graph: Graph, definitions: Sequence[Any]) -> None:
        self.graph = graph.outermost
        self.definitions = {f.signature.name: f for f in definitions}
        self.made: dict[Any, FuncGraph] = {}
        self.open: list[str] = []
        #: Names of operations in bodies: random streams and saved values go by them.
        self.taken: set[str] = set()
        if self.definitions:
            self.taken = {op.name for f in self.graph._functions.values() for op in f._ops}
        #: For each body, what its operations are called now where that is not as in the file.
        self.renamed: dict[FuncGraph, dict[str, str]] = {}

    def body(self, reference: NameAttrList, dims: Sequence[Any] | None) -> Any:
        """The body of the function that ``reference`` names, for arguments of shapes ``dims``.

        Raises:
            ValueError: if there is no such function, or it is not one that can be made.
        """
        name = reference.name
        definition = self.definitions.get(name)
        if definition is None:
            if find_op_def(name) is not None:
                return reference
            raise ValueError(f"Function '{name}' is not in the library of the graph.")
        gradient = bool(reference.attrs.get(GRADIENT_OF))
        given = {k: v for k, v in reference.attrs.items() if k != GRADIENT_OF}
        key = (name, None if dims is None else tuple(dims), gradient, attrs_key(given))
        found = self.made.get(key)
        if found is None:
            if gradient:
                found = self._gradient(NameAttrList(name, given), definition, dims)
            else:
                found = self._open(name, definition, given, dims)
            self.made[key] = found
        return found

    def _open(
        self, name: str, definition: Any, attrs: dict[str, Any], dims: Sequence[Any] | None
    ) -> FuncGraph:
        if name in self.open:
            raise ValueError(f"Function '{name}' calls itself: recursion is not supported.")
        self.open.append(name)
        try:
            values = {k: encode_untyped(v) for k, v in attrs.items()}
            return self._make(self._raised(instantiated(definition, values)), dims)
        finally:
            self.open.pop()

    def _gradient(
        self, reference: NameAttrList, definition: Any, dims: Sequence[Any] | None
    ) -> FuncGraph:
        """The function that gives the gradients of the arguments of another one."""
        count = len(definition.signature.input_arg)
        forward = self.body(reference, None if dims is None else dims[:count])
        made = differentiate(forward, self._unique(f"{forward.name}_grad"))
        self.graph._functions[made.name] = made
        return made

    def _raised(self, definition: Any) -> Any:
        """A function without control flow by tokens; what is cut out of it is in the library."""
        if not has_tokens(definition.node_def):
            return definition
        raised, functions = raise_body(definition, self.definitions)
        self.definitions.update({f.signature.name: f for f in functions})
        return raised

    def _make(self, definition: Any, dims: Sequence[Any] | None) -> FuncGraph:
        from headrace.graph_files import import_nodes

        signature = definition.signature
        name = signature.name
        arguments = [a.name for a in signature.input_arg]
        plans = import_nodes.plan(definition.node_def, arguments=arguments)
        by_name = {p.name: p for p in plans}
        body = FuncGraph(self._unique(name), self.graph, function_placeholder)
        self.graph._functions[body.name] = body
        self.renamed[body] = {}
        tensors = self._add_arguments(body, definition, dims)
        with body.as_default():
            self._add_nodes(body, plans, tensors)
        for output in signature.output_arg:
            source = definition.ret.get(output.name, "")
            node, index = import_nodes.parse_body_source(
                source, by_name, arguments, f"Result '{output.name}' of function '{name}'"
            )
            body.outputs.append(tensors[node][index])
        return body

    def _unique(self, name: str) -> str:
        chosen, count = name, 0
        while chosen in self.graph._functions:
            count += 1
            chosen = f"{name}_{count}"
        return chosen

    def _op_name(self, body: FuncGraph, name: str) -> str:
        """A name for an operation of ``body`` that no body of the graph has yet."""
        chosen, count = name, 0
        prefix = body.name.lstrip("_") or "function"
        while chosen in self.taken:
            chosen = f"{prefix}/{name}" + (f"_{count}" if count else "")
            count += 1
        self.taken.add(chosen)
        if chosen != name:
            self.renamed[body][name] = chosen
        return chosen

    def _add_arguments(
        self, body: FuncGraph, definition: Any, dims: Sequence[Any] | None
    ) -> dict[str, Sequence[Tensor]]:
        from headrace.graph.attr_proto import decode, read_type
        from headrace.graph.shapes import compatible_static, merge_static
        from headrace.graph_files.import_nodes import is_valid_name

        arguments = definition.signature.input_arg
        if dims is not None and len(dims) != len(arguments):
            raise ValueError(
                f"Function '{definition.signature.name}' takes {len(arguments)} arguments; "
                f"{len(dims)} are passed."
            )
        tensors: dict[str, Sequence[Tensor]] = {}
        for i, arg in enumerate(arguments):
            shape = None
            stated = definition.arg_attr[i].attr if i in definition.arg_attr else {}
            if "_output_shapes" in stated:
                shapes = decode(stated["_output_shapes"], "list(shape)")
                shape = shapes[0].as_tuple if shapes else None
            given = None if dims is None else dims[i]
            if compatible_static(shape, given):
                shape = merge_static(shape, given)
            name = decode(stated["_op_name"], "string") if "_op_name" in stated else arg.name
            if not (isinstance(name, str) and is_valid_name(name.lstrip("_"))):
                raise ValueError(
                    f"Argument {name!r} of function '{definition.signature.name}': the name "
                    "contains invalid characters"
                )
            full = self._op_name(body, name.lstrip("_")) + "/"
            tensors[arg.name] = (body.add_input(read_type(arg.type), shape, full),)
        return tensors

    def _add_nodes(
        self, body: FuncGraph, plans: Sequence[Any], tensors: dict[str, Sequence[Tensor]]
    ) -> None:
        from headrace.graph_files import import_nodes

        ops: dict[str, Operation] = {}
        for plan in plans:
            inputs = [tensors[n][i] for n, i in plan.inputs]
            controls = [ops[c] for c in plan.controls]
            attrs = import_nodes.resolve_functions(plan, inputs, self)
            name = self._op_name(body, plan.name)
            op = import_nodes.add_node(body, plan, name, inputs, controls, attrs)
            op.colocation = plan.colocation
            ops[plan.name] = op
            tensors[plan.name] = op.outputs


__all__ = ["FunctionLibrary"]
