"""Batches of the results of a function that is called once for each batch."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

from headrace.errors import CancelledError, OpError
from headrace.graph.func_graph import FuncGraph
from headrace.ops.data.pipeline import Element, Iteration, Source, Stream, gathered, stack
from headrace.ops.data.vectorized import batched_body

#: Smaller batches are made of elements.
LEAST_BATCH = 8


class TakenOut(NamedTuple):
    """A chain of datasets without its last map.

    Attributes:
        base: the chain; what came behind the map takes the elements as they are before it.
        mapped: the map; body: its function, of batches.
        in_order: whether nothing behind the map changed which elements come when.
    """

    base: Source
    mapped: Any
    body: FuncGraph
    in_order: bool


def map_taken_out(source: Source) -> TakenOut | None:
    """Find the last map behind which elements are only moved; None if it must stay a map of each.

    What moves elements moves them as well before the map: a shuffle draws the same numbers.
    """
    if source.moves_only:
        found = map_taken_out(source._base)  # type: ignore[attr-defined]
        if found is None:
            return None
        moved = copy.copy(source)
        moved._base = found.base  # type: ignore[attr-defined]
        return found._replace(base=moved, in_order=False)
    if not getattr(source, "is_map", False):
        return None
    body = batched_body(source.body)  # type: ignore[attr-defined]
    if body is None:
        return None
    return TakenOut(source.base, source, body, True)  # type: ignore[attr-defined]


class MappedBatches(Stream):
    """Calls the function of batches; where that fails, the function of elements, one by one."""

    def __init__(self, chain: TakenOut, run: Iteration, size: int, drops_rest: bool) -> None:
        self._stream = chain.base.stream(run)
        self.inputs = (self._stream,)
        self._mapped, self._size, self._drops_rest = chain.mapped, size, drops_rest
        self._order = "" if chain.in_order else " (in the order of the batches)"
        self._of_batches = run.function(chain.body, chain.mapped.captured)
        self._of_each = run.function(chain.mapped.body, chain.mapped.captured)
        #: What was pulled with an element whose function failed, and comes next.
        self._waiting: list[Any] = []

    def __next__(self) -> Element:
        found, self._waiting = self._waiting, []
        if len(found) < self._size:
            found = found + self._stream.next_many(self._size - len(found))
        if not found or (self._drops_rest and len(found) < self._size):
            raise StopIteration
        if len(found) == self._size:  # a program for each size of a rest would cost more
            try:
                made = self._of_batches(*gathered(self._stream, found))
            except CancelledError:
                raise
            except OpError:
                pass
            else:
                self.count += len(found)
                return made
        results = [self._one(element, i, found) for i, element in enumerate(found)]
        try:
            return stack(results)
        except OpError as error:
            self.failed(error, (self.count - 1) // self._size)
            raise

    def _one(self, element: Any, place: int, found: list[Any]) -> Element:
        items = self._stream.items
        self.count += 1
        try:
            return self._of_each(*(element if items is None else items.one(element)))
        except OpError as error:
            self._waiting = found[place + 1 :]
            if self._mapped.op is not None:
                error.add_stage(self._mapped.op, self.count - 1, self._order)
            raise

    def own_state(self) -> Any:
        items = self._stream.items
        return [list(e) if items is None else e for e in self._waiting]

    def set_own_state(self, state: Any) -> None:
        self._waiting = [tuple(e) if self._stream.items is None else e for e in state]


__all__ = ["LEAST_BATCH", "MappedBatches", "TakenOut", "map_taken_out"]
