"""One step over all its tasks, on one clock: rows of what each task did, and arrows between them.

The form is the trace event format that Perfetto and Chrome read. Each task is a process; in it
each device has a row, and so has each direction of each link. An arrow goes from each Send to its
Recv. The slice of a Recv is the wait for it, from the begin of the step.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headrace.session.timeline import slice_of
from headrace.structured_logs import short_task

__all__ = ["TaskSlice", "chrome_trace", "rows", "task_slices", "transfers"]


@dataclass(frozen=True)
class TaskSlice:
    """What one task did for a while.

    Attributes:
        task: as ``ps/0``; row: a device or a direction of a link.
        name: the type of the operation; label: its name, or that of a region.
        start: microseconds since the epoch, by the clock of the master; duration: microseconds.
        source, destination, bytes: of a transfer; "" and 0 for the rest.
    """

    task: str
    row: str
    name: str
    label: str
    start: int
    duration: int
    source: str = ""
    destination: str = ""
    bytes: int = 0

    @property
    def end(self) -> int:
        """Microseconds since the epoch."""
        return self.start + self.duration

    @property
    def is_transfer(self) -> bool:
        """Whether it sends or receives."""
        return bool(self.source)


def task_slices(step_stats: Any) -> list[TaskSlice]:
    """All slices of a StepStats message, by task, row and time."""
    found = []
    for device in step_stats.dev_stats:
        name, _, where = device.device.partition("/device:")
        for node in device.node_stats:
            found.append(_task_slice(slice_of(node, 0, device.device), short_task(name), where))
    return sorted(found, key=lambda s: (s.task, s.row, s.start, -s.duration))


def _task_slice(made: dict[str, Any], task: str, where: str) -> TaskSlice:
    args = made["args"]
    source, destination = (short_task(args.get(e, "")) for e in ("source", "destination"))
    row = where or "host"
    if source:
        row = f"to {destination}" if made["name"] == "Send" else f"from {source}"
    return TaskSlice(
        task,
        row,
        made["name"],
        args["name"],
        made["ts"],
        made["dur"],
        source,
        destination,
        args.get("bytes", 0),
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


def chrome_trace(slices: Sequence[TaskSlice], clocks: Mapping[str, float] | None = None) -> str:
    """The trace as JSON text.

    Args:
        slices: of `task_slices`.
        clocks: by how many seconds the clocks of tasks were set right, to be told beside.
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
    events += _arrows(slices, places, begin)
    about = {
        "began": begin / 1e6,
        "clocks": {short_task(task): ahead for task, ahead in (clocks or {}).items()},
    }
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ms", "otherData": about})


def _about(pid: int, tid: int, what: str, **args: Any) -> dict[str, Any]:
    return {"ph": "M", "pid": pid, "tid": tid, "name": what, "args": args}


def _event(one: TaskSlice, pid: int, tid: int, begin: int) -> dict[str, Any]:
    args: dict[str, Any] = {"op": one.name}
    if one.is_transfer:
        args |= {"bytes": one.bytes, "source": one.source, "destination": one.destination}
    return {
        "ph": "X",
        "cat": "transfer" if one.is_transfer else "op",
        "name": one.label,
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


def _arrows(
    slices: Sequence[TaskSlice], places: Mapping[TaskSlice, tuple[int, int]], begin: int
) -> Iterator[dict[str, Any]]:
    for number, (send, recv) in enumerate(transfers(slices), 1):
        common = {"cat": "transfer", "name": "tensors", "id": number}
        # Within the slices: an arrow at the very end of one would belong to none.
        for phase, one, at in (("s", send, send.start), ("f", recv, recv.end - 0.5)):
            pid, tid = places[one]
            more = {"bp": "e"} if phase == "f" else {}
            yield common | more | {"ph": phase, "pid": pid, "tid": tid, "ts": at - begin}
