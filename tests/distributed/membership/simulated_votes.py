"""Voters and proposers on a virtual network: messages are late, lost or doubled, voters forget."""

from __future__ import annotations

import random
from typing import Any

from headrace.distributed.membership.record import ClusterRecord, changed
from headrace.distributed.membership.voting import (
    NO_BALLOT,
    NOTHING,
    Accepted,
    Ballot,
    Proposal,
    Voter,
)


class SimulatedVotes:
    """Proposers add entries to the record, one after the other each, until they are chosen.

    Attributes:
        chosen: the records that were chosen, by epoch.
        done: entries whose proposers were told so.
        losses: how often a voter has forgotten.
    """

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.names = [f"t{i}" for i in range(self.random.randint(2, 5))]
        self.initial = tuple(self.names[: self.random.randint(2, len(self.names))])
        self.starts = dict.fromkeys(self.names, 1)
        self.voters = {name: Voter((name, 1)) for name in self.names}
        self.proposers = [Proposer(self, i) for i in range(self.random.randint(1, 3))]
        self.messages: list[tuple[Any, ...]] = []
        self.chosen: dict[int, tuple[Ballot, ClusterRecord]] = {}
        self.keepers: dict[int, set[tuple[str, int]]] = {}
        self.last = 0
        self.done: set[str] = set()
        self.losses = self.moves = self.lost_messages = 0

    # -- what happens -----------------------------------------------------------------------------

    def step(self) -> None:
        """One event."""
        dice = self.random.random()
        if dice < 0.72 and self.messages:
            index = self.random.randrange(len(self.messages))
            message = self.messages[index]
            if self.random.random() > 0.05:
                self.messages.pop(index)
            self._deliver(*message)
        elif dice < 0.78 and self.messages:
            self.messages.pop(self.random.randrange(len(self.messages)))
            self.lost_messages += 1
        elif dice < 0.80:
            self._forget(self.random.choice(self.names))
        else:
            self.random.choice(self.proposers).go_on()

    def _deliver(self, kind: str, name: str, proposer: Proposer, proposal: Proposal, *more: Any):
        voter = self.voters[name]
        if kind == "prepare":
            self.messages.append(
                ("promise", name, proposer, proposal, voter.prepare(proposal.ballot))
            )
        elif kind == "accept":
            record, incarnation = more
            vote = voter.accept(proposal.ballot, record, incarnation)
            if vote.agrees:
                self._kept(name, proposal.ballot, record)
            self.messages.append(("accepted", name, proposer, proposal, vote))
        elif kind == "learn":
            voter.learn(Accepted(proposal.ballot, more[0]))
            if more[0] is voter._accepted.record:
                self._kept(name, proposal.ballot, more[0])
        elif proposal is proposer.proposal:
            proposer.answered(kind, name, more[0])

    def _kept(self, name: str, ballot: Ballot, record: ClusterRecord) -> None:
        known = self.chosen.get(record.epoch)
        if known is not None and known[0] == ballot:
            self.keepers[record.epoch].add((name, self.starts[name]))

    def _forget(self, name: str) -> None:
        """A voter is started again, where the promise of the module allows that: fewer forget at
        once than a majority."""
        if not self.chosen and any(self.starts[v] > 1 for v in self.names if v != name):
            return
        for epoch in sorted(self.chosen)[-1:]:
            voters = self.chosen[epoch][1].voters
            others = [v for v in voters if v != name]
            # A proposer that knows nothing asks the first voters: one of them remembers something.
            first = [self.voters[v] for v in self.initial if v != name]
            if all(v._accepted == NOTHING for v in first):
                return
            # Who has no say any more has left: nobody of that name comes again.
            if name not in voters:
                return
            # All others are as the record says, and one of them at least has it.
            if any(self.starts[v] != voters[v] for v in others):
                return
            if not any((v, voters[v]) in self.keepers[epoch] for v in others):
                return
        self.losses += 1
        self.starts[name] += 1
        self.voters[name] = Voter((name, self.starts[name]))

    # -- what must hold ---------------------------------------------------------------------------

    def was_chosen(self, proposal: Proposal, accepts: set[str]) -> None:
        """A proposer has seen its record accepted by a majority."""
        record = proposal.record
        if record.epoch == 0:
            return
        known = self.chosen.get(record.epoch)
        if known is not None:
            assert dict(known[1].wanted) == dict(record.wanted), "two records of one epoch"
        for epoch, (_, earlier) in self.chosen.items():
            older, newer = sorted([(epoch, earlier), (record.epoch, record)], key=lambda p: p[0])
            assert older[1].wanted.keys() <= newer[1].wanted.keys(), "a change is lost"
        if known is None or known[0] < proposal.ballot:
            self.chosen[record.epoch] = proposal.ballot, record
            self.keepers[record.epoch] = set()
        for name in self.names:
            if self.voters[name]._accepted.ballot == self.chosen[record.epoch][0]:
                self.keepers[record.epoch].add((name, self.starts[name]))

    def settle(self) -> None:
        """Without more faults, everybody's change is made."""
        for proposer in self.proposers:
            proposer.proposal = None
            for _ in range(200):
                if proposer.is_done():
                    break
                proposer.go_on(force=True)
                while self.messages:
                    self._deliver(*self.messages.pop(0))
            assert proposer.is_done(), "a change waits for ever"


class Proposer:
    """Adds ``key`` after ``key``, and sometimes a voter or takes one away."""

    def __init__(self, world: SimulatedVotes, index: int) -> None:
        self.world, self.index = world, index
        self.count = 0
        self.proposal: Proposal | None = None
        self.known = NOTHING
        #: What an attempt has found, with other voters than those that it has asked.
        self.elsewhere = NOTHING
        self.highest = NO_BALLOT
        self.accepts: set[str] = set()

    @property
    def key(self) -> str:
        return f"p{self.index}-{self.count}"

    def is_done(self) -> bool:
        return self.count >= 3

    def change(self, record: ClusterRecord) -> ClusterRecord:
        if self.key in record.wanted:
            return record
        made = changed(record, wanted={self.key: 1})
        dice = self.world.random.random()
        voters = dict(record.voters)
        if dice < 0.2 and len(voters) < len(self.world.names):
            name = next(n for n in self.world.names if n not in voters)
            voters[name] = self.world.starts[name]
        elif dice < 0.4 and len(voters) > 2:
            voters.popitem()
        return ClusterRecord(made.epoch, voters, made.tasks, made.wanted, made.moved)

    def go_on(self, force: bool = False) -> None:
        if self.is_done():
            return
        if self.proposal is None or force or self.world.random.random() < 0.2:
            if self.proposal is not None:
                self.highest = max(self.highest, self.proposal.highest)
            number = self.highest[0] + 1
            self.highest = ballot = (number, f"p{self.index}", 1)
            known = max(self.known, self.elsewhere, key=lambda a: a.ballot)
            voters = tuple(known.record.voters) or self.world.initial
            self.proposal = Proposal(ballot, voters, self.change, known)
            self.elsewhere = NOTHING
            for name in self.proposal.voters:
                self.world.messages.append(("prepare", name, self, self.proposal))

    def answered(self, kind: str, name: str, vote: Any) -> None:
        proposal = self.proposal
        assert proposal is not None
        before = proposal.stage
        (proposal.promised if kind == "promise" else proposal.accepted)(name, vote)
        self.highest = max(self.highest, proposal.highest)
        if proposal.stage == before:
            return
        if proposal.stage == "accepting":
            for voter, start in proposal.starts.items():
                self.world.messages.append(
                    ("accept", voter, self, proposal, proposal.record, start)
                )
        elif proposal.stage == "chosen":
            self.world.was_chosen(proposal, self.accepts)
            self.world.done.add(self.key)
            for voter in proposal.record.voters:
                self.world.messages.append(("learn", voter, self, proposal, proposal.record))
            self.known = proposal.newest
            self.count += 1
            self.proposal = None
        else:
            if proposal.stage == "moved":
                self.world.moves += 1
                self.elsewhere = proposal.newest
            self.proposal = None
