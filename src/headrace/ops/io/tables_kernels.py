"""Lookup tables: what stands behind their handles, and reading their contents from text files."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice, repeat
from typing import Any, NamedTuple

import numpy as np

from headrace.errors import FailedPreconditionError, InvalidArgumentError
from headrace.files.gfile import GFile
from headrace.graph.dtypes import DType, as_dtype
from headrace.ops.core.checks import invalid
from headrace.ops.core.copied import CopiedResource

Shape = tuple[int, ...]
#: Bytes of an entry, in memory or on its way to a copy: a guess.
_ENTRY_BYTES = 64


class TableSpec(NamedTuple):
    """What the op that makes a table says of it; equal for all that share it."""

    kind: str
    key_dtype: DType
    value_dtype: DType
    value_shape: Shape = ()
    key_shape: Shape = ()
    #: Keys that a table with open addressing reserves for itself.
    reserved: tuple[tuple[str, Any], ...] = ()


def _shown(item: Any) -> Any:
    return item.decode(errors="backslashreplace") if isinstance(item, bytes) else item


def _plain(array: Any) -> list[Any]:
    """The elements of an array as Python values that compare by what they are."""
    items: list[Any] = np.asarray(array).reshape(-1).tolist()
    if str not in set(map(type, items)):
        return items
    return [i.encode() if isinstance(i, str) else i for i in items]


class Table(CopiedResource):
    """A mapping from keys (scalars, or small arrays) to values of one shape."""

    def __init__(self, spec: TableSpec, name: str) -> None:
        self.spec = spec
        self.name = name
        self.lock = threading.Lock()
        #: Values are Python scalars, or arrays of ``value_shape``.
        self.entries: dict[Any, Any] = {}
        #: Keys whose entries a copy has not, or not yet; and whether it begins anew.
        self._uncopied: dict[Any, None] = {}
        self._copy_begins = True

    def abandon(self) -> None:
        """Nobody waits for a table."""

    # Keys and values as the dictionary has them.

    def keys_of(self, keys: Any) -> list[Any]:
        """The keys in a tensor, in order.

        Raises:
            InvalidArgumentError: if the shape does not end in that of a key, or a key is reserved.
        """
        inner = self.spec.key_shape
        shape = np.shape(keys)
        if inner and shape[-len(inner) :] != inner:
            raise invalid(f"Expected key shape ending in {list(inner)}, got {list(shape)}")
        found = _plain(keys)
        if inner:
            width = int(np.prod(inner))
            found = [tuple(found[i : i + width]) for i in range(0, len(found), width)]
        for what, reserved in self.spec.reserved:
            if reserved in found:
                raise invalid(f"Using the {what} as a table key is not allowed")
        return found

    def outer_shape(self, keys: Any) -> Shape:
        """The shape of a tensor of keys without that of one key."""
        shape: Shape = np.shape(keys)
        return shape[: len(shape) - len(self.spec.key_shape)]

    def _values_of(self, keys: Any, values: Any) -> list[Any]:
        wanted = self.outer_shape(keys) + self.spec.value_shape
        if np.shape(values) != wanted:
            raise invalid(f"Expected shape {list(wanted)} for value, got {list(np.shape(values))}")
        if not self.spec.value_shape:
            return _plain(values)
        rows = np.asarray(values).reshape(-1, *self.spec.value_shape)
        return [row.copy() for row in rows]

    def _array(self, items: Sequence[Any], shape: Shape, dtype: DType) -> Any:
        if dtype.name == "string":
            result = np.empty(len(items), object)
            result[:] = items
            return result.reshape(shape)
        return np.array(items, dtype.as_numpy_dtype).reshape(shape)

    # What ops do.

    def find(self, keys: Any, default: Any) -> Any:
        """The values of keys; ``default`` (a value, or one for each key) for those not there.

        Raises:
            InvalidArgumentError: if shapes do not fit.
        """
        inner = self.spec.value_shape
        shape = self.outer_shape(keys) + inner
        wanted = self.keys_of(keys)
        if np.shape(default) == inner:
            other = np.asarray(default) if inner else _plain(default)[0]
            found = list(map(self.entries.get, wanted, repeat(other)))
        elif np.shape(default) == shape:
            others = self._values_of(keys, default)
            found = [self.entries.get(*pair) for pair in zip(wanted, others, strict=True)]
        else:
            raise invalid(
                f"Expected shape {list(inner)} or {list(shape)} for default value, got "
                f"{list(np.shape(default))}"
            )
        if inner:
            whole = np.stack(found) if found else np.empty((0, *inner))
            return whole.reshape(shape).astype(np.asarray(default).dtype, copy=False)
        return self._array(found, shape, self.spec.value_dtype)

    def size(self) -> int:
        """How many entries there are."""
        return len(self.entries)

    def export(self) -> tuple[Any, Any]:
        """All keys and all values, in one order."""
        with self.lock:
            items = list(self.entries.items())
        count, spec = len(items), self.spec
        keys = self._array([k for k, _ in items], (count, *spec.key_shape), spec.key_dtype)
        shape = (count, *spec.value_shape)
        return keys, self._array([v for _, v in items], shape, spec.value_dtype)

    def insert(self, keys: Any, values: Any) -> None:
        """Add entries, or replace their values."""
        raise NotImplementedError

    def remove(self, keys: Any) -> None:
        """Drop entries; keys that are not there do not matter."""
        raise NotImplementedError

    def load(self, keys: Any, values: Any) -> None:
        """Give the table these entries and no others."""
        raise NotImplementedError

    # Copies. The lock is held where `_note` is called.

    @property
    def _is_filled(self) -> bool:
        return True

    def _note(self, keys: Iterable[Any], begins: bool = False) -> None:
        if self.listener is not None:
            if begins:
                self._uncopied, self._copy_begins = {}, True
            self._uncopied.update(dict.fromkeys(keys))
            self.listener()

    @property
    def is_empty(self) -> bool:
        return not self.entries

    @property
    def nbytes(self) -> int:
        return _ENTRY_BYTES * len(self.entries)

    def begin_copy(self, listener: Callable[[], None]) -> None:
        with self.lock:
            self.listener = listener
            self._uncopied, self._copy_begins = dict.fromkeys(self.entries), True

    def end_copy(self) -> None:
        with self.lock:
            self.listener, self._uncopied = None, {}

    def changes(self, most: int) -> tuple[list[Any], bool]:
        spec, count = self.spec, max(1, most // _ENTRY_BYTES)
        with self.lock:
            changed = list(islice(self._uncopied, count))
            for key in changed:
                del self._uncopied[key]
            header = np.array([self._copy_begins, self._is_filled], np.int64)
            self._copy_begins = False
            there = [k for k in changed if k in self.entries]
            values = [self.entries[k] for k in there]
            is_all = not self._uncopied
        gone = [k for k in changed if k not in self.entries] if len(there) < len(changed) else []
        keys = [self._array(k, (len(k), *spec.key_shape), spec.key_dtype) for k in (there, gone)]
        shape = (len(there), *spec.value_shape)
        return [header, *keys, self._array(values, shape, spec.value_dtype)], is_all

    @classmethod
    def copy_of(cls, name: str, changes: Sequence[Any]) -> TableCopy:
        _, keys, _, values = changes
        shapes = (values.shape[1:], keys.shape[1:])
        types = (_dtype_of(keys), _dtype_of(values))
        return TableCopy(TableSpec("copy", *types, *shapes), name)

    def adopt_copy(self, copy: TableCopy) -> None:
        own, other = self.spec, copy.spec
        if own[1:5] != other[1:5]:
            raise invalid(
                f"Table {self.name} was one of {other.key_dtype.name} to {other.value_dtype.name} "
                f"{list(other.value_shape)} on the server whose place this one has taken, and is "
                f"one of {own.key_dtype.name} to {own.value_dtype.name} {list(own.value_shape)} "
                "here: give it another name."
            )
        with self.lock:
            self.entries, self.listener = copy.entries, copy.listener
            self._uncopied, self._copy_begins = copy._uncopied, copy._copy_begins


class StaticTable(Table):
    """A table that is filled once; filling it again with the same entries changes nothing."""

    is_initialized = False

    @property
    def is_empty(self) -> bool:
        return not self.is_initialized

    def fill(self, pairs: Iterable[tuple[Any, Any]]) -> None:
        """Give the table its entries.

        Raises:
            FailedPreconditionError: if it has others already, or a key comes with two values.
        """
        entries: dict[Any, Any] = {}
        for key, value in pairs:
            known = entries.setdefault(key, value)
            if known is not value and known != value:
                raise FailedPreconditionError(
                    None,
                    None,
                    f"HashTable has different value for same key. Key {_shown(key)} has "
                    f"{_shown(known)} and trying to add value {_shown(value)}",
                )
        with self.lock:
            if not self.is_initialized:
                self.entries, self.is_initialized = entries, True
                self._note(entries, begins=True)
            elif self.entries != entries:
                message = "Table was already initialized with different data."
                raise FailedPreconditionError(None, None, message)

    def find(self, keys: Any, default: Any) -> Any:
        self._require_initialized()
        return super().find(keys, default)

    def export(self) -> tuple[Any, Any]:
        self._require_initialized()
        return super().export()

    def size(self) -> int:
        self._require_initialized()
        return super().size()

    def _require_initialized(self) -> None:
        if not self.is_initialized:
            raise FailedPreconditionError(
                None,
                None,
                "Table not initialized. Run tf.tables_initializer() first, e.g. "
                "`sess.run(tf.tables_initializer())`.",
            )

    def load(self, keys: Any, values: Any) -> None:
        self.fill(zip(self.keys_of(keys), self._values_of(keys, values), strict=True))

    @property
    def _is_filled(self) -> bool:
        return self.is_initialized

    def adopt_copy(self, copy: TableCopy) -> None:
        super().adopt_copy(copy)
        self.is_initialized = copy.is_filled

    def _unsupported(self) -> InvalidArgumentError:
        return invalid(f"Table {self.name} cannot change after it has been initialized.")

    def insert(self, keys: Any, values: Any) -> None:
        raise self._unsupported()

    def remove(self, keys: Any) -> None:
        raise self._unsupported()


class MutableTable(Table):
    """A table that steps may change."""

    def insert(self, keys: Any, values: Any) -> None:
        pairs = zip(self.keys_of(keys), self._values_of(keys, values), strict=True)
        with self.lock:
            new = dict(pairs)
            self.entries.update(new)
            self._note(new)

    def remove(self, keys: Any) -> None:
        with self.lock:
            gone = self.keys_of(keys)
            for key in gone:
                self.entries.pop(key, None)
            self._note(gone)

    def load(self, keys: Any, values: Any) -> None:
        pairs = zip(self.keys_of(keys), self._values_of(keys, values), strict=True)
        with self.lock:
            self.entries = dict(pairs)
            self._note(self.entries, begins=True)


class TableCopy(MutableTable):
    """What a standby has of a table, of which it knows the types only.

    Attributes:
        is_filled: whether a table that is filled once has been.
    """

    is_filled = False

    @property
    def is_empty(self) -> bool:
        return not (self.entries or self.is_filled)

    @property
    def _is_filled(self) -> bool:
        return self.is_filled

    def apply_changes(self, changes: Sequence[Any]) -> None:
        (begins, is_filled), keys, gone, values = changes
        self.is_filled = bool(is_filled)
        (self.load if begins else self.insert)(keys, values)
        self.remove(gone)


def _dtype_of(array: Any) -> DType:
    return as_dtype("string" if array.dtype.kind == "O" else array.dtype)


def reserved_keys(empty: Any, deleted: Any) -> tuple[tuple[str, Any], ...]:
    """The keys that no entry may have.

    Raises:
        InvalidArgumentError: if they do not differ or have different shapes.
    """
    if np.shape(empty) != np.shape(deleted):
        raise invalid("Empty and deleted keys must have same shape")
    found = []
    for what, key in (("empty_key", empty), ("deleted_key", deleted)):
        items = _plain(key)
        found.append((what, tuple(items) if np.ndim(key) else items[0]))
    if found[0][1] == found[1][1]:
        raise invalid("Empty and deleted keys cannot be equal")
    return tuple(found)


# -- text files ---------------------------------------------------------------------------------

WHOLE_LINE, LINE_NUMBER = -2, -1


class TextFile(NamedTuple):
    """Where the entries of a table are in the lines of a file.

    Attributes:
        key_index, value_index: a column, LINE_NUMBER or WHOLE_LINE.
        vocab_size: how many lines count; all if -1.
        offset: how many lines come before the first.
    """

    name: str
    key_index: int
    value_index: int
    vocab_size: int
    delimiter: bytes
    offset: int

    def entries(self, spec: TableSpec) -> Iterator[tuple[Any, Any]]:
        """The entries, line by line.

        Raises:
            NotFoundError: if there is no such file.
            InvalidArgumentError: if the file has too few lines or columns, an empty line, or a
                field that is no number.
        """
        count = 0
        for number, line in enumerate(self._lines()):
            if number < self.offset:
                continue
            if 0 <= self.vocab_size <= count:
                break
            if not line:
                raise invalid(f"Invalid content in {self.name}: line {number} is empty.")
            key = self._field(line, count, self.key_index, spec.key_dtype)
            yield key, self._field(line, count, self.value_index, spec.value_dtype)
            count += 1
        if count < self.vocab_size:
            raise invalid(
                f"Invalid vocab_size in {self.name}: expected {self.vocab_size} but got {count}"
            )

    def _lines(self) -> Iterator[bytes]:
        with GFile(self.name, "rb") as file:
            rest = b""
            while chunk := file.read(1 << 20):
                *lines, rest = (rest + chunk.replace(b"\r", b"")).split(b"\n")
                yield from lines
            if rest:
                yield rest

    def _field(self, line: bytes, number: int, index: int, dtype: DType) -> Any:
        if index == LINE_NUMBER:
            return number
        field = line
        if index != WHOLE_LINE:
            columns = line.split(self.delimiter)
            if index >= len(columns):
                raise invalid(
                    f"Invalid number of columns in {self.name} line {number} ({_shown(line)}) : "
                    f"expected {index + 1} got {len(columns)}"
                )
            field = columns[index]
        if dtype.name == "string":
            return field
        try:
            return float(field) if dtype.is_floating else int(field)
        except ValueError:
            message = f"Field {_shown(field)} in line {number} is not a valid {dtype.name}."
            raise invalid(message) from None
