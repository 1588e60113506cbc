"""``tf.distribute.cluster_resolver``: which tasks there are, and which one this process is."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from typing import Any

from headrace.distributed.cluster.cluster_spec import ClusterSpec
from headrace.errors import UnimplementedError
from headrace.placement.devices import is_accelerator, local_devices

__all__ = [
    "ClusterResolver",
    "SimpleClusterResolver",
    "SlurmClusterResolver",
    "TFConfigClusterResolver",
    "TPUClusterResolver",
    "UnionResolver",
]


class ClusterResolver:
    """Base of what tells a cluster.

    >>> resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
    ...     tf.train.ClusterSpec({"worker": ["a:2222", "b:2222"]}), rpc_layer="grpc")
    >>> resolver.master("worker", 1)
    'grpc://b:2222'
    """

    task_type: str | None = None
    task_id: int | None = None
    rpc_layer: str | None = None

    def cluster_spec(self) -> ClusterSpec:
        """The cluster."""
        raise NotImplementedError("cluster_spec() must be defined by the resolver.")

    def master(
        self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None
    ) -> str:
        """What a session takes as its target to run on a task; "" without a task."""
        kind = self.task_type if task_type is None else task_type
        number = self.task_id if task_id is None else task_id
        spec = self.cluster_spec()
        if kind is None or number is None or not spec:
            return ""
        return _with_layer(spec.task_address(kind, number), rpc_layer or self.rpc_layer)

    def num_accelerators(
        self, task_type: Any = None, task_id: Any = None, config_proto: Any = None
    ) -> dict[str, int]:
        """How many accelerators of each type this process has."""
        found: dict[str, int] = {}
        for device in local_devices(config_proto):
            if is_accelerator(device):
                found[device.device_type] = found.get(device.device_type, 0) + 1
        return found

    @property
    def environment(self) -> str:
        """Where the cluster runs: "", or what TF_CONFIG says."""
        return ""


def _with_layer(address: str, layer: str | None) -> str:
    return f"{layer}://{address}" if layer and address else address


class SimpleClusterResolver(ClusterResolver):
    """A cluster that is given.

    Args:
        cluster_spec: a `tf.train.ClusterSpec`.
        master: target of sessions without a task.
        task_type, task_id: which task this process is.
        environment, num_accelerators, rpc_layer: what the resolver's methods give.

    Raises:
        TypeError: if ``cluster_spec`` is none.

    >>> spec = tf.train.ClusterSpec({"worker": ["a:1"]})
    >>> tf.distribute.cluster_resolver.SimpleClusterResolver(spec).cluster_spec() == spec
    True
    """

    def __init__(
        self,
        cluster_spec: ClusterSpec,
        master: str = "",
        task_type: str | None = None,
        task_id: int | None = None,
        environment: str = "",
        num_accelerators: Any = None,
        rpc_layer: str | None = None,
    ) -> None:
        if not isinstance(cluster_spec, ClusterSpec):
            raise TypeError("cluster_spec must be a `tf.train.ClusterSpec`.")
        self._spec, self._master, self._environment = cluster_spec, master, environment
        self.task_type, self.task_id, self.rpc_layer = task_type, task_id, rpc_layer
        self._accelerators = num_accelerators

    def cluster_spec(self) -> ClusterSpec:
        """The cluster that was given."""
        return self._spec

    def master(
        self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None
    ) -> str:
        """What a session takes as its target: that of a task, else the ``master`` given."""
        if task_type is not None and task_id is not None:
            return super().master(task_type, task_id, rpc_layer)
        return self._master

    def num_accelerators(
        self, task_type: Any = None, task_id: Any = None, config_proto: Any = None
    ) -> Any:
        """What was given, else what this process has."""
        if self._accelerators is None:
            return super().num_accelerators(task_type, task_id, config_proto)
        return self._accelerators

    @property
    def environment(self) -> str:
        """What was given."""
        return self._environment


class TFConfigClusterResolver(ClusterResolver):
    """The cluster that the environment variable TF_CONFIG describes.

    Args:
        task_type, task_id, rpc_layer, environment: in place of what TF_CONFIG says.

    Raises:
        ValueError: if TF_CONFIG is no JSON object, or parts of it are none.

    >>> tf.distribute.cluster_resolver.TFConfigClusterResolver().cluster_spec().jobs
    []
    """

    def __init__(
        self,
        task_type: str | None = None,
        task_id: int | None = None,
        rpc_layer: str | None = None,
        environment: str | None = None,
    ) -> None:
        config = _tf_config()
        task = _object(config, "task")
        self._cluster = _object(config, "cluster")
        self._environment = config.get("environment", "") if environment is None else environment
        self._session_master = config.get("session_master")
        self.task_type = task.get("type") if task_type is None else task_type
        index = task.get("index") if task_id is None else task_id
        try:
            self.task_id = None if index is None else int(index)
        except (TypeError, ValueError, OverflowError):
            raise ValueError(
                f"TF_CONFIG['task']['index'] must be a number, not {index!r:.100}."
            ) from None
        self.rpc_layer = rpc_layer or config.get("rpc_layer", "grpc")

    def cluster_spec(self) -> ClusterSpec:
        """The cluster; empty if TF_CONFIG names none."""
        return ClusterSpec(self._cluster)

    def master(
        self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None
    ) -> str:
        """What a session takes as its target: "" for a process without a cluster."""
        if self._session_master is not None:
            return str(self._session_master)
        spec = self.cluster_spec()
        if sum(map(spec.num_tasks, spec.jobs)) <= 1:
            return ""
        return super().master(task_type, task_id, rpc_layer)

    @property
    def environment(self) -> str:
        """Where the cluster runs."""
        return self._environment


def _tf_config() -> dict[str, Any]:
    text = os.environ.get("TF_CONFIG", "")
    if not text.strip():
        return {}
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"TF_CONFIG is no JSON: {error}.") from None
    if not isinstance(found, dict):
        raise ValueError(f"TF_CONFIG must be a JSON object, not {found!r:.100}.")
    return found


def _object(config: Mapping[str, Any], name: str) -> dict[str, Any]:
    found = config.get(name) or {}
    if not isinstance(found, dict):
        raise ValueError(f"TF_CONFIG[{name!r}] must be a JSON object, not {found!r:.100}.")
    return found


class UnionResolver(ClusterResolver):
    """The clusters of several resolvers together.

    Args:
        args: resolvers; the first one says which task this process is.
        task_type, task_id, rpc_layer: in place of what the first one says.

    Raises:
        TypeError: if one is no resolver.
        ValueError: if there is none.

    >>> resolver = tf.distribute.cluster_resolver.SimpleClusterResolver
    >>> workers = resolver(tf.train.ClusterSpec({"worker": ["a:1"]}))
    >>> servers = resolver(tf.train.ClusterSpec({"ps": ["b:1"]}))
    >>> tf.distribute.cluster_resolver.UnionResolver(workers, servers).cluster_spec().jobs
    ['worker', 'ps']
    """

    def __init__(self, *args: ClusterResolver, **kwargs: Any) -> None:
        if not args:
            raise ValueError(
                "At least one ClusterResolver is required in UnionClusterResolver: none was given."
            )
        for resolver in args:
            if not isinstance(resolver, ClusterResolver):
                raise TypeError(
                    f"All arguments must be a sub-class of `ClusterResolver`: {resolver!r}"
                )
        self._resolvers, first = args, args[0]
        self.task_type = kwargs.pop("task_type", first.task_type)
        self.task_id = kwargs.pop("task_id", first.task_id)
        self.rpc_layer = kwargs.pop("rpc_layer", first.rpc_layer)
        if kwargs:
            raise ValueError(f"Unexpected arguments of UnionResolver: {sorted(kwargs)}")

    def cluster_spec(self) -> ClusterSpec:
        """All tasks; those of one job behind each other.

        Raises:
            ValueError: if jobs with numbered tasks overlap.
        """
        merged: dict[str, dict[int, str] | list[str]] = {}
        for resolver in self._resolvers:
            for job, tasks in resolver.cluster_spec().as_dict().items():
                merged[job] = _joined(job, merged.get(job), tasks)
        return ClusterSpec(merged)

    def master(
        self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None
    ) -> str:
        """What a session takes as its target: that of a task, else that of the first resolver."""
        if task_type is not None and task_id is not None:
            return super().master(task_type, task_id, rpc_layer)
        return self._resolvers[0].master(rpc_layer=rpc_layer)

    @property
    def environment(self) -> str:
        """That of the first resolver."""
        return self._resolvers[0].environment


def _joined(job: str, known: Any, tasks: Any) -> Any:
    if known is None:
        return tasks
    if not isinstance(known, Mapping) and not isinstance(tasks, Mapping):
        return list(dict.fromkeys([*known, *tasks]))
    both = [dict(t) if isinstance(t, Mapping) else dict(enumerate(t)) for t in (known, tasks)]
    twice = [i for i in both[0] if i in both[1] and both[0][i] != both[1][i]]
    if twice:
        raise ValueError(
            f"Duplicate keys detected when merging two ClusterSpecs: /job:{job}/task:{twice[0]} is "
            f"{both[0][twice[0]]} and {both[1][twice[0]]}."
        )
    return {**both[0], **both[1]}


class SlurmClusterResolver(ClusterResolver):
    """The tasks of a job of the workload manager Slurm, by its environment variables.

    Args:
        jobs: how many tasks each job of the cluster has, in the order in which they are given out.
        port_base: the port of the first task of a host; the next ones count up.
        gpus_per_node, gpus_per_task: which GPUs a task sees, if ``auto_set_gpu``.
        tasks_per_node: how many tasks a host has; by default what Slurm says.
        auto_set_gpu: set CUDA_VISIBLE_DEVICES.
        rpc_layer: "grpc".

    Raises:
        RuntimeError: outside of a step of Slurm, or if it has another number of tasks.

    >>> os.environ.update(SLURM_PROCID="1", SLURM_STEP_NODELIST="n[01-02]",
    ...                   SLURM_STEP_NUM_TASKS="2", SLURM_STEP_TASKS_PER_NODE="1(x2)")
    >>> resolver = tf.distribute.cluster_resolver.SlurmClusterResolver({"worker": 2})
    >>> resolver.cluster_spec().as_dict(), resolver.get_task_info()
    ({'worker': ['n01:8888', 'n02:8888']}, ('worker', 1))
    """

    def __init__(
        self,
        jobs: Mapping[str, int],
        port_base: int = 8888,
        gpus_per_node: int = 1,
        gpus_per_task: int = 1,
        tasks_per_node: int | None = None,
        auto_set_gpu: bool = True,
        rpc_layer: str = "grpc",
    ) -> None:
        rank = _slurm("PROCID")
        hosts = slurm_hosts(_slurm("STEP_NODELIST"))
        counts = (
            slurm_counts(_slurm("STEP_TASKS_PER_NODE"))
            if tasks_per_node is None
            else [tasks_per_node] * len(hosts)
        )
        places = [(h, i) for h, n in zip(hosts, counts, strict=False) for i in range(n)]
        wanted = sum(jobs.values())
        if len(places) != wanted:
            raise RuntimeError(
                f"Requested {wanted} tasks in {dict(jobs)}, but this step of Slurm has "
                f"{len(places)}."
            )
        self._tasks: dict[str, list[str]] = {}
        self.rpc_layer = rpc_layer
        left = iter(enumerate(places))
        for job, count in jobs.items():
            for index in range(count):
                number, (host, local) = next(left)
                self._tasks.setdefault(job, []).append(f"{host}:{port_base + local}")
                if number == int(rank):
                    self.task_type, self.task_id = job, index
                    self._see_gpus(local, gpus_per_node, gpus_per_task, auto_set_gpu)

    @staticmethod
    def _see_gpus(local: int, per_node: int, per_task: int, wanted: bool) -> None:
        if wanted and per_node > per_task:
            first = local * per_task
            seen = ",".join(str(i % per_node) for i in range(first, first + per_task))
            os.environ["CUDA_VISIBLE_DEVICES"] = seen

    def cluster_spec(self) -> ClusterSpec:
        """The cluster."""
        return ClusterSpec(self._tasks)

    def get_task_info(self) -> tuple[str | None, int | None]:
        """Job and number of this task."""
        return self.task_type, self.task_id


def _slurm(name: str) -> str:
    found = os.environ.get(f"SLURM_{name}")
    if not found:
        raise RuntimeError(
            f"SlurmClusterResolver reads SLURM_{name}, which is not set: start the program by srun."
        )
    return found


#: More hosts, or tasks, than any step has: lists that say so are damaged.
_MOST_IN_SLURM = 100_000
#: What commas divide: names of hosts, with lists of numbers in brackets.
_HOSTS = re.compile(r"(?:[\w.-]|\[[^\[\]]*\])+")
_RANGE = re.compile(r"[0-9]{1,9}(-[0-9]{1,9})?")


def slurm_hosts(text: str) -> list[str]:
    """The hosts of ``n[01-03,7],m``.

    Raises:
        ValueError: if the text is no such list, or one of more hosts than there can be.
    """
    found: list[str] = []
    parts = _HOSTS.findall(text)
    if ",".join(parts) != text:
        raise ValueError(f"{text!r:.200} is no list of hosts as Slurm writes them.")
    for part in parts:
        hosts = [""]
        # Names, and what was in brackets between them.
        for number, piece in enumerate(re.split(r"\[([^\[\]]*)\]", part)):
            ends = _numbers(piece, text) if number % 2 else [piece]
            if len(found) + len(hosts) * len(ends) > _MOST_IN_SLURM:
                raise ValueError(f"{text!r:.200} names more than {_MOST_IN_SLURM} hosts.")
            hosts = [host + end for host in hosts for end in ends]
        found += hosts
    return found


def _numbers(ranges: str, text: str) -> list[str]:
    """The numbers of ``01-03,7``, as wide as they stand there."""
    found: list[str] = []
    for piece in ranges.split(","):
        first, _, last = piece.partition("-")
        if not _RANGE.fullmatch(piece) or int(last or first) < int(first):
            raise ValueError(f"{text!r:.200} is no list of hosts as Slurm writes them: {piece!r}.")
        if int(last or first) - int(first) + len(found) >= _MOST_IN_SLURM:
            raise ValueError(f"{text!r:.200} names more than {_MOST_IN_SLURM} hosts.")
        found += [f"{i:0{len(first)}d}" for i in range(int(first), int(last or first) + 1)]
    return found


def slurm_counts(text: str) -> list[int]:
    """The numbers of ``2(x3),1``: 2, 2, 2, 1.

    Raises:
        RuntimeError: if the text is no such list, or one of more tasks than there can be.
    """
    found: list[int] = []
    tasks = 0
    for part in text.split(","):
        match = re.fullmatch(r"([0-9]{1,9})(?:\(x([0-9]{1,9})\))?", part)
        if match is None:
            raise RuntimeError(
                f"SLURM_STEP_TASKS_PER_NODE is {text!r:.200}, which is no list of counts."
            )
        count, times = int(match[1]), int(match[2] or 1)
        tasks += max(count, 1) * times
        if tasks > _MOST_IN_SLURM:
            raise RuntimeError(
                f"SLURM_STEP_TASKS_PER_NODE is {text!r:.200}: more than {_MOST_IN_SLURM} tasks."
            )
        found += [count] * times
    return found


class TPUClusterResolver(ClusterResolver):
    """The server of a TPU, given by its address.

    Args:
        tpu: ``"grpc://host:port"``; ``"local"`` or ``""`` for this process.
        job_name: the job of the server in ``cluster_spec``.

    The other arguments say how to ask a cloud for the address of a TPU that is known by name.

    Raises:
        UnimplementedError: if ``tpu`` is a name: Headrace asks no cloud.

    >>> tf.contrib.cluster_resolver.TPUClusterResolver("grpc://10.0.0.2:8470").master()
    'grpc://10.0.0.2:8470'
    """

    def __init__(
        self,
        tpu: Any = None,
        zone: str | None = None,
        project: str | None = None,
        job_name: str = "worker",
        coordinator_name: str | None = None,
        coordinator_address: str | None = None,
        credentials: Any = "default",
        service: Any = None,
        discovery_url: str | None = None,
    ) -> None:
        if isinstance(tpu, (list, tuple)):
            if len(tpu) != 1:
                raise NotImplementedError(
                    f"A session has one TPU server, got {len(tpu)}: {', '.join(map(str, tpu))}."
                )
            (tpu,) = tpu
        text = tpu.decode() if isinstance(tpu, bytes) else tpu
        if text not in ("", "local") and not (text or "").startswith("grpc://"):
            raise UnimplementedError(
                None,
                None,
                f"TPUClusterResolver got the name {text!r}: Headrace does not ask a cloud where a "
                'TPU is. Give its address, "grpc://host:port", or "local" for this process.',
            )
        self._target: str = text
        self._job_name = job_name
        self._coordinator = (coordinator_name or "coordinator", coordinator_address)

    def master(self, task_type: Any = None, task_id: Any = None, rpc_layer: Any = None) -> str:
        """What a session takes as its target."""
        return self._target

    def get_master(self) -> str:
        """The same as ``master()``."""
        return self._target

    def get_job_name(self) -> str:
        """The job of the TPU's server."""
        return self._job_name

    def cluster_spec(self) -> ClusterSpec | None:  # type: ignore[override]
        """The cluster of the server and its coordinator, if any; None for this process."""
        if not self._target.startswith("grpc://"):
            return None
        jobs = {self._job_name: [self._target.removeprefix("grpc://")]}
        name, address = self._coordinator
        if address:
            jobs[name] = [address]
        return ClusterSpec(jobs)
