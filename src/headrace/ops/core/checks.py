"""Checks inside kernels: conditions on data that make a step fail with a clear error.

A kernel calls ``require``. On NumPy values (interpreted plans, constants) the error is raised at
once. While a region is traced, the condition becomes a few integers that the compiled program
hands back; the executor raises the error, and no variable of the region changes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from headrace.errors import InvalidArgumentError

#: How many integers a check can put in its message.
DATA_SLOTS = 5

#: The message of a check that shows whole tensors: the executor runs the op's NumPy form for it.
SHOWS_TENSORS = "assertion failed"


class AtIndex(str):
    """A message whose ``{0}`` is a position in an array of ``shape``, shown as its index.

    >>> AtIndex("indices{0} = {1}", (2, 3)).format(4, 7)
    'indices[1,1] = 7'
    """

    shape: tuple[int, ...]

    def __new__(cls, message: str, shape: Sequence[int]) -> AtIndex:
        text = super().__new__(cls, message)
        text.shape = tuple(shape)
        return text

    def format(self, *args: object, **kwargs: object) -> str:
        """The message, with the position (the first argument, counted in row-major order)."""
        position, *rest = args
        index = np.unravel_index(int(str(position)), self.shape) if self.shape else ()
        place = f"[{','.join(map(str, index))}]" if index else ""
        return super().format(place, *rest)


class NeedsValue(Exception):
    """Raised by a kernel that cannot be traced without the values of its inputs.

    The node then runs outside the compiled program.
    """


class _Active(threading.local):
    def __init__(self) -> None:
        self.sink: Callable[[Any, str, tuple[Any, ...]], None] | None = None


_active = _Active()


class collecting:
    """Within the block, checks on traced values go to ``sink(ok, message, data)``."""

    def __init__(self, sink: Callable[[Any, str, tuple[Any, ...]], None] | None) -> None:
        self._sink = sink

    def __enter__(self) -> None:
        self._outer, _active.sink = _active.sink, self._sink

    def __exit__(self, *_: object) -> None:
        _active.sink = self._outer


def require(ok: Any, message: str, *data: Any) -> None:
    """State that ``ok`` (a boolean scalar) must hold.

    Args:
        message: what is wrong, with ``{0}``, ``{1}`` ... for the integers of ``data`` (at most
            `DATA_SLOTS` integer scalars).

    Raises:
        InvalidArgumentError: at once when ``ok`` is known and false.
    """
    if isinstance(ok, (bool, np.bool_, np.ndarray)):
        if not ok:
            raise InvalidArgumentError(None, None, message.format(*[int(d) for d in data]))
        return
    if _active.sink is not None:
        _active.sink(ok, message, data)


def invalid(message: str) -> InvalidArgumentError:
    """The error for bad data; the executor adds the op."""
    return InvalidArgumentError(None, None, message)


def require_in_range(xp: Any, indices: Any, bound: Any, what: str = "indices") -> None:
    """State that all ``indices`` lie in ``[0, bound)``; ``xp`` is numpy or jax.numpy."""
    if indices.size == 0:
        return
    if isinstance(indices, np.ndarray) and isinstance(bound, int):
        xp = np  # known while tracing
        if indices.min() >= 0 and indices.max() < bound:
            return
    bad = (indices < 0) | (indices >= bound)
    flat = bad.ravel()
    position = xp.argmax(flat)
    require(
        ~xp.any(flat),
        AtIndex(f"{what}{{0}} = {{1}} is not in [0, {{2}})", indices.shape),
        position,
        indices.ravel()[position],
        xp.asarray(bound),
    )


def require_rows_in_range(xp: Any, indices: Any, shape: Sequence[int], target: str) -> None:
    """State that each row of ``indices`` [..., depth] is an index into ``shape``.

    Args:
        xp: numpy or jax.numpy.
        target: what is indexed, for the message.
    """
    depth = indices.shape[-1]
    if indices.size == 0:
        return
    if isinstance(indices, np.ndarray):
        xp = np  # known while tracing
    bounds = np.array(shape[:depth], indices.dtype)
    flat = xp.any((indices < 0) | (indices >= bounds), axis=-1).ravel()
    position = xp.argmax(flat)
    shown = min(depth, DATA_SLOTS - 1)
    row = ",".join([f"{{{i + 1}}}" for i in range(shown)] + ["..."] * (shown < depth))
    sizes = ",".join(map(str, shape))
    values = indices.reshape(-1, depth)[position]
    require(
        ~xp.any(flat),
        AtIndex(
            f"indices{{0}} = [{row}] does not index into {target} [{sizes}]", indices.shape[:-1]
        ),
        position,
        *[values[i] for i in range(shown)],
    )
