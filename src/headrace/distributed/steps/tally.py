"""How many steps have ended, and how long they took."""

from __future__ import annotations

import threading

from headrace.errors import CancelledError, DeadlineExceededError

__all__ = ["StepTally", "is_given_up"]

_GIVEN_UP = (DeadlineExceededError, CancelledError, KeyboardInterrupt)


class StepTally:
    """Counts from the start of a process on, never downwards.

    Attributes:
        ended: steps, with those that failed; failed: those alone.
        seconds: that all of them took together.
        given_up: more steps, that ended by a deadline of their own, or with their session. Programs
            wait with such steps for what others do.

    >>> tally = StepTally()
    >>> tally.add(0.5, None)
    >>> tally.add(1.5, tf.errors.UnavailableError(None, None, "gone"))
    >>> tally.add(9.0, tf.errors.CancelledError(None, None, "closed"))
    >>> tally.ended, tally.failed, tally.seconds, tally.given_up
    (2, 1, 2.0, 1)
    """

    __slots__ = ("_lock", "ended", "failed", "given_up", "seconds")

    def __init__(self) -> None:
        self.ended = self.failed = self.given_up = 0
        self.seconds = 0.0
        self._lock = threading.Lock()

    def add(self, seconds: float, error: BaseException | None) -> None:
        """A step has ended, with this error or well."""
        with self._lock:
            if is_given_up(error):
                self.given_up += 1
                return
            self.ended += 1
            self.failed += error is not None
            self.seconds += seconds


def is_given_up(error: BaseException | None) -> bool:
    """Whether a step ended because nobody waits for it any more."""
    return error is not None and isinstance(error, _GIVEN_UP)
