"""Datasets of what is in files: records, lines, pieces of one length."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from headrace.errors import DataLossError, InvalidArgumentError, OpError
from headrace.files.records import RecordReader, check_compression, open_stream
from headrace.ops.data.pipeline import (
    Element,
    Iteration,
    Source,
    Stream,
    as_string,
    define_dataset,
    scalar,
    text,
    texts,
)

#: So much of a file is read at a time.
_BLOCK = 1 << 18
#: Reads one file: pieces, each with the position behind it, from a position on.
Reader = Callable[[str, int], Iterator[tuple[bytes, int]]]


class _Files(Source):
    def __init__(self, paths: Sequence[str], read: Reader) -> None:
        self._paths, self._read = paths, read

    def _begin(self, run: Iteration) -> Stream:
        return _FilesStream(self._paths, self._read)


class _FilesStream(Stream):
    """One file after the other."""

    def __init__(self, paths: Sequence[str], read: Reader) -> None:
        self._paths, self._read = paths, read
        self._file = self._position = 0
        self._pieces: Iterator[tuple[bytes, int]] | None = None

    def __next__(self) -> Element:
        while self._file < len(self._paths):
            if self._pieces is None:
                self._pieces = self._read(self._paths[self._file], self._position)
            try:
                found = next(self._pieces, None)
            except OpError as error:
                self.failed(error, self.count)
                raise
            if found is not None:
                self.count += 1
                self._position = found[1]
                return (as_string(found[0]),)
            self._pieces, self._position = None, 0
            self._file += 1
        raise StopIteration

    def own_state(self) -> Any:
        return [self._file, self._position]

    def set_own_state(self, state: Any) -> None:
        self.close()
        self._file, self._position = state

    def close(self) -> None:
        self._pieces = None  # a generator that is dropped closes its file


def _records(compression: str) -> Reader:
    def read(path: str, position: int) -> Iterator[tuple[bytes, int]]:
        reader = RecordReader(path, compression, position)
        try:
            for record in reader:
                yield record, reader.position
        finally:
            reader.close()

    return read


def _check(stream: Any) -> None:
    """Raise DataLossError if a file ended because it is damaged."""
    if stream.damage:
        raise DataLossError(None, None, f"{stream.path}: {stream.damage}")


def lines_reader(compression: str) -> Reader:
    def read(path: str, position: int) -> Iterator[tuple[bytes, int]]:
        stream = open_stream(path, compression)
        try:
            stream.skip(position)
            rest = b""
            while block := stream.read(_BLOCK):
                *lines, rest = (rest + block).split(b"\n")
                for line in lines:
                    position += len(line) + 1
                    yield line.removesuffix(b"\r"), position
            _check(stream)
            if rest:
                yield rest.removesuffix(b"\r"), position + len(rest)
        finally:
            stream.close()

    return read


def _pieces(header: int, length: int, footer: int, compression: str) -> Reader:
    def read(path: str, position: int) -> Iterator[tuple[bytes, int]]:
        stream = open_stream(path, compression)
        try:
            begin = max(position, header)
            stream.skip(begin)
            rest = b""
            while block := stream.read(_BLOCK):
                rest += block
                at = 0
                while len(rest) - at >= length + footer:
                    begin += length
                    yield rest[at : at + length], begin
                    at += length
                rest = rest[at:]
            _check(stream)
            if len(rest) != footer:
                message = (
                    f"{path}: after a header of {header} bytes, records of {length} and a footer "
                    f"of {footer}, {len(rest) - footer} bytes are left over."
                )
                raise DataLossError(None, None, message)
        finally:
            stream.close()

    return read


define_dataset(
    "TFRecordDataset(filenames: string, compression_type: string, buffer_size: int64)",
    lambda context, filenames, compression, buffer_size: _Files(
        texts(filenames), _records(check_compression(text(compression)))
    ),
    attrs="",
)
define_dataset(
    "TextLineDataset(filenames: string, compression_type: string, buffer_size: int64)",
    lambda context, filenames, compression, buffer_size: _Files(
        texts(filenames), lines_reader(check_compression(text(compression)))
    ),
    attrs="",
)


def _fixed(
    context: Any,
    filenames: Any,
    header: Any,
    length: Any,
    footer: Any,
    buffer_size: Any,
    compression: Any = b"",
) -> Source:
    if scalar(length, "record_bytes") < 1:
        raise InvalidArgumentError(None, None, f"record_bytes must be > 0, but is {length}.")
    read = _pieces(
        scalar(header, "header_bytes", 0),
        int(length),
        scalar(footer, "footer_bytes", 0),
        check_compression(text(compression)),
    )
    return _Files(texts(filenames), read)


_FIXED = (
    "(filenames: string, header_bytes: int64, record_bytes: int64, footer_bytes: int64, "
    "buffer_size: int64"
)
define_dataset(f"FixedLengthRecordDataset{_FIXED})", _fixed, attrs="")
define_dataset(f"FixedLengthRecordDatasetV2{_FIXED}, compression_type: string)", _fixed, attrs="")

__all__: list[str] = []
