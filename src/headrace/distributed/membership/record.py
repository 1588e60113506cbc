"""The record of a cluster: what has changed since its tasks were started, with an epoch.

>>> first = changed(ClusterRecord(), tasks={"/job:worker/replica:0/task:2": "w2:2222"})
>>> second = changed(first, wanted={"worker": 3})
>>> second.epoch, dict(second.tasks)
(2, {'/job:worker/replica:0/task:2': 'w2:2222'})
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

__all__ = ["GONE", "MOST_TASKS", "ClusterRecord", "changed"]

#: The address of a task that has left.
GONE = ""
#: So many tasks of one job can be wanted.
MOST_TASKS = 10_000


@dataclass(frozen=True)
class ClusterRecord:
    """What has changed since the cluster was started.

    Attributes:
        epoch: how many changes there were.
        voters: the tasks that decide on the next change, with the start of each that had a say in
            this one; 0 for those that had none.
        tasks: address of each task that has joined, `GONE` for those that have left.
        wanted: how many tasks of a job somebody has asked for.
        moved: the task that has a variable, where it is another one than its device says; and the
            one that stands for a server that has left.
        is_sharing: whether servers share variables out anew: one has come, or is to leave.
    """

    epoch: int = 0
    voters: Mapping[str, int] = field(default_factory=dict)
    tasks: Mapping[str, str] = field(default_factory=dict)
    wanted: Mapping[str, int] = field(default_factory=dict)
    moved: Mapping[str, str] = field(default_factory=dict)
    is_sharing: bool = False

    def __post_init__(self) -> None:
        for name in ("voters", "tasks", "wanted", "moved"):
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))


def changed(
    record: ClusterRecord, is_sharing: bool | None = None, **changes: Mapping[str, Any]
) -> ClusterRecord:
    """The record with entries added or replaced, and the next epoch."""
    merged = {name: {**getattr(record, name), **more} for name, more in changes.items()}
    sharing = record.is_sharing if is_sharing is None else is_sharing
    return replace(record, epoch=record.epoch + 1, is_sharing=sharing, **merged)
