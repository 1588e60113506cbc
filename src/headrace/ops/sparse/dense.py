"""Sparse and dense tensors together: conversion, products, elementwise with a dense side, sums.

The sizes of all results follow from shapes and from the dense shape, so these join XLA programs.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from jax import lax
from jax import numpy as jnp

from headrace.graph import dtypes
from headrace.graph.shapes import compatible_static, merge_static, shape_text
from headrace.graph.tensor import Dims, Operation, Tensor
from headrace.ops.core import checks, requirements
from headrace.ops.core.array_util import both, fail, require_rank, static_ints, vector_length
from headrace.ops.core.build import raw
from headrace.ops.core.registry import CHECKS, NotDifferentiable, define_op
from headrace.ops.core.static import static_shape
from headrace.ops.sparse import places as kernel
from headrace.ops.sparse.places import list_text

Array = np.ndarray[Any, Any]

_COO = "{0}_indices: int64, {0}_values: T, {0}_shape: int64"


def check_parts(op: Operation, start: int = 0) -> None:
    """Require the shapes of indices, values and dense shape at ``start`` to fit.

    Raises:
        ValueError: if they cannot.
    """
    indices, values, shape = op.inputs[start : start + 3]
    require_rank(indices, 2, "indices")
    require_rank(values, 1, "values")
    require_rank(shape, 1, "dense_shape")
    wanted = merge_static(
        (values.dims or (None,))[:1] + ((shape.dims or (None,))[:1]), (None, None)
    )
    if not compatible_static(indices.dims, wanted):
        raise ValueError(
            f"indices of shape {shape_text(indices.dims)} do not fit values of shape "
            f"{shape_text(values.dims)} and a dense shape of {shape_text(shape.dims)}."
        )


def check_sizes(indices: Any, values: Any, shape: Any) -> None:
    """The same for arrays.

    Raises:
        InvalidArgumentError: if the sizes do not fit.
    """
    if indices.ndim != 2 or values.ndim != 1 or shape.ndim != 1:
        raise fail(
            "Input indices must be a matrix, values and shape vectors, but got shapes "
            f"{shape_text(indices.shape)}, {shape_text(values.shape)}, {shape_text(shape.shape)}"
        )
    if indices.shape != (values.shape[0], shape.shape[0]):
        raise fail(
            f"indices of shape {shape_text(indices.shape)} do not fit {values.shape[0]} values of "
            f"a tensor of rank {shape.shape[0]}"
        )


# -- to dense -----------------------------------------------------------------------------------


def _to_dense_shape(op: Operation) -> list[Dims]:
    require_rank(op.inputs[1], 1, "output_shape")
    require_rank(op.inputs[3], 0, "default_value")
    return [static_shape(op.inputs[1])]


def _to_dense(
    xp: Any, indices: Any, output_shape: Any, values: Any, default: Any, *, validate_indices: bool
) -> Any:
    shape = tuple(int(s) for s in np.asarray(output_shape).ravel())
    if indices.ndim > 2:
        raise fail(
            "sparse_indices should be a scalar, vector, or matrix, got shape "
            f"{shape_text(indices.shape)}"
        )
    if indices.ndim < 2:
        indices = indices.reshape((-1, 1))
    if indices.shape[1] != len(shape):
        raise fail(
            f"output_shape has incorrect number of elements: {len(shape)} should be: "
            f"{indices.shape[1]}"
        )
    if values.ndim > 1 or (values.ndim == 1 and values.shape[0] != indices.shape[0]):
        raise fail(
            f"sparse_values has incorrect shape {list_text(values.shape)}, should be [] or "
            f"[{indices.shape[0]}]"
        )
    if validate_indices:
        kernel.check_bounds(xp, indices, shape)
        kernel.check_order(xp, indices)
    else:
        text = f"Indices are not valid (out of bounds).  Shape: {list_text(shape)}"
        kernel.check_bounds(xp, indices, shape, text)
    places = tuple(indices[:, c] for c in range(len(shape)))
    if xp is np:
        dense = np.full(shape, default, values.dtype)
        dense[places] = values
        return dense
    filled = jnp.broadcast_to(default, shape)
    return filled.at[places].set(values, mode="drop") if indices.shape[0] else filled


def _to_dense_gradient(op: Operation, grad: Tensor) -> list[Any]:
    indices, _, values, default = op.inputs
    if indices.dims is not None and len(indices.dims) < 2:
        indices = raw.Reshape(indices, [-1, 1])
    of_values = raw.GatherNd(grad, indices)
    total = raw.Sum(of_values, raw.Range(0, raw.Rank(of_values), 1))
    of_default = raw.Sub(raw.Sum(grad, raw.Range(0, raw.Rank(grad), 1)), total)
    by_value = total if values.dims == () else of_values
    return [None, None, by_value, of_default if default.dtype.is_floating else None]


define_op(
    "SparseToDense(sparse_indices: Tindices, output_shape: Tindices, sparse_values: T,"
    " default_value: T) -> dense: T",
    attrs="validate_indices: bool = True, T: type, Tindices: index",
    shape=_to_dense_shape,
    **both(_to_dense),
    gradient=_to_dense_gradient,
    static=(1,),
    effects=CHECKS,
)

# -- times a dense matrix -----------------------------------------------------------------------


def _matmul_shape(op: Operation) -> list[Dims]:
    check_parts(op)
    a, b = static_shape(op.inputs[2]), op.inputs[3].dims
    require_rank(op.inputs[3], 2, "b")
    if a is not None and len(a) != 2:
        raise ValueError(f"Shape of the sparse matrix must be of length 2, but is {len(a)}.")
    rows, inner = a or (None, None)
    if op.attrs["adjoint_a"]:
        rows, inner = inner, rows
    length, columns = b or (None, None)
    if op.attrs["adjoint_b"]:
        length, columns = columns, length
    if None not in (inner, length) and inner != length:
        raise ValueError(
            f"Cannot multiply A and B because inner dimension does not match: {inner} vs. {length}."
            f" Did you forget a transpose? Shapes: {shape_text(a)} and {shape_text(b)}."
        )
    return [(rows, columns)]


def _matmul(
    xp: Any,
    indices: Any,
    values: Any,
    a_shape: Any,
    b: Any,
    *,
    adjoint_a: bool,
    adjoint_b: bool,
) -> Any:
    check_sizes(indices, values, a_shape)
    rows, columns = indices[:, 0], indices[:, 1]
    m, k = (int(s) for s in a_shape)
    if adjoint_b:
        b = xp.conj(b.T) if b.dtype.kind == "c" else b.T
    if adjoint_a:
        rows, columns, m, k = columns, rows, k, m
        values = xp.conj(values) if values.dtype.kind == "c" else values
    if k != b.shape[0]:
        raise fail(
            f"Cannot multiply A and B because inner dimension does not match: {k} vs. "
            f"{b.shape[0]}.  Did you forget a transpose?  Dimensions of A: "
            f"{list_text(a_shape)}.  Dimensions of B: {list_text(b.shape)}"
        )
    for name, index, limit in (("k", columns, k), ("m", rows, m)):
        place = f"index[{{0}},{int((name == 'k') != adjoint_a)}]"
        _check_column(xp, index, limit, f"{name} ({{1}}) from {place} out of bounds (>={{2}})")
    if xp is np:
        return kernel.sum_rows(np, values[:, None] * b[columns], rows, m)
    product = values[:, None] * jnp.take(b, columns, axis=0, mode="clip")
    return kernel.sum_rows(jnp, product, rows, m)


def _check_column(xp: Any, index: Any, limit: int, message: str) -> None:
    if not index.size:
        return
    xp = kernel.known_as(xp, index)
    bad = (index < 0) | (index >= limit)
    at = xp.argmax(bad)
    checks.require(~xp.any(bad), message, at, index[at], xp.asarray(limit))


def _matmul_gradient(op: Operation, grad: Tensor) -> list[Any]:
    indices, values, shape, b = op.inputs
    if values.dtype.is_complex:
        raise NotImplementedError("SparseTensorDenseMatMul op does not support complex gradients.")
    adjoint_a, adjoint_b = op.attrs["adjoint_a"], op.attrs["adjoint_b"]
    of_b = raw.SparseTensorDenseMatMul(indices, values, shape, grad, adjoint_a=not adjoint_a)
    transposed = raw.Transpose(b, [1, 0]) if adjoint_b else b
    rows, columns = raw.Unpack(indices, num=2, axis=1)
    if adjoint_a:
        rows, columns = columns, rows
    products = raw.Mul(raw.GatherV2(grad, rows, 0), raw.GatherV2(transposed, columns, 0))
    of_b = raw.Transpose(of_b, [1, 0]) if adjoint_b else of_b
    return [None, raw.Sum(products, 1), None, of_b]


define_op(
    "SparseTensorDenseMatMul(a_indices: Tindices, a_values: T, a_shape: int64, b: T) -> product: T",
    attrs="T: numeric, Tindices: index = int64, adjoint_a: bool = False, adjoint_b: bool = False",
    shape=_matmul_shape,
    **both(_matmul),
    gradient=_matmul_gradient,
    static=(2,),
    effects=CHECKS,
)

# -- plus a dense tensor ------------------------------------------------------------------------


def _dense_add_shape(op: Operation) -> list[Dims]:
    check_parts(op)
    sparse, dense = static_shape(op.inputs[2]), op.inputs[3].dims
    if not compatible_static(sparse, dense):
        raise ValueError(
            f"Shapes must be equal to add (no broadcasting): {shape_text(sparse)} and "
            f"{shape_text(dense)}."
        )
    return [merge_static(sparse, dense)]


def _dense_add(xp: Any, indices: Any, values: Any, shape: Any, b: Any) -> Any:
    check_sizes(indices, values, shape)
    if shape.shape[0] != b.ndim:
        raise fail(f"Two operands should have the same ndims: {shape.shape[0]} vs. {b.ndim}")
    for i, size in enumerate(b.shape):
        checks.require(
            shape[i] == size,
            f"Dimension {i} does not equal (no broadcasting is supported): sparse side {{0}} vs "
            f"dense side {size}",
            shape[i],
        )
    text = f"Sparse tensor has an invalid index for the dense tensor shape {list_text(b.shape)}"
    kernel.check_bounds(xp, indices, b.shape, text)
    places = tuple(indices[:, c] for c in range(b.ndim))
    if xp is np:
        total = b.copy()
        np.add.at(total, places, values)
        return total
    return jnp.asarray(b).at[places].add(values, mode="drop") if indices.shape[0] else b


def _dense_add_gradient(op: Operation, grad: Tensor) -> list[Any]:
    return [None, raw.GatherNd(grad, op.inputs[0]), None, grad]


define_op(
    "SparseTensorDenseAdd(a_indices: Tindices, a_values: T, a_shape: Tindices, b: T) -> output: T",
    attrs="T: numeric, Tindices: index",
    shape=_dense_add_shape,
    **both(_dense_add),
    gradient=_dense_add_gradient,
    effects=CHECKS,
)

# -- elementwise with a dense side that broadcasts ----------------------------------------------


def _values_shape(op: Operation) -> list[Dims]:
    """Shape rule: one output, with one element for each value."""
    check_parts(op)
    return [op.inputs[1].dims or (None,)]


def _dense_at(xp: Any, indices: Any, shape: Any, dense: Any) -> Any:
    """The elements of ``dense``, broadcast to the sparse shape, at the places of the values."""
    rank, own = shape.shape[0], dense.ndim
    message = "SparseDenseBinaryOpShared broadcasts dense to sparse only; got incompatible shapes: "
    if own > rank:
        raise fail(f"{message}rank {rank} vs. {list_text(dense.shape)}")
    columns = []
    for axis, size in enumerate(dense.shape):
        column = indices[:, rank - own + axis]
        if size == 1:
            columns.append(column * 0)
            continue
        text = f"{message}size {{0}} vs. {size} in {list_text(dense.shape)}"
        checks.require(shape[rank - own + axis] == size, text, shape[rank - own + axis])
        bad = (column < 0) | (column >= size)
        text = "Provided indices are out-of-bounds w.r.t. dense side with broadcasted shape"
        checks.require(~xp.any(bad), text)
        columns.append(column if xp is np else jnp.clip(column, 0, size - 1))
    if not columns:
        return xp.broadcast_to(dense, (indices.shape[0],))
    return xp.asarray(dense)[tuple(columns)]


def _dense_binary(xp: Any, kind: str, indices: Any, values: Any, shape: Any, dense: Any) -> Any:
    check_sizes(indices, values, shape)
    other = _dense_at(xp, indices, shape, dense)
    if kind == "Add":
        return values + other
    if kind == "Mul":
        return values * other
    if values.dtype.kind not in "iu":
        return values / other
    checks.require(~xp.any(other == 0), "Integer division by zero")
    return (values - xp.fmod(values, other)) // other


def _dense_places(op: Operation) -> tuple[Tensor, Tensor]:
    """For each value the place of its partner in the dense side; the partners."""
    indices, _, _, dense = op.inputs
    rank = vector_length(op.inputs[2])
    if dense.dims is None or rank is None:
        raise ValueError(f"The gradient of {op.type} needs operands of known rank.")
    own = len(dense.dims)
    sizes = raw.Shape(dense, out_type=dtypes.int64)
    kept = raw.StridedSlice(indices, [0, rank - own], [0, 0], [1, 1], begin_mask=1, end_mask=3)
    places = raw.Minimum(kept, raw.Sub(sizes, np.int64(1)))
    return places, raw.GatherNd(dense, places)


def _dense_binary_gradient(kind: str, op: Operation, grad: Tensor) -> list[Any]:
    values, dense = op.inputs[1], op.inputs[3]
    places, partners = _dense_places(op)
    if kind == "Add":
        of_values, of_dense = grad, grad
    elif kind == "Mul":
        of_values, of_dense = raw.Mul(grad, partners), raw.Mul(grad, values)
    else:
        of_values = raw.RealDiv(grad, partners)
        of_dense = raw.Mul(grad, raw.RealDiv(raw.Neg(values), raw.Square(partners)))
    sizes = raw.Shape(dense, out_type=dtypes.int64)
    return [None, of_values, None, raw.ScatterNd(places, of_dense, sizes)]


for _kind in ("Add", "Mul", "Div"):
    define_op(
        f"SparseDenseCwise{_kind}({_COO.format('sp')}, dense: T) -> output: T",
        attrs="T: numeric",
        shape=_values_shape,
        kernel=partial(_dense_binary, jnp, _kind),
        interpret=partial(_dense_binary, np, _kind),
        gradient=partial(_dense_binary_gradient, _kind),
        effects=CHECKS,
    )

# -- softmax ------------------------------------------------------------------------------------


def _softmax(xp: Any, indices: Any, values: Any, shape: Any) -> Any:
    """Over the last axis, among the values that are there."""
    check_sizes(indices, values, shape)
    if shape.shape[0] < 2:
        raise fail(f"Input should have rank >= 2, but received shape of rank {shape.shape[0]}")
    count = values.shape[0]
    if count == 0:
        return values
    rows = kernel.row_groups(xp, indices[:, :-1])
    if xp is np:
        top: Any = np.full(count, -np.inf, values.dtype)
        np.maximum.at(top, rows, values)
        powers = np.exp(values - top[rows])
    else:
        top = jnp.full(count, -jnp.inf, values.dtype).at[rows].max(values)
        powers = jnp.exp(values - lax.stop_gradient(top)[rows])
    return powers / kernel.sum_rows(xp, powers, rows, count)[rows]


define_op(
    f"SparseSoftmax({_COO.format('sp')}) -> output: T",
    attrs="T: {float16, float32, float64}",
    shape=_values_shape,
    **both(_softmax),
)
# -- reductions to dense ------------------------------------------------------------------------


def reduced_axes(axes: Any, rank: int) -> list[int]:
    """Reduction axes, counted from the front, each once.

    Raises:
        InvalidArgumentError: if one is not an axis.
    """
    found = set()
    for axis in np.asarray(axes).ravel().tolist():
        if not -rank <= axis < rank:
            raise fail(f"Invalid reduction dimension {axis}, for input with {rank} dimensions.")
        found.add(axis % rank)
    return sorted(found)


def _reduce_shape(op: Operation) -> list[Dims]:
    check_parts(op)
    dims, axes = static_shape(op.inputs[2]), static_ints(op.inputs[3])
    if dims is None or axes is None:
        return [None]
    rank, keep = len(dims), op.attrs["keep_dims"]
    for axis in axes:
        if not -rank <= axis < rank:
            raise ValueError(f"Invalid reduction dimension {axis}, for input with {rank} dims.")
    gone = {a % rank for a in axes}
    if keep:
        return [tuple(1 if i in gone else d for i, d in enumerate(dims))]
    return [tuple(d for i, d in enumerate(dims) if i not in gone)]


def _reduce(
    xp: Any, kind: str, indices: Any, values: Any, shape: Any, axes: Any, *, keep_dims: bool
) -> Any:
    check_sizes(indices, values, shape)
    sizes = [int(s) for s in shape]
    gone = reduced_axes(axes, len(sizes))
    kernel.check_bounds(xp, indices, sizes)
    kept = [i for i in range(len(sizes)) if i not in gone]
    out_sizes = [sizes[i] for i in kept]
    groups = kernel.flat_places(xp, indices[:, np.array(kept, int)], out_sizes)
    total = int(np.prod(out_sizes, dtype=np.int64))
    if kind == "Sum":
        flat: Any = kernel.sum_rows(xp, values, groups, total)
    elif xp is np:
        flat = np.zeros(total, values.dtype)
        kernel.reduce_rows(np.maximum, flat, values, groups)
    else:
        low = -jnp.inf if values.dtype.kind in "fV" else np.iinfo(values.dtype).min
        flat = jnp.full(total, low, values.dtype).at[groups].max(values, mode="drop")
        seen = jnp.zeros(total, bool).at[groups].set(True, mode="drop")
        flat = jnp.where(seen, flat, jnp.zeros((), values.dtype))
    return flat.reshape(
        [1 if i in gone else s for i, s in enumerate(sizes)] if keep_dims else out_sizes
    )


def kept_axes(op: Operation) -> Array:
    """For each axis of a sparse reduction whether it is kept.

    Raises:
        ValueError: if the rank or the axes are not known.
    """
    rank, known = vector_length(op.inputs[2]), static_ints(op.inputs[3])
    if rank is None or known is None:
        raise ValueError(f"The gradient of {op.type} needs a known rank and known axes.")
    return np.array([i not in {a % rank for a in known} for i in range(rank)])


def _of_rows(op: Operation) -> Any:
    """A function that gives, for each value, the element of a result that it went into."""
    indices, _, shape, _ = op.inputs
    kept = kept_axes(op)
    ones = raw.SelectV2(~kept, np.ones(kept.size, np.int64), shape)
    places = raw.Mul(indices, kept.astype(np.int64))
    return lambda result: raw.GatherNd(raw.Reshape(result, ones), places)


def _reduce_sum_gradient(op: Operation, grad: Tensor) -> list[Any]:
    return [None, _of_rows(op)(grad), None, None]


def _reduce_max_gradient(op: Operation, grad: Tensor) -> list[Any]:
    """To the greatest values, in equal shares."""
    indices, values, shape, axes = op.inputs
    at_values = _of_rows(op)
    hits = raw.Cast(raw.Equal(values, at_values(op.outputs[0])), DstT=values.dtype)
    keep = op.attrs["keep_dims"]
    counts = raw.SparseReduceSum(indices, hits, shape, axes, keep_dims=keep)
    shares = raw.RealDiv(hits, raw.Maximum(at_values(counts), values.dtype.np_dtype.type(1)))
    return [None, raw.Mul(shares, at_values(grad)), None, None]


for _kind, _types in (("Sum", "numeric"), ("Max", "real")):
    define_op(
        f"SparseReduce{_kind}({_COO.format('input')}, reduction_axes: int32) -> output: T",
        attrs=f"keep_dims: bool = False, T: {_types}",
        shape=_reduce_shape,
        kernel=partial(_reduce, jnp, _kind),
        interpret=partial(_reduce, np, _kind),
        gradient=_reduce_sum_gradient if _kind == "Sum" else _reduce_max_gradient,
        static=(2, 3),
        effects=CHECKS,
    )

# -- order and shape ----------------------------------------------------------------------------


def _reorder_shape(op: Operation) -> list[Dims]:
    check_parts(op)
    return [op.inputs[0].dims or (None, None), op.inputs[1].dims or (None,)]


def _reorder(xp: Any, indices: Any, values: Any, shape: Any) -> Any:
    check_sizes(indices, values, shape)
    order = kernel.row_order(xp, indices)
    return xp.take(indices, order, axis=0), xp.take(values, order, axis=0)


def _reorder_gradient(op: Operation, _: Any, grad: Tensor) -> list[Any]:
    indices, values, shape = op.inputs
    numbers = raw.Range(0, raw.Size(values), 1)
    moved = raw.SparseReorder(indices, numbers, shape)[1]
    return [None, raw.GatherV2(grad, raw.InvertPermutation(moved), 0), None]


define_op(
    f"SparseReorder({_COO.format('input')}) -> (output_indices: int64, output_values: T)",
    attrs="T: type",
    shape=_reorder_shape,
    **both(_reorder),
    gradient=_reorder_gradient,
)


def _reshape_shape(op: Operation) -> list[Dims]:
    require_rank(op.inputs[0], 2, "input_indices")
    require_rank(op.inputs[1], 1, "input_shape")
    require_rank(op.inputs[2], 1, "new_shape")
    count = (op.inputs[0].dims or (None,))[0]
    rank = (op.inputs[2].dims or (None,))[0]
    return [(count, rank), (rank,)]


def _new_sizes(old: list[int], new: list[int]) -> list[int]:
    """The sizes asked for, with -1 worked out.

    Raises:
        InvalidArgumentError: if they are not of as many elements.
    """
    total = int(np.prod(old, dtype=np.int64))
    free = [i for i, size in enumerate(new) if size == -1]
    if len(free) > 1:
        raise fail(f"only one output dimension may be -1, not both {free[0]} and {free[1]}")
    if any(size < -1 for size in new):
        raise fail(f"size {min(new)} must be non-negative, not {list_text(new)}")
    rest = int(np.prod([s for s in new if s != -1], dtype=np.int64))
    sizes = [total // rest if s == -1 and rest else max(s, 0) for s in new]
    if int(np.prod(sizes, dtype=np.int64)) != total:
        wanted = (
            f"the requested shape requires a multiple of {rest}"
            if free
            else (f"the requested shape has {rest}")
        )
        raise fail(
            f"Input to reshape is a SparseTensor with {total} dense values, but {wanted}. "
            f"input_shape={list_text(old)} output_shape={list_text(sizes)}"
        )
    return sizes


def _reshape(xp: Any, indices: Any, input_shape: Any, new_shape: Any) -> Any:
    old = [int(s) for s in input_shape]
    sizes = _new_sizes(old, [int(s) for s in new_shape])
    flat = kernel.flat_places(xp, indices, old)
    return kernel.unflat_places(xp, flat, sizes), np.array(sizes, np.int64)


def _column_for_each_axis(op: Operation) -> None:
    sizes = op.inputs[1].dims
    if sizes is not None and len(sizes) == 1:
        requirements.shape((None, sizes[0]), 0)(op)


define_op(
    "SparseReshape(input_indices: int64, input_shape: int64, new_shape: int64) ->"
    " (output_indices: int64, output_shape: int64)",
    shape=_reshape_shape,
    requires=[_column_for_each_axis],
    **both(_reshape),
    gradient=NotDifferentiable("it moves places, not values"),
    static=(1, 2),
)
