"""GIF and BMP files.

GIF frames are laid over each other as TensorFlow does: what a frame leaves open or transparent
shows the frame before, whatever the file says about disposal, and the image is as large as the
largest frame. Pillow unpacks the frames.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headrace.ops.image.jpeg import MAX_PIXELS, BadImage
from headrace.ops.image.png import converted

Pixels = NDArray[np.uint8]

_EXTENSION, _IMAGE, _TRAILER = 0x21, 0x2C, 0x3B
_GRAPHIC_CONTROL = 0xF9


@dataclass(frozen=True, slots=True)
class _Frame:
    """A part of the screen: where, its colours, and its packed pixels."""

    left: int
    top: int
    width: int
    height: int
    flags: int
    colours: bytes
    transparent: int | None
    packed: bytes


class _TruncatedError(BadImage):
    """The file ends before it should."""


class _Reader:
    """The blocks of a GIF file."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 6
        flags = self.take(7)[4]
        self.colours = self._colours(flags)

    def take(self, count: int) -> bytes:
        part = self.data[self.at : self.at + count]
        if len(part) < count:
            raise _TruncatedError(f"Invalid GIF data, size {len(self.data)}: the file is truncated")
        self.at += count
        return part

    def _colours(self, flags: int) -> bytes:
        return self.take(3 << ((flags & 7) + 1)) if flags & 0x80 else b""

    def _blocks(self) -> bytes:
        """Sub-blocks with their sizes, to the empty one at the end."""
        begin = self.at
        while size := self.take(1)[0]:
            self.take(size)
        return self.data[begin : self.at]

    def frames(self) -> list[_Frame]:
        """All frames; those that are whole if the file ends too early.

        Raises:
            BadImage: if there is none, or something else is wrong.
        """
        found: list[_Frame] = []
        try:
            self._read(found)
        except _TruncatedError:
            if not found:
                raise
        return found

    def _read(self, found: list[_Frame]) -> None:
        transparent: int | None = None
        while (kind := self.take(1)[0]) != _TRAILER:
            if kind == _EXTENSION:
                label = self.take(1)[0]
                content = self._blocks()
                if label == _GRAPHIC_CONTROL and len(content) >= 5:
                    transparent = content[4] if content[1] & 1 else None
            elif kind == _IMAGE:
                found.append(self._frame(transparent))
                transparent = None
            else:
                raise BadImage(
                    f"Invalid GIF data, size {len(self.data)}: no block begins with {kind:#04x}"
                )

    def _frame(self, transparent: int | None) -> _Frame:
        left, top, width, height, flags = struct.unpack("<HHHHB", self.take(9))
        colours = self._colours(flags) or self.colours
        if not colours:
            raise BadImage(f"Invalid GIF data, size {len(self.data)}: a frame has no colours")
        packed = self.take(1) + self._blocks()
        return _Frame(left, top, width, height, flags, colours, transparent, packed)


def decode_gif(data: bytes, only_first: bool = False) -> Pixels:
    """``[frames, height, width, 3]``.

    Raises:
        BadImage: if the bytes are no GIF file, or only a part of one.
    """
    frames = _Reader(data).frames()
    if not frames:
        raise BadImage(f"Invalid GIF data, size {len(data)}: it has no frames")
    height, width = max(f.height for f in frames), max(f.width for f in frames)
    frames = frames[:1] if only_first else frames
    count = len(frames)
    if not 0 < height * width * count < MAX_PIXELS:
        raise BadImage(f"GIF image of {count} x {height} x {width} pixels")
    out = np.zeros((count, height, width, 3), np.uint8)
    for i, frame in enumerate(frames):
        if i:
            out[i] = out[i - 1]
        _paint(out[i], frame, len(data))
    return out


def _paint(canvas: Pixels, frame: _Frame, data_size: int) -> None:
    """Lay a frame over the canvas; what sticks out is cut off."""
    here = canvas[frame.top : frame.top + frame.height, frame.left : frame.left + frame.width]
    if not here.size:
        return
    indices = _indices(frame, data_size)[: here.shape[0], : here.shape[1]]
    colours = np.frombuffer(frame.colours, np.uint8).reshape(-1, 3)
    if int(indices.max()) >= len(colours):
        raise BadImage(
            f"Invalid GIF data, size {data_size}: colour {indices.max()} of {len(colours)}"
        )
    painted = colours[indices]
    if frame.transparent is None:
        here[:] = painted
    else:
        np.copyto(here, painted, where=(indices != frame.transparent)[:, :, None])


def _indices(frame: _Frame, data_size: int) -> Pixels:
    """Colour numbers of the frame, as the only one of a file that is made for it."""
    from PIL.GifImagePlugin import GifImageFile

    size = struct.pack("<HH", frame.width, frame.height)
    grey = bytes(i for i in range(256) for _ in range(3))
    head = b"GIF89a" + size + b"\xf7\0\0" + grey
    flags = bytes([frame.flags & 0x40])
    single = head + b",\0\0\0\0" + size + flags + frame.packed + bytes([_TRAILER])
    try:
        return np.asarray(GifImageFile(BytesIO(single)))
    except Exception as error:  # whatever a decoder meets in arbitrary bytes
        raise BadImage(f"Invalid GIF data, size {data_size}: {error}") from None


# -- BMP ----------------------------------------------------------------------------------------


def decode_bmp(data: bytes, channels: int) -> Pixels:
    """``[height, width, channels]``: 8 bits are grey, 24 are colour, 32 have alpha.

    Raises:
        BadImage: if the bytes are no such file, or only a part of one.
    """
    if len(data) < 32:
        raise BadImage(f"Incomplete bmp content, requires at least 32 bytes, got {len(data)} bytes")
    start, _, width, height, _, bits = struct.unpack("<IIiiHH", data[10:30])
    own = bits // 8
    if bits not in (8, 24, 32):
        raise BadImage(f"BMP images have 8, 24 or 32 bits a pixel here, this one has {bits}")
    lines = abs(height)
    if width <= 0 or not lines or width * lines >= MAX_PIXELS:
        raise BadImage(f"BMP image of {height} x {width} pixels")
    each = -(-width * own // 4) * 4
    end = start + each * lines
    if end > len(data):
        raise BadImage(
            f"Incomplete bmp content, requires at least {end} bytes, got {len(data)} bytes"
        )
    content = np.frombuffer(data[start:end], np.uint8).reshape(lines, each)
    pixels: Any = content[:, : width * own].reshape(lines, width, own)
    if height > 0:
        pixels = pixels[::-1]
    order = {1: [0], 3: [2, 1, 0], 4: [2, 1, 0, 3]}[own]
    return converted(np.ascontiguousarray(pixels[:, :, order]), channels)
