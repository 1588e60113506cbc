"""The options of `headrace launch --on kubernetes` and `--on ray`, and what becomes of them."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from headrace.cli.values import DAY, RealRange
from headrace.launch.job import CHIEF, EVALUATOR, SERVER, WORKER, LaunchJob, Resources

__all__ = ["OPTIONS", "check_options", "cluster_options", "launch_on", "resources_of"]

_JOBS = (SERVER, CHIEF, WORKER, EVALUATOR)
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_KUBERNETES = {
    "image": click.option("--image", default="", help="Kubernetes: of the tasks' containers."),
    "name": click.option("--name", help="Kubernetes: of the job; by default from SCRIPT."),
    "namespace": click.option("--namespace", help="Kubernetes: for all of it; default: default."),
    "kind": click.option(
        "--kind",
        type=click.Choice(["plain", "tfjob", "trainjob"]),
        help="Kubernetes: a StatefulSet and Jobs (the default), or a resource of Kubeflow's.",
    ),
    "volumes": click.option(
        "--volume", "volumes", multiple=True, metavar="CLAIM:/PATH", help="Kubernetes: to mount."
    ),
    "secret": click.option("--secret", help="Kubernetes: with TLS files and token."),
    "insecure": click.option("--insecure", is_flag=True, help="Kubernetes: without a secret."),
    "output": click.option(
        "--output",
        type=click.Path(file_okay=False, path_type=Path),
        help="Kubernetes: a folder for the manifests, instead of standard output.",
    ),
    "apply": click.option("--apply", is_flag=True, help="Kubernetes: hand them to kubectl."),
}
_RAY = {
    "address": click.option("--address", help="Ray: of the head, HOST:PORT."),
    "strategy": click.option(
        "--strategy",
        type=click.Choice(["PACK", "SPREAD", "STRICT_PACK", "STRICT_SPREAD"]),
        help="Ray: how tasks are placed; PACK by default.",
    ),
    "wait": click.option(
        "--wait", type=RealRange(0, 7 * DAY), help="Ray: seconds that an autoscaler may take."
    ),
}
_BOTH = {
    name: click.option(
        f"--{name}", multiple=True, metavar="[JOB=]N", help=f"Kubernetes, Ray: {what} of a task."
    )
    for name, what in (("cpus", "processors"), ("gpus", "accelerators"), ("memory", "memory (4G)"))
}
#: The names of all these options.
OPTIONS = (*_KUBERNETES, *_RAY, *_BOTH)


def cluster_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of other clusters than this machine."""
    for option in reversed([*_BOTH.values(), *_KUBERNETES.values(), *_RAY.values()]):
        command = option(command)
    return command


@dataclass(frozen=True)
class _Place:
    """What else the command line says of a launch."""

    log_folder: Path
    servers: str
    options: dict[str, Any]

    def of(self, names: Sequence[str]) -> dict[str, Any]:
        """Those of some options that were given."""
        given = {name: self.options[name] for name in names}
        return {name: value for name, value in given.items() if value not in (None, (), False, "")}


def launch_on(job: LaunchJob, log_folder: Path, servers: str, options: dict[str, Any]) -> int:
    """Launch a job elsewhere; the exit status.

    Raises:
        click.ClickException: if that cannot be.
    """
    place = _Place(log_folder, servers, options)
    return {"kubernetes": _on_kubernetes, "ray": _on_ray}[options["on"]](job, place)


def check_options(options: dict[str, Any]) -> None:
    """Refuse options of other clusters.

    Raises:
        click.UsageError: if there are some.
    """
    on = options["on"]
    own = {"kubernetes": _KUBERNETES, "ray": _RAY}.get(on, {})
    others = [name for name in (*_KUBERNETES, *_RAY) if name not in own]
    wrong = _Place(Path(), "", options).of(others)
    if wrong:
        names = ["--volume" if name == "volumes" else f"--{name}" for name in wrong]
        raise click.UsageError(f"{', '.join(names)}: not for --on {on}.")


def resources_of(options: dict[str, Any]) -> dict[str, Resources]:
    """What the tasks of each job ask for.

    Raises:
        click.UsageError: if something is no number, or for no job.
    """
    found: dict[str, dict[str, Any]] = {job: {} for job in _JOBS}
    for name, convert in (("cpus", float), ("gpus", int), ("memory", _bytes)):
        # Those for all jobs first.
        for text in sorted(options[name], key=lambda text: "=" in text):
            job, equals, value = text.rpartition("=")
            if equals and job not in _JOBS:
                raise click.UsageError(f"--{name} {text}: there is no job {job!r}.")
            try:
                number = convert(value)
            except ValueError:
                raise click.UsageError(f"--{name} {text}: {value!r} is no such number.") from None
            for one in [job] if equals else _JOBS:
                found[one][name] = number
    try:
        return {job: Resources(**asked) for job, asked in found.items()}
    except ValueError as error:
        raise click.UsageError(str(error)) from None


def _bytes(text: str) -> int:
    """
    >>> _bytes("1.5G"), _bytes("512Mi")
    (1610612736, 536870912)
    """
    found = re.fullmatch(r"([0-9.]+)([KMGT]?)i?B?", text)
    if not found:
        raise ValueError(text)
    size = float(found[1]) * _UNITS[found[2]]
    if size >= 2**63:
        raise ValueError(text)
    return int(size)


def _runs_script(job: LaunchJob, servers: str) -> bool:
    """Whether servers run the script; one that is not here is taken for a program of clusters."""
    from headrace.launch.script import knows_clusters, source_of

    if servers != "auto":
        return servers == "script"
    try:
        return knows_clusters(source_of(job.script, job.as_module), job.chosen_mode)
    except FileNotFoundError:
        return True


def _on_kubernetes(job: LaunchJob, place: _Place) -> int:
    from headrace.launch.kubernetes import (
        KubernetesOptions,
        Volume,
        as_yaml,
        default_name,
        manifests,
    )

    given = place.of(["image", "name", "namespace", "kind", "secret", "insecure"])
    given = {"image": "", "name": default_name(job.script), **given}
    try:
        volumes = tuple(map(Volume.parse, place.options["volumes"]))
        runs_script = _runs_script(job, place.servers)
        options = KubernetesOptions(**given, volumes=volumes, servers_run_script=runs_script)
        resources = manifests(job, options)
        text = as_yaml(resources)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "yaml":
            raise
        raise click.ClickException(
            "Manifests are written with PyYAML: pip install 'headrace[kubernetes]'."
        ) from None
    folder = place.options["output"]
    if folder is not None:
        files = {
            f"{number}-{one['kind'].lower()}-{one['metadata']['name']}.yaml": as_yaml([one])
            for number, one in enumerate(resources)
        }
        _write(folder, files)
    elif not place.options["apply"]:
        click.echo(text, nl=False)
    return _apply(text) if place.options["apply"] else 0


def _write(folder: Path, files: Mapping[str, str]) -> None:
    """Write files by their names; tells of manifests that others have left in the folder."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")
        others = sorted({path.name for path in folder.glob("*.yaml")} - set(files))
    except OSError as error:
        raise click.ClickException(
            f"cannot write to '{folder}': {error.strerror or error}"
        ) from None
    if others:
        click.echo(
            f"headrace: '{folder}' also holds {', '.join(others)}, which are not of this job: "
            "`kubectl apply --filename` of the folder would apply them, too.",
            err=True,
        )


def _apply(text: str) -> int:
    program = shutil.which("kubectl")
    if program is None:
        raise click.ClickException(
            "There is no kubectl on the path to apply the manifests with. Leave out --apply, and "
            "apply what is written from a machine that has it."
        )
    done = subprocess.run([program, "apply", "--filename=-"], input=text, text=True, check=False)
    if done.returncode:
        raise click.ClickException(f"kubectl has ended with status {done.returncode}.")
    return 0


def _on_ray(job: LaunchJob, place: _Place) -> int:
    from headrace.launch.ray import RayError, RayOptions, launch
    from headrace.launch.script import source_of

    try:
        source_of(job.script, job.as_module)
        options = RayOptions(
            **place.of(list(_RAY)),
            log_folder=place.log_folder,
            servers_run_script=_runs_script(job, place.servers),
        )
        return launch(job, options)
    except (FileNotFoundError, RayError) as error:
        raise click.ClickException(str(error)) from None
