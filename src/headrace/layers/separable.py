"""Separable convolutions: each channel by itself, then a mix of the channels."""

from __future__ import annotations

from typing import Any

from headrace.layers import arguments
from headrace.layers.convolutional import Conv
from headrace.ops.core.build import raw
from headrace.ops.nn import conv_api


class _SeparableConv(Conv):
    """Depthwise and pointwise kernels in place of one.

    Args:
        depth_multiplier: outputs of the depthwise step for each input channel.
        depthwise_initializer (and so on): as ``kernel_initializer`` for each of the two kernels.
    """

    def __init__(
        self,
        filters: Any,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        data_format: str | None = "channels_last",
        dilation_rate: Any = 1,
        depth_multiplier: int = 1,
        activation: Any = None,
        use_bias: bool = True,
        depthwise_initializer: Any = None,
        pointwise_initializer: Any = None,
        bias_initializer: Any = arguments.ZEROS,
        depthwise_regularizer: Any = None,
        pointwise_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        depthwise_constraint: Any = None,
        pointwise_constraint: Any = None,
        bias_constraint: Any = None,
        trainable: bool = True,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            filters,
            kernel_size,
            strides,
            padding,
            data_format,
            dilation_rate,
            activation,
            use_bias,
            bias_initializer=bias_initializer,
            bias_regularizer=bias_regularizer,
            activity_regularizer=activity_regularizer,
            bias_constraint=bias_constraint,
            trainable=trainable,
            name=name,
            **kwargs,
        )
        self.depth_multiplier = depth_multiplier
        self.depthwise_initializer = arguments.initializer(depthwise_initializer)
        self.pointwise_initializer = arguments.initializer(pointwise_initializer)
        self.depthwise_regularizer = arguments.regularizer(depthwise_regularizer)
        self.pointwise_regularizer = arguments.regularizer(pointwise_regularizer)
        self.depthwise_constraint = depthwise_constraint
        self.pointwise_constraint = pointwise_constraint

    def _add_kernel(self, channels: int) -> None:
        self.depthwise_kernel = self.add_weight(
            "depthwise_kernel",
            shape=[*self.kernel_size, channels, self.depth_multiplier],
            initializer=self.depthwise_initializer,
            regularizer=self.depthwise_regularizer,
            constraint=self.depthwise_constraint,
        )
        self.pointwise_kernel = self.add_weight(
            "pointwise_kernel",
            shape=[*[1] * self.rank, channels * self.depth_multiplier, self.filters],
            initializer=self.pointwise_initializer,
            regularizer=self.pointwise_regularizer,
            constraint=self.pointwise_constraint,
        )

    def _convolved(self, inputs: Any) -> Any:
        depthwise, pointwise, padding = self.depthwise_kernel, self.pointwise_kernel, self.padding
        strides, rates = list(self.strides), list(self.dilation_rate)
        axis = 2 if self._first else 1
        if self.rank == 1:  # rows are images of height 1
            if padding == "causal":
                inputs, padding = self._padded(inputs), "valid"
            strides, rates = strides * 2, [1, *rates]
            inputs = raw.ExpandDims(inputs, axis)
            depthwise, pointwise = raw.ExpandDims(depthwise, 0), raw.ExpandDims(pointwise, 0)
        outputs = conv_api.separable_conv2d(
            inputs,
            depthwise,
            pointwise,
            [1, 1, *strides] if self._first else [1, *strides, 1],
            padding.upper(),
            rates,
            data_format=arguments.op_format(self._first, 2),
        )
        return raw.Squeeze(outputs, squeeze_dims=[axis]) if self.rank == 1 else outputs


class SeparableConv1D(_SeparableConv):
    """Separable convolution of rows ``[n, width, channels]``. For the arguments see `Conv`.

    Chollet, "Xception: deep learning with depthwise separable convolutions" (2017).

    Raises:
        ValueError: for inputs of another rank or of unknown channels, or for other values.

    >>> layer = tf.layers.SeparableConv1D(8, kernel_size=3, depth_multiplier=2)
    >>> layer(tf.zeros([1, 10, 4])).shape.as_list()
    [1, 8, 8]
    >>> [v.shape.as_list() for v in layer.variables]
    [[3, 4, 2], [1, 8, 8], [8]]
    """

    rank = 1


class SeparableConv2D(_SeparableConv):
    """Separable convolution of images ``[n, height, width, channels]``. See `Conv`.

    Chollet, "Xception: deep learning with depthwise separable convolutions" (2017).

    Raises:
        ValueError: for inputs of another rank or of unknown channels, or for other values.

    >>> layer = tf.layers.SeparableConv2D(8, kernel_size=3)
    >>> layer(tf.zeros([1, 28, 28, 4])).shape.as_list()
    [1, 26, 26, 8]
    >>> [v.shape.as_list() for v in layer.variables]
    [[3, 3, 4, 1], [1, 1, 4, 8], [8]]
    """

    rank = 2


separable_conv1d = arguments.functional(SeparableConv1D)
separable_conv2d = arguments.functional(SeparableConv2D)

__all__ = ["SeparableConv1D", "SeparableConv2D", "separable_conv1d", "separable_conv2d"]
