"""Patches of images: sliding windows, boxes resized to one size, and glimpses."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from headrace.graph.shapes import merge_static
from headrace.graph.tensor import Dims, Operation, Tensor
from headrace.ops.core import checks, requirements
from headrace.ops.core.array_util import shape_tensor
from headrace.ops.core.build import raw
from headrace.ops.core.public import public
from headrace.ops.core.registry import CHECKS, RANDOM, NotDifferentiable, define_op
from headrace.ops.core.static import static_shape, static_value
from headrace.ops.nn.windows import checked_rank, checked_steps, required, window_size
from headrace.ops.random import fixed, philox

Grads = list[Tensor | None]


# -- sliding windows ----------------------------------------------------------------------------


def _patches_shape(op: Operation) -> list[Dims]:
    attrs = op.attrs
    for name in ("ksizes", "strides", "rates"):
        checked_steps(attrs[name], 4, name, op.type, (0, 3))
    batch, height, width, depth = checked_rank(op.inputs[0].dims, 4, "images")
    _, rows, columns, _ = attrs["ksizes"]
    sizes = [
        window_size(
            size, attrs["ksizes"][a], attrs["strides"][a], attrs["rates"][a], attrs["padding"]
        )
        for a, size in ((1, height), (2, width))
    ]
    return [(batch, *sizes, None if depth is None else depth * rows * columns)]


def _patches(
    xp: Any,
    images: Any,
    *,
    ksizes: Sequence[int],
    strides: Sequence[int],
    rates: Sequence[int],
    padding: str,
) -> Any:
    """Each window becomes one pixel: its rows, then its columns, then their channels."""
    pads, counts = [], []
    for axis in (1, 2):
        size, extent = images.shape[axis], (ksizes[axis] - 1) * rates[axis] + 1
        count = window_size(size, ksizes[axis], strides[axis], rates[axis], padding) or 0
        missing = max((count - 1) * strides[axis] + extent - size, 0) if padding == "SAME" else 0
        pads.append((missing // 2, missing - missing // 2))
        counts.append(count)
    padded = xp.pad(images, ((0, 0), *pads, (0, 0)))
    parts = []
    for row in range(ksizes[1]):
        for column in range(ksizes[2]):
            y, x = row * rates[1], column * rates[2]
            parts.append(
                padded[
                    :,
                    y : y + counts[0] * strides[1] : strides[1],
                    x : x + counts[1] * strides[2] : strides[2],
                ]
            )
    return xp.concatenate(parts, axis=3)


define_op(
    "ExtractImagePatches(images: T) -> patches: T",
    attrs=(
        "ksizes: list(int) >= 4, strides: list(int) >= 4, rates: list(int) >= 4, "
        "T: {bfloat16, float16, float32, float64, int8, int16, int32, int64, uint8, uint16, "
        "uint32, uint64, complex64, complex128, bool}, padding: {'SAME', 'VALID'}"
    ),
    shape=_patches_shape,
    kernel=partial(_patches, jnp),
    interpret=partial(_patches, np),
)


@public("extract_image_patches")
def extract_image_patches(
    images: Any,
    ksizes: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
    rates: Sequence[int] | None = None,
    padding: str | None = None,
    name: str | None = None,
    sizes: Sequence[int] | None = None,
) -> Tensor:
    """Windows of images, each with its pixels joined along the last dimension.

    Args:
        images: ``[batch, height, width, depth]``.
        ksizes (also ``sizes``): ``[1, rows, columns, 1]``, the size of a window.
        strides: ``[1, rows, columns, 1]`` from one window to the next.
        rates: ``[1, rows, columns, 1]``: a window takes every so many-th pixel.
        padding: "SAME" or "VALID".

    Returns:
        ``[batch, windows down, windows across, rows * columns * depth]``.

    Raises:
        ValueError: if an argument has another length, or a window does not fit.
    """
    ksizes = ksizes if sizes is None else sizes
    required("extract_image_patches", ksizes=ksizes, strides=strides, rates=rates, padding=padding)
    assert ksizes is not None
    assert strides is not None
    assert rates is not None
    assert padding is not None
    return raw.ExtractImagePatches(
        images, ksizes=ksizes, strides=strides, rates=rates, padding=padding, name=name
    )


def extract_patches(
    images: Any,
    sizes: Sequence[int],
    strides: Sequence[int],
    rates: Sequence[int],
    padding: str,
    name: str | None = None,
) -> Tensor:
    """``extract_image_patches`` under its later name, of the same shape.

    Raises:
        ValueError: as ``extract_image_patches``.
    """
    return extract_image_patches(images, sizes, strides, rates, padding, name)


# -- boxes resized to one size ------------------------------------------------------------------


def _crop_shape(op: Operation) -> list[Dims]:
    channels = checked_rank(op.inputs[0].dims, 4, "image")[3]
    boxes, four = checked_rank(op.inputs[1].dims, 2, "boxes")
    if four not in (4, None):
        raise ValueError(f"boxes must have 4 columns, but they have {four}")
    (count,) = merge_static((boxes,), checked_rank(op.inputs[2].dims, 1, "box_ind")) or (None,)
    size = static_shape(op.inputs[3])
    height, width = checked_rank((None, None) if size is None else size, 2, "crop_size")
    return [(count, height, width, channels)]


def _along(xp: Any, low: Any, high: Any, size: int, count: int) -> tuple[Any, Any]:
    """``[boxes, count]``: positions between ``low`` and ``high``, and whether they are inside."""
    last = np.float32(size - 1)
    if count > 1:
        # XLA would divide by multiplying with the reciprocal: the last pixel of a whole image would
        # then be outside.
        step = (high - low) * (last / np.float32(count - 1))
        position = (low * last)[:, None] + np.arange(count, dtype=np.float32) * step[:, None]
    else:
        position = (np.float32(0.5) * (low + high) * last)[:, None]
    return position, (position >= 0) & (position <= last)


def _crop(
    xp: Any,
    image: Any,
    boxes: Any,
    box_ind: Any,
    crop_size: Any,
    *,
    method: str,
    extrapolation_value: float,
) -> Any:
    """float32 ``[boxes, *crop_size, depth]``."""
    height, width = (int(n) for n in crop_size)
    if min(height, width) <= 0 or not (image.shape[1] and image.shape[2]):
        raise ValueError(
            f"crop dimensions must be positive: crop_size {[height, width]}, image of shape "
            f"{list(image.shape)}"
        )
    checks.require_in_range(xp, box_ind, image.shape[0], "box_index")
    x = xp.asarray(image).astype(np.float32)
    ys, y_inside = _along(xp, boxes[:, 0], boxes[:, 2], x.shape[1], height)
    xs, x_inside = _along(xp, boxes[:, 1], boxes[:, 3], x.shape[2], width)
    which = box_ind[:, None, None]

    def pixels(rows: Any, columns: Any) -> Any:
        row = xp.clip(rows, 0, x.shape[1] - 1).astype(np.int32)[:, :, None]
        column = xp.clip(columns, 0, x.shape[2] - 1).astype(np.int32)[:, None, :]
        return x[which, row, column]

    if method == "nearest":
        crops = pixels(_rounded(xp, ys), _rounded(xp, xs))
    else:
        top, left = xp.floor(ys), xp.floor(xs)
        down, right = (ys - top)[:, :, None, None], (xs - left)[:, None, :, None]
        bottom, beyond = xp.ceil(ys), xp.ceil(xs)
        above, above_right = pixels(top, left), pixels(top, beyond)
        below, below_right = pixels(bottom, left), pixels(bottom, beyond)
        above = above + (above_right - above) * right
        below = below + (below_right - below) * right
        crops = above + (below - above) * down
    inside = (y_inside[:, :, None] & x_inside[:, None, :])[..., None]
    return xp.where(inside, crops, np.float32(extrapolation_value))


def _rounded(xp: Any, position: Any) -> Any:
    """To the nearest integer, halves up (positions that count are not negative)."""
    below = xp.floor(position)
    return below + (position - below >= np.float32(0.5))


_IMAGES = "{uint8, uint16, int8, int16, int32, int64, float16, float32, float64}"
_METHODS = "method: {'bilinear', 'nearest'} = 'bilinear'"


def _crop_gradient(op: Operation, g: Tensor) -> Grads:
    image, boxes, box_ind, _ = op.inputs
    by_image = None
    if image.dtype.is_floating:
        by_image = raw.CropAndResizeGradImage(
            g, boxes, box_ind, shape_tensor(image), T=image.dtype, method=op.attrs["method"]
        )
    # What the positions do to a choice of nearest pixels is not seen by a gradient: as in
    # TensorFlow, the bilinear one stands for it.
    return [by_image, raw.CropAndResizeGradBoxes(g, image, boxes, box_ind), None, None]


define_op(
    "CropAndResize(image: T, boxes: float32, box_ind: int32, crop_size: int32) -> crops: float32",
    attrs=f"T: {_IMAGES}, {_METHODS}, extrapolation_value: float = 0.0",
    shape=_crop_shape,
    kernel=partial(_crop, jnp),
    interpret=partial(_crop, np),
    gradient=_crop_gradient,
    static=(3,),
    effects=CHECKS,
)


def _grad_image(
    grads: Any, boxes: Any, box_ind: Any, image_size: Any, *, T: Any, method: str
) -> Any:
    checks.require_in_range(jnp, box_ind, int(image_size[0]), "box_index")
    crop = partial(_crop, jnp, method=method, extrapolation_value=0.0)
    shape = tuple(int(n) for n in image_size)
    with checks.collecting(None):
        _, pull = jax.vjp(
            lambda x: crop(x, boxes, box_ind, grads.shape[1:3]), jnp.zeros(shape, np.float32)
        )
        return pull(grads)[0].astype(T.np_dtype)


def _grad_image_shape(op: Operation) -> list[Dims]:
    size = static_shape(op.inputs[3])
    return [checked_rank(size, 4, "image_size")]


define_op(
    "CropAndResizeGradImage(grads: float32, boxes: float32, box_ind: int32, image_size: int32)"
    " -> output: T",
    attrs=f"T: {{float32, float16, float64}}, {_METHODS}",
    shape=_grad_image_shape,
    kernel=_grad_image,
    gradient=NotDifferentiable("TensorFlow has no second derivative of crop_and_resize"),
    static=(3,),
    effects=CHECKS,
)


def _grad_boxes(grads: Any, image: Any, boxes: Any, box_ind: Any) -> Any:
    checks.require_in_range(jnp, box_ind, image.shape[0], "box_index")
    crop = partial(_crop, jnp, method="bilinear", extrapolation_value=0.0)
    with checks.collecting(None):
        _, pull = jax.vjp(lambda b: crop(image, b, box_ind, grads.shape[1:3]), boxes)
        return pull(grads)[0]


define_op(
    "CropAndResizeGradBoxes(grads: float32, image: T, boxes: float32, box_ind: int32)"
    " -> output: float32",
    attrs=f"T: {_IMAGES}, method: {{'bilinear'}} = 'bilinear'",
    shape=lambda op: [checked_rank(op.inputs[2].dims, 2, "boxes")],
    kernel=_grad_boxes,
    gradient=NotDifferentiable("TensorFlow has no second derivative of crop_and_resize"),
    effects=CHECKS,
)


# -- glimpses -----------------------------------------------------------------------------------


def _glimpse_shape(op: Operation) -> list[Dims]:
    batch, _, _, channels = checked_rank(op.inputs[0].dims, 4, "input")
    offsets = checked_rank(op.inputs[2].dims, 2, "offsets")
    (batch,) = merge_static((batch,), offsets[:1]) or (None,)
    size = static_shape(op.inputs[1])
    height, width = checked_rank((None, None) if size is None else size, 2, "size")
    return [(batch, height, width, channels)]


def _size_given(op: Operation) -> None:
    """A size that is known is no negative one; what a shape rule sees as -1 means unknown."""
    size = static_value(op.inputs[1])
    if size is not None and (size < 0).any():
        raise ValueError(f"size must not be negative, got {size.tolist()}")


def _corners(
    xp: Any, images: Any, size: Any, offsets: Any, centered: bool, normalized: bool
) -> list[Any]:
    """The first row and column of each glimpse."""
    corners = []
    for axis in (0, 1):
        extent = np.float32(images.shape[axis + 1])
        place = offsets[:, axis]
        if normalized:
            place = place * extent
        if centered:
            place = place / np.float32(2) + extent / np.float32(2)
        place = place - np.float32(int(size[axis])) / np.float32(2)
        corners.append(xp.trunc(place).astype(np.int32))
    return corners


def _glimpse(
    xp: Any,
    images: Any,
    size: Any,
    offsets: Any,
    *,
    rng: Any,
    centered: bool,
    normalized: bool,
    uniform_noise: bool,
    noise: str,
) -> Any:
    images = xp.asarray(images)  # a constant comes as a NumPy array, which takes no traced index
    batch, rows, columns, channels = images.shape
    height, width = (int(n) for n in size)
    top, left = _corners(xp, images, size, offsets, centered, normalized)
    row = top[:, None] + np.arange(height, dtype=np.int32)
    column = left[:, None] + np.arange(width, dtype=np.int32)
    inside = ((row >= 0) & (row < rows))[:, :, None] & ((column >= 0) & (column < columns))[:, None]
    found = images[
        np.arange(batch)[:, None, None],
        xp.clip(row, 0, rows - 1)[:, :, None],
        xp.clip(column, 0, columns - 1)[:, None],
    ]
    shape = (batch, height, width, channels)
    # The attribute ``noise`` came later; its default leaves the choice to ``uniform_noise``.
    kind = "gaussian" if noise == "uniform" and not uniform_noise else noise
    outside = _noise(xp, kind, images, shape, rng)
    blocks = philox.blocks_per_output(int(np.prod(shape)))
    advance = philox.advance if xp is np else philox.advance_jax
    return advance(rng, blocks), xp.where(inside[..., None], found, outside)


def _noise(xp: Any, kind: str, images: Any, shape: tuple[int, ...], rng: Any) -> Any:
    """What shows where a glimpse leaves its image: numbers like the image's own, or zero."""
    axes = (1, 2, 3)
    if kind == "zero":
        return xp.zeros(shape, np.float32)
    if kind == "gaussian":
        draw = fixed.normal_np if xp is np else fixed.normal_jax
        mean, spread = images.mean(axes, keepdims=True), images.std(axes, keepdims=True)
        return draw(rng, shape, np.float32) * spread + mean
    draw = fixed.uniform_np if xp is np else fixed.uniform_jax
    low, high = images.min(axes, keepdims=True), images.max(axes, keepdims=True)
    return draw(rng, shape, np.float32) * (high - low) + low


define_op(
    "ExtractGlimpse(input: float32, size: int32, offsets: float32) -> glimpse: float32",
    attrs=(
        "centered: bool = True, normalized: bool = True, uniform_noise: bool = True, "
        "noise: string = 'uniform'"
    ),
    shape=_glimpse_shape,
    requires=[requirements.shape((None, 2), 2), _size_given],
    kernel=partial(_glimpse, jnp),
    interpret=partial(_glimpse, np),
    gradient=NotDifferentiable("TensorFlow has none for glimpses"),
    static=(1,),
    effects=RANDOM,
)
