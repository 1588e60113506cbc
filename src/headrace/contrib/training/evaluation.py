"""Evaluation of checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import sleep, time
from typing import Any

from headrace import logging, summary
from headrace.train.checkpoint_state import latest_checkpoint
from headrace.train.checkpoint_utils import checkpoints_iterator
from headrace.train.evaluation import (
    StopAfterNEvalsHook,
    evaluate_once,
    get_or_create_eval_step,
)
from headrace.train.global_step import get_global_step
from headrace.train.scaffold import Scaffold
from headrace.train.session_run_hook import SessionRunHook


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

    Raises:
        TypeError: if ``checkpoint_dir`` is no path, or ``timeout`` no number of seconds.
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
    """`evaluate_once` of every new checkpoint of a directory; the last ``final_ops``.

    They are arrays of the shapes of what is fetched; None if there was no checkpoint in time.

    Raises:
        TypeError: if ``checkpoint_dir`` is no path.
        ValueError: as `evaluate_once`.
    """
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
