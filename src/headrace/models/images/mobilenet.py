"""MobileNet-v1: convolutions taken apart into one a channel and one a pixel.

Howard, Zhu, Chen, Kalenichenko, Wang, Weyand, Andreetto and Adam, "MobileNets: efficient
convolutional neural networks for mobile vision applications" (2017, arXiv:1704.04861), Table 1;
Table 8 counts 4.2 million parameters. 4,231,976 are trained, as `keras.applications.MobileNet`
counts.

    layers                                            out
    3x3/2 of 32                                       112 x 112 x 32
    3x3 a channel, 1x1 of 64                          112 x 112 x 64
    3x3/2 a channel, 1x1 of 128; the same once more    56 x  56 x 128
    3x3/2 a channel, 1x1 of 256; the same once more    28 x  28 x 256
    3x3/2 a channel, 1x1 of 512; the same 5 times      14 x  14 x 512
    3x3/2 a channel, 1x1 of 1024; the same once more    7 x   7 x 1024
    mean, dense                                       1,000
"""

from __future__ import annotations

from typing import Any

import headrace as tf

#: Channels behind each pair of layers, and the stride of its first.
PAIRS = (
    *((64, 1), (128, 2), (128, 1), (256, 2), (256, 1)),
    *((512, 2), (512, 1), (512, 1), (512, 1), (512, 1), (512, 1), (1024, 2), (1024, 1)),
)


def mobilenet_v1(
    images: tf.Tensor,
    classes: int = 1000,
    training: Any = False,
    width: float = 1.0,
    scope: str = "mobilenet_v1",
) -> tf.Tensor:
    """Logits of the classes of pictures.

    Args:
        images: float32 ``[batch, 224, 224, 3]``, or of another size.
        classes: how many there are.
        training: whether batches are normalised by their own moments: a bool, or a bool scalar
            tensor. A training step has to run the ops of ``tf.GraphKeys.UPDATE_OPS``, which keep
            the moments.
        width: the paper's alpha: what the numbers of channels are multiplied by.
        scope: of the variables.

    Returns:
        float32 ``[batch, classes]``.

    Raises:
        ValueError: if the number of channels of the pictures is not known.

    >>> tf.models.mobilenet_v1(tf.placeholder(tf.float32, [8, 224, 224, 3])).shape.as_list()
    [8, 1000]
    """
    with tf.variable_scope(scope):
        x = _of_pixels(images, 32 * width, 3, 2, training, "conv0")
        for number, (channels, stride) in enumerate(PAIRS, start=1):
            x = _of_channels(x, stride, training, f"conv{number}_channels")
            x = _of_pixels(x, channels * width, 1, 1, training, f"conv{number}_pixels")
        return tf.layers.dense(tf.reduce_mean(x, [1, 2]), classes, name="logits")


def _of_channels(x: tf.Tensor, stride: int, training: Any, name: str) -> tf.Tensor:
    """A 3x3 convolution of each channel by itself."""
    with tf.variable_scope(name):
        kernel = tf.get_variable(
            "kernel",
            [3, 3, int(x.shape[3]), 1],
            initializer=tf.random_normal_initializer(stddev=(2 / 9) ** 0.5),
        )
        x = tf.nn.depthwise_conv2d(x, kernel, [1, stride, stride, 1], "SAME")
        return tf.nn.relu(tf.layers.batch_normalization(x, training=training, name="norm"))


def _of_pixels(
    x: tf.Tensor, filters: float, size: int, stride: int, training: Any, name: str
) -> tf.Tensor:
    with tf.variable_scope(name):
        x = tf.layers.conv2d(
            x,
            int(filters),
            size,
            stride,
            padding="same",
            use_bias=False,
            kernel_initializer=tf.variance_scaling_initializer(scale=2.0),
            name="conv",
        )
        return tf.nn.relu(tf.layers.batch_normalization(x, training=training, name="norm"))
