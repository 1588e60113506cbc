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

from headrace.ops.kernels.box_muller import box_muller_double_jax, box_muller_jax
from headrace.ops.kernels.parallel import in_pieces
from headrace.ops.kernels.philox import (
    RESERVED_PER_OUTPUT,
    WORDS,
    State,
    block_at_jax,
    index_jax,
)
from headrace.ops.kernels.random_fixed import Array, Shape, float_dtype, normals_np

_Carry = tuple[jax.Array, jax.Array, jax.Array]  # block number, outputs filled, outputs

_LIMIT = 2.0
_PIECE = 1 << 16  # groups at a time


def truncated_normal_np(state: State, shape: Shape, dtype: DTypeLike) -> Array:
    """Array of `shape` and `dtype` of normal numbers x with |x| < 2; TypeError if not floating."""
    kind = float_dtype(dtype)
    count = math.prod(shape)
    per_group, working = _group(kind)
    groups = -(-count // per_group)
    out = np.empty((groups, per_group), working)
    in_pieces(groups, _PIECE, lambda begin, end: _fill_groups(state, begin, out[begin:end]))
    return out.reshape(-1)[:count].astype(kind, copy=False).reshape(shape)


def _group(kind: np.dtype[Any]) -> tuple[int, type[np.floating[Any]]]:
    """(outputs in a group, dtype that they are computed in)."""
    return (WORDS // 2, np.float64) if kind == np.float64 else (WORDS, np.float32)


def _fill_groups(state: State, first_group: int, out: NDArray[Any]) -> None:
    """Fills out[n, per_group] with the groups first_group .. first_group + n - 1."""
    groups, per_group = out.shape
    starts = np.arange(first_group, first_group + groups, dtype=np.uint64)
    starts *= np.uint64(_stride(per_group))
    # Most groups are complete after one block, nearly all others after two.
    normals_np(state, starts, out)
    rejected = np.abs(out) >= _LIMIT
    active = np.flatnonzero(rejected.view(f"u{per_group}"))  # a group's flags as one integer
    values, starts = out[active], starts[active]
    while active.size:
        starts += np.uint64(1)
        more = np.empty((len(active), per_group), out.dtype)
        normals_np(state, starts, more)
        values = np.concatenate([values, more], axis=1)
        accepted = np.abs(values) < _LIMIT
        counts = np.zeros(len(active), np.intp)
        for lane in accepted.T:  # NumPy is slow at sums of short rows
            counts += lane
        complete = counts >= per_group
        # The accepted values of all groups in a row; a group takes its first ones.
        begins = np.cumsum(counts) - counts
        lanes = begins[complete, None] + np.arange(per_group)
        out[active[complete]] = values[accepted][lanes]
        rest = np.flatnonzero(~complete)
        active, values, starts = active[rest], values[rest], starts[rest]


def _stride(per_group: int) -> int:
    """Blocks between the starts of neighbouring groups."""
    return per_group * RESERVED_PER_OUTPUT // WORDS


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
