"""What a copy of a table of embeddings is told: keys, and what their rows are now."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headrace.ops.embeddings.key_index import Keys

__all__ = ["CopyProgress", "apply_changes"]

Array = NDArray[Any]


class CopyProgress:
    """What of an `EmbeddingStore` its copy does not have. Used with the lock of the store held.

    Keys are noted, not rows: a key that has none any more is one to be removed.
    """

    def __init__(self) -> None:
        #: The copy has what it should of the rows before this one, but for the noted keys.
        self._next = 0
        self._begins = True
        self._keys: list[Keys] = []

    def note(self, keys: Keys) -> None:
        """The rows of keys are others."""
        if len(keys):
            self._keys.append(keys)

    def take(self, table: Any, most: int) -> tuple[list[Any], bool]:
        """See `CopiedResource.changes`."""
        columns = [table.values, *table.slots.values()]
        keys = np.concatenate([np.empty(0, np.int64), *self._keys])
        self._keys = []
        if self._next < table.made:
            row_bytes = sum(c.row_bytes for c in columns)
            end = min(table.made, self._next + max(1, most // row_bytes))
            own = table.keys.array[self._next : end]
            in_use = table.index.find(own) == np.arange(self._next, end)
            keys, self._next = np.concatenate([keys, own[in_use]]), end
        keys = np.unique(keys)
        rows = table.index.find(keys)
        there = rows >= 0
        gone, keys, rows = keys[~there], keys[there], rows[there]
        header = np.array([self._begins, table.clock, table.spec.memory_limit], np.int64)
        self._begins = False
        names = np.array([table.spec.directory.encode(), *(s.name.encode() for s in table.slots)])
        starts = np.array([s.start for s in table.slots], np.float64)
        small = [table.sightings.array[rows], table.seen.array[rows]]
        large = []
        for column in columns:
            values = np.empty((len(rows), table.spec.width), table.dtype)
            column.take(rows, values)
            large.append(values)
        found = [header, names.astype(object), starts, gone, keys, *small, *large]
        return found, self._next >= table.made


def apply_changes(table: Any, changes: Sequence[Any], slot_spec: Callable[..., Any]) -> None:
    """Do what `CopyProgress.take` says, with the lock of the table held; it begins anew before."""
    header, names, starts, gone, keys, sightings, seen, values, *slots = changes
    table.clock = int(header[1])
    rows = table.index.find(gone)
    table.remove_rows(rows[rows >= 0])
    rows = table.index.find_or_add(keys, table.new_rows)
    table.sightings.put(rows, sightings)
    table.seen.put(rows, seen)
    table.values.put(rows, values)
    for name, start, of_slot in zip(names[1:], starts, slots, strict=True):
        table.column(slot_spec(name.decode(), float(start))).put(rows, of_slot)
