"""How many elements a dataset has: asked, and promised."""

from __future__ import annotations

import numpy as np

from headrace.errors import FailedPreconditionError
from headrace.ops.core.registry import define_op
from headrace.ops.data.pipeline import (
    ELEMENTS,
    INFINITE,
    NO_GRADIENT,
    UNKNOWN,
    Element,
    Iteration,
    Source,
    Stream,
    define_dataset,
    scalar,
    whole,
)

define_op(
    "DatasetCardinality(input_dataset: variant) -> cardinality: int64",
    shape=lambda op: [()],
    host=lambda context, dataset: np.int64(dataset.cardinality()),
    gradient=NO_GRADIENT,
    traits=ELEMENTS,
)


def count_text(count: int) -> str:
    """A cardinality as errors tell it."""
    if count < 0:
        return "an infinite number of elements" if count == INFINITE else "unknown elements"
    return f"{count} element{'s' if count != 1 else ''}"


class _Asserted(Source):
    """A source that must have as many elements as was promised."""

    def __init__(self, base: Source, count: int) -> None:
        self._base, self._count = base, count

    def _begin(self, run: Iteration) -> Stream:
        return _AssertedStream(whole(self._base, run), self._count)

    def cardinality(self) -> int:
        return self._count


class _AssertedStream(Stream):
    def __init__(self, stream: Stream, wanted: int) -> None:
        self.inputs = (stream,)
        self._stream, self._wanted = stream, wanted

    def __next__(self) -> Element:
        try:
            element: Element = next(self._stream)
        except StopIteration:
            if self._wanted != UNKNOWN and self.count != self._wanted:
                self._fail(f"contained only {count_text(self.count)}")
            raise
        self.count += 1
        if 0 <= self._wanted < self.count:
            self._fail(f"contained at least {count_text(self.count)}")
        return element

    def _fail(self, found: str) -> None:
        message = f"Input dataset was expected to contain {count_text(self._wanted)} but {found}."
        raise self.failed(FailedPreconditionError(None, None, message))


define_dataset(
    "AssertCardinalityDataset(input_dataset: variant, cardinality: int64)",
    lambda context, base, count: _Asserted(base, scalar(count, "cardinality")),
)

__all__: list[str] = []
