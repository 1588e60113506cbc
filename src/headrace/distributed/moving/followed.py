"""What changes of some variables while a copy of them is made elsewhere."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

from headrace.distributed.standby.journal import Journal
from headrace.executor.resources import ResourceHandle, ResourceStore, Rows
from headrace.ops.core.copied import CopiedResource

__all__ = ["Followed"]


class Followed(Journal):
    """A journal of some variables of a store.

    Args:
        store: tells of its changes from `add` on.
    """

    def __init__(self, store: ResourceStore) -> None:
        super().__init__(store)
        self._keys: set[Hashable] = set()

    def note(self, key: Hashable, rows: Rows = None) -> None:
        if key in self._keys:
            super().note(key, rows)

    def made(self, key: Hashable, value: Any) -> None:
        if key in self._keys:
            super().made(key, value)

    def add(self, keys: Iterable[ResourceHandle]) -> None:
        """Copy these variables too."""
        with self._store.lock:
            more = [key for key in keys if key not in self._keys]
            self._keys.update(more)
            self._store.listen(self)
            for key in more:
                value = self._store.known(key)
                if isinstance(value, CopiedResource):
                    value.end_copy()
                    self.made(key, value)
                    with self._lock:
                        self._objects[key] = None
                else:
                    self._unfilled[key] = None
        self.news.set()

    def stop(self) -> None:
        with self._store.lock:
            self._store.listen(self, is_on=False)
            self._changed.clear()
            self._unfilled.clear()
            for key in self._keys:
                value = self._store.known(key)
                if isinstance(value, CopiedResource):
                    value.end_copy()
            with self._lock:
                self._objects.clear()

    @property
    def bytes_left(self) -> int:
        """How much is to be sent, were it sent now; rows count as whole variables, and what has
        changed of a table as nothing."""
        with self._store.lock:
            keys = {*self._changed, *self._unfilled}
            return sum(int(getattr(self._store.get(k), "nbytes", 0)) for k in keys)
