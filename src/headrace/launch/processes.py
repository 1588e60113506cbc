"""What the system is asked for about processes: who dies with whom, and who is left."""

from __future__ import annotations

import contextlib
import ctypes
import io
import os
import signal
import sys
from pathlib import Path

__all__ = [
    "adopt_orphans",
    "children",
    "die_with_parent",
    "exit_status",
    "have_streams",
    "kill_group",
    "words_of",
]

_SET_PARENT_DEATH_SIGNAL = 1
_SET_CHILD_SUBREAPER = 36


def _prctl(option: int, value: int) -> None:
    """``prctl(2)`` where there is one; elsewhere closed pipes alone tell of a parent's death."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def die_with_parent(parent: int, number: int) -> None:
    """Get a signal when the parent, whose process was given, dies; at once if it has."""
    _prctl(_SET_PARENT_DEATH_SIGNAL, number)
    if os.getppid() != parent:
        os.kill(os.getpid(), number)


def have_streams() -> None:
    """Where standard streams are closed, as with ``>&-``, let them be those of ``/dev/null``.

    Otherwise sockets and pipes get their numbers, and what is printed. Where output is in another
    encoding, characters that it does not have are written as ``\\xe9``.
    """
    while (opened := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(opened, True)
    os.close(opened)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            mode = "w" if number else "r"
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", closefd=False))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def adopt_orphans() -> None:
    """Become the parent of all descendants that lose theirs."""
    _prctl(_SET_CHILD_SUBREAPER, 1)


def children() -> list[int]:
    """The processes whose parent this one is, as Linux tells them; [] elsewhere."""
    found: list[int] = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            # The name, in parentheses, may have anything in it.
            after = entry.read_text(encoding="utf-8", errors="replace").rpartition(")")[2]
            if int(after.split()[1]) == os.getpid():
                found.append(int(entry.parent.name))
    return found


def kill_group(process: int, number: int) -> None:
    """Send a signal to a child that was not waited for, and all in its group, if there are any.

    One that was only just forked gets it, too: it has no group of its own yet.
    """
    with contextlib.suppress(ProcessLookupError, PermissionError):
        try:
            os.killpg(process, number)
        except ProcessLookupError:
            os.kill(process, number)


def exit_status(status: int) -> int:
    """What a shell tells of a process: 128 and the number of the signal that has ended it.

    >>> [exit_status(status) for status in (0, 3, -9)]
    [0, 3, 137]
    """
    return status if status >= 0 else 128 - status


def words_of(status: int) -> str:
    """How a process has ended.

    >>> words_of(1), words_of(-9)
    ('exit status 1', 'signal SIGKILL')
    """
    if status >= 0:
        return f"exit status {status}"
    try:
        return f"signal {signal.Signals(-status).name}"
    except ValueError:
        return f"signal {-status}"
