"""``tf.contrib.eager``: what programs ask before they build a graph; there is no eager mode."""

from __future__ import annotations

from typing import Any, NoReturn

from headrace.session.local_devices import list_logical_devices

__all__ = [
    "enable_eager_execution",
    "executing_eagerly",
    "in_eager_mode",
    "in_graph_mode",
    "list_devices",
    "num_gpus",
]


def enable_eager_execution(*args: Any, **kwargs: Any) -> NoReturn:
    """There is no eager mode.

    Raises:
        RuntimeError: always.
    """
    raise RuntimeError(
        "Headrace runs graphs; it has no eager mode. Build the model as a graph and run it in a "
        "tf.Session."
    )


def executing_eagerly() -> bool:
    """False."""
    return False


def in_eager_mode() -> bool:
    """False."""
    return False


def in_graph_mode() -> bool:
    """True."""
    return True


def list_devices() -> list[str]:
    """The names of the devices that operations of this process can be placed on."""
    return [device.name for device in list_logical_devices()]


def num_gpus() -> int:
    """How many of them are GPUs."""
    return len(list_logical_devices("GPU"))
