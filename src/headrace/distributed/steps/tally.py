"""How many steps have ended, and how long they took."""

from __future__ import annotations

import threading

__all__ = ["StepTally"]


class StepTally:
    """Counts from the start of a process on, never downwards.

    Attributes:
        ended: steps, with those that failed; failed: those alone.
        seconds: that all of them took together.

    >>> tally = StepTally()
    >>> tally.add(0.5, failed=False)
    >>> tally.add(1.5, failed=True)
    >>> tally.ended, tally.failed, tally.seconds
    (2, 1, 2.0)
    """

    __slots__ = ("_lock", "ended", "failed", "seconds")

    def __init__(self) -> None:
        self.ended = self.failed = 0
        self.seconds = 0.0
        self._lock = threading.Lock()

    def add(self, seconds: float, failed: bool) -> None:
        """A step has ended."""
        with self._lock:
            self.ended += 1
            self.failed += failed
            self.seconds += seconds
