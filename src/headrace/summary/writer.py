"""Event files: what a program tells TensorBoard, in TFRecord files of Event messages."""

from __future__ import annotations

import os
import threading
import time
from typing import Any, ClassVar, Self

import numpy as np

from headrace import logging
from headrace.files.paths import as_path
from headrace.graph.graph import Graph, get_default_graph
from headrace.graph.proto import Event, SessionLog, Summary, TaggedRunMetadata
from headrace.ops.io.event_file import EventFile
from headrace.ops.state import share
from headrace.session.session import BaseSession
from headrace.summary.session_file import SessionEventFile

__all__ = ["EventFile", "FileWriter", "FileWriterCache"]


class FileWriter:
    """Writes summaries and graphs to an event file that TensorBoard reads.

    Args:
        logdir: the folder, a path or a URL; made if it is not there.
        graph: a Graph to show, such as ``sess.graph``.
        max_queue: after so many events they are written to the file.
        flush_secs: and after so many seconds.
        graph_def: a GraphDef in place of ``graph`` (deprecated).
        filename_suffix: the end of the file's name.
        session: lets this session write the file, where its device is; operations for that are
            added to its graph. By default this process writes it.

    Raises:
        TypeError: if ``graph`` is no Graph or GraphDef, or ``session`` no session.
        RuntimeError: if the graph of ``session`` is finalized.

    >>> loss = tf.summary.scalar("loss", tf.constant(0.5))
    >>> with tf.Session() as sess, tf.summary.FileWriter("logs", sess.graph) as writer:
    ...     writer.add_summary(sess.run(loss), global_step=1)
    >>> [file] = tf.gfile.Glob("logs/events.out.tfevents.*")
    >>> [e.step for e in tf.train.summary_iterator(file) if e.HasField("summary")]
    [1]
    """

    def __init__(
        self,
        logdir: str | os.PathLike[str],
        graph: Any = None,
        max_queue: int = 10,
        flush_secs: float = 120,
        graph_def: Any = None,
        filename_suffix: str | None = None,
        session: Any = None,
    ) -> None:
        if session is not None and not isinstance(session, BaseSession):
            raise TypeError(f"session must be a tf.Session, not {type(session)}.")
        self._logdir = as_path(logdir)
        self._arguments = (self._logdir, max_queue, flush_secs, filename_suffix)
        self._described: set[str] = set()
        self._tagged: set[str] = set()
        self._session_file: SessionEventFile | None = None
        self._file: EventFile | SessionEventFile | None = None
        self._is_silent = not share.writes()
        if self._is_silent:
            logging.info("Summaries for %s are written by the chief alone.", self._logdir)
            return
        if session is not None:
            self._session_file = SessionEventFile(session, *self._arguments)
        self._file = self._session_file or EventFile(*self._arguments)
        if graph is not None or graph_def is not None:
            self.add_graph(graph, graph_def=graph_def)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def get_logdir(self) -> str:
        """The folder of the event file."""
        return self._logdir

    def add_summary(self, summary: Any, global_step: Any = None) -> None:
        """Write a Summary, or one that a step returned in serialised form.

        Args:
            global_step: the step that TensorBoard shows it at.

        Raises:
            DecodeError: if the bytes are no Summary.
        """
        if isinstance(summary, (bytes, np.ndarray)):
            summary = Summary.FromString(np.asarray(summary, object).item())
        else:
            copied = Summary()
            copied.CopyFrom(summary)
            summary = copied
        # What describes a tag is written once in a file.
        for value in summary.value:
            if value.HasField("metadata"):
                if value.tag in self._described:
                    value.ClearField("metadata")
                else:
                    self._described.add(value.tag)
        self._add(Event(summary=summary), global_step)

    def add_event(self, event: Any) -> None:
        """Write an Event as it is. After ``close`` nothing is written."""
        if self._file is not None:
            self._file.add(event)

    def add_graph(self, graph: Any, global_step: Any = None, graph_def: Any = None) -> None:
        """Write a graph for TensorBoard's graph page.

        Raises:
            ValueError: if both or none of ``graph`` and ``graph_def`` are given.
            TypeError: if ``graph`` is no Graph.
        """
        if graph is not None and graph_def is not None:
            raise ValueError("Please pass only graph, or graph_def (deprecated), but not both.")
        if isinstance(graph, Graph):
            data = graph.as_graph_def(add_shapes=True).SerializeToString()
        else:
            given = graph if graph is not None else graph_def
            if given is None:
                raise ValueError("The argument graph must be given: a tf.Graph or a GraphDef.")
            if getattr(getattr(given, "DESCRIPTOR", None), "name", "") != "GraphDef":
                raise TypeError(
                    f"The passed graph must be an instance of `Graph` (or a `GraphDef`), not "
                    f"{type(given)}."
                )
            data = given.SerializeToString()
        self._add(Event(graph_def=data), global_step)

    def add_meta_graph(self, meta_graph_def: Any, global_step: Any = None) -> None:
        """Write a MetaGraphDef.

        Raises:
            TypeError: if it is none.
        """
        if getattr(getattr(meta_graph_def, "DESCRIPTOR", None), "name", "") != "MetaGraphDef":
            raise TypeError(f"meta_graph_def must be a MetaGraphDef, not {type(meta_graph_def)}.")
        self._add(Event(meta_graph_def=meta_graph_def.SerializeToString()), global_step)

    def add_run_metadata(self, run_metadata: Any, tag: str, global_step: Any = None) -> None:
        """Write the times and memory of one step, to see on the graph page.

        Raises:
            ValueError: if ``tag`` was used before.
        """
        if tag in self._tagged:
            raise ValueError("The provided tag was already used for this event type")
        self._tagged.add(tag)
        tagged = TaggedRunMetadata(tag=tag, run_metadata=run_metadata.SerializeToString())
        self._add(Event(tagged_run_metadata=tagged), global_step)

    def add_session_log(self, session_log: Any, global_step: Any = None) -> None:
        """Write a SessionLog: that training started, stopped or saved."""
        log = SessionLog()
        log.CopyFrom(session_log)
        self._add(Event(session_log=log), global_step)

    def _add(self, event: Any, step: Any) -> None:
        event.wall_time = time.time()
        if step is not None:
            event.step = int(step)
        self.add_event(event)

    def flush(self) -> None:
        """Write out what is buffered."""
        if self._file is not None:
            self._file.flush()

    def close(self) -> None:
        """Write out what is buffered and close the file; ``reopen`` begins another."""
        if self._file is not None:
            file, self._file = self._file, None
            file.close()

    def reopen(self) -> None:
        """Go on in a new file of the same folder, if the last one was closed."""
        if self._file is None and not self._is_silent:
            self._described.clear()
            if self._session_file is not None:
                self._session_file.reopen()
            self._file = self._session_file or EventFile(*self._arguments)


class FileWriterCache:
    """One FileWriter for each folder.

    >>> writer = tf.summary.FileWriterCache.get("logs")
    >>> tf.summary.FileWriterCache.get("logs") is writer
    True
    >>> tf.summary.FileWriterCache.clear()  # closes them all
    """

    _cache: ClassVar[dict[str, FileWriter]] = {}
    _lock: ClassVar[threading.RLock] = threading.RLock()

    @staticmethod
    def clear() -> None:
        """Close and forget all writers."""
        with FileWriterCache._lock:
            for writer in FileWriterCache._cache.values():
                writer.close()
            FileWriterCache._cache.clear()

    @staticmethod
    def get(logdir: str) -> FileWriter:
        """The writer of a folder; a new one writes the default graph."""
        with FileWriterCache._lock:
            logdir = as_path(logdir)
            writer = FileWriterCache._cache.get(logdir)
            if writer is None:
                writer = FileWriter(logdir, graph=get_default_graph())
                FileWriterCache._cache[logdir] = writer
            return writer
