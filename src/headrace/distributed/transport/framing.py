"""Frames as bytes of a stream.

    header (28 bytes) | table: 16 bytes per buffer | head | the inline buffers, joined

The header has a checksum of itself, so a stream that lost its place, or a peer that speaks
something else, is noticed before a wrong length is believed; table and head have another. The
table has a CRC32C of each buffer where the sender makes them; see `checksum`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Final, NamedTuple
from zlib import crc32

from headrace.distributed.transport.base import Limits, PipeBroken, check_frame
from headrace.distributed.transport.checksum import check, crc32c
from headrace.distributed.transport.pool import receive_pool, split_small

__all__ = [
    "CHECKED",
    "CONTROL",
    "DATA",
    "IN_SEGMENT",
    "WANT_ACK",
    "Frame",
    "FrameReader",
    "frame_bytes",
]

DATA: Final = 0
CONTROL: Final = 1  # between the two pipes: returns of shared memory
IN_SEGMENT: Final = 1  # flag of a buffer: in a segment of shared memory
NEW_SEGMENT: Final = 3  # ... whose descriptor comes with this frame
CHECKED: Final = 4  # in the stream, and in the place of the segment is its CRC32C
WANT_ACK: Final = 1  # flag of a frame: say when all up to here was received

_MAGIC: Final = 0x5248
# checksum of what follows in the header; magic, kind, flags; bytes of the head, buffers, inline
# bytes of buffers; checksum of table and head.
_HEADER: Final = struct.Struct("<IHBBIIQI")
_HEADER_BODY: Final = struct.Struct("<HBBIIQI")
ENTRY: Final = struct.Struct("<QII")  # bytes, segment or checksum, flags

_DIRECT: Final = 64 << 10  # buffers from here on are received straight into their own memory
_WINDOW: Final = 256 << 10
_CHUNK: Final = 4 << 20


def frame_bytes(kind: int, flags: int, head: bytes, table: bytes, inline: int) -> bytes:
    """Everything of a frame before its inline buffers, which have `inline` bytes together."""
    meta = table + head
    body = _HEADER_BODY.pack(
        _MAGIC, kind, flags, len(head), len(table) // ENTRY.size, inline, crc32(meta)
    )
    return b"".join((crc32(body).to_bytes(4, "little"), body, meta))


class Frame(NamedTuple):
    """A received frame; `shared` bytes of its buffers came through shared memory."""

    kind: int
    flags: int
    head: bytes
    buffers: list[Any]
    shared: int


class FrameReader:
    """Takes frames from a stream, many small ones per system call.

    Args:
        receive: puts up to `n` bytes into a memoryview and returns how many; 0 at the end.
        limits: frames beyond are refused before anything is allocated for them.
        mapped: gives the array for (bytes, segment, flags) of a buffer in shared memory; None:
            such buffers are an error.
    """

    def __init__(
        self,
        receive: Callable[[memoryview, int], int],
        limits: Limits,
        mapped: Callable[[int, int, int], Any] | None = None,
    ) -> None:
        self.bytes_in = 0
        self._receive = receive
        self._limits = limits
        self._mapped = mapped
        self._view = memoryview(bytearray(_WINDOW))
        self._low = 0
        self._high = 0

    def next(self) -> Frame:
        """The next frame; waits for it.

        Raises:
            PipeBroken: the end of the stream, or something that is no frame.
            OSError: from `receive`.
        """
        if self._high - self._low < _HEADER.size:
            self._need(_HEADER.size)
        low = self._low
        check, magic, kind, flags, head_bytes, count, inline, meta_check = _HEADER.unpack_from(
            self._view, low
        )
        if check != crc32(self._view[low + 4 : low + _HEADER.size]) or magic != _MAGIC:
            raise PipeBroken("malformed frame: what arrived is no frame header")
        # Before anything is allocated: the sizes are only what the peer says.
        problem = check_frame(self._limits, head_bytes, count, inline)
        if problem:
            raise PipeBroken(f"refused: {problem}")
        meta_bytes = count * ENTRY.size + head_bytes
        self._low = low + _HEADER.size
        if self._high - self._low < meta_bytes:
            self._need(meta_bytes)
        low = self._low
        meta = self._view[low : low + meta_bytes]
        if crc32(meta) != meta_check:
            raise PipeBroken("malformed frame: wrong checksum of its head")
        self._low = low + meta_bytes
        head = bytes(meta[meta_bytes - head_bytes :])
        if not count:
            if inline:
                raise PipeBroken("malformed frame: bytes without a buffer")
            return Frame(kind, flags, head, [], 0)
        entries = list(ENTRY.iter_unpack(meta[: count * ENTRY.size]))
        buffers, shared = self._buffers(entries, inline)
        return Frame(kind, flags, head, buffers, shared)

    def _buffers(self, entries: list[tuple[int, int, int]], inline: int) -> tuple[list[Any], int]:
        # The sizes in the table must add up, or the next frame would begin somewhere in this one.
        total = sum(size for size, _, flags in entries if not flags or flags == CHECKED)
        if total != inline:
            raise PipeBroken(f"malformed frame: buffers of {total} bytes in a body of {inline}")
        buffers: list[Any] = []
        small: list[tuple[int, int | None]] = []
        waiting = shared = 0
        for size, segment, flags in entries:
            in_stream = not flags or flags == CHECKED
            # Small ones are cut from the window together, large ones are read to where they stay.
            if in_stream and size < _DIRECT:
                if waiting + size > _WINDOW // 2:
                    buffers += self._small(small, waiting)
                    small, waiting = [], 0
                small.append((size, segment if flags else None))
                waiting += size
                continue
            if small:
                buffers += self._small(small, waiting)
                small, waiting = [], 0
            if in_stream:
                buffers.append(self._large(size, segment if flags else None))
            elif self._mapped is None:
                raise PipeBroken("malformed frame: shared memory was not agreed upon")
            else:
                buffers.append(self._mapped(size, segment, flags))
                shared += size
        if small:
            buffers += self._small(small, waiting)
        return buffers, shared

    def _small(self, expected: list[tuple[int, int | None]], total: int) -> list[Any]:
        if self._high - self._low < total:
            self._need(total)
        view = self._view[self._low : self._low + total]
        arrays = split_small(view, [size for size, _ in expected])
        for array, (size, checksum) in zip(arrays, expected, strict=True):
            if checksum is not None:
                check(crc32c(array), checksum, size)
        self._low += total
        return arrays

    def _large(self, size: int, checksum: int | None) -> Any:
        try:
            target, array = receive_pool.take(size)
        except MemoryError:
            raise PipeBroken(f"no memory for a buffer of {size} bytes") from None
        done = min(size, self._high - self._low)
        target[:done] = self._view[self._low : self._low + done]
        self._low += done
        found = 0 if checksum is None else crc32c(array[:done])
        while done < size:
            got = self._more(target[done:], min(size - done, _CHUNK))
            if checksum is not None:  # now, while the bytes are in the processor's cache
                found = crc32c(array[done : done + got], found)
            done += got
        if checksum is not None:
            check(found, checksum, size)
        return array

    def _need(self, count: int) -> None:
        """Has at least `count` bytes at `_low`; makes or frees room where needed."""
        there = self._high - self._low
        capacity = len(self._view)
        # A window that had to grow becomes small again as soon as it can.
        if count > capacity or (capacity > _WINDOW and max(count, there) <= _WINDOW):
            fresh = memoryview(bytearray(max(count, _WINDOW)))
            fresh[:there] = self._view[self._low : self._high]
            self._view, self._low, self._high = fresh, 0, there
        elif there == 0:
            self._low = self._high = 0
        elif self._low + count > capacity:
            self._view[:there] = bytes(self._view[self._low : self._high])
            self._low, self._high = 0, there
        while self._high - self._low < count:
            self._high += self._more(self._view[self._high :], len(self._view) - self._high)

    def _more(self, view: memoryview, count: int) -> int:
        got = self._receive(view, count)
        if not got:
            raise PipeBroken("the peer closed the connection")
        self.bytes_in += got
        return got
