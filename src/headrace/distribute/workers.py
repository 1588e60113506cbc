"""Strategies over the workers of a cluster, each of which builds a graph of its own."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

from headrace.distribute.cluster_resolver import ClusterResolver, TFConfigClusterResolver
from headrace.distribute.contexts import InputContext, ReplicaContext
from headrace.distribute.copies import made_on, make_copied
from headrace.distribute.extended import StrategyExtended
from headrace.distribute.reduce_op import ReduceOp
from headrace.distribute.strategy import Strategy
from headrace.distributed.cluster.cluster_spec import ClusterSpec, task_name
from headrace.graph.graph import get_default_graph
from headrace.graph.keys import GraphKeys
from headrace.graph.tensor import Tensor
from headrace.ops.array.indexed_slices import IndexedSlices
from headrace.ops.collective import api as collective
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.state.variable_kinds import VariableSynchronization
from headrace.ops.state.variables import Variable
from headrace.placement.devices import is_accelerator, local_devices
from headrace.train import device_setter
from headrace.train.all_reduce_optimizer import AllReduceOptimizer, next_key
from headrace.train.optimizers import GradientDescentOptimizer

__all__ = [
    "CollectiveAllReduceStrategy",
    "CollectiveCommunication",
    "ParameterServerStrategy",
]


class CollectiveCommunication(enum.Enum):
    """How workers reduce: see `tf.collective.all_reduce` and its ``communication_hint``.

    >>> tf.distribute.experimental.CollectiveCommunication.RING.value
    'RING'
    """

    AUTO = "AUTO"
    RING = "RING"
    NCCL = "NCCL"


class _WorkerExtended(StrategyExtended):
    """One worker of a cluster, or a process without one."""

    def __init__(self, container_strategy: Any, gpus: int | None, resolver: Any) -> None:
        self._gpus, self._strategy = gpus, container_strategy
        self._cluster, self._job, self._index = ClusterSpec({}), "", 0
        super().__init__(container_strategy, self._local_devices(""))
        if resolver is not None:
            self._join(resolver.cluster_spec(), resolver.task_type, resolver.task_id)

    def _local_devices(self, task: str) -> list[str]:
        there = [d.name.partition("/task:0")[2] for d in local_devices() if is_accelerator(d)]
        if self._gpus is not None and self._gpus > len(there):
            raise ValueError(
                f"{type(self._strategy).__name__} is asked for {self._gpus} replicas on GPUs of "
                f"each worker, but this process has {len(there)}."
            )
        used = there if self._gpus is None else there[: self._gpus]
        return [f"{task}{name}" for name in used] or [f"{task}/device:CPU:0"]

    def _join(self, cluster: Any, job: Any, index: Any) -> None:
        """Take a place in a cluster.

        Raises:
            ValueError: if it has no such task.
        """
        spec = ClusterSpec(cluster or {})
        if not spec.jobs or job in ("evaluator", "ps"):
            return
        if job is None or index is None:
            raise ValueError(
                "The cluster has tasks, but it is not said which one this process is: task_type "
                "and task_id, or TF_CONFIG['task']."
            )
        if job not in spec.jobs or index not in spec.task_indices(job):
            raise ValueError(
                f"The cluster has no task {index!r} of job {job!r}; it has "
                f"{ {j: spec.num_tasks(j) for j in spec.jobs} }."
            )
        self._cluster, self._job, self._index = spec, job, index
        self._devices = tuple(self._local_devices(task_name(job, index)))
        self._parameter_devices = self._devices

    def _workers(self) -> list[tuple[str, int]]:
        jobs = [j for j in ("chief", "master", "worker") if j in self._cluster.jobs]
        return [(job, index) for job in jobs for index in self._cluster.task_indices(job)]

    @property
    def _is_chief(self) -> bool:
        workers = self._workers()
        return not workers or workers[0] == (self._job, self._index)

    @property
    def experimental_between_graph(self) -> bool:
        """True in a cluster."""
        return bool(self._cluster.jobs)

    @property
    def should_checkpoint(self) -> bool:
        """Whether this worker is the chief."""
        return self._is_chief

    @property
    def should_save_summary(self) -> bool:
        """Whether this worker is the chief."""
        return self._is_chief

    def _configure(self, session_config: Any, cluster: Any, task_type: Any, task_id: Any) -> None:
        if cluster is not None:
            self._join(cluster, task_type, task_id)

    def _number(self) -> int:
        workers = self._workers()
        return workers.index((self._job, self._index)) if workers else 0

    def _input_context(self) -> InputContext:
        count = max(1, len(self._workers()))
        return InputContext(count, self._number(), self._num_replicas_in_sync)


# -- parameter servers ----------------------------------------------------------------------------

_SETTER = "__device setter of ParameterServerStrategy"


class _ParameterServerExtended(_WorkerExtended):
    """Variables on servers; each worker updates them by itself."""

    @property
    def parameter_devices(self) -> tuple[str, ...]:
        """The servers."""
        servers = self._servers()
        return tuple(f"/job:ps/task:{i}" for i in range(servers)) or ("/device:CPU:0",)

    def _servers(self) -> int:
        return self._cluster.num_tasks("ps") if "ps" in self._cluster.jobs else 0

    def _join(self, cluster: Any, job: Any, index: Any) -> None:
        super()._join(cluster, job, index)
        if self._cluster.jobs and not self._servers():
            raise ValueError(
                "ParameterServerStrategy in a cluster keeps variables in the job 'ps', but it has "
                f"the jobs {', '.join(self._cluster.jobs)} only."
            )

    @property
    def experimental_should_init(self) -> bool:
        """Whether this worker is the chief: all use its variables."""
        return self._is_chief

    def _create_variable(self, next_creator: Callable[..., Variable], **kwargs: Any) -> Variable:
        on_read = kwargs.get("synchronization") is VariableSynchronization.ON_READ
        local = on_read or GraphKeys.LOCAL_VARIABLES in (kwargs.get("collections") or ())
        home = self._devices[0] if local else self._setter()
        if self._replicas > 1:
            return make_copied(next_creator, self._devices, [home], kwargs)
        return made_on(home, next_creator, kwargs)

    def _setter(self) -> Any:
        if not self._servers():
            return "/device:CPU:0"
        # One for each graph, so that all workers' graphs begin with the same server.
        found = get_default_graph().get_collection_ref(_SETTER)
        if not found:
            worker = self._devices[0].rpartition("/device:")[0]
            found.append(
                device_setter.replica_device_setter(worker_device=worker, cluster=self._cluster)
            )
        return found[0]

    def _update_config(self, config: Any) -> None:
        super()._update_config(config)
        if self._cluster.jobs and not config.device_filters:
            config.device_filters.extend(["/job:ps", f"/job:{self._job}/task:{self._index}"])


class ParameterServerStrategy(Strategy):
    """Workers that train by themselves, on variables of parameter servers.

    Each worker builds its graph and runs its own steps (asynchronous training); with
    `tf.train.SyncReplicasOptimizer` all of them make each update together. Without a cluster,
    variables are on the CPU.

    Args:
        cluster_resolver: what tells the cluster and this process's task; by default TF_CONFIG.

    Raises:
        ValueError: for a cluster without the job ``ps``, or without this task.

    >>> strategy = tf.distribute.experimental.ParameterServerStrategy()
    >>> with strategy.scope():
    ...     tf.get_variable("w", [2]).device
    '/device:CPU:0'
    """

    _gpus: int | None = None

    def __init__(self, cluster_resolver: ClusterResolver | None = None) -> None:
        resolver = cluster_resolver or TFConfigClusterResolver()
        super().__init__(_ParameterServerExtended(self, self._gpus, resolver))


# -- all-reduce -----------------------------------------------------------------------------------

_GROUP = 1


class _CollectiveExtended(_WorkerExtended):
    """Variables on each worker; gradients are summed between workers."""

    _before: int | None = None
    _hint = "auto"

    @property
    def _size(self) -> int:
        return max(1, len(self._workers()))

    @property
    def _num_replicas_in_sync(self) -> int:
        return self._replicas * self._size

    @property
    def _joins_gradients(self) -> bool:
        return self._num_replicas_in_sync > 1

    def _context(self, number: int, shared: Any, merge: Any) -> ReplicaContext:
        own = self._number() * self._replicas + number
        return ReplicaContext(self._strategy, own)._joins(shared, merge)

    def _join(self, cluster: Any, job: Any, index: Any) -> None:
        super()._join(cluster, job, index)
        if "ps" in self._cluster.jobs:
            raise ValueError(
                f"{type(self._strategy).__name__} has no parameter servers, but the cluster has "
                "the job 'ps'. Leave it out of TF_CONFIG, or use ParameterServerStrategy."
            )

    def _create_variable(self, next_creator: Callable[..., Variable], **kwargs: Any) -> Variable:
        on_read = kwargs.get("synchronization") is VariableSynchronization.ON_READ
        local = GraphKeys.LOCAL_VARIABLES in (kwargs.get("collections") or ())
        if self._size > 1 and not on_read and not local:
            kwargs["initial_value"] = self._start(kwargs.get("initial_value"), kwargs.get("dtype"))
        return super()._create_variable(next_creator, **kwargs)

    def _start(self, given: Any, dtype: Any) -> Callable[[], Tensor]:
        """An initial value that is the chief's in all workers."""

        def initial() -> Tensor:
            value = convert_to_tensor(given() if callable(given) else given, dtype)
            if not value.shape.is_fully_defined():
                raise ValueError(
                    f"A variable that workers mirror needs an initial value of a known shape: "
                    f"{value}."
                )
            key = next_key(_GROUP)
            how = (value.shape, value.dtype, self._size, _GROUP, key)
            if self._is_chief:
                return collective.broadcast_send(value, *how)
            return collective.broadcast_recv(*how)

        return initial

    def _gradients_begin(self) -> None:
        self._before = get_default_graph().version

    def _in_worker(self, op: ReduceOp, pairs: list[tuple[Any, Any]]) -> list[Any]:
        """The sums or means over the devices of this worker: one tensor each if others follow."""
        return super()._joined(op, pairs if self._size == 1 else [(v, None) for v, _ in pairs])

    def _summed_gradients(self, pairs: list[tuple[Any, Any]]) -> list[Any]:
        sums = self._in_worker(ReduceOp.SUM, pairs)
        if self._size == 1:
            return sums
        graph = get_default_graph()
        before = graph.version if self._before is None else self._before
        inner = GradientDescentOptimizer(0.0)  # which applies nothing: it is asked for sums
        reducer = AllReduceOptimizer(
            inner, self._size, _GROUP, average=False, communication_hint=self._hint
        )
        variables = [v for _, v in pairs]
        return [g for g, _ in reducer.averaged(list(zip(sums, variables, strict=True)), before)]

    def _joined(self, op: ReduceOp, pairs: list[tuple[Any, Any]]) -> list[Any]:
        found = self._in_worker(op, pairs)
        if self._size == 1:
            return found
        return [self._between_workers(op, value) for value in found]

    def _between_workers(self, op: ReduceOp, value: Any) -> Any:
        final = "Div" if op is ReduceOp.MEAN else "Id"
        if isinstance(value, IndexedSlices):
            rows, indices, there = raw.CollectiveGatherSlices(
                value.values,
                value.indices,
                group_size=self._size,
                group_key=_GROUP,
                instance_key=next_key(_GROUP),
            )
            if op is ReduceOp.MEAN:
                rows = raw.RealDiv(rows, raw.Cast(there, DstT=rows.dtype))
            return IndexedSlices(rows, indices, value.dense_shape)
        key = next_key(_GROUP)
        return collective.all_reduce(
            convert_to_tensor(value),
            self._size,
            _GROUP,
            key,
            "Add",
            final,
            communication_hint=self._hint,
        )

    def _update_config(self, config: Any) -> None:
        super()._update_config(config)
        if self._cluster.jobs and not config.device_filters:
            config.device_filters.append(f"/job:{self._job}/task:{self._index}")


class CollectiveAllReduceStrategy(Strategy):
    """One model on several workers, each with a copy of the variables.

    Each worker builds the same graph and runs its own steps; gradients are summed between them
    (see `tf.train.AllReduceOptimizer`). Variables begin with the values of the chief: the
    initialisers of all workers meet. Without a cluster it is a `tf.distribute.MirroredStrategy`.

    Args:
        communication: the way of dense values between workers: NCCL and AUTO take XLA's collectives
            where they can (see `tf.collective.all_reduce`), RING does not.

    Raises:
        ValueError: if the cluster has parameter servers, or not this task.

    >>> tf.distribute.experimental.MultiWorkerMirroredStrategy().num_replicas_in_sync
    1
    """

    _gpus: int | None = None

    def __init__(
        self, communication: CollectiveCommunication = CollectiveCommunication.AUTO
    ) -> None:
        if not isinstance(communication, CollectiveCommunication):
            raise TypeError(
                "communication is a tf.distribute.experimental.CollectiveCommunication, not "
                f"{communication!r}"
            )
        extended = _CollectiveExtended(self, self._gpus, TFConfigClusterResolver())
        extended._hint = communication.value.lower()
        super().__init__(extended)
