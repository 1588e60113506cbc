"""`headrace status`, `resize` and `shutdown`: a look at a running cluster, its size, its end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click
from rich.console import Console
from rich.rule import Rule
from rich.table import Table

from headrace.cli.consoles import plain_console
from headrace.distributed.services import admin
from headrace.errors import OpError

#: Columns of what is no terminal: more than any row has.
_UNCUT = 10_000
#: Columns of a line that fills its row, wherever it goes.
_RULE = 80


def show_status(address: str, cluster: bool) -> bool:
    """Print the state of a task, or of all tasks of its cluster; tells whether all answered.

    Raises:
        click.ClickException: if nobody answers at ``address``.
    """
    tasks, console = _asked(address, cluster), _console()
    console.print(_tasks(tasks))
    console.print(_totals(tasks), highlight=False)
    _print_problems(console, tasks)
    for title, make in (
        ("Variables", _variables),
        ("Sessions and steps", _work),
        ("Links", _links),
    ):
        table = make(title, tasks)
        if table.row_count:
            console.print(table)
    return not any(t.problem for t in tasks)


def show_positions(address: str, cluster: bool, steps: bool, stacks: bool) -> bool:
    """Print where the steps that run now are, or what threads do; tells whether all answered.

    Raises:
        click.ClickException: if nobody answers at ``address``.
    """
    tasks, console = _asked(address, cluster, parts=steps, stacks=stacks), _console()
    _print_problems(console, tasks)
    if steps:
        table = _positions("Steps", tasks)
        console.print(table if table.row_count else "No step runs.")
    for task in tasks:
        for thread in task.threads:
            rule = Rule(f"{short(task.task)}: {thread.name}", align="left")
            console.print(rule, width=min(console.width, _RULE))
            console.print(thread.stack, highlight=False)
    return not any(t.problem for t in tasks)


def _asked(address: str, cluster: bool, **more: bool) -> list[Any]:
    try:
        return admin.status(address, cluster, **more)
    except (OpError, ValueError) as error:
        raise click.ClickException(str(error)) from None


def _console() -> Console:
    console = plain_console()
    # Whoever reads a pipe wants whole addresses.
    return console if console.is_terminal else plain_console(_UNCUT)


def _print_problems(console: Console, tasks: list[Any]) -> None:
    for task in tasks:
        if task.problem:
            console.print(f"{short(task.task)} does not answer: {task.problem}", style="red")


def _positions(title: str, tasks: list[Any]) -> Table:
    table = Table(title=title)
    for name in ("step", "task", "seconds", "runs", "waits for"):
        right = name == "seconds"
        table.add_column(name, justify="right" if right else "left", overflow="fold")
    found = [(part, task.task) for task in tasks for part in task.parts]
    # Those that have been there longest are the ones that somebody looks for.
    for part, task in sorted(found, key=lambda f: (-f[0].seconds, f[1])):
        # Without tensors it is pure order: what runs there comes first.
        awaited = [
            f"{', '.join(a.names) or 'a signal'} from {short(a.source)}" for a in part.awaited
        ]
        table.add_row(
            f"{part.step:016x}",
            short(task),
            f"{part.seconds:.1f}",
            ", ".join(part.running),
            "; ".join(awaited),
        )
    return table


def shut_down(address: str, cluster: bool) -> bool:
    """Stop a task, or all tasks of its cluster; tells whether all answered.

    Raises:
        click.ClickException: if nobody answers at ``address``.
    """
    try:
        stopped, missing = admin.shutdown(address, cluster)
    except (OpError, ValueError) as error:
        raise click.ClickException(str(error)) from None
    for task in stopped:
        click.echo(f"stopped {task}")
    for task in missing:
        click.echo(f"no answer from {task}", err=True)
    return not missing


def resize(address: str, wanted: Mapping[str, int]) -> None:
    """Ask a cluster for another number of tasks, and print what follows from that.

    Raises:
        click.ClickException: if it cannot have that number, or does not agree on it.
    """
    try:
        answer = admin.resize(address, wanted)
    except (OpError, ValueError) as error:
        raise click.ClickException(str(error)) from None
    sizes = ", ".join(f"{job} {count}" for job, count in sorted(answer.record.wanted.items()))
    click.echo(f"epoch {answer.record.epoch}, wanted: {sizes}")
    for task in answer.leaving:
        click.echo(f"asked to leave: {short(task)}")
    for job, count in sorted(answer.missing.items()):
        host = address.removeprefix("grpc://")
        click.echo(f"start {count} more of {job}: tf.train.Server({host!r}, job_name={job!r})")


def _tasks(tasks: list[Any]) -> Table:
    table = Table(title="Tasks")
    names = ("membership", "copy", "metrics_address")
    more = [name for name in names if any(getattr(t, name) for t in tasks)]
    for name in ("task", "address", "up", "memory", "parts run", "version", *more):
        left = name in ("task", "address", *more)
        # In a narrow terminal a name goes on in the next line: half an address is of no use.
        table.add_column(name, justify="left" if left else "right", overflow="fold")
    for task in tasks:
        if task.problem:
            table.add_row(short(task.task), task.address, "no answer")
            continue
        table.add_row(
            short(task.task),
            task.address,
            f"{task.uptime_seconds:.0f} s",
            readable_bytes(task.memory_bytes),
            str(task.steps_run),
            task.package_version,
            *(getattr(task, name) for name in more),
        )
    return table


def _totals(tasks: list[Any]) -> str:
    steps, failed = sum(t.steps_ended for t in tasks), sum(t.steps_failed for t in tasks)
    held = readable_bytes(sum(v.bytes for t in tasks for v in t.variables))
    sent = readable_bytes(sum(link.bytes_out for t in tasks for link in t.links))
    said = f"{steps} steps" + (f", {failed} of them failed" if failed else "")
    return f"In all: {said}; {held} of variables; {sent} sent."


def _variables(title: str, tasks: list[Any]) -> Table:
    table = Table(title=title)
    for name in ("task", "name", "kind", "type", "bytes"):
        table.add_column(name, justify="right" if name == "bytes" else "left", overflow="fold")
    for task in tasks:
        for v in task.variables:
            name = f"{v.container}/{v.name}" if v.container else v.name
            dims = f"{v.dtype}[{', '.join(map(str, v.dims))}]" if v.dtype else ""
            table.add_row(short(task.task), name, v.kind, dims, readable_bytes(v.bytes))
    return table


def _work(title: str, tasks: list[Any]) -> Table:
    table = Table(title=title)
    for name in ("master", "session or step", "of or waits for", "plans", "steps or seconds"):
        table.add_column(name, overflow="fold")
    for task in tasks:
        for s in task.sessions:
            table.add_row(
                short(task.task), f"session {s.session:016x}", s.client, str(s.plans), str(s.steps)
            )
        for step in task.steps:
            waiting = ", ".join(map(short, step.waiting_for))
            table.add_row(
                short(task.task), f"step {step.step:016x}", waiting, "", f"{step.seconds:.1f}"
            )
        for group in task.awaited_groups:
            table.add_row(short(task.task), "all-reduce", group, "", "")
    return table


def _links(title: str, tasks: list[Any]) -> Table:
    table = Table(title=title)
    for name in ("task", "peer", "transport", "in", "out"):
        table.add_column(name, overflow="fold")
    for task in tasks:
        for link in task.links:
            table.add_row(
                short(task.task),
                short(link.peer),
                link.transport,
                f"{readable_bytes(link.bytes_in)} in {link.frames_in}",
                f"{readable_bytes(link.bytes_out)} in {link.frames_out}",
            )
    return table


def short(task: str) -> str:
    """A task's name without what is the same in all.

    >>> short("/job:ps/replica:0/task:1")
    '/job:ps/task:1'
    """
    return task.replace("/replica:0", "")


def readable_bytes(count: float) -> str:
    """A number of bytes with the unit that suits it.

    >>> readable_bytes(1536)
    '1.5 KiB'
    """
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            break
        count /= 1024
    return f"{count:.0f} B" if unit == "B" else f"{count:.1f} {unit}"
