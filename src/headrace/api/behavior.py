"""The switches between TensorFlow's behaviours: Headrace has that of 1.x graphs, and no other."""

from __future__ import annotations

from typing import Any, NoReturn

from headrace.graph.composite import CompositeTensor
from headrace.graph.tensor import Tensor

__all__ = [
    "control_flow_v2_enabled",
    "disable_control_flow_v2",
    "disable_eager_execution",
    "disable_tensor_equality",
    "disable_v2_behavior",
    "disable_v2_tensorshape",
    "enable_control_flow_v2",
    "enable_eager_execution",
    "enable_tensor_equality",
    "enable_v2_behavior",
    "enable_v2_tensorshape",
    "executing_eagerly",
    "is_tensor",
    "load_file_system_library",
    "load_library",
    "load_op_library",
]


def executing_eagerly() -> bool:
    """False: programs build graphs and run them in sessions."""
    return False


def disable_eager_execution() -> None:
    """Nothing to do: there is no eager mode."""


def disable_v2_behavior() -> None:
    """Nothing to do: the behaviour is that of 1.x."""


def disable_tensor_equality() -> None:
    """Nothing to do: tensors are compared by identity."""


def disable_v2_tensorshape() -> None:
    """Nothing to do: shapes hold `Dimension` objects."""


def enable_control_flow_v2() -> None:
    """Nothing to do: control flow is functional always."""


def disable_control_flow_v2() -> None:
    """Accepted: control flow is functional always, and gives the same values."""


def control_flow_v2_enabled() -> bool:
    """True: control flow is functional."""
    return True


def enable_eager_execution(
    config: Any = None, device_policy: Any = None, execution_mode: Any = None
) -> NoReturn:
    """There is no eager mode.

    Raises:
        RuntimeError: always.
    """
    raise RuntimeError(
        "Headrace has no eager mode: it builds graphs and runs them in sessions. Programs that "
        "need eager execution run on today's TensorFlow."
    )


def enable_v2_behavior() -> NoReturn:
    """There is no behaviour but that of 1.x.

    Raises:
        RuntimeError: always.
    """
    raise RuntimeError(
        "Headrace has the graphs and sessions of TensorFlow 1.x only; programs written for 2.x "
        "run on today's TensorFlow."
    )


def enable_tensor_equality() -> NoReturn:
    """Tensors are compared by identity.

    Raises:
        RuntimeError: always.
    """
    raise RuntimeError("In Headrace a == b compares tensors by identity; use tf.equal(a, b).")


def enable_v2_tensorshape() -> NoReturn:
    """Shapes hold `Dimension` objects.

    Raises:
        RuntimeError: always.
    """
    raise RuntimeError("In Headrace shape[i] is a tf.Dimension; its size is shape[i].value.")


def is_tensor(x: Any) -> bool:
    """Whether ``x`` is a tensor of any shape, a variable, or made of tensors.

    Made of tensors are SparseTensor, RaggedTensor and IndexedSlices.
    """
    return isinstance(x, (Tensor, CompositeTensor)) or hasattr(x, "_to_tensor")


def load_op_library(library_filename: str) -> NoReturn:
    """Libraries of TensorFlow's kernels cannot be loaded.

    Raises:
        NotImplementedError: always.
    """
    raise NotImplementedError(
        f"Cannot load {library_filename!r}: Headrace's kernels are JAX functions, not libraries "
        "built for TensorFlow. Define the operation in Python with "
        "headrace.ops.core.registry.define_op, or call tf.py_func."
    )


load_library = load_op_library


def load_file_system_library(library_filename: str) -> NoReturn:
    """Libraries of TensorFlow's file systems cannot be loaded.

    Raises:
        NotImplementedError: always.
    """
    raise NotImplementedError(
        f"Cannot load {library_filename!r}: file systems come through fsspec. Install its package "
        "for the storage (s3fs, gcsfs ...)."
    )
