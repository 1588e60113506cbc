"""Batch normalisation with what `tf.layers.BatchNormalization` does not have.

That is: updates in other collections or forced, weights of examples, correction of the moving mean
for its start, and the fused op for rank 2.
"""

from __future__ import annotations

from typing import Any

from headrace.contrib.framework.variables import model_variable
from headrace.contrib.layers import utils
from headrace.graph.dtypes import DType
from headrace.graph.graph import get_default_graph
from headrace.graph.tensor import Tensor
from headrace.layers.arguments import ONES, ZEROS
from headrace.ops.array import api
from headrace.ops.core.build import constant, convert_to_tensor, raw
from headrace.ops.nn import normalization_api
from headrace.ops.state.scopes_api import control_dependencies
from headrace.ops.state.variable_scope import get_variable_scope, variable_scope
from headrace.train.moving_averages import assign_moving_average


class NormalizedBatch:
    """One normalisation: its variables, and the two ways to compute it."""

    zero_debias = False
    beta: Any
    gamma: Any
    mean: Any
    variance: Any

    def __init__(
        self,
        decay: float,
        epsilon: float,
        data_format: str,
        is_training: Any,
        updates_collections: Any,
    ) -> None:
        self._decay = decay
        self._epsilon = epsilon
        self._data_format = data_format
        self._first = data_format == "NCHW"
        self._training = is_training
        self._collections = updates_collections
        known = utils.constant_value(is_training)
        #: Whether the statistics of the batch may be needed.
        self._may_train = known is None or bool(known)

    def add_variables(
        self,
        inputs: Tensor,
        dtype: DType,
        wanted: tuple[bool, bool, bool],
        settings: tuple[dict[str, Any], dict[str, Any]],
        collections: Any,
    ) -> None:
        """Make the variables. ``wanted`` is center, scale and trainable.

        Raises:
            ValueError: if the number of channels is not known.
        """
        rank = inputs.shape.rank
        if rank is None:
            raise ValueError(f"Inputs {inputs.name} has undefined rank")
        channels = inputs.shape.as_list()[1 if self._first and rank != 2 else -1]
        if channels is None:
            raise ValueError(
                f"Inputs {inputs.name} has undefined channels dimension: {inputs.shape}."
            )
        initializers, regularizers = settings
        self._size = [channels]

        def variable(name: str, default: Any, trainable: bool) -> Any:
            return model_variable(
                name,
                shape=[channels],
                dtype=dtype,
                initializer=initializers.get(name, default),
                regularizer=regularizers.get(name) if trainable else None,
                collections=utils.get_variable_collections(collections, name),
                trainable=trainable,
            )

        center, scale, trainable = wanted
        self.beta = variable("beta", ZEROS, trainable) if center else None
        self.gamma = variable("gamma", ONES, trainable) if scale else None
        with variable_scope(get_variable_scope()) as inner:
            inner.set_partitioner(None)
            self.mean = variable("moving_mean", ZEROS, False)
            self.variance = variable("moving_variance", ONES, False)

    def fused(self, inputs: Tensor) -> Any:
        """By the fused op; inputs of rank 2 are images of one pixel."""
        original, channels = inputs, self._size[0]
        if inputs.shape.rank == 2:
            image = [-1, channels, 1, 1] if self._first else [-1, 1, 1, channels]
            inputs = api.reshape(inputs, image)
        gamma = constant(1.0, shape=self._size) if self.gamma is None else self.gamma
        beta = constant(0.0, shape=self._size) if self.beta is None else self.beta
        shared: dict[str, Any] = {"epsilon": self._epsilon, "data_format": self._data_format}

        def of_batch() -> Any:
            return normalization_api.fused_batch_norm(inputs, gamma, beta, **shared)

        def of_averages() -> Any:
            return normalization_api.fused_batch_norm(
                inputs, gamma, beta, self.mean, self.variance, is_training=False, **shared
            )

        outputs, mean, variance = utils.smart_cond(self._training, of_batch, of_averages)
        if self._may_train:
            [outputs] = self._updated(mean, variance, [outputs])
        outputs.set_shape(inputs.shape)
        if original is not inputs:
            outputs = api.reshape(outputs, api.shape(original))
            outputs.set_shape(original.shape)
        return outputs

    def plain(self, inputs: Tensor, batch_weights: Any) -> Any:
        """By single ops."""
        rank = inputs.shape.rank
        assert rank is not None
        mean, variance = self.mean.value(), self.variance.value()
        if self._may_train:
            averages = (mean, variance)
            batch = self._moments(inputs, rank, batch_weights)
            if self._collections is None:
                found = utils.smart_cond(
                    self._training,
                    lambda: tuple(self._updated(*batch, list(batch), ask=False)),
                    lambda: averages,
                )
            else:
                self._updated(*batch, [])
                found = utils.smart_cond(self._training, lambda: batch, lambda: averages)
            mean, variance = found
        shape = [1, self._size[0], *[1] * (rank - 2)]

        def broadcast(value: Any) -> Any:
            return api.reshape(value, shape) if self._first and value is not None else value

        outputs = normalization_api.batch_normalization(
            inputs,
            broadcast(mean),
            broadcast(variance),
            broadcast(self.beta),
            broadcast(self.gamma),
            self._epsilon,
        )
        outputs.set_shape(inputs.shape)
        return outputs

    def _moments(self, inputs: Tensor, rank: int, batch_weights: Any) -> tuple[Tensor, Tensor]:
        axes = [0, *range(2, rank)] if self._first else list(range(rank - 1))
        if batch_weights is None:
            return normalization_api.moments(inputs, axes)
        weights = convert_to_tensor(batch_weights)
        inputs.shape[0:1].assert_is_compatible_with(weights.shape)
        weights = api.reshape(weights, [-1, *[1] * (rank - 1)])
        return normalization_api.weighted_moments(inputs, axes, weights)

    def _move(self, mean: Any, variance: Any) -> tuple[Any, Any]:
        return (
            assign_moving_average(self.mean, mean, self._decay, zero_debias=self.zero_debias),
            assign_moving_average(self.variance, variance, self._decay, zero_debias=False),
        )

    def _updated(self, mean: Any, variance: Any, outputs: list[Any], ask: bool = True) -> list[Any]:
        """Update the averages when training.

        The updates join their collections, or else ``outputs`` wait for them.
        """
        if self._collections is not None:
            updates = utils.smart_cond(
                self._training,
                lambda: self._move(mean, variance),
                lambda: (self.mean.read_value(), self.variance.read_value()),
            )
            for update in updates:
                get_default_graph().add_to_collections(self._collections, update)
            return outputs

        def forced() -> tuple[Any, ...]:
            with control_dependencies(self._move(mean, variance)):
                return tuple(raw.Identity(y) for y in outputs)

        if not ask:
            return list(forced())
        found = utils.smart_cond(self._training, forced, lambda: tuple(outputs))
        return list(found) if isinstance(found, (list, tuple)) else [found]


__all__ = ["NormalizedBatch"]
