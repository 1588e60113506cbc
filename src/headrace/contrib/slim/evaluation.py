"""``slim.evaluation``: metrics of checkpoints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace import summary
from headrace.contrib.training.evaluation import (
    StopAfterNEvalsHook,
    SummaryAtEndHook,
    checkpoints_iterator,
    wait_for_new_checkpoint,
)
from headrace.contrib.training.evaluation import (
    evaluate_once as _evaluate_once,
)
from headrace.train.saver import Saver
from headrace.train.scaffold import Scaffold

#: An argument that was left out.
_USE_DEFAULT: Any = object()


def evaluate_once(
    master: str,
    checkpoint_path: str,
    logdir: str | None,
    num_evals: int = 1,
    initial_op: Any = None,
    initial_op_feed_dict: Any = None,
    eval_op: Any = None,
    eval_op_feed_dict: Any = None,
    final_op: Any = None,
    final_op_feed_dict: Any = None,
    summary_op: Any = _USE_DEFAULT,
    summary_op_feed_dict: Any = None,
    variables_to_restore: Any = None,
    session_config: Any = None,
    hooks: Sequence[Any] | None = None,
) -> Any:
    """Restore a checkpoint, run ``eval_op`` ``num_evals`` times, and give ``final_op``.

    Summaries are written to ``logdir`` at the end.

    What it gives has the shapes of ``final_op``.

    Raises:
        ValueError: if there is no such checkpoint, and there are variables to restore.
    """
    chosen: list[Any] = [StopAfterNEvalsHook(num_evals)]
    if summary_op is _USE_DEFAULT:
        summary_op = summary.merge_all()
    if summary_op is not None and logdir is not None:
        chosen.append(
            SummaryAtEndHook(log_dir=logdir, summary_op=summary_op, feed_dict=summary_op_feed_dict)
        )
    saver = None if variables_to_restore is None else Saver(variables_to_restore)
    return _evaluate_once(
        checkpoint_path,
        master=master,
        scaffold=Scaffold(init_op=initial_op, init_feed_dict=initial_op_feed_dict, saver=saver),
        eval_ops=eval_op,
        feed_dict=eval_op_feed_dict,
        final_ops=final_op,
        final_ops_feed_dict=final_op_feed_dict,
        hooks=[*chosen, *(hooks or ())],
        config=session_config,
    )


__all__ = ["checkpoints_iterator", "evaluate_once", "wait_for_new_checkpoint"]
