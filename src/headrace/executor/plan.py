"""Plans: everything decided for one kind of step, ready to run again and again."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import jax
import numpy as np

from headrace.errors import INTERNAL, OpError
from headrace.executor.activity import note_step
from headrace.executor.ahead import compile_ahead
from headrace.executor.bound import BoundProgram, BoundRegion, bound_call, node_call
from headrace.executor.claims import held
from headrace.executor.evaluate import NeedsHost, Values
from headrace.executor.host import HostCall, HostRunner, is_plain_host_op
from headrace.executor.interrupts import Watch, is_ready, wait_until_ready
from headrace.executor.region_options import RegionOptions
from headrace.executor.resources import ResourceHandle, ResourceStore, StateKey, Transaction
from headrace.executor.stages import WHOLE, PartTables, is_large, known_values
from headrace.executor.step_context import StepContext
from headrace.executor.stepping import Driver, Flow, StepRun
from headrace.executor.touched import touched_by
from headrace.executor.transfers import SEND
from headrace.executor.units import Call, Slots, Unit, UnitBuilder
from headrace.graph.recursion import levels_of, room_for
from headrace.graph.shapes import static_bytes
from headrace.ops.control import tensor_list_kernels as lists
from headrace.passes.ir import Edge, Node, StepGraph

#: Bytes of a value that is let go of as early as it can be; of one that is not copied for who
#: fetches it, if nobody else has it.
_MUCH, WORTH_TAKING = 1 << 20, 1 << 18


class Schedule(NamedTuple):
    """What a step follows. Never changed: a plan that splits a unit makes a new schedule.

    Attributes:
        units: in an order that may run.
        template: the table of values that every step starts from.
        transactional: whether writes wait for the end of the step.
        direct: a call for each unit, where they can follow each other without more ado, else None.
        own: positions of the large fetches that one unit makes and no other takes: nobody else
            has what it makes, unless it keeps it itself.
    """

    units: list[Unit]
    template: list[Any]
    transactional: bool
    direct: list[Call] | None
    own: frozenset[int]


class LocalPlan:
    """The schedule of one step graph, and how to run it.

    A step fills a table of values: feeds and constants first, then what each unit puts out.

    Args:
        step: placed and rewritten.
        options: how the regions of a device are made.
        tables: for the part of one task in a step over several, what partitioning decided.
        describe: how the step came to be, as text.
    """

    def __init__(
        self,
        step: StepGraph,
        store: ResourceStore,
        options: Callable[[str], RegionOptions],
        host: HostRunner,
        tables: PartTables | None = None,
        describe: Callable[[], str] | None = None,
    ) -> None:
        self.step = step
        self.store = store
        graphs = {node.op.graph for node in step.nodes if node.op is not None}
        self._levels = max(map(levels_of, graphs), default=0)
        self.host = host
        self._options = options
        self._force_host: set[Node] = set()
        self._tables = WHOLE if tables is None else tables
        self._describe = self.describe_units if describe is None else describe
        self._slots = Slots()
        self._known = known_values(step.nodes)
        # Some resources come into being with the handle, before any op uses them.
        for node in step.nodes:
            if node.op_def.provide is not None:
                node.op_def.provide(store, self._known[(node, 0)], node)
        self._feed_slots = [self._slots.of((f, 0)) for f in step.feeds]
        units = self._unit_builder(step.nodes).units(set(step.fetches))
        self._fetch_slots = [self._slots.of(e) for e in step.fetches]
        self._blocks = any(u.blocks for u in units)
        #: Whether units run as events come: they wait for other tasks, or for each other.
        self.is_stepped = tables is not None or (self._blocks and not _in_line(units))
        #: Large constants, which programs share.
        self._on_device: dict[Edge, Any] = {}
        self._schedule = self._scheduled(units)
        if self.is_stepped:
            self.flow = Flow(units, self._passing())

    def _passing(self) -> frozenset[int]:
        """The slots of large values that are neither fetched nor known."""
        kept = set(self._fetch_slots)
        return frozenset(
            slot
            for edge, slot in self._slots.index.items()
            if edge not in self._known and slot not in kept and _may_have(_MUCH, edge)
        )

    @property
    def _writes(self) -> bool:
        """Whether the programs of a step change variables."""
        written = (k for u in self.units if u.region is not None for k in u.region.written)
        return any(isinstance(k, ResourceHandle) for k in written)

    @cached_property
    def _touched(self) -> list[StateKey]:
        """All state that the step may touch."""
        return touched_by(self.step.nodes)

    @property
    def units(self) -> list[Unit]:
        return self._schedule.units

    @property
    def own(self) -> frozenset[int]:
        """Positions of the fetched values that only who fetches them has."""
        return self._schedule.own

    def _unit_builder(self, nodes: Sequence[Node]) -> UnitBuilder:
        return UnitBuilder(
            nodes, self._known, self._slots, self._options, self._force_host, self._tables
        )

    def _scheduled(self, units: list[Unit]) -> Schedule:
        template: list[Any] = [None] * len(self._slots.index)
        # The table that each step copies: the values that the graph itself tells.
        for edge, slot in self._slots.index.items():
            if edge in self._known:
                value = self._known[edge]
                if is_large(value):
                    value = self._on_device.get(edge)
                    if value is None:
                        value = self._on_device[edge] = self.host.to_device(self._known[edge])
                template[slot] = value
        for unit in units:
            if unit.node is not None and is_plain_host_op(unit.node):
                unit.call = HostCall(self.host, unit.node, self.store, unit.inputs, unit.outputs)
            elif unit.node is not None:
                unit.call = node_call(unit.node, unit.inputs, unit.outputs)
        transactional = self._keep_old_values(units)
        for unit in units:
            if unit.region is not None:
                unit.call = bound_call(unit.region, self.store, unit.inputs, unit.outputs)
        return Schedule(
            units,
            template,
            transactional,
            self._direct(units, template, transactional),
            self._own(units),
        )

    def _own(self, units: list[Unit]) -> frozenset[int]:
        taken = {slot for u in units for slot in (*u.inputs, *u.static)}
        made = {slot for u in units for slot in u.outputs} - taken
        slots = self._fetch_slots
        return frozenset(
            i
            for i, (slot, edge) in enumerate(zip(slots, self.step.fetches, strict=True))
            if slot in made and slots.count(slot) == 1 and _may_have(WORTH_TAKING, edge)
        )

    def _direct(
        self, units: list[Unit], template: list[Any], transactional: bool
    ) -> list[Call] | None:
        """The calls that a step comes to, if each unit has one."""
        calls = [u.call for u in units if u.call is not None]
        if self.is_stepped or transactional or len(calls) < len(units):
            return None
        # Host ops take NumPy arrays, and the direct way brings none back from a device.
        made = {slot for u in units if isinstance(u.call, BoundProgram) for slot in u.outputs}
        taken = {slot for u in units if u.node is not None for slot in u.inputs}
        on_device = any(s in made or isinstance(template[s], jax.Array) for s in taken)
        return None if on_device else calls

    def _keep_old_values(self, units: list[Unit]) -> bool:
        """Whether writes must wait for the end of the step, so that a failed step changes nothing.

        They must where something can fail after a region that writes; its old values then stay
        alive. Steps with ops that block cannot: others must see what they did before they wait.
        """
        if self._blocks or self.is_stepped:
            return False
        found = False
        may_fail_later = False
        # Backwards, since what matters to a unit is whether a later one may fail.
        for unit in reversed(units):
            region = unit.region
            if region is None:
                may_fail_later = True
            else:
                region.keep_old(may_fail_later)
                found |= may_fail_later and bool(region.written)
                may_fail_later |= region.can_fail
        return found

    def run(self, feeds: Sequence[Any], context: Any = None) -> list[Any]:
        """Run one step: ``feeds`` in the order of the step's feeds. Returns the fetched values.

        Raises:
            OpError: when an op fails.
        """
        if self._levels:
            with room_for(self._levels):
                return self._run_step(feeds, context)
        return self._run_step(feeds, context)

    def _run_step(self, feeds: Sequence[Any], context: Any) -> list[Any]:
        note_step()
        if self.is_stepped:
            return self._run_stepped(feeds, context)
        schedule = self._schedule
        table = self._table(feeds)
        # The short way: small steps, and those of queue runners, come here all the time.
        if schedule.direct is not None and context is None:
            done = _run_directly(schedule.direct, table)
            if done == len(schedule.direct):
                return self.results(table)
            schedule = schedule._replace(units=schedule.units[done:])
        self._run_in_order(schedule, table, context)
        return self.results(table, context)

    def _table(self, feeds: Sequence[Any]) -> list[Any]:
        table = self._schedule.template.copy()
        for slot, value in zip(self._feed_slots, feeds, strict=True):
            table[slot] = value
        return table

    def results(self, table: list[Any], context: StepContext | None = None) -> list[Any]:
        """The fetched values; where there are none, waits until all has been computed.

        With a ``context`` whoever gives up the step need not wait for what is being computed, if
        that changes no variable: it is finished and dropped.
        """
        # XLA computes in the background: without a fetch nobody would see that it fails.
        if not self._fetch_slots:
            for unit in self._schedule.units:
                if unit.region is not None:
                    unit.region.wait()
        fetched = [table[slot] for slot in self._fetch_slots]
        if context is not None and not self._writes:
            wait_until_ready(fetched, Watch(self.store, context))
        return fetched

    @property
    def is_over(self) -> bool:
        """Whether nothing of its programs is still being computed: `results` does not wait."""
        return all(u.region is None or is_ready(u.region.pending) for u in self.units)

    def compile_ahead(self) -> int:
        """Compile what can be before the first step; returns how many programs."""
        return compile_ahead(self.units, self.store)

    def begin(self, feeds: Sequence[Any], context: StepContext) -> StepRun:
        """One run of a stepped plan, for a Driver of `run_unit`."""
        note_step()
        return StepRun(self.flow, self._table(feeds), context)

    def _run_stepped(self, feeds: Sequence[Any], context: Any) -> list[Any]:
        ended = threading.Event()
        run = self.begin(feeds, StepContext() if context is None else context)
        Driver(self.run_unit, lambda _: ended.set()).start(run)
        ended.wait()
        if run.error is not None:
            raise run.error
        return self.results(run.table, run.context)

    def run_unit(self, unit: Unit, table: list[Any], context: Any) -> None:
        """Run one unit of a stepped plan, or the parts that it had to be split into."""
        if unit.parts is None:
            try:
                self._run_unit(unit, table, context, self.store)
                return
            except NeedsHost as signal:
                # One of its nodes needs the host after all: the unit becomes several for good.
                self._split(unit, signal)
        table += self._schedule.template[len(table) :]
        for part in unit.parts or ():
            self.run_unit(part, table, context)

    def _run_in_order(self, schedule: Schedule, table: list[Any], context: Any) -> None:
        """Run the units one after another in the caller's thread."""
        units = schedule.units
        if not schedule.transactional:
            units = self._run_units(units, table, context, self.store)
        # All writes at the end, or none of them; or what is left of a step that was split.
        if units:
            touched = self._touched
            watch = Watch(self.store, context)
            with held(self.store, touched, touched, watch.check, watch.is_given_up) as values:
                transaction = Transaction(self.store, values)
                self._run_units(units, table, context, transaction)
                transaction.commit(watch.check)

    def _run_units(
        self, units: list[Unit], table: list[Any], context: Any, store: ResourceStore
    ) -> list[Unit]:
        """Run the units one after another.

        Returns:
            Units that have not run, because a unit was split and they now need a transaction.
        """
        done = 0
        while done < len(units):
            try:
                self._run_unit(units[done], table, context, store)
                done += 1
            except NeedsHost as signal:
                # Nothing of the unit has run. Its parts take its place, in later steps as well.
                parts, template = self._split(units[done], signal)
                table += template[len(table) :]
                units = [*units[:done], *parts, *units[done + 1 :]]
                # With host ops the step may fail behind a write: from here on writes wait.
                if store is self.store and self._schedule.transactional:
                    return units[done:]
        return []

    def run_by_op(self, feeds: Sequence[Any], context: Any) -> list[Any]:
        """Run one step op by op, so that ``context`` sees each op.

        Steps with ops that block run as ever: in order, one might wait for a later one.
        """
        if self._blocks:
            return self.run(feeds, context)
        # On the nodes of the step, without units: so each op has a time of its own.
        values: Values = {f: (v,) for f, v in zip(self.step.feeds, feeds, strict=True)}
        touched = self._touched
        check = Watch(self.store, context).check
        with held(self.store, touched, touched, check) as state, np.errstate(all="ignore"):
            transaction = Transaction(self.store, state)
            self.host.interpreter(transaction, context).evaluate_all(self.step.nodes, values)
            transaction.commit(check)
        return [values[n][i] for n, i in self.step.fetches]

    def _run_unit(self, unit: Unit, table: list[Any], context: Any, store: ResourceStore) -> None:
        if context is None or not context.is_watched:
            if not self._run_bound(unit, table, context, store):
                self._run_plain(unit, table, context, store)
            return
        context.check_deadline()
        if context.events is None:
            self._run_plain(unit, table, context, store)
            return
        region = unit.region
        if region is not None:
            region.compiled = None
        start = time.time()
        self._run_plain(unit, table, context, store)
        outputs = [table[slot] for slot in unit.outputs]
        if region is not None:  # a program only begins to run when it is called
            for value in outputs:
                if isinstance(value, jax.Array):
                    value.block_until_ready()
            region.wait()
        self._record(unit, outputs, context, start)

    def _record(self, unit: Unit, outputs: list[Any], context: Any, start: float) -> None:
        """Tell a traced step what a unit took: when, from whom, and how much it made."""
        makers = {slot: other.label for other in self.units for slot in other.outputs}
        taken = dict.fromkeys(makers[slot] for slot in unit.inputs if slot in makers)
        region = unit.region
        if region is None:
            node, kind = unit.node, unit.node.type  # type: ignore[union-attr]
        else:
            node, kind = region.nodes[0], "Region"
            # Compiling gets an entry of its own, so that traces do not show it as computing.
            done = region.compiled
            if done is not None:
                end = done.began + done.seconds
                context.record(unit.label, "Compile", node.device, start, end=end)
                start = end
        context.record(unit.label, kind, node.device, start, ", ".join(taken), outputs)  # type: ignore[union-attr]

    def _run_bound(self, unit: Unit, table: list[Any], context: Any, store: ResourceStore) -> bool:
        """Run the call of a unit; false if it has none for this step, or that cannot run now."""
        call = unit.call
        if call is None or store is not self.store:
            return False
        # An op of the host may wait, and look whether its step is given up; nothing else does.
        if context is not None and type(call) is HostCall:
            return False
        with np.errstate(all="ignore"):
            return call.run(table)

    def _run_plain(self, unit: Unit, table: list[Any], context: Any, store: ResourceStore) -> None:
        inputs = [table[i] for i in unit.inputs]
        region = unit.region
        if region is not None:
            static = [_static_value(table[i]) for i in unit.static]
            outputs: Sequence[Any] = region.run(store, inputs, static, context)
        elif unit.node.op_def is SEND:  # type: ignore[union-attr]
            context.send(unit.node.attrs["transfer"], inputs)  # type: ignore[union-attr]
            return
        else:
            outputs = self.host.run_node(unit.node, inputs, store, context)  # type: ignore[arg-type]
        for slot, value in zip(unit.outputs, outputs, strict=True):
            table[slot] = value

    def _split(self, unit: Unit, signal: NeedsHost) -> tuple[list[Unit], list[Any]]:
        """Smaller units for a region one of whose nodes turned out to need the host.

        Another step may have split it before. Returns the units, and the table with their slots.
        """
        with self.store.lock:
            if unit.parts is None:
                region = unit.region
                # It runs on the host already: to split once more would never end.
                if region is None or signal.node in self._force_host:
                    raise _cannot_run(signal)
                self._force_host |= {signal.node, *signal.beside}
                unit.parts = self._unit_builder(region.nodes).units(set(region.outputs))
                units = self.units
                if not self.is_stepped:  # there the unit stays, and runs its parts
                    at = units.index(unit)
                    units = [*units[:at], *unit.parts, *units[at + 1 :]]
                self._schedule = self._scheduled(units)
            return unit.parts, self._schedule.template

    @property
    def is_proven(self) -> bool:
        """Whether it has run, and a step with feeds of the same shapes compiles nothing more."""
        if self.is_stepped:
            return False
        from_host: set[int] = set()
        for unit in self.units:
            region = unit.region
            if region is None:
                node = unit.node
                if node is None or node.op_def.lower is not None:
                    return False
                from_host.update(unit.outputs)
            elif isinstance(unit.call, BoundRegion):
                continue  # always interpreted, in a moment
            elif not region.is_proven or unit.static or from_host.intersection(unit.inputs):
                # What it is compiled for, or shapes that host ops give, may be others next time.
                return False
        return True

    def describe(self) -> str:
        """How the step came to be, stage by stage, and what it runs; see `step.pipeline`."""
        return self._describe()

    def describe_units(self) -> str:
        """The schedule as text: units in order, with what each takes and gives."""
        lines = []
        for i, unit in enumerate(self.units):
            kind = "host  " if unit.node is not None else "region"
            lines.append(
                f"{i}: {kind} {unit.label}: {len(unit.inputs)} in, {len(unit.static)} static, "
                f"{len(unit.outputs)} out"
            )
            if unit.region is not None:
                lines += [f"     {node!r}" for node in unit.region.nodes]
        return "\n".join(lines)


def _run_directly(calls: Sequence[Call], table: list[Any]) -> int:
    """Run calls one after another until one cannot; returns how many have run."""
    with np.errstate(all="ignore"):
        for done, call in enumerate(calls):
            if not call.run_direct(table):
                return done
    return len(calls)


def _static_value(value: Any) -> Any:
    """A value that a program is compiled for: an array, or a tensor list of arrays."""
    return value.to_items() if isinstance(value, lists.TensorList) else np.asarray(value)


def _cannot_run(signal: NeedsHost) -> OpError:
    return OpError(None, signal.node.op, f"Cannot run: {signal.why}.", INTERNAL)


def _may_have(least: int, edge: Edge) -> bool:
    """Whether a value may have so many bytes."""
    node, index = edge
    size = static_bytes(node.dtypes[index], node.dims[index])
    return size is None or size >= least


def _in_line(units: list[Unit]) -> bool:
    """Whether every unit after one that blocks depends on it: it then cannot wait for them."""
    for i, unit in enumerate(units):
        if unit.blocks:
            behind = {unit}
            for other in units[i + 1 :]:
                if behind.isdisjoint(other.waits):
                    return False
                behind.add(other)
    return True


__all__ = ["WORTH_TAKING", "LocalPlan", "Schedule"]
