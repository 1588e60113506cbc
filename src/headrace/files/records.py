"""Record files (TFRecord): a sequence of byte strings, each with checksums.

A record is its length (uint64), the masked CRC-32C of those 8 bytes, the data, and the masked
CRC-32C of the data; all numbers little-endian. A file may be compressed as a whole (ZLIB, GZIP);
positions are then those in the uncompressed stream.

The format allows to go on behind a record whose data are damaged as long as its length is right,
and `RecordReader` does: reading on after a DataLossError gives the records that follow.
"""

from __future__ import annotations

import contextlib
import struct
import zlib
from collections.abc import Iterator
from functools import lru_cache
from types import TracebackType
from typing import IO, Any, Self

import google_crc32c
import numpy as np

from headrace.errors import DataLossError, FailedPreconditionError, InvalidArgumentError
from headrace.files.paths import as_path, translate, translated
from headrace.files.system import open_binary

#: Bytes around the data of a record.
HEADER, FOOTER = 12, 4
OVERHEAD = HEADER + FOOTER

#: Bytes that are read at once.
BLOCK = 256 << 10

#: The kinds of compression, and the `wbits` that zlib reads and writes them with.
COMPRESSIONS = {"": 0, "ZLIB": zlib.MAX_WBITS, "GZIP": zlib.MAX_WBITS + 16}

#: Headers that were checked are kept, as records of one file often have few lengths.
_KEPT_HEADERS = 4096

#: The checksums of fewer records are looked at one by one.
_FEW = 8

_MASK = 0xFFFFFFFF
_crc = google_crc32c.value


def masked_crc(data: bytes) -> int:
    """The CRC-32C of ``data`` as record files hold it: rotated, and a constant added.

    A CRC over data that hold CRCs of themselves has weak spots; the mask avoids them.
    """
    crc: int = _crc(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & _MASK


@lru_cache(maxsize=_KEPT_HEADERS)
def _header(length: int) -> bytes:
    """What stands before a record of ``length`` bytes."""
    head = length.to_bytes(8, "little")
    return head + masked_crc(head).to_bytes(4, "little")


def frame(record: bytes) -> bytes:
    """The bytes that stand for a record in a file."""
    crc = _crc(record)
    crc = ((crc >> 15 | crc << 17) + 0xA282EAD8) & _MASK
    return b"%b%b%b" % (_header(len(record)), record, crc.to_bytes(4, "little"))


def check_compression(compression: str | None) -> str:
    """One of the keys of `COMPRESSIONS`; None and ``NONE`` are no compression.

    Raises:
        InvalidArgumentError: for anything else.
    """
    name = "" if compression is None or compression == "NONE" else compression
    if name not in COMPRESSIONS:
        raise InvalidArgumentError(
            None, None, f"Unsupported compression type {compression!r}; use '', 'ZLIB' or 'GZIP'."
        )
    return name


def _undamaged(buffer: bytes, records: list[bytes], stops: list[int]) -> int:
    """How many records come before the first whose checksum, behind its data, is wrong."""
    count = len(records)
    if count < _FEW:
        for i, (record, stop) in enumerate(zip(records, stops, strict=True)):
            if masked_crc(record) != int.from_bytes(buffer[stop : stop + FOOTER], "little"):
                return i
        return count
    crc: np.ndarray[Any, Any] = np.fromiter(map(_crc, records), np.uint32, count)
    crc = (crc >> 15 | crc << 17) + np.uint32(0xA282EAD8)
    at = np.array(stops)[:, None] + np.arange(FOOTER)
    told = np.frombuffer(buffer, np.uint8)[at].view("<u4")[:, 0]
    wrong = np.flatnonzero(crc != told)
    return int(wrong[0]) if wrong.size else count


class RecordReader:
    """The records of one file, from a position on.

    Attributes:
        path: the file.
        position: where the next record begins in the (uncompressed) stream; give it as ``offset``
            to go on later.

    Raises:
        NotFoundError: if the file does not exist.
        DataLossError: while reading, if a record or the compressed stream is damaged or cut off.
            Reading may go on behind a record of which only the data are damaged; behind others
            there is nothing more.
    """

    def __init__(
        self, path: Any, compression: str | None = "", offset: int = 0, block: int = BLOCK
    ) -> None:
        self.path = as_path(path)
        self.position = offset
        self._stream: _Stream | None = open_stream(self.path, check_compression(compression))
        try:
            if offset:
                self._stream.skip(offset)
        except BaseException:
            self._stream.close()
            raise
        self._block = block
        self._buffer = b""
        self._at = 0  # where unparsed bytes begin in the buffer
        self._ready: Iterator[bytes] = iter(())
        self._parsed = False  # whether the last parse gave records
        #: What is wrong behind the ready records, and the position to go on from (None: nowhere).
        self._damage: tuple[str, int | None] | None = None
        self._lengths: dict[bytes, int] = {}

    def __iter__(self) -> Iterator[bytes]:
        while True:
            for record in self._ready:
                self.position += len(record) + OVERHEAD
                yield record
            if not self._fill():
                return

    def read(self) -> bytes | None:
        """The next record, or None at the end."""
        while True:
            for record in self._ready:
                self.position += len(record) + OVERHEAD
                return record
            if not self._fill():
                return None

    def read_up_to(self, count: int) -> list[bytes]:
        """At most ``count`` next records; fewer only at the end or before a damaged one."""
        records: list[bytes] = []
        while len(records) < count:
            for record in self._ready:
                self.position += len(record) + OVERHEAD
                records.append(record)
                if len(records) == count:
                    break
            else:
                if (records and self._damage is not None) or not self._fill():
                    break
        return records

    def read_block(self) -> list[bytes]:
        """All next records that are at hand, at least one; none at the end."""
        records = list(self._ready)
        while not records and self._fill():
            records = list(self._ready)
        self.position += sum(map(len, records)) + OVERHEAD * len(records)
        return records

    def close(self) -> None:
        """Let go of the file; reading on gives nothing."""
        if self._stream is not None:
            self._stream.close()
        self._stream = None
        self._ready = iter(())
        self._damage = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __del__(self) -> None:
        stream = self.__dict__.get("_stream")
        if stream is not None:
            stream.close()

    def _fill(self) -> bool:
        """Parse more records; False at the end of the file. Raises DataLossError."""
        if self._damage is not None:
            message, resume = self._damage
            self._damage = None
            if resume is None:
                self.close()
            else:
                self.position = resume
            raise DataLossError(None, None, message)
        stream = self._stream
        if stream is None:
            return False
        self._parse()
        wanted = self._block
        while self._damage is None and not self._parsed:
            more = stream.read(wanted)
            if not more:
                return self._finish(stream)
            self._buffer = self._buffer[self._at :] + more
            self._at = 0
            self._parse()
            wanted *= 2  # one record longer than a block: avoid copying its start again and again
        return True

    def _finish(self, stream: _Stream) -> bool:
        """The end of the stream: fine behind a whole record only."""
        left = len(self._buffer) - self._at
        why = stream.damage or ("truncated record" if left else "")
        self.close()
        if why:
            raise DataLossError(None, None, f"{self.path}: {why} at {self.position}")
        return False

    def _parse(self) -> None:
        """Take all whole records out of the buffer."""
        buffer, at, lengths = self._buffer, self._at, self._lengths
        end = len(buffer)
        records: list[bytes] = []
        stops: list[int] = []
        while at + HEADER <= end:
            header = buffer[at : at + HEADER]
            length = lengths.get(header)
            if length is None:
                length = self._checked_length(header, at - self._at)
                if length is None:
                    break
            begin = at + HEADER
            stop = begin + length
            if stop + FOOTER > end:
                break
            records.append(buffer[begin:stop])
            stops.append(stop)
            at = stop + FOOTER
        good = _undamaged(buffer, records, stops)
        if good < len(records):
            at = stops[good] + FOOTER
            size = len(records[good]) + OVERHEAD
            here = self.position + at - self._at - size
            self._damage = f"{self.path}: corrupted record at {here}", here + size
            del records[good:]
        self._at = at
        self._parsed = bool(records)
        self._ready = iter(records)

    def _checked_length(self, header: bytes, ahead: int) -> int | None:
        """The length that a header tells, or None (and `_damage` set) when it is damaged."""
        length, crc = struct.unpack("<QI", header)
        if crc != masked_crc(header[:8]):
            self._damage = (
                f"{self.path}: corrupted record at {self.position + ahead} (the length is "
                "damaged). Is this a TFRecord file, and is the compression type right?",
                None,
            )
            return None
        if len(self._lengths) < _KEPT_HEADERS:
            self._lengths[header] = length
        return int(length)


class _Stream:
    """The bytes of an uncompressed file."""

    #: Why the stream ended before its end, or "".
    damage = ""

    def __init__(self, path: str, file: IO[bytes]) -> None:
        self.path = path
        self._file = file

    def read(self, size: int) -> bytes:
        """About ``size`` bytes; none only at the end."""
        with translated(self.path):
            return self._file.read(size)

    def skip(self, count: int) -> None:
        with translated(self.path):
            self._file.seek(count)

    def close(self) -> None:
        self._file.close()


class _Inflating(_Stream):
    """The uncompressed bytes of a compressed file; a GZIP file may consist of several parts."""

    def __init__(self, path: str, file: IO[bytes], wbits: int) -> None:
        super().__init__(path, file)
        self._wbits = wbits
        self._inflate = zlib.decompressobj(wbits)
        self._fresh = True  # whether the current part has had no bytes yet
        self._rest = b""

    def read(self, size: int) -> bytes:
        while not self.damage:
            data = self._rest or super().read(BLOCK)
            if not data and self._fresh:
                break
            try:
                out = self._inflate.decompress(data, size)
            except zlib.error as error:
                self.damage = f"the compressed stream is damaged ({error}); corrupted record"
                break
            self._fresh = False
            self._rest = self._inflate.unconsumed_tail
            if self._inflate.eof:
                self._rest = self._inflate.unused_data
                self._inflate = zlib.decompressobj(self._wbits)
                self._fresh = True
            elif not data and not out:
                self.damage = "the compressed stream is cut off; truncated record"
            if out:
                return out
        return b""

    def skip(self, count: int) -> None:
        while count > 0:
            data = self.read(min(count, BLOCK))
            if not data:
                return
            count -= len(data)


def open_stream(path: str, compression: str) -> _Stream:
    """The bytes of a file, decompressed; ``compression`` is a key of `COMPRESSIONS`."""
    file = open_binary(path, "rb", buffering=0 if "://" not in path else -1)
    if not compression:
        return _Stream(path, file)
    return _Inflating(path, file, COMPRESSIONS[compression])


def _as_bytes(record: Any) -> bytes:
    if isinstance(record, (bytearray, memoryview)):
        return bytes(record)
    raise TypeError(f"A record is bytes, not {type(record).__name__}: {record!r:.80}.")


class RecordWriter:
    """Writes a record file, in the place of what is at ``path``.

    Args:
        compression: ``""``, ``ZLIB`` or ``GZIP``.
        compressor: a `zlib.compressobj` to use instead of one with default settings.
        flush_mode: what `flush` asks of zlib.

    Raises:
        NotFoundError: if the directory does not exist.
    """

    def __init__(
        self,
        path: Any,
        compression: str | None = "",
        compressor: Any = None,
        flush_mode: int = zlib.Z_SYNC_FLUSH,
    ) -> None:
        self.path = as_path(path)
        kind = check_compression(compression)
        if kind and compressor is None:
            compressor = zlib.compressobj(wbits=COMPRESSIONS[kind])
        self._file: IO[bytes] | None = None
        self._compressor = compressor
        self._flush_mode = flush_mode
        self._file = open_binary(self.path, "wb", buffering=BLOCK)

    def write(self, record: bytes) -> None:
        """Append one record.

        Raises:
            TypeError: if it is not bytes.
            FailedPreconditionError: if the file is closed.
        """
        if not isinstance(record, bytes):
            record = _as_bytes(record)
        file = self._file or self._open_file()
        data = frame(record)
        if self._compressor is not None:
            data = self._compressor.compress(data)
        try:
            file.write(data)
        except OSError as error:
            raise translate(self.path, error) from error

    def flush(self) -> None:
        """Hand everything to the operating system, so that readers see it."""
        file = self._open_file()
        with translated(self.path):
            if self._compressor is not None:
                file.write(self._compressor.flush(self._flush_mode))
            file.flush()

    def close(self) -> None:
        """Write what is buffered and close the file. A second call does nothing."""
        if self._file is None:
            return
        file, self._file = self._file, None
        with translated(self.path), file:
            if self._compressor is not None:
                file.write(self._compressor.flush())

    def __del__(self) -> None:
        # Programs forget to close, and the end of a compressed file would be missing.
        with contextlib.suppress(Exception):
            self.close()

    def _open_file(self) -> IO[bytes]:
        if self._file is None:
            raise FailedPreconditionError(None, None, f"The writer of {self.path} is closed.")
        return self._file

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
