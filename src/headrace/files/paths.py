"""Paths, and failures of file systems as errors of this library."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable, Iterator
from typing import Any

from headrace.errors import (
    AlreadyExistsError,
    DeadlineExceededError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    OpError,
    PermissionDeniedError,
    ResourceExhaustedError,
    UnavailableError,
    UnimplementedError,
    UnknownError,
)

_Error = Callable[[Any, Any, str], OpError]

_BY_NUMBER: dict[int, _Error] = {
    number: kind
    for kind, numbers in (
        (NotFoundError, (errno.ENOENT, errno.ENODEV, errno.ENXIO)),
        (AlreadyExistsError, (errno.EEXIST,)),
        (PermissionDeniedError, (errno.EACCES, errno.EPERM, errno.EROFS)),
        (
            FailedPreconditionError,
            (errno.ENOTDIR, errno.EISDIR, errno.ENOTEMPTY, errno.EBUSY, errno.ETXTBSY),
        ),
        (InvalidArgumentError, (errno.EINVAL, errno.ENAMETOOLONG, errno.ELOOP, errno.EBADF)),
        (
            ResourceExhaustedError,
            (errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.EFBIG, errno.ENOMEM),
        ),
        (DeadlineExceededError, (errno.ETIMEDOUT,)),
        (UnavailableError, (errno.ECONNREFUSED, errno.ECONNRESET, errno.EHOSTUNREACH)),
    )
    for number in numbers
}

#: Errors of remote stores often carry no number; then their class stands for one.
_BY_CLASS: tuple[tuple[type[OSError], int], ...] = (
    (FileNotFoundError, errno.ENOENT),
    (FileExistsError, errno.EEXIST),
    (PermissionError, errno.EACCES),
    (NotADirectoryError, errno.ENOTDIR),
    (IsADirectoryError, errno.EISDIR),
    (TimeoutError, errno.ETIMEDOUT),
    (ConnectionError, errno.ECONNRESET),
)


def as_path(path: Any) -> str:
    """A path given as text, bytes or ``os.PathLike``, as text; ``file://`` is taken off.

    Raises:
        TypeError: for anything else.
    """
    if not isinstance(path, str):
        if isinstance(path, os.PathLike):
            path = os.fspath(path)
        if isinstance(path, bytes):
            path = os.fsdecode(path)
        if not isinstance(path, str):
            raise TypeError(f"Expected binary or unicode string, got {path!r}")
    return path.removeprefix("file://")


def is_local(path: str) -> bool:
    """Whether a path (as `as_path` gives it) lies on this machine's file system."""
    return "://" not in path


def inside(folder: str, name: str, what: str) -> str:
    """The path of a file that another file names; it must lie in ``folder``.

    Args:
        folder: where such files are.
        name: the name in the file: one name, or names below the folder with slashes between.
        what: what the name stands for, for the error.

    Raises:
        InvalidArgumentError: if the name leads out of the folder: an absolute path, ``..``, a URL,
            another drive, or none at all.
    """
    parts = name.replace("\\", "/").split("/")
    leads_out = not is_local(name) or parts[0][1:2] == ":" or {"", ".", ".."} & set(parts)
    if leads_out or "\0" in name:
        raise InvalidArgumentError(
            None, None, f"{what} '{name}' lies outside of its folder, {folder}, or is no file name."
        )
    return f"{folder}/{name}"


def translate(path: str, error: Exception) -> OpError:
    """The error of this library that says what ``error`` says about ``path``."""
    if isinstance(error, OSError):
        number = error.errno or next((n for c, n in _BY_CLASS if isinstance(error, c)), 0)
        kind = _BY_NUMBER.get(number, UnknownError)
        why = os.strerror(number) if number else str(error) or type(error).__name__
        return kind(None, None, f"{path}; {why}")
    if isinstance(error, ImportError):
        return UnimplementedError(
            None, None, f"{path} needs a package that is not installed: {error}"
        )
    if isinstance(error, NotImplementedError):
        return UnimplementedError(None, None, f"{path}; {error or 'not possible there'}")
    return InvalidArgumentError(None, None, f"{path}; {error}")


#: What file systems raise; `translate` says it in this library's errors.
FAILURES = (OSError, ValueError, ImportError, NotImplementedError)


@contextlib.contextmanager
def translated(path: str) -> Iterator[None]:
    """Failures of the file system inside become errors of this library that name ``path``."""
    try:
        yield
    except FAILURES as error:
        raise translate(path, error) from error
