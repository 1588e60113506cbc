"""Who serves a task, who keeps its copy and who decides between them: events in, decisions out.

A *view* says that. Each view has an epoch, and follows from the one before by the consent of two
of its three members, so that there are never two that both may acknowledge updates:

- the primary appoints a witness and then names the standby, which has a whole copy by then;
- the primary *drops* a standby that it has lost, or the standby *claims* the place of a primary
  that it has lost: the witness agrees to the first of them, and the other one hears of it;
- a primary that has lost the witness *releases* the standby, and appoints another witness;
- a standby that is about to stop releases itself, so that nobody needs to be asked.

From the moment in which a standby may have been named, the primary acknowledges nothing that the
standby does not keep. A member that is known to be dead, not only silent, has no say.

>>> ps0, ps1, worker = ("ps0", 11), ("ps1", 12), ("worker", 13)
>>> primary, standby, witness = Primary(ps0), Standby(ps1), Witness()
>>> primary.followed(ps1)
>>> primary.filled()
>>> wanted = primary.appoint(worker)  # from now on updates wait for the copy
>>> primary.appointed(witness.appoint("ps0", wanted))
>>> standby.named(primary.wanted)
>>> primary.named(primary.wanted.epoch)
>>> primary.stage, standby.stage
('protected', 'named')
>>> claim = standby.lost()  # the primary is silent
>>> standby.answered(witness.propose("ps0", claim))
'promoted'
>>> drop = primary.lost()  # it lives, but was cut off
>>> primary.answered(witness.propose("ps0", drop))
'deposed'
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Member", "Primary", "Standby", "View", "Witness"]

#: A process: the name of its own task, and which start of it this is.
Member = tuple[str, int]


@dataclass(frozen=True)
class View:
    """Who does what for a task.

    Attributes:
        epoch: later views have higher ones.
        primary: serves the task; ``standby``: keeps the copy; ``witness``: decides between them.
    """

    epoch: int
    primary: Member
    standby: Member | None = None
    witness: Member | None = None


class Witness:
    """The views that a process was appointed to decide on, by task."""

    def __init__(self) -> None:
        self._views: dict[str, View] = {}

    def appoint(self, task: str, view: View) -> View:
        """A primary wants this process as its witness. Returns the view that holds here."""
        known = self._views.get(task)
        if known is None or known.epoch < view.epoch:
            known = self._views[task] = view
        return known

    def propose(self, task: str, view: View) -> View | None:
        """A member of a view wants the next one. Returns the view that holds here after that.

        None if this process was appointed by nobody, or has forgotten: it was started again.
        """
        known = self._views.get(task)
        is_next = known is not None and known.epoch + 1 == view.epoch
        if is_next and known is not None and view.primary in (known.primary, known.standby):
            known = self._views[task] = view
        return known


class Primary:
    """The member that serves a task.

    Attributes:
        view: the one that holds; ``wanted``: the one that it is about to have.
        stage: "alone", "filling" (a follower gets its copy), "filled", "appointing" (a witness is
            asked), "naming" (the follower is told), "protected", "releasing" (the witness is
            lost), "dropping" (the standby is), "deposed".
        follower: who gets copies of updates, as standby or to become it.
    """

    def __init__(self, me: Member, epoch: int = 1) -> None:
        self.view = self.wanted = View(epoch, me)
        self.stage = "alone"
        self.follower: Member | None = None
        self._tried = epoch

    @property
    def is_gated(self) -> bool:
        """Whether updates are acknowledged only when the follower keeps them."""
        return self.stage not in ("alone", "filling", "filled")

    @property
    def last_epoch(self) -> int:
        """The highest epoch of all views that held, or that were tried in vain."""
        return self._tried

    def followed(self, who: Member) -> None:
        """A process wants the copy.

        Whoever asks is no standby: so the one that there was has been released without a word of
        it, or has ended and was started again.
        """
        self._alone(self._tried)
        if self.stage == "alone":
            self.follower, self.stage = who, "filling"

    def filled(self) -> None:
        """The follower keeps all that there is."""
        if self.stage == "filling":
            self.stage = "filled"

    def appoint(self, witness: Member) -> View:
        """Ask a process to be the witness of the view that is returned."""
        assert self.stage == "filled", self.stage
        self._tried += 1
        self.wanted = View(self._tried, self.view.primary, self.follower, witness)
        self.stage = "appointing"
        return self.wanted

    def appointed(self, view: View | None) -> None:
        """What the witness answered; None if it did not. The standby is to be named now, if the
        stage is "naming"."""
        if self.stage == "appointing":
            # The follower has not been told: nobody can take the place of this member.
            self.stage = "naming" if view == self.wanted else "filled"
            if view is not None:
                self._tried = max(self._tried, view.epoch)

    def named(self, epoch: int) -> None:
        """The standby knows that it is one."""
        if self.stage == "naming" and epoch == self.wanted.epoch:
            self.view, self.stage = self.wanted, "protected"

    def lost_witness(self) -> bool:
        """The witness is lost; whether to release the standby."""
        if self.stage == "protected":
            self.stage = "releasing"
        return self.stage == "releasing"

    def released(self, epoch: int) -> None:
        """The standby is a mere follower again, with a whole copy; unasked, it is about to stop."""
        if epoch != self.view.epoch:
            return
        if self.stage == "protected":
            self._alone(self._tried)
        elif self.stage == "releasing":
            self.view = View(self.view.epoch, self.view.primary)
            self.stage = "filled"

    def lost(self, is_dead: bool = False) -> View | None:
        """The follower is lost. Returns the view to propose to the witness of `wanted`, if one is
        needed: again until it answers.

        Args:
            is_dead: whether it is certain that its process has ended.
        """
        if not self.is_gated or self.stage == "appointing" or is_dead:
            self._alone(self._tried)
            return None
        if self.stage == "deposed":
            return None
        self.stage = "dropping"
        return View(self.wanted.epoch + 1, self.view.primary)

    def answered(self, view: View | None) -> str:
        """What the witness holds after the proposal to drop; returns the stage."""
        if self.stage == "dropping" and view is not None and view.epoch > self.wanted.epoch:
            if view.primary == self.view.primary:
                self._alone(view.epoch)
            else:
                self.stage = "deposed"
        return self.stage

    def _alone(self, epoch: int) -> None:
        if self.stage != "deposed":
            self._tried = max(self._tried, epoch)
            self.view = self.wanted = View(self._tried, self.view.primary)
            self.stage, self.follower = "alone", None


class Standby:
    """The member that keeps the copy of another's task.

    Attributes:
        stage: "following", "named", "claiming" (it has lost the primary, and asks the witness),
            "promoted".
        view: the one that names it.
    """

    def __init__(self, me: Member) -> None:
        self._me = me
        self.stage = "following"
        self.view: View | None = None

    def named(self, view: View) -> None:
        """The primary says that this is its standby from now on."""
        if self.stage in ("following", "named"):
            self.view, self.stage = view, "named"

    def release(self, epoch: int) -> bool:
        """The primary says that it is a mere follower; whether that is so from now on."""
        if self.stage == "named" and self.view is not None and self.view.epoch == epoch:
            self.view, self.stage = None, "following"
        return self.stage == "following"

    def leave(self) -> View | None:
        """This process is about to stop. Returns the view in which it was the standby until now,
        for the primary to be told."""
        if self.stage != "named":
            return None
        view, self.view, self.stage = self.view, None, "following"
        return view

    def lost(self) -> View | None:
        """The primary is lost. Returns the view to propose to the witness of `view`, if this is a
        standby: again until it answers."""
        if self.stage not in ("named", "claiming") or self.view is None:
            return None
        self.stage = "claiming"
        return View(self.view.epoch + 1, self._me)

    def answered(self, view: View | None) -> str:
        """What the witness holds after the claim; returns the stage."""
        if self.stage == "claiming" and view is not None and self.view is not None:
            if view.primary == self._me:
                self.view, self.stage = view, "promoted"
            elif view.epoch > self.view.epoch:
                self.view, self.stage = None, "following"
        return self.stage

    def give_up(self) -> None:
        """The witness has ended, and the primary has not: what the witness may have agreed to,
        nobody has heard."""
        if self.stage == "claiming":
            self.view, self.stage = None, "following"

    def take_over(self) -> None:
        """Serve without the consent of a witness: primary and witness have both ended."""
        if self.stage == "claiming" and self.view is not None:
            self.view, self.stage = View(self.view.epoch + 1, self._me), "promoted"
