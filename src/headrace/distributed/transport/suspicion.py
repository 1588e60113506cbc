"""When silence is more than lateness: the φ accrual failure detector.

Hayashibara, Défago, Yared and Katayama, *The φ accrual failure detector* (SRDS 2004), section 4.
What has been heard from a peer so far says how long its silences are: their mean and deviation over
the last hundred. φ is how improbable a silence is by that, as a power of ten: at φ = 8 a peer that
lives would be taken for dead once in 10^8 silences, if these were normally distributed. They are
not, on a machine that is busy by fits; so there are bounds, and who is suspected is asked before
it counts as dead (`links.liveness`).
"""

from __future__ import annotations

import math
from collections import deque
from statistics import NormalDist
from typing import Final

__all__ = ["THRESHOLD", "Suspicion"]

#: From this φ on a peer counts as dead.
THRESHOLD: Final = 8.0
_WINDOW: Final = 100
_BEYOND: Final = NormalDist().inv_cdf(1 - 10**-THRESHOLD)  # in deviations
#: The deviation is taken for at least this part of the interval: few gaps are all alike.
_LEAST_DEVIATION: Final = 0.25


class Suspicion:
    """What is known of the silences of one peer.

    Args:
        interval: between its signs of life, in seconds, as it should be.
        least, most: bounds of `patience`.

    >>> peer = Suspicion(0.5, least=2.0, most=10.0)
    >>> for gap in (0.5, 0.6, 0.4, 0.5):
    ...     peer.heard(gap)
    >>> peer.patience
    2.0
    >>> for gap in (1.5, 0.5, 2.5, 0.5):
    ...     peer.heard(gap)
    >>> round(peer.patience, 1)
    4.8
    >>> round(peer.level(0.5), 1), round(peer.level(2.5), 1), round(peer.level(peer.patience), 1)
    (0.1, 2.0, 8.0)
    """

    def __init__(self, interval: float, least: float, most: float) -> None:
        self._interval, self._least, self._most = interval, least, most
        self._gaps: deque[float] = deque(maxlen=_WINDOW)
        self._sum = self._squares = 0.0
        #: How long a silence may last, in seconds.
        self.patience = least

    def heard(self, gap: float) -> None:
        """The peer has given a sign of life, ``gap`` seconds after the one before."""
        # Who has much to say is not dead when it says no more than heartbeats.
        gap = max(gap, self._interval)
        if len(self._gaps) == _WINDOW:
            old = self._gaps[0]
            self._sum -= old
            self._squares -= old * old
        self._gaps.append(gap)
        self._sum += gap
        self._squares += gap * gap
        mean, deviation = self._usual()
        self.patience = min(max(mean + _BEYOND * deviation, self._least), self._most)

    def _usual(self) -> tuple[float, float]:
        """Mean and deviation of the gaps."""
        least = _LEAST_DEVIATION * self._interval
        count = len(self._gaps)
        if not count:
            return self._interval, least
        mean = self._sum / count
        return mean, max(math.sqrt(max(self._squares / count - mean * mean, 0.0)), least)

    def level(self, silent: float) -> float:
        """φ of a silence of so many seconds."""
        mean, deviation = self._usual()
        # By the complementary error function: 1 - cdf(x) has no digits left where φ matters.
        later = 0.5 * math.erfc((silent - mean) / (deviation * math.sqrt(2.0)))
        return math.inf if later <= 0.0 else -math.log10(later)
