"""`tf.train.ClusterSpec`: the jobs of a cluster, and the address of each of their tasks."""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from headrace.errors import suggest

if TYPE_CHECKING:
    from headrace.graph.proto import ClusterDef

__all__ = ["SERVERS", "ClusterSpec", "join_address", "split_address", "task_name"]

# Patterns are compiled on first use: most programs that import this have no cluster.
# As in device names, of which a job's name becomes a part.
_JOB = "[A-Za-z_][A-Za-z0-9_.-]*"
_ADDRESS = r"(?P<host>\[[\w:.%]+\]|[^\s:/,\[\]]+):(?P<port>[0-9]{1,5})"
_MAX_PORT = 65535
#: The job whose tasks keep copies of each other's variables.
SERVERS = "ps"
#: Messages have it in 32 bits, and lists of tasks have an entry for each index up to the largest.
_MAX_INDEX = 1_000_000


class ClusterSpec:
    """The tasks of a cluster, by job and index, with their "host:port" addresses.

    Args:
        cluster: for each job its tasks: a list of addresses, or a dictionary {index: address}
            that may leave tasks out, since a task need not know all others. A ClusterDef message
            or another ClusterSpec serves as well.
        replicas: how many copies of the variables of each task of the job "ps" another one of them
            keeps: 0, or 1 to survive the death of any one server without a loss. By default what
            `cluster` says, else 0.

    Raises:
        TypeError: `cluster`, a job's name, its tasks, an index or an address is of a wrong type.
        ValueError: a name, index or address is malformed, or two tasks have the same address;
            the message names job and task. Or there are not enough servers for the copies.

    Port 0 stands for "any free port", so tasks may share such an address.

    >>> cluster = ClusterSpec({"ps": ["ps0:2222"], "worker": {1: "worker1:2222"}})
    >>> cluster.as_dict()
    {'ps': ['ps0:2222'], 'worker': {1: 'worker1:2222'}}
    """

    def __init__(self, cluster: Any, replicas: int | None = None) -> None:
        self._jobs: dict[str, dict[int, str]] = {}
        for job, tasks in _described(cluster):
            self._add_job(job, tasks)
        self._check_addresses()
        self.replicas = int(getattr(cluster, "replicas", 0)) if replicas is None else replicas
        self._check_replicas()

    def _check_replicas(self) -> None:
        if self.replicas not in (0, 1):
            raise ValueError(f"`replicas` is 0 or 1, not {self.replicas!r}.")
        servers = len(self._jobs.get(SERVERS, ()))
        if self.replicas and servers < 2:
            raise ValueError(
                f"With replicas=1 each task of the job {SERVERS!r} has its copy at another one, "
                f"so there must be two of them; the cluster has {servers}."
            )

    def _add_job(self, job: Any, tasks: Any) -> None:
        name = _job_name(job)
        if name in self._jobs:
            raise ValueError(f"Job {name!r} is described twice.")
        if isinstance(tasks, Mapping):
            items = list(tasks.items())
        elif isinstance(tasks, (list, tuple)):
            items = list(enumerate(tasks))
        else:
            raise TypeError(
                f"The tasks for job {name!r} must be a list or a dictionary from integers to "
                f"strings, not {tasks!r} of type {type(tasks).__name__}."
            )
        self._jobs[name] = {_task_index(name, i): _address(name, i, a) for i, a in items}

    def _check_addresses(self) -> None:
        owners: dict[tuple[str, int], str] = {}
        for job, tasks in self._jobs.items():
            for index, address in tasks.items():
                host, port = split_address(address)
                task = f"job {job!r} task {index}"
                other = owners.setdefault((host.lower(), port), task)
                if port != 0 and other != task:
                    raise ValueError(f"Address {address!r} is given to both {other} and {task}.")

    def as_dict(self) -> dict[str, list[str] | dict[int, str]]:
        """For each job a list of addresses; a dictionary {index: address} where tasks are missing.

        What it gives describes the same cluster. A job without tasks has an empty dictionary.
        """
        found: dict[str, list[str] | dict[int, str]] = {}
        for job, tasks in self._jobs.items():
            indices = sorted(tasks)
            is_dense = bool(indices) and indices[-1] + 1 == len(indices)
            found[job] = [tasks[i] for i in indices] if is_dense else dict(tasks)
        return found

    def as_cluster_def(self) -> ClusterDef:
        """The cluster as a message; jobs and tasks in order of name and index."""
        from headrace.graph.proto import ClusterDef

        message = ClusterDef(replicas=self.replicas)
        for job in sorted(self._jobs):
            job_def = message.job.add(name=job)
            for index, address in sorted(self._jobs[job].items()):
                job_def.tasks[index] = address
        return message

    def keepers(self, joined: Iterable[int] = ()) -> dict[str, str]:
        """The task that keeps the copy of each server's variables, by their full names: the next
        one. Empty without replicas.

        Those that the cluster was started with keep all copies, also of servers that have joined.

        Args:
            joined: the indices of these.

        >>> cluster = ClusterSpec({"ps": ["a:1", "b:1"], "worker": ["c:1"]}, replicas=1)
        >>> cluster.keepers()["/job:ps/replica:0/task:1"]
        '/job:ps/replica:0/task:0'
        >>> cluster.keepers([2])["/job:ps/replica:0/task:2"]
        '/job:ps/replica:0/task:0'
        """
        if not self.replicas:
            return {}
        servers = [task_name(SERVERS, index) for index in self.task_indices(SERVERS)]
        found = dict(zip(servers, [*servers[1:], servers[0]], strict=True))
        more = {task_name(SERVERS, index): servers[index % len(servers)] for index in joined}
        return {**more, **found}

    @property
    def jobs(self) -> list[str]:
        """The names of the jobs."""
        return list(self._jobs)

    def num_tasks(self, job_name: str) -> int:
        """How many tasks of a job are known. Raises ValueError for an unknown job."""
        return len(self._tasks(job_name))

    def task_indices(self, job_name: str) -> list[int]:
        """The indices of a job's tasks, ascending. Raises ValueError for an unknown job."""
        return sorted(self._tasks(job_name))

    def task_address(self, job_name: str, task_index: int) -> str:
        """The address of a task. Raises ValueError for an unknown job or task."""
        tasks = self._tasks(job_name)
        if task_index not in tasks:
            raise ValueError(
                f"No task with index {task_index!r} in job {job_name!r}: it has {sorted(tasks)}."
            )
        return tasks[task_index]

    def job_tasks(self, job_name: str) -> list[str | None]:
        """The addresses of a job's tasks by index, None where one is missing.

        Raises:
            ValueError: there is no such job.
        """
        tasks = self._tasks(job_name)
        return [tasks.get(i) for i in range(max(tasks, default=-1) + 1)]

    def _tasks(self, job_name: str) -> dict[int, str]:
        if job_name not in self._jobs:
            hint = suggest(str(job_name), self._jobs)
            raise ValueError(f"No such job in cluster: {job_name!r} among {self.jobs}.{hint}")
        return self._jobs[job_name]

    def __bool__(self) -> bool:
        return bool(self._jobs)

    def __nonzero__(self) -> bool:
        # Old programs call it by name.
        return bool(self)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, ClusterSpec):
            return (self._jobs, self.replicas) == (other._jobs, other.replicas)
        return self._jobs == other

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        more = f", replicas={self.replicas}" if self.replicas else ""
        return f"ClusterSpec({self.as_dict()!r}{more})"


def task_name(job: str, index: int) -> str:
    """The full name of a task.

    >>> task_name("ps", 1)
    '/job:ps/replica:0/task:1'
    """
    return f"/job:{job}/replica:0/task:{index}"


def split_address(address: str) -> tuple[str, int]:
    """Host (without the brackets of IPv6) and port of "host:port".

    Raises:
        ValueError: the address has another form.

    >>> split_address("[::1]:2222")
    ('::1', 2222)
    """
    found = re.fullmatch(_ADDRESS, address)
    if found is None or int(found["port"]) > _MAX_PORT or not found["host"].isprintable():
        raise ValueError(f"{address!r} is no address of the form 'host:port'{_hint(address)}.")
    return found["host"].strip("[]"), int(found["port"])


def join_address(host: str, port: int) -> str:
    """What `split_address` takes apart.

    >>> join_address("::1", 2222)
    '[::1]:2222'
    """
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _hint(address: str) -> str:
    """What is wrong with a malformed address, as far as that can be told."""
    if not address.strip():
        return ": it is empty"
    if "," in address:
        return ": it looks like several addresses; give a list"
    if "://" in address:
        return f": leave out {address.partition('://')[0] + '://'!r}"
    if address.count(":") > 1 and not address.startswith("["):
        return ": an IPv6 address stands in brackets, '[::1]:2222'"
    host, _, port = address.rpartition(":")
    if port.isdigit() and host:
        return f": port {port} is out of range" if int(port) > _MAX_PORT else ""
    if address.count(":") == 0 or address.endswith(("]", ":")):
        return ": it has no port"
    return ""


def _described(cluster: Any) -> Iterator[tuple[Any, Any]]:
    """The (job, tasks) pairs of any description of a cluster."""
    if isinstance(cluster, ClusterSpec):
        yield from cluster._jobs.items()
    elif isinstance(cluster, Mapping):
        yield from cluster.items()
    else:
        from headrace.graph.proto import ClusterDef

        if not isinstance(cluster, ClusterDef):
            raise TypeError(
                "`cluster` must be a dictionary mapping one or more job names to lists of network "
                f"addresses, or a `ClusterDef` protocol buffer, not {cluster!r} of type "
                f"{type(cluster).__name__}."
            )
        for job in cluster.job:
            yield job.name, dict(job.tasks)


def _job_name(job: Any) -> str:
    if not isinstance(job, str):
        raise TypeError(f"Job names are strings, not {job!r} of type {type(job).__name__}.")
    if not re.fullmatch(_JOB, job):
        raise ValueError(
            f"Invalid job name {job!r}: it starts with a letter or '_', followed by letters, "
            "digits and any of _ . -"
        )
    return job


def _task_index(job: str, index: Any) -> int:
    try:
        number = operator.index(index)
    except TypeError:
        raise TypeError(
            f"The tasks of job {job!r} are numbered by integers, not by {index!r} of type "
            f"{type(index).__name__}."
        ) from None
    if number < 0:
        raise ValueError(f"Task index {number} of job {job!r} is negative.")
    if number > _MAX_INDEX:
        raise ValueError(f"Task index {number} of job {job!r} is larger than {_MAX_INDEX}.")
    return number


def _address(job: str, index: Any, address: Any) -> str:
    if isinstance(address, bytes):
        address = address.decode(errors="surrogateescape")
    if not isinstance(address, str):
        raise TypeError(
            f"The address of job {job!r} task {index!r} must be a string, not {address!r} of type "
            f"{type(address).__name__}."
        )
    try:
        split_address(address)
    except ValueError as error:
        raise ValueError(f"The address of job {job!r} task {index!r} is wrong: {error}") from None
    return address
