"""The rule by which replicas wait for each other, without clocks, threads or messages.

What it decides, the published SyncReplicasOptimizer leaves to the user's numbers: how many
gradients an update waits for, and how many tokens it gives out. With as many replicas as were
announced the numbers are the published ones. Replicas that have left are not waited for.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

__all__ = ["BarrierRules", "LiveReplica"]


@dataclass(frozen=True)
class LiveReplica:
    """A replica that is there. ``name`` is for messages."""

    name: str
    is_chief: bool


class BarrierRules:
    """Who trains together, and when the gradients of a step are to be applied.

    *Live* replicas are those that are there and those that have never come yet, of which there
    are ``total`` at first. With all of them there, an update needs ``needed`` gradients, and gives
    out a token to each replica, or for each gradient if these are more. With fewer it needs at
    most one gradient of each (or their share, where each computes several); with more, one more for
    each that is there beyond ``total``.

    Why nobody waits for ever: an update gives out ``max(needs, live)`` tokens, and each brings one
    gradient of its step, unless its replica leaves. A step never needs more than its tokens can
    still bring (``_supply``), and who joins raises what later steps need only. Who joins reads
    its step after it was counted: if its gradient is stale, an update came between and had a
    token for it.

    Args:
        needed: gradients of an update; ``total``: replicas that are announced.

    Attributes:
        step: the global step; arrivals with earlier ones are stale.
        needs: how many gradients the update under way waits for.
        leader: the replica that applies gradients: the chief if it is there, else the one that
            has been there longest; none before the first chief has come.
        busy: the replica that begins to lead or applies gradients, until it waits for more: by then
            it has given out all tokens. No other begins before.
        has_started: whether a leader has said from which step training goes on.
    """

    def __init__(self, needed: int, total: int) -> None:
        self.needed = needed
        self.total = total
        self.members: dict[Hashable, LiveReplica] = {}
        self.step = 0
        self.has_started = False
        self.needs = needed
        self.leader: Hashable | None = None
        self.busy: Hashable | None = None
        self._awaited = total
        #: How many gradients of the step can come at least, with all that have come.
        self._supply = max(needed, total)
        self._arrived = 0
        self._on_their_way: set[Hashable] = set()
        self._has_begun = False
        self._is_first_lead = True
        #: The last leader has left before it gave out the tokens of its update.
        self._owes_tokens = False

    @property
    def awaited(self) -> int:
        """How many announced replicas have never come."""
        return self._awaited

    @property
    def live(self) -> int:
        """How many replicas are there or still to come."""
        return len(self.members) + self._awaited

    @property
    def arrived(self) -> int:
        """How many gradients of the step have come."""
        return self._arrived

    @property
    def lacks(self) -> bool:
        """Whether gradients that have come wait for more."""
        return 0 < self._arrived < self.needs

    def _needs_of_live(self) -> int:
        if self.needed <= self.total:
            # Who came beyond those that were announced computes gradients too; the number of
            # backups stays.
            more = max(0, self.live - self.total)
            return min(self.needed + more, max(1, self.live))
        return max(1, self.needed * self.live // self.total)

    # -- replicas --------------------------------------------------------------------------------

    def join(self, key: Hashable, replica: LiveReplica) -> None:
        """A replica is there. Once more for the same key only renews it."""
        if key not in self.members:
            self._supply += not self._awaited
            self._awaited = max(0, self._awaited - 1)
        self.members[key] = replica
        self._has_begun |= replica.is_chief
        self._elect()

    def leave(self, key: Hashable) -> None:
        """A replica has ended, died or cannot be reached."""
        if self.members.pop(key, None) is None:
            return
        self._on_their_way.discard(key)
        self.resign(key)
        self._supply -= 1
        self.needs = max(1, min(self.needs, self._needs_of_live(), self._supply))
        self._elect()

    def _elect(self) -> None:
        if not self._has_begun:
            return
        chiefs = [k for k, r in self.members.items() if r.is_chief]
        # The last chief: one that was started again, whose old session is not known to be dead.
        if chiefs:
            self.leader = chiefs[-1]
        elif self.leader not in self.members:
            self.leader = next(iter(self.members), None)

    def leads(self, key: Hashable) -> bool:
        """Whether it is this replica's turn to lead, and no other is at it."""
        return key == self.leader and self.busy in (None, key)

    def begin_to_lead(self, key: Hashable) -> None:
        """``key`` leads from now on."""
        self.busy = key

    def resign(self, key: Hashable) -> None:
        """``key`` leads no more, wherever it was: the next leader gives out the tokens."""
        if self.busy == key:
            self.busy, self._owes_tokens = None, True

    def tokens_to_begin(self) -> int:
        """How many tokens a new leader has to give out, its step set; -1: as the user says.

        The first leader starts the training. Later ones give out those tokens that the one before
        had no time for.
        """
        if self._owes_tokens:
            # Who was not on its way, but waiting, spends a token on a gradient that does not count.
            return self._tokens() + len(self._on_their_way)
        return -1 if self._is_first_lead else 0

    def begin_to_wait(self, key: Hashable) -> None:
        """``key`` has done all that it leads to, and given out all tokens."""
        if key == self.leader:
            self._is_first_lead = self._owes_tokens = False
        if key == self.busy:
            self.busy = None

    # -- steps -----------------------------------------------------------------------------------

    def set_step(self, step: int) -> None:
        """Training goes on from this step, which accumulators have been told before.

        Going back, after half an update or from a checkpoint, voids what has come. A gradient on
        its way may have met some accumulators before and some after they were told: the next one
        of each replica does not count either. All get new tokens, for that one, too.
        """
        if step < self.step:
            self._void()
        self.step, self.has_started = step, True

    def lose(self, begun_anew: int) -> None:
        """So many accumulators are new, since their servers were lost: told before `set_step`.

        What they had of the step under way will never be enough: all replicas make it again.
        """
        if begun_anew and self.has_started:
            self._void()

    def _void(self) -> None:
        """Begin the step again."""
        self._arrived = 0
        self._on_their_way = set(self.members)
        self._owes_tokens = True

    def arrive(self, key: Hashable, local_step: int) -> bool:
        """``key`` has added its gradients to all accumulators; whether they count."""
        if key in self._on_their_way:
            self._on_their_way.remove(key)
            return False
        if local_step < self.step:
            return False
        self._arrived += 1
        return True

    def is_ready(self, key: Hashable) -> bool:
        """Whether ``key`` may apply the gradients of the step now."""
        if self.leader is not None and not self.leads(key):
            return False
        return self._arrived >= self.needs

    def begin_round(self, key: Hashable) -> int:
        """``key`` applies gradients; how many each accumulator has at least. Counts the step."""
        count = self._arrived
        self.busy = key if key in self.members else None
        self.step += 1
        self._arrived = 0
        return count

    def _tokens(self) -> int:
        self.needs = self._needs_of_live()
        self._supply = max(self.needs, self.live)
        return self._supply

    def end_round(self) -> int:
        """The gradients are applied; how many tokens to give out for the next step."""
        return self._tokens()
