"""OverFeat, the fast model.

Sermanet, Eigen, Zhang, Mathieu, Fergus and LeCun, "OverFeat: integrated recognition, localization
and detection using convolutional networks" (ICLR 2014, arXiv:1312.6229), Table 1; Table 4 counts
145 million parameters.

    layer                          out               parameters
    conv1  11x11 / 4               56 x 56 x 96          34,944
    pool1  2x2 / 2                 28 x 28 x 96
    conv2  5x5                     24 x 24 x 256        614,656
    pool2  2x2 / 2                 12 x 12 x 256
    conv3  3x3                     12 x 12 x 512      1,180,160
    conv4  3x3                     12 x 12 x 1024     4,719,616
    conv5  3x3                     12 x 12 x 1024     9,438,208
    pool5  2x2 / 2                  6 x  6 x 1024
    fc6                            3,072            113,249,280
    fc7                            4,096             12,587,008
    fc8                            1,000              4,097,000
                                           in all:  145,920,872
"""

from __future__ import annotations

from typing import Any

import headrace as tf


def overfeat(
    images: tf.Tensor,
    classes: int = 1000,
    training: Any = False,
    width: float = 1.0,
    scope: str = "overfeat",
) -> tf.Tensor:
    """Logits of the classes of pictures.

    Args:
        images: float32 ``[batch, 231, 231, 3]``; other sizes from 71 on do, too.
        classes: how many there are.
        training: whether half of the units before the first two dense layers rest (dropout): a
            bool, or a bool scalar tensor.
        width: what the numbers of channels and hidden units are multiplied by.
        scope: of the variables.

    Returns:
        float32 ``[batch, classes]``.

    Raises:
        ValueError: if the size or number of channels of the pictures is not known.

    >>> tf.models.overfeat(tf.placeholder(tf.float32, [8, 231, 231, 3])).shape.as_list()
    [8, 1000]
    """

    def convolution(x: tf.Tensor, filters: int, size: int, name: str, **more: Any) -> tf.Tensor:
        return tf.layers.conv2d(
            x,
            int(filters * width),
            size,
            activation=tf.nn.relu,
            kernel_initializer=tf.variance_scaling_initializer(scale=2.0),
            name=name,
            **more,
        )

    with tf.variable_scope(scope):
        x = convolution(images, 96, 11, "conv1", strides=4)
        x = tf.layers.max_pooling2d(x, 2, 2)
        x = convolution(x, 256, 5, "conv2")
        x = tf.layers.max_pooling2d(x, 2, 2)
        x = convolution(x, 512, 3, "conv3", padding="same")
        x = convolution(x, 1024, 3, "conv4", padding="same")
        x = convolution(x, 1024, 3, "conv5", padding="same")
        x = tf.layers.max_pooling2d(x, 2, 2)
        x = tf.layers.flatten(x)
        for name, units in (("fc6", 3072), ("fc7", 4096)):
            x = tf.layers.dropout(x, 0.5, training=training)
            x = tf.layers.dense(x, int(units * width), tf.nn.relu, name=name)
        return tf.layers.dense(x, classes, name="fc8")
