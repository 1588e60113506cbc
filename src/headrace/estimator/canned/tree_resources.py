"""Trees and quantiles as resources that savers save: ``tensorflow.python.ops.boosted_trees_ops``.

Ponomareva and others, "TF Boosted Trees: A scalable TensorFlow based framework for gradient
boosting" (2017).
"""

from __future__ import annotations

from typing import Any

import headrace as tf
from headrace.graph.keys import GraphKeys
from headrace.graph.tensor import Operation, Tensor
from headrace.ops.core.build import raw
from headrace.ops.state.resources import register_resource
from headrace.train.saveable import SaveableObject, SaveSpec

__all__ = ["EnsembleResource", "PruningMode", "QuantilesResource"]

_MAX_ELEMENTS = 1 << 40


class PruningMode:
    """When branches without gain are cut: never, before they grow, or when the tree is whole.

    >>> PruningMode.from_str("post")
    2
    """

    NO_PRUNING, PRE_PRUNING, POST_PRUNING = range(3)
    _NAMES = ("none", "pre", "post")

    @classmethod
    def from_str(cls, mode: str) -> int:
        """The number of a mode.

        Raises:
            ValueError: unless it is "none", "pre" or "post".
        """
        if mode not in cls._NAMES:
            names = ", ".join(sorted(cls._NAMES))
            raise ValueError(f"pruning_mode mode must be one of: {names}, not {mode!r}.")
        return cls._NAMES.index(mode)


class _EnsembleSaveable(SaveableObject):
    """Saves the stamp and the serialized trees."""

    def __init__(self, handle: Tensor, create_op: Operation, name: str) -> None:
        self._handle, self._create_op = handle, create_op
        stamp, serialized = raw.BoostedTreesSerializeEnsemble(handle)
        specs = [
            SaveSpec(stamp, "", name + "_stamp"),
            SaveSpec(serialized, "", name + "_serialized"),
        ]
        super().__init__(handle, specs, name)

    def restore(self, restored_tensors: Any, restored_shapes: Any) -> Any:
        with tf.control_dependencies([self._create_op]):
            return raw.BoostedTreesDeserializeEnsemble(self._handle, *restored_tensors)


class EnsembleResource:
    """Trees on bucketized features, as a resource.

    Args:
        name: of the resource, and what its tensors in a checkpoint begin with.
        stamp_token: the first stamp; it counts the changes.
        is_local: of one worker alone: not saved.
        serialized_proto: what it holds at first, a serialized TreeEnsemble message.

    >>> from headrace.ops.state.resources import initialize_resources, shared_resources
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     trees = tf.estimator.canned.tree_resources.EnsembleResource("trees")
    ...     _ = session.run(initialize_resources(shared_resources()))
    ...     session.run(trees.get_states()[1])
    np.int32(0)
    """

    def __init__(
        self,
        name: str,
        stamp_token: int = 0,
        is_local: bool = False,
        serialized_proto: bytes | str = "",
    ) -> None:
        with tf.name_scope(name, "TreeEnsemble") as scope:
            self._handle: Tensor = raw.BoostedTreesEnsembleResourceHandleOp(
                container="", shared_name=scope.rstrip("/"), name=scope
            )
            self._init_op: Operation = raw.BoostedTreesCreateEnsemble(
                self._handle, tf.constant(stamp_token, tf.int64), serialized_proto
            )
            is_initialized = raw.IsBoostedTreesEnsembleInitialized(self._handle)
            if not is_local:
                saveable = _EnsembleSaveable(self._handle, self._init_op, self._handle.name)
                tf.add_to_collection(GraphKeys.SAVEABLE_OBJECTS, saveable)
            register_resource(self._handle, self._init_op, is_initialized, not is_local)

    @property
    def resource_handle(self) -> Tensor:
        return self._handle

    @property
    def initializer(self) -> Operation:
        """Makes the ensemble, unless it is there."""
        return self._init_op

    def get_stamp_token(self) -> Tensor:
        """How often the ensemble has changed, an int64 scalar."""
        stamp: Tensor = raw.BoostedTreesGetEnsembleStates(self._handle)[0]
        return stamp

    def get_states(self) -> tuple[Tensor, ...]:
        """Stamp, trees, finished trees, attempted layers, nodes of the last layer.

        The stamp is an int64 scalar, the counts are int32 scalars, the nodes int32 ``[2]``: the
        first one, and the one after the last.
        """
        names = (
            *("stamp_token", "num_trees", "num_finalized_trees", "num_attempted_layers"),
            "last_layer_nodes_range",
        )
        states = raw.BoostedTreesGetEnsembleStates(self._handle)
        return tuple(
            tf.identity(state, name=name) for state, name in zip(states, names, strict=True)
        )

    def serialize(self) -> Any:
        """``(stamp_token, serialized_proto)``: int64 and string scalars."""
        return raw.BoostedTreesSerializeEnsemble(self._handle)

    def deserialize(self, stamp_token: Any, serialized_proto: Any) -> Operation:
        """An operation that puts other trees in the place of these."""
        done: Operation = raw.BoostedTreesDeserializeEnsemble(
            self._handle, stamp_token, serialized_proto
        )
        return done


class _QuantilesSaveable(SaveableObject):
    """Saves the boundaries of the buckets of each feature."""

    def __init__(self, handle: Tensor, create_op: Operation, count: int, name: str) -> None:
        self._handle, self._create_op = handle, create_op
        found = raw.BoostedTreesQuantileStreamResourceGetBucketBoundaries(
            handle, num_features=count
        )
        specs = [
            SaveSpec(boundaries, "", f"{name}_bucket_boundaries_{position}")
            for position, boundaries in enumerate(found)
        ]
        super().__init__(handle, specs, name)

    def restore(self, restored_tensors: Any, restored_shapes: Any) -> Any:
        with tf.control_dependencies([self._create_op]):
            return raw.BoostedTreesQuantileStreamResourceDeserialize(
                self._handle, bucket_boundaries=restored_tensors
            )


class QuantilesResource:
    """Summaries of several features, which steps add, until a flush makes buckets of them.

    Chen and Guestrin, "XGBoost: A Scalable Tree Boosting System" (2016), section 3.3, appendix A.

    Args:
        epsilon: the largest error of a rank, as a share of the whole weight.
        num_streams: how many features.
        num_quantiles: how many buckets each has, about.
        name: of the resource, and what its tensors in a checkpoint begin with.
        max_elements: how many values there are at most.

    >>> import numpy as np
    >>> from headrace.ops.state.resources import initialize_resources, shared_resources
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     found = tf.estimator.canned.tree_resources.QuantilesResource(0.1, 1, 4)
    ...     _ = session.run(initialize_resources(shared_resources()))
    ...     session.run(found.add_summaries([np.float32(range(9))], [1.0]))
    ...     session.run(found.flush())
    ...     session.run(found.get_bucket_boundaries())[0].tolist()
    [0.0, 3.0, 5.0, 7.0, 8.0]
    """

    def __init__(
        self,
        epsilon: float,
        num_streams: int,
        num_quantiles: int,
        name: str | None = None,
        max_elements: int | None = None,
    ) -> None:
        self._epsilon, self._count, self._num_quantiles = epsilon, num_streams, num_quantiles
        with tf.name_scope(name, "QuantileAccumulator") as scope:
            self._handle: Tensor = raw.BoostedTreesQuantileStreamResourceHandleOp(
                container="", shared_name=scope.rstrip("/"), name=scope
            )
            self._init_op: Operation = raw.BoostedTreesCreateQuantileStreamResource(
                self._handle,
                epsilon,
                tf.constant(num_streams, tf.int64),
                max_elements=_MAX_ELEMENTS if max_elements is None else max_elements,
            )
            is_initialized = raw.IsBoostedTreesQuantileStreamResourceInitialized(self._handle)
        register_resource(self._handle, self._init_op, is_initialized)
        self._saveable = _QuantilesSaveable(
            self._handle, self._init_op, num_streams, self._handle.name
        )
        tf.add_to_collection(GraphKeys.SAVEABLE_OBJECTS, self._saveable)

    @property
    def resource_handle(self) -> Tensor:
        return self._handle

    @property
    def initializer(self) -> Operation:
        """Makes the accumulator, unless it is there."""
        return self._init_op

    @property
    def saveable(self) -> SaveableObject:
        return self._saveable

    def add_summaries(self, float_columns: Any, example_weights: Any) -> Operation:
        """An operation that adds the values of a batch.

        Args:
            float_columns: float32 vectors of ``batch`` values, one for each feature.
            example_weights: float32, ``batch`` of them or one.
        """
        summaries = raw.BoostedTreesMakeQuantileSummaries(
            float_columns, example_weights, self._epsilon
        )
        added: Operation = raw.BoostedTreesQuantileStreamResourceAddSummaries(
            self._handle, summaries
        )
        return added

    def flush(self) -> Operation:
        """An operation that makes buckets of what has been added, and begins anew."""
        flushed: Operation = raw.BoostedTreesQuantileStreamResourceFlush(
            self._handle, tf.constant(self._num_quantiles, tf.int64)
        )
        return flushed

    def get_bucket_boundaries(self) -> list[Tensor]:
        """The boundaries of the last flush: a float32 vector for each feature, empty before it."""
        found: list[Tensor] = raw.BoostedTreesQuantileStreamResourceGetBucketBoundaries(
            self._handle, num_features=self._count
        )
        return found
