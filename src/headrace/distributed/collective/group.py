"""A group of tasks that run collective operations together: a state machine, no I/O.

    (unknown) ──all are there──> ACTIVE ──a member or messages are lost──> CHANGING ──┐
                                   ▲                                                  │
                                   └──────────all who are left have answered──────────┘

The *leader*, the first task of the cluster, collects who takes part. From then on the group has
epochs. When a member is lost, or messages to one that lives, the *coordinator* (the first member
that is left) asks all what has ended, which stops everything of the epoch, and begins the next. An
operation that has ended anywhere keeps its result: who is behind gets it from there. Every other
one is run again, by those who are left. Why that suffices: nobody ends run n + 1 of an operation
before all have ended run n, so the ends of two members differ by one at most; and each keeps its
last result.

In: what this member asks for, messages, losses, time. Out: messages, questions whether a task is
alive, and ends of operations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace.distributed.collective.exchange import Exchange, Out, checked
from headrace.distributed.collective.generations import parts_of
from headrace.distributed.collective.parts import (
    ALL,
    Action,
    Ended,
    EpochChange,
    Formed,
    GroupMember,
    LifeProbe,
    Run,
    Send,
    Work,
    check_form,
    handovers,
    member_of,
    order_of,
    packed,
    refusal,
)
from headrace.distributed.collective.refusals import cannot_go_on, given_up, too_late
from headrace.distributed.protocol import step_pb2 as pb
from headrace.errors import (
    AbortedError,
    DataLossError,
    InvalidArgumentError,
    OpError,
    exception_type_from_error_code,
)
from headrace.ops.collective.calls import Array, Call

__all__ = ["CollectiveGroup"]

#: A coordinator that has waited for so many ticks asks again.
_PATIENCE = 8


class CollectiveGroup:
    """One group, as one task sees it. Not thread-safe: who calls it holds a lock.

    Args:
        key, size: of the group; ``size`` counts devices.
        me: this task and its start.
        leader: the task that collects the members.
        process: of this task in JAX's multi-process runtime; see `GroupMember`.
    """

    def __init__(
        self, key: int, size: int, me: tuple[str, int], leader: str, process: int = 0
    ) -> None:
        self.key, self.size, self.leader = key, size, leader
        #: For messages: the key that the program has given it.
        self.name = str(parts_of(key)[0])
        self._me, self._incarnation = me
        self._process = process
        #: Whether others may join, and this task again if it was left out.
        self.grows = False
        #: Whether all members are processes of one JAX runtime.
        self.in_one_runtime = False
        self._members: list[GroupMember] = []
        #: Who they are, and their places: looked at for each message.
        self._ranks: dict[str, int] = {}
        self.epoch = 0
        #: The newest epoch that was prepared, and by whom.
        self._promised = 0
        self._promised_to = ""
        #: Who was a member once.
        self._gone: list[str] = []
        #: For the leader: who has joined.
        self._joined: dict[str, GroupMember] = {}
        self._devices: tuple[str, ...] = ()
        self.refused: OpError | None = None
        self._dead: set[tuple[str, int]] = set()
        self._change: EpochChange | None = None
        self._begun: dict[int, int] = {}
        self._ended: dict[int, int] = {}
        #: The last result of each operation.
        self._kept: dict[int, tuple[int, Array]] = {}
        self._open: dict[Run, Work] = {}
        #: Pieces that came before their operation or epoch began here, and refusals.
        self._early: dict[Run, list[tuple[str, Any, Any]]] = {}
        self._later: list[tuple[str, Any, Any]] = []
        self._not_to_be: dict[Run, OpError] = {}

    # -- members ----------------------------------------------------------------------------------

    @property
    def members(self) -> list[GroupMember]:
        """Those of this epoch, in their order."""
        return self._members

    @members.setter
    def members(self, members: list[GroupMember]) -> None:
        self._members = members
        self._ranks = {m.task: i for i, m in enumerate(members)}

    @property
    def is_active(self) -> bool:
        """Whether an epoch is under way."""
        return self.epoch > 0 and self._promised == self.epoch

    @property
    def takes_part(self) -> bool:
        """Whether this task wants to be a member, or is one."""
        return bool(self._devices)

    @property
    def is_formed(self) -> bool:
        """Whether it is known who takes part, or that this task does not."""
        return self.epoch > 0 or self.refused is not None

    @property
    def devices(self) -> int:
        """How many devices the members have together."""
        return sum(len(m.devices) for m in self.members)

    @property
    def lost_members(self) -> list[str]:
        """Who was a member once."""
        return self._gone

    @property
    def tasks(self) -> list[str]:
        """The members, in their order."""
        return list(self._ranks)

    @property
    def open(self) -> list[Work]:
        """What has not ended."""
        return list(self._open.values())

    @property
    def awaited(self) -> str:
        """Who is missing before the group is there, as far as is known here; or nothing."""
        if self.is_formed or not self._devices:
            return ""
        if self.leader != self._me:
            return f"{self.leader} waits for all of its {self.size} members"
        there = sum(len(m.devices) for m in self._joined.values())
        return f"{there} of {self.size} members are here: {', '.join(sorted(self._joined))}"

    def join(self, device: str) -> list[Action]:
        """A device of this task takes part."""
        if device in self._devices or self.epoch:
            return []
        self._devices = tuple(sorted((*self._devices, device)))
        actions = self.announce()
        if len(self._devices) == self.size and not self.epoch:
            # All are of this task: nobody else is needed.
            me = GroupMember(self._me, self._incarnation, self._devices, self._process)
            actions += self._formed_came(self._message(pb.FORMED, members=[packed(me)]))
        return actions

    def announce(self) -> list[Action]:
        """Say (again) that this task is there; until the group is formed, now and then."""
        message = self.said_anew()
        if message is None:
            return []
        if self.leader == self._me:
            return self._join_came(self._me, message)
        return [Send(self.leader, message)]

    def said_anew(self) -> Any:
        """What this task says of itself, for those who have formed the group without it; None if
        there is nothing to say."""
        if self.is_formed or not self._devices:
            return None
        me = GroupMember(self._me, self._incarnation, self._devices, self._process)
        message = self._message(pb.JOIN, members=[packed(me)])
        message.group_size = self.size
        return message

    def _said_left(self) -> list[Action]:
        """What the leader is to know if this task goes on elsewhere: it must not wait for it."""
        message = self.said_anew()
        if message is None or self.leader == self._me:
            return []
        message.kind = pb.LEFT
        return [Send(self.leader, message)]

    def _left_came(self, message: Any) -> list[Action]:
        member = member_of(message.members[0])
        if not self.epoch and self._joined.get(member.task, ())[:2] == member[:2]:
            del self._joined[member.task]
        return []

    def _message(self, kind: Any, **fields: Any) -> Any:
        return pb.Collective(kind=kind, group=self.key, epoch=self.epoch, **fields)

    def _join_came(self, sender: str, message: Any) -> list[Action]:
        member = member_of(message.members[0])
        if self.size and message.group_size != self.size:
            return self._refuse(
                sender,
                InvalidArgumentError(
                    None,
                    None,
                    f"Group {self.name} has {self.size} members for {self.leader}, but "
                    f"{message.group_size} for {sender}: say the same group_size everywhere.",
                ),
            )
        self.size = message.group_size
        if self.epoch:
            known = {m.task: m for m in self.members}.get(member.task)
            if known is not None and known.has(member):
                return [Send(sender, self._formed())]
            return self._refuse(sender, too_late(self.name, member.task, self.tasks))
        earlier = self._joined.get(member.task)
        if earlier is None or not earlier.has(member):  # what it said may come out of order
            self._joined[member.task] = member
        there = sum(len(m.devices) for m in self._joined.values())
        if there < self.size:
            return []
        members = sorted(self._joined.values(), key=lambda m: order_of(m.task))
        if there > self.size:
            listed = ", ".join(f"{m.task} with {len(m.devices)}" for m in members)
            error = InvalidArgumentError(
                None, None, f"Group {self.name} has {self.size} members, but there are {listed}."
            )
            return [a for m in members for a in self._refuse(m.task, error)]
        self.members = members
        formed = self._formed()
        told: list[Action] = [Send(m.task, formed) for m in members if m.task != self._me]
        if self._me in self._ranks:
            return told + self._formed_came(formed)
        self.epoch = self._promised = 1  # the leader need not be a member
        return told

    def _formed(self) -> Any:
        return self._message(pb.FORMED, members=[packed(m) for m in self.members])

    def _refuse(self, task: str, error: OpError) -> list[Action]:
        if task == self._me:
            return self._refused_all(error)
        return [Send(task, refusal(self.key, error))]

    def _refused_all(self, error: OpError) -> list[Action]:
        self.refused = error
        return [Formed(self.key)] + [a for work in self.open for a in self._fail(work, error)]

    def _formed_came(self, message: Any) -> list[Action]:
        if self.epoch:
            return []
        members = [member_of(m) for m in message.members]
        if self._me not in [m.task for m in members]:
            return []
        self.members = members
        processes = [m.process for m in members]
        self.in_one_runtime = all(processes) and len(set(processes)) == len(processes)
        # The next epoch may have been prepared already: this came late.
        self.epoch, self._promised = 1, max(1, self._promised)
        lost = [m for m in self.members if (m.task, m.incarnation) in self._dead]
        actions: list[Action] = [Formed(self.key), *(self._start() if self.is_active else [])]
        for member in lost:
            actions += self.verdict(member.task, member.incarnation, False)
        return actions

    # -- operations -------------------------------------------------------------------------------

    def begin(self, call: Call, now: float) -> tuple[Work, list[Action]]:
        """This member wants the next run of an operation."""
        sequence = self._begun.get(call.instance_key, 0) + 1
        self._begun[call.instance_key] = sequence
        work = Work(call, sequence, now)
        self._open[work.run] = work
        error = self.refused or self._not_to_be.pop(work.run, None)
        if error is None and self.epoch and self._me not in self._ranks:
            error = too_late(self.name, self._me, self.tasks)
        if error is None and self._gone and call.kind == "scatter":
            error = cannot_go_on(self.name, work.call.name, self._gone)
        if error is not None:
            return work, self._fail(work, error)
        return work, self._run(work) if self.is_active else []

    def _start(self) -> list[Action]:
        """An epoch begins: run all that is open, take all that came early."""
        actions: list[Action] = []
        for work in self.open:
            if not (work.ended or work.gets_result):
                actions += self._run(work)
        later, self._later = self._later, []
        for sender, message, value in later:
            actions += self.received(sender, message, value)
        return actions

    def _run(self, work: Work) -> list[Action]:
        rank = self._ranks[self._me]
        work.exchange = Exchange(work.call, rank, len(self.members), self.devices)
        try:
            actions = self._sent(work, work.exchange.begin())
        except OpError as error:
            return self._refuse_run(work, error)
        for sender, message, value in self._early.pop(work.run, ()):
            if not work.ended:
                actions += self._piece_for(work, sender, message, value)
        return actions

    def _sent(self, work: Work, outs: Sequence[Out]) -> list[Action]:
        actions: list[Action] = []
        for out in outs:
            message = self._message(
                pb.PIECE,
                instance=work.call.instance_key,
                sequence=work.sequence,
                piece=out.piece,
                root=out.root,
                up=out.up,
                text=work.call.describe(),
            )
            actions.append(Send(self.members[out.to].task, message, out.data))
        exchange = work.exchange
        if exchange is not None and exchange.is_done and not work.ended:
            actions += self._end(work, exchange.result)
        return actions

    def _end(self, work: Work, result: Array) -> list[Action]:
        work.result = result
        if len(self.members) > 1:
            self._kept[work.call.instance_key] = (work.sequence, result)
        return self._over(work)

    @property
    def has_begun(self) -> bool:
        """Whether this member has run any operation."""
        return bool(self._begun)

    @property
    def runs(self) -> int:
        """How many runs of operations have ended."""
        return sum(self._ended.values())

    @property
    def was_left_out(self) -> bool:
        """Whether the others have gone on without this member."""
        return bool(self.epoch) and self.refused is not None

    def given_up(self, error: OpError) -> list[Action]:
        """The group ends for this member, with all that is open."""
        return self._said_left() + self._refused_all(error)

    def _fail(self, work: Work, error: OpError) -> list[Action]:
        work.error = error
        return self._over(work)

    def _over(self, work: Work) -> list[Action]:
        work.ended = True
        work.exchange = None
        instance, sequence = work.run
        self._ended[instance] = max(sequence, self._ended.get(instance, 0))
        self._open.pop(work.run, None)
        self._early.pop(work.run, None)
        return [Ended(work)]

    # -- messages ---------------------------------------------------------------------------------

    def received(self, sender: str, message: Any, value: Any = None) -> list[Action]:
        """A message of another member has come.

        Raises:
            InvalidArgumentError: if it makes no sense.
        """
        check_form(sender, message)
        kind = message.kind
        if kind == pb.JOIN:
            return self._join_came(sender, message)
        if kind == pb.LEFT:
            return self._left_came(message)
        if kind == pb.FORMED:
            return self._formed_came(message) if sender == self.leader else []
        if kind == pb.REFUSED:
            known = sender == self.leader or sender in self._ranks or sender in self._gone
            return self._refusal_came(message) if known else []
        if self.epoch and sender not in self._ranks:
            # Who was left out may be at later epochs already, which it has begun in vain.
            is_late = message.epoch < self.epoch or sender in self._gone
            error = given_up(self.name, sender, self.grows)
            return self._refuse(sender, error) if is_late else []
        if kind == pb.PREPARE:
            return self._prepare_came(sender, message)
        if kind == pb.LOST:
            return self._loss_told(message)
        if kind == pb.STATE:
            return self._state_came(sender, message)
        if kind == pb.COMMIT:
            return self._commit_came(sender, message)
        if message.epoch > self.epoch:
            self._later.append((sender, message, value))
            return []
        if message.epoch < self.epoch or not self.is_active:
            return []
        return self._value_came(sender, message, value)

    def _value_came(self, sender: str, message: Any, value: Any) -> list[Action]:
        run = message.instance, message.sequence
        work = self._open.get(run)
        if message.kind == pb.RESULT:
            return [] if work is None else self._end(work, np.array(checked(work.call, value)))
        if work is None:
            if message.sequence > self._ended.get(message.instance, 0):
                self._early.setdefault(run, []).append((sender, message, value))
            return []
        return self._piece_for(work, sender, message, value)

    def _piece_for(self, work: Work, sender: str, message: Any, value: Any) -> list[Action]:
        own = work.call.describe()
        if message.text != own:
            return self._differs(work, sender, message.text, own)
        if work.exchange is None:
            return []
        rank = self._ranks[sender]
        try:
            outs = work.exchange.came(rank, message.piece, message.root, message.up, value)
        except DataLossError:
            raise  # not the operation is at fault, but the message, or its link
        except OpError as error:
            return self._refuse_run(work, error)
        return self._sent(work, outs)

    def _differs(self, work: Work, sender: str, theirs: str, own: str) -> list[Action]:
        text = (
            f"The members of collective instance {work.call.instance_key} of group {self.name} "
            f"differ: '{work.call.name}' on {self._me} is a {own}; {sender} has a {theirs}. Build "
            "the same graph in all of them, or give different operations different keys."
        )
        return self._refuse_run(work, InvalidArgumentError(None, None, text))

    def _refuse_run(self, work: Work, error: OpError) -> list[Action]:
        """An operation cannot be: all members are told."""
        message = self._message(
            pb.REFUSED,
            instance=work.call.instance_key,
            sequence=work.sequence,
            text=error.message,
            piece=error.error_code,
        )
        told: list[Action] = [Send(m.task, message) for m in self.members if m.task != self._me]
        return told + self._fail(work, error)

    def _refusal_came(self, message: Any) -> list[Action]:
        error = exception_type_from_error_code(message.piece)(None, None, message.text)
        if message.sequence == ALL:
            was_member = self.epoch or not isinstance(error, AbortedError)
            return self._refused_all(error) if was_member else []  # else its last start was
        run = message.instance, message.sequence
        work = self._open.get(run)
        if work is not None:
            return self._fail(work, error)
        if message.sequence > self._ended.get(message.instance, 0):
            self._not_to_be[run] = error
        return []

    # -- losses -----------------------------------------------------------------------------------

    def tick(self) -> list[Action]:
        """A moment has passed."""
        change = self._change
        if change is None:
            return self.announce()
        change.ticks += 1
        return self._prepare() if change.ticks > _PATIENCE else []

    def lost(self, task: str) -> list[Action]:
        """A link to a task is lost, and messages with it."""
        if not self.epoch and task != self._me:
            # It may have been lost in saying that it goes on elsewhere; else it comes again.
            self._joined.pop(task, None)
        found = [m for m in self.members if m.task == task]
        return [LifeProbe(self.key, m.task, m.incarnation) for m in found if task != self._me]

    def verdict(self, task: str, incarnation: int, alive: bool) -> list[Action]:
        """Whether a member whose link was lost can be reached."""
        if not alive:
            self._dead.add((task, incarnation))
        if not self.epoch or not any(m[:2] == (task, incarnation) for m in self.members):
            return []
        first = self._living()[0]
        if first.task == self._me:
            return self._prepare()
        lost = [] if alive else [pb.CollectiveMember(task=task, incarnation=incarnation)]
        return [Send(first.task, self._message(pb.LOST, members=lost))]

    def _living(self) -> list[GroupMember]:
        return [m for m in self.members if (m.task, m.incarnation) not in self._dead]

    def _loss_told(self, message: Any) -> list[Action]:
        if message.epoch < self.epoch or not self.epoch:
            return []
        told = [(m.task, m.incarnation) for m in message.members]
        unknown = [t for t in told if t not in self._dead]
        if unknown:
            # Heard is not seen: the link may be at fault, not the member.
            return [LifeProbe(self.key, *t) for t in unknown]
        if self._living()[0].task != self._me:
            return []
        return self._prepare()

    def _prepare(self) -> list[Action]:
        """Ask all who are left what has ended; nothing of this epoch goes on meanwhile."""
        living = self._living()
        self._change = EpochChange(max(self._promised, self.epoch) + 1, living)
        message = self._message(pb.PREPARE, members=[packed(m) for m in living])
        message.epoch = self._change.epoch
        others: list[Action] = [Send(m.task, message) for m in living if m.task != self._me]
        return others + self._prepare_came(self._me, message)

    def _prepare_came(self, sender: str, message: Any) -> list[Action]:
        if message.epoch <= self._promised:
            return []
        self._promised, self._promised_to = message.epoch, sender
        if sender != self._me:
            self._change = None
        counts = [pb.CollectiveCount(instance=i, sequence=n) for i, n in self._ended.items()]
        state = self._message(pb.STATE, counts=counts)
        state.epoch = message.epoch
        if sender == self._me:
            return self._state_came(self._me, state)
        return [Send(sender, state)]

    def _state_came(self, sender: str, message: Any) -> list[Action]:
        change = self._change
        if change is None or message.epoch != change.epoch:
            return []
        change.states[sender] = message
        if set(change.states) < {m.task for m in change.members}:
            return []
        self._change = None
        commit = self._message(pb.COMMIT, members=[packed(m) for m in change.members])
        commit.epoch = change.epoch
        commit.counts.extend(handovers(change.states))
        others: list[Action] = [Send(m.task, commit) for m in change.members if m.task != self._me]
        for member in self.members:
            if self.grows and member not in change.members:  # it may live, and wait
                others += self._refuse(member.task, given_up(self.name, member.task, self.grows))
        return others + self._commit_came(self._me, commit)

    def _commit_came(self, sender: str, message: Any) -> list[Action]:
        promised = message.epoch == self._promised and sender == self._promised_to
        if not promised or message.epoch <= self.epoch:
            return []
        before = self.members
        self.epoch, self.members = message.epoch, [member_of(m) for m in message.members]
        gone = [m.task for m in before if m not in self.members]
        self._gone += gone
        self._early = {}
        self._later = [item for item in self._later if item[1].epoch >= self.epoch]
        actions: list[Action] = []
        if gone or not before:  # else the leader was lost before it could tell this member
            actions.append(Formed(self.key))
        handed: set[Run] = set()
        for count in message.counts:
            if self._me in count.behind:
                handed.add((count.instance, count.sequence))
            elif count.holder == self._me:
                actions += self._hand_over(count)
        for work in self.open:
            work.exchange, work.gets_result = None, work.run in handed
            if work.call.kind == "scatter" and (gone or work.gets_result):
                actions += self._fail(work, cannot_go_on(self.name, work.call.name, self._gone))
        return actions + self._start()

    def _hand_over(self, count: Any) -> list[Action]:
        kept = self._kept.get(count.instance)
        if kept is None or kept[0] != count.sequence:
            return []
        return [
            Send(
                task,
                self._message(pb.RESULT, instance=count.instance, sequence=count.sequence),
                kept[1],
            )
            for task in count.behind
        ]
