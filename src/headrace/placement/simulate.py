"""Choosing devices by simulating the step (2015 white paper, section 3.2.1).

Nodes run in the order in which they become ready; each goes to the feasible device where it ends
first, counting the transfer of its inputs and the work that the device has already. Two rules keep
a step in few pieces: an op that costs less than moving an input stays with its inputs, even if they
are on a busy device; and what is cheaper to make than to send (constants above all) goes where it
is used.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence

from headrace.graph import dtypes
from headrace.passes.ir import FEED, Node
from headrace.placement.constraints import Group
from headrace.placement.cost import CostModel, state_bytes
from headrace.placement.devices import DeviceAttributes

#: The devices that a group may be on; None for groups that are placed already.
Feasible = dict[Group, Sequence[DeviceAttributes]]

_RESOURCE = dtypes.resource


def simulate(
    nodes: Sequence[Node],
    group_of: Sequence[Group],
    feasible: Feasible,
    candidates: Sequence[DeviceAttributes],
    costs: CostModel,
) -> None:
    """Choose a device for every group in ``feasible``; the others have theirs.

    Args:
        nodes: the step, dependencies first; ``group_of`` gives the group of each.
        candidates: the devices of unconstrained groups, the default first.
    """
    floating = _floating(nodes, group_of, feasible, candidates, costs)
    if len(floating) < len(feasible):
        _Simulation(nodes, group_of, feasible, floating, costs).place_all()
    _settle(nodes, group_of, floating, candidates[0])


def _floating(
    nodes: Sequence[Node],
    group_of: Sequence[Group],
    feasible: Feasible,
    candidates: Sequence[DeviceAttributes],
    costs: CostModel,
) -> set[Group]:
    """Groups of one unconstrained node that depends on such nodes only, and is cheap to make."""
    found: set[Group] = set()
    floats: set[Node] = set()
    # What it costs to send, as if to the first device of another task.
    here = candidates[0]
    there = next((d for d in candidates if d.task != here.task), here)
    for node, group in zip(nodes, group_of, strict=True):
        if (
            len(group.nodes) == 1
            and feasible.get(group) is candidates
            and all(source in floats for source, _ in node.inputs)
            and all(source in floats for source in node.control)
            and not any(t is _RESOURCE for t in node.dtypes)
        ):
            size = sum([costs.output_bytes(node, i) for i in range(len(node.dtypes))])
            if costs.compute_seconds(node, here) <= costs.transfer_seconds(size, here, there):
                found.add(group)
                floats.add(node)
    return found


def _settle(
    nodes: Sequence[Node],
    group_of: Sequence[Group],
    floating: set[Group],
    default: DeviceAttributes,
) -> None:
    """Put each floating node where most of its users are."""
    votes: dict[Node, dict[DeviceAttributes, int]] = {}
    for node, group in zip(reversed(nodes), reversed(group_of), strict=True):
        if group in floating:
            count = votes.get(node)
            # Of equals the user that comes first, which voted last.
            group.device = (
                max(reversed(count), key=count.__getitem__) if count is not None else default
            )
        device = group.device
        assert device is not None
        for source in dict.fromkeys([*[s for s, _ in node.inputs], *node.control]):
            count = votes.setdefault(source, {})
            count[device] = count.pop(device, 0) + 1


class _Simulation:
    """The state of one simulated run. Devices and nodes are numbers here."""

    def __init__(
        self,
        nodes: Sequence[Node],
        group_of: Sequence[Group],
        feasible: Feasible,
        floating: set[Group],
        costs: CostModel,
    ) -> None:
        self.nodes = nodes
        self.group_of = group_of
        self.floating = floating
        self.costs = costs
        self.devices: list[DeviceAttributes] = []
        self._numbers: dict[str, int] = {}
        self._processors: dict[tuple[str, str], int] = {}
        #: The processor of each device; CPU devices of one task share theirs.
        self.processor: list[int] = []
        self.choices = {g: [self._number(d) for d in ds] for g, ds in feasible.items()}
        self.fixed = {
            g: self._number(g.device)
            for g in dict.fromkeys(group_of)
            if g not in feasible and g.device is not None
        }
        #: When each processor has done what it was given.
        self.idle_at = [0.0] * len(self._processors)
        #: When each node ends, and where: -1 for nodes that are wherever they are needed.
        self.end = [0.0] * len(nodes)
        self.where = [-1] * len(nodes)
        self._transfers: dict[tuple[float, int, int], float] = {}
        self._sizes: dict[tuple[int, int], float] = {}
        position = {n: i for i, n in enumerate(nodes)}
        self.inputs = [[(position[s], k) for s, k in n.inputs] for n in nodes]
        self.control = [[position[s] for s in n.control] for n in nodes]
        self.memory = _Memory(self) if any(d.memory_limit_bytes for d in self.devices) else None

    def _number(self, device: DeviceAttributes) -> int:
        number = self._numbers.get(device.name)
        if number is None:
            number = self._numbers[device.name] = len(self.devices)
            self.devices.append(device)
            kind = "CPU" if device.device_type == "CPU" else device.name
            key = (device.task, kind)
            self.processor.append(self._processors.setdefault(key, len(self._processors)))
        return number

    def place_all(self) -> None:
        """Simulate all nodes in the order in which they become ready."""
        users: list[list[int]] = [[] for _ in self.nodes]
        pending = [0] * len(self.nodes)
        for i in range(len(self.nodes)):
            sources = {j for j, _ in self.inputs[i]}
            sources.update(self.control[i])
            pending[i] = len(sources)
            for j in sources:
                users[j].append(i)
        # By the time at which they become ready, of equals in the order of the step.
        ready = [(0.0, i) for i, count in enumerate(pending) if count == 0]
        ready_at = [0.0] * len(self.nodes)
        end = self.end
        while ready:
            _, i = heapq.heappop(ready)
            if self.group_of[i] not in self.floating:
                self._place(i)
            for user in users[i]:
                ready_at[user] = max(ready_at[user], end[i])
                pending[user] -= 1
                if pending[user] == 0:
                    heapq.heappush(ready, (ready_at[user], user))
            if self.memory is not None:
                self.memory.consumed(i)

    def _place(self, i: int) -> None:
        """Choose the device of a node and let it run there."""
        group = self.group_of[i]
        node = self.nodes[i]
        device = self.fixed.get(group)
        if device is None:
            choices: Sequence[int] = self.choices[group]
            if self.memory is not None:
                choices = self.memory.with_room(choices, i)
            arrivals = [self._arrival(i, d) for d in choices]
            device, arrival = self._best(i, choices, arrivals)
            self.fixed[group] = device
            group.device = self.devices[device]
        else:
            arrival = self._arrival(i, device)
        processor = self.processor[device]
        if node.op_def is not FEED:
            start = max(arrival, self.idle_at[processor])
            took = self.costs.compute_seconds(node, self.devices[device])
            self.end[i] = self.idle_at[processor] = start + took
        self.where[i] = device
        if self.memory is not None:
            self.memory.made(i, device)

    def _best(self, i: int, choices: Sequence[int], arrivals: Sequence[float]) -> tuple[int, float]:
        """The device that ends the node first, of those that are worth moving the inputs to."""
        node, devices, compute = self.nodes[i], self.devices, self.costs.compute_seconds
        earliest = min(arrivals)
        home = arrivals.index(earliest)
        # Of equals the device that has most of the inputs.
        if arrivals.count(earliest) > 1:
            local = self._bytes_by_device(i)
            equal = [k for k, a in enumerate(arrivals) if a == earliest]
            home = max(equal, key=lambda k: local.get(choices[k], 0.0))
        at_home = compute(node, devices[choices[home]])
        best = home
        best_end = max(earliest, self.idle_at[self.processor[choices[home]]]) + at_home
        for k, device in enumerate(choices):
            # Not where moving the inputs takes longer than the work itself.
            if k == home or at_home <= arrivals[k] - earliest:
                continue
            if arrivals[k] == earliest and self._is_light(i, choices[home], device, at_home):
                continue
            ends = max(arrivals[k], self.idle_at[self.processor[device]])
            ends += compute(node, devices[device])
            if ends < best_end:
                best, best_end = k, ends
        return choices[best], arrivals[best]

    def _is_light(self, i: int, home: int, device: int, seconds: float) -> bool:
        """Whether a node with inputs at hand in both places costs less than sending its output."""
        size = sum([self._size(i, k) for k in range(len(self.nodes[i].dtypes))])
        return seconds <= self._transfer(size, home, device)

    def _bytes_by_device(self, i: int) -> dict[int, float]:
        """How much of a node's input each device has; a mere signal weighs one byte."""
        found: dict[int, float] = {}
        for j, index in self.inputs[i]:
            found[self.where[j]] = found.get(self.where[j], 0.0) + self._size(j, index) + 1
        for j in self.control[i]:
            found[self.where[j]] = found.get(self.where[j], 0.0) + 1
        return found

    def _arrival(self, i: int, device: int) -> float:
        """When all that the node waits for is on the device."""
        latest = 0.0
        end, where = self.end, self.where
        for j, index in self.inputs[i]:
            at = end[j]
            if where[j] != device and where[j] >= 0:
                at += self._transfer(self._size(j, index), where[j], device)
            if at > latest:
                latest = at
        for j in self.control[i]:
            at = end[j]
            if where[j] != device and where[j] >= 0:
                at += self._transfer(0.0, where[j], device)
            if at > latest:
                latest = at
        return latest

    def _size(self, i: int, index: int) -> float:
        size = self._sizes.get((i, index))
        if size is None:
            size = self._sizes[i, index] = self.costs.output_bytes(self.nodes[i], index)
        return size

    def _transfer(self, size: float, source: int, destination: int) -> float:
        key = (size, source, destination)
        seconds = self._transfers.get(key)
        if seconds is None:
            there = self.devices[destination]
            seconds = self.costs.transfer_seconds(size, self.devices[source], there)
            self._transfers[key] = seconds
        return seconds

    def bytes_made(self, i: int) -> float:
        """The size of all outputs of a node."""
        return sum([self._size(i, k) for k in range(len(self.nodes[i].dtypes))])


class _Memory:
    """What the devices that state a limit hold: state for good, values until their last use."""

    def __init__(self, simulation: _Simulation) -> None:
        self._size: Callable[[int], float] = simulation.bytes_made
        self._inputs = simulation.inputs
        self._where = simulation.where
        self._limits = [d.memory_limit_bytes for d in simulation.devices]
        self._used = [0.0] * len(self._limits)
        self._uses = [0] * len(simulation.nodes)
        for sources in simulation.inputs:
            for j in {j for j, _ in sources}:
                self._uses[j] += 1
        for i, node in enumerate(simulation.nodes):
            group = simulation.group_of[i]
            if node.op_def.makes_handle and group in simulation.fixed:
                self._used[simulation.fixed[group]] += state_bytes(simulation.nodes[i])

    def _room(self, device: int) -> float:
        limit = self._limits[device]
        return limit - self._used[device] if limit else float("inf")

    def with_room(self, choices: Sequence[int], i: int) -> Sequence[int]:
        """The choices that can hold the node's outputs, else the one with most room."""
        size = self._size(i)
        fitting = [d for d in choices if self._room(d) >= size]
        return fitting or [max(choices, key=self._room)]

    def made(self, i: int, device: int) -> None:
        """The outputs of a node are on a device now."""
        self._used[device] += self._size(i)

    def consumed(self, i: int) -> None:
        """A node has run: of its inputs, those it was the last to use are free."""
        for j in {j for j, _ in self._inputs[i]}:
            self._uses[j] -= 1
            if self._uses[j] == 0 and self._where[j] >= 0:
                self._used[self._where[j]] -= self._size(j)
