"""Products of matrices on CPUs: by XLA, term by term, or by the native library.

What XLA's library takes long for is written otherwise: tiny matrices, few terms, turned matrices.
All but those of few terms go to the native library where it is there (`product_native`).

XLA calls its library, or runs plain loops, for one matrix after another: 20,000 products of 4x4
take it 8 ms. Added up term by term, a column of all first matrices times a row of all second ones,
they are one loop in vectors: 0.06 ms.

The gradient of a large matrix of weights for a batch of a few rows is a sum of as few products of a
column and a row. XLA makes it in the loop that updates the weights, where the library would have to
write it to memory, to be read again.

Where the first matrix lies across, the library lays it out anew; where both do, XLA has plain
loops. With the two exchanged the second one lies across, if any, and only the result is to be
turned: of 1024x4096 turned by 4096x2, the gradient of a layer of two classes, 4.6 to 0.25 ms. XLA
would change that back, but for a barrier.
"""

from __future__ import annotations

import math
from typing import Any

import jax
from jax import lax

from headrace.ops.core.barrier import barrier
from headrace.ops.math import product_native

#: So many matrices, and multiplications, at least.
_LEAST_STACK, _LEAST_WORK = 512, 1 << 17
#: So many terms at most: as they lie in memory, and where the second matrix lies across.
_MOST_TERMS, _MOST_TERMS_ACROSS = 64, 8
#: So many elements of a result at most: calls of the library are worth it then. Where the first
#: matrix lies across, XLA has loops only, and these are the terms and elements up to which.
_MOST_ELEMENTS = 256
_MOST_BOTH_ACROSS, _MOST_ELEMENTS_ACROSS = 16, 1024
#: A single product of so many elements at least and so many terms at most, and of how many where
#: the second matrix lies across.
_LEAST_ELEMENTS, _MOST_FEW, _MOST_FEW_ACROSS = 1 << 19, 8, 4
#: The result of products that change places has so many times as many rows as columns at least,
#: where only the first matrix lies across.
_MUCH_LONGER = 4


def dot_general(
    a: Any,
    b: Any,
    dimension_numbers: Any,
    precision: Any = None,
    preferred_element_type: Any = None,
    **more: Any,
) -> Any:
    """`lax.dot_general`, made otherwise where that is quicker: the last bits may differ.

    That is term by term, by the native library, or with the two exchanged, for ``a`` [..., m, k] or
    [..., k, m] and ``b`` [..., k, n] or [..., n, k], with equal leading dimensions in place of the
    dots; the result is [..., m, n]. All else, and ``more``, goes to `lax` as it is.
    """
    (contracted, stacks) = dimension_numbers
    if preferred_element_type in (None, a.dtype) and _is_plain(a, b, contracted, stacks):
        a_axis, b_axis = contracted[0][0], contracted[1][0]
        if _is_better_by_terms(a, b, a_axis, b_axis):
            return _by_terms(a, b, a_axis, b_axis)
        by_library = product_native.product(a, b, a_axis, b_axis)
        if by_library is not None:
            return by_library
        if _is_better_turned(a, b, a_axis, b_axis):
            turned = lax.dot_general(b, a, ((contracted[1], contracted[0]), stacks), precision)
            turned = barrier(turned)
            return lax.transpose(turned, (1, 0))
    return lax.dot_general(
        a, b, dimension_numbers, precision, preferred_element_type=preferred_element_type, **more
    )


def _is_plain(a: Any, b: Any, contracted: Any, stacks: Any) -> bool:
    """Whether these are matrices, or stacks of as many, on a CPU, that are multiplied as usual."""
    rank = len(a.shape)
    leading = tuple(range(rank - 2))
    if not all(isinstance(size, int) for size in (*a.shape, *b.shape)):
        return False  # programs that are exported
    if len(contracted[0]) != 1 or len(b.shape) != rank:
        return False
    if (tuple(stacks[0]), tuple(stacks[1])) != (leading, leading):
        return False
    if a.dtype != b.dtype or a.dtype.name not in ("float32", "float64", "bfloat16"):
        return False
    return jax.default_backend() == "cpu"


def _is_better_by_terms(a: Any, b: Any, a_axis: int, b_axis: int) -> bool:
    """Whether to add up terms; not in bfloat16, whose sums are made in float32."""
    if a.dtype.name == "bfloat16":
        return False
    rank = len(a.shape)
    stack, terms = math.prod(a.shape[:-2]), a.shape[a_axis]
    elements = math.prod(a.shape[-2:]) * math.prod(b.shape[-2:]) // max(terms, 1) ** 2
    a_across, b_across = a_axis == rank - 2, b_axis == rank - 1
    if rank == 2:
        most = _MOST_FEW_ACROSS if b_across else _MOST_FEW
        return bool(elements >= _LEAST_ELEMENTS and 0 < terms <= most)
    if stack < _LEAST_STACK or stack * elements * terms < _LEAST_WORK:
        return False
    if b_across:
        most, largest = (_MOST_BOTH_ACROSS if a_across else _MOST_TERMS_ACROSS), _MOST_ELEMENTS
    else:
        most, largest = _MOST_TERMS, _MOST_ELEMENTS_ACROSS if a_across else _MOST_ELEMENTS
    return bool(terms <= most and elements <= largest)


def _is_better_turned(a: Any, b: Any, a_axis: int, b_axis: int) -> bool:
    """Whether to multiply the other way round, and turn the result: less is to be moved then."""
    if len(a.shape) != 2 or a_axis != 0 or a.dtype.name != "float32":
        return False
    terms, rows, columns = a.shape[0], a.shape[1], b.shape[1 - b_axis]
    if b_axis == 1:
        return bool(rows * columns <= terms * (rows + columns))
    return bool(rows >= _MUCH_LONGER * columns and terms >= columns)


def _by_terms(a: Any, b: Any, a_axis: int, b_axis: int) -> Any:
    """The sum over the contracted axes of the products of a column and a row."""
    rank = len(a.shape)
    columns, rows = (*range(rank - 2), rank - 2), (*range(rank - 2), rank - 1)
    free_a, free_b = 2 * rank - 3 - a_axis, 2 * rank - 3 - b_axis
    shape = (*a.shape[:-2], a.shape[free_a], b.shape[free_b])
    total = None
    for k in range(a.shape[a_axis]):
        column = lax.index_in_dim(a, k, a_axis, keepdims=False)
        row = lax.index_in_dim(b, k, b_axis, keepdims=False)
        term = lax.broadcast_in_dim(column, shape, columns) * lax.broadcast_in_dim(row, shape, rows)
        total = term if total is None else total + term
    return total


__all__ = ["dot_general"]
