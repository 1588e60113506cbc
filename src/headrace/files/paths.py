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
    UnauthenticatedError,
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
        # A store that cannot be reached is no lost task: that would be UnavailableError, for which
        # monitored sessions begin again.
        (
            DeadlineExceededError,
            (
                *(errno.ETIMEDOUT, errno.ECONNREFUSED, errno.ECONNRESET),
                *(errno.EPIPE, errno.EHOSTUNREACH, errno.ENETUNREACH),
            ),
        ),
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

#: Errors of the libraries of stores that are no OSErrors, by the name of a class: those libraries
#: are not imported here. What the class says stands before what the error says.
_BY_NAME: dict[str, tuple[_Error, str]] = {
    name: (kind, what)
    for kind, what, names in (
        (
            UnauthenticatedError,
            "there are no credentials for this store",
            "NoCredentialsError PartialCredentialsError CredentialRetrievalError "
            "TokenRetrievalError DefaultCredentialsError ClientAuthenticationError",
        ),
        (
            DeadlineExceededError,
            "the store cannot be reached",
            "EndpointConnectionError ConnectTimeoutError HTTPClientError ServiceRequestError "
            "TransportError ClientConnectionError",
        ),
        (NotFoundError, "it was replaced while it was read", "FileExpired"),
    )
    for name in names.split()
}


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
    for base in type(error).__mro__:
        if base.__name__ in _BY_NAME:
            known, what = _BY_NAME[base.__name__]
            return known(None, None, f"{path}; {what}: {error}")
    if isinstance(error, OSError):
        number = error.errno or next((n for c, n in _BY_CLASS if isinstance(error, c)), 0)
        kind = _BY_NUMBER.get(number, UnknownError)
        return kind(None, None, f"{path}; {_reason(path, error, number)}")
    if isinstance(error, ImportError):
        return UnimplementedError(
            None, None, f"{path} needs a package that is not installed: {error}"
        )
    if isinstance(error, NotImplementedError):
        return UnimplementedError(None, None, f"{path}; {error or 'not possible there'}")
    if isinstance(error, ValueError):
        return InvalidArgumentError(None, None, f"{path}; {error}")
    return UnknownError(None, None, f"{path}; {type(error).__name__}: {error}")


def _reason(path: str, error: OSError, number: int) -> str:
    """What the system says of an error, and what the store says if that is more."""
    known = os.strerror(number) if number else ""
    said = str(error) if error.errno is None else error.strerror or ""
    if not said or said == known or said.strip("/") in path:
        return known or type(error).__name__
    return f"{known}: {said}" if known else said


def is_failure(error: Exception) -> bool:
    """Whether an error is one of file systems, which `translate` says in this library's errors.

    The libraries of stores raise classes of their own for what is no OSError.
    """
    if isinstance(error, (OSError, ValueError, ImportError, NotImplementedError)):
        return True
    return not isinstance(error, OpError) and type(error).__module__ != "builtins"


@contextlib.contextmanager
def translated(path: str) -> Iterator[None]:
    """Failures of the file system inside become errors of this library that name ``path``."""
    try:
        yield
    except Exception as error:
        if not is_failure(error):
            raise
        raise translate(path, error) from error
