"""What a master knows of other tasks, as state machines: events in, decisions out, no I/O."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from headrace.errors import AbortedError

__all__ = ["Farewells", "Membership", "Presence"]


class Membership:
    """Which start of each task a session belongs to.

    The first start that a session meets is the one: its plans and variables are there. A link may
    be lost and made anew; a task that was started again has lost what the session had there.
    """

    def __init__(self) -> None:
        self._incarnations: dict[str, int] = {}

    def met(self, task: str, incarnation: int) -> None:
        """The session uses a task, or uses it again.

        Raises:
            AbortedError: if it was started again since the session used it first.
        """
        if self._incarnations.setdefault(task, incarnation) != incarnation:
            raise AbortedError(
                None,
                None,
                f"Task {task} was started again: what this session had there (variables, plans) is "
                "gone. Make a new session and initialise or restore the variables.",
            )

    def is_member(self, task: str, incarnation: int) -> bool:
        """Whether this start of the task is the one that the session uses."""
        return self._incarnations.get(task) == incarnation

    def members(self) -> dict[str, int]:
        """All tasks that the session has met."""
        return dict(self._incarnations)


class Farewells:
    """What tasks must still be told that could not be reached: which plans they can forget.

    A task that stays away, or that was started again, forgets by itself.
    """

    def __init__(self, keep: float) -> None:
        self._keep = keep
        self._lock = threading.Lock()
        self._left: list[tuple[float, str, int, Any]] = []

    def add(self, task: str, incarnation: int, message: Any, now: float) -> None:
        """Tell this start of a task later."""
        with self._lock:
            self._left.append((now, task, incarnation, message))

    def due(self, now: float, find: Callable[[str], Any]) -> list[tuple[Any, Any]]:
        """``(link, message)`` for those that can be told now; ``find(task)`` is its link or None.

        They are out of the list by this.
        """
        ready: list[tuple[Any, Any]] = []
        kept = []
        with self._lock:
            for entry in self._left:
                since, task, incarnation, message = entry
                link = find(task)
                if link is not None and link.peer.incarnation == incarnation:
                    ready.append((link, message))
                elif link is None and now - since <= self._keep:
                    kept.append(entry)
            self._left = kept
        return ready

    def __len__(self) -> int:
        return len(self._left)


class Presence:
    """For how long clients have been away."""

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._seen: dict[str, float] = {}

    def gone(self, clients: set[str], now: float, present: Callable[[str], bool]) -> set[str]:
        """Those of the clients that were not there for longer than the patience lasts."""
        gone = set()
        for client in self._seen.keys() - clients:
            del self._seen[client]
        for client in clients:
            if present(client):
                self._seen[client] = now
            elif now - self._seen.setdefault(client, now) > self._patience:
                gone.add(client)
        return gone
