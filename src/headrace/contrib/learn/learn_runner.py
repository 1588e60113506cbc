"""``tf.contrib.learn.learn_runner``: runs an Experiment as its task of a cluster wants."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.contrib.learn.experiment import Experiment
from headrace.errors import suggest
from headrace.estimator.placement import TaskType

__all__ = ["run"]

_SCHEDULES = {
    TaskType.PS: "run_std_server",
    TaskType.WORKER: "train",
    TaskType.CHIEF: "train",
    TaskType.MASTER: "train_and_evaluate",
    TaskType.EVALUATOR: "continuous_eval",
}


def run(
    experiment_fn: Callable[..., Experiment],
    output_dir: str | None = None,
    schedule: str | None = None,
    run_config: Any = None,
    hparams: Any = None,
) -> Any:
    """Make an Experiment, and call the method that its task needs.

    Args:
        experiment_fn: ``experiment_fn(output_dir)``, or ``experiment_fn(run_config, hparams)`` if
            ``run_config`` is given.
        schedule: a method of Experiment; by default that of the task: ``train_and_evaluate``
            without a cluster.

    Returns:
        What the method gives: metrics, scalars by name.

    Raises:
        ValueError: if both or none of directory and configuration are given, or there is no such
            method.
        TypeError: if ``experiment_fn`` cannot be called, or gives no Experiment.
    """
    if output_dir is not None and run_config is not None:
        raise ValueError("Cannot provide both `output_dir` and `run_config`")
    if output_dir is None and run_config is None:
        raise ValueError("Must set value for `output_dir` or `run_config`")
    if not callable(experiment_fn):
        raise TypeError(f'Experiment builder "{experiment_fn}" is not callable.')
    if run_config is not None:
        experiment = experiment_fn(run_config=run_config, hparams=hparams)
    else:
        experiment = experiment_fn(output_dir)
    if not isinstance(experiment, Experiment):
        raise TypeError(
            f"Experiment builder did not return an Experiment instance, got {type(experiment)}."
        )
    config = experiment.estimator.config
    in_cluster = bool(config.cluster_spec) or config.task_type == TaskType.EVALUATOR
    name = schedule or (_SCHEDULES[config.task_type] if in_cluster else "train_and_evaluate")
    method = None if name.startswith("_") else getattr(experiment, name, None)
    if not callable(method):
        known = [n for n in dir(experiment) if not n.startswith("_")]
        raise ValueError(
            f"Schedule references non-existent task {name!r}.{suggest(name, known)} Allowed "
            f"values for this experiment are: {known}"
        )
    return method()
