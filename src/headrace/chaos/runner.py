"""A run: processes train while the faults of a schedule happen to them."""

from __future__ import annotations

import heapq
import itertools
import signal
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

from headrace.chaos.schedule import Fault

__all__ = ["Tasks", "follow"]

#: How often processes are looked at.
LOOK_SECONDS = 0.25
#: What a task sends is held back for so long at a time.
DELAY_SECONDS = 0.1
#: Each file that is opened, renamed or removed on a slow disk takes so much longer.
DISK_SECONDS = 0.2
#: A wall clock jumps by so much, forward or back.
CLOCK_SECONDS = 600.0
#: On a full disk a file can have so many bytes: the system fails writes as it does there.
FULL_BYTES = 64


class Tasks(Protocol):
    """What faults happen to."""

    def start(self, task: str) -> Any:
        """Start a process for a task."""

    def end(self, task: str, number: int) -> Any:
        """End the process of a task by a signal."""

    def signal(self, task: str, number: int) -> None:
        """Send a signal to the process of a task."""

    def tell(self, task: str, **what: Any) -> None:
        """Tell the process of a task, or of all tasks if it is "", what it should do."""

    def limit(self, size: int | None) -> None:
        """Let no process write a file beyond so many bytes, until this is called with None."""

    def look(self) -> None:
        """See whether processes have ended by themselves, and how large they are."""


def follow(
    schedule: Sequence[Fault],
    seconds: float,
    tasks: Tasks,
    clock: Callable[[], float] = time.monotonic,
    wait: Callable[[float], object] = time.sleep,
) -> None:
    """Let the faults of a schedule happen, and return when the time is over.

    Args:
        seconds: how long, at least until the last fault is over.
        clock: seconds; wait: waits for so many.
    """
    began, numbers = clock(), itertools.count()
    todo: list[tuple[float, int, Callable[[], object]]] = []

    def at(when: float, what: Callable[[], object]) -> None:
        heapq.heappush(todo, (when, next(numbers), what))

    for fault in schedule:
        begin, end = _ACTIONS[fault.kind]
        at(fault.at, partial(begin, tasks, fault))
        if end is not None:
            at(fault.end, partial(end, tasks, fault))
    at(seconds, lambda: None)
    while todo:
        left = todo[0][0] - (clock() - began)
        if left <= 0:
            heapq.heappop(todo)[2]()
            continue
        wait(min(left, LOOK_SECONDS))
        tasks.look()


def _kill(tasks: Tasks, fault: Fault) -> None:
    tasks.end(fault.task, signal.SIGKILL)


def _terminate(tasks: Tasks, fault: Fault) -> None:
    tasks.end(fault.task, signal.SIGTERM)


def _start(tasks: Tasks, fault: Fault) -> None:
    tasks.start(fault.task)


def _stop(tasks: Tasks, fault: Fault) -> None:
    tasks.signal(fault.task, signal.SIGSTOP)


def _go_on(tasks: Tasks, fault: Fault) -> None:
    tasks.signal(fault.task, signal.SIGCONT)


def _cut(tasks: Tasks, fault: Fault) -> None:
    tasks.tell(fault.task, do="cut")


def _delay(tasks: Tasks, fault: Fault) -> None:
    tasks.tell(fault.task, do="delay", seconds=fault.seconds, by=DELAY_SECONDS)


def _skew(tasks: Tasks, fault: Fault) -> None:
    # The schedule has no number for it: as often forward as back.
    by = CLOCK_SECONDS if int(fault.at * 1000) % 2 else -CLOCK_SECONDS
    tasks.tell(fault.task, do="clock", seconds=fault.seconds, by=by)


def _slow(tasks: Tasks, fault: Fault) -> None:
    tasks.tell("", do="slow disk", seconds=fault.seconds, by=DISK_SECONDS)


def _fill(tasks: Tasks, fault: Fault) -> None:
    tasks.limit(FULL_BYTES)


def _make_room(tasks: Tasks, fault: Fault) -> None:
    tasks.limit(None)


_Action = Callable[[Tasks, Fault], None]
#: Kind of fault -> what happens when it begins, and when it ends.
_ACTIONS: dict[str, tuple[_Action, _Action | None]] = {
    "kill": (_kill, _start),
    "restart": (_terminate, _start),
    "stop": (_stop, _go_on),
    "cut": (_cut, None),
    "delay": (_delay, None),
    "clock": (_skew, None),
    "slow disk": (_slow, None),
    "full disk": (_fill, _make_room),
}
