"""Files that are there whole or not at all, and what killed writers of such files left.

A file is written under another name, which its writer has locked until it is renamed. So one under
such a name that nobody has locked is what a killed writer left, and the next writer in the
directory removes it. Object stores have no locks: there it goes an hour after it was written.
"""

from __future__ import annotations

import contextlib
import os
import re
import uuid
from collections.abc import Iterator
from typing import Any

from headrace.errors import OpError
from headrace.files import locks, system
from headrace.files.paths import as_path, is_local, translated

_TEMPORARY = re.compile(r"\.tmp-[0-9a-f]{12}")
#: Where there are no locks, a file that is so many nanoseconds older than another is a leftover.
FORGOTTEN_NS = 3600 * 10**9


@contextlib.contextmanager
def writing(path: str) -> Iterator[Any]:
    """A file to be written, which takes its name at the end if nothing fails.

    Raises:
        OpError: of the class that tells what the file system said, in the block, too.
    """
    path = as_path(path)
    temporary, file = _opened(path)
    try:
        with translated(path), file:
            yield file
            file.flush()
            if is_local(path):  # while it is locked
                os.fsync(file.fileno())
                system.rename(temporary, path, overwrite=True)
        if not is_local(path):
            system.rename(temporary, path, overwrite=True)
    except BaseException:
        if system.exists(temporary):
            system.remove(temporary)
        raise


def _opened(path: str) -> tuple[str, Any]:
    """A new file beside a path, which others can tell from a leftover."""
    while True:
        temporary = f"{path}.tmp-{uuid.uuid4().hex[:12]}"
        file = system.open_binary(temporary, "wb")
        if not is_local(path):
            return temporary, file
        with contextlib.suppress(OSError):  # where there are no locks its age must do
            locks.lock(file, exclusive=True)
        # Before it was locked somebody may have taken it for a leftover.
        if system.exists(temporary):
            return temporary, file
        file.close()


def sweep(path: str, names: re.Pattern[str]) -> None:
    """Removes what killed writers left.

    Args:
        path: a file that has just been written, in whose directory they are.
        names: ends of the names that they were to get.
    """
    path = as_path(path)
    directory = path[: path.rfind("/") + 1]
    # It is no failure of a save if others sweep, too, or this process may not.
    with contextlib.suppress(OpError):
        for name in system.list_directory(directory or "."):
            cut = len(name) - len(".tmp-") - 12
            if cut <= 0 or not _TEMPORARY.fullmatch(name, cut) or not names.search(name[:cut]):
                continue
            with contextlib.suppress(OpError):
                if _is_left(directory + name, path):
                    system.remove(directory + name)


def _is_left(temporary: str, written: str) -> bool:
    """Whether nobody writes this file any more."""
    locked = locks.is_locked(temporary) if is_local(temporary) else None
    if locked is not None:
        return not locked
    begun, now = (system.stat(p).mtime_nsec for p in (temporary, written))
    return 0 < begun < now - FORGOTTEN_NS
