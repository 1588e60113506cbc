"""What a task tells about itself: sessions, steps, state and links."""

from __future__ import annotations

import sys
import threading
import time
import traceback
from importlib import metadata
from typing import Any

import numpy as np

from headrace.distributed.protocol import control_pb2 as pb
from headrace.distributed.services.serving import Serving
from headrace.distributed.worker.worker import PartContext
from headrace.executor.resources import ResourceHandle
from headrace.ops.core.copied import CopiedResource


def statuses(server: Serving, parts: bool = False, stacks: bool = False) -> list[pb.TaskStatus]:
    """The states of the tasks that a process serves: its own, and those whose copies it has."""
    standbys = server.standbys
    hosted = standbys.hosted if standbys is not None else ()
    return [task_status(one, parts, stacks) for one in (server, *hosted)]


def task_status(server: Serving, parts: bool = False, stacks: bool = False) -> pb.TaskStatus:
    """The state of one task now.

    Args:
        parts: also where the parts of steps are that run now; ``stacks``: what the threads do.
    """
    task = server.task
    tally = task.master.tally
    status = pb.TaskStatus(
        task=task.me.task,
        address=server.address,
        incarnation=server.incarnation,
        uptime_seconds=time.monotonic() - server.began,
        memory_bytes=resident_bytes(),
        steps_run=task.worker.steps_run,
        steps_ended=tally.ended,
        steps_failed=tally.failed,
        steps_given_up=tally.given_up,
        step_seconds=tally.seconds,
        cpu_seconds=time.process_time(),
        epoch=server.members.epoch,
        metrics_address=server.metrics_address,
        package_version=metadata.version("headrace"),
        membership=_membership(server),
        awaited_groups=task.collectives.awaited(),
        copy=server.standbys.copy_stage if server.standbys is not None else "",
    )
    for session in task.master.sessions():
        status.sessions.add(
            session=session.number,
            client=session.client or "this process",
            steps=session.steps,
            plans=len(session.plans),
        )
    plans = [p for session in task.master.sessions() for p in list(session.plans.values())]
    loop = max(plans, key=lambda plan: plan.seconds, default=None)
    if loop is not None:
        status.loop_steps, status.loop_seconds = loop.ended, loop.seconds
    now = time.monotonic()
    for tracker in task.steps.open():
        waiting = sorted(tracker.tasks)
        status.steps.add(step=tracker.number, seconds=now - tracker.began, waiting_for=waiting)
    for key, value in sorted(task.store.all_known().items(), key=lambda item: str(item[0])):
        if isinstance(key, ResourceHandle) and not key.is_private:
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
    if parts:
        for context in task.worker.running():
            _add_part(status, context, now)
    if stacks:
        _add_stacks(status)
    return status


def _membership(server: Serving) -> str:
    members = server.members
    if members.is_leaving():
        return "leaving"
    return "joined" if members.me[0] in members.record.tasks else ""


def _add_part(status: pb.TaskStatus, context: PartContext, now: float) -> None:
    """Where a part of a step is: the task lives, but the part may be stuck."""
    running, missing = context.run.position()
    made = status.parts.add(step=context.number, seconds=now - context.since)
    for unit in running:
        node = unit.node
        made.running.append(unit.label if node is None else f"{node.name} ({node.type})")
    for transfer in context.part.part.recvs:
        if transfer.number in missing:
            names = [m.name for m in transfer.tensors]
            made.awaited.add(source=transfer.source, names=names)


def _add_stacks(status: pb.TaskStatus) -> None:
    """The stacks of all threads of this process but the one that asks."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    for ident, frame in sys._current_frames().items():
        if ident != threading.get_ident():
            stack = "".join(traceback.format_stack(frame))
            status.threads.add(name=names.get(ident, f"thread {ident}"), stack=stack)


def _add_resource(status: pb.TaskStatus, key: ResourceHandle, value: Any) -> None:
    made = status.variables.add(container=key.container, name=key.name, kind=key.kind)
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        made.dtype = np.dtype(value.dtype).name
        made.dims.extend(value.shape)
        made.bytes = value.nbytes
    elif isinstance(value, CopiedResource):
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
