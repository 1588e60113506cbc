"""What the container of a pod runs before the script.

In: ``TF_CONFIG`` as an operator or the pod's description gives it. Out: the process becomes the
script, with what that description could not know. Two things are settled here:

- The name of a pod is in the cluster's DNS a moment after it has started, and for up to half a
  minute it may still be that of the pod before it. A server listens at its name, so that must be
  its own first.
- ``TF_CONFIG`` of Kubeflow's operator says nothing of copies of servers, and all pods of a Job have
  one description: those that are more than the first workers join the running cluster.
"""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import click

from headrace import settings
from headrace.distributed.cluster.cluster_spec import split_address
from headrace.distributed.cluster.tf_config import VARIABLE, tf_config_or_empty
from headrace.launch.job import WORKER
from headrace.launch.task import serve

__all__ = ["completed_config", "main", "wait_for_own_name"]

_WAIT = 120.0
_BETWEEN = 0.5


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("--replicas", type=click.IntRange(0, 1), default=0, help="Copies of each server.")
@click.option("--first-workers", type=int, help="Workers that the cluster begins with.")
@click.option("--contact", default="", help="A task by which other workers join.")
@click.option("--serve", "serves", is_flag=True, help="Serve the cluster, without a COMMAND.")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def main(
    replicas: int,
    first_workers: int | None,
    contact: str,
    serves: bool,
    command: tuple[str, ...],
) -> None:
    """Wait until the name of this pod is its own, complete TF_CONFIG, and become COMMAND."""
    if not serves and not command:
        raise click.UsageError("There is no COMMAND to become, and no --serve.")
    try:
        found = completed_config(os.environ, replicas, first_workers, contact)
        if (address := _own_address(found)) is not None:
            wait_for_own_name(split_address(address)[0])
    except (TimeoutError, ValueError) as error:
        raise click.ClickException(str(error)) from None
    if serves:
        os.environ.update(found)
        settings.reload()
        serve()
    else:
        run(command, found)


def _own_address(environ: Mapping[str, str]) -> str | None:
    """Of this task; None for an evaluator, which is no part of the cluster, and without a cluster.

    Raises:
        ValueError: if ``TF_CONFIG`` is not as it should be.
    """
    config = tf_config_or_empty(environ)
    if not config:
        return None
    _check(config)
    addresses, index = config["cluster"].get(config["task"]["type"], []), config["task"]["index"]
    found: str | None = addresses[index] if index < len(addresses) else None
    return found


def _check(config: Mapping[str, Any]) -> None:
    """What an operator has written, or somebody by hand."""
    cluster, task = config.get("cluster"), config.get("task")
    fits = (
        isinstance(cluster, dict)
        and isinstance(task, dict)
        and isinstance(task.get("type"), str)
        and type(task.get("index")) is int
        and task["index"] >= 0
        and all(isinstance(tasks, list) for tasks in cluster.values())
        and all(isinstance(a, str) for tasks in cluster.values() for a in tasks)
    )
    if not fits:
        raise ValueError(
            f"{VARIABLE} must be a JSON object with 'cluster', lists of addresses by the names of "
            f"jobs, and 'task', an object with 'type' and 'index', not {json.dumps(config):.200}."
        )


def run(command: Sequence[str], environ: Mapping[str, str]) -> NoReturn:
    """Become another program.

    Raises:
        click.ClickException: if there is none of that name.
    """
    try:
        os.execvpe(command[0], list(command), dict(environ))
    except OSError as error:
        raise click.ClickException(
            f"The image has no program {command[0]!r}: {error.strerror}."
        ) from None


def completed_config(
    environ: Mapping[str, str], replicas: int, first_workers: int | None, contact: str
) -> dict[str, str]:
    """The environment of the script.

    Args:
        environ: that of the pod. Without a ``TF_CONFIG`` in it nothing is changed.
        replicas: see `tf.train.ClusterSpec`.
        first_workers: so many workers the cluster begins with; None if that is all of them.
        contact: ``host:port`` of the task by which others join.

    Raises:
        ValueError: if ``TF_CONFIG`` is not as it should be.

    >>> cluster, task = {"worker": ["a:1", "b:1", "c:1"]}, {"type": "worker", "index": 1}
    >>> config = json.dumps({"cluster": cluster, "task": task})
    >>> found = completed_config({"TF_CONFIG": config}, 0, 1, "p:1")
    >>> found["TF_CONFIG"]
    '{"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": 1}}'
    >>> found["HEADRACE_JOIN"]
    'p:1'
    """
    found = dict(environ)
    config: dict[str, Any] = tf_config_or_empty(environ)
    if not config:
        return found
    _check(config)
    if replicas:
        config["replicas"] = replicas
    if first_workers is not None:
        index = config["task"]["index"] if config["task"]["type"] == WORKER else 0
        joins = index >= first_workers
        count = index + 1 if joins else first_workers
        config["cluster"][WORKER] = config["cluster"][WORKER][:count]
        if joins:
            found["HEADRACE_JOIN"] = contact
    found[VARIABLE] = json.dumps(config)
    return found


def wait_for_own_name(
    host: str,
    seconds: float = _WAIT,
    is_own: Callable[[str], bool] | None = None,
    now: Callable[[], float] = time.monotonic,
    wait: Callable[[float], None] = time.sleep,
) -> None:
    """Wait until a name is one of this machine.

    Raises:
        TimeoutError: if it is not after ``seconds``.
    """
    is_own = is_own or _is_own
    end = now() + seconds
    while not is_own(host):
        if now() >= end:
            raise TimeoutError(
                f"{host!r} is not the name of this pod after {seconds:.0f} s. It comes from the "
                "headless Service of the job: look whether that is there, and whether the cluster "
                "has DNS."
            )
        wait(_BETWEEN)


def _is_own(host: str) -> bool:
    """Whether something may listen at that name here."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, 0, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind, protocol) as tried:
            tried.bind(address)
    except OSError:
        return False
    return True


if __name__ == "__main__":
    main()
