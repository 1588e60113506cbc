"""What of a store is not yet kept elsewhere, and who waits for that.

Not updates are kept, but what they change: variables as a whole, or the rows that they touch; of
objects what these say themselves (`ops.core.copied`). So updates that come while a copy is on its
way become one, and what is sent has the values of the moment; nothing is applied twice or in
another order.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Hashable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from headrace.distributed.standby.kinds import VARIABLE, is_forgotten, is_kept
from headrace.executor.resources import ResourceHandle, ResourceStore, Rows, owned
from headrace.ops.core.copied import CopiedResource

__all__ = ["Change", "Journal"]

_log = logging.getLogger("headrace.distributed")

#: While a copy is filled, so many bytes of what nobody changes go at a time.
_FILL_BYTES = 32 << 20
#: Who waits for a program looks so often whether it has ended, in seconds.
_LOOK = 0.05


class Change(NamedTuple):
    """What is to be sent of a variable, or of an object.

    Attributes:
        value: now; None if there is none any more. Of an object: what it makes of its changes.
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
        piece: bytes of what nobody changes that go at a time, while a copy is filled.
    """

    def __init__(self, store: ResourceStore, piece: int = _FILL_BYTES) -> None:
        self._piece = piece
        self._store = store
        #: Indices of changed rows by variable; None for all rows.
        self._changed: dict[ResourceHandle, list[Any] | None] = {}
        self._unfilled: dict[ResourceHandle, None] = {}
        #: Objects that have changed, or were not sent whole yet.
        self._objects: dict[ResourceHandle, None] = {}
        #: The number of the last commit; of the last one up to which everything has been taken.
        self._sequence = self._taken = 0
        self._kept = 0
        self._forgotten: set[str] = set()
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
        with self._lock:
            self._sequence += 1
        if key not in self._unfilled:
            self._add(key, rows)
        self.news.set()

    def made(self, key: Hashable, value: Any) -> None:
        """There is an object that was not there before; the lock of the store is held."""
        if isinstance(value, CopiedResource) and is_kept(key):
            if value.listener is None:
                value.begin_copy(partial(self._object_changed, key))
        elif is_forgotten(key, value) and key.kind not in self._forgotten:
            self._forgotten.add(key.kind)
            _log.warning(
                "%s %s, and others of this kind, are not copied: a server that takes the place of "
                "this one begins them anew",
                key.kind,
                key.name,
            )

    def _object_changed(self, key: ResourceHandle) -> None:
        """An object has changed. It holds its own lock: that of the store must not be asked for."""
        with self._lock:
            self._sequence += 1
            self._objects[key] = None
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
            there = self._store.all_known()
            self._unfilled = dict.fromkeys(k for k in there if is_kept(k) and k.kind == VARIABLE)
            self._store.listen(self)
            for key, value in there.items():
                if isinstance(value, CopiedResource):
                    value.end_copy()
                self.made(key, value)
            with self._lock:
                objects = [k for k in there if is_kept(k) and k.kind != VARIABLE]
                self._objects = dict.fromkeys(objects)
        self.news.set()

    def stop(self) -> None:
        """Nobody keeps a copy any more."""
        with self._store.lock:
            self._store.listen(self, is_on=False)
            self._changed.clear()
            self._unfilled.clear()
            for value in self._store.all_known().values():
                if isinstance(value, CopiedResource):
                    value.end_copy()
            with self._lock:
                self._objects.clear()

    def take(self) -> tuple[int, list[Change], bool]:
        """What to send now. The arrays are lent to this thread until `give_back`.

        Returns:
            The number of the last commit up to which the copy has everything when it has this, the
            changes, and whether the copy is whole then.
        """
        with self._store.lock:
            # What a program is changing in place is no value now. While this waits for one, others
            # may have changed, and change again.
            claims = self._store.claims
            while not claims.replaced.isdisjoint(wanted := {*self._changed, *self._unfilled}):
                claims.wait_until_there(wanted, lambda: _LOOK)
            self.news.clear()
            changed, self._changed = self._changed, {}
            size = 0
            while self._unfilled and size < self._piece:
                key, _ = self._unfilled.popitem()
                changed[key] = None
                size += getattr(self._store.get(key), "nbytes", 0)
            if self._unfilled:
                self.news.set()
            values = {key: self._store.known(key) for key in changed}
            claims.lend(v for v in values.values() if _is_array(v))
            with self._lock:
                sequence, objects, self._objects = self._sequence, self._objects, {}
            objects |= {k: None for k, v in values.items() if isinstance(v, CopiedResource)}
            told = {key: self._store.known(key) for key in objects}
        # Not under the lock: indices may still be computed.
        changes = [
            Change(key, values[key], _rows(rows))
            for key, rows in changed.items()
            if key not in objects
        ]
        is_whole = self._add_objects(told, changes) and not self._unfilled
        if is_whole:
            self._taken = sequence
        return self._taken, changes, is_whole

    def _add_objects(self, objects: dict[ResourceHandle, Any], changes: list[Change]) -> bool:
        """Add what objects say; whether that is all. If not, they are asked again."""
        is_all = True
        for key, value in objects.items():
            if isinstance(value, CopiedResource):  # else it is gone, which was noted
                told, is_last = value.changes(self._piece)
                changes.append(Change(key, told, None))
                if not is_last:
                    is_all = False
                    with self._lock:
                        self._objects[key] = None
                    self.news.set()
        return is_all

    def give_back(self, changes: list[Change]) -> None:
        """The changes are on their way: others may change the arrays in place."""
        with self._store.lock:
            self._store.claims.give_back(c.value for c in changes if _is_array(c.value))

    # -- who waits --------------------------------------------------------------------------------

    def gate(self, is_gated: bool) -> None:
        """Say whether `when_kept` waits for the copy."""
        with self._lock:
            self._gated = is_gated
        self._release()

    def hold(self) -> None:
        """The copy cannot be reached, and may be served: nothing counts as kept any more.

        Not even what has not changed since: who only reads must not see what may be old.
        """
        with self._lock:
            self._sequence += 1

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


def _is_array(value: Any) -> bool:
    """Whether this is the value of a variable."""
    return not (value is None or isinstance(value, (list, CopiedResource)))


def _rows(rows: list[Any] | None) -> Any:
    if rows is None:
        return None
    flat = [np.asarray(r).reshape(-1) for r in rows]
    return np.unique(np.concatenate(flat)) if flat else np.empty(0, np.int64)
