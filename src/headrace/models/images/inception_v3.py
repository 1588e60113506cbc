"""Inception-v3: large convolutions taken apart into rows and columns.

Szegedy, Vanhoucke, Ioffe, Shlens and Wojna, "Rethinking the inception architecture for computer
vision" (CVPR 2016, arXiv:1512.00567), Table 1 and section 6, without the side classifier. In the
form that was released, batch normalisation has offsets and no scales: 23,851,784 numbers, of which
23,817,352 are trained (`keras.applications.InceptionV3` counts the same).

    layers                                        out
    3x3/2 of 32, 3x3 of 32, 3x3 of 64, pool/2     73 x 73 x 64
    1x1 of 80, 3x3 of 192, pool/2                 35 x 35 x 192
    3 inceptions as in Figure 5                   35 x 35 x 288
    1 smaller grid (Figure 10)                    17 x 17 x 768
    4 inceptions as in Figure 6                   17 x 17 x 768
    1 smaller grid                                 8 x  8 x 1280
    2 inceptions as in Figure 7                    8 x  8 x 2048
    mean, dropout, dense                           1,000
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import headrace as tf

#: A convolution with normalisation and relu of so many channels and of that size.
Convolution = Callable[..., tf.Tensor]


def inception_v3(
    images: tf.Tensor,
    classes: int = 1000,
    training: Any = False,
    width: float = 1.0,
    scope: str = "inception_v3",
) -> tf.Tensor:
    """Logits of the classes of pictures.

    Args:
        images: float32 ``[batch, 299, 299, 3]``; other sizes from 75 on do, too.
        classes: how many there are.
        training: whether batches are normalised by their own moments, and a fifth of the means
            before the last layer rests: a bool, or a bool scalar tensor. A training step has to run
            the ops of ``tf.GraphKeys.UPDATE_OPS``, which keep the moments.
        width: what the numbers of channels are multiplied by.
        scope: of the variables.

    Returns:
        float32 ``[batch, classes]``.

    Raises:
        ValueError: if the pictures are too small, or their number of channels is not known.

    >>> tf.models.inception_v3(tf.placeholder(tf.float32, [8, 299, 299, 3])).shape.as_list()
    [8, 1000]
    """

    def conv(
        x: tf.Tensor, filters: int, size: Any, stride: int = 1, padding: str = "same"
    ) -> tf.Tensor:
        he = tf.variance_scaling_initializer(scale=2.0)
        filters = int(filters * width)
        x = tf.layers.conv2d(
            x, filters, size, stride, padding=padding, use_bias=False, kernel_initializer=he
        )
        x = tf.layers.batch_normalization(x, scale=False, epsilon=1e-3, training=training)
        return tf.nn.relu(x)

    with tf.variable_scope(scope):
        x = conv(images, 32, 3, 2, "valid")
        x = conv(x, 32, 3, padding="valid")
        x = conv(x, 64, 3)
        x = tf.layers.max_pooling2d(x, 3, 2)
        x = conv(x, 80, 1, padding="valid")
        x = conv(x, 192, 3, padding="valid")
        x = tf.layers.max_pooling2d(x, 3, 2)
        for pooled in (32, 64, 64):
            x = _squares(conv, x, pooled)
        x = _smaller_grid(conv, x)
        for channels in (128, 160, 160, 192):
            x = _rows_and_columns(conv, x, channels)
        x = _smallest_grid(conv, x)
        for _ in range(2):
            x = _spread(conv, x)
        x = tf.reduce_mean(x, [1, 2])
        x = tf.layers.dropout(x, 0.2, training=training)
        return tf.layers.dense(x, classes, name="logits")


def _pooled(conv: Convolution, x: tf.Tensor, filters: int) -> tf.Tensor:
    return conv(tf.layers.average_pooling2d(x, 3, 1, padding="same"), filters, 1)


def _squares(conv: Convolution, x: tf.Tensor, pooled: int) -> tf.Tensor:
    """Figure 5: one tower's 5x5 is two of 3x3."""
    ones = conv(x, 64, 1)
    five = conv(conv(x, 48, 1), 64, 5)
    double = conv(conv(conv(x, 64, 1), 96, 3), 96, 3)
    return tf.concat([ones, five, double, _pooled(conv, x, pooled)], axis=3)


def _smaller_grid(conv: Convolution, x: tf.Tensor) -> tf.Tensor:
    """Figure 10: pool and strided convolutions side by side lose nothing and cost little."""
    three = conv(x, 384, 3, 2, "valid")
    double = conv(conv(conv(x, 64, 1), 96, 3), 96, 3, 2, "valid")
    return tf.concat([three, double, tf.layers.max_pooling2d(x, 3, 2)], axis=3)


def _rows_and_columns(conv: Convolution, x: tf.Tensor, channels: int) -> tf.Tensor:
    """Figure 6: a 7x7 is a row of 7 behind a column of 7."""
    row, column = (1, 7), (7, 1)
    ones = conv(x, 192, 1)
    seven = conv(conv(conv(x, channels, 1), channels, row), 192, column)
    double = conv(conv(conv(x, channels, 1), channels, column), channels, row)
    double = conv(conv(double, channels, column), 192, row)
    return tf.concat([ones, seven, double, _pooled(conv, x, 192)], axis=3)


def _smallest_grid(conv: Convolution, x: tf.Tensor) -> tf.Tensor:
    three = conv(conv(x, 192, 1), 320, 3, 2, "valid")
    seven = conv(conv(conv(x, 192, 1), 192, (1, 7)), 192, (7, 1))
    seven = conv(seven, 192, 3, 2, "valid")
    return tf.concat([three, seven, tf.layers.max_pooling2d(x, 3, 2)], axis=3)


def _spread(conv: Convolution, x: tf.Tensor) -> tf.Tensor:
    """Figure 7: where the grid is smallest, towers end in a row and a column side by side."""
    ones = conv(x, 320, 1)
    three = conv(x, 384, 1)
    double = conv(conv(x, 448, 1), 384, 3)
    ends = [conv(tower, 384, size) for tower in (three, double) for size in ((1, 3), (3, 1))]
    return tf.concat([ones, *ends, _pooled(conv, x, 192)], axis=3)
