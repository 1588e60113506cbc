"""The devices of this process, as ``tf.config`` shows them."""

from __future__ import annotations

from typing import Any, NamedTuple, NoReturn

from headrace.graph.graph import Graph
from headrace.settings import flags

__all__ = [
    "LogicalDevice",
    "PhysicalDevice",
    "enable_tensor_float_32_execution",
    "get_memory_growth",
    "get_visible_devices",
    "list_logical_devices",
    "list_physical_devices",
    "set_memory_growth",
    "set_virtual_device_configuration",
    "set_visible_devices",
    "tensor_float_32_execution_enabled",
]


class PhysicalDevice(NamedTuple):
    """A device of this machine.

    >>> tf.config.list_physical_devices("CPU")[0]
    PhysicalDevice(name='/physical_device:CPU:0', device_type='CPU')
    """

    name: str
    device_type: str


class LogicalDevice(NamedTuple):
    """A device that operations can be placed on.

    >>> tf.config.list_logical_devices("CPU")[0]
    LogicalDevice(name='/job:localhost/replica:0/task:0/device:CPU:0', device_type='CPU')
    """

    name: str
    device_type: str


_memory_growth: dict[str, bool] = {}


def list_logical_devices(device_type: str | None = None) -> list[LogicalDevice]:
    """The devices that operations of this process can be placed on; all, or those of one type."""
    from headrace.session.session import Session

    with Session(graph=Graph()) as session:
        devices = [LogicalDevice(d.name, d.device_type) for d in session.list_devices()]
    return [d for d in devices if device_type in (None, d.device_type)]


def list_physical_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """The devices of this machine that Headrace sees; all, or those of one type."""
    found = []
    for device in list_logical_devices(device_type):
        number = device.name.rpartition(":")[2]
        name = f"/physical_device:{device.device_type}:{number}"
        found.append(PhysicalDevice(name, device.device_type))
    return found


def get_visible_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """All devices: which ones JAX sees is set by the environment (``CUDA_VISIBLE_DEVICES``)."""
    return list_physical_devices(device_type)


def set_visible_devices(devices: Any, device_type: str | None = None) -> None:
    """Accepts all devices of the type.

    Raises:
        NotImplementedError: for fewer: that is set by the environment before the program starts.
    """
    wanted = devices if isinstance(devices, (list, tuple)) else [devices]
    if {d.name for d in wanted} != {d.name for d in list_physical_devices(device_type)}:
        raise NotImplementedError(
            "Headrace uses the devices that JAX sees. Set JAX_PLATFORMS or CUDA_VISIBLE_DEVICES "
            "before the program starts to hide some."
        )


def _physical(device: Any) -> PhysicalDevice:
    if not isinstance(device, PhysicalDevice):
        raise TypeError(f"Expected one of tf.config.list_physical_devices(), not {device!r}.")
    return device


def get_memory_growth(device: PhysicalDevice) -> bool:
    """What `set_memory_growth` was told.

    Raises:
        TypeError: if ``device`` is no PhysicalDevice.
    """
    return _memory_growth.get(_physical(device).name, False)


def set_memory_growth(device: PhysicalDevice, enable: bool) -> None:
    """Remembered only: JAX decides at its start (``XLA_PYTHON_CLIENT_PREALLOCATE=false``).

    Raises:
        TypeError: if ``device`` is no PhysicalDevice.
    """
    _memory_growth[_physical(device).name] = enable


def set_virtual_device_configuration(device: Any, virtual_devices: Any) -> NoReturn:
    """Devices cannot be divided.

    Raises:
        NotImplementedError: always.
    """
    raise NotImplementedError(
        "Headrace does not divide devices. XLA_FLAGS=--xla_force_host_platform_device_count=N "
        "gives a process several CPU devices."
    )


def tensor_float_32_execution_enabled() -> bool:
    """Whether products and convolutions of float32 on NVIDIA's GPUs may round to TF32.

    `enable_tensor_float_32_execution` says so, or ``HEADRACE_TF32=1`` when the program starts.

    >>> tf.config.experimental.tensor_float_32_execution_enabled()
    False
    """
    return flags.tf32


def enable_tensor_float_32_execution(enabled: bool) -> None:
    """Let products and convolutions of float32 on NVIDIA's GPUs round to TF32, or not.

    TF32 keeps 10 of 23 bits of what is multiplied, and is several times as fast. TensorFlow 1.x
    keeps all bits, and so does Headrace unless it is asked; TensorFlow 2.x rounds unless it is
    asked not to. Steps that run already may keep what they
    have.

    Raises:
        TypeError: if ``enabled`` is no bool.

    >>> tf.config.experimental.enable_tensor_float_32_execution(False)
    """
    if not isinstance(enabled, bool):
        raise TypeError(f"enabled must be a bool, not {enabled!r}.")
    flags.tf32 = enabled
