"""Devices: those of this process, and how placement asks about those of many tasks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import jax

from headrace.graph import devices as names

LOCAL_TASK = "/job:localhost/replica:0/task:0"


@dataclass(frozen=True)
class DeviceAttributes:
    """One device: its full name, type and memory limit (0 where it states none).

    ``jax_device`` runs its programs; None stands for JAX's only CPU device. Several CPU devices
    share the processor: each has its own place in the graph, none has its own cores. Under
    ``XLA_FLAGS=--xla_force_host_platform_device_count=N`` the first N are JAX's own, too.
    ``incarnation`` tells one life of the device's task from the next.
    """

    name: str
    device_type: str
    memory_limit_bytes: int = 0
    jax_device: Any = None
    incarnation: int = 0

    @property
    def task(self) -> str:
        """The name without its device: ``/job:ps/replica:0/task:1``."""
        return self.name.partition("/device:")[0]


@lru_cache(maxsize=1)
def _accelerators() -> tuple[Any, ...]:
    return tuple(d for d in jax.local_devices() if d.platform != "cpu")


@lru_cache(maxsize=1)
def _cpus() -> tuple[Any, ...]:
    """JAX's CPU devices; None for the only one if it is JAX's default."""
    found = tuple(jax.local_devices(backend="cpu"))
    return found if _accelerators() or len(found) > 1 else (None,)


def local_devices(
    config: Any = None, task: str = LOCAL_TASK, incarnation: int = 0
) -> list[DeviceAttributes]:
    """The devices of this process under a ConfigProto, as devices of ``task``.

    ``device_count`` limits the accelerators, and says how many CPU devices (at least one) and how
    many NULL devices (which compute nothing; see executor.null) there are. Without it there are
    all accelerators, and as many CPU devices as JAX has: one, if its flags say nothing.
    """
    counts = dict(config.device_count) if config is not None else {}
    cpus = _cpus()
    devices = [
        DeviceAttributes(f"{task}/device:CPU:{i}", "CPU", 0, cpus[i % len(cpus)], incarnation)
        for i in range(max(1, counts.get("CPU", len(cpus))))
    ]
    numbers: dict[str, int] = {}
    for accelerator in _accelerators():
        kind = "TPU" if accelerator.platform == "tpu" else "GPU"
        index = numbers.get(kind, 0)
        if index < counts.get(kind, 1 << 30):
            numbers[kind] = index + 1
            name = f"{task}/device:{kind}:{index}"
            limit = _memory(accelerator)
            devices.append(DeviceAttributes(name, kind, limit, accelerator, incarnation))
    devices += [
        DeviceAttributes(f"{task}/device:NULL:{i}", "NULL", 0, None, incarnation)
        for i in range(counts.get("NULL", 0))
    ]
    return devices


def runs_by_itself(device: names.DeviceSpec) -> bool:
    """Whether a device is one of JAX's own, and no place on a processor that others share."""
    if device.device_type == "CPU":
        return (device.device_index or 0) < len(_cpus()) > 1
    return device.device_type in ("GPU", "TPU")


def _memory(device: Any) -> int:
    stats = device.memory_stats() if device is not None else None
    return int(stats.get("bytes_limit", 0)) if stats else 0


def is_accelerator(device: DeviceAttributes) -> bool:
    return device.device_type not in ("CPU", "NULL")


def default_device(devices: Iterable[DeviceAttributes]) -> DeviceAttributes:
    """Where things go that ask for nothing: the first accelerator, else the first device.

    Raises:
        ValueError: if there is no device.
    """
    found = list(devices)
    if not found:
        raise ValueError("There are no devices to place operations on.")
    return next((d for d in found if is_accelerator(d)), found[0])


class DeviceSet:
    """The devices that a step may use, by name, task and constraint.

    Attributes:
        default: where things go that ask for nothing.
        task_names: all tasks that there are, also those whose devices are not available here.
    """

    def __init__(
        self, available: Sequence[DeviceAttributes], default: str, task_names: Sequence[str] = ()
    ) -> None:
        self.all = list(available)
        self.by_name = {d.name: d for d in self.all}
        self.tasks: dict[str, list[DeviceAttributes]] = {}
        for device in self.all:
            self.tasks.setdefault(device.task, []).append(device)
        found = self.by_name.get(default)
        if found is None:
            raise ValueError(f"The default device {default!r} is not among the available ones.")
        self.default = found
        self.task_names = list(dict.fromkeys([*self.tasks, *task_names]))
        self._fitting: dict[str, list[DeviceAttributes]] = {}

    def fitting(self, constraint: str) -> list[DeviceAttributes]:
        """The devices that satisfy a partial name."""
        found = self._fitting.get(constraint)
        if found is None:
            exact = self.by_name.get(constraint)
            found = (
                [exact]
                if exact is not None
                else [d for d in self.all if names.matches(constraint, d.name)]
            )
            self._fitting[constraint] = found
        return found

    def preferred(self, devices: Sequence[DeviceAttributes], host: bool) -> DeviceAttributes:
        """The best of some devices of one task: the default device, else an accelerator.

        ``host`` asks for a CPU device in place of an accelerator. With a NULL device as the
        default, NULL devices are preferred in every task.
        """
        if host:
            return next((d for d in devices if d.device_type == "CPU"), devices[0])
        if self.default in devices:
            return self.default
        if self.default.device_type == "NULL":
            nulls = [d for d in devices if d.device_type == "NULL"]
            if nulls:
                return nulls[0]
        return default_device(devices)

    @cached_property
    def default_host(self) -> DeviceAttributes:
        """Where host ops go that ask for nothing."""
        if not is_accelerator(self.default):
            return self.default
        return self.preferred(self.tasks[self.default.task], host=True)
