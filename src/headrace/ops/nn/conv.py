"""Convolution ops: plain in two and three dimensions, depthwise, and greyscale dilation."""

from __future__ import annotations

from typing import Any

from headrace.graph.shapes import compatible_static, num_elements_static, shape_text
from headrace.graph.tensor import Dims, Operation, Tensor
from headrace.graph.value_graph import is_built
from headrace.ops.core import flops as counts
from headrace.ops.core.array_util import shape_tensor
from headrace.ops.core.build import raw
from headrace.ops.core.registry import define_op
from headrace.ops.core.static import static_shape
from headrace.ops.core.traits import Batch, Traits
from headrace.ops.nn import conv_kernels, dilation_kernels
from headrace.ops.nn.windows import (
    FLOATS,
    FORMATS_2D,
    FORMATS_3D,
    channel_axis,
    checked_rank,
    checked_steps,
    is_channels_first,
    on_platform,
    window_size,
)

__all__: list[str] = []

Grads = list[Tensor | None]
_Sizes = tuple[int | None, ...]


# -- shapes -------------------------------------------------------------------------------------


def _spatial_axes(rank: int, data_format: str) -> range:
    return range(2, rank) if is_channels_first(data_format) else range(1, rank - 1)


def _check_attrs(op: Operation, rank: int) -> None:
    attrs = op.attrs
    fixed = (0, channel_axis(rank, attrs["data_format"]))
    checked_steps(attrs["strides"], rank, "strides", op.type, fixed)
    checked_steps(attrs["dilations"], rank, "dilations", op.type, fixed)
    paddings = attrs.get("explicit_paddings", ())
    if attrs["padding"] != "EXPLICIT":
        if paddings:
            raise ValueError(
                f"explicit_paddings attribute must be empty if the padding attribute is "
                f"not EXPLICIT, but {op.type} got {list(paddings)}"
            )
        return
    if len(paddings) != 2 * rank:
        raise ValueError(
            f"explicit_paddings attribute must contain {2 * rank} values, but got: {len(paddings)}"
        )
    if min(paddings) < 0:
        raise ValueError(f"All elements of explicit_paddings must be nonnegative: {paddings}")
    if any(paddings[2 * axis + side] for axis in fixed for side in (0, 1)):
        raise ValueError(
            "Nonzero explicit padding in the batch or depth dimensions is not supported: "
            f"{list(paddings)}"
        )


def _windows(op: Operation, sizes: _Sizes, window: _Sizes) -> _Sizes:
    """The spatial sizes of the output, in order."""
    attrs, rank = op.attrs, len(sizes)
    flat = attrs.get("explicit_paddings") or (0,) * (2 * rank)
    axes = _spatial_axes(rank, attrs["data_format"])
    return tuple(
        window_size(
            sizes[axis],
            window[i],
            attrs["strides"][axis],
            attrs["dilations"][axis],
            attrs["padding"],
            (flat[2 * axis], flat[2 * axis + 1]),
            must_fit="Backprop" not in op.type and is_built(op),
        )
        for i, axis in enumerate(axes)
    )


def _laid_out(batch: int | None, channels: int | None, spatial: _Sizes, data_format: str) -> _Sizes:
    if is_channels_first(data_format):
        return (batch, channels, *spatial)
    return (batch, *spatial, channels)


def _output_dims(op: Operation, x: Dims, w: Dims, rank: int, depthwise: bool) -> _Sizes:
    """The shape of the convolution of an input ``x`` with a filter ``w``."""
    _check_attrs(op, rank)
    x, w = checked_rank(x, rank, "the input"), checked_rank(w, rank, "the filter")
    data_format = op.attrs["data_format"]
    channels = x[channel_axis(rank, data_format)]
    outputs = _depthwise_outputs(channels, w) if depthwise else _outputs(channels, w)
    return _laid_out(x[0], outputs, _windows(op, x, w), data_format)


def _outputs(channels: int | None, w: _Sizes) -> int | None:
    depth, outputs = w[-2], w[-1]
    if channels is None or depth is None:
        return outputs
    if depth <= 0 or channels % depth:
        raise ValueError(
            f"Depth of input ({channels}) is not a multiple of input depth of filter ({depth}) "
            f"for a filter of shape {shape_text(w)}"
        )
    groups = channels // depth
    if outputs is not None and groups and outputs % groups:
        raise ValueError(
            f"Depth of output ({outputs}) is not a multiple of the number of groups ({groups})"
        )
    return outputs


def _depthwise_outputs(channels: int | None, w: _Sizes) -> int | None:
    depth, multiplier = w[-2], w[-1]
    if channels is not None and depth is not None and channels != depth:
        raise ValueError(
            f"Dimensions must be equal, but are {channels} and {depth}: the input has {channels} "
            f"channels, the depthwise filter {shape_text(w)} has {depth}."
        )
    known = channels if depth is None else depth
    return None if known is None or multiplier is None else known * multiplier


def _forward_shape(rank: int, depthwise: bool) -> Any:
    def shape(op: Operation) -> list[Dims]:
        x, w = op.inputs
        return [_output_dims(op, x.dims, w.dims, rank, depthwise)]

    return shape


def _check_backprop(op: Operation, x: Dims, w: Dims, dy: Dims, rank: int, depthwise: bool) -> None:
    """The gradient must have the shape of the convolution of ``x`` and ``w``."""
    want = _output_dims(op, x, w, rank, depthwise)
    if not compatible_static(want, checked_rank(dy, rank, "out_backprop")):
        raise ValueError(
            f"out_backprop has shape {shape_text(dy)}, but the convolution of an input of shape "
            f"{shape_text(x)} with a filter of shape {shape_text(w)} has {shape_text(want)}."
        )


def _input_grad_shape(rank: int, depthwise: bool) -> Any:
    def shape(op: Operation) -> list[Dims]:
        sizes, w, dy = static_shape(op.inputs[0]), op.inputs[1].dims, op.inputs[2].dims
        if sizes is not None and len(sizes) == rank - 2:  # batch and channels are left out
            batch, depth = (dy or (None,))[0], (w or (None, None))[-2]
            sizes = _laid_out(batch, depth, sizes, op.attrs["data_format"])
        sizes = checked_rank(sizes, rank, "input_sizes")
        _check_backprop(op, sizes, w, dy, rank, depthwise)
        return [sizes if sizes[0] is not None or dy is None else (dy[0], *sizes[1:])]

    return shape


def _filter_grad_shape(rank: int, depthwise: bool) -> Any:
    def shape(op: Operation) -> list[Dims]:
        x, sizes, dy = op.inputs[0].dims, static_shape(op.inputs[1]), op.inputs[2].dims
        sizes = checked_rank(sizes, rank, "filter_sizes")
        _check_backprop(op, x, sizes, dy, rank, depthwise)
        return [sizes]

    return shape


def _cost(filter_of: Any, output_of: Any, per_output: slice) -> Any:
    """Two operations for each multiplication.

    All three passes multiply every output element with the filter sizes ``per_output``.
    """

    def cost(op: Operation) -> float:
        w = filter_of(op).dims
        outputs = num_elements_static(output_of(op).dims)
        weights = None if w is None else num_elements_static(w[per_output])
        return 0.0 if outputs is None or weights is None else 2.0 * outputs * weights

    return cost


# -- definitions --------------------------------------------------------------------------------

_COPIED = (
    "strides",
    "padding",
    "explicit_paddings",
    "data_format",
    "dilations",
    "use_cudnn_on_gpu",
)


def _same_attrs(op: Operation) -> dict[str, Any]:
    return {name: op.attrs[name] for name in _COPIED if name in op.attrs}


def _gradients_of(forward: str, input_grad: str, filter_grad: str) -> tuple[Any, Any, Any]:
    """The gradient rules of a convolution and of its two gradients.

    Each of the three is linear in two operands, and the other two are its gradients.
    """

    def of_input(op: Operation, shape: Any, w: Any, dy: Any) -> Tensor:
        result: Tensor = getattr(raw, input_grad)(shape, w, dy, **_same_attrs(op))
        return result

    def of_filter(op: Operation, x: Any, shape: Any, dy: Any) -> Tensor:
        result: Tensor = getattr(raw, filter_grad)(x, shape, dy, **_same_attrs(op))
        return result

    def again(op: Operation, x: Any, w: Any) -> Tensor:
        result: Tensor = getattr(raw, forward)(x, w, **_same_attrs(op))
        return result

    def forward_gradient(op: Operation, g: Tensor) -> Grads:
        x, w = op.inputs
        return [of_input(op, shape_tensor(x), w, g), of_filter(op, x, shape_tensor(w), g)]

    def input_gradient(op: Operation, g: Tensor) -> Grads:
        _, w, dy = op.inputs
        return [None, of_filter(op, g, shape_tensor(w), dy), again(op, g, w)]

    def filter_gradient(op: Operation, g: Tensor) -> Grads:
        x, _, dy = op.inputs
        return [of_input(op, shape_tensor(x), g, dy), None, again(op, x, g)]

    return forward_gradient, input_gradient, filter_gradient


def _define_family(
    names: tuple[str, str, str],
    kernels: tuple[Any, Any, Any],
    attrs: str,
    rank: int,
    *,
    depthwise: bool = False,
    sizes: str = "int32",
    types: str = FLOATS,
    flops: tuple[Any, Any, Any] = (None, None, None),
) -> None:
    """A convolution and its gradients for the input and for the filter."""
    forward, input_grad, filter_grad = names
    integers = types.replace("}", ", int32}") if rank == 4 and not depthwise else types

    forward_gradient, input_gradient, filter_gradient = _gradients_of(*names)
    taps = slice(0, -2 if depthwise else -1)
    shape_type = ", Tshape: {int32, int64} = int32" if sizes == "Tshape" else ""
    define_op(
        f"{forward}(input: T, filter: T) -> output: T",
        attrs=f"T: {integers}, {attrs}",
        shape=_forward_shape(rank, depthwise),
        kernel=on_platform(kernels[0]),
        gradient=forward_gradient,
        cost=_cost(lambda op: op.inputs[1], lambda op: op.outputs[0], taps),
        traits=Traits(flops=flops[0], batch=Batch((0,))),
    )
    define_op(
        f"{input_grad}(input_sizes: {sizes}, filter: T, out_backprop: T) -> output: T",
        attrs=f"T: {types}, {attrs}{shape_type}",
        shape=_input_grad_shape(rank, depthwise),
        kernel=on_platform(kernels[1]),
        gradient=input_gradient,
        static=(0,),
        cost=_cost(lambda op: op.inputs[1], lambda op: op.inputs[2], taps),
        traits=Traits(flops=flops[1], batch=Batch((2,), shape=0)),
    )
    define_op(
        f"{filter_grad}(input: T, filter_sizes: int32, out_backprop: T) -> output: T",
        attrs=f"T: {types}, {attrs}",
        shape=_filter_grad_shape(rank, depthwise),
        kernel=on_platform(kernels[2]),
        gradient=filter_gradient,
        static=(1,),
        cost=_cost(lambda op: op.outputs[0], lambda op: op.inputs[2], taps),
        traits=Traits(flops=flops[2], batch=Batch((0, 2), adds_up=True)),
    )


_EXPLICIT = (
    "strides: list(int), padding: {'SAME', 'VALID', 'EXPLICIT'}, "
    f"explicit_paddings: list(int) = [], data_format: {FORMATS_2D}, "
    "dilations: list(int) = [1, 1, 1, 1]"
)

#: Of 2-d and 3-d convolutions alike.
_KERNELS = (
    conv_kernels.convolution,
    conv_kernels.convolution_backprop_input,
    conv_kernels.convolution_backprop_filter,
)
_define_family(
    ("Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter"),
    _KERNELS,
    f"use_cudnn_on_gpu: bool = True, {_EXPLICIT}",
    4,
    flops=(counts.convolution, counts.convolution_of_input, counts.convolution_of_filter),
)
_define_family(
    (
        "DepthwiseConv2dNative",
        "DepthwiseConv2dNativeBackpropInput",
        "DepthwiseConv2dNativeBackpropFilter",
    ),
    (
        conv_kernels.depthwise_conv2d_native,
        conv_kernels.depthwise_conv2d_native_backprop_input,
        conv_kernels.depthwise_conv2d_native_backprop_filter,
    ),
    _EXPLICIT.replace("explicit_paddings:", "explicit_paddings: newer"),
    4,
    depthwise=True,
    flops=(counts.depthwise, None, None),
)
_define_family(
    ("Conv3D", "Conv3DBackpropInputV2", "Conv3DBackpropFilterV2"),
    _KERNELS,
    "strides: list(int) >= 5, padding: {'SAME', 'VALID'}, "
    f"data_format: {FORMATS_3D}, dilations: list(int) = [1, 1, 1, 1, 1]",
    5,
    sizes="Tshape",
)


# -- greyscale dilation -------------------------------------------------------------------------


def _dilation_dims(op: Operation) -> _Sizes:
    attrs = op.attrs
    x = checked_rank(op.inputs[0].dims, 4, "the input")
    w = checked_rank(op.inputs[1].dims, 3, "the filter")
    for what in ("strides", "rates"):
        checked_steps(attrs[what], 4, what, op.type, (0, 3))
    if x[3] is not None and w[2] is not None and x[3] != w[2]:
        raise ValueError(
            f"Dimensions must be equal, but are {x[3]} and {w[2]}: input {shape_text(x)} and "
            f"filter {shape_text(w)} must have the same depth."
        )
    sizes = [
        window_size(x[i], w[i - 1], attrs["strides"][i], attrs["rates"][i], attrs["padding"])
        for i in (1, 2)
    ]
    return (x[0], *sizes, w[2] if x[3] is None else x[3])


def _dilation_gradient(op: Operation, g: Tensor) -> Grads:
    attrs = {name: op.attrs[name] for name in ("strides", "rates", "padding")}
    x, w = op.inputs
    return [
        raw.Dilation2DBackpropInput(x, w, g, **attrs),
        raw.Dilation2DBackpropFilter(x, w, g, **attrs),
    ]


_DILATION = "T: real, strides: list(int) >= 4, rates: list(int) >= 4, padding: {'SAME', 'VALID'}"

define_op(
    "Dilation2D(input: T, filter: T) -> output: T",
    attrs=_DILATION,
    shape=lambda op: [_dilation_dims(op)],
    kernel=dilation_kernels.dilation2d,
    gradient=_dilation_gradient,
    traits=Traits(flops=counts.depthwise),
)


def _dilation_grad_shape(position: int) -> Any:
    def shape(op: Operation) -> list[Dims]:
        want, dy = _dilation_dims(op), op.inputs[2].dims
        if not compatible_static(want, dy):
            raise ValueError(
                f"out_backprop has shape {shape_text(dy)}, but the dilation has {shape_text(want)}."
            )
        return [op.inputs[position].dims]

    return shape


define_op(
    "Dilation2DBackpropInput(input: T, filter: T, out_backprop: T) -> in_backprop: T",
    attrs=_DILATION,
    shape=_dilation_grad_shape(0),
    kernel=dilation_kernels.dilation2d_backprop_input,
)
define_op(
    "Dilation2DBackpropFilter(input: T, filter: T, out_backprop: T) -> filter_backprop: T",
    attrs=_DILATION,
    shape=_dilation_grad_shape(1),
    kernel=dilation_kernels.dilation2d_backprop_filter,
)
