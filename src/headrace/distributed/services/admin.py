"""A look at a running cluster, and its end: what the commands of `headrace` ask its tasks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headrace.distributed.cluster.cluster_spec import split_address
from headrace.distributed.protocol import control_pb2 as pb
from headrace.distributed.security.credentials import Security
from headrace.distributed.services.control import Control

_SECONDS = 10.0
#: Tasks that do not answer are waited for, and then taken out of the cluster.
_RESIZE_SECONDS = 30.0


def status(
    address: str, cluster: bool = True, parts: bool = False, stacks: bool = False
) -> list[Any]:
    """The TaskStatus messages of the task at ``host:port`` and, on demand, of all others.

    Args:
        parts: with where the parts of steps are that run now.
        stacks: with the stacks of the tasks' threads.

    Raises:
        UnavailableError: if nobody answers there.
    """
    request = pb.StatusRequest(cluster=cluster, parts=parts, stacks=stacks)
    response = _call(address, "Status", request)
    return sorted(response.tasks, key=lambda t: str(t.task))


def resize(address: str, wanted: Mapping[str, int]) -> Any:
    """Ask the cluster of the task at ``host:port`` for another number of tasks of some jobs.

    Returns:
        A ResizeResponse message: the tasks that are asked to leave, and how many are to be started.

    Raises:
        UnavailableError: if nobody answers there, or too few of its tasks do.
        InvalidArgumentError: if there is no such job, or it would have no task left.
        UnimplementedError: if there would be fewer parameter servers, which have copies of each
            other.
    """
    return _call(address, "Resize", pb.ResizeRequest(wanted=dict(wanted)), _RESIZE_SECONDS)


def move(address: str, variables: Sequence[str], to: str, timeout: float = 60.0) -> Any:
    """Let the task at ``host:port`` give variables to another task, while training goes on.

    What must be where they are, as the slots of an optimiser, goes along.

    Args:
        variables: their names; those of a container as ``container:name``. Tables that sessions
            share are named as ``table of embeddings NAME`` and ``table NAME``.
        to: the full name of the other task.
        timeout: in seconds.

    Returns:
        A MoveResponse message: what has moved, and for how long steps were held.

    Raises:
        NotFoundError: if the task does not have one of them.
        DeadlineExceededError: if steps that use them did not end in time; nothing has moved.
        UnavailableError: if one of the tasks does not answer.
        UnimplementedError: if the task has a standby.
    """
    request = pb.MoveRequest(variables=variables, task=to, timeout=timeout)
    return _call(address, "Move", request, timeout + _SECONDS)


def trace(address: str, timeout: float, least_tasks: int = 1) -> Any:
    """The trace of the next step of a session of the task at ``host:port``.

    Args:
        timeout: seconds to wait for it.
        least_tasks: steps that fewer tasks run are let through.

    Returns:
        A TraceResponse message.

    Raises:
        DeadlineExceededError: if no step ends in time.
        UnavailableError: if nobody answers there.
    """
    request = pb.TraceRequest(timeout=timeout, least_tasks=least_tasks)
    return _call(address, "Trace", request, timeout + _SECONDS)


def diagnose(address: str, folder: str = "", nonce: str = "", timeout: float = _SECONDS) -> Any:
    """What kind of process the task at ``host:port`` is, as a DiagnoseResponse message.

    Args:
        folder: in which there is a file ``nonce``; the task looks for it, and writes one beside it.

    Raises:
        UnavailableError: if nobody answers there.
        UnimplementedError: if it is of an older release.
    """
    request = pb.DiagnoseRequest(folder=folder, nonce=nonce)
    return _call(address, "Diagnose", request, timeout)


def shutdown(address: str, cluster: bool = True) -> tuple[list[str], list[str]]:
    """Stop the task at ``host:port`` and, on demand, all others of its cluster.

    Returns:
        The tasks that stop, and those that did not answer.

    Raises:
        UnavailableError: if nobody answers there.
    """
    response = _call(address, "Shutdown", pb.ShutdownRequest(cluster=cluster))
    return list(response.stopped), list(response.missing)


def _call(address: str, name: str, request: Any, timeout: float = _SECONDS) -> Any:
    address = address.removeprefix("grpc://")
    try:
        host, _ = split_address(address)
    except ValueError:
        raise ValueError(f"{address!r} is no address of the form host:port.") from None
    security = Security.from_environment()
    security.check_address(host)
    control = Control(address, security)
    try:
        return control.call(name, request, timeout)
    finally:
        control.close()
