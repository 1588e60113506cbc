"""Cutting, padding, flipping and turning images.

An image is ``[height, width, channels]``; all functions take batches ``[batch, height, width,
channels]`` too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from headrace.graph import dtypes
from headrace.graph.graph import get_default_graph
from headrace.graph.shapes import shape_text
from headrace.graph.tensor import Tensor
from headrace.image.shapes import (
    as_size,
    batched,
    image_tensor,
    larger,
    require,
    sizes_vector,
    smaller,
    spatial,
    static_or_none,
    unbatched,
)
from headrace.ops.control.cases_api import case
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.core.static import static_value
from headrace.ops.random.api import random_uniform

__all__ = [
    "central_crop",
    "crop_to_bounding_box",
    "flip_left_right",
    "flip_up_down",
    "pad_to_bounding_box",
    "random_flip_left_right",
    "random_flip_up_down",
    "resize_image_with_crop_or_pad",
    "rot90",
    "transpose",
]


def _rank(image: Tensor) -> int:
    """3 (also where it is unknown) or 4.

    Raises:
        ValueError: for any other.
    """
    dims = image.dims
    if dims is None:
        return 3
    if len(dims) not in (3, 4):
        raise ValueError(
            f"'image' must have either 3 or 4 dimensions, but its shape is {shape_text(dims)}."
        )
    return len(dims)


def _shaped(image: Tensor, result: Tensor) -> Tensor:
    """``result`` with the shape of ``image``."""
    result.set_shape(image.dims)
    return result


def _exchanged(image: Tensor) -> Tensor:
    """Rows and columns of images exchanged; whether there is a batch need not be known."""
    if image.dims is not None:
        return raw.Transpose(image, [1, 0, 2] if _rank(image) == 3 else [0, 2, 1, 3])
    rank = raw.Rank(image)
    last = raw.AddV2(raw.ExpandDims(rank, 0), [-2, -3, -1])
    return raw.Transpose(image, raw.ConcatV2([raw.Range(0, raw.Sub(rank, 3), 1), last], 0))


# -- flips and turns ----------------------------------------------------------------------------


def flip_left_right(image: Any) -> Tensor:
    """Mirror images: the first column becomes the last.

    Args:
        image: ``[height, width, channels]``, or ``[batch, height, width, channels]``, of any dtype.

    Returns:
        A tensor of the same shape and dtype.

    Raises:
        ValueError: if the rank is neither 3 nor 4.
    """
    return _flip(image, 1, "flip_left_right")


def flip_up_down(image: Any) -> Tensor:
    """Turn images upside down: the first row becomes the last.

    Args:
        image: ``[height, width, channels]``, or ``[batch, height, width, channels]``, of any dtype.

    Returns:
        A tensor of the same shape and dtype.

    Raises:
        ValueError: if the rank is neither 3 nor 4.
    """
    return _flip(image, 0, "flip_up_down")


def _flip(image: Any, axis: int, name: str) -> Tensor:
    with get_default_graph().name_scope(name):
        image = image_tensor(image)
        _rank(image)
        return _shaped(image, raw.ReverseV2(image, [axis - 3]))


def random_flip_left_right(image: Any, seed: int | None = None) -> Tensor:
    """Mirror each image with probability one half.

    Args:
        image: ``[height, width, channels]``, or ``[batch, height, width, channels]``, of any dtype.

    Returns:
        A tensor of the same shape and dtype.

    Raises:
        ValueError: if the rank is neither 3 nor 4.
    """
    return _random_flip(image, 1, seed, "random_flip_left_right")


def random_flip_up_down(image: Any, seed: int | None = None) -> Tensor:
    """Turn each image upside down with probability one half.

    Args:
        image: ``[height, width, channels]``, or ``[batch, height, width, channels]``, of any dtype.

    Returns:
        A tensor of the same shape and dtype.

    Raises:
        ValueError: if the rank is neither 3 nor 4.
    """
    return _random_flip(image, 0, seed, "random_flip_up_down")


def _random_flip(image: Any, axis: int, seed: int | None, name: str) -> Tensor:
    with get_default_graph().name_scope(name) as scope:
        image = image_tensor(image)
        if _rank(image) == 3:
            # Both are at hand sooner than a branch is taken.
            flip = raw.Less(random_uniform([], 0, 1.0, seed=seed), 0.5)
            flipped = raw.SelectV2(flip, raw.ReverseV2(image, [axis - 3]), image, name=scope)
            return _shaped(image, flipped)
        count = raw.StridedSlice(raw.Shape(image), [0], [1], [1])
        drawn = random_uniform(count, 0, 1.0, seed=seed)
        shape = raw.ConcatV2([count, [1, 1, 1]], 0)
        # Halves round to even, so that a draw of one half exactly is no flip.
        flips = raw.Greater(raw.Reshape(drawn, shape), 0.5)
        return _shaped(image, raw.SelectV2(flips, raw.ReverseV2(image, [axis + 1]), image))


def transpose(image: Any, name: str | None = None) -> Tensor:
    """Exchange rows and columns of images.

    Args:
        image: ``[height, width, channels]``, or ``[batch, height, width, channels]``, of any dtype.

    Returns:
        A tensor of the same dtype and shape ``[..., width, height, channels]``.

    Raises:
        ValueError: if the rank is neither 3 nor 4.
    """
    with get_default_graph().name_scope(name or "transpose"):
        image = image_tensor(image)
        _rank(image)
        return _exchanged(image)


def rot90(image: Any, k: Any = 1, name: str | None = None) -> Tensor:
    """Turn images by ``k`` quarters of a circle, anticlockwise.

    Args:
        image: any type, ``[height, width, channels]`` or with a batch before that.
        k: a whole number or an int32 scalar tensor, of any sign.

    Returns:
        The same with height and width exchanged for an odd ``k``; both are unknown for a ``k`` that
        only the step knows.

    Raises:
        TypeError: if ``k`` is no whole number.
        ValueError: if ``image`` has fewer than 3 dimensions, or ``k`` is no scalar.
    """
    with get_default_graph().name_scope(name or "rot90") as scope:
        image = image_tensor(image)
        first = _rank(image) - 3
        rows, columns = -3, -2
        turns: list[Callable[[], Tensor]] = [
            lambda: image,
            lambda: _exchanged(raw.ReverseV2(image, [columns])),
            lambda: raw.ReverseV2(image, [rows, columns]),
            lambda: raw.ReverseV2(_exchanged(image), [columns]),
        ]
        turns_wanted = convert_to_tensor(k, dtypes.int32, name="k")
        if turns_wanted.dims not in ((), None):
            raise ValueError(f"k must be a scalar, got shape {shape_text(turns_wanted.dims)}")
        known = static_value(turns_wanted)
        if known is not None:
            turned: Tensor = turns[int(known) % 4]()
            return raw.Identity(turned, name=scope)
        quarter = raw.FloorMod(turns_wanted, 4)
        pairs = [(raw.Equal(quarter, i), turns[i]) for i in (1, 2, 3)]
        result = raw.Identity(case(pairs, default=turns[0], exclusive=True), name=scope)
        dims = image.dims
        if dims is not None:
            result.set_shape([*dims[:first], None, None, dims[-1]])
        return result


# -- cutting and padding ------------------------------------------------------------------------


def central_crop(image: Any, central_fraction: float) -> Tensor:
    """The middle of images: ``central_fraction`` of each side.

    Images have the shape ``[height, width, channels]``, or with a batch before; the dtype stays.

    Raises:
        ValueError: if the fraction is not in (0, 1].
    """
    with get_default_graph().name_scope("central_crop"):
        image = convert_to_tensor(image, name="image")
        if not 0.0 < central_fraction <= 1.0:
            raise ValueError(f"central_fraction must be within (0, 1], got {central_fraction}")
        if central_fraction == 1.0:
            result: Tensor = image
            return result
        images, had_batch = batched(image_tensor(image))
        begins, sizes = zip(*(_middle(n, central_fraction) for n in spatial(images)), strict=True)
        cut = raw.Slice(images, sizes_vector([0, *begins, 0]), sizes_vector([-1, *sizes, -1]))
        return unbatched(_with_sizes(images, cut, sizes), had_batch)


def _middle(size: Any, fraction: float) -> tuple[Any, Any]:
    if isinstance(size, Tensor):
        wide = raw.Cast(size, DstT=dtypes.float64)
        margin = raw.RealDiv(raw.Sub(wide, raw.Mul(wide, fraction)), 2.0)
        begin: Any = raw.Cast(margin, DstT=dtypes.int32)
    else:
        begin = int((size - size * fraction) / 2)
    return begin, size - begin * 2


def _with_sizes(images: Tensor, result: Tensor, sizes: Any) -> Tensor:
    """``result`` with batch and channels of ``images``, and height and width that are known."""
    dims = images.dims or (None,) * 4
    result.set_shape([dims[0], *static_or_none(sizes), dims[3]])
    return result


def crop_to_bounding_box(
    image: Any, offset_height: Any, offset_width: Any, target_height: Any, target_width: Any
) -> Tensor:
    """The part of images that begins at the offsets and has the target size.

    Images have the shape ``[height, width, channels]``, or with a batch before; the dtype stays.

    Raises:
        ValueError: if it does not lie within the image; InvalidArgumentError when run, where that
            is not known before.
    """
    with get_default_graph().name_scope("crop_to_bounding_box"):
        images, had_batch = batched(image_tensor(image))
        top, left, rows, columns = map(
            as_size, (offset_height, offset_width, target_height, target_width)
        )
        height, width = spatial(images)
        images = require(
            images,
            (left >= 0, "offset_width must be >= 0."),
            (top >= 0, "offset_height must be >= 0."),
            (columns > 0, "target_width must be > 0."),
            (rows > 0, "target_height must be > 0."),
            (width >= columns + left, "width must be >= target + offset."),
            (height >= rows + top, "height must be >= target + offset."),
        )
        cut = raw.Slice(
            images, sizes_vector([0, top, left, 0]), sizes_vector([-1, rows, columns, -1])
        )
        return unbatched(_with_sizes(images, cut, (rows, columns)), had_batch)


def pad_to_bounding_box(
    image: Any, offset_height: Any, offset_width: Any, target_height: Any, target_width: Any
) -> Tensor:
    """Images of the target size with zeros around what begins at the offsets.

    Images have the shape ``[height, width, channels]``, or with a batch before; the dtype stays.

    Raises:
        ValueError: if the image does not fit; InvalidArgumentError when run, where that is not
            known before.
    """
    with get_default_graph().name_scope("pad_to_bounding_box"):
        images, had_batch = batched(image_tensor(image))
        top, left, rows, columns = map(
            as_size, (offset_height, offset_width, target_height, target_width)
        )
        height, width = spatial(images)
        below, right = rows - top - height, columns - left - width
        images = require(
            images,
            (top >= 0, "offset_height must be >= 0"),
            (left >= 0, "offset_width must be >= 0"),
            (right >= 0, "width must be <= target - offset"),
            (below >= 0, "height must be <= target - offset"),
        )
        flat = sizes_vector([0, 0, top, below, left, right, 0, 0])
        if isinstance(flat, Tensor):
            paddings: Any = raw.Reshape(flat, [4, 2])
        else:
            paddings = np.array(flat, np.int32).reshape(4, 2)
        padded = raw.Pad(images, paddings)
        return unbatched(_with_sizes(images, padded, (rows, columns)), had_batch)


def resize_image_with_crop_or_pad(image: Any, target_height: Any, target_width: Any) -> Tensor:
    """Images of the target size: sides that are longer are cut, shorter ones padded with zeros.

    Both happen around the centre.

    The shape is ``[height, width, channels]``, or that with a batch before; the dtype stays.

    Raises:
        ValueError: if a target is not above 0, or the image has neither 3 nor 4 dimensions.
    """
    with get_default_graph().name_scope("resize_image_with_crop_or_pad"):
        images, had_batch = batched(image_tensor(image))
        rows, columns = as_size(target_height), as_size(target_width)
        images = require(
            images,
            (columns > 0, "target_width must be > 0."),
            (rows > 0, "target_height must be > 0."),
        )
        height, width = spatial(images)
        more_rows, more_columns = rows - height, columns - width
        cut = crop_to_bounding_box(
            images,
            larger(-more_rows // 2, 0),
            larger(-more_columns // 2, 0),
            smaller(rows, height),
            smaller(columns, width),
        )
        padded = pad_to_bounding_box(
            cut, larger(more_rows // 2, 0), larger(more_columns // 2, 0), rows, columns
        )
        return unbatched(padded, had_batch)
