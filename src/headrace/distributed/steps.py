"""Running steps over several tasks: one message to each, tensors flow among them, one answer each.

The master runs its sessions' steps with this, and a worker that owns a loop over several tasks runs
the calls of its body.
"""

from __future__ import annotations

import itertools
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headrace.distributed import wire
from headrace.distributed.failures import to_error, unavailable
from headrace.distributed.messages import pack
from headrace.distributed.protocol import step_pb2 as pb
from headrace.distributed.tracker import StepTracker
from headrace.distributed.transport.base import PipeBroken
from headrace.distributed.transport.link import Link
from headrace.distributed.worker.results import PartResult
from headrace.errors import CancelledError, DeadlineExceededError, OpError
from headrace.partition.parts import Partition

if TYPE_CHECKING:
    from headrace.distributed.peers import Peers
    from headrace.distributed.worker.worker import Worker


@dataclass(eq=False)
class StepPlan:
    """What the parts of a plan take and give.

    Attributes:
        number: of the plan, the same in all tasks.
        feeds, fetches: for each task the positions among those of the step.
        fed: (fetch, feed) positions of fetches that are fed themselves.
        constants: (fetch position, value).
        size: how many fetches the step has.
    """

    number: int
    feeds: dict[str, list[int]]
    fetches: dict[str, list[int]]
    fed: list[tuple[int, int]]
    constants: list[tuple[int, Any]]
    size: int

    @classmethod
    def of(cls, number: int, partition: Partition) -> StepPlan:
        """The plan of a step that was cut into parts."""
        parts = partition.parts.items()
        return cls(
            number,
            {t: [i for i, _ in p.feeds] for t, p in parts},
            {t: [i for i, _ in p.fetches] for t, p in parts},
            partition.fed,
            partition.constants,
            partition.fetches,
        )

    @property
    def tasks(self) -> list[str]:
        return list(self.feeds)

    def assemble(self, feeds: Sequence[Any], results: dict[str, PartResult]) -> list[Any]:
        """The fetched values of a step that has run."""
        values: list[Any] = [None] * self.size
        for fetch, feed in self.fed:
            values[fetch] = feeds[feed]
        for fetch, value in self.constants:
            values[fetch] = value
        for task, result in results.items():
            for position, value in zip(self.fetches[task], result.fetches, strict=True):
                values[position] = value
        return values


@dataclass
class StepOptions:
    """How to run one step.

    Attributes:
        timeout: seconds, or None.
        trace: a level of RunOptions.
        find: ``find(task)`` gives the link to a task; raises OpError where there is none.
        owner: for whom it runs: a session, or the run of a part.
        check: raises when the owner has given up; called once the step can be cancelled.
    """

    find: Callable[[str], Link]
    timeout: float | None = None
    trace: int = 0
    owner: Any = None
    check: Callable[[], None] | None = None


class Steps:
    """The steps that one process has asked for and that have not ended.

    Args:
        task: the own task; its part runs in ``worker``, in the calling thread where that is cheap.
    """

    def __init__(self, task: str, worker: Worker, peers: Peers) -> None:
        self.task = task
        self.worker = worker
        self.peers = peers
        self._numbers = itertools.count(secrets.randbits(40) << 24)
        self._open: dict[int, StepTracker] = {}

    def number(self) -> int:
        """A number that no other step or plan of the cluster has."""
        return next(self._numbers) & 0xFFFFFFFFFFFFFFFF

    def run(
        self, plan: StepPlan, feeds: Sequence[Any], options: StepOptions
    ) -> dict[str, PartResult]:
        """Run a step and wait for it.

        Returns:
            What the part of each task gave.

        Raises:
            OpError: the reason of failure; all parts have been told to stop.
        """
        ended = threading.Lock()
        ended.acquire()
        number = self.number()
        tracker = StepTracker(
            number, plan.feeds, time.monotonic(), lambda _: ended.release(), options.owner
        )
        self._open[number] = tracker
        try:
            if options.check is not None:
                options.check()
            self._ask(tracker, plan, feeds, options)
            self._wait(tracker, ended, options.timeout)
        finally:
            del self._open[number]
        if tracker.error is not None:
            raise tracker.error
        return tracker.results

    def _ask(
        self, tracker: StepTracker, plan: StepPlan, feeds: Sequence[Any], options: StepOptions
    ) -> None:
        """Tell every task to run its part; the own part comes last, in this thread."""
        number = tracker.number
        for task, positions in plan.feeds.items():
            if task == self.task:
                continue
            metas, buffers = wire.encode_many([feeds[i] for i in positions])
            message = pb.RunPart(step=number, plan=plan.number, feeds=metas, trace=options.trace)
            try:
                options.find(task).send(pack(message), buffers)
            except PipeBroken as error:
                self._failed(tracker, task, unavailable(task, number, error.reason))
            except OpError as error:
                self._failed(tracker, task, error)
            if tracker.error is not None:
                break
        if self.task not in plan.feeds:
            if tracker.error is not None:
                self._give_up(tracker)
            return
        if tracker.error is not None:
            self._give_up(tracker)
            return
        own = [feeds[i] for i in plan.feeds[self.task]]

        def reply(result: PartResult) -> None:
            self._ended(tracker, self.task, result)

        self.worker.run_part(
            number, plan.number, own, self.task, reply, options.trace, patient=True
        )

    def _give_up(self, tracker: StepTracker) -> None:
        """Of a step that failed while it was asked for: tasks not asked yet will not answer."""
        for task in sorted(tracker.tasks):
            tracker.done(task, PartResult())

    def _wait(self, tracker: StepTracker, ended: Any, timeout: float | None) -> None:
        if ended.acquire(timeout=-1 if timeout is None else timeout):
            return
        waiting = ", ".join(sorted(tracker.tasks))
        text = f"Step {tracker.number:016x} did not finish within {timeout:g} s"
        self.cancel(tracker, DeadlineExceededError(None, None, f"{text}; it waits for {waiting}."))
        ended.acquire()

    # -- events -----------------------------------------------------------------------------------

    def part_done(self, link: Link, message: pb.PartDone, buffers: list[Any]) -> None:
        """The answer of a task."""
        tracker = self._open.get(message.step)
        if tracker is None:
            return
        result = PartResult()
        if message.HasField("failure"):
            result.error = to_error(message.failure)
        else:
            result.fetches = wire.decode_many(message.fetches, buffers)
        if message.HasField("stats"):
            result.stats, result.began, result.ended = message.stats, message.began, message.ended
        result.arrived = time.time()
        self._ended(tracker, link.peer.task, result)

    def _ended(self, tracker: StepTracker, task: str, result: PartResult) -> None:
        if result.error is None:
            tracker.done(task, result)
        else:
            self._failed(tracker, task, result.error)

    def _failed(self, tracker: StepTracker, task: str, error: OpError) -> None:
        self._stop(tracker, tracker.failed(task, error, time.monotonic()), error)

    def cancel(self, tracker: StepTracker, error: OpError) -> None:
        """Give a step up."""
        self._stop(tracker, tracker.cancel(error, time.monotonic()), error)

    def _stop(self, tracker: StepTracker, tasks: list[str], error: OpError) -> None:
        reason = f"The step has failed elsewhere: {error.message}"
        for task in tasks:
            if task == self.task:
                self.worker.cancel(tracker.number, reason)
                continue
            link = self.peers.known(task)
            try:
                if link is not None:
                    message = pb.CancelStep(step=tracker.number, reason=reason)
                    link.send(pack(message), block=False)
            except PipeBroken:
                continue

    def peer_lost(self, peer: str, reason: str) -> None:
        """Steps that wait for a lost task fail."""
        for tracker in list(self._open.values()):
            if peer in tracker.tasks:
                self._failed(tracker, peer, unavailable(peer, tracker.number, reason))

    def tick(self, now: float) -> None:
        """Time has passed."""
        for tracker in list(self._open.values()):
            tracker.overdue(now)

    def open(self) -> list[StepTracker]:
        """Steps under way."""
        return list(self._open.values())

    def cancel_of(self, owner: Any, error: OpError) -> None:
        """Give up all steps of one owner."""
        for tracker in self.open():
            if tracker.owner is owner:
                self.cancel(tracker, error)

    def close(self) -> None:
        """Give all steps up."""
        for tracker in self.open():
            error = CancelledError(None, None, f"Task {self.task} stops.")
            self.cancel(tracker, error)
