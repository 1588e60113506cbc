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
from headrace.ops.core.checks import invalid
from headrace.ops.core.registry import HostResource

Values = tuple[Any, ...]
#: Values by their place in a tuple.
Components = dict[int, Any]


def bytes_of_values(values: Values) -> int:
    """Bytes that arrays take; a string counts with its length."""
    total = 0
    for value in values:
        array = np.asarray(value)
        if array.dtype.hasobject:
            total += sum(len(item) for item in array.ravel().tolist())
        else:
            total += array.nbytes
    return total


class _Area(HostResource):
    """What areas share: their bounds, and waiting.

    Args:
        capacity: how many tuples; ``memory_limit``: how many bytes; 0 is as many as come.
    """

    def __init__(self, capacity: int, memory_limit: int) -> None:
        self._capacity = capacity
        self._limit = memory_limit
        self._changed = threading.Condition()
        self._bytes = 0
        self._is_gone = False

    def _checked_size(self, values: Values) -> int:
        """The bytes of values; raises ResourceExhaustedError if they can never fit."""
        added = bytes_of_values(values)
        if self._limit and added > self._limit:
            message = (
                f"Attempted to insert tensors with combined size of '{added}' bytes into Staging "
                f"Area with a memory limit of '{self._limit}'."
            )
            raise ResourceExhaustedError(None, None, message)
        return added

    def _fits(self, count: int, added: int) -> bool:
        """Whether there is room for one more than ``count`` tuples, of so many bytes."""
        room = not self._capacity or count < self._capacity
        return room and (not self._limit or self._bytes + added <= self._limit)

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


class StagingAreaResource(_Area):
    """Tuples in the order in which they were put; each is taken once."""

    def __init__(self, capacity: int, memory_limit: int) -> None:
        super().__init__(capacity, memory_limit)
        self._staged: deque[Values] = deque()

    def put(self, values: Values, step: Any) -> None:
        """Leave a tuple, waiting for room.

        Raises:
            ResourceExhaustedError: if it can never fit.
            CancelledError, DeadlineExceededError: if the step or session ends before.
        """
        added = self._checked_size(values)
        with self._changed:
            self._wait(lambda: self._fits(len(self._staged), added), step)
            self._staged.append(values)
            self._bytes += added
            self._changed.notify_all()

    def take(self, step: Any) -> Values:
        """Take the oldest tuple, waiting for one. Raises as `put`, but for its size."""
        with self._changed:
            self._wait(lambda: bool(self._staged), step)
            values = self._staged.popleft()
            self._bytes -= bytes_of_values(values)
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


class MapStagingAreaResource(_Area):
    """Tuples by key; each component may be put and taken by itself.

    Args:
        capacity, memory_limit: as for `StagingAreaResource`. Tuples that are not complete count
            with their bytes, but not with their number.
        ordered: whether `take_any` takes the tuple of the lowest key, or the oldest.
    """

    def __init__(self, capacity: int, memory_limit: int, ordered: bool) -> None:
        super().__init__(capacity, memory_limit)
        self._ordered = ordered
        self._whole: dict[int, Components] = {}
        self._partial: dict[int, Components] = {}

    def put(self, key: int, components: Components, count: int, step: Any) -> None:
        """Leave components of a tuple that has ``count`` of them, waiting for room.

        Raises:
            InvalidArgumentError: if the key is taken, or has one of the components.
            ResourceExhaustedError: if they can never fit.
            CancelledError, DeadlineExceededError: if the step or session ends before.
        """
        added = self._checked_size(tuple(components.values()))

        def has_room() -> bool:
            completes = len(self._partial.get(key, ())) + len(components) == count
            whole = len(self._whole) if completes else -1
            return self._is_free(key, components) and self._fits(whole, added)

        with self._changed:
            self._wait(has_room, step)
            own = self._partial.setdefault(key, {})
            own.update(components)
            self._bytes += added
            if len(own) == count:
                self._whole[key] = self._partial.pop(key)
            self._changed.notify_all()

    def _is_free(self, key: int, components: Components) -> bool:
        if key in self._whole:
            raise invalid(f"The tensor of key '{key}' was already inserted.")
        twice = sorted(components.keys() & self._partial.get(key, {}).keys())
        if twice:
            raise invalid(f"The tensors {twice} of key '{key}' were already inserted.")
        return True

    def take(self, key: int, indices: Sequence[int], step: Any) -> Values:
        """Take components of a tuple, waiting for it; when all are taken, it is gone.

        Raises:
            InvalidArgumentError: if one of the components is taken already.
            CancelledError, DeadlineExceededError: if the step or session ends before.
        """
        with self._changed:
            self._wait(lambda: key in self._whole, step)
            values = self._found(key, indices)
            self._remove(key, indices, values)
            return values

    def take_any(self, indices: Sequence[int], step: Any) -> tuple[int, Values]:
        """A key and what `take` gives of it: of any tuple that is there."""
        with self._changed:
            self._wait(lambda: bool(self._whole), step)
            key = min(self._whole) if self._ordered else next(iter(self._whole))
            values = self._found(key, indices)
            self._remove(key, indices, values)
            return key, values

    def peek(self, key: int, indices: Sequence[int], step: Any) -> Values:
        """What `take` gives; it stays."""
        with self._changed:
            self._wait(lambda: key in self._whole, step)
            return self._found(key, indices)

    def _found(self, key: int, indices: Sequence[int]) -> Values:
        own = self._whole[key]
        missing = [index for index in indices if index not in own]
        if missing:
            raise invalid(f"The tensors {missing} of key '{key}' have already been removed.")
        return tuple([own[index] for index in indices])

    def _remove(self, key: int, indices: Sequence[int], values: Values) -> None:
        own = self._whole[key]
        for index in indices:
            own.pop(index, None)
        if not own:
            del self._whole[key]
        self._bytes -= bytes_of_values(values)
        self._changed.notify_all()

    def size(self) -> int:
        """How many whole tuples there are, or what is left of them."""
        with self._changed:
            return len(self._whole)

    def incomplete_size(self) -> int:
        """How many tuples lack components that are still to be put."""
        with self._changed:
            return len(self._partial)

    def clear(self) -> None:
        """Forget all."""
        with self._changed:
            self._whole.clear()
            self._partial.clear()
            self._bytes = 0
            self._changed.notify_all()


def kept(values: Sequence[Any], owned: Callable[[Any], Any]) -> Values:
    """Values that nobody else can change."""
    return tuple([owned(np.asarray(v)) for v in values])
