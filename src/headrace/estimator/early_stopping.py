"""Hooks that end training early: by a function, or by metrics of evaluations."""

from __future__ import annotations

import operator
import os
import time
from collections.abc import Callable
from typing import Any

from headrace import logging
from headrace.estimator.checkpoints import global_step_of
from headrace.estimator.estimator import Estimator
from headrace.files import system
from headrace.graph import dtypes
from headrace.graph.keys import GraphKeys
from headrace.ops.state.initializers import Constant
from headrace.ops.state.variable_kinds import AUTO_REUSE
from headrace.ops.state.variable_scope import get_variable, variable_scope
from headrace.train.basic_session_run_hooks import (
    SecondOrStepTimer,
    StopAtStepHook,
    read_before,
    required_global_step,
)
from headrace.train.session_run_hook import SessionRunArgs, SessionRunHook
from headrace.train.summary_io import summary_iterator

__all__ = [
    "make_early_stopping_hook",
    "make_stop_at_checkpoint_step_hook",
    "read_eval_metrics",
    "stop_if_higher_hook",
    "stop_if_lower_hook",
    "stop_if_no_decrease_hook",
    "stop_if_no_increase_hook",
]


def make_early_stopping_hook(
    estimator: Estimator,
    should_stop_fn: Callable[[], bool],
    run_every_secs: float | None = 60,
    run_every_steps: int | None = None,
) -> SessionRunHook:
    """A hook for `TrainSpec` by which all workers stop when the chief's function says so.

    Args:
        should_stop_fn: asked by the chief every so many seconds or steps; the answer comes to
            workers through a variable, a scalar.
        run_every_secs: None if ``run_every_steps`` is given.

    Raises:
        TypeError: if there is no Estimator, or no function.
        ValueError: unless exactly one of seconds and steps is given.
    """
    if not isinstance(estimator, Estimator):
        raise TypeError(
            f"`estimator` must have type `tf.estimator.Estimator`. Got: {type(estimator)}"
        )
    if run_every_secs is not None and run_every_steps is not None:
        raise ValueError("Only one of `run_every_secs` and `run_every_steps` must be set.")
    if not estimator.config.is_chief:
        return _FollowingHook()
    if not callable(should_stop_fn):
        raise TypeError("`should_stop_fn` must be callable.")
    return _DecidingHook(should_stop_fn, run_every_secs, run_every_steps)


def stop_if_higher_hook(
    estimator: Estimator,
    metric_name: str,
    threshold: float,
    eval_dir: str | None = None,
    min_steps: int = 0,
    run_every_secs: float | None = 60,
    run_every_steps: int | None = None,
) -> SessionRunHook:
    """A hook that stops when a metric of an evaluation, a scalar, is above ``threshold``.

    Args:
        eval_dir: where evaluations write; by default that of ``estimator``.
        min_steps: evaluations of earlier steps do not count.
        run_every_secs, run_every_steps: how often to look; exactly one.

    Raises:
        ValueError: if both are given.
    """
    crossed = _crossing(estimator, metric_name, threshold, eval_dir, min_steps, higher=True)
    return make_early_stopping_hook(estimator, crossed, run_every_secs, run_every_steps)


def stop_if_lower_hook(
    estimator: Estimator,
    metric_name: str,
    threshold: float,
    eval_dir: str | None = None,
    min_steps: int = 0,
    run_every_secs: float | None = 60,
    run_every_steps: int | None = None,
) -> SessionRunHook:
    """A hook that stops when a metric of an evaluation, a scalar, is below ``threshold``.

    Arguments are those of `stop_if_higher_hook`.

    Raises:
        ValueError: if both seconds and steps are given.
    """
    crossed = _crossing(estimator, metric_name, threshold, eval_dir, min_steps, higher=False)
    return make_early_stopping_hook(estimator, crossed, run_every_secs, run_every_steps)


def stop_if_no_increase_hook(
    estimator: Estimator,
    metric_name: str,
    max_steps_without_increase: int,
    eval_dir: str | None = None,
    min_steps: int = 0,
    run_every_secs: float | None = 60,
    run_every_steps: int | None = None,
) -> SessionRunHook:
    """A hook that stops when a metric, a scalar, has not grown over so many training steps.

    Other arguments are those of `stop_if_higher_hook`.

    Raises:
        ValueError: if both seconds and steps are given.
    """
    stalled = _stalling(
        estimator, metric_name, max_steps_without_increase, eval_dir, min_steps, higher=True
    )
    return make_early_stopping_hook(estimator, stalled, run_every_secs, run_every_steps)


def stop_if_no_decrease_hook(
    estimator: Estimator,
    metric_name: str,
    max_steps_without_decrease: int,
    eval_dir: str | None = None,
    min_steps: int = 0,
    run_every_secs: float | None = 60,
    run_every_steps: int | None = None,
) -> SessionRunHook:
    """A hook that stops when a metric, a scalar, has not fallen over so many training steps.

    Other arguments are those of `stop_if_higher_hook`.

    Raises:
        ValueError: if both seconds and steps are given.
    """
    stalled = _stalling(
        estimator, metric_name, max_steps_without_decrease, eval_dir, min_steps, higher=False
    )
    return make_early_stopping_hook(estimator, stalled, run_every_secs, run_every_steps)


def make_stop_at_checkpoint_step_hook(
    estimator: Estimator, last_step: int, wait_after_file_check_secs: float = 30
) -> SessionRunHook:
    """A hook that stops at a step; workers stop when a checkpoint of that step is there.

    Args:
        last_step: compared with the global step, a scalar.
        wait_after_file_check_secs: how long a worker waits before it looks again.

    Raises:
        ValueError: without a step.
    """
    if last_step is None:
        raise ValueError("last_step must be specified.")
    if estimator.config.is_chief:
        return StopAtStepHook(last_step=last_step)
    return _StopAtCheckpointHook(estimator.model_dir, last_step, wait_after_file_check_secs)


def read_eval_metrics(eval_dir: str) -> dict[int, dict[str, float]]:
    """The metrics that evaluations have written to a directory, by global step, ascending."""
    found: dict[int, dict[str, float]] = {}
    names = system.list_directory(eval_dir) if system.is_directory(eval_dir) else []
    for name in sorted(names):
        if ".tfevents." not in name:
            continue
        for event in summary_iterator(os.path.join(eval_dir, name)):
            values = {
                v.tag: v.simple_value for v in event.summary.value if v.HasField("simple_value")
            }
            if values:
                found.setdefault(event.step, {}).update(values)
    return dict(sorted(found.items()))


def _metric(
    estimator: Estimator, name: str, eval_dir: str | None, min_steps: int
) -> Callable[[], list[tuple[int, float]]]:
    """Reads (step, value) of a metric from ``min_steps`` on."""
    folder = eval_dir or estimator.eval_dir()

    def read() -> list[tuple[int, float]]:
        by_step = read_eval_metrics(folder)
        for step, metrics in by_step.items():
            if step >= min_steps and name not in metrics:
                raise ValueError(
                    f"The evaluation of step {step} in {folder} has no metric {name!r}: it has "
                    f"{sorted(metrics)}."
                )
        return [(step, metrics[name]) for step, metrics in by_step.items() if step >= min_steps]

    return read


def _crossing(
    estimator: Estimator,
    name: str,
    threshold: float,
    eval_dir: str | None,
    min_steps: int,
    *,
    higher: bool,
) -> Callable[[], bool]:
    read = _metric(estimator, name, eval_dir, min_steps)
    better = operator.gt if higher else operator.lt

    def crossed() -> bool:
        for step, value in read():
            if better(value, threshold):
                logging.info(
                    'At step %s, metric "%s" has value %s which is %s the configured threshold '
                    "(%s) for early stopping.",
                    step,
                    name,
                    value,
                    "greater than" if higher else "less than",
                    threshold,
                )
                return True
        return False

    return crossed


def _stalling(
    estimator: Estimator,
    name: str,
    most: int,
    eval_dir: str | None,
    min_steps: int,
    *,
    higher: bool,
) -> Callable[[], bool]:
    read = _metric(estimator, name, eval_dir, min_steps)
    better = operator.gt if higher else operator.lt

    def stalled() -> bool:
        best: tuple[int, float] | None = None
        for step, value in read():
            if best is None or better(value, best[1]):
                best = step, value
            if step - best[0] >= most:
                logging.info(
                    'No %s in metric "%s" for %s steps, which is greater than or equal to max '
                    "steps (%s) configured for early stopping.",
                    "increase" if higher else "decrease",
                    name,
                    step - best[0],
                    most,
                )
                return True
        return False

    return stalled


def _stop_variable() -> Any:
    """The variable by which the chief tells workers to stop."""
    with variable_scope("signal_early_stopping", reuse=AUTO_REUSE):
        return get_variable(
            "STOP",
            shape=[],
            dtype=dtypes.bool,
            initializer=Constant(False),
            collections=[GraphKeys.GLOBAL_VARIABLES],
            trainable=False,
        )


class _DecidingHook(SessionRunHook):
    """Stops, and tells others to, when a function says so."""

    def __init__(
        self, should_stop_fn: Callable[[], bool], secs: float | None, steps: int | None
    ) -> None:
        self._should_stop_fn = should_stop_fn
        self._timer = SecondOrStepTimer(every_secs=secs, every_steps=steps)

    def begin(self) -> None:
        self._global_step = required_global_step("make_early_stopping_hook")
        self._stop_op = _stop_variable().assign(True, read_value=False)

    def before_run(self, run_context: Any) -> SessionRunArgs:
        return SessionRunArgs(self._global_step)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        step = int(run_values.results)
        if not self._timer.should_trigger_for_step(step):
            return
        self._timer.update_last_triggered_step(step)
        if self._should_stop_fn():
            logging.info("Requesting early stopping at global step %d", step)
            run_context.session.run(self._stop_op)
            run_context.request_stop()


class _FollowingHook(SessionRunHook):
    """Stops when the chief has asked for it."""

    def begin(self) -> None:
        self._stop = _stop_variable()

    def before_run(self, run_context: Any) -> SessionRunArgs:
        return SessionRunArgs(self._stop)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        if run_values.results:
            logging.info("Early stopping requested, suspending run.")
            run_context.request_stop()


class _StopAtCheckpointHook(SessionRunHook):
    """Stops when a checkpoint of a step is there."""

    #: Waiting; tests replace it.
    sleep: Callable[[float], None] = staticmethod(time.sleep)

    def __init__(self, model_dir: str, last_step: int, wait: float) -> None:
        self._model_dir = model_dir
        self._last_step = last_step
        self._wait = wait

    def begin(self) -> None:
        self._global_step = required_global_step("make_stop_at_checkpoint_step_hook")

    def before_run(self, run_context: Any) -> SessionRunArgs:
        return SessionRunArgs(read_before(self._global_step))

    def after_run(self, run_context: Any, run_values: Any) -> None:
        if int(run_values.results) + 1 < self._last_step:
            return
        if global_step_of(self._model_dir) >= self._last_step:
            run_context.request_stop()
        else:
            self.sleep(self._wait)
