"""Clusters of Slurm: each process of a step is a task, by its number there.

`srun` starts the same command as often as there are tasks. Each reads from Slurm's variables which
hosts there are and which of the tasks it is; nobody has to be asked, so ports are counted from a
number that follows from the job.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from headrace.distribute.cluster_resolver import slurm_counts, slurm_hosts
from headrace.distributed.cluster.cluster_spec import ClusterSpec
from headrace.launch.job import CHIEF, EVALUATOR, SERVER, WORKER, LaunchJob, TaskId

__all__ = ["OtherWorkers", "SlurmTask", "slurm_task"]

#: Ports below those that systems give out by themselves, apart for 200 steps of a host.
_FIRST_PORT, _STEPS, _TASKS = 20_000, 200, 50
#: Seconds between two looks whether others are there; in which all have begun.
_LOOK_EVERY, _COME_WITHIN = 0.5, 60.0


@dataclass(frozen=True)
class SlurmTask:
    """What one process of a step is.

    Attributes:
        job: with as many workers as there are processes for.
        addresses: of all tasks. task: this one.
    """

    job: LaunchJob
    addresses: dict[str, list[str]]
    task: TaskId


def slurm_task(
    job: LaunchJob, environ: Mapping[str, str], workers: int | None, port: int | None = None
) -> SlurmTask:
    """Which task of a cluster this process of a step is.

    Args:
        workers: how many were asked for; None takes all processes that are left.
        port: of the first task of each host; the next ones count up.

    Raises:
        ValueError: outside of a step, if it has another number of processes, or if variables
            cannot be understood; the message names them.

    >>> variables = {"SLURM_PROCID": "2", "SLURM_JOB_ID": "7", "SLURM_STEP_NODELIST": "n[1-2]",
    ...              "SLURM_STEP_TASKS_PER_NODE": "2,1"}
    >>> found = slurm_task(LaunchJob("train.py", ps=1), variables, None, port=9000)
    >>> found.addresses, str(found.task)
    ({'ps': ['n1:9000'], 'worker': ['n1:9001', 'n2:9000']}, 'worker/1')
    """
    rank = _number(environ, "PROCID")
    hosts = slurm_hosts(_read(environ, "STEP_NODELIST", "JOB_NODELIST"))
    counts = slurm_counts(_read(environ, "STEP_TASKS_PER_NODE", "TASKS_PER_NODE"))
    if len(hosts) != len(counts):
        raise ValueError(
            f"Slurm names {len(hosts)} hosts, but numbers of tasks for {len(counts)}: "
            "SLURM_STEP_NODELIST and SLURM_STEP_TASKS_PER_NODE do not fit."
        )
    first = _first_port(environ) if port is None else port
    places = [
        f"{host}:{first + i}" for host, n in zip(hosts, counts, strict=True) for i in range(n)
    ]
    others = job.ps + int(job.evaluator)
    left = len(places) - others
    if left < 1 or (workers is not None and workers != left):
        wanted = f"{workers} workers" if workers is not None else "at least one worker"
        raise ValueError(
            f"The step has {len(places)} processes (srun --ntasks), which cannot be {job.ps} "
            f"parameter servers, {int(job.evaluator)} evaluators and {wanted}."
        )
    job = replace(job, workers=left)
    if not 0 <= rank < len(places):
        raise ValueError(f"SLURM_PROCID is {rank}, but the step has {len(places)} processes.")
    addresses: dict[str, list[str]] = {}
    for task, address in zip(job.tasks, places, strict=True):
        if task.job != EVALUATOR:
            addresses.setdefault(task.job, []).append(address)
    ClusterSpec(addresses)  # whether there can be one at these
    return SlurmTask(job, addresses, job.tasks[rank])


class OtherWorkers:
    """The workers that the first one waits for at its end, before it ends the servers.

    One that is not there may have ended, or not have begun: `watch` sees who has come.

    Args:
        place: this process.
        answers: whether a task is there, by its address.
        wait: for so many seconds; ``clock`` counts them.

    Attributes:
        leads: whether this process is the first worker, who does it.
    """

    def __init__(
        self,
        place: SlurmTask,
        answers: Callable[[str], bool],
        wait: Callable[[float], object] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        leader = TaskId(CHIEF if place.job.chief else WORKER, 0)
        self.leads = place.task == leader
        self._servers = place.addresses.get(SERVER, [])
        workers = [*place.addresses.get(CHIEF, []), *place.addresses.get(WORKER, [])]
        self._workers = [a for a in workers if a != place.addresses[leader.job][0]]
        self._answers, self._wait, self._clock = answers, wait, clock
        self._unseen = set(self._workers) if self.leads else set()
        self._until = clock() + _COME_WITHIN

    def watch(self) -> None:
        """Look, from the start on, until all have been there once, or are late."""
        while self._unseen and self._clock() < self._until:
            self._unseen = {a for a in self._unseen if not self._answers(a)}
            self._wait(_LOOK_EVERY)

    def end_servers(self, shut_down: Callable[[str], object]) -> None:
        """Wait until no other worker is there any more, and end the servers; after `watch`.

        Args:
            shut_down: ends a task, by its address.
        """
        if not self.leads:
            return
        for address in self._workers:
            while self._answers(address):
                self._wait(_LOOK_EVERY)
        for address in self._servers:
            shut_down(address)


def _first_port(environ: Mapping[str, str]) -> int:
    job = _number(environ, "JOB_ID")
    step = _number(environ, "STEP_ID") if environ.get("SLURM_STEP_ID") else 0
    return _FIRST_PORT + (7 * job + step) % _STEPS * _TASKS


def _read(environ: Mapping[str, str], *names: str) -> str:
    for name in names:
        if found := environ.get(f"SLURM_{name}"):
            return found
    raise ValueError(
        f"SLURM_{names[0]} is not set: start the command by srun, once for each task, as in "
        "`srun --ntasks 6 headrace launch --on slurm --ps 2 train.py`."
    )


def _number(environ: Mapping[str, str], name: str) -> int:
    text = _read(environ, name)
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"SLURM_{name} is {text!r}, which is no number.") from None
