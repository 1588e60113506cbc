"""The groups of a task: joins their state machines to links, and to the steps that wait."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from headrace.distributed.collective.by_xla import XlaSums
from headrace.distributed.collective.generations import parts_of
from headrace.distributed.collective.group import CollectiveGroup
from headrace.distributed.collective.parts import (
    Action,
    LifeProbe,
    Send,
    own_error,
)
from headrace.distributed.collective.task_groups import TaskGroups
from headrace.distributed.links.peers import Peers
from headrace.distributed.protocol import step_pb2 as pb
from headrace.distributed.transport.base import PeerInfo, PipeBroken
from headrace.distributed.transport.link import Link
from headrace.distributed.wire import codec
from headrace.distributed.wire.messages import pack
from headrace.errors import (
    CancelledError,
    InvalidArgumentError,
    OpError,
    UnavailableError,
)
from headrace.executor.threads import step_threads
from headrace.ops.collective.calls import Array, Call, on_host, part_of, results
from headrace.ops.collective.rendezvous import Rendezvous

__all__ = ["TaskCollectives"]

_log = logging.getLogger("headrace.distributed")

#: An operation that waits is logged this often, in seconds.
NOTICE_SECONDS: Final = 10.0


class TaskCollectives:
    """See the module. It is a `headrace.ops.collective.calls.Collectives`.

    Args:
        me: this task; ``addresses``: of all tasks; ``peers``: how it reaches them.

    Attributes:
        groups: of this task, whose lock this has.
    """

    def __init__(self, me: PeerInfo, addresses: Mapping[str, str], peers: Peers) -> None:
        self._me, self._addresses, self._peers = me, addresses, peers
        #: Guards the groups; who waits for an operation waits here.
        self._changed = threading.Condition()
        self.groups = TaskGroups((me.task, me.incarnation), addresses)
        self._probing: set[LifeProbe] = set()
        self._noticed: dict[int, float] = {}
        #: Groups that are waited for: since when, and when that was said last.
        self._forming: dict[int, tuple[float, float]] = {}
        self._closed = False
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
            self._take_in(self.groups.begin_anew, call.group_key)
            return np.zeros((), np.bool_)
        with self._changed:
            call = self.groups.in_generation(call)
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
            group, actions = self.groups.joined(call)
            self._tell(actions)
        self._do(actions)
        with self._changed:
            if not group.is_formed:
                self._wait(lambda: group.is_formed, step)
        if group.refused is not None:
            raise own_error(group.refused)
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
            group = self.groups.running(call.group_key)
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
            members = self.groups.running(first.group_key).members
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
            actions = self.groups.received(link.peer.task, message, value)
            self._tell(actions)
        self._do(actions)

    def peer_lost(self, task: str) -> None:
        """A link to a task is lost."""
        self._take_in(self.groups.lost, task)

    def on_tick(self, now: float) -> None:
        """Time has passed."""
        self._take_in(self.groups.tick)
        with self._changed:
            groups = list(self.groups.groups.values())
            waiting = [(g, w) for g in groups for w in g.open]
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

    def _take_in(self, take: Callable[..., list[Action]], *args: Any) -> None:
        """Let the groups take something in, and do what comes of it."""
        with self._changed:
            actions = take(*args)
            self._tell(actions)
        self._do(actions)

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
        task, timing = probe.task, self._peers.timing
        try:
            link = self._link(task, timing.probe)
            alive = link.peer.incarnation == probe.incarnation
        except OpError:
            alive = False
        with self._changed:
            self._probing.discard(probe)
            if self._closed:
                return
            actions = self.groups.verdict(probe, alive)
            self._tell(actions)
        self._do(actions)

    def awaited(self) -> list[str]:
        """The groups that steps of this task wait for: who is missing."""
        with self._changed:
            return [
                f"group {parts_of(g.key)[0]}: {g.awaited}"
                for g in self.groups.groups.values()
                if g.awaited
            ]

    def close(self) -> None:
        """Nothing more is sent; all that wait are cancelled."""
        self._rendezvous.close()
        with self._changed:
            self._closed = True
            self._changed.notify_all()
