"""Where the row of a key is: a hash table whose operations are passes over whole batches.

Open addressing with linear probing (Knuth, "The Art of Computer Programming", volume 3, section
6.4, algorithm L): each pass looks at one place for every key that is still under way, and few
batches take more than a dozen passes, each over fewer keys.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from headrace.ops.embeddings.row_memory import zeros

Keys = NDArray[np.int64]
Rows = NDArray[np.int64]

#: What a place has in the place of a row. Claims are below these.
EMPTY, REMOVED = -1, -2
_FIRST_CLAIM = -3
_SMALLEST = 64
#: Places in use, of all, before the table is made anew with more.
_FULL = 0.6

_MULTIPLIERS = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
_SHIFTS = (np.uint64(30), np.uint64(27), np.uint64(31))


def mixed(keys: Keys, seed: int = 0) -> NDArray[np.uint64]:
    """64 bits of each key that depend on all of its bits: the finaliser of SplitMix64.

    Steele, Lea and Flood, "Fast splittable pseudorandom number generators" (2014), figure 12.
    """
    words = keys.astype(np.uint64) if not seed else keys.view(np.uint64) + np.uint64(seed)
    for shift, multiplier in zip(_SHIFTS[:2], _MULTIPLIERS, strict=True):
        words ^= words >> shift
        words *= multiplier
    words ^= words >> _SHIFTS[2]
    return words


class KeyIndex:
    """The rows of distinct keys.

    >>> import numpy as np
    >>> index = KeyIndex()
    >>> index.find_or_add(np.array([5, -7, 5]), lambda keys: np.arange(len(keys)) + 10).tolist()
    [11, 10, 11]
    >>> index.find(np.array([-7, 6])).tolist()
    [10, -1]
    """

    def __init__(self, places: int = _SMALLEST) -> None:
        self._make(places)

    def _make(self, places: int) -> None:
        self._places = places
        self._shift = np.uint64(64 - places.bit_length() + 1)
        self._pairs = zeros((places, 2), np.int64)
        self._pairs[:, 1] = EMPTY
        #: Key and row side by side are one element here: NumPy then fetches both at once.
        self._wide = self._pairs.view(np.complex128)[:, 0]
        #: Places that are not empty, and those of them that have a row.
        self._used = self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def nbytes(self) -> int:
        """Bytes of memory."""
        return self._pairs.nbytes

    def _first_places(self, keys: Keys) -> NDArray[np.int64]:
        return (mixed(keys) >> self._shift).view(np.int64)

    def _at(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        return self._wide.take(places).view(np.int64).reshape(-1, 2)

    def find(self, keys: Keys) -> Rows:
        """The row of each key, -1 where there is none."""
        return self._search(keys)[0]

    def _search(self, keys: Keys) -> tuple[Rows, NDArray[np.int64]]:
        """The row of each key, or -1, and its place."""
        places = self._first_places(keys)
        found = self._at(places)
        rows = found[:, 1].copy()
        wrong = found[:, 0] != keys
        wrong |= rows == REMOVED
        wrong &= rows != EMPTY
        under_way = np.flatnonzero(wrong)
        while under_way.size:
            at = places[under_way] + 1
            at &= self._places - 1
            places[under_way] = at
            found = self._at(at)
            here = found[:, 1]
            rows[under_way] = here
            wrong = found[:, 0] != keys[under_way]
            wrong |= here == REMOVED
            wrong &= here != EMPTY
            under_way = under_way[wrong]
        return rows, places

    def find_or_add(self, keys: Keys, new_rows: Callable[[Keys], Rows]) -> Rows:
        """The row of each key; those without one get theirs from ``new_rows(distinct keys)``.

        ``new_rows`` is called once at most. If it raises, no key has been added.
        """
        self.reserve(len(keys))
        rows, places = np.empty(len(keys), np.int64), self._first_places(keys)
        under_way = np.arange(len(keys))
        winners: list[NDArray[np.int64]] = []
        while under_way.size:
            at = places[under_way]
            found = self._at(at)
            here = found[:, 1]
            empty = here == EMPTY
            # A claim of this call has the key already, and will have a row.
            same = (found[:, 0] == keys[under_way]) & ~empty & (here != REMOVED)
            rows[under_way[same]] = here[same]
            won, lost = self._claim(under_way[empty], at[empty], keys)
            if won.size:
                winners.append(won)
                rows[won] = _FIRST_CLAIM - won
            on = under_way[~(empty | same)]
            places[on] += 1
            places[on] &= self._places - 1
            # Who lost a claim looks again at the same place: its winner may have the same key.
            under_way = np.concatenate([lost, on]) if lost.size else on
        if winners:
            self._add(np.concatenate(winners), keys, rows, places, new_rows)
        return rows

    def _claim(
        self, who: NDArray[np.int64], at: NDArray[np.int64], keys: Keys
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Gives empty places to one each of those who found them; these, and the others."""
        if not who.size:
            return who, who
        claims = _FIRST_CLAIM - who
        self._pairs[at, 1] = claims
        has_won = self._pairs[at, 1] == claims
        won: NDArray[np.int64] = who[has_won]
        lost: NDArray[np.int64] = who[~has_won]
        self._pairs[at[has_won], 0] = keys[won]
        return won, lost

    def _add(
        self,
        winners: NDArray[np.int64],
        keys: Keys,
        rows: Rows,
        places: NDArray[np.int64],
        new_rows: Callable[[Keys], Rows],
    ) -> None:
        """Gives keys that have claimed a place their rows, or the places back."""
        where = places[winners]
        try:
            made = new_rows(keys[winners])
        except BaseException:
            self._pairs[where, 1] = EMPTY
            raise
        self._pairs[where, 1] = made
        of_claim = np.empty(len(keys), np.int64)
        of_claim[winners] = made
        claimed = np.flatnonzero(rows <= _FIRST_CLAIM)
        rows[claimed] = of_claim[_FIRST_CLAIM - rows[claimed]]
        self._used += len(winners)
        self._count += len(winners)

    def move(self, keys: Keys, rows: Rows) -> None:
        """Gives keys that are there other rows."""
        _, places = self._search(keys)
        self._pairs[places, 1] = rows

    def remove(self, keys: Keys) -> None:
        """Forgets distinct keys that are there."""
        _, places = self._search(keys)
        self._pairs[places, 1] = REMOVED
        self._count -= len(keys)

    def reserve(self, more: int) -> None:
        """Makes place for so many further keys."""
        if self._used + more <= _FULL * self._places:
            return
        there = self._pairs[self._pairs[:, 1] >= 0]
        places = self._places
        while (len(there) + more) > _FULL * places / 2:
            places *= 2
        self._make(places)
        self._refill(there[:, 0].copy(), there[:, 1])

    def _refill(self, keys: Keys, rows: Rows) -> None:
        """Adds distinct keys to an index without any."""
        places = self._first_places(keys)
        under_way = np.arange(len(keys))
        while under_way.size:
            at = places[under_way]
            empty = self._pairs[at, 1] == EMPTY
            who, where = under_way[empty], at[empty]
            self._pairs[where, 1] = rows[who]
            won = self._pairs[where, 1] == rows[who]
            self._pairs[where[won], 0] = keys[who[won]]
            on = np.concatenate([under_way[~empty], who[~won]])
            places[on] += 1
            places[on] &= self._places - 1
            under_way = on
        self._used = self._count = len(keys)

    def items(self) -> tuple[Keys, Rows]:
        """All keys and their rows, in no particular order."""
        there = self._pairs[self._pairs[:, 1] >= 0]
        return there[:, 0].copy(), there[:, 1].copy()
