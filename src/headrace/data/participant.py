"""How a worker takes part in a dispenser: what it reads, and what its training has seen of that."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from headrace import logging
from headrace.errors import CancelledError, OpError, UnavailableError
from headrace.graph.proto import RunOptions
from headrace.ops.io.input_dispenser import ALL_DONE, NONE_NOW

#: Requests wait as long as the session lives, whatever limit its steps have.
_NO_LIMIT = RunOptions(timeout_in_ms=2**31 - 1)
#: How long to try to say that a participant leaves; a lost session says it as well. Milliseconds.
_LEAVING = RunOptions(timeout_in_ms=1000)
#: Who cannot reach the dispenser tries again so often; seconds.
_AGAIN = 1.0


@dataclass
class _Reading:
    """A range that is being read; numbers of elements.

    Attributes:
        made: how many there are; None until it was read to its end.
        passed: how many have come through the user's transformation; seen: how many steps took.
    """

    part: Participant
    deal: int
    made: int | None = None
    passed: int = 0
    seen: int = 0


class Ledger:
    """How far each range that this process reads has come, by its ticket. Threads may share it.

    A ticket goes with each element, from where it is read to the step that takes it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._numbers = itertools.count()
        self._readings: dict[int, _Reading] = {}
        self._taken: list[int] = []

    def begin(self, part: Participant, deal: int) -> int:
        """A ticket for a deal that a participant has got."""
        with self._lock:
            ticket = next(self._numbers)
            self._readings[ticket] = _Reading(part, deal)
            return ticket

    def forget(self, part: Participant) -> None:
        """What a participant has read does not count any more: others get it."""
        with self._lock:
            self._readings = {t: r for t, r in self._readings.items() if r.part is not part}

    def made(self, ticket: int, count: int) -> None:
        """A range was read to its end, and has so many elements."""
        with self._lock:
            reading = self._readings.get(ticket)
            if reading is None:
                return
            reading.made = count
            finished = self._finished([ticket])
        _tell(finished)

    def passed(self, tickets: Iterable[int]) -> None:
        """Elements have come through the transformation."""
        with self._lock:
            for ticket in tickets:
                if ticket in self._readings:
                    self._readings[ticket].passed += 1

    def flushed(self, part: Participant) -> None:
        """The transformation has given all that it ever will of what was read: it may drop some."""
        with self._lock:
            ours = [t for t, r in self._readings.items() if r.part is part]
            for ticket in ours:
                self._readings[ticket].made = self._readings[ticket].passed
            finished = self._finished(ours)
        _tell(finished)

    def taken(self, tickets: Iterable[int]) -> None:
        """A step takes elements."""
        with self._lock:
            self._taken.extend(tickets)

    def stepped(self) -> None:
        """The step has ended."""
        if not self._taken:
            return
        with self._lock:
            tickets, self._taken = self._taken, []
            for ticket in tickets:
                if ticket in self._readings:
                    self._readings[ticket].seen += 1
            finished = self._finished(tickets)
        _tell(finished)

    def _finished(self, tickets: Iterable[int]) -> list[_Reading]:
        found = []
        for ticket in dict.fromkeys(tickets):
            reading = self._readings.get(ticket)
            if reading is not None and reading.made is not None and reading.seen >= reading.made:
                found.append(self._readings.pop(ticket))
        return found


def _tell(finished: list[_Reading]) -> None:
    for reading in finished:
        reading.part.done(reading.deal)


class Participant:
    """What one session takes part in a dispenser with: a thread, whose step waits until the end.

    Args:
        requests: the operations that ask the dispenser; ``value``: the placeholder of DONE.
        ledger: of the process.
        waits: whether to wait for ranges that others have and may give back.
    """

    def __init__(
        self, requests: dict[str, Any], value: Any, ledger: Ledger, session: Any, waits: bool
    ) -> None:
        self._requests, self._value = requests, value
        self._ledger, self._session = ledger, session
        self._kinds = ("TAKE", "TAKE_MORE") if waits else ("TAKE_LEFT", "TAKE_LEFT")
        self._coord: Any = None
        self._thread: threading.Thread | None = None
        self._is_over = False

    def start(self, coord: Any) -> None:
        """Take part; raises what prevents it."""
        self._coord = coord
        self._thread = threading.Thread(target=self._stay, name="input_dispenser", daemon=True)
        self._thread.start()
        try:
            self._ask("JOINED")
        except (CancelledError, RuntimeError):
            coord.raise_requested_exception()  # why it cannot stay
            raise

    def stop(self) -> None:
        """The session is gone."""
        self._is_over = True
        self._ledger.forget(self)

    def leave(self) -> None:
        """Give back what is not done."""
        self.stop()
        try:
            self._session.run(self._requests["LEAVE"], {self._value: 0}, options=_LEAVING)
        except (OpError, RuntimeError) as error:
            # A session that is broken has left already.
            logging.debug("The input dispenser could not be left: %s", error)
            return
        if self._thread is not None:
            self._thread.join()

    def take(self, more: bool) -> tuple[int, int] | None:
        """The ticket of the next range and its deal; None at the end.

        Args:
            more: whether None may come earlier, if this participant has others to finish first.
        """
        while True:
            try:
                deal = self._ask(self._kinds[more])
            except CancelledError:
                if self._is_over:
                    raise
                self._ask("JOINED")  # after the state was restored, or a connection was lost
                continue
            if deal == ALL_DONE or (deal == NONE_NOW and more):
                return None
            if deal != NONE_NOW:
                return self._ledger.begin(self, deal), deal

    def done(self, deal: int) -> None:
        """A range is finished."""
        if not self._is_over and not self._ask("DONE", deal):
            logging.debug("Another participant has got deal %d meanwhile.", deal)

    def _ask(self, request: str, value: int = 0) -> int:
        run = self._session.run
        return int(run(self._requests[request], {self._value: value}, options=_NO_LIMIT))

    def _stay(self) -> None:
        """Be there until the session ends; again after the dispenser went to another state."""
        while not self._is_over:
            try:
                self._ask("STAY")
            except UnavailableError:
                if self._coord.wait_for_stop(_AGAIN):
                    return
            except (OpError, RuntimeError) as error:
                self._fail(error)
                return
            finally:
                self._ledger.forget(self)  # others get what it had

    def _fail(self, error: BaseException) -> None:
        """Stop the training loop, which may wait for input that does not come any more."""
        if self._is_over or self._session._closed:
            return
        self._is_over = True
        self._coord.request_stop(error)
        self._session.close()
