"""The Box-Muller transform: pairs of random words to pairs of normal numbers.

Single precision is computed through float64 and rounded: with a 23-bit angle and a 23-bit radius
the result is a function of few enough values to be held against the C library's for all of them
(`tests/ops/test_philox.py`), so that a faster sine may take its place.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from numpy.typing import NDArray

from headrace.ops.kernels.philox import x64_enabled

SMALLEST_UNIFORM = 1.0e-7  # log(0) is kept away
_TWO_PI = 2.0 * math.pi
_MANTISSA = 23
_STEPS = 512  # entries of the table of sines for an angle of 1

Doubles = NDArray[np.float64]


# Uniform numbers of words -----------------------------------------------------------------------


def unit_single_np(words: NDArray[np.uint32]) -> NDArray[np.float32]:
    """float32 in [0, 1) from the low 23 bits: they become the mantissa of a number in [1, 2)."""
    pattern = words & np.uint32(0x7FFFFF)
    pattern |= np.uint32(0x3F800000)
    result = pattern.view(np.float32)
    result -= np.float32(1)
    return result


def unit_double_np(high: NDArray[np.uint32], low: NDArray[np.uint32]) -> Doubles:
    """float64 in [0, 1): 20 bits of `high`, then the 32 of `low`."""
    pattern = (high & np.uint32(0xFFFFF)).astype(np.uint64)
    pattern <<= np.uint64(32)
    pattern |= low
    pattern |= np.uint64(0x3FF << 52)
    result = pattern.view(np.float64)
    result -= 1.0
    return result


def unit_single_jax(words: jax.Array) -> jax.Array:
    """`unit_single_np` for traced words."""
    pattern = (words & np.uint32(0x7FFFFF)) | np.uint32(0x3F800000)
    return lax.bitcast_convert_type(pattern, jnp.float32) - np.float32(1)


def unit_double_jax(high: jax.Array, low: jax.Array) -> jax.Array:
    """`unit_double_np` for traced words; RuntimeError without 64-bit types."""
    require_x64("float64")
    mantissa = (high & np.uint32(0xFFFFF)).astype(jnp.uint64) << np.uint64(32)
    pattern = mantissa | low.astype(jnp.uint64) | np.uint64(0x3FF << 52)
    return lax.bitcast_convert_type(pattern, jnp.float64) - np.float64(1)


def require_x64(what: str) -> None:
    """RuntimeError where `what` is traced without 64-bit types."""
    if not x64_enabled():
        raise RuntimeError(
            f"{what} random numbers in a compiled region need 64-bit types: trace the region "
            "inside jax.enable_x64(True)"
        )


# NumPy ------------------------------------------------------------------------------------------


def box_muller_np(first: NDArray[Any], second: NDArray[Any], out: NDArray[np.float32]) -> None:
    """Words of 32 bits, in unsigned arrays [n] of any width, -> `out` float32[n, 2].

    A pair is (sine, cosine) of an angle, from the second word, times a radius, from the first.
    """
    radius_in = _mantissa(first)
    radius_in *= 2.0**-_MANTISSA
    np.maximum(radius_in, float(np.float32(SMALLEST_UNIFORM)), out=radius_in)
    np.log(radius_in, out=radius_in)
    radius = radius_in.astype(np.float32)
    radius *= np.float32(-2)
    np.sqrt(radius, out=radius)
    angle = _mantissa(second)
    angle *= _TWO_PI * 2.0**-_MANTISSA
    sine, cosine = sine_and_cosine(angle.astype(np.float32))
    np.multiply(sine, radius, out=out[:, 0])
    np.multiply(cosine, radius, out=out[:, 1])


def _mantissa(words: NDArray[Any]) -> Doubles:
    """The low 23 bits as numbers."""
    low: Doubles = (words & words.dtype.type((1 << _MANTISSA) - 1)).astype(np.float64)
    return low


def sine_and_cosine(
    angle: NDArray[np.float32],
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Sine and cosine of angles in [0, 2 pi], rounded from float64.

    By a table and the first terms of Taylor's series around its nearest entry: twice as fast as the
    C library's functions, which NumPy calls element by element.
    """
    table_sine, table_cosine = _table()
    rest = angle.astype(np.float64)
    rest *= _STEPS
    nearest = np.rint(rest)
    rest -= nearest  # exact, as the entries lie at multiples of a power of two
    index = nearest.astype(np.intp)
    square = rest * rest
    step = 1.0 / _STEPS
    small_sine = square * (-(step**3) / 6.0)
    small_sine += step
    small_sine *= rest
    less_than_one = square * (step**4 / 24.0)
    less_than_one += -(step**2) / 2.0
    less_than_one *= square
    at_sine, at_cosine = table_sine.take(index), table_cosine.take(index)
    sine = at_sine * less_than_one
    sine += np.multiply(at_cosine, small_sine, out=rest)
    sine += at_sine
    less_than_one *= at_cosine
    small_sine *= at_sine
    less_than_one -= small_sine
    less_than_one += at_cosine
    return sine.astype(np.float32), less_than_one.astype(np.float32)


@functools.cache
def _table() -> tuple[Doubles, Doubles]:
    angles = np.arange(int(_TWO_PI * _STEPS) + 2) / _STEPS
    return np.sin(angles), np.cos(angles)


def box_muller_double_np(words: NDArray[np.uint32], out: Doubles) -> None:
    """uint32[n, 4] -> float64[n, 2]."""
    radius = np.maximum(unit_double_np(words[:, 0], words[:, 1]), SMALLEST_UNIFORM)
    np.log(radius, out=radius)
    radius *= -2.0
    np.sqrt(radius, out=radius)
    angle = unit_double_np(words[:, 2], words[:, 3])
    angle *= _TWO_PI
    np.multiply(np.sin(angle), radius, out=out[:, 0])
    np.multiply(np.cos(angle), radius, out=out[:, 1])


# JAX --------------------------------------------------------------------------------------------


def box_muller_jax(words: Sequence[jax.Array]) -> tuple[jax.Array, jax.Array]:
    """Two arrays of words -> the two normal numbers of each pair, float32."""
    wide = jnp.float64 if x64_enabled() else jnp.float32
    angle = unit_single_jax(words[1]).astype(wide) * wide(_TWO_PI)
    angle = angle.astype(jnp.float32).astype(wide)
    radius_in = jnp.maximum(unit_single_jax(words[0]), np.float32(SMALLEST_UNIFORM))
    log_radius = jnp.log(radius_in.astype(wide)).astype(jnp.float32)
    radius = jnp.sqrt(np.float32(-2) * log_radius)
    sine, cosine = jnp.sin(angle), jnp.cos(angle)
    return sine.astype(jnp.float32) * radius, cosine.astype(jnp.float32) * radius


def box_muller_double_jax(words: Sequence[jax.Array]) -> tuple[jax.Array, jax.Array]:
    """Four arrays of words -> the two normal numbers of each pair, float64."""
    radius_in = jnp.maximum(unit_double_jax(words[0], words[1]), SMALLEST_UNIFORM)
    radius = jnp.sqrt(-2.0 * jnp.log(radius_in))
    angle = unit_double_jax(words[2], words[3]) * _TWO_PI
    return jnp.sin(angle) * radius, jnp.cos(angle) * radius
