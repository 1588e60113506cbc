"""Reading and writing image files: the public functions (the ops are in `ops.image.files`)."""

from __future__ import annotations

from typing import Any

from headrace.graph import dtypes
from headrace.graph.graph import get_default_graph
from headrace.graph.tensor import Tensor
from headrace.ops.core.build import raw
from headrace.ops.core.public import public
from headrace.ops.image import files as _ops  # noqa: F401  (defines the ops)


@public("io.decode_jpeg")
def decode_jpeg(
    contents: Any,
    channels: int | None = 0,
    ratio: int = 1,
    fancy_upscaling: bool = True,
    try_recover_truncated: bool = False,
    acceptable_fraction: float = 1,
    dct_method: str = "",
    name: str | None = None,
) -> Tensor:
    """The image in a JPEG file (PNG files, and GIF files of one frame, are taken too).

    Args:
        contents: string scalar, the bytes of the file.
        channels: 0: as in the file; 1: grey; 3: colour.
        ratio: 1, 2, 4 or 8: by how much to make the image smaller.
        fancy_upscaling: whether colour is interpolated where the file has less of it.
        try_recover_truncated: whether a file may end too early; the rest is then grey or as the
            part before.
        acceptable_fraction: the least part of the lines that must be there; others are black.
        dct_method: "", "INTEGER_FAST" or "INTEGER_ACCURATE"; all give the accurate transform with
            ``fancy_upscaling`` and the fast one without.

    Returns:
        uint8 ``[height, width, channels]``.

    Raises:
        InvalidArgumentError: when run, if the bytes are no image, or are cut off or corrupt.
    """
    return raw.DecodeJpeg(
        contents,
        channels=channels or 0,
        ratio=ratio,
        fancy_upscaling=fancy_upscaling,
        try_recover_truncated=try_recover_truncated,
        acceptable_fraction=acceptable_fraction,
        dct_method=dct_method,
        name=name,
    )


@public("io.decode_and_crop_jpeg")
def decode_and_crop_jpeg(
    contents: Any,
    crop_window: Any,
    channels: int = 0,
    ratio: int = 1,
    fancy_upscaling: bool = True,
    try_recover_truncated: bool = False,
    acceptable_fraction: float = 1,
    dct_method: str = "",
    name: str | None = None,
) -> Tensor:
    """A part of the image in a JPEG file.

    The other arguments are those of ``decode_jpeg``.

    Args:
        crop_window: int32 ``[top, left, height, width]`` in pixels of the whole image.

    Returns:
        uint8 ``[height, width, channels]``.

    Raises:
        InvalidArgumentError: when run, as ``decode_jpeg``, or if the window is not inside the
            image.
    """
    return raw.DecodeAndCropJpeg(
        contents,
        crop_window,
        channels=channels,
        ratio=ratio,
        fancy_upscaling=fancy_upscaling,
        try_recover_truncated=try_recover_truncated,
        acceptable_fraction=acceptable_fraction,
        dct_method=dct_method,
        name=name,
    )


@public("io.decode_png")
def decode_png(
    contents: Any, channels: int | None = 0, dtype: Any = dtypes.uint8, name: str | None = None
) -> Tensor:
    """The image in a PNG file (JPEG files, and GIF files of one frame, are taken too).

    Args:
        contents: string scalar, the bytes of the file.
        channels: 0: as in the file; 1: grey; 3: colour; 4: colour and alpha.
        dtype: uint8 or uint16.

    Returns:
        ``[height, width, channels]`` of ``dtype``.

    Raises:
        InvalidArgumentError: when run, if the bytes are no image, or are cut off or corrupt.
    """
    return raw.DecodePng(contents, channels=channels or 0, dtype=dtype, name=name)


@public("io.decode_gif")
def decode_gif(contents: Any, name: str | None = None) -> Tensor:
    """The frames of a GIF file: uint8 ``[frames, height, width, 3]``.

    A file that is cut off gives the frames that are whole. Height and width are those of the
    largest frame. Other formats give one frame.

    Raises:
        InvalidArgumentError: when run, if the bytes are no image, are corrupt or have no frame.
    """
    return raw.DecodeGif(contents, name=name)


@public("io.decode_bmp")
def decode_bmp(contents: Any, channels: int = 0, name: str | None = None) -> Tensor:
    """The image in a BMP file of 8 (grey), 24 or 32 bits: uint8 ``[height, width, channels]``.

    ``channels``: 0: as in the file; 3: colour; 4: colour and alpha.

    Raises:
        InvalidArgumentError: when run, if the bytes are no such image or are cut off.
    """
    return raw.DecodeBmp(contents, channels=channels, name=name)


@public("io.decode_image")
def decode_image(
    contents: Any,
    channels: int | None = None,
    dtype: Any = dtypes.uint8,
    name: str | None = None,
    expand_animations: bool = True,
) -> Tensor:
    """The image in a JPEG, PNG, GIF or BMP file, whichever it is.

    Args:
        contents: string scalar, the bytes of the file.
        channels: None or 0: as in the file; or 1, 3 or 4 where the format has them.
        dtype: uint8, uint16, or float32 for values in [0, 1].
        expand_animations: whether a GIF file gives a dimension of frames; else its first frame.

    Returns:
        ``[height, width, channels]``, or with frames before them, of ``dtype``. Its rank is
        known only without ``expand_animations``.

    Raises:
        ValueError: for other ``channels``.
        InvalidArgumentError: when run, if the bytes are no image, or are cut off or corrupt.
    """
    if channels not in (None, 0, 1, 3, 4):
        raise ValueError(f"channels must be in (None, 0, 1, 3, 4), got {channels}")
    wanted = dtypes.as_dtype(dtype)
    if wanted not in (dtypes.uint8, dtypes.uint16, dtypes.float32):
        raise ValueError(f"Image dtype {wanted.name} is not supported: uint8, uint16 or float32")
    return raw.DecodeImage(
        contents,
        channels=channels or 0,
        dtype=wanted,
        expand_animations=expand_animations,
        name=name,
    )


@public("io.extract_jpeg_shape")
def extract_jpeg_shape(
    contents: Any, output_type: Any = dtypes.int32, name: str | None = None
) -> Tensor:
    """Height, width and channels of a JPEG file, without decoding it: ``[3]``, int32 or int64.

    Raises:
        InvalidArgumentError: when run, if the bytes do not begin as such a file does.
    """
    return raw.ExtractJpegShape(contents, output_type=output_type, name=name)


@public("io.is_jpeg")
def is_jpeg(contents: Any, name: str | None = None) -> Tensor:
    """Whether the bytes begin like a JPEG file.

    Args:
        contents: strings of any shape.

    Returns:
        bool of that shape.

    Raises:
        TypeError: if ``contents`` are no strings.
    """
    with get_default_graph().name_scope(name or "is_jpeg") as scope:
        return raw.Equal(raw.Substr(contents, 0, 3), b"\xff\xd8\xff", name=scope)


@public("io.encode_jpeg")
def encode_jpeg(
    image: Any,
    format: str = "",
    quality: int = 95,
    progressive: bool = False,
    optimize_size: bool = False,
    chroma_downsampling: bool = True,
    density_unit: str = "in",
    x_density: int = 300,
    y_density: int = 300,
    xmp_metadata: str | bytes = "",
    name: str | None = None,
) -> Tensor:
    """The bytes of a JPEG file: a string scalar.

    Args:
        image: uint8 ``[height, width, 1 or 3]``.
        format: "grayscale" or "rgb", or "" for what the channels tell.
        quality: 0 to 100.
        progressive: whether to write the image coarsely first.
        optimize_size: whether to spend time on a smaller file.
        chroma_downsampling: whether to write a quarter of the colour.
        density_unit: "in" or "cm", for ``x_density`` and ``y_density``, in pixels.
        xmp_metadata: a document to put into the file.

    Raises:
        ValueError: if the image is not of rank 3, or ``format`` or ``density_unit`` is another.
        InvalidArgumentError: when run, for other channels or another quality.
    """
    return raw.EncodeJpeg(
        image,
        format=format,
        quality=quality,
        progressive=progressive,
        optimize_size=optimize_size,
        chroma_downsampling=chroma_downsampling,
        density_unit=density_unit,
        x_density=x_density,
        y_density=y_density,
        xmp_metadata=xmp_metadata,
        name=name,
    )


def encode_png(image: Any, compression: int = -1, name: str | None = None) -> Tensor:
    """The bytes of a PNG file: a string scalar.

    Args:
        image: uint8 or uint16 ``[height, width, 1 to 4]``; with dimensions before these, there is
            a file for each image.
        compression: -1 for the default, or 0 (large) to 9 (slow).

    Raises:
        InvalidArgumentError: when run, for other channels or another compression.
    """
    return raw.EncodePng(image, compression=compression, name=name)
