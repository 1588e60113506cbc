"""What can be done with files and directories, on this machine or anywhere that fsspec reaches.

Local paths go straight to the operating system; fsspec is imported when the first ``scheme://``
path comes. Every function takes text, bytes or ``os.PathLike`` and fails with an error of this
library that names the path.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat as modes
import uuid
from collections.abc import Callable, Iterator
from typing import IO, Any, NamedTuple

from headrace.errors import (
    AlreadyExistsError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    OpError,
    UnimplementedError,
)
from headrace.files.paths import as_path, is_local, translated

_BLOCK = 1 << 20
#: Bytes of a protocol buffer.
MOST_MESSAGE = 2**31 - 1

_WITH_BUCKETS = frozenset({"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl"})
_ATOMIC_PUTS = _WITH_BUCKETS | {"memory"}


class FileStatistics(NamedTuple):
    """What `stat` tells: bytes, time of the last change in nanoseconds, whether a directory."""

    length: int
    mtime_nsec: int
    is_directory: bool


def locate(path: str) -> tuple[Any, str]:
    """The fsspec file system of a path with a scheme, and the path inside it.

    Raises:
        UnimplementedError: if no file system has this scheme.
    """
    import fsspec

    scheme = path.partition("://")[0].rpartition("::")[2]
    if scheme not in fsspec.available_protocols():
        raise UnimplementedError(
            None, None, f"File system scheme '{scheme}' not implemented (file: '{path}')"
        )
    with translated(path):
        fs, inner = fsspec.core.url_to_fs(path)
    # Other processes write there, too: what was listed before may no longer hold.
    fs.invalidate_cache()
    return fs, inner


def puts_are_atomic(fs: Any) -> bool:
    """Whether an fsspec file system shows a file only when all of it has arrived."""
    return not _ATOMIC_PUTS.isdisjoint(_protocols(fs))


def has_buckets(fs: Any) -> bool:
    """Whether an fsspec file system has no directories, but buckets and names in them."""
    return not _WITH_BUCKETS.isdisjoint(_protocols(fs))


def _protocols(fs: Any) -> set[str]:
    return {fs.protocol} if isinstance(fs.protocol, str) else set(fs.protocol)


def open_binary(path: Any, mode: str, buffering: int = -1) -> IO[bytes]:
    """A file open for bytes; ``mode`` is ``rb``, ``wb``, ``ab`` or ``r+b``.

    Raises:
        NotFoundError: if the file (or the directory to put it into) does not exist.
        FailedPreconditionError: if it is a directory.
    """
    path = as_path(path)
    with translated(path):
        if is_local(path):
            return open(path, mode, buffering=buffering)
        fs, inner = locate(path)
        if mode == "rb" and fs.isdir(inner):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        file: IO[bytes] = fs.open(inner, mode)
        return file


def read_bytes(path: Any) -> bytes:
    """The whole content of a file. Raises NotFoundError."""
    path = as_path(path)
    with translated(path), open_binary(path, "rb") as file:
        return bytes(file.read())


def read_regular(path: Any, most: int | None = MOST_MESSAGE) -> bytes:
    """The whole content of a file that has an end: for readers that parse it as one.

    Args:
        most: how many bytes it may have.

    Raises:
        NotFoundError: if there is no such file.
        FailedPreconditionError: if it is a directory.
        InvalidArgumentError: if it is a device, a pipe or a socket, or larger than ``most``.
    """
    path = as_path(path)
    if is_local(path):
        with translated(path):
            mode = os.stat(path).st_mode
        if not (modes.S_ISREG(mode) or modes.S_ISDIR(mode)):
            text = f"{path} is no regular file (it is a device, a pipe or a socket): it has no end."
            raise InvalidArgumentError(None, None, f"{text} Give the path of a file.")
    length = stat(path).length
    if most is not None and length > most:
        text = f"{path} has {length} bytes; such a file has {most} at most: it is something else."
        raise InvalidArgumentError(None, None, text)
    return read_bytes(path)


def write_bytes(path: Any, content: bytes) -> None:
    """Make a file of ``content``, in the place of what is there."""
    path = as_path(path)
    with translated(path), open_binary(path, "wb") as file:
        file.write(content)


def exists(path: Any) -> bool:
    """Whether there is such a file or directory."""
    path = as_path(path)
    if is_local(path):
        return os.path.exists(path)
    fs, inner = locate(path)
    with translated(path):
        return bool(fs.exists(inner))


def is_directory(path: Any) -> bool:
    """Whether a path is a directory; False where there is nothing."""
    path = as_path(path)
    if is_local(path):
        return os.path.isdir(path)
    fs, inner = locate(path)
    with translated(path):
        return bool(fs.isdir(inner))


def stat(path: Any) -> FileStatistics:
    """Size and time of a file or directory. Raises NotFoundError."""
    path = as_path(path)
    with translated(path):
        if is_local(path):
            found = os.stat(path)
            return FileStatistics(found.st_size, found.st_mtime_ns, modes.S_ISDIR(found.st_mode))
        fs, inner = locate(path)
        info = fs.info(inner)
        directory = info.get("type") == "directory"
        try:
            changed = int(fs.modified(inner).timestamp() * 1e9)
        except (NotImplementedError, FileNotFoundError, AttributeError):
            changed = 0  # the store does not tell
        return FileStatistics(int(info.get("size") or 0), changed, directory)


def list_directory(path: Any) -> list[str]:
    """The names in a directory, sorted, without ``.`` and ``..``.

    Raises:
        NotFoundError: if it is not a directory.
    """
    path = as_path(path)
    if not is_directory(path):
        raise NotFoundError(None, None, f"Could not find directory {path}")
    with translated(path):
        if is_local(path):
            return sorted(os.listdir(path))
        fs, inner = locate(path)
        own = inner.rstrip("/")
        found = [p.rstrip("/") for p in fs.ls(inner, detail=False)]
        return sorted(os.path.basename(p) for p in found if p != own)


def make_directory(path: Any) -> None:
    """Make a directory inside one that exists; nothing happens where it is there already.

    The empty path stands for the working directory.

    Raises:
        NotFoundError: if the directory above does not exist.
        AlreadyExistsError: if there is a file of that name.
    """
    path = as_path(path)
    if not path or is_directory(path):
        return
    with translated(path):
        if is_local(path):
            os.mkdir(path)
        else:
            fs, inner = locate(path)
            fs.mkdir(inner, create_parents=False)


def make_directories(path: Any) -> None:
    """Make a directory and all above it; nothing happens where it is there already.

    The empty path stands for the working directory. In object stores names need no directories;
    buckets are not made.

    Raises:
        FailedPreconditionError: if there is a file in the way.
    """
    path = as_path(path)
    with translated(path):
        if is_local(path):
            try:
                os.makedirs(path or ".", exist_ok=True)
            except (FileExistsError, NotADirectoryError):
                raise FailedPreconditionError(None, None, f"{path} is not a directory") from None
        else:
            fs, inner = locate(path)
            if not has_buckets(fs):
                fs.makedirs(inner, exist_ok=True)


def remove(path: Any) -> None:
    """Delete a file.

    Raises:
        NotFoundError: if it does not exist.
        FailedPreconditionError: if it is a directory.
    """
    path = as_path(path)
    with translated(path):
        if is_local(path):
            os.unlink(path)
            return
        fs, inner = locate(path)
        if fs.isdir(inner):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        fs.rm_file(inner)


def remove_tree(path: Any) -> None:
    """Delete a directory with all in it, or a link to one.

    Raises:
        NotFoundError: if there is nothing.
        FailedPreconditionError: if it is a file, which stays.
    """
    path = as_path(path)
    with translated(path):
        if is_local(path):
            if not os.path.lexists(path):
                raise NotFoundError(None, None, f"{path} not found")
            if not os.path.isdir(path):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
            if os.path.islink(path):
                os.unlink(path)
            else:
                shutil.rmtree(path)
            return
        fs, inner = locate(path)
        if not fs.exists(inner):
            raise NotFoundError(None, None, f"{path} not found")
        if not fs.isdir(inner):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        fs.rm(inner, recursive=True)


def copy(source: Any, target: Any, overwrite: bool = False) -> None:
    """Copy a file, also between file systems; a local target is seen whole or not at all.

    Raises:
        NotFoundError: if ``source`` does not exist.
        AlreadyExistsError: if ``target`` exists and ``overwrite`` is False.
    """
    source, target = as_path(source), as_path(target)
    if not overwrite and exists(target):
        raise AlreadyExistsError(None, None, f"file already exists: {target}")
    # Devices, pipes and links are written through, not replaced.
    plain = is_local(target) and not os.path.islink(target)
    whole = plain and (os.path.isfile(target) or not os.path.exists(target))
    with open_binary(source, "rb") as read:
        if not whole:
            _pour(read, target)
            return
        place = f"{target}.{uuid.uuid4().hex[:8]}.tmp"
        try:
            _pour(read, place)
            with translated(target):
                os.replace(place, target)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(place)
            raise


def _pour(read: IO[bytes], target: str) -> None:
    """Write the rest of an open file to a path."""
    with open_binary(target, "wb") as write, translated(target):
        shutil.copyfileobj(read, write, _BLOCK)


def rename(source: Any, target: Any, overwrite: bool = False) -> None:
    """Move a file or directory; on one local file system this is atomic.

    Raises:
        NotFoundError: if ``source`` does not exist.
        AlreadyExistsError: if ``target`` exists and ``overwrite`` is False.
    """
    source, target = as_path(source), as_path(target)
    if not overwrite and exists(target):
        raise AlreadyExistsError(None, None, f"file already exists: {target}")
    if is_local(source) and is_local(target):
        with translated(source):
            try:
                os.replace(source, target)
            except OSError as error:
                if error.errno != errno.EXDEV:
                    raise
                shutil.move(source, target)
        return
    if is_local(source) or is_local(target) or locate(source)[0] is not locate(target)[0]:
        copy(source, target, overwrite=True)
        remove(source)
        return
    fs, inner = locate(source)
    with translated(source):
        if not fs.exists(inner):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        fs.mv(inner, locate(target)[1], recursive=bool(fs.isdir(inner)))


def join(directory: str, *names: str) -> str:
    """Path components put together; one that is absolute or has a scheme starts again."""
    result = directory
    for name in names:
        if not is_local(name) or name.startswith("/") or not result:
            result = name
        else:
            result = result + name if result.endswith("/") else f"{result}/{name}"
    return result


def walk(
    top: Any, in_order: bool = True, onerror: Callable[[OpError], None] | None = None
) -> Iterator[tuple[str, list[str], list[str]]]:
    """Every directory under ``top`` as (path, names of directories, names of files).

    Args:
        in_order: a directory comes before those inside it, else after.
        onerror: is called with the error of a directory that cannot be listed; without it such
            directories (and a ``top`` that does not exist) are left out.
    """
    top = as_path(top)
    try:
        names = list_directory(top)
    except OpError as error:
        if onerror is not None:
            onerror(error)
        return
    directories = [n for n in names if is_directory(join(top, n))]
    inside = set(directories)
    here = (top, directories, [n for n in names if n not in inside])
    if in_order:
        yield here
    for name in directories:
        yield from walk(join(top, name), in_order, onerror)
    if not in_order:
        yield here
