"""Convolutions and poolings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.contrib.framework.arg_scope import add_arg_scope
from headrace.contrib.framework.variables import model_variable
from headrace.contrib.layers import utils
from headrace.contrib.layers.initializers import XAVIER
from headrace.graph.tensor import Tensor
from headrace.layers import conv_transpose, convolutional, pooling, separable
from headrace.layers.arguments import ZEROS
from headrace.ops.array import arranging_api
from headrace.ops.core.build import convert_to_tensor
from headrace.ops.nn import activations, conv_api, pool_api
from headrace.ops.state.scopes_api import name_scope
from headrace.ops.state.variable_scope import variable_scope

_RENAMED = {"bias": "biases", "kernel": "weights"}
_SEPARABLE = {
    "bias": "biases",
    "depthwise_kernel": "depthwise_weights",
    "pointwise_kernel": "pointwise_weights",
}
#: Layers by the rank of their inputs.
_CONVOLUTIONS: dict[int, type[convolutional.Conv]] = {
    3: convolutional.Conv1D,
    4: convolutional.Conv2D,
    5: convolutional.Conv3D,
}
_RELU = activations.relu
#: Layouts with the channels last and first, by rank.
_FORMATS = ("NWC", "NCW", "NHWC", "NCHW", "NDHWC", "NCDHW")


def _place(data_format: str | None, allowed: tuple[str, ...]) -> str:
    """Where the channels are. Raises ValueError unless ``data_format`` is allowed."""
    if data_format is not None and data_format not in allowed:
        formats = " or ".join(reversed(allowed))
        raise ValueError(f"data_format has to be either {formats}, not {data_format!r}.")
    first = data_format is not None and data_format.startswith("NC")
    return "channels_first" if first else "channels_last"


@add_arg_scope
def convolution(
    inputs: Any,
    num_outputs: int,
    kernel_size: Any,
    stride: Any = 1,
    padding: str = "SAME",
    data_format: str | None = None,
    rate: Any = 1,
    activation_fn: Any = _RELU,
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
    conv_dims: int | None = None,
) -> Tensor:
    """Convolution over one, two or three spatial dimensions, as the rank of ``inputs`` says.

    ``[batch, size, ..., channels]`` becomes ``[batch, size, ..., num_outputs]``: with "SAME" each
    size divided by the stride and rounded up; with "VALID" ``(size - window) // stride + 1``, where
    the window is ``(kernel_size - 1) * rate + 1``. Formats that begin with "NC" have the channels
    first.

    Args:
        rate: dilation; greater than 1 only with a stride of 1.
        normalizer_fn: takes the place of the biases, with ``normalizer_params`` as arguments.
        conv_dims: how many spatial dimensions there must be.

    Raises:
        TypeError: if the inputs are not of a floating type.
        ValueError: if rank, format, padding or the length of a list do not fit, the number of
            channels is not known, a window does not fit, or stride and rate are both greater than
            1.
    """
    place = _place(data_format, _FORMATS)
    with utils.layer_scope(scope, "Conv", inputs, reuse, _RENAMED) as sc:
        inputs = convert_to_tensor(inputs)
        rank = inputs.shape.rank
        if conv_dims is not None and conv_dims + 2 != rank:
            raise ValueError(f"Convolution expects input with rank {conv_dims + 2}, got {rank}")
        if rank not in _CONVOLUTIONS:
            raise ValueError(f"Convolution not supported for input with rank {rank}")
        layer = _CONVOLUTIONS[rank](
            num_outputs,
            kernel_size,
            stride,
            padding,
            place,
            rate,
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


_RANKED = """`convolution` of inputs ``[batch, {sizes}, channels]``, of rank {rank}.

The result is ``[batch, {sizes}, num_outputs]``: with "SAME" each size is that of the inputs
divided by the stride and rounded up.

Raises:
    TypeError: if the inputs are not of a floating type.
    ValueError: if the rank is not {rank}, the number of channels is not known, or `convolution`
        refuses another argument.
"""


def _of_rank(spatial: int, name: str) -> Callable[..., Tensor]:
    """`convolution` over so many spatial dimensions."""

    def function(
        inputs: Any,
        num_outputs: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: str = "SAME",
        data_format: str | None = None,
        rate: Any = 1,
        activation_fn: Any = _RELU,
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
        return convolution(
            inputs,
            num_outputs,
            kernel_size,
            stride,
            padding,
            data_format,
            rate,
            activation_fn,
            normalizer_fn,
            normalizer_params,
            weights_initializer,
            weights_regularizer,
            biases_initializer,
            biases_regularizer,
            reuse,
            variables_collections,
            outputs_collections,
            trainable,
            scope,
            conv_dims=spatial,
        )

    function.__name__ = function.__qualname__ = name
    function.__doc__ = _RANKED.format(rank=spatial + 2, sizes=", ".join(["size"] * spatial))
    return add_arg_scope(function)


convolution1d = _of_rank(1, "convolution1d")
convolution2d = _of_rank(2, "convolution2d")
convolution3d = _of_rank(3, "convolution3d")


_TRANSPOSED = """Transposed convolution: the gradient of a convolution, as a layer of its own.

``[batch, {sizes}, channels]`` becomes ``[batch, {sizes}, num_outputs]``, where a size is
``size * stride`` with "SAME" padding and ``size * stride + max(kernel - stride, 0)`` with
"VALID". The other arguments are those of `convolution`. Dumoulin and Visin, "A guide to
convolution arithmetic for deep learning", 2016 (arXiv:1603.07285), chapter 4.

Raises:
    TypeError: if the inputs are not of a floating type.
    ValueError: if the rank does not fit, the number of channels is not known, or the padding or
        format is unknown.
"""


def _transposed(
    layer_type: Any, name: str, default: str, formats: tuple[str, str]
) -> Callable[..., Tensor]:
    def function(
        inputs: Any,
        num_outputs: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: str = "SAME",
        data_format: str = formats[0],
        activation_fn: Any = _RELU,
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
        place = _place(data_format, formats)
        with utils.layer_scope(scope, default, inputs, reuse, _RENAMED) as sc:
            inputs = convert_to_tensor(inputs)
            layer = layer_type(
                num_outputs,
                kernel_size,
                stride,
                padding,
                place,
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
                outputs,
                sc.name,
                activation_fn,
                normalizer_fn,
                normalizer_params,
                outputs_collections,
            )

    function.__name__ = function.__qualname__ = name
    function.__doc__ = _TRANSPOSED.format(sizes=", ".join(["size"] * (len(formats[0]) - 2)))
    return add_arg_scope(function)


convolution2d_transpose = _transposed(
    conv_transpose.Conv2DTranspose, "convolution2d_transpose", "Conv2d_transpose", ("NHWC", "NCHW")
)
convolution3d_transpose = _transposed(
    conv_transpose.Conv3DTranspose,
    "convolution3d_transpose",
    "Conv3d_transpose",
    ("NDHWC", "NCDHW"),
)


@add_arg_scope
def convolution2d_in_plane(
    inputs: Any,
    kernel_size: Any,
    stride: Any = 1,
    padding: str = "SAME",
    activation_fn: Any = _RELU,
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
    """The same convolution for each channel of images by itself.

    ``[batch, height, width, channels]`` becomes a tensor with as many channels, and sizes as of
    `convolution`. The one kernel has shape ``[*kernel_size, 1, 1]``.

    Raises:
        TypeError: if the inputs are not of a floating type.
        ValueError: if the rank is not 4, the number of channels is not known, or the padding or
            the length of a list does not fit.
    """
    with variable_scope(scope, "ConvInPlane", [inputs], reuse=reuse) as sc:
        inputs = convert_to_tensor(inputs)
        channels = utils.last_dimension(inputs.shape, min_rank=4)
        weights = model_variable(
            "weights",
            shape=[*utils.two_element_tuple(kernel_size), 1, 1],
            dtype=inputs.dtype.base_dtype,
            initializer=weights_initializer,
            regularizer=weights_regularizer,
            collections=utils.get_variable_collections(variables_collections, "weights"),
            trainable=trainable,
        )
        kernels = arranging_api.tile(weights, [1, 1, channels, 1])
        strides = [1, *utils.two_element_tuple(stride), 1]
        outputs = conv_api.depthwise_conv2d(inputs, kernels, strides, padding)
        if normalizer_fn is None and biases_initializer is not None:
            outputs = _biased(
                outputs,
                channels,
                "NHWC",
                biases_initializer,
                biases_regularizer,
                variables_collections,
                trainable,
            )
        return utils.finished(
            outputs, sc.name, activation_fn, normalizer_fn, normalizer_params, outputs_collections
        )


def _biased(
    outputs: Any,
    channels: int,
    data_format: str,
    initializer: Any,
    regularizer: Any,
    variables_collections: Any,
    trainable: bool,
) -> Tensor:
    biases = model_variable(
        "biases",
        shape=[channels],
        dtype=outputs.dtype.base_dtype,
        initializer=initializer,
        regularizer=regularizer,
        collections=utils.get_variable_collections(variables_collections, "biases"),
        trainable=trainable,
    )
    return activations.bias_add(outputs, biases, data_format=data_format)


@add_arg_scope
def separable_convolution2d(
    inputs: Any,
    num_outputs: int | None,
    kernel_size: Any,
    depth_multiplier: int = 1,
    stride: Any = 1,
    padding: str = "SAME",
    data_format: str = "NHWC",
    rate: Any = 1,
    activation_fn: Any = _RELU,
    normalizer_fn: Any = None,
    normalizer_params: Any = None,
    weights_initializer: Any = XAVIER,
    pointwise_initializer: Any = None,
    weights_regularizer: Any = None,
    biases_initializer: Any = ZEROS,
    biases_regularizer: Any = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
) -> Tensor:
    """A convolution of each channel by itself, then a mix of the channels.

    ``[batch, height, width, channels]`` becomes ``[batch, height, width, num_outputs]``, with sizes
    as of `convolution`. ``num_outputs`` of None leaves out the mix: then there are ``channels *
    depth_multiplier`` outputs. The other arguments are those of `convolution`. Chollet, "Xception",
    2017 (arXiv:1610.02357), section 1.2.

    Raises:
        TypeError: if the inputs are not of a floating type.
        ValueError: if the rank is not 4, the number of channels is not known, stride and rate are
            both greater than 1, or the format, padding or the length of a list does not fit.
    """
    biased = normalizer_fn is None and biases_initializer is not None
    with utils.layer_scope(scope, "SeparableConv2d", inputs, reuse, _SEPARABLE) as sc:
        inputs, place = convert_to_tensor(inputs), _place(data_format, ("NHWC", "NCHW"))
        if num_outputs is None:
            window = (kernel_size, stride, rate, padding, data_format, depth_multiplier)
            weights = (weights_initializer, weights_regularizer)
            biases = (biases_initializer, biases_regularizer) if biased else None
            outputs = _depthwise(
                inputs, place, window, weights, biases, (variables_collections, trainable)
            )
        else:
            layer = separable.SeparableConv2D(
                num_outputs,
                kernel_size,
                stride,
                padding,
                place,
                utils.two_element_tuple(rate),
                depth_multiplier,
                None,
                biased,
                weights_initializer,
                pointwise_initializer or weights_initializer,
                biases_initializer,
                weights_regularizer,
                weights_regularizer,
                biases_regularizer,
                trainable=trainable,
                name=sc.name,
                dtype=inputs.dtype.base_dtype,
                _scope=sc,
                _reuse=reuse,
            )
            outputs = _applied(layer, inputs, variables_collections)
        return utils.finished(
            outputs, sc.name, activation_fn, normalizer_fn, normalizer_params, outputs_collections
        )


def _applied(layer: separable.SeparableConv2D, inputs: Any, collections: Any) -> Tensor:
    """The outputs of a layer, whose variables join the collections."""
    outputs: Tensor = layer.apply(inputs)
    utils.add_to_collections(layer.depthwise_kernel, collections, "weights")
    utils.add_to_collections(layer.pointwise_kernel, collections, "weights")
    utils.add_to_collections(layer.bias, collections, "biases")
    return outputs


def _depthwise(
    inputs: Any,
    place: str,
    window: tuple[Any, ...],
    weights: tuple[Any, Any],
    biases: tuple[Any, Any] | None,
    kept: tuple[Any, Any],
) -> Tensor:
    kernel_size, stride, rate, padding, data_format, multiplier = window
    initializer, regularizer = weights
    collections, trainable = kept
    channels = utils.channel_dimension(inputs.shape, place, min_rank=4)
    kernel = model_variable(
        "depthwise_weights",
        shape=[*utils.two_element_tuple(kernel_size), channels, multiplier],
        dtype=inputs.dtype.base_dtype,
        initializer=initializer,
        regularizer=regularizer,
        trainable=trainable,
        collections=utils.get_variable_collections(collections, "weights"),
    )
    steps = utils.two_element_tuple(stride)
    outputs = conv_api.depthwise_conv2d(
        inputs,
        kernel,
        [1, 1, *steps] if data_format == "NCHW" else [1, *steps, 1],
        padding,
        rate=utils.two_element_tuple(rate),
        data_format=data_format,
    )
    if biases is None:
        return outputs
    return _biased(outputs, channels * multiplier, data_format, *biases, *kept)


_POOLED = """`tf.layers.{layer}`, made and called.

``[batch, {sizes}, channels]`` becomes a tensor of that shape with smaller sizes: with "VALID"
``(size - kernel_size) // stride + 1``, with "SAME" ``size / stride`` rounded up.

Raises:
    TypeError: if the inputs are not of a floating type, for averages.
    ValueError: if the rank does not fit or is not known, a window is larger than the inputs, or
        the padding or format is unknown.
"""


def _pooled(
    layer_type: Any, name: str, scope_name: str, formats: tuple[str, str]
) -> Callable[..., Tensor]:
    def function(
        inputs: Any,
        kernel_size: Any,
        stride: Any = 2,
        padding: str = "VALID",
        data_format: str = formats[0],
        outputs_collections: Any = None,
        scope: Any = None,
    ) -> Tensor:
        place = _place(data_format, formats)
        with name_scope(scope, scope_name, [inputs]) as sc:
            inputs = convert_to_tensor(inputs)
            layer = layer_type(kernel_size, stride, padding, place, _scope=sc)
            outputs: Tensor = layer.apply(inputs)
            return utils.collect_named_outputs(outputs_collections, sc, outputs)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = _POOLED.format(
        layer=layer_type.__name__, sizes=", ".join(["size"] * (len(formats[0]) - 2))
    )
    return add_arg_scope(function)


max_pool2d = _pooled(pooling.MaxPooling2D, "max_pool2d", "MaxPool2D", ("NHWC", "NCHW"))
avg_pool2d = _pooled(pooling.AveragePooling2D, "avg_pool2d", "AvgPool2D", ("NHWC", "NCHW"))
max_pool3d = _pooled(pooling.MaxPooling3D, "max_pool3d", "MaxPool3D", ("NDHWC", "NCDHW"))
avg_pool3d = _pooled(pooling.AveragePooling3D, "avg_pool3d", "AvgPool3D", ("NDHWC", "NCDHW"))


@add_arg_scope
def pool(
    inputs: Any,
    kernel_size: Any,
    pooling_type: str,
    padding: str = "VALID",
    data_format: str | None = None,
    dilation_rate: Any = 1,
    stride: Any = 1,
    outputs_collections: Any = None,
    scope: Any = None,
) -> Tensor:
    """``tf.nn.pool``: the maximum (``pooling_type`` "MAX") or average ("AVG") of each window.

    ``[batch, size, ..., channels]`` becomes a tensor of the same rank, with sizes as of
    `convolution`.

    Raises:
        TypeError: if the inputs are not of a real type, for averages of a floating one.
        ValueError: if the rank is not known or less than 3, stride and dilation are both greater
            than 1, or the type, format, padding or a list of sizes does not fit.
    """
    with name_scope(scope, f"{pooling_type.lower()}_pool", [inputs]) as sc:
        inputs = convert_to_tensor(inputs)
        rank = inputs.shape.rank
        if rank is None or rank < 3:
            raise ValueError(f"Rank of inputs must be known and >= 3, but is {rank}")
        _place(data_format, _FORMATS)
        outputs = pool_api.pool(
            inputs,
            utils.n_positive_integers(rank - 2, kernel_size),
            pooling_type,
            padding,
            utils.n_positive_integers(rank - 2, dilation_rate),
            utils.n_positive_integers(rank - 2, stride),
            name=sc,
            data_format=data_format,
        )
        return utils.collect_named_outputs(outputs_collections, sc, outputs)


conv1d = convolution1d
conv2d = convolution2d
conv3d = convolution3d
conv2d_transpose = convolution2d_transpose
conv3d_transpose = convolution3d_transpose
conv2d_in_plane = convolution2d_in_plane
separable_conv2d = separable_convolution2d

__all__ = [
    "avg_pool2d",
    "avg_pool3d",
    "conv1d",
    "conv2d",
    "conv2d_in_plane",
    "conv2d_transpose",
    "conv3d",
    "conv3d_transpose",
    "convolution",
    "convolution1d",
    "convolution2d",
    "convolution2d_in_plane",
    "convolution2d_transpose",
    "convolution3d",
    "convolution3d_transpose",
    "max_pool2d",
    "max_pool3d",
    "pool",
    "separable_conv2d",
    "separable_convolution2d",
]
