"""Traces of steps that somebody else runs: who wants one waits for the next step of a master."""

from __future__ import annotations

import threading
from typing import Any

from headrace.errors import DeadlineExceededError

__all__ = ["NextTrace", "TraceWish"]


class TraceWish:
    """A trace that somebody waits for.

    Attributes:
        least_tasks: steps that fewer tasks run are let through.
        answer: what it was filled with.
    """

    def __init__(self, least_tasks: int) -> None:
        self.least_tasks = least_tasks
        self.answer: Any = None
        self.is_there = threading.Event()


class NextTrace:
    """The wishes for traces of one master.

    >>> traces = NextTrace()
    >>> traces.is_wanted(2)
    False
    """

    def __init__(self) -> None:
        self._wishes: list[TraceWish] = []
        self._lock = threading.Lock()

    def is_wanted(self, tasks: int) -> bool:
        """Whether somebody waits for the trace of a step that so many tasks run."""
        # The usual case costs a look at a list.
        return bool(self._wishes) and bool(self._fitting(tasks))

    def wait(self, timeout: float, least_tasks: int = 1) -> Any:
        """The trace of the next step, a TraceResponse message; a step that fails gives none.

        Args:
            timeout: seconds to wait for its end.
            least_tasks: steps that fewer tasks run are let through.

        Raises:
            DeadlineExceededError: if there is none in time.
        """
        wish = TraceWish(least_tasks)
        with self._lock:
            self._wishes.append(wish)
        try:
            wish.is_there.wait(timeout)
        finally:
            with self._lock:
                if wish in self._wishes:
                    self._wishes.remove(wish)
        if wish.answer is None:
            by = f" that {least_tasks} tasks run" if least_tasks > 1 else ""
            text = f"No step{by} has ended within {timeout:.1f} s. Does a session of this task run?"
            raise DeadlineExceededError(None, None, text)
        return wish.answer

    def give(self, tasks: int, answer: Any) -> None:
        """A step that so many tasks ran was traced."""
        with self._lock:
            fitting = self._fitting(tasks)
            self._wishes = [wish for wish in self._wishes if wish not in fitting]
        for wish in fitting:
            wish.answer = answer
            wish.is_there.set()

    def _fitting(self, tasks: int) -> list[TraceWish]:
        return [wish for wish in list(self._wishes) if wish.least_tasks <= tasks]
