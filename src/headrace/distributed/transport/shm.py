"""Large buffers between two processes of one host, in shared memory.

The sender owns slabs: anonymous segments of memory without a name, whose descriptors travel over
the unix socket, so nothing is left behind by a process that is killed. It copies a buffer into a
slab and sends only where it is; the receiver has the slab mapped and hands out an array over it.
When that array dies, the slab's number goes back and the sender uses it for another buffer.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import struct
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from headrace.distributed.transport.base import PipeBroken, as_bytes, nbytes_of
from headrace.distributed.transport.framing import ENTRY, IN_SEGMENT, NEW_SEGMENT
from headrace.distributed.transport.pool import UNKNOWN_MEMORY, Bytes, size_class
from headrace.executor.borrowed import lend
from headrace.executor.failures import physical_memory

if sys.platform == "linux":
    import fcntl

__all__ = ["THRESHOLD", "Budget", "SharedMemory", "Slab", "Staged", "available", "shared_budget"]

THRESHOLD: Final = 64 << 10  # smaller buffers go through the stream: as fast, and no memory held
_NEW_PER_FRAME: Final = 200  # descriptors of one message; Linux takes 253
_RETURN_BYTES: Final = 1 << 20  # so much is told at once, less with the next frame
_RETURN_COUNT: Final = 32
_IDLE_SECONDS: Final = 30.0
_MOST_SEGMENTS: Final = 16_384  # of this process; Linux allows 65,530 mappings
_CONTROL: Final = struct.Struct("<QII")  # bytes received, slabs returned, slabs dropped; numbers


def available() -> bool:
    """Whether this system has memory segments without a name (Linux)."""
    return sys.platform == "linux" and hasattr(os, "memfd_create")


class _Mapping:
    """A mapped segment; unmapped when the last array over it is gone.

    Not `mmap.mmap`: that keeps a descriptor open for each mapping, and there may be thousands.
    """

    __slots__ = ("address", "nbytes")

    def __init__(self, descriptor: int, nbytes: int, writable: bool) -> None:
        protection = mmap.PROT_READ | (mmap.PROT_WRITE if writable else 0)
        flags = mmap.MAP_SHARED | getattr(mmap, "MAP_POPULATE", 0)
        address = _libc().mmap(None, nbytes, protection, flags, descriptor, 0)
        if address is None or address == ctypes.c_void_p(-1).value:
            error = ctypes.get_errno()
            raise OSError(error, f"cannot map {nbytes} bytes: {os.strerror(error)}")
        self.address: int = address
        self.nbytes = nbytes

    def __del__(self) -> None:
        if getattr(self, "address", 0):
            _libc().munmap(self.address, self.nbytes)


_LIBC: list[ctypes.CDLL] = []


def _libc() -> ctypes.CDLL:
    if not _LIBC:
        libc = ctypes.CDLL(None, use_errno=True)
        libc.mmap.restype = ctypes.c_void_p
        number = ctypes.c_int
        libc.mmap.argtypes = (
            ctypes.c_void_p,
            ctypes.c_size_t,
            number,
            number,
            number,
            ctypes.c_ssize_t,
        )
        libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
        _LIBC.append(libc)
    return _LIBC[0]


class _Writable:
    """What makes a writable array over a mapping and keeps it mapped."""

    __slots__ = ("__array_interface__", "mapping")

    def __init__(self, mapping: _Mapping) -> None:
        self.mapping = mapping
        self.__array_interface__ = {
            "data": (mapping.address, False),
            "shape": (mapping.nbytes,),
            "typestr": "|u1",
            "version": 3,
        }


class Budget:
    """How much shared memory the slabs of all pipes of this process may take."""

    def __init__(self, limit: int, idle_limit: int) -> None:
        self.limit = limit
        self.idle_limit = idle_limit
        self.used = 0
        self.segments = 0
        self._lock = threading.Lock()

    def reserve(self, nbytes: int) -> bool:
        """Take part of the budget; False, and nothing is taken, if it does not suffice."""
        with self._lock:
            if self.used + nbytes > self.limit or self.segments >= _MOST_SEGMENTS:
                return False
            # Others need memory, too, and the stream serves as well.
            if nbytes > _memory_left() // 2:
                return False
            self.used += nbytes
            self.segments += 1
            return True

    def give_back(self, nbytes: int) -> None:
        with self._lock:
            self.used -= nbytes
            self.segments -= 1


def _memory_left() -> int:
    """Bytes of physical memory that can be had without pushing others out."""
    try:
        with open("/proc/meminfo", "rb") as lines:
            for line in lines:
                if line.startswith(b"MemAvailable:"):
                    return int(line.split()[1]) << 10
    except OSError:
        pass
    return physical_memory(UNKNOWN_MEMORY)


shared_budget: Final = Budget(
    physical_memory(UNKNOWN_MEMORY) // 4, physical_memory(UNKNOWN_MEMORY) // 8
)


class Slab:
    """A segment of this sender; `descriptor` until the peer got it, then -1."""

    __slots__ = ("array", "descriptor", "idle_since", "number")

    def __init__(self, number: int, size: int) -> None:
        self.number = number
        self.idle_since = 0.0
        self.descriptor = os.memfd_create("headrace", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            # Really allocated: too little memory is an error here, not a killed process later.
            os.posix_fallocate(self.descriptor, 0, size)
            # The peer would be killed by a signal if the segment shrank under its mapping.
            seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
            fcntl.fcntl(self.descriptor, fcntl.F_ADD_SEALS, seals)
            mapping = _Mapping(self.descriptor, size, writable=True)
        except OSError:
            os.close(self.descriptor)
            raise
        self.array: Bytes = np.asarray(_Writable(mapping))


class Staged:
    """A buffer that was copied into a slab, for one frame."""

    __slots__ = ("_memory", "nbytes", "slab")

    def __init__(self, memory: SharedMemory, slab: Slab, nbytes: int) -> None:
        self._memory = memory
        self.slab = slab
        self.nbytes = nbytes

    def entry(self) -> bytes:
        """The buffer's row in the table of the frame."""
        flags = NEW_SEGMENT if self.slab.descriptor >= 0 else IN_SEGMENT
        return ENTRY.pack(self.nbytes, self.slab.number, flags)

    def unused(self) -> None:
        """The frame is not sent."""
        self._memory.returned((self.slab.number,))


class SharedMemory:
    """Both directions of one pipe: the slabs of this side, and the mapped ones of the peer.

    Args:
        claim: gives the next file descriptor that arrived; IndexError if there is none.
        budget: shared with the other pipes of the process.
        threshold: smaller buffers are left to the stream.
    """

    def __init__(
        self,
        claim: Callable[[], int],
        budget: Budget = shared_budget,
        threshold: int = THRESHOLD,
    ) -> None:
        self.sent = 0  # bytes in slabs that frames announced, under the lock of the pipe
        self.acked = 0  # of these, bytes that the peer says it has received
        self.received_bytes = 0  # in slabs, that the reader is done with
        self.urgent = False  # the peer should hear of returned slabs now
        self.on_urgent: Callable[[], None] = lambda: None
        self._claim = claim
        self._budget = budget
        self._threshold = threshold
        self._lock = threading.Lock()
        self._slabs: dict[int, Slab] = {}
        self._free: dict[int, list[Slab]] = {}
        self._idle = 0
        self._numbers = 0
        self._dropped: list[int] = []
        self._closed = False
        self._mappings: dict[int, _Mapping] = {}
        self._dead: deque[tuple[int, int]] = deque()  # appended to by dying arrays: no lock
        self._dead_bytes = 0
        self._ack_due = False

    # This side's slabs.

    def stage(self, buffers: Sequence[Any]) -> list[Any]:
        """Large buffers as `Staged` copies; the others, and what no slab is left for, as bytes."""
        staged: list[Any] = []
        new = 0
        for buffer in buffers:
            if type(buffer) is Staged:
                staged.append(buffer)
                continue
            data = as_bytes(buffer)
            size = nbytes_of(data)
            slab = None
            if size >= self._threshold:
                slab = self._take(size, new < _NEW_PER_FRAME)
            if slab is None:
                staged.append(data)
                continue
            new += slab.descriptor >= 0
            source = data if isinstance(data, np.ndarray) else np.frombuffer(data, np.uint8)
            np.copyto(slab.array[:size], source)
            staged.append(Staged(self, slab, size))
        return staged

    def returned(self, numbers: Sequence[int]) -> None:
        """The peer (or an unsent frame) is done with these slabs."""
        now = time.monotonic()
        with self._lock:
            for number in numbers:
                slab = self._slabs.get(number)
                if slab is None:
                    raise PipeBroken(f"the peer returned slab {number}, which it does not have")
                if slab.idle_since:
                    raise PipeBroken(f"the peer returned slab {number} twice")
                slab.idle_since = now
                self._free.setdefault(slab.array.nbytes, []).append(slab)
                self._idle += slab.array.nbytes
            # Idle slabs are kept for the next frames, but not without bound: the oldest go.
            while self._idle > self._budget.idle_limit:
                oldest = min((free[0] for free in self._free.values()), key=_idle_since)
                self._drop(oldest)

    def trim(self, now: float) -> None:
        """Give slabs back to the system that were idle for half a minute."""
        with self._lock:
            old = [
                slab
                for free in self._free.values()
                for slab in free
                if now - slab.idle_since > _IDLE_SECONDS
            ]
            for slab in old:
                self._drop(slab)

    def _take(self, nbytes: int, new: bool) -> Slab | None:
        size = size_class(nbytes)
        with self._lock:
            free = self._free.get(size)
            if free:
                slab = free[-1]
                if new or slab.descriptor < 0:
                    self._unfree(slab)
                    slab.idle_since = 0.0
                    return slab
                return None
            if not new or self._closed:
                return None
            self._numbers += 1
            number = self._numbers
        if not self._budget.reserve(size):
            return None
        try:
            slab = Slab(number, size)
        except OSError:
            self._budget.give_back(size)
            return None
        with self._lock:
            if self._closed:
                os.close(slab.descriptor)
                self._budget.give_back(size)
                return None
            self._slabs[number] = slab
        return slab

    def _unfree(self, slab: Slab) -> None:
        size = slab.array.nbytes
        free = self._free[size]
        free.remove(slab)
        if not free:
            del self._free[size]
        self._idle -= size

    def _drop(self, slab: Slab) -> None:
        self._unfree(slab)
        del self._slabs[slab.number]
        self._budget.give_back(slab.array.nbytes)
        if slab.descriptor >= 0:
            os.close(slab.descriptor)
        else:
            # The peer has it mapped: it is told to let go of it.
            self._dropped.append(slab.number)

    # The peer's slabs.

    def mapped(self, nbytes: int, segment: int, flags: int) -> Any:
        """The array over a received buffer.

        Raises:
            PipeBroken: no such segment, or it is smaller than the buffer.
        """
        if flags == NEW_SEGMENT:
            self._map(segment)
        elif flags != IN_SEGMENT:
            raise PipeBroken(f"malformed frame: flags {flags} of a buffer")
        mapping = self._mappings.get(segment)
        if mapping is None or nbytes > mapping.nbytes:
            raise PipeBroken(f"malformed frame: {nbytes} bytes in segment {segment}")
        loan = (segment, nbytes, mapping)
        return lend(loan, mapping.address, nbytes, self._died)

    def _map(self, segment: int) -> None:
        try:
            descriptor = self._claim()
        except IndexError:
            raise PipeBroken(f"segment {segment} came without its descriptor") from None
        try:
            # Reading behind the end of a segment that shrank would kill this process by a signal.
            if not fcntl.fcntl(descriptor, fcntl.F_GET_SEALS) & fcntl.F_SEAL_SHRINK:
                raise PipeBroken(f"segment {segment} could shrink while it is read")
            size = os.fstat(descriptor).st_size
            self._mappings[segment] = _Mapping(descriptor, size, writable=False)
        except OSError as error:
            raise PipeBroken(f"segment {segment} cannot be mapped: {error}") from error
        finally:
            os.close(descriptor)

    def _died(self, loan: tuple[int, int, _Mapping]) -> None:
        if self._closed:
            return
        segment, nbytes, _ = loan
        self._dead.append((segment, nbytes))
        self._dead_bytes += nbytes
        if self._dead_bytes >= _RETURN_BYTES or len(self._dead) >= _RETURN_COUNT:
            self.urgent = True
            self.on_urgent()

    # What the two sides tell each other.

    @property
    def returns(self) -> bool:
        """Whether there is something to tell."""
        return bool(self._dead) or self._ack_due or bool(self._dropped)

    def received(self, nbytes: int, acknowledge: bool) -> None:
        """Called by the reader after a frame with shared buffers was handled."""
        self.received_bytes += nbytes
        if acknowledge:
            self._ack_due = True

    def take_returns(self) -> bytes:
        """The message with all there is to tell, which counts as told."""
        self.urgent = self._ack_due = False
        self._dead_bytes = 0
        numbers = []
        while self._dead:
            numbers.append(self._dead.popleft()[0])
        with self._lock:
            dropped, self._dropped = self._dropped, []
        body = struct.pack(f"<{len(numbers) + len(dropped)}I", *numbers, *dropped)
        return _CONTROL.pack(self.received_bytes, len(numbers), len(dropped)) + body

    def control(self, head: bytes) -> None:
        """The peer's message of that kind.

        Raises:
            PipeBroken: it makes no sense.
        """
        if len(head) < _CONTROL.size:
            raise PipeBroken("malformed frame: a control message is too short")
        received, returned, dropped = _CONTROL.unpack_from(head)
        if len(head) != _CONTROL.size + 4 * (returned + dropped):
            raise PipeBroken("malformed frame: a control message of the wrong length")
        # A peer that counts wrongly would let the sender wait for ever, or not at all.
        if not self.acked <= received <= self.sent:
            raise PipeBroken(f"the peer acknowledged {received} of {self.sent} bytes")
        numbers = struct.unpack_from(f"<{returned + dropped}I", head, _CONTROL.size)
        self.acked = received
        self.returned(numbers[:returned])
        for number in numbers[returned:]:
            self._mappings.pop(number, None)

    def close(self) -> None:
        """Let go of everything; arrays that are still in use keep their own mapping."""
        with self._lock:
            self._closed = True
            slabs, self._slabs = self._slabs, {}
            self._free = {}
            self._idle = 0
            for slab in slabs.values():
                self._budget.give_back(slab.array.nbytes)
                if slab.descriptor >= 0:
                    os.close(slab.descriptor)
                    slab.descriptor = -1
        self._mappings = {}
        self._dead.clear()


def _idle_since(slab: Slab) -> float:
    return slab.idle_since
