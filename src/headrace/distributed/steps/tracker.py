"""A step as the one who asked for it sees it: which tasks still run, and what came of it.

Sans I/O: methods are events and tell what to do. The master tracks steps with it, and a worker
that owns a loop over several tasks tracks the calls of its body.

    >>> step = StepTracker(7, ["ps", "worker"], now=0.0, on_end=lambda s: print(s.results))
    >>> step.done("ps", "variables")
    >>> step.done("worker", "losses")
    {'ps': 'variables', 'worker': 'losses'}
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any

from headrace.errors import OpError


class StepTracker:
    """One step over several tasks.

    A failed step has ended when every task that was asked has answered, so that nothing of it
    happens afterwards; but it waits only ``drain`` seconds for that.

    Attributes:
        number: of the step.
        members: the tasks that take part.
        tasks: those whose part has neither ended nor been given up.
        results: what each task's part gave.
        owner: for whom the step runs.
        links: over which each other task was asked for its part.
        error: the reason of failure; a cause is preferred to what followed from it.
    """

    __slots__ = (
        "_lock",
        "_on_end",
        "_over",
        "began",
        "error",
        "failed_at",
        "links",
        "members",
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
        self.members = frozenset(tasks)
        self.tasks = set(self.members)
        self.began = now
        self.results: dict[str, Any] = {}
        self.links: dict[str, Any] = {}
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
        self._end_if_empty()

    def failed(self, task: str, error: OpError, now: float) -> list[str]:
        """A part has failed. Returns the tasks to tell to stop."""
        with self._lock:
            if task not in self.tasks:
                return []
            self.tasks.discard(task)
            stop = self._fail(error, now)
        self._end_if_empty()
        return stop

    def lost(self, task: str, error: OpError, now: float) -> list[str]:
        """A task is gone. Returns the tasks to tell to stop.

        The step fails also if that task's part has ended: tensors that it sent to others last may
        never have left it, and those would wait for ever.
        """
        with self._lock:
            if task not in self.members or not self.tasks:
                return []
            self.tasks.discard(task)
            stop = self._fail(error, now)
        self._end_if_empty()
        return stop

    def parted(self, one: str, other: str, error: OpError, now: float) -> list[str]:
        """Two tasks have lost each other, and tensors between them. Returns the tasks to stop."""
        if one not in self.members or other not in self.members:
            return []
        return self.cancel(error, now)

    def cancel(self, error: OpError, now: float) -> list[str]:
        """The step is given up from outside. Returns the tasks to tell to stop."""
        with self._lock:
            return self._fail(error, now) if self.tasks else []

    def not_asked(self, tasks: Iterable[str]) -> None:
        """The step failed before these tasks were asked for their parts: they will not answer."""
        with self._lock:
            self.tasks.difference_update(tasks)
        self._end_if_empty()

    def _fail(self, error: OpError, now: float) -> list[str]:
        first = self.error is None
        # Errors may overtake each other: a task that was told to stop may be heard before the one
        # whose failure was the reason. The user gets to see the reason.
        if self.error is None or (_derived(self.error) and not _derived(error)):
            self.error = error
        if not first:
            return []
        self.failed_at = now
        return sorted(self.tasks)

    def overdue(self, now: float, drain: float) -> None:
        """Time has passed: a failed step does not wait for ever for those told to stop."""
        if self.failed_at is not None and now - self.failed_at >= drain:
            with self._lock:
                self.tasks.clear()
            self._end_if_empty()

    def _end_if_empty(self) -> None:
        with self._lock:
            if self._over or self.tasks:
                return
            # Once only, whichever thread comes first.
            self._over = True
        self._on_end(self)


def _derived(error: OpError) -> bool:
    return bool(getattr(error, "derived", False))
