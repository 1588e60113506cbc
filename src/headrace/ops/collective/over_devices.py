"""Sums over the devices of one process, by XLA's collectives.

Replicas on several devices that JAX knows as such (GPUs, TPUs, or CPUs under
``XLA_FLAGS=--xla_force_host_platform_device_count=N``) have their gradients summed by one program
that all of them run together: NCCL's all-reduce on GPUs. No tensor leaves its device by way of the
host, and each device gets the sum.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from headrace.errors import InvalidArgumentError
from headrace.ops.core.registry import NotDifferentiable, define_op
from headrace.ops.core.traits import Traits

__all__ = ["order_of_programs", "summed_over_devices"]

_AXIS = "replicas"
#: Programs that run on the same devices begin in one order on all of them, or they would wait for
#: each other for ever.
order_of_programs = threading.Lock()


class _Sums:
    """Sums over certain devices; programs are made for each list of shapes."""

    def __init__(self, devices: Sequence[Any]) -> None:
        mesh = Mesh(np.array(devices), (_AXIS,))
        apart: Any = PartitionSpec(_AXIS)  # type: ignore[no-untyped-call]
        everywhere: Any = PartitionSpec()  # type: ignore[no-untyped-call]
        self._sharding = NamedSharding(mesh, apart)
        self._places = {device: i for i, device in enumerate(devices)}
        self._program = jax.jit(
            jax.shard_map(
                _psum,
                mesh=mesh,
                in_specs=apart,
                out_specs=everywhere,
            )
        )

    def of(self, values: Sequence[Sequence[Any]]) -> list[list[Any]]:
        """The sums for each device, of what each device has."""
        count = len(self._places)
        rows = []
        for device, own in zip(self._places, values, strict=True):
            with jax.default_device(device):
                rows.append(_as_rows(own))
        whole = [
            jax.make_array_from_single_device_arrays(
                (count, *part[0].shape[1:]), self._sharding, list(part)
            )
            for part in zip(*rows, strict=True)
        ]
        with order_of_programs:
            sums = self._program(whole)
        found: list[list[Any]] = [[] for _ in range(count)]
        for total in sums:
            for shard in total.addressable_shards:
                found[self._places[shard.device]].append(shard.data)
        return found


def _psum(rows: Sequence[Any]) -> Any:
    return jax.lax.psum([r[0] for r in rows], _AXIS)  # type: ignore[no-untyped-call]


@jax.jit
def _as_rows(arrays: Sequence[Any]) -> list[Any]:
    """Each array as the only row of one, on the default device."""
    return [a[None] for a in arrays]


@lru_cache(maxsize=64)
def _sums(devices: tuple[Any, ...]) -> _Sums:
    return _Sums(devices)


def _device(values: Sequence[Any]) -> Any:
    """The device on which all values lie, if they lie on one."""
    found = {v.device if isinstance(v, jax.Array) else None for v in values}
    return found.pop() if len(found) == 1 else None


def summed_over_devices(values: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """What each of several replicas gets: the sums of all, on its own device.

    Args:
        values: for each replica its arrays.

    Raises:
        InvalidArgumentError: if the shapes of replicas differ.
    """
    shapes = [[np.shape(a) for a in own] for own in values]
    if any(own != shapes[0] for own in shapes):
        listed = "; ".join(f"replica {i}: {own}" for i, own in enumerate(shapes))
        raise InvalidArgumentError(
            None,
            None,
            f"Replicas have values of different shapes, which cannot be added: {listed}.",
        )
    devices = tuple(map(_device, values))
    with jax.enable_x64(True):
        if None not in devices and len(set(devices)) == len(devices):
            return _sums(devices).of(values)
    # Some are in host memory: small ones, or those that an interpreted step has made.
    with np.errstate(all="ignore"):
        parts = zip(*values, strict=True)
        sums = [sum(map(np.asarray, p[1:]), np.asarray(p[0])) for p in parts]
    return [[np.asarray(s) for s in sums]] * len(values)


def _all_reduce(context: Any, inputs: list[Any], *, replicas: int) -> Any:
    if replicas < 1 or len(inputs) % replicas:
        raise InvalidArgumentError(
            None,
            context.node.op,
            f"{len(inputs)} inputs cannot be those of {replicas} replicas, each of which has as "
            "many as the others",
        )
    each = len(inputs) // replicas
    values = [inputs[r * each : (r + 1) * each] for r in range(replicas)]
    return [[s for own in summed_over_devices(values) for s in own]]


define_op(
    "AllReduceOverDevices(inputs: T) -> outputs: T",
    attrs="T: list(numeric) >= 1, replicas: int",
    shape=lambda op: [t.dims for t in op.inputs],
    host=_all_reduce,
    gradient=NotDifferentiable("a strategy sums gradients, and no gradient is taken of these"),
    traits=Traits(
        device_arrays=True,
        only_here="TensorFlow has one operation for each device, which only its GPUs run",
    ),
)
