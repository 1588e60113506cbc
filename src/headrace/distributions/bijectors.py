"""``tf.contrib.distributions.bijectors``: smooth one-to-one functions with their Jacobians.

They take parameters of densities (a scale above 0, a probability) to all real numbers and back, as
samplers and variational families want them: Kucukelbir et al., "Automatic differentiation
variational inference" (JMLR 18, 2017), section 2.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import headrace as tf

__all__ = [
    "AffineScalar",
    "Bijector",
    "Chain",
    "Exp",
    "Identity",
    "Invert",
    "Sigmoid",
    "Softplus",
]


class Bijector:
    """Base: ``y = forward(x)``, ``x = inverse(y)``, element by element.

    Args:
        event_ndims: how many of the last axes belong to one event: logarithms of Jacobian
            determinants are sums over them.
        validate_args: taken for compatibility.
        name: scope of the ops.

    Raises:
        ValueError: if ``event_ndims`` is no integer from 0 on.

    >>> import headrace as tf
    >>> with tf.Session() as session:
    ...     print(session.run(AffineScalar(1.0, 2.0).forward([0.0, 3.0])))
    [1. 7.]
    """

    def __init__(
        self, event_ndims: int = 0, validate_args: bool = False, name: str | None = None
    ) -> None:
        if isinstance(event_ndims, bool) or not isinstance(event_ndims, int) or event_ndims < 0:
            raise ValueError(f"event_ndims must be an integer of at least 0, not {event_ndims!r}.")
        self.event_ndims = event_ndims
        self.validate_args = validate_args
        self.name = name or type(self).__name__.lower()

    def forward(self, x: Any, name: str = "forward") -> Any:
        """``y``, of the shape and dtype of ``x``."""
        with tf.name_scope(f"{self.name}/{name}"):
            return self._forward(tf.convert_to_tensor(x, name="x"))

    def inverse(self, y: Any, name: str = "inverse") -> Any:
        """``x``, of the shape and dtype of ``y``."""
        with tf.name_scope(f"{self.name}/{name}"):
            return self._inverse(tf.convert_to_tensor(y, name="y"))

    def forward_log_det_jacobian(self, x: Any, name: str = "forward_log_det_jacobian") -> Any:
        """``log |dy/dx|``, summed over the axes of an event."""
        with tf.name_scope(f"{self.name}/{name}"):
            return self._summed(self._log_slope(tf.convert_to_tensor(x, name="x")))

    def inverse_log_det_jacobian(self, y: Any, name: str = "inverse_log_det_jacobian") -> Any:
        """``log |dx/dy|``, summed over the axes of an event."""
        with tf.name_scope(f"{self.name}/{name}"):
            x = self._inverse(tf.convert_to_tensor(y, name="y"))
            return self._summed(-self._log_slope(x))

    def _summed(self, slopes: Any) -> Any:
        if not self.event_ndims:
            return slopes
        return tf.reduce_sum(slopes, axis=list(range(-self.event_ndims, 0)))

    def _forward(self, x: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no forward")

    def _inverse(self, y: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no inverse")

    def _log_slope(self, x: Any) -> Any:
        """``log |dy/dx|`` of each element."""
        raise NotImplementedError(f"{type(self).__name__} has no Jacobian")


class Identity(Bijector):
    """``y = x``.

    >>> with tf.Session() as sess:
    ...     sess.run(tf.contrib.distributions.bijectors.Identity().forward(2.0)).item()
    2.0
    """

    def _forward(self, x: Any) -> Any:
        return tf.identity(x)

    def _inverse(self, y: Any) -> Any:
        return tf.identity(y)

    def _log_slope(self, x: Any) -> Any:
        return tf.zeros_like(x)


class Exp(Bijector):
    """``y = exp(x)``: real numbers to positive ones.

    >>> exp = tf.contrib.distributions.bijectors.Exp()
    >>> with tf.Session() as sess:
    ...     sess.run(exp.forward_log_det_jacobian(3.0)).item()
    3.0
    """

    def _forward(self, x: Any) -> Any:
        return tf.exp(x)

    def _inverse(self, y: Any) -> Any:
        return tf.log(y)

    def _log_slope(self, x: Any) -> Any:
        return x


class Softplus(Bijector):
    """``y = log(1 + exp(x))``: real numbers to positive ones, for large ``x`` nearly as they are.

    >>> with tf.Session() as sess:
    ...     round(sess.run(tf.contrib.distributions.bijectors.Softplus().forward(0.0)).item(), 4)
    0.6931
    """

    def _forward(self, x: Any) -> Any:
        return tf.nn.softplus(x)

    def _inverse(self, y: Any) -> Any:
        return y + tf.log(-tf.expm1(-y))

    def _log_slope(self, x: Any) -> Any:
        return -tf.nn.softplus(-x)


class Sigmoid(Bijector):
    """``y = 1 / (1 + exp(-x))``: real numbers to those between 0 and 1.

    >>> with tf.Session() as sess:
    ...     sess.run(tf.contrib.distributions.bijectors.Sigmoid().forward(0.0)).item()
    0.5
    """

    def _forward(self, x: Any) -> Any:
        return tf.sigmoid(x)

    def _inverse(self, y: Any) -> Any:
        return tf.log(y) - tf.log1p(-y)

    def _log_slope(self, x: Any) -> Any:
        return -tf.nn.softplus(-x) - tf.nn.softplus(x)


class AffineScalar(Bijector):
    """``y = shift + scale * x``.

    Args:
        shift, scale: numbers or tensors that broadcast with ``x``; ``scale`` is nowhere 0.
        event_ndims, validate_args, name: see Bijector.

    >>> twice = tf.contrib.distributions.bijectors.AffineScalar(shift=1.0, scale=2.0)
    >>> with tf.Session() as sess:
    ...     sess.run(twice.inverse(7.0)).item()
    3.0
    """

    def __init__(
        self,
        shift: Any = 0.0,
        scale: Any = 1.0,
        event_ndims: int = 0,
        validate_args: bool = False,
        name: str = "affine_scalar",
    ) -> None:
        super().__init__(event_ndims, validate_args, name)
        self.shift = shift
        self.scale = scale

    def _forward(self, x: Any) -> Any:
        return self.shift + self.scale * x

    def _inverse(self, y: Any) -> Any:
        return (y - self.shift) / self.scale

    def _log_slope(self, x: Any) -> Any:
        return tf.zeros_like(x) + tf.log(tf.abs(tf.convert_to_tensor(self.scale, x.dtype)))


class Chain(Bijector):
    """One bijector after another: ``Chain([f, g]).forward(x)`` is ``f(g(x))``.

    Args:
        bijectors: the last is applied first.
        validate_args, name: see Bijector. ``event_ndims`` is the largest of theirs.

    >>> b = tf.contrib.distributions.bijectors
    >>> percent = b.Chain([b.AffineScalar(scale=100.0), b.Sigmoid()])
    >>> with tf.Session() as sess:
    ...     sess.run(percent.forward(0.0)).item()
    50.0
    """

    def __init__(
        self, bijectors: Sequence[Bijector] = (), validate_args: bool = False, name: str = "chain"
    ) -> None:
        self.bijectors = list(bijectors)
        most = max([b.event_ndims for b in self.bijectors], default=0)
        super().__init__(most, validate_args, name)

    def _forward(self, x: Any) -> Any:
        for bijector in reversed(self.bijectors):
            x = bijector._forward(x)
        return x

    def _inverse(self, y: Any) -> Any:
        for bijector in self.bijectors:
            y = bijector._inverse(y)
        return y

    def _log_slope(self, x: Any) -> Any:
        total = tf.zeros_like(x)
        for bijector in reversed(self.bijectors):
            total += bijector._log_slope(x)
            x = bijector._forward(x)
        return total


class Invert(Bijector):
    """The inverse of a bijector.

    Args:
        bijector: whose ``inverse`` becomes ``forward``.
        validate_args, name: see Bijector.

    >>> b = tf.contrib.distributions.bijectors
    >>> with tf.Session() as sess:
    ...     sess.run(b.Invert(b.Exp()).forward(1.0)).item()
    0.0
    """

    def __init__(
        self, bijector: Bijector, validate_args: bool = False, name: str | None = None
    ) -> None:
        super().__init__(bijector.event_ndims, validate_args, name or f"invert_{bijector.name}")
        self.bijector = bijector

    def _forward(self, x: Any) -> Any:
        return self.bijector._inverse(x)

    def _inverse(self, y: Any) -> Any:
        return self.bijector._forward(y)

    def _log_slope(self, x: Any) -> Any:
        return -self.bijector._log_slope(self.bijector._inverse(x))
