"""The Box-Muller transform: pairs of random words to pairs of normal numbers.

Single precision is computed through float64 and rounded: with a 23-bit angle and a 23-bit radius
the result is a function of few enough values to be held against the C library's for all of them
(`tests/ops/random/test_philox.py`), so that a faster sine may take its place.
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

from headrace.ops.random.philox import Blocks, State, x64_enabled

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


class Normals:
    """Normal numbers of up to `size` blocks at a time, in memory that is used again."""

    def __init__(self, size: int) -> None:
        self._blocks = Blocks(size)
        self._wide = np.empty((3, 2, size))
        self._narrow = np.empty((2, 2, size), np.float32)

    def draw(
        self,
        state: State,
        offsets: NDArray[np.uint64],
        out: NDArray[Any],
    ) -> None:
        """The normal numbers of the blocks at `offsets`: `out` is float32[n, 4] or float64[n, 2].

        Neighbours are (sine, cosine) of an angle, from the second word or half of a block, times
        a radius, from the first.
        """
        self._blocks.draw(state, offsets)
        if out.dtype == np.float64:
            self._fill_double(out)
        else:
            self._fill_single(out)

    def _fill_single(self, out: NDArray[Any]) -> None:
        count = len(out)
        first, second = _unit_mantissa(self._blocks.even), _unit_mantissa(self._blocks.odd)
        radius, narrow = self._narrow[:, :, :count]
        np.maximum(first, float(np.float32(SMALLEST_UNIFORM)), out=first)
        np.log(first, out=first)
        np.copyto(radius, first, casting="same_kind")
        radius *= np.float32(-2)
        np.sqrt(radius, out=radius)
        second *= _TWO_PI
        np.copyto(narrow, second, casting="same_kind")  # the angle in single precision
        np.copyto(second, narrow)
        memory = (first, self._blocks.spare, *self._wide[:, :, :count])
        for i, part in enumerate(sine_and_cosine(second, memory)):
            np.copyto(narrow, part, casting="same_kind")
            for pair in range(2):
                np.multiply(narrow[pair], radius[pair], out=out[:, 2 * pair + i])

    def _fill_double(self, out: Doubles) -> None:
        radius, angle = unit_doubles_in_place(self._blocks.even, self._blocks.odd)
        box_muller_double(radius, angle, self._blocks.spare[0].view(np.float64), out)


def _unit_mantissa(words: NDArray[np.uint64]) -> Doubles:
    """The low 23 bits as a fraction, in the same memory."""
    # As the last bits of a double whose last place is worth 2 ** -23.
    shift = np.float64(2.0 ** (52 - _MANTISSA))
    words &= np.uint64((1 << _MANTISSA) - 1)
    words |= shift.view(np.uint64)
    fraction = words.view(np.float64)
    fraction -= shift
    return fraction


def unit_doubles_in_place(high: NDArray[np.uint64], low: NDArray[np.uint64]) -> Doubles:
    """`unit_double_np` in the memory of `high`."""
    high &= np.uint64(0xFFFFF)
    high <<= np.uint64(32)
    high |= low
    high |= np.uint64(0x3FF << 52)
    result = high.view(np.float64)
    result -= 1.0
    return result


def sine_and_cosine(angle: Doubles, memory: Sequence[NDArray[Any]]) -> tuple[Doubles, Doubles]:
    """Sine and cosine of angles in [0, 2 pi].

    By a table and the first terms of Taylor's series around its nearest entry: twice as fast as the
    C library's functions, which NumPy calls element by element. Rounded to single precision they
    are those of the C library for all angles that a word can give.

    Args:
        angle: overwritten.
        memory: five arrays of its shape and of 64-bit elements, overwritten.
    """
    square, nearest, small_sine, less_than_one, at_sine = (m.view(np.float64) for m in memory)
    table_sine, table_cosine = _table()
    rest = angle
    rest *= _STEPS
    np.rint(rest, out=nearest)
    rest -= nearest  # exact, as the entries lie at multiples of a power of two
    index = at_sine.view(np.int64)
    np.copyto(index, nearest, casting="unsafe")
    step = 1.0 / _STEPS
    np.multiply(rest, rest, out=square)
    np.multiply(square, -(step**3) / 6.0, out=small_sine)
    small_sine += step
    small_sine *= rest
    np.multiply(square, step**4 / 24.0, out=less_than_one)
    less_than_one += -(step**2) / 2.0
    less_than_one *= square
    at_cosine = table_cosine.take(index, out=rest, mode="clip")
    at_sine = table_sine.take(index, out=nearest, mode="clip")
    sine, product = np.multiply(at_sine, less_than_one, out=square), index.view(np.float64)
    sine += np.multiply(at_cosine, small_sine, out=product)
    sine += at_sine
    less_than_one *= at_cosine
    small_sine *= at_sine
    less_than_one -= small_sine
    less_than_one += at_cosine
    return sine, less_than_one


@functools.cache
def _table() -> tuple[Doubles, Doubles]:
    angles = np.arange(int(_TWO_PI * _STEPS) + 2) / _STEPS
    return np.sin(angles), np.cos(angles)


def box_muller_double_np(words: NDArray[np.uint32], out: Doubles) -> None:
    """uint32[n, 4] -> float64[n, 2]."""
    radius, angle = (unit_double_np(words[:, i], words[:, i + 1]) for i in (0, 2))
    box_muller_double(radius, angle, np.empty_like(angle), out)


def box_muller_double(radius: Doubles, angle: Doubles, memory: Doubles, out: Doubles) -> None:
    """Two uniform numbers each, overwritten as is `memory`, -> float64[n, 2]."""
    np.maximum(radius, SMALLEST_UNIFORM, out=radius)
    np.log(radius, out=radius)
    radius *= -2.0
    np.sqrt(radius, out=radius)
    angle *= _TWO_PI
    np.multiply(np.sin(angle, out=memory), radius, out=out[:, 0])
    np.multiply(np.cos(angle, out=memory), radius, out=out[:, 1])


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
