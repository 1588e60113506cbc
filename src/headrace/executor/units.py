"""Splitting a step into units: XLA regions, and host ops that run between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from headrace.executor.bound import BoundProgram, BoundRegion, NodeCall
from headrace.executor.host import HostCall
from headrace.executor.in_place import make_region
from headrace.executor.region_options import RegionOptions
from headrace.executor.runnable import Runnable
from headrace.executor.stages import PartTables, Staging, is_large
from headrace.executor.touched import may_block
from headrace.executor.wakers import rank, waits_apart
from headrace.passes.ir import Edge, Node

#: Runs a unit of a step that nobody watches, from the table to the table, and tells if it could.
Call = HostCall | NodeCall | BoundRegion | BoundProgram


class Unit:
    """One step of the schedule: a region or one host op.

    Attributes:
        inputs, static, outputs: slots of the step's value table.
        waits: units that must have finished.
        parts: what the plan runs in its place, once it had to be split.
        call: runs it in a step that nobody watches, if it can: a plain host op or a region.
        asks: whether other tasks run bodies of its node.
    """

    __slots__ = (
        "asks",
        "call",
        "inputs",
        "label",
        "node",
        "outputs",
        "parts",
        "region",
        "static",
        "waits",
    )

    def __init__(self, region: Runnable | None, node: Node | None) -> None:
        self.region = region
        self.node = node
        self.inputs: list[int] = []
        self.static: list[int] = []
        self.outputs: list[int] = []
        self.waits: list[Unit] = []
        self.parts: list[Unit] | None = None
        self.call: Call | None = None
        self.asks = False
        self.label: str = node.name if node is not None else region.label  # type: ignore[union-attr]

    @property
    def blocks(self) -> bool:
        return self.node is not None and may_block(self.node)


class Slots:
    """Numbers the edges that cross unit borders."""

    def __init__(self) -> None:
        self.index: dict[Edge, int] = {}

    def of(self, edge: Edge) -> int:
        return self.index.setdefault(edge, len(self.index))


class UnitBuilder:
    """Builds the units of a list of nodes: nodes of one device and stage form a region."""

    def __init__(
        self,
        nodes: Sequence[Node],
        known: dict[Edge, Any],
        slots: Slots,
        options: Callable[[str], RegionOptions],
        force_host: set[Node],
        tables: PartTables,
    ) -> None:
        self.staging = Staging(nodes, known, force_host, tables)
        self.tables = tables
        self.nodes = self.staging.nodes
        self.known = known
        self.slots = slots
        self.options = options
        self.boundaries = self.staging.boundaries

    def units(self, wanted: set[Edge]) -> list[Unit]:
        """The units in an order that may run; ``wanted`` edges are kept for later users."""
        stage = self.staging.stages()
        groups: dict[Any, list[Node]] = {}
        apart = waits_apart(self.nodes, self.staging.is_host, self.tables.bodies)
        told_apart = self.tables.groups  # by partitioning, in a step over several tasks
        for node in self.nodes:
            # A host op is a unit by itself. Nodes of one device and stage are one region, unless
            # some of them would have to wait for what others do not need.
            key: Any = (stage[node], 0, "host", node)
            if not self.staging.is_host(node):
                bits = None if told_apart else apart.get(node)
                order = told_apart[node][1] if told_apart else rank(bits)
                segment = self.staging.segments.get(node)
                key = (stage[node], order, node.device, bits, segment)
            groups.setdefault(key, []).append(node)
        # One unit for each group, in the order of stages and ranks.
        unit_of: dict[Node, Unit] = {}
        users: dict[Edge, list[Node]] = {}
        for node in self.nodes:
            for edge in node.inputs:
                users.setdefault(edge, []).append(node)
        result = []
        for key in sorted(groups, key=lambda k: k[:2]):
            members = groups[key]
            unit = self._unit(members, key[2] == "host", wanted, users)
            result.append(unit)
            unit_of.update(dict.fromkeys(members, unit))
        # What each unit waits for, without those that do nothing.
        idle = {u for u in result if u.region is not None and u.region.is_idle}
        for unit in result:
            members = [unit.node] if unit.node is not None else unit.region.nodes  # type: ignore[union-attr]
            sources = {m for n in members for m, _ in n.inputs} | {
                c for n in members for c in n.control
            }
            waits = dict.fromkeys(
                unit_of[s] for s in sources if s in unit_of and unit_of[s] is not unit
            )
            # Who waits for a unit that does nothing waits for what that one waits for.
            unit.waits = list(
                dict.fromkeys(w for u in waits for w in (u.waits if u in idle else (u,)))
            )
        return [u for u in result if u not in idle]

    def _unit(
        self, members: list[Node], host: bool, wanted: set[Edge], users: dict[Edge, list[Node]]
    ) -> Unit:
        if host:
            node = members[0]
            unit = Unit(None, node)
            unit.asks = node in self.tables.bodies
            unit.inputs = [self.slots.of(e) for e in node.inputs]
            unit.outputs = [self.slots.of((node, i)) for i in range(len(node.dtypes))]
            return unit
        own = set(members)
        # Only what leaves the region: XLA keeps no other values.
        outputs = [
            (n, i)
            for n in members
            for i in range(len(n.dtypes))
            if (n, i) in wanted or any(u not in own for u in users.get((n, i), ()))
        ]
        region = make_region(members, outputs, self._inputs, self.options(members[0].device))
        unit = Unit(region, None)
        unit.inputs = [self.slots.of(e) for e in region.dynamic]
        unit.static = [self.slots.of(e) for e in region.static]
        unit.outputs = [self.slots.of(e) for e in outputs]
        return unit

    def _inputs(
        self, members: Sequence[Node], own: set[Node]
    ) -> tuple[list[Edge], list[Edge], dict[Edge, Any]]:
        """Edges from outside: those passed as arrays, those to compile for, those known already."""
        static: dict[Edge, None] = {}
        dynamic: dict[Edge, None] = {}
        known: dict[Edge, Any] = {}
        for node in members:
            for edge in node.inputs:
                if edge[0] in own:
                    continue
                if edge in self.known and not is_large(self.known[edge]):
                    known[edge] = self.known[edge]
                elif (node, edge) in self.staging.static_needs:
                    static[edge] = None  # also a shape that another stage has worked out
                else:
                    dynamic[edge] = None
        return [e for e in dynamic if e not in static], list(static), known
