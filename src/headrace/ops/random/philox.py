"""Philox4x32-10, the counter-based generator under every random op.

Source: Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC 2011),
section 3.3.

A generator is a *state* of six 32-bit words, `[key0, key1, c0, c1, c2, c3]`: the key never
changes, the 128-bit counter `c3:c2:c1:c0` counts *blocks*. Encrypting a counter gives one block of
four random 32-bit words, so any part of a stream can be computed without the parts before it:
that is what makes the numbers independent of threads, chunking and fusion.

Two forms give the same words: `blocks_np` and `stream_np` for NumPy, `block_jax` and `pieces_jax`
for traced programs, where the state is a traced `uint32[6]`, so that one compiled program serves
every step.

How an op uses it: `initial_state(seed, seed2)` when it is first run; each execution draws from the
current state, then moves it with `advance(state, blocks_per_output(n))` (`advance_jax` in a traced
program; some ops reserve other amounts). The amounts and the order of words are those of
TensorFlow's CPU kernels.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from numpy.typing import NDArray

from headrace.ops.core.parallel import Work, in_pieces

WORDS = 4  # 32-bit words in a block
RESERVED_PER_OUTPUT = 256  # blocks reserved for each output: rejection samplers may use several

_MUL0, _MUL1 = 0xD2511F53, 0xCD9E8D57
_KEY_STEP0, _KEY_STEP1 = 0x9E3779B9, 0xBB67AE85
_ROUNDS = 10
_MASK32 = 0xFFFFFFFF
_MASK64 = 0xFFFFFFFFFFFFFFFF
_COUNTER_MOD = 1 << 128
_MULTIPLIERS = np.array([[_MUL0], [_MUL1]], np.uint64)
_LOW_HALF, _HALF_WIDTH = np.uint64(_MASK32), np.uint64(32)
#: Blocks at a time: NumPy's loops are long enough to run side by side, and what they work on stays
#: in the cache.
PIECE = 1 << 15

# Seeds of a stateless op pass through one encryption under this fixed key.
_SCRAMBLE_KEY = (0x3EC8F720, 0x02461E29)

State = NDArray[np.uint32]

_TRUNCATED_MAX_ITERATIONS = 1000
_TRUNCATED_BATCH = 100


# State ------------------------------------------------------------------------------------------


def initial_state(seed: int, seed2: int) -> State:
    """State of a stateful op: key = `seed`, upper half of the counter = `seed2`.

    Both are int64 attributes (negative ones wrap). Both zero means "no seed": the state then comes
    from the operating system's entropy and differs at every call.
    """
    if seed == 0 and seed2 == 0:
        seed, seed2 = np.frombuffer(os.urandom(16), np.uint64).tolist()
    words = (seed & _MASK64).to_bytes(8, "little") + bytes(8)
    return np.frombuffer(words + (seed2 & _MASK64).to_bytes(8, "little"), "<u4")


def advance(state: State, groups: int) -> State:
    """The state `groups` blocks further on; the counter is one 128-bit number."""
    raw = state.tobytes()
    counter = (int.from_bytes(raw[8:], "little") + groups) % _COUNTER_MOD
    return np.frombuffer(raw[:8] + counter.to_bytes(16, "little"), "<u4")


def advance_jax(state: jax.Array, groups: int) -> jax.Array:
    """`advance` for a traced state; `groups` is known while tracing."""
    carry = jnp.uint32(0)
    words = [state[0], state[1]]
    for lane in range(WORDS):
        step = np.uint32(groups >> 32 * lane & _MASK32)
        partial = state[2 + lane] + step
        word = partial + carry
        carry = ((partial < step) | (word < carry)).astype(jnp.uint32)
        words.append(word)
    return jnp.stack(words)


def stateless_state(seed: Sequence[int] | NDArray[Any]) -> State:
    """State of a stateless op from its `seed` input of two integers (int32 or int64)."""
    seed0, seed1 = (int(word) & _MASK64 for word in np.asarray(seed).tolist())
    fixed = np.array(
        [*_SCRAMBLE_KEY, seed0 & _MASK32, seed0 >> 32, seed1 & _MASK32, seed1 >> 32], np.uint32
    )
    mixed = blocks_np(fixed, np.zeros(1, np.uint64))[0]
    return np.array([mixed[0], mixed[1], 0, 0, mixed[2], mixed[3]], np.uint32)


def stateless_state_jax(seed: jax.Array) -> jax.Array:
    """`stateless_state` for a traced int32[2] or int64[2]; uint32[6]."""
    low = seed.astype(jnp.uint32)
    if seed.dtype.itemsize == 8:
        high = (seed >> 32).astype(jnp.uint32)
    else:  # sign extension of a 32-bit seed to 64 bits
        high = (seed >> 31).astype(jnp.uint32)
    key = [jnp.uint32(word) for word in _SCRAMBLE_KEY]
    mixed = block_jax(key[0], key[1], [low[0], high[0], low[1], high[1]])
    zero = jnp.uint32(0)
    return jnp.stack([mixed[0], mixed[1], zero, zero, mixed[2], mixed[3]])


# Blocks that one execution of a stateful op moves its counter by.


def blocks_per_output(num_outputs: int) -> int:
    """For ops that reserve as much for each element of the output, however much they draw."""
    return num_outputs * RESERVED_PER_OUTPUT


def blocks_of_shuffle(size: int) -> int:
    """For RandomShuffle of `size` elements or rows (0 for a value without elements).

    One word for each swap; shuffling one element or none draws nothing.
    """
    return 0 if size <= 1 else (size - 1 + WORDS - 1) // WORDS


def blocks_of_multinomial(rows: int, samples: int) -> int:
    """For Multinomial of `samples` classes for each of `rows` rows: two words make a double."""
    rounded_samples = (samples + WORDS - 1) // WORDS * WORDS
    return rows * rounded_samples * 2 * RESERVED_PER_OUTPUT


def blocks_of_truncated(num_outputs: int, rows: int | None) -> int:
    """For ParameterizedTruncatedNormal; `rows` is the size of dimension 0, or None when all
    parameters are single values.
    """
    batches, samples = truncated_batches(num_outputs, rows)
    return batches * 2 * _TRUNCATED_MAX_ITERATIONS * (samples + 3) // 4


def truncated_batches(num_outputs: int, rows: int | None) -> tuple[int, int]:
    """(batches, samples in each) that ParameterizedTruncatedNormal splits its output in.

    With single-valued parameters (`rows` None) batches have a fixed size whatever the shape.
    """
    if rows is None:
        return -(-num_outputs // _TRUNCATED_BATCH), _TRUNCATED_BATCH
    return rows, num_outputs // rows if rows else 0


# NumPy ------------------------------------------------------------------------------------------


class Blocks:
    """The words of up to `size` blocks at a time, in memory that is used again.

    `even` holds words 0 and 2 of each block, `odd` words 1 and 3: uint64[2, n], so that each step
    of the cipher is one operation on both. Words have 64 bits each, so that a product keeps
    both its halves. The arrays, and `spare`, are the caller's until the next draw.
    """

    def __init__(self, size: int) -> None:
        self._memory = np.empty((3, 2, size), np.uint64)
        self.even, self.odd, self.spare = self._memory

    def draw(self, state: State, offsets: NDArray[np.uint64]) -> None:
        """Draws the blocks at `offsets` from the counter of `state`."""
        key0, key1, *counter = state.tolist()
        keys = [
            (key0 + i * _KEY_STEP0 & _MASK32, key1 + i * _KEY_STEP1 & _MASK32)
            for i in range(_ROUNDS)
        ]
        even, odd, product = self._memory[:, :, : len(offsets)]
        if offsets.size and counter[0] + int(offsets.max()) <= _MASK32:
            done = _first_rounds(counter, keys, offsets, even, odd, product)
        else:
            done = _whole_counters(counter, offsets, even, odd, product)
        for round_keys in np.array(keys[done:], np.uint64)[:, :, None]:
            np.multiply(even, _MULTIPLIERS, out=product)
            swapped = product[::-1]
            np.right_shift(swapped, _HALF_WIDTH, out=even)
            np.bitwise_xor(even, odd, out=even)
            np.bitwise_xor(even, round_keys, out=even)
            np.bitwise_and(swapped, _LOW_HALF, out=odd)
        self.even, self.odd, self.spare = even, odd, product

    def copy_to(self, out: NDArray[np.uint32]) -> None:
        """Writes the words to `out`, uint32[n, 4], in their order."""
        for lane in range(WORDS):
            out[:, lane] = (self.odd if lane % 2 else self.even)[lane // 2]


def _whole_counters(
    counter: Sequence[int],
    offsets: NDArray[np.uint64],
    even: NDArray[np.uint64],
    odd: NDArray[np.uint64],
    spare: NDArray[np.uint64],
) -> int:
    """Writes the words of the counters; the number of rounds that this did: none."""
    low, high = spare
    np.add(offsets, np.uint64(counter[0] | counter[1] << 32), out=low)
    np.less(low, offsets, out=high, casting="unsafe")  # the carry
    high += np.uint64(counter[2] | counter[3] << 32)
    np.bitwise_and(spare, _LOW_HALF, out=even)
    np.right_shift(spare, _HALF_WIDTH, out=odd)
    return 0


def _first_rounds(
    counter: Sequence[int],
    keys: Sequence[tuple[int, int]],
    offsets: NDArray[np.uint64],
    even: NDArray[np.uint64],
    odd: NDArray[np.uint64],
    spare: NDArray[np.uint64],
) -> int:
    """Two rounds for counters that differ in word 0 alone, of half the work; 2."""
    (c0, c1, c2, c3), product = counter, spare[0]
    product1 = c2 * _MUL1
    np.add(offsets, np.uint64(c0), out=product)
    product *= np.uint64(_MUL0)
    np.right_shift(product, _HALF_WIDTH, out=even[1])
    even[1] ^= np.uint64(c3 ^ keys[0][1])
    np.bitwise_and(product, _LOW_HALF, out=odd[1])
    c0, c1 = product1 >> 32 ^ c1 ^ keys[0][0], product1 & _MASK32
    # Now words 0 and 1 are the same in all.
    product0 = c0 * _MUL0
    np.multiply(even[1], np.uint64(_MUL1), out=product)
    np.right_shift(product, _HALF_WIDTH, out=even[0])
    even[0] ^= np.uint64(c1 ^ keys[1][0])
    np.bitwise_and(product, _LOW_HALF, out=odd[0])
    np.bitwise_xor(odd[1], np.uint64(product0 >> 32 ^ keys[1][1]), out=even[1])
    odd[1] = product0 & _MASK32
    return 2


def blocks_np(state: State, offsets: NDArray[np.uint64]) -> NDArray[np.uint32]:
    """The blocks at `offsets` from the state's counter: uint32[len(offsets), 4]."""
    out = np.empty((len(offsets), WORDS), np.uint32)

    def worker(size: int) -> Work:
        blocks = Blocks(size)

        def draw(begin: int, end: int) -> None:
            blocks.draw(state, offsets[begin:end])
            blocks.copy_to(out[begin:end])

        return draw

    in_pieces(len(offsets), PIECE, worker)
    return out


def stream_np(
    state: State, words: int, finish: Callable[[NDArray[np.uint32]], None] | None = None
) -> NDArray[np.uint32]:
    """The first `words` words of the stream that starts at `state`: uint32[words].

    Args:
        finish: makes of each piece, of whole blocks, in place what is wanted in its stead.
    """
    out = np.empty((-(-words // WORDS), WORDS), np.uint32)

    def worker(size: int) -> Work:
        blocks = Blocks(size)

        def draw(begin: int, end: int) -> None:
            blocks.draw(state, np.arange(begin, end, dtype=np.uint64))
            blocks.copy_to(out[begin:end])
            if finish is not None:
                finish(out[begin:end].reshape(-1))

        return draw

    in_pieces(len(out), PIECE, worker)
    return out.reshape(-1)[:words]


# JAX --------------------------------------------------------------------------------------------


@jax.jit  # traced once for each shape, however many random ops a region has
def block_jax(key0: jax.Array, key1: jax.Array, counter: Sequence[jax.Array]) -> list[jax.Array]:
    """Encrypts counters: four uint32 arrays of one shape in, the four words of each block out.

    Traces with and without 64-bit types.
    """
    c0, c1, c2, c3 = counter
    for _ in range(_ROUNDS):
        high0, low0 = _multiply_wide(c0, _MUL0)
        high1, low1 = _multiply_wide(c2, _MUL1)
        c0, c1, c2, c3 = high1 ^ c1 ^ key0, low1, high0 ^ c3 ^ key1, low0
        key0 = key0 + np.uint32(_KEY_STEP0)
        key1 = key1 + np.uint32(_KEY_STEP1)
    return [c0, c1, c2, c3]


def block_at_jax(state: jax.Array, low: jax.Array, high: jax.Array | int = 0) -> list[jax.Array]:
    """The blocks at the 64-bit offsets `high:low` (uint32 arrays) from the state's counter."""
    c0 = state[2] + low
    carry = (c0 < low).astype(jnp.uint32)
    step = jnp.broadcast_to(jnp.asarray(high, jnp.uint32), low.shape)
    partial = state[3] + step
    c1 = partial + carry
    carry = ((partial < step) | (c1 < carry)).astype(jnp.uint32)
    c2 = state[4] + carry
    c3 = state[5] + (c2 < carry).astype(jnp.uint32)
    words: list[jax.Array] = block_jax(state[0], state[1], [c0, c1, c2, c3])
    return words


def x64_enabled() -> bool:
    """Whether 64-bit types are enabled where this is traced."""
    return bool(jax.config.jax_enable_x64)  # type: ignore[attr-defined]


def index_jax(count: int) -> jax.Array:
    """0 .. count-1 as uint32; MemoryError if `count` does not fit 32 bits."""
    if count > _MASK32:
        raise MemoryError(f"a random tensor can have at most 2**32 - 1 elements, got {count}")
    return lax.iota(jnp.uint32, count)


def pieces_jax(state: jax.Array, index: jax.Array, width: int) -> list[jax.Array]:
    """Cuts the stream in pieces of `width` words (1, 2 or 4) and takes those at `index` (uint32).

    Returns the words of each piece: `width` arrays of the shape of `index`. Each element computes
    a whole block and picks its words: redundant arithmetic, but elementwise, so it fuses into its
    consumer. (Computing each block once needs four arrays interleaved, which XLA either recomputes
    for every word or writes to memory.)
    """
    if width == WORDS:
        return block_at_jax(state, index)
    if width == 2:
        w0, w1, w2, w3 = block_at_jax(state, index >> np.uint32(1))
        first = (index & np.uint32(1)) == 0
        return [jnp.where(first, w0, w2), jnp.where(first, w1, w3)]
    w0, w1, w2, w3 = block_at_jax(state, index >> np.uint32(2))
    even = (index & np.uint32(1)) == 0
    upper = (index & np.uint32(2)) != 0
    return [jnp.where(upper, jnp.where(even, w2, w3), jnp.where(even, w0, w1))]


def _multiply_wide(a: jax.Array, constant: int) -> tuple[jax.Array, jax.Array]:
    """High and low words of the 64-bit product `a * constant`."""
    if x64_enabled():  # half the instructions, so half the compile time
        product = lax.convert_element_type(a, np.uint64) * np.uint64(constant)
        high_word = lax.convert_element_type(product >> np.uint64(32), np.uint32)
        return high_word, lax.convert_element_type(product, np.uint32)
    # By 16-bit limbs.
    limb = np.uint32(0xFFFF)
    shift = np.uint32(16)
    low, high = np.uint32(constant & 0xFFFF), np.uint32(constant >> 16)
    a_low, a_high = a & limb, a >> shift
    middle = a_low * high + ((a_low * low) >> shift)
    cross = a_high * low + (middle & limb)
    return a_high * high + (middle >> shift) + (cross >> shift), a * np.uint32(constant)
