"""Graph files whose nodes call functions of the library by name, rewritten as calls.

The op of such a node is the name of a function; its outputs are those that the function declares.
Here it becomes a PartitionedCall (or StatefulPartitionedCall) of the same name and outputs.
`SymbolicGradient`, the gradient of a function, becomes a call of the function that the library
names for it, or of one that differentiates (`import_functions` makes it).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from headrace.graph.graph_def import called_functions
from headrace.graph.proto import FunctionDef, NodeDef
from headrace.ops.core.registry import find_op_def

#: The attribute of a function's reference that asks for its gradient.
GRADIENT_OF = "_gradient_of"


def name_calls(nodes: Sequence[NodeDef], library: Any) -> tuple[list[NodeDef], list[FunctionDef]]:
    """The nodes and functions of a graph, with calls in the place of functions' names.

    Args:
        nodes: the nodes of a graph file; they are not changed.
        library: its FunctionDefLibrary.

    Raises:
        ValueError: if a gradient is asked for of what is no function.
    """
    functions = {f.signature.name: f for f in library.function}
    calls = _Calls(functions, {g.function_name: g.gradient_func for g in library.gradient})
    bodies = [n for f in library.function for n in f.node_def]
    if not any(calls.is_call(n) for n in (*nodes, *bodies)):
        return list(nodes), list(library.function)
    rewritten = [calls.rewrite(n) for n in nodes]
    return rewritten, [calls.rewrite_body(f) for f in library.function]


class _Calls:
    def __init__(self, functions: dict[str, FunctionDef], gradients: dict[str, str]) -> None:
        self.functions = functions
        self.gradients = gradients
        self._stateful: dict[str, bool] = {}

    def is_call(self, node: NodeDef) -> bool:
        if node.op == "SymbolicGradient":
            return "forward_inputs" not in node.attr  # that of ours says more
        return node.op in self.functions and find_op_def(node.op) is None

    def rewrite(self, node: NodeDef) -> NodeDef:
        if not self.is_call(node):
            return node
        return self._gradient(node) if node.op == "SymbolicGradient" else self._call(node)

    def _call(self, node: NodeDef) -> NodeDef:
        function = self.functions[node.op]
        new = _copy_without_attrs(node)
        new.op = "StatefulPartitionedCall" if self.is_stateful(node.op) else "PartitionedCall"
        signature = function.signature
        for name, args in (("Tin", signature.input_arg), ("Tout", signature.output_arg)):
            new.attr[name].list.SetInParent()
            for arg in args:
                new.attr[name].list.type.extend(_types(arg, node))
        new.attr["f"].func.name = node.op
        for attr in signature.attr:
            if attr.name in node.attr:
                new.attr["f"].func.attr[attr.name].CopyFrom(node.attr[attr.name])
        return new

    def _gradient(self, node: NodeDef) -> NodeDef:
        reference = node.attr["f"].func
        if reference.name not in self.functions:
            raise ValueError(
                f"Node '{node.name}': SymbolicGradient of '{reference.name}', which is no function "
                "of the graph."
            )
        new = _copy_without_attrs(node)
        new.op = "StatefulPartitionedCall"
        for name in ("Tin", "Tout"):
            new.attr[name].CopyFrom(node.attr[name])
        own = self.gradients.get(reference.name)
        new.attr["f"].func.CopyFrom(reference)
        if own is not None:
            new.attr["f"].func.name = own
        else:
            new.attr["f"].func.attr[GRADIENT_OF].b = True
            if not self.is_stateful(reference.name):
                new.op = "PartitionedCall"
        return new

    def is_stateful(self, name: str) -> bool:
        """Whether running a function can do more than compute its results."""
        if name not in self._stateful:
            self._stateful[name] = False  # while its body is looked at
            self._stateful[name] = any(
                self._has_effects(node) for node in self.functions[name].node_def
            )
        return self._stateful[name]

    def _has_effects(self, node: NodeDef) -> bool:
        definition = find_op_def(node.op)
        if definition is None:
            return node.op in self.functions and self.is_stateful(node.op)
        called = list(called_functions(node))
        if called:
            return any(name in self.functions and self.is_stateful(name) for name in called)
        return not definition.effects.pure

    def rewrite_body(self, function: FunctionDef) -> FunctionDef:
        called = {n.name: n for n in function.node_def if self.is_call(n)}
        if not called:
            return function
        new = FunctionDef()
        new.CopyFrom(function)
        del new.node_def[:]
        for node in function.node_def:
            changed = NodeDef()
            changed.CopyFrom(self.rewrite(node))
            for i, source in enumerate(changed.input):
                changed.input[i] = self._source(source, called)
            new.node_def.append(changed)
        for name, source in function.ret.items():
            new.ret[name] = self._source(source, called)
        return new

    def _source(self, source: str, called: dict[str, NodeDef]) -> str:
        """``node:result:index`` by the index among all results of the call."""
        name, _, rest = source.partition(":")
        node = called.get(name)
        if node is None or not rest:
            return source
        result, _, index = rest.partition(":")
        if node.op == "SymbolicGradient":
            return source
        position = 0
        for arg in self.functions[node.op].signature.output_arg:
            if arg.name == result:
                return f"{name}:output:{position + int(index or 0)}"
            position += len(_types(arg, node))
        return source


def _copy_without_attrs(node: NodeDef) -> NodeDef:
    new = NodeDef(name=node.name, device=node.device)
    new.input.extend(node.input)
    for name in ("_output_shapes", "_class"):
        if name in node.attr:
            new.attr[name].CopyFrom(node.attr[name])
    return new


def _types(arg: Any, node: NodeDef) -> list[Any]:
    """The types that an argument of a function stands for at a call."""
    if arg.type_list_attr:
        return list(node.attr[arg.type_list_attr].list.type)
    kind = node.attr[arg.type_attr].type if arg.type_attr else arg.type
    return [kind] * (node.attr[arg.number_attr].i if arg.number_attr else 1)


def instantiated(definition: FunctionDef, attrs: dict[str, Any]) -> FunctionDef:
    """A function with values in the place of the attributes it declares.

    Args:
        definition: the function.
        attrs: the values, as AttrValue messages.

    Raises:
        ValueError: if a value is missing, or arguments are lists whose length it decides.
    """
    signature = definition.signature
    name = signature.name
    lists = [a.name for a in (*signature.input_arg, *signature.output_arg) if _is_list(a)]
    if lists:
        raise ValueError(f"Function '{name}' has arguments that are lists: {', '.join(lists)}.")
    if not signature.attr:
        return definition
    missing = [a.name for a in signature.attr if a.name not in attrs]
    if missing:
        raise ValueError(f"Function '{name}' is called without its attributes {missing}.")
    new = FunctionDef()
    new.CopyFrom(definition)
    del new.signature.attr[:]
    for arg in (*new.signature.input_arg, *new.signature.output_arg):
        if arg.type_attr:
            arg.type = attrs[arg.type_attr].type
            arg.type_attr = ""
    for node in new.node_def:
        _fill_in(node.attr.values(), attrs)
    return new


def _is_list(arg: Any) -> bool:
    return bool(arg.number_attr or arg.type_list_attr)


def _fill_in(values: Iterable[Any], attrs: dict[str, Any]) -> None:
    for value in values:
        if value.WhichOneof("value") == "placeholder":
            value.CopyFrom(attrs[value.placeholder])
        for function in (value.func, *value.list.func):
            _fill_in(function.attr.values(), attrs)


__all__ = ["GRADIENT_OF", "instantiated", "name_calls"]
