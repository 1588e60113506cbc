"""What an Estimator is given, checked and completed."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable
from numbers import Real
from typing import Any

from headrace import logging
from headrace.data.dataset import Dataset
from headrace.estimator.callables import argument_names, described, required_names
from headrace.estimator.run_config import RunConfig, default_session_config
from headrace.files.paths import as_path
from headrace.ops.state import share
from headrace.train.device_setter import replica_device_setter
from headrace.train.saving_hooks import CheckpointSaverListener
from headrace.train.session_run_hook import SessionRunHook

__all__ = [
    "check_arguments",
    "check_input_fn",
    "check_positive",
    "checked_hooks",
    "checked_listeners",
    "device_function",
    "with_directory",
]

_INPUT_FN_ARGUMENTS = {"params", "config", "mode", "self", "input_context"}
_MODEL_FN_ARGUMENTS = {"features", "labels", "mode", "params", "self", "config"}


def with_directory(config: RunConfig | None, model_dir: Any) -> RunConfig:
    """The configuration, with a model_dir and a session_config."""
    if config is None:
        config = RunConfig()
        logging.info("Using default config.")
    if not isinstance(config, RunConfig):
        raise ValueError(f"config must be an instance of `RunConfig`, but provided {config}.")
    if config.session_config is None:
        config = config.replace(session_config=default_session_config())
    path = None if model_dir is None else as_path(model_dir)
    if path is not None and config.model_dir is not None and config.model_dir != path:
        raise ValueError(
            "`model_dir` are set both in constructor and `RunConfig`, but with different values. "
            f"In constructor: '{path}', in `RunConfig`: '{config.model_dir}' "
        )
    if path:
        return config.replace(model_dir=path)
    if config.model_dir is None:
        own = share.current()
        path = tempfile.mkdtemp() if own is None else own.common_folder()
        logging.warning("Using temporary folder as model directory: %s", path)
        return config.replace(model_dir=path)
    return config


def device_function(config: RunConfig) -> Any:
    """Variables on the parameter servers in turn, the rest on the task itself."""
    if config.num_ps_replicas == 0:
        return None
    return replica_device_setter(
        ps_tasks=config.num_ps_replicas,
        worker_device=f"/job:{config.task_type}/task:{config.task_id}",
        merge_devices=True,
        cluster=config.cluster_spec,
    )


def check_arguments(model_fn: Callable[..., Any], params: Any) -> None:
    """Raise ValueError if a model_fn takes other arguments than an Estimator gives."""
    names = set(argument_names(model_fn))
    which = described(model_fn)
    if "features" not in names:
        raise ValueError(f"model_fn ({which}) must include features argument.")
    if params is not None and "params" not in names:
        raise ValueError(
            f"model_fn ({which}) does not include params argument, but params ({params}) is passed "
            "to Estimator."
        )
    if params is None and "params" in names:
        logging.warning(
            "Estimator's model_fn (%s) includes params argument, but params are not passed to "
            "Estimator.",
            which,
        )
    others = sorted(names - _MODEL_FN_ARGUMENTS)
    if others:
        raise ValueError(f"model_fn ({which}) has following not expected args: {others}")


def check_input_fn(input_fn: Any) -> None:
    """Raise ValueError or TypeError for what is no function, or needs further arguments."""
    if isinstance(input_fn, Dataset):
        raise TypeError(
            "`input_fn` must be a function that makes a dataset, given the dataset itself: "
            f"{input_fn}. Each call of an Estimator builds a graph of its own, so the dataset has "
            "to be made in the function."
        )
    if not callable(input_fn):
        raise TypeError(f"`input_fn` must be a function, given: {input_fn}")
    others = sorted(set(required_names(input_fn)) - _INPUT_FN_ARGUMENTS)
    if others:
        raise ValueError(
            f"input_fn ({described(input_fn)}) has following not expected args: {others}. An "
            "Estimator gives it params, config and mode if it takes them; functools.partial or a "
            "lambda gives it others."
        )


def check_positive(name: str, value: int | None) -> None:
    """Raise ValueError for a number of steps that is not positive, TypeError for what is none."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, Real)):
        raise TypeError(f"{name} must be a number, given: {value!r:.100}")
    if value is not None and value <= 0:
        raise ValueError(f"Must specify {name} > 0, given: {value}")


def checked_hooks(hooks: Iterable[SessionRunHook] | None) -> list[SessionRunHook]:
    """The hooks, a new list. Raises TypeError if one is none."""
    if isinstance(hooks, SessionRunHook):
        raise TypeError(f"hooks must be a list of SessionRunHooks, given one alone: {hooks}")
    found = list(hooks or ())
    for hook in found:
        if not isinstance(hook, SessionRunHook):
            raise TypeError(f"Hooks must be a SessionRunHook, given: {hook}")
    return found


def checked_listeners(
    listeners: Iterable[CheckpointSaverListener] | None,
) -> list[CheckpointSaverListener]:
    """The listeners, a new list. Raises TypeError if one is none."""
    found = list(listeners or ())
    for listener in found:
        if not isinstance(listener, CheckpointSaverListener):
            raise TypeError(
                f"saving_listeners must be a list of CheckpointSaverListener, given: {listener}"
            )
    return found
