"""Which task of which cluster a server is: `ServerDef` messages."""

from __future__ import annotations

from typing import Any

from headrace.distributed.cluster.cluster_spec import SERVERS, ClusterSpec, split_address
from headrace.distributed.cluster.tf_config import tf_config_or_empty
from headrace.distributed.membership.record import GONE, ClusterRecord
from headrace.graph.devices import DeviceSpec
from headrace.graph.proto import ClusterDef, ConfigProto, ServerDef
from headrace.settings import flags

__all__ = ["contact_of", "joined_def", "joining_def", "own_address", "server_def"]


def server_def(
    server_or_cluster_def: Any,
    job_name: str | None,
    task_index: int | None,
    protocol: str | None,
    config: Any,
) -> Any:
    """The ServerDef that the arguments of `Server` describe."""
    _check_config(config)
    given = server_or_cluster_def
    if isinstance(given, ServerDef):
        made = ServerDef()
        made.CopyFrom(given)
        if job_name is not None:
            made.job_name = job_name
        if task_index is not None:
            made.task_index = task_index
    else:
        cluster = given if isinstance(given, ClusterDef) else ClusterSpec(given).as_cluster_def()
        made = ServerDef(cluster=cluster)
        jobs = ClusterSpec(cluster)
        if job_name is None:
            if len(jobs.jobs) != 1:
                raise ValueError("Must specify an explicit `job_name`.")
            job_name = jobs.jobs[0]
        if job_name not in jobs.jobs:
            raise ValueError(f"There is no job {job_name!r} in the cluster: it has {jobs.jobs}.")
        if task_index is None:
            indices = jobs.task_indices(job_name)
            if len(indices) != 1:
                raise ValueError("Must specify an explicit `task_index`.")
            task_index = indices[0]
        made.job_name, made.task_index = job_name, task_index
    own_address(made)  # there is such a task
    made.cluster.replicas = made.cluster.replicas or _stated_replicas(made.cluster)
    made.protocol = protocol or made.protocol or "grpc"
    if config is not None:
        made.default_session_config.MergeFrom(config)
    return made


def _stated_replicas(cluster: Any) -> int:
    """What TF_CONFIG says of copies, if it describes the same servers.

    Programs of the time read its addresses themselves, and know nothing of copies.
    """
    config = tf_config_or_empty()
    replicas, stated = config.get("replicas", 0), config.get("cluster")
    if type(replicas) is not int:
        raise ValueError(f"TF_CONFIG: 'replicas' must be an integer, not {replicas!r:.100}.")
    if not replicas or not isinstance(stated, dict) or not stated.get(SERVERS):
        return 0
    own = ClusterSpec(cluster).as_dict()
    servers = ClusterSpec({SERVERS: stated[SERVERS]}).as_dict()
    return int(replicas) if own.get(SERVERS) == servers[SERVERS] else 0


def joining_def(
    contact: str, job_name: str | None, task_index: int | None, protocol: str | None, config: Any
) -> Any:
    """The ServerDef of a server that is to join the cluster of a task: without a cluster yet.

    Raises:
        ValueError: if the address of that task is malformed, or there is no job.
        TypeError: if ``config`` is no ConfigProto.
    """
    split_address(contact)
    if not job_name:
        raise ValueError("Must specify an explicit `job_name` to join a cluster.")
    _check_config(config)
    return ServerDef(
        job_name=job_name,
        task_index=task_index or 0,
        protocol=protocol or "grpc",
        default_session_config=config,
    )


def own_address(definition: Any) -> str:
    """``host:port`` of a server whose cluster is known."""
    cluster = ClusterSpec(definition.cluster)
    return cluster.task_address(definition.job_name, definition.task_index)


def contact_of(definition: Any) -> str:
    """The task by which a server joins its cluster although it knows that, "" where it need not.

    That is ``HEADRACE_JOIN``, if it is another task of the same cluster. It says nothing of a
    cluster of one task, nor of others than that of ``TF_CONFIG``, if that has such a task.

    Raises:
        ValueError: if no task has that address.
    """
    own = own_address(definition)
    others = {a for job in definition.cluster.job for a in job.tasks.values()} - {own}
    if flags.join in others:
        return flags.join
    if flags.join not in ("", own) and others and flags.join not in _stated_addresses():
        raise ValueError(
            f"HEADRACE_JOIN={flags.join}: it must be the address of another task of the cluster "
            f"that the server is told, and that is none; there are {', '.join(sorted(others))}."
        )
    return ""


def _stated_addresses() -> set[str]:
    """The addresses of the tasks that TF_CONFIG names."""
    stated = tf_config_or_empty().get("cluster")
    jobs = ClusterSpec(stated).as_dict() if isinstance(stated, dict) else {}
    return {a for j in jobs.values() for a in (j.values() if isinstance(j, dict) else j)}


def joined_def(definition: Any, task: str, cluster: Any, record: ClusterRecord) -> Any:
    """The ServerDef of a server that has joined.

    Args:
        definition: as it was before; ``task``: what it has become.
        cluster: the ClusterDef that the cluster was started with; ``record``: what has changed.
    """
    jobs: dict[str, dict[int, str]] = {j.name: dict(j.tasks) for j in cluster.job}
    own = DeviceSpec.from_string(task)
    for name, address in record.tasks.items():
        spec = DeviceSpec.from_string(name)
        assert spec.job is not None
        assert spec.task is not None
        # A server that has joined gets variables by moves only: programs place them on the others.
        if spec.job == SERVERS and name != task:
            continue
        if address == GONE:
            jobs.get(spec.job, {}).pop(spec.task, None)
        else:
            jobs.setdefault(spec.job, {})[spec.task] = address
    made = ServerDef()
    made.CopyFrom(definition)
    made.cluster.CopyFrom(ClusterSpec(jobs, replicas=cluster.replicas).as_cluster_def())
    made.job_name, made.task_index = own.job or "", own.task or 0
    return made


def _check_config(config: Any) -> None:
    if config is not None and not isinstance(config, ConfigProto):
        raise TypeError(f"config must be a tf.ConfigProto, but got {type(config)}")
