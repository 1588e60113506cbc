"""What a sampler learns while it warms up: its step size, and the scales of the parameters.

Step size: dual averaging, Hoffman and Gelman, "The No-U-Turn sampler" (JMLR 15, 2014), section 3.2,
with the constants given there. Scales: the variances of what was drawn, in windows that double, as
Stan does it (Stan Reference Manual, "HMC algorithm parameters", automatic parameter tuning).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import headrace as tf

__all__ = ["DualAveraging", "Metric", "Moments", "schedule"]

#: Constants of dual averaging: gamma, t0, kappa.
_SHRINKAGE, _OFFSET, _DECAY = 0.05, 10.0, 0.75
#: Iterations before the first window, in the first one and after the last.
_FIRST, _WINDOW, _LAST = 75, 25, 50


class DualAveraging(NamedTuple):
    """The state of dual averaging, all scalars.

    Attributes:
        log_step: of the step that is tried; ``log_mean``: of the one to keep.
        error: the mean of (wanted - found) acceptance; ``centre``: where steps shrink to.
        count: how many iterations it has seen.
    """

    log_step: Any
    log_mean: Any
    error: Any
    centre: Any
    count: Any

    @classmethod
    def begin(cls, step_size: Any) -> DualAveraging:
        """Before the first iteration: steps shrink towards ten times the first one."""
        log_step = tf.log(step_size)
        zero = tf.zeros_like(log_step)
        return cls(log_step, log_step, zero, log_step + float(np.log(10.0)), zero)

    def after(self, acceptance: Any, wanted: float) -> DualAveraging:
        """After one iteration with the given probability of acceptance."""
        count = self.count + 1.0
        weight = 1.0 / (count + _OFFSET)
        error = (1.0 - weight) * self.error + weight * (wanted - acceptance)
        log_step = self.centre - tf.sqrt(count) / _SHRINKAGE * error
        share = tf.exp(-_DECAY * tf.log(count))
        log_mean = share * log_step + (1.0 - share) * self.log_mean
        return DualAveraging(log_step, log_mean, error, self.centre, count)

    @property
    def step_size(self) -> Any:
        """The step to try next."""
        return tf.exp(self.log_step)

    @property
    def final(self) -> Any:
        """The step to keep."""
        return tf.exp(self.log_mean)


class Moments(NamedTuple):
    """Count, mean and sum of squared deviations of all rows seen (Welford 1962; for several at
    once Chan, Golub and LeVeque 1983)."""

    count: Any
    mean: Any
    squares: Any

    @classmethod
    def none(cls, size: int, dense: bool, dtype: Any) -> Moments:
        """Of no rows."""
        squares = tf.zeros([size, size] if dense else [size], dtype)
        return cls(tf.zeros([], dtype), tf.zeros([size], dtype), squares)

    def after(self, rows: Any) -> Moments:
        """With further rows ``[n, size]``."""
        dense = self.squares.shape.ndims == 2
        added = rows.shape.as_list()[0]
        mean = tf.reduce_mean(rows, axis=0)
        centred = rows - mean
        shift = mean - self.mean
        count = self.count + added
        weight = self.count * added / count
        if dense:
            squares = tf.matmul(centred, centred, transpose_a=True)
            squares += weight * shift[:, None] * shift[None, :]
        else:
            squares = tf.reduce_sum(tf.square(centred), axis=0) + weight * tf.square(shift)
        return Moments(count, self.mean + shift * added / count, self.squares + squares)

    def covariance(self) -> Any:
        """Variances, or the covariance matrix, drawn a little towards small equal ones."""
        found = self.squares / tf.maximum(self.count - 1.0, 1.0)
        small = tf.fill([found.shape.as_list()[0]], tf.constant(1e-3, found.dtype))
        small = tf.diag(small) if found.shape.ndims == 2 else small
        return (self.count * found + 5.0 * small) / (self.count + 5.0)


class Metric(NamedTuple):
    """The inverse mass matrix: an estimate of the covariance of the parameters.

    Attributes:
        covariance: ``[size]``, or ``[size, size]``.
        root: its square root, or its lower Cholesky factor.
    """

    covariance: Any
    root: Any

    @classmethod
    def of(cls, covariance: Any) -> Metric:
        """The metric of variances or of a covariance matrix."""
        if covariance.shape.ndims == 2:
            return cls(covariance, tf.cholesky(covariance))
        return cls(covariance, tf.sqrt(covariance))

    @classmethod
    def unit(cls, size: int, dense: bool, dtype: Any) -> Metric:
        """Equal scales of 1."""
        one = tf.eye(size, dtype=dtype) if dense else tf.ones([size], dtype)
        return cls(one, one)

    def momentum(self, normals: Any) -> Any:
        """Momenta ``[chains, size]`` made of as many standard normal numbers."""
        if self.root.shape.ndims == 2:
            solved = tf.matrix_triangular_solve(self.root, tf.transpose(normals), adjoint=True)
            return tf.transpose(solved)
        return normals / self.root

    def velocity(self, momenta: Any) -> Any:
        """How positions change with such momenta."""
        if self.covariance.shape.ndims == 2:
            return tf.matmul(momenta, self.covariance)
        return momenta * self.covariance

    def kinetic(self, momenta: Any) -> Any:
        """Their kinetic energies, ``[chains]``."""
        return 0.5 * tf.reduce_sum(momenta * self.velocity(momenta), axis=-1)


def schedule(iterations: int, learns_scales: bool) -> tuple[Any, Any]:
    """In which iterations draws count for the scales, and after which ones these change.

    Returns:
        two boolean arrays of as many elements as there are iterations.
    """
    inside = np.zeros(iterations, bool)
    ends = np.zeros(iterations, bool)
    first, window, last = _FIRST, _WINDOW, _LAST
    if iterations < 20 or not learns_scales:
        return inside, ends
    if iterations < first + window + last:
        first, last = int(0.15 * iterations), int(0.1 * iterations)
        window = iterations - first - last
    start, stop = first, iterations - last
    inside[start:stop] = True
    while start < stop:
        # The next window would not fit: this one takes what is left.
        end = start + window if start + 3 * window <= stop else stop
        ends[end - 1] = True
        start, window = end, 2 * window
    return inside, ends
