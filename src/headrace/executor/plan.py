"""Plans: everything decided for one kind of step, ready to run again and again."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any

import numpy as np

from headrace.errors import OpError
from headrace.executor.evaluate import NeedsHost, Values
from headrace.executor.host import HostRunner
from headrace.executor.region import RegionOptions, Transaction
from headrace.executor.resources import ResourceStore
from headrace.executor.units import Slots, Splitter, Unit, is_large, known_values
from headrace.passes.ir import Edge, Node, StepGraph


class Plan:
    """The schedule of one step graph.

    A step fills a table of values: feeds and constants first, then what each unit puts out.
    """

    def __init__(
        self,
        step: StepGraph,
        store: ResourceStore,
        options: Callable[[str], RegionOptions],
        host: HostRunner,
    ) -> None:
        self.step = step
        self.store = store
        self.host = host
        self._options = options
        self._force_host: set[Node] = set()
        self._slots = Slots()
        self._lock = threading.Lock()
        self._known = known_values(step.nodes)
        self.feed_slots = [self._slots.of((f, 0)) for f in step.feeds]
        splitter = self._splitter(step.nodes)
        self.units = splitter.units(set(step.fetches))
        self.fetch_slots = [self._slots.of(e) for e in step.fetches]
        self.has_blocking = sum(u.blocks for u in self.units) > 0 and len(self.units) > 1
        self._finish()

    def _splitter(self, nodes: Sequence[Node]) -> Splitter:
        return Splitter(nodes, self._known, self._slots, self._options, self._force_host)

    def _finish(self) -> None:
        """Prepare the value table that every step starts from."""
        table: list[Any] = [None] * len(self._slots.index)
        for edge, slot in self._slots.index.items():
            if edge in self._known:
                value = self._known[edge]
                table[slot] = self.host.to_device(value) if is_large(value) else value
        self._template = table
        self.transactional = self._keep_old_values()

    def _keep_old_values(self) -> bool:
        """A failed step changes no variable: where something can fail after a region that writes,
        its writes wait for the end of the step and its old values stay alive until then."""
        if self.has_blocking:
            return False
        found = False
        may_fail_later = False
        for unit in reversed(self.units):
            region = unit.region
            if region is None:
                may_fail_later = True
            else:
                region.keeps_old = may_fail_later
                found |= may_fail_later and bool(region.written)
                may_fail_later |= region.touched.may_fail or bool(region.early)
        return found

    def run(self, feeds: Sequence[Any], context: Any = None) -> list[Any]:
        """Run one step: ``feeds`` in the order of the step's feeds. Returns the fetched values.

        Raises:
            OpError: when an op fails.
        """
        table = self._template.copy()
        for slot, value in zip(self.feed_slots, feeds, strict=True):
            table[slot] = value
        if self.has_blocking:
            self._run_threads(table, context)
        else:
            self._run_in_order(table, context)
        if not self.fetch_slots:
            for unit in self.units:
                if unit.region is not None:
                    unit.region.wait()
        return [table[slot] for slot in self.fetch_slots]

    def _run_in_order(self, table: list[Any], context: Any) -> None:
        """Run the units one after another in the caller's thread."""
        if self.transactional:
            with self.store.lock:
                transaction = Transaction(self.store)
                self._run_units(table, context, transaction)
                transaction.commit()
        else:
            self._run_units(table, context, self.store)

    def _run_units(self, table: list[Any], context: Any, store: ResourceStore) -> None:
        done = 0
        while done < len(self.units):
            unit = self.units[done]
            try:
                self._run_unit(unit, table, context, store)
                done += 1
            except NeedsHost as signal:
                self._split(unit, signal, table)

    def run_by_op(self, feeds: Sequence[Any], context: Any) -> list[Any]:
        """Run one step op by op, so that ``context`` sees each op."""
        values: Values = {f: (v,) for f, v in zip(self.step.feeds, feeds, strict=True)}
        transaction = Transaction(self.store)
        with self.store.lock, np.errstate(all="ignore"):
            self.host.interpreter(transaction, context).run(self.step.nodes, values)
            transaction.commit()
        return [values[n][i] for n, i in self.step.fetches]

    def _run_unit(self, unit: Unit, table: list[Any], context: Any, store: ResourceStore) -> None:
        if context is not None:
            context.check_deadline()
            start = time.time()
            self._run_plain(unit, table, context, store)
            device = unit.node.device if unit.node is not None else unit.region.nodes[0].device  # type: ignore[union-attr]
            context.record(unit.label, "Unit", device, start)
        else:
            self._run_plain(unit, table, context, store)

    def _run_plain(self, unit: Unit, table: list[Any], context: Any, store: ResourceStore) -> None:
        inputs = [table[i] for i in unit.inputs]
        region = unit.region
        if region is not None:
            static = [np.asarray(table[i]) for i in unit.static]
            outputs: Sequence[Any] = region.run(store, inputs, static)
        else:
            outputs = self.host.run_node(unit.node, inputs, store, context)  # type: ignore[arg-type]
        for slot, value in zip(unit.outputs, outputs, strict=True):
            table[slot] = value

    def _split(self, unit: Unit, signal: NeedsHost, table: list[Any]) -> None:
        """Replace a region, one of whose nodes turned out to need the host, by smaller units."""
        region = unit.region
        assert region is not None
        with self._lock:
            if unit not in self.units:
                return
            if signal.node in self._force_host:
                raise OpError(None, signal.node.op, f"Cannot run: {signal.why}.", 13)
            self._force_host.add(signal.node)
            smaller = self._splitter(region.nodes).units(set(region.outputs))
            for part in smaller:
                part.waits += [w for w in unit.waits if w not in part.waits]
            units = []
            for other in self.units:
                if other is unit:
                    units += smaller
                    continue
                if unit in other.waits:
                    other.waits = [w for w in other.waits if w is not unit] + smaller
                units.append(other)
            self.units = units
            table.extend([None] * (len(self._slots.index) - len(table)))
            self._finish()
            for edge, slot in self._slots.index.items():
                if edge in self._known:
                    table[slot] = self._template[slot]

    def _run_threads(self, table: list[Any], context: Any) -> None:
        """Run units as they become ready, those that block in threads of their own."""
        pending = {u: len(u.waits) for u in self.units}
        users: dict[Unit, list[Unit]] = {u: [] for u in self.units}
        for unit in self.units:
            for source in unit.waits:
                users[source].append(unit)
        running: dict[Future[None], Unit] = {}
        with ThreadPoolExecutor(max_workers=max(2, len(self.units))) as pool:
            ready = [u for u in self.units if pending[u] == 0]
            while ready or running:
                for unit in ready:
                    running[pool.submit(self._run_whole, unit, table, context)] = unit
                ready = []
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    unit = running.pop(future)
                    future.result()
                    for user in users[unit]:
                        pending[user] -= 1
                        if pending[user] == 0:
                            ready.append(user)

    def _run_whole(self, unit: Unit, table: list[Any], context: Any) -> None:
        """Run a unit in a thread; a node that needs the host is interpreted within it."""
        try:
            self._run_unit(unit, table, context, self.store)
        except NeedsHost:
            assert unit.region is not None
            outputs = self.host.interpret_region(
                unit.region,
                [table[i] for i in unit.inputs],
                [table[i] for i in unit.static],
                self.store,
            )
            for slot, value in zip(unit.outputs, outputs, strict=True):
                table[slot] = value

    def describe(self) -> str:
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


__all__ = ["Edge", "Plan"]
