"""Specifications of strided slices: what they take of a shape.

A specification is a row of entries, each of which takes one dimension of the input (a range, or one
position when ``shrink_axis_mask`` says so), adds one (``new_axis_mask``) or takes as many as are
left over (``ellipsis_mask``).
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from headrace.graph.tensor import Dims
from headrace.ops.core import checks
from headrace.ops.core.array_util import fail, is_concrete


class Masks(NamedTuple):
    """The five bit masks of a specification."""

    begin: int = 0
    end: int = 0
    ellipsis: int = 0
    new_axis: int = 0
    shrink: int = 0


class Entry(NamedTuple):
    """One part of a specification: what becomes of one dimension.

    Attributes:
        axis: dimension of the input, or -1 for a new one.
        at: position in the begin, end and stride vectors, or -1 where all is taken.
        shrink: one position is taken and the dimension goes away.
    """

    axis: int
    at: int
    shrink: bool


_ALL = -1


def layout(count: int, masks: Masks, rank: int) -> list[Entry]:
    """The entries of a specification of ``count`` parts, for an input of ``rank`` dimensions.

    Raises:
        ValueError: if it takes more dimensions than there are, or has two ellipses.
    """
    inside = masks.ellipsis & ((1 << count) - 1)
    if inside & (inside - 1):
        raise ValueError("Multiple ellipses in slice spec not allowed.")
    used = sum(not ((inside | masks.new_axis) >> i) & 1 for i in range(count))
    if used > rank:
        raise ValueError(f"Index out of range using input dim {rank}; input has only {rank} dims.")
    entries: list[Entry] = []
    axis = 0
    for i in range(count):
        if (inside >> i) & 1:
            for _ in range(rank - used):
                entries.append(Entry(axis, _ALL, False))
                axis += 1
        elif (masks.new_axis >> i) & 1:
            entries.append(Entry(-1, i, False))
        else:
            entries.append(Entry(axis, i, bool((masks.shrink >> i) & 1)))
            axis += 1
    entries += [Entry(a, _ALL, False) for a in range(axis, rank)]
    return entries


def _bounds(entry: Entry, begin: Any, end: Any, strides: Any, masks: Masks) -> slice:
    """The Python slice of a range entry; its rules of clamping are those of TensorFlow."""
    i = entry.at
    if i == _ALL:
        return slice(None)
    step = int(strides[i])
    if step == 0:
        raise ValueError(f"strides[{i}] must be non-zero")
    start = None if (masks.begin >> i) & 1 else int(begin[i])
    stop = None if (masks.end >> i) & 1 else int(end[i])
    return slice(start, stop, step)


def _position(entry: Entry, begin: Any, strides: Any, size: int) -> int:
    """The index of a shrunk dimension, counted from the front."""
    if int(strides[entry.at]) <= 0:
        raise ValueError("only stride 1 allowed on non-range indexing.")
    index = int(begin[entry.at])
    if not -size <= index < size:
        raise ValueError(
            f"slice index {index} of dimension {entry.axis} out of bounds: its size is {size}."
        )
    return index % size


def sliced_dims(dims: Dims, begin: Any, end: Any, strides: Any, masks: Masks) -> Dims:
    """The static shape of a strided slice; entries of the vectors may be None."""
    vectors = [v for v in (begin, end, strides) if v is not None]
    if dims is None or not vectors:
        return None
    count = len(vectors[0])
    if any(len(v) != count for v in vectors):
        raise ValueError(
            f"Expected begin, end, and strides to be 1D equal size tensors, but got sizes "
            f"{[len(v) for v in vectors]}."
        )
    none = [None] * count
    begin, end, strides = begin or none, end or none, strides or none
    result: list[int | None] = []
    for entry in layout(count, masks, len(dims)):
        if entry.axis < 0:
            result.append(1)
        elif entry.shrink:
            size, index, step = dims[entry.axis], begin[entry.at], strides[entry.at]
            if size is not None and index is not None and step is not None:
                _position(entry, begin, strides, size)
        else:
            result.append(_range_size(entry, dims[entry.axis], begin, end, strides, masks))
    return tuple(result)


def _range_size(
    entry: Entry, size: int | None, begin: Any, end: Any, strides: Any, masks: Masks
) -> int | None:
    i = entry.at
    if i == _ALL:
        return size
    open_begin, open_end = (masks.begin >> i) & 1, (masks.end >> i) & 1
    if (
        strides[i] is None
        or (begin[i] is None and not open_begin)
        or (end[i] is None and not open_end)
    ):
        return None
    bounds = _bounds(entry, begin, end, strides, masks)
    if size is None:
        return _size_of_unknown(bounds)
    return len(range(*bounds.indices(size)))


def _size_of_unknown(bounds: slice) -> int | None:
    """Ranges that are empty whatever the size of the dimension."""
    start, stop = bounds.start or 0, bounds.stop
    if stop is not None and bounds.step > 0 and 0 <= stop <= start:
        return 0
    return None


class Cut(NamedTuple):
    """A specification applied to one shape.

    Attributes:
        ranges: a slice of each input dimension; shrunk dimensions keep size 1.
        moving: positions of shrunk dimensions that are known only when the program runs.
        kept: the sizes before shrinking and adding dimensions; ``result``: those after.
    """

    ranges: tuple[slice, ...]
    moving: dict[int, Any]
    kept: tuple[int, ...]
    result: tuple[int, ...]


def cut(shape: tuple[int, ...], begin: Any, end: Any, strides: Any, masks: Masks) -> Cut:
    """Work a specification out for an input of ``shape``.

    ``begin`` and ``end`` may be traced; then only whole dimensions and single positions work.
    """
    if not begin.shape == end.shape == strides.shape or begin.ndim != 1:
        raise fail("Expected begin, end, and strides to be 1D equal size tensors.")
    if type(begin) is type(end) is type(strides) is np.ndarray:
        vectors = begin.tobytes(), end.tobytes(), strides.tobytes()
        dtypes = begin.dtype, end.dtype, strides.dtype
        return _cut_by(tuple(shape), masks, vectors, dtypes)
    return _cut(shape, begin, end, strides, masks)


@functools.lru_cache(1 << 12)
def _cut_by(
    shape: tuple[int, ...], masks: Masks, vectors: tuple[bytes, ...], dtypes: tuple[Any, ...]
) -> Cut:
    """The same, kept: loops that are interpreted cut in the same way in each round."""
    begin, end, strides = map(np.frombuffer, vectors, dtypes)
    return _cut(shape, begin, end, strides, masks)


def _cut(shape: tuple[int, ...], begin: Any, end: Any, strides: Any, masks: Masks) -> Cut:
    known_begin, known_end = is_concrete(begin), is_concrete(end)
    ranges: list[slice] = [slice(None)] * len(shape)
    moving: dict[int, Any] = {}
    kept, result = list(shape), []
    for entry in layout(begin.shape[0], masks, len(shape)):
        axis, i = entry.axis, entry.at
        if axis < 0:
            result.append(1)
            continue
        size = shape[axis]
        if entry.shrink:
            kept[axis] = 1
            if known_begin:
                if int(strides[i]) <= 0:
                    raise fail("only stride 1 allowed on non-range indexing.")
                index = int(begin[i])
                _check_position(index, size, axis)
                ranges[axis] = slice(index % size, index % size + 1)
            else:
                moving[axis] = _moving(begin[i], size, axis)
            continue
        if i != _ALL:
            whole = (masks.begin >> i) & 1, (masks.end >> i) & 1
            if not ((known_begin or whole[0]) and (known_end or whole[1])):
                raise checks.NeedsValue("the bounds of a slice decide the shape of the result")
            ranges[axis] = _bounds(entry, begin, end, strides, masks)
        kept[axis] = len(range(*ranges[axis].indices(size)))
        result.append(kept[axis])
    return Cut(tuple(ranges), moving, tuple(kept), tuple(result))


def _check_position(index: Any, size: int, axis: int) -> None:
    checks.require(
        (index >= -size) & (index < size),
        f"slice index {{0}} of dimension {axis} out of bounds: its size is {size}.",
        index,
    )


def _moving(index: Any, size: int, axis: int) -> Any:
    """A traced position, checked and counted from the front."""
    _check_position(index, size, axis)
    return jnp.where(index < 0, index + size, index)


__all__ = ["Cut", "Entry", "Masks", "cut", "layout", "sliced_dims"]
