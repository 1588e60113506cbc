"""A task that has variables lets masters hold steps: to give the variables away, or for a save.

For a save, a master asks the tasks that have the variables, which ask all masters whose steps use
them, as for a move. When no such step is under way, that master runs one step alone: the values
that it takes are of the same moment on all tasks. Then steps go on. Whoever asks has a limit of
time, which it may have renewed, and is told if steps were not held for all of it.
"""

from __future__ import annotations

import itertools
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Collection
from typing import Any

from headrace.distributed.master.alone import MOST_SECONDS, STILL_SECONDS
from headrace.distributed.master.master import Master
from headrace.distributed.moving.rules import Giver
from headrace.distributed.protocol import step_pb2 as pb
from headrace.distributed.services.orphans import start_of
from headrace.distributed.transport.base import PipeBroken
from headrace.distributed.transport.link import Link
from headrace.distributed.wire.failures import to_failure
from headrace.distributed.wire.messages import pack
from headrace.distributed.worker.machine import OWN, MasterStart
from headrace.distributed.worker.worker import RegisteredPart, Worker
from headrace.errors import AbortedError, DeadlineExceededError, InvalidArgumentError, OpError
from headrace.executor.threads import step_threads
from headrace.files.progress import progress

__all__ = ["LOOK", "HoldReason", "Holding"]

#: Between two looks at parts of steps that run, in seconds.
LOOK = 0.002
#: Nobody waits longer for steps to end, in seconds.
_LONGEST_WAIT = 600.0


class HoldReason:
    """What masters hold steps for, now.

    Attributes:
        number: by which masters know it; ``task``: where the variables go, or stay.
        told: the masters that were told anything.
    """

    def __init__(self, number: int, task: str) -> None:
        self.number = number
        self.task = task
        self.rules = Giver()
        self.keys: frozenset[str] = frozenset()
        self.told: set[MasterStart] = set()


class _Hold(HoldReason):
    """Steps are held for a save. ``asked``: the number by which its master knows it."""

    def __init__(self, number: int, task: str, asked: int, source: MasterStart, now: float) -> None:
        super().__init__(number, task)
        self.asked = asked
        self.source = source
        #: A master that held its steps was lost: it may let them go.
        self.is_broken = False
        #: Masters that could not be told: if they come back they know nothing of it.
        self.absent: set[MasterStart] = set()
        #: Masters that have not said yet that they hold them for longer, and since when they are
        #: asked to.
        self.renewing: set[MasterStart] = set()
        self.renewed_at = now
        #: Until then all hold them.
        self.until = now + MOST_SECONDS

    def renewed(self) -> None:
        """Time counts from when all were asked, once all have answered."""
        if not self.renewing and not self.is_broken:
            self.until = self.renewed_at + MOST_SECONDS


class Holding:
    """What a task does so that masters hold steps.

    Args:
        task: the own one; ``worker``, ``master``: of it.

    Attributes:
        clock: tells seconds.
    """

    def __init__(self, task: str, worker: Worker, master: Master) -> None:
        self.task = task
        self.clock: Callable[[], float] = time.monotonic
        self._worker = worker
        self._master = master
        self._peers = worker.peers
        self._numbers = itertools.count(secrets.randbits(40) << 20 | 1)
        self._now: HoldReason | None = None
        #: Steps are held for one thing at a time.
        self._one = threading.Lock()
        self._changed = threading.Condition()
        self._closed = threading.Event()
        #: Holds for saves, as their masters know them: those that were asked for, and some of those
        #: that are over.
        self._asked_for: set[int] = set()
        self._ended: deque[int] = deque(maxlen=64)
        worker.on_register = self._registered
        master.alone.own = self.steps_asked

    # -- masters ----------------------------------------------------------------------------------

    def _tell_all(
        self, reason: HoldReason, told: pb.MoveTold, masters: Collection[MasterStart] | None = None
    ) -> None:
        """Tell masters; by default all that were told of this before."""
        for master in list(reason.told) if masters is None else masters:
            self._tell(reason, told, master)

    def _tell(self, reason: HoldReason, told: pb.MoveTold, master: MasterStart) -> None:
        message = pb.MoveTold(move=reason.number, keys=sorted(reason.keys), task=reason.task)
        message.MergeFrom(told)
        with self._changed:
            reason.told.add(master)
        if master == OWN:
            self._master.held_steps.told(self.task, message, self._said_own)
            return
        link = self._peers.known(master[0])
        try:
            if link is None or link.peer.incarnation != master[1]:
                raise PipeBroken("it is not there")
            link.send(pack(message), block=False)
        except PipeBroken:
            with self._changed:
                reason.rules.lost(master)
                if isinstance(reason, _Hold):
                    reason.is_broken |= told.renew and master not in reason.absent
                    reason.absent.add(master)
                self._changed.notify_all()

    def _registered(self, master: MasterStart, part: RegisteredPart) -> None:
        """A part of a new plan is here: its master may not know that steps are held."""
        reason = self._now
        if reason is None or part.keys.isdisjoint(reason.keys):
            return
        with self._changed:
            is_told = reason.rules.joined(master)
        if is_told:
            self._tell(reason, pb.MoveTold(stage=pb.MoveTold.HOLD), master)

    def _said_own(self, said: pb.MoveSaid) -> None:
        self._said(OWN, said)

    def _said(self, master: MasterStart, said: pb.MoveSaid) -> None:
        """A master, or who gets variables, has answered."""
        with self._changed:
            reason = self._now
            if reason is None or said.move != reason.number:
                return
            if said.renew:
                self._renewed(reason, master, said)
            elif said.stage == pb.MoveTold.HOLD:
                reason.rules.held(master)
            else:
                self._answered(reason, master, said)
            self._changed.notify_all()

    def _answered(self, reason: HoldReason, master: MasterStart, said: pb.MoveSaid) -> None:
        """Something else than that steps are held."""

    def _lost_master(self, master: MasterStart) -> None:
        """A link is lost."""
        with self._changed:
            reason = self._now
            if reason is not None:
                reason.rules.lost(master)
                if isinstance(reason, _Hold) and master in reason.told:
                    reason.is_broken = True
            self._changed.notify_all()
        if isinstance(reason, _Hold) and reason.source == master:
            self._end_hold(reason.asked)

    # -- saves ------------------------------------------------------------------------------------

    def on_hold(self, link: Link, message: Any, buffers: list[Any]) -> None:
        """A master asks for steps to be held, or to go on; or answers so."""
        if isinstance(message, pb.StepsHeld):
            self._master.alone.said(link.peer.task, message)
            return

        def reply(said: pb.StepsHeld) -> None:
            try:
                link.send(pack(said), block=False)
            except PipeBroken:
                self._end_hold(said.hold)

        self.steps_asked(start_of(link), message, reply)

    def steps_asked(
        self, source: MasterStart, message: pb.HoldSteps, reply: Callable[[pb.StepsHeld], None]
    ) -> None:
        """The same, of any master."""
        number = message.hold
        said = pb.StepsHeld(hold=number, release=message.release, renew=message.renew)
        if message.release or message.renew:
            said.progress = progress()
            error = self._end_hold(number) if message.release else self._renew(number)
            if error is not None:
                said.failure.CopyFrom(to_failure(error, self.task))
            reply(said)
            return
        with self._changed:
            if number in self._asked_for:
                return  # it was asked twice, and the answer to the first is that to both
            self._asked_for.add(number)

        def hold() -> None:
            try:
                self._hold_steps(source, message)
            except OpError as error:
                self._end_hold(number)
                said.failure.CopyFrom(to_failure(error, self.task))
            reply(said)

        step_threads.submit(hold)

    def _hold_steps(self, source: MasterStart, message: pb.HoldSteps) -> None:
        """Let masters begin no more steps with the variables, and wait for those under way."""
        if not 0 <= message.seconds <= _LONGEST_WAIT:
            text = f"Steps cannot be waited for {message.seconds:g} s."
            raise InvalidArgumentError(None, None, text)
        end = time.monotonic() + message.seconds
        if not self._one.acquire(timeout=message.seconds):
            text = f"Variables of {self.task} move, or are being saved, for {message.seconds:g} s."
            raise DeadlineExceededError(None, None, text)
        hold = _Hold(next(self._numbers), self.task, message.hold, source, self.clock())
        hold.keys = frozenset(message.keys)
        with self._changed:
            is_over = message.hold in self._ended
            if not is_over:
                self._now = hold
        if is_over:
            self._one.release()
            raise AbortedError(None, None, "Nobody waits for that any more.")
        self._ask_masters(hold)
        with self._changed:
            while not (hold.rules.is_closed and not self._worker.runs_any(hold.keys)):
                left = end - time.monotonic()
                if left <= 0 or self._now is not hold or self._closed.is_set():
                    waiting = sorted(name or self.task for name, _ in hold.rules.waiting)
                    text = (
                        f"Steps that use {', '.join(sorted(hold.keys))} at {self.task} did not end "
                        f"within {message.seconds:g} s"
                        + (f": those of {', '.join(waiting)}." if waiting else ".")
                    )
                    raise DeadlineExceededError(None, None, text)
                self._changed.wait(min(left, LOOK if hold.rules.is_closed else 0.1))
            error = self._not_held(hold)
        if error is not None:
            raise error

    def _ask_masters(self, hold: _Hold) -> None:
        """Ask all that may use the variables to hold their steps."""
        me: MasterStart = self.task, -1
        with self._changed:
            hold.rules.prepare(())
            hold.rules.hold([me])
        # Whoever registers from now on is told. Those that have before are found here.
        masters = self._worker.masters_of(hold.keys)
        with self._changed:
            for master in masters:
                hold.rules.joined(master)
            hold.rules.held(me)
        self._tell_all(hold, pb.MoveTold(stage=pb.MoveTold.HOLD), masters)
        if self._now is not hold:  # it ended meanwhile, and these may not know
            self._tell_all(hold, pb.MoveTold(stage=pb.MoveTold.END))

    def _hold_of(self, asked: int) -> _Hold | None:
        hold = self._now
        return hold if isinstance(hold, _Hold) and hold.asked == asked else None

    def _not_held(self, hold: _Hold | None) -> OpError | None:
        """Why steps were not held until now."""
        if hold is not None and (hold.is_broken or any(map(self._is_there, hold.absent))):
            return AbortedError(None, None, f"{self.task} lost a task whose steps it had held.")
        if hold is not None and self.clock() < hold.until:
            return None
        text = (
            f"Steps were not held at {self.task} for all of the time: for {MOST_SECONDS:g} s "
            "nobody asked for that any more. Either the task that saves stood still, or nothing "
            f"was written for {STILL_SECONDS:g} s. What was saved may have parts of steps, and "
            "does not count. See whether the storage answers; consistent_checkpoints=False does "
            "without holding steps."
        )
        return DeadlineExceededError(None, None, text)

    def _is_there(self, master: MasterStart) -> bool:
        link = self._peers.known(master[0])
        return link is not None and link.peer.incarnation == master[1]

    def _renew(self, asked: int) -> OpError | None:
        """Let masters hold their steps for longer; why they cannot be."""
        with self._changed:
            hold = self._hold_of(asked)
            error = self._not_held(hold)
            if hold is None or error is not None:
                return error
            if hold.renewing or not hold.rules.is_closed:
                return None
            masters = hold.told - hold.absent
            hold.renewing, hold.renewed_at = set(masters), self.clock()
            hold.renewed()
        self._tell_all(hold, pb.MoveTold(stage=pb.MoveTold.HOLD, renew=True), masters)
        return None

    def _renewed(self, reason: HoldReason, master: MasterStart, said: pb.MoveSaid) -> None:
        """A master holds its steps for longer, or has let them go."""
        if isinstance(reason, _Hold):
            reason.is_broken |= said.HasField("failure")
            reason.renewing.discard(master)
            reason.renewed()

    def _end_hold(self, asked: int) -> OpError | None:
        """Let steps go on; why they were not held until now."""
        with self._changed:
            self._ended.append(asked)
            self._asked_for.discard(asked)
            hold = self._hold_of(asked)
            error = self._not_held(hold)
            if hold is None or not hold.rules.give_up():
                return error
            self._now = None
            self._changed.notify_all()
        self._tell_all(hold, pb.MoveTold(stage=pb.MoveTold.END))
        self._one.release()
        return error

    def tick(self, now: float) -> None:
        """Time has passed: steps are not held for a master that says nothing more."""
        hold = self._now
        if isinstance(hold, _Hold) and now >= hold.until:
            self._end_hold(hold.asked)
