"""Running steps over several tasks: one message to each, tensors flow among them, one answer each.

The master runs its sessions' steps with this, and a worker that owns a loop over several tasks runs
the calls of its body.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import math
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from headrace.distributed.protocol import step_pb2 as pb
from headrace.distributed.steps.results import PartResult
from headrace.distributed.steps.tally import is_given_up
from headrace.distributed.steps.tracker import StepTracker
from headrace.distributed.transport.base import PipeBroken
from headrace.distributed.transport.link import Link
from headrace.distributed.wire import codec
from headrace.distributed.wire.failures import cancelled, to_error, unavailable
from headrace.distributed.wire.messages import pack
from headrace.errors import CancelledError, DeadlineExceededError, OpError
from headrace.executor.errands import Limit
from headrace.partition.parts import Partition
from headrace.structured_logs import tell

if TYPE_CHECKING:
    from headrace.distributed.links.peers import Peers


_log = logging.getLogger("headrace.distributed")


@dataclass(eq=False)
class RegisteredPlan:
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
    def of(cls, number: int, partition: Partition) -> RegisteredPlan:
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
        limit: how long it may take, or None.
        trace: a level of RunOptions.
        find: ``find(task)`` gives the link to a task; raises OpError where there is none.
        owner: for whom it runs: a session, or the run of a part.
        check: raises when the owner has given up; called once the step can be cancelled.
    """

    find: Callable[[str], Link]
    limit: Limit | None = None
    trace: int = 0
    owner: Any = None
    check: Callable[[], None] | None = None


class OwnParts(Protocol):
    """Who runs the parts of the own task: its worker."""

    def run_part(
        self,
        step: int,
        plan: int,
        feeds: Sequence[Any],
        asker: str,
        reply: Callable[[PartResult], None],
        trace: int = 0,
        patient: bool = False,
    ) -> None:
        """Run a part; ``reply`` is called once, with what came of it."""

    def cancel(self, step: int, reason: str) -> None:
        """Give the part of a step up."""


class _Tasks:
    """The tasks of a plan, for logs: nothing is put together unless it is wanted."""

    def __init__(self, plan: RegisteredPlan) -> None:
        self.plan = plan

    def __str__(self) -> str:
        return ", ".join(sorted(self.plan.tasks))


class Steps:
    """The steps that one process has asked for and that have not ended.

    Args:
        task: the own task; its part runs in ``worker``, in the calling thread where that is cheap.
    """

    def __init__(self, task: str, worker: OwnParts, peers: Peers) -> None:
        self.task = task
        self.worker = worker
        self.peers = peers
        # A random start for each process, so that numbers need no agreement.
        self._numbers = itertools.count(secrets.randbits(40) << 24)
        self._open: dict[int, StepTracker] = {}

    def number(self) -> int:
        """A number that no other step or plan of the cluster has."""
        return next(self._numbers) & 0xFFFFFFFFFFFFFFFF

    def run(
        self, plan: RegisteredPlan, feeds: Sequence[Any], options: StepOptions
    ) -> dict[str, PartResult]:
        """Run a step and wait for it.

        Returns:
            What the part of each task gave.

        Raises:
            OpError: the reason of failure; all parts have been told to stop.
        """
        if not plan.feeds:  # every fetch is a constant, or fed
            return {}
        # Taken until the last task has answered: cheaper than an Event.
        ended = threading.Lock()
        ended.acquire()
        number = self.number()
        tracker = StepTracker(
            number, plan.feeds, time.monotonic(), lambda _: ended.release(), options.owner
        )
        # Answers and losses find the step from now on, before any task is asked.
        self._open[number] = tracker
        _log.debug("Step %016x begins at %s", number, _Tasks(plan))
        try:
            if options.check is not None:
                options.check()
            self._ask(tracker, plan, feeds, options)
            self._wait(tracker, ended, options.limit)
        except BaseException as error:  # also KeyboardInterrupt
            self.cancel(tracker, cancelled(f"{type(error).__name__}: {error}"))
            raise
        finally:
            del self._open[number]
        took = (time.monotonic() - tracker.began) * 1e3
        failure = tracker.error
        if failure is not None:
            self._tell_failure(number, took, failure)
            raise failure
        _log.debug("Step %016x ended after %.3f ms", number, took)
        return tracker.results

    def _tell_failure(self, number: int, took: float, failure: OpError) -> None:
        """Log that a step did not end well: quietly where nobody waited for it any more."""
        kind = type(failure).__name__
        told = {"step_id": f"{number:016x}", "error": kind, "milliseconds": round(took, 3)}
        event, how, level = "step_failed", "failed", logging.INFO
        if is_given_up(failure):
            # Each normal end of a training gives up steps that wait for what others do.
            event, how, level = "step_given_up", "was given up", logging.DEBUG
        text = f"Step %016x {how} after %.3f ms: %s: %s"
        said = (number, took, kind, failure.message)
        tell(_log, event, text, *said, level=level, task=self.task, fields=told)

    def _ask(
        self, tracker: StepTracker, plan: RegisteredPlan, feeds: Sequence[Any], options: StepOptions
    ) -> None:
        """Tell every task to run its part; the own part comes last, in this thread."""
        # The own part may block this thread; the others begin meanwhile.
        left = [t for t in plan.feeds if t != self.task]
        if self.task in plan.feeds:
            left.append(self.task)
        nothing = pb.RunPart(step=tracker.number, plan=plan.number, trace=options.trace)
        without_feeds = pack(nothing)
        while left and tracker.error is None:
            task = left[0]
            values = [feeds[i] for i in plan.feeds[task]]
            if task == self.task:
                del left[0]
                self._run_own(tracker, plan, values, options)
                continue
            try:
                head = without_feeds
                buffers: list[Any] = []
                if values:
                    metas, buffers = codec.encode_many(values)
                    message = pb.RunPart(feeds=metas)
                    message.MergeFrom(nothing)
                    head = pack(message)
                # What is said of the step later goes over the same link: it comes behind this.
                link = tracker.links[task] = options.find(task)
                link.send(head, buffers)
                del left[0]
                failure = tracker.error
                if failure is not None:  # meanwhile, and perhaps before the link was known
                    self._tell_to_stop(tracker, task, failure)
            except PipeBroken as error:
                self._failed(tracker, task, unavailable(task, tracker.number, error.reason))
            except OpError as error:
                self._failed(tracker, task, error)
        if left:
            tracker.not_asked(left)

    def _run_own(
        self, tracker: StepTracker, plan: RegisteredPlan, feeds: list[Any], options: StepOptions
    ) -> None:
        def reply(result: PartResult) -> None:
            self._ended(tracker, self.task, result)

        # With a deadline this thread must not run an op that waits: it has the time to watch.
        patient = options.limit is None
        self.worker.run_part(
            tracker.number, plan.number, feeds, self.task, reply, options.trace, patient
        )

    def _wait(self, tracker: StepTracker, ended: Any, limit: Limit | None) -> None:
        if limit is None:
            ended.acquire()
            return
        if ended.acquire(timeout=limit.remaining()):
            return
        # Too late: all are told to stop. The step ends when they have, or when that takes long.
        waiting = ", ".join(sorted(tracker.tasks))
        text = f"Step {tracker.number:016x} did not finish within {limit}"
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
            result.fetches = codec.decode_many(message.fetches, buffers)
        if message.HasField("stats"):
            result.stats, result.began, result.ended = message.stats, message.began, message.ended
        result.arrived = time.time()
        self._ended(tracker, link.peer.task, result)

    def part_ran(self, link: Link, step: int) -> None:
        """A task has said with its last tensors that its part has run."""
        tracker = self._open.get(step)
        if tracker is not None:
            tracker.done(link.peer.task, PartResult(arrived=time.time()))

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
        for task in tasks:
            self._tell_to_stop(tracker, task, error)

    def _tell_to_stop(self, tracker: StepTracker, task: str, error: OpError) -> None:
        reason = f"The step has failed elsewhere: {error.message}"
        if task == self.task:
            self.worker.cancel(tracker.number, reason)
            return
        link = tracker.links.get(task)
        if link is not None:  # else it is told when it is asked
            with contextlib.suppress(PipeBroken):  # it gives the step up by itself
                message = pb.CancelStep(step=tracker.number, reason=reason)
                link.send(pack(message), block=False)

    def peer_lost(self, peer: str, reason: str) -> None:
        """Steps that have a part in a task to which a link was lost fail."""
        now = time.monotonic()
        for tracker in self.open():
            if peer not in tracker.members:
                continue
            error = unavailable(peer, tracker.number, reason)
            # Over which it was asked; there may be several links to one task.
            link = tracker.links.get(peer)
            if link is None or link.lost:
                stop = tracker.lost(peer, error, now)
            else:  # it was another one: the task is there, and must stop
                stop = tracker.cancel(error, now)
            self._stop(tracker, stop, error)

    def link_lost(self, link: Link, message: pb.LinkLost, buffers: list[Any]) -> None:
        """Two other tasks have lost each other: steps with parts in both fail."""
        now = time.monotonic()
        here, there = link.peer.task, message.peer
        for tracker in self.open():
            reason = f"{here} has lost it: {message.reason}"
            error = unavailable(there, tracker.number, reason)
            self._stop(tracker, tracker.parted(here, there, error, now), error)

    def tick(self, now: float) -> None:
        """Time has passed."""
        for tracker in self.open():
            tracker.overdue(now, self.peers.timing.drain)

    def abandon(self) -> None:
        """No answer will come any more: steps that were given up have ended."""
        self.tick(math.inf)

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
