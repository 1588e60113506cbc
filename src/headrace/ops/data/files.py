"""Datasets of what is in files: records, lines, pieces of one length, databases."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from headrace.errors import DataLossError, InvalidArgumentError, OpError
from headrace.files.records import (
    OVERHEAD,
    RecordReader,
    RecordWriter,
    check_compression,
    open_stream,
)
from headrace.ops.core.registry import EXTERNAL, define_op
from headrace.ops.data.pipeline import (
    ELEMENTS,
    NO_GRADIENT,
    STRINGS,
    BulkStream,
    Element,
    Iteration,
    Source,
    Stream,
    as_string,
    define_dataset,
    scalar,
    text,
    texts,
    whole,
)
from headrace.ops.io.readers_kernels import lmdb_pairs

#: So much of a file is read at a time.
_BLOCK = 1 << 18


class FilePieces(NamedTuple):
    """Pieces of a file that lie behind each other.

    Attributes:
        pieces: the bytes of elements; start: where the first begins.
        raw: the same with what is taken off them; between: so many bytes lie behind each.
    """

    pieces: Sequence[bytes]
    start: int
    raw: Sequence[bytes]
    between: int = 0

    def behind(self, count: int) -> int:
        """Where the pieces after the first ``count`` begin."""
        return self.start + sum(map(len, self.raw[:count])) + self.between * count


#: Reads one file from a position on.
Reader = Callable[[str, int], Iterator[FilePieces]]


class _Files(Source):
    def __init__(self, paths: Sequence[str], read: Reader) -> None:
        self._paths, self._read = paths, read

    def _begin(self, run: Iteration) -> Stream:
        return _FilesStream(self._paths, self._read)


class _FilesStream(BulkStream):
    """One file after the other."""

    items = STRINGS

    def __init__(self, paths: Sequence[str], read: Reader) -> None:
        self._paths, self._read = paths, read
        self._file = 0
        self._blocks: Iterator[FilePieces] | None = None
        #: What is at hand, and how many pieces of it have been given.
        self._block, self._given = FilePieces((), 0, ()), 0

    def __next__(self) -> bytes:
        found = self.some(1)
        if not found:
            raise StopIteration
        return found[0]

    def some(self, count: int) -> list[bytes]:
        while self._given == len(self._block.pieces):
            if not self._load():
                return []
        found = self._block.pieces[self._given : self._given + count]
        self._given += len(found)
        self.count += len(found)
        return list(found)

    def _load(self) -> bool:
        """Read the next block; False at the end of the last file."""
        if self._file == len(self._paths):
            return False
        position = self._block.behind(self._given)
        if self._blocks is None:
            self._blocks = self._read(self._paths[self._file], position)
        try:
            found = next(self._blocks, None)
        except OpError as error:
            self.failed(error, self.count)
            raise
        if found is None:
            self._file += 1
            self._blocks, found = None, FilePieces((), 0, ())
        self._block, self._given = found, 0
        return True

    def own_state(self) -> Any:
        return [self._file, self._block.behind(self._given)]

    def set_own_state(self, state: Any) -> None:
        self._file, position = state
        self._blocks = None
        self._block, self._given = FilePieces((), position, ()), 0

    def close(self) -> None:
        self.set_own_state(self.own_state())  # a generator that is dropped closes its file


def _records(compression: str) -> Reader:
    def read(path: str, position: int) -> Iterator[FilePieces]:
        reader = RecordReader(path, compression, position)
        try:
            while records := reader.read_block():
                yield FilePieces(records, position, records, OVERHEAD)
                position = reader.position
        finally:
            reader.close()

    return read


def _check(stream: Any) -> None:
    """Raise DataLossError if a file ended because it is damaged."""
    if stream.damage:
        raise DataLossError(None, None, f"{stream.path}: {stream.damage}")


def pieces_of(blocks: Iterator[FilePieces]) -> Iterator[tuple[bytes, int]]:
    """Each piece, and the position behind it."""
    for block in blocks:
        position = block.start
        for piece, raw in zip(block.pieces, block.raw, strict=True):
            position += len(raw) + block.between
            yield piece, position


def lines_reader(compression: str) -> Reader:
    def read(path: str, position: int) -> Iterator[FilePieces]:
        stream = open_stream(path, compression)
        try:
            stream.skip(position)
            rest = b""
            while data := stream.read(_BLOCK):
                *lines, rest = (rest + data).split(b"\n")
                if lines:
                    found = FilePieces([x.removesuffix(b"\r") for x in lines], position, lines, 1)
                    yield found
                    position = found.behind(len(lines))
            _check(stream)
            if rest:
                yield FilePieces([rest.removesuffix(b"\r")], position, [rest])
        finally:
            stream.close()

    return read


def _pieces(header: int, length: int, footer: int, compression: str) -> Reader:
    def read(path: str, position: int) -> Iterator[FilePieces]:
        stream = open_stream(path, compression)
        try:
            begin = max(position, header)
            stream.skip(begin)
            rest = b""
            while data := stream.read(max(_BLOCK, length)):
                rest += data
                end = max(0, len(rest) - footer) // length * length
                if end:
                    pieces = [rest[at : at + length] for at in range(0, end, length)]
                    yield FilePieces(pieces, begin, pieces)
                    begin += end
                    rest = rest[end:]
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

# -- databases of LMDB --------------------------------------------------------------------------


class _Databases(Source):
    def __init__(self, paths: Sequence[str]) -> None:
        self._paths = paths

    def _begin(self, run: Iteration) -> Stream:
        return _DatabasesStream(self._paths)


class _DatabasesStream(Stream):
    """Keys and values, in the order of the keys. Saved as the database and the last key."""

    def __init__(self, paths: Sequence[str]) -> None:
        self._paths = paths
        self._file = 0
        self._last: bytes | None = None
        self._pairs: Iterator[tuple[bytes, bytes]] | None = None

    def __next__(self) -> Element:
        while self._file < len(self._paths):
            if self._pairs is None:
                self._pairs = lmdb_pairs(self._paths[self._file], self._last)
            try:
                found = next(self._pairs, None)
            except OpError as error:
                self.failed(error, self.count)
                raise
            if found is not None:
                self.count += 1
                self._last = found[0]
                return as_string(found[0]), as_string(found[1])
            self._pairs, self._last = None, None
            self._file += 1
        raise StopIteration

    def own_state(self) -> Any:
        return [self._file, self._last]

    def set_own_state(self, state: Any) -> None:
        self.close()
        self._file, self._last = state

    def close(self) -> None:
        self._pairs = None  # a generator that is dropped closes its database


define_dataset(
    "LMDBDataset(filenames: string)",
    lambda context, filenames: _Databases(texts(filenames)),
)

# -- and into files -----------------------------------------------------------------------------


def _to_records(context: Any, dataset: Source, filename: Any, compression: Any) -> Any:
    run = Iteration(context.planned)
    stream = whole(dataset, run)
    try:
        with RecordWriter(text(filename), check_compression(text(compression))) as writer:
            while True:
                writer.write(run.pull(stream, context.step)[0][()])
    except StopIteration:
        return ()
    finally:
        run.close()
        stream.close()


define_op(
    "DatasetToTFRecord(input_dataset: variant, filename: string, compression_type: string)",
    shape=lambda op: [],
    host=_to_records,
    effects=EXTERNAL,
    gradient=NO_GRADIENT,
    traits=ELEMENTS,
)

__all__: list[str] = []
