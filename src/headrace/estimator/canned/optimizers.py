"""Optimizers that are given to premade estimators: by name, as a function, or as they are."""

from __future__ import annotations

from typing import Any

import headrace as tf
from headrace.errors import suggest

__all__ = ["by_name", "optimizer_instance"]


def by_name() -> dict[str, Any]:
    """The optimizers that have a name here."""
    return {
        "Adagrad": tf.train.AdagradOptimizer,
        "Adam": tf.train.AdamOptimizer,
        "Ftrl": tf.train.FtrlOptimizer,
        "RMSProp": tf.train.RMSPropOptimizer,
        "SGD": tf.train.GradientDescentOptimizer,
    }


def optimizer_instance(given: Any, learning_rate: float) -> Any:
    """An optimizer for the graph at hand.

    Args:
        given: a name (Adagrad, Adam, Ftrl, RMSProp or SGD), an optimizer, or a function that makes
            one (so that its learning rate can depend on the global step).
        learning_rate: for those given by name.

    Raises:
        ValueError: for an unknown name, and for what is no optimizer.

    >>> from headrace.estimator.canned.optimizers import optimizer_instance
    >>> type(optimizer_instance("Adam", 0.1)).__name__
    'AdamOptimizer'
    """
    if isinstance(given, str):
        known = by_name()
        if given not in known:
            raise ValueError(
                f"Unsupported optimizer name: {given}. Supported names are: "
                f"{tuple(sorted(known))}.{suggest(given, known)}"
            )
        return known[given](learning_rate=learning_rate)
    found = given
    if callable(given) and not hasattr(given, "get_updates"):
        found = given()
    if not (isinstance(found, tf.train.Optimizer) or hasattr(found, "get_updates")):
        raise ValueError(f"The given object is not an Optimizer instance. Given: {found}")
    return found
