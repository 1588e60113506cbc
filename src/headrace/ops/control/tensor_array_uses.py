"""Which elements of TensorArrays operations write and read: each may do so once in a step.

An array is the tensor of its contents, so nothing would go wrong if an element were written again;
but a program that does so has made a mistake, and TensorFlow refuses it. What can be known before a
step runs is checked then: equal constants, and equal tensors, as positions. What can not is checked
as it runs: see `tensor_array_checks`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary, WeakSet, ref

import numpy as np

from headrace.errors import InvalidArgumentError
from headrace.graph.graph import Graph, get_default_graph
from headrace.graph.tensor import Operation, Tensor
from headrace.ops.core.static import static_value

__all__: list[str] = []


class Array:
    """What all objects of one TensorArray share.

    Attributes:
        name: of the array, for messages.
        clears: whether an element is gone once it is read.
        aggregates: whether what is written to one element is added up.
        gradients: the arrays of its gradients, by their sources.
        home: the graph in which the array begins: what is used once is used so in one run of it.
    """

    def __init__(self, name: str, clears: bool, aggregates: bool = False) -> None:
        self.name = name
        self.clears = clears
        self.aggregates = aggregates
        self.gradients: dict[Any, Any] = {}
        graph = get_default_graph()
        self.home = ref(graph)
        _HOMES.add(graph)


@dataclass(frozen=True)
class Use:
    """What an operation does with an array.

    Attributes:
        keys: the positions: integers, and tensors that are not known yet; None for all.
        twice: a position that the operation itself uses twice, if one is known.
        input: which input of the operation has the positions; None if it uses all.
    """

    array: Array
    writes: bool
    keys: frozenset[Any] | None
    twice: int | None = None
    input: int | None = None


_HOMES: WeakSet[Graph] = WeakSet()
_USES: WeakKeyDictionary[Operation, Use] = WeakKeyDictionary()


def note(op: Operation, array: Array, writes: bool, positions: Any, at: int | None = None) -> None:
    """Take note that ``op`` uses elements of ``array``.

    Args:
        positions: a tensor or range of positions; None for all.
        at: which input of ``op`` the tensor is.
    """
    if array.aggregates if writes else not array.clears:
        return
    keys: frozenset[Any] | None = None
    twice = None
    if positions is not None:
        known = positions if isinstance(positions, range) else static_value(positions)
        keys = frozenset([positions])
        if known is not None:
            values, counts = np.unique(np.ravel(known), return_counts=True)
            keys = frozenset(values.tolist())
            twice = int(values[counts > 1][0]) if (counts > 1).any() else None
    _USES[op] = Use(array, writes, keys, twice, at)


def use_of(op: Operation) -> Use | None:
    """What was noted of an operation."""
    return _USES.get(op)


def is_home(graph: Graph) -> bool:
    """Whether an array begins in a graph."""
    return graph in _HOMES


def check(ops: Iterable[Operation]) -> None:
    """Check the operations of one step, or of one run of a function.

    Raises:
        InvalidArgumentError: if two of them write, or two read and clear, the same element.
    """
    if not _USES:
        return
    seen: dict[tuple[Array, bool], list[Use]] = {}
    for op in sorted([op for op in ops if op in _USES], key=lambda op: op._id):
        use = _USES[op]
        if use.twice is not None:
            raise InvalidArgumentError(None, op, message(use.array.name, use.writes, use.twice))
        earlier = seen.setdefault((use.array, use.writes), [])
        for other in earlier:
            shared = _shared(use, other)
            if shared is not None:
                place = shared.name if isinstance(shared, Tensor) else shared
                raise InvalidArgumentError(None, op, message(use.array.name, use.writes, place))
        earlier.append(use)


def _shared(first: Use, second: Use) -> Any:
    """An element that both use, for messages; None if there is none that is known."""
    if first.keys is None or second.keys is None:
        if first.writes:
            return None  # of all rows of a tensor, however many those are
        either = first.keys if second.keys is None else second.keys
        if either is not None and not either:
            return None
        numbers = [k for k in either or () if not isinstance(k, Tensor)]
        return min(numbers, default=0)
    both = first.keys & second.keys
    numbers = [k for k in both if not isinstance(k, Tensor)]
    return min(numbers) if numbers else next(iter(both), None)


def message(array: str, writes: bool, place: Any) -> str:
    """What is wrong with using an element again."""
    if writes:
        return (
            f"TensorArray {array}: Could not write to TensorArray index {place} because "
            "it has already been written to."
        )
    return (
        f"TensorArray {array}: Could not read index {place} twice because it was cleared "
        "after a previous read (perhaps try setting clear_after_read = false?)."
    )
