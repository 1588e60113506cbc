"""Resources of a server at which sessions have requests that wait.

A session is there as long as such a request waits: the step of a session that ends, or whose
client or master dies, is cancelled on all tasks, and with it the request. So these resources need
no clock.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from headrace.errors import CancelledError
from headrace.ops.core.registry import HostResource

__all__ = ["SessionKey", "WaitingResource", "session_key"]


class WaitingResource(HostResource):
    """State that requests change, holding `_changed`, and for whose changes they wait.

    Args:
        kind: what it is, and ``name``: which one, for messages.
    """

    def __init__(self, kind: str, name: str) -> None:
        self.name = name
        self._kind = kind
        self._changed = threading.Condition()
        self._is_gone = False

    def abandon(self) -> None:
        """The state is cleared: all that wait are cancelled."""
        with self._changed:
            self._is_gone = True
            self._changed.notify_all()

    def _wait(self, ready: Callable[[], bool], step: Any) -> None:
        """Wait, with `_changed` held, until ``ready()`` or the end of the step."""

        def over() -> bool:
            return self._is_gone or ready()

        if step is None:
            self._changed.wait_for(over)
        else:
            step.wait_for(self._changed, over)
        if self._is_gone:
            raise CancelledError(None, None, f"{self._kind} '{self.name}' was cleared.")


class SessionKey(HostResource):
    """Stands for a session. Compares as the object that it is."""

    def abandon(self) -> None:
        """Nothing waits for it."""


def session_key(context: Any, kind: str, name: str) -> SessionKey:
    """The key of the session whose step asks a resource; each session has its own for each name."""
    own = context.handle(f"private {kind}", "", name)
    found: SessionKey = context.store.object(own, SessionKey)
    return found
