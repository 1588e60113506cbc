"""The steps of a worker as a state machine: events in, instructions out, no I/O, no clock.

The states of a step in one task:

    (unknown) ──tensors came──> HELD ──run asked──> RUNNING ──ended──> ENDED
        │                        │                     │                 ▲
        └──────run asked─────────┼─────────────────────┘   cancel, peer lost
                                 └─────────────cancel, too old───────────┘

Messages may come in any order and more than once: tensors may overtake the message that starts
their step, and a step may be cancelled before it was asked for. Of an ended step a mark is kept, so
that what still arrives for it is dropped.

In: a message, or the end of a part, as one method call. Out: what the worker has to do about it.
Invariant: a part starts at most once, gets every tensor of its step however early that came, and
nothing after its end.

    >>> machine = WorkerMachine()
    >>> machine.plan_asked(1, session=5, master=OWN, now=0.0)
    >>> machine.plan_ready(1, peers=["/job:ps/replica:0/task:0"])
    True
    >>> machine.tensors_came(step=7, transfer=0, values="weights", now=0.1)  # held
    >>> machine.run_asked(step=7, plan=1, asker="", run="the part")
    Start(run='the part', held=[(0, 'weights')])
    >>> machine.peer_lost("/job:ps/replica:0/task:0", "its link broke")
    [Abort(run='the part', reason='its link broke', lost='/job:ps/replica:0/task:0')]
    >>> machine.ended(7)
    >>> machine.run_asked(step=7, plan=1, asker="", run="the part")  # again: nothing
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

#: Marks of ended steps to keep; tensors that come later than that would be held, then dropped.
MAX_MARKS = 1 << 16


class Start(NamedTuple):
    """Run the part; these transfers have arrived already."""

    run: Any
    held: list[tuple[int, Any]]


class Refuse(NamedTuple):
    """Answer that this task does not know the plan, or that the step was given up: ``reason``."""

    step: int
    plan: int
    reason: str = ""


class Deliver(NamedTuple):
    """Give the tensors to the running step."""

    run: Any
    transfer: int
    values: Any


class Abort(NamedTuple):
    """Stop the running step; ``lost`` names a peer whose loss is the reason."""

    run: Any
    reason: str
    lost: str = ""


Instruction = Start | Refuse | Deliver | Abort
#: A task at one of its starts: its name and incarnation. The own task is OWN.
MasterStart = tuple[str, int]
OWN: MasterStart = ("", 0)


class _Running(NamedTuple):
    peers: frozenset[str]
    asker: str
    run: Any


@dataclass
class _Held:
    since: float
    transfers: list[tuple[int, Any]] = field(default_factory=list)


@dataclass
class _PlanOfMaster:
    session: int
    master: MasterStart
    ready: bool = False
    #: The tasks that it takes tensors from or sends them to.
    peers: frozenset[str] = frozenset()
    #: The tasks that have asked for steps of it.
    askers: set[str] = field(default_factory=set)


class WorkerMachine:
    """What a worker does about each message. Every method is atomic and returns at once.

    Args:
        hold: tensors that came before their step was asked for are dropped after so many seconds.
        orphan: plans are dropped when their master was away for so many seconds, or another start
            of it is there.
    """

    def __init__(self, hold: float = 60.0, orphan: float = 60.0) -> None:
        self._lock = threading.Lock()
        self._hold, self._orphan = hold, orphan
        self._plans: dict[int, _PlanOfMaster] = {}
        #: When each master of a plan was last there.
        self._masters: dict[MasterStart, float] = {}
        self._running: dict[int, _Running] = {}
        self._held: dict[int, _Held] = {}
        #: Steps that need nothing more; with a reason those that nobody has asked for yet.
        self._ended: OrderedDict[int, str] = OrderedDict()

    # -- plans ------------------------------------------------------------------------------------

    def plan_asked(self, plan: int, session: int, master: MasterStart, now: float) -> None:
        """A plan is to be made ready, which takes a while."""
        with self._lock:
            self._plans[plan] = _PlanOfMaster(session, master)
            self._masters[master] = now

    def plan_ready(self, plan: int, peers: Iterable[str]) -> bool:
        """Steps of this plan may come; false if it was dropped meanwhile."""
        with self._lock:
            known = self._plans.get(plan)
            if known is None:
                return False
            known.peers, known.ready = frozenset(peers), True
            return True

    def master_of(self, plan: int) -> MasterStart | None:
        """Whose plan it is; None if it was dropped."""
        with self._lock:
            known = self._plans.get(plan)
            return None if known is None else known.master

    def plans_dropped(self, plans: Iterable[int], session: int = 0) -> None:
        """No more steps of these plans, and of all those of a session."""
        with self._lock:
            gone = set(plans) | {p for p, k in self._plans.items() if k.session == session}
            self._drop(gone)

    def _drop(self, plans: Iterable[int]) -> None:
        for plan in plans:
            self._plans.pop(plan, None)
        # Masters without plans need not be watched.
        masters = {p.master for p in self._plans.values()}
        for master in self._masters.keys() - masters:
            del self._masters[master]

    def has_session(self, session: int) -> bool:
        """Whether a plan of a session is here, or being made ready."""
        with self._lock:
            return any(p.session == session for p in self._plans.values())

    def orphans(self, now: float, present: Callable[[MasterStart], bool]) -> list[int]:
        """Sessions whose masters were away for long, or were started again; their plans are dropped
        by this."""
        with self._lock:
            there = {task for task, start in self._masters if present((task, start))}
            for master, seen in list(self._masters.items()):
                # The own task cannot be away.
                if master == OWN or present(master):
                    self._masters[master] = now
                elif now - seen <= self._orphan and master[0] not in there:
                    continue
                else:
                    del self._masters[master]
            gone = [n for n, p in self._plans.items() if p.master not in self._masters]
            sessions = {self._plans[n].session for n in gone}
            for plan in gone:
                del self._plans[plan]
            return sorted(sessions)

    # -- steps ------------------------------------------------------------------------------------

    def run_asked(self, step: int, plan: int, asker: str, run: Any) -> Start | Refuse | None:
        """``asker`` wants the part of a step; ``run`` stands for it in later instructions."""
        with self._lock:
            if step in self._running:
                return None
            if step in self._ended:
                # The cancellation overtook the request. Who asked still waits for one answer, once.
                reason = self._ended[step]
                self._ended[step] = ""
                return Refuse(step, plan, reason) if reason else None
            # Tensors that overtook this message.
            held = self._held.pop(step, None)
            known = self._plans.get(plan)
            if known is None or not known.ready or run is None:
                self._mark(step)
                return Refuse(step, plan)
            known.askers.add(asker)
            self._running[step] = _Running(known.peers, asker, run)
            return Start(run, held.transfers if held is not None else [])

    def tensors_came(self, step: int, transfer: int, values: Any, now: float) -> Deliver | None:
        """The tensors of a transfer have arrived."""
        with self._lock:
            running = self._running.get(step)
            if running is not None:
                return Deliver(running.run, transfer, values)
            if step not in self._ended:
                held = self._held.get(step)
                if held is None:
                    held = self._held[step] = _Held(now)
                held.transfers.append((transfer, values))
            return None

    def ended(self, step: int) -> None:
        """The part has run or failed."""
        with self._lock:
            if self._running.pop(step, None) is not None:
                self._mark(step)

    def cancel_asked(self, step: int, reason: str) -> Abort | None:
        """The asker gives the step up, perhaps before its other message has arrived."""
        with self._lock:
            running = self._running.get(step)
            if running is not None:
                # Not ended yet: the part says so itself, when nothing of it happens any more.
                return Abort(running.run, reason)
            if step not in self._ended:
                self._held.pop(step, None)
                self._mark(step, reason or "The step was cancelled.")
            return None

    def peer_lost(self, peer: str, reason: str) -> list[Abort]:
        """A link to a peer is gone: steps that it asked for, or that need its tensors, may have
        lost messages by this."""
        with self._lock:
            return [
                Abort(r.run, reason, peer)
                for r in self._running.values()
                if r.asker == peer or peer in r.peers
            ]

    def watchers(self, peer: str) -> set[str]:
        """Who must hear that the link to a peer was lost: tensors may be lost whose step does not
        run here, because it has not begun yet or the own part of it has ended."""
        with self._lock:
            found: set[str] = set()
            for plan in self._plans.values():
                if peer in plan.peers:
                    found |= plan.askers | plan.peers | {plan.master[0]}
            return found - {peer, OWN[0]}

    def tick(self, now: float) -> None:
        """Time has passed: drop what came for steps that nobody asked for."""
        with self._lock:
            for step in [s for s, h in self._held.items() if now - h.since > self._hold]:
                del self._held[step]
                self._mark(step)

    def _mark(self, step: int, reason: str = "") -> None:
        self._ended[step] = reason
        if len(self._ended) > MAX_MARKS:
            self._ended.popitem(last=False)

    def running(self) -> list[Any]:
        """What stands for each running step."""
        with self._lock:
            return [r.run for r in self._running.values()]

    @property
    def held(self) -> int:
        """How many steps have tensors waiting for them."""
        return len(self._held)

    @property
    def plans(self) -> int:
        """How many plans are here, or being made ready."""
        return len(self._plans)


__all__ = ["OWN", "Abort", "Deliver", "MasterStart", "Refuse", "Start", "WorkerMachine"]
