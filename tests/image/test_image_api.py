"""`tf.image` beyond the goldens: unknown shapes, old argument orders, what is refused, training."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace as tf

IMAGE = np.arange(5 * 7 * 3, dtype=np.uint8).reshape(5, 7, 3)


def _run(fetches: Any, feed: Any = None) -> Any:
    with tf.Session() as session:
        return session.run(fetches, feed)


def test_functions_keep_what_is_known_of_shapes() -> None:
    image = tf.placeholder(tf.float32, [None, None, 3])
    batch = tf.placeholder(tf.float32, [None, 8, 9, 1])
    shapes = {
        tf.image.resize_images(image, [4, 6]): [4, 6, 3],
        tf.image.resize_images(batch, tf.constant([2, 3])): [None, 2, 3, 1],
        tf.image.resize_image_with_crop_or_pad(image, 4, 6): [4, 6, 3],
        tf.image.resize_image_with_pad(image, 4, 6): [4, 6, 3],
        tf.image.central_crop(batch, 0.5): [None, 4, 5, 1],
        tf.image.random_flip_left_right(batch): [None, 8, 9, 1],
        tf.image.random_flip_up_down(image): [None, None, 3],
        tf.image.rot90(batch): [None, 9, 8, 1],
        tf.image.per_image_standardization(image): [None, None, 3],
        tf.image.rgb_to_grayscale(image): [None, None, 1],
        tf.image.grayscale_to_rgb(batch): [None, 8, 9, 3],
        tf.image.sobel_edges(batch): [None, 8, 9, 1, 2],
        tf.image.crop_and_resize(batch, np.zeros((2, 4)), [0, 0], [3, 3]): [2, 3, 3, 1],
    }
    for tensor, dims in shapes.items():
        assert tensor.shape.as_list() == dims, tensor
    # One image or a batch: that is seen when the graph runs.
    assert tf.image.flip_left_right(tf.placeholder(tf.float32)).shape.rank is None


def test_argument_orders_of_old_releases() -> None:
    old = tf.image.resize_images(IMAGE, 3, 4, tf.image.ResizeMethod.NEAREST_NEIGHBOR, True)
    new = tf.image.resize_images(
        IMAGE, [3, 4], tf.image.ResizeMethod.NEAREST_NEIGHBOR, align_corners=True
    )
    assert np.array_equal(*_run([old, new]))
    with_numbers = tf.image.resize_images(IMAGE, 3, 4)
    assert np.array_equal(*_run([with_numbers, tf.image.resize_images(IMAGE, [3, 4])]))
    assert tf.image.per_image_whitening is tf.image.per_image_standardization
    assert tf.image.resize is tf.image.resize_images


@pytest.mark.parametrize("dtype", [tf.int32, tf.int64])
def test_sizes_and_places_may_be_tensors(dtype: Any) -> None:
    size = tf.placeholder(dtype, [2])
    fitted = tf.image.resize_image_with_crop_or_pad(IMAGE, size[0], size[1])
    cut = tf.image.crop_to_bounding_box(IMAGE, size[0] - 2, 1, 3, size[1] - 4)
    padded = tf.image.pad_to_bounding_box(IMAGE, 1, size[0], 9, size[1] + 8)
    sized = tf.image.resize_image_with_pad(IMAGE, size[0], size[1])
    resized = tf.image.resize_images(IMAGE, [size[0], 4]) if dtype is tf.int32 else fitted
    found = _run([fitted, cut, padded, sized, resized], {size: [3, 9]})
    assert [f.shape[:2] for f in found[:4]] == [(3, 9), (3, 5), (9, 17), (3, 9)]
    assert np.array_equal(found[0][:, 1:8], IMAGE[1:4])
    assert np.array_equal(found[1], IMAGE[1:4, 1:6])
    assert np.array_equal(found[2][1:6, 3:10], IMAGE)
    dimension = tf.TensorShape([2, 3])[1]
    assert tf.image.crop_to_bounding_box(IMAGE, 0, 0, dimension, 2).shape.as_list() == [3, 2, 3]


def test_patches_under_both_names() -> None:
    x = np.arange(16, dtype=np.float32).reshape(1, 4, 4, 1)
    one = [1, 1, 1, 1]
    first = tf.extract_image_patches(x, ksizes=[1, 2, 2, 1], strides=one, rates=one, padding="SAME")
    second = tf.image.extract_patches(x, [1, 2, 2, 1], one, one, "SAME")
    assert np.array_equal(*_run([first, second]))
    with pytest.raises(ValueError, match="rates must be positive"):
        tf.extract_image_patches(x, [1, 2, 2, 1], one, [1, 0, 1, 1], "SAME")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda i: i.resize_images(IMAGE, [3, 4, 5]), "1-D Tensor of 2 elements"),
        (lambda i: i.resize_images(IMAGE, ["a", "b"]), "1-D int32 Tensor"),
        (lambda i: i.resize_images(IMAGE, [3, 4], 17), "Resize method is not implemented"),
        (lambda i: i.resize_images(IMAGE[0], [3, 4]), "either 3 or 4 dimensions"),
        (lambda i: i.resize_images(tf.placeholder(tf.int32), [3, 4]), "contains no shape"),
        (lambda i: i.crop_to_bounding_box(IMAGE, 1, 0, 5, 5), "height must be >= target"),
        (lambda i: i.crop_to_bounding_box(IMAGE, -1, 0, 5, 5), "offset_height must be >= 0"),
        (lambda i: i.crop_to_bounding_box(IMAGE, 0, 0, 0, 5), "target_height must be > 0"),
        (lambda i: i.pad_to_bounding_box(IMAGE, 1, 1, 9, 7), "width must be <= target"),
        (lambda i: i.resize_image_with_crop_or_pad(IMAGE, 0, 7), "target_height must be > 0"),
        (lambda i: i.resize_image_with_pad(IMAGE, 3, -7), "target_width must be > 0"),
        (lambda i: i.central_crop(IMAGE, 1.2), r"within \(0, 1\], got 1.2"),
        (lambda i: i.flip_left_right(IMAGE[0]), "at least three-dimensional"),
        (lambda i: i.flip_left_right(IMAGE[None, None]), "either 3 or 4 dimensions"),
        (lambda i: i.rot90(np.zeros((0, 3, 3))), "inner three dims of 'image.shape' must be > 0"),
        (lambda i: i.random_brightness(IMAGE, -1), "max_delta must be non-negative"),
        (lambda i: i.random_contrast(IMAGE, 2, 1), "upper must be > lower"),
        (lambda i: i.random_saturation(IMAGE, -2, 1), "lower must be non-negative"),
        (lambda i: i.random_hue(IMAGE, 0.7), "max_delta must be <= 0.5"),
        (lambda i: i.adjust_gamma(IMAGE, -1), "Gamma should be a non-negative"),
        (lambda i: i.random_jpeg_quality(IMAGE, 5, 101), "between 0 and 100"),
        (lambda i: i.random_jpeg_quality(IMAGE, 50, 50), "must be less than"),
        (lambda i: i.grayscale_to_rgb(IMAGE), "its last dimension of size 1"),
        (lambda i: i.rgb_to_yuv(np.zeros((2, 4))), "must have 3 channels"),
        (lambda i: i.rgb_to_hsv(np.zeros((2, 4))), "last dimension must be 3"),
        (lambda i: i.total_variation(np.zeros((2, 4))), "3 or 4-dimensional"),
        (lambda i: i.image_gradients(IMAGE), "expects a 4D tensor"),
        (lambda i: i.psnr(IMAGE, IMAGE[1:], 255), "images are not compatible"),
        (lambda i: i.ssim(IMAGE, IMAGE, 255), "at least 11 x 11"),
    ],
)
def test_what_is_refused_at_once(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(tf.image)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda i, x: i.crop_to_bounding_box(x, 1, 0, 5, 5), "height must be >= target"),
        (lambda i, x: i.pad_to_bounding_box(x, 1, 1, 9, 7), "width must be <= target"),
        (lambda i, x: i.grayscale_to_rgb(x), "should be of size 1"),
        (lambda i, x: i.psnr(x, IMAGE[1:], 255), "images are not compatible"),
        (lambda i, x: i.ssim(x, x, 255), "at least 11 x 11"),
        (lambda i, x: i.resize_images(x, tf.constant([0, 3])), "must be positive"),
    ],
)
def test_what_is_refused_when_run(make: Any, message: str) -> None:
    x = tf.placeholder(tf.uint8, [None, None, None])
    y = make(tf.image, x)
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        _run(y, {x: IMAGE})


@pytest.mark.parametrize("shape", [None, [None] * 3])
@pytest.mark.parametrize(
    "turn",
    [
        lambda i, x: i.flip_up_down(x),
        lambda i, x: i.rot90(x),
        lambda i, x: i.transpose_image(x),
        lambda i, x: i.per_image_standardization(x),
    ],
)
def test_images_without_pixels_are_refused_also_when_run(turn: Any, shape: Any) -> None:
    x = tf.placeholder(tf.float32, shape)
    y = turn(tf.image, x)
    with pytest.raises(tf.errors.InvalidArgumentError, match="inner three dims"):
        _run(y, {x: np.zeros((2, 0, 3), np.float32)})


def test_a_batch_may_be_empty() -> None:
    fed = np.zeros((0, 5, 2, 3), np.float32)
    for shape in (fed.shape, [None] * 4):
        x = tf.placeholder(tf.float32, shape)
        assert _run(tf.image.flip_left_right(x), {x: fed}).shape == fed.shape
        assert _run(tf.image.rot90(x), {x: fed}).shape == (0, 2, 5, 3)
        resized = tf.image.resize_image_with_crop_or_pad(x, 3, 4)
        assert _run(resized, {x: fed}).shape == (0, 3, 4, 3)


def test_types_are_numbers() -> None:
    with pytest.raises(AttributeError, match="must be either floating point or integer"):
        tf.image.convert_image_dtype(IMAGE, tf.string)


def test_images_of_any_size_through_one_graph() -> None:
    """What an input pipeline does, with a file of another size each time."""
    contents = tf.placeholder(tf.string, [])
    image = tf.image.decode_jpeg(contents, channels=3)
    image = tf.image.convert_image_dtype(image, tf.float32)
    image = tf.image.central_crop(image, 0.875)
    image = tf.image.resize_images(image, [8, 8])
    image = tf.image.random_flip_left_right(image, seed=1)
    image = tf.image.random_brightness(image, 0.1, seed=2)
    image = tf.image.random_contrast(image, 0.9, 1.1, seed=3)
    image = tf.clip_by_value(image, 0.0, 1.0)
    assert image.shape.as_list() == [8, 8, 3]
    pixels = tf.placeholder(tf.uint8, [None, None, 3])
    write = tf.image.encode_jpeg(pixels)
    with tf.Session() as session:
        for height, width in ((9, 12), (16, 9), (9, 12), (30, 31)):
            file = session.run(write, {pixels: np.full((height, width, 3), 100, np.uint8)})
            found = session.run(image, {contents: file})
            assert abs(found - 100 / 255).max() < 0.12


def test_images_of_several_files_in_one_step() -> None:
    """`map_fn` over file contents: strings in, images of one size out."""
    files = tf.stack([tf.image.encode_png(IMAGE), tf.image.encode_png(IMAGE[:, ::-1])])
    images = tf.map_fn(lambda f: tf.image.decode_png(f, 3), files, dtype=tf.uint8)
    found = _run(images)
    assert np.array_equal(found[0], IMAGE)
    assert np.array_equal(found[1], IMAGE[:, ::-1])


def test_a_network_learns_where_to_look() -> None:
    """The gradient of crop_and_resize moves a box onto the bright part of an image."""
    image = np.zeros((1, 16, 16, 1), np.float32)
    image[:, 8:14, 2:8] = np.hanning(8)[1:-1, None, None] * np.hanning(8)[1:-1, None]
    centre = tf.Variable([0.5, 0.45])
    half = tf.constant([0.3, 0.3])
    box = tf.expand_dims(tf.concat([centre - half, centre + half], 0), 0)
    crop = tf.image.crop_and_resize(image, box, [0], [9, 9])
    hill = np.float32(np.outer(np.hanning(11)[1:-1], np.hanning(11)[1:-1]))[None, :, :, None]
    loss = -tf.reduce_mean(crop * hill)
    train = tf.train.GradientDescentOptimizer(0.5).minimize(loss)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(60):
            session.run(train)
        y, x = session.run(centre)
    assert abs(y - 10.5 / 15) < 0.05
    assert abs(x - 4.5 / 15) < 0.05


def test_transforms_of_contrib() -> None:
    image = tf.contrib.image
    x = tf.placeholder(tf.float32, [None, None, 2])
    assert image.rotate(x, 0.1).shape.as_list() == [None, None, 2]
    assert image.transform(x, [1.0] * 8, output_shape=[3, 4]).shape.as_list() == [3, 4, 2]
    turned = image.rotate(x, np.pi / 2)
    values = np.arange(18, dtype=np.float32).reshape(3, 3, 2)
    assert np.array_equal(_run(turned, {x: values}), np.rot90(values))
    with pytest.raises(TypeError, match="known rank between 2 and 4"):
        image.rotate(tf.placeholder(tf.float32), 0.1)
    with pytest.raises(TypeError, match="transforms should have rank 1 or 2"):
        image.transform(x, 1.0)
    with pytest.raises(ValueError, match="must have 8 columns, but they have 3"):
        image.transform(x, [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="interpolation must be one of"):
        image.transform(x, [1.0] * 8, "CUBIC")
    with pytest.raises(ValueError, match="transforms cannot be empty"):
        image.compose_transforms()
