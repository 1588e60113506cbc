"""Pictures in strips, as more pictures: for the filter's gradient of small batches.

XLA's CPU library contracts over the batch in that gradient, and takes nearly as long for one
picture as for eight: 3x3 of 64 channels on 128x128, 15.8 ms for one. Eight strips of it, which
overlap by what a filter sees of both, take 4.9.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import jax
import jax.numpy as jnp
from jax import lax

from headrace.ops.nn.conv_geometry import Geometry, out_sizes

#: A batch to be had, and the rows of the output that a strip has at least.
_BATCH, _LEAST_STRIP_ROWS = 8, 4
#: It pays for batches of at most so many, and with so many channels of the input for others.
_SMALL_BATCH, _MANY_CHANNELS = 2, 32


def count(x_shape: Sequence[int], w_shape: Sequence[int], geo: Geometry) -> tuple[int, int]:
    """Into how many strips to cut pictures, and along which spatial dimension; 1 for none."""
    sizes = (*x_shape, *w_shape)
    if geo.groups > 1 or not geo.cpu or not all(isinstance(n, int) for n in sizes):
        return 1, 0
    strips = -(-_BATCH // max(x_shape[0], 1))
    pays = x_shape[0] <= _SMALL_BATCH or w_shape[-2] >= _MANY_CHANNELS
    if strips < 2 or not pays:
        return 1, 0
    for axis, out in enumerate(out_sizes(geo.spatial(x_shape), w_shape[: geo.rank], geo)):
        most = out // _LEAST_STRIP_ROWS
        if most > 1:
            return min(strips, most), axis
    return 1, 0


def cut(
    x: jax.Array, w_shape: Sequence[int], dy: jax.Array, geo: Geometry, strips: int, axis: int
) -> tuple[jax.Array, jax.Array, Geometry]:
    """Cut each picture into strips along a spatial dimension, and put those into the batch.

    The filter's gradient stays the same. With `n` rows of output, strip i has rows i * r to
    (i + 1) * r - 1 of `dy`, r = ceil(n / strips), and all rows of `x` that a filter sees for them.

    Args:
        x, dy: the input, and the gradient of the output, in the format of `geo`.
        axis: the spatial dimension, counted from 0.

    Returns:
        Input and gradient, with `strips` times the batch each, and the geometry that fits them: the
        padding along `axis` is part of the input now.
    """
    place = axis + (1 if geo.channels_last else 2)
    (low, _), stride = geo.pads[axis], geo.strides[axis]
    seen = (w_shape[axis] - 1) * geo.dilations[axis] + 1
    rows = -(-dy.shape[place] // strips)
    # Rows that the convolution does not see go, as they may hold NaN; rows of zeros make the last
    # strip as long as the others.
    used = (dy.shape[place] - 1) * stride + seen
    extra = rows * strips - dy.shape[place]
    kept = _padded(x, place, low, used - low - x.shape[place])
    kept = _padded(kept, place, 0, extra * stride)
    long = _padded(dy, place, 0, extra)
    length = (rows - 1) * stride + seen
    starts = [i * rows for i in range(strips)]
    x_strips = [lax.slice_in_dim(kept, i * stride, i * stride + length, axis=place) for i in starts]
    dy_strips = [lax.slice_in_dim(long, i, i + rows, axis=place) for i in starts]
    pads = tuple((0, 0) if i == axis else pad for i, pad in enumerate(geo.pads))
    return jnp.concatenate(x_strips), jnp.concatenate(dy_strips), replace(geo, pads=pads)


def _padded(x: jax.Array, axis: int, low: int, high: int) -> jax.Array:
    config = [(low, high, 0) if i == axis else (0, 0, 0) for i in range(x.ndim)]
    return lax.pad(x, jnp.zeros((), x.dtype), config)


__all__ = ["count", "cut"]
