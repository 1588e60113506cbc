"""Standard normal numbers truncated to two standard deviations, by resampling.

TensorFlow's order: outputs are made in groups (four of them, two for float64). Group g has a
stream of its own, which starts `g` strides after the state; it draws normal numbers until it has
enough whose magnitude is below 2. A group is therefore independent of all others.

The words and the decisions are those of TensorFlow's CPU kernel, the values agree as those of
`fixed.normal_np` do. (A value that one side rounds to exactly 2 and the other does not
would change the rest of its group of four; the odds are below 1e-8 per number.)
"""

from __future__ import annotations

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from numpy.typing import DTypeLike, NDArray

from headrace.ops.core.parallel import Work, in_pieces
from headrace.ops.random.box_muller import Normals, box_muller_double_jax, box_muller_jax
from headrace.ops.random.fixed import Array, Shape, float_dtype
from headrace.ops.random.philox import (
    PIECE,
    RESERVED_PER_OUTPUT,
    WORDS,
    State,
    block_at_jax,
    index_jax,
)

_Carry = tuple[jax.Array, jax.Array, jax.Array]  # block number, outputs filled, outputs

_LIMIT = 2.0


def truncated_normal_np(state: State, shape: Shape, dtype: DTypeLike) -> Array:
    """Array of `shape` and `dtype` of normal numbers x with |x| < 2; TypeError if not floating."""
    kind = float_dtype(dtype)
    count = math.prod(shape)
    per_group, working = _group(kind)
    groups = -(-count // per_group)
    out = np.empty((groups, per_group), working)
    incomplete: list[NDArray[np.intp]] = []

    def first(size: int) -> Work:
        normals, magnitude = Normals(size), np.empty((size, per_group), working)

        def draw(begin: int, end: int) -> None:
            numbers = out[begin:end]
            normals.draw(state, _starts(begin, end, per_group), numbers)
            rejected = np.abs(numbers, out=magnitude[: end - begin]) >= _LIMIT
            # A group's flags as one integer.
            incomplete.append(np.flatnonzero(rejected.view(f"u{per_group}")) + begin)

        return draw

    in_pieces(groups, PIECE, first)
    if incomplete:
        _complete(state, np.concatenate(incomplete), out)
    return out.reshape(-1)[:count].astype(kind, copy=False).reshape(shape)


def _starts(begin: int, end: int, per_group: int) -> NDArray[np.uint64]:
    """The first blocks of groups."""
    stride = _stride(per_group)
    return np.arange(begin * stride, end * stride, stride, dtype=np.uint64)


def _group(kind: np.dtype[Any]) -> tuple[int, type[np.floating[Any]]]:
    """(outputs in a group, dtype that they are computed in)."""
    return (WORDS // 2, np.float64) if kind == np.float64 else (WORDS, np.float32)


def _complete(state: State, groups: NDArray[np.intp], out: NDArray[Any]) -> None:
    """Draws further blocks for `groups` of `out`, [n, per_group], whose first one did not do."""
    per_group = out.shape[1]
    accepted, order = _choices(per_group)

    def worker(size: int) -> Work:
        normals = Normals(size)

        def draw(begin: int, end: int) -> None:
            active = groups[begin:end]
            values, starts = out[active], active.astype(np.uint64) * np.uint64(_stride(per_group))
            while active.size:
                starts += np.uint64(1)
                more = np.empty_like(values)
                normals.draw(state, starts, more)
                both = np.concatenate([values, more], axis=1)
                flags = np.packbits(np.abs(both) < _LIMIT, axis=1)[:, 0]
                chosen = order[flags]
                chosen += np.arange(0, both.size, both.shape[1])[:, None]
                values = both.reshape(-1).take(chosen)
                complete = accepted[flags] >= per_group
                out[active[complete]] = values[complete]
                rest = np.flatnonzero(~complete)
                active, values, starts = active[rest], values[rest], starts[rest]

        return draw

    in_pieces(len(groups), PIECE, worker)


@functools.cache
def _choices(per_group: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """For each set of accepted numbers, as `packbits` writes it, of up to eight: how many they are,
    and the places of the first `per_group` numbers if the accepted ones are put before the others.
    """
    flags = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1)
    order = np.argsort(1 - flags.astype(np.int8), axis=1, kind="stable")
    return flags.sum(1, dtype=np.intp), order[:, :per_group].copy()


def _stride(per_group: int) -> int:
    """Blocks between the starts of neighbouring groups."""
    return per_group * RESERVED_PER_OUTPUT // WORDS


def truncated_normal_jax(state: jax.Array, shape: Shape, dtype: DTypeLike) -> jax.Array:
    """`truncated_normal_np` for a traced state; see `fixed.normal_jax` for the exactness.

    A loop draws one block for all groups at a time until every group is full.
    """
    kind = float_dtype(dtype)
    count = math.prod(shape)
    per_group, working = _group(kind)
    groups = -(-count // per_group)
    group = index_jax(groups)
    stride_bits = _stride(per_group).bit_length() - 1  # the stride is a power of two
    low = group << np.uint32(stride_bits)
    high = group >> np.uint32(32 - stride_bits)
    lanes = lax.iota(jnp.int32, per_group)

    def draw(carry: _Carry) -> _Carry:
        # `low` has `stride_bits` zero bits: the block's number cannot carry out of it.
        block, filled, values = carry
        words = block_at_jax(state, low + block, high)
        if working is np.float64:
            numbers = list(box_muller_double_jax(words))
        else:
            numbers = [*box_muller_jax(words[:2]), *box_muller_jax(words[2:])]
        for number in numbers:
            accepted = jnp.abs(number) < number.dtype.type(_LIMIT)
            place = accepted[:, None] & (filled[:, None] == lanes)
            values = jnp.where(place, number[:, None], values)
            filled = filled + accepted.astype(jnp.int32)
        return block + np.uint32(1), filled, values

    def unfinished(carry: _Carry) -> jax.Array:
        return jnp.any(carry[1] < per_group)

    start = (jnp.uint32(0), jnp.zeros(groups, jnp.int32), jnp.zeros((groups, per_group), working))
    values = lax.while_loop(unfinished, draw, start)[2]
    return values.reshape(-1)[:count].astype(kind).reshape(tuple(shape))
