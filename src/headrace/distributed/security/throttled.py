"""Log lines that anybody on the network can cause: not more of them than someone reads."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Hashable
from typing import Any, Final

__all__ = ["Throttled", "one_line_each"]

#: What is alike is said once in so many seconds.
_SECONDS: Final = 60.0
#: So many kinds are told apart; what is beyond is one kind.
_MOST_KINDS: Final = 64


class Throttled:
    """Warnings of one logger, each kind once a minute; the next says how many were left out.

    Args:
        clock: seconds, monotonic.
    """

    def __init__(self, log: logging.Logger, clock: Callable[[], float] = time.monotonic) -> None:
        self._log = log
        self._clock = clock
        self._lock = threading.Lock()
        self._kinds: dict[Hashable, tuple[float, int]] = {}  # said when, left out since

    def warning(
        self, kind: Hashable, text: str, *args: Any, error: BaseException | None = None
    ) -> None:
        """Log it, with the traceback of ``error``, unless its kind was logged shortly before."""
        now = self._clock()
        with self._lock:
            if kind not in self._kinds and len(self._kinds) >= _MOST_KINDS:
                self._forget(now)
                if len(self._kinds) >= _MOST_KINDS:
                    kind = None
            said, left_out = self._kinds.get(kind, (-_SECONDS, 0))
            if now - said < _SECONDS:
                self._kinds[kind] = said, left_out + 1
                return
            self._kinds[kind] = now, 0
        if left_out:
            text, args = f"{text} (and %d more like it since)", (*args, left_out)
        self._log.warning(text, *args, exc_info=error)

    def _forget(self, now: float) -> None:
        old = [kind for kind, (said, _) in self._kinds.items() if now - said >= _SECONDS]
        for kind in old:
            del self._kinds[kind]


class _OneLine(logging.Filter):
    """Lets a record through without its traceback, and what is alike once a minute."""

    def __init__(self) -> None:
        super().__init__()
        self._said: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        record.exc_info = record.exc_text = None
        now = time.monotonic()
        text = str(record.msg)  # the same for all that is alike: the rest is in its arguments
        if now - self._said.get(text, -_SECONDS) < _SECONDS:
            return False
        self._said[text] = now
        return True


def one_line_each(log: logging.Logger) -> None:
    """Keep what the logger of a library says to one line a minute for each kind."""
    if not any(isinstance(one, _OneLine) for one in log.filters):
        log.addFilter(_OneLine())
