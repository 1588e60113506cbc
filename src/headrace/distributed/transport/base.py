"""What every pipe is: an ordered two-way carrier of frames between two processes.

A frame is a head (bytes, a small message) and buffers (the bytes of tensors). A pipe either
delivers every frame in order or breaks, for ever; nobody repairs a broken pipe.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

__all__ = [
    "DEFAULT_LIMITS",
    "Buffer",
    "Endpoint",
    "Limits",
    "OnFrame",
    "OnPipeLost",
    "PeerInfo",
    "Pipe",
    "PipeBroken",
    "as_bytes",
    "check_frame",
    "nbytes_of",
]

# What can be sent: C-contiguous memory. What arrives: uint8 arrays, read-only, 64-byte aligned.
Buffer = np.ndarray[Any, Any] | memoryview | bytes
_TINY: Final = 512  # a copy takes less time than the look at strides and types
OnFrame = Callable[[bytes, list[Buffer]], None]
OnPipeLost = Callable[[str], None]


class PipeBroken(Exception):
    """The pipe carries nothing any more; `reason` says why."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True)
class PeerInfo:
    """Who is at the other end.

    Attributes:
        task: "/job:ps/replica:0/task:1", or "client:<uuid>"; "" where it is not known or any.
        incarnation: random number of this start of the task; 0 where it is not known or any.
        address: "host:port" under which the peer can be reached, for messages.
    """

    task: str
    incarnation: int = 0
    address: str = ""


@dataclass(frozen=True)
class Endpoint:
    """Where a task listens.

    Attributes:
        host, port: of the byte stream (TCP, or TLS over TCP). Port 0: no such listener.
        unix_name: name of the abstract unix socket without the leading zero byte; "" if none.
        host_id: equal for two processes that can share memory; see `connect.host_id`.
    """

    host: str
    port: int
    unix_name: str = ""
    host_id: str = ""


@dataclass(frozen=True)
class Limits:
    """What a pipe accepts and keeps.

    Attributes:
        max_head_bytes, max_buffers, max_frame_bytes: larger frames are refused by both sides.
        high_water: a sender that may wait does so while more bytes than this are under way.
    """

    max_head_bytes: int = 64 << 20
    max_buffers: int = 65_536
    max_frame_bytes: int = 1 << 40
    high_water: int = 64 << 20


DEFAULT_LIMITS = Limits()


class Pipe(abc.ABC):
    """A two-way, ordered carrier of frames between two processes. Broken for ever after an error.

    All methods may be called from any thread.
    """

    kind: str  # "inproc", "stream", "shm", "grpc" or "rdma"

    @abc.abstractmethod
    def start(self, on_frame: OnFrame, on_lost: OnPipeLost) -> None:
        """Begin to deliver frames, one at a time and in order, in the pipe's own reader thread.

        `on_lost(reason)` is called at most once, after the last frame, when the other side closed
        or anything failed, and never after our own `close`. An exception that leaves `on_frame`
        breaks the pipe. A pipe that only sends must be started, too: what the other side says
        about used memory is read by the reader thread.
        """

    @abc.abstractmethod
    def send(self, head: bytes, buffers: Sequence[Any] = (), block: bool = True) -> None:
        """Send a frame; what cannot be written at once follows in order from another thread.

        Args:
            buffers: C-contiguous memory, or what `stage` returned. The pipe keeps references and
                makes no copies: the memory must not change before `flush` returned true (and for
                kind "inproc" never, because the receiver gets that memory itself).
            block: wait while more than `high_water` bytes are under way. False never waits, which
                is what a reader thread needs: two that wait for each other would hang.

        Raises:
            PipeBroken: the pipe is or becomes unusable, or was closed.
            ValueError: the frame is over a limit or a buffer is not contiguous. The pipe lives on.
        """

    @abc.abstractmethod
    def close(self) -> None:
        """Stop both directions and free all that the pipe holds. Idempotent, from any thread.

        Frames that are still queued are dropped; `flush` first where they matter. The pipe's
        threads have ended when this returns, except when called from one of them.
        """

    @abc.abstractmethod
    def fail(self, reason: str) -> None:
        """Break the pipe as if the connection had failed: does not wait, `on_lost` follows."""

    @property
    @abc.abstractmethod
    def progress(self) -> tuple[int, int]:
        """Bytes in and bytes out so far, also those of frames that are half received."""

    @property
    def queued(self) -> int:
        """Bytes that were sent by the caller but not yet handed to the carrier."""
        return 0

    @property
    def unread(self) -> int | None:
        """Bytes that have arrived and are not in `progress` yet; None where nobody knows."""
        return None

    def stage(self, buffers: Sequence[Any]) -> Sequence[Any]:
        """Do the part of `send` that needs no order, such as copies into shared memory.

        The result is good for one `send` on this pipe.
        """
        return buffers

    def wait_room(self) -> None:
        """Wait while more than `high_water` bytes are under way. Raises PipeBroken."""
        return None

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until nothing is queued; False if that took more than `timeout` seconds.

        Raises:
            PipeBroken: the pipe broke with frames still queued.
        """
        return True

    def trim(self, now: float) -> None:
        """Free memory kept for reuse that has been idle for long; called about once a second."""
        return None


def as_bytes(buffer: Any) -> Any:
    """`buffer` as something with the flat buffer protocol; only tiny ones are copied.

    Raises:
        ValueError: the memory is not C-contiguous.
    """
    if type(buffer) is bytes:
        return buffer
    if isinstance(buffer, np.ndarray):
        if buffer.nbytes <= _TINY:
            return buffer.tobytes()
        if not buffer.flags.c_contiguous:
            raise ValueError(
                f"Only C-contiguous buffers can be sent, got an array of shape {buffer.shape} "
                f"with strides {buffer.strides}"
            )
        if buffer.ndim == 1 and buffer.dtype == np.uint8:
            return buffer
        return buffer.reshape(-1).view(np.uint8)
    view = memoryview(buffer)
    if view.nbytes == 0:
        return b""
    if not view.c_contiguous:
        raise ValueError(f"Only C-contiguous buffers can be sent, got strides {view.strides}")
    return view if view.format == "B" and view.ndim == 1 else view.cast("B")


def nbytes_of(buffer: Any) -> int:
    """Bytes of what `as_bytes` returned."""
    return buffer.nbytes if type(buffer) is np.ndarray else len(buffer)


def check_frame(limits: Limits, head_bytes: int, buffers: int, total: int) -> str:
    """Why a frame of this size is refused; "" if it is not."""
    if head_bytes > limits.max_head_bytes:
        return f"a frame's head has {head_bytes} bytes, the limit is {limits.max_head_bytes}"
    if buffers > limits.max_buffers:
        return f"a frame has {buffers} buffers, the limit is {limits.max_buffers}"
    if total > limits.max_frame_bytes:
        return f"a frame has {total} bytes, the limit is {limits.max_frame_bytes}"
    return ""
