"""Large outputs in the memory of earlier ones.

A program's outputs are new memory, and for pieces of more than 64 MiB the C library asks the kernel
for it each time: every page is cleared first, which takes several times as long as computing on it.
Where outputs only pass through (a part of a step sends them to another task), the next run of the
program gets the last ones, once nobody uses them any more, as arguments whose memory XLA may reuse.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from jax import numpy as jnp

from headrace.graph.shapes import static_bytes
from headrace.passes.ir import Edge

#: Smaller pieces malloc keeps by itself.
LARGE_BYTES = 64 << 20
#: References to an array that only its keeper has: the variable that holds it, and the argument
#: of the function that counts.
_UNUSED = 2


class Recycled:
    """The large outputs of one program.

    Attributes:
        positions: among the outputs.
    """

    def __init__(self, outputs: Sequence[Edge]) -> None:
        self._shapes: dict[int, tuple[tuple[int, ...], Any]] = {}
        for position, (node, index) in enumerate(outputs):
            dims, dtype = node.dims[index], node.dtypes[index]
            size = static_bytes(dtype, dims)
            if size is not None and size >= LARGE_BYTES and dtype.np_dtype.kind in "fiub":
                self._shapes[position] = (dims, dtype.np_dtype)  # type: ignore[assignment]
        self._last: dict[int, Any] = {}

    @property
    def positions(self) -> list[int]:
        return list(self._shapes)

    def take(self) -> list[Any]:
        """An array to reuse for each position: the last output, unless somebody still has it."""
        return [self._take(position) for position in self._shapes]

    def _take(self, position: int) -> Any:
        last = self._last.pop(position, None)
        if last is None or sys.getrefcount(last) > _UNUSED:
            shape, dtype = self._shapes[position]
            return jnp.zeros(shape, dtype)
        return last

    def keep(self, outputs: Sequence[Any]) -> None:
        """Remember what the program has put out."""
        for position in self._shapes:
            self._last[position] = outputs[position]
