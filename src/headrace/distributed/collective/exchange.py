"""One collective operation of one member, among the members of one epoch: messages in and out.

The state machine has neither links nor clocks. Messages may come in any order, each once.

    >>> from headrace.ops.collective.calls import Call
    >>> def call(value):
    ...     return Call("reduce", 1, 2, 1, value, tf.float32, (1,), "Add", "Id")
    >>> one, two = [Exchange(call(np.float32([x])), rank, 2, 2) for rank, x in enumerate([1, 2])]
    >>> one.begin(), [(out.to, out.up) for out in two.begin()]
    ([], [(0, True)])
    >>> one.came(1, piece=0, root=0, up=True, data=np.float32([2]))
    [Out(to=1, piece=0, root=0, up=False, data=array([3.], dtype=float32))]
    >>> two.came(0, piece=0, root=0, up=False, data=one.result)
    []
    >>> two.result
    array([3.], dtype=float32)
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from headrace.distributed.collective.routes import (
    TREE_BYTES,
    Route,
    Segment,
    pieces_of,
    ring_route,
    tree_route,
)
from headrace.errors import (
    DataLossError,
    FailedPreconditionError,
    InvalidArgumentError,
    OpError,
)
from headrace.ops.collective.calls import MERGES, Array, Call, finish

__all__ = ["Exchange", "Out"]


class Out(NamedTuple):
    """A message to send: a partial sum on its way up, or a result on its way down."""

    to: int
    piece: int
    root: int
    up: bool
    data: Array


class Exchange:
    """See the module.

    Args:
        call: what this member wants.
        rank, size: its place among the members of the epoch.
        devices: how many devices these have together, by which "Div" divides.

    Attributes:
        is_done: whether this member has its result, and has done all that others need of it.
    """

    def __init__(self, call: Call, rank: int, size: int, devices: int) -> None:
        self._call = call
        self._rank, self._size, self._devices = rank, size, devices
        self._own = None if call.value is None else np.ascontiguousarray(call.value).reshape(-1)
        dtype = call.dtype.as_numpy_dtype if self._own is None else self._own.dtype
        self._dtype = np.dtype(dtype)
        count = int(np.prod(call.shape, dtype=np.int64))
        self._is_small = count * self._dtype.itemsize <= TREE_BYTES
        self._is_tree = call.kind == "broadcast" or (call.kind == "reduce" and self._is_small)
        self._pieces = self._cut(count)
        #: Which pieces have come, from whom, on which way.
        self._arrived: set[tuple[int, int, bool]] = set()
        self._waiting: dict[int, dict[int, Array]] = {}
        self._senders: dict[int, int] = {}
        self._gathered: dict[int, Array] = {}
        self._left = len(self._pieces)
        self._out: Array = np.empty(0 if call.kind == "gather" else count, self._dtype)
        self._result: Array | None = None

    def _cut(self, count: int) -> list[Segment]:
        kind, size = self._call.kind, self._size
        if kind == "gather":
            return [Segment(0, 0, root) for root in range(size)]
        if kind == "scatter":
            return pieces_of(count, self._dtype.itemsize, size)
        if kind == "broadcast" or self._is_small:
            return [Segment(0, count, 0)]
        return pieces_of(count, self._dtype.itemsize, size)

    def _route(self, root: int) -> Route:
        if self._is_tree:
            return tree_route(self._rank, self._size, root)
        return ring_route(self._rank, self._size, root)

    @property
    def is_done(self) -> bool:
        return self._left == 0

    @property
    def result(self) -> Array:
        """What this member gets, once `is_done`."""
        assert self.is_done
        if self._result is None:
            self._result = self._make_result()
        return self._result

    def _make_result(self) -> Array:
        call = self._call
        if call.kind == "gather":
            return np.concatenate([self._gathered[rank] for rank in range(self._size)])
        if call.kind == "scatter":
            own = [p for p in self._pieces if p.root == self._rank]
            part = self._out[own[0].start : own[-1].stop]
            return part.reshape(call.shape[0] // self._size, *call.shape[1:])
        return self._out.reshape(call.shape)

    def begin(self) -> list[Out]:
        """Give what this member has."""
        kind, found = self._call.kind, []
        if kind == "gather":
            value = np.atleast_1d(np.asarray(self._call.value))
            return self._came_down(self._rank, self._rank, value)
        for number, piece in enumerate(self._pieces):
            if not self._route(piece.root).up_from:
                if kind == "broadcast":
                    return self._sender_known(number, -1 if self._own is None else self._rank)
                assert self._own is not None
                found += self._upward(number, piece, self._own[piece.start : piece.stop])
        return found

    def came(self, sender: int, piece: int, root: int, up: bool, data: Array) -> list[Out]:
        """A message has come.

        Args:
            root: of the piece; for a broadcast on its way up who sends it, or -1.
            data: of this operation's dtype; it is not kept.

        Raises:
            InvalidArgumentError: if a broadcast has several senders.
            FailedPreconditionError: if it has none.
            DataLossError: if there is no such piece on this way, or it is another one.
        """
        self._check(sender, piece, root, up, data)
        if not up:
            return self._came_down(piece, root, data)
        if self._call.kind == "broadcast":
            return self._broadcast_came(sender, root, data)
        return self._came_up(sender, piece, data)

    def _check(self, sender: int, number: int, root: int, up: bool, data: Any) -> None:
        """Nothing of what comes is believed: NumPy would repeat elements, or take other types."""
        call, broadcast = self._call, self._call.kind == "broadcast" and up
        if not 0 <= number < len(self._pieces):
            raise _makes_no_sense(call, sender, f"piece {number} of {len(self._pieces)}")
        piece = self._pieces[number]
        if sender not in (self._below(piece.root) if up else self._above(piece.root)):
            raise _makes_no_sense(call, sender, f"piece {number}, which does not come this way")
        if not (-1 <= root < self._size if broadcast else root == piece.root):
            raise _makes_no_sense(call, sender, f"piece {number} for member {root}")
        if (number, sender, up) in self._arrived:
            raise _makes_no_sense(call, sender, f"piece {number} once more")
        shape: tuple[int, ...] | None = (piece.stop - piece.start,)
        if call.kind == "gather":
            shape = None
        elif broadcast and root < 0:
            shape = (0,)
        _check_array(call, sender, data, self._dtype, shape)
        self._arrived.add((number, sender, up))

    def _below(self, root: int) -> tuple[int, ...]:
        return self._route(root).up_from

    def _above(self, root: int) -> tuple[int, ...]:
        """Who gives this member the result of a piece."""
        if self._rank == root:
            return ()
        if self._is_tree:
            return (self._route(root).up_to,)
        return ((self._rank - 1) % self._size,)

    def _broadcast_came(self, child: int, sender: int, data: Array) -> list[Out]:
        """What a child has of a broadcast: the tensor, if the sender is there, or nothing."""
        arrived = self._senders
        arrived[child] = sender
        if sender >= 0:
            self._out[...] = data
        if len(arrived) < len(self._route(0).up_from):
            return []
        found = [s for s in (*arrived.values(), self._rank if self._own is not None else -1)]
        senders = [s for s in found if s >= 0]
        if len(senders) > 1:
            text = f"A broadcast has one sender, but instance {self._call.instance_key} has several"
            raise InvalidArgumentError(None, None, f"{text}: members {sorted(senders)}.")
        return self._sender_known(0, senders[0] if senders else -1)

    def _sender_known(self, number: int, sender: int) -> list[Out]:
        if sender == self._rank:
            self._out[...] = self._own
        above = self._route(0).up_to
        if above >= 0:
            data = self._out if sender >= 0 else self._out[:0]
            return [Out(above, number, sender, True, data)]
        if sender < 0:
            raise FailedPreconditionError(
                None,
                None,
                f"Nobody sends what the members of broadcast {self._call.instance_key} of group "
                f"{self._call.group_key} want to receive: the sender is no member (any more).",
            )
        return self._came_down(number, 0, self._out)

    def _came_up(self, sender: int, number: int, data: Array) -> list[Out]:
        piece = self._pieces[number]
        below = self._route(piece.root).up_from
        where = slice(piece.start, piece.stop)
        assert self._own is not None
        merge = MERGES[self._call.merge]
        with np.errstate(all="ignore"):
            if len(below) == 1:
                merge(data, self._own[where], out=self._out[where])
            else:
                # Sums in one order, whoever is first.
                arrived = self._waiting.setdefault(number, {})
                arrived[sender] = np.array(data)
                if len(arrived) < len(below):
                    return []
                del self._waiting[number]
                merge(self._own[where], arrived[below[0]], out=self._out[where])
                for child in below[1:]:
                    merge(self._out[where], arrived[child], out=self._out[where])
        return self._upward(number, piece, self._out[where])

    def _upward(self, number: int, piece: Segment, partial: Array) -> list[Out]:
        """A partial sum that holds this member and all below it."""
        route = self._route(piece.root)
        if route.up_to >= 0:
            if self._call.kind == "scatter":
                self._left -= 1
            return [Out(route.up_to, number, piece.root, True, partial)]
        result = self._out[piece.start : piece.stop]
        if partial is not result:
            result[...] = partial
        finish(result, self._call, self._devices)
        if self._call.kind == "scatter":
            self._left -= 1
            return []
        return self._came_down(number, piece.root, result)

    def _came_down(self, number: int, root: int, data: Array) -> list[Out]:
        """The result of a piece."""
        if self._call.kind == "gather":
            data = self._gathered[number] = np.array(data)
        else:
            piece = self._pieces[number]
            target = self._out[piece.start : piece.stop]
            if data is not target:
                target[...] = data
            data = target
        self._left -= 1
        return [Out(to, number, root, False, data) for to in self._route(root).down_to]


def checked(call: Call, value: Any) -> Array:
    """What another member has of an operation that ended there.

    Raises:
        DataLossError: if it cannot be that.
    """
    shape = None if call.kind == "gather" else call.shape
    _check_array(call, None, value, np.dtype(call.dtype.as_numpy_dtype), shape)
    found: Array = value
    return found


def _check_array(
    call: Call, sender: int | None, data: Any, dtype: np.dtype[Any], shape: tuple[int, ...] | None
) -> None:
    """``shape``: None for what a member gives to be gathered."""
    if isinstance(data, np.ndarray) and data.dtype == dtype:
        fits = data.shape == shape
        if shape is None:
            fits = data.ndim > 0 and data.shape[1:] == tuple(call.shape[1:])
        if fits:
            return
    what = f"{data.dtype}{list(data.shape)}" if isinstance(data, np.ndarray) else "no array"
    wanted = "[?, ...]" if shape is None else str(list(shape))
    raise _makes_no_sense(call, sender, f"{what}, where {dtype}{wanted} is awaited")


def _makes_no_sense(call: Call, sender: int | None, what: str) -> OpError:
    who = "a member" if sender is None else f"member {sender}"
    return DataLossError(
        None,
        None,
        f"What came for '{call.name}', instance {call.instance_key} of group {call.group_key}, "
        f"makes no sense: {what}, from {who}.",
    )
