"""OxfordNet, or VGG: columns A and D (16 layers with weights).

Simonyan and Zisserman, "Very deep convolutional networks for large-scale image recognition"
(ICLR 2015, arXiv:1409.1556), Table 1; Table 2 counts 133 and 138 million parameters. Every
convolution is of 3 x 3: two of them see as much as one of 5 x 5, with fewer weights and one more
relu between. Column A is the OxfordNet of convnet-benchmarks and of Table 1 of Abadi et al. (OSDI
2016).

    block    convolutions of A   of 16   out                 parameters of A    of 16
    block1   64                  2 x 64  112 x 112 x 64                1,792       38,720
    block2   128                 2 x 128  56 x  56 x 128              73,856      221,440
    block3   2 x 256             3 x 256  28 x  28 x 256             885,248    1,475,328
    block4   2 x 512             3 x 512  14 x  14 x 512           3,539,968    5,899,776
    block5   2 x 512             3 x 512   7 x   7 x 512           4,719,616    7,079,424
    fc6                                   4,096                  102,764,544  102,764,544
    fc7                                   4,096                   16,781,312   16,781,312
    fc8                                   1,000                    4,097,000    4,097,000
                                                         in all: 132,863,336  138,357,544
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import headrace as tf

#: Channels of the five blocks.
CHANNELS = (64, 128, 256, 512, 512)


def vgg_a(
    images: tf.Tensor,
    classes: int = 1000,
    training: Any = False,
    width: float = 1.0,
    scope: str = "vgg_a",
) -> tf.Tensor:
    """Logits of the classes of pictures, by the 11 layers of column A.

    Args:
        images: float32 ``[batch, 224, 224, 3]``; other sizes from 32 on do, too.
        classes: how many there are.
        training: whether half of the units of the first two dense layers rest (dropout): a bool, or
            a bool scalar tensor.
        width: what the numbers of channels and hidden units are multiplied by.
        scope: of the variables.

    Returns:
        float32 ``[batch, classes]``.

    Raises:
        ValueError: if the size or number of channels of the pictures is not known.

    >>> tf.models.vgg_a(tf.placeholder(tf.float32, [8, 224, 224, 3])).shape.as_list()
    [8, 1000]
    """
    return _columns(images, (1, 1, 2, 2, 2), classes, training, width, scope)


def vgg_16(
    images: tf.Tensor,
    classes: int = 1000,
    training: Any = False,
    width: float = 1.0,
    scope: str = "vgg_16",
) -> tf.Tensor:
    """Logits of the classes of pictures, by the 16 layers of column D.

    Args:
        images: float32 ``[batch, 224, 224, 3]``; other sizes from 32 on do, too.
        classes, training, width, scope: as of `vgg_a`.

    Returns:
        float32 ``[batch, classes]``.

    Raises:
        ValueError: if the size or number of channels of the pictures is not known.

    >>> tf.models.vgg_16(tf.placeholder(tf.float32, [8, 224, 224, 3])).shape.as_list()
    [8, 1000]
    """
    return _columns(images, (2, 2, 3, 3, 3), classes, training, width, scope)


def _columns(
    images: tf.Tensor,
    depths: Sequence[int],
    classes: int,
    training: Any,
    width: float,
    scope: str,
) -> tf.Tensor:
    he = tf.variance_scaling_initializer(scale=2.0)
    with tf.variable_scope(scope):
        x = images
        for block, (channels, depth) in enumerate(zip(CHANNELS, depths, strict=True), start=1):
            for layer in range(1, depth + 1):
                x = tf.layers.conv2d(
                    x,
                    int(channels * width),
                    3,
                    padding="same",
                    activation=tf.nn.relu,
                    kernel_initializer=he,
                    name=f"conv{block}_{layer}",
                )
            x = tf.layers.max_pooling2d(x, 2, 2)
        x = tf.layers.flatten(x)
        for name in ("fc6", "fc7"):
            x = tf.layers.dense(x, int(4096 * width), tf.nn.relu, kernel_initializer=he, name=name)
            x = tf.layers.dropout(x, 0.5, training=training)
        return tf.layers.dense(x, classes, name="fc8")
