"""The command `headrace launch` without its options."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headrace.distributed.cluster.tf_config import VARIABLE
from headrace.launch.hosts import Host, LocalHost
from headrace.launch.job import LaunchJob
from headrace.launch.script import cluster_sign, knows_clusters, source_of
from headrace.settings import USERS_COMPILATION_CACHE

if TYPE_CHECKING:
    from headrace.launch.slurm import SlurmTask
    from headrace.launch.ssh import SshOptions

__all__ = ["LaunchPlace", "run_in_slurm", "run_launch", "run_on_hosts"]

#: Several processes share one accelerator: none may take all of its memory at once. And what one
#: has compiled, the others and their next starts find.
_SHARED = {
    "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
    "HEADRACE_COMPILATION_CACHE": USERS_COMPILATION_CACHE,
}


@dataclass(frozen=True)
class LaunchPlace:
    """How a job is launched from this machine.

    Args:
        log_folder: for a log of each task.
        servers: what tasks of the job ``ps`` run, "script" or "launcher"; "auto" looks at the
            script.
        environment: more variables for tasks.
    """

    log_folder: Path
    servers: str = "auto"
    environment: Mapping[str, str] = field(default_factory=dict)


def run_launch(job: LaunchJob, place: LaunchPlace) -> int:
    """Launch a job on this machine; the exit status.

    Raises:
        click.ClickException: if it cannot be begun.
    """
    job = _looked_at(job)
    # First of all: it forks, and no thread may run then.
    return _run(job, place, _servers_run_script(job, place), [LocalHost()])


def run_in_slurm(job: LaunchJob, place: LaunchPlace, workers: int | None, port: int | None) -> int:
    """Run the task that this process of a step of Slurm is; the exit status.

    Args:
        workers: how many were asked for; None takes all processes that are left.
        port: of the first task of each host.

    Raises:
        click.ClickException: if it cannot be begun.
    """
    from headrace.launch.slurm import OtherWorkers, slurm_task

    if job.elastic:
        raise click.ClickException(
            "A step of Slurm has a fixed number of processes: leave out --elastic."
        )
    try:
        task = slurm_task(job, os.environ, workers, port)
    except (ValueError, RuntimeError) as error:
        raise click.ClickException(str(error)) from None
    looked = _looked_at(task.job)
    others = OtherWorkers(task, _answers)
    runs_script, host = _servers_run_script(looked, place), LocalHost()
    # Not before the host has forked.
    watching = threading.Thread(target=others.watch, name="other-workers", daemon=True)
    watching.start()
    status = _run(looked, place, runs_script, [host], task)
    if status == 0:
        watching.join()
        others.end_servers(_shut_down)
    return status


def run_on_hosts(
    job: LaunchJob,
    place: LaunchPlace,
    names: Sequence[str],
    options: SshOptions,
    variables: Sequence[str],
) -> int:
    """Launch a job on machines that ssh reaches; the exit status.

    Args:
        names: of the machines; tasks are dealt out to them in turn.
        variables: ``NAME`` or ``NAME=VALUE``, for tasks.

    Raises:
        click.ClickException: if it cannot be begun.
    """
    from headrace.launch.ssh import SshHost, passed_environment

    if wrong := [name for name in names if not name or name.startswith("-")]:
        raise click.UsageError(f"--hosts: {wrong[0]!r} is no host.")
    runs_script = place.servers != "launcher"
    if Path(job.script).exists() and place.servers == "auto":
        runs_script = knows_clusters(source_of(job.script, job.as_module), job.chosen_mode)
        job = replace(job, is_plain=not runs_script)
    try:
        environment = passed_environment(os.environ, variables)
    except (ValueError, OSError) as error:
        raise click.ClickException(str(error)) from None
    hosts: list[SshHost] = []
    try:
        # All are asked before the first is waited for.
        hosts += [SshHost(name, options, environment) for name in names]
        for host in hosts:
            _compare(host.name, host.wait())
    except FileNotFoundError:
        raise click.ClickException("There is no command ssh here: install OpenSSH.") from None
    except (OSError, ValueError) as error:
        for host in hosts:
            host.close()
        raise click.ClickException(str(error)) from None
    place = replace(place, environment=environment)
    return _run(job, place, runs_script, hosts, folder=options.folder)


def _looked_at(job: LaunchJob) -> LaunchJob:
    """A job that is told whether its script is plain, if there is one and it can be launched."""
    try:
        source = source_of(job.script, job.as_module)
    except FileNotFoundError as error:
        raise click.ClickException(str(error)) from None
    if os.environ.get(VARIABLE):
        raise click.ClickException(
            f"{VARIABLE} is set: this process is a task of a cluster already. Unset it, or run "
            "the program itself with `headrace run`."
        )
    sign = cluster_sign(source, job.chosen_mode)
    if sign is not None and job.mode not in (None, "async"):
        click.echo(
            f"headrace: {job.script} {sign}, so it distributes itself: --{job.mode} is not heeded.",
            err=True,
        )
    return replace(job, is_plain=sign is None)


def _servers_run_script(job: LaunchJob, place: LaunchPlace) -> bool:
    return not job.is_plain if place.servers == "auto" else place.servers == "script"


def _compare(name: str, about: Mapping[str, object]) -> None:
    """Machines of one cluster must run the same release.

    Raises:
        ValueError: if another machine has another one; says what to do.
    """
    from headrace.launch.starter import about_host

    own = about_host()
    for what, word in (("release", "Headrace"), ("python", "Python")):
        if about[what] != own[what]:
            raise ValueError(
                f"{name} has {word} {about[what]}, and this machine {own[what]}: tasks of one "
                "cluster need the same. Install it there, or name another interpreter with "
                "--remote-python."
            )


def _run(
    job: LaunchJob,
    place: LaunchPlace,
    runs_script: bool,
    hosts: Sequence[Host],
    part: SlurmTask | None = None,
    folder: str | None = None,
) -> int:
    from headrace.launch.launcher import Launch, Launcher

    shared = {name: value for name, value in _SHARED.items() if name not in os.environ}
    launch = Launch(
        job,
        place.log_folder,
        runs_script,
        {**shared, **place.environment},
        part.addresses if part else {},
        [part.task] if part else None,
        os.getcwd() if folder is None else folder,
    )
    try:
        launcher = Launcher(launch, hosts)
    except OSError as error:
        for host in hosts:
            host.close()
        raise click.ClickException(
            f"The folder for logs {str(place.log_folder)!r} cannot be made: "
            f"{error.strerror or error}. --log-dir names another one."
        ) from None
    return launcher.run()


def _answers(address: str) -> bool:
    from headrace.distributed.services import admin
    from headrace.errors import DeadlineExceededError, UnavailableError

    try:
        admin.status(address, cluster=False)
    except UnavailableError:
        return False
    except DeadlineExceededError:
        return True
    return True


def _shut_down(address: str) -> None:
    from headrace.distributed.services import admin
    from headrace.errors import OpError

    with contextlib.suppress(OpError):  # it has ended already
        admin.shutdown(address, cluster=False)
