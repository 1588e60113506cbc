"""Hooks that write: checkpoints and summaries."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from headrace import logging
from headrace.errors import (
    AbortedError,
    DeadlineExceededError,
    PermissionDeniedError,
    ResourceExhaustedError,
    UnauthenticatedError,
)
from headrace.files.paths import as_path
from headrace.graph.graph import Graph, get_default_graph
from headrace.graph.keys import GraphKeys
from headrace.graph_files.export_graph import graph_def_for_files
from headrace.graph_files.graph_util import write_graph
from headrace.structured_logs import tell
from headrace.train.asynchronous_saver import AsynchronousSaver
from headrace.train.basic_session_run_hooks import (
    SecondOrStepTimer,
    read_before,
    required_global_step,
    writer_of,
)
from headrace.train.meta_graph import export_scoped_meta_graph
from headrace.train.saver import Saver
from headrace.train.session_run_hook import (
    SessionRunArgs,
    SessionRunContext,
    SessionRunHook,
    SessionRunValues,
)

__all__ = ["CheckpointSaverHook", "CheckpointSaverListener", "SummarySaverHook"]

#: What costs a checkpoint and not the training: there is no room, the storage cannot be reached, or
#: does not let the program in any more.
_STORAGE_ERRORS = (
    ResourceExhaustedError,
    DeadlineExceededError,
    PermissionDeniedError,
    UnauthenticatedError,
)


class CheckpointSaverListener:
    """Base of listeners, whose methods a CheckpointSaverHook calls around each checkpoint.

    >>> class Say(tf.train.CheckpointSaverListener):
    ...     def after_save(self, session, global_step_value):
    ...         print("saved at step", global_step_value)
    >>> train = tf.train.get_or_create_global_step().assign_add(1)
    >>> hook = tf.train.CheckpointSaverHook("saved", save_steps=10, listeners=[Say()])
    >>> with tf.train.SingularMonitoredSession(hooks=[hook]) as sess:
    ...     value = sess.run(train)
    saved at step 0
    saved at step 1
    """

    def begin(self) -> None:
        """The graph may still be changed."""

    def before_save(self, session: Any, global_step_value: Any) -> None:
        """A checkpoint is about to be written."""

    def after_save(self, session: Any, global_step_value: Any) -> bool | None:
        """A checkpoint has been written. Returns True to ask for the end of training."""
        return None

    def end(self, session: Any, global_step_value: Any) -> None:
        """All steps are done, the last checkpoint is written."""


class CheckpointSaverHook(SessionRunHook):
    """Saves a checkpoint at the begin, every so many steps or seconds, and at the end.

    A checkpoint for which there is no room, or whose storage cannot be reached, costs that
    checkpoint and not the training: the log says so, and the next one is tried at its time. Only
    the first and the last raise. A session that is made anew begins without one (in TensorFlow it
    does not): the last one is what it was restored from, and the next comes when it is due.

    Args:
        checkpoint_dir: where to.
        save_secs, save_steps: how often; exactly one.
        saver: what saves; or ``scaffold``: that has a saver; else that of the collection
            ``savers``.
        checkpoint_basename: begin of the names of checkpoints.
        listeners: CheckpointSaverListeners.
        asynchronous: write files while the training goes on. Steps wait only while the values are
            held, and the first and the last checkpoint are written as without it. ``after_save`` of
            listeners is called after a step by which the files are there. A checkpoint that is due
            while another is written begins when that is over. Ours.
        consistent: in a cluster, no step of any worker is under way while the values are held: a
            checkpoint has all of each step, or nothing. If steps do not end within a second (then
            two, four, six) for that, or a task is lost whose steps wait, the checkpoint is given
            up, and tried again when the next is due; only the first and the last raise. Ours.

    Raises:
        ValueError: if both ``saver`` and ``scaffold`` are given, or not exactly one of seconds and
            steps.

    >>> step = tf.train.get_or_create_global_step()
    >>> train, hook = step.assign_add(1), tf.train.CheckpointSaverHook("saved", save_steps=2)
    >>> with tf.train.SingularMonitoredSession(hooks=[hook]) as sess:
    ...     steps = [int(sess.run(train)) for _ in range(3)]
    >>> tf.train.get_checkpoint_state("saved").all_model_checkpoint_paths
    ['saved/model.ckpt-0', 'saved/model.ckpt-2', 'saved/model.ckpt-3']
    """

    def __init__(
        self,
        checkpoint_dir: str,
        save_secs: float | None = None,
        save_steps: int | None = None,
        saver: Any = None,
        checkpoint_basename: str = "model.ckpt",
        scaffold: Any = None,
        listeners: Sequence[CheckpointSaverListener] | None = None,
        asynchronous: bool = False,
        consistent: bool = False,
    ) -> None:
        logging.info("Create CheckpointSaverHook.")
        if saver is not None and scaffold is not None:
            raise ValueError("You cannot provide both saver and scaffold.")
        self._saver = saver
        self._checkpoint_dir = as_path(checkpoint_dir)
        self._save_path = os.path.join(self._checkpoint_dir, as_path(checkpoint_basename))
        self._scaffold = scaffold
        self._timer = SecondOrStepTimer(every_secs=save_secs, every_steps=save_steps)
        self._listeners = list(listeners or ())
        #: Whether the checkpoint that was due last could not be written.
        self._lacks_last = False
        #: Whether training had begun before the session that is made next.
        self._goes_on = False
        self._is_asynchronous = asynchronous
        self._is_consistent = consistent
        #: Where steps are held, a task that is lost may be none that this session needs. If it is,
        #: the next step says so.
        self._lost_holds = (AbortedError,) if consistent else ()
        self._background: AsynchronousSaver | None = None
        #: The step of the checkpoint that is being written.
        self._step_under_way = 0

    def begin(self) -> None:
        self._summary_writer = writer_of(self._checkpoint_dir)
        self._global_step = required_global_step("CheckpointSaverHook")
        for listener in self._listeners:
            listener.begin()

    def goes_on(self) -> None:
        """The next session goes on with training that had begun before, in another process."""
        self._goes_on = True

    def after_create_session(self, session: Any, coord: Any) -> None:
        step = int(session.run(self._global_step))
        if self._background is not None:
            self._background.forget()
        if self._timer.last_triggered_step() is not None:
            # Made anew: all wait for the next step. What was not restored is saved when it is due.
            self._timer.go_back(step)
            self._lacks_last = True
            return
        begin = partial(self._begin_session, session, step)
        if self._goes_on:
            self._attempt(step, begin)
        else:
            begin()
            self._goes_on = True
        self._timer.update_last_triggered_step(step)

    def _begin_session(self, session: Any, step: int) -> bool:
        """Write what describes the graph, and a checkpoint."""
        graph = get_default_graph()
        in_two = self._is_asynchronous or self._is_consistent
        if self._background is None and in_two and self._get_saver() is not None:
            self._background = _asynchronous(self._get_saver(), graph, self._is_consistent)
        write_graph(graph_def_for_files(graph), self._checkpoint_dir, "graph.pbtxt")
        saver = self._get_saver()
        saver_def = saver.saver_def if saver is not None else None
        message, _ = export_scoped_meta_graph(saver_def=saver_def)
        self._summary_writer.add_graph(graph)
        self._summary_writer.add_meta_graph(message)
        # What the variables began with; that also tells early that saving works.
        return self._save(session, step)

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        return SessionRunArgs(read_before(self._global_step))

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        session = run_context.session
        if self._background is not None and self._background.is_under_way:
            if not self._background.is_done:
                return
            if self._end_save(session):
                run_context.request_stop()
        if not self._timer.should_trigger_for_step(int(run_values.results) + 1):
            return
        step = int(session.run(self._global_step))
        if self._timer.should_trigger_for_step(step):
            self._timer.update_last_triggered_step(step)
            save = self._begin_save if self._is_asynchronous else self._save
            if self._attempt(step, partial(save, session, step)):
                run_context.request_stop()

    def end(self, session: Any) -> None:
        if self._background is not None and self._background.is_under_way:
            self._end_save(session)
        last = int(session.run(self._global_step))
        if last != self._timer.last_triggered_step() or self._lacks_last:
            self._save(session, last)
        for listener in self._listeners:
            listener.end(session, last)

    def _attempt(self, step: int, work: Callable[[], bool]) -> bool:
        """Do a part of a save, if the storage lets it; whether a listener asks to stop."""
        try:
            stop = work()
        except (*_STORAGE_ERRORS, *self._lost_holds) as error:
            self._lacks_last = True
            logging.error(
                "No checkpoint for step %d: %s. Training goes on; what it has learned since the "
                "last checkpoint is lost if it ends now.",
                step,
                error.message.rstrip("."),
            )
            return False
        self._lacks_last = False
        return stop

    def _save(self, session: Any, step: int) -> bool:
        """Write a checkpoint; whether a listener asks to stop."""
        self._announce(session, step)
        if self._is_consistent and self._background is not None:
            self._background.begin(session, self._save_path, global_step=step)
            self._background.result()
        else:
            self._get_saver().save(session, self._save_path, global_step=step)
        return self._tell(session, step)

    def _begin_save(self, session: Any, step: int) -> bool:
        """Hold the values of a checkpoint; no listener is asked yet."""
        assert self._background is not None
        self._announce(session, step)
        self._background.begin(session, self._save_path, global_step=step)
        self._step_under_way = step
        return False

    def _end_save(self, session: Any) -> bool:
        """Wait for the checkpoint that is being written; whether a listener asks to stop."""
        background, step = self._background, self._step_under_way
        assert background is not None

        def ended() -> bool:
            background.result()
            return self._tell(session, step)

        return self._attempt(step, ended)

    def _announce(self, session: Any, step: int) -> None:
        text, told = "Saving checkpoints for %d into %s.", {"path": self._save_path}
        log = logging.get_logger()
        tell(log, "checkpoint_begun", text, step, self._save_path, step=step, fields=told)
        for listener in self._listeners:
            listener.before_save(session, step)

    def _tell(self, session: Any, step: int) -> bool:
        """Say that a checkpoint has been written; whether a listener asks to stop."""
        from headrace.graph.proto import SessionLog

        text, told = "The checkpoint of step %d is complete.", {"path": self._save_path}
        tell(logging.get_logger(), "checkpoint_saved", text, step, step=step, fields=told)
        self._summary_writer.add_session_log(
            SessionLog(status=SessionLog.CHECKPOINT, checkpoint_path=self._save_path), step
        )
        stop = False
        for listener in self._listeners:
            if listener.after_save(session, step):
                logging.info("A CheckpointSaverListener requested that training be stopped.")
                stop = True
        return stop

    def _get_saver(self) -> Any:
        """The saver.

        Raises:
            RuntimeError: if there is none, or several to choose from.
        """
        if self._saver is not None:
            return self._saver
        if self._scaffold is not None:
            return self._scaffold.saver
        found = get_default_graph().get_collection(GraphKeys.SAVERS)
        if len(found) != 1:
            problem = "More than one item in" if found else "No items in"
            raise RuntimeError(
                f"{problem} collection {GraphKeys.SAVERS}. Please provide a saver or scaffold to "
                "the hook."
            )
        self._saver = found[0] if hasattr(found[0], "save") else Saver.from_proto(found[0])
        return self._saver


def _asynchronous(saver: Any, graph: Graph, consistent: bool) -> AsynchronousSaver:
    """A saver in a thread; the graph may be final already, as the scaffold makes savers last."""
    was_finalized = graph.finalized
    graph._unsafe_unfinalize()
    try:
        return AsynchronousSaver(saver, graph, consistent)
    finally:
        if was_finalized:
            graph.finalize()


class SummarySaverHook(SessionRunHook):
    """Writes summaries every so many steps or seconds.

    Args:
        save_steps, save_secs: how often; exactly one.
        output_dir: where to write; ``summary_writer``: with what.
        scaffold: has the op that makes the summaries; or ``summary_op``: the op, or a list.

    Raises:
        ValueError: if not exactly one of ``scaffold`` and ``summary_op`` is given, or of seconds
            and steps.

    >>> train = tf.train.get_or_create_global_step().assign_add(1)
    >>> summary = tf.summary.scalar("loss", tf.constant(0.5))
    >>> hook = tf.train.SummarySaverHook(save_steps=2, output_dir="losses", summary_op=summary)
    >>> with tf.train.MonitoredSession(hooks=[hook]) as sess:
    ...     values = [sess.run(train) for _ in range(4)]
    >>> [file] = tf.gfile.Glob("losses/events.*")
    >>> [e.step for e in tf.train.summary_iterator(file) if e.summary.value]
    [1, 3]
    >>> tf.summary.FileWriterCache.clear()
    """

    def __init__(
        self,
        save_steps: int | None = None,
        save_secs: float | None = None,
        output_dir: str | None = None,
        summary_writer: Any = None,
        scaffold: Any = None,
        summary_op: Any = None,
    ) -> None:
        if (scaffold is None) == (summary_op is None):
            raise ValueError("Exactly one of scaffold or summary_op must be provided.")
        self._summary_op = summary_op
        self._summary_writer = summary_writer
        self._output_dir = output_dir
        self._scaffold = scaffold
        self._timer = SecondOrStepTimer(every_secs=save_secs, every_steps=save_steps)

    def begin(self) -> None:
        if self._summary_writer is None and self._output_dir:
            self._summary_writer = writer_of(self._output_dir)
        self._next_step: int | None = None
        self._global_step = required_global_step("SummarySaverHook")

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        self._is_due = self._next_step is None or self._timer.should_trigger_for_step(
            self._next_step
        )
        wanted: dict[str, Any] = {"global_step": read_before(self._global_step)}
        if self._is_due:
            summaries = self._get_summary_op()
            if summaries is not None:
                wanted["summary"] = summaries
        return SessionRunArgs(wanted)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        writer = self._summary_writer
        if writer is None:
            return
        step = int(run_values.results["global_step"]) + 1
        if self._next_step is None or self._is_due:
            step = int(run_context.session.run(self._global_step))
        if self._next_step is None:
            from headrace.graph.proto import SessionLog

            writer.add_session_log(SessionLog(status=SessionLog.START), step)
        if self._is_due:
            self._timer.update_last_triggered_step(step)
            for summary in run_values.results.get("summary", ()):
                writer.add_summary(summary, step)
        self._next_step = step + 1

    def end(self, session: Any) -> None:
        if self._summary_writer is not None:
            self._summary_writer.flush()

    def _get_summary_op(self) -> list[Any] | None:
        """The ops that make summaries, or None."""
        op = self._summary_op if self._summary_op is not None else self._scaffold.summary_op
        if op is None:
            return None
        return list(op) if isinstance(op, (list, tuple)) else [op]
