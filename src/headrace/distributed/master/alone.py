"""Steps that run alone: no other step of the cluster uses their variables meanwhile.

What they read is of one moment, on all tasks. The tasks that have the variables let masters hold
their steps, and say when none is under way; see `services.holding`.
"""

from __future__ import annotations

import contextlib
import itertools
import secrets
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import NamedTuple

from headrace.distributed.links.peers import Peers
from headrace.distributed.membership.addresses import Addresses
from headrace.distributed.protocol import step_pb2 as pb
from headrace.distributed.transport.base import PipeBroken
from headrace.distributed.wire.failures import to_error, unavailable
from headrace.distributed.wire.messages import pack
from headrace.distributed.worker.machine import OWN, MasterStart
from headrace.errors import DeadlineExceededError, OpError

__all__ = ["FIRST_SECONDS", "LONGEST_SECONDS", "MOST_SECONDS", "AloneSteps"]

#: Steps under way are waited for so long, the first time; then twice as long, up to the second.
FIRST_SECONDS, LONGEST_SECONDS = 1.0, 6.0
#: Steps are held so long at most, with the step that runs alone: less than masters hold them for a
#: task that says nothing more.
MOST_SECONDS = 9.0
#: A task answers within so many seconds more than it waits for others.
_ANSWER_SECONDS = 2.0

_Reply = Callable[[pb.StepsHeld], None]


class _Said(NamedTuple):
    task: str
    release: bool


class AloneSteps:
    """What a master does for steps that run alone.

    Attributes:
        own: asks the own task, as others are by messages.
    """

    def __init__(self, task: str, addresses: Addresses, peers: Peers) -> None:
        self.own: Callable[[MasterStart, pb.HoldSteps, _Reply], None] = lambda *_: None
        self._task = task
        self._addresses = addresses
        self._peers = peers
        self._numbers = itertools.count(secrets.randbits(40) << 20 | 1)
        self._answers: dict[int, dict[_Said, OpError | None]] = {}
        self._changed = threading.Condition()

    @contextlib.contextmanager
    def alone(self, keys: Mapping[str, Collection[str]], seconds: float) -> Iterator[None]:
        """A block in which no other step uses some variables.

        Args:
            keys: of the variables, by the tasks that have them.
            seconds: how long steps under way are waited for.

        Raises:
            DeadlineExceededError: if they do not end in time.
            UnavailableError: if a task is lost.
            AbortedError: after the block, if steps were not held for all of its time.
        """
        hold, asked = next(self._numbers), list[str]()
        end = time.monotonic() + seconds
        with self._changed:
            self._answers[hold] = {}
        try:
            # All ask in one order, so that two of them do not wait for each other.
            for task in sorted(keys):
                asked.append(task)
                left = max(0.01, end - time.monotonic())
                self._ask(task, pb.HoldSteps(hold=hold, keys=sorted(keys[task]), seconds=left))
                self._await(hold, task, False, left + _ANSWER_SECONDS)
            yield
            released, asked = asked, []
            for task in released:
                self._ask(task, pb.HoldSteps(hold=hold, release=True))
            for task in released:
                self._await(hold, task, True, _ANSWER_SECONDS)
        finally:
            for task in asked:
                with contextlib.suppress(OpError):
                    self._ask(task, pb.HoldSteps(hold=hold, release=True))
            with self._changed:
                del self._answers[hold]

    def _ask(self, task: str, message: pb.HoldSteps) -> None:
        if task == self._task:
            self.own(OWN, message, lambda said: self.said(task, said))
            return
        link = self._peers.link(task, self._addresses.of(task), _ANSWER_SECONDS)
        try:
            link.send(pack(message), block=False)
        except PipeBroken as error:
            raise unavailable(task, None, error.reason) from None

    def _await(self, hold: int, task: str, release: bool, seconds: float) -> None:
        said = _Said(task, release)
        with self._changed:
            answers = self._answers[hold]
            if not self._changed.wait_for(lambda: said in answers, seconds):
                text = f"{task} did not say within {seconds:.1f} s that steps are held."
                raise DeadlineExceededError(None, None, text)
            error = answers[said]
        if error is not None:
            raise error

    def said(self, task: str, message: pb.StepsHeld) -> None:
        """A task has answered."""
        error = to_error(message.failure) if message.HasField("failure") else None
        with self._changed:
            answers = self._answers.get(message.hold)
            if answers is not None:
                answers[_Said(task, message.release)] = error
                self._changed.notify_all()
