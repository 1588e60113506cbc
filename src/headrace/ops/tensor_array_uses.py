"""Which elements of TensorArrays operations write and read: each may do so once in a step.

An array is the tensor of its contents, so nothing would go wrong if an element were written again;
but a program that does so has made a mistake, and TensorFlow refuses it. What can be known before a
step runs is checked then: equal constants, and equal tensors, as positions.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from headrace.errors import InvalidArgumentError
from headrace.graph.tensor import Operation, Tensor
from headrace.ops.static import static_value

__all__: list[str] = []


class Array:
    """What all objects of one TensorArray share.

    Attributes:
        name: of the array, for messages.
        clears: whether an element is gone once it is read.
        aggregates: whether what is written to one element is added up.
        gradients: the arrays of its gradients, by their sources.
    """

    def __init__(self, name: str, clears: bool, aggregates: bool = False) -> None:
        self.name = name
        self.clears = clears
        self.aggregates = aggregates
        self.gradients: dict[Any, Any] = {}


@dataclass(frozen=True)
class _Use:
    """What an operation does with an array.

    Attributes:
        keys: the positions: integers, and tensors that are not known yet; None for all.
    """

    array: Array
    writes: bool
    keys: frozenset[Any] | None


_USES: WeakKeyDictionary[Operation, _Use] = WeakKeyDictionary()


def note(op: Operation, array: Array, writes: bool, positions: Any) -> None:
    """Take note that ``op`` uses elements of ``array``: a tensor of positions, or None for all."""
    if array.aggregates if writes else not array.clears:
        return
    keys: frozenset[Any] | None = None
    if positions is not None:
        known = positions if isinstance(positions, range) else static_value(positions)
        keys = frozenset(np.ravel(known).tolist()) if known is not None else frozenset([positions])
    _USES[op] = _Use(array, writes, keys)


def check(ops: Iterable[Operation]) -> None:
    """Check the operations of one step, or of one run of a function.

    Raises:
        InvalidArgumentError: if two of them write, or two read and clear, the same element.
    """
    if not _USES:
        return
    seen: dict[tuple[Array, bool], list[_Use]] = {}
    for op in sorted([op for op in ops if op in _USES], key=lambda op: op._id):
        use = _USES[op]
        earlier = seen.setdefault((use.array, use.writes), [])
        for other in earlier:
            shared = _shared(use.keys, other.keys)
            if shared is not None:
                raise InvalidArgumentError(None, op, _message(use, shared))
        earlier.append(use)


def _shared(first: frozenset[Any] | None, second: frozenset[Any] | None) -> Any:
    """An element that both use, for messages; None if there is none that is known."""
    if first is None or second is None:
        either = first if second is None else second
        if either is not None and not either:
            return None
        numbers = [k for k in either or () if not isinstance(k, Tensor)]
        return min(numbers, default=0)
    both = first & second
    numbers = [k for k in both if not isinstance(k, Tensor)]
    return min(numbers) if numbers else next(iter(both), None)


def _message(use: _Use, at: Any) -> str:
    place = at.name if isinstance(at, Tensor) else at
    if use.writes:
        return (
            f"TensorArray {use.array.name}: Could not write to TensorArray index {place} because "
            "it has already been written to."
        )
    return (
        f"TensorArray {use.array.name}: Could not read index {place} twice because it was cleared "
        "after a previous read (perhaps try setting clear_after_read = false?)."
    )
