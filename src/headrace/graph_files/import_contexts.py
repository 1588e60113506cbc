"""The loops and branches around each node of an old graph file.

Loops are told by frames: a node is in those that were entered and not left on its way. Branches are
told by *conditions*: on which outputs of which predicates a node depends.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headrace.graph.proto import NodeDef
from headrace.graph_files.import_slices import canonical, data_inputs, node_of, topological

#: Names of frames, outermost first.
Path = tuple[str, ...]
#: By predicate (a source), which output of its switches: 1 is true.
Conditions = dict[str, int]


@dataclass(frozen=True)
class Step:
    """One way down towards a node: into a frame, or into a branch."""

    frame: Path = ()
    predicate: str = ""
    side: int = 0


def is_back(source: str, nodes: Mapping[str, NodeDef]) -> bool:
    """Whether a source is what a loop's last iteration left."""
    found = nodes.get(node_of(source))
    return found is not None and found.op == "NextIteration"


def forward_edges(nodes: Mapping[str, NodeDef]) -> dict[str, NodeDef]:
    """The nodes without the edges back to the next iteration."""
    forward = {}
    for name, node in nodes.items():
        forward[name] = node
        if node.op == "Merge" and any(is_back(s, nodes) for s in node.input):
            forward[name] = NodeDef(name=name, op=node.op)
            forward[name].input.extend(s for s in node.input if not is_back(s, nodes))
    return forward


def frame_paths(nodes: Mapping[str, NodeDef]) -> dict[str, Path]:
    """For each node the frames it is in.

    Raises:
        ValueError: if the graph has a cycle that is no loop.
    """
    forward = forward_edges(nodes)
    paths: dict[str, Path] = {}
    for name in topological(forward):
        node = nodes[name]
        path: Path = ()
        for source in forward[name].input:
            found = paths.get(node_of(source), ())
            path = max(path, found, key=len)
        if node.op == "Enter":
            path = (*path, node.attr["frame_name"].s.decode())
        paths[name] = path[:-1] if node.op == "Exit" else path
    return paths


def predicate_of(switch: NodeDef, nodes: Mapping[str, NodeDef]) -> str:
    """The source that a switch asks, the same for all that hand it on."""
    return _handed_on(data_inputs(switch)[1], nodes)


def _handed_on(source: str, nodes: Mapping[str, NodeDef]) -> str:
    """What identities hand on as ``source``."""
    while (node := nodes.get(node_of(source))) is not None and node.op == "Identity":
        source = data_inputs(node)[0]
    return source


class Contexts:
    """The contexts of the nodes of a graph with loops.

    Attributes:
        loop_conditions: the LoopCond of each frame.
    """

    def __init__(self, nodes: Mapping[str, NodeDef]) -> None:
        self.nodes = nodes
        self.paths = frame_paths(nodes)
        self.loop_conditions = {
            self.paths[n.name]: n.name for n in nodes.values() if n.op == "LoopCond"
        }
        self.conditions: dict[str, Conditions] = {}
        forward = forward_edges(nodes)
        for name in topological(forward):
            self.conditions[name] = self._of_node(forward[name])

    def _of_node(self, node: NodeDef) -> Conditions:
        given = [self.of_source(s) for s in node.input]
        if node.op == "Merge":
            shared = given[0] if given else {}
            if len(self.nodes[node.name].input) == 1 and shared:  # it ends the innermost
                last = max(shared, key=lambda p: len(self.of_source(p)))
                return {p: s for p, s in shared.items() if p != last}
            return {p: s for p, s in shared.items() if all(g.get(p) == s for g in given)}
        found: Conditions = {}
        for conditions in given:
            found |= conditions
        if node.op == "Exit":
            path = self.paths[node.name]
            return {p: s for p, s in found.items() if len(self._frame(p)) <= len(path)}
        return found

    def of_source(self, source: str) -> Conditions:
        """The conditions under which a source has a value."""
        if source.startswith("^"):
            return self.conditions.get(source[1:], {})
        name, _, index = canonical(source).partition(":")
        base = self.conditions.get(name, {})
        node = self.nodes.get(name)
        if node is None or node.op != "Switch":
            return base
        predicate = predicate_of(node, self.nodes)
        if self._is_loop_condition(predicate):
            return {**base, **self.conditions[node_of(predicate)]}
        return base if self.known_side(node) is not None else {**base, predicate: int(index)}

    def _is_loop_condition(self, source: str) -> bool:
        asked = self.nodes.get(node_of(source))
        return asked is not None and asked.op == "LoopCond"

    def known_side(self, switch: NodeDef) -> int | None:
        """The output of a switch that has the value whenever its data is there; None if either."""
        predicate = predicate_of(switch, self.nodes)
        given = self.of_source(data_inputs(switch)[0])
        if predicate in given:
            return given[predicate]
        path = self.paths[switch.name]
        while path:
            asked = self.nodes.get(node_of(predicate))
            if asked is None or asked.op != "Enter" or not asked.attr["is_constant"].b:
                return None
            predicate = _handed_on(data_inputs(asked)[0], self.nodes)
            known = self.conditions.get(self.loop_conditions.get(path, ""), {})
            if predicate in known:
                return known[predicate]
            path = path[:-1]
        return None

    def _frame(self, source: str) -> Path:
        return self.paths.get(node_of(source), ())

    def of(self, node: NodeDef) -> list[Step]:
        """The loops and branches around a node, outermost first."""
        path, conditions = self.paths[node.name], dict(self.conditions[node.name])
        for depth in range(1, len(path) + 1):  # a loop runs under those of its condition
            conditions |= self.conditions.get(self.loop_conditions.get(path[:depth], ""), {})
        steps = []
        for depth in range(len(path) + 1):
            here = [p for p in conditions if self._frame(p) == path[:depth]]
            here.sort(key=lambda p: len(self.of_source(p)))
            steps += [Step(predicate=p, side=conditions[p]) for p in here]
            if depth < len(path):
                steps.append(Step(frame=path[: depth + 1]))
        return steps


def ask_predicates(nodes: dict[str, NodeDef]) -> None:
    """Let switches that ask which value a Merge took ask its predicate.

    The gradient of a Merge that is in no conditional is made so.
    """
    asking = []
    for node in nodes.values():
        asked = nodes.get(node_of(node.input[1])) if node.op == "Switch" else None
        if asked is not None and asked.op == "Equal":
            asking.append((node, asked))
    contexts = Contexts(nodes if asking else {})
    swapped: set[str] = set()
    for node, asked in asking:
        taken, position = data_inputs(asked)
        merge, constant = nodes[node_of(taken)], nodes[node_of(position)]
        if merge.op != "Merge" or not taken.endswith(":1") or constant.op != "Const":
            continue
        tensor = constant.attr["value"].tensor
        index = next(iter(tensor.int_val or tensor.tensor_content), 0)
        given = [contexts.of_source(s) for s in data_inputs(merge)]
        if not 0 <= index < len(given):
            continue
        shared = contexts.conditions[merge.name]
        differ = [p for p in given[index] if p not in shared]
        if len(differ) == 1:
            node.input[1] = differ[0]
            if given[index][differ[0]] == 0:
                swapped.add(node.name)
    for node in nodes.values():
        for i, source in enumerate(node.input):
            if not source.startswith("^") and node_of(source) in swapped:
                node.input[i] = f"{node_of(source)}:{1 - int(canonical(source)[-1])}"


def drop_known_switches(nodes: dict[str, NodeDef]) -> None:
    """Take out switches that ask what is known wherever they are reached.

    The gradient of a loop in a branch asks in each iteration whether the branch was taken.
    """
    contexts = Contexts(nodes)
    loops = {f"{name}:0" for name in contexts.loop_conditions.values()}
    changes: dict[str, str] = {}
    for node in list(nodes.values()):
        if node.op == "Switch" and predicate_of(node, nodes) not in loops:
            side = contexts.known_side(node)
            if side is not None:
                changes[f"{node.name}:{side}"] = data_inputs(node)[0]
    for node in nodes.values():
        for i, source in enumerate(node.input):
            while not source.startswith("^") and canonical(source) in changes:
                source = node.input[i] = changes[canonical(source)]


__all__: list[str] = []
