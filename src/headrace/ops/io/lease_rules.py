"""The rule by which one of several tasks has the chief's duties, without clocks or messages."""

from __future__ import annotations

from collections.abc import Hashable

__all__ = ["LeaseRules"]


class LeaseRules:
    """Who of the candidates that are there holds the lease on the chief's duties.

    At most one does. It keeps them until it leaves; then the candidate gets them that has been
    there longest. Before a chief has come they are for the chief, which programs name; a candidate
    that has waited for it long enough claims them. A holder that has not begun its duties, as it
    found nothing to begin with, gives way to a chief.

    Attributes:
        candidates: those that are there, in the order in which they came: whether each is the
            chief that programs name.
        holder: who has the lease.
        has_begun: whether the holder is at its duties.
        is_torn: whether variables were being restored when the holder left, so that some may be of
            another step than the others.
    """

    def __init__(self) -> None:
        self.candidates: dict[Hashable, bool] = {}
        self.holder: Hashable | None = None
        self.has_begun = False
        self.is_torn = False
        self._is_open = False

    def stand(self, key: Hashable, is_chief: bool) -> None:
        """A candidate is there."""
        self.candidates[key] = is_chief
        self._is_open |= is_chief
        self._elect()

    def leave(self, key: Hashable) -> None:
        """A candidate has ended, died or cannot be reached."""
        if self.candidates.pop(key, None) is not None:
            self._elect()

    def claim(self, key: Hashable) -> None:
        """A candidate will not wait for the chief any longer."""
        if key in self.candidates:
            self._is_open = True
            self._elect()

    def pass_on(self, key: Hashable) -> None:
        """The holder finds nothing to begin its duties with; others may."""
        if key == self.holder and not self.has_begun:
            self.candidates[key] = self.candidates.pop(key)
            self.holder = None
            self._elect()

    def _elect(self) -> None:
        holder_is_there = self.holder in self.candidates
        chiefs = [key for key, is_chief in self.candidates.items() if is_chief]
        if holder_is_there and (self.has_begun or self.candidates[self.holder] or not chiefs):
            return
        self.has_begun = False
        # The last chief: one that was started again, whose old session is not known to be dead.
        first = next(iter(self.candidates), None) if self._is_open else None
        self.holder = chiefs[-1] if chiefs else first

    def begin(self, key: Hashable, restores: bool) -> bool:
        """Begin the duties, with the variables as they are or by restoring them; whether it may."""
        if key != self.holder or (self.is_torn and not restores):
            return False
        self.has_begun = True
        self.is_torn = restores
        return True

    def restored(self, key: Hashable) -> bool:
        """The variables are restored; whether that counts, as the lease was kept all the time."""
        if key != self.holder or not self.has_begun:
            return False
        self.is_torn = False
        return True
