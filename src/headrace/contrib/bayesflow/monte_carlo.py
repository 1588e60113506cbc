"""``tf.contrib.bayesflow.monte_carlo``: expectations as means over draws."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import headrace as tf

__all__ = [
    "expectation",
    "expectation_importance_sampler",
    "expectation_importance_sampler_logspace",
]

Function = Callable[[Any], Any]


def expectation(
    f: Function,
    samples: Any,
    log_prob: Function | None = None,
    use_reparametrization: bool = True,
    axis: Any = 0,
    keep_dims: bool = False,
    name: str | None = None,
) -> Any:
    """The mean of ``f`` over draws, with a gradient with respect to the density they are from.

    Args:
        f: takes the draws.
        samples: a tensor of draws, along ``axis``.
        log_prob: the log density of draws; needed without ``use_reparametrization``.
        use_reparametrization: let gradients flow through the draws. Otherwise they come from the
            score of the density: Williams (1992), "Simple statistical gradient-following
            algorithms".
        axis: what to take the mean over; ``keep_dims``: leave it, of size 1.

    Returns:
        a tensor of the shape of ``f(samples)`` without ``axis``.

    Raises:
        ValueError: if ``log_prob`` is no function but needed.
    """
    with tf.name_scope(name or "expectation"):
        if use_reparametrization:
            return tf.reduce_mean(f(samples), axis=axis, keepdims=keep_dims)
        if not callable(log_prob):
            raise ValueError("log_prob must be a function if use_reparametrization is False.")
        drawn = tf.stop_gradient(samples)
        value, score = f(drawn), log_prob(drawn)
        # The difference is 0 and has the gradient of the score.
        value += tf.stop_gradient(value) * (score - tf.stop_gradient(score))
        return tf.reduce_mean(value, axis=axis, keepdims=keep_dims)


def expectation_importance_sampler(
    f: Function,
    log_p: Function,
    sampling_dist_q: Any,
    z: Any = None,
    n: int | None = None,
    seed: int | None = None,
    name: str = "expectation_importance_sampler",
) -> Any:
    """The expectation of ``f`` under the density ``exp(log_p)``, from draws of another one.

    Args:
        f, log_p: functions of draws.
        sampling_dist_q: a distribution of `tf.distributions`.
        z: draws of it, along the first axis; or ``n``: how many to draw.
        seed: of the draws.

    Returns:
        a tensor of the shape of ``f(z)`` without the first axis.

    Raises:
        ValueError: unless one of ``z`` and ``n`` is given.
    """
    with tf.name_scope(name):
        z = _drawn(sampling_dist_q, z, n, seed)
        log_weights = log_p(z) - sampling_dist_q.log_prob(z)
        most = tf.stop_gradient(tf.reduce_max(log_weights, axis=0))
        return tf.reduce_mean(f(z) * tf.exp(log_weights - most), axis=0) * tf.exp(most)


def expectation_importance_sampler_logspace(
    log_f: Function,
    log_p: Function,
    sampling_dist_q: Any,
    z: Any = None,
    n: int | None = None,
    seed: int | None = None,
    name: str = "expectation_importance_sampler_logspace",
) -> Any:
    """The logarithm of the expectation of ``exp(log_f)``; see `expectation_importance_sampler`.

    Returns:
        a tensor of the shape of ``log_f(z)`` without the first axis.

    Raises:
        ValueError: unless one of ``z`` and ``n`` is given.
    """
    with tf.name_scope(name):
        z = _drawn(sampling_dist_q, z, n, seed)
        values = log_f(z) + log_p(z) - sampling_dist_q.log_prob(z)
        count = tf.cast(tf.shape(values)[0], values.dtype)
        return tf.reduce_logsumexp(values, axis=0) - tf.log(count)


def _drawn(distribution: Any, z: Any, n: int | None, seed: int | None) -> Any:
    if (z is None) == (n is None):
        raise ValueError(f"Give either draws z, or how many to draw n; got z={z} and n={n}.")
    return distribution.sample(n, seed=seed) if z is None else tf.convert_to_tensor(z, name="z")
