"""Operations on many resources that are built as one: a worker then sends one request, not many."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import headrace as tf

__all__ = ["ScheduledOp", "ScheduledStampedResourceOp", "run_handler_scheduled_ops"]


class ScheduledOp(Protocol):
    """An operation that is still to be built, with others of its kind."""

    def batching_key(self) -> Any:
        """Operations with the same key are built as one."""

    def batch_runner_fn(self) -> Callable[..., Any]:
        """``runner(operations, stamp)`` builds them."""


class ScheduledStampedResourceOp:
    """``op([handles], stamp, argument=[...])``, of which this has one handle and its arguments.

    Args:
        resource_handle: the resource.
        op: builds the operation for several resources.
        kwargs: tensors, for this resource.
    """

    def __init__(self, resource_handle: Any, op: Callable[..., Any], **kwargs: Any) -> None:
        self.resource_handle = resource_handle
        self.op = op
        self.args = kwargs

    def batching_key(self) -> Any:
        return self.resource_handle.device, self.op

    def batch_runner_fn(self) -> Callable[..., Any]:
        return _run_batch


def _run_batch(batch: Sequence[ScheduledStampedResourceOp], stamp: Any) -> Any:
    names = batch[0].args.keys()
    for op in batch:
        if op.args.keys() != names:
            raise ValueError(f"Mismatching arguments: {sorted(op.args)}, {sorted(names)}.")
    handles = [op.resource_handle for op in batch]
    with tf.device(handles[0].device):
        args = {name: [op.args[name] for op in batch] for name in names}
        return batch[0].op(handles, stamp, **args)


def run_handler_scheduled_ops(
    per_handler_ops: Mapping[Any, Sequence[Any]], stamp: Any, worker_device: Any
) -> dict[Any, list[Any]]:
    """Build the operations of several handlers, those of one kind and device as one.

    Args:
        per_handler_ops: ScheduledOps of each handler.
        stamp: int64 scalar.
        worker_device: where the results go.

    Returns:
        For each handler a list: of each operation a tuple of its results, or the operation itself
        if it has none.

    Raises:
        ValueError: for operations of one kind with other arguments.
    """
    batches: dict[Any, list[Any]] = {}
    for ops in per_handler_ops.values():
        for op in ops:
            batches.setdefault((op.batching_key(), op.batch_runner_fn()), []).append(op)
    results: dict[Any, Any] = {}
    for (_, runner), batch in batches.items():
        built = runner(batch, stamp)
        if isinstance(built, tf.Operation):
            results.update(dict.fromkeys(batch, built))
            continue
        with tf.device(worker_device):
            outputs = [[tf.identity(tensor) for tensor in output] for output in built]
        results.update(zip(batch, zip(*outputs, strict=True), strict=True))
    return {handler: [results[op] for op in ops] for handler, ops in per_handler_ops.items()}
