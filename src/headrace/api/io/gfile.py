"""Files and directories under their later names: ``tf.io.gfile``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from headrace.errors import OpError
from headrace.files import globbing, system
from headrace.files.gfile import GFile
from headrace.files.system import FileStatistics
from headrace.train import shared_files


def exists(path: Any) -> bool:
    """Whether there is such a file or directory.

    Raises:
        UnimplementedError: if nothing is known of the scheme of the path.
    """
    return system.exists(path)


def isdir(path: Any) -> bool:
    """Whether a path is a directory; False where there is nothing.

    Raises:
        UnimplementedError: if nothing is known of the scheme of the path.
    """
    return system.is_directory(path)


def listdir(path: Any) -> list[str]:
    """The names in a directory, sorted.

    Raises:
        NotFoundError: if it is not a directory.
    """
    return system.list_directory(path)


def mkdir(path: Any) -> None:
    """Make a directory; one that is there stays.

    Raises:
        NotFoundError: if the one above it does not exist.
        AlreadyExistsError: if a file has this name.
    """
    system.make_directory(path)


def makedirs(path: Any) -> None:
    """Make a directory and all above it.

    Raises:
        FailedPreconditionError: if a file is there.
    """
    system.make_directories(path)


def remove(path: Any) -> None:
    """Delete a file.

    Raises:
        NotFoundError: if there is none.
        FailedPreconditionError: if it is a directory.
    """
    shared_files.remove(path)


def rmtree(path: Any) -> None:
    """Delete a directory with all in it; of a link to a directory only the link.

    Raises:
        NotFoundError: if there is nothing.
        FailedPreconditionError: if it is a file, which stays.
    """
    shared_files.remove_tree(path)


def glob(pattern: Any) -> list[str]:
    """The paths that match a pattern (``*``, ``?``, ``[...]``), or any of a list of patterns.

    Returns:
        The paths, sorted within each pattern; none where the directories do not exist.

    Raises:
        TypeError: if a pattern is no path.
        UnimplementedError: if nothing is known of the scheme of a pattern.
    """
    return globbing.glob(pattern)


def copy(src: Any, dst: Any, overwrite: bool = False) -> None:
    """Copy a file.

    Raises:
        NotFoundError: if ``src`` does not exist.
        AlreadyExistsError: if ``dst`` exists and ``overwrite`` is False.
    """
    system.copy(src, dst, overwrite)


def rename(src: Any, dst: Any, overwrite: bool = False) -> None:
    """Move a file or directory.

    Raises:
        NotFoundError: if ``src`` does not exist.
        AlreadyExistsError: if ``dst`` exists and ``overwrite`` is False.
    """
    system.rename(src, dst, overwrite)


def stat(path: Any) -> FileStatistics:
    """``length``, ``mtime_nsec`` and ``is_directory`` of a file.

    Raises:
        NotFoundError: if there is none.
    """
    return system.stat(path)


def join(path: str, *paths: str) -> str:
    """Path components put together; one that is absolute starts again.

    Raises:
        TypeError: if a component is no string.
    """
    return system.join(path, *paths)


def walk(
    top: Any, topdown: bool = True, onerror: Callable[[OpError], None] | None = None
) -> Iterator[tuple[str, list[str], list[str]]]:
    """Every directory under ``top``: (path, names of directories, names of files).

    Args:
        topdown: a directory comes before those inside it, else after.
        onerror: is called with the error of a directory that cannot be listed.

    Raises:
        TypeError: when iterated, if ``top`` is no path.
    """
    return system.walk(top, topdown, onerror)


__all__ = [
    "GFile",
    "copy",
    "exists",
    "glob",
    "isdir",
    "join",
    "listdir",
    "makedirs",
    "mkdir",
    "remove",
    "rename",
    "rmtree",
    "stat",
    "walk",
]
