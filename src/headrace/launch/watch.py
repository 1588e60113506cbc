"""What the running cluster tells of itself, asked for about once a second in a thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from headrace.launch.job import TaskId
from headrace.launch.rules import ClusterSize

__all__ = ["ClusterWatch", "Reading"]

_PERIOD = 1.0


@dataclass(frozen=True)
class Reading:
    """A task at a moment.

    Attributes:
        steps: that clients of this task have run, or parts of steps for a server.
        time: of the reading, in seconds; memory: in bytes.
        awaits_group: whether a step waits until a group of all-reduce is complete.
    """

    steps: int
    time: float
    memory: int
    awaits_group: bool = False


class ClusterWatch:
    """Asks one task after another, until one answers for all.

    Args:
        addresses: of the tasks, best first; called each time.
        is_elastic: whether to ask for the wanted size, too.
        on_news: called in the thread when there is something new.
    """

    def __init__(
        self,
        addresses: Callable[[], Sequence[str]],
        is_elastic: bool,
        on_news: Callable[[], None],
    ) -> None:
        self._addresses, self._is_elastic, self._on_news = addresses, is_elastic, on_news
        self._stopped = threading.Event()
        #: By task: the last reading and the one before, of the same process.
        self.readings: dict[TaskId, tuple[Reading, Reading | None]] = {}
        self._starts: dict[TaskId, int] = {}
        self.size: ClusterSize | None = None
        #: How often it was asked.
        self.rounds = 0
        self._thread = threading.Thread(target=self._run, name="headrace watch", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End; a call under way is not waited for."""
        self._stopped.set()

    def rate(self, task: TaskId) -> float | None:
        """Steps a second between the last two readings."""
        last, before = self.readings.get(task, (None, None))
        if last is None or before is None or last.time <= before.time:
            return None
        return (last.steps - before.steps) / (last.time - before.time)

    def waiting(self) -> dict[TaskId, float]:
        """The tasks that waited for a group of all-reduce when they were read last: when."""
        last = ((task, reading) for task, (reading, _) in list(self.readings.items()))
        return {task: reading.time for task, reading in last if reading.awaits_group}

    def _run(self) -> None:
        # Tasks are starting meanwhile, and need the processors more.
        while not self._stopped.wait(_PERIOD):
            if not any(self._ask(address) for address in self._addresses()):
                self.size = None
            self.rounds += 1
            if not self._stopped.is_set():
                self._on_news()

    def _ask(self, address: str) -> bool:
        """Ask one task for all; whether it has answered."""
        from headrace.distributed.services import admin
        from headrace.errors import OpError

        try:
            tasks = admin.status(address)
            asked = time.monotonic()
            answer = admin.resize(address, {}) if self._is_elastic else None
        except (OpError, ValueError):
            return False
        now = time.monotonic()
        present = set()
        for status in tasks:
            task = _task_of(status.task)
            present.add(task)
            if status.problem:
                continue
            sessions = sum(s.steps for s in status.sessions)
            waits = bool(status.awaited_groups)
            reading = Reading(sessions or status.steps_run, now, status.memory_bytes, waits)
            last = self.readings.get(task)
            is_same = last is not None and self._starts.get(task) == status.incarnation
            self._starts[task] = status.incarnation
            self.readings[task] = (reading, last[0] if last and is_same else None)
        if answer is not None:
            wanted = dict(answer.record.wanted)
            self.size = ClusterSize(wanted, dict(answer.missing), frozenset(present), asked)
        return True


def _task_of(name: str) -> TaskId:
    """
    >>> str(_task_of("/job:ps/replica:0/task:1"))
    'ps/1'
    """
    job, task = name.split("/")[1], name.rpartition(":")[2]
    return TaskId(job.removeprefix("job:"), int(task))
