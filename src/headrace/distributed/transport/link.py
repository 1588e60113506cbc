"""A pipe between two tasks that knows whether the other one is alive and nothing was lost."""

from __future__ import annotations

import logging
import math
import random
import struct
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from headrace.distributed.transport.base import Buffer, PeerInfo, Pipe, PipeBroken
from headrace.distributed.transport.suspicion import Suspicion

__all__ = ["HEARTBEAT_SECONDS", "SILENCE_SECONDS", "Link", "LinkStats"]

HEARTBEAT_SECONDS: Final = 0.5
SILENCE_SECONDS: Final = 4.0
_JITTER: Final = 0.2
_TRIM_SECONDS: Final = 5.0
#: Who has so many bytes waiting here is alive, and waits for us.
_FULL_BYTES: Final = 64 << 10
#: Two looks at a link that lie further apart than this part of the time-out: we were held up.
_LATE: Final = 0.25
_PREFIX: Final = struct.Struct("<BQ")  # kind, number of this frame (or of the next one)
_DATA: Final = 0
_HEARTBEAT: Final = 1

_log = logging.getLogger(__name__)

OnLinkFrame = Callable[["Link", bytes, list[Buffer]], None]
OnLinkLost = Callable[["Link", str], None]


@dataclass
class LinkStats:
    """What went over a link. Bytes include heads, headers and heartbeats."""

    bytes_in: int = 0
    bytes_out: int = 0
    frames_in: int = 0
    frames_out: int = 0
    duplicates: int = 0


class Link:
    """Frames between two tasks, each exactly once and in order, until the link is lost for ever.

    Frames have numbers: one that comes twice is dropped, a gap loses the link. Where nothing is
    to be said, heartbeats tell the number of the next frame, so a lost last frame is noticed, too.
    A peer from which not a byte comes for long counts as dead, unless it gave another sign of life
    (`is_alive`). How long that is depends on how regularly it was heard before
    (`transport.suspicion`). That is judged by what has arrived at this host, not by what was read:
    a reader thread may be busy with a frame. And when `tick` itself comes late, so may everything
    else of this process: the time starts anew.

    `on_frame(link, head, buffers)` and `on_lost(link, reason)` are called as those of a pipe,
    except that `on_lost` may also come from the threads that call `tick` and `send`.

    Attributes:
        introduced: whether the peer has spoken on it; set by whoever made the link.
        reason: why it was lost.
        suspicion: what is known of the silences of the peer.

    Args:
        pipe: not yet started; it belongs to the link from now on.
        peer: who is at the other end.
        clock: seconds, monotonic; the same that gives `tick` its time.
        interval: seconds between heartbeats, changed by up to a fifth each time.
        timeout: seconds without a byte after which the peer is dead, at least.
        most: and at most; by default the same.
        rng: gives the changes.

    Raises:
        PipeBroken: the pipe broke before.
    """

    def __init__(
        self,
        pipe: Pipe,
        peer: PeerInfo,
        on_frame: OnLinkFrame,
        on_lost: OnLinkLost,
        clock: Callable[[], float] = time.monotonic,
        *,
        interval: float = HEARTBEAT_SECONDS,
        timeout: float = SILENCE_SECONDS,
        most: float | None = None,
        rng: random.Random | None = None,
    ) -> None:
        self.pipe = pipe
        self.peer = peer
        self._on_frame = on_frame
        self._on_lost = on_lost
        self._interval = interval
        # In one process silence says nothing: its threads only wait for the processor.
        least = math.inf if pipe.kind == "inproc" else timeout
        self.suspicion = Suspicion(interval, least, max(least, timeout if most is None else most))
        self._rng = rng or random.Random()
        self._lock = threading.Lock()
        self._next_out = 0
        self._next_in = 0
        self._frames_told = 0  # frames out when the last heartbeat was considered
        self._duplicates = 0
        self._gone = False
        now = clock()
        self.introduced = False
        self.reason = ""
        self._reading = False  # whether the reader is busy with a frame
        self._ticked = now
        self._seen: tuple[int, int | None, float] = (pipe.progress[0], 0, now)
        self._heard_at = now
        self._beat_at = now + self._pause()
        self._trim_at = now + _TRIM_SECONDS
        pipe.start(self._arrived, self._lose)

    @property
    def lost(self) -> bool:
        """Whether the link was lost or closed."""
        return self._gone

    @property
    def stats(self) -> LinkStats:
        """Counts up to now."""
        bytes_in, bytes_out = self.pipe.progress
        return LinkStats(bytes_in, bytes_out, self._next_in, self._next_out, self._duplicates)

    def send(self, head: bytes, buffers: Sequence[Any] = (), block: bool = True) -> None:
        """As `Pipe.send`.

        Raises:
            PipeBroken: the link is lost or closed.
            ValueError: the frame is over a limit; the link lives on.
        """
        pipe = self.pipe
        # Waiting and copying happen before the number is taken, so nobody waits for the others'.
        if block:
            pipe.wait_room()
        if buffers:
            buffers = pipe.stage(buffers)
        try:
            with self._lock:
                if self._gone:
                    raise PipeBroken(self.reason)
                pipe.send(_PREFIX.pack(_DATA, self._next_out) + head, buffers, False)
                self._next_out += 1
        except PipeBroken as error:
            # Now, not when the reader finds out: the sender's next message needs another link.
            self.fail(error.reason)
            raise

    def flush(self, timeout: float | None = None) -> bool:
        """As `Pipe.flush`."""
        return self.pipe.flush(timeout)

    def close(self) -> None:
        """End the link. `on_lost` is not called any more. Idempotent."""
        with self._lock:
            self._gone = True
            self.reason = self.reason or "the link was closed on this side"
        self.pipe.close()

    def tick(self, now: float) -> None:
        """Send a heartbeat if it is time, and look whether the peer is silent. Never waits."""
        if self._gone:
            return
        silent = self._silent(now)
        if silent > self.suspicion.patience:
            self.fail(f"nothing came from {self.peer.task or 'the peer'} for {silent:.1f} s")
            return
        if now >= self._beat_at:
            self._beat_at = now + self._pause()
            self._beat()
        if now >= self._trim_at:
            self._trim_at = now + _TRIM_SECONDS
            self.pipe.trim(now)

    @property
    def seen_at(self) -> float:
        """When the peer gave its last sign of life."""
        return self._seen[2]

    @property
    def heard_at(self) -> float:
        """When something came from it here."""
        return self._heard_at

    def is_alive(self, now: float) -> None:
        """The peer has given a sign of life elsewhere: its silence may begin anew."""
        self._seen = (*self._seen[:2], now)

    def fail(self, reason: str) -> None:
        """Lose the link: `on_lost` is called. Never waits for the pipe's threads."""
        self._lose(reason)
        self.pipe.fail(reason)

    def _silent(self, now: float) -> float:
        """For how many seconds nothing has come."""
        # If this process itself was stopped, the silence is not the peer's.
        late = now - self._ticked > self.suspicion.patience * _LATE
        self._ticked = now
        bytes_in = self.pipe.progress[0]
        unread = self.pipe.unread if self._reading else 0
        alive = unread is None or unread >= _FULL_BYTES
        if late or alive or (bytes_in, unread) != self._seen[:2]:
            if bytes_in != self._seen[0] and not late:
                self.suspicion.heard(now - self._heard_at)
            self._seen = (bytes_in, unread, now)
            self._heard_at = now
        return now - self._seen[2]

    def _pause(self) -> float:
        return self._interval * self._rng.uniform(1 - _JITTER, 1 + _JITTER)

    def _beat(self) -> None:
        # Frames that left since the last time, or wait in the queue, say as much as a heartbeat.
        # Someone who holds the lock is sending.
        if self.pipe.queued or not self._lock.acquire(blocking=False):
            return
        try:
            if self._next_out == self._frames_told:
                self.pipe.send(_PREFIX.pack(_HEARTBEAT, self._next_out), (), False)
            self._frames_told = self._next_out
        except PipeBroken as error:
            # The pipe's reader tells everyone.
            _log.debug("No heartbeat to %s: %s", self.peer.task, error.reason)
        finally:
            self._lock.release()

    def _arrived(self, head: bytes, buffers: list[Buffer]) -> None:
        if self._gone:
            return
        if len(head) < _PREFIX.size:
            raise PipeBroken("malformed frame: no sequence number")
        kind, number = _PREFIX.unpack_from(head)
        if kind == _DATA and number < self._next_in:
            self._duplicates += 1
            return
        if number != self._next_in:
            # A heartbeat behind the count is an old one that came twice: harmless.
            if kind == _HEARTBEAT and number < self._next_in:
                return
            raise PipeBroken(f"frames {self._next_in} to {number - 1} were lost on the way")
        if kind == _DATA:
            self._next_in += 1
            self._reading = True
            self._on_frame(self, head[_PREFIX.size :], buffers)
            self._reading = False
        elif kind != _HEARTBEAT:
            raise PipeBroken(f"malformed frame: unknown kind {kind}")

    def _lose(self, reason: str) -> None:
        with self._lock:
            if self._gone:
                return
            self._gone = True
            self.reason = reason
        self._on_lost(self, reason)
