"""A lock for what many Python threads do often and briefly."""

from __future__ import annotations

import threading
import time
from collections import deque
from types import TracebackType


class BargingLock:
    """A lock that who lets go of it may take again at once, before those who wait for it.

    `threading.Lock` hands itself to a waiting thread. That one still has to wait for the
    interpreter, and the thread that has the interpreter soon comes to wait for the lock: from then
    on every step changes threads, for good (a lock convoy; Blasgen, Gray, Mitoma and Price, "The
    convoy phenomenon", 1979). Here a waiting thread is only told that the lock is free, one thread
    at a time and the oldest first, and tries for it as it gets to run. The interpreter gives every
    thread its turn within a few milliseconds, so none waits for long.
    """

    __slots__ = ("_guard", "_is_one_called", "_lock", "_waiting")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        #: Guards what follows. Nobody holds it while waiting for anything else.
        self._guard = threading.Lock()
        #: A lock for each thread that waits, held until the thread is called.
        self._waiting: deque[threading.Lock] = deque()
        self._is_one_called = False

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Take the lock; false if that is not possible at once, or in ``timeout`` seconds."""
        if self._lock.acquire(False):
            return True
        return blocking and self._wait(timeout)

    def release(self) -> None:
        """Let go of the lock.

        Raises:
            RuntimeError: if nobody holds it.
        """
        self._lock.release()
        if self._waiting and not self._is_one_called:
            self._call_next()

    def locked(self) -> bool:
        """Whether somebody holds it."""
        return self._lock.locked()

    def __enter__(self) -> None:
        if not self._lock.acquire(False):
            self._wait(-1)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()

    def _call_next(self) -> None:
        with self._guard:
            if self._waiting and not self._is_one_called:
                self._is_one_called = True
                self._waiting.popleft().release()

    def _wait(self, timeout: float) -> bool:
        limit = None if timeout < 0 else time.monotonic() + timeout
        call = threading.Lock()
        call.acquire()
        was_called = False
        try:
            while True:
                with self._guard:
                    if was_called:
                        self._is_one_called = False
                        self._waiting.appendleft(call)
                    else:
                        self._waiting.append(call)
                # Whoever holds the lock now calls a thread when it lets go.
                if self._lock.acquire(False):
                    return True
                left = -1 if limit is None else max(0.0, limit - time.monotonic())
                was_called = call.acquire(timeout=left)
                if not was_called:
                    return False
        finally:
            self._leave(call)

    def _leave(self, call: threading.Lock) -> None:
        """Wait no longer; if this thread has been called, another may be in its place."""
        with self._guard:
            if call in self._waiting:
                self._waiting.remove(call)
                return
            self._is_one_called = False
        if not self._lock.locked():
            self._call_next()
