"""Cutting functions out of the nodes of a graph file.

Loops and branches of old files are spread over the graph. What belongs to one of them is found by
walking back from its results; this module does the walking and makes a FunctionDef of what it
found. Sources are written as in graphs: ``node:index``, always with the index.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from headrace.graph.dtypes import DType
from headrace.graph.proto import FunctionDef, NodeDef, TensorShapeProto
from headrace.ops.core.registry import OpDef, find_op_def

#: A DataType, as its number in files.
TypeNumber = Any
BOOL: TypeNumber = 10
INT32: TypeNumber = 3

#: Output types of the ops that only old control flow has: the index of the first is always T.
TOKENS = frozenset(
    {"Switch", "Merge", "Enter", "Exit", "NextIteration", "LoopCond", "ControlTrigger"}
)


def canonical(source: str) -> str:
    """``node:index`` for ``node`` or ``node:index``."""
    return source if ":" in source else f"{source}:0"


def node_of(source: str) -> str:
    """The node of a source or of a control input."""
    return source.removeprefix("^").partition(":")[0]


def data_inputs(node: NodeDef) -> list[str]:
    return [canonical(s) for s in node.input if not s.startswith("^")]


def control_inputs(node: NodeDef) -> list[str]:
    return [s[1:] for s in node.input if s.startswith("^")]


def definition_of(node: NodeDef) -> OpDef | None:
    """The op definition that a node will be imported with."""
    from headrace.graph_files.import_nodes import successor_of

    return find_op_def(node.op) or find_op_def(successor_of(node.op))


def has_effects(node: NodeDef) -> bool:
    """Whether a node does something though nothing takes its outputs."""
    definition = definition_of(node)
    if definition is None:
        return False
    effects = definition.effects
    return bool(effects.writes or effects.external or effects.blocks)


def makes_state(node: NodeDef) -> bool:
    """Whether a node is a handle to state outside of the steps."""
    definition = definition_of(node)
    return definition is not None and bool(definition.makes_handle)


def output_args(node: NodeDef) -> list[tuple[str, TypeNumber]]:
    """For each output its name in a function body and its type: ``("output:0", dtype)``.

    Raises:
        ValueError: if the node's op is not known.
    """
    if node.op in TOKENS:
        dtype = BOOL if node.op == "LoopCond" else node.attr["T"].type
        return [("output:0", dtype), ("output:1", INT32 if node.op == "Merge" else dtype)]
    definition = definition_of(node)
    if definition is None:
        from headrace.errors import suggest
        from headrace.ops.core.registry import all_op_defs

        raise ValueError(
            f"Op type not registered '{node.op}' (node '{node.name}')."
            f"{suggest(node.op, all_op_defs())}"
        )
    found: list[tuple[str, TypeNumber]] = []
    for arg in definition.outputs:
        if arg.type_list_attr is not None:
            listed = arg.type_list_attr in node.attr
            types = list(node.attr[arg.type_list_attr].list.type) if listed else []
        else:
            count = 1 if arg.number_attr is None else node.attr[arg.number_attr].i
            types = [_type_of(node, definition, arg)] * count
        found += [(f"{arg.name}:{i}", dtype) for i, dtype in enumerate(types)]
    return found


def _type_of(node: NodeDef, definition: OpDef, arg: Any) -> TypeNumber:
    if arg.dtype is not None:
        return arg.dtype.as_datatype_enum
    if arg.type_attr in node.attr:
        return node.attr[arg.type_attr].type
    default = definition.attrs[arg.type_attr].default
    if not isinstance(default, DType):
        raise ValueError(f"node '{node.name}' of type {node.op} has no attribute '{arg.type_attr}'")
    return default.as_datatype_enum


@dataclass
class GraphSlice:
    """A part of a graph that becomes a function.

    Attributes:
        args: by source, the name of the argument that stands for it, in order.
        nodes: the nodes inside.
        outputs: sources of the results, in this slice or among ``args``.
        types: of arguments, by source.
    """

    args: dict[str, str] = field(default_factory=dict)
    nodes: dict[str, NodeDef] = field(default_factory=dict)
    outputs: list[str] = field(default_factory=list)
    types: dict[str, TypeNumber] = field(default_factory=dict)

    def add_arg(self, source: str, dtype: TypeNumber) -> None:
        """Let an argument stand for ``source``."""
        if source not in self.args:
            self.args[source] = f"arg{len(self.args)}"
            self.types[source] = dtype


def walk_back(
    starts: Iterable[str],
    nodes: Mapping[str, NodeDef],
    stop: Callable[[str], bool],
) -> dict[str, NodeDef]:
    """The nodes that ``starts`` (sources, or ``^node``) need, up to sources where ``stop`` is true.

    ``stop`` is asked about every source and control input on the way, and about nothing twice.
    """
    found: dict[str, NodeDef] = {}
    seen: set[str] = set()
    stack = [s if s.startswith("^") else canonical(s) for s in starts]
    while stack:
        source = stack.pop()
        if source in seen:
            continue
        seen.add(source)
        if stop(source):
            continue
        name = node_of(source)
        if name not in found:
            node = found[name] = nodes[name]
            stack.extend(data_inputs(node))
            stack.extend(f"^{c}" for c in control_inputs(node))
    return found


def to_function(name: str, part: GraphSlice, known: Mapping[str, NodeDef]) -> FunctionDef:
    """A FunctionDef of a slice.

    Args:
        known: nodes by name, for the types of outputs.
    """
    function = FunctionDef()
    function.signature.name = name
    for source, arg in part.args.items():
        function.signature.input_arg.add(name=arg, type=part.types[source])
    bodies = {n: output_args(node) for n, node in part.nodes.items()}

    def inner(source: str) -> str:
        if source in part.args:
            return part.args[source]
        node, _, index = source.partition(":")
        return f"{node}:{bodies[node][int(index)][0]}"

    for node in part.nodes.values():
        new = function.node_def.add()
        new.CopyFrom(node)
        del new.input[:]
        new.input.extend(inner(s) for s in data_inputs(node))
        kept = dict.fromkeys(c for c in control_inputs(node) if c in part.nodes)
        new.input.extend(f"^{c}" for c in kept)
    for i, source in enumerate(part.outputs):
        dtype = part.types.get(source)
        if dtype is None:
            dtype = type_of(source, known)
        function.signature.output_arg.add(name=f"result{i}", type=dtype)
        function.ret[f"result{i}"] = inner(source)
    return function


def type_of(source: str, nodes: Mapping[str, NodeDef]) -> TypeNumber:
    """The type of a source."""
    node, _, index = source.partition(":")
    return output_args(nodes[node])[int(index)][1]


def stated_shape(source: str, nodes: Mapping[str, NodeDef]) -> TensorShapeProto | None:
    """The static shape that a file states for a source, if its rank is known."""
    node, _, index = canonical(source).partition(":")
    attrs = nodes[node].attr
    shapes = attrs["_output_shapes"].list.shape if "_output_shapes" in attrs else ()
    if int(index) >= len(shapes) or shapes[int(index)].unknown_rank:
        return None
    return shapes[int(index)]


def identity(name: str, source: str, dtype: TypeNumber, like: NodeDef) -> NodeDef:
    """A node of this name that hands on ``source``, in the place of ``like``."""
    node = NodeDef(name=name, op="Identity", device=like.device)
    node.input.append(source)
    node.attr["T"].type = dtype
    if "_output_shapes" in like.attr:
        node.attr["_output_shapes"].list.shape.extend(like.attr["_output_shapes"].list.shape[:1])
    return node


def topological(nodes: Mapping[str, NodeDef]) -> list[str]:
    """Names of the nodes, each after those of ``nodes`` it depends on.

    Raises:
        ValueError: if there is a cycle.
    """
    needs = {
        name: {node_of(s) for s in node.input if node_of(s) in nodes}
        for name, node in nodes.items()
    }
    users: dict[str, list[str]] = {name: [] for name in nodes}
    for name, sources in needs.items():
        for source in sources:
            users[source].append(name)
    pending = {name: len(sources) for name, sources in needs.items()}
    order = [name for name, count in pending.items() if count == 0]
    for name in order:
        for user in users[name]:
            pending[user] -= 1
            if pending[user] == 0:
                order.append(user)
    if len(order) < len(nodes):
        stuck = [f"'{n}'" for n, count in pending.items() if count][:5]
        raise ValueError(f"nodes in a cycle or behind one: {', '.join(stuck)}")
    return order


class UniqueNames:
    """Names that no node or function has yet."""

    def __init__(self, taken: Iterable[str]) -> None:
        self._taken = set(taken)

    def __call__(self, base: str) -> str:
        name, count = base, 0
        while name in self._taken:
            count += 1
            name = f"{base}_{count}"
        self._taken.add(name)
        return name


@dataclass
class Raised:
    """A graph on its way from tokens to functions.

    Attributes:
        nodes: by name.
        functions: what was cut out so far.
    """

    nodes: dict[str, NodeDef]
    functions: list[FunctionDef]
    node_name: UniqueNames
    function_name: UniqueNames


__all__: list[str] = []
