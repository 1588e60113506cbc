"""Convolutions and pools of quantised images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from headrace.graph import dtypes
from headrace.graph.tensor import Dims, Operation
from headrace.ops.core.array_util import fail
from headrace.ops.core.build import raw
from headrace.ops.core.public import public
from headrace.ops.core.registry import define_op
from headrace.ops.math.quantized import STEPS, TYPES
from headrace.ops.math.quantized_math import check_sums, offset, product_range, scalar
from headrace.ops.nn.pool import pooled_dims
from headrace.ops.nn.windows import checked_rank, checked_steps, window_size

_PADDING = "padding: {'SAME', 'VALID'}"
_LAYOUT = ("NHWC", "HWIO", "NHWC")


def _convolved(
    images: Any,
    filters: Any,
    *ends: Any,
    Tinput: Any,
    Tfilter: Any,
    out_type: Any,
    strides: Sequence[int],
    padding: str,
    dilations: Sequence[int],
) -> Any:
    check_sums(out_type, "QuantizedConv2D")
    names = ("min_input", "max_input", "min_filter", "max_filter")
    low, high, filter_low, filter_high = (
        scalar(jnp, end, name) for end, name in zip(ends, names, strict=True)
    )
    # What pads the images is 0: their integer of 0 is taken off before.
    sums = lax.conv_general_dilated(
        offset(jnp, images, low, high, Tinput),
        offset(jnp, filters, filter_low, filter_high, Tfilter),
        tuple(strides[1:3]),
        padding,
        rhs_dilation=tuple(dilations[1:3]),
        dimension_numbers=_LAYOUT,
    )
    parts = (low, high, Tinput), (filter_low, filter_high, Tfilter)
    return sums, *product_range(jnp, *parts, out_type)


def _conv_shape(op: Operation) -> list[Dims]:
    strides, dilations = op.attrs["strides"], op.attrs["dilations"]
    checked_steps(strides, 4, "strides", op.type, (0, 3))
    checked_steps(dilations, 4, "dilations", op.type, (0, 3))
    batch, *sizes, channels = checked_rank(op.inputs[0].dims, 4, "the input")
    *windows, inner, outputs = checked_rank(op.inputs[1].dims, 4, "the filter")
    if channels is not None and inner is not None and channels != inner:
        raise ValueError(
            f"Dimensions must be equal, but are {channels} and {inner}: channels of the input and "
            "of the filter."
        )
    found = [
        window_size(size, window, strides[i], dilations[i], op.attrs["padding"])
        for i, (size, window) in enumerate(zip(sizes, windows, strict=True), 1)
    ]
    return [(batch, *found, outputs), (), ()]


def _pool_shape(op: Operation) -> list[Dims]:
    attrs = op.attrs
    if attrs["ksize"][3] != 1 or attrs["strides"][3] != 1:
        raise ValueError("Quantised pools do not go over channels: ksize and strides are 1 there.")
    return [pooled_dims(op, op.inputs[0].dims, attrs["ksize"], attrs["strides"]), (), ()]


def _max_pool(
    images: Any,
    low: Any,
    high: Any,
    *,
    T: Any,
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: str,
) -> Any:
    least = np.iinfo(T.np_dtype).min
    found = lax.reduce_window(
        images.astype(np.int32), np.int32(least), lax.max, tuple(ksize), tuple(strides), padding
    )
    return found.astype(T.np_dtype), *_ends(low, high)


def _average_pool(
    images: Any,
    low: Any,
    high: Any,
    *,
    T: Any,
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: str,
) -> Any:
    if T.name == "qint32":
        raise fail("QuantizedAvgPool takes types of 8 and 16 bits: sums of qint32 overflow.")
    windows = tuple(ksize), tuple(strides), padding
    whole = images.astype(np.int32)
    sums = lax.reduce_window(whole, np.int32(0), lax.add, *windows)
    counts = lax.reduce_window(jnp.ones_like(whole), np.int32(0), lax.add, *windows)
    # Towards 0, as TensorFlow does.
    return lax.div(sums, counts).astype(T.np_dtype), *_ends(low, high)


def _ends(low: Any, high: Any) -> tuple[Any, Any]:
    return scalar(jnp, low, "min_input"), scalar(jnp, high, "max_input")


define_op(
    "QuantizedConv2D(input: Tinput, filter: Tfilter, min_input: float32, max_input: float32, "
    "min_filter: float32, max_filter: float32) -> "
    "(output: out_type, min_output: float32, max_output: float32)",
    attrs=f"Tinput: {TYPES}, Tfilter: {TYPES}, out_type: {TYPES} = qint32, "
    f"strides: list(int), {_PADDING}, dilations: list(int) = [1, 1, 1, 1]",
    shape=_conv_shape,
    kernel=_convolved,
    gradient=STEPS,
)
for _name, _kernel in (("QuantizedMaxPool", _max_pool), ("QuantizedAvgPool", _average_pool)):
    define_op(
        f"{_name}(input: T, min_input: float32, max_input: float32) -> "
        "(output: T, min_output: float32, max_output: float32)",
        attrs=f"T: {TYPES}, ksize: list(int) >= 4, strides: list(int) >= 4, {_PADDING}",
        shape=_pool_shape,
        kernel=_kernel,
        gradient=STEPS,
    )


# -- public -------------------------------------------------------------------------------------


@public("nn.quantized_conv2d")
def quantized_conv2d(
    input: Any,
    filter: Any,
    min_input: Any,
    max_input: Any,
    min_filter: Any,
    max_filter: Any,
    strides: Sequence[int],
    padding: str,
    out_type: Any = dtypes.qint32,
    dilations: Sequence[int] = (1, 1, 1, 1),
    name: str | None = None,
) -> Any:
    """A convolution of quantised images.

    Args:
        input: quantised ``[batch, height, width, channels]``; filter: quantised
            ``[height, width, channels, outputs]``.
        min_input, max_input, min_filter, max_filter: float32 scalars, their ranges.
        strides, dilations: four numbers, 1 for batch and channels; padding: 'SAME' or 'VALID'.

    Returns:
        ``(output, min_output, max_output)``: qint32, and the range that it has.

    Raises:
        InvalidArgumentError: in the step, for ranges that are no scalars.
    """
    return raw.QuantizedConv2D(
        input,
        filter,
        min_input,
        max_input,
        min_filter,
        max_filter,
        strides=list(strides),
        padding=padding,
        out_type=out_type,
        dilations=list(dilations),
        name=name,
    )


@public("nn.quantized_relu_x")
def quantized_relu_x(
    features: Any,
    max_value: Any,
    min_features: Any,
    max_features: Any,
    out_type: Any = dtypes.quint8,
    name: str | None = None,
) -> Any:
    """Quantised features, at least 0 and at most ``max_value``: ``(activations, min, max)``.

    Args:
        features: of any shape, which the activations have.
        max_value, min_features, max_features: float32 scalars.
        out_type: that of the features.

    Raises:
        TypeError: if ``features`` are not of a quantised type.
    """
    return raw.QuantizedReluX(
        features, max_value, min_features, max_features, out_type=out_type, name=name
    )


@public("nn.quantized_max_pool")
def quantized_max_pool(
    input: Any,
    min_input: Any,
    max_input: Any,
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: str,
    name: str | None = None,
) -> Any:
    """The largest of each window of quantised images: ``(output, min_output, max_output)``.

    Args:
        input: ``[batch, height, width, channels]``; min_input, max_input: float32 scalars.
        ksize, strides: four numbers, 1 for batch and channels; padding: 'SAME' or 'VALID'.

    Raises:
        TypeError: if ``input`` is not of a quantised type.
        ValueError: if the rank is not 4, or a window or the padding does not fit.
    """
    return raw.QuantizedMaxPool(
        input,
        min_input,
        max_input,
        ksize=list(ksize),
        strides=list(strides),
        padding=padding,
        name=name,
    )


@public("nn.quantized_avg_pool")
def quantized_avg_pool(
    input: Any,
    min_input: Any,
    max_input: Any,
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: str,
    name: str | None = None,
) -> Any:
    """The mean of each window of quantised images, with the shapes of `quantized_max_pool`.

    Raises:
        TypeError: if ``input`` is not of a quantised type.
        ValueError: if the rank is not 4, or a window or the padding does not fit.
    """
    return raw.QuantizedAvgPool(
        input,
        min_input,
        max_input,
        ksize=list(ksize),
        strides=list(strides),
        padding=padding,
        name=name,
    )
