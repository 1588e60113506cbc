"""The reader classes of ``tf``: they take names of files from a queue and give records."""

from __future__ import annotations

from typing import Any

from headrace.graph import dtypes
from headrace.graph.tensor import Operation, Tensor
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.core.public import public


@public("ReaderBase")
class ReaderBase:
    """A reader: turns pieces of work, mostly names of files, into records with keys.

    Any number of steps may use it at once. The work comes from a queue of strings; when that is
    closed and empty, reading raises OutOfRangeError.

    Args:
        reader_ref: the handle of the reader.
        supports_serialize: whether its state can be taken and restored.

    >>> with tf.gfile.GFile("name.txt", "w") as file:
    ...     file.write("Headrace")
    >>> files = tf.FIFOQueue(1, tf.string, shapes=[[]])
    >>> key, value = tf.WholeFileReader().read(files)
    >>> with tf.Session() as sess:
    ...     sess.run(files.enqueue("name.txt"))
    ...     sess.run([key, value])
    [b'name.txt', b'Headrace']
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


@public("WholeFileReader")
class WholeFileReader(ReaderBase):
    """Gives whole files: the key is the name of the file, the value its contents.

    >>> with tf.gfile.GFile("picture.raw", "wb") as file:
    ...     file.write(bytes(3))
    >>> files = tf.FIFOQueue(1, tf.string, shapes=[[]])
    >>> name, content = tf.WholeFileReader().read(files)
    >>> with tf.Session() as sess:
    ...     sess.run(files.enqueue("picture.raw"))
    ...     sess.run([name, tf.decode_raw(content, tf.uint8)])
    [b'picture.raw', array([0, 0, 0], dtype=uint8)]
    """

    def __init__(self, name: str | None = None) -> None:
        super().__init__(raw.WholeFileReaderV2(name=name), supports_serialize=True)


@public("TextLineReader")
class TextLineReader(ReaderBase):
    """Gives the lines of text files, without line ends; the key is ``file:line``.

    Args:
        skip_header_lines: lines to leave out at the start of each file.

    >>> with open("table.csv", "w") as file:
    ...     print("word", file=file)
    ...     print("one", file=file)
    >>> files = tf.FIFOQueue(1, tf.string, shapes=[[]])
    >>> key, value = tf.TextLineReader(skip_header_lines=1).read(files)
    >>> with tf.Session() as sess:
    ...     sess.run(files.enqueue("table.csv"))
    ...     sess.run([key, value])
    [b'table.csv:2', b'one']
    """

    def __init__(self, skip_header_lines: int | None = None, name: str | None = None) -> None:
        # Programs write True for 1.
        skip = None if skip_header_lines is None else int(skip_header_lines)
        super().__init__(raw.TextLineReaderV2(skip_header_lines=skip, name=name))


@public("FixedLengthRecordReader")
class FixedLengthRecordReader(ReaderBase):
    """Gives records of a fixed number of bytes; the key is ``file:record``.

    Args:
        record_bytes: the size of a record.
        header_bytes, footer_bytes: what to leave out at both ends of each file.
        hop_bytes: from the start of one record to that of the next; by default its size.
        encoding: of the files: None, ``"ZLIB"`` or ``"GZIP"``.

    As the graph runs it raises InvalidArgumentError for numbers out of range.

    >>> with tf.gfile.GFile("records", "wb") as file:
    ...     file.write(b"HEADaabb")
    >>> files = tf.train.string_input_producer(["records"], num_epochs=1)
    >>> reader = tf.FixedLengthRecordReader(record_bytes=2, header_bytes=4)
    >>> _, values = reader.read_up_to(files, 2)
    >>> with tf.train.MonitoredSession() as sess:  # it starts the queue's threads
    ...     sess.run(values).tolist()
    [b'aa', b'bb']
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


@public("TFRecordReader")
class TFRecordReader(ReaderBase):
    """Gives the records of TFRecord files; the key is ``file:position``.

    As it reads it raises DataLossError for damaged records, naming file and position; reading on
    gives the records behind one of which only the data are damaged.

    Args:
        options: a TFRecordOptions, or the name of a compression.

    >>> with tf.python_io.TFRecordWriter("numbers.tfrecord") as writer:
    ...     for record in (b"one", b"two"):
    ...         writer.write(record)
    >>> files = tf.FIFOQueue(1, tf.string, shapes=[[]])
    >>> _, records = tf.TFRecordReader().read_up_to(files, 2)
    >>> with tf.Session() as sess:
    ...     sess.run(files.enqueue("numbers.tfrecord"))
    ...     sess.run(records).tolist()
    [b'one', b'two']
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


@public("IdentityReader")
class IdentityReader(ReaderBase):
    """Gives the work itself, as key and value.

    >>> names = tf.FIFOQueue(9, tf.string, shapes=[[]])
    >>> key, value = tf.IdentityReader().read(names)
    >>> with tf.Session() as sess:
    ...     sess.run(names.enqueue("part-1"))
    ...     sess.run([key, value])
    [b'part-1', b'part-1']
    """

    def __init__(self, name: str | None = None) -> None:
        super().__init__(raw.IdentityReaderV2(name=name), supports_serialize=True)


@public("LMDBReader")
class LMDBReader(ReaderBase):
    """Reads LMDB databases: each record is a key and its value, in the order of the keys.

    The work is the path of a database: its folder, or its file. It needs the package ``lmdb``
    (``pip install headrace[lmdb]``).

    >>> files = tf.FIFOQueue(1, tf.string, shapes=[[]])
    >>> key, value = tf.LMDBReader().read(files)  # reads when run, with the extra `lmdb`
    >>> key.dtype, value.shape.as_list()
    (tf.string, [])
    """

    def __init__(self, name: str | None = None, options: Any = None) -> None:
        super().__init__(raw.LMDBReader(name=name))
