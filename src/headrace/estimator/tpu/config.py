"""Settings of TPUEstimator."""

from __future__ import annotations

from typing import Any, NamedTuple

from headrace.estimator.run_config import RunConfig as _RunConfig

__all__ = ["InputPipelineConfig", "RunConfig", "TPUConfig"]


class InputPipelineConfig:
    """How input comes to the hosts of a TPU: there is one here, so all are the same.

    >>> tf.estimator.tpu.InputPipelineConfig.PER_HOST_V1
    2
    """

    PER_SHARD_V1 = 1
    PER_HOST_V1 = 2
    PER_HOST_V2 = 3
    BROADCAST = 4
    SLICED = 5


class _Fields(NamedTuple):
    iterations_per_loop: int = 2
    num_shards: int | None = None
    num_cores_per_replica: int | None = None
    per_host_input_for_training: Any = True
    tpu_job_name: str | None = None
    initial_infeed_sleep_secs: int | None = None
    input_partition_dims: Any = None
    eval_training_input_configuration: int = InputPipelineConfig.PER_HOST_V1
    experimental_host_call_every_n_steps: int = 1


class TPUConfig(_Fields):
    """How a program would use a TPU; taken, and without effect where nothing is sharded.

    Args:
        iterations_per_loop: steps of one session call on a TPU.
        num_shards, num_cores_per_replica: how a batch is shared among cores.
        others: as in TensorFlow 1.15.

    Raises:
        ValueError: if a number is not positive.

    >>> tf.estimator.tpu.TPUConfig(iterations_per_loop=100).num_shards is None
    True
    """

    __slots__ = ()

    def __new__(cls, *args: Any, **kwargs: Any) -> TPUConfig:
        made = super().__new__(cls, *args, **kwargs)
        for name in ("iterations_per_loop", "num_shards", "num_cores_per_replica"):
            value = getattr(made, name)
            if value is not None and value <= 0:
                raise ValueError(f"TPUConfig {name} must be positive: {value}")
        return made


class RunConfig(_RunConfig):
    """A `tf.estimator.RunConfig` with settings for TPUs.

    Args:
        tpu_config: a TPUConfig.
        evaluation_master, master: where sessions run; "" for this process.
        cluster: a cluster resolver; its ``master()`` counts if ``master`` is not given.
        kwargs: as for `tf.estimator.RunConfig`.

    Raises:
        ValueError: if both ``master`` and ``cluster`` are given.

    >>> tf.estimator.tpu.RunConfig(model_dir="m").tpu_config.iterations_per_loop
    2
    """

    def __init__(
        self,
        tpu_config: TPUConfig | None = None,
        evaluation_master: str | None = None,
        master: str | None = None,
        cluster: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if master is not None and cluster is not None:
            raise ValueError("Both master and cluster are set.")
        self._tpu_config = tpu_config or TPUConfig()
        self._cluster = cluster
        if master is not None:
            self._place.master = master
        if evaluation_master is not None:
            self._place.evaluation_master = evaluation_master
        elif master is not None:
            self._place.evaluation_master = master

    @property
    def tpu_config(self) -> TPUConfig:
        """The settings for TPUs."""
        return self._tpu_config

    @property
    def cluster(self) -> Any:
        """The cluster resolver, or None."""
        return self._cluster
