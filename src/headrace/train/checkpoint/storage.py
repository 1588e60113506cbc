"""What checkpoints need of file systems beyond `headrace.files.system`.

Two promises: what was written with `publish` is seen whole or not at all; data written through
`Writer` is on the disk when it is closed (local files).
"""

from __future__ import annotations

import contextlib
import os
import uuid
from typing import Any

import google_crc32c
import numpy as np

from headrace.errors import DataLossError, NotFoundError, OpError
from headrace.files import system
from headrace.files.paths import as_path, is_local, translated
from headrace.files.progress import note_progress
from headrace.train.checkpoint.layout import DATA_SUFFIX
from headrace.train.checkpoint.pace import Pace

#: Bytes that are written, or read and checked, at once.
CHUNK = 16 << 20


def directory_of(path: str) -> str:
    """A path up to its last slash, as it is written: with a name behind it, it is a path again."""
    return path[: path.rfind("/") + 1]


def siblings(prefix: str) -> list[str]:
    """Paths of the files whose path begins with ``prefix``, as it is written, sorted."""
    directory = directory_of(prefix)
    name = prefix[len(directory) :]
    try:
        found = system.list_directory(directory or ".")
    except NotFoundError:
        return []
    return [directory + n for n in found if n.startswith(name)]


def data_files_of(prefix: str) -> list[str]:
    """Paths of the files beside ``prefix`` that are named as its data files are, sorted."""
    return [
        path for path in siblings(f"{prefix}.data-") if DATA_SUFFIX.fullmatch(path, len(prefix))
    ]


def read_into(file: Any, path: str, begin: int, target: np.ndarray[Any, Any]) -> int:
    """Fill ``target`` (uint8) with the bytes of a file from ``begin`` on; returns their crc32c.

    Raises:
        DataLossError: if the file ends before that.
    """
    crc, done = 0, 0
    with translated(path):
        file.seek(begin)
        while done < target.size:
            part = target[done : done + CHUNK]
            count = file.readinto(part.data)
            if not count:
                raise DataLossError(
                    None,
                    None,
                    f"{path} is cut off: it ends at byte {begin + done}, and the data goes on to "
                    f"byte {begin + target.size}.",
                )
            crc = google_crc32c.extend(crc, part[:count])
            done += count
    return crc


class Writer:
    """A file that is written from its beginning to its end, in one go.

    Args:
        pace: called after each piece, which is smaller then.
    """

    def __init__(self, path: str, pace: Pace | None = None) -> None:
        self.path = as_path(path)
        self._pace = pace
        self.position = 0
        self._file = system.open_binary(self.path, "wb", buffering=1 << 16)

    def write(self, data: Any) -> int:
        """Append bytes (or a uint8 array, which is not copied); returns their crc32c."""
        flat = np.frombuffer(data, np.uint8) if not isinstance(data, np.ndarray) else data
        crc = 0
        with translated(self.path):
            chunk = CHUNK if self._pace is None else self._pace.PIECE
            for begin in range(0, flat.size, chunk):
                part = flat[begin : begin + chunk]
                crc = google_crc32c.extend(crc, part)
                self._file.write(part.data)
                note_progress(part.nbytes)
                if self._pace is not None:
                    self._pace()
        self.position += flat.size
        return crc

    def fileno(self) -> int:
        """The descriptor of a local file."""
        return self._file.fileno()

    def sync(self) -> None:
        """Bring what was written to the disk (local files)."""
        with translated(self.path):
            self._file.flush()
            if is_local(self.path):
                os.fsync(self._file.fileno())

    def close(self) -> None:
        """Finish; a local file is on the disk when this returns."""
        with translated(self.path):
            try:
                self.sync()
            finally:
                self._file.close()

    def abandon(self) -> None:
        """Close after a failure; the file may be incomplete, and in object stores is not there."""
        with contextlib.suppress(Exception):
            file: Any = self._file
            if hasattr(file, "discard"):  # fsspec's: closing it would put what there is
                file.discard()
                file.closed = True
        with contextlib.suppress(Exception):
            self._file.close()


def publish(path: str, content: bytes) -> None:
    """Write a small file so that readers see the old content or all of the new one, never less."""
    path = as_path(path)
    if is_local(path):
        temporary = temporary_name(path)
        try:
            writer = Writer(temporary)
            try:
                writer.write(content)
                writer.close()
            except BaseException:
                writer.abandon()
                raise
            move(temporary, path)
        except BaseException:
            discard(temporary)
            raise
        return
    fs, inner = system.locate(path)
    with translated(path):
        if system.puts_are_atomic(fs):
            fs.pipe_file(inner, content)
        else:
            temporary = temporary_name(inner)
            fs.pipe_file(temporary, content)
            fs.mv(temporary, inner)


def move(source: str, target: str) -> None:
    """Put a file in the place of another on the same file system; a local one at once, for good."""
    system.rename(source, target, overwrite=True)
    sync_name(target)


def remove_empty_directory(directory: str) -> None:
    """Remove a directory if there is nothing in it."""
    with contextlib.suppress(OSError):
        if is_local(directory):
            os.rmdir(directory)
        else:
            fs, inner = system.locate(directory)
            fs.rmdir(inner)


def sync_name(path: str) -> None:
    """Make the name of a local file survive a power failure, where the system can."""
    path = as_path(path)
    flag = getattr(os, "O_DIRECTORY", None)
    if flag is None or not is_local(path):
        return
    descriptor = os.open(os.path.dirname(path) or ".", os.O_RDONLY | flag)
    try:
        os.fsync(descriptor)
    except OSError:  # some network file systems refuse to sync a directory
        pass
    finally:
        os.close(descriptor)


def temporary_name(path: str) -> str:
    """A name beside ``path`` that no one else uses."""
    return f"{path}.tmp-{uuid.uuid4().hex[:12]}"


def discard(path: str) -> None:
    """Remove a file; it is no error when it is not there or cannot be removed."""
    with contextlib.suppress(OpError):
        system.remove(path)
