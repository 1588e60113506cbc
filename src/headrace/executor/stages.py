"""Which nodes may run together: what runs off XLA, and the stage of each node.

Nodes of one device and stage form a region. The stage of a node grows by one wherever a value
crosses from or to a host op, another device, or must become known before compiling; so no region
can wait for itself through another one.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from headrace.executor.evaluate import FOLD_LIMIT, flat_static
from headrace.executor.in_place import waiting_changes
from headrace.executor.resources import ResourceHandle, handle_for
from headrace.executor.touched import is_integer_view, may_block
from headrace.executor.transfers import RECV, SEND
from headrace.graph import dtypes
from headrace.graph.segments import segment_of
from headrace.graph.shapes import num_elements_static
from headrace.passes.ir import FEED, Edge, Node
from headrace.placement.cost import state_bytes
from headrace.settings import flags

#: Room between two stages of a step over several tasks, for stages that one task adds: what it
#: merges then never depends on a task that waits for it.
STAGE_GAP = 1 << 10

_RESOURCE = dtypes.resource

#: Bytes of the variables that a step changes from which on its assertions stay out of its programs:
#: a program that may fail keeps the old values, and cannot change variables in place.
_IN_PLACE = 4 << 20


@dataclass(frozen=True, eq=False)
class PartTables:
    """What partitioning has decided about the nodes of one part of a step.

    Attributes:
        groups: (stage, number) of each node: nodes of one device with the same may share a region.
        bodies: for control flow nodes whose bodies need several tasks, (function, saved tensors) ->
            the body, whose ``plan`` the step can call.
    """

    groups: Mapping[Node, tuple[int, int]] = field(default_factory=dict)
    bodies: Mapping[Node, Mapping[Any, Any]] = field(default_factory=dict)


#: Of a step that was not cut.
WHOLE = PartTables()


def known_values(nodes: Sequence[Node]) -> dict[Edge, Any]:
    """Edges whose value the graph itself tells: constants and resource handles."""
    known: dict[Edge, Any] = {}
    for node in nodes:
        if node.op_def.makes_handle:
            known[(node, 0)] = handle_for(node)
        elif node.type == "Const" and not node.control:
            known[(node, 0)] = node.attrs["value"]
        elif node.op_def.traits.hands_on in ("value", "each") and node.op_def.effects.pure:
            for i, source in enumerate(node.inputs):
                if isinstance(known.get(source), ResourceHandle):
                    known[(node, i)] = known[source]
    return known


class Staging:
    """What of a list of nodes runs off XLA, what must be known early, and each node's stage.

    Attributes:
        nodes: those that run: neither feeds nor known values.
        boundaries: (consumer, edge) where the consumer needs the edge's value while it is traced,
            and the value comes from a feed, a host op or another region.
        static_needs: all (consumer, edge) whose value is needed so, wherever it comes from.
    """

    def __init__(
        self,
        nodes: Sequence[Node],
        known: dict[Edge, Any],
        force_host: set[Node],
        tables: PartTables = WHOLE,
    ) -> None:
        self.tables = tables
        self.nodes = [n for n in nodes if (n, 0) not in known and n.op_def is not FEED]
        self.known = known
        self.force_host = force_host
        self.inside = set(self.nodes)
        #: What the program wants apart: see `graph.segments`.
        self.segments = {
            n: name for n in self.nodes if n.op is not None and (name := segment_of(n.op.attrs))
        }
        self._off_xla = self._nodes_off_xla()
        needs = StaticNeeds(self)
        self.boundaries = needs.pairs
        self.static_needs = needs.visited

    def is_host(self, node: Node) -> bool:
        return node in self._off_xla

    def may_join(self, source: Node, node: Node) -> bool:
        """Whether a node and what it takes from, neither of them off XLA, may share a region."""
        if source.device != node.device:
            return False
        segments = self.segments
        return not segments or segments.get(source) == segments.get(node)

    def _nodes_off_xla(self) -> set[Node]:
        """Host ops, nodes that turned out to need the host, and what no program can be made of:
        strings, and resources that are known only as the step runs."""
        text_variables = {
            value
            for (source, _), value in self.known.items()
            if isinstance(value, ResourceHandle) and source.attrs.get("dtype") is dtypes.string
        }

        def has_odd_handle(node: Node) -> bool:
            handles = [self.known.get(e) for e in node.inputs if e[0].dtypes[e[1]] is _RESOURCE]
            if handles and node.op_def.lower is None and _RESOURCE in node.dtypes:
                return True  # makes handles of handles
            return any(h is None or h in text_variables for h in handles)

        # An assertion in a program makes it one that may fail; see `_IN_PLACE`.
        assertions = {n for n in self.nodes if n.type == "Assert"}
        if assertions and self._bytes_written() > _IN_PLACE:
            inside: set[Node] = set()
        else:
            # Their texts are only shown, by the form on NumPy values, so texts may be constants.
            inside = {n for n in assertions if not _handles_text(n, self.known)}
        bodies = self.tables.bodies
        return {
            n
            for n in self.nodes
            if n.op_def.host is not None
            or (n in assertions and n not in inside)
            or n.op_def in (SEND, RECV)
            or n in bodies
            or n in self.force_host
            or may_block(n)
            or _is_faster_outside(n)
            or (n not in inside and _handles_text(n))
            or has_odd_handle(n)
        }

    def _bytes_written(self) -> float:
        """The size of the variables that the nodes change; what bodies change is not counted."""
        makers = {n.inputs[i][0] for n in self.nodes for i in n.op_def.effects.writes}
        return sum(state_bytes(m) for m in makers)

    def stages(self) -> dict[Node, int]:
        """The stage of each node, from 0; never before the stage that partitioning gave it."""
        stage = self._levels(set(), 0)
        # With one stage there is nothing to wait for. Parts of a step over several tasks have their
        # stages from partitioning, and others must see a change before an op of this step waits.
        if len(set(stage.values())) > 1 and not (
            self.tables.groups or any(map(may_block, self.nodes))
        ):
            late, least = waiting_changes(self.nodes, self.known, stage, self.is_host)
            if late:
                stage = self._levels(late, least)
            postpone_reads(self, stage)
        return stage

    def _levels(self, late: set[Node], least: int) -> dict[Node, int]:
        """The stage of each node; for those of ``late`` at least ``least``."""
        stage: dict[Node, int] = {}
        groups = self.tables.groups
        for node in self.nodes:
            host = self.is_host(node)
            level = groups[node][0] * STAGE_GAP if groups else 0
            if node in late:
                level = max(level, least)
            for edge in node.inputs:
                source = edge[0]
                if source in self.inside:
                    # XLA orders what a region holds: within it no stage of its own is needed.
                    joined = (
                        not host
                        and not self.is_host(source)
                        and self.may_join(source, node)
                        and (node, edge) not in self.boundaries
                    )
                    level = max(level, stage[source] + (0 if joined else 1))
            for source in node.control:
                if source in self.inside:
                    joined = not host and not self.is_host(source) and self.may_join(source, node)
                    level = max(level, stage[source] + (0 if joined else 1))
            stage[node] = level
        return stage


def postpone_reads(staging: Staging, stage: dict[Node, int]) -> None:
    """Let what is looked up in variables wait for the stage that uses it, past host ops.

    To call a program that only looks up rows and makes views takes longer than it does. What host
    ops need of such a stage is interpreted (`Region.between_hosts`), the rest joins a later one.
    It stays before host ops that do more than draw numbers, and before what changes variables.

    Args:
        stage: that of each node; changed.
    """
    # The regions as they would be, and those among them that only look up.
    groups: dict[tuple[int, str], list[Node]] = {}
    for node in staging.nodes:
        if not staging.is_host(node) and node not in staging.segments:
            groups.setdefault((stage[node], node.device), []).append(node)
    last = max(stage.values())
    found = {k: g for k, g in groups.items() if k[0] < last and all(map(_looks_up, g))}
    if not any(n.op_def.effects.reads for group in found.values() for n in group):
        return
    # A node may move up to what is noticed, and up to its first user.
    limits = [stage[n] - staging.is_host(n) for n in staging.nodes if _is_noticed(n)]
    users: dict[Node, list[tuple[Node, Edge | None]]] = {}
    for node in staging.nodes:
        for edge in node.inputs:
            users.setdefault(edge[0], []).append((node, edge))
        for source in node.control:
            users.setdefault(source, []).append((node, None))
    for (now, device), group in found.items():
        least = min((at for at in limits if at >= now - 1), default=last)
        # Backwards, so that the stage of each user is final.
        for node in reversed(group):
            latest = least
            for user, taken in users.get(node, [(node, None)]):
                apart = staging.is_host(user) or user.device != device
                apart = apart or (taken is not None and (user, taken) in staging.boundaries)
                latest = min(latest, stage[user] - apart)
            stage[node] = max(now, latest)


def _looks_up(node: Node) -> bool:
    """Whether a node looks up rows of a variable, or makes a view."""
    if node.type in ("ReadVariableOp", "ResourceGather", "ResourceGatherNd"):
        return True
    return bool(node.op_def.traits.hands_on) or is_integer_view(node)


def _is_noticed(node: Node) -> bool:
    """Whether what happens before a node may matter to others than the users of its outputs."""
    effects = node.op_def.effects
    if node.op_def.lower is not None or effects.writes:
        return True
    return not (effects.pure or effects.random or effects.reads)


def _is_faster_outside(node: Node) -> bool:
    """Whether NumPy makes the output of a node faster on a CPU: the graph tells how large it is."""
    least = node.op_def.traits.numpy_wins_from
    if least is None or flags.interpret == "never" or "/device:CPU:" not in node.device:
        return False
    return (num_elements_static(node.dims[0]) or 0) >= least


def _handles_text(node: Node, known: Container[Edge] = ()) -> bool:
    """Whether a node takes or makes strings: XLA has none, so it runs on NumPy objects.

    Args:
        known: inputs that do not count.
    """
    text = dtypes.string
    return text in node.dtypes or any(
        text is e[0].dtypes[e[1]] and e not in known for e in node.inputs
    )


def is_large(value: Any) -> bool:
    """Constants of this size are passed to programs, not built into them."""
    return isinstance(value, np.ndarray) and value.size > FOLD_LIMIT and value.dtype != object


class StaticNeeds:
    """Finds the edges whose values must be known before compiling, as ``pairs``."""

    def __init__(self, staging: Staging) -> None:
        self.staging = staging
        self.pairs: set[tuple[Node, Edge]] = set()
        wanted = [
            (node, node.inputs[i])
            for node in staging.nodes
            if not staging.is_host(node)
            for i in flat_static(node)
        ]
        self.visited: set[tuple[Node, Edge]] = set()
        while wanted:
            pair = wanted.pop()
            if pair not in self.visited:
                self.visited.add(pair)
                wanted += self._before(*pair)

    def _before(self, consumer: Node, edge: Edge) -> list[tuple[Node, Edge]]:
        """The needs that one need leads to; notes it if its value can only come from outside."""
        source = edge[0]
        if edge in self.staging.known:
            return []
        here = source in self.staging.inside and self.staging.may_join(source, consumer)
        if here and not self.staging.is_host(source):
            # The program knows the shape as it is traced, the value is not needed.
            if source.op_def.shape_only:
                return []
            # It is computed while the program is traced, if its own inputs are known then.
            if source.op_def.interpret is not None and source.op_def.effects.pure:
                return [(source, inner) for inner in source.inputs]
        self.pairs.add((consumer, edge))
        return []
