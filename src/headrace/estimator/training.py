"""``tf.estimator.train_and_evaluate``: training with evaluations, alone or in a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from headrace import logging
from headrace.estimator.arguments import check_input_fn, check_positive, checked_hooks
from headrace.estimator.estimator import Estimator
from headrace.estimator.exporters import Exporter
from headrace.estimator.placement import TaskType
from headrace.estimator.tasks import run_task
from headrace.train.session_run_hook import SessionRunHook

__all__ = ["EvalSpec", "TrainSpec", "train_and_evaluate"]


class _TrainFields(NamedTuple):
    input_fn: Callable[..., Any]
    max_steps: int | None
    hooks: tuple[SessionRunHook, ...]


class TrainSpec(_TrainFields):
    """How to train.

    Args:
        input_fn: as for `tf.estimator.Estimator.train`.
        max_steps: the global step at which training ends; None for the end of the input.
        hooks: hooks of every worker.

    Raises:
        ValueError: if ``max_steps`` is not positive, or ``input_fn`` takes other arguments.
        TypeError: if ``input_fn`` cannot be called, or a hook is none.

    >>> tf.estimator.TrainSpec(lambda: None, max_steps=10).max_steps
    10
    """

    __slots__ = ()

    def __new__(
        cls,
        input_fn: Callable[..., Any],
        max_steps: int | None = None,
        hooks: Iterable[SessionRunHook] | None = None,
    ) -> TrainSpec:
        check_input_fn(input_fn)
        check_positive("max_steps", max_steps)
        return super().__new__(cls, input_fn, max_steps, _hooks(hooks))


class _EvalFields(NamedTuple):
    input_fn: Callable[..., Any]
    steps: int | None
    name: str | None
    hooks: tuple[SessionRunHook, ...]
    exporters: tuple[Exporter, ...]
    start_delay_secs: float
    throttle_secs: float


class EvalSpec(_EvalFields):
    """How, and how often, to evaluate.

    Args:
        input_fn, steps, name, hooks: as for `tf.estimator.Estimator.evaluate`; 100 steps, if the
            input does not end before; None for all of it.
        exporters: an Exporter or several, called after each evaluation.
        start_delay_secs: when an evaluator begins; throttle_secs: seconds between evaluations, at
            least. Nothing is evaluated without a new checkpoint.

    Raises:
        ValueError: if a number cannot be, or exporters have no names of their own.
        TypeError: if something is of a wrong type.

    >>> spec = tf.estimator.EvalSpec(lambda: None)
    >>> spec.steps, spec.start_delay_secs, spec.throttle_secs
    (100, 120, 600)
    """

    __slots__ = ()

    def __new__(
        cls,
        input_fn: Callable[..., Any],
        steps: int | None = 100,
        name: str | None = None,
        hooks: Iterable[SessionRunHook] | None = None,
        exporters: Any = None,
        start_delay_secs: float = 120,
        throttle_secs: float = 600,
    ) -> EvalSpec:
        check_input_fn(input_fn)
        check_positive("steps", steps)
        if name is not None and not isinstance(name, str):
            raise TypeError(f"`name` must be string, given: {name}")
        for what, seconds in (
            ("start_delay_secs", start_delay_secs),
            ("throttle_secs", throttle_secs),
        ):
            if seconds < 0:
                raise ValueError(f"Must specify {what} >= 0, given: {seconds}")
        found = _exporters(exporters)
        return super().__new__(
            cls, input_fn, steps, name, _hooks(hooks), found, start_delay_secs, throttle_secs
        )


def train_and_evaluate(estimator: Any, train_spec: TrainSpec, eval_spec: EvalSpec) -> Any:
    """Train and evaluate: all in this process, or what this task of a cluster has to do.

    Without a cluster in TF_CONFIG the model is evaluated after each checkpoint (the first one and
    what comes too early left out) and at the end. In a cluster each process calls this with the
    same arguments; TF_CONFIG tells them apart: ``chief`` and ``worker`` train, ``ps`` hold
    variables, the ``evaluator`` evaluates checkpoints as they come. Chief, evaluator and all
    others need the same ``model_dir``. When the chief has trained and the workers are at their
    end, it lets the parameter servers end, too.

    Args:
        estimator: a `tf.estimator.Estimator`.

    Returns:
        The metrics of the last evaluation (scalars, by name), and what exporters gave; None in a
        cluster.

    Raises:
        TypeError: if an argument is of a wrong type.
        ValueError: if TF_CONFIG asks for what cannot be.

    >>> def model_fn(features, labels, mode):
    ...     loss, step = tf.reduce_mean(features), tf.train.get_global_step()
    ...     with tf.control_dependencies([loss]):
    ...         return tf.estimator.EstimatorSpec(mode, features, loss, step.assign_add(1))
    >>> def numbers():
    ...     return tf.data.Dataset.range(8).map(tf.to_float).batch(4)
    >>> metrics, _ = tf.estimator.train_and_evaluate(
    ...     tf.estimator.Estimator(model_fn, "both"),
    ...     tf.estimator.TrainSpec(numbers, max_steps=2),
    ...     tf.estimator.EvalSpec(numbers),
    ... )
    >>> float(metrics["loss"]), int(metrics["global_step"])
    (3.5, 2)
    >>> tf.summary.FileWriterCache.clear()
    """
    if not isinstance(estimator, Estimator):
        raise TypeError(
            f"`estimator` must have type `tf.estimator.Estimator`. Got: {type(estimator)}"
        )
    if not isinstance(train_spec, TrainSpec):
        raise TypeError(
            f"`train_spec` must have type `tf.estimator.TrainSpec`. Got: {type(train_spec)}"
        )
    if not isinstance(eval_spec, EvalSpec):
        raise TypeError(
            f"`eval_spec` must have type `tf.estimator.EvalSpec`. Got: {type(eval_spec)}"
        )
    config = estimator.config
    if config.task_type == TaskType.EVALUATOR and config.task_id > 0:
        raise ValueError(
            "For distributed training, there can only be one `evaluator` task (with task id 0).  "
            f"Given task id {config.task_id}: TF_CONFIG['task']['index']."
        )
    if not config.cluster_spec and config.task_type != TaskType.EVALUATOR:
        logging.info("Running training and evaluation locally (non-distributed).")
    return run_task(estimator, train_spec, eval_spec)


def _hooks(hooks: Iterable[SessionRunHook] | None) -> tuple[SessionRunHook, ...]:
    return tuple(checked_hooks(hooks))


def _exporters(given: Any) -> tuple[Exporter, ...]:
    if not given:
        return ()
    try:
        found = (given,) if isinstance(given, Exporter) else tuple(given)
        good = all(isinstance(e, Exporter) for e in found)
    except TypeError:
        good = False
    if not good:
        raise TypeError(
            "`exporters` must be an Exporter, an iterable of Exporter, or `None`, found "
            f"{given!r:.100}."
        )
    names = [e.name for e in found]
    for name in names:
        if not name:
            raise ValueError(
                "An Exporter cannot have a name that is `None` or empty. All exporter names: "
                f"{names}"
            )
        if not isinstance(name, str):
            raise ValueError(f"An Exporter must have a string name. Given: {type(name)}")
    if len(set(names)) < len(names):
        raise ValueError(f"`exporters` must have unique names. All exporter names: {names}")
    return found
