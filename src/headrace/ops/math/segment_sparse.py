"""Segments of rows that are picked by indices first: embeddings of sets of ids."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from jax import numpy as jnp

from headrace.graph.shapes import compatible_static, shape_text
from headrace.graph.tensor import Dims, Operation, Tensor
from headrace.ops.core import checks
from headrace.ops.core.array_util import require_rank, static_int
from headrace.ops.core.build import raw
from headrace.ops.core.registry import CHECKS, define_op
from headrace.ops.math.segment import (
    NOT_SORTED,
    column,
    first_dimension,
    lower_with_known,
    per_segment,
    require_sorted,
    scatter_rows,
    scatter_rows_np,
    static_segments,
)

_INDICES = "Tidx: index = int32, Tsegmentids: newer index = int32"


def _shape(op: Operation) -> list[Dims]:
    data, indices, ids = (t.dims for t in op.inputs[:3])
    require_rank(op.inputs[1], 1, "indices")
    require_rank(op.inputs[2], 1, "segment_ids")
    if not compatible_static(indices, ids):
        raise ValueError(
            f"segment_ids and indices should have same size: {shape_text(ids)} and "
            f"{shape_text(indices)}"
        )
    if data is None:
        return [None]
    if not data:
        raise ValueError("Shape must be at least rank 1 but is rank 0: data of a segment op")
    size = static_int(op.inputs[3]) if len(op.inputs) == 4 else static_segments(op.inputs[2])
    return [(size, *data[1:])]


def _reduce(xp: Any, kind: str, data: Any, indices: Any, ids: Any, size: int) -> Any:
    if indices.shape != ids.shape:
        raise ValueError(
            f"segment_ids and indices should have same size: {shape_text(ids.shape)} and "
            f"{shape_text(indices.shape)}"
        )
    checks.require_in_range(xp, indices, data.shape[0])
    if xp is np:
        total: Any = scatter_rows_np("Sum", data[indices], ids, size)
    else:
        rows = jnp.take(data, indices, axis=0, mode="clip")
        total = scatter_rows("Sum", rows, ids, size)
    if kind == "Sum":
        return total
    counts = per_segment(xp, ids, size, total.dtype)
    return total / column(counts if kind == "Mean" else xp.sqrt(counts), total)


def _with_known_ids(xp: Any, kind: str, data: Any, indices: Any, ids: Any) -> Any:
    return _reduce(xp, kind, data, indices, ids, require_sorted(ids))


def _with_size(xp: Any, kind: str, data: Any, indices: Any, ids: Any, num_segments: Any) -> Any:
    size = int(num_segments)
    if size < 0:
        raise ValueError(f"num_segments must not be negative, but is {size}")
    if ids.size:
        checks.require(xp.all(ids[1:] >= ids[:-1]), NOT_SORTED)
        checks.require_in_range(xp, ids, size, "segment_ids")
    return _reduce(xp, kind, data, indices, ids, size)


def _gradient(kind: str, op: Operation, grad: Tensor) -> list[Any]:
    rule = getattr(raw, f"SparseSegment{kind}Grad")
    found = rule(grad, op.inputs[1], op.inputs[2], first_dimension(op.inputs[0]))
    return [found, *[None] * (len(op.inputs) - 1)]


def _grad_shape(op: Operation) -> list[Dims]:
    grad = op.inputs[0].dims
    require_rank(op.inputs[3], 0, "output_dim0")
    return [None if grad is None else (static_int(op.inputs[3]), *grad[1:])]


def _grad_kernel(xp: Any, kind: str, grad: Any, indices: Any, ids: Any, output_dim0: Any) -> Any:
    size = int(output_dim0)
    checks.require_in_range(xp, indices, size)
    checks.require_in_range(xp, ids, grad.shape[0], "segment_ids")
    if kind != "Sum":
        counts = per_segment(xp, ids, grad.shape[0], grad.dtype)
        grad = grad / column(counts if kind == "Mean" else xp.sqrt(counts), grad)
    if xp is np:
        return scatter_rows_np("Sum", grad[ids], indices, size)
    return scatter_rows("Sum", jnp.take(grad, ids, axis=0, mode="clip"), indices, size)


for _kind, _types in (("Sum", "real"), ("Mean", "floating"), ("SqrtN", "floating")):
    _rule = partial(_gradient, _kind)
    define_op(
        f"SparseSegment{_kind}(data: T, indices: Tidx, segment_ids: Tsegmentids) -> output: T",
        attrs=f"T: {_types}, {_INDICES}, sparse_gradient: newer bool = False",
        shape=_shape,
        lower=lower_with_known(2, partial(_with_known_ids, jnp, _kind)),
        interpret=partial(_with_known_ids, np, _kind),
        gradient=_rule,
        effects=CHECKS,
    )
    define_op(
        f"SparseSegment{_kind}WithNumSegments(data: T, indices: Tidx, segment_ids: Tsegmentids,"
        " num_segments: Tnumsegments) -> output: T",
        attrs=f"T: {_types}, {_INDICES}, Tnumsegments: index = int32,"
        " sparse_gradient: newer bool = False",
        shape=_shape,
        kernel=partial(_with_size, jnp, _kind),
        interpret=partial(_with_size, np, _kind),
        gradient=_rule,
        static=(3,),
        effects=CHECKS,
    )
    define_op(
        f"SparseSegment{_kind}Grad(grad: T, indices: Tidx, segment_ids: Tsegmentids,"
        " output_dim0: int32) -> output: T",
        attrs=f"T: floating, {_INDICES}",
        shape=_grad_shape,
        kernel=partial(_grad_kernel, jnp, _kind),
        interpret=partial(_grad_kernel, np, _kind),
        static=(3,),
        effects=CHECKS,
    )
