"""What must hold of every graph, as a table of rules; tests run it after whatever makes graphs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from headrace.graph import devices
from headrace.graph.func_graph import FuncGraph
from headrace.graph.graph import Graph
from headrace.graph.shapes import compatible_static, shape_text
from headrace.graph.tensor import Operation

Finding = str
Rule = Callable[[Graph], Iterator[Finding]]


class InvalidGraphError(ValueError):
    """A graph breaks rules of its own; ``findings`` has them all."""

    def __init__(self, findings: list[Finding]) -> None:
        shown = "".join(f"\n  - {f}" for f in findings)
        super().__init__(f"The graph breaks {len(findings)} rule(s):{shown}")
        self.findings = findings


def verify(graph: Graph) -> None:
    """Check ``graph`` and the function bodies that it holds.

    Raises:
        InvalidGraphError: with every finding, if there is one.
    """
    findings: list[Finding] = []
    for body in [graph, *_bodies(graph)]:
        where = f"in function '{body.name}': " if isinstance(body, FuncGraph) else ""
        findings.extend(where + f for rule in RULES for f in rule(body))
    if findings:
        raise InvalidGraphError(findings)


def _bodies(graph: Graph) -> list[FuncGraph]:
    found: dict[FuncGraph, None] = {}
    stack: list[Graph] = [graph]
    while stack:
        for op in stack.pop()._ops:
            for value in op.attrs.values():
                for item in value if isinstance(value, tuple) else (value,):
                    if isinstance(item, FuncGraph) and item not in found:
                        found[item] = None
                        stack.append(item)
    return list(found)


def _names(graph: Graph) -> Iterator[Finding]:
    """Names are unique, and the index of names is right."""
    seen: set[str] = set()
    for op in graph._ops:
        if op.name in seen:
            yield f"two operations are called '{op.name}'"
        seen.add(op.name)
        if graph._by_name.get(op.name) is not op:
            yield f"the name '{op.name}' leads to another operation"


def _membership(graph: Graph) -> Iterator[Finding]:
    """Inputs and control inputs are of this graph, and know their consumers."""
    known = set(graph._ops)
    for op in graph._ops:
        if op.graph is not graph:
            yield f"'{op.name}' belongs to another graph"
        for tensor in op.inputs:
            if tensor.op not in known:
                yield f"input '{tensor.name}' of '{op.name}' is not in the graph"
            elif op not in tensor._consumers:
                yield f"'{tensor.name}' does not know its consumer '{op.name}'"
        for control in op.control_inputs:
            if control not in known:
                yield f"control input '{control.name}' of '{op.name}' is not in the graph"
            elif op not in control.control_outputs:
                yield f"'{control.name}' does not know that '{op.name}' waits for it"


def _acyclic(graph: Graph) -> Iterator[Finding]:
    """No operation depends on itself."""
    pending = {op: 0 for op in graph._ops}
    users: dict[Operation, list[Operation]] = {op: [] for op in graph._ops}
    for op in graph._ops:
        for source in {t.op for t in op.inputs} | set(op.control_inputs):
            if source in users:
                users[source].append(op)
                pending[op] += 1
    ready = [op for op, count in pending.items() if not count]
    done = 0
    while ready:
        done += 1
        for user in users[ready.pop()]:
            pending[user] -= 1
            if not pending[user]:
                ready.append(user)
    if done != len(pending):
        stuck = sorted(op.name for op, count in pending.items() if count)
        yield f"{len(stuck)} operations are in a cycle or behind one: {', '.join(stuck[:5])}"


def _flat_types(args: Any, attrs: dict[str, Any]) -> list[Any]:
    types: list[Any] = []
    for arg in args:
        if arg.type_list_attr is not None:
            types.extend(attrs[arg.type_list_attr])
            continue
        dtype = arg.dtype if arg.dtype is not None else attrs[arg.type_attr]
        types.extend([dtype] * (1 if arg.number_attr is None else attrs[arg.number_attr]))
    return types


def _types(graph: Graph) -> Iterator[Finding]:
    """Inputs and outputs have the types that the definition and the attributes say."""
    for op in graph._ops:
        missing = [name for name in op.op_def.attrs if name not in op.attrs]
        if missing:
            yield f"'{op.name}' ({op.type}) lacks attributes {missing}"
            continue
        for what, args, tensors in (
            ("input", op.op_def.inputs, op.inputs),
            ("output", op.op_def.outputs, op.outputs),
        ):
            wanted = _flat_types(args, op.attrs)
            if len(wanted) != len(tensors):
                yield f"'{op.name}' ({op.type}) has {len(tensors)} {what}s, not {len(wanted)}"
                continue
            for i, (dtype, tensor) in enumerate(zip(wanted, tensors, strict=True)):
                if tensor.dtype is not dtype:
                    yield (
                        f"{what} {i} of '{op.name}' ({op.type}) is {tensor.dtype.name}, "
                        f"not {dtype.name}"
                    )


def _attributes(graph: Graph) -> Iterator[Finding]:
    """Limited attributes have values that are allowed."""
    for op in graph._ops:
        for definition in op.op_def.attrs.values():
            value = op.attrs.get(definition.name)
            if definition.allowed is None or value is None:
                continue
            for item in value if isinstance(value, tuple) else (value,):
                if item not in definition.allowed:
                    yield f"attribute {definition.name} of '{op.name}' may not be {item}"


def _outputs(graph: Graph) -> Iterator[Finding]:
    """Outputs know their operation and place."""
    for op in graph._ops:
        for i, tensor in enumerate(op.outputs):
            if tensor.op is not op or tensor.value_index != i:
                yield f"output {i} of '{op.name}' says that it is '{tensor.name}'"


def _shapes(graph: Graph) -> Iterator[Finding]:
    """The shapes of outputs fit what the shape rule makes of the inputs."""
    for op in graph._ops:
        if any(t.op.graph is not graph for t in op.inputs):
            continue
        try:
            ruled = op.op_def.infer_shapes(op, [t.dtype for t in op.outputs])
        except Exception as error:
            yield f"the inputs of '{op.name}' ({op.type}) do not fit: {error}"
            continue
        for tensor, dims in zip(op.outputs, ruled, strict=False):
            if not compatible_static(tensor.dims, dims):
                yield (
                    f"'{tensor.name}' has shape {shape_text(tensor.dims)}; its inputs give "
                    f"{shape_text(dims)}"
                )


def _placement(graph: Graph) -> Iterator[Finding]:
    """Devices are well formed and colocation names operations that exist."""
    for op in graph._ops:
        try:
            devices.canonical_name(op.device)
        except ValueError as error:
            yield f"device of '{op.name}': {error}"
        for name in op.colocation:
            if name not in graph._by_name:
                yield f"'{op.name}' is colocated with '{name}', which does not exist"


def _function_ends(graph: Graph) -> Iterator[Finding]:
    """Inputs, captures and outputs of a function are tensors of its body."""
    if not isinstance(graph, FuncGraph):
        return
    for what, tensors in (("input", graph.all_inputs), ("output", graph.outputs)):
        for tensor in tensors:
            if graph._by_name.get(tensor.op.name) is not tensor.op:
                yield f"{what} '{tensor.name}' is not in the body"


RULES: tuple[Rule, ...] = (
    _names,
    _membership,
    _acyclic,
    _types,
    _attributes,
    _outputs,
    _shapes,
    _placement,
    _function_ends,
)
