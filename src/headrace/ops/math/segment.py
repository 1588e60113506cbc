"""Reductions over segments: rows that carry the same id are put together.

The ids of the `Segment*` ops are sorted and their last one tells how many rows the result has, so
these ops join a compiled program where the ids are known while it is traced (constants); elsewhere
they run on the host with NumPy. Compiling for each value of fed ids would cost far more than it
gains. The `Unsorted*` ops are told the number of segments, and always compile.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
from jax import numpy as jnp

from headrace.graph import dtypes
from headrace.graph.shapes import compatible_static, shape_text
from headrace.graph.tensor import Dims, Operation, Tensor
from headrace.ops.core import checks
from headrace.ops.core.array_util import int_const, require_rank, shape_tensor, static_int
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.core.distinct import summed_rows
from headrace.ops.core.registry import CHECKS, define_op
from headrace.ops.core.sorted_rows import reduce_sorted_rows
from headrace.ops.core.static import static_value
from headrace.ops.math.means import integer_mean

Array = np.ndarray[Any, Any]

NOT_SORTED = "segment ids are not increasing"
_IDS = "Tindices: index"
_UNSORTED_IDS = "Tindices: {int16, int32, int64}, Tnumsegments: index = int32"


# -- reducers -----------------------------------------------------------------------------------


def _limit(dtype: Any, infinite: bool, sign: int) -> Any:
    """The end of the range of a type, for unsorted segments without rows; or infinity."""
    if not jnp.issubdtype(dtype, jnp.inexact):
        limits = np.iinfo(dtype)
        return limits.max if sign > 0 else limits.min
    if infinite:
        return sign * np.inf
    return sign * float(ml_dtypes.finfo(dtype).max)  # type: ignore[no-untyped-call]


#: kind: (update of a JAX ``.at[]``, NumPy ufunc)
_REDUCERS: dict[str, tuple[str, Any]] = {
    "Sum": ("add", np.add),
    "Prod": ("multiply", np.multiply),
    "Max": ("max", np.maximum),
    "Min": ("min", np.minimum),
}


def _start(kind: str, dtype: Any, infinite: bool) -> Any:
    """What a segment starts from."""
    if kind in ("Max", "Min"):
        return _limit(dtype, infinite, -1 if kind == "Max" else 1)
    return 1 if kind == "Prod" else 0


def widened(rows: Any) -> Any:
    """Floats of 16 bits in 32: many of them cannot be added up in their own type."""
    is_half = rows.dtype.itemsize == 2 and jnp.issubdtype(rows.dtype, jnp.inexact)
    return rows.astype(np.float32) if is_half else rows


def scatter_rows(kind: str, rows: Any, ids: Any, size: Any, infinite: bool = False) -> Any:
    """Reduce ``rows[k, ...]`` into ``[size, ...]`` by ids (traced); too large ids drop their rows.

    A negative id must have been replaced by ``size``. A maximum or minimum of no rows is infinite
    or the end of the type's range.
    """
    wide = rows if kind in ("Max", "Min") else widened(rows)
    out = jnp.full((size, *rows.shape[1:]), _start(kind, rows.dtype, infinite), wide.dtype)
    return getattr(out.at[ids], _REDUCERS[kind][0])(wide, mode="drop").astype(rows.dtype)


def scatter_rows_np(kind: str, rows: Array, ids: Array, size: int, infinite: bool = False) -> Array:
    """``scatter_rows`` on arrays; all ids are in range."""
    if kind == "Sum":
        return summed_rows(widened(rows), ids, size).astype(rows.dtype, copy=False)
    order = np.argsort(ids, kind="stable")
    start = _start(kind, rows.dtype, infinite)
    return _sorted_rows_np(kind, rows[order], ids[order], size, start)


def _sorted_rows_np(kind: str, rows: Array, ids: Array, size: int, start: Any) -> Array:
    """The rows of sorted ids combined; ``start`` where there are none."""
    wide = rows if kind in ("Max", "Min") else widened(rows)
    out = np.full((size, *rows.shape[1:]), start, wide.dtype)
    reduce_sorted_rows(_REDUCERS[kind][1], wide, ids, out)
    return out.astype(rows.dtype, copy=False)


# -- sorted ids ---------------------------------------------------------------------------------


def require_sorted(ids: Array) -> int:
    """Check known ids; returns the number of segments.

    Raises:
        InvalidArgumentError: unless they increase from at least 0.
    """
    if ids.size == 0:
        return 0
    checks.require(bool((ids[1:] >= ids[:-1]).all()), NOT_SORTED)
    checks.require(bool(ids[0] >= 0), "segment ids must be >= 0")
    return int(ids[-1]) + 1


def require_matching(data: Any, ids: Any) -> None:
    """One id for each row.

    Raises:
        ValueError: otherwise.
    """
    if ids.ndim != 1 or data.ndim < 1 or data.shape[0] != ids.shape[0]:
        raise ValueError(
            "segment_ids should be a vector of the size of dimension 0 of the data: "
            f"{shape_text(ids.shape)} and {shape_text(data.shape)}"
        )


def _segment_shape(op: Operation) -> list[Dims]:
    data, ids = op.inputs[0].dims, op.inputs[1].dims
    require_rank(op.inputs[1], 1, "segment_ids")
    if data is None:
        return [None]
    if not data:
        raise ValueError("Shape must be at least rank 1 but is rank 0: data of a segment op")
    if ids is not None and not compatible_static(ids, data[:1]):
        raise ValueError(
            "segment_ids should be the same size as dimension 0 of the data: "
            f"{shape_text(ids)} and {shape_text(data)}"
        )
    return [(static_segments(op.inputs[1]), *data[1:])]


def static_segments(ids: Tensor) -> int | None:
    """The number of segments where the graph tells the sorted ids."""
    known = static_value(ids)
    if known is None:
        return None
    return int(known[-1]) + 1 if known.size else 0


def per_segment(xp: Any, ids: Any, size: int, dtype: Any) -> Any:
    """How many rows each segment has, at least 1: ``[size]``."""
    return xp.maximum(xp.bincount(ids, minlength=size, **_fixed(xp, size)), 1).astype(dtype)


def _fixed(xp: Any, size: int) -> dict[str, int]:
    return {} if xp is np else {"length": size}


def column(vector: Any, like: Any) -> Any:
    """``[n]`` as ``[n, 1, ...]``, to go with ``like``."""
    return vector.reshape(-1, *[1] * (like.ndim - 1))


def _segment_means(xp: Any, data: Any, ids: Array, size: int, add: Callable[[Any], Any]) -> Any:
    """The mean of each segment, given what adds up its rows. Integers are cut towards zero."""
    if jnp.issubdtype(data.dtype, jnp.inexact):
        wide = widened(data)
        counts = column(per_segment(np, ids, size, wide.dtype), data)
        return (add(wide) / counts).astype(data.dtype)
    counts = per_segment(np, ids, size, np.int64)
    return integer_mean(xp, data, column(counts[ids], data), column(counts, data), add)


def _sorted_np(kind: str, data: Array, ids: Array) -> Any:
    require_matching(data, ids)
    size = require_sorted(ids)
    if kind == "Mean":
        return _segment_means(
            np, data, ids, size, lambda rows: _sorted_rows_np("Sum", rows, ids, size, 0)
        )
    return _sorted_rows_np(kind, data, ids, size, 1 if kind == "Prod" else 0)


def _sorted_traced(kind: str, data: Any, ids: Array) -> Any:
    require_matching(data, ids)
    size = require_sorted(ids)
    if kind == "Mean":
        return _segment_means(
            jnp, data, ids, size, lambda rows: scatter_rows("Sum", rows, ids, size)
        )
    return _fill_gaps(kind, scatter_rows(kind, data, ids, size, True), ids, size)


def _fill_gaps(kind: str, out: Any, ids: Array, size: int) -> Any:
    """Ids that do not occur give 0 in a maximum or minimum."""
    if kind not in ("Max", "Min"):
        return out
    present = np.bincount(ids, minlength=size) > 0
    return out if present.all() else jnp.where(column(present, out), out, out.dtype.type(0))


def lower_with_known(
    position: int, compute: Callable[..., Any]
) -> Callable[[Any, Any, list[Any]], Any]:
    """``lower=`` of an op that compiles only where input ``position`` is known."""

    def lower(evaluation: Any, node: Any, args: list[Any]) -> Any:
        if not isinstance(args[position], np.ndarray):
            raise checks.NeedsValue("the size of the result depends on values")
        return (compute(*args),)

    return lower


# -- gradients ----------------------------------------------------------------------------------


def column_tensor(vector: Tensor, like: Tensor) -> Tensor:
    """``column`` in a graph."""
    if like.dims is not None:
        return raw.Reshape(vector, [-1, *[1] * (len(like.dims) - 1)])
    ones = raw.Fill(raw.Reshape(raw.Sub(raw.Rank(like), 1), [1]), 1)
    return raw.Reshape(vector, raw.ConcatV2([[-1], ones], 0))


def _rows_of(op: Operation, values: Tensor) -> Tensor:
    """For each row of the data, its segment's row of ``values``; 0 where the row was dropped."""
    ids = op.inputs[1]
    if len(op.inputs) == 2:
        return raw.GatherV2(values, ids, 0)
    zero = convert_to_tensor(0, ids.dtype)
    rows = raw.GatherV2(values, raw.Maximum(ids, zero), 0)
    kept = _mask_for(raw.GreaterEqual(ids, zero), rows)
    return raw.SelectV2(kept, rows, convert_to_tensor(0, rows.dtype))


def _mask_for(mask: Tensor, like: Tensor) -> Tensor:
    """``mask`` reshaped so that it broadcasts with ``like`` from the left."""
    rank = None if like.dims is None else len(like.dims)
    return trailing_ones(mask, rank, lambda: raw.Sub(raw.Rank(like), raw.Rank(mask)))


def trailing_ones(tensor: Tensor, rank: int | None, extra: Callable[[], Tensor]) -> Tensor:
    """``tensor`` with dimensions of size 1 up to ``rank``; ``extra`` of them if unknown."""
    if rank is not None and tensor.dims is not None:
        missing = rank - len(tensor.dims)
        if not missing:
            return tensor
        tail: Any = [1] * missing
    else:
        tail = raw.Fill(raw.Reshape(extra(), [1]), 1)
    return raw.Reshape(tensor, raw.ConcatV2([shape_tensor(tensor), tail], 0))


def _summed(op: Operation, values: Tensor) -> Tensor:
    """Sum rows by the ids of ``op``."""
    if len(op.inputs) == 2:
        return raw.SegmentSum(values, op.inputs[1])
    return raw.UnsortedSegmentSum(values, op.inputs[1], op.inputs[2])


def _nothing_else(op: Operation, grad: Tensor) -> list[Any]:
    return [grad, *[None] * (len(op.inputs) - 1)]


def _sum_grad(op: Operation, grad: Tensor) -> list[Any]:
    return _nothing_else(op, _rows_of(op, grad))


def _mean_grad(op: Operation, grad: Tensor) -> list[Any]:
    ids = op.inputs[1]
    ones = raw.Fill(shape_tensor(ids), convert_to_tensor(1, grad.dtype))
    counts = column_tensor(raw.SegmentSum(ones, ids), grad)
    return _nothing_else(op, _rows_of(op, raw.RealDiv(grad, counts)))


def _extreme_grad(op: Operation, grad: Tensor) -> list[Any]:
    """Rows that tie for the maximum or minimum share the gradient."""
    data = op.inputs[0]
    chosen = raw.Equal(data, _rows_of(op, op.outputs[0]))
    ties = _summed(op, raw.Cast(chosen, DstT=grad.dtype))
    shared = _rows_of(op, raw.RealDiv(grad, ties))
    return _nothing_else(op, raw.SelectV2(chosen, shared, convert_to_tensor(0, grad.dtype)))


def _prod_grad(op: Operation, grad: Tensor) -> list[Any]:
    """The product of the other rows: without division by a zero among them."""
    data = op.inputs[0]
    zero, one = convert_to_tensor(0, data.dtype), convert_to_tensor(1, data.dtype)
    is_zero = raw.Equal(data, zero)
    zeros = _summed(op, raw.Cast(is_zero, DstT=dtypes.int32))
    grad = raw.SelectV2(raw.Greater(zeros, 1), zero, grad)
    nonzero = raw.SelectV2(is_zero, one, data)
    if len(op.inputs) == 2:
        product = raw.SegmentProd(nonzero, op.inputs[1])
    else:
        product = raw.UnsortedSegmentProd(nonzero, *op.inputs[1:])
    whole = raw.RealDiv(_rows_of(op, op.outputs[0]), nonzero)
    others = raw.SelectV2(is_zero, _rows_of(op, product), whole)
    return _nothing_else(op, raw.Mul(_rows_of(op, grad), others))


for _kind, _types, _gradient in (
    ("Sum", "numeric", _sum_grad),
    ("Mean", "numeric", _mean_grad),
    ("Prod", "numeric", _prod_grad),
    ("Max", "real", _extreme_grad),
    ("Min", "real", _extreme_grad),
):
    define_op(
        f"Segment{_kind}(data: T, segment_ids: Tindices) -> output: T",
        attrs=f"T: {_types}, {_IDS}",
        shape=_segment_shape,
        lower=lower_with_known(1, partial(_sorted_traced, _kind)),
        interpret=partial(_sorted_np, _kind),
        gradient=_gradient,
        effects=CHECKS,
        checked=lambda attrs: (1,),
    )


# -- ids in any order ---------------------------------------------------------------------------


def _unsorted_shape(op: Operation) -> list[Dims]:
    data, ids = op.inputs[0].dims, op.inputs[1].dims
    require_rank(op.inputs[2], 0, "num_segments")
    size = static_int(op.inputs[2])
    if size is not None and size < 0:
        raise ValueError(
            f"Dimension size, given by num_segments, must be non-negative but is {size}"
        )
    if data is None or ids is None:
        return [None]
    _require_prefix(data, ids)
    return [(size, *data[len(ids) :])]


def _require_prefix(data: Any, ids: Any) -> None:
    if not compatible_static(data[: len(ids)], ids):
        raise ValueError(
            f"data.shape = {shape_text(data)} does not start with segment_ids.shape = "
            f"{shape_text(ids)}"
        )


def _unsorted(xp: Any, kind: str, data: Any, ids: Any, num_segments: Any) -> Any:
    size = int(num_segments)
    if size < 0:
        raise ValueError(f"Input num_segments == {size} must not be negative.")
    _require_prefix(data.shape, ids.shape)
    flat = ids.reshape(-1)
    rows = data.reshape(flat.shape[0], *data.shape[ids.ndim :])
    _require_below(xp, flat, size, ids.shape)
    if xp is np:
        kept = flat >= 0
        if not kept.all():
            rows, flat = rows[kept], flat[kept]
        return scatter_rows_np(kind, rows, flat, size)
    return scatter_rows(kind, rows, jnp.where(flat < 0, size, flat.astype(jnp.int64)), size)


def _require_below(xp: Any, ids: Any, size: int, shape: tuple[int, ...]) -> None:
    """Negative ids drop their rows; too large ones are errors."""
    if ids.size == 0:
        return
    if isinstance(ids, np.ndarray):
        xp = np  # known while tracing
    bad = ids >= size
    at = xp.argmax(bad)
    message = checks.AtIndex("segment_ids{0} = {1} is out of range [0, {2})", shape)
    checks.require(~xp.any(bad), message, at, ids[at], xp.asarray(size))


for _kind, _types, _gradient in (
    ("Sum", "numeric", _sum_grad),
    ("Prod", "numeric", _prod_grad),
    ("Max", "real", _extreme_grad),
    ("Min", "real", _extreme_grad),
):
    define_op(
        f"UnsortedSegment{_kind}(data: T, segment_ids: Tindices, num_segments: Tnumsegments)"
        " -> output: T",
        attrs=f"T: {_types}, {_UNSORTED_IDS}",
        shape=_unsorted_shape,
        kernel=partial(_unsorted, jnp, _kind),
        interpret=partial(_unsorted, np, _kind),
        gradient=_gradient,
        static=(2,),
        effects=CHECKS,
        checked=lambda attrs: (1, 2),
    )


def first_dimension(tensor: Tensor) -> Tensor:
    """The size of dimension 0, an int32 scalar."""
    if tensor.dims is not None and tensor.dims[0] is not None:
        return int_const(tensor.dims[0])
    return raw.StridedSlice(raw.Shape(tensor), [0], [1], [1], shrink_axis_mask=1)
