"""Boxes: what is refused, random ones, glimpses; goldens hold TensorFlow's choices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace as tf

BOXES = np.float32([[0, 0, 1, 1], [0, 0, 1, 1.1], [0, 0.9, 1, 2], [0, 5, 1, 6]])
SCORES = np.float32([0.6, 0.9, 0.5, 0.7])


def _run(make: Any) -> Any:
    with tf.Graph().as_default(), tf.Session() as session:
        return session.run(make())


def _error(make: Any) -> str:
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        _run(make)
    return str(caught.value.message)


def test_overlapping_boxes_are_left_out() -> None:
    raw = tf.raw_ops
    chosen = _run(lambda: tf.image.non_max_suppression(BOXES, SCORES, 9, 0.5))
    assert chosen.tolist() == [1, 3, 2]
    assert _run(lambda: raw.NonMaxSuppression(BOXES, SCORES, 2)).tolist() == [1, 3]
    assert _run(lambda: raw.NonMaxSuppressionV2(BOXES, SCORES, 9, 0.95)).tolist() == [1, 3, 0, 2]
    half = _run(
        lambda: tf.image.non_max_suppression(
            BOXES.astype(np.float16), SCORES.astype(np.float16), 9, 0.5
        )
    )
    assert half.tolist() == [1, 3, 2]


def test_static_shapes_of_choices() -> None:
    image = tf.image
    padded, valid = image.non_max_suppression_padded(BOXES, SCORES, 7, pad_to_max_output_size=True)
    assert padded.shape.as_list() == [7]
    assert valid.shape.as_list() == []
    assert image.non_max_suppression(BOXES, SCORES, 7).shape.as_list() == [None]
    found = image.combined_non_max_suppression(
        np.zeros((2, 5, 1, 4), np.float32),
        np.zeros((2, 5, 3), np.float32),
        2,
        9,
        pad_per_class=True,
    )
    assert [t.shape.as_list() for t in found] == [[2, 6, 4], [2, 6], [2, 6], [2]]


def test_what_suppression_refuses() -> None:
    suppress = tf.image.non_max_suppression
    assert "iou_threshold must be in [0, 1], got 1.5" in _error(
        lambda: suppress(BOXES, SCORES, 3, 1.5)
    )
    assert "max_output_size must be non-negative" in _error(lambda: suppress(BOXES, SCORES, -1))
    with pytest.raises(ValueError, match="3 scores of 4 boxes"):
        suppress(BOXES, SCORES[:3], 3)
    with pytest.raises(ValueError, match="boxes must have 4 columns"):
        suppress(BOXES[:, :3], SCORES, 3)
    scores = tf.placeholder(tf.float32, [None])
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match="of 4 boxes"):
        session.run(suppress(BOXES, scores, 3), {scores: SCORES[:2]})


@pytest.mark.parametrize("stateless", [False, True])
def test_random_boxes_keep_their_rules(stateless: bool) -> None:
    objects = np.float32([[[0.3, 0.3, 0.6, 0.7]]])
    with tf.Graph().as_default(), tf.Session() as session:
        if stateless:
            seed = tf.placeholder(tf.int64, [2])
            drawn = tf.raw_ops.StatelessSampleDistortedBoundingBox(
                [50, 80, 3], objects, 0.5, seed, area_range=[0.2, 0.6]
            )
            found = [session.run(drawn, {seed: [1, i]}) for i in range(30)]
        else:
            drawn = tf.image.sample_distorted_bounding_box(
                [50, 80, 3], objects, 3, 4, min_object_covered=0.5, area_range=[0.2, 0.6]
            )
            found = [session.run(drawn) for _ in range(30)]
    places = set()
    for begin, size, box in found:
        assert begin[2] == 0
        assert size[2] == -1
        top, left, bottom, right = box[0, 0]
        np.testing.assert_allclose([top * 50, left * 80], begin[:2], atol=1e-3)
        np.testing.assert_allclose([(bottom - top) * 50, (right - left) * 80], size[:2], atol=1e-3)
        assert 0.19 < (bottom - top) * (right - left) < 0.61
        assert 0.7 < size[1] / size[0] < 1.4
        height = min(bottom, 0.6) - max(top, 0.3)
        width = min(right, 0.7) - max(left, 0.3)
        assert height * width / 0.12 > 0.45
        places.add((*begin, *size))
    assert len(places) > 10


def test_what_random_boxes_refuse() -> None:
    sample = tf.image.sample_distorted_bounding_box
    none = np.zeros((1, 0, 4), np.float32)
    assert "use_image_if_no_bounding_boxes" in _error(lambda: sample([4, 5, 3], none))
    assert "must be in [0.0, 1.0]" in _error(
        lambda: sample([4, 5, 3], np.float32([[[0, 0, 1, 1.5]]]))
    )
    whole = np.float32([[[0, 0, 1, 1]]])
    assert "height and width must be positive" in _error(lambda: sample([0, 5, 3], whole))
    assert "Area range" in _error(lambda: sample([4, 5, 3], whole, area_range=[0.1, 2.0]))
    v1 = tf.raw_ops.SampleDistortedBoundingBox
    begin, size, _ = _run(lambda: v1([4, 5, 3], whole, seed=1, seed2=2))
    assert begin.shape == size.shape == (3,)


def test_boxes_are_drawn() -> None:
    images = np.zeros((1, 5, 6, 3), np.float32)
    boxes = np.float32([[[0, 0, 1, 1], [0.5, 0.4, 0.5, 0.8]]])
    drawn = _run(lambda: tf.image.draw_bounding_boxes(images, boxes, colors=[[1.0, 0, 0]]))
    assert drawn[0, 0, :, 0].all()
    assert drawn[0, :, 5, 0].all()
    assert drawn[0, 2, :, 0].tolist() == [1, 0, 1, 1, 1, 1]
    assert not drawn[..., 1:].any()
    by_default = _run(lambda: tf.image.draw_bounding_boxes(images, boxes[:, :1]))
    assert by_default[0, 0, 0].tolist() == [1, 1, 0]
    with pytest.raises(ValueError, match="1, 3 or 4 channels"):
        tf.image.draw_bounding_boxes(np.zeros((1, 4, 4, 2), np.float32), boxes)


@pytest.mark.parametrize("uniform", [True, False])
def test_what_a_glimpse_shows_outside_is_like_the_image(uniform: bool) -> None:
    rng = np.random.default_rng(0)
    images = (rng.random((1, 40, 40, 1)) * 4 + 2).astype(np.float32)
    with tf.Graph().as_default(), tf.Session() as session:
        glimpse = tf.image.extract_glimpse(images, [60, 60], [[0.0, 0.0]], uniform_noise=uniform)
        first, second = session.run(glimpse), session.run(glimpse)
    outside = np.ones((60, 60), bool)
    outside[10:50, 10:50] = False
    np.testing.assert_array_equal(first[0, 10:50, 10:50], images[0])
    noise = first[0, :, :, 0][outside]
    assert abs(noise.mean() - 4) < 0.2
    assert abs(noise.std() - images.std()) < 0.15
    assert ((noise >= 2) & (noise <= 6)).all() == uniform
    assert not np.array_equal(first[0, :, :, 0][outside], second[0, :, :, 0][outside])


@pytest.mark.parametrize("size", [3, 4, 7, 10, 25])
def test_the_crop_of_a_whole_image_has_its_last_pixels(size: int) -> None:
    """Rounding must not put them outside, however the kernel is compiled."""
    image = tf.placeholder(tf.float32, [1, 8, 8, 1])
    boxes = tf.placeholder(tf.float32, [1, 4])
    crop = tf.image.crop_and_resize(image, boxes, [0], [size, size], extrapolation_value=-1)
    gradient = tf.gradients(crop, image)[0]
    feed = {image: np.ones((1, 8, 8, 1)), boxes: [[0, 0, 1, 1]]}
    with tf.Session() as session:
        for _ in range(3):  # interpreted, then compiled
            found, slope = session.run([crop, gradient], feed)
            np.testing.assert_allclose(found, np.ones((1, size, size, 1)), rtol=1e-6)
            assert slope[0, 7, 7, 0] >= 1


def test_crops_of_an_image_that_is_not_there() -> None:
    which = tf.placeholder(tf.int32, [1])
    crops = tf.image.crop_and_resize(np.zeros((2, 4, 4, 1)), BOXES[:1], which, [2, 2])
    with (
        tf.Session() as session,
        pytest.raises(tf.errors.InvalidArgumentError, match=r"box_index\[0\] = 2 is not in \[0, 2"),
    ):
        session.run(crops, {which: [2]})
    with pytest.raises(ValueError, match="both 'box_ind' and 'box_indices'"):
        tf.image.crop_and_resize(np.zeros((2, 4, 4, 1)), BOXES, [0], [2, 2], box_indices=[0])
    with pytest.raises(TypeError, match="box_indices and crop_size"):
        tf.image.crop_and_resize(np.zeros((2, 4, 4, 1)), BOXES)


def test_no_extrapolation_value_is_that_of_the_op() -> None:
    image = tf.ones([1, 2, 2, 1])
    crop = tf.image.crop_and_resize(
        image, [[0.0, 0, 1, 1.5]], [0], [2, 2], extrapolation_value=None
    )
    with tf.Session() as session:
        assert session.run(crop).ravel().tolist() == [1, 0, 1, 0]
