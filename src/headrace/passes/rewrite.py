"""Rules of rewriting: a pattern of nodes and what to put in its place.

A pattern names the op types of a small tree; a rule's function gets what the pattern's variables
matched and returns the new edge, or None to leave things as they are. Invariants that the driver
keeps: the users, fetches and control edges of a replaced node move to its replacement, and only
nodes without effects are replaced.

In: a step graph and rules. Out: how often a rule has changed it.

    >>> from headrace.passes.ir import build_step
    >>> with tf.Graph().as_default():
    ...     x = tf.placeholder(tf.float32, [2], name="x")
    ...     step = build_step([tf.negative(tf.negative(x, name="n"), name="y")], [x], [])
    >>> twice = Rule("-(-x) = x", op("Neg", op("Neg", Var("x"))), lambda _, node, found: found["x"])
    >>> Rewriter(step).apply(RuleSet([twice])), step.nodes
    (1, [<x:0 = _Feed()>])
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headrace.graph import wire_precision
from headrace.ops.core.registry import get_op_def
from headrace.passes.ir import Edge, Node, StepGraph
from headrace.settings import flags


@dataclass(frozen=True)
class Var:
    """Matches any edge and gives it a name; the same name twice must match the same edge."""

    name: str


@dataclass(frozen=True)
class Scalar:
    """Matches a constant all of whose elements equal ``value``; ``name`` gives its edge."""

    value: float
    name: str = ""


@dataclass(frozen=True)
class Match:
    """Matches a node of one of ``types`` whose inputs match ``inputs``; ``name`` gives its edge."""

    types: tuple[str, ...]
    inputs: tuple[Any, ...]
    name: str = ""
    commutes: bool = False


def op(types: str, *inputs: Any, name: str = "", commutes: bool = False) -> Match:
    """A pattern: ``op("Log", op("Softmax", Var("x")))``; ``types`` may be ``"Add|AddV2"``."""
    return Match(tuple(types.split("|")), inputs, name, commutes)


Bindings = dict[str, Edge]


@dataclass(frozen=True)
class Rule:
    """``algebra`` says what the rule does, as mathematics."""

    algebra: str
    pattern: Match
    build: Callable[[Rewriter, Node, Bindings], Edge | None]


class RuleSet(tuple[Rule, ...]):
    """Rules that are applied together.

    Attributes:
        by_type: the rules for each op type that one of them replaces.
    """

    by_type: Mapping[str, Sequence[Rule]]

    def __new__(cls, rules: Iterable[Rule]) -> RuleSet:
        made = super().__new__(cls, rules)
        by_type: dict[str, list[Rule]] = {}
        for rule in made:
            for name in rule.pattern.types:
                by_type.setdefault(name, []).append(rule)
        made.by_type = by_type
        return made


def match(pattern: Any, edge: Edge, found: Bindings, root: bool = False) -> bool:
    """Whether ``edge`` matches; fills ``found``.

    Nodes inside a pattern may get lost, and what they wait for with them: only its ``root`` may
    have control edges.
    """
    if isinstance(pattern, Var):
        return found.setdefault(pattern.name, edge) == edge
    node, index = edge
    if node.control and not root:
        return False
    if isinstance(pattern, Scalar):
        if not _is_scalar(node, pattern.value):
            return False
        return not pattern.name or found.setdefault(pattern.name, edge) == edge
    if node.op_def.name not in pattern.types or index != 0 or len(node.dtypes) != 1:
        return False
    if len(node.inputs) != len(pattern.inputs):
        return False
    if pattern.name and found.setdefault(pattern.name, edge) != edge:
        return False
    # Each order starts from what was bound before: a failed attempt leaves no bindings.
    orders = [pattern.inputs]
    if pattern.commutes:
        orders.append(pattern.inputs[::-1])
    for inputs in orders:
        attempt = dict(found)
        if all(match(p, e, attempt) for p, e in zip(inputs, node.inputs, strict=True)):
            found.update(attempt)
            return True
    return False


def _is_scalar(node: Node, value: float) -> bool:
    if node.type != "Const":
        return False
    array = node.attrs["value"]
    return bool(array.dtype != object and array.size and np.all(array == value))


class Rewriter:
    """Applies rules to a step graph until none fits."""

    #: A rule set that does not settle within this many rounds is a defect.
    MAX_ROUNDS = 20

    def __init__(self, step: StepGraph) -> None:
        self.step = step
        self.changes = 0
        self._fresh: list[Node] = []

    def make(
        self,
        type_name: str,
        inputs: Sequence[Edge],
        like: Node,
        attrs: dict[str, Any] | None = None,
    ) -> Edge:
        """A new node in the place of ``like``: same output type, device and user's line."""
        definition = get_op_def(type_name)
        # Defaults, then what both ops have in common, then what the rule says.
        full = {a.name: a.default for a in definition.attrs.values() if a.has_default}
        full.update({k: v for k, v in like.attrs.items() if k in definition.attrs})
        full.update(attrs or {})
        node = Node(definition, like.name, list(inputs), full, like.dtypes, like.dims, like.op)
        node.device = like.device
        node.colocation = like.colocation
        self._fresh.append(node)
        return (node, 0)

    def apply(self, rules: RuleSet) -> int:
        """Apply ``rules`` everywhere; returns how many times one fitted."""
        for _ in range(self.MAX_ROUNDS):
            if not self._round(rules.by_type):
                return self.changes
        raise AssertionError(f"Rewrite rules do not settle: {[r.algebra for r in rules]}")

    def _round(self, by_type: Mapping[str, Sequence[Rule]]) -> int:
        mapping: dict[Edge, Edge] = {}
        replaced: dict[Node, Node] = {}
        for node in self.step.nodes:
            rules = by_type.get(node.op_def.name)
            if rules and node.op_def.effects.pure:
                edge = self._apply(rules, node)
                if edge is not None and edge[0] is not node and self._may_take(edge[0], node):
                    if edge[0] in self._fresh:
                        edge[0].attrs = wire_precision.carry(node.attrs, edge[0].attrs)
                    mapping[(node, 0)] = edge
                    replaced[node] = edge[0]
        if mapping:
            self._substitute(mapping, replaced)
        self.changes += len(mapping)
        return len(mapping)

    def _may_take(self, new: Node, old: Node) -> bool:
        """Whether ``new`` may stand for ``old``: what ``old`` waits for must not become a matter
        of the other users of ``new``, or of what it waits for itself; nor may it travel to other
        tasks in another precision."""
        if new in self._fresh:
            return True
        return not old.control and wire_precision.same(new.attrs, old.attrs)

    def _apply(self, rules: Sequence[Rule], node: Node) -> Edge | None:
        for rule in rules:
            found: Bindings = {}
            if match(rule.pattern, (node, 0), found, root=True):
                edge = rule.build(self, node, found)
                if edge is not None:
                    if flags.dump_passes:
                        print(f"{rule.algebra}: {node!r} -> {edge[0]!r}")
                    return edge
        return None

    def _substitute(self, mapping: dict[Edge, Edge], replaced: dict[Node, Node]) -> None:
        self.step.nodes.extend(self._fresh)
        self._fresh = []
        self.step.replace(mapping)
        for old, new in replaced.items():
            # What waited for the old node, and what it waited for, now concerns the new one.
            new.control.extend(c for c in old.control if c not in new.control and c is not new)
        for node in self.step.nodes:
            if node.control:
                node.control = list(dict.fromkeys(_final(c, replaced) for c in node.control))
        self.step.targets = list(dict.fromkeys(_final(t, replaced) for t in self.step.targets))
        self.step.prune()


def _final(node: Node, replaced: dict[Node, Node]) -> Node:
    while node in replaced:
        node = replaced[node]
    return node


def is_constant(edge: Edge) -> bool:
    """Whether nothing is lost with the edge: a constant that waits for nothing."""
    return edge[0].type == "Const" and not edge[0].control


def keeps_shape(node: Node, edge: Edge) -> bool:
    """Whether ``edge`` certainly has the shape and type of the node's output."""
    source, index = edge
    dims = node.dims[0]
    return (
        dims is not None
        and None not in dims
        and source.dims[index] == dims
        and source.dtypes[index] is node.dtypes[0]
        and source.device == node.device
    )
