"""Running the units of a step as events come in: units that finish, tensors that arrive.

Each unit counts what it waits for (white paper 2015, section 3.1). `StepRun` is the bookkeeping of
one step: events in, units that may now run out; it does no work itself. `Driver` does the work, in
the thread that brought the event where a unit is cheap, else in a thread of its own.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from headrace.executor.step_context import StepContext
from headrace.executor.threads import step_threads
from headrace.executor.touched import has_loops
from headrace.executor.transfers import RECV, SEND
from headrace.executor.units import Unit
from headrace.placement.cost import node_cost

#: Units that cost more operations than this run in a thread of their own.
INLINE_COST = 1e6

#: In place of the context of a step that has ended.
_NOBODY = StepContext()


class Flow:
    """The units of a schedule as a graph of numbers.

    Attributes:
        needs: for each unit how many others must finish first.
        users: for each unit those that wait for it.
        first: units that wait for nothing.
        arrivals: the unit of each transfer that comes in.
        heavy: for each unit whether it runs in a thread of its own.
        takes: for each unit those of the ``passing`` slots that it takes.
        uses: how many units take each of these.

    Args:
        passing: slots whose values are let go of after the last unit that takes them: XLA changes
            a variable in place only when nobody has its old value any more.
    """

    def __init__(self, units: Sequence[Unit], passing: frozenset[int] = frozenset()) -> None:
        self.units = list(units)
        self.takes = [sorted(passing.intersection((*u.inputs, *u.static))) for u in self.units]
        self.uses: dict[int, int] = {}
        for slots in self.takes:
            for slot in slots:
                self.uses[slot] = self.uses.get(slot, 0) + 1
        number = {u: i for i, u in enumerate(self.units)}
        self.needs = [len(u.waits) for u in self.units]
        self.users: list[list[int]] = [[] for _ in self.units]
        for i, unit in enumerate(self.units):
            for source in unit.waits:
                self.users[number[source]].append(i)
        self.arrivals = {
            u.node.attrs["transfer"].number: i
            for i, u in enumerate(self.units)
            if u.node is not None and u.node.op_def is RECV
        }
        # A Recv waits for no unit: it is done when its tensors come.
        incoming = set(self.arrivals.values())
        self.first = [i for i, n in enumerate(self.needs) if n == 0 and i not in incoming]
        self.heavy = [_is_heavy(u) for u in self.units]


def _is_heavy(unit: Unit) -> bool:
    if unit.region is None:
        node = unit.node
        assert node is not None
        if node.op_def is SEND:
            return False
        # A Python function may wait for what another unit or step does.
        return unit.blocks or unit.asks or node.op_def.effects.external
    # Nobody may be kept from hearing that the step is given up.
    return has_loops(unit.region.nodes) or sum(map(node_cost, unit.region.nodes)) > INLINE_COST


class StepRun:
    """One run of a flow: events in, units out that may now run.

    Attributes:
        table: the value of each slot.
        error: why the step failed.
    """

    __slots__ = (
        "_ended",
        "_left",
        "_lock",
        "_needs",
        "_running",
        "_seen",
        "_told",
        "_uses",
        "context",
        "error",
        "flow",
        "table",
    )

    def __init__(self, flow: Flow, table: list[Any], context: StepContext) -> None:
        self.flow = flow
        self.table = table
        self.context = context
        self.error: BaseException | None = None
        self._needs = flow.needs.copy()
        self._uses = flow.uses.copy()
        self._left = len(flow.units)
        self._ended = False
        #: Units that run now; what failed ends when there are none.
        self._running: set[int] = set()
        self._told = False
        #: Transfers that have arrived.
        self._seen: set[int] = set()
        self._lock = threading.Lock()

    def position(self) -> tuple[list[Unit], list[int]]:
        """Where it is now: the units that run, and the transfers that have not arrived."""
        running = [self.flow.units[i] for i in sorted(self._running.copy())]
        return running, sorted(self.flow.arrivals.keys() - self._seen.copy())

    @property
    def is_at_last_unit(self) -> bool:
        """Whether all units have run but one; asked while that one runs."""
        return self._left == 1

    def take_end(self) -> bool:
        """Whether every unit has run; true once only, for the one who acts on it."""
        if self._left:
            return False
        with self._lock:
            first, self._ended = not self._ended, True
        return first

    def start(self) -> list[int]:
        """The step begins."""
        return list(self.flow.first)

    def arrived(self, transfer: int, values: Sequence[Any]) -> list[int] | None:
        """The tensors of a transfer are there; None for a transfer that came before, or is not
        one of this step."""
        index = self.flow.arrivals.get(transfer)
        with self._lock:
            if index is None or transfer in self._seen or self._ended:
                return None
            self._seen.add(transfer)
            for slot, value in zip(self.flow.units[index].outputs, values, strict=True):
                self.table[slot] = value
            return self._after(index)

    def enter(self, index: int) -> bool:
        """A unit is about to run; false if the step has failed."""
        # First noted, then looked: who fails the step does it the other way round.
        self._running.add(index)
        if self.error is None:
            return True
        self._running.discard(index)
        return False

    def done(self, index: int) -> list[int]:
        """A unit has run."""
        self._running.discard(index)
        with self._lock:
            for slot in self.flow.takes[index]:
                self._uses[slot] -= 1
                if not self._uses[slot] and self.table:
                    self.table[slot] = None
            return self._after(index)

    def stopped(self, index: int) -> None:
        """A unit has failed."""
        self._running.discard(index)

    def _after(self, index: int) -> list[int]:
        self._left -= 1
        ready = []
        # Under the lock of who calls: units end in several threads.
        needs = self._needs
        for user in self.flow.users[index]:
            needs[user] -= 1
            if needs[user] == 0:
                ready.append(user)
        return ready

    def release(self) -> None:
        """Let go of what a step that has ended had: its values, and its context, which may know
        this run. A step that leaves a cycle makes work for the garbage collector."""
        self.table = []
        self.context = _NOBODY

    def fail(self, error: BaseException) -> bool:
        """The step fails; false if it has ended before."""
        with self._lock:
            if self._ended:
                return False
            self.error, self._ended = error, True
            return True

    def take_failure(self) -> bool:
        """Whether the step has failed and no unit runs any more; true once only."""
        if self.error is None or self._running:
            return False
        with self._lock:
            first, self._told = not self._told, True
        return first


class Driver:
    """Runs the units of steps.

    Args:
        run_unit: ``run_unit(unit, table, context)`` does the work of one unit.
        ended: called once for each step, when all units have run, or one has failed and those
            that ran beside it have ended: nothing of a step happens after it.
    """

    def __init__(
        self,
        run_unit: Callable[[Unit, list[Any], StepContext], None],
        ended: Callable[[StepRun], None],
    ) -> None:
        self._run_unit = run_unit
        self._ended = ended

    def start(self, run: StepRun, patient: bool = False) -> None:
        """Begin a step. ``patient``: the calling thread has nothing else to do."""
        if run.take_end():
            self._ended(run)
        else:
            self.drive(run, run.start(), patient)

    def arrived(self, run: StepRun, transfer: int, values: Sequence[Any]) -> None:
        """Tensors have come in; run what they make possible."""
        ready = run.arrived(transfer, values)
        if ready is None:
            return
        if ready:
            self.drive(run, ready)
        elif run.take_end():
            self._ended(run)

    def drive(self, run: StepRun, ready: list[int], patient: bool = False) -> None:
        """Run ready units, and those that become ready, in this thread or others."""
        flow = run.flow
        light: list[int] = []
        heavy: list[int] = []
        while True:
            for index in ready:
                (heavy if flow.heavy[index] else light).append(index)
            # These begin before what this thread does itself, which would keep them waiting. A
            # patient thread runs the last one, if it has nothing else: to hand it on costs time.
            while len(heavy) > (patient and not light):
                step_threads.submit(self.drive, run, [heavy.pop()], True)
            if not light and not heavy:
                return
            index = (light or heavy).pop()
            # Others of the step may still run: the last one of them ends it.
            if not run.enter(index):
                self._failed(run)
                return
            try:
                self._run_unit(flow.units[index], run.table, run.context)
            except BaseException as error:
                run.stopped(index)
                self.fail(run, error)
                return
            ready = run.done(index)
            if run.take_end():
                self._ended(run)
            elif run.error is not None:
                self._failed(run)
                return

    def fail(self, run: StepRun, error: BaseException) -> None:
        """End a step; its ops that wait give up."""
        if run.fail(error):
            run.context.cancel()
        self._failed(run)

    def _failed(self, run: StepRun) -> None:
        if run.take_failure():
            self._ended(run)
