"""Datasets that begin a chain: tensors, slices of tensors, numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace.errors import InvalidArgumentError
from headrace.ops.data.pipeline import (
    INFINITE,
    BulkStream,
    Element,
    Iteration,
    RowItems,
    Source,
    Stream,
    define_dataset,
    scalar,
)

# -- tensors ------------------------------------------------------------------------------------


class Once(Source):
    """One element."""

    def __init__(self, element: Element) -> None:
        self._element = element

    def _begin(self, run: Iteration) -> Stream:
        return _Once(self._element)

    def cardinality(self) -> int:
        return 1


class _Once(Stream):
    def __init__(self, element: Element) -> None:
        self._element = element
        self._is_over = False

    def __next__(self) -> Element:
        if self._is_over:
            raise StopIteration
        self._is_over = True
        return self._element

    def own_state(self) -> Any:
        return self._is_over

    def set_own_state(self, state: Any) -> None:
        self._is_over = bool(state)


define_dataset(
    "TensorDataset(components: Toutput_types)",
    lambda context, components: Once(tuple(map(context.owned, components))),
    attrs="Toutput_types: list(type) >= 1, output_shapes: list(shape) >= 1",
)

# -- slices -------------------------------------------------------------------------------------


class Slices(Source):
    """The slices of arrays along their first axis."""

    def __init__(self, arrays: Sequence[Any]) -> None:
        self._arrays = arrays

    def _begin(self, run: Iteration) -> Stream:
        return _Slices(self._arrays)

    def cardinality(self) -> int:
        return len(self._arrays[0])


class _Slices(BulkStream):
    def __init__(self, arrays: Sequence[Any]) -> None:
        self.items = RowItems(arrays)
        self._at = 0
        self._end = len(arrays[0])

    def __next__(self) -> int:
        at = self._at
        if at >= self._end:
            raise StopIteration
        self._at = at + 1
        return at

    def some(self, count: int) -> list[int]:
        begin = self._at
        self._at = min(begin + count, self._end)
        return list(range(begin, self._at))

    def own_state(self) -> Any:
        return self._at

    def set_own_state(self, state: Any) -> None:
        self._at = int(state)


def _slices(context: Any, components: Sequence[Any]) -> Source:
    sizes = [np.shape(c)[:1] for c in components]
    if any(not size for size in sizes):
        message = "Every component must have a first axis to slice; a scalar has none."
        raise InvalidArgumentError(None, None, message)
    if len(set(sizes)) > 1:
        message = f"The first axes of the components differ: {[s[0] for s in sizes]}."
        raise InvalidArgumentError(None, None, message)
    return Slices(tuple(map(context.owned, components)))


define_dataset(
    "TensorSliceDataset(components: Toutput_types)",
    _slices,
    attrs="Toutput_types: list(type) >= 1, output_shapes: list(shape) >= 1",
)


class SparseSlices(Source):
    """The slices of a sparse tensor along its first axis, each as indices, values and shape."""

    def __init__(self, indices: Any, values: Any, shape: Any) -> None:
        self._parts = indices, values, shape
        self._starts = np.searchsorted(indices[:, 0], np.arange(shape[0] + 1))

    def _begin(self, run: Iteration) -> Stream:
        return _SparseSlices(*self._parts, self._starts)

    def cardinality(self) -> int:
        return len(self._starts) - 1


class _SparseSlices(Stream):
    def __init__(self, indices: Any, values: Any, shape: Any, starts: Any) -> None:
        self._indices, self._values, self._starts = indices[:, 1:], values, starts
        self._shape = np.asarray(shape[1:])
        self._at, self._end = 0, len(starts) - 1

    def __next__(self) -> Element:
        if self._at >= self._end:
            raise StopIteration
        part = slice(self._starts[self._at], self._starts[self._at + 1])
        self._at += 1
        return self._indices[part], self._values[part], self._shape

    def own_state(self) -> Any:
        return self._at

    def set_own_state(self, state: Any) -> None:
        self._at = int(state)


def _sparse_slices(context: Any, indices: Any, values: Any, dense_shape: Any) -> Source:
    if len(dense_shape) < 1:
        raise InvalidArgumentError(None, None, "A sparse tensor of rank 0 has no slices.")
    if np.any(np.diff(indices[:, 0]) < 0):
        message = "The indices of a sparse tensor must be in order along its first axis."
        raise InvalidArgumentError(None, None, message)
    return SparseSlices(context.owned(indices), context.owned(values), dense_shape)


define_dataset(
    "SparseTensorSliceDataset(indices: int64, values: Tvalues, dense_shape: int64)",
    _sparse_slices,
    attrs="Tvalues: type",
)

# -- numbers ------------------------------------------------------------------------------------


#: Numbers up to the largest are numbers without end.
_COUNTED = 1 << 62


class Range(Source):
    """Equally spaced numbers."""

    def __init__(self, numbers: range, dtype: Any) -> None:
        self._numbers = numbers
        self._dtype = dtype

    def _begin(self, run: Iteration) -> Stream:
        return _Range(self._numbers, self._dtype)

    def cardinality(self) -> int:
        count = len(self._numbers)
        return count if count < _COUNTED else INFINITE


class _Range(Stream):
    def __init__(self, numbers: range, dtype: Any) -> None:
        self._numbers, self._dtype = numbers, dtype
        self._at = 0

    def __next__(self) -> Element:
        if self._at >= len(self._numbers):
            raise StopIteration
        self._at += 1
        return (np.array(self._numbers[self._at - 1], self._dtype),)

    def own_state(self) -> Any:
        return self._at

    def set_own_state(self, state: Any) -> None:
        self._at = int(state)


def _range(context: Any, start: Any, stop: Any, step: Any) -> Source:
    by = scalar(step, "step")
    if by == 0:
        raise InvalidArgumentError(None, None, "step must be a non-zero integer.")
    numbers = range(scalar(start, "start"), scalar(stop, "stop"), by)
    return Range(numbers, context.node.attrs["output_types"][0].as_numpy_dtype)


define_dataset("RangeDataset(start: int64, stop: int64, step: int64)", _range)

__all__: list[str] = []
