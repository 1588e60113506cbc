"""Projective transforms of images. The public functions are in `headrace.contrib.image`."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np

from headrace.graph.shapes import shape_text
from headrace.graph.tensor import Dims, Operation
from headrace.ops.core.array_util import fail
from headrace.ops.core.registry import define_op
from headrace.ops.core.static import static_shape
from headrace.ops.nn.windows import checked_rank

__all__: list[str] = []

_INTERPOLATIONS = ("NEAREST", "BILINEAR")


def _transform_shape(op: Operation) -> list[Dims]:
    batch, _, _, channels = checked_rank(op.inputs[0].dims, 4, "images")
    count, eight = checked_rank(op.inputs[1].dims, 2, "transforms")
    if eight not in (8, None):
        raise ValueError(f"transforms must have 8 columns, but they have {eight}")
    if batch is not None and count not in (1, batch, None):
        raise ValueError(f"transforms must be one, or one for each of {batch} images, not {count}")
    if op.attrs["interpolation"] not in _INTERPOLATIONS:
        raise ValueError(f"interpolation must be one of {_INTERPOLATIONS}")
    if op.attrs["fill_mode"] != "CONSTANT":
        raise ValueError(
            f"fill_mode {op.attrs['fill_mode']!r} is not available: only 'CONSTANT' is."
        )
    size = static_shape(op.inputs[2])
    height, width = checked_rank((None, None) if size is None else size, 2, "output_shape")
    return [(batch, height, width, channels)]


def _transformed(
    xp: Any,
    images: Any,
    transforms: Any,
    output_shape: Any,
    fill_value: Any = np.float32(0),  # noqa: B008  (immutable)
    *,
    interpolation: str,
) -> Any:
    """Each output pixel ``(x, y)`` is the input's at ``((a x + b y + c) / k, (d x + e y + f) / k)``
    with ``k = g x + h y + 1``; what lies outside is ``fill_value``."""
    if transforms.shape not in ((1, 8), (images.shape[0], 8)):
        raise fail(
            f"transforms must have shape [{images.shape[0]} or 1, 8], not "
            f"{shape_text(transforms.shape)}"
        )
    images = xp.asarray(images)
    rows, columns = images.shape[1:3]
    a, b, c, d, e, f, g, h = (transforms[:, i, None, None] for i in range(8))
    x = np.arange(int(output_shape[1]), dtype=np.float32)
    y = np.arange(int(output_shape[0]), dtype=np.float32)[:, None]
    depth = g * x + h * y + np.float32(1)
    seen = depth != 0
    depth = xp.where(seen, depth, np.float32(1))
    across, down = (a * x + b * y + c) / depth, (d * x + e * y + f) / depth
    which = np.arange(images.shape[0])[:, None, None]
    fill = fill_value.astype(images.dtype)

    def pixels(row: Any, column: Any) -> Any:
        inside = seen & (row >= 0) & (row < rows) & (column >= 0) & (column < columns)
        at = (xp.clip(row, 0, rows - 1), xp.clip(column, 0, columns - 1))
        found = images[which, at[0].astype(np.int32), at[1].astype(np.int32)]
        return xp.where(inside[..., None], found, fill)

    if interpolation == "NEAREST":
        return pixels(_rounded(xp, down), _rounded(xp, across))
    top, left = xp.floor(down), xp.floor(across)
    lower, right = (down - top)[..., None], (across - left)[..., None]
    parts = [
        (1 - lower) * ((1 - right) * pixels(top, left) + right * pixels(top, left + 1)),
        lower * ((1 - right) * pixels(top + 1, left) + right * pixels(top + 1, left + 1)),
    ]
    return (parts[0] + parts[1]).astype(images.dtype)


def _rounded(xp: Any, place: Any) -> Any:
    """To the nearest integer, halves away from zero."""
    size = xp.abs(place)
    whole = xp.floor(size)
    return xp.sign(place) * (whole + (size - whole >= np.float32(0.5)))


_TYPES = "dtype: {uint8, int32, int64, float16, bfloat16, float32, float64}"
for _version, _fill in (("V2", ""), ("V3", ", fill_value: float32")):
    define_op(
        f"ImageProjectiveTransform{_version}(images: dtype, transforms: float32,"
        f" output_shape: int32{_fill}) -> transformed_images: dtype",
        attrs=f"{_TYPES}, interpolation: string, fill_mode: string = 'CONSTANT'",
        shape=_transform_shape,
        kernel=partial(_transformed, jnp),
        interpret=partial(_transformed, np),
        static=(2,),
    )
