"""Standard normal numbers truncated to two standard deviations, by resampling.

TensorFlow's order: outputs are made in groups (four of them, two for float64). Group g has a
stream of its own, which starts `g` strides after the state; it draws normal numbers until it has
enough whose magnitude is below 2. A group is therefore independent of all others.

The words and the decisions are those of TensorFlow's CPU kernel, the values agree as those of
`random_fixed.normal_np` do. (A value that one side rounds to exactly 2 and the other does not
would change the rest of its group of four; the odds are below 1e-8 per number.)
"""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from numpy.typing import DTypeLike, NDArray

from headrace.ops.kernels.philox import (
    RESERVED_PER_OUTPUT,
    WORDS,
    State,
    block_at_jax,
    blocks_np,
    index_jax,
)
from headrace.ops.kernels.random_fixed import (
    Array,
    Shape,
    box_muller_double_jax,
    box_muller_double_np,
    box_muller_jax,
    box_muller_np,
    float_dtype,
)

_Carry = tuple[jax.Array, jax.Array, jax.Array]  # block number, outputs filled, outputs

_LIMIT = 2.0
_CHUNK = 1 << 14  # groups at a time


def truncated_normal_np(state: State, shape: Shape, dtype: DTypeLike) -> Array:
    """Array of `shape` and `dtype` of normal numbers x with |x| < 2; TypeError if not floating."""
    kind = float_dtype(dtype)
    count = math.prod(shape)
    per_group, working = _group(kind)
    groups = -(-count // per_group)
    out = np.empty((groups, per_group), working)
    for begin in range(0, groups, _CHUNK):
        _fill_groups(state, begin, out[begin : begin + _CHUNK])
    return out.reshape(-1)[:count].astype(kind, copy=False).reshape(shape)


def _group(kind: np.dtype[Any]) -> tuple[int, type[np.floating[Any]]]:
    """(outputs in a group, dtype that they are computed in)."""
    return (WORDS // 2, np.float64) if kind == np.float64 else (WORDS, np.float32)


def _fill_groups(state: State, first_group: int, out: NDArray[Any]) -> None:
    """Fills out[n, per_group] with the groups first_group .. first_group + n - 1."""
    groups, per_group = out.shape
    starts = np.arange(first_group, first_group + groups, dtype=np.uint64)
    starts *= np.uint64(_stride(per_group))
    # Most groups are complete after one block; the first pass writes them whole.
    values = _normals_np(blocks_np(state, starts), out.dtype)
    accepted = np.abs(values) < _LIMIT
    out[...] = values
    active = np.flatnonzero(~accepted.all(axis=1))
    values, accepted = values[active], accepted[active]
    filled = np.zeros(groups, np.int64)
    block = 0
    while active.size:
        slot = filled[active, None] + np.cumsum(accepted, axis=1) - 1
        row, lane = np.nonzero(accepted & (slot < per_group))
        out[active[row], slot[row, lane]] = values[row, lane]
        filled[active] = slot[:, -1] + 1
        active = active[filled[active] < per_group]
        block += 1
        values = _normals_np(blocks_np(state, starts[active] + np.uint64(block)), out.dtype)
        accepted = np.abs(values) < _LIMIT


def _stride(per_group: int) -> int:
    """Blocks between the starts of neighbouring groups."""
    return per_group * RESERVED_PER_OUTPUT // WORDS


def _normals_np(blocks: NDArray[np.uint32], working: np.dtype[Any]) -> NDArray[Any]:
    """uint32[n, 4] -> the normal numbers made of each block: float32[n, 4] or float64[n, 2]."""
    if working == np.float64:
        double = np.empty((len(blocks), 2), np.float64)
        box_muller_double_np(blocks, double)
        return double
    single = np.empty((2 * len(blocks), 2), np.float32)
    box_muller_np(blocks.reshape(-1, 2), single)
    return single.reshape(-1, WORDS)


def truncated_normal_jax(state: jax.Array, shape: Shape, dtype: DTypeLike) -> jax.Array:
    """`truncated_normal_np` for a traced state; see `random_fixed.normal_jax` for the exactness.

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
