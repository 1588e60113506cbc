"""Which rows of its variables a region changes, as far as the indices come in from outside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from headrace.executor.resources import ResourceHandle, Rows, StateKey
from headrace.executor.touched import functions_in
from headrace.passes.ir import Edge, Node

__all__ = ["ChangedRows"]

_ALL: Mapping[StateKey, Rows] = MappingProxyType({})


class ChangedRows:
    """Where the indices stand of the rows that a region changes.

    Whoever keeps a copy of the variables of a server is sent these rows only. Variables that a node
    changes otherwise, or at indices that the program itself computes, are not among them.

    Args:
        nodes: those of the region; ``dynamic``: edges whose values come in.
        handles: the variables among the values of edges.
    """

    def __init__(
        self, nodes: Sequence[Node], dynamic: Sequence[Edge], handles: Mapping[Edge, Any]
    ) -> None:
        self._positions: dict[StateKey, list[int]] = {}
        if not any(n.op_def.traits.row_updates for n in nodes):
            return
        position = {edge: i for i, edge in enumerate(dynamic)}
        found: dict[StateKey, list[int] | None] = {}
        for node in nodes:
            effects, traits = node.op_def.effects, node.op_def.traits
            written = [handles.get(node.inputs[i]) for i in effects.writes]
            if node.op_def.lower is not None and functions_in(node):
                # Its bodies may write whatever they are given.
                written = [handles.get(e) for e in node.inputs]
            at = None
            if traits.row_updates is not None and not traits.all_rows:
                at = _found(node.inputs[traits.row_updates[0]], position)
            for handle in written:
                if isinstance(handle, ResourceHandle):
                    known = found.setdefault(handle, [])
                    if at is None or known is None:
                        found[handle] = None
                    elif at not in known:
                        known.append(at)
        self._positions = {key: places for key, places in found.items() if places}

    def of(self, dynamic: Sequence[Any]) -> Mapping[StateKey, Rows]:
        """The indices of the rows that a run changes, by variable.

        Args:
            dynamic: the values that come in.
        """
        if not self._positions:
            return _ALL
        return {key: [dynamic[i] for i in at] for key, at in self._positions.items()}


def _found(edge: Edge, position: Mapping[Edge, int]) -> int | None:
    """Where what comes in has the elements of an edge; None if it does not."""
    while edge not in position:
        node = edge[0]
        if not (node.op_def.traits.is_view and node.op_def.effects.pure and not node.control):
            return None
        edge = node.inputs[0]
    return position[edge]
