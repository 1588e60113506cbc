"""Distributions of real numbers: Normal, Laplace, StudentT, Uniform."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import headrace as tf
from headrace.distributions import special_math, util
from headrace.distributions.distribution import FULLY_REPARAMETERIZED, Distribution
from headrace.distributions.kullback_leibler import RegisterKL


class _LocationScale(Distribution):
    """What distributions with a location and a scale have in common."""

    _loc: Any
    _scale: Any

    @staticmethod
    def _param_shapes(sample_shape: Any) -> dict[str, Any]:
        return util.same_param_shapes(("loc", "scale"), sample_shape)

    def _take(self, loc: Any, scale: Any, checked: Any) -> None:
        with tf.control_dependencies([tf.assert_positive(checked)] if checked is not None else []):
            self._loc = tf.identity(loc, name="loc")
            self._scale = tf.identity(scale, name="scale")
        tf.assert_same_float_dtype([self._loc, self._scale])

    @property
    def loc(self) -> Any:
        """The location."""
        return self._loc

    @property
    def scale(self) -> Any:
        """The scale."""
        return self._scale

    def _batch_shape(self) -> Any:
        return util.common_shape(self._loc, self._scale)

    def _batch_shape_tensor(self) -> Any:
        return util.common_shape_tensor(self._loc, self._scale)

    def _z(self, x: Any) -> Any:
        return (x - self._loc) / self._scale

    def _draw_shape(self, n: Any) -> Any:
        return tf.concat([[n], self.batch_shape_tensor()], 0)


class Normal(_LocationScale):
    """Gaussian distributions.

    Args:
        loc: the means; ``scale``: the standard deviations, above 0. Both broadcast.
        validate_args, allow_nan_stats, name: see Distribution.

    Raises:
        TypeError: if the types differ or are not floating.

    >>> import headrace as tf
    >>> normal = tf.distributions.Normal(loc=[0.0, 1.0], scale=2.0)
    >>> with tf.Session() as session:
    ...     session.run(normal.mean())
    array([0., 1.], dtype=float32)
    """

    def __init__(
        self,
        loc: Any,
        scale: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Normal",
    ) -> None:
        parameters = dict(locals())
        with tf.name_scope(name) as scope:
            self._take(loc, scale, scale if validate_args else None)
        super().__init__(
            self._scale.dtype,
            FULLY_REPARAMETERIZED,
            validate_args,
            allow_nan_stats,
            parameters,
            [self._loc, self._scale],
            scope,
        )

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        drawn = tf.random_normal(self._draw_shape(n), 0.0, 1.0, self._loc.dtype, seed)
        return drawn * self._scale + self._loc

    def _log_prob(self, value: Any) -> Any:
        return -0.5 * tf.square(self._z(value)) - (
            0.5 * math.log(2.0 * math.pi) + tf.log(self._scale)
        )

    def _log_cdf(self, value: Any) -> Any:
        return special_math.log_ndtr(self._z(value))

    def _cdf(self, value: Any) -> Any:
        return special_math.ndtr(self._z(value))

    def _log_survival_function(self, value: Any) -> Any:
        return special_math.log_ndtr(-self._z(value))

    def _survival_function(self, value: Any) -> Any:
        return special_math.ndtr(-self._z(value))

    def _quantile(self, value: Any) -> Any:
        return special_math.ndtri(value) * self._scale + self._loc

    def _entropy(self) -> Any:
        scale = self._scale * tf.ones_like(self._loc)
        return 0.5 * math.log(2.0 * math.pi * math.e) + tf.log(scale)

    def _mean(self) -> Any:
        return self._loc * tf.ones_like(self._scale)

    def _stddev(self) -> Any:
        return self._scale * tf.ones_like(self._loc)

    def _mode(self) -> Any:
        return self._mean()


class NormalWithSoftplusScale(Normal):
    """Normal with ``scale = softplus(scale)``.

    >>> normal = tf.contrib.distributions.NormalWithSoftplusScale(loc=1.0, scale=0.0)
    >>> round(float(tf.Session().run(normal.scale)), 4)  # log(2)
    0.6931
    """

    def __init__(
        self,
        loc: Any,
        scale: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "NormalWithSoftplusScale",
    ) -> None:
        parameters = dict(locals())
        with tf.name_scope(name) as scope:
            scale = tf.nn.softplus(scale, name="softplus_scale")
            super().__init__(loc, scale, validate_args, allow_nan_stats, scope)
        self._parameters = parameters


@RegisterKL(Normal, Normal)
def _kl_normal(a: Normal, b: Normal, name: str | None = None) -> Any:
    with tf.name_scope(name, "kl_normal_normal"):
        variance = tf.square(b.scale)
        ratio = tf.square(a.scale) / variance
        distance = tf.squared_difference(a.loc, b.loc) / (2.0 * variance)
        return distance + 0.5 * (ratio - 1.0 - tf.log(ratio))


class Laplace(_LocationScale):
    """Laplace distributions; arguments and errors as for Normal.

    Samples by inversion: Devroye, "Non-uniform random variate generation" (1986), section II.2.

    >>> laplace = tf.distributions.Laplace(loc=1.0, scale=2.0)
    >>> [float(v) for v in tf.Session().run([laplace.mean(), laplace.prob(1.0)])]
    [1.0, 0.25]
    """

    def __init__(
        self,
        loc: Any,
        scale: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Laplace",
    ) -> None:
        parameters = dict(locals())
        with tf.name_scope(name) as scope:
            self._take(loc, scale, scale if validate_args else None)
        super().__init__(
            self._loc.dtype,
            FULLY_REPARAMETERIZED,
            validate_args,
            allow_nan_stats,
            parameters,
            [self._loc, self._scale],
            scope,
        )

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        kind = self._dtype.as_numpy_dtype
        # Not -1 itself: its logarithm below would be infinite.
        lowest = np.nextafter(kind(-1.0), kind(0.0))
        uniform = tf.random_uniform(self._draw_shape(n), lowest, 1.0, self._dtype, seed)
        return self._loc - self._scale * tf.sign(uniform) * tf.log1p(-tf.abs(uniform))

    def _log_prob(self, value: Any) -> Any:
        return -tf.abs(self._z(value)) - (math.log(2.0) + tf.log(self._scale))

    def _log_cdf(self, value: Any) -> Any:
        return special_math.log_cdf_laplace(self._z(value))

    def _log_survival_function(self, value: Any) -> Any:
        return special_math.log_cdf_laplace(-self._z(value))

    def _cdf(self, value: Any) -> Any:
        z = self._z(value)
        return 0.5 + 0.5 * tf.sign(z) * (1.0 - tf.exp(-tf.abs(z)))

    def _entropy(self) -> Any:
        scale = self._scale + tf.zeros_like(self._loc)
        return math.log(2.0) + 1.0 + tf.log(scale)

    def _mean(self) -> Any:
        return self._loc + tf.zeros_like(self._scale)

    def _stddev(self) -> Any:
        return math.sqrt(2.0) * self._scale + tf.zeros_like(self._loc)

    def _mode(self) -> Any:
        return self._mean()


class StudentT(_LocationScale):
    """Student's t distributions.

    Samples are a normal number over the root of a gamma number, as the law is defined.

    Args:
        df: degrees of freedom, above 0; ``loc`` and ``scale`` as for Normal. All broadcast.

    The mean is not defined for ``df`` up to 1, and the variance is infinite for ``df`` up to 2.

    >>> t = tf.distributions.StudentT(df=4.0, loc=1.0, scale=3.0)
    >>> [float(v) for v in tf.Session().run([t.mean(), t.variance()])]  # 9 * 4 / (4 - 2)
    [1.0, 18.0]
    """

    def __init__(
        self,
        df: Any,
        loc: Any,
        scale: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "StudentT",
    ) -> None:
        parameters = dict(locals())
        with tf.name_scope(name) as scope:
            with tf.control_dependencies([tf.assert_positive(df)] if validate_args else []):
                self._df = tf.identity(df, name="df")
                self._take(loc, scale, None)
            tf.assert_same_float_dtype([self._df, self._loc, self._scale])
        super().__init__(
            self._scale.dtype,
            FULLY_REPARAMETERIZED,
            validate_args,
            allow_nan_stats,
            parameters,
            [self._df, self._loc, self._scale],
            scope,
        )

    @staticmethod
    def _param_shapes(sample_shape: Any) -> dict[str, Any]:
        return util.same_param_shapes(("df", "loc", "scale"), sample_shape)

    @property
    def df(self) -> Any:
        """The degrees of freedom."""
        return self._df

    def _batch_shape(self) -> Any:
        return util.common_shape(self._df, self._loc, self._scale)

    def _batch_shape_tensor(self) -> Any:
        return util.common_shape_tensor(self._df, self._loc, self._scale)

    def _ones(self) -> Any:
        return tf.ones(self.batch_shape_tensor(), self._dtype)

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        normal = tf.random_normal(self._draw_shape(n), dtype=self._dtype, seed=seed)
        df = self._df * self._ones()
        again = util.gen_new_seed(seed, salt="student_t")
        gamma = tf.random_gamma([n], 0.5 * df, beta=0.5, dtype=self._dtype, seed=again)
        return normal * tf.rsqrt(gamma / df) * self._scale + self._loc

    def _log_prob(self, value: Any) -> Any:
        y = self._z(value)
        normalization = (
            tf.log(tf.abs(self._scale))
            + 0.5 * tf.log(self._df)
            + 0.5 * math.log(math.pi)
            + tf.lgamma(0.5 * self._df)
            - tf.lgamma(0.5 * (self._df + 1.0))
        )
        return -0.5 * (self._df + 1.0) * tf.log1p(y**2.0 / self._df) - normalization

    def _cdf(self, value: Any) -> Any:
        y = (value - self._loc) / tf.abs(self._scale)
        x = self._df / (y**2.0 + self._df)
        # The three arguments of betainc have one shape.
        one = tf.ones_like(x)
        tail = 0.5 * tf.betainc(0.5 * self._df * one, 0.5 * one, x)
        return tf.where_v2(tf.less(y, 0.0), tail, 1.0 - tail)

    def _entropy(self) -> Any:
        one = self._ones()[..., tf.newaxis]
        halves = tf.concat([one * self._df[..., tf.newaxis], one], -1) / 2.0
        return (
            tf.log(tf.abs(self._scale))
            + 0.5 * tf.log(self._df)
            + tf.lbeta(halves)
            + 0.5
            * (self._df + 1.0)
            * (tf.digamma(0.5 * (self._df + 1.0)) - tf.digamma(0.5 * self._df))
        )

    def _defined(self, value: Any, what: str) -> Any:
        """``value`` where there is more than one degree of freedom."""
        if self._allow_nan_stats:
            return util.nan_unless(tf.greater(self._df, self._ones()), value)
        message = f"{what} not defined for components of df <= 1"
        one = tf.ones([], self._dtype)
        return util.with_dependencies([tf.assert_less(one, self._df, message=message)], value)

    def _mean(self) -> Any:
        return self._defined(self._loc * self._ones(), "mean")

    def _variance(self) -> Any:
        is_finite = tf.greater(self._df, 2.0)
        divisor = tf.where_v2(is_finite, self._df - 2.0, tf.ones_like(self._df))
        variance = self._ones() * tf.square(self._scale) * self._df / divisor
        infinite = tf.constant(np.inf, self._dtype)
        return self._defined(tf.where_v2(is_finite, variance, infinite), "variance")

    def _mode(self) -> Any:
        return tf.identity(self._loc)


class Uniform(Distribution):
    """Uniform distributions on ``[low, high)``.

    Args:
        low, high: the bounds; they broadcast.
        validate_args: checks when run that each ``low`` is below its ``high``.
        allow_nan_stats, name: see Distribution.

    Raises:
        TypeError: if the types differ or are not floating.

    >>> uniform = tf.distributions.Uniform(low=1.0, high=5.0)
    >>> [float(v) for v in tf.Session().run([uniform.prob(2.0), uniform.cdf(2.0)])]
    [0.25, 0.25]
    """

    def __init__(
        self,
        low: Any = 0.0,
        high: Any = 1.0,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Uniform",
    ) -> None:
        parameters = dict(locals())
        with tf.name_scope(name) as scope:
            message = "uniform not defined when low >= high."
            checks = [tf.assert_less(low, high, message=message)] if validate_args else []
            with tf.control_dependencies(checks):
                self._low = tf.identity(low, name="low")
                self._high = tf.identity(high, name="high")
            tf.assert_same_float_dtype([self._low, self._high])
        super().__init__(
            self._low.dtype,
            FULLY_REPARAMETERIZED,
            validate_args,
            allow_nan_stats,
            parameters,
            [self._low, self._high],
            scope,
        )

    @staticmethod
    def _param_shapes(sample_shape: Any) -> dict[str, Any]:
        return util.same_param_shapes(("low", "high"), sample_shape)

    @property
    def low(self) -> Any:
        """The lower bounds."""
        return self._low

    @property
    def high(self) -> Any:
        """The upper bounds."""
        return self._high

    def range(self, name: str = "range") -> Any:
        """``high - low``."""
        with self._name_scope(name):
            return self._high - self._low

    def _batch_shape(self) -> Any:
        return util.common_shape(self._low, self._high)

    def _batch_shape_tensor(self) -> Any:
        return util.common_shape_tensor(self._low, self._high)

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        shape = tf.concat([[n], self.batch_shape_tensor()], 0)
        return self._low + self.range() * tf.random_uniform(shape, dtype=self._dtype, seed=seed)

    def _prob(self, value: Any) -> Any:
        x = value * tf.ones(self.batch_shape_tensor(), value.dtype)
        outside = tf.logical_or(x < self._low, x >= self._high)
        density = tf.where_v2(outside, tf.zeros_like(x), tf.ones_like(x) / self.range())
        return tf.where_v2(tf.is_nan(x), x, density)

    def _cdf(self, value: Any) -> Any:
        shape = tf.broadcast_dynamic_shape(tf.shape(value), self.batch_shape_tensor())
        x = value * tf.ones(shape, self._dtype)
        inside = tf.where_v2(x < self._low, tf.zeros_like(x), (x - self._low) / self.range())
        return tf.where_v2(x >= self._high, tf.ones_like(x), inside)

    def _entropy(self) -> Any:
        return tf.log(self.range())

    def _mean(self) -> Any:
        return (self._low + self._high) / 2.0

    def _variance(self) -> Any:
        return tf.square(self.range()) / 12.0

    def _stddev(self) -> Any:
        return self.range() / math.sqrt(12.0)
