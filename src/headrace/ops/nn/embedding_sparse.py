"""Embeddings of sets of ids: the rows of each set looked up, weighted and put together."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.graph import dtypes
from headrace.graph.graph import get_default_graph
from headrace.graph.tensor import Tensor
from headrace.ops.core.build import raw
from headrace.ops.core.public import public
from headrace.ops.core.static import static_shape
from headrace.ops.nn.embedding import embedding_lookup, rows_travel, table_parts
from headrace.ops.sparse.api import sparse_fill_empty_rows, sparse_reshape, sparse_retain
from headrace.ops.sparse.sparse_tensor import SparseTensor


@public("nn.embedding_lookup_sparse")
def embedding_lookup_sparse(
    params: Any,
    sp_ids: Any,
    sp_weights: Any,
    partition_strategy: str = "mod",
    name: str | None = None,
    combiner: str | None = None,
    max_norm: float | None = None,
) -> Tensor:
    """For each row of ids the sum or mean of the rows of ``params`` that they name.

    Args:
        params: the table, or its parts (see ``embedding_lookup``).
        sp_ids: SparseTensor ``[n, m]`` of int32 or int64 ids, in row-major order.
        sp_weights: SparseTensor of the weight of each id, or None: all are 1.
        combiner: "sum"; "mean" (the default): the sum over the sum of the weights; or "sqrtn": the
            sum over the root of the sum of squared weights.
        max_norm: rows of a greater L2 norm are scaled down to it first.

    Returns:
        A dense tensor of as many rows as the last row with ids needs; of float32 for halves.

    Raises:
        TypeError: if ids or weights are not sparse.
        ValueError: for another combiner, or shapes that do not fit.
        InvalidArgumentError: when the graph runs, if an id is not a row.
    """
    combiner = combiner or "mean"
    if combiner not in ("mean", "sqrtn", "sum"):
        raise ValueError("combiner must be one of 'mean', 'sqrtn' or 'sum'")
    table = table_parts(params)
    if not isinstance(sp_ids, SparseTensor):
        raise TypeError("sp_ids must be SparseTensor")
    if sp_weights is not None:
        if not isinstance(sp_weights, SparseTensor):
            raise TypeError("sp_weights must be either None or SparseTensor")
        for mine, other in zip(sp_ids._parts(), sp_weights._parts(), strict=True):
            mine.shape.assert_is_compatible_with(other.shape)
    with get_default_graph().name_scope(name or "embedding_lookup_sparse") as scope:
        rows = raw.StridedSlice(
            sp_ids.indices, [0, 0], [0, 1], [1, 1], begin_mask=1, end_mask=1, shrink_axis_mask=2
        )
        # The number of rows comes from the ids alone, so that what follows is one program.
        last = raw.Max(raw.ConcatV2([np.array([-1]), rows], 0), 0)
        count = raw.AddV2(last, np.int64(1))
        found = _found(table, sp_ids.values, partition_strategy, max_norm)
        if found.dtype in (dtypes.float16, dtypes.bfloat16):
            found = raw.Cast(found, DstT=dtypes.float32)
        if sp_weights is None:
            weights = None
        else:
            weights = _column(sp_weights.values, found)
            found = raw.Mul(found, weights)
        return _combined(found, weights, rows, count, combiner, scope)


def _found(table: list[Any], ids: Tensor, strategy: str, max_norm: float | None) -> Tensor:
    """The rows of ids; of parts, and of what is on another task, each row once: rows travel."""
    if not rows_travel(table) or ids.dtype not in (dtypes.int32, dtypes.int64):
        return embedding_lookup(table, ids, strategy, max_norm=max_norm)
    distinct, place = raw.Unique(ids)
    rows = embedding_lookup(table, distinct, strategy, max_norm=max_norm)
    result: Tensor = raw.GatherV2(rows, place, 0)
    return result


def _column(weights: Tensor, like: Tensor) -> Tensor:
    """Weights as ``[n, 1, ...]`` in the type of ``like``."""
    if weights.dtype is not like.dtype:
        weights = raw.Cast(weights, DstT=like.dtype)
    if like.dims is None:
        raise ValueError("Weighted embeddings need params of known rank: use set_shape.")
    return raw.Reshape(weights, [-1, *[1] * (len(like.dims) - 1)])


def _combined(
    found: Tensor, weights: Tensor | None, rows: Tensor, count: Tensor, combiner: str, scope: str
) -> Tensor:
    if weights is None and combiner != "sum":
        rank = len(found.dims or (None, None))
        ones = raw.Fill([1] * rank, found.dtype.np_dtype.type(1))
        weights = raw.Tile(ones, raw.ConcatV2([raw.Shape(rows), [1] * (rank - 1)], 0))
    if combiner == "sum":
        return raw.UnsortedSegmentSum(found, rows, count, name=scope)
    total = raw.UnsortedSegmentSum(found, rows, count)
    if combiner == "mean":
        sizes = raw.UnsortedSegmentSum(weights, rows, count)
    else:
        sizes = raw.Sqrt(raw.UnsortedSegmentSum(raw.Square(weights), rows, count))
    # Rows without ids, between others, are zero.
    return raw.DivNoNan(total, sizes, name=scope)


@public("nn.safe_embedding_lookup_sparse")
def safe_embedding_lookup_sparse(
    embedding_weights: Any,
    sparse_ids: Any,
    sparse_weights: Any = None,
    combiner: str = "mean",
    default_id: int | None = None,
    name: str | None = None,
    partition_strategy: str = "div",
    max_norm: float | None = None,
) -> Tensor:
    """``embedding_lookup_sparse`` that takes invalid ids and empty rows.

    Negative ids are left out, and, unless they are summed, ids whose weight is not positive. Rows
    without ids give zeros, or the embedding of ``default_id``. Ids may have any rank from 2 on;
    they are combined along the last axis. Of a `tf.EmbeddingTable` all integers are keys, negative
    ones, too, and rows without keys make no row there.

    Raises:
        ValueError: if there are no embedding weights.
    """
    if embedding_weights is None:
        raise ValueError(f"Missing embedding_weights {embedding_weights}.")
    table = table_parts(embedding_weights)
    if not isinstance(sparse_ids, SparseTensor):
        raise TypeError("sparse_ids must be SparseTensor")
    with get_default_graph().name_scope(name or "embedding_lookup") as scope:
        original, rank = sparse_ids.dense_shape, (sparse_ids.dense_shape.dims or (None,))[0]
        ids, weights = _as_matrix(sparse_ids, sparse_weights, rank)
        any_key = getattr(table[0], "any_key", False)
        least = np.iinfo(ids.values.dtype.np_dtype).min if any_key else 0
        valid = raw.GreaterEqual(ids.values, ids.values.dtype.np_dtype.type(least))
        if weights is not None and combiner != "sum":
            zero = weights.values.dtype.np_dtype.type(0)
            valid = raw.LogicalAnd(valid, raw.Greater(weights.values, zero))
        ids = sparse_retain(ids, valid)
        if weights is not None:
            weights = sparse_retain(weights, valid)
        filled, empty = sparse_fill_empty_rows(ids, default_id or 0)
        if not any_key or default_id is not None:
            ids = filled
            if weights is not None:
                weights, _ = sparse_fill_empty_rows(weights, 1.0)
        inner = None if default_id is None else scope
        result = embedding_lookup_sparse(
            table, ids, weights, partition_strategy, inner, combiner, max_norm
        )
        if any_key and default_id is None:
            result = _with_empty_rows(result, empty)
        elif default_id is None:
            zeros = raw.ZerosLike(result)
            result = raw.SelectV2(raw.ExpandDims(empty, 1), zeros, result, name=scope)
        before = raw.StridedSlice(raw.Cast(original, DstT=dtypes.int32), [0], [-1], [1])
        after = raw.StridedSlice(raw.Shape(result), [1], [0], [1], end_mask=1)
        final: Tensor = raw.Reshape(result, raw.ConcatV2([before, after], 0))
        if rank is not None:
            outer = (static_shape(original) or (None,) * rank)[: rank - 1]
            final.set_shape((*outer, *(result.dims or (None,))[1:]))
        return final


def _with_empty_rows(result: Tensor, empty: Tensor) -> Tensor:
    """Rows of zeros behind the last that has ids."""
    missing = raw.Sub(
        raw.Size(empty), raw.StridedSlice(raw.Shape(result), [0], [1], [1], shrink_axis_mask=1)
    )
    behind = raw.Reshape(raw.Pack([0, missing, 0, 0], axis=0), [2, 2])
    padded: Tensor = raw.Pad(result, behind)
    return padded


def _as_matrix(ids: SparseTensor, weights: Any, rank: int | None) -> tuple[SparseTensor, Any]:
    """Ids and weights with all dimensions but the last made one."""
    if rank != 2:
        outer = raw.StridedSlice(ids.dense_shape, [0], [-1], [1])
        last = raw.StridedSlice(ids.dense_shape, [-1], [0], [1], end_mask=1)
        rows = raw.Prod(outer, 0, keep_dims=True)
        ids = sparse_reshape(ids, raw.ConcatV2([rows, last], 0))
    if weights is not None:
        weights = SparseTensor(ids.indices, weights.values, ids.dense_shape)
    return ids, weights
