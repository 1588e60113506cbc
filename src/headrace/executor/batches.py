"""Ops over a batch that are compiled by themselves: one program serves many sizes of the batch.

In steps whose batch has another size each time, what has no NumPy form would be compiled for each.
Where the elements of a batch do not depend on each other (`Traits.batch`), elements of zeros are
added up to a power of two; what comes of them is dropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from headrace.executor.evaluate import flat_static
from headrace.graph.tensor import Dims
from headrace.passes.ir import Node

#: Batches are filled up to no fewer elements.
_LEAST = 8


class Filled(NamedTuple):
    """Inputs with a batch of a size that comes again.

    Attributes:
        size: how many elements of the outputs count; None for all.
    """

    args: list[Any]
    size: int | None


def filled(node: Node, args: list[Any]) -> Filled:
    """The inputs of a node, with elements of zeros added to a batch of changing size."""
    batch = node.op_def.traits.batch
    if batch is None or any(step != 1 for step in _steps(node)):
        return Filled(args, None)
    edges = [node.inputs[i] for i in batch.inputs]
    sizes = {len(args[i]) if np.ndim(args[i]) else 0 for i in batch.inputs}
    if len(sizes) != 1 or any(_is_known(source.dims[i]) for source, i in edges):
        return Filled(args, None)
    (size,) = sizes
    room = max(_LEAST, 1 << max(0, size - 1).bit_length())
    if size in (0, room):
        return Filled(args, None)
    given = list(args)
    for i in batch.inputs:
        given[i] = np.zeros((room, *args[i].shape[1:]), args[i].dtype)
        given[i][:size] = args[i]
    for i in flat_static(node):
        if i == batch.shape:
            given[i] = np.array(args[i])
            if given[i].ndim != 1 or given[i][0] != size:
                return Filled(args, None)
            given[i][0] = room
    return Filled(given, None if batch.adds_up else size)


def _is_known(dims: Dims) -> bool:
    """Whether the graph tells the size of the batch: then there are no others."""
    return bool(dims) and dims[0] is not None  # type: ignore[index]


def _steps(node: Node) -> Sequence[int]:
    """How windows lie along the batch."""
    return [node.attrs[name][0] for name in ("strides", "ksize", "dilations") if name in node.attrs]


__all__ = ["Filled", "filled"]
