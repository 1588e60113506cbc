"""The distribution functions of the standard normal and Laplace distributions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import headrace as tf

#: For each type: below the first, log_ndtr is a series; above the second, ndtr is 1 - tiny.
_SEGMENTS = {"float32": (-10.0, 5.0), "float64": (-20.0, 8.0)}
_TERMS = 3


def _floating(x: Any, name: str) -> Any:
    x = tf.convert_to_tensor(x, name=name)
    if x.dtype.name not in _SEGMENTS:
        raise TypeError(f"{name}.dtype={x.dtype} is not handled: it must be float32 or float64.")
    return x


def ndtr(x: Any, name: str = "ndtr") -> Any:
    """The area under the standard normal density from minus infinity to ``x``.

    Raises:
        TypeError: if ``x`` is not float32 or float64.
    """
    with tf.name_scope(name):
        x = _floating(x, "x")
        half_sqrt_2 = tf.constant(math.sqrt(0.5), x.dtype)
        w = x * half_sqrt_2
        z = tf.abs(w)
        tail = tf.where(tf.greater(w, 0), 2.0 - tf.erfc(z), tf.erfc(z))
        return 0.5 * tf.where(tf.less(z, half_sqrt_2), 1.0 + tf.erf(w), tail)


def ndtri(p: Any, name: str = "ndtri") -> Any:
    """The inverse of ``ndtr``.

    Raises:
        TypeError: if ``p`` is not float32 or float64.
    """
    with tf.name_scope(name):
        return tf.raw_ops.Ndtri(_floating(p, "p"))


def log_ndtr(x: Any, name: str = "log_ndtr") -> Any:
    """The logarithm of ``ndtr``, exact also far below 0, where ``ndtr`` itself is 0.

    There it is the asymptotic series of the error function: Abramowitz and Stegun, "Handbook of
    mathematical functions", 26.2.12.

    Raises:
        TypeError: if ``x`` is not float32 or float64.
    """
    with tf.name_scope(name):
        x = _floating(x, "x")
        lower, upper = _SEGMENTS[x.dtype.name]
        # Each branch sees only what it can do, so that no gradient becomes NaN.
        middle = tf.log(ndtr(tf.maximum(x, lower)))
        below = _log_ndtr_series(tf.minimum(x, lower))
        above = -ndtr(-x)
        return tf.where(tf.greater(x, upper), above, tf.where(tf.greater(x, lower), middle, below))


def _log_ndtr_series(x: Any) -> Any:
    square = tf.square(x)
    total: Any = tf.ones_like(x)
    power = square
    for n in range(1, _TERMS + 1):
        odd_factorial = float(np.prod(np.arange(2 * n - 1, 1, -2)))
        total += (-1.0) ** n * odd_factorial / power
        power *= square
    scale = -0.5 * square - tf.log(-x) - 0.5 * math.log(2.0 * math.pi)
    return scale + tf.log(total)


def log_cdf_laplace(x: Any, name: str = "log_cdf_laplace") -> Any:
    """The logarithm of the standard Laplace distribution function."""
    with tf.name_scope(name):
        x = tf.convert_to_tensor(x, name="x")
        upper = tf.log1p(-0.5 * tf.exp(-tf.abs(x)))
        return tf.where(x < 0.0, x - math.log(2.0), upper)
