"""The shares of the parameter servers: what each has, and who moves what when their number changes.

While the record of the cluster says so, the first server that answers shares variables out anew,
one move after the other: it asks all for what they have, and the planner for what is to go where.
Another one goes on where it dies. A server that is to leave does so when it has nothing any more.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, NamedTuple

from headrace.distributed.cluster.cluster_spec import SERVERS, task_name
from headrace.distributed.links.liveness import is_nobody_at
from headrace.distributed.membership.changes import indices, leaving
from headrace.distributed.membership.record import ClusterRecord, changed
from headrace.distributed.moving.planner import plan_moves
from headrace.distributed.protocol import control_pb2 as pb
from headrace.distributed.services.control import Handler
from headrace.distributed.services.dialling import ask_endpoint
from headrace.distributed.services.members import Members
from headrace.distributed.services.serving import Serving
from headrace.errors import (
    AbortedError,
    DeadlineExceededError,
    NotFoundError,
    OpError,
    UnavailableError,
)

__all__ = ["Shares"]

_log = logging.getLogger("headrace.distributed")

#: A server tells what it has within so many seconds; masters what belongs together, meanwhile,
#: within the second; whether it is there, within the third.
_ASK_SECONDS, _GROUPS_SECONDS, _THERE_SECONDS = 5.0, 2.0, 1.0
#: Between two looks at what there is to do, in seconds.
_PAUSE = 1.0
#: A move may take so long, and the call for it a little longer.
_MOVE_SECONDS, _MORE_SECONDS = 60.0, 10.0
#: What steps keep from moving is passed over for so long, in seconds.
_PASSED_SECONDS = 10.0
#: So many bytes go at once: steps are held for what changes of them at the last moment.
_BATCH_BYTES = 256 << 20
#: Steps on their way to a server that leaves have ended when none has come for so many seconds.
_QUIET_SECONDS, _LONGEST_QUIET = 1.0, 20.0
#: What may be otherwise at the next look.
_PASSING = (AbortedError, DeadlineExceededError, NotFoundError, UnavailableError)


class Share(NamedTuple):
    """Variables that must be at one task.

    Attributes:
        keys: theirs; ``bytes``: of their values.
        traffic: bytes in a second that steps bring or take.
    """

    keys: frozenset[str]
    bytes: int
    traffic: float


class Shares:
    """What one server does so that each has its share.

    Args:
        server: that of the task; ``stop``: stops it soon.
        wait_until_ready: waits until it is complete.

    Attributes:
        clock: tells seconds.
    """

    def __init__(
        self, server: Serving, wait_until_ready: Callable[[], None], stop: Callable[[], None]
    ) -> None:
        self._server = server
        self._wait_until_ready = wait_until_ready
        self._stop = stop
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self._is_running = False
        #: By the groups that the first look has found: a share must not change while it is made.
        self._weights: dict[str, float] = {}
        #: What was logged last.
        self._said = ""
        #: What cannot move, and why.
        self._fixed: dict[str, str] = {}
        #: What did not move with others: it goes alone. Until when what did not move alone waits.
        self._single: set[str] = set()
        self._passed: dict[str, float] = {}
        self.clock: Callable[[], float] = time.monotonic

    def handlers(self) -> dict[str, Handler]:
        """The calls by name."""
        return {"Shares": self._tell, "Joined": self._tell_groups}

    @property
    def _members(self) -> Members:
        return self._server.members

    # -- what there is ----------------------------------------------------------------------------

    def _tell_groups(self, request: pb.JoinedRequest) -> pb.JoinedResponse:
        """Which variables must be at one task, as the graphs of the own sessions have it."""
        self._wait_until_ready()
        found = self._server.task.master.held_steps.groups(set(request.keys))
        return pb.JoinedResponse(groups=[pb.GroupDef(keys=sorted(g)) for g in found])

    def _tell(self, request: pb.SharesRequest) -> pb.SharesResponse:
        """What this server has."""
        self._wait_until_ready()
        task = self._server.task
        sizes = task.moves.sizes()
        traffic = task.worker.traffic()
        response = pb.SharesResponse()
        for group in _merged(sizes, self._groups(sizes.keys())):
            response.groups.add(
                keys=sorted(group),
                bytes=sum(sizes[key] for key in group),
                traffic=sum(traffic.get(key, 0.0) for key in group),
            )
        return response

    def _groups(self, keys: Collection[str]) -> list[set[str]]:
        """Those that masters know whose steps use some of these variables."""
        task = self._server.task
        masters = {name or task.me.task for name, _ in task.worker.masters_of(frozenset(keys))}
        request = pb.JoinedRequest(keys=sorted(keys))
        answers = self._ask(masters, "Joined", request, _GROUPS_SECONDS)
        found = [a for a in answers.values() if not isinstance(a, OpError)]
        return [set(group.keys) for answer in found for group in answer.groups]

    def _ask(self, tasks: Iterable[str], name: str, request: Any, seconds: float) -> dict[str, Any]:
        """Ask tasks at the same time: their answers, or errors."""

        def ask(task: str) -> Any:
            try:
                return self._call(task, name, request, seconds)
            except OpError as error:
                return error

        asked = sorted(tasks)
        if not asked:
            return {}
        with ThreadPoolExecutor(len(asked)) as pool:
            return dict(zip(asked, pool.map(ask, asked), strict=True))

    def _call(self, task: str, name: str, request: Any, seconds: float) -> Any:
        """Call a task where it is served."""

        def call(address: str, seconds: float) -> Any:
            return self._server.controls.at(address).call(name, request, seconds)

        server = self._server
        return server.where_served(task, self._members.addresses.of(task), seconds, call)

    # -- what is to be done -----------------------------------------------------------------------

    def changed(self, record: ClusterRecord) -> None:
        """There is a new record."""
        if not self._has_work(record):
            return
        with self._lock:
            if self._is_running or self._closed.is_set():
                return
            self._is_running = True
        threading.Thread(target=self._work, name="headrace shares", daemon=True).start()

    def _has_work(self, record: ClusterRecord) -> bool:
        is_server = self._members.me[0] in self._servers()
        return is_server and (record.is_sharing or self._members.is_leaving())

    def _servers(self) -> list[str]:
        return [task_name(SERVERS, i) for i in indices(SERVERS, self._members.addresses)]

    def _work(self) -> None:
        self._weights, self._fixed = {}, {}
        self._single, self._passed = set(), {}
        while not self._closed.is_set():
            with self._lock:
                self._is_running = self._has_work(self._members.record)
                if not self._is_running:
                    return
            try:
                if self._members.is_leaving() and self._leave():
                    return
                if self._members.record.is_sharing and self._is_first() and self._move_one():
                    continue
            except OpError as error:
                self._say(f"{self._members.me[0]} shares out later: {error.message}")
            except Exception:
                _log.exception("%s cannot share variables out", self._members.me[0])
            self._closed.wait(_PAUSE)

    def _is_first(self) -> bool:
        """Whether no server before this one answers."""
        servers = self._servers()
        before = servers[: servers.index(self._members.me[0])]
        return not any(map(self._is_there, before))

    def _is_there(self, task: str) -> bool:
        def ask(address: str, seconds: float) -> bool:
            found = ask_endpoint(self._server.controls, address, "", seconds)
            return bool(found.task == task)

        address = self._members.addresses.of(task)
        try:
            return self._server.where_served(task, address, _THERE_SECONDS, ask)
        except OpError:
            return False

    def _move_one(self) -> bool:
        """Make the next move; false where it is to be looked at again later."""
        record, servers = self._members.record, self._servers()
        answers = self._ask(servers, "Shares", pb.SharesRequest(), _ASK_SECONDS)
        missing = {t: a for t, a in answers.items() if isinstance(a, OpError)}
        shares = {
            task: {min(g.keys): Share(frozenset(g.keys), g.bytes, g.traffic) for g in a.groups}
            for task, a in answers.items()
            if task not in missing
        }
        retiring = set(leaving(record.wanted, servers))
        if self._leave_out_dead(retiring & missing.keys()):
            return True
        self._leave_out_twins(shares)
        planned = self._planned(shares, retiring)
        moves = self._batch(planned, shares)
        if planned and not moves:
            return False
        if moves:
            return self._make(*moves[0], [shares[moves[0][1]][name] for name, _, _ in moves])
        if missing:
            self._say(f"{', '.join(sorted(missing))} may have variables, and cannot be asked")
        if missing or any(shares.get(task) for task in retiring):
            self._fixed.clear()  # what could not move may be able to
            return False
        self._finish(record)
        return True

    def _leave_out_dead(self, tasks: Collection[str]) -> bool:
        """Take those tasks out of the cluster whose processes have ended; whether there were any.

        They were to leave, so nobody needs to start them again. Where there are copies these are
        served, and leave.
        """
        if self._server.first_cluster.replicas:
            return False
        addresses = self._members.addresses
        dead = [t for t in sorted(tasks) if is_nobody_at(addresses.of(t), _THERE_SECONDS)]
        if not dead:
            return False
        text = "%s was to leave, and has ended: its variables begin anew where others stand for it"
        _log.warning(text, ", ".join(dead))
        self._members.remove(dead)
        return True

    def _leave_out_twins(self, shares: dict[str, dict[str, Share]]) -> None:
        """Variables of one name at two tasks stay where they are: the record has no words for both,
        but for a copy of what has moved."""
        seen: dict[str, str] = {}
        moved = self._members.record.moved
        for task, groups in shares.items():
            for name in list(groups):
                if moved.get(name, task) != task:
                    del groups[name]
                elif seen.setdefault(name, task) != task:
                    self._say(f"Variable {name} is at {seen[name]} and at {task}: neither moves")
                    del groups[name]
                    shares[seen[name]].pop(name, None)

    def _planned(
        self, shares: Mapping[str, Mapping[str, Share]], retiring: Collection[str]
    ) -> list[tuple[str, str, str]]:
        """All moves that there are to make."""
        self._weigh([group for groups in shares.values() for group in groups.values()])
        sizes = {
            task: {n: self._weights[n] for n in groups if n not in self._fixed}
            for task, groups in shares.items()
        }
        if not shares.keys() - set(retiring):
            return []
        return plan_moves(sizes, list(shares), retiring)

    def _batch(
        self,
        planned: Sequence[tuple[str, str, str]],
        shares: Mapping[str, Mapping[str, Share]],
    ) -> list[tuple[str, str, str]]:
        """The next moves: of the variables of one server that go to the same other one, those that
        go at once."""
        batch: list[tuple[str, str, str]] = []
        size, now = 0, self.clock()
        for name, source, to in planned:
            if self._passed.get(name, now) > now:
                continue
            size += shares[source][name].bytes
            is_other = batch and ((source, to) != batch[0][1:] or size > _BATCH_BYTES)
            if is_other or (batch and name in self._single):
                continue
            batch.append((name, source, to))
            if name in self._single:
                break
        return batch

    def _weigh(self, groups: Sequence[Share]) -> None:
        """Weigh what is new: half by bytes, half by traffic."""
        size = sum(group.bytes for group in groups) or 1
        traffic = sum(group.traffic for group in groups) or 1.0
        for group in groups:
            weight = group.bytes / size + group.traffic / traffic
            self._weights.setdefault(min(group.keys), weight)

    def _make(self, name: str, source: str, to: str, groups: Sequence[Share]) -> bool:
        """Let a server give groups to another one; false where that is to be tried later."""
        keys = sorted({key for group in groups for key in group.keys})
        request = pb.MoveRequest(variables=keys, task=to, timeout=_MOVE_SECONDS)
        try:
            self._call(source, "Move", request, _MOVE_SECONDS + _MORE_SECONDS)
        except _PASSING as error:
            self._say(f"{keys} are not moved from {source} to {to} yet: {error.message}")
            return self._pass_over(error, [min(group.keys) for group in groups])
        except OpError as error:
            self._say(f"{keys} cannot move from {source} to {to}: {error.message}")
            self._fixed.update({min(group.keys): error.message for group in groups})
        return True

    def _pass_over(self, error: OpError, names: Sequence[str]) -> bool:
        """Let others go before these, if it is steps that keep them; whether to go on at once."""
        if not isinstance(error, (AbortedError, DeadlineExceededError)):
            return False
        if len(names) > 1:
            self._single.update(names)
        else:
            self._passed[names[0]] = self.clock() + _PASSED_SECONDS
        return True

    def _say(self, text: str) -> None:
        """Log what holds things up, once."""
        if text != self._said:
            self._said = text
            _log.warning("%s", text)

    def _finish(self, planned: ClusterRecord) -> None:
        """All have their shares, unless the servers are others by now."""

        def finished(record: ClusterRecord) -> ClusterRecord:
            now, then = (replace(r, epoch=0, voters={}, moved={}) for r in (record, planned))
            return changed(record, is_sharing=False) if now == then else record

        self._members.change(finished)
        _log.info("%s: all servers have their shares", self._members.me[0])

    # -- leaving ----------------------------------------------------------------------------------

    def _leave(self) -> bool:
        """Leave the cluster, if nothing is here any more; whether it has."""
        members, task = self._members, self._server.task
        left = task.moves.what_is_left()
        if left:
            if not members.record.is_sharing:
                _log.info("%s is to leave, and still has %s", members.me[0], ", ".join(left))
                members.change(lambda record: changed(record, is_sharing=True))
            return False
        try:
            # Nobody makes a variable here between the last look and the change.
            if not task.worker.retire() or task.moves.what_is_left():
                return False
            members.remove([members.me[0]])
        finally:
            if not self._has_left():
                task.worker.open_parts()
        _log.info("%s has nothing any more, and leaves", members.me[0])
        self._await_quiet()
        self._stop()
        return True

    def _has_left(self) -> bool:
        return not self._members.is_there()

    def _await_quiet(self) -> None:
        """Wait for steps of those who have not heard of it."""
        worker, run = self._server.task.worker, -1
        for _ in range(int(_LONGEST_QUIET / _QUIET_SECONDS)):
            if worker.steps_run == run and not worker.running():
                return
            run = worker.steps_run
            if self._closed.wait(_QUIET_SECONDS):
                return

    def close(self) -> None:
        """Do nothing more."""
        self._closed.set()


def _merged(keys: Collection[str], groups: Iterable[set[str]]) -> list[set[str]]:
    """Disjoint groups of all keys, such that each of the given groups is in one of them."""
    found: list[set[str]] = [{key} for key in keys]
    for group in groups:
        touched = [f for f in found if not f.isdisjoint(group)]
        if len(touched) > 1:
            found = [f for f in found if f not in touched] + [set().union(*touched)]
    return found
