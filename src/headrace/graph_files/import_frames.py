"""Loops of old graph files: Enter, Merge, Switch, NextIteration and Exit become one While.

A loop variable enters its frame, is merged with what the last iteration left, switched by the
loop's condition into the body or to an exit, and comes back through NextIteration (2015 white
paper, section 4.4; Yu et al., "Dynamic control flow in large-scale machine learning", 2018). So the
condition is what LoopCond needs back to the merges, and the body what NextIteration needs back to
the switches. Inner loops are raised first.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from headrace.graph.proto import NodeDef, TensorShapeProto
from headrace.graph_files.import_branches import raise_branches
from headrace.graph_files.import_contexts import Path, frame_paths, is_back
from headrace.graph_files.import_slices import (
    BOOL,
    GraphSlice,
    Raised,
    TypeNumber,
    canonical,
    control_inputs,
    data_inputs,
    has_effects,
    identity,
    makes_state,
    node_of,
    stated_shape,
    to_function,
    type_of,
    walk_back,
)


@dataclass
class _Variable:
    """A loop variable: the nodes it passes, and what it begins with."""

    enter: NodeDef
    merge: NodeDef
    switch: NodeDef | None = None
    back: NodeDef | None = None


@dataclass
class _Frame:
    """The nodes of one loop by their part in it."""

    path: Path
    variables: list[_Variable] = field(default_factory=list)
    #: Enter nodes of values that stay the same, by what enters.
    constants: dict[str, list[NodeDef]] = field(default_factory=dict)
    condition: NodeDef | None = None
    exits: list[NodeDef] = field(default_factory=list)
    members: set[str] = field(default_factory=set)


def raise_loops(graph: Raised) -> None:
    """Replace every frame of ``graph`` by a While op.

    Raises:
        ValueError: if a loop does not have the form that `tf.while_loop` gave it.
    """
    paths = frame_paths(graph.nodes)
    frames: dict[Path, _Frame] = {}
    for name, node in graph.nodes.items():
        if node.op == "Enter":
            frames.setdefault(paths[name], _Frame(paths[name]))
    for path in sorted(frames, key=len, reverse=True):
        _collect(graph, frames[path], paths)
        while_node = _raise(graph, frames[path])
        paths[while_node.name] = path[:-1]


def _collect(graph: Raised, frame: _Frame, paths: dict[str, Path]) -> None:
    """Find the nodes of a frame."""
    nodes = graph.nodes
    for node in nodes.values():
        if node.op == "Exit" and paths.get(node_of(node.input[0])) == frame.path:
            frame.exits.append(node)
    inside = [n for name, n in nodes.items() if paths.get(name) == frame.path and n.op != "Exit"]
    frame.members.update(n.name for n in inside)
    entered = {n.name: n for n in inside if n.op == "Enter" and not n.attr["is_constant"].b}
    for node in inside:
        if node.op == "Merge" and any(is_back(s, nodes) for s in node.input):
            back, enter = sorted(data_inputs(node), key=lambda s: not is_back(s, nodes))
            if node_of(enter) not in entered:
                raise ValueError(f"loop '{frame.path[-1]}': '{node.name}' merges no Enter")
            variable = _Variable(entered.pop(node_of(enter)), node, back=nodes[node_of(back)])
            frame.variables.append(variable)
        elif node.op == "LoopCond":
            if frame.condition is not None:
                raise ValueError(f"loop '{frame.path[-1]}' has two conditions")
            frame.condition = node
    if frame.condition is None:
        raise ValueError(f"loop '{frame.path[-1]}' has no LoopCond")
    changing = {v.enter.name for v in frame.variables}
    for node in inside:  # a value that enters and is never merged stays the same
        if node.op == "Enter" and node.name not in changing:
            frame.constants.setdefault(data_inputs(node)[0], []).append(node)
    by_merge = {v.merge.name: v for v in frame.variables}
    for node in inside:
        if node.op == "Switch" and node_of(node.input[1]) == frame.condition.name:
            found = by_merge.get(node_of(node.input[0]))
            if found is not None:
                found.switch = node


class _LoopFunctions:
    """Makes the two functions of one loop."""

    def __init__(self, graph: Raised, frame: _Frame) -> None:
        self.graph = graph
        self.frame = frame
        #: What the While takes, by position; constants stand behind the variables.
        self.inputs = [data_inputs(v.enter)[0] for v in frame.variables]
        self.position: dict[str, int] = {}
        for i, variable in enumerate(frame.variables):
            self.position[f"{variable.merge.name}:0"] = i
            if variable.switch is not None:
                self.position[f"{variable.switch.name}:1"] = i
        for source, enters in frame.constants.items():
            for enter in enters:
                self.position[f"{enter.name}:0"] = len(self.inputs)
            self.inputs.append(source)
        self.skipped = {n.name for v in frame.variables for n in (v.enter, v.merge, v.back) if n}
        self.skipped |= {v.switch.name for v in frame.variables if v.switch is not None}
        self.skipped |= {n.name for group in frame.constants.values() for n in group}

    def find(self, starts: list[str]) -> dict[str, NodeDef]:
        """The nodes inside the loop that ``starts`` need."""

        def stop(source: str) -> bool:
            if source.startswith("^"):
                return source[1:] in self.skipped
            if source in self.position:
                return True
            node = self.graph.nodes[node_of(source)]
            needs = [self.graph.nodes[node_of(s)] for s in data_inputs(node)]
            inside = node.name in self.frame.members or not any(map(data_inputs, needs))
            if makes_state(node):
                self.position[source] = len(self.inputs)
                self.inputs.append(source)
                return True
            if node.op == "Switch" and node.name in self.skipped:
                raise ValueError(
                    f"loop '{self.frame.path[-1]}': the body uses '{source}', the value of a loop "
                    "variable after the last iteration"
                )
            if not inside:
                raise ValueError(
                    f"loop '{self.frame.path[-1]}': the body uses '{source}', which never enters it"
                )
            return False

        return walk_back(starts, self.graph.nodes, stop)

    def function(
        self, name: str, nodes: dict[str, NodeDef], outputs: list[str], types: list[TypeNumber]
    ) -> str:
        """A function of all loop variables with these nodes; returns its name."""
        part = GraphSlice(types={})
        for i in range(len(self.inputs)):
            part.args[f"#{i}:0"] = f"arg{i}"
            part.types[f"#{i}:0"] = types[i]
        for source, i in self.position.items():
            part.args[source] = f"arg{i}"
            part.types[source] = types[i]
        part.nodes = raise_branches(self.graph, nodes, part)
        part.outputs = [canonical(s) for s in outputs]
        name = self.graph.function_name(name)
        function = to_function(name, part, {**self.graph.nodes, **part.nodes})
        # The other names for an argument are no arguments of their own.
        del function.signature.input_arg[len(self.inputs) :]
        self.graph.functions.append(function)
        return name


def _raise(graph: Raised, frame: _Frame) -> NodeDef:
    """Put a While in the place of a frame."""
    functions = _LoopFunctions(graph, frame)
    condition = frame.condition
    assert condition is not None
    test = functions.find([data_inputs(condition)[0]])
    backs = [v.back for v in frame.variables if v.back is not None]
    body = functions.find(
        [
            *[data_inputs(b)[0] for b in backs],
            *[f"^{c}" for b in backs for c in control_inputs(b)],
        ]
    )
    # In the body the condition is what it was: true.
    for name, node in body.items():
        if node.op == "LoopCond":
            body[name] = identity(name, node.input[0], BOOL, node)
    types = [type_of(s, graph.nodes) for s in functions.inputs]
    base = condition.name.rpartition("/")[0] or condition.name
    results = [data_inputs(b)[0] for b in backs]
    results += [f"#{i}:0" for i in range(len(results), len(functions.inputs))]
    effects = any(map(has_effects, [*test.values(), *body.values()]))
    node = NodeDef(op="While" if effects else "StatelessWhile")
    node.name = graph.node_name(base if base != condition.name else f"{base}/While")
    node.device = condition.device
    node.input.extend(functions.inputs)
    enters = [v.enter for v in frame.variables]
    enters += [n for group in frame.constants.values() for n in group]
    node.input.extend(dict.fromkeys(f"^{c}" for n in enters for c in control_inputs(n)))
    node.attr["T"].list.type.extend(types)
    node.attr["cond"].func.name = functions.function(
        f"{base}_cond", test, [data_inputs(condition)[0]], types
    )
    node.attr["body"].func.name = functions.function(f"{base}_body", body, results, types)
    parallel = max(n.attr["parallel_iterations"].i for n in enters)
    node.attr["parallel_iterations"].i = parallel or 10
    _state_shapes(graph, frame, node)
    _replace(graph, frame, node)
    return node


def _state_shapes(graph: Raised, frame: _Frame, loop: NodeDef) -> None:
    """Give a While the shapes that the file states for the variables, over all iterations."""
    sources = [v.merge.name for v in frame.variables]
    sources += [group[0].name for group in frame.constants.values()]
    stated = [stated_shape(s, graph.nodes) for s in sources]
    if any(s is not None for s in stated):
        unknown = TensorShapeProto(unknown_rank=True)
        loop.attr["output_shapes"].list.shape.extend(s or unknown for s in stated)


def _replace(graph: Raised, frame: _Frame, loop: NodeDef) -> None:
    """Take the nodes of a frame out of the graph; exits hand on the While's outputs."""
    position = {
        f"{v.switch.name}:0": i for i, v in enumerate(frame.variables) if v.switch is not None
    }
    graph.nodes[loop.name] = loop
    for node in frame.exits:
        i = position.get(_origin(data_inputs(node)[0], graph.nodes))
        if i is None:
            raise ValueError(
                f"loop '{frame.path[-1]}': the exit '{node.name}' leaves no loop variable"
            )
        graph.nodes[node.name] = identity(
            node.name, f"{loop.name}:{i}", loop.attr["T"].list.type[i], node
        )
        controls = [c for c in control_inputs(node) if c not in frame.members]
        graph.nodes[node.name].input.extend(f"^{c}" for c in controls)
    for name in frame.members:
        del graph.nodes[name]


def _origin(source: str, nodes: dict[str, NodeDef]) -> str:
    """What a source is handed on from by identities."""
    while nodes[node_of(source)].op == "Identity":
        source = data_inputs(nodes[node_of(source)])[0]
    return source
