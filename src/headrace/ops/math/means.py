"""Means of integers: what is added up never leaves its type, whatever the numbers are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def integer_mean(xp: Any, x: Any, count: Any, result_count: Any, add: Callable[[Any], Any]) -> Any:
    """The exact mean of integers, cut towards zero as TensorFlow does.

    Types of up to 32 bits are added up in 64. For those of 64 bits quotients and remainders by the
    count are added up apart: mean = sum(x // n) + sum(x mod n) / n, where no sum is larger than
    the mean or than n * n.

    Args:
        xp: numpy or jax.numpy.
        x: integers.
        count: how many numbers are averaged, at least 1; broadcasts against ``x``.
        result_count: the same, broadcasting against the result.
        add: adds up numbers of the shape of ``x``, keeping their type.
    """
    wide = np.dtype(np.uint64 if x.dtype.kind == "u" else np.int64)
    count = xp.asarray(count).astype(wide)
    result_count = xp.asarray(result_count).astype(wide)
    if x.dtype.itemsize < 8:
        whole, rest = xp.divmod(add(x.astype(wide)), result_count)
    else:
        quotients, remainders = xp.divmod(x, count)
        more, rest = xp.divmod(add(remainders), result_count)
        whole = add(quotients) + more
    if x.dtype.kind == "i":  # divmod rounds down
        whole = whole + ((whole < 0) & (rest != 0)).astype(wide)
    return whole.astype(x.dtype)
