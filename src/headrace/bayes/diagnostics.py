"""Whether chains have found the same distribution, and how much their draws say about it.

Vehtari, Gelman, Simpson, Carpenter and Buerkner, "Rank-normalization, folding, and localization: an
improved R-hat for assessing convergence of MCMC" (Bayesian Analysis 16, 2021): sections 3 and 4.
All is computed in float64.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import headrace as tf
from headrace.graph import nest

__all__ = ["ChainSummary", "effective_sample_size", "potential_scale_reduction", "summary"]

#: Fewer draws of a chain say nothing about it.
_FEWEST = 4


class ChainSummary(NamedTuple):
    """What `summary` gives: for each parameter tensors of its shape.

    Attributes:
        mean, stddev: over the draws of all chains.
        error: the standard error of the mean as an estimate, ``stddev / sqrt(ess)``.
        ess: see `effective_sample_size`; ``rhat``: see `potential_scale_reduction`.

    >>> import headrace as tf
    >>> draws = tf.constant([[1.0, 2.0, 3.0, 4.0], [2.0, 3.0, 4.0, 1.0]])
    >>> with tf.Session() as session:
    ...     print(session.run(tf.bayes.summary(draws).mean))
    2.5
    """

    mean: Any
    stddev: Any
    error: Any
    ess: Any
    rhat: Any


def effective_sample_size(samples: Any, name: str | None = None) -> Any:
    """How many independent draws would tell the mean as well.

    Chains are split in halves; autocorrelations of all lags come from one Fourier transform, and
    are summed as long as pairs of them are positive, made to fall (Geyer 1992): Vehtari et al.
    (2021), section 3.2. Draws that alternate may count for more than they are, but for no more than
    ``n log10(n)`` of ``n``.

    Args:
        samples: draws ``[chains, draws, ...]``, or a nest of them.

    Returns:
        float64 tensors of the shapes that remain, in the same nest; NaN where draws are not finite
        or all the same.

    Raises:
        TypeError: if samples are no floats.
        ValueError: if the number of chains or draws is not known while the graph is built, or there
            are no chains or fewer than four draws of each.
    """
    with tf.name_scope(name or "effective_sample_size"):
        return nest.map_structure(lambda s: _effective(_halves(s)), samples)


def potential_scale_reduction(samples: Any, rank_normalized: bool = True, name: Any = None) -> Any:
    """R-hat: how much wider all chains together are than each; near 1 if they agree.

    Vehtari et al. (2021) ask for less than 1.01. Chains are split in halves, so one chain will do.

    Args:
        samples: draws ``[chains, draws, ...]``, or a nest of them.
        rank_normalized: take the ranks of the draws as normal numbers, and of these and of their
            distances from the median (for chains that agree in all but their width) the larger
            R-hat: section 4.1 there. Otherwise the draws as they are.

    Returns:
        float64 tensors of the shapes that remain, in the same nest; NaN where draws are not finite
        or all the same.

    Raises:
        TypeError, ValueError: as `effective_sample_size`.
    """

    def reduction(given: Any) -> Any:
        halves = _halves(given)
        if not rank_normalized:
            return _reduction(halves)
        dims: list[Any] = halves.shape.as_list()
        count = dims[0] * dims[1]
        flat = tf.reshape(halves, [count, -1])
        ordered = tf.sort(flat, axis=0)
        median = 0.5 * (ordered[(count - 1) // 2] + ordered[count // 2])
        folded = tf.abs(flat - median)
        both = [tf.reshape(_normal_ranks(f), tf.shape(halves)) for f in (flat, folded)]
        worse = tf.maximum(*[_reduction(b) for b in both])
        bad = tf.logical_not(tf.reduce_all(tf.is_finite(halves), axis=[0, 1]))
        found = tf.where_v2(bad, tf.constant(float("nan"), tf.float64), worse)
        found.set_shape(halves.shape[2:])
        return found

    with tf.name_scope(name or "potential_scale_reduction"):
        return nest.map_structure(reduction, samples)


def summary(samples: Any, name: str | None = None) -> Any:
    """Means, deviations and diagnostics of draws.

    Args:
        samples: draws ``[chains, draws, ...]``, or a nest of them (mostly the ``samples`` of
            `tf.bayes.hmc.sample`).

    Returns:
        a ChainSummary for each tensor of samples, in the same nest.

    Raises:
        TypeError, ValueError: as `effective_sample_size`.

    >>> draws = tf.random_normal([4, 500, 3], seed=1)
    >>> with tf.Session() as sess:
    ...     found = sess.run(tf.bayes.summary(draws))
    >>> found.rhat.shape, bool((found.rhat < 1.02).all()), bool((found.ess > 1000).all())
    ((3,), True, True)
    """

    def one(given: Any) -> ChainSummary:
        halves = _halves(given)
        mean, variance = tf.nn.moments(halves, axes=[0, 1])
        stddev = tf.sqrt(variance)
        ess = effective_sample_size(given)
        return ChainSummary(
            mean, stddev, stddev / tf.sqrt(ess), ess, potential_scale_reduction(given)
        )

    with tf.name_scope(name or "summary"):
        return nest.map_structure(one, samples)


def _halves(samples: Any) -> Any:
    """Each chain as two: ``[2 * chains, draws // 2, ...]`` in float64."""
    tensor = tf.convert_to_tensor(samples, name="samples")
    if not tensor.dtype.is_floating:
        raise TypeError(f"samples must be floats, not {tensor.dtype.name}.")
    dims: list[Any] = tensor.shape.as_list() if tensor.shape.ndims is not None else []
    if len(dims) < 2 or None in dims[:2]:
        raise ValueError(
            "samples must have the shape [chains, draws, ...], with numbers of chains and draws "
            f"that are known while the graph is built, not {tensor.shape}."
        )
    chains, draws, *rest = dims
    if not chains or draws < _FEWEST:
        raise ValueError(
            f"Diagnostics need a chain of at least {_FEWEST} draws; samples have {chains} chains "
            f"of {draws} draws."
        )
    half = draws // 2
    # Of an odd number of draws the one in the middle is left out.
    both = tf.stack([tensor[:, :half], tensor[:, draws - half :]], axis=1)
    shape = tf.concat([[2 * chains, half], tf.shape(tensor)[2:]], 0)
    found = tf.cast(tf.reshape(both, shape), tf.float64)
    found.set_shape([2 * chains, half, *rest])
    return found


def _variances(draws: Any) -> tuple[Any, Any]:
    """The mean of the variances within chains, and the variance of all estimated with them."""
    count = draws.shape.as_list()[1]
    means, variances = tf.nn.moments(draws, axes=[1])
    within = tf.reduce_mean(variances, axis=0) * (count / (count - 1))
    chains = draws.shape.as_list()[0]
    spread = tf.nn.moments(means, axes=[0])[1] * (chains / (chains - 1))
    return within, within * ((count - 1) / count) + spread


def _reduction(draws: Any) -> Any:
    within, total = _variances(draws)
    return tf.sqrt(total / within)


def _normal_ranks(flat: Any) -> Any:
    """The ranks of numbers ``[n, columns]`` in their columns, as quantiles of a normal density."""
    count = flat.shape.as_list()[0]
    columns = tf.transpose(flat)
    ordered = tf.sort(columns, axis=1)
    # Equal numbers share the mean of their ranks.
    below, upto = (tf.searchsorted(ordered, columns, side=side) for side in ("left", "right"))
    ranks = tf.transpose(0.5 * (tf.cast(below + upto, tf.float64) + 1.0))
    # Blom's (1958) quantiles, as Vehtari et al. take them.
    return tf.math.ndtri((ranks - 0.375) / (count + 0.25))


def _effective(draws: Any) -> Any:
    """Of draws ``[chains, count, ...]`` that are split already."""
    chains, count = draws.shape.as_list()[:2]
    within, total = _variances(draws)
    mean_covariance = tf.reduce_mean(_autocovariances(draws), axis=0)
    correlation = 1.0 - (within - mean_covariance) / total
    pairs = count // 2
    # Of lag 0 it is 1 whatever the estimate.
    correlation = tf.concat([tf.ones_like(correlation[:1]), correlation[1:]], axis=0)
    even, odd = correlation[0 : 2 * pairs : 2], correlation[1 : 2 * pairs : 2]
    sums = even + odd
    positive = tf.cumprod(tf.cast(sums > 0.0, tf.float64), axis=0)
    falling = tf.scan(tf.minimum, sums, back_prop=False)
    time = -1.0 + 2.0 * tf.reduce_sum(falling * positive, axis=0)
    # The first lag after them, if it is positive, is counted once.
    first = tf.one_hot(
        tf.cast(tf.reduce_sum(positive, 0), tf.int32), pairs, axis=0, dtype=tf.float64
    )
    time += tf.maximum(tf.reduce_sum(even * first, axis=0), 0.0)
    number = float(chains * count)
    # Draws that alternate can make it 0 or less.
    return number / tf.maximum(time, 1.0 / math.log10(number))


def _autocovariances(draws: Any) -> Any:
    """``[chains, lags, ...]``, each divided by the number of draws."""
    count = draws.shape.as_list()[1]
    centred = draws - tf.reduce_mean(draws, axis=1, keepdims=True)
    rank = draws.shape.ndims
    order = [0, *range(2, rank), 1]
    last = tf.transpose(centred, order)
    size = 1 << (2 * count - 1).bit_length()
    padded = tf.pad(last, [[0, 0]] * (rank - 1) + [[0, size - count]])
    spectrum = tf.fft(tf.cast(padded, tf.complex128))
    found = tf.real(tf.ifft(spectrum * tf.conj(spectrum)))[..., :count] / float(count)
    back = [0, rank - 1, *range(1, rank - 1)]
    return tf.transpose(found, back)
