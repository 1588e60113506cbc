"""Divergences between distributions, found by the classes of both."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import headrace as tf

_DIVERGENCES: dict[tuple[type, type], Callable[..., Any]] = {}


def _registered(first: type, second: type) -> Callable[..., Any] | None:
    """The rule for the nearest pair of base classes."""
    best: Callable[..., Any] | None = None
    nearest = 0
    for steps_a, a in enumerate(first.__mro__):
        for steps_b, b in enumerate(second.__mro__):
            rule = _DIVERGENCES.get((a, b))
            if rule is not None and (best is None or steps_a + steps_b < nearest):
                best, nearest = rule, steps_a + steps_b
    return best


def kl_divergence(
    distribution_a: Any, distribution_b: Any, allow_nan_stats: bool = True, name: str | None = None
) -> Any:
    """The Kullback-Leibler divergence KL(a || b), the mean under a of log a - log b.

    Args:
        allow_nan_stats: NaN is a result; else it is an error when run.

    Returns:
        A tensor of the batch shape.

    Raises:
        NotImplementedError: if no rule is registered for these classes.
        InvalidArgumentError: when run, for NaN.
    """
    rule = _registered(type(distribution_a), type(distribution_b))
    if rule is None:
        raise NotImplementedError(
            "No KL(distribution_a || distribution_b) registered for distribution_a type "
            f"{type(distribution_a).__name__} and distribution_b type "
            f"{type(distribution_b).__name__}"
        )
    with tf.name_scope("KullbackLeibler"):
        divergence = rule(distribution_a, distribution_b, name=name)
        if allow_nan_stats:
            return divergence
        divergence = tf.identity(divergence, name="kl")
        message = (
            f"KL calculation between {distribution_a.name} and {distribution_b.name} returned NaN "
            "values (and was called with allow_nan_stats=False). Values:"
        )
        is_number = tf.logical_not(tf.reduce_any(tf.is_nan(divergence)))
        with tf.control_dependencies([tf.Assert(is_number, [message, divergence])]):
            return tf.identity(divergence, name="checked_kl")


def cross_entropy(
    ref: Any, other: Any, allow_nan_stats: bool = True, name: str | None = None
) -> Any:
    """The cross entropy H(ref, other) = H(ref) + KL(ref || other)."""
    with tf.name_scope(name, "cross_entropy"):
        return ref.entropy() + kl_divergence(ref, other, allow_nan_stats=allow_nan_stats)


class RegisterKL:
    """Decorates a function ``rule(a, b, name=None)`` that gives KL(a || b) for two classes.

    >>> class Fair(tf.distributions.Bernoulli):
    ...     pass
    >>> @tf.distributions.RegisterKL(Fair, Fair)
    ... def no_divergence(a, b, name=None):
    ...     return tf.zeros([])
    >>> fair = Fair(probs=0.5)
    >>> float(tf.Session().run(tf.distributions.kl_divergence(fair, fair)))
    0.0
    """

    def __init__(self, dist_cls_a: type, dist_cls_b: type) -> None:
        self._key = (dist_cls_a, dist_cls_b)

    def __call__(self, kl_fn: Callable[..., Any]) -> Callable[..., Any]:
        """Register ``kl_fn``.

        Raises:
            TypeError: if it is no function.
            ValueError: if there is a rule for these classes.
        """
        if not callable(kl_fn):
            raise TypeError(f"kl_fn must be callable, received: {kl_fn}")
        if self._key in _DIVERGENCES:
            a, b = (c.__name__ for c in self._key)
            raise ValueError(
                f"KL({a} || {b}) has already been registered to: {_DIVERGENCES[self._key]}"
            )
        _DIVERGENCES[self._key] = kl_fn
        return kl_fn
