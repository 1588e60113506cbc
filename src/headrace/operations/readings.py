"""What a cluster did between two moments: rates, from what its tasks have counted."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from headrace.structured_logs import short_task

__all__ = ["ClusterReading", "LinkRates", "Readings", "TaskRates", "total"]


@dataclass(frozen=True)
class ClusterReading:
    """The TaskStatus messages of a cluster, and when they came (seconds, monotonic)."""

    time: float
    tasks: tuple[Any, ...]


@dataclass(frozen=True)
class LinkRates:
    """What went over the links from one task to another in a second.

    Attributes:
        received, sent: bytes in a second, as ``task`` counts them.
        received_total, sent_total: bytes since the links were made.
    """

    task: str
    peer: str
    transport: str
    received: float | None
    sent: float | None
    received_total: int
    sent_total: int


@dataclass(frozen=True)
class TaskRates:
    """A task, and what it did in a second; None where there is nothing to compare with.

    Attributes:
        task: as ``ps/0``; job: of it.
        problem: why it did not answer; "" if it has.
        memory: bytes of the process; variables: bytes of what it holds.
        steps, failed, parts: since it was started: steps of its sessions, those of them that
            failed, and parts of any session's steps.
        steps_rate, parts_rate: in a second; the steps are those of one kind, on which the task
            spends most time: in a training loop what the loop runs, and not what runs beside it.
        step_seconds: that one of these steps took; idle_seconds: between two of them.
        cores: how many it kept busy.
        longest: seconds that its oldest step has run; waits_for: the tasks which that waits for.
    """

    task: str
    job: str
    problem: str = ""
    memory: int = 0
    variables: int = 0
    steps: int = 0
    failed: int = 0
    parts: int = 0
    steps_rate: float | None = None
    parts_rate: float | None = None
    step_seconds: float | None = None
    idle_seconds: float | None = None
    cores: float | None = None
    longest: float = 0.0
    waits_for: tuple[str, ...] = ()
    links: tuple[LinkRates, ...] = ()

    @property
    def received(self) -> float | None:
        """Bytes in a second over all links."""
        return total(link.received for link in self.links)

    @property
    def sent(self) -> float | None:
        """Bytes in a second over all links."""
        return total(link.sent for link in self.links)


class Readings:
    """The last readings of a cluster; rates are those between the oldest and the newest.

    Args:
        most: how many are kept: the more, the smoother.

    >>> readings = Readings()
    >>> readings.rates()
    []
    """

    def __init__(self, most: int = 4) -> None:
        self._kept: deque[ClusterReading] = deque(maxlen=most)

    def add(self, reading: ClusterReading) -> None:
        """The cluster was read."""
        self._kept.append(reading)

    def rates(self) -> list[TaskRates]:
        """What each task does, by name."""
        if not self._kept:
            return []
        now = self._kept[-1]
        return [self._rates_of(status, now.time) for status in now.tasks]

    def _rates_of(self, status: Any, now: float) -> TaskRates:
        task = short_task(status.task)
        job = task.partition("/")[0]
        if status.problem:
            return TaskRates(task, job, status.problem)
        before, then = self._before(status)
        seconds = now - then
        links = tuple(_links(status, before, seconds))
        oldest = max(status.steps, key=lambda step: step.seconds, default=None)
        known = {
            "memory": status.memory_bytes,
            "variables": sum(v.bytes for v in status.variables),
            "steps": status.steps_ended,
            "failed": status.steps_failed,
            "parts": status.steps_run,
            "links": links,
            "longest": oldest.seconds if oldest is not None else 0.0,
            "waits_for": tuple(map(short_task, oldest.waiting_for)) if oldest is not None else (),
        }
        if before is None or seconds <= 0:
            return TaskRates(task, job, **known)
        steps = status.loop_steps - before.loop_steps
        took = status.loop_seconds - before.loop_seconds
        if steps < 0 or took < 0:  # the session is another one
            steps, took = status.loop_steps, status.loop_seconds
        return TaskRates(
            task,
            job,
            steps_rate=steps / seconds,
            parts_rate=(status.steps_run - before.steps_run) / seconds,
            step_seconds=took / steps if steps else None,
            idle_seconds=max(seconds - took, 0.0) / steps if steps else None,
            cores=(status.cpu_seconds - before.cpu_seconds) / seconds,
            **known,
        )

    def _before(self, status: Any) -> tuple[Any, float]:
        """The oldest reading of the same start of a task, and its time."""
        for reading in list(self._kept)[:-1]:
            for one in reading.tasks:
                if one.task == status.task and one.incarnation == status.incarnation:
                    return one, reading.time
        return None, 0.0


def _links(status: Any, before: Any, seconds: float) -> Iterable[LinkRates]:
    old = {} if before is None else _by_peer(before.links)
    for (peer, transport), (received, sent) in sorted(_by_peer(status.links).items()):
        was = old.get((peer, transport), (0, 0))
        if received < was[0] or sent < was[1]:  # a new connection begins at 0
            was = (0, 0)
        known = before is not None and seconds > 0
        yield LinkRates(
            short_task(status.task),
            peer,
            transport,
            (received - was[0]) / seconds if known else None,
            (sent - was[1]) / seconds if known else None,
            received,
            sent,
        )


def _by_peer(links: Sequence[Any]) -> dict[tuple[str, str], tuple[int, int]]:
    found: dict[tuple[str, str], tuple[int, int]] = {}
    for link in links:
        # A client's name is a long number; what counts is that it is one.
        peer = short_task(link.peer) if link.peer.startswith("/job:") else "client"
        received, sent = found.get((peer, link.transport), (0, 0))
        found[peer, link.transport] = received + link.bytes_in, sent + link.bytes_out
    return found


def total(values: Iterable[float | None]) -> float | None:
    """The sum of what is known; None if nothing is.

    >>> total([1.0, None, 2.0]), total([None])
    (3.0, None)
    """
    known = [value for value in values if value is not None]
    return sum(known) if known else None
