"""Memory that tensors are received into: aligned, and used again.

Fresh memory costs a page fault per 4 KiB, which for a tensor of 50 MB takes several times as long
as the copy itself; so large blocks go back to a pool when the last array over them dies.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections import deque
from typing import Any, Final

import numpy as np

from headrace.executor.borrowed import lend
from headrace.executor.failures import physical_memory

__all__ = [
    "ALIGNMENT",
    "EMPTY",
    "ReceivePool",
    "address_of",
    "aligned",
    "receive_pool",
    "size_class",
    "split_small",
]

#: Bytes that a machine is taken to have whose system does not say.
UNKNOWN_MEMORY: Final = 8 << 30

ALIGNMENT: Final = 64  # what XLA needs to take an array without a copy
_POOLED: Final = 256 << 10  # smaller blocks come from the allocator's own caches
_SHARED_BLOCK: Final = 4 << 10  # buffers up to this size may share one block of memory
_MOST_SHARED: Final = 64 << 10
_IDLE_SECONDS: Final = 30.0

Bytes = np.ndarray[Any, np.dtype[np.uint8]]


def address_of(array: np.ndarray[Any, Any]) -> int:
    """The address of the first byte."""
    address: int = array.ctypes.data
    return address


def aligned(nbytes: int) -> Bytes:
    """An uninitialised uint8 array that starts at a multiple of 64."""
    raw = np.empty(nbytes + ALIGNMENT, np.uint8)
    # A third of the time that `raw.ctypes.data` takes, and this runs for each received frame.
    start = -ctypes.addressof(ctypes.c_char.from_buffer(raw.data)) % ALIGNMENT
    return raw[start : start + nbytes]


def _empty() -> Bytes:
    nothing = aligned(0)
    nothing.flags.writeable = False
    return nothing


EMPTY: Final = _empty()


def size_class(nbytes: int) -> int:
    """`nbytes` rounded up by at most an eighth, so that blocks of similar tensors are reused.

    >>> size_class(100_000_000) / 2**20, size_class(65_536) / 2**10
    (96.0, 64.0)
    """
    step = max(4096, 1 << max(0, (nbytes - 1).bit_length() - 4))
    return -(-nbytes // step) * step


def split_small(data: memoryview, sizes: list[int]) -> list[Bytes]:
    """Copies of consecutive pieces of `data`: each array aligned, read-only and plainly owned.

    Tiny ones share a block (so keeping one may keep up to 64 KiB), larger ones have their own.
    """
    arrays: list[Bytes] = []
    first = start = place = 0
    for index, size in enumerate(sizes):
        room = -(-size // ALIGNMENT) * ALIGNMENT
        if place and (size > _SHARED_BLOCK or place + room > _MOST_SHARED):
            start = _one_block(data, start, sizes[first:index], place, arrays)
            first, place = index, 0
        place += room
        if size > _SHARED_BLOCK:
            start = _one_block(data, start, sizes[first : index + 1], place, arrays)
            first, place = index + 1, 0
    if first < len(sizes):
        _one_block(data, start, sizes[first:], place, arrays)
    return arrays


def _one_block(
    data: memoryview, start: int, sizes: list[int], room: int, arrays: list[Bytes]
) -> int:
    """Adds arrays over one new block of `room` bytes; returns where the next piece starts."""
    block = aligned(room)
    # Bytes are copied by memoryviews, which are several times faster here than array slices; a
    # slice of a read-only array is read-only.
    target = block.data
    places = []
    place = 0
    for size in sizes:
        target[place : place + size] = data[start : start + size]
        places.append((place, place + size))
        start += size
        place += -(-size // ALIGNMENT) * ALIGNMENT
    block.flags.writeable = False
    arrays += [block[low:high] for low, high in places]
    return start


class ReceivePool:
    """Large blocks for received buffers, kept for the next one of a similar size.

    Args:
        idle_limit: bytes that are kept while nobody uses them; what is over goes back to the
            system, the longest unused first.
    """

    def __init__(self, idle_limit: int) -> None:
        self.idle_limit = idle_limit
        self._lock = threading.Lock()
        self._free: dict[int, list[tuple[Bytes, float]]] = {}
        self._idle = 0
        # Arrays die in any thread, even in one that holds the lock while Python collects garbage;
        # so a returned block only joins this queue, which needs no lock.
        self._returned: deque[tuple[Bytes, float]] = deque()

    @property
    def idle_bytes(self) -> int:
        """Bytes that nobody uses at the moment."""
        with self._lock:
            self._drain()
            return self._idle

    def take(self, nbytes: int) -> tuple[memoryview, Bytes]:
        """Room for a buffer: where to write it, and the read-only array for the reader.

        The memory goes back to the pool when the array, and all made from it, are gone; the
        memoryview must not be used after that.

        Raises:
            MemoryError: the system has no such block.
        """
        if nbytes == 0:
            return memoryview(bytearray()), EMPTY
        if nbytes < _POOLED:
            block = aligned(nbytes)
            writable = block.data
            array = block[:]
            array.flags.writeable = False
            return writable, array
        size = size_class(nbytes)
        with self._lock:
            self._drain()
            free = self._free.get(size)
            found = free.pop()[0] if free else None
            if found is not None:
                self._idle -= size
        block = aligned(size) if found is None else found
        array = lend(block, address_of(block), nbytes, self._give_back)
        return block.data[:nbytes], array

    def trim(self, now: float) -> None:
        """Free blocks that were not used for half a minute before `now` (time.monotonic)."""
        with self._lock:
            self._drain()
            for size, free in list(self._free.items()):
                kept = [entry for entry in free if now - entry[1] < _IDLE_SECONDS]
                self._idle -= (len(free) - len(kept)) * size
                if kept:
                    self._free[size] = kept
                else:
                    del self._free[size]

    def _give_back(self, block: Bytes) -> None:
        self._returned.append((block, time.monotonic()))
        if self._lock.acquire(blocking=False):
            try:
                self._drain()
            finally:
                self._lock.release()

    def _drain(self) -> None:
        while self._returned:
            block, when = self._returned.popleft()
            self._free.setdefault(block.nbytes, []).append((block, when))
            self._idle += block.nbytes
        while self._idle > self.idle_limit:
            size = min(
                (size for size, free in self._free.items() if free),
                key=lambda size: self._free[size][0][1],
            )
            del self._free[size][0]
            self._idle -= size


receive_pool: Final = ReceivePool(idle_limit=max(256 << 20, physical_memory(UNKNOWN_MEMORY) // 8))
