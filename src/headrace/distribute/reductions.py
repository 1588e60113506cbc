"""Bringing the values of replicas together: sums and means as operations of the graph.

A sum of replicas' gradients is one addition on one device. Different variables are summed on
different devices, which take turns by size: what travels is then what reduce-scatter and all-gather
would send, and no device is a bottleneck. So it is where CPU devices share a processor, and between
tasks. Where all replicas need the sum, and each has an accelerator of its own, XLA's collectives
make it (`over_devices`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from headrace.autodiff.custom import custom_gradient
from headrace.distribute.over_devices import sums_on_all_devices
from headrace.distribute.reduce_op import ReduceOp, reduce_op
from headrace.distribute.values import PerReplica
from headrace.graph import nest
from headrace.graph.graph import get_default_graph
from headrace.graph.tensor import Tensor
from headrace.ops.array.indexed_slices import IndexedSlices
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.state.copied_variables import mean_of, sum_of

__all__ = [
    "AllReduceCrossDeviceOps",
    "CrossDeviceOps",
    "HierarchicalCopyAllReduce",
    "MultiWorkerAllReduce",
    "NcclAllReduce",
    "ReductionToOneDevice",
    "all_reduce",
    "combined",
]


def combined(op: ReduceOp, values: Sequence[Any]) -> Any:
    """The sum or mean of tensors, or of IndexedSlices, of all replicas.

    Raises:
        TypeError: if some replicas have IndexedSlices and others tensors, or none.
    """
    kinds = {isinstance(v, IndexedSlices) for v in values}
    if len(kinds) > 1 or any(v is None for v in values):
        raise TypeError(
            "The values of replicas are of different kinds, so they have no "
            f"{op.name.lower()}: {', '.join(map(repr, values))}. All replicas have to compute the "
            "same."
        )
    if not kinds.pop():
        tensors = [convert_to_tensor(v) for v in values]
        _check_shapes(tensors)
        return sum_of(tensors) if op is ReduceOp.SUM else mean_of(tensors)
    if len(values) == 1:
        return values[0]
    rows = raw.ConcatV2([v.values for v in values], 0)
    if op is ReduceOp.MEAN:
        rows = raw.RealDiv(rows, raw.Cast(len(values), DstT=rows.dtype))
    indices = raw.ConcatV2([v.indices for v in values], 0)
    return IndexedSlices(rows, indices, values[0].dense_shape)


def _check_shapes(tensors: Sequence[Tensor]) -> None:
    first = tensors[0]
    for number, other in enumerate(tensors):
        if other.dtype is not first.dtype or not other.shape.is_compatible_with(first.shape):
            raise ValueError(
                "Replicas have values of different shapes or types, which cannot be added: "
                f"replica 0 has {first.dtype.name} {first.shape} ({first.name}), replica {number} "
                f"{other.dtype.name} {other.shape} ({other.name})."
            )


class CrossDeviceOps:
    """How values of several devices become one.

    >>> ops = tf.distribute.ReductionToOneDevice()
    >>> ops.reduce(tf.distribute.ReduceOp.SUM, tf.constant(2.0), "/cpu:0").shape
    TensorShape([])
    """

    def reduce(self, reduce_op: Any, per_replica_value: Any, destinations: Any) -> Any:
        """The sum or mean of the values of replicas.

        Args:
            reduce_op: a `tf.distribute.ReduceOp`.
            per_replica_value: tensors or IndexedSlices of all replicas, or one.
            destinations: a variable or device where it is needed.
        """
        return self.reduce_implementation(reduce_op, per_replica_value, destinations)

    def batch_reduce(self, reduce_op: Any, value_destination_pairs: Any) -> list[Any]:
        """`reduce` for pairs of values and destinations."""
        return self.batch_reduce_implementation(reduce_op, value_destination_pairs)

    def broadcast(self, tensor: Any, destinations: Any) -> Any:
        """A tensor, for all devices of the destinations."""
        return self.broadcast_implementation(tensor, destinations)

    def reduce_implementation(
        self, reduce_op: Any, per_replica_value: Any, destinations: Any
    ) -> Any:
        """What `reduce` does; subclasses may define it."""
        device = _first_device(destinations)
        return self._on(device, _op(reduce_op), per_replica_value)

    def batch_reduce_implementation(
        self, reduce_op: Any, value_destination_pairs: Any
    ) -> list[Any]:
        """What `batch_reduce` does; subclasses may define it."""
        pairs = list(value_destination_pairs)
        op, devices = _op(reduce_op), self._spread([value for value, _ in pairs])
        everywhere = self._on_all_devices(op, pairs)
        return [
            everywhere[i]
            if i in everywhere
            else self._on(device or _first_device(destination), op, value)
            for i, (device, (value, destination)) in enumerate(zip(devices, pairs, strict=True))
        ]

    def broadcast_implementation(self, tensor: Any, destinations: Any) -> Any:
        """What `broadcast` does; subclasses may define it."""
        return tensor

    def _on_all_devices(self, op: ReduceOp, pairs: list[tuple[Any, Any]]) -> dict[int, PerReplica]:
        """The sums of those pairs that XLA's collectives make, by their places."""
        return sums_on_all_devices(op, pairs, on_cpus=False)

    def _spread(self, values: Sequence[Any]) -> list[str | None]:
        """A device for each sum: those of the replicas take turns by size."""
        load: dict[str, int] = {}
        chosen: list[str | None] = []
        for value in values:
            parts = value.values if isinstance(value, PerReplica) else ()
            candidates = list(dict.fromkeys(_device_of(part) for part in parts))
            if not candidates:
                chosen.append(None)
                continue
            device = min(candidates, key=lambda d: load.get(d, 0))
            load[device] = load.get(device, 0) + _size(parts[0])
            chosen.append(device)
        return chosen

    def _on(self, device: str | None, op: ReduceOp, value: Any) -> Any:
        if not isinstance(value, PerReplica):
            return value
        graph = get_default_graph()
        with (
            graph.colocate_with(None, ignore_existing=True),
            graph.device(None),
            graph.device(device or None),
        ):
            return combined(op, value.values)


def _op(value: Any) -> ReduceOp:
    return reduce_op(value)


def _device_of(value: Any) -> str:
    return str(getattr(value, "device", "") or "")


def _first_device(destinations: Any) -> str | None:
    found = destinations
    if isinstance(found, (list, tuple)):
        found = found[0] if found else None
    if isinstance(found, str) or found is None:
        return found
    return _device_of(found)


def _size(value: Any) -> int:
    tensor = getattr(value, "values", value)
    shape = getattr(tensor, "shape", None)
    return (shape.num_elements() or 1) if shape is not None else 1


class ReductionToOneDevice(CrossDeviceOps):
    """All sums are made on one device.

    Args:
        reduce_to_device: the device; by default that of the destination.
        accumulation_fn: function of a list of tensors that gives their sum; `tf.add_n` by default.

    >>> tf.distribute.MirroredStrategy(
    ...     ["/cpu:0", "/cpu:1"], tf.distribute.ReductionToOneDevice("/cpu:0")).num_replicas_in_sync
    2
    """

    def __init__(
        self,
        reduce_to_device: Any = None,
        accumulation_fn: Callable[[Sequence[Tensor]], Tensor] | None = None,
    ) -> None:
        self._device = reduce_to_device
        self._accumulate = accumulation_fn

    def _on_all_devices(self, op: ReduceOp, pairs: list[tuple[Any, Any]]) -> dict[int, PerReplica]:
        return {}

    def _spread(self, values: Sequence[Any]) -> list[str | None]:
        return [None] * len(values)

    def _on(self, device: str | None, op: ReduceOp, value: Any) -> Any:
        chosen = self._device or device
        sparse = isinstance(value, PerReplica) and isinstance(value.values[0], IndexedSlices)
        if self._accumulate is None or sparse or not isinstance(value, PerReplica):
            return super()._on(chosen, op, value)
        graph = get_default_graph()
        with graph.colocate_with(None, ignore_existing=True), graph.device(chosen):
            total = self._accumulate(list(value.values))
            if op is ReduceOp.SUM:
                return total
            return raw.RealDiv(total, raw.Cast(len(value.values), DstT=total.dtype))


class _Packed(CrossDeviceOps):
    def __init__(self, num_packs: int = 1) -> None:
        if num_packs < 0:
            raise ValueError(
                f"HierarchicalCopy requires values for num_packs >= 0. Given {num_packs}."
            )


class HierarchicalCopyAllReduce(_Packed):
    """Sums whose devices take turns; see `tf.distribute.MirroredStrategy`.

    Args:
        num_packs: taken for compatibility: nothing is packed.

    >>> isinstance(tf.distribute.HierarchicalCopyAllReduce(), tf.distribute.CrossDeviceOps)
    True
    """


class NcclAllReduce(_Packed):
    """Dense sums by XLA's collectives: NCCL on NVIDIA GPUs.

    Others use these on accelerators, too; this one also on CPU devices, where it is slower than an
    addition. The devices must be JAX's own: CPU devices are under
    ``XLA_FLAGS=--xla_force_host_platform_device_count=N``. Elsewhere it does what the others do.

    Args:
        num_packs: taken for compatibility: sums travel in buckets of 8 MiB.

    >>> isinstance(tf.distribute.NcclAllReduce(), tf.distribute.CrossDeviceOps)
    True
    """

    def _on_all_devices(self, op: ReduceOp, pairs: list[tuple[Any, Any]]) -> dict[int, PerReplica]:
        return sums_on_all_devices(op, pairs, on_cpus=True)


class AllReduceCrossDeviceOps(CrossDeviceOps):
    """The same as `HierarchicalCopyAllReduce`, under the name of `tf.contrib.distribute`.

    Args:
        all_reduce_alg, num_packs, agg_small_grads_max_bytes, agg_small_grads_max_group: taken for
            compatibility.

    >>> ops = tf.contrib.distribute.AllReduceCrossDeviceOps("hierarchical_copy")
    >>> isinstance(ops, tf.distribute.CrossDeviceOps)
    True
    """

    def __init__(
        self,
        all_reduce_alg: str = "nccl",
        num_packs: int = 1,
        agg_small_grads_max_bytes: int = 0,
        agg_small_grads_max_group: int = 10,
    ) -> None:
        pass


class MultiWorkerAllReduce(AllReduceCrossDeviceOps):
    """The same as `HierarchicalCopyAllReduce`, for in-graph replicas on several workers.

    Args:
        worker_devices, num_gpus_per_worker, all_reduce_spec, num_packs, agg_small_grads_max_bytes,
            agg_small_grads_max_group: taken for compatibility.

    >>> ops = tf.contrib.distribute.MultiWorkerAllReduce(["/job:worker/task:0"], 0)
    >>> isinstance(ops, tf.distribute.CrossDeviceOps)
    True
    """

    def __init__(
        self,
        worker_devices: Any,
        num_gpus_per_worker: int,
        all_reduce_spec: Any = ("pscpu/pscpu", 2, -1),
        num_packs: int = 0,
        agg_small_grads_max_bytes: int = 0,
        agg_small_grads_max_group: int = 10,
    ) -> None:
        super().__init__()


def all_reduce(context: Any, op: Any, value: Any) -> Any:
    """`ReplicaContext.all_reduce`: the gradient of a sum over replicas is such a sum, too."""
    chosen = reduce_op(op)

    def merged(strategy: Any, *values: Any) -> list[Any]:
        pairs = [(v, v) for v in values]
        found: list[Any] = strategy.extended.batch_reduce_to(chosen, pairs)
        return found

    def gradient(*grads: Any) -> Any:
        return context.all_reduce(chosen, list(grads))

    @custom_gradient
    def reduced(*tensors: Tensor) -> Any:
        return context.merge_call(merged, args=tensors), gradient

    flat = [convert_to_tensor(v) for v in nest.flatten(value)]
    return nest.pack_sequence_as(value, list(reduced(*flat)))
