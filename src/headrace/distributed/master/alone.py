"""Steps that run alone: no other step of the cluster uses their variables meanwhile.

What they read is of one moment, on all tasks. The tasks that have the variables let masters hold
their steps, and say when none is under way; see `services.holding`. They hold them for some seconds
at a time: who runs alone asks for more while what it saves makes progress. So a save may take as
long as it takes, and one that is dead, or stopped, holds nobody for long.
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

__all__ = ["FIRST_SECONDS", "LONGEST_SECONDS", "MOST_SECONDS", "STILL_SECONDS", "AloneSteps"]

#: Steps under way are waited for so long, the first time; then twice as long, up to the second.
FIRST_SECONDS, LONGEST_SECONDS = 1.0, 6.0
#: Steps are held so long at a time: less than masters hold them for a task that says nothing more.
MOST_SECONDS = 9.0
#: More is asked for so often, and no more once nothing was copied or written for so long: a local
#: disk may take that long for what it has in memory already.
RENEW_SECONDS, STILL_SECONDS = 3.0, 60.0
#: A task answers within so many seconds more than it waits for others.
_ANSWER_SECONDS = 2.0

_Reply = Callable[[pb.StepsHeld], None]


class _Said(NamedTuple):
    task: str
    release: bool


class _Block:
    """A step that runs alone, or is about to.

    Attributes:
        answers: of tasks; ``tasks``: those that hold steps for it.
    """

    def __init__(self) -> None:
        self.answers: dict[_Said, OpError | None] = {}
        self.tasks: set[str] = set()
        self._progress: dict[str, int] = {}
        self._has_moved = True
        self._moved_at = self._renew_at = 0.0

    def saw(self, task: str, progress: int) -> None:
        """So far a task has come."""
        if self._progress.get(task) != progress:
            self._progress[task], self._has_moved = progress, True

    def is_due(self, now: float) -> bool:
        """Whether more time is to be asked for."""
        if not self._renew_at:
            self._renew_at = now + RENEW_SECONDS
        if self._has_moved:
            self._moved_at, self._has_moved = now, False
        if now < self._renew_at or now - self._moved_at > STILL_SECONDS:
            return False
        self._renew_at = now + RENEW_SECONDS
        return True


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
        self._blocks: dict[int, _Block] = {}
        self._changed = threading.Condition()

    @contextlib.contextmanager
    def alone(self, keys: Mapping[str, Collection[str]], seconds: float) -> Iterator[None]:
        """A block in which no other step uses some variables.

        Args:
            keys: of the variables, by the tasks that have them.
            seconds: how long steps under way are waited for.

        Raises:
            DeadlineExceededError: if they do not end in time; after the block, if steps were not
                held for all of its time.
            UnavailableError: if a task is lost.
            AbortedError: if one is lost whose steps were held.
        """
        hold, asked, block = next(self._numbers), list[str](), _Block()
        end = time.monotonic() + seconds
        with self._changed:
            self._blocks[hold] = block
        try:
            # All ask in one order, so that two of them do not wait for each other.
            for task in sorted(keys):
                asked.append(task)
                left = max(0.01, end - time.monotonic())
                self._ask(task, pb.HoldSteps(hold=hold, keys=sorted(keys[task]), seconds=left))
                self._await(block, task, False, left + _ANSWER_SECONDS)
            yield
            released, asked = asked, []
            self._release(hold, block, released)
        finally:
            for task in asked:
                with contextlib.suppress(OpError):
                    self._ask(task, pb.HoldSteps(hold=hold, release=True))
            with self._changed:
                del self._blocks[hold]

    def _release(self, hold: int, block: _Block, tasks: Collection[str]) -> None:
        """Let steps go on everywhere; raise the first error once all were asked."""
        with self._changed:
            block.tasks.clear()
        asked, errors = list[str](), list[OpError]()
        for task in tasks:
            try:
                self._ask(task, pb.HoldSteps(hold=hold, release=True))
                asked.append(task)
            except OpError as error:
                errors.append(error)
        for task in asked:
            try:
                self._await(block, task, True, _ANSWER_SECONDS)
            except OpError as error:
                errors.append(error)
        if errors:
            raise errors[0]

    def _ask(self, task: str, message: pb.HoldSteps) -> None:
        if task == self._task:
            self.own(OWN, message, lambda said: self.said(task, said))
            return
        link = self._peers.link(task, self._addresses.of(task), _ANSWER_SECONDS)
        try:
            link.send(pack(message), block=False)
        except PipeBroken as error:
            raise unavailable(task, None, error.reason) from None

    def _await(self, block: _Block, task: str, release: bool, seconds: float) -> None:
        said, answers = _Said(task, release), block.answers
        with self._changed:
            if not self._changed.wait_for(lambda: said in answers, seconds):
                text = f"{task} did not say within {seconds:.1f} s that steps are held."
                raise DeadlineExceededError(None, None, text)
            error = answers[said]
            if error is None and not release:
                block.tasks.add(task)
        if error is not None:
            raise error

    def said(self, task: str, message: pb.StepsHeld) -> None:
        """A task has answered."""
        error = to_error(message.failure) if message.HasField("failure") else None
        with self._changed:
            block = self._blocks.get(message.hold)
            if block is None:
                return
            if message.renew:  # whether steps were held is asked in the end
                block.saw(task, message.progress)
                return
            block.answers[_Said(task, message.release)] = error
            self._changed.notify_all()

    def tick(self, now: float) -> None:
        """Time has passed: who holds steps for this master is asked to go on with that."""
        if not self._blocks:
            return
        with self._changed:
            due = [(n, sorted(b.tasks)) for n, b in self._blocks.items() if b.is_due(now)]
        for hold, tasks in due:
            for task in tasks:
                # One that cannot be reached is not waited for here; the release tells.
                if task == self._task or self._peers.known(task) is not None:
                    with contextlib.suppress(OpError):
                        self._ask(task, pb.HoldSteps(hold=hold, renew=True))
