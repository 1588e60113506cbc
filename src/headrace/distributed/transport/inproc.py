"""A pipe between two tasks of one process: frames by reference."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from headrace.distributed.transport.base import (
    DEFAULT_LIMITS,
    Buffer,
    Limits,
    OnFrame,
    OnPipeLost,
    Pipe,
    PipeBroken,
    as_bytes,
    check_frame,
    nbytes_of,
)
from headrace.distributed.transport.pool import ALIGNMENT, EMPTY, address_of, aligned
from headrace.errors import OpError
from headrace.executor.borrowed import lend

__all__ = ["InprocPipe", "inproc_pair"]

_log = logging.getLogger(__name__)
_JOIN_SECONDS: Final = 5.0
_FRAME_COST: Final = 64  # so that empty frames count, too


class InprocPipe(Pipe):
    """One end of a pair; see `inproc_pair`."""

    kind = "inproc"

    def __init__(self, label: str, limits: Limits) -> None:
        self.label = label
        self._limits = limits
        self._peer: InprocPipe | None = None
        # The lock guards what has arrived here; the peer's senders take it, too.
        self._lock = threading.Lock()
        self._arrived = threading.Condition(self._lock)
        self._taken = threading.Condition(self._lock)
        self._frames: deque[tuple[bytes, list[Buffer], int]] = deque()
        self._waiting = 0  # bytes in frames that no reader has taken
        self._bytes_in = 0
        self._bytes_out = 0
        self._broken = ""
        self._closed = False
        self._thread: threading.Thread | None = None

    @property
    def progress(self) -> tuple[int, int]:
        return self._bytes_in, self._bytes_out

    @property
    def queued(self) -> int:
        return 0 if self._peer is None else self._peer._waiting

    @property
    def unread(self) -> int:
        return 0  # they count as soon as they are sent

    def start(self, on_frame: OnFrame, on_lost: OnPipeLost) -> None:
        with self._lock:
            if self._closed:
                raise PipeBroken(self._broken)
            if self._thread is not None:
                raise RuntimeError("The pipe was started before")
            name = f"headrace-read {self.label}"
            self._thread = threading.Thread(
                target=self._read, args=(on_frame, on_lost), name=name, daemon=True
            )
            self._thread.start()

    def wait_room(self) -> None:
        peer = self._peer
        if peer is not None and peer._waiting > self._limits.high_water:
            with peer._lock:
                while peer._waiting > self._limits.high_water and not peer._broken:
                    peer._taken.wait()
        if self._broken:
            raise PipeBroken(self._broken)

    def send(self, head: bytes, buffers: Sequence[Any] = (), block: bool = True) -> None:
        if block:
            self.wait_room()
        data = [as_bytes(buffer) for buffer in buffers]
        total = sum(nbytes_of(buffer) for buffer in data)
        problem = check_frame(self._limits, len(head), len(data), total)
        if problem:
            raise ValueError(f"Cannot send: {problem}")
        frame = (head, [_received(buffer) for buffer in data], _FRAME_COST + len(head) + total)
        peer = self._peer
        if self._broken or peer is None:
            raise PipeBroken(self._broken or "the pipe has no other end")
        with peer._lock:
            if peer._broken:
                raise PipeBroken(self._broken or "the peer closed the connection")
            peer._frames.append(frame)
            peer._waiting += frame[2]
            peer._bytes_in += frame[2]
            peer._arrived.notify()
        self._bytes_out += frame[2]

    def flush(self, timeout: float | None = None) -> bool:
        peer = self._peer
        if peer is None:
            return True
        with peer._lock:
            done = peer._taken.wait_for(lambda: not peer._waiting or bool(peer._broken), timeout)
            if peer._waiting and peer._broken:
                raise PipeBroken(peer._broken)
            return done

    def fail(self, reason: str) -> None:
        self._break(reason)
        if self._peer is not None:
            self._peer._break("the peer closed the connection", last=True)

    def close(self) -> None:
        self._closed = True
        self.fail("the pipe was closed on this side")
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(_JOIN_SECONDS)
            if thread.is_alive():
                _log.warning("A reader of %s does not come back from its frame", self.label)
        if thread is None:
            self._forget()

    def _break(self, reason: str, last: bool = False) -> None:
        """Take no more frames; `last`: deliver those that have arrived before it is told."""
        with self._lock:
            if not self._broken:
                self._broken = reason
            if not last:
                self._frames.clear()
                self._waiting = 0
            self._arrived.notify_all()
            self._taken.notify_all()

    def _forget(self) -> None:
        with self._lock:
            self._frames.clear()
            self._waiting = 0
            self._taken.notify_all()

    def _read(self, on_frame: OnFrame, on_lost: OnPipeLost) -> None:
        try:
            while self._deliver(on_frame):
                pass
        except PipeBroken as error:
            self.fail(error.reason)
        except OpError as error:  # the peer makes no sense
            self.fail(f"a frame could not be handled: {error.message}")
        except Exception as error:
            _log.exception("A frame from %s could not be handled", self.label)
            self.fail(f"a frame could not be handled: {type(error).__name__}: {error}")
        self._forget()
        if not self._closed:
            on_lost(self._broken)

    def _deliver(self, on_frame: OnFrame) -> bool:
        with self._lock:
            while not self._frames:
                if self._broken:
                    return False
                self._arrived.wait()
            head, buffers, size = self._frames.popleft()
            self._waiting -= size
            self._taken.notify_all()
        on_frame(head, buffers)
        return True


def inproc_pair(
    label: str = "inproc", limits: Limits = DEFAULT_LIMITS
) -> tuple[InprocPipe, InprocPipe]:
    """Two pipes, each the other's peer. What one is given, the other hands out without a copy."""
    one, other = InprocPipe(label, limits), InprocPipe(label, limits)
    one._peer, other._peer = other, one
    return one, other


def _received(buffer: Any) -> Buffer:
    """What the receiver gets: the same memory, unless XLA could not take it where it is."""
    size = nbytes_of(buffer)
    if not size:
        return EMPTY
    array = buffer if isinstance(buffer, np.ndarray) else np.frombuffer(buffer, np.uint8)
    address = address_of(array)
    if address % ALIGNMENT == 0:
        return lend(array, address, size)
    copy = aligned(size)
    copy[:] = array
    copy.flags.writeable = False
    return copy
