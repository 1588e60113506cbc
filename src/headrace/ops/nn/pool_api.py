"""Pooling: the public functions (the ops are in `ops.nn.pool`), and space-to-batch around an op."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from headrace.graph import dtypes
from headrace.graph.graph import get_default_graph
from headrace.graph.tensor import Tensor
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.core.public import public
from headrace.ops.core.static import static_value
from headrace.ops.math.reduction_api import either
from headrace.ops.nn import pool as _ops  # noqa: F401  (defines the ops)
from headrace.ops.nn.conv_api import spatial_rank, spatial_steps
from headrace.ops.nn.windows import explicit, is_channels_first, required, sequence


def _layout(ksize: Any, strides: Any, data_format: str, spatial: int) -> dict[str, Any]:
    first = is_channels_first(data_format)
    return {
        "ksize": sequence(ksize, spatial, first, "ksize"),
        "strides": sequence(strides, spatial, first, "strides"),
        "data_format": data_format,
    }


@public("nn.max_pool")
def max_pool(
    value: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NHWC",
    name: str | None = None,
    input: Any = None,
) -> Tensor:
    """The maximum over each window of images ``[n, h, w, c]``.

    Args:
        ksize, strides: one number, one for height and width, or one for each dimension.
        padding: "SAME", "VALID" or a list of pairs; what is added never wins.

    Raises:
        TypeError: if the images are no real numbers.
        ValueError: if the rank is not 4, or windows do not fit.
        InvalidArgumentError: when run, for shapes known only then.

    >>> max_pool(tf.zeros([1, 28, 28, 3]), [1, 2, 2, 1], [1, 2, 2, 1], "SAME").shape.as_list()
    [1, 14, 14, 3]
    """
    value = either("input", input, "value", value)
    padding, paddings = explicit(padding, 4)
    attrs = _layout(ksize, strides, data_format, 2)
    return raw.MaxPool(value, **attrs, padding=padding, explicit_paddings=paddings, name=name)


@public("nn.avg_pool")
def avg_pool(
    value: Any,
    ksize: Any,
    strides: Any,
    padding: str,
    data_format: str = "NHWC",
    name: str | None = None,
    input: Any = None,
) -> Tensor:
    """The mean over each window of images ``[n, h, w, c]``; padding does not count.

    Args:
        value: floats. ``input`` is another name of it.
        ksize, strides: a number, ``[rows, columns]`` or ``[1, rows, columns, 1]``.
        padding: "SAME" or "VALID".

    Raises:
        TypeError: if the images are no floats.
        ValueError: if the rank is not 4, a window does not fit, or an argument is none of these.
        InvalidArgumentError: when run, for shapes known only then.

    >>> avg_pool(tf.zeros([1, 5, 5, 3]), 2, 2, "SAME").shape.as_list()
    [1, 3, 3, 3]
    """
    value = either("input", input, "value", value)
    attrs = _layout(ksize, strides, data_format, 2)
    return raw.AvgPool(value, **attrs, padding=padding, name=name)


@public("nn.max_pool3d")
def max_pool3d(
    input: Any,
    ksize: Any,
    strides: Any,
    padding: str,
    data_format: str = "NDHWC",
    name: str | None = None,
) -> Tensor:
    """The maximum over each window of volumes ``[n, d, h, w, c]``.

    Raises:
        TypeError: if the volumes are no floats.
        ValueError: if the rank is not 5, or a window or the padding does not fit.
        InvalidArgumentError: when run, for shapes known only then.
    """
    attrs = _layout(ksize, strides, data_format, 3)
    return raw.MaxPool3D(input, **attrs, padding=padding, name=name)


@public("nn.avg_pool3d")
def avg_pool3d(
    input: Any,
    ksize: Any,
    strides: Any,
    padding: str,
    data_format: str = "NDHWC",
    name: str | None = None,
) -> Tensor:
    """The mean over each window of volumes ``[n, d, h, w, c]``; padding does not count.

    Raises:
        TypeError: if the volumes are no floats.
        ValueError: if the rank is not 5, or a window or the padding does not fit.
        InvalidArgumentError: when run, for shapes known only then.
    """
    attrs = _layout(ksize, strides, data_format, 3)
    return raw.AvgPool3D(input, **attrs, padding=padding, name=name)


@public("nn.max_pool_with_argmax")
def max_pool_with_argmax(
    input: Any,
    ksize: Any,
    strides: Any,
    padding: str,
    data_format: str = "NHWC",
    Targmax: Any = None,
    name: str | None = None,
    output_dtype: Any = None,
    include_batch_in_index: bool = False,
) -> tuple[Tensor, Tensor]:
    """The maximum over each window of images ``[n, h, w, c]``, and where it stands.

    Returns:
        The maxima, and as int64 (or ``output_dtype``) their index in the flattened image, or in
        the whole batch with ``include_batch_in_index``.

    Raises:
        ValueError: if ``data_format`` is not "NHWC".
    """
    if data_format != "NHWC":
        raise ValueError(f"data_format must be 'NHWC', got {data_format!r}.")
    wanted = either("output_dtype", output_dtype, "Targmax", Targmax)
    return raw.MaxPoolWithArgmax(
        input,
        ksize=sequence(ksize, 2, False, "ksize"),
        strides=sequence(strides, 2, False, "strides"),
        padding=padding,
        Targmax=dtypes.int64 if wanted is None else wanted,
        include_batch_in_index=include_batch_in_index,
        name=name,
    )


# -- any number of dimensions -------------------------------------------------------------------


@public("nn.pool")
def pool(
    input: Any,
    window_shape: Any,
    pooling_type: str,
    padding: str,
    dilation_rate: Any = None,
    strides: Any = None,
    name: str | None = None,
    data_format: str | None = None,
    dilations: Any = None,
) -> Tensor:
    """Pooling over one, two or three spatial dimensions, as the rank of the input says.

    Args:
        window_shape, dilation_rate, strides: a number for each spatial dimension; only one of the
            last two may be greater than 1.
        pooling_type: "MAX" or "AVG".

    Raises:
        ValueError: if these do not fit together.
    """
    rate = either("dilations", dilations, "dilation_rate", dilation_rate)
    if pooling_type not in ("MAX", "AVG"):
        raise ValueError(f"pooling_type must be either MAX or AVG: got {pooling_type!r}")
    with get_default_graph().name_scope(name or pooling_type.lower() + "_pool") as scope:
        input = convert_to_tensor(input, name="input")
        spatial = spatial_rank(input)
        window = spatial_steps(window_shape, spatial, "window_shape")
        steps = spatial_steps(strides, spatial, "strides")
        rates = spatial_steps(rate, spatial, "dilation_rate")
        _check_pool(padding, window, steps, rates)
        first = is_channels_first(data_format)

        def windows(converted: Tensor, _: Any, inner_padding: str) -> Tensor:
            return _pool_once(converted, window, steps, pooling_type, inner_padding, first, scope)

        axes = range(2, spatial + 2) if first else range(1, spatial + 1)
        return with_space_to_batch(input, rates, padding, windows, window, list(axes))


def _check_pool(padding: str, window: list[int], steps: list[int], rates: list[int]) -> None:
    if padding not in ("SAME", "VALID"):
        raise ValueError(f"padding must be either VALID or SAME: got {padding!r}")
    if max(steps) > 1 and max(rates) > 1:
        raise ValueError(
            "strides > 1 not supported in conjunction with dilation_rate > 1: got strides "
            f"{steps} and dilation_rate {rates}"
        )
    if any(s > w for s, w in zip(steps, window, strict=True)):
        raise ValueError(f"strides > window_shape not supported: got strides {steps} and {window}")
    if padding == "SAME" and max(rates) > 1:
        raise ValueError("pooling with 'SAME' padding is not implemented for dilation_rate > 1")


def _pool_once(
    input: Tensor,
    window: list[int],
    steps: list[int],
    kind: str,
    padding: str,
    first: bool,
    name: str | None = None,
) -> Tensor:
    spatial = len(window)
    if spatial == 1:
        axis = 2 if first else 1
        image = raw.ExpandDims(input, axis)
        pooled = _pool_once(image, [1, *window], [1, *steps], kind, padding, first)
        return raw.Squeeze(pooled, squeeze_dims=[axis])
    function: Any = {
        ("MAX", 2): max_pool,
        ("AVG", 2): avg_pool,
        ("MAX", 3): max_pool3d,
        ("AVG", 3): avg_pool3d,
    }[kind, spatial]
    letters = "HW" if spatial == 2 else "DHW"
    layout = f"NC{letters}" if first else f"N{letters}C"
    result: Tensor = function(input, window, steps, padding, layout, name)
    return result


# -- space to batch -----------------------------------------------------------------------------


@public("nn.with_space_to_batch")
def with_space_to_batch(
    input: Any,
    dilation_rate: Any,
    padding: str,
    op: Callable[[Tensor, int, str], Tensor],
    filter_shape: Any = None,
    spatial_dims: Sequence[int] | None = None,
    data_format: str | None = None,
) -> Tensor:
    """Apply ``op`` as if its windows met values ``dilation_rate`` apart.

    The spatial dimensions are dealt out over the batch, ``op(input, count, padding)`` is applied,
    and its result is put together again.

    Args:
        input: ``[batch, ..., channels]``, or ``[batch, channels, ...]`` for "NC...".
        dilation_rate: a positive number for each spatial dimension.
        padding: "SAME" or "VALID"; ``op`` is always told "VALID" unless all rates are 1.
        filter_shape: sizes of the window, needed for "SAME".
        spatial_dims: increasing positions from 1; by default 1, 2 ... (from 2 if ``data_format``
            starts with "NC").

    Raises:
        TypeError: if an argument is missing.
        ValueError: if these do not fit together, or the rates are not known.
    """
    required("with_space_to_batch", dilation_rate=dilation_rate, padding=padding)
    input = convert_to_tensor(input, name="input")
    rates = _known(dilation_rate, "dilation_rate")
    if min(rates, default=1) < 1:
        raise ValueError(f"dilation_rate must be positive, got {rates}")
    start = 2 if is_channels_first(data_format) else 1
    axes = list(range(start, start + len(rates))) if spatial_dims is None else list(spatial_dims)
    if axes != sorted(set(axes)) or len(axes) != len(rates) or (axes and axes[0] < 1):
        raise ValueError(
            f"spatial_dims must be {len(rates)} increasing positive numbers, got {axes}"
        )
    if padding not in ("SAME", "VALID"):
        raise ValueError(f"Invalid padding method {padding!r}: it must be SAME or VALID")
    if all(r == 1 for r in rates):
        return op(input, len(rates), padding)
    around = [(0, 0)] * len(rates)
    if padding == "SAME":
        if filter_shape is None:
            raise ValueError("filter_shape must be specified for SAME padding")
        sizes = _known(filter_shape, "filter_shape")[: len(rates)]
        extra = [(k - 1) * r for k, r in zip(sizes, rates, strict=True)]
        around = [(e // 2, e - e // 2) for e in extra]
    block, paddings, crops = _blocks(input, axes, rates, around)
    dealt = raw.SpaceToBatchND(input, block, paddings)
    return raw.BatchToSpaceND(op(dealt, len(rates), "VALID"), block, crops)


def _known(value: Any, what: str) -> list[int]:
    found = static_value(value) if isinstance(value, Tensor) else np.asarray(value)
    if found is None:
        raise ValueError(f"{what} must be known when the graph is built, but it is {value!r}.")
    return [int(v) for v in found.ravel()]


def _blocks(
    input: Tensor, axes: list[int], rates: list[int], around: list[tuple[int, int]]
) -> tuple[Any, Any, Any]:
    """Block sizes, paddings and crops for all dimensions from 1 to the last spatial one."""
    dims = input.dims
    block, paddings, crops = [], [], []
    sizes = None
    for axis in range(1, axes[-1] + 1):
        if axis not in axes:
            block.append(1)
            paddings.append([0, 0])
            crops.append([0, 0])
            continue
        rate, (before, after) = rates[axes.index(axis)], around[axes.index(axis)]
        size: Any = None if dims is None else dims[axis]
        if size is None:
            sizes = raw.Shape(input) if sizes is None else sizes
            size = raw.StridedSlice(sizes, [axis], [axis + 1], [1], shrink_axis_mask=1)
        missing = _missing(size, before + after, rate)
        block.append(rate)
        paddings.append([before, _plus(missing, after)])
        crops.append([0, missing])
    if sizes is None:
        return np.array(block, np.int32), np.array(paddings, np.int32), np.array(crops, np.int32)
    return np.array(block, np.int32), _matrix(paddings), _matrix(crops)


def _missing(size: Any, extra: int, rate: int) -> Any:
    """How much more padding makes a dimension a multiple of ``rate``."""
    if isinstance(size, int):
        return -(size + extra) % rate
    return raw.FloorMod(raw.Neg(raw.AddV2(size, extra)), rate)


def _plus(value: Any, number: int) -> Any:
    return value + number if isinstance(value, int) else raw.AddV2(value, number)


def _matrix(rows: list[list[Any]]) -> Tensor:
    return raw.Pack([raw.Pack([convert_to_tensor(v, dtypes.int32) for v in row]) for row in rows])
