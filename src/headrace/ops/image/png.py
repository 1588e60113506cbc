"""PNG files: 8 bits through Pillow, 16 bits of colour by hand, which Pillow reads as 8.

The format: ISO/IEC 15948. Conversions between grey, colour and alpha are those of libpng, as
TensorFlow uses it.
"""

from __future__ import annotations

import struct
import zlib
from io import BytesIO
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from headrace.ops.image.jpeg import MAX_PIXELS, BadImage, pixels_of

Pixels = NDArray[Any]

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
#: First column, first row, column step and row step of the passes of an interlaced image.
_ADAM7 = (
    (0, 0, 8, 8),
    (4, 0, 8, 8),
    (0, 4, 4, 8),
    (2, 0, 4, 4),
    (0, 2, 2, 4),
    (1, 0, 2, 2),
    (0, 1, 1, 2),
)
#: What Pillow calls the colour types of 8 bits that need no palette.
_MODES = {0: "L", 2: "RGB", 4: "LA", 6: "RGBA"}
#: Chunks that say nothing about the pixels of such a file.
_PLAIN = frozenset(
    b"IHDR IEND bKGD cHRM eXIf gAMA hIST iCCP iTXt pHYs sBIT sRGB tEXt tIME zTXt".split()
)
#: Images of up to so many pixels are decoded without Pillow's way of opening files, which takes
#: longer than to decode the smallest ones.
_SMALL = 1 << 18
# Weights of red and green in grey, in 1/32768.
_RED, _GREEN = 9797, 19234


class _Header(NamedTuple):
    width: int
    height: int
    depth: int
    colour: int
    interlaced: bool

    @property
    def channels(self) -> int:
        return _CHANNELS[self.colour]


def decode_png(data: bytes, channels: int, sixteen: bool) -> Pixels:
    """``[height, width, channels]`` of uint8, or uint16 if ``sixteen``.

    ``channels`` 0 stands for those of the file; a palette gives 3, with transparency 4.

    Raises:
        BadImage: if the bytes are no PNG file, or only a part of one.
    """
    header = _header(data)
    if header.width * header.height >= MAX_PIXELS:
        raise BadImage(f"PNG image of {header.height} x {header.width} pixels is too large")
    chunks, packed = _chunks(data)
    key = chunks.get(b"tRNS")
    grey = channels in (1, 2) and header.colour in (2, 6)
    if header.depth == 16 and (sixteen or key or grey or header.colour == 4):
        pixels = _decode_wide(data, header, packed)
        if key and channels in (2, 4) and header.colour in (0, 2):
            pixels = _with_key(pixels, key)
        elif channels in (1, 3) and pixels.shape[2] in (2, 4):
            pixels = pixels[:, :, :-1]
        pixels = converted(pixels, channels)
        return pixels if sixteen else (pixels >> 8).astype(np.uint8)
    narrow = _decode_plain(data, header, packed) if _PLAIN.issuperset(chunks) else None
    if narrow is None:
        narrow = _decode_narrow(data, header, channels)
    pixels = converted(narrow, channels)
    return pixels.astype(np.uint16) * np.uint16(257) if sixteen else pixels


def _header(data: bytes) -> _Header:
    if not data.startswith(_SIGNATURE) or data[12:16] != b"IHDR" or len(data) < 33:
        raise BadImage(f"Invalid PNG data, size {len(data)}: its header is no PNG header")
    width, height, depth, colour, _, _, interlace = struct.unpack(">IIBBBBB", data[16:29])
    if colour not in _CHANNELS or depth not in (1, 2, 4, 8, 16) or not width or not height:
        raise BadImage(
            f"Invalid PNG data, size {len(data)}: the header tells of {width} x {height} pixels of "
            f"depth {depth} and colour type {colour}"
        )
    return _Header(width, height, depth, colour, interlace == 1)


def _chunks(data: bytes) -> tuple[dict[bytes, bytes], list[slice]]:
    """Contents of the chunks that are no image data, by type; where the packed pixels are.

    Raises:
        BadImage: if the file ends before its last chunk does.
    """
    found: dict[bytes, bytes] = {}
    packed: list[slice] = []
    at = 8
    while at + 12 <= len(data):
        length = int.from_bytes(data[at : at + 4], "big")
        kind = data[at + 4 : at + 8]
        inside = slice(at + 8, at + 8 + length)
        if kind == b"IDAT":
            packed.append(inside)
        else:
            found[kind] = data[inside]
        at += 12 + length
        if kind == b"IEND" and at <= len(data):
            return found, packed
    raise BadImage(f"Invalid PNG data, size {len(data)}: the file is truncated")


def _joined(data: bytes, parts: list[slice]) -> bytes:
    return b"".join([data[part] for part in parts])


# -- 8 bits -------------------------------------------------------------------------------------


def _loaded(data: bytes) -> tuple[Any, Pixels]:
    """Pillow's image, and its pixels with a dimension for channels.

    Raises:
        BadImage: if Pillow cannot read it.
    """
    from PIL.PngImagePlugin import PngImageFile

    try:
        image = PngImageFile(BytesIO(data))
        image.load()
    except Exception as error:  # whatever a parser meets in arbitrary bytes
        raise BadImage(f"Invalid PNG data, size {len(data)}: {error}") from None
    return image, _with_channels(pixels_of(image))


def _with_channels(pixels: Pixels) -> Pixels:
    return pixels[:, :, None] if pixels.ndim == 2 else pixels


def _decode_plain(data: bytes, header: _Header, packed: list[slice]) -> Pixels | None:
    """The pixels of a small ordinary file; None if it is none, or is damaged."""
    mode = _MODES.get(header.colour)
    if header.depth != 8 or mode is None or header.interlaced:
        return None
    if header.width * header.height > _SMALL:
        return None
    if zlib.crc32(data[12:29]) != int.from_bytes(data[29:33], "big"):
        return None
    from PIL import Image

    try:
        image = Image.frombytes(mode, header[:2], _joined(data, packed), "zip", mode)
    except Exception:  # the other way to read it tells what is wrong
        return None
    return _with_channels(pixels_of(image))


def _decode_narrow(data: bytes, header: _Header, channels: int) -> Pixels:
    image, pixels = _loaded(data)
    has_key = "transparency" in image.info
    alpha = channels in (2, 4) or (channels == 0 and header.colour == 3)
    if header.depth == 16 and header.colour == 0:
        return (pixels >> 8).astype(np.uint8)
    if header.colour == 3:
        pixels = pixels_of(image.convert("RGBA" if has_key else "RGB"))
        return pixels if alpha else pixels[:, :, :3]
    if has_key and alpha and header.colour in (0, 2):
        return pixels_of(image.convert("LA" if header.colour == 0 else "RGBA"))
    return pixels_of(image.convert("L"))[:, :, None] if image.mode == "1" else pixels


def converted(pixels: Pixels, channels: int) -> Pixels:
    """Grey to colour or back, with or without alpha."""
    have = pixels.shape[2]
    if channels in (0, have):
        return pixels
    colour, alpha = pixels, None
    if have in (2, 4):
        colour, alpha = pixels[:, :, :-1], pixels[:, :, -1:]
    if channels >= 3 and colour.shape[2] == 1:
        colour = np.repeat(colour, 3, axis=2)
    elif channels < 3 and colour.shape[2] == 3:
        colour = _grey(colour)
    if channels in (1, 3):
        return np.ascontiguousarray(colour)
    if alpha is None:
        alpha = np.full((*pixels.shape[:2], 1), np.iinfo(pixels.dtype).max, pixels.dtype)
    return np.concatenate([colour, alpha], axis=2)


def _grey(colour: Pixels) -> Pixels:
    wide = colour.astype(np.int64)
    red, green, blue = wide[:, :, 0], wide[:, :, 1], wide[:, :, 2]
    rounding = 16384 if colour.dtype == np.uint16 else 0
    mixed = (_RED * red + _GREEN * green + (32768 - _RED - _GREEN) * blue + rounding) >> 15
    return mixed.astype(colour.dtype)[:, :, None]


# -- 16 bits ------------------------------------------------------------------------------------


def _with_key(pixels: Pixels, key: bytes) -> Pixels:
    """An alpha channel that is zero where a pixel has the transparent colour ``key``."""
    if len(key) != 2 * pixels.shape[2]:
        return pixels
    same = (pixels == np.frombuffer(key, ">u2")).all(axis=2, keepdims=True)
    return np.concatenate([pixels, np.where(same, np.uint16(0), np.uint16(65535))], axis=2)


def _decode_wide(data: bytes, header: _Header, packed: list[slice]) -> Pixels:
    if header.colour == 0:  # grey of 16 bits is the one kind that Pillow keeps
        return _loaded(data)[1].astype(np.uint16)
    each = 2 * header.channels
    passes = [(0, 0, 1, 1)] if not header.interlaced else _ADAM7
    sizes = []
    for x, y, dx, dy in passes:
        size = (-(-(header.height - y) // dy), -(-(header.width - x) // dx))
        sizes.append(size if min(size) > 0 else (0, 0))
    total = sum(h * (w * each + 1) for h, w in sizes)
    content = _inflated(_joined(data, packed), total, len(data))
    out = np.empty((header.height, header.width, header.channels), np.uint16)
    at = 0
    for (x, y, dx, dy), (h, w) in zip(passes, sizes, strict=True):
        end = at + h * (w * each + 1)
        if end > at:
            lines = np.frombuffer(content[at:end], np.uint8).reshape(h, w * each + 1)
            raw = _unfiltered(lines[:, 0], lines[:, 1:].reshape(h, w, each))
            out[y::dy, x::dx] = raw.view(">u2").reshape(h, w, header.channels)
        at = end
    return out


def _inflated(packed: bytes, size: int, data_size: int) -> bytes:
    try:
        content = zlib.decompressobj().decompress(packed, size)
    except zlib.error as error:
        raise BadImage(f"Invalid PNG data, size {data_size}: {error}") from None
    if len(content) < size:
        raise BadImage(
            f"Invalid PNG data, size {data_size}: it holds {len(content)} of {size} bytes of pixels"
        )
    return content


def _unfiltered(kinds: Pixels, lines: Pixels) -> Pixels:
    """Undo the prediction of each byte from those to the left, above and between.

    Pixels along a diagonal do not depend on each other: a step of the loop takes one diagonal.
    """
    height, width, each = lines.shape
    if kinds.max(initial=0) > 4:
        raise BadImage(f"Invalid PNG data: a line has filter type {kinds.max()}")
    done = np.zeros((height + 1, width + 1, each), np.int16)
    for diagonal in range(height + width - 1):
        rows = np.arange(max(0, diagonal - width + 1), min(height, diagonal + 1))
        columns = diagonal - rows
        left, up, corner = done[rows + 1, columns], done[rows, columns + 1], done[rows, columns]
        guesses = [np.zeros_like(left), left, up, (left + up) >> 1, _paeth(left, up, corner)]
        guess = np.choose(kinds[rows][:, None], guesses)
        done[rows + 1, columns + 1] = (lines[rows, columns] + guess) & 255
    return np.ascontiguousarray(done[1:, 1:].astype(np.uint8))


def _paeth(left: Pixels, up: Pixels, corner: Pixels) -> Pixels:
    """Of the three the one nearest to ``left + up - corner``."""
    to_left, to_up = np.abs(up - corner), np.abs(left - corner)
    to_corner = np.abs(left + up - 2 * corner)
    chosen = np.where(to_up <= to_corner, up, corner)
    return np.where((to_left <= to_up) & (to_left <= to_corner), left, chosen)


# -- writing ------------------------------------------------------------------------------------


def encode_png(pixels: Pixels, compression: int) -> bytes:
    """The file of an image ``[height, width, 1 to 4]`` of uint8 or uint16."""
    height, width, channels = pixels.shape
    depth = 8 * pixels.dtype.itemsize
    colour = {1: 0, 2: 4, 3: 2, 4: 6}[channels]
    raw = pixels.astype(">u2") if depth == 16 else pixels
    lines = np.ascontiguousarray(raw).view(np.uint8).reshape(height, -1)
    filtered = _filtered(lines, channels * pixels.dtype.itemsize)
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    return b"".join(
        (
            _SIGNATURE,
            _chunk(b"IHDR", header),
            _chunk(b"IDAT", zlib.compress(filtered.tobytes(), compression)),
            _chunk(b"IEND", b""),
        )
    )


def _filtered(lines: Pixels, each: int) -> Pixels:
    """Each line as it is, less the bytes to the left, or less those above: what is smallest."""
    left, up = lines.copy(), lines.copy()
    left[:, each:] -= lines[:, :-each]
    up[1:] -= lines[:-1]
    choices = np.stack([lines, left, up])
    best = np.abs(choices.view(np.int8).astype(np.int16)).sum(axis=2, dtype=np.int64).argmin(axis=0)
    rows = np.arange(len(lines))
    return np.concatenate([best.astype(np.uint8)[:, None], choices[best, rows]], axis=1)


def _chunk(kind: bytes, content: bytes) -> bytes:
    check = zlib.crc32(content, zlib.crc32(kind))
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", check)
