"""Clusters of servers in one process."""

from __future__ import annotations

import secrets
import socket
from contextlib import ExitStack
from typing import Any

__all__ = ["create_local_cluster", "free_ports"]


def create_local_cluster(
    num_workers: int,
    num_ps: int,
    protocol: str = "grpc",
    worker_config: Any = None,
    ps_config: Any = None,
) -> tuple[list[Any], list[Any]]:
    """Start the servers of a cluster on this machine.

    Args:
        num_workers: tasks of job ``worker``.
        num_ps: tasks of job ``ps``.
        protocol: how they talk.
        worker_config: a ConfigProto for workers.
        ps_config: a ConfigProto for parameter servers.

    Returns:
        ``(workers, parameter servers)``: two lists of `tf.train.Server`.

    Raises:
        ValueError: for an unknown protocol.
    """
    from headrace.distributed.cluster.cluster_spec import ClusterSpec
    from headrace.distributed.services.server import Server

    ports = free_ports(num_workers + num_ps)
    hosts = [f"localhost:{port}" for port in ports]
    spec = ClusterSpec({"worker": hosts[:num_workers], "ps": hosts[num_workers:]})

    def start(job: str, count: int, config: Any) -> list[Any]:
        return [
            Server(spec, job_name=job, task_index=i, protocol=protocol, config=config)
            for i in range(count)
        ]

    return start("worker", num_workers, worker_config), start("ps", num_ps, ps_config)


#: Below those that systems give to connections: one would be taken between its choice and its use.
_PORTS = range(10_000, 32_000)


def free_ports(count: int) -> list[int]:
    """Ports that are free now, all different: each is held until all are found."""
    with ExitStack() as held:
        ports: list[int] = []
        while len(ports) < count:
            probe = held.enter_context(socket.socket())
            port = secrets.choice(_PORTS)
            try:
                probe.bind(("localhost", port))
            except OSError:
                continue
            ports.append(port)
        return ports
