"""What of a store is not yet kept elsewhere, and who waits for that.

Not updates are kept, but what they change: variables as a whole, or the rows that they touch. So
updates that come while a copy is on its way become one, and what is sent has the values of the
moment; nothing is applied twice or in another order.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple, TypeGuard

import numpy as np

from headrace.executor.resources import ResourceHandle, ResourceStore, Rows, owned

__all__ = ["Change", "Journal"]

#: While a copy is filled, so many bytes of variables that nobody changes go at a time.
_FILL_BYTES = 32 << 20


class Change(NamedTuple):
    """What is to be sent of a variable.

    Attributes:
        value: now; None if there is none any more.
        rows: indices of what has changed; None for all of it.
    """

    key: ResourceHandle
    value: Any
    rows: Any


class Journal:
    """Changes of a store since they were last taken, in the order of their commits.

    Each commit has a number. Who changes something, or has seen it, waits until the copy has it.

    Args:
        store: tells of its changes from now on.
    """

    def __init__(self, store: ResourceStore) -> None:
        self._store = store
        #: Indices of changed rows by variable; None for all rows.
        self._changed: dict[ResourceHandle, list[Any] | None] = {}
        self._unfilled: dict[ResourceHandle, None] = {}
        self._sequence = 0
        self._kept = 0
        self._gated = False
        self._waiting: deque[tuple[int, Callable[[], None]]] = deque()
        self._lock = threading.Lock()
        #: Set when there is something to send.
        self.news = threading.Event()

    # -- what changes -----------------------------------------------------------------------------

    def note(self, key: Hashable, rows: Rows = None) -> None:
        """A value has changed; the lock of the store is held."""
        if not is_kept(key) or (rows is not None and not len(rows)):
            return
        self._sequence += 1
        if key not in self._unfilled:
            self._add(key, rows)
        self.news.set()

    def _add(self, key: ResourceHandle, rows: Rows) -> None:
        known = self._changed.setdefault(key, [])
        if rows is None or known is None:
            self._changed[key] = None
        else:
            # Whoever made them may use their memory again before they are sent.
            known.extend(map(owned, rows))

    def fill(self) -> None:
        """Somebody begins to keep a copy: it is to get everything."""
        with self._store.lock:
            self._changed.clear()
            keys = [key for key, _ in self._store.items()]
            self._unfilled = dict.fromkeys(key for key in keys if is_kept(key))
            self._store.changes = self
        self.news.set()

    def stop(self) -> None:
        """Nobody keeps a copy any more."""
        with self._store.lock:
            self._store.changes = None
            self._changed.clear()
            self._unfilled.clear()

    def take(self) -> tuple[int, list[Change], bool]:
        """What to send now. The arrays are lent to this thread until `give_back`.

        Returns:
            The number of the last commit that is in it, the changes, and whether the copy is whole
            when it has them.
        """
        with self._store.lock:
            self.news.clear()
            changed, self._changed = self._changed, {}
            size = 0
            while self._unfilled and size < _FILL_BYTES:
                key, _ = self._unfilled.popitem()
                changed[key] = None
                size += getattr(self._store.get(key), "nbytes", 0)
            if self._unfilled:
                self.news.set()
            values = {key: self._store.get(key) for key in changed}
            self._store.claims.lend(v for v in values.values() if v is not None)
            sequence, is_whole = self._sequence, not self._unfilled
        # Not under the lock: indices may still be computed.
        changes = [Change(key, values[key], _rows(rows)) for key, rows in changed.items()]
        return sequence, changes, is_whole

    def give_back(self, changes: list[Change]) -> None:
        """The changes are on their way: others may change the arrays in place."""
        with self._store.lock:
            self._store.claims.give_back(c.value for c in changes if c.value is not None)

    # -- who waits --------------------------------------------------------------------------------

    def gate(self, is_gated: bool) -> None:
        """Say whether `when_kept` waits for the copy."""
        with self._lock:
            self._gated = is_gated
        self._release()

    def when_kept(self, call: Callable[[], None]) -> None:
        """Call when the copy has all that has changed so far; at once where none is waited for."""
        with self._lock:
            if self._gated and self._kept < self._sequence:
                self._waiting.append((self._sequence, call))
                return
        call()

    def kept(self, sequence: int) -> None:
        """The copy has everything up to this commit."""
        with self._lock:
            self._kept = max(self._kept, sequence)
        self._release()

    def _release(self) -> None:
        ready = []
        with self._lock:
            while self._waiting and (not self._gated or self._waiting[0][0] <= self._kept):
                ready.append(self._waiting.popleft()[1])
        for call in ready:
            call()

    @property
    def is_gated(self) -> bool:
        """Whether `when_kept` waits for the copy."""
        return self._gated


def is_kept(key: Hashable) -> TypeGuard[ResourceHandle]:
    """Whether copies have what this stands for: variables, no queues or other objects."""
    return isinstance(key, ResourceHandle) and key.kind == "variable"


def _rows(rows: list[Any] | None) -> Any:
    if rows is None:
        return None
    flat = [np.asarray(r).reshape(-1) for r in rows]
    return np.unique(np.concatenate(flat)) if flat else np.empty(0, np.int64)
