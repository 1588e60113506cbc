"""Batch normalisation."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from headrace.graph import dtypes
from headrace.graph.dtypes import DType
from headrace.graph.shapes import TensorShape
from headrace.graph.tensor import Operation, Tensor
from headrace.layers import arguments
from headrace.layers.arguments import known, smart_cond
from headrace.layers.base import InputSpec, Layer
from headrace.ops.array import api, joining_api
from headrace.ops.control.basic import group
from headrace.ops.core.build import constant, convert_to_tensor, raw
from headrace.ops.math.cast import cast
from headrace.ops.math.reduction_api import reduce_mean
from headrace.ops.nn import normalization_api
from headrace.ops.state.scopes_api import control_dependencies, name_scope
from headrace.ops.state.variable_kinds import VariableAggregation, VariableSynchronization

_LOW = (dtypes.float16, dtypes.bfloat16)


class BatchNormalization(Layer):
    """Inputs with mean 0 and variance 1 over the batch, then scaled and shifted.

    In training it normalises by the statistics of the batch and adds updates of their moving
    averages to the collection ``UPDATE_OPS``: run them with the training step. Else it normalises
    by the moving averages. Ioffe and Szegedy, "Batch normalization" (2015), algorithms 1 and 2;
    ``renorm``: Ioffe, "Batch renormalization" (2017).

    Args:
        axis: dimension (or list of them) with statistics of its own; usually the channels.
        momentum: weight of the old value in the moving averages.
        center, scale: whether ``beta`` is added, and ``gamma`` multiplied.
        renorm: correct the batch's statistics by moving averages of their own.
        renorm_clipping: limits ``rmax``, ``rmin`` and ``dmax`` of the correction.
        fused: use one op for it where that is possible (rank 4, ``axis`` 1 or 3); False never.
        virtual_batch_size: normalise each run of so many examples by itself.
        adjustment: function of the input's shape (a tensor) that gives a scale and a bias for
            training.

    Raises:
        TypeError: if ``axis`` is neither an int nor a list.
        ValueError: if arguments contradict each other, or sizes along ``axis`` are not known.

    >>> layer = tf.layers.BatchNormalization(epsilon=0.0)
    >>> y = layer(tf.constant([[1.0], [3.0]]), training=True)
    >>> with tf.Session() as sess:
    ...     sess.run(tf.global_variables_initializer())
    ...     sess.run(y).tolist()
    [[-1.0], [1.0]]
    >>> len(layer.updates)  # of the moving mean and variance: run them beside each training step
    2
    """

    def __init__(
        self,
        axis: Any = -1,
        momentum: float = 0.99,
        epsilon: float = 1e-3,
        center: bool = True,
        scale: bool = True,
        beta_initializer: Any = arguments.ZEROS,
        gamma_initializer: Any = arguments.ONES,
        moving_mean_initializer: Any = arguments.ZEROS,
        moving_variance_initializer: Any = arguments.ONES,
        beta_regularizer: Any = None,
        gamma_regularizer: Any = None,
        beta_constraint: Any = None,
        gamma_constraint: Any = None,
        renorm: bool = False,
        renorm_clipping: dict[str, Any] | None = None,
        renorm_momentum: float = 0.99,
        fused: bool | None = None,
        trainable: bool = True,
        virtual_batch_size: int | None = None,
        adjustment: Any = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(trainable=trainable, name=name, **kwargs)
        if not isinstance(axis, (int, list, tuple)):
            raise TypeError(f"axis must be int or list, type given: {type(axis)}")
        self.axis: Any = axis if isinstance(axis, int) else list(axis)
        self.momentum = momentum
        self.epsilon = epsilon
        self.center = center
        self.scale = scale
        self.beta_initializer = arguments.initializer(beta_initializer)
        self.gamma_initializer = arguments.initializer(gamma_initializer)
        self.moving_mean_initializer = arguments.initializer(moving_mean_initializer)
        self.moving_variance_initializer = arguments.initializer(moving_variance_initializer)
        self.beta_regularizer = arguments.regularizer(beta_regularizer)
        self.gamma_regularizer = arguments.regularizer(gamma_regularizer)
        self.beta_constraint = beta_constraint
        self.gamma_constraint = gamma_constraint
        self.renorm = renorm
        self.renorm_clipping = renorm_clipping or {}
        self.renorm_momentum = renorm_momentum
        self.fused = fused
        self.virtual_batch_size = virtual_batch_size
        self.adjustment = adjustment
        unknown = set(self.renorm_clipping) - {"rmax", "rmin", "dmax"}
        if unknown:
            raise ValueError(
                f"renorm_clipping {renorm_clipping} contains keys not in ['rmax', 'rmin', 'dmax']"
            )

    # -- variables --------------------------------------------------------------------------

    def build(self, input_shape: Any) -> None:
        shape = TensorShape(input_shape)
        if not shape.rank:
            raise ValueError(f"Input has undefined rank: {shape}")
        axes = self._positive_axes(shape.rank)
        self._check_virtual_batch(axes)
        self.axis = axes
        self.fused = self._can_fuse(shape.rank)
        dims = shape.as_list()
        sizes = {a: dims[a] for a in axes}
        if None in sizes.values():
            raise ValueError(f"Input has undefined `axis` dimension. Input shape: {shape}")
        self.input_spec = InputSpec(ndim=shape.rank, axes=sizes)
        if len(axes) == 1 and self.virtual_batch_size is None:
            parameters = [sizes[axes[0]]]
        else:
            parameters = [sizes.get(i, 1) for i in range(shape.rank)]
        if self.virtual_batch_size is not None:
            parameters.insert(1, 1)
            self.axis = [a + 1 for a in axes]  # the dimension of virtual batches comes second
        self._add_parameters(parameters)
        self._add_averages(parameters)
        self.built = True

    def _positive_axes(self, rank: int) -> list[int]:
        given = [self.axis] if isinstance(self.axis, int) else self.axis
        axes = [a + rank if a < 0 else a for a in given]
        for a in axes:
            if not 0 <= a < rank:
                raise ValueError(f"Invalid axis: {a}")
        if len(axes) != len(set(axes)):
            raise ValueError(f"Duplicate axis: {axes}")
        return axes

    def _check_virtual_batch(self, axes: list[int]) -> None:
        if self.virtual_batch_size is None:
            return
        if self.virtual_batch_size <= 0:
            raise ValueError(
                "virtual_batch_size must be a positive integer that divides the true batch size "
                "of the input Tensor"
            )
        if 0 in axes:
            raise ValueError(
                "When using virtual_batch_size, the batch dimension must be 0 and thus axis cannot "
                "include 0"
            )
        if self.adjustment is not None:
            raise ValueError("When using virtual_batch_size, adjustment cannot be specified")

    def _can_fuse(self, rank: int) -> bool:
        special = self.renorm or self.virtual_batch_size is not None or self.adjustment is not None
        return (
            self.fused is not False
            and rank == 4
            and self.axis in ([1], [3])
            and not special
            and self.dtype != "float64"
        )

    @property
    def _param_dtype(self) -> DType:
        """16-bit inputs have 32-bit statistics."""
        dtype = dtypes.as_dtype(self.dtype or dtypes.float32)
        return dtypes.float32 if dtype in _LOW else dtype

    def _add_parameters(self, shape: list[Any]) -> None:
        self.gamma = self.beta = None
        if self.scale:
            self.gamma = self.add_weight(
                "gamma",
                shape=shape,
                dtype=self._param_dtype,
                initializer=self.gamma_initializer,
                regularizer=self.gamma_regularizer,
                constraint=self.gamma_constraint,
            )
        if self.center:
            self.beta = self.add_weight(
                "beta",
                shape=shape,
                dtype=self._param_dtype,
                initializer=self.beta_initializer,
                regularizer=self.beta_regularizer,
                constraint=self.beta_constraint,
            )

    def _add_averages(self, shape: list[Any]) -> None:
        def stddev(*args: Any, **kwargs: Any) -> Any:
            return raw.Sqrt(self.moving_variance_initializer(*args, **kwargs))

        with self._unpartitioned():
            self.moving_mean = self._average("moving_mean", shape, self.moving_mean_initializer)
            self.moving_variance = self._average(
                "moving_variance", shape, self.moving_variance_initializer
            )
            if self.renorm:
                self.moving_stddev = self._average("moving_stddev", shape, stddev)
                self.renorm_mean = self._average("renorm_mean", shape, self.moving_mean_initializer)
                self.renorm_stddev = self._average("renorm_stddev", shape, stddev)

    def _average(self, name: str, shape: list[Any], initializer: Any) -> Any:
        return self.add_weight(
            name,
            shape=shape,
            dtype=self._param_dtype,
            initializer=initializer,
            trainable=False,
            synchronization=VariableSynchronization.ON_READ,
            aggregation=VariableAggregation.MEAN,
        )

    @contextlib.contextmanager
    def _unpartitioned(self) -> Iterator[None]:
        scope = self._scope
        assert scope is not None
        partitioner = scope.partitioner
        scope.set_partitioner(None)
        try:
            yield
        finally:
            scope.set_partitioner(partitioner)

    # -- computing --------------------------------------------------------------------------

    def call(self, inputs: Any, training: Any = False) -> Any:
        training = False if training is None else training
        if self.fused:
            return self._fused_call(inputs, training)
        if self.virtual_batch_size is None:
            return self._plain_call(inputs, training)
        original = api.shape(inputs)
        sizes = inputs.shape.as_list()
        batches = api.reshape(
            inputs, joining_api.concat([[self.virtual_batch_size, -1], original[1:]], 0)
        )
        batches.set_shape([self.virtual_batch_size, None, *sizes[1:]])
        outputs = api.reshape(self._plain_call(batches, training), original)
        outputs.set_shape(sizes)
        return outputs

    def _fused_call(self, inputs: Any, training: Any) -> Any:
        size = self.moving_mean.shape.as_list()
        dtype = self._param_dtype
        gamma = constant(1.0, dtype, size) if self.gamma is None else self.gamma
        beta = constant(0.0, dtype, size) if self.beta is None else self.beta
        data_format = "NCHW" if self.axis == [1] else "NHWC"

        def of_batch() -> Any:
            return normalization_api.fused_batch_norm(
                inputs, gamma, beta, epsilon=self.epsilon, data_format=data_format
            )

        def of_averages() -> Any:
            return normalization_api.fused_batch_norm(
                inputs,
                gamma,
                beta,
                mean=self.moving_mean,
                variance=self.moving_variance,
                epsilon=self.epsilon,
                is_training=False,
                data_format=data_format,
            )

        outputs, mean, variance = smart_cond(training, of_batch, of_averages)
        if known(training) is not False:
            decay = 1.0 - convert_to_tensor(self._momentum(training, self.momentum))
            self.add_update(self._move(self.moving_mean, mean, decay))
            self.add_update(self._move(self.moving_variance, variance, decay))
        return outputs

    def _momentum(self, training: Any, momentum: float) -> Any:
        """1 outside training: averages stay as they are."""
        return smart_cond(training, lambda: constant(momentum), lambda: constant(1.0))

    def _move(self, average: Any, value: Any, decay: Any) -> Operation:
        """Move a moving average towards ``value``."""
        with name_scope("AssignMovingAvg") as scope:
            rate = cast(convert_to_tensor(decay), average.dtype)
            delta = (average - cast(value, average.dtype)) * rate
            update: Operation = average.assign_sub(delta, name=scope, read_value=False)
            return update

    def _plain_call(self, inputs: Any, training: Any) -> Any:
        rank = inputs.shape.rank
        virtual = self.virtual_batch_size is not None
        others = [i for i in range(rank) if i not in self.axis]
        if virtual:
            del others[1]
        scale, offset = self._broadcast(self.gamma, inputs), self._broadcast(self.beta, inputs)
        mean, variance = self.moving_mean, self.moving_variance
        if known(training) is not False:
            scale, offset = self._adjusted(inputs, training, scale, offset)
            keep = virtual or len(self.axis) > 1
            wide = cast(inputs, self._param_dtype)
            of_batch = normalization_api.moments(wide, others, keep_dims=keep)
            averages = (self.moving_mean.value(), self.moving_variance.value())
            mean, variance = smart_cond(training, lambda: tuple(of_batch), lambda: averages)
            new_mean, new_variance = mean, variance
            if virtual:
                new_mean = reduce_mean(mean, axis=1, keepdims=True)
                new_variance = reduce_mean(variance, axis=1, keepdims=True)
            if self.renorm:
                r, d, new_mean, new_variance = self._renormalized(new_mean, new_variance, training)
                r, d = self._broadcast(r, inputs), self._broadcast(d, inputs)
                scale, offset = _composed(r, d, scale, offset)
            self._update_averages(new_mean, new_variance, training)
        outputs = normalization_api.batch_normalization(
            inputs,
            self._broadcast(cast(mean, inputs.dtype), inputs),
            self._broadcast(cast(variance, inputs.dtype), inputs),
            None if offset is None else cast(offset, inputs.dtype),
            None if scale is None else cast(scale, inputs.dtype),
            self.epsilon,
        )
        outputs.set_shape(inputs.shape)
        return outputs

    def _broadcast(self, value: Any, inputs: Any) -> Any:
        """A vector in the rank of the inputs, unless it belongs to the last dimension."""
        rank = inputs.shape.rank
        if value is None or value.shape.rank == rank or self.axis == [rank - 1]:
            return value
        sizes = [1] * rank
        sizes[self.axis[0]] = inputs.shape.as_list()[self.axis[0]]
        return api.reshape(value, sizes)

    def _adjusted(self, inputs: Any, training: Any, scale: Any, offset: Any) -> tuple[Any, Any]:
        if self.adjustment is None:
            return scale, offset
        by, plus = self.adjustment(api.shape(inputs))
        by = smart_cond(training, lambda: by, lambda: raw.OnesLike(by))
        plus = smart_cond(training, lambda: plus, lambda: raw.ZerosLike(plus))
        return _composed(by, plus, scale, offset)

    def _update_averages(self, mean: Any, variance: Any, training: Any) -> None:
        decay = 1.0 - self.momentum
        self.add_update(self._move(self.moving_mean, mean, decay))
        if not self.renorm:
            self.add_update(self._move(self.moving_variance, variance, decay))
            return
        kept = 1.0 - self._momentum(training, self.momentum)
        moved = self._move(self.moving_stddev, raw.Sqrt(variance + self.epsilon), kept)
        with control_dependencies([moved]):
            stddev = self.moving_stddev.value()
            old = self.moving_variance.value()
            new = raw.Relu(stddev * stddev - self.epsilon)
            value = smart_cond(training, lambda: new, lambda: old)
            with name_scope("AssignNewValue") as scope:
                assigned = self.moving_variance.assign(value, name=scope, read_value=False)
        self.add_update(assigned)

    def _renormalized(self, mean: Any, variance: Any, training: Any) -> tuple[Any, ...]:
        """The correction ``r``, ``d`` of batch renormalisation, and the moments to average."""
        stddev = raw.Sqrt(variance + self.epsilon)
        floor = convert_to_tensor(self.epsilon**0.5, self._param_dtype)
        renorm_mean = self.renorm_mean.value()
        renorm_stddev = raw.Maximum(self.renorm_stddev.value(), floor)
        r = stddev / renorm_stddev
        d = (mean - renorm_mean) / renorm_stddev
        with control_dependencies([r, d]):  # they take the averages as they were before the step
            mean, stddev = raw.Identity(mean), raw.Identity(stddev)
        limits = self.renorm_clipping
        r_raw, d_raw = r, d
        if limits.get("rmin") is not None:
            r_raw = raw.Maximum(r_raw, cast(limits["rmin"], r.dtype))
        if limits.get("rmax") is not None:
            r_raw = raw.Minimum(r_raw, cast(limits["rmax"], r.dtype))
        if limits.get("dmax") is not None:
            most = cast(limits["dmax"], d.dtype)
            d_raw = raw.Minimum(raw.Maximum(d_raw, -most), most)
        r = smart_cond(training, lambda: r_raw, lambda: raw.OnesLike(r_raw))
        d = smart_cond(training, lambda: d_raw, lambda: raw.ZerosLike(d_raw))
        decay = 1.0 - self._momentum(training, self.renorm_momentum)
        moved = group(
            self._move(self.renorm_mean, mean, decay),
            self._move(self.renorm_stddev, stddev, decay),
        )
        with control_dependencies([moved]):
            mean, variance = raw.Identity(mean), raw.Identity(variance)
        return raw.StopGradient(r), raw.StopGradient(d), mean, variance

    def compute_output_shape(self, input_shape: Any) -> TensorShape:
        return TensorShape(input_shape)


def _composed(scale: Any, offset: Any, then_scale: Any, then_offset: Any) -> tuple[Any, Any]:
    """Two scalings with offsets, one after the other, as one."""
    if then_scale is not None:
        scale, offset = scale * then_scale, offset * then_scale
    if then_offset is not None:
        offset = offset + then_offset
    return scale, offset


def batch_normalization(
    inputs: Any,
    axis: Any = -1,
    momentum: float = 0.99,
    epsilon: float = 1e-3,
    center: bool = True,
    scale: bool = True,
    beta_initializer: Any = arguments.ZEROS,
    gamma_initializer: Any = arguments.ONES,
    moving_mean_initializer: Any = arguments.ZEROS,
    moving_variance_initializer: Any = arguments.ONES,
    beta_regularizer: Any = None,
    gamma_regularizer: Any = None,
    beta_constraint: Any = None,
    gamma_constraint: Any = None,
    training: Any = False,
    trainable: bool = True,
    name: str | None = None,
    reuse: bool | None = None,
    renorm: bool = False,
    renorm_clipping: dict[str, Any] | None = None,
    renorm_momentum: float = 0.99,
    fused: bool | None = None,
    virtual_batch_size: int | None = None,
    adjustment: Any = None,
) -> Tensor:
    """`BatchNormalization`, made and called on ``inputs``.

    Ioffe and Szegedy, "Batch normalization" (2015), algorithms 1 and 2; ``renorm``: Ioffe, "Batch
    renormalization" (2017).

    Args:
        inputs: floats of any shape of known rank, which the result has; the size of ``axis`` is
            known.
        axis: what is not averaged over, the channels as a rule.
        training: a bool or a bool scalar tensor: whether to use the moments of the batch. The
            updates of the moving averages are in the collection ``UPDATE_OPS``: the training step
            must depend on them.

    Raises:
        ValueError: if the rank or the size of ``axis`` is unknown, or arguments contradict.
        TypeError: if inputs are no floats.
    """
    layer = BatchNormalization(
        axis=axis,
        momentum=momentum,
        epsilon=epsilon,
        center=center,
        scale=scale,
        beta_initializer=beta_initializer,
        gamma_initializer=gamma_initializer,
        moving_mean_initializer=moving_mean_initializer,
        moving_variance_initializer=moving_variance_initializer,
        beta_regularizer=beta_regularizer,
        gamma_regularizer=gamma_regularizer,
        beta_constraint=beta_constraint,
        gamma_constraint=gamma_constraint,
        renorm=renorm,
        renorm_clipping=renorm_clipping,
        renorm_momentum=renorm_momentum,
        fused=fused,
        trainable=trainable,
        virtual_batch_size=virtual_batch_size,
        adjustment=adjustment,
        name=name,
        _reuse=reuse,
        _scope=name,
    )
    normalized: Tensor = layer.apply(inputs, training=training)
    return normalized


__all__ = ["BatchNormalization", "batch_normalization"]
