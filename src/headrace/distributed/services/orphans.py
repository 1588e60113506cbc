"""Complete copies of variables whose source was lost: what became of their moves is found out."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from headrace.distributed.links.liveness import is_nobody_at
from headrace.distributed.links.peers import Peers
from headrace.distributed.membership.addresses import Addresses
from headrace.distributed.moving.arrivals import Arrivals, Orphan
from headrace.distributed.moving.settling import MoveRecord
from headrace.distributed.protocol import step_pb2 as pb
from headrace.distributed.transport.base import PipeBroken
from headrace.distributed.transport.link import Link
from headrace.distributed.wire.messages import pack
from headrace.errors import OpError

__all__ = ["Orphans", "start_of"]

_log = logging.getLogger("headrace.distributed")

#: Between two attempts, in seconds.
_PAUSE = 0.5
#: A process listens within so many seconds, or does not.
_DIAL_SECONDS = 1.0


class Orphans:
    """What a task does for such copies, in a thread while there are any.

    Args:
        task: the own one; ``arrivals``: its copies.
        record: that of the cluster.
        closed: set when it stops.
    """

    def __init__(
        self,
        task: str,
        arrivals: Arrivals,
        peers: Peers,
        addresses: Addresses,
        record: Callable[[], MoveRecord],
        closed: threading.Event,
    ) -> None:
        self._task = task
        self._arrivals = arrivals
        self._peers = peers
        self._addresses = addresses
        self._record = record
        self._closed = closed
        self._lock = threading.Lock()
        self._is_running = False

    def lost(self, link: Link) -> None:
        """A link is lost."""
        if self._arrivals.lost(link):
            with self._lock:
                begins, self._is_running = not self._is_running, True
            if begins:
                threading.Thread(
                    target=self._settle_all, name="headrace arrivals", daemon=True
                ).start()

    def _settle_all(self) -> None:
        """Find out what became of moves whose source did not say so."""
        while not self._closed.is_set():
            with self._lock:
                orphans = self._arrivals.orphans()
                self._is_running = bool(orphans)
            if not orphans:
                return
            for orphan in orphans:
                try:
                    self._settle(orphan)
                except (OpError, PipeBroken) as error:
                    _log.debug("%s: move %x: %s", self._task, orphan.number, error)
            self._closed.wait(_PAUSE)

    def _settle(self, orphan: Orphan) -> None:
        link = orphan.link
        if not orphan.is_here:
            if not self._has_ended(link):
                address = self._addresses.of(link.peer.task)
                other = self._peers.link(link.peer.task, address, _DIAL_SECONDS)
                if start_of(other) == start_of(link):
                    said = pb.MoveSaid(move=orphan.number, stage=pb.MoveTold.END)
                    other.send(pack(said), block=False)
                return
            # Its last word may not have come here, or to the record.
            self._record().settle()
        self._arrivals.ended(start_of(link), orphan.number, is_moved=False)

    def _has_ended(self, link: Link) -> bool:
        """Whether the process at the other end of a lost link has ended."""
        known = self._peers.known(link.peer.task)
        if known is not None:
            return bool(known.peer.incarnation != link.peer.incarnation)
        return is_nobody_at(link.peer.address, _DIAL_SECONDS)


def start_of(link: Link) -> tuple[str, int]:
    """The task at the other end, and which start of it."""
    return link.peer.task, link.peer.incarnation
