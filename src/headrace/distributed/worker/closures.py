"""Variables that this task takes no steps for: they are on their way to another, or have gone."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection

from headrace.errors import AbortedError, OpError, UnavailableError

__all__ = ["Closures"]


class Closures:
    """Which parts of steps are refused, and why.

    Args:
        task: the own one.

    Attributes:
        elsewhere: tells of a variable which other task has it, as the record of the cluster says;
            "" for none.
    """

    def __init__(self, task: str) -> None:
        self.task = task
        self.elsewhere: Callable[[str], str] = lambda key: ""
        self._closing: frozenset[str] = frozenset()
        self._closes_all = False
        self._left: dict[str, str] = {}
        self._lock = threading.Lock()

    def close(self, keys: Collection[str]) -> None:
        """These variables are on their way."""
        with self._lock:
            self._closing = frozenset(keys)

    def close_all(self) -> None:
        """The task is to leave, and takes no variables any more."""
        self._closes_all = True

    def open(self) -> None:
        """What is here stays."""
        self._closes_all = False
        self.close(())

    def gone(self, keys: Collection[str], task: str) -> None:
        """They have gone to a task."""
        with self._lock:
            self._left.update(dict.fromkeys(keys, task))
            self._closing = frozenset()

    def back(self, keys: Collection[str]) -> None:
        """These come from another task."""
        with self._lock:
            self._left = {k: t for k, t in self._left.items() if k not in keys}

    def refusal(self, keys: frozenset[str]) -> OpError | None:
        """Why no step may use these variables here; None if it may."""
        if not (self._closing or self._left or self._closes_all) or not keys:
            return None
        with self._lock:
            for key in keys & self._left.keys():
                # Where the other one has died, this task may be the one that stands for it.
                if self.elsewhere(key) != self.task:
                    return self.moved(key, self._left[key])
            for key in keys & self._closing:
                return UnavailableError(
                    None, None, f"Variable {key} is on its way from {self.task} to another task."
                )
        if self._closes_all:
            text = f"{self.task} leaves the cluster: variable {min(keys)} is soon elsewhere."
            return UnavailableError(None, None, text)
        return None

    def refusal_of_new(self, keys: frozenset[str], arriving: Collection[str]) -> OpError | None:
        """Why no new part may use them: the record says that they are elsewhere."""
        for key in keys:
            task = self.elsewhere(key)
            if task and task != self.task and key not in arriving:
                return self.moved(key, task)
        found = self.refusal(keys)
        return None if isinstance(found, UnavailableError) else found

    def moved(self, key: str, task: str) -> AbortedError:
        """The error of who looks for a variable here that has moved to a task."""
        return AbortedError(
            None,
            None,
            f"Variable {key} is not at {self.task} any more: it has moved to {task}. Make a new "
            "session, which finds it there.",
        )
