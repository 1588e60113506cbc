"""Whether what several clients saw of one object could have happened one after the other.

A history is a set of calls, each with the times of its begin and its end by one clock. It is
linearisable (Herlihy and Wing, TOPLAS 1990) if each call can be given a moment between the two so
that, in the order of these moments, each returns what the object would. A call that nobody was told
the end of may have had its moment at any time since, or none.

`linearisable` searches, for any object: the algorithm of Wing and Gong (JPDC 1993), which gives
each of the calls that may be next its turn, with the memory of what was tried that Lowe (2017)
added. `counter_complaint` is exact for counters in n log n, for histories of any length.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

__all__ = ["ClientCall", "counter_complaint", "counter_step", "linearisable", "register_step"]

State = TypeVar("State", bound=Hashable)


@dataclass(frozen=True)
class ClientCall:
    """What a client asked an object.

    Attributes:
        began, ended: times; ``ended`` is infinite if nobody was told the end.
        kind: "add" (one), "read" or "write".
        value: what was read or is written.
    """

    began: float
    ended: float
    kind: str
    value: int = 0


def counter_step(state: int, call: ClientCall) -> int | None:
    """The state of a counter after a call, or None if it would have returned something else."""
    if call.kind == "add":
        return state + 1
    return state if call.value == state else None


def register_step(state: int, call: ClientCall) -> int | None:
    """The same of a register."""
    if call.kind == "write":
        return call.value
    return state if call.value == state else None


def linearisable(
    calls: Sequence[ClientCall], step: Callable[[State, ClientCall], State | None], state: State
) -> bool:
    """Whether a history can have happened, by trying.

    Exponential in the number of calls that overlap. Reads that did not end say nothing: leave them
    out.

    Args:
        step: what a call makes of a state; None if it cannot have ended so.
        state: at the beginning.

    >>> add = ClientCall(1, 2, "add")
    >>> linearisable([add, ClientCall(3, 4, "read", 1)], counter_step, 0)
    True
    >>> linearisable([add, ClientCall(3, 4, "read", 0)], counter_step, 0)
    False
    """
    order = sorted(calls, key=lambda c: c.began)
    must = sum(1 << i for i, call in enumerate(order) if call.ended < math.inf)
    seen: set[tuple[int, Any]] = set()
    todo: list[tuple[int, State]] = [(0, state)]
    while todo:
        done, now = todo.pop()
        if done & must == must:
            return True
        if (done, now) in seen:
            continue
        seen.add((done, now))
        left = [i for i in range(len(order)) if not done >> i & 1]
        first_end = min(order[i].ended for i in left)
        for i in left:
            if order[i].began > first_end:
                break  # another call had ended before this one began
            after = step(now, order[i])
            if after is not None:
                todo.append((done | 1 << i, after))
    return False


def counter_complaint(calls: Sequence[ClientCall], start: int = 0) -> str:
    """What shows that a history of a counter cannot have happened; "" if it can.

    The read of a value v lies between the v-th addition and the next one. So the v-th has to come
    before the first end of a read of v or more, and the next one after the last begin of a read of
    v or less: each place in the order of additions has a window, and both ends of the windows only
    move forward. Additions are given to places in turn, that which has to be over first to the
    first; if any way fits, this one does, as two additions that fit in the other order can change
    places.

    Args:
        calls: additions of one, and reads that have ended.
        start: what the counter was at the beginning.

    >>> adds = [ClientCall(1, 2, "add"), ClientCall(3, math.inf, "add")]
    >>> counter_complaint([*adds, ClientCall(5, 6, "read", 2)])
    ''
    >>> counter_complaint([ClientCall(1, 2, "add"), ClientCall(3, 4, "read", 2)])
    '2 was read at 3 to 4, when at most 1 can have been counted'
    >>> counter_complaint([ClientCall(1, 2, "add"), ClientCall(3, 4, "read", 0)])
    '0 was read at 3 to 4, after an addition of 1 to 2 had ended that it does not have'
    """
    reads = sorted((c for c in calls if c.kind == "read"), key=lambda c: c.value)
    adds = sorted((c for c in calls if c.kind == "add"), key=lambda c: c.began)
    if reads and reads[0].value < start:
        return f"{_read(reads[0])}, although the counter began with {start}"
    # The first end of a read of at least this value, from the last value to the first.
    limits: list[ClientCall] = list(reads)
    for i in reversed(range(len(reads) - 1)):
        if limits[i + 1].ended < limits[i].ended:
            limits[i] = limits[i + 1]
    open_adds: list[tuple[float, float]] = []
    latest: ClientCall | None = None
    value, taken = start, 0
    for read, limit in zip(reads, limits, strict=True):
        if latest is not None and latest.value < read.value and limit.ended < latest.began:
            return f"{_read(limit)}, and later {_read(latest)}"
        while value < read.value:
            while taken < len(adds) and adds[taken].began <= limit.ended:
                heapq.heappush(open_adds, (adds[taken].ended, adds[taken].began))
                taken += 1
            if not open_adds:
                return f"{_read(limit)}, when at most {value} can have been counted"
            complaint = _missed(open_adds, latest)
            if complaint:
                return complaint
            heapq.heappop(open_adds)
            value += 1
        if latest is None or read.began > latest.began:
            latest = read
    for add in adds[taken:]:
        heapq.heappush(open_adds, (add.ended, add.began))
    return _missed(open_adds, latest)


def _missed(open_adds: list[tuple[float, float]], latest: ClientCall | None) -> str:
    """What a read should have seen: an addition that had ended before it began."""
    if open_adds and latest is not None and open_adds[0][0] < latest.began:
        ended, began = open_adds[0]
        return (
            f"{_read(latest)}, after an addition of {began:g} to {ended:g} had ended that it does "
            "not have"
        )
    return ""


def _read(call: ClientCall) -> str:
    return f"{call.value} was read at {call.began:g} to {call.ended:g}"
