"""What the families of tf.nn share: the evaluating platform, window sizes, layouts, arguments."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax

from headrace.graph.shapes import TensorShape, shape_text
from headrace.graph.tensor import Dims, Tensor
from headrace.ops.core.array_util import shape_argument

#: Types of convolutions and pools that have gradients.
FLOATS = "{float16, bfloat16, float32, float64}"
FORMATS_2D = "{'NHWC', 'NCHW'} = 'NHWC'"
FORMATS_3D = "{'NDHWC', 'NCDHW'} = 'NDHWC'"


def platform() -> str:
    """The ``platform`` argument of kernels that have forms of their own for CPUs."""
    return "cpu" if jax.default_backend() == "cpu" else "any"


def on_platform(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function`` as an op's kernel, which is told the platform when it is traced."""

    @functools.wraps(function)  # the registry reads the attributes from the signature
    def kernel(*inputs: Any, **attrs: Any) -> Any:
        return function(*inputs, **attrs, platform=platform())

    return kernel


# -- sizes --------------------------------------------------------------------------------------


def is_channels_first(data_format: str | None) -> bool:
    """Whether the channels are dimension 1 (and not the last)."""
    if not isinstance(data_format, (str, type(None))):
        raise TypeError(f"data_format must be a string such as 'NHWC', not {data_format!r}.")
    return data_format is not None and data_format.startswith("NC")


def channel_axis(rank: int, data_format: str) -> int:
    """The axis of the channels of a tensor of a rank."""
    return 1 if is_channels_first(data_format) else rank - 1


def window_size(
    size: int | None,
    window: int | None,
    stride: int,
    dilation: int,
    padding: str,
    pads: tuple[int, int] = (0, 0),
    must_fit: bool = False,
) -> int | None:
    """How many windows fit along one dimension; None when a size is unknown.

    As TensorFlow has it: 0 for a window that is larger than the padded dimension, by less than
    two strides.

    Args:
        must_fit: refuse all windows that are larger. What builds a graph does, kernels do not.

    Raises:
        ValueError: if the window is too large.
    """
    if padding == "SAME":
        return None if size is None else -(-size // stride)
    if size is None or window is None:
        return None
    extent = (window - 1) * dilation + 1
    padded = size + pads[0] + pads[1]
    excess = extent - padded
    if excess > 0 and (must_fit or excess >= 2 * stride):
        raise ValueError(
            f"Negative dimension size caused by subtracting {extent} from {padded}: a window of "
            f"{extent} does not fit into a dimension of {padded}."
        )
    return max(0, (padded - extent) // stride + 1)


def checked_rank(dims: Dims, rank: int, what: str) -> tuple[int | None, ...]:
    """``dims``, or as many unknown sizes as ``rank`` says.

    Raises:
        ValueError: if the rank is known to be another.
    """
    if dims is None:
        return (None,) * rank
    if len(dims) != rank:
        raise ValueError(
            f"Shape must be rank {rank} but is rank {len(dims)} for {what}, of shape "
            f"{shape_text(dims)}."
        )
    return dims


def checked_steps(
    values: Sequence[int], rank: int, what: str, op_type: str, fixed: Sequence[int] = ()
) -> None:
    """Refuse strides, dilations or windows that are not ``rank`` positive numbers.

    ``fixed`` are dimensions (batch, channels) along which they must be 1.
    """
    if len(values) != rank:
        raise ValueError(
            f"{op_type} requires the {what} attribute to contain {rank} values, but got: "
            f"{len(values)}"
        )
    if min(values) < 1:
        raise ValueError(f"{op_type}: {what} must be positive, but got {list(values)}.")
    if any(values[i] != 1 for i in fixed):
        raise ValueError(
            "Current implementation does not yet support "
            f"{what} in the batch and depth dimensions: {op_type} got {list(values)}."
        )


# -- arguments of the public functions ----------------------------------------------------------


def sequence(value: Any, spatial: int, channels_first: bool, name: str) -> list[int]:
    """Strides or windows as one number for each dimension.

    One number stands for all spatial dimensions; a sequence may leave out batch and channels.

    Raises:
        ValueError: if there are not 1, ``spatial`` or ``spatial + 2`` numbers.
    """
    if value is None:
        value = 1
    sizes = list(value) if hasattr(value, "__iter__") else [value]
    if len(sizes) == 1:
        sizes = sizes * spatial
    if len(sizes) == spatial + 2:
        return sizes
    if len(sizes) != spatial:
        raise ValueError(
            f"{name} should be of length 1, {spatial} or {spatial + 2} but was {len(sizes)}"
        )
    return [1, 1, *sizes] if channels_first else [1, *sizes, 1]


def explicit(padding: Any, rank: int) -> tuple[str, list[int]]:
    """The attributes ``padding`` and ``explicit_paddings``.

    Raises:
        ValueError: if a list of paddings does not have a pair for each dimension.
    """
    if not isinstance(padding, (list, tuple)):
        return padding, []
    if len(padding) != rank or any(len(pair) != 2 for pair in padding):
        raise ValueError(
            f"padding must be 'SAME', 'VALID' or a list of {rank} pairs (before, after), "
            f"got {padding!r}"
        )
    return "EXPLICIT", [int(n) for pair in padding for n in pair]


def required(function: str, **arguments: Any) -> None:
    """Raise TypeError for an argument that old names made optional but nothing replaces."""
    for name, value in arguments.items():
        if value is None:
            raise TypeError(f"tf.nn.{function} needs a value for '{name}'.")


def sizes_argument(sizes: Any, name: str) -> Tensor:
    """The shape argument of a transposed convolution: numbers, a TensorShape or a tensor."""
    if isinstance(sizes, TensorShape):
        sizes = sizes.as_list()
    return shape_argument(sizes, name)
