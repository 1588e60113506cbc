"""Values that one If of an old graph computes and a later one uses again.

The gradient of a conditional is another one on the same predicate, and its branches use values of
the first one's branches. What is pure is computed again there. What has to happen once (random
draws, reads and updates of variables, loops) the first If gives out, in a list of one element that
is empty where the other branch ran, and the later one takes in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from headrace.graph.proto import NodeDef
from headrace.graph_files.import_contexts import Conditions, Contexts, Step, is_back
from headrace.graph_files.import_rewrite import VARIANT, Rewriting
from headrace.graph_files.import_slices import (
    INT32,
    TypeNumber,
    canonical,
    data_inputs,
    definition_of,
    node_of,
)


@dataclass
class Crossings:
    """Finds such values among the nodes of one graph or function, and hands them over.

    Attributes:
        nodes: by name; nodes that change are replaced by copies.
        conditions: of each node, the outermost first.
        phases: for each node and predicate, how many conditionals on it lie behind.
        type_of: tells the type of a source.
    """

    rewriting: Rewriting
    order: list[str]
    conditions: Mapping[str, Conditions]
    phases: Mapping[str, Mapping[str, int]]
    type_of: Callable[[str], TypeNumber]

    def hand_over(self) -> bool:
        """Give out what later conditionals use; tells whether there was anything."""
        self.once: set[str] = set()
        made: dict[str, str] = {}
        changed = False
        for name in self.order:
            if self.conditions[name] and self.happens_once(name):
                self.once.add(name)
        for name in self.order:
            node = self.rewriting.nodes[name]
            late = [s for s in node.input if self.is_late(node, node_of(s))]
            if not late:
                continue
            copied = self.rewriting.nodes[name] = NodeDef()
            copied.CopyFrom(node)
            changed = True
            del copied.input[:]
            for source in node.input:
                if source not in late:
                    copied.input.append(source)
                elif not source.startswith("^"):  # the order is kept by the values
                    source = canonical(source)
                    if source not in made:
                        made[source] = self.hand(source)
                    copied.input.append(made[source])
        return changed

    def happens_once(self, name: str) -> bool:
        """Whether a node must not be computed again, or depends on such a one."""
        node = self.rewriting.nodes[name]
        if any(self.same_phase(node, w) for w in map(node_of, data_inputs(node)) if w in self.once):
            return True
        definition = None if node.op in ("Switch", "Merge") else definition_of(node)
        if definition is None or definition.makes_handle:
            return False
        has_bodies = any(a.HasField("func") for a in node.attr.values())
        return has_bodies or not definition.effects.pure

    def phase(self, node: NodeDef, predicate: str) -> int:
        """Which conditional on ``predicate`` computes a node."""
        ends = node.op == "Merge" and predicate not in self.conditions[node.name]
        return self.phases[node.name].get(predicate, 0) - ends

    def same_phase(self, node: NodeDef, used: str) -> bool:
        predicate = next(iter(self.conditions[used]))
        return predicate in self.conditions[node.name] and self.phase(
            node, predicate
        ) == self.phases[used].get(predicate, 0)

    def is_late(self, node: NodeDef, used: str) -> bool:
        """Whether a node is computed in a later conditional than what it uses."""
        if used not in self.once:
            return False
        predicate = next(iter(self.conditions[used]))
        return self.phase(node, predicate) > self.phases[used].get(predicate, 0)

    def hand(self, source: str) -> str:
        """Give a source out of its branches and take it in again; returns the new source."""
        rewriting, base = self.rewriting, f"{node_of(source)}/saved"
        conditions = list(self.conditions[node_of(source)].items())
        dtype = self.type_of(source)
        shape = rewriting.constant(f"{base}/element_shape", [-1], INT32, scalar=True)
        empty = rewriting.list_node("EmptyTensorList", base, [shape, shape], dtype)
        empty.attr["shape_type"].type = INT32
        without = [empty.name]
        for predicate, side in conditions[:-1]:
            switch = self.token("Switch", base, [without[-1], predicate])
            without.append(f"{switch}:{side}")
        full = rewriting.list_node("TensorListPushBack", base, [empty.name, source], dtype).name
        for (predicate, side), other in zip(reversed(conditions), reversed(without), strict=True):
            other = f"{self.token('Switch', base, [other, predicate])}:{1 - side}"
            full = self.token("Merge", base, [other, full] if side else [full, other])
        for predicate, side in conditions:
            full = f"{self.token('Switch', base, [full, predicate])}:{side}"
        first = rewriting.constant(f"{base}/index", [0], INT32, scalar=True)
        return (
            f"{rewriting.list_node('TensorListGetItem', base, [full, first, shape], dtype).name}:0"
        )

    def token(self, op: str, base: str, inputs: list[str]) -> str:
        return self.rewriting.token(op, base, inputs, VARIANT).name


def split_merges(rewriting: Rewriting) -> None:
    """Make merges of values that are each under a predicate of their own merges of two branches.

    The values go through lists: the first that is not empty has the value.
    """
    merges = [n for n in rewriting.nodes.values() if n.op == "Merge"]
    contexts: Contexts | None = None
    for node in merges:
        sources = data_inputs(node)
        if any(is_back(s, rewriting.nodes) for s in sources):
            continue
        contexts = contexts or Contexts(rewriting.nodes)
        given = [contexts.of_source(s) for s in sources]
        shared = contexts.conditions[node.name]
        own = [[(p, side) for p, side in g.items() if p not in shared] for g in given]
        if all(len(o) == 1 for o in own) and len({o[0][0] for o in own}) == len(own):
            steps = contexts.of(node)
            inner = steps[max([i + 1 for i, s in enumerate(steps) if s.frame], default=0) :]
            _split(rewriting, node, [o[0] for o in own], inner)


def _split(
    rewriting: Rewriting, node: NodeDef, own: list[tuple[str, int]], around: list[Step]
) -> None:
    """Split one merge.

    Args:
        own: the predicate and its side for each value.
        around: the branches that the merge is in.
    """
    base, dtype = node.name, node.attr["T"].type
    numbers = [
        rewriting.constant(f"{base}/index", [i], INT32, scalar=True) for i in range(len(own))
    ]
    for sources, kind in ((data_inputs(node), dtype), (numbers, INT32)):
        shape = rewriting.constant(f"{base}/element_shape", [-1], INT32, scalar=True)
        empty = rewriting.list_node("EmptyTensorList", base, [shape, shape], kind)
        empty.attr["shape_type"].type = INT32
        found = empty.name
        for step in around:
            switch = rewriting.token("Switch", base, [found, step.predicate], VARIANT)
            found = f"{switch.name}:{step.side}"
        start = found
        for source, (predicate, side) in zip(sources, own, strict=True):
            switch = rewriting.token("Switch", base, [start, predicate], VARIANT)
            inputs = [f"{switch.name}:{side}", source]
            full = rewriting.list_node("TensorListPushBack", base, inputs, kind).name
            sides = [found, full] if side else [full, found]
            found = rewriting.token("Merge", base, sides, VARIANT).name
        if sources is not numbers:
            value = [found, numbers[0], shape]
    rewriting.change(node, "TensorListGetItem", value, element_dtype=dtype)
    index = rewriting.list_node("TensorListGetItem", base, [found, numbers[0], shape], INT32)
    rewriting.redirect({f"{base}:1": f"{index.name}:0"})


__all__: list[str] = []
