"""What the user sees of a launch: a live panel at a terminal, plain lines elsewhere."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TextIO

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from headrace.launch.job import TaskId
from headrace.structured_logs import json_line, read_json_line

__all__ = ["Display", "TaskRow"]

_PERIOD = 0.25
#: What is shown may be late by so many pieces of output.
_MOST_WAITING = 5_000
#: Seconds that are waited for a reader at the end.
_LAST_WORDS = 2.0
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

    A thread writes, so that a launch waits for no reader: what comes faster than it is read is left
    out, and the logs have it. A terminal that is closed is no error: nothing more is shown then.

    Args:
        rows: what the panel shows, called now and then.
        title: above it.
        console: where; by default standard output.
        as_json: each line is a JSON object, also at a terminal, where there is no panel then. What
            a task writes in this form goes on as it is.
    """

    def __init__(
        self,
        rows: Callable[[], Iterable[TaskRow]],
        title: str,
        console: Console | None = None,
        as_json: bool = False,
    ) -> None:
        self._rows, self._title, self._as_json = rows, title, as_json
        self._console = console or Console()
        self._live: Live | None = None
        self._drawn = 0.0
        self._waiting: deque[Callable[[], object]] = deque()
        self._changed = threading.Condition()
        self._left_out = 0
        self._is_over = self._is_drawing = False
        self._thread = threading.Thread(target=self._write_all, name="headrace panel", daemon=True)

    def __enter__(self) -> Display:
        if self._console.is_terminal and not self._as_json:
            self._live = Live(console=self._console, auto_refresh=False)
            self._later(self._live.start)
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._is_drawing = False
        self.refresh(at_once=True)
        if self._live is not None:
            self._later(self._live.stop)
        with self._changed:
            self._is_over = True
            self._changed.notify()
        self._thread.join(_LAST_WORDS)

    @property
    def is_stuck(self) -> bool:
        """After the end: whether nobody reads what is still to be shown."""
        return self._thread.is_alive()

    def output(self, task: TaskId, lines: Sequence[str]) -> None:
        """Show what a task has written."""
        prefix = f"[{task}] "
        if len(self._waiting) > _MOST_WAITING:
            self._left_out += len(lines)
            return
        if self._left_out:
            self.say(f"{self._left_out} lines of output are left out here; the logs have them")
            self._left_out = 0
        if self._as_json:
            made = [_as_json(line, "output", "INFO", str(task)) for line in lines]
            self._later(lambda: _write("".join(f"{line}\n" for line in made)))
            return
        if self._live is None:
            self._later(lambda: _write("".join(f"{prefix}{line}\n" for line in lines)))
            return
        colour = _COLOURS[hash((task.job, task.index)) % len(_COLOURS)]
        for line in lines:
            self._print(Text.assemble((prefix, colour), Text.from_ansi(line)))

    def say(self, text: str, is_problem: bool = False) -> None:
        """Show a line of the launcher itself."""
        if self._as_json:
            level = "WARNING" if is_problem else "INFO"
            line = _as_json(text, "headrace.launch", level)
            self._later(lambda: _write(f"{line}\n"))
        elif self._live is None:
            self._later(lambda: _write(f"headrace: {text}\n", sys.stderr))
        else:
            self._print(Text(f"headrace: {text}", style="red" if is_problem else "dim"))

    def refresh(self, at_once: bool = False) -> None:
        """Draw the panel again, if that was some time ago."""
        now, live = time.monotonic(), self._live
        if live is None or self._is_drawing or (now - self._drawn < _PERIOD and not at_once):
            return
        self._drawn, self._is_drawing, table = now, True, self._table()

        def draw() -> None:
            self._is_drawing = False
            live.update(table, refresh=True)

        self._later(draw)

    def _print(self, text: Text) -> None:
        self._later(lambda: self._console.print(text, soft_wrap=True))

    def _later(self, show: Callable[[], object]) -> None:
        with self._changed:
            self._waiting.append(show)
            self._changed.notify()

    def _write_all(self) -> None:
        """In the thread: show one after another."""
        is_gone = False
        while True:
            with self._changed:
                while not self._waiting and not self._is_over:
                    self._changed.wait()
                if not self._waiting:
                    return
                show = self._waiting.popleft()
            try:
                if not is_gone:
                    show()
            except UnicodeError:
                continue  # one line that this terminal cannot show
            except (OSError, ValueError):
                is_gone = True

    def _table(self) -> Table:
        table = Table(title=Text(self._title))  # no markup: names may have brackets
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


def _as_json(line: str, logger: str, level: str, task: str = "") -> str:
    """A line of a log; what is one already stays as it is, and has its task.

    >>> of_a_task = _as_json("up", "tensorflow", "INFO")
    >>> '"task": "ps/0"' in _as_json(of_a_task, "output", "INFO", "ps/0")
    True
    """
    told = read_json_line(line)
    if told is None:
        return json_line(time.time(), level, logger, line, task=task)
    if task and not told["task"]:
        return json.dumps(told | {"task": task})
    return line


def _write(text: str, stream: TextIO | None = None) -> None:
    stream = stream or sys.stdout
    stream.write(text)
    stream.flush()
