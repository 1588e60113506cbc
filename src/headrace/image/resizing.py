"""Resizing images, by TensorFlow's pixel rules."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.graph import dtypes
from headrace.graph.graph import get_default_graph
from headrace.graph.shapes import shape_text
from headrace.graph.tensor import Tensor
from headrace.image.layout import pad_to_bounding_box
from headrace.image.shapes import (
    as_size,
    batched,
    image_tensor,
    require,
    sizes_vector,
    spatial,
    unbatched,
)
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.core.static import static_shape, static_value

__all__ = [
    "ResizeMethod",
    "resize_area",
    "resize_bicubic",
    "resize_bilinear",
    "resize_image_with_pad",
    "resize_images",
    "resize_nearest_neighbor",
]


class ResizeMethod:
    """How to resize; the names ("bilinear" ...) stand for the numbers too.

    >>> image = tf.reshape([1.0, 2.0], [1, 2, 1])
    >>> nearest = tf.image.ResizeMethod.NEAREST_NEIGHBOR
    >>> tf.Session().run(tf.image.resize_images(image, [1, 4], nearest)).ravel().tolist()
    [1.0, 1.0, 2.0, 2.0]
    """

    BILINEAR = 0
    NEAREST_NEIGHBOR = 1
    BICUBIC = 2
    AREA = 3


_OPS = {
    ResizeMethod.BILINEAR: "ResizeBilinear",
    ResizeMethod.NEAREST_NEIGHBOR: "ResizeNearestNeighbor",
    ResizeMethod.BICUBIC: "ResizeBicubic",
    ResizeMethod.AREA: "ResizeArea",
    "bilinear": "ResizeBilinear",
    "nearest": "ResizeNearestNeighbor",
    "bicubic": "ResizeBicubic",
    "area": "ResizeArea",
}


def resize_images(
    images: Any,
    size: Any,
    method: Any = ResizeMethod.BILINEAR,
    align_corners: Any = False,
    preserve_aspect_ratio: Any = False,
    name: str | None = None,
) -> Tensor:
    """Images of another size.

    Args:
        images: ``[batch, height, width, channels]`` or ``[height, width, channels]``.
        size: ``[height, width]``, numbers or an int32 tensor. (Releases before 1.0 took height,
            width and then the other arguments; that is accepted.)
        method: one of ``ResizeMethod``.
        align_corners: whether the centres of the corner pixels stay where they are.
        preserve_aspect_ratio: whether ``size`` is only the room that the image must fit in.

    Returns:
        float32 images; of the own type with the nearest neighbour, or when nothing changes.

    Raises:
        ValueError: if the rank of ``images`` is unknown or neither 3 nor 4, ``size`` is not of two
            elements, or the method is none of those.
    """
    if isinstance(size, (int, np.integer)):
        # The order of releases 0.x: new_height, new_width, method, align_corners.
        size = [size, method]
        method, align_corners = int(align_corners), bool(preserve_aspect_ratio)
        preserve_aspect_ratio = False
    op = _OPS.get(method)
    if op is None:
        raise ValueError(f"Resize method is not implemented: {method!r} is none of {list(_OPS)}")
    with get_default_graph().name_scope(name or "resize"):
        images = convert_to_tensor(images, name="images")
        if images.dims is None:
            raise ValueError("'images' contains no shape.")
        images, had_batch = batched(images)
        size = _size_tensor(size)
        if preserve_aspect_ratio:
            size = _fitting(images, size)
        dims = images.dims or (None,) * 4
        known = static_shape(size) or (None, None)
        if None not in known and dims[1:3] == known:
            return unbatched(images, had_batch)
        resized = getattr(raw, op)(images, size, align_corners=bool(align_corners))
        resized.set_shape([None, *known, None])
        return unbatched(resized, had_batch)


def _size_tensor(size: Any) -> Tensor:
    try:
        tensor = convert_to_tensor(size, dtypes.int32, name="size")
    except (TypeError, ValueError):
        raise ValueError(f"'size' must be a 1-D int32 Tensor, got {size!r}") from None
    if tensor.dims is not None and tensor.dims not in ((2,), (None,)):
        raise ValueError(
            "'size' must be a 1-D Tensor of 2 elements: new_height, new_width; its shape is "
            f"{shape_text(tensor.dims)}"
        )
    return tensor


def _fitting(images: Tensor, size: Tensor) -> Tensor:
    """The largest size within ``size`` that has the shape of the images."""
    height, width = spatial(images)
    room = static_value(size)
    if room is not None and not isinstance(height, Tensor) and not isinstance(width, Tensor):
        own = np.array([height, width], np.float32)
        scale = np.min(room.astype(np.float32) / own)
        return convert_to_tensor(np.rint(scale * own).astype(np.int32))
    own_size = raw.Cast(raw.StridedSlice(raw.Shape(images), [1], [3], [1]), DstT=dtypes.float32)
    scales = raw.RealDiv(raw.Cast(size, DstT=dtypes.float32), own_size)
    scaled = raw.Round(raw.Mul(raw.Min(scales, 0), own_size))
    return raw.Cast(scaled, DstT=dtypes.int32)


def resize_bilinear(
    images: Any,
    size: Any,
    align_corners: bool = False,
    name: str | None = None,
    half_pixel_centers: bool = False,
) -> Tensor:
    """Images ``[batch, *size, channels]``: each pixel mixed from the four around its place.

    Args:
        images: ``[batch, height, width, channels]`` of numbers.
        size: ``[height, width]``.
        align_corners: whether the centres of the corner pixels stay where they are.
        half_pixel_centers: whether a pixel's place is its centre and not its corner.

    Returns:
        float32.

    Raises:
        ValueError: for other ranks; InvalidArgumentError when run, for a size not above 0.
    """
    return raw.ResizeBilinear(
        images,
        size,
        align_corners=align_corners,
        half_pixel_centers=half_pixel_centers,
        name=name,
    )


def resize_bicubic(
    images: Any,
    size: Any,
    align_corners: bool = False,
    name: str | None = None,
    half_pixel_centers: bool = False,
) -> Tensor:
    """From the sixteen pixels around each place, by cubic polynomials.

    Keys, "Cubic convolution interpolation for digital image processing" (1981), whose parameter a
    is -0.5 if ``half_pixel_centers``, and -0.75 otherwise, as in TensorFlow.

    Args:
        images: numbers ``[batch, height, width, channels]``.
        size: int32 ``[new height, new width]``.
        align_corners: whether the centres of the four corner pixels stay where they are.
        half_pixel_centers: whether a pixel stands for its centre, not for its upper left corner.

    Returns:
        float32 ``[batch, new height, new width, channels]``.

    Raises:
        TypeError: if the types are others.
        ValueError: if ``images`` is not of rank 4 or ``size`` not ``[2]``.
        InvalidArgumentError: when run, if a size is not above 0, of the new images or the old, or
            both switches are on.
    """
    return raw.ResizeBicubic(
        images,
        size,
        align_corners=align_corners,
        half_pixel_centers=half_pixel_centers,
        name=name,
    )


def resize_nearest_neighbor(
    images: Any,
    size: Any,
    align_corners: bool = False,
    name: str | None = None,
    half_pixel_centers: bool = False,
) -> Tensor:
    """Each pixel the nearest old one.

    Args:
        images: numbers ``[batch, height, width, channels]``.
        size: int32 ``[new height, new width]``.
        align_corners: whether the centres of the four corner pixels stay where they are.
        half_pixel_centers: whether a pixel stands for its centre, not for its upper left corner.

    Returns:
        ``[batch, new height, new width, channels]`` of the type of ``images``.

    Raises:
        TypeError: if the types are others.
        ValueError: if ``images`` is not of rank 4 or ``size`` not ``[2]``.
        InvalidArgumentError: when run, if a size is not above 0, of the new images or the old, or
            both switches are on.
    """
    return raw.ResizeNearestNeighbor(
        images,
        size,
        align_corners=align_corners,
        half_pixel_centers=half_pixel_centers,
        name=name,
    )


def resize_area(
    images: Any, size: Any, align_corners: bool = False, name: str | None = None
) -> Tensor:
    """Each pixel the mean of the area of ``images`` that it covers.

    Args:
        images: numbers ``[batch, height, width, channels]``.
        size: int32 ``[new height, new width]``.
        align_corners: whether the centres of the four corner pixels stay where they are.

    Returns:
        float32 ``[batch, new height, new width, channels]``.

    Raises:
        TypeError: if the types are others.
        ValueError: if ``images`` is not of rank 4 or ``size`` not ``[2]``.
        InvalidArgumentError: when run, if a size is not above 0, of the new images or the old.
    """
    return raw.ResizeArea(images, size, align_corners=align_corners, name=name)


def resize_image_with_pad(
    image: Any,
    target_height: Any,
    target_width: Any,
    method: Any = ResizeMethod.BILINEAR,
    align_corners: bool = False,
) -> Tensor:
    """Images resized to fit into the target, with zeros on both sides of the shorter dimension.

    Args:
        image: numbers ``[height, width, channels]``, or with a batch before that.
        target_height, target_width: whole numbers or int32 scalars.
        method: how to resize, as for ``resize_images``.

    Returns:
        ``[target_height, target_width, channels]`` with the batch if there was one; float32, unless
        the method is the nearest neighbour.

    Raises:
        ValueError: if a target is known not to be above 0, the image has neither 3 nor 4
            dimensions, or there is no such method.
        InvalidArgumentError: when run, if a target turns out not to be above 0.
    """
    with get_default_graph().name_scope("resize_image_with_pad"):
        images, had_batch = batched(image_tensor(image))
        rows, columns = as_size(target_height), as_size(target_width)
        images = require(
            images,
            (columns > 0, "target_width must be > 0."),
            (rows > 0, "target_height must be > 0."),
        )
        sides = (*spatial(images), rows, columns)
        if any(isinstance(s, Tensor) for s in sides):
            fit: tuple[Any, ...] = _fit_tensors(*(_double(s) for s in sides))
        else:
            fit = _fit_numbers(*map(float, sides))
        *size, top, left = fit
        resized = resize_images(images, sizes_vector(size), method, align_corners=align_corners)
        padded = pad_to_bounding_box(resized, top, left, rows, columns)
        return unbatched(padded, had_batch)


def _double(size: Any) -> Tensor:
    tensor = convert_to_tensor(size, dtypes.int32) if not isinstance(size, Tensor) else size
    return raw.Cast(tensor, DstT=dtypes.float64)


def _fit_numbers(
    height: float, width: float, rows: float, columns: float
) -> tuple[int, int, int, int]:
    ratio = max(width / columns, height / rows)
    tall, wide = height / ratio, width / ratio
    top, left = (max(0, int((a - b) // 2)) for a, b in ((rows, tall), (columns, wide)))
    return int(tall), int(wide), top, left


def _fit_tensors(height: Any, width: Any, rows: Any, columns: Any) -> tuple[Tensor, ...]:
    ratio = raw.Maximum(raw.RealDiv(width, columns), raw.RealDiv(height, rows))
    tall, wide = raw.RealDiv(height, ratio), raw.RealDiv(width, ratio)
    margins = [
        raw.Maximum(0, _whole(raw.RealDiv(raw.Sub(a, b), 2.0)))
        for a, b in ((rows, tall), (columns, wide))
    ]
    return _whole(tall), _whole(wide), *margins


def _whole(x: Tensor) -> Tensor:
    return raw.Cast(raw.Floor(x), DstT=dtypes.int32)
