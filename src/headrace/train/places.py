"""Where variables are: at the task that their device says, or where they have moved since."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from headrace.graph import dtypes
from headrace.graph.devices import DeviceSpec
from headrace.graph.graph import Graph
from headrace.graph.tensor import Operation
from headrace.step.moved import variables_of

__all__ = ["Places", "restores_by_task", "short"]


class Places:
    """The tasks of variables and of other resources, as the record of a session's cluster has them.

    Args:
        moved: see `headrace.step.moved.MovedVariables`.
    """

    def __init__(self, moved: Mapping[str, str]) -> None:
        self.moved = moved

    @classmethod
    def of_session(cls, session: Any) -> Places:
        """What the master of a session knows."""
        return cls(getattr(session._engine, "moved", {}))

    def of(self, handle: Operation) -> str:
        """The full name of the task that has what a handle stands for; "" if no task is named."""
        for key in variables_of([handle]):
            if key in self.moved:
                return self.moved[key]
        return self.of_device(handle.device)

    @staticmethod
    def of_device(device: str) -> str:
        """The task that a device names, also where another one stands for it: what that has of its
        own is not lost with it."""
        spec = DeviceSpec.from_string(device)
        if spec.job is None or spec.task is None:
            return spec.replace(device_type=None, device_index=None).to_string()
        return f"/job:{spec.job}/replica:{spec.replica or 0}/task:{spec.task}"


def short(task: str) -> str:
    """A task as programs name it.

    >>> short("/job:ps/replica:0/task:1")
    '/job:ps/task:1'
    """
    return task.replace("/replica:0", "")


def restores_by_task(graph: Graph, restore_all: str, places: Places) -> dict[str, list[str]]:
    """The names of operations that restore what is at each task.

    A sharded saver has an operation for each task that a program has named, of which each part
    restores one variable or table. All of it goes together where nothing of it has moved.

    Args:
        restore_all: the name of the operation that restores all.
    """
    found: dict[str, list[str]] = {}
    todo = [graph.get_operation_by_name(restore_all)]
    while todo:
        op = todo.pop()
        if not op.name.rpartition("/")[2].startswith("restore_shard"):
            todo.extend(op.control_inputs if op.type == "NoOp" else ())
            continue
        own = places.of_device(op.device)
        parts = [(_place(part, places) or own, part.name) for part in _parts(op) if places.moved]
        stays = all(task == own for task, _ in parts)
        for task, name in [(own, op.name)] if stays else parts:
            found.setdefault(task, []).append(name)
    return found


def _parts(op: Operation) -> Iterator[Operation]:
    """The operations that change something; what only puts others together is none."""
    inner = [*op.control_inputs] if op.type == "NoOp" else []
    if op.op_def.effects.pure:
        inner += [t.op for t in op.inputs if not t.op.op_def.effects.pure]
    for before in inner:
        yield from _parts(before)
    if not inner and op.type != "NoOp":
        yield op


def _place(part: Operation, places: Places) -> str:
    handles = [t.op for t in part.inputs if t.dtype is dtypes.resource]
    return places.of(handles[0]) if handles else ""
