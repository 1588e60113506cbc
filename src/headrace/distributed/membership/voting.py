"""How tasks agree on the next record of their cluster: events in, decisions out, no I/O.

This is CASPaxos (Rystsov, "CASPaxos: Replicated State Machines without logs", 2018), a register
that a majority of *voters* keeps and that is changed by functions, in two rounds: a proposer has
its ballot promised by a majority, which says what it has accepted last, and then has a change of
that accepted. There is no leader, and no message while nothing changes.

Voters keep nothing on disk: one that was started again has forgotten. So each record names the
start of every voter that had a say in it. A proposer relies on a majority of those that the newest
record names, or on all voters where fewer are left; and only that start of a voter accepts which
has promised. The first record needs all voters, twice: so even proposers with other ideas of who
votes make one first record, as long as their ideas have a task in common. What is chosen is kept
while fewer voters than a majority forget at once, and one of the first ones knows any record,
whoever is slow, cut off or dead beside them.

>>> from headrace.distributed.membership.record import changed
>>> voters = {name: Voter((name, 1)) for name in "abc"}
>>> def add(record):
...     return changed(record, wanted={"worker": record.wanted.get("worker", 0) + 1})
>>> proposal = Proposal((1, "a", 1), "abc", add)
>>> for name in "abc":
...     proposal.promised(name, voters[name].prepare(proposal.ballot))
>>> proposal.stage
'accepting'
>>> for name in "abc":
...     proposal.accepted(name, voters[name].accept(proposal.ballot, proposal.record, 1))
>>> proposal.stage, proposal.record.wanted["worker"]
('chosen', 1)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import NamedTuple

from headrace.distributed.membership.record import ClusterRecord

__all__ = ["NOTHING", "NO_BALLOT", "Accepted", "Ballot", "Change", "Proposal", "Vote", "Voter"]

#: Number, task and start of a proposer: no two are equal.
Ballot = tuple[int, str, int]
#: Makes the next record of one; returns it unchanged where there is nothing to do, and raises where
#: the change makes no sense.
Change = Callable[[ClusterRecord], ClusterRecord]

NO_BALLOT: Ballot = (0, "", 0)


class Accepted(NamedTuple):
    """A record, and the ballot at which it was accepted."""

    ballot: Ballot
    record: ClusterRecord


NOTHING = Accepted(NO_BALLOT, ClusterRecord())


class Vote(NamedTuple):
    """The answer of a voter.

    Attributes:
        agrees: whether it promises, or accepts.
        incarnation: which start of the voter this is.
        highest: the ballot that it has promised.
        accepted: the last that it has accepted.
    """

    agrees: bool
    incarnation: int
    highest: Ballot
    accepted: Accepted = NOTHING


class Voter:
    """One start of a task that has a say."""

    def __init__(self, me: tuple[str, int]) -> None:
        self._me = me
        self._highest = NO_BALLOT
        self._accepted = NOTHING

    def prepare(self, ballot: Ballot) -> Vote:
        """Promise to accept nothing of lower ballots."""
        agrees = ballot > self._highest
        if agrees:
            self._highest = ballot
        return self._vote(agrees)

    def accept(self, ballot: Ballot, record: ClusterRecord, incarnation: int) -> Vote:
        """Accept a record, unless a higher ballot was promised, or it was another start of this
        task that has promised this one."""
        agrees = ballot >= self._highest and incarnation == self._me[1]
        if agrees:
            self._keep(Accepted(ballot, record))
        return self._vote(agrees)

    def learn(self, chosen: Accepted) -> None:
        """A record was chosen: whoever keeps it makes it safer."""
        # Also after a higher promise: whoever got that hears of what was chosen from others.
        if chosen.ballot > self._accepted.ballot:
            self._keep(chosen)

    def _keep(self, accepted: Accepted) -> None:
        self._highest = max(self._highest, accepted.ballot)
        self._accepted = accepted

    def _vote(self, agrees: bool) -> Vote:
        return Vote(agrees, self._me[1], self._highest, self._accepted)


class Proposal:
    """One attempt to change the record.

    Args:
        ballot: unique; higher than those that were seen.
        first: the voters of the first record, if there is none yet.
        change: see `Change`.
        known: the newest record that the proposer knows: one that was chosen, or that the attempt
            just before has found with other voters than those that it has asked.

    Attributes:
        stage: "preparing", "accepting", "chosen"; "refused": another proposer was faster; "moved":
            there are other voters, see `newest`; "undecided": too few have answered.
        record: what is being accepted.
        newest: what was accepted last of all that this has seen.
        highest: the highest ballot that a voter has promised.
    """

    def __init__(
        self,
        ballot: Ballot,
        first: Iterable[str],
        change: Change,
        known: Accepted = NOTHING,
    ) -> None:
        self.ballot = ballot
        self.newest = known
        self.voters = list(known.record.voters or first)
        self.stage = "preparing"
        self.highest = ballot
        self.record = ClusterRecord()
        self._change = change
        self._votes: dict[str, Vote] = {}
        self._refusals: set[str] = set()
        self._accepts: set[str] = set()
        self._majority = self._needed = len(self.voters) // 2 + 1

    def promised(self, name: str, vote: Vote) -> None:
        """A voter has answered the first round."""
        self._heard(name, vote)
        if self.stage != "preparing":
            return
        if not vote.agrees:
            self._refused(name)
            return
        self._votes[name] = vote
        self.newest = max(self.newest, vote.accepted, key=lambda a: a.ballot)
        named = self.newest.record.voters
        remember = sum(named.get(n) == v.incarnation for n, v in self._votes.items())
        if remember >= self._majority or len(self._votes) == len(self.voters):
            self._go_on()

    def _go_on(self) -> None:
        found = self.newest.record
        if self.newest == NOTHING:
            found = ClusterRecord(voters=dict.fromkeys(self.voters, 0))
            self._needed = len(self.voters)
        if set(found.voters) != set(self.voters):
            self.stage = "moved"
            return
        wanted = self._change(found)
        starts = self.starts
        voters = {name: starts.get(name, start) for name, start in wanted.voters.items()}
        self.record = replace(wanted, voters=voters)
        self.stage = "accepting"

    @property
    def starts(self) -> dict[str, int]:
        """The voters that have promised: those, at these starts, are to accept."""
        return {name: vote.incarnation for name, vote in self._votes.items()}

    def accepted(self, name: str, vote: Vote) -> None:
        """A voter has answered the second round."""
        self._heard(name, vote)
        if self.stage != "accepting":
            return
        if not vote.agrees:
            self._refused(name)
            return
        if name in self._votes:
            self._accepts.add(name)
        if len(self._accepts) >= self._needed:
            self.stage, self.newest = "chosen", Accepted(self.ballot, self.record)

    def _refused(self, name: str) -> None:
        self._refusals.add(name)
        if len(self._refusals) > len(self.voters) - self._needed:
            self.stage = "refused"

    def _heard(self, name: str, vote: Vote) -> None:
        self.highest = max(self.highest, vote.highest)

    def ended(self) -> None:
        """No more answers will come."""
        if self.stage in ("preparing", "accepting"):
            self.stage = "undecided"
