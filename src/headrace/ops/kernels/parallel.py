"""Large NumPy work in pieces, on all cores that this process may use.

NumPy gives up the interpreter's lock inside its loops, so pieces that are long enough run side by
side. Each piece must write to a part of the output of its own.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

#: Fewer pieces than this are not worth the threads.
_MIN_PIECES = 4


def available_cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def in_pieces(count: int, size: int, work: Callable[[int, int], None]) -> None:
    """Calls ``work(begin, end)`` for pieces of at most `size` that make up 0 .. count.

    The first exception that a piece raises is raised here.
    """
    begins = range(0, count, size)

    def run(begin: int) -> None:
        work(begin, min(begin + size, count))

    cores = available_cores() if len(begins) >= _MIN_PIECES else 1
    if cores == 1:
        for begin in begins:
            run(begin)
        return
    with ThreadPoolExecutor(cores, thread_name_prefix="headrace-pieces") as pool:
        for _ in pool.map(run, begins):
            pass
