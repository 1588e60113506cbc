"""Lists of rows of changing length, filled up: one program serves many lengths.

What updates rows of a variable gets other rows at each step, and often another number of them: ids
that a server has of a batch, distinct words. XLA would compile a program for each number. Programs
of such ops pass over indices behind the last row, so indices of that kind, and rows of zeros, can
be added.

Where a region updates many tables, each with a length of its own, even few lengths of each make a
great many together. There a program has more room than its first step needs, and serves all steps
that fit in; when one does not, the next program has room for what both need.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from headrace.executor.early_checks import maker_of
from headrace.passes.ir import Edge, Node

#: No list is filled up to fewer rows.
_LEAST = 8
#: Where there are several lists: how much more room than rows a program has when it is made, how
#: much more one may have that is used, and how many of them are remembered.
_MARGIN, _WASTE, _MOST_ROOMS = 1.25, 4, 16


class _Rows(NamedTuple):
    """Inputs of a region that are lists of the same length.

    Attributes:
        indices: position of the indices.
        updates: positions of what is to be written there.
        behind: an index behind the last row of every variable that they are for.
    """

    indices: int
    updates: tuple[int, ...]
    behind: int


class SpareRows:
    """How the inputs of one region are filled up."""

    def __init__(self, lists: Sequence[_Rows]) -> None:
        self._lists = lists
        self._rooms: list[tuple[int, ...]] = []

    @classmethod
    def of(
        cls,
        nodes: Sequence[Node],
        dynamic: Sequence[Edge],
        outputs: Iterable[Edge],
        handles: Mapping[Edge, Any],
        checked: set[Node],
    ) -> SpareRows | None:
        """How to do it for such a region, None if it has no such lists.

        Args:
            checked: nodes whose indices are looked at before the program runs.
        """
        updating = [n for n in nodes if n.op_def.traits.row_updates is not None]
        if not updating:
            return None
        position = {edge: i for i, edge in enumerate(dynamic)}
        found: dict[int, _Rows] = {}
        # An edge that anything else takes must stay as it is.
        users: dict[Edge, int] = dict.fromkeys(outputs, 1)
        for node in nodes:
            for edge in node.inputs:
                users[edge] = users.get(edge, 0) + 1
        used: dict[Edge, int] = {}
        for node in updating:
            rows = _rows_of(node, position, handles) if node in checked else None
            if rows is None:
                continue
            for i in (rows.indices, *rows.updates):
                used[dynamic[i]] = used.get(dynamic[i], 0) + 1
            old = found.get(rows.indices, rows)
            updates = tuple(sorted({*old.updates, *rows.updates}))
            found[rows.indices] = _Rows(rows.indices, updates, max(old.behind, rows.behind))
        lists = [
            rows
            for rows in found.values()
            if all(users[e] == used[e] for e in (dynamic[i] for i in (rows.indices, *rows.updates)))
        ]
        return cls(lists) if lists else None

    def room_for(self, shapes: Sequence[tuple[int, ...]]) -> tuple[tuple[int, ...], ...]:
        """The shapes of the inputs once they are filled up."""
        result = list(shapes)
        fit = [
            rows
            for rows in self._lists
            if all(shapes[i][0] == shapes[rows.indices][0] for i in rows.updates)
        ]
        counts = tuple([shapes[rows.indices][0] for rows in fit])
        for rows, room in zip(fit, self._rooms_for(counts), strict=True):
            for i in (rows.indices, *rows.updates):
                result[i] = (room, *shapes[i][1:])
        return tuple(result)

    def _rooms_for(self, counts: tuple[int, ...]) -> tuple[int, ...]:
        """How many rows each list has room for."""
        if len(counts) < 2 or len(counts) < len(self._lists):
            return tuple(map(rounded_up, counts))
        most = _WASTE * sum(max(count, _LEAST) for count in counts)
        for rooms in self._rooms:
            if sum(rooms) <= most and all(map(operator.le, counts, rooms)):
                return rooms
        new = tuple([rounded_up(math.ceil(_MARGIN * count)) for count in counts])
        for rooms in self._rooms:
            both = tuple(map(max, new, rooms))
            if sum(both) <= most:
                new = both
                break
        # The latest first: it has the most room.
        self._rooms = [new, *self._rooms[: _MOST_ROOMS - 1]]
        return new

    def filled(self, values: Sequence[Any], shapes: Sequence[tuple[int, ...]]) -> Sequence[Any]:
        """The inputs with the shapes that a program takes."""
        result = list(values)
        for rows in self._lists:
            for i in (rows.indices, *rows.updates):
                if values[i].shape != shapes[i]:
                    old = np.asarray(values[i])
                    new = np.empty(shapes[i], old.dtype)
                    new[: len(old)] = old
                    new[len(old) :] = rows.behind if i == rows.indices else 0
                    result[i] = new
        return result


def rounded_up(count: int) -> int:
    """The least number of rows, one of four between powers of two, that ``count`` rows fit in.

    >>> [rounded_up(n) for n in (0, 8, 9, 33, 100, 1025)]
    [8, 8, 10, 40, 112, 1280]
    """
    if count <= _LEAST:
        return _LEAST
    step = 1 << max(0, (count - 1).bit_length() - 3)
    return -(-count // step) * step


def _rows_of(node: Node, position: Mapping[Edge, int], handles: Mapping[Edge, Any]) -> _Rows | None:
    """The lists of one node, if they come in from outside."""
    at = node.op_def.traits.row_updates
    assert at is not None
    indices, updates = (node.inputs[i] for i in at)
    dims, new_dims = indices[0].dims[indices[1]], updates[0].dims[updates[1]]
    shape = maker_of(node.inputs[0][0]).attrs.get("shape")
    known = None if shape is None else shape.as_tuple
    if indices not in position or updates not in position or not known or known[0] is None:
        return None
    if dims is None or len(dims) != 1 or not new_dims or len(new_dims) != len(known):
        return None
    return _Rows(position[indices], (position[updates],), known[0])


__all__ = ["SpareRows", "rounded_up"]
