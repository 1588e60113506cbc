"""The cluster as the pipeline sees it: which tasks a step needs, and who takes its parts."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

from headrace.distributed.wire.compress import precision_of
from headrace.graph import devices as names
from headrace.partition.functions import constraints_of
from headrace.partition.parts import Partition
from headrace.passes.ir import StepGraph
from headrace.placement.devices import DeviceAttributes, default_device
from headrace.placement.placer import instead_of
from headrace.step.moved import MovedVariables
from headrace.step.request import PlanRequest
from headrace.step.site import Pins, PlanT, Site

#: The devices of tasks, by their names; waits for those that are not there for so many seconds,
#: None for as long as the session does.
DevicesOf = Callable[[list[str], float | None], list[DeviceAttributes]]
#: ``register(partition, describe, request)`` hands each task its part.
Register = Callable[[Partition, Callable[[], str], PlanRequest], PlanT]


class ClusterSite(Site[PlanT]):
    """What a session of a master may use.

    Args:
        own: the task of the master.
        tasks: gives those that the session may use now.
        config: the session's ConfigProto.
        moved: variables that are elsewhere, as the master knows it.
    """

    def __init__(
        self,
        own: str,
        tasks: Callable[[], Sequence[str]],
        config: Any,
        devices_of: DevicesOf,
        register: Register[PlanT],
        moved: MovedVariables,
    ) -> None:
        self.config = config
        self.pins = Pins()
        self.moved = moved
        self._visible = tasks
        self.precision = precision_of({}, config)
        self._own = own
        self._devices_of = devices_of
        self._register = register

    def with_moved(self, moved: MovedVariables) -> ClusterSite[PlanT]:
        """The same with variables elsewhere."""
        made = copy.copy(self)
        made.moved = moved
        return made

    @property
    def tasks(self) -> Sequence[str]:
        return self._visible()

    def devices(
        self, step: StepGraph, request: PlanRequest
    ) -> tuple[Sequence[DeviceAttributes], str]:
        available = self._devices_of(self._tasks_for(step), request.timeout)
        own = [d for d in available if d.task == self._own]
        return available, default_device(own).name

    def lower(
        self, partition: Partition, describe: Callable[[], str], request: PlanRequest
    ) -> PlanT:
        return self._register(partition, describe, request)

    def _tasks_for(self, step: StepGraph) -> list[str]:
        """The tasks whose devices a step needs: the own one and those that constraints name."""
        needed = {self._own: None}
        tasks = self.tasks
        where, retired = self.moved.of_nodes(step.nodes), self.moved.retired
        pins = self.pins.nodes
        pinned = {pins[n.name] for n in step.nodes if n.name in pins and n.name not in where}
        asked = constraints_of(step) | pinned
        if retired:
            asked = {instead_of(device, retired) for device in asked}
        for constraint in sorted(asked | set(where.values())):
            spec = names.DeviceSpec.from_string(constraint)
            if spec.job is None and spec.task is None and spec.replica is None:
                continue
            wanted = names.DeviceSpec(spec.job, spec.replica, spec.task).to_string()
            fitting = [t for t in tasks if names.matches(wanted, t)]
            if fitting and not any(t in needed for t in fitting):
                needed[fitting[0]] = None
        return list(needed)
