"""Clusters of real processes for `distributed.py`: started, asked, and always ended.

Every task is a process in a group of its own. Its standard input is a pipe held by this process,
whose end ends the task: nothing is left over, even when the benchmark is killed. The same holds
for network namespaces, which have no names and live as long as the process that holds them.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import re
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from distributed_workloads import Workload
from side import environment_of, free_ports

HERE = Path(__file__).resolve().parent
START_SECONDS = 120.0
POLL_SECONDS = 0.5
LOG_LINES = 12
WARM_UP_STEPS = 3  # of workers that can make them only together
SAYS_NOTHING = re.compile(r"^(WARNING: All log|I\d{4} |$)")


class SideError(Exception):
    """A task that failed, ended or fell silent, with the end of its log."""


class NotAllowed(Exception):
    """What this machine does not let us do, and why."""


def end_group(process: subprocess.Popen) -> None:
    """Kill the process and all that it started, and wait for it."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(BrokenPipeError):
                pipe.close()


class Namespaces:
    """Two network namespaces joined by a veth pair; the first holds servers, the second workers."""

    addresses = ("10.73.0.1", "10.73.0.2")

    def __init__(self) -> None:
        missing = [tool for tool in ("ip", "unshare", "nsenter") if shutil.which(tool) is None]
        if missing:
            raise NotAllowed(f"network namespaces need {' and '.join(missing)}")
        if os.geteuid() != 0:
            raise NotAllowed("network namespaces need root")
        self._holders: list[subprocess.Popen] = []
        try:
            for _ in self.addresses:
                self._holders.append(self._hold())
            peer = str(self._holders[1].pid)
            self._ip(0, f"link add name hr0 type veth peer name hr0 netns {peer}")
            for i, address in enumerate(self.addresses):
                self._ip(i, f"address add {address}/24 dev hr0")
                self._ip(i, "link set hr0 up")
                self._ip(i, "link set lo up")
        except BaseException:
            self.close()
            raise

    @staticmethod
    def _hold() -> subprocess.Popen:
        holder = subprocess.Popen(
            ["unshare", "--net", "sh", "-c", "echo; exec cat"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        assert holder.stdout is not None
        assert holder.stderr is not None
        if not holder.stdout.readline():
            reason = holder.stderr.read().decode().strip()
            end_group(holder)
            raise NotAllowed(f"network namespaces: {reason}")
        return holder

    def inside(self, which: int) -> list[str]:
        """The command that runs another one inside."""
        return ["nsenter", f"--net=/proc/{self._holders[which].pid}/ns/net", "--"]

    def _ip(self, which: int, arguments: str) -> None:
        command = [*self.inside(which), "ip", *arguments.split()]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise NotAllowed(f"ip {arguments}: {done.stderr.strip()}")

    def close(self) -> None:
        for holder in self._holders:
            end_group(holder)


@dataclass
class TaskProcess:
    """One task: its process, the lines it answers and its log."""

    name: str
    process: subprocess.Popen
    log: Path
    lines: queue.Queue[str | None] = field(default_factory=queue.Queue)

    def __post_init__(self) -> None:
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with contextlib.suppress(ValueError):
            for line in self.process.stdout:
                self.lines.put(line)
        self.lines.put(None)

    def ask(self, **request: Any) -> None:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise self.failure("has ended") from None

    def answer(self, timeout: float, others: Sequence[TaskProcess] = ()) -> dict:
        """The next answer.

        Raises:
            SideError: the task answered with an error or was silent for `timeout` seconds, or it or
                one of the `others` ended.
        """
        deadline = time.monotonic() + timeout
        while True:
            try:
                line = self.lines.get(timeout=min(POLL_SECONDS, timeout))
                break
            except queue.Empty:
                for other in others:
                    other.require_running()
                if time.monotonic() >= deadline:
                    silence = self.failure(f"gave no answer in {timeout:g} s")
                    logs = [str(one.failure("logged")) for one in others if one is not self]
                    raise SideError("\n".join([str(silence), *logs])) from None
        if line is None:
            raise self.failure(f"ended with status {self.process.wait()}")
        answer = json.loads(line)
        if "error" in answer:
            raise self.failure(f"failed: {answer['error'].splitlines()[0]}")
        return answer

    def require_running(self) -> None:
        status = self.process.poll()
        if status is not None:
            raise self.failure(f"ended with status {status}")

    def failure(self, what: str) -> SideError:
        lines = self.log.read_text(errors="replace").splitlines()
        tail = [line for line in lines if not SAYS_NOTHING.match(line)][-LOG_LINES:]
        return SideError("\n    ".join([f"{self.name} {what}", *tail]))

    def memory(self, key: str) -> int:
        """Bytes of VmRSS (now) or VmHWM (at the peak)."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        found = re.search(rf"^{key}:\s+(\d+) kB", status, re.MULTILINE)
        if found is None:
            raise self.failure(f"shows no {key}")
        return int(found[1]) * 1024


class Cluster:
    """All tasks of one side for one workload, warmed up and waiting for requests."""

    def __init__(
        self,
        side: str,
        python: str,
        workload: Workload,
        directory: Path,
        namespaces: Namespaces | None,
        timeout: float,
    ) -> None:
        self.side, self._timeout = side, timeout
        self._lockstep = workload.lockstep
        self._tasks: list[TaskProcess] = []
        environment = environment_of(HERE.parent if side == "headrace" else None)
        environment |= workload.environment if side == "headrace" else {}
        hosts = namespaces.addresses if namespaces else ("127.0.0.1", "127.0.0.1")
        ports = free_ports(workload.servers + workload.workers)
        addresses = {
            "ps": [f"{hosts[0]}:{port}" for port in ports[: workload.servers]],
            "worker": [f"{hosts[1]}:{port}" for port in ports[workload.servers :]],
        }
        try:
            for place, job in enumerate(addresses):
                prefix = namespaces.inside(place) if namespaces else []
                for index in range(len(addresses[job])):
                    spec = {"job": job, "index": index, "cluster": addresses}
                    spec |= {"build": workload.build, "arguments": workload.arguments}
                    spec |= {"lockstep": workload.lockstep}
                    script = str(HERE / "distributed_side.py")
                    command = [*prefix, python, script, side, json.dumps(spec)]
                    core = index if workload.core_each and job == "worker" else None
                    self._start(f"{job}{index}", command, environment, directory, core)
            hellos = self._answers(self._tasks, START_SECONDS)
            self.version: str = hellos[0]["version"]
            self.servers = self._tasks[: workload.servers]
            self.workers = self._tasks[workload.servers :]
            self.resting = self.servers[0].memory("VmRSS")
            # The first worker sets the variables; the others find them set.
            self._all([self.workers[0]], do="build")
            self._all(self.workers[1:], do="build")
            if workload.lockstep:
                self.time(0.0, WARM_UP_STEPS)
        except BaseException:
            self.close()
            raise

    def _start(
        self, task: str, command: list[str], environment: dict, directory: Path, core: int | None
    ) -> None:
        """Start a task, on all cores or on that one, counted around those that there are."""
        cores = sorted(os.sched_getaffinity(0))
        allowed = cores if core is None else [cores[core % len(cores)]]
        log = directory / f"{self.side}-{task}-{time.monotonic_ns()}.log"
        with log.open("w") as errors:
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env=environment,
                start_new_session=True,
                preexec_fn=partial(os.sched_setaffinity, 0, allowed),
            )
        self._tasks.append(TaskProcess(f"{self.side} {task}", process, log))

    def _all(self, tasks: Sequence[TaskProcess], **request: Any) -> list[dict]:
        """Ask tasks at once, and gather their answers."""
        for task in tasks:
            task.ask(**request)
        return self._answers(tasks, self._timeout)

    def _answers(self, tasks: Sequence[TaskProcess], timeout: float) -> list[dict]:
        return [task.answer(timeout, self._tasks) for task in tasks]

    def time(self, seconds: float, least: int) -> list[list[float]]:
        """All workers at once run steps for so long; the seconds of each step by worker.

        Workers in lockstep run ``least`` steps, however long they take.
        """
        seconds = 0.0 if self._lockstep else seconds
        answers = self._all(self.workers, do="time", seconds=seconds, least=least)
        return [answer["seconds"] for answer in answers]

    def check(self) -> None:
        """Raise SideError unless the steps so far did what they should."""
        self._all([self.workers[0]], do="check")

    def close(self) -> None:
        for task in self._tasks:
            end_group(task.process)
