"""Which devices the nodes of a step may run on: groups, merged constraints, and their errors.

Nodes that must share a device form a group (union-find, as in the 2015 white paper, section 4.3):
nodes colocated with one another, and nodes that use a resource with the one that makes it. An op
with function bodies may use resources of several devices; where all are of one task it joins the
groups whose constraints agree with its own, else none: its bodies are cut (partition.functions).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from headrace.errors import InvalidArgumentError, suggest
from headrace.graph import devices as names
from headrace.graph import dtypes
from headrace.passes.ir import FEED, Node
from headrace.placement.devices import DeviceAttributes, DeviceSet

#: So many device names are listed in an error.
_LISTED = 8
_SOFT_HINT = (
    "Make sure the device specification refers to a valid device, or let it run elsewhere with "
    "tf.ConfigProto(allow_soft_placement=True)."
)


class Group:
    """Nodes that share a device.

    Attributes:
        nodes: in the order of the step.
        wanted: their merged constraint, "" when they ask for nothing.
        pinned: the device that an earlier plan chose, "" when none did.
        device: the choice.
    """

    __slots__ = ("device", "nodes", "pinned", "wanted")

    def __init__(self, wanted: str, pinned: str) -> None:
        self.nodes: list[Node] = []
        self.wanted = wanted
        self.pinned = pinned
        self.device: DeviceAttributes | None = None

    @property
    def is_host(self) -> bool:
        """Whether none of its nodes has any use for an accelerator."""
        return all(n.op_def.host is not None for n in self.nodes)

    @property
    def stays_home(self) -> bool:
        """Whether it belongs on the default device when it asks for nothing.

        Random ops do not: until their first plan has pinned them, they may be anywhere.
        """
        return any(is_anchored(n) and not n.op_def.effects.random for n in self.nodes)


def is_anchored(node: Node) -> bool:
    """Whether a node must stay where it ran first: it owns state or touches the world outside."""
    effects = node.op_def.effects
    return bool(node.op_def.makes_handle or effects.random or effects.external or effects.blocks)


class _Members:
    """Union-find over the nodes of a step and the absent ops they are colocated with.

    Members are numbers: nodes by position, then absent ops. Each root knows the merged constraint
    and the pinned device of its set, and which members gave them.
    """

    def __init__(
        self,
        nodes: Sequence[Node],
        pinned: Mapping[str, str],
        soft: bool,
        moved: Collection[str] = (),
    ) -> None:
        self.nodes = nodes
        self.pinned_names = pinned
        self.soft = soft
        self.parent = list(range(len(nodes)))
        self.wanted = [n.device if n.op_def is not FEED else "" for n in nodes]
        self.pinned = [""] * len(nodes)
        if pinned:
            self.pinned = [pinned.get(n.name, "") if is_anchored(n) else "" for n in nodes]
        #: The members of each set with more than one, by root.
        self.sets: dict[int, list[int]] = {}
        self.moved_names = moved
        #: By root, whether a variable that was moved is in the set, and what holds state that was
        #: not.
        self.moved = [n.name in moved for n in nodes] if moved else [False] * len(nodes)
        self.stays = self._staying() if moved else self.moved.copy()
        #: What stands behind the numbers of absent ops.
        self.absent: list[Any] = []
        for i, device in enumerate(self.pinned):
            if device:
                self.wanted[i] = ""  # what it asked for was settled when it was pinned

    def _staying(self) -> list[bool]:
        made = [bool(n.op_def.makes_handle) for n in self.nodes]
        return [m and not moved for m, moved in zip(made, self.moved, strict=True)]

    def find(self, i: int) -> int:
        parent = self.parent
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    def add_absent(self, name: str, user: Node) -> int:
        """A member for an op outside the step; its device counts all the same."""
        op = user.op.graph._by_name.get(name) if user.op is not None else None
        self.parent.append(len(self.parent))
        self.pinned.append(self.pinned_names.get(name, ""))
        self.wanted.append("" if op is None or self.pinned[-1] else op.device)
        self.moved.append(name in self.moved_names)
        self.stays.append(False)
        self.absent.append(op)
        return len(self.parent) - 1

    def give_way(self, user: int, maker: int) -> None:
        """Drop what the user of a resource asks for, if the resource is elsewhere.

        As in TensorFlow: programs fill a server's queue from within a worker's device scope. Of
        resources that one op uses, none gives way to the others.
        """
        alone = self.find(user) == user and user not in self.sets
        if not alone or self.pinned[user]:
            return
        root = self.find(maker)
        place, wanted = self.pinned[root], self.wanted[user]
        if not _allows(wanted, place) if place else not _fit(wanted, self.wanted[root]):
            self.wanted[user] = ""

    def parts(self, a: int, b: int) -> bool:
        """Whether a variable that was moved is in one of two sets, and in the other none."""
        return self.moved[self.find(a)] != self.moved[self.find(b)]

    def join(self, a: int, b: int, must: bool = True, may_part: bool = False) -> None:
        """Make two sets one. Sets that disagree are an error, or stay apart unless they ``must``.

        Args:
            may_part: whether sets pinned to different devices stay apart.

        Raises:
            InvalidArgumentError: if they must and no device can satisfy both.
        """
        # The earlier one leads, whichever way round they are given.
        first, second = sorted((self.find(a), self.find(b)))
        if first == second:
            return
        if must and self.moved[first] != self.moved[second] and not self._take_along(first, second):
            if may_part:
                return
            raise self._conflict(first, second)
        pinned = self.pinned[first] or self.pinned[second]
        one, two = self.wanted[first], self.wanted[second]
        parted = self.pinned[second] not in ("", pinned)
        agree = (
            not parted
            and _fit(one, two)
            and (not pinned or (_allows(one, pinned) and _allows(two, pinned)))
        )
        if not agree:
            if not must or (parted and may_part):
                return
            if parted or not self.soft:
                raise self._conflict(first, second)
        # What the first asked for wins under soft placement; else they agree.
        self.wanted[first] = names.merge(two, one) if one and two else one or two
        self.pinned[first] = pinned
        self.moved[first] |= self.moved[second]
        self.stays[first] |= self.stays[second]
        self.parent[second] = first
        members = self.sets.setdefault(first, [first])
        members += self.sets.pop(second, [second])

    def _take_along(self, first: int, second: int) -> bool:
        """Let the set of a moved variable decide for another one; not if state stays in that."""
        other = second if self.moved[first] else first
        if self.stays[other]:
            return False
        self.wanted[other] = self.pinned[other] = ""
        return True

    def tasks(self, positions: Sequence[int]) -> set[tuple[Any, ...]]:
        """The tasks that members were pinned to or ask for; those that ask for none have none."""
        found = set()
        for root in {self.find(i) for i in positions}:
            spec = names.DeviceSpec.from_string(self.pinned[root] or self.wanted[root])
            if spec.job is not None or spec.task is not None:
                found.add((spec.job, spec.replica or 0, spec.task))
        return found

    def _conflict(self, first: int, second: int) -> InvalidArgumentError:
        """The error for two sets, naming one member of each that cannot share a device."""
        left = self.sets.get(first, [first])
        right = self.sets.get(second, [second])
        a, b = next(
            (
                (a, b)
                for a in left
                for b in right
                if self._demand(a)
                and self._demand(b)
                and not names.is_compatible(self._demand(a), self._demand(b))
            ),
            (first, second),
        )
        op = self._op(b) or self._op(a)
        return InvalidArgumentError(
            None,
            op,
            f"Cannot colocate nodes: {self._describe(b)}, but must share a device with "
            f"{self._describe(a)}.",
        )

    def _demand(self, i: int) -> str:
        """What one member asks for by itself."""
        if i >= len(self.nodes):
            op = self.absent[i - len(self.nodes)]
            return self.pinned_names.get(op.name) or op.device if op is not None else ""
        node = self.nodes[i]
        return (self.pinned_names.get(node.name, "") if is_anchored(node) else "") or node.device

    def _op(self, i: int) -> Any:
        return self.nodes[i].op if i < len(self.nodes) else self.absent[i - len(self.nodes)]

    def _describe(self, i: int) -> str:
        op = self._op(i)
        name = self.nodes[i].name if i < len(self.nodes) else getattr(op, "name", "")
        site = getattr(op, "site", None)
        made = "" if site is None else f' (made by File "{site.filename}", line {site.lineno})'
        verb = "was placed on" if name in self.pinned_names else "asks for"
        return f"'{name}'{made} {verb} device {self._demand(i) or 'none'}"


def _fit(one: str, other: str) -> bool:
    return not one or not other or names.is_compatible(one, other)


def _allows(wanted: str, device: str) -> bool:
    return not wanted or names.matches(wanted, device)


def make_groups(
    nodes: Sequence[Node], pinned: Mapping[str, str], soft: bool, moved: Collection[str] = ()
) -> tuple[list[Group], list[Group]]:
    """The groups of a step, and for each node the one it belongs to.

    Args:
        moved: names of variables that take their groups to where they are pinned.

    Raises:
        InvalidArgumentError: if nodes that must share a device ask for different ones, but for
            users of a resource, which go where that is. With ``soft`` the first of them wins, and
            colocated nodes that earlier plans have pinned to different devices stay apart.
    """
    members = _Members(nodes, pinned, soft, moved)
    uses = _resource_uses(nodes)
    for i, source in uses:
        if nodes[i].op_def.lower is None:
            members.give_way(i, source)
            members.join(source, i)
    _join_colocated(nodes, members, soft)
    _join_loops(nodes, uses, members)
    groups: dict[int, Group] = {}
    group_of = []
    for i, node in enumerate(nodes):
        root = members.find(i)
        group = groups.get(root)
        if group is None:
            group = groups[root] = Group(members.wanted[root], members.pinned[root])
        group.nodes.append(node)
        group_of.append(group)
    return list(groups.values()), group_of


def _join_colocated(nodes: Sequence[Node], members: _Members, soft: bool) -> None:
    """Nodes go with those that they name."""
    if not any(n.colocation for n in nodes):
        return
    by_name = {n.name: i for i, n in enumerate(nodes) if n.op_def is not FEED}
    for i, node in enumerate(nodes):
        # A fed value has no need of the op it stands for.
        for name in node.colocation if node.op_def is not FEED else ():
            other = by_name.get(name)
            if other is None:
                other = by_name[name] = members.add_absent(name, node)
            # What was moved leaves other state behind that only asks for its company.
            members.join(other, i, may_part=soft or members.parts(other, i))


def _join_loops(nodes: Sequence[Node], uses: Sequence[tuple[int, int]], members: _Members) -> None:
    """Loops and branches go with the state that they use, if it is all in one task."""
    bodies: dict[int, list[int]] = {}
    for i, source in uses:
        if nodes[i].op_def.lower is not None:
            bodies.setdefault(i, []).append(source)
    for i, sources in bodies.items():
        if len(members.tasks(sources)) <= 1:
            for source in sources:
                members.join(i, source, must=False)


def _resource_uses(nodes: Sequence[Node]) -> list[tuple[int, int]]:
    """(user, maker) of each resource input, as positions."""
    resource = dtypes.resource
    found = [
        (i, source)
        for i, node in enumerate(nodes)
        for source, index in node.inputs
        if source.dtypes[index] is resource
    ]
    if not found:
        return []
    position = {n: i for i, n in enumerate(nodes)}
    return [(i, position[source]) for i, source in found]


def soften(wanted: str, devices: DeviceSet, host: bool) -> DeviceAttributes:
    """The stand-in for a device that does not exist.

    The first of these that does: a CPU of the task, any device of the task, a CPU of the job, the
    default task's CPU.
    """
    spec = names.DeviceSpec.from_string(wanted)
    for part in (
        spec.replace(device_type="CPU", device_index=None),
        spec.replace(device_type=None, device_index=None),
        names.DeviceSpec(job=spec.job, device_type="CPU"),
    ):
        found = devices.fitting(part.to_string()) if part.to_string() else []
        if found:
            own = [d for d in found if d.task == devices.default.task]
            chosen = own or found
            return devices.preferred([d for d in chosen if d.task == chosen[0].task], host)
    return devices.preferred(devices.tasks[devices.default.task], host=True)


def unknown_device(group: Group, devices: DeviceSet) -> InvalidArgumentError:
    """The error for a group whose constraint no device satisfies."""
    node = next((n for n in group.nodes if n.device), group.nodes[0])
    wanted = group.wanted
    known = [d.name for d in devices.all]
    listed = ", ".join(_nearest(wanted, known))
    if len(known) > _LISTED:
        listed += f", ... ({len(known)} in all)"
    merged = ""
    if node.device and node.device != wanted:
        merged = " (merged from the constraints of the ops it must share a device with)"
    return InvalidArgumentError(
        None,
        node.op,
        f"Cannot assign a device for operation '{node.name}': Operation was explicitly assigned to "
        f"{wanted}{merged} but available devices are [ {listed} ].{_suggestion(wanted, devices)} "
        + _SOFT_HINT,
    )


_PARTS = re.compile(r"/([A-Za-z]+):([^/]*)")


def _score(wanted: dict[str, str], name: str) -> int:
    """How much of a name is as wanted; a job weighs more than a task, that more than a type."""
    parts = dict(_PARTS.findall(name))
    weights = {"job": 8, "replica": 1, "task": 4, "device": 2}
    return sum(w for key, w in weights.items() if key in wanted and wanted[key] == parts.get(key))


def _nearest(wanted: str, known: list[str]) -> list[str]:
    """All names when they are few, else those most like the wanted one."""
    if len(known) <= _LISTED:
        return known
    parts = dict(_PARTS.findall(wanted))
    return sorted(known, key=lambda name: -_score(parts, name))[:_LISTED]


def _more_cpus(wanted: str) -> str:
    """How a process gets the CPU device that is wanted; '' for another device."""
    spec = names.DeviceSpec.from_string(wanted)
    if spec.device_type != "CPU" or not spec.device_index:
        return ""
    return (
        f" tf.ConfigProto(device_count={{'CPU': {spec.device_index + 1}}}) gives a session so many "
        "CPU devices."
    )


def _suggestion(wanted: str, devices: DeviceSet) -> str:
    """What is wrong with the name, where only one part of it is; '' or a sentence."""
    parts = dict(_PARTS.findall(wanted))
    rows = [dict(_PARTS.findall(name)) for name in devices.task_names]
    job, task = parts.get("job"), parts.get("task")
    jobs = sorted({row["job"] for row in rows})
    if job is not None and job not in jobs:
        return f" There is no job '{job}'." + suggest(job, jobs)
    if len(rows) == 1:
        return _more_cpus(wanted)
    own = [i for i, row in enumerate(rows) if job in (None, row["job"])]
    if task is not None and all(rows[i]["task"] != task for i in own):
        where = f"Job '{job}'" if job is not None else "The cluster"
        plural = "" if len(own) == 1 else "s"
        return f" {where} has {len(own)} task{plural}, none of them {task}."
    named = [devices.task_names[i] for i in own if task in (None, rows[i]["task"])]
    near = [d.name for name in named for d in devices.tasks.get(name, ())]
    return f" Did you mean '{near[0]}'?" if near else ""
