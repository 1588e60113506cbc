"""Datasets whose elements are several of another's: batches, padded batches, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace.errors import InvalidArgumentError, OpError
from headrace.ops.data.mapped_batches import LEAST_BATCH, MappedBatches, map_taken_out
from headrace.ops.data.pipeline import (
    Element,
    Iteration,
    Source,
    Stream,
    define_dataset,
    gathered,
    row,
    scalar,
    whole,
)


def groups(count: int, size: int, drops_rest: bool) -> int:
    """The cardinality of groups of ``size`` of ``count`` elements."""
    return count if count < 0 else (count // size if drops_rest else -(-count // size))


class BatchSource(Source):
    def __init__(self, base: Source, size: int, drops_rest: bool) -> None:
        self._base, self._size, self._drops_rest = base, size, drops_rest

    def _begin(self, run: Iteration) -> Stream:
        found = map_taken_out(self._base) if self._size >= LEAST_BATCH else None
        if found is None:
            return _BatchStream(self._base.stream(run), self._size, self._drops_rest)
        return MappedBatches(found, run, self._size, self._drops_rest)

    def cardinality(self) -> int:
        return groups(self._base.cardinality(), self._size, self._drops_rest)


class _BatchStream(Stream):
    def __init__(self, stream: Stream, size: int, drops_rest: bool) -> None:
        self.inputs = (stream,)
        self._stream, self._size, self._drops_rest = stream, size, drops_rest

    def __next__(self) -> Element:
        found = self._stream.next_many(self._size)
        if not found or (self._drops_rest and len(found) < self._size):
            raise StopIteration
        self.count += 1
        try:
            return gathered(self._stream, found)
        except OpError as error:
            self.failed(error)
            raise


_SIZED = "output_types: list(type) >= 1, output_shapes: list(shape) >= 1"


def _batch(context: Any, base: Source, size: Any, drop_remainder: Any = False) -> Source:
    return BatchSource(base, scalar(size, "batch_size", 1), bool(drop_remainder))


define_dataset("BatchDataset(input_dataset: variant, batch_size: int64)", _batch)
define_dataset(
    "BatchDatasetV2(input_dataset: variant, batch_size: int64, drop_remainder: bool)",
    _batch,
    attrs=f"parallel_copy: bool = False, {_SIZED}",
)

# -- padded -------------------------------------------------------------------------------------


class _PaddedBatch(Source):
    def __init__(
        self, base: Source, size: int, shapes: Sequence[Any], fill: Sequence[Any], drops_rest: bool
    ) -> None:
        self._base = base
        self._how = size, shapes, fill, drops_rest

    def _begin(self, run: Iteration) -> Stream:
        return _PaddedBatchStream(whole(self._base, run), *self._how)

    def cardinality(self) -> int:
        return groups(self._base.cardinality(), self._how[0], self._how[3])


class _PaddedBatchStream(Stream):
    """Each component of a batch is as large as the largest in it, or as it is told (not -1)."""

    def __init__(
        self,
        stream: Stream,
        size: int,
        shapes: Sequence[Any],
        fill: Sequence[Any],
        drops_rest: bool,
    ) -> None:
        self.inputs = (stream,)
        self._stream, self._size, self._shapes = stream, size, shapes
        self._fill, self._drops_rest = fill, drops_rest

    def __next__(self) -> Element:
        found = self._stream.next_many(self._size)
        if not found or (self._drops_rest and len(found) < self._size):
            raise StopIteration
        self.count += 1
        columns = list(zip(*found, strict=True))
        try:
            return tuple([self._padded(column, i) for i, column in enumerate(columns)])
        except OpError as error:
            self.failed(error)
            raise

    def _padded(self, values: Sequence[Any], component: int) -> Any:
        told = [int(d) for d in self._shapes[component]]
        for value in values:
            if value.ndim != len(told):
                message = (
                    f"All elements in a batch must have the same rank as the padded shape for "
                    f"component {component}: expected rank {len(told)} but got element with rank "
                    f"{value.ndim}."
                )
                raise InvalidArgumentError(None, None, message)
        largest = [max(sizes) for sizes in zip(*[v.shape for v in values], strict=True)]
        for axis, (size, most) in enumerate(zip(largest, told, strict=True)):
            if most >= 0 and size > most:
                message = (
                    f"Attempted to pad to a smaller size than the input element: component "
                    f"{component} has {size} along axis {axis}, where the padded shape says {most}."
                )
                raise InvalidArgumentError(None, None, message)
        shape = [size if most < 0 else most for size, most in zip(largest, told, strict=True)]
        fill = np.asarray(self._fill[component])
        result = np.empty((len(values), *shape), values[0].dtype)
        result[...] = fill[()]
        for i, value in enumerate(values):
            place: Any = (i, *[slice(size) for size in value.shape])
            result[place] = value if value.ndim else value[()]
        return result


def _padded_batch(
    context: Any, base: Source, size: Any, shapes: Any, fill: Any, drop_remainder: Any = False
) -> Source:
    return _PaddedBatch(base, scalar(size, "batch_size", 1), shapes, fill, bool(drop_remainder))


_PADDED = "Toutput_types: list(type) >= 1, output_shapes: list(shape) >= 1, N: int >= 1"
define_dataset(
    "PaddedBatchDataset(input_dataset: variant, batch_size: int64, padded_shapes: N * int64, "
    "padding_values: Toutput_types)",
    _padded_batch,
    attrs=_PADDED,
)
define_dataset(
    "PaddedBatchDatasetV2(input_dataset: variant, batch_size: int64, padded_shapes: N * int64, "
    "padding_values: Toutput_types, drop_remainder: bool)",
    _padded_batch,
    attrs=f"parallel_copy: bool = False, {_PADDED}",
)

# -- and back -----------------------------------------------------------------------------------


class _Unbatch(Source):
    def __init__(self, base: Source) -> None:
        self._base = base

    def _begin(self, run: Iteration) -> Stream:
        return _UnbatchStream(whole(self._base, run))


class _UnbatchStream(Stream):
    def __init__(self, stream: Stream) -> None:
        self.inputs = (stream,)
        self._stream = stream
        self._batch: Element = ()
        self._at = self._end = 0

    def __next__(self) -> Element:
        while self._at >= self._end:
            batch = next(self._stream)
            self.count += 1
            sizes = {b.shape[:1] for b in batch}
            if len(sizes) > 1 or () in sizes:
                message = (
                    "Input elements must have components with first axes of one size, but have "
                    f"shapes {[list(b.shape) for b in batch]}."
                )
                raise self.failed(InvalidArgumentError(None, None, message))
            self._batch, self._at, self._end = batch, 0, len(batch[0])
        self._at += 1
        return row(self._batch, self._at - 1)

    def own_state(self) -> Any:
        return [list(self._batch), self._at, self._end]

    def set_own_state(self, state: Any) -> None:
        batch, self._at, self._end = state
        self._batch = tuple(batch)


define_dataset("UnbatchDataset(input_dataset: variant)", lambda context, base: _Unbatch(base))

# -- windows ------------------------------------------------------------------------------------


class Given(Source):
    """Elements that are there."""

    def __init__(self, elements: Sequence[Element]) -> None:
        self.elements = elements

    def _begin(self, run: Iteration) -> Stream:
        return _GivenStream(self.elements)

    def cardinality(self) -> int:
        return len(self.elements)


class _GivenStream(Stream):
    def __init__(self, elements: Sequence[Element]) -> None:
        self._elements, self._at = elements, 0

    def __next__(self) -> Element:
        if self._at >= len(self._elements):
            raise StopIteration
        self._at += 1
        return self._elements[self._at - 1]

    def own_state(self) -> Any:
        return self._at

    def set_own_state(self, state: Any) -> None:
        self._at = int(state)


class _Window(Source):
    def __init__(self, base: Source, size: int, shift: int, stride: int, drops_rest: bool) -> None:
        self._base = base
        self._how = size, shift, stride, drops_rest

    def _begin(self, run: Iteration) -> Stream:
        return _WindowStream(whole(self._base, run), *self._how)

    def cardinality(self) -> int:
        size, shift, stride, drops_rest = self._how
        count = self._base.cardinality()
        if count < 0:
            return count
        if not drops_rest:
            return -(-count // shift)
        span = (size - 1) * stride + 1
        return max(0, (count - span) // shift + 1)


class _WindowStream(Stream):
    """Datasets of ``size`` elements each, ``stride`` apart; the next begins ``shift`` later."""

    def __init__(
        self, stream: Stream, size: int, shift: int, stride: int, drops_rest: bool
    ) -> None:
        self.inputs = (stream,)
        self._stream, self._size, self._shift = stream, size, shift
        self._stride, self._drops_rest = stride, drops_rest
        self._buffer: list[Element] = []
        self._skip = 0

    def __next__(self) -> Element:
        span = (self._size - 1) * self._stride + 1
        while self._skip:
            done = len(self._stream.next_many(self._skip))
            self._skip = self._skip - done if done else 0
        if len(self._buffer) < span:
            self._buffer += self._stream.next_many(span - len(self._buffer))
        if not self._buffer or (self._drops_rest and len(self._buffer) < span):
            raise StopIteration
        found = self._buffer[: span : self._stride]
        self._skip = max(self._shift - len(self._buffer), 0)
        self._buffer = self._buffer[self._shift :]
        columns = zip(*found, strict=True)
        return tuple([Given([(value,) for value in column]) for column in columns])

    def own_state(self) -> Any:
        return [[list(e) for e in self._buffer], self._skip]

    def set_own_state(self, state: Any) -> None:
        buffer, self._skip = state
        self._buffer = [tuple(e) for e in buffer]


define_dataset(
    "WindowDataset(input_dataset: variant, size: int64, shift: int64, stride: int64, "
    "drop_remainder: bool)",
    lambda context, base, size, shift, stride, drop_remainder: _Window(
        base,
        scalar(size, "size", 1),
        scalar(shift, "shift", 1),
        scalar(stride, "stride", 1),
        bool(drop_remainder),
    ),
)

__all__: list[str] = []
