"""Large NumPy work in pieces, on all cores that this process may use.

NumPy gives up the interpreter's lock inside its loops, so pieces that are long enough run side by
side. Each piece must write to a part of the output of its own. What a piece needs besides belongs
to its thread and is used again: fresh memory for each piece makes the system hand out pages, one
thread at a time, for longer than the arithmetic takes.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Lock

#: Fewer pieces than this are not worth the threads.
_MIN_PIECES = 4

#: ``work(begin, end)`` for one piece.
Work = Callable[[int, int], None]


def available_cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def in_pieces(count: int, size: int, worker: Callable[[int], Work]) -> None:
    """Does the work of pieces that make up 0 .. count.

    The first exception that a piece raises is raised here; pieces not yet begun are left out then.

    Args:
        size: of the largest piece.
        worker: called with the size of the largest piece, once by each thread: makes what the
            thread needs, and answers what works on a piece.
    """
    begins = iter(range(0, count, size))
    lock, largest = Lock(), min(size, count)

    def work_off() -> None:
        work: Work | None = None
        while True:
            with lock:
                begin = next(begins, None)
            if begin is None:
                return
            try:
                work = work or worker(largest)
                work(begin, min(begin + size, count))
            except BaseException:
                with lock:
                    for _ in begins:
                        pass
                raise

    pieces = -(-count // size)
    others = min(available_cores(), pieces) - 1 if pieces >= _MIN_PIECES else 0
    if others <= 0:
        work_off()
        return
    with ThreadPoolExecutor(others, thread_name_prefix="headrace-pieces") as pool:
        running = [pool.submit(work_off) for _ in range(others)]
        work_off()
        for one in running:
            one.result()
