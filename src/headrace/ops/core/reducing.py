"""Reductions in vectors, on CPUs.

XLA reduces a row to one number element by element: it may not change the order, so each addition
waits for the one before it, and a core does a tenth of what it could. Here the row is folded first,
into sums of at most 32 elements side by side. The order depends on the shape alone, and sums of
many parts round less than one long sum. A barrier keeps the steps apart: XLA would make one
reduction of them again.

What is reduced is computed on the way, as long as no more than 32 elements become one: XLA writes
it to memory first otherwise, by a kernel of its own. The sum of the squares of [2048, 2048] took
0.88 ms so, and takes 0.17; that of the columns of ``exp(x)`` of [200000, 16] 1.6 and 0.57.

Several dimensions that lie beside each other are one: XLA's loops over more than one are 10 to 40
times as long.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax import lax

from headrace.ops.core.barrier import barrier

#: ``reduce(x, axes)``, one of `lax.reduce_sum` and its kin: the order must not matter.
Reduce = Callable[[Any, tuple[int, ...]], Any]
#: Neighbouring dimensions of the same kind: whether they are reduced, and their sizes.
Runs = list[tuple[bool, list[int]]]

#: How many elements become one in the first step, at most: of more XLA does not compute on the way.
_MOST = 32
#: Lanes are chosen such that it is so many at least, if that can be.
_FEWEST = 16
#: Of fewer a step is not worth its kernel.
_WORTH = 7
#: How many partial results lie side by side, the best first: vectors of AVX-512 or AVX2.
_LANES = (64, 32, 16, 48, 40, 28, 24, 20, 12, 10, 8)
#: The same where none of these leaves steps that are long enough.
_ANY_LANES = (16, 32, 8, 24, 12, 20, 10, 40, 28)
#: Shorter rows are not folded.
_LEAST_ROW = 64
#: So many partial results are folded once more.
_MANY = 4096
#: Fewer elements take no time in any form, and one kernel less to compile.
_LEAST = 1 << 13
#: From so many on cores share the work.
_LEAST_SHARED = 1 << 17
#: So few are put together one by one.
_FEW = 4
#: What each reduction makes of two arrays.
_PAIRS: dict[Any, Callable[[Any, Any], Any]] = {
    lax.reduce_sum: lax.add,
    lax.reduce_prod: lax.mul,
    lax.reduce_max: lax.max,
    lax.reduce_min: lax.min,
}
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
    longer = [i for i, size in enumerate(shape) if size != 1]
    grouped = itertools.groupby(longer, axes.__contains__)
    runs = [(is_reduced, [shape[i] for i in run]) for is_reduced, run in grouped]
    x = lax.reshape(x, [math.prod(sizes) for _, sizes in runs])
    if len(runs) > 2 and _is_few(runs) and reduce in _PAIRS:
        return lax.reshape(_reduce_few(_PAIRS[reduce], x, runs), _left(shape, axes))
    # The last run first: it lies side by side, and makes the least of the others.
    for position in reversed(range(len(runs))):
        if runs[position][0]:
            if position < len(runs) - 2:
                x = barrier(x)
            x = _reduce_run(reduce, x, position, runs[position][1])
    return lax.reshape(x, _left(shape, axes))


def _left(shape: tuple[int, ...], axes: tuple[int, ...]) -> list[int]:
    return [size for i, size in enumerate(shape) if i not in axes]


def _is_few(runs: Runs) -> bool:
    """Whether next to nothing becomes one, and of whole rows."""
    count = math.prod(size for is_reduced, sizes in runs if is_reduced for size in sizes)
    return count <= _FEW and not runs[-1][0]


def _reduce_few(pair: Callable[[Any, Any], Any], x: Any, runs: Runs) -> Any:
    """Element by element, rather than in a loop over each run: gradients of tiles are such sums."""
    choices = [
        range(math.prod(sizes)) if is_reduced else (slice(None),) for is_reduced, sizes in runs
    ]
    return functools.reduce(pair, [x[place] for place in itertools.product(*choices)])


def _is_large(x: Any) -> bool:
    """Whether vectors pay. Of sizes without numbers, as in programs that are exported, nobody knows
    whether they can be divided."""
    if not all(isinstance(size, int) for size in x.shape):
        return False
    return x.size >= _LEAST and jax.default_backend() == "cpu"


def _reduce_run(reduce: Reduce, x: Any, axis: int, sizes: list[int]) -> Any:
    """Reduce one dimension, which was several of these sizes."""
    length, lead, beside = x.shape[axis], x.shape[:axis], x.shape[axis + 1 :]
    if x.size < _LEAST or length < (_MOST if beside else _LEAST_ROW):
        return reduce(x, (axis,))
    if beside:
        return _reduce_columns(reduce, x, axis, sizes)
    step, lanes = _cut(sizes)
    if lanes == 1:
        # Nothing divides it: the last of the dimensions by itself, if it is long.
        parts = len(sizes) > 1 and sizes[-1] >= _FEWEST
        return _reduce_last(reduce, x, axis, sizes) if parts else reduce(x, (axis,))
    x = lax.reshape(x, (*lead, length // lanes // step, step, lanes))
    left = length // step
    folded = lax.reshape(barrier(reduce(x, (axis + 1,))), (*lead, left))
    return _reduce_run(reduce, folded, axis, [left]) if left >= _MANY else reduce(folded, (axis,))


def _reduce_columns(reduce: Reduce, x: Any, axis: int, sizes: list[int]) -> Any:
    """Reduce a dimension that is not the last one; it was several of these sizes."""
    length, lead, beside = x.shape[axis], x.shape[:axis], x.shape[axis + 1 :]
    if len(sizes) == 1 and x.size < _LEAST_SHARED:
        return reduce(x, (axis,))
    step = _step_within(sizes)
    if step >= _WORTH:
        folded = reduce(lax.reshape(x, (*lead, length // step, step, *beside)), (axis + 1,))
        return reduce(barrier(folded), (axis,))
    return reduce(x, (axis,)) if len(sizes) == 1 else _reduce_last(reduce, x, axis, sizes)


def _reduce_last(reduce: Reduce, x: Any, axis: int, sizes: list[int]) -> Any:
    """Reduce the last of several dimensions that are one, and then the others."""
    shape = (*x.shape[:axis], x.shape[axis] // sizes[-1], sizes[-1], *x.shape[axis + 1 :])
    folded = barrier(reduce(lax.reshape(x, shape), (axis + 1,)))
    return _reduce_run(reduce, folded, axis, sizes[:-1])


def _cut(sizes: list[int]) -> tuple[int, int]:
    """How many elements of a row become one in the first step, and how many such lie side by side;
    1 if there is no such step. The row has all of several dimensions."""
    lanes = _lanes(sizes[-1])
    if lanes > 1:
        return _step(sizes[-1] // lanes), lanes
    step = _step_within(sizes[:-1])
    if sizes[-1] >= _LANES[-1] and step >= _WORTH:
        return step, sizes[-1]
    length = math.prod(sizes)
    lanes = _lanes(length) if len(sizes) > 1 else 1
    if lanes == 1:
        lanes = next((n for n in _ANY_LANES if length % n == 0), 1)
    return _step(length // lanes), lanes


def _lanes(length: int) -> int:
    """How many partial results side by side leave long steps; 1 if there is no such divisor."""
    fits = (n for n in _LANES if length % n == 0 and _FEWEST <= _step(length // n) <= _MOST)
    return next(fits, 1)


def _step(length: int) -> int:
    """How many of so many elements become one in the first step: a divisor, all if there is none
    that is worth it."""
    step = _divisor(length, _MOST)
    return step if step >= _WORTH else length


def _step_within(sizes: list[int]) -> int:
    """The same for the last of several dimensions, and as many before it as it has all of; any
    divisor. Steps that end in the middle of another one are ten times as slow, now and then."""
    step = 1
    for size in reversed(sizes):
        part = _divisor(size, _MOST // step)
        step *= part
        if part < size:
            break
    return step


def _divisor(length: int, most: int) -> int:
    return max(n for n in range(1, most + 1) if length % n == 0)


def extreme_in_vectors(reduce: Reduce, x: Any, axes: tuple[int, ...]) -> Any:
    """`in_vectors` for `lax.reduce_max` and `lax.reduce_min`, which XLA finds slowly in short rows,
    too."""
    axis = len(x.shape) - 1
    if axes != (axis,) or not _is_large(x) or x.shape[axis] > _HALVED:
        return in_vectors(reduce, x, axes)
    while x.shape[axis] > 1 and x.shape[axis] % 2 == 0:
        half = x.shape[axis] // 2
        first = lax.slice_in_dim(x, 0, half, axis=axis)
        x = _PAIRS[reduce](first, lax.slice_in_dim(x, half, 2 * half, axis=axis))
    return reduce(x, axes)


def position_in_vectors(plain: Callable[..., Any], reduce: Reduce, x: Any, axis: int) -> Any:
    """Where along an axis the first of the largest or the least elements is, as int32.

    XLA carries value and place through one reduction, element by element. Along columns two take a
    third of the time: which it is, and where that is first. Of rows the places would be written.

    Args:
        plain: `lax.argmax` or `lax.argmin`.
        reduce: `lax.reduce_max` or `lax.reduce_min`.
        x: without NaN.
    """
    if axis == len(x.shape) - 1 or not _is_large(x):
        return plain(x, axis, np.int32)
    best = lax.expand_dims(extreme_in_vectors(reduce, x, (axis,)), (axis,))
    places = lax.broadcasted_iota(np.int32, x.shape, axis)
    is_best = lax.eq(x, lax.broadcast_in_dim(best, x.shape, range(len(x.shape))))
    places = lax.select(is_best, places, lax.full_like(places, x.shape[axis]))
    return extreme_in_vectors(lax.reduce_min, places, (axis,))


__all__ = ["Reduce", "extreme_in_vectors", "in_vectors", "position_in_vectors"]
