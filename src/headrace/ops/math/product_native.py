"""Products of matrices by the native library (`headrace.native`), where it is there."""

from __future__ import annotations

import math

import jax

from headrace import native
from headrace.ops.core.native_call import LEAST_TOGETHER, native_call

#: Fewer multiplications take less time than handing them over.
_LEAST = 1 << 16
#: Vectors, and what is nearly one, are read once: XLA is as fast, and faster at a large matrix of
#: float32 by so few rows or columns.
_LEAST_SIDE, _LEAST_SIDE_TOGETHER = 4, 32


def product(a: jax.Array, b: jax.Array, a_axis: int, b_axis: int) -> jax.Array | None:
    """The product of two matrices, or two equal stacks of them; None where it is not for oneDNN.

    Args:
        a: ``[..., m, k]`` or ``[..., k, m]``, float32 or bfloat16.
        b: ``[..., k, n]`` or ``[..., n, k]``, of the same type.
        a_axis, b_axis: where ``k`` is.

    Returns:
        ``[..., m, n]``.
    """
    last = len(a.shape) - 1
    stack, terms = math.prod(a.shape[:-2]), a.shape[a_axis]
    rows, columns = a.shape[2 * last - 1 - a_axis], b.shape[2 * last - 1 - b_axis]
    work = stack * rows * terms * columns
    if work < _LEAST or min(rows, terms, columns) < _LEAST_SIDE:
        return None
    together = work >= LEAST_TOGETHER
    few = stack == 1 and min(rows, columns) < _LEAST_SIDE_TOGETHER
    if together and few and a.dtype.name == "float32":
        return None
    across = [int(a_axis != last), int(b_axis == last)]
    numbers = [stack, rows, terms, columns, *across]
    shape = (*a.shape[:-2], rows, columns)
    return native_call(native.PRODUCT, numbers, (a, b), shape, threads=0 if together else 1)
