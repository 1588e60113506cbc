"""Diagonals and bands of matrices, and one-hot encodings."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.graph.shapes import compatible_static, merge_static, shape_text
from headrace.graph.tensor import Dims, Operation, Tensor
from headrace.ops.core import checks, requirements
from headrace.ops.core.array_util import both, checked_axis, fail, static_int
from headrace.ops.core.build import raw
from headrace.ops.core.registry import CHECKS, NotDifferentiable, define_op
from headrace.ops.core.traits import Traits


def _at_least(dims: Dims, rank: int) -> None:
    if dims is not None and len(dims) < rank:
        raise ValueError(
            f"Shape must be at least rank {rank} but is rank {len(dims)}: {shape_text(dims)}."
        )


def _zero(x: Any) -> Any:
    return np.zeros((), x.dtype)


# -- batches of matrices ------------------------------------------------------------------------


def _matrix_diag_shape(op: Operation) -> list[Dims]:
    dims = op.inputs[0].dims
    _at_least(dims, 1)
    return [None if dims is None else (*dims, dims[-1])]


def _matrix_diag(xp: Any, diagonal: Any) -> Any:
    on = np.eye(diagonal.shape[-1], dtype=bool)
    return xp.where(on, diagonal[..., None], _zero(diagonal))


def _shorter(dims: Any) -> int | None:
    rows, columns = dims[-2:]
    return None if rows is None or columns is None else min(rows, columns)


def _matrix_diag_part_shape(op: Operation) -> list[Dims]:
    dims = op.inputs[0].dims
    _at_least(dims, 2)
    return [None if dims is None else (*dims[:-2], _shorter(dims))]


def _matrix_diag_part(xp: Any, x: Any) -> Any:
    return xp.diagonal(x, 0, -2, -1) if xp is not np else np.diagonal(x, 0, -2, -1).copy()


def _matrix_set_diag_shape(op: Operation) -> list[Dims]:
    dims, diagonal = op.inputs[0].dims, op.inputs[1].dims
    _at_least(dims, 2)
    _at_least(diagonal, 1)
    if dims is not None and diagonal is not None:
        wanted = (*dims[:-2], _shorter(dims))
        if not compatible_static(wanted, diagonal):
            raise ValueError(
                f"The diagonal of shape {shape_text(diagonal)} does not fit the input of shape "
                f"{shape_text(dims)}: it must be {shape_text(wanted)}."
            )
        return [merge_static(dims, (*diagonal[:-1], None, None))]
    return [dims]


def _matrix_set_diag(xp: Any, x: Any, diagonal: Any) -> Any:
    rows, columns = x.shape[-2:]
    wanted = (*x.shape[:-2], min(rows, columns))
    if tuple(diagonal.shape) != wanted:
        raise fail(f"The diagonal has shape {shape_text(diagonal.shape)} instead of {wanted}.")
    spread = diagonal[..., None] if columns > rows else diagonal[..., None, :]
    return xp.where(np.eye(rows, columns, dtype=bool), spread, x)


def _matrix_set_diag_gradient(op: Operation, grad: Tensor) -> list[Any]:
    hole = raw.MatrixSetDiag(grad, raw.ZerosLike(op.inputs[1]))
    return [hole, raw.MatrixDiagPart(grad)]


define_op(
    "MatrixDiag(diagonal: T) -> output: T",
    attrs="T: type",
    shape=_matrix_diag_shape,
    **both(_matrix_diag),
    gradient=lambda op, grad: [raw.MatrixDiagPart(grad)],
)
define_op(
    "MatrixDiagPart(input: T) -> diagonal: T",
    attrs="T: type",
    shape=_matrix_diag_part_shape,
    **both(_matrix_diag_part),
    gradient=lambda op, grad: [raw.MatrixSetDiag(raw.ZerosLike(op.inputs[0]), grad)],
)
define_op(
    "MatrixSetDiag(input: T, diagonal: T) -> output: T",
    attrs="T: type",
    shape=_matrix_set_diag_shape,
    **both(_matrix_set_diag),
    gradient=_matrix_set_diag_gradient,
)


def _band_shape(op: Operation) -> list[Dims]:
    dims = op.inputs[0].dims
    _at_least(dims, 2)
    return [dims]


def _band(xp: Any, x: Any, num_lower: Any, num_upper: Any) -> Any:
    rows, columns = x.shape[-2:]
    for limit, most, what in ((num_lower, rows, "lower"), (num_upper, columns, "upper")):
        lines = "rows" if what == "lower" else "columns"
        checks.require(
            limit <= most,
            f"num_{what} must be negative or at most the number of {lines} ({most}), got: {{0}}",
            limit,
        )
    below = np.arange(rows)[:, None] - np.arange(columns)
    inside = ((num_lower < 0) | (below <= num_lower)) & ((num_upper < 0) | (-below <= num_upper))
    return xp.where(inside, x, _zero(x))


define_op(
    "MatrixBandPart(input: T, num_lower: Tindex, num_upper: Tindex) -> band: T",
    attrs="T: type, Tindex: index = int64",
    shape=_band_shape,
    requires=[requirements.scalar(1, 2)],
    **both(_band),
    gradient=lambda op, grad: [raw.MatrixBandPart(grad, *op.inputs[1:]), None, None],
    effects=CHECKS,
    traits=Traits(numpy_calls=8),
)

# -- tensors as diagonals -----------------------------------------------------------------------


def _diag_shape(op: Operation) -> list[Dims]:
    dims = op.inputs[0].dims
    _at_least(dims, 1)
    return [None if dims is None else (*dims, *dims)]


def _diag(xp: Any, x: Any) -> Any:
    flat = x.reshape(-1)
    return _matrix_diag(xp, flat).reshape((*x.shape, *x.shape))


def _diag_part_shape(op: Operation) -> list[Dims]:
    dims = op.inputs[0].dims
    if dims is None:
        return [None]
    half = len(dims) // 2
    if not dims or len(dims) % 2 or not compatible_static(dims[:half], dims[half:]):
        raise ValueError(f"Input must be square in halves of its shape, got {shape_text(dims)}.")
    return [merge_static(dims[:half], dims[half:])]


def _diag_part(xp: Any, x: Any) -> Any:
    half = x.shape[: x.ndim // 2]
    size = int(np.prod(half, dtype=int))
    return _matrix_diag_part(xp, x.reshape(size, size)).reshape(half)


define_op(
    "Diag(diagonal: T) -> output: T",
    attrs="T: numeric",
    shape=_diag_shape,
    **both(_diag),
    gradient=lambda op, grad: [raw.DiagPart(grad)],
)
define_op(
    "DiagPart(input: T) -> diagonal: T",
    attrs="T: numeric",
    shape=_diag_part_shape,
    **both(_diag_part),
    gradient=lambda op, grad: [raw.Diag(grad)],
)

# -- one-hot ------------------------------------------------------------------------------------


def _one_hot_shape(op: Operation) -> list[Dims]:
    dims, depth = op.inputs[0].dims, static_int(op.inputs[1])
    if depth is not None and depth < 0:
        raise ValueError(f"depth must be non-negative, got: {depth}")
    if dims is None:
        return [None]
    at = checked_axis(op.attrs["axis"], len(dims) + 1)
    return [(*dims[:at], depth, *dims[at:])]


def _one_hot(xp: Any, indices: Any, depth: Any, on_value: Any, off_value: Any, *, axis: int) -> Any:
    count = int(depth)
    if count < 0:
        raise fail(f"depth must be non-negative, got: {count}")
    at = checked_axis(axis, indices.ndim + 1)
    # Comparing wider numbers than the indices are takes XLA twice as long.
    kind = indices.dtype if count <= np.iinfo(indices.dtype).max else np.int64
    places = np.arange(count, dtype=kind).reshape((count, *[1] * (indices.ndim - at)))
    spread = indices.reshape((*indices.shape[:at], 1, *indices.shape[at:]))
    return xp.where(spread == places, on_value, off_value)


define_op(
    "OneHot(indices: TI, depth: int32, on_value: T, off_value: T) -> output: T",
    attrs="axis: int = -1, T: type, TI: {uint8, int8, int32, int64} = int64",
    shape=_one_hot_shape,
    requires=[requirements.scalar(1, 2, 3)],
    **both(_one_hot),
    gradient=NotDifferentiable("it depends on integers only"),
    static=(1,),
)
