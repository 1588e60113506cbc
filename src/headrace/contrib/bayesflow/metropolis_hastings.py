"""``tf.contrib.bayesflow.metropolis_hastings``: chains with any proposal.

Metropolis et al. (1953); Hastings, "Monte Carlo sampling methods using Markov chains and their
applications" (Biometrika 57, 1970).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import headrace as tf

__all__ = ["evolve", "proposal_normal", "proposal_uniform"]

#: Takes states; gives others, and by how much the logarithm of the density of going back is above
#: that of going there (None: both are equal).
Proposal = Callable[[Any], tuple[Any, Any]]


def evolve(
    initial_sample: Any,
    initial_log_density: Any,
    initial_log_accept_ratio: Any,
    target_log_prob_fn: Callable[[Any], Any],
    proposal_fn: Proposal,
    n_steps: Any = 1,
    seed: int | None = None,
    name: str | None = None,
) -> Any:
    """The op that moves chains, kept in variables, on by some steps.

    Args:
        initial_sample: a variable with the states ``chains + event``.
        initial_log_density, initial_log_accept_ratio: variables of shape ``chains``: the log
            densities there, and by how much the last proposals were better.
        target_log_prob_fn: takes states, returns log densities of shape ``chains``.
        proposal_fn: takes states; returns other ones and the logarithm of the ratio of the
            densities of going back and of going there, or None if both are equal.
        n_steps: an integer scalar.
        seed: of what decides whether a proposal is accepted.

    Returns:
        an op; it assigns to all three variables.

    Raises:
        TypeError, ValueError: if shapes or types change from one step to the next.
    """
    with tf.name_scope(name or "metropolis_hastings"):

        def step(i: Any, state: Any, log_density: Any, _: Any) -> Any:
            proposed, back = proposal_fn(state)
            there = target_log_prob_fn(proposed)
            ratio = there - log_density
            if back is not None:
                ratio += back
            uniform = tf.random_uniform(tf.shape(ratio), dtype=ratio.dtype, seed=seed)
            accepted = tf.log(uniform) < ratio
            wide = accepted
            for _ in range(len(state.shape) - len(accepted.shape)):
                wide = tf.expand_dims(wide, -1)
            return (
                i + 1,
                tf.where_v2(wide, proposed, state),
                tf.where(accepted, there, log_density),
                ratio,
            )

        kept = [initial_sample, initial_log_density, initial_log_accept_ratio]
        start = (tf.constant(0), *[tf.convert_to_tensor(k) for k in kept])
        found: Any = tf.while_loop(lambda i, *_: i < n_steps, step, start, back_prop=False)
        return tf.group(*[tf.assign(k, v) for k, v in zip(kept, found[1:], strict=True)])


def proposal_uniform(
    minval: Any = -1.0, maxval: Any = 1.0, seed: int | None = None, name: str | None = None
) -> Proposal:
    """A random walk with uniform steps: a function of states.

    Args:
        minval, maxval: scalars, or tensors that broadcast with the states; going there and back is
            taken to be equally likely, so they should be opposite.
        seed: of the steps.

    Raises:
        ValueError: when the function is called, if shapes do not fit.
    """

    def propose(state: Any) -> tuple[Any, Any]:
        with tf.name_scope(name or "proposal_uniform"):
            step = tf.random_uniform(tf.shape(state), dtype=state.dtype, seed=seed)
            low, high = (tf.cast(v, state.dtype) for v in (minval, maxval))
            return state + low + (high - low) * step, None

    return propose


def proposal_normal(scale: Any = 1.0, seed: int | None = None, name: str | None = None) -> Proposal:
    """A random walk with normal steps: a function of states.

    Args:
        scale: standard deviation of a step, a scalar or a tensor that broadcasts with the states.
        seed: of the steps.

    Raises:
        ValueError: when the function is called, if shapes do not fit.
    """

    def propose(state: Any) -> tuple[Any, Any]:
        with tf.name_scope(name or "proposal_normal"):
            step = tf.random_normal(tf.shape(state), dtype=state.dtype, seed=seed)
            return state + tf.cast(scale, state.dtype) * step, None

    return propose
