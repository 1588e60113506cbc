"""Which two seeds a random operation gets, from the graph's seed and its own.

The rule is TensorFlow's, so that a program's numbers stay the same:

    graph seed   op seed    (seed, seed2) of the operation
    ----------   -------    ------------------------------
    none         none       none: other numbers in every session
    none         given      a fixed default and the op seed
    given        none       the graph seed and a count of the operations that got their second seed
                            so: operations made in the same order get the same numbers (or, as in
                            TensorFlow 1.x, the number of operations: `config.flags.graph_seeds`)
    given        given      both
"""

from __future__ import annotations

from typing import Protocol

DEFAULT_GRAPH_SEED = 87654321
_MAX_INT32 = 2**31 - 1
#: Added to the own seed of an operation that draws: workers of one program draw other numbers.
apart = 0


class SeededGraph(Protocol):
    """What the rule needs of a graph."""

    @property
    def seed(self) -> int | None:
        """The graph-level seed, None when not set."""

    def _next_op_seed(self) -> int:
        """0 at the first call, then 1, 2 ...; or the number of operations."""


def get_seed(graph: SeededGraph, op_seed: int | None) -> tuple[int, int] | tuple[None, None]:
    """The seeds for an operation about to be made in `graph`; (None, None) if neither is set.

    Seeds are reduced to the range of the attributes, modulo 2**31 - 1. Never (0, 0), which the
    kernels read as "no seed". An operation with no seeds takes the attributes (0, 0).
    """
    if op_seed is not None and not hasattr(op_seed, "__index__"):
        raise TypeError(f"A seed is an integer or None, not {op_seed!r}.")
    graph_seed = graph.seed
    if graph_seed is None:
        if op_seed is None:
            return None, None
        graph_seed = DEFAULT_GRAPH_SEED
    elif op_seed is None:
        op_seed = graph._next_op_seed()
    seeds = graph_seed % _MAX_INT32, op_seed % _MAX_INT32
    return (0, _MAX_INT32) if seeds == (0, 0) else seeds


def seed_to_draw(graph: SeededGraph, op_seed: int | None) -> tuple[int, int] | tuple[None, None]:
    """The seeds of an operation that draws numbers: those of `get_seed`, for this worker."""
    first, second = get_seed(graph, op_seed)
    if not apart or first is None or second is None:
        return first, second  # type: ignore[return-value]
    return first, (second + apart) % _MAX_INT32
