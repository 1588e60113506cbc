"""The links of one process to others: found, made on demand, and given up when silent."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

from headrace.distributed.failures import unavailable
from headrace.distributed.transport.base import PeerInfo, Pipe
from headrace.distributed.transport.link import Link
from headrace.errors import DeadlineExceededError, OpError

_log = logging.getLogger("headrace.distributed")

#: How often links are looked at (heartbeats, silence), in seconds.
TICK = 0.25
#: A wait for a task is logged this often, in seconds.
NOTICE_SECONDS = 10.0


class Handler(Protocol):
    """Who gets what links bring."""

    def on_frame(self, link: Link, head: bytes, buffers: list[Any]) -> None: ...

    def on_lost(self, link: Link, reason: str) -> None: ...

    def on_tick(self, now: float) -> None: ...


Dial = Callable[[str, str, float], tuple[Pipe, PeerInfo]]


class Peers:
    """The links of one process.

    Args:
        handler: gets frames and losses.
        dial: ``dial(address, task, timeout)`` connects to a task; raises UnavailableError when it
            does not answer in time, other OpErrors when it answers wrongly.
    """

    def __init__(
        self, handler: Handler, dial: Dial, clock: Callable[[], float] = time.monotonic
    ) -> None:
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
        """Make a link of a pipe that was connected, by us or by the peer."""
        link = Link(pipe, peer, self._handler.on_frame, self._lost, self._clock)
        with self._lock:
            stopped = self._stop.is_set()
            if not stopped and not link.lost:
                self._links[peer.task] = link
                self._all.add(link)
        if stopped:
            link.close()
        return link

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
        with dialling:
            link = self._links.get(task)
            return link if link is not None else self._connect(task, address, timeout, step)

    def _connect(self, task: str, address: str, timeout: float, step: int | None) -> Link:
        began = self._clock()
        while True:
            left = began + timeout - self._clock()
            try:
                pipe, peer = self._dial(address, task, max(0.05, min(left, NOTICE_SECONDS)))
                return self.adopt(pipe, peer)
            except OpError as error:
                waited = self._clock() - began
                if not _may_come(error) or waited >= timeout or self._stop.is_set():
                    if _may_come(error):
                        reason = f"no answer at {address} for {waited:.1f} s ({error.message})"
                        raise unavailable(task, step, reason) from None
                    raise
                _log.warning(
                    "Waiting for task %s at %s, for %.0f s so far: %s",
                    task,
                    address,
                    waited,
                    error.message,
                )
                self._stop.wait(0.2)

    def _lost(self, link: Link, reason: str) -> None:
        with self._lock:
            self._all.discard(link)
            current = self._links.get(link.peer.task) is link
            if current:
                del self._links[link.peer.task]
        if not self._stop.is_set():
            self._handler.on_lost(link, reason)

    def _tick(self) -> None:
        while not self._stop.wait(TICK):
            now = self._clock()
            for link in self.all():
                link.tick(now)
            self._handler.on_tick(now)

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


def _may_come(error: OpError) -> bool:
    """Whether the task may only not be there yet."""
    from headrace.errors import UnavailableError

    return isinstance(error, (UnavailableError, DeadlineExceededError))
