"""``tf.contrib.learn.monitors``: what watches training, as hooks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from headrace import logging
from headrace.train.basic_session_run_hooks import (
    LoggingTensorHook,
    SecondOrStepTimer,
    StepCounterHook,
    StopAtStepHook,
    required_global_step,
)
from headrace.train.saving_hooks import CheckpointSaverHook, SummarySaverHook
from headrace.train.session_run_hook import SessionRunArgs, SessionRunHook

__all__ = [
    "BaseMonitor",
    "CheckpointSaver",
    "EveryN",
    "PrintTensor",
    "StepCounter",
    "StopAtStep",
    "SummarySaver",
    "ValidationMonitor",
    "replace_monitors_with_hooks",
]


class BaseMonitor(SessionRunHook):
    """Base of monitors; `set_estimator` tells it who trains.

    >>> issubclass(tf.contrib.learn.monitors.BaseMonitor, tf.train.SessionRunHook)
    True
    """

    _estimator: Any = None

    def set_estimator(self, estimator: Any) -> None:
        """Called before training."""
        self._estimator = estimator


class EveryN(BaseMonitor):
    """Base of monitors that do something after every so many steps.

    Args:
        every_n_steps: how often; first_n_steps: and after each of the first ones.

    >>> class Say(tf.contrib.learn.monitors.EveryN):
    ...     def every_n_step_end(self, step, outputs):
    ...         print("step", step)
    >>> train = tf.train.get_or_create_global_step().assign_add(1)
    >>> with tf.train.MonitoredSession(hooks=[Say(every_n_steps=2)]) as sess:
    ...     steps = [sess.run(train) for _ in range(4)]
    step 1
    step 3
    """

    def __init__(self, every_n_steps: int = 100, first_n_steps: int = 1) -> None:
        self._every = every_n_steps
        self._first = first_n_steps
        self._timer = SecondOrStepTimer(every_steps=every_n_steps)

    def begin(self) -> None:
        self._timer.reset()
        self._global_step = required_global_step(type(self).__name__)

    def before_run(self, run_context: Any) -> SessionRunArgs:
        return SessionRunArgs(self._global_step)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        step = int(run_values.results)
        if step <= self._first or self._timer.should_trigger_for_step(step):
            self._timer.update_last_triggered_step(step)
            if self.every_n_step_end(step, {}):
                run_context.request_stop()

    def every_n_step_end(self, step: int, outputs: Mapping[str, Any]) -> bool | None:
        """Called after such a step. Returns True to end the training."""
        return None


class ValidationMonitor(EveryN):
    """Evaluates the latest checkpoint every so many steps, and stops when that gets no better.

    Args:
        x, y, input_fn, batch_size, metrics, name: as for `tf.contrib.learn.Estimator.evaluate`;
            ``eval_steps``: its steps.
        every_n_steps: how often to look for a new checkpoint.
        early_stopping_rounds: stop when the metric has not improved over so many steps; None to
            go on.
        early_stopping_metric, early_stopping_metric_minimize: which metric, and whether less is
            better.

    Raises:
        ValueError: if there is nothing to evaluate.

    >>> monitor = tf.contrib.learn.monitors.ValidationMonitor(input_fn=lambda: None)
    >>> monitor.early_stopped
    False
    """

    def __init__(
        self,
        x: Any = None,
        y: Any = None,
        input_fn: Callable[..., Any] | None = None,
        batch_size: int | None = None,
        eval_steps: int | None = None,
        every_n_steps: int = 100,
        metrics: Mapping[str, Any] | None = None,
        hooks: Iterable[Any] | None = None,
        early_stopping_rounds: int | None = None,
        early_stopping_metric: str = "loss",
        early_stopping_metric_minimize: bool = True,
        name: str | None = None,
        check_interval_secs: float = 5,
    ) -> None:
        super().__init__(every_n_steps, first_n_steps=-1)
        if x is None and input_fn is None:
            raise ValueError("Either x or input_fn should be provided.")
        self._arguments = {
            "x": x,
            "y": y,
            "input_fn": input_fn,
            "batch_size": batch_size,
            "steps": eval_steps,
            "metrics": metrics,
            "hooks": list(hooks or ()),
            "name": name,
        }
        self._rounds = early_stopping_rounds
        self._metric = early_stopping_metric
        self._minimize = early_stopping_metric_minimize
        self._last_path: str | None = None
        self._best: tuple[int, float, dict[str, Any]] | None = None
        self._stopped = False

    @property
    def early_stopped(self) -> bool:
        """Whether it has ended the training."""
        return self._stopped

    @property
    def best_step(self) -> int | None:
        """The step of the best evaluation."""
        return None if self._best is None else self._best[0]

    @property
    def best_value(self) -> float | None:
        """The best value of the metric, a scalar."""
        return None if self._best is None else self._best[1]

    @property
    def best_metrics(self) -> dict[str, Any] | None:
        """All metrics of the best evaluation."""
        return None if self._best is None else self._best[2]

    def every_n_step_end(self, step: int, outputs: Mapping[str, Any]) -> bool:
        if self._estimator is None:
            raise ValueError("Missing call to set_estimator.")
        path = self._estimator._core.latest_checkpoint()
        if path is None or path == self._last_path:
            return False
        self._last_path = path
        found = self._estimator.evaluate(checkpoint_path=path, **self._arguments)
        logging.info("Validation (step %d): %s", step, found)
        if self._rounds is None:
            return False
        if self._metric not in found:
            raise ValueError(
                f"Metric {self._metric} missing from outputs {sorted(found)}; "
                "early_stopping_metric names one of them."
            )
        value, at = float(found[self._metric]), int(found["global_step"])
        if self._best is None or (
            value < self._best[1] if self._minimize else value > self._best[1]
        ):
            self._best = at, value, found
        if at - self._best[0] >= self._rounds:
            logging.info(
                "Stopping. Best step: %d with %s = %s.", self._best[0], self._metric, self._best[1]
            )
            self._stopped = True
        return self._stopped


class PrintTensor(LoggingTensorHook):
    """Logs tensors every so many steps.

    >>> one = tf.constant(1, name="one")
    >>> monitor = tf.contrib.learn.monitors.PrintTensor(["one:0"], every_n=10)
    >>> with tf.train.MonitoredSession(hooks=[monitor]) as sess:
    ...     int(sess.run(one))
    1
    """

    def __init__(self, tensor_names: Any, every_n: int = 100, first_n: int = 1) -> None:
        super().__init__(tensor_names, every_n_iter=every_n)


#: Hooks under the names of monitors.
CheckpointSaver = CheckpointSaverHook
StepCounter = StepCounterHook
StopAtStep = StopAtStepHook
SummarySaver = SummarySaverHook


def replace_monitors_with_hooks(
    monitors_or_hooks: Iterable[Any] | None, estimator: Any
) -> list[SessionRunHook]:
    """Hooks for monitors, which are told their Estimator; hooks are kept.

    Raises:
        TypeError: for what is neither.
    """
    found = list(monitors_or_hooks or ())
    for one in found:
        if not isinstance(one, SessionRunHook):
            raise TypeError(f"monitors must be monitors or SessionRunHooks, given: {one}")
        if isinstance(one, BaseMonitor):
            one.set_estimator(estimator)
    return found
