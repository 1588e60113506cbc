"""Rows that carry sorted ids, put together on NumPy: those of an id lie beside each other."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["begins_of", "reduce_sorted_rows"]

Array = NDArray[Any]

#: So many elements make a row that NumPy works through without losing time at its ends.
_LONG_ROW = 256
#: Segments of fewer rows are not worth a call each, unless their rows are long.
_MANY_ROWS = 8
#: A block of so many rows is added up as a product with ones, at the speed of the memory.
_ADDED_BY_BLAS = 256
#: What NumPy's own reduction takes for each element of each segment's row, and of each row; and
#: what a round of calls takes, of which there are so many beside one for each row or segment.
_SECONDS_PER_PLACE, _SECONDS_PER_ELEMENT = 20e-9, 2.5e-9
_SECONDS_OF_CALLS, _CALLS_AT_LEAST = 8e-6, 4
#: The rows of fewer segments are not worth a call at a time.
_FEW_SEGMENTS = 4


def reduce_sorted_rows(ufunc: Any, rows: Array, ids: Array, out: Array) -> None:
    """Set the row of ``out`` with the number of each id to its rows ``[n, ...]`` combined.

    A hundred times as fast as ``ufunc.at(out, ids, rows)``. Rows of ``out`` whose number is no id
    stay.

    Args:
        ufunc: adds, multiplies, or takes the larger or the smaller of two.
        ids: integers ``[n]`` that do not decrease, each a row of ``out``.

    >>> import numpy as np
    >>> out = np.zeros((3, 2), np.int32)
    >>> reduce_sorted_rows(np.maximum, np.arange(6, dtype=np.int32).reshape(3, 2), [0, 0, 2], out)
    >>> out.tolist()
    [[2, 3], [0, 0], [4, 5]]
    """
    ids = np.asarray(ids)
    if not rows.size:
        return
    flat = np.ascontiguousarray(rows).reshape(len(rows), -1)
    target = out.reshape(len(out), -1)
    begins = begins_of(ids)
    ends = np.append(begins[1:], len(ids))
    counts = ends - begins
    places = ids[begins]
    if _is_short_work(flat, begins, counts):
        target[places] = ufunc.reduceat(flat, begins, axis=0, dtype=rows.dtype)
    elif _MANY_ROWS * len(begins) > len(rows) or int(counts.max()) < len(begins):
        target[places] = _one_more_row_each(ufunc, flat, begins, counts)
    else:
        blocks = zip(places.tolist(), begins.tolist(), ends.tolist(), strict=True)
        for place, begin, end in blocks:
            target[place] = _reduce_block(ufunc, flat[begin:end])


def _is_short_work(rows: Array, begins: Array, counts: Array) -> bool:
    """Whether NumPy's own reduction of segments takes less time than calls for many rows each.

    It works through one element after another of each segment, which is slow, but takes one call.
    """
    width = rows.shape[1]
    if width == 1:
        return True
    rounds = _CALLS_AT_LEAST + min(int(counts.max()), len(begins))
    itself = _SECONDS_PER_PLACE * len(begins) * width + _SECONDS_PER_ELEMENT * rows.size
    return bool(itself < rounds * _SECONDS_OF_CALLS)


def begins_of(ids: Array) -> Array:
    """Where each of sorted ``ids`` occurs first."""
    is_first = np.empty(len(ids), np.bool_)
    is_first[:1] = True
    np.not_equal(ids[1:], ids[:-1], out=is_first[1:])
    return np.flatnonzero(is_first)


def _one_more_row_each(ufunc: Any, rows: Array, begins: Array, counts: Array) -> Array:
    """The combined rows of each segment: one row after the other, of all segments at a time.

    The longest segments come first, so that those with another row are always the first ones. What
    is left of a few much longer ones is combined by itself.
    """
    order = np.argsort(-counts, kind="stable")
    firsts, lengths = begins[order], counts[order]
    found = rows[firsts]
    more, turn = len(firsts), 1
    while more and (more >= _FEW_SEGMENTS or lengths[0] - turn <= _FEW_SEGMENTS):
        more = int(np.count_nonzero(lengths[:more] > turn))
        ufunc(found[:more], rows[firsts[:more] + turn], out=found[:more])
        turn += 1
    for i in range(more):
        begin, end = firsts[i] + turn, firsts[i] + lengths[i]
        if begin < end:
            ufunc(found[i], _reduce_block(ufunc, rows[begin:end]), out=found[i])
    result = np.empty_like(found)
    result[order] = found
    return result


def _reduce_block(ufunc: Any, block: Array) -> Array:
    """All rows of a block combined; short ones several at a time."""
    count, width = block.shape
    if ufunc is np.add and count >= _ADDED_BY_BLAS and block.dtype.char in "fd":
        added: Array = np.ones(count, block.dtype) @ block
        return added
    beside = _LONG_ROW // width
    if beside < 2 or count < 4 * beside:
        result: Array = ufunc.reduce(block, axis=0, dtype=block.dtype)
        return result
    whole = count - count % beside
    wide = block[:whole].reshape(-1, beside * width)
    folded = ufunc.reduce(wide, axis=0, dtype=block.dtype).reshape(beside, width)
    rest = np.concatenate((folded, block[whole:]))
    result = ufunc.reduce(rest, axis=0, dtype=block.dtype)
    return result
