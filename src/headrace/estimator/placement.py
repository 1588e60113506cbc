"""TF_CONFIG: which task of which cluster a process is, as Estimators read it.

{"cluster": {"chief": ["a:2222"], "worker": ["b:2222"], "ps": ["c:2222"]},
 "task": {"type": "worker", "index": 0}}

Keys beside these: ``service``, ``session_master``, ``eval_session_master``, ``model_dir``,
``environment`` and ``replicas`` (1: servers keep copies of each other's variables). Evaluators are
not part of the cluster. A worker that has the chief's address is the chief.

A process joins a running cluster by the address of any of its tasks:

{"cluster_address": "c:2222", "task": {"type": "worker"}}
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from headrace import logging
from headrace.distributed.cluster.cluster_spec import ClusterSpec
from headrace.errors import suggest

__all__ = [
    "Placement",
    "TaskType",
    "placement_of",
    "read_environment",
    "strategies",
    "with_chief",
]

_KEYS = {
    "cluster": "a JSON object of jobs, each with a list of 'host:port'",
    "task": "a JSON object with 'type' and 'index'",
    "service": "a JSON object",
    "session_master": "a string",
    "eval_session_master": "a string",
    "model_dir": "a string",
    "environment": "a string",
    "cluster_address": "a string",
    "replicas": "an integer",
}
_NAMED_KINDS = {"a string": str, "an integer": int}
_KINDS = {key: _NAMED_KINDS.get(what, dict) for key, what in _KEYS.items()}
_INDEX = "TF_CONFIG['task']['index']"
_EXAMPLE = '{"cluster": {"chief": ["host0:2222"], "worker": ["host1:2222"], "ps": ["host2:2222"]}, '
_EXAMPLE += '"task": {"type": "worker", "index": 0}}'


class TaskType:
    """What the tasks of a cluster are called.

    >>> from headrace.estimator.placement import TaskType
    >>> TaskType.CHIEF, TaskType.EVALUATOR
    ('chief', 'evaluator')
    """

    MASTER = "master"
    PS = "ps"
    WORKER = "worker"
    CHIEF = "chief"
    EVALUATOR = "evaluator"


@dataclass
class Placement:
    """What a process is in its cluster.

    Attributes:
        cluster_spec: the training cluster; empty for an evaluator, and where there is none.
        task_type, task_id: the task. master: where its sessions run, "" in the process itself.
        evaluation_master: where sessions of evaluations run.
        is_chief: whether it initialises and saves.
        num_ps_replicas, num_worker_replicas: servers; workers, the chief among them.
        global_id: the number among all tasks, the chief's is 0; None for an evaluator.
        service: what TF_CONFIG says of the service.
        server: the one by which this process has joined the cluster; None where it has not.
    """

    task_type: str = TaskType.WORKER
    task_id: int = 0
    cluster_spec: ClusterSpec = field(default_factory=lambda: ClusterSpec({}))
    master: str = ""
    evaluation_master: str = ""
    is_chief: bool = True
    num_ps_replicas: int = 0
    num_worker_replicas: int = 1
    global_id: int | None = 0
    service: Any = None
    server: Any = None


def read_environment(environ: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """TF_CONFIG as a dictionary, {} where it is not set.

    Raises:
        ValueError: if it is no JSON object, or a key's value is of a wrong type.
        TypeError: if ``service`` is no object.

    >>> read_environment({"TF_CONFIG": '{"model_dir": "m"}'})
    {'model_dir': 'm'}
    """
    text = environ.get("TF_CONFIG", "")
    if not text.strip():
        return {}
    try:
        config = json.loads(text, object_pairs_hook=_once_each)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"TF_CONFIG is no JSON: {error}. It has the form {_EXAMPLE}.") from None
    if not isinstance(config, dict):
        raise ValueError(
            f"TF_CONFIG must be a JSON object, not {config!r:.100}. It has the form {_EXAMPLE}."
        )
    _tell_unread(config, _KEYS, "TF_CONFIG")
    for key, value in config.items():
        if key == "service" and value is not None and not isinstance(value, dict):
            raise TypeError(
                f'If "service" is set in TF_CONFIG, it must be a dict. Given {type(value)}'
            )
        if value is not None and key in _KINDS and not isinstance(value, _KINDS[key]):
            raise ValueError(
                f"TF_CONFIG[{key!r}] must be {_KEYS[key]}, not {value!r:.100}. TF_CONFIG has the "
                f"form {_EXAMPLE}."
            )
    _tell_unread(config.get("task") or {}, ("type", "index"), "TF_CONFIG['task']")
    jobs = [getattr(TaskType, name) for name in vars(TaskType) if name.isupper()]
    _tell_unread(config.get("cluster") or {}, jobs, "TF_CONFIG['cluster']")
    return config


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object, in which no key may be there twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {twice!r} is there twice")
    return found


def _tell_unread(given: Mapping[str, Any], known: Iterable[str], where: str) -> None:
    """Warn of keys that look like known ones: platforms add some, the others are misspelled."""
    for key in given:
        hint = "" if key in known else suggest(key, list(known))
        if hint:
            logging.warning("%s has the key %r, which nothing reads.%s", where, key, hint)


def with_chief(tf_config: Mapping[str, Any]) -> dict[str, Any]:
    """TF_CONFIG of a cluster without a chief, in which the first worker is it.

    So strategies read it: their programs name workers only.

    >>> with_chief({"cluster": {"worker": ["a:1", "b:1"]}})
    {'cluster': {'worker': ['a:1', 'b:1'], 'chief': ['a:1']}}
    """
    cluster = tf_config.get("cluster") or {}
    workers = cluster.get(TaskType.WORKER)
    if not workers or TaskType.CHIEF in cluster or TaskType.MASTER in cluster:
        return dict(tf_config)
    first = workers.get(0, workers.get("0")) if isinstance(workers, dict) else workers[0]
    return {**tf_config, "cluster": {**cluster, TaskType.CHIEF: [first]}}


def strategies(train: Any, evaluation: Any, both: Any) -> tuple[Any, Any]:
    """The strategies of training and of evaluations.

    Raises:
        ValueError: if one is given twice, or a remote cluster is.
        TypeError: if ``both`` is no DistributeConfig.
    """
    if both is None:
        return train, evaluation
    if not hasattr(both, "train_distribute") or not hasattr(both, "remote_cluster"):
        raise TypeError(
            "experimental_distribute is a tf.contrib.distribute.DistributeConfig, not "
            f"{both!r:.100}."
        )
    if train is not None or evaluation is not None:
        raise ValueError(
            "Either train_distribute and eval_distribute or experimental_distribute can be given, "
            "not both."
        )
    if both.remote_cluster is not None:
        raise ValueError(
            "DistributeConfig(remote_cluster=...) is not supported: start the program on each "
            "task of the cluster, with TF_CONFIG."
        )
    return both.train_distribute, both.eval_distribute


def placement_of(tf_config: Mapping[str, Any]) -> Placement:
    """What a process with this TF_CONFIG is.

    With ``cluster_address`` it becomes a task of a running cluster, and is one until its server is
    stopped or the process ends.

    Raises:
        ValueError: if the cluster, or the task, breaks a rule; the message says which key.
        UnavailableError: if nobody is at ``cluster_address``; see `tf.train.Server`.
    """
    cluster = tf_config.get("cluster") or {}
    task = tf_config.get("task") or {}
    if tf_config.get("cluster_address"):
        return _joined(tf_config, task)
    if not cluster:
        return _alone(tf_config, task)
    chief = TaskType.MASTER if TaskType.MASTER in cluster else TaskType.CHIEF
    if chief == TaskType.MASTER and TaskType.CHIEF in cluster:
        raise ValueError("If `master` node exists in `cluster`, job `chief` is not supported.")
    _check_chief(cluster, chief)
    task_type, task_id = _task(cluster, task, chief)
    spec = _spec(cluster, chief, tf_config.get("replicas") or 0)
    place = Placement(
        task_type,
        task_id,
        spec,
        service=tf_config.get("service"),
        is_chief=task_type == chief,
    )
    if task_type == TaskType.EVALUATOR:
        place.cluster_spec = ClusterSpec({})
        place.evaluation_master = tf_config.get("eval_session_master") or ""
        place.num_worker_replicas = 0
        place.global_id = None
        return place
    place.master = _master(spec, task_type, task_id, tf_config)
    place.num_ps_replicas = _count(spec, TaskType.PS)
    place.num_worker_replicas = _count(spec, TaskType.WORKER) + _count(spec, chief)
    place.global_id = _global_id(spec, task_type, task_id, chief)
    return place


def _joined(tf_config: Mapping[str, Any], task: Mapping[str, Any]) -> Placement:
    """A process that joins a running cluster."""
    if tf_config.get("cluster"):
        raise ValueError(
            "TF_CONFIG has both 'cluster' and 'cluster_address': the first tells a process a "
            "cluster that is started with it, the second one that runs, and that it joins."
        )
    task_type, index = task.get("type"), task.get("index")
    if task_type not in (TaskType.WORKER, TaskType.PS):
        raise ValueError(
            f"A task that joins a cluster ('cluster_address' in TF_CONFIG) is a 'worker' or a "
            f"'ps': TF_CONFIG['task']['type'] is {task_type!r}. An evaluator is no part of a "
            "cluster: leave the address out."
        )
    number = None if index is None else _integer(index, _INDEX)
    server = _server(tf_config["cluster_address"], task_type, number)
    spec, own = server.cluster, server.server_def.task_index
    return Placement(
        task_type,
        own,
        spec,
        server.target,
        is_chief=False,
        num_ps_replicas=_count(spec, TaskType.PS) - (task_type == TaskType.PS),
        num_worker_replicas=sum(
            _count(spec, job) for job in (TaskType.WORKER, TaskType.CHIEF, TaskType.MASTER)
        ),
        global_id=sum(spec.num_tasks(job) for job in spec.jobs) - 1,
        service=tf_config.get("service"),
        server=server,
    )


#: The servers by which this process has joined clusters: by their addresses, its job and index.
_servers: dict[tuple[str, str, int | None], Any] = {}


def _server(address: str, job: str, index: int | None) -> Any:
    """The server that has joined a cluster: one, however many configurations a program makes."""
    from headrace.distributed.services.server import Server

    known = _servers.get((address, job, index))
    if known is None or known.wait(0):
        known = _servers[address, job, index] = Server(address, job_name=job, task_index=index)
    return known


def _alone(tf_config: Mapping[str, Any], task: Mapping[str, Any]) -> Placement:
    """A process without a cluster."""
    task_type = task.get("type", TaskType.WORKER)
    if task_type != TaskType.WORKER:
        raise ValueError(
            'If "cluster" is not set in TF_CONFIG, task type must be WORKER: '
            f"TF_CONFIG['task']['type'] is {task_type!r}."
        )
    if _integer(task.get("index", 0), _INDEX) != 0:
        raise ValueError(
            'If "cluster" is not set in TF_CONFIG, task index must be 0: '
            f"TF_CONFIG['task']['index'] is {task['index']!r}."
        )
    return Placement(
        master=tf_config.get("session_master") or "",
        evaluation_master=tf_config.get("eval_session_master") or "",
        service=tf_config.get("service"),
    )


def _check_chief(cluster: Mapping[str, Any], chief: str) -> None:
    if chief not in cluster:
        raise ValueError(
            f'If "cluster" is set in TF_CONFIG, it must have one "{chief}" node.'
            f"{suggest(chief, cluster)} TF_CONFIG['cluster'] has the jobs {sorted(cluster)}."
        )
    where = f"TF_CONFIG['cluster'][{chief!r}]"
    tasks = _addresses(cluster[chief], where)
    if len(tasks) != 1:
        raise ValueError(
            f'The "cluster" in TF_CONFIG must have only one "{chief}" node: {where} has '
            f"{len(tasks)}."
        )
    if 0 not in tasks:
        raise ValueError(f"The only task of {where} must be 0, not {next(iter(tasks))}.")


def _task(cluster: Mapping[str, Any], task: Mapping[str, Any], chief: str) -> tuple[str, int]:
    """Type and index of the task; a worker at the chief's address is the chief."""
    task_type, index = task.get("type"), task.get("index")
    if not task_type:
        raise ValueError(
            "If \"cluster\" is set in TF_CONFIG, task type must be set: TF_CONFIG['task'] is "
            f"{dict(task)!r}."
        )
    if index is None:
        raise ValueError(
            "If \"cluster\" is set in TF_CONFIG, task index must be set: TF_CONFIG['task'] is "
            f"{dict(task)!r}."
        )
    if not isinstance(task_type, str):
        raise ValueError(f"TF_CONFIG['task']['type'] must be a string, not {task_type!r:.100}.")
    number = _integer(index, _INDEX)
    if number < 0:
        raise ValueError(
            f"Task index must be non-negative number: TF_CONFIG['task']['index'] is {index!r}."
        )
    if task_type == TaskType.EVALUATOR:
        if chief == TaskType.MASTER:
            raise ValueError(
                "If `master` node exists in `cluster`, task_type `evaluator` is not supported."
            )
        return task_type, number
    if task_type not in cluster:
        raise ValueError(
            f"{task_type} is not a valid task_type in the cluster_spec:\n{dict(cluster)}\n\n"
            "Note that these values may be coming from the TF_CONFIG environment variable: "
            f"TF_CONFIG['task']['type'].{suggest(task_type, [*cluster, TaskType.EVALUATOR])}"
        )
    addresses = _addresses(cluster[task_type], f"TF_CONFIG['cluster'][{task_type!r}]")
    if number not in addresses:
        raise ValueError(
            f"{number} is not a valid task_id for task_type {task_type} in the cluster_spec:\n"
            f"{dict(cluster)}\n\n"
            "Note that these values may be coming from the TF_CONFIG environment variable: "
            f"TF_CONFIG['task']['index'] is {index!r}, the job has the tasks {sorted(addresses)}."
        )
    if task_type == TaskType.WORKER and addresses[number] == _chief_address(cluster, chief):
        return chief, 0
    return task_type, number


def _integer(index: Any, what: str) -> int:
    """An integer, or a string that shows one."""
    try:
        if isinstance(index, (bool, float)):
            raise TypeError
        return int(index)
    except (TypeError, ValueError):
        raise ValueError(f"{what} must be an integer, not {index!r:.100}.") from None


def _addresses(tasks: Any, where: str) -> dict[int, Any]:
    if isinstance(tasks, dict):
        return {_integer(i, f"A task of {where}"): address for i, address in tasks.items()}
    if not isinstance(tasks, list):
        raise ValueError(f"{where} must be a list of 'host:port', not {tasks!r:.100}.")
    return dict(enumerate(tasks))


def _chief_address(cluster: Mapping[str, Any], chief: str) -> Any:
    return next(iter(_addresses(cluster[chief], f"TF_CONFIG['cluster'][{chief!r}]").values()))


def _spec(cluster: Mapping[str, Any], chief: str, replicas: int) -> ClusterSpec:
    """The cluster, in which a worker at the chief's address is left out: it is the chief."""
    jobs = {
        job: _addresses(tasks, f"TF_CONFIG['cluster'][{job!r}]") for job, tasks in cluster.items()
    }
    address = _chief_address(cluster, chief)
    workers = jobs.get(TaskType.WORKER, {})
    jobs[TaskType.WORKER] = {i: a for i, a in workers.items() if a != address}
    if not jobs[TaskType.WORKER]:
        del jobs[TaskType.WORKER]
    jobs.pop(TaskType.EVALUATOR, None)  # it is no part of the cluster
    try:
        return ClusterSpec(jobs, replicas)
    except (TypeError, ValueError) as error:
        raise ValueError(f"TF_CONFIG['cluster']: {error}") from None


def _count(spec: ClusterSpec, job: str) -> int:
    return spec.num_tasks(job) if job in spec.jobs else 0


def _master(spec: ClusterSpec, task_type: str, task_id: int, tf_config: Mapping[str, Any]) -> str:
    """Where sessions of a task run: its own server, or the process where it is alone."""
    if tf_config.get("session_master") is not None:
        return str(tf_config["session_master"])
    if sum(spec.num_tasks(job) for job in spec.jobs) == 1:
        return ""
    return f"grpc://{spec.task_address(task_type, task_id)}"


def _global_id(spec: ClusterSpec, task_type: str, task_id: int, chief: str) -> int:
    """The chief, other jobs by name, servers last; tasks by index."""
    middle = sorted(job for job in spec.jobs if job not in (chief, TaskType.PS))
    count = 0
    for job in (chief, *middle, TaskType.PS):
        if job == task_type:
            return count + spec.task_indices(job).index(task_id)
        count += _count(spec, job)
    raise AssertionError(f"{task_type} is in {spec.jobs}")
