"""The elements of a dataset in a file, for iterations and programs after this one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from headrace.files import system
from headrace.files.records import RecordReader, RecordWriter
from headrace.ops.data.pipeline import Element, Iteration, Source, Stream, whole
from headrace.ops.data.state import from_bytes, to_bytes


class DiskCache(Source):
    """The first whole iteration writes the file; it has its name only once it is complete.

    Args:
        path: what its name begins with, as for TensorFlow.
    """

    def __init__(self, base: Source, path: str) -> None:
        self._base, self._path = base, f"{path}.elements"

    def _begin(self, run: Iteration) -> Stream:
        if system.exists(self._path):
            return _ReadStream(self._path)
        return _WriteStream(whole(self._base, run), self._path)


class _WriteStream(Stream):
    def __init__(self, stream: Stream, path: str) -> None:
        self.inputs = (stream,)
        self._stream, self._path = stream, path
        self._writer: RecordWriter | None = None

    @property
    def _part(self) -> str:
        return f"{self._path}.part"

    def __next__(self) -> Element:
        if self._writer is None:
            self._writer = RecordWriter(self._part)
        try:
            element: Element = next(self._stream)
        except StopIteration:
            self._writer.close()
            if system.exists(self._part):
                system.rename(self._part, self._path, overwrite=True)
            raise
        self._writer.write(to_bytes(list(element)))
        return element

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
        super().close()


class _ReadStream(Stream):
    def __init__(self, path: str) -> None:
        self._path, self._position = path, 0
        self._records: Iterator[bytes] | None = None
        self._reader: RecordReader | None = None

    def __next__(self) -> Element:
        if self._reader is None or self._records is None:
            self._reader = RecordReader(self._path, "", self._position)
            self._records = iter(self._reader)
        return tuple(from_bytes(next(self._records)))

    def own_state(self) -> Any:
        return self._position if self._reader is None else self._reader.position

    def set_own_state(self, state: Any) -> None:
        self.close()
        self._position = state

    def close(self) -> None:
        if self._reader is not None:
            self._position = self._reader.position
            self._reader.close()
            self._reader = None


__all__ = ["DiskCache"]
