"""RunConfig: how an Estimator runs: where, how often it saves, logs and writes summaries."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable
from typing import Any

from headrace import logging
from headrace.errors import suggest
from headrace.estimator.callables import argument_names
from headrace.estimator.placement import (
    TaskType,
    placement_of,
    read_environment,
    strategies,
    with_chief,
)
from headrace.files.paths import as_path
from headrace.ops.state import share
from headrace.settings import flags

__all__ = ["RunConfig", "TaskType", "default_session_config"]

_DEFAULT: Any = object()

_REPLACEABLE = (
    "model_dir",
    "tf_random_seed",
    "save_summary_steps",
    "save_checkpoints_steps",
    "save_checkpoints_secs",
    "session_config",
    "keep_checkpoint_max",
    "keep_checkpoint_every_n_hours",
    "log_step_count_steps",
    "train_distribute",
    "device_fn",
    "protocol",
    "eval_distribute",
    "experimental_distribute",
    "experimental_max_worker_delay_secs",
    "session_creation_timeout_secs",
)


def default_session_config() -> Any:
    """The ConfigProto of an Estimator that was given none: operations go where they can."""
    from headrace.graph.proto import ConfigProto

    return ConfigProto(allow_soft_placement=True)


class RunConfig:
    """How an Estimator runs.

    The cluster, and the task of this process, come from the environment variable TF_CONFIG:
    ``{"cluster": {"chief": [...], "worker": [...], "ps": [...]}, "task": {"type": ..., "index":
    ...}}``. Without it a program runs alone.

    Args:
        model_dir: where checkpoints and summaries go.
        tf_random_seed: seed of the graphs.
        save_summary_steps: summaries every so many steps; 0 or None for none.
        save_checkpoints_steps, save_checkpoints_secs: how often to save, one of the two; 600
            seconds if neither is given, never if both are None.
        session_config: a ConfigProto. In a cluster the default one has device filters, so that
            workers do not wait for each other.
        keep_checkpoint_max: so many of the latest checkpoints are kept; 0 or None for all.
        keep_checkpoint_every_n_hours: and one of every so many hours.
        log_step_count_steps: log loss and speed every so many steps; None for never.
        train_distribute, eval_distribute: strategies of `tf.distribute` for training and for
            evaluations; experimental_distribute: both, as a
            `tf.contrib.distribute.DistributeConfig`.
        device_fn: ``device_fn(op)`` gives the device of an operation.
        protocol: of the servers, "grpc".
        experimental_max_worker_delay_secs: workers begin one after another, with at most so much
            delay; 60 by default.
        session_creation_timeout_secs: how long workers wait for the chief.

    Raises:
        ValueError: if a value cannot be, or TF_CONFIG breaks a rule.

    >>> config = tf.estimator.RunConfig(save_checkpoints_steps=50)
    >>> config.save_checkpoints_secs, config.keep_checkpoint_max, config.is_chief
    (None, 5, True)
    >>> config.replace(keep_checkpoint_max=1).keep_checkpoint_max
    1
    """

    _model_dir: str | None
    _tf_random_seed: int | None
    _save_summary_steps: int | None
    _save_checkpoints_steps: int | None
    _save_checkpoints_secs: float | None
    _session_config: Any
    _keep_checkpoint_max: int | None
    _keep_checkpoint_every_n_hours: float
    _log_step_count_steps: int | None
    _train_distribute: Any
    _eval_distribute: Any
    _experimental_distribute: Any
    _device_fn: Any
    _protocol: str | None
    _experimental_max_worker_delay_secs: int | None
    _session_creation_timeout_secs: float

    def __init__(
        self,
        model_dir: Any = None,
        tf_random_seed: int | None = None,
        save_summary_steps: int | None = 100,
        save_checkpoints_steps: int | None = _DEFAULT,
        save_checkpoints_secs: float | None = _DEFAULT,
        session_config: Any = None,
        keep_checkpoint_max: int | None = 5,
        keep_checkpoint_every_n_hours: float = 10000,
        log_step_count_steps: int | None = 100,
        train_distribute: Any = None,
        device_fn: Callable[[Any], Any] | None = None,
        protocol: str | None = None,
        eval_distribute: Any = None,
        experimental_distribute: Any = None,
        experimental_max_worker_delay_secs: int | None = None,
        session_creation_timeout_secs: float = 7200,
    ) -> None:
        steps, secs = save_checkpoints_steps, save_checkpoints_secs
        if steps is _DEFAULT:
            steps = None
            secs = 600 if secs is _DEFAULT else secs
        elif secs is _DEFAULT:
            secs = None
        # A plain script's Estimator is like one that is alone; its sessions know better.
        tf_config = {} if share.current() is not None else read_environment()
        if tf_config:
            logging.info("TF_CONFIG environment variable: %s", tf_config)
        train, evaluation = strategies(train_distribute, eval_distribute, experimental_distribute)
        leads = train is not None or flags.first_worker_is_chief
        self._place = placement_of(with_chief(tf_config) if leads else tf_config)
        self._set(
            model_dir=_model_dir(tf_config, model_dir),
            tf_random_seed=tf_random_seed,
            save_summary_steps=save_summary_steps,
            save_checkpoints_steps=steps,
            save_checkpoints_secs=secs,
            session_config=session_config,
            keep_checkpoint_max=keep_checkpoint_max,
            keep_checkpoint_every_n_hours=keep_checkpoint_every_n_hours,
            log_step_count_steps=log_step_count_steps,
            train_distribute=train,
            device_fn=device_fn,
            protocol=protocol,
            eval_distribute=evaluation,
            experimental_distribute=experimental_distribute,
            experimental_max_worker_delay_secs=experimental_max_worker_delay_secs,
            session_creation_timeout_secs=session_creation_timeout_secs,
        )
        if not self._session_config and self._place.cluster_spec:
            self._session_config = self._distributed_session_config()
        self._tell_strategies()

    def _tell_strategies(self) -> None:
        """Let strategies know the cluster."""
        for strategy in dict.fromkeys((self._train_distribute, self._eval_distribute)):
            if strategy is not None and self._place.cluster_spec:
                strategy.configure(None, self.cluster_spec, self.task_type, self.task_id)

    def _set(self, **values: Any) -> None:
        """Take new values, once they are known to be possible."""
        _check(values)
        for name, value in values.items():
            setattr(self, f"_{name}", value)

    def _distributed_session_config(self) -> Any:
        """A ConfigProto by which a task sees the servers and itself only."""
        filters = {
            TaskType.MASTER: ["/job:ps", "/job:master"],
            TaskType.CHIEF: ["/job:ps", "/job:chief"],
            TaskType.WORKER: ["/job:ps", f"/job:worker/task:{self.task_id}"],
            TaskType.PS: ["/job:ps", "/job:worker", "/job:chief", "/job:master"],
        }.get(self.task_type)
        if filters is None:
            return None
        config = default_session_config()
        config.device_filters.extend(filters)
        return config

    def replace(self, **kwargs: Any) -> RunConfig:
        """A copy with other values.

        What the cluster decides stays. ``save_checkpoints_steps`` replaces
        ``save_checkpoints_secs``, and the other way round.

        Raises:
            ValueError: for a name that cannot be replaced, and for impossible values.
        """
        for name in kwargs:
            if name not in _REPLACEABLE:
                raise ValueError(
                    f"Replacing {name} is not supported. Allowed properties are "
                    f"{list(_REPLACEABLE)}.{suggest(name, _REPLACEABLE)}"
                )
        if "model_dir" in kwargs:
            kwargs["model_dir"] = _path(kwargs["model_dir"])
        new = copy.copy(self)
        if kwargs.get("save_checkpoints_steps") is not None:
            kwargs.setdefault("save_checkpoints_secs", None)
        elif kwargs.get("save_checkpoints_secs") is not None:
            kwargs.setdefault("save_checkpoints_steps", None)
        new._set(**kwargs)
        return new

    def in_one_line(self) -> str:
        """All settings, as a log shows them."""
        from google.protobuf import message, text_format

        def shown(value: Any) -> str:
            if not isinstance(value, message.Message):
                return repr(value)
            return f"{{{text_format.MessageToString(value, as_one_line=True)}}}"

        return f"{{{', '.join(f'{name!r}: {shown(v)}' for name, v in vars(self).items())}}}"

    def __deepcopy__(self, memo: Any) -> RunConfig:
        return copy.copy(self)  # what it holds is never changed

    # -- where -------------------------------------------------------------------------------

    @property
    def cluster_spec(self) -> Any:
        """The training cluster; empty if there is none, and for an evaluator."""
        return self._place.cluster_spec

    @property
    def task_type(self) -> str:
        """The job of this task: chief, worker, ps, evaluator or master."""
        return self._place.task_type

    @property
    def task_id(self) -> int:
        """The number of this task in its job."""
        return self._place.task_id

    @property
    def global_id_in_cluster(self) -> int | None:
        """The number among all tasks: the chief 0, servers last; None for an evaluator."""
        return self._place.global_id

    @property
    def is_chief(self) -> bool:
        """Whether this task initialises and saves."""
        return self._place.is_chief

    @property
    def master(self) -> str:
        """Where sessions run that train: ``grpc://host:port``, or "" in this process."""
        return self._place.master

    @property
    def evaluation_master(self) -> str:
        """Where sessions run that evaluate."""
        return self._place.evaluation_master

    @property
    def num_ps_replicas(self) -> int:
        """How many parameter servers there are."""
        return self._place.num_ps_replicas

    @property
    def num_worker_replicas(self) -> int:
        """How many tasks train: workers and the chief."""
        return self._place.num_worker_replicas

    @property
    def service(self) -> Any:
        """``service`` of TF_CONFIG."""
        return self._place.service

    # -- how ---------------------------------------------------------------------------------

    @property
    def model_dir(self) -> Any:
        """Where checkpoints and summaries go."""
        return self._model_dir

    @property
    def tf_random_seed(self) -> int | None:
        """The seed of graphs."""
        return self._tf_random_seed

    @property
    def save_summary_steps(self) -> int | None:
        """Summaries every so many steps."""
        return self._save_summary_steps

    @property
    def save_checkpoints_steps(self) -> int | None:
        """Checkpoints every so many steps."""
        return self._save_checkpoints_steps

    @property
    def save_checkpoints_secs(self) -> float | None:
        """Checkpoints every so many seconds."""
        return self._save_checkpoints_secs

    @property
    def session_config(self) -> Any:
        """The ConfigProto of sessions."""
        return self._session_config

    @property
    def keep_checkpoint_max(self) -> int | None:
        """How many of the latest checkpoints are kept."""
        return self._keep_checkpoint_max

    @property
    def keep_checkpoint_every_n_hours(self) -> float:
        """One checkpoint of every so many hours is kept."""
        return self._keep_checkpoint_every_n_hours

    @property
    def log_step_count_steps(self) -> int | None:
        """Loss and speed are logged every so many steps."""
        return self._log_step_count_steps

    @property
    def train_distribute(self) -> Any:
        """The strategy of training; None: workers train by themselves on shared variables."""
        return self._train_distribute

    @property
    def eval_distribute(self) -> Any:
        """The strategy of evaluations, or None."""
        return self._eval_distribute

    @property
    def device_fn(self) -> Any:
        """Gives the device of an operation; None for that of the cluster."""
        return self._device_fn

    @property
    def protocol(self) -> str | None:
        """The protocol of servers."""
        return self._protocol

    @property
    def experimental_max_worker_delay_secs(self) -> int | None:
        """How long a worker waits at most before it begins."""
        return self._experimental_max_worker_delay_secs

    @property
    def session_creation_timeout_secs(self) -> float:
        """How long a worker waits for the chief."""
        return self._session_creation_timeout_secs


def _path(model_dir: Any) -> str | None:
    if model_dir is None:
        return None
    if isinstance(model_dir, (str, bytes, os.PathLike)):
        return as_path(model_dir)
    raise ValueError(f"model_dir must be a path, given: {model_dir!r:.100}")


def _model_dir(tf_config: dict[str, Any], given: Any) -> str | None:
    """The one that is stated, in the constructor or in TF_CONFIG."""
    path = _path(given)
    if path == "":
        raise ValueError("model_dir should be non-empty.")
    stated = tf_config.get("model_dir")
    if stated == "":
        raise ValueError("model_dir in TF_CONFIG should be non-empty.")
    if stated is not None and path is not None and stated != path:
        raise ValueError(
            "`model_dir` provided in RunConfig construct, if set, must have the same value as the "
            f'model_dir in TF_CONFIG. model_dir: {path}\nTF_CONFIG["model_dir"]: {stated}.\n'
        )
    if stated:
        logging.info("Using model_dir in TF_CONFIG: %s", stated)
    return path or stated


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


#: What must hold of a value that is not None, and what is said if it does not.
_RULES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "model_dir": (bool, "model_dir should be non-empty"),
    "save_summary_steps": (lambda n: n >= 0, "save_summary_steps should be >= 0"),
    "save_checkpoints_steps": (lambda n: n >= 0, "save_checkpoints_steps should be >= 0"),
    "save_checkpoints_secs": (lambda s: s >= 0, "save_checkpoints_secs should be >= 0"),
    "keep_checkpoint_max": (lambda n: n >= 0, "keep_checkpoint_max should be >= 0"),
    "keep_checkpoint_every_n_hours": (
        lambda h: h > 0,
        "keep_checkpoint_every_n_hours should be > 0",
    ),
    "log_step_count_steps": (lambda n: n > 0, "log_step_count_steps should be > 0"),
    "tf_random_seed": (_is_integer, "tf_random_seed must be integer."),
    "experimental_max_worker_delay_secs": (
        _is_integer,
        "experimental_max_worker_delay_secs must be an integer if set.",
    ),
    "session_creation_timeout_secs": (
        lambda s: s > 0,
        "session_creation_timeout_secs should be > 0",
    ),
    "device_fn": (
        lambda f: callable(f) and argument_names(f) == ("op",),
        'device_fn must be callable with exactly one argument "op".',
    ),
    "protocol": (
        lambda p: p in ("grpc", "grpc+verbs", "grpc+rdma"),
        "protocol should be grpc or grpc+verbs (here grpc+rdma)",
    ),
    "session_config": (
        lambda c: type(c).__name__ == "ConfigProto",
        "session_config must be instance of ConfigProto",
    ),
    **{
        name: (
            lambda strategy: hasattr(strategy, "extended"),
            f"{name} should be a strategy of tf.distribute, such as MirroredStrategy()",
        )
        for name in ("train_distribute", "eval_distribute")
    },
}


def _check(values: dict[str, Any]) -> None:
    """Raise ValueError for the first value that breaks a rule."""
    steps, secs = values.get("save_checkpoints_steps"), values.get("save_checkpoints_secs")
    if steps is not None and secs is not None:
        raise ValueError("`save_checkpoints_steps` and `save_checkpoints_secs` cannot be both set.")
    for name, value in values.items():
        if value is None or name not in _RULES:
            continue
        holds, message = _RULES[name]
        try:
            fine = holds(value)
        except TypeError:
            fine = False
        if not fine:
            raise ValueError(f"{message}; given: {value!r:.100}")
