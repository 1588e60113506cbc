"""Locks of files, which the system takes from a process that ends, however it ends.

So a file that is being written under another name, and is locked meanwhile, is known from one that
a killed process left.
"""

from __future__ import annotations

from typing import Any

try:
    import fcntl
except ImportError:  # no such locks on this system
    fcntl = None  # type: ignore[assignment]


def lock(file: Any, exclusive: bool) -> None:
    """Lock an open local file without waiting; closing it unlocks it.

    Raises:
        BlockingIOError: if somebody else has the lock.
        OSError: where there are no locks: on some systems, and some network file systems.
    """
    if fcntl is None:
        raise OSError("no locks on this system")
    fcntl.flock(file.fileno(), (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)


def is_locked(path: str) -> bool | None:
    """Whether somebody has locked a local file for himself; None where there are no locks."""
    try:
        with open(path, "rb") as file:
            lock(file, exclusive=False)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        return False
    except OSError:
        return None
    return False
