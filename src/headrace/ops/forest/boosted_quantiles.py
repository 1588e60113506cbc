"""Ops on quantiles of features: summaries, accumulators of them, and buckets. All run on the host.

The algorithm is in ``headrace.ops.forest.boosted_quantiles_kernels``, the public class in
``headrace.contrib.boosted_trees.quantile_ops``.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headrace.graph.tensor import Dims, Operation
from headrace.ops.core.checks import invalid
from headrace.ops.core.registry import Effects, define_op
from headrace.ops.core.traits import BOOSTED
from headrace.ops.forest import boosted_quantiles_kernels as kernels
from headrace.ops.forest.boosted_quantiles_kernels import (
    QuantileAccumulatorResource,
    QuantileStream,
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
    text,
)

_boosted_op = partial(define_op, traits=BOOSTED)

_READS_ALL = Effects(reads=(0,), external=True)
_CHANGES_ALL = Effects(reads=(0,), writes=(0,), external=True)
_HANDLE = "quantile_accumulator_handle: resource"
_HANDLES = "quantile_accumulator_handles: num_resource_handles * resource"
_STAMPS = "stamp_token: int64, next_stamp_token: int64"
_FEATURES = (
    "dense_float_features: num_dense_features * float32, "
    "sparse_float_feature_indices: num_sparse_features * int64, "
    "sparse_float_feature_values: num_sparse_features * float32, "
    "sparse_float_feature_shapes: num_sparse_features * int64, "
    "example_weights: float32"
)
_COUNTS = "num_dense_features: int >= 0, num_sparse_features: int >= 0"


def _parsed(kind: str, data: bytes, what: str) -> Any:
    """A message of quantiles_pb2.

    Raises:
        InvalidArgumentError: if the bytes are none.
    """
    from google.protobuf.message import DecodeError

    from headrace.graph.proto.boosted_trees import quantiles_pb2

    try:
        return getattr(quantiles_pb2, kind).FromString(data)
    except DecodeError:
        raise invalid(f"Unable to parse {what}.") from None


def _serialized(summary: kernels.Summary) -> NDArray[Any]:
    from headrace.graph.proto.boosted_trees.quantiles_pb2 import QuantileSummaryState

    message = QuantileSummaryState()
    kernels.write(summary, message)
    return np.array(message.SerializeToString(), object)


# -- streams of one batch -----------------------------------------------------------------------


def _check_features(dense: Any, sparse: Any) -> None:
    if not len(dense) and not len(sparse):
        raise invalid("Please provide at least sparse or dense features.")


def _dense(columns: Any, weights: NDArray[Any]) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    """The values of each dense column, and their weights."""
    for column in columns:
        values = np.asarray(column).reshape(-1)
        if values.size != weights.size:
            raise invalid(
                f"A dense column has {values.size} values, but there are {weights.size} "
                "example_weights: one for each example."
            )
        yield values, weights


def _sparse(
    columns: tuple[Any, Any, Any], weights: NDArray[Any]
) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    """The values of each sparse column, and the weights of their examples."""
    for parts in zip(*columns, strict=True):
        indices, values, shape = (np.asarray(part) for part in parts)
        if shape.size and shape.reshape(-1)[0] != weights.size:
            raise invalid("Sparse column shape doesn't match the batch size.")
        if indices.ndim != 2 or values.shape != indices.shape[:1]:
            raise invalid(
                f"Sparse indices of shape {list(indices.shape)} do not fit values of shape "
                f"{list(values.shape)}."
            )
        examples = indices[:, 0] if indices.size else np.zeros(0, np.int64)
        if np.any((examples < 0) | (examples >= weights.size)):
            raise invalid(f"A sparse column has an example that is not in [0, {weights.size}).")
        yield values, weights[examples]


def _summarize(context: Any, dense: Any, *rest: Any, epsilon: float) -> Any:
    *sparse, weights = rest
    weights = np.asarray(weights).reshape(-1)
    _check_features(dense, sparse[0])

    def summary(values: NDArray[Any], weights: NDArray[Any]) -> NDArray[Any]:
        stream = QuantileStream(float(np.float32(epsilon)), batch + 1)
        stream.push_values(values, weights)
        return _serialized(stream.result())

    batch = weights.size
    return (
        [summary(*column) for column in _dense(dense, weights)],
        [summary(*column) for column in _sparse((sparse[0], sparse[1], sparse[2]), weights)],
    )


def _buckets(context: Any, dense: Any, *rest: Any, dense_config: Any, sparse_config: Any) -> Any:
    *sparse, weights = rest
    weights = np.asarray(weights).reshape(-1)
    _check_features(dense, sparse[0])

    def buckets(columns: Any, configs: Any, kind: str, count: int) -> list[NDArray[Any]]:
        if len(configs) != count:
            raise invalid(f"Mismatch in number of {kind} quantile configs.")
        found = []
        for config, (values, weight) in zip(configs, columns, strict=True):
            settings = _parsed("QuantileConfig", text(config), "a QuantileConfig")
            stream = QuantileStream(settings.eps, max(weights.size, 1))
            stream.push_values(values, weight)
            found.append(kernels.boundaries(stream.result(), settings.num_quantiles))
        return found

    columns = _sparse((sparse[0], sparse[1], sparse[2]), weights)
    return (
        buckets(_dense(dense, weights), dense_config, "dense", len(dense)),
        buckets(columns, sparse_config, "sparse", len(sparse[0])),
    )


def _places(kind: str, values: Any, buckets: Any, dimensions: Any) -> NDArray[Any]:
    """The bucket of each value, and the dimension: int32 ``[n, 2]``."""
    values, buckets = np.asarray(values), np.asarray(buckets)
    if buckets.ndim != 1:
        raise invalid(f"{kind} buckets should be flat vectors")
    if values.size and not buckets.size:
        raise invalid(f"{kind} values have no buckets: there must be one at least.")
    found = np.searchsorted(buckets, values.reshape(-1))
    found = np.minimum(found, max(buckets.size - 1, 0))
    return np.stack([found, np.broadcast_to(dimensions, found.shape)], axis=1).astype(np.int32)


def _quantiles(
    context: Any, dense: Any, sparse: Any, dense_buckets: Any, sparse_buckets: Any, indices: Any
) -> Any:
    _check_features(dense, sparse)
    dimensions = []
    for values, places in zip(sparse, indices, strict=True):
        if places.ndim != 2 or places.shape != (np.size(values), 2):
            raise invalid(f"sparse_indices must be [{np.size(values)}, 2], not {places.shape}.")
        dimensions.append(places[:, 1])
    return (
        [_places("Dense", *pair, 0) for pair in zip(dense, dense_buckets, strict=True)],
        [
            _places("Sparse", *column)
            for column in zip(sparse, sparse_buckets, dimensions, strict=True)
        ],
    )


def _vectors_of_pairs(op: Operation) -> list[Dims]:
    dense, sparse = op.attrs["num_dense_features"], op.attrs["num_sparse_features"]
    return [((t.dims[0] if t.dims else None), 2) for t in op.inputs[: dense + sparse]]


def _bucketize(context: Any, values: Any, boundaries: Any) -> Any:
    values = np.asarray(values)
    # Boundaries are compared in the type of the values, as TensorFlow does.
    edges = np.asarray(boundaries).reshape(-1).astype(values.dtype)
    if np.any(edges[1:] < edges[:-1]):
        raise invalid("Expected sorted boundaries")
    return np.searchsorted(edges, values, side="right").astype(np.int32)


_boosted_op(
    f"MakeQuantileSummaries({_FEATURES}) -> (dense_summaries: num_dense_features * string, "
    "sparse_summaries: num_sparse_features * string)",
    attrs=f"{_COUNTS}, epsilon: float",
    shape=lambda op: [()] * (op.attrs["num_dense_features"] + op.attrs["num_sparse_features"]),
    host=_summarize,
    gradient=NO_GRADIENT,
)
_boosted_op(
    f"QuantileBuckets({_FEATURES}) -> (dense_buckets: num_dense_features * float32, "
    "sparse_buckets: num_sparse_features * float32)",
    attrs=f"{_COUNTS}, dense_config: list(string), sparse_config: list(string)",
    shape=lambda op: [(None,)] * (op.attrs["num_dense_features"] + op.attrs["num_sparse_features"]),
    host=_buckets,
    gradient=NO_GRADIENT,
)
_boosted_op(
    "Quantiles(dense_values: num_dense_features * float32, "
    "sparse_values: num_sparse_features * float32, dense_buckets: num_dense_features * float32, "
    "sparse_buckets: num_sparse_features * float32, sparse_indices: num_sparse_features * int64)"
    " -> (dense_quantiles: num_dense_features * int32, "
    "sparse_quantiles: num_sparse_features * int32)",
    attrs=_COUNTS,
    shape=_vectors_of_pairs,
    host=_quantiles,
    gradient=NO_GRADIENT,
)
_boosted_op(
    "BucketizeWithInputBoundaries(input: T, boundaries: float32) -> output: int32",
    attrs="T: {int32, int64, float32, float64}",
    shape=lambda op: [op.inputs[0].dims],
    host=_bucketize,
    gradient=NO_GRADIENT,
)

# -- accumulators -------------------------------------------------------------------------------


def _create(
    context: Any,
    handle: Any,
    stamp: Any,
    *,
    max_elements: int,
    epsilon: float,
    num_quantiles: int,
    generate_quantiles: bool,
    **_: Any,
) -> Any:
    eps = float(np.float32(epsilon))
    token = scalar_int(stamp, "stamp_token")
    made = QuantileAccumulatorResource(token, eps, num_quantiles, max_elements, generate_quantiles)
    create(context, handle, made)
    return ()


def _add(context: Any, handles: Any, stamp: Any, summaries: Any) -> Any:
    token = scalar_int(stamp, "stamp_token")
    for handle, summary in zip(handles, summaries, strict=True):
        accumulator = find(context, handle, QuantileAccumulatorResource)
        with accumulator.lock:
            # A worker that comes too late is no error: its values are of the last layer.
            if accumulator.stamp == token:
                found = _parsed("QuantileSummaryState", text(summary), "quantile summary")
                accumulator.stream.push(kernels.read(found))
    return ()


def _flush(context: Any, handle: Any, stamp: Any, next_stamp: Any) -> Any:
    accumulator = find(context, handle, QuantileAccumulatorResource)
    with accumulator.lock:
        accumulator.check_stamp(scalar_int(stamp, "stamp_token"))
        accumulator.flush(scalar_int(next_stamp, "next_stamp_token"))
    return ()


def _flush_summary(context: Any, handle: Any, stamp: Any, next_stamp: Any) -> Any:
    accumulator = find(context, handle, QuantileAccumulatorResource)
    with accumulator.lock:
        accumulator.check_stamp(scalar_int(stamp, "stamp_token"))
        summary = accumulator.stream.result()
        accumulator.clear(scalar_int(next_stamp, "next_stamp_token"))
    return _serialized(summary)


def _get_buckets(context: Any, handles: Any, stamp: Any) -> Any:
    token, ready, buckets = scalar_int(stamp, "stamp_token"), [], []
    for handle in handles:
        accumulator = find(context, handle, QuantileAccumulatorResource)
        with accumulator.lock:
            found = accumulator.buckets if accumulator.stamp == token else None
        ready.append(np.array(found is not None))
        buckets.append(np.zeros(0, np.float32) if found is None else found)
    return ready, buckets


def _serialize(context: Any, handle: Any) -> Any:
    from headrace.graph.proto.boosted_trees.quantiles_pb2 import QuantileStreamState

    state = QuantileStreamState()
    accumulator = find(context, handle, QuantileAccumulatorResource)
    with accumulator.lock:
        stamp, buckets = accumulator.stamp, accumulator.buckets
        levels = list(accumulator.stream.levels)
    for summary in (*levels, kernels.EMPTY):  # the last is what a stream works on in between
        kernels.write(summary, state.summaries.add())
    found = np.zeros(0, np.float32) if buckets is None else buckets
    data = np.array(state.SerializeToString(), object)
    return np.int64(stamp), data, np.array(buckets is not None), found


def _deserialize(
    context: Any, handle: Any, stamp: Any, state: Any, ready: Any, buckets: Any
) -> Any:
    found = _parsed("QuantileStreamState", text(state), "quantile stream state")
    levels = [kernels.read(summary) for summary in found.summaries][:-1]
    made = np.asarray(buckets, np.float32) if scalar_int(ready, "are_buckets_ready") else None
    accumulator = find(context, handle, QuantileAccumulatorResource)
    with accumulator.lock:
        accumulator.load(scalar_int(stamp, "stamp_token"), levels, made)
    return ()


def _ready_and_buckets(op: Operation) -> list[Dims]:
    count = op.attrs["num_resource_handles"]
    return [()] * count + [(None,)] * count


define_handle("QuantileStreamResourceHandleOp", "quantile_accumulator")
define_is_initialized("QuantileAccumulatorIsInitialized", "quantile_accumulator_handle")
_boosted_op(
    f"CreateQuantileAccumulator({_HANDLE}, stamp_token: int64)",
    attrs="container: string = '', shared_name: string = '', max_elements: int = 1099511627776, "
    "epsilon: float, num_quantiles: int, generate_quantiles: bool = False",
    shape=lambda op: [],
    host=_create,
    effects=CHANGES,
    gradient=NO_GRADIENT,
)
_boosted_op(
    f"QuantileAccumulatorAddSummaries({_HANDLES}, stamp_token: int64, "
    "summaries: num_resource_handles * string)",
    attrs="num_resource_handles: int >= 1",
    shape=lambda op: [],
    host=_add,
    effects=_CHANGES_ALL,
    gradient=NO_GRADIENT,
)
_boosted_op(
    f"QuantileAccumulatorFlush({_HANDLE}, {_STAMPS})",
    shape=lambda op: [],
    host=_flush,
    effects=CHANGES,
    gradient=NO_GRADIENT,
)
_boosted_op(
    f"QuantileAccumulatorFlushSummary({_HANDLE}, {_STAMPS}) -> output: string",
    shape=lambda op: [()],
    host=_flush_summary,
    effects=CHANGES,
    gradient=NO_GRADIENT,
)
_boosted_op(
    f"QuantileAccumulatorGetBuckets({_HANDLES}, stamp_token: int64) -> "
    "(are_buckets_ready: num_resource_handles * bool, buckets: num_resource_handles * float32)",
    attrs="num_resource_handles: int >= 1",
    shape=_ready_and_buckets,
    host=_get_buckets,
    effects=_READS_ALL,
    gradient=NO_GRADIENT,
)
_boosted_op(
    f"QuantileAccumulatorSerialize({_HANDLE}) -> (stamp_token: int64, stream_state: string, "
    "are_buckets_ready: bool, buckets: float32)",
    shape=lambda op: [(), (), (), (None,)],
    host=_serialize,
    effects=READS,
    gradient=NO_GRADIENT,
)
_boosted_op(
    f"QuantileAccumulatorDeserialize({_HANDLE}, stamp_token: int64, stream_state: string, "
    "are_buckets_ready: bool, buckets: float32)",
    shape=lambda op: [],
    host=_deserialize,
    effects=CHANGES,
    gradient=NO_GRADIENT,
)
