"""Changes of variables and objects as messages."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.distributed.protocol import step_pb2 as pb
from headrace.distributed.standby.journal import Change
from headrace.distributed.standby.kinds import VARIABLE
from headrace.distributed.wire import codec
from headrace.executor.resources import ResourceHandle

__all__ = ["encoded", "handle_of"]


def handle_of(change: pb.CopyChange) -> ResourceHandle:
    """What a change is of."""
    return ResourceHandle(change.kind or VARIABLE, change.container, change.name)


def encoded(task: str, changes: list[Change]) -> tuple[pb.Copy, list[Any]]:
    """Changes as a message; nobody changes in place what its buffers show."""
    message = pb.Copy(task=task)
    values: list[Any] = []
    for key, value, rows in changes:
        kind = "" if key.kind == VARIABLE else key.kind
        change = message.changes.add(container=key.container, name=key.name, kind=kind)
        if value is None:
            continue
        if kind:
            change.tensors = len(value)
            values += value
            continue
        whole = np.asarray(value)
        if rows is None or whole.ndim == 0 or 2 * len(rows) >= len(whole):
            change.tensors = 1
            values.append(whole)
        else:
            change.tensors = 2
            inside = rows[(rows >= 0) & (rows < len(whole))]
            values += [inside, whole[inside]]
    metas, buffers = codec.encode_many(values)
    message.values.extend(metas)
    return message, buffers
