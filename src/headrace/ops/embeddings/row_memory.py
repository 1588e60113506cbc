"""Arrays of rows that grow without being copied, in memory or in a file."""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headrace.ops.core.parallel import in_pieces

_PAGE = mmap.PAGESIZE
#: From so many bytes on, memory asks for huge pages: random rows miss the cache of addresses less.
_HUGE = 4 << 20
#: Rows that one thread copies at a time.
_PIECE = 1 << 13


def _mapped(nbytes: int) -> mmap.mmap:
    memory = mmap.mmap(-1, max(nbytes, _PAGE), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    _prefer_huge_pages(memory, nbytes)
    return memory


def _prefer_huge_pages(memory: mmap.mmap, nbytes: int) -> None:
    if nbytes >= _HUGE and hasattr(mmap, "MADV_HUGEPAGE"):
        memory.madvise(mmap.MADV_HUGEPAGE)


def zeros(shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
    """An array of zeros whose pages the system hands out when they are first touched."""
    nbytes = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
    if nbytes < _HUGE:
        return np.zeros(shape, dtype)
    return np.frombuffer(_mapped(nbytes), dtype, int(np.prod(shape))).reshape(shape)


class RowArray:
    """Rows of one shape and type, all zero at first, of which there may be more and more.

    The system moves the memory's pages when it grows, so nothing is copied and nothing is needed
    twice.

    Args:
        width: elements of a row; 0: a row is a scalar.
    """

    def __init__(self, dtype: Any, width: int = 0) -> None:
        self.dtype = np.dtype(dtype)
        self._inner = (width,) if width else ()
        self.row_bytes = self.dtype.itemsize * (width or 1)
        self._memory = _mapped(0)
        self._view()

    def _view(self) -> None:
        rows = len(self._memory) // self.row_bytes
        flat = np.frombuffer(
            self._memory, self.dtype, rows * (self.row_bytes // self.dtype.itemsize)
        )
        #: All rows there is memory for. It is another array after `reserve`.
        self.array: NDArray[Any] = flat.reshape(rows, *self._inner)

    def __len__(self) -> int:
        return len(self.array)

    @property
    def memory_bytes(self) -> int:
        """Bytes of memory that are taken at most."""
        return len(self._memory)

    def reserve(self, rows: int) -> None:
        """Makes room for so many rows. Nobody may hold ``array`` then."""
        if rows <= len(self.array):
            return
        wanted = max(rows, len(self.array) + len(self.array) // 2) * self.row_bytes
        wanted = -(-wanted // _PAGE) * _PAGE
        self.array = np.empty((0, *self._inner), self.dtype)
        try:
            self._memory.resize(wanted)
            _prefer_huge_pages(self._memory, wanted)
        finally:
            self._view()

    def take(self, rows: NDArray[np.int64], out: NDArray[Any]) -> None:
        """Writes rows into ``out``."""
        array = self.array

        def piece(begin: int, end: int) -> None:
            array.take(rows[begin:end], axis=0, out=out[begin:end], mode="clip")

        in_pieces(len(rows), _PIECE, lambda size: piece)

    def put(self, rows: NDArray[np.int64], values: Any) -> None:
        """Replaces rows that are all different."""
        self.array[rows] = values

    def close(self) -> None:
        """Gives the memory back."""
        self.array = np.empty((0, *self._inner), self.dtype)
