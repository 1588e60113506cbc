"""The model of the tutorial on handwritten digits: two hidden layers and a softmax.

Programs import its four steps: `inference`, `loss`, `training` and `evaluation`.
"""

from __future__ import annotations

import math
from typing import Any

import headrace as tf

__all__ = [
    "IMAGE_PIXELS",
    "IMAGE_SIZE",
    "NUM_CLASSES",
    "evaluation",
    "inference",
    "loss",
    "training",
]

NUM_CLASSES = 10
IMAGE_SIZE = 28
IMAGE_PIXELS = IMAGE_SIZE * IMAGE_SIZE


def _layer(inputs: Any, size: int, units: int) -> Any:
    """``inputs`` [batch, size] times weights, plus biases: [batch, units]."""
    spread = 1.0 / math.sqrt(float(size))
    weights = tf.Variable(tf.truncated_normal([size, units], stddev=spread), name="weights")
    biases = tf.Variable(tf.zeros([units]), name="biases")
    return tf.matmul(inputs, weights) + biases


def inference(images: Any, hidden1_units: int, hidden2_units: int) -> Any:
    """Logits ``[batch, 10]`` of images ``[batch, 784]``, through two layers of rectified units.

    Raises:
        ValueError: if the images have another shape.
    """
    with tf.name_scope("hidden1"):
        hidden1 = tf.nn.relu(_layer(images, IMAGE_PIXELS, hidden1_units))
    with tf.name_scope("hidden2"):
        hidden2 = tf.nn.relu(_layer(hidden1, hidden1_units, hidden2_units))
    with tf.name_scope("softmax_linear"):
        return _layer(hidden2, hidden2_units, NUM_CLASSES)


def loss(logits: Any, labels: Any) -> Any:
    """The mean cross-entropy of logits ``[batch, 10]`` and digits ``[batch]``.

    Raises:
        ValueError: if the shapes do not fit.
    """
    return tf.losses.sparse_softmax_cross_entropy(labels=tf.to_int64(labels), logits=logits)


def training(loss: Any, learning_rate: float) -> Any:
    """One step of gradient descent that counts itself, with a summary of the loss, a scalar.

    Raises:
        TypeError: if the loss is no tensor.
        ValueError: if it is no scalar, or the learning rate no number.
    """
    tf.summary.scalar("loss", loss)
    global_step = tf.Variable(0, name="global_step", trainable=False)
    optimizer = tf.train.GradientDescentOptimizer(learning_rate)
    return optimizer.minimize(loss, global_step=global_step)


def evaluation(logits: Any, labels: Any) -> Any:
    """How many of the batch have their digit as the largest logit: an int32 scalar.

    Raises:
        ValueError: if the shapes do not fit.
    """
    correct = tf.nn.in_top_k(logits, tf.cast(labels, tf.int32), 1)
    return tf.reduce_sum(tf.cast(correct, tf.int32))
