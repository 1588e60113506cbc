"""Bayesian linear and logistic regression: log densities for samplers, and what is known exactly.

Linear: Bishop, "Pattern Recognition and Machine Learning" (2006), section 3.3. Logistic: section
4.5 there, where Laplace's approximation takes the place of what has no closed form.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

import headrace as tf

__all__ = ["LinearRegression", "LogisticRegression", "NormalPosterior"]


class NormalPosterior(NamedTuple):
    """A normal density: ``mean`` is ``[features]``, ``covariance`` ``[features, features]``.

    >>> NormalPosterior(mean=[0.0, 1.0], covariance=[[1.0, 0.0], [0.0, 2.0]]).mean
    [0.0, 1.0]
    """

    mean: Any
    covariance: Any


class _Regression:
    """Coefficients with a normal prior around 0."""

    def __init__(self, prior_scale: float, num_rows: int | None) -> None:
        if not (math.isfinite(prior_scale) and prior_scale > 0):
            raise ValueError(f"prior_scale must be above 0 and finite, not {prior_scale}.")
        if num_rows is not None and num_rows < 1:
            raise ValueError(f"num_rows must be at least 1, not {num_rows}.")
        self.prior_scale = prior_scale
        self.num_rows = num_rows

    def log_density(self, features: Any, targets: Any) -> Any:
        """The function of coefficients ``[features]`` that samplers and `MeanField` take.

        Args:
            features: ``[rows, features]``; a column of ones makes an intercept.
            targets: ``[rows]``, of the same dtype.

        Returns:
            a function that gives the logarithm of prior and likelihood up to a constant: a scalar.

        Raises:
            ValueError: if features are no matrix or targets no vector.
        """
        x, y = _checked(features, targets)
        y = self._possible(y)
        rows = tf.cast(tf.shape(x)[0], x.dtype)
        # Of a batch: as if all rows were like it.
        weight = 1.0 if self.num_rows is None else float(self.num_rows) / rows

        def function(coefficients: Any) -> Any:
            prior = -0.5 * tf.reduce_sum(tf.square(coefficients / self.prior_scale))
            return prior + weight * self._log_likelihood(tf.linalg.matvec(x, coefficients), y)

        return function

    def _log_likelihood(self, predicted: Any, targets: Any) -> Any:
        raise NotImplementedError

    def _possible(self, targets: Any) -> Any:
        """Targets that are checked for what the likelihood takes, when they are computed."""
        return targets


class LinearRegression(_Regression):
    """Linear regression with noise of a known scale, and a normal prior of the coefficients.

    Args:
        noise_scale: standard deviation of targets around what is predicted.
        prior_scale: standard deviation of each coefficient around 0.
        num_rows: of the whole data, where `log_density` gets batches of it.

    Raises:
        ValueError: if a scale is not above 0 and finite.

    >>> model = tf.bayes.LinearRegression(noise_scale=1.0, prior_scale=1.0)
    >>> with tf.Session() as sess:
    ...     sess.run(model.posterior([[1.0], [1.0], [1.0]], [2.0, 3.0, 3.0])).mean.tolist()
    [2.0]
    """

    def __init__(
        self, noise_scale: float = 1.0, prior_scale: float = 1.0, num_rows: int | None = None
    ) -> None:
        super().__init__(prior_scale, num_rows)
        if not (math.isfinite(noise_scale) and noise_scale > 0):
            raise ValueError(f"noise_scale must be above 0 and finite, not {noise_scale}.")
        self.noise_scale = noise_scale

    def _log_likelihood(self, predicted: Any, targets: Any) -> Any:
        return -0.5 * tf.reduce_sum(tf.square((targets - predicted) / self.noise_scale))

    def posterior(self, features: Any, targets: Any, name: str = "posterior") -> NormalPosterior:
        """The exact posterior density of the coefficients: Bishop (2006), equations 3.50 and 3.51.

        Args:
            features: ``[rows, features]``; ``targets``: ``[rows]``.

        Raises:
            ValueError: if features are no matrix or targets no vector.
        """
        with tf.name_scope(name):
            x, y = _checked(features, targets)
            noise = self.noise_scale**2
            gram = tf.matmul(x, x, transpose_a=True) / noise
            return _normal(gram, tf.linalg.matvec(x, y, transpose_a=True) / noise, self.prior_scale)


class LogisticRegression(_Regression):
    """Logistic regression with a normal prior of the coefficients; targets are 0 or 1.

    Args:
        prior_scale: standard deviation of each coefficient around 0.
        num_rows: of the whole data, where `log_density` gets batches of it.

    Raises:
        ValueError: if ``prior_scale`` is not above 0 and finite.
        InvalidArgumentError: when run, for targets below 0 or above 1.

    >>> model = tf.bayes.LogisticRegression(prior_scale=1.0)
    >>> with tf.Session() as sess:
    ...     near = sess.run(model.laplace([[1.0], [-1.0]], [1.0, 1.0]))
    >>> abs(near.mean.item()) < 1e-6, near.covariance.shape
    (True, (1, 1))
    """

    def __init__(self, prior_scale: float = 1.0, num_rows: int | None = None) -> None:
        super().__init__(prior_scale, num_rows)

    def _log_likelihood(self, predicted: Any, targets: Any) -> Any:
        return tf.reduce_sum(targets * predicted - tf.nn.softplus(predicted))

    def _possible(self, targets: Any) -> Any:
        ok = tf.reduce_all((targets >= 0) & (targets <= 1))
        message = "targets of a logistic regression must be 0 or 1, or lie between:"
        with tf.control_dependencies([tf.Assert(ok, [message, targets])]):
            return tf.identity(targets)

    def laplace(
        self, features: Any, targets: Any, num_steps: int = 20, name: str = "laplace"
    ) -> NormalPosterior:
        """Laplace's approximation: a normal density around the mode, found by Newton's method.

        Args:
            features: ``[rows, features]``; ``targets``: ``[rows]``.
            num_steps: of Newton's method from 0 on, at most: it ends when a step moves no
                coefficient by more than its rounding.

        Raises:
            ValueError: if features are no matrix of a known number of columns, or targets no
                vector.
        """
        with tf.name_scope(name):
            x, y = _checked(features, targets)
            y = self._possible(y)
            count = x.shape.as_list()[1]
            if count is None:
                raise ValueError(f"The number of features must be known, not {x.shape}.")

            def curvature(mode: Any) -> tuple[Any, Any]:
                p = tf.sigmoid(tf.linalg.matvec(x, mode))
                gram = tf.matmul(x, (p * (1.0 - p))[:, None] * x, transpose_a=True)
                slope = tf.linalg.matvec(x, y - p, transpose_a=True) - mode / self.prior_scale**2
                return gram, slope

            rounding = 16 * np.finfo(x.dtype.as_numpy_dtype).eps

            def goes_on(number: Any, mode: Any, move: Any) -> Any:
                least = rounding * tf.maximum(tf.reduce_max(tf.abs(mode)), 1.0)
                return (number < num_steps) & (tf.reduce_max(tf.abs(move)) > least)

            def step(number: Any, mode: Any, _: Any) -> Any:
                gram, slope = curvature(mode)
                move = _normal(gram, slope, self.prior_scale).mean
                return number + 1, mode + move, move

            start = 0, tf.zeros([count], x.dtype), tf.ones([count], x.dtype)
            mode = tf.while_loop(goes_on, step, start, back_prop=False)[1]
            gram, slope = curvature(mode)
            return NormalPosterior(mode, _normal(gram, slope, self.prior_scale).covariance)


def _normal(gram: Any, slope: Any, prior_scale: float) -> NormalPosterior:
    """The normal density of this precision beside the prior's, and of this times the mean."""
    count = tf.shape(gram)[0]
    unit = tf.eye(count, dtype=gram.dtype)
    root = tf.cholesky(gram + unit / prior_scale**2)
    mean = tf.cholesky_solve(root, slope[:, None])[:, 0]
    return NormalPosterior(mean, tf.cholesky_solve(root, unit))


def _checked(features: Any, targets: Any) -> tuple[Any, Any]:
    x = tf.convert_to_tensor(features, name="features")
    y = tf.convert_to_tensor(targets, dtype=x.dtype, name="targets")
    for value, rank, what in ((x, 2, "features must be a matrix"), (y, 1, "targets a vector")):
        if value.shape.ndims not in (None, rank):
            raise ValueError(f"{what}, not of shape {value.shape}.")
    return x, y
