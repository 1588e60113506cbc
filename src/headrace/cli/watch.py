"""`headrace status --watch`: what a cluster does, again and again."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

import click
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from headrace.cli.cluster import readable_bytes
from headrace.cli.consoles import plain_console
from headrace.distributed.services import admin
from headrace.errors import OpError
from headrace.operations.readings import ClusterReading, Readings, TaskRates, total
from headrace.operations.stragglers import stragglers

__all__ = ["StatusWatch", "watch_cluster"]

#: A cluster of which nobody answers for so many seconds is gone.
_GONE_SECONDS = 10.0
#: So many links are shown: those with most bytes.
_MOST_LINKS = 20
#: Columns, of what is measured and not shown.
_ANY_WIDTH = 10_000


def watch_cluster(address: str, interval: float, count: int | None) -> None:
    """Show the cluster every ``interval`` seconds, ``count`` times or until Ctrl-C.

    Raises:
        click.ClickException: if nobody answers, or nobody does any more.
    """
    # Wherever it comes: also while something is drawn.
    with contextlib.suppress(KeyboardInterrupt):
        watch = StatusWatch(address)
        console = plain_console()
        if not console.is_terminal:
            _plainly(watch, interval, count)
            return
        with Live(console=console, auto_refresh=False, screen=False) as live:
            for _ in watch.rounds(interval, count):
                live.update(watch.panel(console), refresh=True)


def _plainly(watch: StatusWatch, interval: float, count: int | None) -> None:
    for _ in watch.rounds(interval, count):
        at = datetime.now().astimezone().isoformat(timespec="seconds")
        for line in watch.lines():
            click.echo(f"{at} {line}")


class StatusWatch:
    """Asks a cluster, and tells what it did since it was asked before.

    Args:
        address: ``host:port`` of any task; when that is gone, others are asked.
        ask, clock, wait: how a task is asked, seconds (monotonic), and a pause of so many.
    """

    def __init__(
        self,
        address: str,
        ask: Callable[[str], Sequence[Any]] = admin.status,
        clock: Callable[[], float] = time.monotonic,
        wait: Callable[[float], object] = time.sleep,
    ) -> None:
        self._addresses = [address]
        self._ask, self._clock, self._wait = ask, clock, wait
        self._readings = Readings()
        self._answered_at: float | None = None
        self._tasks: list[TaskRates] = []

    def rounds(self, interval: float, count: int | None) -> Any:
        """Yields after each time that the cluster was asked.

        Raises:
            click.ClickException: if nobody answers, or nobody does any more.
        """
        number = 0
        while True:
            if self._read():
                number += 1
                yield number
            if number == count:
                return
            self._wait(interval)

    def _read(self) -> bool:
        """Ask the cluster; whether it has answered."""
        problem = ""
        for address in list(self._addresses):
            try:
                tasks = self._ask(address)
            except (OpError, ValueError) as error:
                problem = problem or str(error)
                continue
            now = self._answered_at = self._clock()
            self._readings.add(ClusterReading(now, tuple(tasks)))
            self._tasks = self._readings.rates()
            others = [t.address for t in tasks if not t.problem and t.address != address]
            self._addresses = [address, *others]
            return True
        if self._answered_at is None or self._clock() - self._answered_at > _GONE_SECONDS:
            raise click.ClickException(problem)
        return False

    # -- what is shown ----------------------------------------------------------------------------

    def lines(self) -> list[str]:
        """A line for each task, and one for all; each value has its name."""
        slow = stragglers(self._tasks)
        found = []
        for task in self._tasks:
            if task.problem:
                found.append(f"{task.task} does not answer: {task.problem}")
                continue
            words = [f"{name}={text}" for name, text in _values(task).items() if text]
            if task.task in slow:
                words.append(f"straggler: {slow[task.task]}")
            found.append(" ".join([task.task, *words]))
        return [*found, f"cluster {self._summary()}"]

    def panel(self, console: Console) -> RenderableType:
        """The same as tables, with the links, where the console is wide enough for whole words."""
        tables = [self._task_table(), self._link_table()]
        shown = [table for table in tables if table.row_count]
        options = console.options.update(max_width=_ANY_WIDTH)
        if any(Measurement.get(console, options, t).maximum > console.width for t in shown):
            return Text("\n".join(self.lines()))
        return Group(*shown[:1], *self._notes(), *shown[1:])

    def _task_table(self) -> Table:
        table = Table(title=self._summary())
        rows = [(task, {} if task.problem else _values(task)) for task in self._tasks]
        # A column of which no task has anything would only take room.
        names = [n for n in _values(TaskRates("", "")) if any(row.get(n) for _, row in rows)]
        table.add_column("task")
        for name in names:
            table.add_column(name, justify="right")
        for task, row in rows:
            table.add_row(task.task, *(row.get(name, "") for name in names))
        return table

    def _notes(self) -> list[Text]:
        """What there is to say of single tasks: sentences, which would make a table too wide."""
        slow = stragglers(self._tasks)
        dead = [t for t in self._tasks if t.problem]
        return [
            *(Text(f"{t.task} does not answer: {t.problem}", "red") for t in dead),
            *(Text(f"{task} is a straggler: {why}", "yellow") for task, why in slow.items()),
        ]

    def _link_table(self) -> Table:
        links = Table(title="Links")
        for name in ("task", "peer", "transport", "received", "sent", "in all"):
            left = name in ("task", "peer", "transport")
            links.add_column(name, justify="left" if left else "right")
        busiest = sorted(
            (link for task in self._tasks for link in task.links),
            key=lambda li: -((li.received or 0.0) + (li.sent or 0.0)),
        )
        for link in busiest[:_MOST_LINKS]:
            both = readable_bytes(link.received_total + link.sent_total)
            rates = (_rate_of_bytes(link.received), _rate_of_bytes(link.sent))
            links.add_row(link.task, link.peer, link.transport, *rates, both)
        return links

    def _summary(self) -> str:
        tasks = self._tasks
        rate = total(task.steps_rate for task in tasks)
        sent = total(task.sent for task in tasks)
        silent = sum(bool(task.problem) for task in tasks)
        parts = [
            f"{len(tasks)} tasks",
            f"{sum(t.steps for t in tasks)} steps" + (f", {rate:.1f}/s" if rate else ""),
            f"{readable_bytes(sum(t.variables for t in tasks))} of variables",
            *([f"{_rate_of_bytes(sent)} sent"] if sent is not None else []),
            *([f"{silent} without an answer"] if silent else []),
        ]
        return "; ".join(parts)


def _values(task: TaskRates) -> dict[str, str]:
    """What is shown of a task, by name; "" where there is nothing to say."""
    return {
        "steps": str(task.steps) if task.steps else "",
        "steps/s": _number(task.steps_rate, 1) if task.steps else "",
        "step ms": _number(task.step_seconds, 1, 1e3),
        "failed": str(task.failed) if task.failed else "",
        "parts/s": _number(task.parts_rate, 1),
        "cores": _number(task.cores, 2),
        "memory": readable_bytes(task.memory).replace(" ", ""),
        "variables": readable_bytes(task.variables).replace(" ", "") if task.variables else "",
        "in": _rate_of_bytes(task.received),
        "out": _rate_of_bytes(task.sent),
    }


def _number(value: float | None, digits: int, scale: float = 1.0) -> str:
    return "" if value is None else f"{value * scale:.{digits}f}"


def _rate_of_bytes(value: float | None) -> str:
    return "" if value is None else f"{readable_bytes(value).replace(' ', '')}/s"
