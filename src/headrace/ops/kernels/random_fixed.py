"""Distributions that use a fixed number of random words for each output: uniform and normal.

Every function takes the state (see `philox`) that this execution draws from. The `_np` functions
return arrays; the `_jax` functions trace, with the state as a traced uint32[6].

Agreement with TensorFlow's CPU kernels and between the two forms:

- uniform (all dtypes) and integers: the same bits;
- normal: the words and the pairing are the same, the values come from log, sin and cos. float32,
  float16 and bfloat16 are computed through float64 and rounded, so NumPy and XLA agree; the C
  library's single precision functions that TensorFlow calls round differently in about 1.5 % of
  the values, by at most 3 units in the last place. float64: within 4 units.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax import lax
from numpy.typing import DTypeLike, NDArray

from headrace.ops.kernels.philox import (
    State,
    index_jax,
    pieces_jax,
    stream_np,
    x64_enabled,
)

Array = NDArray[Any]
Shape = Sequence[int]

_HALF = np.dtype(np.float16)
_BFLOAT = np.dtype(ml_dtypes.bfloat16)
_SINGLE = np.dtype(np.float32)
_DOUBLE = np.dtype(np.float64)
FLOATS = (_HALF, _BFLOAT, _SINGLE, _DOUBLE)
# Random bits of a uniform number: what the mantissa holds.
_MANTISSA_BITS = {_HALF: 10, _BFLOAT: 7, _SINGLE: 23}
_SMALLEST_UNIFORM = 1.0e-7  # log(0) is kept away from the Box-Muller transform
_TWO_PI = 2.0 * math.pi
_CHUNK = 1 << 14  # pairs at a time, so that the float64 temporaries stay in cache


def float_dtype(dtype: DTypeLike) -> np.dtype[Any]:
    """`dtype` as one of the four floating types that have random kernels; TypeError otherwise."""
    resolved = np.dtype(dtype)
    if resolved not in FLOATS:
        raise TypeError(f"random numbers have a floating dtype here, got {resolved}")
    return resolved


# Uniform ----------------------------------------------------------------------------------------


def uniform_np(state: State, shape: Shape, dtype: DTypeLike) -> Array:
    """Uniform numbers in [0, 1): array of `shape` and `dtype`; TypeError for a dtype not floating.

    float32 uses the low 23 bits of one word, float16 and bfloat16 fewer, float64 two words.
    """
    kind = float_dtype(dtype)
    count = math.prod(shape)
    if kind == _DOUBLE:
        words = stream_np(state, 2 * count).reshape(-1, 2)
        return unit_double_np(words[:, 0], words[:, 1]).reshape(shape)
    words = stream_np(state, count)
    if kind == _SINGLE:
        return unit_single_np(words).reshape(shape)
    bits = _MANTISSA_BITS[kind]
    exact = (words & np.uint32((1 << bits) - 1)).astype(np.float32) * np.float32(2.0**-bits)
    return exact.astype(kind).reshape(shape)


def uniform_jax(state: jax.Array, shape: Shape, dtype: DTypeLike) -> jax.Array:
    """`uniform_np` for a traced state; float64 needs 64-bit types to be enabled."""
    kind = float_dtype(dtype)
    count = math.prod(shape)
    if kind == _DOUBLE:
        high, low = pieces_jax(state, index_jax(count), 2)
        return unit_double_jax(high, low).reshape(tuple(shape))
    (words,) = pieces_jax(state, index_jax(count), 1)
    bits = _MANTISSA_BITS[kind]
    if kind == _SINGLE:
        return unit_single_jax(words).reshape(tuple(shape))
    exact = (words & np.uint32((1 << bits) - 1)).astype(jnp.float32) * np.float32(2.0**-bits)
    return exact.astype(kind).reshape(tuple(shape))


def unit_single_np(words: NDArray[np.uint32]) -> NDArray[np.float32]:
    """float32 in [0, 1) from the low 23 bits: they become the mantissa of a number in [1, 2)."""
    pattern = words & np.uint32(0x7FFFFF)
    pattern |= np.uint32(0x3F800000)
    result = pattern.view(np.float32)
    result -= np.float32(1)
    return result


def unit_double_np(high: NDArray[np.uint32], low: NDArray[np.uint32]) -> NDArray[np.float64]:
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
    _require_x64("float64")
    mantissa = (high & np.uint32(0xFFFFF)).astype(jnp.uint64) << np.uint64(32)
    pattern = mantissa | low.astype(jnp.uint64) | np.uint64(0x3FF << 52)
    return lax.bitcast_convert_type(pattern, jnp.float64) - np.float64(1)


# Uniform integers -------------------------------------------------------------------------------


def uniform_int_np(state: State, shape: Shape, minval: int, maxval: int, dtype: DTypeLike) -> Array:
    """Integers in [minval, maxval), int32 or int64: `minval + word % (maxval - minval)`.

    The remainder is slightly biased towards small values when the range is not a power of two.

    Raises:
      ValueError: `minval >= maxval`.
      TypeError: another dtype.
    """
    kind = _int_dtype(dtype)
    if minval >= maxval:
        raise ValueError(f"Need minval < maxval, got {minval} >= {maxval}")
    words = full_int_np(state, shape, np.uint32 if kind == np.int32 else np.uint64)
    words %= words.dtype.type(int(maxval) - int(minval))
    words += words.dtype.type(int(minval) % (1 << 8 * kind.itemsize))  # wraps as signed does
    return words.view(kind)


def uniform_int_jax(
    state: jax.Array, shape: Shape, minval: jax.Array, maxval: jax.Array, dtype: DTypeLike
) -> jax.Array:
    """`uniform_int_np` with traced scalar bounds. An empty range, which cannot raise inside a
    program, gives `minval`."""
    kind = _int_dtype(dtype)
    unsigned = jnp.uint32 if kind == np.int32 else jnp.uint64
    words = full_int_jax(state, shape, unsigned)
    low = jnp.asarray(minval, kind)
    high = jnp.asarray(maxval, kind)
    width = jnp.where(low < high, (high - low).astype(unsigned), jnp.asarray(1, unsigned))
    return (words % width + low.astype(unsigned)).astype(kind)


def full_int_np(state: State, shape: Shape, dtype: DTypeLike) -> Array:
    """Integers over the whole range of int32, uint32, int64 or uint64; a 64-bit one takes two
    words, the low half first."""
    kind = np.dtype(dtype)
    count = math.prod(shape)
    if kind.itemsize == 4:
        return stream_np(state, count).view(kind).reshape(shape)
    words = stream_np(state, 2 * count).reshape(-1, 2)
    joined = words[:, 1].astype(np.uint64)
    joined <<= np.uint64(32)
    joined |= words[:, 0]
    return joined.view(kind).reshape(shape)


def full_int_jax(state: jax.Array, shape: Shape, dtype: DTypeLike) -> jax.Array:
    """`full_int_np` for a traced state; 64-bit integers need 64-bit types to be enabled."""
    kind = np.dtype(dtype)
    count = math.prod(shape)
    if kind.itemsize == 4:
        (words,) = pieces_jax(state, index_jax(count), 1)
        return lax.bitcast_convert_type(words, kind).reshape(tuple(shape))
    _require_x64(kind.name)
    low, high = pieces_jax(state, index_jax(count), 2)
    joined = low.astype(jnp.uint64) | (high.astype(jnp.uint64) << np.uint64(32))
    return lax.bitcast_convert_type(joined, kind).reshape(tuple(shape))


def _int_dtype(dtype: DTypeLike) -> np.dtype[Any]:
    kind = np.dtype(dtype)
    if kind not in (np.dtype(np.int32), np.dtype(np.int64)):
        raise TypeError(f"uniform integers are int32 or int64, got {kind}")
    return kind


# Normal -----------------------------------------------------------------------------------------


def normal_np(state: State, shape: Shape, dtype: DTypeLike) -> Array:
    """Standard normal numbers: array of `shape` and `dtype`; TypeError for a dtype not floating.

    Box-Muller: words taken two at a time (four for float64) give two neighbouring outputs.
    """
    kind = float_dtype(dtype)
    count = math.prod(shape)
    pairs = -(-count // 2)
    out = np.empty((pairs, 2), np.float64 if kind == _DOUBLE else np.float32)
    per_pair = 4 if kind == _DOUBLE else 2
    words = stream_np(state, per_pair * pairs).reshape(pairs, per_pair)
    for begin in range(0, pairs, _CHUNK):
        part = slice(begin, begin + _CHUNK)
        transform = box_muller_double_np if kind == _DOUBLE else box_muller_np
        transform(words[part], out[part])
    return out.reshape(-1)[:count].astype(kind, copy=False).reshape(shape)


def box_muller_np(words: NDArray[np.uint32], out: NDArray[np.float32]) -> None:
    """uint32[n, 2] -> float32[n, 2]: (sin, cos) of the second word times a radius of the first."""
    radius_in = np.maximum(unit_single_np(words[:, 0]), np.float32(_SMALLEST_UNIFORM))
    angle = unit_single_np(words[:, 1]).astype(np.float64)
    angle *= _TWO_PI
    angle = angle.astype(np.float32).astype(np.float64)
    radius = np.log(radius_in.astype(np.float64)).astype(np.float32)
    radius *= np.float32(-2)
    np.sqrt(radius, out=radius)
    np.multiply(np.sin(angle).astype(np.float32), radius, out=out[:, 0])
    np.multiply(np.cos(angle).astype(np.float32), radius, out=out[:, 1])


def box_muller_double_np(words: NDArray[np.uint32], out: NDArray[np.float64]) -> None:
    """uint32[n, 4] -> float64[n, 2]."""
    radius = np.maximum(unit_double_np(words[:, 0], words[:, 1]), _SMALLEST_UNIFORM)
    np.log(radius, out=radius)
    radius *= -2.0
    np.sqrt(radius, out=radius)
    angle = unit_double_np(words[:, 2], words[:, 3])
    angle *= _TWO_PI
    np.multiply(np.sin(angle), radius, out=out[:, 0])
    np.multiply(np.cos(angle), radius, out=out[:, 1])


def normal_jax(state: jax.Array, shape: Shape, dtype: DTypeLike) -> jax.Array:
    """`normal_np` for a traced state.

    With 64-bit types enabled the numbers are those of `normal_np` (float64: within 4 units in the
    last place). Without, the narrower types are computed in float32: the same numbers to about
    1e-6, not the same bits.
    """
    kind = float_dtype(dtype)
    index = index_jax(math.prod(shape))
    pair = index >> np.uint32(1)
    if kind == _DOUBLE:
        sine, cosine = box_muller_double_jax(pieces_jax(state, pair, 4))
    else:
        sine, cosine = box_muller_jax(pieces_jax(state, pair, 2))
    result = jnp.where((index & np.uint32(1)) == 0, sine, cosine)
    return result.astype(kind).reshape(tuple(shape))


def box_muller_jax(words: Sequence[jax.Array]) -> tuple[jax.Array, jax.Array]:
    """Two arrays of words -> the two normal numbers of each pair, float32."""
    wide = jnp.float64 if x64_enabled() else jnp.float32
    angle = unit_single_jax(words[1]).astype(wide) * wide(_TWO_PI)
    angle = angle.astype(jnp.float32).astype(wide)
    radius_in = jnp.maximum(unit_single_jax(words[0]), np.float32(_SMALLEST_UNIFORM))
    log_radius = jnp.log(radius_in.astype(wide)).astype(jnp.float32)
    radius = jnp.sqrt(np.float32(-2) * log_radius)
    sine, cosine = jnp.sin(angle), jnp.cos(angle)
    return sine.astype(jnp.float32) * radius, cosine.astype(jnp.float32) * radius


def box_muller_double_jax(words: Sequence[jax.Array]) -> tuple[jax.Array, jax.Array]:
    """Four arrays of words -> the two normal numbers of each pair, float64."""
    radius_in = jnp.maximum(unit_double_jax(words[0], words[1]), _SMALLEST_UNIFORM)
    radius = jnp.sqrt(-2.0 * jnp.log(radius_in))
    angle = unit_double_jax(words[2], words[3]) * _TWO_PI
    return jnp.sin(angle) * radius, jnp.cos(angle) * radius


def _require_x64(what: str) -> None:
    if not x64_enabled():
        raise RuntimeError(
            f"{what} random numbers in a compiled region need 64-bit types: trace the region "
            "inside jax.enable_x64(True)"
        )
