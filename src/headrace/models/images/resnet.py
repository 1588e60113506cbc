"""ResNet-50: layers that learn what to add to their input.

He, Zhang, Ren and Sun, "Deep residual learning for image recognition" (CVPR 2016,
arXiv:1512.03385), Table 1 and Figure 5 (right). 25,557,032 trained parameters, as torchvision
counts its `resnet50`.

    block    layers                           times   out
    conv1    7x7/2 of 64, pool 3x3/2                  56 x 56 x 64
    conv2    1x1 of 64,  3x3 of 64,  1x1 of 256   3   56 x 56 x 256
    conv3    1x1 of 128, 3x3 of 128, 1x1 of 512   4   28 x 28 x 512
    conv4    1x1 of 256, 3x3 of 256, 1x1 of 1024  6   14 x 14 x 1024
    conv5    1x1 of 512, 3x3 of 512, 1x1 of 2048  3    7 x  7 x 2048
    mean, dense                                       1,000
"""

from __future__ import annotations

from typing import Any

import headrace as tf

#: Channels inside of the bottlenecks of a block, how many there are, and the stride of the first.
BLOCKS = ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2))


def resnet_50(
    images: tf.Tensor,
    classes: int = 1000,
    training: Any = False,
    width: float = 1.0,
    scope: str = "resnet_50",
) -> tf.Tensor:
    """Logits of the classes of pictures.

    Args:
        images: float32 ``[batch, 224, 224, 3]``, or of another size.
        classes: how many there are.
        training: whether batches are normalised by their own moments: a bool, or a bool scalar
            tensor. A training step has to run the ops of ``tf.GraphKeys.UPDATE_OPS``, which keep
            the moments.
        width: what the numbers of channels are multiplied by.
        scope: of the variables.

    Returns:
        float32 ``[batch, classes]``.

    Raises:
        ValueError: if the number of channels of the pictures is not known.

    >>> tf.models.resnet_50(tf.placeholder(tf.float32, [8, 224, 224, 3])).shape.as_list()
    [8, 1000]
    """
    with tf.variable_scope(scope):
        x = _normalised(images, 64 * width, 7, 2, training, "conv1")
        x = tf.layers.max_pooling2d(tf.nn.relu(x), 3, 2, padding="same")
        for block, (channels, times, stride) in enumerate(BLOCKS, start=2):
            for unit in range(1, times + 1):
                with tf.variable_scope(f"conv{block}_{unit}"):
                    x = _bottleneck(x, channels * width, stride if unit == 1 else 1, training)
        return tf.layers.dense(tf.reduce_mean(x, [1, 2]), classes, name="logits")


def _bottleneck(x: tf.Tensor, channels: float, stride: int, training: Any) -> tf.Tensor:
    """``relu(x + F(x))``; where shapes change, ``x`` goes through a 1x1 convolution of its own."""
    out = int(4 * channels)
    shortcut = x
    if stride > 1 or int(x.shape[3]) != out:
        shortcut = _normalised(x, out, 1, stride, training, "shortcut")
    y = tf.nn.relu(_normalised(x, channels, 1, stride, training, "narrow"))
    y = tf.nn.relu(_normalised(y, channels, 3, 1, training, "middle"))
    y = _normalised(y, out, 1, 1, training, "wide")
    return tf.nn.relu(shortcut + y)


def _normalised(
    x: tf.Tensor, filters: float, size: int, stride: int, training: Any, name: str
) -> tf.Tensor:
    """A convolution and batch normalisation, whose offset is the bias."""
    x = tf.layers.conv2d(
        x,
        int(filters),
        size,
        stride,
        padding="same",
        use_bias=False,
        kernel_initializer=tf.variance_scaling_initializer(scale=2.0),
        name=name,
    )
    return tf.layers.batch_normalization(
        x, momentum=0.9, epsilon=1e-5, training=training, name=f"{name}_norm"
    )
