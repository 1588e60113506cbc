"""Graphs for files that TensorFlow reads: operations of our own become operations that it has.

A rule builds, on stand-ins for the inputs of an operation, what computes the same of TensorFlow's
operations. What has no such rule stays as it is, and `own_operations` names it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from headrace.graph.attr_proto import encode
from headrace.graph.expanded import Expansion, expanded_graph_def
from headrace.graph.func_graph import FuncGraph
from headrace.graph.graph import Graph
from headrace.graph.graph_def import called_functions, functions_of
from headrace.graph.proto import GraphDef, NodeDef
from headrace.graph.tensor import Operation, Tensor
from headrace.ops.core.build import constant, function_placeholder, raw
from headrace.ops.core.registry import find_op_def

#: ``rule(op, inputs)``: the outputs of ``op``, made of ``inputs`` by ops that TensorFlow has, or
#: the operation that has just these outputs; None where ``op`` can be written as it is.
Rule = Callable[[Operation, Sequence[Tensor]], Sequence[Tensor] | Operation | None]

_rules: dict[str, Rule] = {}
#: Types of operations that rules take apart only where they do more than in TensorFlow 1.15.
_sometimes: set[str] = set()

#: How files say of an assignment that the shape has to be that of the variable.
VALIDATE_SHAPE = "_validate_shape"


def lowers(*op_types: str, sometimes: bool = False) -> Callable[[Rule], Rule]:
    """Decorator: the rule for operations of these types.

    Args:
        sometimes: TensorFlow has them too; the rule is for what they do more.
    """

    def register(rule: Rule) -> Rule:
        _rules.update(dict.fromkeys(op_types, rule))
        if sometimes:
            _sometimes.update(op_types)
        return rule

    return register


def only_here(op_type: str) -> str:
    """Why TensorFlow has no such op, and files cannot be written with it; "" if they can."""
    definition = find_op_def(op_type)
    return "" if definition is None else definition.traits.only_here


def rule_of(op_type: str) -> Rule | None:
    """The rule for operations of this type."""
    return _rules.get(op_type)


def scalar_like(value: float, like: Tensor) -> Tensor:
    """A constant of the type of ``like``, for rules."""
    return constant(np.array(value, like.dtype.np_dtype), like.dtype)


def graph_def_for_files(graph: Graph, add_shapes: bool = True) -> GraphDef:
    """``graph`` as a GraphDef of TensorFlow's operations, as far as there are rules for its own.

    Args:
        graph: the graph to write.
        add_shapes: write the static shapes of outputs as ``_output_shapes``.
    """
    _load_rules()
    return expanded_graph_def(graph, _expansion, add_shapes, _leave_out_newer)


def has_own_operations(graph: Graph) -> bool:
    """Whether `graph_def_for_files` writes ``graph`` otherwise than it is."""
    _load_rules()
    waiting = list(graph._ops)
    waiting += [op for function in functions_of(waiting) for op in function._ops]
    return any(
        only_here(op.type) or op.attrs.get("_saved") or op.type in _rules.keys() - _sometimes
        for op in waiting
    )


def _load_rules() -> None:
    from headrace.graph_files import (  # noqa: F401
        export_control,
        export_gradients,
        export_programs,
        export_rules,
    )


def _expansion(op: Operation) -> Expansion | None:
    rule = rule_of(op.type)
    if rule is None:
        return None
    scratch = FuncGraph(f"{op.name.replace('/', '_')}_parts", Graph(), function_placeholder)
    with scratch.as_default(), scratch.name_scope(f"{op.name}/parts/"):
        inputs = [function_placeholder(scratch, t.dtype, t.dims, "input") for t in op.inputs]
        made = rule(op, inputs)
        if made is None:
            return None
        result = made if isinstance(made, Operation) else _result(scratch, made)
    stand_ins = {t.op for t in inputs}
    parts = [p for p in scratch._ops if p not in stand_ins and p is not result]
    return Expansion(inputs, [*parts, result], result)


def _result(scratch: Graph, outputs: Sequence[Tensor]) -> Operation:
    """One operation that has ``outputs``, after all that the rule made."""
    effects = [p for p in scratch._ops if not p.op_def.effects.pure and not p.op_def.outputs]
    with scratch.control_dependencies(effects):
        if not outputs:
            made: Operation = raw.NoOp()
            return made
        if len(outputs) == 1:
            value: Tensor = raw.Identity(outputs[0])
            return value.op
        values: list[Tensor] = raw.IdentityN(list(outputs))
        return values[0].op


def _leave_out_newer(node: NodeDef) -> None:
    if node.op == "AssignVariableOp" and node.attr["validate_shape"].b:
        # Older readers have no such check; ours finds it under a name that all readers accept.
        node.attr[VALIDATE_SHAPE].b = True
        node.attr["validate_shape"].b = False
    definition = find_op_def(node.op)
    for name, attr in ({} if definition is None else definition.attrs).items():
        if attr.newer and name in node.attr and node.attr[name] == encode(attr.default, attr.kind):
            del node.attr[name]


def own_operations(graph_def: Any) -> list[tuple[str, str]]:
    """The nodes of ``graph_def`` and its functions that TensorFlow does not know, with their types.

    Args:
        graph_def: a GraphDef, as `graph_def_for_files` makes it.
    """
    functions = {f.signature.name: f for f in graph_def.library.function}
    found: list[tuple[str, str]] = []
    seen: set[str] = set()
    waiting = list(graph_def.node)
    while waiting:
        node = waiting.pop()
        if only_here(node.op):
            found.append((node.name, node.op))
        for name in called_functions(node):
            if name in functions and name not in seen:
                seen.add(name)
                waiting.extend(functions[name].node_def)
    return sorted(found)


__all__ = [
    "VALIDATE_SHAPE",
    "graph_def_for_files",
    "has_own_operations",
    "lowers",
    "only_here",
    "own_operations",
    "rule_of",
    "scalar_like",
]
