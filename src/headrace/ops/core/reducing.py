"""Reductions in vectors, on CPUs.

XLA reduces a row to one number element by element: it may not change the order, so each addition
waits for the one before it, and a core does a tenth of what it could. Here the row is folded first,
into some sixteen sums side by side (and up to 64 times as many where all elements become one
number, so that cores share them). The order depends on the shape alone, and sums of many parts
round less than one long sum. A barrier keeps the steps apart: XLA would make one reduction of them
again. What is reduced is still computed on the way.

Several dimensions that lie beside each other are one: XLA's loops over more than one are 10 to 40
times as long.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax import lax

from headrace.ops.core.barrier import barrier

#: ``reduce(x, axes)``, one of `lax.reduce_sum` and its kin: the order must not matter.
Reduce = Callable[[Any, tuple[int, ...]], Any]

#: How many partial results lie side by side, the best first: vectors of AVX-512 or AVX2.
_LANES = (16, 32, 8, 24, 12, 20, 10, 40, 28)
#: Into how many parts a dimension is cut that was several.
_CUTS = (16, 32, 8, 64, 4, 2)
#: As many such vectors at most where everything becomes one number.
_PARTS = 64
#: Shorter rows are not folded.
_LEAST_ROW = 64
#: Fewer elements take no time in any form, and one kernel less to compile.
_LEAST = 1 << 13
#: From so many on cores share the work.
_LEAST_SHARED = 1 << 17
#: Rows of so many are halved to find extremes; sums of so few are fast as they are.
_HALVED = 32


def in_vectors(reduce: Reduce, x: Any, axes: tuple[int, ...]) -> Any:
    """``reduce(x, axes)``, on CPUs by vectors.

    Args:
        axes: from the front, in order.
    """
    if not axes or not _is_large(x):
        return reduce(x, axes)
    shape = x.shape
    grouped = itertools.groupby(range(len(shape)), axes.__contains__)
    runs = [(is_reduced, [shape[i] for i in run]) for is_reduced, run in grouped]
    x = lax.reshape(x, [math.prod(sizes) for _, sizes in runs])
    # The last run first: it lies side by side, and makes the least of the others.
    for position in reversed(range(len(runs))):
        if runs[position][0]:
            if position < len(runs) - 2:
                x = barrier(x)
            x = _reduce_run(reduce, x, position, runs[position][1])
    return lax.reshape(x, [size for i, size in enumerate(shape) if i not in axes])


def _is_large(x: Any) -> bool:
    """Whether vectors pay. Of sizes without numbers, as in programs that are exported, nobody knows
    whether they can be divided."""
    if not all(isinstance(size, int) for size in x.shape):
        return False
    return x.size >= _LEAST and jax.default_backend() == "cpu"


def _reduce_run(reduce: Reduce, x: Any, axis: int, sizes: list[int]) -> Any:
    """Reduce one dimension, which was several of these sizes."""
    length, lead, beside = x.shape[axis], x.shape[:axis], x.shape[axis + 1 :]
    if x.size < _LEAST or length < _LEAST_ROW:
        return reduce(x, (axis,))
    if beside:
        # XLA would see that the dimension was several, and take them apart again: it is cut where
        # none of them ends.
        ends = list(itertools.accumulate(sizes, operator.mul))
        parts = next((n for n in _CUTS if length % n == 0 and n not in ends), 1)
        if len(ends) == 1 or parts == 1:
            return reduce(x, (axis,))
        folded = reduce(lax.reshape(x, (*lead, parts, length // parts, *beside)), (axis + 1,))
        return reduce(barrier(folded), (axis,))
    lanes = next((n for n in _LANES if length % n == 0), 1)
    if lanes == 1 and len(sizes) > 1 and sizes[-1] >= _LANES[0]:
        x = lax.reshape(x, (*lead, length // sizes[-1], sizes[-1]))
        folded = _reduce_run(reduce, x, axis, sizes[:-1])
        return reduce(barrier(folded), (axis,))
    if lanes == 1:
        return reduce(x, (axis,))
    rows = length // lanes
    parts = math.gcd(rows, _PARTS) if x.size == length >= _LEAST_SHARED else 1
    x = lax.reshape(x, (*lead, parts, rows // parts, lanes))
    folded = barrier(reduce(x, (axis + 1,)))
    return reduce(lax.reshape(folded, (*lead, parts * lanes)), (axis,))


def extreme_in_vectors(reduce: Reduce, pair: Callable[[Any, Any], Any], x: Any, axes: Any) -> Any:
    """The same for the largest or the least, which XLA finds slowly in short rows, too.

    Args:
        pair: that of two arrays.
    """
    axis = len(x.shape) - 1
    if axes != (axis,) or not _is_large(x) or x.shape[axis] > _HALVED:
        return in_vectors(reduce, x, axes)
    while x.shape[axis] > 1 and x.shape[axis] % 2 == 0:
        half = x.shape[axis] // 2
        first = lax.slice_in_dim(x, 0, half, axis=axis)
        x = pair(first, lax.slice_in_dim(x, half, 2 * half, axis=axis))
    return reduce(x, axes)


def position_in_vectors(
    plain: Callable[..., Any], reduce: Reduce, pair: Callable[[Any, Any], Any], x: Any, axis: int
) -> Any:
    """Where along an axis the first of the largest or the least elements is, as int32.

    XLA carries value and place through one reduction, element by element. Along columns two take a
    third of the time: which it is, and where that is first. Of rows the places would be written.

    Args:
        plain: `lax.argmax` or `lax.argmin`.
        reduce: that of all elements.
        pair: that of two arrays.
        x: without NaN.
    """
    if axis == len(x.shape) - 1 or not _is_large(x):
        return plain(x, axis, np.int32)
    best = lax.expand_dims(extreme_in_vectors(reduce, pair, x, (axis,)), (axis,))
    places = lax.broadcasted_iota(np.int32, x.shape, axis)
    is_best = lax.eq(x, lax.broadcast_in_dim(best, x.shape, range(len(x.shape))))
    places = lax.select(is_best, places, lax.full_like(places, x.shape[axis]))
    return extreme_in_vectors(lax.reduce_min, lax.min, places, (axis,))


__all__ = ["Reduce", "extreme_in_vectors", "in_vectors", "position_in_vectors"]
