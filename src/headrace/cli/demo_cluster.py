"""The cluster part of `headrace demo`: starts the processes, shows how far they are, ends them."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import click
from rich.console import Console
from rich.progress import Progress

from headrace.cli.demo_run import Run, progress_display
from headrace.cli.demo_task import Job
from headrace.distributed.services import admin
from headrace.errors import OpError
from headrace.launch.processes import words_of
from headrace.test.cluster import free_ports

POLL_SECONDS = 0.2
STOP_SECONDS = 5.0
LOG_LINES = 12


@dataclass(frozen=True)
class TaskProcess:
    """A task of the cluster, its process and what it writes."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path

    def end(self) -> str:
        """How the process has ended, with the last lines of its log; "" while it runs."""
        status = self.process.poll()
        if status is None:
            return ""
        text = self.log.read_text(encoding="utf-8", errors="replace").strip()
        tail = "\n".join(f"    {line}" for line in text.splitlines()[-LOG_LINES:])
        return (
            f"{self.name} has ended: {words_of(status)}; its log {self.log} ends with\n"
            f"{tail or '    nothing'}"
        )


class Processes:
    """The processes of a cluster on this machine; use it in a `with` statement.

    Nothing is left over after the statement, however it ends. Should this process be killed, the
    others notice that their standard input is closed, and end too.

    Args:
        jobs: how many tasks each job has; there must be one "chief".
        argument: what each process is told.
        log_dir: folder for one log file per task.
    """

    def __init__(self, jobs: dict[str, int], argument: str, log_dir: Path) -> None:
        self._jobs = jobs
        self._argument = argument
        self._log_dir = log_dir
        self._lines: queue.Queue[bytes] = queue.Queue()
        self.tasks: list[TaskProcess] = []
        self._chief = ""
        self._reader: threading.Thread | None = None
        self._done = False

    def __enter__(self) -> Processes:
        """Start all tasks."""
        cluster = local_cluster(self._jobs)
        self._chief = cluster["chief"][0]
        try:
            self._log_dir.mkdir(parents=True, exist_ok=True)
            for job, addresses in cluster.items():
                for index in range(len(addresses)):
                    self._start(cluster, job, index)
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def _start(self, cluster: dict[str, list[str]], job: str, index: int) -> None:
        name = f"{job}/{index}"
        path = self._log_dir / f"{job}-{index}.log"
        config = {"cluster": cluster, "task": {"type": job, "index": index}}
        # Several processes share one GPU: none may take all of its memory at once.
        environment = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", **os.environ}
        with path.open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "headrace.cli.demo_task", self._argument],
                env={**environment, "TF_CONFIG": json.dumps(config)},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE if job == "chief" else log,
                stderr=log,
                # Ctrl-C is for this process alone, which then ends the others.
                start_new_session=True,
            )
        self.tasks.append(TaskProcess(name, process, path))
        if job == "chief":
            self._reader = threading.Thread(target=self._read, args=(process,), daemon=True)
            self._reader.start()

    def _read(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            self._lines.put(line)

    def reports(self) -> Iterator[dict[str, Any]]:
        """What the chief reports, until the cluster is done.

        Raises:
            click.ClickException: if a process has ended before; says which, how, and the end of
                its log.
        """
        while not self._done:
            if any(task.process.poll() is not None for task in self.tasks):
                raise click.ClickException(self._story())
            try:
                report = json.loads(self._lines.get(timeout=POLL_SECONDS))
            except queue.Empty:
                continue
            self._done = report["event"] == "done"
            yield report

    def _story(self) -> str:
        """Which processes have ended and how; that which was killed comes first."""
        # The death of one task ends others within moments; they belong to the story.
        time.sleep(POLL_SECONDS)
        ended = [task for task in self.tasks if task.process.poll() is not None]
        ended.sort(key=lambda task: task.process.returncode >= 0)
        return "The cluster has failed. " + "\n".join(task.end() for task in ended)

    def stop(self) -> None:
        """End all processes: by a shutdown of the cluster if it is done, else by signals."""
        if self._done:
            with contextlib.suppress(OpError):
                admin.shutdown(self._chief)
                self._wait()
        for task in self.tasks:
            if task.process.poll() is None:
                task.process.terminate()
        self._wait()
        for task in self.tasks:
            if task.process.poll() is None:
                task.process.kill()
            task.process.wait()
        if self._reader is not None:
            self._reader.join()
        for task in self.tasks:
            for stream in (task.process.stdin, task.process.stdout):
                if stream is not None:
                    stream.close()

    def _wait(self) -> None:
        """Give the processes some seconds to end."""
        limit = time.monotonic() + STOP_SECONDS
        for task in self.tasks:
            with contextlib.suppress(subprocess.TimeoutExpired):
                task.process.wait(max(0.0, limit - time.monotonic()))


def local_cluster(jobs: dict[str, int]) -> dict[str, list[str]]:
    """An address on this machine for each task, at ports that are free now."""
    ports = iter(free_ports(sum(jobs.values())))
    return {job: [f"127.0.0.1:{next(ports)}" for _ in range(tasks)] for job, tasks in jobs.items()}


def train_on_cluster(
    runs: list[Run], job: Job, workers: int, parameter_servers: int, console: Console
) -> list[Run]:
    """Train the models on a cluster of processes on this machine.

    Args:
        runs: what training the models in one process gave, to compare with.
        job: what the cluster is to do.
        workers: how many processes compute gradients.
        parameter_servers: how many processes own the variables.
        console: where progress and placement are shown.

    Returns:
        For each model, what training it on the cluster gave; reloading is not tested yet.

    Raises:
        click.ClickException: if one of the processes ends before the others are done.
    """
    jobs = {"ps": parameter_servers, "worker": workers, "chief": 1}
    place = f"{_counted(workers, 'worker')}, {_counted(parameter_servers, 'server')}"
    found = {run.name: Run(run.name, run.target, place=place, reference=run) for run in runs}
    argument = json.dumps(asdict(job))
    console.print(
        f"Cluster of processes: {_counted(parameter_servers, 'parameter server')}, "
        f"{_counted(workers, 'worker')}, a chief."
    )
    processes = Processes(jobs, argument, Path(job.output_dir) / "logs")
    with processes as cluster, progress_display(console) as progress:
        shown = _Display(progress, workers)
        for report in cluster.reports():
            if report["event"] != "done":
                run = found[report["model"]]
                record(run, report)
                shown.show(run, report)
    return list(found.values())


def _counted(count: int, noun: str) -> str:
    """A number of things.

    >>> _counted(2, "worker")
    '2 workers'
    """
    return f"{count} {noun}{'s' if count > 1 else ''}"


def record(run: Run, report: dict[str, Any]) -> None:
    """Take what the chief reports into the result of a model."""
    if report["event"] == "progress":
        # A worker that has told nothing yet has no loss.
        losses = [worker["loss"] for worker in report["workers"] if worker["steps"]]
        if losses:
            run.add(report["step"], sum(losses) / len(losses), report["accuracy"])
    elif report["event"] == "saved":
        run.checkpoint = report["checkpoint"]
        run.rate = report["rate"]
        run.seconds = report["seconds"]


class _Display:
    """Lines of the live display: one for the chief, and one for each worker."""

    def __init__(self, progress: Progress, workers: int) -> None:
        self._progress = progress
        self._count = workers
        self._chief: Any = None
        self._workers: list[Any] = []

    def show(self, run: Run, report: dict[str, Any]) -> None:
        """Show one more report."""
        if report["event"] == "model":
            for server, variables in sorted(report["placement"].items()):
                self._progress.console.print(
                    f"[dim]{run.name}: {server} owns {', '.join(variables)}[/]", highlight=False
                )
            total = report["steps"]
            self._chief = self._add(f"{run.name}: chief", total)
            self._workers = [self._add(f"  worker {i}", total) for i in range(self._count)]
        elif report["event"] == "progress":
            self._progress.update(
                self._chief,
                completed=report["step"],
                state=f"accuracy {report['accuracy']:.3f}",
                rate=f"{report['rate']:.0f} steps/s",
            )
            for line, worker in zip(self._workers, report["workers"], strict=True):
                self._progress.update(
                    line,
                    completed=worker["steps"],
                    state=f"loss {worker['loss']:.3f}",
                    rate=f"{worker['rate']:.0f} steps/s",
                )
        elif report["event"] == "saved":
            for line in (self._chief, *self._workers):
                self._progress.stop_task(line)

    def _add(self, title: str, steps: int) -> Any:
        return self._progress.add_task(title, total=steps, state="", rate="")
