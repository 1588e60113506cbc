"""A capsule network: parts vote for the pose of the whole, and go where votes agree.

Sabour, Frosst and Hinton, "Dynamic routing between capsules" (NIPS 2017, arXiv:1710.09829),
sections 2 to 4 and Figures 1 and 2. Section 5 counts 8.2 million parameters, 6.8 million of them
without the reconstruction.

    layer                                              out              parameters
    conv1     9x9, relu                                20 x 20 x 256        20,992
    primary   9x9 / 2, 32 kinds of capsules of 8        6 x  6 x 32 x 8  5,308,672
    digits    a matrix of 8 x 16 a pair, 3 routings    10 x 16           1,474,560
    decoder   dense of 512, 1024 and 784               28 x 28           1,411,344
                                                                in all:  8,215,568
"""

from __future__ import annotations

import headrace as tf


def capsule_network(
    images: tf.Tensor,
    classes: int = 10,
    routings: int = 3,
    width: float = 1.0,
    scope: str = "capsules",
) -> tf.Tensor:
    """A vector for each class: its length is how sure the network is, its direction the pose.

    Args:
        images: float32 ``[batch, 28, 28, 1]`` in 0 to 1, or of another size from 17 on.
        classes: how many there are.
        routings: rounds of the routing.
        width: what the channels of the convolution and the kinds of capsules are multiplied by.
        scope: of the variables.

    Returns:
        float32 ``[batch, classes, 16]`` of lengths 0 to 1.

    Raises:
        ValueError: if the size or number of channels of the pictures is not known.

    >>> tf.models.capsule_network(tf.placeholder(tf.float32, [8, 28, 28, 1])).shape.as_list()
    [8, 10, 16]
    """
    with tf.variable_scope(scope):
        x = tf.layers.conv2d(images, int(256 * width), 9, activation=tf.nn.relu, name="conv1")
        x = tf.layers.conv2d(x, 8 * int(32 * width), 9, 2, name="primary")
        parts = int(x.shape[1]) * int(x.shape[2]) * int(32 * width)
        primary = _squash(tf.reshape(x, [-1, parts, 8]))
        matrices = tf.get_variable(
            "matrices",
            [parts, classes, 8, 16],
            initializer=tf.random_normal_initializer(stddev=0.1),
        )
        # Each part's guess of each whole: [batch, parts, classes, 16].
        votes = tf.einsum("bpi,pcio->bpco", primary, matrices)
        return _route(votes, routings)


def capsule_loss(poses: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
    """Equation (4): the right capsule at least 0.9 long, the others at most 0.1.

    Args:
        poses: float32 ``[batch, classes, 16]`` of `capsule_network`.
        labels: integers ``[batch]``.

    Returns:
        The mean over the batch, a float32 scalar.

    Raises:
        TypeError: if the labels are no integers.
    """
    lengths = tf.sqrt(tf.reduce_sum(tf.square(poses), axis=2) + 1e-9)
    right = tf.one_hot(labels, int(poses.shape[1]))
    missing = right * tf.square(tf.maximum(0.0, 0.9 - lengths))
    wrong = (1.0 - right) * tf.square(tf.maximum(0.0, lengths - 0.1))
    return tf.reduce_mean(tf.reduce_sum(missing + 0.5 * wrong, axis=1))


def capsule_reconstruction(
    poses: tf.Tensor, labels: tf.Tensor, pixels: int = 784, scope: str = "decoder"
) -> tf.Tensor:
    """Section 4.1: the picture again, from the pose of the right capsule alone.

    The squared error of it, times 0.0005, is added to the loss.

    Args:
        poses: float32 ``[batch, classes, 16]`` of `capsule_network`.
        labels: integers ``[batch]``.
        pixels: how many a picture has.
        scope: of the variables.

    Returns:
        float32 ``[batch, pixels]`` in 0 to 1.

    Raises:
        TypeError: if the labels are no integers.
    """
    right = tf.one_hot(labels, int(poses.shape[1]))
    with tf.variable_scope(scope):
        x = tf.layers.flatten(poses * tf.expand_dims(right, 2))
        x = tf.layers.dense(x, 512, tf.nn.relu, name="fc1")
        x = tf.layers.dense(x, 1024, tf.nn.relu, name="fc2")
        return tf.layers.dense(x, pixels, tf.sigmoid, name="fc3")


def _route(votes: tf.Tensor, rounds: int) -> tf.Tensor:
    """Procedure 1: parts lean towards the wholes that their votes agree with."""
    leanings = tf.zeros_like(votes[..., 0])
    wholes = votes[:, 0]
    for each in range(rounds):
        shares = tf.nn.softmax(leanings, axis=2)
        wholes = _squash(tf.reduce_sum(tf.expand_dims(shares, 3) * votes, axis=1))
        if each < rounds - 1:
            leanings += tf.reduce_sum(votes * tf.expand_dims(wholes, 1), axis=3)
    return wholes


def _squash(x: tf.Tensor) -> tf.Tensor:
    """Equation (1): short vectors become shorter, long ones almost 1 long."""
    squared = tf.reduce_sum(tf.square(x), axis=-1, keepdims=True)
    return x * tf.sqrt(squared + 1e-9) / (1.0 + squared)
