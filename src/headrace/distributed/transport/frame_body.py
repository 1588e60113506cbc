"""The part of a frame that is copied together: sizes of all buffers, the head, small buffers.

Pipes that send messages (UCX, gRPC) use it; larger buffers follow one by one from where they are.

    flags (4 bytes) | sizes: 8 each | checksums: 4 each | head | small buffers | CRC32C of all that

There are checksums of the buffers where the sender makes them; the body always has its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from headrace.distributed.transport.base import (
    Buffer,
    Limits,
    PipeBroken,
    as_bytes,
    check_frame,
    nbytes_of,
)
from headrace.distributed.transport.checksum import check, crc32c
from headrace.distributed.transport.pool import receive_pool, split_small

__all__ = ["OpenedBody", "check_announced", "encode_body", "open_body"]

_SMALL: Final = 4 << 10  # buffers up to here are in the body
_CHECKED: Final = 1  # flag: there are checksums of the buffers
_FIXED: Final = 8  # bytes of flags and of the body's own checksum


@dataclass(frozen=True)
class OpenedBody:
    """A frame whose large buffers are still missing.

    Attributes:
        head, buffers: the frame.
        rooms: where the bytes of each large buffer belong, in order: (writable view, its array).
        checksums: of the rooms, or empty.
    """

    head: bytes
    buffers: list[Buffer]
    rooms: list[tuple[memoryview, np.ndarray[Any, Any]]]
    checksums: list[int]

    def check(self) -> None:
        """Compare what has arrived in the rooms. Raises PipeBroken if it is not what was sent."""
        for (_, array), expected in zip(self.rooms, self.checksums, strict=False):
            check(crc32c(array), expected, array.nbytes)


def encode_body(
    head: bytes, buffers: Sequence[Any], limits: Limits, checked: bool = False
) -> tuple[bytes, int, list[Any]]:
    """The body of a frame, how many buffers it has, and the large ones, which follow.

    Args:
        checked: with a checksum of each large buffer.

    Raises:
        ValueError: the frame is over a limit or a buffer is not contiguous.
    """
    flat = [as_bytes(buffer) for buffer in buffers]
    sizes = [nbytes_of(buffer) for buffer in flat]
    refused = check_frame(limits, len(head), len(flat), sum(sizes) + len(head))
    if refused:
        raise ValueError(refused)
    small: list[Any] = []
    large: list[Any] = []
    for buffer, size in zip(flat, sizes, strict=True):
        if size > _SMALL:
            large.append(buffer)
        elif size:
            small.append(buffer)
    checked = checked and bool(large)
    flags = (_CHECKED if checked else 0).to_bytes(4, "little")
    sums = np.array([crc32c(buffer) for buffer in large], "<u4").tobytes() if checked else b""
    body = b"".join([flags, np.array(sizes, "<u8").tobytes(), sums, head, *small])
    return body + crc32c(body).to_bytes(4, "little"), len(flat), large


def check_announced(head_bytes: int, count: int, body_bytes: int, limits: Limits) -> None:
    """Refuse a body before there is memory for it.

    Raises:
        PipeBroken: the peer announces what no frame within the limits can have.
    """
    refused = check_frame(limits, head_bytes, count, 0)
    if refused:
        raise PipeBroken(refused)
    if not _FIXED <= body_bytes - head_bytes <= _FIXED + count * (12 + _SMALL):
        raise PipeBroken(f"a malformed frame: {body_bytes} bytes for {count} small buffers")


def open_body(body: memoryview, head_bytes: int, count: int, limits: Limits) -> OpenedBody:
    """Read a body; memory for the large buffers comes from the pool.

    Raises:
        PipeBroken: the sizes contradict each other or a limit.
    """
    if len(body) < _FIXED or crc32c(body[:-4]) != int.from_bytes(body[-4:], "little"):
        raise PipeBroken("a malformed frame: wrong checksum of its body")
    if 4 + 8 * count > len(body):
        raise PipeBroken("a malformed frame: its sizes do not add up")
    sizes: list[int] = np.frombuffer(body[4:], "<u8", count).tolist()
    refused = check_frame(limits, head_bytes, count, sum(sizes) + head_bytes)
    if refused:
        raise PipeBroken(refused)
    checksums: list[int] = []
    start = 4 + 8 * count
    if body[0] & _CHECKED:
        large = sum(size > _SMALL for size in sizes)
        if start + 4 * large > len(body):
            raise PipeBroken("a malformed frame: its sizes do not add up")
        checksums = np.frombuffer(body[start:], "<u4", large).tolist()
        start += 4 * large
    head = bytes(body[start : start + head_bytes])
    start += head_bytes
    small = [size for size in sizes if size <= _SMALL]
    if start + sum(small) + 4 != len(body):
        raise PipeBroken("a malformed frame: its sizes do not add up")
    copies = iter(split_small(body[start:-4], small))
    opened = OpenedBody(head, [], [], checksums)
    for size in sizes:
        if size <= _SMALL:
            opened.buffers.append(next(copies))
        else:
            view, array = receive_pool.take(size)
            opened.rooms.append((view, array))
            opened.buffers.append(array)
    return opened
