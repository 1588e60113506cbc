"""One evaluation of a checkpoint: steps over the input, then the metrics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace import logging
from headrace.graph import dtypes
from headrace.graph.graph import get_default_graph
from headrace.graph.keys import GraphKeys
from headrace.ops.state.initializers import Zeros
from headrace.ops.state.variable_scope import get_variable
from headrace.train.basic_session_run_hooks import FinalOpsHook
from headrace.train.monitored_session import ChiefSessionCreator, MonitoredSession
from headrace.train.scaffold import Scaffold
from headrace.train.session_run_hook import SessionRunArgs, SessionRunHook

__all__ = ["StopAfterNEvalsHook", "evaluate_once", "get_or_create_eval_step"]


def get_or_create_eval_step() -> Any:
    """The variable that counts evaluation steps, an int64 scalar.

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
            every = 1 if self._num_evals < 20 else self._num_evals // 10
            if done % every == 0 or done == self._num_evals:
                logging.info("Evaluation [%d/%d]", done, self._num_evals)
        if self._num_evals is not None and done >= self._num_evals:
            run_context.request_stop()


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
    """Restore a checkpoint, run ``eval_ops`` until a hook stops, and give ``final_ops``.

    They are arrays of the shapes of what is fetched. Without a path, variables are initialised.

    Raises:
        ValueError: if there is no such checkpoint, and there are variables to restore.
    """
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
