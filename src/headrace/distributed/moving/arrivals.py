"""The side of a task that gets variables from another one."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import NamedTuple

from headrace.distributed.moving.rules import Taker
from headrace.distributed.protocol import step_pb2 as pb
from headrace.distributed.standby.changes import handle_of
from headrace.distributed.standby.kept_values import KeptValues
from headrace.distributed.standby.unsettled import UnsettledMoves
from headrace.distributed.transport.base import PipeBroken
from headrace.distributed.transport.link import Link
from headrace.distributed.wire import codec
from headrace.distributed.wire.messages import pack
from headrace.executor.resources import ResourceHandle, ResourceStore
from headrace.step.moved import key_of

__all__ = ["Arrivals", "Orphan"]

#: Which start of which task sends, and the number of the move.
_Move = tuple[str, int, int]


class Orphan(NamedTuple):
    """A complete copy whose source cannot say over its link what became of it.

    Attributes:
        link: the lost one.
        number: of the move.
        is_here: whether the record says, as far as this task knows it, that the variables are here.
    """

    link: Link
    number: int
    is_here: bool


class _Arrival:
    def __init__(self, link: Link) -> None:
        self.link = link
        self.rules = Taker()
        self.values = KeptValues()
        self.handles: set[ResourceHandle] = set()


class Arrivals:
    """Copies of variables that are to be served here.

    Args:
        store: that of the task.
        returned: called with the keys of variables that come.
        is_here: whether the record says that this task has a variable.
        when_kept: calls when the copy of this task has all that it has, see `Journal.when_kept`.
        unsettled: what that copy is to know of moves; None where there is no copy.
    """

    def __init__(
        self,
        store: ResourceStore,
        returned: Callable[[set[str]], None],
        is_here: Callable[[str], bool],
        when_kept: Callable[[Callable[[], None]], None],
        unsettled: Callable[[], UnsettledMoves | None],
    ) -> None:
        self._store = store
        self._returned = returned
        self._is_here = is_here
        self._when_kept = when_kept
        self._unsettled = unsettled
        self._moves: dict[_Move, _Arrival] = {}
        self._lock = threading.Lock()

    @property
    def keys(self) -> set[str]:
        """The variables that come now."""
        with self._lock:
            return {key_of(h) for arrival in self._moves.values() for h in arrival.handles}

    def copied(self, link: Link, message: pb.MoveCopy, buffers: list[memoryview]) -> None:
        """A piece of the copy has come, or the last one: then the variables are put in place."""
        tensors = iter(codec.decode_many(message.copy.values, buffers))
        with self._lock:
            if link.lost:
                return  # what came before it counts no more
            move = link.peer.task, link.peer.incarnation, message.move
            arrival = self._moves.get(move)
            if arrival is None or arrival.link is not link:
                arrival = self._moves[move] = _Arrival(link)
            for change in message.copy.changes:
                handle = handle_of(change)
                arrival.handles.add(handle)
                arrival.values.apply(handle, [next(tensors) for _ in range(change.tensors)])
            self._returned({key_of(h) for h in arrival.handles})
            if message.is_last:
                with self._store.lock:  # the copy of this task gets the mark with the values
                    moves = self._unsettled()
                    if moves is not None:
                        moves.mark(arrival.handles, arrives=True)
                    self._store.take_in(arrival.values.hand_over())
                arrival.rules.seal()
        said = pb.MoveSaid(move=message.move, sequence=message.copy.sequence)

        def say() -> None:
            with contextlib.suppress(PipeBroken):
                link.send(pack(said), block=False)

        if message.is_last:
            self._when_kept(say)
        else:
            say()

    def ended(self, start: tuple[str, int], number: int, is_moved: bool) -> None:
        """A move has ended.

        Args:
            start: the task that gives, and which start of it.
            is_moved: whether that or the record says that the variables are here.
        """
        with self._lock:
            arrival = self._moves.pop((*start, number), None)
        if arrival is not None:
            arrival.rules.ended(is_moved or self._are_here(arrival))
            self._over(arrival)

    def lost(self, link: Link) -> list[Orphan]:
        """A link is lost. What was not complete is dropped; what was is an orphan: the record says
        whether it counts, and what its source was about to write there."""
        with self._lock:
            found = {m: a for m, a in self._moves.items() if a.link is link}
            for move, arrival in found.items():
                if not arrival.rules.lost():
                    self._moves.pop(move)
        for arrival in found.values():
            if arrival.rules.stage == "dropped":
                self._over(arrival)
        return self.orphans()

    def orphans(self) -> list[Orphan]:
        """The complete copies whose links are lost."""
        with self._lock:
            return [
                Orphan(arrival.link, move[2], self._are_here(arrival))
                for move, arrival in self._moves.items()
                if arrival.link.lost
            ]

    def _are_here(self, arrival: _Arrival) -> bool:
        return all(map(self._is_here, map(key_of, arrival.handles)))

    def _over(self, arrival: _Arrival) -> None:
        with self._store.lock:
            if arrival.rules.stage == "dropped":
                for handle in arrival.handles:
                    if not self._is_here(key_of(handle)):
                        self._store.drop(handle)
            moves = self._unsettled()
            if moves is not None:
                moves.clear(arrival.handles)
