"""Event files that the session of a program writes, where its device is."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.graph import dtypes
from headrace.ops.core.build import constant, placeholder, raw


class SessionEventFile:
    """An event file that operations of a session write, on the machine where they run.

    Args:
        session: runs them; the operations are added to its graph.
        logdir, max_queue, flush_secs, suffix: as for FileWriter. Writers of one folder and suffix
            share a file.

    Raises:
        RuntimeError: if the graph is finalized.
    """

    def __init__(
        self, session: Any, logdir: str, max_queue: int, flush_secs: float, suffix: str | None
    ) -> None:
        self._session = session
        suffix = suffix or ".v2"
        with session.graph.as_default(), session.graph.name_scope("filewriter"):
            writer = raw.SummaryWriter(shared_name=f"logdir:{logdir}|{suffix}")
            self._opening = raw.CreateSummaryFileWriter(
                writer,
                logdir,
                max_queue,
                constant(int(flush_secs * 1000), dtypes.int32),
                suffix,
            )
            self._event = placeholder(dtypes.string, [])
            self._adding = raw.ImportEvent(writer, self._event)
            self._flushing = raw.FlushSummaryWriter(writer)
            self._closing = raw.CloseSummaryWriter(writer)
        self.reopen()

    def reopen(self) -> None:
        """Open the file, a new one after `close`."""
        self._session.run(self._opening)

    def add(self, event: Any) -> None:
        """Write an Event."""
        self._session.run(self._adding, {self._event: np.array(event.SerializeToString(), object)})

    def flush(self) -> None:
        """Write out what is buffered."""
        self._session.run(self._flushing)

    def close(self) -> None:
        """Write out what is buffered, and close the file."""
        self._session.run(self._closing)
