"""Variables that move, as a master sees it: plans are made ahead, steps held for a moment."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial
from typing import Protocol

from headrace.distributed.master.plans import ClusterPlan
from headrace.distributed.protocol import step_pb2 as pb
from headrace.distributed.wire.failures import to_failure
from headrace.errors import AbortedError, OpError
from headrace.executor.threads import step_threads
from headrace.step.moved import MovedVariables, groups_with

__all__ = ["HeldSteps"]

_log = logging.getLogger("headrace.distributed")

#: Steps are held so long (seconds) for a task that says nothing more.
_HOLD_SECONDS = 10.0
#: Of the plans of a session so many are made ahead, those that ran most; others when they run.
_MOST_AHEAD = 8
#: Steps that compile are waited for so long before others are held; with so long between two looks.
_COMPILE_SECONDS, _LOOK = 20.0, 0.02

#: Sends an answer to the task whose variables move.
Reply = Callable[[pb.MoveSaid], None]


class PlanHolder(Protocol):
    """A session of the master."""

    graph: object
    moved: MovedVariables
    plans: dict[int, ClusterPlan]


class _Hold:
    """Steps that are held for one move, or for a step that runs alone."""

    def __init__(self, source: str, to: str, keys: frozenset[str], since: float) -> None:
        self.source = source
        self._stays = to == source
        self.keys = keys
        self.since = since
        self.plans: set[ClusterPlan] = set()
        self.running: set[object] = set()

    def lets_through(self, plan: ClusterPlan) -> bool:
        """Whether steps of a plan are not held: they run alone by themselves."""
        return self._stays and plan.is_alone


class HeldSteps:
    """What a master does for variables that move.

    Args:
        moved: where variables are, as the master knows it.
        sessions: gives its sessions; ``task``: that of the master.

    Attributes:
        clock: tells seconds.
    """

    def __init__(
        self, task: str, moved: MovedVariables, sessions: Callable[[], Iterable[PlanHolder]]
    ) -> None:
        self._task = task
        self._moved = moved
        self._sessions = sessions
        self._held: dict[int, _Hold] = {}
        self._over: deque[int] = deque(maxlen=256)
        self._lock = threading.Lock()
        self.clock: Callable[[], float] = time.monotonic

    def told(self, source: str, message: pb.MoveTold, reply: Reply) -> None:
        """The task that has the variables says what is to be done."""
        if message.stage == pb.MoveTold.PREPARE:
            step_threads.submit(self._prepare, message, reply)
        elif message.stage == pb.MoveTold.HOLD and message.renew:
            self._renew(message, reply)
        elif message.stage == pb.MoveTold.HOLD:
            self._hold(source, message, reply)
        else:
            self._end(message)

    def _users(self, keys: Iterable[str]) -> Iterator[tuple[PlanHolder, list[ClusterPlan]]]:
        """The sessions that use some of the variables, with the plans by which they do."""
        for session in self._sessions():
            plans = [p for p in list(session.plans.values()) if not p.variables.isdisjoint(keys)]
            if plans and session.moved is self._moved:
                yield session, plans

    def _touched(self, keys: Iterable[str]) -> list[ClusterPlan]:
        """The plans that use some of the variables."""
        return [plan for _, plans in self._users(keys) for plan in plans]

    # -- plans ------------------------------------------------------------------------------------

    def _prepare(self, message: pb.MoveTold, reply: Reply) -> None:
        said = pb.MoveSaid(move=message.move, stage=message.stage)
        keys = set(message.keys)
        try:
            also = self._joined_with(keys)
            if also:
                said.also.extend(sorted(also))
            else:
                self._make_ahead(
                    message.move, self._moved.now().with_more(keys, message.task), keys
                )
        except Exception as error:
            said.failure.CopyFrom(to_failure(error, self._task))
        reply(said)

    def _joined_with(self, keys: set[str]) -> set[str]:
        """Other variables that must be where these are, in graphs of sessions that use them."""
        return set().union(*self.groups(keys)) - keys

    def groups(self, keys: Collection[str]) -> list[set[str]]:
        """Variables that must be at one task, as the graphs of sessions have it that use some of
        these; a variable may be in several groups."""
        users = list(self._users(keys))
        return [group for session, _ in users for group in groups_with(session.graph, keys)]

    def _make_ahead(self, move: int, moved: MovedVariables, keys: set[str]) -> None:
        plans = sorted(self._touched(keys), key=lambda p: -p.runs)[:_MOST_AHEAD]
        for plan in plans:
            plan.prepare(moved, move)
        # Else all would wait for one that compiles what the move before has made new.
        end = time.monotonic() + _COMPILE_SECONDS
        pause = threading.Event()
        while any(p.slow_steps and p.gate.is_busy for p in plans) and time.monotonic() < end:
            pause.wait(_LOOK)
        if move in self._over:
            for plan in plans:
                plan.unprepare(move)

    # -- steps ------------------------------------------------------------------------------------

    def _hold(self, source: str, message: pb.MoveTold, reply: Reply) -> None:
        move = message.move
        hold = _Hold(source, message.task, frozenset(message.keys), self.clock())
        said = pb.MoveSaid(move=move, stage=message.stage)
        with self._lock:
            known = self._held.get(move)
            asked_again = known is not None and not known.running
            if known is None and move not in self._over:
                self._held[move] = hold
                hold.plans = {p for p in self._touched(hold.keys) if not hold.lets_through(p)}
                hold.running = {hold, *hold.plans}
        if not hold.running:
            if asked_again:
                reply(said)
            return

        def empty(what: object) -> None:
            with self._lock:
                is_last = hold.running == {what}
                hold.running.discard(what)
            if is_last:
                reply(said)

        for plan in list(hold.plans):
            plan.gate.hold(move, partial(empty, plan))
        with self._lock:
            is_over = self._held.get(move) is not hold
        if is_over:  # some gates were closed after that
            for plan in hold.plans:
                plan.gate.release(move)
        empty(hold)

    def _renew(self, message: pb.MoveTold, reply: Reply) -> None:
        """Steps that are held are held for longer; those that are not any more, are not again."""
        said = pb.MoveSaid(move=message.move, stage=message.stage, renew=True)
        with self._lock:
            hold = self._held.get(message.move)
            if hold is not None:
                hold.since = self.clock()
        if hold is None:
            text = f"{self._task} does not hold these steps any more."
            said.failure.CopyFrom(to_failure(AbortedError(None, None, text), self._task))
        reply(said)

    def added(self, plan: ClusterPlan) -> None:
        """There is a new plan: its steps are held, too, if its variables move."""
        with self._lock:
            held = [(m, h) for m, h in self._held.items() if not plan.variables.isdisjoint(h.keys)]
            for move, hold in held:
                if plan not in hold.plans and not hold.lets_through(plan):
                    hold.plans.add(plan)
                    plan.gate.hold(move, lambda: None)

    def _end(self, message: pb.MoveTold) -> None:
        if message.epoch:
            self._moved.set(message.epoch, dict(message.moved))
        if message.move:
            self._over.append(message.move)
            self._release([message.move])
            if not message.committed:
                step_threads.submit(self._unprepare, message.move, frozenset(message.keys))

    def _unprepare(self, move: int, keys: frozenset[str]) -> None:
        for plan in self._touched(keys):
            try:
                plan.unprepare(move)
            except OpError as error:
                _log.debug("%s: a plan that was made ahead is not dropped: %s", self._task, error)

    def _release(self, moves: Iterable[int]) -> None:
        for move in moves:
            with self._lock:
                hold = self._held.pop(move, None)
            for plan in hold.plans if hold is not None else ():
                plan.gate.release(move)

    def lost(self, task: str) -> None:
        """A link to a task is lost: steps are not held for it any more."""
        with self._lock:
            moves = [m for m, hold in self._held.items() if hold.source == task]
        self._release(moves)

    def tick(self, now: float) -> None:
        """Time has passed."""
        if self._held:
            with self._lock:
                old = [m for m, h in self._held.items() if now - h.since > _HOLD_SECONDS]
            self._release(old)
