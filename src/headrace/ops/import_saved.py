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
from headrace.ops.import_contexts import Conditions
from headrace.ops.import_rewrite import VARIANT, Rewriting
from headrace.ops.import_slices import (
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
        empty = self.add("EmptyTensorList", base, [shape, shape], dtype)
        empty.attr["shape_type"].type = INT32
        without = [empty.name]
        for predicate, side in conditions[:-1]:
            switch = self.token("Switch", base, [without[-1], predicate])
            without.append(f"{switch}:{side}")
        full = self.add("TensorListPushBack", base, [empty.name, source], dtype).name
        for (predicate, side), other in zip(reversed(conditions), reversed(without), strict=True):
            other = f"{self.token('Switch', base, [other, predicate])}:{1 - side}"
            full = self.token("Merge", base, [other, full] if side else [full, other])
        for predicate, side in conditions:
            full = f"{self.token('Switch', base, [full, predicate])}:{side}"
        first = rewriting.constant(f"{base}/index", [0], INT32, scalar=True)
        return f"{self.add('TensorListGetItem', base, [full, first, shape], dtype).name}:0"

    def add(self, op: str, base: str, inputs: list[str], dtype: TypeNumber) -> NodeDef:
        node = NodeDef(name=self.rewriting.names(f"{base}/{op}"), op=op)
        node.input.extend(inputs)
        node.attr["element_dtype"].type = dtype
        self.rewriting.nodes[node.name] = node
        return node

    def token(self, op: str, base: str, inputs: list[str]) -> str:
        return self.rewriting.token(op, base, inputs, VARIANT).name


__all__: list[str] = []
