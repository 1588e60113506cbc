"""Sparse tensors whose number of elements depends on the data: host ops in vectorised NumPy.

Their gradients are of known sizes, and join XLA programs.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from jax import numpy as jnp

from headrace.graph import dtypes
from headrace.graph.shapes import compatible_static, merge_static, shape_text
from headrace.graph.tensor import Dims, Operation, Tensor
from headrace.ops.array.dynamic import on_host
from headrace.ops.core.array_util import both, fail, require_rank, vector_length
from headrace.ops.core.build import raw
from headrace.ops.core.registry import NotDifferentiable, define_op
from headrace.ops.core.static import static_shape
from headrace.ops.sparse import places as kernel
from headrace.ops.sparse.dense import check_parts, check_sizes, kept_axes, reduced_axes

Array = np.ndarray[Any, Any]
_COO = "{0}_indices: int64, {0}_values: T, {0}_shape: int64"
_NEITHER = NotDifferentiable("TensorFlow has no gradient of it either")


def _sparse_result(rank: int | None) -> list[Dims]:
    """The shapes of indices, values and dense shape whose count is unknown."""
    return [(None, rank), (None,), (rank,)]


def _require_same_shape(a: Array, b: Array) -> None:
    if a.shape != b.shape:
        raise fail(f"Operands' ranks do not match: got {a.size} and {b.size}")
    for i, (x, y) in enumerate(zip(a.tolist(), b.tolist(), strict=True)):
        if x != y:
            raise fail(f"Operands' shapes do not match: got {x} and {y} for dimension {i}")


def _two_shape(op: Operation) -> list[Dims]:
    check_parts(op)
    check_parts(op, 3)
    a, b = static_shape(op.inputs[2]), static_shape(op.inputs[5])
    if not compatible_static(a, b):
        raise ValueError(f"Shapes of the operands differ: {shape_text(a)} and {shape_text(b)}.")
    rank = (merge_static(op.inputs[2].dims, op.inputs[5].dims) or (None,))[0]
    return _sparse_result(rank)[: len(op.op_def.outputs)]


# -- sum, maximum, minimum of two ---------------------------------------------------------------


def _union(a_indices: Array, b_indices: Array) -> tuple[Array, Array, Array]:
    """All places in order, and where those of ``a`` and of ``b`` are among them."""
    stacked = np.concatenate([a_indices, b_indices])
    groups = kernel.row_groups(np, stacked)
    count = int(groups.max()) + 1 if groups.size else 0
    places = np.zeros((count, stacked.shape[1]), np.int64)
    places[groups] = stacked
    return places, groups[: a_indices.shape[0]], groups[a_indices.shape[0] :]


def _add(
    a_indices: Array,
    a_values: Array,
    a_shape: Array,
    b_indices: Array,
    b_values: Array,
    b_shape: Array,
    thresh: Array,
) -> Any:
    check_sizes(a_indices, a_values, a_shape)
    check_sizes(b_indices, b_values, b_shape)
    _require_same_shape(a_shape, b_shape)
    places, of_a, of_b = _union(a_indices, b_indices)
    total = np.zeros(places.shape[0], a_values.dtype)
    np.add.at(total, of_a, a_values)
    np.add.at(total, of_b, b_values)
    # Sums below the threshold are left out; an element that has no partner is no sum.
    pairs = np.bincount(np.concatenate([of_a, of_b]), minlength=places.shape[0]) > 1
    kept = ~pairs | (np.abs(total) >= thresh)
    return places[kept], total[kept], a_shape


def _add_gradient(op: Operation, _: Any, grad: Tensor, __: Any) -> list[Any]:
    a, b = raw.SparseAddGrad(grad, op.inputs[0], op.inputs[3], op.outputs[0])
    return [None, a, None, None, b, None, None]


def _values_at(xp: Any, grad: Any, own: Any, wanted: Any) -> Any:
    """The elements of ``grad``, whose places are ``own``, at the places ``wanted``; 0 elsewhere."""
    if wanted.shape[0] == 0 or own.shape[0] == 0:
        return xp.zeros(wanted.shape[0], grad.dtype)
    groups = kernel.row_groups(xp, xp.concatenate([own, wanted]))
    count = own.shape[0]
    if xp is np:
        by_group: Any = np.zeros(groups.size, grad.dtype)
        by_group[groups[:count]] = grad
    else:
        by_group = jnp.zeros(groups.size, grad.dtype).at[groups[:count]].set(grad)
    return by_group[groups[count:]]


def _add_grad(xp: Any, grad: Any, a_indices: Any, b_indices: Any, sum_indices: Any) -> Any:
    if grad.shape[0] != sum_indices.shape[0]:
        raise fail(
            f"# elements of backprop_val_grad and sum_indices differ: {grad.shape[0]}, "
            f"{sum_indices.shape[0]}"
        )
    return tuple(_values_at(xp, grad, sum_indices, i) for i in (a_indices, b_indices))


define_op(
    f"SparseAdd({_COO.format('a')}, {_COO.format('b')}, thresh: Treal) ->"
    " (sum_indices: int64, sum_values: T, sum_shape: int64)",
    attrs="T: numeric, Treal: real",
    shape=_two_shape,
    **on_host(_add),
    gradient=_add_gradient,
)
define_op(
    "SparseAddGrad(backprop_val_grad: T, a_indices: int64, b_indices: int64, sum_indices: int64)"
    " -> (a_val_grad: T, b_val_grad: T)",
    attrs="T: numeric",
    shape=lambda op: [(op.inputs[i].dims or (None,))[:1] for i in (1, 2)],
    **both(_add_grad),
    gradient=_NEITHER,
)


def _choose(
    ufunc: Any,
    a_indices: Array,
    a_values: Array,
    a_shape: Array,
    b_indices: Array,
    b_values: Array,
    b_shape: Array,
) -> Any:
    check_sizes(a_indices, a_values, a_shape)
    check_sizes(b_indices, b_values, b_shape)
    _require_same_shape(a_shape, b_shape)
    places, of_a, of_b = _union(a_indices, b_indices)
    a, b = (np.zeros(places.shape[0], a_values.dtype) for _ in range(2))
    a[of_a], b[of_b] = a_values, b_values
    return places, ufunc(a, b)


def _maximum(ai: Array, av: Array, ash: Array, bi: Array, bv: Array, bsh: Array) -> Any:
    return _choose(np.maximum, ai, av, ash, bi, bv, bsh)


def _minimum(ai: Array, av: Array, ash: Array, bi: Array, bv: Array, bsh: Array) -> Any:
    return _choose(np.minimum, ai, av, ash, bi, bv, bsh)


def _choose_gradient(wins: str, op: Operation, _: Any, grad: Tensor) -> list[Any]:
    """To the operand that was chosen; to the first where they are equal."""
    a_indices, a, _, b_indices, b, _ = op.inputs
    of_a, of_b = raw.SparseAddGrad(grad, a_indices, b_indices, op.outputs[0])
    b_beside_a, _ = raw.SparseAddGrad(b, a_indices, a_indices, b_indices)
    a_beside_b, _ = raw.SparseAddGrad(a, b_indices, b_indices, a_indices)
    compare = getattr(raw, wins)
    first = raw.SelectV2(compare(a, b_beside_a), of_a, raw.ZerosLike(of_a))
    second = raw.SelectV2(compare(a_beside_b, b), raw.ZerosLike(of_b), of_b)
    return [None, first, None, None, second, None]


for _name, _function, _wins in (
    ("Maximum", _maximum, "GreaterEqual"),
    ("Minimum", _minimum, "LessEqual"),
):
    define_op(
        f"SparseSparse{_name}({_COO.format('a')}, {_COO.format('b')}) ->"
        " (output_indices: int64, output_values: T)",
        attrs="T: real",
        shape=_two_shape,
        **on_host(_function),
        gradient=partial(_choose_gradient, _wins),
    )

# -- concatenation, split, slice ----------------------------------------------------------------


def _concat_shape(op: Operation) -> list[Dims]:
    count = op.attrs["N"]
    rank: Dims = (None,)
    total: int | None = 0
    for indices, values, shape in zip(
        op.inputs[:count], op.inputs[count : 2 * count], op.inputs[2 * count :], strict=True
    ):
        require_rank(indices, 2, "indices")
        rank = merge_static(rank, shape.dims)
        length = vector_length(values)
        total = None if None in (total, length) else total + length  # type: ignore[operator]
    size = (rank or (None,))[0]
    axis = op.attrs["concat_dim"]
    if size is not None and not -size <= axis < size:
        raise ValueError(f"Concat dimension must be in range [{-size}, {size}), got {axis}")
    return [(total, size), (total,), (size,)]


def _concat(
    indices: list[Array], values: list[Array], shapes: list[Array], *, concat_dim: int
) -> Any:
    rank = shapes[0].size
    if not -rank <= concat_dim < rank:
        raise fail(f"Concat dimension must be in range [{-rank}, {rank}), got {concat_dim}")
    axis = concat_dim % rank
    for i, shape in enumerate(shapes):
        check_sizes(indices[i], values[i], shape)
        if shape.size != rank:
            raise fail(
                f"Ranks of all input tensors must match: expected {rank} but got "
                f"{shape.size} at position {i}"
            )
        for j in range(rank):
            if j != axis and shape[j] != shapes[0][j]:
                raise fail(
                    f"Input shapes must match: expected {shapes[0][j]} for dimension {j} "
                    f"but got {shape[j]} at position {i}"
                )
    sizes = np.array([s[axis] for s in shapes])
    starts = np.cumsum(sizes) - sizes
    moved = []
    for places, start in zip(indices, starts, strict=True):
        places = places.copy()
        places[:, axis] += start
        moved.append(places)
    result = np.concatenate(moved)
    order = kernel.row_order(np, result)
    shape = shapes[0].copy()
    shape[axis] = sizes.sum()
    return result[order], np.concatenate(values)[order], shape


def _concat_gradient(op: Operation, _: Any, grad: Tensor, __: Any) -> list[Any]:
    """Each input is a slice of the result. (TensorFlow stops here without a word.)"""
    count, rank = op.attrs["N"], vector_length(op.inputs[-1])
    if rank is None:
        raise ValueError("The gradient of SparseConcat needs a known rank.")
    unit = np.zeros(rank, np.int64)
    unit[op.attrs["concat_dim"]] = 1
    start: Any = unit * 0
    found = []
    for indices, shape in zip(op.inputs[:count], op.inputs[2 * count :], strict=True):
        found.append(raw.SparseSliceGrad(grad, indices, start, op.outputs[0]))
        start = raw.Sub(start, raw.Mul(unit, shape))
    return [*[None] * count, *found, *[None] * count]


define_op(
    "SparseConcat(indices: N * int64, values: N * T, shapes: N * int64) ->"
    " (output_indices: int64, output_values: T, output_shape: int64)",
    attrs="concat_dim: int, N: int >= 2, T: type",
    shape=_concat_shape,
    **on_host(_concat),
    gradient=_concat_gradient,
)


def _split_shape(op: Operation) -> list[Dims]:
    require_rank(op.inputs[0], 0, "split_dim")
    check_parts(op, 1)
    rank = (op.inputs[3].dims or (None,))[0]
    one = _sparse_result(rank)
    return [dims for dims in one for _ in range(op.attrs["num_split"])]


def _split(split_dim: Array, indices: Array, values: Array, shape: Array, *, num_split: int) -> Any:
    check_sizes(indices, values, shape)
    rank, given = shape.size, int(split_dim)
    if not -rank <= given < rank:
        raise fail(f"Input axis should be in range [{-rank}, {rank}), got {given}")
    axis = given % rank
    size = int(shape[axis])
    if not 1 <= num_split <= size:
        raise fail(
            f"Input num_split should be between 1 and the splitting dimension size ({size}),"
            f" got {num_split}"
        )
    # The first parts have one more where the size is no multiple.
    lengths = np.full(num_split, size // num_split)
    lengths[: size % num_split] += 1
    ends = np.cumsum(lengths)
    part = np.searchsorted(ends, indices[:, axis], side="right")
    places, elements, shapes = [], [], []
    for i, (end, length) in enumerate(zip(ends, lengths, strict=True)):
        chosen = part == i
        moved = indices[chosen]
        moved[:, axis] -= end - length
        of_part = shape.copy()
        of_part[axis] = length
        places.append(moved)
        elements.append(values[chosen])
        shapes.append(of_part)
    return places, elements, shapes


def _split_gradient(op: Operation, *grads: Any) -> list[Any]:
    """Each part is a slice: its gradient goes to where it began."""
    count = op.attrs["num_split"]
    axis, indices = op.inputs[:2]
    rank = vector_length(op.inputs[3])
    if rank is None:
        raise ValueError("The gradient of SparseSplit needs a known rank.")
    along = raw.FloorMod(axis, np.int64(rank))
    unit = raw.Cast(raw.Equal(np.arange(rank), along), DstT=dtypes.int64)
    start = raw.Mul(unit, np.int64(0))
    total: Any = None
    for i in range(count):
        grad = grads[count + i]
        if grad is not None:
            part = raw.SparseSliceGrad(grad, indices, start, op.outputs[i])
            total = part if total is None else raw.AddV2(total, part)
        start = raw.AddV2(start, raw.Mul(unit, op.outputs[2 * count + i]))
    return [None, None, total, None]


define_op(
    "SparseSplit(split_dim: int64, indices: int64, values: T, shape: int64) ->"
    " (output_indices: num_split * int64, output_values: num_split * T,"
    " output_shape: num_split * int64)",
    attrs="num_split: int >= 1, T: type",
    shape=_split_shape,
    **on_host(_split),
    gradient=_split_gradient,
)


def _slice_shape(op: Operation) -> list[Dims]:
    check_parts(op)
    rank = vector_length(op.inputs[2])
    for i in (3, 4):
        length = vector_length(op.inputs[i])
        rank = length if rank is None else rank
        if None not in (length, rank) and length != rank:
            raise ValueError(
                f"start and size must have one entry for each of {rank} dimensions; "
                f"there are {length}."
            )
    return _sparse_result(rank)


def _slice(indices: Array, values: Array, shape: Array, start: Array, size: Array) -> Any:
    check_sizes(indices, values, shape)
    for name, entry in (("start", start), ("size", size)):
        if entry.shape != shape.shape:
            raise fail(
                f"Expected {name} to be a vector of length {shape.size} but got length {entry.size}"
            )
    lengths = np.maximum(np.minimum(start + size, shape) - start, 0)
    lengths = np.where(start < shape, lengths, 0)
    kept = np.all((indices >= start) & (indices < start + size), axis=1)
    return indices[kept] - start, values[kept], lengths


def _slice_gradient(op: Operation, _: Any, grad: Tensor, __: Any) -> list[Any]:
    found = raw.SparseSliceGrad(grad, op.inputs[0], op.inputs[3], op.outputs[0])
    return [None, found, None, None, None]


def _slice_grad(xp: Any, grad: Any, input_indices: Any, start: Any, output_indices: Any) -> Any:
    if grad.shape[0] != output_indices.shape[0]:
        raise fail(
            f"# elements of backprop_val_grad and output_indices differ: {grad.shape[0]}, "
            f"{output_indices.shape[0]}"
        )
    return _values_at(xp, grad, output_indices + start, input_indices)


define_op(
    "SparseSlice(indices: int64, values: T, shape: int64, start: int64, size: int64) ->"
    " (output_indices: int64, output_values: T, output_shape: int64)",
    attrs="T: type",
    shape=_slice_shape,
    **on_host(_slice),
    gradient=_slice_gradient,
)
define_op(
    "SparseSliceGrad(backprop_val_grad: T, input_indices: int64, input_start: int64,"
    " output_indices: int64) -> val_grad: T",
    attrs="T: numeric",
    shape=lambda op: [(op.inputs[1].dims or (None,))[:1]],
    **both(_slice_grad),
    gradient=_NEITHER,
)

# -- rows without elements ----------------------------------------------------------------------


def _fill_shape(op: Operation) -> list[Dims]:
    check_parts(op)
    require_rank(op.inputs[3], 0, "default_value")
    rank = vector_length(op.inputs[2])
    dims = static_shape(op.inputs[2])
    return [(None, rank), (None,), (dims[0] if dims else None,), (vector_length(op.inputs[1]),)]


def _fill(indices: Array, values: Array, dense_shape: Array, default_value: Array) -> Any:
    if dense_shape.size == 0:
        raise fail("Dense shape cannot be empty.")
    check_sizes(indices, values, dense_shape)
    rows = int(dense_shape[0])
    first = indices[:, 0]
    bad = np.flatnonzero((first < 0) | (first >= rows))
    if bad.size:
        at = bad[0]
        if first[at] < 0:
            raise fail(f"indices({at}, 0) is invalid: {first[at]} < 0")
        raise fail(f"indices({at}, 0) is invalid: {first[at]} >= {rows}")
    empty = np.ones(rows, bool)
    empty[first] = False
    filler = np.zeros((int(empty.sum()), dense_shape.size), np.int64)
    filler[:, 0] = np.flatnonzero(empty)
    places = np.concatenate([indices, filler])
    elements = np.concatenate([values, np.full(filler.shape[0], default_value, values.dtype)])
    order = np.argsort(places[:, 0], kind="stable")
    position = np.empty(order.size, np.int64)
    position[order] = np.arange(order.size)
    return places[order], elements[order], empty, position[: indices.shape[0]]


def _fill_gradient(op: Operation, _: Any, grad: Tensor, *rest: Any) -> list[Any]:
    values, default = raw.SparseFillEmptyRowsGrad(op.outputs[3], grad)
    return [None, values, None, default]


def _fill_grad(xp: Any, reverse_index_map: Any, grad_values: Any) -> Any:
    chosen = xp.take(grad_values, reverse_index_map, axis=0)
    zero = grad_values.dtype.type(0)
    if xp is np:
        others = grad_values.copy()
        others[reverse_index_map] = zero
        return chosen, np.asarray(others.sum(), grad_values.dtype)
    others = jnp.asarray(grad_values).at[reverse_index_map].set(zero)
    return chosen, jnp.asarray(others.sum(), grad_values.dtype)


define_op(
    "SparseFillEmptyRows(indices: int64, values: T, dense_shape: int64, default_value: T) ->"
    " (output_indices: int64, output_values: T, empty_row_indicator: bool,"
    " reverse_index_map: int64)",
    attrs="T: type",
    shape=_fill_shape,
    **on_host(_fill),
    gradient=_fill_gradient,
)
define_op(
    "SparseFillEmptyRowsGrad(reverse_index_map: int64, grad_values: T) ->"
    " (d_values: T, d_default_value: T)",
    attrs="T: numeric",
    shape=lambda op: [op.inputs[0].dims, ()],
    **both(_fill_grad),
    gradient=_NEITHER,
)

# -- reductions to sparse -----------------------------------------------------------------------


def _reduce_sparse_shape(op: Operation) -> list[Dims]:
    check_parts(op)
    rank = vector_length(op.inputs[2])
    return _sparse_result(rank if op.attrs["keep_dims"] else None)


def _reduce_sparse(
    ufunc: Any, indices: Array, values: Array, shape: Array, axes: Array, keep: bool
) -> Any:
    check_sizes(indices, values, shape)
    gone = reduced_axes(axes, shape.size)
    kept = np.array([i for i in range(shape.size) if i not in gone], int)
    by_kept = indices[:, kept]
    groups = kernel.row_groups(np, by_kept)
    count = int(groups.max()) + 1 if groups.size else 0
    totals = np.zeros(count, values.dtype)
    kernel.reduce_rows(ufunc, totals, values, groups)
    places = np.zeros((count, shape.size), np.int64)
    places[groups[:, None], kept] = by_kept
    if keep:
        sizes = shape.copy()
        sizes[gone] = 1
        return places, totals, sizes
    return places[:, kept], totals, shape[kept]


def _reduce_sum_sparse(i: Array, v: Array, s: Array, axes: Array, *, keep_dims: bool) -> Any:
    return _reduce_sparse(np.add, i, v, s, axes, keep_dims)


def _reduce_max_sparse(i: Array, v: Array, s: Array, axes: Array, *, keep_dims: bool) -> Any:
    return _reduce_sparse(np.maximum, i, v, s, axes, keep_dims)


def _reduce_sparse_gradient(kind: str, op: Operation, _: Any, grad: Tensor, __: Any) -> list[Any]:
    """To all values of a sum; to the greatest ones, in equal shares."""
    indices, values, shape, axes = op.inputs
    kept, keep = kept_axes(op), op.attrs["keep_dims"]
    if keep:
        places = raw.Mul(indices, kept.astype(np.int64))
    else:
        places = raw.GatherV2(indices, np.flatnonzero(kept), 1)

    def at_values(result: Tensor) -> Tensor:
        found, _ = raw.SparseAddGrad(result, places, places, op.outputs[0])
        return found

    if kind == "Sum":
        return [None, at_values(grad), None, None]
    hits = raw.Cast(raw.Equal(values, at_values(op.outputs[1])), DstT=values.dtype)
    counts = raw.SparseReduceSumSparse(indices, hits, shape, axes, keep_dims=keep)[1]
    return [None, raw.Mul(raw.RealDiv(hits, at_values(counts)), at_values(grad)), None, None]


for _name, _types, _reducer in (
    ("Sum", "numeric", _reduce_sum_sparse),
    ("Max", "real", _reduce_max_sparse),
):
    define_op(
        f"SparseReduce{_name}Sparse({_COO.format('input')}, reduction_axes: int32) ->"
        " (output_indices: int64, output_values: T, output_shape: int64)",
        attrs=f"keep_dims: bool = False, T: {_types}",
        shape=_reduce_sparse_shape,
        **on_host(_reducer),
        gradient=partial(_reduce_sparse_gradient, _name),
    )
