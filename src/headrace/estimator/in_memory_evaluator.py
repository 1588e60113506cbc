"""Evaluation while training, of the variables as they are, without a checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from headrace.estimator.estimator import Estimator
from headrace.estimator.input_results import Inputs
from headrace.estimator.loops import evaluate_spec
from headrace.estimator.mode_keys import ModeKeys
from headrace.graph.graph import Graph, get_default_graph
from headrace.graph.keys import GraphKeys
from headrace.train.basic_session_run_hooks import SecondOrStepTimer
from headrace.train.evaluation import StopAfterNEvalsHook
from headrace.train.scaffold import Scaffold
from headrace.train.session_run_hook import SessionRunHook

__all__ = ["InMemoryEvaluatorHook"]


class InMemoryEvaluatorHook(SessionRunHook):
    """Evaluates before the first step of training, every so many steps, and after the last one.

    Args:
        estimator: the Estimator that trains.
        input_fn, steps, hooks, name: as for `tf.estimator.Estimator.evaluate`.
        every_n_iter: how often.

    Raises:
        ValueError: if ``every_n_iter`` is not positive, or several tasks train.

    >>> def model_fn(features, labels, mode):
    ...     with tf.control_dependencies([features]):
    ...         train = tf.train.get_global_step().assign_add(1)
    ...     return tf.estimator.EstimatorSpec(mode, features, tf.to_float(features), train)
    >>> numbers = lambda: tf.data.Dataset.range(4)
    >>> estimator = tf.estimator.Estimator(model_fn, "watched")
    >>> hook = tf.estimator.experimental.InMemoryEvaluatorHook(estimator, numbers, every_n_iter=2)
    >>> trained = estimator.train(numbers, hooks=[hook])
    >>> tf.summary.FileWriterCache.clear()
    >>> [file] = tf.gfile.Glob("watched/eval/events.*")
    >>> [e.step for e in tf.train.summary_iterator(file) if e.summary.value]
    [0, 2, 4, 4]
    """

    def __init__(
        self,
        estimator: Estimator,
        input_fn: Callable[..., Any],
        steps: int | None = None,
        hooks: Iterable[SessionRunHook] | None = None,
        name: str | None = None,
        every_n_iter: int = 100,
    ) -> None:
        if every_n_iter is None or every_n_iter <= 0:
            raise ValueError(f"invalid every_n_iter={every_n_iter}.")
        config = estimator.config
        if config.num_ps_replicas > 0 or config.num_worker_replicas > 1:
            raise ValueError("InMemoryEvaluator supports only single machine (aka Local) setting.")
        if steps is not None and steps <= 0:
            raise ValueError(f"Must specify steps > 0, given: {steps}")
        self._estimator = estimator
        self._input_fn = input_fn
        self._steps = steps
        self._user_hooks = list(hooks or ())
        self._eval_dir = estimator.eval_dir(name)
        self._timer = SecondOrStepTimer(every_steps=every_n_iter)

    def begin(self) -> None:
        self._timer.reset()
        self._iter_count = 0

    def after_create_session(self, session: Any, coord: Any) -> None:
        graph = get_default_graph()
        if graph.get_collection(GraphKeys.SAVEABLE_OBJECTS):
            raise ValueError(
                "InMemoryEvaluator does not support saveables other than global variables."
            )
        self._variables = {v.name: v for v in graph.get_collection(GraphKeys.GLOBAL_VARIABLES)}
        self._evaluate(session)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self._iter_count += 1
        if self._timer.should_trigger_for_step(self._iter_count):
            self._evaluate(run_context.session)

    def end(self, session: Any) -> None:
        self._evaluate(session)

    def _evaluate(self, training: Any) -> None:
        with Graph().as_default() as graph:
            inputs, spec = self._estimator._build(self._input_fn, ModeKeys.EVAL)
            if spec.scaffold.saver is not None:
                raise ValueError("InMemoryEvaluator does not support custom saver")
            if spec.scaffold.init_fn is not None:
                raise ValueError("InMemoryEvaluator does not support custom init_fn")
            mine = graph.get_collection(GraphKeys.GLOBAL_VARIABLES)
            names = [v.name for v in mine if v.name in self._variables]
            values = training.run({name: self._variables[name] for name in names})

            def copy(scaffold: Scaffold, session: Any) -> None:
                for variable in mine:
                    if variable.name in values:
                        variable.load(values[variable.name], session)

            scaffold = Scaffold(init_fn=copy, copy_from_scaffold=spec.scaffold)
            evaluate_spec(
                spec._replace(scaffold=scaffold),
                self._estimator.config,
                self._hooks(inputs),
                None,
                self._eval_dir,
            )
        self._timer.update_last_triggered_step(self._iter_count)

    def _hooks(self, inputs: Inputs) -> list[SessionRunHook]:
        stop = [] if self._steps is None else [StopAfterNEvalsHook(self._steps)]
        return [*inputs.hooks, *self._user_hooks, *stop]
