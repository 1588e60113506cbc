"""Files and directories, local or of any scheme that fsspec knows: ``tf.gfile``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from headrace.files import globbing, system
from headrace.files.gfile import GFile
from headrace.files.system import FileStatistics
from headrace.train import shared_files


class FastGFile(GFile):
    """The same as `GFile`; the name is deprecated.

    >>> with tf.gfile.FastGFile("notes.txt", "w") as file:
    ...     file.write("one line")
    >>> tf.gfile.FastGFile("notes.txt", "rb").read()
    b'one line'
    """


Open = GFile


def Exists(filename: Any) -> bool:
    """Whether there is such a file or directory.

    Raises:
        UnimplementedError: if nothing is known of the scheme of the path.
    """
    return system.exists(filename)


def IsDirectory(dirname: Any) -> bool:
    """Whether a path is a directory; False where there is nothing.

    Raises:
        UnimplementedError: if nothing is known of the scheme of the path.
    """
    return system.is_directory(dirname)


def ListDirectory(dirname: Any) -> list[str]:
    """The names in a directory, sorted.

    Raises:
        NotFoundError: if it is not a directory.
    """
    return system.list_directory(dirname)


def MkDir(dirname: Any) -> None:
    """Make a directory; one that is there stays.

    Raises:
        NotFoundError: if the one above it does not exist.
        AlreadyExistsError: if a file has this name.
    """
    system.make_directory(dirname)


def MakeDirs(dirname: Any) -> None:
    """Make a directory and all above it.

    Raises:
        FailedPreconditionError: if a file is there.
    """
    system.make_directories(dirname)


def Remove(filename: Any) -> None:
    """Delete a file.

    Raises:
        NotFoundError: if there is none.
        FailedPreconditionError: if it is a directory.
    """
    shared_files.remove(filename)


def DeleteRecursively(dirname: Any) -> None:
    """Delete a directory with all in it; of a link to a directory only the link.

    Raises:
        NotFoundError: if there is nothing.
        FailedPreconditionError: if it is a file, which stays.
    """
    shared_files.remove_tree(dirname)


def Glob(filename: Any) -> list[str]:
    """The paths that match a pattern (``*``, ``?``, ``[...]``), or any of a list of patterns.

    Returns:
        The paths, sorted within each pattern; none where the directories do not exist.

    Raises:
        TypeError: if a pattern is no path.
        UnimplementedError: if nothing is known of the scheme of a pattern.
    """
    return globbing.glob(filename)


def Copy(oldpath: Any, newpath: Any, overwrite: bool = False) -> None:
    """Copy a file.

    Raises:
        NotFoundError: if ``oldpath`` does not exist.
        AlreadyExistsError: if ``newpath`` exists and ``overwrite`` is False.
    """
    system.copy(oldpath, newpath, overwrite)


def Rename(oldname: Any, newname: Any, overwrite: bool = False) -> None:
    """Move a file or directory; atomic on one local file system.

    Raises:
        NotFoundError: if ``oldname`` does not exist.
        AlreadyExistsError: if ``newname`` exists and ``overwrite`` is False.
    """
    system.rename(oldname, newname, overwrite)


def Stat(filename: Any) -> FileStatistics:
    """``length``, ``mtime_nsec`` and ``is_directory`` of a file.

    Raises:
        NotFoundError: if there is none.
    """
    return system.stat(filename)


def Walk(top: Any, in_order: bool = True) -> Iterator[tuple[str, list[str], list[str]]]:
    """Every directory under ``top``: (path, names of directories, names of files).

    A directory comes before those inside it, or after them if ``in_order`` is False. Nothing comes
    where ``top`` is not a directory.

    Raises:
        TypeError: when iterated, if ``top`` is no path.
    """
    return system.walk(top, in_order)


__all__ = [
    "Copy",
    "DeleteRecursively",
    "Exists",
    "FastGFile",
    "GFile",
    "Glob",
    "IsDirectory",
    "ListDirectory",
    "MakeDirs",
    "MkDir",
    "Open",
    "Remove",
    "Rename",
    "Stat",
    "Walk",
]
