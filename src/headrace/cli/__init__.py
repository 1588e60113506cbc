"""The command `headrace`.

Each subcommand imports what it needs when it runs.
"""

from __future__ import annotations

import os
from importlib import metadata
from pathlib import Path
from typing import Any

import click

from headrace.chaos.schedule import KINDS
from headrace.cli.group import CommandGroup
from headrace.cli.launch import launch_command
from headrace.cli.operations import doctor_command, trace_command
from headrace.cli.values import DAY, RealRange

__all__ = ["main"]


@click.group(cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(metadata.version("headrace"), prog_name="headrace")
def main() -> None:
    """Headrace: graphs of tensor operations, run by XLA."""


@main.command("demo")
@click.option(
    "--steps",
    type=click.IntRange(min=1),
    help="Training steps of each model, instead of as many as it needs.",
)
@click.option(
    "--output-dir",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("headrace-demo"),
    show_default=True,
    help="Where checkpoints and the picture go.",
)
@click.option("--seed", default=2016, show_default=True, help="Of split, shuffling and weights.")
@click.option("--picture/--no-picture", default=True, help="Draw the learning curves.")
@click.option(
    "--cluster/--one-process",
    default=True,
    help="Train in one process and on a cluster of processes, or in one process only.",
)
@click.option(
    "--workers",
    type=click.IntRange(1, 64),
    default=2,
    show_default=True,
    help="Processes of the cluster that compute gradients.",
)
@click.option(
    "--parameter-servers",
    type=click.IntRange(1, 64),
    default=2,
    show_default=True,
    help="Processes of the cluster that own the variables.",
)
def demo_command(
    steps: int | None,
    output_dir: Path,
    seed: int,
    picture: bool,
    cluster: bool,
    workers: int,
    parameter_servers: int,
) -> None:
    """Learn real handwritten digits with two small models, and check what they learned.

    Each is trained in one process, and by a cluster of processes on this machine: workers that
    do not wait for each other, parameter servers, and a chief that tests and saves.

    Exit status 1 means that a model missed its test accuracy, or that the cluster did not match
    the one process.
    """
    from headrace import settings
    from headrace.cli.demo import Demo, run_demo

    settings.keep_compiled()
    demo = Demo(steps, output_dir, seed, picture, workers if cluster else 0, parameter_servers)
    if not run_demo(demo):
        raise SystemExit(1)


@main.command("chaos")
@click.option(
    "--minutes",
    type=RealRange(0.05, 60 * 24 * 365),
    default=10.0,
    show_default=True,
    help="How long faults happen, in each mode.",
)
@click.option("--seed", default=7, show_default=True, help="Of what happens to whom, and when.")
@click.option(
    "--mode",
    "modes",
    multiple=True,
    type=click.Choice(["asynchronous", "synchronous", "all-reduce"]),
    help="Of training; give the option once for each. All in turn by default.",
)
@click.option(
    "--fault",
    "kinds",
    multiple=True,
    type=click.Choice(sorted(KINDS)),
    help="What may happen; give the option once for each. All by default.",
)
@click.option(
    "--replicas",
    type=click.IntRange(0, 1),
    default=0,
    show_default=True,
    help="Copies of the variables of each server: with one, no kill loses an update.",
)
@click.option(
    "--every",
    type=RealRange(0.1, DAY),
    default=4.0,
    show_default=True,
    help="Seconds between two faults, on average.",
)
@click.option(
    "--output-dir",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("headrace-chaos"),
    show_default=True,
    help="Where logs, checkpoints and the report go.",
)
def chaos_command(
    minutes: float,
    seed: int,
    modes: tuple[str, ...],
    kinds: tuple[str, ...],
    replicas: int,
    every: float,
    output_dir: Path,
) -> None:
    """Train on a cluster of processes on this machine while much goes wrong.

    Two parameter servers and four workers learn handwritten digits. Equal seeds give equal faults.
    The report says what was lost, how long training stood still, and whether every step that was
    acknowledged can be accounted for.

    Exit status 1 means that one cannot, or that a process ended or hung by itself.
    """
    from headrace.chaos.command import Chaos, run_chaos

    options: dict[str, Any] = {
        name: value for name, value in (("modes", modes), ("kinds", kinds)) if value
    }
    if not run_chaos(
        Chaos(60 * minutes, seed, output_dir, every=every, replicas=replicas, **options)
    ):
        raise SystemExit(1)


@main.command("certs")
@click.option(
    "--output-dir",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    help="Where the files go.",
)
@click.option(
    "--host",
    "hosts",
    multiple=True,
    required=True,
    metavar="NAME_OR_IP",
    help="A machine of the cluster, as others dial it; give the option once for each.",
)
@click.option(
    "--days",
    type=click.IntRange(1, 3650),
    default=30,
    show_default=True,
    help="How long the certificates are valid.",
)
@click.option("--force", is_flag=True, help="Replace files that are there.")
def certs_command(output_dir: Path, hosts: tuple[str, ...], days: int, force: bool) -> None:
    """Make a test authority, certificates and keys for the machines of a cluster, and its token.

    A cluster needs them on any address but loopback. Prints the settings that use them.
    """
    from headrace.cli.certs import run_certs

    run_certs(output_dir, hosts, days, force)


@main.command("status")
@click.argument("address", metavar="HOST:PORT")
@click.option("--cluster/--one", default=True, help="All tasks of the cluster, or only this one.")
@click.option("--steps", is_flag=True, help="Where the steps that run now are in each task.")
@click.option("--stacks", is_flag=True, help="What each thread of the tasks does.")
@click.option("--watch", is_flag=True, help="What the tasks do in a second, until Ctrl-C.")
@click.option(
    "--interval",
    type=RealRange(0.1, DAY),
    default=2.0,
    show_default=True,
    help="With --watch: seconds between two looks.",
)
@click.option("--count", type=click.IntRange(min=1), help="With --watch: end after so many looks.")
def status_command(
    address: str,
    cluster: bool,
    steps: bool,
    stacks: bool,
    watch: bool,
    interval: float,
    count: int | None,
) -> None:
    """Show the tasks of a cluster: sessions, steps, variables with their bytes, and links.

    With --steps it shows where steps are instead: which operations run or wait, for how long, and
    which tensors have not come from whom; with --stacks the Python stacks of all threads.

    With --watch it shows rates instead, again and again: steps, bytes of each link, memory, cores,
    and tasks that are slower than others of their job. Where output is no terminal, each task has a
    line each time.

    Exit status 1 means that a task did not answer.
    """
    from headrace.cli.cluster import show_positions, show_status

    if watch:
        from headrace.cli.watch import watch_cluster

        if steps or stacks or not cluster:
            raise click.UsageError("--watch shows rates of all tasks: leave out other options.")
        watch_cluster(address, interval, count)
        return
    if steps or stacks:
        answered = show_positions(address, cluster, steps, stacks)
    else:
        answered = show_status(address, cluster)
    if not answered:
        raise SystemExit(1)


@main.command("resize")
@click.argument("address", metavar="HOST:PORT")
@click.option("--workers", type=click.IntRange(min=0), help="How many tasks of the job worker.")
@click.option("--ps", type=click.IntRange(min=0), help="How many tasks of the job ps.")
def resize_command(address: str, workers: int | None, ps: int | None) -> None:
    """Ask a running cluster for another number of workers or parameter servers.

    Workers that are too many, those with the highest numbers, end their training loops and leave;
    dead ones are forgotten. Parameter servers that are too many give their variables away, and
    end. Nothing is started here: those that are too few join when somebody starts them with the
    address of any task, `tf.train.Server("HOST:PORT", job_name="worker")`.

    Exit status 1 means that the cluster cannot have this size, or did not agree on it.
    """
    from headrace.cli.cluster import resize

    found = {"worker": workers, "ps": ps}
    wanted = {job: count for job, count in found.items() if count is not None}
    if not wanted:
        raise click.UsageError("Say how many: --workers N, --ps N or both.")
    resize(address, wanted)


@main.command("shutdown")
@click.argument("address", metavar="HOST:PORT")
@click.option("--cluster/--one", default=True, help="All tasks of the cluster, or only this one.")
def shutdown_command(address: str, cluster: bool) -> None:
    """Stop the servers of a cluster; `server.join()` returns there.

    Exit status 1 means that a task did not answer.
    """
    from headrace.cli.cluster import shut_down

    if not shut_down(address, cluster):
        raise SystemExit(1)


@main.command(
    "run",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.option("-m", "as_module", is_flag=True, help="PROGRAM is the name of a module.")
@click.option(
    "--log-format",
    type=click.Choice(["plain", "json"]),
    help="Of the loggers of TensorFlow and Headrace; HEADRACE_LOG_FORMAT does the same.",
)
@click.argument("program")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def run_command(
    as_module: bool, log_format: str | None, program: str, arguments: tuple[str, ...]
) -> None:
    """Run a program that imports TensorFlow 1.x on Headrace, unchanged.

    PROGRAM is run as `python PROGRAM ARGUMENTS` would run it; the exit status is the program's.
    """
    from headrace import settings
    from headrace.launch.program import run_program

    settings.keep_compiled()
    if log_format is not None:
        os.environ["HEADRACE_LOG_FORMAT"] = log_format
        settings.reload()
        if log_format == "json":
            from headrace import logging

            logging.get_logger()
    run_program(program, arguments, as_module)


main.add_command(launch_command)
main.add_command(trace_command)
main.add_command(doctor_command)
