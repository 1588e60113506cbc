"""Records of many files in random order, epoch after epoch."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np

from headrace.errors import CancelledError, NotFoundError
from headrace.files.globbing import glob
from headrace.files.records import RecordReader
from headrace.ops.core.registry import HostResource


class RecordYielder(HostResource):
    """Yields each record of all files once in an epoch, in an order that a seed decides.

    A buffer holds the next records; which of them comes next is drawn. The files are shuffled
    once, and the order moves on by a part of them from one epoch to the next.

    Args:
        pattern: the files, with wildcards; ``compression``: of them.
        seed: of the order; ``shift``: by which part of the files it moves on, from 0 to 1.
        size: how many records the buffer holds.

    Raises:
        NotFoundError: if there is no such file, or there are no records.
    """

    def __init__(self, pattern: str, compression: str, seed: int, shift: float, size: int) -> None:
        self._files = glob(pattern)
        if not self._files:
            raise NotFoundError(None, None, f"Found no files at {pattern}")
        self._compression = compression
        self._generator = np.random.Generator(np.random.Philox(abs(seed)))
        self._generator.shuffle(self._files)
        self._shift = int(shift * len(self._files))
        self._size = max(size, 1)
        self._epoch = 0
        self._is_gone = False
        self._lock = threading.Lock()
        self._records = self._all()

    def take(self, count: int) -> list[bytes]:
        """The next records.

        Raises:
            DataLossError: if a file is damaged.
            CancelledError: if the session has ended.
        """
        with self._lock:
            if self._is_gone:
                raise CancelledError(None, None, "The session of RecordInput has ended.")
            return [next(self._records) for _ in range(count)]

    def _all(self) -> Iterator[bytes]:
        while True:
            found = False
            for record in self._of_epoch():
                found = True
                yield record
            if not found:
                message = f"No records in the {len(self._files)} files of RecordInput."
                raise NotFoundError(None, None, message)
            self._epoch += 1

    def _of_epoch(self) -> Iterator[bytes]:
        buffer: list[bytes] = []
        start = self._epoch * self._shift % len(self._files)
        for path in self._files[start:] + self._files[:start]:
            with RecordReader(path, self._compression) as reader:
                for record in reader:
                    if len(buffer) >= self._size:
                        yield self._drawn(buffer)
                    buffer.append(record)
        while buffer:
            yield self._drawn(buffer)

    def _drawn(self, buffer: list[bytes]) -> bytes:
        place = int(self._generator.integers(len(buffer)))
        chosen, buffer[place] = buffer[place], buffer[-1]
        buffer.pop()
        return chosen

    def abandon(self) -> None:
        """The session has ended."""
        with self._lock:
            self._is_gone = True


def strings(records: list[bytes]) -> Any:
    """Records as a vector."""
    array = np.empty(len(records), object)
    array[:] = records
    return array
