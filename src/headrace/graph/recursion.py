"""Room on Python's stack for functions inside functions.

Branches and loops are built, planned, traced and run by code that calls itself for each level of
nesting. Python stops that at 1,000 frames, which some twenty to a hundred levels take. While such
code is at work the limit is higher, by what the levels at hand need; afterwards it is what the
program set.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["FREE_LEVELS", "MOST_LEVELS", "levels_of", "room_for"]

#: Levels that fit into Python's own limit.
FREE_LEVELS = 8
#: Frames that a level takes: JAX's tracing of branches takes most, about 40.
_FRAMES = 80
#: Deeper nests get no more room: C functions between the frames use the thread's real stack.
MOST_LEVELS = 300


class _Limit:
    """Python's limit, raised while anybody needs it to be."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._before = 0

    def raise_by(self, frames: int) -> None:
        with self._lock:
            if self._users == 0:
                self._before = sys.getrecursionlimit()
            self._users += 1
            sys.setrecursionlimit(max(sys.getrecursionlimit(), self._before + frames))

    def restore(self) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0:
                sys.setrecursionlimit(self._before)


_limit = _Limit()


@contextmanager
def room_for(levels: int) -> Iterator[None]:
    """Within the block Python's stack has room for ``levels`` of functions inside each other."""
    if levels <= FREE_LEVELS:
        yield
        return
    _limit.raise_by(min(levels, MOST_LEVELS) * _FRAMES)
    try:
        yield
    finally:
        _limit.restore()


def levels_of(graph: Any) -> int:
    """How deep the functions of a graph lie in each other; 0 where Python's own limit will do."""
    levels: int = max([body.level for body in graph.outermost._functions.values()], default=0)
    return levels if levels > FREE_LEVELS else 0
