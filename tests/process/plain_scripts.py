"""Plain scripts run by workers of a cluster of processes, as `headrace launch` runs them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from task_processes import PATIENCE, Tasks

from headrace.test.cluster import free_ports


class Launched:
    """A script, run by workers beside parameter servers, and what each of them has printed.

    Args:
        script: the file.
        mode: what ``HEADRACE_DATA_PARALLEL`` says.
        folder: where the workers run.
    """

    def __init__(
        self,
        script: Path,
        mode: str,
        folder: Path,
        workers: int = 2,
        servers: int = 1,
        args: Sequence[str] = (),
    ) -> None:
        ports = free_ports(workers + servers)
        hosts = [f"127.0.0.1:{port}" for port in ports]
        self.cluster = {"worker": hosts[:workers]}
        if servers:
            self.cluster["ps"] = hosts[workers:]
        # Servers write their parts of checkpoints, below the folder of the workers.
        there = ("env", "-C", str(folder))
        tasks = Tasks({"ps": 0}, lambda *_: there, hosts=self.cluster) if servers else None
        self._servers = tasks
        self._script, self._mode, self._folder, self._args = script, mode, folder, args
        self.processes = [self.start(i) for i in range(workers)]
        if self._servers is not None:
            self._servers.start(*(("ps", i) for i in range(servers)))

    def start(self, worker: int) -> subprocess.Popen[str]:
        """The process of a worker."""
        task = {"cluster": self.cluster, "task": {"type": "worker", "index": worker}}
        return subprocess.Popen(
            [sys.executable, str(self._script), *self._args],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self._folder,
            env={
                **os.environ,
                "JAX_PLATFORMS": "cpu",
                "TF_CONFIG": json.dumps(task),
                "HEADRACE_DATA_PARALLEL": self._mode,
                "WORKER": str(worker),
            },
        )

    def outputs(self, code: int = 0) -> list[str]:
        """What each worker has printed, when all have ended, with this exit code."""
        try:
            ends = [p.communicate(timeout=2 * PATIENCE) for p in self.processes]
        finally:
            self.close()
        self.errors = [err for _, err in ends]
        for process, (out, err) in zip(self.processes, ends, strict=True):
            assert process.returncode == code, f"{out}\n{err}"
        return [out for out, _ in ends]

    def close(self) -> None:
        """End all processes."""
        for process in self.processes:
            process.kill()
        if self._servers is not None:
            self._servers.kill_all()


def alone(script: Path, folder: Path, args: Sequence[str] = ()) -> str:
    """What a script prints that runs in one process."""
    done = subprocess.run(
        [sys.executable, str(script), *args],
        capture_output=True,
        text=True,
        cwd=folder,
        timeout=2 * PATIENCE,
        env={**os.environ, "JAX_PLATFORMS": "cpu"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
