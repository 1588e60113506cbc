"""Distributions of single choices: Bernoulli, Categorical."""

from __future__ import annotations

from typing import Any

import headrace as tf
from headrace.distributions import util
from headrace.distributions.distribution import NOT_REPARAMETERIZED, Distribution
from headrace.distributions.kullback_leibler import RegisterKL


class _WithLogits(Distribution):
    """What distributions given by logits or probabilities have in common."""

    _logits: Any
    _probs: Any

    @property
    def logits(self) -> Any:
        """The log-odds (of classes: logarithms of what is proportional to probabilities)."""
        return self._logits

    @property
    def probs(self) -> Any:
        """The probabilities."""
        return self._probs


class Bernoulli(_WithLogits):
    """Distributions of 0 and 1.

    Args:
        logits: the log-odds of 1; or ``probs``: its probability. One of both.
        dtype: the type of samples.
        validate_args, allow_nan_stats, name: see Distribution.

    Raises:
        ValueError: if not exactly one of both is given.
        TypeError: if it is not floating.

    >>> coin = tf.distributions.Bernoulli(probs=[0.25, 0.5])
    >>> tf.Session().run(coin.prob(0)).tolist()
    [0.75, 0.5]
    >>> coin.sample(10, seed=1).shape.as_list()
    [10, 2]
    """

    def __init__(
        self,
        logits: Any = None,
        probs: Any = None,
        dtype: Any = tf.int32,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Bernoulli",
    ) -> None:
        parameters = dict(locals())
        with tf.name_scope(name) as scope:
            self._logits, self._probs = util.get_logits_and_probs(
                logits, probs, validate_args=validate_args, name=scope
            )
        super().__init__(
            dtype,
            NOT_REPARAMETERIZED,
            validate_args,
            allow_nan_stats,
            parameters,
            [self._logits, self._probs],
            scope,
        )

    @staticmethod
    def _param_shapes(sample_shape: Any) -> dict[str, Any]:
        return util.same_param_shapes(("logits",), sample_shape)

    def _batch_shape(self) -> Any:
        return self._logits.shape

    def _batch_shape_tensor(self) -> Any:
        return tf.shape(self._logits)

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        shape = tf.concat([[n], self.batch_shape_tensor()], 0)
        uniform = tf.random_uniform(shape, seed=seed, dtype=self._probs.dtype)
        return tf.cast(tf.less(uniform, self._probs), self._dtype)

    def _log_prob(self, value: Any) -> Any:
        event = util.check_events(value, 1) if self._validate_args else value
        event, logits = tf.cast(event, self._logits.dtype), self._logits
        if event.dims is None or None in event.dims or event.dims != logits.dims:
            event, logits = tf.ones_like(logits) * event, tf.ones_like(event) * logits
        return -tf.nn.sigmoid_cross_entropy_with_logits(labels=event, logits=logits)

    def _entropy(self) -> Any:
        return -self._logits * (tf.sigmoid(self._logits) - 1) + tf.nn.softplus(-self._logits)

    def _mean(self) -> Any:
        return tf.identity(self._probs)

    def _variance(self) -> Any:
        return self._probs * (1.0 - self._probs)

    def _mode(self) -> Any:
        return tf.cast(self._probs > 0.5, self._dtype)


@RegisterKL(Bernoulli, Bernoulli)
def _kl_bernoulli(a: Bernoulli, b: Bernoulli, name: str | None = None) -> Any:
    with tf.name_scope(name, "kl_bernoulli_bernoulli"):
        zeros = tf.nn.softplus(b.logits) - tf.nn.softplus(a.logits)
        ones = tf.nn.softplus(-b.logits) - tf.nn.softplus(-a.logits)
        return tf.sigmoid(a.logits) * ones + tf.sigmoid(-a.logits) * zeros


class Categorical(_WithLogits):
    """Distributions of classes.

    Args:
        logits: ``[..., k]``, the logarithms of what is proportional to the probabilities of the
            classes; or ``probs``: the probabilities. One of both.
        dtype: the type of samples.
        validate_args, allow_nan_stats, name: see Distribution.

    Raises:
        ValueError: if not exactly one of both is given.
        TypeError: if it is not floating.

    >>> die = tf.distributions.Categorical(probs=[0.5, 0.25, 0.25])
    >>> tf.Session().run(die.prob([0, 2])).tolist()
    [0.5, 0.25]
    >>> die.sample(10, seed=1).shape.as_list()
    [10]
    """

    def __init__(
        self,
        logits: Any = None,
        probs: Any = None,
        dtype: Any = tf.int32,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Categorical",
    ) -> None:
        parameters = dict(locals())
        with tf.name_scope(name) as scope:
            self._logits, self._probs = util.get_logits_and_probs(
                logits, probs, multidimensional=True, validate_args=validate_args, name=scope
            )
            self._logits.shape.with_rank_at_least(1)
            dims = self._logits.dims
            count = None if dims is None else dims[-1]
            if count is None:
                self._event_size = tf.shape(self._logits)[-1]
            else:
                self._event_size = tf.constant(count, tf.int32, name="event_size")
        super().__init__(
            dtype,
            NOT_REPARAMETERIZED,
            validate_args,
            allow_nan_stats,
            parameters,
            [self._logits, self._probs],
            scope,
        )

    @property
    def event_size(self) -> Any:
        """The number of classes, a scalar tensor."""
        return self._event_size

    def _batch_shape(self) -> Any:
        return self._logits.shape[:-1]

    def _batch_shape_tensor(self) -> Any:
        return tf.shape(self._logits)[:-1]

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        logits = self._logits
        if logits.dims is None or len(logits.dims) != 2:
            logits = tf.reshape(logits, [-1, self._event_size])
        kind = tf.int64 if self._dtype.size > 4 else tf.int32
        drawn = tf.multinomial(logits, n, seed=seed, output_dtype=kind)
        shape = tf.concat([[n], self.batch_shape_tensor()], 0)
        return tf.cast(tf.reshape(tf.transpose(drawn), shape), self._dtype)

    def _broadcast(self, value: Any, params: Any) -> tuple[Any, Any]:
        """Events as integers, and parameters, of one batch shape.

        Raises:
            TypeError: if ``value`` is no number.
        """
        if self._validate_args:
            value = util.check_events(value, 2**31 - 1)
        if value.dtype.is_floating:
            value = tf.cast(value, tf.int32)
        elif not value.dtype.is_integer:
            raise TypeError(
                f"`value` should have integer `dtype` or `self.dtype` ({self._dtype}); it has "
                f"{value.dtype}"
            )
        shape = params.shape[:-1]
        if not (shape.is_fully_defined() and shape.as_list() == value.shape):
            params *= tf.ones_like(value[..., tf.newaxis], dtype=params.dtype)
            value *= tf.ones(tf.shape(params)[:-1], value.dtype)
            value.set_shape(params.shape[:-1])
        return value, params

    def _log_prob(self, value: Any) -> Any:
        labels, logits = self._broadcast(value, self._logits)
        return -tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)

    def _cdf(self, value: Any) -> Any:
        event, probs = self._broadcast(value, self._probs)
        below = tf.sequence_mask(event, self._event_size)
        return tf.reduce_sum(tf.where(below, probs, tf.zeros_like(probs)), axis=-1)

    def _entropy(self) -> Any:
        return -tf.reduce_sum(tf.nn.log_softmax(self._logits) * self._probs, axis=-1)

    def _mode(self) -> Any:
        return tf.cast(tf.argmax(self._logits, axis=-1), self._dtype)


@RegisterKL(Categorical, Categorical)
def _kl_categorical(a: Categorical, b: Categorical, name: str | None = None) -> Any:
    with tf.name_scope(name, "kl_categorical_categorical"):
        difference = tf.nn.log_softmax(a.logits) - tf.nn.log_softmax(b.logits)
        return tf.reduce_sum(tf.nn.softmax(a.logits) * difference, axis=-1)
