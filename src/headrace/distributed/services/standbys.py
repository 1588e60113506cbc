"""The copies that servers keep of each other's variables, as one server of a cluster has a part.

In a cluster with ``replicas=1`` each task of the job "ps" has its copy at the next one, and one
that has joined at one of the first description. When it dies that one serves it, as a second server
of its process; when it is started again it gets its variables back, and serves itself. Where a task
is served is asked of the one that keeps its copy.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from headrace.distributed.cluster.cluster_spec import SERVERS, ClusterSpec
from headrace.distributed.links.liveness import is_nobody_at
from headrace.distributed.links.peers import (
    CLIENT,
    FIRST_NOTICE_SECONDS,
    NOTICE_SECONDS,
    RETRY_SECONDS,
    Peers,
    is_client,
)
from headrace.distributed.membership.changes import indices
from headrace.distributed.moving.settling import settle
from headrace.distributed.protocol import control_pb2 as pb
from headrace.distributed.protocol import step_pb2
from headrace.distributed.services.control import Controls
from headrace.distributed.services.serving import Serving
from headrace.distributed.services.task import Task
from headrace.distributed.standby.journal import Journal
from headrace.distributed.standby.primary_role import PrimaryRole
from headrace.distributed.standby.rules import Member, Primary, View, Witness
from headrace.distributed.standby.standby_role import StandbyRole
from headrace.distributed.standby.views import Place, member_of, proposal, to_message, view_of
from headrace.distributed.transport.base import PeerInfo, Pipe
from headrace.distributed.transport.link import Link
from headrace.distributed.wire.messages import unpack
from headrace.errors import OpError, UnavailableError
from headrace.executor.resources import ResourceHandle
from headrace.structured_logs import tell

__all__ = ["HostedServer", "Standbys"]

_log = logging.getLogger("headrace.distributed")

#: A call that only asks another process for a word takes at most so many seconds.
_ASK_SECONDS = 1.0
#: Whoever asks where a task is served, since it does not answer, waits so long for its standby: it
#: may have noticed nothing yet, or be about to begin.
_SOON_SECONDS = 0.5
#: A link to whoever serves a task is waited for so long, before it is asked again who does.
_LINK_SECONDS = 1.0


class HostedServer(Serving, Protocol):
    """A server of this process that serves another one's task."""

    def wait(self, timeout: float) -> bool:
        """Whether it has stopped within so many seconds."""

    def stop(self) -> None:
        """Stop serving."""


#: Connects as a process that is no task: ``dial(me, address, task, timeout)``.
DialAs = Callable[[PeerInfo, str, str, float], tuple[Pipe, PeerInfo]]
Values = dict[ResourceHandle, Any]


class Standbys:
    """What one server does for copies: its own, those that it keeps, and as a witness.

    Args:
        cluster: as it was started, see `ClusterSpec.keepers`.
        task: the own one; ``controls``: how others are called.
        host: makes a server for another task: ``host(task, values, epoch)``.
        begin: lets the own server begin to serve, with the variables that it is given.
        taken_over: stops the own server, for another one serves its task: it was cut off, as is
            told, or has given it back ("").
        dial: see `DialAs`.
    """

    def __init__(
        self,
        cluster: ClusterSpec,
        task: Task,
        controls: Controls,
        host: Callable[[str, Values, int], HostedServer],
        begin: Callable[[Values], None],
        taken_over: Callable[[str], None],
        dial: DialAs,
    ) -> None:
        self._cluster = cluster
        self._task = task
        self._addresses = task.master.addresses
        self._controls = controls
        self._host = host
        self._begin = begin
        self._taken_over = taken_over
        self._dial_as = dial
        self.me: Member = (task.me.task, task.me.incarnation)
        self._witness = Witness()
        self._primary: PrimaryRole | None = None
        #: Who asked for the copy of the own task before this server had begun to serve it.
        self._early: list[tuple[Link, Any]] = []
        #: Those that keep copies, by the tasks; whether it has begun to keep any.
        self._roles: dict[str, StandbyRole] = {}
        self._follows = False
        self._return: _Return | None = None
        self._hosted: dict[str, HostedServer] = {}
        self._stopped = threading.Event()
        #: Notified when another one's task is served here.
        self._hosts = threading.Condition()
        task.standbys = self
        task.moves.why_not = self._why_not

    @property
    def keepers(self) -> dict[str, str]:
        """Who keeps the copy of each server that there is."""
        if not self._cluster.replicas:
            return {}
        servers = indices(SERVERS, self._addresses)
        first = self._cluster.task_indices(SERVERS)
        return self._cluster.keepers(i for i in servers if i not in first)

    @property
    def _keeper(self) -> str | None:
        """Who keeps the copy of the own task."""
        return self.keepers.get(self.me[0])

    @property
    def hosted(self) -> Sequence[HostedServer]:
        """The servers in this process for other ones' tasks."""
        return list(self._hosted.values())

    def _why_not(self) -> str:
        """Why no variables may come here now."""
        if self._keeper is None or self.copy_stage == "protected":
            return ""
        return f"The copy of {self.me[0]} is not whole now ({self.copy_stage or 'there is none'})."

    # -- life -------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin as the task's own server: the task may be served elsewhere now."""
        if self._keeper is None:
            self._begin({})
        else:
            threading.Thread(target=self._come, name="headrace return", daemon=True).start()

    def serve_copy(self, values: Values, epoch: int) -> None:
        """Begin as a server in the process that has kept the task's copy.

        Args:
            epoch: of the view in which it serves.
        """
        self._serve(values, epoch, follows=False)

    def changed(self) -> None:
        """Keep the copies that this server is to keep by now, and no others."""
        wanted = {t for t, keeper in self.keepers.items() if keeper == self.me[0]}
        with self._hosts:
            if not self._follows or self._stopped.is_set():
                return
            for task in self._roles.keys() - wanted:  # it has left, with all that it had
                self._roles.pop(task).close()
            for task in sorted(wanted - self._roles.keys()):
                self._roles[task] = self._role_of(task)
                self._roles[task].start()

    def _role_of(self, other: str) -> StandbyRole:
        return StandbyRole(
            other,
            self.me,
            lambda: self._task.peers.link(other, self._addresses.of(other), _LINK_SECONDS),
            self._place_of,
            self._ask,
            self._answers,
            self._is_dead,
            lambda values, epoch: self._host_other(other, values, epoch),
        )

    def _come(self) -> None:
        """Find out whether the own task is served elsewhere; then get its variables back."""
        began = time.monotonic()
        noticed = FIRST_NOTICE_SECONDS - NOTICE_SECONDS
        while not self._stopped.is_set():
            try:
                found = self._ask_keeper()
                if found.address:
                    self._get_back()
                    return
                if not found.is_held:
                    self._serve({}, 1)
                    return
                why = "it is about to serve it"
            except OpError as error:
                why = error.message
            waited = time.monotonic() - began
            if waited - noticed >= NOTICE_SECONDS:
                noticed = waited
                text = "%s waits for word of its copy from %s, for %.0f s so far: %s"
                _log.warning(text, self.me[0], self._keeper, waited, why)
            self._stopped.wait(RETRY_SECONDS)

    def _ask_keeper(self) -> pb.ViewResponse:
        """Where the own task is served, says who keeps its copy."""
        keeper = self._keeper
        assert keeper is not None
        return self._call(self._addresses.of(keeper), pb.ViewRequest(task=self.me[0]))

    def _get_back(self) -> None:
        """Follow whoever serves the own task, until it hands it over."""

        def got(values: Values, epoch: int) -> None:
            returning.close()
            _log.warning("%s is served by its own server again", self.me[0])
            self._serve(values, epoch)

        def gone() -> None:
            returning.close()
            _log.warning("%s is served nowhere: it begins without its variables", self.me[0])
            self._serve({}, 1)

        def where() -> str:
            answer = self._ask_keeper()
            if not answer.address and not answer.is_held:
                gone()
            return str(answer.address)

        with self._hosts:
            if self._stopped.is_set():
                return
            returning = self._return = _Return(self, where, got, self._dial_as)
            returning.start()

    @property
    def copy_stage(self) -> str:
        """How far the copy of the own task is, see `rules.Primary`; "" without one."""
        return "" if self._keeper is None or self._primary is None else self._primary.rules.stage

    def _serve(self, values: Values, epoch: int, follows: bool = True) -> None:
        """The own task is served here; with ``follows`` copies of other ones are kept."""
        moves = self._task.moves
        if moves.record is not None:
            where = self._task.master.moved.task_of
            settle(values, self.me[0], moves.record, where, self._stopped.wait)
        if self._stopped.is_set():
            return
        self._begin(values)
        values.clear()  # they belong to the server now, and hosting lasts as long as that
        journal = Journal(self._task.store)
        self._task.worker.journal = journal
        with self._hosts:
            if self._stopped.is_set():
                return
            self._primary = PrimaryRole(
                self.me[0],
                journal,
                Primary(self.me, epoch),
                self._witnesses,
                self._ask,
                self._is_dead,
                self._taken_over,
            )
            # Not before: until now another server has the name of this one.
            self._follows = follows
            early, self._early = self._early, []
        for link, message in early:
            self._primary.followed(link, message)
            if link.lost:
                self._primary.lost(link)
        self.changed()

    def _host_other(self, task: str, values: Values, epoch: int) -> None:
        """Serve another one's task until it is handed over, or this server stops."""
        found = len(values)
        hosted = self._host(task, values, epoch)
        with self._hosts:
            self._hosted[task] = hosted
            self._hosts.notify_all()
        tell(
            _log,
            "copy_serves",
            "%s is served by %s from now on, at %s, until it is started again: %d variables",
            *(task, self.me[0], hosted.address, found),
            level=logging.WARNING,
            task=self.me[0],
            fields={"served": task, "address": hosted.address, "variables": found},
        )
        while not hosted.wait(1.0) and not self._stopped.is_set():
            pass
        hosted.stop()
        self._hosted.pop(task, None)

    def _hosted_soon(self, task: str) -> HostedServer | None:
        """The server here of another one's task, which does not answer at its own address."""
        role = self._roles.get(task)
        if role is None:
            return None
        with self._hosts:
            self._hosts.wait_for(lambda: task in self._hosted or not role.holds, _SOON_SECONDS)
            return self._hosted.get(task)

    def close(self) -> None:
        """Keep and serve nothing any more."""
        with self._hosts:  # whoever begins something looks before, while it has this
            self._stopped.set()
            roles = (self._primary, *self._roles.values(), self._return)
        for role in roles:
            if role is not None:
                role.close()
        for hosted in self.hosted:
            hosted.stop()

    def _followed(self, link: Link, message: Any) -> None:
        """Somebody wants a copy. Nobody asks twice: who asks too early is answered later."""
        if message.task != self.me[0]:
            return
        with self._hosts:
            primary = self._primary
            if primary is None:
                self._early = [one for one in self._early if not one[0].lost]
                self._early.append((link, message))
        if primary is not None:
            primary.followed(link, message)

    # -- what others say --------------------------------------------------------------------------

    def on_frame(self, link: Link, message: Any, buffers: list[Any]) -> None:
        """A message about copies has arrived."""
        primary = self._primary if message.task == self.me[0] else None
        if isinstance(message, step_pb2.Follow):
            self._followed(link, message)
        elif isinstance(message, step_pb2.CopyKept):
            if primary is not None:
                primary.kept(link, message)
        elif (role := self._roles.get(message.task)) is not None:
            if isinstance(message, step_pb2.Copy):
                role.copied(link, message, buffers)
            else:
                role.told(link, message)

    def on_lost(self, link: Link) -> None:
        """A link is lost."""
        if self._primary is not None:
            self._primary.lost(link)
        for role in list(self._roles.values()):
            role.lost(link)

    def view(self, request: pb.ViewRequest) -> pb.ViewResponse:
        """Answer a control call: where a task is served, or what a witness says."""
        answer = pb.ViewResponse()
        answer.process.task, answer.process.incarnation = self.me
        if request.HasField("view"):
            wanted = view_of(request.view)
            if request.appoint:
                found: View | None = self._witness.appoint(request.task, wanted)
            else:
                found = self._witness.propose(request.task, wanted)
            if found is not None:
                answer.view.CopyFrom(to_message(found))
        elif (role := self._roles.get(request.task)) is not None:
            hosted = self._hosted_soon(request.task)
            answer.address = "" if hosted is None else hosted.address
            answer.is_held = role.holds
        return answer

    # -- other processes --------------------------------------------------------------------------

    def served_at(self, task: str, timeout: float) -> str:
        """The address where a task is served in the place of its own server; "" if nowhere."""
        keeper = self.keepers.get(task)
        if keeper is None:
            return ""
        if keeper == self.me[0]:
            hosted = self._hosted_soon(task)
            return "" if hosted is None else hosted.address
        request = pb.ViewRequest(task=task)
        try:
            answer = self._call(self._addresses.of(keeper), request, min(timeout, _ASK_SECONDS))
        except OpError:
            return ""
        return str(answer.address)

    def _call(self, address: str, request: Any, timeout: float = _ASK_SECONDS) -> pb.ViewResponse:
        answer: pb.ViewResponse = self._controls.at(address).call("View", request, timeout)
        return answer

    def _ask(self, place: Place, task: str, view: View, appoint: bool) -> View | None:
        member, address = place
        answer = self._call(address, proposal(task, view, appoint))
        if member_of(answer.process) != member or not answer.HasField("view"):
            return None
        return view_of(answer.view)

    def _process_at(self, address: str) -> Member:
        """Who answers there; raises OpError if nobody does."""
        return member_of(self._call(address, pb.ViewRequest()).process)

    def _answers(self, place: Place) -> bool:
        try:
            return self._process_at(place[1]) == place[0]
        except OpError:
            return False

    def _is_dead(self, place: Place) -> bool:
        """Whether another process is where it was, or nobody listens there."""
        with contextlib.suppress(OpError):
            return self._process_at(place[1]) != place[0]
        return is_nobody_at(place[1], _ASK_SECONDS)

    def _place_of(self, member: Member) -> Place:
        for link in self._task.peers.all():
            if (link.peer.task, link.peer.incarnation) == member and link.peer.address:
                return member, link.peer.address
        return member, self._addresses.of(member[0])

    def _connect_any(self, servers: Iterable[str]) -> None:
        """Connect to one of these: nobody needs a server that has just joined, yet."""
        for task in sorted(servers):
            with contextlib.suppress(OpError):
                self._task.peers.link(task, self._addresses.of(task), _LINK_SECONDS)
                return

    def _witnesses(self) -> list[Place]:
        """Other processes that are connected; servers first, for they stay."""
        own = {self.me[0], self._keeper}
        own.update(self._hosted)  # they end with this process
        found = {
            link.peer.task: ((link.peer.task, link.peer.incarnation), link.peer.address)
            for link in self._task.peers.all()
            if link.introduced and not link.lost and not is_client(link.peer.task)
        }
        if not found.keys() - own:
            self._connect_any(self.keepers.keys() - own)
        names = sorted(found.keys() - own, key=lambda t: (t not in self.keepers, t))
        return [found[name] for name in names]


class _Return:
    """A server that was started again gets its variables back; until then it is no task."""

    def __init__(
        self,
        standbys: Standbys,
        where: Callable[[], str],
        got: Callable[[Values, int], None],
        dial: DialAs,
    ) -> None:
        me = PeerInfo(f"{CLIENT}{uuid.uuid4()}", standbys.me[1])
        self._peers = Peers(self, lambda a, t, s, fallback=True: dial(me, a, t, s))
        task = standbys.me[0]

        def connect() -> Link:
            address = where()
            if not address:
                raise UnavailableError(None, None, f"{task} is served nowhere yet.")
            return self._peers.link(task, address, _LINK_SECONDS)

        self.role = StandbyRole(
            task,
            standbys.me,
            connect,
            standbys._place_of,
            standbys._ask,
            lambda place: False,
            lambda place: False,
            got,
            returns=True,
        )

    def start(self) -> None:
        self._peers.start()
        self.role.start()

    def close(self) -> None:
        self.role.close()
        threading.Thread(target=self._peers.close, daemon=True).start()

    def on_frame(self, link: Link, head: bytes, buffers: list[Any]) -> None:
        message = unpack(head)
        if isinstance(message, step_pb2.Copy):
            self.role.copied(link, message, buffers)
        elif isinstance(message, step_pb2.CopyRole):
            self.role.told(link, message)

    def on_lost(self, link: Link, reason: str) -> None:
        self.role.lost(link)

    def on_tick(self, now: float) -> None:
        """Nothing is due."""
