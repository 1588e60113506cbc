"""Three-dimensional convolutions as two-dimensional ones.

What the depth taps of an output element meet can as well be further channels: a convolution of
depth k over c channels is a flat one over k * c channels, of as many images as the output has
layers. XLA's CPU library has a fast convolution for two dimensions only.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax


def layers(
    x: jax.Array, taps: int, outputs: int, pads: tuple[int, int], stride: int, dilation: int
) -> jax.Array:
    """[batch, depth, h, w, c] to [batch * outputs, h, w, taps * c]."""
    none = (0, 0, 0)
    padded = lax.pad(x, jnp.zeros((), x.dtype), [none, (*pads, 0), none, none, none])
    starts = [tap * dilation for tap in range(taps)]
    met = [
        lax.slice_in_dim(padded, at, at + (outputs - 1) * stride + 1, stride, 1) for at in starts
    ]
    joined = jnp.concatenate(met, -1)
    return joined.reshape(-1, *joined.shape[2:])


def flat_filter(w: jax.Array) -> jax.Array:
    """[kd, kh, kw, c, outputs] to [kh, kw, kd * c, outputs]."""
    kd, kh, kw, channels, outputs = w.shape
    return jnp.moveaxis(w, 0, 2).reshape(kh, kw, kd * channels, outputs)
