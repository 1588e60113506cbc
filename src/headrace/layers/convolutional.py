"""Convolutions over one, two and three spatial dimensions."""

from __future__ import annotations

from typing import Any

from headrace.graph.shapes import TensorShape
from headrace.graph.tensor import Tensor
from headrace.layers import arguments, windows
from headrace.layers.base import InputSpec, Layer
from headrace.ops.array.api import reshape
from headrace.ops.array.layout_api import pad
from headrace.ops.nn import activations, conv_api


class Conv(Layer):
    """``activation(convolution(inputs, kernel) + bias)`` over ``rank`` spatial dimensions.

    Args:
        filters: number of output channels.
        kernel_size, strides, dilation_rate: one number for all spatial dimensions, or one for
            each. Strides and dilations cannot both be greater than 1.
        padding: "valid" or "same"; for one dimension "causal" as well: outputs depend on no later
            inputs.
        data_format: "channels_last" or "channels_first".

    Raises:
        ValueError: for other values, or if the number of input channels is not known.
    """

    #: The number of spatial dimensions: 1, 2 or 3.
    rank: int

    def __init__(
        self,
        filters: Any,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        data_format: str | None = "channels_last",
        dilation_rate: Any = 1,
        activation: Any = None,
        use_bias: bool = True,
        kernel_initializer: Any = None,
        bias_initializer: Any = arguments.ZEROS,
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        kernel_constraint: Any = None,
        bias_constraint: Any = None,
        trainable: bool = True,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            trainable=trainable,
            name=name,
            activity_regularizer=arguments.regularizer(activity_regularizer),
            **kwargs,
        )
        self.filters = int(filters)
        self.kernel_size = arguments.sizes(kernel_size, self.rank, "kernel_size")
        self.strides = arguments.sizes(strides, self.rank, "strides")
        self.dilation_rate = arguments.sizes(dilation_rate, self.rank, "dilation_rate")
        self.padding = arguments.padding(padding, causal=self.rank == 1)
        self._first = arguments.channels_first(data_format)
        self.data_format = "channels_first" if self._first else "channels_last"
        self.activation = arguments.activation(activation)
        self.use_bias = use_bias
        self.kernel_initializer = arguments.initializer(kernel_initializer)
        self.bias_initializer = arguments.initializer(bias_initializer)
        self.kernel_regularizer = arguments.regularizer(kernel_regularizer)
        self.bias_regularizer = arguments.regularizer(bias_regularizer)
        self.kernel_constraint = kernel_constraint
        self.bias_constraint = bias_constraint
        self.input_spec = InputSpec(ndim=self.rank + 2)
        if max(self.strides) > 1 and max(self.dilation_rate) > 1:
            raise ValueError(
                "strides > 1 not supported in conjunction with dilation_rate > 1: got strides "
                f"{self.strides} and dilation_rate {self.dilation_rate}"
            )

    def build(self, input_shape: Any) -> None:
        channels = self._channels(input_shape)
        self._add_kernel(channels)
        self._add_bias()
        self.built = True

    def _channels(self, input_shape: Any) -> int:
        """The number of input channels, which later inputs must have too."""
        axis = 1 if self._first else -1
        channels = TensorShape(input_shape).as_list()[axis]
        if channels is None:
            raise ValueError("The channel dimension of the inputs should be defined. Found `None`.")
        self.input_spec = InputSpec(ndim=self.rank + 2, axes={axis: channels})
        return channels

    def _add_kernel(self, channels: int) -> None:
        self.kernel = self.add_weight(
            "kernel",
            shape=[*self.kernel_size, channels, self.filters],
            initializer=self.kernel_initializer,
            regularizer=self.kernel_regularizer,
            constraint=self.kernel_constraint,
        )

    def _add_bias(self) -> None:
        self.bias = None
        if self.use_bias:
            self.bias = self.add_weight(
                "bias",
                shape=[self.filters],
                initializer=self.bias_initializer,
                regularizer=self.bias_regularizer,
                constraint=self.bias_constraint,
            )

    def call(self, inputs: Any) -> Any:
        return self._finished(self._convolved(inputs))

    def _convolved(self, inputs: Any) -> Any:
        attrs: dict[str, Any] = {
            "padding": self.padding.upper(),
            "data_format": arguments.op_format(self._first, self.rank),
            "dilations": self.dilation_rate,
        }
        if self.rank == 1:
            if self.padding == "causal":
                inputs, attrs["padding"] = self._padded(inputs), "VALID"
            return conv_api.conv1d(inputs, self.kernel, self.strides, **attrs)
        function: Any = conv_api.conv2d if self.rank == 2 else conv_api.conv3d
        return function(inputs, self.kernel, self.strides, **attrs)

    def _padded(self, inputs: Any) -> Any:
        """The inputs after as many zeros as the first window looks back."""
        back = [self.dilation_rate[0] * (self.kernel_size[0] - 1), 0]
        return pad(inputs, [[0, 0], [0, 0], back] if self._first else [[0, 0], back, [0, 0]])

    def _finished(self, outputs: Tensor) -> Any:
        """Bias and activation."""
        if self.bias is not None:
            if self._first and self.rank == 1:
                outputs = outputs + reshape(self.bias, (1, self.filters, 1))
            else:
                outputs = activations.bias_add(
                    outputs, self.bias, data_format="NCHW" if self._first else "NHWC"
                )
        return outputs if self.activation is None else self.activation(outputs)

    def compute_output_shape(self, input_shape: Any) -> TensorShape:
        def resize(i: int, size: int | None) -> int | None:
            return windows.length(
                size, self.kernel_size[i], self.padding, self.strides[i], self.dilation_rate[i]
            )

        shape = TensorShape(input_shape)
        return windows.output_shape(shape, self.filters, self._first, resize)


class Conv1D(Conv):
    """Convolution of rows ``[n, width, channels]``. For the arguments see `Conv`.

    Raises:
        ValueError: for inputs of another rank or of unknown channels, or for other values.

    >>> layer = tf.layers.Conv1D(filters=4, kernel_size=3, dilation_rate=2)
    >>> layer(tf.zeros([2, 10, 3])).shape.as_list(), layer.kernel.shape.as_list()
    ([2, 6, 4], [3, 3, 4])
    """

    rank = 1


class Conv2D(Conv):
    """Convolution of images ``[n, height, width, channels]``. For the arguments see `Conv`.

    Raises:
        ValueError: for inputs of another rank or of unknown channels, or for other values.

    >>> layer = tf.layers.Conv2D(32, kernel_size=5, padding="same", activation=tf.nn.relu)
    >>> layer(tf.zeros([1, 28, 28, 3])).shape.as_list(), layer.kernel.shape.as_list()
    ([1, 28, 28, 32], [5, 5, 3, 32])
    """

    rank = 2


class Conv3D(Conv):
    """Convolution of volumes ``[n, depth, height, width, channels]``. See `Conv`.

    Raises:
        ValueError: for inputs of another rank or of unknown channels, or for other values.

    >>> layer = tf.layers.Conv3D(4, kernel_size=3, strides=2)
    >>> layer(tf.zeros([1, 9, 9, 9, 2])).shape.as_list(), layer.kernel.shape.as_list()
    ([1, 4, 4, 4, 4], [3, 3, 3, 2, 4])
    """

    rank = 3


conv1d = arguments.functional(Conv1D)
conv2d = arguments.functional(Conv2D)
conv3d = arguments.functional(Conv3D)

__all__ = ["Conv", "Conv1D", "Conv2D", "Conv3D", "conv1d", "conv2d", "conv3d"]
