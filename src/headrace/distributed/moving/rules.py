"""How variables go from one task to another: events in, decisions out, no I/O, no clock.

Three sides take part: the *source* that has the variables, the *target* that gets them, and the
masters whose steps use them. In the manner of live migration (Clark et al., "Live migration of
virtual machines", NSDI 2005) the copy is made while updates go on, and again of what they have
changed, until little is left. Then the masters hold new steps, and when those under way have ended
the source refuses all that name the variables. What has changed last goes to the target; once that
has everything (it is *sealed*), the record of the cluster says where the variables are.

- Before the record is asked for the change, the source may give up at any time: it takes updates
  again.
- After that only the record decides, so the source refuses steps until it knows what that says.
- The change is for one epoch of the record. Whoever must be certain what it says (a target that has
  lost its source, or who serves the copy of either) changes the record first: what was not chosen
  by then never is.
- A master that is lost is left out: the source refuses its steps, and it fails or learns of the
  record.

>>> source, target = Giver(), Taker()
>>> worker = "/job:worker/replica:0/task:0", 11
>>> source.prepare([worker])
>>> source.prepared(worker)
>>> source.hold([worker])
>>> source.held(worker)
>>> source.stage, source.is_closed
('closing', True)
>>> source.quiet()  # no step under way names the variables any more
>>> target.seal()
>>> source.sealed()
>>> source.give_up()  # too late: the record is being changed
False
>>> source.decided()
>>> source.stage
'moved'
"""

from __future__ import annotations

from collections.abc import Iterable

#: A process that has a master: the name of its task, and which start of it this is.
Member = tuple[str, int]

__all__ = ["Giver", "Taker"]


class Giver:
    """The task that has the variables, for one move.

    Attributes:
        stage: "copying" (steps go on), "preparing" (masters make plans ahead), "prepared",
            "holding" (masters are asked to begin no more steps), "closing" (they do not, and those
            that were left out are refused), "sealing" (the last changes are on their way),
            "committing" (the record is asked for the change), "moved", "given up".
    """

    def __init__(self) -> None:
        self.stage = "copying"
        self._waiting: set[Member] = set()

    @property
    def is_closed(self) -> bool:
        """Whether steps that name the variables are refused."""
        return self.stage in ("closing", "sealing", "committing", "moved")

    @property
    def waiting(self) -> frozenset[Member]:
        """The masters that have not answered."""
        return frozenset(self._waiting)

    def prepare(self, masters: Iterable[Member]) -> None:
        """The target has a copy that lacks little; these masters make plans ahead."""
        if self.stage == "copying":
            self._ask("preparing", masters)

    def prepared(self, master: Member) -> None:
        """A master has made its plans."""
        self._answered("preparing", master)

    def copy_more(self) -> None:
        """More variables go along than was thought."""
        if self.stage in ("preparing", "prepared"):
            self.stage, self._waiting = "copying", set()

    def hold(self, masters: Iterable[Member]) -> None:
        """These masters begin no more steps that use the variables."""
        if self.stage == "prepared":
            self._ask("holding", masters)

    def joined(self, master: Member) -> bool:
        """A master begins to use the variables; whether it is to be told to hold its steps."""
        if self.stage == "holding":
            self._waiting.add(master)
        return self.stage == "holding" or self.is_closed

    def held(self, master: Member) -> None:
        """A master has no such step under way, and begins none."""
        self._answered("holding", master)

    def lost(self, master: Member) -> None:
        """A master is lost; its steps fail."""
        self._answered(self.stage, master)

    def quiet(self) -> None:
        """No part of a step runs here that names the variables."""
        if self.stage == "closing":
            self.stage = "sealing"

    def sealed(self) -> None:
        """The target has everything. From now on only the record decides."""
        if self.stage == "sealing":
            self.stage = "committing"

    def decided(self) -> None:
        """The record says that the target has the variables."""
        if self.stage == "committing":
            self.stage = "moved"

    def refused(self) -> None:
        """The record was not changed, for certain."""
        if self.stage == "committing":
            self.stage = "sealing"

    def give_up(self) -> bool:
        """Whether the move ends here, and steps go on as if nothing had been."""
        if self.stage in ("committing", "moved"):
            return False
        self.stage, self._waiting = "given up", set()
        return True

    def _ask(self, stage: str, masters: Iterable[Member]) -> None:
        self.stage, self._waiting = stage, set(masters)
        self._end_if_all_answered()

    def _answered(self, stage: str, master: Member) -> None:
        if self.stage != stage or stage not in ("preparing", "holding"):
            return
        self._waiting.discard(master)
        self._end_if_all_answered()

    def _end_if_all_answered(self) -> None:
        if not self._waiting:
            self.stage = "prepared" if self.stage == "preparing" else "closing"


class Taker:
    """The task that gets the variables, for one move.

    Attributes:
        stage: "filling", "sealed" (it has everything, and does not know what the record says),
            "owns", "dropped".
    """

    def __init__(self) -> None:
        self.stage = "filling"

    def seal(self) -> None:
        """The last changes have come."""
        if self.stage == "filling":
            self.stage = "sealed"

    def ended(self, is_moved: bool) -> None:
        """The source, or the record, says how it ended."""
        if self.stage in ("filling", "sealed"):
            self.stage = "owns" if is_moved and self.stage == "sealed" else "dropped"

    def lost(self) -> bool:
        """The source is lost; whether to settle it with the record, as that may have been changed,
        and to say with `ended` what came of it."""
        if self.stage == "filling":
            self.stage = "dropped"
        return self.stage == "sealed"
