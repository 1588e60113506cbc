"""`tf.data`: sequences of elements that feed a graph.

What goes in: tensors, files, Python generators. What comes out: tensors that are other elements at
each step. What holds: a dataset is a value of the graph; only an iterator has state, one in each
session.

>>> import headrace as tf
>>> dataset = tf.data.Dataset.from_tensor_slices({"x": [1.0, 2.0, 3.0], "y": [0, 1, 0]}).batch(2)
>>> iterator = tf.data.make_initializable_iterator(dataset)
>>> next_batch = iterator.get_next()
>>> with tf.Session() as sess:
...     sess.run(iterator.initializer)
...     sess.run(next_batch["x"]), sess.run(next_batch["x"])
(array([1., 2.], dtype=float32), array([3.], dtype=float32))
"""

from typing import Any

from headrace.data import experimental
from headrace.data.dataset import Dataset
from headrace.data.dispenser import InputDispenser
from headrace.data.iterators import Iterator, make_initializable_iterator, make_one_shot_iterator
from headrace.data.options import Options
from headrace.data.readers import FixedLengthRecordDataset, TextLineDataset, TFRecordDataset
from headrace.data.specs import DatasetSpec


def _check(value: Any) -> None:
    if not isinstance(value, (Dataset, Iterator)):
        raise TypeError(f"Expected a tf.data.Dataset or Iterator, not {value!r:.100}.")


def get_output_types(dataset_or_iterator: Any) -> Any:
    """The dtype of each component of an element, in the structure of one.

    Elements may be scalars or of any shape.

    Raises:
        TypeError: if that is neither a dataset nor an iterator.
    """
    _check(dataset_or_iterator)
    return dataset_or_iterator.output_types


def get_output_shapes(dataset_or_iterator: Any) -> Any:
    """The static shape of each component of an element, in the structure of one.

    Elements may be scalars or of any shape.

    Raises:
        TypeError: if that is neither a dataset nor an iterator.
    """
    _check(dataset_or_iterator)
    return dataset_or_iterator.output_shapes


def get_output_classes(dataset_or_iterator: Any) -> Any:
    """`tf.Tensor` or `tf.SparseTensor` for each component of an element, in the structure of one.

    Elements may be scalars or of any shape.

    Raises:
        TypeError: if that is neither a dataset nor an iterator.
    """
    _check(dataset_or_iterator)
    return dataset_or_iterator.output_classes


__all__ = [
    "Dataset",
    "DatasetSpec",
    "FixedLengthRecordDataset",
    "InputDispenser",
    "Iterator",
    "Options",
    "TFRecordDataset",
    "TextLineDataset",
    "experimental",
    "get_output_classes",
    "get_output_shapes",
    "get_output_types",
    "make_initializable_iterator",
    "make_one_shot_iterator",
]
