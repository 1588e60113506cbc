"""The options of `headrace launch`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import click

from headrace.cli.launch_on import OPTIONS, check_options, cluster_options, launch_on, resources_of

__all__ = ["launch_command"]

#: What only machines that ssh reaches need.
_REMOTE = {
    "ssh_options": "--ssh-option",
    "remote_python": "--remote-python",
    "remote_dir": "--remote-dir",
    "variables": "--env",
}


class _Range(click.ParamType):  # type: ignore[type-arg]
    """``MIN:MAX``."""

    name = "MIN:MAX"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, int]:
        if isinstance(value, tuple):
            return value
        fewest, colon, most = str(value).partition(":")
        try:
            if not colon:
                raise ValueError
            return int(fewest), int(most)
        except ValueError:
            self.fail(f"{value!r} is not of the form MIN:MAX, as 2:8 is.", param, ctx)


class _Launch(click.Command):
    """Says what to do where a script's name begins as an option does."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As a command does.

        Raises:
            click.UsageError: for arguments that do not fit.
        """
        script = next((a for a in args if a.startswith("-") and Path(a).is_file()), None)
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            if script is None:
                raise
            what = f"{error.message.rstrip('.')}. If you mean the file {script}"
            text = f"{what}, name it as ./{script}, or write -- in front of it."
            raise click.UsageError(text, ctx) from None


@click.command(
    "launch",
    cls=_Launch,
    context_settings={"ignore_unknown_options": False, "allow_interspersed_args": False},
)
@click.option("--ps", default=0, show_default=True, help="Tasks that hold variables.")
@click.option(
    "--workers",
    type=int,
    help="Tasks that train, the chief among them; 1 by default, with --elastic its MIN.",
)
@click.option(
    "--chief/--no-chief",
    default=False,
    help="The first worker is a job of its own, `chief`; otherwise worker 0 has its duties.",
)
@click.option("--evaluator", is_flag=True, help="One more task that evaluates checkpoints.")
@click.option(
    "--standby", is_flag=True, help="Each server's variables have a copy at another server."
)
@click.option(
    "--elastic", type=_Range(), help="The fewest and most workers, for `headrace resize`."
)
@click.option("--sync", is_flag=True, help="A plain script trains in step.")
@click.option("--async", is_flag=True, help="... without waiting, the default.")
@click.option("--all-reduce", is_flag=True, help="... without servers, the default if none.")
@click.option("--backup", default=0, help="With --sync: so many workers are not waited for.")
@click.option(
    "--restarts", default=3, show_default=True, help="How often in a row a task may fail."
)
@click.option(
    "--metrics-port",
    type=click.IntRange(0, 65535),
    help="Where the first task of each machine offers metrics to Prometheus; the next one at the "
    "next port. 0: at ports that are free.",
)
@click.option(
    "--log-format",
    type=click.Choice(["plain", "json"]),
    default="plain",
    show_default=True,
    help="json: each line of output is an object with time, level, task, step and event.",
)
@click.option(
    "--servers",
    type=click.Choice(["auto", "script", "launcher"]),
    default="auto",
    show_default=True,
    help="What tasks of the job ps run: the script, or the launcher's own program. auto: the "
    "script if it names what clusters are made of.",
)
@click.option(
    "--log-dir",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("headrace-launch"),
    show_default=True,
    help="Where the log of each task goes.",
)
@click.option(
    "--on",
    type=click.Choice(["here", "slurm", "kubernetes", "ray"]),
    default="here",
    show_default=True,
    help="Where tasks run. slurm: this process is one of them, as srun has started it. "
    "kubernetes: writes manifests. ray: actors of a cluster.",
)
@click.option("--port", type=click.IntRange(1, 65535), help="Of the first task of a host in Slurm.")
@click.option(
    "--hosts",
    metavar="A,B,...",
    help="Machines that ssh reaches, which get the tasks in turn; the names are their addresses.",
)
@click.option("--ssh-option", "ssh_options", multiple=True, help="An argument of ssh, as -p2222.")
@click.option(
    "--remote-python",
    help="The interpreter on the machines of --hosts; by default the path of this one.",
)
@click.option("--remote-dir", help="Where tasks run there; by default the folder of this name.")
@click.option(
    "--env",
    "variables",
    multiple=True,
    metavar="NAME[=VALUE]",
    help="A variable for tasks on --hosts, beside those of HEADRACE_, JAX_ and XLA_.",
)
@cluster_options
@click.option("-m", "as_module", is_flag=True, help="SCRIPT is the name of a module.")
@click.argument("script")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def launch_command(
    script: str,
    arguments: tuple[str, ...],
    workers: int | None,
    standby: bool,
    elastic: tuple[int, int] | None,
    backup: int,
    log_dir: Path,
    servers: str,
    on: str,
    port: int | None,
    hosts: str | None,
    **options: Any,
) -> None:
    """Run SCRIPT on a cluster of processes, of this machine if nothing else is said.

    Each task runs the script as `headrace run` does, with TF_CONFIG. What dies is started again;
    when the workers are done, servers are shut down. A panel shows the tasks at a terminal; their
    output has their name in front, and goes to a file for each in the folder of --log-dir.

    The exit status is the worst of the tasks.
    """
    from headrace.launch.command import LaunchPlace, run_in_slurm, run_launch, run_on_hosts
    from headrace.launch.job import LaunchJob
    from headrace.launch.processes import have_streams

    have_streams()
    asked = workers
    cluster = {"on": on, **{name: options.pop(name) for name in OPTIONS}}
    check_options(cluster)
    mode = _mode(options)
    remote = {name: options.pop(name) for name in _REMOTE}
    _refuse_unused(on, hosts, port, [_REMOTE[name] for name in _REMOTE if remote[name]])
    if workers is None:
        # A step of Slurm has as many as are left.
        workers = elastic[0] if elastic else (backup if on == "slurm" else 0) + 1
    if backup and mode is None:
        mode = "sync"
    try:
        job = LaunchJob(
            script,
            arguments,
            workers=workers,
            replicas=int(standby),
            elastic=elastic,
            mode=mode,
            backups=backup,
            resources=resources_of(cluster),
            **options,
        )
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    if on in ("kubernetes", "ray"):
        raise SystemExit(launch_on(job, log_dir, servers, cluster))
    place = LaunchPlace(log_dir, servers)
    if on == "slurm":
        raise SystemExit(run_in_slurm(job, place, asked, port))
    if hosts is None:
        raise SystemExit(run_launch(job, place))
    from headrace.launch.ssh import SshOptions

    python, folder = remote["remote_python"] or sys.executable, remote["remote_dir"] or os.getcwd()
    reached = SshOptions(remote["ssh_options"], python, folder)
    raise SystemExit(run_on_hosts(job, place, hosts.split(","), reached, remote["variables"]))


def _mode(options: dict[str, Any]) -> Any:
    """The mode that was chosen; None by default. Its options are taken out."""
    chosen = [mode for mode in ("sync", "async", "all_reduce") if options.pop(mode)]
    names = [mode.replace("_", "-") for mode in chosen]
    if len(names) > 1:
        raise click.UsageError(f"--{' and --'.join(names)} contradict each other: choose one.")
    return names[0] if names else None


def _refuse_unused(on: str, hosts: str | None, port: int | None, remote: list[str]) -> None:
    """Refuse what would be ignored: who has asked for it expects another place."""
    if hosts is not None and on != "here":
        raise click.UsageError(f"--hosts: not for --on {on}, which has its own machines.")
    if remote and hosts is None:
        raise click.UsageError(f"{', '.join(remote)}: only with --hosts.")
    if port is not None and on != "slurm":
        raise click.UsageError(f"--port: not for --on {on}.")
