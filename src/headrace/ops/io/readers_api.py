"""The reader classes of ``tf``: they take names of files from a queue and give records."""

from __future__ import annotations

from typing import Any

from headrace.graph import dtypes
from headrace.graph.tensor import Operation, Tensor
from headrace.ops.core.build import convert_to_tensor, raw

__all__ = [
    "FixedLengthRecordReader",
    "IdentityReader",
    "LMDBReader",
    "ReaderBase",
    "TFRecordReader",
    "TextLineReader",
    "WholeFileReader",
]


class ReaderBase:
    """A reader: turns pieces of work, mostly names of files, into records with keys.

    Any number of steps may use it at once. The work comes from a queue of strings; when that is
    closed and empty, reading raises OutOfRangeError.

    Args:
        reader_ref: the handle of the reader.
        supports_serialize: whether its state can be taken and restored.
    """

    def __init__(self, reader_ref: Tensor, supports_serialize: bool = False) -> None:
        self._reader_ref = reader_ref
        self._supports_serialize = supports_serialize

    @property
    def reader_ref(self) -> Tensor:
        """The handle of the reader."""
        return self._reader_ref

    @property
    def supports_serialize(self) -> bool:
        """Whether its state can be taken and restored."""
        return self._supports_serialize

    def read(self, queue: Any, name: str | None = None) -> tuple[Tensor, Tensor]:
        """The next record as (key, value), string scalars.

        Args:
            queue: a queue of strings, or its handle.
        """
        return raw.ReaderReadV2(self._reader_ref, _handle(queue), name=name)

    def read_up_to(
        self, queue: Any, num_records: Any, name: str | None = None
    ) -> tuple[Tensor, Tensor]:
        """Up to ``num_records`` next records as (keys, values), string vectors.

        There may be fewer at the end of each piece of work, but at least one.
        """
        count = convert_to_tensor(num_records, dtype=dtypes.int64)
        return raw.ReaderReadUpToV2(self._reader_ref, _handle(queue), count, name=name)

    def num_records_produced(self, name: str | None = None) -> Tensor:
        """How many records have been read: an int64 scalar."""
        return raw.ReaderNumRecordsProducedV2(self._reader_ref, name=name)

    def num_work_units_completed(self, name: str | None = None) -> Tensor:
        """How many pieces of work are complete: an int64 scalar."""
        return raw.ReaderNumWorkUnitsCompletedV2(self._reader_ref, name=name)

    def serialize_state(self, name: str | None = None) -> Tensor:
        """The state of the reader: a string scalar.

        As it runs it raises UnimplementedError if the reader does not support that.
        """
        return raw.ReaderSerializeStateV2(self._reader_ref, name=name)

    def restore_state(self, state: Any, name: str | None = None) -> Operation:
        """An op that brings back a state that `serialize_state` gave."""
        return raw.ReaderRestoreStateV2(self._reader_ref, state, name=name)

    def reset(self, name: str | None = None) -> Operation:
        """An op after which the reader is as new."""
        return raw.ReaderResetV2(self._reader_ref, name=name)


def _handle(queue: Any) -> Tensor:
    return queue if isinstance(queue, Tensor) else queue.queue_ref


class WholeFileReader(ReaderBase):
    """Gives whole files: the key is the name of the file, the value its contents."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__(raw.WholeFileReaderV2(name=name), supports_serialize=True)


class TextLineReader(ReaderBase):
    """Gives the lines of text files, without line ends; the key is ``file:line``.

    Args:
        skip_header_lines: lines to leave out at the start of each file.
    """

    def __init__(self, skip_header_lines: int | None = None, name: str | None = None) -> None:
        # Programs write True for 1.
        skip = None if skip_header_lines is None else int(skip_header_lines)
        super().__init__(raw.TextLineReaderV2(skip_header_lines=skip, name=name))


class FixedLengthRecordReader(ReaderBase):
    """Gives records of a fixed number of bytes; the key is ``file:record``.

    Args:
        record_bytes: the size of a record.
        header_bytes, footer_bytes: what to leave out at both ends of each file.
        hop_bytes: from the start of one record to that of the next; by default its size.
        encoding: of the files: None, ``"ZLIB"`` or ``"GZIP"``.

    As the graph runs it raises InvalidArgumentError for numbers out of range.
    """

    def __init__(
        self,
        record_bytes: int,
        header_bytes: int | None = None,
        footer_bytes: int | None = None,
        hop_bytes: int | None = None,
        name: str | None = None,
        encoding: str | None = None,
    ) -> None:
        reader = raw.FixedLengthRecordReaderV2(
            record_bytes=record_bytes,
            header_bytes=header_bytes,
            footer_bytes=footer_bytes,
            hop_bytes=hop_bytes,
            encoding=encoding,
            name=name,
        )
        super().__init__(reader)


class TFRecordReader(ReaderBase):
    """Gives the records of TFRecord files; the key is ``file:position``.

    As it reads it raises DataLossError for damaged records, naming file and position; reading on
    gives the records behind one of which only the data are damaged.

    Args:
        options: a TFRecordOptions, or the name of a compression.
    """

    def __init__(self, name: str | None = None, options: Any = None) -> None:
        reader = raw.TFRecordReaderV2(compression_type=_compression(options), name=name)
        super().__init__(reader)


def _compression(options: Any) -> str:
    """The compression that options of TFRecord files name."""
    kind = getattr(options, "compression_type", options)
    if isinstance(kind, int):
        kind = ("", "ZLIB", "GZIP")[kind]
    return kind or ""


class IdentityReader(ReaderBase):
    """Gives the work itself, as key and value."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__(raw.IdentityReaderV2(name=name), supports_serialize=True)


class LMDBReader(ReaderBase):
    """Reads LMDB databases: each record is a key and its value, in the order of the keys.

    The work is the path of a database: its folder, or its file. It needs the package ``lmdb``
    (``pip install headrace[lmdb]``).
    """

    def __init__(self, name: str | None = None, options: Any = None) -> None:
        super().__init__(raw.LMDBReader(name=name))
