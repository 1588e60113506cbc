"""Threads for work that may wait: as many as are busy at once, none of them keeps a process alive.

Threads of `concurrent.futures` are joined when the interpreter ends, so an op that waits for ever
would hang it; and their number is bounded, so ops that wait for each other could all be stuck.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Callable
from typing import Any, TypeVar

_log = logging.getLogger(__name__)

_Result = TypeVar("_Result")

#: How much nicer a thread is that gives way.
_NICE = 5
#: An idle thread ends after so many seconds.
IDLE_SECONDS = 30.0

_own = threading.local()


def retire() -> None:
    """Let the thread that calls this end after its work: it has handed XLA what is not finished.

    XLA's CPU client begins what one thread hands over in that order, so that the next step of the
    thread would wait for what nobody wants.
    """
    _own.retires = True


_Work = tuple[Callable[..., Any], tuple[Any, ...]]


class _Thread:
    """A thread that waits for its next piece of work; None ends it."""

    __slots__ = ("there", "work")

    def __init__(self) -> None:
        self.there = threading.Lock()
        self.there.acquire()
        self.work: _Work | None = None


class Threads:
    """Runs each piece of work at once: in an idle thread, else in a new one.

    Args:
        name: of the threads.
        idle_seconds: how long a thread waits for work before it ends.
    """

    def __init__(self, name: str, idle_seconds: float = IDLE_SECONDS) -> None:
        self._name = name
        self._idle_seconds = idle_seconds
        self._lock = threading.Lock()
        #: The last to become idle is the first to work: its caches are warm.
        self._idle: list[_Thread] = []
        self._busy = 0
        self._closed = False
        self._quiet = threading.Condition(self._lock)

    def submit(self, call: Callable[..., Any], *args: Any) -> bool:
        """Call in another thread. Nobody gets the result; an error is logged.

        Returns:
            False if there can be no thread any more: the interpreter ends.
        """
        with self._lock:
            self._busy += 1
            thread = self._idle.pop() if self._idle else None
        if thread is not None:
            thread.work = (call, args)
            thread.there.release()
            return True
        made = _Thread()
        made.work = (call, args)
        made.there.release()
        try:
            threading.Thread(target=self._serve, args=(made,), name=self._name, daemon=True).start()
        except RuntimeError as error:  # the interpreter ends: nobody waits for the work any more
            _log.info("Work in a thread of %r is dropped: %s", self._name, error)
            with self._lock:
                self._busy -= 1
            return False
        return True

    def _serve(self, thread: _Thread) -> None:
        while self._next(thread):
            if thread.work is None:
                return
            call, args = thread.work
            thread.work = None
            try:
                call(*args)
            except BaseException:
                _log.exception("Work in a thread of %r failed", self._name)
            del call, args
            with self._lock:
                self._busy -= 1
                if not self._busy:
                    self._quiet.notify_all()
                if self._closed or getattr(_own, "retires", False):
                    return
                self._idle.append(thread)

    def _next(self, thread: _Thread) -> bool:
        """Wait for work; false when there was none for long."""
        if thread.there.acquire(timeout=self._idle_seconds):
            return True
        with self._lock:
            if thread in self._idle:
                self._idle.remove(thread)
                return False
        thread.there.acquire()  # it was given work just now
        return True

    def wait_until_idle(self, timeout: float) -> bool:
        """Wait until nothing runs; false if that takes longer than ``timeout`` seconds."""
        with self._lock:
            return self._quiet.wait_for(lambda: not self._busy, timeout)

    def close(self) -> None:
        """Let every thread end once it has nothing to do."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for thread in idle:
            thread.there.release()


#: The threads of all steps of this process.
step_threads = Threads("headrace unit")


def giving_way(call: Callable[[], _Result]) -> _Result:
    """Call in a thread that gives way to others where processors are scarce; waits for it.

    Linux gives it about a third of what a thread of a step gets. Elsewhere it is as others.
    """
    results: list[_Result] = []
    errors: list[BaseException] = []

    def give_way() -> None:
        if sys.platform == "linux":  # elsewhere all threads of a process would give way
            own = threading.get_native_id()
            os.setpriority(os.PRIO_PROCESS, own, os.getpriority(os.PRIO_PROCESS, own) + _NICE)
        try:
            results.append(call())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=give_way, name="headrace gives way", daemon=True)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]
