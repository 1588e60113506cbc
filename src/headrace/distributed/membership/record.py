"""The record of a cluster: what has changed since its tasks were started, with an epoch.

>>> first = changed(ClusterRecord(), tasks={"/job:worker/replica:0/task:2": "w2:2222"})
>>> second = changed(first, wanted={"worker": 3})
>>> second.epoch, dict(second.tasks)
(2, {'/job:worker/replica:0/task:2': 'w2:2222'})
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from headrace.distributed.cluster.cluster_spec import split_address
from headrace.distributed.protocol import control_pb2 as pb
from headrace.errors import InvalidArgumentError

__all__ = ["GONE", "ClusterRecord", "changed", "record_of", "record_to_message"]

_TASK = re.compile(r"/job:[A-Za-z_][A-Za-z0-9_.-]*/replica:0/task:[0-9]{1,7}")
#: The address of a task that has left.
GONE = ""


@dataclass(frozen=True)
class ClusterRecord:
    """What has changed since the cluster was started.

    Attributes:
        epoch: how many changes there were.
        voters: the tasks that decide on the next change, with the start of each that had a say in
            this one; 0 for those that had none.
        tasks: address of each task that has joined, `GONE` for those that have left.
        wanted: how many tasks of a job somebody has asked for.
        moved: the task that has a variable, where it is another one than its device says.
    """

    epoch: int = 0
    voters: Mapping[str, int] = field(default_factory=dict)
    tasks: Mapping[str, str] = field(default_factory=dict)
    wanted: Mapping[str, int] = field(default_factory=dict)
    moved: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("voters", "tasks", "wanted", "moved"):
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))


def changed(record: ClusterRecord, **changes: Mapping[str, Any]) -> ClusterRecord:
    """The record with entries added or replaced, and the next epoch."""
    merged = {name: {**getattr(record, name), **more} for name, more in changes.items()}
    return replace(record, epoch=record.epoch + 1, **merged)


def record_to_message(record: ClusterRecord) -> pb.RecordDef:
    """A record as a message."""
    return pb.RecordDef(
        epoch=record.epoch,
        voters=record.voters,
        tasks=record.tasks,
        wanted=record.wanted,
        moved=record.moved,
    )


def record_of(message: pb.RecordDef) -> ClusterRecord:
    """The record of a message.

    Raises:
        InvalidArgumentError: if a record cannot be so.
    """
    if message.epoch < 0 or any(count < 0 for count in message.wanted.values()):
        raise _makes_no_sense("numbers below 0")
    for task in (*message.voters, *message.tasks, *message.moved.values()):
        if not _TASK.fullmatch(task):
            raise _makes_no_sense(f"{task!r}, which is no task")
    for address in message.tasks.values():
        try:
            if address != GONE:
                split_address(address)
        except ValueError:
            raise _makes_no_sense(f"the address {address!r}") from None
    return ClusterRecord(
        message.epoch, message.voters, message.tasks, message.wanted, message.moved
    )


def _makes_no_sense(what: str) -> InvalidArgumentError:
    return InvalidArgumentError(None, None, f"A record of the cluster with {what} makes no sense.")
