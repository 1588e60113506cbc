"""Padding, and moving blocks between space, batch and depth."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from headrace.graph.shapes import shape_text
from headrace.graph.tensor import Dims, Operation, Tensor
from headrace.ops.core import requirements
from headrace.ops.core.array_util import both, fail, int_const, shape_tensor, static_ints, unknown
from headrace.ops.core.build import raw
from headrace.ops.core.registry import define_op
from headrace.ops.core.static import static_shape, static_value

Pairs = list[tuple[int, int]]

# -- padding ------------------------------------------------------------------------------------


def _static_pairs(paddings: Tensor) -> Pairs | None:
    """The (before, after) pairs of a ``[n, 2]`` tensor, if the graph tells them."""
    dims = paddings.dims
    if dims is not None and (len(dims) != 2 or dims[1] not in (None, 2)):
        raise ValueError(f"paddings must have shape (n, 2), got {shape_text(dims)}.")
    flat = static_ints(paddings)
    if flat is None:
        return None
    return list(zip(flat[::2], flat[1::2], strict=True))


def _pairs(paddings: Any, rank: int, what: str = "paddings") -> Pairs:
    if paddings.shape != (rank, 2):
        raise fail(f"The {what} must have shape ({rank}, 2), got {shape_text(paddings.shape)}.")
    pairs = [(int(a), int(b)) for a, b in paddings.tolist()]
    _check_not_negative(pairs, what)
    return pairs


def _check_not_negative(pairs: Pairs, what: str) -> None:
    if any(a < 0 or b < 0 for a, b in pairs):
        raise ValueError(f"{what.capitalize()} must be non-negative: {pairs}.")


def _pad_shape(op: Operation) -> list[Dims]:
    dims, pairs = op.inputs[0].dims, _static_pairs(op.inputs[1])
    rows = op.inputs[1].dims
    if dims is None:
        count = rows[0] if rows is not None else None
        return [None if count is None else unknown(count)]
    if rows is not None and rows[0] is not None and rows[0] != len(dims):
        raise ValueError(
            f"The first dimension of paddings must be the rank of inputs: {rows[0]} and "
            f"{len(dims)} for shape {shape_text(dims)}."
        )
    if pairs is None:
        added = _partly_known(op.inputs[1], len(dims))
        known = zip(dims, added, strict=True)
        return [tuple([None if d is None or n is None else d + n for d, n in known])]
    _check_not_negative(pairs, "paddings")
    return [tuple(None if d is None else a + d + b for d, (a, b) in zip(dims, pairs, strict=True))]


def _partly_known(paddings: Tensor, rank: int) -> list[int | None]:
    """What is added to each of ``rank`` sizes, where ``[[0, 0], [0, n]]`` tells it."""
    op = paddings.op
    if op.type != "Pack" or op.attrs.get("axis", 0) != 0 or len(op.inputs) != rank:
        return [None] * rank
    return [_sum(static_shape(row)) for row in op.inputs]


def _sum(pair: Dims) -> int | None:
    """Of two numbers that are both known."""
    if pair is None or len(pair) != 2:
        return None
    before, after = pair
    return None if before is None or after is None else before + after


def _pad(xp: Any, x: Any, paddings: Any) -> Any:
    if xp is np:  # `np.pad` takes ten times as long for a few thousand elements
        return _pad_v2(np, x, paddings, b"" if x.dtype == object else 0)
    pairs = _pairs(paddings, x.ndim)
    return xp.pad(x, pairs, constant_values=0) if pairs else x


def _pad_v2(xp: Any, x: Any, paddings: Any, constant: Any) -> Any:
    pairs = _pairs(paddings, x.ndim)
    if xp is np:
        sizes = [a + d + b for d, (a, b) in zip(x.shape, pairs, strict=True)]
        result = np.full(sizes, constant, x.dtype)
        result[_inner(x.shape, pairs)] = x
        return result
    return jnp.pad(x, pairs, constant_values=constant)


def _inner(shape: tuple[int, ...], pairs: Pairs) -> tuple[slice, ...]:
    return tuple(slice(a, a + d) for d, (a, _) in zip(shape, pairs, strict=True))


def _unpadded(op: Operation, grad: Tensor) -> Tensor:
    """The part of ``grad`` that stands where the input was."""
    x, paddings = op.inputs[:2]
    pairs = _static_pairs(paddings)
    if pairs is not None:
        begin: Tensor = int_const([a for a, _ in pairs])
    else:
        begin = raw.Reshape(
            raw.Slice(raw.Cast(paddings, DstT="int32"), int_const([0, 0]), int_const([-1, 1])), [-1]
        )
    return raw.Slice(grad, begin, shape_tensor(x))


def _pad_v2_gradient(op: Operation, grad: Tensor) -> list[Any]:
    inside = _unpadded(op, grad)
    axes = raw.Range(0, raw.Rank(grad), 1)
    return [inside, None, raw.Sub(raw.Sum(grad, axes), raw.Sum(inside, axes))]


define_op(
    "Pad(input: T, paddings: Tpaddings) -> output: T",
    attrs="T: type, Tpaddings: index = int32",
    shape=_pad_shape,
    **both(_pad),
    gradient=lambda op, grad: [_unpadded(op, grad), None],
    static=(1,),
)
define_op(
    "PadV2(input: T, paddings: Tpaddings, constant_values: T) -> output: T",
    requires=[requirements.scalar(2)],
    attrs="T: type, Tpaddings: index = int32",
    shape=_pad_shape,
    **both(_pad_v2),
    gradient=_pad_v2_gradient,
    static=(1,),
)


def _mirror_pad(xp: Any, x: Any, paddings: Any, *, mode: str) -> Any:
    pairs = _pairs(paddings, x.ndim)
    _check_mirror(x.shape, pairs, mode)
    for axis, (before, after) in enumerate(pairs):
        if before or after:
            index = np.pad(np.arange(x.shape[axis]), (before, after), mode=mode.lower())  # type: ignore[call-overload]
            x = xp.take(x, index, axis)
    return x


def _check_mirror(shape: tuple[int, ...], pairs: Pairs, mode: str) -> None:
    for axis, (size, (before, after)) in enumerate(zip(shape, pairs, strict=True)):
        limit = size - (mode == "REFLECT")
        if max(before, after) > max(limit, 0):
            bound = "less" if mode == "REFLECT" else "no greater"
            raise fail(
                f"paddings must be {bound} than the dimension size: {before}, {after} not {bound} "
                f"than {size} in dimension {axis}"
            )


def _mirror_pad_grad(xp: Any, dy: Any, paddings: Any, *, mode: str) -> Any:
    pairs = _pairs(paddings, dy.ndim)
    sizes = tuple(d - a - b for d, (a, b) in zip(dy.shape, pairs, strict=True))
    _check_mirror(sizes, pairs, mode)
    skip = int(mode == "REFLECT")
    edges = [(size, *pair) for size, pair in zip(sizes, pairs, strict=True)]
    return _without_mirrored(xp, dy, edges, skip)


def _without_mirrored(xp: Any, dy: Any, edges: list[tuple[int, int, int]], skip: int) -> Any:
    """The middle of the leading dimensions, and what its mirror images around it add to it.

    The last dimension first: so only strips are folded, and what is large is copied once.

    Args:
        edges: for each dimension how long its middle is, and what is before and after that.
        skip: how many elements at an end are not mirrored.
    """
    if not edges:
        return dy.copy() if xp is np else dy
    *others, (size, before, after) = edges
    axis = len(others)

    def part(x: Any, start: int, count: int) -> Any:
        return x[(*(slice(None),) * axis, slice(start, start + count))]

    middle = _without_mirrored(xp, part(dy, before, size), others, skip)
    images = ((0, before, skip), (before + size, after, size - skip - after))
    for start, count, place in images:
        if not count:
            continue
        image = xp.flip(part(dy, start, count), axis)
        added = part(middle, place, count) + _without_mirrored(xp, image, others, skip)
        if xp is np:
            part(middle, place, count)[...] = added
        else:
            middle = lax.dynamic_update_slice_in_dim(middle, added, place, axis)
    return middle


def _mirror_pad_grad_shape(op: Operation) -> list[Dims]:
    dims, pairs = op.inputs[0].dims, _static_pairs(op.inputs[1])
    if dims is None or pairs is None:
        return [None if dims is None else unknown(len(dims))]
    return [tuple(None if d is None else d - a - b for d, (a, b) in zip(dims, pairs, strict=True))]


def _padding_for_each_axis(op: Operation) -> None:
    dims = op.inputs[0].dims
    if dims is not None:
        requirements.shape((len(dims), 2), 1)(op)


_MIRROR_ATTRS = "T: type, Tpaddings: index = int32, mode: {'REFLECT', 'SYMMETRIC'}"
define_op(
    "MirrorPad(input: T, paddings: Tpaddings) -> output: T",
    attrs=_MIRROR_ATTRS,
    shape=_pad_shape,
    **both(_mirror_pad),
    gradient=lambda op, g: [raw.MirrorPadGrad(g, op.inputs[1], mode=op.attrs["mode"]), None],
    static=(1,),
)
define_op(
    "MirrorPadGrad(input: T, paddings: Tpaddings) -> output: T",
    attrs=_MIRROR_ATTRS,
    shape=_mirror_pad_grad_shape,
    requires=[_padding_for_each_axis],
    **both(_mirror_pad_grad),
    gradient=lambda op, g: [raw.MirrorPad(g, op.inputs[1], mode=op.attrs["mode"]), None],
    static=(1,),
)

# -- space and batch ----------------------------------------------------------------------------


def _to_batch(xp: Any, x: Any, block: list[int], pairs: Pairs) -> Any:
    spatial = len(block)
    if x.ndim < 1 + spatial:
        raise fail(f"input rank should be >= {1 + spatial} instead of {x.ndim}")
    x = xp.pad(x, [(0, 0), *pairs, *[(0, 0)] * (x.ndim - 1 - spatial)])
    batch, rest = x.shape[0], x.shape[1 + spatial :]
    split: list[int] = []
    for i, b in enumerate(block):
        if x.shape[1 + i] % b:
            raise fail(
                f"padded_shape[{i}]={x.shape[1 + i]} is not divisible by block_shape[{i}]={b}"
            )
        split += [x.shape[1 + i] // b, b]
    x = x.reshape((batch, *split, *rest))
    inner = [2 + 2 * i for i in range(spatial)]
    outer = [1 + 2 * i for i in range(spatial)]
    x = xp.transpose(x, [*inner, 0, *outer, *range(1 + 2 * spatial, x.ndim)])
    return x.reshape((batch * int(np.prod(block, dtype=int)), *split[::2], *rest))


def _from_batch(xp: Any, x: Any, block: list[int], crops: Pairs) -> Any:
    spatial, count = len(block), int(np.prod(block, dtype=int))
    if x.ndim < 1 + spatial:
        raise fail(f"input rank should be >= {1 + spatial} instead of {x.ndim}")
    if x.shape[0] % count:
        raise fail(f"Input batch dimension ({x.shape[0]}) is not a multiple of the block ({count})")
    batch, inside, rest = x.shape[0] // count, x.shape[1 : 1 + spatial], x.shape[1 + spatial :]
    x = x.reshape((*block, batch, *inside, *rest))
    order = [spatial]
    for i in range(spatial):
        order += [spatial + 1 + i, i]
    x = xp.transpose(x, [*order, *range(1 + 2 * spatial, x.ndim)])
    sizes = [n * b for n, b in zip(inside, block, strict=True)]
    x = x.reshape((batch, *sizes, *rest))
    for n, (a, b) in zip(sizes, crops, strict=True):
        if a + b > n:
            raise fail(f"crops ({a}, {b}) leave nothing of a dimension of size {n}")
    kept = [slice(a, n - b) for n, (a, b) in zip(sizes, crops, strict=True)]
    return x[(slice(None), *kept)]


def _block_dims(dims: Dims, block: list[int] | None, pairs: Pairs | None, to_batch: bool) -> Dims:
    if dims is None or block is None:
        return None if dims is None else unknown(len(dims))
    if len(dims) < 1 + len(block):
        raise ValueError(f"input rank should be >= {1 + len(block)} instead of {len(dims)}")
    if pairs is not None and len(pairs) != len(block):
        raise ValueError(
            f"block_shape has {len(block)} sizes, paddings or crops have {len(pairs)} rows: one of "
            "each is needed for each dimension of space."
        )
    count = int(np.prod(block, dtype=int))
    batch = dims[0]
    if batch is not None:
        if not to_batch and batch % count:
            raise ValueError(f"Batch size {batch} is not a multiple of the block, {count}.")
        batch = batch * count if to_batch else batch // count
    sizes: list[int | None] = []
    for i, b in enumerate(block):
        size = dims[1 + i]
        if size is None or pairs is None:
            sizes.append(None)
            continue
        total = size + sum(pairs[i]) if to_batch else size * b - sum(pairs[i])
        if total < 0:
            raise ValueError(f"Crops {pairs[i]} leave nothing of a dimension of size {size * b}.")
        if to_batch and total % b:
            raise ValueError(f"Padded size {total} of dimension {1 + i} is not divisible by {b}.")
        sizes.append(total // b if to_batch else total)
    return (batch, *sizes, *dims[1 + len(block) :])


def _nd_shape(to_batch: bool) -> Any:
    def rule(op: Operation) -> list[Dims]:
        x, block, pairs = op.inputs
        known, around = static_value(block), _static_pairs(pairs)
        if around is not None:
            _check_not_negative(around, "paddings" if to_batch else "crops")
        return [
            _block_dims(x.dims, None if known is None else _checked_block(known), around, to_batch)
        ]

    return rule


def _old_shape(to_batch: bool) -> Any:
    def rule(op: Operation) -> list[Dims]:
        x, pairs = op.inputs
        around = _static_pairs(pairs)
        if around is not None:
            _check_not_negative(around, "paddings" if to_batch else "crops")
        return [_block_dims(x.dims, [op.attrs["block_size"]] * 2, around, to_batch)]

    return rule


def _space_to_batch_nd(xp: Any, x: Any, block_shape: Any, paddings: Any) -> Any:
    block = _checked_block(block_shape)
    return _to_batch(xp, x, block, _pairs(paddings, len(block)))


def _batch_to_space_nd(xp: Any, x: Any, block_shape: Any, crops: Any) -> Any:
    block = _checked_block(block_shape)
    return _from_batch(xp, x, block, _pairs(crops, len(block), "crops"))


def _checked_block(block_shape: Any) -> list[int]:
    """The sizes of a block.

    Raises:
        ValueError: unless they are a vector of positive numbers.
    """
    if block_shape.ndim != 1:
        raise ValueError(f"block_shape must be a vector, got {block_shape.tolist()}.")
    block: list[int] = block_shape.tolist()
    if min(block, default=1) < 1:
        raise ValueError(f"All values in block_shape must be positive, got {block}.")
    return block


def _space_to_batch(xp: Any, x: Any, paddings: Any, *, block_size: int) -> Any:
    return _to_batch(xp, x, [block_size] * 2, _pairs(paddings, 2))


def _batch_to_space(xp: Any, x: Any, crops: Any, *, block_size: int) -> Any:
    return _from_batch(xp, x, [block_size] * 2, _pairs(crops, 2, "crops"))


define_op(
    "SpaceToBatchND(input: T, block_shape: Tblock_shape, paddings: Tpaddings) -> output: T",
    attrs="T: type, Tblock_shape: index = int32, Tpaddings: index = int32",
    shape=_nd_shape(True),
    **both(_space_to_batch_nd),
    gradient=lambda op, g: [raw.BatchToSpaceND(g, op.inputs[1], op.inputs[2]), None, None],
    static=(1, 2),
)
define_op(
    "BatchToSpaceND(input: T, block_shape: Tblock_shape, crops: Tcrops) -> output: T",
    attrs="T: type, Tblock_shape: index = int32, Tcrops: index = int32",
    shape=_nd_shape(False),
    **both(_batch_to_space_nd),
    gradient=lambda op, g: [raw.SpaceToBatchND(g, op.inputs[1], op.inputs[2]), None, None],
    static=(1, 2),
)
define_op(
    "SpaceToBatch(input: T, paddings: Tpaddings) -> output: T",
    attrs="T: type, Tpaddings: index = int32, block_size: int >= 2",
    shape=_old_shape(True),
    **both(_space_to_batch),
    gradient=lambda op, g: [
        raw.BatchToSpace(g, op.inputs[1], block_size=op.attrs["block_size"]),
        None,
    ],
    static=(1,),
)
define_op(
    "BatchToSpace(input: T, crops: Tidx) -> output: T",
    attrs="T: type, block_size: int >= 2, Tidx: index = int32",
    shape=_old_shape(False),
    **both(_batch_to_space),
    gradient=lambda op, g: [
        raw.SpaceToBatch(g, op.inputs[1], block_size=op.attrs["block_size"]),
        None,
    ],
    static=(1,),
)

# -- space and depth ----------------------------------------------------------------------------


def _depth_shape(to_depth: bool) -> Any:
    def rule(op: Operation) -> list[Dims]:
        b, form, dims = op.attrs["block_size"], op.attrs["data_format"], op.inputs[0].dims
        if form == "NCHW_VECT_C":
            raise ValueError("data_format NCHW_VECT_C is not supported; use NHWC or NCHW.")
        if dims is None:
            return [unknown(4)]
        if len(dims) != 4:
            raise ValueError(f"Shape must be rank 4 but is rank {len(dims)}: {shape_text(dims)}.")
        n, h, w, c = dims if form == "NHWC" else (dims[0], dims[2], dims[3], dims[1])
        if to_depth:
            h, w, c = _divided(h, b), _divided(w, b), None if c is None else c * b * b
        else:
            h, w = (None if s is None else s * b for s in (h, w))
            c = _divided(c, b * b)
        return [(n, h, w, c) if form == "NHWC" else (n, c, h, w)]

    return rule


def _divided(size: int | None, by: int) -> int | None:
    if size is None:
        return None
    if size % by:
        raise ValueError(f"Dimension size must be evenly divisible by {by} but is {size}.")
    return size // by


def _space_to_depth(xp: Any, x: Any, *, block_size: int, data_format: str) -> Any:
    b = block_size
    if data_format == "NHWC":
        n, h, w, c = x.shape
        _divided(h, b), _divided(w, b)
        parts = x.reshape(n, h // b, b, w // b, b, c)
        return xp.transpose(parts, (0, 1, 3, 2, 4, 5)).reshape(n, h // b, w // b, b * b * c)
    n, c, h, w = x.shape
    _divided(h, b), _divided(w, b)
    parts = x.reshape(n, c, h // b, b, w // b, b)
    return xp.transpose(parts, (0, 3, 5, 1, 2, 4)).reshape(n, b * b * c, h // b, w // b)


def _depth_to_space(xp: Any, x: Any, *, block_size: int, data_format: str) -> Any:
    b = block_size
    if data_format == "NHWC":
        n, h, w, c = x.shape
        parts = x.reshape(n, h, w, b, b, _divided(c, b * b))
        return xp.transpose(parts, (0, 1, 3, 2, 4, 5)).reshape(n, h * b, w * b, c // (b * b))
    n, c, h, w = x.shape
    parts = x.reshape(n, b, b, _divided(c, b * b), h, w)
    return xp.transpose(parts, (0, 3, 4, 1, 5, 2)).reshape(n, c // (b * b), h * b, w * b)


def _opposite(name: str) -> Any:
    def rule(op: Operation, grad: Tensor) -> list[Any]:
        attrs = {k: op.attrs[k] for k in ("block_size", "data_format")}
        return [getattr(raw, name)(grad, **attrs)]

    return rule


_DEPTH_ATTRS = (
    "T: type, block_size: int >= 2, data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'"
)
define_op(
    "SpaceToDepth(input: T) -> output: T",
    attrs=_DEPTH_ATTRS,
    shape=_depth_shape(True),
    **both(_space_to_depth),
    gradient=_opposite("DepthToSpace"),
)
define_op(
    "DepthToSpace(input: T) -> output: T",
    attrs=_DEPTH_ATTRS,
    shape=_depth_shape(False),
    **both(_depth_to_space),
    gradient=_opposite("SpaceToDepth"),
)
