"""How a checkpoint that is written in the background leaves processors and memory to steps.

Before it begins the writer looks how fast steps are. Then it rests after each piece; for how long
depends on how fast steps were in the last quarter of a second: if they are slower than they should
be it works for less of the time, else for more (as congestion control does it: Chiu and Jain,
"Analysis of the increase and decrease algorithms", 1989).

>>> rule = PaceRule(usual=40.0)     # steps a second before
>>> rule.share
0.25
>>> rule.saw(0.25, steps=5)         # half as fast
>>> round(rule.share, 3), round(rule.rest(0.010), 3)
(0.175, 0.047)
>>> for _ in range(50):
...     rule.saw(0.25, steps=10)
>>> rule.share, rule.rest(0.010)
(1.0, 0.0)
"""

from __future__ import annotations

import time
from collections.abc import Callable

from headrace.executor import activity

__all__ = ["Pace", "PaceRule"]

#: Steps should keep this part of their rate.
_GOAL = 0.9
#: The writer works for at least this part of the time, and rests for so many seconds at most.
_LEAST, _MOST_REST = 0.1, 120.0
#: Steps are looked at for so long (seconds) before, until there are enough, and while it writes.
_LOOK, _LONGEST_LOOK, _ENOUGH, _WINDOW = 0.1, 1.0, 8, 0.25
#: Nobody trains any more when so many windows had no step.
_SILENT = 4


class PaceRule:
    """For which part of the time a writer works.

    Args:
        usual: steps a second when nothing is written; 0: nobody trains, so it does not rest.

    Attributes:
        share: that part.
        patience: nobody trains any more when there was no step for so many seconds of rest.
    """

    def __init__(self, usual: float) -> None:
        self._usual = usual
        self.patience = max(_SILENT * _WINDOW, _SILENT / usual) if usual else 0.0
        self._rested = 0.0
        self._silent = 0
        self.share = 0.25 if usual else 1.0

    def saw(self, seconds: float, steps: int) -> None:
        """So many steps were made in the last seconds, in which it worked and rested."""
        if not self._usual:
            return
        self._silent = 0 if steps else self._silent + 1
        if self._silent >= _SILENT:
            self.share = 1.0
        elif steps < _GOAL * self._usual * seconds:
            self.share = max(_LEAST, self.share * 0.7)
        else:
            self.share = min(1.0, self.share * 1.1)

    def stop_resting(self) -> None:
        """Nobody trains any more."""
        self.share = 1.0

    def rest(self, worked: float) -> float:
        """How long to rest after so many seconds of work."""
        seconds = min(worked * (1.0 / self.share - 1.0), _MOST_REST - self._rested)
        self._rested += max(0.0, seconds)
        return max(0.0, seconds)


class Pace:
    """Called after each piece; waits as its rule says.

    Args:
        steps: how many steps the process has begun.
        clock, wait: as those of the system, in seconds.
        check: raises if nobody waits for the save any more; asked while it rests.
    """

    #: Bytes of a piece.
    PIECE = 4 << 20

    def __init__(
        self,
        steps: Callable[[], int] = activity.steps_begun,
        clock: Callable[[], float] = time.monotonic,
        wait: Callable[[float], None] = time.sleep,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        self._steps, self._clock, self._wait, self._check = steps, clock, wait, check
        begun, count, made = clock(), steps(), 0
        while made < _ENOUGH and clock() - begun < _LONGEST_LOOK:
            wait(_LOOK)
            made = steps() - count
        self.rule = PaceRule(made / max(_LOOK, clock() - begun))
        self._worked_since = self._window_since = clock()
        self._window_count = steps()

    def __call__(self) -> None:
        now = self._clock()
        rest = self.rule.rest(now - self._worked_since)
        if rest:
            self._rest(rest)
        now = self._clock()
        if now - self._window_since >= _WINDOW:
            count = self._steps()
            self.rule.saw(now - self._window_since, count - self._window_count)
            self._window_since, self._window_count = now, count
        self._worked_since = now

    def _rest(self, seconds: float) -> None:
        """Rest, in short pieces: whoever waits for the save may not train any more."""
        count, quiet = self._steps(), 0.0
        while seconds > 0:
            piece = min(seconds, _WINDOW)
            self._wait(piece)
            self._check()
            seconds -= piece
            before, count = count, self._steps()
            quiet = 0.0 if count > before else quiet + piece
            if quiet >= self.rule.patience:
                self.rule.stop_resting()
                return
