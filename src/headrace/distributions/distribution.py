"""The base class of distributions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Self

import headrace as tf
from headrace.distributions import kullback_leibler


class ReparameterizationType:
    """Whether samples have gradients with respect to the parameters.

    >>> kind = tf.distributions.FULLY_REPARAMETERIZED
    >>> tf.distributions.Normal(0.0, 1.0).reparameterization_type is kind
    True
    >>> tf.distributions.Bernoulli(0.5).reparameterization_type is kind
    False
    """

    def __init__(self, rep_type: str) -> None:
        self._rep_type = rep_type

    def __repr__(self) -> str:
        return f"<Reparameterization Type: {self._rep_type}>"


FULLY_REPARAMETERIZED = ReparameterizationType("FULLY_REPARAMETERIZED")
NOT_REPARAMETERIZED = ReparameterizationType("NOT_REPARAMETERIZED")


class Distribution:
    """A batch of distributions of one kind, given by tensors of parameters.

    A sample has the shape ``sample_shape + batch_shape + event_shape``: how often, which
    distribution, and what one event is. Subclasses define ``_sample_n``, ``_log_prob`` and so on;
    what is not defined is worked out from what is (a density from its logarithm), or raises
    NotImplementedError.

    Args:
        dtype: the type of samples.
        reparameterization_type: whether samples have gradients.
        validate_args: checks parameters and values when run.
        allow_nan_stats: what is not defined is NaN; else it is an error when run.
        parameters: the arguments of the constructor, for ``copy``.
        graph_parents: the tensors of the parameters.
        name: of the name scope of all its ops.

    Raises:
        ValueError: if a graph parent is no tensor.

    >>> bell = tf.distributions.Normal(loc=[0.0, 5.0], scale=1.0)
    >>> bell.batch_shape.as_list(), bell.event_shape.as_list(), bell.sample(3).shape.as_list()
    ([2], [], [3, 2])
    """

    def __init__(
        self,
        dtype: Any,
        reparameterization_type: ReparameterizationType,
        validate_args: bool,
        allow_nan_stats: bool,
        parameters: dict[str, Any] | None = None,
        graph_parents: Any = None,
        name: str | None = None,
    ) -> None:
        for i, parent in enumerate(graph_parents or ()):
            if not isinstance(parent, tf.Tensor):
                raise ValueError(f"Graph parent item {i} is not a Tensor; {parent!r}.")
        if not name or not name.endswith("/"):
            with tf.name_scope(name or type(self).__name__) as scope:
                name = scope
        self._dtype = tf.as_dtype(dtype)
        self._reparameterization_type = reparameterization_type
        self._validate_args = validate_args
        self._allow_nan_stats = allow_nan_stats
        self._parameters = parameters or {}
        self._graph_parents = list(graph_parents or ())
        self._name: str = str(name)

    # -- what it is -----------------------------------------------------------------------------

    @classmethod
    def param_shapes(
        cls, sample_shape: Any, name: str = "DistributionParamShapes"
    ) -> dict[str, Any]:
        """The shape of each parameter (tensors) for samples of ``sample_shape``."""
        with tf.name_scope(name):
            return cls._param_shapes(sample_shape)

    @classmethod
    def param_static_shapes(cls, sample_shape: Any) -> dict[str, Any]:
        """The same as static shapes.

        Raises:
            ValueError: if ``sample_shape`` is not fully known.
        """
        if isinstance(sample_shape, tf.TensorShape):
            if not sample_shape.is_fully_defined():
                raise ValueError("TensorShape sample_shape must be fully defined")
            sample_shape = sample_shape.as_list()
        shapes = {}
        for name, shape in cls.param_shapes(sample_shape).items():
            static = tf.get_static_value(shape)
            if static is None:
                raise ValueError("sample_shape must be a fully-defined TensorShape or list/tuple")
            shapes[name] = tf.TensorShape(static)
        return shapes

    @staticmethod
    def _param_shapes(sample_shape: Any) -> dict[str, Any]:
        raise NotImplementedError("_param_shapes not implemented")

    @property
    def name(self) -> str:
        """The name scope of its ops, with a slash at the end."""
        return self._name

    @property
    def dtype(self) -> Any:
        """The type of samples."""
        return self._dtype

    @property
    def parameters(self) -> dict[str, Any]:
        """The arguments of the constructor."""
        return {k: v for k, v in self._parameters.items() if k != "self" and not k.startswith("__")}

    @property
    def reparameterization_type(self) -> ReparameterizationType:
        """FULLY_REPARAMETERIZED if samples have gradients, else NOT_REPARAMETERIZED."""
        return self._reparameterization_type

    @property
    def allow_nan_stats(self) -> bool:
        """Whether what is not defined is NaN."""
        return self._allow_nan_stats

    @property
    def validate_args(self) -> bool:
        """Whether parameters and values are checked when run."""
        return self._validate_args

    def copy(self, **override_parameters_kwargs: Any) -> Self:
        """A distribution with the same arguments but for those given."""
        return type(self)(**{**self.parameters, **override_parameters_kwargs})

    # -- shapes ---------------------------------------------------------------------------------

    def _batch_shape(self) -> Any:
        return tf.TensorShape(None)

    def _event_shape(self) -> Any:
        return tf.TensorShape([])

    def _batch_shape_tensor(self) -> Any:
        raise self._missing("batch_shape_tensor")

    def _event_shape_tensor(self) -> Any:
        return tf.constant([], tf.int32)

    @property
    def batch_shape(self) -> Any:
        """The shape of the batch of distributions, as far as it is known."""
        return tf.TensorShape(self._batch_shape())

    @property
    def event_shape(self) -> Any:
        """The shape of one event, as far as it is known."""
        return tf.TensorShape(self._event_shape())

    def batch_shape_tensor(self, name: str = "batch_shape_tensor") -> Any:
        """The shape of the batch of distributions, 1-D int32."""
        with self._name_scope(name):
            if self.batch_shape.is_fully_defined():
                return tf.constant(self.batch_shape.as_list(), tf.int32, name="batch_shape")
            return self._batch_shape_tensor()

    def event_shape_tensor(self, name: str = "event_shape_tensor") -> Any:
        """The shape of one event, 1-D int32."""
        with self._name_scope(name):
            if self.event_shape.is_fully_defined():
                return tf.constant(self.event_shape.as_list(), tf.int32, name="event_shape")
            return self._event_shape_tensor()

    def is_scalar_event(self, name: str = "is_scalar_event") -> Any:
        """Whether an event is a scalar, a boolean tensor."""
        with self._name_scope(name):
            return _is_scalar(self.event_shape, self.event_shape_tensor)

    def is_scalar_batch(self, name: str = "is_scalar_batch") -> Any:
        """Whether it is a single distribution, a boolean tensor."""
        with self._name_scope(name):
            return _is_scalar(self.batch_shape, self.batch_shape_tensor)

    # -- samples --------------------------------------------------------------------------------

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        raise self._missing("sample_n")

    def sample(self, sample_shape: Any = (), seed: int | None = None, name: str = "sample") -> Any:
        """Random events, ``sample_shape + batch_shape + event_shape``.

        Args:
            sample_shape: a scalar or 1-D integers: how many.
            seed: with the graph's seed, makes the numbers repeatable.

        Raises:
            ValueError: if ``sample_shape`` has more dimensions.
        """
        with self._name_scope(name):
            shape = tf.convert_to_tensor(sample_shape, tf.int32, name="sample_shape")
            if shape.dims is not None and len(shape.dims) > 1:
                raise ValueError("Input is neither scalar nor vector.")
            known = tf.get_static_value(shape)
            shape = tf.reshape(shape, [-1])
            count = tf.reduce_prod(shape) if known is None else int(known.prod())
            drawn = self._sample_n(count, seed)
            whole = tf.concat([shape, tf.shape(drawn)[1:]], 0)
            drawn = tf.reshape(drawn, whole)
            if known is not None:
                static = tf.TensorShape(known.reshape(-1).tolist())
                drawn.set_shape(static.concatenate(self.batch_shape).concatenate(self.event_shape))
            return drawn

    # -- densities ------------------------------------------------------------------------------

    def _value_of(
        self, value: Any, name: str, *ways: tuple[str, Callable[[Any], Any] | None]
    ) -> Any:
        """The first of several ways to work something out that the class has defined."""
        with self._name_scope(name):
            value = tf.convert_to_tensor(value, name="value", preferred_dtype=self._dtype)
            for method, then in ways:
                try:
                    found = getattr(self, method)(value)
                except NotImplementedError:
                    continue
                return found if then is None else then(found)
            raise self._missing(name)

    def log_prob(self, value: Any, name: str = "log_prob") -> Any:
        """The logarithm of the density or probability of ``value``."""
        return self._value_of(value, name, ("_log_prob", None), ("_prob", tf.log))

    def prob(self, value: Any, name: str = "prob") -> Any:
        """The density or probability of ``value``."""
        return self._value_of(value, name, ("_prob", None), ("_log_prob", tf.exp))

    def log_cdf(self, value: Any, name: str = "log_cdf") -> Any:
        """The logarithm of the probability of at most ``value``."""
        return self._value_of(value, name, ("_log_cdf", None), ("_cdf", tf.log))

    def cdf(self, value: Any, name: str = "cdf") -> Any:
        """The probability of at most ``value``."""
        return self._value_of(value, name, ("_cdf", None), ("_log_cdf", tf.exp))

    def log_survival_function(self, value: Any, name: str = "log_survival_function") -> Any:
        """The logarithm of the probability of more than ``value``."""
        return self._value_of(
            value, name, ("_log_survival_function", None), ("cdf", lambda p: tf.log1p(-p))
        )

    def survival_function(self, value: Any, name: str = "survival_function") -> Any:
        """The probability of more than ``value``."""
        return self._value_of(value, name, ("_survival_function", None), ("cdf", lambda p: 1.0 - p))

    def quantile(self, value: Any, name: str = "quantile") -> Any:
        """The number below which events fall with probability ``value``."""
        return self._value_of(value, name, ("_quantile", None))

    def _log_prob(self, value: Any) -> Any:
        raise self._missing("log_prob")

    def _prob(self, value: Any) -> Any:
        raise self._missing("prob")

    def _log_cdf(self, value: Any) -> Any:
        raise self._missing("log_cdf")

    def _cdf(self, value: Any) -> Any:
        raise self._missing("cdf")

    def _log_survival_function(self, value: Any) -> Any:
        raise self._missing("log_survival_function")

    def _survival_function(self, value: Any) -> Any:
        raise self._missing("survival_function")

    def _quantile(self, value: Any) -> Any:
        raise self._missing("quantile")

    # -- moments --------------------------------------------------------------------------------

    def entropy(self, name: str = "entropy") -> Any:
        """Shannon's entropy in nats."""
        with self._name_scope(name):
            return self._entropy()

    def mean(self, name: str = "mean") -> Any:
        """The mean."""
        with self._name_scope(name):
            return self._mean()

    def variance(self, name: str = "variance") -> Any:
        """The variance."""
        with self._name_scope(name):
            try:
                return self._variance()
            except NotImplementedError:
                return tf.square(self._stddev())

    def stddev(self, name: str = "stddev") -> Any:
        """The standard deviation."""
        with self._name_scope(name):
            try:
                return self._stddev()
            except NotImplementedError:
                return tf.sqrt(self._variance())

    def covariance(self, name: str = "covariance") -> Any:
        """The covariances of the parts of an event."""
        with self._name_scope(name):
            return self._covariance()

    def mode(self, name: str = "mode") -> Any:
        """The most likely event."""
        with self._name_scope(name):
            return self._mode()

    def _entropy(self) -> Any:
        raise self._missing("entropy")

    def _mean(self) -> Any:
        raise self._missing("mean")

    def _variance(self) -> Any:
        raise self._missing("variance")

    def _stddev(self) -> Any:
        raise self._missing("stddev")

    def _covariance(self) -> Any:
        raise self._missing("covariance")

    def _mode(self) -> Any:
        raise self._missing("mode")

    # -- divergences ----------------------------------------------------------------------------

    def cross_entropy(self, other: Distribution, name: str = "cross_entropy") -> Any:
        """The cross entropy H(self, other)."""
        with self._name_scope(name):
            return kullback_leibler.cross_entropy(self, other, self._allow_nan_stats)

    def kl_divergence(self, other: Distribution, name: str = "kl_divergence") -> Any:
        """The Kullback-Leibler divergence KL(self || other)."""
        with self._name_scope(name):
            return kullback_leibler.kl_divergence(self, other, self._allow_nan_stats)

    # -- inside ---------------------------------------------------------------------------------

    def _missing(self, what: str) -> NotImplementedError:
        return NotImplementedError(f"{what} is not implemented: {type(self).__name__}")

    @contextmanager
    def _name_scope(self, name: str) -> Iterator[str]:
        with tf.name_scope(self._name), tf.name_scope(name) as scope:
            yield scope

    def __str__(self) -> str:
        shapes = "".join(
            f", {what}={shape}"
            for what, shape in (
                ("batch_shape", self.batch_shape),
                ("event_shape", self.event_shape),
            )
            if shape.ndims is not None
        )
        kind = type(self).__name__
        return f'tf.distributions.{kind}("{self._name}"{shapes}, dtype={self._dtype.name})'

    def __repr__(self) -> str:
        return (
            f"<tf.distributions.{type(self).__name__} '{self._name}' "
            f"batch_shape={self.batch_shape} event_shape={self.event_shape} "
            f"dtype={self._dtype.name}>"
        )


def _is_scalar(static: Any, dynamic: Callable[[], Any]) -> Any:
    if static.ndims is not None:
        return tf.constant(static.ndims == 0, name="is_scalar")
    return tf.equal(tf.size(dynamic()), 0)
