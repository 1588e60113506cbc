"""Parts of a step: what each task runs, and what crosses between tasks.

Each value that a task needs from another becomes one Send and one Recv per (tensor, destination
task), however many nodes there use it (white paper 2015, section 3.2.2). Small values that one unit
makes for one task share a Send. Constants and resource handles are not sent but copied into the
part that needs them; fed values come with the message that starts the step.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from headrace.errors import InvalidArgumentError
from headrace.executor.resources import ResourceHandle
from headrace.executor.stages import WHOLE, PartTables, Staging, known_values
from headrace.executor.transfers import RECV, SEND
from headrace.executor.wakers import rank, waits_apart
from headrace.graph import dtypes, wire_precision
from headrace.graph.dtypes import DType
from headrace.graph.shapes import static_bytes
from headrace.graph.tensor import Dims
from headrace.passes.ir import FEED, Edge, Node, StepGraph, order

#: A tensor of more bytes has a transfer of its own, and what waits for so much is a unit of its
#: own: computing begins when its data is there, while other data is on its way.
LARGE_BYTES = 1 << 18

_NO_BODIES: Mapping[Node, Any] = MappingProxyType({})


@dataclass(frozen=True)
class Moved:
    """One tensor of a transfer.

    Attributes:
        source, destination: devices; ``precision``: how it may be shortened on the way ("" not).
    """

    name: str
    dtype: DType
    dims: Dims
    source: str
    destination: str
    precision: str = ""

    @property
    def bytes(self) -> int | None:
        """The size, None where the graph does not tell it."""
        return static_bytes(self.dtype, self.dims)


@dataclass(eq=False)
class Transfer:
    """What one unit of a task hands to another task at one time; pure order when it is empty.

    With the step's number it is the rendezvous key.
    """

    number: int
    source: str
    destination: str
    tensors: list[Moved] = field(default_factory=list)


@dataclass(eq=False)
class Part:
    """What one task runs of a step.

    Attributes:
        feeds: (position among the step's feeds, node).
        fetches: (position among the step's fetches, edge).
    """

    task: str
    nodes: list[Node]
    feeds: list[tuple[int, Node]]
    fetches: list[tuple[int, Edge]]
    sends: list[Transfer]
    recvs: list[Transfer]
    tables: PartTables

    def step(self) -> StepGraph:
        """The part as a step graph of its own."""
        return StepGraph(self.nodes, [n for _, n in self.feeds], [e for _, e in self.fetches], [])


@dataclass(eq=False)
class Partition:
    """A step cut into parts.

    Attributes:
        fed: (fetch, feed) positions of fetches that are fed themselves.
        constants: (fetch position, value) of fetches that the graph itself tells.
        feeds, fetches: how many the step has.
    """

    parts: dict[str, Part]
    fed: list[tuple[int, int]]
    constants: list[tuple[int, Any]]
    feeds: int
    fetches: int


def task_of(device: str) -> str:
    """The task part of a full device name."""
    return device.rpartition("/device:")[0]


def whole(step: StepGraph, task: str) -> Partition:
    """A step of one task as a partition of one part, which is the step as it is."""
    feeds, fetches = list(enumerate(step.feeds)), list(enumerate(step.fetches))
    part = Part(task, step.nodes, feeds, fetches, [], [], WHOLE)
    return Partition({task: part}, [], [], len(feeds), len(fetches))


def cut_at_tasks(
    step: StepGraph, default_precision: str = "", bodies: Mapping[Node, Any] = _NO_BODIES
) -> Partition:
    """Cut a placed step at the borders of tasks. Nodes that use what other tasks make are rewired.

    Args:
        step: every node has the full name of a device.
        default_precision: for tensors whose op says nothing about it.
        bodies: those that need several tasks, see `functions.cut_bodies`.
    """
    _drop_idle_ends(step)
    return _TaskCut(step, default_precision, bodies).cut()


def _is_idle(node: Node) -> bool:
    """Whether a node only hands on: run for nobody, it does nothing."""
    return not node.op_def.traits.computes and not node.op_def.effects.writes


def _drop_idle_ends(step: StepGraph) -> None:
    """Drop idle nodes that nobody waits for: a step ends when every part has, in whatever order."""
    # Backwards, since what only idle nodes wait for becomes idle in turn.
    users: dict[Node, int] = {}
    for node in step.nodes:
        for source in _sources(node):
            users[source] = users.get(source, 0) + 1
    kept = {n for n, _ in step.fetches}
    dropped: set[Node] = set()
    for node in reversed(step.nodes):
        if _is_idle(node) and not users.get(node) and node not in kept:
            for source in _sources(node):
                users[source] -= 1
            dropped.add(node)
    step.nodes = [n for n in step.nodes if n not in dropped]
    step.targets = [n for n in step.targets if n not in dropped]


def _sources(node: Node) -> set[Node]:
    return {*[n for n, _ in node.inputs], *node.control}


class _TaskCut:
    def __init__(self, step: StepGraph, default_precision: str, bodies: Mapping[Node, Any]) -> None:
        self.step = step
        self.default_precision = default_precision
        self.known = known_values(step.nodes)
        self.bodies = bodies
        self.staging = Staging(step.nodes, self.known, set(), PartTables(bodies=bodies))
        self.stage = self.staging.stages()
        self.task = {n: task_of(n.device) for n in step.nodes}
        #: (stage, number) of each node.
        self.groups: dict[Node, tuple[int, int]] = {}
        self.transfers: dict[Any, tuple[Transfer, Node, Node]] = {}
        self.copies: dict[tuple[Node, str], Node] = {}
        self.extra: list[Node] = []

    def cut(self) -> Partition:
        # Numbers that keep nodes apart: nodes of one device with equal ones may share a region.
        components = _components(self.staging, self.stage, self.task)
        apart = waits_apart(self.staging.nodes, self.staging.is_host, self.bodies)
        segments = self.staging.segments
        keys = {
            n: (rank(apart.get(n)), apart.get(n), components.get(n, 0), segments.get(n, ""))
            for n in self.stage
        }
        distinct = sorted(set(keys.values()), key=lambda k: (k[0], k[1] or 0, *k[2:]))
        number = {key: i for i, key in enumerate(distinct)}
        for node in self.staging.nodes:
            self.groups[node] = (self.stage[node], number[keys[node]])
        # By edge and task, not by user: a value crosses once, however many nodes there take it.
        received: dict[tuple[Edge, str], Edge] = {}
        for node in list(self.step.nodes):
            if node.op_def is not FEED:
                self._rewire(node, received)
        return self._partition()

    def _rewire(self, node: Node, received: dict[tuple[Edge, str], Edge]) -> None:
        """Let ``node`` take from its own task only."""
        task = self.task[node]
        for position, edge in enumerate(node.inputs):
            source = edge[0]
            if source.op_def is FEED or self.task[source] == task:
                continue
            if edge in self.known:  # both tasks can make it: cheaper than to send it each step
                node.inputs[position] = (self._copy(source, node), edge[1])
                continue
            key = (edge, task)
            if key not in received:
                received[key] = self._receive(edge, node)
            node.inputs[position] = received[key]
        control: dict[Node, None] = {}
        for source in node.control:
            if source.op_def is FEED or self.task[source] == task:
                control[source] = None
            elif (source, 0) not in self.known:  # a constant is always there: no message for it
                control[self._await(source, node)] = None
        node.control = list(control)

    def _copy(self, source: Node, user: Node) -> Node:
        """A constant or handle of another task, for use in the task of ``user``."""
        task = self.task[user]
        while not (source.op_def.makes_handle or source.type == "Const"):
            source = source.inputs[0][0]
        made = self.copies.get((source, task))
        if made is None:
            made = Node(
                source.op_def, source.name, [], source.attrs, source.dtypes, source.dims, source.op
            )
            made.device = user.device
            self.copies[source, task] = made
            self.task[made] = task
            self.extra.append(made)
        return made

    def _receive(self, edge: Edge, user: Node) -> Edge:
        """``edge`` as it arrives in the task of ``user``."""
        source, index = edge
        dtype, dims = source.dtypes[index], source.dims[index]
        if dtype is dtypes.resource:
            raise InvalidArgumentError(
                None,
                user.op,
                f"'{user.name}' on {user.device} uses a resource of '{source.name}' on "
                f"{source.device}: what uses a resource must run on its device.",
            )
        size = static_bytes(dtype, dims)
        # Small tensors share a message; a large or unknown one goes as soon as it is there.
        own = index if size is None or size > LARGE_BYTES else None
        transfer, send, recv = self._transfer(source, self.task[user], own)
        transfer.tensors.append(
            Moved(
                f"{source.name}:{index}",
                dtype,
                dims,
                source.device,
                user.device,
                self._precision(source, dtype),
            )
        )
        send.inputs.append(edge)
        recv.dtypes = (*recv.dtypes, dtype)
        recv.dims = (*recv.dims, dims)
        return recv, len(recv.dtypes) - 1

    def _precision(self, source: Node, dtype: DType) -> str:
        if not dtype.is_floating:
            return ""
        # "" is no word about it, and then the session's default counts; "float32" is the wish not
        # to shorten, whatever the default.
        own = wire_precision.chosen(source.attrs)
        return self.default_precision if not own else own.replace("float32", "")

    def _await(self, source: Node, user: Node) -> Node:
        """What in the task of ``user`` stands for the end of ``source``."""
        _, send, recv = self._transfer(source, self.task[user], None)
        if source not in send.control:
            send.control.append(source)
        return recv

    def _transfer(self, source: Node, destination: str, own: Any) -> tuple[Transfer, Node, Node]:
        """The transfer from the unit of ``source``; ``own`` tells one of its own from others."""
        host = self.staging.is_host(source)
        unit = (source if host else source.device, self.groups[source])
        # A large tensor of a region is told apart by its node as well.
        key = (unit, destination, None if own is None else (source, own))
        found = self.transfers.get(key)
        if found is None:
            number = len(self.transfers)
            transfer = Transfer(number, self.task[source], destination)
            attrs = {"transfer": transfer}
            send = Node(SEND, f"send_{number}", [], attrs, (), (), None)
            recv = Node(RECV, f"recv_{number}", [], attrs, (), (), None)
            # What arrives is in host memory, whatever the device that it is for.
            send.device, recv.device = source.device, f"{destination}/device:CPU:0"
            self.groups[send] = self.groups[recv] = self.groups[source]
            self.task[send], self.task[recv] = transfer.source, destination
            self.extra += [send, recv]
            found = self.transfers[key] = (transfer, send, recv)
        return found

    def _partition(self) -> Partition:
        step = self.step
        members: dict[str, list[Node]] = {}
        for node in [*step.nodes, *self.extra]:
            if node.op_def is not FEED and ((node, 0) not in self.known or node in self.extra):
                members.setdefault(self.task[node], []).append(node)
        fetches: dict[str, list[tuple[int, Edge]]] = {}
        fed: list[tuple[int, int]] = []
        constants: list[tuple[int, Any]] = []
        for position, edge in enumerate(step.fetches):
            if edge[0].op_def is FEED:
                fed.append((position, step.feeds.index(edge[0])))
            elif edge in self.known and not isinstance(self.known[edge], ResourceHandle):
                constants.append((position, self.known[edge]))
            else:
                fetches.setdefault(self.task[edge[0]], []).append((position, edge))
                # A part there must be, if only to hand the value back.
                members.setdefault(self.task[edge[0]], [])
        parts = {
            task: self._part(task, nodes, fetches.get(task, []))
            for task, nodes in sorted(members.items())
        }
        return Partition(parts, fed, constants, len(step.feeds), len(step.fetches))

    def _part(self, task: str, members: list[Node], fetches: list[tuple[int, Edge]]) -> Part:
        nodes = order([*members, *[n for _, (n, _) in fetches]])
        inside = set(nodes)
        moves = [t for t, send, recv in self.transfers.values() if send in inside or recv in inside]
        return Part(
            task,
            nodes,
            [(i, f) for i, f in enumerate(self.step.feeds) if f in inside],
            fetches,
            [t for t in moves if t.source == task],
            [t for t in moves if t.destination == task],
            PartTables(
                {n: self.groups[n] for n in nodes if n in self.groups},
                {n: self.bodies[n] for n in nodes if n in self.bodies},
            ),
        )


def _components(staging: Staging, stage: dict[Node, int], task: dict[Node, str]) -> dict[Node, int]:
    """Numbers from 1 for nodes of regions that wait for much data from other tasks.

    Nodes of one region that no path connects may run apart. That pays where one part of them could
    start while the data of the other is still on its way.
    """
    incoming: dict[Node, int] = {}
    for node in staging.nodes:
        for source, index in node.inputs:
            if (
                source in task
                and task[source] != task[node]
                and (source, index) not in (staging.known)
            ):
                size = static_bytes(source.dtypes[index], source.dims[index]) or 0
                incoming[node] = incoming.get(node, 0) + size
    if not any(size > LARGE_BYTES for size in incoming.values()):
        return {}
    regions: dict[Any, list[Node]] = {}
    for node in staging.nodes:
        if not staging.is_host(node):
            segment = staging.segments.get(node)
            regions.setdefault((stage[node], node.device, segment), []).append(node)
    numbers: dict[Node, int] = {}
    for members in regions.values():
        count = 0
        for component in _connected(members):
            if sum(incoming.get(n, 0) for n in component) > LARGE_BYTES:
                count += 1
                numbers.update(dict.fromkeys(component, count))
    return numbers


def _connected(members: Iterable[Node]) -> list[list[Node]]:
    """The members in groups that edges among them connect."""
    inside = {n: n for n in members}

    def root(node: Node) -> Node:
        while inside[node] is not node:
            inside[node] = inside[inside[node]]
            node = inside[node]
        return node

    for node in list(inside):
        for source in [*[n for n, _ in node.inputs], *node.control]:
            if source in inside:
                inside[root(source)] = root(node)
    groups: dict[Node, list[Node]] = {}
    for node in inside:
        groups.setdefault(root(node), []).append(node)
    return list(groups.values())


__all__ = ["Moved", "Part", "Partition", "Transfer", "cut_at_tasks", "task_of", "whole"]
