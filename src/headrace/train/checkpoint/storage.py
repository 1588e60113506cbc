"""Files of checkpoints, on any file system that fsspec knows: local paths, ``s3://``, ``memory://``.

Three promises: what was written with `publish` is seen whole or not at all; data written through
`Writer` is on the disk when it is closed (local files); a missing or unreadable file is an error of
this library that names the file.
"""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Iterator
from typing import Any

import google_crc32c
import numpy as np

from headrace.errors import (
    DataLossError,
    NotFoundError,
    OpError,
    PermissionDeniedError,
    ResourceExhaustedError,
    UnknownError,
)

#: Bytes that are written, or read and checked, at once.
CHUNK = 16 << 20

#: Schemes whose stores show an object only when all of it has arrived.
_PUTS_ARE_ATOMIC = frozenset({"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl", "memory"})

_ERRORS: tuple[tuple[type[OSError], type[OpError]], ...] = (
    (FileNotFoundError, NotFoundError),
    (NotADirectoryError, NotFoundError),
    (PermissionError, PermissionDeniedError),
)
_NO_SPACE = frozenset({28, 122, 24})  # ENOSPC, EDQUOT, EMFILE


@contextlib.contextmanager
def _translated(path: str) -> Iterator[None]:
    """Failures of the file system as errors of this library."""
    try:
        yield
    except OSError as error:
        text = f"{path}: {error.strerror or error}"
        for cause, kind in _ERRORS:
            if isinstance(error, cause):
                raise kind(None, None, text) from error  # type: ignore[call-arg]
        if error.errno in _NO_SPACE:
            raise ResourceExhaustedError(None, None, text) from error
        raise UnknownError(None, None, text) from error


def is_local(path: str) -> bool:
    """Whether a path lies on this machine's file system."""
    return "://" not in path


def locate(path: str) -> tuple[Any, str]:
    """The file system of a path, and the path inside it."""
    import fsspec

    fs, inner = fsspec.core.url_to_fs(path)
    return fs, inner


def exists(path: str) -> bool:
    """Whether there is such a file or directory."""
    if is_local(path):
        return os.path.exists(path)
    fs, inner = locate(path)
    return bool(fs.exists(inner))


def is_dir(path: str) -> bool:
    """Whether a path is a directory."""
    if is_local(path):
        return os.path.isdir(path)
    fs, inner = locate(path)
    return bool(fs.isdir(inner))


def size(path: str) -> int:
    """Bytes in a file. Raises NotFoundError."""
    with _translated(path):
        if is_local(path):
            return os.path.getsize(path)
        fs, inner = locate(path)
        return int(fs.size(inner))


def mtime(path: str) -> float:
    """Seconds since 1970 at which a file was last written. Raises NotFoundError."""
    with _translated(path):
        if is_local(path):
            return os.path.getmtime(path)
        fs, inner = locate(path)
        try:
            return float(fs.modified(inner).timestamp())
        except NotImplementedError:
            return 0.0


def join(directory: str, name: str) -> str:
    """``directory/name``; just ``name`` when that is a full path or URL."""
    if not directory or not is_local(name) or os.path.isabs(name):
        return name
    return os.path.join(directory, name) if is_local(directory) else f"{directory}/{name}"


def siblings(prefix: str) -> list[str]:
    """Paths of the files whose path begins with ``prefix``, as it is written, sorted."""
    cut = prefix.rfind("/") + 1  # a split that tidies the path would change doubled slashes
    directory, name = prefix[:cut], prefix[cut:]
    if is_local(prefix):
        try:
            found = os.listdir(directory or ".")
        except (FileNotFoundError, NotADirectoryError):
            return []
    else:
        fs, inner = locate(directory)
        try:
            found = [os.path.basename(p.rstrip("/")) for p in fs.ls(inner, detail=False)]
        except FileNotFoundError:
            return []
    return sorted(directory + n for n in found if n.startswith(name))


def make_dirs(directory: str) -> None:
    """Make a directory and those above it, where there are such things."""
    with _translated(directory):
        if is_local(directory):
            os.makedirs(directory or ".", exist_ok=True)
            return
        fs, inner = locate(directory)
        if not _puts_are_atomic(fs):  # object stores have no directories
            fs.makedirs(inner, exist_ok=True)


def _puts_are_atomic(fs: Any) -> bool:
    protocols = {fs.protocol} if isinstance(fs.protocol, str) else set(fs.protocol)
    return not protocols.isdisjoint(_PUTS_ARE_ATOMIC)


def read_all(path: str) -> bytes:
    """The content of a small file. Raises NotFoundError."""
    with _translated(path), opened(path) as file:
        return bytes(file.read())


@contextlib.contextmanager
def opened(path: str) -> Iterator[Any]:
    """A file open for reading. Raises NotFoundError."""
    with _translated(path):
        if is_local(path):
            file: Any = open(path, "rb")  # noqa: SIM115  (closed by the with below)
        else:
            fs, inner = locate(path)
            file = fs.open(inner, "rb")
    with file:
        yield file


def read_into(file: Any, path: str, begin: int, target: np.ndarray[Any, Any]) -> int:
    """Fill ``target`` (uint8) with the bytes of a file from ``begin`` on; returns their crc32c.

    Raises:
        DataLossError: if the file ends before that.
    """
    crc, done = 0, 0
    with _translated(path):
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
    """A file that is written from its beginning to its end, in one go."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.position = 0
        with _translated(path):
            if is_local(path):
                self._file: Any = open(path, "wb", buffering=1 << 16)  # noqa: SIM115
            else:
                fs, inner = locate(path)
                self._file = fs.open(inner, "wb")

    def write(self, data: Any) -> int:
        """Append bytes (or a uint8 array, which is not copied); returns their crc32c."""
        flat = np.frombuffer(data, np.uint8) if not isinstance(data, np.ndarray) else data
        crc = 0
        with _translated(self.path):
            for begin in range(0, flat.size, CHUNK):
                part = flat[begin : begin + CHUNK]
                crc = google_crc32c.extend(crc, part)
                self._file.write(part.data)
        self.position += flat.size
        return crc

    def close(self) -> None:
        """Finish; a local file is on the disk when this returns."""
        with _translated(self.path):
            try:
                self._file.flush()
                if is_local(self.path):
                    os.fsync(self._file.fileno())
            finally:
                self._file.close()

    def abandon(self) -> None:
        """Close after a failure; the file may be incomplete."""
        with contextlib.suppress(Exception):
            self._file.close()


def publish(path: str, content: bytes) -> None:
    """Write a small file so that readers see the old content or all of the new one, never less."""
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
            rename(temporary, path)
        except BaseException:
            remove(temporary)
            raise
        return
    fs, inner = locate(path)
    with _translated(path):
        if _puts_are_atomic(fs):
            fs.pipe_file(inner, content)
        else:
            temporary = temporary_name(inner)
            fs.pipe_file(temporary, content)
            fs.mv(temporary, inner)


def rename(source: str, target: str) -> None:
    """Put a local file in the place of another, at once and for good."""
    with _translated(target):
        os.replace(source, target)
    sync_directory(os.path.dirname(target))


def move(source: str, target: str) -> None:
    """Give a file another path on the same file system."""
    if is_local(source):
        rename(source, target)
        return
    with _translated(source):
        fs, inner = locate(source)
        fs.mv(inner, locate(target)[1])


def remove_empty_directory(directory: str) -> None:
    """Remove a directory if there is nothing in it."""
    with contextlib.suppress(OSError):
        if is_local(directory):
            os.rmdir(directory)
        else:
            fs, inner = locate(directory)
            fs.rmdir(inner)


def sync_directory(directory: str) -> None:
    """Make the names in a local directory survive a power failure, where the system can."""
    flag = getattr(os, "O_DIRECTORY", None)
    if flag is None or not is_local(directory):
        return
    descriptor = os.open(directory or ".", os.O_RDONLY | flag)
    try:
        os.fsync(descriptor)
    except OSError:  # some network file systems refuse to sync a directory
        pass
    finally:
        os.close(descriptor)


def temporary_name(path: str) -> str:
    """A name beside ``path`` that no one else uses."""
    return f"{path}.tmp-{uuid.uuid4().hex[:12]}"


def remove(path: str) -> None:
    """Remove a file; it is no error when it is not there or cannot be removed."""
    with contextlib.suppress(OSError):
        if is_local(path):
            os.remove(path)
        else:
            fs, inner = locate(path)
            fs.rm_file(inner)
