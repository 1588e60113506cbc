"""DCGAN: one network draws pictures, another tells them from real ones.

Radford, Metz and Chintala, "Unsupervised representation learning with deep convolutional generative
adversarial networks" (ICLR 2016, arXiv:1511.06434), section 3 and Figure 1. The paper gives no
table of sizes for the judge, which mirrors the painter here, and counts no parameters: 18,855,043
and 17,232,897 follow from the layers.

    painter                    out                judge                 out
    dense                       4 x  4 x 1024     5x5/2 of 128          32 x 32 x 128
    5x5/2 of 512, transposed    8 x  8 x 512      5x5/2 of 256          16 x 16 x 256
    5x5/2 of 256, transposed   16 x 16 x 256      5x5/2 of 512           8 x  8 x 512
    5x5/2 of 128, transposed   32 x 32 x 128      5x5/2 of 1024          4 x  4 x 1024
    5x5/2 of 3, transposed     64 x 64 x 3        dense                  1
"""

from __future__ import annotations

from typing import Any

import headrace as tf


def dcgan_generator(
    noise: tf.Tensor,
    channels: int = 3,
    training: Any = True,
    width: float = 1.0,
    scope: str = "generator",
) -> tf.Tensor:
    """Pictures from noise.

    Args:
        noise: float32 ``[batch, 100]``, uniform in -1 to 1 in the paper.
        channels: of the pictures.
        training: whether batches are normalised by their own moments: a bool, or a bool scalar
            tensor. A training step has to run the ops of ``tf.GraphKeys.UPDATE_OPS`` of its scope.
        width: what the numbers of inner channels are multiplied by.
        scope: of the variables.

    Returns:
        float32 ``[batch, 64, 64, channels]`` in -1 to 1.

    Raises:
        ValueError: if the size of the noise is not known.

    >>> tf.models.dcgan_generator(tf.placeholder(tf.float32, [8, 100])).shape.as_list()
    [8, 64, 64, 3]
    """
    with tf.variable_scope(scope, reuse=tf.AUTO_REUSE):
        narrow = int(1024 * width)
        x = tf.layers.dense(
            noise, 4 * 4 * narrow, use_bias=False, kernel_initializer=_small(), name="project"
        )
        x = tf.reshape(x, [-1, 4, 4, narrow])
        x = tf.nn.relu(_normalised(x, training, "project_norm"))
        for number, filters in enumerate((512, 256, 128), start=1):
            x = tf.layers.conv2d_transpose(
                x,
                int(filters * width),
                5,
                2,
                padding="same",
                use_bias=False,
                kernel_initializer=_small(),
                name=f"conv{number}",
            )
            x = tf.nn.relu(_normalised(x, training, f"conv{number}_norm"))
        return tf.layers.conv2d_transpose(
            x,
            channels,
            5,
            2,
            padding="same",
            activation=tf.tanh,
            kernel_initializer=_small(),
            name="conv4",
        )


def dcgan_discriminator(
    images: tf.Tensor,
    training: Any = True,
    width: float = 1.0,
    scope: str = "discriminator",
) -> tf.Tensor:
    """Logits of pictures being real. A second call shares the variables of the first.

    Args:
        images: float32 ``[batch, 64, 64, channels]`` in -1 to 1.
        training, width, scope: as of `dcgan_generator`.

    Returns:
        float32 ``[batch]``.

    Raises:
        ValueError: if the size or number of channels of the pictures is not known.

    >>> tf.models.dcgan_discriminator(tf.placeholder(tf.float32, [8, 64, 64, 3])).shape.as_list()
    [8]
    """
    with tf.variable_scope(scope, reuse=tf.AUTO_REUSE):
        x = images
        for number, filters in enumerate((128, 256, 512, 1024), start=1):
            first = number == 1
            x = tf.layers.conv2d(
                x,
                int(filters * width),
                5,
                2,
                padding="same",
                use_bias=first,
                kernel_initializer=_small(),
                name=f"conv{number}",
            )
            x = tf.nn.leaky_relu(x if first else _normalised(x, training, f"conv{number}_norm"))
        x = tf.layers.flatten(x)
        return tf.squeeze(tf.layers.dense(x, 1, kernel_initializer=_small(), name="logit"), 1)


def dcgan_losses(real: tf.Tensor, made: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """What the judge and what the painter has to make small.

    Args:
        real: float32 ``[batch]``, logits of real pictures.
        made: float32 ``[batch]``, logits of pictures that the painter made.

    Returns:
        Two float32 scalars: the judge's loss, and the painter's.

    Raises:
        TypeError: if the logits are no floats.
    """

    def entropy(logits: tf.Tensor, label: float) -> tf.Tensor:
        labels = tf.fill(tf.shape(logits), label)
        return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits))

    return entropy(real, 1.0) + entropy(made, 0.0), entropy(made, 1.0)


def _normalised(x: tf.Tensor, training: Any, name: str) -> tf.Tensor:
    return tf.layers.batch_normalization(x, momentum=0.9, training=training, name=name)


def _small() -> Any:
    """Section 4: normal, of standard deviation 0.02."""
    return tf.random_normal_initializer(stddev=0.02)
