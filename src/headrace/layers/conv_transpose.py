"""Transposed convolutions: from what a convolution gives back to the size of its input."""

from __future__ import annotations

from typing import Any

from headrace.graph.shapes import TensorShape
from headrace.layers import arguments, windows
from headrace.layers.convolutional import Conv
from headrace.ops.array import api, joining_api
from headrace.ops.nn import conv_api


class _ConvTranspose(Conv):
    """A convolution run backwards; the kernel is ``[..., filters, input channels]``."""

    def __init__(
        self,
        filters: Any,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        data_format: str | None = "channels_last",
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
            filters,
            kernel_size,
            strides,
            padding,
            data_format,
            1,
            activation,
            use_bias,
            kernel_initializer,
            bias_initializer,
            kernel_regularizer,
            bias_regularizer,
            activity_regularizer,
            kernel_constraint,
            bias_constraint,
            trainable,
            name,
            **kwargs,
        )

    def _add_kernel(self, channels: int) -> None:
        self.kernel = self.add_weight(
            "kernel",
            shape=[*self.kernel_size, self.filters, channels],
            initializer=self.kernel_initializer,
            regularizer=self.kernel_regularizer,
            constraint=self.kernel_constraint,
        )

    def _convolved(self, inputs: Any) -> Any:
        shape = api.shape(inputs)
        start = 2 if self._first else 1
        spatial = [
            self._length(shape[start + i], size, i)
            for i, size in enumerate(inputs.shape.as_list()[start : start + self.rank])
        ]
        sizes = [self.filters, *spatial] if self._first else [*spatial, self.filters]
        function: Any = conv_api.conv2d_transpose if self.rank == 2 else conv_api.conv3d_transpose
        outputs = function(
            inputs,
            self.kernel,
            joining_api.stack([shape[0], *sizes]),
            self.strides,
            self.padding.upper(),
            arguments.op_format(self._first, self.rank),
        )
        outputs.set_shape(self.compute_output_shape(inputs.shape))
        return outputs

    def _length(self, dynamic: Any, static: int | None, i: int) -> Any:
        if static is not None:
            return windows.transposed_length(
                static, self.kernel_size[i], self.padding, self.strides[i]
            )
        extra = self.kernel_size[i] - self.strides[i] if self.padding == "valid" else 0
        length = dynamic * self.strides[i]
        return length + extra if extra > 0 else length

    def compute_output_shape(self, input_shape: Any) -> TensorShape:
        def resize(i: int, size: int | None) -> int | None:
            return windows.transposed_length(
                size, self.kernel_size[i], self.padding, self.strides[i]
            )

        shape = TensorShape(input_shape)
        return windows.output_shape(shape, self.filters, self._first, resize)


class Conv2DTranspose(_ConvTranspose):
    """Transposed convolution of images ``[n, height, width, channels]``.

    Sizes become ``size * stride`` for "same" and ``size * stride + max(kernel - stride, 0)`` for
    "valid" padding. For the arguments see `Conv`.

    Some call it deconvolution, after Zeiler et al., "Deconvolutional networks" (2010).

    Raises:
        ValueError: for inputs of another rank or of unknown channels, or for other values.

    >>> layer = tf.layers.Conv2DTranspose(8, kernel_size=3, strides=2, padding="same")
    >>> layer(tf.zeros([1, 7, 7, 16])).shape.as_list(), layer.kernel.shape.as_list()
    ([1, 14, 14, 8], [3, 3, 8, 16])
    """

    rank = 2


class Conv3DTranspose(_ConvTranspose):
    """Transposed convolution of volumes ``[n, depth, height, width, channels]``.

    As `Conv2DTranspose`.

    Raises:
        ValueError: for inputs of another rank or of unknown channels, or for other values.

    >>> layer = tf.layers.Conv3DTranspose(8, kernel_size=2, strides=2)
    >>> layer(tf.zeros([1, 3, 3, 3, 16])).shape.as_list(), layer.kernel.shape.as_list()
    ([1, 6, 6, 6, 8], [2, 2, 2, 8, 16])
    """

    rank = 3


conv2d_transpose = arguments.functional(Conv2DTranspose)
conv3d_transpose = arguments.functional(Conv3DTranspose)

__all__ = ["Conv2DTranspose", "Conv3DTranspose", "conv2d_transpose", "conv3d_transpose"]
