"""``tf.contrib.bayesflow.hmc``: Hamiltonian Monte Carlo with steps that the program chooses.

Neal, "MCMC using Hamiltonian dynamics" (2011), sections 5.2 and 5.3; annealing: Neal, "Annealed
importance sampling" (Statistics and Computing 11, 2001). `tf.bayes.hmc.sample` learns the steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import headrace as tf

__all__ = ["ais_chain", "chain", "kernel", "leapfrog_integrator", "leapfrog_step"]

Function = Callable[[Any], Any]


def chain(
    n_iterations: Any,
    step_size: Any,
    n_leapfrog_steps: Any,
    initial_x: Any,
    target_log_prob_fn: Function,
    event_dims: Sequence[int] = (),
    name: str | None = None,
) -> tuple[Any, Any]:
    """Iterations of `kernel`, one after another.

    Args:
        n_iterations: how many, an integer scalar.
        step_size, n_leapfrog_steps, target_log_prob_fn, event_dims: see `kernel`.
        initial_x: where the chains begin: a floating tensor ``chains + event``.

    Returns:
        The states ``[n_iterations, *initial_x.shape]``, and the probabilities with which proposals
        were accepted, ``[n_iterations, *chains]``.

    Raises:
        TypeError, ValueError: if the density does not depend on the states, or types differ.
    """
    with tf.name_scope(name or "hmc_chain"):
        x = tf.convert_to_tensor(initial_x, name="initial_x")
        log_prob, grad = _with_gradient(target_log_prob_fn)(x)

        def step(state: Any, _: Any) -> Any:
            x, _, log_prob, grad = state
            return kernel(
                step_size, n_leapfrog_steps, x, target_log_prob_fn, event_dims, log_prob, grad
            )

        start = (x, tf.zeros_like(log_prob), log_prob, grad)
        found: Any = tf.scan(step, tf.range(n_iterations), start, back_prop=False)
        return found[0], found[1]


def kernel(
    step_size: Any,
    n_leapfrog_steps: Any,
    x: Any,
    target_log_prob_fn: Function,
    event_dims: Sequence[int] = (),
    x_log_prob: Any = None,
    x_grad: Any = None,
    name: str | None = None,
) -> tuple[Any, Any, Any, Any]:
    """One proposal of Hamiltonian Monte Carlo, accepted or not, for all chains at once.

    Args:
        step_size: a number, or a tensor that broadcasts with ``x``.
        n_leapfrog_steps: an integer scalar.
        x: the states of the chains.
        target_log_prob_fn: takes ``x``, returns log densities of the shape of ``x`` without
            ``event_dims``.
        event_dims: the axes of ``x`` that belong to one state; all others count chains.
        x_log_prob, x_grad: what an earlier call returned for ``x``.

    Returns:
        The new states, the probabilities of acceptance, the log densities and the gradients there.

    Raises:
        ValueError: if the density does not depend on the states.
    """
    with tf.name_scope(name or "hmc_kernel"):
        x = tf.convert_to_tensor(x, name="x")
        density = _with_gradient(target_log_prob_fn)
        if x_log_prob is None or x_grad is None:
            x_log_prob, x_grad = density(x)
        axes = list(event_dims)
        momentum = tf.random_normal(tf.shape(x), dtype=x.dtype)

        def potential_and_grad(x: Any) -> tuple[Any, Any]:
            log_prob, grad = density(x)
            return -log_prob, -grad

        end, last, potential, grad = leapfrog_integrator(
            step_size, n_leapfrog_steps, x, momentum, potential_and_grad, -x_grad
        )
        change = -potential - x_log_prob
        change += 0.5 * tf.reduce_sum(tf.square(momentum) - tf.square(last), axes)
        # No number is a density of 0.
        rate = tf.where(tf.is_nan(change), tf.zeros_like(change), tf.exp(tf.minimum(change, 0.0)))
        accepted = tf.random_uniform(tf.shape(rate), dtype=x.dtype) < rate
        wide = accepted
        for axis in sorted(axis % len(x.shape) for axis in axes):
            wide = tf.expand_dims(wide, axis)
        return (
            tf.where_v2(wide, end, x),
            rate,
            tf.where(accepted, -potential, x_log_prob),
            tf.where_v2(wide, -grad, x_grad),
        )


def leapfrog_integrator(
    step_size: Any,
    n_steps: Any,
    initial_position: Any,
    initial_momentum: Any,
    potential_and_grad: Function,
    initial_grad: Any,
    name: str | None = None,
) -> tuple[Any, Any, Any, Any]:
    """Some steps of `leapfrog_step`: position, momentum, potential and its gradient at the end.

    Args:
        step_size: a number, or a tensor that broadcasts with the positions; ``n_steps``: an integer
            scalar, at least 1.
        initial_position, initial_momentum, initial_grad: tensors of one shape.
        potential_and_grad: takes positions, returns potentials and their gradients.

    Raises:
        TypeError, ValueError: if shapes or types change from one step to the next.
    """
    with tf.name_scope(name or "leapfrog_integrator"):
        position = tf.convert_to_tensor(initial_position)
        potential = tf.zeros_like(potential_and_grad(position)[0])

        def step(i: Any, position: Any, momentum: Any, _: Any, grad: Any) -> Any:
            return i + 1, *leapfrog_step(step_size, position, momentum, potential_and_grad, grad)

        found: Any = tf.while_loop(
            lambda i, *_: i < n_steps,
            step,
            (tf.constant(0), position, initial_momentum, potential, initial_grad),
            back_prop=False,
        )
        return found[1], found[2], found[3], found[4]


def leapfrog_step(
    step_size: Any,
    position: Any,
    momentum: Any,
    potential_and_grad: Function,
    grad: Any,
    name: str | None = None,
) -> tuple[Any, Any, Any, Any]:
    """Half a step of the momentum, one of the position, and the other half.

    Args:
        step_size: a number, or a tensor that broadcasts with the positions.
        position, momentum, grad: tensors of one shape.
        potential_and_grad: takes positions, returns potentials and their gradients.

    Returns:
        the new position and momentum, the potential and its gradient there.

    Raises:
        ValueError: if shapes do not fit.
    """
    with tf.name_scope(name or "leapfrog_step"):
        momentum -= 0.5 * step_size * grad
        position += step_size * momentum
        potential, grad = potential_and_grad(position)
        momentum -= 0.5 * step_size * grad
        return position, momentum, potential, grad


def ais_chain(
    n_iterations: int,
    step_size: Any,
    n_leapfrog_steps: Any,
    initial_x: Any,
    target_log_prob_fn: Function,
    proposal_log_prob_fn: Function,
    event_dims: Sequence[int] = (),
    name: str | None = None,
) -> tuple[Any, Any, Any]:
    """Annealed importance sampling: from a density that can be drawn from to the target.

    Args:
        n_iterations: how many densities lie between.
        initial_x: draws of the proposal, of shape ``chains + event``.
        target_log_prob_fn, proposal_log_prob_fn: log densities, of which the target's need not be
            normalised.
        step_size, n_leapfrog_steps, event_dims: see `kernel`.

    Returns:
        The logarithms of the weights, of which ``exp`` has the mean normaliser of the target over
        that of the proposal, ``chains``; the last states; their probabilities of acceptance.

    Raises:
        TypeError, ValueError: if a density does not depend on the states, or types differ.
    """
    with tf.name_scope(name or "hmc_ais_chain"):
        x = tf.convert_to_tensor(initial_x, name="initial_x")
        nothing = tf.zeros_like(target_log_prob_fn(x))

        def step(state: Any, beta: Any) -> Any:
            x, weight, _ = state

            def between(x: Any) -> Any:
                return (1.0 - beta) * proposal_log_prob_fn(x) + beta * target_log_prob_fn(x)

            weight += (target_log_prob_fn(x) - proposal_log_prob_fn(x)) / float(n_iterations)
            x, rate, _, _ = kernel(step_size, n_leapfrog_steps, x, between, event_dims)
            return x, weight, rate

        betas = tf.cast(tf.linspace(0.0, 1.0, n_iterations + 1)[1:], x.dtype)
        found: Any = tf.foldl(step, betas, (x, nothing, nothing), back_prop=False)
        return found[1], found[0], found[2]


def _with_gradient(function: Function) -> Callable[[Any], tuple[Any, Any]]:
    def both(x: Any) -> tuple[Any, Any]:
        value = function(x)
        (grad,) = tf.gradients(value, [x])
        if grad is None:
            raise ValueError("target_log_prob_fn does not depend on the state that it is given.")
        return value, grad

    return both
