"""Convolutions by the native library (`headrace.native`), where it is there and is faster.

Each function answers None where it is not for them: then XLA's forms are used.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import jax

from headrace import native
from headrace.ops.core.native_call import LEAST_TOGETHER, by_dimension, native_call
from headrace.ops.nn.conv_geometry import (
    Geometry,
    from_channels_last,
    out_shape,
    to_channels_last,
)

#: Passes, as `operations.h` numbers them.
_FORWARD, _INPUT, _FILTER = range(3)
#: Fewer multiplications take less time than handing them over.
_LEAST = 1 << 17
#: Input gradients of so many channels at most are XLA's.
_FEW_CHANNELS = 4


def forward(x: jax.Array, w: jax.Array, geo: Geometry) -> jax.Array | None:
    """The convolution of `x` (any data format) with `w`, of the format of `x`."""
    y = _called(_FORWARD, x.shape, w.shape, geo, to_channels_last(x, geo), w)
    return None if y is None else from_channels_last(y, geo)


def input_gradient(
    x_shape: tuple[int, ...], w: jax.Array, dy: jax.Array, geo: Geometry
) -> jax.Array | None:
    """The gradient for the input, of shape `x_shape`."""
    dx = _called(_INPUT, x_shape, w.shape, geo, w, to_channels_last(dy, geo))
    return None if dx is None else from_channels_last(dx, geo)


def filter_gradient(
    x: jax.Array, w_shape: tuple[int, ...], dy: jax.Array, geo: Geometry
) -> jax.Array | None:
    """The gradient for the filter, of shape `w_shape`."""
    operands = to_channels_last(x, geo), to_channels_last(dy, geo)
    return _called(_FILTER, x.shape, w_shape, geo, *operands)


def _called(
    part: int,
    x_shape: Sequence[int],
    w_shape: Sequence[int],
    geo: Geometry,
    first: jax.Array,
    second: jax.Array,
) -> jax.Array | None:
    if not geo.cpu or native.library() is None:
        return None
    if _is_slow(part, w_shape, first.dtype.name, geo):
        return None
    if not all(isinstance(n, int) for n in [*x_shape, *w_shape, *first.shape]):
        return None
    y_shape = out_shape(x_shape, w_shape, geo)
    work = math.prod(y_shape) * math.prod(w_shape[:-1])
    if work < _LEAST:
        return None
    last = (0, *range(2, geo.rank + 2), 1)
    result = {_FORWARD: y_shape, _INPUT: tuple(x_shape), _FILTER: tuple(w_shape)}[part]
    if part != _FILTER and not geo.channels_last:
        result = tuple(result[axis] for axis in last)
    numbers = _numbers(part, x_shape, w_shape, geo)
    threads = 1 if work < LEAST_TOGETHER else 0
    return native_call(native.CONVOLUTION, numbers, (first, second), result, threads)


def _is_slow(part: int, w_shape: Sequence[int], dtype: str, geo: Geometry) -> bool:
    """Input gradients for which oneDNN 3.2 takes longer than XLA's forms.

    Depthwise ones that are dilated, or have several channels for one, take 2 to 7 times as long. In
    float32 those of few channels, and those whose taps meet each element once at most (one tap,
    patches), take 1.1 to 3 times as long: they are matrix products.
    """
    if part != _INPUT:
        return False
    if geo.groups > 1:
        several = w_shape[-1] > geo.groups
        return w_shape[-2] == 1 and (max(geo.dilations) > 1 or several)
    apart = all(k <= s for k, s in zip(w_shape, geo.strides, strict=False))
    return dtype == "float32" and (apart or w_shape[-2] <= _FEW_CHANNELS)


def _numbers(
    part: int, x_shape: Sequence[int], w_shape: Sequence[int], geo: Geometry
) -> tuple[int, ...]:
    """The geometry as `operations.h` describes it, after the type of the elements."""
    spatial = slice(1, -1) if geo.channels_last else slice(2, None)
    channels = x_shape[-1] if geo.channels_last else x_shape[1]
    before, after = zip(*geo.pads, strict=True)
    sizes = by_dimension(
        x_shape[spatial],
        w_shape[: geo.rank],
        out_shape(x_shape, w_shape, geo)[spatial],
        geo.strides,
        geo.dilations,
        before,
        after,
    )
    return (part, geo.rank, x_shape[0], geo.groups, channels, w_shape[-1], *sizes)
