"""Resizing images ``[batch, height, width, channels]``: TensorFlow's pixel rules.

Every function takes the array module first (NumPy or JAX). Positions and weights along each axis
depend on sizes alone: they are computed in float32, as TensorFlow's kernels do, when the kernel is
traced. Gradients are products with the matrices of these weights.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Indices = NDArray[np.int64]

_TABLE = 1024


def _scale(size: int, new: int, align_corners: bool) -> np.float32:
    """How many old pixels a new one stands for."""
    if align_corners and new > 1:
        return np.float32(size - 1) / np.float32(new - 1)
    return np.float32(size) / np.float32(new)


def _positions(size: int, new: int, align_corners: bool, half_pixel_centers: bool) -> Floats:
    """Where the centre of each new pixel lies among the old ones."""
    scale = _scale(size, new, align_corners)
    place = np.arange(new, dtype=np.float32)
    if half_pixel_centers:
        return (place + np.float32(0.5)) * scale - np.float32(0.5)
    return place * scale


def check_sizes(images: Any, size: Any, align_corners: bool, half_pixel_centers: bool) -> None:
    """Refuse what cannot be resized.

    Raises:
        ValueError: see the messages.
    """
    if images.ndim != 4:
        raise ValueError(f"input must be 4-dimensional, got shape {list(images.shape)}")
    if np.shape(size) != (2,):
        raise ValueError(f"shape_t must have two elements, got shape {list(np.shape(size))}")
    if min(size) <= 0:
        raise ValueError(f"output dimensions must be positive, got {list(map(int, size))}")
    if not (images.shape[1] and images.shape[2]):
        raise ValueError(f"input image must be of non-zero size, got {list(images.shape)}")
    if align_corners and half_pixel_centers:
        raise ValueError("If half_pixel_centers is True, align_corners must be False.")


# -- bilinear -----------------------------------------------------------------------------------


def _linear(
    size: int, new: int, align_corners: bool, half_pixel_centers: bool
) -> tuple[Indices, Indices, Floats]:
    """The two old pixels of each new one, and the weight of the second."""
    position = _positions(size, new, align_corners, half_pixel_centers)
    below = np.floor(position)
    lower = np.maximum(below, 0).astype(np.int64)
    upper = np.minimum(np.ceil(position), size - 1).astype(np.int64)
    return lower, upper, position - below


def bilinear(
    xp: Any, images: Any, size: Any, *, align_corners: bool, half_pixel_centers: bool
) -> Any:
    """float32 ``[batch, *size, channels]``."""
    check_sizes(images, size, align_corners, half_pixel_centers)
    if xp is np:
        return _bilinear_by_rows(images, size, align_corners, half_pixel_centers)
    x = images.astype(np.float32)
    for axis, shape in ((2, (-1, 1)), (1, (-1, 1, 1))):
        lower, upper, weight = _linear(
            x.shape[axis], int(size[axis - 1]), align_corners, half_pixel_centers
        )
        low = _taken(xp, x, lower, axis)
        x = low + (_taken(xp, x, upper, axis) - low) * weight.reshape(shape)
    return x


@lru_cache(maxsize=256)
def _linear_of_elements(
    size: int, new: int, align_corners: bool, half_pixel_centers: bool, width: int
) -> tuple[Indices, Indices, Floats]:
    """`_linear` for pixels of ``width`` elements that lie in a row. The arrays are shared."""
    lower, upper, weight = _linear(size, new, align_corners, half_pixel_centers)
    each = np.arange(width)
    indices = [(i[:, None] * width + each).reshape(-1) for i in (lower, upper)]
    return indices[0], indices[1], np.repeat(weight, width)


def _bilinear_by_rows(images: Any, size: Any, align_corners: bool, half_pixel_centers: bool) -> Any:
    """The same numbers on NumPy: only rows that count are looked at, in their own type, and single
    elements are moved, which NumPy does several times faster than pixels."""
    batch, height, width, channels = images.shape
    new_height, new_width = int(size[0]), int(size[1])
    rule = align_corners, half_pixel_centers
    above, below, down = _linear_of_elements(height, new_height, *rule, 1)
    if 2 * new_height < height:
        used, places = np.unique(np.concatenate([above, below]), return_inverse=True)
        images, height = images[:, used], len(used)
        above, below = places[:new_height], places[new_height:]
    if images.dtype not in (np.uint8, np.float32):
        images = images.astype(np.float32)
    left, right, across = _linear_of_elements(width, new_width, *rule, channels)
    x = images.reshape(batch, height, width * channels)
    low = np.take(x, left, 2, mode="clip")  # they are inside; saves the check
    x = np.subtract(np.take(x, right, 2, mode="clip"), low, dtype=np.float32)
    x *= across
    x += low
    low = np.take(x, above, 1, mode="clip")
    x = np.take(x, below, 1, mode="clip")
    x -= low
    x *= down[:, None]
    x += low
    return x.reshape(batch, new_height, new_width, channels)


def _taken(xp: Any, x: Any, indices: Indices, axis: int) -> Any:
    if xp is np:
        return np.take(x, indices, axis)
    return xp.take(x, indices, axis, mode="clip")  # they are inside; saves the check


def bilinear_grad(
    xp: Any, grads: Any, original: Any, *, align_corners: bool, half_pixel_centers: bool
) -> Any:
    """The gradient by the image: its shape and type."""
    matrices = []
    for axis in (1, 2):
        size, new = original.shape[axis], grads.shape[axis]
        lower, upper, weight = _linear(size, new, align_corners, half_pixel_centers)
        matrix = np.zeros((size, new), np.float32)
        each = np.arange(new)
        np.add.at(matrix, (lower, each), 1 - weight)
        np.add.at(matrix, (upper, each), weight)
        matrices.append(matrix)
    return _product(xp, matrices, grads).astype(original.dtype)


def _product(xp: Any, matrices: list[Any], x: Any) -> Any:
    """``matrices[0]`` times the rows and ``matrices[1]`` times the columns of each image."""
    batch, height, width, channels = x.shape
    rows, columns = matrices
    x = xp.matmul(rows, x.reshape(batch, height, width * channels))
    x = xp.matmul(columns, x.reshape(batch * rows.shape[0], width, channels))
    return x.reshape(batch, rows.shape[0], columns.shape[0], channels)


# -- bicubic ------------------------------------------------------------------------------------


def _coefficients(a: float) -> Floats:
    """Keys's kernel at ``i / 1024`` and at ``1 + i / 1024``."""
    near = np.arange(_TABLE + 1, dtype=np.float64) / _TABLE
    far = near + 1.0
    table = [((a + 2) * near - (a + 3)) * near * near + 1]
    table.append(((a * far - 5 * a) * far + 8 * a) * far - 4 * a)
    return np.stack(table, axis=1).astype(np.float32)


_LEGACY, _KEYS = _coefficients(-0.75), _coefficients(-0.5)


def _cubic(
    size: int, new: int, align_corners: bool, half_pixel_centers: bool
) -> tuple[Indices, Floats]:
    """``[4, new]``: the old pixels of each new one, and their weights.

    Outside pixels are those at the border; with half pixel centres they weigh nothing instead.
    See Keys, "Cubic convolution interpolation for digital image processing" (1981).
    """
    position = _positions(size, new, align_corners, half_pixel_centers)
    below = np.floor(position)
    offset = np.rint((position - below) * np.float32(_TABLE)).astype(np.int64)
    table = _KEYS if half_pixel_centers else _LEGACY
    weights = np.stack(
        [
            table[offset, 1],
            table[offset, 0],
            table[_TABLE - offset, 0],
            table[_TABLE - offset, 1],
        ]
    )
    wanted = below.astype(np.int64) + np.arange(-1, 3)[:, None]
    indices = np.clip(wanted, 0, size - 1)
    if half_pixel_centers:
        weights = np.where(indices == wanted, weights, np.float32(0))
        total = weights.sum(axis=0, dtype=np.float32)
        usable = np.abs(total) >= 1000 * np.finfo(np.float32).tiny
        weights = np.where(usable, weights / np.where(usable, total, np.float32(1)), weights)
    return indices, weights


def bicubic(
    xp: Any, images: Any, size: Any, *, align_corners: bool, half_pixel_centers: bool
) -> Any:
    """float32 ``[batch, *size, channels]``."""
    check_sizes(images, size, align_corners, half_pixel_centers)
    x = images.astype(np.float32)
    for axis, shape in ((1, (-1, 1, 1)), (2, (-1, 1))):
        indices, weights = _cubic(
            x.shape[axis], int(size[axis - 1]), align_corners, half_pixel_centers
        )
        parts = zip(indices, weights, strict=True)
        x = sum(_taken(xp, x, i, axis) * w.reshape(shape) for i, w in parts)
    return x


def bicubic_grad(
    xp: Any, grads: Any, original: Any, *, align_corners: bool, half_pixel_centers: bool
) -> Any:
    """The gradient by the image: its shape and type."""
    matrices = []
    for axis in (1, 2):
        size, new = original.shape[axis], grads.shape[axis]
        indices, weights = _cubic(size, new, align_corners, half_pixel_centers)
        matrix = np.zeros((size, new), np.float32)
        np.add.at(matrix, (indices, np.arange(new)), weights)
        matrices.append(matrix)
    return _product(xp, matrices, grads).astype(original.dtype)


# -- nearest neighbour --------------------------------------------------------------------------


def _nearest(size: int, new: int, align_corners: bool, half_pixel_centers: bool) -> Indices:
    scale = _scale(size, new, align_corners)
    place = np.arange(new, dtype=np.float32)
    position = (place + np.float32(0.5)) * scale if half_pixel_centers else place * scale
    rounding = 0.5 if align_corners else 0.0
    index = np.floor(position.astype(np.float64) + rounding).astype(np.int64)
    return np.clip(index, 0, size - 1)


def nearest(
    xp: Any, images: Any, size: Any, *, align_corners: bool, half_pixel_centers: bool
) -> Any:
    """``[batch, *size, channels]`` of the type of the images."""
    check_sizes(images, size, align_corners, half_pixel_centers)
    for axis in (1, 2):
        index = _nearest(images.shape[axis], int(size[axis - 1]), align_corners, half_pixel_centers)
        images = _taken(xp, images, index, axis)
    return images


def nearest_grad(
    xp: Any, grads: Any, size: Any, *, align_corners: bool, half_pixel_centers: bool
) -> Any:
    """The gradient by an image of ``size``: each old pixel gets the sum of the new ones."""
    wide = np.dtype(np.float32) if grads.dtype.itemsize == 2 else grads.dtype
    matrices = []
    for axis in (1, 2):
        old, new = int(size[axis - 1]), grads.shape[axis]
        index = _nearest(old, new, align_corners, half_pixel_centers)
        matrices.append((np.arange(old)[:, None] == index).astype(wide))
    return _product(xp, matrices, grads.astype(wide)).astype(grads.dtype)


# -- area ---------------------------------------------------------------------------------------


def _overlaps(size: int, new: int, align_corners: bool) -> Floats:
    """``[new, size]``: how much of each old pixel a new one covers, by its size."""
    scale = _scale(size, new, align_corners)
    begin = np.arange(new, dtype=np.float32) * scale
    end = np.arange(1, new + 1, dtype=np.float32) * scale
    matrix = np.zeros((new, size), np.float32)
    if scale == 0:  # aligned corners of one pixel
        matrix[:, 0] = 1
        return matrix
    for row, (low, high) in enumerate(zip(begin, end, strict=True)):
        old = np.arange(int(np.floor(low)), int(np.ceil(high)))
        after = (old + 1).astype(np.float32)
        inside = np.where(after > high, high - old.astype(np.float32), np.float32(1))
        first = np.where(after > high, scale, after - low)
        weight = np.where(old < low, first, inside)
        np.add.at(matrix[row], np.minimum(old, size - 1), weight / scale)
    return matrix


def area(xp: Any, images: Any, size: Any, *, align_corners: bool) -> Any:
    """float32 ``[batch, *size, channels]``: means over the old pixels that a new one covers."""
    check_sizes(images, size, align_corners, False)
    matrices = [
        _overlaps(images.shape[axis], int(size[axis - 1]), align_corners) for axis in (1, 2)
    ]
    return _product(xp, matrices, images.astype(np.float32))
