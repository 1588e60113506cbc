"""A cluster of state machines alone: no sockets, no threads, a clock that is only counted.

One master (step trackers, membership) and many workers (worker machines) exchange messages over
links (link tables) that delay, lose, and are cut, which their ends notice at different times;
workers die and are started again. A step is a chain: every member sends its number to the next one,
and answers with the sum of its own and what it got.
"""

from __future__ import annotations

import heapq
import itertools
import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from headrace.distributed.links.links import LinkTable, Roll
from headrace.distributed.links.timing import DEFAULT_TIMING
from headrace.distributed.master.machine import Membership
from headrace.distributed.steps.tracker import StepTracker
from headrace.distributed.transport.base import PeerInfo
from headrace.distributed.wire.failures import cancelled, unavailable
from headrace.distributed.worker.machine import Abort, Deliver, Refuse, Start, WorkerMachine
from headrace.errors import AbortedError, OpError

MASTER = "master"
TIMING = DEFAULT_TIMING
#: A cut that nobody tells is noticed after this many seconds at the latest.
NOTICE = TIMING.silence + TIMING.tick


@dataclass(eq=False)
class End:
    """What one node has of a link: what a link table takes."""

    wire: Wire
    owner: PeerInfo
    peer: PeerInfo
    lost: bool = False
    #: The time before which no later message arrives.
    busy: float = 0.0


@dataclass(eq=False)
class Wire:
    """A link between two nodes at their present starts."""

    ends: dict[str, End] = field(default_factory=dict)
    cut: bool = False


@dataclass(eq=False)
class Run:
    """A part that runs in a worker."""

    step: int
    members: list[str]
    #: That brought the question.
    link: End
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


@dataclass
class Wish:
    """Somebody waits for a link."""

    then: Callable[[End], None]
    failed: Callable[[], None]


class Node:
    """A process: its machine, its links, and who waits for new ones."""

    def __init__(self, name: str, incarnation: int) -> None:
        self.me = PeerInfo(name, incarnation)
        self.alive = True
        self.links = LinkTable()
        self.wishes: dict[str, list[Wish]] = {}
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

    def reach(
        self, one: str, other: str, then: Callable[[End], None], failed: Callable[[], None]
    ) -> None:
        """``then(link)`` once ``one`` has a link to ``other``, which it dials if need be."""
        here, there = self.nodes[one], self.nodes[other]
        known = here.links.known(other)
        if known is not None:
            then(known)
        elif not there.alive:
            failed()
        else:
            here.wishes.setdefault(other, []).append(Wish(then, failed))
            if len(here.wishes[other]) == 1:
                self._dial(here, there)

    def _dial(self, here: Node, there: Node) -> None:
        wire = Wire()
        mine = wire.ends[here.me.task] = End(wire, here.me, there.me)
        wire.ends[there.me.task] = End(wire, there.me, here.me)
        for node in (here, there):
            node.links.add(wire.ends[node.me.task])
        for node, peer in ((here, there.me), (there, here.me)):
            for old in node.links.all():
                if old.peer.task == peer.task and old.peer.incarnation != peer.incarnation:
                    self._lost(old, "started again")
        self._tell(mine, here.links.introduce(mine))

    def _tell(self, end: End, roll: Roll | None) -> None:
        if roll is not None:
            self.send(end, lambda: self._told(end.wire.ends[end.peer.task], roll))

    def _told(self, end: End, roll: Roll) -> None:
        node = self.nodes[end.owner.task]
        answer, gone = node.links.told(end, roll)
        if end not in gone:
            self._tell(end, answer)
            node.links.use(end)
            for wish in node.wishes.pop(end.peer.task, ()):
                wish.then(end)
        for other in gone:
            self._lost(other, "the peer has lost it")

    def _is_there(self, end: End) -> bool:
        """Whether this end is that of a process that lives, and has not lost it."""
        node = self.nodes[end.owner.task]
        return node.alive and node.me is end.owner and not end.lost

    def send(self, end: End, deliver: Callable[[], None]) -> None:
        """A message over a link."""
        assert self._is_there(end)
        wire = end.wire
        if self.rng.random() < self.drop_rate:
            # The next frame or heartbeat shows the gap, and the link is given up by both.
            self._cut(wire, 1.25 * TIMING.heartbeat, died=False)
            return
        at = end.busy = max(self.now + self.rng.uniform(1e-4, self.delay), end.busy)

        def arrive() -> None:
            if not wire.cut and self._is_there(wire.ends[end.peer.task]):
                deliver()

        self.after(at - self.now, arrive)

    def _cut(self, wire: Wire, within: float, died: bool) -> None:
        if not wire.cut:
            self.faults.append((self.now, set(wire.ends), died))
            self._break(wire, within)

    def _break(self, wire: Wire, within: float) -> None:
        wire.cut = True
        for end in wire.ends.values():
            self.after(self.rng.uniform(0, within), lambda e=end: self._lost(e, "silent"))

    def _lost(self, end: End, reason: str) -> None:
        """A node notices that a link is gone."""
        if not self._is_there(end):
            return
        end.lost = True
        if not end.wire.cut:
            self._break(end.wire, NOTICE)
        name, peer = end.owner.task, end.peer.task
        node = self.nodes[name]
        concerns, others = node.links.lost(end)
        for other, roll in others:
            if not other.lost:
                self._tell(other, roll)
        if node.links.known(peer) is None:
            for wish in node.wishes.pop(peer, ()):
                wish.failed()
        if not concerns:
            return
        if name == MASTER:
            self._master_lost(peer, reason)
            return
        for abort in node.machine.peer_lost(peer, reason):
            self._abort(node, abort)
        if MASTER in node.machine.watchers(peer):
            self._say(name, MASTER, lambda: self._parted(name, peer, reason))

    def _say(self, name: str, peer: str, deliver: Callable[[], None]) -> None:
        """Send to a peer if there is a link to it."""
        known = self.nodes[name].links.known(peer)
        if known is not None:
            self.send(known, deliver)

    def cut(self, one: str, other: str, within: float = NOTICE) -> None:
        """Cut the links of two nodes, if they have some."""
        for end in self.nodes[one].links.all():
            if end.peer.task == other:
                self._cut(end.wire, within, died=False)

    def kill(self, name: str, within: float = NOTICE, back_after: float | None = None) -> None:
        """A node dies, and perhaps is started again."""
        node = self.nodes[name]
        if not node.alive:
            return
        node.alive = False
        self.faults.append((self.now, {name}, True))
        for end in node.links.all():
            self._cut(end.wire, within, died=True)
        if back_after is not None:
            self.after(back_after, lambda: self._start(name))

    def _start(self, name: str) -> None:
        self.nodes[name] = Node(name, next(self._incarnations))

    # -- the master -------------------------------------------------------------------------------

    def plan(self, members: list[str], session: int) -> tuple[int, Membership]:
        """Register a plan with its members, who must be alive."""
        number, membership = next(self._numbers), Membership()
        master = (MASTER, self.nodes[MASTER].me.incarnation)
        for i, name in enumerate(members):
            node = self.nodes[name]
            membership.met(name, node.me.incarnation)
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
        for task in members:

            def ask(link: End, task: str = task) -> None:
                if tracker.error is not None:
                    tracker.not_asked([task])
                    return
                try:
                    membership.met(task, link.peer.incarnation)
                except OpError as error:
                    self._stop(tracker, tracker.failed(task, error, self.now))
                    return
                tracker.links[task] = link
                self.send(link, lambda: self._asked(task, number, plan, members))

            def failed(task: str = task) -> None:
                error = unavailable(task, number, "no answer")
                self._stop(tracker, tracker.failed(task, error, self.now))

            self.reach(MASTER, task, ask, failed)
        return number

    def _stop(self, tracker: StepTracker, tasks: list[str]) -> None:
        for task in tasks:
            link = tracker.links.get(task)
            if link is not None and not link.lost:
                self.send(link, lambda t=task: self._cancelled(t, tracker.number))

    def _master_lost(self, peer: str, reason: str) -> None:
        for tracker in list(self.open.values()):
            if peer in tracker.members:
                error = unavailable(peer, tracker.number, reason)
                link = tracker.links.get(peer)
                if link is None or link.lost:
                    stop = tracker.lost(peer, error, self.now)
                else:
                    stop = tracker.cancel(error, self.now)
                self._stop(tracker, stop)

    def _answered(self, task: str, step: int, value: Any) -> None:
        tracker = self.open.get(step)
        if tracker is None:
            return
        if isinstance(value, OpError):
            self._stop(tracker, tracker.failed(task, value, self.now))
        else:
            tracker.done(task, value)

    def _parted(self, one: str, other: str, reason: str) -> None:
        for tracker in list(self.open.values()):
            error = unavailable(other, tracker.number, reason)
            self._stop(tracker, tracker.parted(one, other, error, self.now))

    # -- the workers ------------------------------------------------------------------------------

    def _asked(self, name: str, step: int, plan: int, members: list[str]) -> None:
        node = self.nodes[name]
        run = Run(step, members, node.links.known(MASTER))
        told = node.machine.run_asked(step, plan, MASTER, run)
        if isinstance(told, Refuse):
            gone = AbortedError(None, None, f"Plan {plan} is not known.")
            self._answer(run, cancelled(told.reason) if told.reason else gone)
        elif isinstance(told, Start):
            position = members.index(name)
            if name != members[-1]:
                self._pass_on(node, run, members[position + 1])
            for value in [v for _, v in told.held] or [0] * (position == 0):
                self._arrived(node, run, value)

    def _pass_on(self, node: Node, run: Run, target: str) -> None:
        value = run.members.index(node.me.task)
        self.reach(
            node.me.task,
            target,
            lambda end: self.send(end, lambda: self._tensor(target, run.step, value)),
            lambda: self._fail(node, run, unavailable(target, run.step, "no answer")),
        )

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
        if not run.over and node is self.nodes[node.me.task] and node.alive:
            run.over = True
            node.machine.ended(run.step)
            self._answer(run, run.members.index(node.me.task) + run.got)

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
            self._answer(run, error)

    def _answer(self, run: Run, value: Any) -> None:
        """The answer goes over the link that brought the question."""
        if self._is_there(run.link):
            name = run.link.owner.task
            self.send(run.link, lambda: self._answered(name, run.step, value))
