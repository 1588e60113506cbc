"""AlexNet, in one column.

Krizhevsky, Sutskever and Hinton, "ImageNet classification with deep convolutional neural networks"
(NIPS 2012), in the form for one processor of Krizhevsky, "One weird trick for parallelizing
convolutional neural networks" (2014, arXiv:1404.5997), section 5: no groups and no normalisation of
responses. It is the network of convnet-benchmarks and of Table 1 of Abadi et al. (OSDI 2016).

    layer                              out             parameters
    conv1  11x11 / 4                   55 x 55 x 64        23,296
    pool1  3x3 / 2                     27 x 27 x 64
    conv2  5x5                         27 x 27 x 192      307,392
    pool2  3x3 / 2                     13 x 13 x 192
    conv3  3x3                         13 x 13 x 384      663,936
    conv4  3x3                         13 x 13 x 256      884,992
    conv5  3x3                         13 x 13 x 256      590,080
    pool5  3x3 / 2                      6 x  6 x 256
    fc6                                4,096           37,752,832
    fc7                                4,096           16,781,312
    fc8                                1,000            4,097,000
                                             in all:   61,100,840
"""

from __future__ import annotations

from typing import Any

import headrace as tf


def alexnet(
    images: tf.Tensor,
    classes: int = 1000,
    training: Any = False,
    width: float = 1.0,
    scope: str = "alexnet",
) -> tf.Tensor:
    """Logits of the classes of pictures.

    Args:
        images: float32 ``[batch, 224, 224, 3]``; other sizes from 63 on do, too.
        classes: how many there are.
        training: whether half of the units of the first two dense layers rest (dropout): a bool, or
            a bool scalar tensor.
        width: what the numbers of channels and hidden units are multiplied by.
        scope: of the variables.

    Returns:
        float32 ``[batch, classes]``.

    Raises:
        ValueError: if the size or number of channels of the pictures is not known.

    >>> tf.models.alexnet(tf.placeholder(tf.float32, [8, 224, 224, 3])).shape.as_list()
    [8, 1000]
    """
    with tf.variable_scope(scope):
        x = _convolution(images, 64 * width, 11, 4, margin=2, name="conv1")
        x = tf.layers.max_pooling2d(x, 3, 2)
        x = _convolution(x, 192 * width, 5, 1, margin=2, name="conv2")
        x = tf.layers.max_pooling2d(x, 3, 2)
        x = _convolution(x, 384 * width, 3, 1, margin=1, name="conv3")
        x = _convolution(x, 256 * width, 3, 1, margin=1, name="conv4")
        x = _convolution(x, 256 * width, 3, 1, margin=1, name="conv5")
        x = tf.layers.max_pooling2d(x, 3, 2)
        x = tf.layers.flatten(x)
        for name in ("fc6", "fc7"):
            x = tf.layers.dropout(x, 0.5, training=training)
            x = tf.layers.dense(
                x, int(4096 * width), tf.nn.relu, kernel_initializer=_he(), name=name
            )
        return tf.layers.dense(x, classes, name="fc8")


def _convolution(
    x: tf.Tensor, filters: float, size: int, stride: int, margin: int, name: str
) -> tf.Tensor:
    x = tf.pad(x, [[0, 0], [margin, margin], [margin, margin], [0, 0]])
    return tf.layers.conv2d(
        x,
        int(filters),
        size,
        stride,
        activation=tf.nn.relu,
        kernel_initializer=_he(),
        name=name,
    )


def _he() -> Any:
    """Keeps the variance of the units' values from layer to layer (He et al. 2015)."""
    return tf.variance_scaling_initializer(scale=2.0)
