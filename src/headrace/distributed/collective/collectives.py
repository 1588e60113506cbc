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
    Action,
    GroupMember,
    LifeProbe,
    Send,
    check_form,
    member_of,
    packed,
)
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
    exception_type_from_error_code,
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
    """

    def __init__(self, me: PeerInfo, addresses: Mapping[str, str], peers: Peers) -> None:
        self._me, self._addresses, self._peers = me, addresses, peers
        self._leader = leader_of(list(addresses))
        #: Guards the groups; who waits for an operation waits here.
        self._changed = threading.Condition()
        self._groups: dict[int, CollectiveGroup] = {}
        self._probing: set[LifeProbe] = set()
        self._noticed: dict[int, float] = {}
        #: Groups that are waited for: since when, and when that was said last.
        self._forming: dict[int, tuple[float, float]] = {}
        self._closed = False
        self._generations = Generations()
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
            group = self._group(call.group_key, call.group_size)
            actions = group.join(call.device)
            self._tell(actions)
        self._do(actions)
        with self._changed:
            if not group.is_formed:
                self._wait(lambda: group.is_formed, step)
        if group.refused is not None:
            raise _own(group.refused)
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
            number = self._generations.number_of(key)
            group = self._groups.get(number)
            if self._generations.wants_more(key):
                self._generations.follow(key)
            elif group is not None and group.epoch and group.has_begun:
                sends = self._next_generation(key, list(group.members))
        self._do(sends)
        return np.zeros((), np.bool_)

    def _next_generation(self, key: int, members: Sequence[GroupMember]) -> list[Action]:
        """Begin a generation of these members; the lock is held."""
        over = self._generations.number_of(key)
        self._generations.begin(key, members)
        self._give_up(over)
        number = self._generations.number_of(key)
        packs = [packed(m) for m in members]
        message = pb.Collective(kind=pb.ANEW, group=number, members=packs)
        others = [m for m in members if m.task != self._me.task]
        actions: list[Action] = [Send(m.task, message) for m in others]
        # One may have died of what let the session be made anew.
        return actions + [LifeProbe(number, m.task, m.incarnation) for m in others]

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

    def _told_anew(self, sender: str, message: Any) -> None:
        """Another member's session was made anew; the lock is held."""
        key, generation = parts_of(message.group)
        own = self._generations.number_of(key)
        group = self._groups.get(own)
        known = [m.task for m in self._generations.newest_members(key)]
        if group is not None:
            known += group.tasks
        if sender in known and self._generations.told(
            key, generation, [member_of(m) for m in message.members]
        ):
            _log.info("%s begins group %d anew, for its session was made anew", sender, key)
            self._give_up(own)

    def _give_up(self, number: int) -> None:
        """The generation is over; the lock is held."""
        group = self._groups.pop(number, None)
        if group is not None:
            self._tell(group.given_up(_aborted(parts_of(number)[0])))

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
            raise _own(work.error)
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
        members = self._groups[first.group_key].members
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
            if self._closed or self._generations.is_over(message.group):
                return
            if message.kind == pb.ANEW:
                check_form(link.peer.task, message)
                self._told_anew(link.peer.task, message)
                return
            actions = self._group(message.group).received(link.peer.task, message, value)
            self._tell(actions)
        self._do(actions)

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
            link = self._peers.link(task, self._addresses.get(task, ""), timeout)
        except OpError as error:
            _log.debug("%s cannot be reached: %s", task, error.message)
            self.peer_lost(task)
            return
        self._send_on(link, action)

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
            link = self._peers.link(task, self._addresses.get(task, ""), timing.probe)
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


def _aborted(key: int) -> OpError:
    text = (
        f"The session of another member of group {key} was made anew: all begin anew, with the "
        "values of the one that has got furthest."
    )
    return AbortedError(None, None, text)


def _own(error: OpError) -> OpError:
    """An error of its own for each step that raises it: steps add to it where it happened."""
    made: OpError = exception_type_from_error_code(error.error_code)(None, None, error.message)
    return made
