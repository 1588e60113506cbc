"""Records and votes as messages; what cannot be is refused here."""

from __future__ import annotations

import re

from headrace.distributed.cluster.cluster_spec import split_address
from headrace.distributed.membership.record import GONE, MOST_TASKS, ClusterRecord
from headrace.distributed.membership.voting import NO_BALLOT, NOTHING, Accepted, Ballot, Vote
from headrace.distributed.protocol import control_pb2 as pb
from headrace.errors import InvalidArgumentError

__all__ = [
    "accepted_of",
    "accepted_to_message",
    "record_of",
    "record_to_message",
    "vote_of",
    "vote_to_message",
]

_TASK = re.compile(r"/job:[A-Za-z_][A-Za-z0-9_.-]*/replica:0/task:[0-9]{1,7}")
_MOST_BALLOTS = 1 << 48
#: Epochs grow by one: with a higher one nobody could change the record any more.
_MOST_EPOCHS = 1 << 48


def record_to_message(record: ClusterRecord) -> pb.RecordDef:
    """A record as a message."""
    return pb.RecordDef(
        epoch=record.epoch,
        voters=record.voters,
        tasks=record.tasks,
        wanted=record.wanted,
        moved=record.moved,
        is_sharing=record.is_sharing,
    )


def record_of(message: pb.RecordDef) -> ClusterRecord:
    """The record of a message.

    Raises:
        InvalidArgumentError: if a record cannot be so.
    """
    if message.epoch < 0 or any(count < 0 for count in message.wanted.values()):
        raise _makes_no_sense("numbers below 0")
    for job, count in message.wanted.items():
        if count > MOST_TASKS:
            raise _makes_no_sense(f"{count} tasks of the job {job!r}, more than {MOST_TASKS},")
    if message.epoch >= _MOST_EPOCHS:
        raise _makes_no_sense(f"the epoch {message.epoch}")
    for task in (*message.voters, *message.tasks, *message.moved.values()):
        if not _TASK.fullmatch(task):
            raise _makes_no_sense(f"{task!r}, which is no task")
    for address in message.tasks.values():
        try:
            if address != GONE:
                split_address(address)
        except ValueError:
            raise _makes_no_sense(f"the address {address!r}") from None
    return ClusterRecord(
        message.epoch,
        message.voters,
        message.tasks,
        message.wanted,
        message.moved,
        message.is_sharing,
    )


def _makes_no_sense(what: str) -> InvalidArgumentError:
    return InvalidArgumentError(None, None, f"A record of the cluster with {what} makes no sense.")


def accepted_of(message: pb.AcceptedDef) -> Accepted:
    """The record of a message and its ballot, or a ballot alone; `NOTHING` without either.

    Raises:
        InvalidArgumentError: if a record cannot be so, or nobody could have a higher ballot.
    """
    ballot = _ballot_of(message.ballot)
    if ballot == NO_BALLOT:
        return NOTHING
    record = record_of(message.record)
    if record.epoch and not record.voters:  # nobody could change it any more
        raise _makes_no_sense(f"the epoch {record.epoch} and no task that votes")
    return Accepted(ballot, record)


def accepted_to_message(accepted: Accepted) -> pb.AcceptedDef:
    """A record and its ballot as a message."""
    record = record_to_message(accepted.record)
    return pb.AcceptedDef(ballot=_ballot_to_message(accepted.ballot), record=record)


def vote_of(message: pb.MembersResponse) -> Vote:
    """The vote of a message.

    Raises:
        InvalidArgumentError: as `accepted_of`.
    """
    highest, accepted = _ballot_of(message.highest), accepted_of(message.accepted)
    return Vote(message.agrees, message.incarnation, highest, accepted)


def vote_to_message(vote: Vote) -> pb.MembersResponse:
    """A vote as a message."""
    return pb.MembersResponse(
        agrees=vote.agrees,
        incarnation=vote.incarnation,
        highest=_ballot_to_message(vote.highest),
        accepted=accepted_to_message(vote.accepted),
    )


def _ballot_of(message: pb.BallotDef) -> Ballot:
    if not 0 <= message.number < _MOST_BALLOTS:
        text = f"A ballot with the number {message.number} makes no sense."
        raise InvalidArgumentError(None, None, text)
    return message.number, message.task, message.incarnation


def _ballot_to_message(ballot: Ballot) -> pb.BallotDef:
    return pb.BallotDef(number=ballot[0], task=ballot[1], incarnation=ballot[2])
