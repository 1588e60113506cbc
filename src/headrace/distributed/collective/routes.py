"""Which way the pieces of a tensor go.

A piece has a root: partial sums go up to it, the result comes down from it. What differs between a
ring and a tree is only who is above and below whom.
"""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = [
    "SEGMENT_BYTES",
    "TREE_BYTES",
    "Route",
    "Segment",
    "pieces_of",
    "ring_route",
    "tree_route",
]

#: Tensors up to here go through a tree: two steps for each doubling of the members, where a ring
#: takes two for each member.
TREE_BYTES: Final = 128 << 10
#: A piece of a ring has at most so many bytes, so that one is added while the next travels.
SEGMENT_BYTES: Final = 2 << 20


class Route(NamedTuple):
    """The neighbours of one member on the way of one piece.

    Attributes:
        up_from: whose partial sums it merges with its own, in this order.
        up_to: who gets that; -1 for the root.
        down_to: who gets the result from it.
    """

    up_from: tuple[int, ...]
    up_to: int
    down_to: tuple[int, ...]


class Segment(NamedTuple):
    """Elements ``start`` to ``stop`` of a tensor, which is flat."""

    start: int
    stop: int
    root: int


def ring_route(rank: int, size: int, root: int) -> Route:
    """The way around a ring: partial sums begin behind the root (Patarasuk and Yuan, 2009)."""
    distance = (rank - root) % size
    behind, ahead = (rank - 1) % size, (rank + 1) % size
    up_from = (behind,) if distance != 1 and size > 1 else ()
    up_to = ahead if distance else -1
    return Route(up_from, up_to, (ahead,) if distance < size - 1 else ())


def tree_route(rank: int, size: int, root: int) -> Route:
    """The way through a binomial tree (Thakur, Rabenseifner and Gropp, *Optimization of collective
    communication operations in MPICH*, 2005)."""
    place = (rank - root) % size
    children = []
    bit = 1
    while not place & bit and place + bit < size:
        children.append((place + bit + root) % size)
        bit <<= 1
    above = -1 if place == 0 else ((place & (place - 1)) + root) % size
    return Route(tuple(children), above, tuple(reversed(children)))


def pieces_of(count: int, itemsize: int, size: int) -> list[Segment]:
    """How a flat tensor of ``count`` elements is cut: a part for each member, in pieces.

    >>> pieces_of(10, 4, 2)
    [Segment(start=0, stop=5, root=0), Segment(start=5, stop=10, root=1)]
    """
    most = max(1, SEGMENT_BYTES // itemsize)
    found = []
    for root in range(size):
        start, stop = count * root // size, count * (root + 1) // size
        number = max(1, -(-(stop - start) // most))
        for i in range(number):
            low = start + (stop - start) * i // number
            found.append(Segment(low, start + (stop - start) * (i + 1) // number, root))
    return found
