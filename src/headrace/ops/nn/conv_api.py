"""Convolutions: the public functions (the ops are in `ops.nn.conv`).

Inputs are ``[batch, ...spatial..., channels]`` unless ``data_format`` puts the channels second
(``"NCHW"``); filters are ``[...spatial..., in channels, out channels]``. ``padding`` is "SAME" (the
output has ``ceil(size / stride)`` positions), "VALID" (only whole windows) or, in two dimensions,
a list of pairs, one for each dimension.
"""

from __future__ import annotations

from typing import Any

from headrace.graph.graph import get_default_graph
from headrace.graph.shapes import shape_text
from headrace.graph.tensor import Tensor
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.core.public import public
from headrace.ops.math.reduction_api import either
from headrace.ops.nn import conv as _ops  # noqa: F401  (defines the ops)
from headrace.ops.nn.windows import explicit, is_channels_first, required, sequence, sizes_argument

_ONES_2D = (1, 1, 1, 1)
_ONES_3D = (1, 1, 1, 1, 1)


def _layout(
    strides: Any, padding: Any, data_format: str | None, dilations: Any, spatial: int = 2
) -> dict[str, Any]:
    """The attributes that all convolution ops share."""
    data_format = data_format or ("NHWC" if spatial == 2 else "NDHWC")
    first = is_channels_first(data_format)
    attrs: dict[str, Any] = {
        "strides": sequence(strides, spatial, first, "strides"),
        "dilations": sequence(dilations, spatial, first, "dilations"),
        "data_format": data_format,
    }
    if spatial == 2:
        attrs["padding"], attrs["explicit_paddings"] = explicit(padding, 4)
    else:
        attrs["padding"] = padding
    return attrs


# -- two dimensions -----------------------------------------------------------------------------


@public("nn.conv2d")
def conv2d(
    input: Any,
    filter: Any = None,
    strides: Any = None,
    padding: Any = None,
    use_cudnn_on_gpu: bool = True,
    data_format: str = "NHWC",
    dilations: Any = _ONES_2D,
    name: str | None = None,
    filters: Any = None,
) -> Tensor:
    """Convolution of images ``[n, h, w, c]`` with ``filter`` ``[kh, kw, c, outputs]``.

    Args:
        strides, dilations: one number, one for height and width, or one for each dimension.

    Raises:
        ValueError: if shapes, strides or padding do not fit.

    >>> import headrace as tf
    >>> tf.nn.conv2d([[[[1.0], [2.0]]]], [[[[3.0]]]], 1, "SAME").shape.as_list()
    [1, 1, 2, 1]
    """
    filter = either("filters", filters, "filter", filter)
    required("conv2d", filter=filter, padding=padding)
    attrs = _layout(strides, padding, data_format, dilations)
    return raw.Conv2D(input, filter, **attrs, use_cudnn_on_gpu=use_cudnn_on_gpu, name=name)


@public("nn.conv2d_backprop_filter")
def conv2d_backprop_filter(
    input: Any,
    filter_sizes: Any,
    out_backprop: Any,
    strides: Any,
    padding: Any,
    use_cudnn_on_gpu: bool = True,
    data_format: str = "NHWC",
    dilations: Any = _ONES_2D,
    name: str | None = None,
) -> Tensor:
    """The gradient of ``conv2d`` for its filter, whose shape is ``filter_sizes``.

    Raises:
        ValueError: if shapes, strides and padding do not fit.
        InvalidArgumentError: when run, if shapes known only then do not fit.
    """
    attrs = _layout(strides, padding, data_format, dilations)
    sizes = sizes_argument(filter_sizes, "filter_sizes")
    return raw.Conv2DBackpropFilter(
        input, sizes, out_backprop, **attrs, use_cudnn_on_gpu=use_cudnn_on_gpu, name=name
    )


@public("nn.conv2d_backprop_input")
def conv2d_backprop_input(
    input_sizes: Any,
    filter: Any = None,
    out_backprop: Any = None,
    strides: Any = None,
    padding: Any = None,
    use_cudnn_on_gpu: bool = True,
    data_format: str = "NHWC",
    dilations: Any = _ONES_2D,
    name: str | None = None,
    filters: Any = None,
) -> Tensor:
    """The gradient of ``conv2d`` for its input, whose shape is ``input_sizes``.

    Raises:
        TypeError: if an argument is missing.
        ValueError: if shapes, strides and padding do not fit.
    """
    filter = either("filters", filters, "filter", filter)
    required("conv2d_backprop_input", filter=filter, out_backprop=out_backprop, padding=padding)
    attrs = _layout(strides, padding, data_format, dilations)
    sizes = sizes_argument(input_sizes, "input_sizes")
    return raw.Conv2DBackpropInput(
        sizes, filter, out_backprop, **attrs, use_cudnn_on_gpu=use_cudnn_on_gpu, name=name
    )


@public("nn.conv2d_transpose")
def conv2d_transpose(
    value: Any = None,
    filter: Any = None,
    output_shape: Any = None,
    strides: Any = None,
    padding: Any = "SAME",
    data_format: str = "NHWC",
    name: str | None = None,
    input: Any = None,
    filters: Any = None,
    dilations: Any = None,
) -> Tensor:
    """The transpose of ``conv2d``: from ``value`` back to an image of shape ``output_shape``.

    ``filter`` is ``[kh, kw, output channels, channels of value]``.

    Some call it deconvolution, after Zeiler et al., "Deconvolutional networks" (2010).

    Raises:
        TypeError: if an argument is missing, or types differ.
        ValueError: if a convolution of ``output_shape`` would not have the shape of ``value``.

    >>> filter = tf.zeros([3, 3, 5, 2])
    >>> conv2d_transpose(tf.zeros([1, 4, 4, 2]), filter, [1, 8, 8, 5], strides=2).shape.as_list()
    [1, 8, 8, 5]
    """
    value = either("input", input, "value", value)
    filter = either("filters", filters, "filter", filter)
    required("conv2d_transpose", value=value, filter=filter, output_shape=output_shape)
    with get_default_graph().name_scope(name or "conv2d_transpose") as scope:
        return conv2d_backprop_input(
            output_shape,
            filter,
            convert_to_tensor(value, name="value"),
            strides,
            padding,
            data_format=data_format,
            dilations=dilations,
            name=scope,
        )


@public("nn.atrous_conv2d")
def atrous_conv2d(
    value: Any, filters: Any, rate: int, padding: str, name: str | None = None
) -> Tensor:
    """``conv2d`` whose filter elements meet values ``rate`` apart; strides are 1.

    Yu and Koltun, "Multi-scale context aggregation by dilated convolutions" (2016), section 2.

    Args:
        value: ``[n, h, w, c]``; ``filters``: ``[kh, kw, c, outputs]``.

    Raises:
        ValueError: if shapes or padding do not fit, or ``rate`` is not positive.
        InvalidArgumentError: when run, if shapes known only then do not fit.
    """
    return convolution(value, filters, padding, dilation_rate=[rate, rate], name=name)


@public("nn.atrous_conv2d_transpose")
def atrous_conv2d_transpose(
    value: Any,
    filters: Any,
    output_shape: Any,
    rate: int,
    padding: str,
    name: str | None = None,
) -> Tensor:
    """The transpose of ``atrous_conv2d``: ``filters`` is ``[kh, kw, outputs, channels]``.

    The dilated convolution is that of Yu and Koltun, "Multi-scale context aggregation by dilated
    convolutions" (2016), section 2.

    Raises:
        ValueError: if shapes or padding do not fit, or ``rate`` is not positive.
    """
    if padding not in ("SAME", "VALID"):
        raise ValueError(f"padding must be either VALID or SAME: got {padding!r}")
    if rate < 1:
        raise ValueError(f"rate {rate} cannot be less than one")
    with get_default_graph().name_scope(name or "atrous_conv2d_transpose") as scope:
        return conv2d_backprop_input(
            output_shape, filters, value, 1, padding, dilations=rate, name=scope
        )


# -- one and three dimensions -------------------------------------------------------------------


@public("nn.conv1d")
def conv1d(
    value: Any = None,
    filters: Any = None,
    stride: Any = None,
    padding: Any = None,
    use_cudnn_on_gpu: bool | None = None,
    data_format: str | None = None,
    name: str | None = None,
    input: Any = None,
    dilations: Any = None,
) -> Tensor:
    """Convolution of rows ``[n, w, c]`` ("NWC") or ``[n, c, w]`` ("NCW").

    Args:
        filters: ``[k, c, outputs]``, of the type of ``value``.

    Raises:
        TypeError: if an argument is missing, or types differ.
        ValueError: for another format or padding, or if shapes do not fit.
    """
    value = either("input", input, "value", value)
    required("conv1d", value=value, filters=filters, padding=padding)
    if data_format not in (None, "NHWC", "NWC", "NCHW", "NCW"):
        raise ValueError(f'data_format must be "NWC" or "NCW", got {data_format!r}.')
    first = is_channels_first(data_format)
    with get_default_graph().name_scope(name or "conv1d"):
        axis = 2 if first else 1
        image = raw.ExpandDims(value, axis)
        result = raw.Conv2D(
            image,
            raw.ExpandDims(filters, 0),
            strides=_row_steps(stride, first, "stride"),
            padding=padding,
            use_cudnn_on_gpu=use_cudnn_on_gpu is not False,
            data_format="NCHW" if first else "NHWC",
            dilations=_row_steps(dilations, first, "dilations"),
        )
        return raw.Squeeze(result, squeeze_dims=[axis])


def _row_steps(value: Any, first: bool, name: str) -> list[int]:
    """Steps along a row, as those of an image of height 1."""
    steps = sequence(value, 1, first, name)
    at = 2 if first else 1
    return [*steps[:at], 1, *steps[at:]]


@public("nn.conv3d")
def conv3d(
    input: Any,
    filter: Any = None,
    strides: Any = None,
    padding: str | None = None,
    data_format: str = "NDHWC",
    dilations: Any = _ONES_3D,
    name: str | None = None,
    filters: Any = None,
) -> Tensor:
    """Convolution of volumes ``[n, d, h, w, c]`` with ``filter`` ``[kd, kh, kw, c, outputs]``.

    Raises:
        TypeError: if an argument is missing.
        ValueError: if shapes, strides and padding do not fit.

    >>> conv3d(zeros([1, 4, 4, 4, 2]), zeros([2, 2, 2, 2, 8]), [1] * 5, "VALID").shape.as_list()
    [1, 3, 3, 3, 8]
    """
    filter = either("filters", filters, "filter", filter)
    required("conv3d", filter=filter, padding=padding)
    attrs = _layout(strides, padding, data_format, dilations, 3)
    return raw.Conv3D(input, filter, **attrs, name=name)


@public("nn.conv3d_transpose")
def conv3d_transpose(
    value: Any,
    filter: Any = None,
    output_shape: Any = None,
    strides: Any = None,
    padding: str = "SAME",
    data_format: str = "NDHWC",
    name: str | None = None,
    input: Any = None,
    filters: Any = None,
    dilations: Any = None,
) -> Tensor:
    """The transpose of ``conv3d``: from ``value`` back to a volume of shape ``output_shape``.

    Raises:
        TypeError: if an argument is missing.
        ValueError: if shapes, strides and padding do not fit.
    """
    value = either("input", input, "value", value)
    filter = either("filters", filters, "filter", filter)
    required("conv3d_transpose", value=value, filter=filter, output_shape=output_shape)
    with get_default_graph().name_scope(name or "conv3d_transpose") as scope:
        attrs = _layout(strides, padding, data_format, dilations, 3)
        sizes = sizes_argument(output_shape, "output_shape")
        return raw.Conv3DBackpropInputV2(sizes, filter, value, **attrs, name=scope)


# -- any number of dimensions -------------------------------------------------------------------


@public("nn.convolution")
def convolution(
    input: Any,
    filter: Any = None,
    padding: Any = "VALID",
    strides: Any = None,
    dilation_rate: Any = None,
    name: str | None = None,
    data_format: str | None = None,
    filters: Any = None,
    dilations: Any = None,
) -> Tensor:
    """Convolution over one, two or three spatial dimensions, as the rank of the input says.

    Args:
        input: ``[n, ...spatial..., c]``, or ``[n, c, ...spatial...]`` if ``data_format`` starts
            with "NC".
        filter: ``[...spatial..., c, outputs]``.
        strides, dilation_rate: a number for each spatial dimension; only one of the two may
            be greater than 1.

    Raises:
        ValueError: if ranks, strides and dilations do not fit together.
    """
    filter = either("filters", filters, "filter", filter)
    dilation_rate = either("dilations", dilations, "dilation_rate", dilation_rate)
    required("convolution", filter=filter)
    with get_default_graph().name_scope(name or "convolution") as scope:
        input = convert_to_tensor(input, name="input")
        filter = convert_to_tensor(filter, input.dtype, name="filter")
        spatial = spatial_rank(input, filter)
        if padding not in ("SAME", "VALID") and not (spatial == 2 and isinstance(padding, list)):
            raise ValueError(f"padding must be either VALID or SAME: got {padding!r}")
        first = is_channels_first(data_format)
        steps = spatial_steps(strides, spatial, "strides")
        rates = spatial_steps(dilation_rate, spatial, "dilation_rate")
        if max(steps) > 1 and max(rates) > 1:
            raise ValueError(
                "strides > 1 not supported in conjunction with dilation_rate > 1: got strides "
                f"{steps} and dilation_rate {rates}"
            )
        if spatial == 1:
            return conv1d(input, filter, steps, padding, None, data_format, scope, None, rates)
        formats = ("NCHW", "NHWC") if spatial == 2 else ("NCDHW", "NDHWC")
        function: Any = conv2d if spatial == 2 else conv3d
        result: Tensor = function(
            input,
            filter,
            steps,
            padding,
            data_format=formats[0] if first else formats[1],
            dilations=rates,
            name=scope,
        )
        return result


def spatial_rank(input: Tensor, filter: Tensor | None = None) -> int:
    """How many spatial dimensions an input (or, if its rank is unknown, a filter) has.

    Raises:
        ValueError: if neither rank is known, or there are not one, two or three.
    """
    dims = input.dims
    if dims is None and filter is not None:
        dims = filter.dims
    if dims is None:
        raise ValueError("rank of input must be known: use set_shape.")
    if filter is not None and filter.dims is not None and len(filter.dims) != len(dims):
        raise ValueError(
            f"input and filter must have the same rank, but have shapes {shape_text(dims)} and "
            f"{shape_text(filter.dims)}"
        )
    if not 3 <= len(dims) <= 5:
        raise ValueError(
            f"input tensor must have rank 3, 4, or 5: received shape {shape_text(dims)}"
        )
    return len(dims) - 2


def spatial_steps(values: Any, spatial: int, name: str) -> list[int]:
    """A positive number for each spatial dimension; None stands for ones.

    Raises:
        ValueError: if there are more or fewer, or one is less than 1.
    """
    if values is None:
        return [1] * spatial
    steps = [int(v) for v in values] if hasattr(values, "__iter__") else [int(values)] * spatial
    if len(steps) != spatial:
        raise ValueError(f"{name} must have {spatial} elements, got {steps}")
    if min(steps) < 1:
        raise ValueError(f"all values of {name} must be positive, got {steps}")
    return steps


# -- depthwise ----------------------------------------------------------------------------------


@public("nn.depthwise_conv2d")
def depthwise_conv2d(
    input: Any,
    filter: Any,
    strides: Any,
    padding: Any,
    rate: Any = None,
    name: str | None = None,
    data_format: str | None = None,
    dilations: Any = None,
) -> Tensor:
    """Each channel convolved by itself: channel ``c`` with ``filter[:, :, c, :]``.

    Howard et al., "MobileNets" (2017), section 3.1.

    Args:
        filter: ``[kh, kw, c, multiplier]``; the result has ``c * multiplier`` channels.
        rate: dilation of height and width; greater than 1 only with strides of 1.

    Raises:
        ValueError: if shapes and padding do not fit, or strides and rate are above 1.
    """
    rate = either("dilations", dilations, "rate", rate)
    with get_default_graph().name_scope(name or "depthwise") as scope:
        attrs = _layout(strides, padding, data_format, rate)
        if max(attrs["dilations"]) > 1 and max(attrs["strides"]) > 1:
            raise ValueError(
                "strides > 1 not supported in conjunction with rate > 1: got strides "
                f"{attrs['strides']} and rate {rate}"
            )
        return raw.DepthwiseConv2dNative(input, filter, **attrs, name=scope)


@public("nn.depthwise_conv2d_native")
def depthwise_conv2d_native(
    input: Any,
    filter: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NHWC",
    dilations: Any = _ONES_2D,
    name: str | None = None,
) -> Tensor:
    """As ``depthwise_conv2d``, with its shapes, and strides and dilations for every dimension.

    Raises:
        ValueError: if shapes, strides and padding do not fit.
    """
    attrs = _layout(strides, padding, data_format, dilations)
    return raw.DepthwiseConv2dNative(input, filter, **attrs, name=name)


@public("nn.depthwise_conv2d_native_backprop_input")
def depthwise_conv2d_native_backprop_input(
    input_sizes: Any,
    filter: Any,
    out_backprop: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NHWC",
    dilations: Any = _ONES_2D,
    name: str | None = None,
) -> Tensor:
    """The gradient of the depthwise convolution for its input, of shape ``input_sizes``.

    Raises:
        ValueError: if shapes, strides and padding do not fit.
    """
    attrs = _layout(strides, padding, data_format, dilations)
    sizes = sizes_argument(input_sizes, "input_sizes")
    return raw.DepthwiseConv2dNativeBackpropInput(sizes, filter, out_backprop, **attrs, name=name)


@public("nn.depthwise_conv2d_native_backprop_filter")
def depthwise_conv2d_native_backprop_filter(
    input: Any,
    filter_sizes: Any,
    out_backprop: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NHWC",
    dilations: Any = _ONES_2D,
    name: str | None = None,
) -> Tensor:
    """The gradient of the depthwise convolution for its filter, of shape ``filter_sizes``.

    Raises:
        ValueError: if shapes, strides and padding do not fit.
    """
    attrs = _layout(strides, padding, data_format, dilations)
    sizes = sizes_argument(filter_sizes, "filter_sizes")
    return raw.DepthwiseConv2dNativeBackpropFilter(input, sizes, out_backprop, **attrs, name=name)


@public("nn.separable_conv2d")
def separable_conv2d(
    input: Any,
    depthwise_filter: Any,
    pointwise_filter: Any,
    strides: Any,
    padding: Any,
    rate: Any = None,
    name: str | None = None,
    data_format: str | None = None,
    dilations: Any = None,
) -> Tensor:
    """A depthwise convolution, then one of 1 x 1 that mixes the channels.

    Chollet, "Xception: deep learning with depthwise separable convolutions" (2017).

    Args:
        depthwise_filter: ``[kh, kw, c, multiplier]``.
        pointwise_filter: ``[1, 1, c * multiplier, outputs]``.

    Raises:
        ValueError: if the shapes do not fit.
    """
    rate = either("dilations", dilations, "rate", rate)
    with get_default_graph().name_scope(name or "separable_conv2d") as scope:
        point = convert_to_tensor(pointwise_filter, name="pointwise_filter")
        if point.dims is not None and tuple(point.dims[:2]) not in ((1, 1), (None, None)):
            raise ValueError(
                "pointwise_filter must have height and width 1, but has shape "
                f"{shape_text(point.dims)}"
            )
        between = depthwise_conv2d(
            input, depthwise_filter, strides, padding, rate, None, data_format
        )
        return conv2d(between, point, 1, "VALID", data_format=data_format or "NHWC", name=scope)
