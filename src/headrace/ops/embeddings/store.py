"""What is behind the handle of a table of embeddings."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from headrace.graph.dtypes import DType
from headrace.ops.core.checks import invalid
from headrace.ops.core.parallel import in_pieces
from headrace.ops.core.registry import HostResource
from headrace.ops.embeddings.first_rows import FirstRows, RowStart
from headrace.ops.embeddings.key_index import KeyIndex, Keys
from headrace.ops.embeddings.row_memory import RowArray

Array = NDArray[Any]
#: Rows of an update that one thread works on: their states stay in its cache.
_PIECE = 1 << 10
_MOST_SIGHTINGS = np.iinfo(np.uint32).max


class EmbeddingSpec(NamedTuple):
    """What the op that makes a table says of it; equal for all that share it."""

    width: int
    dtype: DType
    start: RowStart


class SlotSpec(NamedTuple):
    """A slot that an optimiser keeps with each row: its name and what it starts with."""

    name: str
    start: float


class EmbeddingStore(HostResource):
    """Rows by key, with what optimisers keep for each row.

    ``lock`` is held for the length of one operation, so each of them sees and leaves whole rows.
    """

    def __init__(self, spec: EmbeddingSpec, name: str) -> None:
        self.spec = spec
        self.name = name
        self.lock = threading.RLock()
        self.index = KeyIndex()
        self.dtype = spec.dtype.as_numpy_dtype
        self.first = FirstRows(spec.start, spec.width, self.dtype)
        self.values = RowArray(self.dtype, spec.width)
        self.slots: dict[SlotSpec, RowArray] = {}
        self.keys = RowArray(np.int64)
        #: How often a key has been looked up, and the number of updates before the last time.
        self.sightings, self.seen = RowArray(np.uint32), RowArray(np.uint32)
        #: The number of updates so far.
        self.clock = 0
        #: Rows in use or free; and those that are free.
        self.made = 0
        self.free = np.empty(0, np.int64)
        self._claims = RowArray(np.int64)

    def abandon(self) -> None:
        """Nobody waits for a table."""

    def __len__(self) -> int:
        return len(self.index)

    # -- rows -------------------------------------------------------------------------------

    def _columns(self) -> list[RowArray]:
        """Everything that has one element for each row."""
        own = [self.values, self.keys, self.sightings, self.seen, self._claims]
        return [*own, *self.slots.values()]

    def _new_rows(self, keys: Keys) -> Array:
        """Rows for distinct keys, with their first values."""
        reused = min(len(keys), len(self.free))
        last = self.made + len(keys) - reused
        for column in self._columns():
            column.reserve(last)
        # Nothing has changed until here, so that a table survives the lack of memory.
        rows = np.concatenate([self.free[:reused], np.arange(self.made, last)])
        self.free, self.made = self.free[reused:], last
        self.values.put(rows, self.first.of(keys))
        self.keys.put(rows, keys)
        self.sightings.put(rows, 0)
        for slot, column in self.slots.items():
            column.put(rows, slot.start)
        return rows

    def column(self, slot: SlotSpec) -> RowArray:
        """The slot's rows, made when it is first asked for.

        Raises:
            InvalidArgumentError: if there is a slot of that name that starts otherwise.
        """
        found = self.slots.get(slot)
        if found is None:
            for other in self.slots:
                if other.name == slot.name:
                    raise invalid(
                        f"Slot {slot.name} of table {self.name} starts with {other.start}, not "
                        f"{slot.start}: two optimisers of one kind share it. Give them names."
                    )
            found = RowArray(self.dtype, self.spec.width)
            found.reserve(len(self.values))
            if slot.start:
                found.array[: self.made] = slot.start
            self.slots[slot] = found
        return found

    # -- what ops do ------------------------------------------------------------------------

    def find(self, keys: Any, grows: bool) -> Array:
        """The rows of keys: ``[*keys.shape, width]``.

        Args:
            grows: whether keys that are not there come into the table. If not, they give the
                values that they would start with, and nothing is counted.
        """
        flat = np.ascontiguousarray(keys, np.int64).reshape(-1)
        out = np.empty((len(flat), self.spec.width), self.dtype)
        with self.lock:
            rows = self.index.find(flat)
            missing = np.flatnonzero(rows < 0)
            if missing.size and grows:
                rows[missing] = self.index.find_or_add(flat[missing], self._new_rows)
                missing = missing[rows[missing] < 0]
            if len(flat) > len(missing):
                self.values.take(rows, out)
            if grows:
                self._saw(rows[rows >= 0] if missing.size else rows)
        if missing.size:
            out[missing] = self.first.of(flat[missing])
        return out.reshape(*np.shape(keys), self.spec.width)

    def _saw(self, rows: Array) -> None:
        self.seen.array[rows] = self.clock
        np.add.at(self.sightings.array, rows, np.uint32(1))

    def apply(
        self,
        rule: Callable[..., Sequence[Array]],
        slots: Sequence[SlotSpec],
        keys: Any,
        gradients: Any,
    ) -> None:
        """Updates the rows of keys; gradients of one key are summed, keys without row left out.

        Args:
            rule: ``rule(values, *slots, gradients)``: new values and slots.
        """
        flat = np.ascontiguousarray(keys, np.int64).reshape(-1)
        grads = np.asarray(gradients)
        if grads.shape != (len(flat), self.spec.width):
            raise invalid(
                f"The gradient of table {self.name} has shape {list(grads.shape)}; that of "
                f"{len(flat)} keys has shape {[len(flat), self.spec.width]}"
            )
        with self.lock:
            columns = [self.values, *map(self.column, slots)]
            rows, sums = self._summed(self.index.find(flat), grads)
            self.clock += 1
            if not len(rows):
                return
            arrays = [c.array for c in columns]

            def piece(begin: int, end: int) -> None:
                at = rows[begin:end]
                updated = rule(*[a.take(at, axis=0) for a in arrays], sums[begin:end])
                for array, new in zip(arrays, updated, strict=True):
                    array[at] = new

            in_pieces(len(rows), _PIECE, lambda size: piece)

    def _summed(self, rows: Array, grads: Array) -> tuple[Array, Array]:
        """The distinct rows that there are, and the sum of the gradients of each."""
        if len(rows) and rows.min() < 0:
            there = np.flatnonzero(rows >= 0)
            rows, grads = rows[there], grads[there]
        claims, own = self._claims.array, np.arange(len(rows))
        claims[rows[::-1]] = own[::-1]
        first = claims[rows]
        if (first == own).all():
            return rows, grads
        order = np.argsort(first, kind="stable")
        begins = np.flatnonzero(np.diff(first[order], prepend=-1))
        return rows[order[begins]], np.add.reduceat(grads[order], begins, axis=0)

    def assign(self, keys: Any, values: Any) -> None:
        """Gives keys these rows; of a key that is there twice the last counts.

        Raises:
            InvalidArgumentError: if the values' shape does not fit.
        """
        flat, given = np.ascontiguousarray(keys, np.int64).reshape(-1), np.asarray(values)
        if given.shape != (*np.shape(keys), self.spec.width):
            raise invalid(
                f"Rows of table {self.name} have shape {list(given.shape)}; those of keys of shape "
                f"{list(np.shape(keys))} have shape {[*np.shape(keys), self.spec.width]}"
            )
        with self.lock:
            rows = self.index.find_or_add(flat, self._new_rows)
            self.values.put(rows, given.reshape(-1, self.spec.width))

    def items(self, slot: SlotSpec | None = None) -> tuple[Keys, Array]:
        """All keys, in rising order, and their values, or those of a slot."""
        with self.lock:
            keys, rows = self.index.items()
            order = np.argsort(keys)
            column = self.values if slot is None else self.column(slot)
            out = np.empty((len(keys), self.spec.width), self.dtype)
            column.take(rows[order], out)
            return keys[order], out
