"""What tasks write: a file for each, and what can be read from it."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import IO

from headrace.launch.job import TaskId

__all__ = ["TaskLogs", "loss_in"]

_NUMBER = r"[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|nan|inf)"
_LOSS = re.compile(rf"\bloss\b['\"]?\s*(?:[:=]|is\b)?\s*({_NUMBER})\b", re.IGNORECASE)


class TaskLogs:
    """A folder with a file for each task, over all its starts.

    Args:
        folder: made if it is not there; files of an earlier launch are replaced.
        tell: gets why a file could not be written, at the first time; the launch goes on.
        notes: the file for what the launcher itself says; others may have one in the same folder.

    Raises:
        OSError: if it cannot be made.

    Attributes:
        losses: the last loss that each task has told.
    """

    def __init__(
        self, folder: Path, tell: Callable[[str], object], notes: str = "launcher.log"
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.losses: dict[TaskId, float] = {}
        self._tell, self._has_told = tell, False
        self._files: dict[TaskId, IO[str]] = {}
        self._notes_path = folder / notes
        self._notes = _opened(self._notes_path)

    def path(self, task: TaskId) -> Path:
        """The file of a task."""
        return self.folder / f"{task.job}-{task.index}.log"

    def add(self, task: TaskId, lines: list[str]) -> None:
        """Keep what a task has written."""
        for line in lines:
            loss = loss_in(line)
            if loss is not None:
                self.losses[task] = loss
        try:
            file = self._files.get(task)
            if file is None:
                file = self._files[task] = _opened(self.path(task))
            file.write("".join(f"{line}\n" for line in lines))
        except OSError as error:
            self._failed(self.path(task), error)

    def note(self, text: str) -> None:
        """Keep what the launcher itself says."""
        try:
            self._notes.write(f"{text}\n")
        except OSError as error:
            self._failed(self._notes_path, error)

    def _failed(self, path: Path, error: OSError) -> None:
        if not self._has_told:
            self._has_told = True
            self._tell(f"{path} is not complete: {error.strerror or error}")

    def close(self) -> None:
        """Close all files."""
        with contextlib.suppress(OSError):
            self._notes.close()
        for file in self._files.values():
            with contextlib.suppress(OSError):
                file.close()


def _opened(path: Path) -> IO[str]:
    # Names of files, and what other machines send, may have characters that are none.
    return path.open("w", encoding="utf-8", errors="backslashreplace", buffering=1)


def loss_in(line: str) -> float | None:
    """The loss that a line of output tells, as hooks and most programs write it.

    >>> loss_in("INFO:tensorflow:loss = 0.25, step = 100 (0.1 sec)")
    0.25
    >>> loss_in("step 7: loss: 1e-3")
    0.001
    >>> loss_in("no loss of data")
    """
    found = _LOSS.search(line)
    if found is None:
        return None
    value = float(found[1])
    return (
        value if math.isfinite(value) or found[1].lstrip("+-").lower() in ("nan", "inf") else None
    )
