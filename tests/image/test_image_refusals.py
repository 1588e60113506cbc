"""What functions of images refuse by name, where their kernels would have said something else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace as tf

IMAGES = np.zeros([2, 4, 4, 3], np.float32)


def _known_only_in_the_step(value: Any) -> tf.Tensor:
    array = np.asarray(value)
    return tf.placeholder_with_default(tf.constant(array), [None] * array.ndim)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: tf.image.rot90(IMAGES, 1.5), TypeError, "Expected int32, got 1.5"),
        (lambda: tf.image.rot90(IMAGES, [1, 2]), ValueError, r"k must be a scalar, got shape \(2,"),
        (lambda: tf.image.sobel_edges(IMAGES[0]), ValueError, "rank 4 but is rank 3 for image"),
        (
            lambda: tf.image.ssim_multiscale(IMAGES, IMAGES, 1.0, power_factors=()),
            ValueError,
            "power_factors must have a weight for one scale",
        ),
        (
            lambda: tf.image.adjust_gamma(IMAGES, tf.constant([1.0, -1.0, 1.0])),
            ValueError,
            "non-negative",
        ),
        (
            lambda: tf.image.extract_glimpse(IMAGES, [-1, 2], np.zeros([2, 2])),
            ValueError,
            r"size must not be negative, got \[-1, 2\]",
        ),
        (
            lambda: tf.image.extract_glimpse(IMAGES, [2, 2], np.zeros([2, 3])),
            ValueError,
            r"offsets must have the shape \(\?, 2\), got \(2, 3\)",
        ),
        (
            lambda: tf.contrib.image.rotate(IMAGES, [0.1, 0.2, 0.3]),
            ValueError,
            "one, or one for each of 2 images, not 3",
        ),
    ],
)
def test_refused_when_the_graph_is_built(call: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        call()


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda: tf.image.extract_glimpse(
                IMAGES, _known_only_in_the_step(np.int32([-1, 2])), np.zeros([2, 2])
            ),
            "size must not be negative",
        ),
        (
            lambda: tf.image.non_max_suppression_overlaps(np.eye(3), [1.0, 2.0, 3.0], -2),
            "max_output_size must be non-negative, got -2",
        ),
        (
            lambda: tf.image.adjust_gamma(
                IMAGES, _known_only_in_the_step(np.float32([1.0, -1.0, 1.0]))
            ),
            "non-negative",
        ),
    ],
)
def test_refused_in_the_step(call: Any, text: str) -> None:
    tensor = call()
    with (
        tf.Session() as session,
        pytest.raises(tf.errors.InvalidArgumentError, match=text),
    ):
        session.run(tensor)


def test_gamma_may_differ_by_channel() -> None:
    for gamma in (tf.constant([1.0, 2.0, 0.0]), _known_only_in_the_step(np.float32([1, 2, 0]))):
        with tf.Session() as session:
            light = session.run(tf.image.adjust_gamma(np.full([1, 1, 3], 0.5, "f"), gamma))
        assert light.tolist() == [[[0.5, 0.25, 1.0]]]
