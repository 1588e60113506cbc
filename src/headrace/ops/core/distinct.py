"""Distinct integers of a batch, and sums of the rows that belong to them, on NumPy.

A step of a model with sparse features does both for some ten thousand ids, several times.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Distinct", "distinct_integers", "summed_rows"]

Array = NDArray[Any]

#: Fewer elements are summed by NumPy sooner than SciPy has looked at its arguments.
_FEW_ELEMENTS = 1 << 12
_LONGEST = 63


class Distinct(NamedTuple):
    """Distinct values in the order in which they first occur.

    Attributes:
        values: each of them once; ``counts``: how often.
        places: of each value of the batch, int64: where it is among these.
    """

    values: Array
    places: Array
    counts: Array


def distinct_integers(values: Array) -> Distinct | None:
    """The distinct ones of integers ``values`` ``[n]``; None where they lie too far apart.

    One sort of numbers that have the value above and the position below: NumPy sorts integers ten
    times as fast as it sorts their positions.

    >>> import numpy as np
    >>> distinct_integers(np.array([7, -1, 7, 3, -1])).values.tolist()
    [7, -1, 3]
    """
    count = values.size
    if not count:
        none = np.zeros(0, np.int64)
        return Distinct(values, none, none)
    lowest, highest = int(values.min()), int(values.max())
    shift = (count - 1).bit_length()
    if (highest - lowest).bit_length() + shift > _LONGEST:
        return None
    wide = values if values.dtype.itemsize == 8 else values.astype(np.int64)
    packed = (wide - wide.dtype.type(lowest)).astype(np.int64)
    packed <<= shift
    packed |= np.arange(count)
    packed.sort()
    at = packed & ((1 << shift) - 1)
    packed >>= shift
    is_first = np.empty(count, np.bool_)
    is_first[0] = True
    np.not_equal(packed[1:], packed[:-1], out=is_first[1:])
    begins = np.flatnonzero(is_first)
    firsts = at[begins]
    occurs_first = np.zeros(count, np.bool_)
    occurs_first[firsts] = True
    rank = np.cumsum(occurs_first)[firsts] - 1
    places, counts = np.empty(count, np.int64), np.empty(len(begins), np.int64)
    times = np.diff(begins, append=count)
    places[at] = np.repeat(rank, times)
    counts[rank] = times
    return Distinct(values[occurs_first], places, counts)


def summed_rows(rows: Array, places: Array, count: int) -> Array:
    """``[count, ...]``: at each place the sum of its ``rows`` ``[n, ...]``, one after another.

    Args:
        places: integers ``[n]``, at least 0 and below ``count``.
    """
    result = np.zeros((count, *rows.shape[1:]), rows.dtype)
    few = rows.size < _FEW_ELEMENTS or rows.ndim < 2 or rows.dtype.kind not in "iufc"
    if few or rows.dtype.itemsize < 4:
        np.add.at(result, places, rows)
        return result
    from scipy.sparse import csc_array  # type: ignore[import-untyped]

    # A matrix with a one for each row: SciPy adds up rows where NumPy adds up elements.
    n = len(rows)
    ones = np.ones(n, rows.dtype)
    matrix = csc_array((ones, places, np.arange(n + 1)), shape=(count, n))
    summed: Array = (matrix @ rows.reshape(n, -1)).reshape(result.shape)
    return summed
