"""Clusters within one process, for tests: tasks joined by pipes that pass references.

    with with_cluster(ps=2, worker=2) as cluster:
        with tf.Session(cluster.target("worker", 0)) as session:
            ...

Everything of a cluster but its sockets and its control plane is the real thing.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from headrace.distributed.cluster.cluster_spec import task_name
from headrace.distributed.links.timing import DEFAULT_TIMING, Timing
from headrace.distributed.membership.addresses import Addresses
from headrace.distributed.services.client import OwnMasterEngine
from headrace.distributed.services.task import Task
from headrace.distributed.transport.base import PeerInfo, Pipe
from headrace.distributed.transport.inproc import inproc_pair
from headrace.errors import UnavailableError
from headrace.graph.proto import ConfigProto
from headrace.harness.faults import Faults
from headrace.placement.devices import DeviceAttributes, local_devices
from headrace.session.engines import register_engine

__all__ = ["LocalCluster", "with_cluster"]

_clusters: dict[str, LocalCluster] = {}
_names = itertools.count()
#: What a cluster has begun must have ended so many seconds after its sessions are closed.
_DRAIN_SECONDS = 5.0


class LocalCluster:
    """Tasks of one process.

    Args:
        jobs: how many tasks each job has.
        config: a ConfigProto: the devices of each task, and defaults of its sessions.
        timing: how long tasks wait for each other.
        faults: what happens to frames between them.
    """

    def __init__(
        self,
        jobs: dict[str, int],
        config: Any = None,
        timing: Timing = DEFAULT_TIMING,
        faults: Faults | None = None,
    ) -> None:
        self.timing = timing
        self.faults = faults
        if faults is not None:
            faults.on_restart = self.restart
        self.name = str(next(_names))
        self.config = ConfigProto() if config is None else config
        self._incarnations = itertools.count(1)
        self.addresses = {
            task_name(job, i): f"{job}-{i}.cluster-{self.name}:1"
            for job, count in jobs.items()
            for i in range(count)
        }
        self._known = Addresses(self.addresses)
        self.tasks: dict[str, Task] = {}
        for task in self.addresses:
            self.start(task)
        _clusters[self.name] = self

    def start(self, name: str) -> Task:
        """Start a task, perhaps again after `kill`."""
        me = PeerInfo(name, next(self._incarnations), self.addresses[name])
        devices = local_devices(self.config, name, me.incarnation)

        def dial(
            address: str, task: str, timeout: float, *, fallback: bool = True
        ) -> tuple[Pipe, PeerInfo]:
            other = self._find(task)
            here, there = self._pipes(name, task)
            other.adopt(there, me)
            return here, other.me

        made = self.tasks[name] = Task(
            me, self._known, devices, dial, self._ask_devices, self.timing
        )
        return made

    def _pipes(self, one: str, other: str) -> tuple[Pipe, Pipe]:
        here, there = inproc_pair(f"{one} to {other}")
        if self.faults is None:
            return here, there
        return self.faults.wrap(here, one, other), self.faults.wrap(there, other, one)

    def _find(self, task: str) -> Task:
        found = self.tasks.get(task)
        if found is None:
            raise UnavailableError(None, None, f"Task {task} does not run.")
        return found

    def _ask_devices(
        self, task: str, address: str, timeout: float
    ) -> tuple[int, list[DeviceAttributes]]:
        found = self._find(task)
        return found.me.incarnation, found.worker.devices

    def kill(self, name: str) -> None:
        """End a task: its links break, its state is gone."""
        self.tasks.pop(name).close()

    def crash(self, name: str) -> None:
        """End a task; with ``faults`` it says nothing more to anyone."""
        task = self.tasks.pop(name)
        if self.faults is not None:
            self.faults.isolate(name)
        task.close()

    def restart(self, name: str) -> None:
        """Let a task crash and start it again."""
        self.crash(name)
        self.start(name)

    def target(self, job: str, index: int = 0) -> str:
        """For `tf.Session`: that task as the master."""
        return f"cluster://{self.name}{task_name(job, index)}"

    def leftovers(self) -> list[str]:
        """What steps have left behind: nothing, once they have ended."""
        found = []
        for name, task in self.tasks.items():
            found += [f"{name}: step {t.number:016x} is open" for t in task.steps.open()]
            found += [f"{name}: part of {c.number:016x} runs" for c in task.worker.running()]
            if task.worker.machine.held:
                found.append(f"{name}: tensors of {task.worker.machine.held} steps are held")
        return found

    def close(self) -> None:
        """End all tasks."""
        _clusters.pop(self.name, None)
        for name in list(self.tasks):
            self.kill(name)


@contextmanager
def with_cluster(
    config: Any = None,
    timing: Timing = DEFAULT_TIMING,
    faults: Faults | None = None,
    **jobs: int,
) -> Iterator[LocalCluster]:
    """A cluster of ``jobs`` (``ps=2, worker=2``) in this process. See `LocalCluster`.

    Raises:
        AssertionError: at the end, if steps, tensors or threads are left.
    """
    before = set(threading.enumerate())
    cluster = LocalCluster(jobs, config, timing, faults)
    try:
        yield cluster
        _await("still there", cluster.leftovers)
    finally:
        cluster.close()
    _await("threads", lambda: _threads_since(before))


def _threads_since(before: set[threading.Thread]) -> list[str]:
    """Threads of links and tasks; those of the pool stay for later steps."""
    return [
        t.name
        for t in threading.enumerate()
        if t not in before
        and t.name.startswith("headrace")
        and not t.name.startswith("headrace unit")
    ]


def _await(what: str, left: Any) -> None:
    """Wait for a list to become empty: answers may be a little before what they follow from."""
    end = time.monotonic() + _DRAIN_SECONDS
    found = left()
    pause = threading.Event()
    while found:
        assert time.monotonic() < end, f"{what}: {found}"
        pause.wait(0.002)
        found = left()


def open_engine(target: str, graph: Any, config: Any) -> OwnMasterEngine:
    """The engine of ``cluster://name/job:j/replica:0/task:i``."""
    name, _, task = target.partition("://")[2].partition("/")
    cluster = _clusters[name]
    merged = ConfigProto()
    merged.CopyFrom(cluster.config)
    if config is not None:
        merged.MergeFrom(config)
    return OwnMasterEngine(cluster.tasks["/" + task], graph, merged)


register_engine("cluster", "headrace.harness.cluster:open_engine")
