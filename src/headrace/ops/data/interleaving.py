"""Interleaved datasets whose elements are computed by a thread for each that is open."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from headrace.errors import InvalidArgumentError
from headrace.graph.func_graph import FuncGraph
from headrace.ops.data.buffering import PrefetchStream, is_sloppy
from headrace.ops.data.functional import InterleaveStream, Mapped, interleave_numbers
from headrace.ops.data.pipeline import (
    Element,
    Iteration,
    Source,
    Stream,
    define_dataset,
    scalar,
    whole,
)
from headrace.ops.data.tuning import AUTOTUNE, Calls, Permits


class _ParallelInterleave(Mapped):
    """As `_Interleave`; up to ``calls`` of the open datasets work at a time."""

    def __init__(
        self, base: Source, body: FuncGraph, captured: Any, numbers: Sequence[int], sloppy: bool
    ) -> None:
        super().__init__(base, body, captured)
        self._numbers, self._sloppy = numbers, sloppy

    def _begin(self, run: Iteration) -> Stream:
        function = run.function(self.body, self.captured)
        base = whole(self.base, run)
        is_free = self._sloppy or run.may_reorder
        return _ParallelStream(base, function, self._numbers, is_free, run)


class _AheadStream(PrefetchStream):
    """The elements of one dataset, computed ahead with a permit.

    Args:
        arrived: called when there is a new element, or the end.
    """

    def __init__(
        self,
        stream: Stream,
        size: int,
        run: Iteration,
        permits: Permits,
        arrived: Callable[[], None],
    ) -> None:
        super().__init__(stream, size, run)
        self._permits, self._arrived = permits, arrived

    @property
    def is_ready(self) -> bool:
        """Whether nobody would have to wait for what comes next."""
        return bool(self._buffer) or self._is_over

    def _pull(self) -> Any:
        with self._permits.held(lambda: self._is_closed):
            return super()._pull()

    def _put(self, made: tuple[Any, BaseException | None]) -> None:
        super()._put(made)
        self._arrived()

    def _stop(self) -> None:
        with self._changed:
            self._is_closed = True
        self._permits.look_again()
        super()._stop()

    def close(self) -> None:
        is_first = not self._is_closed
        super().close()
        if is_first:
            self._run.drop(self._changed)


class _ParallelStream(InterleaveStream):
    """A thread for each open place; with ``is_free``, elements come as they are ready."""

    def __init__(
        self, base: Stream, function: Any, numbers: Sequence[int], is_free: bool, run: Iteration
    ) -> None:
        cycle, length, calls = numbers
        super().__init__(base, function, cycle, length, run)
        self._is_free = is_free
        self._calls = Calls(calls)
        self._permits = Permits(run, self._calls)
        self._ready = run.condition()

    def _arrived(self) -> None:
        with self._ready:
            self._ready.notify_all()

    def _opened(self, element: Element) -> Stream:
        stream = super()._opened(element)
        return _AheadStream(stream, self._length, self._run, self._permits, self._arrived).started()

    def __next__(self) -> Element:
        with self._calls.waiting():
            if self._is_free:
                self._to_a_ready_place()
            return super().__next__()

    def _to_a_ready_place(self) -> None:
        """Go on where there is an element; a place whose dataset is slow is passed over."""
        places = range(len(self._open))
        for place in places:
            if self._open[place] is None and not self._is_over:
                element = next(self._base, None)
                if element is None:
                    self._is_over = True
                else:
                    self._open[place] = self._made(element)
        begun = [(place, kept) for place in places if (kept := self._open[place]) is not None]
        if not begun:
            return
        ahead: dict[int, Any] = {place: stream for place, (_, stream) in begun}
        for stream in ahead.values():
            stream.started()  # one that was restored has no thread yet
        with self._ready:
            self._run.wait_for(self._ready, lambda: any(s.is_ready for s in ahead.values()))
        order = [(self._place + i) % len(self._open) for i in places]
        found = next(place for place in order if place in ahead and ahead[place].is_ready)
        if found != self._place:
            self._place, self._block = found, 0


def _parallel_interleave(
    context: Any, base: Source, others: Any, cycle_length: Any, block_length: Any, *rest: Any
) -> Source:
    calls = scalar(rest[-1], "num_parallel_calls")
    if calls < 1 and calls != AUTOTUNE:
        message = f"num_parallel_calls must be greater than zero, but is {calls}."
        raise InvalidArgumentError(None, None, message)
    numbers = (*interleave_numbers(cycle_length, block_length), calls)
    attrs = context.node.attrs
    return _ParallelInterleave(base, attrs["f"], others, numbers, is_sloppy(attrs))


_SIZED = "output_types: list(type) >= 1, output_shapes: list(shape) >= 1"
_INPUTS = (
    "(input_dataset: variant, other_arguments: Targuments, cycle_length: int64, block_length: int64"
)
define_dataset(
    f"ParallelInterleaveDatasetV4{_INPUTS}, buffer_output_elements: int64, "
    "prefetch_input_elements: int64, num_parallel_calls: int64)",
    _parallel_interleave,
    attrs=f'f: func, deterministic: string = "default", Targuments: list(type) >= 0, {_SIZED}',
)
define_dataset(
    f"ParallelInterleaveDatasetV2{_INPUTS}, num_parallel_calls: int64)",
    _parallel_interleave,
    attrs=f"f: func, Targuments: list(type) >= 0, {_SIZED}, sloppy: bool = False",
)

__all__: list[str] = []
