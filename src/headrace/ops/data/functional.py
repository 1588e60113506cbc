"""Datasets made by graph functions of elements: map, filter, flat_map, interleave, scan ..."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace.errors import InvalidArgumentError, OpError
from headrace.graph.func_graph import FuncGraph
from headrace.ops.data.pipeline import (
    Element,
    Iteration,
    Source,
    Stream,
    define_dataset,
    scalar,
    whole,
)

_SIZED = "output_types: list(type) >= 1, output_shapes: list(shape) >= 1"
_F = f"f: func, Targuments: list(type) >= 0, {_SIZED}"


class Mapped(Source):
    """A source whose streams call a function.

    Args:
        body: the function, of the components of an element and of ``captured``.
    """

    def __init__(self, base: Source, body: FuncGraph, captured: Sequence[Any]) -> None:
        self.base, self.body, self.captured = base, body, captured


def elsewhere(element: Element) -> Source:
    """The dataset that a function has returned."""
    (source,) = element
    if not isinstance(source, Source):
        message = f"The function must return a dataset, but returned {type(source).__name__}."
        raise InvalidArgumentError(None, None, message)
    return source


# -- map ----------------------------------------------------------------------------------------


class _Map(Mapped):
    is_map = True

    def _begin(self, run: Iteration) -> Stream:
        return _MapStream(whole(self.base, run), run.function(self.body, self.captured))

    def cardinality(self) -> int:
        return self.base.cardinality()


class _MapStream(Stream):
    def __init__(self, stream: Stream, function: Any) -> None:
        self.inputs = (stream,)
        self._stream, self._function = stream, function

    def __next__(self) -> Element:
        element = next(self._stream)
        self.count += 1
        try:
            result: Element = self._function(*element)
        except OpError as error:
            self.failed(error)
            raise
        return result


define_dataset(
    "MapDataset(input_dataset: variant, other_arguments: Targuments)",
    lambda context, base, others: _Map(base, context.node.attrs["f"], others),
    attrs=f"{_F}, use_inter_op_parallelism: bool = True, preserve_cardinality: bool = False",
)

# -- filter -------------------------------------------------------------------------------------


class _Filter(Mapped):
    def _begin(self, run: Iteration) -> Stream:
        return _FilterStream(whole(self.base, run), run.function(self.body, self.captured))


class _FilterStream(Stream):
    def __init__(self, stream: Stream, predicate: Any) -> None:
        self.inputs = (stream,)
        self._stream, self._predicate = stream, predicate

    def __next__(self) -> Element:
        while True:
            element: Element = next(self._stream)
            if self._holds(element):
                return element

    def _holds(self, element: Element) -> bool:
        self.count += 1
        try:
            return bool(self._predicate(*element)[0])
        except OpError as error:
            self.failed(error)
            raise


define_dataset(
    "FilterDataset(input_dataset: variant, other_arguments: Targuments)",
    lambda context, base, others: _Filter(base, context.node.attrs["predicate"], others),
    attrs=f"predicate: func, Targuments: list(type) >= 0, {_SIZED}",
)


class _TakeWhile(Mapped):
    def _begin(self, run: Iteration) -> Stream:
        return _TakeWhileStream(whole(self.base, run), run.function(self.body, self.captured))


class _TakeWhileStream(_FilterStream):
    _is_over = False

    def __next__(self) -> Element:
        if not self._is_over:
            element: Element = next(self._stream)
            if self._holds(element):
                return element
            self._is_over = True
        raise StopIteration

    def own_state(self) -> Any:
        return self._is_over

    def set_own_state(self, state: Any) -> None:
        self._is_over = bool(state)


define_dataset(
    "TakeWhileDataset(input_dataset: variant, other_arguments: Targuments)",
    lambda context, base, others: _TakeWhile(base, context.node.attrs["predicate"], others),
    attrs=f"predicate: func, Targuments: list(type) >= 0, {_SIZED}",
)

# -- scan ---------------------------------------------------------------------------------------


class _Scan(Mapped):
    def __init__(self, base: Source, body: FuncGraph, captured: Any, initial: Any) -> None:
        super().__init__(base, body, captured)
        self._initial = tuple(initial)

    def _begin(self, run: Iteration) -> Stream:
        function = run.function(self.body, self.captured)
        return _ScanStream(whole(self.base, run), function, self._initial)

    def cardinality(self) -> int:
        return self.base.cardinality()


class _ScanStream(Stream):
    def __init__(self, stream: Stream, function: Any, initial: Element) -> None:
        self.inputs = (stream,)
        self._stream, self._function, self._carried = stream, function, initial

    def __next__(self) -> Element:
        element = next(self._stream)
        self.count += 1
        try:
            results = self._function(*self._carried, *element)
        except OpError as error:
            self.failed(error)
            raise
        count = len(self._carried)
        self._carried = results[:count]
        made: Element = results[count:]
        return made

    def own_state(self) -> Any:
        return list(self._carried)

    def set_own_state(self, state: Any) -> None:
        self._carried = tuple(state)


define_dataset(
    "ScanDataset(input_dataset: variant, initial_state: Tstate, other_arguments: Targuments)",
    lambda context, base, initial, others: _Scan(base, context.node.attrs["f"], others, initial),
    attrs=f"f: func, Tstate: list(type) >= 1, Targuments: list(type) >= 0, {_SIZED}, "
    "preserve_cardinality: bool = False, use_default_device: newer bool = True",
)

# -- flat_map and interleave --------------------------------------------------------------------


class _Interleave(Mapped):
    """Elements of the datasets that a function makes, ``length`` of each in turn."""

    def __init__(
        self, base: Source, body: FuncGraph, captured: Any, cycle: int = 1, length: int = 1
    ) -> None:
        super().__init__(base, body, captured)
        self._cycle, self._length = cycle, length

    def _begin(self, run: Iteration) -> Stream:
        function = run.function(self.body, self.captured)
        base = whole(self.base, run)
        return InterleaveStream(base, function, self._cycle, self._length, run)


class InterleaveStream(Stream):
    """``cycle`` places, each with the stream of a dataset or empty.

    To be saved, each place keeps the element of which its dataset was made.
    """

    def __init__(
        self, base: Stream, function: Any, cycle: int, length: int, run: Iteration
    ) -> None:
        self._base, self._function, self._run = base, function, run
        self._length = length
        self._open: list[tuple[Element, Stream] | None] = [None] * cycle
        self._place = self._block = 0
        self._is_over = False

    @property
    def inputs(self) -> Sequence[Stream]:  # type: ignore[override]
        return (self._base, *[kept[1] for kept in self._open if kept is not None])

    def _made(self, element: Element) -> tuple[Element, Stream]:
        self.count += 1
        try:
            return element, self._opened(element)
        except OpError as error:
            self.failed(error)
            raise

    def _opened(self, element: Element) -> Stream:
        return whole(elsewhere(self._function(*element)), self._run)

    def _next_place(self) -> None:
        self._place = (self._place + 1) % len(self._open)
        self._block = 0

    def __next__(self) -> Element:
        while not self._is_over or any(self._open):
            kept = self._open[self._place]
            if kept is None:
                element = None if self._is_over else next(self._base, None)
                if element is None:
                    self._is_over = True
                    self._next_place()
                    continue
                kept = self._open[self._place] = self._made(element)
            try:
                found: Element = next(kept[1])
            except StopIteration:
                kept[1].close()
                self._open[self._place] = None
                self._next_place()
                continue
            self._block += 1
            if self._block == self._length:
                self._next_place()
            return found
        raise StopIteration

    def save(self) -> Any:
        places = [kept and [list(kept[0]), kept[1].save()] for kept in self._open]
        own = [places, self._place, self._block, self._is_over]
        return {"own": own, "count": self.count, "inputs": [self._base.save()]}

    def restore(self, state: Any) -> None:
        self.close()
        places, self._place, self._block, self._is_over = state["own"]
        self._base.restore(state["inputs"][0])
        for i, kept in enumerate(places):
            self._open[i] = None
            if kept is not None:
                made = self._open[i] = self._made(tuple(kept[0]))
                made[1].restore(kept[1])
        self.count = state["count"]


define_dataset(
    "FlatMapDataset(input_dataset: variant, other_arguments: Targuments)",
    lambda context, base, others: _Interleave(base, context.node.attrs["f"], others),
    attrs=_F,
)


def interleave_numbers(cycle_length: Any, block_length: Any) -> tuple[int, int]:
    """The inputs of the same names.

    Raises:
        InvalidArgumentError: if one is no number above zero.
    """
    cycle = scalar(cycle_length, "cycle_length")
    if cycle == -1:  # as many as the machine does at a time
        cycle = 4
    if cycle < 1:
        message = f"cycle_length must be greater than zero, but is {cycle}."
        raise InvalidArgumentError(None, None, message)
    return cycle, scalar(block_length, "block_length", 1)


define_dataset(
    "InterleaveDataset(input_dataset: variant, other_arguments: Targuments, cycle_length: int64, "
    "block_length: int64)",
    lambda context, base, others, cycle, block: _Interleave(
        base, context.node.attrs["f"], others, *interleave_numbers(cycle, block)
    ),
    attrs=_F,
)

__all__: list[str] = []
