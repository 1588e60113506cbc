"""Trigonometric functions and their inverses in vectors, on CPUs.

XLA calls the C library for each element, one after another: 4 to 40 times what the arithmetic
takes. Here they are polynomials, which it puts into vectors: for float32, and for halves by way of
it. Other types, small arrays, and programs of sizes without numbers (which may run on any device)
take XLA's functions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax import lax
from jax import numpy as jnp

Kernel = Callable[..., Any]

#: Fewer elements take no time in any form, and XLA's functions are one operation to compile.
_LEAST = 1 << 10
_HALVES = ("float16", "bfloat16")


def _in_vectors(plain: Kernel) -> Callable[[Kernel], Kernel]:
    """Makes a kernel of a function of float32, which computes it where it pays, else ``plain``."""

    def decorate(function: Kernel) -> Kernel:
        def kernel(*inputs: Any) -> Any:
            x = inputs[0]
            if not _pays(x):
                return plain(*inputs)
            if x.dtype == np.float32:
                return function(*inputs)
            wide = [lax.convert_element_type(value, np.float32) for value in inputs]
            return lax.convert_element_type(function(*wide), x.dtype)

        return kernel

    return decorate


def _pays(x: Any) -> bool:
    if x.dtype != np.float32 and x.dtype.name not in _HALVES:
        return False
    if not all(isinstance(size, int) for size in x.shape):
        return False
    return x.size >= _LEAST and jax.default_backend() == "cpu"


def _polynomial(x: Any, *coefficients: float) -> Any:
    """By Horner, the highest power first."""
    result = np.float32(coefficients[0])
    for coefficient in coefficients[1:]:
        result = result * x + np.float32(coefficient)
    return result


def _sign_bit(x: Any) -> Any:
    bits = lax.bitcast_convert_type(x, np.uint32)
    return lax.bitwise_and(bits, np.uint32(1 << 31))


def _with_sign(x: Any, bit: Any) -> Any:
    """``x`` with its sign turned where the bit is set."""
    bits = lax.bitcast_convert_type(x, np.uint32)
    return lax.bitcast_convert_type(lax.bitwise_xor(bits, bit), np.float32)


# -- the quadrant and the angle in it -----------------------------------------------------------

#: 2 / pi times 2 ** 256.
_TWO_OVER_PI = 0xA2F9836E4E441529FC2757D1F534DDC0DB6295993C439041FE5163ABDEBBC561
_PLACES = 256
#: A float32 has 24 bits: times a part of so many it is exact in float64.
_EXACT = 29
#: Each tier of sizes takes the digits from so many on: those before only make whole turns (Payne
#: and Hanek). Selecting among five takes less time than a table of all exponents.
_TIERS = range(0, 120, 24)
_FIRST_TIER = 25


def _part(first: int, count: int) -> np.float64:
    """So many digits of 2 / pi, after the first so many."""
    digits = (_TWO_OVER_PI >> (_PLACES - first - count)) & ((1 << count) - 1)
    return np.float64(digits * 2.0 ** -(first + count))


def _quadrant(x: Any) -> tuple[Any, Any, Any]:
    """How many quarters of a turn ``x`` is, as int32, and what is left of it, from -pi/4 to pi/4.

    What is left comes as a float32, and what that lacks. It is NaN for what is not finite.
    """
    size, wide = lax.abs(x), lax.convert_element_type(x, np.float64)

    def times(first: int, count: int) -> Any:
        part: Any = _part(first, count)
        for tier in _TIERS[1:]:
            is_over = size >= np.float32(2.0 ** (_FIRST_TIER + tier))
            part = jnp.where(is_over, _part(tier + first, count), part)
        return wide * part

    quarters, more = times(0, _EXACT), times(_EXACT, _EXACT)
    rest = times(2 * _EXACT, 2 * _EXACT)
    quarters = quarters - 4.0 * lax.round(quarters * 0.25, lax.RoundingMethod.TO_NEAREST_EVEN)
    whole = lax.round(quarters + more, lax.RoundingMethod.TO_NEAREST_EVEN)
    left = (((quarters - whole) + more) + rest) * (np.pi / 2)
    near = left.astype(np.float32)
    return whole.astype(np.int32), near, (left - near.astype(np.float64)).astype(np.float32)


def _near_sin(r: Any, more: Any) -> Any:
    z = r * r
    tail = _polynomial(z, -1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1)
    return r + (r * z * tail + more)


def _near_cos(r: Any) -> Any:
    z = r * r
    tail = _polynomial(z, 2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2)
    return np.float32(1) + (z * z * tail - np.float32(0.5) * z)


def _wave(x: Any, ahead: int) -> Any:
    """The sine of ``x`` and so many quarters of a turn."""
    quarter, r, more = _quadrant(x)
    quarter = quarter + np.int32(ahead)
    value = jnp.where(quarter & 1 == 0, _near_sin(r, more), _near_cos(r))
    turned = lax.shift_left(lax.convert_element_type(quarter & 2, np.uint32), np.uint32(30))
    return _with_sign(value, turned)


def _small_as_it_is(x: Any, value: Any) -> Any:
    """``x`` where a function is that of it: it keeps the sign of zero, and what is next to it."""
    return jnp.where(lax.abs(x) < np.float32(2.0**-13), x, value)


@_in_vectors(lax.sin)
def sin(x: Any) -> Any:
    """The sine of float32."""
    return _small_as_it_is(x, _wave(x, 0))


@_in_vectors(lax.cos)
def cos(x: Any) -> Any:
    """The cosine of float32."""
    return _wave(x, 1)


@_in_vectors(lax.tan)
def tan(x: Any) -> Any:
    """The tangent of float32."""
    quarter, r, more = _quadrant(x)
    z = r * r
    tail = _polynomial(
        z,
        9.38540185543e-3,
        3.11992232697e-3,
        2.44301354525e-2,
        5.34112807005e-2,
        1.33387994085e-1,
        3.33331568548e-1,
    )
    # The inverse would double what the sum is rounded by.
    near = r.astype(np.float64) + (r * z * tail + more).astype(np.float64)
    is_even = quarter & 1 == 0
    value = jnp.where(is_even, near, np.float64(-1)) / jnp.where(is_even, np.float64(1), near)
    return _small_as_it_is(x, value.astype(np.float32))


# -- angles -------------------------------------------------------------------------------------

_QUARTER_PI, _HALF_PI, _PI = np.float32(np.pi / 4), np.float32(np.pi / 2), np.float32(np.pi)
#: How much larger these are than the numbers.
_HALF_PI_ROUNDED = np.float32(np.float64(_HALF_PI) - np.pi / 2)
_PI_ROUNDED = 2 * _HALF_PI_ROUNDED


def _near_asin(size: Any) -> tuple[Any, Any, Any]:
    """Whether a size is over 1/2, and its inverse sine, or the half of its inverse cosine.

    The last as a number that it is nearly, and what that lacks.
    """
    is_large = size > np.float32(0.5)
    z = jnp.where(is_large, np.float32(0.5) * (np.float32(1) - size), size * size)
    s = jnp.where(is_large, lax.sqrt(z), size)
    tail = _polynomial(
        z,
        4.2163199048e-2,
        2.4181311049e-2,
        4.5470025998e-2,
        7.4953002686e-2,
        1.6666752422e-1,
    )
    return is_large, s, s * z * tail


@_in_vectors(lax.asin)
def asin(x: Any) -> Any:
    """The inverse sine of float32."""
    is_large, s, more = _near_asin(lax.abs(x))
    rest = (_HALF_PI - (s + s)) - (more + more + _HALF_PI_ROUNDED)
    value = jnp.where(is_large, rest, s + more)
    return _small_as_it_is(x, _with_sign(value, _sign_bit(x)))


@_in_vectors(lax.acos)
def acos(x: Any) -> Any:
    """The inverse cosine of float32."""
    is_large, s, more = _near_asin(lax.abs(x))
    near = s + more
    twice = near + near
    signed = _with_sign(near, _sign_bit(x)) + _HALF_PI_ROUNDED
    below = _PI - (twice + _PI_ROUNDED)
    return jnp.where(is_large, jnp.where(x < 0, below, twice), _HALF_PI - signed)


def _near_atan(t: Any) -> Any:
    """The inverse tangent of 0 to 1."""
    one = np.float32(1)
    is_large = t > np.float32(np.tan(np.pi / 8))
    r = jnp.where(is_large, (t - one) / (t + one), t)
    z = r * r
    tail = _polynomial(z, 8.05374449538e-2, -1.38776856032e-1, 1.99777106478e-1, -3.33329491539e-1)
    return jnp.where(is_large, _QUARTER_PI, np.float32(0)) + (r + r * z * tail)


@_in_vectors(lax.atan)
def atan(x: Any) -> Any:
    """The inverse tangent of float32."""
    size = lax.abs(x)
    is_large = size > 1
    near = _near_atan(jnp.where(is_large, np.float32(1) / size, size))
    value = jnp.where(is_large, _HALF_PI - (near + _HALF_PI_ROUNDED), near)
    return _small_as_it_is(x, _with_sign(value, _sign_bit(x)))


@_in_vectors(lax.atan2)
def atan2(y: Any, x: Any) -> Any:
    """The angle of the point (x, y), of float32, by the signs of zeros, too."""
    height, width = lax.abs(y), lax.abs(x)
    short, long = lax.min(height, width), lax.max(height, width)
    # Nothing over nothing has the angle of nothing over one, infinity over itself that of 1.
    slope = jnp.where(short == long, jnp.where(long == 0, long, np.float32(1)), short / long)
    near = _near_atan(slope)
    near = jnp.where(height > width, _HALF_PI - (near + _HALF_PI_ROUNDED), near)
    near = jnp.where(_sign_bit(x) != 0, _PI - (near + _PI_ROUNDED), near)
    return _with_sign(near, _sign_bit(y))


@_in_vectors(lax.rsqrt)
def rsqrt(x: Any) -> Any:
    """One over the square root of float32."""
    # Without the step between XLA would join both to its own function, which is one number at a
    # time.
    return np.float32(1) / lax.reduce_precision(lax.sqrt(x), 8, 23)
