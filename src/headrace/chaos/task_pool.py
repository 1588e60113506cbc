"""The processes of a cluster under faults: started, killed, stopped, started again."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from headrace.chaos.schedule import Cluster
from headrace.distributed.cluster.cluster_spec import ClusterSpec
from headrace.test.cluster import free_ports

__all__ = ["Life", "TaskPool"]

#: A process that was asked to end has so many seconds.
END_SECONDS = 20.0
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Life:
    """One process, from its start to its end.

    Args:
        on_event: gets the task and what it says, in a thread of its own.
        log: where its standard error goes.

    Attributes:
        task: as ``ps/0``; "" while it has none.
        log: its standard error.
        began, ended: times of being told its task, and of its end; None before.
    """

    def __init__(self, on_event: Callable[[Life, dict[str, Any]], None], log: Path) -> None:
        self.task = ""
        self.began: float | None = None
        self.ended: float | None = None
        self.is_ready = threading.Event()
        self._on_event = on_event
        self.log = log
        environment = {
            "JAX_PLATFORMS": "cpu",
            **os.environ,
            # What several processes on few processors wait for is each other.
            "OMP_NUM_THREADS": "1",
        }
        self.process = subprocess.Popen(
            [sys.executable, "-m", "headrace.chaos.task"],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # Ctrl-C is for this process alone, which then ends the others.
            start_new_session=True,
        )
        self._readers = [
            threading.Thread(target=self._hear, daemon=True),
            threading.Thread(target=self._copy_log, daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    def tell(self, **what: Any) -> None:
        """Write a line to its standard input; one that has ended hears nothing."""
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(json.dumps(what).encode() + b"\n")
            self.process.stdin.flush()

    def signal(self, number: int) -> None:
        """Send a signal; one that has ended gets none."""
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(number)

    def memory(self) -> int:
        """Bytes that it has in memory now; 0 if it has ended."""
        try:
            text = Path(f"/proc/{self.process.pid}/statm").read_text(encoding="ascii")
        except OSError:
            return 0
        return int(text.split()[1]) * _PAGE

    def end(self, seconds: float = 0.0) -> int:
        """Its exit status, after so many seconds at most; SIGKILL if they are over."""
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        if self.ended is None:
            self.ended = time.monotonic()
        for reader in self._readers:
            reader.join()
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()
        return self.process.returncode

    def _hear(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            # A process that is killed may leave half a line.
            with contextlib.suppress(json.JSONDecodeError):
                event = json.loads(line)
                if event["event"] == "ready":
                    self.is_ready.set()
                self._on_event(self, event)

    def _copy_log(self) -> None:
        assert self.process.stderr is not None
        with self.log.open("wb") as log:
            for line in self.process.stderr:
                log.write(line)
                log.flush()


class TaskPool:
    """The tasks of a cluster, each a process.

    Args:
        cluster: how many.
        work: what each worker is told.
        directory: for logs.
        on_event: see `Life`.
        spares: processes that have imported all they need and wait to become a task.
        replicas: copies of the variables of each server, see `ClusterSpec`.
    """

    def __init__(
        self,
        cluster: Cluster,
        work: dict[str, Any],
        directory: Path,
        on_event: Callable[[Life, dict[str, Any]], None],
        spares: int = 0,
        replicas: int = 0,
    ) -> None:
        ports = iter(free_ports(len(cluster.tasks)))
        self.addresses = {
            job: [f"127.0.0.1:{next(ports)}" for _ in range(count)]
            for job, count in (("ps", cluster.servers), ("worker", cluster.workers))
        }
        self.cluster = ClusterSpec(self.addresses, replicas)
        self._work = work
        self._directory = directory
        self._on_event = on_event
        self._count = 0
        self._limit: int | None = None
        self._spares = deque(self._process() for _ in range(spares))
        self.lives: dict[str, Life] = {}
        #: Those that have ended, or were replaced.
        self.past: list[Life] = []

    def _process(self) -> Life:
        self._count += 1
        return Life(self._on_event, self._directory / f"process-{self._count}.log")

    def start(self, task: str) -> Life:
        """A process for a task; it is not waited for."""
        keeps = len(self._spares)
        life = self._spares.popleft() if keeps else self._process()
        if keeps:
            self._spares.append(self._process())
        job, _, index = task.partition("/")
        life.task, life.began = task, time.monotonic()
        life.tell(
            job=job,
            index=int(index),
            cluster=self.addresses,
            replicas=self.cluster.replicas,
            work=self._work,
        )
        self.lives[task] = life
        self._apply_limit(life)
        return life

    def limit(self, size: int | None) -> None:
        """Let no process write a file beyond so many bytes; None: as large as it likes."""
        self._limit = size
        for life in self.lives.values():
            self._apply_limit(life)

    def _apply_limit(self, life: Life) -> None:
        kind = resource.RLIMIT_FSIZE
        with contextlib.suppress(ProcessLookupError):
            most = resource.prlimit(life.process.pid, kind)[1]
            size = most if self._limit is None else self._limit
            resource.prlimit(life.process.pid, kind, (size, most))

    def end(self, task: str, number: int = signal.SIGKILL, seconds: float = END_SECONDS) -> int:
        """End the process of a task by a signal; its exit status."""
        life = self.lives.pop(task)
        life.signal(number)
        if number == signal.SIGKILL:
            life.ended = time.monotonic()
        status = life.end(seconds)
        self.past.append(life)
        return status

    def close(self) -> None:
        """The end of all, whatever state they are in."""
        for life in [*self.lives.values(), *self._spares]:
            life.process.kill()
        for life in [*self.lives.values(), *self._spares]:
            life.end()
