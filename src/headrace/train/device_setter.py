"""`tf.train.replica_device_setter`: variables on parameter servers, all else on the worker."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from headrace.distributed.cluster.cluster_spec import ClusterSpec
from headrace.graph import devices
from headrace.graph.tensor import Operation
from headrace.ops.core.registry import all_op_defs

__all__ = ["replica_device_setter"]

#: Ops of older releases that own shared state: nodes of files have them, nothing here defines them.
_OLD_SHARED = frozenset(
    {
        "Variable",
        "VariableV2",
        "AutoReloadVariable",
        "MutableHashTable",
        "MutableHashTableOfTensors",
        "MutableDenseHashTable",
    }
)


def replica_device_setter(
    ps_tasks: int = 0,
    ps_device: str = "/job:ps",
    worker_device: str = "/job:worker",
    merge_devices: bool = True,
    cluster: Any = None,
    ps_ops: Collection[str] | None = None,
    ps_strategy: Callable[[Any], int] | None = None,
) -> Callable[[Any], str] | None:
    """A device function for `tf.device`: state goes to the parameter servers, all else does not.

    Inner device blocks win, field by field. Each replica that builds the same graph puts each
    variable on the same task, because the strategy sees the ops in the order in which they are
    made. Local variables go to parameter servers as well, unless they are colocated.

    Args:
        ps_tasks: how many tasks the parameter server job has.
        ps_device: the device of the parameter server job; "" puts nothing there.
        worker_device: the device of all other ops.
        merge_devices: False leaves ops alone that have a device already.
        cluster: a ClusterSpec or what one is made of; its number of tasks replaces `ps_tasks`.
        ps_ops: the types of the ops that go to parameter servers; by default those of variables
            and of tables that can change.
        ps_strategy: which task takes an op; by default they take turns. It is asked only for ops
            whose job is open or the parameter servers'.

    Returns:
        The function; None, which `tf.device` takes as well, without parameter servers.

    Raises:
        TypeError: `ps_strategy` is no function, or `cluster` describes no cluster.
        ValueError: `ps_device` or `worker_device` is malformed.

    >>> with tf.device(replica_device_setter(ps_tasks=2, worker_device="/job:worker/task:7")):
    ...     a, b = tf.Variable(1.0, name="a"), tf.Variable(2.0, name="b")
    ...     total = a + b
    >>> [a.device, b.device, total.device]
    ['/job:ps/task:0', '/job:ps/task:1', '/job:worker/task:7']
    """
    ps_spec = devices.DeviceSpec.from_string(ps_device or "")
    if cluster is not None:
        spec = cluster if isinstance(cluster, ClusterSpec) else ClusterSpec(cluster)
        if ps_spec.job not in spec.jobs:
            return None
        ps_tasks = spec.num_tasks(ps_spec.job)
    if ps_tasks == 0:
        return None
    strategy = _RoundRobin(ps_tasks) if ps_strategy is None else ps_strategy
    if not callable(strategy):
        raise TypeError(f"ps_strategy must be callable, not {strategy!r}.")
    if ps_ops is None:
        ps_ops = _OLD_SHARED.union(n for n, d in all_op_defs().items() if d.traits.shared)
    chosen_ops = frozenset(ps_ops if ps_device else ())
    chooser = _Chooser(ps_spec, worker_device, chosen_ops, strategy)
    return chooser.any_op if merge_devices else chooser.open_op


class _RoundRobin:
    """The tasks take turns, whatever the size of what they take."""

    def __init__(self, num_tasks: int) -> None:
        self._num_tasks = num_tasks
        self._next = 0

    def __call__(self, op: Any) -> int:
        task = self._next
        self._next = (task + 1) % self._num_tasks
        return task


class _Chooser:
    """Holds what the device function needs to know."""

    def __init__(
        self,
        ps_spec: devices.DeviceSpec,
        worker_device: str | devices.DeviceSpec | None,
        ps_ops: frozenset[str],
        strategy: Callable[[Any], int],
    ) -> None:
        self._ps_spec = ps_spec
        self._ps_device = ps_spec.to_string()
        self._worker_device = devices.canonical_name(worker_device)
        self._ps_ops = ps_ops
        self._strategy = strategy

    def any_op(self, op: Any) -> str:
        """The device of an Operation or a NodeDef; what its own device says wins."""
        current = op.device or ""
        kind = op.type if isinstance(op, Operation) else op.op
        if kind not in self._ps_ops:
            return devices.merge(self._worker_device, current)
        ps_device = self._ps_device
        job = devices.DeviceSpec.from_string(current).job if current else None
        # The number of a task means something only with the job that it belongs to.
        if self._ps_spec.job and job in (None, self._ps_spec.job):
            ps_device = self._ps_spec.replace(task=self._strategy(op)).to_string()
        return devices.merge(ps_device, current)

    def open_op(self, op: Any) -> str:
        """The same for ops without a device; others keep theirs."""
        device: str = op.device
        return device or self.any_op(op)
