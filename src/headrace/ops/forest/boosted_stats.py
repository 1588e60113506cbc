"""Ops on accumulators of gradients and Hessians, of scalars and of tensors.

The accumulators are in ``headrace.ops.forest.boosted_stats_kernels``, the public class in
``headrace.contrib.boosted_trees``. All of them run on the host.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from headrace.graph.tensor import Dims, Operation
from headrace.ops.core.checks import invalid
from headrace.ops.core.registry import Effects, define_op
from headrace.ops.core.traits import BOOSTED
from headrace.ops.forest.boosted_stats_kernels import (
    GradientStats,
    StatsAccumulatorResource,
    summed,
)
from headrace.ops.forest.boosted_trees import (
    CHANGES,
    NO_GRADIENT,
    READS,
    create,
    define_handle,
    define_is_initialized,
    find,
    scalar_int,
)

_boosted_op = partial(define_op, traits=BOOSTED)

#: Several resources at once: the positions of the handles depend on their number.
_CHANGES_ALL = Effects(reads=(0,), writes=(0,), external=True)
_HANDLE = "stats_accumulator_handle: resource"
_SUMS = "partition_ids: int32, feature_ids: int64, gradients: float32, hessians: float32"
_OUTPUTS = (
    "output_partition_ids: int32, output_feature_ids: int64, output_gradients: float32, "
    "output_hessians: float32"
)
_LISTS = (
    "partition_ids: num_resource_handles * int32, feature_ids: num_resource_handles * int64, "
    "gradients: num_resource_handles * float32, hessians: num_resource_handles * float32"
)


def _create_scalar(context: Any, handle: Any, stamp: Any) -> Any:
    create(context, handle, StatsAccumulatorResource(scalar_int(stamp, "stamp_token"), (), ()))
    return ()


def _create_tensor(context: Any, handle: Any, stamp: Any, gradient: Any, hessian: Any) -> Any:
    shapes = [tuple(np.asarray(shape).reshape(-1).tolist()) for shape in (gradient, hessian)]
    if not all(shapes):
        raise invalid(
            f"Gradients of shape {list(shapes[0])} and Hessians of shape {list(shapes[1])}: an "
            "accumulator of tensors has no scalars."
        )
    create(context, handle, StatsAccumulatorResource(scalar_int(stamp, "stamp_token"), *shapes))
    return ()


def _add(context: Any, handles: list[Any], stamp: Any, *sums: list[Any]) -> Any:
    token = scalar_int(stamp, "stamp_token")
    for handle, *parts in zip(handles, *sums, strict=True):
        accumulator = find(context, handle, StatsAccumulatorResource)
        with accumulator.lock:
            # A worker that comes too late is no error: its sums are of the last layer.
            if accumulator.stamp == token:
                accumulator.add(GradientStats(*parts))
    return ()


def _flush(context: Any, handle: Any, stamp: Any, next_stamp: Any) -> Any:
    token, following = scalar_int(stamp, "stamp_token"), scalar_int(next_stamp, "next_stamp_token")
    accumulator = find(context, handle, StatsAccumulatorResource)
    with accumulator.lock:
        accumulator.check_next(token, following)
        updates, stats = accumulator.updates, accumulator.stats
        accumulator.clear(following)
    return np.int64(updates), *stats


def _serialize(context: Any, handle: Any) -> Any:
    accumulator = find(context, handle, StatsAccumulatorResource)
    with accumulator.lock:
        return np.int64(accumulator.stamp), np.int64(accumulator.updates), *accumulator.stats


def _deserialize(context: Any, handle: Any, stamp: Any, updates: Any, *sums: Any) -> Any:
    accumulator = find(context, handle, StatsAccumulatorResource)
    with accumulator.lock:
        accumulator.clear(scalar_int(stamp, "stamp_token"))
        accumulator.add(GradientStats(*sums))
        accumulator.updates = scalar_int(updates, "num_updates")
    return ()


def _summarize(context: Any, *sums: Any) -> Any:
    return tuple(summed(GradientStats(*sums)))


def _sums_shape(op: Operation, inner: Dims) -> list[Dims]:
    return [(None,), (None, 2), inner, inner]


def _summary_shape(op: Operation) -> list[Dims]:
    inner = [(None, *t.dims[1:]) if t.dims else None for t in op.inputs[2:]]
    return [(None,), (None, 2), *inner]


def _define(kind: str, inner: Dims) -> None:
    """The ops of one kind; ``inner`` are the dims of its sums, None if not known."""
    define_handle(f"StatsAccumulator{kind}ResourceHandleOp", "stats_accumulator")
    define_is_initialized(f"StatsAccumulator{kind}IsInitialized", "stats_accumulator_handle")
    no_outputs: dict[str, Any] = {"shape": lambda op: [], "gradient": NO_GRADIENT}
    _boosted_op(
        f"StatsAccumulator{kind}Add(stats_accumulator_handles: num_resource_handles * resource, "
        f"stamp_token: int64, {_LISTS})",
        attrs="num_resource_handles: int >= 1",
        host=_add,
        effects=_CHANGES_ALL,
        **no_outputs,
    )
    _boosted_op(
        f"StatsAccumulator{kind}Deserialize({_HANDLE}, stamp_token: int64, num_updates: int64, "
        f"{_SUMS})",
        host=_deserialize,
        effects=CHANGES,
        **no_outputs,
    )
    _boosted_op(
        f"StatsAccumulator{kind}Flush({_HANDLE}, stamp_token: int64, next_stamp_token: int64) -> "
        f"(num_updates: int64, {_OUTPUTS})",
        host=_flush,
        shape=lambda op: [(), *_sums_shape(op, inner)],
        effects=CHANGES,
        gradient=NO_GRADIENT,
    )
    _boosted_op(
        f"StatsAccumulator{kind}Serialize({_HANDLE}) -> (stamp_token: int64, num_updates: int64, "
        f"{_OUTPUTS})",
        host=_serialize,
        shape=lambda op: [(), (), *_sums_shape(op, inner)],
        effects=READS,
        gradient=NO_GRADIENT,
    )
    _boosted_op(
        f"StatsAccumulator{kind}MakeSummary({_SUMS}) -> ({_OUTPUTS})",
        host=_summarize,
        shape=_summary_shape,
        gradient=NO_GRADIENT,
    )


_define("Scalar", (None,))
_define("Tensor", None)
_boosted_op(
    f"CreateStatsAccumulatorScalar({_HANDLE}, stamp_token: int64)",
    shape=lambda op: [],
    host=_create_scalar,
    effects=CHANGES,
    gradient=NO_GRADIENT,
)
_boosted_op(
    f"CreateStatsAccumulatorTensor({_HANDLE}, stamp_token: int64, per_slot_gradient_shape: int64, "
    "per_slot_hessian_shape: int64)",
    shape=lambda op: [],
    host=_create_tensor,
    effects=CHANGES,
    gradient=NO_GRADIENT,
)
