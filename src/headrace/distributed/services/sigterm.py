"""SIGTERM asks a server to stop, while the main thread waits for that."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator

__all__ = ["on_sigterm"]


@contextlib.contextmanager
def on_sigterm(ask_to_stop: Callable[[], None]) -> Iterator[None]:
    """Call ``ask_to_stop`` at SIGTERM; in another thread than the main one nothing is changed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    # Not in this thread: it may hold the lock of the event that it waits for.
    before = signal.signal(signal.SIGTERM, lambda *_: ask_to_stop())
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
