"""Where a step is to run, as far as the pipeline needs to know it."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from headrace.partition.parts import Partition
from headrace.passes.ir import Node, StepGraph
from headrace.placement.devices import DeviceAttributes
from headrace.placement.placer import place
from headrace.step.moved import NOWHERE, MovedVariables
from headrace.step.request import PlanRequest

PlanT = TypeVar("PlanT")


class Pins:
    """Where the stateful nodes of a session were placed by the first plan that had them.

    Later plans leave them there. The nodes of each function have pins of their own.
    """

    def __init__(self) -> None:
        self.nodes: dict[str, str] = {}
        self._bodies: dict[str, dict[str, str]] = {}
        self._lock = threading.Lock()

    def place(
        self,
        nodes: Sequence[Node],
        available: Sequence[DeviceAttributes],
        *,
        function: str = "",
        moved: MovedVariables = NOWHERE,
        **options: Any,
    ) -> None:
        """`placer.place` with these pins, which are added to.

        Args:
            function: the name of the one whose nodes these are, "" for those of a step.
            moved: variables that are elsewhere.
        """
        options |= {"moved": moved.of_nodes(nodes), "retired": moved.retired}
        with self._lock:  # two first plans at once must not put one variable in two places
            pinned = self._bodies.setdefault(function, {}) if function else self.nodes
            pinned.update(place(nodes, available, pinned=pinned, **options))


class Site(ABC, Generic[PlanT]):
    """A process, or a master and its cluster.

    Attributes:
        config: the session's ConfigProto, or None.
        pins: of the session.
        moved: variables that are in another task than their device says.
        precision: how floating tensors are shortened on their way between tasks, "" for not.
    """

    config: Any
    pins: Pins
    moved: MovedVariables = NOWHERE
    precision: str = ""

    @property
    def tasks(self) -> Sequence[str]:
        """All tasks of the cluster; none where there is no cluster, and nothing to split."""
        return ()

    @abstractmethod
    def devices(
        self, step: StepGraph, request: PlanRequest
    ) -> tuple[Sequence[DeviceAttributes], str]:
        """The devices that a pruned step may use, and the name of the default one.

        Raises:
            UnavailableError: if a task that the step needs does not come in time.
        """

    @abstractmethod
    def lower(
        self, partition: Partition, describe: Callable[[], str], request: PlanRequest
    ) -> PlanT:
        """A plan that runs the parts; ``describe`` gives its description.

        Raises:
            UnavailableError: if a task does not take its part in time.
        """


__all__ = ["Pins", "Site"]
