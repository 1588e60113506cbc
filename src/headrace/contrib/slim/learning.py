"""``slim.learning``: a training op, and the loop that runs it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

from headrace import logging, summary
from headrace.contrib.training import training
from headrace.contrib.training.training import (
    USE_GLOBAL_STEP,
    add_gradients_summaries,
    clip_gradient_norms,
    multiply_gradients,
)
from headrace.errors import AbortedError, OutOfRangeError
from headrace.graph.graph import get_default_graph
from headrace.graph.tensor import Tensor
from headrace.ops.build import constant, raw
from headrace.ops.elementwise_cast import cast
from headrace.ops.scopes_api import name_scope
from headrace.train.global_step import get_or_create_global_step
from headrace.train.optimizer import GradVar, Optimizer
from headrace.train.saver import Saver
from headrace.train.supervisor import Supervisor

_USE_DEFAULT = 0


def create_train_op(
    total_loss: Any,
    optimizer: Optimizer,
    global_step: Any = USE_GLOBAL_STEP,
    update_ops: Any = None,
    variables_to_train: Any = None,
    clip_gradient_norm: float = 0,
    summarize_gradients: bool = False,
    gate_gradients: int = Optimizer.GATE_OP,
    aggregation_method: int | None = None,
    colocate_gradients_with_ops: bool = False,
    gradient_multipliers: Mapping[Any, Any] | None = None,
    check_numerics: bool = True,
) -> Tensor:
    """`tf.contrib.training.create_train_op` with factors and limits of the gradients.

    Args:
        clip_gradient_norm: limit of the norm of each gradient; 0 for none.
        gradient_multipliers: factors by variable, or by the name of its op.
    """

    def transform(gradients: list[GradVar]) -> list[GradVar]:
        if gradient_multipliers:
            with name_scope("multiply_grads"):
                gradients = multiply_gradients(gradients, gradient_multipliers)
        if clip_gradient_norm > 0:
            with name_scope("clip_grads"):
                gradients = clip_gradient_norms(gradients, clip_gradient_norm)
        return gradients

    return training.create_train_op(
        total_loss,
        optimizer,
        global_step,
        update_ops,
        variables_to_train,
        transform,
        summarize_gradients,
        gate_gradients,
        aggregation_method,
        colocate_gradients_with_ops,
        check_numerics,
    )


def train_step(
    sess: Any, train_op: Any, global_step: Any, train_step_kwargs: Mapping[str, Any]
) -> tuple[Any, Any]:
    """One step: the loss, and whether to stop.

    ``train_step_kwargs`` may hold the tensors "should_log" and "should_stop".
    """
    start = time.time()
    loss, step = sess.run([train_op, global_step])
    elapsed = time.time() - start
    if "should_log" in train_step_kwargs and sess.run(train_step_kwargs["should_log"]):
        logging.info("global step %d: loss = %.4f (%.3f sec/step)", step, loss, elapsed)
    stop = (
        sess.run(train_step_kwargs["should_stop"]) if "should_stop" in train_step_kwargs else False
    )
    return loss, stop


def train(
    train_op: Any,
    logdir: str | None,
    train_step_fn: Callable[..., tuple[Any, Any]] = train_step,
    train_step_kwargs: Any = _USE_DEFAULT,
    log_every_n_steps: int = 1,
    graph: Any = None,
    master: str = "",
    is_chief: bool = True,
    global_step: Any = None,
    number_of_steps: int | None = None,
    init_op: Any = _USE_DEFAULT,
    init_feed_dict: Any = None,
    local_init_op: Any = _USE_DEFAULT,
    init_fn: Any = None,
    ready_op: Any = _USE_DEFAULT,
    summary_op: Any = _USE_DEFAULT,
    save_summaries_secs: float = 600,
    summary_writer: Any = _USE_DEFAULT,
    startup_delay_steps: int = 0,
    saver: Any = None,
    save_interval_secs: float = 600,
    sync_optimizer: Any = None,
    session_config: Any = None,
    session_wrapper: Any = None,
    trace_every_n_steps: int | None = None,
    ignore_live_threads: bool = False,
) -> Any:
    """Run ``train_op`` until ``number_of_steps``, with checkpoints and summaries in ``logdir``.

    Args:
        train_step_fn: function of session, train op, global step and ``train_step_kwargs`` that
            makes a step and gives the loss and whether to stop.
        init_fn: function of the session, called after initialisation.
        startup_delay_steps: a task that is not the chief waits until so many steps were made.
        session_wrapper: function of the session whose result is used in its place.

    Returns:
        The loss of the last step.

    Raises:
        ValueError: if arguments contradict each other.
        NotImplementedError: for ``sync_optimizer`` and ``trace_every_n_steps``.
    """
    _check(train_op, logdir, summary_op, saver, number_of_steps)
    if sync_optimizer is not None or trace_every_n_steps is not None:
        raise NotImplementedError(
            "slim.learning.train takes neither sync_optimizer nor trace_every_n_steps: use "
            "tf.train.SyncReplicasOptimizer's own hook and tf.profiler."
        )
    graph = graph or get_default_graph()
    with graph.as_default():
        step = get_or_create_global_step() if global_step is None else global_step
        kept_saver = saver or Saver()
        settings = train_step_kwargs
        if train_step_kwargs is _USE_DEFAULT:
            settings = _step_tensors(step, number_of_steps, log_every_n_steps)
        if summary_op is _USE_DEFAULT:
            summary_op = summary.merge_all()
    given = {
        "init_op": init_op,
        "local_init_op": local_init_op,
        "ready_op": ready_op,
        "summary_writer": summary_writer,
    }
    supervisor = Supervisor(
        graph=graph,
        is_chief=is_chief,
        logdir=logdir,
        init_feed_dict=init_feed_dict,
        summary_op=summary_op,
        global_step=step,
        saver=kept_saver,
        save_summaries_secs=save_summaries_secs,
        save_model_secs=save_interval_secs,
        init_fn=init_fn,
        **{name: value for name, value in given.items() if value is not _USE_DEFAULT},
    )
    if summary_writer is not None:
        settings["summary_writer"] = supervisor.summary_writer
    delay = 0 if is_chief else min(startup_delay_steps, number_of_steps or sys.maxsize)
    while True:
        try:
            with supervisor.managed_session(
                master, config=session_config, start_standard_services=False
            ) as session:
                if session_wrapper is not None:
                    session = session_wrapper(session)
                if is_chief and logdir:
                    supervisor.start_standard_services(session)
                _wait_for_step(session, step, delay)
                threads = supervisor.start_queue_runners(session)
                loss = _loop(supervisor, session, train_op, step, train_step_fn, settings)
                if logdir and is_chief:
                    logging.info("Finished training! Saving model to disk.")
                    supervisor.saver.save(session, supervisor.save_path, global_step=step)
                    supervisor.stop(
                        threads, close_summary_writer=True, ignore_live_threads=ignore_live_threads
                    )
                return loss
        except AbortedError:  # a server has started anew
            logging.info("Retrying training!")


def _check(train_op: Any, logdir: Any, summary_op: Any, saver: Any, steps: int | None) -> None:
    if train_op is None:
        raise ValueError("train_op cannot be None.")
    if logdir is None and summary_op is not _USE_DEFAULT:
        raise ValueError("Cannot provide summary_op because logdir=None")
    if logdir is None and saver is not None:
        raise ValueError("Cannot provide saver because logdir=None")
    if steps is not None and steps <= 0:
        raise ValueError("`number_of_steps` must be either None or a positive number.")


def _step_tensors(step: Any, number_of_steps: int | None, log_every: int) -> dict[str, Any]:
    with name_scope("train_step"):
        count = step.read_value() if hasattr(step, "read_value") else step
        stop: Any = constant(False)
        if number_of_steps:
            stop = raw.GreaterEqual(count, cast(number_of_steps, count.dtype))
        tensors = {"should_stop": stop}
        if log_every > 0:
            rest = raw.FloorMod(count, cast(log_every, count.dtype))
            tensors["should_log"] = raw.Equal(rest, cast(0, count.dtype))
        return tensors


def _wait_for_step(session: Any, step: Any, wanted: int) -> None:
    while session.run(step) < wanted:
        time.sleep(1.0)


def _loop(
    supervisor: Supervisor, session: Any, train_op: Any, step: Any, step_fn: Any, settings: Any
) -> Any:
    loss = None
    try:
        while not supervisor.should_stop():
            loss, stop = step_fn(session, train_op, step, settings)
            if stop:
                logging.info("Stopping Training.")
                supervisor.request_stop()
                break
    except OutOfRangeError as error:
        logging.info("Caught OutOfRangeError. Stopping Training. %s", error)
    return loss


__all__ = [
    "add_gradients_summaries",
    "clip_gradient_norms",
    "create_train_op",
    "multiply_gradients",
    "train",
    "train_step",
]
