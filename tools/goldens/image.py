"""Images: files, sizes, colours, boxes and random changes.

`images/` holds small files of each format, written with Pillow and by hand (16 bits of colour,
animation). Where a program reads JPEG files it asks for the accurate transform, which both
libraries then compute alike; without, they differ by a few levels.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from . import golden

FILES = {p.name: p.read_bytes() for p in sorted((Path(__file__).parent / "images").iterdir())}
SIZES = ((3, 4), (7, 14), (1, 1), (9, 5))


def _image(*shape: int, seed: int = 0, high: float = 1.0) -> Any:
    return (np.random.default_rng(seed).random(shape) * high).astype(np.float32)


def _bytes(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).integers(0, 256, shape).astype(np.uint8)


def _joined(tf: Any, tensors: list[Any]) -> Any:
    """All elements of tensors of one type: an array in the file takes more room than these."""
    return tf.concat([tf.reshape(t, [-1]) for t in tensors], 0)


@golden()
def jpeg(tf: Any) -> dict[str, Any]:
    results = {}
    options = {"dct_method": "INTEGER_ACCURATE"}
    for name in ("rgb.jpg", "progressive.jpg", "grey.jpg", "cmyk.jpg"):
        for channels in (0, 3) if name == "cmyk.jpg" else (0, 1, 3):
            results[f"{name}_{channels}"] = tf.image.decode_jpeg(FILES[name], channels, **options)
    for ratio in (2, 4, 8):
        results[f"ratio_{ratio}"] = tf.image.decode_jpeg(FILES["rgb.jpg"], ratio=ratio, **options)
    results["plain"] = tf.image.decode_jpeg(FILES["rgb.jpg"], fancy_upscaling=False)
    results["part"] = tf.image.decode_and_crop_jpeg(
        FILES["progressive.jpg"], [2, 3, 4, 5], **options
    )
    results["shape"] = tf.image.extract_jpeg_shape(FILES["rgb.jpg"])
    results["png_by_jpeg"] = tf.image.decode_jpeg(FILES["rgb.png"])
    results["is_jpeg"] = tf.image.is_jpeg(FILES["rgb.jpg"])
    results["is_no_jpeg"] = tf.image.is_jpeg(FILES["rgb.png"])
    return results


@golden(atol=3)
def jpeg_by_default(tf: Any) -> dict[str, Any]:
    """As floats: whole levels, of which three are allowed to differ."""
    names = ("rgb.jpg", "progressive.jpg", "grey.jpg", "cmyk.jpg")
    return {n: tf.cast(tf.image.decode_jpeg(FILES[n]), tf.float32) for n in names}


@golden()
def png(tf: Any) -> dict[str, Any]:
    results = {}
    for name, file in FILES.items():
        if not name.endswith(".png"):
            continue
        # Of files with less than 8 bits TensorFlow makes images that are nearly transparent.
        full = name not in ("palette.png", "bilevel.png")
        results[name] = tf.image.decode_png(file)
        for kind in (tf.uint8, tf.uint16):
            read = [tf.image.decode_png(file, c, kind) for c in ((1, 3, 4) if full else (1, 3))]
            results[f"{name}_{kind.name}"] = _joined(tf, read)
    return results


@golden()
def gif_and_bmp(tf: Any) -> dict[str, Any]:
    results = {
        "still": tf.image.decode_gif(FILES["still.gif"]),
        "animated": tf.image.decode_gif(FILES["animated.gif"]),
        "first": tf.image.decode_image(FILES["animated.gif"], expand_animations=False),
        "cut_off": tf.image.decode_gif(FILES["animated.gif"][:-40]),
        "by_png": tf.image.decode_png(FILES["still.gif"]),
    }
    for name in ("rgb.bmp", "rgba.bmp", "grey.bmp", "top_down.bmp"):
        for channels in (0, 3, 4):
            results[f"{name}_{channels}"] = tf.image.decode_bmp(FILES[name], channels)
    return results


@golden()
def any_format(tf: Any) -> dict[str, Any]:
    results = {}
    for name in ("rgba.png", "grey16.png", "still.gif", "rgb.bmp"):
        for dtype in (tf.uint8, tf.uint16, tf.float32):
            results[f"{name}_{dtype.name}"] = tf.image.decode_image(FILES[name], dtype=dtype)
    return results


@golden()
def written_files(tf: Any) -> dict[str, Any]:
    """JPEG files in colour are the same bytes; others are read again."""
    pixels = tf.constant(_bytes(9, 11, 3))
    grey = tf.constant(_bytes(9, 11, 1))
    write = tf.image.encode_jpeg
    results = {
        "jpeg": write(pixels),
        "grey": tf.image.decode_jpeg(
            write(grey, format="grayscale", quality=40), dct_method="INTEGER_ACCURATE"
        ),
        "progressive": write(pixels, quality=20, progressive=True, density_unit="cm", x_density=7),
        "full_colour": write(pixels, chroma_downsampling=False, optimize_size=True),
        "metadata": write(pixels, xmp_metadata="<x/>", y_density=72),
    }
    for channels in (1, 2, 3, 4):
        for kind in (np.uint8, np.uint16):
            pixels = tf.constant(
                _bytes(5, 7, channels).astype(kind) * (1 if kind is np.uint8 else 251)
            )
            file = tf.image.encode_png(pixels, compression=channels)
            name = f"png_{channels}_{np.dtype(kind).name}"
            results[name] = tf.image.decode_png(file, dtype=tf.as_dtype(kind))
    return results


@golden(rtol=2e-5, atol=2e-3)
def resizing(tf: Any) -> dict[str, Any]:
    x, narrow = tf.constant(_image(2, 5, 7, 2, high=255)), tf.constant(_bytes(1, 6, 1, 2))
    results = {}
    for kind in ("bilinear", "bicubic", "nearest_neighbor", "area"):
        resize = getattr(tf.image, f"resize_{kind}")
        for rule in ("align_corners", "half_pixel_centers", None):
            if kind == "area" and rule == "half_pixel_centers":
                continue
            options = {} if rule is None else {rule: True}
            name = f"{kind}_{rule}"
            results[name] = _joined(tf, [resize(x, size, **options) for size in SIZES])
            results[f"{name}_narrow"] = _joined(
                tf, [resize(narrow, size, **options) for size in SIZES]
            )
    return results


@golden(rtol=1e-4, atol=1e-4)
def resizing_gradients(tf: Any) -> dict[str, Any]:
    x = tf.constant(_image(2, 5, 7, 2))
    results = {}
    for kind in ("bilinear", "bicubic", "nearest_neighbor"):
        for size in ((3, 4), (9, 16)):
            for rule in ("align_corners", "half_pixel_centers", None):
                options = {} if rule is None else {rule: True}
                y = getattr(tf.image, f"resize_{kind}")(x, size, **options)
                weights = tf.constant(_image(2, *size, 2, seed=1))
                name = f"{kind}_{size[0]}x{size[1]}_{rule}"
                results[name] = tf.gradients(tf.reduce_sum(y * weights), x)[0]
    return results


@golden(rtol=2e-5, atol=1e-4)
def resize_images(tf: Any) -> dict[str, Any]:
    x = tf.constant(_image(5, 8, 3, high=9))
    unknown = tf.placeholder(tf.float32, [None, None, 3])
    feed = {unknown: _image(5, 8, 3, high=9)}
    batch = tf.constant(_bytes(2, 5, 8, 1))
    resize = tf.image.resize_images
    return {
        "bilinear": resize(x, [3, 4]),
        "bicubic": resize(x, tf.constant([10, 3]), tf.image.ResizeMethod.BICUBIC),
        "nearest": resize(batch, (4, 4), method=tf.image.ResizeMethod.NEAREST_NEIGHBOR),
        "area": resize(batch, (2, 4), tf.image.ResizeMethod.AREA, align_corners=True),
        "same": resize(batch, (5, 8)),
        "keeps_ratio": resize(x, [7, 7], preserve_aspect_ratio=True),
        "keeps_ratio_unknown": (resize(unknown, [3, 20], preserve_aspect_ratio=True), feed),
        "unknown": (resize(unknown, [7, 7], align_corners=True), feed),
        "padded": tf.image.resize_image_with_pad(x, 9, 9),
        "padded_down": tf.image.resize_image_with_pad(batch, 4, 3, 1),
        "padded_unknown": (tf.image.resize_image_with_pad(unknown, 7, 4, align_corners=True), feed),
    }


@golden()
def cutting_and_turning(tf: Any) -> dict[str, Any]:
    x, batch = tf.constant(_bytes(5, 7, 2)), tf.constant(_bytes(2, 4, 5, 1))
    unknown = tf.placeholder(tf.uint8, [None, None, 2])
    feed = {unknown: _bytes(5, 7, 2)}
    k = tf.placeholder(tf.int32, [])
    results: dict[str, Any] = {
        "central": tf.image.central_crop(x, 0.6),
        "central_batch": tf.image.central_crop(batch, 0.5),
        "central_unknown": (tf.image.central_crop(unknown, 0.3), feed),
        "cut": tf.image.crop_to_bounding_box(x, 1, 2, 3, 4),
        "cut_unknown": (tf.image.crop_to_bounding_box(unknown, 1, 2, 3, 4), feed),
        "padded": tf.image.pad_to_bounding_box(batch, 2, 1, 9, 8),
        "padded_unknown": (tf.image.pad_to_bounding_box(unknown, 0, 1, 9, 8), feed),
        "turned_unknown": (tf.image.rot90(unknown, k), {**feed, k: -1}),
    }
    for rows, columns in ((3, 9), (8, 3), (6, 8), (4, 6), (5, 7)):
        for name, image in (("", x), ("_batch", batch)):
            key = f"fitted{name}_{rows}x{columns}"
            results[key] = tf.image.resize_image_with_crop_or_pad(image, rows, columns)
        fitted = tf.image.resize_image_with_crop_or_pad(unknown, rows, columns)
        results[f"fitted_unknown_{rows}x{columns}"] = (fitted, feed)
    for name, image in (("", x), ("_batch", batch)):
        results[f"left_right{name}"] = tf.image.flip_left_right(image)
        results[f"up_down{name}"] = tf.image.flip_up_down(image)
        results[f"transposed{name}"] = tf.image.transpose_image(image)
        for turns in (0, 1, 2, 3, 5):
            results[f"turned{name}_{turns}"] = tf.image.rot90(image, turns)
    return results


@golden()
def types(tf: Any) -> dict[str, Any]:
    kinds = (tf.uint8, tf.uint16, tf.int8, tf.int16, tf.int32, tf.float16, tf.float32, tf.float64)
    floats = tf.constant(np.float32([0, 0.25, 0.499, 0.5, 0.998, 1.0]))
    outside = tf.constant(np.float32([-0.5, 1.0, 1.5]))
    results = {}
    for kind in kinds:
        whole = [tf.constant(np.array([0, 1, 2, 100, 127]).astype(k.as_numpy_dtype)) for k in kinds]
        changed = [tf.image.convert_image_dtype(w, kind) for w in whole if w.dtype != kind]
        results[f"to_{kind.name}"] = _joined(tf, changed)
        if kind.is_integer and kind is not tf.int32:
            results[f"floats_to_{kind.name}"] = tf.image.convert_image_dtype(floats, kind)
            results[f"outside_to_{kind.name}"] = tf.image.convert_image_dtype(outside, kind, True)
    negative = tf.constant(np.int16([-300, -5, 300, 32767]))
    results["saturated"] = tf.image.convert_image_dtype(negative, tf.uint8, saturate=True)
    return results


@golden(rtol=1e-5, atol=1e-5)
def colours(tf: Any) -> dict[str, Any]:
    x = _image(4, 5, 3)
    x[0, 0], x[0, 1], x[0, 2], x[0, 3] = 0, 0.5, [0.7, 0.2, 0.7], [0.1, 0.9, 0.9]
    x = tf.constant(x)
    grey = tf.constant(_bytes(3, 4, 1))
    results = {name: getattr(tf.image, name)(x) for name in ("rgb_to_hsv", "hsv_to_rgb")}
    for space in ("yiq", "yuv"):
        results[f"rgb_to_{space}"] = getattr(tf.image, f"rgb_to_{space}")(x)
        results[f"{space}_to_rgb"] = getattr(tf.image, f"{space}_to_rgb")(x)
    results["grey"] = tf.image.rgb_to_grayscale(x)
    results["grey_bytes"] = tf.image.rgb_to_grayscale(tf.constant(_bytes(2, 3, 4, 3)))
    results["from_grey"] = tf.image.grayscale_to_rgb(grey)
    unknown = tf.placeholder(tf.uint8)
    results["from_grey_unknown"] = (tf.image.grayscale_to_rgb(unknown), {unknown: _bytes(2, 3, 1)})
    return results


@golden(rtol=1e-5, atol=2e-5)
def adjustments(tf: Any) -> dict[str, Any]:
    results = {}
    image = tf.image
    for name, x in (
        ("", tf.constant(_image(2, 4, 5, 3))),
        ("_bytes", tf.constant(_bytes(4, 5, 3))),
    ):
        results[f"brightness{name}"] = image.adjust_brightness(x, 0.2)
        results[f"contrast{name}"] = image.adjust_contrast(x, 1.7)
        results[f"gamma{name}"] = image.adjust_gamma(x, 0.7, 1.2)
        results[f"hue{name}"] = image.adjust_hue(x, 0.3)
        results[f"hue_back{name}"] = image.adjust_hue(x, -0.8)
        results[f"saturation{name}"] = image.adjust_saturation(x, 0.4)
        results[f"more_saturation{name}"] = image.adjust_saturation(x, 3.0)
        results[f"standard{name}"] = image.per_image_standardization(x)
    results["standard_even"] = image.per_image_standardization(tf.fill([3, 4, 1], 7.0))
    return results


@golden(rtol=1e-5, atol=2e-5, with_session=True)
def random_changes(tf: Any, session: Any) -> dict[str, Any]:
    x, batch = tf.constant(_image(4, 5, 3)), tf.constant(_image(5, 2, 3, 1))
    image = tf.image
    fetches = {
        "left_right": image.random_flip_left_right(x, seed=1),
        "left_right_batch": image.random_flip_left_right(batch, seed=2),
        "up_down": image.random_flip_up_down(x, seed=3),
        "up_down_batch": image.random_flip_up_down(batch, seed=4),
        "brightness": image.random_brightness(x, 0.3, seed=5),
        "contrast": image.random_contrast(x, 0.2, 1.8, seed=6),
        "hue": image.random_hue(x, 0.4, seed=7),
        "saturation": image.random_saturation(x, 0.2, 1.8, seed=8),
        "crop": tf.random_crop(x, [2, 3, 3], seed=9),
    }
    results = {}
    for step in range(4):
        results |= {f"{name}_{step}": value for name, value in session.run(fetches).items()}
    return results


@golden(rtol=1e-4, atol=1e-4)
def measures(tf: Any) -> dict[str, Any]:
    x, y = tf.constant(_image(2, 16, 18, 3)), tf.constant(_image(2, 16, 18, 3, seed=1) * 0.3)
    image = tf.image
    down, across = image.image_gradients(x)
    tall = tf.constant(_image(1, 37, 50, 1))
    other = tall * 0.9 + tf.constant(_image(1, 37, 50, 1, seed=2)) * 0.1
    whole = tf.constant(_bytes(3, 12, 12, 1))
    unknown = tf.placeholder(tf.float32, [None, None, None, 1])
    feed = {unknown: _image(1, 37, 50, 1, seed=5)}
    scales = {"power_factors": (0.3, 0.3, 0.4), "filter_size": 5}
    return {
        "variation": image.total_variation(x),
        "variation_one": image.total_variation(x[0]),
        "down": down[:, 13:],
        "across": across[:, :, 14:],
        "sobel": image.sobel_edges(x)[:, ::5, ::6],
        "psnr": image.psnr(x, y, 1.0),
        "psnr_bytes": image.psnr(whole[:1], whole, 255),
        "ssim": image.ssim(x, y, 1.0),
        "ssim_bytes": image.ssim(whole, whole[:1], 255, filter_size=7),
        "ssim_scales": image.ssim_multiscale(tall, other, 1.0, **scales),
        "ssim_scales_unknown": (image.ssim_multiscale(unknown, tall, 1.0, **scales), feed),
    }


@golden(rtol=1e-4, atol=1e-4)
def parts(tf: Any) -> dict[str, Any]:
    x = tf.constant(_image(2, 6, 8, 2))
    boxes = np.float32(
        [[0, 0, 1, 1], [0.1, 0.2, 0.8, 0.9], [0.87, 0.72, 0.13, 0.31], [-0.31, 0.2, 0.6, 1.43]]
    )
    which = np.int32([0, 1, 1, 0])
    results = {}
    given = tf.constant(boxes)
    for size in ((3, 4), (1, 1), (9, 7)):
        for method in ("bilinear", "nearest"):
            cut = tf.image.crop_and_resize(x, given, which, size, method, -1.0)
            results[f"crops_{method}_{size[0]}"] = cut
            weights = tf.constant(_image(4, *size, 2, seed=3))
            by_image, by_boxes = tf.gradients(tf.reduce_sum(cut * weights), [x, given])
            results[f"crops_{method}_{size[0]}_by_image"] = by_image
            if method == "bilinear":
                results[f"crops_{method}_{size[0]}_by_boxes"] = by_boxes
    results["crops_bytes"] = tf.image.crop_and_resize(_bytes(2, 6, 8, 1), boxes, which, [2, 3])
    inside = np.float32([[0.0, 0.1], [-0.2, 0.2]])
    for centered in (True, False):
        for normalized in (True, False):
            places = inside if normalized else np.float32([[1, 0], [0, 1]])
            places = places if centered else np.abs(places) + np.float32(0.4 if normalized else 3)
            glimpse = tf.image.extract_glimpse(
                x, [3, 3], places, centered=centered, normalized=normalized
            )
            results[f"glimpse_{centered}_{normalized}"] = glimpse
    return results


def _some_boxes(count: int, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    corner, size = rng.random((count, 2)) * 0.7, rng.random((count, 2)) * 0.4
    return np.concatenate([corner, corner + size], axis=1).astype(np.float32)


@golden(rtol=1e-5, atol=1e-6)
def suppression(tf: Any) -> dict[str, Any]:
    image = tf.image
    boxes = _some_boxes(40, 0)
    boxes[3], boxes[5, [0, 2]] = boxes[7], boxes[5, [2, 0]]
    scores = np.float32(np.random.default_rng(1).integers(0, 25, 40)) / 25
    results: dict[str, Any] = {}
    for overlap in (0.0, 0.2, 0.5, 1.0):
        results[f"chosen_{overlap}"] = image.non_max_suppression(boxes, scores, 30, overlap)
    results["by_score"] = image.non_max_suppression(boxes, scores, 9, 0.3, 0.4)
    soft = image.non_max_suppression_with_scores(boxes, scores, 30, 0.9, 0.2, soft_nms_sigma=0.4)
    results["soft"], results["soft_scores"] = soft
    hard = image.non_max_suppression_with_scores(boxes, scores, 30, 0.3, 0.2)
    results["hard"], results["hard_scores"] = hard
    plain = _some_boxes(40, 8)
    padded = image.non_max_suppression_padded(plain, scores, 35, 0.1, pad_to_max_output_size=True)
    results["padded"], results["valid"] = padded
    measure = np.random.default_rng(2).random((40, 40)).astype(np.float32)
    measure = (measure + measure.T) / 2
    results["measure"] = image.non_max_suppression_overlaps(measure, scores, 30, 0.7, 0.1)
    several = np.stack([_some_boxes(20, 5), _some_boxes(20, 6)])
    chances = np.random.default_rng(3).random((2, 20, 3)).astype(np.float32)
    for name, given in (
        ("one", several[:, :, None]),
        ("each", np.stack([several] * 3, axis=2) * 1.1),
    ):
        for pads in (False, True):
            found = image.combined_non_max_suppression(given, chances, 4, 20, 0.3, 0.5, pads)
            for part, value in zip(("boxes", "scores", "classes", "valid"), found, strict=True):
                results[f"combined_{name}_{pads}_{part}"] = value
    return results


@golden(with_session=True)
def drawn_boxes(tf: Any, session: Any) -> dict[str, Any]:
    boxes = np.float32([[[0.1, 0.2, 0.7, 0.9], [-0.2, 0.5, 0.5, 1.3], [0.6, 0.1, 1.5, 0.4]]])
    results = {}
    for depth in (1, 3, 4):
        x = tf.constant(_image(1, 7, 9, depth))
        results[f"drawn_{depth}"] = session.run(tf.image.draw_bounding_boxes(x, boxes))
    colours = np.float32([[0.2, 0.3, 0.4], [0.9, 0.8, 0.7]])
    drawn = tf.image.draw_bounding_boxes(x[..., :3], boxes, colors=colours)
    results["own_colours"] = session.run(drawn)
    return results


@golden(with_session=True)
def random_boxes(tf: Any, session: Any) -> dict[str, Any]:
    objects = np.float32([[[0.2, 0.3, 0.8, 0.7], [0.0, 0.0, 0.3, 0.3]]])
    sample = tf.image.sample_distorted_bounding_box
    none = np.zeros((1, 0, 4), np.float32)
    fetches = {
        "one": sample([40, 61, 3], objects, seed=1, seed2=2),
        "covered": sample([33, 57, 3], objects, 3, 4, 0.9, (0.5, 2.0), (0.3, 0.9), 20),
        "whole": sample([23, 17, 3], none, 5, 6, use_image_if_no_bounding_boxes=True),
        "hard": sample([41, 17, 3], objects, 7, 8, 1.0, (0.4, 0.5), (0.05, 0.1), 10),
    }
    results = {}
    for step in range(5):
        for name, found in session.run(fetches).items():
            for part, value in zip(("begin", "size", "box"), found, strict=True):
                results[f"{name}_{part}_{step}"] = value
    return results
