"""What is behind the handle of a table of embeddings."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from headrace.errors import ResourceExhaustedError
from headrace.graph.dtypes import DType, as_dtype
from headrace.ops.core.checks import invalid
from headrace.ops.core.copied import CopiedResource
from headrace.ops.core.distinct import summed_rows
from headrace.ops.core.parallel import in_pieces
from headrace.ops.embeddings import copies
from headrace.ops.embeddings.admission import BloomCounter, ExactCounter
from headrace.ops.embeddings.first_rows import FirstRows, RowStart
from headrace.ops.embeddings.key_index import KeyIndex, Keys
from headrace.ops.embeddings.row_memory import AROUND, RowArray

Array = NDArray[Any]
#: Rows of an update that one thread works on: their states stay in its cache.
_PIECE = 1 << 10
#: Removed keys that a table remembers for its next changes and increments, if it has fewer rows.
REMEMBERED = 1 << 16
#: Series of checkpoints whose next save may be an increment; of more, the latest.
_SERIES = 8


class EmbeddingSpec(NamedTuple):
    """What the op that makes a table says of it; equal for all that share it.

    Attributes:
        width, dtype, start: of the rows.
        admit_after: the lookup of a key from which on it has a row.
        admit_counters: counters of the filter that counts lookups; 0: they are counted exactly.
        memory_limit: bytes of rows in memory, 0 for all; what is more is in files.
        directory: where these files are; "": where temporary files are.
    """

    width: int
    dtype: DType
    start: RowStart
    admit_after: int = 1
    admit_counters: int = 0
    memory_limit: int = 0
    directory: str = ""


class SlotSpec(NamedTuple):
    """A slot that an optimiser keeps with each row: its name and what it starts with."""

    name: str
    start: float


class Eviction(NamedTuple):
    """Which rows go: those of which all that is given is true. Negative numbers say nothing.

    Attributes:
        unseen_for: updates of the table since the last lookup of the key, at least.
        fewer_than: lookups that have had the key are fewer.
        norm_below: the L2 norm of the row is less.
        keep: rows that stay at most; of those left, the ones go that were seen the longest ago.
    """

    unseen_for: int = -1
    fewer_than: int = -1
    norm_below: float = -1.0
    keep: int = -1


class Base(NamedTuple):
    """A save that changes follow.

    Attributes:
        id: of the save; number: how often changes were saved since.
        period: the last one that is in it.
    """

    id: str
    number: int
    period: int


class FollowedFile(NamedTuple):
    """A file that an increment follows, in the same directory.

    Attributes:
        file: its name; id: of the save; bytes: how long it is.
    """

    file: str
    id: str
    bytes: int


class SavedTable(NamedTuple):
    """A save that increments may follow, once its checkpoint is there.

    Attributes:
        prefix: path of the checkpoint; path: of the file.
        links: the files that make the table, this one last.
        period: the last one that is in it.
        slots: that the rows have.
    """

    prefix: str
    path: str
    links: tuple[FollowedFile, ...]
    period: int
    slots: frozenset[SlotSpec]


class EmbeddingStore(CopiedResource):
    """Rows by key, with what optimisers keep for each row.

    ``lock`` is held for the length of one operation, so each of them sees and leaves whole rows.
    """

    #: What `adopt` takes over.
    _CONTENTS = (
        "index", "values", "slots", "keys", "sightings", "seen", "stamps", "period", "clock",
        "made", "free", "removed", "removed_keys", "forgotten", "base", "saved", "_claims",
    )  # fmt: skip

    def __init__(self, spec: EmbeddingSpec, name: str) -> None:
        self.spec = spec
        self.name = name
        self.lock = threading.RLock()
        self.dtype = spec.dtype.as_numpy_dtype
        self.first = FirstRows(spec.start, spec.width, self.dtype)
        counters = spec.admit_counters
        self._waiting = BloomCounter(counters) if counters else ExactCounter()
        self.index = KeyIndex()
        self.values = RowArray(self.dtype, spec.width)
        self.slots: dict[SlotSpec, RowArray] = {}
        self.keys = RowArray(np.int64)
        #: How many lookups a key was in, and the number of updates before the last of these.
        self.sightings, self.seen = RowArray(np.uint32), RowArray(np.uint32)
        #: Each save begins another period. In which each row has changed last; keys that were
        #: removed, with the period.
        self.period = 1
        self.stamps = RowArray(np.uint32)
        self.removed: list[tuple[int, Keys]] = []
        self.removed_keys = 0
        #: Of removals in this period and before not all are known any more.
        self.forgotten = 0
        #: The save that changes are saved after.
        self.base: Base | None = None
        #: Saves that increments may follow, the last one last, by what `series_of` their path says.
        self.saved: dict[str, list[SavedTable]] = {}
        #: The number of updates so far.
        self.clock = 0
        #: Rows in use or free; and those that are free.
        self.made = 0
        self.free = np.empty(0, np.int64)
        self._claims = RowArray(np.int64)
        #: What a copy lacks, where there is one.
        self._copy: copies.CopyProgress | None = None

    def abandon(self) -> None:
        """Nobody waits for a table."""

    def __len__(self) -> int:
        return len(self.index)

    def adopt(self, other: EmbeddingStore) -> None:
        """Takes over all that another table has, which nobody else uses."""
        with self.lock:
            for name in self._CONTENTS:
                setattr(self, name, getattr(other, name))
            if self._copy is not None:
                self._copy = copies.CopyProgress()
            self._tell()

    @property
    def is_empty(self) -> bool:
        return not self.made

    @property
    def nbytes(self) -> int:
        return int(self.made * sum(column.row_bytes for column in self._columns()))

    # -- copies -----------------------------------------------------------------------------

    def _note(self, keys: Keys) -> None:
        if self._copy is not None:
            self._copy.note(keys)
            self._tell()

    def begin_copy(self, listener: Callable[[], None]) -> None:
        with self.lock:
            self.listener, self._copy = listener, copies.CopyProgress()

    def end_copy(self) -> None:
        with self.lock:
            self.listener = self._copy = None

    def changes(self, most: int) -> tuple[list[Any], bool]:
        with self.lock:
            progress = self._copy or copies.CopyProgress()
            return progress.take(self, most)

    @classmethod
    def copy_of(cls, name: str, changes: Sequence[Any]) -> EmbeddingStore:
        header, names, values = changes[0], changes[1], changes[7]
        spec = EmbeddingSpec(
            values.shape[1],
            as_dtype(values.dtype),
            RowStart("constant", (0.0,)),
            memory_limit=int(header[2]),
            directory=names[0].decode(),
        )
        return cls(spec, name)

    def apply_changes(self, changes: Sequence[Any]) -> None:
        with self.lock:
            if changes[0][0]:
                self.adopt(EmbeddingStore(self.spec, self.name))
            copies.apply_changes(self, changes, SlotSpec)
            self._note(changes[4])

    def adopt_copy(self, copy: EmbeddingStore) -> None:
        own, other = self.spec, copy.spec
        if (own.width, own.dtype) != (other.width, other.dtype):
            raise invalid(
                f"Table {self.name} was of width {other.width}, {other.dtype.name}, on the server "
                f"whose place this one has taken, and is of width {own.width}, {own.dtype.name}, "
                "here: give it another name."
            )
        with self.lock:
            self.adopt(copy)
            self.listener, self._copy = copy.listener, copy._copy

    # -- rows -------------------------------------------------------------------------------

    def _large(self) -> list[RowArray]:
        return [self.values, *self.slots.values()]

    def _columns(self) -> list[RowArray]:
        """Everything that has one element for each row."""
        small = [self.keys, self.sightings, self.seen, self.stamps, self._claims]
        return [*small, *self._large()]

    @contextlib.contextmanager
    def _growing_to(self, rows: int) -> Iterator[None]:
        """Says which table there is no more room for."""
        try:
            yield
        except (OSError, MemoryError) as error:
            where = self.spec.directory or "the directory of temporary files"
            what = f"memory, or {where} for" if self.spec.memory_limit else "memory for"
            raise ResourceExhaustedError(
                None,
                None,
                f"Table {self.name} has {len(self)} rows, and cannot have {rows}: there is not so "
                f"much {what} their values and slots ({error}). Evict rows, or let it be in files "
                "(memory_limit, directory).",
            ) from error

    def _reserve(self, rows: int) -> None:
        """Room for so many rows in all. If there is none the table has what it had."""
        limit, large = self.spec.memory_limit, self._large()
        if limit and sum(c.bytes_for(rows) for c in large if not c.in_file) > limit:
            for column in large:
                if not column.in_file:
                    column.spill(self.spec.directory)
        for column in self._columns():
            column.reserve(rows)

    def _touch(self, rows: Array, columns: Sequence[RowArray]) -> None:
        """Keeps what the process has of the files about within the limit."""
        for column in columns:
            column.touch(rows)
        if sum(c.touched for c in self._large()) > self.spec.memory_limit > 0:
            for column in self._large():
                column.let_go()

    def _spans(self, rows: Array, columns: Sequence[RowArray]) -> Iterator[slice]:
        """Ranges of a batch, each of which touches no more of the files than the limit."""
        most = len(rows)
        if self.values.in_file:
            most = max(_PIECE, self.spec.memory_limit // (AROUND * len(columns)))
        for begin in range(0, len(rows), max(1, most)):
            span = slice(begin, begin + most)
            yield span
            self._touch(rows[span], columns)

    def new_rows(self, keys: Keys) -> Array:
        """Rows for distinct keys, with their first values."""
        reused = min(len(keys), len(self.free))
        last = self.made + len(keys) - reused
        with self._growing_to(last):
            self._reserve(last)
        # Nothing has changed until here, so that a table survives the lack of memory.
        rows = np.concatenate([self.free[:reused], np.arange(self.made, last)])
        self.free, begin, self.made = self.free[reused:], self.made, last
        for at, of in ((rows[:reused], keys[:reused]), (slice(begin, last), keys[reused:])):
            if len(of):
                self._begin(at, of)
        return rows

    def _begin(self, rows: Any, keys: Keys) -> None:
        """Rows, by numbers or a range, become those of keys."""
        if isinstance(rows, slice):
            self.first.of(keys, self.values.array[rows])
        else:
            self.values.put(rows, self.first.of(keys))
        self.keys.put(rows, keys)
        self.sightings.put(rows, 0)
        self.seen.put(rows, self.clock)
        self.stamps.put(rows, self.period)
        for slot, column in self.slots.items():
            if slot.start or not isinstance(rows, slice):
                column.put(rows, slot.start)

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
            with self._growing_to(self.made):
                if self.values.in_file:
                    found.spill(self.spec.directory)
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
                rows[missing] = self._admit(flat[missing])
                missing = missing[rows[missing] < 0]
            if len(flat) > len(missing):
                for span in self._spans(rows, [self.values]):
                    self.values.take(rows[span], out[span])
            if grows:
                there = rows[rows >= 0] if missing.size else rows
                self.seen.array[there] = self.clock
                # A key that a lookup has twice is counted once: the last of equal sums stays.
                self.sightings.array[there] = self.sightings.array[there] + np.uint32(1)
                self._note(self.keys.array[there])
        if missing.size:
            out[missing] = self.first.of(flat[missing])
        return out.reshape(*np.shape(keys), self.spec.width)

    def _admit(self, keys: Keys) -> Array:
        """Rows of keys that have none, -1 for those that have to wait."""
        if self.spec.admit_after <= 1:
            return self.index.find_or_add(keys, self.new_rows)
        distinct, place = np.unique(keys, return_inverse=True)
        counts = self._waiting.sighted(distinct)
        enough = counts >= self.spec.admit_after
        rows = np.full(len(distinct), -1, np.int64)
        admitted = distinct[enough]
        if admitted.size:
            rows[enough] = self.index.find_or_add(admitted, self.new_rows)
            self.sightings.put(rows[enough], counts[enough] - 1)
            self._waiting.admitted(admitted)
        found: Array = rows[place]
        return found

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
                self._note(flat[:1])
                return
            arrays = [c.array for c in columns]

            def update(own: Array, grads: Array) -> None:
                def piece(begin: int, end: int) -> None:
                    at = own[begin:end]
                    updated = rule(*[a.take(at, axis=0) for a in arrays], grads[begin:end])
                    for array, new in zip(arrays, updated, strict=True):
                        array[at] = new

                in_pieces(len(own), _PIECE, lambda size: piece)

            self.stamps.array[rows] = self.period
            for span in self._spans(rows, columns):
                update(rows[span], sums[span])
            self._note(self.keys.array[rows])

    def _summed(self, rows: Array, grads: Array) -> tuple[Array, Array]:
        """The distinct rows that there are, and the sum of the gradients of each."""
        if len(rows) and rows.min() < 0:
            there = np.flatnonzero(rows >= 0)
            rows, grads = rows[there], grads[there]
        claims, own = self._claims.array, np.arange(len(rows))
        claims[rows[::-1]] = own[::-1]
        first = claims[rows]
        is_first = first == own
        if is_first.all():
            return rows, grads
        places = (np.cumsum(is_first) - 1)[first]
        distinct = rows[is_first]
        return distinct, summed_rows(grads, places, len(distinct))

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
            rows = self.index.find_or_add(flat, self.new_rows)
            self.stamps.array[rows] = self.period
            new = given.reshape(-1, self.spec.width)
            for span in self._spans(rows, [self.values]):
                self.values.put(rows[span], new[span])
            self._note(flat)

    def evict(self, which: Eviction) -> int:
        """Removes rows; how many they were."""
        with self.lock:
            rows = self.index.items()[1]
            if which.unseen_for >= 0:
                age = self.clock - self.seen.array[rows].astype(np.int64)
                rows = rows[age >= which.unseen_for]
            if which.fewer_than >= 0:
                rows = rows[self.sightings.array[rows] < which.fewer_than]
            if which.norm_below >= 0:
                rows = rows[self._norms(rows) < which.norm_below]
            if not (which.unseen_for >= 0 or which.fewer_than >= 0 or which.norm_below >= 0):
                rows = rows[:0]
            self.remove_rows(rows)
            gone = len(rows)
            if 0 <= which.keep < len(self):
                left = self.index.items()[1]
                # Those of one age go in the order of their keys, not of their places.
                oldest = np.lexsort((self.keys.array[left], self.seen.array[left]))
                extra = left[oldest[: len(left) - which.keep]]
                self.remove_rows(extra)
                gone += len(extra)
            return gone

    def _norms(self, rows: Array) -> Array:
        norms = np.empty(len(rows))
        for begin in range(0, len(rows), _PIECE):
            at = rows[begin : begin + _PIECE]
            piece = self.values.array[at].astype(np.float64)
            norms[begin : begin + _PIECE] = np.sqrt((piece * piece).sum(axis=1))
            self._touch(at, [self.values])
        return norms

    def remove_rows(self, rows: Array) -> None:
        """Forgets distinct rows that are in use."""
        keys = self.keys.array[rows]
        self.index.remove(keys)
        self.free = np.concatenate([self.free, rows])
        self.stamps.array[rows] = 0
        self._note(keys)
        if (self.base is not None or self.saved) and len(keys):
            self.removed.append((self.period, keys))
            self.removed_keys += len(keys)
            self._forget()

    def _forget(self) -> None:
        """Forgets the oldest removals where they are too many, and saves that needed them.

        A save that is not repeated would have them remembered for ever. With as many removed keys
        as rows it is better to write all rows again.
        """
        most = max(len(self), REMEMBERED)
        if self.removed_keys <= most:
            return
        left = self.removed_keys
        for when, keys in self.removed:
            if left <= most // 2 and when > self.forgotten:
                break
            left, self.forgotten = left - len(keys), when
        self._keep_removed(self.forgotten)
        for name, saves in list(self.saved.items()):
            self.note_saves(name, [s for s in saves if s.period >= self.forgotten])

    def _keep_removed(self, after: int) -> None:
        self.removed = [(when, keys) for when, keys in self.removed if when > after]
        self.removed_keys = sum(len(keys) for _, keys in self.removed)

    def note_saves(self, series: str, saves: list[SavedTable]) -> None:
        """Which saves of a series increments may follow from now on."""
        self.saved.pop(series, None)
        if saves:
            self.saved[series] = saves  # as the last one
        while len(self.saved) > _SERIES:
            del self.saved[next(iter(self.saved))]

    def remembers(self, period: int) -> bool:
        """Whether all keys are known that were removed after a period."""
        return period >= self.forgotten

    def changed_since(self, period: int) -> tuple[Keys, Keys]:
        """Keys whose rows have changed after a period, and keys removed after it; both rise.

        The table `remembers` the period.
        """
        rows = np.flatnonzero(self.stamps.array[: self.made] > period)
        gone = [keys for when, keys in self.removed if when > period]
        return np.sort(self.keys.array[rows]), np.unique(np.concatenate([rows[:0], *gone]))

    def begin_period(self) -> int:
        """What changes from now on belongs to another period; the number of the one that ends."""
        ended, self.period = self.period, self.period + 1
        followed = [saved.period for series in self.saved.values() for saved in series]
        oldest = min([ended, *followed, *([] if self.base is None else [self.base.period])])
        self._keep_removed(oldest)
        return ended

    def items(self, slot: SlotSpec | None = None) -> tuple[Keys, Array]:
        """All keys, in rising order, and their values, or those of a slot."""
        with self.lock:
            keys, rows = self.index.items()
            order = np.argsort(keys)
            column = self.values if slot is None else self.column(slot)
            out = np.empty((len(keys), self.spec.width), self.dtype)
            column.take(rows[order], out)
            return keys[order], out
