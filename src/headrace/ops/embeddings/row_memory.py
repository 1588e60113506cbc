"""Arrays of rows that grow without being copied, in memory or in a file."""

from __future__ import annotations

import mmap
import os
import tempfile
import weakref
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headrace.ops.core.parallel import in_pieces

_PAGE = mmap.PAGESIZE
#: Bytes that are mapped when one of them is touched (Linux: fault_around_bytes).
AROUND = 1 << 16
#: From so many bytes on, arrays grow by an eighth; smaller ones by half.
_LARGE = 1 << 30
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


def _take_place(file: int, begin: int, end: int) -> None:
    """Makes a file longer, with place on the disk: to touch a page that gets none ends a process.

    Raises:
        OSError: if there is no place.
    """
    try:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file, begin, end - begin)
        else:
            os.ftruncate(file, end)
    except OSError:
        os.ftruncate(file, begin)
        raise


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
        #: Descriptor of the file, if there is one.
        self._file: int | None = None
        #: Bytes of pages of the file that have been touched since `let_go`, at most.
        self.touched = 0
        self._view()

    def _view(self) -> None:
        rows = len(self._memory) // self.row_bytes
        elements = rows * (self.row_bytes // self.dtype.itemsize)
        #: All rows there is memory for. It is another array after `reserve`.
        self.array: NDArray[Any] = np.frombuffer(self._memory, self.dtype, elements).reshape(
            rows, *self._inner
        )

    def __len__(self) -> int:
        return len(self.array)

    @property
    def in_file(self) -> bool:
        """Whether the rows are in a file."""
        return self._file is not None

    @property
    def memory_bytes(self) -> int:
        """Bytes of memory that are taken at most; none by what is in a file."""
        return 0 if self.in_file else len(self._memory)

    def bytes_for(self, rows: int) -> int:
        """Bytes of memory with so many rows, in memory."""
        return int(max(len(self._memory), rows * self.row_bytes))

    def reserve(self, rows: int) -> None:
        """Makes room for so many rows. Nobody may hold ``array`` then.

        Raises:
            OSError: if there is not so much memory, or place in the file; all is as before then.
        """
        if rows <= len(self.array):
            return
        share = 8 if len(self._memory) >= _LARGE else 2
        wanted = max(rows, len(self.array) + len(self.array) // share) * self.row_bytes
        wanted = -(-wanted // _PAGE) * _PAGE
        if self._file is not None:
            _take_place(self._file, len(self._memory), wanted)
        self.array = np.empty((0, *self._inner), self.dtype)
        try:
            self._memory.resize(wanted)
            if not self.in_file:
                _prefer_huge_pages(self._memory, wanted)
        finally:
            self._view()

    def spill(self, directory: str | None) -> None:
        """Moves to a file without a name, which is gone with the process.

        Raises:
            OSError: if the directory takes no such file.
        """
        size = len(self._memory)
        with tempfile.TemporaryFile(dir=directory or None, prefix="headrace-table-") as file:
            _take_place(file.fileno(), 0, size)
            self.array.reshape(-1).view(np.uint8).tofile(file)
            file.flush()
            self._memory = mmap.mmap(file.fileno(), size)
            self._file = os.dup(file.fileno())
        weakref.finalize(self, os.close, self._file)
        if hasattr(mmap, "MADV_RANDOM"):
            self._memory.madvise(mmap.MADV_RANDOM)
        self._view()

    def let_go(self) -> None:
        """The process gives up the file's pages; the system keeps those in use while it can."""
        if self.in_file and hasattr(mmap, "MADV_DONTNEED"):
            self._memory.madvise(mmap.MADV_DONTNEED)
        self.touched = 0

    def touch(self, rows: NDArray[np.int64]) -> None:
        """Notes that these rows are used."""
        if self.in_file and len(rows):
            # The system maps what is around a page that is touched, too.
            around = max(AROUND, self.row_bytes)
            span = (int(rows.max()) - int(rows.min()) + 1) * self.row_bytes
            self.touched += min(len(rows), span // around + 2) * around

    def take(self, rows: NDArray[np.int64], out: NDArray[Any]) -> None:
        """Writes rows into ``out``."""
        array = self.array

        def piece(begin: int, end: int) -> None:
            array.take(rows[begin:end], axis=0, out=out[begin:end], mode="clip")

        in_pieces(len(rows), _PIECE, lambda size: piece)

    def put(self, rows: NDArray[np.int64] | slice, values: Any) -> None:
        """Replaces rows that are all different, or a range of them."""
        self.array[rows] = values
