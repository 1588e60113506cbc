"""The groups of a task over their generations: who joins, who is left out, who looks for whom.

A state machine without I/O, as each group is one: steps, messages, losses and time come in, actions
go out. What generations are is said in `generations`.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final

from headrace.distributed.collective.by_xla import process_of_runtime
from headrace.distributed.collective.generations import Generations, parts_of
from headrace.distributed.collective.group import CollectiveGroup
from headrace.distributed.collective.parts import (
    OF_MEMBERS,
    Action,
    GroupMember,
    LifeProbe,
    Send,
    check_form,
    member_of,
    packed,
    refusal,
)
from headrace.distributed.collective.refusals import begun_anew, given_up
from headrace.distributed.protocol import step_pb2 as pb
from headrace.errors import InvalidArgumentError
from headrace.ops.collective.calls import Call

__all__ = ["TaskGroups", "leader_of"]

_log = logging.getLogger("headrace.distributed")

#: Jobs whose tasks do not train.
_OTHER_JOBS: Final = ("ps", "evaluator")
_FIRST_JOBS: Final = ("chief", "master")
#: Who waits for a group asks so many others after so many ticks whether they have formed it.
_SOME: Final = 8
_EVERY_TICKS: Final = 2
#: A group looks for a task that trains without it after so many ticks.
_SEEK_TICKS: Final = 16


def leader_of(tasks: Sequence[str]) -> str:
    """The task that collects the members of groups: the first that trains.

    >>> leader_of(["/job:ps/replica:0/task:0", "/job:worker/replica:0/task:1",
    ...            "/job:worker/replica:0/task:0"])
    '/job:worker/replica:0/task:0'
    """

    def order(task: str) -> tuple[bool, bool, str, int]:
        job = task.split("/")[1].removeprefix("job:")
        number = task.rpartition(":")[2]
        return job in _OTHER_JOBS, job not in _FIRST_JOBS, job, int(number)

    return min(tasks, key=order)


def trains(task: str) -> bool:
    """Whether a task is of a job that trains."""
    return task.split("/")[1].removeprefix("job:") not in _OTHER_JOBS


class TaskGroups:
    """See the module. Not thread-safe: who calls it holds a lock.

    Args:
        me: this task and its start.
        addresses: of all tasks; a view that follows the cluster.

    Attributes:
        first: the tasks that the cluster was started with. Groups that may grow are formed by
            these, if they are enough: so none is formed beside one that runs, as long as one of
            its first members lives.
        groups: by their numbers.
    """

    def __init__(self, me: tuple[str, int], addresses: Mapping[str, str]) -> None:
        self._me, self._start, self._addresses = me[0], me, addresses
        self._leader = leader_of(list(addresses))
        self.first = frozenset(addresses)
        self.groups: dict[int, CollectiveGroup] = {}
        self.generations = Generations()
        #: The keys of groups whose members begin anew with each other: others may join them.
        self._growing: set[int] = set()
        self._ticks = 0
        #: How many runs had ended when others were looked for last, by group.
        self._trained: dict[int, int] = {}
        #: Starts of tasks that could not be reached when that was asked last.
        self._unreached: set[tuple[str, int]] = set()
        #: Since which tick all are gone who could admit this task to a group, by group.
        self._alone_since: dict[int, int] = {}

    # -- steps ------------------------------------------------------------------------------------

    def in_generation(self, call: Call) -> Call:
        """The call as one of the generation of its group that this task takes part in.

        Raises:
            AbortedError: if the others have begun another one.
        """
        if self.generations.wants_more(call.group_key):
            raise begun_anew(call.group_key)
        number = self.generations.number_of(call.group_key)
        if number == call.group_key:
            return call
        devices = sum(len(m.devices) for m in self.generations.members(number))
        return call._replace(group_key=number, group_size=devices)

    def joined(self, call: Call) -> tuple[CollectiveGroup, list[Action]]:
        """The group of a call of this generation, which this task takes part in from now on.

        Raises:
            AbortedError: if the others have begun another generation.
        """
        if self.generations.is_over(call.group_key):
            raise begun_anew(parts_of(call.group_key)[0])
        group = self.group(call.group_key, call.group_size)
        return group, group.join(call.device)

    def running(self, number: int) -> CollectiveGroup:
        """A group that this task takes part in.

        Raises:
            AbortedError: if its members have begun anew meanwhile.
        """
        group = self.groups.get(number)
        if group is None:
            raise begun_anew(parts_of(number)[0])
        return group

    def begin_anew(self, key: int) -> list[Action]:
        """A session of this task was made (anew). Nothing happens where no operation was run."""
        self._growing.add(key)
        group = self.groups.get(self.generations.number_of(key))
        if self.generations.wants_more(key):
            self.generations.follow(key)
            # One may have died before this task took part.
            return [*self._probes(key)]
        if group is not None and group.epoch and (group.has_begun or group.was_left_out):
            return self._next_generation(key, list(group.members))
        return []

    # -- losses and time --------------------------------------------------------------------------

    def lost(self, task: str) -> list[Action]:
        """A link to a task is lost."""
        probes = [a for g in self.groups.values() for a in g.lost(task)]
        return probes + [
            LifeProbe(number, m.task, m.incarnation)
            for number in map(self.generations.number_of, self.generations.keys_of_later())
            for m in self.generations.members(number)
            if m.task == task
        ]

    def verdict(self, probe: LifeProbe, alive: bool) -> list[Action]:
        """Whether a task whose link was lost can be reached."""
        start = probe.task, probe.incarnation
        (self._unreached.discard if alive else self._unreached.add)(start)
        actions = [] if alive else self._without(*start)
        group = self.groups.get(probe.group)
        if group is not None:
            if not alive:
                _log.info("%s is lost to group %s", probe.task, group.name)
            actions += group.verdict(probe.task, probe.incarnation, alive)
        return actions

    def tick(self) -> list[Action]:
        """A moment has passed."""
        actions = [a for g in list(self.groups.values()) for a in g.tick()]
        return actions + self._announced()

    # -- who takes part ---------------------------------------------------------------------------

    def _next_generation(self, key: int, members: Sequence[GroupMember]) -> list[Action]:
        """Begin a generation of these members, and take part in it at once."""
        actions = self._call_for(key, members)
        self.generations.follow(key)
        # One may have died of what let the session be made anew.
        return actions + self._probes(key)

    def _probes(self, key: int) -> list[LifeProbe]:
        """Questions whether the other members of a generation live."""
        number = self.generations.number_of(key)
        members = self.generations.members(number)
        return [LifeProbe(number, m.task, m.incarnation) for m in members if m.task != self._me]

    def _asked_to_join(self, message: Any) -> list[Action] | None:
        """A task wants to be a member; None if that is for its group to say."""
        key, generation = parts_of(message.group)
        if generation:
            newcomer = member_of(message.members[0])
            group = self.groups.get(message.group)
            if group is not None and group.epoch and newcomer.task not in group.tasks:
                # It was to be a member, and was taken for dead before it had heard of it.
                return self._admitted(key, newcomer) or []
            known = self.generations.members(message.group)
            if known and not any(m.has(newcomer) for m in known):
                # It follows another generation of this number, which is not that of this task.
                return self._admitted(key, newcomer) or []
            if not self.generations.differs(message.group, message.group_size):
                return None
            # Two have begun this generation, with other members each: another one, for all of them.
            return self._call_for(key, self.generations.newest_members(key))
        return self._admitted(key, member_of(message.members[0]))

    def _admitted(self, key: int, newcomer: GroupMember) -> list[Action] | None:
        """See `_asked_to_join`."""
        if key not in self._growing:
            return None
        number = self.generations.number_of(key)
        group = self.groups.get(number)
        if self.generations.wants_more(key) or group is None or not group.epoch:
            # It is being formed. Who is to be a member and has not heard of it is told again.
            waiting = self.generations.newest_members(key)
            if any(m.task == newcomer.task and m.has(newcomer) for m in waiting):
                return [Send(newcomer.task, self._anew(key))]
            return [] if waiting else None
        if newcomer.task == self._me or any(m.has(newcomer) for m in group.members):
            return None
        if not group.is_active or group.tasks[0] != self._me:
            return []  # the first member sees to it; it asks again
        _log.info("%s joins group %d", newcomer.task, key)
        members = [m for m in group.members if m.task != newcomer.task]
        return self._call_for(key, [*members, newcomer])

    def _call_for(self, key: int, members: Sequence[GroupMember]) -> list[Action]:
        """Begin a generation that this task follows when its session is made anew."""
        over = self.generations.number_of(key)
        self.generations.call_for(key, members)
        left = self._give_up(over)
        message = self._anew(key)
        return left + [Send(m.task, message) for m in members if m.task != self._me]

    def _anew(self, key: int) -> Any:
        """The newest generation as a message."""
        packs = [packed(m) for m in self.generations.newest_members(key)]
        return pb.Collective(kind=pb.ANEW, group=self.generations.newest_number(key), members=packs)

    def _announced(self) -> list[Action]:
        """Now and then who waits for a group that others may have formed tells some of them."""
        self._ticks += 1
        found: list[Action] = []
        for key in self._growing:
            group = self.groups.get(self.generations.number_of(key))
            if group is not None and group.epoch and not self._ticks % _SEEK_TICKS:
                found += self._sought(group)
            message = None if group is None else group.said_anew()
            probes: list[LifeProbe] = []
            if message is not None and message.group != key:
                # Others may have gone on from this generation without this task.
                own, message = message.members, self._anew(key)
                if not any(m.task == self._me for m in message.members):
                    if self._is_alone(message.group):
                        found += self._next_generation(key, list(map(member_of, own)))
                        continue
                    message.members.extend(own)
                    probes = self._probes(key)
            if message is None or self._ticks % _EVERY_TICKS:
                continue
            others = sorted(t for t in self._addresses if trains(t) and t != self._me)
            first = (self._ticks // _EVERY_TICKS - 1) * _SOME % max(1, len(others))
            asked = others[first : first + _SOME]
            found += [Send(task, message) for task in asked]
            found += [probe for probe in probes if probe.task in asked]
        return found

    def _is_alone(self, number: int) -> bool:
        """Whether all have died who could admit this task to a generation, and all others have been
        asked since, some of which may have gone on from there. Else it waits for ever, and who
        comes waits for it."""
        members = self.generations.members(number)
        if not members or any(m[:2] not in self._unreached for m in members):
            self._alone_since.pop(number, None)
            return False
        since = self._alone_since.setdefault(number, self._ticks)
        rounds = -(-len(self._addresses) // _SOME) + 1
        return self._ticks - since > rounds * _EVERY_TICKS

    def _sought(self, group: CollectiveGroup) -> list[Action]:
        """Look for one task that trains and is no member: what cut the two off from each other may
        be over, and each may train with others, or alone."""
        before, self._trained[group.key] = self._trained.get(group.key, 0), group.runs
        others = sorted(t for t in self._addresses if trains(t) and t not in group.tasks)
        if not others or group.tasks[0] != self._me or group.runs == before:
            return []
        packs = [packed(m) for m in group.members]
        message = pb.Collective(kind=pb.ANEW, group=group.key, members=packs)
        return [Send(others[self._ticks // _SEEK_TICKS % len(others)], message)]

    def _without(self, task: str, incarnation: int) -> list[Action]:
        """A task has died: generations that wait for it begin anew without it."""
        actions: list[Action] = []
        for key in self.generations.keys_of_later():
            number = self.generations.number_of(key)
            group = self.groups.get(number)
            members = self.generations.members(number)
            left = [m for m in members if m[:2] != (task, incarnation)]
            if not self._is_in(left):
                continue  # it waits for those who are, to be admitted; see `_is_alone`
            if (group is None or not group.epoch) and len(left) < len(members):
                actions += self._next_generation(key, left)
        return actions

    def _is_in(self, members: Sequence[GroupMember]) -> bool:
        return self._start in [m[:2] for m in members]

    def _told_anew(self, sender: str, message: Any) -> list[Action]:
        """Another member's session was made anew."""
        key, generation = parts_of(message.group)
        own = self.generations.number_of(key)
        group = self.groups.get(own)
        known = [m.task for m in self.generations.newest_members(key)]
        if group is not None:
            known += group.tasks
        members = [member_of(m) for m in message.members]
        if key in self._growing and self._is_in(members):
            # Those who have come to the group before this task heard of it, or before it came.
            known += [m.task for m in members]
        if sender in known and self.generations.told(key, generation, members):
            _log.info("%s begins group %d anew, for its session was made anew", sender, key)
            left_out = set(group.tasks if group is not None else ()) - {m.task for m in members}
            # They may wait for this task, which they would not hear of any more.
            told = [Send(task, self._anew(key)) for task in sorted(left_out - {self._me})]
            return self._give_up(own) + told
        both = self.generations.joined_with(message.group, members)
        is_formed = group is not None and group.epoch > 0
        if sender in known and self._is_in(both) and not is_formed:
            return self._call_for(key, both)
        of_this = [m.task for m in self.generations.members(message.group)]
        if group is not None and is_formed and own == message.group:
            of_this = group.tasks
        if of_this and sender not in of_this:
            # It waits, or trains, in another generation of this number.
            return self._comes_anew(key, sender, message)
        return []

    def _comes_anew(self, key: int, sender: str, message: Any) -> list[Action]:
        """A task that waits among others than these is admitted."""
        found = [m for m in map(member_of, message.members) if m.task == sender]
        return [a for m in found for a in self._admitted(key, m) or []]

    def _give_up(self, number: int) -> list[Action]:
        """The generation is over."""
        group = self.groups.pop(number, None)
        if group is None:
            return []
        return group.given_up(begun_anew(parts_of(number)[0]))

    def _left(self, sender: str, message: Any) -> list[Action]:
        """A task that was to be a member has gone on elsewhere."""
        group = self.groups.get(message.group)
        if group is None:
            return []
        key, start = parts_of(group.key)[0], member_of(message.members[0])[:2]
        is_own = key in self._growing and group.key == self.generations.number_of(key)
        if is_own and any(m[:2] == start for m in group.members):
            # The group was formed with it. All wait anew, until they are admitted where it is.
            return self._call_for(key, group.members)
        return group.received(sender, message)

    def group(self, key: int, size: int = 0) -> CollectiveGroup:
        """The group of this number, made when it is first heard of.

        Raises:
            InvalidArgumentError: if it has another size here.
        """
        group = self.groups.get(key)
        if group is not None and size and group.size not in (0, size):
            told_early = parts_of(key)[1] and not (group.takes_part or group.is_formed)
            group = None if told_early else group  # by those who knew of other members
        if group is None:
            process = process_of_runtime()
            leader = self._leader
            if parts_of(key)[1]:
                # Whoever is asked before it has heard of the generation is asked as its leader.
                members = self.generations.members(key)
                leader = members[0].task if members else self._me
            group = self.groups[key] = CollectiveGroup(key, size, self._start, leader, process)
        group.grows = parts_of(key)[0] in self._growing
        if not group.size:
            group.size = size
        if size and size != group.size:
            raise InvalidArgumentError(
                None, None, f"Group {group.name} has {group.size} members here, and {size} there."
            )
        return group

    # -- messages ---------------------------------------------------------------------------------

    def received(self, sender: str, message: Any, value: Any) -> list[Action]:
        """A message of another task has come.

        Raises:
            InvalidArgumentError: if it makes no sense.
        """
        if message.kind == pb.JOIN:
            check_form(sender, message)
            actions = self._asked_to_join(message)
            if actions is not None:
                return actions
        if self.generations.is_over(message.group):
            key = parts_of(message.group)[0]
            members = [m.task for m in self.generations.newest_members(key)]
            # What it was told may have gone with a link.
            lacks = message.kind != pb.ANEW and sender in members
            if message.kind == pb.ANEW and sender not in members:
                # It waits in a generation that the others have left: it comes anew.
                check_form(sender, message)
                return self._comes_anew(key, sender, message)
            if not lacks and key in self._growing and message.kind in OF_MEMBERS:
                # It was taken for dead, and has not heard of what the others have begun since.
                return [Send(sender, refusal(message.group, given_up(str(key), sender, True)))]
            return [Send(sender, self._anew(key))] if lacks else []
        if message.kind == pb.ANEW:
            check_form(sender, message)
            return self._told_anew(sender, message)
        if message.kind == pb.LEFT:
            check_form(sender, message)
            return self._left(sender, message)
        group = self.group(message.group)
        if message.kind == pb.JOIN and group.leader != self._me and not group.epoch:
            return []  # it asks everybody, in case that the leader is gone
        if message.kind == pb.JOIN and not group.epoch and sender not in self.first:
            # Whether this group may grow is known once this task takes part.
            may_grow = group.key in self._growing or not group.takes_part
            if may_grow and message.group_size <= sum(map(trains, self.first)):
                return []  # it is admitted by those who have formed the group
        return group.received(sender, message, value)
