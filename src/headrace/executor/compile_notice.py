"""A line at the terminal while the compiler takes long: what it compiles, and how long so far."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["NOTICE_SECONDS", "told_at_terminal"]

#: A person waits so long without asking what for.
NOTICE_SECONDS = 3.0


@contextlib.contextmanager
def told_at_terminal(
    label: str, console: Console | None = None, after: float = NOTICE_SECONDS
) -> Iterator[threading.Event]:
    """While the block lasts longer than so many seconds, say so; the line goes when it ends.

    Says nothing where standard error is no terminal, or where another display is live and rich
    shows but one.

    Args:
        label: what is compiled.
        console: where; standard error by default.
        after: seconds.

    Returns:
        An event that is set when the line is shown.
    """
    shown = threading.Event()
    notice = _Notice(label, console, after, shown)
    timer = threading.Timer(after, notice.show)
    timer.daemon = True
    timer.name = "headrace compile notice"
    if notice.has_reader():
        timer.start()
    try:
        yield shown
    finally:
        timer.cancel()
        notice.end()


class _Notice:
    def __init__(
        self, label: str, console: Console | None, after: float, shown: threading.Event
    ) -> None:
        self._label, self._console, self._after, self._shown = label, console, after, shown
        self._lock, self._is_over = threading.Lock(), False
        self._hide: contextlib.ExitStack = contextlib.ExitStack()

    def has_reader(self) -> bool:
        if self._console is not None:
            return self._console.is_terminal
        return sys.stderr is not None and sys.stderr.isatty()

    def show(self) -> None:
        from rich.console import Console
        from rich.errors import LiveError
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
        from rich.table import Column

        console = self._console or Console(stderr=True)
        columns = (
            SpinnerColumn(),
            # It wraps where the line is short: what does not would leave no room for the time.
            TextColumn("{task.description}", markup=False, table_column=Column(overflow="fold")),
            TimeElapsedColumn(),
        )
        progress = Progress(*columns, console=console, transient=True)
        task = progress.add_task(f"Compiling {self._label}", total=None)
        with self._lock:
            if self._is_over:
                return
            try:
                self._hide.enter_context(progress)
            except LiveError:
                return
            # It began before it was shown.
            started = progress.tasks[task].start_time
            progress.tasks[task].start_time = (started or 0.0) - self._after
            progress.refresh()
            self._shown.set()

    def end(self) -> None:
        with self._lock:
            self._is_over = True
            self._hide.close()
