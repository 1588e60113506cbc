"""Filters that cover a whole dimension without padding meet it in one place.

A filter of words by a whole embedding is one: along that dimension the usual input gradient meets
each element of a filter of n with n places, all but one of which are padding. Here such a dimension
becomes channels; what is left of it has one element.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import jax

from headrace.ops.nn.conv_geometry import Geometry


def dimensions(sizes: Sequence[int], kernel: Sequence[int], geo: Geometry) -> tuple[int, ...]:
    """The spatial dimensions, of more than one element, that a filter covers."""
    rows = enumerate(zip(sizes, kernel, geo.pads, geo.dilations, strict=True))
    return tuple(i for i, (n, k, pad, d) in rows if n == k > 1 and not any(pad) and d == 1)


def shape_as_channels(shape: Sequence[int], covered: Sequence[int]) -> tuple[int, ...]:
    """The shape of an input, channels last, once these dimensions are channels."""
    spatial = [1 if i in covered else n for i, n in enumerate(shape[1:-1])]
    return (shape[0], *spatial, shape[-1] * math.prod(shape[1 + i] for i in covered))


def filter_as_channels(w: jax.Array, covered: Sequence[int]) -> jax.Array:
    """The filter for such an input."""
    rank = w.ndim - 2
    kept = [i for i in range(rank) if i not in covered]
    spatial = [1 if i in covered else n for i, n in enumerate(w.shape[:rank])]
    return w.transpose(*kept, *covered, rank, rank + 1).reshape(*spatial, -1, w.shape[-1])


def geometry_as_channels(geo: Geometry, covered: Sequence[int]) -> Geometry:
    """The geometry of that convolution, channels last: one step along these dimensions."""
    strides = tuple(1 if i in covered else s for i, s in enumerate(geo.strides))
    return replace(geo, strides=strides, channels_last=True)


def channels_as_dimensions(x: jax.Array, shape: Sequence[int], covered: Sequence[int]) -> jax.Array:
    """The input of the first shape, channels last, out of one with channels for dimensions."""
    rank = len(shape) - 2
    order = [i for i in range(rank) if i not in covered] + list(covered)
    apart = x.reshape(shape[0], *(shape[1 + i] for i in order), shape[-1])
    places = [1 + order.index(i) for i in range(rank)]
    return apart.transpose(0, *places, rank + 1)
