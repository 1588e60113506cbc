"""Where variables are, as the record of a cluster has it: see `MoveRecord`."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.distributed.membership.record import ClusterRecord, changed
from headrace.distributed.services.members import Members
from headrace.errors import AbortedError

__all__ = ["MovedRecord"]


class MovedRecord:
    """Writes down where variables are; see `moving.settling.MoveRecord`."""

    def __init__(self, members: Members) -> None:
        self._members = members

    def begin(self) -> int:
        """The epoch for which moves are written down; there is a record from then on."""
        if not self._members.epoch:
            self._members.change(lambda record: record if record.epoch else changed(record))
        return self._members.epoch

    def commit(self, keys: Sequence[str], task: str, epoch: int) -> None:
        """Write down that a task has variables."""
        moved = dict.fromkeys(keys, task)

        def is_done(record: ClusterRecord) -> bool:
            return all(record.moved.get(key) == task for key in keys)

        def write(record: ClusterRecord) -> ClusterRecord:
            # One of another epoch is agreed on again, so that it is certain what it says.
            return changed(record, moved=moved) if record.epoch == epoch else record

        record = self._members.change(write)
        if not is_done(record):
            text = f"The cluster has changed while variables moved (epoch {record.epoch})."
            raise AbortedError(None, None, text)

    def settle(self) -> None:
        """Learn the record, and see to it that no earlier `commit` is written down after that."""
        self._members.change(lambda record: changed(record))
