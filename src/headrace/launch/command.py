"""The command `headrace launch` without its options."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import click

from headrace.distributed.cluster.tf_config import VARIABLE
from headrace.launch.hosts import LocalHost
from headrace.launch.job import LaunchJob
from headrace.launch.script import knows_clusters, source_of

__all__ = ["Here", "run_launch"]

#: Several processes share one accelerator: none may take all of its memory at once.
_SHARED = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}


@dataclass(frozen=True)
class Here:
    """How a job is launched from this machine.

    Args:
        log_folder: for a log of each task.
        servers: what tasks of the job ``ps`` run, "script" or "launcher"; "auto" looks at the
            script.
    """

    log_folder: Path
    servers: str = "auto"


def run_launch(job: LaunchJob, here: Here) -> int:
    """Launch a job on this machine; the exit status.

    Raises:
        click.ClickException: if it cannot be begun.
    """
    try:
        source = source_of(job.script, job.as_module)
    except FileNotFoundError as error:
        raise click.ClickException(str(error)) from None
    if os.environ.get(VARIABLE):
        raise click.ClickException(
            f"{VARIABLE} is set: this process is a task of a cluster already. Unset it, or run "
            "the program itself with `headrace run`."
        )
    runs_script = knows_clusters(source) if here.servers == "auto" else here.servers == "script"
    # First of all: it forks, and no thread may run then.
    host = LocalHost()
    from headrace.launch.launcher import Launch, Launcher

    environment = {name: value for name, value in _SHARED.items() if name not in os.environ}
    try:
        launcher = Launcher(Launch(job, here.log_folder, runs_script, environment), [host])
    except OSError as error:
        host.close()
        raise click.ClickException(
            f"The folder for logs {str(here.log_folder)!r} cannot be made: "
            f"{error.strerror or error}. --log-dir names another one."
        ) from None
    return launcher.run()
