"""Barriers as objects: elements with keys, which are ready when all their components are there."""

from __future__ import annotations

import bisect
import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from headrace.errors import CancelledError, InvalidArgumentError, OutOfRangeError
from headrace.graph.dtypes import DType
from headrace.graph.shapes import compatible_static, shape_text
from headrace.ops.core.registry import HostResource

_FIRST = -(2**63)


class BarrierSpec(NamedTuple):
    """What the op that makes a barrier says of it; ``shapes`` are empty if not specified."""

    types: tuple[DType, ...]
    shapes: tuple[tuple[int | None, ...] | None, ...]


class _Element:
    """A key with the components that it has so far."""

    __slots__ = ("components", "index", "key")

    def __init__(self, index: int, key: bytes) -> None:
        self.index = index
        self.key = key
        self.components: dict[int, Any] = {}


class BarrierResource(HostResource):
    """Puts components together under their keys; complete elements leave in the order of their
    first components."""

    def __init__(self, spec: BarrierSpec, name: str) -> None:
        self.spec = spec
        self.name = name
        self._changed = threading.Condition()
        self._open: dict[bytes, _Element] = {}
        self._ready: list[_Element] = []
        self._next = _FIRST
        self._is_closed = False
        self._is_cancelled = False
        self._is_gone = False

    # -- inserting ----------------------------------------------------------------------------

    def insert(self, keys: Sequence[bytes], component: int, values: Any) -> None:
        """Give each key its value of one component.

        Raises:
            InvalidArgumentError: if the shapes do not fit, or a key has that component already.
            CancelledError: if the barrier is closed and a key is new.
        """
        self._check(keys, component, values)
        with self._changed:
            if self._is_closed:
                self._refuse_new(keys)
            first = self._next
            for key, value in zip(keys, values, strict=True):
                element = self._open.get(key)
                if element is None:
                    element = self._open[key] = _Element(first, key)
                    self._next = first + 1
                elif component in element.components:
                    message = (
                        f"Key {key!r} already has a value for component {component} in barrier "
                        f"{self.name}"
                    )
                    raise InvalidArgumentError(None, None, message)
                element.components[component] = np.array(value)
                if len(element.components) == len(self.spec.types):
                    del self._open[key]
                    bisect.insort(self._ready, element, key=lambda e: e.index)
            self._changed.notify_all()

    def _check(self, keys: Sequence[bytes], component: int, values: Any) -> None:
        if component < 0 or component >= len(self.spec.types):
            message = (
                f"The component ID is out of range {component} > num_components "
                f"(= {len(self.spec.types)})"
            )
            raise InvalidArgumentError(None, None, message)
        shape = np.shape(values)
        if not shape or shape[0] != len(keys):
            message = (
                f"values must have one row for each of {len(keys)} keys; the shape is "
                f"{shape_text(shape)}"
            )
            raise InvalidArgumentError(None, None, message)
        declared = self.spec.shapes[component] if self.spec.shapes else None
        if 0 in shape:
            message = f"Tensors with no elements are not supported: received shape {list(shape)}"
            raise InvalidArgumentError(None, None, message)
        if not compatible_static(declared, shape[1:]):
            message = (
                f"Shape mismatch in component {component}. Expected {shape_text(declared)}, got "
                f"{shape_text(shape[1:])}"
            )
            raise InvalidArgumentError(None, None, message)

    def _refuse_new(self, keys: Sequence[bytes]) -> None:
        new = sum(key not in self._open for key in keys)
        if self._is_cancelled or new:
            message = (
                f"Barrier {self.name} is closed. Pending enqueues cancelled: {self._is_cancelled}. "
                f"Number of new insertions: {new}. Number of incomplete keys: {len(self._open)}."
            )
            raise CancelledError(None, None, message)

    # -- taking -------------------------------------------------------------------------------

    def take(self, count: int, fewer: bool, step: Any) -> list[Any]:
        """Indices, keys and components of ``count`` elements, waiting for them.

        Args:
            fewer: be content with those there are, once the barrier is closed.

        Raises:
            OutOfRangeError: if the barrier is closed and will not have so many.
            CancelledError, DeadlineExceededError: if the step or session ends before.
        """
        if count < 0:
            raise InvalidArgumentError(None, None, f"num_elements must not be negative: {count}")

        def over() -> bool:
            return self._is_gone or len(self._ready) >= count or self._missing(count, fewer) >= 0

        with self._changed:
            if step is None:
                self._changed.wait_for(over)
            else:
                step.wait_for(self._changed, over)
            if self._is_gone:
                raise CancelledError(None, None, "The session of the barrier has ended.")
            if len(self._ready) < count:
                total = self._missing(count, fewer)
                if not fewer or not total:
                    message = (
                        f"Barrier '{self.name}' is closed and has insufficient elements (requested "
                        f"{count}, total size {total})"
                    )
                    raise OutOfRangeError(None, None, message)
                count = total
            taken, self._ready = self._ready[:count], self._ready[count:]
            self._changed.notify_all()
        return self._columns(taken)

    def _missing(self, count: int, fewer: bool) -> int:
        """How many elements there are at most, if those are not enough and never will be; or -1.

        What was begun before the barrier was closed may still be completed.
        """
        if not self._is_closed:
            return -1
        coming = 0 if self._is_cancelled else len(self._open)
        total = len(self._ready) + coming
        if fewer:
            return len(self._ready) if not coming or len(self._ready) else -1
        return total if total < count else -1

    def _columns(self, taken: list[_Element]) -> list[Any]:
        indices = np.array([e.index for e in taken], np.int64)
        keys = np.empty(len(taken), object)
        keys[:] = [e.key for e in taken]
        columns = []
        for i, dtype in enumerate(self.spec.types):
            values = [e.components[i] for e in taken]
            if not values:
                dims = (self.spec.shapes[i] if self.spec.shapes else None) or ()
                columns.append(np.empty((0, *[d or 0 for d in dims]), dtype.np_dtype))
                continue
            if any(v.shape != values[0].shape for v in values):
                message = f"The elements taken differ in the shape of component {i}."
                raise InvalidArgumentError(None, None, message)
            columns.append(np.stack(values))
        return [indices, keys, *columns]

    # -- the rest -----------------------------------------------------------------------------

    def close(self, cancel: bool) -> None:
        """Let no new keys in; with ``cancel`` no more components either.

        Raises:
            CancelledError: if it is closed already.
        """
        with self._changed:
            if self._is_closed and not (cancel and not self._is_cancelled):
                message = f"Barrier '{self.name}' is already closed."
                raise CancelledError(None, None, message)
            self._is_closed = True
            self._is_cancelled = self._is_cancelled or cancel
            self._changed.notify_all()

    def sizes(self) -> tuple[int, int]:
        """How many elements are ready, and how many are not."""
        with self._changed:
            return len(self._ready), len(self._open)

    def abandon(self) -> None:
        """The session has ended: all that wait are cancelled."""
        with self._changed:
            self._is_gone = True
            self._changed.notify_all()
