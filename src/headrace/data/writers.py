"""Datasets into files."""

from __future__ import annotations

from typing import Any

from headrace.data.dataset import Dataset, check_dataset
from headrace.data.structure import Component
from headrace.graph import dtypes
from headrace.graph.tensor import Operation
from headrace.ops.core.build import convert_to_tensor, raw


class TFRecordWriter:
    """Writes the elements of a dataset, each one string, to a TFRecord file.

    Args:
        filename: a string, a scalar; compression_type: "", "ZLIB" or "GZIP".

    >>> import headrace as tf
    >>> dataset = tf.data.Dataset.from_tensor_slices(["one", "two"])
    >>> write = tf.data.experimental.TFRecordWriter("words.tfrecord").write(dataset)
    >>> tf.Session().run(write)
    >>> list(tf.python_io.tf_record_iterator("words.tfrecord"))
    [b'one', b'two']
    """

    def __init__(self, filename: Any, compression_type: Any = None) -> None:
        self._filename = convert_to_tensor(filename, dtypes.string)
        self._compression_type = convert_to_tensor(compression_type or "", dtypes.string)

    def write(self, dataset: Dataset) -> Operation:
        """The operation that writes all elements.

        Raises:
            TypeError: if elements are no strings.
        """
        check_dataset(dataset)
        leaf = dataset._structure
        if type(leaf) is not Component or leaf.dtype is not dtypes.string or leaf.shape.ndims != 0:
            raise TypeError(f"Elements must be strings, each a scalar, but are {leaf!r:.100}.")
        made: Operation = raw.DatasetToTFRecord(
            dataset._variant_tensor, self._filename, self._compression_type
        )
        return made


__all__ = ["TFRecordWriter"]
