"""`headrace trace` and `headrace doctor`: a step on all tasks, and what is wrong."""

from __future__ import annotations

import json
from pathlib import Path

import click

from headrace.cli.values import DAY, RealRange, folder_named

__all__ = ["doctor_command", "trace_command"]


@click.command("trace")
@click.argument("address", metavar="HOST:PORT")
@click.option(
    "--out",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    metavar="FILE",
    help="A file for Perfetto and chrome://tracing.",
)
@click.option(
    "--logdir",
    metavar="DIR",
    callback=folder_named,
    help="A folder of TensorBoard, for its profile page.",
)
@click.option(
    "--timeout",
    type=RealRange(0.1, DAY),
    default=30.0,
    show_default=True,
    help="Seconds to wait for a step.",
)
def trace_command(address: str, out: Path | None, logdir: str | None, timeout: float) -> None:
    """Record the next step of a cluster that trains: what each task did, and what it waited for.

    Nothing has to be prepared in the program. A step that runs on several tasks is preferred. All
    times are by the clock of the task whose session ran the step.

    Exit status 1 means that no step ended in time.
    """
    from datetime import datetime

    from headrace.errors import OpError
    from headrace.operations.profile_page import write_profile
    from headrace.operations.traces import next_step
    from headrace.session.step_trace import chrome_trace, task_slices

    if out is None and logdir is None:
        raise click.UsageError("Say where the trace goes: --out FILE, --logdir DIR or both.")
    try:
        traced = next_step(address, timeout)
    except (OpError, ValueError) as error:
        raise click.ClickException(str(error)) from None
    slices = task_slices(traced.stats)
    begin, end = min(s.start for s in slices), max(s.end for s in slices)
    tasks = sorted({s.task for s in slices})
    written = []
    try:
        if out is not None:
            out.write_text(chrome_trace(slices, traced.clocks))
            written.append(f"{out}: for https://ui.perfetto.dev")
        if logdir is not None:
            run = f"{datetime.now():%Y_%m_%d_%H_%M_%S}"
            path = write_profile(logdir, run, slices)
            written.append(f"{path}: for tensorboard --logdir {logdir}")
    except (OSError, OpError, ValueError, ImportError) as error:
        raise click.ClickException(f"The trace cannot be written: {error}") from None
    click.echo("\n".join(written))
    click.echo(f"a step of {(end - begin) / 1e3:.1f} ms on {', '.join(tasks)}")


@click.command("doctor")
@click.argument("addresses", metavar="[HOST:PORT]...", nargs=-1)
@click.option("--port", "ports", type=click.IntRange(1, 65535), multiple=True, help="To be free.")
@click.option(
    "--storage",
    metavar="DIR",
    callback=folder_named,
    help="Where checkpoints go; all tasks must see it.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def doctor_command(
    addresses: tuple[str, ...], ports: tuple[int, ...], storage: str | None, as_json: bool
) -> None:
    """Check this machine or, with the address of a task of each, running clusters.

    Each line says how something is, and what to do where that is not well.

    Exit status 0: all is well; 1: something is worth a look; 2: something does not work.
    """
    from headrace.files.paths import as_path, is_local
    from headrace.operations.doctor.cluster import check_cluster
    from headrace.operations.doctor.findings import Level, worst
    from headrace.operations.doctor.machine import check_machine

    if addresses:
        if storage is not None and is_local(as_path(storage)):
            # Tasks have working folders of their own.
            storage = str(Path(as_path(storage)).absolute())
        findings = [f for address in addresses for f in check_cluster(address, storage)]
    else:
        findings = list(check_machine(ports, storage))
    level = worst(findings)
    if as_json:
        rows = [finding.as_dict() for finding in findings]
        click.echo(json.dumps({"level": level.name, "findings": rows}, indent=1))
        raise SystemExit(level.value)
    colours = {Level.ok: "green", Level.warn: "yellow", Level.fail: "red"}
    width = max((len(f.subject) for f in findings), default=0)
    for finding in findings:
        mark = click.style(f"{finding.level.name:4}", fg=colours[finding.level])
        click.echo(f"{mark}  {finding.subject:{width}}  {finding.text}")
        if finding.mend:
            click.echo(f"{'':4}  {'':{width}}  -> {finding.mend}")
    raise SystemExit(level.value)
