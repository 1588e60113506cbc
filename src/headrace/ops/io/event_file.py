"""Event files: TFRecord files of Event messages, which TensorBoard reads."""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import socket
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from headrace.errors import OpError
from headrace.files.records import RecordWriter
from headrace.files.system import make_directories
from headrace.graph.proto import Event

_log = logging.getLogger(__name__)

#: What a file begins with: the version of its format.
FILE_VERSION = "brain.Event:2"
#: Tells the files of one process apart.
_numbers = itertools.count()


class EventFile:
    """One event file. Events are buffered, and written out soon: also when no more come.

    Args:
        logdir: the folder, a path or URL; made if it is not there.
        max_queue: after so many events the buffer is written out.
        flush_secs: and so many seconds after the first of them at the latest.
        filename_suffix: the end of the file's name.
        clock: seconds since 1970.

    Attributes:
        path: of the file.
    """

    def __init__(
        self,
        logdir: str,
        max_queue: int = 10,
        flush_secs: float = 120,
        filename_suffix: str | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._clock = clock
        self._max_queue = max(1, max_queue)
        self._flush_secs = flush_secs
        name = (
            f"events.out.tfevents.{int(clock()):010d}.{socket.gethostname()}."
            f"{os.getpid()}.{next(_numbers)}{filename_suffix or ''}"
        )
        self.path = os.path.join(logdir, name)
        make_directories(logdir)
        self._file = RecordWriter(self.path)
        self._lock = threading.Lock()
        self._waiting = 0
        self._timer: threading.Timer | None = None
        self.add(Event(wall_time=clock(), file_version=FILE_VERSION))
        self.flush()
        #: Errors of writes that somebody has been told of.
        self._told: list[OpError] = []
        # A program that ends without closing its writers loses nothing.
        self._end = weakref.finalize(self, _close, self._file, self._told)

    def add(self, event: Any) -> None:
        """Write one event."""
        data = event.SerializeToString()
        with self._lock, self._telling():
            self._file.write(data)
            self._waiting += 1
            if self._waiting >= self._max_queue:
                self._flush()
            elif self._timer is None:
                self._timer = threading.Timer(self._flush_secs, _flush_of(weakref.ref(self)))
                self._timer.daemon = True
                self._timer.start()

    def flush(self) -> None:
        """Write out what is buffered."""
        with self._lock, self._telling():
            self._flush()

    def _flush(self) -> None:
        self._waiting = 0
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._file.flush()

    @contextlib.contextmanager
    def _telling(self) -> Iterator[None]:
        """Note that whoever writes is told why that has failed."""
        try:
            yield
        except OpError as error:
            self._told.append(error)
            raise

    def close(self) -> None:
        """Write out what is buffered, and close the file, also if that fails."""
        with self._lock:
            try:
                with self._telling():
                    self._flush()
            finally:
                self._end()


def _close(file: RecordWriter, told: Sequence[OpError]) -> None:
    """Close a file at last. Nobody can handle an error then; a log line has what was not raised."""
    try:
        file.close()
    except OpError as error:
        if not told:
            _log.warning("The last events of %s are lost: %s", file.path, error.message)


def _flush_of(file: weakref.ref[EventFile]) -> Callable[[], None]:
    def flush() -> None:
        found = file()
        if found is not None:
            # What cannot be written stays in the buffer: the next call that writes tells of it.
            with contextlib.suppress(OpError), found._lock:
                found._flush()

    return flush
