"""A look at a running cluster, and its end: what `headrace status` and `shutdown` ask for."""

from __future__ import annotations

from typing import Any

from headrace.distributed.cluster.cluster_spec import split_address
from headrace.distributed.protocol import control_pb2 as pb
from headrace.distributed.security.credentials import Security
from headrace.distributed.services.control import Control

_SECONDS = 10.0


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


def shutdown(address: str, cluster: bool = True) -> tuple[list[str], list[str]]:
    """Stop the task at ``host:port`` and, on demand, all others of its cluster.

    Returns:
        The tasks that stop, and those that did not answer.

    Raises:
        UnavailableError: if nobody answers there.
    """
    response = _call(address, "Shutdown", pb.ShutdownRequest(cluster=cluster))
    return list(response.stopped), list(response.missing)


def _call(address: str, name: str, request: Any) -> Any:
    address = address.removeprefix("grpc://")
    try:
        host, _ = split_address(address)
    except ValueError:
        raise ValueError(f"{address!r} is no address of the form host:port.") from None
    security = Security.from_environment()
    security.check_address(host)
    control = Control(address, security)
    try:
        return control.call(name, request, _SECONDS)
    finally:
        control.close()
