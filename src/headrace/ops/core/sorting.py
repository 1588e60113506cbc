"""The largest elements of rows and their positions, on NumPy.

NumPy sorts integers of 64 bits by AVX-512 or AVX2, ten times as fast as it or XLA sorts pairs. So
each element becomes one number: what orders it above, its position below. All are distinct, so any
sort is a stable one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from headrace.ops.core.parallel import Work, in_pieces

__all__ = ["largest"]

Array = NDArray[Any]

#: A piece of rows for one thread has about so many elements.
_PIECE = 1 << 15
#: Of rows this many times as long as what is wanted, the rest is not sorted.
_FEW = 4


def largest(x: Array, k: int) -> Array:
    """Positions of the ``k`` largest of each row ``[..., n]``, largest first: int64 ``[..., k]``.

    Equal elements come in their order, any NaN before all numbers, and -0.0 equals 0.0.

    >>> import numpy as np
    >>> largest(np.array([[1.0, np.nan, -0.0, 0.0, 1.0]]), 5).tolist()
    [[1, 0, 4, 2, 3]]
    """
    size = x.shape[-1]
    if k == 0 or not x.size:
        return np.zeros((*x.shape[:-1], k), np.int64)
    rows = x.reshape(-1, size)
    if not _is_short(x.dtype) or size > 1 << 32:
        # A stable ascending sort of the reversed row keeps the first of equal elements in front.
        order = np.argsort(rows[:, ::-1], axis=-1, kind="stable")[:, ::-1][:, :k]
        places: Array = size - 1 - order
        return places.reshape(*x.shape[:-1], k)
    found = np.empty((len(rows), k), np.int64)

    def worker(_: int) -> Work:
        def work(begin: int, end: int) -> None:
            packed = _packed(rows[begin:end])
            if size > _FEW * k:
                packed.partition(k - 1, axis=-1)
                packed = packed[:, :k]
            packed.sort(axis=-1)
            np.bitwise_and(packed[:, :k], 0xFFFFFFFF, out=found[begin:end], casting="unsafe")

        return work

    in_pieces(len(rows), max(1, _PIECE // size), worker)
    return found.reshape(*x.shape[:-1], k)


def _is_short(dtype: Any) -> bool:
    return dtype.itemsize <= 4 and (dtype.kind in "iuf" or dtype.name == "bfloat16")


def _packed(rows: Array) -> Array:
    """Each element as a number: the larger the element, the smaller; the position below."""
    if rows.dtype.kind in "iu":
        keys = np.int64(np.iinfo(np.uint32).max >> (rows.dtype.kind == "i")) - rows
        keys = keys.astype(np.uint64)
    else:
        # As integers floats are in order, those below zero the other way round.
        single = rows.astype(np.float32) + np.float32(0.0)  # no -0.0
        single[np.isnan(single)] = np.nan
        bits = single.view(np.int32)
        flipped = np.where(bits < 0, bits, ~bits & 0x7FFFFFFF)
        keys = flipped.view(np.uint32).astype(np.uint64)
    keys <<= np.uint64(32)
    keys |= np.arange(rows.shape[1], dtype=np.uint64)
    return keys
