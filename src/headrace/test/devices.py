"""What tests ask about this machine."""

from __future__ import annotations

from typing import Any

__all__ = [
    "gpu_device_name",
    "is_built_with_cuda",
    "is_built_with_gpu_support",
    "is_built_with_rocm",
    "is_gpu_available",
]


def gpu_device_name() -> str:
    """The name of a GPU that operations can be placed on, or ``""``."""
    from headrace.session.local_devices import list_logical_devices

    return next((device.name for device in list_logical_devices("GPU")), "")


def is_gpu_available(cuda_only: bool = False, min_cuda_compute_capability: Any = None) -> bool:
    """Whether there is a GPU.

    Args:
        cuda_only: count CUDA devices only.
        min_cuda_compute_capability: a pair (major, minor) that the device must have.
    """
    if not gpu_device_name():
        return False
    import jax

    devices = jax.devices()
    cuda = [d for d in devices if "cuda" in d.client.platform_version.lower()]
    if cuda_only and not cuda:
        return False
    if min_cuda_compute_capability is None:
        return True
    wanted = tuple(min_cuda_compute_capability)
    return any(_capability(device) >= wanted for device in cuda)


def _capability(device: Any) -> tuple[int, ...]:
    text = str(getattr(device, "compute_capability", "0.0"))
    return tuple(int(part) for part in text.split(".") if part.isdigit())


def is_built_with_cuda() -> bool:
    """Whether JAX can use CUDA here: its plugin is installed."""
    from importlib.util import find_spec

    return any(find_spec(f"jax_cuda{version}_plugin") is not None for version in (12, 13))


def is_built_with_rocm() -> bool:
    """Whether JAX can use ROCm here: its plugin is installed."""
    from importlib.util import find_spec

    return any(find_spec(f"jax_rocm{version}_plugin") is not None for version in (60, 7))


def is_built_with_gpu_support() -> bool:
    """Whether JAX can use GPUs here."""
    return is_built_with_cuda() or is_built_with_rocm()
