"""A save under way: names that nobody else uses, publishing at once, and what killed saves left.

A checkpoint is its index: data files count for nothing until an index names them. The names of
data files have their count in them, and TensorFlow's readers take any; so a save over a checkpoint
writes its data under another count, replaces the index at once, and then removes the old data.

A local save holds a lock on the file that becomes the index, its mark. The system takes the lock
from a process that ends, however it ends: data files without an index, beside a mark that nobody
holds, are what killed saves left, and the next save removes them. Files without a mark are somebody
else's, such as a copy that has not arrived whole. Object stores have no locks. There, data without
an index is removed when nothing was written beside it for an hour.
"""

from __future__ import annotations

import contextlib
import os
import re
import threading
import time
from collections import Counter
from collections.abc import Iterable
from types import TracebackType

from headrace.errors import OpError
from headrace.files import locks, system
from headrace.files.paths import as_path, is_local, translated
from headrace.train.checkpoint import bundle, storage
from headrace.train.checkpoint.layout import data_path, index_path

#: Data without an index on a store without locks is a leftover after so many nanoseconds.
_FORGOTTEN_NS = 3600 * 10**9

#: Saves of this process, by prefix: two of one prefix go one after the other.
_under_way: Counter[str] = Counter()
_changed = threading.Condition()


class Saving:
    """One save of a checkpoint, as a context: what was written is removed if it fails.

    Args:
        prefix: path of the checkpoint, in a directory that exists.
    """

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self._mark: _Mark | None = None
        self._files: list[str] = []
        self._content = b""

    def __enter__(self) -> Saving:
        with _changed:
            _changed.wait_for(lambda: not _under_way[self.prefix])
            _under_way[self.prefix] += 1
        try:
            if is_local(as_path(self.prefix)):
                self._mark = _Mark(self.prefix)
            if not self._others():
                _remove_unnamed(self.prefix)
            _remove_older_part(self.prefix)
        except BaseException:
            self._end()
            raise
        return self

    def data_files(self, count: int) -> list[str]:
        """Names for at least ``count`` data files; they must all be written."""
        taken = None if self._others() else _named_count(self.prefix)
        if taken is None:
            taken = {count for _, count in _data_files(self.prefix)}
        while count in taken or not self._reserve(count):
            count += 1
        self._files = [data_path(self.prefix, i, count) for i in range(count)]
        return self._files

    def _others(self) -> bool:
        """Whether another process seems to save here at this time."""
        return self._mark is not None and any(
            _is_locked(path) for path in _marks(self.prefix) if path != self._mark.path
        )

    def _reserve(self, count: int) -> bool:
        """Whether the first of the files could be made: two processes never get the same."""
        first = as_path(data_path(self.prefix, 0, count))
        if self._mark is None:
            return True
        with translated(first):
            try:
                os.close(os.open(first, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
            except FileExistsError:
                return False
        return True

    def publish(self, content: bytes, parts: Iterable[str] = ()) -> None:
        """Make the checkpoint one of the files from `data_files`, with this index.

        Args:
            parts: prefixes of the parts of a sharded save.
        """
        storage.sync_name(self.prefix)
        self._content = content
        if self._mark is None:
            storage.publish(index_path(self.prefix), content)
        else:
            self._mark.publish(content)
        if not self._others():
            _remove_unnamed(self.prefix, {len(self._files)})
        _remove_leftovers(self.prefix, {m[2] for p in parts if (m := _PARTS.search(p))})

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if error is not None and not self._is_published():
                for path in self._files:
                    storage.discard(path)
        finally:
            self._end()

    def _is_published(self) -> bool:
        """Whether readers see the new index already, although publishing it failed."""
        if not self._content:
            return False
        try:
            return system.read_regular(index_path(self.prefix)) == self._content
        except OpError:
            return False

    def _end(self) -> None:
        try:
            if self._mark is not None:
                self._mark.release()
        finally:
            with _changed:
                _under_way[self.prefix] -= 1
                if not _under_way[self.prefix]:
                    del _under_way[self.prefix]
                _changed.notify_all()


class _Mark:
    """A file that becomes the index, locked while its save lasts."""

    def __init__(self, prefix: str) -> None:
        self._target = as_path(index_path(prefix))
        while True:
            self.path = storage.temporary_name(self._target)
            self._writer = storage.Writer(self.path)
            with contextlib.suppress(OSError):  # where there are no locks its age must do
                locks.lock(self._writer, exclusive=True)
            # Before it was locked another save may have taken it for a leftover.
            if os.path.exists(self.path):
                return
            self._writer.abandon()

    def publish(self, content: bytes) -> None:
        self._writer.write(content)
        self._writer.sync()
        storage.move(self.path, self._target)

    def release(self) -> None:
        """Unlock; the file goes unless it became the index."""
        try:
            storage.discard(self.path)
        finally:
            self._writer.abandon()


def _is_locked(path: str) -> bool:
    """Whether a save holds this mark; where there are no locks, whether it is young."""
    locked = locks.is_locked(path)
    if locked is None:
        files = storage.siblings(path.rpartition(".index.tmp-")[0])
        newest = max((system.stat(f).mtime_nsec for f in files), default=0)
        return time.time_ns() - newest < _FORGOTTEN_NS
    return locked


def _marks(prefix: str) -> list[str]:
    return storage.siblings(as_path(f"{index_path(prefix)}.tmp-"))


def _data_files(prefix: str) -> Iterable[tuple[str, int]]:
    """The data files beside a prefix, and the count in the name of each."""
    return [(path, int(path.rpartition("-")[2])) for path in storage.data_files_of(prefix)]


def _named_count(prefix: str) -> set[int] | None:
    """The count of the data files that the index names; None if it cannot be read."""
    try:
        return {bundle.shard_count(prefix)} if system.exists(index_path(prefix)) else set()
    except OpError:
        return None


def _remove_unnamed(prefix: str, counts: set[int] | None = None) -> None:
    """Remove data files that the index does not name, and marks of saves that are dead.

    Args:
        counts: the counts that it names, if that is known.
    """
    found = list(_data_files(prefix))
    if found and counts is None:
        counts = _named_count(prefix)
    for path, count in found:
        if counts is not None and count not in counts:
            storage.discard(path)
    if is_local(as_path(prefix)):
        for path in _marks(prefix):
            if not _is_locked(path):
                storage.discard(path)


def remove(prefix: str) -> None:
    """Remove the index and the data of a checkpoint. If this is killed, the next save goes on."""
    index = as_path(index_path(prefix))
    if is_local(index) and system.exists(index):
        with contextlib.suppress(OpError):
            storage.move(index, storage.temporary_name(index))
    storage.discard(index)
    for path in storage.data_files_of(prefix):
        storage.discard(path)
    for path in _marks(prefix) if is_local(index) else []:
        if not _is_locked(path):
            storage.discard(path)


# -- what saves under other names left ------------------------------------------------------------

_STEP = re.compile(r"(.+)-\d+")
_FILE = re.compile(r"(.+)\.(data-\d{5,}-of-\d{5,}|index\.tmp-[0-9a-f]{12})")
#: The mark is that of the saver, and one for each save.
_PARTS = re.compile(r"([^/]+)_temp_([0-9a-f]{16})[0-9a-f]{16}(?=/|$)")


def _remove_leftovers(prefix: str, own_parts: set[str]) -> None:
    """Remove what killed saves under other names left in the directory.

    Where there are locks these tell which saves are dead, whoever began them; elsewhere only files
    of other steps of the same saver are looked at.

    Args:
        own_parts: marks of this saver in the names of folders for the parts of sharded saves.
    """
    directory = storage.directory_of(prefix)
    if _PARTS.search(directory):
        return  # a part of a sharded save; the whole is saved by `merge`
    own = prefix[len(directory) :]
    step = _STEP.fullmatch(own)
    base = re.escape(step[1] if step else own)
    of_saver = re.compile(rf"{base}(-\d+)?")
    locks = is_local(as_path(prefix))
    with contextlib.suppress(OpError):
        names = system.list_directory(directory or ".")
        there = set(names)
        prefixes: dict[str, list[str]] = {}
        for name in names:
            found = _FILE.fullmatch(name)
            if found and found[1] != own and (locks or of_saver.fullmatch(found[1])):
                prefixes.setdefault(found[1], []).append(directory + name)
        for other, files in prefixes.items():
            if f"{other}.index" not in there and _is_dead(directory + other, files, prefix):
                for path in files:
                    storage.discard(path)
        for name in names:
            found = _PARTS.fullmatch(name)
            if found and of_saver.fullmatch(found[1]):
                _remove_parts(directory + name, prefix, found[2] in own_parts)


def _remove_older_part(prefix: str) -> None:
    """Remove what the same saver has written as this part of sharded saves that failed elsewhere:
    on a full disk there would be less room for each further attempt.
    """
    directory = storage.directory_of(prefix)
    above = storage.directory_of(directory.rstrip("/"))
    own = directory[len(above) :].rstrip("/")
    this = _PARTS.fullmatch(own)
    if this is None:
        return
    step = _STEP.fullmatch(this[1])
    of_saver = re.compile(rf"{re.escape(step[1] if step else this[1])}(-\d+)?")
    with contextlib.suppress(OpError):
        for name in system.list_directory(above or "."):
            found = _PARTS.fullmatch(name)
            if found and name != own and found[2] == this[2] and of_saver.fullmatch(found[1]):
                older = f"{above}{name}/{prefix[len(directory) :]}"
                marks = _marks(older) if is_local(as_path(older)) else []
                if any(map(_is_locked, marks)):
                    continue  # a task is still at work for a save that was given up
                for path in [*marks, index_path(older), *storage.data_files_of(older)]:
                    storage.discard(path)
                storage.remove_empty_directory(f"{above}{name}")


def _is_dead(other: str, files: list[str], prefix: str) -> bool:
    """Whether the save that wrote these files is over, and no index names them."""
    if not is_local(as_path(other)):
        return _are_forgotten(files, prefix) and not system.exists(index_path(other))
    marks = _marks(other)
    if not marks or any(_is_locked(path) for path in marks):
        return False
    # In this order: a save that ends meanwhile has its index before it gives up its lock.
    return not system.exists(index_path(other))


def _are_forgotten(files: list[str], prefix: str) -> bool:
    """Whether all files are much older than the index just written, by the clock of the store."""
    now = system.stat(index_path(prefix)).mtime_nsec
    times = [system.stat(path).mtime_nsec for path in files]
    return all(0 < t < now - _FORGOTTEN_NS for t in times)


def _remove_parts(directory: str, prefix: str, of_this_saver: bool) -> None:
    """Remove the folder of a sharded save that never ended, if nothing happens there any more.

    Its parts come from several servers, so no lock tells; but one saver saves one thing at a time.
    """
    files = [f"{directory}/{name}" for name in system.list_directory(directory)]
    if of_this_saver or _are_forgotten(files, prefix):
        for path in files:
            storage.discard(path)
        storage.remove_empty_directory(directory)
