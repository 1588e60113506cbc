"""The rule by which ranges of the input are dealt out, without clocks or messages."""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Sequence

__all__ = ["DispenserRules"]


class DispenserRules:
    """Which of the deals 0, 1, 2 ... to come nobody has had, who has one, and which are done.

    A deal is one range of the input in one epoch. It is dealt to one participant at a time, in
    order, and is done when that one says so. What participants hold when they leave is dealt again
    before all others. Hence each deal is done once, and is dealt once if nobody leaves with it.

    Nobody waits for ever: a deal that is not done is either to be had or held by a participant
    that is there, and that one finishes or leaves.

    Args:
        total: how many deals there are; None for no end.
        following, unfinished: the state to go on from: see `following` and `unfinished`.

    Attributes:
        members: the participants that are there.
        held: who has a deal that is not done.
        following: the first deal that nobody has had yet.
    """

    def __init__(
        self, total: int | None, following: int = 0, unfinished: Sequence[int] = ()
    ) -> None:
        self.total = total
        self.members: set[Hashable] = set()
        self.held: dict[int, Hashable] = {}
        self.following = following
        self._returned = sorted(deal for deal in unfinished if total is None or deal < total)

    def join(self, key: Hashable) -> None:
        """A participant is there."""
        self.members.add(key)

    def leave(self, key: Hashable) -> None:
        """A participant has ended, died or cannot be reached."""
        self.members.discard(key)
        for deal in [deal for deal, holder in self.held.items() if holder == key]:
            del self.held[deal]
            heapq.heappush(self._returned, deal)

    @property
    def is_any_left(self) -> bool:
        """Whether there is a deal that nobody has."""
        return bool(self._returned) or self.total is None or self.following < self.total

    @property
    def is_over(self) -> bool:
        """Whether all deals are done."""
        return not self.is_any_left and not self.held

    def holds(self, key: Hashable) -> bool:
        """Whether a participant has deals that are not done."""
        return key in self.held.values()

    def take(self, key: Hashable) -> int | None:
        """The next deal, for a participant that is there; None if nothing is left now."""
        if key not in self.members or not self.is_any_left:
            return None
        if self._returned:
            deal = heapq.heappop(self._returned)
        else:
            deal, self.following = self.following, self.following + 1
        self.held[deal] = key
        return deal

    def done(self, key: Hashable, deal: int) -> bool:
        """A participant has finished a deal; whether that counts, as it still had it."""
        if self.held.get(deal) != key:
            return False
        del self.held[deal]
        return True

    def unfinished(self) -> list[int]:
        """The deals before `following` that are not done, in order."""
        return sorted([*self.held, *self._returned])
