"""`scipy.misc` as programs of the 1.x years knew it: images through Pillow, and a few functions.

`headrace run` serves it under that name; SciPy dropped the functions in its releases 1.0 to 1.10.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from PIL import Image

__all__ = [
    "bytescale",
    "fromimage",
    "imread",
    "imresize",
    "imrotate",
    "imsave",
    "imshow",
    "toimage",
]

_FILTERS = {
    "nearest": Image.Resampling.NEAREST,
    "lanczos": Image.Resampling.LANCZOS,
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
    "cubic": Image.Resampling.BICUBIC,
}
_FROM_SPECIAL = ("comb", "factorial", "factorial2", "factorialk", "logsumexp")


def bytescale(
    data: Any, cmin: float | None = None, cmax: float | None = None, high: int = 255, low: int = 0
) -> np.ndarray[Any, Any]:
    """Values from ``cmin`` to ``cmax`` (the extremes, if None) scaled to bytes ``low`` to ``high``.

    An array of bytes comes back as it is.

    Raises:
        ValueError: if a range is empty or does not fit into a byte.
    """
    data = np.asarray(data)
    if data.dtype == np.uint8:
        return np.asarray(data)
    if not 0 <= low <= high <= 255:
        raise ValueError(f"low and high must be ordered and within 0..255, got {low} and {high}")
    least = data.min() if cmin is None else cmin
    span = (data.max() if cmax is None else cmax) - least
    if span < 0:
        raise ValueError("`cmax` should be larger than `cmin`.")
    scaled = (data - least) * ((high - low) / float(span or 1)) + low
    return np.asarray((scaled.clip(low, high) + 0.5).astype(np.uint8))


def toimage(
    arr: Any,
    high: int = 255,
    low: int = 0,
    cmin: float | None = None,
    cmax: float | None = None,
    pal: Any = None,
    mode: str | None = None,
    channel_axis: int | None = None,
) -> Any:
    """The Pillow image of an array ``[height, width]`` or with three or four channels on one axis.

    Values other than bytes are scaled as `bytescale` does, unless ``mode`` is "F" or "I".

    Raises:
        ValueError: if the array has neither shape, or ``mode`` does not fit it.
    """
    data = np.asarray(arr)
    if np.iscomplexobj(data):
        raise ValueError("Cannot convert a complex-valued array.")
    if data.ndim == 2:
        return _plane(data, high, low, cmin, cmax, pal, mode)
    if data.ndim != 3 or not {3, 4}.intersection(data.shape):
        raise ValueError(
            "'arr' does not have a suitable array shape for any mode: expected [height, width], or "
            f"three dimensions one of which is 3 or 4, got {data.shape}"
        )
    if channel_axis is None:
        channels = 3 if 3 in data.shape else 4
        channel_axis = max(i for i, size in enumerate(data.shape) if size == channels)
    bytes_ = np.moveaxis(bytescale(data, cmin, cmax, high, low), channel_axis, 2)
    if bytes_.shape[2] not in (3, 4):
        raise ValueError("Channel axis dimension is not valid.")
    if mode is None:
        mode = "RGB" if bytes_.shape[2] == 3 else "RGBA"
    if len(mode.replace("YCbCr", "YCC")) != bytes_.shape[2]:
        raise ValueError(f"Invalid array shape for mode {mode!r}: {data.shape}")
    return Image.frombytes(mode, bytes_.shape[1::-1], bytes_.tobytes())


def _plane(
    data: Any, high: int, low: int, cmin: float | None, cmax: float | None, pal: Any, mode: Any
) -> Any:
    size = data.shape[::-1]
    if mode in ("F", "I"):
        kind = np.float32 if mode == "F" else np.int32
        return Image.frombytes(mode, size, data.astype(kind).tobytes())
    if mode not in (None, "L", "P", "1"):
        raise ValueError(f"Could not convert array to image of mode {mode!r}")
    if mode == "1":
        return Image.fromarray(np.where(data > 0, 255, 0).astype(np.uint8)).convert("1")
    image = Image.frombytes("L", size, bytescale(data, cmin, cmax, high, low).tobytes())
    if mode == "P" or pal is not None:
        palette = np.arange(256)[:, None].repeat(3, 1) if pal is None else np.asarray(pal)
        image = image.convert("P")
        image.putpalette(palette.astype(np.uint8).tobytes())
    return image


def fromimage(im: Any, flatten: bool = False, mode: str | None = None) -> np.ndarray[Any, Any]:
    """The array of a Pillow image: ``[height, width]``, or with channels last.

    Args:
        im: the image.
        flatten: whether to make it one plane of floats.
        mode: Pillow's mode to convert it to first; a palette gives its colours without one.
    """
    if mode is not None:
        im = im.convert(mode) if mode != im.mode else im
    elif im.mode == "P":
        im = im.convert("RGBA" if "transparency" in im.info else "RGB")
    if flatten:
        im = im.convert("F")
    elif im.mode == "1":
        im = im.convert("L")
    return np.array(im)


def imread(name: Any, flatten: bool = False, mode: str | None = None) -> np.ndarray[Any, Any]:
    """The array of an image file (a name or an open file), as `fromimage` gives it."""
    with Image.open(name) as image:
        return fromimage(image, flatten, mode)


def imsave(name: Any, arr: Any, format: str | None = None) -> None:
    """Write an array (see `toimage`) to a file whose format its name tells, or ``format``."""
    image = toimage(arr, channel_axis=2) if np.ndim(arr) == 3 else toimage(arr)
    image.save(name, format=format)


def imresize(
    arr: Any, size: Any, interp: str = "bilinear", mode: str | None = None
) -> np.ndarray[Any, Any]:
    """The bytes of an image in another size.

    Args:
        arr: an array, see `toimage`.
        size: per cent (an int), a fraction (a float) or ``(height, width)``.
        interp: "nearest", "lanczos", "bilinear", "bicubic" or "cubic".
        mode: Pillow's mode while it is resized.
    """
    image = toimage(arr, mode=mode)
    if np.ndim(size):
        new = (int(size[1]), int(size[0]))
    else:
        factor = size / 100.0 if isinstance(size, (int, np.integer)) else float(size)
        new = (int(image.size[0] * factor), int(image.size[1] * factor))
    return fromimage(image.resize(new, resample=_FILTERS[interp]))


def imrotate(arr: Any, angle: float, interp: str = "bilinear") -> np.ndarray[Any, Any]:
    """The image turned counter-clockwise by ``angle`` degrees, in its old size."""
    return fromimage(toimage(arr).rotate(angle, resample=_FILTERS[interp]))


def imshow(arr: Any) -> None:
    """Show an array in the viewer that Pillow finds."""
    toimage(arr).show()


def __getattr__(name: str) -> Any:
    if name in _FROM_SPECIAL:
        return getattr(import_module("scipy.special"), name)
    raise AttributeError(f"module 'scipy.misc' has no attribute {name!r}", name=name)
