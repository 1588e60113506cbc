"""Random kernels that choose or reject: shuffle, multinomial, gamma, Poisson, bounded normal.

All but `multinomial_jax` are host only (NumPy): how many words an output uses depends on the
words. They run the many independent samples of one call side by side, each at its own place in
its own stream, so they are vectorised all the same.

Agreement with TensorFlow's CPU kernels: the words, their order and the decisions are the same.
Shuffle gives the same permutation. Gamma and Poisson compute in float64 and multinomial compares
in float64, so that their float32 and integer results are the same but for a rounding tie in the
last place of log, exp, pow or lgamma. Multinomial and the bounded normal depend in TensorFlow on
how many threads share the rows; here they are what one thread gives.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from headrace.ops.random.box_muller import box_muller_double_np, unit_double_jax, unit_double_np
from headrace.ops.random.fixed import Array, Shape, float_dtype, normal_np, uniform_np
from headrace.ops.random.philox import (
    RESERVED_PER_OUTPUT,
    State,
    advance,
    blocks_np,
    index_jax,
    pieces_jax,
    stream_np,
    truncated_batches,
)

_Doubles = NDArray[np.float64]
_Indices = NDArray[np.int64]

_MAX_REJECTIONS = 1000
_NORMAL_PROPOSAL_STDDEVS = 1.3
# Rates from here on use the transformed rejection instead of counting.
_POISSON_LARGE_RATE = 10.0


# Shuffle ----------------------------------------------------------------------------------------


def shuffle_permutation_np(state: State, size: int) -> _Indices:
    """int64[size]: row i of the shuffled value is row `permutation[i]` of the value.

    Fisher-Yates from the front; swap i takes one word and uses its remainder by `size - i`.
    """
    order = list(range(size))
    if size > 1:
        remaining = np.arange(size, 1, -1, dtype=np.uint32)
        steps = (stream_np(state, size - 1) % remaining).tolist()
        for i, step in enumerate(steps):
            j = i + step
            order[i], order[j] = order[j], order[i]
    return np.array(order, np.int64)


# Multinomial ------------------------------------------------------------------------------------


def multinomial_np(state: State, logits: Array, num_samples: int, dtype: DTypeLike) -> Array:
    """Class indices drawn with probabilities softmax(logits).

    Args:
      logits: floating [batch, classes], unnormalised log probabilities; a value that is not
        finite has probability zero.
      num_samples: how many to draw for each row.
      dtype: int32 or int64.

    Returns:
      `dtype`[batch, num_samples].
    """
    batch, classes = logits.shape
    words = stream_np(state, 2 * batch * num_samples).reshape(-1, 2)
    draws = unit_double_np(words[:, 0], words[:, 1]).reshape(batch, num_samples)
    wide = logits.astype(np.float64)
    finite = np.isfinite(wide)
    peak = np.where(finite, wide, -np.inf).max(axis=1, keepdims=True, initial=-np.inf)
    peak = np.where(np.isfinite(peak), peak, 0.0)
    weights = np.where(finite, np.exp(np.where(finite, wide - peak, 0.0)), 0.0)
    cumulative = np.cumsum(weights, axis=1)
    out = np.empty((batch, num_samples), dtype)
    for row in range(batch):
        total = cumulative[row, -1] if classes else 0.0
        out[row] = np.searchsorted(cumulative[row], draws[row] * total, side="right")
    return out


def multinomial_jax(
    state: jax.Array, logits: jax.Array, num_samples: int, dtype: DTypeLike
) -> jax.Array:
    """`multinomial_np` for a traced state; needs 64-bit types.

    XLA adds the weights in another order: an index differs only if a draw falls on the last bit
    of a class boundary.
    """
    batch = logits.shape[0]
    high, low = pieces_jax(state, index_jax(batch * num_samples), 2)
    draws = unit_double_jax(high, low).reshape(batch, num_samples)
    wide = logits.astype(jnp.float64)
    finite = jnp.isfinite(wide)
    peak = jnp.max(jnp.where(finite, wide, -jnp.inf), axis=1, keepdims=True, initial=-jnp.inf)
    peak = jnp.where(jnp.isfinite(peak), peak, 0.0)
    weights = jnp.where(finite, jnp.exp(wide - peak), 0.0)
    cumulative = jnp.cumsum(weights, axis=1)

    def find(row: jax.Array, draw: jax.Array) -> jax.Array:
        return jnp.searchsorted(row, draw, side="right")

    found: jax.Array = jax.vmap(find)(cumulative, draws * cumulative[:, -1:])
    return found.astype(np.dtype(dtype))


# Streams of many samples, for gamma and Poisson -------------------------------------------------


class _Streams:
    """One generator for each sample of a call, all advanced on demand.

    Uniform and normal numbers come two from a block and are used last first; both kinds take
    their blocks from the same counter of the sample.
    """

    def __init__(self, state: State, samples: int) -> None:
        self._state = state
        self._next_block = np.arange(samples, dtype=np.uint64) * np.uint64(RESERVED_PER_OUTPUT)
        self._uniform = np.empty((samples, 2), np.float64)
        self._uniform_left = np.zeros(samples, np.int8)
        self._normal = np.empty((samples, 2), np.float64)
        self._normal_left = np.zeros(samples, np.int8)

    def uniform(self, who: _Indices) -> _Doubles:
        """The next uniform number of each sample in `who`."""
        return self._take(who, self._uniform, self._uniform_left, _uniform_pair)

    def normal(self, who: _Indices) -> _Doubles:
        """The next normal number of each sample in `who`."""
        return self._take(who, self._normal, self._normal_left, box_muller_double_np)

    def _take(
        self,
        who: _Indices,
        cache: _Doubles,
        left: NDArray[np.int8],
        transform: Callable[[NDArray[np.uint32], _Doubles], None],
    ) -> _Doubles:
        empty = who[left[who] == 0]
        if empty.size:
            fresh = np.empty((empty.size, 2), np.float64)
            transform(blocks_np(self._state, self._next_block[empty]), fresh)
            cache[empty] = fresh
            left[empty] = 2
            self._next_block[empty] += np.uint64(1)
        left[who] -= 1
        return cache[who, left[who]]


def _uniform_pair(words: NDArray[np.uint32], out: _Doubles) -> None:
    out[:, 0] = unit_double_np(words[:, 0], words[:, 1])
    out[:, 1] = unit_double_np(words[:, 2], words[:, 3])


def _by_parameter(drawn: _Doubles, shape: Shape, parameter: Array, dtype: DTypeLike) -> Array:
    """Samples are drawn parameter by parameter; the output's shape is `shape + parameter.shape`."""
    table = drawn.reshape(parameter.size, math.prod(shape)).T
    with np.errstate(over="ignore", invalid="ignore"):  # beyond the range of a narrow dtype
        return table.reshape((*shape, *parameter.shape)).astype(dtype)


# Gamma ------------------------------------------------------------------------------------------


def gamma_np(state: State, shape: Shape, alpha: Array) -> Array:
    """Gamma numbers of scale 1: array of `shape + alpha.shape` and the dtype of `alpha`.

    Marsaglia and Tsang's method (alpha below 1: alpha + 1, times uniform ** (1 / alpha)); alpha
    equal to 1 is the exponential distribution, by inversion.
    """
    kind = float_dtype(alpha.dtype)
    each = math.prod(shape)
    alphas = np.repeat(alpha.astype(np.float64).reshape(-1), each)
    streams = _Streams(state, alphas.size)
    drawn = np.empty(alphas.size, np.float64)
    unit = np.flatnonzero(alphas == 1.0)
    drawn[unit] = -np.log1p(-streams.uniform(unit))
    active = np.flatnonzero(alphas != 1.0)
    while active.size:
        accepted, values = _gamma_attempt(streams, active, alphas[active])
        drawn[active[accepted]] = values[accepted]
        active = active[~accepted]
    return _by_parameter(drawn, shape, alpha, kind)


def _gamma_attempt(
    streams: _Streams, who: _Indices, alpha: _Doubles
) -> tuple[NDArray[np.bool_], _Doubles]:
    """One proposal for each sample in `who`: (accepted, value)."""
    small = alpha < 1.0
    d = alpha + np.where(small, 2.0 / 3.0, -1.0 / 3.0)
    x = streams.normal(who)
    v = 1.0 + (1.0 / 3.0) / np.sqrt(d) * x
    accepted = v > 0.0  # the others draw no uniform number
    with np.errstate(all="ignore"):
        v = v * v * v
        u = np.ones_like(x)
        u[accepted] = streams.uniform(who[accepted])
        squeeze = u < 1.0 - 0.0331 * (x * x) * (x * x)
        exact = np.log(u) < 0.5 * x * x + d * (1.0 - v + np.log(v))
    accepted &= squeeze | exact
    values = d * v
    boosted = accepted & small
    values[boosted] *= np.power(streams.uniform(who[boosted]), 1.0 / alpha[boosted])
    return accepted, values


# Poisson ----------------------------------------------------------------------------------------


def poisson_np(state: State, shape: Shape, rate: Array, dtype: DTypeLike) -> Array:
    """Poisson counts: array of `shape + rate.shape` and `dtype` (floating, int32 or int64).

    Small rates count uniform factors until their product falls to exp(-rate) (Knuth); large ones
    use Hörmann's transformed rejection. A negative or infinite or NaN rate gives NaN, which an
    integer dtype cannot hold.
    """
    each = math.prod(shape)
    rates = np.repeat(rate.astype(np.float64).reshape(-1), each)
    streams = _Streams(state, rates.size)
    valid = np.isfinite(rates) & (rates >= 0.0)
    drawn = np.full(rates.size, np.nan)
    small = valid & (rates < _POISSON_LARGE_RATE)
    _poisson_small(streams, np.flatnonzero(small), rates, drawn)
    active = np.flatnonzero(valid & ~small)
    while active.size:
        accepted, values = _poisson_attempt(streams, active, rates[active])
        drawn[active[accepted]] = values[accepted]
        active = active[~accepted]
    return _by_parameter(drawn, shape, rate, dtype)


def _poisson_small(streams: _Streams, active: _Indices, rates: _Doubles, drawn: _Doubles) -> None:
    floor = np.exp(-rates)
    product = np.ones_like(rates)
    count = 0.0
    while active.size:
        product[active] *= streams.uniform(active)
        done = product[active] <= floor[active]
        drawn[active[done]] = count
        active = active[~done]
        count += 1.0


def _poisson_attempt(
    streams: _Streams, who: _Indices, rate: _Doubles
) -> tuple[NDArray[np.bool_], _Doubles]:
    """One proposal of the transformed rejection for each sample in `who`: (accepted, count)."""
    u = streams.uniform(who) - 0.5
    v = streams.uniform(who)
    b = 0.931 + 2.53 * np.sqrt(rate)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    u_shifted = 0.5 - np.abs(u)
    with np.errstate(divide="ignore", invalid="ignore"):
        count = np.floor((2.0 * a / u_shifted + b) * u + rate + 0.43)
        inside = (u_shifted >= 0.07) & (v <= 0.9277 - 3.6224 / (b - 2.0))
        outside = (count < 0.0) | ((u_shifted < 0.013) & (v > u_shifted))
        log_ratio = np.log(v * inverse_alpha / (a / (u_shifted * u_shifted) + b))
    accepted = inside.copy()
    for i in np.flatnonzero(~inside & ~outside).tolist():
        k = float(count[i])
        accepted[i] = log_ratio[i] <= -rate[i] + k * math.log(rate[i]) - math.lgamma(k + 1.0)
    return accepted, count


# Normal between given bounds --------------------------------------------------------------------


def parameterized_truncated_normal_np(
    state: State,
    shape: Shape,
    means: ArrayLike,
    stddevs: ArrayLike,
    minvals: ArrayLike,
    maxvals: ArrayLike,
    dtype: DTypeLike,
) -> Array:
    """Normal numbers between bounds, parameters given for the whole or for each row.

    Args:
      shape: at least one dimension; dimension 0 counts the rows.
      means, stddevs, minvals, maxvals: scalars or vectors of length 1 or `shape[0]`.
      dtype: float16, float32 or float64; the arithmetic is done in it.

    Raises:
      ValueError: a standard deviation not above 0, an empty interval, or both bounds infinite.
      RuntimeError: a sampler rejected too many proposals in a row.
    """
    kind = float_dtype(dtype)
    given = [np.asarray(value, kind) for value in (means, stddevs, minvals, maxvals)]
    single = given[0].size == given[1].size == 1 and given[2].ndim == given[3].ndim == 0
    count = math.prod(shape)
    batches, samples = truncated_batches(count, None if single else shape[0])
    table = [np.broadcast_to(value.reshape(-1), (batches,)) for value in given]
    out = np.empty(count, kind)
    for batch in range(batches):
        part = out[batch * samples : (batch + 1) * samples]
        state = _fill_bounded(state, part, *(value[batch] for value in table))
    return out.reshape(shape)


def _fill_bounded(state: State, out: Array, mean: Any, stddev: Any, low: Any, high: Any) -> State:
    """Fills `out` and returns the state after the last block used.

    The parameters are scalars of the dtype of `out`.
    """
    if not (stddev > 0 and low < high and (np.isfinite(low) or np.isfinite(high))):
        raise ValueError(
            "Invalid parameters of a truncated normal: need stddev > 0 and minval < maxval, one "
            f"of them finite, got stddev={stddev}, minval={low}, maxval={high}"
        )
    T = out.dtype.type
    if (np.isinf(low) and low < 0) or high < mean:
        # Mirror, so that the bound nearer to the mean is the lower one.
        low, high, stddev = high, low, -stddev
    low, high = (low - mean) / stddev, (high - mean) / stddev
    root = np.sqrt(low * low + T(4))
    cutoff = T(2) * np.exp(T(0.5) + low * (low - root) / T(4)) / (low + root)
    wide = T(_NORMAL_PROPOSAL_STDDEVS)
    if (low < -wide and high >= 0) or (high > wide and low <= 0):
        proposal, blocks_each = _from_normal, 1
    elif high - low < cutoff:
        proposal, blocks_each = _from_uniform, 2
    else:
        proposal, blocks_each = _from_exponential, 1
    done = 0
    rejected = 0
    while done < out.size:
        rounds = max(4, (out.size - done) // 2)
        values, accepted = proposal(state, rounds, low, high, T)
        where = np.flatnonzero(accepted)[: out.size - done]
        if where.size == 0:
            rejected += accepted.size
            if rejected > _MAX_REJECTIONS:
                raise RuntimeError(f"no number of a truncated normal accepted in {rejected} draws")
        else:
            rejected = 0
        out[done : done + where.size] = values[where] * stddev + mean
        done += where.size
        per_round = accepted.size // rounds
        used = rounds if done < out.size else int(where[-1]) // per_round + 1
        state = advance(state, used * blocks_each)
    return state


def _from_normal(
    state: State, rounds: int, low: Any, high: Any, T: Any
) -> tuple[Array, NDArray[np.bool_]]:
    per_block = 2 if T is np.float64 else 4
    values = normal_np(state, (rounds * per_block,), T)
    return values, (values >= low) & (values <= high)


def _from_uniform(
    state: State, rounds: int, low: Any, high: Any, T: Any
) -> tuple[Array, NDArray[np.bool_]]:
    """Blocks alternate: proposals, then the draws that decide them."""
    per_block = 2 if T is np.float64 else 4
    draws = uniform_np(state, (2 * rounds * per_block,), T).reshape(rounds, 2, per_block)
    values = draws[:, 0] * (high - low) + low
    offset = T(0) if low < 0 else low * low
    accepted = draws[:, 1] <= np.exp((offset - values * values) / T(2))
    return values.reshape(-1), accepted.reshape(-1)


def _from_exponential(
    state: State, rounds: int, low: Any, high: Any, T: Any
) -> tuple[Array, NDArray[np.bool_]]:
    """Neighbouring draws of a block: a proposal and what decides it."""
    per_block = 2 if T is np.float64 else 4
    draws = uniform_np(state, (rounds * per_block,), T).reshape(-1, 2)
    alpha = (low + np.sqrt(low * low + T(4))) / T(2)
    with np.errstate(divide="ignore"):
        values = -np.log(draws[:, 0]) / alpha + low
    x = alpha - values if low < alpha else np.full_like(values, low - alpha)
    return values, (draws[:, 1] <= np.exp(-x * x / T(2))) & (values < high)
