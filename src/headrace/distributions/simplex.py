"""Distributions over several parts: Dirichlet, Multinomial, DirichletMultinomial."""

from __future__ import annotations

from typing import Any

import headrace as tf
from headrace.distributions import util
from headrace.distributions.discrete import _WithLogits
from headrace.distributions.distribution import (
    FULLY_REPARAMETERIZED,
    NOT_REPARAMETERIZED,
    Distribution,
)
from headrace.distributions.kullback_leibler import RegisterKL


def _outer(x: Any, y: Any) -> Any:
    return tf.matmul(x[..., tf.newaxis], y[..., tf.newaxis, :])


class _WithConcentration(Distribution):
    """What distributions given by a concentration for each part have in common."""

    _concentration: Any

    def _take(self, concentration: Any, validate: bool) -> None:
        concentration = tf.convert_to_tensor(concentration, name="concentration")
        if validate:
            concentration = util.check_classes(concentration)
            message = "Concentration parameter must be positive."
            concentration = util.with_dependencies(
                [tf.assert_positive(concentration, message=message)], concentration
            )
        self._concentration = concentration
        self._total_concentration = tf.reduce_sum(concentration, -1)

    @property
    def concentration(self) -> Any:
        """The concentration of each part, ``[..., k]``."""
        return self._concentration

    @property
    def total_concentration(self) -> Any:
        """Their sum."""
        return self._total_concentration

    def _batch_shape(self) -> Any:
        return self._total_concentration.shape

    def _batch_shape_tensor(self) -> Any:
        return tf.shape(self._total_concentration)

    def _event_shape(self) -> Any:
        return self._concentration.shape.with_rank_at_least(1)[-1:]

    def _event_shape_tensor(self) -> Any:
        return tf.shape(self._concentration)[-1:]

    def _variance_scale_term(self) -> Any:
        raise NotImplementedError

    def _covariance(self) -> Any:
        x = self._variance_scale_term() * self._mean()
        return tf.matrix_set_diag(-_outer(x, x), self._variance())


class Dirichlet(_WithConcentration):
    """Dirichlet distributions: of parts above 0 that sum to 1.

    Samples are gamma numbers over their sum: Devroye, "Non-uniform random variate generation"
    (1986), section XI.4.

    Args:
        concentration: ``[..., k]``, above 0.
        validate_args, allow_nan_stats, name: see Distribution.

    >>> dirichlet = tf.distributions.Dirichlet([1.0, 2.0, 1.0])
    >>> tf.Session().run(dirichlet.mean()).tolist()
    [0.25, 0.5, 0.25]
    >>> dirichlet.event_shape.as_list()
    [3]
    """

    def __init__(
        self,
        concentration: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Dirichlet",
    ) -> None:
        parameters = dict(locals())
        with tf.name_scope(name) as scope:
            self._take(concentration, validate_args)
        super().__init__(
            self._concentration.dtype,
            FULLY_REPARAMETERIZED,
            validate_args,
            allow_nan_stats,
            parameters,
            [self._concentration, self._total_concentration],
            scope,
        )

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        gamma = tf.random_gamma([n], self._concentration, dtype=self._dtype, seed=seed)
        return gamma / tf.reduce_sum(gamma, -1, keepdims=True)

    def _checked(self, x: Any) -> Any:
        if not self._validate_args:
            return x
        one = tf.ones([], self._dtype)
        checks = [
            tf.assert_positive(x, message="samples must be positive"),
            tf.assert_near(
                one, tf.reduce_sum(x, -1), message="sample last-dimension must sum to `1`"
            ),
        ]
        return util.with_dependencies(checks, x)

    def _log_prob(self, value: Any) -> Any:
        x = self._checked(value)
        unnormalized = tf.reduce_sum(tf.math.xlogy(self._concentration - 1.0, x), -1)
        return unnormalized - tf.lbeta(self._concentration)

    def _parts(self) -> Any:
        return tf.cast(self.event_shape_tensor()[0], self._dtype)

    def _entropy(self) -> Any:
        total, parts = self._total_concentration, self._concentration
        return (
            tf.lbeta(parts)
            + (total - self._parts()) * tf.digamma(total)
            - tf.reduce_sum((parts - 1.0) * tf.digamma(parts), axis=-1)
        )

    def _mean(self) -> Any:
        return self._concentration / self._total_concentration[..., tf.newaxis]

    def _variance(self) -> Any:
        scale = self._variance_scale_term()
        x = scale * self._mean()
        return x * (scale - x)

    def _variance_scale_term(self) -> Any:
        return tf.rsqrt(1.0 + self._total_concentration[..., tf.newaxis])

    def _mode(self) -> Any:
        total = self._total_concentration[..., tf.newaxis]
        mode = (self._concentration - 1.0) / (total - self._parts())
        if self._allow_nan_stats:
            defined = tf.reduce_all(self._concentration > 1.0, axis=-1, keepdims=True)
            return util.nan_unless(tf.logical_and(defined, tf.ones_like(mode, tf.bool)), mode)
        one = tf.ones([], self._dtype)
        message = "Mode undefined when any concentration <= 1"
        check = tf.assert_less(one, self._concentration, message=message)
        return util.with_dependencies([check], mode)


@RegisterKL(Dirichlet, Dirichlet)
def _kl_dirichlet(a: Dirichlet, b: Dirichlet, name: str | None = None) -> Any:
    with tf.name_scope(name, "kl_dirichlet_dirichlet"):
        total = tf.reduce_sum(a.concentration, axis=-1, keepdims=True)
        digammas = tf.digamma(a.concentration) - tf.digamma(total)
        return (
            tf.reduce_sum((a.concentration - b.concentration) * digammas, axis=-1)
            - tf.lbeta(a.concentration)
            + tf.lbeta(b.concentration)
        )


class _Counts(Distribution):
    """What distributions of counts that sum to a total have in common."""

    _total_count: Any

    def _take_total(self, total_count: Any, validate: bool) -> None:
        total_count = tf.convert_to_tensor(total_count, name="total_count")
        self._total_count = util.check_counts(total_count) if validate else total_count

    @property
    def total_count(self) -> Any:
        """How many draws an event counts."""
        return self._total_count

    def _checked(self, counts: Any) -> Any:
        if not self._validate_args:
            return counts
        counts = util.check_counts(counts)
        message = "counts must sum to `self.total_count`"
        total = tf.reduce_sum(counts, -1)
        return util.with_dependencies(
            [tf.assert_equal(self._total_count, total, message=message)], counts
        )


class Multinomial(_Counts, _WithLogits):
    """Distributions of how often each class comes up in a number of draws.

    Args:
        total_count: ``[...]``, the number of draws, in the type of ``logits``.
        logits: ``[..., k]``; or ``probs``. One of both.
        validate_args, allow_nan_stats, name: see Distribution.

    Raises:
        ValueError: if not exactly one of both is given.
        TypeError: if it is not floating.

    >>> counts = tf.distributions.Multinomial(4.0, probs=[0.5, 0.25, 0.25])
    >>> tf.Session().run(counts.mean()).tolist()
    [2.0, 1.0, 1.0]
    >>> counts.sample(10, seed=1).shape.as_list()
    [10, 3]
    """

    def __init__(
        self,
        total_count: Any,
        logits: Any = None,
        probs: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Multinomial",
    ) -> None:
        parameters = dict(locals())
        with tf.name_scope(name) as scope:
            self._take_total(total_count, validate_args)
            self._logits, self._probs = util.get_logits_and_probs(
                logits, probs, multidimensional=True, validate_args=validate_args, name=scope
            )
            self._mean_val = self._total_count[..., tf.newaxis] * self._probs
        super().__init__(
            self._probs.dtype,
            NOT_REPARAMETERIZED,
            validate_args,
            allow_nan_stats,
            parameters,
            [self._total_count, self._logits, self._probs],
            scope,
        )

    def _batch_shape(self) -> Any:
        return self._mean_val.shape.with_rank_at_least(1)[:-1]

    def _batch_shape_tensor(self) -> Any:
        return tf.shape(self._mean_val)[:-1]

    def _event_shape(self) -> Any:
        return self._mean_val.shape.with_rank_at_least(1)[-1:]

    def _event_shape_tensor(self) -> Any:
        return tf.shape(self._mean_val)[-1:]

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        classes = self.event_shape_tensor()[0]
        draws = tf.cast(self._total_count, tf.int32)
        draws = tf.ones_like(self._logits[..., 0], dtype=tf.int32) * draws
        logits = tf.ones_like(draws[..., tf.newaxis], dtype=self._logits.dtype) * self._logits

        def counted(args: Any) -> Any:
            row, count = args
            drawn = tf.multinomial(row[tf.newaxis, ...], count, seed)
            drawn = tf.reshape(drawn, [n, -1])
            return tf.reduce_sum(tf.one_hot(drawn, depth=classes, dtype=self._dtype), axis=-2)

        flat = [tf.reshape(logits, [-1, classes]), n * tf.reshape(draws, [-1])]
        counts = tf.transpose(tf.map_fn(counted, flat, dtype=self._dtype), [1, 0, 2])
        shape = tf.concat([[n], self.batch_shape_tensor(), [classes]], 0)
        return tf.reshape(counts, shape)

    def _log_prob(self, value: Any) -> Any:
        counts = self._checked(value)
        unnormalized = tf.reduce_sum(counts * tf.nn.log_softmax(self._logits), -1)
        return unnormalized + util.log_combinations(self._total_count, counts)

    def _mean(self) -> Any:
        return tf.identity(self._mean_val)

    def _each_probs(self) -> Any:
        return self._probs * tf.ones_like(self._total_count)[..., tf.newaxis]

    def _covariance(self) -> Any:
        return tf.matrix_set_diag(-_outer(self._mean_val, self._each_probs()), self._variance())

    def _variance(self) -> Any:
        return self._mean_val - self._mean_val * self._each_probs()


class DirichletMultinomial(_Counts, _WithConcentration):
    """Multinomial distributions whose probabilities come from a Dirichlet distribution.

    Args:
        total_count: ``[...]``, the number of draws, in the type of ``concentration``.
        concentration: ``[..., k]``, above 0.
        validate_args, allow_nan_stats, name: see Distribution.

    >>> counts = tf.distributions.DirichletMultinomial(4.0, concentration=[1.0, 3.0])
    >>> tf.Session().run(counts.mean()).tolist()
    [1.0, 3.0]
    """

    def __init__(
        self,
        total_count: Any,
        concentration: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "DirichletMultinomial",
    ) -> None:
        parameters = dict(locals())
        with tf.name_scope(name) as scope:
            self._take_total(total_count, validate_args)
            self._take(concentration, validate_args)
        super().__init__(
            self._concentration.dtype,
            NOT_REPARAMETERIZED,
            validate_args,
            allow_nan_stats,
            parameters,
            [self._total_count, self._concentration],
            scope,
        )

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        classes = self.event_shape_tensor()[0]
        gamma = tf.random_gamma([n], self._concentration, dtype=self._dtype, seed=seed)
        logits = tf.reshape(tf.log(gamma), [-1, classes])
        again = util.gen_new_seed(seed, salt="dirichlet_multinomial")
        drawn = tf.multinomial(logits, tf.cast(self._total_count, tf.int32), again)
        counts = tf.reduce_sum(tf.one_hot(drawn, depth=classes), -2)
        shape = tf.concat([[n], self.batch_shape_tensor(), [classes]], 0)
        return tf.cast(tf.reshape(counts, shape), self._dtype)

    def _log_prob(self, value: Any) -> Any:
        counts = self._checked(value)
        ordered = tf.lbeta(self._concentration + counts) - tf.lbeta(self._concentration)
        return ordered + util.log_combinations(self._total_count, counts)

    def _mean(self) -> Any:
        total = self._total_concentration[..., tf.newaxis]
        return self._total_count * (self._concentration / total)

    def _variance(self) -> Any:
        scale = self._variance_scale_term()
        x = scale * self._mean()
        return x * (self._total_count * scale - x)

    def _variance_scale_term(self) -> Any:
        total = self._total_concentration[..., tf.newaxis]
        return tf.sqrt((1.0 + total / self._total_count) / (1.0 + total))
