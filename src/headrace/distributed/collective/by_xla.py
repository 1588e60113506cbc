"""Sums between processes by XLA's collectives, where all have joined JAX's multi-process runtime.

One XLA program runs on a device of each member: NCCL between GPUs, the interconnect of TPUs, gloo
between CPUs. What has to be the same in all members first goes over our own links, as a small
operation of the group: that all have the value on such a device, which devices these are, and the
place of the sum in an order that the first member gives. Programs begin in that order everywhere
(as with the coordinator of Sergeev and Del Balso, *Horovod*, 2018, section 3): two that began in
different orders would wait for each other for ever.

A member's death ends this: the set of processes is fixed when the runtime starts.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from headrace.distributed.collective.group import CollectiveGroup
from headrace.distributed.collective.parts import own_error
from headrace.errors import FailedPreconditionError, OpError
from headrace.executor.threads import step_threads
from headrace.graph.dtypes import int64
from headrace.ops.collective.calls import Call
from headrace.ops.collective.over_devices import order_of_programs

__all__ = ["XlaSums", "process_of_runtime"]

_log = logging.getLogger("headrace.distributed")

_AXIS = "members"
_MERGES: dict[str, Callable[..., Any]] = {
    "Add": jax.lax.psum,
    "Min": jax.lax.pmin,
    "Max": jax.lax.pmax,
}
#: In place of a device, or of a place in the order.
_NONE = -1


def process_of_runtime() -> int:
    """This process's number in JAX's multi-process runtime, from 1 on; 0 if it is in none."""
    return jax.process_index() + 1 if jax.process_count() > 1 else 0


@lru_cache(maxsize=1)
def _runtime_has_accelerators() -> bool:
    return any(device.platform != "cpu" for device in jax.devices())


class _Sum:
    """One operation of this member.

    Attributes:
        result: None if it is to go over our links.
    """

    def __init__(self) -> None:
        self.result: Any = None
        self.error: OpError | None = None
        self.ended = False


class _Order:
    """Which sum of a group is next."""

    def __init__(self) -> None:
        self.given = 0
        self.next = 0


class XlaSums:
    """The sums of one task.

    Args:
        me: the task; ``changed``: guards the groups and is told when they change.
        over_links: runs a small operation of a group, and returns what it comes to.
        wait: waits under ``changed`` until something is so, or the step ends.
    """

    def __init__(
        self,
        me: str,
        changed: threading.Condition,
        over_links: Callable[[Call], Any],
        wait: Callable[[Callable[[], bool], Any], None],
    ) -> None:
        self._me, self._changed = me, changed
        self._over_links, self._wait = over_links, wait
        self._orders: dict[int, _Order] = {}

    def takes(self, call: Call, group: CollectiveGroup) -> bool:
        """Whether all members of a group ask for such an operation here."""
        if call.hint == "nccl":
            asked = True
        else:
            asked = call.hint != "ring" and group.in_one_runtime and _runtime_has_accelerators()
        fits = call.kind == "reduce" and call.merge in _MERGES
        if call.kind == "gather":
            fits = bool(call.shape) and not call.merge  # that of rows and indices goes as bytes
        elif call.kind == "scatter":
            fits = call.merge == "Add" and bool(call.shape) and not call.shape[0] % group.size
        known = call.dtype.is_floating or call.dtype.is_integer
        return asked and group.in_one_runtime and fits and known

    def run(self, call: Call, group: CollectiveGroup, step: Any) -> Any:
        """The result, on the device of the value; None if it has to go over the links.

        Raises:
            FailedPreconditionError: if a member is lost.
            AbortedError: if the group has begun anew.
            CancelledError, DeadlineExceededError: if the step ends before.
        """
        work = _Sum()
        # A thread of its own: a step that gives up leaves it to go on, as the others need it.
        step_threads.submit(self._take_part, call, group, work)
        with self._changed:
            self._wait(lambda: work.ended or _is_over(group), step)
            if not work.ended:
                raise _why_over(call, group)
        if work.error is not None:
            raise work.error
        return work.result

    def _take_part(self, call: Call, group: CollectiveGroup, work: _Sum) -> None:
        try:
            work.result = self._sum(call, group)
        except OpError as error:
            work.error = error
        except Exception as error:
            # XLA's error of a broken connection comes before the loss is known here.
            _log.debug("XLA's collective of '%s' failed", call.name, exc_info=True)
            work.error = _lost(call, group, str(error).partition("\n")[0])
        with self._changed:
            work.ended = True
            self._changed.notify_all()

    def _sum(self, call: Call, group: CollectiveGroup) -> Any:
        value: Any = call.value
        if call.hint == "nccl" and not isinstance(value, jax.Array):
            with jax.enable_x64(True):
                value = jax.device_put(np.asarray(value), jax.local_devices()[0])
        is_there = isinstance(value, jax.Array) and len(value.devices()) == 1
        place, devices = self._agreed(call, group, value.device.id if is_there else _NONE)
        with self._changed:
            order = self._order(group)
            self._changed.wait_for(lambda: order.next >= place or _is_over(group))
            if _is_over(group) or place == _NONE:
                raise _why_over(call, group)
        try:
            result = None if _NONE in devices else self._begin(call, value, devices)
        finally:
            with self._changed:
                order.next = place + 1
                self._changed.notify_all()
        return None if result is None else result.block_until_ready()

    def _order(self, group: CollectiveGroup) -> _Order:
        return self._orders.setdefault(group.key, _Order())

    def _agreed(self, call: Call, group: CollectiveGroup, device: int) -> tuple[int, list[int]]:
        """The place of a sum in the order, and the devices of all; -1 where it cannot be."""
        with self._changed:
            if _is_over(group):
                raise _why_over(call, group)
            rank, order = group.tasks.index(self._me), self._order(group)
            told = np.full(1 + 2 * group.size, _NONE, np.int64)
            told[1 + rank] = device
            told[1 + group.size + rank] = call.shape[0] if call.kind == "gather" else 0
            if rank == 0:
                told[0] = order.given
                order.given += 1
        small = Call(
            "reduce",
            call.group_key,
            call.group_size,
            _NONE - call.instance_key,  # keys of users are not negative
            told,
            int64,
            told.shape,
            "Max",
            f"before {call.describe()}",
            call.device,
            call.name,
        )
        place, *others = self._over_links(small).tolist()
        devices, rows = others[: group.size], others[group.size :]
        # XLA gathers as many rows from each.
        return place, devices if len(set(rows)) == 1 else [_NONE]

    def _begin(self, call: Call, value: Any, devices: Sequence[int]) -> Any:
        program, sharding = _program(tuple(devices), call.kind, call.merge, call.final)
        with jax.enable_x64(True):
            with jax.default_device(value.device):
                row = _as_row(value)
            shape = (len(devices), *value.shape)
            whole = jax.make_array_from_single_device_arrays(shape, sharding, [row])
            with order_of_programs:
                total = program(whole)
        result = total.addressable_shards[0].data
        if value.device.platform == "cpu":
            # Programs that were begun in order may still run at once here, and gloo does not tell
            # their messages apart. On accelerators they wait for each other.
            result.block_until_ready()
        return result


@jax.jit
def _as_row(array: Any) -> Any:
    return array[None]


@lru_cache(maxsize=64)
def _program(devices: tuple[int, ...], kind: str, merge: str, final: str) -> tuple[Any, Any]:
    """The program of certain devices, and where what it takes lies."""
    by_id = {device.id: device for device in jax.devices()}
    mesh = Mesh(np.array([by_id[i] for i in devices]), (_AXIS,))
    apart: Any = PartitionSpec(_AXIS)  # type: ignore[no-untyped-call]
    everywhere: Any = PartitionSpec()  # type: ignore[no-untyped-call]

    def merged(row: Any) -> Any:
        if kind == "gather":
            return jax.lax.all_gather(row[0], _AXIS, tiled=True)
        if kind == "scatter":
            total = jax.lax.psum_scatter(row[0], _AXIS, tiled=True)  # type: ignore[no-untyped-call]
        else:
            total = _MERGES[merge](row[0], _AXIS)
        if final != "Div":
            return total
        # Of integers the quotient rounds towards zero, as C does.
        return jax.lax.div(total, jax.numpy.asarray(len(devices), total.dtype))

    out = apart if kind == "scatter" else everywhere
    mapped = jax.shard_map(merged, mesh=mesh, in_specs=apart, out_specs=out, check_vma=False)
    return jax.jit(mapped), NamedSharding(mesh, apart)


def _is_over(group: CollectiveGroup) -> bool:
    """Whether no sum of a group goes on here: a member is lost, or its members begin anew."""
    return bool(group.lost_members) or group.refused is not None


def _why_over(call: Call, group: CollectiveGroup) -> OpError:
    refused = None if group.lost_members else group.refused
    return _lost(call, group) if refused is None else own_error(refused)


def _lost(call: Call, group: CollectiveGroup, why: str = "") -> OpError:
    who = ", ".join(group.lost_members) or "A member"
    return FailedPreconditionError(
        None,
        None,
        f"{who} left group {group.name}, whose sums XLA's collectives make: '{call.name}' cannot "
        "go on without it. Start all processes again, from a checkpoint; or use "
        f"communication_hint='ring', which goes on without it. {why}".rstrip(),
    )
