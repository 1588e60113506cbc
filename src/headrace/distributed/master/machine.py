"""What a master knows of other tasks, as state machines: events in, decisions out, no I/O.

>>> session = Membership()
>>> session.met("/job:ps/replica:0/task:0", incarnation=11)
>>> session.is_member("/job:ps/replica:0/task:0", 12)  # the task at its next start
False
>>> presence = Presence(patience=10.0)
>>> [presence.gone({"client"}, now, lambda _: False) for now in (0.0, 11.0)]
[set(), {'client'}]
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
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

    def forget(self, task: str) -> None:
        """The session has nothing at a task any more."""
        self._incarnations.pop(task, None)

    def is_member(self, task: str, incarnation: int) -> bool:
        """Whether this start of the task is the one that the session uses."""
        return self._incarnations.get(task) == incarnation

    def members(self) -> dict[str, int]:
        """All tasks that the session has met."""
        return dict(self._incarnations)


@dataclass
class _Farewell:
    since: float
    task: str
    incarnation: int
    message: Any
    #: The link it was sent over, and when.
    link: Any = None
    sent: float = 0.0


class Farewells:
    """What tasks must be told when nobody waits for an answer: which plans they can forget.

    A message is sent again when its link was lost soon after. A task that stays away, or that was
    started again, forgets by itself.

    Args:
        keep: a task that is away for so many seconds is not told any more.
        settle: a link that lives so many seconds after a message has carried it.
    """

    def __init__(self, keep: float, settle: float) -> None:
        self._keep, self._settle = keep, settle
        self._lock = threading.Lock()
        self._left: list[_Farewell] = []

    def add(self, task: str, incarnation: int, message: Any, now: float) -> None:
        """Tell this start of a task."""
        with self._lock:
            self._left.append(_Farewell(now, task, incarnation, message))

    def due(self, now: float, find: Callable[[str], Any]) -> list[tuple[Any, Any]]:
        """``(link, message)`` of what is to be sent now; ``find(task)`` is its link or None."""
        if not self._left:
            return []
        ready: list[tuple[Any, Any]] = []
        with self._lock:
            self._left = [f for f in self._left if self._keeps(f, now, find, ready)]
        return ready

    def _keeps(
        self, told: _Farewell, now: float, find: Callable[[str], Any], ready: list[tuple[Any, Any]]
    ) -> bool:
        # Sent. A link that lives on has carried it; one that is lost soon may not have.
        if told.link is not None and not told.link.lost:
            return now - told.sent <= self._settle
        link = find(told.task)
        if link is None:
            return now - told.since <= self._keep
        # Another start of the task: it knows of no such plan.
        if link.peer.incarnation != told.incarnation:
            return False
        told.link, told.sent = link, now
        ready.append((link, told.message))
        return True

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
