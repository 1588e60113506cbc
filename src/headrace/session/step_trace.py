"""One step over all its tasks, on one clock: rows of what each task did, and arrows between them.

The form is the trace event format that Perfetto and Chrome read. Each task is a process; in it
each device has a row, and so has each direction of each link. An arrow goes from each Send to its
Recv. The slice of a Recv is the wait for it, from the begin of the step.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headrace.structured_logs import short_task

__all__ = ["TaskSlice", "chrome_trace", "rows", "task_slices", "transfers"]

#: "name = type(detail)"
_LABEL = re.compile(r"(?P<name>.*) = (?P<type>\w+)\((?P<detail>.*)\)", re.DOTALL)
#: What the detail of a Send or Recv says.
_TRANSFER = re.compile(r"(?P<bytes>\d+) bytes (?P<way>to|from) (?P<peer>.+)")


@dataclass(frozen=True)
class TaskSlice:
    """What one task did for a while.

    Attributes:
        task: as ``ps/0``; device: as ``CPU:0``; row: the device or a direction of a link.
        name: the type of the operation; label: its name, or that of a region.
        start: microseconds since the epoch, by the clock of the master; duration: microseconds.
        source, destination, bytes: of a transfer; "" and 0 for the rest.
        takes: the labels of what made the values that it took; made: bytes of what it put out.
    """

    task: str
    device: str
    row: str
    name: str
    label: str
    start: int
    duration: int
    source: str = ""
    destination: str = ""
    bytes: int = 0
    takes: tuple[str, ...] = ()
    made: int = 0

    @property
    def end(self) -> int:
        """Microseconds since the epoch."""
        return self.start + self.duration

    @property
    def is_transfer(self) -> bool:
        """Whether it sends or receives."""
        return bool(self.source)

    @property
    def title(self) -> str:
        """What is shown: operations by their type, as TensorFlow's timelines have them."""
        return self.label if self.is_transfer or self.name in ("", "Region") else self.name


def task_slices(step_stats: Any) -> list[TaskSlice]:
    """All slices of a StepStats message, by task, row and time."""
    found = []
    for device in step_stats.dev_stats:
        name, _, where = device.device.partition("/device:")
        task = short_task(name)
        found += [_slice_of(node, task, where or "host") for node in device.node_stats]
    return sorted(found, key=lambda s: (s.task, s.row, s.start, -s.duration))


def _slice_of(node: Any, task: str, device: str) -> TaskSlice:
    """What a NodeExecStats message tells."""
    label = _LABEL.fullmatch(node.timeline_label)
    detail = label["detail"] if label else ""
    transfer = _TRANSFER.fullmatch(detail)
    row, source, destination = device, "", ""
    if transfer is not None:
        peer = short_task(transfer["peer"])
        sends = transfer["way"] == "to"
        row = f"{transfer['way']} {peer}"
        source, destination = (task, peer) if sends else (peer, task)
    return TaskSlice(
        task,
        device,
        row,
        label["type"] if label else "",
        node.node_name,
        node.all_start_micros,
        max(1, node.all_end_rel_micros),
        source,
        destination,
        int(transfer["bytes"]) if transfer is not None else 0,
        tuple(detail.split(", ")) if detail and transfer is None else (),
        sum(m.total_bytes for m in node.memory),
    )


def rows(slices: Sequence[TaskSlice]) -> Iterator[tuple[str, str, list[TaskSlice]]]:
    """Task, name and slices of each row; what overlaps is on several rows of a name.

    Devices come first, then links.
    """
    groups: dict[tuple[str, bool, str], list[TaskSlice]] = {}
    for one in slices:
        groups.setdefault((one.task, one.is_transfer, one.row), []).append(one)
    for (task, _, name), group in sorted(groups.items()):
        lines: list[list[TaskSlice]] = []
        for one in sorted(group, key=lambda s: (s.start, -s.duration)):
            free = next((line for line in lines if line[-1].end <= one.start), None)
            if free is None:
                lines.append(free := [])
            free.append(one)
        for number, line in enumerate(lines, 1):
            yield task, name if number == 1 else f"{name} ({number})", line


def chrome_trace(
    slices: Sequence[TaskSlice],
    clocks: Mapping[str, float] | None = None,
    *,
    arrows: bool = True,
    dataflow: bool = False,
    memory: bool = False,
) -> str:
    """The trace as JSON text.

    Args:
        slices: of `task_slices`.
        clocks: by how many seconds the clocks of tasks were set right, to be told beside.
        arrows: whether to join the ends of transfers.
        dataflow: whether to join what made a value with what took it.
        memory: whether to count, for each device, the bytes of the values that lie between regions
            and operations: from the end of what made a value to the end of the last that took it.
            What a program needs within itself, and variables, are not in it.
    """
    tasks = sorted({one.task for one in slices})
    pids = {task: number for number, task in enumerate(tasks, 1)}
    begin = min((one.start for one in slices), default=0)
    events: list[dict[str, Any]] = []
    for task, pid in pids.items():
        events.append(_about(pid, 0, "process_name", name=task))
        events.append(_about(pid, 0, "process_sort_index", sort_index=pid))
    lines: dict[str, int] = {}
    places: dict[TaskSlice, tuple[int, int]] = {}
    for task, name, line in rows(slices):
        lines[task] = tid = lines.get(task, 0) + 1
        events.append(_about(pids[task], tid, "thread_name", name=name))
        events.append(_about(pids[task], tid, "thread_sort_index", sort_index=tid))
        for one in line:
            places[one] = pids[task], tid
            events.append(_event(one, pids[task], tid, begin))
    joined: list[tuple[str, TaskSlice, TaskSlice, float]]
    joined = [("transfer", send, recv, send.start) for send, recv in transfers(slices) if arrows]
    if dataflow:
        joined += [("data flow", maker, taker, maker.end - 0.5) for maker, taker in _makers(slices)]
    for number, (kind, source, target, left) in enumerate(joined, 1):
        # Within the slices: an arrow at the very end of one would belong to none.
        came = target.end - 0.5 if kind == "transfer" else target.start
        common = {"cat": kind, "name": kind, "id": number}
        for phase, one, at in (("s", source, left), ("f", target, came)):
            pid, tid = places[one]
            more = {"bp": "e"} if phase == "f" else {}
            events.append(common | more | {"ph": phase, "pid": pid, "tid": tid, "ts": at - begin})
    if memory:
        for task, device in sorted({(one.task, one.device) for one in slices}):
            of_device = [s for s in slices if (s.task, s.device) == (task, device)]
            for at, live in _live_bytes(of_device):
                common = {"ph": "C", "cat": "memory", "name": f"bytes on {device}"}
                place = {"pid": pids[task], "ts": at - begin, "args": {"bytes": live}}
                events.append(common | place)
    about = {
        "began": begin / 1e6,
        "clocks": {short_task(task): ahead for task, ahead in (clocks or {}).items()},
    }
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ms", "otherData": about})


def _about(pid: int, tid: int, what: str, **args: Any) -> dict[str, Any]:
    return {"ph": "M", "pid": pid, "tid": tid, "name": what, "args": args}


def _event(one: TaskSlice, pid: int, tid: int, begin: int) -> dict[str, Any]:
    args: dict[str, Any] = {"name": one.label, "op": one.name}
    if one.is_transfer:
        args |= {"bytes": one.bytes, "source": one.source, "destination": one.destination}
    return {
        "ph": "X",
        "cat": "transfer" if one.is_transfer else "op",
        "name": one.title,
        "pid": pid,
        "tid": tid,
        "ts": one.start - begin,
        "dur": one.duration,
        "args": args,
    }


def transfers(slices: Sequence[TaskSlice]) -> list[tuple[TaskSlice, TaskSlice]]:
    """Each Send with its Recv."""
    ends: dict[tuple[str, str, str], dict[str, TaskSlice]] = {}
    for one in slices:
        if one.is_transfer:
            key = one.label, one.source, one.destination
            ends.setdefault(key, {}).setdefault(one.name, one)
    return [(both["Send"], both["Recv"]) for both in ends.values() if len(both) == 2]


def _makers(slices: Sequence[TaskSlice]) -> Iterator[tuple[TaskSlice, TaskSlice]]:
    """Pairs of one task: the first made a value that the second took."""
    latest: dict[tuple[str, str], TaskSlice] = {}
    for one in sorted(slices, key=lambda s: s.start):
        for label in one.takes:
            if (one.task, label) in latest:
                yield latest[one.task, label], one
        if one.name not in ("Compile", "Send"):
            latest[one.task, one.label] = one


def _live_bytes(slices: Sequence[TaskSlice]) -> Iterator[tuple[int, int]]:
    """When the bytes of values on one device change, and how many they are then."""
    until: dict[TaskSlice, int] = {}
    for maker, taker in _makers(slices):
        until[maker] = max(until.get(maker, 0), taker.end)
    last = max(one.end for one in slices)
    changes: dict[int, int] = {}
    for one in slices:
        gone = until.get(one, last)
        changes[one.end] = changes.get(one.end, 0) + one.made
        changes[gone] = changes.get(gone, 0) - one.made
    live = 0
    for at in sorted(changes):
        live += changes[at]
        if at < last or live == 0:
            yield at, live
