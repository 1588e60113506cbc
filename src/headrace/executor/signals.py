"""Signals that come while a compiled loop runs.

Python calls a program's signal handlers between two of its instructions; while a loop is in XLA
these are those of the callback by which it asks whether to go on. What a handler raises there
(Ctrl-C raises KeyboardInterrupt) JAX would turn into an error of its own. So handlers are put off:
signals are noted, and the handlers are called where the loop's question is answered.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from typing import Any

__all__ = ["DeferredSignals"]

Handler = Callable[[int, Any], Any]


class DeferredSignals:
    """Within the block, handlers of the program run only when `deliver` is called.

    Signals that came after the last call are delivered when the block ends. Only Python's main
    thread gets signals: in any other one this does nothing.
    """

    def __init__(self) -> None:
        self._handlers: dict[int, Handler] = {}
        self._came: list[tuple[int, Any]] = []

    def __enter__(self) -> DeferredSignals:
        if threading.current_thread() is threading.main_thread():
            for number in signal.valid_signals():
                handler = signal.getsignal(number)
                if callable(handler):
                    self._handlers[number] = handler
                    signal.signal(number, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._handlers.items():
            if signal.getsignal(number) == self._note:
                signal.signal(number, handler)
        self.deliver()

    def _note(self, number: int, frame: Any) -> None:
        self._came.append((number, frame))

    def deliver(self) -> None:
        """Call the handlers of the signals that have come; what they raise comes out."""
        while self._came and threading.current_thread() is threading.main_thread():
            number, frame = self._came.pop(0)
            self._handlers[number](number, frame)
