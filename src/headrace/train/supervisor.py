"""The Supervisor of early programs: sessions, checkpoints and summaries by threads on timers."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from threading import Thread
from typing import Any

from headrace import logging
from headrace.files.paths import as_path
from headrace.graph.graph import Graph, get_default_graph
from headrace.graph.keys import GraphKeys
from headrace.graph_files.export_graph import graph_def_for_files
from headrace.graph_files.graph_util import write_graph
from headrace.ops.state import share
from headrace.ops.state.variables_api import (
    global_variables,
    global_variables_initializer,
    report_uninitialized_variables,
)
from headrace.train.basic_session_run_hooks import speed_tag
from headrace.train.coordinator import Coordinator, LooperThread
from headrace.train.global_step import get_global_step
from headrace.train.global_step import global_step as value_of
from headrace.train.meta_graph import export_scoped_meta_graph
from headrace.train.saver import Saver
from headrace.train.scaffold import Scaffold, merged_summaries
from headrace.train.session_manager import SessionManager

__all__ = ["Supervisor", "basic_train_loop"]

_DEFAULT = 0


class Supervisor:
    """Prepares a session, and keeps saving checkpoints and summaries while it is used.

    The usual loop, in which an exception of a thread or of the block stops everything and comes
    out at its end (the end of the input is none)::

        sv = tf.train.Supervisor(logdir="/tmp/model")
        with sv.managed_session() as sess:
            while not sv.should_stop():
                sess.run(train_op)

    An argument left at its default is looked up in the collection of its name, and made and put
    there if nothing is; None means there is none. The graph is final afterwards.

    Args:
        graph: the graph; the default graph if not given.
        ready_op: a string vector that is empty when all variables have values.
        ready_for_local_init_op: the same, before ``local_init_op`` may run.
        is_chief: whether this task initialises, restores and saves; others wait for it.
        init_op, init_feed_dict, init_fn: what initialises; ``init_fn(session)``.
        local_init_op, local_init_run_options: run in each new session.
        logdir: where checkpoints and summaries go; None for nowhere.
        summary_op: makes the summaries; saver: saves; global_step: counts.
        save_summaries_secs, save_model_secs: how often; 0 for never.
        recovery_wait_secs: at most this long between two looks whether the chief is ready.
        stop_grace_secs: how long threads have to stop.
        checkpoint_basename: begin of the names of checkpoints.
        session_manager: makes the sessions.
        summary_writer: a FileWriter; by default one for ``logdir``.

    >>> train = tf.train.get_or_create_global_step().assign_add(1)
    >>> sv = tf.train.Supervisor(logdir="logs", summary_op=None)
    >>> with sv.managed_session() as sess:  # restored if there is a checkpoint, else initialised
    ...     while not sv.should_stop():
    ...         if sess.run(train) == 3:
    ...             sv.request_stop()
    ...     sv.saver.save(sess, "logs/last")
    'logs/last'
    """

    USE_DEFAULT = _DEFAULT

    def __init__(
        self,
        graph: Graph | None = None,
        ready_op: Any = _DEFAULT,
        ready_for_local_init_op: Any = _DEFAULT,
        is_chief: bool = True,
        init_op: Any = _DEFAULT,
        init_feed_dict: dict[Any, Any] | None = None,
        local_init_op: Any = _DEFAULT,
        logdir: str | None = None,
        summary_op: Any = _DEFAULT,
        saver: Any = _DEFAULT,
        global_step: Any = _DEFAULT,
        save_summaries_secs: float = 120,
        save_model_secs: float = 600,
        recovery_wait_secs: float = 30,
        stop_grace_secs: float = 120,
        checkpoint_basename: str = "model.ckpt",
        session_manager: SessionManager | None = None,
        summary_writer: Any = _DEFAULT,
        init_fn: Callable[[Any], Any] | None = None,
        local_init_run_options: Any = None,
    ) -> None:
        self._graph = get_default_graph() if graph is None else graph
        with self._graph.as_default():
            self._collect_init(ready_op, ready_for_local_init_op, init_op, local_init_op)
            self._collect_services(saver, summary_op, global_step)
        self._init_feed_dict = init_feed_dict
        self._init_fn = init_fn
        # A worker of a plain script has what its script asks for; what would write is silent there.
        self._acts_as_chief = is_chief
        self._is_chief = is_chief and share.writes()
        self._coord = Coordinator()
        self._stop_grace_secs = stop_grace_secs
        self._meta_graph_def, _ = export_scoped_meta_graph(
            graph=self._graph,
            saver_def=getattr(self._saver, "saver_def", None),
        )
        logdir = as_path(logdir) if logdir else None
        self._logdir = logdir if is_chief else None
        self._save_summaries_secs = save_summaries_secs if is_chief else None
        self._save_model_secs = save_model_secs if is_chief else None
        self._save_path = (
            os.path.join(logdir, as_path(checkpoint_basename)) if self._logdir and logdir else None
        )
        self._summary_writer = self._writer(summary_writer) if is_chief else None
        self._graph_added = False
        self._session_manager = session_manager or SessionManager(
            local_init_op=self._local_init_op,
            ready_op=self._ready_op,
            ready_for_local_init_op=self._ready_for_local_init_op,
            graph=self._graph,
            recovery_wait_secs=recovery_wait_secs,
            local_init_run_options=local_init_run_options,
        )
        self._graph.finalize()

    def _collect_init(
        self, ready_op: Any, ready_for_local_init_op: Any, init_op: Any, local_init_op: Any
    ) -> None:
        keys = GraphKeys
        self._ready_op = _given(ready_op, keys.READY_OP, report_uninitialized_variables)
        self._ready_for_local_init_op = _given(
            ready_for_local_init_op, keys.READY_FOR_LOCAL_INIT_OP, lambda: None
        )
        self._init_op = _given(init_op, keys.INIT_OP, global_variables_initializer)
        self._local_init_op = _given(
            local_init_op, keys.LOCAL_INIT_OP, Scaffold.default_local_init_op
        )

    def _collect_services(self, saver: Any, summary_op: Any, global_step: Any) -> None:
        keys = GraphKeys
        self._saver = _given(saver, keys.SAVERS, lambda: Saver() if global_variables() else None)
        if self._saver is not None and not hasattr(self._saver, "save"):
            self._saver = Saver.from_proto(self._saver)
        self._summary_op = _given(summary_op, keys.SUMMARY_OP, merged_summaries)
        self._global_step = _given(global_step, keys.GLOBAL_STEP, get_global_step)

    def _writer(self, given: Any) -> Any:
        if not _is_default(given):
            return given
        if not self._logdir:
            return None
        from headrace.summary import FileWriter  # loaded on first use, as all of tf.summary

        return FileWriter(self._logdir)

    @property
    def is_chief(self) -> bool:
        return self._is_chief

    @property
    def session_manager(self) -> SessionManager:
        return self._session_manager

    @property
    def coord(self) -> Coordinator:
        """The Coordinator of all threads."""
        return self._coord

    @property
    def init_op(self) -> Any:
        return self._init_op

    @property
    def init_feed_dict(self) -> dict[Any, Any] | None:
        return self._init_feed_dict

    @property
    def ready_op(self) -> Any:
        return self._ready_op

    @property
    def ready_for_local_init_op(self) -> Any:
        return self._ready_for_local_init_op

    @property
    def summary_writer(self) -> Any:
        return self._summary_writer

    @property
    def summary_op(self) -> Any:
        return self._summary_op

    @property
    def save_summaries_secs(self) -> float | None:
        return self._save_summaries_secs

    @property
    def global_step(self) -> Any:
        return self._global_step

    @property
    def saver(self) -> Any:
        return self._saver

    @property
    def save_model_secs(self) -> float | None:
        return self._save_model_secs

    @property
    def save_path(self) -> str | None:
        """Begin of the paths of checkpoints."""
        return self._save_path

    # -- sessions ---------------------------------------------------------------------------

    def prepare_or_wait_for_session(
        self,
        master: str = "",
        config: Any = None,
        wait_for_checkpoint: bool = False,
        max_wait_secs: float = 7200,
        start_standard_services: bool = True,
    ) -> Any:
        """A session whose variables have values; the chief restores or initialises them.

        Args:
            master: where to run; config: a ConfigProto.
            wait_for_checkpoint: wait until there is one.
            max_wait_secs: how long to wait.
            start_standard_services: whether to start these, and the queue runners.
        """
        self._coord.clear_stop()
        if self._summary_writer is not None:
            self._summary_writer.reopen()
        if self._is_chief or self._prepares_with_others():
            session = self._session_manager.prepare_session(
                master,
                init_op=self._init_op,
                saver=self._saver,
                checkpoint_dir=self._logdir,
                wait_for_checkpoint=wait_for_checkpoint,
                max_wait_secs=max_wait_secs,
                config=config,
                init_feed_dict=self._init_feed_dict,
                init_fn=self._init_fn,
            )
            self._write_graph()
            if start_standard_services and self._is_chief:
                logging.info("Starting standard services.")
                self.start_standard_services(session)
        else:
            session = self._session_manager.wait_for_session(
                master, config=config, max_wait_secs=max_wait_secs
            )
        if start_standard_services:
            logging.info("Starting queue runners.")
            self.start_queue_runners(session)
        return session

    def _prepares_with_others(self) -> bool:
        """Whether this is a worker of a plain script: what the chief runs for all has its turn in
        each worker, or the next such step would not wait for the chief's."""
        return self._acts_as_chief and share.of(self._graph) is not None

    def _write_graph(self) -> None:
        if self._logdir:
            write_graph(graph_def_for_files(self._graph), self._logdir, "graph.pbtxt")
        if self._summary_writer is not None and not self._graph_added:
            self._summary_writer.add_graph(self._graph)
            self._summary_writer.add_meta_graph(self._meta_graph_def)
            self._graph_added = True

    @contextlib.contextmanager
    def managed_session(
        self,
        master: str = "",
        config: Any = None,
        start_standard_services: bool = True,
        close_summary_writer: bool = True,
    ) -> Iterator[Any]:
        """A context with a session; at its end all threads stop and the session is closed.

        An exception of the block or of a thread comes out then, except for OutOfRangeError.
        """
        session = None
        try:
            session = self.prepare_or_wait_for_session(
                master, config, start_standard_services=start_standard_services
            )
            yield session
        except Exception as error:
            self.request_stop(error)
        finally:
            try:
                self.stop(close_summary_writer=close_summary_writer)
            finally:
                if session is not None:
                    # Threads that still wait in the session give up.
                    with contextlib.suppress(Exception):
                        session.close()

    # -- threads ----------------------------------------------------------------------------

    def start_standard_services(self, sess: Any) -> list[Thread] | None:
        """Start the threads that write summaries, the speed and checkpoints.

        Raises:
            RuntimeError: if this is not the chief.
        """
        from headrace.graph.proto import SessionLog

        if self._acts_as_chief and not self._is_chief:
            return None  # the chief of the workers that run this script does it
        if not self._is_chief:
            raise RuntimeError(
                "Only chief supervisor can start standard services. Because only chief supervisors "
                "can write events."
            )
        if not self._logdir:
            logging.warning("Standard services need a 'logdir' passed to the SessionManager")
            return None
        writer = self._summary_writer
        if self._global_step is not None and writer is not None:
            step = value_of(sess, self._global_step)
            writer.add_session_log(SessionLog(status=SessionLog.START), step)
        threads: list[Thread] = []
        if self._save_summaries_secs and writer is not None:
            if self._summary_op is not None:
                threads.append(_SummaryThread(self, sess, self._save_summaries_secs))
            if self._global_step is not None:
                threads.append(_StepCounterThread(self, sess, self._save_summaries_secs))
        if self._saver is not None and self._save_model_secs:
            threads.append(_CheckpointThread(self, sess, self._save_model_secs))
        for thread in threads:
            thread.start()
        return threads

    def start_queue_runners(
        self, sess: Any, queue_runners: Sequence[Any] | None = None
    ) -> list[Thread]:
        """Start threads of queue runners; by default of all in the graph."""
        if queue_runners is None:
            queue_runners = self._graph.get_collection(GraphKeys.QUEUE_RUNNERS)
        return [
            thread
            for runner in queue_runners
            for thread in runner.create_threads(sess, coord=self._coord, daemon=True, start=True)
        ]

    def loop(
        self,
        timer_interval_secs: float | None,
        target: Callable[..., Any],
        args: Sequence[Any] | None = None,
        kwargs: dict[str, Any] | None = None,
    ) -> LooperThread:
        """Start a thread that calls ``target`` every so many seconds; see LooperThread."""
        return LooperThread.loop(self._coord, timer_interval_secs, target, args, kwargs)

    def stop(
        self,
        threads: Sequence[Thread] | None = None,
        close_summary_writer: bool = True,
        ignore_live_threads: bool = False,
    ) -> None:
        """Stop and join all threads, and ``threads``; the session stays open.

        Raises:
            The exception of a thread; RuntimeError if threads do not stop in time.
        """
        from headrace.graph.proto import SessionLog

        self._coord.request_stop()
        try:
            self._coord.join(
                threads,
                stop_grace_period_secs=self._stop_grace_secs,
                ignore_live_threads=ignore_live_threads,
            )
        finally:
            if close_summary_writer and self._summary_writer is not None:
                self._summary_writer.add_session_log(SessionLog(status=SessionLog.STOP))
                self._summary_writer.close()
                self._graph_added = False

    def request_stop(self, ex: Any = None) -> None:
        """Ask all threads to stop; see `Coordinator.request_stop`."""
        self._coord.request_stop(ex=ex)

    def should_stop(self) -> bool:
        """Whether a stop has been requested."""
        return self._coord.should_stop()

    def stop_on_exception(self) -> Any:
        """A context that turns an exception into a request to stop."""
        return self._coord.stop_on_exception()

    def wait_for_stop(self) -> None:
        """Wait until a stop is requested."""
        self._coord.wait_for_stop()

    def summary_computed(self, sess: Any, summary: Any, global_step: Any = None) -> None:
        """Write a summary that the caller has computed.

        Args:
            summary: a Summary message, or its bytes.
            global_step: by default that of the session.

        Raises:
            RuntimeError: if there is no summary writer.
        """
        if self._summary_writer is None:
            raise RuntimeError("Writing a summary requires a summary writer.")
        if global_step is None and self._global_step is not None:
            global_step = value_of(sess, self._global_step)
        self._summary_writer.add_summary(summary, global_step)

    # The names of the first releases.
    PrepareSession = prepare_or_wait_for_session
    StartQueueRunners = start_queue_runners
    StartStandardServices = start_standard_services
    Stop = stop
    RequestStop = request_stop
    Loop = loop
    ShouldStop = should_stop
    StopOnException = stop_on_exception
    WaitForStop = wait_for_stop
    SummaryComputed = summary_computed


def _is_default(value: Any) -> bool:
    return isinstance(value, int) and value == _DEFAULT


def _given(value: Any, key: str, make: Callable[[], Any]) -> Any:
    """An argument, or the first element of a collection, or what ``make`` makes."""
    if not _is_default(value):
        return value
    graph = get_default_graph()
    found = graph.get_collection(key)
    if found:
        if len(found) > 1:
            logging.info("Found %d %s operations. Returning the first one.", len(found), key)
        return found[0]
    made = make()
    if made is not None:
        graph.add_to_collection(key, made)
    return made


class _ServiceThread(LooperThread):
    """A thread that does something for a Supervisor on a timer."""

    def __init__(self, supervisor: Supervisor, session: Any, interval: float) -> None:
        super().__init__(supervisor.coord, interval)
        self._supervisor = supervisor
        self._session = session


class _SummaryThread(_ServiceThread):
    def run_loop(self) -> None:
        supervisor = self._supervisor
        wanted = {"summary": supervisor.summary_op}
        if supervisor.global_step is not None:
            wanted["step"] = supervisor.global_step
        values = self._session.run(wanted)
        step = values.get("step")
        logging.info("Recording summary at step %s.", step)
        supervisor.summary_writer.add_summary(values["summary"], step)


class _StepCounterThread(_ServiceThread):
    def start_loop(self) -> None:
        self._tag = speed_tag(self._supervisor.global_step)
        self._last_time = time.monotonic()
        self._last_step = value_of(self._session, self._supervisor.global_step)

    def run_loop(self) -> None:
        from headrace.graph.proto import Summary

        step = value_of(self._session, self._supervisor.global_step)
        now = time.monotonic()
        steps, elapsed = step - self._last_step, now - self._last_time
        self._last_step, self._last_time = step, now
        speed = steps / elapsed if elapsed > 0 else float("inf")
        value = Summary.Value(tag=self._tag, simple_value=speed)
        self._supervisor.summary_writer.add_summary(Summary(value=[value]), step)
        logging.info("%s: %g", self._tag, speed)


class _CheckpointThread(_ServiceThread):
    def run_loop(self) -> None:
        from headrace.graph.proto import SessionLog

        supervisor = self._supervisor
        path, step = supervisor.save_path, supervisor.global_step
        logging.info("Saving checkpoint to path %s", path)
        supervisor.saver.save(self._session, path, global_step=step)
        if supervisor.summary_writer is not None and step is not None:
            log = SessionLog(status=SessionLog.CHECKPOINT, checkpoint_path=path)
            supervisor.summary_writer.add_session_log(log, value_of(self._session, step))


def basic_train_loop(
    supervisor: Supervisor,
    train_step_fn: Callable[..., Any],
    args: Sequence[Any] | None = None,
    kwargs: dict[str, Any] | None = None,
    master: str = "",
) -> None:
    """Call ``train_step_fn(session, *args, **kwargs)`` until the supervisor stops.

    Raises:
        What the function or a thread raises, except for OutOfRangeError.
    """
    with supervisor.managed_session(master) as session:
        while not supervisor.should_stop():
            train_step_fn(session, *(args or ()), **(kwargs or {}))
