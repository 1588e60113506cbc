"""A step as the one who asked for it sees it: which tasks still run, and what came of it.

Sans I/O: methods are events and tell what to do. The master tracks steps with it, and a worker
that owns a loop over several tasks tracks the calls of its body.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any

from headrace.errors import OpError

#: A step that has failed waits this long (seconds) for the tasks that were told to stop.
DRAIN_SECONDS = 2.0


class StepTracker:
    """One step over several tasks.

    Attributes:
        number: of the step.
        tasks: those whose part has neither ended nor been given up.
        results: what each task's part gave.
        owner: for whom the step runs.
        error: the reason of failure; a cause is preferred to what followed from it.
    """

    __slots__ = (
        "_lock",
        "_on_end",
        "_over",
        "began",
        "error",
        "failed_at",
        "number",
        "owner",
        "results",
        "tasks",
    )

    def __init__(
        self,
        number: int,
        tasks: Iterable[str],
        now: float,
        on_end: Callable[[StepTracker], None],
        owner: Any = None,
    ) -> None:
        self.owner = owner
        self.number = number
        self.tasks = set(tasks)
        self.began = now
        self.results: dict[str, Any] = {}
        self.error: OpError | None = None
        self.failed_at: float | None = None
        self._lock = threading.Lock()
        self._on_end = on_end
        self._over = False

    def done(self, task: str, result: Any) -> None:
        """A part has run."""
        with self._lock:
            if task not in self.tasks:
                return
            self.tasks.remove(task)
            self.results[task] = result
            ends = not self.tasks
        if ends:
            self._end()

    def failed(self, task: str, error: OpError, now: float) -> list[str]:
        """A part has failed, or its task is gone. Returns the tasks to tell to stop."""
        with self._lock:
            if task not in self.tasks:
                return []
            self.tasks.discard(task)
            stop = self._fail(error, now)
            ends = not self.tasks
        if ends:
            self._end()
        return stop

    def cancel(self, error: OpError, now: float) -> list[str]:
        """The step is given up from outside. Returns the tasks to tell to stop."""
        with self._lock:
            stop = self._fail(error, now) if self.tasks else []
            ends = not self.tasks
        if ends:
            self._end()
        return stop

    def _fail(self, error: OpError, now: float) -> list[str]:
        first = self.error is None
        if self.error is None or (_derived(self.error) and not _derived(error)):
            self.error = error
        if not first:
            return []
        self.failed_at = now
        return sorted(self.tasks)

    def overdue(self, now: float) -> None:
        """Time has passed: a failed step does not wait for ever for those told to stop."""
        if self.failed_at is not None and now - self.failed_at >= DRAIN_SECONDS:
            self._end()

    def _end(self) -> None:
        with self._lock:
            if self._over:
                return
            self._over = True
        self._on_end(self)


def _derived(error: OpError) -> bool:
    return bool(getattr(error, "derived", False))
