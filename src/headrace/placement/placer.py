"""Placing the nodes of a step on devices.

1. Nodes that must share a device form groups with one merged constraint (constraints.py).
2. A group with state (variables, random streams, ops that touch the world outside) stays where an
   earlier plan of the session put it. Otherwise a constraint that leaves one device open decides.
   Variables that were moved to another task take all that must share their device with them.
3. What is left is unconstrained or has a choice. State goes to the default device. Other groups
   choose among the *candidates* by a simulated run (simulate.py); so do random ops in their first
   plan, since random initial values are cheaper to make than to send.

The candidates are the default device and, in each task that some constraint of this step names (or
an earlier plan pinned some of its nodes to), the preferred device (an accelerator before the CPU)
and those of the same type that the constraints named. So beside the default task a step needs only
tasks that it names. A constraint that leaves the task open ("/job:worker") takes a candidate where
one fits, else the first task that does.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from headrace.graph import devices as names
from headrace.passes.ir import FEED, Node
from headrace.placement.constraints import (
    Group,
    is_anchored,
    make_groups,
    soften,
    unknown_device,
)
from headrace.placement.cost import CostModel, HeuristicCosts, state_bytes
from headrace.placement.devices import DeviceAttributes, DeviceSet, is_accelerator
from headrace.placement.simulate import Feasible, simulate

_log = logging.getLogger("headrace.placement")

_NOTHING: Mapping[str, str] = MappingProxyType({})


def place(
    nodes: Sequence[Node],
    available: Sequence[DeviceAttributes],
    *,
    default_device: str,
    allow_soft_placement: bool = False,
    log_device_placement: bool = False,
    cost_model: CostModel | None = None,
    pinned: Mapping[str, str] = _NOTHING,
    moved: Mapping[str, str] = _NOTHING,
    retired: Mapping[str, str] = _NOTHING,
    task_names: Sequence[str] = (),
) -> dict[str, str]:
    """Give every node the full name of one of the ``available`` devices.

    Args:
        nodes: a step, each node after those it depends on.
        available: devices of any number of tasks.
        default_device: the name of the one where unconstrained things go by default.
        pinned: the device of each stateful node that earlier plans of the session placed, by the
            node's name. They stay there.
        moved: the task where each variable is that is elsewhere than asked for or pinned, by the
            name of its op. What must share its device goes with it.
        retired: for tasks that have left those that stand for them; variables that were moved to
            such a task, since it is there again, are there.
        task_names: all tasks of the cluster, for errors; by default those of ``available``.

    Returns:
        The devices of the stateful nodes that ``pinned`` does not have, to be added to it.

    Raises:
        InvalidArgumentError: if no device satisfies a constraint and soft placement is off, or
            ops that must share a device ask for different ones.
        ValueError: if ``default_device`` is not available.
    """
    devices = DeviceSet(available, default_device, task_names)
    known = pinned
    if retired:
        pinned = {name: instead_of(device, retired) for name, device in pinned.items()}
    if moved:
        asked = {n.name: pinned.get(n.name, n.device) for n in nodes}
        pinned = {
            **pinned,
            **{n: _device_in(t, asked.get(n, ""), devices) for n, t in moved.items()},
        }
    if _is_plain(nodes, devices, pinned):
        for node in nodes:
            node.device = default_device
    else:
        costs = HeuristicCosts() if cost_model is None else cost_model
        _Placer(nodes, devices, allow_soft_placement, costs, pinned, moved, retired).place_all()
    if log_device_placement:
        for node in nodes:
            _log.warning("%s: (%s): %s", node.name, node.type, node.device)
    return {n.name: n.device for n in nodes if is_anchored(n) and n.name not in known}


def instead_of(device: str, retired: Mapping[str, str]) -> str:
    """A device, or a constraint, with another task in the place of one that is no more.

    >>> instead_of("/job:ps/task:2/device:CPU:0", {"/job:ps/replica:0/task:2": "/job:ps/task:1"})
    '/job:ps/task:1/device:CPU:0'
    """
    spec = names.DeviceSpec.from_string(device)
    if spec.job is None or spec.task is None:
        return device
    task = f"/job:{spec.job}/replica:{spec.replica or 0}/task:{spec.task}"
    new = retired.get(task)
    return device if new is None else names.merge(new, _within(spec))


def _within(spec: names.DeviceSpec) -> str:
    return names.DeviceSpec(
        device_type=spec.device_type, device_index=spec.device_index
    ).to_string()


def _device_in(task: str, asked: str, devices: DeviceSet) -> str:
    """The device of a task that is most like the one that was asked for in another task."""
    own = devices.tasks.get(task, ())
    if not own:
        return task  # nothing fits: the error names it
    like = _within(names.DeviceSpec.from_string(asked))
    fitting = [d for d in own if names.matches(like, d.name)] if like else []
    return (fitting or [devices.preferred(own, host=False)])[0].name


def _is_plain(nodes: Sequence[Node], devices: DeviceSet, pinned: Mapping[str, str]) -> bool:
    """Whether nothing asks for any device but the default one."""
    default = devices.default
    # With an accelerator, or a limit, there is something to choose although nobody asks.
    if devices.default_host is not default or default.memory_limit_bytes:
        return False
    if any(n.device or n.colocation for n in nodes):
        return False
    return not pinned or all(
        pinned.get(n.name, default.name) == default.name for n in nodes if is_anchored(n)
    )


class _Placer:
    """Decides the device of each group of one step."""

    def __init__(
        self,
        nodes: Sequence[Node],
        devices: DeviceSet,
        soft: bool,
        costs: CostModel,
        pinned: Mapping[str, str],
        moved: Mapping[str, str],
        retired: Mapping[str, str],
    ) -> None:
        self.nodes = nodes
        self.devices = devices
        self.soft = soft
        self.costs = costs
        self.groups, self.group_of = make_groups(nodes, pinned, soft, moved)
        if retired:
            for group in self.groups:
                group.wanted = instead_of(group.wanted, retired)
        #: Bytes of state that this step puts on each device.
        self.state: dict[DeviceAttributes, float] = {}

    def place_all(self) -> None:
        # Groups without a choice come first: the tasks that they name are the candidates of others.
        open_groups = [g for g in self.groups if not self._decide_early(g)]
        candidates = self._candidates([d for d in (g.device for g in self.groups) if d])
        hosts = self._hosts(candidates)
        feasible: Feasible = {}
        for group in open_groups:
            choices = self._choices(group, hosts if group.is_host else candidates)
            # Who has no choice is placed first: the simulation starts from where the others are.
            if len(choices) == 1:
                self._decide(group, choices[0])
            else:
                feasible[group] = choices
        if feasible:
            simulate(self.nodes, self.group_of, feasible, candidates, self.costs)
        for node, group in zip(self.nodes, self.group_of, strict=True):
            assert group.device is not None
            node.device = group.device.name

    def _decide(self, group: Group, device: DeviceAttributes) -> None:
        group.device = device
        size = sum([state_bytes(n) for n in group.nodes])
        if size:
            self.state[device] = self.state.get(device, 0.0) + size

    def _decide_early(self, group: Group) -> bool:
        """Place a group that has no choice, before the candidates are known; tells whether it did.

        Raises:
            InvalidArgumentError: if no device satisfies its constraint.
        """
        devices = self.devices
        if group.pinned:
            device = devices.by_name.get(group.pinned)
            if device is None:
                group.wanted = group.pinned
                raise unknown_device(group, devices)
        elif group.wanted:
            fitting = devices.fitting(group.wanted)
            if not fitting:
                if not self.soft:
                    raise unknown_device(group, devices)
                device = soften(group.wanted, devices, group.is_host)
            elif len(fitting) == 1:
                device = fitting[0]
            elif all(d.task == fitting[0].task for d in fitting):
                device = devices.preferred(fitting, group.is_host)
            else:
                return False
        elif group.nodes[0].op_def is FEED:
            device = devices.default
        else:
            return False
        self._decide(group, device)
        return True

    def _candidates(self, named: Sequence[DeviceAttributes]) -> list[DeviceAttributes]:
        """The devices of groups that ask for nothing: the default, then those of named tasks."""
        devices = self.devices
        found = [devices.default]
        used = dict.fromkeys(named)
        tasks = dict.fromkeys(d.task for d in used)
        for task, own in devices.tasks.items():
            if task in tasks:
                best = devices.preferred(own, host=False)
                same = [d for d in own if d.device_type == best.device_type and d in used]
                found += [best, *same]
        return list(dict.fromkeys(found))

    def _hosts(self, candidates: Sequence[DeviceAttributes]) -> list[DeviceAttributes]:
        """The candidates of groups that need no accelerator."""
        devices = self.devices
        if not any(is_accelerator(d) for d in candidates):
            return list(candidates)
        hosts = [devices.default_host]
        for device in candidates:
            own = devices.tasks[device.task]
            hosts.append(devices.preferred(own, host=True) if is_accelerator(device) else device)
        return list(dict.fromkeys(hosts))

    def _choices(
        self, group: Group, candidates: Sequence[DeviceAttributes]
    ) -> Sequence[DeviceAttributes]:
        """The devices that a group may be on; one for groups with state."""
        fitting: Sequence[DeviceAttributes] = candidates
        if group.wanted:
            fitting = [d for d in candidates if names.matches(group.wanted, d.name)]
            if not fitting:
                found = self.devices.fitting(group.wanted)
                # The own task if it has such a device: nothing crosses the network then.
                own = [d for d in found if d.task == self.devices.default.task]
                task = (own or found)[0].task
                same = [d for d in found if d.task == task]
                return [self.devices.preferred(same, group.is_host)]
        if group.stays_home:
            return [self._with_room(group, fitting[0])]
        return fitting

    def _with_room(self, group: Group, device: DeviceAttributes) -> DeviceAttributes:
        """``device``, or the CPU of its task where the group's state is too large for it."""
        size = sum([state_bytes(n) for n in group.nodes])
        limit = device.memory_limit_bytes
        if not limit or self.state.get(device, 0.0) + size <= limit:
            return device
        others = [
            d
            for d in self.devices.tasks[device.task]
            if d.device_type == "CPU" and names.matches(group.wanted, d.name)
        ]
        return others[0] if others else device
