"""Mean-field variational inference: independent normal densities near a posterior.

Kucukelbir, Tran, Ranganath, Gelman and Blei, "Automatic differentiation variational inference"
(JMLR 18, 2017): sections 2.3 to 2.5. The bound is maximised by any optimiser of `tf.train`, on all
data or on batches, in one process or on a cluster: what is learnt are ordinary variables.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import headrace as tf
from headrace.bayes.parameters import LogDensity, Parameters

__all__ = ["MeanField"]


class MeanField:
    """Independent normal densities of the unconstrained parameters, as variables to train.

    Args:
        start: the means to begin with: a tensor or a nest of tensors (mostly a dictionary by name).
        constraints: which parameters are not any real numbers: "positive", "unit", or a bijector,
            by name, as for `tf.bayes.hmc.sample`.
        scale: the standard deviation of each unconstrained parameter to begin with.
        name: scope of the variables ``loc`` and ``log_scale``, both ``[size]``.

    Attributes:
        loc: the means; ``scale``: the standard deviations, of the unconstrained parameters in their
            order: ``[size]``.

    Raises:
        TypeError: if the parameters are no floats.
        ValueError: if shapes are not known, there are no parameters, or ``scale`` is not above 0.

    >>> x = tf.constant([1.0, 2.0, 3.0])
    >>> def log_density(mean):  # of three numbers with variance 1, and a prior
    ...     return -0.5 * tf.reduce_sum(tf.square(x - mean)) - 0.5 * tf.square(mean)
    >>> q = tf.bayes.vi.MeanField(0.0, name="doc_q")
    >>> train = tf.train.AdamOptimizer(0.1).minimize(q.loss(log_density, num_draws=8, seed=1))
    >>> with tf.Session() as sess:
    ...     sess.run(tf.global_variables_initializer())
    ...     for _ in range(300):
    ...         sess.run(train)
    ...     abs(sess.run(q.loc).item() - 1.5) < 0.1
    True
    """

    def __init__(
        self, start: Any, constraints: Any = None, scale: float = 0.1, name: str = "mean_field"
    ) -> None:
        if not (math.isfinite(scale) and scale > 0):
            raise ValueError(f"scale must be above 0 and finite, not {scale}.")
        self._parameters = Parameters(start, constraints)
        with tf.variable_scope(name):
            self.loc = tf.get_variable("loc", initializer=self._parameters.row())
            first = np.full(self._parameters.size, math.log(scale), self.loc.dtype.as_numpy_dtype)
            self._log_scale = tf.get_variable("log_scale", initializer=first)
        self.scale = tf.exp(self._log_scale)

    def sample(self, num_draws: int, seed: int | None = None, name: str = "sample") -> Any:
        """Draws, in the form of the start: tensors ``[num_draws, ...]`` with gradients.

        Raises:
            ValueError: if ``num_draws`` is no integer from 1 on.
        """
        with tf.name_scope(name):
            return self._parameters.pack(self._rows(num_draws, seed))

    def entropy(self, name: str = "entropy") -> Any:
        """The entropy of the unconstrained parameters, a scalar in nats."""
        with tf.name_scope(name):
            constant = 0.5 * self._parameters.size * (1.0 + math.log(2.0 * math.pi))
            return tf.reduce_sum(self._log_scale) + constant

    def elbo(
        self,
        log_density: Callable[[Any], Any],
        num_draws: int = 1,
        seed: int | None = None,
        name: str = "elbo",
    ) -> Any:
        """An estimate of the evidence lower bound, with gradients: a scalar.

        Args:
            log_density: takes the parameters, returns the logarithm of prior and likelihood: a
                scalar. Of a batch of data, the likelihood has to be multiplied by the number of
                all rows and divided by that of the batch.
            num_draws: how many draws the estimate is a mean of.
            seed: of the draws.

        Raises:
            TypeError, ValueError: if ``log_density`` is no function or gives no scalar of the
                parameters' type, or ``num_draws`` is no integer from 1 on.
        """
        with tf.name_scope(name):
            density = LogDensity(log_density, self._parameters)
            rows = self._rows(num_draws, seed)
            if num_draws == 1:
                mean = density.of_row(rows[0])
            else:
                mean = tf.reduce_mean(tf.vectorized_map(density.of_row, rows))
            return mean + self.entropy()

    def loss(
        self,
        log_density: Callable[[Any], Any],
        num_draws: int = 1,
        seed: int | None = None,
        name: str = "loss",
    ) -> Any:
        """What an optimiser is to minimise: the `elbo` with the other sign, a scalar.

        Raises:
            TypeError, ValueError: as `elbo`.
        """
        with tf.name_scope(name):
            return -self.elbo(log_density, num_draws, seed)

    def _rows(self, num_draws: Any, seed: int | None) -> Any:
        """Draws of the unconstrained parameters: ``[num_draws, size]``."""
        if isinstance(num_draws, bool) or not isinstance(num_draws, int) or num_draws < 1:
            raise ValueError(f"num_draws must be a Python integer from 1 on, not {num_draws!r}.")
        shape = [num_draws, self._parameters.size]
        noise = tf.random_normal(shape, dtype=self._parameters.dtype, seed=seed)
        return self.loc + self.scale * noise
