"""Pooling ops: maximum and average over windows, in two and three dimensions."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from headrace.graph.shapes import compatible_static, merge_static, shape_text
from headrace.graph.tensor import Dims, Operation, Tensor
from headrace.graph.value_graph import is_built
from headrace.ops.core import flops
from headrace.ops.core.array_util import shape_tensor
from headrace.ops.core.build import raw
from headrace.ops.core.registry import define_op
from headrace.ops.core.static import static_shape, static_value
from headrace.ops.core.traits import Batch, Traits
from headrace.ops.nn import pool_kernels
from headrace.ops.nn.windows import (
    FLOATS,
    FORMATS_2D,
    FORMATS_3D,
    checked_rank,
    checked_steps,
    on_platform,
    window_size,
)

__all__: list[str] = []

Grads = list[Tensor | None]


# -- shapes -------------------------------------------------------------------------------------


def pooled_dims(op: Operation, x: Dims, ksize: Any, strides: Any) -> Dims:
    """The shape of a pool of an input of shape ``x``; windows cover every dimension alike."""
    rank = len(ksize)
    checked_steps(ksize, rank, "ksize", op.type)
    checked_steps(strides, rank, "strides", op.type, (0,))
    attrs = op.attrs
    if ksize[0] != 1:
        raise ValueError(f"Pooling is not yet supported on the batch dimension: ksize {ksize}.")
    flat = attrs.get("explicit_paddings", ())
    if bool(flat) != (attrs["padding"] == "EXPLICIT") or len(flat) not in (0, 2 * rank):
        raise ValueError(
            f"{op.type}: explicit_paddings must have {2 * rank} values with EXPLICIT padding and "
            f"none otherwise, but padding is {attrs['padding']} and it has {len(flat)}."
        )
    return tuple(
        size
        if ksize[axis] == strides[axis] == 1  # windows of one: the batch, which may be empty
        else window_size(
            size,
            ksize[axis],
            strides[axis],
            1,
            attrs["padding"],
            (flat[2 * axis], flat[2 * axis + 1]) if flat else (0, 0),
            must_fit="Grad" not in op.type and is_built(op),
        )
        for axis, size in enumerate(checked_rank(x, rank, "the input"))
    )


def _pool_shape(op: Operation) -> list[Dims]:
    attrs = op.attrs
    _check_data_lengths(op)
    y = pooled_dims(op, op.inputs[0].dims, attrs["ksize"], attrs["strides"])
    return [y] * len(op.op_def.outputs)


def _check_data_lengths(op: Operation) -> None:
    rank = 5 if "3D" in op.type else 4
    for name in ("ksize", "strides"):
        if len(op.attrs[name]) != rank:
            raise ValueError(
                f"{op.type} requires the {name} attribute to contain {rank} values, but got: "
                f"{len(op.attrs[name])}"
            )


def _check_like(what: str, dims: Dims, want: Dims) -> None:
    if not compatible_static(dims, want):
        raise ValueError(
            f"{what} has shape {shape_text(dims)}, but must have shape {shape_text(want)}."
        )


def _max_grad_shape(op: Operation) -> list[Dims]:
    x, y, g = (t.dims for t in op.inputs)
    _check_data_lengths(op)
    want = pooled_dims(op, x, op.attrs["ksize"], op.attrs["strides"])
    _check_like("orig_output", y, want)
    _check_like("grad", g, want)
    return [x]


def _max_grad_grad_shape(op: Operation) -> list[Dims]:
    x, y, g = (t.dims for t in op.inputs)
    _check_data_lengths(op)
    _check_like("grad", g, x)
    want = pooled_dims(op, merge_static(x, g), op.attrs["ksize"], op.attrs["strides"])
    _check_like("orig_output", y, want)
    return [merge_static(want, y)]


def _average_grad_shape(op: Operation) -> list[Dims]:
    _check_data_lengths(op)
    sizes = static_shape(op.inputs[0])
    rank = len(op.attrs["ksize"])
    want = pooled_dims(op, sizes, op.attrs["ksize"], op.attrs["strides"])
    _check_like("grad", op.inputs[1].dims, want)
    return [checked_rank(sizes, rank, "orig_input_shape")]


def _argmax_grad_shape(op: Operation) -> list[Dims]:
    x, g, argmax = (t.dims for t in op.inputs)
    want = pooled_dims(op, x, op.attrs["ksize"], op.attrs["strides"])
    _check_like("grad", g, want)
    _check_like("argmax", argmax, want)
    return [x]


# -- gradients ----------------------------------------------------------------------------------

_COPIED = ("ksize", "strides", "padding", "explicit_paddings", "data_format")


def _same_attrs(op: Operation, names: tuple[str, ...] = _COPIED) -> dict[str, Any]:
    return {name: op.attrs[name] for name in names if name in op.attrs}


def _max_gradient(grad_op: str) -> Any:
    def gradient(op: Operation, g: Tensor) -> Grads:
        y = op.outputs[0]
        return [getattr(raw, grad_op)(op.inputs[0], y, g, **_same_attrs(op))]

    return gradient


def _of_max_grad(next_op: str) -> Any:
    """The backward ops are linear in ``grad`` and flat almost everywhere in the others."""

    def gradient(op: Operation, g: Tensor) -> Grads:
        x, y, _ = op.inputs
        attrs = _same_attrs(op, ("ksize", "strides", "padding", "data_format"))
        if op.attrs["padding"] == "EXPLICIT":
            raise ValueError(
                "The second derivative of a maximum pool with explicit padding is not available: "
                "pad the input with tf.pad and use VALID."
            )
        again = getattr(raw, next_op)(x, y, g, **attrs)
        return [raw.ZerosLike(x), raw.ZerosLike(y), again]

    return gradient


def _average_gradient(grad_op: str) -> Any:
    def gradient(op: Operation, g: Tensor) -> Grads:
        return [getattr(raw, grad_op)(shape_tensor(op.inputs[0]), g, **_same_attrs(op))]

    return gradient


def _of_average_grad(pool_op: str) -> Any:
    return lambda op, g: [None, getattr(raw, pool_op)(g, **_same_attrs(op))]


def _argmax_gradient(op: Operation, g: Tensor, _: Any) -> Grads:
    attrs = _same_attrs(op, ("ksize", "strides", "padding", "include_batch_in_index"))
    return [raw.MaxPoolGradWithArgmax(op.inputs[0], g, op.outputs[1], **attrs)]


def _of_argmax_grad(op: Operation, g: Tensor) -> Grads:
    attrs = _same_attrs(op, ("ksize", "strides", "padding", "include_batch_in_index"))
    x, _, argmax = op.inputs
    again = raw.MaxPoolGradGradWithArgmax(x, g, argmax, **attrs)
    return [raw.ZerosLike(x), again, None]


# -- definitions --------------------------------------------------------------------------------

_MAX_TYPES = (
    "{float16, bfloat16, float32, float64, int8, int16, int32, int64, uint8, uint16} = float32"
)


def _attrs(rank: int, paddings: str = "'SAME', 'VALID'") -> str:
    formats = FORMATS_2D if rank == 4 else FORMATS_3D
    return (
        f"ksize: list(int) >= {rank}, strides: list(int) >= {rank}, "
        f"padding: {{{paddings}}}, data_format: {formats}"
    )


_EXPLICIT = _attrs(4, "'SAME', 'VALID', 'EXPLICIT'") + ", explicit_paddings: newer list(int) = []"

define_op(
    "MaxPool(input: T) -> output: T",
    attrs=f"T: {_MAX_TYPES}, {_EXPLICIT}",
    shape=_pool_shape,
    kernel=on_platform(pool_kernels.max_pool),
    gradient=_max_gradient("MaxPoolGrad"),
    traits=Traits(flops=flops.pool, batch=Batch((0,))),
)
define_op(
    "MaxPoolGrad(orig_input: T, orig_output: T, grad: T) -> output: T",
    attrs=f"T: real = float32, {_EXPLICIT}",
    shape=_max_grad_shape,
    kernel=on_platform(pool_kernels.max_pool_grad),
    gradient=_of_max_grad("MaxPoolGradGrad"),
    traits=Traits(flops=flops.max_pool_gradient, batch=Batch((0, 1, 2))),
)
define_op(
    "MaxPoolGradGrad(orig_input: T, orig_output: T, grad: T) -> output: T",
    attrs=f"T: real, {_attrs(4)}",
    shape=_max_grad_grad_shape,
    kernel=on_platform(pool_kernels.max_pool_grad_grad),
    gradient=_of_max_grad("MaxPoolGrad"),
)
define_op(
    "MaxPool3D(input: T) -> output: T",
    attrs=f"T: {FLOATS}, {_attrs(5)}",
    shape=_pool_shape,
    kernel=on_platform(pool_kernels.max_pool),
    gradient=_max_gradient("MaxPool3DGrad"),
)
define_op(
    "MaxPool3DGrad(orig_input: TInput, orig_output: TInput, grad: T) -> output: T",
    attrs=f"T: {FLOATS} = float32, TInput: {FLOATS} = float32, {_attrs(5)}",
    shape=_max_grad_shape,
    kernel=pool_kernels.max_pool3d_grad,
    gradient=_of_max_grad("MaxPool3DGradGrad"),
)
define_op(
    "MaxPool3DGradGrad(orig_input: T, orig_output: T, grad: T) -> output: T",
    attrs=f"T: real, {_attrs(5)}",
    shape=_max_grad_grad_shape,
    kernel=on_platform(pool_kernels.max_pool_grad_grad),
    gradient=_of_max_grad("MaxPool3DGrad"),
)
for _name, _value, _rank in (("AvgPool", "value", 4), ("AvgPool3D", "input", 5)):
    define_op(
        f"{_name}({_value}: T) -> output: T",
        attrs=f"T: {FLOATS}, {_attrs(_rank)}",
        shape=_pool_shape,
        kernel=on_platform(pool_kernels.avg_pool),
        gradient=_average_gradient(f"{_name}Grad"),
        traits=Traits(flops=flops.pool if _rank == 4 else None, batch=Batch((0,))),
    )
    define_op(
        f"{_name}Grad(orig_input_shape: int32, grad: T) -> output: T",
        attrs=f"T: {FLOATS}, {_attrs(_rank)}",
        shape=_average_grad_shape,
        kernel=on_platform(pool_kernels.avg_pool_grad),
        gradient=_of_average_grad(_name),
        traits=Traits(
            flops=flops.average_pool_gradient if _rank == 4 else None, batch=Batch((1,), shape=0)
        ),
        static=(0,),
    )


# -- windows given as tensors -------------------------------------------------------------------


def _steps(op: Operation, position: int) -> tuple[int, ...] | None:
    value = static_value(op.inputs[position])
    return None if value is None else tuple(value.ravel().tolist())


def _pool_v2_shape(op: Operation) -> list[Dims]:
    x, ksize, strides = op.inputs[0].dims, _steps(op, 1), _steps(op, 2)
    if ksize is None or strides is None:
        return [checked_rank(None, 4, "the input")]
    return [pooled_dims(op, x, ksize, strides)]


@on_platform
def _max_pool_v2(x: Any, ksize: Any, strides: Any, *, padding: str, platform: str = "cpu") -> Any:
    return pool_kernels.max_pool(
        x, ksize=ksize, strides=strides, padding=padding, platform=platform
    )


@on_platform
def _max_pool_grad_v2(
    x: Any, y: Any, grad: Any, ksize: Any, strides: Any, *, padding: str, platform: str = "cpu"
) -> Any:
    return pool_kernels.max_pool_grad(
        x, y, grad, ksize=ksize, strides=strides, padding=padding, platform=platform
    )


def _max_v2_gradient(op: Operation, g: Tensor) -> Grads:
    x, ksize, strides = op.inputs
    attrs = _same_attrs(op, ("padding", "data_format"))
    return [raw.MaxPoolGradV2(x, op.outputs[0], g, ksize, strides, **attrs), None, None]


_V2 = f"padding: {{'SAME', 'VALID'}}, data_format: {FORMATS_2D}"

define_op(
    "MaxPoolV2(input: T, ksize: int32, strides: int32) -> output: T",
    attrs=f"T: {_MAX_TYPES}, {_V2}",
    shape=_pool_v2_shape,
    kernel=_max_pool_v2,
    gradient=_max_v2_gradient,
    static=(1, 2),
)
define_op(
    "MaxPoolGradV2(orig_input: T, orig_output: T, grad: T, ksize: int32, strides: int32)"
    " -> output: T",
    attrs=f"T: real = float32, {_V2}",
    shape=lambda op: [op.inputs[0].dims],
    kernel=_max_pool_grad_v2,
    static=(3, 4),
)


# -- with the position of the maximum -----------------------------------------------------------


@on_platform
def _with_argmax(
    x: Any,
    *,
    ksize: Any,
    strides: Any,
    padding: str,
    Targmax: Any,
    include_batch_in_index: bool,
    platform: str = "cpu",
) -> Any:
    return pool_kernels.max_pool_with_argmax(
        x,
        ksize=ksize,
        strides=strides,
        padding=padding,
        argmax_dtype=Targmax.np_dtype,
        include_batch_in_index=include_batch_in_index,
        platform=platform,
    )


def _grad_with_argmax(x: Any, grad: Any, argmax: Any, *, include_batch_in_index: bool) -> Any:
    return pool_kernels.max_pool_grad_with_argmax(
        x, grad, argmax, include_batch_in_index=include_batch_in_index
    )


def _grad_grad_with_argmax(x: Any, grad: Any, argmax: Any, *, include_batch_in_index: bool) -> Any:
    """The elements of ``grad`` (shaped like the input) at the positions ``argmax``."""
    index = argmax.astype(np.int64)
    if not include_batch_in_index:
        per_image = int(np.prod(x.shape[1:]))
        index = index + np.arange(x.shape[0]).reshape(-1, 1, 1, 1) * per_image
    return jnp.take(grad.ravel(), index, mode="clip")


_ARGMAX = (
    "ksize: list(int) >= 4, strides: list(int) >= 4, padding: {'SAME', 'VALID'}, "
    "include_batch_in_index: bool = False"
)

define_op(
    "MaxPoolWithArgmax(input: T) -> (output: T, argmax: Targmax)",
    attrs=f"T: real, Targmax: index = int64, {_ARGMAX}",
    shape=_pool_shape,
    kernel=_with_argmax,
    gradient=_argmax_gradient,
)
define_op(
    "MaxPoolGradWithArgmax(input: T, grad: T, argmax: Targmax) -> output: T",
    attrs=f"T: real, Targmax: index, {_ARGMAX}",
    shape=_argmax_grad_shape,
    kernel=_grad_with_argmax,
    gradient=_of_argmax_grad,
)


def _argmax_grad_grad_shape(op: Operation) -> list[Dims]:
    x, g, argmax = (t.dims for t in op.inputs)
    _check_like("grad", g, x)
    want = pooled_dims(op, merge_static(x, g), op.attrs["ksize"], op.attrs["strides"])
    _check_like("argmax", argmax, want)
    return [merge_static(want, argmax)]


def _of_argmax_grad_grad(op: Operation, g: Tensor) -> Grads:
    attrs = _same_attrs(op, ("ksize", "strides", "padding", "include_batch_in_index"))
    x, _, argmax = op.inputs
    again = raw.MaxPoolGradWithArgmax(x, g, argmax, **attrs)
    return [raw.ZerosLike(x), again, None]


define_op(
    "MaxPoolGradGradWithArgmax(input: T, grad: T, argmax: Targmax) -> output: T",
    attrs=f"T: real, Targmax: index, {_ARGMAX}",
    shape=_argmax_grad_grad_shape,
    kernel=_grad_grad_with_argmax,
    gradient=_of_argmax_grad_grad,
)
