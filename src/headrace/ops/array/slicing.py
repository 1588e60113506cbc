"""Slices: Slice and the StridedSlice family with all its masks (`ops.array.slice_specs`)."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from headrace.graph.shapes import shape_text
from headrace.graph.tensor import Dims, Operation, Tensor
from headrace.ops.array.slice_specs import Cut, Masks, cut, sliced_dims
from headrace.ops.array.sliced_shape import sliced_shape
from headrace.ops.core import checks
from headrace.ops.core.array_util import (
    fail,
    int_const,
    is_concrete,
    shape_tensor,
    static_ints,
    unknown,
)
from headrace.ops.core.build import raw
from headrace.ops.core.registry import CHECKS, EarlyCheck, Effects, define_op, whole_shape
from headrace.ops.core.static import static_shape, static_value
from headrace.ops.core.traits import PICKED

MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")
_MASK_ATTRS = ", ".join(f"{m}: int = 0" for m in MASKS)


# -- shapes -------------------------------------------------------------------------------------


def _masks_of(op: Operation) -> Masks:
    return Masks(*[op.attrs[m] for m in MASKS])


def _known(tensor: Tensor) -> list[int | None] | None:
    """Entries of an index vector; None for those that are not known."""
    value = static_value(tensor)
    if value is not None:
        result: list[int | None] | None = value.tolist()
        return result
    partial = static_shape(tensor)
    return None if partial is None else list(partial)


def _strided_slice_shape(op: Operation) -> list[Dims]:
    x, begin, end, strides = op.inputs
    return [sliced_dims(x.dims, _known(begin), _known(end), _known(strides), _masks_of(op))]


# -- kernels ------------------------------------------------------------------------------------


def _strided_slice(
    x: Any,
    begin: Any,
    end: Any,
    strides: Any,
    *,
    begin_mask: int,
    end_mask: int,
    ellipsis_mask: int,
    new_axis_mask: int,
    shrink_axis_mask: int,
) -> Any:
    masks = Masks(begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask)
    spec = cut(x.shape, begin, end, strides, masks)
    x = x[spec.ranges]
    for axis, index in spec.moving.items():
        x = lax.dynamic_slice_in_dim(x, index, 1, axis)
    return x.reshape(spec.result)


def _ascending(bounds: slice, size: int) -> tuple[int, int, int, bool]:
    """A range as (first, count, step > 0, whether it runs backwards)."""
    positions = range(*bounds.indices(size))
    if len(positions) == 0:
        return 0, 0, 1, False
    if positions.step < 0:
        return positions[-1], len(positions), -positions.step, True
    return positions[0], len(positions), positions.step, False


def _strided_slice_grad(
    shape: Any,
    begin: Any,
    end: Any,
    strides: Any,
    dy: Any,
    *,
    begin_mask: int,
    end_mask: int,
    ellipsis_mask: int,
    new_axis_mask: int,
    shrink_axis_mask: int,
) -> Any:
    masks = Masks(begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask)
    sizes = tuple(shape.tolist())
    spec = cut(sizes, begin, end, strides, masks)
    _require_size(dy, spec)
    dy = dy.reshape(spec.kept)
    backwards, padding = [], []
    for axis, (bounds, size) in enumerate(zip(spec.ranges, sizes, strict=True)):
        if axis in spec.moving:
            padding.append((0, 0, 0))
            continue
        first, count, step, flipped = _ascending(bounds, size)
        if flipped:
            backwards.append(axis)
        covered = (count - 1) * step + 1 if count else 0
        padding.append((first, size - first - covered, step - 1))
    if backwards:
        dy = jnp.flip(dy, tuple(backwards))
    dy = lax.pad(dy, np.zeros((), dy.dtype), padding)
    if spec.moving:
        starts = [spec.moving.get(axis, 0) for axis in range(len(sizes))]
        dy = lax.dynamic_update_slice(jnp.zeros(sizes, dy.dtype), dy, _same_type(starts))
    return dy


def _same_type(starts: list[Any]) -> list[Any]:
    return [jnp.asarray(s).astype(jnp.int64) for s in starts]


def _require_size(dy: Any, spec: Cut) -> None:
    if tuple(dy.shape) != spec.result:
        raise fail(f"shape of dy was {shape_text(dy.shape)} instead of {shape_text(spec.result)}")


def _strided_slice_grad_np(
    shape: Any,
    begin: Any,
    end: Any,
    strides: Any,
    dy: Any,
    *,
    begin_mask: int,
    end_mask: int,
    ellipsis_mask: int,
    new_axis_mask: int,
    shrink_axis_mask: int,
) -> Any:
    masks = Masks(begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask)
    spec = cut(tuple(shape.tolist()), begin, end, strides, masks)
    _require_size(dy, spec)
    result = np.zeros(shape.tolist(), dy.dtype)
    result[spec.ranges] = dy.reshape(spec.kept)
    return result


def _update(
    x: Any,
    begin: Any,
    end: Any,
    strides: Any,
    value: Any,
    *,
    begin_mask: int,
    end_mask: int,
    ellipsis_mask: int,
    new_axis_mask: int,
    shrink_axis_mask: int,
) -> Any:
    """``x`` with the slice replaced by ``value``, which is broadcast to the slice's shape."""
    masks = Masks(begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask)
    spec = cut(x.shape, begin, end, strides, masks)
    try:
        fits = np.broadcast_shapes(value.shape, spec.result) == spec.result
    except ValueError:
        fits = False
    if not fits:
        raise fail(
            f"The value of shape {shape_text(value.shape)} cannot be assigned to a slice of shape "
            f"{shape_text(spec.result)}"
        )
    if isinstance(x, np.ndarray) and is_concrete(value) and not spec.moving:
        result = x.copy()
        result[spec.ranges] = np.broadcast_to(value, spec.result).reshape(spec.kept)
        return result
    whole = jnp.broadcast_to(value, spec.result).reshape(spec.kept)
    if not spec.moving:
        return jnp.asarray(x).at[spec.ranges].set(whole)
    index = [np.arange(s)[r] for s, r in zip(x.shape, spec.ranges, strict=True)]
    for axis, at in spec.moving.items():
        index[axis] = at.reshape(1)
    return jnp.asarray(x).at[jnp.ix_(*index)].set(whole)


def mask_attrs(op: Operation) -> dict[str, Any]:
    """The mask attributes of a strided-slice op."""
    return {m: op.attrs[m] for m in MASKS}


def _strided_slice_gradient(op: Operation, grad: Tensor) -> list[Any]:
    x, begin, end, strides = op.inputs
    shape = shape_tensor(x, begin.dtype)
    back = raw.StridedSliceGrad(shape, begin, end, strides, grad, **mask_attrs(op))
    return [back, None, None, None]


def _strided_slice_grad_gradient(op: Operation, grad: Tensor) -> list[Any]:
    back = raw.StridedSlice(grad, *op.inputs[1:4], **mask_attrs(op))
    return [None, None, None, None, back]


def _update_gradient(op: Operation, grad: Tensor) -> list[Any]:
    _, begin, end, strides, value = op.inputs
    attrs = mask_attrs(op)
    part = raw.StridedSlice(grad, begin, end, strides, **attrs)
    zeros = raw.ZerosLike(part)
    hole = raw.TensorStridedSliceUpdate(grad, begin, end, strides, zeros, **attrs)
    shape = shape_tensor(value)
    axes = raw.BroadcastGradientArgs(raw.Shape(part), shape)[1]
    return [hole, None, None, None, raw.Reshape(raw.Sum(part, axes), shape)]


def _test_slice(
    shape: tuple[int, ...], attrs: dict[str, Any], begin: Any, end: Any, strides: Any
) -> None:
    cut(shape, begin, end, strides, Masks(*[attrs[m] for m in MASKS]))


define_op(
    "StridedSlice(input: T, begin: Index, end: Index, strides: Index) -> output: T",
    attrs=f"T: type, Index: {{int16, int32, int64}}, {_MASK_ATTRS}",
    shape=_strided_slice_shape,
    kernel=_strided_slice,
    interpret=_strided_slice,
    gradient=_strided_slice_gradient,
    static=(3,),
    effects=CHECKS,
    early_check=EarlyCheck((1, 2, 3), whole_shape, _test_slice),
    traits=PICKED.but(as_shape=sliced_shape),
)
define_op(
    "StridedSliceGrad(shape: Index, begin: Index, end: Index, strides: Index, dy: T) -> output: T",
    attrs=f"T: type, Index: index, {_MASK_ATTRS}",
    shape=lambda op: [static_shape(op.inputs[0])],
    kernel=_strided_slice_grad,
    interpret=_strided_slice_grad_np,
    gradient=_strided_slice_grad_gradient,
    static=(0, 3),
    effects=CHECKS,
    checked=lambda attrs: (0, 1, 2, 3),
)
define_op(
    "TensorStridedSliceUpdate(input: T, begin: Index, end: Index, strides: Index, value: T)"
    " -> output: T",
    attrs=f"T: type, Index: index, {_MASK_ATTRS}",
    shape=lambda op: [op.inputs[0].dims],
    kernel=_update,
    interpret=_update,
    gradient=_update_gradient,
    static=(3,),
    effects=CHECKS,
    checked=lambda attrs: (1, 2, 3),
)


define_op(
    "ResourceStridedSliceAssign(ref: resource, begin: Index, end: Index, strides: Index, value: T)",
    attrs=f"T: type, Index: index, {_MASK_ATTRS}",
    shape=lambda op: [],
    kernel=_update,
    interpret=_update,
    static=(3,),
    effects=Effects(reads=(0,), writes=(0,), checks=True),
    early_check=EarlyCheck((1, 2, 3), whole_shape, _test_slice),
)

# -- Slice --------------------------------------------------------------------------------------


def _slice_shape(op: Operation) -> list[Dims]:
    x, begin, size = op.inputs
    starts, counts = _known(begin), static_ints(size)
    partial = None if counts is not None else static_shape(size)
    length = next((len(v) for v in (starts, counts, partial) if v is not None), None)
    dims = x.dims
    if dims is None:
        return [None if length is None else (counts_of(counts, partial, length))]
    if length is not None and length != len(dims):
        raise ValueError(
            f"Slice of shape {shape_text(dims)} needs {len(dims)} begins and sizes, got {length}."
        )
    if counts is None:
        return [partial if partial is not None else unknown(len(dims))]
    return [
        tuple(
            _slice_size(i, d, None if starts is None else starts[i], n)
            for i, (d, n) in enumerate(zip(dims, counts, strict=True))
        )
    ]


def counts_of(counts: Any, partial: Any, length: int) -> Dims:
    """The sizes asked for, None where they depend on the input."""
    if counts is not None:
        return tuple(None if n < 0 else n for n in counts)
    return partial if partial is not None else unknown(length)


def _slice_size(i: int, dim: int | None, start: int | None, count: int) -> int | None:
    if start is None or dim is None:
        return None if count < 0 else count
    if not 0 <= start <= dim:
        raise ValueError(f"Expected begin[{i}] in [0, {dim}], but got {start}")
    if count == -1:
        return dim - start
    if not 0 <= count <= dim - start:
        raise ValueError(f"Expected size[{i}] in [0, {dim - start}], but got {count}")
    return count


def _slice(x: Any, begin: Any, size: Any) -> Any:
    counts = size.tolist()
    if len(counts) != x.ndim or begin.shape != (x.ndim,):
        raise fail(
            f"Expected begin and size arguments to be 1-D tensors of size {x.ndim}, but got shapes "
            f"{shape_text(begin.shape)} and {shape_text(size.shape)} instead."
        )
    if is_concrete(begin):
        starts = begin.tolist()
        counts = [
            _slice_size(i, d, s, n)
            for i, (d, s, n) in enumerate(zip(x.shape, starts, counts, strict=True))
        ]
        return x[tuple([slice(s, s + n) for s, n in zip(starts, counts, strict=True)])]
    for i, (d, n) in enumerate(zip(x.shape, counts, strict=True)):
        if n < 0:
            if n == -1 and d:
                raise checks.NeedsValue("size -1 needs the value of begin")
            counts[i] = d
        checks.require(
            (begin[i] >= 0) & (begin[i] + counts[i] <= d),
            f"Expected begin[{i}] in [0, {d - counts[i]}], but got {{0}}",
            begin[i],
        )
    return lax.dynamic_slice(x, [begin[i] for i in range(x.ndim)], counts)


def _slice_gradient(op: Operation, grad: Tensor) -> list[Any]:
    x, begin, _ = op.inputs
    starts, dims, out = static_ints(begin), x.dims, op.outputs[0].dims
    if starts is None or dims is None or out is None or None in dims or None in out:
        return [raw.SliceGrad(shape_tensor(x, begin.dtype), begin, grad), None, None]
    pairs = [(s, d - s - n) for s, d, n in zip(starts, dims, out, strict=True)]  # type: ignore[operator]
    return [raw.Pad(grad, int_const(pairs)), None, None]


def _slice_grad(shape: Any, begin: Any, dy: Any) -> Any:
    zeros = jnp.zeros(tuple(shape.tolist()), dy.dtype)
    return lax.dynamic_update_slice(zeros, jnp.asarray(dy), list(_inside(jnp, shape, begin, dy)))


def _slice_grad_np(shape: Any, begin: Any, dy: Any) -> Any:
    result = np.zeros(shape.tolist(), dy.dtype)
    starts = _inside(np, shape, begin, dy).tolist()
    result[tuple([slice(b, b + n) for b, n in zip(starts, dy.shape, strict=True)])] = dy
    return result


def _inside(xp: Any, shape: Any, begin: Any, dy: Any) -> Any:
    """Where the slice begins; one that the forward op refuses is moved inside in both forms."""
    return xp.clip(begin, 0, shape - np.array(dy.shape, shape.dtype))


define_op(
    "Slice(input: T, begin: Index, size: Index) -> output: T",
    attrs="T: type, Index: index",
    shape=_slice_shape,
    kernel=_slice,
    interpret=_slice,
    gradient=_slice_gradient,
    static=(2,),
    effects=CHECKS,
    checked=lambda attrs: (1, 2),
    traits=PICKED,
)
define_op(
    "SliceGrad(shape: Index, begin: Index, dy: T) -> output: T",
    attrs="T: type, Index: index",
    shape=lambda op: [static_shape(op.inputs[0])],
    kernel=_slice_grad,
    interpret=_slice_grad_np,
    gradient=lambda op, grad: [
        None,
        None,
        raw.Slice(grad, op.inputs[1], shape_tensor(op.inputs[2], op.inputs[1].dtype)),
    ],
    static=(0,),
)
