"""Clusters of real servers in this process, on free ports of 127.0.0.1."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import Any

import headrace as tf
from headrace.distributed.security.credentials import Security
from headrace.distributed.services import server as server_module
from headrace.distributed.services.server import Server
from headrace.test.cluster import free_ports

TOKEN = "the-token-of-the-cluster"
OURS = Security(token=TOKEN.encode())
#: The control calls of a server.
SERVICE = "/headrace.distributed.Control/"
#: What is stopped must be gone within so many seconds, on a busy machine too.
_SECONDS = 20.0


def eventually(what: Callable[[], Any], seconds: float = _SECONDS) -> Any:
    """The first true value of ``what()``; its last value after ``seconds``."""
    end = time.monotonic() + seconds
    pause = threading.Event()
    while not (found := what()) and time.monotonic() < end:
        pause.wait(0.002)
    return found


class Cluster:
    """Servers of one cluster.

    Attributes:
        spec: the ClusterSpec; ``servers``: by (job, index).
    """

    def __init__(self, config: Any = None, replicas: int = 0, **jobs: int) -> None:
        ports = iter(free_ports(sum(jobs.values())))
        self.config = config
        self.spec = tf.train.ClusterSpec(
            {job: [f"127.0.0.1:{next(ports)}" for _ in range(n)] for job, n in jobs.items()},
            replicas,
        )
        self.servers: dict[tuple[str, int], Server] = {}
        # A port comes round again: it is not that of a server of this process that has stopped.
        for job in self.spec.jobs:
            server_module._stopped.difference_update(filter(None, self.spec.job_tasks(job)))

    def start(self, job: str, index: int = 0, config: Any = None) -> Server:
        """Start one task."""
        config = self.config if config is None else config
        made = Server(self.spec, job_name=job, task_index=index, config=config)
        self.servers[job, index] = made
        return made

    def start_all(self) -> Cluster:
        """Start all tasks that do not run yet."""
        for job in self.spec.jobs:
            for index in self.spec.task_indices(job):
                if (job, index) not in self.servers:
                    self.start(job, index)
        return self

    def __getitem__(self, key: tuple[str, int]) -> Server:
        return self.servers[key]

    def target(self, job: str = "worker", index: int = 0) -> str:
        """For `tf.Session`."""
        return f"grpc://{self.spec.task_address(job, index)}"

    def leftovers(self) -> list[str]:
        """What steps and clients have left behind."""
        found = []
        for (job, index), server in self.servers.items():
            if server._started:
                task, name = server.task, f"{job}:{index}"
                found += [f"{name}: step {t.number:016x}" for t in task.steps.open()]
                found += [f"{name}: part of {c.number:016x}" for c in task.worker.running()]
                found += [f"{name}: session {s.number:016x}" for s in task.master.sessions()]
                found += [f"{name}: {task.worker.plans} plans"] if task.worker.plans else []
                found += [f"{name}: held tensors"] if task.worker.machine.held else []
        return found

    def stop(self) -> None:
        """Stop all tasks."""
        for server in self.servers.values():
            server.stop()


def open_sockets() -> set[str]:
    """Sockets and shared memory of this process."""
    found = set()
    for fd in os.listdir("/proc/self/fd"):
        try:
            name = os.readlink(f"/proc/self/fd/{fd}")
        except OSError:
            continue
        if name.startswith("socket:") or "memfd" in name:
            found.add(f"{fd} {name}")
    return found


def our_threads() -> set[threading.Thread]:
    """Threads of servers and links; those of steps stay for later ones."""
    return {
        t
        for t in threading.enumerate()
        if t.name.startswith("headrace") and not t.name.startswith("headrace unit")
    }
