"""Fully connected layers, and small layers without weights."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from headrace.autodiff.custom import custom_gradient
from headrace.contrib.framework.arg_scope import add_arg_scope
from headrace.contrib.framework.variables import model_variable
from headrace.contrib.layers import utils
from headrace.contrib.layers.initializers import XAVIER
from headrace.graph import dtypes
from headrace.graph.graph import get_default_graph
from headrace.graph.keys import GraphKeys
from headrace.graph.tensor import Tensor
from headrace.layers import core as core_layers
from headrace.layers.arguments import ZEROS
from headrace.ops.array import api, joining_api, layout_api
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.math.cast import cast
from headrace.ops.math.matmul import matmul
from headrace.ops.math.reduction_api import reduce_max
from headrace.ops.nn import activations
from headrace.ops.nn import softmax as softmax_ops
from headrace.ops.state.scopes_api import name_scope
from headrace.ops.state.variable_scope import get_variable, variable_scope

_RENAMED = {"bias": "biases", "kernel": "weights"}


@add_arg_scope
def fully_connected(
    inputs: Any,
    num_outputs: int,
    activation_fn: Any = activations.relu,
    normalizer_fn: Any = None,
    normalizer_params: Any = None,
    weights_initializer: Any = XAVIER,
    weights_regularizer: Any = None,
    biases_initializer: Any = ZEROS,
    biases_regularizer: Any = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
) -> Tensor:
    """``activation_fn(inputs @ weights + biases)`` over the last dimension.

    ``[..., size]`` becomes ``[..., num_outputs]``, with weights ``[size, num_outputs]``.

    Args:
        normalizer_fn: takes the place of the biases, with ``normalizer_params`` as arguments.
        variables_collections: collections of all variables, or a dictionary of them by
            "weights" and "biases".

    Raises:
        TypeError: if the inputs are not of a floating type.
        ValueError: if ``num_outputs`` is no integer or negative, the rank is less than 2, or the
            last dimension is not known.
    """
    if not isinstance(num_outputs, int):
        raise ValueError(f"num_outputs type should be int, got {type(num_outputs)}.")
    with utils.layer_scope(scope, "fully_connected", inputs, reuse, _RENAMED) as sc:
        inputs = convert_to_tensor(inputs)
        layer = core_layers.Dense(
            units=num_outputs,
            use_bias=not normalizer_fn and biases_initializer is not None,
            kernel_initializer=weights_initializer,
            bias_initializer=biases_initializer,
            kernel_regularizer=weights_regularizer,
            bias_regularizer=biases_regularizer,
            trainable=trainable,
            name=sc.name,
            dtype=inputs.dtype.base_dtype,
            _scope=sc,
            _reuse=reuse,
        )
        outputs = layer.apply(inputs)
        utils.add_to_collections(layer.kernel, variables_collections, "weights")
        utils.add_to_collections(layer.bias, variables_collections, "biases")
        return utils.finished(
            outputs, sc.name, activation_fn, normalizer_fn, normalizer_params, outputs_collections
        )


elu = functools.partial(fully_connected, activation_fn=activations.elu)
relu = functools.partial(fully_connected, activation_fn=activations.relu)
relu6 = functools.partial(fully_connected, activation_fn=activations.relu6)
linear = functools.partial(fully_connected, activation_fn=None)


def legacy_fully_connected(
    x: Any,
    num_output_units: int,
    activation_fn: Any = None,
    weight_init: Any = XAVIER,
    bias_init: Any = ZEROS,
    name: str | None = None,
    weight_collections: Any = (GraphKeys.WEIGHTS,),
    bias_collections: Any = (GraphKeys.BIASES,),
    output_collections: Any = (GraphKeys.ACTIVATIONS,),
    trainable: bool = True,
    weight_regularizer: Any = None,
    bias_regularizer: Any = None,
) -> Tensor:
    """`fully_connected` of release 0.x: variables "weights" and "bias", no normalisation.

    Raises:
        ValueError: if ``x`` has rank less than 2, or its last dimension is not known.
    """
    with variable_scope(name, "fully_connected", [x]):
        x = convert_to_tensor(x)
        depth = utils.last_dimension(x.shape, min_rank=2)
        weights = get_variable(
            "weights",
            shape=[depth, num_output_units],
            dtype=x.dtype,
            initializer=weight_init,
            collections=[*(weight_collections or ()), GraphKeys.GLOBAL_VARIABLES],
            regularizer=weight_regularizer,
            trainable=trainable,
        )
        rows = x if x.shape.rank == 2 else api.reshape(x, [-1, depth])
        y = matmul(rows, weights)
        if bias_init is not None:
            bias = get_variable(
                "bias",
                shape=[num_output_units],
                dtype=x.dtype,
                initializer=bias_init,
                collections=[*(bias_collections or ()), GraphKeys.GLOBAL_VARIABLES],
                regularizer=bias_regularizer,
                trainable=trainable,
            )
            y = activations.bias_add(y, bias)
        if x.shape.rank != 2:
            sizes = joining_api.concat([api.shape(x)[:-1], [num_output_units]], 0)
            y = api.reshape(y, sizes)
            y.set_shape([*x.shape.as_list()[:-1], num_output_units])
        if activation_fn is not None:
            y = activation_fn(y)
        keys = [*(output_collections or ()), GraphKeys.ACTIVATIONS]
        get_default_graph().add_to_collections(keys, y)
        return y


legacy_relu = functools.partial(legacy_fully_connected, activation_fn=activations.relu)
legacy_linear = functools.partial(legacy_fully_connected, activation_fn=None)


@add_arg_scope
def bias_add(
    inputs: Any,
    activation_fn: Any = None,
    initializer: Any = ZEROS,
    regularizer: Any = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    data_format: str = "NHWC",
    scope: Any = None,
) -> Tensor:
    """``activation_fn(inputs + biases)``, a bias for each channel; the shape stays.

    Raises:
        ValueError: if the format is unknown, the rank is less than 2 (for "NCHW": not 4), or the
            number of channels is not known.
    """
    if data_format not in ("NHWC", "NCHW"):
        raise ValueError("data_format has to be either NCHW or NHWC.")
    with variable_scope(scope, "BiasAdd", [inputs], reuse=reuse) as sc:
        inputs = convert_to_tensor(inputs)
        if data_format == "NCHW" and inputs.shape.rank != 4:
            raise ValueError("Data format NCHW only supports 4D Tensor")
        where = "channels_first" if data_format == "NCHW" else "channels_last"
        biases = model_variable(
            "biases",
            shape=[utils.channel_dimension(inputs.shape, where)],
            dtype=inputs.dtype.base_dtype,
            initializer=initializer,
            regularizer=regularizer,
            collections=utils.get_variable_collections(variables_collections, "biases"),
            trainable=trainable,
        )
        outputs = activations.bias_add(inputs, biases, data_format=data_format)
        return utils.finished(
            outputs, sc.name, activation_fn, outputs_collections=outputs_collections
        )


@add_arg_scope
def dropout(
    inputs: Any,
    keep_prob: Any = 0.5,
    noise_shape: Any = None,
    is_training: Any = True,
    outputs_collections: Any = None,
    scope: Any = None,
    seed: int | None = None,
) -> Tensor:
    """Keeps a random part ``keep_prob`` of the inputs, scaled up, when training. The shape stays.

    Args:
        noise_shape: of the random choices, which is repeated along dimensions of 1.

    Srivastava et al., "Dropout", JMLR 15, 2014, section 4.

    Raises:
        ValueError: if ``keep_prob`` is a number outside of (0, 1], the inputs are not of a floating
            type, or ``noise_shape`` does not fit.
    """
    with utils.layer_scope(scope, "Dropout", inputs) as sc:
        layer = core_layers.Dropout(
            rate=1 - keep_prob, noise_shape=noise_shape, seed=seed, name=sc.name, _scope=sc
        )
        outputs: Tensor = layer.apply(convert_to_tensor(inputs), training=is_training)
        return utils.collect_named_outputs(outputs_collections, sc.name, outputs)


@add_arg_scope
def flatten(inputs: Any, outputs_collections: Any = None, scope: Any = None) -> Tensor:
    """``[batch, ...]`` as ``[batch, elements]``.

    Raises:
        ValueError: if the rank is 0 or not known.
    """
    with name_scope(scope, "Flatten", [inputs]) as sc:
        outputs = core_layers.flatten(convert_to_tensor(inputs))
        return utils.collect_named_outputs(outputs_collections, sc, outputs)


@add_arg_scope
def one_hot_encoding(
    labels: Any,
    num_classes: Any,
    on_value: Any = 1.0,
    off_value: Any = 0.0,
    outputs_collections: Any = None,
    scope: Any = None,
) -> Tensor:
    """``tf.one_hot`` of class numbers: a shape ``[...]`` of them becomes ``[..., num_classes]``.

    The type is that of ``on_value`` and ``off_value``, float32 if left out.

    Raises:
        TypeError: if the class numbers are not of an integer type, or the two values of two types.
        ValueError: if ``num_classes`` is negative.
    """
    with name_scope(scope, "OneHotEncoding", [labels, num_classes]) as sc:
        labels = convert_to_tensor(labels)
        if labels.dtype is dtypes.int32:
            labels = cast(labels, dtypes.int64)
        outputs = layout_api.one_hot(labels, num_classes, on_value=on_value, off_value=off_value)
        return utils.collect_named_outputs(outputs_collections, sc, outputs)


@add_arg_scope
def softmax(logits: Any, scope: Any = None) -> Tensor:
    """Softmax over the last dimension; the shape stays.

    Raises:
        TypeError: if the logits are not of a floating type.
        ValueError: if the rank is less than 2, or the size of the last dimension is not known.
    """
    with variable_scope(scope, "softmax", [logits]):
        logits = convert_to_tensor(logits)
        depth = utils.last_dimension(logits.shape, min_rank=2)
        rows = softmax_ops.softmax(api.reshape(logits, [-1, depth]))
        predictions = api.reshape(rows, api.shape(logits))
        predictions.set_shape(logits.shape)
        return predictions


@add_arg_scope
def unit_norm(inputs: Any, dim: int, epsilon: float = 1e-7, scope: Any = None) -> Tensor:
    """``inputs`` with length 1 along ``dim``; the shape stays.

    ``epsilon`` is added to squared lengths.

    Raises:
        TypeError: if the inputs are integers.
        ValueError: if there is no such dimension (counted from 0), or the rank is not known.
    """
    with variable_scope(scope, "UnitNorm", [inputs]):
        inputs = convert_to_tensor(inputs)
        if inputs.shape.rank is None:
            raise ValueError("The input rank must be known.")
        if not 0 <= dim < inputs.shape.rank:
            raise ValueError("dim must be positive but smaller than the input rank.")
        squares = raw.Sum(raw.Square(inputs), [dim], keep_dims=True)
        return raw.RealDiv(inputs, raw.Sqrt(epsilon + squares))


def _sized_axis(inputs: Tensor, axis: int) -> int:
    """The size of ``inputs`` along ``axis``. Raises ValueError if it is not known."""
    rank = inputs.shape.rank
    size = None if rank is None or not -rank <= axis < rank else inputs.shape.as_list()[axis]
    if size is None:
        raise ValueError(
            f"The size of the inputs along axis {axis} must be known, but {inputs.name} has shape "
            f"{inputs.shape}. Choose one of its axes, or set its static shape with set_shape."
        )
    return int(size)


@add_arg_scope
def maxout(inputs: Any, num_units: int, axis: int = -1, scope: Any = None) -> Tensor:
    """The maximum of each of ``num_units`` groups of channels.

    The result has the shape of ``inputs``, but for a size of ``num_units`` along ``axis``.
    Goodfellow et al., "Maxout Networks", 2013 (arXiv:1302.4389), section 3.

    Raises:
        ValueError: if the groups are not of equal size, or there is no such axis or its size is not
            known.
    """
    with variable_scope(scope, "MaxOut", [inputs]):
        inputs = convert_to_tensor(inputs)
        channels = _sized_axis(inputs, axis)
        if num_units < 1 or channels % num_units:
            raise ValueError(
                f"number of features({channels}) is not a multiple of num_units({num_units})"
            )
        shape: list[Any] = inputs.shape.as_list()
        shape[axis] = num_units
        sizes = api.shape(inputs)
        known = [sizes[i] if size is None else size for i, size in enumerate(shape)]
        return reduce_max(api.reshape(inputs, [*known, channels // num_units]), -1)


def scale_gradient(inputs: Any, gradient_multiplier: Any) -> Tensor:
    """``inputs``, whose gradient is multiplied by ``gradient_multiplier``. The shape stays.

    Raises:
        ValueError: when a gradient is built, if the multiplier is no number or its shape does not
            fit.
    """

    @custom_gradient
    def scaled(x: Tensor) -> tuple[Tensor, Callable[[Tensor], Any]]:
        def gradient(dy: Tensor) -> Any:
            return dy * cast(gradient_multiplier, dy.dtype)

        return raw.Identity(x), gradient

    result: Tensor = scaled(inputs)
    return result


def _name_of(layer: Any, default: str) -> str:
    if not callable(layer):
        raise TypeError(
            f"`layer` must be a function that makes a layer, such as tf.contrib.layers.conv2d; "
            f"got {layer!r:.100}."
        )
    return str(
        getattr(layer, "__name__", getattr(getattr(layer, "func", None), "__name__", default))
    )


def repeat(
    inputs: Any, repetitions: int, layer: Callable[..., Any], *args: Any, **kwargs: Any
) -> Tensor:
    """A layer after itself, so many times, in scopes ``<scope>_1``, ``<scope>_2`` ....

    The result has the shape that the last one gives; for 0 repetitions it is ``inputs``.

    Raises:
        TypeError: if ``layer`` is no function or ``repetitions`` no integer.
        ValueError: if the layer refuses its inputs.
    """
    scope = kwargs.pop("scope", None)
    default = _name_of(layer, "repeat")
    with variable_scope(scope, "Repeat", [inputs]):
        outputs = convert_to_tensor(inputs)
        name = default if scope is None else scope
        for i in range(repetitions):
            outputs = layer(outputs, *args, **{**kwargs, "scope": f"{name}_{i + 1}"})
        return outputs


def stack(inputs: Any, layer: Callable[..., Any], stack_args: Any, **kwargs: Any) -> Tensor:
    """A layer after itself, each time with the next of ``stack_args`` (an argument or several).

    The result has the shape that the last one gives.

    Raises:
        TypeError: if ``layer`` is no function.
        ValueError: if ``stack_args`` is no list, or the layer refuses its inputs.
    """
    scope = kwargs.pop("scope", None)
    if not isinstance(stack_args, (list, tuple)):
        raise ValueError(f"stack_args need to be a list or tuple, got {stack_args!r:.100}.")
    default = _name_of(layer, "stack")
    with variable_scope(scope, "Stack", [inputs]):
        outputs = convert_to_tensor(inputs)
        name = default if scope is None else scope
        for i, given in enumerate(stack_args):
            arguments = given if isinstance(given, (list, tuple)) else [given]
            outputs = layer(outputs, *arguments, **{**kwargs, "scope": f"{name}_{i + 1}"})
        return outputs


def poincare_normalize(
    x: Any, axis: int = 1, epsilon: float = 1e-5, name: str | None = None
) -> Tensor:
    """Vectors along ``axis`` moved inside the unit ball, if they are not. The shape stays.

    Nickel and Kiela, "Poincaré Embeddings for Learning Hierarchical Representations", 2017
    (arXiv:1705.08039), section 3, "Optimization".

    Raises:
        TypeError: if ``x`` is not of a floating type.
        ValueError: if there is no such axis.
    """
    with name_scope(name, "poincare_normalize", [x]) as scope:
        x = convert_to_tensor(x, name="x")
        length = raw.Rsqrt(raw.Sum(raw.Square(x), [axis], keep_dims=True))
        inside: Tensor = raw.Mul(x, raw.Minimum((1.0 - epsilon) * length, 1.0), name=scope)
        return inside


__all__ = [
    "bias_add",
    "dropout",
    "elu",
    "flatten",
    "fully_connected",
    "legacy_fully_connected",
    "legacy_linear",
    "legacy_relu",
    "linear",
    "maxout",
    "one_hot_encoding",
    "poincare_normalize",
    "relu",
    "relu6",
    "repeat",
    "scale_gradient",
    "softmax",
    "stack",
    "unit_norm",
]
