"""The side of a task that keeps the copy: follows whoever serves it, and takes its place."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable
from typing import Any

from headrace.distributed.protocol import step_pb2 as pb
from headrace.distributed.standby.changes import handle_of
from headrace.distributed.standby.kept_values import KeptValues
from headrace.distributed.standby.rules import Member, Standby
from headrace.distributed.standby.views import AskWitness, Place, shown, view_of
from headrace.distributed.transport.base import PipeBroken
from headrace.distributed.transport.link import Link
from headrace.distributed.wire import codec
from headrace.distributed.wire.messages import pack
from headrace.errors import OpError
from headrace.executor.resources import ResourceHandle

__all__ = ["StandbyRole"]

_log = logging.getLogger("headrace.distributed")

#: Seconds between two attempts.
_PAUSE = 0.1
#: A primary that can be reached has so many seconds to drop its standby, before that claims.
_GRACE = 1.0
#: The last message of this process leaves within so many seconds.
_FLUSH_SECONDS = 1.0
#: Without a witness it waits so many seconds for one.
_PATIENCE = 5.0

#: Called with the variables and the epoch of the view in which they are served here. It takes them
#: out of the dictionary when that has begun.
Serve = Callable[[dict[ResourceHandle, Any], int], None]


class StandbyRole:
    """What a process does for the copy of another one's task.

    Args:
        task: whose copy; ``me``: this process.
        connect: a link to whoever serves the task; raises OpError if there is none.
        place_of: where a member of a view is.
        ask: see `views.AskWitness`.
        answers: whether the process of a place can be reached; ``is_dead``: whether it is certain
            that it has ended.
        serve: takes the copy; see `Serve`. Following goes on when it has returned.
        returns: whether the task is this process's own, which another one serves for it.
    """

    def __init__(
        self,
        task: str,
        me: Member,
        connect: Callable[[], Link],
        place_of: Callable[[Member], Place],
        ask: AskWitness,
        answers: Callable[[Place], bool],
        is_dead: Callable[[Place], bool],
        serve: Serve,
        returns: bool = False,
    ) -> None:
        self.task = task
        self._me = me
        self._connect = connect
        self._place_of = place_of
        self._ask = ask
        self._answers = answers
        self._is_dead = is_dead
        self._serve = serve
        self._returns = returns
        self.rules = Standby(me)
        #: The copy.
        self.values = KeptValues()
        self._link: Link | None = None
        self._granted = 0
        self._lock = threading.RLock()
        self._lost = threading.Event()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="headrace standby", daemon=True)

    def start(self) -> None:
        """Begin to follow."""
        self._thread.start()

    # -- what the primary sends -------------------------------------------------------------------

    def copied(self, link: Link, message: pb.Copy, buffers: list[Any]) -> None:
        """Changes have come."""
        tensors = iter(codec.decode_many(message.values, buffers))
        with self._lock:
            if link is not self._link:
                return
            for change in message.changes:
                found = [next(tensors) for _ in range(change.tensors)]
                self.values.apply(handle_of(change), found)
        kept = pb.CopyKept(task=self.task, sequence=message.sequence)
        with contextlib.suppress(PipeBroken):
            link.send(pack(kept), block=False)

    def told(self, link: Link, message: pb.CopyRole) -> None:
        """The primary says what this process is."""
        with self._lock:
            if link is not self._link:
                return
            if message.serve:
                self._granted = message.view.epoch
                self._lost.set()
                return
            answer = pb.CopyKept(task=self.task, epoch=message.view.epoch)
            if message.release:
                if not self.rules.release(message.view.epoch):
                    return
                answer.released = True
            else:
                self.rules.named(view_of(message.view))
        with contextlib.suppress(PipeBroken):
            link.send(pack(answer), block=False)

    def lost(self, link: Link) -> None:
        """A link is lost; it may be that of the primary."""
        with self._lock:
            if link is not self._link:
                return
            self._link = None
            self.rules.lost()
        self._lost.set()

    # -- the thread -------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._follow()
                self._claim()
            except (OpError, PipeBroken) as error:
                _log.debug("The copy of %s: %s", self.task, error)
            except Exception:
                _log.exception("The copy of %s fails", self.task)
            if not self._stop.is_set():
                self._stop.wait(_PAUSE)

    def _follow(self) -> None:
        """Keep a copy until the primary is lost, or this process serves the task."""
        link = self._connect()
        with self._lock:
            self._lost.clear()
            self.values.clear()
            self._link = link
            self.rules = Standby(self._me)
        follower = pb.MemberDef(task=self._me[0], incarnation=self._me[1])
        wish = pb.Follow(task=self.task, returns=self._returns, follower=follower)
        link.send(pack(wish), block=False)
        if link.lost:
            self.lost(link)
        while not self._lost.wait(1.0) and not self._stop.is_set():
            pass
        if self._granted and not self._stop.is_set():
            self._begin_serving(self._granted)

    def _claim(self) -> None:
        """Ask for the place of a primary that is lost, until that is decided."""
        began = time.monotonic()
        view = self.rules.view
        while self.rules.stage == "claiming" and view is not None and not self._stop.is_set():
            waited = time.monotonic() - began
            lives = self._answers(self._place_of(view.primary))
            if not lives or waited > _GRACE:
                self._ask_witness(lives, waited)
            if self.rules.stage == "claiming":
                self._stop.wait(_PAUSE)
        if self.rules.stage == "promoted" and self.rules.view is not None:
            self._begin_serving(self.rules.view.epoch)

    def _ask_witness(self, primary_lives: bool, waited: float) -> None:
        wanted, view = self.rules.lost(), self.rules.view
        if wanted is None or view is None or view.witness is None:
            return
        place = self._place_of(view.witness)
        try:
            self.rules.answered(self._ask(place, self.task, wanted, False))
        except OpError as error:
            _log.info("The witness of %s, %s, does not answer: %s", self.task, shown(place), error)
        if self.rules.stage == "claiming" and self._is_dead(place):
            if primary_lives:
                self.rules.give_up()
            elif waited > _PATIENCE and self._is_dead(self._place_of(view.primary)):
                _log.warning(
                    "%s and the witness %s have ended: its copy is served, which may lack the "
                    "updates of its last seconds",
                    self.task,
                    place[0][0],
                )
                self.rules.take_over()

    def _begin_serving(self, epoch: int) -> None:
        with self._lock:
            self._granted = 0
        began = time.monotonic()
        try:
            while not self._served(epoch, time.monotonic() - began):
                self._stop.wait(_PAUSE)
        finally:
            # Whatever came of it, there is no copy here any more, and nobody needs to wait for it.
            self.rules = Standby(self._me)

    def _served(self, epoch: int, waited: float) -> bool:
        """Whether the copy was served; if that could not begin, the values are still here."""
        with self._lock:
            values = self.values.hand_over()
        try:
            self._serve(values, epoch)
        except Exception:
            # Whoever serves takes them out of the dictionary when it has begun.
            if not values or waited > _PATIENCE or self._stop.is_set():
                raise
            _log.exception("The copy of %s cannot be served yet; this is tried again", self.task)
            with self._lock:
                self.values.take_back(values)
            return False
        return True

    @property
    def holds(self) -> bool:
        """Whether the copy may yet be served here: whoever starts the task anew must wait."""
        return self.rules.stage in ("named", "claiming", "promoted")

    def close(self) -> None:
        """Follow no more; who serves the task is told that this process will not take its place."""
        self._stop.set()
        with self._lock:
            link, view = self._link, self.rules.leave()
        if link is not None and view is not None:
            message = pb.CopyKept(task=self.task, epoch=view.epoch, released=True)
            with contextlib.suppress(PipeBroken):
                link.send(pack(message), block=False)
                link.flush(_FLUSH_SECONDS)
        self._lost.set()
