"""NASNet-A: cells that a search has found.

Zoph, Vasudevan, Shlens and Le, "Learning transferable architectures for scalable image recognition"
(CVPR 2018, arXiv:1707.07012), Figure 4: the normal cell and the reduction cell. Each sees the two
values before it, and joins five sums of two operations. Table 2's NASNet-A (4 @ 1056) has 5.3
million parameters: 5,289,978 are trained, as `keras.applications.NASNetMobile` counts.
"""

from __future__ import annotations

from typing import Any

import headrace as tf


def nasnet_cell(
    before: tf.Tensor | None,
    inputs: tf.Tensor,
    filters: int,
    reduction: bool = False,
    training: Any = False,
    scope: str = "cell",
) -> tf.Tensor:
    """The normal cell, or the reduction cell, which halves height and width.

    Args:
        before: what the cell before gave, float32 of the shape of ``inputs`` or of twice its height
            and width; None for the first cell.
        inputs: float32 ``[batch, height, width, channels]``.
        filters: channels of each of the sums.
        reduction: whether it is the reduction cell.
        training: whether batches are normalised by their own moments: a bool, or a bool scalar
            tensor; see `tf.models.resnet_50`.
        scope: of the variables.

    Returns:
        float32 ``[batch, height, width, 6 filters]``; ``[batch, height / 2, width / 2, 4 filters]``
        of the reduction cell. A first normal cell hands its inputs on as they are, with the number
        of channels that they have.

    Raises:
        ValueError: if the number of channels is not known.

    >>> x = tf.placeholder(tf.float32, [8, 32, 32, 44])
    >>> tf.models.nasnet_cell(None, x, 44).shape.as_list()
    [8, 32, 32, 264]
    >>> tf.models.nasnet_cell(None, x, 88, reduction=True, scope="smaller").shape.as_list()
    [8, 16, 16, 352]
    """
    with tf.variable_scope(scope):
        p = _adjusted(before, inputs, filters, training)
        with tf.variable_scope("squeeze"):
            h = _ones(tf.nn.relu(inputs), filters, training)
        build = _reduction if reduction else _normal
        return build(p, h, filters, training)


def nasnet_a(
    images: tf.Tensor,
    classes: int = 1000,
    blocks: int = 4,
    filters: int = 1056,
    stem: int = 32,
    training: Any = False,
    scope: str = "nasnet_a",
) -> tf.Tensor:
    """Logits of the classes of pictures, by NASNet-A (``blocks`` @ ``filters``).

    Args:
        images: float32 ``[batch, 224, 224, 3]``, or of another size.
        classes: how many there are.
        blocks: normal cells in each of the three rows.
        filters: channels behind the last cell, a multiple of 24.
        stem: channels of the first convolution.
        training: as of `nasnet_cell`.
        scope: of the variables.

    Returns:
        float32 ``[batch, classes]``.

    Raises:
        ValueError: if ``filters`` is no multiple of 24.
    """
    if filters % 24:
        raise ValueError(f"filters is {filters}, which is no multiple of 24.")
    narrow = filters // 24
    with tf.variable_scope(scope):
        x = tf.layers.conv2d(images, stem, 3, 2, use_bias=False, name="stem")
        x = _normalised(x, training)
        before: tf.Tensor | None = None
        for name, part in (("stem_1", 4), ("stem_2", 2)):
            cell = nasnet_cell(before, x, narrow // part, True, training, name)
            before, x = x, cell
        for row in range(3):
            channels = narrow * 2**row
            if row:
                cell = nasnet_cell(before, x, channels, True, training, f"smaller_{row}")
                before, x = x, cell
            for number in range(blocks):
                cell = nasnet_cell(before, x, channels, False, training, f"cell_{row}_{number}")
                before, x = x, cell
        x = tf.reduce_mean(tf.nn.relu(x), [1, 2])
        return tf.layers.dense(x, classes, name="logits")


def _normal(p: tf.Tensor, h: tf.Tensor, filters: int, training: Any) -> tf.Tensor:
    sums = [
        _separable(h, filters, 5, 1, training, "1_left")
        + _separable(p, filters, 3, 1, training, "1_right"),
        _separable(p, filters, 5, 1, training, "2_left")
        + _separable(p, filters, 3, 1, training, "2_right"),
        _mean(h, 1) + p,
        _mean(p, 1) + _mean(p, 1),
        _separable(h, filters, 3, 1, training, "5_left") + h,
    ]
    return tf.concat([p, *sums], axis=3)


def _reduction(p: tf.Tensor, h: tf.Tensor, filters: int, training: Any) -> tf.Tensor:
    largest = tf.layers.max_pooling2d(h, 3, 2, padding="same")
    first = _separable(h, filters, 5, 2, training, "1_left") + _separable(
        p, filters, 7, 2, training, "1_right"
    )
    second = largest + _separable(p, filters, 7, 2, training, "2_right")
    third = _mean(h, 2) + _separable(p, filters, 5, 2, training, "3_right")
    fourth = second + _mean(first, 1)
    fifth = largest + _separable(first, filters, 3, 1, training, "5_left")
    return tf.concat([second, third, fourth, fifth], axis=3)


def _adjusted(
    before: tf.Tensor | None, inputs: tf.Tensor, filters: int, training: Any
) -> tf.Tensor:
    """What came before the inputs, in their height and width and with ``filters`` channels."""
    if before is None:
        return inputs
    with tf.variable_scope("adjust"):
        if before.shape.as_list()[1:3] != inputs.shape.as_list()[1:3]:
            x = tf.nn.relu(before)
            # Every second pixel, and those between: nothing is lost but the half of the channels.
            shifted = tf.pad(x, [[0, 0], [0, 1], [0, 1], [0, 0]])[:, 1:, 1:, :]
            paths = [
                tf.layers.conv2d(each[:, ::2, ::2, :], filters // 2, 1, use_bias=False)
                for each in (x, shifted)
            ]
            return _normalised(tf.concat(paths, axis=3), training)
        if int(before.shape[3]) != filters:
            return _ones(tf.nn.relu(before), filters, training)
        return before


def _separable(
    x: tf.Tensor, filters: int, size: int, stride: int, training: Any, name: str
) -> tf.Tensor:
    """A separable convolution, twice; only the first has the stride."""
    with tf.variable_scope(name):
        for each in (stride, 1):
            x = tf.layers.separable_conv2d(
                tf.nn.relu(x), filters, size, each, padding="same", use_bias=False
            )
            x = _normalised(x, training)
        return x


def _ones(x: tf.Tensor, filters: int, training: Any) -> tf.Tensor:
    return _normalised(tf.layers.conv2d(x, filters, 1, use_bias=False), training)


def _mean(x: tf.Tensor, stride: int) -> tf.Tensor:
    return tf.layers.average_pooling2d(x, 3, stride, padding="same")


def _normalised(x: tf.Tensor, training: Any) -> tf.Tensor:
    return tf.layers.batch_normalization(x, epsilon=1e-3, training=training)
