"""Distributions of positive numbers, and of numbers in (0, 1): Gamma, Exponential, Beta."""

from __future__ import annotations

from typing import Any

import numpy as np

import headrace as tf
from headrace.distributions import util
from headrace.distributions.distribution import FULLY_REPARAMETERIZED, Distribution
from headrace.distributions.kullback_leibler import RegisterKL


class Gamma(Distribution):
    """Gamma distributions.

    Samples are those of ``tf.random_gamma``: Marsaglia and Tsang, "A simple method for generating
    gamma variables" (2000).

    Args:
        concentration: the shape parameter; ``rate``: the inverse scale. Both above 0; they
            broadcast.
        validate_args, allow_nan_stats, name: see Distribution.

    Raises:
        TypeError: if the types differ or are not floating.

    >>> gamma = tf.distributions.Gamma(concentration=3.0, rate=2.0)
    >>> [float(v) for v in tf.Session().run([gamma.mean(), gamma.variance()])]
    [1.5, 0.75]
    """

    def __init__(
        self,
        concentration: Any,
        rate: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Gamma",
    ) -> None:
        parameters = dict(locals())
        with tf.name_scope(name) as scope:
            checks = (
                [tf.assert_positive(concentration), tf.assert_positive(rate)]
                if validate_args
                else []
            )
            with tf.control_dependencies(checks):
                self._concentration = tf.identity(concentration, name="concentration")
                self._rate = tf.identity(rate, name="rate")
            tf.assert_same_float_dtype([self._concentration, self._rate])
        super().__init__(
            self._concentration.dtype,
            FULLY_REPARAMETERIZED,
            validate_args,
            allow_nan_stats,
            parameters,
            [self._concentration, self._rate],
            scope,
        )

    @staticmethod
    def _param_shapes(sample_shape: Any) -> dict[str, Any]:
        return util.same_param_shapes(("concentration", "rate"), sample_shape)

    @property
    def concentration(self) -> Any:
        """The shape parameter."""
        return self._concentration

    @property
    def rate(self) -> Any:
        """The inverse scale."""
        return self._rate

    def _batch_shape(self) -> Any:
        return util.common_shape(self._concentration, self._rate)

    def _batch_shape_tensor(self) -> Any:
        return util.common_shape_tensor(self._concentration, self._rate)

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        return tf.random_gamma([n], self._concentration, self._rate, self._dtype, seed)

    def _checked(self, x: Any) -> Any:
        tf.assert_same_float_dtype(tensors=[x], dtype=self._dtype)
        return util.with_dependencies([tf.assert_positive(x)], x) if self._validate_args else x

    def _log_prob(self, value: Any) -> Any:
        x = self._checked(value)
        unnormalized = tf.math.xlogy(self._concentration - 1.0, x) - self._rate * x
        return unnormalized - (
            tf.lgamma(self._concentration) - self._concentration * tf.log(self._rate)
        )

    def _cdf(self, value: Any) -> Any:
        return tf.igamma(self._concentration, self._rate * self._checked(value))

    def _entropy(self) -> Any:
        return (
            self._concentration
            - tf.log(self._rate)
            + tf.lgamma(self._concentration)
            + (1.0 - self._concentration) * tf.digamma(self._concentration)
        )

    def _mean(self) -> Any:
        return self._concentration / self._rate

    def _variance(self) -> Any:
        return self._concentration / tf.square(self._rate)

    def _stddev(self) -> Any:
        return tf.sqrt(self._concentration) / self._rate

    def _mode(self) -> Any:
        mode = (self._concentration - 1.0) / self._rate
        if self._allow_nan_stats:
            return util.nan_unless(self._concentration > tf.ones_like(mode), mode)
        message = "mode not defined when any concentration <= 1"
        one = tf.ones([], self._dtype)
        check = tf.assert_less(one, self._concentration, message=message)
        return util.with_dependencies([check], mode)


class GammaWithSoftplusConcentrationRate(Gamma):
    """Gamma of ``softplus(concentration)`` and ``softplus(rate)``.

    >>> gamma = tf.contrib.distributions.GammaWithSoftplusConcentrationRate(0.0, 0.0)
    >>> float(tf.Session().run(gamma.mean()))
    1.0
    """

    def __init__(
        self,
        concentration: Any,
        rate: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "GammaWithSoftplusConcentrationRate",
    ) -> None:
        parameters = dict(locals())
        with tf.name_scope(name) as scope:
            super().__init__(
                tf.nn.softplus(concentration, name="softplus_concentration"),
                tf.nn.softplus(rate, name="softplus_rate"),
                validate_args,
                allow_nan_stats,
                scope,
            )
        self._parameters = parameters


@RegisterKL(Gamma, Gamma)
def _kl_gamma(a: Gamma, b: Gamma, name: str | None = None) -> Any:
    with tf.name_scope(name, "kl_gamma_gamma"):
        return (
            (a.concentration - b.concentration) * tf.digamma(a.concentration)
            + tf.lgamma(b.concentration)
            - tf.lgamma(a.concentration)
            + b.concentration * tf.log(a.rate)
            - b.concentration * tf.log(b.rate)
            + a.concentration * (b.rate / a.rate - 1.0)
        )


class Exponential(Gamma):
    """Exponential distributions.

    Samples by inversion: Devroye, "Non-uniform random variate generation" (1986), section II.2.

    Args:
        rate: the inverse of the mean, above 0.
        validate_args, allow_nan_stats, name: see Distribution.

    >>> wait = tf.distributions.Exponential(rate=[0.5, 4.0])
    >>> tf.Session().run(wait.mean()).tolist()
    [2.0, 0.25]
    """

    def __init__(
        self,
        rate: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Exponential",
    ) -> None:
        parameters = dict(locals())
        with tf.name_scope(name) as scope:
            rate = tf.convert_to_tensor(rate, name="rate")
        one = tf.ones([], rate.dtype)
        super().__init__(one, rate, validate_args, allow_nan_stats, scope)
        self._parameters = parameters

    @staticmethod
    def _param_shapes(sample_shape: Any) -> dict[str, Any]:
        return util.same_param_shapes(("rate",), sample_shape)

    def _log_survival_function(self, value: Any) -> Any:
        return self._log_prob(value) - tf.log(self._rate)

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        shape = tf.concat([[n], tf.shape(self._rate)], 0)
        tiny = np.finfo(self._dtype.as_numpy_dtype).tiny  # never 0, whose logarithm is infinite
        uniform = tf.random_uniform(shape, tiny, 1.0, self._dtype, seed)
        return -tf.log(uniform) / self._rate


class ExponentialWithSoftplusRate(Exponential):
    """Exponential of ``softplus(rate)``.

    >>> wait = tf.contrib.distributions.ExponentialWithSoftplusRate(rate=0.0)
    >>> round(float(tf.Session().run(wait.rate)), 4)  # log(2)
    0.6931
    """

    def __init__(
        self,
        rate: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "ExponentialWithSoftplusRate",
    ) -> None:
        parameters = dict(locals())
        with tf.name_scope(name) as scope:
            softplus = tf.nn.softplus(rate, name="softplus_rate")
            super().__init__(softplus, validate_args, allow_nan_stats, scope)
        self._parameters = parameters


class Beta(Distribution):
    """Beta distributions on (0, 1).

    Samples are quotients of gamma numbers: Devroye, "Non-uniform random variate generation" (1986),
    section IX.4.

    Args:
        concentration1: counts of ones; ``concentration0``: of zeros. Both above 0; they broadcast.
        validate_args, allow_nan_stats, name: see Distribution.

    Raises:
        TypeError: if the types differ or are not floating.

    >>> beta = tf.distributions.Beta(concentration1=3.0, concentration0=[1.0, 3.0])
    >>> tf.Session().run(beta.mean()).tolist()
    [0.75, 0.5]
    """

    def __init__(
        self,
        concentration1: Any = None,
        concentration0: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Beta",
    ) -> None:
        parameters = dict(locals())
        with tf.name_scope(name) as scope:
            self._concentration1, self._concentration0 = (
                _positive(tf.convert_to_tensor(c, name=what), validate_args)
                for c, what in (
                    (concentration1, "concentration1"),
                    (concentration0, "concentration0"),
                )
            )
            tf.assert_same_float_dtype([self._concentration1, self._concentration0])
            self._total_concentration = self._concentration1 + self._concentration0
        super().__init__(
            self._total_concentration.dtype,
            FULLY_REPARAMETERIZED,
            validate_args,
            allow_nan_stats,
            parameters,
            [self._concentration1, self._concentration0, self._total_concentration],
            scope,
        )

    @staticmethod
    def _param_shapes(sample_shape: Any) -> dict[str, Any]:
        return util.same_param_shapes(("concentration1", "concentration0"), sample_shape)

    @property
    def concentration1(self) -> Any:
        """The counts of ones."""
        return self._concentration1

    @property
    def concentration0(self) -> Any:
        """The counts of zeros."""
        return self._concentration0

    @property
    def total_concentration(self) -> Any:
        """The sum of both."""
        return self._total_concentration

    def _batch_shape(self) -> Any:
        return self._total_concentration.shape

    def _batch_shape_tensor(self) -> Any:
        return tf.shape(self._total_concentration)

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        one = tf.ones_like(self._total_concentration)
        again = util.gen_new_seed(seed, "beta")
        ones = tf.random_gamma([n], one * self._concentration1, dtype=self._dtype, seed=seed)
        zeros = tf.random_gamma([n], one * self._concentration0, dtype=self._dtype, seed=again)
        return ones / (ones + zeros)

    def _checked(self, x: Any) -> Any:
        if not self._validate_args:
            return x
        one = tf.ones([], self._dtype)
        checks = [
            tf.assert_positive(x, message="sample must be positive"),
            tf.assert_less(x, one, message="sample must be less than `1`."),
        ]
        return util.with_dependencies(checks, x)

    def _log_normalization(self) -> Any:
        return (
            tf.lgamma(self._concentration1)
            + tf.lgamma(self._concentration0)
            - tf.lgamma(self._total_concentration)
        )

    def _log_prob(self, value: Any) -> Any:
        x = self._checked(value)
        unnormalized = tf.math.xlogy(self._concentration1 - 1.0, x) + (
            self._concentration0 - 1.0
        ) * tf.log1p(-x)
        return unnormalized - self._log_normalization()

    def _cdf(self, value: Any) -> Any:
        # The three arguments of betainc have one shape.
        one = tf.ones_like(value * tf.ones_like(self._total_concentration))
        return tf.betainc(self._concentration1 * one, self._concentration0 * one, value * one)

    def _entropy(self) -> Any:
        return (
            self._log_normalization()
            - (self._concentration1 - 1.0) * tf.digamma(self._concentration1)
            - (self._concentration0 - 1.0) * tf.digamma(self._concentration0)
            + (self._total_concentration - 2.0) * tf.digamma(self._total_concentration)
        )

    def _mean(self) -> Any:
        return self._concentration1 / self._total_concentration

    def _variance(self) -> Any:
        mean = self._mean()
        return mean * (1.0 - mean) / (1.0 + self._total_concentration)

    def _mode(self) -> Any:
        mode = (self._concentration1 - 1.0) / (self._total_concentration - 2.0)
        both = (self._concentration1, self._concentration0)
        if self._allow_nan_stats:
            defined = tf.logical_and(*(c > tf.ones_like(mode) for c in both))
            return util.nan_unless(defined, mode)
        one = tf.ones([], self._dtype)
        checks = [
            tf.assert_less(one, c, message=f"Mode undefined for concentration{i} <= 1.")
            for i, c in zip((1, 0), both, strict=True)
        ]
        return util.with_dependencies(checks, mode)


def _positive(concentration: Any, validate: bool) -> Any:
    if not validate:
        return concentration
    message = "Concentration parameter must be positive."
    return util.with_dependencies(
        [tf.assert_positive(concentration, message=message)], concentration
    )


@RegisterKL(Beta, Beta)
def _kl_beta(a: Beta, b: Beta, name: str | None = None) -> Any:
    with tf.name_scope(name, "kl_beta_beta"):
        total = a.total_concentration
        return (
            b._log_normalization()
            - a._log_normalization()
            - tf.digamma(a.concentration1) * (b.concentration1 - a.concentration1)
            - tf.digamma(a.concentration0) * (b.concentration0 - a.concentration0)
            + tf.digamma(total) * (b.total_concentration - total)
        )
