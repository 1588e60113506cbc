"""Sums of what replicas on several devices of a process have, by operations that all share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from headrace.distribute.reduce_op import ReduceOp
from headrace.distribute.values import PerReplica
from headrace.graph.devices import DeviceSpec
from headrace.graph.graph import get_default_graph
from headrace.graph.tensor import Tensor
from headrace.ops.array.indexed_slices import IndexedSlices
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.state.copied_variables import MirroredVariable, quotient
from headrace.placement.devices import runs_by_itself

__all__ = ["sums_on_all_devices"]

#: Sums of so many bytes begin together: one begins while gradients of earlier layers are computed.
_BUCKET_BYTES = 8 << 20


def sums_on_all_devices(
    op: ReduceOp, pairs: Sequence[tuple[Any, Any]], on_cpus: bool
) -> dict[int, PerReplica]:
    """For those pairs of values and destinations where each replica needs the sum, the sums.

    Those are dense values on distinct devices of one task, each of which JAX knows as a device, and
    destinations that are on all of these, too. Other pairs are left out.

    Args:
        on_cpus: whether also on CPU devices, where an addition on one of them takes less time.
    """
    found: dict[int, PerReplica] = {}
    fitting = [i for i, (v, to) in enumerate(pairs) if _fits(v, to, on_cpus)]
    for bucket in _buckets(fitting, pairs):
        values = [pairs[i][0].values for i in bucket]
        found.update(zip(bucket, _summed(op, values), strict=True))
    return found


def _fits(value: Any, destination: Any, on_cpus: bool) -> bool:
    if not isinstance(value, PerReplica) or len(value.values) < 2:
        return False
    if any(v is None or isinstance(v, IndexedSlices) for v in value.values):
        return False
    if not isinstance(destination, (MirroredVariable, PerReplica)):
        return False
    devices = _devices(value.values)
    there = _devices(destination.values) if isinstance(destination, MirroredVariable) else devices
    specs = [DeviceSpec.from_string(d) for d in devices]
    tasks = {(s.job, s.replica, s.task) for s in specs}
    apart = len(set(devices)) == len(devices) and len(tasks) == 1
    fast = on_cpus or all(s.device_type != "CPU" for s in specs)
    return fast and apart and there == devices and all(map(runs_by_itself, specs))


def _devices(values: Sequence[Any]) -> list[str]:
    return [str(getattr(v, "device", "") or "") for v in values]


def _buckets(fitting: Sequence[int], pairs: Sequence[tuple[Any, Any]]) -> Iterator[list[int]]:
    bucket: list[int] = []
    size = 0
    for i in fitting:
        tensor = pairs[i][0].values[0]
        nbytes = (tensor.shape.num_elements() or 1) * tensor.dtype.size
        if bucket and size + nbytes > _BUCKET_BYTES:
            yield bucket
            bucket, size = [], 0
        bucket.append(i)
        size += nbytes
    if bucket:
        yield bucket


def _summed(op: ReduceOp, values: Sequence[Sequence[Any]]) -> list[PerReplica]:
    replicas = len(values[0])
    flat = [convert_to_tensor(v[r]) for r in range(replicas) for v in values]
    devices = _devices(values[0])
    task = DeviceSpec.from_string(devices[0])
    host = DeviceSpec(task.job, task.replica, task.task, "CPU", 0).to_string()
    graph = get_default_graph()
    with graph.colocate_with(None, ignore_existing=True), graph.device(None):
        with graph.device(host):
            sums = raw.AllReduceOverDevices(flat, replicas=replicas)
        results: list[PerReplica] = []
        for i in range(len(values)):
            own: list[Tensor] = list(sums[i :: len(values)])
            if op is ReduceOp.MEAN:
                for r, device in enumerate(devices):
                    with graph.device(device):
                        own[r] = quotient(own[r], replicas)
            results.append(PerReplica(own))
    return results
