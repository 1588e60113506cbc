"""Batches that wait ready in a queue."""

from __future__ import annotations

from typing import Any

from headrace import summary
from headrace.graph import dtypes
from headrace.ops.io.queues_api import FIFOQueue, PaddingFIFOQueue
from headrace.ops.math.cast import cast
from headrace.ops.state.scopes_api import name_scope
from headrace.train.queue_runner import QueueRunner, add_queue_runner


def prefetch_queue(
    tensors: Any,
    capacity: int = 8,
    num_threads: int = 1,
    dynamic_pad: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """A queue that threads fill with ``tensors`` (a list or dictionary), for ``dequeue``.

    Args:
        capacity: how many may wait.
        num_threads: how many threads fill it, once queue runners are started.
        dynamic_pad: shapes may have sizes that are not known.

    Raises:
        ValueError: if there are no tensors, ``capacity`` is below 1, or a shape is not fully known
            without ``dynamic_pad``.
    """
    named = tensors if isinstance(tensors, dict) else None
    items = list(named.values()) if named is not None else list(tensors)
    if not items:
        raise ValueError("prefetch_queue needs at least one tensor.")
    if capacity < 1:
        raise ValueError(f"capacity must be at least 1, how many may wait; got {capacity}.")
    with name_scope(name, "prefetch_queue", items):
        types = [t.dtype for t in items]
        shapes = [t.shape for t in items]
        kind: Any = PaddingFIFOQueue if dynamic_pad else FIFOQueue
        queue = kind(
            capacity=capacity,
            dtypes=types,
            shapes=shapes,
            names=None if named is None else list(named),
            shared_name=shared_name,
        )
        enqueue = queue.enqueue(tensors)
        add_queue_runner(QueueRunner(queue, [enqueue] * num_threads))
        full = cast(queue.size(), dtypes.float32) * (1.0 / capacity)
        summary.scalar(f"fraction_of_{capacity}_full", full)
        return queue


__all__ = ["prefetch_queue"]
