"""``slim.learning``: a training op, and the loop that runs it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from headrace import logging
from headrace.contrib.training import training
from headrace.contrib.training.training import (
    USE_GLOBAL_STEP,
    add_gradients_summaries,
    clip_gradient_norms,
    multiply_gradients,
)
from headrace.errors import AbortedError, OutOfRangeError
from headrace.graph.given import given_graph
from headrace.graph.tensor import Tensor
from headrace.ops.core.build import constant, raw
from headrace.ops.math.cast import cast
from headrace.ops.state.scopes_api import name_scope
from headrace.train.global_step import get_or_create_global_step
from headrace.train.optimizer import GradVar, Optimizer
from headrace.train.saver import Saver
from headrace.train.supervisor import Supervisor

#: An argument that was left out.
_USE_DEFAULT: Any = object()


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

    The result has the shape of ``total_loss``.

    Args:
        clip_gradient_norm: limit of the norm of each gradient; 0 for none.
        gradient_multipliers: factors by variable, or by the name of its op.

    Raises:
        TypeError: if the loss is no tensor, ``optimizer`` no optimizer, or the limit no number.
        ValueError: if a variable to train is not trainable.
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

    The loss is a scalar.

    Raises:
        TypeError: if ``train_op`` cannot be fetched.
    """
    start = time.time()
    loss = sess.run(train_op)
    elapsed = time.time() - start
    if "should_log" in train_step_kwargs and sess.run(train_step_kwargs["should_log"]):
        step = sess.run(global_step)
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

    The result is the last loss, a scalar.

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
    _check_absent(sync_optimizer=sync_optimizer, trace_every_n_steps=trace_every_n_steps)
    graph = given_graph(graph)
    with graph.as_default():
        step = get_or_create_global_step() if global_step is None else global_step
        kept_saver = saver or Saver()
        settings = train_step_kwargs
        if train_step_kwargs is _USE_DEFAULT:
            settings = _step_tensors(step, number_of_steps, log_every_n_steps)
    supervisor = _supervisor(
        {"graph": graph, "is_chief": is_chief, "logdir": logdir, "global_step": step},
        {"init_op": init_op, "init_feed_dict": init_feed_dict, "local_init_op": local_init_op},
        {"init_fn": init_fn, "ready_op": ready_op, "summary_op": summary_op},
        {"summary_writer": summary_writer, "save_summaries_secs": save_summaries_secs},
        {"saver": kept_saver, "save_model_secs": save_interval_secs},
    )
    if summary_writer is not None:
        settings["summary_writer"] = supervisor.summary_writer
    delay = 0 if is_chief else min(startup_delay_steps, number_of_steps or sys.maxsize)
    kept = logdir if is_chief else None
    run = _Run(supervisor, kept, session_wrapper, delay, ignore_live_threads)
    while True:
        try:
            with supervisor.managed_session(
                master, config=session_config, start_standard_services=False
            ) as session:
                return run(session, train_op, step, train_step_fn, settings)
        except AbortedError:  # a server has started anew
            logging.info("Retrying training!")


class _Run(NamedTuple):
    """The steps in one session."""

    supervisor: Supervisor
    logdir: str | None
    wrapper: Callable[[Any], Any] | None
    delay: int
    ignore_live_threads: bool

    def __call__(self, session: Any, train_op: Any, step: Any, step_fn: Any, settings: Any) -> Any:
        supervisor = self.supervisor
        if self.wrapper is not None:
            session = self.wrapper(session)
        if self.logdir:
            supervisor.start_standard_services(session)
        while session.run(step) < self.delay:
            time.sleep(1.0)
        threads = supervisor.start_queue_runners(session)
        loss = _loop(supervisor, session, train_op, step, step_fn, settings)
        if self.logdir:
            logging.info("Finished training! Saving model to disk.")
            supervisor.saver.save(session, supervisor.save_path, global_step=step)
            supervisor.stop(
                threads,
                close_summary_writer=True,
                ignore_live_threads=self.ignore_live_threads,
            )
        return loss


def _supervisor(*arguments: dict[str, Any]) -> Supervisor:
    """A supervisor with the arguments that are given."""
    given = {name: value for part in arguments for name, value in part.items()}
    return Supervisor(**{n: v for n, v in given.items() if v is not _USE_DEFAULT})


def _check(train_op: Any, logdir: Any, summary_op: Any, saver: Any, steps: int | None) -> None:
    if train_op is None:
        raise ValueError("train_op cannot be None.")
    if logdir is None and summary_op is not _USE_DEFAULT:
        raise ValueError("Cannot provide summary_op because logdir=None")
    if logdir is None and saver is not None:
        raise ValueError("Cannot provide saver because logdir=None")
    if steps is not None and steps <= 0:
        raise ValueError("`number_of_steps` must be either None or a positive number.")


def _check_absent(**arguments: Any) -> None:
    for name, value in arguments.items():
        if value is not None:
            raise NotImplementedError(
                f"slim.learning.train does not take {name}: use tf.train.SyncReplicasOptimizer's "
                "own hook, and tf.profiler."
            )


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
