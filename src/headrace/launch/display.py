"""What the user sees of a launch: a live panel at a terminal, plain lines elsewhere."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from types import TracebackType

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from headrace.launch.job import TaskId

__all__ = ["Display", "TaskRow"]

_PERIOD = 0.25
_COLOURS = ("cyan", "green", "magenta", "yellow", "blue", "bright_cyan", "bright_green")


@dataclass(frozen=True)
class TaskRow:
    """A task in the panel; None is not known.

    Attributes:
        steps: run by its sessions, or parts of steps at a server; rate: of them in a second.
        loss: the last one in its output; memory: in bytes.
    """

    task: TaskId
    state: str
    steps: int | None
    rate: float | None
    loss: float | None
    memory: int | None
    restarts: int


class Display:
    """Shows lines of tasks and, at a terminal, a panel below them.

    A terminal that is closed is no error: nothing more is shown then.

    Args:
        rows: what the panel shows, called now and then.
        title: above it.
        console: where; by default standard output.
    """

    def __init__(
        self, rows: Callable[[], Iterable[TaskRow]], title: str, console: Console | None = None
    ) -> None:
        self._rows, self._title = rows, title
        self._console = console or Console()
        self._live: Live | None = None
        self._drawn = 0.0
        self._is_gone = False

    def __enter__(self) -> Display:
        if self._console.is_terminal:
            self._live = Live(console=self._console, auto_refresh=False)
            self._try(self._live.start)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.refresh(at_once=True)
        if self._live is not None:
            self._try(self._live.stop)

    def output(self, task: TaskId, lines: Sequence[str]) -> None:
        """Show what a task has written."""
        prefix = f"[{task}] "
        if self._live is None:
            self._try(lambda: _write("".join(f"{prefix}{line}\n" for line in lines)))
            return
        colour = _COLOURS[hash((task.job, task.index)) % len(_COLOURS)]
        for line in lines:
            self._print(Text.assemble((prefix, colour), Text.from_ansi(line)))

    def say(self, text: str, is_problem: bool = False) -> None:
        """Show a line of the launcher itself."""
        if self._live is None:
            self._try(lambda: print(f"headrace: {text}", file=sys.stderr, flush=True))
        else:
            self._print(Text(f"headrace: {text}", style="red" if is_problem else "dim"))

    def refresh(self, at_once: bool = False) -> None:
        """Draw the panel again, if that was some time ago."""
        now = time.monotonic()
        if self._live is None or (now - self._drawn < _PERIOD and not at_once):
            return
        self._drawn, live, table = now, self._live, self._table()
        self._try(lambda: live.update(table, refresh=True))

    def _print(self, text: Text) -> None:
        self._try(lambda: self._console.print(text, soft_wrap=True))

    def _try(self, show: Callable[[], object]) -> None:
        if self._is_gone:
            return
        try:
            show()
        except OSError:
            self._is_gone = True
            with contextlib.suppress(Exception):
                sys.stdout = sys.stderr = open(  # noqa: SIM115
                    "/dev/null", "w", encoding="utf-8"
                )

    def _table(self) -> Table:
        table = Table(title=self._title)
        for name in ("task", "state", "steps", "a second", "loss", "memory", "restarts"):
            left = name in ("task", "state")
            table.add_column(name, justify="left" if left else "right")
        for row in self._rows():
            table.add_row(
                str(row.task),
                row.state,
                "" if row.steps is None else str(row.steps),
                "" if row.rate is None else f"{row.rate:.1f}",
                "" if row.loss is None else f"{row.loss:.4g}",
                "" if row.memory is None else f"{row.memory / 2**20:.0f} MiB",
                str(row.restarts) if row.restarts else "",
            )
        return table


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
