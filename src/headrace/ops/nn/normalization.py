"""Normalisation ops: over neighbouring channels, and fused over a batch."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from headrace.graph import dtypes
from headrace.graph.shapes import merge_static, shape_text
from headrace.graph.tensor import Dims, Operation, Tensor
from headrace.ops.core.build import raw
from headrace.ops.core.registry import define_op
from headrace.ops.core.traits import Traits
from headrace.ops.math.cast import cast_to
from headrace.ops.nn import normalization_kernels
from headrace.ops.nn.windows import FORMATS_2D, checked_rank, is_channels_first

__all__: list[str] = []

Grads = list[Tensor | None]


# -- local response normalisation ---------------------------------------------------------------

_LRN = (
    "depth_radius: int = 5, bias: float = 1.0, alpha: float = 1.0, beta: float = 0.5, "
    "T: {float16, bfloat16, float32} = float32"
)


def _lrn_shape(op: Operation) -> list[Dims]:
    dims: Dims = None
    for tensor in op.inputs:
        dims = merge_static(dims, checked_rank(tensor.dims, 4, "the input"))
    return [dims]


def _lrn_gradient(op: Operation, g: Tensor) -> Grads:
    attrs = {name: op.attrs[name] for name in ("depth_radius", "bias", "alpha", "beta")}
    return [raw.LRNGrad(g, op.inputs[0], op.outputs[0], **attrs)]


def _lrn(x: Any, *, depth_radius: int, bias: float, alpha: float, beta: float) -> Any:
    return normalization_kernels.lrn(
        x, depth_radius=depth_radius, bias=bias, alpha=alpha, beta=beta
    )


def _lrn_grad(
    g: Any, x: Any, y: Any, *, depth_radius: int, bias: float, alpha: float, beta: float
) -> Any:
    return normalization_kernels.lrn_grad(
        g, x, y, depth_radius=depth_radius, bias=bias, alpha=alpha, beta=beta
    )


define_op(
    "LRN(input: T) -> output: T",
    attrs=_LRN,
    shape=_lrn_shape,
    kernel=_lrn,
    gradient=_lrn_gradient,
)
define_op(
    "LRNGrad(input_grads: T, input_image: T, output_image: T) -> output: T",
    attrs=_LRN,
    shape=_lrn_shape,
    kernel=_lrn_grad,
)


# -- fused batch normalisation ------------------------------------------------------------------


def _rank(op: Operation) -> int:
    return len(op.attrs["data_format"])


def _channel_axis(op: Operation) -> int:
    return 1 if is_channels_first(op.attrs["data_format"]) else _rank(op) - 1


def _channels(op: Operation, x: Dims, parameters: list[tuple[str, Tensor]]) -> Dims:
    """``[channels]``, as far as the input and the parameters tell.

    Raises:
        ValueError: if they disagree.
    """
    found = checked_rank(x, _rank(op), "the input")[_channel_axis(op)]
    for name, tensor in parameters:
        size = checked_rank(tensor.dims, 1, name)[0]
        if found is not None and size is not None and size != found:
            raise ValueError(
                f"Dimensions must be equal, but are {found} and {size}: {name} must have one "
                f"entry for each channel of an input of shape {shape_text(x)}."
            )
        found = size if found is None else found
    return (found,)


def _with_channels(op: Operation, x: Dims, channels: Dims) -> Dims:
    dims = list(checked_rank(x, _rank(op), "the input"))
    dims[_channel_axis(op)] = channels[0]  # type: ignore[index]
    return tuple(dims)


def _norm_shape(op: Operation) -> list[Dims]:
    x, scale, offset, mean, variance = op.inputs
    parameters = [("scale", scale), ("offset", offset)]
    if not op.attrs["is_training"] or op.attrs["exponential_avg_factor"] != 1.0:
        parameters += [("mean", mean), ("variance", variance)]
    channels = _channels(op, x.dims, parameters)
    shapes = [_with_channels(op, x.dims, channels), *[channels] * 4]
    return shapes if len(op.op_def.outputs) == 5 else [*shapes, ()]


def _norm_grad_shape(op: Operation) -> list[Dims]:
    dy, x, *parameters = op.inputs
    both = merge_static(dy.dims, x.dims)
    names = ("scale", "reserve_space_1", "reserve_space_2")
    channels = _channels(op, both, list(zip(names, parameters[:3], strict=True)))
    return [_with_channels(op, both, channels), channels, channels, (0,), (0,)]


def _norm(
    x: Any,
    scale: Any,
    offset: Any,
    mean: Any,
    variance: Any,
    *,
    epsilon: float,
    exponential_avg_factor: float,
    data_format: str,
    is_training: bool,
) -> Any:
    return tuple(
        normalization_kernels.fused_batch_norm(
            x,
            scale,
            offset,
            mean,
            variance,
            epsilon=epsilon,
            exponential_avg_factor=exponential_avg_factor,
            data_format=data_format,
            is_training=is_training,
        )
    )


def _norm_v3(
    x: Any,
    scale: Any,
    offset: Any,
    mean: Any,
    variance: Any,
    *,
    epsilon: float,
    exponential_avg_factor: float,
    data_format: str,
    is_training: bool,
) -> Any:
    results = _norm(
        x,
        scale,
        offset,
        mean,
        variance,
        epsilon=epsilon,
        exponential_avg_factor=exponential_avg_factor,
        data_format=data_format,
        is_training=is_training,
    )
    # The last output is scratch of one accelerator library; nothing reads it here.
    return (*results, jnp.zeros((), scale.dtype))


def _norm_grad(
    dy: Any,
    x: Any,
    scale: Any,
    reserve_1: Any,
    reserve_2: Any,
    *,
    epsilon: float,
    data_format: str,
    is_training: bool,
) -> Any:
    results = normalization_kernels.fused_batch_norm_grad(
        dy,
        x,
        scale,
        reserve_1,
        reserve_2,
        epsilon=epsilon,
        data_format=data_format,
        is_training=is_training,
    )
    empty = jnp.zeros((0,), scale.dtype)
    return (*results, empty, empty)


def _norm_grad_v3(
    dy: Any,
    x: Any,
    scale: Any,
    reserve_1: Any,
    reserve_2: Any,
    reserve_3: Any,
    *,
    epsilon: float,
    data_format: str,
    is_training: bool,
) -> Any:
    return _norm_grad(
        dy,
        x,
        scale,
        reserve_1,
        reserve_2,
        epsilon=epsilon,
        data_format=data_format,
        is_training=is_training,
    )


def _norm_gradient(op: Operation, grad: Tensor, *ignored: Any) -> Grads:
    """For the normalised values; the averages count as constants, as in TensorFlow."""
    version = op.type.removeprefix("FusedBatchNorm")
    x, scale, _, *averages = op.inputs
    saved = op.outputs[3:] if op.attrs["is_training"] else (*averages, *op.outputs[5:])
    attrs = {name: op.attrs[name] for name in ("epsilon", "data_format", "is_training")}
    if version == "V3":
        scale, saved = (
            cast_to(scale, dtypes.float32),
            tuple(cast_to(t, dtypes.float32) for t in saved),
        )
    build = getattr(raw, f"FusedBatchNormGrad{version}")
    found = build(grad, x, scale, *saved, **attrs)[:3]
    return [*[cast_to(g, t.dtype) for g, t in zip(found, op.inputs, strict=False)], None, None]


def _norm_grad_gradient(op: Operation, *grads: Tensor) -> Grads:
    """The second derivative, for the gradients, the input and the scale."""
    scale = op.inputs[2]
    wide = [cast_to(t, scale.dtype) for t in (*op.inputs[:2], *grads[:3])]
    dy, x, to_x, to_scale, to_offset = wide
    to_scale, to_offset, factor = (_spread(op, t) for t in (to_scale, to_offset, scale))
    derive = _through_training if op.attrs["is_training"] else _through_inference
    found = derive(op, (dy, x, factor), (to_x, to_scale, to_offset))
    for_scale = raw.Sum(found[2], _averaged(op))
    return [
        cast_to(found[0], op.inputs[0].dtype),
        cast_to(found[1], op.inputs[1].dtype),
        for_scale,
        *[None] * (len(op.inputs) - 3),
    ]


def _averaged(op: Operation) -> list[int]:
    """The axes over which mean and variance are taken: all but the channels."""
    return [i for i in range(_rank(op)) if i != _channel_axis(op)]


def _spread(op: Operation, vector: Tensor) -> Tensor:
    """``[channels]`` in a shape that broadcasts against the input."""
    if not is_channels_first(op.attrs["data_format"]):
        return vector
    return raw.Reshape(vector, [-1] + [1] * (_rank(op) - 2))


_Three = tuple[Tensor, Tensor, Tensor]


def _through_training(op: Operation, operands: _Three, grads: _Three) -> _Three:
    """Of ``dx = s r P(dy), ds = sum(dy n), db = sum(dy)``, where ``n = (x - mean) r`` are the
    normalised values, r their scale, and ``P(v) = v - mean(v) - n mean(v n)`` is symmetric.

    The last result is still to be summed over all but the channels.
    """
    dy, x, scale = operands
    to_x, to_scale, to_offset = grads
    axes, mul, sub = _averaged(op), raw.Mul, raw.Sub

    def mean(t: Tensor) -> Tensor:
        return raw.Mean(t, axes, keep_dims=True)

    centred = sub(x, mean(x))
    inverse = raw.Rsqrt(raw.AddV2(mean(raw.Square(centred)), op.attrs["epsilon"]))
    normal = mul(centred, inverse)

    def project(t: Tensor) -> Tensor:
        return sub(sub(t, mean(t)), mul(normal, mean(mul(t, normal))))

    slope = mul(scale, inverse)
    projected = project(to_x)
    for_dy = raw.AddN([mul(slope, projected), raw.AddV2(mul(to_scale, normal), to_offset)])
    across = raw.AddV2(mul(to_x, mean(mul(dy, normal))), mul(dy, mean(mul(to_x, normal))))
    to_normal = sub(mul(to_scale, dy), mul(slope, across))
    # r also stands before P: its derivative is -r^2 n / count
    direct = mul(mul(mul(slope, inverse), normal), mean(mul(projected, dy)))
    for_x = sub(mul(inverse, project(to_normal)), direct)
    return for_dy, for_x, mul(inverse, mul(to_x, project(dy)))


def _through_inference(op: Operation, operands: _Three, grads: _Three) -> _Three:
    """The same where mean and variance are constants."""
    dy, x, scale = operands
    to_x, to_scale, to_offset = grads
    mean, variance = (_spread(op, t) for t in op.inputs[3:5])
    inverse = raw.Rsqrt(raw.AddV2(variance, op.attrs["epsilon"]))
    normal = raw.Mul(raw.Sub(x, mean), inverse)
    for_dy = raw.AddN(
        [
            raw.Mul(to_x, raw.Mul(scale, inverse)),
            raw.AddV2(raw.Mul(to_scale, normal), to_offset),
        ]
    )
    for_x = raw.Mul(raw.Mul(dy, inverse), to_scale)
    return for_dy, for_x, raw.Mul(inverse, raw.Mul(to_x, dy))


def _define(version: str, kernels: tuple[Any, Any], formats: str, extra: str) -> None:
    """One version of the op and of its gradient."""
    u = "U" if version else "T"
    types = "T: {float32}"
    grad_types = types
    if version:
        types = "T: {float16, bfloat16, float32}, U: {float32}"
        grad_types = types
    if version == "V3":
        types = "T: {float16, bfloat16, float32}, U: {bfloat16, float32}"
    common = f"epsilon: float = 0.0001, data_format: {formats}, is_training: bool = True"
    define_op(
        f"FusedBatchNorm{version}(x: T, scale: {u}, offset: {u}, mean: {u}, variance: {u}) -> "
        f"(y: T, batch_mean: {u}, batch_variance: {u}, reserve_space_1: {u}, "
        f"reserve_space_2: {u}{extra and f', reserve_space_3: {u}'})",
        attrs=f"{types}, exponential_avg_factor: newer float = 1.0, {common}",
        shape=_norm_shape,
        kernel=kernels[0],
        gradient=_norm_gradient,
    )
    scale = "float32" if version else "T"
    last = ("4", "5") if version == "V3" else ("3", "4")
    define_op(
        f"FusedBatchNormGrad{version}(y_backprop: T, x: T, scale: {scale}, reserve_space_1: {u}, "
        f"reserve_space_2: {u}{extra and f', reserve_space_3: {u}'}) -> (x_backprop: T, "
        f"scale_backprop: {u}, offset_backprop: {u}, reserve_space_{last[0]}: {u}, "
        f"reserve_space_{last[1]}: {u})",
        attrs=f"{grad_types}, {common}",
        shape=_norm_grad_shape,
        kernel=kernels[1],
        gradient=_norm_grad_gradient,
        traits=Traits(stated_outputs=3),
    )


_define("", (_norm, _norm_grad), FORMATS_2D, "")
_define("V2", (_norm, _norm_grad), FORMATS_2D, "")
_ANY_FORMAT = "{'NHWC', 'NCHW', 'NDHWC', 'NCDHW'} = 'NHWC'"
_define("V3", (_norm_v3, _norm_grad_v3), _ANY_FORMAT, "reserve_space_3")
