"""What the record of the cluster is to moves; who serves a copy asks it how they ended."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from headrace.distributed.standby.unsettled import UNSETTLED
from headrace.errors import OpError
from headrace.executor.resources import ResourceHandle
from headrace.step.moved import key_of

__all__ = ["MoveRecord", "settle"]

_log = logging.getLogger("headrace.distributed")

#: Between two attempts, in seconds.
_PAUSE = 0.5


class MoveRecord(Protocol):
    """What the record of a cluster is to a move."""

    def begin(self) -> int:
        """The epoch for which moves are written down; there is a record from then on."""

    def commit(self, keys: Sequence[str], task: str, epoch: int) -> None:
        """Write down that a task has variables.

        Raises:
            AbortedError: if it has another epoch by now, without that: it was not written down,
                for certain.
            UnavailableError, DeadlineExceededError: if it is not certain whether it was.
        """

    def settle(self) -> None:
        """Learn the record, and see to it that no earlier `commit` is written down after that.

        Raises:
            UnavailableError: if too few of the others answer.
        """


def settle(
    values: dict[ResourceHandle, Any],
    task: str,
    record: MoveRecord,
    where: Callable[[str], str],
    wait: Callable[[float], bool],
) -> None:
    """Leave out what is elsewhere of the variables with which a task begins, since another process
    has kept them. Waits until that is certain.

    Args:
        values: are changed.
        where: the task that the record names for a variable; "" for none.
        wait: waits for so many seconds; true if nobody wants that any more.
    """
    moves = values.pop(UNSETTLED, None)
    if moves is None or moves.is_empty:
        return
    while True:
        try:
            record.settle()
            break
        except OpError as error:
            text = "%s waits to know where variables are that were about to move: %s"
            _log.warning(text, task, error.message)
        if wait(_PAUSE):
            return
    for handle in moves.giving | moves.arriving:
        there = where(key_of(handle))
        is_here = there == task or (not there and handle in moves.giving)
        if not is_here:
            values.pop(handle, None)
        text = "%s: %s is %s, as the record says after a failure"
        _log.info(text, task, key_of(handle), "here" if is_here else "elsewhere")
