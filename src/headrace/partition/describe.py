"""Partitions as text: what each task runs, and what crosses between tasks."""

from __future__ import annotations

from textwrap import indent

from headrace.partition.parts import Moved, Part, Partition, Transfer
from headrace.passes.ir import FEED, Node


def describe(partition: Partition) -> str:
    """Every part: its feeds, what it receives, its nodes by device and stage, what it sends."""
    sections = [_part(partition.parts[task]) for task in sorted(partition.parts)]
    for task in sorted(partition.parts):
        sections += _bodies(partition.parts[task])
    for position, _ in partition.constants:
        sections.append(f"fetch {position} is constant")
    for position, feed in partition.fed:
        sections.append(f"fetch {position} is feed {feed}")
    return "\n".join(sections)


def _bodies(part: Part) -> list[str]:
    """The parts of the bodies of control flow ops that need several tasks."""
    return [
        f"body {body.name} of {node.name}\n" + indent(describe(body.partition), "  ")
        for node, bodies in part.tables.bodies.items()
        for body in bodies.values()
    ]


def _part(part: Part) -> str:
    lines = [f"part {part.task}"]
    lines += [f"  feed {i}: {node.name}" for i, node in part.feeds]
    lines += [f"  recv {line}" for t in part.recvs for line in _transfer(t, t.source)]
    groups: dict[tuple[str, int, int], list[Node]] = {}
    for node in part.nodes:
        if node.op_def is not FEED and not node.name.startswith(("send_", "recv_")):
            stage, component = part.tables.groups.get(node, (0, 0))
            groups.setdefault((node.device, stage, component), []).append(node)
    for (device, stage, component), nodes in sorted(groups.items(), key=lambda g: g[0][1:]):
        apart = f", component {component}" if component else ""
        lines.append(f"  stage {stage} on {device}{apart}")
        lines += [f"    {_node(n)}" for n in nodes]
    lines += [f"  send {line}" for t in part.sends for line in _transfer(t, t.destination)]
    lines += [f"  fetch {i}: {node.name}:{k}" for i, (node, k) in part.fetches]
    return "\n".join(lines)


def _transfer(transfer: Transfer, other: str) -> list[str]:
    if not transfer.tensors:
        return [f"#{transfer.number} {other}: order only"]
    return [f"#{transfer.number} {other}: {_moved(m)}" for m in transfer.tensors]


def _moved(moved: Moved) -> str:
    shape = (
        "?" if moved.dims is None else ", ".join("?" if d is None else str(d) for d in moved.dims)
    )
    size = "" if moved.bytes is None else f" {moved.bytes} bytes"
    short = f" as {moved.precision}" if moved.precision else ""
    return f"{moved.name} {moved.dtype.name}[{shape}]{size}{short}"


def _node(node: Node) -> str:
    inputs = [f"{n.name}:{i}" if i else n.name for n, i in node.inputs]
    inputs += [f"^{n.name}" for n in node.control]
    return f"{node.name} = {node.type}({', '.join(inputs)})"
