"""How a frame is cut into messages of UCX, and put together again.

A small frame is one message: the descriptor with the body behind it. A larger body follows in
messages of its own, and so does every large buffer, in chunks.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from headrace.distributed.transport.base import Buffer, Limits, PipeBroken
from headrace.distributed.transport.checksum import crc32c
from headrace.distributed.transport.frame_body import check_announced, encode_body, open_body
from headrace.distributed.transport.pool import address_of

__all__ = [
    "CHUNK",
    "DESCRIPTOR_ROOM",
    "Arrival",
    "Operation",
    "encode",
    "goodbye",
    "read_descriptor",
]

# kind, bytes of the head, number of buffers, bytes of the body; a CRC32C of that follows.
_DESCRIPTOR: Final = struct.Struct("<BIIQ")
_DESCRIPTOR_BYTES: Final = _DESCRIPTOR.size + 4
_FRAME: Final = 0
_GOODBYE: Final = 1
DESCRIPTOR_ROOM: Final = 16 << 10  # a descriptor with the body in it fits, or the body follows
CHUNK: Final = 8 << 20

# (memory, bytes, whether for the data tag, what keeps the memory alive)
Operation = tuple[int | bytes, int, bool, Any]


class Arrival:
    """A frame that arrives.

    Attributes:
        missing: (address, bytes) of the messages to ask for, in order; empty and `body` None when
            the frame is whole.
        head, buffers: the frame, once the body is read.
        check: call it when nothing is missing: raises PipeBroken if a buffer is damaged.
    """

    def __init__(self, head_bytes: int, count: int, body_bytes: int) -> None:
        self._head_bytes = head_bytes
        self._count = count
        self._body_bytes = body_bytes
        self.body: memoryview | None = None
        self.head = b""
        self.buffers: list[Buffer] = []
        self.missing: deque[tuple[int, int]] = deque()
        self.check: Callable[[], None] = lambda: None

    def begin(self, rest: memoryview, limits: Limits) -> None:
        """Take what follows the descriptor in its message: the body, or nothing.

        Raises:
            PipeBroken: the frame is malformed or over a limit.
        """
        if len(rest) == self._body_bytes:
            self.open(rest, limits)
        elif len(rest) == 0:
            self.body = memoryview(bytearray(self._body_bytes))
            self.missing.extend(_chunks(_address_of(self.body), self._body_bytes))
        else:
            raise PipeBroken(
                f"a malformed frame: {len(rest)} of {self._body_bytes} bytes of its body"
            )

    def open(self, body: memoryview, limits: Limits) -> None:
        """Read the body; the large buffers become missing. Raises as `open_body` does."""
        opened = open_body(body, self._head_bytes, self._count, limits)
        self.head, self.buffers, self.body = opened.head, opened.buffers, None
        for _, array in opened.rooms:
            self.missing.extend(_chunks(address_of(array), array.nbytes))
        self.check = opened.check


def read_descriptor(message: memoryview, limits: Limits) -> Arrival | None:
    """What a message with the descriptors' tag announces; None is the peer's goodbye.

    Raises:
        PipeBroken: the frame is malformed or over a limit.
    """
    if len(message) < _DESCRIPTOR_BYTES:
        raise PipeBroken(f"a malformed frame: a descriptor of {len(message)} bytes")
    checksum = message[_DESCRIPTOR.size : _DESCRIPTOR_BYTES]
    if crc32c(message[: _DESCRIPTOR.size]) != int.from_bytes(checksum, "little"):
        raise PipeBroken("a malformed frame: wrong checksum of its descriptor")
    kind, head_bytes, count, body_bytes = _DESCRIPTOR.unpack_from(message)
    if kind == _GOODBYE:
        return None
    if kind != _FRAME:
        raise PipeBroken(f"a malformed frame: a descriptor of kind {kind}")
    check_announced(head_bytes, count, body_bytes, limits)
    arrival = Arrival(head_bytes, count, body_bytes)
    arrival.begin(message[_DESCRIPTOR_BYTES:], limits)
    return arrival


def goodbye() -> bytes:
    """The message that says: nothing follows, by intent."""
    return _descriptor(_GOODBYE, 0, 0, 0)


def _descriptor(kind: int, head_bytes: int, count: int, body_bytes: int) -> bytes:
    described = _DESCRIPTOR.pack(kind, head_bytes, count, body_bytes)
    return described + crc32c(described).to_bytes(4, "little")


def encode(
    head: bytes, buffers: Sequence[Any], limits: Limits, checked: bool = False
) -> list[Operation]:
    """The messages of a frame; ``checked``: with checksums of the large buffers.

    Raises:
        ValueError: it cannot be sent.
    """
    body, count, large = encode_body(head, buffers, limits, checked)
    first = _descriptor(_FRAME, len(head), count, len(body))
    if len(first) + len(body) <= DESCRIPTOR_ROOM:
        first += body
    else:
        large = [body, *large]
    operations: list[Operation] = [(first, len(first), False, None)]
    for buffer in large:
        for address, nbytes in _chunks(_address_of(buffer), memoryview(buffer).nbytes):
            operations.append((address, nbytes, True, buffer))
    return operations


def _address_of(memory: Any) -> int:
    return address_of(np.frombuffer(memory, np.uint8))


def _chunks(address: int, nbytes: int) -> list[tuple[int, int]]:
    return [(address + start, min(CHUNK, nbytes - start)) for start in range(0, nbytes, CHUNK)]
