"""How many calls to run at a time, found while a pipeline runs."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from headrace.ops.data.pipeline import Iteration

#: Stands for a number that is found while the dataset runs.
AUTOTUNE = -1
#: Seconds; what is measured with it decides how many threads work, never what they give.
clock = time.perf_counter

#: After so many elements it is decided anew; after so many decisions a step up is tried again.
_ELEMENTS, _PATIENCE = 32, 16
#: A consumer that waits for less of its time has what it needs.
_WAITING = 0.1
#: More calls at a time stay if elements come so much faster.
_GAIN = 1.05


class Tuner:
    """Climbs: twice as many calls while the consumer waits, back if that brings nothing.

    Args:
        most: calls at a time; by default as many as there are cores.

    Attributes:
        count: how many calls to run at a time.
    """

    def __init__(self, most: int | None = None) -> None:
        self._most = most or os.cpu_count() or 1
        self.count = min(2, self._most)
        self._before: tuple[int, float] | None = None
        self._rest = 0
        self._begin()

    def _begin(self) -> None:
        self._elements, self._waited, self._since = 0, 0.0, clock()

    def came(self, waited: float) -> None:
        """An element was taken, after ``waited`` seconds of waiting for it."""
        self._elements += 1
        self._waited += waited
        if self._elements == _ELEMENTS:
            self._decide(max(clock() - self._since, 1e-9))
            self._begin()

    def _decide(self, seconds: float) -> None:
        rate = self._elements / seconds
        if self._before is not None:
            count, old_rate = self._before
            self._before = None
            if rate < _GAIN * old_rate:
                self.count, self._rest = count, _PATIENCE
                return
        if self._rest:
            self._rest -= 1
        elif self._waited > _WAITING * seconds and self.count < self._most:
            self._before = self.count, rate
            self.count = min(2 * self.count, self._most)


class Calls:
    """The number of calls at a time: one that was told, or that of a tuner."""

    def __init__(self, told: int) -> None:
        self._told = told
        self._tuner = Tuner() if told == AUTOTUNE else None

    @property
    def count(self) -> int:
        return self._told if self._tuner is None else self._tuner.count

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Around what waits for an element, and may not need to."""
        if self._tuner is None:
            yield
            return
        begin = clock()
        yield
        self._tuner.came(clock() - begin)


class Permits:
    """Lets so many threads work at a time as there may be calls."""

    def __init__(self, run: Iteration, calls: Calls) -> None:
        self._run, self._calls = run, calls
        self._changed = run.condition()
        self._used = 0

    @contextmanager
    def held(self, is_over: Callable[[], bool]) -> Iterator[None]:
        """Wait for a permit, or until nobody wants what it is for."""

        def may_go() -> bool:
            return self._used < self._calls.count or self._run.is_closed or is_over()

        with self._changed:
            self._changed.wait_for(may_go)
            self._used += 1
        try:
            yield
        finally:
            with self._changed:
                self._used -= 1
                self._changed.notify_all()

    def look_again(self) -> None:
        """Something that the waiting wait for may have happened."""
        with self._changed:
            self._changed.notify_all()


__all__ = ["AUTOTUNE", "Calls", "Permits", "Tuner"]
