"""Which links two processes have, and which they use: events in, decisions out, no I/O.

No step may wait for ever for a message that went with a link. What ensures that:

    A message of a step arrives, or both ends of its link are lost after the step began, and each
    end fails every step that it has open with the other.

A link is lost at its two ends at two times. "After the step began" therefore needs that nobody uses
a link whose other end is lost already, in a step that began after that loss. So each side numbers
its links, says on each new one which others it has (the dialler first, then the one that was
dialled), and says so on all others when it loses one. Frames of a link come in order: who gets the
message that begins a step has heard before it which links its sender had lost by then, and gives
them up. A link that the peer has not spoken on yet carries nothing.

    >>> from headrace.distributed.transport.base import PeerInfo
    >>> class Link:
    ...     peer, lost = PeerInfo("/job:ps/replica:0/task:0", 1, "ps0:2222"), False
    >>> link, table = Link(), LinkTable()
    >>> table.add(link), table.introduce(link)  # dialled: we speak first
    (True, Roll(number=1, upto=1, live=frozenset({1})))
    >>> table.told(link, Roll(4, 4, frozenset({4})))  # the answer: the peer has lost 1 to 3
    (None, [])
    >>> table.use(link)
    >>> table.known("/job:ps/replica:0/task:0") is link
    True
    >>> table.lost(link)  # steps may have used it; there is no other link to say so on
    (True, [])
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, NamedTuple

__all__ = ["MAX_PEERS", "LinkTable", "Roll"]

#: What so many starts of peers have said is kept.
MAX_PEERS = 1 << 12

#: A task or client at one of its starts: its name and incarnation.
_Peer = tuple[str, int]


class Roll(NamedTuple):
    """What one side says of its links to the other.

    Attributes:
        number: of the link that carries this.
        upto: of the links with numbers up to this, only the live ones are there.
        live: numbers.
    """

    number: int
    upto: int
    live: frozenset[int]

    def without(self, number: int) -> bool:
        """Whether a link of this number is gone."""
        return number <= self.upto and number not in self.live

    def joined(self, other: Roll) -> Roll:
        """What both say together, whichever came first."""
        live = {n for n in self.live | other.live if not (self.without(n) or other.without(n))}
        return Roll(self.number, max(self.upto, other.upto), frozenset(live))


@dataclass
class _End:
    #: Our number, the peer's number; 0 until we, or it, have spoken on the link.
    own: int = 0
    theirs: int = 0
    used: bool = False


class LinkTable:
    """The links of one process. Every method is atomic.

    Links are anything with ``peer`` (its task and incarnation) and ``lost``.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ends: dict[_Peer, dict[Any, _End]] = {}
        self._current: dict[str, Any] = {}
        self._rolls: OrderedDict[_Peer, Roll] = OrderedDict()
        self._last = 0
        self._closed = False

    def known(self, task: str) -> Any:
        """The link to send on to a task; None if there is none."""
        return self._current.get(task)

    def all(self) -> list[Any]:
        """All links, also those that are not used yet."""
        with self._lock:
            return [link for links in self._ends.values() for link in links]

    def add(self, link: Any) -> bool:
        """There is a new link; false if it is lost already, or the table is closed."""
        with self._lock:
            return self._add(link)

    def _add(self, link: Any) -> bool:
        if self._closed or link.lost:
            return False
        peer = link.peer.task, link.peer.incarnation
        self._ends.setdefault(peer, {}).setdefault(link, _End())
        return True

    def _to(self, peer: Any) -> dict[Any, _End]:
        """The links to one start of a peer."""
        return self._ends.get((peer.task, peer.incarnation), {})

    def introduce(self, link: Any) -> Roll | None:
        """What to say first on a link that we have dialled; None if it is gone again."""
        with self._lock:
            ends = self._to(link.peer)
            return self._introduced(ends, ends[link]) if link in ends else None

    def _introduced(self, ends: dict[Any, _End], end: _End) -> Roll:
        self._last += 1
        end.own = self._last
        return self._roll(ends, end)

    def _roll(self, ends: dict[Any, _End], end: _End) -> Roll:
        return Roll(end.own, self._last, frozenset(e.own for e in ends.values() if e.own))

    def told(self, link: Any, roll: Roll) -> tuple[Roll | None, list[Any]]:
        """The peer has spoken on a link.

        Returns:
            What to answer, if we have not spoken on it yet; call `use` after that. And the links
            that the peer does not have any more.

        Raises:
            ValueError: if it gives the link another number than before.
        """
        with self._lock:
            if not self._add(link):
                return None, []
            ends = self._to(link.peer)
            end = ends[link]
            if end.theirs not in (0, roll.number) or not roll.number:
                raise ValueError(f"its number was {end.theirs}, and is {roll.number} now")
            end.theirs = roll.number
            # All that this start of the peer has said: rolls on two links overtake each other.
            known = self._remember((link.peer.task, link.peer.incarnation), roll)
            gone = [k for k, e in ends.items() if e.theirs and known.without(e.theirs)]
            if end.own or link in gone:
                return None, gone
            return self._introduced(ends, end), gone

    def _remember(self, peer: _Peer, roll: Roll) -> Roll:
        before = self._rolls.pop(peer, roll)
        known = self._rolls[peer] = before.joined(roll)
        if len(self._rolls) > MAX_PEERS:
            self._rolls.popitem(last=False)
        return known

    def use(self, link: Any) -> None:
        """Both sides have spoken on a link: it can be used, and is from now on."""
        with self._lock:
            end = self._to(link.peer).get(link)
            if end is not None and not end.used:
                end.used = True
                self._current[link.peer.task] = link

    def lost(self, link: Any) -> tuple[bool, list[tuple[Any, Roll]]]:
        """A link is lost.

        Returns:
            Whether steps may have used it, and whom to tell what: before any step begins that is
            not failed for this loss.
        """
        with self._lock:
            task, ends = link.peer.task, self._to(link.peer)
            end = ends.pop(link, None)
            if not ends:
                self._ends.pop((task, link.peer.incarnation), None)
            # We have never spoken on it: it has carried nothing.
            if end is None or not end.own:
                return False, []
            if self._current.get(task) is link:
                del self._current[task]
                # The newest of those that are left.
                usable = [(e.own, k) for k, e in ends.items() if e.used]
                if usable:
                    self._current[task] = max(usable, key=lambda u: u[0])[1]
            return True, [(k, self._roll(ends, e)) for k, e in ends.items() if e.own]

    def close(self) -> list[Any]:
        """No more links; returns those that there were."""
        with self._lock:
            self._closed = True
            links = [link for links in self._ends.values() for link in links]
            self._ends.clear()
            self._current.clear()
            return links
