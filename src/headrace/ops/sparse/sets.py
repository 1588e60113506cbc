"""Sets along the last axis: sizes, unions, intersections and differences."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.graph.shapes import compatible_static, shape_text
from headrace.graph.tensor import Dims, Operation
from headrace.ops.array.dynamic import on_host
from headrace.ops.core.array_util import fail
from headrace.ops.core.registry import NotDifferentiable, define_op
from headrace.ops.core.static import static_shape
from headrace.ops.sparse import places as kernel
from headrace.ops.sparse.dense import check_parts, check_sizes
from headrace.ops.sparse.places import list_text

Array = np.ndarray[Any, Any]

_TYPES = "T: {int8, int16, int32, int64, uint8, uint16, string}"
_NO_GRADIENT = NotDifferentiable("sets have no derivative")

#: Elements of all sets: the number of its set for each, its value, and the shape of the sets.
Elements = tuple[Array, Array, Array]


def _of_sparse(indices: Array, values: Array, shape: Array, validate: bool) -> Elements:
    check_sizes(indices, values, shape)
    if shape.size < 2:
        raise fail(f"Invalid rank {shape.size}.")
    if validate:
        kernel.check_bounds(np, indices, shape.tolist())
        kernel.check_order(np, indices)
    return kernel.flat_places(np, indices[:, :-1], shape[:-1].tolist()), values, shape[:-1]


def _of_dense(dense: Array) -> Elements:
    if dense.ndim < 2:
        raise fail(f"Shape {list_text(dense.shape)} has rank {dense.ndim} < 2")
    sets = int(np.prod(dense.shape[:-1]))
    groups = np.repeat(np.arange(sets), dense.shape[-1])
    return groups, dense.reshape(-1), np.array(dense.shape[:-1], np.int64)


def _sizes(indices: Array, values: Array, shape: Array, *, validate_indices: bool) -> Any:
    groups, elements, of_sets = _of_sparse(indices, values, shape, validate_indices)
    pairs = _distinct(groups, elements, elements)[0]
    counts = np.bincount(pairs[:, 0], minlength=int(np.prod(of_sets)))
    return counts.astype(np.int32).reshape(of_sets)


def _distinct(groups: Array, elements: Array, of: Array) -> tuple[Array, Array]:
    """Distinct (set, number of the element among the sorted ``of``) as rows; the sorted ``of``."""
    known = np.unique(of)
    numbers = np.searchsorted(known, elements) if elements.size else np.zeros(0, np.int64)
    pairs = np.stack([groups, numbers], axis=1).astype(np.int64)
    return np.unique(pairs, axis=0), known


def _operation(a: Elements, b: Elements, kind: str) -> Any:
    if a[2].shape != b[2].shape or np.any(a[2] != b[2]):
        raise fail(f"Mismatched shapes {list_text(a[2].tolist())} vs {list_text(b[2].tolist())}")
    either = np.concatenate([a[1], b[1]])
    (mine, known), (other, _) = _distinct(*a[:2], either), _distinct(*b[:2], either)
    width = max(known.size, 1)
    x, y = (p[:, 0] * width + p[:, 1] for p in (mine, other))
    operations: dict[str, Any] = {
        "union": np.union1d,
        "intersection": np.intersect1d,
        "a-b": np.setdiff1d,
        "b-a": lambda x, y: np.setdiff1d(y, x),
    }
    keys = operations[kind](x, y)
    groups, numbers = keys // width, keys % width
    starts = np.searchsorted(groups, groups, side="left")
    within = np.arange(groups.size) - starts
    places = kernel.unflat_places(np, groups, a[2].tolist())
    longest = int(within.max()) + 1 if within.size else 0
    return (
        np.concatenate([places, within[:, None]], axis=1).astype(np.int64),
        known[numbers] if keys.size else either[:0],
        np.concatenate([a[2], [longest]]).astype(np.int64),
    )


def _dense_dense(set1: Array, set2: Array, *, set_operation: str, validate_indices: bool) -> Any:
    return _operation(_of_dense(set1), _of_dense(set2), set_operation)


def _dense_sparse(
    set1: Array, i: Array, v: Array, s: Array, *, set_operation: str, validate_indices: bool
) -> Any:
    return _operation(_of_dense(set1), _of_sparse(i, v, s, validate_indices), set_operation)


def _sparse_sparse(
    i1: Array,
    v1: Array,
    s1: Array,
    i2: Array,
    v2: Array,
    s2: Array,
    *,
    set_operation: str,
    validate_indices: bool,
) -> Any:
    first = _of_sparse(i1, v1, s1, validate_indices)
    return _operation(first, _of_sparse(i2, v2, s2, validate_indices), set_operation)


# -- shapes -------------------------------------------------------------------------------------


def _size_shape(op: Operation) -> list[Dims]:
    check_parts(op)
    dims = static_shape(op.inputs[2])
    return [None if dims is None else dims[:-1]]


def _operation_shape(op: Operation) -> list[Dims]:
    sides: list[Dims] = []
    position = 0
    while position < len(op.inputs):
        if op.op_def.inputs[position].name.endswith("indices"):
            check_parts(op, position)
            sides.append(static_shape(op.inputs[position + 2]))
            position += 3
        else:
            sides.append(op.inputs[position].dims)
            position += 1
    for dims in sides:
        if dims is not None and len(dims) < 2:
            raise ValueError(f"Sets need a rank of at least 2, but have shape {shape_text(dims)}.")
    sets = [None if d is None else d[:-1] for d in sides]
    if not compatible_static(sets[0], sets[1]):
        raise ValueError(
            f"Both sides need equally many sets; all dimensions but the last of "
            f"{shape_text(sides[0])} and {shape_text(sides[1])} differ."
        )
    rank = next((len(d) for d in sides if d is not None), None)
    return [(None, rank), (None,), (rank,)]


define_op(
    "SetSize(set_indices: int64, set_values: T, set_shape: int64) -> size: int32",
    attrs=f"validate_indices: bool = True, {_TYPES}",
    shape=_size_shape,
    **on_host(_sizes),
    gradient=_NO_GRADIENT,
)

_ATTRS = (
    "set_operation: {'union', 'intersection', 'a-b', 'b-a'}, validate_indices: bool = True, "
    + _TYPES
)
_RESULT = "(result_indices: int64, result_values: T, result_shape: int64)"
for _signature, _function in (
    ("DenseToDenseSetOperation(set1: T, set2: T)", _dense_dense),
    (
        "DenseToSparseSetOperation(set1: T, set2_indices: int64, set2_values: T,"
        " set2_shape: int64)",
        _dense_sparse,
    ),
    (
        "SparseToSparseSetOperation(set1_indices: int64, set1_values: T, set1_shape: int64,"
        " set2_indices: int64, set2_values: T, set2_shape: int64)",
        _sparse_sparse,
    ),
):
    define_op(
        f"{_signature} -> {_RESULT}",
        attrs=_ATTRS,
        shape=_operation_shape,
        **on_host(_function),
        gradient=_NO_GRADIENT,
    )
