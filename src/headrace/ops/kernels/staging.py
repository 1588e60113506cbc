"""Staging areas as objects: tuples of values that some steps leave for others.

An area may hold so many tuples, or so many bytes, at a time; who puts more waits until others take.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from headrace.errors import CancelledError, ResourceExhaustedError
from headrace.ops.registry import HostResource

Values = tuple[Any, ...]


def size_of(values: Values) -> int:
    """Bytes that arrays take; a string counts with its length."""
    total = 0
    for value in values:
        array = np.asarray(value)
        if array.dtype.hasobject:
            total += sum(len(item) for item in array.ravel().tolist())
        else:
            total += array.nbytes
    return total


class StagingArea(HostResource):
    """Tuples in the order in which they were put; each is taken once.

    Args:
        capacity: how many tuples; ``memory_limit``: how many bytes; 0 is as many as come.
    """

    def __init__(self, capacity: int, memory_limit: int) -> None:
        self._capacity = capacity
        self._limit = memory_limit
        self._changed = threading.Condition()
        self._staged: deque[Values] = deque()
        self._bytes = 0
        self._is_gone = False

    def put(self, values: Values, step: Any) -> None:
        """Leave a tuple, waiting for room.

        Raises:
            ResourceExhaustedError: if it can never fit.
            CancelledError, DeadlineExceededError: if the step or session ends before.
        """
        added = size_of(values)
        if self._limit and added > self._limit:
            message = (
                f"Attempted to insert tensors with combined size of '{added}' bytes into Staging "
                f"Area with a memory limit of '{self._limit}'."
            )
            raise ResourceExhaustedError(None, None, message)

        def has_room() -> bool:
            fits = not self._capacity or len(self._staged) < self._capacity
            return fits and (not self._limit or self._bytes + added <= self._limit)

        with self._changed:
            self._wait(has_room, step)
            self._staged.append(values)
            self._bytes += added
            self._changed.notify_all()

    def take(self, step: Any) -> Values:
        """Take the oldest tuple, waiting for one. Raises as `put`, but for its size."""
        with self._changed:
            self._wait(lambda: bool(self._staged), step)
            values = self._staged.popleft()
            self._bytes -= size_of(values)
            self._changed.notify_all()
            return values

    def peek(self, index: int, step: Any) -> Values:
        """The tuple at ``index``, waiting for it; it stays. Raises as `take`."""
        with self._changed:
            self._wait(lambda: len(self._staged) > index, step)
            return self._staged[index]

    def size(self) -> int:
        """How many tuples there are."""
        with self._changed:
            return len(self._staged)

    def clear(self) -> None:
        """Forget all."""
        with self._changed:
            self._staged.clear()
            self._bytes = 0
            self._changed.notify_all()

    def abandon(self) -> None:
        """The session has ended: all that wait are cancelled."""
        with self._changed:
            self._is_gone = True
            self._changed.notify_all()

    def _wait(self, ready: Callable[[], bool], step: Any) -> None:
        def over() -> bool:
            return self._is_gone or ready()

        if step is None:
            self._changed.wait_for(over)
        else:
            step.wait_for(self._changed, over)
        if self._is_gone:
            raise CancelledError(None, None, "The session of the staging area has ended.")


def kept(values: Sequence[Any], owned: Callable[[Any], Any]) -> Values:
    """Values that nobody else can change."""
    return tuple([owned(np.asarray(v)) for v in values])
