"""Checks of the folder where checkpoints go."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

from headrace.distributed.services.operation_calls import new_nonce
from headrace.errors import OpError
from headrace.files import system
from headrace.files.paths import is_local
from headrace.operations.doctor.findings import Finding, fail, ok, warn

__all__ = ["check_storage", "forget"]

_GIB = 2**30
_LEAST_ROOM = _GIB


def check_storage(folder: str, subject: str = "storage") -> Iterator[Finding]:
    """Whether files can be written, renamed and read in a folder, which is made if need be."""
    name = new_nonce()
    first, second = system.join(folder, name), system.join(folder, f"{name}.renamed")
    try:
        if not system.exists(folder):
            system.make_directories(folder)
            text, mend = f"{folder} was not there and has been made", "Look at its spelling."
            yield warn(subject, text, mend)
        system.write_bytes(first, b"one")
        system.write_bytes(second, b"two")
        # As checkpoints do: what is new takes the place of what was there.
        system.rename(first, second, overwrite=True)
        left = system.read_bytes(second)
        if left != b"one" or system.exists(first):
            text = f"{folder}: a file that was renamed is not what it should be"
            yield fail(subject, text, "Checkpoints need a file system with whole renames.")
            return
        yield ok(subject, f"{folder}: files can be written, renamed and read")
        if is_local(folder) and (free := shutil.disk_usage(folder).free) < _LEAST_ROOM:
            text, mend = f"{folder}: {free / _GIB:.2f} GiB free", "Make room: remove what is old."
            yield warn(subject, text, mend)
    except (OpError, OSError, ValueError, ImportError) as error:
        text = f"{folder}: {getattr(error, 'message', None) or error}"
        mend = "Give the user of the tasks the right to write there, or name another folder."
        yield fail(subject, text, mend)
    finally:
        for path in (first, second):
            forget(path)


def forget(path: str) -> None:
    """Remove a file, if it is there and can be removed."""
    try:
        if system.exists(path):
            system.remove(path)
    except (OpError, OSError, ValueError, ImportError):
        pass
