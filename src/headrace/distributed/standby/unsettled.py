"""Moves whose end a server does not know yet: who takes its place finds that out first.

A server that gives variables away writes down which before it asks for the change of the record of
the cluster, and one that gets some which when they have come; both wait until their copies have
that. So a copy that is served knows of what it must ask the record.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from headrace.executor.resources import ResourceHandle, ResourceStore
from headrace.ops.core.copied import CopiedResource

__all__ = ["UNSETTLED", "UnsettledMoves", "unsettled_of"]

#: No container that a program could clear has this name.
UNSETTLED = ResourceHandle("private moves", "moves of variables", "unsettled")


class UnsettledMoves(CopiedResource):
    """The variables of moves whose end is not known.

    Attributes:
        giving: those that may be elsewhere; ``arriving``: those that may still be elsewhere.

    >>> moves, handle = UnsettledMoves(), ResourceHandle("variable", "", "w")
    >>> moves.mark([handle], arrives=True)
    >>> copy = UnsettledMoves.copy_of("unsettled", moves.changes(0)[0])
    >>> copy.apply_changes(moves.changes(0)[0])
    >>> copy.arriving == {handle}
    True
    >>> moves.clear([handle])
    >>> moves.is_empty
    True
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.giving: set[ResourceHandle] = set()
        self.arriving: set[ResourceHandle] = set()

    def mark(self, handles: Iterable[ResourceHandle], arrives: bool) -> None:
        """These are about to go, or have come."""
        with self._lock:
            (self.arriving if arrives else self.giving).update(handles)
            self._tell()

    def clear(self, handles: Iterable[ResourceHandle]) -> None:
        """It is known where these are."""
        with self._lock:
            gone = set(handles)
            self.giving -= gone
            self.arriving -= gone
            self._tell()

    def abandon(self) -> None:
        """Nobody waits for it."""

    @property
    def is_empty(self) -> bool:
        return not (self.giving or self.arriving)

    def begin_copy(self, listener: Callable[[], None]) -> None:
        with self._lock:
            self.listener = listener

    def changes(self, most: int) -> tuple[list[Any], bool]:
        with self._lock:
            told = [sorted((h.kind, h.container, h.name) for h in s) for s in self._both]
        return [np.frombuffer(json.dumps(told).encode(), np.uint8)], True

    @property
    def _both(self) -> tuple[set[ResourceHandle], set[ResourceHandle]]:
        return self.giving, self.arriving

    @classmethod
    def copy_of(cls, name: str, changes: Sequence[Any]) -> UnsettledMoves:
        return cls()

    def apply_changes(self, changes: Sequence[Any]) -> None:
        giving, arriving = json.loads(bytes(changes[0]))
        self.giving = {ResourceHandle(*names) for names in giving}
        self.arriving = {ResourceHandle(*names) for names in arriving}

    def adopt_copy(self, copy: Any) -> None:
        with self._lock:
            self.giving, self.arriving = copy.giving, copy.arriving
            self.listener = copy.listener


def unsettled_of(store: ResourceStore) -> UnsettledMoves:
    """Those of a server."""
    found: UnsettledMoves = store.object(UNSETTLED, UnsettledMoves)
    return found
