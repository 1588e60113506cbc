"""The steps of a worker as a state machine: events in, instructions out, no I/O, no clock.

The states of a step in one task:

    (unknown) ──tensors came──> HELD ──run asked──> RUNNING ──ended──> ENDED
        │                        │                     │                 ▲
        └──────run asked─────────┼─────────────────────┘   cancel, peer lost
                                 └─────────────cancel, too old───────────┘

Messages may come in any order and more than once: tensors may overtake the message that starts
their step, and a step may be cancelled before it was asked for. Of an ended step a mark is kept, so
that what still arrives for it is dropped.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

#: Marks of ended steps to keep; tensors that come later than that would be held, then dropped.
MAX_MARKS = 1 << 16
#: Tensors that came before their step was asked for are dropped after so many seconds.
HOLD_SECONDS = 60.0


class Start(NamedTuple):
    """Run the part; these transfers have arrived already."""

    run: Any
    held: list[tuple[int, Any]]


class Refuse(NamedTuple):
    """Answer that this task does not know the plan."""

    step: int
    plan: int


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


class _Running(NamedTuple):
    plan: int
    asker: str
    run: Any


@dataclass
class _Held:
    since: float
    transfers: list[tuple[int, Any]] = field(default_factory=list)


class WorkerMachine:
    """What a worker does about each message. Every method is atomic and returns at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        #: The peers of each plan: tasks it takes tensors from or sends them to.
        self._plans: dict[int, frozenset[str]] = {}
        self._running: dict[int, _Running] = {}
        self._held: dict[int, _Held] = {}
        self._ended: OrderedDict[int, None] = OrderedDict()

    def plan_registered(self, plan: int, peers: Iterable[str]) -> None:
        """Steps of this plan may come."""
        with self._lock:
            self._plans[plan] = frozenset(peers)

    def plan_dropped(self, plan: int) -> None:
        """No more steps of this plan."""
        with self._lock:
            self._plans.pop(plan, None)

    def run_asked(self, step: int, plan: int, asker: str, run: Any) -> Start | Refuse | None:
        """``asker`` wants the part of a step; ``run`` stands for it in later instructions."""
        with self._lock:
            if step in self._running or step in self._ended:
                return None
            held = self._held.pop(step, None)
            if plan not in self._plans or run is None:
                self._mark(step)
                return Refuse(step, plan)
            self._running[step] = _Running(plan, asker, run)
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
                return Abort(running.run, reason)
            if step not in self._ended:
                self._held.pop(step, None)
                self._mark(step)
            return None

    def peer_lost(self, peer: str, reason: str) -> list[Abort]:
        """A peer is gone: steps that it asked for, or that need its tensors, cannot go on."""
        with self._lock:
            return [
                Abort(r.run, reason, peer)
                for r in self._running.values()
                if r.asker == peer or peer in self._plans.get(r.plan, ())
            ]

    def tick(self, now: float) -> None:
        """Time has passed: drop what came for steps that nobody asked for."""
        with self._lock:
            for step in [s for s, h in self._held.items() if now - h.since > HOLD_SECONDS]:
                del self._held[step]
                self._mark(step)

    def _mark(self, step: int) -> None:
        self._ended[step] = None
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


__all__ = ["Abort", "Deliver", "Refuse", "Start", "WorkerMachine"]
