"""``tf.contrib.learn.Experiment``: an Estimator with its input, run as its task wants."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from typing import Any

from headrace import logging
from headrace.contrib.learn.estimators import Estimator
from headrace.contrib.learn.export import ExportStrategy
from headrace.contrib.learn.monitors import replace_monitors_with_hooks
from headrace.estimator.checkpoints import global_step_of
from headrace.estimator.estimator import Estimator as _Estimator
from headrace.estimator.exporters import Exporter
from headrace.estimator.tasks import evaluate_checkpoints, run_task
from headrace.estimator.training import EvalSpec, TrainSpec

__all__ = ["Experiment"]


class _Exporting(Exporter):
    """A strategy as an exporter of `tf.estimator.EvalSpec`."""

    def __init__(self, strategy: ExportStrategy, estimator: Any) -> None:
        self._strategy = strategy
        self._estimator = estimator

    @property
    def name(self) -> str:
        return self._strategy.name

    def export(
        self,
        estimator: Any,
        export_path: str,
        checkpoint_path: str,
        eval_result: Mapping[str, Any],
        is_the_final_export: bool,
    ) -> Any:
        return self._strategy.export(self._estimator, export_path, checkpoint_path, eval_result)


def _checked_strategies(given: Any) -> list[ExportStrategy]:
    found = [given] if isinstance(given, ExportStrategy) else list(given or ())
    for one in found:
        if not isinstance(one, ExportStrategy):
            raise ValueError(
                "`export_strategies` must be ExportStrategies, as tf.contrib.learn."
                f"make_export_strategy gives; got {one!r:.100}"
            )
    names = [one.name for one in found]
    if len(set(names)) < len(names):
        raise ValueError(f"`export_strategies` must have unique names. Got: {names}")
    return found


class Experiment:
    """An Estimator, the input to train and to evaluate it, and how long.

    Args:
        estimator: a `tf.estimator.Estimator` or `tf.contrib.learn.Estimator`.
        train_input_fn, eval_input_fn: functions that give input.
        eval_metrics: MetricSpecs by name, for an Estimator of `tf.contrib.learn`.
        train_steps: the global step at which training ends; None for the end of the input.
        eval_steps: batches of an evaluation; None for all.
        train_monitors: monitors and hooks; eval_hooks: hooks of evaluations.
        eval_delay_secs, continuous_eval_throttle_secs: when evaluations begin, and the seconds
            between them.
        export_strategies: `tf.contrib.learn.ExportStrategy`, one or several: how the model is
            exported after evaluations.
        kwargs: further arguments of TensorFlow 1.15 are taken, without effect.

    Raises:
        ValueError: if ``estimator`` is none.

    >>> def model_fn(x, y):
    ...     w = tf.get_variable("w", [], initializer=tf.zeros_initializer())
    ...     loss = tf.reduce_mean((w * x - y) ** 2)
    ...     optimizer = tf.train.GradientDescentOptimizer(0.1)
    ...     return w * x, loss, optimizer.minimize(loss, tf.train.get_global_step())
    >>> def line():
    ...     return tf.constant([1.0, 2.0]), tf.constant([2.0, 4.0])
    >>> experiment = tf.contrib.learn.Experiment(
    ...     tf.contrib.learn.Estimator(model_fn, "twice"), line, line, train_steps=30, eval_steps=1
    ... )
    >>> metrics, _ = experiment.train_and_evaluate()
    >>> bool(metrics["loss"] < 1e-3), int(metrics["global_step"])
    (True, 30)
    >>> tf.summary.FileWriterCache.clear()
    """

    def __init__(
        self,
        estimator: Any,
        train_input_fn: Callable[..., Any],
        eval_input_fn: Callable[..., Any],
        eval_metrics: Mapping[str, Any] | None = None,
        train_steps: int | None = None,
        eval_steps: int | None = 100,
        train_monitors: Iterable[Any] | None = None,
        eval_hooks: Iterable[Any] | None = None,
        local_eval_frequency: int | None = None,
        eval_delay_secs: float = 120,
        continuous_eval_throttle_secs: float = 60,
        min_eval_frequency: int | None = None,
        delay_workers_by_global_step: bool = False,
        export_strategies: Any = None,
        **kwargs: Any,
    ) -> None:
        if not isinstance(estimator, (Estimator, _Estimator)):
            raise ValueError(
                "`estimator` must implement `tf.contrib.learn.Trainable` or "
                f"`tf.estimator.Estimator`. Got: {type(estimator)}"
            )
        if eval_metrics is not None and isinstance(estimator, _Estimator):
            raise ValueError(
                "`eval_metrics` must be `None` with `tf.estimator.Estimator`: its model_fn has the "
                "metrics."
            )
        self._estimator = estimator
        self._train_input_fn = train_input_fn
        self._eval_input_fn = eval_input_fn
        self._eval_metrics = eval_metrics
        self._train_steps = train_steps
        self._eval_steps = eval_steps
        self._train_hooks = replace_monitors_with_hooks(train_monitors, estimator)
        self._eval_hooks = list(eval_hooks or ())
        self._delay = eval_delay_secs
        self._throttle = continuous_eval_throttle_secs
        self.reset_export_strategies(export_strategies)

    @property
    def estimator(self) -> Any:
        """The Estimator."""
        return self._estimator

    @property
    def eval_metrics(self) -> Mapping[str, Any] | None:
        """The metrics of evaluations, MetricSpecs by name."""
        return self._eval_metrics

    @property
    def train_steps(self) -> int | None:
        """The global step at which training ends."""
        return self._train_steps

    @property
    def eval_steps(self) -> int | None:
        """Batches of an evaluation."""
        return self._eval_steps

    def extend_train_hooks(self, additional_hooks: Iterable[Any]) -> None:
        """Add hooks of the training."""
        self._train_hooks.extend(additional_hooks)

    def reset_export_strategies(self, new_export_strategies: Any = None) -> list[ExportStrategy]:
        """Other strategies in place of those it has; these are given back.

        Raises:
            ValueError: for what is no ExportStrategy, and for two of one name.
        """
        before: list[ExportStrategy] = getattr(self, "_strategies", [])
        self._strategies = _checked_strategies(new_export_strategies)
        return before

    @property
    def _core(self) -> Any:
        own = self._estimator
        return own if isinstance(own, _Estimator) else own._core

    def train(self, delay_secs: float | None = None) -> Any:
        """Train: what a worker, or a chief, of a cluster does. Returns the Estimator."""
        if self._core.config.cluster_spec:
            self._run()
        elif self._train_steps is None or global_step_of(self._core.model_dir) < self._train_steps:
            self._core.train(self._train_input_fn, self._train_hooks, max_steps=self._train_steps)
        return self._estimator

    def evaluate(self, delay_secs: float | None = None, name: str | None = None) -> Any:
        """The metrics of the latest checkpoint: scalars by name."""
        given: dict[str, Any] = {"steps": self._eval_steps, "name": name, "hooks": self._eval_hooks}
        if isinstance(self._estimator, Estimator):
            given["metrics"] = self._eval_metrics
        return self._estimator.evaluate(input_fn=self._eval_input_fn, **given)

    def train_and_evaluate(self) -> tuple[Any, list[Any]]:
        """Train, evaluate after each checkpoint and at the end: the last metrics, and exports."""
        found = self._run()
        return found if found is not None else (None, [])

    local_run = train_and_evaluate

    def continuous_eval(self, delay_secs: float | None = None) -> None:
        """Evaluate checkpoints as they come, up to that of ``train_steps``."""
        train, evaluate = self._specs()
        with self._metrics():
            evaluate_checkpoints(self._core, train, evaluate)

    def run_std_server(self) -> None:
        """Serve variables until the cluster is at its end."""
        self._run()

    def test(self) -> Any:
        """One step of training, and an evaluation of one batch."""
        self._core.train(self._train_input_fn, self._train_hooks, steps=1)
        return self._core.evaluate(self._eval_input_fn, steps=1, name="one_pass"), []

    def _specs(self) -> tuple[TrainSpec, EvalSpec]:
        return (
            TrainSpec(self._train_input_fn, self._train_steps, self._train_hooks),
            EvalSpec(
                self._eval_input_fn,
                self._eval_steps,
                hooks=self._eval_hooks,
                start_delay_secs=self._delay,
                throttle_secs=self._throttle,
                exporters=[_Exporting(s, self._estimator) for s in self._strategies] or None,
            ),
        )

    def _metrics(self) -> Any:
        if isinstance(self._estimator, Estimator):
            return self._estimator.with_metrics(self._eval_metrics)
        return nullcontext()

    def _run(self) -> Any:
        logging.info("Experiment: task %s.", self._core.config.task_type)
        with self._metrics():
            return run_task(self._core, *self._specs())
