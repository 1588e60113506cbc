"""Pools by the native library (`headrace.native`), where it is there and is faster.

Each function answers None where it is not for them: then XLA's forms are used.
"""

from __future__ import annotations

import math

import jax

from headrace import native
from headrace.ops.core.native_call import by_dimension, native_call
from headrace.ops.nn.pool_windows import Windows

#: Parts, as `operations.h` numbers them.
_MAXIMUM, _MEAN, _MAXIMUM_GRADIENT, _MEAN_GRADIENT = range(4)
#: Fewer elements under windows take less time than handing them over, and fewer than these less
#: than waking other threads.
_LEAST, _LEAST_TOGETHER = 1 << 17, 1 << 20


def maximum(x: jax.Array, windows: Windows) -> jax.Array | None:
    """The maximum of each window of `x`."""
    return _called(_MAXIMUM, windows, (x,))


def mean(x: jax.Array, windows: Windows) -> jax.Array | None:
    """The mean of each window of `x`, without what is padding."""
    return _called(_MEAN, windows, (x,))


def maximum_gradient(x: jax.Array, dy: jax.Array, windows: Windows) -> jax.Array | None:
    """The gradient for `x` of `maximum`, given that for its result."""
    return _called(_MAXIMUM_GRADIENT, windows, (x, dy))


def mean_gradient(dy: jax.Array, windows: Windows) -> jax.Array | None:
    """The gradient for the input of `mean`, given that for its result."""
    return _called(_MEAN_GRADIENT, windows, (dy,))


def _called(part: int, windows: Windows, operands: tuple[jax.Array, ...]) -> jax.Array | None:
    rank = len(windows.sizes) - 2
    outer = (0, rank + 1)
    if not 1 <= rank <= 3 or any(
        windows.ksize[axis] != 1 or windows.strides[axis] != 1 or any(windows.pads[axis])
        for axis in outer
    ):
        return None
    if max(windows.dilations) > 1 or min(map(min, windows.pads)) < 0:
        return None
    work = math.prod(windows.out) * math.prod(windows.ksize)
    if work < _LEAST:
        return None
    before, after = zip(*windows.pads, strict=True)
    rows = (windows.sizes, windows.ksize, windows.out, windows.strides, before, after)
    spatial = by_dimension(*(row[1:-1] for row in rows))
    numbers = [part, rank, windows.sizes[0], windows.sizes[-1], *spatial]
    shape = windows.out if part in (_MAXIMUM, _MEAN) else windows.sizes
    threads = 1 if work < _LEAST_TOGETHER else 0
    return native_call(native.POOL, numbers, operands, shape, threads)
