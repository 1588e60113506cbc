"""Colour ops: between RGB and HSV, and changes of hue, saturation and contrast."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np

from headrace.graph.shapes import shape_text
from headrace.graph.tensor import Dims, Operation
from headrace.ops.core import requirements
from headrace.ops.core.registry import define_op

__all__: list[str] = []


def _colour_shape(op: Operation) -> list[Dims]:
    dims = op.inputs[0].dims
    if dims is not None and (not dims or dims[-1] not in (3, None)):
        raise ValueError(
            f"{op.type}: the last dimension must be 3 (colours), but the shape is "
            f"{shape_text(dims)}."
        )
    return [dims]


def _channels(images: Any) -> Any:
    if images.ndim == 0 or images.shape[-1] != 3:
        raise ValueError(f"input must have 3 channels but has shape {shape_text(images.shape)}")
    return images[..., 0], images[..., 1], images[..., 2]


def _to_hsv(xp: Any, images: Any) -> Any:
    """Hue, saturation and value, all in [0, 1] for colours in [0, 1]."""
    r, g, b = _channels(images)
    kind = images.dtype.type
    value = xp.maximum(xp.maximum(r, g), b)
    spread = value - xp.minimum(xp.minimum(r, g), b)
    some = spread > 0
    light = value > 0
    saturation = xp.where(light, spread / xp.where(light, value, kind(1)), kind(0))
    norm = kind(1) / (kind(6) * xp.where(some, spread, kind(1)))
    hue = xp.where(
        r == value,
        norm * (g - b),
        xp.where(g == value, norm * (b - r) + kind(2 / 6), norm * (r - g) + kind(4 / 6)),
    )
    hue = xp.where(some, hue, kind(0))
    hue = xp.where(hue < 0, hue + kind(1), hue)
    return xp.stack([hue, saturation, value], axis=-1)


def _ramps(xp: Any, hue: Any, kind: Any) -> tuple[Any, Any, Any]:
    """How much of red, green and blue a hue in [0, 6] has."""
    return (
        xp.clip(xp.abs(hue - kind(3)) - kind(1), kind(0), kind(1)),
        xp.clip(kind(2) - xp.abs(hue - kind(2)), kind(0), kind(1)),
        xp.clip(kind(2) - xp.abs(hue - kind(4)), kind(0), kind(1)),
    )


def _to_rgb(xp: Any, images: Any) -> Any:
    h, s, v = _channels(images)
    kind = images.dtype.type
    rest = kind(1) - s
    colours = [(rest + s * ramp) * v for ramp in _ramps(xp, h * kind(6), kind)]
    return xp.stack(colours, axis=-1)


def _in_single(function: Callable[..., Any], xp: Any, images: Any) -> Any:
    """16 bits are rounded once, at the end: a compiled program does not round in between."""
    if images.dtype.itemsize > 2:
        return function(xp, images)
    return function(xp, images.astype(np.float32)).astype(images.dtype)


for _name, _function in (("RGBToHSV", _to_hsv), ("HSVToRGB", _to_rgb)):
    define_op(
        f"{_name}(images: T) -> output: T",
        attrs="T: {float16, bfloat16, float32, float64} = float32",
        shape=_colour_shape,
        kernel=partial(_in_single, _function, jnp),
        interpret=partial(_in_single, _function, np),
    )


def _hue(xp: Any, images: Any, delta: Any) -> Any:
    """Turn the hue by ``delta`` of a circle; the brightest and darkest colour stay."""
    x = images.astype(np.float32)
    kind = np.float32
    hue = _to_hsv(xp, x)[..., 0] * kind(6) + delta * kind(6)
    hue = hue - xp.floor(hue / kind(6)) * kind(6)
    r, g, b = _channels(x)  # NumPy is slow to reduce so short an axis
    low = xp.minimum(xp.minimum(r, g), b)
    spread = xp.maximum(xp.maximum(r, g), b) - low
    colours = [low + spread * ramp for ramp in _ramps(xp, hue, kind)]
    return xp.stack(colours, axis=-1).astype(images.dtype)


def _saturation(xp: Any, images: Any, scale: Any) -> Any:
    hsv = _to_hsv(xp, images.astype(np.float32))
    saturation = xp.clip(hsv[..., 1] * scale, np.float32(0), np.float32(1))
    changed = xp.stack([hsv[..., 0], saturation, hsv[..., 2]], axis=-1)
    return _to_rgb(xp, changed).astype(images.dtype)


def _contrast(xp: Any, images: Any, contrast_factor: Any) -> Any:
    """Distances from the mean of each channel of each image, times the factor."""
    if images.ndim < 3:
        raise ValueError(f"input must be at least 3-D, got shape {shape_text(images.shape)}")
    x = images.astype(np.float32)
    mean = xp.mean(x, axis=(-3, -2), keepdims=True, dtype=np.float32)
    return ((x - mean) * contrast_factor + mean).astype(images.dtype)


def _contrast_shape(op: Operation) -> list[Dims]:
    dims = op.inputs[0].dims
    if dims is not None and len(dims) < 3:
        raise ValueError(f"{op.type} needs images of at least 3 dimensions, not {shape_text(dims)}")
    return [dims]


_HALVES = "T: {float16, float32} = float32"

for _name, _amount, _change, _shape in (
    ("AdjustHue", "delta", _hue, _colour_shape),
    ("AdjustSaturation", "scale", _saturation, _colour_shape),
    ("AdjustContrastv2", "contrast_factor", _contrast, _contrast_shape),
):
    define_op(
        f"{_name}(images: T, {_amount}: float32) -> output: T",
        attrs=_HALVES,
        shape=_shape,
        requires=[requirements.scalar(1)],
        kernel=partial(_change, jnp),
        interpret=partial(_change, np),
    )
