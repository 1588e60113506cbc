"""Readers as objects: they take names of work (files) from a queue and give records.

A step that reads waits for the queue with the reader to itself, so records of one file come one
after another whatever the number of threads.
"""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Callable, Iterator
from typing import Any

from headrace.errors import (
    CancelledError,
    DataLossError,
    InvalidArgumentError,
    NotFoundError,
    OpError,
    UnimplementedError,
)
from headrace.files.paths import as_path
from headrace.files.records import BLOCK, RecordReader, check_compression, open_stream
from headrace.files.system import open_binary, read_bytes
from headrace.ops.core.locks import BargingLock
from headrace.ops.core.registry import HostResource

Record = tuple[bytes, bytes]
#: The next piece of work; waits for it.
NextWork = Callable[[], bytes]


class Reader(HostResource):
    """Gives records of one piece of work after another.

    Subclasses open a piece of work; keys are TensorFlow's.

    Attributes:
        name: for messages.
        num_records_produced, num_work_units_completed: counts since the last reset.
    """

    #: Whether a piece of work is one record, complete as soon as that has been read.
    is_single = False

    def __init__(self, name: str) -> None:
        self.name = name
        self._lock = BargingLock()
        self._is_gone = False
        self._forget()

    def _forget(self) -> None:
        self.num_records_produced = 0
        self._work_started = 0
        self.num_work_units_completed = 0
        self._work = b""
        self._records: Iterator[Record] | None = None
        #: What the call after one that gave fewer records raises.
        self._failure: OpError | None = None

    def records(self, work: bytes) -> Iterator[Record]:
        """The records of a piece of work, with their keys."""
        raise NotImplementedError

    def _enter(self, step: Any) -> None:
        """Wait for the reader; who comes back from this lets go of its lock."""
        limit = None if step is None else step.remaining()
        while not self._lock.acquire(timeout=-1 if limit is None else limit):
            step.check_deadline()
        if self._is_gone:
            self._lock.release()
            raise CancelledError(None, None, f"Reader '{self.name}': the session has ended.")

    @contextlib.contextmanager
    def _alone(self, step: Any) -> Iterator[None]:
        self._enter(step)
        try:
            yield
        finally:
            self._lock.release()

    def read(self, next_work: NextWork, step: Any) -> Record:
        """The next record.

        Raises:
            OutOfRangeError: if the queue is closed and empty.
            NotFoundError, DataLossError: if the work cannot be read; the next call goes on with
                what can be read after that.
        """
        self._enter(step)
        try:
            while True:
                for record in self._open(next_work):
                    self.num_records_produced += 1
                    if self.is_single:
                        self._complete()
                    return record
                self._complete()
        finally:
            self._lock.release()

    def read_up_to(self, count: int, next_work: NextWork, step: Any) -> list[Record]:
        """At least one record and at most ``count`` (which is positive), of one piece of work.

        Raises:
            as ``read``.
        """
        with self._alone(step):
            while True:
                found: list[Record] = []
                try:
                    found.extend(itertools.islice(self._open(next_work), count))
                except OpError as error:
                    if not found:
                        raise
                    self._failure = error
                self.num_records_produced += len(found)
                if self.is_single or (len(found) < count and self._failure is None):
                    self._complete()
                if found:
                    return found

    def _open(self, next_work: NextWork) -> Iterator[Record]:
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
        if self._records is None:
            self._work = next_work()
            self._work_started += 1
            self._records = self.records(self._work)
        return self._records

    def _complete(self) -> None:
        self._records = None
        self.num_work_units_completed = self._work_started

    def reset(self, step: Any) -> None:
        """Forget the work under way and the counts."""
        with self._alone(step):
            self._forget()

    def serialize_state(self, step: Any) -> bytes:
        """The counts as a ReaderBaseState message.

        Raises:
            UnimplementedError: for a reader that can stand within a piece of work.
        """
        if not self.is_single:
            raise UnimplementedError(None, None, "Reader SerializeState")
        from headrace.graph.proto import ReaderBaseState

        with self._alone(step):
            return ReaderBaseState(
                work_started=self._work_started,
                work_finished=self.num_work_units_completed,
                num_records_produced=self.num_records_produced,
                current_work=self._work,
            ).SerializeToString()

    def restore_state(self, state: bytes, step: Any) -> None:
        """Go on as the reader did that gave ``state``.

        Raises:
            UnimplementedError: as `serialize_state`.
            InvalidArgumentError: if ``state`` is not what that gives.
        """
        if not self.is_single:
            raise UnimplementedError(None, None, "Reader RestoreState")
        from google.protobuf.message import DecodeError

        from headrace.graph.proto import ReaderBaseState

        try:
            read = ReaderBaseState.FromString(state)
        except DecodeError:
            message = f"Could not parse state for reader '{self.name}': {state[:64]!r}"
            raise InvalidArgumentError(None, None, message) from None
        started, finished = read.work_started, read.work_finished
        if not 0 <= finished <= started or read.num_records_produced < 0:
            raise InvalidArgumentError(
                None,
                None,
                f"Inconsistent state for reader '{self.name}': {started} pieces of work started, "
                f"{finished} finished, {read.num_records_produced} records.",
            )
        with self._alone(step):
            self._forget()
            self._work_started = started
            self.num_work_units_completed = finished
            self.num_records_produced = read.num_records_produced
            self._work = read.current_work

    def abandon(self) -> None:
        """The session has ended: its queues let go of who waits there, this of who comes."""
        self._is_gone = True


class IdentityReaderResource(Reader):
    """The work itself, as key and value."""

    is_single = True

    def records(self, work: bytes) -> Iterator[Record]:
        yield work, work


class WholeFileReaderResource(Reader):
    """Whole files: key is the name, value the contents."""

    is_single = True

    def records(self, work: bytes) -> Iterator[Record]:
        yield work, read_bytes(work)


class TextLineReaderResource(Reader):
    """Lines without their ends; keys are ``file:line``, counted from 1.

    Args:
        skip: lines to leave out at the start of each file.
    """

    def __init__(self, name: str, skip: int) -> None:
        super().__init__(name)
        self._skip = skip

    def records(self, work: bytes) -> Iterator[Record]:
        with open_binary(work, "rb", BLOCK) as file:
            for number, line in enumerate(file, 1):
                if number > self._skip:
                    # Carriage returns are no part of lines, wherever they stand.
                    text = line.replace(b"\r", b"") if b"\r" in line else line
                    yield b"%b:%d" % (work, number), text.removesuffix(b"\n")


class FixedLengthRecordReaderResource(Reader):
    """Records of equal length; keys are ``file:record``, counted from 0.

    Args:
        header, record, footer: bytes; ``hop``: from one record to the next, 0 for ``record``.
        encoding: of the files: ``""``, ``"ZLIB"`` or ``"GZIP"``.
    """

    def __init__(
        self, name: str, header: int, record: int, footer: int, hop: int, encoding: str
    ) -> None:
        super().__init__(name)
        for what, value, least in (
            ("header_bytes", header, 0),
            ("record_bytes", record, 1),
            ("footer_bytes", footer, 0),
            ("hop_bytes", hop, 0),
        ):
            if value < least:
                message = f"{what} must be >= {least}, but is {value}"
                raise InvalidArgumentError(None, None, message)
        self._header = header
        self._record = record
        self._footer = footer
        self._hop = hop or record
        self._encoding = check_compression(encoding)

    def records(self, work: bytes) -> Iterator[Record]:
        stream = open_stream(as_path(work), self._encoding)
        try:
            for number, record in enumerate(self._cut(stream)):
                yield b"%b:%d" % (work, number), record
        finally:
            stream.close()

    def _cut(self, stream: Any) -> Iterator[bytes]:
        """The records in a stream; what it ends with is too short for another."""
        data, position = b"", self._header
        needed = self._record + self._footer
        while True:
            while len(data) - position < needed:
                rest = len(data) - position
                data, position = (data[position:], 0) if rest > 0 else (b"", -rest)
                more = stream.read(max(BLOCK, needed))
                if not more:
                    if stream.damage:
                        where = f"{stream.path}: {stream.damage}"
                        raise DataLossError(None, None, where)
                    return
                data += more
            yield data[position : position + self._record]
            position += self._hop


class TFRecordReaderResource(Reader):
    """Records of TFRecord files; keys are ``file:position``.

    Args:
        compression: of the files: ``""``, ``"ZLIB"`` or ``"GZIP"``.
    """

    def __init__(self, name: str, compression: str) -> None:
        super().__init__(name)
        self._compression = check_compression(compression)

    def records(self, work: bytes) -> Iterator[Record]:
        return _KeyedRecords(work, RecordReader(work, self._compression))


class LMDBReaderResource(Reader):
    """Keys and values of LMDB databases, in the order of their keys."""

    def records(self, work: bytes) -> Iterator[Record]:
        return lmdb_pairs(os.fsdecode(work))


def lmdb_pairs(path: str, last: bytes | None = None) -> Iterator[Record]:
    """Keys and values of a database, in the order of the keys.

    Args:
        last: begin behind this key.

    Raises:
        UnimplementedError: if the package ``lmdb`` is not there.
        NotFoundError: if there is no such database; DataLossError: if it is damaged.
    """
    try:
        import lmdb
    except ImportError:
        message = "LMDB files need the package lmdb: pip install headrace[lmdb]"
        raise UnimplementedError(None, None, message) from None
    if not os.path.exists(path):
        raise NotFoundError(None, None, f"{path}: there is no such database")
    try:
        with (
            lmdb.open(path, subdir=os.path.isdir(path), readonly=True, lock=False) as database,
            database.begin() as transaction,
            transaction.cursor() as cursor,
        ):
            if last is not None and not cursor.set_range(last):
                return
            for key, value in cursor.iternext():
                if bytes(key) == last:
                    continue
                yield bytes(key), bytes(value)
    except lmdb.Error as error:
        raise DataLossError(None, None, f"{path}: {error}") from None


class _KeyedRecords:
    """The records of a file with their keys; goes on after damaged ones."""

    def __init__(self, work: bytes, reader: RecordReader) -> None:
        self._work = work
        self._reader = reader

    def __iter__(self) -> _KeyedRecords:
        return self

    def __next__(self) -> Record:
        position = self._reader.position
        record = self._reader.read()
        if record is None:
            raise StopIteration
        return b"%b:%d" % (self._work, position), record
