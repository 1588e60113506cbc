"""Variables of a task that go to another one, and those that come: messages, threads and clocks.

`moving.rules` decides; one thread, that of the control call, makes a move, and answers come in the
threads of links.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Collection, Iterable
from typing import Any, NamedTuple

from headrace.distributed.master.master import Master
from headrace.distributed.moving.arrivals import Arrivals
from headrace.distributed.moving.followed import Followed
from headrace.distributed.moving.settling import MoveRecord
from headrace.distributed.protocol import step_pb2 as pb
from headrace.distributed.services.holding import LOOK, Holding, HoldReason
from headrace.distributed.services.orphans import Orphans, start_of
from headrace.distributed.standby.changes import encoded, handle_of
from headrace.distributed.standby.kinds import VARIABLE
from headrace.distributed.standby.unsettled import UnsettledMoves, unsettled_of
from headrace.distributed.transport.base import PipeBroken
from headrace.distributed.transport.link import Link
from headrace.distributed.wire.failures import to_error, to_failure
from headrace.distributed.wire.messages import pack
from headrace.distributed.worker.machine import MasterStart
from headrace.distributed.worker.worker import Worker
from headrace.errors import (
    AbortedError,
    DeadlineExceededError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    OpError,
    UnavailableError,
    UnimplementedError,
)
from headrace.executor.resources import ResourceHandle
from headrace.ops.core.copied import CopiedResource
from headrace.step.moved import MOVING, key_of
from headrace.structured_logs import tell

__all__ = ["MoveReport", "Moves"]

_log = logging.getLogger("headrace.distributed")

#: Masters make their plans ahead within so many seconds.
_PREPARE_SECONDS = 60.0
#: Steps are held so long (seconds) for those under way, the first time; then twice as long, up to
#: the second: steps of others may wait for one that is held.
_HOLD_SECONDS, _MOST_HOLD_SECONDS = 1.0, 8.0
#: The target takes a piece within so many seconds.
_COPY_SECONDS = 60.0
#: Changes are sent so many times while steps go on, if that leaves fewer each time.
_ROUNDS = 4
#: So many bytes go in no time.
_LITTLE = 1 << 20
#: Between two attempts, in seconds.
_PAUSE = 0.5


class MoveReport(NamedTuple):
    """What a move has done.

    Attributes:
        keys: of the variables, with those that had to go along.
        bytes: of their values.
        seconds: that it took; ``held``: for which steps were held.
        attempts: how many there were.
    """

    keys: tuple[str, ...]
    bytes: int
    seconds: float
    held: float
    attempts: int


class _Move(HoldReason):
    """One attempt."""

    def __init__(self, number: int, task: str, link: Link, followed: Followed) -> None:
        super().__init__(number, task)
        self.link = link
        self.followed = followed
        #: Of those that have a value.
        self.handles: dict[str, ResourceHandle] = {}
        self.also: set[str] = set()
        self.error: OpError | None = None
        self.kept = 0
        #: That of the record which is to be changed.
        self.epoch = 0
        #: Whether the copy of this task knows that it may be made.
        self.is_marked = False
        self.held_since = 0.0


class Moves(Holding):
    """What a task does for variables that move.

    Args:
        task: the own one; ``worker``, ``master``: of it.

    Attributes:
        record: that of the cluster; None where there is none.
        why_not: why no variables can come here now; "" if they can.
    """

    def __init__(self, task: str, worker: Worker, master: Master) -> None:
        super().__init__(task, worker, master)
        self.record: MoveRecord | None = None
        self.why_not: Callable[[], str] = lambda: ""
        self._store = worker.store
        self.arrivals = Arrivals(
            worker.store,
            worker.closures.back,
            lambda key: master.moved.task_of(key) == task,
            self._when_kept,
            self._unsettled,
        )
        worker.closures.elsewhere = lambda key: master.moved.task_of(key)
        worker.on_refuse = self._refused
        worker.arriving = lambda: self.arrivals.keys
        self._orphans = Orphans(
            task, self.arrivals, self._peers, master.addresses, lambda: self._record, self._closed
        )

    # -- the call ---------------------------------------------------------------------------------

    def move(self, keys: Collection[str], to: str, timeout: float = 60.0) -> MoveReport:
        """Give variables, and what must be where they are, to another task; waits for it.

        Args:
            keys: see `key_of`.
            to: full name of the task.
            timeout: in seconds; what has not begun to be final by then is given up.

        Raises:
            InvalidArgumentError: if ``to`` is this task, or no task.
            NotFoundError: if this task does not have one of the variables.
            UnimplementedError: if a table is to leave a task that has a copy.
            DeadlineExceededError: if steps that use them did not end in time; nothing has moved.
            UnavailableError: if the other task is lost; nothing has moved.
        """
        began = time.monotonic()
        if not self._one.acquire(timeout=timeout):
            text = f"Other variables move from {self.task}, for more than {timeout:g} s."
            raise UnavailableError(None, None, text)
        try:
            self._check(keys, to)
            return self._try(set(keys), to, began, timeout)
        finally:
            self._one.release()

    def _check(self, keys: Collection[str], to: str) -> None:
        if to == self.task or to not in self._master.addresses:
            known = ", ".join(sorted(set(self._master.addresses) - {self.task}))
            text = f"Variables of {self.task} cannot move to {to!r}: there are {known}."
            raise InvalidArgumentError(None, None, text)
        self._record.begin()
        self._check_kinds(keys)
        missing = sorted(set(keys) - self._own().keys())
        if missing:
            text = f"{self.task} has no variable {', '.join(missing)} to give to {to}."
            raise NotFoundError(None, None, text)

    def _check_kinds(self, keys: Iterable[str]) -> None:
        own = self._own()
        tables = sorted(k for k in keys if k in own and own[k].kind != VARIABLE)
        if tables and self._worker.journal is not None:
            text = (
                f"{self.task} has a copy (`replicas=1`): such servers keep {', '.join(tables)}. "
                "Only variables move from them, for now."
            )
            raise UnimplementedError(None, None, text)

    @property
    def _record(self) -> MoveRecord:
        if self.record is None:
            text = "There is no record of this cluster to write down where variables are."
            raise FailedPreconditionError(None, None, text)
        return self.record

    def _when_kept(self, call: Callable[[], None]) -> None:
        """Call when the copy of this task, if it has one, has everything."""
        journal = self._worker.journal
        if journal is None:
            call()
        else:
            journal.when_kept(call)

    def _unsettled(self) -> UnsettledMoves | None:
        return None if self._worker.journal is None else unsettled_of(self._store)

    def sizes(self) -> dict[str, int]:
        """Bytes of the variables that are here, by their keys."""
        return {
            key: int(getattr(self._store.known(handle), "nbytes", 0))
            for key, handle in self._own().items()
        }

    def what_is_left(self) -> list[str]:
        """What has not moved away, of what sessions share."""
        return sorted(
            key_of(key) if key.kind in MOVING else f"{key.kind} {key.name}"
            for key, value in self._store.all_known().items()
            if isinstance(key, ResourceHandle) and not key.is_private and not _is_empty(value)
        )

    def _own(self) -> dict[str, ResourceHandle]:
        """The variables that have a value here, by their keys."""
        return {
            key_of(handle): handle
            for handle, value in self._store.all_known().items()
            if isinstance(handle, ResourceHandle) and handle.kind in MOVING and not _is_empty(value)
        }

    def _try(self, keys: set[str], to: str, began: float, timeout: float) -> MoveReport:
        hold, attempts = _HOLD_SECONDS, 0
        while True:
            attempts += 1
            left = began + timeout - time.monotonic()
            link = self._peers.link(to, self._master.addresses.of(to), max(0.1, left))
            made = _Move(next(self._numbers), to, link, Followed(self._store))
            try:
                held, size = self._attempt(made, keys, hold)
            except (AbortedError, DeadlineExceededError):
                if self._closed.is_set():
                    raise
                hold = min(2 * hold, _MOST_HOLD_SECONDS)
                if time.monotonic() + _PAUSE + hold > began + timeout:
                    raise
                _log.info("%s keeps %s for now: steps take long", self.task, sorted(keys))
                self._closed.wait(_PAUSE)
                continue
            seconds = time.monotonic() - began
            tell(
                _log,
                "variables_moved",
                "%s: %d variables with %d bytes moved to %s in %.2f s, steps waited %.3f s",
                *(self.task, len(made.keys), size, to, seconds, held),
                task=self.task,
                fields={"variables": len(made.keys), "bytes": size, "to": to, "seconds": seconds},
            )
            return MoveReport(tuple(sorted(made.keys)), size, seconds, held, attempts)

    # -- one attempt ------------------------------------------------------------------------------

    def _attempt(self, move: _Move, keys: set[str], seconds: float) -> tuple[float, int]:
        """Make a move, or let all be as before. Returns how long steps were held, and bytes."""
        self._now = move
        try:
            self._add(move, keys)
            self._copy(move)
            self._prepare(move)
            self._hold(move, seconds)
            self._seal(move)
            values = [self._store.get(h) for h in move.handles.values()]
            size = sum(int(getattr(v, "nbytes", 0)) for v in values)
            del values
            self._commit(move)
            self._let_go(move)
            return time.monotonic() - move.held_since, size
        finally:
            if move.rules.give_up():
                self._worker.open_parts()
                self._tell_all(move, pb.MoveTold(stage=pb.MoveTold.END))
                self._tell_target(move, is_moved=False)
                self._unmark(move)
            move.followed.stop()
            self._now = None

    def _add(self, move: _Move, keys: set[str]) -> None:
        own = self._own()
        more = {key: own[key] for key in keys if key in own}
        move.keys |= keys
        move.handles.update(more)
        move.followed.add(more.values())

    def _copy(self, move: _Move) -> None:
        """Send what is there, and what changes meanwhile, until that is little."""
        left = 0
        for turn in range(_ROUNDS):
            is_whole = False
            while not is_whole:
                is_whole = self._send(move)
            before, left = left, move.followed.bytes_left
            if left <= _LITTLE or (turn and 2 * left > before):
                return

    def _send(self, move: _Move, is_last: bool = False) -> bool:
        """Send what there is to send now; whether the copy has everything then."""
        sequence, changes, is_whole = move.followed.take()
        try:
            message, buffers = encoded(self.task, changes)
        finally:
            move.followed.give_back(changes)
        message.sequence, message.is_whole = sequence, is_whole
        with self._changed:
            move.kept = -1
        try:
            made = pb.MoveCopy(move=move.number, is_last=is_last and is_whole)
            made.copy.CopyFrom(message)
            move.link.send(pack(made), buffers)
        except PipeBroken as error:
            raise self._lost(move, error.reason) from None
        self._await(move, lambda: move.kept >= 0, _COPY_SECONDS)
        return is_whole

    def _prepare(self, move: _Move) -> None:
        """Let masters make their plans ahead; find what must go along."""
        told = pb.MoveTold(stage=pb.MoveTold.PREPARE)
        while True:
            masters = self._worker.masters_of(move.keys)
            with self._changed:
                move.also = set()
                move.rules.prepare(masters)
            self._tell_all(move, told, masters)
            self._await(move, lambda: move.rules.stage == "prepared", _PREPARE_SECONDS)
            # Those without a value go along as well: they will get it where the others are.
            where = self._master.moved
            more = {k for k in move.also - move.keys if where.task_of(k) in ("", self.task)}
            if not more:
                return
            _log.info("%s: %s must go where %s go", self.task, sorted(more), sorted(move.keys))
            self._check_kinds(more)
            move.rules.copy_more()
            self._add(move, more)
            self._copy(move)

    def _hold(self, move: _Move, seconds: float) -> None:
        """Let masters begin no more steps with the variables, and wait for those under way."""
        self._copy(move)
        end = time.monotonic() + seconds
        masters = self._worker.masters_of(move.keys)
        move.held_since = time.monotonic()
        with self._changed:
            move.rules.hold(masters)
        self._tell_all(move, pb.MoveTold(stage=pb.MoveTold.HOLD), masters)
        self._await(move, lambda: move.rules.stage == "closing", seconds)
        self._worker.close_parts(move.keys)

        def is_quiet() -> bool:
            return not self._worker.runs_any(move.keys)

        self._await(move, is_quiet, max(0.0, end - time.monotonic()))
        move.rules.quiet()

    def _seal(self, move: _Move) -> None:
        # Of before the target says that it, and its copy, have everything: whoever serves that copy
        # later changes the record first.
        move.epoch = self._record.begin()
        while not self._send(move, is_last=True):
            pass
        moves = self._unsettled()
        if moves is not None:
            moves.mark(move.handles.values(), arrives=False)
            move.is_marked = True
            known = threading.Event()
            self._when_kept(known.set)
            self._await(move, known.is_set, _COPY_SECONDS)
        with self._changed:
            if move.link.lost:
                raise self._lost(move, move.link.reason)
            move.rules.sealed()

    def _commit(self, move: _Move) -> None:
        """Change the record: from here on there is no way back but what it says."""
        while True:
            try:
                self._record.commit(sorted(move.keys), move.task, move.epoch)
                break
            except (DeadlineExceededError, UnavailableError) as error:
                text = "%s: it is not decided whether %s are at %s: %s"
                _log.warning(text, self.task, sorted(move.keys), move.task, error.message)
            except OpError:
                move.rules.refused()
                raise
            if self._closed.wait(_PAUSE):
                raise AbortedError(None, None, f"{self.task} stops while variables move.")
        move.rules.decided()

    def _let_go(self, move: _Move) -> None:
        """The other task has them."""
        self._worker.give_parts(move.keys, move.task)
        self._tell_target(move, is_moved=True)
        told = self._news(pb.MoveTold(stage=pb.MoveTold.END, committed=True))
        self._tell_all(move, told)
        move.followed.stop()
        with self._store.lock:
            for handle in move.handles.values():
                self._store.drop(handle)
            self._unmark(move)

    def _unmark(self, move: _Move) -> None:
        moves = self._unsettled() if move.is_marked else None
        if moves is not None:
            moves.clear(move.handles.values())

    def _await(self, move: _Move, is_so: Callable[[], bool], seconds: float) -> None:
        """Wait for others.

        Raises:
            OpError: what a master has answered, or that the target is lost.
            DeadlineExceededError: if it takes longer.
        """
        end = time.monotonic() + seconds
        with self._changed:
            while not is_so():
                if move.error is not None:
                    raise move.error
                if move.link.lost or self._closed.is_set():
                    raise self._lost(move, move.link.reason or "this task stops")
                left = end - time.monotonic()
                if left <= 0:
                    raise DeadlineExceededError(None, None, self._late(move, seconds))
                self._changed.wait(min(left, LOOK if move.rules.is_closed else 0.1))
            if move.error is not None:
                raise move.error

    def _late(self, move: _Move, seconds: float) -> str:
        waiting = ", ".join(sorted(name or self.task for name, _ in move.rules.waiting))
        return (
            f"{', '.join(sorted(move.keys))} stay at {self.task}: the move to {move.task} came no "
            f"further than {move.rules.stage!r} within {seconds:.1f} s"
            + (f"; it waits for steps of {waiting}." if waiting else ".")
        )

    def _lost(self, move: _Move, reason: str) -> UnavailableError:
        keys = ", ".join(sorted(move.keys))
        text = f"{keys} stay at {self.task}: {move.task} was lost while they moved: {reason}"
        return UnavailableError(None, None, text)

    # -- masters ----------------------------------------------------------------------------------

    def _tell_target(self, move: _Move, is_moved: bool) -> None:
        told = pb.MoveTold(
            stage=pb.MoveTold.END, move=move.number, committed=is_moved, is_target=True
        )
        with contextlib.suppress(PipeBroken):
            move.link.send(pack(self._news(told) if is_moved else told), block=False)

    def _news(self, told: pb.MoveTold) -> pb.MoveTold:
        """With where all variables are."""
        now = self._master.moved.now()
        told.epoch = now.epoch
        told.moved.update(now.tasks)
        return told

    def _refused(self, link: Link) -> None:
        """A master asks for a part with variables that are elsewhere: it does not know where."""
        with contextlib.suppress(PipeBroken):
            told = self._news(pb.MoveTold(stage=pb.MoveTold.END, committed=True))
            link.send(pack(told), block=False)

    # -- what others say --------------------------------------------------------------------------

    def on_frame(self, link: Link, message: Any, buffers: list[Any]) -> None:
        """A message about a move has arrived."""
        if isinstance(message, pb.MoveCopy):
            error = self._why_not_these(link, message.copy)
            if error is not None:
                said = pb.MoveSaid(move=message.move)
                said.failure.CopyFrom(to_failure(error, self.task))
                link.send(pack(said), block=False)
                return
            self.arrivals.copied(link, message, buffers)
        elif isinstance(message, pb.MoveSaid):
            if message.stage == pb.MoveTold.END:
                self._asked(link, message.move)
            else:
                self._said(start_of(link), message)
        elif message.is_target:
            self._master.moved.set(message.epoch, dict(message.moved))
            self.arrivals.ended(start_of(link), message.move, message.committed)
        else:

            def reply(said: pb.MoveSaid) -> None:
                with contextlib.suppress(PipeBroken):
                    link.send(pack(said), block=False)

            self._master.held_steps.told(link.peer.task, message, reply)

    def _why_not_these(self, link: Link, copy: pb.Copy) -> OpError | None:
        """Why variables that come from another task cannot be taken."""
        if text := self.why_not():
            return UnavailableError(None, None, text)
        move, keys = self._now, {key_of(handle_of(change)) for change in copy.changes}
        if move is not None and keys & move.keys:
            text = f"{self.task} is giving the same variables away, and that is not decided."
            return UnavailableError(None, None, text)
        # What is left here of variables that the record says are elsewhere is of no use to anybody.
        where, own = self._master.moved, self._own()
        twins = sorted(k for k in keys & own.keys() if where.task_of(k) in ("", self.task))
        if not twins:
            return None
        if self.arrivals.keys.issuperset(twins):
            text = f"An earlier copy of {', '.join(twins)} is at {self.task}, and is not settled."
            return AbortedError(None, None, text)
        text = (
            f"{self.task} has variables of the same names of its own: {', '.join(twins)}. They "
            f"would be written over by those of {link.peer.task}. Give them other names, or clear "
            "those that no program uses (`tf.Session.reset`)."
        )
        return FailedPreconditionError(None, None, text)

    def _answered(self, reason: HoldReason, master: MasterStart, said: pb.MoveSaid) -> None:
        move = reason
        if not isinstance(move, _Move):
            return
        if said.stage == pb.MoveTold.PREPARE:
            if said.HasField("failure"):
                move.error = to_error(said.failure)
            move.also.update(said.also)
            move.rules.prepared(master)
        elif said.HasField("failure"):
            move.error = to_error(said.failure)
        else:
            move.kept = said.sequence

    def _asked(self, link: Link, number: int) -> None:
        """The target of a move, whose link was lost, asks how it ended, until it has an answer."""
        move = self._now
        if (move is None or move.number != number) and not self._closed.is_set():
            told = pb.MoveTold(stage=pb.MoveTold.END, move=number, is_target=True)
            with contextlib.suppress(PipeBroken):
                link.send(pack(self._news(told)), block=False)

    def lost(self, link: Link) -> None:
        """A link is lost."""
        self._lost_master(start_of(link))
        self._master.held_steps.lost(link.peer.task)
        self._orphans.lost(link)

    def close(self) -> None:
        """Move nothing more."""
        self._closed.set()
        with self._changed:
            self._changed.notify_all()


def _is_empty(value: Any) -> bool:
    """Whether this is an object that a plan has asked for, and nothing was ever put into."""
    return isinstance(value, CopiedResource) and value.is_empty
