"""The side of a task that is served: sends what changes to whoever keeps its copy.

One thread does it all in turns; frames of the follower come in the threads of its link.
"""

from __future__ import annotations

import contextlib
import logging
import math
import threading
import time
from collections.abc import Callable
from typing import Any

from headrace.distributed.protocol import step_pb2 as pb
from headrace.distributed.standby.changes import encoded
from headrace.distributed.standby.journal import Journal
from headrace.distributed.standby.rules import Primary
from headrace.distributed.standby.views import AskWitness, Place, member_of, shown, to_message
from headrace.distributed.transport.base import PipeBroken
from headrace.distributed.transport.link import Link
from headrace.distributed.wire.messages import pack
from headrace.errors import OpError
from headrace.structured_logs import tell

__all__ = ["PrimaryRole"]

_log = logging.getLogger("headrace.distributed")

#: Seconds between two looks at what does not announce itself.
_LOOK = 0.1
#: A witness that was not there for so many seconds is lost.
_WITNESS_SECONDS = 2.0
#: The last message of this server leaves within so many seconds.
_FLUSH_SECONDS = 1.0
#: Without a witness for so many seconds, the log says so.
_NOTICE_SECONDS = 30.0


class PrimaryRole:
    """What the server of a task does for its copy.

    Args:
        task: its name; ``journal``: of its store.
        rules: who may do what.
        witnesses: the places of those that could be witness, the best first.
        ask: see `views.AskWitness`.
        is_dead: whether it is certain that the process at a place has ended.
        deposed: called when the copy is served in place of this one.
    """

    def __init__(
        self,
        task: str,
        journal: Journal,
        rules: Primary,
        witnesses: Callable[[], list[Place]],
        ask: AskWitness,
        is_dead: Callable[[Place], bool],
        deposed: Callable[[str], None],
    ) -> None:
        self.task = task
        self.journal = journal
        self.rules = rules
        self._witnesses = witnesses
        self._ask = ask
        self._is_dead = is_dead
        self._deposed = deposed
        self._link: Link | None = None
        self._follower_at: Place | None = None
        self._witness_at: Place | None = None
        self._witness_seen = 0.0
        self._alone_since = 0.0
        #: Whether the follower is to serve the task itself, once it has everything.
        self._returns = False
        self.handed_over = threading.Event()
        self._whole_at: int | None = None
        self._lock = threading.RLock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="headrace copies", daemon=True)
        self._thread.start()

    # -- the follower -----------------------------------------------------------------------------

    def followed(self, link: Link, message: pb.Follow) -> None:
        """A process wants a copy."""
        member = member_of(message.follower)
        with self._lock:
            if self.handed_over.is_set():
                return
            self.rules.followed(member)
            if self.rules.stage != "filling":
                return
            self._link, self._whole_at, self._returns = link, None, message.returns
            self._follower_at = member, link.peer.address
            self.journal.gate(False)
            self.journal.fill()
        _log.info("%s sends %s its variables", self.task, member[0])

    def kept(self, link: Link, message: pb.CopyKept) -> None:
        """The follower says what it has, or what it is."""
        with self._lock:
            if link is not self._link or self.handed_over.is_set():
                return
            if message.epoch:
                self.rules.named(message.epoch)
                if message.released:
                    self._released(message.epoch)
                elif self.rules.stage == "protected":
                    self._say_protected()
                return
            whole = self._whole_at is not None and message.sequence >= self._whole_at
            if whole:
                self.rules.filled()
            if whole and self._returns:
                self._hand_over(link)
                return
        self.journal.kept(message.sequence)
        self.journal.news.set()

    def _released(self, epoch: int) -> None:
        """The follower claims nothing any more: it was asked to, or it stops."""
        self.rules.released(epoch)
        self.journal.gate(self.rules.is_gated)
        if self.rules.stage == "alone":
            self._link = None
            self.journal.stop()
            self._say_copy_lost("has stopped", logging.INFO)

    def _hand_over(self, link: Link) -> None:
        """The process that served the task before has all that was ever acknowledged."""
        if not self.journal.is_gated:
            # From now on nothing is acknowledged that it does not have; once more, then.
            self.journal.gate(True)
            self._whole_at = None
            self.journal.news.set()
            return
        self.handed_over.set()
        view = to_message(self.rules.view)
        view.epoch = self.rules.last_epoch + 1
        with contextlib.suppress(PipeBroken):
            link.send(pack(pb.CopyRole(task=self.task, view=view, serve=True)), block=False)
            link.flush(_FLUSH_SECONDS)
        self._deposed("")

    def lost(self, link: Link) -> None:
        """A link is lost; it may be that of the follower."""
        with self._lock:
            if link is not self._link or self.handed_over.is_set():
                return
            self._link = None
            self.rules.lost()
            self.journal.gate(self.rules.is_gated)
            if self.rules.is_gated:
                self.journal.hold()
            else:
                self.journal.stop()
        self.journal.news.set()

    # -- the thread -------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._stop.is_set() and not self.handed_over.is_set():
            try:
                self._send_changes()
                self._decide()
            except OpError as error:
                _log.debug("%s: %s", self.task, error)
            except Exception:
                _log.exception("The copy of %s fails", self.task)
            self.journal.news.wait(_LOOK)

    def _send_changes(self) -> None:
        with self._lock:
            link = self._link
            first = self._whole_at is None
        if link is None or not (self.journal.news.is_set() or first):
            return
        sequence, changes, is_whole = self.journal.take()
        if not (changes or (is_whole and first)):
            return
        try:
            try:
                message, buffers = encoded(self.task, changes)
            finally:
                self.journal.give_back(changes)
            message.sequence, message.is_whole = sequence, is_whole
            with self._lock:
                if link is not self._link:
                    return
                if is_whole and self._whole_at is None:
                    self._whole_at = sequence
            with contextlib.suppress(PipeBroken):  # `lost` is called
                link.send(pack(message), buffers)
        except Exception as error:
            # What was taken is not sent, and nothing later may count as kept without it.
            link.fail(f"changes could not be sent: {error}")
            raise

    def _decide(self) -> None:
        stage = self.rules.stage
        if stage == "filled" and not self._returns:
            self._appoint()
        elif stage in ("protected", "releasing"):
            self._look_at_witness()
        elif stage == "dropping":
            self._drop()

    def _appoint(self) -> None:
        places = self._witnesses()
        if not places:
            self._say_alone()
        for place in places:
            with self._lock:
                if self.rules.stage != "filled" or self._link is None:
                    return
                wanted = self.rules.appoint(place[0])
                self._witness_at, self._witness_seen = place, time.monotonic()
                self.journal.gate(True)
            answer = self._answer(place, wanted, appoint=True)
            # What was acknowledged before updates waited must come there before the name does.
            self._send_changes()
            with self._lock:
                self.rules.appointed(answer)
                self.journal.gate(self.rules.is_gated)
                if self.rules.stage == "naming":
                    self._tell(pb.CopyRole(task=self.task, view=to_message(self.rules.wanted)))
                    return

    def _say_alone(self) -> None:
        now = time.monotonic()
        self._alone_since = self._alone_since or now
        if now - self._alone_since > _NOTICE_SECONDS:
            self._alone_since = math.inf
            _log.warning(
                "%s has a copy, but updates do not wait for it yet: who serves is decided by a "
                "third task, a worker for instance, and no other one is connected",
                self.task,
            )

    def _say_protected(self) -> None:
        level = logging.WARNING if self._alone_since == math.inf else logging.INFO
        self._alone_since = 0.0
        text, said = "%s: updates wait for its copy, %s", (self.task, shown(self._follower_at))
        tell(_log, "copy_complete", text, *said, level=level, task=self.task)

    def _say_copy_lost(self, why: str, level: int) -> None:
        if self._stop.is_set():
            return  # it goes on with nothing
        text, said = "%s goes on without its copy: %s %s", (shown(self._follower_at), why)
        tell(_log, "copy_lost", text, self.task, *said, level=level, task=self.task)

    def _look_at_witness(self) -> None:
        now = time.monotonic()
        if self._witness_at in self._witnesses():
            self._witness_seen = now
        elif now - self._witness_seen > _WITNESS_SECONDS:
            with self._lock:
                if self.rules.lost_witness():
                    view = to_message(self.rules.view)
                    self._tell(pb.CopyRole(task=self.task, view=view, release=True))

    def _drop(self) -> None:
        """The standby is lost: go on without it, if the witness agrees."""
        with self._lock:
            wanted = self.rules.lost()
        place, follower = self._witness_at, self._follower_at
        answer = None
        if wanted is not None and place is not None:
            answer = self._answer(place, wanted, appoint=False)
        is_dead = answer is None and follower is not None and self._is_dead(follower)
        with self._lock:
            if self.rules.stage != "dropping":
                return
            if is_dead:
                self.rules.lost(is_dead=True)
            stage = self.rules.answered(answer)
            self.journal.gate(self.rules.is_gated)
        if stage == "alone":
            self.journal.stop()
            self._say_copy_lost("is lost", logging.WARNING)
        elif stage == "deposed":
            text = f"{self.task} was cut off, and {shown(follower)} serves in its place"
            _log.error("%s: this server stops. Start it again", text)
            self._stop.set()
            self._deposed(text)

    def _answer(self, place: Place, view: Any, appoint: bool) -> Any:
        try:
            return self._ask(place, self.task, view, appoint)
        except OpError as error:
            _log.info("The witness of %s, %s, does not answer: %s", self.task, shown(place), error)
            return None

    def _tell(self, message: pb.CopyRole) -> None:
        if self._link is not None:
            with contextlib.suppress(PipeBroken):
                self._link.send(pack(message), block=False)

    def close(self) -> None:
        """Send nothing any more."""
        self._stop.set()
        self.journal.news.set()
