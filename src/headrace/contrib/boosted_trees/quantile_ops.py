"""Quantiles of features: the buckets among whose boundaries the best split is looked for."""

from __future__ import annotations

import re
from typing import Any

from headrace.contrib.boosted_trees.batch_ops_utils import ScheduledStampedResourceOp
from headrace.graph.graph import get_default_graph
from headrace.graph.keys import GraphKeys
from headrace.graph.tensor import Operation, Tensor
from headrace.ops.core.build import raw
from headrace.ops.sparse.sparse_tensor import SparseTensor
from headrace.ops.state.resources import register_resource
from headrace.ops.state.scopes_api import control_dependencies, name_scope
from headrace.train.saveable import SaveableObject, SaveSpec

__all__ = [
    "QuantileAccumulator",
    "QuantileAccumulatorSaveable",
    "bucketize_with_input_boundaries",
    "make_quantile_summaries",
    "quantile_buckets",
    "quantiles",
]

_NO_NAME = re.compile(r"[\W_]+")
_MAX_ELEMENTS = 1 << 40
#: How the tensors of a checkpoint are called, after the name of the resource.
_SUFFIXES = ("_stamp", "_state", "_are_buckets_ready", "buckets")


def make_quantile_summaries(
    dense_float_features: Any,
    sparse_float_feature_indices: Any,
    sparse_float_feature_values: Any,
    sparse_float_feature_shapes: Any,
    example_weights: Any,
    epsilon: float,
    name: str | None = None,
) -> Any:
    """Summaries of the features of a batch.

    Args:
        dense_float_features: float32 tensors of ``batch`` values.
        sparse_float_feature_indices, sparse_float_feature_values, sparse_float_feature_shapes:
            the parts of float32 SparseTensors ``[batch, n]``, as lists.
        example_weights: float32, ``batch`` of them; an example without weight is left out.
        epsilon: the largest error of a rank, as a share of the whole weight.

    Returns:
        ``(dense_summaries, sparse_summaries)``: lists of string scalars, serialized
        QuantileSummaryStates.

    Raises:
        InvalidArgumentError: in the step, without features, or for such as do not fit the weights.
    """
    return raw.MakeQuantileSummaries(
        dense_float_features,
        sparse_float_feature_indices,
        sparse_float_feature_values,
        sparse_float_feature_shapes,
        example_weights,
        epsilon=epsilon,
        name=name,
    )


def quantile_buckets(
    dense_float_features: Any,
    sparse_float_feature_indices: Any,
    sparse_float_feature_values: Any,
    sparse_float_feature_shapes: Any,
    example_weights: Any,
    dense_config: Any,
    sparse_config: Any,
    name: str | None = None,
) -> Any:
    """Boundaries of buckets for the features of a batch, which are as in the function above.

    Args:
        dense_config, sparse_config: a serialized QuantileConfig for each feature.

    Returns:
        ``(dense_buckets, sparse_buckets)``: lists of float32 vectors, in rising order.

    Raises:
        InvalidArgumentError: in the step, as `make_quantile_summaries`; for configs that are not as
            many as features; and for an ``eps`` that is not between 0 and 1.
    """
    return raw.QuantileBuckets(
        dense_float_features,
        sparse_float_feature_indices,
        sparse_float_feature_values,
        sparse_float_feature_shapes,
        example_weights,
        dense_config=dense_config,
        sparse_config=sparse_config,
        name=name,
    )


def quantiles(
    dense_values: Any,
    sparse_values: Any,
    dense_buckets: Any,
    sparse_buckets: Any,
    sparse_indices: Any,
    name: str | None = None,
) -> Any:
    """The bucket of each value: the first whose boundary is not less, or the last one.

    Args:
        dense_values: float32 tensors of ``batch`` values.
        sparse_values: float32 vectors.
        dense_buckets, sparse_buckets: float32 vectors of boundaries, in rising order.
        sparse_indices: int64 ``[n, 2]`` for each sparse feature: examples and dimensions.

    Returns:
        ``(dense_quantiles, sparse_quantiles)``: lists of int32 ``[n, 2]``, buckets and dimensions;
        that of dense features is 0.

    Raises:
        InvalidArgumentError: in the step, for values without buckets, or boundaries that are no
            vector.
    """
    return raw.Quantiles(
        dense_values, sparse_values, dense_buckets, sparse_buckets, sparse_indices, name=name
    )


def bucketize_with_input_boundaries(
    input: Any,
    boundaries: Any,
    name: str | None = None,
) -> Tensor:
    """How many boundaries each value reaches: int32 of the shape of ``input``.

    Args:
        input: int32, int64, float32 or float64.
        boundaries: float32, in rising order; they are compared as values of the input's dtype.

    Raises:
        InvalidArgumentError: in the step, if the boundaries are not in order.
    """
    found: Tensor = raw.BucketizeWithInputBoundaries(input, boundaries, name=name)
    return found


class QuantileAccumulatorSaveable(SaveableObject):
    """Saves an accumulator: its stamp, its stream, and its buckets.

    Args:
        resource_handle: the accumulator.
        create_op: makes it; restoring runs it first.
        name: of the object, and what the names in a checkpoint begin with.
    """

    def __init__(self, resource_handle: Any, create_op: Any, name: str) -> None:
        self._create_op, self._handle = create_op, resource_handle
        parts = zip(raw.QuantileAccumulatorSerialize(resource_handle), _SUFFIXES, strict=True)
        specs = [SaveSpec(tensor, "", name + suffix) for tensor, suffix in parts]
        super().__init__(resource_handle, specs, name)

    def restore(self, restored_tensors: Any, restored_shapes: Any) -> Any:
        with control_dependencies([self._create_op]):
            return raw.QuantileAccumulatorDeserialize(self._handle, *restored_tensors)


class QuantileAccumulator:
    """Summaries of a feature, which steps add, until a flush makes buckets of them.

    Chen and Guestrin, "XGBoost: A Scalable Tree Boosting System", 2016 (arXiv:1603.02754), section
    3.3 and appendix A.

    Whoever adds with another stamp than that of the accumulator comes too late: nothing happens.

    Args:
        init_stamp_token: int64 scalar, the first stamp.
        epsilon: the largest error of a rank, as a share of the whole weight; between 0 and 1.
        num_quantiles: how many buckets there are, about.
        max_elements: how many values there are at most.
        name: of the resource; characters that are no letters or digits are dropped.
        generate_quantiles: make ``num_quantiles + 1`` boundaries, and evenly; some may be equal.
    """

    def __init__(
        self,
        init_stamp_token: Any,
        epsilon: float,
        num_quantiles: int,
        max_elements: int | None = None,
        name: str | None = None,
        container: str | None = None,
        generate_quantiles: bool = False,
    ) -> None:
        self._epsilon = epsilon
        if name is not None:
            name = _NO_NAME.sub("", name)
        with name_scope(name, "QuantileAccumulator") as scope:
            self._resource_handle = raw.QuantileStreamResourceHandleOp(
                container=container or "", shared_name=scope.rstrip("/"), name=scope
            )
            self._init_op: Operation = raw.CreateQuantileAccumulator(
                self._resource_handle,
                init_stamp_token,
                epsilon=epsilon,
                num_quantiles=num_quantiles,
                max_elements=_MAX_ELEMENTS if max_elements is None else max_elements,
                generate_quantiles=generate_quantiles,
            )
            register_resource(self._resource_handle, self._init_op, self.is_initialized())
        self._saveable = QuantileAccumulatorSaveable(self._resource_handle, self._init_op, scope)
        get_default_graph().add_to_collection(GraphKeys.SAVEABLE_OBJECTS, self._saveable)

    @property
    def resource_handle(self) -> Tensor:
        handle: Tensor = self._resource_handle
        return handle

    @property
    def initializer(self) -> Operation:
        """Makes the accumulator, unless it is there."""
        return self._init_op

    @property
    def saveable(self) -> QuantileAccumulatorSaveable:
        return self._saveable

    def is_initialized(self) -> Tensor:
        """Whether it is there, a bool scalar."""
        found: Tensor = raw.QuantileAccumulatorIsInitialized(self._resource_handle)
        return found

    def get_buckets(self, stamp_token: Any) -> tuple[Tensor, Tensor]:
        """``(are_buckets_ready, buckets)``: a bool scalar, and the boundaries of the last flush.

        They are not ready, and empty, before the first flush, and if the accumulator has another
        stamp.
        """
        ready, buckets = raw.QuantileAccumulatorGetBuckets([self._resource_handle], stamp_token)
        return ready[0], buckets[0]

    def schedule_get_buckets(self) -> ScheduledStampedResourceOp:
        """``get_buckets``, to be built with others (``batch_ops_utils``)."""
        return ScheduledStampedResourceOp(self._resource_handle, raw.QuantileAccumulatorGetBuckets)

    def _make_summary(self, column: Any, example_weights: Any) -> Tensor:
        # Half of the error is for what comes when summaries are merged.
        dense, indices, values, shapes = [column], [], [], []
        if isinstance(column, SparseTensor):
            dense = []
            indices, values, shapes = [column.indices], [column.values], [column.dense_shape]
        made = raw.MakeQuantileSummaries(
            dense, indices, values, shapes, example_weights, epsilon=self._epsilon / 2
        )
        summary: Tensor = [*made[0], *made[1]][0]
        return summary

    def add_summary(self, stamp_token: Any, column: Any, example_weights: Any) -> Operation:
        """An operation that adds the values of a batch.

        Args:
            stamp_token: int64 scalar.
            column: float32, a tensor ``[batch, 1]`` or a SparseTensor ``[batch, n]``.
            example_weights: float32, ``batch`` of them.
        """
        return self.add_prebuilt_summary(stamp_token, self._make_summary(column, example_weights))

    def add_prebuilt_summary(self, stamp_token: Any, summary: Any) -> Operation:
        """An operation that adds a summary, a serialized QuantileSummaryState."""
        added: Operation = raw.QuantileAccumulatorAddSummaries(
            [self._resource_handle], stamp_token, [summary]
        )
        return added

    def schedule_add_summary(
        self, stamp_token: Any, column: Any, example_weights: Any
    ) -> ScheduledStampedResourceOp:
        """``add_summary``, to be built with others; the stamp is that of whoever builds it."""
        del stamp_token
        return ScheduledStampedResourceOp(
            self._resource_handle,
            raw.QuantileAccumulatorAddSummaries,
            summaries=self._make_summary(column, example_weights),
        )

    def flush(self, stamp_token: Any, next_stamp_token: Any) -> Operation:
        """An operation that makes buckets and begins anew, with another stamp.

        Raises:
            FailedPreconditionError: in the step, if the accumulator has another stamp.
        """
        flushed: Operation = raw.QuantileAccumulatorFlush(
            self._resource_handle, stamp_token, next_stamp_token
        )
        return flushed

    def flush_summary(self, stamp_token: Any, next_stamp_token: Any) -> Tensor:
        """The same without buckets: a summary of all, a serialized QuantileSummaryState."""
        summary: Tensor = raw.QuantileAccumulatorFlushSummary(
            self._resource_handle, stamp_token, next_stamp_token
        )
        return summary
