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
import sys
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax import lax
from numpy.typing import DTypeLike, NDArray

from headrace.ops.core.parallel import Work, in_pieces
from headrace.ops.random.box_muller import (
    Normals,
    box_muller_double_jax,
    box_muller_jax,
    require_x64,
    unit_double_jax,
    unit_doubles_in_place,
    unit_single_jax,
)
from headrace.ops.random.philox import PIECE, WORDS, Blocks, State, index_jax, pieces_jax, stream_np

Array = NDArray[Any]
Shape = Sequence[int]

_HALF = np.dtype(np.float16)
_BFLOAT = np.dtype(ml_dtypes.bfloat16)
_SINGLE = np.dtype(np.float32)
_DOUBLE = np.dtype(np.float64)
FLOATS = (_HALF, _BFLOAT, _SINGLE, _DOUBLE)
# Random bits of a uniform number: what the mantissa holds.
_MANTISSA_BITS = {_HALF: 10, _BFLOAT: 7, _SINGLE: 23}


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
        return _uniform_doubles(state, count).reshape(shape)
    if kind == _SINGLE:
        return stream_np(state, count, _to_unit_single).view(kind).reshape(shape)
    words = stream_np(state, count)
    bits = _MANTISSA_BITS[kind]
    exact = (words & np.uint32((1 << bits) - 1)).astype(np.float32) * np.float32(2.0**-bits)
    return exact.astype(kind).reshape(shape)


def _to_unit_single(words: NDArray[np.uint32]) -> None:
    """`unit_single_np` in place."""
    words &= np.uint32(0x7FFFFF)
    words |= np.uint32(0x3F800000)
    result = words.view(np.float32)
    result -= np.float32(1)


def _uniform_doubles(state: State, count: int) -> Array:
    out = np.empty((-(-count // 2), 2))

    def worker(size: int) -> Work:
        blocks = Blocks(size)

        def draw(begin: int, end: int) -> None:
            blocks.draw(state, np.arange(begin, end, dtype=np.uint64))
            out[begin:end] = unit_doubles_in_place(blocks.even, blocks.odd).T

        return draw

    in_pieces(len(out), PIECE, worker)
    return out.reshape(-1)[:count]


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
    unsigned = np.uint32 if kind == np.int32 else np.uint64
    width = unsigned(int(maxval) - int(minval))
    low = unsigned(int(minval) % (1 << 8 * kind.itemsize))  # wraps as signed does

    def into_range(words: Array) -> None:
        words %= width
        words += low

    return _full_ints(state, shape, np.dtype(unsigned), into_range).view(kind)


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
    return _full_ints(state, shape, np.dtype(dtype))


def _full_ints(
    state: State,
    shape: Shape,
    kind: np.dtype[Any],
    finish: Callable[[Array], None] | None = None,
) -> Array:
    """`finish` works on pieces, in place."""
    words = kind.itemsize // 4

    def joined(piece: NDArray[np.uint32]) -> None:
        values = piece.view(kind)
        if words == 2 and sys.byteorder == "big":
            values[:] = piece.reshape(-1, 2)[:, ::-1].copy().view(kind)[:, 0]
        if finish is not None:
            finish(values)

    return stream_np(state, words * math.prod(shape), joined).view(kind).reshape(shape)


def full_int_jax(state: jax.Array, shape: Shape, dtype: DTypeLike) -> jax.Array:
    """`full_int_np` for a traced state; 64-bit integers need 64-bit types to be enabled."""
    kind = np.dtype(dtype)
    count = math.prod(shape)
    if kind.itemsize == 4:
        (words,) = pieces_jax(state, index_jax(count), 1)
        return lax.bitcast_convert_type(words, kind).reshape(tuple(shape))
    require_x64(kind.name)
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
    per_block, working = (2, np.float64) if kind == _DOUBLE else (WORDS, np.float32)
    out = np.empty((-(-count // per_block), per_block), working)

    def worker(size: int) -> Work:
        normals = Normals(size)

        def draw(begin: int, end: int) -> None:
            normals.draw(state, np.arange(begin, end, dtype=np.uint64), out[begin:end])

        return draw

    in_pieces(len(out), PIECE, worker)
    return out.reshape(-1)[:count].astype(kind, copy=False).reshape(shape)


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
