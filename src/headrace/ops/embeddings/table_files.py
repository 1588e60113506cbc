"""Files of tables: all rows of a table, or those that changed since, with what belongs to them.

A table of ``n`` parts that is saved beside the checkpoint ``prefix`` has the files
``<prefix>.table-<name>-00000-of-0000n`` and so on, and later
``<prefix>.table-<name>-00000-of-0000n.changes-00001`` ... Each begins with eight bytes, the length
of a header in JSON, the header and its CRC32C; then come blocks of rows: keys, sightings, times,
values and slots, each array followed by its CRC32C. Integers and floats are little-endian.

A file is written under another name and renamed when it is on the disk (see `whole_files`).
Changes name the save that they follow, so those of an older save under the same name do not count.

The file of a save may be an increment (see `increments`): its header lists the files that it
follows, in order, each by its name in the directory and the id of its save. Before such a file is
written over it is copied to ``<file>.older-<id>``.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import google_crc32c
import numpy as np

from headrace.errors import DataLossError, FailedPreconditionError, NotFoundError
from headrace.files import system
from headrace.files.progress import note_progress
from headrace.graph import dtypes
from headrace.ops.core.checks import invalid
from headrace.ops.embeddings import whole_files
from headrace.ops.embeddings.key_index import Keys, mixed
from headrace.ops.embeddings.store import (
    Array,
    Base,
    EmbeddingStore,
    FollowedFile,
    SavedTable,
    SlotSpec,
)

_MAGIC = b"HRTABLE1"
#: Rows of a block; the table is locked while one is copied.
_BLOCK = 1 << 15
#: What such a name ends in.
_FILE = re.compile(r".\.table-.+-\d{5}-of-\d{5}(\.changes-\d{5}|\.older-[0-9a-f]{32})?$")
#: Such a file by its name alone; what comes first is the name of its checkpoint.
TABLE_FILE = re.compile(r"(.+?)\.table-.+-\d{5}-of-\d{5}(\.changes-\d{5}|\.older-[0-9a-f]{32})?")
_ID = re.compile(r"[0-9a-f]{32}")
_PART = re.compile(r"-(\d{5})-of-(\d{5})(\.changes-\d{5}|\.older-[0-9a-f]{32})?$")
#: What headers have only where it says something.
_OPTIONAL = ("checkpoint", "followed", "after", "whole")
#: Names of files count parts by five digits.
MOST_PARTS = 99_999
#: The number of updates is kept with each row, in 32 bits.
_LAST_CLOCK = (1 << 32) - 1


class Header(NamedTuple):
    """What is in a file.

    Attributes:
        id: of the save; number: 0 for the save itself, and counts the changes that follow it.
        width, dtype, slots: of the rows.
        clock: updates of the table until then.
        rows, removed: how many rows there are, and how many keys have gone.
        checkpoint: whether the file means nothing without the checkpoint beside it.
        followed: whether increments may follow; after: the files that this one follows.
        whole: whether these changes are all rows that there are.
    """

    id: str
    number: int
    name: str
    width: int
    dtype: str
    slots: tuple[SlotSpec, ...]
    clock: int
    rows: int
    removed: int
    checkpoint: bool = False
    followed: bool = False
    after: tuple[FollowedFile, ...] = ()
    whole: bool = False

    @property
    def size(self) -> int:
        """Bytes of the arrays in the file, with their checksums."""
        item: int = np.dtype(dtypes.as_dtype(self.dtype).as_numpy_dtype).itemsize
        columns = 1 + len(self.slots)
        row = 8 + 1 + 4 + 4 + columns * self.width * item
        blocks = -(-self.rows // _BLOCK)
        return 8 * self.removed + 4 + self.rows * row + 4 * (4 + columns) * blocks


def part_of(keys: Any, parts: int) -> Array:
    """Which of so many parts of a table has each key: by the lowest bits of its hash."""
    part: Array = (mixed(np.asarray(keys, np.int64)) % np.uint64(parts)).astype(np.int32)
    return part


def file_name(prefix: str, name: str, part: int, parts: int) -> str:
    """The file of a part of a table."""
    return f"{prefix}.table-{name.replace('/', '.')}-{part:05d}-of-{parts:05d}"


def files_beside(prefix: str) -> list[str]:
    """All files of tables beside a checkpoint."""
    directory, _, name = prefix.rpartition("/")
    try:
        found = system.list_directory(directory or ".")
    except NotFoundError:
        return []
    start = f"{name}.table-"
    inside = f"{directory}/" if directory else "/" if prefix.startswith("/") else ""
    return [inside + n for n in found if n.startswith(start) and _PART.search(n)]


# -- writing ------------------------------------------------------------------------------------


class Series(NamedTuple):
    """What a save is told whose checkpoint is one of many under the same base name.

    Attributes:
        name: of the series; prefix: the path of the checkpoint.
        after: which save an increment may follow, if any.
        most: increments that follow a save of all rows at most.
    """

    name: str
    prefix: str
    after: SavedTable | None
    most: int


def save(
    store: EmbeddingStore, path: str, checkpoint: bool = False, series: Series | None = None
) -> int:
    """Writes all rows, or those that have changed; how many the table has.

    What changes from now on are changes after this save.

    Args:
        checkpoint: whether a saver of checkpoints saves the table.
        series: whether, and after what, the file may be an increment.
    """
    with store.lock:
        before, ended, rows = store.base, store.begin_period(), len(store)
        header, keys, gone = _planned(store, series)
        header = header._replace(checkpoint=checkpoint)
        store.base = Base(header.id, 0, ended)
        saved = None if series is None else _noted(store, path, header, ended, series)
    try:
        _write(store, path, header, keys, gone)
    except BaseException:
        with store.lock:
            if store.base == Base(header.id, 0, ended):  # nobody else has saved it meanwhile
                store.base = before
            if series is not None:
                known = store.saved.get(series.name, ())
                store.note_saves(series.name, [s for s in known if s != saved])
        raise
    for old in _changes_of(path):
        system.remove(old)
    return rows


def _planned(store: EmbeddingStore, series: Series | None) -> tuple[Header, Keys, Keys]:
    """The header of a save, and the keys that are in it and those that have gone."""
    identity, after = uuid.uuid4().hex, None if series is None else series.after
    follows = after is not None and store.remembers(after.period)
    if series is not None and after is not None and follows and after.slots == set(store.slots):
        keys, gone = store.changed_since(after.period)
        header = _header_of(store, identity, 0, len(keys), len(gone))
        size = header.size + sum(link.bytes for link in after.links[1:])
        if len(after.links) <= series.most and 2 * size <= after.links[0].bytes:
            return header._replace(followed=True, after=after.links), keys, gone
    keys = np.sort(store.index.items()[0])
    header = _header_of(store, identity, 0, len(keys), 0)
    return header._replace(followed=series is not None), keys, keys[:0]


def _noted(
    store: EmbeddingStore, path: str, header: Header, ended: int, series: Series
) -> SavedTable:
    """Notes a save that others may follow, beside the one that these follow if it fails."""
    links = (*header.after, FollowedFile(path.rpartition("/")[2], header.id, header.size))
    saved = SavedTable(series.prefix, path, links, ended, frozenset(store.slots))
    store.note_saves(series.name, [saved] if series.after is None else [series.after, saved])
    return saved


def save_changes(store: EmbeddingStore, path: str) -> int:
    """Writes the rows that have changed since the last save; how many they are.

    Raises:
        FailedPreconditionError: if there was no save under this name before.
    """
    with store.lock:
        before = store.base
        if before is None or not system.exists(path) or read_header(path).id != before.id:
            raise FailedPreconditionError(
                None,
                None,
                f"Table {store.name} has not been saved to {path} before: there is nothing that "
                "changes could follow. Save all of it first.",
            )
        whole = not store.remembers(before.period)
        keys, gone = store.changed_since(0 if whole else before.period)
        gone = gone[:0] if whole else gone
        base = store.base = Base(before.id, before.number + 1, store.begin_period())
        header = _header_of(store, base.id, base.number, len(keys), len(gone))
        header = header._replace(whole=whole)
    try:
        _write(store, f"{path}.changes-{base.number:05d}", header, keys, gone)
    except BaseException:
        with store.lock:
            store.base = before
        raise
    return len(keys)


def _header_of(
    store: EmbeddingStore, identity: str, number: int, rows: int, removed: int
) -> Header:
    width, dtype = store.spec.width, store.spec.dtype.name
    slots = tuple(store.slots)
    return Header(identity, number, store.name, width, dtype, slots, store.clock, rows, removed)


def _write(store: EmbeddingStore, path: str, header: Header, keys: Keys, removed: Keys) -> None:
    """A whole file, or none."""
    directory = path.rpartition("/")[0]
    if directory and "://" not in path:
        system.make_directories(directory)
    with whole_files.writing(path) as file:
        said = {k: v for k, v in header._asdict().items() if v or k not in _OPTIONAL}
        text = json.dumps(said).encode()
        file.write(_MAGIC + len(text).to_bytes(8, "little") + text)
        file.write(google_crc32c.value(text).to_bytes(4, "little"))
        for array in _arrays(store, keys, removed, header.slots):
            data = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
            file.write(data.data)
            file.write(google_crc32c.value(data).to_bytes(4, "little"))
            note_progress(data.nbytes)
    whole_files.sweep(path, _FILE)


def _arrays(
    store: EmbeddingStore, keys: Keys, removed: Keys, slots: Sequence[SlotSpec]
) -> Iterator[Array]:
    """What is in a file, block after block. Rows that have gone meanwhile are there as zeros."""
    yield removed
    for begin in range(0, len(keys), _BLOCK):
        wanted = keys[begin : begin + _BLOCK].copy()
        with store.lock:
            rows = store.index.find(wanted)
            there = rows >= 0
            columns = [store.sightings, store.seen, store.values]
            columns += [store.slots[s] for s in slots]
            parts = [c.array[rows] for c in columns]
        yield wanted
        yield there
        yield from parts


# -- reading ------------------------------------------------------------------------------------


class _Reader:
    """A file of a table, from its beginning on."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.file = system.open_binary(path, "rb")

    def __enter__(self) -> _Reader:
        return self

    def __exit__(self, *exc: object) -> None:
        self.file.close()

    def _bytes(self, count: int) -> bytes:
        data = self.file.read(count)
        if len(data) != count:
            raise DataLossError(None, None, f"{self.path} is cut off.")
        return data

    def checked(self, count: int, what: str) -> bytes:
        """So many bytes, whose checksum follows."""
        data = self._bytes(count)
        if google_crc32c.value(data) != int.from_bytes(self._bytes(4), "little"):
            raise DataLossError(None, None, f"{self.path} is damaged: the checksum of {what}.")
        return data

    def header(self) -> Header:
        """The header, which says how long the file is.

        Raises:
            DataLossError: if it does not, or cannot be.
        """
        if self._bytes(len(_MAGIC)) != _MAGIC:
            raise DataLossError(None, None, f"{self.path} is no file of a table of embeddings.")
        length = int.from_bytes(self._bytes(8), "little")
        if length > 1 << 20:
            raise DataLossError(None, None, f"{self.path} is damaged: the length of its header.")
        found = _parsed(self.checked(length, "the header"), self.path)
        wanted, there = self.file.tell() + found.size, system.stat(self.path).length
        if there < wanted:
            raise DataLossError(
                None, None, f"{self.path} is cut off: it has {there} bytes of {wanted}."
            )
        if there > wanted:
            raise DataLossError(
                None, None, f"{self.path} is damaged: it has {there} bytes instead of {wanted}."
            )
        return found

    def array(self, shape: tuple[int, ...], dtype: Any, what: str) -> Array:
        """The next array."""
        size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
        return np.frombuffer(self.checked(size, what), dtype).reshape(shape)


def _parsed(text: bytes, path: str) -> Header:
    """A header as it is in a file, every part of it checked."""
    try:
        found = json.loads(text)
        slots = tuple(SlotSpec(_is(str, n), float(_is(float, s))) for n, s in found["slots"])
        counts = {k: _is(int, found[k]) for k in ("number", "width", "clock", "rows", "removed")}
        texts = {k: _is(str, found[k]) for k in ("id", "name", "dtype")}
        flags = {k: _is(bool, found.get(k, False)) for k in ("checkpoint", "followed", "whole")}
        after = tuple(_link(link) for link in found.get("after", ()))
        fits = min(counts.values()) >= 0 and counts["width"] > 0 and counts["clock"] <= _LAST_CLOCK
        fits = fits and len({s.name for s in slots}) == len(slots)
        if not fits or not dtypes.as_dtype(texts["dtype"]).is_floating:
            raise ValueError("numbers that cannot be")
    except (ValueError, TypeError, KeyError, RecursionError, OverflowError) as error:
        raise DataLossError(
            None, None, f"{path} is damaged: its header is not that of a table ({error})."
        ) from error
    return Header(**texts, **counts, **flags, slots=slots, after=after)


def _link(found: Any) -> FollowedFile:
    file, identity, size = found
    if "/" in _is(str, file) or "\0" in file or not _FILE.search(file):
        raise ValueError(f"{file!r} is no file of a table")
    # It becomes a part of a name of a file.
    if not _ID.fullmatch(_is(str, identity)) or _is(int, size) < 0:
        raise ValueError(f"{found!r:.200} is no save of a table")
    return FollowedFile(file, identity, size)


def _is(kind: type, value: Any) -> Any:
    """The value, which must be of this type; a whole number is a float, too."""
    if type(value) is kind or (kind is float and type(value) is int):
        return value
    raise ValueError(f"{value!r} is no {kind.__name__}")


def read_header(path: str) -> Header:
    """What is in a file. Raises DataLossError if it does not say so."""
    with _Reader(path) as reader:
        return reader.header()


def _changes_of(path: str) -> list[str]:
    """The files of changes after a save, in order, whether they count or not."""
    directory, _, name = path.rpartition("/")
    found = system.list_directory(directory or ".")
    inside = path[: len(path) - len(name)]
    return sorted(
        inside + n for n in found if re.fullmatch(re.escape(name) + r"\.changes-\d{5}", n)
    )


def _chain(path: str) -> list[str]:
    """The files that make a saved part: those that it follows, its own, and those of changes.

    Raises:
        DataLossError: if one is missing that others follow.
    """
    header = read_header(path)
    if header.number:
        raise DataLossError(None, None, f"{path} has changes that follow a save, not a save.")
    chain = []
    for number, link in enumerate(header.after):
        chain.append(_followed(path, link, header.after[:number]))
    chain.append(path)
    number = 1
    for changes in _changes_of(path):
        found = read_header(changes)
        if found.id != header.id:
            continue  # of an older save under this name, which was cut short before it removed them
        if found.number != number:
            raise DataLossError(
                None, None, f"{path}.changes-{number:05d} is missing, which {changes} follows."
            )
        chain.append(changes)
        number += 1
    return chain


def names_of(link: FollowedFile) -> tuple[str, str]:
    """Under which names the file of a link may be."""
    return link.file, f"{link.file}.older-{link.id}"


def _followed(path: str, link: FollowedFile, after: Sequence[FollowedFile]) -> str:
    """A file that another one follows, and which must follow others itself: so none comes twice."""
    directory = path[: len(path) - len(path.rpartition("/")[2])]
    for name in names_of(link):
        if not system.exists(directory + name):
            continue
        found = read_header(directory + name)
        if found.id == link.id:
            if found.number or found.after != tuple(after):
                text = f"{path} is damaged: {link.file} does not follow what it says of it."
                raise DataLossError(None, None, text)
            return directory + name
    raise DataLossError(
        None,
        None,
        f"{directory}{link.file} is missing, or is of another save: {path} is an increment that "
        "follows it. Leave files of tables of older checkpoints where newer ones need them, and "
        "copy them together.",
    )


def parts_of(prefix: str, name: str) -> list[str]:
    """The files of all parts of a saved table.

    Raises:
        NotFoundError: if there are none, or not all.
    """
    start = file_name(prefix, name, 0, 0)[: -len("-00000-of-00000")]
    there = {
        p
        for p in files_beside(prefix)
        if p.startswith(start) and _PART.fullmatch(p[len(start) :]) and p[-9:-5] == "-of-"
    }
    counts = sorted({int(p[-5:]) for p in there})
    for count in counts:
        wanted = [file_name(prefix, name, i, count) for i in range(count)]
        if there.issuperset(wanted):
            return wanted
    if counts:
        missing = sorted({file_name(prefix, name, i, counts[0]) for i in range(counts[0])} - there)
        raise NotFoundError(None, None, f"Parts of table {name} are missing: {missing}.")
    raise NotFoundError(
        None, None, f"Checkpoint {prefix} has no table {name}: there is no {start}-...."
    )


def other_parts(prefix: str, name: str, parts: int) -> list[str]:
    """The files of saves of a table in another number of parts."""
    start = file_name(prefix, name, 0, 0)[: -len("-00000-of-00000")]
    there = [(p, _PART.match(p[len(start) :])) for p in files_beside(prefix) if p.startswith(start)]
    return [path for path, found in there if found is not None and int(found[2]) != parts]


def check(store: EmbeddingStore, prefix: str, name: str, slots: Sequence[SlotSpec] | None) -> None:
    """Whether a save fits a table.

    Args:
        slots: what optimisers of the graph keep with its rows; None: any.

    Raises:
        NotFoundError: if there is no such save, or a part of it is missing.
        InvalidArgumentError: if width, type or slots differ.
        DataLossError: if a header is damaged.
    """
    for part in parts_of(prefix, name):
        for path in _chain(part):
            _check_header(store, read_header(path), path, slots)


def _check_header(
    store: EmbeddingStore, header: Header, path: str, slots: Sequence[SlotSpec] | None
) -> None:
    here, there = (store.spec.width, store.spec.dtype.name), (header.width, header.dtype)
    if here != there:
        raise invalid(
            f"Table {store.name} has rows of {here[0]} {here[1]}, and those in {path} are of "
            f"{there[0]} {there[1]}. Make the table as it was, or save under another name."
        )
    saved = set(header.slots)
    if slots is not None and header.rows and saved != set(slots):
        raise invalid(
            f"Table {store.name} is trained here with the slots {_listed(slots)}; in {path} it has "
            f"{_listed(saved)}: it was trained by another optimiser. Train it by that one, or "
            "restore the rows alone with table.restore(path, slots=False)."
        )


def _listed(slots: Any) -> list[str]:
    return sorted(f"{s.name} (from {s.start})" for s in slots)


def load(
    store: EmbeddingStore,
    prefix: str,
    name: str,
    place: tuple[int, int],
    with_slots: bool,
    series: str = "",
) -> int:
    """Gives a table, or a part of one, the rows of a save, however many parts that has.

    The table has what it had if this fails.

    Args:
        place: which part of how many it is.
        series: the name of that which the save may belong to.

    Raises:
        as `check`; DataLossError also for damaged rows.
    """
    check(store, prefix, name, None)
    fresh = EmbeddingStore(store.spec, store.name)
    paths = parts_of(prefix, name)
    wanted = [place[0]] if len(paths) == place[1] else range(len(paths))
    for part in wanted:
        for path in _chain(paths[part]):
            header = _read_file(fresh, path, place, (part, len(paths)), with_slots)
    ended = fresh.begin_period()
    # Changes and increments can follow where this part goes on with the very file.
    if len(wanted) == 1 and with_slots:
        fresh.base = Base(header.id, header.number, ended)
        if header.followed and series:
            _noted(fresh, path, header, ended, Series(series, prefix, None, 0))
    store.adopt(fresh)
    return len(store)


def _read_file(
    store: EmbeddingStore, path: str, place: tuple[int, int], of: tuple[int, int], with_slots: bool
) -> Header:
    """Takes what one file has; ``of``: which part of how many it is by its name."""
    with _Reader(path) as reader:
        header = reader.header()
        width, dtype, left = store.spec.width, store.dtype, header.rows
        store.clock = max(store.clock, header.clock)
        own, theirs = _picker(place), _picker(of)
        removed = reader.array((header.removed,), np.int64, "removed keys")
        if header.whole:
            removed = store.index.items()[0]
        _remove(store, removed)
        before = np.empty(0, np.int64)
        while left:
            n = min(left, _BLOCK)
            left -= n
            keys = reader.array((n,), np.int64, "keys")
            rising = np.concatenate([before, keys])
            if (rising[1:] <= rising[:-1]).any():
                raise DataLossError(None, None, f"{path} is damaged: its keys do not rise.")
            if not theirs(keys).all():
                text = f"{path} has keys of another part: were files of parts exchanged?"
                raise DataLossError(None, None, text)
            before = keys[-1:]
            flags = reader.array((n,), np.uint8, "flags")
            if flags.max() > 1:
                raise DataLossError(None, None, f"{path} is damaged: its flags.")
            sightings = reader.array((n,), np.uint32, "sightings")
            seen = reader.array((n,), np.uint32, "times")
            columns = len(header.slots) + 1
            large = [reader.array((n, width), dtype, "rows") for _ in range(columns)]
            mine = flags.view(np.bool_) & own(keys)
            _remove(store, keys[flags == 0])  # they went while the file was written
            at = store.index.find_or_add(keys[mine], store.new_rows)
            store.sightings.put(at, sightings[mine])
            store.seen.put(at, seen[mine])
            store.values.put(at, large[0][mine])
            for slot, values in zip(header.slots if with_slots else (), large[1:], strict=False):
                store.column(slot).put(at, values[mine])
    return header


def _remove(store: EmbeddingStore, keys: Keys) -> None:
    rows = store.index.find(np.unique(keys))
    store.remove_rows(rows[rows >= 0])


def _picker(place: tuple[int, int]) -> Callable[[Keys], Any]:
    part, parts = place
    if parts == 1:
        return lambda keys: np.ones(len(keys), np.bool_)
    return lambda keys: part_of(keys, parts) == part
