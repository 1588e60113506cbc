"""Clusters whose tasks are processes of their own, to be killed, frozen and started again."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import headrace as tf
from headrace.errors import OpError
from headrace.test.cluster import free_ports

#: However busy the machine is, a process has started or ended within so many seconds.
PATIENCE = 40.0

_SERVE = """
import json, sys
import headrace as tf
cluster = tf.train.ClusterSpec(json.loads(sys.argv[1]), replicas=int(sys.argv[4]))
server = tf.train.Server(cluster, job_name=sys.argv[2], task_index=int(sys.argv[3]))
print("ready", flush=True)
server.join()
print("joined", flush=True)
"""


def eventually(what: Callable[[], Any], seconds: float = PATIENCE) -> float:
    """Seconds until ``what()`` was true."""
    began = time.monotonic()
    while not what():
        assert time.monotonic() - began < seconds, "it does not come about"
        threading.Event().wait(0.01)
    return time.monotonic() - began


class Tasks:
    """The processes of a cluster.

    Args:
        jobs: how many tasks each job has.
        prefix: before the command of a process, by task: to run it elsewhere.
        hosts: the address of each task; a free port of 127.0.0.1 when not given.
        environ: more variables for all of them.
        replicas: how many copies of their variables the servers have.
    """

    def __init__(
        self,
        jobs: dict[str, int],
        prefix: Callable[[str, int], Sequence[str]] = lambda job, index: (),
        hosts: dict[str, list[str]] | None = None,
        environ: dict[str, str] | None = None,
        replicas: int = 0,
    ) -> None:
        ports = iter(free_ports(sum(jobs.values())))
        self.addresses = hosts or {
            job: [f"127.0.0.1:{next(ports)}" for _ in range(count)] for job, count in jobs.items()
        }
        self.processes: dict[tuple[str, int], subprocess.Popen[str]] = {}
        self._prefix = prefix
        self._environ = environ or {}
        self.replicas = replicas
        self.start(*((job, i) for job, count in jobs.items() for i in range(count)))

    def start(self, *tasks: tuple[str, int]) -> None:
        """Start tasks, and wait until they run."""
        for job, index in tasks:
            arguments = (json.dumps(self.addresses), job, str(index), str(self.replicas))
            self.processes[job, index] = self.run(self._prefix(job, index), _SERVE, *arguments)
        for task in tasks:
            line = self.processes[task].stdout.readline()
            assert line == "ready\n", (task, line)

    def run(
        self, prefix: Sequence[str], program: str, *args: str, stdin: int | None = None
    ) -> subprocess.Popen[str]:
        """A process of a program."""
        return subprocess.Popen(
            [*prefix, sys.executable, "-c", program, *args],
            stdin=stdin,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "JAX_PLATFORMS": "cpu", **self._environ},
        )

    def target(self, job: str, index: int = 0) -> str:
        """For `tf.Session`."""
        return f"grpc://{self.addresses[job][index]}"

    def signal(self, job: str, index: int, number: int) -> None:
        """Send a signal to a task."""
        self.processes[job, index].send_signal(number)

    def kill(self, job: str, index: int = 0) -> None:
        """kill -9, and the end of the process."""
        process = self.processes.pop((job, index))
        process.kill()
        process.wait(PATIENCE)
        process.stdout.close()

    def terminate_all(self) -> dict[tuple[str, int], tuple[int, str]]:
        """SIGTERM to all: their exit codes and last words."""
        for process in self.processes.values():
            process.send_signal(signal.SIGTERM)
        ends = {}
        for task, process in self.processes.items():
            words, _ = process.communicate(timeout=PATIENCE)
            ends[task] = (process.returncode, words)
        self.processes.clear()
        return ends

    def kill_all(self) -> None:
        """The end of all, whatever state they are in."""
        for task in list(self.processes):
            self.kill(*task)


class Training:
    """A client that trains in a thread of its own until an error comes.

    Each step adds one to a variable on each of the servers ``on``, by way of a worker.
    """

    _numbers = itertools.count()

    def __init__(self, tasks: Tasks, worker: int, on: Sequence[int]) -> None:
        self.graph = tf.Graph()
        number = next(self._numbers)  # variables of one name are shared by all clients
        variables = []
        updates = []
        with self.graph.as_default():
            for i in on:
                with tf.device(f"/job:ps/task:{i}"):
                    v = tf.get_variable(f"v{number}_{i}", initializer=0.0, use_resource=True)
                    read = tf.identity(v.read_value())
                with tf.device(f"/job:worker/task:{worker}"):
                    more = read * 0.0 + 1.0
                with tf.device(f"/job:ps/task:{i}"):
                    updates.append(v.assign_add(more, read_value=False))
                variables.append(v)
            self.step = tf.group(*updates)
            self.values = [v.read_value() for v in variables]
            self.init = tf.global_variables_initializer()
        self.target = tasks.target("worker", worker)
        self.steps = 0
        self.error: OpError | None = None
        self.failed_at = 0.0
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self.session: Any = None

    def open(self, init: bool = True) -> Training:
        """A new session, and a first step."""
        self.session = tf.Session(self.target, graph=self.graph)
        if init:
            self.session.run(self.init)
            self.steps = 0
        self.session.run(self.step)
        self.steps += 1
        return self

    def go(self) -> Training:
        """Train from now on."""
        self._stop.clear()
        self.error = None
        self._thread = threading.Thread(target=self._train, daemon=True)
        self._thread.start()
        return self

    def _train(self) -> None:
        while not self._stop.is_set():
            try:
                self.session.run(self.step)
                self.steps += 1
            except OpError as error:
                self.failed_at = time.monotonic()
                self.error = error
                return

    def pause(self) -> None:
        """Stop training."""
        self._stop.set()
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive(), "a step hangs"

    def failure(self, since: float) -> tuple[OpError, float]:
        """The error that comes, and how many seconds after ``since``."""
        eventually(lambda: self.error is not None)
        self._thread.join(PATIENCE)
        return self.error, self.failed_at - since

    def goes_on(self) -> None:
        """More steps are made, without an error."""
        now = self.steps
        eventually(lambda: self.steps > now + 3 or self.error is not None)
        assert self.error is None, self.error
