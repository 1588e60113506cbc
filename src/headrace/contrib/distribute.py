"""``tf.contrib.distribute``: strategies of `tf.distribute`, under their names of 1.12 to 1.15.

Beside the methods of `tf.distribute.Strategy` they have those of 1.12: `call_for_each_tower`,
`distribute_dataset`, `update`, `num_towers` and their kin.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.distribute import local, workers
from headrace.distribute.config import DistributeConfig
from headrace.distribute.contexts import (
    ReplicaContext,
    get_cross_replica_context,
    get_loss_reduction,
    get_replica_context,
    get_strategy,
    has_strategy,
    in_cross_replica_context,
    require_replica_context,
)
from headrace.distribute.inputs import DistributedDataset
from headrace.distribute.reductions import (
    AllReduceCrossDeviceOps,
    CrossDeviceOps,
    MultiWorkerAllReduce,
)
from headrace.distribute.steps import Monitor, StandardInputStep, StandardSingleLossStep, Step
from headrace.distribute.strategy import Strategy as DistributionStrategy
from headrace.distribute.tpu import TPUStrategy, initialize_tpu_system
from headrace.distribute.workers import CollectiveCommunication
from headrace.graph.tensor import Operation
from headrace.ops.control.basic import no_op

__all__ = [
    "AllReduceCrossDeviceOps",
    "CollectiveAllReduceStrategy",
    "CrossDeviceOps",
    "DistributeConfig",
    "DistributionStrategy",
    "MirroredStrategy",
    "Monitor",
    "MultiWorkerAllReduce",
    "OneDeviceStrategy",
    "ParameterServerStrategy",
    "ReplicaContext",
    "StandardInputStep",
    "StandardSingleLossStep",
    "Step",
    "TPUStrategy",
    "get_cross_replica_context",
    "get_distribution_strategy",
    "get_loss_reduction",
    "get_replica_context",
    "get_strategy",
    "has_distribution_strategy",
    "has_strategy",
    "in_cross_replica_context",
    "initialize_tpu_system",
    "require_replica_context",
    "run_standard_tensorflow_server",
]

get_distribution_strategy = get_strategy
has_distribution_strategy = has_strategy


class _EarlierMethods(DistributionStrategy):
    """What strategies had as methods of their own in 1.12."""

    def call_for_each_replica(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call ``fn`` once for each replica."""
        kwargs.pop("run_concurrently", None)
        with self.scope():
            return self.extended.call_for_each_replica(fn, args, kwargs)

    call_for_each_tower = call_for_each_replica

    def distribute_dataset(self, dataset_fn: Callable[[], Any]) -> DistributedDataset:
        """A dataset of which each replica gets whole batches."""
        return DistributedDataset(self, dataset_fn(), per_replica=True)

    def reduce(self, reduce_op: Any, value: Any, axis: Any = None, destinations: Any = None) -> Any:
        """The sum or mean over replicas; 1.12 had ``destinations`` in the place of ``axis``."""
        return super().reduce(reduce_op, value, axis if isinstance(axis, int) else None)

    def batch_reduce(self, aggregation: Any, value_destination_pairs: Any) -> list[Any]:
        """Sums or means over replicas, for pairs of values and where they are needed."""
        return self.extended.batch_reduce_to(aggregation, value_destination_pairs)

    def broadcast(self, tensor: Any, destinations: Any = None) -> Any:
        """A tensor, for all devices."""
        return self.extended.broadcast_to(tensor, destinations)

    def update(self, var: Any, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call ``fn`` for each copy of a variable."""
        grouped = kwargs.pop("grouped", True)
        return self.extended.update(var, fn, args, kwargs, group=grouped)

    def update_non_slot(
        self, colocate_with: Any, fn: Callable[..., Any], *args: Any, **kwargs: Any
    ) -> Any:
        """Call ``fn`` on each device of ``colocate_with``."""
        grouped = kwargs.pop("grouped", True)
        return self.extended.update_non_slot(colocate_with, fn, args, kwargs, group=grouped)

    def read_var(self, v: Any) -> Any:
        """The value of a variable across replicas."""
        return self.extended.read_var(v)

    def non_slot_devices(self, var_list: Any) -> tuple[str, ...]:
        """Where an optimiser keeps what belongs to no single variable."""
        return self.extended.non_slot_devices(var_list)

    def initialize(self) -> Operation:
        """An operation to run before others: there is nothing to do."""
        return no_op()

    finalize = initialize

    @property
    def num_replicas(self) -> int:
        """How many replicas train together."""
        return self.num_replicas_in_sync

    num_towers = num_replicas

    @property
    def worker_devices(self) -> tuple[str, ...]:
        """Where replicas compute."""
        return self.extended.worker_devices

    @property
    def parameter_devices(self) -> tuple[str, ...]:
        """Where copies of variables are."""
        return self.extended.parameter_devices

    @property
    def between_graph(self) -> bool:
        """Whether each worker builds a graph of its own."""
        return self.extended.experimental_between_graph

    @property
    def should_init(self) -> bool:
        """Whether this worker initialises variables."""
        return self.extended.experimental_should_init

    @property
    def should_checkpoint(self) -> bool:
        """Whether this worker writes checkpoints."""
        return self.extended.should_checkpoint

    @property
    def should_save_summary(self) -> bool:
        """Whether this worker writes summaries."""
        return self.extended.should_save_summary


class MirroredStrategy(_EarlierMethods, local.MirroredStrategy):
    """`tf.distribute.MirroredStrategy` with the arguments of 1.12.

    Args:
        devices: names of devices; by default all accelerators of this process, or its CPU.
        num_gpus, num_gpus_per_worker: so many GPUs, in the place of ``devices``.
        cross_device_ops, cross_tower_ops: a `tf.distribute.CrossDeviceOps`.
        auto_shard_dataset: taken for compatibility.

    Raises:
        ValueError: for GPUs that are not there, or for both ``devices`` and a number.

    >>> strategy = tf.contrib.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"])
    >>> strategy.num_towers
    2
    """

    def __init__(
        self,
        devices: Any = None,
        num_gpus: int | None = None,
        num_gpus_per_worker: int | None = None,
        cross_device_ops: Any = None,
        auto_shard_dataset: bool = False,
        cross_tower_ops: Any = None,
    ) -> None:
        if num_gpus is not None and num_gpus_per_worker is not None:
            raise ValueError("You cannot specify both `num_gpus` and `num_gpus_per_worker`.")
        count = num_gpus_per_worker if num_gpus is None else num_gpus
        if devices is not None and count is not None:
            raise ValueError("Must only specify one of `devices` and `num_gpus`.")
        if count is not None:
            devices = [f"/device:GPU:{i}" for i in range(count)] or ["/device:CPU:0"]
        local.MirroredStrategy.__init__(self, devices, cross_device_ops or cross_tower_ops)


class OneDeviceStrategy(_EarlierMethods, local.OneDeviceStrategy):
    """`tf.distribute.OneDeviceStrategy`.

    Args:
        device: its name.

    >>> tf.contrib.distribute.OneDeviceStrategy("/cpu:0").num_towers
    1
    """

    def __init__(self, device: Any) -> None:
        local.OneDeviceStrategy.__init__(self, device)


class CollectiveAllReduceStrategy(_EarlierMethods, workers.CollectiveAllReduceStrategy):
    """`tf.distribute.experimental.MultiWorkerMirroredStrategy` with a number of GPUs.

    Args:
        num_gpus_per_worker: so many GPUs of each worker; 0 for its CPU.
        communication: taken for compatibility.

    Raises:
        ValueError: for GPUs that are not there; see
            `tf.distribute.experimental.MultiWorkerMirroredStrategy`.

    >>> tf.contrib.distribute.CollectiveAllReduceStrategy(num_gpus_per_worker=0).num_towers
    1
    """

    def __init__(
        self,
        num_gpus_per_worker: int = 0,
        communication: CollectiveCommunication = CollectiveCommunication.AUTO,
    ) -> None:
        self._gpus = num_gpus_per_worker
        workers.CollectiveAllReduceStrategy.__init__(self, communication)


class ParameterServerStrategy(_EarlierMethods, workers.ParameterServerStrategy):
    """`tf.distribute.experimental.ParameterServerStrategy` with a number of GPUs.

    Args:
        num_gpus_per_worker: so many GPUs of each worker; 0 for its CPU.

    Raises:
        ValueError: for GPUs that are not there; see
            `tf.distribute.experimental.ParameterServerStrategy`.

    >>> tf.contrib.distribute.ParameterServerStrategy().num_towers
    1
    """

    def __init__(self, num_gpus_per_worker: int = 0) -> None:
        self._gpus = num_gpus_per_worker
        workers.ParameterServerStrategy.__init__(self)


def run_standard_tensorflow_server(session_config: Any = None) -> Any:
    """Start the server of this task, which TF_CONFIG describes.

    Args:
        session_config: a ConfigProto of the server.

    Returns:
        A `tf.train.Server`.

    Raises:
        ValueError: if TF_CONFIG names no cluster or no task.
    """
    from headrace.distribute.cluster_resolver import TFConfigClusterResolver
    from headrace.distributed.services.server import Server

    resolver = TFConfigClusterResolver()
    spec = resolver.cluster_spec()
    if not spec.jobs:
        raise ValueError('"cluster" is not found in TF_CONFIG: it names the tasks of a server.')
    if resolver.task_type is None or resolver.task_id is None:
        raise ValueError('"task" is not found in TF_CONFIG: it says which task a server is.')
    return Server(
        spec, job_name=resolver.task_type, task_index=resolver.task_id, config=session_config
    )
