"""A task as a member of its cluster: votes on the record, proposes changes, tells others of them.

While nothing changes this sends nothing: the epoch of the record travels with the calls by which
tasks find each other, and who sees a higher one asks for the record.
"""

from __future__ import annotations

import logging
import queue
import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from headrace.distributed.cluster.cluster_spec import SERVERS
from headrace.distributed.membership.addresses import Addresses
from headrace.distributed.membership.changes import VOTERS, leaving, with_more_voters, without
from headrace.distributed.membership.messages import (
    accepted_of,
    accepted_to_message,
    vote_of,
    vote_to_message,
)
from headrace.distributed.membership.record import GONE, ClusterRecord, changed
from headrace.distributed.membership.voting import (
    NOTHING,
    Accepted,
    Change,
    Proposal,
    Vote,
    Voter,
)
from headrace.distributed.protocol import control_pb2 as pb
from headrace.distributed.transport.base import PeerInfo
from headrace.errors import OpError, UnavailableError
from headrace.executor.threads import step_threads
from headrace.graph.devices import DeviceSpec

__all__ = ["Members"]

_log = logging.getLogger("headrace.distributed")

#: The tasks agree on a change within so many seconds, or it fails.
_CHANGE_SECONDS = 10.0
#: Seconds that a voter, or who is told of a record, has to answer.
_ASK_SECONDS = 2.0
#: So many tasks are asked for a record by whoever has none.
_MOST_ASKED = 20
#: The longest pause before a vote is tried again, in seconds; proposers must not stay in step.
_PAUSE = 0.2

#: ``call(address, name of the call, request, seconds)``: see `Control.call`.
Call = Callable[[str, str, Any, float], Any]


class Members:
    """What a task knows of its cluster and does for the record of it.

    Args:
        me: the task, its start, and where it listens.
        addresses: of all tasks; learns of new records.
        call: how others are asked.
        first: the tasks that may vote on the first change, the best first.
        clock: seconds, monotonic.
        stands_in: whether it serves the copy of the task, at an address of its own.

    Attributes:
        on_change: called with each new record, in the thread that learns of it; ``on_moved``:
            before tasks are forgotten that have left.
    """

    def __init__(
        self,
        me: PeerInfo,
        addresses: Addresses,
        call: Call,
        first: Sequence[str],
        clock: Callable[[], float] = time.monotonic,
        stands_in: bool = False,
    ) -> None:
        self._stands_in = stands_in
        self.me = me.task, me.incarnation
        self._address = me.address
        self.addresses = addresses
        self.on_change: Callable[[ClusterRecord], None] = lambda _: None
        self.on_moved: Callable[[ClusterRecord], None] = lambda _: None
        self._call = call
        self._first = list(first)
        self._clock = clock
        self._voter = Voter(self.me)
        self._chosen = NOTHING
        self._highest = 0
        self._lock = threading.Lock()
        self._closed = threading.Event()
        #: Proposals of one task take turns.
        self._proposing = threading.Lock()

    # -- what is known ----------------------------------------------------------------------------

    @property
    def record(self) -> ClusterRecord:
        """The newest record that this task knows."""
        return self.addresses.record

    @property
    def epoch(self) -> int:
        """That of the newest record."""
        return self.record.epoch

    @property
    def chosen(self) -> Accepted:
        """The newest record, and the ballot at which it was chosen."""
        return self._chosen

    def is_leaving(self) -> bool:
        """Whether this task is to leave: there are too many of its job, or it was replaced."""
        return not self.is_there() or self.me[0] in leaving(self.record.wanted, self.addresses)

    def is_there(self) -> bool:
        """Whether this task has its name, as the record says."""
        address = self.addresses.get(self.me[0])
        return address is not None if self._stands_in else address == self._address

    def is_back(self) -> bool:
        """Whether a task of this name has left, and this one is wanted in its place."""
        return self._back(self.record) is not self.record

    def _back(self, record: ClusterRecord) -> ClusterRecord:
        task = self.me[0]
        with_me = {**self.addresses, task: self._address}
        if (
            self._stands_in
            or record.tasks.get(task) != GONE
            or task in leaving(record.wanted, with_me)
        ):
            return record
        is_server = DeviceSpec.from_string(task).job == SERVERS
        return changed(record, record.is_sharing or is_server, tasks={task: self._address})

    def come_back(self) -> None:
        """Be in the cluster again, if `is_back`.

        Raises:
            UnavailableError: if too few of the others answer.
        """
        self.change(self._back)

    def learn(self, accepted: Accepted) -> None:
        """A record was chosen."""
        with self._lock:
            self._voter.learn(accepted)
            self._chosen = max(self._chosen, accepted, key=lambda a: a.ballot)
        if self.addresses.learn(accepted.record, lambda: self.on_moved(accepted.record)):
            self.on_change(accepted.record)

    def heard(self, epoch: int, address: str) -> None:
        """Another task, at an address, knows a record of this epoch."""
        if epoch > self.epoch and not self._closed.is_set():
            step_threads.submit(self.fetch, epoch, address)

    def fetch(self, epoch: int, address: str) -> None:
        """Learn from another task, if it knows a newer record."""
        if epoch <= self.epoch:
            return
        try:
            self.read_from(address)
        except OpError as error:
            _log.debug("%s does not tell its record: %s", address, error.message)

    def read_from(self, address: str, timeout: float = _ASK_SECONDS) -> None:
        """Learn what the task at an address knows to be chosen.

        Raises:
            OpError: if it does not answer.
        """
        request = pb.MembersRequest(kind=pb.MembersRequest.READ)
        self._learn_from(self._call(address, "Members", request, timeout))

    def _learn_from(self, answer: pb.MembersResponse) -> None:
        if answer.chosen.record.epoch:
            self.learn(accepted_of(answer.chosen))

    # -- votes ------------------------------------------------------------------------------------

    def answer(self, request: pb.MembersRequest) -> pb.MembersResponse:
        """Take part in a vote, or tell what is known."""
        kinds = pb.MembersRequest
        proposed = accepted_of(request.proposed)
        if request.kind == kinds.LEARN:
            self.learn(proposed)
        response = pb.MembersResponse()
        with self._lock:
            if request.kind == kinds.PREPARE:
                response = vote_to_message(self._voter.prepare(proposed.ballot))
            elif request.kind == kinds.ACCEPT:
                response = vote_to_message(self._voter.accept(*proposed, request.incarnation))
            chosen = self._chosen
        response.chosen.CopyFrom(accepted_to_message(chosen))
        return response

    def change(self, change: Change, timeout: float = _CHANGE_SECONDS) -> ClusterRecord:
        """Change the record of the cluster; returns the one that has the change.

        Raises:
            UnavailableError: if too few of those who vote answer in time. The change may have been
                made all the same.
            OpError: what ``change`` raises.
        """

        def change_and_add(record: ClusterRecord) -> ClusterRecord:
            made = change(record)
            return made if made is record else with_more_voters(record, made, self.addresses)

        with self._proposing:
            accepted = self._agree(change_and_add, self._clock() + timeout)
        if self.is_leaving():
            self._tell(accepted)  # nobody can ask this task later
        else:
            step_threads.submit(self._tell, accepted)
        return accepted.record

    def _agree(self, change: Change, end: float) -> Accepted:
        elsewhere = NOTHING
        while True:
            first = self._look_around(end) if self._chosen == NOTHING else ()
            with self._lock:
                self._highest += 1
                ballot = self._highest, *self.me
                known = max(self._chosen, elsewhere, key=lambda a: a.ballot)
            proposal = Proposal(ballot, first, change, known)
            problems = self._hold(proposal, end)
            with self._lock:
                self._highest = max(self._highest, proposal.highest[0])
            if proposal.stage == "chosen":
                self.learn(proposal.newest)
                return proposal.newest
            elsewhere = proposal.newest if proposal.stage == "moved" else NOTHING
            pause = random.uniform(0, _PAUSE)
            if self._clock() + pause >= end or self._closed.wait(pause):
                raise UnavailableError(None, None, _too_few(proposal, problems))

    def _look_around(self, end: float) -> Sequence[str]:
        """Ask others for the record that this task does not have.

        Returns:
            The voters of the first one, if there is none: the first task of all, so that there are
            never two first records, and others that answer.
        """
        request = pb.MembersRequest(kind=pb.MembersRequest.READ)
        live = set()
        for name, answer in self._ask(dict.fromkeys(self._first[:_MOST_ASKED], request), end):
            if not isinstance(answer, OpError):
                live.add(name)
                self._learn_from(answer)
        return [t for i, t in enumerate(self._first) if i == 0 or t in live][:VOTERS]

    def _hold(self, proposal: Proposal, end: float) -> dict[str, str]:
        """Hold a vote; returns what was wrong with voters."""
        kinds = pb.MembersRequest
        problems: dict[str, str] = {}
        asked = accepted_to_message(Accepted(proposal.ballot, ClusterRecord()))
        request = pb.MembersRequest(kind=kinds.PREPARE, proposed=asked)
        answers = self._ask(dict.fromkeys(proposal.voters, request), end)
        _count(proposal, proposal.promised, answers, problems)
        if proposal.stage == "accepting":
            asked = accepted_to_message(Accepted(proposal.ballot, proposal.record))
            requests = {
                name: pb.MembersRequest(kind=kinds.ACCEPT, proposed=asked, incarnation=start)
                for name, start in proposal.starts.items()
            }
            _count(proposal, proposal.accepted, self._ask(requests, end), problems)
        proposal.ended()
        return problems

    def _ask(
        self, requests: Mapping[str, Any], end: float, where: Callable[[str], str] | None = None
    ) -> Iterator[tuple[str, Any]]:
        """Ask tasks at the same time; gives their answers, or errors, as they come.

        Args:
            where: the address of each; by default that of a task with this name.
        """
        find = self.addresses.of if where is None else where
        answers: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()
        seconds = max(0.05, min(_ASK_SECONDS, end - self._clock()))

        def ask(name: str, request: Any) -> None:
            try:
                if name == self.me[0]:
                    answers.put((name, self.answer(request)))
                else:
                    answers.put((name, self._call(find(name), "Members", request, seconds)))
            except OpError as error:
                answers.put((name, error))
            except Exception as error:
                _log.exception("%s cannot be asked", name)
                answers.put((name, UnavailableError(None, None, str(error))))

        for name, request in requests.items():
            step_threads.submit(ask, name, request)
        for _ in requests:
            yield answers.get()

    def _tell(self, accepted: Accepted) -> None:
        """Tell all others of a record: who does not hear it now, hears of it later."""
        news = accepted_to_message(accepted)
        request = pb.MembersRequest(kind=pb.MembersRequest.LEARN, proposed=news)
        others = dict.fromkeys(self.addresses.everywhere() - {self._address}, request)
        for address, answer in self._ask(others, self._clock() + _ASK_SECONDS, str):
            if isinstance(answer, OpError):
                text = "%s was not told of epoch %d: %s"
                _log.debug(text, address, accepted.record.epoch, answer.message)

    # -- coming and going -------------------------------------------------------------------------

    def leave(self, timeout: float) -> None:
        """Take this task out of the cluster, unless another one has its name already.

        Raises:
            UnavailableError: if too few of the others answer.
        """
        if self.addresses.get(self.me[0]) == self._address:
            self.remove([self.me[0]], timeout)

    def remove(self, tasks: Sequence[str], timeout: float = _CHANGE_SECONDS) -> ClusterRecord:
        """Take tasks out of the cluster: all of them but for voters, of whom one goes at a time.

        Raises:
            UnavailableError: if too few of the others answer.
        """
        return self.change(lambda record: without(record, tasks, self.addresses), timeout)

    def close(self) -> None:
        """Propose nothing more."""
        self._closed.set()


def _count(
    proposal: Proposal,
    take: Callable[[str, Vote], None],
    answers: Iterable[tuple[str, Any]],
    problems: dict[str, str],
) -> None:
    """Count the answers of one round of a vote, until that is decided."""
    stage = proposal.stage
    for name, answer in answers:
        if isinstance(answer, OpError):
            problems[name] = answer.message
        else:
            take(name, vote_of(answer))
        if proposal.stage != stage:
            return


def _too_few(proposal: Proposal, problems: Mapping[str, str]) -> str:
    text = (
        f"The tasks of the cluster did not agree on a change in time. {', '.join(proposal.voters)} "
        "decide on it, and a majority of them must answer, all of them the first time"
    )
    found = "; ".join(f"{name}: {problem}" for name, problem in sorted(problems.items()))
    return f"{text}. {found or 'Others were faster each time'}."
