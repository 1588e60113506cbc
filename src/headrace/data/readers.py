"""Datasets of what is in files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.data.dataset import Dataset
from headrace.data.structure import Component
from headrace.graph import dtypes
from headrace.graph.tensor import Tensor
from headrace.ops.core.build import convert_to_tensor, raw

_LINE = Component(dtypes.string, [])
#: Bytes; for files of TensorFlow.
_BUFFER = 256 * 1024


class _FilesDataset(Dataset):
    """Strings of files, one file after the other, or of several at a time."""

    def __init__(
        self, make: Callable[[Any], Tensor], filenames: Any, num_parallel_reads: Any = None
    ) -> None:
        if isinstance(filenames, Dataset):
            names = filenames
        else:
            tensor = convert_to_tensor(filenames, dtypes.string)
            if num_parallel_reads is None:
                super().__init__(make(tensor), _LINE)
                return
            names = Dataset.from_tensor_slices(raw.Reshape(tensor, [-1]))

        def of_file(name: Tensor) -> Dataset:
            return Dataset(make(name), _LINE)

        if num_parallel_reads is None:
            made = names.flat_map(of_file)
        else:
            reads = num_parallel_reads
            made = names.interleave(of_file, reads, 1, num_parallel_calls=reads)
        super().__init__(made._variant_tensor, _LINE)


class TextLineDataset(_FilesDataset):
    """The lines of text files, without their ends.

    Args:
        filenames: one or more, or a dataset of names; compression_type: "", "ZLIB" or "GZIP".

    >>> import headrace as tf
    >>> with tf.gfile.GFile("lines.txt", "w") as file:
    ...     _ = file.write("one\\ntwo\\n")
    >>> line = tf.data.TextLineDataset("lines.txt").make_one_shot_iterator().get_next()
    >>> with tf.Session() as sess:
    ...     sess.run(line), sess.run(line)
    (b'one', b'two')
    """

    def __init__(
        self,
        filenames: Any,
        compression_type: Any = None,
        buffer_size: Any = None,
        num_parallel_reads: Any = None,
    ) -> None:
        kind = convert_to_tensor(compression_type or "", dtypes.string)
        size = convert_to_tensor(buffer_size or _BUFFER, dtypes.int64)
        super().__init__(
            lambda names: raw.TextLineDataset(names, kind, size), filenames, num_parallel_reads
        )


class TFRecordDataset(_FilesDataset):
    """The records of TFRecord files, as strings.

    Args:
        filenames: one or more, or a dataset of names; compression_type: "", "ZLIB" or "GZIP".
        num_parallel_reads: from how many files to read in turn.

    >>> import headrace as tf
    >>> with tf.python_io.TFRecordWriter("numbers.tfrecords") as writer:
    ...     writer.write(b"first")
    >>> dataset = tf.data.TFRecordDataset("numbers.tfrecords")
    >>> with tf.Session() as sess:
    ...     sess.run(dataset.make_one_shot_iterator().get_next())
    b'first'
    """

    def __init__(
        self,
        filenames: Any,
        compression_type: Any = None,
        buffer_size: Any = None,
        num_parallel_reads: Any = None,
    ) -> None:
        kind = convert_to_tensor(compression_type or "", dtypes.string)
        size = convert_to_tensor(buffer_size or _BUFFER, dtypes.int64)
        super().__init__(
            lambda names: raw.TFRecordDataset(names, kind, size), filenames, num_parallel_reads
        )


class FixedLengthRecordDataset(_FilesDataset):
    """Pieces of ``record_bytes`` of files, behind a header and before a footer of so many bytes.

    >>> import headrace as tf
    >>> with tf.gfile.GFile("pieces.bin", "wb") as file:
    ...     _ = file.write(b"HEADaabb")
    >>> dataset = tf.data.FixedLengthRecordDataset("pieces.bin", record_bytes=2, header_bytes=4)
    >>> piece = dataset.make_one_shot_iterator().get_next()
    >>> with tf.Session() as sess:
    ...     sess.run(piece), sess.run(piece)
    (b'aa', b'bb')
    """

    def __init__(
        self,
        filenames: Any,
        record_bytes: Any,
        header_bytes: Any = None,
        footer_bytes: Any = None,
        buffer_size: Any = None,
        compression_type: Any = None,
        num_parallel_reads: Any = None,
    ) -> None:
        sizes = (header_bytes or 0, record_bytes, footer_bytes or 0, buffer_size or _BUFFER)
        header, record, footer, buffer = [convert_to_tensor(value, dtypes.int64) for value in sizes]
        kind = convert_to_tensor(compression_type or "", dtypes.string)
        super().__init__(
            lambda names: raw.FixedLengthRecordDatasetV2(
                names, header, record, footer, buffer, kind
            ),
            filenames,
            num_parallel_reads,
        )


__all__ = ["FixedLengthRecordDataset", "TFRecordDataset", "TextLineDataset"]
