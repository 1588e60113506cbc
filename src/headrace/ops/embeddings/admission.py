"""Which keys get a row: those that enough lookups have had."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from headrace.ops.embeddings.key_index import KeyIndex, Keys, mixed
from headrace.ops.embeddings.row_memory import RowArray

_HASHES = 3
_MOST = np.uint16(np.iinfo(np.uint16).max)


class ExactCounter:
    """How many lookups have had each key that has no row yet: 48 bytes or more for each."""

    def __init__(self) -> None:
        self._index = KeyIndex()
        self._counts, self._keys = RowArray(np.uint32), 0
        self._free = np.empty(0, np.int64)

    def _new(self, keys: Keys) -> NDArray[np.int64]:
        reused = min(len(keys), len(self._free))
        last = self._keys + len(keys) - reused
        self._counts.reserve(last)
        rows = np.concatenate([self._free[:reused], np.arange(self._keys, last)])
        self._free, self._keys = self._free[reused:], last
        self._counts.put(rows, 0)
        return rows

    def sighted(self, keys: Keys) -> NDArray[Any]:
        """Counts one lookup of distinct keys; how many each has had."""
        rows = self._index.find_or_add(keys, self._new)
        self._counts.array[rows] += np.uint32(1)
        counts: NDArray[Any] = self._counts.array[rows]
        return counts

    def admitted(self, keys: Keys) -> None:
        """Forgets distinct keys that have a row now."""
        self._free = np.concatenate([self._free, self._index.find(keys)])
        self._index.remove(keys)


class BloomCounter:
    """The same in memory of one size, whatever the number of keys: a counting Bloom filter.

    Fan, Cao, Almeida and Broder, "Summary cache: a scalable wide-area web cache sharing protocol"
    (2000), section V.C. Keys that share all their counters with others come in early, none late.

    Args:
        counters: how many there are, of 2 bytes each; rounded up to a power of 2.
    """

    def __init__(self, counters: int) -> None:
        self._counts = np.zeros(1 << max(0, counters - 1).bit_length(), np.uint16)

    def _places(self, keys: Keys) -> NDArray[np.uint64]:
        first, step = mixed(keys, 1), mixed(keys, 2) | np.uint64(1)
        each = first + step * np.arange(_HASHES, dtype=np.uint64)[:, None]
        places: NDArray[np.uint64] = each & np.uint64(len(self._counts) - 1)
        return places

    def sighted(self, keys: Keys) -> NDArray[Any]:
        """Counts one lookup of distinct keys; how many each has had at most."""
        places = self._places(keys)
        distinct, times = np.unique(places, return_counts=True)
        room = (_MOST - self._counts[distinct]).astype(np.int64)
        self._counts[distinct] += np.minimum(times, room).astype(np.uint16)
        counts: NDArray[Any] = self._counts[places].min(axis=0)
        return counts

    def admitted(self, keys: Keys) -> None:
        """Keys leave no trace that could be removed: others may have the same counters."""
