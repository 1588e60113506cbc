"""Hamiltonian Monte Carlo: several chains at once, in one loop of the graph.

Neal, "MCMC using Hamiltonian dynamics" (Handbook of Markov Chain Monte Carlo, 2011, chapter 5),
sections 5.2 and 5.3; step sizes and scales are learnt as `headrace.bayes.adaptation` says. A chain
is a scan over its iterations: one XLA program, whichever operations the density is made of.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import headrace as tf
from headrace.bayes.adaptation import DualAveraging, Metric, Moments, schedule
from headrace.bayes.parameters import LogDensity, Parameters
from headrace.ops.control.functional import scan_op, set_outputs
from headrace.ops.core.static import static_value

__all__ = ["Chains", "Point", "leapfrog", "sample"]

#: Energies that grow by more say that the path has left the solution: Hoffman and Gelman (2014),
#: section 3.1.1.
_DIVERGED = 1000.0
#: Twice or half the step size is tried at most so often.
_DOUBLINGS = 60
#: Paths have no more steps, however small they are.
_MOST_STEPS = 1024

#: Takes positions ``[chains, size]``; their log densities ``[chains]`` and the gradients.
Density = Callable[[Any], tuple[Any, Any]]


class Point(NamedTuple):
    """Where chains are: position ``[chains, size]``, log density ``[chains]`` and its gradient.

    >>> Point(position=[[2.0]], log_density=[-2.0], gradient=[[-2.0]]).log_density
    [-2.0]
    """

    position: Any
    log_density: Any
    gradient: Any


class Chains(NamedTuple):
    """What `sample` gives: tensors, which a session computes.

    Attributes:
        samples: in the form of ``start``, each of shape ``[chains, draws, ...]``.
        log_density: of each draw, up to a constant, with respect to the unconstrained parameters:
            ``[chains, draws]``.
        acceptance: the probability with which each proposal was accepted, ``[chains, draws]``.
        diverging: whether the path to it left the solution, ``[chains, draws]``: then the step size
            is too large somewhere, and draws there are too few.
        step_size: a scalar; ``num_leapfrog_steps``: of each path, an int32 scalar.
        scales: what was learnt of the unconstrained parameters in their order: variances
            ``[size]``, or their covariance ``[size, size]``.

    >>> import headrace as tf
    >>> normal = lambda x: -0.5 * tf.reduce_sum(tf.square(x))
    >>> chains = sample(normal, tf.zeros([3]), num_samples=10, num_chains=2)
    >>> chains.samples.shape.as_list(), chains.acceptance.shape.as_list()
    ([2, 10, 3], [2, 10])
    """

    samples: Any
    log_density: Any
    acceptance: Any
    diverging: Any
    step_size: Any
    num_leapfrog_steps: Any
    scales: Any


def leapfrog(
    density: Density, point: Point, momentum: Any, step_size: Any, num_steps: Any, metric: Metric
) -> tuple[Point, Any]:
    """Follow the Hamiltonian for some steps: Neal (2011), section 5.2.3.3.

    It is its own inverse when the momentum is turned round, and keeps volumes.

    Args:
        density: log density and gradient of positions.
        point: where to begin; ``momentum``: ``[chains, size]``.
        step_size: a scalar; ``num_steps``: an int32 scalar, at most 1024.

    Returns:
        the last point, and the momentum there.

    Raises:
        TypeError, ValueError: if shapes or dtypes of these do not fit.
    """

    def step(done: Any, at: Point, momentum: Any) -> Any:
        momentum += 0.5 * step_size * at.gradient
        position = at.position + step_size * metric.velocity(momentum)
        log_density, gradient = density(position)
        momentum += 0.5 * step_size * gradient
        return done + 1, Point(position, log_density, gradient), momentum

    found: Any = tf.while_loop(
        lambda done, *_: done < num_steps,
        step,
        (tf.constant(0), point, momentum),
        back_prop=False,
        maximum_iterations=_MOST_STEPS,
        name="leapfrog",
    )
    return found[1], found[2]


class _Outcome(NamedTuple):
    point: Point
    acceptance: Any
    diverging: Any


def _propose(
    density: Density, point: Point, momentum: Any, step_size: Any, num_steps: Any, metric: Metric
) -> tuple[Point, Any]:
    """The end of a path, and by how much the energy falls on it (-inf where that is no number)."""
    end, last = leapfrog(density, point, momentum, step_size, num_steps, metric)
    change = end.log_density - metric.kinetic(last) - point.log_density + metric.kinetic(momentum)
    return end, tf.where(tf.is_nan(change), tf.fill(tf.shape(change), _low(change)), change)


def _low(tensor: Any) -> Any:
    return tf.constant(-np.inf, tensor.dtype)


class _Sampler:
    """One transition of all chains, and how many steps its path has."""

    def __init__(
        self,
        density: Density,
        seed: Any,
        num_steps: int | None,
        length: float,
        jitter: float,
    ) -> None:
        self.density = density
        self.seed = seed
        self.num_steps = num_steps
        self.length = length
        self.jitter = jitter

    def steps(self, step_size: Any) -> Any:
        """How many steps a path has."""
        if self.num_steps is not None:
            return tf.constant(self.num_steps, tf.int32)
        count = tf.ceil(self.length / step_size - 1e-4)
        return tf.cast(tf.clip_by_value(count, 1.0, float(_MOST_STEPS)), tf.int32)

    def draw(self, iteration: Any, stream: int) -> Any:
        """The seed of the numbers of one iteration."""
        return tf.stack([self.seed[0] + stream, self.seed[1] + iteration])

    def transition(self, point: Point, step_size: Any, metric: Metric, iteration: Any) -> _Outcome:
        """Propose, and accept or not: Neal (2011), section 5.3.2."""
        chains, size = point.position.shape.as_list()
        dtype = point.position.dtype
        normals = tf.random.stateless_normal([chains, size], self.draw(iteration, 0), dtype=dtype)
        uniform = tf.random.stateless_uniform([chains + 1], self.draw(iteration, 1), dtype=dtype)
        steps = self.steps(step_size)
        if self.jitter:
            step_size *= 1.0 + self.jitter * (2.0 * uniform[chains] - 1.0)
        momentum = metric.momentum(normals)
        end, change = _propose(self.density, point, momentum, step_size, steps, metric)
        accepted = tf.log(uniform[:chains]) < change
        kept = Point(*[tf.where(accepted, a, b) for a, b in zip(end, point, strict=True)])
        return _Outcome(kept, tf.exp(tf.minimum(change, 0.0)), change < -_DIVERGED)

    def first_step(self, point: Point, step_size: Any, metric: Metric) -> Any:
        """A step size of which one step is accepted with a probability of about a half.

        Hoffman and Gelman (2014), algorithm 4, for the mean over the chains.
        """
        shape = point.position.shape.as_list()
        normals = tf.random.stateless_normal(shape, self.draw(0, 2), dtype=point.position.dtype)
        momentum = metric.momentum(normals)

        def look(tries: Any, size: Any, grows: Any, _: Any) -> Any:
            change = _propose(self.density, point, momentum, size, 1, metric)[1]
            is_small = tf.reduce_mean(tf.exp(tf.minimum(change, 0.0))) > 0.5
            grows = tf.logical_or(
                tf.logical_and(tf.equal(tries, 0), is_small),
                tf.logical_and(tf.greater(tries, 0), grows),
            )
            found = tf.not_equal(is_small, grows)
            other = tf.cond(grows, lambda: 2.0 * size, lambda: 0.5 * size)
            return tries + 1, tf.cond(found, lambda: size, lambda: other), grows, found

        start = (tf.constant(0), step_size, tf.constant(True), tf.constant(False))
        found: Any = tf.while_loop(
            lambda tries, size, grows, found: tf.logical_not(found),
            look,
            start,
            back_prop=False,
            maximum_iterations=_DOUBLINGS,
            name="first_step",
        )
        return found[1]


class _Warmup(NamedTuple):
    point: Point
    averaging: DualAveraging
    metric: Metric
    moments: Moments


def _warm_up(
    sampler: _Sampler, state: _Warmup, iterations: int, wanted: float, scales: bool
) -> Any:
    """Draw and learn; the state after the last iteration."""
    inside, ends = schedule(iterations, scales)

    def step(state: _Warmup, x: tuple[Any, Any, Any]) -> _Warmup:
        iteration, is_inside, is_end = x
        step_size = state.averaging.step_size
        outcome = sampler.transition(state.point, step_size, state.metric, iteration)
        averaging = state.averaging.after(tf.reduce_mean(outcome.acceptance), wanted)
        if not ends.any():
            return _Warmup(outcome.point, averaging, state.metric, state.moments)
        moments = tf.cond(
            is_inside,
            lambda: state.moments.after(outcome.point.position),
            lambda: state.moments,
        )

        def learn() -> Any:
            size = outcome.point.position.shape.as_list()[1]
            dense = moments.squares.shape.ndims == 2
            none = Moments.none(size, dense, moments.mean.dtype)
            return DualAveraging.begin(averaging.step_size), Metric.of(moments.covariance()), none

        averaging, metric, moments = tf.cond(
            is_end, learn, lambda: (averaging, state.metric, moments)
        )
        return _Warmup(outcome.point, averaging, metric, moments)

    xs = (tf.range(iterations), tf.constant(inside), tf.constant(ends))
    found: Any = tf.foldl(step, xs, state, back_prop=False, name="warm_up")
    return _Warmup(*found)


def _draws(sampler: _Sampler, point: Point, step_size: Any, metric: Metric, span: range) -> Any:
    """Positions ``[draws, chains, size]``, then log densities, acceptance and divergence."""

    def step(position: Any, log_density: Any, gradient: Any, iteration: Any) -> None:
        before = Point(position, log_density, gradient)
        after, acceptance, diverging = sampler.transition(before, step_size, metric, iteration)
        set_outputs([*after, after.position, after.log_density, acceptance, diverging])

    with tf.name_scope("draws"):
        iterations = tf.range(span.start, span.stop)
        dims = [t.dims for t in point]
        return scan_op(step, list(point), dims, [iterations], reverse=False)[1]


def sample(
    log_density: Callable[[Any], Any],
    start: Any,
    num_samples: int,
    num_warmup: int = 500,
    num_chains: int | None = 4,
    step_size: Any = None,
    num_leapfrog_steps: int | None = None,
    trajectory_length: float = math.pi / 2,
    target_acceptance: float = 0.8,
    scales: str = "diagonal",
    jitter: float = 0.1,
    constraints: Any = None,
    spread: float = 1.0,
    seed: int | None = None,
    name: str | None = None,
) -> Chains:
    """Draw from a density with Hamiltonian Monte Carlo.

    Warm-up learns one step size and one set of scales for all chains together, from what all of
    them accept and visit; then draws are made with both as they are. See docs/bayes.md.

    Args:
        log_density: takes the parameters in the form of ``start``, returns the logarithm of their
            density up to a constant: a scalar. It is traced for one chain; all chains are computed
            as one batch.
        start: a tensor or a nest of tensors (mostly a dictionary by name), all float32 or all
            float64.
        num_samples: draws of each chain after ``num_warmup`` iterations that are not kept.
        num_chains: how many. None: the first axis of each start counts the chains, which begin
            there exactly.
        step_size: the first one tried, or, without warm-up, the one used; by default it is found.
        num_leapfrog_steps: of each path, up to 1024. By default as many as it takes to go as far
            as ``trajectory_length``, in units of the scales.
        target_acceptance: what steps are chosen for, between 0 and 1.
        scales: "diagonal", "dense" (a whole covariance matrix) or "unit" (none are learnt).
        jitter: each path has its step size times a random number between ``1 - jitter`` and
            ``1 + jitter``, so that no path comes back to where it began (Neal 2011, section 5.3.2).
        constraints: which parameters are not any real numbers, as `Parameters` says: "positive",
            "unit", or a bijector, by name.
        spread: chains begin as far as this from ``start``, along each unconstrained parameter,
            at random.
        seed: of all random numbers; see ``tf.set_random_seed``.
        name: scope of the ops.

    Raises:
        TypeError: if ``log_density`` is no function, or dtypes differ.
        ValueError: for numbers out of range, unknown shapes, a density that is no scalar or does
            not depend on the parameters.
        InvalidArgumentError: when run, if the log density or its gradient is not finite where a
            chain begins, or a ``step_size`` that is a tensor is not above 0 and finite.
    """
    with tf.name_scope(name or "hmc"):
        _check(num_samples, num_warmup, num_chains, num_leapfrog_steps, scales)
        _check_floats(trajectory_length, target_acceptance, jitter, spread)
        parameters = Parameters(start, constraints, chains=num_chains is None)
        dtype = parameters.dtype
        density = LogDensity(log_density, parameters)
        # Seeds from -2^31 on would run out of numbers as iterations are added.
        seeds = tf.random_uniform([2], 0, 2**30, tf.int32, seed=seed)
        first = _first_point(density, num_chains, spread, seeds)
        dense = scales == "dense"
        metric = Metric.unit(parameters.size, dense, dtype)
        steps, length = num_leapfrog_steps, float(trajectory_length)
        sampler = _Sampler(density.of_chains, seeds, steps, length, float(jitter))
        size = _first_step(sampler, first, metric, step_size)
        if num_warmup:
            moments = Moments.none(parameters.size, dense, dtype)
            state = _Warmup(first, DualAveraging.begin(size), metric, moments)
            learns = scales != "unit"
            state = _warm_up(sampler, state, num_warmup, float(target_acceptance), learns)
            first, size, metric = state.point, state.averaging.final, state.metric
        span = range(num_warmup, num_warmup + num_samples)
        positions, logs, acceptance, diverging = _draws(sampler, first, size, metric, span)
        return Chains(
            parameters.pack(tf.transpose(positions, [1, 0, 2])),
            tf.transpose(logs),
            tf.transpose(acceptance),
            tf.transpose(diverging),
            size,
            sampler.steps(size),
            metric.covariance,
        )


def _first_point(density: LogDensity, num_chains: int | None, spread: float, seeds: Any) -> Point:
    """Where the chains begin; it is looked at before anything else is computed."""
    parameters = density.parameters
    rows = parameters.row()
    if num_chains is not None:
        shape = [num_chains, parameters.size]
        seed = tf.stack([seeds[0] + 3, seeds[1]])
        unit = tf.random.stateless_uniform(shape, seed, dtype=parameters.dtype)
        rows += spread * (2.0 * unit - 1.0)
    log_density, gradient = density.of_chains(rows)
    finite = tf.is_finite(log_density) & tf.reduce_all(tf.is_finite(gradient), axis=1)
    check = tf.Assert(
        tf.reduce_all(finite),
        [
            "The log density and its gradient must be finite where chains begin. The log densities "
            "of the chains there are",
            log_density,
            "of which these are not finite, or have no finite gradient:",
            tf.logical_not(finite),
            "Give another start, a smaller spread, or constraints.",
        ],
        summarize=64,
    )
    with tf.control_dependencies([check]):
        return Point(tf.identity(rows), tf.identity(log_density), tf.identity(gradient))


def _first_step(sampler: _Sampler, point: Point, metric: Metric, step_size: Any) -> Any:
    dtype = point.position.dtype
    if step_size is None:
        return sampler.first_step(point, tf.constant(1.0, dtype), metric)
    size = tf.convert_to_tensor(step_size, dtype, name="step_size")
    if size.shape.ndims:
        raise ValueError(f"step_size must be a scalar, not of shape {size.shape}.")
    known = static_value(size)
    if known is not None:
        if not (np.isfinite(known) and known > 0):
            raise ValueError(f"step_size must be above 0 and finite, not {known}.")
        return size
    fine = tf.is_finite(size) & (size > 0.0)
    check = tf.Assert(fine, ["step_size must be above 0 and finite, not", size])
    with tf.control_dependencies([check]):
        return tf.identity(size)


def _check(
    num_samples: Any, num_warmup: Any, num_chains: Any, num_leapfrog_steps: Any, scales: Any
) -> None:
    counts = {
        "num_samples": (num_samples, 0, None),
        "num_warmup": (num_warmup, 0, None),
        "num_chains": (1 if num_chains is None else num_chains, 1, None),
        "num_leapfrog_steps": (
            1 if num_leapfrog_steps is None else num_leapfrog_steps,
            1,
            _MOST_STEPS,
        ),
    }
    for name, (value, least, most) in counts.items():
        whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
        if not whole or value < least or (most is not None and value > most):
            bounds = f"from {least} on" if most is None else f"from {least} to {most}"
            raise ValueError(f"{name} must be a Python integer {bounds}, not {value!r}.")
    if scales not in ("diagonal", "dense", "unit"):
        raise ValueError(f"scales must be 'diagonal', 'dense' or 'unit', not {scales!r}.")


def _check_floats(length: Any, acceptance: Any, jitter: Any, spread: Any) -> None:
    if not (math.isfinite(length) and length > 0):
        raise ValueError(f"trajectory_length must be above 0 and finite, not {length}.")
    if not 0 < acceptance < 1:
        raise ValueError(f"target_acceptance must be between 0 and 1, not {acceptance}.")
    if not 0 <= jitter < 1:
        raise ValueError(f"jitter must be from 0 to below 1, not {jitter}.")
    if not (math.isfinite(spread) and spread >= 0):
        raise ValueError(f"spread must be 0 or more and finite, not {spread}.")
