"""A cluster of state machines alone: no sockets, no threads, a clock that is only counted.

One master (step trackers, membership) and many workers (worker machines) exchange messages over
links that delay, lose, and are cut; workers die and are started again. A step is a chain: every
member sends its number to the next one, and answers with the sum of its own and what it got.
"""

from __future__ import annotations

import heapq
import itertools
import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from headrace.distributed.failures import cancelled, unavailable
from headrace.distributed.master.machine import Membership
from headrace.distributed.timing import DEFAULT_TIMING
from headrace.distributed.tracker import StepTracker
from headrace.distributed.worker.machine import Abort, Deliver, Refuse, Start, WorkerMachine
from headrace.errors import AbortedError, OpError

MASTER = "master"
TIMING = DEFAULT_TIMING
#: A cut that nobody tells is noticed after this many seconds at the latest.
NOTICE = TIMING.silence + TIMING.tick


@dataclass(eq=False)
class Wire:
    """A link between two nodes at their present starts."""

    ends: dict[str, int]
    began: float
    cut: bool = False
    last: dict[str, float] = field(default_factory=dict)


@dataclass(eq=False)
class Run:
    """A part that runs in a worker."""

    step: int
    members: list[str]
    asker: str
    over: bool = False
    got: float | None = None


@dataclass
class Outcome:
    """How a step ended."""

    members: list[str]
    began: float
    ended: float = math.inf
    error: OpError | None = None
    value: float | None = None


class Node:
    """A process: its machine, and its links by peer; the newest first."""

    def __init__(self, name: str, incarnation: int) -> None:
        self.name = name
        self.incarnation = incarnation
        self.alive = True
        self.wires: dict[str, list[Wire]] = {}
        self.machine = WorkerMachine(TIMING.hold, TIMING.orphan)


class Simulation:
    """The nodes, the messages under way, and the time."""

    def __init__(self, workers: int, seed: int) -> None:
        self.rng = random.Random(seed)
        self.now = 0.0
        self.drop_rate = 0.0
        self.delay = 0.05
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._incarnations = itertools.count(1)
        self._numbers = itertools.count(1)
        self.names = [f"w{i}" for i in range(workers)]
        self.nodes = {n: Node(n, next(self._incarnations)) for n in [*self.names, MASTER]}
        self.open: dict[int, StepTracker] = {}
        self.outcomes: dict[int, Outcome] = {}
        #: (time, nodes concerned, whether a node died) of all that was done to the cluster.
        self.faults: list[tuple[float, set[str], bool]] = []

    # -- time -------------------------------------------------------------------------------------

    def after(self, seconds: float, call: Callable[[], None]) -> None:
        heapq.heappush(self._events, (self.now + seconds, next(self._order), call))

    def run_until(self, end: float) -> None:
        while self._events and self._events[0][0] <= end:
            self.now, _, call = heapq.heappop(self._events)
            call()
        self.now = end

    def tick(self) -> None:
        for tracker in list(self.open.values()):
            tracker.overdue(self.now, TIMING.drain)
        for node in self.nodes.values():
            node.machine.tick(self.now)
        self.after(TIMING.tick, self.tick)

    # -- links ------------------------------------------------------------------------------------

    def wire(self, one: str, other: str) -> Wire | None:
        """The link that ``one`` uses to ``other``, made if it has none and that can be."""
        here, there = self.nodes[one], self.nodes[other]
        wires = here.wires.get(other)
        if wires:
            return wires[0]
        if not there.alive:
            return None
        made = Wire({one: here.incarnation, other: there.incarnation}, self.now)
        for a, b in ((here, there), (there, here)):
            for old in a.wires.get(b.name, []):
                if old.ends[b.name] != b.incarnation:
                    self._lost(a.name, old, "started again", 0)
            a.wires.setdefault(b.name, []).insert(0, made)
        return made

    def send(self, sender: str, receiver: str, deliver: Callable[[], None]) -> bool:
        """A message; false if there is no link and none can be made."""
        wire = self.wire(sender, receiver)
        if wire is None:
            return False
        if self.rng.random() < self.drop_rate:
            # The next frame or heartbeat shows the gap, and the link is given up by both.
            self._cut(wire, 1.25 * TIMING.heartbeat, died=False)
            return True
        at = max(self.now + self.rng.uniform(1e-4, self.delay), wire.last.get(sender, 0.0))
        wire.last[sender] = at

        def arrive() -> None:
            node = self.nodes[receiver]
            if not wire.cut and node.alive and node.incarnation == wire.ends[receiver]:
                deliver()

        self.after(at - self.now, arrive)
        return True

    def _cut(self, wire: Wire, within: float, died: bool) -> None:
        if wire.cut:
            return
        wire.cut = True
        self.faults.append((self.now, set(wire.ends), died))
        for name in wire.ends:
            seconds = self.rng.uniform(0, within)
            self.after(seconds, lambda n=name: self._lost(n, wire, "silent", wire.ends[n]))

    def _lost(self, name: str, wire: Wire, reason: str, incarnation: int) -> None:
        """A node notices that a link is gone."""
        node = self.nodes[name]
        (peer,) = wire.ends.keys() - {name}
        wires = node.wires.get(peer, [])
        stale = incarnation and incarnation != node.incarnation
        if wire not in wires or stale or not node.alive:
            return
        current = wires[0]
        wires.remove(wire)
        until = math.inf if current is wire else current.began
        if name == MASTER:
            for tracker in list(self.open.values()):
                if peer in tracker.members and tracker.began < until:
                    error = unavailable(peer, tracker.number, reason)
                    self._stop(tracker, tracker.lost(peer, error, self.now))
            return
        for abort in node.machine.peer_lost(peer, reason, until):
            self._abort(node, abort)
        age = 0.0 if until == math.inf else self.now - until
        if MASTER in node.machine.watchers(peer):
            self.send(name, MASTER, lambda: self._parted(name, peer, reason, age))

    def cut(self, one: str, other: str, within: float = NOTICE) -> None:
        """Cut the link of two nodes, if they have one."""
        for wire in list(self.nodes[one].wires.get(other, ())):
            self._cut(wire, within, died=False)

    def kill(self, name: str, within: float = NOTICE, back_after: float | None = None) -> None:
        """A node dies, and perhaps is started again."""
        node = self.nodes[name]
        if not node.alive:
            return
        node.alive = False
        self.faults.append((self.now, {name}, True))
        for wire in [w for wires in node.wires.values() for w in wires]:
            self._cut(wire, within, died=True)
        if back_after is not None:
            self.after(back_after, lambda: self._start(name))

    def _start(self, name: str) -> None:
        self.nodes[name] = Node(name, next(self._incarnations))

    # -- the master -------------------------------------------------------------------------------

    def plan(self, members: list[str], session: int) -> tuple[int, Membership]:
        """Register a plan with its members, who must be alive."""
        number, membership = next(self._numbers), Membership()
        master = (MASTER, self.nodes[MASTER].incarnation)
        for i, name in enumerate(members):
            node = self.nodes[name]
            membership.met(name, node.incarnation)
            node.machine.plan_asked(number, session, master, self.now)
            node.machine.plan_ready(number, {*members[max(0, i - 1) : i], *members[i + 1 : i + 2]})
        return number, membership

    def step(self, plan: int, members: list[str], membership: Membership) -> int:
        """Begin a step; its outcome is in ``outcomes`` when it has ended."""
        number = next(self._numbers)
        outcome = self.outcomes[number] = Outcome(members, self.now)

        def ended(tracker: StepTracker) -> None:
            del self.open[number]
            outcome.ended, outcome.error = self.now, tracker.error
            if tracker.error is None:
                outcome.value = sum(tracker.results.values())
                assert len(tracker.results) == len(members)

        tracker = self.open[number] = StepTracker(number, members, self.now, ended)
        left = list(members)
        while left and tracker.error is None:
            task = left[0]
            wire = self.wire(MASTER, task)
            try:
                if wire is None:
                    raise unavailable(task, number, "no answer")
                membership.met(task, wire.ends[task])
                self.send(MASTER, task, lambda t=task: self._asked(t, number, plan, members))
                del left[0]
            except OpError as error:
                self._stop(tracker, tracker.failed(task, error, self.now))
        if left:
            tracker.not_asked(left)
        return number

    def _stop(self, tracker: StepTracker, tasks: list[str]) -> None:
        for task in tasks:
            if self.nodes[MASTER].wires.get(task):
                self.send(MASTER, task, lambda t=task: self._cancelled(t, tracker.number))

    def _answered(self, task: str, step: int, value: Any) -> None:
        tracker = self.open.get(step)
        if tracker is None:
            return
        if isinstance(value, OpError):
            self._stop(tracker, tracker.failed(task, value, self.now))
        else:
            tracker.done(task, value)

    def _parted(self, one: str, other: str, reason: str, age: float) -> None:
        for tracker in list(self.open.values()):
            if self.now - tracker.began >= age:
                error = unavailable(other, tracker.number, reason)
                self._stop(tracker, tracker.parted(one, other, error, self.now))

    # -- the workers ------------------------------------------------------------------------------

    def _asked(self, name: str, step: int, plan: int, members: list[str]) -> None:
        node = self.nodes[name]
        run = Run(step, members, MASTER)
        told = node.machine.run_asked(step, plan, MASTER, run, self.now)
        if isinstance(told, Refuse):
            gone = AbortedError(None, None, f"Plan {plan} is not known.")
            self._answer(node, step, cancelled(told.reason) if told.reason else gone)
        elif isinstance(told, Start):
            position = members.index(name)
            if name != members[-1] and not self._pass_on(name, members[position + 1], step):
                self._fail(node, run, unavailable(members[position + 1], step, "no answer"))
                return
            for value in [v for _, v in told.held] or [0] * (position == 0):
                self._arrived(node, run, value)

    def _pass_on(self, name: str, target: str, step: int) -> bool:
        value = self.outcomes[step].members.index(name)
        return self.send(name, target, lambda: self._tensor(target, step, value))

    def _tensor(self, name: str, step: int, value: float) -> None:
        node = self.nodes[name]
        told = node.machine.tensors_came(step, 1, value, self.now)
        if isinstance(told, Deliver):
            self._arrived(node, told.run, value)

    def _arrived(self, node: Node, run: Run, value: float) -> None:
        if run.got is None:
            run.got = value
            self.after(self.rng.uniform(0, 0.2), lambda: self._compute(node, run))

    def _compute(self, node: Node, run: Run) -> None:
        if not run.over and node is self.nodes[node.name] and node.alive:
            run.over = True
            node.machine.ended(run.step)
            self._answer(node, run.step, run.members.index(node.name) + run.got)

    def _cancelled(self, name: str, step: int) -> None:
        abort = self.nodes[name].machine.cancel_asked(step, "failed elsewhere")
        if abort is not None:
            self._abort(self.nodes[name], abort)

    def _abort(self, node: Node, abort: Abort) -> None:
        step = abort.run.step
        lost = abort.lost and unavailable(abort.lost, step, abort.reason)
        self._fail(node, abort.run, lost or cancelled(abort.reason))

    def _fail(self, node: Node, run: Run, error: OpError) -> None:
        if not run.over:
            run.over = True
            node.machine.ended(run.step)
            self._answer(node, run.step, error)

    def _answer(self, node: Node, step: int, value: Any) -> None:
        if node.wires.get(MASTER):
            self.send(node.name, MASTER, lambda: self._answered(node.name, step, value))
