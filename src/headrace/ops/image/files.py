"""Image files: reading and writing JPEG, PNG, GIF and BMP, through Pillow (host ops).

The public functions are in `ops.image.files_api`. Every reading op looks at the bytes to see which
format they have, so `decode_jpeg` reads a PNG file too, as in TensorFlow. Pillow lets other threads
run while it decodes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from headrace.graph.dtypes import DType
from headrace.graph.shapes import shape_text
from headrace.graph.tensor import Dims, Operation
from headrace.ops.core.array_util import require_rank, static_ints
from headrace.ops.core.checks import invalid
from headrace.ops.core.registry import NotDifferentiable, define_op
from headrace.ops.image import gif, jpeg, png
from headrace.ops.image.jpeg import BadImage, JpegOptions, JpegStyle

__all__: list[str] = []

_NO_GRADIENT = NotDifferentiable("it works on files")
_MAGIC = {
    b"\xff\xd8\xff": "JPEG",
    b"\x89PNG": "PNG",
    b"GIF8": "GIF",
    b"BM": "BMP",
}


def _bytes(contents: Any) -> bytes:
    """The string in a scalar.

    Raises:
        InvalidArgumentError: if there is more than one.
    """
    if np.ndim(contents):
        raise invalid(f"contents must be scalar, got shape {shape_text(np.shape(contents))}")
    item = contents.item() if isinstance(contents, np.ndarray) else contents
    return item.encode() if isinstance(item, str) else bytes(item)


def _format(data: bytes) -> str:
    for magic, name in _MAGIC.items():
        if data.startswith(magic):
            return name
    begins = f"begins with {data[:8]!r}" if data else "is empty"
    raise invalid(f"Unknown image file format. One of JPEG, PNG, GIF, BMP required; this {begins}.")


def _guarded(function: Callable[..., Any], *args: Any) -> Any:
    try:
        return function(*args)
    except BadImage as error:
        raise invalid(str(error)) from None


# -- reading ------------------------------------------------------------------------------------

_ALLOWED = {
    "JPEG": (0, 1, 3),
    "PNG": (0, 1, 3, 4),
    "GIF": (0, 3),
    "BMP": (0, 3, 4),
}


def _decoded(
    op_type: str, data: bytes, options: JpegOptions, dtype: Any = np.uint8, animated: bool = True
) -> Any:
    """The image in a file of any of the formats, as ``op_type`` gives it."""
    kind = _format(data)
    if options.channels not in _ALLOWED[kind]:
        allowed = ", ".join(map(str, _ALLOWED[kind]))
        raise invalid(f"channels must be one of {allowed} for {kind}, got {options.channels}")
    own = {"DecodeBmp": "BMP", "DecodeAndCropJpeg": "JPEG"}.get(op_type)
    if (own and kind != own) or (kind == "BMP" and op_type not in ("DecodeBmp", "DecodeImage")):
        raise invalid(
            f"Trying to decode {kind} format using a wrong op: {op_type}. Use "
            f"`decode_{kind.lower()}` or `decode_image` instead."
        )
    if kind == "JPEG":
        pixels = _guarded(jpeg.decode_jpeg, data, options)
    elif kind == "PNG":
        sixteen = dtype != np.uint8
        return _as_type(
            _as_rank(_guarded(png.decode_png, data, options.channels, sixteen), op_type),
            dtype,
        )
    elif kind == "BMP":
        pixels = _guarded(gif.decode_bmp, data, options.channels)
    else:
        return _as_type(_gif(op_type, data, animated), dtype)
    return _as_type(_as_rank(pixels, op_type), dtype)


def _gif(op_type: str, data: bytes, animated: bool) -> Any:
    frames = _guarded(gif.decode_gif, data, op_type == "DecodeImage" and not animated)
    if op_type == "DecodeGif" or (op_type == "DecodeImage" and animated):
        return frames
    if len(frames) > 1:
        raise invalid(
            f"Got {len(frames)} frames, but animated gifs can only be decoded by "
            "tf.image.decode_gif or tf.image.decode_image"
        )
    return frames[0]


def _as_rank(pixels: Any, op_type: str) -> Any:
    return pixels[None] if op_type == "DecodeGif" else pixels


def _as_type(pixels: Any, dtype: Any) -> Any:
    """Bytes to 16 bits by a factor of 256; to floats in [0, 1]."""
    if pixels.dtype == dtype:
        return pixels
    if dtype == np.uint16:
        return pixels.astype(np.uint16) * np.uint16(256)
    return pixels.astype(np.float32) * np.float32(1.0 / np.iinfo(pixels.dtype).max)


def _image_shape(op: Operation) -> list[Dims]:
    require_rank(op.inputs[0], 0, "contents")
    return [(None, None, op.attrs["channels"] or None)]


_JPEG_METHODS = ("", "INTEGER_FAST", "INTEGER_ACCURATE")


def _options(
    channels: int,
    ratio: int,
    fancy_upscaling: bool,
    try_recover_truncated: bool,
    acceptable_fraction: float,
    dct_method: str,
) -> JpegOptions:
    if channels not in (0, 1, 3, 4):
        raise invalid(f"channels must be 0, 1, 3 or 4, got {channels}")
    if ratio not in (1, 2, 4, 8):
        raise invalid(f"ratio must be 1, 2, 4, or 8, got {ratio}")
    if dct_method not in _JPEG_METHODS:
        raise invalid(f"dct_method must be one of {_JPEG_METHODS}, got {dct_method!r}")
    return JpegOptions(channels, ratio, fancy_upscaling, try_recover_truncated, acceptable_fraction)


def _decode_jpeg(
    context: Any,
    contents: Any,
    *,
    channels: int,
    ratio: int,
    fancy_upscaling: bool,
    try_recover_truncated: bool,
    acceptable_fraction: float,
    dct_method: str,
) -> Any:
    options = _options(
        channels, ratio, fancy_upscaling, try_recover_truncated, acceptable_fraction, dct_method
    )
    return _decoded("DecodeJpeg", _bytes(contents), options)


def _decode_and_crop(
    context: Any,
    contents: Any,
    crop_window: Any,
    *,
    channels: int,
    ratio: int,
    fancy_upscaling: bool,
    try_recover_truncated: bool,
    acceptable_fraction: float,
    dct_method: str,
) -> Any:
    options = _options(
        channels, ratio, fancy_upscaling, try_recover_truncated, acceptable_fraction, dct_method
    )
    pixels = _decoded("DecodeAndCropJpeg", _bytes(contents), options)
    if crop_window.shape != (4,):
        raise invalid(f"crop_window must have four elements, got {shape_text(crop_window.shape)}")
    y, x, height, width = crop_window.tolist()
    if (
        min(y, x) < 0
        or min(height, width) <= 0
        or y + height > pixels.shape[0]
        or x + width > pixels.shape[1]
    ):
        raise invalid(
            f"Invalid crop window [{y}, {x}, {height}, {width}] of an image of "
            f"{pixels.shape[0]} x {pixels.shape[1]} pixels"
        )
    return np.ascontiguousarray(pixels[y : y + height, x : x + width])


_JPEG_ATTRS = (
    "channels: int = 0, ratio: int = 1, fancy_upscaling: bool = True, "
    "try_recover_truncated: bool = False, acceptable_fraction: float = 1.0, "
    "dct_method: string = ''"
)

define_op(
    "DecodeJpeg(contents: string) -> image: uint8",
    attrs=_JPEG_ATTRS,
    shape=_image_shape,
    host=_decode_jpeg,
    gradient=_NO_GRADIENT,
)


def _crop_shape(op: Operation) -> list[Dims]:
    window = static_ints(op.inputs[1])
    size = (None, None) if window is None or len(window) != 4 else window[2:]
    return [(*size, op.attrs["channels"] or None)]


define_op(
    "DecodeAndCropJpeg(contents: string, crop_window: int32) -> image: uint8",
    attrs=_JPEG_ATTRS,
    shape=_crop_shape,
    host=_decode_and_crop,
    gradient=_NO_GRADIENT,
)
define_op(
    "DecodePng(contents: string) -> image: dtype",
    attrs="channels: int = 0, dtype: {uint8, uint16} = uint8",
    shape=_image_shape,
    host=lambda context, contents, *, channels, dtype: _decoded(
        "DecodePng", _bytes(contents), JpegOptions(channels), dtype.np_dtype
    ),
    gradient=_NO_GRADIENT,
)
define_op(
    "DecodeBmp(contents: string) -> image: uint8",
    attrs="channels: int = 0",
    shape=_image_shape,
    host=lambda context, contents, *, channels: _decoded(
        "DecodeBmp", _bytes(contents), JpegOptions(channels)
    ),
    gradient=_NO_GRADIENT,
)
define_op(
    "DecodeGif(contents: string) -> image: uint8",
    shape=lambda op: [(None, None, None, 3)],
    host=lambda context, contents: _decoded("DecodeGif", _bytes(contents), JpegOptions(3)),
    gradient=_NO_GRADIENT,
)


def _decode_image(
    context: Any, contents: Any, *, channels: int, dtype: DType, expand_animations: bool
) -> Any:
    options = JpegOptions(channels)
    return _decoded("DecodeImage", _bytes(contents), options, dtype.np_dtype, expand_animations)


define_op(
    "DecodeImage(contents: string) -> image: dtype",
    attrs=(
        "channels: int = 0, dtype: {uint8, uint16, float32} = uint8, expand_animations: bool = True"
    ),
    shape=lambda op: (
        [None] if op.attrs["expand_animations"] else [(None, None, op.attrs["channels"] or None)]
    ),
    host=_decode_image,
    gradient=_NO_GRADIENT,
)


def _jpeg_shape(context: Any, contents: Any, *, output_type: DType) -> Any:
    return np.array(_guarded(jpeg.jpeg_shape, _bytes(contents)), output_type.np_dtype)


define_op(
    "ExtractJpegShape(contents: string) -> image_shape: output_type",
    attrs="output_type: index = int32",
    shape=lambda op: [(3,)],
    host=_jpeg_shape,
    gradient=_NO_GRADIENT,
)


# -- writing ------------------------------------------------------------------------------------


def _encode_shape(op: Operation) -> list[Dims]:
    require_rank(op.inputs[0], 3, "image")
    return [()]


def _check_channels(image: Any, allowed: tuple[int, ...]) -> None:
    if image.ndim != 3:
        raise invalid(f"image must be 3-dimensional, got {shape_text(image.shape)}")
    if image.shape[2] not in allowed or not image.size:
        raise invalid(
            f"image must have 1 or more pixels of {', '.join(map(str, allowed))} channels, got "
            f"shape {shape_text(image.shape)}"
        )


def _string(data: bytes) -> Any:
    scalar = np.empty((), object)
    scalar[()] = data
    return scalar


def _encode_jpeg(
    context: Any,
    image: Any,
    *,
    format: str,
    quality: int,
    progressive: bool,
    optimize_size: bool,
    chroma_downsampling: bool,
    density_unit: str,
    x_density: int,
    y_density: int,
    xmp_metadata: Any,
) -> Any:
    _check_channels(image, {"": (1, 3), "grayscale": (1,), "rgb": (3,)}[format])
    if not 0 <= quality <= 100:
        raise invalid(f"quality must be in [0,100], got {quality}")
    metadata = xmp_metadata.encode() if isinstance(xmp_metadata, str) else xmp_metadata
    style = JpegStyle(
        quality,
        progressive,
        optimize_size,
        chroma_downsampling,
        density_unit,
        x_density,
        y_density,
        metadata,
    )
    return _string(_guarded(jpeg.encode_jpeg, np.ascontiguousarray(image), style))


define_op(
    "EncodeJpeg(image: uint8) -> contents: string",
    attrs=(
        "format: {'', 'grayscale', 'rgb'} = '', quality: int = 95, progressive: bool = False, "
        "optimize_size: bool = False, chroma_downsampling: bool = True, "
        "density_unit: {'in', 'cm'} = 'in', x_density: int = 300, y_density: int = 300, "
        "xmp_metadata: string = ''"
    ),
    shape=_encode_shape,
    host=_encode_jpeg,
    gradient=_NO_GRADIENT,
)


def _encode_variable(context: Any, images: Any, quality: Any) -> Any:
    _check_channels(images, (1, 3))
    if quality.shape != () or not 0 <= int(quality) <= 100:
        raise invalid(f"quality must be a scalar in [0,100], got {quality}")
    style = JpegStyle(int(quality))
    return _string(_guarded(jpeg.encode_jpeg, np.ascontiguousarray(images), style))


def _variable_shape(op: Operation) -> list[Dims]:
    require_rank(op.inputs[1], 0, "quality")
    return _encode_shape(op)


define_op(
    "EncodeJpegVariableQuality(images: uint8, quality: int32) -> contents: string",
    shape=_variable_shape,
    host=_encode_variable,
    gradient=_NO_GRADIENT,
)


def _png_shape(op: Operation) -> list[Dims]:
    dims = op.inputs[0].dims
    if dims is None:
        return [None]
    if len(dims) < 3:
        raise ValueError(f"image must have at least 3 dimensions, not {shape_text(dims)}")
    return [dims[:-3]]


def _encode_png(context: Any, image: Any, *, compression: int) -> Any:
    if image.ndim < 3:
        raise invalid(f"image must have at least 3 dimensions, got {shape_text(image.shape)}")
    if not -1 <= compression <= 9:
        raise invalid(f"compression should be in [-1,9], got {compression}")
    files = np.empty(image.shape[:-3], object)
    for place in np.ndindex(files.shape):
        _check_channels(image[place], (1, 2, 3, 4))
        files[place] = png.encode_png(image[place], compression)
    return files


define_op(
    "EncodePng(image: T) -> contents: string",
    attrs="compression: int = -1, T: {uint8, uint16} = uint8",
    shape=_png_shape,
    host=_encode_png,
    gradient=_NO_GRADIENT,
)
