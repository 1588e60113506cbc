"""Losses of linear models, with what dual coordinate ascent needs of them.

Each has ``value(a, y)``, the loss of a prediction ``a``; ``conjugate(u, y)``, that of ``-u``; and
``step(u, a, y, q)``, the new dual variable of an example: the one for which
``-conjugate(u', y) - (u' - u) a - q (u' - u)^2 / 2`` is largest. Labels ``y`` are -1 and 1 of the
losses of two classes. Sources: Shalev-Shwartz and Zhang, "Stochastic dual coordinate ascent methods
for regularized loss minimization", JMLR 2013, section 6; for logistic and Poisson losses, which
have no closed form, Newton's method.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from jax import lax
from jax import numpy as jnp
from jax.nn import sigmoid, softplus
from jax.scipy.special import xlogy

_NEWTON_STEPS = 20
_TINY = 1e-30


class DualLoss(NamedTuple):
    """A loss."""

    value: Callable[[Any, Any], Any]
    conjugate: Callable[[Any, Any], Any]
    step: Callable[[Any, Any, Any, Any], Any]


def _logistic_step(u: Any, a: Any, y: Any, q: Any) -> Any:
    share = u * y  # in [0, 1]

    def improve(_: Any, state: Any) -> Any:
        low, high, z = state
        at = sigmoid(z)
        slope = z + y * a + q * (at - share)  # rises with z
        low, high = jnp.where(slope < 0, z, low), jnp.where(slope < 0, high, z)
        newton = z - slope / (1 + q * at * (1 - at))
        within = (newton >= low) & (newton <= high)
        return low, high, jnp.where(within, newton, (low + high) / 2)

    low, high = -y * a - q * (1 - share), -y * a + q * share
    start = low, high, (low + high) / 2
    return y * sigmoid(lax.fori_loop(0, _NEWTON_STEPS, improve, start)[2])


def _hinge_step(u: Any, a: Any, y: Any, q: Any) -> Any:
    return y * jnp.clip(u * y + (1 - y * a) / jnp.maximum(q, _TINY), 0, 1)


def _smooth_hinge_step(u: Any, a: Any, y: Any, q: Any) -> Any:
    return y * jnp.clip(u * y + (1 - y * a - u * y) / (q + 1), 0, 1)


def _smooth_hinge(a: Any, y: Any) -> Any:
    margin = 1 - y * a
    return jnp.where(margin <= 0, 0, jnp.where(margin >= 1, margin - 0.5, margin**2 / 2))


def _poisson_step(u: Any, a: Any, y: Any, q: Any) -> Any:
    """Newton's method for the logarithm of the rate, from above: the function is convex."""
    end = a + q * (y - u)

    def improve(_: Any, z: Any) -> Any:
        rate = q * jnp.exp(z)
        return z - (z - end + rate) / (1 + rate)

    # q exp(z) is less than end where z is above 0.
    above = jnp.log(jnp.maximum(end, _TINY)) - jnp.log(jnp.maximum(q, _TINY))
    start = jnp.minimum(end, jnp.maximum(above, 0))
    return y - jnp.exp(lax.fori_loop(0, _NEWTON_STEPS, improve, start))


#: By their names in TensorFlow.
LOSSES = {
    "logistic_loss": DualLoss(
        lambda a, y: softplus(-y * a),
        lambda u, y: xlogy(u * y, u * y) + xlogy(1 - u * y, 1 - u * y),
        _logistic_step,
    ),
    "squared_loss": DualLoss(
        lambda a, y: (a - y) ** 2 / 2,
        lambda u, y: u * u / 2 - u * y,
        lambda u, a, y, q: u + (y - a - u) / (1 + q),
    ),
    "hinge_loss": DualLoss(
        lambda a, y: jnp.maximum(0, 1 - y * a), lambda u, y: -u * y, _hinge_step
    ),
    "smooth_hinge_loss": DualLoss(
        _smooth_hinge, lambda u, y: u * u / 2 - u * y, _smooth_hinge_step
    ),
    "poisson_loss": DualLoss(
        lambda a, y: jnp.exp(a) - y * a,
        lambda u, y: xlogy(y - u, y - u) - (y - u),
        _poisson_step,
    ),
}

#: Those of two classes, whose labels are 0 and 1 for users.
OF_CLASSES = frozenset({"logistic_loss", "hinge_loss", "smooth_hinge_loss"})

__all__ = ["LOSSES", "OF_CLASSES", "DualLoss"]
