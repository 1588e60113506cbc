"""Accumulators of gradients and Hessians."""

from __future__ import annotations

import re
from typing import Any

from headrace.contrib.boosted_trees.batch_ops_utils import ScheduledStampedResourceOp
from headrace.graph import dtypes
from headrace.graph.graph import get_default_graph
from headrace.graph.keys import GraphKeys
from headrace.graph.shapes import TensorShape
from headrace.graph.tensor import Operation, Tensor
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.state.resources import register_resource
from headrace.ops.state.scopes_api import control_dependencies, name_scope
from headrace.train.saveable import SaveableObject, SaveSpec

__all__ = ["StatsAccumulator", "StatsAccumulatorSaveable"]

_NO_NAME = re.compile(r"[\W_]+")
#: How the tensors of a checkpoint are called, after the name of the resource.
_SUFFIXES = (
    "_stamp",
    "_num_updates",
    "_partition_ids",
    "_feature_ids",
    "_gradients",
    "hessians",
)


class StatsAccumulatorSaveable(SaveableObject):
    """Saves an accumulator: its stamp, the number of updates, and the sums.

    Args:
        resource_handle: the accumulator.
        create_op: makes it; restoring runs it first.
        is_scalar: whether the sums are scalars.
        name: of the object.
    """

    def __init__(self, resource_handle: Any, create_op: Any, is_scalar: bool, name: str) -> None:
        self._create_op, self._handle = create_op, resource_handle
        self._kind = "Scalar" if is_scalar else "Tensor"
        parts = zip(self.serialize(), _SUFFIXES, strict=True)
        specs = [SaveSpec(tensor, "", resource_handle.name + suffix) for tensor, suffix in parts]
        super().__init__(resource_handle, specs, name)

    def serialize(self) -> Any:
        """``(stamp, updates, partition_ids, feature_ids, gradients, hessians)``."""
        return getattr(raw, f"StatsAccumulator{self._kind}Serialize")(self._handle)

    def deserialize(
        self,
        stamp_token: Any,
        num_updates: Any,
        partition_ids: Any,
        feature_ids: Any,
        gradients: Any,
        hessians: Any,
    ) -> Operation:
        """An operation that puts these in the place of what is there."""
        restored: Operation = getattr(raw, f"StatsAccumulator{self._kind}Deserialize")(
            self._handle,
            stamp_token,
            num_updates,
            partition_ids,
            feature_ids,
            gradients,
            hessians,
        )
        return restored

    def restore(self, restored_tensors: Any, restored_shapes: Any) -> Any:
        with control_dependencies([self._create_op]):
            return self.deserialize(*restored_tensors)


class StatsAccumulator:
    """Adds up gradients and Hessians, by leaf and feature, until they are flushed.

    Whoever adds with another stamp than that of the accumulator comes too late: nothing happens.

    Args:
        stamp_token: int64 scalar, the first stamp.
        gradient_shape, hessian_shape: TensorShapes of one sum; both of scalars, or none.
        name: of the resource; characters that are no letters or digits are dropped.
    """

    def __init__(
        self,
        stamp_token: Any,
        gradient_shape: Any,
        hessian_shape: Any,
        name: str | None = None,
        container: str | None = None,
    ) -> None:
        shapes = TensorShape(gradient_shape), TensorShape(hessian_shape)
        is_scalar = all(shape.rank == 0 for shape in shapes)
        self._kind = "Scalar" if is_scalar else "Tensor"
        self._stamp_token, self._shapes = stamp_token, shapes
        self._init_op: Any = None
        if name is not None:
            name = _NO_NAME.sub("", name)
        with name_scope(name, "StatsAccumulator") as scope:
            self._resource_handle = self._op("ResourceHandleOp")(
                container=container or "", shared_name=scope.rstrip("/"), name=scope
            )
            register_resource(self._resource_handle, self.initializer, self.is_initialized())
            self._saveable = StatsAccumulatorSaveable(
                self._resource_handle, self.initializer, is_scalar, scope
            )
        get_default_graph().add_to_collection(GraphKeys.SAVEABLE_OBJECTS, self._saveable)

    def _op(self, name: str) -> Any:
        return getattr(raw, f"StatsAccumulator{self._kind}{name}")

    @property
    def resource_handle(self) -> Tensor:
        handle: Tensor = self._resource_handle
        return handle

    @property
    def initializer(self) -> Operation:
        """Makes the accumulator, unless it is there."""
        if self._init_op is None:
            stamp = convert_to_tensor(self._stamp_token, dtypes.int64)
            sizes = [shape.as_list() for shape in self._shapes] if self._kind == "Tensor" else []
            made = getattr(raw, f"CreateStatsAccumulator{self._kind}")
            self._init_op = made(self._resource_handle, stamp, *sizes)
        init: Operation = self._init_op
        return init

    def is_initialized(self) -> Tensor:
        """Whether it is there, a bool scalar."""
        found: Tensor = self._op("IsInitialized")(self._resource_handle)
        return found

    @property
    def saveable(self) -> StatsAccumulatorSaveable:
        return self._saveable

    def _make_summary(self, *sums: Any) -> Any:
        return self._op("MakeSummary")(*sums)

    def add(
        self, stamp_token: Any, partition_ids: Any, feature_ids: Any, gradients: Any, hessians: Any
    ) -> Operation:
        """An operation that adds ``n`` values.

        Args:
            stamp_token: int64 scalar.
            partition_ids: int32 ``[n]``, leaves.
            feature_ids: int64 ``[n, 2]``, features and their dimensions.
            gradients, hessians: float32 ``[n, ...]``.

        Raises:
            InvalidArgumentError: in the step, if they do not fit each other or the accumulator.
        """
        parts = self._make_summary(partition_ids, feature_ids, gradients, hessians)
        added: Operation = self._op("Add")(
            [self._resource_handle], stamp_token, *[[part] for part in parts]
        )
        return added

    def schedule_add(
        self, partition_ids: Any, feature_ids: Any, gradients: Any, hessians: Any
    ) -> ScheduledStampedResourceOp:
        """``add``, to be built with others (``batch_ops_utils.run_handler_scheduled_ops``)."""
        names = ("partition_ids", "feature_ids", "gradients", "hessians")
        parts = self._make_summary(partition_ids, feature_ids, gradients, hessians)
        return ScheduledStampedResourceOp(
            self._resource_handle, self._op("Add"), **dict(zip(names, parts, strict=True))
        )

    def flush(self, stamp_token: Any, next_stamp_token: Any) -> Any:
        """Take the sums and begin anew, with another stamp.

        Returns:
            ``(num_updates, partition_ids, feature_ids, gradients, hessians)``, ordered by leaf,
            dimension and feature.

        Raises:
            FailedPreconditionError: in the step, if the accumulator has another stamp.
            InvalidArgumentError: in the step, if both stamps are the same.
        """
        return self._op("Flush")(self._resource_handle, stamp_token, next_stamp_token)
