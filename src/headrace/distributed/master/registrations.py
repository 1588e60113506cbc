"""Plans that a master has handed to tasks, until these have answered."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from headrace.distributed.wire.failures import unavailable
from headrace.errors import OpError


class Registrations:
    """Plans whose parts wait for the answers of tasks."""

    def __init__(self) -> None:
        self._waiting: dict[int, Registration] = {}

    def expect(self, plan: int, tasks: Sequence[str]) -> Registration:
        """Wait for these tasks."""
        made = self._waiting[plan] = Registration(tasks)
        return made

    def forget(self, plan: int) -> None:
        """No longer wait."""
        self._waiting.pop(plan, None)

    def registered(self, plan: int, task: str, error: OpError | None) -> None:
        """A task has answered."""
        waiting = self._waiting.get(plan)
        if waiting is not None:
            waiting.answered(task, error)

    def peer_lost(self, task: str, reason: str) -> None:
        """A task will not answer."""
        for waiting in list(self._waiting.values()):
            waiting.answered(task, unavailable(task, None, reason))


class Registration:
    """The answers that one plan waits for."""

    def __init__(self, tasks: Sequence[str]) -> None:
        self._tasks = set(tasks)
        self._error: OpError | None = None
        self._condition = threading.Condition()

    def answered(self, task: str, error: OpError | None) -> None:
        """A task has answered, or will not."""
        with self._condition:
            if task in self._tasks:
                self._tasks.discard(task)
                self._error = self._error or error
                self._condition.notify_all()

    def wait(self, timeout: float) -> None:
        """Wait until all have answered.

        Raises:
            OpError: what a task answered.
            UnavailableError: if one does not answer in time.
        """
        deadline = time.monotonic() + timeout
        with self._condition:
            while self._tasks and self._error is None:
                left = deadline - time.monotonic()
                if left <= 0:
                    task = min(self._tasks)
                    reason = f"it did not take its part of a plan within {timeout:g} s"
                    raise unavailable(task, None, reason)
                self._condition.wait(left)
            if self._error is not None:
                raise self._error
