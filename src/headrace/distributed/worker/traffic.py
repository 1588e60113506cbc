"""How many bytes steps bring to the variables of a task, or take from them: measured by samples."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Any

from headrace.executor.transfers import RECV, SEND
from headrace.partition.parts import Part
from headrace.passes.ir import Node
from headrace.step.moved import variables_of

__all__ = ["PartTraffic"]

#: Of so many runs of a part the first one is measured; a power of 2.
SAMPLE = 64


class PartTraffic:
    """That of one part of a plan.

    Args:
        part: whose runs are counted.
        now: seconds, monotonic.

    Attributes:
        runs: how many have begun; threads may count one for two.
    """

    __slots__ = ("_began", "_part", "_sizes", "runs")

    def __init__(self, part: Part, now: float | None = None) -> None:
        self._part = part
        self._began = time.monotonic() if now is None else now
        #: Bytes of the tensors of each transfer, by its number, in the last run that was measured.
        self._sizes: dict[int, list[int]] = {}
        self.runs = 0

    @property
    def is_sample(self) -> bool:
        """Whether the run that began last is measured."""
        return self.runs & (SAMPLE - 1) == 1

    def saw(self, transfer: int, values: Sequence[Any]) -> None:
        """The tensors of a transfer were sent, or have come."""
        self._sizes[transfer] = [int(getattr(value, "nbytes", 0)) for value in values]

    def by_variable(self, now: float) -> dict[str, float]:
        """Bytes in a second since the part is here, by `key_of` each variable that sends or gets
        them; where it cannot be told which of some does, all have an equal share."""
        found: dict[str, float] = {}
        rate = self.runs / max(now - self._began, 1e-3)
        consumers = _consumers(self._part.nodes)
        for node in self._part.nodes:
            if node.op_def not in (SEND, RECV):
                continue
            sizes = self._sizes.get(node.attrs["transfer"].number, ())
            for index, size in enumerate(sizes):
                if node.op_def is SEND:
                    keys = _users([n for n, i in node.inputs[index : index + 1]], None)
                else:
                    keys = _users([c for c, i in consumers.get(node, ()) if i == index], consumers)
                for key in keys:
                    found[key] = found.get(key, 0.0) + rate * size / len(keys)
        return found


def _consumers(nodes: Iterable[Node]) -> dict[Node, list[tuple[Node, int]]]:
    """For each node those that take an output of it, with its index."""
    found: dict[Node, list[tuple[Node, int]]] = {}
    for node in nodes:
        for source, index in node.inputs:
            found.setdefault(source, []).append((node, index))
    return found


def _users(nodes: Sequence[Node], consumers: dict[Node, list[tuple[Node, int]]] | None) -> set[str]:
    """The variables of the first ops that use any, from some nodes on: backwards, or forwards where
    there are ``consumers``."""
    found: set[str] = set()
    seen: set[Node] = set()
    stack = list(nodes)
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        keys = variables_of(source for source, _ in node.inputs)
        found |= keys
        if not keys:
            more = node.inputs if consumers is None else consumers.get(node, ())
            stack += [other for other, _ in more]
    return found
