"""Images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fuzzing.draws import Call, Draw, T
from fuzzing.table import add


def _image(d: Draw, channels: Sequence[int] = (1, 3), types: Sequence[str] = ("float32",)) -> T:
    lead = (d.size(2),) if d.chance(50) else ()
    count = d.one(*channels) + d.invalid()
    return d.tensor(d.one(*types), (*lead, d.size(5), d.size(5), count), "unit")


def image(names: str, channels: Sequence[int] = (1, 3), types: Sequence[str] = ("float32",),
          extra: Any = None, **more: Any) -> None:  # fmt: skip
    def draw(d: Draw) -> Call:
        given = _image(d, channels, types)
        return d.call(given, *(extra(d) if extra else ()))

    for name in names.split():
        add(f"image.{name}", draw, **more)


KINDS = ("float32", "float32", "uint8", "int32")

image("flip_left_right flip_up_down transpose_image", types=KINDS)
image("rot90", types=KINDS, extra=lambda d: (d.between(-1, 5),))
image("adjust_brightness", types=KINDS, extra=lambda d: (d.one(-0.5, 0.0, 0.25),))
image("adjust_contrast", types=KINDS, extra=lambda d: (d.one(0.0, 0.5, 2.0),), scale=5)
image("adjust_gamma", extra=lambda d: (d.one(0.5, 1.0, 2.0, -1.0),), scale=5)
image("adjust_hue", (3,), extra=lambda d: (d.one(-0.5, 0.25, 0.9),), scale=20)
image("adjust_saturation", (3,), extra=lambda d: (d.one(0.0, 0.5, 2.0),), scale=20)
image(
    "rgb_to_grayscale rgb_to_hsv rgb_to_yiq rgb_to_yuv hsv_to_rgb yiq_to_rgb yuv_to_rgb",
    (3,),
    scale=5,
)
image("grayscale_to_rgb", (1,), types=KINDS)
image("per_image_standardization", scale=20)
image("total_variation", scale=5)
image("image_gradients sobel_edges", scale=5)
image("central_crop", types=KINDS, extra=lambda d: (d.one(0.5, 1.0, 0.3, 1.5),))


def _boxed(d: Draw, pad: bool) -> Call:
    given = _image(d, types=KINDS)
    height, width = given.value.shape[-3:-1]
    top, left = d.between(0, 2), d.between(0, 2)
    if pad:
        box = (top, left, top + height + d.between(0, 2), left + width + d.between(0, 2))
    else:
        box = (top, left, max(0, height - top), max(0, width - left))
    if d.invalid():
        box = (d.one(-1, 9), *box[1:])
    return d.call(given, *box)


add("image.crop_to_bounding_box", lambda d: _boxed(d, False), calls=45)
add("image.pad_to_bounding_box", lambda d: _boxed(d, True), calls=45)
image(
    "resize_image_with_crop_or_pad", types=KINDS, extra=lambda d: (d.between(0, 7), d.between(1, 7))
)


def _convert(d: Draw) -> Call:
    source, target = (d.one("float32", "uint8", "int16", "int32", "float64") for _ in range(2))
    values = d.tensor(source, d.shape(), "unit" if source.startswith("f") else "positive")
    from fuzzing.draws import Dtype

    return d.call(values, Dtype(target), d.chance(40))


add("image.convert_image_dtype", _convert, calls=45)


def _resize(d: Draw) -> Call:
    shape = (d.size(2), d.size(5), d.size(5), d.between(1, 2))
    size = [d.between(1, 6), d.between(1, 6)]
    if d.invalid():
        size[0] = d.one(0, -1)
    more = {"align_corners": True} if d.chance(40) else {}
    return d.call(d.tensor(d.one("float32", "uint8", "int32"), shape, "unit"), size, **more)


for _name in ("bilinear", "nearest_neighbor", "bicubic", "area"):
    add(f"image.resize_{_name}", _resize, scale=5, calls=45)


def _crop_and_resize(d: Draw) -> Call:
    images = d.tensor("float32", (d.between(1, 2), d.between(1, 5), d.between(1, 5), 2), "unit")
    count = d.size(3)
    boxes = d.tensor("float32", (count, 4), d.one("unit", "plain"))
    owners = d.array("int32", (count,), "positive") % len(images.value)
    if count and d.invalid():
        owners[0] = d.one(-1, 2)
    more = {"method": d.one("nearest", "bilinear")} if d.chance(40) else {}
    size = [d.between(1, 3), d.between(1, 3)]
    return d.call(images, boxes, T(owners.astype("int32")), size, **more)


add("image.crop_and_resize", _crop_and_resize, scale=10)


def _suppression(d: Draw) -> Call:
    count = d.between(0, 6)
    corners = d.array("float32", (count, 2), "unit")
    boxes = np.concatenate([corners, corners + d.array("float32", (count, 2), "unit")], -1)
    scores = np.array(d.permutation(count), "float32") / 8
    threshold = d.one(1.5, -0.5) if d.invalid() else d.one(0.1, 0.5, 1.0)
    return d.call(T(boxes.astype("float32")), T(scores), d.between(0, 5), threshold)


add("image.non_max_suppression", _suppression)


def _pair(d: Draw) -> Call:
    lead, size = d.shape(0, 1), d.between(11, 13)
    shape = (*lead, size, size, d.between(1, 2))
    return d.call(d.tensor("float32", shape, "unit"), d.tensor("float32", shape, "unit"), 1.0)


add("image.psnr", _pair, scale=10)
add("image.ssim", _pair, scale=100, calls=10)


def _glimpse(d: Draw) -> Call:
    images = d.tensor("float32", (d.size(2), d.between(4, 6), d.between(4, 6), 1), "unit")
    # What lies outside of an image is filled with random numbers.
    offsets = d.array("float32", (len(images.value), 2), "unit") / 2 - np.float32(0.25)
    more = {"centered": True, "normalized": d.chance(50)}
    return d.call(images, [d.between(1, 2), d.between(1, 2)], T(offsets), **more)


add("image.extract_glimpse", _glimpse)
