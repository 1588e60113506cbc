"""The accumulator classes of ``tf``: averages of gradients that come from several workers."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.graph import dtypes
from headrace.graph.dtypes import DType
from headrace.graph.graph import get_default_graph
from headrace.graph.shapes import TensorShape
from headrace.graph.tensor import Operation, Tensor
from headrace.ops.array.indexed_slices import IndexedSlices
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.core.public import public


@public("ConditionalAccumulatorBase")
class ConditionalAccumulatorBase:
    """What accumulators of both kinds have in common.

    An accumulator adds gradients until enough are there; taking their average, for which steps
    wait, empties it and counts up its global step. Gradients computed before that are dropped.

    Args:
        dtype: the type of gradients; shape: their shape, or None.
        accumulator_ref: the handle.

    >>> gradients = tf.ConditionalAccumulator(tf.float32, shape=[])
    >>> with tf.Session() as sess:
    ...     sess.run(gradients.apply_grad(1.0))
    ...     int(sess.run(gradients.num_accumulated()))
    1
    """

    def __init__(self, dtype: Any, shape: Any, accumulator_ref: Tensor) -> None:
        self._dtype = dtypes.as_dtype(dtype).base_dtype
        self._shape = TensorShape(shape)
        self._accumulator_ref = accumulator_ref
        self._name = accumulator_ref.op.name.split("/")[-1]

    @property
    def accumulator_ref(self) -> Tensor:
        """The handle of the accumulator."""
        return self._accumulator_ref

    @property
    def name(self) -> str:
        """The last part of the name of the op that makes it."""
        return self._name

    @property
    def dtype(self) -> DType:
        """The type of the gradients."""
        return self._dtype

    def num_accumulated(self, name: str | None = None) -> Tensor:
        """How many gradients have been added since the last were taken: an int32 scalar."""
        return raw.ResourceAccumulatorNumAccumulated(
            self._accumulator_ref, name=name or f"{self._name}_NumAccumulated"
        )

    def set_global_step(self, new_global_step: Any, name: str | None = None) -> Operation:
        """An op after which gradients of steps before ``new_global_step`` are dropped."""
        return raw.ResourceAccumulatorSetGlobalStep(
            self._accumulator_ref,
            _step(new_global_step),
            name=name,
        )


def _step(value: Any) -> Tensor:
    tensor = convert_to_tensor(value, preferred_dtype=dtypes.int64)
    return tensor if tensor.dtype is dtypes.int64 else raw.Cast(tensor, DstT=dtypes.int64)


@public("ConditionalAccumulator")
class ConditionalAccumulator(ConditionalAccumulatorBase):
    """Averages dense gradients.

    Args:
        dtype: the type of gradients; shape: their shape, or None.
        shared_name: accumulators of one shared name are one, in all sessions of a server.
        reduction_type: ``"MEAN"`` or ``"SUM"``.

    Raises:
        ValueError: for another reduction.

    >>> gradients = tf.ConditionalAccumulator(tf.float32, shape=[2])
    >>> with tf.Session() as sess:
    ...     sess.run(gradients.apply_grad([1.0, 2.0]))
    ...     sess.run(gradients.apply_grad([3.0, 4.0]))
    ...     sess.run(gradients.take_grad(num_required=2)).tolist()  # waits for two
    [2.0, 3.0]
    """

    def __init__(
        self,
        dtype: Any,
        shape: Any = None,
        shared_name: str | None = None,
        name: str = "conditional_accumulator",
        reduction_type: str = "MEAN",
    ) -> None:
        handle = raw.ResourceConditionalAccumulator(
            dtype=dtype,
            shape=TensorShape(shape),
            container=get_default_graph()._container,
            shared_name=shared_name,
            name=name,
            reduction_type=reduction_type,
        )
        super().__init__(dtype, shape, handle)

    def apply_grad(self, grad: Any, local_step: Any = 0, name: str | None = None) -> Operation:
        """An op that adds a gradient, if ``local_step`` is not before the global step.

        Raises:
            ValueError: if the shape is known not to fit.
        """
        gradient = convert_to_tensor(grad, self._dtype)
        gradient.shape.assert_is_compatible_with(self._shape)
        return raw.ResourceAccumulatorApplyGradient(
            self._accumulator_ref, _step(local_step), gradient, name=name
        )

    def take_grad(self, num_required: Any, name: str | None = None) -> Tensor:
        """The average of the gradients, for ``num_required`` of which it waits.

        As it runs it raises InvalidArgumentError if ``num_required`` is not positive.
        """
        average: Tensor = raw.ResourceAccumulatorTakeGradient(
            self._accumulator_ref, num_required, dtype=self._dtype, name=name
        )
        average.set_shape(self._shape)
        return average


@public("SparseConditionalAccumulator")
class SparseConditionalAccumulator(ConditionalAccumulatorBase):
    """Averages sparse gradients: each row over those gradients that have it.

    Args:
        dtype: the type of gradients; shape: that of the whole gradient, or None.
        shared_name, reduction_type: as for ConditionalAccumulator.

    >>> gradients = tf.SparseConditionalAccumulator(tf.float32, shape=[9, 1])
    >>> with tf.Session() as sess:
    ...     sess.run(gradients.apply_grad(grad_indices=[4, 7], grad_values=[[2.0], [6.0]]))
    ...     sess.run(gradients.apply_grad(grad_indices=[4], grad_values=[[4.0]]))
    ...     taken = sess.run(gradients.take_indexed_slices_grad(2))
    >>> taken.indices.tolist(), taken.values.tolist()
    ([4, 7], [[3.0], [6.0]])
    """

    def __init__(
        self,
        dtype: Any,
        shape: Any = None,
        shared_name: str | None = None,
        name: str = "sparse_conditional_accumulator",
        reduction_type: str = "MEAN",
    ) -> None:
        handle = raw.SparseConditionalAccumulator(
            dtype=dtype,
            shape=TensorShape(shape),
            container=get_default_graph()._container,
            shared_name=shared_name,
            name=name,
            reduction_type=reduction_type,
        )
        super().__init__(dtype, shape, handle)

    def apply_indexed_slices_grad(
        self, grad: IndexedSlices, local_step: Any = 0, name: str | None = None
    ) -> Operation:
        """An op that adds a gradient; see `apply_grad`."""
        return self.apply_grad(grad.indices, grad.values, grad.dense_shape, local_step, name)

    def apply_grad(
        self,
        grad_indices: Any,
        grad_values: Any,
        grad_shape: Any = None,
        local_step: Any = 0,
        name: str | None = None,
    ) -> Operation:
        """An op that adds a gradient, if ``local_step`` is not before the global step.

        Args:
            grad_indices: int64 vector, the rows; ``grad_values``: their values.
            grad_shape: of the whole gradient, or None.

        As it runs it raises InvalidArgumentError if shapes do not fit.
        """
        known = grad_shape is not None
        return raw.SparseAccumulatorApplyGradient(
            self._accumulator_ref,
            _step(local_step),
            _step(grad_indices),
            convert_to_tensor(grad_values, self._dtype),
            _step(grad_shape if known else np.array([], np.int64)),
            has_known_shape=known,
            name=name,
        )

    def take_grad(self, num_required: Any, name: str | None = None) -> Any:
        """Indices, values and shape of the average, as for ConditionalAccumulator."""
        return raw.SparseAccumulatorTakeGradient(
            self._accumulator_ref, num_required, dtype=self._dtype, name=name
        )

    def take_indexed_slices_grad(self, num_required: Any, name: str | None = None) -> IndexedSlices:
        """The average as IndexedSlices."""
        indices, values, dense_shape = self.take_grad(num_required, name)
        return IndexedSlices(values, indices, dense_shape)

    def num_accumulated(self, name: str | None = None) -> Tensor:
        return raw.AccumulatorNumAccumulated(
            self._accumulator_ref, name=name or f"{self._name}_NumAccumulated"
        )

    def set_global_step(self, new_global_step: Any, name: str | None = None) -> Operation:
        return raw.AccumulatorSetGlobalStep(
            self._accumulator_ref, _step(new_global_step), name=name
        )
