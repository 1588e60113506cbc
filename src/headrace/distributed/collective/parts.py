"""What a group is made of, and what its state machine gives out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from headrace.distributed.collective.exchange import Exchange
from headrace.distributed.protocol import step_pb2 as pb
from headrace.errors import InvalidArgumentError, OpError, exception_type_from_error_code
from headrace.ops.collective.calls import Array, Call

__all__ = [
    "ALL",
    "OF_MEMBERS",
    "Action",
    "Ended",
    "EpochChange",
    "Formed",
    "GroupMember",
    "LifeProbe",
    "Run",
    "Send",
    "Work",
    "check_form",
    "handovers",
    "member_of",
    "order_of",
    "own_error",
    "packed",
    "refusal",
]

#: An operation, and which of its runs.
Run = tuple[int, int]


class GroupMember(NamedTuple):
    """A task that takes part, at one of its starts, with its devices that do.

    ``process`` is its number in JAX's multi-process runtime, from 1 on; 0 if it is in none.
    """

    task: str
    incarnation: int
    devices: tuple[str, ...]
    process: int = 0

    def has(self, other: GroupMember) -> bool:
        """Whether this is all that the other one is."""
        return self[:2] == other[:2] and set(self.devices) >= set(other.devices)


@dataclass(eq=False)
class Work:
    """A run of an operation, as this member has asked for it.

    Attributes:
        result, error: one of them, once it has ended.
        ended: whether it has.
        gets_result: from a member where it has ended, so it is not run.
    """

    call: Call
    sequence: int
    since: float
    exchange: Exchange | None = None
    result: Array | None = None
    error: OpError | None = None
    ended: bool = False
    gets_result: bool = False

    @property
    def run(self) -> Run:
        return self.call.instance_key, self.sequence


class Send(NamedTuple):
    """Send this to a member."""

    task: str
    message: Any
    value: Any = None


class LifeProbe(NamedTuple):
    """Find out whether a task can be reached; then call `CollectiveGroup.verdict`."""

    group: int
    task: str
    incarnation: int


class Ended(NamedTuple):
    """A run of an operation has its result or error."""

    work: Work


class Formed(NamedTuple):
    """It is known (anew) who is in the group, or it was refused."""

    group: int


@dataclass
class EpochChange:
    """What a coordinator knows of the epoch to come."""

    epoch: int
    members: list[GroupMember]
    states: dict[str, Any] = field(default_factory=dict)
    ticks: int = 0


Action = Send | LifeProbe | Ended | Formed


def handovers(states: Mapping[str, Any]) -> list[Any]:
    """What has ended in some members and not in others: who has it, and who needs it."""
    ended: dict[int, dict[str, int]] = {}
    for task, state in states.items():
        for count in state.counts:
            ended.setdefault(count.instance, {})[task] = count.sequence
    found = []
    for instance, by_task in ended.items():
        most = max(by_task.values())
        behind = sorted(task for task in states if by_task.get(task, 0) < most)
        if behind:
            holder = min(t for t, n in by_task.items() if n == most)
            count = pb.CollectiveCount(instance=instance, sequence=most, holder=holder)
            count.behind.extend(behind)
            found.append(count)
    return found


#: In place of a run: all operations.
ALL = -1
#: Messages that only members of an epoch send.
OF_MEMBERS = (pb.PIECE, pb.RESULT, pb.PREPARE, pb.LOST, pb.STATE, pb.COMMIT)
#: Codes of errors that a refusal may have; see `headrace.errors`.
_CODES = range(1, 17)
_OF_ONE = (pb.JOIN, pb.LEFT)
_WITH_MEMBERS = (*_OF_ONE, pb.FORMED, pb.COMMIT, pb.ANEW)


def check_form(sender: str, message: Any) -> None:
    """Whether a message can be what it says it is; that its sender may say so is not looked at.

    Raises:
        InvalidArgumentError: if not.
    """
    kind, members = message.kind, message.members
    wrong = ""
    if kind in _WITH_MEMBERS and not members:
        wrong = "without members"
    elif kind in _WITH_MEMBERS and not all(m.task and m.devices for m in members):
        wrong = "of members without names or devices"
    elif kind in _OF_ONE and (len(members) > 1 or members[0].task != sender):
        wrong = "of another task than its own"
    elif kind == pb.JOIN and message.group_size < 1:
        wrong = f"for a group of {message.group_size}"
    elif kind == pb.REFUSED and message.piece not in _CODES:
        wrong = f"of an error with the code {message.piece}"
    if wrong:
        raise InvalidArgumentError(
            None,
            None,
            f"A message of {sender} about group {message.group} makes no sense: it is of kind "
            f"{kind}, {wrong}.",
        )


def member_of(message: Any) -> GroupMember:
    return GroupMember(message.task, message.incarnation, tuple(message.devices), message.process)


@lru_cache(maxsize=4096)
def packed(member: GroupMember) -> Any:
    """A member, to be copied into a message. All of a group are told with each loss."""
    return pb.CollectiveMember(
        task=member.task,
        incarnation=member.incarnation,
        devices=member.devices,
        process=member.process,
    )


def refusal(group: int, error: OpError) -> Any:
    """A task has no place in a group."""
    return pb.Collective(
        kind=pb.REFUSED, group=group, sequence=ALL, text=error.message, piece=error.error_code
    )


def order_of(task: str) -> tuple[str, int]:
    """By job, then by number: "/job:worker/replica:0/task:10" is behind task 9."""
    name, _, number = task.rpartition(":")
    return (name, int(number)) if number.isdigit() else (task, 0)


def own_error(error: OpError) -> OpError:
    """An error of its own for each step that raises it: steps add to it where it happened."""
    made: OpError = exception_type_from_error_code(error.error_code)(None, None, error.message)
    return made
