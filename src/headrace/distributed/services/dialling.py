"""How one process finds another: who listens at an address, and a connection to it."""

from __future__ import annotations

import functools
import logging
import time
from importlib import metadata
from typing import Any, Protocol

from headrace.distributed.cluster.cluster_spec import split_address
from headrace.distributed.links.peers import Peers, is_client
from headrace.distributed.protocol import control_pb2 as pb
from headrace.distributed.security.credentials import Security
from headrace.distributed.security.throttled import Throttled
from headrace.distributed.services.control import PROTOCOL_VERSION, Controls
from headrace.distributed.transport import checksum, connect, grpc_pipe
from headrace.distributed.transport.base import Endpoint, PeerInfo, Pipe
from headrace.distributed.transport.handshake import Refused, hello_of
from headrace.errors import FailedPreconditionError, UnavailableError
from headrace.settings import flags

__all__ = ["Epochs", "ask_endpoint", "check_only_one", "dial", "release"]

_log = logging.getLogger("headrace.distributed")
_complaints = Throttled(_log)


class Epochs(Protocol):
    """What a process knows of the record of its cluster."""

    @property
    def epoch(self) -> int:
        """That of the newest record that it knows."""

    def heard(self, epoch: int, address: str) -> None:
        """The task at an address knows a record of this epoch."""


@functools.cache
def release() -> str:
    """That of Headrace, in this process."""
    return metadata.version("headrace")


def check_only_one(asker: PeerInfo, me: PeerInfo, peers: Peers) -> None:
    """Raise UnavailableError to a task whose name another one at another address has.

    Each would end the connections of the other, as if it had been started again. It may try
    again: the other one may be dead, and nobody has noticed yet.
    """
    other = peers.twin(asker)
    if other is None:
        return
    text = (
        f"Two tasks say that they are {asker.task}: one at {other.address}, which is connected "
        f"to {me.task}, and one at {asker.address}. Give each task an index of its own, and all "
        "the same description of the cluster."
    )
    _complaints.warning(("twin", asker.task, me.incarnation), "%s", text)
    raise UnavailableError(None, None, text)


def ask_endpoint(
    controls: Controls,
    address: str,
    task: str,
    timeout: float,
    me: PeerInfo | None = None,
    epochs: Epochs | None = None,
) -> Any:
    """Who listens at an address; ``me`` asks. Each learns from ``epochs`` if the other knows more.

    Raises:
        UnavailableError: if nobody does.
        FailedPreconditionError: if it is another task, or speaks another version.
    """
    request = pb.EndpointRequest(version=PROTOCOL_VERSION)
    if me is not None and not is_client(me.task):
        request.task, request.incarnation, request.address = me.task, me.incarnation, me.address
        request.epoch = epochs.epoch if epochs is not None else 0
    answer = controls.at(address).call("Endpoint", request, timeout)
    if answer.version != PROTOCOL_VERSION:
        raise FailedPreconditionError(
            None,
            None,
            f"The server at {address} speaks version {answer.version} of the protocol, this "
            f"process version {PROTOCOL_VERSION}: use the same release of Headrace everywhere.",
        )
    if task and answer.task != task:
        raise FailedPreconditionError(
            None,
            None,
            f"At {address} there should be {task}, but it is {answer.task}: the tasks were started "
            "with different descriptions of the cluster.",
        )
    if answer.package_version != release():
        _complaints.warning(
            ("release", answer.task),
            "%s at %s runs Headrace %s, this process %s: operations may compute other results "
            "there. Use the same release everywhere.",
            answer.task,
            address,
            answer.package_version or "of an unknown release",
            release(),
        )
    if epochs is not None:
        epochs.heard(answer.epoch, address)
    return answer


def dial(
    controls: Controls,
    address: str,
    task: str,
    me: PeerInfo,
    security: Security,
    timeout: float,
    use_rdma: bool | None = None,
    fallback: bool = True,
    epochs: Epochs | None = None,
) -> tuple[Pipe, PeerInfo]:
    """Connect to the task at an address, by the best transport that both ends have.

    A task whose data port cannot be reached, through a firewall perhaps, is reached through the
    port of its control plane, unless there is to be no ``fallback``.
    """
    began = time.monotonic()
    answer = ask_endpoint(controls, address, task, timeout, me, epochs)
    host = split_address(address)[0]
    endpoint = Endpoint(host, answer.port, answer.unix_name, answer.host_id)
    expected = PeerInfo(answer.task, answer.incarnation, address)
    try:
        return connect.dial(
            endpoint,
            security,
            me,
            expected,
            allow_shared_memory=flags.shared_memory,
            timeout=timeout,
            allow_unix=flags.shared_memory,
            use_rdma=use_rdma,
        )
    except UnavailableError as error:
        if not fallback:
            raise
        deadline = max(began + timeout, time.monotonic() + 1.0)
        hello = hello_of(me, expected)
        hello.checksums = checksum.wanted_between(None, host)
        try:
            control = controls.at(address)
            proof = control.proof(grpc_pipe.METHOD, timeout)
            found = grpc_pipe.connect(
                control.new_channel(), security, hello, deadline, owns_channel=True, metadata=proof
            )
        except (Refused, OSError):
            raise error from None
    _log.warning("The data port of %s cannot be reached, gRPC is used", task)
    return found
