"""What regions get from the session that runs them, what they are called and what their programs
are told apart by."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import jax
import numpy as np

from headrace.errors import InvalidArgumentError, OpError
from headrace.executor.policy import AT_ONCE, Runs
from headrace.ops.control import tensor_list_kernels as lists
from headrace.passes.ir import Edge, Node
from headrace.settings import flags

#: For programs on CPUs. XLA fuses convolutions badly there unless told to hand only single products
#: to its library (an AlexNet step takes 504 ms in place of 574). It must not get reductions either:
#: it drops NaN from the largest and the least; see `ops.core.reducing`.
CPU_OPTIONS: dict[str, Any] = {
    "xla_cpu_experimental_ynn_fusion_type": "LIBRARY_FUSION_TYPE_INDIVIDUAL_DOT",
}
if jax.__version_info__[:2] == (0, 10):
    # Drops optimization barriers before fusion, as if there were none; later versions keep them.
    CPU_OPTIONS["xla_disable_hlo_passes"] = "cse_barrier_expander"
#: So many outputs are named where a region is.
_SHOWN = 4


class RegionOptions:
    """What regions need from the session that runs them.

    Attributes:
        device: the JAX device, or None for JAX's default.
        host: the HostRunner, which runs host ops and single ops while interpreting; None for
            regions that can only be compiled.
        explain: turns an exception of JAX or XLA into an OpError.
        passes_on: whether outputs go to other tasks, and are of no use here afterwards.
        programs: how many programs were compiled under these options that could have waited.
    """

    def __init__(
        self,
        device: Any,
        host: Any,
        explain: Callable[[Exception], OpError],
        runs_before_compiling: Callable[[Sequence[Node], Sequence[Edge]], Runs],
        compiler_options: dict[str, Any] | None,
        passes_on: bool = False,
    ) -> None:
        self.device = device
        self.host = host
        self.explain = explain
        self.runs_before_compiling = runs_before_compiling
        self.compiler_options = compiler_options
        self.passes_on = passes_on
        self.programs = 0

    @classmethod
    def at_once(
        cls, device: Any = None, host: Any = None, compiler_options: dict[str, Any] | None = None
    ) -> RegionOptions:
        """For a region that its first run compiles; what JAX or XLA raises is quoted."""
        return cls(device, host, _quoted, lambda *_: AT_ONCE, compiler_options)

    def scope(self) -> Any:
        """The JAX settings under which programs are traced and called."""
        return scope_on(self.device)

    def here(self, values: Sequence[Any]) -> list[Any]:
        """Values that may enter a program of the device, which is not JAX's default.

        JAX brings arrays there by itself, but for those that an operation has bound to a device.
        """
        device = self.device
        return [
            jax.device_put(v, device)
            if isinstance(v, jax.Array) and v.committed and v.devices() != {device}
            else v
            for v in values
        ]


def _quoted(error: Exception) -> OpError:
    return InvalidArgumentError(None, None, str(error))


@cache
def _gpu_is_default() -> bool:
    """Asked in each step: JAX takes longer to look it up."""
    return jax.default_backend() == "gpu"


def scope_on(device: Any) -> Any:
    """The JAX settings under which programs of a device are traced and called.

    XLA's own choice for float32 on NVIDIA's GPUs is TF32, which keeps 10 of 23 bits of what is
    multiplied. TensorFlow 1.x keeps all, and so do programs here unless `settings` say otherwise.

    Args:
        device: a JAX device; None for JAX's default.
    """
    on_gpu = _gpu_is_default() if device is None else device.platform == "gpu"
    rounds = on_gpu and not flags.tf32
    if device is None and not rounds:
        return jax.enable_x64(True)
    stack = contextlib.ExitStack()
    stack.enter_context(jax.enable_x64(True))
    if device is not None:
        stack.enter_context(jax.default_device(device))
    if rounds:
        stack.enter_context(jax.default_matmul_precision("float32"))
    return stack


def label_of(nodes: Sequence[Node], outputs: Sequence[Edge]) -> str:
    """How a region of these nodes is called: by what it gives, else by what it does last."""
    names = list(dict.fromkeys(n.name for n, _ in outputs)) or [nodes[-1].name]
    shown = ", ".join(names[:_SHOWN]) + ", ..." * (len(names) > _SHOWN)
    return f"region of {len(nodes)} op{'s' * (len(nodes) > 1)} to {shown}"


def static_key(value: Any) -> Any:
    """What tells a static input of a program from others."""
    if isinstance(value, lists.TensorList):
        return tuple([None if item is None else static_key(item) for item in value.items or ()])
    array = np.asarray(value)
    return (array.dtype.str, array.shape, array.tobytes())


__all__ = ["CPU_OPTIONS", "RegionOptions", "label_of", "scope_on", "static_key"]
