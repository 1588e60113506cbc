"""Placing the nodes of a step on devices.

Constraints are partial device names; ops that must share a device form groups (union-find, as in
the 2015 white paper, section 4.3). A group goes to the first device that all its constraints
allow: an accelerator before the CPU when the group says nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from headrace.errors import InvalidArgumentError
from headrace.graph import devices as names
from headrace.graph import dtypes
from headrace.passes.ir import Node
from headrace.placement.devices import DeviceAttributes

_log = logging.getLogger("headrace.placement")


class _Groups:
    """Union-find over nodes."""

    def __init__(self) -> None:
        self._parent: dict[Node, Node] = {}

    def find(self, node: Node) -> Node:
        parent = self._parent
        root = node
        while parent.get(root, root) is not root:
            root = parent[root]
        while parent.get(node, node) is not root:
            parent[node], node = root, parent[node]
        return root

    def join(self, a: Node, b: Node) -> None:
        first, second = self.find(a), self.find(b)
        if first is not second:
            self._parent[second] = first


def place(
    nodes: Sequence[Node],
    available: Sequence[DeviceAttributes],
    allow_soft_placement: bool = False,
    log_device_placement: bool = False,
) -> None:
    """Give every node the full name of one of the ``available`` devices.

    Raises:
        InvalidArgumentError: if no device satisfies a constraint and soft placement is off, or
            ops that must share a device ask for different ones.
    """
    default = _default(available)
    if len(available) == 1 and not any(n.device for n in nodes):
        for node in nodes:
            node.device = default.name
    else:
        _place_groups(nodes, available, default, allow_soft_placement)
    if log_device_placement:
        for node in nodes:
            _log.warning("%s: (%s): %s", node.name, node.type, node.device)


def _default(available: Sequence[DeviceAttributes]) -> DeviceAttributes:
    accelerators = [d for d in available if d.device_type != "CPU"]
    return accelerators[0] if accelerators else available[0]


def _place_groups(
    nodes: Sequence[Node],
    available: Sequence[DeviceAttributes],
    default: DeviceAttributes,
    soft: bool,
) -> None:
    groups = _Groups()
    by_name = {n.name: n for n in nodes}
    for node in nodes:
        for name in node.colocation:
            if name in by_name:
                groups.join(by_name[name], node)
        for source, index in node.inputs:
            if source.dtypes[index] is dtypes.resource:
                groups.join(source, node)
    constraint: dict[Node, str] = {}
    for node in nodes:
        root = groups.find(node)
        if node.device:
            known = constraint.get(root, "")
            if known and not names.is_compatible(known, node.device):
                if not soft:
                    raise _conflict(node, known)
                continue
            constraint[root] = names.merge(known, node.device)
    for node in nodes:
        wanted = constraint.get(groups.find(node), "")
        node.device = _choose(node, wanted, available, default, soft)


def _choose(
    node: Node,
    wanted: str,
    available: Sequence[DeviceAttributes],
    default: DeviceAttributes,
    soft: bool,
) -> str:
    if node.op_def.host is not None:
        default = available[0]
    if not wanted:
        return default.name
    fitting = [d.name for d in available if names.matches(wanted, d.name)]
    if default.name in fitting:
        return default.name
    if fitting:
        return fitting[0]
    if soft:
        return available[0].name
    listed = ", ".join(d.name for d in available)
    raise InvalidArgumentError(
        None,
        node.op,
        f"Cannot assign a device for operation '{node.name}': Operation was explicitly assigned to "
        f"{wanted} but available devices are [ {listed} ]. Make sure the device specification "
        "refers to a valid device, or let it run elsewhere with "
        "tf.ConfigProto(allow_soft_placement=True).",
    )


def _conflict(node: Node, known: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        None,
        node.op,
        f"Cannot colocate nodes: '{node.name}' asks for device {node.device}, and the ops it must "
        f"share a device with ask for {known}.",
    )
