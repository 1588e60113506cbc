"""The links of one process to others: found, made on demand, and given up when silent."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

from headrace.distributed.failures import unavailable
from headrace.distributed.timing import DEFAULT_TIMING, Timing
from headrace.distributed.transport.base import PeerInfo, Pipe
from headrace.distributed.transport.link import Link
from headrace.errors import DeadlineExceededError, OpError, UnavailableError
from headrace.executor.threads import step_threads

_log = logging.getLogger("headrace.distributed")

#: A wait for a task is logged this often, in seconds.
NOTICE_SECONDS = 10.0
#: Pause between two attempts to connect, in seconds.
RETRY_SECONDS = 0.2


class Handler(Protocol):
    """Who gets what links bring."""

    def on_frame(self, link: Link, head: bytes, buffers: list[Any]) -> None: ...

    def on_lost(self, link: Link, reason: str, until: float) -> None:
        """A link is gone. What began after ``until`` uses another one to the same peer."""

    def on_tick(self, now: float) -> None: ...


Dial = Callable[[str, str, float], tuple[Pipe, PeerInfo]]


class Peers:
    """The links of one process.

    Args:
        handler: gets frames and losses.
        dial: ``dial(address, task, timeout)`` connects to a task; raises UnavailableError when it
            does not answer in time, other OpErrors when it answers wrongly.
        clock: seconds, monotonic.
    """

    def __init__(
        self,
        handler: Handler,
        dial: Dial,
        timing: Timing = DEFAULT_TIMING,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.timing = timing
        self._handler = handler
        self._dial = dial
        self._clock = clock
        self._lock = threading.Lock()
        self._links: dict[str, Link] = {}
        self._all: set[Link] = set()
        self._dialling: dict[str, threading.Lock] = {}
        self._stop = threading.Event()
        self._ticker = threading.Thread(target=self._tick, name="headrace heartbeat", daemon=True)
        self._ticker.start()

    def adopt(self, pipe: Pipe, peer: PeerInfo) -> Link:
        """Make a link of a pipe that was connected, by us or by the peer.

        There may be two to one peer: both have dialled at once, or it noticed a cut before us. The
        newest is used. Links to an earlier start of the peer are lost by this.
        """
        link = Link(
            pipe,
            peer,
            self._handler.on_frame,
            self._lost,
            self._clock,
            interval=self.timing.heartbeat,
            timeout=self.timing.silence,
        )
        with self._lock:
            stopped = self._stop.is_set()
            if not stopped and not link.lost:
                self._links[peer.task] = link
                self._all.add(link)
        if stopped:
            link.close()
        self.started_again(peer.task, peer.incarnation)
        return link

    def started_again(self, task: str, incarnation: int) -> None:
        """Give up links to other starts of a task than this."""
        for link in self.all():
            if link.peer.task == task and link.peer.incarnation != incarnation:
                link.fail(f"{task} was started again")

    def known(self, task: str) -> Link | None:
        """The link to a task, if there is one."""
        return self._links.get(task)

    def all(self) -> list[Link]:
        """All links."""
        with self._lock:
            return list(self._all)

    def link(self, task: str, address: str, timeout: float, step: int | None = None) -> Link:
        """The link to a task; connects, and waits for it, where there is none.

        Raises:
            UnavailableError: if the task does not answer within ``timeout`` seconds.
            OpError: if what answers is not that task.
        """
        link = self._links.get(task)
        if link is not None:
            return link
        with self._lock:
            dialling = self._dialling.setdefault(task, threading.Lock())
        if not dialling.acquire(timeout=timeout):
            reason = f"no answer at {address} for {timeout:.1f} s"
            raise unavailable(task, step, reason)
        try:
            return self._connect(task, address, timeout, step)
        finally:
            dialling.release()

    def _connect(self, task: str, address: str, timeout: float, step: int | None) -> Link:
        began = self._clock()
        noticed = -math.inf
        while True:
            link = self._links.get(task)  # another thread has dialled, or the task itself
            if link is not None:
                return link
            left = began + timeout - self._clock()
            try:
                pipe, peer = self._dial(address, task, max(0.05, min(left, NOTICE_SECONDS)))
                return self.adopt(pipe, peer)
            except OpError as error:
                if not may_come(error):
                    raise
                waited = self._clock() - began
                if waited >= timeout or self._stop.is_set():
                    reason = f"no answer at {address} for {waited:.1f} s ({error.message})"
                    raise unavailable(task, step, reason) from None
                if waited - noticed >= NOTICE_SECONDS:
                    noticed = waited
                    text = "Waiting for task %s at %s, for %.0f s so far: %s"
                    _log.warning(text, task, address, waited, error.message)
                self._stop.wait(min(RETRY_SECONDS, timeout / 5))

    def _lost(self, link: Link, reason: str) -> None:
        with self._lock:
            self._all.discard(link)
            until = self._without(link)
        if self._stop.is_set():
            return
        if threading.current_thread() is self._ticker:
            # Others must not be thought dead while their loss is dealt with.
            step_threads.submit(self._handler.on_lost, link, reason, until)
        else:
            self._handler.on_lost(link, reason, until)

    def _without(self, lost: Link) -> float:
        """Choose another link to the peer of a lost one; since when nobody has used that."""
        peer = lost.peer
        others = [
            other
            for other in self._all
            if (other.peer.task, other.peer.incarnation) == (peer.task, peer.incarnation)
        ]
        newest = max(others, key=lambda other: other.began, default=None)
        if self._links.get(peer.task) is lost:
            if newest is None:
                del self._links[peer.task]
            else:
                self._links[peer.task] = newest
            return math.inf
        current = self._links.get(peer.task)
        return math.inf if current is None else current.began

    def _tick(self) -> None:
        while not self._stop.wait(self.timing.tick):
            now = self._clock()
            for link in self.all():
                self._guarded(link.tick, now)
            self._guarded(self._handler.on_tick, now)

    def _guarded(self, call: Callable[[float], None], now: float) -> None:
        """Call; whatever happens, the heart goes on."""
        try:
            call(now)
        except Exception:
            _log.exception("Something went wrong while links were looked after")

    def close(self) -> None:
        """Close all links."""
        self._stop.set()
        with self._lock:
            links = list(self._all)
            self._links.clear()
            self._all.clear()
        for link in links:
            link.close()
        if threading.current_thread() is not self._ticker:
            self._ticker.join()


def may_come(error: OpError) -> bool:
    """Whether the task may only not be there yet."""
    return isinstance(error, (UnavailableError, DeadlineExceededError))
