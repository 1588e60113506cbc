"""Initial values: how they are made, where, and what becomes of those that read variables.

All initialisers may run in one step, in any order. Where the initial value of one variable reads
another, that read is replaced by "its value if it has one, else its own initial value".
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from headrace.graph import dtypes
from headrace.graph.dtypes import DType
from headrace.graph.graph import Graph
from headrace.graph.tensor import Operation, Tensor
from headrace.ops.core.build import convert_to_tensor

#: Ops that know by themselves whether the variable has a value.
_ASKS = frozenset({"VarIsInitializedOp", "If", "StatelessIf"})


def initial_tensor(graph: Graph, value: Any, dtype: DType | None) -> Tensor:
    """The tensor of an initial value; a function is called under no device constraint."""
    if not callable(value):
        return convert_to_tensor(value, dtype, "initial_value")
    with graph.name_scope("Initializer"), graph.device(None):
        return convert_to_tensor(value(), dtype, "initial_value")


def colocate(made: Iterable[Operation], handle_op: Operation) -> None:
    """Let what was ``made`` for the initial value of a placed variable run where the variable is.

    Ops that have a place already keep it, and so do those that own or use other resources.
    """
    if not handle_op.device:
        return
    for op in made:
        if op.device or op.colocation or op.op_def.makes_handle:
            continue
        if not any(t.dtype is dtypes.resource for t in op.inputs):
            op.colocation = handle_op.colocation_names()


def safe_initial_value(graph: Graph, value: Tensor, suffix: str) -> Tensor:
    """``value``, or a copy of the ops behind it in which no variable is read unguarded."""
    if not graph._variable_of or value.graph is not graph:
        return value
    depends = _depends_on_read(value.op)
    if value.op not in depends:
        return value
    return _copy(graph, value, suffix, depends, {})


def _depends_on_read(root: Operation) -> set[Operation]:
    """The ops behind ``root``, itself included, that use the value of a variable."""
    order: list[Operation] = []
    seen: set[Operation] = set()
    stack = [(root, False)]
    while stack:
        op, finished = stack.pop()
        if finished:
            order.append(op)
        elif op not in seen:
            seen.add(op)
            stack.append((op, True))
            if op.type not in _ASKS:
                stack.extend((t.op, False) for t in op.inputs)
    found: set[Operation] = set()
    for op in order:
        reads = op.type == "ReadVariableOp" and not op.control_inputs
        if reads or (op.type not in _ASKS and any(t.op in found for t in op.inputs)):
            found.add(op)
    return found


def _copy(
    graph: Graph, tensor: Tensor, suffix: str, depends: set[Operation], done: dict[Operation, Any]
) -> Tensor:
    """``tensor`` computed from guarded reads; what reads no variable is shared, not copied."""
    op = tensor.op
    if op not in depends:
        return tensor
    if op in done:
        copied: Tensor = done[op][tensor.value_index]
        return copied
    if op.type == "ReadVariableOp":
        variable: Any = graph._variable_of.get(op.inputs[0].op)
        if getattr(variable, "initial_value", None) is not None:
            done[op] = (variable.initialized_value(),)
        else:
            done[op] = (tensor,)
    else:
        inputs = [_copy(graph, t, suffix, depends, done) for t in op.inputs]
        types = [t.dtype for t in op.outputs]
        name = f"{op.name.rpartition('/')[2]}_{suffix}"
        new = graph.add_op(op.op_def, inputs, dict(op.attrs), types, name)
        done[op] = new.outputs
    result: Tensor = done[op][tensor.value_index]
    return result
