"""Branches of old graph files: Switch and Merge become If.

A Switch hands its data on as one of two outputs; what a branch computes depends on one of them, and
a Merge takes the value of the branch that ran. A node's *conditions* say on which outputs of which
predicates it depends. The Merge of two values that differ in one condition ends a conditional:
its branches are what these values need back to the switches.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from headrace.graph.proto import NodeDef
from headrace.graph_files.import_contexts import Conditions, predicate_of
from headrace.graph_files.import_rewrite import Rewriting
from headrace.graph_files.import_saved import Crossings
from headrace.graph_files.import_slices import (
    INT32,
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
    to_function,
    topological,
    type_of,
    walk_back,
)

#: Repeating these costs nothing.
_TRIVIAL = frozenset({"Const", "Identity", "Switch", "Merge"})


@dataclass
class _Conditional:
    """What one If will be: the merges that end it. What they do not need never runs."""

    predicate: str
    merges: list[NodeDef] = field(default_factory=list)


def raise_branches(
    graph: Raised, nodes: Mapping[str, NodeDef], around: GraphSlice | None = None
) -> dict[str, NodeDef]:
    """``nodes`` with If ops in the place of switches and merges.

    Args:
        graph: gets the functions of the branches; its nodes tell types.
        nodes: a graph without loops, or the part of one that becomes a function.
        around: the arguments of that function.

    Raises:
        ValueError: if conditionals do not have the form that `tf.cond` gave them.
    """
    if not any(n.op in ("Switch", "Merge") for n in nodes.values()):
        return dict(nodes)
    return _Level(graph, dict(nodes), around or GraphSlice()).raise_conditionals()


class _Level:
    """The nodes of one graph or function; conditionals inside branches are levels of their own."""

    def __init__(self, graph: Raised, nodes: dict[str, NodeDef], around: GraphSlice) -> None:
        self.graph = graph
        self.nodes = nodes
        self.around = around
        self.in_function = bool(around.args)
        #: What has become functions. A switch of the graph itself stays for those that fetch it.
        self.cut_out = ("Switch", "Merge") if self.in_function else ("Merge",)
        self.order: list[str] = []
        self.conditions: dict[str, Conditions] = {}
        #: For each node and predicate, how many conditionals on it lie behind.
        self.phases: dict[str, dict[str, int]] = {}
        #: The side of each predicate that each input of a Merge comes from.
        self.found: dict[tuple[str, int], _Conditional] = {}
        self.sides: dict[str, dict[int, int]] = {}

    # -- what depends on what -------------------------------------------------------------------

    def predicate(self, switch: NodeDef) -> str:
        return predicate_of(switch, self.nodes)

    def of_source(self, source: str) -> Conditions:
        """The conditions under which a source has a value."""
        name, _, index = canonical(source).partition(":")
        base = self.conditions.get(name, {})
        node = self.nodes.get(name)
        if node is not None and node.op == "Switch":
            return {**base, self.predicate(node): int(index)}
        return base

    def analyse(self) -> None:
        """Find the conditions, and the conditionals that merges end.

        Raises:
            ValueError: if nodes need what is never there together.
        """
        self.order = topological(self.nodes)
        self.conditions, self.phases, self.found, self.sides = {}, {}, {}, {}
        for name in self.order:
            node = self.nodes[name]
            if node.op == "Merge":
                self.analyse_merge(node)
                continue
            conditions: Conditions = {}
            phases: dict[str, int] = {}
            for source in node.input:
                plain = source.removeprefix("^")
                given = (
                    self.conditions.get(plain, {})
                    if source.startswith("^")
                    else self.of_source(source)
                )
                for predicate, side in given.items():
                    if conditions.setdefault(predicate, side) != side:
                        raise ValueError(
                            f"node '{name}' needs both branches of a conditional on '{predicate}'"
                        )
                _raise_to(phases, self.phases.get(node_of(source), {}))
            if len(conditions) > 1:  # the outermost first
                ordered = sorted(conditions, key=lambda p: len(self.of_source(p)))
                conditions = {p: conditions[p] for p in ordered}
            self.conditions[name] = conditions
            self.phases[name] = phases

    def analyse_merge(self, node: NodeDef) -> None:
        sources = data_inputs(node)
        given = [self.of_source(s) for s in sources]
        if len(sources) != 2:
            raise ValueError(f"'{node.name}' merges {len(sources)} values, not 2")
        first, second = given
        differ = [p for p in first if p in second and first[p] != second[p]]
        if not differ:  # a value that is always there stands for that of the other branch
            differ = [p for p in {**first, **second} if (p in first) != (p in second)]
        if len(differ) != 1:
            raise ValueError(
                f"'{node.name}' merges values that are not the two branches of one conditional"
            )
        (predicate,) = differ
        side = first[predicate] if predicate in first else 1 - second[predicate]
        self.sides[node.name] = {side: 0, 1 - side: 1}
        self.conditions[node.name] = {
            p: side for p, side in first.items() if p != predicate and second.get(p) == side
        }
        phases: dict[str, int] = {}
        for source in node.input:
            _raise_to(phases, self.phases.get(node_of(source), {}))
        phase = phases.get(predicate, 0)
        if not self.conditions[node.name]:
            self.conditional(predicate, phase).merges.append(node)
        phases[predicate] = phase + 1
        self.phases[node.name] = phases

    def conditional(self, predicate: str, phase: int) -> _Conditional:
        return self.found.setdefault((predicate, phase), _Conditional(predicate))

    # -- cutting --------------------------------------------------------------------------------

    def raise_conditionals(self) -> dict[str, NodeDef]:
        self.analyse()
        rewriting = Rewriting(self.nodes, self.graph.node_name)
        while Crossings(
            rewriting, self.order, self.conditions, self.phases, self.type_of
        ).hand_over():
            self.analyse()
        self.find_waits()
        self.second_outputs = {s for n in self.nodes.values() for s in n.input if s.endswith(":1")}
        groups = [g for conditional in self.found.values() for g in self.groups(conditional)]
        made = [node for group in groups for node in self.cut(group)]
        kept = {
            name: node
            for name, node in self.nodes.items()
            if not self.conditions[name] and node.op not in self.cut_out
        }
        present = {*kept, *[n.name for n in made]}
        for node in kept.values():
            for source in [s for s in node.input if node_of(s) in self.nodes]:
                if node_of(source) in present:
                    continue
                if not source.startswith("^"):
                    raise ValueError(f"node '{node.name}' uses '{source}', a value of one branch")
                node.input.remove(source)
        return {**kept, **{node.name: node for node in made}}

    def groups(self, conditional: _Conditional) -> list[_Conditional]:
        """The parts of a conditional that share no work: a step may need one and not another.

        What a function does is all needed, so there one If serves them.
        """
        predicate = conditional.predicate
        parts = [_Conditional(predicate, [m]) for m in conditional.merges]
        if self.in_function or len(parts) < 2:
            return [conditional]
        found: list[tuple[_Conditional, set[str]]] = []
        for part in parts:
            branches = [_Branch(self, part, side) for side in (0, 1)]
            work = {n for b in branches for n in b.nodes if b.nodes[n].op not in _TRIVIAL}
            sharing = [f for f in found if not work.isdisjoint(f[1])]
            for other in sharing:
                found.remove(other)
            merges = [m for f in sharing for m in f[0].merges]
            whole = _Conditional(predicate, [*merges, *part.merges])
            found.append((whole, work.union(*[f[1] for f in sharing])))
        return [f[0] for f in found]

    def outermost(self, conditions: Conditions) -> str:
        """The predicate of the conditional around the others."""
        return next(p for p in conditions if not self.of_source(p))

    def cut(self, conditional: _Conditional) -> list[NodeDef]:
        """The If of a conditional and the nodes that hand on its outputs."""
        branches = [_Branch(self, conditional, side) for side in (0, 1)]
        args = {s: self.type_of(s) for branch in reversed(branches) for s in branch.args.values()}
        merges = conditional.merges
        types = [self.type_of(data_inputs(m)[0]) for m in merges]
        first = merges[0].name
        base = first.rpartition("/")[0] or f"{first}/If"
        effects = any(has_effects(n) for b in branches for n in b.nodes.values())
        node = NodeDef(op="If" if effects else "StatelessIf", name=self.graph.node_name(base))
        node.input.append(conditional.predicate)
        node.input.extend(args)
        after = [*self.waits.get(conditional.predicate, ()), *branches[0].after, *branches[1].after]
        node.input.extend(f"^{c}" for c in dict.fromkeys(after))
        node.attr["Tcond"].type = self.type_of(conditional.predicate)
        node.attr["Tin"].list.type.extend(args.values())
        chosen = [m for m in merges if self.index_is_used(m)]
        node.attr["Tout"].list.type.extend([*types, *[INT32] * len(chosen)])
        node.attr["else_branch"].func.name = branches[0].function(f"{base}_false", args, chosen)
        node.attr["then_branch"].func.name = branches[1].function(f"{base}_true", args, chosen)
        handed = []
        for i, (merge, dtype) in enumerate(zip(merges, types, strict=True)):
            new = identity(merge.name, f"{node.name}:{i}", dtype, merge)
            if merge in chosen:
                new.op = "IdentityN"
                new.input.append(f"{node.name}:{len(merges) + chosen.index(merge)}")
                new.attr.clear()
                new.attr["T"].list.type.extend([dtype, INT32])
            handed.append(new)
        return [node, *handed]

    def find_waits(self) -> None:
        """What those that hand predicates on to switches wait for."""
        self.waits: dict[str, list[str]] = {}
        for node in self.nodes.values():
            source = data_inputs(node)[1] if node.op == "Switch" else ""
            predicate = self.predicate(node) if source else ""
            while source != predicate:
                handing = self.nodes[node_of(source)]
                outside = [
                    c for c in control_inputs(handing) if not self.conditions.get(c, {"": 0})
                ]
                self.waits.setdefault(predicate, []).extend(outside)
                source = data_inputs(handing)[0]

    def index_is_used(self, merge: NodeDef) -> bool:
        """Whether something asks which input a Merge took; in a graph a fetch may."""
        return not self.in_function or f"{merge.name}:1" in self.second_outputs

    def type_of(self, source: str) -> TypeNumber:
        if source in self.around.types:
            return self.around.types[source]
        return type_of(source, self.nodes)


class _Branch:
    """One branch of a conditional.

    Attributes:
        nodes: what is inside.
        args: for each source that comes from outside, as the nodes name it, what the If takes.
        after: nodes outside that the branch waits for.
    """

    def __init__(self, level: _Level, conditional: _Conditional, side: int) -> None:
        self.level = level
        self.conditional = conditional
        self.side = side
        self.args: dict[str, str] = {}
        self.after: list[str] = []
        self.results = [
            canonical(data_inputs(m)[level.sides[m.name][side]]) for m in conditional.merges
        ]
        self.nodes = walk_back(self.results, level.nodes, self.stop)

    def stop(self, source: str) -> bool:
        level, predicate = self.level, self.conditional.predicate
        name, _, index = canonical(source.removeprefix("^")).partition(":")
        node = level.nodes.get(name)
        is_switch = node is not None and node.op == "Switch" and level.predicate(node) == predicate
        if node is not None and is_switch:
            self.after += [c for c in control_inputs(node) if not level.conditions.get(c, {"": 0})]
        if source.startswith("^"):
            outside = node is None or predicate not in level.conditions[name]
            if outside and not is_switch and node is not None and node.op != "Merge":
                self.after.append(name)
            return outside or is_switch
        if node is not None and is_switch:
            if int(index) != self.side:
                raise ValueError(f"'{source}' is used in the branch that has no value for it")
            self.args[source] = data_inputs(node)[0]
            return True
        if node is not None and _is_small_constant(node):
            return False
        if node is None or predicate not in level.conditions[name] or makes_state(node):
            self.args[source] = source
            return True
        return False

    def function(self, name: str, args: Mapping[str, TypeNumber], chosen: list[NodeDef]) -> str:
        """Make the branch a function of ``args``; returns its name.

        Args:
            chosen: merges of which also the index of the input taken is a result.
        """
        graph = self.level.graph
        part = GraphSlice()
        for source, dtype in args.items():
            part.add_arg(source, dtype)
        for alias, source in self.args.items():
            part.args[alias] = part.args[source]
            part.types[alias] = args[source]
        known = {**self.level.nodes, **self.nodes}
        part.nodes = raise_branches(graph, self.nodes, part)
        part.outputs = list(self.results)
        for merge in chosen:
            index = self.level.sides[merge.name][self.side]
            constant = _int_constant(graph.node_name(f"{merge.name}/value_index"), index)
            part.nodes[constant.name] = constant
            part.outputs.append(f"{constant.name}:0")
        name = graph.function_name(name)
        function = to_function(name, part, {**known, **part.nodes})
        # Other names for an argument are no arguments of their own.
        del function.signature.input_arg[len(args) :]
        graph.functions.append(function)
        return name


def _raise_to(phases: dict[str, int], others: Mapping[str, int]) -> None:
    for predicate, phase in others.items():
        if phase > phases.get(predicate, 0):
            phases[predicate] = phase


def _is_small_constant(node: NodeDef) -> bool:
    """Whether a node is better repeated in a function than handed to it."""
    return node.op == "Const" and not node.input and node.ByteSize() < 1000


def _int_constant(name: str, value: int) -> NodeDef:
    node = NodeDef(name=name, op="Const")
    node.attr["dtype"].type = INT32
    node.attr["value"].tensor.dtype = INT32
    node.attr["value"].tensor.tensor_shape.SetInParent()
    node.attr["value"].tensor.int_val.append(value)
    return node
