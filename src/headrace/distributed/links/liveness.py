"""Whether a silent task is alive: its gRPC port is asked.

A process whose interpreter is held by one long C call sends no heartbeat, but it is not dead. The
threads of gRPC's C core need no interpreter: they take a connection and answer its first frames. A
process that has ended, is stopped, or cannot be reached, does not.

    >>> from headrace.distributed.security.credentials import Security
    >>> server = tf.train.Server.create_local_server()
    >>> answers(server.target.removeprefix("grpc://"), Security(), timeout=10.0)
    True
    >>> server.stop()
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable

import grpc

from headrace.distributed.cluster.cluster_spec import split_address
from headrace.distributed.security.credentials import Security

__all__ = ["Probe", "answers", "is_nobody_at"]

#: ``probe(task, timeout)``: whether the task at the other end of a link is alive.
Probe = Callable[[str, float], bool]

#: A connection of its own: one that was made before says nothing of now.
_OPTIONS = [("grpc.use_local_subchannel_pool", 1), ("grpc.enable_http_proxy", 0)]


def answers(address: str, security: Security, timeout: float) -> bool:
    """Whether what listens at ``host:port`` takes a gRPC connection within ``timeout`` seconds."""
    credentials = security.channel_credentials()
    if credentials is None:
        channel = grpc.insecure_channel(address, options=_OPTIONS)
    else:
        channel = grpc.secure_channel(address, credentials, options=_OPTIONS)
    with channel, contextlib.suppress(grpc.FutureTimeoutError):
        grpc.channel_ready_future(channel).result(timeout=timeout)
        return True
    return False


def is_nobody_at(address: str, timeout: float) -> bool:
    """Whether it is certain that no process listens at ``host:port``.

    A machine that cannot be reached, or is slow, is no proof of that.
    """
    try:
        socket.create_connection(split_address(address), timeout).close()
    except OSError as error:
        return isinstance(error, ConnectionRefusedError)
    return False
