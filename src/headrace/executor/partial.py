"""Partial runs: one step whose feeds arrive, and whose fetches leave, over several calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace.errors import InvalidArgumentError
from headrace.executor.claims import held
from headrace.executor.evaluate import Values
from headrace.executor.interpreting import Interpreting
from headrace.executor.interrupts import Watch
from headrace.executor.resources import ResourceStore
from headrace.executor.touched import touched_by
from headrace.passes.ir import FEED, StepGraph, order


class PartialRun:
    """The state between calls: which nodes have run, and their values. Each op runs once."""

    def __init__(self, step: StepGraph, store: ResourceStore, evaluation: Interpreting) -> None:
        self.step = step
        self.store = store
        self.evaluation = evaluation
        self.values: Values = {}
        self._fetched: set[int] = set()

    def feed(self, position: int, value: Any) -> None:
        """Give the value of one feed.

        Raises:
            InvalidArgumentError: if it was given before.
        """
        node = self.step.feeds[position]
        if node in self.values:
            raise InvalidArgumentError(
                None, node.op, f"The feed {node.name} has already been fed in this partial run."
            )
        self.values[node] = (value,)

    def fetch(self, positions: Sequence[int], targets: Sequence[int]) -> list[Any]:
        """Run what the given fetches and targets need and has not run yet.

        Raises:
            InvalidArgumentError: if a fetch was taken before, or needs a feed not given yet.
        """
        edges = [self.step.fetches[p] for p in positions]
        roots = [n for n, _ in edges] + [self.step.targets[t] for t in targets]
        for position, (node, index) in zip(positions, edges, strict=True):
            if position in self._fetched:
                raise InvalidArgumentError(
                    None, node.op, f"{node.name}:{index} was already fetched in this partial run."
                )
        nodes = order(roots)
        for node in nodes:
            if node.op_def is FEED and node not in self.values:
                raise InvalidArgumentError(
                    None, node.op, f"Must feed {node.name} before fetching what depends on it."
                )
        touched = touched_by(nodes)
        check = Watch(self.store, None).check
        with held(self.store, touched, touched, check), np.errstate(all="ignore"):
            self.evaluation.evaluate_all(nodes, self.values)
        self._fetched.update(positions)
        return [self.values[n][i] for n, i in edges]
