"""LeNet-5: the network that read cheques.

LeCun, Bottou, Bengio and Haffner, "Gradient-based learning applied to document recognition"
(Proceedings of the IEEE 86, 1998), section II-B and Figure 2.

    layer                                       out             parameters
    C1   6 maps of 5x5                          28 x 28 x 6            156
    S2   sums of 2x2, a gain and a bias a map   14 x 14 x 6             12
    C3   16 maps of 5x5, by the paper's Table I 10 x 10 x 16         1,516
    S4   sums of 2x2, a gain and a bias a map    5 x  5 x 16            32
    C5   120 maps of 5x5                         1 x  1 x 120       48,120
    F6   all to all                              84                 10,164
    out  distances to ten fixed drawings         10                      0
                                                         in all:    60,000
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import headrace as tf

#: Which maps of S2 each map of C3 sees (Table I): different maps find different things, and a third
#: of the products is saved.
SEEN_BY_C3 = (
    *((0, 1, 2), (1, 2, 3), (2, 3, 4), (3, 4, 5), (0, 4, 5), (0, 1, 5)),
    *((0, 1, 2, 3), (1, 2, 3, 4), (2, 3, 4, 5), (0, 3, 4, 5), (0, 1, 4, 5), (0, 1, 2, 5)),
    *((0, 1, 3, 4), (1, 2, 4, 5), (0, 2, 3, 5), (0, 1, 2, 3, 4, 5)),
)

#: Bars of a digit's drawing: top, right upper and lower, bottom, left lower and upper, middle.
_BARS = ("trRblLb", "rR", "trmlb", "trmRb", "LmrR", "tLmRb", "tLlbRm", "trR", "trRblLm", "tLmrRb")


def lenet(images: tf.Tensor, scope: str = "lenet") -> tf.Tensor:
    """Digits in pictures: minus the distances to ten drawings, as logits.

    Args:
        images: float32 ``[batch, 32, 32, 1]``; paper is -0.1 and ink 1.175, so that the mean is
            about 0 and the variance about 1.
        scope: of the variables.

    Returns:
        float32 ``[batch, 10]``.

    Raises:
        ValueError: if the pictures are not of 32 x 32 pixels.

    >>> tf.models.lenet(tf.placeholder(tf.float32, [8, 32, 32, 1])).shape.as_list()
    [8, 10]
    """
    if images.shape.as_list()[1:3] != [32, 32]:
        raise ValueError(f"LeNet-5 reads pictures of 32 x 32 pixels, not {images.shape}.")
    with tf.variable_scope(scope):
        x = _convolution(images, 6, "c1")
        x = _subsample(x, "s2")
        x = tf.concat(
            [
                _convolution(tf.gather(x, seen, axis=3), 1, f"c3_{number}")
                for number, seen in enumerate(SEEN_BY_C3)
            ],
            axis=3,
        )
        x = _subsample(x, "s4")
        x = _convolution(x, 120, "c5")
        x = tf.layers.flatten(x)
        x = tf.layers.dense(x, 84, _squash, kernel_initializer=_by_inputs(120), name="f6")
        distances = tf.reduce_sum(tf.square(tf.expand_dims(x, 1) - drawings()), axis=2)
        return -distances


def lenet_loss(logits: tf.Tensor, labels: tf.Tensor, rubbish: float = 1.0) -> tf.Tensor:
    """Equation (9): near to the right drawing, far from the others and from rubbish.

    Args:
        logits: float32 ``[batch, 10]`` of `lenet`.
        labels: integers ``[batch]``.
        rubbish: the distance of a picture that shows no digit. With it, distances of wrong digits
            that are far anyway are not pushed any further.

    Returns:
        The mean over the batch, a float32 scalar.

    Raises:
        ValueError: if the shapes do not fit.
    """
    nothing = tf.fill([tf.shape(logits)[0], 1], -float(rubbish))
    return tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(
            labels=labels, logits=tf.concat([logits, nothing], axis=1)
        )
    )


def drawings() -> np.ndarray:
    """The ten digits on 7 x 12 pixels of -1 and 1, float32 ``[10, 84]``: the codes of the output.

    The paper's are drawn by hand; these are those of a display of seven bars.
    """
    pictures = -np.ones((10, 12, 7), np.float32)
    bars = {
        "t": np.s_[0:2, 1:6],
        "m": np.s_[5:7, 1:6],
        "b": np.s_[10:12, 1:6],
        "L": np.s_[1:6, 0:2],
        "r": np.s_[1:6, 5:7],
        "l": np.s_[6:11, 0:2],
        "R": np.s_[6:11, 5:7],
    }
    for picture, names in zip(pictures, _BARS, strict=True):
        for name in names:
            picture[bars[name]] = 1.0
    return pictures.reshape(10, 84)


def _squash(x: tf.Tensor) -> tf.Tensor:
    """Appendix A: 1 at 1 and -1 at -1, so that the targets are not where the curve is flat."""
    return 1.7159 * tf.tanh(2.0 / 3.0 * x)


def _by_inputs(inputs: int) -> Any:
    """Uniform, with the variance that keeps sums of so many inputs at about 1."""
    limit = math.sqrt(3.0 / inputs)
    return tf.random_uniform_initializer(-limit, limit)


def _convolution(x: tf.Tensor, maps: int, name: str) -> tf.Tensor:
    initializer = _by_inputs(25 * int(x.shape[3]))
    return tf.layers.conv2d(
        x, maps, 5, activation=_squash, kernel_initializer=initializer, name=name
    )


def _subsample(x: tf.Tensor, name: str) -> tf.Tensor:
    with tf.variable_scope(name):
        maps = [int(x.shape[3])]
        gain = tf.get_variable("gain", maps, initializer=tf.ones_initializer())
        bias = tf.get_variable("bias", maps, initializer=tf.zeros_initializer())
        return _squash(tf.layers.average_pooling2d(x, 2, 2) * gain + bias)
