"""Splitting a step into units: XLA regions, and host ops that run between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from headrace.executor.evaluate import FOLD_LIMIT, flat_static
from headrace.executor.region import Region, RegionOptions
from headrace.executor.resources import ResourceHandle, handle_for
from headrace.graph import dtypes
from headrace.passes.ir import FEED, Edge, Node


class Unit:
    """One step of the schedule: a region or one host op.

    Attributes:
        inputs, static, outputs: slots of the step's value table.
        waits: units that must have finished.
        parts: what the plan runs in its place, once it had to be split.
    """

    __slots__ = ("inputs", "label", "node", "outputs", "parts", "region", "static", "waits")

    def __init__(self, region: Region | None, node: Node | None) -> None:
        self.region = region
        self.node = node
        self.inputs: list[int] = []
        self.static: list[int] = []
        self.outputs: list[int] = []
        self.waits: list[Unit] = []
        self.parts: list[Unit] | None = None
        self.label = node.name if node is not None else f"region of {len(region.nodes)} ops"  # type: ignore[union-attr]

    @property
    def blocks(self) -> bool:
        return self.node is not None and self.node.op_def.effects.blocks


class Slots:
    """Numbers the edges that cross unit borders."""

    def __init__(self) -> None:
        self.index: dict[Edge, int] = {}

    def of(self, edge: Edge) -> int:
        return self.index.setdefault(edge, len(self.index))


def known_values(nodes: Sequence[Node]) -> dict[Edge, Any]:
    """Edges whose value the graph itself tells: constants and resource handles."""
    known: dict[Edge, Any] = {}
    for node in nodes:
        if node.op_def.makes_handle:
            known[(node, 0)] = handle_for(node)
        elif node.type == "Const" and not node.control:
            known[(node, 0)] = node.attrs["value"]
        elif node.type in ("Identity", "IdentityN"):
            for i, source in enumerate(node.inputs):
                if isinstance(known.get(source), ResourceHandle):
                    known[(node, i)] = known[source]
    return known


class Splitter:
    """Builds the units of a list of nodes.

    Nodes of one device and stage form a region. The stage of a node grows by one wherever a value
    crosses from or to a host op, another device, or must become known before compiling; so no
    region can wait for itself through another unit.
    """

    def __init__(
        self,
        nodes: Sequence[Node],
        known: dict[Edge, Any],
        slots: Slots,
        options: Callable[[str], RegionOptions],
        force_host: set[Node],
    ) -> None:
        self.nodes = [n for n in nodes if (n, 0) not in known and n.op_def is not FEED]
        self.known = known
        self.slots = slots
        self.options = options
        self.force_host = force_host
        self.inside = set(self.nodes)
        self._off_xla = self._nodes_off_xla()
        self.boundaries = StaticNeeds(self).pairs

    def is_host(self, node: Node) -> bool:
        return node in self._off_xla

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
            return any(h is None or h in text_variables for h in handles)

        return {
            n
            for n in self.nodes
            if n.op_def.host is not None
            or n in self.force_host
            or _handles_text(n)
            or has_odd_handle(n)
        }

    def units(self, wanted: set[Edge]) -> list[Unit]:
        """The units in an order that may run; ``wanted`` edges are kept for later users."""
        stage = self._stages()
        groups: dict[Any, list[Node]] = {}
        for node in self.nodes:
            host = self.is_host(node)
            key = (stage[node], "host", node) if host else (stage[node], node.device, None)
            groups.setdefault(key, []).append(node)
        unit_of: dict[Node, Unit] = {}
        users: dict[Edge, list[Node]] = {}
        for node in self.nodes:
            for edge in node.inputs:
                users.setdefault(edge, []).append(node)
        result = []
        for key in sorted(groups, key=lambda k: k[0]):
            members = groups[key]
            unit = self._unit(members, key[1] == "host", wanted, users)
            if unit.region is not None and unit.region.is_idle:
                continue
            result.append(unit)
            unit_of.update(dict.fromkeys(members, unit))
        for unit in result:
            members = [unit.node] if unit.node is not None else unit.region.nodes  # type: ignore[union-attr]
            sources = {m for n in members for m, _ in n.inputs} | {
                c for n in members for c in n.control
            }
            unit.waits = list(
                dict.fromkeys(
                    unit_of[s] for s in sources if s in unit_of and unit_of[s] is not unit
                )
            )
        return result

    def _stages(self) -> dict[Node, int]:
        stage: dict[Node, int] = {}
        for node in self.nodes:
            host = self.is_host(node)
            level = 0
            for edge in node.inputs:
                source = edge[0]
                if source in self.inside:
                    joined = (
                        not host
                        and not self.is_host(source)
                        and source.device == node.device
                        and (node, edge) not in self.boundaries
                    )
                    level = max(level, stage[source] + (0 if joined else 1))
            for source in node.control:
                if source in self.inside:
                    joined = not host and not self.is_host(source) and source.device == node.device
                    level = max(level, stage[source] + (0 if joined else 1))
            stage[node] = level
        return stage

    def _unit(
        self, members: list[Node], host: bool, wanted: set[Edge], users: dict[Edge, list[Node]]
    ) -> Unit:
        if host:
            node = members[0]
            unit = Unit(None, node)
            unit.inputs = [self.slots.of(e) for e in node.inputs]
            unit.outputs = [self.slots.of((node, i)) for i in range(len(node.dtypes))]
            return unit
        own = set(members)
        static, dynamic, handles = self._inputs(members, own)
        outputs = [
            (n, i)
            for n in members
            for i in range(len(n.dtypes))
            if (n, i) in wanted or any(u not in own for u in users.get((n, i), ()))
        ]
        region = Region(members, dynamic, static, outputs, handles, self.options(members[0].device))
        unit = Unit(region, None)
        unit.inputs = [self.slots.of(e) for e in dynamic]
        unit.static = [self.slots.of(e) for e in static]
        unit.outputs = [self.slots.of(e) for e in outputs]
        return unit

    def _inputs(
        self, members: list[Node], own: set[Node]
    ) -> tuple[list[Edge], list[Edge], dict[Edge, Any]]:
        """Edges from outside: those to compile for, those passed as arrays, those known already."""
        static: dict[Edge, None] = {}
        dynamic: dict[Edge, None] = {}
        known: dict[Edge, Any] = {}
        for node in members:
            for edge in node.inputs:
                if edge[0] in own:
                    continue
                if edge in self.known and not is_large(self.known[edge]):
                    known[edge] = self.known[edge]
                elif (node, edge) in self.boundaries:
                    static[edge] = None
                else:
                    dynamic[edge] = None
        return list(static), [e for e in dynamic if e not in static], known


_RESOURCE = dtypes.resource


def _handles_text(node: Node) -> bool:
    """Whether a node takes or makes strings: XLA has none, so it runs on NumPy objects."""
    text = dtypes.string
    return text in node.dtypes or any(text is source.dtypes[i] for source, i in node.inputs)


def is_large(value: Any) -> bool:
    """Constants of this size are passed to programs, not built into them."""
    return isinstance(value, np.ndarray) and value.size > FOLD_LIMIT and value.dtype != object


class StaticNeeds:
    """Finds the edges whose values must be known before compiling.

    ``pairs`` holds (consumer, edge): the consumer needs the edge's value while it is traced, and
    the value comes from a feed, a host op or another region.
    """

    def __init__(self, splitter: Splitter) -> None:
        self.splitter = splitter
        self.pairs: set[tuple[Node, Edge]] = set()
        wanted = [
            (node, node.inputs[i])
            for node in splitter.nodes
            if not splitter.is_host(node)
            for i in flat_static(node)
        ]
        visited: set[tuple[Node, Edge]] = set()
        while wanted:
            pair = wanted.pop()
            if pair not in visited:
                visited.add(pair)
                wanted += self._before(*pair)

    def _before(self, consumer: Node, edge: Edge) -> list[tuple[Node, Edge]]:
        """The needs that one need leads to; notes it if its value can only come from outside."""
        source = edge[0]
        if edge in self.splitter.known:
            return []
        if source in self.splitter.inside and not self.splitter.is_host(source):
            if source.op_def.shape_only:
                return []
            if source.op_def.interpret is not None and source.op_def.effects.pure:
                return [(source, inner) for inner in source.inputs]
        self.pairs.add((consumer, edge))
        return []
