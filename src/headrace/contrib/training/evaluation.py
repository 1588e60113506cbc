"""Evaluation of checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import sleep, time
from typing import Any

from headrace import logging, summary
from headrace.graph import dtypes
from headrace.graph.graph import get_default_graph
from headrace.graph.keys import GraphKeys
from headrace.ops.state.initializers import Zeros
from headrace.ops.state.variable_scope import get_variable
from headrace.train.basic_session_run_hooks import FinalOpsHook
from headrace.train.checkpoint_state import latest_checkpoint
from headrace.train.checkpoint_utils import checkpoints_iterator
from headrace.train.global_step import get_global_step
from headrace.train.monitored_session import ChiefSessionCreator, MonitoredSession
from headrace.train.scaffold import Scaffold
from headrace.train.session_run_hook import SessionRunArgs, SessionRunHook


def wait_for_new_checkpoint(
    checkpoint_dir: str,
    last_checkpoint: str | None = None,
    seconds_to_sleep: float = 1,
    timeout: float | None = None,
    *,
    clock: Callable[[], float] = time,
    pause: Callable[[float], None] = sleep,
) -> str | None:
    """The newest checkpoint, once it is another than ``last_checkpoint``; None after ``timeout``.

    ``clock`` and ``pause`` stand in for time in tests.
    """
    logging.info("Waiting for new checkpoint at %s", checkpoint_dir)
    stop = None if timeout is None else clock() + timeout
    while True:
        path = latest_checkpoint(checkpoint_dir)
        if path is not None and path != last_checkpoint:
            logging.info("Found new checkpoint at %s", path)
            return path
        if stop is not None and clock() + seconds_to_sleep > stop:
            return None
        pause(seconds_to_sleep)


def get_or_create_eval_step() -> Any:
    """The variable that counts evaluation steps.

    Raises:
        ValueError: if there are several.
    """
    found = get_default_graph().get_collection(GraphKeys.EVAL_STEP)
    if len(found) > 1:
        raise ValueError("Multiple tensors added to tf.GraphKeys.EVAL_STEP")
    if found:
        return found[0]
    return get_variable(
        "eval_step",
        shape=[],
        dtype=dtypes.int64,
        initializer=Zeros(),
        trainable=False,
        collections=[GraphKeys.LOCAL_VARIABLES, GraphKeys.EVAL_STEP],
    )


class StopAfterNEvalsHook(SessionRunHook):
    """Stops after ``num_evals`` evaluation steps; None goes on to the end of the input.

    >>> v = tf.Variable(3.0)
    >>> with tf.Session() as sess:
    ...     sess.run(v.initializer)
    ...     path = tf.train.Saver().save(sess, "./model")
    >>> mean, update = tf.metrics.mean(v)
    >>> hook = tf.contrib.training.StopAfterNEvalsHook(3, log_progress=False)
    >>> tf.contrib.training.evaluate_once(
    ...     path, eval_ops=update, final_ops={"mean": mean}, hooks=[hook]
    ... )
    {'mean': np.float32(3.0)}
    """

    def __init__(self, num_evals: int | None, log_progress: bool = True) -> None:
        self._num_evals = num_evals
        self._log_progress = log_progress
        self._done: Any = None

    def _set_evals_completed_tensor(self, updated_eval_step: Any) -> None:
        self._done = updated_eval_step

    def before_run(self, run_context: Any) -> SessionRunArgs:
        return SessionRunArgs({"evals_completed": self._done})

    def after_run(self, run_context: Any, run_values: Any) -> None:
        done = run_values.results["evals_completed"]
        if self._log_progress and self._num_evals is not None:
            logging.info("Evaluation [%d/%d]", done, self._num_evals)
        if self._num_evals is not None and done >= self._num_evals:
            run_context.request_stop()


class SummaryAtEndHook(SessionRunHook):
    """Writes the summaries once, after the last step.

    Raises:
        ValueError: if there is neither a directory nor a writer.

    >>> step = tf.train.get_or_create_global_step()
    >>> loss, train = tf.summary.scalar("loss", 0.5), tf.no_op()
    >>> hook = tf.contrib.training.SummaryAtEndHook("at_end", summary_op=loss)
    >>> with tf.train.MonitoredSession(hooks=[hook]) as sess:
    ...     sess.run(train)
    >>> tf.summary.FileWriterCache.clear()
    >>> len(tf.gfile.Glob("at_end/events.*"))
    1
    """

    def __init__(
        self,
        log_dir: str | None = None,
        summary_writer: Any = None,
        summary_op: Any = None,
        feed_dict: Any = None,
    ) -> None:
        if summary_writer is None and log_dir is None:
            raise ValueError("exactly one of log_dir or summary_writer must be specified")
        self._log_dir = log_dir or ""
        self._writer = summary_writer
        self._summary_op = summary_op
        self._feed_dict = feed_dict
        self._step: Any = None

    def begin(self) -> None:
        if self._summary_op is None:
            self._summary_op = summary.merge_all()
        self._step = get_global_step()
        if self._writer is None:
            self._writer = summary.FileWriterCache.get(self._log_dir)

    def end(self, session: Any) -> None:
        if self._summary_op is None:
            return
        step = None if self._step is None else session.run(self._step)
        text = session.run(self._summary_op, self._feed_dict)
        self._writer.add_summary(text, step)
        self._writer.flush()


def evaluate_once(
    checkpoint_path: str | None,
    master: str = "",
    scaffold: Scaffold | None = None,
    eval_ops: Any = None,
    feed_dict: Any = None,
    final_ops: Any = None,
    final_ops_feed_dict: Any = None,
    hooks: Sequence[SessionRunHook] | None = None,
    config: Any = None,
) -> Any:
    """Restore a checkpoint, run ``eval_ops`` until a hook stops, and give ``final_ops``."""
    chosen = list(hooks or ())
    counted = eval_ops
    if eval_ops is not None:
        update = get_or_create_eval_step().assign_add(1)
        for hook in chosen:
            if isinstance(hook, StopAfterNEvalsHook):
                hook._set_evals_completed_tensor(update)
        counted = {"update_eval_step": update, "eval_ops": eval_ops}
    final = FinalOpsHook(final_ops, final_ops_feed_dict)
    creator = ChiefSessionCreator(
        scaffold=scaffold,
        checkpoint_filename_with_path=checkpoint_path,
        master=master,
        config=config,
    )
    with MonitoredSession(creator, [*chosen, final]) as session:
        while counted is not None and not session.should_stop():
            session.run(counted, feed_dict)
    return final.final_ops_values


def evaluate_repeatedly(
    checkpoint_dir: str,
    master: str = "",
    scaffold: Scaffold | None = None,
    eval_ops: Any = None,
    feed_dict: Any = None,
    final_ops: Any = None,
    final_ops_feed_dict: Any = None,
    eval_interval_secs: float = 60,
    hooks: Sequence[SessionRunHook] | None = None,
    config: Any = None,
    max_number_of_evaluations: int | None = None,
    timeout: float | None = None,
    timeout_fn: Callable[[], bool] | None = None,
) -> Any:
    """`evaluate_once` of every new checkpoint of a directory; the last ``final_ops``."""
    found = None
    paths = checkpoints_iterator(checkpoint_dir, eval_interval_secs, timeout, timeout_fn)
    for count, path in enumerate(paths, 1):
        found = evaluate_once(
            path,
            master,
            scaffold,
            eval_ops,
            feed_dict,
            final_ops,
            final_ops_feed_dict,
            hooks,
            config,
        )
        if max_number_of_evaluations is not None and count >= max_number_of_evaluations:
            break
    return found


__all__ = [
    "StopAfterNEvalsHook",
    "SummaryAtEndHook",
    "checkpoints_iterator",
    "evaluate_once",
    "evaluate_repeatedly",
    "get_or_create_eval_step",
    "wait_for_new_checkpoint",
]
