"""Normalisation over batches, layers, instances and groups of channels."""

from __future__ import annotations

from typing import Any

from headrace.contrib.framework.arg_scope import add_arg_scope
from headrace.contrib.framework.variables import model_variable
from headrace.contrib.layers import utils
from headrace.contrib.layers.batch_moments import NormalizedBatch
from headrace.graph import dtypes
from headrace.graph.keys import GraphKeys
from headrace.graph.tensor import Tensor
from headrace.layers.arguments import ONES, ZEROS
from headrace.layers.normalization import BatchNormalization
from headrace.ops.array import api
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.nn import normalization_api
from headrace.ops.state.variable_scope import variable_scope

_NO_RENORM = (
    "renorm is not supported with batch_weights, updates_collections or zero_debias_moving_mean"
)


@add_arg_scope
def batch_norm(
    inputs: Any,
    decay: float = 0.999,
    center: bool = True,
    scale: bool = False,
    epsilon: float = 0.001,
    activation_fn: Any = None,
    param_initializers: dict[str, Any] | None = None,
    param_regularizers: dict[str, Any] | None = None,
    updates_collections: Any = GraphKeys.UPDATE_OPS,
    is_training: Any = True,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    batch_weights: Any = None,
    fused: bool | None = None,
    data_format: str = "NHWC",
    zero_debias_moving_mean: bool = False,
    scope: Any = None,
    renorm: bool = False,
    renorm_clipping: dict[str, Any] | None = None,
    renorm_decay: float = 0.99,
    adjustment: Any = None,
) -> Tensor:
    """Inputs with mean 0 and variance 1 over the batch. Ioffe and Szegedy, 2015.

    "Batch Normalization" (arXiv:1502.03167), section 3.

    Args:
        decay: weight of the old value in the moving averages.
        param_initializers, param_regularizers: by "beta", "gamma", "moving_mean" and
            "moving_variance".
        updates_collections: where the updates of the averages go; None makes the outputs wait for
            them.
        is_training: bool or bool tensor: by the batch, or by the averages.
        batch_weights: weights of the examples.
        zero_debias_moving_mean: correct the moving mean for its start at zero.

    Raises:
        ValueError: if the rank or the number of channels is not known, the format is unknown, or
            ``renorm`` is asked for together with what it does not go with.
    """
    _check_format(data_format)
    kinds = (param_initializers or {}, param_regularizers or {})
    rank = convert_to_tensor(inputs).shape.rank
    own = updates_collections == GraphKeys.UPDATE_OPS and not zero_debias_moving_mean
    fusable = batch_weights is None and not renorm and rank in (2, 4) and adjustment is None
    fuse = fused is not False and fusable
    if batch_weights is None and own and not (fuse and rank == 2):
        settings: dict[str, Any] = {
            "axis": 1 if data_format == "NCHW" else -1,
            "momentum": decay,
            "epsilon": epsilon,
            "center": center,
            "scale": scale,
            "trainable": trainable,
            "renorm": renorm,
            "renorm_clipping": renorm_clipping,
            "renorm_momentum": renorm_decay,
            "adjustment": adjustment,
            "fused": fuse,
            **_by_kind(*kinds),
        }
        with utils.layer_scope(scope, "BatchNorm", inputs, reuse) as sc:
            outputs = _layer(inputs, sc, reuse, settings, is_training, variables_collections)
            return _activated(outputs, sc, activation_fn, outputs_collections)
    if renorm:
        raise ValueError(_NO_RENORM)
    batch = NormalizedBatch(decay, epsilon, data_format, is_training, updates_collections)
    batch.zero_debias = zero_debias_moving_mean
    with variable_scope(scope, "BatchNorm", [inputs], reuse=reuse) as sc:
        inputs = convert_to_tensor(inputs)
        dtype = dtypes.float32 if fuse else inputs.dtype.base_dtype
        batch.add_variables(inputs, dtype, (center, scale, trainable), kinds, variables_collections)
        outputs = batch.fused(inputs) if fuse else batch.plain(inputs, batch_weights)
        return _activated(outputs, sc, activation_fn, outputs_collections)


def _check_format(data_format: str) -> None:
    if data_format not in ("NHWC", "NCHW"):
        raise ValueError("data_format has to be either NCHW or NHWC.")


def _activated(outputs: Any, sc: Any, activation_fn: Any, collections: Any) -> Tensor:
    return utils.finished(outputs, sc.name, activation_fn, outputs_collections=collections)


def _by_kind(initializers: dict[str, Any], regularizers: dict[str, Any]) -> dict[str, Any]:
    """Arguments of the layer for each kind of variable."""
    found = {
        f"{kind}_initializer": initializers.get(kind, default)
        for kind, default in (
            ("beta", ZEROS),
            ("gamma", ONES),
            ("moving_mean", ZEROS),
            ("moving_variance", ONES),
        )
    }
    return {**found, **{f"{k}_regularizer": regularizers.get(k) for k in ("beta", "gamma")}}


def _layer(
    inputs: Any, sc: Any, reuse: Any, settings: dict[str, Any], is_training: Any, collections: Any
) -> Tensor:
    """`tf.layers.BatchNormalization` on the inputs; its variables join the collections."""
    layer = BatchNormalization(name=sc.name, _scope=sc, _reuse=reuse, **settings)
    outputs: Tensor = layer.apply(convert_to_tensor(inputs), training=is_training)
    for kind in ("moving_mean", "moving_variance", "beta", "gamma"):
        utils.add_to_collections(getattr(layer, kind), collections, kind)
    return outputs


def _scale_and_offset(
    shape: Any,
    dtype: Any,
    wanted: tuple[bool, bool],
    initializers: dict[str, Any],
    collections: Any,
    trainable: bool,
) -> tuple[Any, Any]:
    """The variables "beta" and "gamma", None for what is not wanted."""

    def variable(name: str, initializer: Any) -> Any:
        return model_variable(
            name,
            shape=shape,
            dtype=dtype,
            initializer=initializers.get(name, initializer),
            collections=utils.get_variable_collections(collections, name),
            trainable=trainable,
        )

    center, scale = wanted
    beta = variable("beta", ZEROS) if center else None
    gamma = variable("gamma", ONES) if scale else None
    return beta, gamma


@add_arg_scope
def layer_norm(
    inputs: Any,
    center: bool = True,
    scale: bool = True,
    activation_fn: Any = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    begin_norm_axis: int = 1,
    begin_params_axis: int = -1,
    scope: Any = None,
) -> Tensor:
    """Each example with mean 0 and variance 1. Ba, Kiros and Hinton, 2016.

    "Layer Normalization" (arXiv:1607.06450), section 3.

    Args:
        begin_norm_axis: the first dimension over which it is normalised.
        begin_params_axis: the first dimension that ``beta`` and ``gamma`` have.

    Raises:
        ValueError: if the rank is not known or too small, or sizes of the variables are not known.
    """
    with variable_scope(scope, "LayerNorm", [inputs], reuse=reuse) as sc:
        inputs = convert_to_tensor(inputs)
        rank = inputs.shape.rank
        if rank is None:
            raise ValueError(f"Inputs {inputs.name} has undefined rank.")
        first = begin_norm_axis + rank if begin_norm_axis < 0 else begin_norm_axis
        if begin_params_axis >= rank or first >= rank:
            raise ValueError(
                f"begin_params_axis ({begin_params_axis}) and begin_norm_axis ({first}) must be < "
                f"rank(inputs) ({rank})"
            )
        shape = inputs.shape.as_list()[begin_params_axis:]
        if None in shape:
            raise ValueError(
                f"Inputs {inputs.name}: shape(inputs)[{begin_params_axis}:] is not fully defined: "
                f"{inputs.shape}"
            )
        dtype = inputs.dtype.base_dtype
        beta, gamma = _scale_and_offset(
            shape, dtype, (center, scale), {}, variables_collections, trainable
        )
        mean, variance = normalization_api.moments(inputs, list(range(first, rank)), keep_dims=True)
        epsilon = 1e-3 if dtype is dtypes.float16 else 1e-12
        outputs = normalization_api.batch_normalization(
            inputs, mean, variance, beta, gamma, epsilon
        )
        outputs.set_shape(inputs.shape)
        return utils.finished(
            outputs, sc.name, activation_fn, outputs_collections=outputs_collections
        )


@add_arg_scope
def instance_norm(
    inputs: Any,
    center: bool = True,
    scale: bool = True,
    epsilon: float = 1e-6,
    activation_fn: Any = None,
    param_initializers: dict[str, Any] | None = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    data_format: str = "NHWC",
    scope: Any = None,
) -> Tensor:
    """Each channel of each image with mean 0 and variance 1. Ulyanov et al., 2016.

    "Instance Normalization: The Missing Ingredient for Fast Stylization" (arXiv:1607.08022),
    section 2.

    Raises:
        ValueError: if the rank or the number of channels is not known, or the format is unknown.
    """
    if data_format not in ("NHWC", "NCHW"):
        raise ValueError("data_format has to be either NCHW or NHWC.")
    inputs = convert_to_tensor(inputs)
    rank = inputs.shape.rank
    if rank is None:
        raise ValueError(f"Inputs {inputs.name} has undefined rank.")
    with variable_scope(scope, "InstanceNorm", [inputs], reuse=reuse) as sc:
        axis = 1 if data_format == "NCHW" else rank - 1
        channels = inputs.shape.as_list()[axis]
        if channels is None:
            raise ValueError(f"Inputs {inputs.name} has undefined channels dimension.")
        beta, gamma = _scale_and_offset(
            [channels],
            inputs.dtype.base_dtype,
            (center, scale),
            param_initializers or {},
            variables_collections,
            trainable,
        )
        if data_format == "NCHW":
            sizes = [1, channels, *[1] * (rank - 2)]
            beta = None if beta is None else api.reshape(beta, sizes)
            gamma = None if gamma is None else api.reshape(gamma, sizes)
        axes = [i for i in range(1, rank) if i != axis]
        mean, variance = normalization_api.moments(inputs, axes, keep_dims=True)
        outputs = normalization_api.batch_normalization(
            inputs, mean, variance, beta, gamma, epsilon, name="instancenorm"
        )
        return utils.finished(
            outputs, sc.name, activation_fn, outputs_collections=outputs_collections
        )


@add_arg_scope
def group_norm(
    inputs: Any,
    groups: int = 32,
    channels_axis: int = -1,
    reduction_axes: Any = (-3, -2),
    center: bool = True,
    scale: bool = True,
    epsilon: float = 1e-6,
    activation_fn: Any = None,
    param_initializers: dict[str, Any] | None = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
    mean_close_to_zero: bool = False,
) -> Tensor:
    """Each group of channels of each image with mean 0 and variance 1; the shape stays.

    Wu and He, "Group Normalization", 2018 (arXiv:1803.08494), section 3.1.

    Args:
        groups: into how many groups the channels are cut.
        reduction_axes: the dimensions, beside the channels, over which it is normalised.
        mean_close_to_zero: compute the moments in one pass.

    Raises:
        ValueError: if rank or sizes along the axes are not known, an axis does not exist or is
            named twice, or groups are not of equal size.
    """
    inputs = convert_to_tensor(inputs)
    axis, axes, channels = _group_axes(inputs, groups, channels_axis, reduction_axes)
    original = api.shape(inputs)
    static: list[Any] = inputs.shape.as_list()
    sizes = [original[i] if size is None else size for i, size in enumerate(static)]
    split = [groups, channels // groups]
    grouped = api.reshape(inputs, [*sizes[:axis], *split, *sizes[axis + 1 :]])
    moments_axes = [axis + 1, *(a + 1 if a > axis else a for a in axes)]
    with variable_scope(scope, "GroupNorm", [inputs], reuse=reuse) as sc:
        parameters = _scale_and_offset(
            [channels],
            inputs.dtype.base_dtype,
            (center, scale),
            param_initializers or {},
            variables_collections,
            trainable,
        )
        shape = [*[1] * axis, *split, *[1] * (len(static) - axis - 1)]
        beta, gamma = (None if p is None else api.reshape(p, shape) for p in parameters)
        mean, variance = _moments(grouped, moments_axes, mean_close_to_zero)
        gain = raw.Rsqrt(variance + epsilon)
        offset = -mean * gain
        if gamma is not None:
            gain, offset = gain * gamma, offset * gamma
        if beta is not None:
            offset = offset + beta
        outputs = api.reshape(grouped * gain + offset, sizes)
        outputs.set_shape(inputs.shape)
        return utils.finished(
            outputs, sc.name, activation_fn, outputs_collections=outputs_collections
        )


def _group_axes(
    inputs: Tensor, groups: int, channels_axis: int, reduction_axes: Any
) -> tuple[int, list[int], int]:
    """The axes counted from 0, and the number of channels."""
    rank = inputs.shape.rank
    if rank is None:
        raise ValueError(f"Inputs {inputs.name} has undefined rank.")
    axis = channels_axis + rank if channels_axis < 0 else channels_axis
    axes = [a + rank if a < 0 else a for a in reduction_axes]
    if not 0 <= axis < rank or not all(0 <= a < rank for a in axes):
        raise ValueError("Axis is out of bounds.")
    if axis in axes:
        raise ValueError("reduction_axis must be mutually exclusive with channels_axis")
    dims = inputs.shape.as_list()
    channels = dims[axis]
    for a in (axis, *axes):
        if dims[a] is None:
            raise ValueError(f"Inputs {inputs.name} has undefined dimension {a}.")
    assert channels is not None
    if groups > channels:
        raise ValueError(f"Invalid groups {groups} for {channels} channels.")
    if channels % groups:
        raise ValueError(f"{channels} channels is not commensurate with {groups} groups.")
    return axis, axes, channels


def _moments(x: Tensor, axes: list[int], one_pass: bool) -> tuple[Tensor, Tensor]:
    if not one_pass:
        return normalization_api.moments(x, axes, keep_dims=True)
    count, mean_ss, variance_ss, _ = normalization_api.sufficient_statistics(
        x, axes, keep_dims=True
    )
    return normalization_api.normalize_moments(count, mean_ss, variance_ss, None)


__all__ = ["batch_norm", "group_norm", "instance_norm", "layer_norm"]
