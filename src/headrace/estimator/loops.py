"""The loops of an Estimator: what runs in one graph, once model and input are built."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Sequence
from typing import Any

import numpy as np

from headrace import logging, summary
from headrace.errors import DeadlineExceededError, UnavailableError
from headrace.estimator.checkpoints import naming_both_models
from headrace.estimator.placement import TaskType
from headrace.estimator.run_config import RunConfig
from headrace.estimator.spec import LOSS_METRIC_KEY, EstimatorSpec
from headrace.graph.graph import get_default_graph
from headrace.graph.keys import GraphKeys
from headrace.metrics import mean
from headrace.ops.control.basic import group
from headrace.train.basic_session_run_hooks import (
    LoggingTensorHook,
    NanTensorHook,
    StepCounterHook,
)
from headrace.train.evaluation import evaluate_once, get_or_create_eval_step
from headrace.train.global_step import get_global_step
from headrace.train.monitored_session import (
    ChiefSessionCreator,
    MonitoredSession,
    MonitoredTrainingSession,
)
from headrace.train.saver import Saver
from headrace.train.saving_hooks import (
    CheckpointSaverHook,
    CheckpointSaverListener,
    SummarySaverHook,
)
from headrace.train.scaffold import Scaffold
from headrace.train.session_run_hook import SessionRunHook

__all__ = ["evaluate_spec", "metric_ops", "predict_spec", "train_spec"]


def train_spec(
    spec: EstimatorSpec,
    config: RunConfig,
    hooks: Sequence[SessionRunHook],
    saving_listeners: Sequence[CheckpointSaverListener],
) -> Any:
    """Train until a hook stops or the input ends; the loss of the last step, None without one.

    Raises:
        RuntimeError: if no server runs at the address that TF_CONFIG gives this process.
    """
    _check_server(config)
    graph = get_default_graph()
    if not any(t.op.name == "loss" for t in graph.get_collection(GraphKeys.SUMMARIES)):
        summary.scalar("loss", spec.loss)
    graph.add_to_collection(GraphKeys.LOSSES, spec.loss)
    worker_hooks = [*hooks, NanTensorHook(spec.loss)]
    if config.log_step_count_steps is not None:
        logged = {"loss": spec.loss, "step": get_global_step()}
        worker_hooks.append(LoggingTensorHook(logged, every_n_iter=config.log_step_count_steps))
    worker_hooks.extend(spec.training_hooks)
    if not (spec.scaffold.saver or graph.get_collection(GraphKeys.SAVERS)):
        graph.add_to_collection(GraphKeys.SAVERS, _saver(config))
    chief_hooks = _saver_hooks(spec, config, worker_hooks, saving_listeners)
    summary_steps, count_steps = config.save_summary_steps, config.log_step_count_steps
    if {TaskType.WORKER, TaskType.MASTER} <= set(config.cluster_spec.jobs):
        # With a master, which also evaluates, the first worker writes summaries.
        worker_hooks.extend(_summaries_of_worker(spec, config))
        summary_steps, count_steps = 0, None
    loss = None
    with (
        naming_both_models(None, str(config.model_dir)),
        MonitoredTrainingSession(
            master=config.master,
            is_chief=config.is_chief,
            checkpoint_dir=config.model_dir,
            scaffold=spec.scaffold,
            hooks=worker_hooks,
            chief_only_hooks=[*chief_hooks, *spec.training_chief_hooks],
            save_checkpoint_secs=0,  # a hook saves
            save_summaries_steps=summary_steps,
            config=config.session_config,
            max_wait_secs=config.session_creation_timeout_secs,
            log_step_count_steps=count_steps,
        ) as session,
    ):
        wanted = [spec.train_op, spec.loss]
        while not session.should_stop():
            _, loss = session.run(wanted)
    return loss


def _check_server(config: RunConfig) -> None:
    spec, task, index = config.cluster_spec, config.task_type, config.task_id
    if task not in spec.jobs:
        return
    address = spec.task_address(task, index)
    if config.master != f"grpc://{address}":
        return
    from headrace.distributed.services import admin

    try:
        admin.status(address, cluster=False)
    except DeadlineExceededError:
        return
    except UnavailableError:
        raise RuntimeError(
            f"TF_CONFIG gives this process the address {address}, where no server runs: "
            "Estimator.train starts none, and would wait for it. Call "
            "tf.estimator.train_and_evaluate, which starts it, or make a tf.train.Server first. "
            "A script that does not name TF_CONFIG is spread by `headrace launch` itself."
        ) from None


def _saver(config: RunConfig) -> Saver:
    return Saver(
        sharded=True,
        max_to_keep=config.keep_checkpoint_max,
        keep_checkpoint_every_n_hours=config.keep_checkpoint_every_n_hours,
        defer_build=True,
        save_relative_paths=True,
    )


def _saver_hooks(
    spec: EstimatorSpec,
    config: RunConfig,
    hooks: Sequence[SessionRunHook],
    listeners: Sequence[CheckpointSaverListener],
) -> list[SessionRunHook]:
    """The hook that saves, unless the user has one; listeners are told of its checkpoints.

    Raises:
        ValueError: if nothing saves, and there are listeners.
    """
    given = [
        hook
        for hook in (*hooks, *spec.training_chief_hooks)
        if isinstance(hook, CheckpointSaverHook)
    ]
    made: list[SessionRunHook] = []
    if not given and (config.save_checkpoints_secs or config.save_checkpoints_steps):
        saver_hook = CheckpointSaverHook(
            str(config.model_dir),
            save_secs=config.save_checkpoints_secs,
            save_steps=config.save_checkpoints_steps,
            scaffold=spec.scaffold,
        )
        made, given = [saver_hook], [saver_hook]
    if listeners and not given:
        raise ValueError(
            "There should be a CheckpointSaverHook to use saving_listeners. Please set one of the "
            "RunConfig.save_checkpoints_steps or RunConfig.save_checkpoints_secs."
        )
    for listener in listeners:
        if listener not in given[0]._listeners:
            given[0]._listeners.append(listener)
    return made


def _summaries_of_worker(spec: EstimatorSpec, config: RunConfig) -> Iterator[SessionRunHook]:
    if config.task_type != TaskType.WORKER or config.task_id != 0:
        return
    if config.save_summary_steps:
        yield SummarySaverHook(
            save_steps=config.save_summary_steps,
            output_dir=config.model_dir,
            scaffold=spec.scaffold,
        )
    if config.log_step_count_steps:
        yield StepCounterHook(
            every_n_steps=config.log_step_count_steps, output_dir=config.model_dir
        )


def metric_ops(spec: EstimatorSpec) -> tuple[Any, dict[str, Any]]:
    """What updates the metrics, the mean loss among them, and their values by name.

    Raises:
        ValueError: if a metric has the name of one that is always there.
    """
    metrics = dict(spec.eval_metric_ops)
    for name in (LOSS_METRIC_KEY, GraphKeys.GLOBAL_STEP):
        if name in metrics:
            raise ValueError(
                f'Metric with name "{name}" is not allowed, because Estimator already defines a '
                "default metric with the same name."
            )
    metrics[LOSS_METRIC_KEY] = mean(spec.loss)
    updates = [metrics[name][1] for name in sorted(metrics)]
    values = {name: metrics[name][0] for name in sorted(metrics)}
    values[GraphKeys.GLOBAL_STEP] = get_global_step()
    return group(*updates), values


def evaluate_spec(
    spec: EstimatorSpec,
    config: RunConfig,
    hooks: Sequence[SessionRunHook],
    checkpoint_path: str | None,
    output_dir: str,
) -> dict[str, Any]:
    """Evaluate until a hook stops or the input ends; write and return the metrics."""
    update, values = metric_ops(spec)
    scaffold = spec.scaffold
    if scaffold.local_init_op is not None:
        get_or_create_eval_step()  # before the default initialiser is made
        both = group(scaffold.local_init_op, Scaffold.default_local_init_op())
        scaffold = Scaffold(local_init_op=both, copy_from_scaffold=scaffold)
    logging.info("Starting evaluation at %s", _now())
    with naming_both_models(checkpoint_path, str(config.model_dir)):
        results: dict[str, Any] = evaluate_once(
            checkpoint_path,
            master=config.evaluation_master,
            scaffold=scaffold,
            eval_ops=update,
            final_ops=values,
            hooks=[*hooks, *spec.evaluation_hooks],
            config=config.session_config,
        )
    logging.info("Finished evaluation at %s", _now())
    write_results(output_dir, results, checkpoint_path)
    return results


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def write_results(output_dir: str, results: dict[str, Any], checkpoint_path: str | None) -> None:
    """Write metrics as summaries of their global step."""
    from headrace.graph.proto import Summary
    from headrace.graph.tensor_proto import make_tensor_proto

    step = int(results[GraphKeys.GLOBAL_STEP])
    shown = (f"{k} = {v}" for k, v in sorted(results.items()) if not isinstance(v, bytes))
    logging.info("Saving dict for global step %d: %s", step, ", ".join(shown))
    message = Summary()
    for key, value in results.items():
        if key == GraphKeys.GLOBAL_STEP or value is None:
            continue
        if isinstance(value, (float, int, np.floating, np.integer)):
            message.value.add(tag=key, simple_value=float(value))
        elif isinstance(value, bytes):
            _add_summaries(message, key, value)
        elif isinstance(value, np.ndarray):
            message.value.add(tag=key, node_name=key).tensor.CopyFrom(make_tensor_proto(value))
        else:
            logging.warning(
                "Skipping summary for %s: it is %s, not a number, an array or a serialised "
                "Summary.",
                key,
                type(value).__name__,
            )
    writer = summary.FileWriterCache.get(output_dir)
    writer.add_summary(message, step)
    if checkpoint_path:
        logging.info(
            "Saving 'checkpoint_path' summary for global step %d: %s", step, checkpoint_path
        )
        where = Summary()
        where.value.add(tag="checkpoint_path").tensor.CopyFrom(make_tensor_proto(checkpoint_path))
        writer.add_summary(where, step)
    writer.flush()


def _add_summaries(message: Any, key: str, text: bytes) -> None:
    from google.protobuf.message import DecodeError

    from headrace.graph.proto import Summary

    try:
        found = Summary.FromString(text)
    except DecodeError:
        logging.warning("Skipping summary for %s, cannot parse string to Summary.", key)
        return
    for i, value in enumerate(found.value):
        value.tag = f"{key}/{i}"
    message.value.extend(found.value)


def predict_spec(
    spec: EstimatorSpec,
    config: RunConfig,
    predictions: Any,
    hooks: Sequence[SessionRunHook],
    checkpoint_path: str | None,
) -> Generator[Any, None, None]:
    """The predictions of each batch, until a hook stops or the input ends."""
    creator = ChiefSessionCreator(
        scaffold=spec.scaffold,
        master=config.master,
        config=config.session_config,
        checkpoint_filename_with_path=checkpoint_path,
    )
    with (
        naming_both_models(checkpoint_path, str(config.model_dir)),
        MonitoredSession(creator, [*hooks, *spec.prediction_hooks]) as session,
    ):
        while not session.should_stop():
            yield session.run(predictions)
