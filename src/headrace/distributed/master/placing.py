"""Where the nodes of a session's steps go: what was placed before binds what comes after."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from headrace.distributed.wire.compress import precision_of
from headrace.graph import devices as names
from headrace.partition.functions import constraints_of, cut_bodies
from headrace.partition.parts import Partition, split
from headrace.partition.reads import read_before_loops
from headrace.passes.ir import Node, StepGraph
from headrace.passes.pipeline import is_wanted, optimize
from headrace.placement.devices import DeviceAttributes, default_device
from headrace.placement.placer import place


class StepPlacer:
    """Places the steps of a session and cuts them into parts.

    Args:
        own: the task of the master.
        tasks: those that the session may use.
        config: the session's ConfigProto.
    """

    def __init__(self, own: str, tasks: Sequence[str], config: Any) -> None:
        self._own = own
        self._tasks = tasks
        self._config = config
        #: Where each stateful node was placed by the first plan that had it.
        self._placed: dict[str, str] = {}
        #: The same for the nodes of each function.
        self._placed_bodies: dict[str, dict[str, str]] = {}
        #: Held while a step is placed.
        self._lock = threading.Lock()

    def tasks_for(self, step: StepGraph) -> list[str]:
        """The tasks whose devices a step needs: the own one and those that constraints name."""
        needed = {self._own: None}
        pinned = {self._placed[n.name] for n in step.nodes if n.name in self._placed}
        for constraint in sorted(constraints_of(step) | pinned):
            spec = names.DeviceSpec.from_string(constraint)
            if spec.job is None and spec.task is None and spec.replica is None:
                continue
            wanted = names.DeviceSpec(spec.job, spec.replica, spec.task).to_string()
            fitting = [t for t in self._tasks if names.matches(wanted, t)]
            if fitting and not any(t in needed for t in fitting):
                needed[fitting[0]] = None
        return list(needed)

    def cut(self, step: StepGraph, available: list[DeviceAttributes]) -> Partition:
        """Place a step, optimise it, and cut it and the bodies in it into parts.

        Raises:
            OpError: if the step cannot be placed on what is ``available``.
        """
        own = [d for d in available if d.task == self._own]

        def place_body(nodes: Sequence[Node], device: str, function: str) -> None:
            pinned = self._placed_bodies.setdefault(function, {})
            self._place(nodes, available, device, pinned)

        with self._lock:
            self._place(step.nodes, available, default_device(own).name, self._placed)
            read_before_loops(step)
            if is_wanted(self._config):
                optimize(step)
            precision = precision_of({}, self._config)
            cut_bodies(step, place_body, precision)
            return split(step, precision)

    def _place(
        self,
        nodes: Sequence[Node],
        available: list[DeviceAttributes],
        device: str,
        pinned: dict[str, str],
    ) -> None:
        """Give nodes their devices, by default ``device``; adds to what is ``pinned``."""
        made = place(
            nodes,
            available,
            default_device=device,
            allow_soft_placement=self._config.allow_soft_placement,
            log_device_placement=self._config.log_device_placement,
            pinned=pinned,
            task_names=list(self._tasks),
        )
        pinned.update(made)
