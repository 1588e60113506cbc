"""The part of a frame that is copied together: sizes of all buffers, the head, small buffers.

Pipes that send messages (UCX, gRPC) use it; larger buffers follow one by one from where they are.
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
from headrace.distributed.transport.pool import receive_pool, split_small

__all__ = ["OpenedBody", "check_announced", "encode_body", "open_body"]

_SMALL: Final = 4 << 10  # buffers up to here are in the body


@dataclass(frozen=True)
class OpenedBody:
    """A frame whose large buffers are still missing.

    Attributes:
        head, buffers: the frame.
        rooms: where the bytes of each large buffer belong, in order: (writable view, its array).
    """

    head: bytes
    buffers: list[Buffer]
    rooms: list[tuple[memoryview, np.ndarray[Any, Any]]]


def encode_body(
    head: bytes, buffers: Sequence[Any], limits: Limits
) -> tuple[bytes, int, list[Any]]:
    """The body of a frame, how many buffers it has, and the large ones, which follow.

    Raises:
        ValueError: the frame is over a limit or a buffer is not contiguous.
    """
    flat = [as_bytes(buffer) for buffer in buffers]
    sizes = [nbytes_of(buffer) for buffer in flat]
    refused = check_frame(limits, len(head), len(flat), sum(sizes) + len(head))
    if refused:
        raise ValueError(refused)
    if not flat:
        return bytes(head), 0, []
    small: list[Any] = []
    large: list[Any] = []
    for buffer, size in zip(flat, sizes, strict=True):
        if size > _SMALL:
            large.append(buffer)
        elif size:
            small.append(buffer)
    return b"".join([np.array(sizes, "<u8").tobytes(), head, *small]), len(flat), large


def check_announced(head_bytes: int, count: int, body_bytes: int, limits: Limits) -> None:
    """Refuse a body before there is memory for it.

    Raises:
        PipeBroken: the peer announces what no frame within the limits can have.
    """
    refused = check_frame(limits, head_bytes, count, 0)
    if refused:
        raise PipeBroken(refused)
    if body_bytes > head_bytes + count * (8 + _SMALL):
        raise PipeBroken(f"a malformed frame: {body_bytes} bytes for {count} small buffers")


def open_body(body: memoryview, head_bytes: int, count: int, limits: Limits) -> OpenedBody:
    """Read a body; memory for the large buffers comes from the pool.

    Raises:
        PipeBroken: the sizes contradict each other or a limit.
    """
    start = 8 * count + head_bytes
    if start > len(body):
        raise PipeBroken("a malformed frame: its sizes do not add up")
    sizes: list[int] = np.frombuffer(body[: 8 * count], "<u8").tolist()
    refused = check_frame(limits, head_bytes, count, sum(sizes) + head_bytes)
    if refused:
        raise PipeBroken(refused)
    small = [size for size in sizes if size <= _SMALL]
    if start + sum(small) != len(body):
        raise PipeBroken("a malformed frame: its sizes do not add up")
    copies = iter(split_small(body[start:], small))
    opened = OpenedBody(bytes(body[8 * count : start]), [], [])
    for size in sizes:
        if size <= _SMALL:
            opened.buffers.append(next(copies))
        else:
            view, array = receive_pool.take(size)
            opened.rooms.append((view, array))
            opened.buffers.append(array)
    return opened
