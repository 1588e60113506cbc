"""Ops on quantiles of several features at once, and the buckets of values. All run on the host.

The algorithm is in ``headrace.ops.forest.boosted_quantiles_kernels``.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headrace.graph.tensor import Dims, Operation
from headrace.ops.core.checks import invalid
from headrace.ops.core.registry import HostResource, define_op
from headrace.ops.core.traits import PLAIN, Traits
from headrace.ops.forest import boosted_quantiles_kernels as kernels
from headrace.ops.forest.boosted_quantiles_kernels import QuantileStream, Summary
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
from headrace.ops.forest.layered_ensembles import scalar_float

Array = NDArray[Any]
_HANDLE = "quantile_stream_resource_handle: resource"


class QuantileStreams(HostResource):
    """A stream of values for each feature, and the boundaries of the last ones that ended."""

    def __init__(self, eps: float, count: int, max_elements: int) -> None:
        if count <= 0:
            raise invalid(f"num_streams must be positive, not {count}.")
        self.lock = threading.Lock()
        self._made_of = eps, max_elements
        self.streams = [QuantileStream(*self._made_of) for _ in range(count)]
        self.boundaries = [np.zeros(0, np.float32)] * count

    def abandon(self) -> None:
        """Nobody waits for it."""

    def check_count(self, count: int, what: str) -> None:
        """Raises InvalidArgumentError unless there are as many streams."""
        if count != len(self.streams):
            raise invalid(f"There are {len(self.streams)} streams, but {count} {what}.")

    def flush(self) -> list[Summary]:
        """The summaries of all streams; they begin anew."""
        found = [stream.result() for stream in self.streams]
        self.streams = [QuantileStream(*self._made_of) for _ in found]
        return found


def _create(context: Any, handle: Any, epsilon: Any, num_streams: Any, *, max_elements: int) -> Any:
    eps = float(scalar_float(epsilon, "epsilon"))
    create(
        context, handle, QuantileStreams(eps, scalar_int(num_streams, "num_streams"), max_elements)
    )
    return ()


def _rows(summary: Summary) -> Array:
    """A summary as TensorFlow hands it on: float32 ``[n, 4]``."""
    return np.stack(summary, axis=1).astype(np.float32)


def _make(context: Any, columns: Any, weights: Any, epsilon: Any) -> Any:
    values = [np.asarray(column, np.float32).reshape(-1) for column in columns]
    given = np.asarray(weights, np.float32).reshape(-1)
    eps, found = float(scalar_float(epsilon, "epsilon")), []
    for column in values:
        if given.size not in (1, column.size):
            raise invalid(
                "Weights should be a single value or same size as features: there are "
                f"{given.size} for {column.size} values."
            )
        stream = QuantileStream(eps, column.size + 1)
        stream.push_values(column, np.broadcast_to(given, column.shape))
        found.append(_rows(stream.result()))
    return found


def _add(context: Any, handle: Any, summaries: Any) -> Any:
    found = []
    for summary in summaries:
        rows = np.asarray(summary, np.float32)
        if rows.ndim != 2 or rows.shape[1] != 4:
            raise invalid(f"A summary is of shape [n, 4], not {list(rows.shape)}.")
        found.append(Summary(*rows.T))
    streams = find(context, handle, QuantileStreams)
    with streams.lock:
        streams.check_count(len(found), "summaries")
        for stream, one in zip(streams.streams, found, strict=True):
            stream.push(one)
    return ()


def _even_boundaries(summary: Summary, count: int) -> Array:
    """``count`` quantiles, from the lowest value to the highest, each once."""
    return np.unique(kernels.quantiles(summary, count - 1))


def _flush(context: Any, handle: Any, num_buckets: Any, *, generate_quantiles: bool) -> Any:
    count = scalar_int(num_buckets, "num_buckets")
    part = _even_boundaries if generate_quantiles else kernels.boundaries
    streams = find(context, handle, QuantileStreams)
    with streams.lock:
        streams.boundaries = [part(summary, count) for summary in streams.flush()]
    return ()


def _flush_summaries(context: Any, handle: Any, *, num_features: int) -> Any:
    streams = find(context, handle, QuantileStreams)
    with streams.lock:
        streams.check_count(num_features, "num_features")
        return [_rows(summary) for summary in streams.flush()]


def _deserialize(context: Any, handle: Any, boundaries: Any) -> Any:
    found = [np.array(edges, np.float32).reshape(-1) for edges in boundaries]
    streams = find(context, handle, QuantileStreams)
    with streams.lock:
        streams.check_count(len(found), "bucket_boundaries")
        streams.boundaries = found
    return ()


def _boundaries(context: Any, handle: Any, *, num_features: int) -> Any:
    streams = find(context, handle, QuantileStreams)
    with streams.lock:
        streams.check_count(num_features, "num_features")
        return list(streams.boundaries)


def _bucketize(context: Any, columns: Any, boundaries: Any) -> Any:
    found = []
    for column, edges in zip(columns, boundaries, strict=True):
        values, limits = np.asarray(column).reshape(-1), np.asarray(edges).reshape(-1)
        places = np.searchsorted(limits, values)
        # What is above all is in the last bucket; a NaN is less than nothing, and in the first.
        places = np.minimum(places, max(len(limits) - 1, 0))
        found.append(np.where(np.isnan(values), 0, places).astype(np.int32))
    return found


def _summaries_shape(op: Operation) -> list[Dims]:
    return [(None, 4)] * op.attrs["num_features"]


def _bucketize_shape(op: Operation) -> list[Dims]:
    return [(t.dims[0] if t.dims else None,) for t in op.inputs[: op.attrs["num_features"]]]


define_handle("BoostedTreesQuantileStreamResourceHandleOp", "quantile_streams", Traits(shared=True))
define_is_initialized(
    "IsBoostedTreesQuantileStreamResourceInitialized", "quantile_stream_resource_handle", PLAIN
)
define_op(
    f"BoostedTreesCreateQuantileStreamResource({_HANDLE}, epsilon: float32, num_streams: int64)",
    attrs="max_elements: int = 1099511627776",
    shape=lambda op: [],
    host=_create,
    effects=CHANGES,
    gradient=NO_GRADIENT,
)
define_op(
    "BoostedTreesMakeQuantileSummaries(float_values: num_features * float32, "
    "example_weights: float32, epsilon: float32) -> summaries: num_features * float32",
    attrs="num_features: int >= 0",
    shape=_summaries_shape,
    host=_make,
    gradient=NO_GRADIENT,
)
define_op(
    f"BoostedTreesQuantileStreamResourceAddSummaries({_HANDLE}, summaries: num_features * float32)",
    attrs="num_features: int >= 0",
    shape=lambda op: [],
    host=_add,
    effects=CHANGES,
    gradient=NO_GRADIENT,
)
define_op(
    f"BoostedTreesQuantileStreamResourceFlush({_HANDLE}, num_buckets: int64)",
    attrs="generate_quantiles: bool = False",
    shape=lambda op: [],
    host=_flush,
    effects=CHANGES,
    gradient=NO_GRADIENT,
)
define_op(
    f"BoostedTreesFlushQuantileSummaries({_HANDLE}) -> summaries: num_features * float32",
    attrs="num_features: int >= 0",
    shape=_summaries_shape,
    host=_flush_summaries,
    effects=CHANGES,
    gradient=NO_GRADIENT,
)
define_op(
    f"BoostedTreesQuantileStreamResourceDeserialize({_HANDLE}, "
    "bucket_boundaries: num_streams * float32)",
    attrs="num_streams: int >= 1",
    shape=lambda op: [],
    host=_deserialize,
    effects=CHANGES,
    gradient=NO_GRADIENT,
)
define_op(
    f"BoostedTreesQuantileStreamResourceGetBucketBoundaries({_HANDLE}) -> "
    "bucket_boundaries: num_features * float32",
    attrs="num_features: int >= 0",
    shape=lambda op: [(None,)] * op.attrs["num_features"],
    host=_boundaries,
    effects=READS,
    gradient=NO_GRADIENT,
)
define_op(
    "BoostedTreesBucketize(float_values: num_features * float32, "
    "bucket_boundaries: num_features * float32) -> buckets: num_features * int32",
    attrs="num_features: int >= 0",
    shape=_bucketize_shape,
    host=_bucketize,
    gradient=NO_GRADIENT,
)
