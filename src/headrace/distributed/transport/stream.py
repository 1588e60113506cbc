"""Frames over a connected socket, with shared memory for large buffers where both sides can."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import deque
from collections.abc import Sequence
from typing import Any, Final

from headrace.distributed.transport.base import (
    DEFAULT_LIMITS,
    Limits,
    OnFrame,
    OnPipeLost,
    Pipe,
    PipeBroken,
    as_bytes,
    check_frame,
    nbytes_of,
)
from headrace.distributed.transport.checksum import Summed
from headrace.distributed.transport.framing import (
    CHECKED,
    CONTROL,
    DATA,
    ENTRY,
    WANT_ACK,
    FrameReader,
    frame_bytes,
)
from headrace.distributed.transport.pool import receive_pool
from headrace.distributed.transport.shm import SharedMemory, Staged
from headrace.distributed.transport.sockets import Channel
from headrace.errors import OpError

__all__ = ["StreamPipe"]

_log = logging.getLogger(__name__)
_JOINED: Final = 16 << 10  # smaller buffers are copied behind the head
_JOIN_SECONDS: Final = 5.0
_NOTHING: Final = ENTRY.pack(0, 0, 0)


class _Item:
    """A frame on its way out: what is left of it, and descriptors that go with the first byte."""

    __slots__ = ("descriptors", "left", "parts")

    def __init__(self, parts: list[Any], descriptors: list[int]) -> None:
        self.parts = parts
        self.descriptors = descriptors
        self.left = sum(nbytes_of(part) for part in parts)

    def sent(self, count: int) -> None:
        if count:
            self.close_descriptors()
        self.left -= count
        if not self.left:
            self.parts = []
            return
        index = 0
        while count >= nbytes_of(self.parts[index]):
            count -= nbytes_of(self.parts[index])
            index += 1
        del self.parts[:index]
        if count:
            self.parts[0] = memoryview(self.parts[0])[count:]

    def close_descriptors(self) -> None:
        for descriptor in self.descriptors:
            os.close(descriptor)
        self.descriptors = []


class StreamPipe(Pipe):
    """A pipe over a channel: one connection, or one for each way.

    Args:
        channel: the connected sockets; they belong to the pipe from now on.
        label: the peer, for thread names and messages.
        limits: see `Limits`.
        memory: what both sides need to pass large buffers in shared memory, or None.
        checked: make a CRC32C of each buffer that goes through the stream.
    """

    def __init__(
        self,
        channel: Channel,
        label: str = "",
        limits: Limits = DEFAULT_LIMITS,
        memory: SharedMemory | None = None,
        checked: bool = False,
    ) -> None:
        self.checked = checked
        self.kind = "stream" if memory is None else "shm"
        self.label = label
        self._channel = channel
        self._limits = limits
        self._memory = memory
        self._lock = threading.Lock()
        self._room = threading.Condition(self._lock)
        self._work = threading.Condition(self._lock)
        self._queue: deque[_Item] = deque()
        self._queued = 0
        self._bytes_out = 0
        self._broken = ""  # why nothing can be sent any more
        self._ended = False  # nothing is read any more, either
        self._closed = False
        self._torn_down = False
        self._writer: threading.Thread | None = None
        self._thread: threading.Thread | None = None
        mapped = None if memory is None else memory.mapped
        self._reader = FrameReader(channel.receive, limits, mapped)
        if memory is not None:
            memory.on_urgent = self._send_returns

    @property
    def progress(self) -> tuple[int, int]:
        memory = self._memory
        if memory is None:
            return self._reader.bytes_in, self._bytes_out
        return self._reader.bytes_in + memory.received_bytes, self._bytes_out + memory.sent

    @property
    def queued(self) -> int:
        return self._queued

    @property
    def unread(self) -> int:
        return self._channel.unread()

    def start(self, on_frame: OnFrame, on_lost: OnPipeLost) -> None:
        name = f"headrace-read {self.label}"
        with self._lock:
            if self._ended:
                raise PipeBroken(self._broken)
            if self._thread is not None:
                raise RuntimeError("The pipe was started before")
            self._thread = threading.Thread(
                target=self._read, args=(on_frame, on_lost), name=name, daemon=True
            )
            self._thread.start()

    def stage(self, buffers: Sequence[Any]) -> Sequence[Any]:
        memory = self._memory
        if memory is not None:
            return memory.stage(buffers)
        if self.checked:
            return [b if type(b) is Summed else Summed(as_bytes(b)) for b in buffers]
        return [as_bytes(buffer) for buffer in buffers]

    def wait_room(self) -> None:
        high = self._limits.high_water
        if self._under_way() <= high:
            return
        with self._lock:
            while self._under_way() > high and not self._broken:
                self._room.wait()
            if self._broken:
                raise PipeBroken(self._broken)

    def send(self, head: bytes, buffers: Sequence[Any] = (), block: bool = True) -> None:
        if block:
            self.wait_room()
        if buffers:
            buffers = self.stage(buffers)
        item = self._encode(head, buffers)
        with self._lock:
            self._push(item)
        self._after_lock()

    def flush(self, timeout: float | None = None) -> bool:
        deadline = None if timeout is None else time.monotonic() + timeout
        with self._lock:
            while self._queue:
                if self._broken:
                    raise PipeBroken(self._broken)
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and left <= 0:
                    return False
                self._room.wait(left)
            return True

    def trim(self, now: float) -> None:
        receive_pool.trim(now)
        if self._memory is not None:
            self._memory.trim(now)

    def fail(self, reason: str) -> None:
        with self._lock:
            self._break(reason)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._break("the pipe was closed on this side")
            thread = self._thread
        # A pipe that was never started has no reader that would clean up.
        if thread is None:
            self._end_writer()
            self._tear_down()
        elif thread is not threading.current_thread():
            thread.join(_JOIN_SECONDS)
            if thread.is_alive():
                _log.warning("A reader of %s does not come back from its frame", self.label)

    def _under_way(self) -> int:
        memory = self._memory
        return self._queued if memory is None else self._queued + memory.sent - memory.acked

    def _encode(self, head: bytes, buffers: Sequence[Any]) -> _Item:
        if not buffers:
            problem = check_frame(self._limits, len(head), 0, 0)
            if problem:
                raise ValueError(f"Cannot send: {problem}")
            return _Item([frame_bytes(DATA, 0, head, b"", 0)], [])
        table: list[bytes] = []
        bodies: list[Any] = [b""]
        descriptors: list[int] = []
        inline = shared = 0
        for buffer in buffers:
            if type(buffer) is Staged:
                table.append(buffer.entry())
                shared += buffer.nbytes
                if buffer.slab.descriptor >= 0:
                    descriptors.append(buffer.slab.descriptor)
                continue
            checksum = flags = 0
            if type(buffer) is Summed:
                buffer, checksum, flags = buffer.buffer, buffer.checksum, CHECKED
            size = nbytes_of(buffer)
            table.append(ENTRY.pack(size, checksum, flags) if size else _NOTHING)
            if size:
                bodies.append(buffer)
                inline += size
        problem = check_frame(self._limits, len(head), len(buffers), inline + shared)
        if problem:
            for buffer in buffers:
                if type(buffer) is Staged:
                    buffer.unused()
            raise ValueError(f"Cannot send: {problem}")
        for buffer in buffers:
            if type(buffer) is Staged:
                buffer.slab.descriptor = -1
        # What is in shared memory does not fill the socket: the peer has to say what it has.
        flags = WANT_ACK if shared and self._count_shared(shared) else 0
        bodies[0] = frame_bytes(DATA, flags, head, b"".join(table), inline)
        return _Item(_joined(bodies), descriptors)

    def _count_shared(self, shared: int) -> bool:
        """Whether so much is under way in shared memory that the peer should acknowledge it.

        What is under way without such a request is at most half of the limit, so a sender that
        waits for room always waits for an answer that comes.
        """
        memory = self._memory
        assert memory is not None
        with self._lock:
            memory.sent += shared
            return memory.sent - memory.acked > self._limits.high_water // 2

    def _push(self, item: _Item) -> None:
        """Write the frame, or what goes of it; the rest is left to the writer. Under the lock."""
        if self._broken:
            item.close_descriptors()
            raise PipeBroken(self._broken)
        memory = self._memory
        if memory is not None and memory.returns:
            returns = self._returns_frame(memory)
            item.parts.insert(0, returns)
            item.left += len(returns)
        # Mostly the socket takes the whole frame, and no other thread is needed.
        if not self._queue:
            try:
                count = self._channel.write(item.parts, item.descriptors, False)
            except OSError as error:
                item.close_descriptors()
                self._cannot_write(error)
                raise PipeBroken(self._broken) from error
            self._bytes_out += count
            item.sent(count)
            if not item.left:
                return
        self._queue.append(item)
        self._queued += item.left
        if self._writer is None:
            name = f"headrace-write {self.label}"
            self._writer = threading.Thread(target=self._write, name=name, daemon=True)
            self._writer.start()
        else:
            self._work.notify()

    def _write(self) -> None:
        while True:
            with self._lock:
                while not self._queue and not self._broken:
                    self._work.wait()
                if self._broken:
                    return
                item = self._queue[0]
            try:
                # Without the lock: senders only queue meanwhile.
                count = self._channel.write(item.parts, item.descriptors, True)
            except OSError as error:
                with self._lock:
                    self._cannot_write(error)
                return
            with self._lock:
                item.sent(count)
                self._bytes_out += count
                self._queued -= count
                if not item.left:
                    self._queue.popleft()
                self._room.notify_all()
            self._after_lock()

    def _after_lock(self) -> None:
        memory = self._memory
        if memory is not None and memory.urgent:
            self._send_returns()

    def _returns_frame(self, memory: SharedMemory) -> bytes:
        return frame_bytes(CONTROL, 0, memory.take_returns(), b"", 0)

    def _send_returns(self, wait: bool = False) -> None:
        """Tell the peer which slabs are free again.

        Called where an array dies, which may be in the middle of anything: so it does not wait
        for the lock; whoever holds it looks for returns after it.
        """
        memory = self._memory
        if memory is None or not self._lock.acquire(blocking=wait):
            return
        try:
            if memory.returns and not self._broken:
                self._push(_Item([self._returns_frame(memory)], []))
        except (PipeBroken, RuntimeError):  # RuntimeError: no new thread at the interpreter's end
            pass
        finally:
            self._lock.release()

    def _read(self, on_frame: OnFrame, on_lost: OnPipeLost) -> None:
        try:
            while not self._ended:
                self._deliver(on_frame)
        except PipeBroken as error:
            reason = error.reason
        except OSError as error:
            reason = _told(error, "cannot read")
        except OpError as error:  # the peer makes no sense, which is said where links are lost
            reason = f"a frame could not be handled: {error.message}"
        except Exception as error:
            _log.exception("A frame from %s could not be handled", self.label)
            reason = f"a frame could not be handled: {type(error).__name__}: {error}"
        else:
            reason = self._broken
        self.fail(reason)
        self._end_writer()
        self._tear_down()
        if not self._closed:
            on_lost(self._broken)

    def _deliver(self, on_frame: OnFrame) -> None:
        # In a function of its own: no variable keeps the buffers while the next frame is awaited.
        kind, flags, head, buffers, shared = self._reader.next()
        if kind == DATA:
            if not self._ended:
                on_frame(head, buffers)
            memory = self._memory
            if memory is not None and shared:
                memory.received(shared, bool(flags & WANT_ACK))
                if flags & WANT_ACK:
                    self._send_returns(wait=True)
        elif kind == CONTROL and self._memory is not None:
            self._memory.control(head)
            with self._lock:
                self._room.notify_all()
        else:
            raise PipeBroken(f"malformed frame: unknown kind {kind}")

    def _break(self, reason: str) -> None:
        self._broken = self._broken or reason
        if not self._ended:
            self._ended = True
            self._channel.shutdown()
        self._work.notify_all()
        self._room.notify_all()

    def _cannot_write(self, error: OSError) -> None:
        """The reader goes on to the end: what the peer sent before it closed is delivered."""
        if not self._broken:
            self._broken = _told(error, "cannot write")
            self._channel.end_writing()
        self._work.notify_all()
        self._room.notify_all()

    def _end_writer(self) -> None:
        """Wait for it: nobody may write any more when the channel is closed."""
        if self._writer is not None:
            self._writer.join()

    def _tear_down(self) -> None:
        with self._lock:
            if self._torn_down:
                return
            self._torn_down = True
            self._channel.close()
            for item in self._queue:
                item.close_descriptors()
            self._queue.clear()
            self._queued = 0
        if self._memory is not None:
            self._memory.close()


def _told(error: OSError, what: str) -> str:
    if isinstance(error, (BrokenPipeError, ConnectionResetError)):
        return "the peer closed the connection"
    return f"{what}: {error}"


def _joined(bodies: list[Any]) -> list[Any]:
    """Neighbouring small pieces as one: each part of a write costs more than copying them."""
    if len(bodies) == 1:
        return bodies
    parts: list[Any] = []
    small: list[Any] = []
    for body in bodies:
        if nbytes_of(body) < _JOINED:
            small.append(body)
            continue
        if small:
            parts.append(b"".join(small) if len(small) > 1 else small[0])
            small = []
        parts.append(body)
    if small:
        parts.append(b"".join(small))
    return parts
