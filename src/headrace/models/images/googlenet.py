"""GoogLeNet: layers of four towers side by side.

Szegedy, Liu, Jia, Sermanet, Reed, Anguelov, Erhan, Vanhoucke and Rabinovich, "Going deeper with
convolutions" (CVPR 2015, arXiv:1409.4842), Table 1, without the two side classifiers and the
normalisation of responses, as in convnet-benchmarks and in Table 1 of Abadi et al. (OSDI 2016).

    layer                  out               parameters   by the paper's table
    conv1  7x7 / 2         112 x 112 x 64         9,472                   2.7K
    conv2  1x1, 3x3         56 x  56 x 192      114,944                   112K
    3a                      28 x  28 x 256      163,696                   159K
    3b                      28 x  28 x 480      388,736                   380K
    4a                      14 x  14 x 512      376,176                   364K
    4b                      14 x  14 x 512      449,160                   437K
    4c                      14 x  14 x 512      510,104                   463K
    4d                      14 x  14 x 528      605,376                   580K
    4e                      14 x  14 x 832      868,352                   840K
    5a                       7 x   7 x 832    1,043,456                  1072K
    5b                       7 x   7 x 1024   1,444,080                  1388K
    linear                  1,000             1,025,000                  1000K
                                     in all:  6,998,552
"""

from __future__ import annotations

from typing import Any

import headrace as tf

#: Name, and channels: of the 1x1 tower; before and of 3x3; before and of 5x5; behind the pool.
INCEPTIONS = (
    ("3a", 64, (96, 128), (16, 32), 32),
    ("3b", 128, (128, 192), (32, 96), 64),
    ("4a", 192, (96, 208), (16, 48), 64),
    ("4b", 160, (112, 224), (24, 64), 64),
    ("4c", 128, (128, 256), (24, 64), 64),
    ("4d", 112, (144, 288), (32, 64), 64),
    ("4e", 256, (160, 320), (32, 128), 128),
    ("5a", 256, (160, 320), (32, 128), 128),
    ("5b", 384, (192, 384), (48, 128), 128),
)


def googlenet(
    images: tf.Tensor,
    classes: int = 1000,
    training: Any = False,
    width: float = 1.0,
    scope: str = "googlenet",
) -> tf.Tensor:
    """Logits of the classes of pictures.

    Args:
        images: float32 ``[batch, 224, 224, 3]``, or of another size.
        classes: how many there are.
        training: whether four of ten means before the last layer rest (dropout): a bool, or a bool
            scalar tensor.
        width: what the numbers of channels are multiplied by.
        scope: of the variables.

    Returns:
        float32 ``[batch, classes]``.

    Raises:
        ValueError: if the number of channels of the pictures is not known.

    >>> tf.models.googlenet(tf.placeholder(tf.float32, [8, 224, 224, 3])).shape.as_list()
    [8, 1000]
    """
    with tf.variable_scope(scope):
        x = _convolution(images, 64 * width, 7, "conv1", stride=2)
        x = tf.layers.max_pooling2d(x, 3, 2, padding="same")
        x = _convolution(x, 64 * width, 1, "conv2_reduce")
        x = _convolution(x, 192 * width, 3, "conv2")
        x = tf.layers.max_pooling2d(x, 3, 2, padding="same")
        for name, ones, threes, fives, pooled in INCEPTIONS:
            if name in ("4a", "5a"):
                x = tf.layers.max_pooling2d(x, 3, 2, padding="same")
            with tf.variable_scope(name):
                x = _inception(x, ones, threes, fives, pooled, width)
        x = tf.reduce_mean(x, [1, 2])
        x = tf.layers.dropout(x, 0.4, training=training)
        return tf.layers.dense(x, classes, name="linear")


def _inception(
    x: tf.Tensor,
    ones: int,
    threes: tuple[int, int],
    fives: tuple[int, int],
    pooled: int,
    width: float,
) -> tf.Tensor:
    """Figure 2(b): the 1x1 convolutions before the large ones make them cheap."""
    towers = [_convolution(x, ones * width, 1, "1x1")]
    for size, (reduced, filters) in ((3, threes), (5, fives)):
        narrow = _convolution(x, reduced * width, 1, f"{size}x{size}_reduce")
        towers.append(_convolution(narrow, filters * width, size, f"{size}x{size}"))
    pool = tf.layers.max_pooling2d(x, 3, 1, padding="same")
    towers.append(_convolution(pool, pooled * width, 1, "pool_proj"))
    return tf.concat(towers, axis=3)


def _convolution(x: tf.Tensor, filters: float, size: int, name: str, stride: int = 1) -> tf.Tensor:
    return tf.layers.conv2d(
        x,
        int(filters),
        size,
        stride,
        padding="same",
        activation=tf.nn.relu,
        kernel_initializer=tf.variance_scaling_initializer(scale=2.0),
        name=name,
    )
