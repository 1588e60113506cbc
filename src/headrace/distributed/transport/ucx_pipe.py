"""A pipe over UCX: RDMA where the fabric has it, TCP elsewhere.

UCX keeps messages with one tag in order; descriptors and the rest have a tag each, both made of a
secret that the receiver put into its address, so a stranger who finds the port can at most send
what nobody asks for. Large buffers go from their memory straight into the receiver's.

A pipe has a worker (UCX's word for an end) of its own. It is used under `_lock` by whoever gets
it: a sender that finds it free writes at once, otherwise the holder writes for it before it
leaves. The reader thread sleeps on the worker's file descriptor; while it runs `on_frame`, a
helper thread keeps half-sent messages moving.

What bounds a sender: UCX calls small messages sent when they are in its own buffers. So every few
KiB one is sent as "matched" (done when the receiver has asked for it); because the order is kept,
all before it have arrived then, and what is later counts as under way.
"""

from __future__ import annotations

import os
import select
import threading
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

import numpy as np

from headrace.distributed.transport import ucx_ffi
from headrace.distributed.transport.base import (
    Buffer,
    Limits,
    OnFrame,
    OnPipeLost,
    Pipe,
    PipeBroken,
)
from headrace.distributed.transport.checksum import setting
from headrace.distributed.transport.pool import address_of
from headrace.distributed.transport.ucx_frames import (
    CHUNK,
    DESCRIPTOR_ROOM,
    Arrival,
    Operation,
    encode,
    goodbye,
    read_descriptor,
)

__all__ = ["RdmaPipe"]

_WINDOW: Final = 4 * CHUNK  # bytes given to UCX at once, each way
_MAX_SENT: Final = 256  # messages
_MATCH_EVERY: Final = 64 << 10
_OPERATION_COST: Final = 64  # counted for each message, so that empty ones fill a queue too
_PASSES: Final = 32
_HELP_SECONDS: Final = 0.02
_GOODBYE_SECONDS: Final = 0.3
_DRAIN_SECONDS: Final = 0.25


class RdmaPipe(Pipe):
    """A pipe between two workers of UCX. See the module's text."""

    kind = "rdma"

    def __init__(
        self,
        worker: ucx_ffi.UcxWorker,
        secrets_: tuple[int, int],
        limits: Limits,
        carrier: Pipe | None,
    ) -> None:
        """`secrets_`: our own, which arrives in tags, and the peer's, which goes out in them."""
        self._worker: ucx_ffi.UcxWorker | None = worker
        self._own, self._peer = secrets_
        self._limits = limits
        # Packets of InfiniBand and RoCE have a CRC of 32 bits from adapter to adapter; heads and
        # small buffers have one of ours anyway.
        self._checked = setting() is True
        self._carrier = carrier
        self._match_every = min(_MATCH_EVERY, max(1, limits.high_water // 2))

        # Guards the worker and all that follows up to the next comment.
        self._lock = threading.Lock()
        self._sent: deque[tuple[int, int, int, bool, Any]] = deque()
        self._sent_bytes = 0  # of `_sent`
        self._position = 0  # of the last message given to UCX, in bytes and costs
        self._unmatched = 0  # since the last message sent as matched
        room = bytearray(DESCRIPTOR_ROOM)
        self._descriptor_address = address_of(np.frombuffer(room, np.uint8))
        self._descriptor_view = memoryview(room)
        self._descriptor_request: int | None = None
        self._arrival: Arrival | None = None
        self._asked: deque[tuple[int, int]] = deque()
        self._asked_bytes = 0
        self._bytes_in = 0
        self._bytes_out = 0
        self._peer_left = False

        self._outbox: deque[Operation] = deque()
        self._ready: deque[tuple[bytes, list[Buffer]]] = deque()

        # Guards what follows; never held while `_lock` is taken.
        self._room = threading.Condition()
        self._offered = 0
        self._arrived = 0  # position up to which the receiver has asked for everything
        self._written = 0  # position up to which the memory is ours again
        self._closed = False
        self._reason = ""
        self._read_until = 0.0  # after a failure: the time up to which the rest is read
        self._endpoint_dead = False
        self._reader: threading.Thread | None = None
        self._helper: threading.Thread | None = None
        self._wake_fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)

        self._delivering = False
        self._help = threading.Event()

    # -- what callers use ------------------------------------------------------------------------

    def start(self, on_frame: OnFrame, on_lost: OnPipeLost) -> None:
        with self._room:
            if self._closed:
                raise PipeBroken("the pipe is closed")
            if self._reader is not None:
                raise RuntimeError("A pipe is started once")
            self._reader = threading.Thread(
                target=self._read_loop,
                args=(on_frame, on_lost),
                name="headrace-rdma-read",
                daemon=True,
            )
            self._reader.start()

    def send(self, head: bytes, buffers: Sequence[Any] = (), block: bool = True) -> None:
        operations = encode(head, buffers, self._limits, self._checked)
        cost = sum(nbytes + _OPERATION_COST for _, nbytes, _, _ in operations)
        with self._room:
            if block:
                self._room.wait_for(self._has_room)
            self._check()
            self._offered += cost
            self._outbox.extend(operations)
        self._write_now()

    def wait_room(self) -> None:
        with self._room:
            self._room.wait_for(self._has_room)
            self._check()

    def flush(self, timeout: float | None = None) -> bool:
        with self._room:
            target = self._offered
            done = self._room.wait_for(lambda: self._written >= target or self._over(), timeout)
            if self._written >= target:
                return True
            if done:
                self._check()
            return False

    def close(self) -> None:
        with self._room:
            first, self._closed = not self._closed, True
            self._room.notify_all()
            reader = self._reader
        self._wake()
        if reader is None:
            if first:
                self._tear_down()
        elif reader is not threading.current_thread():
            reader.join()

    def fail(self, reason: str) -> None:
        self._fail(reason, 0.0)

    @property
    def progress(self) -> tuple[int, int]:
        return self._bytes_in, self._bytes_out

    @property
    def queued(self) -> int:
        return max(0, self._offered - self._written)

    # -- for the two states below `_room` --------------------------------------------------------

    def _over(self) -> bool:
        return self._closed or bool(self._reason)

    def _has_room(self) -> bool:
        return self._over() or self._offered - self._arrived <= self._limits.high_water

    def _check(self) -> None:
        if self._closed:
            raise PipeBroken("the pipe is closed")
        if self._reason:
            raise PipeBroken(self._reason)

    def _wake(self) -> None:
        """Make the reader look again."""
        with self._room:
            if self._wake_fd >= 0:
                os.eventfd_write(self._wake_fd, 1)

    def _fail(self, reason: str, read_on: float) -> None:
        """Break the pipe; what has arrived is still read, for `read_on` seconds at most."""
        with self._room:
            if not self._reason:
                self._reason = reason
                self._read_until = time.monotonic() + read_on
            self._room.notify_all()
        self._wake()

    def endpoint_failed(self, reason: str) -> None:
        """UCX can neither send nor receive any more."""
        self._endpoint_dead = True
        self._fail(f"the RDMA connection failed: {reason}", _DRAIN_SECONDS)

    def carrier_lost(self, reason: str) -> None:
        """The peer's other connection ended: what it sent before may still be under way."""
        self._fail(reason, _DRAIN_SECONDS)

    # -- writing: the holder of `_lock` ----------------------------------------------------------

    def _can_submit(self) -> bool:
        open_ = self._sent_bytes < _WINDOW and len(self._sent) < _MAX_SENT
        return open_ and bool(self._outbox)

    def _write_now(self) -> None:
        """Give the outbox to UCX in this thread, unless another has the worker: then it does."""
        while self._can_submit():
            if not self._lock.acquire(blocking=False):
                return
            try:
                if self._worker is None:
                    return
                self._pump_out(self._worker)
            except ucx_ffi.UcxError as error:
                self.endpoint_failed(str(error))
                raise PipeBroken(self._reason) from None
            finally:
                self._lock.release()
        if self._sent:
            if self._reader_is_away():
                self._ask_for_help()
            else:
                self._wake()

    def _pump_out(self, worker: ucx_ffi.UcxWorker) -> bool:
        """Collect what is done, send what fits. True if anything happened."""
        written, arrived = self._written, self._arrived
        while self._sent:
            request, position, nbytes, matched, _ = self._sent[0]
            status = worker.status(request)
            if status == ucx_ffi.IN_PROGRESS:
                break
            self._sent.popleft()
            worker.free(request)
            if status != ucx_ffi.OK:
                raise ucx_ffi.UcxError(worker.text(status))
            self._sent_bytes -= nbytes
            self._bytes_out += nbytes
            written = position
            arrived = max(arrived, position) if matched else arrived
        if not self._sent:
            written = self._position
        while self._can_submit():
            memory, nbytes, data, owner = self._outbox.popleft()
            self._position += nbytes + _OPERATION_COST
            self._unmatched += nbytes + _OPERATION_COST
            matched = self._unmatched >= self._match_every
            if matched:
                self._unmatched = 0
            made = worker.send(memory, nbytes, self._peer << 1 | data, matched)
            if made is not None:
                self._sent.append((made, self._position, nbytes, matched, (memory, owner)))
                self._sent_bytes += nbytes
                continue
            self._bytes_out += nbytes
            if not self._sent:
                written = self._position
            arrived = self._position if matched else arrived
        if (written, arrived) == (self._written, self._arrived):
            return False
        with self._room:
            self._written, self._arrived = written, arrived
            self._room.notify_all()
        return True

    # -- reading: the holder of `_lock` ----------------------------------------------------------

    def _pump_in(self, worker: ucx_ffi.UcxWorker) -> bool:
        """Take what has arrived, ask for what is next. True if anything happened.

        At most one whole frame waits for the reader: what follows it is left where it is.
        """
        if self._arrival is None and self._descriptor_request is None:
            if self._ready or self._peer_left:
                return False
            self._descriptor_request = worker.receive(
                self._descriptor_address, DESCRIPTOR_ROOM, self._own << 1
            )
        happened = False
        if self._descriptor_request is not None:
            request = self._descriptor_request
            if worker.status(request) == ucx_ffi.IN_PROGRESS:
                return False
            self._descriptor_request = None
            nbytes = worker.received(request)
            self._bytes_in += nbytes
            self._arrival = read_descriptor(self._descriptor_view[:nbytes], self._limits)
            self._peer_left = self._arrival is None
            happened = True
        while self._asked and worker.status(self._asked[0][0]) != ucx_ffi.IN_PROGRESS:
            request, nbytes = self._asked.popleft()
            got = worker.received(request)
            if got != nbytes:
                raise PipeBroken(f"a malformed frame: {got} bytes in place of {nbytes}")
            self._asked_bytes -= nbytes
            self._bytes_in += nbytes
            happened = True
        self._ask(worker)
        return happened

    def _ask(self, worker: ucx_ffi.UcxWorker) -> None:
        """Ask for what the frame misses; make it ready when that is nothing."""
        arrival = self._arrival
        if arrival is None:
            return
        if not arrival.missing and not self._asked and arrival.body is not None:
            arrival.open(arrival.body, self._limits)
        while arrival.missing and self._asked_bytes < _WINDOW:
            address, nbytes = arrival.missing.popleft()
            request = worker.receive(address, nbytes, self._own << 1 | 1)
            self._asked.append((request, nbytes))
            self._asked_bytes += nbytes
        if not arrival.missing and not self._asked:
            self._arrival = None
            arrival.check()
            self._ready.append((arrival.head, arrival.buffers))

    # -- the pipe's threads ----------------------------------------------------------------------

    def _turn(self) -> bool:
        """Do all that can be done now. True: nothing is left, the worker's fd says when there is.

        Raises:
            UcxError, PipeBroken: the pipe is to break for this.
        """
        with self._lock:
            worker = self._worker
            if worker is None:
                return False
            for _ in range(_PASSES):
                busy = worker.progress()
                busy = self._pump_in(worker) or busy
                busy = self._write(worker) or busy
                if self._ready:
                    return False
                if not busy:
                    break
            else:
                return False
            if not worker.arm():
                return False
        return self._endpoint_dead or not self._can_submit()

    def _write(self, worker: ucx_ffi.UcxWorker) -> bool:
        """Write; a failure ends that, but not the reading of what has arrived."""
        if self._endpoint_dead:
            return False
        try:
            return self._pump_out(worker)
        except ucx_ffi.UcxError as error:
            self.endpoint_failed(str(error))
            return True

    def _read_loop(self, on_frame: OnFrame, on_lost: OnPipeLost) -> None:
        try:
            self._receive(on_frame)
        except (ucx_ffi.UcxError, PipeBroken) as error:
            self.fail(str(error))
        except Exception as error:
            self.fail(f"a frame could not be handled: {type(error).__name__}: {error}")
        finally:
            self._tear_down()
        with self._room:
            closed = self._closed
        if not closed:
            on_lost(self._reason)

    def _receive(self, on_frame: OnFrame) -> None:
        """Deliver frames until the pipe is over."""
        assert self._worker is not None
        poller = select.poll()
        poller.register(self._worker.fd, select.POLLIN)
        poller.register(self._wake_fd, select.POLLIN)
        while not self._closed:
            idle = self._turn()
            if self._ready:
                self._delivering = True
                if self._unsent():
                    self._ask_for_help()
                head, buffers = self._ready.popleft()
                on_frame(head, buffers)
                del buffers
                self._delivering = False
                continue
            if self._peer_left:
                with self._room:
                    # Also if UCX noticed first that the connection went: that is its consequence.
                    self._reason = "the peer closed the pipe"
                    self._room.notify_all()
                return
            wait = None
            if self._reason:
                left = self._read_until - time.monotonic()
                if left <= 0 or (idle and self._endpoint_dead):
                    return
                wait = 1000 * left
            if idle:
                for descriptor, _ in poller.poll(wait):
                    if descriptor == self._wake_fd:
                        os.eventfd_read(descriptor)

    def _unsent(self) -> bool:
        # Also the outbox: a sender that found the worker taken has left its messages there.
        return bool(self._sent) or bool(self._outbox)

    def _reader_is_away(self) -> bool:
        """Not started yet, or in `on_frame`."""
        return self._delivering or self._reader is None

    def _ask_for_help(self) -> None:
        """Somebody else must move what is half sent, for the reader is away."""
        with self._room:
            if self._helper is None and not self._over():
                self._helper = threading.Thread(
                    target=self._help_loop, name="headrace-rdma-write", daemon=True
                )
                self._helper.start()
        self._help.set()

    def _help_loop(self) -> None:
        assert self._worker is not None
        poller = select.poll()
        poller.register(self._worker.fd, select.POLLIN)
        try:
            while not self._over():
                self._help.wait()
                self._help.clear()
                while self._reader_is_away() and self._unsent() and not self._over():
                    if self._turn() or self._ready:
                        poller.poll(1000 * _HELP_SECONDS)
        except (ucx_ffi.UcxError, PipeBroken) as error:
            self.fail(str(error))

    # -- the end ---------------------------------------------------------------------------------

    def _tear_down(self) -> None:
        """Tell the peer where that is possible, and free everything."""
        with self._room:
            failed = bool(self._reason)
            helper = self._helper
        self._help.set()
        if helper is not None:
            helper.join()
        with self._lock:
            worker, self._worker = self._worker, None
            if worker is not None:
                used = self._carrier is None or self._bytes_in + self._position > 0
                self._leave(worker, graceful=used and not failed)
        if self._carrier is not None:
            self._carrier.close()
        with self._room:
            wake, self._wake_fd = self._wake_fd, -1
            if wake >= 0:
                os.close(wake)

    def _leave(self, worker: ucx_ffi.UcxWorker, graceful: bool) -> None:
        self._outbox.clear()
        requests = [request for request, *_ in self._sent]
        if graceful:
            with suppress(ucx_ffi.UcxError):
                last = goodbye()
                made = worker.send(last, len(last), self._peer << 1, matched=False)
                requests += [made] if made is not None else []
                _finish(worker, requests, _GOODBYE_SECONDS)
        receives = [request for request, _ in self._asked]
        if self._descriptor_request is not None:
            receives.append(self._descriptor_request)
        for request in receives:
            worker.cancel(request)
        with suppress(ucx_ffi.UcxError):
            closing = worker.disconnect(force=not graceful or bool(requests))
            requests += receives + ([closing] if closing is not None else [])
            _finish(worker, requests, _GOODBYE_SECONDS)
        worker.destroy()
        self._sent.clear()
        self._asked.clear()
        self._descriptor_request = self._arrival = None


def _finish(worker: ucx_ffi.UcxWorker, requests: list[int], seconds: float) -> None:
    """Progress until the requests are done, for so long at most; frees and drops those that are."""
    deadline = time.monotonic() + seconds
    poller = select.poll()
    poller.register(worker.fd, select.POLLIN)
    while True:
        for request in list(requests):
            if worker.status(request) != ucx_ffi.IN_PROGRESS:
                worker.free(request)
                requests.remove(request)
        left = deadline - time.monotonic()
        if not requests or left <= 0:
            return
        if not worker.progress() and worker.arm():
            poller.poll(1000 * left)
