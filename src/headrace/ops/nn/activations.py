"""Activation functions and bias addition."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from jax import numpy as jnp

from headrace.graph import dtypes
from headrace.graph.composite import composite_function
from headrace.graph.graph import get_default_graph
from headrace.graph.shapes import merge_static, shape_text
from headrace.graph.tensor import Dims, Operation, Tensor
from headrace.ops.core import flops
from headrace.ops.core.array_util import both, like_first, shape_tensor, summed
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.core.public import public
from headrace.ops.core.registry import define_op
from headrace.ops.core.traits import ELEMENTWISE, KEEPS_ZERO, Traits
from headrace.ops.math.elementwise_util import FLOATS, scalar
from headrace.ops.nn.normalization_kernels import column_sums
from headrace.ops.nn.windows import FORMATS_2D, channel_axis, is_channels_first

Grads = list[Tensor | None]

_SELU_ALPHA = 1.6732632423543772
_SELU_SCALE = 1.0507009873554805


def _like_either(op: Operation) -> list[Dims]:
    """Shape rule of the gradients: both inputs have one shape."""
    return [merge_static(op.inputs[0].dims, op.inputs[1].dims)]


# -- kernels, for NumPy and for JAX -------------------------------------------------------------


def _relu(xp: Any, features: Any) -> Any:
    return xp.maximum(features, scalar(0, features))


def _relu6(xp: Any, features: Any) -> Any:
    return xp.minimum(xp.maximum(features, scalar(0, features)), scalar(6, features))


def _relu_grad(xp: Any, gradients: Any, features: Any) -> Any:
    return xp.where(features > 0, gradients, scalar(0, gradients))


def _relu6_grad(xp: Any, gradients: Any, features: Any) -> Any:
    return xp.where((features > 0) & (features < 6), gradients, scalar(0, gradients))


def _elu(xp: Any, features: Any) -> Any:
    zero = scalar(0, features)
    return xp.where(features < 0, xp.expm1(xp.minimum(features, zero)), features)


def _elu_grad(xp: Any, gradients: Any, outputs: Any) -> Any:
    return xp.where(outputs < 0, gradients * (outputs + scalar(1, outputs)), gradients)


def _selu(xp: Any, features: Any) -> Any:
    scale, below = scalar(_SELU_SCALE, features), scalar(_SELU_SCALE * _SELU_ALPHA, features)
    powers = xp.expm1(xp.minimum(features, scalar(0, features)))
    return xp.where(features < 0, below * powers, scale * features)


def _selu_grad(xp: Any, gradients: Any, outputs: Any) -> Any:
    scale, below = scalar(_SELU_SCALE, outputs), scalar(_SELU_SCALE * _SELU_ALPHA, outputs)
    return xp.where(outputs < 0, gradients * (outputs + below), gradients * scale)


def _leaky_relu(xp: Any, features: Any, *, alpha: float) -> Any:
    below = features * scalar(alpha, features)
    if xp is np and 0 < alpha <= 1:  # a third of the time of a choice
        return np.maximum(features, below)
    return xp.where(features > 0, features, below)


def _leaky_relu_grad(xp: Any, gradients: Any, features: Any, *, alpha: float) -> Any:
    return xp.where(features > 0, gradients, gradients * scalar(alpha, gradients))


def _softplus(xp: Any, features: Any) -> Any:
    # log(1 + e^x) without overflow for large x and without cancellation for small ones
    return xp.maximum(features, scalar(0, features)) + xp.log1p(xp.exp(-xp.abs(features)))


def _softplus_grad(xp: Any, gradients: Any, features: Any) -> Any:
    return gradients / (xp.exp(-features) + scalar(1, features))


def _softsign(xp: Any, features: Any) -> Any:
    return features / (scalar(1, features) + xp.abs(features))


def _softsign_grad(xp: Any, gradients: Any, features: Any) -> Any:
    below = scalar(1, features) + xp.abs(features)
    return gradients / (below * below)


# -- gradients ----------------------------------------------------------------------------------


def _by_output(grad_op: str) -> Any:
    """The gradient of a function whose derivative its output tells."""
    return lambda op, grad: [getattr(raw, grad_op)(grad, op.outputs[0])]


def _by_input(grad_op: str) -> Any:
    return lambda op, grad: [getattr(raw, grad_op)(grad, op.inputs[0])]


def _linear_gradient(op: Operation, grad: Tensor) -> Grads:
    """Of a backward op that is linear in the gradients and flat almost everywhere in the rest."""
    features = op.inputs[1]
    attrs = {"alpha": op.attrs["alpha"]} if "alpha" in op.attrs else {}
    return [getattr(raw, op.type)(grad, features, **attrs), raw.ZerosLike(features)]


def _curved_gradient(op: Operation, grad: Tensor) -> Grads:
    """Of EluGrad and SeluGrad: below zero the derivative is the output plus a constant."""
    gradients, outputs = op.inputs
    negative = raw.Less(outputs, raw.ZerosLike(outputs))
    slope = raw.Mul(grad, gradients)
    return [
        getattr(raw, op.type)(grad, outputs),
        raw.SelectV2(negative, slope, raw.ZerosLike(slope)),
    ]


def _leaky_gradient(op: Operation, grad: Tensor) -> Grads:
    return [raw.LeakyReluGrad(grad, op.inputs[0], alpha=op.attrs["alpha"])]


def _softplus_grad_gradient(op: Operation, grad: Tensor) -> Grads:
    gradients, features = op.inputs
    slope = raw.Mul(raw.Sigmoid(features), raw.Sigmoid(raw.Neg(features)))
    return [raw.SoftplusGrad(grad, features), raw.Mul(raw.Mul(grad, gradients), slope)]


# -- definitions --------------------------------------------------------------------------------


def _define(
    name: str, kernel: Any, gradient: Any, grad_kernel: Any, grad_gradient: Any, by: str, types: str
) -> None:
    """An activation and its backward op, which takes ``by``: the features or the outputs."""
    attrs = f"T: {types}"
    if name == "LeakyRelu":
        attrs = f"alpha: float = 0.2, {attrs} = float32"
    define_op(
        f"{name}(features: T) -> activations: T",
        attrs=attrs,
        shape=like_first,
        gradient=gradient,
        traits=KEEPS_ZERO if name == "Relu" else ELEMENTWISE,
        **both(kernel),
    )
    define_op(
        f"{name}Grad(gradients: T, {by}: T) -> backprops: T",
        attrs=attrs,
        shape=_like_either,
        gradient=grad_gradient,
        traits=Traits(cheap=name == "Relu", numpy_calls=4 if name == "Softsign" else 0),
        **both(grad_kernel),
    )


for _row in (
    ("Relu", _relu, _by_output("ReluGrad"), _relu_grad, _linear_gradient, "features", "real"),
    ("Relu6", _relu6, _by_output("Relu6Grad"), _relu6_grad, _linear_gradient, "features", "real"),
    ("Elu", _elu, _by_output("EluGrad"), _elu_grad, _curved_gradient, "outputs", FLOATS),
    ("Selu", _selu, _by_output("SeluGrad"), _selu_grad, _curved_gradient, "outputs", FLOATS),
    (
        "LeakyRelu",
        _leaky_relu,
        _leaky_gradient,
        _leaky_relu_grad,
        _linear_gradient,
        "features",
        FLOATS,
    ),
    (
        "Softplus",
        _softplus,
        _by_input("SoftplusGrad"),
        _softplus_grad,
        _softplus_grad_gradient,
        "features",
        FLOATS,
    ),
    ("Softsign", _softsign, _by_input("SoftsignGrad"), _softsign_grad, None, "features", FLOATS),
):
    _define(*_row)


# -- bias ---------------------------------------------------------------------------------------


def _bias_add_shape(op: Operation) -> list[Dims]:
    value, bias = op.inputs[0].dims, op.inputs[1].dims
    if bias is not None and len(bias) != 1:
        raise ValueError(f"Biases must be 1D: {shape_text(bias)}")
    if value is None:
        return [None]
    if len(value) < 2:
        raise ValueError(f"Input tensor must be at least 2D: {shape_text(value)}")
    if bias is None:
        return [value]
    axis = channel_axis(len(value), op.attrs.get("data_format", "NHWC"))
    channels, size = value[axis], bias[0]
    if channels is None:
        return [(*value[:axis], size, *value[axis + 1 :])]
    if size is not None and size != channels:
        raise ValueError(_bias_mismatch(size, channels, value))
    return [value]


def _bias_mismatch(size: int, channels: int, shape: Any) -> str:
    return (
        f"Dimensions must be equal, but are {channels} and {size}: must provide as many biases as "
        f"the input {shape_text(tuple(shape))} has channels."
    )


def _bias_add(value: Any, bias: Any, *, data_format: str) -> Any:
    axis = channel_axis(value.ndim, data_format)
    if bias.shape != (value.shape[axis],):
        raise ValueError(_bias_mismatch(bias.size, value.shape[axis], value.shape))
    if axis != value.ndim - 1:
        bias = bias.reshape(-1, *[1] * (value.ndim - 2))
    return value + bias


def _bias_add_gradient(op: Operation, grad: Tensor) -> Grads:
    return [grad, raw.BiasAddGrad(grad, data_format=op.attrs.get("data_format", "NHWC"))]


def _bias_grad_shape(op: Operation) -> list[Dims]:
    dims = op.inputs[0].dims
    if dims is None:
        return [(None,)]
    if len(dims) < 2:
        raise ValueError(f"Input tensor must be at least 2D: {shape_text(dims)}")
    return [(dims[channel_axis(len(dims), op.attrs["data_format"])],)]


def _bias_add_grad(out_backprop: Any, *, data_format: str) -> Any:
    axis = channel_axis(out_backprop.ndim, data_format)
    if axis == out_backprop.ndim - 1:
        return column_sums(out_backprop).astype(out_backprop.dtype)
    return jnp.sum(out_backprop, axis=_others(out_backprop, axis), dtype=out_backprop.dtype)


def _others(x: Any, axis: int) -> tuple[int, ...]:
    return tuple(i for i in range(x.ndim) if i != axis)


def _bias_add_grad_np(out_backprop: Any, *, data_format: str) -> Any:
    axis = channel_axis(out_backprop.ndim, data_format)
    return summed(out_backprop, _others(out_backprop, axis))


def _bias_grad_gradient(op: Operation, grad: Tensor) -> Grads:
    x = op.inputs[0]
    shape = shape_tensor(x)
    if is_channels_first(op.attrs["data_format"]):
        if x.dims is None:
            raise ValueError("The second derivative of an NCHW bias needs an input of known rank.")
        grad = raw.Reshape(grad, [-1] + [1] * (len(x.dims) - 2))
    return [raw.BroadcastTo(grad, shape)]


define_op(
    "BiasAdd(value: T, bias: T) -> output: T",
    attrs=f"T: numeric, data_format: {FORMATS_2D}",
    shape=_bias_add_shape,
    kernel=_bias_add,
    interpret=_bias_add,
    gradient=_bias_add_gradient,
    traits=Traits(rounding="sum", flops=flops.per_element(1), linear=slice(None), numpy_calls=1),
)
define_op(
    "BiasAddV1(value: T, bias: T) -> output: T",
    attrs="T: numeric",
    shape=_bias_add_shape,
    kernel=partial(_bias_add, data_format="NHWC"),
    interpret=partial(_bias_add, data_format="NHWC"),
    gradient=_bias_add_gradient,
)
define_op(
    "BiasAddGrad(out_backprop: T) -> output: T",
    attrs=f"T: numeric, data_format: {FORMATS_2D}",
    shape=_bias_grad_shape,
    kernel=_bias_add_grad,
    interpret=_bias_add_grad_np,
    gradient=_bias_grad_gradient,
    traits=Traits(flops=flops.reduction),
)


# -- public functions ---------------------------------------------------------------------------


@public("nn.relu")
def relu(features: Any, name: str | None = None) -> Tensor:
    """``max(features, 0)``, elementwise, of any real type.

    Nair and Hinton, "Rectified linear units improve restricted Boltzmann machines" (2010).

    Returns:
        A tensor of the shape and type of ``features``.

    Raises:
        TypeError: if ``features`` is not of a real type.

    >>> with tf.Session() as session:
    ...     session.run(relu([-1.0, 2.0])).tolist()
    [0.0, 2.0]
    """
    return raw.Relu(features, name=name)


@public("nn.relu6")
def relu6(features: Any, name: str | None = None) -> Tensor:
    """``min(max(features, 0), 6)``, elementwise.

    Krizhevsky, "Convolutional deep belief networks on CIFAR-10" (2010).

    Args:
        features: real numbers of any shape, which the result has.

    Raises:
        TypeError: if ``features`` are no real numbers.
    """
    return raw.Relu6(convert_to_tensor(features), name=name)


@public("nn.elu")
def elu(features: Any, name: str | None = None) -> Tensor:
    """``exp(x) - 1`` below zero, else ``x``, elementwise.

    Clevert, Unterthiner and Hochreiter, "Fast and accurate deep network learning by exponential
    linear units" (2016), section 3.

    Args:
        features: floats of any shape, which the result has.

    Raises:
        TypeError: if ``features`` are no floats.
    """
    return raw.Elu(features, name=name)


@public("nn.selu")
def selu(features: Any, name: str | None = None) -> Tensor:
    """``scale * x`` above zero, else ``scale * alpha * (exp(x) - 1)``, elementwise.

    Klambauer et al., "Self-normalizing neural networks" (2017), equation 2; ``scale`` is 1.0507 and
    ``alpha`` 1.6733.

    Args:
        features: floats of any shape, which the result has.

    Raises:
        TypeError: if ``features`` are no floats.
    """
    return raw.Selu(features, name=name)


@public("nn.leaky_relu")
@composite_function
def leaky_relu(features: Any, alpha: Any = 0.2, name: str | None = None) -> Tensor:
    """``x`` above zero, else ``alpha * x``, elementwise.

    Maas, Hannun and Ng, "Rectifier nonlinearities improve neural network acoustic models" (2013),
    section 2.

    Args:
        features: numbers of any shape, which the result has; integers are taken as float32.
        alpha: a number, or a tensor that broadcasts to the features.

    Raises:
        TypeError: if ``features`` are no numbers.

    >>> with tf.Session() as session:
    ...     session.run(leaky_relu([-2.0, 2.0], alpha=0.5)).tolist()
    [-1.0, 2.0]
    """
    features = convert_to_tensor(features, name="features")
    if features.dtype.is_integer:
        features = raw.Cast(features, DstT=dtypes.float32)
    if isinstance(alpha, Tensor):
        with get_default_graph().name_scope(name or "LeakyRelu") as scope:
            return raw.Maximum(raw.Mul(alpha, features), features, name=scope)
    return raw.LeakyRelu(features, alpha=float(np.float32(alpha)), name=name)


@public("math.softplus", "nn.softplus")
def softplus(features: Any, name: str | None = None) -> Tensor:
    """``log(exp(features) + 1)``, elementwise: a smooth ``relu``.

    Dugas et al., "Incorporating second-order functional knowledge for better option pricing"
    (2001).

    Args:
        features: floats of any shape, which the result has.

    Raises:
        TypeError: if ``features`` are no floats.
    """
    return raw.Softplus(features, name=name)


@public("math.softsign", "nn.softsign")
def softsign(features: Any, name: str | None = None) -> Tensor:
    """``features / (abs(features) + 1)``, elementwise.

    Args:
        features: floats of any shape, which the result has.

    Raises:
        TypeError: if ``features`` are no floats.
    """
    return raw.Softsign(features, name=name)


@public("nn.swish")
@composite_function
def swish(features: Any, name: str | None = None) -> Tensor:
    """``features * sigmoid(features)``, elementwise.

    Ramachandran, Zoph and Le, "Searching for activation functions" (2017).

    Args:
        features: floats of any shape, which the result has.

    Raises:
        TypeError: if ``features`` are no floats.
    """
    features = convert_to_tensor(features, name="features")
    with get_default_graph().name_scope(name or "swish") as scope:
        return raw.Mul(features, raw.Sigmoid(features), name=scope)


@public("nn.crelu")
def crelu(features: Any, name: str | None = None, axis: int = -1) -> Tensor:
    """``relu`` of the features and of their negative, joined along ``axis``, which doubles.

    Shang et al., "Understanding and improving convolutional neural networks via concatenated
    rectified linear units" (2016).

    Args:
        features: real numbers of any shape of rank 1 or more.

    Raises:
        TypeError: if ``features`` are no real numbers.
        ValueError: if ``axis`` is out of range.

    >>> crelu(tf.zeros([2, 3])).shape.as_list()
    [2, 6]
    """
    with get_default_graph().name_scope(name or "CRelu"):
        features = convert_to_tensor(features, name="features")
        return raw.Relu(raw.ConcatV2([features, raw.Neg(features)], axis))


_LAYOUTS = {
    None: "NHWC",
    "NHWC": "NHWC",
    "N...C": "NHWC",
    "NWC": "NHWC",
    "NDHWC": "NHWC",
    "NCHW": "NCHW",
    "NC...": "NCHW",
    "NCW": "NCHW",
    "NCDHW": "NCHW",
}


@public("nn.bias_add")
def bias_add(
    value: Any, bias: Any, data_format: str | None = None, name: str | None = None
) -> Tensor:
    """Add ``bias`` ``[channels]`` to every position of ``value`` (rank 2 or more).

    Args:
        data_format: ``"NHWC"`` (channels last, the default) or ``"NCHW"`` (channels second).

    Raises:
        TypeError: if the types differ.
        ValueError: for another format, a rank below 2, or if the sizes differ.
        InvalidArgumentError: when run, if sizes known only then differ.

    >>> with tf.Session() as session:
    ...     session.run(bias_add([[1.0, 2.0], [3.0, 4.0]], [10.0, 20.0])).tolist()
    [[11.0, 22.0], [13.0, 24.0]]
    """
    layout = _LAYOUTS.get(data_format)
    if layout is None:
        raise ValueError(
            f"data_format must be of the form `N...C` or `NC...`, but it is {data_format!r}"
        )
    value = convert_to_tensor(value)
    return raw.BiasAdd(value, bias, data_format=layout, name=name)


@public("nn.xw_plus_b")
def xw_plus_b(x: Any, weights: Any, biases: Any, name: str | None = None) -> Tensor:
    """``matmul(x, weights) + biases`` of shapes ``[n, in]``, ``[in, out]`` and ``[out]``.

    Raises:
        TypeError: if the types differ.
        ValueError: if the shapes do not fit.
        InvalidArgumentError: when run, if shapes known only then do not fit.

    >>> with tf.Session() as session:
    ...     session.run(xw_plus_b([[1.0, 2.0]], [[3.0], [4.0]], [5.0])).tolist()
    [[16.0]]
    """
    with get_default_graph().name_scope(name or "xw_plus_b") as scope:
        return raw.BiasAdd(raw.MatMul(x, weights), biases, name=scope)


@public("nn.relu_layer")
def relu_layer(x: Any, weights: Any, biases: Any, name: str | None = None) -> Tensor:
    """``relu(matmul(x, weights) + biases)`` of shapes ``[n, in]``, ``[in, out]`` and ``[out]``.

    Raises:
        TypeError: if the types differ.
        ValueError: if the shapes do not fit.
        InvalidArgumentError: when run, if shapes known only then do not fit.
    """
    with get_default_graph().name_scope(name or "relu_layer") as scope:
        sums = raw.BiasAdd(raw.MatMul(x, weights), biases)
        return raw.Relu(sums, name=scope)
