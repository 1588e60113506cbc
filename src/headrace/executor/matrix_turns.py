"""Factorisations of batches of matrices, one after the other.

jaxlib 0.10 spreads a batch of matrices over a pool of threads. Where two of its calls of LAPACK do
so at the same time, in one program or in two, both may wait for ever: two LU decompositions of
2,000 matrices of 8x8 did on two cores after some hundred steps. So in a program each takes the turn
after the one before it, and programs with such calls run one at a time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from headrace.executor.long_kernels import OF_MATRICES, equations, parts
from headrace.executor.retracing import Retracing, retraced
from headrace.ops.core.barrier import barrier

__all__ = ["MATRIX_TURN", "factors_batches", "in_turn"]

#: Held by the one program with calls of LAPACK for batches that runs.
MATRIX_TURN = threading.Lock()


def factors_batches(jaxpr: Any) -> bool:
    """Whether a traced program calls LAPACK for batches of matrices."""
    return any(_is_of_batches(equation) for equation, _ in equations(jaxpr))


def _is_of_batches(equation: Any) -> bool:
    shapes = (value.aval.shape for value in equation.invars)
    return equation.primitive.name in OF_MATRICES and any(len(s) > 2 for s in shapes)


def in_turn(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with its calls of LAPACK in the order in which it makes them.

    Each waits for what the one before it gives, by an optimization barrier: XLA keeps those of
    programs on CPUs (`region_options.CPU_OPTIONS`).
    """

    return retraced(function, lambda *traced: _Turns().evaluate(*traced))


class _Turns(Retracing):
    """Evaluates a traced function, and puts its calls of LAPACK behind each other."""

    def __init__(self) -> None:
        #: What the last of them gave.
        self._last: list[Any] = []

    def outputs_of(self, equation: Any, given: list[Any]) -> list[Any]:
        takes_turn = _contains(equation)
        if takes_turn and self._last:
            behind = barrier((given, self._last))
            given = list(behind[0])
        outputs = super().outputs_of(equation, given)
        if takes_turn:
            self._last = outputs
        return outputs


def _contains(equation: Any) -> bool:
    """Whether an equation is a call of LAPACK, or a loop or branch with one in it."""
    inner = (each for part in parts(equation) for each, _ in equations(part))
    return any(each.primitive.name in OF_MATRICES for each in (equation, *inner))
