"""The groups of a task: joins their state machines to links, and to the steps that wait."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from headrace.distributed.collective.by_xla import XlaSums, process_of_runtime
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
    own_error,
    packed,
    refusal,
)
from headrace.distributed.collective.refusals import given_up
from headrace.distributed.links.peers import Peers
from headrace.distributed.protocol import step_pb2 as pb
from headrace.distributed.transport.base import PeerInfo, PipeBroken
from headrace.distributed.transport.link import Link
from headrace.distributed.wire import codec
from headrace.distributed.wire.messages import pack
from headrace.errors import (
    AbortedError,
    CancelledError,
    InvalidArgumentError,
    OpError,
    UnavailableError,
)
from headrace.executor.threads import step_threads
from headrace.ops.collective.calls import Array, Call, on_host, part_of, results
from headrace.ops.collective.rendezvous import Rendezvous

__all__ = ["TaskCollectives", "leader_of"]

_log = logging.getLogger("headrace.distributed")

#: An operation that waits is logged this often, in seconds.
NOTICE_SECONDS: Final = 10.0
#: Jobs whose tasks do not train.
_OTHER_JOBS: Final = ("ps", "evaluator")
_FIRST_JOBS: Final = ("chief", "master")
#: Who waits for a group asks so many others after so many ticks whether they have formed it.
_SOME: Final = 8
_EVERY_TICKS: Final = 2


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


class TaskCollectives:
    """See the module. It is a `headrace.ops.collective.calls.Collectives`.

    Args:
        me: this task; ``addresses``: of all tasks; ``peers``: how it reaches them.

    Attributes:
        first: the tasks that the cluster was started with. Groups that may grow are formed by
            these, if they are enough: so none is formed beside one that runs, as long as one of
            its first members lives.
    """

    def __init__(self, me: PeerInfo, addresses: Mapping[str, str], peers: Peers) -> None:
        self._me, self._addresses, self._peers = me, addresses, peers
        self._leader = leader_of(list(addresses))
        self.first = frozenset(addresses)
        #: Guards the groups; who waits for an operation waits here.
        self._changed = threading.Condition()
        self._groups: dict[int, CollectiveGroup] = {}
        self._probing: set[LifeProbe] = set()
        self._noticed: dict[int, float] = {}
        #: Groups that are waited for: since when, and when that was said last.
        self._forming: dict[int, tuple[float, float]] = {}
        self._closed = False
        self._generations = Generations()
        #: The keys of groups whose members begin anew with each other: others may join them.
        self._growing: set[int] = set()
        self._ticks = 0
        self._rendezvous = Rendezvous(self._between_tasks)
        self._by_xla = XlaSums(me.task, self._changed, self._run, self._wait)

    # -- steps ------------------------------------------------------------------------------------

    def run(self, call: Call, step: Any) -> Array:
        """Take part in an operation; see `Collectives`.

        Raises:
            InvalidArgumentError: if members do not fit together.
            FailedPreconditionError: if this task is no member of the group, or what it needs went
                with a member: no new session can mend that.
            CancelledError, DeadlineExceededError: if the step or task ends before.
        """
        if call.group_size == 1:
            return results([on_host(call)])[0]
        if call.kind == "anew":
            return self._begin_anew(call.group_key)
        call = self._in_generation(call)
        group = self._joined(call, step)
        own = sum(len(m.devices) for m in group.members if m.task == self._me.task)
        if own <= 1 and self._by_xla.takes(call, group):
            result: Array | None = self._by_xla.run(call, group, step)
            if result is not None:
                return result
        call = on_host(call)
        if own <= 1:
            return self._run(call, step)
        return self._rendezvous.meet(call, own, step)

    def _joined(self, call: Call, step: Any) -> CollectiveGroup:
        """The group of a call, once all its members are there."""
        with self._changed:
            if self._generations.is_over(call.group_key):
                raise _aborted(parts_of(call.group_key)[0])
            group = self._group(call.group_key, call.group_size)
            actions = group.join(call.device)
            self._tell(actions)
        self._do(actions)
        with self._changed:
            if not group.is_formed:
                self._wait(lambda: group.is_formed, step)
        if group.refused is not None:
            raise own_error(group.refused)
        return group

    def _in_generation(self, call: Call) -> Call:
        """The call as one of the generation of its group that this task takes part in.

        Raises:
            AbortedError: if the others have begun another one.
        """
        with self._changed:
            if self._generations.wants_more(call.group_key):
                raise _aborted(call.group_key)
            number = self._generations.number_of(call.group_key)
            if number == call.group_key:
                return call
            devices = sum(len(m.devices) for m in self._generations.members(number))
        return call._replace(group_key=number, group_size=devices)

    def _begin_anew(self, key: int) -> Array:
        """See `generations`. Nothing happens where no operation was run before."""
        sends: list[Action] = []
        with self._changed:
            self._growing.add(key)
            number = self._generations.number_of(key)
            group = self._groups.get(number)
            if self._generations.wants_more(key):
                self._generations.follow(key)
                # One may have died before this task took part.
                sends = self._probes(key)
            elif group is not None and group.epoch and (group.has_begun or group.was_left_out):
                sends = self._next_generation(key, list(group.members))
        self._do(sends)
        return np.zeros((), np.bool_)

    def _next_generation(self, key: int, members: Sequence[GroupMember]) -> list[Action]:
        """Begin a generation of these members; the lock is held."""
        over = self._generations.number_of(key)
        self._generations.begin(key, members)
        left = self._give_up(over)
        number = self._generations.number_of(key)
        packs = [packed(m) for m in members]
        message = pb.Collective(kind=pb.ANEW, group=number, members=packs)
        others = [m for m in members if m.task != self._me.task]
        actions: list[Action] = [Send(m.task, message) for m in others]
        # One may have died of what let the session be made anew.
        return left + actions + self._probes(key)

    def _probes(self, key: int) -> list[Action]:
        """Questions whether the other members of a generation live."""
        number = self._generations.number_of(key)
        members = self._generations.members(number)
        return [
            LifeProbe(number, m.task, m.incarnation) for m in members if m.task != self._me.task
        ]

    # -- those who join a group that runs ---------------------------------------------------------

    def _asked_to_join(self, message: Any) -> list[Action] | None:
        """A task wants to be a member; None if that is for its group to say. The lock is held."""
        key, generation = parts_of(message.group)
        if generation:
            newcomer = member_of(message.members[0])
            known = self._generations.members(message.group)
            if known and not any(m.has(newcomer) for m in known):
                # It follows another generation of this number, which is not that of this task.
                return self._admitted(key, newcomer) or []
            if not self._generations.differs(message.group, message.group_size):
                return None
            # Two have begun this generation, with other members each: another one, for all of them.
            return self._call_for(key, self._generations.newest_members(key))
        return self._admitted(key, member_of(message.members[0]))

    def _admitted(self, key: int, newcomer: GroupMember) -> list[Action] | None:
        """See `_asked_to_join`."""
        if key not in self._growing:
            return None
        number = self._generations.number_of(key)
        group = self._groups.get(number)
        if self._generations.wants_more(key) or group is None or not group.epoch:
            # It is being formed. Who is to be a member and has not heard of it is told again.
            waiting = self._generations.newest_members(key)
            if any(m.task == newcomer.task and m.has(newcomer) for m in waiting):
                return [Send(newcomer.task, self._anew(key))]
            return [] if waiting else None
        if newcomer.task == self._me.task or any(m.has(newcomer) for m in group.members):
            return None
        if not group.is_active or group.tasks[0] != self._me.task:
            return []  # the first member sees to it; it asks again
        _log.info("%s joins group %d", newcomer.task, key)
        members = [m for m in group.members if m.task != newcomer.task]
        return self._call_for(key, [*members, newcomer])

    def _call_for(self, key: int, members: Sequence[GroupMember]) -> list[Action]:
        """Begin a generation that this task follows when its session is made anew; the lock is
        held."""
        over = self._generations.number_of(key)
        self._generations.call_for(key, members)
        left = self._give_up(over)
        message = self._anew(key)
        return left + [Send(m.task, message) for m in members if m.task != self._me.task]

    def _anew(self, key: int) -> Any:
        """The newest generation as a message."""
        packs = [packed(m) for m in self._generations.newest_members(key)]
        return pb.Collective(
            kind=pb.ANEW, group=self._generations.newest_number(key), members=packs
        )

    def _announced(self) -> list[Action]:
        """Now and then who waits for a group that others may have formed tells some of them; the
        lock is held."""
        self._ticks += 1
        found: list[Action] = []
        for key in self._growing:
            group = self._groups.get(self._generations.number_of(key))
            message = None if group is None else group.said_anew()
            if message is not None and message.group != key:
                # Others may have gone on from this generation without this task.
                own, message = message.members, self._anew(key)
                if not any(m.task == self._me.task for m in message.members):
                    message.members.extend(own)
            if message is None or self._ticks % _EVERY_TICKS:
                continue
            others = sorted(t for t in self._addresses if _trains(t) and t != self._me.task)
            first = (self._ticks // _EVERY_TICKS - 1) * _SOME % max(1, len(others))
            found += [Send(task, message) for task in others[first : first + _SOME]]
        return found

    def _without(self, task: str, incarnation: int) -> list[Action]:
        """A task has died: generations that wait for it begin anew without it; the lock is held."""
        actions: list[Action] = []
        for key in self._generations.keys_of_later():
            number = self._generations.number_of(key)
            group = self._groups.get(number)
            members = self._generations.members(number)
            left = [m for m in members if m[:2] != (task, incarnation)]
            if (group is None or not group.epoch) and left and len(left) < len(members):
                actions += self._next_generation(key, left)
        return actions

    def _told_anew(self, sender: str, message: Any) -> list[Action]:
        """Another member's session was made anew; the lock is held."""
        key, generation = parts_of(message.group)
        own = self._generations.number_of(key)
        group = self._groups.get(own)
        known = [m.task for m in self._generations.newest_members(key)]
        if group is not None:
            known += group.tasks
        members = [(m.task, m.incarnation) for m in message.members]
        if key in self._growing and (self._me.task, self._me.incarnation) in members:
            # Those who have come to the group before this task heard of it, or before it came.
            known += [task for task, _ in members]
        if sender in known and self._generations.told(
            key, generation, [member_of(m) for m in message.members]
        ):
            _log.info("%s begins group %d anew, for its session was made anew", sender, key)
            return self._give_up(own)
        both = self._generations.joined_with(message.group, [member_of(m) for m in message.members])
        if both and sender in known and not (group is not None and group.epoch):
            return self._call_for(key, both)
        of_this = self._generations.members(message.group)
        if of_this and sender not in [m.task for m in of_this]:
            # It waits in another generation of this number.
            return self._comes_anew(key, sender, message)
        return []

    def _comes_anew(self, key: int, sender: str, message: Any) -> list[Action]:
        """A task that waits among others than these is admitted; the lock is held."""
        found = [m for m in map(member_of, message.members) if m.task == sender]
        return [a for m in found for a in self._admitted(key, m) or []]

    def _give_up(self, number: int) -> list[Action]:
        """The generation is over; the lock is held."""
        group = self._groups.pop(number, None)
        if group is None:
            return []
        actions = group.given_up(_aborted(parts_of(number)[0]))
        self._tell(actions)
        return actions

    def _left(self, sender: str, message: Any) -> list[Action]:
        """A task that was to be a member has gone on elsewhere; the lock is held."""
        group = self._groups.get(message.group)
        if group is None:
            return []
        key, start = parts_of(group.key)[0], member_of(message.members[0])[:2]
        is_own = key in self._growing and group.key == self._generations.number_of(key)
        if is_own and any(m[:2] == start for m in group.members):
            # The group was formed with it. All wait anew, until they are admitted where it is.
            return self._call_for(key, group.members)
        return group.received(sender, message)

    def _group(self, key: int, size: int = 0) -> CollectiveGroup:
        group = self._groups.get(key)
        if group is None:
            me = self._me.task, self._me.incarnation
            process = process_of_runtime()
            leader = self._leader
            if parts_of(key)[1]:
                # Whoever is asked before it has heard of the generation is asked as its leader.
                members = self._generations.members(key)
                leader = members[0].task if members else self._me.task
            group = self._groups[key] = CollectiveGroup(key, size, me, leader, process)
        group.grows = parts_of(key)[0] in self._growing
        if not group.size:
            group.size = size
        if size and size != group.size:
            raise InvalidArgumentError(
                None, None, f"Group {group.name} has {group.size} members here, and {size} there."
            )
        return group

    def _wait(self, ready: Any, step: Any) -> None:
        def is_over() -> bool:
            return self._closed or ready()

        if step is None:
            self._changed.wait_for(is_over)
        else:
            step.wait_for(self._changed, is_over)
        if self._closed:
            raise CancelledError(None, None, f"Task {self._me.task} was stopped.")

    def _run(self, call: Call, step: Any = None) -> Array:
        with self._changed:
            group = self._groups.get(call.group_key)
            if group is None:
                raise _aborted(parts_of(call.group_key)[0])
            work, actions = group.begin(call, time.monotonic())
            self._tell(actions)
        self._do(actions)
        if not work.ended:
            with self._changed:
                # A step that gives up leaves the operation to go on: the others have its part.
                self._wait(lambda: work.ended, step)
        if work.error is not None:
            raise own_error(work.error)
        assert work.result is not None
        return work.result

    def _between_tasks(self, calls: Sequence[Call]) -> Sequence[Array]:
        """What the members of this task get: they are one member for the others."""
        first = calls[0]
        if first.kind == "gather":
            return [self._run(first._replace(value=results(calls)[0]))] * len(calls)
        if first.kind == "broadcast":
            sends = [c for c in calls if c.value is not None]
            return [self._run(sends[0] if sends else first)] * len(calls)
        # Sums first: what is divided, or by how many, follows from all devices.
        local = [c._replace(kind="reduce", final="Id") for c in calls]
        total = self._run(first._replace(kind="reduce", value=results(local)[0]))
        if first.kind == "reduce":
            return [total] * len(calls)
        with self._changed:
            group = self._groups.get(first.group_key)
            if group is None:  # the members have begun anew meanwhile
                raise _aborted(parts_of(first.group_key)[0])
            members = group.members
        before = 0
        for member in members:
            if member.task == self._me.task:
                break
            before += len(member.devices)
        size = sum(len(m.devices) for m in members)
        return [part_of(total, c, before + i, size) for i, c in enumerate(calls)]

    # -- messages ---------------------------------------------------------------------------------

    def on_message(self, link: Link, message: Any, buffers: list[Any]) -> None:
        """A message of another member has come."""
        value = codec.decode(message.value, buffers) if message.HasField("value") else None
        if link.peer.task not in self._addresses:
            raise InvalidArgumentError(
                None, None, f"{link.peer.task} is no task of this cluster: it is in no group."
            )
        with self._changed:
            if self._closed:
                return
            actions: list[Action] | None = None
            if message.kind == pb.JOIN:
                check_form(link.peer.task, message)
                actions = self._asked_to_join(message)
            if actions is None:
                actions = self._received(link.peer.task, message, value)
            self._tell(actions)
        self._do(actions)

    def _received(self, sender: str, message: Any, value: Any) -> list[Action]:
        """A message for a group; the lock is held."""
        if self._generations.is_over(message.group):
            key = parts_of(message.group)[0]
            members = [m.task for m in self._generations.newest_members(key)]
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
        group = self._group(message.group)
        if message.kind == pb.JOIN and group.leader != self._me.task and not group.epoch:
            return []  # it asks everybody, in case that the leader is gone
        if message.kind == pb.JOIN and not group.epoch and sender not in self.first:
            # Whether this group may grow is known once this task takes part.
            may_grow = group.key in self._growing or not group.takes_part
            if may_grow and message.group_size <= sum(map(_trains, self.first)):
                return []  # it is admitted by those who have formed the group
        return group.received(sender, message, value)

    def peer_lost(self, task: str) -> None:
        """A link to a task is lost."""
        with self._changed:
            probes = [a for g in self._groups.values() for a in g.lost(task)]
            probes += [
                LifeProbe(number, m.task, m.incarnation)
                for number in map(self._generations.number_of, self._generations.keys_of_later())
                for m in self._generations.members(number)
                if m.task == task
            ]
        self._do(probes)

    def on_tick(self, now: float) -> None:
        """Time has passed."""
        with self._changed:
            groups = list(self._groups.values())
            actions = [a for g in groups for a in g.tick()]
            actions += self._announced()
            waiting = [(g, w) for g in groups for w in g.open]
        self._do(actions)
        for group, work in waiting:
            if now - max(work.since, self._noticed.get(id(work), 0.0)) >= NOTICE_SECONDS:
                self._noticed[id(work)] = now
                text = "'%s' waits for the other members of group %s (%s), for %.0f s so far"
                members = ", ".join(group.tasks) or "not all are there yet"
                _log.warning(text, work.call.name, group.name, members, now - work.since)
        self._notice_forming(groups, now)
        open_works = {id(w) for _, w in waiting}
        self._noticed = {k: v for k, v in self._noticed.items() if k in open_works}

    def _notice_forming(self, groups: Sequence[CollectiveGroup], now: float) -> None:
        """Say now and then which groups are waited for."""
        with self._changed:
            awaited = {g.key: g.awaited for g in groups}
        self._forming = {k: self._forming.get(k, (now, now)) for k, text in awaited.items() if text}
        for key, (since, noticed) in self._forming.items():
            if now - noticed >= NOTICE_SECONDS:
                self._forming[key] = since, now
                text = "Group %d is not complete for %.0f s so far: %s"
                _log.warning(text, parts_of(key)[0], now - since, awaited[key])

    def _tell(self, actions: Sequence[Action]) -> None:
        """Wake those whose operation, or whose waiting for a group, has ended; the lock is held."""
        if any(not isinstance(a, (Send, LifeProbe)) for a in actions):
            self._changed.notify_all()

    def _do(self, actions: Sequence[Action]) -> None:
        for action in actions:
            if isinstance(action, Send):
                self._send(action)
            elif isinstance(action, LifeProbe):
                self._ask(action)

    def _send(self, action: Send) -> None:
        link = self._peers.known(action.task)
        if link is None:
            # A reader must not wait for a connection.
            step_threads.submit(self._connect_and_send, action)
        else:
            self._send_on(link, action)

    def _connect_and_send(self, action: Send) -> None:
        task, timing = action.task, self._peers.timing
        # All wait for those who have died, and there may be no link to them whose loss would tell.
        is_about_losses = action.message.kind in (pb.LOST, pb.PREPARE)
        timeout = timing.probe if is_about_losses else timing.silence
        try:
            link = self._link(task, timeout)
        except OpError as error:
            _log.debug("%s cannot be reached: %s", task, error.message)
            self.peer_lost(task)
            return
        self._send_on(link, action)

    def _link(self, task: str, timeout: float) -> Link:
        address = self._addresses.get(task)
        if address is None:
            raise UnavailableError(None, None, f"{task} has left this cluster.")
        return self._peers.link(task, address, timeout)

    def _send_on(self, link: Link, action: Send) -> None:
        message = action.message
        buffers: Sequence[Any] = ()
        if action.value is not None:
            meta, buffers = codec.encode(action.value)
            message.value.CopyFrom(meta)
        try:
            link.send(pack(message), buffers, block=False)
        except PipeBroken:
            self.peer_lost(action.task)

    # -- losses -----------------------------------------------------------------------------------

    def _ask(self, probe: LifeProbe) -> None:
        """Find out in a thread whether a task can be reached."""
        with self._changed:
            if self._closed or probe in self._probing:
                return
            self._probing.add(probe)
        step_threads.submit(self._probe, probe)

    def _probe(self, probe: LifeProbe) -> None:
        task, key, timing = probe.task, probe.group, self._peers.timing
        try:
            link = self._link(task, timing.probe)
            alive = link.peer.incarnation == probe.incarnation
        except OpError:
            alive = False
        with self._changed:
            self._probing.discard(probe)
            if self._closed:
                return
            actions = [] if alive else self._without(task, probe.incarnation)
            group = self._groups.get(key)
            if group is not None:
                if not alive:
                    _log.info("%s is lost to group %s", task, group.name)
                actions += group.verdict(task, probe.incarnation, alive)
            self._tell(actions)
        self._do(actions)

    def close(self) -> None:
        """Nothing more is sent; all that wait are cancelled."""
        self._rendezvous.close()
        with self._changed:
            self._closed = True
            self._changed.notify_all()


def _trains(task: str) -> bool:
    return task.split("/")[1].removeprefix("job:") not in _OTHER_JOBS


def _aborted(key: int) -> OpError:
    text = (
        f"The session of another member of group {key} was made anew, or one has joined: all begin "
        "anew, with the values of the one that has got furthest."
    )
    return AbortedError(None, None, text)
