"""A trace for TensorBoard's profile page (the plugin of XProf): an XSpace in its own folder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace.files import system
from headrace.operations.xplane_pb2 import XSpace
from headrace.session.step_trace import TaskSlice, rows, transfers

__all__ = ["write_profile", "xspace"]

#: The page takes planes of this name for those of devices, and shows each as a process.
_PLANE = "/device:CUSTOM:"
#: What is told of an event, by the number that it has in a plane.
_STATS = ("op", "bytes", "source", "destination", "flow")
#: The page draws an arrow from what has a flow of the second kind to what has one of the first.
_FLOW_IN, _FLOW_OUT = 1, 2


def xspace(slices: Sequence[TaskSlice]) -> bytes:
    """The slices as an XSpace message: a plane for each task, a line for each row.

    Times are from the begin of the step.
    """
    space = XSpace()
    planes: dict[str, Any] = {}
    begin = min((one.start for one in slices), default=0)
    flows: dict[TaskSlice, int] = {}
    for number, (send, recv) in enumerate(transfers(slices), 1):
        flows[send], flows[recv] = _FLOW_OUT | number << 2, _FLOW_IN | number << 2
    for task, name, line in rows(slices):
        plane = planes.get(task)
        if plane is None:
            number = len(planes) + 1
            planes[task] = plane = space.planes.add(id=number, name=f"{_PLANE}{task}")
            for key, stat in enumerate(_STATS, 1):
                plane.stat_metadata[key].id = key
                plane.stat_metadata[key].name = stat
        number = len(plane.lines) + 1
        made = plane.lines.add(id=number, display_id=number, name=name)
        for one in line:
            _add_event(plane, made, one, begin, flows.get(one, 0))
    return bytes(space.SerializeToString())


def _add_event(plane: Any, line: Any, one: TaskSlice, begin: int, flow: int) -> None:
    key = len(plane.event_metadata) + 1
    plane.event_metadata[key].id = key
    plane.event_metadata[key].name = one.label
    event = line.events.add(
        metadata_id=key,
        offset_ps=(one.start - begin) * 10**6,
        duration_ps=one.duration * 10**6,
    )
    event.stats.add(metadata_id=1, str_value=one.name)
    if one.is_transfer:
        event.stats.add(metadata_id=2, int64_value=one.bytes)
        event.stats.add(metadata_id=3, str_value=one.source)
        event.stats.add(metadata_id=4, str_value=one.destination)
    if flow:
        event.stats.add(metadata_id=5, uint64_value=flow)


def write_profile(logdir: str, run: str, slices: Sequence[TaskSlice]) -> str:
    """Write a trace where TensorBoard's profile page looks for it; the path of the file.

    Args:
        logdir: that of TensorBoard.
        run: a name for the trace there.
    """
    folder = system.join(logdir, "plugins", "profile", run)
    system.make_directories(folder)
    path = system.join(folder, "headrace.xplane.pb")
    system.write_bytes(path, xspace(slices))
    return path
