"""Batches of single inputs: ``tf.train.batch``, ``shuffle_batch`` and their variants."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from headrace.graph import dtypes
from headrace.graph.dtypes import DType
from headrace.graph.graph import get_default_graph
from headrace.graph.shapes import TensorShape
from headrace.graph.tensor import Tensor
from headrace.ops.control.basic import no_op
from headrace.ops.control.flow_api import cond
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.core.static import static_value
from headrace.ops.io.queues_api import FIFOQueue, PaddingFIFOQueue, QueueBase, RandomShuffleQueue
from headrace.ops.sparse.sparse_tensor import SparseTensor
from headrace.train import input_sparse
from headrace.train.input import summarize_fraction
from headrace.train.queue_runner import QueueRunner, add_queue_runner

__all__ = [
    "batch",
    "batch_join",
    "maybe_batch",
    "maybe_batch_join",
    "maybe_shuffle_batch",
    "maybe_shuffle_batch_join",
    "shuffle_batch",
    "shuffle_batch_join",
]

#: Makes the queue of components of given types and shapes.
_MakeQueue = Callable[[list[DType], list[Any]], QueueBase]


def batch(
    tensors: Any,
    batch_size: Any,
    num_threads: int = 1,
    capacity: int = 32,
    enqueue_many: bool = False,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """Batches of the values that ``tensors`` have one after another.

    A queue between them holds single elements; a queue runner fills it. When the input ends
    (OutOfRangeError), so do the batches.

    Args:
        tensors: a list or a dictionary of tensors and SparseTensors.
        batch_size: how many elements make a batch.
        num_threads: threads that fill the queue; with several the order is not repeatable.
        capacity: of the queue.
        enqueue_many: whether the tensors are batches of elements already, along dimension 0.
        shapes: the shapes of the elements; by default those of the tensors.
        dynamic_pad: pad elements of different sizes with zeros to the largest of the batch.
        allow_smaller_final_batch: give what is left at the end as a smaller batch.
        shared_name: of the queue.

    Returns:
        Tensors like ``tensors`` with a new dimension 0; one tensor for a list of one.

    Raises:
        ValueError: if there are no tensors, or the shape of an element is not known.
    """
    return maybe_batch(
        tensors,
        True,
        batch_size,
        num_threads=num_threads,
        capacity=capacity,
        enqueue_many=enqueue_many,
        shapes=shapes,
        dynamic_pad=dynamic_pad,
        allow_smaller_final_batch=allow_smaller_final_batch,
        shared_name=shared_name,
        name=name,
    )


def maybe_batch(
    tensors: Any,
    keep_input: Any,
    batch_size: Any,
    num_threads: int = 1,
    capacity: int = 32,
    enqueue_many: bool = False,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """As `batch`, of those elements for which ``keep_input`` is true.

    Args:
        keep_input: a bool scalar, or with ``enqueue_many`` a vector of an entry for each element.

    Raises:
        ValueError: if ``keep_input`` has another rank, or as `batch`.
    """
    return _batches(
        "batch",
        [tensors],
        num_threads,
        keep_input,
        enqueue_many,
        shapes,
        _fifo(capacity, dynamic_pad, shared_name),
        batch_size,
        allow_smaller_final_batch,
        (capacity, 0),
        name,
    )


def batch_join(
    tensors_list: Sequence[Any],
    batch_size: Any,
    capacity: int = 32,
    enqueue_many: bool = False,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """As `batch`, of several inputs, each with a thread of its own.

    Args:
        tensors_list: lists (or dictionaries) of tensors, alike in types and shapes.

    Raises:
        TypeError: if types differ from list to list.
        ValueError: if there are no lists, or their lengths or the ranks of their tensors differ, or
            as `batch`.
    """
    return maybe_batch_join(
        tensors_list,
        True,
        batch_size,
        capacity=capacity,
        enqueue_many=enqueue_many,
        shapes=shapes,
        dynamic_pad=dynamic_pad,
        allow_smaller_final_batch=allow_smaller_final_batch,
        shared_name=shared_name,
        name=name,
    )


def maybe_batch_join(
    tensors_list: Sequence[Any],
    keep_input: Any,
    batch_size: Any,
    capacity: int = 32,
    enqueue_many: bool = False,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """As `batch_join`, of those elements for which ``keep_input`` is true (see `maybe_batch`).

    Args:
        keep_input: a bool scalar, or with ``enqueue_many`` a vector of an entry for each element.

    Raises:
        TypeError, ValueError: as `batch_join`, or if ``keep_input`` has another type or rank.
    """
    return _batches(
        "batch_join",
        tensors_list,
        None,
        keep_input,
        enqueue_many,
        shapes,
        _fifo(capacity, dynamic_pad, shared_name),
        batch_size,
        allow_smaller_final_batch,
        (capacity, 0),
        name,
    )


def shuffle_batch(
    tensors: Any,
    batch_size: Any,
    capacity: int,
    min_after_dequeue: int,
    num_threads: int = 1,
    seed: int | None = None,
    enqueue_many: bool = False,
    shapes: Any = None,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """As `batch`, in random order.

    Args:
        min_after_dequeue: how many elements stay in the queue, to be mixed with those to come.
        seed: makes the order repeatable, if there is one thread.
        (others): as for `batch`.

    Returns:
        As `batch`: tensors ``[batch_size, ...]``.

    Raises:
        ValueError: if ``capacity`` is not larger than ``min_after_dequeue``, or as `batch`.
    """
    return maybe_shuffle_batch(
        tensors,
        batch_size,
        capacity,
        min_after_dequeue,
        True,
        num_threads=num_threads,
        seed=seed,
        enqueue_many=enqueue_many,
        shapes=shapes,
        allow_smaller_final_batch=allow_smaller_final_batch,
        shared_name=shared_name,
        name=name,
    )


def maybe_shuffle_batch(
    tensors: Any,
    batch_size: Any,
    capacity: int,
    min_after_dequeue: int,
    keep_input: Any,
    num_threads: int = 1,
    seed: int | None = None,
    enqueue_many: bool = False,
    shapes: Any = None,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """As `shuffle_batch`, of those elements for which ``keep_input`` is true.

    Args:
        keep_input: a bool scalar, or with ``enqueue_many`` a vector of an entry for each element.

    Raises:
        TypeError, ValueError: as `shuffle_batch`, or if ``keep_input`` has another type or rank.
    """
    return _batches(
        "shuffle_batch",
        [tensors],
        num_threads,
        keep_input,
        enqueue_many,
        shapes,
        _shuffling(capacity, min_after_dequeue, seed, shared_name),
        batch_size,
        allow_smaller_final_batch,
        (capacity, min_after_dequeue),
        name,
    )


def shuffle_batch_join(
    tensors_list: Sequence[Any],
    batch_size: Any,
    capacity: int,
    min_after_dequeue: int,
    seed: int | None = None,
    enqueue_many: bool = False,
    shapes: Any = None,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """As `batch_join`, in random order (see `shuffle_batch`); tensors ``[batch_size, ...]``.

    Raises:
        TypeError, ValueError: as `batch_join`, or if ``capacity`` is not larger than
            ``min_after_dequeue``.
    """
    return maybe_shuffle_batch_join(
        tensors_list,
        batch_size,
        capacity,
        min_after_dequeue,
        True,
        seed=seed,
        enqueue_many=enqueue_many,
        shapes=shapes,
        allow_smaller_final_batch=allow_smaller_final_batch,
        shared_name=shared_name,
        name=name,
    )


def maybe_shuffle_batch_join(
    tensors_list: Sequence[Any],
    batch_size: Any,
    capacity: int,
    min_after_dequeue: int,
    keep_input: Any,
    seed: int | None = None,
    enqueue_many: bool = False,
    shapes: Any = None,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """As `shuffle_batch_join`, of those elements for which ``keep_input`` is true.

    Args:
        keep_input: a bool scalar, or with ``enqueue_many`` a vector of an entry for each element.

    Raises:
        TypeError, ValueError: as `shuffle_batch_join`, or if ``keep_input`` has another type or
            rank.
    """
    return _batches(
        "shuffle_batch_join",
        tensors_list,
        None,
        keep_input,
        enqueue_many,
        shapes,
        _shuffling(capacity, min_after_dequeue, seed, shared_name),
        batch_size,
        allow_smaller_final_batch,
        (capacity, min_after_dequeue),
        name,
    )


# -- what they have in common -------------------------------------------------------------------


def _fifo(capacity: int, dynamic_pad: bool, shared_name: str | None) -> _MakeQueue:
    kind = PaddingFIFOQueue if dynamic_pad else FIFOQueue
    return lambda types, shapes: kind(capacity, types, shapes, shared_name=shared_name)


def _shuffling(capacity: int, least: int, seed: int | None, shared_name: str | None) -> _MakeQueue:
    if capacity <= least:
        raise ValueError(f"capacity {capacity} must be bigger than min_after_dequeue {least}.")
    return lambda types, shapes: RandomShuffleQueue(
        capacity, least, types, shapes, seed=seed, shared_name=shared_name
    )


def _batches(
    kind: str,
    inputs: Sequence[Any],
    num_threads: int | None,
    keep_input: Any,
    enqueue_many: bool,
    shapes: Any,
    make_queue: _MakeQueue,
    batch_size: Any,
    smaller: bool,
    capacity: tuple[int, int],
    name: str | None,
) -> Any:
    """Batches of ``inputs``, each a list or dictionary of tensors.

    Args:
        num_threads: for the only input; None for one thread for each input.
        capacity: of the queue, and how many elements stay in it.
    """
    if not inputs:
        raise ValueError("Expected at least one set of tensors")
    rows = _as_lists(inputs)
    with get_default_graph().name_scope(name or kind) as scope:
        rows = [[_converted(t) for t in row] for row in rows]
        if not rows[0]:
            raise ValueError(f"Expected at least one tensor in {kind}().")
        keep = _keep_input(keep_input, enqueue_many)
        if len({len(row) for row in rows}) > 1:
            lengths = [len(row) for row in rows]
            raise ValueError(f"Expected as many tensors in each list, got {lengths}.")
        values, stored = input_sparse.store(rows[0], enqueue_many, keep)
        stores = [values]
        for row in rows[1:]:
            stores.append(input_sparse.store(row, enqueue_many, keep, stored)[0])
        queue = make_queue(_types(stores), _shapes(stores, shapes, enqueue_many))
        enqueues = [_enqueue(queue, row, enqueue_many, keep) for row in stores]
        add_queue_runner(QueueRunner(queue, enqueues * (num_threads or 1)))
        _summarize(queue, *capacity)
        take = queue.dequeue_up_to if smaller else queue.dequeue_many
        batched = input_sparse.restore(take(batch_size, name=scope), stored)
    if not isinstance(inputs[0], dict):
        return batched
    keys = sorted(inputs[0], key=str)
    return dict(zip(keys, [batched] if len(keys) == 1 else batched, strict=True))


def _as_lists(inputs: Sequence[Any]) -> list[list[Any]]:
    """Each input as a list; dictionaries by the order of their keys."""
    if isinstance(inputs, dict):
        raise TypeError("tensors_list is a list of lists or of dictionaries, not a dictionary.")
    first = inputs[0]
    if not isinstance(first, dict):
        return [list(row) for row in inputs]
    if any(row.keys() != first.keys() for row in inputs):
        raise ValueError("All dictionaries in tensors_list must have the same keys")
    return [[row[k] for k in sorted(first, key=str)] for row in inputs]


def _converted(value: Any) -> Any:
    return value if isinstance(value, SparseTensor) else convert_to_tensor(value)


def _keep_input(keep_input: Any, enqueue_many: bool) -> Tensor:
    keep = convert_to_tensor(keep_input, dtypes.bool)
    rank = keep.shape.rank
    if rank is None:
        raise ValueError("`keep_input` dimensions must be known at graph construction.")
    if rank == 1 and not enqueue_many:
        raise ValueError("`keep_input` cannot be a vector when `enqueue_many=False`.")
    if rank > 1:
        raise ValueError("`keep_input` must be 0 or 1 dimensions.")
    return keep


def _types(rows: Sequence[Sequence[Tensor]]) -> list[DType]:
    lists = [[t.dtype.base_dtype for t in row] for row in rows]
    for other in lists[1:]:
        if other != lists[0]:
            first, second = (", ".join(t.name for t in types) for types in (lists[0], other))
            raise TypeError(f"Expected types to be consistent: {first} vs. {second}.")
    return lists[0]


def _shapes(rows: Sequence[Sequence[Tensor]], shapes: Any, enqueue_many: bool) -> list[Any]:
    """The shape of each component; those of the inputs must fit each other."""
    if shapes is not None:
        return list(shapes)
    merged: list[Any] = []
    for column in zip(*rows, strict=True):
        for tensor in column:
            if tensor.dims is None:
                raise ValueError(f"Cannot infer Tensor's rank: {tensor}")
        own = [t.shape.with_rank_at_least(1)[1:] if enqueue_many else t.shape for t in column]
        for shape in own[1:]:
            own[0].merge_with(shape)
        sizes = zip(*[s.as_tuple or () for s in own], strict=True)
        # Sizes that differ, where one is not known, are padded.
        merged.append(TensorShape([s[0] if len(set(s)) == 1 else None for s in sizes]))
    return merged


def _enqueue(queue: QueueBase, row: list[Tensor], enqueue_many: bool, keep: Tensor) -> Any:
    put = queue.enqueue_many if enqueue_many else queue.enqueue
    if keep.shape.rank == 1:
        which = raw.Cast(keep, DstT=dtypes.int32)
        return put([raw.DynamicPartition(t, which, num_partitions=2)[1] for t in row])
    known = static_value(keep)
    if known is None:
        return cond(keep, lambda: put(row), no_op)
    return put(row) if known else no_op()


def _summarize(queue: QueueBase, capacity: int, least: int) -> None:
    """How full the queue is, above what stays in it."""
    if not least:
        summarize_fraction(f"fraction_of_{capacity}_full", queue.size(), capacity)
        return
    over = raw.Maximum(0, queue.size() - least)
    room = capacity - least
    summarize_fraction(f"fraction_over_{least}_of_{room}_full", over, room)
