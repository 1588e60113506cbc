"""Ops on images against loops over pixels, written from their rules."""

from __future__ import annotations

import colorsys
import itertools
import math
from typing import Any

import numpy as np

from headrace.harness.op_cases import OpCase

_RNG = np.random.default_rng(41)
CASES: list[OpCase] = []


def _pixels(*shape: int) -> np.ndarray:
    return _RNG.random(shape).astype(np.float32)


# -- resizing -----------------------------------------------------------------------------------


def _place(i: int, size: int, new: int, align: bool, half: bool) -> float:
    """Where pixel ``i`` of ``new`` lies among ``size`` old ones; sizes here divide exactly."""
    scale = (size - 1) / (new - 1) if align and new > 1 else size / new
    return (i + 0.5) * scale - 0.5 if half else i * scale


def _linear(size: int, new: int, align: bool, half: bool) -> np.ndarray:
    matrix = np.zeros((new, size))
    for i in range(new):
        at = _place(i, size, new, align, half)
        low = math.floor(at)
        matrix[i, max(low, 0)] += 1 - (at - low)
        matrix[i, min(math.ceil(at), size - 1)] += at - low
    return matrix


def _nearest(size: int, new: int, align: bool, half: bool) -> np.ndarray:
    matrix = np.zeros((new, size))
    for i in range(new):
        at = _place(i, size, new, align, half) + (0.5 if half or align else 0)
        matrix[i, min(math.floor(at), size - 1)] = 1
    return matrix


def _cubic(size: int, new: int, align: bool, half: bool) -> np.ndarray:
    a = -0.5 if half else -0.75
    matrix = np.zeros((new, size))
    for i in range(new):
        at = _place(i, size, new, align, half)
        low = math.floor(at)
        for j in range(low - 1, low + 3):
            d = abs(at - j)
            if d <= 1:
                weight = ((a + 2) * d - (a + 3)) * d * d + 1
            else:
                weight = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
            if 0 <= j < size or not half:
                matrix[i, min(max(j, 0), size - 1)] += weight
        if half:
            matrix[i] /= matrix[i].sum()
    return matrix


def _area(size: int, new: int, align: bool, half: bool) -> np.ndarray:
    matrix = np.zeros((new, size))
    step = size / new
    for i, j in itertools.product(range(new), range(size)):
        matrix[i, j] = max(0.0, min(j + 1, (i + 1) * step) - max(j, i * step)) / step
    return matrix


def _resized(matrix: Any, align: bool, half: bool) -> Any:
    def expected(x: np.ndarray, size: np.ndarray) -> np.ndarray:
        rows = matrix(x.shape[1], int(size[0]), align, half)
        columns = matrix(x.shape[2], int(size[1]), align, half)
        result = np.einsum("ah,bw,nhwc->nabc", rows, columns, x.astype(np.float64))
        return result.astype(x.dtype if matrix is _nearest else np.float32)

    return expected


def _pulled(matrix: Any, align: bool, half: bool) -> Any:
    def expected(grads: np.ndarray, original: np.ndarray) -> np.ndarray:
        sizes = original if original.ndim == 1 else original.shape[1:3]
        rows = matrix(int(sizes[0]), grads.shape[1], align, half)
        columns = matrix(int(sizes[1]), grads.shape[2], align, half)
        result = np.einsum("ah,bw,nabc->nhwc", rows, columns, grads.astype(np.float64))
        return result.astype(grads.dtype if matrix is _nearest else original.dtype)

    return expected


# The sizes make positions exact in binary, so that both sides agree which pixel is the nearest.
_X, _SIZE, _GRADS = _pixels(2, 5, 3, 2), np.int32([17, 9]), _pixels(2, 8, 16, 3)
for _name, _matrix in (("Bilinear", _linear), ("Bicubic", _cubic), ("NearestNeighbor", _nearest)):
    for _align, _half in ((True, False), (False, True), (False, False)):
        _attrs: dict[str, Any] = {"align_corners": _align, "half_pixel_centers": _half}
        _image = _X if _align else _pixels(2, 4, 2, 3)
        _new = _SIZE if _align else np.int32([8, 16])
        _back = _pixels(2, 17, 9, 2) if _align else _GRADS
        _original: Any = _image if _name != "NearestNeighbor" else np.int32(_image.shape[1:3])
        CASES += [
            OpCase(
                f"Resize{_name}",
                (_image, _new),
                _attrs,
                expected=_resized(_matrix, _align, _half),
                grad=None if _half else (),
                rtol=1e-4,
            ),
            OpCase(
                f"Resize{_name}Grad",
                (_back, _original),
                _attrs,
                expected=_pulled(_matrix, _align, _half),
                grad=(0,) if _half else (),
                rtol=1e-4,
            ),
        ]
CASES += [
    OpCase("ResizeBilinear", (np.uint8([[[[0], [200]]]]), np.int32([1, 4])), name="bytes"),
    OpCase("ResizeArea", (_X, np.int32([4, 2])), expected=_resized(_area, False, False), rtol=1e-4),
    OpCase("ResizeArea", (_X, np.int32([10, 4])), expected=_resized(_area, False, False), grad=()),
]


# -- patches ------------------------------------------------------------------------------------


def _patches(x: np.ndarray) -> np.ndarray:
    """Windows of 3 by 2 at every second row, of every second column: no padding."""
    _, height, width, _ = x.shape
    rows, columns = range(0, height - 2, 2), range(width - 2)
    windows = [[x[:, r : r + 3, c : c + 3 : 2].reshape(len(x), -1) for c in columns] for r in rows]
    return np.moveaxis(np.array(windows), 2, 0)


_WINDOW = {"ksizes": [1, 3, 2, 1], "strides": [1, 2, 1, 1], "rates": [1, 1, 2, 1]}
CASES += [
    OpCase(
        "ExtractImagePatches",
        (_pixels(2, 7, 6, 3),),
        {**_WINDOW, "padding": "VALID"},
        expected=_patches,
    ),
    OpCase("ExtractImagePatches", (_pixels(2, 7, 6, 3),), {**_WINDOW, "padding": "SAME"}),
]

_BOXES = np.float32([[0.1, 0.2, 0.83, 0.9], [0.87, 0.72, 0.12, 0.31], [-0.33, 0.22, 0.61, 1.43]])
_WHICH = np.int32([1, 0, 1])


def _crops(method: str) -> Any:
    def expected(x: Any, boxes: Any, which: Any, size: Any) -> np.ndarray:
        out = np.full((len(boxes), *size, x.shape[3]), -2.0, np.float32)
        limits = (x.shape[1] - 1, x.shape[2] - 1)
        for n, i, j in np.ndindex(out.shape[:3]):
            low, high = boxes[n, :2], boxes[n, 2:]
            ends = zip((i, j), size, low, high, limits, strict=True)
            y, z = (
                (a + (b - a) * k / (s - 1) if s > 1 else (a + b) / 2) * m for k, s, a, b, m in ends
            )
            if not (0 <= y <= limits[0] and 0 <= z <= limits[1]):
                continue
            image = x[which[n]]
            if method == "nearest":
                out[n, i, j] = image[math.floor(y + 0.5), math.floor(z + 0.5)]
                continue
            t, s = math.floor(y), math.floor(z)
            b, r = math.ceil(y), math.ceil(z)
            top = image[t, s] * (1 - (z - s)) + image[t, r] * (z - s)
            bottom = image[b, s] * (1 - (z - s)) + image[b, r] * (z - s)
            out[n, i, j] = top * (1 - (y - t)) + bottom * (y - t)
        return out

    return expected


CASES += [
    OpCase(
        "CropAndResize",
        (_pixels(2, 6, 8, 2), _BOXES, _WHICH, np.int32(size)),
        {"method": method, "extrapolation_value": -2.0},
        expected=_crops(method),
        grad=(0, 1) if size == (4, 5) else (),
        rtol=1e-4,
    )
    for size, method in (((4, 5), "bilinear"), ((1, 3), "bilinear"), ((3, 4), "nearest"))
]
CASES += [
    OpCase(
        "CropAndResizeGradImage",
        (_pixels(3, 4, 5, 2), _BOXES, _WHICH, np.int32([2, 6, 8, 2])),
        {"T": np.float32},
    ),
    OpCase("CropAndResizeGradBoxes", (_pixels(3, 4, 5, 2), _pixels(2, 6, 8, 2), _BOXES, _WHICH)),
]


# -- colours ------------------------------------------------------------------------------------

_COLOURS = _pixels(2, 3, 4, 3) * np.float32(0.9) + np.float32(0.05)


def _each(function: Any) -> Any:
    """``function(r, g, b, amount ...)`` of every pixel."""

    def expected(x: np.ndarray, *amounts: Any) -> np.ndarray:
        flat = [function(*map(float, pixel), *map(float, amounts)) for pixel in x.reshape(-1, 3)]
        return np.float32(flat).reshape(x.shape)

    return expected


def _turned(r: float, g: float, b: float, delta: float) -> Any:
    h, s, v = colorsys.rgb_to_hsv(r, g, b)
    return colorsys.hsv_to_rgb((h + delta) % 1, s, v)


def _saturated(r: float, g: float, b: float, scale: float) -> Any:
    h, s, v = colorsys.rgb_to_hsv(r, g, b)
    return colorsys.hsv_to_rgb(h, min(max(s * scale, 0), 1), v)


def _contrast(x: np.ndarray, factor: Any) -> np.ndarray:
    mean = x.mean(axis=(1, 2), keepdims=True)
    return ((x - mean) * factor + mean).astype(np.float32)


CASES += [
    OpCase("RGBToHSV", (_COLOURS,), expected=_each(colorsys.rgb_to_hsv), rtol=1e-4),
    OpCase("HSVToRGB", (_COLOURS,), expected=_each(colorsys.hsv_to_rgb), rtol=1e-4),
    OpCase("AdjustHue", (_COLOURS, np.float32(0.37)), expected=_each(_turned), rtol=1e-4),
    OpCase("AdjustHue", (_COLOURS, np.float32(-2.2)), expected=_each(_turned), grad=()),
    OpCase("AdjustSaturation", (_COLOURS, np.float32(0.4)), expected=_each(_saturated), rtol=1e-4),
    OpCase("AdjustSaturation", (_COLOURS, np.float32(9)), expected=_each(_saturated), grad=()),
    OpCase("AdjustContrastv2", (_COLOURS, np.float32(1.4)), expected=_contrast, rtol=1e-4),
    OpCase(
        "AdjustContrastv2", (_COLOURS.astype(np.float16), np.float32(1.4)), grad=(), name="half"
    ),
]

_VIEW = np.float32([[1.1, 0.2, -0.5, -0.1, 0.9, 0.3, 0.01, -0.02], [1, 0, 1.5, 0, 1, -0.5, 0, 0]])


def _seen(interpolation: str, fill: float) -> Any:
    def expected(x: Any, views: Any, size: Any, *_: Any) -> np.ndarray:
        out = np.zeros((len(x), *size, x.shape[3]), np.float32)
        for n, i, j in np.ndindex(out.shape[:3]):
            a, b, c, d, e, f, g, h = map(float, views[n])
            depth = g * j + h * i + 1
            at = ((d * j + e * i + f) / depth, (a * j + b * i + c) / depth)
            if interpolation == "NEAREST":
                places = {tuple(math.floor(abs(p) + 0.5) * (1 if p > 0 else -1) for p in at): 1.0}
            else:
                low = [math.floor(p) for p in at]
                places = {
                    (low[0] + u, low[1] + v): abs(1 - u - at[0] + low[0])
                    * abs(1 - v - at[1] + low[1])
                    for u, v in itertools.product((0, 1), repeat=2)
                }
            for (row, column), weight in places.items():
                inside = 0 <= row < x.shape[1] and 0 <= column < x.shape[2]
                out[n, i, j] += weight * (x[n, row, column] if inside else fill)
        return out

    return expected


for _how in ("NEAREST", "BILINEAR"):
    _view = (_pixels(2, 5, 4, 3), _VIEW, np.int32([6, 7]))
    CASES += [
        OpCase(
            "ImageProjectiveTransformV2",
            _view,
            {"interpolation": _how},
            expected=_seen(_how, 0.0),
            grad=(0,) if _how == "BILINEAR" else (),
            rtol=1e-4,
        ),
        OpCase(
            "ImageProjectiveTransformV3",
            (*_view, np.float32(2)),
            {"interpolation": _how},
            expected=_seen(_how, 2.0),
            grad=(),
            rtol=1e-4,
        ),
    ]
