"""What is to be launched, and what each of its tasks is told."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from headrace.distributed.cluster.cluster_spec import ClusterSpec

__all__ = [
    "EVALUATOR",
    "LaunchJob",
    "Mode",
    "Resources",
    "TaskId",
    "environment_of",
    "task_environment",
]

Mode = Literal["async", "sync", "all-reduce"]
CHIEF, EVALUATOR, SERVER, WORKER = "chief", "evaluator", "ps", "worker"
#: Each task is told the addresses of all; numbers beyond are slips.
MOST_TASKS = 10_000


@dataclass(frozen=True, order=True)
class TaskId:
    """A task by its job and its number there.

    >>> str(TaskId("worker", 1))
    'worker/1'
    """

    job: str
    index: int

    def __str__(self) -> str:
        return f"{self.job}/{self.index}"


@dataclass(frozen=True)
class Resources:
    """What a task asks of the machine that it is placed on; a launcher on one machine ignores it.

    Args:
        cpus: processor cores.
        gpus: accelerators, whole ones.
        memory: in bytes; None asks for nothing.

    Raises:
        ValueError: for a negative number, and what is no number.
    """

    cpus: float = 1.0
    gpus: int = 0
    memory: int | None = None

    def __post_init__(self) -> None:
        for name, value in (("cpus", self.cpus), ("gpus", self.gpus), ("memory", self.memory)):
            if value is not None and not 0 <= value < math.inf:
                raise ValueError(f"A task cannot ask for {value} {name}: give 0 or more.")


@dataclass(frozen=True)
class LaunchJob:
    """A script and the cluster that runs it.

    Args:
        script: a file, or with ``as_module`` the name of a module, as `headrace run` takes them.
        arguments: its ``sys.argv[1:]``.
        ps: tasks that hold variables.
        workers: tasks that train, the chief among them; if that is elastic, those at the beginning.
        chief: give the first of them a job of its own, ``chief``, as clusters of Estimators had.
            Otherwise it is worker 0 (Estimators and strategies know that, too).
        evaluator: one more task that evaluates checkpoints; it is no part of the cluster.
        replicas: copies of the variables of each server, see `tf.train.ClusterSpec`.
        elastic: the fewest and the most workers, if others may join and leave.
        mode: how a script that knows nothing of clusters trains. By default ``async`` with servers
            and ``all-reduce`` without.
        backups: of ``sync``: so many workers are not waited for.
        as_module: what ``script`` names.
        restarts: how often one task may fail and be started again.
        resources: what the tasks of a job ask for; `Resources()` where it is not said.
        metrics_port: where the first task of each machine offers metrics to Prometheus; the next
            one there at the next port, and so on. Those that join later take any that is free.
        log_format: of the lines of logs, ``plain`` or ``json``.
        is_plain: whether the script knows nothing of clusters; None if nobody has looked, as where
            other machines have their own copy of it: then each task looks.

    Raises:
        ValueError: if there can be no such cluster; says which option to change.

    >>> job = LaunchJob("train.py", ps=1, workers=2, evaluator=True)
    >>> [str(task) for task in job.tasks]
    ['ps/0', 'worker/0', 'worker/1', 'evaluator/0']
    >>> job.data_parallel
    'async'
    """

    script: str
    arguments: tuple[str, ...] = ()
    ps: int = 0
    workers: int = 1
    chief: bool = False
    evaluator: bool = False
    replicas: int = 0
    elastic: tuple[int, int] | None = None
    mode: Mode | None = None
    backups: int = 0
    as_module: bool = False
    restarts: int = 3
    resources: Mapping[str, Resources] = field(default_factory=dict)
    metrics_port: int | None = None
    log_format: Literal["plain", "json"] = "plain"
    is_plain: bool | None = None

    def __post_init__(self) -> None:
        for wrong, text in self._rules():
            if wrong:
                raise ValueError(text)

    def _rules(self) -> Sequence[tuple[bool, str]]:
        """What cannot be, with what to do."""
        fewest, most = self.elastic or (1, self.workers)
        trains = self.chosen_mode
        alone = self.workers == 1 and not self.elastic
        return (
            (not self.script, "There is no script: name the program that each task runs."),
            (
                self.workers < 1,
                f"A cluster needs a worker to train; there are {self.workers}: "
                "--workers 1 or more.",
            ),
            (self.ps < 0, f"There cannot be {self.ps} parameter servers: --ps 0 or more."),
            (
                self.ps + max(self.workers, most) > MOST_TASKS,
                f"A launch has {MOST_TASKS} tasks at most, not {self.ps} parameter servers and "
                f"{max(self.workers, most)} workers.",
            ),
            (self.restarts < 0, f"A task cannot be restarted {self.restarts} times."),
            (self.replicas not in (0, 1), f"Servers have 0 or 1 copies, not {self.replicas}."),
            (
                self.replicas == 1 and self.ps < 2,
                "With a standby each server has its copy at another one, so there must be two: "
                f"--ps 2 or more, not {self.ps}.",
            ),
            (
                not 1 <= fewest <= most,
                f"--elastic {fewest}:{most}: the first number must be 1 or more, and the second "
                "not less.",
            ),
            (
                not fewest <= self.workers <= most,
                f"--workers {self.workers} is not within --elastic {fewest}:{most}.",
            ),
            (
                self.elastic is not None and self.ps < 1,
                "Workers come and go where servers hold the variables: --elastic needs --ps 1 or "
                "more.",
            ),
            (
                self.elastic is not None and trains == "all-reduce",
                "A group of all-reduce has a fixed number of members: leave out --elastic or "
                "--all-reduce.",
            ),
            (
                self.mode in ("async", "sync") and self.ps < 1 and not alone,
                f"Training {self.mode} needs servers for the variables: --ps 1 or more, or "
                "--all-reduce.",
            ),
            (
                self.backups < 0 or (self.backups > 0 and trains != "sync"),
                f"There cannot be {self.backups} backups in mode {trains}: they are for --sync.",
            ),
            (
                self.backups >= self.workers > 0,
                f"--backup {self.backups} leaves none of {self.workers} workers to wait for: it "
                "must be less than --workers.",
            ),
        )

    @property
    def chosen_mode(self) -> Mode:
        """The mode that is meant where none was given."""
        if self.mode is not None:
            return self.mode
        return "async" if self.ps else "all-reduce"

    @property
    def data_parallel(self) -> str:
        """``HEADRACE_DATA_PARALLEL`` of the workers; "" for one without others.

        It is "" as well for a script that distributes itself.
        """
        if self.is_plain is False or (self.ps == 0 and self.workers == 1):
            return ""
        backups = f":{self.backups}" if self.backups else ""
        return f"{self.chosen_mode}{backups}"

    @property
    def counts(self) -> dict[str, int]:
        """How many tasks each job of the cluster has at the beginning; without the evaluator."""
        found = {SERVER: self.ps, CHIEF: int(self.chief), WORKER: self.workers - int(self.chief)}
        return {job: count for job, count in found.items() if count}

    @property
    def tasks(self) -> tuple[TaskId, ...]:
        """All tasks that are started at the beginning, servers first."""
        found = [TaskId(job, i) for job, count in self.counts.items() for i in range(count)]
        return (*found, *([TaskId(EVALUATOR, 0)] if self.evaluator else []))

    def asks(self, task: TaskId) -> Resources:
        """What a task asks for."""
        return self.resources.get(task.job, Resources())


def task_environment(
    job: LaunchJob, addresses: Mapping[str, Sequence[str]], task: TaskId, contact: str = ""
) -> dict[str, str]:
    """The variables by which a process knows its cluster, and which of its tasks it is.

    Args:
        addresses: ``host:port`` of each task of each job, as `LaunchJob.counts` numbers them; those
            of workers that have come later behind.
        contact: for such a worker the address of a task that it joins the cluster by.

    Returns:
        ``TF_CONFIG`` and settings of `headrace.settings`.

    Raises:
        ValueError: if addresses are missing or malformed.

    >>> job = LaunchJob("train.py", ps=1)
    >>> found = task_environment(job, {"ps": ["a:1"], "worker": ["b:1"]}, TaskId("worker", 0))
    >>> found["TF_CONFIG"]
    '{"cluster": {"ps": ["a:1"], "worker": ["b:1"]}, "task": {"type": "worker", "index": 0}}'
    >>> found["HEADRACE_DATA_PARALLEL"]
    'async'
    """
    cluster = {name: list(tasks) for name, tasks in addresses.items() if tasks}
    for name, count in job.counts.items():
        known = len(cluster.get(name, ()))
        if known < count:
            raise ValueError(f"Job {name!r} has {count} tasks, but {known} addresses.")
    ClusterSpec(cluster, job.replicas)
    config: dict[str, Any] = {
        "cluster": cluster,
        "task": {"type": task.job, "index": task.index},
    }
    if job.replicas:
        config["replicas"] = job.replicas
    found = {"TF_CONFIG": json.dumps(config), **environment_of(job, task, contact)}
    if job.metrics_port and not contact and task.job in cluster:
        own = cluster[task.job][task.index]
        before = [a for a in _flat(cluster) if _host(a) == _host(own)].index(own)
        found["HEADRACE_METRICS_PORT"] = str(job.metrics_port + before)
    return found


def _flat(cluster: Mapping[str, Sequence[str]]) -> list[str]:
    return [address for tasks in cluster.values() for address in tasks]


def _host(address: str) -> str:
    return address.rpartition(":")[0]


def environment_of(job: LaunchJob, task: TaskId, contact: str = "") -> dict[str, str]:
    """The settings of a task without its cluster, for who has ``TF_CONFIG`` from somewhere else.

    Kubeflow's operator writes that, for instance.
    """
    found = {} if job.chief else {"HEADRACE_FIRST_WORKER_IS_CHIEF": "1"}
    if task.job in (CHIEF, WORKER) and job.data_parallel:
        found["HEADRACE_DATA_PARALLEL"] = job.data_parallel
        if job.elastic:
            found["HEADRACE_ELASTIC"] = str(job.workers)
    if contact:
        found["HEADRACE_JOIN"] = contact
    if job.metrics_port is not None and task.job != EVALUATOR:
        # Whoever joins does not know which ports the others of its machine have.
        found["HEADRACE_METRICS_PORT"] = "0" if contact else str(job.metrics_port)
    if job.log_format != "plain":
        found["HEADRACE_LOG_FORMAT"] = job.log_format
    return found
