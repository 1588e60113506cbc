"""The devices of this process."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import jax

_TASK = "/job:localhost/replica:0/task:0"


@dataclass(frozen=True)
class DeviceAttributes:
    """One device: its full name, type and memory limit.

    ``jax_device`` runs its programs; None stands for JAX's default CPU device. Several CPU devices
    share the processor: each has its own place in the graph, none has its own cores.
    """

    name: str
    device_type: str
    memory_limit_bytes: int = 0
    jax_device: Any = None

    @property
    def incarnation(self) -> int:
        return 0


@lru_cache(maxsize=1)
def _accelerators() -> tuple[Any, ...]:
    return tuple(d for d in jax.local_devices() if d.platform != "cpu")


@lru_cache(maxsize=1)
def _cpu() -> Any:
    """The CPU device, needed by name only when it is not JAX's default."""
    return jax.local_devices(backend="cpu")[0] if _accelerators() else None


def local_devices(config: Any = None) -> list[DeviceAttributes]:
    """The devices that a session with this ConfigProto sees; ``device_count`` limits them."""
    counts = dict(config.device_count) if config is not None else {}
    devices = [
        DeviceAttributes(f"{_TASK}/device:CPU:{i}", "CPU", _memory(None), _cpu())
        for i in range(max(1, counts.get("CPU", 1)))
    ]
    numbers: dict[str, int] = {}
    for accelerator in _accelerators():
        kind = "TPU" if accelerator.platform == "tpu" else "GPU"
        index = numbers.get(kind, 0)
        if index < counts.get(kind, 1 << 30):
            numbers[kind] = index + 1
            name = f"{_TASK}/device:{kind}:{index}"
            devices.append(DeviceAttributes(name, kind, _memory(accelerator), accelerator))
    return devices


def _memory(device: Any) -> int:
    stats = device.memory_stats() if device is not None else None
    return int(stats.get("bytes_limit", 0)) if stats else 0
