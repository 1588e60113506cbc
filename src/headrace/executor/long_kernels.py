"""Programs that may keep their caller: on a CPU, XLA runs what it takes for cheap in the call.

It counts floating point operations for that, and finds none in calls of LAPACK and few in sorting.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

__all__ = ["OF_MATRICES", "equations", "parts", "takes_long"]

#: Primitives that work through all dimensions of their matrices, the more often the larger these.
OF_MATRICES = frozenset(
    (
        "cholesky",
        "cholesky_update",
        "eig",
        "eigh",
        "geqp3",
        "geqrf",
        "hessenberg",
        "householder_product",
        "lu",
        "ormqr",
        "qr",
        "schur",
        "svd",
        "sylvester",
        "triangular_solve",
        "tridiagonal",
        "tridiagonal_solve",
    )
)
_SORTING = frozenset(("approx_top_k", "fft", "sort", "top_k"))
_LOOPS = frozenset(("scan", "while"))
#: So many operations take about a tenth of a millisecond: no call has to be that quick.
_MANY = 1e5


def takes_long(jaxpr: Any) -> bool:
    """Whether a traced program has such a kernel for more than a little data, or in a loop.

    Args:
        jaxpr: all its shapes are known.
    """
    return any(_operations(equation) > _MANY for equation in equations(jaxpr))


def _operations(equation: Any) -> float:
    name, in_loop = equation[0].primitive.name, equation[1]
    if name not in OF_MATRICES and name not in _SORTING:
        return 0.0
    if in_loop:
        return math.inf
    most = 0.0
    for value in equation[0].invars:
        shape = value.aval.shape
        size = float(math.prod(shape))
        each = shape[-1] if name in OF_MATRICES and shape else math.log2(size + 2)
        most = max(most, size * each)
    return most


def equations(jaxpr: Any, in_loop: bool = False) -> Iterator[tuple[Any, bool]]:
    """Its equations and those of its parts, each with whether it is in a loop."""
    for equation in jaxpr.eqns:
        yield equation, in_loop
        inside = in_loop or equation.primitive.name in _LOOPS
        for part in parts(equation):
            yield from equations(part, inside)


def parts(equation: Any) -> Iterator[Any]:
    """The traced functions in an equation: what it calls, its branches, the body of a loop."""
    for value in equation.params.values():
        for part in value if isinstance(value, (list, tuple)) else (value,):
            inner = getattr(part, "jaxpr", part)
            if hasattr(inner, "eqns"):
                yield inner
