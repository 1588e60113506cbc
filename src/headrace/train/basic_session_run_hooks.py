"""Hooks that watch training: logging, stopping, waiting, profiling."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from headrace import logging
from headrace.errors import OutOfRangeError
from headrace.files.paths import as_path
from headrace.graph.graph import get_default_graph
from headrace.ops.state.variables import Variable
from headrace.train.global_step import get_global_step
from headrace.train.session_run_hook import (
    SessionRunArgs,
    SessionRunContext,
    SessionRunHook,
    SessionRunValues,
)

__all__ = [
    "FeedFnHook",
    "FinalOpsHook",
    "GlobalStepWaiterHook",
    "LoggingTensorHook",
    "NanLossDuringTrainingError",
    "NanTensorHook",
    "ProfilerHook",
    "SecondOrStepTimer",
    "StepCounterHook",
    "StopAtStepHook",
]


class SecondOrStepTimer:
    """Tells when something is due that happens every so many seconds or steps.

    Exactly one of ``every_secs`` and ``every_steps`` has to be given.

    Raises:
        ValueError: otherwise.

    >>> timer = tf.train.SecondOrStepTimer(every_steps=10)
    >>> timer.should_trigger_for_step(1)
    True
    >>> elapsed = timer.update_last_triggered_step(1)
    >>> timer.should_trigger_for_step(10), timer.should_trigger_for_step(11)
    (False, True)
    """

    #: What tells the time; tests replace it. The wall clock may be set, back too.
    clock: Callable[[], float] = staticmethod(lambda: time.monotonic())

    def __init__(self, every_secs: float | None = None, every_steps: int | None = None) -> None:
        self._every_secs = every_secs
        self._every_steps = every_steps
        if every_secs is None and every_steps is None:
            raise ValueError("Either every_secs or every_steps should be provided.")
        if every_secs is not None and every_steps is not None:
            raise ValueError("Can not provide both every_secs and every_steps.")
        self.reset()

    def reset(self) -> None:
        """Forget when it was last due."""
        self._last_step: int | None = None
        self._last_time = 0.0

    def should_trigger_for_step(self, step: int) -> bool:
        """Whether it is due at ``step``; it always is the first time."""
        if self._last_step is None:
            return True
        if self._last_step == step:
            return False
        if self._every_secs is not None:
            return self.clock() >= self._last_time + self._every_secs
        assert self._every_steps is not None
        return step >= self._last_step + self._every_steps

    def update_last_triggered_step(self, step: int) -> tuple[float | None, int | None]:
        """It happens now. Returns seconds and steps since the last time, or (None, None)."""
        now = self.clock()
        elapsed: tuple[float | None, int | None] = (None, None)
        if self._last_step is not None:
            elapsed = now - self._last_time, step - self._last_step
        self._last_time = now
        self._last_step = step
        return elapsed

    def go_back(self, step: int) -> None:
        """Training goes on from a step, which may be an earlier one; what is due stays due."""
        if self._last_step is not None:
            self._last_step = min(self._last_step, step)

    def last_triggered_step(self) -> int | None:
        """When it last happened."""
        return self._last_step


class _NeverTimer(SecondOrStepTimer):
    """Nothing is ever due."""

    def __init__(self) -> None:
        super().__init__(every_steps=1)

    def should_trigger_for_step(self, step: int) -> bool:
        return False


def required_global_step(hook: str) -> Any:
    """The global step of the default graph.

    Raises:
        RuntimeError: if there is none.
    """
    step = get_global_step()
    if step is None:
        raise RuntimeError(f"Global step should be created to use {hook}.")
    return step


def read_before(global_step: Any) -> Any:
    """What to fetch for the global step from before a step: a variable gives that after it."""
    return global_step.value() if isinstance(global_step, Variable) else global_step


class LoggingTensorHook(SessionRunHook):
    """Logs the values of tensors every so many steps or seconds, at level INFO.

    Args:
        tensors: a list of tensors (or names), or a dictionary from tags to them.
        every_n_iter, every_n_secs: how often; exactly one.
        at_end: whether to log after the last step too, or only then.
        formatter: ``formatter(values by tag) -> text``.

    Raises:
        ValueError: if not exactly one of the two is given (unless ``at_end`` is), or
            ``every_n_iter`` is not positive.

    >>> hook = tf.train.LoggingTensorHook({"loss": "loss:0"}, every_n_iter=2, formatter=print)
    >>> loss = tf.constant(0.5, name="loss")
    >>> with tf.train.MonitoredSession(hooks=[hook]) as sess:
    ...     for _ in range(3):
    ...         value = sess.run(loss)
    {'loss': np.float32(0.5)}
    {'loss': np.float32(0.5)}
    """

    def __init__(
        self,
        tensors: Any,
        every_n_iter: int | None = None,
        every_n_secs: float | None = None,
        at_end: bool = False,
        formatter: Callable[[dict[Any, Any]], str] | None = None,
    ) -> None:
        only_at_end = at_end and every_n_iter is None and every_n_secs is None
        if not only_at_end and (every_n_iter is None) == (every_n_secs is None):
            raise ValueError(
                "either at_end and/or exactly one of every_n_iter and every_n_secs must be "
                "provided."
            )
        if every_n_iter is not None and every_n_iter <= 0:
            raise ValueError(f"invalid every_n_iter={every_n_iter}.")
        if not isinstance(tensors, Mapping):
            tensors = {item: item for item in tensors}
        self._tensors = dict(tensors)
        self._formatter = formatter
        self._log_at_end = at_end
        self._timer = (
            _NeverTimer() if only_at_end else SecondOrStepTimer(every_n_secs, every_n_iter)
        )
        self._iter_count = 0
        self._should_trigger = False

    def begin(self) -> None:
        self._timer.reset()
        self._iter_count = 0
        graph = get_default_graph()
        self._current_tensors = {
            tag: graph.as_graph_element(tensor) for tag, tensor in self._tensors.items()
        }

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        self._should_trigger = self._timer.should_trigger_for_step(self._iter_count)
        return SessionRunArgs(self._current_tensors) if self._should_trigger else None

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        if self._should_trigger:
            self._log_tensors(run_values.results)
        self._iter_count += 1

    def end(self, session: Any) -> None:
        if self._log_at_end:
            self._log_tensors(session.run(self._current_tensors))

    def _log_tensors(self, values: dict[Any, Any]) -> None:
        elapsed, _ = self._timer.update_last_triggered_step(self._iter_count)
        with np.printoptions(suppress=True):
            if self._formatter is not None:
                text = self._formatter(values)
            else:
                text = ", ".join(f"{tag} = {values[tag]}" for tag in self._tensors)
                if elapsed is not None:
                    text += f" ({elapsed:.3f} sec)"
        logging.info("%s", text)


class StopAtStepHook(SessionRunHook):
    """Asks to stop at a global step.

    Args:
        num_steps: so many steps after the first one; ``last_step``: at this one. Exactly one.

    Raises:
        ValueError: if not exactly one is given.

    >>> train = tf.train.get_or_create_global_step().assign_add(1)
    >>> with tf.train.MonitoredSession(hooks=[tf.train.StopAtStepHook(num_steps=3)]) as sess:
    ...     while not sess.should_stop():
    ...         step = sess.run(train)
    >>> int(step)
    3
    """

    def __init__(self, num_steps: int | None = None, last_step: int | None = None) -> None:
        if num_steps is None and last_step is None:
            raise ValueError("One of num_steps or last_step must be specified.")
        if num_steps is not None and last_step is not None:
            raise ValueError("Only one of num_steps or last_step can be specified.")
        self._num_steps = num_steps
        self._last_step = last_step

    def begin(self) -> None:
        self._global_step = required_global_step("StopAtStepHook")

    def after_create_session(self, session: Any, coord: Any) -> None:
        if self._last_step is None:
            assert self._num_steps is not None
            self._last_step = int(session.run(self._global_step)) + self._num_steps

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        return SessionRunArgs(read_before(self._global_step))

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        # Other workers may have gone on: near the end it is looked at again.
        assert self._last_step is not None
        if run_values.results + 1 >= self._last_step:
            step = run_context.session.run(self._global_step)
            if step >= self._last_step:
                run_context.request_stop()


class StepCounterHook(SessionRunHook):
    """Logs steps per second, and writes them as a summary.

    Args:
        every_n_steps, every_n_secs: how often; exactly one.
        output_dir: where to write summaries; ``summary_writer``: with what.

    Raises:
        ValueError: if not exactly one of the two is given.

    >>> step = tf.train.get_or_create_global_step()
    >>> train, hook = step.assign_add(1), tf.train.StepCounterHook(2, output_dir="speed")
    >>> with tf.train.MonitoredSession(hooks=[hook]) as sess:
    ...     steps = [int(sess.run(train)) for _ in range(4)]
    >>> tf.summary.FileWriterCache.clear()  # closes the file
    >>> [file] = tf.gfile.Glob("speed/events.*")
    >>> [e.summary.value[0].tag for e in tf.train.summary_iterator(file) if e.HasField("summary")]
    ['global_step/sec']
    """

    def __init__(
        self,
        every_n_steps: int | None = 100,
        every_n_secs: float | None = None,
        output_dir: str | None = None,
        summary_writer: Any = None,
    ) -> None:
        if (every_n_steps is None) == (every_n_secs is None):
            raise ValueError("exactly one of every_n_steps and every_n_secs should be provided.")
        self._timer = SecondOrStepTimer(every_secs=every_n_secs, every_steps=every_n_steps)
        self._summary_writer = summary_writer
        self._output_dir = as_path(output_dir) if output_dir else output_dir

    def begin(self) -> None:
        if self._summary_writer is None and self._output_dir:
            self._summary_writer = writer_of(self._output_dir)
        self._global_step = required_global_step("StepCounterHook")
        self._summary_tag = speed_tag(self._global_step)

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        return SessionRunArgs(read_before(self._global_step))

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        if not self._timer.should_trigger_for_step(int(run_values.results) + 1):
            return
        step = int(run_context.session.run(self._global_step))
        if self._timer.should_trigger_for_step(step):
            secs, steps = self._timer.update_last_triggered_step(step)
            if secs is not None and steps is not None:
                self._log_and_record(steps, secs, step)

    def _log_and_record(self, elapsed_steps: int, elapsed_time: float, global_step: int) -> None:
        """Report a speed; subclasses may do something else with it."""
        speed = elapsed_steps / elapsed_time if elapsed_time else float("inf")
        if self._summary_writer is not None:
            from headrace.graph.proto import Summary

            value = Summary.Value(tag=self._summary_tag, simple_value=speed)
            self._summary_writer.add_summary(Summary(value=[value]), global_step)
        logging.info("%s: %g", self._summary_tag, speed)
        if not elapsed_steps:
            logging.warning(
                "It seems that the global step has not been increased since step %d.", global_step
            )


def speed_tag(global_step: Any) -> str:
    """The tag of summaries of steps per second."""
    # A plain variable called global_step is known by a tensor that reads it.
    return f"{global_step.op.name.removesuffix('/read')}/sec"


def writer_of(directory: str) -> Any:
    """The FileWriter of a directory, which all hooks share."""
    from headrace.summary import FileWriterCache  # loaded on first use, as all of tf.summary

    return FileWriterCache.get(directory)


class NanLossDuringTrainingError(RuntimeError):
    """The loss has become NaN.

    >>> loss = tf.log(tf.constant(-1.0))
    >>> try:
    ...     with tf.train.MonitoredSession(hooks=[tf.train.NanTensorHook(loss)]) as sess:
    ...         value = sess.run(loss)
    ... except tf.train.NanLossDuringTrainingError as error:
    ...     print(error)
    NaN loss during training.
    """

    def __str__(self) -> str:
        return "NaN loss during training."


class NanTensorHook(SessionRunHook):
    """Raises NanLossDuringTrainingError, or asks to stop, when the loss is NaN.

    Args:
        loss_tensor: the loss; fail_on_nan_loss: whether to raise.

    >>> loss = tf.log(tf.constant(-1.0))
    >>> hook = tf.train.NanTensorHook(loss, fail_on_nan_loss=False)
    >>> with tf.train.MonitoredSession(hooks=[hook]) as sess:
    ...     value = sess.run(loss)
    ...     sess.should_stop()
    True
    """

    def __init__(self, loss_tensor: Any, fail_on_nan_loss: bool = True) -> None:
        self._loss_tensor = loss_tensor
        self._fail_on_nan_loss = fail_on_nan_loss

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        return SessionRunArgs(self._loss_tensor)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        if np.isnan(run_values.results):
            message = "Model diverged with loss = NaN."
            if self._fail_on_nan_loss:
                logging.error(message)
                raise NanLossDuringTrainingError
            logging.warning(message)
            run_context.request_stop()


class GlobalStepWaiterHook(SessionRunHook):
    """Holds the first step back until the global step has reached a value.

    Workers that begin one after another learn more smoothly.

    Args:
        wait_until_step: the value.

    >>> step = tf.train.get_or_create_global_step()
    >>> hook = tf.train.GlobalStepWaiterHook(wait_until_step=10)  # for a worker that starts later
    >>> with tf.Session() as sess:
    ...     sess.run(step.initializer)
    ...     sess.run(step.assign(10).op)
    ...     hook.begin()
    ...     hook.before_run(tf.train.SessionRunContext(tf.train.SessionRunArgs(None), sess))
    """

    #: Waiting; tests replace it.
    sleep: Callable[[float], None] = staticmethod(time.sleep)

    def __init__(self, wait_until_step: int) -> None:
        self._wait_until_step = wait_until_step

    def begin(self) -> None:
        self._has_started = False
        self._global_step = required_global_step("GlobalStepWaiterHook")

    def before_run(self, run_context: SessionRunContext) -> None:
        if self._has_started:
            return
        self._has_started = True
        if self._wait_until_step <= 0:
            return
        logging.info("Waiting for global step %d before starting training.", self._wait_until_step)
        logged = 0
        while True:
            step = int(run_context.session.run(self._global_step))
            if step >= self._wait_until_step:
                return
            if step - logged > 1000:
                logging.info(
                    "Waiting for global step %d before starting training. Current step is %d.",
                    self._wait_until_step,
                    step,
                )
                logged = step
            self.sleep(0.5)


class FinalOpsHook(SessionRunHook):
    """Computes something after the last step.

    Args:
        final_ops: what to fetch; ``final_ops_feed_dict``: what to feed.

    >>> total = tf.Variable(0)
    >>> add, hook = total.assign_add(5), tf.train.FinalOpsHook(total)
    >>> with tf.train.MonitoredSession(hooks=[hook]) as sess:
    ...     sess.run(add.op)
    >>> int(hook.final_ops_values)
    5
    """

    def __init__(self, final_ops: Any, final_ops_feed_dict: Any = None) -> None:
        self._final_ops = final_ops
        self._feed_dict = final_ops_feed_dict
        self._values: Any = None

    @property
    def final_ops_values(self) -> Any:
        """The values; None before the end."""
        return self._values

    def end(self, session: Any) -> None:
        if self._final_ops is None:
            return
        try:
            self._values = session.run(self._final_ops, feed_dict=self._feed_dict)
        except (OutOfRangeError, StopIteration):
            logging.warning(
                "The final ops depend on the input, which is at its end: they need an input of "
                "their own. (Ops: %s)",
                self._final_ops,
            )
            raise


class FeedFnHook(SessionRunHook):
    """Feeds what a function returns, which is called before each step.

    Args:
        feed_fn: ``feed_fn() -> feed dictionary``.

    >>> x = tf.placeholder(tf.float32, [])
    >>> square = x * x
    >>> hook = tf.train.FeedFnHook(lambda: {x: 3.0})
    >>> with tf.train.MonitoredSession(hooks=[hook]) as sess:
    ...     float(sess.run(square))
    9.0
    """

    def __init__(self, feed_fn: Callable[[], dict[Any, Any]]) -> None:
        self.feed_fn = feed_fn

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        return SessionRunArgs(fetches=None, feed_dict=self.feed_fn())


class ProfilerHook(SessionRunHook):
    """Writes a trace of a step, ``timeline-<step>.json``, every so many steps or seconds.

    Chrome shows it at ``chrome://tracing``.

    Args:
        save_steps, save_secs: how often; exactly one.
        output_dir: where to.
        show_dataflow: show which op takes what from which.
        show_memory: not supported: memory is XLA's; has to be False.

    >>> step = tf.train.get_or_create_global_step()
    >>> train, hook = step.assign_add(1), tf.train.ProfilerHook(save_steps=2, output_dir=".")
    >>> with tf.train.MonitoredSession(hooks=[hook]) as sess:
    ...     steps = [int(sess.run(train)) for _ in range(3)]
    >>> tf.gfile.Glob("timeline-*.json")
    ['timeline-2.json']
    """

    def __init__(
        self,
        save_steps: int | None = None,
        save_secs: float | None = None,
        output_dir: str = "",
        show_dataflow: bool = True,
        show_memory: bool = False,
    ) -> None:
        if show_memory:
            raise ValueError("show_memory is not supported: there are no records of memory.")
        self._output_dir = as_path(output_dir) if output_dir else output_dir
        self._show_dataflow = show_dataflow
        self._timer = SecondOrStepTimer(every_secs=save_secs, every_steps=save_steps)

    def begin(self) -> None:
        self._next_step: int | None = None
        self._global_step = required_global_step("ProfilerHook")

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        from headrace.graph.proto import RunOptions

        self._is_due = self._next_step is not None and self._timer.should_trigger_for_step(
            self._next_step
        )
        options = RunOptions(trace_level=RunOptions.FULL_TRACE) if self._is_due else None
        return SessionRunArgs(read_before(self._global_step), options=options)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        step = int(run_values.results) + 1
        if self._next_step is None:
            # The first step compiles: the trace starts behind it.
            self._timer.update_last_triggered_step(step - 1)
        if self._is_due:
            step = int(run_context.session.run(self._global_step))
            self._timer.update_last_triggered_step(step)
            self._save(step, run_values.run_metadata, run_context.session.graph)
        self._next_step = step + 1

    def _save(self, step: int, run_metadata: Any, graph: Any) -> None:
        from headrace.files.system import make_directories, write_bytes
        from headrace.session.timeline import Timeline

        trace = Timeline(run_metadata.step_stats, graph=graph).generate_chrome_trace_format(
            show_dataflow=self._show_dataflow
        )
        if self._output_dir:
            make_directories(self._output_dir)
        path = f"{self._output_dir.rstrip('/')}/" if self._output_dir else ""
        write_bytes(f"{path}timeline-{step}.json", trace.encode())
        logging.info("Saved the timeline of step %d to '%stimeline-%d.json'.", step, path, step)
