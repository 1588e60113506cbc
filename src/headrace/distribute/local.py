"""Strategies over the devices of one process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace.distribute.extended import StrategyExtended
from headrace.distribute.reductions import CrossDeviceOps
from headrace.distribute.strategy import Strategy
from headrace.graph.devices import DeviceSpec, canonical_name
from headrace.placement.devices import is_accelerator, local_devices

__all__ = ["CentralStorageStrategy", "MirroredStrategy", "OneDeviceStrategy", "checked_devices"]

_CPU = "/device:CPU:0"


def checked_devices(given: Sequence[Any] | None, strategy: str) -> tuple[str, ...]:
    """Names of devices; by default all accelerators of this process, or its CPU.

    Raises:
        ValueError: if there are none, one comes twice, or one is an accelerator that is not there.
    """
    there = [d.name.partition("/task:0")[2] for d in local_devices() if is_accelerator(d)]
    if given is None:
        return tuple(there) or (_CPU,)
    if isinstance(given, str):
        given = [given]
    names = [_with_index(canonical_name(str(device))) for device in given]
    if not names:
        raise ValueError(f"{strategy} needs at least one device, but `devices` is empty.")
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(
            f"No duplicates are allowed in `devices`, but {strategy} got {twice} more than once. "
            "Each replica has a device of its own: '/cpu:0', '/cpu:1' ..., with "
            "strategy.update_config_proto(config) for the session."
        )
    for name in names:
        spec = DeviceSpec.from_string(name)
        if spec.job is None and spec.device_type != "CPU" and name not in there:
            raise ValueError(
                f"{strategy} is asked for {len(names)} replicas on {', '.join(names)}, but this "
                f"process has {', '.join([*there, 'CPU devices'])} only: {name} is not there."
            )
    return tuple(names)


def _with_index(name: str) -> str:
    return f"{name}:0" if name.count(":") and name.rsplit("/", 1)[-1].count(":") == 1 else name


class MirroredStrategy(Strategy):
    """One model on several devices, each with a copy of the variables.

    Each device computes the gradients of its part of a batch; they are added up, and each updates
    its copies by the sum. Sums of different variables are made on different devices.

    Args:
        devices: names of devices; by default all accelerators of this process, or its CPU.
        cross_device_ops: a `tf.distribute.CrossDeviceOps`.

    Raises:
        ValueError: if an accelerator is not there, or a device comes twice.

    >>> tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"]).num_replicas_in_sync
    2
    """

    def __init__(self, devices: Any = None, cross_device_ops: CrossDeviceOps | None = None) -> None:
        names = checked_devices(devices, type(self).__name__)
        super().__init__(StrategyExtended(self, names, cross_device_ops=_checked(cross_device_ops)))


class OneDeviceStrategy(Strategy):
    """Everything on one device.

    Args:
        device: its name.

    Raises:
        ValueError: if it is an accelerator that is not there.

    >>> tf.distribute.OneDeviceStrategy("/cpu:0").num_replicas_in_sync
    1
    """

    def __init__(self, device: Any) -> None:
        names = checked_devices([device], type(self).__name__)
        super().__init__(StrategyExtended(self, names))


class CentralStorageStrategy(Strategy):
    """One model on several devices, which share variables that are kept in one place.

    Args:
        compute_devices: names of devices; by default all accelerators of this process, or its CPU.
        parameter_device: where variables are; by default the CPU, or the only device.

    Raises:
        ValueError: if an accelerator is not there, or a device comes twice.

    >>> strategy = tf.distribute.experimental.CentralStorageStrategy(["/cpu:0", "/cpu:1"], "/cpu:0")
    >>> strategy.extended.parameter_devices
    ('/device:CPU:0',)
    """

    def __init__(self, compute_devices: Any = None, parameter_device: Any = None) -> None:
        kind = type(self).__name__
        names = checked_devices(compute_devices, kind)
        home = parameter_device or (names[0] if len(names) == 1 else _CPU)
        super().__init__(StrategyExtended(self, names, checked_devices([home], kind)))


def _checked(ops: Any) -> CrossDeviceOps | None:
    if ops is not None and not isinstance(ops, CrossDeviceOps):
        raise TypeError(f"cross_device_ops is a tf.distribute.CrossDeviceOps, not {ops!r}.")
    found: CrossDeviceOps | None = ops
    return found
