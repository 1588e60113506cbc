"""Sparse tensors on their way through queues: numbers stand for them there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from headrace.graph import dtypes
from headrace.graph.dtypes import DType
from headrace.graph.graph import get_default_graph
from headrace.graph.tensor import Tensor
from headrace.ops.control.flow_api import cond
from headrace.ops.core.build import constant, raw
from headrace.ops.core.static import static_value
from headrace.ops.sparse.sparse_tensor import SparseTensor


@dataclass(frozen=True)
class Stored:
    """Where the tensors of one component are kept, their type and rank (None: not known)."""

    map_name: str
    dtype: DType
    rank: int | None


def store(
    tensors: Sequence[Any],
    enqueue_many: bool,
    keep_input: Tensor,
    shared: Sequence[Stored | None] | None = None,
) -> tuple[list[Tensor], list[Stored | None]]:
    """What to put into a queue for ``tensors``: itself for each that is dense.

    Args:
        enqueue_many: whether the tensors are batches of elements.
        keep_input: a bool scalar, or a vector with one entry for each element.
        shared: what the call for other inputs of the same queue returned.

    Raises:
        ValueError: if the components are sparse here and dense there.
    """
    before = shared or [None] * len(tensors)
    values: list[Tensor] = []
    stored: list[Stored | None] = []
    for tensor, other in zip(tensors, before, strict=True):
        sparse = isinstance(tensor, SparseTensor)
        if shared is not None and (other is None) == sparse:
            raise ValueError(f"Inconsistent SparseTensors list: {tensor} stands beside {other}")
        if not sparse:
            values.append(tensor)
            stored.append(None)
            continue
        numbers, place = _store_one(tensor, enqueue_many, keep_input, other)
        values.append(raw.ExpandDims(numbers, -1))
        stored.append(place)
    return values, stored


def _store_one(
    tensor: SparseTensor, enqueue_many: bool, keep_input: Tensor, other: Stored | None
) -> tuple[Tensor, Stored]:
    rank = tensor.dense_shape.shape.with_rank(1)[0].value
    if rank is not None and enqueue_many:
        rank -= 1
    if other is not None:
        if None not in (rank, other.rank) and rank != other.rank:
            raise ValueError(f"Inconsistent ranks of SparseTensors: {rank} and {other.rank}")
        rank = other.rank if rank is None else rank
    # The map is named as the op is, also where that stands in a branch.
    shared_name = "" if other is None else other.map_name
    by_row = keep_input.shape.rank == 1
    known = None if by_row else static_value(keep_input)
    if by_row:
        tensor = _kept_rows(tensor, keep_input)
    elif known is None and not shared_name:
        shared_name = get_default_graph().unique_name("SparseTensorsMap")

    def add() -> Tensor:
        op = raw.AddManySparseToTensorsMap if enqueue_many else raw.AddSparseToTensorsMap
        return op(tensor.indices, tensor.values, tensor.dense_shape, shared_name=shared_name)

    def add_nothing() -> Tensor:
        nothing = constant(-1, dtypes.int64)
        if not enqueue_many:
            return nothing
        return raw.Fill(raw.Cast(tensor.dense_shape[:1], DstT=dtypes.int32), nothing)

    if by_row or known is not None:
        numbers = add() if by_row or known else add_nothing()
        name = shared_name or numbers.op.name
    else:
        numbers = cond(keep_input, add, add_nothing)
        name = shared_name
    return numbers, Stored(name, tensor.dtype, rank)


def _kept_rows(tensor: SparseTensor, keep: Tensor) -> SparseTensor:
    """The elements of those rows for which ``keep`` is true; the other rows are empty."""
    kept = raw.GatherV2(keep, tensor.indices[:, 0], 0)
    places = raw.Reshape(raw.Where(kept), [-1])
    return SparseTensor(
        raw.GatherV2(tensor.indices, places, 0),
        raw.GatherV2(tensor.values, places, 0),
        tensor.dense_shape,
    )


def restore(dequeued: Any, stored: Sequence[Stored | None]) -> Any:
    """What was taken from a queue, a tensor or a list of them, with sparse tensors again.

    Whoever uses one of them waits until all are restored: the queue gives them away together.
    """
    several = isinstance(dequeued, (list, tuple))
    taken = [
        value if place is None else _take(raw.Squeeze(value, squeeze_dims=[1]), place)
        for value, place in zip(dequeued if several else [dequeued], stored, strict=True)
    ]
    if any(place is not None for place in stored):
        anchors = [t.values if isinstance(t, SparseTensor) else t for t in taken]

        def together(tensor: Tensor) -> Tensor:
            with get_default_graph().control_dependencies(anchors):
                return raw.Identity(tensor, name="control_dependency")

        taken = [
            t._identity(together) if isinstance(t, SparseTensor) else together(t) for t in taken
        ]
    return taken if several else taken[0]


def _take(numbers: Tensor, place: Stored) -> SparseTensor:
    indices, values, dense_shape = raw.TakeManySparseFromTensorsMap(
        numbers, dtype=place.dtype, shared_name=place.map_name
    )
    if place.rank is not None:
        indices.set_shape([None, place.rank + 1])
        dense_shape.set_shape([place.rank + 1])
    return SparseTensor(indices, values, dense_shape)
