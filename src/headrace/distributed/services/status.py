"""What a task tells about itself: sessions, steps, state and links."""

from __future__ import annotations

import time
from importlib import metadata
from typing import Any

import numpy as np

from headrace.distributed.protocol import control_pb2 as pb
from headrace.distributed.services.serving import Serving
from headrace.executor.resources import ResourceHandle


def task_status(server: Serving) -> pb.TaskStatus:
    """The state of one task now."""
    task = server.task
    status = pb.TaskStatus(
        task=task.me.task,
        address=server.address,
        incarnation=server.incarnation,
        uptime_seconds=time.time() - server.began,
        memory_bytes=resident_bytes(),
        steps_run=task.worker.steps_run,
        package_version=metadata.version("headrace"),
    )
    for session in task.master.sessions():
        status.sessions.add(
            session=session.number,
            client=session.client or "this process",
            steps=session.steps,
            plans=len(session.plans),
        )
    now = time.monotonic()
    for tracker in task.steps.open():
        waiting = sorted(tracker.tasks)
        status.steps.add(step=tracker.number, seconds=now - tracker.began, waiting_for=waiting)
    for key, value in sorted(task.store.items(), key=lambda item: str(item[0])):
        if isinstance(key, ResourceHandle):
            _add_resource(status, key, value)
    for link in task.peers.all():
        stats = link.stats
        status.links.add(
            peer=link.peer.task,
            transport=link.pipe.kind,
            bytes_in=stats.bytes_in,
            bytes_out=stats.bytes_out,
            frames_in=stats.frames_in,
            frames_out=stats.frames_out,
        )
    return status


def _add_resource(status: pb.TaskStatus, key: ResourceHandle, value: Any) -> None:
    made = status.variables.add(container=key.container, name=key.name, kind=key.kind)
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        made.dtype = np.dtype(value.dtype).name
        made.dims.extend(value.shape)
        made.bytes = value.nbytes


def resident_bytes() -> int:
    """Memory of this process that is in use; 0 where the system does not tell."""
    try:
        with open("/proc/self/statm") as file:
            pages = int(file.read().split()[1])
    except OSError:
        return 0
    import resource

    return pages * resource.getpagesize()
