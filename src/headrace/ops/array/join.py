"""Array ops that join, split, repeat and reverse tensors."""

from __future__ import annotations

from functools import partial
from itertools import chain
from typing import Any

import jax.numpy as jnp
import numpy as np

from headrace.graph.shapes import compatible_static, merge_static, shape_text
from headrace.graph.tensor import Dims, Operation, Tensor
from headrace.ops.core import checks
from headrace.ops.core.array_util import (
    both,
    checked_axis,
    fail,
    fully_known,
    int_const,
    like_first,
    shape_tensor,
    static_int,
    static_ints,
    unknown,
    vector_length,
)
from headrace.ops.core.build import raw
from headrace.ops.core.registry import CHECKS, NotDifferentiable, define_op
from headrace.ops.core.static import static_shape, static_size
from headrace.ops.core.traits import PICKED, Stacked, Traits

# -- concatenation ------------------------------------------------------------------------------


def _scalar_axis(axis: Any, what: str) -> int:
    if axis.size != 1:
        raise fail(f"{what} must be a scalar, got shape {shape_text(axis.shape)}.")
    return int(axis.ravel()[0])


def _concat_dims(values: tuple[Tensor, ...], axis: Tensor) -> list[Dims]:
    at = static_int(axis)
    known = [t.dims for t in values if t.dims is not None]
    if not known:
        return [None]
    rank = len(known[0])
    if at is None:
        return [unknown(rank)]
    if rank == 0:
        raise ValueError("Can't concatenate scalars (use tf.stack instead).")
    at = checked_axis(at, rank, "Concatenation dimension")
    rest: Dims = None
    for dims in known:
        other = (*dims[:at], None, *dims[at + 1 :])
        try:
            rest = merge_static(rest, other)
        except ValueError:
            raise ValueError(
                f"Shapes must match in all dimensions but {at} to be concatenated: "
                + ", ".join(shape_text(d) for d in known)
            ) from None
    sizes = [dims[at] if dims is not None else None for dims in (t.dims for t in values)]
    total = None if None in sizes else sum(sizes)  # type: ignore[arg-type]
    assert rest is not None
    return [(*rest[:at], total, *rest[at + 1 :])]


def _concat(xp: Any, values: list[Any], axis: Any) -> Any:
    at = _scalar_axis(axis, "Concatenation dimension")
    rank = values[0].ndim
    if rank == 0:
        raise fail("Can't concatenate scalars (use tf.stack instead).")
    at = checked_axis(at, rank, "Concatenation dimension")
    want = _without(values[0].shape, at)
    for i, v in enumerate(values):
        if len(v.shape) != rank or _without(v.shape, at) != want:
            first, other = (",".join(map(str, x.shape)) for x in (values[0], v))
            raise fail(
                f"Dimensions of inputs should match: shape[0] = [{first}] vs. shape[{i}] = "
                f"[{other}], except in dimension {at}"
            )
    return xp.concatenate(values, at)


def _without(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return (*shape[:axis], *shape[axis + 1 :])


def _concat_gradient(values: tuple[Tensor, ...], axis: Tensor, grad: Tensor) -> list[Any]:
    if len(values) == 1:
        return [grad]
    at = static_int(axis)
    sizes = [_size_along(t, at) for t in values]
    if None not in sizes:
        lengths: Tensor = int_const(sizes)
    else:
        place = raw.Reshape(axis if at is None else int_const(at), int_const([1]))
        if at is not None and at < 0:
            place = raw.AddV2(place, raw.Rank(values[0]))
        lengths = raw.ConcatV2([raw.GatherV2(shape_tensor(t), place, 0) for t in values], 0)
    return list(raw.SplitV(grad, lengths, _as_int32(axis), num_split=len(values)))


def _size_along(tensor: Tensor, axis: int | None) -> int | None:
    dims = tensor.dims
    return None if axis is None or dims is None else dims[axis]


def _as_int32(axis: Tensor) -> Tensor:
    known = static_int(axis)
    if known is not None:
        return int_const(known)
    return axis if axis.dtype.name == "int32" else raw.Cast(axis, DstT="int32")


def _joined_shapes(op: Operation) -> Dims:
    parts = [static_shape(t) for t in op.inputs[:-1]]
    known = [p for p in parts if p is not None]
    return tuple(chain.from_iterable(known)) if len(known) == len(parts) else None


define_op(
    "ConcatV2(values: N * T, axis: Tidx) -> output: T",
    attrs="N: int >= 1, T: type, Tidx: index = int32",
    shape=lambda op: _concat_dims(op.inputs[:-1], op.inputs[-1]),
    **both(_concat),
    gradient=lambda op, grad: [*_concat_gradient(op.inputs[:-1], op.inputs[-1], grad), None],
    static=(1,),
    traits=Traits(elements_of=slice(-1), light=True, as_shape=_joined_shapes),
)
define_op(
    "Concat(concat_dim: int32, values: N * T) -> output: T",
    attrs="N: int >= 2, T: type",
    shape=lambda op: _concat_dims(op.inputs[1:], op.inputs[0]),
    kernel=lambda concat_dim, values: _concat(jnp, values, concat_dim),
    interpret=lambda concat_dim, values: _concat(np, values, concat_dim),
    gradient=lambda op, grad: [None, *_concat_gradient(op.inputs[1:], op.inputs[0], grad)],
    static=(0,),
)


def _concat_offset(xp: Any, concat_dim: Any, shapes: list[Any]) -> Any:
    rank = shapes[0].size
    at = checked_axis(_scalar_axis(concat_dim, "concat_dim"), rank, "concat_dim")
    chosen = np.arange(rank) == at
    result, total = [], 0
    for i, shape in enumerate(shapes):
        if shape.shape != (rank,):
            raise ValueError(
                f"input {i} should contain {rank} elements, as input 0 does, but its shape is "
                f"{shape_text(shape.shape)}"
            )
        checks.require(
            xp.all((shape == shapes[0]) | chosen),
            f"All dimensions except {at} must match: input {i} has another shape than input 0",
        )
        result.append(xp.where(chosen, total, xp.zeros_like(shape)).astype(shape.dtype))
        total = total + shape[at]
    return result


define_op(
    "ConcatOffset(concat_dim: int32, shape: N * shape_type) -> offset: N * shape_type",
    attrs="N: int >= 2, shape_type: newer index = int32",
    shape=lambda op: [(vector_length(t),) for t in op.inputs[1:]],
    **both(_concat_offset),
    gradient=NotDifferentiable("its values are integers"),
    static=(0,),
    effects=CHECKS,
)

# -- stacking -----------------------------------------------------------------------------------


def stacked_axis(axis: int, rank: int) -> int:
    """The axis of a stack or unstack, counted from the front.

    Raises:
        ValueError: if it is not in ``[-rank, rank)``.
    """
    if not -rank <= axis < rank:
        raise ValueError(f"axis = {axis} not in [{-rank}, {rank})")
    return axis % rank


def _pack_shape(op: Operation) -> list[Dims]:
    each: Dims = None
    for tensor in op.inputs:
        try:
            each = merge_static(each, tensor.dims)
        except ValueError:
            raise ValueError(
                "Shapes must be equal to be stacked: "
                + ", ".join(shape_text(t.dims) for t in op.inputs)
            ) from None
    if each is None:
        return [None]
    at = stacked_axis(op.attrs["axis"], len(each) + 1)
    return [(*each[:at], op.attrs["N"], *each[at:])]


def _pack(xp: Any, values: list[Any], *, axis: int) -> Any:
    if any(v.shape != values[0].shape for v in values):
        raise fail(
            "Shapes of all inputs must match: " + ", ".join(shape_text(v.shape) for v in values)
        )
    return xp.stack(values, checked_axis(axis, values[0].ndim + 1))


def _pack_stack(xp: Any, values: Any, *, axis: int) -> Any:
    return xp.moveaxis(values, 0, checked_axis(axis, values.ndim))


def _packed_sizes(op: Operation) -> Dims:
    # The result has one dimension where one entry is known to be a scalar: so are the others.
    dims = op.outputs[0].dims
    return None if dims is None or len(dims) != 1 else tuple(map(static_size, op.inputs))


define_op(
    "Pack(values: N * T) -> output: T",
    attrs="N: int >= 1, T: type, axis: int = 0",
    shape=_pack_shape,
    **both(_pack),
    gradient=lambda op, grad: raw.Unpack(grad, num=op.attrs["N"], axis=op.attrs["axis"]),
    traits=Traits(
        elements_of=slice(None),
        light=True,
        as_shape=_packed_sizes,
        takes_stack=Stacked(partial(_pack_stack, jnp), partial(_pack_stack, np)),
    ),
)


def _unpack_shape(op: Operation) -> list[Dims]:
    dims, num = op.inputs[0].dims, op.attrs["num"]
    if dims is None:
        return [None] * num
    at = stacked_axis(op.attrs["axis"], len(dims))
    if dims[at] is not None and dims[at] != num:
        raise ValueError(
            f"Dimension {at} of shape {shape_text(dims)} must be {num} to be unstacked."
        )
    return [(*dims[:at], *dims[at + 1 :])] * num


def _unpack(value: Any, *, num: int, axis: int) -> Any:
    at = checked_axis(axis, value.ndim)
    if value.shape[at] != num:
        raise fail(f"Input shape axis {at} must equal {num}, got shape {shape_text(value.shape)}")
    lead = (slice(None),) * at
    rest = (*value.shape[:at], *value.shape[at + 1 :])
    return [value[(*lead, slice(i, i + 1))].reshape(rest) for i in range(num)]


def _unpack_gradient(op: Operation, *grads: Tensor) -> list[Any]:
    if not grads:
        return [None]
    return [raw.Pack(list(grads), axis=op.attrs["axis"])]


define_op(
    "Unpack(value: T) -> output: num * T",
    attrs="num: int >= 0, T: type, axis: int = 0",
    shape=_unpack_shape,
    kernel=_unpack,
    interpret=_unpack,
    gradient=_unpack_gradient,
    traits=PICKED,
)


def _parallel_concat_shape(op: Operation) -> list[Dims]:
    for tensor in op.inputs:
        dims = tensor.dims
        if dims is not None and dims and dims[0] not in (None, 1):
            raise ValueError(
                f"Every input must have size 1 in dimension 0, got {shape_text(dims)}."
            )
        if not compatible_static(dims, op.inputs[0].dims):
            raise ValueError(
                "All inputs must have the same shape, got "
                f"{shape_text(op.inputs[0].dims)} and {shape_text(dims)}."
            )
    return [op.attrs["shape"].as_tuple]


def _parallel_concat(xp: Any, values: list[Any]) -> Any:
    return xp.concatenate(values, 0)


define_op(
    "ParallelConcat(values: N * T) -> output: T",
    attrs="N: int >= 1, T: type, shape: shape",
    shape=_parallel_concat_shape,
    **both(_parallel_concat),
)

# -- splitting ----------------------------------------------------------------------------------


def _split_shape(op: Operation) -> list[Dims]:
    count, dims = op.attrs["num_split"], op.inputs[1].dims
    axis = static_int(op.inputs[0])
    if dims is None:
        return [None] * count
    if axis is None:
        return [unknown(len(dims))] * count
    at = checked_axis(axis, len(dims), "split_dim")
    size = dims[at]
    if size is not None and size % count:
        raise ValueError(
            f"Dimension size must be evenly divisible by {count} but is {size}: cannot split shape "
            f"{shape_text(dims)} along dimension {at}."
        )
    part = None if size is None else size // count
    return [(*dims[:at], part, *dims[at + 1 :])] * count


def _pieces(value: Any, at: int, sizes: list[int]) -> list[Any]:
    lead, start, result = (slice(None),) * at, 0, []
    for size in sizes:
        result.append(value[(*lead, slice(start, start + size))])
        start += size
    return result


def _split(split_dim: Any, value: Any, *, num_split: int) -> Any:
    at = checked_axis(_scalar_axis(split_dim, "split_dim"), value.ndim, "split_dim")
    size = value.shape[at]
    if size % num_split:
        raise fail(
            f"Number of ways to split should evenly divide the split dimension, but got split_dim "
            f"{at} (size = {size}) and num_split {num_split}"
        )
    return _pieces(value, at, [size // num_split] * num_split)


def _joined(grads: tuple[Tensor, ...], axis: Tensor) -> Tensor:
    if len(grads) == 1:
        return grads[0]
    return raw.ConcatV2(list(grads), axis)


define_op(
    "Split(split_dim: int32, value: T) -> output: num_split * T",
    attrs="num_split: int >= 1, T: type",
    shape=_split_shape,
    kernel=_split,
    interpret=_split,
    gradient=lambda op, *grads: [None, _joined(grads, op.inputs[0])],
    static=(0,),
    traits=Traits(elements_of=slice(1, 2), light=True),
)


def _checked_split_sizes(sizes: list[int], total: int | None, count: int) -> list[int]:
    """The sizes of all pieces, -1 worked out."""
    if len(sizes) != count:
        raise ValueError(f"size_splits has {len(sizes)} entries for {count} outputs.")
    gaps = [i for i, s in enumerate(sizes) if s == -1]
    rest = sum(s for s in sizes if s != -1)
    if len(gaps) > 1 or any(s < -1 for s in sizes):
        raise ValueError(f"size_splits may hold -1 only once and no other negative: {sizes}")
    if total is None:
        return sizes
    if rest > total or (not gaps and rest != total):
        raise ValueError(
            f"Determined shape must either match input shape along split_dim exactly if fully "
            f"specified, or be less than the size of the input along split_dim if not fully "
            f"specified.  Got: {rest} for sizes {sizes}, the input has {total}"
        )
    return [total - rest if i in gaps else s for i, s in enumerate(sizes)]


def _split_v_shape(op: Operation) -> list[Dims]:
    value, size_splits, split_dim = op.inputs
    count, dims = op.attrs["num_split"], value.dims
    axis = static_int(split_dim)
    if dims is None:
        return [None] * count
    if axis is None:
        return [unknown(len(dims))] * count
    at = checked_axis(axis, len(dims), "split_dim")
    known = static_ints(size_splits)
    if known is None:
        return [(*dims[:at], None, *dims[at + 1 :])] * count
    sizes = _checked_split_sizes(list(known), dims[at], count)
    return [(*dims[:at], None if s < 0 else s, *dims[at + 1 :]) for s in sizes]


def _split_v(value: Any, size_splits: Any, split_dim: Any, *, num_split: int) -> Any:
    at = checked_axis(_scalar_axis(split_dim, "split_dim"), value.ndim, "split_dim")
    sizes = _checked_split_sizes(size_splits.ravel().tolist(), value.shape[at], num_split)
    return _pieces(value, at, sizes)


define_op(
    "SplitV(value: T, size_splits: Tlen, split_dim: int32) -> output: num_split * T",
    attrs="num_split: int >= 1, T: type, Tlen: {int8, int32, int64} = int64",
    shape=_split_v_shape,
    kernel=_split_v,
    interpret=_split_v,
    gradient=lambda op, *grads: [_joined(grads, op.inputs[2]), None, None],
    static=(1, 2),
    traits=PICKED,
)

# -- repeating and reversing --------------------------------------------------------------------


def _tile_shape(op: Operation) -> list[Dims]:
    dims, times = op.inputs[0].dims, static_ints(op.inputs[1])
    length = vector_length(op.inputs[1])
    if dims is None:
        return [None if length is None else unknown(length)]
    if length is not None and length != len(dims):
        raise ValueError(
            f"Expected multiples argument to be a vector of length {len(dims)} but got length "
            f"{length}: shape {shape_text(dims)}."
        )
    if times is not None and min(times, default=0) < 0:
        raise ValueError(f"Expected multiples >= 0, but got {list(times)}.")
    known = static_shape(op.inputs[1]) if times is None else times
    if known is None or len(known) != len(dims):
        return [unknown(len(dims))]
    pairs = zip(dims, known, strict=True)
    return [tuple([None if d is None or m is None else d * m for d, m in pairs])]


def _tile(xp: Any, x: Any, multiples: Any) -> Any:
    times = multiples.tolist()
    if len(times) != x.ndim or min(times, default=0) < 0:
        raise fail(
            f"Expected multiples to be {x.ndim} numbers >= 0, but got {times} for an input of "
            f"shape {shape_text(x.shape)}."
        )
    return xp.tile(x, times)


def _tile_gradient(op: Operation, grad: Tensor) -> list[Any]:
    source, multiples = op.inputs
    times, dims = static_ints(multiples), source.dims
    if times is not None and fully_known(dims):
        assert dims is not None
        pairs = [n for m, d in zip(times, dims, strict=True) for n in (m, d)]
        parts = raw.Reshape(grad, int_const(pairs))
        return [raw.Sum(parts, int_const(range(0, len(pairs), 2))), None]
    shape = raw.Shape(source, out_type=multiples.dtype)
    both = raw.Reshape(raw.Pack([multiples, shape], axis=1), int_const([-1]))
    axes = raw.Range(0, raw.Size(both), 2)
    return [raw.Reshape(raw.Sum(raw.Reshape(grad, both), axes), shape), None]


define_op(
    "Tile(input: T, multiples: Tmultiples) -> output: T",
    attrs="T: type, Tmultiples: index = int32",
    shape=_tile_shape,
    **both(_tile),
    gradient=_tile_gradient,
    static=(1,),
    traits=Traits(elements_of=slice(1), numpy_calls=2),
)


def _reverse(xp: Any, x: Any, dims: Any) -> Any:
    flags = dims.tolist()
    if len(flags) != x.ndim:
        raise fail(f"reverse takes {x.ndim} flags for shape {shape_text(x.shape)}, not {flags}.")
    return xp.flip(x, tuple(i for i, f in enumerate(flags) if f))


def _axes_to_reverse(axis: Any, rank: int) -> tuple[int, ...]:
    axes = tuple(checked_axis(a, rank, "reverse axis") for a in axis)
    for i, at in enumerate(axes):
        if at in axes[:i]:
            raise ValueError(f"reverse axis {at} specified more than once: {list(axis)}.")
    return axes


def _reverse_v2(xp: Any, x: Any, axis: Any) -> Any:
    return xp.flip(x, _axes_to_reverse(axis.ravel().tolist(), x.ndim))


def _reverse_v2_shape(op: Operation) -> list[Dims]:
    dims, axes = op.inputs[0].dims, static_ints(op.inputs[1])
    if dims is not None and axes is not None:
        _axes_to_reverse(axes, len(dims))
    return [dims]


define_op(
    "Reverse(tensor: T, dims: bool) -> output: T",
    attrs="T: type",
    shape=like_first,
    **both(_reverse),
    gradient=lambda op, grad: [raw.Reverse(grad, op.inputs[1]), None],
    static=(1,),
)
define_op(
    "ReverseV2(tensor: T, axis: Tidx) -> output: T",
    attrs="Tidx: index = int32, T: type",
    shape=_reverse_v2_shape,
    **both(_reverse_v2),
    gradient=lambda op, grad: [raw.ReverseV2(grad, op.inputs[1]), None],
    static=(1,),
)


def _reverse_sequence_shape(op: Operation) -> list[Dims]:
    dims, lengths = op.inputs[0].dims, vector_length(op.inputs[1])
    if dims is not None:
        batch = checked_axis(op.attrs["batch_dim"], len(dims), "batch_dim")
        seq = checked_axis(op.attrs["seq_dim"], len(dims), "seq_dim")
        if batch == seq:
            raise ValueError(f"batch_dim == seq_dim == {seq}")
        if lengths is not None and dims[batch] is not None and lengths != dims[batch]:
            raise ValueError(
                f"seq_lengths has {lengths} entries for a batch of {dims[batch]}: input shape "
                f"{shape_text(dims)}, batch_dim {batch}."
            )
    return [dims]


def _reverse_sequence(xp: Any, x: Any, lengths: Any, *, seq_dim: int, batch_dim: int) -> Any:
    seq, batch = checked_axis(seq_dim, x.ndim), checked_axis(batch_dim, x.ndim)
    if lengths.shape != (x.shape[batch],):
        raise fail(f"seq_lengths must have shape ({x.shape[batch]},), not {lengths.shape}.")
    checks.require_in_range(xp, lengths, x.shape[seq] + 1, "seq_lengths")
    steps = xp.arange(x.shape[seq])
    column = lengths.reshape(-1, 1)
    index = xp.where(steps < column, column - 1 - steps, steps)
    if batch > seq:
        index = index.T
    shape = [1] * x.ndim
    shape[seq], shape[batch] = x.shape[seq], x.shape[batch]
    return xp.take_along_axis(x, index.reshape(shape), seq)


def _reverse_sequence_gradient(op: Operation, grad: Tensor) -> list[Any]:
    attrs = {"seq_dim": op.attrs["seq_dim"], "batch_dim": op.attrs["batch_dim"]}
    return [raw.ReverseSequence(grad, op.inputs[1], **attrs), None]


define_op(
    "ReverseSequence(input: T, seq_lengths: Tlen) -> output: T",
    attrs="seq_dim: int, batch_dim: int = 0, T: type, Tlen: index = int64",
    shape=_reverse_sequence_shape,
    **both(_reverse_sequence),
    gradient=_reverse_sequence_gradient,
    effects=CHECKS,
)


def _roll(xp: Any, x: Any, shift: Any, axis: Any) -> Any:
    axes = [checked_axis(a, x.ndim, "roll axis") for a in axis.ravel().tolist()]
    shifts = shift.reshape(-1)
    if len(axes) != shifts.shape[0]:
        raise fail(f"shift and axis must have the same size, got {shifts.shape[0]}, {len(axes)}.")
    for i, at in enumerate(axes):
        x = xp.roll(x, shifts[i], at)
    return x


define_op(
    "Roll(input: T, shift: Tshift, axis: Taxis) -> output: T",
    attrs="T: type, Tshift: index, Taxis: index",
    shape=like_first,
    **both(_roll),
    gradient=lambda op, grad: [raw.Roll(grad, raw.Neg(op.inputs[1]), op.inputs[2]), None, None],
    static=(2,),
)
