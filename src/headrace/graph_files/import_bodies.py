"""Functions of a graph file whose bodies have control flow of the old kind.

Such a body is written as the nodes of a graph, its arguments as placeholders; what holds for graphs
(`import_control`) then holds for it.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from headrace.graph.proto import FunctionDef, NodeDef
from headrace.graph_files.import_control import raise_control_flow
from headrace.graph_files.import_slices import definition_of
from headrace.ops.core.registry import ArgDef


def raise_body(
    definition: FunctionDef, functions: Collection[str]
) -> tuple[FunctionDef, list[FunctionDef]]:
    """A function with While and If in the place of tokens, and the functions that these call.

    Args:
        definition: the function.
        functions: names of functions that there are already.

    Raises:
        ValueError: if its control flow cannot be raised.
    """
    arguments = {a.name: a for a in definition.signature.input_arg}
    by_name = {n.name: n for n in definition.node_def}
    nodes = [_placeholder(a) for a in arguments.values()]
    for node in definition.node_def:
        flat = NodeDef()
        flat.CopyFrom(node)
        for i, source in enumerate(node.input):
            flat.input[i] = _flat_source(source, by_name)
        nodes.append(flat)
    raised, made = raise_control_flow(nodes, functions)
    new = FunctionDef()
    new.CopyFrom(definition)
    del new.node_def[:]
    left = {n.name: n for n in raised}
    for node in raised:
        if node.name in arguments:
            continue
        body = new.node_def.add()
        body.CopyFrom(node)
        for i, source in enumerate(node.input):
            body.input[i] = _body_source(source, left, arguments)
    for name, source in definition.ret.items():
        new.ret[name] = _body_source(_flat_source(source, by_name), left, arguments)
    for name, node_name in list(definition.control_ret.items()):
        if node_name not in left:
            del new.control_ret[name]
    return new, made


def _placeholder(arg: Any) -> NodeDef:
    node = NodeDef(name=arg.name, op="Placeholder")
    node.attr["dtype"].type = arg.type
    node.attr["shape"].shape.unknown_rank = True
    return node


def _counts(node: NodeDef) -> list[tuple[ArgDef, int]]:
    """The declared outputs of a node, with how many tensors each stands for."""
    found = []
    definition = definition_of(node)
    for arg in () if definition is None else definition.outputs:
        count = 1
        deciding = arg.number_attr or arg.type_list_attr
        if deciding is not None:
            value = node.attr.get(deciding)
            count = 0 if value is None else value.i or len(value.list.type)
        found.append((arg, count))
    return found


#: What the token ops call their outputs; none of them is an op of ours.
_TOKEN_OUTPUTS = {
    "Switch": {"output_false": 0, "output_true": 1},
    "Merge": {"output": 0, "value_index": 1},
}


def _flat_source(source: str, nodes: dict[str, NodeDef]) -> str:
    """``node:output:index`` as graphs write it, ``node:index``."""
    name, _, rest = source.partition(":")
    node = nodes.get(name)
    if node is None or not rest:
        return name if node is None and not source.startswith("^") else source
    output, _, index = rest.partition(":")
    kind = node.op.removeprefix("Ref")
    if kind in ("Switch", "Merge"):
        return f"{name}:{_TOKEN_OUTPUTS[kind][output]}"
    if kind in ("Enter", "Exit", "NextIteration", "LoopCond"):
        return name
    position = 0
    for arg, count in _counts(node):
        if arg.name == output:
            return f"{name}:{position + int(index or 0)}"
        position += count
    raise ValueError(f"Unknown input '{source}' in the body of a function")


def _body_source(source: str, nodes: dict[str, NodeDef], arguments: Collection[str]) -> str:
    """``node:index`` as functions write it, ``node:output:index``."""
    if source.startswith("^"):
        return source
    name, _, index = source.partition(":")
    if name in arguments:
        return name
    position = int(index or 0)
    for arg, count in _counts(nodes[name]):
        if position < count:
            return f"{name}:{arg.name}:{position}"
        position -= count
    raise ValueError(f"Unknown input '{source}' in the body of a function")


__all__ = ["raise_body"]
