"""A trace of the next step of a cluster that runs."""

from __future__ import annotations

import time
from typing import Any

from headrace.distributed.services import admin
from headrace.errors import DeadlineExceededError, FailedPreconditionError

__all__ = ["next_step"]


def next_step(address: str, timeout: float) -> Any:
    """The trace of a step that begins from now on; steps of several tasks are preferred.

    Args:
        address: ``host:port`` of any task of the cluster: where it has no sessions that run steps,
            another one that has is asked.
        timeout: seconds.

    Returns:
        A TraceResponse message.

    Raises:
        UnavailableError: if nobody answers there.
        FailedPreconditionError: if no task has a session.
        DeadlineExceededError: if no step ends in time.
    """
    tasks = [task for task in admin.status(address) if not task.problem]
    busy = [task for task in tasks if task.sessions]
    if not busy:
        names = ", ".join(task.task for task in tasks)
        text = f"No task has a session, so no step runs: {names}. Is the training over?"
        raise FailedPreconditionError(None, None, text)
    asked = address.removeprefix("grpc://")
    # The task that was asked for if it trains, or else the one that trains most.
    master = max(busy, key=lambda t: (t.address == asked, sum(s.steps for s in t.sessions)))
    if len(tasks) == 1:
        return admin.trace(master.address, timeout)
    began = time.monotonic()
    try:
        return admin.trace(master.address, timeout / 2, least_tasks=2)
    except DeadlineExceededError:
        left = max(timeout - (time.monotonic() - began), 0.1)
        return admin.trace(master.address, left)
