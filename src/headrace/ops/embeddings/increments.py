"""Increments: what a series of checkpoints writes of a table that has changed little.

The checkpoints that one saver writes under one base name (``p-100``, ``p-200``) are a series. A
save of it writes all rows, or an increment: the rows that have changed since the last save of the
series whose checkpoint came to be, and the keys that have gone. So a save that failed or was killed
is followed by none. Increments end, and all rows are written, when there are ten, when they are
longer than half of the save of all rows, and when the optimiser's slots are others.

Files that an increment follows stay beside their checkpoints when these are removed, until nothing
follows them any more.
"""

from __future__ import annotations

import contextlib
import re
import shutil
from collections.abc import Iterable

from headrace.errors import DataLossError, NotFoundError, OpError
from headrace.files import system
from headrace.ops.embeddings import table_files, whole_files
from headrace.ops.embeddings.store import EmbeddingStore, SavedTable
from headrace.ops.embeddings.table_files import Header, Series, names_of

__all__ = ["is_visible", "keep_for_others", "remove", "remove_other_parts", "save", "series_of"]

#: Increments that follow a save of all rows at most.
MOST = 10

_STEP = re.compile(r"-\d+$")


def series_of(prefix: str) -> str:
    """The path of a checkpoint without its step."""
    return _STEP.sub("", prefix)


def is_visible(prefix: str) -> bool:
    """Whether there is such a checkpoint, of either version of the format."""
    return system.exists(f"{prefix}.index") or system.exists(prefix)


def save(store: EmbeddingStore, prefix: str, path: str) -> int:
    """Writes a part of a table for a saver, all of it or an increment; how many rows it has.

    Args:
        prefix: the path of the checkpoint; path: the file of the part.
    """
    name = series_of(prefix)
    with store.lock:
        known = list(store.saved.get(name, ()))
    after = next((s for s in reversed(known) if s.path != path and _can_be_followed(s)), None)
    return table_files.save(store, path, True, Series(name, prefix, after, MOST))


def _can_be_followed(saved: SavedTable) -> bool:
    """Whether the checkpoint came to be, and the files of the table are there."""
    directory, names = _directory(saved.path), _names(saved.path)
    if not all(any(name in names for name in names_of(link)) for link in saved.links):
        return False
    with contextlib.suppress(OpError):
        own = table_files.read_header(directory + saved.links[-1].file)
        return own.id == saved.links[-1].id and is_visible(saved.prefix)
    return False


def _directory(path: str) -> str:
    return path[: path.rfind("/") + 1]


def _names(path: str) -> set[str]:
    """The names in the directory of a file."""
    try:
        return set(system.list_directory(_directory(path) or "."))
    except NotFoundError:
        return set()


def _headers(directory: str, names: Iterable[str]) -> dict[str, Header]:
    """The headers of files of tables that have one which can be read."""
    found = {}
    for name in names:
        if table_files.TABLE_FILE.fullmatch(name):
            with contextlib.suppress(DataLossError, NotFoundError):
                found[name] = table_files.read_header(directory + name)
    return found


def keep_for_others(path: str) -> None:
    """Copies a file that is about to be written over, if increments of other checkpoints follow it.

    That is rare: training went back to an older checkpoint, and comes to the same steps again.
    """
    if not system.exists(path):
        return
    directory, name = _directory(path), path.rpartition("/")[2]
    with contextlib.suppress(DataLossError):  # nothing can follow what cannot be read
        own = table_files.read_header(path)
        if not own.followed:
            return
        if (name, own.id) in _followed(directory, _names(path) - {name}):
            kept = f"{path}.older-{own.id}"
            with system.open_binary(path, "rb") as source, whole_files.writing(kept) as copy:
                shutil.copyfileobj(source, copy, 1 << 24)


def _followed(directory: str, names: Iterable[str]) -> set[tuple[str, str]]:
    """The files, with the ids of their saves, that some of these need."""
    headers = _headers(directory, names).values()
    return {(link.file, link.id) for header in headers for link in header.after}


def remove_other_parts(prefix: str, name: str, parts: int) -> None:
    """Removes the files of a save of a table in another number of parts.

    What increments of other checkpoints follow stays, under its other name: training was restored
    in that other number of parts, and has come to the same step again.
    """
    paths = table_files.other_parts(prefix, name, parts)
    if not paths:
        return
    directory, doomed = _directory(paths[0]), {path.rpartition("/")[2] for path in paths}
    needed = _followed(directory, _names(paths[0]) - doomed)
    for file, header in _headers(directory, doomed).items():
        own, _, older = file.partition(".older-")
        if (own, header.id) in needed and not header.number:
            doomed.remove(file)
            if not older:
                system.rename(directory + file, f"{directory}{file}.older-{header.id}", True)
    for file in doomed:
        system.remove(directory + file)


def remove(paths: Iterable[str]) -> None:
    """Removes files of tables whose checkpoint is gone, and what was there for them alone.

    Files that increments of other checkpoints follow stay.
    """
    given = {path.rpartition("/")[2]: path for path in paths}
    if not given:
        return
    directory = _directory(next(iter(given.values())))
    own = _headers(directory, given)
    doomed, headers = set(given), own
    if any(header.followed for header in own.values()):
        names = _names(next(iter(given.values())))
        headers = _headers(directory, names)
        links = {link for name in given if name in headers for link in headers[name].after}
        followed = {name for link in links for name in names_of(link)} & names
        doomed |= {name for name in followed if not _has_checkpoint(directory, name)}
    needed = {
        (link.file, link.id)
        for name, header in headers.items()
        if name not in doomed
        for link in header.after
    }
    for name in doomed:
        header = headers.get(name)
        file = name.partition(".older-")[0]
        if header is None or header.number or (file, header.id) not in needed:
            with contextlib.suppress(OpError):
                system.remove(directory + name)


def _has_checkpoint(directory: str, name: str) -> bool:
    found = table_files.TABLE_FILE.fullmatch(name)
    return found is not None and ".older-" not in name and is_visible(directory + found[1])
