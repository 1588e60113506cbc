"""What each task of `train_and_evaluate` does: chief, workers, servers, evaluator; or all alone."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

from headrace import logging
from headrace.distributed.cluster.cluster_spec import task_name
from headrace.distributed.membership.changes import indices
from headrace.distributed.services import admin
from headrace.errors import DeadlineExceededError, NotFoundError, UnavailableError
from headrace.estimator.placement import TaskType
from headrace.estimator.run_config import RunConfig
from headrace.ops.state import share
from headrace.train.basic_session_run_hooks import SecondOrStepTimer
from headrace.train.checkpoint_state import checkpoint_exists
from headrace.train.saving_hooks import CheckpointSaverListener

__all__ = ["Clock", "Evaluator", "evaluate_checkpoints", "run_task"]

#: Workers begin one after another, so many seconds apart, up to a limit.
_DELAY_PER_WORKER = 5
_MAX_DELAY = 60
#: How often the chief looks whether workers are at their end, in seconds.
_LOOK_EVERY = 1.0
#: An evaluator without a pause of its own looks for a checkpoint this often, in seconds.
_SHORTEST_PAUSE = 0.1
_WARN_EVERY = 600.0


class Clock:
    """Time for tasks; tests replace it.

    >>> from headrace.estimator.tasks import Clock
    >>> Clock.now() <= Clock.now()
    True
    """

    now: Callable[[], float] = staticmethod(time.time)
    sleep: Callable[[float], None] = staticmethod(time.sleep)


def run_task(estimator: Any, train_spec: Any, eval_spec: Any) -> Any:
    """Do what the task of this process has to do.

    Raises:
        ValueError: for a job that has nothing to do here.
    """
    config = estimator.config
    if config.task_type == TaskType.EVALUATOR:
        return evaluate_checkpoints(estimator, train_spec, eval_spec)
    if not config.cluster_spec:
        return _train_here(estimator, train_spec, eval_spec)
    if config.task_type == TaskType.PS:
        return _start_server(config).join()
    if config.task_type == TaskType.MASTER:
        evaluator = Evaluator(estimator, eval_spec, train_spec.max_steps)
        listener = _EvaluatingListener(evaluator, eval_spec.throttle_secs)
        return _train_as_task(estimator, train_spec, [listener])
    if config.task_type in (TaskType.CHIEF, TaskType.WORKER):
        return _train_as_task(estimator, train_spec, [])
    raise ValueError(
        f"Task type {config.task_type} is not supported. Supported task types are chief, worker, "
        "ps, evaluator and master (TF_CONFIG['task']['type']). Without `cluster` in TF_CONFIG "
        "train_and_evaluate runs locally."
    )


# -- training -------------------------------------------------------------------------------------


def _train_here(estimator: Any, train_spec: Any, eval_spec: Any) -> tuple[Any, list[Any]]:
    config = estimator.config
    logging.info(
        "Start train and evaluate loop. The evaluate will happen after every checkpoint. "
        "Checkpoint frequency is determined based on RunConfig arguments: save_checkpoints_steps "
        "%s or save_checkpoints_secs %s.",
        config.save_checkpoints_steps,
        config.save_checkpoints_secs,
    )
    evaluator = Evaluator(estimator, eval_spec, train_spec.max_steps)
    listener = _EvaluatingListener(evaluator, eval_spec.throttle_secs)
    estimator.train(
        train_spec.input_fn,
        max_steps=train_spec.max_steps,
        hooks=train_spec.hooks,
        saving_listeners=[listener],
    )
    if not share.writes():
        evaluator.evaluate_new()
    return evaluator.metrics, evaluator.exports


def _train_as_task(estimator: Any, train_spec: Any, listeners: list[Any]) -> None:
    config = estimator.config
    server = _start_server(config) if config.master else None
    try:
        delay = _start_delay(config)
        if delay > 0:
            logging.info("Waiting %d secs before starting training.", delay)
            Clock.sleep(delay)
        estimator.train(
            train_spec.input_fn,
            max_steps=train_spec.max_steps,
            hooks=train_spec.hooks,
            saving_listeners=listeners,
        )
        if config.is_chief:
            _end_cluster(config, server)
    finally:
        if server is not None:
            server.stop()


def _start_delay(config: RunConfig) -> float:
    if config.task_type != TaskType.WORKER or config._place.server is not None:
        return 0
    most = config.experimental_max_worker_delay_secs
    return min(_MAX_DELAY if most is None else most, (config.task_id + 1) * _DELAY_PER_WORKER)


def _start_server(config: RunConfig) -> Any:
    from headrace.distributed.services.server import Server
    from headrace.graph.proto import ConfigProto

    if config._place.server is not None:  # it has joined the cluster
        return config._place.server
    logging.info("Start Tensorflow server.")
    session_config = ConfigProto()
    if config.session_config is not None:
        session_config.gpu_options.CopyFrom(config.session_config.gpu_options)
    return Server(
        config.cluster_spec,
        job_name=config.task_type,
        task_index=config.task_id,
        config=session_config,
        protocol=config.protocol,
    )


def _end_cluster(config: RunConfig, server: Any) -> None:
    """Wait for the end of all workers, then let the parameter servers end; also those that have
    joined the cluster of ``server``.

    A worker that does not answer has ended, or was lost.
    """
    spec = config.cluster_spec
    if TaskType.PS not in spec.jobs:
        return
    tasks = {
        task_name(j, i): spec.task_address(j, i) for j in spec.jobs for i in spec.task_indices(j)
    }
    if server is not None:
        tasks = dict(server.members.addresses)
    for index in indices(TaskType.WORKER, tasks):
        address = tasks[task_name(TaskType.WORKER, index)]
        _wait_for_end(address, f"/job:{TaskType.WORKER}/task:{index}")
    for index in indices(TaskType.PS, tasks):
        try:
            admin.shutdown(tasks[task_name(TaskType.PS, index)], cluster=False)
        except (UnavailableError, DeadlineExceededError):
            logging.info("The parameter server %d has ended already.", index)


def _wait_for_end(address: str, task: str) -> None:
    told = False
    silent = 0
    while silent < 3:
        try:
            admin.status(address, cluster=False)
            silent = 0
        except UnavailableError:
            return
        except DeadlineExceededError:
            silent += 1
            continue
        if not told:
            told = True
            logging.info("The training of the chief is done; it waits for the end of %s.", task)
        Clock.sleep(_LOOK_EVERY)


# -- evaluation -----------------------------------------------------------------------------------


class Evaluator:
    """Evaluates new checkpoints, and calls exporters.

    Attributes:
        metrics: of the last evaluation, or None; exports: what exporters gave then.

    >>> from headrace.estimator.tasks import Evaluator
    >>> model_fn = lambda features, mode: None
    >>> estimator = tf.estimator.Estimator(model_fn, "empty")
    >>> Evaluator(estimator, tf.estimator.EvalSpec(lambda: None), 10).evaluate_new()
    False
    """

    def __init__(self, estimator: Any, eval_spec: Any, max_steps: int | None) -> None:
        self._estimator = estimator
        self._spec = eval_spec
        self._max_steps = max_steps
        self._last_path: str | None = None
        self._last_warning: float | None = None
        self.metrics: dict[str, Any] | None = None
        self.exports: list[Any] = []

    def evaluate_new(self) -> bool:
        """Evaluate the latest checkpoint, if it was not evaluated before; whether it was done."""
        path = self._estimator.latest_checkpoint()
        if not path:
            self._warn(
                "Estimator is not trained yet. Will start an evaluation when a checkpoint is ready."
            )
            return False
        if path == self._last_path:
            self._warn(
                "No new checkpoint ready for evaluation. Skip the current evaluation pass as "
                "evaluation results are expected to be same for the same checkpoint."
            )
            return False
        try:
            metrics = self._estimator.evaluate(
                self._spec.input_fn,
                steps=self._spec.steps,
                name=self._spec.name,
                checkpoint_path=path,
                hooks=self._spec.hooks,
            )
        except NotFoundError:
            if checkpoint_exists(path):
                raise
            logging.info("The checkpoint %s was removed before it could be evaluated.", path)
            return False
        self._last_path, self._last_warning = path, None
        self.metrics = metrics
        folder = os.path.join(self._estimator.model_dir, "export")
        self.exports = [
            exporter.export(
                estimator=self._estimator,
                export_path=os.path.join(folder, exporter.name),
                checkpoint_path=path,
                eval_result=metrics,
                is_the_final_export=self.is_final(),
            )
            for exporter in self._spec.exporters
        ]
        return True

    def is_final(self) -> bool:
        """Whether what was evaluated is the end of the training."""
        return bool(
            self._max_steps is not None
            and self.metrics is not None
            and self.metrics["global_step"] >= self._max_steps
        )

    def _warn(self, message: str) -> None:
        now = Clock.now()
        if self._last_warning is None or now - self._last_warning > _WARN_EVERY:
            logging.warning(message)
            self._last_warning = now


class _EvaluatingListener(CheckpointSaverListener):
    """Evaluates after checkpoints: not the first one, and not more often than is wanted."""

    def __init__(self, evaluator: Evaluator, throttle_secs: float) -> None:
        self._evaluator = evaluator
        self._throttle_secs = throttle_secs

    def begin(self) -> None:
        self._timer = SecondOrStepTimer(every_secs=self._throttle_secs)
        self._is_first = True

    def after_save(self, session: Any, global_step_value: Any) -> bool | None:
        if self._is_first:
            self._is_first = False  # the variables as they began
            return None
        step = int(global_step_value)
        if self._timer.should_trigger_for_step(step):
            self._evaluate(step)
        else:
            logging.info(
                "Skip the current checkpoint eval due to throttle secs (%s secs).",
                self._throttle_secs,
            )
        return None

    def end(self, session: Any, global_step_value: Any) -> None:
        step = int(global_step_value)
        if self._timer.last_triggered_step() != step:
            self._evaluate(step)

    def _evaluate(self, step: int) -> None:
        self._timer.update_last_triggered_step(step)
        if not self._evaluator.evaluate_new():
            raise RuntimeError("There was no new checkpoint after the training.")


def evaluate_checkpoints(estimator: Any, train_spec: Any, eval_spec: Any) -> None:
    """Evaluate checkpoints as they come, up to that of ``max_steps``."""
    if eval_spec.start_delay_secs:
        logging.info("Waiting %f secs before starting eval.", eval_spec.start_delay_secs)
        Clock.sleep(eval_spec.start_delay_secs)
    if train_spec.max_steps is None:
        logging.warning(
            "TrainSpec has no max_steps: an evaluator cannot know the end of the training and "
            "goes on until it is stopped."
        )
    evaluator = Evaluator(estimator, eval_spec, train_spec.max_steps)
    while True:
        began = Clock.now()
        evaluated = evaluator.evaluate_new()
        if evaluator.is_final():
            logging.info(
                "Exiting evaluation, global_step=%s >= train max_steps=%s",
                evaluator.metrics and evaluator.metrics["global_step"],
                train_spec.max_steps,
            )
            return
        left = eval_spec.throttle_secs - (Clock.now() - began)
        if left > 0:
            logging.info("Waiting %f secs before starting next eval run.", left)
        elif not evaluated:
            logging.log_first_n(
                logging.WARN,
                "EvalSpec.throttle_secs is set as 0. This might overload the job before finding "
                "(next) new checkpoint. Please consider to increase it.",
                1,
            )
        if left > 0 or not evaluated:
            Clock.sleep(max(left, _SHORTEST_PAUSE))
