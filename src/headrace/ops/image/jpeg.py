"""JPEG files through simplejpeg and Pillow (imported when the first file is read or written).

The pixels are those of libjpeg with its accurate integer transform. TensorFlow's default is the
fast transform, whose values are a few levels off the exact ones (up to 6 were seen, in noise at
quality 95); with ``dct_method="INTEGER_ACCURATE"`` the two agree bit for bit, and so they do
without ``fancy_upscaling``, where both use the fast one. Written files are the same bytes.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

Pixels = NDArray[np.uint8]

#: Images of more pixels are refused before memory is taken for them.
MAX_PIXELS = 1 << 29
#: Modes whose pixels are bytes, one for each band.
_BYTE_MODES = frozenset({"L", "LA", "RGB", "RGBA", "CMYK"})
_XMP = b"http://ns.adobe.com/xap/1.0/\0"
_END_OF_IMAGE = b"\xff\xd9"


class BadImage(ValueError):
    """What is wrong with the bytes of an image."""


@dataclass(frozen=True, slots=True)
class JpegOptions:
    """How to read: see `tf.image.decode_jpeg`."""

    channels: int = 0
    ratio: int = 1
    fancy_upscaling: bool = True
    try_recover_truncated: bool = False
    acceptable_fraction: float = 1.0


def _open(data: bytes) -> Any:
    """Pillow's image, of which only the header is read.

    Raises:
        BadImage: if that is no header of a JPEG file.
    """
    from PIL.JpegImagePlugin import JpegImageFile

    try:
        image = JpegImageFile(BytesIO(data))
    except Exception as error:  # whatever a parser meets in arbitrary bytes
        raise BadImage(f"Invalid JPEG data, data size {len(data)}: {error}") from None
    if len(image.tile) != 1:
        raise BadImage(f"Invalid JPEG data, data size {len(data)}: it has no pixels")
    if image.size[0] * image.size[1] >= MAX_PIXELS:
        raise BadImage(f"JPEG image of {image.size[1]} x {image.size[0]} pixels is too large")
    return image


def jpeg_shape(data: bytes) -> tuple[int, int, int]:
    """Height, width and channels, from the header.

    Raises:
        BadImage: if that is no header of a JPEG file.
    """
    image = _open(data)
    return image.size[1], image.size[0], len(image.getbands())


def decode_jpeg(data: bytes, options: JpegOptions) -> Pixels:
    """``[height, width, channels]``.

    Raises:
        BadImage: if the bytes are no JPEG file, or too little of one.
    """
    pixels = _decode_common(data, options)
    if pixels is not None:
        return pixels
    whole = data + _END_OF_IMAGE if options.try_recover_truncated else data
    image = _open(whole)
    mode = _prepare(image, options)
    error = _load(image)
    pixels = _colours(image, mode)
    if error is not None:
        _require_enough(data, pixels, options, error)
    return pixels


def _decode_common(data: bytes, options: JpegOptions) -> Pixels | None:
    """A whole file in brightness and colours, as nearly all are; None if it may be another.

    By simplejpeg, that is the same libjpeg-turbo as Pillow's and gives the same pixels. Pillow
    takes about twice as long, and holds Python's lock for a third of that.
    """
    import simplejpeg

    if options.ratio != 1 or options.try_recover_truncated:
        return None
    try:
        height, width, space, _ = simplejpeg.decode_jpeg_header(data)
        if space not in ("YCbCr", "Gray") or height * width >= MAX_PIXELS:
            return None
        is_gray = options.channels == 1 or (options.channels == 0 and space == "Gray")
        is_fast = not options.fancy_upscaling
        pixels: Pixels = simplejpeg.decode_jpeg(
            data, "GRAY" if is_gray else "RGB", fastdct=is_fast, fastupsample=is_fast
        )
    except ValueError:  # Pillow tells what is wrong, or reads on
        return None
    return pixels


def _prepare(image: Any, options: JpegOptions) -> str:
    """Tell the decoder what to do; the mode to convert to afterwards."""
    own: str = image.mode
    wanted = {0: own, 1: "L", 3: "RGB"}[options.channels]
    if own == "CMYK":
        if wanted == "L":
            raise BadImage("A JPEG image in CMYK cannot be decoded with 1 channel")
        wanted = "RGB"
    tile = image.tile[0]
    if own == "RGB" and wanted == "L":  # the brightness is what the file holds
        image._mode = "L"
        tile = tile._replace(args=("L", ""))
    scale = options.ratio
    if scale != 1:
        image._size = tuple([-(-n // scale) for n in image.size])
        tile = tile._replace(extents=(0, 0, *image.size))
    image.tile = [tile]
    # The second is Pillow's "draft" flag: fast transform, plain upscaling.
    image.decoderconfig = (scale, 0 if options.fancy_upscaling else 1)
    return wanted


def _load(image: Any) -> Exception | None:
    """Decode; what went wrong, if anything. Lines that were not reached are black."""
    try:
        image.load()
    except Exception as error:  # see _open
        image.tile = []
        if image._im is None:
            image.load_prepare()
        return error
    return None


def _colours(image: Any, mode: str) -> Pixels:
    if image.mode == "CMYK":
        return _from_cmyk(pixels_of(image), "adobe" in image.info)
    if image.mode != mode:
        image = image.convert(mode)
    pixels: Pixels = pixels_of(image)
    return pixels[:, :, None] if pixels.ndim == 2 else pixels


def pixels_of(image: Any) -> NDArray[Any]:
    """The pixels of a loaded image of Pillow's: ``[height, width]``, or with channels.

    ``numpy.asarray`` takes them in pieces and joins these; one piece saves that copy.
    """
    from PIL import Image

    bands = len(image.getbands())
    if image.mode in _BYTE_MODES:
        width, height = image.size
        encoder = Image._getencoder(image.mode, "raw", (image.mode,))
        encoder.setimage(image.im, (0, 0, width, height))
        _, status, data = encoder.encode(width * height * bands)
        if status > 0 and len(data) == width * height * bands:
            shape = (height, width, bands) if bands > 1 else (height, width)
            return np.frombuffer(data, np.uint8).reshape(shape)
    return np.asarray(image)


def _from_cmyk(inks: Pixels, is_adobe: bool) -> Pixels:
    """Pillow takes it that the file holds inverted inks, which only files of Adobe do."""
    light = inks.astype(np.uint16)
    if is_adobe:
        light = 255 - light
    return (light[:, :, :3] * light[:, :, 3:] // 255).astype(np.uint8)


def _require_enough(data: bytes, pixels: Pixels, options: JpegOptions, error: Exception) -> None:
    lines = np.flatnonzero(pixels.any(axis=(1, 2)))
    reached = int(lines[-1]) + 1 if lines.size else 0
    needed = options.acceptable_fraction * pixels.shape[0]
    if reached < needed or reached == 0:
        raise BadImage(
            f"Invalid JPEG data or crop window, data size {len(data)}: {error}; {reached} of "
            f"{pixels.shape[0]} lines could be read"
        )


# -- writing ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class JpegStyle:
    """How to write: see `tf.image.encode_jpeg`."""

    quality: int = 95
    progressive: bool = False
    optimize_size: bool = False
    chroma_downsampling: bool = True
    density_unit: str = "in"
    x_density: int = 300
    y_density: int = 300
    xmp_metadata: bytes = b""


def encode_jpeg(pixels: Pixels, style: JpegStyle) -> bytes:
    """The file of an image ``[height, width, 1 or 3]``.

    Raises:
        BadImage: if it is too large for the format.
    """
    from PIL import Image

    picture = Image.fromarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels)
    out = BytesIO()
    try:
        picture.save(
            out,
            "JPEG",
            quality=max(style.quality, 1),
            progressive=style.progressive,
            optimize=style.optimize_size,
            subsampling="4:2:0" if style.chroma_downsampling else "4:4:4",
            dpi=(1, 1),
        )
    except (OSError, ValueError) as error:
        raise BadImage(f"JPEG encoding of shape {pixels.shape} failed: {error}") from None
    return _with_header(out.getvalue(), style)


def _with_header(data: bytes, style: JpegStyle) -> bytes:
    """The density as it was given, and the metadata behind the first segment."""
    end = 4 + struct.unpack(">H", data[4:6])[0]
    unit = 1 if style.density_unit == "in" else 2
    density = struct.pack(">BHH", unit, style.x_density, style.y_density)
    metadata = b""
    if style.xmp_metadata:
        content = _XMP + style.xmp_metadata
        if len(content) > 0xFFFD:
            raise BadImage(f"xmp_metadata of {len(style.xmp_metadata)} bytes fits no segment")
        metadata = b"\xff\xe1" + struct.pack(">H", len(content) + 2) + content
    return data[:13] + density + data[18:end] + metadata + data[end:]
